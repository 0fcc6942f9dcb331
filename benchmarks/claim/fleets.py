"""Steady or varying, small or large: all cloud over own servers with the rest of the work in the cloud, five years.

As many servers are taken as cost least over chance (`own.case.servers`), but one at least: the claim is about owning.
Both sides are the value today of all that is paid (`own.plan.flows`), on the same paths; the demand does not grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from benchmarks.claim.frozen import Era, Price, case, prices
from benchmarks.claim.ratios import FEW, SEED, Ratio, of_paths
from gpuwise.model import Assumption
from gpuwise.own.case import SEARCHED, Case, Count, servers, stack, world
from gpuwise.own.choose import discount
from gpuwise.own.demand import UNKNOWN_FACTOR
from gpuwise.own.figures import figures
from gpuwise.own.plan import flows
from gpuwise.units import HOURS_PER_MONTH

SITE = "colocation"
GPUS = (1, 4, 8, 40, 200)
"""In use at once, on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """How demand behaves. variation: its standard deviation over its mean within a month; factor: how well its level
    is known, up and down. there: the five years begin when the servers work, not when they are ordered."""

    words: str
    variation: float
    factor: float = 1.0
    there: bool = False


DEMANDS = (
    Demand(words="steady, from the day on which servers work", variation=0.0, there=True),
    Demand(words="steady", variation=0.0),
    Demand(words="as the middle team of Helios (0.53)", variation=0.525),
    Demand(words="varying (2.2, as one team in ten)", variation=2.198),
    Demand(words="steady, level known to a factor of 2.5", variation=0.0, factor=UNKNOWN_FACTOR),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Servers, and all cloud over them with the rest in the cloud. pays: fewer servers would cost more."""

    servers: int
    ratio: Ratio
    pays: bool


def list_price(era: Era) -> Price:
    """AWS on demand: the price that the claim speaks of."""
    return next(one for one in prices() if (one.era, one.provider, one.kind) == (era.key, "aws", "on demand"))


def table(era: Era) -> Iterator[tuple[int, list[Fleet]]]:
    for gpus in GPUS:
        yield gpus, [fleet(era, list_price(era), gpus, demand) for demand in DEMANDS]


@cache
def fleet(era: Era, price: Price, gpus: int, demand: Demand) -> Fleet:
    """The best number of servers for so many GPUs in use on average, one at least."""
    asked = _case(era, price, gpus * HOURS_PER_MONTH, demand)
    drawn = asked.figures.drawn(SEARCHED, np.random.default_rng(SEED))
    best = servers(asked, drawn, world(asked, drawn), SITE)
    number = max(best, 1)
    return Fleet(servers=number, ratio=_ratio(asked, number), pays=best > 0)


def _ratio(asked: Case, number: int) -> Ratio:
    drawn = asked.figures.drawn(FEW, np.random.default_rng(SEED))
    factors = discount(asked.months, drawn["discount_fraction"])
    lived = world(asked, drawn)
    rented, owned = (
        (flows(*stack(asked, count, drawn), lived).total_usd * factors).sum(axis=1)
        for count in (Count(), Count(servers={SITE: number}))
    )
    return of_paths(rented / owned)


def _case(era: Era, price: Price, gpu_h: float, demand: Demand) -> Case:
    """The frozen case with this demand and price."""
    said: Mapping[str, tuple[float, float]] = {
        "demand_gpu_h_per_month": (gpu_h, demand.factor),
        "demand_variation": (demand.variation, 1.0),
        "cloud_usd_per_gpu_hour": (price.usd_per_gpu_hour, 1.0),
    }
    if demand.there:
        said = {**said, "lead_weeks": (0.0, 1.0)}
    put = [
        Assumption(name=name, value=value, low=value / factor, high=value * factor, unit="as said", source="stated")
        for name, (value, factor) in said.items()
    ]
    found = case(era)
    return replace(found, figures=figures((*found.figures.by_name.values(), *put)))
