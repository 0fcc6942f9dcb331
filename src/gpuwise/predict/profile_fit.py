"""The scales of `profile`, from what it says of steps whose workload, or whole family, it has not seen.

The likelihood of a posterior of each class would reward the wrong thing: shares of one step err together, and a class
of little time counts for little. So the scales minimise the error of the whole step,

    Σ √(e² + 0.03²) / 0.1,    e = ln Σ_c share_c · exp g_c⁻ᵇ(x_c) − ln t(target)/t(anchor),

where g_c⁻ᵇ has not seen the block b of its step: each workload once, each family once. Leaving out needs no new
posterior: y_b − g⁻ᵇ = (K⁻¹_bb)⁻¹ (K⁻¹y)_b (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006,
eq. 5.12, by blocks). One set of scales serves all pairs of GPUs. A log-normal prior holds them near START.

Two sets of scales are made, one that heeds workloads alone and one that heeds families as well, and `profile` takes the
mean of what they say: neither was better, and together they err less than each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from gpuwise.predict.profile import CENTRE, CLASSES, FEATURES, Floats, Ints, Kernel, Profiles, centre, covariance

START = np.log([0.3, 0.2, 0.05, 0.05, 0.05, 0.01, *([2.0] * FEATURES), *([0.1] * FEATURES)])
"""Of every class: s of PARTS, lengths, slopes."""

WIDTH = 0.7
"""Of the log-normal prior."""

FITTED = tuple(CLASSES.index(name) for name in ("convolution", "elementwise", "idle"))
"""Classes that take most of the time. The others keep START: their rates hardly matter."""

SOFT, UNIT = 0.03, 0.1
"""ln ratio below which an error hardly counts, and of which an error costs 1."""

INDEPENDENT = 3.0
"""Pairs of GPUs share their configurations: so many of them tell as much as one."""

ROUNDS = 14

OUT = ("model", "family")
"""What a set of blocks leaves out at a time."""

MEMBERS = (1, 2)
"""How many sets of OUT the scales of each member heed; what they say is averaged."""


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """What does not depend on the scales. pairs: anchor and target; total: ln ratio of the steps, (pairs, n); shares:
    on the anchor, (pairs, n, 6); y, weight: of each class, (6, pairs, n); sets: of blocks of rows to leave out."""

    rows: Profiles
    pairs: tuple[tuple[int, int], ...]
    total: Floats
    shares: Floats
    y: Floats
    mean: Floats
    weight: Floats
    sets: tuple[tuple[Ints, ...], ...]

    @staticmethod
    def of(rows: Profiles) -> Bench:
        pairs = tuple(permutations(range(len(rows.gpus)), 2))
        told = [[rows.learned(a, t, c) for a, t in pairs] for c in range(len(CLASSES))]
        y, weight = (np.array([[pair[k] for pair in each] for each in told]) for k in (0, 1))
        mean = np.array([[centre(y[c, k], weight[c, k]) for k in range(len(pairs))] for c in range(len(CLASSES))])
        return Bench(
            rows=rows,
            pairs=pairs,
            total=np.array([np.log(rows.step_s[:, t] / rows.step_s[:, a]) for a, t in pairs]),
            shares=np.array([rows.shares[:, a] for a, _ in pairs]),
            y=np.where(weight > 0, y - mean[..., None], 0),
            mean=mean,
            weight=weight,
            sets=tuple(_blocks(names) for names in (rows.workload, rows.family)),
        )


def _blocks(names: NDArray[np.str_]) -> tuple[Ints, ...]:
    return tuple(np.flatnonzero(names == name) for name in np.unique(names))


class _Left(NamedTuple):
    """What one class says of rows that it has not seen, on one pair of GPUs. missed: y less what is said, (sets, n)."""

    inverse: Floats
    alpha: Floats
    missed: Floats
    corners: tuple[tuple[Floats, ...], ...]

    @staticmethod
    def of(bench: Bench, c: int, pair: int, whole: Floats) -> _Left:
        inverse = _inverse(whole)
        alpha = inverse @ bench.y[c, pair]
        corners = tuple(tuple(_inverse(inverse[np.ix_(b, b)]) for b in blocks) for blocks in bench.sets)
        missed = np.zeros((len(bench.sets), len(alpha)))
        for row, blocks, each in zip(missed, bench.sets, corners, strict=True):
            for block, corner in zip(blocks, each, strict=True):
                row[block] = corner @ alpha[block]
        return _Left(inverse, alpha, missed, corners)

    def slope(self, by_said: Floats, sets: Sequence[Sequence[Ints]]) -> Floats:
        """d loss / d K from d loss / d what is said, (sets, n): (n, n), not symmetric."""
        left, right = [], []
        for by, missed, blocks, corners in zip(by_said, self.missed, sets, self.corners, strict=True):
            pulled = np.zeros_like(by)
            for block, corner in zip(blocks, corners, strict=True):
                pulled[block] = -corner @ by[block]
                left.append(self.inverse[:, block] @ pulled[block])
                right.append(self.inverse[:, block] @ missed[block])
            left.append(-self.inverse @ pulled)
            right.append(self.alpha)
        return np.asarray(np.array(left).T @ np.array(right))


def _inverse(matrix: Floats) -> Floats:
    """Of a symmetric positive definite matrix."""
    factor, failed = dpotrf(matrix, lower=1)
    if failed:
        raise np.linalg.LinAlgError("not positive definite")
    half = np.tril(dpotri(factor, lower=1)[0])
    return np.asarray(half + np.tril(half, -1).T)


def _class(bench: Bench, c: int, logs: Floats) -> list[_Left]:
    kernel, covariances = Kernel.of(logs), {}
    for anchor in range(len(bench.rows.gpus)):
        covariances[anchor] = covariance(bench.rows, anchor, c, kernel)
    return [
        _Left.of(bench, c, k, covariances[a] + np.diag(kernel.noise(bench.weight[c, k])))
        for k, (a, _) in enumerate(bench.pairs)
    ]


def _said(bench: Bench, c: int, left: Sequence[_Left]) -> Floats:
    """g_c of every row, unseen: (sets, pairs, n)."""
    found = [bench.mean[c, k] + bench.y[c, k] - each.missed for k, each in enumerate(left)]
    return np.array(found).transpose(1, 0, 2)


def unseen(rows: Profiles, scales: Floats) -> Floats:
    """ln ratio of each row of each pair of GPUs, its workload (then its family) unseen, less the measured one: (sets,
    pairs, n). The scales have seen it. scales: (members, 6, 16)."""
    bench = Bench.of(rows)
    return np.asarray(np.mean([_unseen(bench, member) for member in scales], axis=0))


def _unseen(bench: Bench, scales: Floats) -> Floats:
    said = np.stack([_said(bench, c, _class(bench, c, scales[c])) for c in range(len(CLASSES))], axis=-1)
    return np.asarray(np.log((bench.shares * np.exp(said)).sum(-1)) - bench.total)


def fit_profile(rows: Profiles, rounds: int = ROUNDS) -> Floats:
    """The scales of each member as logarithms, (members, 6, 16)."""
    bench = Bench.of(rows)
    return np.array([_fitted(replace(bench, sets=bench.sets[:heeded]), rounds) for heeded in MEMBERS])


def _fitted(bench: Bench, rounds: int) -> Floats:
    rest = {c: _said(bench, c, _class(bench, c, START)) for c in range(len(CLASSES)) if c not in FITTED}
    start = np.tile(START, (len(FITTED), 1))
    found = minimize(_objective(bench, rest), start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": rounds})
    scales = np.tile(START, (len(CLASSES), 1))
    scales[list(FITTED)] = found.x.reshape(start.shape)
    return np.asarray(scales)


def _objective(bench: Bench, rest: dict[int, Floats]) -> Callable[[Floats], tuple[float, Floats]]:
    def cost(flat: Floats) -> tuple[float, Floats]:
        logs = flat.reshape(len(FITTED), -1)
        left = {c: _class(bench, c, logs[k]) for k, c in enumerate(FITTED)}
        said = {**rest, **{c: _said(bench, c, each) for c, each in left.items()}}
        loss, by_said = _loss(bench, np.stack([said[c] for c in range(len(CLASSES))], axis=-1))
        slopes = np.array([_slopes(bench, c, logs[k], left[c], by_said[..., c]) for k, c in enumerate(FITTED)])
        away = (logs - START) / WIDTH
        return loss + 0.5 * float((away**2).sum()), (slopes + away / WIDTH).ravel()

    return cost


def _loss(bench: Bench, said: Floats) -> tuple[float, Floats]:
    """The loss and its slope by what each class says, (sets, pairs, n, 6)."""
    parts = bench.shares * np.exp(said)
    whole = parts.sum(-1)
    error = np.log(whole) - bench.total
    soft = np.sqrt(error**2 + SOFT**2)
    unit = UNIT * INDEPENDENT * len(bench.sets)
    return float(soft.sum()) / unit, (error / soft / whole / unit)[..., None] * parts


def _slopes(bench: Bench, c: int, logs: Floats, left: Sequence[_Left], by_said: Floats) -> Floats:
    """d loss / d logarithm of each scale of one class, (16,)."""
    kernel, found = Kernel.of(logs), np.zeros(len(logs))
    for anchor in range(len(bench.rows.gpus)):
        by_kernel = np.zeros((len(bench.rows.batch),) * 2)
        for k, (a, _) in enumerate(bench.pairs):
            if a == anchor:
                slope = left[k].slope(by_said[:, k], bench.sets)
                found[4:6] += _by_noise(kernel, slope.diagonal(), bench.weight[c, k])
                by_kernel += slope
        found += _by_kernel(bench.rows, kernel, bench.rows.features(anchor, c), (by_kernel + by_kernel.T) / 2)
    return found


def _by_noise(kernel: Kernel, diagonal: Floats, weight: Floats) -> Floats:
    told = diagonal * (weight > 0)
    own = kernel.s[4] ** 2
    return 2 * np.array([own * told.sum(), (told * (kernel.noise(weight) - own)).sum()])


def _by_kernel(rows: Profiles, kernel: Kernel, x: Floats, slope: Floats) -> Floats:
    found, variance = np.zeros(6 + 2 * FEATURES), kernel.s**2
    smooth = slope * kernel.smooth(x, x) * variance[1]
    found[0], found[1] = variance[0] * slope.sum(), smooth.sum()
    found[2] = variance[2] * slope[rows.workload[:, None] == rows.workload].sum()
    found[3] = variance[3] * slope[rows.family[:, None] == rows.family].sum()
    near, line = x / kernel.lengths, (x - CENTRE) * kernel.slopes
    found[6 : 6 + FEATURES] = (near**2 * smooth.sum(1)[:, None]).sum(0) - (near * (smooth @ near)).sum(0)
    found[6 + FEATURES :] = (line * (slope @ line)).sum(0)
    return 2 * found


MODULE = '''"""Scales, interval factors of `profile`: written by `make fit` (`profile_fit`, `profile_split`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SCALES: tuple[tuple[tuple[float, ...], ...], ...] = (
{scales})  # fmt: skip
"""Logarithms of s of `profile.PARTS`, then lengths and slopes of the features, for each class; one set a member."""

FACTORS: Mapping[str, float] = MappingProxyType(
    {{
{factors}
    }}
)
"""On the sd: where only the model is new, or its family too, by how much the device waits on the anchor."""
'''


def module(scales: Floats, found: dict[str, float]) -> str:
    """The text of `profile_fitted.py`."""
    text = ""
    for member in scales:
        lines = [", ".join(f"{v:.4f}" for v in half) for each in member for half in (each[:8], each[8:])]
        pairs = zip(lines[::2], lines[1::2], strict=True)
        text += "    (\n" + "".join(f"        ({one},\n         {two}),\n" for one, two in pairs) + "    ),\n"
    factors = "\n".join(f'        "{name}": {value:.3f},' for name, value in sorted(found.items()))
    return MODULE.format(scales=text, factors=factors)
