"""Step marks → how fast the steady part was, where its time went, and how the ranks compare.

A step is an optimizer step of the whole job; the rank with the longest steps gives its duration, all ranks together its
samples. Phases (validation, a checkpoint) are taken out of the step that they fall into, whichever side of the step's
mark they lie on. Events read here beside the marks of steps:

- phase: "validation" is told apart, "compile" adds to the start;
- shape: a new input shape, which makes a long step a recompile;
- timing {clock}: what stages are times of: "device" events, the "host" (also where nobody tells), or "launch", which
  says that nobody waited for the device, so that times of steps are no speed either;
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
LONGER: Fraction = 0.25
"""Of the step: less than that, and by chance one of several like ranks is that much longer than the others."""
OWN_WAIT: Fraction = 0.2
"""Of the others' wait, which a rank that they wait for may have itself."""
NANOSECOND = 1e-9
VALIDATION = ("validation", "validate", "val", "eval", "evaluation", "test")
LAUNCH_ONLY = "launch time only: nobody waited for the device"
STAGES = tuple(name for name in TIMES if name != "sync_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Which steps count. durations_s: of the n steps of the rank that gives the pace, phases taken out.

    counts: True for a step of the steady part. very_long: rare, very long ones after warm-up, which do not count. at:
    first step of the level that counts. window: of the steady part in the last session, on the clock of the marks.
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


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the steps of a rank are: masks of its n steps, and where the level that counts begins."""

    taken: Floats
    warm: Mask
    first: slice
    long: Mask
    change: levels.Change | None
    at: int
    counts: Mask


def _parted(marks: Marks, series: Series) -> _Parts | None:
    """None where too few steps are left after warm-up to tell anything of them."""
    taken = durations(marks, series)
    warm, first = _warm_ups(series, taken)
    late = ~warm
    if late.sum() < MINIMUM_STEPS:
        return None
    long = np.zeros_like(late)
    long[late] = levels.very_long(taken[late], series.wait_s[late], _new_shapes(marks, series)[late])
    calm = late & ~long
    change, at = _level(taken, calm)
    return _Parts(taken, warm, first, long, change, at, calm & (np.arange(len(taken)) >= at))


def steady(marks: Marks) -> Steady | None:
    """The steady part, None where fewer than 8 steps are left of it."""
    series = _leading(marks)
    part = _parted(marks, series) if series is not None else None
    if series is None or part is None or part.counts.sum() < MINIMUM_STEPS:
        return None
    taken, counts, early = part.taken, part.counts, np.arange(len(part.taken)) < part.at
    typical = float(np.median(taken[counts]))
    return Steady(
        rank=series.rank,
        durations_s=taken,
        counts=counts,
        very_long=part.long,
        warm_up=int((part.warm | (early & (part.change is None))).sum()),
        start_s=max(0.0, float(taken[part.first].sum()) - typical * len(taken[part.first])),
        at=part.at,
        change=part.change,
        period=levels.period(taken[counts]),
        window=_window(series, counts),
    )


def pace(marks: Marks, samples_per_step: float | None = None) -> Pace | None:
    """How fast the steady part was. None where it has fewer than 8 steps: `why_none` says so.

    samples_per_step: of the whole job, as a person states it, where the marks do not count them.
    """
    part = steady(marks)
    if part is None:
        return None
    of_step = part.durations_s[part.counts]
    step_s = mean_interval(of_step, part.period)
    amounts = _amounts(marks, part, samples_per_step)
    launched = _clock(marks) == "launch"
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
        samples_per_s=None if launched else _per_second(amounts.samples, step_s),
        tokens_per_s=None if launched or amounts.tokens is None else amounts.tokens / step_s.value,
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
        reasons=_reasons(marks, part, amounts),
    )


def why_none(marks: Marks) -> str:
    """Why `pace` gives nothing, in words for Record.reasons["pace"]."""
    series = _leading(marks)
    if series is None:
        return "no step was marked"
    part = _parted(marks, series)
    least = f"at least {MINIMUM_STEPS} are needed"
    if part is None:
        warm, _ = _warm_ups(series, durations(marks, series))
        return f"too few steps: {len(warm)} were done, {int((~warm).sum())} after warm-up, {least}"
    left, late = int(part.counts.sum()), int((~part.warm).sum())
    if part.at:
        return f"too few steps: the speed changed at step {part.at}, {left} were done at the later level, {least}"
    return f"too few steps: {late} after warm-up less {int(part.long.sum())} very long are {left}, {least}"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Longest:
    """The rank with the longest own work, the others' median of own work and of waiting for it. Seconds of a step."""

    rank: Rank
    own_s: Seconds
    wait_s: Seconds | None
    others_own_s: Seconds
    others_wait_s: Seconds | None

    @property
    def alone(self) -> bool:
        """The others wait and it does not: ranks that are alike wait alike, whichever of them chance makes the
        longest."""
        if self.wait_s is None or self.others_wait_s is None:
            return False
        return self.wait_s <= OWN_WAIT * self.others_wait_s

    @property
    def ahead(self) -> bool:
        """Its work exceeds the others' by more than chance makes of ranks that are alike."""
        step_s = self.rank.step_s or self.own_s + (self.wait_s or 0.0)
        return self.own_s - self.others_own_s >= LONGER * step_s


def longest(of: Iterable[Rank]) -> Longest | None:
    """The longest own work, not the longest wait, tells who is waited for. None with fewer than two ranks."""
    known = [(rank.compute_s, rank) for rank in of if rank.compute_s is not None]
    if len(known) < 2:
        return None
    own_s, slow = max(known, key=lambda pair: pair[0])
    others = [(own, rank.all_reduce_s) for own, rank in known if rank is not slow]
    waits = [wait for _, wait in others if wait is not None]
    return Longest(
        rank=slow,
        own_s=own_s,
        wait_s=slow.all_reduce_s,
        others_own_s=float(np.median([own for own, _ in others])),
        others_wait_s=float(np.median(waits)) if waits else None,
    )


def straggler(of: Iterable[Rank]) -> tuple[Rank, Fraction] | None:
    """The rank that the others wait for, and the efficiency: the median work of the others / its own. None where no
    rank is clearly slow: longer by a quarter of the step, and hardly waiting itself. 100, 100, 100, 180 ms → rank 3,
    0.56; two ranks that work 19 and 17 ms and wait 11 and 13 → None."""
    found = longest(of)
    if found is None or not (found.alone and found.ahead):
        return None
    return found.rank, found.others_own_s / found.own_s


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
    found = longest(ranks(marks))
    leading = cast(Series, _leading(marks))
    return leading if found is None else next(s for s in marks.series if s.rank == found.rank.rank)


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
    """From the first to the last step that counts of the last session: what was watched before it has another clock,
    and nothing ran in the pause."""
    first = series.session_starts[-1]
    begun = (series.session_start_s or (series.start_s,))[-1]
    places = first + np.flatnonzero(counts[first:])
    if not len(places):
        return begun, float(series.end_s[-1])
    return float(series.end_s[places[0] - 1]) if places[0] > first else begun, float(series.end_s[places[-1]])


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Of a mean steady step, all ranks together; None where a rank does not tell."""

    samples: float | None
    tokens: float | None
    micro: float


def _amounts(marks: Marks, part: Steady, stated: float | None) -> _Amounts:
    samples = [_mean(series.samples, part.counts) for series in marks.series]
    tokens = [_mean(series.tokens, part.counts) for series in marks.series]
    micro = [_mean(series.micro, part.counts) or 1.0 for series in marks.series]
    counted = _total(samples)
    return _Amounts(stated if counted is None else counted, _total(tokens), max(micro))


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
    return str(told[-1].get("clock")) if told else "host"


def _syncs(marks: Marks, column: Floats, counts: Mask) -> float | None:
    """Waits a step, as told; else the share of steps that had one."""
    for event in reversed(marks.told("syncs")):
        if event.get("steps"):
            return float(event["count"]) / float(event["steps"])
    n = min(len(column), len(counts))
    values = column[:n][counts[:n]]
    there = values[np.isfinite(values)]
    return float((there > 0).mean()) if len(there) else None


def _reasons(marks: Marks, part: Steady, amounts: _Amounts) -> dict[str, str]:
    said: dict[str, str] = {}
    if part.very_long.any():
        series = next(s for s in marks.series if s.rank == part.rank)
        known = int((_new_shapes(marks, series) & part.very_long).sum())
        said["recompiles"] = f"{known} of {int(part.very_long.sum())} came with a new input shape"
    if part.change is not None:
        said["shift"] = f"the speed changed at step {part.at}: the later level counts"
    if _clock(marks) == "launch":
        return said | dict.fromkeys(("step_s", "samples_per_s", "tokens_per_s"), LAUNCH_ONLY)
    return said | _missing(amounts)


def _missing(amounts: _Amounts) -> dict[str, str]:
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
