"""What devices do beyond the roofline: residuals of kin rows, pooled over devices that are alike.

A residual is read as a sum of independent normal parts: of the workload (and its arithmetic), of the era of software in
this arithmetic, of the architecture, of the data sheet (devices of nearly the same figures behave nearly alike), of the
card, and noise. So a single noisy row is drawn towards its sisters, and a card without a row gets what its sisters do,
with the error that is left.

    mean = k·(K + N)⁻¹·r        covariance = k* − k·(K + N)⁻¹·kᵀ

Source: C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, eq. 2.23 and 2.24.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwise.model import Accelerator
from gpuwise.predict.evidence import Observation, Site, site_rates
from gpuwise.predict.roofline import Rates

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooling:
    """Log standard deviations of the parts; `distance`: e-folds of rate, bandwidth and power a rate within which data
    sheets are alike. Parts with _family are of one family, the others of all."""

    workload: float
    workload_arithmetic: float
    era_family: float
    architecture: float
    sheet: float
    sheet_family: float
    card: float
    card_family: float
    distance: float
    noise: float
    noise_foreign: float


POOLING = Pooling(
    workload=0.056,
    workload_arithmetic=0.127,
    era_family=0.092,
    architecture=0.083,
    sheet=0.073,
    sheet_family=0.110,
    card=0.036,
    card_family=0.041,
    distance=0.844,
    noise=0.058,
    noise_foreign=0.040,
)
"""Largest marginal likelihood: `python benchmarks/accuracy_first.py --fit` finds these again."""

SHARED_SD = 0.06
"""Of one device's rate in a run on several, beside the noise."""


def log_evidence(rows: Sequence[Observation], accelerators: Mapping[str, Accelerator], p: Pooling) -> float:
    """Log marginal likelihood of the rows, less a constant (ibid., eq. 2.30)."""
    place = {place.site: place for place in _places(accelerators, (row.site for row in rows))}
    seen = [row for row in rows if row.site in place]
    there = _Columns.of([place[row.site] for row in seen], (row.family for row in seen), {})
    lower = np.linalg.cholesky(_known(seen, there, p))
    white = np.linalg.solve(lower, np.array([row.residual for row in seen]))
    return float(-white @ white / 2 - np.log(np.diag(lower)).sum())


class Step(NamedTuple):
    """To add to a residual, and its log sd: of the source, shared by all steps from there, and of the target."""

    shift: float
    source_sd: float
    target_sd: float

    @property
    def sd(self) -> float:
        return hypot(self.source_sd, self.target_sd)


STAY = Step(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Reached:
    """Posterior of one family. nodes: sites, then (era, arithmetic). mean: shape (nodes,). covariance, and likeness as
    it was before any row: shape (nodes, nodes). kin: site -> workloads of the family measured there."""

    nodes: Mapping[tuple[str, str], int]
    mean: Floats
    covariance: Floats
    kin: Mapping[Site, tuple[str, ...]]
    likeness: Floats

    @staticmethod
    def of(
        rows: Sequence[Observation],
        family: str,
        accelerators: Mapping[str, Accelerator],
        sites: Iterable[Site],
        p: Pooling = POOLING,
    ) -> Reached:
        """family: `evidence.kind` of the workload. sites: those to be asked about, beside those of the rows."""
        places = _places(accelerators, (*sites, *(row.site for row in rows)))
        index: dict[tuple[str, str], int] = {place.site: i for i, place in enumerate(places)}
        seen = [row for row in rows if row.site in index]
        eras = sorted({(row.era, row.site.arithmetic) for row in seen if row.era})
        code: dict[str, int] = {}
        everywhere = _Columns.of(places, (family for _ in places), code)
        there = _Columns.of([places[index[row.site]] for row in seen], (row.family for row in seen), code)
        cross = np.vstack((_alike(everywhere, there, p), p.era_family**2 * _same_era(eras, seen, family)))
        prior = np.zeros((len(cross), len(cross)))
        prior[: len(places), : len(places)] = _alike(everywhere, everywhere, p)
        prior[len(places) :, len(places) :] = p.era_family**2 * np.eye(len(eras))
        gain = np.linalg.solve(_known(seen, there, p), cross.T) if seen else cross.T
        return Reached(
            nodes={**index, **{node: len(places) + i for i, node in enumerate(eras)}},
            mean=gain.T @ np.array([row.residual for row in seen]),
            covariance=prior - cross @ gain,
            kin=_kin(seen, family),
            likeness=prior,
        )

    def level(self, site: Site, era: str) -> float:
        """What the family reaches at one site with this software: ln of its rate over the roofline."""
        node = self.nodes.get((era, site.arithmetic))
        return float(self.mean[self.nodes[site]] + (0.0 if node is None else self.mean[node]))

    def device(self, source: Site, target: Site) -> Step:
        """From what the family reaches at one site to what it reaches at another."""
        return self._between(self.nodes[source], self.nodes[target])

    def software(self, arithmetic: str, old: str | None, new: str | None) -> Step:
        """From one era to another; no step where either is unknown."""
        source, target = self.nodes.get((old or "", arithmetic)), self.nodes.get((new or "", arithmetic))
        return STAY if source is None or target is None else self._between(source, target)

    def sister(self, site: Site) -> str | None:
        """The measured card most like this one, by architecture and data sheet."""
        row = self.nodes[site]
        return max(self.kin, key=lambda s: self.likeness[row, self.nodes[s]], default=Site("", "")).accelerator or None

    def _between(self, source: int, target: int) -> Step:
        shared = self.covariance[source, target]
        here, there = (float(self.covariance[node, node] - shared) for node in (source, target))
        if min(here, there) < 0:
            here, there = (0.0, here + there) if here < there else (here + there, 0.0)
        return Step(float(self.mean[target] - self.mean[source]), sqrt(max(here, 0.0)), sqrt(max(there, 0.0)))


class _Place(NamedTuple):
    site: Site
    architecture: str
    on: Rates


class _Columns(NamedTuple):
    """Places in columns, names as codes; sheet: shape (places, 3)."""

    card: Codes
    architecture: Codes
    arithmetic: Codes
    family: Codes
    sheet: Floats

    @staticmethod
    def of(places: Sequence[_Place], families: Iterable[str], code: dict[str, int]) -> _Columns:
        return _Columns(
            _codes((p.site.accelerator for p in places), code),
            _codes((p.architecture for p in places), code),
            _codes((p.site.arithmetic for p in places), code),
            _codes(families, code),
            np.array([_sheet(p.on) for p in places]).reshape(-1, 3),
        )


def _codes(names: Iterable[str], code: dict[str, int]) -> Codes:
    """A number for each name, the same for the same name."""
    return np.array([code.setdefault(name, len(code)) for name in names], np.int64)


def _sheet(on: Rates) -> tuple[float, float, float]:
    return log(on.peak_tflops), log(on.bandwidth_gb_per_s), log(on.w_per_tflops)


def _places(accelerators: Mapping[str, Accelerator], sites: Iterable[Site]) -> list[_Place]:
    """Each site once, if its rates are known."""
    return [
        _Place(site, accelerators[site.accelerator].architecture, on)
        for site in dict.fromkeys(sites)
        if (on := site_rates(site, accelerators))
    ]


def _alike(a: _Columns, b: _Columns, p: Pooling) -> Floats:
    """Prior covariance of what is reached, shape (a, b)."""
    family = _equal(a.family, b.family)
    card, arithmetic = _equal(a.card, b.card), _equal(a.arithmetic, b.arithmetic)
    distance = sum((x[:, None] - y) ** 2 for x, y in zip(a.sheet.T, b.sheet.T, strict=True)) / p.distance**2
    found: Floats = np.exp(-distance / 2) * (p.sheet**2 + p.sheet_family**2 * family)
    found += p.architecture**2 * (arithmetic & _equal(a.architecture, b.architecture))
    found += p.card**2 * card + p.card_family**2 * (card & arithmetic & family)
    return found


def _known(rows: Sequence[Observation], there: _Columns, p: Pooling) -> Floats:
    """Covariance of the rows, noise included."""
    workload = _codes((row.workload for row in rows), {})
    era = _codes((row.era or "" for row in rows), {})
    arithmetic = _equal(there.arithmetic, there.arithmetic)
    same = _equal(workload, workload)
    found = _alike(there, there, p) + np.diag([_noise(row, p) ** 2 for row in rows])
    found += p.workload**2 * same + p.workload_arithmetic**2 * (same & arithmetic)
    found += p.era_family**2 * (_equal(era, era) & arithmetic & _equal(there.family, there.family))
    return found


def _noise(row: Observation, p: Pooling) -> float:
    return hypot(p.noise, p.noise_foreign * row.foreign, SHARED_SD * row.shared) / row.device_share


def _same_era(eras: Sequence[tuple[str, str]], rows: Sequence[Observation], family: str) -> Floats:
    return np.array([[(r.era, r.site.arithmetic, r.family) == (*e, family) for r in rows] for e in eras]).reshape(
        len(eras), len(rows)
    )


def _kin(rows: Iterable[Observation], family: str) -> dict[Site, tuple[str, ...]]:
    found: dict[Site, dict[str, None]] = {}
    for row in rows:
        if row.family == family:
            found.setdefault(row.site, {})[row.workload] = None
    return {site: tuple(names) for site, names in found.items()}


def _equal(a: Codes, b: Codes) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = a[:, None] == b
    return found
