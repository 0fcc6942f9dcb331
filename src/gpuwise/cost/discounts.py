"""What a person has agreed with a provider: negotiated rates, credits, and hours already paid for.

A negotiated rate replaces or lowers the price. Hours already committed cost nothing more until they are used up: their
marginal price is 0. Credits are money that pays a bill; they never hide it, so ranking and budget use the gross bill.

Source: FOCUS 1.1, ContractedCost, CommitmentDiscount and Credit. Test value: 10 h at 3 USD/h with 4 committed hours is
18 USD gross; a credit of 5 USD leaves 13 USD to pay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.units import Fraction, Hours, Usd, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which offers an agreement covers: every field given must match, None matches all."""

    provider: str
    instance: str | None = None
    region: str | None = None
    accelerator: str | None = None
    market: str | None = None

    def covers(self, offers: Catalogue) -> NDArray[np.bool_]:
        """Rows that it applies to, shape (n,)."""
        rows = np.ones(len(offers), bool)
        for column in ("provider", "instance", "region", "accelerator", "market"):
            if (wanted := getattr(self, column)) is not None:
                rows &= getattr(offers, column).isin((wanted,))
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A negotiated price: off_fraction below the list (0.15 = 15 % off), or a fixed price of the whole offer."""

    scope: Scope
    off_fraction: Fraction | None = None
    price_usd_per_hour: UsdPerHour | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """What is paid for already: instance hours still unused on the day asked about (left_h), or money for the charges
    of each hour (usd_per_hour), of which nothing is carried over to the next (`cost.commitments`)."""

    scope: Scope
    left_h: Hours = 0.0
    usd_per_hour: UsdPerHour = 0.0
    until: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """Money a provider has granted; it lapses on `until`."""

    provider: str
    left_usd: Usd
    until: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discounts:
    """All agreements of a person. Where several rates cover an offer, the one named last holds."""

    rates: Sequence[Rate] = ()
    commitments: Sequence[Commitment] = ()
    credits: Sequence[Credit] = ()

    def price_usd_per_hour(self, offers: Catalogue, as_of: date) -> NDArray[np.float64]:
        """The price of every row after negotiated rates, shape (n,); NaN stays unknown unless a price was agreed."""
        price = offers.price_usd_per_hour.copy()
        for rate in self.rates:
            if not _holds(rate.until, as_of):
                continue
            rows = rate.scope.covers(offers)
            if rate.price_usd_per_hour is not None:
                price[rows] = rate.price_usd_per_hour
            elif rate.off_fraction is not None:
                price[rows] = offers.price_usd_per_hour[rows] * (1 - rate.off_fraction)
        return price

    def covered(self, offers: Catalogue, as_of: date) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Rows that a negotiated rate holds for; of these the rows of an agreed price, which cannot have aged; (n,)."""
        rated, agreed = np.zeros((2, len(offers)), bool)
        for rate in self.rates:
            if _holds(rate.until, as_of):
                rows = rate.scope.covers(offers)
                rated |= rows
                agreed = (agreed & ~rows) | (rows & (rate.price_usd_per_hour is not None))
        return rated, agreed

    def committed_h(self, offers: Catalogue, as_of: date) -> NDArray[np.float64]:
        """Hours of every row that are paid for already, shape (n,)."""
        hours = np.zeros(len(offers))
        for commitment in self.commitments:
            if _holds(commitment.until, as_of):
                hours[commitment.scope.covers(offers)] += commitment.left_h
        return hours

    def covered_usd_per_hour(self, offers: Catalogue, as_of: date) -> NDArray[np.float64]:
        """What spend commitments pay of each hour of a row, shape (n,)."""
        covered = np.zeros(len(offers))
        for commitment in self.commitments:
            if _holds(commitment.until, as_of):
                covered[commitment.scope.covers(offers)] += commitment.usd_per_hour
        return covered

    def credit_usd(self, provider: str, bill_usd: Usd, as_of: date) -> Usd:
        """How much of a bill the provider's credits pay."""
        left = sum(c.left_usd for c in self.credits if c.provider == provider and _holds(c.until, as_of))
        return min(left, bill_usd)


def _holds(until: date | None, as_of: date) -> bool:
    return until is None or as_of <= until
