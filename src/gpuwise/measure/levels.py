"""What the durations of steps look like: where warm-up ends, rare very long steps, bursts, changes of level.

Arrays of seconds in, indices out. Each rule is stated where it is applied; none drops a step silently.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwise.units import Seconds

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SLOW_START = 1.5
CALM_STEPS = 3
LONG, LONG_BY_S, RARE = 10.0, 1.0, 0.02
NEW_SHAPE_LONG = 3.0
EVEN = 0.15
LONGEST_PERIOD, REPEATS, ALIKE = 64, 4, 0.5
UNEVEN = 0.3
BLOCKS, LEAST_BLOCKS, SHIFT_T, SHIFT_RATIO = 60, 10, 6.0, 1.1
SETTLING_SHARE, SETTLING_S = 0.2, 60.0


def warm_up(durations: Floats) -> int:
    """Steps at the start that do not count: warm-up ends before the first 3 steps in a row that are no longer than 1.5
    times the 95th percentile of the later half. The first step, which holds what is prepared late, never counts.
    Test value: 51.0, 0.9, 0.31, 0.30, 0.30 … → 2."""
    n = len(durations)
    if n < 2:
        return n
    calm = durations <= SLOW_START * np.quantile(durations[n // 2 :], 0.95)
    run = np.convolve(calm, np.ones(CALM_STEPS), "valid") if n >= CALM_STEPS else np.zeros(0)
    found = np.flatnonzero(run == CALM_STEPS)
    return max(1, int(found[0])) if len(found) else n


def very_long(durations: Floats, waits: Floats, new_shape: Mask) -> Mask:
    """Rare, very long steps: longer than 10 medians and by more than 1 s (3 medians at a new input shape), at most one
    in 50, not evenly spaced, and not spent waiting for data; evenly spaced ones recur and belong to the mean."""
    median = float(np.median(durations))
    long = (durations > LONG * median) & (durations > median + LONG_BY_S)
    long |= new_shape & (durations > NEW_SHAPE_LONG * median)
    long &= ~(np.nan_to_num(waits) > 0.5 * durations)
    places = np.flatnonzero(long)
    if len(places) > max(1, RARE * len(durations)) and not new_shape[places].all():
        return np.zeros_like(long)
    return np.zeros_like(long) if _evenly_spaced(places) and not new_shape[places].any() else long


def _evenly_spaced(places: NDArray[np.intp]) -> bool:
    gaps = np.diff(places)
    return len(gaps) >= 2 and float(gaps.std()) < EVEN * float(gaps.mean())


def period(durations: Floats) -> int | None:
    """Steps after which a burst repeats: the shortest lag of 2 to 64 whose autocorrelation is near the greatest and at
    least 0.5, seen 4 times or more; None where steps are even. Test value: 0.1, 0.1, 0.1, 1.7 … → 4."""
    n, mean = len(durations), float(durations.mean())
    longest = min(LONGEST_PERIOD, n // REPEATS)
    if longest < 2 or float(durations.std()) < UNEVEN * mean:
        return None
    centred = durations - mean
    whole = float(centred @ centred) / n
    alike = np.array([float(centred[lag:] @ centred[:-lag]) / (n - lag) / whole for lag in range(2, longest + 1)])
    best = float(alike.max())
    if best < ALIKE or float(centred[1:] @ centred[:-1]) / (n - 1) / whole > 0.9 * best:
        return None  # the next step is as much alike: a slow change, not a burst
    return 2 + int(np.flatnonzero(alike >= 0.85 * best)[0])


class Change(NamedTuple):
    """Steps before `at` had another mean. settling: so early and short that it is part of warm-up."""

    at: int
    before_s: Seconds
    after_s: Seconds
    settling: bool


def change(durations: Floats) -> Change | None:
    """The last change of level by at least 10 %: logarithms of the means of up to 60 blocks, parted where Student's t
    is greatest, if that is at least 6 (noise that is alike from block to block stays below).

    Test values: 2,400 steps of 0.1 s, then 300 of 0.575 s → at 2400; 6.0 steps/s for an hour, then 5.0 → at 21600."""
    at = 0
    while (found := _part(durations[at:])) is not None:
        at += found
    if not at:
        return None
    before, after = float(durations[:at].mean()), float(durations[at:].mean())
    early = at < SETTLING_SHARE * len(durations) and float(durations[:at].sum()) < SETTLING_S
    return Change(at, before, after, early)


def _part(durations: Floats) -> int | None:
    blocks = min(BLOCKS, len(durations) // 4)
    if blocks < LEAST_BLOCKS:
        return None
    length = len(durations) // blocks
    logs = np.log(np.maximum(durations[: blocks * length].reshape(blocks, length).mean(axis=1), 1e-12))
    place, t, ratio = _greatest_t(logs)
    if t < SHIFT_T or ratio < SHIFT_RATIO:
        return None
    return _exact_place(durations, place * length, length)


def _greatest_t(logs: Floats) -> tuple[int, float, float]:
    """Block at which both sides differ most, Student's t there, and the ratio of both levels; 3 blocks a side."""
    n = len(logs)
    places = np.arange(3, n - 2)
    sums, squares = np.cumsum(logs), np.cumsum(logs**2)
    left, right = sums[places - 1], sums[-1] - sums[places - 1]
    means = left / places, right / (n - places)
    within = squares[-1] - left * means[0] - right * means[1]
    error = np.sqrt(np.maximum(within, 1e-12) / (n - 2) * (1 / places + 1 / (n - places)))
    t = np.abs(means[0] - means[1]) / error
    best = int(t.argmax())
    return int(places[best]), float(t[best]), float(np.exp(abs(means[0][best] - means[1][best])))


def _exact_place(durations: Floats, near: int, length: int) -> int:
    """The step within a block of `near` that leaves the least squares on both sides."""
    low, high = near - length, min(near + length, len(durations) - 1)
    part = durations[max(0, low - length) : high + length]
    offset = max(0, low - length)
    places = np.arange(max(low, 1), high + 1) - offset
    sums = np.cumsum(part)
    left = sums[places - 1]
    gain = left**2 / places + (sums[-1] - left) ** 2 / (len(part) - places)
    return int(places[gain.argmax()]) + offset
