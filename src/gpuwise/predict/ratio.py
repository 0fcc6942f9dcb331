"""From measured rows to a rate: the path with the smallest error budget wins.

A path starts at a row and changes at most the software, the model, the batch and the device, each with its own factor
and its own named error. The device changes by the data sheets of both and by what kin reached beyond them (`reached`).
With no row at all the roofline stands alone. The rate is the row's times all factors: `Path.steps` has each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log
from typing import NamedTuple

from gpuwise.errors import Message
from gpuwise.estimate import Estimate
from gpuwise.model import Accelerator, Assumptions, Workload
from gpuwise.predict import budget
from gpuwise.predict.budget import Part
from gpuwise.predict.evidence import (
    CURRENT,
    Evidence,
    Row,
    Site,
    era,
    is_old,
    kind,
    kindred,
    launch_share,
    residual,
)
from gpuwise.predict.reached import STAY, Reached, Step
from gpuwise.predict.reference import REFERENCE
from gpuwise.predict.roofline import Rates, Work, arithmetic, ideal_seconds, launch_seconds, rates, seconds, work_of

NO_FACTOR = 1e-9
"""Logarithm below which a factor is 1."""

OWN_ROW_LIMIT_SD = 0.4
"""A workload's own row is left for another's only where its budget is larger: it alone knows the workload's ways."""


@dataclass(frozen=True, slots=True)
class Path:
    """A rate with its error budget and what it stands on. row is None for the bare roofline.

    steps: what follows the row; the values named `factor` and the row's rate (`rate`, without a row) multiply to the
    rate.
    """

    rate: Estimate
    method: str
    row: Row | None
    steps: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class _Start:
    """The best row of one workload at one site. work, on: of the row; level: its residual; launches: see `seconds`;
    software: the step to the era that is asked for; sd: of all that together."""

    workload: str
    site: Site
    row: Row
    own: bool
    parts: tuple[Part, ...]
    work: Work | None
    on: Rates | None
    level: float
    launches: float
    software: Step
    sd: float


class _Option(NamedTuple):
    """One whole path: device is None where the row is already at the site."""

    sd: float
    start: _Start
    device: Step | None


@dataclass(frozen=True, slots=True)
class Paths:
    """All ways to predict one workload. Make it once, ask `best` for each accelerator."""

    workload: Workload
    evidence: Evidence
    assumptions: Assumptions
    work: Work
    era: str
    reached: Reached
    starts: tuple[_Start, ...] = ()

    @staticmethod
    def of(workload: Workload, evidence: Evidence, assumptions: Assumptions, era: str = CURRENT) -> Paths:
        """era: of the software that is asked about."""
        own = (workload.name, *workload.measured_as)
        names = tuple(dict.fromkeys((*own, *_neighbours(workload, own, evidence))))
        cards = evidence.accelerators
        asked = (Site(card.id, arithmetic(workload.precision, card)) for card in cards.values())
        sites = (*asked, *(site for name in names for site in evidence.rows.get(name, {})))
        reached = Reached.of(evidence.kin, kind(workload.family), cards, sites)
        bare = Paths(workload, evidence, assumptions, work_of(workload), era, reached)
        return replace(bare, starts=tuple(bare._starts(names)))

    @property
    def _own_names(self) -> tuple[str, ...]:
        return (self.workload.name, *self.workload.measured_as)

    def _starts(self, names: Iterable[str]) -> Iterator[_Start]:
        """The best row of each workload to start from, at each site: the person's own, else that of the least error."""
        for name in names:
            for site, rows in self.evidence.rows.get(name, {}).items():
                starts = [self._start(name, site, row) for row in rows if self._tells(name, row)]
                if starts and (starts[0].own or (starts[0].on and starts[0].work)):
                    yield min(starts, key=lambda s: (not s.row.yours, s.sd))

    def _tells(self, name: str, row: Row) -> bool:
        return row.yours or (name, row.result.accelerator) not in self.evidence.held_back

    def _start(self, name: str, site: Site, row: Row) -> _Start:
        own, on, c = name in self._own_names, self.evidence.rates(site), self.evidence.coefficients
        work = self.work if own else self.evidence.work.get(name)
        written = era(row.result.software)
        software = STAY if row.yours else self.reached.software(site.arithmetic, written, self.era)
        parts = (
            *budget.of_row(row, self.workload, self.assumptions),
            *(() if own else budget.of_model(name, self.workload, self.evidence)),
            *((Part(f"software {written} → {self.era}", software.sd),) if software.sd else ()),
        )
        level, launches = 0.0, 1.0
        if on and work:
            level, launches = residual(row, work, on, c), launch_share(row, work, on, c)
        return _Start(name, site, row, own, parts, work, on, level, launches, software, budget.total(parts))

    def best(self, accelerator: Accelerator) -> Path | None:
        """A current row of the workload there, or the person's own run elsewhere; else any row of its own, if that is
        not hopelessly far; else the path with the smallest budget. None if nothing leads there."""
        site = Site(accelerator.id, arithmetic(self.workload.precision, accelerator))
        on = rates(accelerator, site.arithmetic)  # type: ignore[arg-type]
        if on is None:
            return self.measured(accelerator)
        own = self._options([s for s in self.starts if s.own], site, on)
        options = own or self._options([s for s in self.starts if not s.own], site, on)
        chosen = min(options, key=lambda o: o.sd, default=None)
        if chosen is not None and own:
            return self._walked(chosen, accelerator, site, on)
        bare = self._bare(accelerator, site, on)
        if chosen is None or chosen.sd >= bare.rate.log_sd:
            return bare
        return self._walked(chosen, accelerator, site, on)

    def _options(self, starts: Sequence[_Start], site: Site, on: Rates) -> list[_Option]:
        """Rows at the site; where none is current, those of elsewhere too; the person's own of elsewhere always."""
        here = [_Option(s.sd, s, None) for s in starts if s.site == site and s.on]
        current = any(o.start.own and not is_old(o.start.row.result.software) for o in here)
        moved = self._moved([s for s in starts if s.row.yours or not current], site, on)
        return [*here, *(o for o in moved if not o.start.own or o.sd < OWN_ROW_LIMIT_SD)]

    def measured(self, accelerator: Accelerator) -> Path | None:
        """The best row of the very workload on that device as it stands; None if there is none."""
        site = Site(accelerator.id, arithmetic(self.workload.precision, accelerator))
        own = [s for s in self.starts if s.site == site and s.own]
        if not own:
            return None
        return _as_it_stands(min(own, key=lambda s: s.sd))

    def together(self, accelerator: Accelerator, n: int) -> Path | None:
        """The best current run of the very workload on n such devices, for one of them; None if there is none."""
        site = Site(accelerator.id, arithmetic(self.workload.precision, accelerator))
        on = rates(accelerator, site.arithmetic)  # type: ignore[arg-type]
        starts = [
            self._start(name, site, replace(row, log_rate=row.log_rate - log(n)))
            for name in self._own_names
            for row in self.evidence.several.get(name, ())
            if (row.result.accelerators, row.result.accelerator, row.result.precision) == (n, *site)
            and not is_old(row.result.software)
            and self._tells(name, row)
        ]
        start = min(starts, key=lambda s: (not s.row.yours, s.sd), default=None)
        if start is None:
            return None
        return self._walked(_Option(start.sd, start, None), accelerator, site, on) if on else _as_it_stands(start)

    def _moved(self, starts: Iterable[_Start], site: Site, on: Rates) -> Iterator[_Option]:
        for start in starts:
            if start.on and start.site != site:
                step = self.reached.device(start.site, site)
                parts = self._device_parts(start, site, on, step)
                yield _Option(hypot(start.sd, budget.total(parts)), start, step)

    def _device_parts(self, start: _Start, site: Site, on: Rates, step: Step) -> Iterator[Part]:
        units = budget.change(start.site, site, bool(start.on and start.on.tensor), on.tensor)
        measured = site in self.reached.kin
        return budget.of_device(start.site, site, units, step, self.workload.family, measured)

    def _seconds(self, work: Work, on: Rates, batch: int, reached: float = 0.0, launches: float = 1.0) -> float:
        return seconds(work, on, batch, self.evidence.coefficients, reached, launches)

    def _asked(self, on: Rates, reached: float = 0.0, launches: float = 1.0) -> float:
        return self._seconds(self.work, on, self.workload.batch_per_accelerator, reached, launches)

    def _launching(self, work: Work, on: Rates, batch: int, whole: float) -> float:
        """Share of a step of `whole` seconds a sample that launches take."""
        return min(1.0, launch_seconds(work, on, batch, self.evidence.coefficients) / whole)

    def _walked(self, option: _Option, accelerator: Accelerator, site: Site, on: Rates) -> Path:
        start, measured = option.start, option.start.site == site or site in self.reached.kin
        steps, level = [*self._before_the_move(start)], start.level + start.software.shift
        if option.device:
            steps += self._move(start, accelerator, site, on, option.device)
            level += option.device.shift
        whole = self._asked(on, level, start.launches)
        method = "roofline" if not measured else "ratio" if option.device or not start.own else "measured"
        limit = ideal_seconds(self.work, on) if method != "measured" else 0.0
        if limit > whole:
            text = "× {factor:.3g}: no faster than the data sheet of {name} allows"
            steps.append(Message(text, factor=whole / limit, name=accelerator.name))
        parts = self._parts(option, accelerator, site, on, whole)
        rate = budget.estimate(-log(max(whole, limit)), parts, "measured" if method == "measured" else "predicted")
        return Path(rate, method, start.row, (*steps, *self._notes(accelerator, on)))

    def _parts(self, option: _Option, accelerator: Accelerator, site: Site, on: Rates, whole: float) -> Iterator[Part]:
        start = option.start
        yield from start.parts
        if option.device:
            yield from self._device_parts(start, site, on, option.device)
            yield from () if site in self.reached.kin else budget.of_figures(accelerator, on.derived)
        if start.on and start.work:
            batch = start.row.result.batch_per_accelerator
            before = self._launching(start.work, start.on, batch, exp(-start.row.log_rate))
            after = self._launching(self.work, on, self.workload.batch_per_accelerator, whole)
            yield budget.of_launches(start.launches * (after - before))

    def _before_the_move(self, start: _Start) -> Iterator[Message]:
        """Software, model and batch, on the device of the row."""
        if start.on is None or start.work is None:
            return
        level, batch = start.level + start.software.shift, start.row.result.batch_per_accelerator
        current = self._seconds(start.work, start.on, batch, level, start.launches)
        job = self._seconds(self.work, start.on, batch, level, start.launches)
        factor = exp(-start.row.log_rate) / current
        if abs(log(factor)) > NO_FACTOR:
            text = "× {factor:.3g} with {new} instead of {old}"
            yield Message(text, factor=factor, new=self.era, old=era(start.row.result.software))
        if not start.own:
            text = "× {factor:.3g} from {model} to {workload}, by counted work"
            yield Message(text, factor=current / job, model=start.workload, workload=self.workload.name)
        if batch != self.workload.batch_per_accelerator:
            factor = job / self._asked(start.on, level, start.launches)
            text = "× {factor:.3g} at batch {batch} instead of {measured}, by the roofline"
            yield Message(text, factor=factor, batch=self.workload.batch_per_accelerator, measured=batch)

    def _move(self, start: _Start, accelerator: Accelerator, site: Site, on: Rates, step: Step) -> Iterator[Message]:
        """To another device: the data sheets of both, then what kin or sisters reach beyond them."""
        assert start.on is not None
        level, source = start.level + start.software.shift, start.site.accelerator
        there = self._asked(on, level, start.launches)
        yield Message(
            "× {factor:.3g} from {source} to {target}, moved by the data sheets of both",
            factor=self._asked(start.on, level, start.launches) / there,
            source=source if start.site.arithmetic == site.arithmetic else f"{source} ({start.site.arithmetic})",
            target=accelerator.id,
        )
        yield from self._beyond(there / self._asked(on, level + step.shift, start.launches), site)

    def _beyond(self, factor: float, site: Site) -> Iterator[Message]:
        """What kin or sisters reach beyond the data sheet."""
        if kin := self.reached.kin.get(site):
            text = "× {factor:.3g} by what {kin} reached beyond the data sheet, on {target} and cards like it"
            yield Message(text, factor=factor, kin=", ".join(kin), target=site.accelerator)
        elif sister := self.reached.sister(site):
            text = "× {factor:.3g} by what cards like {target} reach beyond the data sheet; the nearest is {sister}"
            yield Message(text, factor=factor, target=site.accelerator, sister=sister)

    def _bare(self, accelerator: Accelerator, site: Site, on: Rates) -> Path:
        """Counted work on specifications, and what the family reaches beyond them; no row of the job or its nearest."""
        plain, reached = self._asked(on), self._asked(on, self.reached.level(site, self.era))
        limit = ideal_seconds(self.work, on)
        parts = (
            budget.of_roofline(self.workload.family),
            *(() if site in self.reached.kin else budget.of_figures(accelerator, on.derived)),
            budget.of_launches(self._launching(self.work, on, self.workload.batch_per_accelerator, reached)),
        )
        whole = max(reached, limit)
        text = "no measured row: {rate:.4g} {sample}s/s by counted work on the specifications of {name}"
        step = Message(text, rate=1 / plain, sample=self.workload.sample, name=accelerator.name)
        steps = (step, *self._beyond(plain / whole, site), *self._notes(accelerator, on))
        return Path(budget.estimate(-log(whole), parts, "predicted"), "roofline", None, steps)

    def _notes(self, accelerator: Accelerator, on: Rates) -> Iterator[Message]:
        if not on.tensor and self.workload.precision != "fp32":
            yield Message("{name} has no tensor cores: it computes at its fp32 rate", name=accelerator.name)
        for name in self._own_names:
            if (name, accelerator.id) in self.evidence.held_back:
                text = "rows of {workload} on {name} are left out: AMP gained nothing there, so the host set the pace"
                yield Message(text, workload=name, name=accelerator.name)


def _as_it_stands(start: _Start) -> Path:
    return Path(budget.estimate(start.row.log_rate, start.parts, "measured"), "measured", start.row)


def _neighbours(workload: Workload, own: tuple[str, ...], evidence: Evidence) -> Iterator[str]:
    """Measured workloads to start from: those the workload names, else the reference workloads of its family and, of
    all measured, the one whose counts are nearly its own."""
    if workload.nearest:
        yield from (name for name in workload.nearest if name in evidence.rows)
        return
    yield from (n for n in REFERENCE if n in evidence.rows and kindred(evidence.family[n], workload.family))
    work = work_of(workload)
    twin = min(_kin_of(workload, own, evidence), key=lambda n: budget.distance(work, evidence.work[n]), default="")
    if twin and budget.is_twin(workload, evidence.work[twin]):
        yield twin


def _kin_of(workload: Workload, own: tuple[str, ...], evidence: Evidence) -> Iterable[str]:
    return (
        n for n in evidence.work if n not in own and n in evidence.rows and kindred(evidence.family[n], workload.family)
    )
