"""How many epochs until training ends: quantiles in order, nothing left out, and more GPUs never need fewer."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import JOB

from gpuwise.errors import MissingEvidence
from gpuwise.predict.target import (
    TO_TARGET,
    WITH_BATCH,
    PowerLaws,
    at_accuracy,
    early,
    growth_of,
    of_runs,
    of_table,
    reference_time,
    samples_needed,
)
from gpuwise.stopping import EarlyStop, EpochReference, Stop
from gpuwise.store import package

RULE = EarlyStop(least_epochs=5, most_epochs=100, patience_epochs=10)


def rows(*pairs: tuple[int, float], target: float = 0.759) -> list[EpochReference]:
    return [
        EpochReference(task="t", target_fraction=target, global_batch=batch, runs=10, samples_to_target=samples,
                       cv_fraction=0.02, source="test")
        for batch, samples in pairs
    ]  # fmt: skip


def curve(
    epochs: int, *, level: float = 0.2, scale: float = 0.6, power: float = 0.7, noise: float = 0.0
) -> list[float]:
    """Accuracy 1 − (level + scale · e^−power) with seeded noise, after two epochs of warm-up that fit no law."""
    e = np.arange(1, epochs + 1)
    draw = np.random.default_rng(1)
    accuracy = 1 - level - scale * e**-power + noise * draw.standard_normal(epochs)
    accuracy[:2] = 0.01
    return [float(a) for a in accuracy]


# ---- known epochs ----


def test_known_epochs_are_exact_on_any_number_of_gpus() -> None:
    assert all(samples_needed(JOB, n).value == 1000.0 for n in (1, 8))
    assert samples_needed(JOB, 8).spread == ()


# ---- earlier runs ----


def test_uc_060_a_run_that_never_converged_is_not_left_out_of_the_mean() -> None:
    runs = of_runs([61, 63], failed=1)
    assert runs.p50_epochs == 63, "the median of 61, 63 and infinity, not of the two good runs"
    assert runs.open_ended
    assert runs.reached_fraction == pytest.approx(2 / 3)
    assert any("count as infinite" in str(note) for note in runs.notes)


def test_uc_060_phases_that_the_published_time_leaves_out_are_added_before_it_is_billed() -> None:
    time = reference_time([61 * 60, 63 * 60], failed=1, excluded_s=25 * 60)
    assert time.p50_s == pytest.approx(88 * 60)
    assert time.open_ended
    assert time.p90_s >= time.p50_s
    assert any("leaves out 25 min" in str(note) for note in time.notes)


def test_where_most_runs_failed_there_is_no_median() -> None:
    with pytest.raises(MissingEvidence, match="1 of 3 runs"):
        of_runs([61], failed=2)


def test_one_failure_in_twenty_leaves_a_p90() -> None:
    runs = of_runs([60.0 + i for i in range(19)], failed=1)
    assert not runs.open_ended
    assert runs.p90_epochs > runs.p50_epochs


@given(st.lists(st.floats(1, 500), min_size=1, max_size=12), st.integers(0, 5))
def test_quantiles_of_runs_are_in_order_and_failures_never_shorten_them(epochs: list[float], failed: int) -> None:
    if failed > len(epochs):
        return
    runs = of_runs(epochs, failed)
    assert 0 < runs.p10_epochs <= runs.p50_epochs <= runs.p90_epochs < inf
    if failed:
        assert runs.p50_epochs >= sorted(epochs)[(len(epochs) - 1) // 2] * (1 - 1e-9)


# ---- tables ----


def test_the_table_is_met_at_its_own_batches() -> None:
    job = replace(
        JOB, samples=1000, batch_per_accelerator=256, stop=of_table(rows((256, 40e3), (1024, 60e3)), "t", 0.759, 1000)
    )
    assert samples_needed(job, 1).value == pytest.approx(40e3)
    assert samples_needed(job, 4).value == pytest.approx(60e3)
    assert 40e3 < samples_needed(job, 2).value < 60e3


def test_a_smaller_batch_than_the_table_has_saves_no_epochs() -> None:
    job = replace(
        JOB, samples=1000, batch_per_accelerator=8, stop=of_table(rows((256, 40e3), (1024, 60e3)), "t", 0.759, 1000)
    )
    assert samples_needed(job, 1).value == pytest.approx(40e3)


def test_beyond_the_table_epochs_grow_and_so_does_the_doubt() -> None:
    stop = of_table(rows((256, 40e3), (1024, 60e3)), "t", 0.759, 1000)
    job = replace(JOB, samples=1000, batch_per_accelerator=1024, stop=stop)
    far = samples_needed(job, 16)
    assert far.value == pytest.approx(60e3 * 16**0.25)
    assert dict(far.spread)[WITH_BATCH] > 0
    assert WITH_BATCH not in dict(samples_needed(job, 1).spread)


def test_a_higher_target_than_the_table_has_is_refused() -> None:
    with pytest.raises(MissingEvidence, match="nothing is known beyond"):
        of_table(rows((256, 40e3)), "t", 0.80, 1000)


def test_an_unknown_task_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(MissingEvidence, match="knows no task x") as caught:
        of_table(package.epochs(), "x", 0.7, 1000)
    assert "resnet50-imagenet" in str(caught.value.hint)


def test_growth_with_the_batch_is_as_in_the_reference_runs() -> None:
    """Exponents of notes: 0.24 resnet, 0.17 bert, 0.08 maskrcnn."""
    for task, expected in (("resnet50-imagenet", 0.24), ("bert-large-wikipedia", 0.17), ("maskrcnn-coco", 0.08)):
        slope, sd = growth_of([row for row in package.epochs() if row.task == task])
        assert slope == pytest.approx(expected, abs=0.03)
        assert 0 < sd < 0.1


def test_resnet50_on_imagenet_takes_35_to_86_epochs_by_batch() -> None:
    stop = of_table(package.epochs(), "resnet50-imagenet", 0.759, 1_281_167)
    assert stop.at[0].epochs == pytest.approx(35, rel=0.02)
    assert stop.at[-1].epochs > 80


STOPS = st.one_of(
    st.builds(lambda e, b: of_runs([e], global_batch=b), st.floats(1, 300), st.sampled_from([8.0, 64.0, 4096.0])),
    st.just(early(RULE)),
    st.lists(
        st.tuples(st.integers(8, 60000), st.floats(1e3, 1e6)), min_size=1, max_size=5, unique_by=lambda p: p[0]
    ).map(lambda pairs: of_table(rows(*pairs), "t", 0.759, 1000)),
)


@given(STOPS, st.integers(1, 512), st.integers(1, 64), st.integers(1, 64))
def test_more_gpus_at_the_same_batch_a_gpu_never_need_fewer_epochs(stop: Stop, batch: int, n: int, more: int) -> None:
    job = replace(JOB, batch_per_accelerator=batch, stop=stop)
    assert samples_needed(job, n + more).value >= samples_needed(job, n).value * (1 - 1e-9)


# ---- early stopping ----


def test_early_stopping_without_a_curve_says_that_nothing_is_known() -> None:
    stop = early(RULE)
    assert stop.p50_epochs == pytest.approx((10 * 100) ** 0.5)
    assert 10 < stop.p10_epochs < stop.p50_epochs < stop.p90_epochs < 100
    assert "nothing says" in str(stop.notes[0])


def test_a_learning_curve_narrows_early_stopping_and_says_how_warm_up_is_cut() -> None:
    free, told = early(RULE), early(RULE, curve(25, noise=0.004), global_batch=64)
    assert told.p90_epochs / told.p10_epochs < free.p90_epochs / free.p10_epochs
    assert "the first 3 are cut off as warm-up" in str(told.notes[0])


def test_a_curve_that_grows_fast_to_its_end_stops_early() -> None:
    quick = early(RULE, curve(25, power=2.5, noise=0.01))
    slow = early(RULE, curve(25, power=0.3, scale=0.79, level=0.0, noise=0.001))
    assert quick.p50_epochs < slow.p50_epochs


def test_epochs_by_early_stopping_never_exceed_the_most_allowed_however_large_the_batch() -> None:
    job = replace(JOB, stop=early(RULE, curve(25, noise=0.004), global_batch=64))
    assert samples_needed(job, 4096).value <= 1000 * 100


@given(st.floats(1, 50), st.floats(1, 50), st.floats(1, 400))
def test_quantiles_of_early_stopping_are_in_order_and_within_the_rule(
    least: float, patience: float, more: float
) -> None:
    most = max(least, patience) + more
    stop = early(EarlyStop(least_epochs=least, most_epochs=most, patience_epochs=patience))
    assert least * (1 - 1e-9) <= stop.p10_epochs <= stop.p50_epochs <= stop.p90_epochs <= most * (1 + 1e-9)


# ---- a target on a curve ----


def test_a_target_that_the_run_reached_is_read_off() -> None:
    reached = at_accuracy([0.1, 0.3, 0.5, 0.6, 0.7], 0.55, global_batch=64)
    assert reached.p50_epochs == 4
    assert reached.p10_epochs < 4 < reached.p90_epochs


def test_a_curve_is_continued_to_the_epochs_that_its_law_needs() -> None:
    """1 − 0.2 − 0.6·e^−0.7 = 0.74 at e = (0.6 / 0.06)^(1/0.7) = 26.8."""
    found = at_accuracy(curve(15, noise=0.001), 0.74)
    assert found.p10_epochs <= 26.8 <= found.p90_epochs
    assert found.p50_epochs == pytest.approx(26.8, rel=0.3)


def test_a_target_above_where_the_curve_levels_off_is_refused() -> None:
    with pytest.raises(MissingEvidence, match="levels off near"):
        at_accuracy(curve(30, power=1.5, noise=0.001), 0.95)


def test_a_curve_of_warm_up_is_not_continued() -> None:
    with pytest.raises(MissingEvidence, match="first 2 are warm-up"):
        at_accuracy(curve(6), 0.9)


@settings(max_examples=25)
@given(st.floats(0, 0.4), st.floats(0.3, 0.6), st.floats(0.3, 2), st.floats(0.001, 0.02), st.floats(0.4, 0.9))
def test_quantiles_to_a_target_are_in_order_whatever_the_curve(
    level: float, scale: float, power: float, noise: float, target: float
) -> None:
    try:
        stop = at_accuracy(curve(20, level=level, scale=scale, power=power, noise=noise), target)
    except MissingEvidence:
        return
    assert 0 < stop.p10_epochs <= stop.p50_epochs <= stop.p90_epochs < inf


def test_the_ensemble_puts_its_weight_near_the_law_behind_the_curve() -> None:
    laws = PowerLaws.of(curve(60, noise=0.001))
    assert laws.weights.sum() == pytest.approx(1)
    assert float((laws.powers * laws.weights).sum()) == pytest.approx(0.7, abs=0.15)
    assert laws.level() == pytest.approx(0.2, abs=0.03)


def test_the_error_of_the_epochs_has_one_name_for_all_offers() -> None:
    job = replace(JOB, stop=early(RULE))
    one, eight = samples_needed(job, 1), samples_needed(job, 8)
    assert [name for name, _sd in one.spread] == [TO_TARGET]
    assert (one / eight).log_sd == 0


def test_about_eight_in_ten_later_runs_end_between_p10_and_p90() -> None:
    """Runs of laws that the fit does not have exactly (shifted by an epoch or two), each with its own noise."""
    draw = np.random.default_rng(0)
    inside, told = 0, 0
    while told < 40:
        level, scale, power, shift = (
            draw.uniform(0, 0.35),
            draw.uniform(0.3, 0.6),
            draw.uniform(0.4, 1.6),
            draw.uniform(0, 2),
        )
        law = 1 - level - scale * (np.arange(1, 1001) + shift) ** -power
        first, later = (law + draw.uniform(0.002, 0.01) * draw.standard_normal(1000) for _run in range(2))
        target = first[19] + draw.uniform(0.1, 0.6) * (1 - level - first[19])
        reached = np.flatnonzero(later >= target)
        if (first[:20] >= target).any() or not len(reached):
            continue
        told += 1
        stop = at_accuracy([float(a) for a in first[:20]], float(target))
        inside += stop.p10_epochs <= reached[0] + 1 <= (inf if stop.open_ended else stop.p90_epochs)
    assert 0.65 <= inside / told <= 0.95
