"""Offers in columns: 100,000 of them are filtered, billed and compared in milliseconds.

Text columns are dictionary-coded (`Coded`), numbers are float64 with NaN for "not known" (NaN never leaves a column:
`Catalogue.offer` turns it into None with a reason), dates are days since 1970-01-01 with -1 for "not known".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpuwise.errors import Message
from gpuwise.offer import Availability, BillingClock, Host, Market, Offer, PriceUnit, Source, Stopped

EPOCH = date(1970, 1, 1)
NO_DATE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A text column. codes: int32 (n,), -1 for a missing value; values: the distinct texts."""

    codes: NDArray[np.int32]
    values: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str | None:
        code = self.codes[row]
        return None if code < 0 else self.values[code]

    def lookup(self, table: Sequence[Any], missing: Any, dtype: DTypeLike) -> NDArray[Any]:
        """One value a row: table[i] for rows holding values[i], `missing` for missing ones (code -1 is the last)."""
        values: NDArray[Any] = np.array([*table, missing], dtype=dtype)
        return values[self.codes]

    def isin(self, wanted: Collection[str]) -> NDArray[np.bool_]:
        """Rows that hold one of these texts."""
        return self.lookup([v in wanted for v in self.values], False, np.bool_)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Coded:
        return Coded(self.codes[rows], self.values)


def coded(texts: Sequence[str | None]) -> Coded:
    """Codes in order of first appearance; None (and only None) is missing."""
    index: dict[str | None, int] = {None: -1}
    codes = np.fromiter((index.setdefault(t, len(index) - 1) for t in texts), np.int32, len(texts))
    return Coded(codes, tuple(t for t in index if t is not None))


TEXT = (
    "provider", "instance", "region", "country", "market", "accelerator", "link", "host", "availability",
    "price_state", "currency", "price_unit", "tax", "observed_precision", "quality", "source", "note",
    "billing_clock", "host_shared", "stopped",
)  # fmt: skip
NUMBERS = (
    "accelerators", "nodes", "memory_gib", "vcpus", "host_memory_gib", "price_native", "price_usd_per_hour", "term_h",
    "upfront_usd", "billing_step_s", "billing_minimum_s", "preparation_s", "licence_usd_per_month", "vat_fraction",
    "running_usd_per_hour", "price_log_sd", "fee_usd", "monthly_cap_h", "host_gpus", "disk_included_gb",
    "storage_usd_per_gb_month", "egress_usd_per_gb", "address_usd_per_hour", "session_limit_s", "longest_h",
    "losses_per_hour", "wait_s", "reliability_fraction",
)  # fmt: skip
DATES = ("observed", "withdrawn")
_PLAIN = (
    "memory_gib", "host_memory_gib", "price_native", "term_h", "upfront_usd", "billing_step_s", "billing_minimum_s",
    "preparation_s", "licence_usd_per_month", "vat_fraction", "running_usd_per_hour", "price_log_sd",
    "fee_usd", "monthly_cap_h", "disk_included_gb", "storage_usd_per_gb_month",
    "egress_usd_per_gb", "address_usd_per_hour", "session_limit_s", "longest_h", "losses_per_hour", "wait_s",
    "reliability_fraction",
)  # fmt: skip
"""Numbers that an `Offer` has as they are, NaN as None."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalogue:
    """n offers. One row is one offer as seen on one day; the meaning of a row is that of `model.Offer`.

    accelerator: an id of accelerators.csv, ids joined by "|" where the source does not say which, missing if unknown.
    accelerators: devices in one node; nodes: machines that the offer bundles (1 unless stated).
    price_native: in `currency` per `price_unit` (hour, month, term) as published, for the whole offer.
    price_usd_per_hour: the same in USD an hour (month = 730 h, term = term_h), NaN if `price_state` is not usable.
    price_state: listed, free (truly free), confirmed (the person vouches for an unusual price), unknown, minimum bid,
    incomplete (the host is billed apart) or suspect.
    running_usd_per_hour: the part of price_usd_per_hour that falls due only in busy hours (energy of an own machine).
    price_log_sd: log standard deviation of the price that its owner's ranges leave, NaN where it is a quoted one.
    host_shared: yes or no. billing_clock, stopped, and the numbers of like name: as in `offer.Offer`.
    tax: net, gross or unknown; vat_fraction: contained in a gross price. ids: None if they are made on demand.
    rows: the rows' numbers in the catalogue they were taken from, None for 0…n−1.
    rejects: rows that could not be read, as messages with line, column and reason.
    """

    name: str
    version: str
    provider: Coded
    instance: Coded
    region: Coded
    country: Coded
    market: Coded
    accelerator: Coded
    link: Coded
    host: Coded
    availability: Coded
    price_state: Coded
    currency: Coded
    price_unit: Coded
    tax: Coded
    observed_precision: Coded
    quality: Coded
    source: Coded
    note: Coded
    billing_clock: Coded
    host_shared: Coded
    stopped: Coded
    accelerators: NDArray[np.float64]
    nodes: NDArray[np.float64]
    memory_gib: NDArray[np.float64]
    vcpus: NDArray[np.float64]
    host_memory_gib: NDArray[np.float64]
    price_native: NDArray[np.float64]
    price_usd_per_hour: NDArray[np.float64]
    term_h: NDArray[np.float64]
    upfront_usd: NDArray[np.float64]
    billing_step_s: NDArray[np.float64]
    billing_minimum_s: NDArray[np.float64]
    preparation_s: NDArray[np.float64]
    licence_usd_per_month: NDArray[np.float64]
    vat_fraction: NDArray[np.float64]
    running_usd_per_hour: NDArray[np.float64]
    price_log_sd: NDArray[np.float64]
    fee_usd: NDArray[np.float64]
    monthly_cap_h: NDArray[np.float64]
    host_gpus: NDArray[np.float64]
    disk_included_gb: NDArray[np.float64]
    storage_usd_per_gb_month: NDArray[np.float64]
    egress_usd_per_gb: NDArray[np.float64]
    address_usd_per_hour: NDArray[np.float64]
    session_limit_s: NDArray[np.float64]
    longest_h: NDArray[np.float64]
    losses_per_hour: NDArray[np.float64]
    wait_s: NDArray[np.float64]
    reliability_fraction: NDArray[np.float64]
    observed: NDArray[np.int32]
    withdrawn: NDArray[np.int32]
    ids: Coded | None = None
    rows: NDArray[np.int64] | None = None
    rejects: tuple[Message, ...] = ()

    def __len__(self) -> int:
        return len(self.accelerators)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Catalogue:
        """The same catalogue with only these rows."""
        count = int(rows.sum()) if rows.dtype == np.bool_ else len(rows)
        if rows.dtype == np.bool_ and count == len(self):
            return self
        columns: dict[str, Any] = {c: _take(getattr(self, c), rows, count) for c in (*TEXT, *NUMBERS, *DATES)}
        numbers = np.arange(len(self)) if self.rows is None else self.rows
        return replace(self, **columns, ids=None if self.ids is None else self.ids.take(rows), rows=numbers[rows])

    def offer_id(self, row: int) -> str:
        """Stable text that names the offer: given, or provider/instance/region/market and the day it was seen."""
        if self.ids is not None and (given := self.ids[row]):
            return given
        number = row if self.rows is None else self.rows[row]
        parts = [self.provider[row], self.instance[row] or self.accelerator[row], self.region[row], self.market[row]]
        return "/".join(p or "-" for p in [*parts, str(as_date(self.observed[row]) or "undated")]) + f"#{number}"

    def offer(self, row: int) -> Offer:
        """The row as an object, each missing figure None."""
        price = as_float(self.price_usd_per_hour[row])
        figures: dict[str, Any] = {c: as_float(getattr(self, c)[row]) for c in _PLAIN}
        reasons = {} if price is not None else {"price_usd_per_hour": price_reason(self.price_state[row])}
        return Offer(
            id=self.offer_id(row),
            provider=self.provider[row] or "unknown",
            instance=self.instance[row] or "",
            region=self.region[row],
            country=self.country[row],
            market=cast(Market, self.market[row]),
            accelerator=self.accelerator[row] or "unknown",
            accelerators=int(self.accelerators[row] * self.nodes[row]),
            vcpus=as_int(self.vcpus[row]),
            link=self.link[row],
            host=cast(Host, self.host[row] or "unknown"),
            availability=cast(Availability, self.availability[row] or "unknown"),
            price_usd_per_hour=price,
            currency=self.currency[row] or "USD",
            price_unit=cast(PriceUnit, self.price_unit[row] or "hour"),
            observed=as_date(self.observed[row]),
            observed_precision=self.observed_precision[row] or "day",
            quality=self.quality[row] or "unknown",
            nodes=int(self.nodes[row]),
            price_state=self.price_state[row] or "unknown",
            tax=self.tax[row] or "unknown",
            withdrawn=as_date(self.withdrawn[row]),
            billing_clock=cast("BillingClock | None", self.billing_clock[row]),
            host_gpus=as_int(self.host_gpus[row]),
            host_shared=_yes(self.host_shared[row]),
            stopped=cast("Stopped | None", self.stopped[row]),
            source=Source(kind="quoted", ref=self.source[row] or self.name),
            note=self.note[row] or "",
            reasons=reasons,
            **figures,
        )


def from_rows(
    name: str, version: str, rows: Sequence[Mapping[str, Any]], ids: Sequence[str] | None = None
) -> Catalogue:
    """A small catalogue from mappings of column -> value; a column that a row lacks is missing there (nodes: 1)."""
    columns: dict[str, Any] = {c: coded([r.get(c) for r in rows]) for c in TEXT}
    columns |= {c: np.array([r.get(c, np.nan) for r in rows], np.float64) for c in NUMBERS}
    columns |= {c: np.array([r.get(c, NO_DATE) for r in rows], np.int32) for c in DATES}
    columns["nodes"] = np.nan_to_num(columns["nodes"], nan=1.0)
    return Catalogue(name=name, version=version, ids=None if ids is None else coded(ids), **columns)


def price_reason(state: str | None) -> Message:
    """Why a row has no price that could be ranked."""
    return {
        "minimum bid": Message("the figure is a minimum bid, not a price: state the clearing price you expect"),
        "incomplete": Message("the figure leaves the host out (vCPUs and memory are billed apart)"),
        "suspect": Message("the figure is implausible for this accelerator"),
    }.get(state or "", Message("the source gives no usable price"))


def join(catalogues: Sequence[Catalogue]) -> Catalogue:
    """All rows of several catalogues, in order. A row keeps its number in its own catalogue, and so its id."""
    if len(catalogues) == 1:
        return catalogues[0]
    columns: dict[str, Any] = {c: _join_coded([getattr(k, c) for k in catalogues]) for c in TEXT}
    columns |= {c: np.concatenate([getattr(k, c) for k in catalogues]) for c in (*NUMBERS, *DATES)}
    return Catalogue(
        name=" + ".join(k.name for k in catalogues),
        version=" + ".join(k.version for k in catalogues),
        ids=_join_coded([k.ids or Coded(np.full(len(k), -1, np.int32), ()) for k in catalogues]),
        rows=np.concatenate([np.arange(len(k)) if k.rows is None else k.rows for k in catalogues]),
        rejects=tuple(r for k in catalogues for r in k.rejects),
        **columns,
    )


def _yes(text: str | None) -> bool | None:
    return None if text is None else text == "yes"


def as_float(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


def as_int(number: float) -> int | None:
    return None if np.isnan(number) else int(number)


def as_date(days: int) -> date | None:
    return None if days == NO_DATE else EPOCH + timedelta(days=int(days))


def as_days(day: date | None) -> int:
    return NO_DATE if day is None else (day - EPOCH).days


def _take(column: Coded | NDArray[Any], rows: NDArray[Any], count: int) -> Coded | NDArray[Any]:
    """The rows of one column; a column that holds one value only (stride 0) stays as small as it is."""
    if isinstance(column, Coded):
        return Coded(cast("NDArray[np.int32]", _take(column.codes, rows, count)), column.values)
    if len(column) and column.strides == (0,):
        return np.broadcast_to(column[0], (count,))
    return np.asarray(column[rows])


def _join_coded(columns: Sequence[Coded]) -> Coded:
    index: dict[str, int] = {}
    parts = []
    for column in columns:
        table = [index.setdefault(v, len(index)) for v in column.values]
        parts.append(column.lookup(table, -1, np.int32))
    return Coded(np.concatenate(parts), tuple(index))
