"""What can be rented or owned: an offer with its price and billing rule, and a machine as its owner states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from gpuwise.errors import Message
from gpuwise.units import (
    HOURS_PER_MONTH,
    Fraction,
    Gib,
    Gigabytes,
    Hours,
    Seconds,
    Usd,
    UsdPerHour,
    Watts,
)

Market = Literal["on-demand", "spot", "reserved", "dedicated", "community", "free", "owned"]
Availability = Literal["available", "on request", "sold out", "withdrawn", "unknown"]
PriceUnit = Literal["hour", "month", "term"]
Host = Literal["datacentre", "peer", "own", "unknown"]
BillingClock = Literal["elapsed", "calendar"]
Stopped = Literal["nothing", "disk", "everything"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a fact comes from. ref: a key of sources.csv, or the person's file."""

    kind: Literal["measured", "published", "quoted", "predicted", "assumed"]
    ref: str
    retrieved: date | None = None
    licence: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine one owns or rents outright, as its owner states it. Money in USD; an example says so.

    capex_usd: paid at purchase; residual_usd: worth at the end of life_years. power_w at the wall under load;
    pue: facility power / machine power; electricity_usd_per_kwh; hosting_usd_per_month and staff_usd_per_month.
    discount_fraction: yearly cost of capital. low, high: ends of the 80 % range of a figure, by its name.
    preparation_s: until a first step can run on it, as `check` found it; None: as assumed for every machine.
    """

    name: str
    accelerator: str
    accelerators: int
    capex_usd: Usd
    residual_usd: Usd
    life_years: float
    power_w: Watts
    pue: float
    electricity_usd_per_kwh: float
    hosting_usd_per_month: float
    staff_usd_per_month: float
    discount_fraction: Fraction
    preparation_s: Seconds | None = None
    low: Mapping[str, float] = field(default_factory=dict)
    high: Mapping[str, float] = field(default_factory=dict)
    country: str | None = None
    example: bool = False
    observed: date | None = None
    source: Source
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One thing that can be rented or owned, with the day on which its price was seen. See `catalogue` for columns.

    price_usd_per_hour: of the whole instance; None with reasons["price_usd_per_hour"]. memory_gib: nominal, per GPU.
    accelerator: one id, or ids joined by "|" where the variant is unknown. accelerators: of all `nodes` together.
    term_h: length of a commitment. upfront_usd: paid at once. running_usd_per_hour: part of the price that falls due
    only in busy hours. billing_step_s, billing_minimum_s: None where the provider's rule is unknown; billing_clock:
    calendar counts the hours of the clock that a run touches. fee_usd: on top at each start. monthly_cap_h: hours of a
    month after which nothing more is charged for it. host_gpus: GPUs of the physical host; host_shared: others use it
    too. disk_included_gb: in the price. storage_usd_per_gb_month: of more disk; egress_usd_per_gb: of data that leaves;
    address_usd_per_hour: of the public address. stopped: what a stopped machine is billed. session_limit_s: longest
    session, longest_h: for so long the host keeps the offer up. losses_per_hour: interruptions of one node. wait_s:
    until the machine starts. reliability_fraction: as a marketplace states it of its host.
    """

    id: str
    provider: str
    instance: str
    region: str | None
    country: str | None
    market: Market
    accelerator: str
    accelerators: int
    memory_gib: Gib | None
    vcpus: int | None
    host_memory_gib: Gib | None
    link: str | None
    host: Host
    availability: Availability
    price_usd_per_hour: UsdPerHour | None
    price_native: float | None
    currency: str
    price_unit: PriceUnit
    term_h: Hours | None
    upfront_usd: Usd | None
    billing_step_s: Seconds | None
    billing_minimum_s: Seconds | None
    observed: date | None
    observed_precision: str
    quality: str
    source: Source
    nodes: int = 1
    price_state: str = "listed"
    tax: str = "unknown"
    vat_fraction: Fraction | None = None
    running_usd_per_hour: UsdPerHour | None = None
    price_log_sd: float | None = None
    preparation_s: Seconds | None = None
    licence_usd_per_month: Usd | None = None
    withdrawn: date | None = None
    billing_clock: BillingClock | None = None
    fee_usd: Usd | None = None
    monthly_cap_h: Hours | None = None
    host_gpus: int | None = None
    host_shared: bool | None = None
    disk_included_gb: Gigabytes | None = None
    storage_usd_per_gb_month: float | None = None
    egress_usd_per_gb: float | None = None
    address_usd_per_hour: UsdPerHour | None = None
    stopped: Stopped | None = None
    session_limit_s: Seconds | None = None
    longest_h: Hours | None = None
    losses_per_hour: float | None = None
    wait_s: Seconds | None = None
    reliability_fraction: Fraction | None = None
    note: str = ""
    reasons: Mapping[str, Message] = field(default_factory=dict)

    @property
    def usd_per_unit(self) -> float | None:
        """USD for one unit of `currency`, as this price was converted; None in USD, and without a price."""
        if self.currency == "USD" or not self.price_native or not self.price_usd_per_hour:
            return None
        if self.price_unit == "term":
            return self.price_usd_per_hour * (self.term_h or 0.0) / self.price_native
        advance = self.upfront_usd / self.term_h if self.upfront_usd and self.term_h else 0.0
        hourly = self.price_usd_per_hour - advance - (self.running_usd_per_hour or 0.0)
        return hourly * (HOURS_PER_MONTH if self.price_unit == "month" else 1.0) / self.price_native


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFact:
    """One dated fact about a provider's platform. value: a word of a closed list, a number in the unit that the name
    ends with (as text), or free text (see `docs/reference/files.md`)."""

    name: str
    value: str
    observed: date | None
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What is known of a provider's platform beside prices; a fact that nobody states is not there."""

    name: str
    facts: Mapping[str, ProviderFact] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """The value of a fact in words, None if nobody states it."""
        fact = self.facts.get(name)
        return None if fact is None else fact.value

    def number(self, name: str) -> float | None:
        """The value of a fact in figures, None if nobody states it."""
        fact = self.facts.get(name)
        return None if fact is None else float(fact.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuHost:
    """A machine without a GPU on which a disk can be prepared, as it is listed: billed by the second."""

    provider: str
    instance: str
    region: str
    vcpus: int
    memory_gib: Gib
    usd_per_hour: UsdPerHour
    observed: date | None
    source: str
