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

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue, as_float
from gpuwise.estimate import Estimate, exact, total
from gpuwise.model import Assumptions
from gpuwise.rank.conditions import Conditions
from gpuwise.rank.overheads import AVAILABLE, LEAST_S, Overheads
from gpuwise.rank.work import Work
from gpuwise.request import RankRequest
from gpuwise.units import Seconds

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

NOTHING_BESIDE = {
    "prepare_s": 0.0, "image_gb": None, "data_gb": None, "stopped_s": None, "final_evaluation_s": None, "apart": False,
    "jobs": 1, "prepare_on": "gpu",
}  # fmt: skip
"""What a request is without all that a bill of unknown length leaves out."""
SHARED = ("dedicated", "reserved", "owned", "free")
"""Markets in which a series of jobs shares one machine in any case: nobody rents a month for each of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Before:
    """What comes before the first step, on n offers, for one start (data: once); seconds of shape (n,).

    kind: what the machine brings along (ready, bare, unknown). own: the offer itself says how long preparing takes.
    near: the data lies in the same region.
    """

    kind: NDArray[np.str_]
    own: Mask
    near: Mask
    prepare_s: Floats
    image_s: Floats
    data_s: Floats

    @staticmethod
    def of(offers: Catalogue, conditions: Conditions, over: Overheads, request: RankRequest, whole: bool) -> Before:
        kind = np.where(conditions.ready, "ready", np.where(conditions.bare, "bare", "unknown"))
        usual = np.select([kind == name for name in over.prepare], [e.value for e in over.prepare.values()])
        own, near = ~np.isnan(offers.preparation_s) & whole, _near(offers, request.data_from)
        data, none = request.data_gb or 0.0, np.zeros(len(offers))
        return Before(
            kind=kind,
            own=own,
            near=near,
            prepare_s=np.where(own, offers.preparation_s, usual),
            image_s=none + (over.image.value if over.image else 0.0),
            data_s=data / np.where(near, over.near.value, over.far.value) + none,
        )


def _near(offers: Catalogue, place: str) -> Mask:
    """Offers in the very region where the data lies."""
    provider, slash, region = place.partition("/")
    near = offers.provider.isin((provider,))
    return near & offers.region.isin((region,)) if slash else np.zeros(len(offers), bool)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timing:
    """n offers; seconds of shape (n,), NaN where there is no prediction or a session is too short to start.

    parts: kind of a line of the bill -> seconds that the machine is held for it; together used_s, in `sessions` starts.
    cpu_s: on a machine without a GPU. wait_s: until a machine is there, NaN if nobody says. time_s: until the job is
    done. copies: so many machines one after another, each with its part of the jobs. starts: of one of them.
    """

    over: Overheads
    before: Before
    work: Work
    parts: Mapping[str, Floats]
    used_s: Floats
    sessions: Floats
    starts: Floats
    copies: Floats
    elsewhere: Mask
    cpu_s: Floats
    stopped_s: Seconds
    wait_s: Floats
    time_s: Floats
    used_sd: Floats
    time_sd: Floats

    def used(self, row: int, run: Estimate) -> Estimate:
        """How long the machine is held, with named errors. run: seconds of training with its own."""
        first = [self.over.restart] if self.elsewhere[row] else self._before(row)
        held = _sum([*first, self._busy(row, run)]) * float(self.copies[row])
        if not self.work.losses[row]:
            return held
        work = replace(run, value=float(self.work.work_s[row]))
        return _at_least(held, (_sum([*first, work]) * float(self.copies[row])).interval().low)

    def done(self, row: int, run: Estimate) -> Estimate:
        """How long it is until the job is done: waiting, preparing elsewhere and standing stopped too."""
        elsewhere = self._before(row) if self.elsewhere[row] else []
        once = [*elsewhere, *([exact(self.stopped_s)] if self.stopped_s else [])]
        held, wait = self.used(row, run), self.wait(row)
        parts = [held, *(part * float(self.copies[row]) for part in once), *([wait] if wait else [])]
        return _at_least(_sum(parts), held.interval().low) if self.work.losses[row] else _sum(parts)

    def wait(self, row: int) -> Estimate | None:
        """Until a machine is there, at first and after each loss; None if nobody says."""
        value = as_float(self.wait_s[row])
        if value is None:
            return None
        sd = float(self.work.wait_sd[row])
        waited = Estimate(value=value, basis="assumed" if sd else "quoted")
        return waited.widened(AVAILABLE, sd) if value and sd else waited

    def _busy(self, row: int, run: Estimate) -> Estimate:
        power = float(self.work.power[row])
        spread = tuple((name, sd * power) for name, sd in run.spread if sd * power)
        busy = Estimate(value=float(self.work.busy_s[row]), spread=spread, basis=run.basis)
        for name, sds in self.work.spreads.items():
            if sd := float(sds[row]):
                busy = busy.widened(name, sd)
        between = (float(self.starts[row]) - 1) * self.over.write.value
        return busy + between if between > 0 else busy

    def _before(self, row: int) -> list[Estimate]:
        starts, before = float(self.starts[row]), self.before
        prepare = self.over.prepare[str(before.kind[row])]
        if before.own[row]:
            prepare = Estimate(value=max(float(before.prepare_s[row]), LEAST_S), basis="quoted")
        image = [self.over.image * starts] if self.over.image else []
        rate, data = self.over.rate(bool(before.near[row])), float(before.data_s[row])
        return [prepare * starts, *image, *([(data * rate.value) / rate] if data else [])]


def _at_least(estimate: Estimate, low: float) -> Estimate:
    """No luck makes a job shorter than its work: the lower end of an interval that losses widen stops there."""
    inside = estimate.interval()
    return replace(estimate, bounds=(low, inside.high)) if inside.low < low <= inside.value else estimate


def _sum(parts: list[Estimate]) -> Estimate:
    return total(part for part in parts if part.value > 0)


def timing(
    offers: Catalogue,
    conditions: Conditions,
    request: RankRequest,
    assumptions: Assumptions,
    run_s: Floats,
    run_sd: Floats,
    *,
    whole: bool = True,
) -> Timing:
    """The time of the job on every offer. run_s: training of one job, with its log sd, without anything else.

    whole: False for a part of work of unknown length, of which only training and its interruptions are timed.
    """
    request = request if whole else replace(request, **NOTHING_BESIDE)  # type: ignore[arg-type]
    over = Overheads.of(request, assumptions)
    copies = np.where(offers.market.isin(SHARED) | (not request.apart), 1.0, request.jobs)
    jobs = request.jobs / copies
    work = Work.of(offers, over, run_s, jobs)
    before = Before.of(offers, conditions, over, request, whole)
    starts = _starts(conditions.session_s, work, before, over.write.value)
    elsewhere = ~np.isnan(conditions.cpu_usd_per_hour) & (request.prepare_on == "cpu")
    first = {
        "preparation": before.prepare_s * starts,
        "image": before.image_s * starts,
        "data transfer": before.data_s,
    }
    parts = {name: np.where(elsewhere, 0.0, seconds) * copies for name, seconds in first.items()}
    parts["moving the disk"] = np.where(elsewhere, over.restart.value, 0.0) * copies
    parts |= {name: seconds * copies for name, seconds in work.parts.items()}
    parts["checkpoints"] = parts["checkpoints"] + (starts - 1) * over.write.value * copies
    used_s = np.asarray(sum(parts.values()))
    cpu_s = np.where(elsewhere, np.asarray(sum(first.values())), 0.0) * copies
    wait_s = np.where(np.isnan(offers.wait_s), work.wait_s, offers.wait_s) * copies
    stopped_s = request.stopped_s or 0.0
    time_s = used_s + cpu_s + stopped_s * copies + np.nan_to_num(wait_s)
    used_sd, time_sd = _spread(over, before, work, parts, used_s, time_s, wait_s, run_sd)
    return Timing(
        over=over, before=before, work=work, parts=parts, used_s=used_s, sessions=copies * (starts + work.losses),
        starts=starts, copies=copies, elsewhere=elsewhere, cpu_s=cpu_s, stopped_s=stopped_s, wait_s=wait_s,
        time_s=time_s, used_sd=used_sd, time_sd=time_sd,
    )  # fmt: skip


def _starts(session_s: Floats, work: Work, before: Before, write_s: Seconds) -> Floats:
    """How many sessions: each loses its preparation, and the time of the checkpoint at its end. NaN: none fits."""
    limited = ~np.isnan(session_s)
    usable = session_s - before.prepare_s - before.image_s - write_s
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.ceil((work.busy_s + before.data_s) / usable * (1 - 1e-9))
    return np.where(limited, np.where(usable > 0, np.maximum(needed, 1.0), np.nan), 1.0)


def _spread(
    over: Overheads, before: Before, work: Work, parts: Mapping[str, Floats], used_s: Floats, time_s: Floats,
    wait_s: Floats, run_sd: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Log sd of the time held and of the time until done, as if no error had the name of another."""
    kinds = np.select([before.kind == name for name in over.prepare], [e.log_sd for e in over.prepare.values()])
    busy_sd = np.sqrt((run_sd * work.power) ** 2 + sum(sd**2 for sd in work.spreads.values()))
    with np.errstate(invalid="ignore"):
        pieces = [
            np.where(before.own, 0.0, kinds) * parts["preparation"],
            (over.image.log_sd if over.image else 0.0) * parts["image"],
            np.where(before.near, over.near.log_sd, over.far.log_sd) * parts["data transfer"],
            busy_sd * sum(parts[name] for name in work.parts),
        ]
        held = np.sqrt(np.sum([piece**2 for piece in pieces], axis=0))
        waited = np.nan_to_num(wait_s) * work.wait_sd
        return held / used_s, np.hypot(held, waited) / time_s
