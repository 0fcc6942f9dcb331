"""A job on machines that are lost at random, for n offers at once: time on the bill, waiting, and the spread of both.

A stretch of L seconds must pass without a loss; λ losses come per second, x = λL, and a loss costs q ± √v on top of the
time it undoes. The failed tries are geometric with mean m = e^x − 1; what each undoes is a truncated exponential:

    mean     = L + lost + m·q                  lost = m/λ − L = λL²·(e^x − 1 − x)/x²
    variance = 2e^x(sinh x − x)/λ² + m·v + (m + 1)·(2q·lost + m·q²)

A restart is a stretch of R whose losses cost the wait for machines. Work until the next checkpoint is written is a
stretch of τ + C whose losses cost that wait and a restart. Without the wait the mean is e^(λR)·(e^(λ(τ+C)) − 1)/λ.
The last stretch writes no checkpoint. The first start is preparation, not a restart, and is billed elsewhere.

A pool that is there for a fraction a of the time is away for (1 − a)/a/λ on average, and a job that starts at any
moment finds it away with probability 1 − a. Losses come in clumps; how much is the pool's `dispersion`.

Source: J. T. Daly, Future Generation Computer Systems 22 (2006) 303, exact for exponential losses; the variance by the
law of total variance. Waiting and clumps: the long-run mean and variance of a renewal process, D. R. Cox, Renewal
Theory (1962).
Test values: 48 h at 0.15 losses/h take (e^7.2 − 1)/0.15 = 8,923 h in one stretch, 49.85 h by checkpoints that cost
nothing every 30 min; 100 h at 8 · 0.02 losses/h, by the hour, restart 20 min, take 114.4 h: 915 node-hours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.cost.billing import ROUNDING
from gpuwise.units import SECONDS_PER_HOUR

Floats = NDArray[np.float64]
Figures = Floats | float
"""One figure an offer, or one for all."""

LARGEST_EXPONENT = 100.0
"""λL counts no further: e^100 s is endless as it is, and its products stay finite."""
LONGEST_OUTAGE_S = 1e15
"""Stands for ever: 30 million years."""
CHANCE = 1.4
"""One half of the recordings needs 1.41 for intervals of 80 % to hold 80 % of its jobs, the other half 1.33; these then
hold 82 and 76 % of the half not used, and 1.4 holds 81 % of all. A general dispersion tells less of a pool than its own
record would."""
SHORTEST_INTERVAL_S = 1.0
"""Checkpoints are no closer than this, so that one that costs nothing has a finite count."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """Where n jobs get their machines, each figure of shape (n,) or one for all.

    losses_per_hour: of the whole job in an available hour: of a node × nodes, as one lost node stops all. 0: on demand.
    available_fraction: of the time in which all nodes can be had; NaN where not known.
    dispersion: variance over mean of the number of losses in a long time, without unit; 1 without memory, above it in
    clumps. Of a record: the squared coefficient of variation, mean of that of up-times and that of outages. 30 recorded
    pools (AWS, 2022 to 2023) have 1.2 to 15, mean 5.7.
    """

    losses_per_hour: Figures
    available_fraction: Figures = np.nan
    dispersion: Figures = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """What n jobs take on average, arrays of shape (n,); sd: standard deviation of one job.

    busy_s: on the bill: work, checkpoints_s, lost_s (work and checkpoints undone) and restart_s. losses: how many.
    wait_s: without machines, not billed, at the start (first_wait_s of it) and after losses; NaN where availability is
    not known, or where a pool has gaps but no known loss rate. finish_s: busy and waiting.
    """

    busy_s: Floats
    busy_sd_s: Floats
    checkpoints_s: Floats
    lost_s: Floats
    restart_s: Floats
    losses: Floats
    wait_s: Floats
    first_wait_s: Floats
    finish_sd_s: Floats

    @property
    def finish_s(self) -> Floats:
        return self.busy_s + self.wait_s

    def series(self, jobs: Figures) -> Held:
        """So many such jobs one after another on the same machines: a finished one is not lost, and one waits for the
        first machine once. Their times are taken as independent."""
        scaled = {
            name: getattr(self, name) * jobs for name in ("busy_s", "checkpoints_s", "lost_s", "restart_s", "losses")
        }
        return Held(
            **scaled,
            busy_sd_s=self.busy_sd_s * np.sqrt(jobs),
            wait_s=(self.wait_s - self.first_wait_s) * jobs + self.first_wait_s,
            first_wait_s=self.first_wait_s,
            finish_sd_s=self.finish_sd_s * np.sqrt(jobs),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Stretch:
    """Time until `length` without a loss has passed: mean = length + lost_s + costs_s, and variance."""

    lost_s: Floats
    costs_s: Floats
    variance_s2: Floats


def chance(mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
    """Log sd of one job's time around its median, and median / mean: √ln(1 + cv²) and e^(−that²/2) of a log-normal law.

    The log sd is taken CHANCE times as large: so 80 % intervals hold 81 % of the jobs replayed over recorded pools, of
    which only losses and availability are given. 0 and 1 where there is no chance.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        cv = np.nan_to_num(sd / mean, posinf=0.0)
    plain = np.sqrt(np.log1p(cv**2))
    return CHANCE * plain, np.exp(-(plain**2) / 2)


def young_interval_s(write_s: Figures, mean_time_between_losses_s: Figures) -> Floats:
    """Work between checkpoints that costs least, √(2·C·MTBF); inf (no checkpoint) where nothing is ever lost.

    Source: J. W. Young, CACM 17(9) (1974) 530, for C far below MTBF. Test value: 60 s, 10,800 s: 1,138.42 s.
    """
    write, between = np.broadcast_arrays(np.asarray(write_s, float), np.asarray(mean_time_between_losses_s, float))
    return np.where(np.isinf(between), np.inf, np.sqrt(2 * write * np.where(np.isinf(between), 0.0, between)))


def held(work_s: Figures, pool: Pool, *, every_s: Figures, write_s: Figures, restart_s: Figures) -> Held:
    """The job of `work_s` on the pool, a checkpoint of `write_s` after every `every_s` of work (inf: none).

    Never below the work; beyond all bounds it is very large, not inf. Means on the bill are exact for dispersion 1. For
    more they stay, and the variance is that times the dispersion D, its limit for long jobs. A start in an outage costs
    D mean outages: (1 + D)/2 until it ends, and (D − 1)/2 more losses later than a start at any moment has.
    """
    figures = (work_s, every_s, write_s, restart_s, pool.losses_per_hour, pool.available_fraction, pool.dispersion)
    work, every, write, restart, per_hour, available, dispersion = np.broadcast_arrays(
        *(np.asarray(figure, dtype=np.float64) for figure in figures)
    )
    rate = per_hour / SECONDS_PER_HOUR
    interval = np.minimum(np.maximum(every, SHORTEST_INTERVAL_S), np.maximum(work, SHORTEST_INTERVAL_S))
    count = np.maximum(np.ceil(work / interval * (1 - ROUNDING)) - 1, 0.0)
    parts = ((count, interval + write), (1.0, np.maximum(work - count * interval, 0.0)))
    outage = _outage_s(rate, available)
    busy, whole = _chain(parts, restart, rate, np.zeros_like(rate)), _chain(parts, restart, rate, outage)
    spent = work + count * write + busy.lost_s + busy.costs_s
    away, late = 1 - available, outage * dispersion
    return Held(
        busy_s=spent,
        busy_sd_s=np.sqrt(dispersion * busy.variance_s2),
        checkpoints_s=count * write,
        lost_s=busy.lost_s,
        restart_s=busy.costs_s,
        losses=rate * spent,
        wait_s=rate * spent * outage + away * late,
        first_wait_s=away * late,
        finish_sd_s=np.sqrt(dispersion * whole.variance_s2 + away * (1 + available) * late**2),
    )


def _outage_s(rate: Floats, available: Floats) -> Floats:
    """Mean time for which a pool is away: up + away = 1/(aλ), of which up is 1/λ. NaN: gaps, but no known loss."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.minimum((1 - available) / available / rate, LONGEST_OUTAGE_S)
    return np.where(available >= 1, 0.0, np.where(rate > 0, mean, np.nan))


def _chain(
    parts: tuple[tuple[Floats | float, Floats], ...], restart_s: Floats, rate: Floats, outage_s: Floats
) -> _Stretch:
    """All stretches of a job, (count, length), independent of one another; an outage is exponential."""
    again = _stretch(restart_s, rate, outage_s, outage_s**2)
    cost = outage_s + restart_s + again.lost_s + again.costs_s
    several = [(n, _stretch(length, rate, cost, outage_s**2 + again.variance_s2)) for n, length in parts]
    return _Stretch(
        lost_s=np.asarray(sum(n * s.lost_s for n, s in several)),
        costs_s=np.asarray(sum(n * s.costs_s for n, s in several)),
        variance_s2=np.asarray(sum(n * s.variance_s2 for n, s in several)),
    )


def _stretch(length_s: Floats, rate: Floats, cost_s: Floats, cost_variance_s2: Floats) -> _Stretch:
    """The formula at the top, written in x = λL so that λ = 0 divides nothing."""
    x = np.minimum(rate * length_s, LARGEST_EXPONENT)
    failed = np.expm1(x)
    lost = length_s * x * _second_order(x)
    shared = (failed + 1) * (2 * cost_s * lost + failed * cost_s**2)
    alone = length_s**2 * x * _third_order(x)
    return _Stretch(lost_s=lost, costs_s=failed * cost_s, variance_s2=alone + failed * cost_variance_s2 + shared)


def _second_order(x: Floats) -> Floats:
    """(e^x − 1 − x)/x², its series below 0.01. Test value: 1/2 at 0."""
    small, large = np.minimum(x, 0.01), np.maximum(x, 0.01)
    series = (1 + small / 3 * (1 + small / 4 * (1 + small / 5 * (1 + small / 6)))) / 2
    return np.where(x < 0.01, series, (np.expm1(large) - large) / large**2)


def _third_order(x: Floats) -> Floats:
    """2e^x(sinh x − x)/x³, its series below 0.1. Test value: 1/3 at 0."""
    small, large = np.minimum(x, 0.1), np.maximum(x, 0.1)
    series = (1 + small**2 / 20 * (1 + small**2 / 42 * (1 + small**2 / 72))) / 3
    return np.exp(x) * np.where(x < 0.1, series, 2 * (np.sinh(large) - large) / large**3)
