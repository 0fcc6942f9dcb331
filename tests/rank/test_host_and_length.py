"""The host's feed, the length of the job and its CPU in a ranking: what caps an offer, and what no total may claim."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rank.scenes import JOB, SPEED_PER_S, predict, ranking, rules
from tests.rank.scenes import offer as row

from gpuwise.estimate import Estimate, probability_less
from gpuwise.model import Workload
from gpuwise.predict.target import TO_TARGET, early, of_runs
from gpuwise.rank.architecture import HostFact
from gpuwise.stopping import EarlyStop
from gpuwise.workloads import override

LOADED = replace(JOB, decode_s=0.030)
"""30 ms of one CPU an image."""
STOPPED = replace(JOB, stop=early(EarlyStop(least_epochs=5, most_epochs=100, patience_epochs=10)))
ENDLESS = replace(JOB, undecided=("samples", "epochs"))


def ranked(*rows: dict, job: Workload = LOADED, **more: object):
    return {c.offer.provider: c for c in ranking(*rows, workloads=(job,), **more).candidates}


# ---- the feed ----


def test_uc_051_an_offer_of_few_vcpus_is_timed_by_its_cpus_and_says_so() -> None:
    job = replace(LOADED, samples=133_333, epochs=10)
    found = ranked(row("few", "a100", 1.0, vcpus=4), row("many", "a100", 1.5, vcpus=64), job=job, prepare_s=0.0)
    few, many = found["few"], found["many"]
    assert few.prediction.throughput_per_s.value == pytest.approx(133.3, rel=0.01)
    assert few.time_s.value == pytest.approx(1_333_330 / 133.3, rel=0.01)
    assert any("CPU limits this offer: 13 % of the GPU used" in str(m) for m in few.marks)
    assert not any("limits this offer" in str(m) and "13 %" in str(m) for m in many.marks)
    assert many.cost_usd.value < few.cost_usd.value, "a larger host of the same GPU is dearer an hour and cheaper"


def test_uc_051_a_faster_card_does_not_help_a_job_that_its_host_cannot_feed() -> None:
    found = ranked(row("slow", "a100", 1.0, vcpus=4), row("fast", "b200", 1.0, vcpus=4))
    assert SPEED_PER_S["b200"] == 4 * SPEED_PER_S["a100"]
    assert found["fast"].time_s.value == pytest.approx(found["slow"].time_s.value, rel=0.01)
    assert 0.4 < found["slow"].p_cheapest < 0.6, "whatever the loading time is, it is the same for both"


def test_the_evidence_has_the_factor_of_the_host() -> None:
    few = ranked(row("few", "a100", 1.0, vcpus=4))["few"]
    assert str(few.prediction.evidence[-1]).startswith("× 0.133: the CPU lets 133 samples/s through of the 1,000")
    assert "CPU time to load a sample" in dict(few.prediction.throughput_per_s.spread)


def test_an_offer_that_does_not_say_its_vcpus_is_not_capped_and_marked() -> None:
    unknown = ranked(row("unknown", "a100", 1.0))["unknown"]
    assert unknown.prediction.throughput_per_s.value == 1000
    assert any("feed unknown" in str(m) for m in unknown.marks)


def test_uc_016_the_store_that_held_a_run_back_holds_every_offer_back() -> None:
    found = ranked(row("one", "a100", 1.0), row("eight", "a100", 8.0, count=8), job=replace(JOB, storage_per_s=864.0))
    assert found["eight"].prediction.throughput_per_s.value == pytest.approx(864, rel=0.01)
    assert any("storage limits this offer: 11 % of the GPU used" in str(m) for m in found["eight"].marks)
    assert found["one"].time_s.value == pytest.approx(found["eight"].time_s.value, rel=0.15)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(SPEED_PER_S)), st.integers(1, 128)), min_size=1, max_size=5))
def test_the_columns_of_a_ranking_are_the_figures_of_its_rows(offers: list[tuple[str, int]]) -> None:
    rows = [row(f"p{i}", gpu, 1.0, vcpus=vcpus) for i, (gpu, vcpus) in enumerate(offers)]
    order = ranking(*rows, workloads=(LOADED,), sort="time", limit=None).candidates
    times = [c.time_s.value for c in order]
    assert times == sorted(times)


# ---- the number of epochs ----


def test_the_epochs_to_a_target_count_in_each_time_and_bill_and_cancel_between_offers() -> None:
    rows = (row("slow", "l4", 1.0), row("fast", "a100", 2.0))
    known, stopped = ranked(*rows, job=JOB), ranked(*rows, job=STOPPED)
    assert TO_TARGET in dict(stopped["slow"].cost_usd.spread)
    assert stopped["slow"].time_s.log_sd > known["slow"].time_s.log_sd
    for one, other in ((known, known), (stopped, stopped)):
        assert (one["slow"].time_s / other["fast"].time_s).log_sd < 0.2
    sure = probability_less(stopped["fast"].cost_usd, stopped["slow"].cost_usd)
    assert sure > 0.99


def test_times_are_p10_p50_and_p90_of_the_epochs() -> None:
    stop = STOPPED.stop
    assert stop is not None
    found = ranked(row("exact", "h100", 1.0), job=STOPPED, prepare_s=0.0)["exact"].time_s.interval()
    epochs = [seconds * SPEED_PER_S["h100"] / JOB.samples for seconds in (found.low, found.value, found.high)]
    assert epochs[1] == pytest.approx(stop.p50_epochs)
    assert epochs[0] == pytest.approx(stop.p10_epochs, rel=0.02)
    assert epochs[2] == pytest.approx(stop.p90_epochs, rel=0.02)


def test_more_gpus_at_the_same_batch_each_need_more_epochs_to_a_target() -> None:
    job = replace(JOB, stop=of_runs([30.0], global_batch=64))
    found = ranked(row("one", "h100", 1.0), row("eight", "h100", 8.0, count=8), job=job, prepare_s=0.0)
    assert found["one"].time_s.value / found["eight"].time_s.value == pytest.approx(8 / 8**0.25, rel=0.01)


def test_uc_060_a_deadline_is_met_no_more_surely_than_runs_reach_the_target() -> None:
    job = replace(JOB, stop=of_runs([1.0, 1.0], failed=1))
    warned = ranking(row("any", "h100", 1.0), workloads=(job,), deadline_s=1e9).warnings
    assert any("probability of 67 %" in str(note) for note in warned)


def test_stated_epochs_end_the_doubt() -> None:
    assert override(STOPPED, epochs=3.0).stop is None


# ---- no length ----


def test_uc_050_a_job_of_unknown_length_has_no_totals_but_what_its_work_costs() -> None:
    found = ranked(row("hourly", "h100", 2.0, billing_step_s=3600), job=ENDLESS)["hourly"]
    assert (found.time_s, found.cost_usd, found.cost_share_usd, found.cost) == (None, None, None, None)
    assert "duration unknown" in str(found.reasons["cost_usd"])
    assert found.price_usd_per_hour == 2.0
    assert found.usd_per_million_samples.value == pytest.approx(2.0 * 1e6 / 2000 / 3600)
    assert found.usd_per_1000_steps.value == pytest.approx(2.0 * 64_000 / 2000 / 3600)


def test_uc_050_offers_for_such_a_job_are_ranked_by_the_cost_of_a_sample() -> None:
    rows = (row("slow", "l4", 1.0), row("fast", "h100", 3.0), row("dear", "a100", 9.0))
    result = ranking(*rows, workloads=(ENDLESS,))
    assert [c.offer.provider for c in result.candidates] == ["fast", "slow", "dear"]
    assert result.candidates[0].p_cheapest > 0.9


def test_uc_050_one_half_of_the_length_is_none() -> None:
    assert override(ENDLESS, samples=1000).undecided == ("epochs",)
    assert override(ENDLESS, samples=1000, epochs=2.0).undecided == ()


# ---- the whole job ----


def test_uc_046_a_stage_that_becomes_faster_speeds_the_job_up_only_by_its_share() -> None:
    """Fit 135 s of 148.8 s, then 35 s of 68.9 s: 2.16 times for the person, not the 3.86 times of the stage."""
    job = replace(JOB, samples=135_000, epochs=1.0)

    def wall_s(fit_s: float, rest_s: float) -> float:
        def predictor(workload, platforms):
            speed = Estimate(value=workload.samples / fit_s)
            return [replace(p, throughput_per_s=speed) for p in predict(workload, platforms)]

        return (
            ranking(row(gpu="h100"), workloads=(job,), predictor=predictor, prepare_s=rest_s).candidates[0].time_s.value
        )

    assert wall_s(135, 13.8) / wall_s(35, 33.9) == pytest.approx(2.16, abs=0.005)


# ---- the CPU ----

HOSTS = (
    HostFact(provider="aws", instance="g5g", accelerator=None, cpu_architecture="arm64", source="test"),
    HostFact(provider="aws", instance="g4dn", accelerator=None, cpu_architecture="x86_64", source="test"),
)


def test_uc_057_an_arm_host_is_left_out_for_a_program_built_for_x86() -> None:
    rows = (row("aws", "l4", 0.42, instance="g5g.xlarge"), row("aws", "l4", 0.526, instance="g4dn.xlarge"))
    result = ranking(*rows, workloads=(replace(JOB, cpu_architecture="x86_64"),), context={"hosts": HOSTS})
    assert [c.offer.instance for c in result.candidates] == ["g4dn.xlarge"]
    assert rules(result) == {"aws-0": "cpu_architecture"}
    assert "its CPU is arm64, and the job was measured on x86_64" in str(result.exclusions[0].reason)


def test_uc_057_without_a_measured_program_no_host_is_left_out_for_its_cpu() -> None:
    result = ranking(row("aws", "l4", 0.42, instance="g5g.xlarge"), context={"hosts": HOSTS})
    assert len(result.candidates) == 1
