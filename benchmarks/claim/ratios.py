"""Cloud over own, per useful GPU-hour, at frozen prices with their days: by utilisation, price and place.

Own costs are the product's (`own.case.asset`, `own.plan.own_usd_per_gpu_hour`, `own.market.break_even`), with the
ranges of the frozen figures; cloud hours carry what is billed while idle, spot also what is lost. A commitment is paid
whether it is used or not, as an owned GPU is. The ratio's 80 % interval decides: twice or more, less, or it depends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from benchmarks.claim.frozen import Era, Price, case, prices
from gpuwise.own.case import asset, useful_usd
from gpuwise.own.figures import Drawn
from gpuwise.own.market import break_even
from gpuwise.own.plan import own_usd_per_gpu_hour, useful_year_usd

Floats = NDArray[np.float64]
PATHS, SEED = 20_000, 0
FEW = 2_000
"""Paths for utilisations, which are found one by one."""
ENDS = (0.1, 0.5, 0.9)
UTILISATIONS = (0.2, 0.4, 0.6, 0.8, 0.95)
TWICE, THRICE = 2.0, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where own servers stand. alone: the only one, which needs no network of a cluster."""

    words: str
    site: str
    alone: bool


PLACES = (
    Place(words="one server in the office", site="office", alone=True),
    Place(words="a cluster in colocation", site="colocation", alone=False),
)


class Verdict(Enum):
    """What the interval of the ratio says of "two to three times as dear"."""

    MORE = "more than three times"
    HOLDS = "holds"
    DEPENDS = "depends"
    LESS = "less than twice"
    CHEAPER = "the cloud is cheaper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Cloud over own: the middle and the ends of the 80 % interval."""

    middle: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """MORE: the interval lies above three. HOLDS: above twice. LESS: below twice. CHEAPER: below one."""
        if self.low >= THRICE:
            return Verdict.MORE
        if self.low >= TWICE:
            return Verdict.HOLDS
        if self.high < 1:
            return Verdict.CHEAPER
        return Verdict.LESS if self.high < TWICE else Verdict.DEPENDS


def of_paths(found: Floats) -> Ratio:
    low, middle, high = map(float, np.quantile(found, ENDS))
    return Ratio(low=low, middle=middle, high=high)


@cache
def _drawn(era: Era, paths: int) -> Drawn:
    return case(era).figures.drawn(paths, np.random.default_rng(SEED))


@cache
def ratio(era: Era, price: Price, place: Place, utilisation: float) -> Ratio:
    """Of one price, at one place, where an owned GPU is in use for this share of the time."""
    drawn = _drawn(era, PATHS)
    server = asset(case(era), drawn, place.site, alone=place.alone)
    own = own_usd_per_gpu_hour(server, drawn["discount_fraction"], utilisation)
    return of_paths(_cloud(price, drawn, utilisation) / own)


def committed(price: Price) -> bool:
    """Paid whether it is used or not."""
    return price.kind.startswith("commitment")


def _cloud(price: Price, drawn: Drawn, utilisation: float) -> Floats:
    """USD for a useful hour."""
    paid = np.full((1, 1), price.usd_per_gpu_hour)
    if committed(price):
        return paid / utilisation
    return useful_usd(drawn, paid, spot=price.kind == "spot")


def table(era: Era, place: Place) -> Iterator[tuple[Price, list[Ratio]]]:
    """Each price with its ratio at every utilisation."""
    for price in prices():
        if price.era == era.key:
            yield price, [ratio(era, price, place, share) for share in UTILISATIONS]


@cache
def used_from(era: Era, price: Price, place: Place, times: float) -> Ratio:
    """The share of the time in use from which the cloud costs so many times as much; inf: at no use.

    It is the break-even utilisation against the price over `times`, path by path.
    """
    drawn = _drawn(era, FEW)
    server = asset(case(era), drawn, place.site, alone=place.alone)
    yearly, running = useful_year_usd(server, drawn["discount_fraction"])
    found = np.ravel(break_even(yearly, running, _cloud(price, drawn, 1.0) / times))
    low, middle, high = np.quantile(np.where(found <= 1, found, inf), ENDS, method="lower")
    return Ratio(low=float(low), middle=float(middle), high=float(high))
