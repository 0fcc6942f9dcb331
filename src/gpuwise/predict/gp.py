"""A Gaussian process in the space of its features: posterior and prediction, with numpy alone.

The coefficients β of the blocks have the posterior N(mean, Σ); what is particular to a workload is worked out from that
workload's rows when it is asked for. With T the rows of the workload that the posterior has seen, B their covariance
given β, and k the covariance between an asked row and T:

    E = Φ*·β + k·B⁻¹·(y − Φ_T·β)          Var = k** − k·B⁻¹·kᵀ + (Φ* − k·B⁻¹·Φ_T)·Σ·(Φ* − k·B⁻¹·Φ_T)ᵀ

Rows that it has not seen (the person's own) then condition the joint distribution as usual. Source: C. E. Rasmussen and
C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, eq. 2.23, 2.24 and §2.7 (explicit basis functions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwise.predict.cells import Cells, Floats, Ints, canonical, cells
from gpuwise.predict.features import (
    BLOCKS,
    COMPONENTS,
    NOISES,
    PARTS,
    Basis,
    blocks,
    component_variances,
    components,
    noise_kind,
)
from gpuwise.predict.setting import Reading, Setting

OWN_WAYS = "own"
"""The part of a workload's own components: what its measured rows say of it."""

TOLD = (*PARTS, OWN_WAYS)

Start = tuple[str, str]
"""Block and key: where the coefficients of one key begin."""


SETUP_SD = 0.1
"""How much a person's set-up (host, container, minor versions) is faster or slower than those of the tables, on every
card alike: another minor version of PyTorch 2 to 14 %, another builder's host 2 to 5 % (benchmark tables of Lambda and
timm)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Standard deviations of blocks, components and noises, by name."""

    blocks: Mapping[str, float]
    components: Mapping[str, float]
    noises: Mapping[str, float]


START = Scales(blocks=BLOCKS, components=COMPONENTS, noises=NOISES)


class Layout(NamedTuple):
    """values: features (n, m). starts: first column of each block and key. block: of each column (m,)."""

    values: Floats
    starts: Mapping[Start, int]
    block: tuple[str, ...]


class Joint(NamedTuple):
    """ln samples/s of one device on the n asked rows. variance: (n,), without noise; noise: its sd (n,).

    nominal: of the roofline alone; parts: what each of TOLD adds to it, (n, parts). shares: of the variance without
    noise, by part, (n, parts); a row adds up to 1. pull: how much each reading moves each row, (n, readings).
    """

    nominal: Floats
    mean: Floats
    variance: Floats
    noise: Floats
    parts: Floats
    shares: Floats
    pull: Floats

    @property
    def log_sd(self) -> Floats:
        """Of a measured rate, noise included; shape (n,)."""
        return np.asarray(np.sqrt(np.maximum(self.variance, 0.0) + self.noise**2))


def laid_out(c: Cells, basis: Basis, starts: Mapping[Start, int], block: Sequence[str]) -> Layout:
    """Features of the rows in the columns that are known, and behind them in new ones."""
    made, known, names = blocks(c, basis), dict(starts), list(block)
    for name, (keys, values) in made.items():
        used: list[bool] = np.asarray(values.any(axis=1)).tolist()
        for key in dict.fromkeys(key for key, some in zip(keys, used, strict=True) if some):
            if (name, key) not in known:
                known[name, key] = len(names)
                names += [name] * values.shape[1]
    found = np.zeros((len(c), len(names)))
    for name, (keys, values) in made.items():
        column = {key: known.get((name, key), -1) for key in set(keys)}
        first = np.array([column[key] for key in keys])
        rows = np.flatnonzero(first >= 0)
        found[rows[:, None], first[rows, None] + np.arange(values.shape[1])] = values[rows]
    return Layout(found, known, tuple(names))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """starts, block: the columns. mean: (m,), covariance: (m, m). workloads: those of whose training rows it has
    seen all, answering: of whose inference rows. cards, architectures: of these rows; families: those of which it has
    seen networks on several cards.

    A card or family that it has not seen gets the prior of its blocks.
    """

    scales: Scales
    basis: Basis
    starts: Mapping[Start, int]
    block: tuple[str, ...]
    mean: Floats
    covariance: NDArray[np.floating]
    workloads: frozenset[str]
    answering: frozenset[str]
    cards: frozenset[str]
    architectures: frozenset[str]
    families: frozenset[str]

    def has_seen(self, setting: Setting) -> bool:
        """Are the rows of this workload, in this mode, among those of the fit?"""
        return canonical(setting.workload) in (self.answering if setting.mode == "infer" else self.workloads)

    def joint(self, asked: Sequence[Setting], seen: Sequence[Reading] = (), given: Sequence[Reading] = ()) -> Joint:
        """asked: settings of one workload, on one device each. seen: all readings of it that the posterior has seen.
        given: further ones."""
        readings = (*seen, *given)
        every = cells([*asked, *(r.setting for r in readings)])
        n, s = len(asked), len(seen)
        noise = np.array([self.scales.noises[noise_kind(every, i)] for i in range(len(every))])
        variance = noise[n:] ** 2 + np.array([r.log_sd**2 for r in readings])
        layout = laid_out(every, self.basis, self.starts, self.block)
        plain = layout.values[:, : len(self.mean)] @ self.mean
        residual = np.array([log(r.samples_per_s) for r in readings]) - every.mean[n:] - plain[n:]
        table, new = slice(n, n + s), slice(n + s, None)
        own, alone = self._own(every, n, s)
        if any(r.yours for r in readings):  # what is asked is of the same set-up as the person's own runs
            mine = np.array([*(True,) * n, *(r.yours for r in readings)])
            own = own + SETUP_SD**2 * np.outer(mine, mine[n:])
            alone = alone + SETUP_SD**2
        first = _gain(own[:, :s], own[table, :s], variance[:s])
        features = layout.values - first @ layout.values[table]
        spread = self._spread(layout, features.T)
        between = own[:, s:] - first @ own[table, s:] + features @ spread[:, new]
        second = _gain(between, between[new], variance[s:])
        shift = first @ residual[:s]
        shift = shift + second @ (residual[s:] - shift[new])
        left = alone - _rows(first[:n], own[:n, :s]) + _rows(features[:n], spread[:, :n].T) - _rows(second, between)[:n]
        columns, asked_features = _columns_by_part(layout.block), layout.values[:n]
        parts = [asked_features[:, known] @ self.mean[known] for known in (c[c < len(self.mean)] for c in columns)]
        return Joint(
            nominal=every.mean[:n],
            mean=every.mean[:n] + plain[:n] + shift[:n],
            variance=left,
            noise=noise[:n],
            parts=np.array([*parts, shift[:n]]).T,
            shares=_shares(asked_features, columns, spread, second, new, left),
            pull=np.hstack((first[:n] - second[:n] @ first[new], second[:n])),
        )

    def _own(self, every: Cells, n: int, s: int) -> tuple[Floats, Floats]:
        """Prior covariance of the workload's own ways with the readings, shape (rows, readings), and prior variance of
        the asked rows, (n,)."""
        weights = self._weights()
        if len(every) == n:  # nothing measured: a change of batch has nothing to count from
            return np.zeros((n, 0)), weights @ component_variances(every, self.basis, range(n), every.batch)
        middle = float(every.batch[n : n + s if s else None].mean())
        kernel = components(every, self.basis, range(len(every)), middle, range(n, len(every)))
        return (
            np.asarray(np.einsum("c,cij->ij", weights, kernel)),
            weights @ component_variances(every, self.basis, range(n), middle),
        )

    def _weights(self) -> Floats:
        return np.array([self.scales.components[name] for name in COMPONENTS]) ** 2

    def _spread(self, layout: Layout, features: Floats) -> Floats:
        """Σ·features for features of shape (m, n); columns without a posterior have their prior."""
        m = len(self.mean)
        prior = np.array([self.scales.blocks[name] for name in layout.block[m:]]) ** 2
        known = self.covariance @ features[:m].astype(self.covariance.dtype)
        return np.vstack((known, prior[:, None] * features[m:]))


def _gain(across: Floats, between: Floats, variance: Floats) -> Floats:
    """k·(K + N)⁻¹, shape (rows, readings)."""
    if not len(variance):
        return np.zeros((len(across), 0))
    return np.asarray(np.linalg.solve(between + np.diag(variance), across.T).T)


def _rows(a: Floats, b: Floats) -> Floats:
    """Products of rows, summed; shape (rows,)."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _columns_by_part(block: Sequence[str]) -> list[Ints]:
    """The columns of each part, in the order of PARTS."""
    place = {name: i for i, blocks_of in enumerate(PARTS.values()) for name in blocks_of}
    part = np.array([place[name] for name in block])
    return [np.flatnonzero(part == i) for i in range(len(PARTS))]


def _shares(
    features: Floats, columns: Sequence[Ints], spread: Floats, gain: Floats, new: slice, variance: Floats
) -> Floats:
    """Cov(part, whole) / Var(whole) after all readings, cut at 0 and scaled to 1; the own ways are what is left."""
    n = len(variance)
    found = []
    for of_part in columns:
        own, others = features[:, of_part], spread[of_part]
        before = (own * others[:, :n].T).sum(axis=1)
        learnt = ((own @ others[:, new]) * gain[:n]).sum(axis=1)
        found.append(before - learnt)
    found.append(variance - np.sum(found, axis=0))
    positive = np.maximum(np.array(found).T, 0.0)
    whole = positive.sum(axis=1, keepdims=True)
    return np.asarray(positive / np.where(whole > 0, whole, 1.0))
