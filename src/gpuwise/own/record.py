"""A record of GPUs in use → level, growth, and how weeks scatter: what the future is drawn from.

Whole weeks, counted back from the end; their means wₖ > 0 are fitted by ln w = a + b·k (ordinary least squares). Growth
is e^(52.18 b) − 1 with the standard error of b. The ratios of all weeks to the fit, those without use too (0), are what
months are drawn from, in blocks (real demand of one hour resembles the hour before (0.96) far more than that of a week
before (0.18)); the level now is the fit at the last week times their mean, as the fit of logarithms is the middle week,
not the mean one. Fewer than LEAST_WEEKS weeks say nothing about growth.

Source: H. R. Künsch, Annals of Statistics 17 (1989) 1217 (blocks); least squares, G. A. F. Seber, A. J. Lee, Linear
Regression Analysis (2003) §6.1. Test values: weekly means 10·e^(0.01 k): growth e^(0.5218) − 1 = 68.5 % a year. Weeks
of 1 and 9 GPUs by turns: 5 GPUs, not 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.estimate import Z80
from gpuwise.own.demand import WEEKS_DRAWN, Shape, of_record
from gpuwise.units import (
    DAYS_PER_WEEK,
    HOURS_PER_MONTH,
    HOURS_PER_WEEK,
    HOURS_PER_YEAR,
    MEAN_DAYS_PER_YEAR,
    MONTHS_PER_YEAR,
    Hours,
)

Floats = NDArray[np.float64]
MEAN_WEEKS_PER_YEAR = MEAN_DAYS_PER_YEAR / DAYS_PER_WEEK
LEAST_WEEKS = 8
DIGITS = 9
"""Of a growth: less is rounding of the fit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """What a record says. gpu_h_per_month: level at its end, with its 80 % interval. growth_fraction_per_year: with
    low and high, None where the record is too short. shape: within a month, at the resolution of the record. weeks:
    ratios to the level's trend, 1 on average. idle_weeks: without any use, at its end. hours: length of the record."""

    gpu_h_per_month: float
    low_gpu_h_per_month: float
    high_gpu_h_per_month: float
    growth_fraction_per_year: float | None
    low_growth_fraction: float | None
    high_growth_fraction: float | None
    shape: Shape
    weeks: tuple[float, ...]
    idle_weeks: int
    hours: float


def fit(gpus: Floats, step_h: Hours = 1.0) -> Fitted:
    """The record of GPUs at equal steps, the last one last. InvalidInput for one without any GPU in use."""
    record = np.asarray(gpus, np.float64)
    shape, weekly = _within(record, step_h), _weekly(record, step_h)
    used = np.flatnonzero(weekly > 0)
    idle = len(weekly) - 1 - int(used[-1]) if len(used) else 0
    if len(used) < LEAST_WEEKS:
        return _short(record, weekly, idle, shape, len(record) * step_h)
    slope, slope_sd, at_start, scatter = _line(used.astype(float), np.log(weekly[used]))
    trend = np.exp(at_start + slope * np.arange(len(weekly)))
    ratios = weekly / trend
    level = float(trend[-1] * ratios.mean() * HOURS_PER_MONTH)
    level_sd = scatter / np.sqrt(len(used)) * 2  # at the end of a fitted line: twice that of its middle
    low, middle, high = (
        round(float(np.expm1(MEAN_WEEKS_PER_YEAR * (slope + sign * Z80 * slope_sd))), DIGITS) for sign in (-1, 0, 1)
    )
    return Fitted(
        gpu_h_per_month=level,
        low_gpu_h_per_month=level * float(np.exp(-Z80 * level_sd)),
        high_gpu_h_per_month=level * float(np.exp(Z80 * level_sd)),
        growth_fraction_per_year=middle,
        low_growth_fraction=low,
        high_growth_fraction=high,
        shape=shape,
        weeks=tuple(map(float, ratios / ratios.mean())),
        idle_weeks=idle,
        hours=len(record) * step_h,
    )


def going_on(seen: Fitted, horizon_months: int) -> tuple[float, float, float]:
    """Low, middle and high growth a year over the horizon, if the trend goes on for as long again as it was seen.

    Nothing doubles for ever. Test value: 100 % a year, seen for one year, over four: 2^(1/4) − 1 = 18.9 % a year.
    """
    ratio = min(seen.hours / HOURS_PER_YEAR / (horizon_months / MONTHS_PER_YEAR), 1.0)
    low, middle, high = (
        (1 + float(growth or 0.0)) ** ratio - 1
        for growth in (seen.low_growth_fraction, seen.growth_fraction_per_year, seen.high_growth_fraction)
    )
    return low, middle, high


def _within(gpus: Floats, step_h: Hours) -> Shape:
    """How demand varies within a month: each four weeks over their own mean, so that neither trend nor months count."""
    steps = round(WEEKS_DRAWN * HOURS_PER_WEEK / step_h)
    number = len(gpus) // steps
    if number == 0:
        return of_record(gpus)
    months = gpus[len(gpus) - number * steps :].reshape(number, steps)
    used = months[months.any(axis=1)]
    return of_record(used / used.mean(axis=1, keepdims=True)) if len(used) else of_record(gpus)


def _weekly(gpus: Floats, step_h: Hours) -> Floats:
    """Means of whole weeks, counted back from the end."""
    steps = round(HOURS_PER_WEEK / step_h)
    number = len(gpus) // steps
    return gpus[len(gpus) - number * steps :].reshape(number, steps).mean(axis=1) if number else np.zeros(0)


def _line(x: Floats, y: Floats) -> tuple[float, float, float, float]:
    """Slope, its standard error, the fit at x = 0, and the scatter around it."""
    across = x - x.mean()
    slope = float((across * (y - y.mean())).sum() / (across**2).sum())
    scatter = float(np.sqrt(((y - y.mean() - slope * across) ** 2).sum() / (len(x) - 2)))
    return slope, scatter / float(np.sqrt((across**2).sum())), float(y.mean() - slope * x.mean()), scatter


def _short(gpus: Floats, weekly: Floats, idle: int, shape: Shape, hours: float) -> Fitted:
    """Too few weeks for a trend: the mean of all, and what its weeks leave open."""
    level, several = float(gpus.mean() * HOURS_PER_MONTH), len(weekly) > 1 and weekly.any()
    spread = float(weekly.std() / weekly.mean() / np.sqrt(len(weekly))) if several else LEVEL_LOG_SD
    return Fitted(
        gpu_h_per_month=level,
        low_gpu_h_per_month=level * float(np.exp(-Z80 * spread)),
        high_gpu_h_per_month=level * float(np.exp(Z80 * spread)),
        growth_fraction_per_year=None,
        low_growth_fraction=None,
        high_growth_fraction=None,
        shape=shape,
        weeks=tuple(map(float, weekly / weekly.mean())) if several else (),
        idle_weeks=idle,
        hours=hours,
    )


LEVEL_LOG_SD = 0.5
"""How far one week may lie from the others: the scatter of recorded weeks of one team."""
