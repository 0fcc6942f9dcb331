"""From one device to n: data-parallel steps that wait for the slowest and for a ring all-reduce of the gradients.

    step of n = step of one + 2·(n − 1)/n · (s · step of one + c · gradient bytes)

s: share of a step lost to unequal devices and hosts. c: seconds that a step waits for each GB (ring: Patarasuk and
Yuan, JPDC 69(2), 2009). Both start at what the class of the link is known for; runs on several such devices (same batch
and software as a run on one) move them as far as they are many and agree. Efficiency never exceeds 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import hypot, log2, sqrt
from statistics import median
from typing import NamedTuple

from gpuwise.errors import Message
from gpuwise.model import Accelerator, BenchmarkResult, Platform, Workload
from gpuwise.predict.evidence import Evidence, Site, is_old
from gpuwise.predict.reference import REFERENCE

UNEVEN = {"NVLink": 0.010, "PCIe": 0.010, "PCIe, consumer": 0.016, "network": 0.03}
WAIT_S_PER_GB = {"NVLink": 0.008, "PCIe": 0.019, "PCIe, consumer": 0.13, "network": 0.4}
"""s and c of a class: robust fits to the bundled CNN and BERT rows, each card with the same weight; the network is
assumed: 25 Gbit/s Ethernet at line rate."""

NVLINK_GB_PER_S = 600.0
"""Of a device, both directions together, for which the NVLink figure holds (A100); other NVLinks wait in proportion."""

UNEVEN_SD, WAIT_SD = 1.0, 0.8
"""How much cards of one class differ, as a share of the class figure."""

ROW_SD = {"own": (0.01, 0.3), "kin": (0.03, 1.0), "sister": (0.06, 2.0)}
OLD_ROW = 2.0
"""Of the loss in one row of the very workload, of its kin, or of either on cards of the same architecture and link: at
least, and as a share of what the class expects; and times as much with old software, which overlapped less."""

MACHINE_SD = {"NVLink": 0.008, "PCIe": 0.018, "PCIe, consumer": 0.04, "network": 0.10}
LOSS_SD = {True: 0.3, False: 0.4}
DOUBTFUL_LINK_SD = 0.03
"""Log sd of the efficiency, beside the errors of s and c: how machines of one class differ, for each doubling of
devices; a share of what is lost, where the workload itself was measured on several or not; and an unstated link."""

JOB_ROWS = 4
"""The class weighs as much as so many rows of the very workload, on any cards, in what is lost to unevenness."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """What n devices reach of n times one. own: the workload itself was measured on several. evidence: in words."""

    efficiency: float
    own: bool
    sd: float
    name: str
    evidence: Message


class _Loss(NamedTuple):
    """One row, for each 2·(n − 1)/n: share of a step lost, and GB of gradients for each second of a step."""

    lost: float
    gb_per_s: float
    old: bool


class _Line(NamedTuple):
    """lost = s + c · gb_per_s, with variances and covariance."""

    s: float
    c: float
    var_s: float
    var_c: float
    covariance: float

    def sd(self, gb_per_s: float) -> float:
        return sqrt(max(self.var_s + 2 * gb_per_s * self.covariance + gb_per_s**2 * self.var_c, 0.0))


@dataclass(frozen=True, slots=True)
class Losses:
    """What runs on several devices lost: card -> rows of the very workload, of its kin. cards: those of both. uneven:
    share of a step that the workload loses to unevenness on whatever cards it was measured, None where it was not."""

    own: Mapping[str, tuple[_Loss, ...]]
    kin: Mapping[str, tuple[_Loss, ...]]
    cards: tuple[Accelerator, ...]
    uneven: float | None
    lines: dict[tuple[str, str], tuple[_Line, str]] = field(default_factory=dict)

    @staticmethod
    def of(workload: Workload, evidence: Evidence) -> Losses:
        names = (workload.name, *workload.measured_as)
        own = _losses(dict.fromkeys(names, workload.parameters_m), evidence)
        kin = _losses({n: work.parameters_m for n, work in REFERENCE.items() if n not in names}, evidence)
        known = evidence.accelerators
        uneven = [
            max(row.lost - _wait_s_per_gb(known[name], _usual_link(known[name])) * row.gb_per_s, 0.0)
            for name, rows in own.items()
            for row in rows
        ]
        cards = tuple(known[name] for name in dict.fromkeys((*own, *kin)))
        return Losses(own, kin, cards, median((*uneven, *JOB_ROWS * (0.0,))) if uneven else None)

    def line(self, accelerator: Accelerator, link: str) -> tuple[_Line, str]:
        """What a step loses on this card, and the nearest rows that say so."""
        key = (accelerator.id, link)
        if key not in self.lines:
            rows, more = self._near(accelerator, link), max((self.uneven or 0.0) - UNEVEN[link], 0.0)
            line = _fitted(_prior(accelerator, link), rows, more)
            line = line._replace(s=max(line.s, 0.0) + more, c=max(line.c, 0.0))
            self.lines[key] = line, next(iter(rows), "class")
        return self.lines[key]

    def _near(self, accelerator: Accelerator, link: str) -> dict[str, tuple[_Loss, ...]]:
        """Rows of this card, and of cards like it, by their nearness."""
        if link == "network":
            return {}
        sisters = [
            row
            for card in self.cards
            if card.id != accelerator.id
            and card.architecture == accelerator.architecture
            and link == _usual_link(card) == _usual_link(accelerator)
            for row in (*self.own.get(card.id, ()), *self.kin.get(card.id, ()))
        ]
        near = {"own": self.own.get(accelerator.id, ()), "kin": self.kin.get(accelerator.id, ())}
        return {kind: rows for kind, rows in {**near, "sister": tuple(sisters)}.items() if rows}


def scaling(workload: Workload, accelerator: Accelerator, platform: Platform, rate_1: float, losses: Losses) -> Scaling:
    """rate_1: samples/s of one device."""
    n, link = platform.accelerators, link_class(accelerator, platform)
    line, nearest = losses.line(accelerator, link)
    gb_per_s = _gradient_gb(workload.parameters_m) * rate_1 / workload.batch_per_accelerator
    around, own = 2 * (n - 1) / n, nearest == "own"
    efficiency = 1 / (1 + around * (line.s + line.c * gb_per_s))
    sd = hypot(around * efficiency * line.sd(gb_per_s), LOSS_SD[own] * (1 - efficiency), MACHINE_SD[link] * log2(n))
    if platform.link is None and nearest in ("sister", "class"):
        sd = hypot(sd, DOUBTFUL_LINK_SD)
    values = {"n": n, "efficiency": efficiency, "factor": n * efficiency, "name": accelerator.name, "link": link}
    text = Message(EVIDENCE[nearest], **values)
    return Scaling(efficiency, own, sd, f"scaling ×{n} {link} {accelerator.id}", text)


EVIDENCE = {
    "own": "× {n} × {efficiency:.3f}: it was measured on several {name}",
    "kin": "× {n} × {efficiency:.3f}: its kin were measured on several {name}",
    "sister": "× {n} × {efficiency:.3f}: usual for {link}, and for cards like {name}",
    "class": "× {n} × {efficiency:.3f}: usual for {link}",
}


def link_class(accelerator: Accelerator, platform: Platform) -> str:
    """NVLink, PCIe, PCIe of consumer cards (no direct traffic) or network; by form factor if not stated."""
    if platform.nodes > 1:
        return "network"
    link = platform.link or ("NVLink" if accelerator.form_factor.startswith(("SXM", "superchip")) else "PCIe")
    if "nvlink" in link.casefold():
        return "NVLink"
    return "PCIe, consumer" if accelerator.name.startswith(("GeForce", "TITAN")) else "PCIe"


def _usual_link(accelerator: Accelerator) -> str:
    return link_class(accelerator, Platform(variants=(accelerator,)))


def _gradient_gb(parameters_m: float) -> float:
    """GB of 4-byte gradients."""
    return 4e-3 * parameters_m


def _wait_s_per_gb(accelerator: Accelerator, link: str) -> float:
    faster = accelerator.link_gb_per_s / NVLINK_GB_PER_S if link == "NVLink" and accelerator.link_gb_per_s else 1.0
    return WAIT_S_PER_GB[link] / faster


def _prior(accelerator: Accelerator, link: str) -> _Line:
    """What the class of the link is known for."""
    s, c = UNEVEN[link], _wait_s_per_gb(accelerator, link)
    return _Line(s, c, (UNEVEN_SD * s) ** 2, (WAIT_SD * c) ** 2, 0.0)


def _fitted(prior: _Line, rows: Mapping[str, Iterable[_Loss]], more: float) -> _Line:
    """Bayesian linear regression with the class as its prior: two normal equations. more: of every row of the very
    workload, lost to its own unevenness."""
    a, b, d = 1 / prior.var_s, 0.0, 1 / prior.var_c
    u, v = prior.s / prior.var_s, prior.c / prior.var_c
    for kind, row in ((kind, row) for kind, found in rows.items() for row in found):
        least, share = ROW_SD[kind]
        sd = hypot(least, share * (prior.s + prior.c * row.gb_per_s)) * OLD_ROW**row.old
        lost, weight = row.lost - more * (kind == "own"), 1 / sd**2
        a, b, d = a + weight, b + weight * row.gb_per_s, d + weight * row.gb_per_s**2
        u, v = u + weight * lost, v + weight * row.gb_per_s * lost
    det = a * d - b * b
    return _Line((d * u - b * v) / det, (a * v - b * u) / det, d / det, a / det, -b / det)


def _losses(parameters_m: Mapping[str, float], evidence: Evidence) -> dict[str, tuple[_Loss, ...]]:
    """Card -> every measured run of these workloads on several, where one was measured alike."""
    found: dict[str, list[_Loss]] = {}
    for name, size in parameters_m.items():
        for run in (row.result for row in evidence.several.get(name, ())):
            if run.accelerator in evidence.accelerators and (one := same_on_one(run, evidence)):
                n = run.accelerators
                lost = (n * one / run.samples_per_s - 1) * n / (2 * (n - 1))
                row = _Loss(lost, _gradient_gb(size) * one / run.batch_per_accelerator, is_old(run.software))
                found.setdefault(run.accelerator, []).append(row)
    return {card: tuple(rows) for card, rows in found.items()}


def same_on_one(run: BenchmarkResult, evidence: Evidence) -> float | None:
    """samples/s of one device at the same batch with the same software."""
    rows = evidence.rows.get(run.workload, {}).get(Site(run.accelerator, run.precision), ())
    return next(
        (
            row.result.samples_per_s
            for row in rows
            if not row.shared
            and (row.result.batch_per_accelerator, row.result.software) == (run.batch_per_accelerator, run.software)
        ),
        None,
    )
