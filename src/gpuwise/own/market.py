"""What a GPU-hour costs to rent, by market; and from which utilisation on owning beats each price.

Break-even utilisation h*: an owned GPU costs F USD a year whether it works or not and r USD a busy hour; the cloud
costs c for each hour of use. They are equal at h* = F / (8,760 · (c − r)); above 1, or with c ≤ r, there is none. What
is rented for a term is paid whether used or not, and yet its price is taken as c here; hours that are billed idle or
lost on spot are not added to c.

Source: any of the published studies (Uptime Institute, Lenovo LP2225) is this formula at another price. Test value: a
GPU of 14,000/7 = 2,000 USD a year against 0.45 USD an hour: 2,000 / (8,760 · 0.45) = 0.507 (UC-095).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.offer import Offer
from gpuwise.units import HOURS_PER_YEAR, Fraction, UsdPerHour

Floats = NDArray[np.float64]
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
    """One price, and the utilisation from which owning is cheaper; None: from none."""

    quote: Quote
    fraction: Fraction | None


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


def break_even(yearly_usd_per_gpu: float, running_usd_per_gpu_hour: float, usd_per_gpu_hour: float) -> Fraction | None:
    """Share of all hours that an owned GPU must work to cost as much as renting; None where it never does."""
    margin = usd_per_gpu_hour - running_usd_per_gpu_hour
    if margin <= 0:
        return None
    share = yearly_usd_per_gpu / (HOURS_PER_YEAR * margin)
    return share if share <= 1 else None


def break_evens(
    found: Sequence[Quote], yearly_usd_per_gpu: float, running_usd_per_gpu_hour: float
) -> tuple[BreakEven, ...]:
    """Against each price."""
    return tuple(
        BreakEven(
            quote=quote, fraction=break_even(yearly_usd_per_gpu, running_usd_per_gpu_hour, quote.usd_per_gpu_hour)
        )
        for quote in found
    )
