# ruff: noqa: RUF009 - about() is dataclasses.field() with our metadata
"""The request types about owning: own (own or rent, how much) and exit (when to leave the cloud)."""

from __future__ import annotations

from dataclasses import dataclass, field
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


class Throughput(NamedTuple):
    """What one GPU of the demand gets done while it works, in a unit of the person's own: tokens, images, requests."""

    units_per_s: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFilters(OfferFilters):
    """What is owned, where, and for how long one looks ahead: what `own` and `exit` share."""

    horizon_months: int = about(
        "How far to look ahead: 6 months to 15 years.",
        kind="horizon", show="TIME", default=60, group="Owning", flags=("--horizon",), example="5y",
    )  # fmt: skip
    stage: str | None = about(
        "How settled the work is (default: judged by the demand). Exploring is told to stay in the cloud.",
        kind="stage", show="STAGE", group="Owning", example="steady",
    )  # fmt: skip
    server: str | None = about(
        "Model of the server to buy (default: the cheapest for the GPU with a public price).",
        show="MODEL", group="Owning", example="XE9680",
    )  # fmt: skip
    server_price_usd: Usd | None = about(
        "What one server costs with all its GPUs (a bare number: in --currency).",
        kind="purchase", show="MONEY", group="Owning", flags=("--server-price",), example="240000EUR",
    )  # fmt: skip
    server_gpus: int | None = about(
        "GPUs in one server.", kind="count", show="N", group="Owning", example="8"
    )  # fmt: skip
    server_power_kw: float | None = about(
        "Power that one server draws at the wall, at most.", kind="power", show="POWER", group="Owning",
        flags=("--server-power",), example="10.2kW",
    )  # fmt: skip
    electricity_usd_per_kwh: float | None = about(
        "Price of electricity (default: usual for businesses in --country).",
        kind="per_kwh", show="MONEY/kWh", group="Owning", flags=("--electricity",), example="0.21EUR/kWh",
    )  # fmt: skip
    room_power_kw: float | None = about(
        "Power that your room can feed and cool: it limits the servers in the office.", kind="power", show="POWER",
        group="Owning", flags=("--room-power",), example="12kW",
    )  # fmt: skip
    country: str | None = about(
        "Where your own servers would stand: for prices of electricity, and carbon.",
        kind="country", show="COUNTRY", group="Owning", example="DE",
    )  # fmt: skip
    no_capex: bool = about("There is no money for purchases: rent only.", kind="flag", default=False, group="Owning")
    by: date | None = about(
        "The day by which the first job must run: what takes longer is left out.", kind="date", show="DATE",
        group="Owning", example="2027-03-01",
    )  # fmt: skip
    interest_fraction: Fraction | None = about(
        "Your cost of capital, a year.", kind="fraction", show="PERCENT", group="Owning", flags=("--interest",),
        example="8%",
    )  # fmt: skip
    set: tuple[Said, ...] = about(
        "Your own value or range of a figure, by its name in --json (figures); may be given several times.",
        kind="said", show="NAME=VALUE", default=(), group="Owning", example="life_years=4..6",
    )  # fmt: skip
    data_size_gb: Gigabytes | None = about(
        "Data that would have to move out of the cloud.",
        kind="size", show="SIZE", group="Moving the data", flags=("--data-size",), example="50TB",
    )  # fmt: skip
    cold_data: tuple[Cooled, ...] = about(
        "Part of --data-size in a cold storage class, and for how long it has lain there: retrieval and early deletion "
        "are billed; may be given several times.",
        kind="cold", show="CLASS=SIZE:TIME", default=(), group="Moving the data", example="Archive=20TB:60d",
    )  # fmt: skip
    data_change_fraction_per_day: Fraction | None = about(
        "Share of the data that changes in a day.", kind="part", show="PERCENT", group="Moving the data",
        flags=("--data-change",), example="1%",
    )  # fmt: skip
    link_gb_per_s: GbPerSecond | None = about(
        "The line over which the data moves.", kind="rate", show="RATE", group="Moving the data", flags=("--link",),
        example="10Gbit/s",
    )  # fmt: skip
    said: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Fields that a person said, be it their default: a scenario leaves them."""
    seed: int = about(
        "Where all chance begins: the same number gives the same answer.", kind="whole", show="N", default=0,
        group="Owning", example="1",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRequest(OwnFilters):
    """Own or rent? All cloud, commitments, spot, machines by the month and own servers, and how much to own."""

    scenario: str | None = about(
        "A case as TOML: keys are the options, and a table [set] holds what --set says. The command line wins.",
        kind="path", show="SCENARIO",
        example="scenario.toml", positional=True,
    )  # fmt: skip
    demand_gpu_h_per_month: float | None = about(
        "Work that is wanted: GPU-hours a month (week, year), or GPUs in use at all times.",
        kind="demand", show="DEMAND", group="Demand", flags=("--demand",), example="1200 GPU-h/month",
    )  # fmt: skip
    growth_fraction_per_year: float | None = about(
        "How the demand grows, or shrinks (-5%/y).",
        kind="growth", show="PERCENT/TIME", group="Demand", flags=("--growth",), example="20%/y",
    )  # fmt: skip
    record: str | None = about(
        "Instead of --demand: a record as CSV, with time and GPUs wanted or in use, in equal steps.", kind="path",
        show="FILE", group="Demand", example="gpus.csv",
    )  # fmt: skip
    job: str | None = about(
        "Instead of --demand: a workload that is trained again and again, with --every.",
        show="WORKLOAD", group="Demand", example="painter-heavy",
    )  # fmt: skip
    every_s: Seconds | None = about(
        "How often --job is trained.", kind="period", show="TIME", group="Demand", flags=("--every",), example="7d"
    )  # fmt: skip
    data_growth_fraction_per_year: float | None = about(
        "How the data of --job grows, and its training time with it.", kind="growth", show="PERCENT/TIME",
        group="Demand", flags=("--data-growth",), example="3%/month",
    )  # fmt: skip
    throughput: Throughput | None = about(
        "What one GPU gets done while it works: prices a million of it too.",
        kind="throughput", show="N UNIT/s", group="Demand", example="5500 tokens/s",
    )  # fmt: skip
    cloud_usd_per_gpu_hour: float | None = about(
        "What the cloud bills you for one GPU-hour (default: the cheapest offer that is known).",
        kind="rent", show="MONEY", group="Owning", flags=("--cloud-price",), example="2.99USD",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRequest(OwnFilters):
    """When to leave the cloud? From months of bills: dates, the premium paid so far, how many to own, the checklist."""

    files: tuple[str, ...] = about(
        "Cost exports of some months, of all providers: FOCUS 1.0 to 1.3 as CSV, gz or Parquet (extra [focus]).",
        kind="paths", default=(), show="USAGE", example="usage.csv", positional=True,
    )  # fmt: skip
    scenario: str | None = about(
        "A case as TOML: keys are the options, and a table [set] holds what --set says. The command line wins.",
        kind="path", show="FILE", group="Owning", example="scenario.toml",
    )  # fmt: skip
    services: tuple[str, ...] = about(
        "Services in use, where there is no bill: the checklist alone.", kind="names", default=(), show="LIST",
        group="Leaving", example="S3,SageMaker,EC2",
    )  # fmt: skip
    moving_usd: Usd | None = about(
        "What moving costs once, without the data: work, and both sides running.",
        kind="money", show="MONEY", group="Leaving", flags=("--moving-cost",), example="40000USD",
    )  # fmt: skip
    committed_until: tuple[Promised, ...] = about(
        "Last day of a commitment, and what it costs a month; may be given several times.",
        kind="promise", default=(), show="DATE=MONEY", group="Leaving", example="2027-06-30=12000USD",
    )  # fmt: skip
    trust_fraction: Fraction = about(
        "Caution towards the forecast: at 100% it does not move the date, near 0% it moves it freely.", kind="share",
        show="PERCENT", default=0.5, group="Leaving", flags=("--trust",), example="50%",
    )  # fmt: skip
    closes_account: bool = about(
        "You close the account when you leave: some waivers of egress ask for it.", kind="flag", default=False,
        group="Moving the data", flags=("--close-account",),
    )  # fmt: skip
    watch: str | None = about(
        "Append a line to this log, one a month; the exit code is 10 once the date has come.", kind="path", show="LOG",
        group="Leaving", example="leaving.csv",
    )  # fmt: skip
