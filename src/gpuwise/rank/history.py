"""What an hour of a GPU cost, quarter by quarter: the dated prices of all offers of it, by market.

    USD a GPU-hour = USD an hour of the offer / its accelerators

Test value: 8 GPUs at 32.77 USD an hour: 4.09625. Lowest, median and highest are of the offers, not weighted by how many
machines stand behind each: a list says what is asked, not what is sold.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

import numpy as np

from gpuwise.catalogue import NO_DATE, Catalogue, as_date
from gpuwise.units import UsdPerHour

LEFT_OUT = ("free", "owned")
"""Markets without a price of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarter:
    """Prices seen in one quarter on one market. first: its first day. offers: how many; USD a GPU-hour."""

    first: date
    market: str
    offers: int
    lowest_usd_per_gpu_hour: UsdPerHour
    median_usd_per_gpu_hour: UsdPerHour
    highest_usd_per_gpu_hour: UsdPerHour


def price_history(offers: Catalogue, accelerators: Collection[str]) -> tuple[Quarter, ...]:
    """By market and quarter, the oldest first; empty where no dated price is known. accelerators: ids of the card."""
    wanted = set(accelerators)
    named = offers.accelerator.isin([value for value in offers.accelerator.values if set(value.split("|")) <= wanted])
    markets = offers.market.isin([value for value in offers.market.values if value not in LEFT_OUT])
    each = offers.price_usd_per_hour / np.maximum(offers.accelerators, 1) / np.maximum(offers.nodes, 1)
    kept = named & markets & (offers.observed != NO_DATE) & (offers.accelerators >= 1) & (each > 0)
    groups: dict[tuple[date, str], list[float]] = {}
    for row in np.flatnonzero(kept):
        day, market = as_date(int(offers.observed[row])), offers.market[int(row)]
        assert day is not None
        first = date(day.year, 3 * ((day.month - 1) // 3) + 1, 1)
        groups.setdefault((first, market or ""), []).append(float(each[row]))
    return tuple(
        Quarter(
            first=first, market=market, offers=len(prices), lowest_usd_per_gpu_hour=min(prices),
            median_usd_per_gpu_hour=float(np.median(prices)), highest_usd_per_gpu_hour=max(prices),
        )
        for (first, market), prices in sorted(groups.items())
    )  # fmt: skip
