"""What a GPU-hour costs to rent, by market; and at how much use owning beats each price.

An owned GPU costs F USD a year whether it works or not and r USD a busy hour. c is the price of a GPU-hour.

    paid by the hour of use (on demand, spot; c of a useful hour): owning is cheaper from h* = F / (8,760 · (c − r)) on
    paid anyway (commitments, machines by the month): owning is cheaper up to h = (c − F / 8,760) / r, and often at any

Above 1, or with c ≤ r, there is no h*; with c ≤ F / 8,760 owning never beats what is paid anyway.

Source: any of the published studies (Uptime Institute, Lenovo LP2225) is the first formula at another price. Test
values: a GPU of 14,000/7 = 2,000 USD a year against 0.45 USD an hour: 2,000 / (8,760 · 0.45) = 0.507 (UC-095). 8,760
USD a year and 0.5 USD a busy hour against a commitment of 1.25 USD: up to 0.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.offer import Offer
from gpuwise.own.ledger import break_even_h
from gpuwise.units import HOURS_PER_YEAR, Fraction, UsdPerHour

Floats = NDArray[np.float64]
Figure = Floats | float
WAYS = ("on-demand", "committed-1y", "committed-3y", "spot", "dedicated")
TERMS: Mapping[str, tuple[float, float]] = {"committed-1y": (0.9, 1.1), "committed-3y": (2.7, 3.3)}
"""Years that a reserved offer's term lies between, to stand for a commitment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """An offer as a price of one GPU-hour. block: GPUs that come together."""

    way: str
    offer: Offer
    usd_per_gpu_hour: UsdPerHour
    block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """One price, and between which shares of the time in use owning is cheaper; both None: at none.

    offer: None for the person's own price. usd_per_gpu_hour: as it is billed; useful_usd_per_gpu_hour: with what is
    billed without work, None for what is paid anyway.
    """

    way: str
    offer: Offer | None
    usd_per_gpu_hour: UsdPerHour
    useful_usd_per_gpu_hour: UsdPerHour | None
    from_fraction: Fraction | None
    upto_fraction: Fraction | None


def way_of(offer: Offer) -> str | None:
    """Which way of renting an offer is; None for what cannot be planned with (free, community, owned, odd terms)."""
    if offer.market in ("on-demand", "spot", "dedicated"):
        return offer.market
    if offer.market != "reserved" or offer.term_h is None:
        return None
    years = offer.term_h / HOURS_PER_YEAR
    return next((way for way, (low, high) in TERMS.items() if low <= years <= high), None)


def quotes(offers: Catalogue, rows: Iterable[int], usd_per_hour: Floats, accelerator: str) -> list[Quote]:
    """The offers of these rows that are surely of this accelerator, the cheapest GPU-hour of each way first.

    usd_per_hour: what each row of the catalogue is billed, after agreements.
    """
    found = []
    for row in map(int, rows):
        offer = offers.offer(row)
        way, hourly = way_of(offer), float(usd_per_hour[row])
        if way is not None and offer.accelerator == accelerator and hourly > 0 and offer.accelerators:
            each = hourly / offer.accelerators
            found.append(Quote(way=way, offer=offer, usd_per_gpu_hour=each, block=offer.accelerators))
    return sorted(found, key=lambda quote: (WAYS.index(quote.way), quote.usd_per_gpu_hour))


def cheapest(found: Sequence[Quote]) -> dict[str, Quote]:
    """Of each way the cheapest."""
    best: dict[str, Quote] = {}
    for quote in found:
        best.setdefault(quote.way, quote)
    return best


def by_provider(found: Sequence[Quote]) -> list[Quote]:
    """Of each way the cheapest of each provider."""
    best: dict[tuple[str, str], Quote] = {}
    for quote in found:
        best.setdefault((quote.way, quote.offer.provider), quote)
    return list(best.values())


PAID_BY_USE = ("on-demand", "spot")


def break_even(yearly_usd_per_gpu: Figure, running_usd_per_gpu_hour: Figure, usd_per_gpu_hour: Figure) -> Floats:
    """Share of all hours that an owned GPU must work to cost as much as an hour of use: above 1 or inf, where it never
    does. Of useful hours on both sides."""
    return break_even_h(yearly_usd_per_gpu, usd_per_gpu_hour, running_usd_per_gpu_hour) / HOURS_PER_YEAR


def owning_pays(
    yearly_usd_per_gpu: float, running_usd_per_gpu_hour: float, usd_per_gpu_hour: float, *, by_use: bool
) -> tuple[Fraction, Fraction] | None:
    """Between which shares of the time in use owning is cheaper; None: at none. by_use: else paid whatever the use."""
    if by_use:
        start = float(break_even(yearly_usd_per_gpu, running_usd_per_gpu_hour, usd_per_gpu_hour))
        return (start, 1.0) if start <= 1 else None
    left = usd_per_gpu_hour - yearly_usd_per_gpu / HOURS_PER_YEAR
    if left <= 0:
        return None
    return 0.0, 1.0 if left >= running_usd_per_gpu_hour else left / running_usd_per_gpu_hour
