"""FOCUS exports that tests write: rows as they differ from a plain one, as CSV and as Parquet."""

from __future__ import annotations

from pathlib import Path

from gpuwise.own.usage import Bill, BillMonth
from gpuwise.sources.instances import Instances, Machine

BASE = {
    "ProviderName": "AWS", "ServiceName": "EC2", "ServiceCategory": "Compute", "BillingCurrency": "USD",
    "ChargeCategory": "Usage", "ChargePeriodStart": "2026-06-10T00:00:00Z", "ChargePeriodEnd": "2026-06-10T01:00:00Z",
    "BillingPeriodStart": "2026-06-01T00:00:00Z", "BilledCost": "1.5", "EffectiveCost": "1.5",
    "ConsumedQuantity": "1", "ConsumedUnit": "Hours", "ChargeDescription": "$1.006 per On Demand g5.xlarge Hour",
}  # fmt: skip
ONE = Instances(machines={"g5.xlarge": Machine(accelerator="a10g", gpus=1)})


def export(path: Path, *rows: dict[str, str | None], separator: str = ",") -> Path:
    """A file of these rows, each as it differs from BASE; a column that is None is not there."""
    full = [{**BASE, **row} for row in rows]
    titles = [
        title for title in dict.fromkeys(key for row in full for key in row) if full[0].get(title, "") is not None
    ]
    lines = [separator.join(titles), *(separator.join(_cell(row.get(title)) for title in titles) for row in full)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _cell(text: str | None) -> str:
    return '"' + (text or "").replace('"', '""') + '"'


def as_parquet(folder: Path, text: str, path: Path, **options: object) -> None:
    import duckdb

    plain = folder / "plain.csv"
    plain.write_text(text, encoding="utf-8")
    with duckdb.connect() as database:
        database.read_csv(str(plain), **options).write_parquet(str(path))  # type: ignore[arg-type]


def month(bill: Bill) -> BillMonth:
    """The only one."""
    (one,) = bill.months
    return one
