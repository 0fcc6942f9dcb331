"""A price list as a person keeps it (CSV) → a `Catalogue`.

Columns are those of the bundled offers.csv; `ALIASES` lists other headers that are understood, those of gpuhunt's and
SkyPilot's catalogues among them. Needed are the GPU, a price and its currency (a column, or a sign in the price cells).
Money becomes USD at dated rates, the price as published stays; GPU names become ids; nothing is guessed or filled in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue, Coded
from gpuwise.errors import DataError, Message
from gpuwise.store import cache
from gpuwise.store.cache import Loaded
from gpuwise.store.convert import columns
from gpuwise.store.delimited import Table, read, stacked
from gpuwise.store.doubts import repeated, unusual
from gpuwise.store.facts import Facts
from gpuwise.store.sheet import Sheet

COLUMNS = (
    "id", "provider", "instance", "region", "country", "market", "accelerator", "accelerators", "nodes", "memory_gib",
    "vcpus", "host_memory_gib", "price", "currency", "usd_per_unit", "price_unit", "price_state", "tax", "vat_fraction",
    "term_h", "upfront", "upfront_usd", "billing_step_s", "billing_minimum_s", "preparation_s", "licence_usd_per_month",
    "running_usd_per_hour", "price_log_sd", "link", "host", "availability", "observed", "observed_precision",
    "withdrawn", "quality", "source", "note", "billing_clock", "fee_usd", "monthly_cap_h", "host_gpus", "host_shared",
    "disk_included_gb", "storage_usd_per_gb_month", "egress_usd_per_gb", "address_usd_per_hour", "stopped",
    "session_limit_s", "longest_h", "losses_per_hour", "wait_s", "reliability_fraction",
)  # fmt: skip
"""What a table may have. price, upfront: in `currency`, of the whole offer; usd_per_unit: your own exchange rate."""

ALIASES = {
    "gpu": "accelerator", "gpu_name": "accelerator", "acceleratorname": "accelerator",
    "gpus": "accelerators", "gpu_count": "accelerators", "acceleratorcount": "accelerators",
    "gpu_memory": "memory_gib", "gpu_memory_gib": "memory_gib",
    "vcpu": "vcpus", "cpu": "vcpus", "cpus": "vcpus",
    "memory": "host_memory_gib", "memorygib": "host_memory_gib",
    "instance_name": "instance", "instancetype": "instance", "instance_type": "instance",
    "location": "region", "date": "observed", "spot": "market",
    "offer_id": "id", "price_native": "price",
}  # fmt: skip
"""Other headers (lower case, blanks as _) -> the column they mean. `memory` is the host's, as in both catalogues."""

_PER_HOUR = "price_usd_per_hour"
_UNUSED = ("availabilityzone", "gpuinfo", "gpu_vendor", "disk_size", "flags", "cpu_arch", "provider_data")
KNOWN = frozenset((*COLUMNS, *ALIASES, *_UNUSED, _PER_HOUR, "spotprice"))


def read_offers(path: Path, facts: Facts) -> Loaded:
    """The offers of a CSV file, from the cache if this very content was read before. DataError as in `parse_offers`."""
    content = read_bytes(path)
    digest = hashlib.sha256(content).hexdigest()
    return cache.cached(
        cache.key(digest, path.name, facts.version),
        lambda: parse_offers(content, path.name, facts, version=digest[:12], own=True),
    )


def read_bytes(path: Path) -> bytes:
    """What the file holds; DataError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            Message("{file} cannot be read: {cause}.", file=str(path), cause=error.strerror or str(error)),
            Message("Check the name, and that you may read it."),
            file=str(path),
        ) from error


def parse_offers(
    content: bytes,
    name: str,
    facts: Facts,
    *,
    version: str = "",
    given: Mapping[str, str] | None = None,
    own: bool = False,
) -> Loaded:
    """The offers in the bytes of a CSV file. DataError if it cannot be split into records; else as `from_table`."""
    return from_table(read(content, name, KNOWN), facts, version=version, given=given, own=own)


def from_table(
    table: Table, facts: Facts, *, version: str = "", given: Mapping[str, str] | None = None, own: bool = False
) -> Loaded:
    """The offers of a table. Rows that cannot be read are in the catalogue's `rejects`.

    given: column -> what every row holds where the table lacks the column. own: a person wrote the list, so what stands
    in it twice or is far too dear is said. DataError if a needed column is missing, or one of numbers may be read two
    ways.
    """
    implied = _implied(table)
    table = _with_spot_rows(_with_one_price(table))
    sheet = Sheet(table, _proper, implied | dict(given or {}))
    _need(sheet)
    read_columns = columns(sheet, facts)
    sound = np.ones(sheet.rows, bool)
    sound[list(sheet.rejects)] = False
    with_gpu = (sheet.cells("accelerator").codes >= 0) | (read_columns["accelerators"] >= 1)
    rejects = (*table.rejects, *(sheet.rejects[row] for row in sorted(sheet.rejects)))
    kept = sound & with_gpu
    if own:
        kept &= ~_questioned(sheet, read_columns, kept, facts)
    catalogue = Catalogue(name=table.name, version=version, rejects=rejects, **read_columns)
    if not kept.all():
        catalogue = replace(catalogue.take(kept), rows=None)
    notes = _notes(table, sheet, len(catalogue), len(rejects), int(np.count_nonzero(sound & ~with_gpu)))
    return Loaded(catalogue=catalogue, notes=notes, lines=sheet.lines[kept])


def _questioned(sheet: Sheet, columns: Mapping[str, Any], read: NDArray[np.bool_], facts: Facts) -> NDArray[np.bool_]:
    """Rows that repeat another one; notes say which lines are there twice, and which prices are hard to believe."""
    repeats, twice = repeated(columns, read, sheet.lines)
    sheet.notes += [*twice, *unusual(columns, facts.usual_usd_per_hour(), read & ~repeats, sheet.lines)]
    return repeats


def _slug(title: str) -> str:
    return title.partition("[")[0].strip().casefold().replace(" ", "_")


def _proper(title: str) -> str:
    slug = _slug(title)
    return ALIASES.get(slug, slug)


def _implied(table: Table) -> dict[str, str]:
    """What the format itself says. The catalogues of gpuhunt and SkyPilot are in USD, one file a provider."""
    slugs, proper = {_slug(title) for title in table.columns}, {_proper(title) for title in table.columns}
    implied = {"provider": PurePath(table.name).stem}
    if "accelerators" not in proper:
        implied["accelerators"] = "1"
    if {"instance_name", "gpu_name"} <= slugs or "acceleratorname" in slugs or "price" not in proper:
        implied["currency"] = "USD"
    return implied


def _with_one_price(table: Table) -> Table:
    """`price_usd_per_hour` is the price where there is no other, and says currency and unit itself."""
    titles = {_proper(title): title for title in table.columns}
    if "price" in titles or _PER_HOUR not in titles:
        return table
    said = ("currency", "usd_per_unit", "price_unit")
    columns = {title: c for title, c in table.columns.items() if _proper(title) not in said}
    columns["price"] = columns.pop(titles[_PER_HOUR])
    return replace(table, columns=columns)


def _with_spot_rows(table: Table) -> Table:
    """SkyPilot's catalogue has the spot price beside the other: each becomes an offer of its own."""
    titles = {_slug(title): title for title in table.columns}
    if not {"spotprice", "price"} <= set(titles) or "market" in titles:
        return table
    spot, price = table.columns[titles["spotprice"]], titles["price"]
    extra = np.flatnonzero(spot.codes >= 0)
    rows = np.concatenate([np.arange(len(table)), extra])
    both = {title: column.take(rows) for title, column in table.columns.items() if title != titles["spotprice"]}
    both[price] = stacked(table.columns[price], spot.take(extra))
    both["market"] = Coded(np.repeat(np.array([0, 1], np.int32), [len(table), len(extra)]), ("on-demand", "spot"))
    return replace(table, columns=both, lines=table.lines[rows])


def _need(sheet: Sheet) -> None:
    there = ", ".join(sheet.titles)
    for column in ("accelerator", "price"):
        if column not in sheet:
            raise sheet.error(
                Message("the column {column} is missing; there are {columns}.", column=column, columns=there),
                Message("Add it. A table needs accelerator (or gpu), price and currency."),
                column=column,
            )
    if "currency" not in sheet and not sheet.given.get("currency") and not sheet.amounts("price").currency.values:
        raise sheet.error(
            Message("the column currency is missing, and no price carries a sign."),
            Message("Add a column currency with USD, EUR or another code; amounts without one are not read."),
            column="currency",
        )


def _notes(table: Table, sheet: Sheet, rows: int, rejects: int, bare: int) -> tuple[Message, ...]:
    """What was read, what was not, and what had to be assumed."""
    unused = [t for t in sheet.titles if _proper(t) not in (*COLUMNS, *_UNUSED, _PER_HOUR)]
    notes = [
        Message("{rows} rows read, {rejects} refused, {blank} empty", rows=rows, rejects=rejects, blank=table.blank),
        *([Message("{bare} rows without a GPU left out", bare=bare)] if bare else []),
        *table.notes,
        *([Message("read as {encoding}", encoding=table.encoding)] if table.encoding != "utf-8" else []),
        *([Message("no column says how many GPUs: one a row is taken")] if "accelerators" in sheet.given else []),
        *([Message("columns not known and not used: {columns}", columns=", ".join(unused))] if unused else []),
        *dict.fromkeys(sheet.notes),
    ]
    return tuple(Message("{file}: {note}", file=table.name, note=note) for note in notes)
