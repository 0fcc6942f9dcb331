"""Scales and posterior from measured rows: what `make fit` does once, and a user's machine never.

The marginal likelihood is worked out in the space of the features, workload by workload (Woodbury), with its analytic
gradient: for a block of n_b coefficients, ∂ ln p/∂ ln σ_b = Σ (E[β²]/σ_b²) − n_b; for a component C_c,
∂ ln p/∂ ln σ_c = σ_c²·(αᵀ·C_c·α − tr(K⁻¹·C_c)). Source: C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for
Machine Learning, 2006, eq. 5.9.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from gpuwise.model import Accelerator, Precision
from gpuwise.predict.cells import KIN, Cells, Floats, Ints, cells, runnable
from gpuwise.predict.features import COMPONENTS, FIXED, NOISES, Basis, Smooth, components, full_counts, noise_kind
from gpuwise.predict.gp import START, Layout, Posterior, Scales, laid_out
from gpuwise.predict.roofline import arithmetic
from gpuwise.predict.setting import Reading, Setting

WIDTH = 1.0
"""Of the log-normal prior on every scale, around where the fit starts."""

BOUNDS = (log(0.003), log(5.0))


class _Alike(NamedTuple):
    """Workloads with the same number of rows, so that they go through linear algebra together.

    rows: (workloads, n); kernels: (workloads, components, n, n); noise: index into NOISES, (workloads, n).
    """

    rows: Ints
    kernels: Floats
    noise: Ints

    def take(self, keep: NDArray[np.bool_]) -> _Alike:
        return _Alike(self.rows[keep], self.kernels[keep], self.noise[keep])


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """All that does not depend on the scales. residual: ln rate less the roofline, (n,)."""

    basis: Basis
    layout: Layout
    residual: Floats
    workloads: dict[str, Ints]
    alike: tuple[_Alike, ...]
    cells: Cells

    @staticmethod
    def of(readings: Sequence[Reading], basis: Basis) -> Design:
        """readings: of one device each."""
        c = cells([r.setting for r in readings])
        groups: dict[str, list[int]] = defaultdict(list)
        for row, name in enumerate(c.workload):
            groups[name].append(row)
        workloads = {name: np.array(rows) for name, rows in groups.items()}
        return Design(
            basis=basis,
            layout=laid_out(c, basis, {}, ()),
            residual=np.array([log(r.samples_per_s) for r in readings]) - c.mean,
            workloads=workloads,
            alike=tuple(_alike(c, basis, workloads.values())),
            cells=c,
        )

    def without(self, names: Iterable[str]) -> Design:
        """Less whole workloads; the columns stay."""
        out = set(names)
        left = {name: rows for name, rows in self.workloads.items() if name not in out}
        keep = np.zeros(len(self.residual), bool)
        for rows in left.values():
            keep[rows] = True
        alike = tuple(group.take(keep[group.rows[:, 0]]) for group in self.alike)
        alike = tuple(a for a in alike if len(a.rows))
        return replace(self, workloads=left, alike=alike)


def _alike(c: Cells, basis: Basis, workloads: Iterable[Ints]) -> Iterable[_Alike]:
    sizes: dict[int, list[Ints]] = defaultdict(list)
    for rows in workloads:
        sizes[len(rows)].append(rows)
    kinds = list(NOISES)
    for groups in sizes.values():
        kernels = [components(c, basis, rows, float(c.batch[rows].mean())) for rows in groups]
        noise = [[kinds.index(noise_kind(c, row)) for row in rows] for rows in groups]
        yield _Alike(np.array(groups), np.array(kernels), np.array(noise))


ANCHORS = 150
"""Networks on which the smooth functions of counts stand."""


def basis(accelerators: Iterable[Accelerator], rows: Sequence[Setting]) -> Basis:
    """Smooth functions over the data sheets of all NVIDIA cards, and over the counts of the rows' networks."""
    bare = [
        Setting(workload="", family=None, accelerator=card, precision=precision, batch=1)
        for card in accelerators
        for precision in ANCHOR_PRECISIONS
        if card.vendor == "NVIDIA" and runnable(card, arithmetic(precision, card))
    ]
    sheets = np.unique(np.round(cells(bare).sheet[:, :3], 6), axis=0)
    networks = cells(list({s.workload: s for s in rows if s.work is not None}.values()))
    drawn = np.random.default_rng(SEED).permutation(len(networks))
    full = [row for row in drawn if networks.full[row]][: 2 * ANCHORS]
    return Basis(
        sheet=Smooth.of(sheets, 1.0, 1e-2),
        counts=Smooth.of(networks.counts[drawn[:ANCHORS]], 1.5, 1e-2),
        more=Smooth.of(full_counts(networks)[full or [0]], 2.0, 1e-2),
    )


ANCHOR_PRECISIONS: tuple[Precision, ...] = ("fp32", "amp")
SEED = 20261130


class _Sums(NamedTuple):
    """Of all workloads: ΦᵀB⁻¹Φ, ΦᵀB⁻¹r, rᵀB⁻¹r, ln |B|; and B⁻¹, B⁻¹Φ, B⁻¹r of each group."""

    precision: Floats
    pull: Floats
    quadratic: float
    log_determinant: float
    kept: list[tuple[Floats, Floats, Floats]]


def _sums(design: Design, scales: Scales) -> _Sums:
    m = len(design.layout.block)
    precision, pull, quadratic, determinant, kept = np.zeros((m, m)), np.zeros(m), 0.0, 0.0, []
    weights, noises = _weights(scales)
    for group in design.alike:
        n = group.rows.shape[1]
        covariance = np.einsum("c,wcij->wij", weights**2, group.kernels)
        covariance[:, np.arange(n), np.arange(n)] += noises[group.noise] ** 2
        determinant += float(np.linalg.slogdet(covariance)[1].sum())
        inverse = np.linalg.inv(covariance)
        features, residual = design.layout.values[group.rows], design.residual[group.rows]
        scaled = inverse @ features
        moved = np.einsum("wij,wj->wi", inverse, residual)
        precision += features.reshape(-1, m).T @ scaled.reshape(-1, m)
        pull += features.reshape(-1, m).T @ moved.ravel()
        quadratic += float((residual * moved).sum())
        kept.append((inverse, scaled, moved))
    return _Sums(precision, pull, quadratic, determinant, kept)


def _weights(scales: Scales) -> tuple[Floats, Floats]:
    own = np.array([scales.components[name] for name in COMPONENTS])
    return own, np.array([scales.noises[name] for name in NOISES])


def log_likelihood(design: Design, scales: Scales) -> tuple[float, Scales]:
    """Log marginal likelihood less a constant, and its derivatives by the logarithm of each scale."""
    sums = _sums(design, scales)
    prior = np.array([scales.blocks[name] for name in design.layout.block]) ** 2
    precision = sums.precision + np.diag(1 / prior)
    covariance = np.asarray(np.linalg.inv(precision), np.float64)
    mean = covariance @ sums.pull
    determinant = sums.log_determinant + np.log(prior).sum() + np.linalg.slogdet(precision)[1]
    value = -0.5 * (sums.quadratic - sums.pull @ mean + determinant)
    excess = (mean**2 + np.diag(covariance)) / prior - 1
    by_block = dict.fromkeys(scales.blocks, 0.0)
    for name, each in zip(design.layout.block, excess.tolist(), strict=True):
        by_block[name] += each
    own, noise = _own_slopes(design, scales, sums, mean, covariance)
    return float(value), Scales(blocks=by_block, components=own, noises=noise)


def _own_slopes(
    design: Design, scales: Scales, sums: _Sums, mean: Floats, covariance: Floats
) -> tuple[dict[str, float], dict[str, float]]:
    """Derivatives by components and noises."""
    weights, noises = _weights(scales)
    own, noise, m = np.zeros(len(weights)), np.zeros(len(noises)), len(mean)
    for group, (inverse, scaled, moved) in zip(design.alike, sums.kept, strict=True):
        alpha = moved - scaled @ mean
        spread = (scaled.reshape(-1, m) @ covariance).reshape(scaled.shape)
        slope = alpha[:, :, None] * alpha[:, None, :] - (inverse - spread @ scaled.transpose(0, 2, 1))
        own += np.einsum("wij,wcij->c", slope, group.kernels) * weights**2
        diagonal = np.diagonal(slope, axis1=1, axis2=2) * noises[group.noise] ** 2
        noise += np.bincount(group.noise.ravel(), weights=diagonal.ravel(), minlength=len(noises))
    return dict(zip(COMPONENTS, own.tolist(), strict=True)), dict(zip(NOISES, noise.tolist(), strict=True))


def fit_scales(design: Design, iterations: int = 22) -> Scales:
    """Largest marginal likelihood with a log-normal prior on each scale (L-BFGS)."""
    names = [n for n in _names(START) if n[1] not in FIXED]
    middle = np.log([getattr(START, kind)[name] for kind, name in names])

    def loss(x: Floats) -> tuple[float, Floats]:
        value, slopes = log_likelihood(design, _scales(names, x))
        away = (x - middle) / WIDTH
        gradient = np.array([getattr(slopes, kind)[name] for kind, name in names]) - away / WIDTH
        return -(value - 0.5 * float(away @ away)), -gradient

    options = {"maxiter": iterations}
    found = minimize(loss, middle, jac=True, method="L-BFGS-B", bounds=[BOUNDS] * len(names), options=options)
    return _scales(names, found.x)


def _names(scales: Scales) -> list[tuple[str, str]]:
    return [(kind, name) for kind in ("blocks", "components", "noises") for name in getattr(scales, kind)]


def _scales(names: Sequence[tuple[str, str]], logs: Floats) -> Scales:
    found: dict[str, dict[str, float]] = {k: dict(getattr(START, k)) for k in ("blocks", "components", "noises")}
    for (kind, name), value in zip(names, np.exp(logs).tolist(), strict=True):
        found[kind][name] = value
    return Scales(blocks=found["blocks"], components=found["components"], noises=found["noises"])


def posterior(design: Design, scales: Scales) -> Posterior:
    """The coefficients, given all rows of the design."""
    sums = _sums(design, scales)
    prior = np.array([scales.blocks[name] for name in design.layout.block]) ** 2
    covariance = np.linalg.inv(sums.precision + np.diag(1 / prior))
    return Posterior(
        scales=scales,
        basis=design.basis,
        starts=design.layout.starts,
        block=design.layout.block,
        mean=covariance @ sums.pull,
        covariance=covariance,
        **_seen(design),
    )


SEVERAL_CARDS = 6
"""A family whose networks were measured on fewer cards is not known from card to card."""


def _seen(design: Design) -> dict[str, frozenset[str]]:
    """Workloads by mode, cards, architectures and families of the rows."""
    rows = [row for found in design.workloads.values() for row in found.tolist()]
    c, cards_of = design.cells, defaultdict(set)
    for row in rows:
        cards_of[KIN.get(c.family[row], c.family[row])].add(c.card[row])
    return {
        "workloads": frozenset(c.workload[row] for row in rows if not c.inference[row]),
        "answering": frozenset(c.workload[row] for row in rows if c.inference[row]),
        "cards": frozenset(c.card[row] for row in rows),
        "architectures": frozenset(c.architecture[row] for row in rows),
        "families": frozenset(name for name, cards in cards_of.items() if len(cards) >= SEVERAL_CARDS),
    }


def usable(readings: Iterable[Reading]) -> list[Reading]:
    """Those of one device whose rates some table states."""
    return [
        r for r in readings if r.setting.accelerators == 1 and runnable(r.setting.accelerator, r.setting.arithmetic)
    ]
