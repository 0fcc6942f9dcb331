"""tariffs.csv, platforms.toml and cpu_hosts.csv: what is billed beside a machine, and what a provider's platform is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from bundle_tables import Row, fact, number, read

COLUMNS = ("provider", "region", "item", "start", "end", "price", "currency", "unit", "usd_per_unit", "observed",
           "source", "note")  # fmt: skip
KEY = ("provider", "region", "item", "start", "observed", "source")
CPU_COLUMNS = ("provider", "instance", "region", "vcpus", "memory_gib", "usd_per_hour", "observed", "source")
ITEMS = {
    "egress-internet": "egress", "egress-inter-region": "between regions", "egress-intra-region": "within region",
    "block-storage-ssd": "disk",
}  # fmt: skip
"""What of the collected table is used; object stores, snapshots and slow disks are not, nor undated old lists."""
CONTAINED = "20 TB are contained"
AWS_FREE_GB = "100"
"""A month, of all regions together: the list of 2026 has them, the tests of 2024 leave them out."""
NOT_MODELLED = "a constant of 0 in a launcher may mean that it does not model the price"
UNIT_IN_DOUBT = "the source itself doubts the unit; the provider bills by the TB"


def build(source: Path) -> tuple[list[Row], list[Row]]:
    """The tariffs, and for left_out.csv each other row with its rule."""
    rates = {r["from"]: float(r["rate"]) for r in read(source / "prices" / "fx.csv")} | {"USD": 1.0}
    kept, left_out = [], []
    for old in read(source / "prices" / "egress_storage.csv"):
        row = {
            "provider": old["provider"], "region": old["region"], "item": ITEMS.get(old["item"], ""),
            "start": old["tier_from_gb"] or "0", "end": old["tier_to_gb"], "price": number(old["price"]),
            "currency": old["currency"], "unit": old["unit"],
            "usd_per_unit": number(float(old["price"]) * rates[old["currency"]]), "observed": old["as_of"],
            "source": old["source_id"], "note": old["notes"].partition(";")[0] if old["source_id"] == "S12" else "",
        }  # fmt: skip
        rule = _rule(old, row)
        if rule:
            parts = ("provider", "region", "item", "sku", "tier_from_gb", "as_of", "source_id")
            key = "/".join(old[part] for part in parts)
            left_out.append({"table": "tariffs", "row_key": key, "rule": rule[0], "reason": rule[1]})
        else:
            kept += _with_free_part(row | {"start": number(row["start"]), "end": number(row["end"])})
    kept += [_by_hand(row, rates) for row in fact("tariffs")]
    return kept, left_out


def _with_free_part(row: Row) -> list[Row]:
    """The first tier of AWS without what is free of it, and that as a tier of its own."""
    if (row["provider"], row["item"], row["source"], row["start"]) != ("aws", "egress", "S20", "0"):
        return [row]
    free = {
        "end": AWS_FREE_GB,
        "price": "0",
        "usd_per_unit": "0",
        "note": "free in all regions, as the list of 2026 says",
    }
    return [row | free, row | {"start": AWS_FREE_GB}]


def _rule(old: Row, row: Row) -> tuple[str, str] | None:
    """Why a row is left out."""
    if old["source_id"] == "S21":
        return "not_modelled", NOT_MODELLED
    if old["provider"] == "hetzner" and row["item"] == "egress":
        return "unit_in_doubt", UNIT_IN_DOUBT
    if old["source_id"] == "S08" and old["provider"] == "aws":
        return "duplicate", "a conversion to EUR of the provider's own list in USD"
    return None if row["item"] else ("not_used", "no bill of a run has it")


def _by_hand(row: Row, rates: Mapping[str, float]) -> Row:
    usd = number(float(row["price"]) * rates[row["currency"]])
    return {**row, "end": "20000" if row["note"] == CONTAINED else "", "usd_per_unit": usd}


def platforms_toml() -> str:
    """One table a provider and fact."""
    parts = ["# What is known of the providers' platforms. Written by tools/build_data.py; do not edit."]
    rows = sorted(fact("platforms"), key=lambda row: (row["provider"], row["name"]))
    for provider, facts in groupby(rows, key=lambda row: row["provider"]):
        parts += ["\n".join(_fact(provider, row)) for row in facts]
    return "\n\n".join(parts) + "\n"


def _fact(provider: str, row: Row) -> Iterator[str]:
    value = row["value"] if row["name"].endswith(("_s", "_h", "_usd_per_gb_month")) else _quoted(row["value"])
    yield f"[{provider}.{row['name']}]"
    yield f"value = {value}"
    yield f"observed = {row['observed']}"
    yield f"source = {_quoted(row['source'])}"
    if row["note"]:
        yield f"note = {_quoted(row['note'])}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
