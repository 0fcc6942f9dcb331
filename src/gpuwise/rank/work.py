"""Training on each offer with its evaluations, checkpoints, and what interruptions cost; on columns.

Machines that are never lost take their work and the checkpoints that somebody asked for, and no more. Those that are
(`cost.spot`) write them at Young's interval unless it is said how, and lose and wait as their pool does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.cost.billing import ROUNDING
from gpuwise.cost.spot import Held, Pool, chance, held, young_interval_s
from gpuwise.rank.overheads import LOSSES, RESTART, WRITE, Overheads
from gpuwise.units import SECONDS_PER_HOUR

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

STRETCH = 0.05
"""Training time is made so much longer and shorter to see what interruptions make of it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """n offers, arrays of shape (n,), of all jobs that share a machine.

    work_s: training and evaluation alone; busy_s: with checkpoints and what losses undo. parts: kind of a line ->
    seconds; together busy_s. losses: how many are expected. wait_s: without machines, NaN where nobody says. every_s:
    training between two checkpoints, inf for none. power: d ln busy / d ln training time. spreads: error -> log sd of
    busy_s that assumptions leave, and wait_sd of the wait; busy_chance_sd, wait_chance_sd: what is left where they are
    known, since one run is lost more often than another; busy_median, wait_median: the median over the mean.
    """

    work_s: Floats
    busy_s: Floats
    parts: Mapping[str, Floats]
    losses: Floats
    wait_s: Floats
    every_s: Floats
    power: Floats
    spreads: Mapping[str, Floats]
    wait_sd: Floats
    busy_chance_sd: Floats
    wait_chance_sd: Floats
    busy_median: Floats
    wait_median: Floats

    @staticmethod
    def of(offers: Catalogue, over: Overheads, run_s: Floats, jobs: Floats, copies: Floats, again_s: Floats) -> Work:
        """run_s: training of one job. jobs: of one machine, one after another; copies: so many machines, whose chances
        even out. again_s: what a machine fetches once more after a loss."""
        one = _Plan.of(offers, over, run_s, again_s)
        last = np.where(np.isfinite(one.every_s), one.write_s, 0.0)
        usual, lost = _undisturbed(one), one.lost
        found = _Lost.of(one, over, jobs, copies) if lost.any() else None

        def filled(normal: Floats | float, of_lost: str) -> Floats:
            """One figure of every offer: as computed for those that may be lost, plain for the others."""
            figures = np.where(lost, 0.0, normal)
            if found is not None:
                figures[lost] = getattr(found, of_lost)
            return figures

        final_s = over.final_s * jobs
        checkpoints = filled(usual * jobs, "checkpoints_s") + last * jobs
        interruption, work_s = filled(0.0, "undone_s"), one.work_s * jobs
        busy = work_s + checkpoints + interruption
        with np.errstate(divide="ignore", invalid="ignore"):
            trained = np.nan_to_num(1 - (final_s + checkpoints) / busy, nan=1.0)
        return Work(
            work_s=work_s,
            busy_s=busy,
            parts={
                "compute": run_s * jobs,
                "evaluation": work_s - run_s * jobs,
                "checkpoints": checkpoints,
                "interruption": interruption,
            },
            losses=filled(0.0, "losses"),
            wait_s=np.where(one.spot, filled(0.0, "wait_s"), np.nan),
            every_s=one.every_s,
            power=np.where(lost, filled(0.0, "power"), trained),
            spreads={name: filled(0.0, name) for name in (LOSSES, WRITE, RESTART) if found is not None},
            wait_sd=filled(0.0, "wait_sd"),
            busy_chance_sd=filled(0.0, "busy_chance_sd"),
            wait_chance_sd=filled(0.0, "wait_chance_sd"),
            busy_median=filled(1.0, "busy_median"),
            wait_median=filled(1.0, "wait_median"),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    """One job on n offers, before anything is lost. rate: losses an hour of all machines of a job; stated: that
    somebody states it. restart_s: from a new machine at hand to the first new step."""

    spot: Mask
    work_s: Floats
    every_s: Floats
    write_s: Floats
    rate: Floats
    stated: Mask
    restart_s: Floats

    @staticmethod
    def of(offers: Catalogue, over: Overheads, run_s: Floats, again_s: Floats) -> _Plan:
        """A stated interval is of training: with evaluations between, as many checkpoints lie farther apart."""
        spot, own = offers.market.isin(("spot",)), ~np.isnan(offers.losses_per_hour)
        work_s = run_s * (1 + over.evaluation_fraction) + over.final_s
        rate = np.where(own, offers.losses_per_hour, over.losses.value) * offers.nodes * spot
        written = spot | over.write_stated
        write = np.where(written, over.write.value, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            young = young_interval_s(write, SECONDS_PER_HOUR / rate)
            stated = np.nan_to_num(work_s / run_s, nan=1.0) * (over.every_s or 0.0)
        every = np.where(rate > 0, young, inf) if over.every_s is None else np.where(written, stated, inf)
        return _Plan(
            spot=spot,
            work_s=work_s,
            every_s=every,
            write_s=write,
            rate=rate,
            stated=own | over.losses_stated,
            restart_s=over.restart.value + again_s,
        )

    @property
    def lost(self) -> Mask:
        """Offers whose machines may be lost, and whose work is known."""
        return np.asarray((self.rate > 0) & np.isfinite(self.work_s) & (self.work_s > 0))

    def take(self, rows: Mask) -> _Plan:
        names = ("spot", "work_s", "every_s", "write_s", "rate", "stated", "restart_s")
        return _Plan(**{name: getattr(self, name)[rows] for name in names})


def _undisturbed(one: _Plan) -> Floats:
    """Seconds of checkpoints between stretches of one job; the one at its end comes on top, as in `spot.held`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.ceil(one.work_s / one.every_s * (1 - ROUNDING)) - 1
    return np.where(np.isfinite(one.every_s), np.maximum(between, 0.0) * one.write_s, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lost:
    """The offers that may be lost, arrays of shape (m,); names as in `Work`, and the names of assumptions."""

    checkpoints_s: Floats
    undone_s: Floats
    losses: Floats
    wait_s: Floats
    power: Floats
    spot_losses_per_hour: Floats
    checkpoint_s: Floats
    restart_s: Floats
    wait_sd: Floats
    busy_chance_sd: Floats
    wait_chance_sd: Floats
    busy_median: Floats
    wait_median: Floats

    @staticmethod
    def of(whole: _Plan, over: Overheads, jobs: Floats, copies: Floats) -> _Lost:
        tries = _Tries(whole.take(whole.lost), over)
        series = tries.at().series(jobs[whole.lost])
        even = np.sqrt(copies[whole.lost])
        outages = np.sqrt(np.maximum(series.finish_sd_s**2 - series.busy_sd_s**2, 0.0))
        busy_sd, busy_median = chance(series.busy_s, series.busy_sd_s / even)
        wait_sd, wait_median = chance(series.wait_s, outages / even)
        return _Lost(
            checkpoints_s=series.checkpoints_s,
            undone_s=series.lost_s + series.restart_s,
            losses=series.losses,
            wait_s=series.wait_s,
            power=tries.log_sd("work", STRETCH) / STRETCH,
            spot_losses_per_hour=tries.log_sd(LOSSES, over.losses.log_sd) * ~tries.plan.stated,
            checkpoint_s=tries.log_sd(WRITE, over.write.log_sd),
            restart_s=tries.log_sd(RESTART, over.restart.log_sd),
            wait_sd=np.full(len(even), over.wait_log_sd),
            busy_chance_sd=busy_sd,
            wait_chance_sd=wait_sd,
            busy_median=busy_median,
            wait_median=wait_median,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Tries:
    """The same work under one figure changed at a time."""

    plan: _Plan
    over: Overheads

    def at(self, **factors: float) -> Held:
        """What the job takes where one figure is so many times as large."""
        rate = self.plan.rate * factors.get(LOSSES, 1.0)
        pool = Pool(losses_per_hour=rate, available_fraction=self._available(), dispersion=self.over.dispersion)
        return held(
            self.plan.work_s * factors.get("work", 1.0),
            pool,
            every_s=self.plan.every_s,
            write_s=self.plan.write_s * factors.get(WRITE, 1.0),
            restart_s=self.plan.restart_s * factors.get(RESTART, 1.0),
        )

    def _available(self) -> Floats:
        """Where only the losses are stated, a machine is away for as long as is usual: 1/a = 1 + λ · outage."""
        known = self.over.available
        if known is None:
            return np.full(len(self.plan.rate), np.nan)
        usual = 1 / (1 + self.plan.rate * self.over.outage_h)
        return np.where(self.plan.stated & ~self.over.available_stated, usual, known.value)

    def log_sd(self, name: str, sd: float) -> Floats:
        """Half the distance of ln busy between the figure so many sd above and below."""
        if not sd:
            return np.zeros(len(self.plan.rate))
        high, low = (self.at(**{name: float(np.exp(sign * sd))}).busy_s for sign in (1, -1))
        return np.asarray(np.log(high / low) / 2)
