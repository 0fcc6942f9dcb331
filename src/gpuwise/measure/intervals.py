"""Intervals for means of few, dependent figures: Student's t and batch means.

Steps that follow one another are alike (a hot chip, a full queue), so the standard error of their mean is taken from
the means of batches of steps, about 20 of them (Law, Simulation Modeling and Analysis, 5th ed., §9.5.3), and is widened
by what correlation is left between batches.
Test values: t is 1.886 for 80 % and 2 degrees of freedom, 2.228 for 95 % and 10.
"""

from __future__ import annotations

from math import pi, sqrt, tan
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gpuwise.estimate import LEVEL, Interval
from gpuwise.units import Fraction

Floats = NDArray[np.float64]
BATCHES = 20


def student(level: Fraction, freedom: float) -> float:
    """Half-width of a two-sided t interval in standard errors. Exact for 1 and 2 degrees of freedom, from 3 on by the
    expansion in Abramowitz and Stegun 26.7.5 (0.7 % off at 3), between them by 1 / freedom. ValueError below 1."""
    if freedom < 1:
        raise ValueError(f"Student's t needs at least 1 degree of freedom, not {freedom:g}")
    if freedom >= 3:
        return _expanded(NormalDist().inv_cdf(0.5 + level / 2), freedom)
    low = int(freedom)
    below, above = _exact(level, low), _exact(level, low + 1)
    return above + (below - above) * (1 / freedom - 1 / (low + 1)) / (1 / low - 1 / (low + 1))


def _exact(level: Fraction, freedom: int) -> float:
    if freedom == 1:
        return tan(pi * level / 2)
    return level * sqrt(2 / (1 - level**2)) if freedom == 2 else student(level, 3.0)


def _expanded(z: float, n: float) -> float:
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def batch_means(values: Floats, period: int | None = None) -> Floats:
    """Means of batches that follow one another, each of whole periods; a rest at the beginning is left out."""
    whole = max(period or 1, 1)
    length = max(1, len(values) // BATCHES)
    length = -(-length // whole) * whole
    count = len(values) // length
    means: Floats = values[len(values) - count * length :].reshape(count, length).mean(axis=1)
    return means


def standard_error(values: Floats, period: int | None = None) -> tuple[float, int]:
    """Of the mean of dependent figures, with its degrees of freedom; (nan, 0) where there are fewer than 2 batches."""
    means = batch_means(values, period)
    if len(means) < 2:
        return float("nan"), 0
    error = float(means.std(ddof=1)) / sqrt(len(means))
    left = _correlation(means)
    return error * sqrt((1 + left) / (1 - left)), len(means) - 1


def mean_interval(values: Floats, period: int | None = None, level: Fraction = LEVEL) -> Interval:
    """Mean, of whole periods, with its interval. n figures cannot show what happens less than once in n: the half-width
    is at least value / n, and the value itself where there are fewer than 2 batches."""
    value = float(values[len(values) % (period or 1) :].mean())
    error, freedom = standard_error(values, period)
    half = student(level, freedom) * error if freedom else value
    half = max(half, abs(value) / len(values))
    return Interval(value=value, low=max(value - half, 0.0), high=value + half)


def _correlation(means: Floats) -> float:
    """Lag-1 correlation where it is positive and there are enough batches to see it, at most 0.8."""
    centred = means - means.mean()
    spread = float(centred @ centred)
    if len(means) < 8 or spread == 0:
        return 0.0
    return min(max(float(centred[1:] @ centred[:-1]) / spread, 0.0), 0.8)


__all__ = ["batch_means", "mean_interval", "standard_error", "student"]
