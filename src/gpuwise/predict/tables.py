"""What the splits of `accuracy` are computed from: the bundled tables as plain values, and how much is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from gpuwise.memory import MemoryReading
from gpuwise.model import Accelerator, Assumptions, BenchmarkResult
from gpuwise.predict.answer import Model
from gpuwise.predict.roofline import Work
from gpuwise.units import UsdPerHour

T = TypeVar("T")

Texts = Sequence[Mapping[str, str]]
"""Rows of a table as they stand in its file: column -> text."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """The bundled facts. inference: rates of forward passes. model: the shipped predictor, whose scales a drawn subset
    takes. memory: workload -> what its runs took. usd_per_hour: median on-demand price of one such card.
    texts: every bundled table by name, for what has no type of its own."""

    rows: Sequence[BenchmarkResult]
    accelerators: Mapping[str, Accelerator]
    counts: Mapping[str, Work]
    inference: Sequence[BenchmarkResult] = ()
    model: Model | None = None
    assumptions: Assumptions = field(default_factory=lambda: MappingProxyType({}))
    memory: Mapping[str, Sequence[MemoryReading]] = field(default_factory=lambda: MappingProxyType({}))
    usd_per_hour: Mapping[str, UsdPerHour] = field(default_factory=lambda: MappingProxyType({}))
    texts: Mapping[str, Texts] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How much of a split is scored. most: questions drawn by the seed, None for all of them."""

    most: int | None = None
    seed: int = 0


ALL = Draw()


def drawn(items: Sequence[T], draw: Draw) -> list[T]:
    """So many of the items as the draw says, in their order; the same ones for the same seed."""
    if draw.most is None or draw.most >= len(items):
        return list(items)
    chosen = np.random.default_rng(draw.seed).choice(len(items), draw.most, replace=False)
    return [items[place] for place in sorted(chosen.tolist())]
