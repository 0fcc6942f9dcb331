"""How long each offer is held for one job, part by part, and how long it is until the job is done; on columns.

    held = starts · (preparation + image) + data + training, evaluation, checkpoints and what interruptions cost
    done = waiting + held + preparing elsewhere + standing stopped

Waiting for a machine is not billed. A session limit makes several starts, each with its preparation, and a checkpoint
between two of them. `--prepare-on cpu` moves what comes before the first step to a machine without a GPU.

Test values: 100 h of training with a checkpoint of 15 min every 2 h, an evaluation of 20 min every 5 h and one of 6 h
at the end are 125.2 h (UC-053). An image of 12 GB over 100 Mbit/s is fetched in 16 min (UC-052). 20 h in sessions of
6 h with 30 min of preparation each are four sessions and 22 h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue, as_float
from gpuwise.cost.billing import ROUNDING, Use
from gpuwise.cost.tariffs import transfer_s
from gpuwise.estimate import Estimate, exact, total
from gpuwise.model import Assumptions
from gpuwise.rank.conditions import Conditions
from gpuwise.rank.overheads import AVAILABLE, Overheads
from gpuwise.rank.work import Work
from gpuwise.request import RankRequest
from gpuwise.units import Seconds

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

SHARED = ("dedicated", "reserved", "owned", "free")
"""Markets in which a series of jobs shares one machine in any case: nobody rents a month for each of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Before:
    """What comes before the first step, on n offers, for one start (data: once); seconds of shape (n,).

    kind: what the machine brings along (ready, bare, unknown). own: the offer itself says how long preparing takes, and
    the request does not say that it takes none. near: the data lies in the same region. copied: the data is lost with
    the machine, and copied at each start. never: no checkpoint is ever written.
    """

    kind: NDArray[np.str_]
    own: Mask
    near: Mask
    copied: Mask
    never: bool
    prepare_s: Floats
    image_s: Floats
    data_s: Floats

    @staticmethod
    def of(offers: Catalogue, conditions: Conditions, over: Overheads, request: RankRequest) -> Before:
        kind = np.where(conditions.ready, "ready", np.where(conditions.bare, "bare", "unknown"))
        usual = np.select([kind == name for name in over.prepare], [e.value for e in over.prepare.values()])
        own, near = ~np.isnan(offers.preparation_s) & (request.prepare_s != 0), _near(offers, request.data_from)
        data, none = request.data_gb or 0.0, np.zeros(len(offers))
        return Before(
            kind=kind,
            own=own,
            near=near,
            copied=conditions.disk_lost,
            never=request.checkpoint_every_s == inf,
            prepare_s=np.where(own, offers.preparation_s, usual),
            image_s=none + (over.image.value if over.image else 0.0),
            data_s=none + transfer_s(data, np.where(near, over.near.value, over.far.value)),
        )

    @property
    def again_s(self) -> Floats:
        """What a machine that takes the place of a lost one fetches once more."""
        return np.asarray(self.image_s + np.where(self.copied, self.data_s, 0.0))


def _near(offers: Catalogue, place: str) -> Mask:
    """Offers in the very region where the data lies."""
    provider, slash, region = place.partition("/")
    near = offers.provider.isin((provider,))
    return near & offers.region.isin((region,)) if slash else np.zeros(len(offers), bool)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timing:
    """n offers; seconds of shape (n,), NaN where there is no prediction or a session is too short to start.

    parts: kind of a line of the bill -> seconds that the machine is held for it; together use.used_s. cpu_s: on a
    machine without a GPU. idle_s: standing stopped without being held. wait_s: until a machine is there, NaN if nobody
    says. time_s: until the job is done. elsewhere: prepared on a machine without a GPU. used_sd: log sd of used_s.
    """

    offers: Catalogue
    over: Overheads
    before: Before
    work: Work
    parts: Mapping[str, Floats]
    use: Use
    elsewhere: Mask
    cpu_s: Floats
    idle_s: Floats
    wait_s: Floats
    time_s: Floats
    used_sd: Floats

    def used(self, row: int, run: Estimate) -> Estimate:
        """How long the machine is held, with named errors. run: seconds of training with its own."""
        copies, work = _at(self.use.copies, row), replace(run, value=float(self.work.work_s[row]))
        first = [self.over.restart] if self.elsewhere[row] else self._before(row)
        more = [exact(float(self.parts[name][row]) / copies) for name in ("taking results out", "standing stopped")]
        held = _sum([*first, self._busy(row, run), *more]) * copies
        if not self.work.losses[row]:
            return held
        return _at_least(held, (_sum([*first, work, *more]) * copies).interval().low)

    def done(self, row: int, run: Estimate) -> Estimate:
        """How long it is until the job is done: waiting, preparing elsewhere and standing stopped too."""
        held, wait = self.used(row, run), self.wait(row)
        elsewhere = _sum(self._before(row)) * _at(self.use.copies, row) if self.elsewhere[row] else None
        idle = exact(float(self.idle_s[row])) if self.idle_s[row] else None
        parts = _sum([held, *(part for part in (elsewhere, idle, wait) if part is not None)])
        return _at_least(parts, held.interval().low) if self.work.losses[row] else parts

    def wait(self, row: int) -> Estimate | None:
        """Until a machine is there, at first and after each loss; None if nobody says."""
        value = as_float(self.wait_s[row])
        if value is None:
            return None
        assumed, chance = float(self.work.wait_sd[row]), float(self.work.wait_chance_sd[row])
        basis = "assumed" if assumed or chance else "quoted"
        if not value or basis == "quoted":
            return Estimate(value=value, basis="quoted")
        waited = Estimate(value=value, basis=basis, median=value * float(self.work.wait_median[row]))
        waited = waited.widened(self._chance("waiting for", row), chance)
        return waited.widened(AVAILABLE, assumed) if assumed else waited

    def _busy(self, row: int, run: Estimate) -> Estimate:
        power, value = float(self.work.power[row]), float(self.work.busy_s[row])
        chance = float(self.work.busy_chance_sd[row])
        spread = tuple((name, sd * power) for name, sd in run.spread if sd * power)
        median = value * float(self.work.busy_median[row]) if chance else None
        busy = Estimate(value=value, spread=spread, basis=run.basis, median=median)
        parts = {name: float(sds[row]) for name, sds in self.work.spreads.items()}
        for name, sd in (parts | {self._chance("losses of", row): chance}).items():
            busy = busy.widened(name, sd) if sd else busy
        between = (_at(self.use.starts, row) - 1) * self.over.write.value
        return busy + between if between > 0 else busy

    def _chance(self, what: str, row: int) -> str:
        """The name of an error that no other offer shares: one pool's luck is not another's."""
        offer = (self.offers.provider[row], self.offers.instance[row] or self.offers.accelerator[row])
        return " ".join(filter(None, (what, *offer, self.offers.region[row])))

    def _before(self, row: int) -> list[Estimate]:
        starts, before = _at(self.use.starts, row), self.before
        prepare = self.over.prepare[str(before.kind[row])]
        if before.own[row]:
            prepare = Estimate(value=float(before.prepare_s[row]), basis="quoted")
        found = [prepare * starts]
        if self.over.image:
            found.append(self.over.image * starts)
        if data_s := float(before.data_s[row]) * (starts if before.copied[row] else 1.0):
            rate = self.over.rate(bool(before.near[row]))
            found.append(data_s * rate.value / rate)
        return found


def _at(figure: Floats | float, row: int) -> float:
    return float(np.asarray(figure)[row])


def _at_least(estimate: Estimate, low: float) -> Estimate:
    """No luck makes a job shorter than its work: the lower end of an interval that losses widen stops there."""
    inside = estimate.interval()
    if not inside.low < low <= inside.value:
        return estimate
    return replace(estimate, bounds=(low, max(inside.high, inside.value)))


def _sum(parts: list[Estimate]) -> Estimate:
    return total(part for part in parts if part.value > 0)


def timing(
    offers: Catalogue,
    conditions: Conditions,
    request: RankRequest,
    assumptions: Assumptions,
    run_s: Floats,
    run_sd: Floats,
) -> Timing:
    """The time of the job on every offer. run_s: training of one job, with its log sd, without anything else."""
    over = Overheads.of(request, assumptions)
    copies = np.where(offers.market.isin(SHARED) | (not request.apart), 1.0, request.jobs)
    before = Before.of(offers, conditions, over, request)
    work = Work.of(offers, over, run_s, request.jobs / copies, copies, before.again_s)
    starts = _starts(conditions.session_s, work, before, over.write.value)
    elsewhere = ~np.isnan(conditions.cpu_usd_per_hour) & (request.prepare_on == "cpu")
    first = {
        "preparation": before.prepare_s * starts,
        "image": before.image_s * starts,
        "data transfer": before.data_s * np.where(before.copied, starts, 1.0),
    }
    out_s = transfer_s((request.results_gb or 0.0) * request.jobs, over.far.value) / copies
    on = conditions.stopped_in_full * (request.stopped_s or 0.0)
    parts = {name: np.where(elsewhere, 0.0, seconds) for name, seconds in first.items()}
    parts |= {"moving the disk": np.where(elsewhere, over.restart.value, 0.0), **work.parts}
    parts |= {"taking results out": out_s, "standing stopped": on}
    parts["checkpoints"] = parts["checkpoints"] + (starts - 1) * over.write.value
    parts = {name: seconds * copies for name, seconds in parts.items()}
    use = Use(used_s=np.asarray(sum(parts.values())), starts=starts, losses=work.losses * copies, copies=copies)
    cpu_s = np.where(elsewhere, np.asarray(sum(first.values())), 0.0) * copies
    idle_s = np.asarray((request.stopped_s or 0.0) - on, np.float64) * copies
    wait_s = np.where(np.isnan(offers.wait_s), work.wait_s, offers.wait_s) * copies
    return Timing(
        offers=offers, over=over, before=before, work=work, parts=parts, use=use, elsewhere=elsewhere, cpu_s=cpu_s,
        idle_s=idle_s, wait_s=wait_s, time_s=use.used_s + cpu_s + idle_s + np.nan_to_num(wait_s),
        used_sd=_used_sd(over, before, work, parts, use.used_s, run_sd),
    )  # fmt: skip


def _starts(session_s: Floats, work: Work, before: Before, write_s: Seconds) -> Floats:
    """How many sessions: each loses its preparation, and the time of the checkpoint at its end. NaN: none fits, or the
    job never writes a checkpoint and does not end within one."""
    limited = ~np.isnan(session_s)
    again = before.prepare_s + before.image_s + np.where(before.copied, before.data_s, 0.0)
    once = np.where(before.copied, 0.0, before.data_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = again + once + work.busy_s <= session_s
        needed = np.ceil((work.busy_s + once) / (session_s - again - write_s) * (1 - ROUNDING))
    several = np.where((session_s > again + write_s) & ~before.never, np.maximum(needed, 1.0), np.nan)
    return np.where(~limited | alone, 1.0, several)


def _used_sd(
    over: Overheads, before: Before, work: Work, parts: Mapping[str, Floats], used_s: Floats, run_sd: Floats
) -> Floats:
    """Log sd of the time held, as if no error had the name of another."""
    kinds = np.select([before.kind == name for name in over.prepare], [e.log_sd for e in over.prepare.values()])
    spreads = [*work.spreads.values(), work.busy_chance_sd]
    busy_sd = np.sqrt((run_sd * work.power) ** 2 + sum(sd**2 for sd in spreads))
    pieces = [
        np.where(before.own, 0.0, kinds) * parts["preparation"],
        (over.image.log_sd if over.image else 0.0) * parts["image"],
        np.where(before.near, over.near.log_sd, over.far.log_sd) * parts["data transfer"],
        over.restart.log_sd * parts["moving the disk"],
        busy_sd * sum(parts[name] for name in work.parts),
    ]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(np.sum([piece**2 for piece in pieces], axis=0)) / used_s)
