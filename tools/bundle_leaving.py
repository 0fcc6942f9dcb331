"""services.csv, waivers.csv, links.csv, cold_tiers.csv and lead_times.csv: what goes with leaving a cloud.

All of it was judged or read by a person: the tables of tools/facts are checked and written in order.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from bundle_tables import Row, fact, write

TABLES = {
    "services": (
        ("provider", "name", "names", "category", "gives", "portability", "replacement", "effort_low_days",
         "effort_high_days", "valid_from", "valid_until", "source", "note"),
        ("provider", "name"),
    ),
    "waivers": (
        ("where", "covers", "condition", "usd_per_gb", "valid_from", "valid_until", "source", "note"),
        ("where", "covers", "valid_from"),
    ),
    "links": (
        ("provider", "name", "gbit_per_s", "usd_per_gb", "usd_per_month", "observed", "source", "note"),
        ("provider", "name"),
    ),
    "cold_tiers": (
        ("provider", "name", "least_days", "usd_per_gb_month", "retrieval_usd_per_gb", "observed", "source", "note"),
        ("provider", "name"),
    ),
    "lead_times": (("kind", "low_weeks", "high_weeks", "observed", "source", "note"), ("kind", "source")),
}  # fmt: skip
"""Table -> its columns and its key."""


def build(target: Path) -> None:
    """Write the tables. ValueError for a row that contradicts itself."""
    for name, (columns, key) in TABLES.items():
        rows = fact(name)
        for row in rows:
            _check(name, row)
        write(target / f"{name}.csv", columns, rows, key)


def _check(name: str, row: Row) -> None:
    days = [date.fromisoformat(row[c]) for c in ("valid_from", "valid_until", "observed") if row.get(c)]
    if len(days) == 2 and days[0] > days[1]:
        raise ValueError(f"{name}: a row is valid until a day before it is valid: {row}")
    if name == "services" and not row["replacement"] and row["portability"] != "C":
        raise ValueError(f"services: {row['name']} is of class {row['portability']} and nothing takes its place")
    if name == "lead_times" and float(row["low_weeks"]) > float(row["high_weeks"]):
        raise ValueError(f"lead_times: from more to less: {row}")
