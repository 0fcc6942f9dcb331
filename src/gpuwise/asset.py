"""What can be bought, where it can stand, and what goes with leaving a cloud: dated facts, one record each.

A figure that no source gives is None; `reasons`, or the note of the record, says why. Money in USD unless it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from gpuwise.errors import Message
from gpuwise.units import Usd, Watts

HostingKind = Literal["electricity", "pue", "colocation"]
Portability = Literal["A", "B", "C"]
"""A: an open product with the same interface takes its place. B: an open product, with changes. C: none: a rewrite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A machine that can be bought, with the day on which its price was seen.

    accelerator: id, None where the chassis takes several kinds; max_power_w: at the most, as the data sheet says it.
    price_usd: of the whole machine; None with reasons["price_usd"]. price_kind: list, offer, street, insured value.
    complete: False for a baseboard without its host.
    """

    id: str
    vendor: str
    model: str
    configuration: str
    accelerator: str | None
    accelerators: int | None
    rack_units: float | None
    max_power_w: Watts | None
    link: str | None
    cpu: str | None
    price_usd: Usd | None
    price_native: float | None
    currency: str
    price_kind: str
    observed: date | None
    observed_precision: str
    complete: bool
    source: str
    note: str = ""
    reasons: Mapping[str, Message] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostingFact:
    """What a place costs. country: ISO 3166-1 alpha-2, None for a region of the world or a provider (`region`).

    value in `unit`: USD/kWh (electricity), 1 (PUE), USD/kW-month (colocation). customer: for whom it holds.
    """

    kind: HostingKind
    country: str | None
    region: str | None
    value: float
    unit: str
    customer: str
    observed: date
    observed_precision: str
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCarbon:
    """Greenhouse gases of a country's electricity in one year, in g CO2e a kWh."""

    country: str
    name: str
    year: int
    g_co2e_per_kwh: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A managed service of a cloud, and what takes its place elsewhere.

    names: as bills spell it (FOCUS ServiceName), casefolded. effort_low_days, effort_high_days: working days of one
    engineer to move one use of it; None where nobody says. valid_from: the day from which the row holds.
    """

    provider: str
    name: str
    names: tuple[str, ...]
    category: str
    gives: str
    portability: Portability
    replacement: str
    effort_low_days: float | None
    effort_high_days: float | None
    valid_from: date
    valid_until: date | None
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """When a provider, or a law, lets data go for less. usd_per_gb: what is left to pay, None for "at cost".

    covers: exit (the account is closed), switching (to another provider or to own premises), parallel (both are used).
    where: provider, or the law's area such as EU. valid_until: last day, None if it goes on.
    """

    where: str
    covers: Literal["exit", "switching", "parallel"]
    condition: str
    usd_per_gb: float | None
    valid_from: date
    valid_until: date | None
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A private line out of a provider: a price a GB, and one a month for the line of gbit_per_s."""

    provider: str
    name: str
    gbit_per_s: float | None
    usd_per_gb: float
    usd_per_month: float | None
    observed: date
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdTier:
    """A storage class that bills data for least_days, deleted or not, and each GB that is read back."""

    provider: str
    name: str
    least_days: float
    usd_per_gb_month: float | None
    retrieval_usd_per_gb: float | None
    observed: date
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadTime:
    """Weeks from order to first job, as a range. kind: cloud, dedicated, bundle (pre-integrated), server, parts."""

    kind: Literal["cloud", "dedicated", "bundle", "server", "parts"]
    low_weeks: float
    high_weeks: float
    observed: date
    source: str
    note: str = ""
