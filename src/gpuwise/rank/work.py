"""Training on each offer with its evaluations, checkpoints, and what interruptions cost; on columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.cost.spot import Held, Pool, held, young_interval_s
from gpuwise.rank.overheads import LOSSES, RESTART, WRITE, Overheads
from gpuwise.units import SECONDS_PER_HOUR

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

AS_THEY_FALL = "when spot machines are lost"
"""The error that is left where the rate of losses is known: one run has more of them than another."""
STRETCH = 0.05
"""Training time is made so much longer and shorter to see what interruptions make of it."""
LEAST_WORK_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """n offers, arrays of shape (n,). busy_s: training, evaluation, checkpoints, and what losses undo.

    parts: kind of a line -> seconds; together busy_s. losses: how many are expected. wait_s: for spot machines, NaN
    elsewhere and where availability is not known. power: d ln busy / d ln training time. spreads: error -> log sd of
    busy_s; wait_sd: log sd of the wait. every_s: training between two checkpoints, inf for none.
    """

    spot: Mask
    busy_s: Floats
    parts: Mapping[str, Floats]
    losses: Floats
    wait_s: Floats
    power: Floats
    spreads: Mapping[str, Floats]
    wait_sd: Floats
    every_s: Floats
    work_s: Floats

    @staticmethod
    def of(offers: Catalogue, over: Overheads, run_s: Floats, jobs: Floats) -> Work:
        """run_s: training of one job. jobs: so many of them one after another."""
        tries = _Tries.of(offers, over, run_s, run_s * (1 + over.evaluation_fraction) + over.final_s)
        one, last = tries.at().series(jobs), np.where(np.isfinite(tries.every_s), tries.write_s * jobs, 0.0)
        run_s, final_s, work_s = run_s * jobs, over.final_s * jobs, tries.work_s * jobs
        busy = one.busy_s + last
        errors = {name: tries.log_sd(name, sd) for name, sd in over.sds.items()}
        errors[LOSSES] = errors[LOSSES] * np.isnan(offers.losses_per_hour)
        with np.errstate(divide="ignore", invalid="ignore"):
            errors[AS_THEY_FALL] = _log_sd(one.busy_sd_s, one.busy_s)
            outages = _log_sd(np.sqrt(np.maximum(one.finish_sd_s**2 - one.busy_sd_s**2, 0.0)), one.wait_s)
            trained = np.nan_to_num(1 - (final_s + last) / busy, nan=1.0)
        return Work(
            spot=tries.spot,
            busy_s=busy,
            every_s=tries.every_s,
            work_s=work_s,
            parts={
                "compute": run_s,
                "evaluation": work_s - run_s,
                "checkpoints": one.checkpoints_s + last,
                "interruption": one.lost_s + one.restart_s,
            },
            losses=one.losses,
            wait_s=np.where(tries.spot, one.wait_s, np.nan),
            power=np.where(tries.spot, tries.log_sd("work", STRETCH) / STRETCH, trained),
            spreads={name: sd for name, sd in errors.items() if sd.any()},
            wait_sd=np.where(tries.spot, np.hypot(over.wait_log_sd, outages), 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tries:
    """The same work under one figure changed at a time."""

    spot: Mask
    work_s: Floats
    every_s: Floats
    write_s: Floats
    rate: Floats
    over: Overheads

    @staticmethod
    def of(offers: Catalogue, over: Overheads, run_s: Floats, work_s: Floats) -> _Tries:
        """A spot job writes checkpoints at Young's interval unless it is said how it does; any other only if said.

        A stated interval is of training: with evaluations between, as many checkpoints lie farther apart.
        """
        spot = offers.market.isin(("spot",))
        own = np.where(np.isnan(offers.losses_per_hour), over.losses.value, offers.losses_per_hour)
        rate = np.where(spot, own * offers.nodes, 0.0)
        write = np.where(spot | over.write_stated, over.write.value, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            young = young_interval_s(write, SECONDS_PER_HOUR / rate)
            stated = np.nan_to_num(work_s / run_s, nan=1.0) * (over.every_s or 0.0)
        every = np.where(spot, young, inf) if over.every_s is None else np.where(write > 0, stated, inf)
        return _Tries(spot=spot, work_s=work_s, every_s=every, write_s=write, rate=rate, over=over)

    def at(self, **factors: float) -> Held:
        """What the jobs take where one figure is so many times as large."""

        def times(name: str) -> float:
            return factors.get(name, 1.0)

        pool = Pool(
            losses_per_hour=self.rate * times(LOSSES),
            available_fraction=self.over.available.value if self.over.available else np.nan,
            dispersion=self.over.dispersion,
        )
        return held(
            np.maximum(self.work_s * times("work"), LEAST_WORK_S * np.isfinite(self.work_s)),
            pool,
            every_s=self.every_s,
            write_s=self.write_s * times(WRITE),
            restart_s=self.over.restart.value * times(RESTART),
        )

    def log_sd(self, name: str, sd: float) -> Floats:
        """Half the distance of ln busy between the figure so many sd above and below; 0 where nothing is ever lost."""
        if not sd or not self.spot.any():
            return np.zeros(len(self.spot))
        high, low = (self.at(**{name: float(np.exp(sign * sd))}).busy_s for sign in (1, -1))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.spot, np.nan_to_num(np.log(high / low) / 2), 0.0)


def _log_sd(sd: Floats, mean: Floats) -> Floats:
    """Log sd of the log-normal law of this mean and standard deviation: √ln(1 + cv²); 0 where there is neither."""
    cv = np.nan_to_num(sd / mean, posinf=0.0)
    return np.sqrt(np.log1p(cv**2))
