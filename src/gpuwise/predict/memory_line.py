"""Memory at another batch, from batches that were seen: a straight line with errors in proportion.

    used = (fixed + batch · per sample) · (1 + ε)

fixed: context, workspaces and what the optimizer holds. It has a prior, so that one batch that was seen is enough to
ask for another; two are better. Weighted least squares with a Gaussian prior on the fixed part (Bishop, Pattern
Recognition and Machine Learning, 2006, eq. 3.50 and 3.51), in GiB. The same line answers for a person's own runs and
for the rows that the accuracy is worked out on (`memory_split`).

Test value: 8 and 16 samples with 3 and 5 GiB, of which about 1 is fixed → 0.25 GiB a sample, 9 GiB at 32.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from gpuwise.estimate import Estimate
from gpuwise.units import Gib

DRIVER_SD = 0.05
"""Log sd of what a driver sees in use, about a line: caches and workspaces take what is free."""
ALLOCATED_SD = 0.02
"""Log sd of what a framework allocates, about a line."""

Floats = NDArray[np.float64]
Seen = tuple[float, Gib]
"""Batch, and GiB in use at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What does not grow with the batch, as it is thought to be before any batch is seen, in GiB."""

    gib: Gib
    sd_gib: Gib


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """fixed_gib + batch · per_sample_gib, neither below 0. covariance: of these two. noise_sd: of one reading."""

    fixed_gib: Gib
    per_sample_gib: Gib
    covariance: tuple[tuple[float, float], tuple[float, float]]
    noise_sd: float

    def at(self, batch: float) -> Estimate:
        """Memory at a batch, with the line's error and that of a reading."""
        value = self.fixed_gib + batch * self.per_sample_gib
        (a, b), (_, d) = self.covariance
        line_sd = sqrt(max(a + 2 * batch * b + batch**2 * d, 0.0)) / value
        spread = (("memory line", line_sd), ("memory reading", self.noise_sd))
        return Estimate(value=value, spread=tuple(part for part in spread if part[1]))


def line(seen: Iterable[Seen], fixed: Fixed, noise_sd: float = DRIVER_SD) -> Line:
    """The line through what was seen. Equal batches count once, with their geometric mean. ValueError for none."""
    batch, used = _means(seen)
    if not len(batch):
        raise ValueError("a line needs at least one batch that was seen")
    rows = np.column_stack([1 / used, batch / used]) / noise_sd
    precision = rows.T @ rows + np.diag([fixed.sd_gib**-2, 0.0])
    target = rows.T @ np.full(len(used), 1 / noise_sd) + np.array([fixed.gib / fixed.sd_gib**2, 0.0])
    covariance = np.linalg.inv(precision)
    found = _not_negative(covariance @ target, batch, used)
    (a, b), (c, d) = covariance.tolist()
    return Line(
        fixed_gib=float(found[0]), per_sample_gib=float(found[1]), covariance=((a, b), (c, d)), noise_sd=noise_sd
    )


def _means(seen: Iterable[Seen]) -> tuple[Floats, Floats]:
    groups: dict[float, list[float]] = {}
    for batch, used in seen:
        groups.setdefault(float(batch), []).append(log(used))
    batches = sorted(groups)
    return np.array(batches), np.array([exp(sum(groups[b]) / len(groups[b])) for b in batches])


def _not_negative(found: Floats, batch: Floats, used: Floats) -> Floats:
    """Where one part would be below 0 it is 0, and the other is fitted alone."""
    if found[0] < 0:
        share = batch / used
        return np.array([0.0, share.sum() / (share**2).sum()])
    if found[1] < 0:
        share = 1 / used
        return np.array([share.sum() / (share**2).sum(), 0.0])
    return found
