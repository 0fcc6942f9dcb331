# ruff: noqa: RUF009 - about() is dataclasses.field() with our metadata
"""The request types about owning: own (own or rent, how much) and exit (when to leave the cloud)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from gpuwise.request.about import about
from gpuwise.request.offers import OfferFilters
from gpuwise.units import Fraction, GbPerSecond, Gigabytes, Seconds, Usd


class Cooled(NamedTuple):
    """Data of it that lies in a cold storage class, and for how long it has lain there."""

    tier: str
    gb: Gigabytes
    stored_days: float


class Promised(NamedTuple):
    """A commitment that is paid until a day. usd_per_month: `units.Money` until its currency is converted."""

    until: date
    usd_per_month: Any


class Said(NamedTuple):
    """A figure that replaces an assumption: its middle, and the ends of its range where one is given."""

    name: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFilters(OfferFilters):
    """What is owned, where, and for how long one looks ahead: what `own` and `exit` share."""

    horizon_months: int = about(
        "How far to look ahead.", kind="horizon", show="TIME", default=60, group="Owning", flags=("--horizon",),
        example="5y",
    )  # fmt: skip
    stage: str | None = about(
        "Where the work stands (default: told by a rule from the demand). Exploring gets the cloud.",
        kind="stage", show="STAGE", group="Owning", example="steady",
    )  # fmt: skip
    server: str | None = about(
        "The server to buy, by model (default: the cheapest with a public price for the GPU).",
        show="MODEL", group="Owning", example="XE9680",
    )  # fmt: skip
    server_price_usd: Usd | None = about(
        "What one server costs, all GPUs contained (a bare number: in --currency).",
        kind="purchase", show="MONEY", group="Owning", flags=("--server-price",), example="240000EUR",
    )  # fmt: skip
    server_gpus: int | None = about(
        "GPUs in one server.", kind="count", show="N", group="Owning", example="8"
    )  # fmt: skip
    server_power_kw: float | None = about(
        "What one server draws at the wall at most.", kind="power", show="POWER", group="Owning",
        flags=("--server-power",), example="10.2kW",
    )  # fmt: skip
    electricity_usd_per_kwh: float | None = about(
        "Price of electricity.", kind="per_kwh", show="MONEY/kWh", group="Owning", flags=("--electricity",),
        example="0.21EUR/kWh",
    )  # fmt: skip
    room_power_kw: float | None = about(
        "Power that your room can feed and cool: how many servers it holds.", kind="power", show="POWER",
        group="Owning", flags=("--room-power",), example="12kW",
    )  # fmt: skip
    country: str | None = about(
        "Where own servers would stand: its electricity and carbon.", kind="place", show="COUNTRY", group="Owning",
        example="DE",
    )  # fmt: skip
    no_capex: bool = about("No money for purchases: rent only.", kind="flag", default=False, group="Owning")
    by: date | None = about(
        "The day by which the first job must run: what takes longer is left out.", kind="date", show="DATE",
        group="Owning", example="2027-03-01",
    )  # fmt: skip
    interest_fraction: Fraction | None = about(
        "Cost of capital a year.", kind="fraction", show="PERCENT", group="Owning", flags=("--interest",),
        example="8%",
    )  # fmt: skip
    set: tuple[Said, ...] = about(
        "Another figure for an assumption, by its name, with or without a range; may be given several times.",
        kind="said", show="NAME=VALUE", default=(), group="Owning", example="life_years=4..6",
    )  # fmt: skip
    data_size_gb: Gigabytes | None = about(
        "Data that would have to move.", kind="size", show="SIZE", group="Moving the data", flags=("--data-size",),
        example="50TB",
    )  # fmt: skip
    cold_data: tuple[Cooled, ...] = about(
        "Part of --data-size that lies in a cold storage class, and for how long: early deletion and retrieval are "
        "billed; may be given several times.",
        kind="cold", show="CLASS=SIZE:TIME", default=(), group="Moving the data", example="Archive=20TB:60d",
    )  # fmt: skip
    data_change_fraction_per_day: Fraction | None = about(
        "Share of the data that changes in a day.", kind="part", show="PERCENT", group="Moving the data",
        flags=("--data-change",), example="1%",
    )  # fmt: skip
    link_gb_per_s: GbPerSecond | None = about(
        "The line over which it moves.", kind="rate", show="RATE", group="Moving the data", flags=("--link",),
        example="10Gbit/s",
    )  # fmt: skip
    seed: int = about("Of the random numbers.", kind="whole", show="N", default=0, group="Owning", example="1")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRequest(OwnFilters):
    """Own or rent? All cloud, commitments, spot, machines by the month and own servers, and how much to own."""

    scenario: str | None = about(
        "TOML with the same options; what stands on the command line wins.", kind="path", show="SCENARIO",
        example="scenario.toml", positional=True,
    )  # fmt: skip
    demand_gpu_h_per_month: float | None = about(
        "Work that is wanted: GPU-hours a time, or GPUs at all times. A bare number is refused.",
        kind="demand", show="DEMAND", group="Demand", flags=("--demand",), example="1200 GPU-h/month",
    )  # fmt: skip
    growth_fraction_per_year: float | None = about(
        "How the demand grows.", kind="growth", show="PERCENT/TIME", group="Demand", flags=("--growth",),
        example="20%/y",
    )  # fmt: skip
    record: str | None = about(
        "A record of the demand, CSV: time, and GPUs wanted or in use at it, in equal steps.", kind="path",
        show="FILE", group="Demand", example="gpus.csv",
    )  # fmt: skip
    job: str | None = about(
        "Instead of --demand: a workload that is trained again and again.", show="WORKLOAD", group="Demand",
        example="painter-heavy",
    )  # fmt: skip
    every_s: Seconds | None = about(
        "How often --job is trained.", kind="period", show="TIME", group="Demand", flags=("--every",), example="7d"
    )  # fmt: skip
    data_growth_fraction_per_year: float | None = about(
        "How the data of --job grows, and its training time with it.", kind="growth", show="PERCENT/TIME",
        group="Demand", flags=("--data-growth",), example="3%/month",
    )  # fmt: skip
    cloud_usd_per_gpu_hour: float | None = about(
        "What the cloud bills you for one GPU-hour (default: the cheapest offer that is known).",
        kind="rent", show="MONEY", group="Owning", flags=("--cloud-price",), example="2.99USD",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRequest(OwnFilters):
    """When to leave the cloud? From months of bills: dates, the premium paid so far, how many to own, the checklist."""

    files: tuple[str, ...] = about(
        "Cost exports in FOCUS 1.0 to 1.3: CSV, gz or Parquet; several providers and months (extra [focus]).",
        kind="paths", default=(), show="USAGE", example="usage.csv", positional=True,
    )  # fmt: skip
    scenario: str | None = about(
        "TOML with the same options; what stands on the command line wins.", kind="path", show="FILE",
        group="Owning", example="scenario.toml",
    )  # fmt: skip
    services: tuple[str, ...] = about(
        "Services in use, where there is no bill: the checklist alone.", kind="names", default=(), show="LIST",
        group="Leaving", example="S3,SageMaker,EC2",
    )  # fmt: skip
    moving_usd: Usd | None = about(
        "What moving costs once, data aside: work, both sides running.", kind="money", show="MONEY", group="Leaving",
        flags=("--moving-cost",), example="40000USD",
    )  # fmt: skip
    committed_until: tuple[Promised, ...] = about(
        "End of a commitment, by day, with what it costs a month.", kind="promise", default=(), show="DATE=MONEY",
        group="Leaving", example="2027-06-30=12000USD",
    )  # fmt: skip
    trust_fraction: Fraction = about(
        "How far the forecast may move the date: 1 not at all, towards 0 as it likes.", kind="share",
        show="PERCENT", default=0.5, group="Leaving", flags=("--trust",), example="50%",
    )  # fmt: skip
    closes_account: bool = about(
        "The account is closed when you leave: waivers of egress that ask for it hold.", kind="flag", default=False,
        group="Moving the data", flags=("--close-account",),
    )  # fmt: skip
    watch: str | None = about(
        "Append one line a month to this log; the exit code is 10 once the date has come.", kind="path", show="LOG",
        group="Leaving", example="exit-log.csv",
    )  # fmt: skip
