"""How many GPUs are wanted at once, month by month: a level, a growth, and how a month varies within itself.

Within a month the demand D varies; a fleet of N GPUs serves min(D, N) of it at once. With q = D / E[D] and x = N / E[D]

    served(x) = E[min(q, x)] / E[q] = ∫₀ˣ P(q > y) dy

is the share of the month's work that the fleet takes: the integral of the load-duration curve. Where no record says how
demand varies, q follows a gamma law of the coefficient of variation c (shape 1/c², mean 1).

The level of month t = 0, 1, … on a path: L·(1 + g)^((t + ½)/12)·exp(w(t)), w a random walk of log sd s·√(t/12), times
recorded weeks.

Source: load-duration curve, M. A. Crew, C. S. Fernando, P. R. Kleindorfer, J. Regulatory Economics 8 (1995) 215; E[min]
as the newsvendor's expected sales, Arrow, Harris, Marschak, Econometrica 19 (1951) 250.
Test value: q uniform on 0.5 and 1.5 (two levels): served(1) = (0.5 + 1) / 2 = 0.75. Exponential q (c = 1):
served(x) = 1 − e^(−x), 0.632 at x = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import InvalidInput, Message
from gpuwise.estimate import Z80
from gpuwise.units import MONTHS_PER_YEAR, Fraction

Floats = NDArray[np.float64]
POINTS = 2048
"""Points of an assumed load-duration curve: the share served is then right to 0.1 %."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """How demand varies within a month. levels: (Q,) multiples of the mean, ascending, each for 1/Q of the time.

    measured: from a record, not assumed. hours: of the record, 0 where assumed.
    """

    levels: Floats
    measured: bool
    hours: int = 0

    @property
    def variation(self) -> float:
        """Coefficient of variation: standard deviation over mean."""
        return float(self.levels.std())

    @property
    def peak(self) -> float:
        """The largest level, as a multiple of the mean."""
        return float(self.levels[-1])

    def served(self, capacity: Floats) -> Floats:
        """Share of the work that a fleet of `capacity` times the mean demand serves; any shape."""
        knots, shares = _curve(self.levels)
        return np.interp(capacity, knots, shares)

    def quantile(self, fraction: Fraction) -> float:
        """The level that demand does not exceed for this share of the time, as a multiple of the mean."""
        place = int(np.ceil(fraction * len(self.levels))) - 1
        return float(self.levels[min(max(place, 0), len(self.levels) - 1)])


def _curve(levels: Floats) -> tuple[Floats, Floats]:
    """served(x) is linear between the levels: its knots, and its values there."""
    number = len(levels)
    below = np.concatenate(([0.0], np.cumsum(levels)))[:-1]
    at_levels = (below + levels * (number - np.arange(number))) / number
    return np.concatenate(([0.0], levels)), np.concatenate(([0.0], at_levels))


def steady() -> Shape:
    """The same demand at all times."""
    return Shape(levels=np.ones(1), measured=False)


def assumed(variation: float) -> Shape:
    """A gamma law of this coefficient of variation; 0 is a steady demand. InvalidInput below 0."""
    if not 0 <= variation < np.inf:
        raise InvalidInput(
            Message("The variation of the demand is {value:g}: it is a number from 0 up.", value=variation),
            Message("Write the standard deviation over the mean, such as 0.8."),
        )
    if variation < MIN_VARIATION:
        return steady()
    from scipy.special import gammaincinv

    shape = 1 / variation**2
    middles = (np.arange(POINTS) + 0.5) / POINTS
    levels = gammaincinv(shape, middles)
    return Shape(levels=levels / levels.mean(), measured=False)


MIN_VARIATION = 1e-3
"""Less is steady: the gamma law of it has no digits left."""


def of_record(gpus: Floats) -> Shape:
    """The shape of a record of GPUs wanted or in use, one figure an equal step. InvalidInput where there is none."""
    record = np.sort(np.asarray(gpus, np.float64).ravel())
    if not len(record) or not np.isfinite(record).all() or record[0] < 0 or record[-1] == 0:
        raise InvalidInput(
            Message("The record of the demand holds no GPU in use, or a figure that is no number from 0 up."),
            Message("Give GPUs in use or wanted at each hour."),
        )
    return Shape(levels=record / record.mean(), measured=True, hours=len(record))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shapes:
    """A shape a path, where nobody knows how demand varies. of_path: (paths,), places in `shapes`."""

    shapes: tuple[Shape, ...]
    of_path: NDArray[np.intp]

    def served(self, capacity: Floats) -> Floats:
        """As `Shape.served`, each path by its own shape; capacity: (paths, months)."""
        found = np.empty_like(capacity)
        for place, shape in enumerate(self.shapes):
            rows = self.of_path == place
            found[rows] = shape.served(capacity[rows])
        return found


SHAPES = 8
"""So many shapes stand for a variation that is not known: the middles of equal parts of its range."""


def uncertain(variation: Floats) -> Shapes:
    """Assumed shapes for a variation a path, each by the nearest of a few."""
    edges = np.quantile(variation, (np.arange(SHAPES) + 0.5) / SHAPES)
    kinds = np.unique(edges)
    of_path = np.abs(np.reshape(variation, (-1, 1)) - kinds).argmin(axis=1)
    return Shapes(shapes=tuple(assumed(float(kind)) for kind in kinds), of_path=of_path)


def expected(gpu_h_per_month: Floats | float, growth_fraction_per_year: Floats | float, months: int) -> Floats:
    """GPU-hours of each month without chance, shape (…, months); growth may be below 0."""
    years = (np.arange(months) + 0.5) / MONTHS_PER_YEAR
    growth = np.maximum(np.asarray(growth_fraction_per_year, np.float64), LEAST_GROWTH)
    return np.asarray(gpu_h_per_month * np.exp(np.log1p(growth) * years))


def wandering(
    paths: int, months: int, rng: np.random.Generator, *, log_sd_per_root_year: float, weeks: tuple[float, ...] = ()
) -> Floats:
    """What chance does to each month, as a factor, (paths, months): a random walk, and recorded weeks drawn anew.

    weeks: ratios of recorded weeks to their trend; empty where there is no record.
    """
    factor = np.ones((paths, months))
    if log_sd_per_root_year:
        steps = rng.standard_normal((paths, months), dtype=np.float32) * (log_sd_per_root_year / np.sqrt(12))
        factor = np.exp(np.cumsum(steps, axis=1, dtype=np.float64))
    return factor * _resampled(weeks, paths, months, rng) if weeks else factor


LEAST_GROWTH = -0.99
"""A demand that shrinks faster is one that ends."""
WEEKS_DRAWN = 4
"""Whole weeks that are drawn for a month: weeks are alike, days and hours are not."""


def _resampled(weeks: tuple[float, ...], paths: int, months: int, rng: np.random.Generator) -> Floats:
    """Blocks of whole weeks, drawn with replacement (Künsch, Annals of Statistics 17 (1989) 1217), as month factors."""
    ratios = np.asarray(weeks)
    start = rng.integers(0, len(ratios), (paths, months))
    places = (start[..., None] + np.arange(WEEKS_DRAWN)) % len(ratios)
    return np.asarray(ratios[places].mean(axis=-1))


SMALL_GPUS = 1.0
"""Below one GPU in use on average nothing that is owned can be kept busy."""
VARYING = 1.0
"""A standard deviation above the mean: of 16 recorded teams (Helios, Earth, May 2020) the three above it are those that
should own nothing where the cloud costs twice as much."""
UNKNOWN_FACTOR = 2.5
"""A level of which the 80 % interval reaches so many times up and down is not known."""
THREE_DIGITS = 1000
GROWING = 0.5
"""Half as much again a year: what is bought today is too small before it is paid off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """exploring, growing or steady, and the rule that says so."""

    stage: Literal["exploring", "growing", "steady"]
    rule: Message


def staged(gpus: float, level_log_sd: float, growth_fraction_per_year: float, shape: Shape) -> Staged:
    """The stage of a demand by a rule that is printed: small, unknown, varying or shrinking demand is exploring.

    gpus: in use at once, on average; level_log_sd: how well that is known.
    """
    factor = float(np.exp(Z80 * level_log_sd))
    change = growth_fraction_per_year
    if gpus < SMALL_GPUS:
        text = Message("small: {gpus:.2g} GPUs in use on average, less than {most:g}", gpus=gpus, most=SMALL_GPUS)
    elif factor > UNKNOWN_FACTOR:
        text = Message("unknown: the level is known only to a factor of {factor:.1f}", factor=factor)
    elif shape.measured and shape.variation > VARYING:
        values = {"sd": shape.variation, "most": VARYING}
        text = Message("varying: the standard deviation is {sd:.1f} times the mean, above {most:g}", **values)
    elif change <= -GROWING:
        text = Message("shrinking by {change:.0%} a year, which is {most:.0%} or more", change=-change, most=GROWING)
    elif change >= GROWING:
        text = Message("it grows by {change:.0%} a year, which is {most:.0%} or more", change=change, most=GROWING)
        return Staged(stage="growing", rule=text)
    else:
        text = Message("{gpus} GPUs in use on average, and a change below {most:.0%} a year",
                       gpus=f"{gpus:,.3g}" if gpus < THREE_DIGITS else f"{gpus:,.0f}", most=GROWING)  # fmt: skip
        return Staged(stage="steady", rule=text)
    return Staged(stage="exploring", rule=text)
