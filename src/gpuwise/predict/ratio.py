"""From measured rows to a rate: the path with the smallest error budget wins.

A path starts at a row and changes at most two things, each with its own named error:
  the model    another workload's row, corrected by the ratio of counted work (the roofline of both);
  the device   by what kin workloads measured on both devices ("ratio of measured rows"), else by specifications alone.
Batch, software and memory format of the row add theirs. With no row at all the roofline stands alone.

Log standard deviations were measured by leaving rows out; `python benchmarks/accuracy_first.py` prints them again and
docs/why/predict-first.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import exp, hypot, log
from statistics import fmean
from typing import NamedTuple

from gpuwise.errors import Message
from gpuwise.estimate import Estimate
from gpuwise.model import Accelerator, Assumptions, Workload
from gpuwise.predict.evidence import Evidence, Residuals, Row, Site, is_old, kindred, residual
from gpuwise.predict.reference import REFERENCE
from gpuwise.predict.roofline import SINCE_AMPERE, Rates, Work, arithmetic, ideal_seconds, rates, seconds, work_of

ROOFLINE_SD = 0.22
ROOFLINE_OTHER_FAMILY_SD = 0.5
NEW_ARCHITECTURE_SD, UNTRIED_SD = 0.2, 0.5
"""No row at all: families of the fit; other families; and, on top, for newer NVIDIA architectures than the fit's, and
for other vendors and older architectures."""

DERIVED_RATE_SD = 0.10
"""The matrix rate comes from the architecture: L40 and L40S differ by a factor of two there, most others do not."""

SPECS_SD = {True: 0.10, False: 0.14}
SPECS_ARITHMETIC_SD = {"same": 0.0, "fp32": 0.05, "tensor": 0.17, "vector": 0.33}
"""Device change by specifications, within an architecture or not; and on top for fp32 without TF32, for a change
between AMP and TF32, and for a step into or out of tensor cores."""

RATIO_SD = {True: 0.025, False: 0.05}
RATIO_OTHER_FAMILY_SD = {True: 0.165, False: 0.26}
RATIO_ARITHMETIC_SD = {"same": 0.0, "fp32": 0.09, "tensor": 0.085, "vector": 0.25}
"""Device change by kin workloads whose two rows had the same software, or not; by other families; and arithmetic."""

TWIN_DISTANCE = 0.1
TWIN_SD, MODEL_SD, MODEL_OTHER_FAMILY_SD = 0.13, 0.18, 0.30
"""Another workload's row corrected by counted work: all counts within a tenth or so, the family, any other."""

BATCH_SD = 0.05
"""For each factor of e between the batches."""

SOFTWARE_SD = 0.07
OLD_SOFTWARE_SD = 0.10
OTHER_FRAMEWORK_SD = 0.25

OWN_ROW_LIMIT_SD = 0.4
"""A workload's own row is left for another's only where its budget is larger: it alone knows the workload's ways."""

FITTED_FAMILIES = ("cnn", "transformer")
FITTED_ARCHITECTURES = ("Pascal", "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper", "Blackwell")


class Part(NamedTuple):
    """One named error: log standard deviation."""

    name: str
    sd: float


@dataclass(frozen=True, slots=True)
class Path:
    """A rate with its error budget and what it stands on. row is None for the bare roofline."""

    rate: Estimate
    method: str
    row: Row | None
    steps: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class _Start:
    """The best row of one workload at one site. level: its residual; tensor: computed in tensor cores; sd: of row and
    model together."""

    workload: str
    site: Site
    row: Row
    level: float | None
    tensor: bool
    parts: tuple[Part, ...]
    sd: float


class _Bridge(NamedTuple):
    """A device change. shift: to add to the residual; proxy: the kin workload, None for specifications. sisters: cards
    whose kin tell how far cards of the target's architecture lie from their specifications."""

    sd: float
    shift: float
    proxy: str | None
    sisters: tuple[str, ...] = ()


class _Option(NamedTuple):
    """One whole path and its log sd."""

    sd: float
    start: _Start
    bridge: _Bridge


_STAY = _Bridge(0.0, 0.0, None)


@dataclass(frozen=True, slots=True)
class Paths:
    """All ways to predict one workload. Make it once, ask `best` for each accelerator."""

    workload: Workload
    evidence: Evidence
    assumptions: Assumptions
    work: Work
    starts: tuple[_Start, ...]
    proxies: Mapping[str, Residuals]
    kin: Mapping[str, bool]
    by_site: Mapping[Site, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(workload: Workload, evidence: Evidence, assumptions: Assumptions) -> Paths:
        own = (workload.name, *workload.measured_as)
        proxies = {name: r for name, r in evidence.proxies.items() if name not in own}
        by_site: dict[Site, list[str]] = {}
        for name, sites in proxies.items():
            for site in sites:
                by_site.setdefault(site, []).append(name)
        return Paths(
            workload,
            evidence,
            assumptions,
            work_of(workload),
            tuple(_starts(workload, own, evidence, assumptions)),
            proxies,
            {name: kindred(evidence.family[name], workload.family) for name in proxies},
            {site: tuple(names) for site, names in by_site.items()},
        )

    def best(self, accelerator: Accelerator) -> Path | None:
        """A current row of the workload there; else from a row of its own, if that is not hopelessly far; else the path
        with the smallest budget. None if nothing leads there."""
        site = Site(accelerator.id, arithmetic(self.workload.precision, accelerator))
        on = rates(accelerator, site.arithmetic)  # type: ignore[arg-type]
        if on is None:
            return self.measured(accelerator)
        options = [_Option(s.sd, s, _STAY) for s in self.starts if s.site == site and s.level is not None]
        own = [o for o in options if self._is_own(o.start)]
        if not any(not is_old(o.start.row.result.software) for o in own):
            options += [_Option(hypot(s.sd, b.sd), s, b) for s, b in self._bridged(accelerator, site, on.tensor)]
            own = [o for o in options if self._is_own(o.start) and o.sd < OWN_ROW_LIMIT_SD]
        chosen = min(own or options, key=lambda o: o.sd, default=None)
        bare = self._bare(accelerator, on)
        if chosen is None or (not own and chosen.sd >= bare.rate.log_sd):
            return bare
        return self._walked(chosen.start, chosen.bridge, accelerator, site, on)

    def _bridged(self, accelerator: Accelerator, site: Site, tensor: bool) -> Iterator[tuple[_Start, _Bridge]]:
        for start in self.starts:
            if start.site != site and start.level is not None:
                yield start, min(self._bridges(start, accelerator, site, tensor), key=lambda b: b.sd)

    def _bridges(self, start: _Start, accelerator: Accelerator, site: Site, tensor: bool) -> Iterator[_Bridge]:
        change = _change(start.site, site, start.tensor, tensor)
        source = self.evidence.accelerators[start.site.accelerator]
        same = source.architecture == accelerator.architecture
        sd = hypot(SPECS_SD[same], SPECS_ARITHMETIC_SD[change], _untried(accelerator))
        sisters = {} if same else self._sisters(start, accelerator, site)
        yield _Bridge(sd, fmean(sisters.values()) if sisters else 0.0, None, tuple(sisters))
        for name in self.by_site.get(site, ()):
            sites = self.proxies[name]
            if name != start.workload and start.site in sites:
                shift, same_software = _difference(sites[start.site], sites[site])
                table = RATIO_SD if self.kin[name] else RATIO_OTHER_FAMILY_SD
                yield _Bridge(hypot(table[same_software], RATIO_ARITHMETIC_SD[change]), shift, name)

    def _sisters(self, start: _Start, accelerator: Accelerator, site: Site) -> dict[str, float]:
        """Card of the target's architecture -> mean shift of its kin from the start's card, in the same arithmetic.

        Sister cards lie about equally far from their specifications; without this a card that nobody measured would
        stand above its measured sister.
        """
        shifts: dict[str, list[float]] = {}
        known = self.evidence.accelerators
        for other, names in self.by_site.items():
            if other.arithmetic != site.arithmetic or other.accelerator == accelerator.id:
                continue
            if known[other.accelerator].architecture != accelerator.architecture:
                continue
            for name in names:
                sites = self.proxies[name]
                if self.kin[name] and name != start.workload and start.site in sites:
                    shifts.setdefault(other.accelerator, []).append(_difference(sites[start.site], sites[other])[0])
        return {card: fmean(found) for card, found in sorted(shifts.items())}

    def _seconds(self, on: Rates) -> float:
        return seconds(self.work, on, self.workload.batch_per_accelerator, self.evidence.coefficients)

    def measured(self, accelerator: Accelerator) -> Path | None:
        """The best row of the very workload on that device as it stands; None if there is none."""
        site = Site(accelerator.id, arithmetic(self.workload.precision, accelerator))
        own = [s for s in self.starts if s.site == site and self._is_own(s)]
        if not own:
            return None
        start = min(own, key=lambda s: s.sd)
        return Path(_estimate(start.row.log_rate, start.parts, "measured"), "measured", start.row)

    def together(self, accelerator: Accelerator, n: int) -> Path | None:
        """The best current run of the very workload on n such devices at once; None if there is none."""
        site = Site(accelerator.id, arithmetic(self.workload.precision, accelerator))
        runs = [
            (row, tuple(_row_parts(row, self.workload, self.assumptions)))
            for name in (self.workload.name, *self.workload.measured_as)
            for row in self.evidence.several.get(name, ())
            if (row.result.accelerators, row.result.accelerator, row.result.precision) == (n, *site)
            and not is_old(row.result.software)
        ]
        if not runs:
            return None
        row, parts = min(runs, key=lambda run: hypot(*(p.sd for p in run[1])))
        on = self.evidence.rates(site)
        batch = row.result.batch_per_accelerator
        gain = log(seconds(self.work, on, batch, self.evidence.coefficients) / self._seconds(on)) if on else 0.0
        return Path(_estimate(row.log_rate + gain, parts, "measured"), "measured", row)

    def _is_own(self, start: _Start) -> bool:
        return start.workload in (self.workload.name, *self.workload.measured_as)

    def _walked(self, start: _Start, bridge: _Bridge, accelerator: Accelerator, site: Site, on: Rates) -> Path:
        moved = start.site != site
        other = not self._is_own(start)
        parts = [*start.parts]
        if moved:
            parts.append(Part(_bridge_name(bridge, start.site, site), bridge.sd))
        level = -log(self._seconds(on)) + (start.level or 0.0) + bridge.shift
        method = "measured" if not (moved or other) else "roofline" if moved and bridge.proxy is None else "ratio"
        if method != "measured":
            level = min(level, -log(ideal_seconds(self.work, on)))
            if on.derived and bridge.proxy is None:
                parts.append(Part(f"matrix rate of {accelerator.id}", DERIVED_RATE_SD))
        steps = (
            *_steps(self.workload, start, bridge if moved else None, other, accelerator, level),
            *self._flag(accelerator, on),
        )
        return Path(
            _estimate(level, parts, "measured" if method == "measured" else "predicted"), method, start.row, steps
        )

    def _flag(self, accelerator: Accelerator, on: Rates) -> tuple[Message, ...]:
        if on.tensor or self.workload.precision == "fp32":
            return ()
        return (Message("{name} has no tensor cores: it computes at its fp32 rate", name=accelerator.name),)

    def _bare(self, accelerator: Accelerator, on: Rates) -> Path:
        """Counted work on specifications, nothing measured."""
        known = any(kindred(self.workload.family, family) for family in FITTED_FAMILIES)
        parts = [Part("roofline", ROOFLINE_SD if known else ROOFLINE_OTHER_FAMILY_SD)]
        if untried := _untried(accelerator):
            parts.append(Part(f"roofline on {accelerator.id}", untried))
        if on.derived:
            parts.append(Part(f"matrix rate of {accelerator.id}", DERIVED_RATE_SD))
        slowest = max(self._seconds(on), ideal_seconds(self.work, on))
        step = Message("no measured row: counted work on the specifications of {name}", name=accelerator.name)
        return Path(
            _estimate(-log(slowest), parts, "predicted"), "roofline", None, (step, *self._flag(accelerator, on))
        )


def _starts(workload: Workload, own: tuple[str, ...], evidence: Evidence, assumptions: Assumptions) -> Iterator[_Start]:
    for name in dict.fromkeys((*own, *_neighbours(workload, own, evidence))):
        model = _model_parts(name, own, workload, evidence)
        work = work_of(workload) if name in own else evidence.work.get(name)
        for site, rows in evidence.rows.get(name, {}).items():
            budgets = [(*_row_parts(row, workload, assumptions), *model) for row in rows]
            budget, row = min(zip(budgets, rows, strict=True), key=lambda b: hypot(*(p.sd for p in b[0])))
            on = evidence.rates(site)
            if name not in own and (on is None or work is None):
                continue
            level = None if on is None or work is None else residual(row, work, on, evidence.coefficients)
            yield _Start(name, site, row, level, bool(on and on.tensor), budget, hypot(*(p.sd for p in budget)))


def _model_parts(name: str, own: tuple[str, ...], workload: Workload, evidence: Evidence) -> tuple[Part, ...]:
    if name in own:
        return ()
    kin = kindred(evidence.family[name], workload.family)
    twin = kin and name in evidence.work and _is_twin(workload, evidence.work[name])
    sd = TWIN_SD if twin else MODEL_SD if kin else MODEL_OTHER_FAMILY_SD
    return (Part(f"model {name} → {workload.name}", sd),)


def _neighbours(workload: Workload, own: tuple[str, ...], evidence: Evidence) -> Iterator[str]:
    """Measured workloads to start from: those the workload names, else the reference workloads of its family and, of
    all measured, the one whose counts are nearly its own."""
    if workload.nearest:
        yield from (name for name in workload.nearest if name in evidence.rows)
        return
    yield from (n for n in REFERENCE if n in evidence.rows and kindred(evidence.family[n], workload.family))
    twin = min(
        _kin_of(workload, own, evidence), key=lambda n: _distance(work_of(workload), evidence.work[n]), default=""
    )
    if twin and _is_twin(workload, evidence.work[twin]):
        yield twin


def _kin_of(workload: Workload, own: tuple[str, ...], evidence: Evidence) -> Iterator[str]:
    return (
        n for n in evidence.work if n not in own and n in evidence.rows and kindred(evidence.family[n], workload.family)
    )


def _is_twin(workload: Workload, other: Work) -> bool:
    return _distance(work_of(workload), other) < TWIN_DISTANCE


def _distance(a: Work, b: Work) -> float:
    return hypot(
        log(a.gmacs / b.gmacs), log(a.activations_m / b.activations_m), log(a.parameters_m / b.parameters_m) / 2
    )


def _row_parts(row: Row, workload: Workload, assumptions: Assumptions) -> Iterator[Part]:
    """Errors that come with the row itself. A run of one's own is how one trains: its memory format holds. The sign of
    the batch's error says on which side the row lies."""
    result = row.result
    yield Part(f"hosts differ, {result.accelerator}", assumptions["noise_other_machine_log_sd"].value)
    if row.own_sd:
        yield Part(f"measurement of {result.workload} on {result.accelerator}", row.own_sd)
    if not row.yours:
        yield _software_part(result.software or "")
    if batch := log(workload.batch_per_accelerator / result.batch_per_accelerator):
        yield Part("batch differs", BATCH_SD * batch)
    if (
        not row.yours
        and result.memory_format
        and workload.memory_format
        and result.memory_format != workload.memory_format
    ):
        yield Part("memory format differs", assumptions["noise_memory_format_log_sd"].value)


def _software_part(software: str) -> Part:
    if software.startswith("tensorflow"):
        return Part(f"framework differs, {software}", OTHER_FRAMEWORK_SD)
    return Part(f"software differs, {software or 'not stated'}", OLD_SOFTWARE_SD if is_old(software) else SOFTWARE_SD)


def _change(source: Site, target: Site, source_tensor: bool, target_tensor: bool) -> str:
    """Which units compute before and after: a step into or out of tensor cores is the least certain."""
    if source_tensor != target_tensor:
        return "vector"
    if source.arithmetic == target.arithmetic:
        return "same" if source_tensor else "fp32"
    return "tensor" if source_tensor else "vector"


def _difference(source: Mapping[str, float], target: Mapping[str, float]) -> tuple[float, bool]:
    """Residual at the target less that at the source, over the software they share, else over all; and which."""
    if shared := source.keys() & target.keys():
        return fmean(target[s] - source[s] for s in shared), True
    return fmean(target.values()) - fmean(source.values()), False


def _untried(accelerator: Accelerator) -> float:
    if accelerator.architecture in FITTED_ARCHITECTURES:
        return 0.0
    return NEW_ARCHITECTURE_SD if accelerator.architecture in SINCE_AMPERE else UNTRIED_SD


def _estimate(level: float, parts: Iterable[Part], basis: str) -> Estimate:
    named: dict[str, float] = {}
    for part in parts:
        named[part.name] = hypot(named[part.name], part.sd) if part.name in named else part.sd
    return Estimate(value=exp(level), spread=tuple(sorted(named.items())), basis=basis)


def _bridge_name(bridge: _Bridge, source: Site, target: Site) -> str:
    by = f"ratio {bridge.proxy}" if bridge.proxy else "specifications"
    same = source.arithmetic == target.arithmetic
    return f"{by} {_place(source, same)} → {_place(target, same)}"


def _place(site: Site, plain: bool) -> str:
    return site.accelerator if plain else f"{site.accelerator} {site.arithmetic}"


def _steps(
    workload: Workload, start: _Start, bridge: _Bridge | None, other: bool, target: Accelerator, level: float
) -> tuple[Message, ...]:
    """Each step after the row, in words, with its factor where there is one."""
    steps = []
    if other:
        steps.append(
            Message(
                "corrected from {model} to {workload} by counted work", model=start.workload, workload=workload.name
            )
        )
    if bridge is not None and bridge.proxy:
        steps.append(
            Message(
                "× {ratio:.3g} in all, since {proxy} was measured on both {source} and {target}",
                ratio=exp(level - start.row.log_rate),
                proxy=bridge.proxy,
                source=start.site.accelerator,
                target=target.id,
            )
        )
    elif bridge is not None:
        steps.append(
            Message(
                "× {ratio:.3g} in all, by the specifications of {source} and {target}",
                ratio=exp(level - start.row.log_rate),
                source=start.site.accelerator,
                target=target.id,
            )
        )
        if bridge.sisters:
            steps.append(
                Message(
                    "in it × {factor:.3g} for what {sisters} of the same architecture reach of their specifications",
                    factor=exp(bridge.shift),
                    sisters=", ".join(bridge.sisters),
                )
            )
    return tuple(steps)
