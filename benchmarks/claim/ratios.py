"""Cloud over own, per useful GPU-hour, at frozen prices with their days: by utilisation, price and place.

Own costs are the product's (`own.case.asset`, `own.plan.own_usd_per_gpu_hour`), with the ranges of the bundled figures;
cloud hours carry what is billed while idle, spot also what is lost. A commitment is paid whether it is used or not, as
an owned GPU is. The ratio's 80 % interval decides: twice or more, less than twice, or it depends.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import cache
from pathlib import Path

import numpy as np

from gpuwise.api.assembly import Assembled, assemble
from gpuwise.api.wanted import accelerator_of, wanted
from gpuwise.own.case import asset, tail
from gpuwise.own.plan import own_usd_per_gpu_hour
from gpuwise.request import OwnRequest, parse

PRICES = Path(__file__).parent / "prices.csv"
PATHS, SEED = 20_000, 0
UTILISATIONS = (0.2, 0.4, 0.6, 0.8, 0.95)
TWICE, THRICE = 2.0, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """A time of the claim: the GPU, the day that is asked about, and the model of the server."""

    key: str
    gpu: str
    day: date
    server: str


ERAS = (
    Era(key="2021", gpu="A100-SXM4-40GB", day=date(2021, 12, 31), server="DGX A100 320GB"),
    Era(key="today", gpu="H100-SXM", day=date(2026, 11, 30), server="HGX H100"),
)
PLACES = (("one server in the office", "office", True), ("a cluster in colocation", "colocation", False))
"""In words, the site, and whether the server stands alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One frozen price."""

    era: str
    kind: str
    provider: str
    usd_per_gpu_hour: float
    observed: date
    source: str
    offer: str


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


@cache
def prices() -> tuple[Price, ...]:
    with PRICES.open(encoding="utf-8", newline="") as file:
        return tuple(_price(row) for row in csv.DictReader(file))


def _price(row: dict[str, str]) -> Price:
    figures = {"usd_per_gpu_hour": float(row["usd_per_gpu_hour"]), "observed": date.fromisoformat(row["observed"])}
    return Price(**{**row, **figures})  # type: ignore[arg-type]


@cache
def assembled(era: Era) -> Assembled:
    """The figures of owning at that time; the cloud's price is put in row by row."""
    said = {"demand": "40 GPUs", "gpu": era.gpu, "server": era.server, "cloud-price": "1 USD", "country": "US",
            "as-of": era.day.isoformat()}  # fmt: skip
    request = parse(OwnRequest, said)
    device = accelerator_of(request)
    return assemble(request, device, wanted(request, device), era.day)


def ratio(era: Era, price: Price, place: tuple[str, str, bool], utilisation: float) -> Ratio:
    """Of one price, at one place, where an owned GPU is in use for this share of the time."""
    found = assembled(era)
    drawn = dict(found.case.figures.drawn(PATHS, np.random.default_rng(SEED)))
    drawn["cloud_usd_per_gpu_hour"] = np.full((1, 1), price.usd_per_gpu_hour)
    _words, site, alone = place
    own = own_usd_per_gpu_hour(asset(found.case, drawn, site, alone=alone), drawn["discount_fraction"], utilisation)
    ends = np.quantile(_cloud(price, drawn, utilisation) / own, (0.1, 0.5, 0.9))
    return Ratio(low=float(ends[0]), middle=float(ends[1]), high=float(ends[2]))


def _cloud(price: Price, drawn: dict[str, np.ndarray], utilisation: float) -> np.ndarray:
    """USD for a useful hour."""
    hourly = np.asarray(tail(drawn).useful_usd_per_gpu_hour)
    if price.kind.startswith("commitment"):
        return np.asarray(price.usd_per_gpu_hour / utilisation)
    return hourly / (1 - drawn["spot_waste_fraction"]) if price.kind == "spot" else hourly


def table(era: Era, place: tuple[str, str, bool]) -> Iterator[tuple[Price, list[Ratio]]]:
    """Each price with its ratio at every utilisation."""
    for price in prices():
        if price.era == era.key:
            yield price, [ratio(era, price, place, share) for share in UTILISATIONS]
