"""Does it fit? The bound never excludes a run that really ran, the verdict knows three answers, parts are exact."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import ASSUMPTIONS, CARDS, JOB, on

from gpuwise.estimate import Estimate, Interval
from gpuwise.memory import MemoryReading
from gpuwise.model import Prediction, Refusal, Workload
from gpuwise.predict import does_not_fit, need_gib, usable_gib
from gpuwise.predict.memory import (
    CONTEXT_GIB,
    MARGIN,
    at_batch,
    fit,
    held,
    largest_batch,
    need,
    only_fitting,
    smallest,
    verdict,
    with_memory,
)
from gpuwise.store import package

GIB = 2.0**30
BATCHES = st.integers(1, 2000)


def test_the_bound_admits_every_measured_run_of_a_built_in_workload() -> None:
    """Those runs filled their cards on purpose: 8 to 192 GB, batches of 2 to 3,328."""
    cards, assumptions = package.accelerators(), package.assumptions()
    checked, excluded = 0, []
    for workload in package.workloads().values():
        for run in package.throughput(frozenset(workload.measured_as)):
            as_run = replace(workload, batch_per_accelerator=run.batch_per_accelerator, precision=run.precision)
            checked += 1
            if reason := does_not_fit(as_run, cards[run.accelerator], assumptions):
                excluded.append((run.workload, run.accelerator, str(reason)))
    assert checked > 400
    assert excluded == []


def test_runs_whose_memory_was_watched_are_said_to_fit_or_to_be_doubtful() -> None:
    """Each of the built-in jobs that the memory table has, at the batch and on the card of the run."""
    cards, assumptions, published = package.accelerators(), package.assumptions(), package.memory()
    said = []
    for workload in package.workloads().values():
        for run in (r for name in workload.measured_as for r in published.get(name, ())):
            job = replace(workload, batch_per_accelerator=run.batch_per_accelerator, precision=run.precision)
            card = cards[str(run.accelerator)]
            said.append(fit(job, card, assumptions, accelerators=run.accelerators, published=published).verdict)
    assert len(said) > 120
    assert "does_not_fit" not in said


def test_three_times_the_batch_that_filled_a_card_does_not_fit() -> None:
    """BERT-base in fp32 filled an RTX 2080 Ti at batch 10; ResNet-50's fp32 runs filled theirs at 9 a GiB."""
    bert = replace(package.workloads()["bert-finetune"], precision="fp32", batch_per_accelerator=50)
    assert does_not_fit(bert, package.accelerators()["rtx-2080-ti"], package.assumptions()) is not None


HELD = [  # family, precision, bytes a parameter in the forward pass, bytes an element held
    ("cnn", "amp", 4 + 2 + 8, 2.0),
    ("transformer", "amp", 4 + 2 + 8, 2.5),
    ("transformer", "bf16", 2 + 12, 2.0),
    ("cnn", "fp32", 4 + 8, 4.0),
    ("transformer", "tf32", 4 + 8, 4.0),
]


@pytest.mark.parametrize(("family", "precision", "resident", "each"), HELD, ids=[f"{h[0]} {h[1]}" for h in HELD])
def test_the_least_is_context_weights_states_and_activations(
    family: str, precision: str, resident: float, each: float
) -> None:
    """Adam: 16 bytes a parameter, gradients among them, which come when activations go."""
    job = replace(
        JOB, family=family, precision=precision, parameters_m=100.0, state_bytes_per_parameter=16.0, stored_m=10.0,
        batch_per_accelerator=64,
    )  # fmt: skip
    assert need_gib(job) == pytest.approx(CONTEXT_GIB + (100e6 * resident + 64 * 10e6 * each) / GIB)


TOO_SMALL = [  # 12 sequences of 1,024 tokens: 1.9 GiB of states, 7 GiB held, 1.2 GiB of logits among them
    ("gpt", "rtx-3070"),
    ("gpt", "gtx-1080"),
    ("bert-finetune", "gtx-1660"),
]


@pytest.mark.parametrize(("workload", "card"), TOO_SMALL)
def test_a_job_that_surely_cannot_fit_is_excluded(workload: str, card: str) -> None:
    job, cards = package.workloads()[workload], package.accelerators()
    assert does_not_fit(job, cards[card], package.assumptions()) is not None


@pytest.mark.parametrize("card", ["rtx-3090", "t4", "v100-sxm2-16gb", "a10"])
def test_gpt_2_fits_cards_on_which_people_train_it(card: str) -> None:
    assert does_not_fit(package.workloads()["gpt"], package.accelerators()[card], package.assumptions()) is None


PHASES = [  # parameters in 10^6, batch -> phase; Adam, 10^7 elements of four bytes held a sample
    (1.0, 256, "backward"),
    (1000.0, 1, "optimizer"),
]


@pytest.mark.parametrize(("parameters_m", "batch", "phase"), PHASES)
def test_a_large_batch_peaks_in_the_backward_pass_and_a_large_model_in_the_optimizer(
    parameters_m: float, batch: int, phase: str
) -> None:
    job = replace(
        JOB, precision="fp32", parameters_m=parameters_m, state_bytes_per_parameter=16.0, stored_m=10.0,
        batch_per_accelerator=batch,
    )  # fmt: skip
    found = need(job)
    assert found.phase == phase
    assert ("activations" in found.parts_gib) == (phase == "backward")


def test_the_optimizer_of_adam_makes_a_copy_of_the_gradients_and_that_of_sgd_none() -> None:
    """vit_l_16 in PyTorch's tutorial: 6.1 GB with Adam all at once, of which 1.2 GB are that copy."""
    adam, momentum = (replace(JOB, parameters_m=304.3, state_bytes_per_parameter=b) for b in (16.0, 12.0))
    assert held(adam).phases()["optimizer"] == pytest.approx(5 * 4 * 304.3e6)
    assert held(momentum).phases()["optimizer"] == pytest.approx(3 * 4 * 304.3e6)


def test_exact_parts_are_exact() -> None:
    """GPT-2 of 124.44 M parameters with AdamW: 0.46 GiB of fp32 weights, 0.23 of halves, 0.93 of states."""
    parts = need(package.workloads()["gpt"]).parts_gib
    assert parts["weights"] == pytest.approx(124.44e6 * 6 / GIB)
    assert parts["optimizer states"] == pytest.approx(124.44e6 * 8 / GIB)


@settings(deadline=None)
@given(BATCHES, st.sampled_from(["fp32", "tf32", "amp", "bf16"]), st.sampled_from([8.0, 12.0, 16.0]), st.booleans())
def test_the_parts_add_up_to_the_need(batch: int, precision: str, state_bytes: float, several: bool) -> None:
    job = replace(JOB, batch_per_accelerator=batch, precision=precision, state_bytes_per_parameter=state_bytes)
    found = need(job, 4 if several else 1)
    assert sum(found.parts_gib.values()) == pytest.approx(found.gib.value)
    assert 0 < found.gib.low <= found.gib.value <= found.gib.high


@settings(deadline=None)
@given(BATCHES, BATCHES, st.sampled_from(["counted", "one run", "two runs", "published"]))
def test_a_larger_batch_needs_more(a: int, b: int, known: str) -> None:
    small, large = (seen(known, batch) for batch in sorted((a, b)))
    assert small.low <= large.low + 1e-9
    assert small.value <= large.value + 1e-9
    assert small.high <= large.high + 1e-9


def seen(known: str, batch: int) -> Interval:
    """The need of a job at a batch, with what is known of its memory."""
    runs = {"one run": (reading(16, 3.0),), "two runs": (reading(16, 3.0), reading(64, 9.4))}
    published = {"job": (reading(8, 4.0), reading(64, 12.0))} if known == "published" else {}
    job = replace(JOB, batch_per_accelerator=batch, memory=runs.get(known, ()))
    return need(job, published=published).gib


def reading(batch: int, gib: float, **more: object) -> MemoryReading:
    usual = MemoryReading(batch_per_accelerator=batch, precision="amp", used_gib=gib)
    return replace(usual, **more)  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.floats(0.1, 200), st.floats(0, 2), st.floats(1, 3), st.floats(1, 200), st.floats(1, 200))
def test_more_memory_never_makes_the_verdict_worse(least: float, more: float, most: float, a: float, b: float) -> None:
    inside = Interval(low=least, value=least * (1 + more), high=least * (1 + more) * most)
    order = ("does_not_fit", "doubtful", "fits")
    small, large = (order.index(verdict(inside, usable)) for usable in sorted((a, b)))
    assert small <= large


VERDICTS = [  # low, usual, high, usable -> verdict
    ((5.0, 9.0, 9.9), 10.0, "fits"),
    ((5.0, 9.3, 9.9), 10.0, "doubtful"),  # over 0.92 of it
    ((5.0, 9.0, 10.1), 10.0, "doubtful"),  # the upper end does not go in
    ((10.1, 12.0, 14.0), 10.0, "does_not_fit"),
    ((9.9, 12.0, 14.0), 10.0, "doubtful"),  # the least goes in
]


@pytest.mark.parametrize(("ends", "usable", "said"), VERDICTS)
def test_the_verdict_takes_margin_and_interval_into_account(
    ends: tuple[float, float, float], usable: float, said: str
) -> None:
    assert verdict(Interval(low=ends[0], value=ends[1], high=ends[2]), usable) == said


def test_the_largest_batch_is_the_last_that_fits() -> None:
    card = CARDS["middle"]
    batch = largest_batch(JOB, card, ASSUMPTIONS)
    assert batch > 64
    said = [fit(at_batch(JOB, b), card, ASSUMPTIONS).verdict for b in (batch, batch + 1)]
    assert said == ["fits", "doubtful"]
    assert largest_batch(replace(JOB, parameters_m=1e6), card, ASSUMPTIONS) == 0


def test_a_run_at_one_batch_tells_of_another() -> None:
    """3 GiB allocated at 16, of which 0.4 GiB stay: the double is 5.6 GiB."""
    job = replace(JOB, batch_per_accelerator=32, memory=(reading(16, 3.0),))
    found = need(job)
    assert found.basis == "measured"
    assert (found.gib.value - 0.75) / 1.06 == pytest.approx(5.6, rel=0.05)


def test_a_second_run_makes_the_need_surer() -> None:
    one, two = (seen(known, 512) for known in ("one run", "two runs"))
    assert two.high / two.low < one.high / one.low


def test_what_was_allocated_at_this_very_batch_is_the_least() -> None:
    job = replace(JOB, peak_memory_gib=9.0)
    assert need_gib(job) == CONTEXT_GIB + 9.0
    assert need_gib(replace(JOB, memory=(reading(64, 9.0), reading(8, 2.0)))) == CONTEXT_GIB + 9.0


def test_a_run_in_another_arithmetic_says_nothing() -> None:
    told = (reading(64, 9.0, precision="fp32"),)
    assert need(replace(JOB, memory=told)) == need(JOB)
    assert need(replace(JOB, precision="tf32", memory=told)).basis == "measured"


def test_published_rows_of_the_very_job_are_taken_under_their_newest_software() -> None:
    rows = [
        reading(b, g, software=s) for b, g, s in ((32, 30.0, "ngc-1.4"), (64, 60.0, "ngc-1.4"), (64, 8.0, "ngc-1.9"))
    ]
    found = need(JOB, published={"job": rows})
    assert found.basis == "published"
    assert found.gib.value == pytest.approx(8.0, rel=0.02)


def test_several_gpus_hold_the_gradients_once_more_each() -> None:
    one, eight = need(JOB), need(JOB, 8)
    assert eight.parts_gib["gradient buckets"] == pytest.approx(44.5e6 * 4 / GIB)
    assert eight.gib.value - one.gib.value == pytest.approx(44.5e6 * 4 / GIB)
    assert eight.gib.low == one.gib.low  # views of the buckets can spare the copy


def test_the_smallest_device_bounds_a_machine() -> None:
    assert smallest([CARDS["large"], CARDS["old"], CARDS["middle"]], ASSUMPTIONS).id == "old"


def predicting(workload: Workload, platforms: object) -> list[Prediction | Refusal]:
    return [
        Prediction(
            workload=workload.name, platform=p.name, accelerators=p.accelerators, method="ratio", evidence=(),
            throughput_per_s=Estimate(value=1.0), advice=does_not_fit(workload, CARDS["old"], ASSUMPTIONS),
        )
        for p in platforms
    ]  # fmt: skip


def test_each_prediction_says_whether_the_job_fits_and_of_variants_the_smallest_does() -> None:
    job = replace(JOB, batch_per_accelerator=200)
    told = with_memory(predicting, ASSUMPTIONS)(job, [on("middle"), on("large"), on("old"), on("old", "large")])
    assert [one.memory.verdict for one in told] == ["fits", "fits", "does_not_fit", "doubtful"]
    left = only_fitting(with_memory(predicting, ASSUMPTIONS))(job, [on("middle"), on("old", "large")])
    assert [type(one) for one in left] == [Prediction, Refusal]
    assert "usable" in str(left[1].reason)


def test_what_the_driver_reports_is_used_where_it_is_known() -> None:
    card = replace(CARDS["middle"], usable_memory_gib=22.5)
    assert usable_gib(card, ASSUMPTIONS) == 22.5
    assert usable_gib(CARDS["middle"], ASSUMPTIONS) == pytest.approx(0.95 * 24)


def test_the_reason_states_both_figures() -> None:
    reason = str(does_not_fit(replace(JOB, batch_per_accelerator=512), CARDS["old"], ASSUMPTIONS))
    assert "needs at least" in reason
    assert "10.4 GiB usable" in reason
    assert "batch 512" in reason


def test_uc_058_a_peak_of_79_9_gib_is_too_tight_for_an_a100_and_too_much_for_an_h100_of_the_same_nominal_size() -> None:
    """Real totals are 81,559 MiB (H100) and 81,920 MiB (A100 80 GB); the run needed 81,818 MiB, context included."""
    a100 = replace(CARDS["large"], usable_memory_gib=81_920 / 1024)
    h100 = replace(CARDS["large"], usable_memory_gib=81_559 / 1024)
    job = replace(JOB, peak_memory_gib=81_818 / 1024 - CONTEXT_GIB)
    assert need_gib(job) == pytest.approx(79.9, abs=0.005)
    assert does_not_fit(job, a100, ASSUMPTIONS) is None
    assert "79.9 GiB" in str(does_not_fit(job, h100, ASSUMPTIONS))
    assert "79.6 GiB usable" in str(does_not_fit(job, h100, ASSUMPTIONS))
    assert [fit(job, card, ASSUMPTIONS).verdict for card in (a100, h100)] == ["doubtful", "does_not_fit"]
    assert need(job).gib.value > MARGIN * 80


def test_uc_058_the_bundled_cards_have_the_memory_that_drivers_report() -> None:
    """No figure of one is taken for the other: 80 GiB, 79.6 GiB, and nothing above the nominal size."""
    cards, assumptions = package.accelerators(), package.assumptions()
    a100, h100 = (usable_gib(cards[name], assumptions) for name in ("a100-sxm4-80gb", "h100-sxm5-80gb"))
    assert h100 < a100 <= 80.0
    assert h100 == pytest.approx(81_559 / 1024, abs=0.01)
    assert all(usable_gib(card, assumptions) <= card.memory_gib for card in cards.values())
