"""A positive quantity that knows how wrong it may be, and why.

`Estimate.spread` is a tuple of *named* log standard deviations: the value is X·exp(Σ sᵢ·zᵢ) with independent standard
normal zᵢ. Products add spreads by name, quotients subtract them, sums weight them by share. Errors with one name are
one error: they cancel in a ratio, so "A is cheaper than B" gets an honest probability. Errors of different names
combine in quadrature. Quantities that can be negative (NPV, saving) do not belong here.

Source: propagation of relative error, JCGM 100:2008 (GUM) §5.1.6, on the log scale.
Test value: 2.0 ± ln 0.3 and ± ln 0.4 has log sd 0.5 and the 80 % interval 2.0·exp(∓1.2816·0.5) = [1.054, 3.796].
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from gpuwise.units import Fraction

Spread = tuple[tuple[str, float], ...]
"""Named log standard deviations, sorted by name; signs matter only between estimates that share a name."""

LEVEL: Fraction = 0.8
"""Two-sided probability of every interval that does not say otherwise."""


def z_score(level: Fraction = LEVEL) -> float:
    """Half-width of a two-sided normal interval in standard deviations (1.2816 for 80 %)."""
    return NormalDist().inv_cdf(0.5 + level / 2)


Z80 = z_score()


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with the bounds of its 80 % interval, all in the unit of the value."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A positive value with its named error budget.

    value: positive and finite, in the unit that the holder's field name states; 0 only where it is exact (a bill that
    hours already paid for cover in full).
    spread: named log standard deviations (dimensionless); empty means exact.
    bounds: the 80 % interval where it is known better than by a log-normal law (a bill that moves in steps).
    median: the centre of that law where value is a mean (of a skewed quantity, such as the time of a job that is lost
    at random); None where both are one.
    basis: measured, published, quoted, predicted or assumed; of mixed origins the weakest.
    """

    value: float
    spread: Spread = ()
    basis: str = "predicted"
    bounds: tuple[float, float] | None = None
    median: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and (self.value > 0 or (self.value == 0 and not self.spread))):
            raise ValueError(f"an estimate is positive and finite, or exactly 0, not {self.value!r}")

    @property
    def log_sd(self) -> float:
        """All errors in quadrature, as a log standard deviation."""
        return math.hypot(*(s for _, s in self.spread)) if self.spread else 0.0

    @property
    def centre(self) -> float:
        """The median, to which the errors apply."""
        return self.value if self.median is None else self.median

    def interval(self, level: Fraction = LEVEL) -> Interval:
        if self.bounds is not None and level == LEVEL:
            return Interval(value=self.value, low=self.bounds[0], high=self.bounds[1])
        half = (Z80 if level == LEVEL else z_score(level)) * self.log_sd
        return Interval(value=self.value, low=self.centre * math.exp(-half), high=self.centre * math.exp(half))

    def __mul__(self, other: Estimate | float) -> Estimate:
        if isinstance(other, Estimate):
            return _combine(self.value * other.value, ((self, 1.0), (other, 1.0)), self.centre * other.centre)
        scaled = None if self.bounds is None else (self.bounds[0] * other, self.bounds[1] * other)
        median = None if self.median is None or not other else self.median * other
        spread = self.spread if other else ()
        return Estimate(value=self.value * other, spread=spread, basis=self.basis, bounds=scaled, median=median)

    __rmul__ = __mul__

    def __truediv__(self, other: Estimate | float) -> Estimate:
        if not isinstance(other, Estimate):
            return self * (1 / other)
        return _combine(self.value / other.value, ((self, 1.0), (other, -1.0)), self.centre / other.centre)

    def __rtruediv__(self, other: float) -> Estimate:
        return _combine(other / self.value, ((self, -1.0),), other / self.centre)

    def __add__(self, other: Estimate | float) -> Estimate:
        return total((self, other if isinstance(other, Estimate) else exact(other)))

    __radd__ = __add__

    def widened(self, name: str, log_sd: float) -> Estimate:
        """The same value with one more named error (in quadrature, its sign kept, if the name is there already)."""
        parts = dict(self.spread)
        there = parts.get(name, 0.0)
        parts[name] = math.copysign(math.hypot(there, log_sd), there)
        return Estimate(value=self.value, spread=_sorted(parts), basis=self.basis, median=self.median)


def exact(value: float, basis: str = "quoted") -> Estimate:
    """A positive value without error (a list price, a count)."""
    return Estimate(value=value, basis=basis)


def total(parts: Iterable[Estimate]) -> Estimate:
    """The sum; each named error counts with its part's share (first order, GUM §5.1.2)."""
    terms = tuple(parts)
    value = math.fsum(t.value for t in terms)
    centre = math.fsum(t.centre for t in terms)
    return _combine(value, tuple((t, t.value / value if value else 0.0) for t in terms), centre)


def difference(a: Estimate, b: Estimate) -> Estimate:
    """a − b, where it is surely positive; shared errors partly cancel. ValueError if the value is not positive."""
    value = a.value - b.value
    if value <= 0:
        raise ValueError(f"the difference of {a.value!r} and {b.value!r} is not positive")
    return _combine(value, ((a, a.value / value), (b, -b.value / value)), max(a.centre - b.centre, TINY * value))


def probability_less(a: Estimate, b: Estimate) -> Fraction:
    """P(a < b), shared errors cancelling: Φ(ln(b/a) / sd of the ratio); 0.5 for two equal exact values."""
    if a.value == 0 or b.value == 0:
        return 0.5 if a.value == b.value else float(a.value < b.value)
    ratio = b / a
    if ratio.log_sd == 0:
        return 0.5 if ratio.value == 1 else float(ratio.value > 1)
    return NormalDist().cdf(math.log(ratio.centre) / ratio.log_sd)


_STRENGTH = ("measured", "published", "quoted", "predicted", "assumed")


TINY = 1e-9


def _combine(value: float, terms: tuple[tuple[Estimate, float], ...], centre: float) -> Estimate:
    parts: dict[str, float] = {}
    for term, weight in terms:
        for name, sd in term.spread:
            parts[name] = parts.get(name, 0.0) + weight * sd
    basis = max((t.basis for t, _ in terms), key=_STRENGTH.index)
    skewed = value and any(t.median is not None for t, _ in terms)
    return Estimate(value=value, spread=_sorted(parts) if value else (), basis=basis, median=centre if skewed else None)


def _sorted(parts: dict[str, float]) -> Spread:
    return tuple(sorted((name, sd) for name, sd in parts.items() if sd))
