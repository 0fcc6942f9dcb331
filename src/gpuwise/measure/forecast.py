"""From the pace of a run to the time of a longer one, line by line; and the speed of sessions in another tool's log.

Training, validation and the start are lines of their own; each start without a compile cache is charged again. A change
of level seen in the run is replayed: a card that slows down after an hour is fast for an hour only.
Test values: 6.0 steps/s for an hour, then 5.0: 216,000 steps take 11.8 h; 2,000 steps of 0.2 s after 1,600 s of
compiling take 2,000 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwise.errors import MeasurementFailed, Message
from gpuwise.estimate import Interval
from gpuwise.measure.record import Pace, Setup
from gpuwise.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """steps: of the optimizer; micro_batches: backward passes of one process. recompile_s: as often as they were seen,
    not multiplied: nobody knows how many shapes are still to come. notes: what the forecast rests on."""

    steps: float
    micro_batches: float
    train_s: Interval
    start_s: Seconds
    recompile_s: Seconds
    validation_s: Seconds | None
    total_s: Interval
    notes: tuple[Message, ...] = ()


def forecast(
    pace: Pace,
    *,
    steps: float | None = None,
    samples: float | None = None,
    starts: int = 1,
    validations: float | None = None,
    start_s: Seconds | None = None,
) -> Forecast:
    """Time of `steps` optimizer steps, or of as many as `samples` need.

    starts: sessions that begin without a compile cache. validations: None: as often as in the run. start_s: of one
    start, where it is known to differ (a cache). MeasurementFailed where the pace is launch time only, or where samples
    are given and none were counted.
    """
    if "step_s" in pace.reasons:
        raise MeasurementFailed(
            Message("Nothing can be forecast: {reason}.", reason=pace.reasons["step_s"]),
            Message("Measure again with device events, or with one wait for the device at each end."),
        )
    count = steps if steps is not None else _steps(pace, samples)
    train = _train(pace, count)
    times = validations if validations is not None else count // pace.validation_every if pace.validation_every else 0.0
    validation = None if pace.validation_s is None else pace.validation_s * times
    start = starts * (pace.start_s if start_s is None else start_s)
    fixed = start + pace.recompile_s + (validation or 0.0)
    return Forecast(
        steps=count,
        micro_batches=count * pace.micro_batches,
        train_s=train,
        start_s=start,
        recompile_s=pace.recompile_s,
        validation_s=validation,
        total_s=Interval(value=train.value + fixed, low=train.low + fixed, high=train.high + fixed),
        notes=tuple(_notes(pace)),
    )


def _steps(pace: Pace, samples: float | None) -> float:
    if samples is None or not pace.samples_per_step:
        raise MeasurementFailed(
            Message("The number of steps is not known: the run did not count samples."), Message("Give the steps.")
        )
    return samples / pace.samples_per_step


def _train(pace: Pace, steps: float) -> Interval:
    if pace.shift is None:
        return _times(pace.step_s, steps)
    before = min(steps, pace.shift.at)
    early, late = before * pace.shift.before_s, _times(pace.step_s, steps - before)
    return Interval(value=early + late.value, low=early + late.low, high=early + late.high)


def _times(step_s: Interval, steps: float) -> Interval:
    return Interval(value=steps * step_s.value, low=steps * step_s.low, high=steps * step_s.high)


def _notes(pace: Pace) -> list[Message]:
    notes = []
    if pace.shift is not None:
        notes.append(
            Message(
                "The speed changed at step {at}, from {before:.3g} to {after:.3g} s a step: "
                "from there on the later level counts.",
                at=pace.shift.at,
                before=pace.shift.before_s,
                after=pace.shift.after_s,
            )
        )
    if pace.recompiles:
        notes.append(
            Message(
                "{count} very long steps ({time:.0f} s) are counted once: how often they come again is not known.",
                count=pace.recompiles,
                time=pace.recompile_s,
            )
        )
    return notes


def per_accelerator(pace: Pace, setup: Setup) -> Interval | None:
    """samples/s of one process of the job."""
    rate = pace.samples_per_s
    if rate is None:
        return None
    n = max(setup.processes, 1)
    return Interval(value=rate.value / n, low=rate.low / n, high=rate.high / n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session of a log: how long it ran and what it counted itself."""

    duration_s: Seconds
    counted: float

    @property
    def per_s(self) -> float | None:
        return self.counted / self.duration_s if self.duration_s > 0 else None


def sessions(lines: Sequence[tuple[Seconds, float]]) -> tuple[Session, ...]:
    """A log's lines (run time, counter) split where it was started again: the run time or the counter falls back.

    A counter that goes on from an earlier session counts from where it stood, or from what a checkpoint held.
    Test value: 900 M tokens, then 1,000 M after another 10,000 s → 10,000 tokens/s in the second session."""
    found: list[Session] = []
    origin = (0.0, 0.0)
    previous: tuple[Seconds, float] | None = None
    for time, counter in lines:
        if previous is not None and (time < previous[0] or counter < previous[1]):
            found.append(_session(origin, previous))
            origin = (0.0 if time < previous[0] else time, min(previous[1], counter))
        previous = (time, counter)
    return (*found, _session(origin, previous)) if previous is not None else ()


def _session(begin: tuple[Seconds, float], end: tuple[Seconds, float]) -> Session:
    return Session(duration_s=end[0] - begin[0], counted=end[1] - begin[1])
