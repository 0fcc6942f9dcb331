"""What each month cost, from rows of a cost export, by one kind of cost at a time.

Kinds answer different questions and are never mixed: EffectiveCost spreads what was paid up front over the time that it
is for (what did it cost?), BilledCost is what the invoice of the month says (what was paid?), ContractedCost is at
negotiated prices without commitments, ListCost at public prices. Several currencies are never added up.

Source: FOCUS 1.0, BilledCost, ContractedCost, EffectiveCost, ListCost. Test value: 12,000 billed in January for a year:
BilledCost 12,000 in January and 0 after, EffectiveCost 1,000 in each month.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

KINDS = {
    "effective": "EffectiveCost",
    "billed": "BilledCost",
    "list": "ListCost",
    "contracted": "ContractedCost",
}
"""What a person says -> the column of FOCUS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """What one kind comes to in one month and currency. charges: rows that it is the sum of."""

    month: str
    currency: str
    amount: float
    charges: int


class Ledger:
    """Sums by kind, month and currency, however many rows there are: exact to the last bits (Neumaier 1974)."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str], list[float]] = {}
        self._counts: dict[tuple[str, str, str], int] = {}

    def add(self, kind: str, month: str, currency: str, amount: float) -> None:
        key = kind, month, currency
        parts = self._sums.setdefault(key, [0.0, 0.0])
        self._counts[key] = self._counts.get(key, 0) + 1
        whole = parts[0] + amount
        large, small = (parts[0], amount) if abs(parts[0]) >= abs(amount) else (amount, parts[0])
        parts[1] += large - whole + small
        parts[0] = whole

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for kind, _month, _currency in self._sums))

    def months(self, kind: str) -> tuple[Month, ...]:
        """Currency by currency, the earliest month first."""
        keys = sorted((c, m) for k, m, c in self._sums if k == kind)
        return tuple(
            Month(month=m, currency=c, amount=sum(self._sums[kind, m, c]), charges=self._counts[kind, m, c])
            for c, m in keys
        )

    def totals(self, kind: str) -> Iterator[tuple[str, float]]:
        """Currency -> what the kind comes to over all months."""
        months = self.months(kind)
        for currency in dict.fromkeys(month.currency for month in months):
            yield currency, sum(month.amount for month in months if month.currency == currency)
