"""Bills as FOCUS exports that a test writes row by row, and the verb exit asked about them."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from click.testing import CliRunner

from gpuwise import faces
from gpuwise.api.leaving import exit_
from gpuwise.cli import Session, program
from gpuwise.request import ExitRequest, parse
from gpuwise.view.page import Facts

DAY = date(2026, 12, 1)
HOUR = timedelta(hours=1)
H100 = {"machine": "p5.48xlarge", "gpus": 8, "usd_per_hour": 55.04}
COLUMNS = (
    "ProviderName", "PublisherName", "ServiceName", "ServiceCategory", "ChargeCategory", "ChargeDescription",
    "BillingCurrency", "ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodStart", "BilledCost", "EffectiveCost",
    "ConsumedQuantity", "ConsumedUnit", "PricingCategory", "RegionId", "SkuPriceDetails",
)  # fmt: skip


def row(start, end, service, usd, currency="USD", **more):
    return {
        "ProviderName": "AWS", "PublisherName": "AWS", "ServiceName": service, "ServiceCategory": "Other",
        "ChargeCategory": "Usage", "ChargeDescription": service, "BillingCurrency": currency,
        "ChargePeriodStart": f"{start:%Y-%m-%dT%H:%M:%SZ}", "ChargePeriodEnd": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        "BillingPeriodStart": f"{start:%Y-%m}-01T00:00:00Z", "BilledCost": f"{usd}", "EffectiveCost": f"{usd}",
        "PricingCategory": "Standard", "RegionId": "us-east-1", **more,
    }  # fmt: skip


def machines(start, hours, number, machine, gpus, usd_per_hour, **more):
    """One row: so many machines for so many hours."""
    details = {"SkuPriceDetails": json.dumps({"GpuCount": gpus, "InstanceType": machine})}
    quantity = {"ConsumedQuantity": f"{number * hours}", "ConsumedUnit": "Hours"}
    text = f"per On Demand Linux {machine} Instance Hour"
    return row(start, start + hours * HOUR, "Amazon Elastic Compute Cloud", number * hours * usd_per_hour,
               **details, **quantity, ChargeDescription=text, **more)  # fmt: skip


OTHERS = (("Amazon Simple Storage Service", 9000), ("Amazon SageMaker", 4000), ("Amazon DynamoDB", 2500), ("Mine", 700))


def bill(path: Path, wanted, months=range(1, 12), step_h=4, others=OTHERS, **machine) -> Path:
    """wanted: (month, day, hour) -> machines at work. Rows of step_h hours."""
    rows = []
    for month in months:
        first = datetime(2026, month, 1, tzinfo=UTC)
        after = (first + timedelta(days=32)).replace(day=1)
        moment = first
        while moment < after:
            if number := wanted(month, moment.day, moment.hour):
                rows.append(machines(moment, step_h, number, **{**H100, **machine}))
            moment += step_h * HOUR
        currency = machine.get("currency", "USD")
        rows += [row(first, after, service, usd, currency) for service, usd in others]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def asked(*files, **said):
    options = {name.replace("_", "-"): value for name, value in said.items()}
    return parse(ExitRequest, {"files": [str(file) for file in files]} | options, usd_per=lambda _code: 1.1567)


def answer(*files, today=DAY, **said):
    return exit_(asked(*files, **said), today=today)


def run(*words, today=DAY):
    return CliRunner().invoke(program, ("exit", *map(str, words)), obj=Session(today=today))


def warned(found) -> str:
    return " | ".join(map(str, found.warnings))


def facts_of(*files, **said):
    """The sentence that answers, and the facts of the page: label -> (text, why)."""
    page = faces.exit(asked(*files, **said), today=DAY).page()
    facts = [fact for block in page.blocks if isinstance(block, Facts) for fact in block.facts]
    return page.blocks[0].text, {fact.label: (fact.text, fact.why) for fact in facts}
