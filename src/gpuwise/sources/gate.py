"""Offers that are not bundled, judged by the rules of `gpuwise.integrity` in the company of the bundled ones."""

from __future__ import annotations

from datetime import date

from gpuwise.catalogue import Catalogue, as_date, as_float
from gpuwise.integrity import Finding, check_live
from gpuwise.store import package


def objections(offers: Catalogue, today: date) -> dict[int, Finding]:
    """Row -> the first objection to it; sound rows are absent. Finding.row is the row's number."""
    rows = [_row(offers, row) for row in range(len(offers))]
    found: dict[int, Finding] = {}
    for finding in check_live(rows, package.tables(), today):
        found.setdefault(int(finding.row.removeprefix(_OURS)), finding)
    return found


_OURS = "row "


def _row(offers: Catalogue, row: int) -> dict[str, str]:
    """What the rules look at, as text; the id is one that no bundled offer has."""
    texts = ("provider", "instance", "region", "market", "accelerator", "price_unit", "host", "availability",
             "price_state", "tax")  # fmt: skip
    usual = {"host": "unknown", "availability": "unknown", "price_state": "unknown", "tax": "unknown"}
    price, count = as_float(offers.price_usd_per_hour[row]), as_float(offers.accelerators[row] * offers.nodes[row])
    return {
        **{name: getattr(offers, name)[row] or usual.get(name, "") for name in texts},
        "id": f"{_OURS}{row}",
        "accelerators": "" if count is None else f"{count:g}",
        "price_usd_per_hour": "" if price is None else repr(price),
        "observed": str(as_date(offers.observed[row]) or ""),
    }
