"""What is billed beside a machine: disks, data that leaves a provider or a region, a public address.

A tariff has tiers of one month: a GB costs what the tier says into which it falls. Tiers are decimal GB unless their
source says otherwise; a person's other traffic of the month may fill the first tiers, which is not known here.

Source: the providers' price lists as recorded in tariffs.csv. Test values: AWS's list (0.09 USD up to 10 TB, 0.085 for
the next 40, 0.07 for the next 100, 0.05 above, the first 100 GB free) bills 900 USD for the 10 TB of the first tier
and 3,400 for the 40 TB of the second; 2,000 GB at 0.08 USD a GB and month for 240 h are 52.60 USD (UC-069).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import inf
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuwise.units import HOURS_PER_MONTH, Fraction, Gigabytes, Hours, Usd

Figures = TypeVar("Figures", float, NDArray[np.float64])
"""One figure, or one an offer."""
Item = Literal["disk", "egress", "between regions", "within region", "address"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Units from `start` to `end` of one month (end None: all above), at usd_per_unit a GB, GB-month or hour."""

    start: float = 0.0
    end: float | None = None
    usd_per_unit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """One item at one provider. region: None where the price holds everywhere, or nobody says where."""

    provider: str
    region: str | None
    item: Item
    tiers: tuple[Tier, ...]
    observed: date | None
    source: str

    def shown(self, region: str | None) -> str:
        """Its source, with the region that it is of where another one is asked for."""
        return self.source if self.region in (None, region) else f"as in {self.region}, {self.source}"

    @property
    def first_usd(self) -> float:
        """Price of the first unit that is not free; 0 where all of it is."""
        return next((tier.usd_per_unit for tier in self.tiers if tier.usd_per_unit), 0.0)

    def usd(self, amount: float) -> Usd:
        return tiered_usd(self.tiers, amount)

    def parts(self, amount: float) -> list[tuple[float, float]]:
        """How many units fall into each tier, and at what price; tiers that are not reached are left out."""
        ends = [(t.start, inf if t.end is None else t.end, t.usd_per_unit) for t in self.tiers]
        return [(min(amount, end) - start, usd) for start, end, usd in ends if amount > start]


def tiered_usd(tiers: Sequence[Tier], amount: float) -> Usd:
    """What `amount` units of one month cost, each at the price of its tier."""
    return sum(max(min(amount, inf if t.end is None else t.end) - t.start, 0.0) * t.usd_per_unit for t in tiers)


def stored_usd(gigabytes: Figures, usd_per_gb_month: Figures, hours: Figures | Hours) -> Figures:
    """USD for a disk of so many GB for some hours, at a price a GB and month of 730 h."""
    return gigabytes * usd_per_gb_month * hours / HOURS_PER_MONTH


def transfer_s(gigabytes: Gigabytes, rate_gb_per_s: Figures, efficiency: Fraction = 1.0) -> Figures:
    """Seconds of a copy: 12 GB over 100 Mbit/s are 960 s (UC-052); 500 TB over 1 Gbit/s at 80 % are 58 days."""
    return gigabytes / (rate_gb_per_s * efficiency)


class Tariffs:
    """All tariffs, by provider and item; of several of one place the newest."""

    def __init__(self, rows: Iterable[Tariff] = ()) -> None:
        self._rows = tuple(rows)
        self._found: dict[tuple[str, str], dict[str | None, Tariff]] = {}
        for row in sorted(self._rows, key=lambda row: row.observed or date.min):
            self._found.setdefault((row.provider, row.item), {})[row.region] = row

    def find(self, provider: str, item: Item, region: str | None = None) -> Tariff | None:
        """The tariff of the region, or of the region that the provider's list names first, or None if nobody says."""
        known: Mapping[str | None, Tariff] = self._found.get((provider, item), {})
        return known.get(region) or known.get(None) or max(known.values(), key=_usual, default=None)

    def on(self, day: date) -> Tariffs:
        """Those that were seen by that day; of several of one place the newest of them."""
        return Tariffs(row for row in self._rows if row.observed is None or row.observed <= day)

    def regions(self, provider: str) -> frozenset[str]:
        """Those that the provider's tariffs name."""
        found = (known for (name, _item), known in self._found.items() if name == provider)
        return frozenset(region for known in found for region in known if region)

    @property
    def providers(self) -> frozenset[str]:
        return frozenset(provider for provider, _item in self._found)


def _usual(tariff: Tariff) -> tuple[bool, date]:
    """Which region stands for the others: the one in the east of the United States, where lists begin; the newest."""
    return "us-east" in (tariff.region or "") or tariff.region == "eastus", tariff.observed or date.min
