"""Step marks → how fast the steady part was, where its time went, and how the ranks compare.

A step is an optimizer step of the whole job; the rank with the longest steps gives its duration, all ranks together its
samples. Phases (validation, a checkpoint) are taken out of the step that they fall into, whichever side of the step's
mark they lie on. Events read here beside the marks of steps:

- phase: "validation" is told apart, "compile" adds to the start;
- shape: a new input shape, which makes a long step a recompile;
- devices {kind}: with "cuda" stages are by device events, with "cpu" by the host, else they are times of launching;
- timing {clock}: "device", "host" or "launch", where a writer knows better; "launch" says that nobody waited for the
  device, so that times of steps are no speed either;
- synced: the device had finished all it was given at `t`; between two of them even launch times become a speed;
- launches {operations}, syncs {count, steps}: operations of a step, and waits that the program asked for.

Test values: 51.0, 0.9, 0.31, 0.30 … s → 0.30 s a step, start 51.3 s; 0.1, 0.1, 0.1, 1.7 … → 0.5 s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from gpuwise.estimate import Interval
from gpuwise.measure import levels
from gpuwise.measure.intervals import mean_interval
from gpuwise.measure.levels import Floats, Mask
from gpuwise.measure.marks import TIMES, Marks, Phase, Series
from gpuwise.measure.record import Pace, Rank, Shift, Stages
from gpuwise.units import Fraction, Seconds

MINIMUM_STEPS = 8
"""Steady steps below which there is no pace: 10 steps with two of warm-up just pass, with a wide interval."""
SHOWN = 500
PRECISE: Fraction = 0.02
NANOSECOND = 1e-9
VALIDATION = ("validation", "validate", "val", "eval", "evaluation", "test")
LAUNCH_ONLY = "launch time only: nobody waited for the device"
STAGES = tuple(name for name in TIMES if name != "sync_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Which steps count. durations_s: of the n steps of the rank that gives the pace, phases taken out.

    counts: True for a step of the steady part. very_long: rare, very long ones after warm-up, which do not count. at:
    first step of the level that counts. window: of the steady part, on the clock of the marks.
    """

    rank: int
    durations_s: Floats
    counts: Mask
    very_long: Mask
    warm_up: int
    start_s: Seconds
    at: int
    change: levels.Change | None
    period: int | None
    window: tuple[Seconds, Seconds]


def steady(marks: Marks) -> Steady | None:
    """The steady part, None where fewer than 8 steps are left of it."""
    series = _leading(marks)
    if series is None:
        return None
    taken = durations(marks, series)
    warm, first = _warm_ups(series, taken)
    late = ~warm
    if late.sum() < MINIMUM_STEPS:
        return None
    long = np.zeros_like(late)
    long[late] = levels.very_long(taken[late], series.wait_s[late], _new_shapes(marks, series)[late])
    calm = late & ~long
    change, at = _level(taken, calm)
    counts = calm & (np.arange(len(taken)) >= at)
    if counts.sum() < MINIMUM_STEPS:
        return None
    typical = float(np.median(taken[counts]))
    return Steady(
        rank=series.rank,
        durations_s=taken,
        counts=counts,
        very_long=long,
        warm_up=int((warm | ((np.arange(len(taken)) < at) & (change is None))).sum()),
        start_s=max(0.0, float(taken[first].sum()) - typical * len(taken[first])),
        at=at,
        change=change,
        period=levels.period(taken[counts]),
        window=_window(series, counts),
    )


def pace(marks: Marks) -> Pace | None:
    """How fast the steady part was. None where it has fewer than 8 steps: `why_none` says so."""
    part = steady(marks)
    if part is None:
        return None
    of_step = part.durations_s[part.counts]
    step_s = _step(marks, part)
    amounts = _amounts(marks, part)
    shift = part.change and Shift(at=part.at, before_s=part.change.before_s, after_s=step_s.value)
    every_s, every = _validation(marks, part)
    shown, shown_every = _shown(part)
    return Pace(
        steps=len(part.durations_s),
        warm_up=part.warm_up,
        step_s=step_s,
        median_s=float(np.median(of_step)),
        minimum_s=float(of_step.min()),
        maximum_s=float(of_step.max()),
        samples_per_s=_per_second(amounts.samples, step_s),
        tokens_per_s=None if amounts.tokens is None else amounts.tokens / step_s.value,
        samples_per_step=amounts.samples,
        micro_batches=amounts.micro,
        start_s=part.start_s + _compiling_s(marks, part),
        recompiles=int(part.very_long.sum()),
        recompile_s=float((part.durations_s[part.very_long] - step_s.value).sum()),
        period=part.period,
        shift=shift,
        validation_s=every_s,
        validation_every=every,
        window_s=float(part.durations_s[part.at :][(part.counts | part.very_long)[part.at :]].sum()),
        shown_s=shown,
        shown_every=shown_every,
        reasons=_reasons(marks, part),
    )


def why_none(marks: Marks) -> str:
    """Why `pace` gives nothing, in words for Record.reasons["pace"]."""
    series = _leading(marks)
    if series is None:
        return "no step was marked"
    warm, _ = _warm_ups(series, durations(marks, series))
    left = int((~warm).sum())
    return f"too few steps: {len(warm)} were done, {left} after warm-up, at least {MINIMUM_STEPS} are needed"


def stages(marks: Marks, paced: Pace) -> Stages:
    """Mean seconds of a steady step by stage, of the rank with most work of its own."""
    part = steady(marks)
    if part is None:
        return Stages(reasons=dict.fromkeys(STAGES, "too few steps"))
    series = _slowest(marks)
    means = {name: _mean(getattr(series, name), part.counts) for name in TIMES}
    clock = _clock(marks)
    beside = ("sync_s",) if clock == "device" else ()  # the host's wait, while the device works
    seen = [value for name, value in means.items() if value is not None and name not in beside]
    rest = paced.step_s.value - sum(seen)
    said = {name: "not seen in the marks" for name, value in means.items() if value is None}
    if rest < -0.02 * paced.step_s.value:
        said["rest_s"] = f"stages overlap: together they are {-rest:.3g} s longer than the step"
    launches = marks.told("launches")
    return Stages(
        **cast(dict[str, Any], means),
        rest_s=max(rest, 0.0) if seen else None,
        syncs=_syncs(marks, series.sync_s, part.counts),
        operations=launches[-1].get("operations") if launches else None,
        launch_only=clock == "launch",
        reasons=said,
    )


def ranks(marks: Marks) -> tuple[Rank, ...]:
    """Each process in its steady part: its step less its wait in collectives is its own work."""
    part = steady(marks)
    counts = part.counts if part is not None else None
    return tuple(_rank(marks, series, counts) for series in marks.series)


def straggler(of: Iterable[Rank]) -> tuple[Rank, Fraction] | None:
    """The rank that the others wait for, and the efficiency: the median rank's own work / the straggler's. The longest
    own work, not the longest wait, tells it. None with fewer than two ranks. 100, 100, 100, 180 ms → rank 3, 0.56."""
    known = [(rank.compute_s, rank) for rank in of if rank.compute_s is not None]
    if len(known) < 2:
        return None
    longest, slow = max(known, key=lambda pair: pair[0])
    return slow, float(np.median([own for own, _ in known])) / longest


def precise_enough(paced: Pace | None, fraction: Fraction = PRECISE) -> bool:
    """The 80 % interval of the step is within ± fraction, and the level has not changed within the later half."""
    if paced is None or paced.step_s.value <= 0 or "step_s" in paced.reasons:
        return False
    if paced.shift is not None and paced.shift.at > paced.steps / 2:
        return False
    return paced.step_s.high - paced.step_s.low <= 2 * fraction * paced.step_s.value


def durations(marks: Marks, series: Series) -> Floats:
    """Seconds of each step of one rank, phases taken out. The first of a session counts from the session's start."""
    begins = np.concatenate(([series.start_s], series.end_s[:-1]))
    starts = [place for place in series.session_starts if place < len(begins)]
    begins[starts] = (series.session_start_s or (series.start_s,))[: len(starts)]
    taken = series.end_s - begins
    for begin, end in _merged(p for p in marks.phases if p.rank == series.rank):
        taken -= np.clip(np.minimum(series.end_s, end) - np.maximum(begins, begin), 0, None)
    return cast(Floats, np.maximum(taken, 0.0))


def _merged(phases: Iterable[Phase]) -> list[tuple[Seconds, Seconds]]:
    """Times of the phases without overlaps: a checkpoint within a validation is taken out once."""
    merged: list[tuple[Seconds, Seconds]] = []
    for begin, end in sorted((phase.begin_s, phase.end_s) for phase in phases):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _leading(marks: Marks) -> Series | None:
    """The rank whose steps took longest, of those with the most steps."""
    most = max((len(series.end_s) for series in marks.series), default=0)
    if not most:
        return None
    full = [series for series in marks.series if len(series.end_s) >= most - 1]
    return max(full, key=lambda series: float(np.median(durations(marks, series))))


def _slowest(marks: Marks) -> Series:
    found = straggler(ranks(marks))
    leading = cast(Series, _leading(marks))
    return leading if found is None else next(s for s in marks.series if s.rank == found[0].rank)


def _warm_ups(series: Series, taken: Floats) -> tuple[Mask, slice]:
    """Steps of warm-up, of every session; and those of the last session that was long enough to tell."""
    warm = np.zeros(len(taken), np.bool_)
    borders = [*series.session_starts, len(taken)]
    last = slice(0, 0)
    for begin, end in pairwise(borders):
        count = levels.warm_up(taken[begin:end])
        warm[begin : begin + count] = True
        if count < end - begin:
            last = slice(begin, begin + count)
    return warm, last


def _level(taken: Floats, calm: Mask) -> tuple[levels.Change | None, int]:
    """The change of level among calm steps, and the first step that counts, as an index of all steps."""
    found = levels.change(taken[calm])
    if found is None:
        return None, 0
    at = int(np.flatnonzero(calm)[found.at])
    return (None if found.settling else found), at


def _new_shapes(marks: Marks, series: Series) -> Mask:
    """Steps in which an input had a shape not seen before."""
    found = np.zeros(len(series.end_s), np.bool_)
    times = np.array([event["t"] * NANOSECOND for event in marks.told("shape") if event.get("rank") == series.rank])
    places = np.searchsorted(series.end_s, times)
    found[places[places < len(found)].astype(np.intp)] = True
    return found


def _window(series: Series, counts: Mask) -> tuple[Seconds, Seconds]:
    places = np.flatnonzero(counts)
    begin = series.end_s[places[0] - 1] if places[0] else series.start_s
    return float(begin), float(series.end_s[places[-1]])


def _step(marks: Marks, part: Steady) -> Interval:
    """The mean step: from waits for the device where the marks only show launches, else from the marks."""
    plain = mean_interval(part.durations_s[part.counts], part.period)
    synced = _synced(marks, part)
    if synced is None or synced <= plain.value:
        return plain
    return Interval(value=synced, low=synced * plain.low / plain.value, high=synced * plain.high / plain.value)


def _synced(marks: Marks, part: Steady) -> Seconds | None:
    """Mean step between the first and the last moment at which the device had finished all, if both are told."""
    times = [event["t"] * NANOSECOND for event in marks.told("synced") if event.get("rank", part.rank) == part.rank]
    if len(times) < 2:
        return None
    ends = next(series.end_s for series in marks.series if series.rank == part.rank)
    steps = int(((ends > times[0]) & (ends <= times[-1])).sum())
    away = sum(
        end - begin for begin, end in _merged(p for p in marks.phases if p.rank == part.rank and p.begin_s > times[0])
    )
    return (times[-1] - times[0] - away) / steps if steps >= MINIMUM_STEPS else None


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Of a mean steady step, all ranks together; None where a rank does not tell."""

    samples: float | None
    tokens: float | None
    micro: float


def _amounts(marks: Marks, part: Steady) -> _Amounts:
    samples = [_mean(series.samples, part.counts) for series in marks.series]
    tokens = [_mean(series.tokens, part.counts) for series in marks.series]
    micro = [_mean(series.micro, part.counts) or 1.0 for series in marks.series]
    return _Amounts(_total(samples), _total(tokens), max(micro))


def _total(values: list[float | None]) -> float | None:
    return None if None in values else sum(cast(list[float], values))


def _mean(column: Floats, counts: Mask) -> float | None:
    """Of the steady steps that have a figure; None where fewer than one in five has (hooks rest now and then)."""
    n = min(len(column), len(counts))
    values = column[:n][counts[:n]]
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) and 5 * len(there) >= len(values) else None


def _per_second(amount: float | None, step_s: Interval) -> Interval | None:
    if amount is None or step_s.low <= 0:
        return None
    return Interval(value=amount / step_s.value, low=amount / step_s.high, high=amount / step_s.low)


def _compiling_s(marks: Marks, part: Steady) -> Seconds:
    return sum(p.end_s - p.begin_s for p in marks.phases if p.rank == part.rank and p.name == "compile")


def _validation(marks: Marks, part: Steady) -> tuple[Seconds | None, float | None]:
    """Mean length of a validation, and training steps from one to the next; one before any step does not count."""
    ends = next(series.end_s for series in marks.series if series.rank == part.rank)
    phases = [p for p in marks.phases if p.rank == part.rank and p.name in VALIDATION]
    done = [int(np.searchsorted(ends, p.end_s)) for p in phases]
    counted = [(p, n) for p, n in zip(phases, done, strict=True) if n]
    if not counted:
        return None, None
    length = sum(p.end_s - p.begin_s for p, _ in counted) / len(counted)
    every = float(np.diff([n for _, n in counted]).mean()) if len(counted) > 1 else float(counted[0][1])
    return length, every or None


def _shown(part: Steady) -> tuple[tuple[float, ...], int]:
    """Step times after warm-up for a drawing, at most 500, each the mean of as many steps as needed."""
    late = part.durations_s[min(part.warm_up, len(part.durations_s)) :]
    every = -(-len(late) // SHOWN)
    whole = late[: len(late) // every * every].reshape(-1, every)
    return tuple(float(mean) for mean in whole.mean(axis=1)), every


def _clock(marks: Marks) -> str:
    """device, host or launch: what the times of stages are of."""
    told = marks.told("timing")
    if told:
        return str(told[-1].get("clock"))
    kinds = {str(event.get("kind", "cpu")) for event in marks.told("devices")}
    return "host" if kinds <= {"cpu"} else "device" if kinds <= {"cpu", "cuda"} else "launch"


def _syncs(marks: Marks, column: Floats, counts: Mask) -> float | None:
    """Waits a step, as told; else the share of steps that had one."""
    for event in reversed(marks.told("syncs")):
        if event.get("steps"):
            return float(event["count"]) / float(event["steps"])
    n = min(len(column), len(counts))
    values = column[:n][counts[:n]]
    there = values[np.isfinite(values)]
    return float((there > 0).mean()) if len(there) else None


def _reasons(marks: Marks, part: Steady) -> dict[str, str]:
    said: dict[str, str] = {}
    if marks.told("timing") and _clock(marks) == "launch" and _synced(marks, part) is None:
        said["step_s"] = LAUNCH_ONLY
    if part.very_long.any():
        series = next(s for s in marks.series if s.rank == part.rank)
        known = int((_new_shapes(marks, series) & part.very_long).sum())
        said["recompiles"] = f"{known} of {int(part.very_long.sum())} came with a new input shape"
    if part.change is not None:
        said["shift"] = f"the speed changed at step {part.at}: the later level counts"
    return said | _of_amounts(_amounts(marks, part))


def _of_amounts(amounts: _Amounts) -> dict[str, str]:
    missing = {"samples_per_s": amounts.samples, "tokens_per_s": amounts.tokens}
    return {name: "the marks do not count them" for name, value in missing.items() if value is None}


def _rank(marks: Marks, series: Series, counts: Mask | None) -> Rank:
    taken = durations(marks, series)
    mask = np.ones(len(taken), np.bool_) if counts is None else counts[: len(taken)]
    taken = taken[: len(mask)]
    step = float(taken[mask].mean()) if mask.any() else None
    reduce = _mean(series.all_reduce_s, mask)
    own = step - reduce if step is not None and reduce is not None else _own_stages(series, mask)
    return Rank(rank=series.rank, host=series.host, compute_s=own, all_reduce_s=reduce, step_s=step)


def _own_stages(series: Series, mask: Mask) -> Seconds | None:
    """Forward, backward and optimizer together, where all were seen."""
    parts = [_mean(getattr(series, name), mask) for name in ("forward_s", "backward_s", "optimizer_s")]
    return _total(parts)
