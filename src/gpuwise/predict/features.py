"""What rows have in common: the features of the Gaussian process.

    ln rate = mean + Σ blocks Φ_b·β_b + g(workload) + noise,   β_b ~ N(0, σ_b²),   g ~ N(0, Σ_c σ_c²·C_c)

A *block* is shared by all workloads: a dense vector for each row, under a key (its card, its family, …); rows with one
key share its coefficients. A *component* is a kernel between rows of one workload: what that network does its own way.
Each block belongs to a part (PARTS), by which a prediction is explained and its error is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpuwise.predict.cells import KIN, Cells, Floats, Ints

Keys = Sequence[str]


class Block(NamedTuple):
    """keys: one a row; values: shape (n, d)."""

    keys: Keys
    values: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Smooth:
    """A smooth function of a few inputs, as a low-rank factor of its kernel exp(−|x − y|²/2·length²).

    anchors: shape (a, d); weights: shape (a, m). Nyström: C. Williams and M. Seeger, NIPS 13, 2001, eq. 9 to 12.
    """

    anchors: Floats
    weights: Floats
    length: float

    @staticmethod
    def of(anchors: Floats, length: float, least: float) -> Smooth:
        """least: smallest eigenvalue to keep, as a share of the largest."""
        values, vectors = np.linalg.eigh(_kernel(anchors, anchors, length))
        keep = values > least * values[-1]
        return Smooth(anchors=anchors, weights=vectors[:, keep] / np.sqrt(values[keep]), length=length)

    def __call__(self, points: Floats) -> Floats:
        """Shape (n, m); their products are the kernel."""
        return _kernel(points, self.anchors, self.length) @ self.weights


def _kernel(a: Floats, b: Floats, length: float) -> Floats:
    squares = sum((x[:, None] - y) ** 2 for x, y in zip(a.T, b.T, strict=True))
    return np.asarray(np.exp(-squares / (2 * length**2)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Basis:
    """The smooth functions: of a data sheet (ln peak, bandwidth, power), of counts, and of `full_counts`."""

    sheet: Smooth
    counts: Smooth
    more: Smooth


PARTS: Mapping[str, tuple[str, ...]] = {
    "sheet": ("physics", "linear", "linear_kappa", "smooth", "smooth_kappa"),
    "architecture": ("arithmetic", "architecture", "architecture_kappa", "family_architecture", "era_architecture"),
    "card": ("card", "card_arithmetic", "card_kappa", "card_batch", "family_card", "mode_card", "mode_card_kappa"),
    "network": (
        "family", "family_arithmetic", "family_linear", "family_smooth", "batch", "counts", "more", "mode",
        "mode_kappa", "mode_batch", "mode_family", "mode_smooth", "mode_counts", "mode_launch",
    ),
    "software": ("era", "era_family", "source", "source_launch", "layout", "layout_family", "layout_counts",
                 "layout_more"),
}  # fmt: skip
"""Part -> its blocks."""

BLOCKS: Mapping[str, float] = {
    "physics": 1.0, "arithmetic": 0.13, "architecture": 0.05, "card": 0.05, "card_arithmetic": 0.03, "card_kappa": 0.09,
    "architecture_kappa": 0.1, "smooth": 0.08, "smooth_kappa": 0.13, "linear": 0.1, "linear_kappa": 0.15, "family": 0.3,
    "family_arithmetic": 0.1, "family_architecture": 0.06, "family_linear": 0.06, "family_smooth": 0.08,
    "family_card": 0.04, "era": 0.07, "era_family": 0.06, "era_architecture": 0.07, "source": 0.05, "batch": 0.15,
    "card_batch": 0.03, "source_launch": 0.3, "counts": 0.12, "more": 0.12, "layout": 0.2, "layout_family": 0.06,
    "layout_counts": 0.12, "layout_more": 0.1, "mode": 0.4, "mode_kappa": 0.3, "mode_card": 0.05,
    "mode_card_kappa": 0.05, "mode_launch": 0.3, "mode_batch": 0.1, "mode_family": 0.1, "mode_smooth": 0.05,
    "mode_counts": 0.1,
}  # fmt: skip
"""Block -> prior standard deviation from which the fit starts; a log-normal prior of width 1 holds it there."""

COMPONENTS: Mapping[str, float] = {
    "level": 0.1, "level_without_count": 4.0, "level_without_more": 0.05, "mix": 0.06, "mix_without_count": 1.0,
    "launch": 0.3, "arithmetic": 0.1, "linear": 0.03, "linear_arithmetic": 0.025, "smooth": 0.05, "batch": 0.1,
    "era": 0.07, "era_arithmetic": 0.05, "card": 0.03, "layout": 0.1, "mode": 0.05,
    "architecture": 0.05, "architecture_arithmetic": 0.05,
    "batch_without_count": 0.2,
}  # fmt: skip
"""The same of the components of one workload's own ways."""

FIXED = frozenset(("physics", "source", "level_without_count", "mix_without_count", "batch_without_count"))
"""Not fitted: their data say too little, or nothing, about the scale."""

NOISES: Mapping[str, float] = {
    "cnn": 0.03, "cnn-detection": 0.03, "transformer": 0.05, "recurrent": 0.06, "conv1d": 0.08, "speech": 0.13,
    "recommendation": 0.08, "other": 0.06, "small batch": 0.08, "tensorflow": 0.1, "channels last": 0.2,
    "timm": 0.06, "inference": 0.045,
}  # fmt: skip
"""Kind of row -> standard deviation of what is left, hosts included."""


def blocks(cells: Cells, basis: Basis) -> dict[str, Block]:
    """All blocks of the rows, named as in BLOCKS."""
    return dict(_blocks(cells, basis))


def _blocks(c: Cells, basis: Basis) -> Iterator[tuple[str, Block]]:
    one, nowhere = np.ones((len(c), 1)), ("",) * len(c)
    kin = [KIN.get(f, f) for f in c.family]
    kappa = (c.kappa - 0.5)[:, None]
    sheet = basis.sheet(c.sheet[:, :3])
    yield "physics", Block(nowhere, c.physics)
    yield "arithmetic", Block(c.arithmetic, one)
    yield "architecture", Block(_joined(c.architecture, c.arithmetic), one)
    yield "card", Block(c.card, one)
    yield "card_arithmetic", Block(_joined(c.card, c.arithmetic), one)
    yield "card_kappa", Block(c.card, kappa)
    yield "architecture_kappa", Block(c.architecture, kappa)
    yield "smooth", Block(nowhere, sheet)
    yield "smooth_kappa", Block(nowhere, sheet * kappa)
    yield "linear", Block(nowhere, c.sheet)
    yield "linear_kappa", Block(nowhere, c.sheet * kappa)
    yield "family", Block(kin, one)
    yield "family_arithmetic", Block(_joined(kin, c.arithmetic), one)
    yield "family_linear", Block(kin, c.sheet)
    yield "era", Block(_joined(c.era, c.arithmetic), one)
    yield "era_family", Block(_joined(c.era, kin, c.arithmetic), one)
    yield "era_architecture", Block(_joined(c.era, c.architecture), one)
    yield "source", Block(c.source, one)
    yield "source_launch", Block(c.source, c.launch[:, None])
    yield "batch", Block(kin, np.array([c.step * c.counted, c.batch * (1 - c.counted)]).T)
    yield "card_batch", Block(c.card, (c.step * c.counted)[:, None])
    yield from _of_large_families(c, kin, sheet)
    yield from _of_counts(c, basis)
    yield from _of_inference(c, kappa, sheet)


def _of_large_families(c: Cells, kin: Keys, sheet: Floats) -> Iterator[tuple[str, Block]]:
    """Families of many workloads; one of a single workload is that workload's own way."""
    large = np.array([k in ("cnn", "transformer") for k in kin], np.float64)[:, None]
    names = [k if k in ("cnn", "transformer") else "" for k in kin]
    yield "family_architecture", Block(_joined(names, c.architecture, c.arithmetic), large)
    yield "family_smooth", Block(names, sheet * large)
    yield "family_card", Block(_joined(names, c.card), large)


def _of_counts(c: Cells, basis: Basis) -> Iterator[tuple[str, Block]]:
    """What counts say beyond the roofline, and how it changes with the memory format."""
    nowhere, one = ("",) * len(c), np.ones((len(c), 1))
    smooth = basis.counts(c.counts) * c.counted[:, None]
    yield "mode_counts", Block(["infer" if i else "" for i in c.inference], smooth * c.inference[:, None])
    more = basis.more(full_counts(c)) * c.full[:, None]
    yield "counts", Block(nowhere, smooth)
    yield "more", Block(nowhere, np.hstack((more, c.more)))
    yield "layout", Block(c.layout, one)
    yield "layout_family", Block(_joined(c.layout, c.family), one)
    yield "layout_counts", Block(c.layout, smooth)
    yield "layout_more", Block(c.layout, c.more)


SPANS = (1.7, 1.2, 1.25, 0.35, 0.7, 0.05)
"""How much networks differ in each full count, about: the unit in which they are compared."""


def full_counts(c: Cells) -> Floats:
    """Counts and what only a full count says, in SPANS; shape (n, 6)."""
    return np.hstack((c.counts, c.more)) / SPANS


def _of_inference(c: Cells, kappa: Floats, sheet: Floats) -> Iterator[tuple[str, Block]]:
    """How a forward pass alone differs from a third of a training step."""
    only = c.inference[:, None]
    names = ["infer" if i else "" for i in c.inference]
    yield "mode", Block(names, only)
    yield "mode_kappa", Block(names, only * kappa)
    yield "mode_card", Block(_joined(names, c.card), only)
    yield "mode_card_kappa", Block(_joined(names, c.card), only * kappa)
    yield "mode_launch", Block(names, only * c.launch[:, None])
    yield "mode_batch", Block(names, only * c.step[:, None])
    yield "mode_family", Block(_joined(names, c.family), only)
    yield "mode_smooth", Block(names, only * sheet)


def components(
    c: Cells, basis: Basis, rows: Sequence[int] | Ints, middle: float, columns: Sequence[int] | Ints | None = None
) -> Floats:
    """Kernels between rows of one workload, shape (components, rows, columns), in the order of COMPONENTS.

    middle: of ln batch, from which a change of batch counts. columns: other rows; None: the same.
    """
    i = np.asarray(rows, np.int64)
    j = i if columns is None else np.asarray(columns, np.int64)
    one, counted, full = np.ones((len(i), len(j))), c.counted[i][:, None], c.full[i][:, None]
    arithmetic, era = _same(c.arithmetic, i, j), _same(c.era, i, j)
    architecture = _same(c.architecture, i, j)
    here = basis.sheet(c.sheet[i][:, :3])
    there = here if columns is None else basis.sheet(c.sheet[j][:, :3])
    mix, linear = np.outer(c.kappa[i], c.kappa[j]), c.sheet[i][:, LINEAR] @ c.sheet[j][:, LINEAR].T
    return np.array(
        [
            one * counted,
            one * (1 - counted),
            one * counted * (1 - full),
            mix * counted,
            mix * (1 - counted),
            np.outer(c.launch[i], c.launch[j]) * counted,
            arithmetic,
            linear,
            linear * arithmetic,
            here @ there.T,
            np.outer(c.batch[i] - middle, c.batch[j] - middle),
            era,
            era * arithmetic,
            _same(c.card, i, j),
            _same(c.layout, i, j),
            np.equal.outer(c.inference[i], c.inference[j]).astype(np.float64),
            architecture,
            architecture * arithmetic,
            np.outer(c.batch[i] - middle, c.batch[j] - middle) * (1 - counted),
        ]
    )


LINEAR = [0, 1, 3]
"""Of a data sheet: peak, bandwidth and fp32 rate."""


def component_variances(c: Cells, basis: Basis, rows: Sequence[int] | Ints, middle: float | Floats) -> Floats:
    """The diagonals of `components`, shape (components, rows). middle: one, or one a row."""
    i = np.asarray(rows, np.int64)
    counted, full, one = c.counted[i], c.full[i], np.ones(len(i))
    linear = (c.sheet[i][:, LINEAR] ** 2).sum(axis=1)
    return np.array(
        [
            counted,
            1 - counted,
            counted * (1 - full),
            c.kappa[i] ** 2 * counted,
            c.kappa[i] ** 2 * (1 - counted),
            c.launch[i] ** 2 * counted,
            one,
            linear,
            linear,
            (basis.sheet(c.sheet[i][:, :3]) ** 2).sum(axis=1),
            (c.batch[i] - middle) ** 2,
            *(one,) * 7,
            (c.batch[i] - middle) ** 2 * (1 - counted),
        ]
    )


def noise_kind(cells: Cells, row: int) -> str:
    """Key of NOISES."""
    if cells.inference[row]:
        return "inference"
    source = cells.source[row]
    if source == "torchvision-2021":
        return "small batch"
    if source == "tensorflow":
        return "tensorflow"
    if source == "timm":
        return "channels last" if "nhwc" in cells.layout[row] else "timm"
    family = cells.family[row]
    return family if family in NOISES else "other"


def _same(names: Sequence[str], rows: Ints, columns: Ints) -> Floats:
    code: dict[str, int] = {}
    here, there = (np.array([code.setdefault(names[k], len(code)) for k in part]) for part in (rows, columns))
    return np.asarray(np.equal.outer(here, there).astype(np.float64))


def _joined(*columns: Sequence[str]) -> list[str]:
    return ["|".join(row) for row in zip(*columns, strict=True)]
