"""Months of FOCUS exports made by the specification's rules, and what they hold by plan: the reader's golden case.

Each part writes its rows and books, from its own figures, what they are meant to come to. Nothing here reads a row
back, and nothing knows how the reader tells one row from another. Three providers, each with the columns of another
version: AWS 1.2 (USD, hourly), Azure 1.0 with an `Id` (EUR, daily), Google 1.3 (USD, GPUs by themselves).
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

Row = dict[str, str]
MONTHS = ("2026-01", "2026-02", "2026-03", "2026-04")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CLOCKS_ON = datetime(2026, 3, 28, 23, tzinfo=UTC)
"""Midnight of Sunday 29 March 2026 in Berlin, a day of 23 hours."""
COLUMNS = (
    "BilledCost", "BillingAccountId", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory",
    "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
    "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountStatus", "CommitmentDiscountType",
    "ConsumedQuantity", "ConsumedUnit", "ContractedCost", "EffectiveCost", "ListCost", "PricingCategory",
    "PricingQuantity", "PricingUnit", "RegionId", "ResourceId", "ResourceType", "ServiceCategory", "ServiceName",
    "SkuId", "Tags",
)  # fmt: skip
VERSIONS = {
    "aws": ("ProviderName", "PublisherName", "InvoiceIssuerName", "SkuPriceDetails"),
    "azure": ("ProviderName", "PublisherName", "InvoiceIssuerName", "Id", "SkuMeter"),
    "google": ("ServiceProviderName", "HostProviderName", "InvoiceIssuerName", "SkuPriceDetails"),
}
"""Columns beside those that all have. Azure's 1.0 has no SkuPriceDetails: the meter alone names the machine."""
MONEY = ("effective", "billed", "unused", "purchases", "credits", "refunds", "tax", "gpu_effective", "gpu_unused",
         "gpu_corrections")  # fmt: skip


def _sums() -> dict[Any, float]:
    return defaultdict(float)


@dataclass(kw_only=True)
class Expected:
    """What the plan comes to. months: (currency, month) -> figure -> amount. hours: accelerator -> hour -> GPUs."""

    months: dict[tuple[str, str], dict[str, float]] = field(default_factory=lambda: defaultdict(_sums))
    hours: dict[str, dict[datetime, float]] = field(default_factory=lambda: defaultdict(_sums))
    services: dict[tuple[str, str, str], float] = field(default_factory=lambda: defaultdict(float))
    unknown_rows: int = 0
    unknown_h: float = 0.0
    unknown_effective: float = 0.0

    def money(self, currency: str, month: str, **amounts: float) -> None:
        for name, amount in amounts.items():
            self.months[currency, month][name] += amount

    def gpus(self, accelerator: str, start: datetime, hours: int, gpus: float) -> None:
        for hour in range(hours):
            self.hours[accelerator][start + hour * HOUR] += gpus


@dataclass(kw_only=True)
class Golden:
    """rows: provider -> its rows, in order of time. expected: what all of them come to."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in VERSIONS})
    expected: Expected = field(default_factory=Expected)

    def header(self, provider: str) -> tuple[str, ...]:
        return (*COLUMNS, *VERSIONS[provider])

    def text(self, provider: str, rows: Sequence[Row] | None = None) -> str:
        """The export as CSV; absent values as NULL for AWS, empty for the others."""
        out = io.StringIO()
        absent = "NULL" if provider == "aws" else ""
        writer = csv.DictWriter(out, self.header(provider), restval=absent, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows[provider] if rows is None else rows)
        return out.getvalue()


def golden(months: Sequence[str] = MONTHS) -> Golden:
    """The same rows whenever it is called."""
    made = Golden()
    for number, month in enumerate(months):
        first = datetime.fromisoformat(f"{month}-01T00:00:00+00:00")
        _on_demand(made, first, machines=2 + number)
        _spot(made, first)
        _reserved(made, first)
        _savings_plan(made, first)
        _other_use(made, first)
        _azure(made, first, machines=2)
        _google(made, first, cards=4 + number)
        _apart(made, first)
    if "2026-03" in months:
        _clocks(made)
    return made


def _next(first: datetime) -> datetime:
    return (first + 32 * DAY).replace(day=1)


def _days(first: datetime) -> Iterator[datetime]:
    day, end = first, _next(first)
    while day < end:
        yield day
        day += DAY


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _write(
    made: Golden, provider: str, start: datetime, end: datetime, *, billed: float, effective: float,
    invoice: datetime | None = None, book: bool = True, **columns: str,
) -> None:  # fmt: skip
    """One row; what it bills is booked on the invoice's month."""
    month = (invoice or start).replace(day=1, hour=0)
    named = {
        "aws": {"ProviderName": "AWS", "PublisherName": "Amazon Web Services, Inc.", "BillingCurrency": "USD"},
        "azure": {"ProviderName": "Microsoft", "PublisherName": "Microsoft", "BillingCurrency": "EUR",
                  "Id": str(len(made.rows["azure"]))},
        "google": {"ServiceProviderName": "Google Cloud", "HostProviderName": "Google Cloud", "BillingCurrency": "USD"},
    }[provider]  # fmt: skip
    row = {
        "BilledCost": f"{billed:.10f}",
        "EffectiveCost": f"{effective:.10f}",
        "ListCost": f"{max(billed, effective) * 1.25:.10f}",
        "ContractedCost": f"{max(billed, effective):.10f}",
        "BillingPeriodStart": _stamp(month),
        "BillingPeriodEnd": _stamp(_next(month)),
        "ChargePeriodStart": _stamp(start),
        "ChargePeriodEnd": _stamp(end),
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based" if len(made.rows[provider]) % 7 else "Usage-based",
        "PricingCategory": "Standard",
        "RegionId": "us-east-1",
        "BillingAccountId": "1234567890123",
        **named,
        **columns,
    }
    made.rows[provider].append(row)
    made.expected.money(row["BillingCurrency"], f"{month:%Y-%m}", billed=billed)
    if book:
        made.expected.money(row["BillingCurrency"], f"{start:%Y-%m}", effective=effective)
        seller = row.get("ProviderName") or row["ServiceProviderName"]
        key = (seller, row.get("ServiceName", ""), row["BillingCurrency"])
        made.expected.services[key] += effective


def _machine(
    made: Golden, provider: str, start: datetime, end: datetime, *, accelerator: str, machines: float, gpus: int,
    usd_per_hour: float, committed: bool = False, spot: bool = False, **columns: str,
) -> None:  # fmt: skip
    """Machines that run from start to end: hours in all = machines × length."""
    length = round((end - start) / HOUR)
    cost = machines * length * usd_per_hour
    quantity = {"ConsumedQuantity": f"{machines * length:.6f}", "ConsumedUnit": "Hours",
                "PricingQuantity": f"{machines * length:.6f}", "PricingUnit": "Hours"}  # fmt: skip
    category = "Committed" if committed else "Dynamic" if spot else "Standard"
    _write(made, provider, start, end, billed=0.0 if committed else cost, effective=cost,
           **{"PricingCategory": category, "ServiceCategory": "Compute", "ServiceName": "Amazon Elastic Compute Cloud",
              **quantity, **columns})  # fmt: skip
    currency = made.rows[provider][-1]["BillingCurrency"]
    kind = "committed_gpu_h" if committed else "spot_gpu_h" if spot else "standard_gpu_h"
    total = machines * length * gpus
    made.expected.money(currency, f"{start:%Y-%m}", gpu_effective=cost, gpu_h=total, **{kind: total})
    made.expected.gpus(accelerator, start, length, machines * gpus)


def _on_demand(made: Golden, first: datetime, machines: int) -> None:
    """p4d.24xlarge in the hours of work, GPUs counted by SkuPriceDetails."""
    for day in _days(first):
        for hour in range(8, 20):
            _machine(made, "aws", day + hour * HOUR, day + (hour + 1) * HOUR, accelerator="a100-sxm4-40gb",
                     machines=machines, gpus=8, usd_per_hour=21.957642, ResourceId="i-0on",
                     ChargeDescription="$21.957642 per On Demand Linux p4d.24xlarge Instance Hour",
                     SkuPriceDetails='{"GpuCount": "8", "InstanceType": "p4d.24xlarge"}')  # fmt: skip


def _spot(made: Golden, first: datetime) -> None:
    """g5.12xlarge every third hour; no count, no details: the description alone names the machine."""
    for day in _days(first):
        for hour in range(0, 24, 3):
            _machine(made, "aws", day + hour * HOUR, day + (hour + 1) * HOUR, accelerator="a10g", machines=1.5, gpus=4,
                     usd_per_hour=2.13, spot=True, ConsumedUnit="Instance-Hours", ResourceId="i-0spot",
                     ChargeDescription="g5.12xlarge Linux/UNIX Spot Instance-hour in US East")  # fmt: skip


RESERVED = {"CommitmentDiscountId": "arn:reservation/p3", "CommitmentDiscountCategory": "Usage",
            "CommitmentDiscountType": "Reserved Instance"}  # fmt: skip
RESERVED_USD_PER_HOUR = 12.5


def _reserved(made: Golden, first: datetime) -> None:
    """One p3.16xlarge around the clock, used 18 hours a day; its fee is bought at the beginning of each month."""
    hours = 0
    for day in _days(first):
        for hour in range(24):
            start, hours = day + hour * HOUR, hours + 1
            if hour < 18:
                _machine(made, "aws", start, start + HOUR, accelerator="v100-sxm2-16gb", machines=1, gpus=8,
                         usd_per_hour=RESERVED_USD_PER_HOUR, committed=True, CommitmentDiscountStatus="Used",
                         ChargeDescription="Linux/UNIX (Amazon VPC), p3.16xlarge reserved instance applied",
                         **RESERVED)  # fmt: skip
            else:
                _unused(made, start, RESERVED_USD_PER_HOUR, gpu=1.0, **RESERVED,
                        ChargeDescription="p3.16xlarge reserved instance, unused")  # fmt: skip
    fee = hours * RESERVED_USD_PER_HOUR
    _purchase(made, first, fee, ChargeDescription="p3.16xlarge reserved instance fee", **RESERVED)


def _unused(made: Golden, start: datetime, effective: float, *, gpu: float, **columns: str) -> None:
    _write(made, "aws", start, start + HOUR, billed=0.0, effective=effective,
           **{"PricingCategory": "Committed", "CommitmentDiscountStatus": "Unused", "ServiceCategory": "Compute",
              "ServiceName": "Amazon Elastic Compute Cloud", **columns})  # fmt: skip
    part = effective * gpu
    made.expected.money("USD", f"{start:%Y-%m}", unused=effective, gpu_effective=part, gpu_unused=part)


def _purchase(made: Golden, first: datetime, fee: float, **columns: str) -> None:
    _write(made, "aws", first, _next(first), billed=fee, effective=0.0, book=False, ChargeCategory="Purchase",
           **{"ChargeFrequency": "Recurring", "ServiceName": "Amazon Elastic Compute Cloud", **columns})  # fmt: skip
    made.expected.money("USD", f"{first:%Y-%m}", purchases=fee)


PLAN = {"CommitmentDiscountId": "arn:savingsplan/compute", "CommitmentDiscountCategory": "Spend",
        "CommitmentDiscountType": "Savings Plan"}  # fmt: skip


def _savings_plan(made: Golden, first: datetime) -> None:
    """4 USD an hour in the first week: 1.8 for a g5.xlarge, 1.2 for CPUs, 1 unused: three fifths of it for GPUs."""
    for hour in range(7 * 24):
        start = first + hour * HOUR
        _machine(made, "aws", start, start + HOUR, accelerator="a10g", machines=1, gpus=1, usd_per_hour=1.8,
                 committed=True, CommitmentDiscountStatus="Used",
                 ChargeDescription="$1.006 per On Demand Linux g5.xlarge Instance Hour", **PLAN)  # fmt: skip
        _write(made, "aws", start, start + HOUR, billed=0.0, effective=1.2, PricingCategory="Committed",
               CommitmentDiscountStatus="Used", ConsumedQuantity="1", ConsumedUnit="Hours",
               ServiceName="Amazon Elastic Compute Cloud", ServiceCategory="Compute",
               ChargeDescription="$1.632 per On Demand Linux c5.9xlarge Instance Hour", **PLAN)  # fmt: skip
        _unused(made, start, 1.0, gpu=0.6, ChargeDescription="Compute Savings Plan, unused", **PLAN)
    _purchase(made, first, 7 * 24 * 4.0, ChargeDescription="Compute Savings Plan, no upfront", **PLAN)


def _other_use(made: Golden, first: datetime) -> None:
    """Use that is no GPU-hour: a CPU machine, vCPU-hours, software on a GPU machine, storage, egress; and a machine of
    which nobody knows the GPUs."""
    others = (
        ("Amazon Elastic Compute Cloud", "Compute", "$0.096 per On Demand Linux m5.large Instance Hour", 24.0, "Hours"),
        ("Amazon Elastic Compute Cloud", "Compute", "$0.05 per vCPU-Hour of T3 CPU Credits", 9.0, "vCPU-Hours"),
        ("Base AMI", "Compute", "AWS Marketplace hourly software usage|us-east-1|p4d.24xlarge", 24.0, "Hours"),
        ("Amazon Simple Storage Service", "Storage", "$0.023 per GB - first 50 TB / month", 512.0, "GB-Months"),
        ("AWS Data Transfer", "Networking", "$0.09 per GB - first 10 TB / month data transfer out", 77.0, "GB"),
    )
    for day in _days(first):
        for service, category, text, quantity, unit in others:
            _write(made, "aws", day, day + DAY, billed=quantity / 7, effective=quantity / 7, ServiceName=service,
                   ServiceCategory=category, ChargeDescription=text, ConsumedQuantity=f"{quantity}",
                   ConsumedUnit=unit)  # fmt: skip
        _write(made, "aws", day, day + HOUR, billed=99.0, effective=99.0, ServiceCategory="Compute",
               ServiceName="Amazon Elastic Compute Cloud", ConsumedQuantity="2", ConsumedUnit="Hours",
               ChargeDescription="$49.5 per On Demand Linux p9.48xlarge Instance Hour")  # fmt: skip
        made.expected.unknown_rows += 1
        made.expected.unknown_h += 2
        made.expected.unknown_effective += 99.0


def _azure(made: Golden, first: datetime, machines: int) -> None:
    """NC24ads A100 v4, a row a day; every other one gives only blocks of 100 hours."""
    for day in _days(first):
        hours = machines * 24
        blocks = {"ConsumedQuantity": "", "ConsumedUnit": "", "PricingQuantity": f"{hours / 100}",
                  "PricingUnit": "100 Hours"} if day.day % 2 else {}  # fmt: skip
        _machine(made, "azure", day, day + DAY, accelerator="a100-pcie-80gb", machines=machines, gpus=1,
                 usd_per_hour=3.4, ServiceName="Virtual Machines", SkuMeter="NC24ads A100 v4", RegionId="westeurope",
                 ChargeDescription="Virtual Machines NCadsA100v4 Series", **blocks)  # fmt: skip


def _google(made: Golden, first: datetime, cards: int) -> None:
    """A100 cards by the second, cores and memory beside them, six hours a day."""
    for day in _days(first):
        for hour in range(6):
            start = day + hour * HOUR
            cost = cards * 2.93
            _write(made, "google", start, start + HOUR, billed=cost, effective=cost, ServiceName="Compute Engine",
                   ServiceCategory="Compute", ConsumedQuantity=f"{cards * 3600}", ConsumedUnit="seconds",
                   PricingQuantity=f"{cards}", PricingUnit="hour", RegionId="us-central1",
                   ChargeDescription="Nvidia Tesla A100 GPU running in Americas")  # fmt: skip
            month = f"{first:%Y-%m}"
            made.expected.money("USD", month, gpu_effective=cost, gpu_h=cards, standard_gpu_h=cards)
            made.expected.gpus("a100-sxm4-40gb", start, 1, cards)
            for text, unit, amount in (
                ("A2 Instance Core running in Americas", "seconds", cards * 0.38),
                ("A2 Instance Ram running in Americas", "byte-seconds", cards * 0.36),
            ):
                _write(made, "google", start, start + HOUR, billed=amount, effective=amount, ChargeDescription=text,
                       ServiceName="Compute Engine", ServiceCategory="Compute", RegionId="us-central1",
                       ConsumedQuantity=f"{cards * 12 * 3600}", ConsumedUnit=unit,
                       SkuPriceDetails='{"x_InstanceType": "a2-highgpu-4g"}')  # fmt: skip
                made.expected.money("USD", month, gpu_effective=amount)


def _apart(made: Golden, first: datetime) -> None:
    """Tax, a credit, an adjustment; from the second month on a correction of an hour of the month before."""
    month = f"{first:%Y-%m}"
    last = _next(first) - HOUR
    for category, name, amount in (
        ("Tax", "tax", 812.5), ("Credit", "credits", -250.25), ("Adjustment", "refunds", -33.1),
    ):  # fmt: skip
        _write(made, "aws", last, last + HOUR, billed=amount, effective=amount, book=False, ChargeCategory=category,
               ServiceName="Amazon Elastic Compute Cloud", ChargeDescription=f"{category} p4d.24xlarge GPU",
               ConsumedQuantity="5", ConsumedUnit="Hours")  # fmt: skip
        made.expected.money("USD", month, **{name: amount})
    if first == datetime(2026, 1, 1, tzinfo=UTC):
        return
    start = (first - DAY).replace(hour=9)
    _write(made, "aws", start, start + HOUR, billed=-21.957642, effective=-21.957642, book=False, invoice=first,
           ChargeClass="Correction", ConsumedQuantity="-1", ConsumedUnit="Hours",
           ServiceName="Amazon Elastic Compute Cloud",
           ChargeDescription="$21.957642 per On Demand Linux p4d.24xlarge Instance Hour",
           SkuPriceDetails='{"GpuCount": 8, "InstanceType": "p4d.24xlarge"}')  # fmt: skip
    made.expected.money("USD", month, refunds=-21.957642)
    made.expected.money("USD", f"{start:%Y-%m}", gpu_h=-8, standard_gpu_h=-8, gpu_corrections=-21.957642)
    made.expected.gpus("a100-sxm4-40gb", start, 1, -8)


def _clocks(made: Golden) -> None:
    """A day of 23 hours on one g5.xlarge, in local times with their offset; the hour before is no hour of it."""
    berlin = ZoneInfo("Europe/Berlin")
    for hour in range(23):
        start = CLOCKS_ON + hour * HOUR
        local = {name: moment.astimezone(berlin).isoformat() for name, moment in
                 (("ChargePeriodStart", start), ("ChargePeriodEnd", start + HOUR))}  # fmt: skip
        _machine(made, "aws", start, start + HOUR, accelerator="a10g", machines=1, gpus=1, usd_per_hour=1.006,
                 ChargeDescription="$1.006 per On Demand Linux g5.xlarge Instance Hour", **local)  # fmt: skip
