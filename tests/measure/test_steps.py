"""Step marks → pace, stages, ranks, forecast. Marks are written by hand, so that the right answer is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from gpuwise.errors import MeasurementFailed
from gpuwise.measure import levels
from gpuwise.measure.forecast import forecast, per_accelerator, sessions
from gpuwise.measure.intervals import mean_interval, student
from gpuwise.measure.marks import Marks, Phase, Series
from gpuwise.measure.record import Pace, Setup
from gpuwise.measure.steps import pace, precise_enough, ranks, stages, steady, straggler, why_none


def series(durations: Sequence[float], rank: int = 0, **columns: object) -> Series:
    """Steps of these durations, the first beginning at 100 s; a column is one figure for all steps, or an array."""
    ends = 100.0 + np.cumsum(np.array(durations, np.float64))
    whole = {
        name: np.full(len(ends), np.nan)
        for name in (
            "samples", "tokens", "micro", "wait_s", "copy_s", "forward_s", "backward_s", "all_reduce_s", "optimizer_s",
            "sync_s",
        )
    }  # fmt: skip
    whole["micro"] = np.ones(len(ends))
    joined = {name: columns.pop(name) for name in list(columns) if name in ("session_starts", "session_start_s")}
    whole.update({name: np.broadcast_to(np.asarray(v, np.float64), ends.shape).copy() for name, v in columns.items()})
    return Series(rank=rank, start_s=100.0, end_s=ends, **whole, **joined)  # type: ignore[arg-type]


def marks(*of: Series, phases: Iterable[Phase] = (), events: Iterable[dict[str, object]] = ()) -> Marks:
    return Marks(series=of, phases=tuple(phases), events=tuple(events))


def paced(*args: object, **kwargs: object) -> Pace:
    found = pace(marks(*args, **kwargs))  # type: ignore[arg-type]
    assert found is not None
    return found


def ns(second: float) -> int:
    return round(second * 1e9)


COMPILED = [51.0, 0.9, 0.31] + [0.30] * 497


def test_uc_001_launches_that_nobody_waited_for_give_no_forecast():
    timing = {"event": "timing", "t": ns(100), "rank": 0, "clock": "launch"}
    launched = marks(series([0.00003] * 100, samples=32, tokens=64), events=[timing])
    found = pace(launched)
    assert found is not None
    assert "launch time only" in found.reasons["step_s"]
    assert (found.samples_per_s, found.tokens_per_s) == (None, None)
    assert found.reasons["samples_per_s"] == found.reasons["tokens_per_s"] == found.reasons["step_s"]
    assert stages(launched, found).launch_only
    assert not precise_enough(found)
    with pytest.raises(MeasurementFailed, match="launch time only"):
        forecast(found, steps=1000)


def test_uc_003_the_start_is_listed_once_and_the_steady_step_is_untouched_by_it():
    compile_ = Phase(rank=0, name="compile", begin_s=90.0, end_s=92.45)
    found = paced(series(COMPILED), phases=[compile_])
    assert found.step_s.value == pytest.approx(0.30, rel=0.01)
    assert found.start_s == pytest.approx(51.3 + 2.45, rel=0.01)
    assert found.recompiles == 0
    once, twice = (forecast(found, steps=n) for n in (1000, 2000))
    assert once.start_s == twice.start_s
    assert twice.train_s.value == pytest.approx(600, rel=0.01)


def test_uc_003_ten_steps_are_never_quoted_as_their_mean():
    found = paced(series(COMPILED[:10]))
    assert found.step_s.value == pytest.approx(0.30, rel=0.01)
    assert found.step_s.high > 1.1 * found.step_s.value
    assert not precise_enough(found)
    nine = marks(series(COMPILED[:9]))
    assert pace(nine) is None
    assert why_none(nine) == "too few steps: 9 were done, 7 after warm-up, at least 8 are needed"


def test_steps_that_are_missing_for_another_reason_than_warm_up_are_told_with_it():
    """Eight steps after warm-up, but one of them took 20 s: seven are left."""
    long = marks(series([5.0, *[0.3] * 4, 20.0, *[0.3] * 3]))
    assert pace(long) is None
    assert why_none(long) == "too few steps: 8 after warm-up less 1 very long are 7, at least 8 are needed"


def test_uc_004_recompiles_are_told_and_neither_dropped_nor_spread():
    steps = [0.30] * 300
    for place in (40, 95, 210):
        steps[place] = 38.0
    ends = 100 + np.cumsum(steps)
    shapes = [{"event": "shape", "t": ns(ends[p] - 20), "rank": 0, "shape": [8, 3, p, p]} for p in (40, 95, 210)]
    found = paced(series(steps), events=shapes)
    assert found.recompiles == 3
    assert found.recompile_s == pytest.approx(113, rel=0.01)
    assert found.recompile_s / found.window_s == pytest.approx(0.56, rel=0.01)
    assert found.step_s.value == pytest.approx(0.30, rel=0.01)
    assert found.reasons["recompiles"] == "3 of 3 came with a new input shape"
    later = forecast(found, steps=3000)
    assert later.recompile_s == found.recompile_s
    assert "how often they come again is not known" in str(later.notes[0])


def test_a_pause_for_data_at_each_epoch_is_not_called_a_recompile():
    steps, waits = [0.30] * 300, np.zeros(300)
    for place in (100, 200):
        steps[place], waits[place] = 5.0, 4.7
    found = paced(series(steps, wait_s=waits))
    assert found.recompiles == 0
    assert found.step_s.value == pytest.approx(0.30 + 2 * 4.7 / 299, rel=0.01)


def test_uc_005_a_session_counts_its_own_tokens_only():
    log = [(10.0, 1e6), (9e4, 900e6), (100.0, 901e6), (10_000.0, 1000e6)]
    first, second = sessions(log)
    assert second.per_s == pytest.approx(10_000, rel=0.01)
    assert first.per_s == pytest.approx(10_000, rel=0.01)


def test_uc_005_a_resumed_run_has_a_warm_up_of_its_own_and_no_gap_between_sessions():
    ends = [5.0, *[0.2] * 99, 3600.0 + 7.0, *[0.2] * 99]
    resumed = series(ends, tokens=2000, session_starts=(0, 100), session_start_s=(100.0, 100 + 5 + 99 * 0.2 + 3600))
    found = paced(resumed)
    assert found.step_s.value == pytest.approx(0.2, rel=0.01)
    assert found.tokens_per_s == pytest.approx(10_000, rel=0.01)
    assert found.start_s == pytest.approx(6.8, rel=0.01)
    assert found.warm_up == 2
    part = steady(marks(resumed))
    assert part is not None
    assert part.window == (pytest.approx(3731.8), pytest.approx(3751.6)), "of the last session, without the pause"


@pytest.mark.parametrize("order", ["before the mark", "after the mark"])
def test_uc_006_validation_is_told_apart_in_both_orders_of_handlers(order):
    steps = np.full(2000, 0.30)
    last = [499, 999, 1499]
    steps[last if order == "before the mark" else [p + 1 for p in last]] += 120
    one = series(list(steps))
    ends = one.end_s[last]
    begins = ends - 120 if order == "before the mark" else ends
    phases = [Phase(rank=0, name="validation", begin_s=b, end_s=b + 120) for b in begins]
    found = paced(one, phases=phases)
    assert found.step_s.value == pytest.approx(0.30, rel=0.01)
    assert (found.validation_s, found.recompiles) == (pytest.approx(120), 0)
    assert found.validation_every == pytest.approx(500, rel=0.01)
    told = forecast(found, steps=5000)
    assert told.train_s.value == pytest.approx(1500, rel=0.01)
    assert told.validation_s == pytest.approx(1200, rel=0.11)
    assert told.total_s.value == pytest.approx(told.train_s.value + told.validation_s + told.start_s)


def test_uc_007_micro_batches_and_optimizer_steps_of_an_epoch():
    found = paced(series([2.0] * 100, samples=8, micro=4))
    epoch = forecast(found, samples=8000)
    assert (epoch.steps, epoch.micro_batches) == (1000, 4000)
    assert epoch.train_s.value == pytest.approx(2000, rel=0.01)


def test_uc_008_tokens_are_those_of_the_whole_optimizer_step():
    assert paced(series([4.0] * 50, tokens=4 * 2048 * 8, micro=8)).tokens_per_s == pytest.approx(16_384, rel=0.01)


def test_uc_009_eight_ranks_are_one_job():
    found = paced(*(series([0.4] * 100, rank=n, samples=32) for n in range(8)))
    each = per_accelerator(found, Setup(workload="w", processes=8))
    epoch = forecast(found, samples=64_000)
    assert found.samples_per_s is not None
    assert each is not None
    assert found.samples_per_s.value == pytest.approx(640, rel=0.01)
    assert each.value == pytest.approx(80, rel=0.01)
    assert epoch.steps == 250
    assert epoch.train_s.value == pytest.approx(100, rel=0.01)


def test_uc_015_bursts_count_with_their_mean_and_the_period_is_told():
    found = paced(series([0.1, 0.1, 0.1, 1.7] * 25))
    assert found.step_s.value == pytest.approx(0.5, rel=0.01)
    assert found.median_s == pytest.approx(0.1)
    assert found.period == 4
    assert found.recompiles == 0
    assert forecast(found, steps=100).train_s.value == pytest.approx(50, rel=0.01)


@pytest.mark.parametrize("workers", [2, 3, 4, 8, 16])
def test_bursts_with_noise_have_the_period_of_the_workers(workers):
    rng = np.random.default_rng(workers)
    steps = np.tile([0.1] * (workers - 1) + [0.1 + 0.4 * workers], 200 // workers)
    found = paced(series(list(steps * rng.lognormal(0, 0.1, len(steps)))))
    assert found.period == workers


def test_uc_017_the_later_level_counts_when_the_second_epoch_is_slower():
    samples = 42
    found = paced(series([samples / 420] * 2400 + [samples / 73] * 300, samples=samples))
    assert found.samples_per_s is not None
    assert found.samples_per_s.value == pytest.approx(73, rel=0.01)
    assert found.shift is not None
    assert found.shift.at == pytest.approx(2400, abs=2)
    assert found.shift.before_s == pytest.approx(0.1, rel=0.01)
    assert "the later level counts" in found.reasons["shift"]
    assert "changed at step" in str(forecast(found, steps=10).notes[0])


def test_uc_024_a_card_that_slows_down_after_an_hour_is_fast_for_an_hour_only():
    found = paced(series([1 / 6] * 21_600 + [1 / 5] * 9_000))
    assert found.shift is not None
    assert forecast(found, steps=216_000, starts=0).total_s.value / 3600 == pytest.approx(11.8, rel=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_even_noise_is_no_change_of_level(seed):
    rng = np.random.default_rng(seed)
    noise = np.zeros(600)
    for n in range(1, 600):
        noise[n] = 0.8 * noise[n - 1] + rng.normal(0, 0.03)
    found = levels.change(0.1 * np.exp(noise))
    assert found is None or found.settling


def test_a_queue_filled_before_the_first_step_is_warm_up_and_no_change_of_speed():
    found = paced(series([0.1] * 16 + [0.4] * 184))
    assert found.shift is None
    assert found.warm_up == pytest.approx(16, abs=1)
    assert found.step_s.value == pytest.approx(0.4, rel=0.01)


def test_uc_036_a_cache_shortens_the_start_and_every_start_without_it_is_charged():
    found = paced(series([1600.0] + [0.2] * 300))
    assert forecast(found, steps=2000).total_s.value == pytest.approx(2000, rel=0.01)
    assert forecast(found, steps=2000, start_s=120).total_s.value == pytest.approx(520, rel=0.01)
    assert forecast(found, steps=2000, starts=3).start_s == pytest.approx(3 * 1600, rel=0.01)


def test_uc_038_the_straggler_is_the_rank_with_the_longest_own_work():
    four = [series([0.18] * 50, rank=n, all_reduce_s=0.08 if n < 3 else 0.0) for n in range(4)]
    found = straggler(ranks(marks(*four)))
    assert found is not None
    slow, efficiency = found
    assert slow.rank == 3
    assert efficiency == pytest.approx(100 / 180, rel=0.01)


def test_one_rank_has_no_straggler():
    assert straggler(ranks(marks(series([0.1] * 50, all_reduce_s=0.0)))) is None


def test_stages_are_means_of_the_steady_part_and_the_rest_is_what_they_leave():
    wait = np.full(100, 0.010)
    wait[0] = 5.0
    one = series([5.1] + [0.1] * 99, wait_s=wait, forward_s=0.02, backward_s=0.03, optimizer_s=0.01)
    found = pace(marks(one))
    assert found is not None
    of = stages(marks(one), found)
    assert (of.wait_s, of.forward_s, of.optimizer_s) == (pytest.approx(0.01), pytest.approx(0.02), pytest.approx(0.01))
    assert of.rest_s == pytest.approx(0.03, rel=0.01)
    assert of.copy_s is None
    assert of.reasons["copy_s"] == "not seen in the marks"
    assert not of.launch_only


def test_stages_by_device_events_leave_the_hosts_wait_out_of_the_sum():
    events = [
        {"event": "timing", "t": ns(100), "rank": 0, "clock": "device"},
        {"event": "syncs", "t": ns(104), "rank": 0, "count": 100, "steps": 50},
        {"event": "launches", "t": ns(101), "rank": 0, "operations": 480},
    ]
    one = marks(series([0.1] * 50, forward_s=0.03, backward_s=0.06, sync_s=0.09), events=events)
    found = pace(one)
    assert found is not None
    of = stages(one, found)
    assert not of.launch_only
    assert of.rest_s == pytest.approx(0.01)
    assert (of.syncs, of.operations) == (2.0, 480)
    assert "rest_s" not in of.reasons


def test_stages_by_the_hosts_clock_have_its_waits_in_their_sum():
    """The same stages as above, but the wait for the device is a part of the host's step."""
    told = {"event": "timing", "t": ns(100), "rank": 0, "clock": "host"}
    one = marks(series([0.1] * 50, forward_s=0.02, backward_s=0.03, sync_s=0.04), events=[told])
    found = pace(one)
    assert found is not None
    of = stages(one, found)
    assert not of.launch_only
    assert of.rest_s == pytest.approx(0.01)
    assert "step_s" not in found.reasons


def test_waits_that_the_program_asked_for_are_counted_a_step():
    sync = np.zeros(100)
    sync[::4] = 0.006
    one = marks(series([0.010] * 100, sync_s=sync))
    found = pace(one)
    assert found is not None
    of = stages(one, found)
    assert of.syncs == pytest.approx(0.25, abs=0.01)
    assert of.sync_s == pytest.approx(0.0015, rel=0.05)


def test_no_steps_give_no_pace_and_a_reason():
    assert pace(marks()) is None
    assert why_none(marks()) == "no step was marked"
    assert ranks(marks()) == ()
    assert steady(marks()) is None


def test_samples_that_the_marks_do_not_count_are_those_that_the_person_states():
    silent, counted = marks(series([0.1] * 50)), marks(series([0.1] * 50, samples=4))
    stated = pace(silent, samples_per_step=256)
    assert stated is not None
    assert stated.samples_per_s is not None
    assert stated.samples_per_s.value == pytest.approx(2560, rel=0.01)
    assert stated.samples_per_step == 256
    assert "samples_per_s" not in stated.reasons
    seen = pace(counted, samples_per_step=256)
    assert seen is not None
    assert seen.samples_per_step == 4


def test_samples_of_a_rank_that_does_not_count_them_are_unknown_not_zero():
    found = paced(series([0.1] * 50, samples=4), series([0.1] * 50, rank=1))
    assert found.samples_per_s is None
    assert found.reasons["samples_per_s"] == "the marks do not count them"


def test_a_long_run_is_shown_in_at_most_500_points():
    found = paced(series([0.1] * 10_001))
    assert len(found.shown_s) <= 500
    assert found.shown_every == 20


def test_student_equals_the_printed_tables():
    assert student(0.8, 1) == pytest.approx(3.078, rel=1e-3)
    assert student(0.8, 2) == pytest.approx(1.886, rel=1e-3)
    assert student(0.95, 3) == pytest.approx(3.182, rel=0.01)
    assert student(0.95, 10) == pytest.approx(2.228, rel=1e-3)
    assert student(0.95, 1.5) < student(0.95, 1)
    with pytest.raises(ValueError, match="at least 1"):
        student(0.8, 0.5)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_interval_of_the_mean_holds_the_truth_as_often_as_it_says(correlation):
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        noise = np.zeros(1000)
        for n, shock in enumerate(rng.normal(0, 0.01, 1000)):
            noise[n] = correlation * noise[n - 1] + shock
        found = mean_interval(1.0 + noise)
        held += found.low <= 1.0 <= found.high
    assert held / 400 >= 0.74


def test_a_run_is_precise_once_its_interval_is_narrow_and_its_level_holds():
    assert precise_enough(paced(series([0.1] * 100)))
    assert not precise_enough(paced(series([0.1] * 20)))
    assert not precise_enough(paced(series([0.1] * 200 + [0.2] * 100)))
    assert not precise_enough(None)
