"""How wrong predictions were, of rows that were left out: absolute percentage errors, coverage, beside naive rules.

    APE = |predicted / measured − 1|        coverage = share of measured values inside the 80 % interval

Test value: 110, 100 and 80 predicted where 100 was measured have a MAPE of 10 % and a median of 10 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

NAIVE = ("peak", "bandwidth", "geometric_mean")
"""Ratios of data sheets, from the measured row to the target: of peak rates, of memory bandwidths, and the geometric
mean of both. Where nothing was measured there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One left-out row: what was measured, what was predicted (None: refused), the ends of the 80 % interval.

    All in one unit (samples/s, GiB, …). naive: rule of NAIVE (or "perfect", "roofline") -> what it says. tags: what the
    row is like (workload, card, family_known, card_known, k, link, …), to group by.
    """

    truth: float
    predicted: float | None
    low: float | None = None
    high: float | None = None
    naive: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def ape(self) -> float | None:
        """|predicted / measured − 1|; None where it was refused."""
        return None if self.predicted is None else abs(self.predicted / self.truth - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Percentages of n rows; None where there are none. refused: rows without a prediction, beside the n."""

    n: int
    refused: int = 0
    mape_percent: float | None = None
    median_percent: float | None = None
    p90_percent: float | None = None
    coverage_percent: float | None = None
    half_width_percent: float | None = None
    naive: Mapping[str, Errors] = field(default_factory=lambda: MappingProxyType({}))


def errors(scores: Iterable[Score]) -> Errors:
    """Of all rows together; naive rules over the rows for which they say something."""
    every = list(scores)
    told = [s for s in every if s.predicted is not None]
    rules = sorted({rule for s in told for rule in s.naive})
    naive = {r: _of([abs(s.naive[r] / s.truth - 1) for s in told if r in s.naive]) for r in rules}
    spans = [(s.low, s.high, s.truth) for s in told if s.low is not None and s.high is not None]
    inside = 100 * float(np.mean([low <= truth <= high for low, high, truth in spans])) if spans else None
    half = 100 * float(np.median([(high / low) ** 0.5 - 1 for low, high, _ in spans])) if spans else None
    plain = _of([s.ape for s in told if s.ape is not None])
    return Errors(
        n=plain.n,
        refused=len(every) - len(told),
        mape_percent=plain.mape_percent,
        median_percent=plain.median_percent,
        p90_percent=plain.p90_percent,
        coverage_percent=inside,
        half_width_percent=half,
        naive=naive,
    )


def grouped(scores: Iterable[Score], *tags: str) -> dict[tuple[str, ...], Errors]:
    """Errors of each combination of the tags, in order."""
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        groups.setdefault(tuple(score.tags.get(tag, "") for tag in tags), []).append(score)
    return {key: errors(groups[key]) for key in sorted(groups)}


def _of(ape: Sequence[float]) -> Errors:
    if not ape:
        return Errors(n=0)
    found = 100 * np.array(ape)
    return Errors(
        n=len(found),
        mape_percent=float(found.mean()),
        median_percent=float(np.median(found)),
        p90_percent=float(np.quantile(found, 0.9)),
    )
