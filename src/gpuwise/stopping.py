"""When training ends: at an accuracy, when accuracy stops growing, or as earlier runs did.

Values, which a `model.Workload` holds; `predict.target` makes a `Stop`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuwise.errors import Message
from gpuwise.units import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStop:
    """Training stops after `patience_epochs` epochs without a better accuracy; from `least_epochs` on, and at the
    latest after `most_epochs`."""

    least_epochs: float
    most_epochs: float
    patience_epochs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochsAt:
    """Epochs that are needed at one global batch (samples of a step of all accelerators)."""

    global_batch: float
    epochs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """How many epochs a job needs, where that is not known. Made by `predict.target`.

    p10_epochs, p50_epochs, p90_epochs: at the least global batch of `at`, or at any where `at` is empty. growth: d ln
    epochs / d ln global batch above the last of `at`, with its sd. most_epochs: training ends then in any case.
    reached_fraction: share of runs that get there at all; below 0.9 the P90 is only the least it can be.
    """

    kind: Literal["early stopping", "target", "runs"]
    p10_epochs: float
    p50_epochs: float
    p90_epochs: float
    at: tuple[EpochsAt, ...] = ()
    growth: float = 0.0
    growth_sd: float = 0.0
    most_epochs: float | None = None
    reached_fraction: Fraction = 1.0
    basis: str = "assumed"
    notes: tuple[Message, ...] = ()

    @property
    def open_ended(self) -> bool:
        """More runs than one in ten never get there: there is no P90."""
        return self.reached_fraction < 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochReference:
    """A row of epochs.csv: samples to the quality target of a known task at one global batch, mean of `runs` runs.
    source: key of sources.csv."""

    task: str
    target_fraction: Fraction
    global_batch: int
    runs: int
    samples_to_target: float
    cv_fraction: Fraction
    source: str
