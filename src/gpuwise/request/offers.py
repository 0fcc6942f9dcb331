# ruff: noqa: RUF009 - about() is dataclasses.field() with our metadata
"""Which offers are looked at: what `rank`, `explain` and `data` share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from gpuwise.request.about import about
from gpuwise.units import Fraction, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferFilters:
    """Which offers are looked at. A filter that is not given lets everything through."""

    gpu: tuple[str, ...] = about(
        "GPU by name, memory of each (80GB..) or number (1..8); several names mean any of them.",
        kind="gpu", default=(), show="NAME|RANGE", example="H100-SXM,A100-80GB:8",
    )  # fmt: skip
    provider: tuple[str, ...] = about(
        "Only these providers.", kind="names", default=(), show="NAME", example="aws,lambda"
    )
    region: tuple[str, ...] = about(
        "Only regions that begin with this.", kind="names", default=(), show="PREFIX", example="eu-"
    )
    market: tuple[str, ...] = about(
        "Only these markets.", kind="market", show="MARKET", default=(), example="on-demand,spot"
    )
    host: str = about(
        "datacentre: no machines of private hosts.", kind="host", show="HOST", default="any", example="datacentre"
    )
    max_price_usd_per_hour: UsdPerHour | None = about(
        "Highest price of the whole offer, an hour (a bare number: in --currency).",
        kind="price",
        show="MONEY",
        flags=("--max-price",),
        example="2.50USD",
    )
    data_must_stay: str | None = about(
        "Where the data must stay: a country code, EU, or on-premises.", kind="place", show="WHERE", example="EU"
    )
    startable: bool = about("Only offers known to be available now.", kind="flag", default=False)
    as_of: date | None = about(
        "The day to answer for (default: today).", kind="date", show="DATE", example="2026-11-30"
    )
    max_age_days: int = about(
        "Oldest price allowed, in days before --as-of.",
        kind="days",
        show="DAYS",
        default=365,
        flags=("--max-age",),
        example="90",
    )
    offers: tuple[str, ...] = about(
        "Your own offers: CSV or TOML.",
        kind="paths",
        show="FILE",
        default=(),
        group="Your own data",
        example="offers.csv",
    )
    machine: tuple[str, ...] = about(
        "Your own machines: TOML.", kind="paths", show="FILE", default=(), group="Your own data", example="machine.toml"
    )
    discounts: str | None = about(
        "Your rates, credits and committed hours: TOML.",
        kind="path",
        show="FILE",
        group="Your own data",
        example="discounts.toml",
    )
    only_offers: bool = about("Leave the bundled offers out.", kind="flag", default=False, group="Your own data")
    live: bool = about(
        "Ask the providers for today's prices (extra [live]).", kind="flag", default=False, group="Your own data"
    )
    min_reliability_fraction: Fraction = about(
        "Lowest reliability of a marketplace's host, where the offer states one.",
        kind="share", show="PERCENT", default=0.9, flags=("--min-reliability",), example="95%",
    )  # fmt: skip
    currency: str = about(
        "Currency to show.", kind="currency", show="CODE", default="USD", group="Output", example="EUR"
    )
    usd_per_unit: float | None = about(
        "Your own exchange rate: USD for one unit of --currency. If one USD is 6.70 of it, write 1/6.70.",
        kind="exchange", show="RATE", group="Output", flags=("--rate",), example="1.16",
    )  # fmt: skip
