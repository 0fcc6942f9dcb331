"""What a price list's cells mean: money to USD an hour at dated rates, GPU names to ids, regions to countries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Coded
from gpuwise.errors import Message, UnknownName
from gpuwise.model import Accelerator, Fx
from gpuwise.names import Ambiguous, Name, Slice, memory_per_gpu, resolve
from gpuwise.request.places import country
from gpuwise.store.delimited import grouped, merged, replaced
from gpuwise.store.facts import Facts
from gpuwise.store.sheet import Amounts, Floats, Sheet, choices, refusal
from gpuwise.units import (
    HOURS_PER_DAY,
    HOURS_PER_MONTH,
    SECONDS_PER_DAY,
    parse_duration,
    parse_hours,
    parse_memory,
    parse_size,
)

CHOICES = {
    "market": choices(
        "on-demand", "spot", "reserved", "dedicated", "community", "free", "owned",
        ondemand="on-demand", false="on-demand", preemptible="spot", interruptible="spot", true="spot",
        monthly="dedicated", marketplace="community", free_tier="free",
    ),
    "price_unit": choices("hour", "month", "term", h="hour", hr="hour", mo="month"),
    "price_state": choices("listed", "free", "confirmed", "unknown", "minimum bid", "incomplete", "suspect"),
    "tax": choices("net", "gross", "unknown"),
    "host": choices("datacentre", "peer", "own", "unknown", datacenter="datacentre"),
    "availability": choices("available", "on request", "sold out", "withdrawn", "unknown"),
    "billing_clock": choices("elapsed", "calendar"),
    "host_shared": choices("yes", "no", true="yes", false="no"),
    "stopped": choices("nothing", "disk", "everything"),
}  # fmt: skip
_TEXTS = ("provider", "instance", "region", "link", "observed_precision", "quality", "source", "note")
_NUMBERS: Mapping[str, Callable[[str], float] | None] = {
    "nodes": None, "vcpus": None, "host_memory_gib": parse_memory, "billing_step_s": parse_duration,
    "billing_minimum_s": parse_duration, "preparation_s": parse_duration, "licence_usd_per_month": None,
    "price_log_sd": None, "fee_usd": None, "monthly_cap_h": parse_hours, "host_gpus": None,
    "disk_included_gb": parse_size, "storage_usd_per_gb_month": None, "egress_usd_per_gb": None,
    "address_usd_per_hour": None, "session_limit_s": parse_duration, "longest_h": parse_hours,
    "losses_per_hour": None, "wait_s": parse_duration,
}  # fmt: skip
"""Columns of numbers that stand for themselves, and what reads a cell that carries a unit."""
_MOST = {
    "billing_step_s": 3 * 366 * SECONDS_PER_DAY,
    "billing_minimum_s": 3 * 366 * SECONDS_PER_DAY,
    "monthly_cap_h": 31 * HOURS_PER_DAY,
}
"""The longest step is that of a term of three years, and a month has so many hours at most."""
_CHOSEN = ("tax", "host", "availability", "billing_clock", "host_shared", "stopped")
_TELLING = re.compile("sxm|pcie|nvl|hgx|[0-9]g", re.IGNORECASE)
"""What the name of an instance must hold to say anything about its GPU."""
MOST_REMARKS = 10
UNKNOWN = "unknown"
"""What an offer's GPU is called where nobody says which it is."""
_BY_USE = ("on-demand", "spot", "community")
_USABLE = ("listed", "free", "confirmed")
Mask = NDArray[np.bool_]


def columns(sheet: Sheet, facts: Facts) -> dict[str, Any]:
    """Every column of a `Catalogue`; rows that cannot be read are refused in the sheet."""
    read: dict[str, Any] = {c: sheet.text(c) for c in _TEXTS}
    read |= {c: sheet.choice(c, CHOICES[c]) for c in _CHOSEN}
    read |= {c: sheet.numbers(c, parse, most=_MOST.get(c, np.inf)) for c, parse in _NUMBERS.items()}
    read |= {c: sheet.days(c) for c in ("observed", "withdrawn")}
    read["nodes"] = np.where(np.isnan(read["nodes"]), 1.0, read["nodes"])
    read |= {c: sheet.numbers(c, most=1.0) for c in ("vat_fraction", "reliability_fraction")}
    read |= _money(sheet, facts.fx)
    read |= _gpus(sheet, facts, read["note"])
    _refuse_small_hosts(sheet, read)
    known = _countries(read["provider"], read["region"], facts.countries)
    read["country"] = merged(sheet.parsed("country", _country), known)
    ids = sheet.text("id")
    return read | {"ids": ids if ids.values else None}


def _refuse_small_hosts(sheet: Sheet, read: Mapping[str, Any]) -> None:
    """A physical host holds at least the GPUs of one machine of the offer, and whole ones."""
    small = (read["host_gpus"] < read["accelerators"]) | (read["host_gpus"] % 1 > 0)
    sheet.refuse(np.flatnonzero(small), "host_gpus", Message("a host holds at least the GPUs of the offer, whole ones"))


# ---- money ----


def _money(sheet: Sheet, fx: Mapping[str, Fx]) -> dict[str, Any]:
    price, upfront = sheet.amounts("price"), sheet.amounts("upfront")
    amount, term_h = price.amount, sheet.numbers("term_h", parse_hours)
    priced = (amount > 0) | (upfront.amount > 0)
    currency, usd_per_unit = _currency(sheet, price, fx, priced)
    unit = merged(merged(sheet.choice("price_unit", CHOICES["price_unit"]), _per(sheet, price)), sheet.constant("hour"))
    by_term = unit.isin(("term",))
    lump = np.nan_to_num(upfront.amount * usd_per_unit) + np.where(by_term, np.nan_to_num(amount * usd_per_unit), 0.0)
    stated = sheet.numbers("upfront_usd")
    lump = np.where(np.isnan(stated), lump, stated)
    market = _market(sheet, priced & unit.isin(("month",)), by_term | (lump > 0))
    committed = by_term | (lump > 0) | market.isin(("reserved",))
    sheet.refuse(
        np.flatnonzero(priced & committed & ~(term_h > 0)), "term_h", Message("the length of the commitment is missing")
    )
    running = _running(sheet, market)
    hours = np.where(unit.isin(("month",)), HOURS_PER_MONTH, 1.0)
    hourly = np.where(by_term, 0.0, np.nan_to_num(amount * usd_per_unit) / hours)
    state = _state(sheet, (amount > 0) | (lump > 0))
    free, usable = state.isin(("free",)), state.isin(_USABLE)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = hourly + np.where(lump > 0, lump / term_h, 0.0) + np.nan_to_num(running)
    return {
        "market": market,
        "running_usd_per_hour": running,
        "price_native": np.where(free, np.nan_to_num(amount), np.where(amount > 0, amount, np.nan)),
        "price_usd_per_hour": np.where(free, 0.0, np.where(usable, total, np.nan)),
        "price_state": state,
        "price_unit": unit,
        "currency": currency,
        "term_h": term_h,
        "upfront_usd": np.where(lump > 0, lump, np.nan),
    }


def _market(sheet: Sheet, by_month: Mask, by_term: Mask) -> Coded:
    """The market; what is owed for a month or a term, whether it is used or not, is dedicated or reserved."""
    stated = sheet.choice("market", CHOICES["market"])
    owed = by_month | by_term
    for row in np.flatnonzero(owed & stated.isin(_BY_USE)).tolist():
        sheet.refuse((row,), "market", _contradiction(stated[row], "month" if by_month[row] else "term"))
    silent = stated.codes < 0
    for rows, note in (
        (by_month & ~by_term, Message("a price a month and no market: dedicated is taken, a whole month is owed")),
        (by_term, Message("a price for a term and no market: reserved is taken, the whole term is owed")),
    ):
        if count := int(np.count_nonzero(rows & silent)):
            sheet.notes.append(Message("{rows} rows: {remark}", rows=count, remark=note))
    implied = np.where(by_term, 2, np.where(by_month, 1, 0)).astype(np.int32)
    return merged(stated, Coded(implied, ("on-demand", "dedicated", "reserved")))


def _contradiction(market: str | None, unit: str) -> Message:
    return Message(
        "what is paid by the {unit} is owed for all of it, and {market} is paid by use: write {fitting}, or the price "
        "an hour",
        unit=unit,
        market=market,
        fitting="dedicated" if unit == "month" else "reserved",
    )


def _running(sheet: Sheet, market: Coded) -> Floats:
    """What a busy hour of an owned machine costs beside its price."""
    running = sheet.numbers("running_usd_per_hour")
    rented = np.flatnonzero((running > 0) & ~market.isin(("owned",)))
    sheet.refuse(rented, "running_usd_per_hour", Message("only an owned machine has it: add it to the price"))
    return running


def _currency(sheet: Sheet, price: Amounts, fx: Mapping[str, Fx], priced: Mask) -> tuple[Coded, Floats]:
    """The currency of each row and what one unit of it is worth in USD."""
    cells = sheet.cells("currency")
    stated = replaced(cells, [code.upper() for code in cells.values])
    index = {code: i for i, code in enumerate(stated.values)}
    inside = price.currency.lookup([index.get(code, -2) for code in price.currency.values], -1, np.int32)
    clash = (stated.codes >= 0) & (price.currency.codes >= 0) & (inside != stated.codes)
    sheet.refuse(np.flatnonzero(clash), "price", Message("the sign in the cell is not the currency of the row"))
    currency = merged(stated, price.currency)
    sheet.refuse(
        np.flatnonzero(priced & (currency.codes < 0)), "currency", Message("an amount without currency is not read")
    )
    rates = [1.0 if code == "USD" else fx[code].usd_per_unit if code in fx else np.nan for code in currency.values]
    own = sheet.numbers("usd_per_unit")
    usd_per_unit = np.where(np.isnan(own), currency.lookup(rates, np.nan, np.float64), own)
    for row in np.flatnonzero(priced & (currency.codes >= 0) & np.isnan(usd_per_unit)).tolist():
        reason = Message("no rate for {code} is known: give yours in usd_per_unit", code=currency[row])
        sheet.refuse((row,), "currency", reason)
    sheet.notes += [_rate_note(fx[code]) for code in currency.values if code in fx and np.isnan(own).any()]
    return currency, usd_per_unit


def _rate_note(fx: Fx) -> Message:
    return Message("1 {code} = {rate} USD on {day}", code=fx.code, rate=f"{fx.usd_per_unit:g}", day=fx.observed)


def _per(sheet: Sheet, price: Amounts) -> Coded:
    for i, per in enumerate(price.per.values):
        if per not in ("hour", "month"):
            reason = Message("a price per {per} is not read: write it per hour, month or term", per=per)
            sheet.refuse(np.flatnonzero(price.per.codes == i), "price", reason)
    return price.per


def _state(sheet: Sheet, known: Mask) -> Coded:
    """What the price is. A price that is missing, 0 or below is unknown, unless the row is marked as free."""
    stated = merged(sheet.choice("price_state", CHOICES["price_state"]), sheet.constant("listed"))
    codes = np.where(known | stated.isin(("free",)), stated.codes, np.int32(len(stated.values)))
    values = (*stated.values, "unknown")
    return replaced(Coded(codes, values), values)


# ---- GPUs and countries ----


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gpu:
    """What name, memory and count of a row say together. ids: joined by "|"; None, with a remark, if nothing does."""

    ids: str | None
    memory_gib: float
    remark: str | None = None


def _gpus(sheet: Sheet, facts: Facts, note: Coded) -> dict[str, Any]:
    memory, count = sheet.numbers("memory_gib", parse_memory), _counts(sheet)
    names = sheet.text("accelerator")
    names = replaced(names, [None if name == UNKNOWN else name for name in names.values])
    group, first = _groups(names, sheet.cells("memory_gib"), sheet.cells("accelerators"))
    found = [_gpu(facts, names[row], memory[row], count[row]) for row in first]
    several = np.array([gpu.ids is not None and "|" in gpu.ids for gpu in found], bool)
    rows = np.flatnonzero(several[group])
    if len(rows):  # the name of the instance may say more: gpu_8x_a100_80gb_sxm4
        instance = sheet.text("instance")
        telling = replaced(instance, [text if _TELLING.search(text) else None for text in instance.values])
        finer, at = _groups(Coded(group[rows], ("",) * len(found)), telling.take(rows))
        group[rows] = finer + len(found)
        found += [_gpu(facts, names[row], memory[row], count[row], telling[row] or "") for row in rows[at]]
    by_group = Coded(group, ("",) * len(found))
    remarks = _both(replaced(by_group, [gpu.remark for gpu in found]), _miscounted(sheet, facts, count))
    _note_remarks(sheet, remarks)
    return {
        "accelerator": replaced(by_group, [gpu.ids for gpu in found]),
        "accelerators": count,
        "memory_gib": by_group.lookup([gpu.memory_gib for gpu in found], np.nan, np.float64),
        "note": _both(note, remarks),
    }


def _groups(*columns: Coded) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Rows that hold the same texts in all columns: the group of each row, and the first row of each group."""
    key = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        key = key * np.uint64(len(column.values) + 1) + (column.codes + 1).astype(np.uint64)
    return grouped(key)


def _gpu(facts: Facts, text: str | None, memory_gib: float, count: float, instance: str = "") -> _Gpu:
    if text is None:
        return _Gpu(ids=None, memory_gib=memory_gib)
    ids = text.split("|")
    known = all(i in facts.accelerators for i in ids)
    name = None if known else resolve(facts.index, text, hint=instance)
    variants = tuple(facts.accelerators[i] for i in ids) if name is None else name.variants
    sized = _per_gpu(memory_gib, count, name.candidates if isinstance(name, Ambiguous) else variants)
    if name is not None and not isinstance(sized, Message):
        name = resolve(facts.index, text, memory_gib=None if np.isnan(sized) else sized, hint=instance)
        variants = name.variants
    remark = sized if isinstance(sized, Message) else None if variants else _why_none(text, name)
    return _Gpu(
        ids="|".join(a.id for a in variants) or None,
        memory_gib=np.nan if isinstance(sized, Message) else sized,
        remark=None if remark is None else str(remark),
    )


def _per_gpu(memory_gib: float, count: float, variants: Sequence[Accelerator]) -> float | Message:
    if np.isnan(memory_gib) or not variants:
        return memory_gib
    return memory_per_gpu(memory_gib, int(count) if count >= 1 else 1, variants)


def _why_none(text: str, name: Name | None) -> Message:
    match name:
        case Ambiguous(_, reason):
            return reason
        case Slice():
            return Message('"{text}" is a part of a GPU', text=text)
    return Message('the GPU "{text}" is not known', text=text)


def _counts(sheet: Sheet) -> Floats:
    count = sheet.numbers("accelerators")
    sheet.refuse(np.flatnonzero(count % 1 > 0), "accelerators", Message("a part of a GPU is not read"))
    return count


def _miscounted(sheet: Sheet, facts: Facts, count: Floats) -> Coded:
    """A remark where the number of GPUs is not the one that this instance type is known to have."""
    provider, instance = sheet.text("provider"), sheet.text("instance")
    group, first = _groups(provider, instance, sheet.cells("accelerators"))
    known = facts.instances() if instance.values else {}
    remarks = []
    for row in first:
        right = known.get((provider[row] or "", instance[row] or ""), count[row])
        wrong = Message(
            "{stated:g} GPUs are stated, {instance} has {right}", stated=count[row], instance=instance[row], right=right
        )
        remarks.append(str(wrong) if count[row] >= 1 and right != count[row] else None)
    return replaced(Coded(group, ("",) * len(first)), remarks)


def _note_remarks(sheet: Sheet, remarks: Coded) -> None:
    for i, remark in enumerate(remarks.values[:MOST_REMARKS]):
        rows = int(np.count_nonzero(remarks.codes == i))
        sheet.notes.append(Message("{rows} rows: {remark}", rows=rows, remark=remark))
    if (more := len(remarks.values) - MOST_REMARKS) > 0:
        sheet.notes.append(Message("{more} more such remarks stand in the notes of the rows", more=more))


def _both(note: Coded, remarks: Coded) -> Coded:
    if not remarks.values:
        return note
    group, first = _groups(note, remarks)
    texts = [_joined(note[row], remarks[row]) for row in first]
    return replaced(Coded(group, ("",) * len(first)), texts)


def _joined(note: str | None, remark: str | None) -> str | None:
    """Both, and the remark once: a list that was written by us has it already."""
    return note if remark is None or (note and remark in note) else f"{note}; {remark}" if note else remark


def _country(text: str) -> str:
    try:
        return country(text)
    except UnknownName as error:
        raise refusal(Message("{what} {hint}", what=error.message, hint=error.hint)) from None


def _countries(provider: Coded, region: Coded, known: Mapping[tuple[str, str], str]) -> Coded:
    group, first = _groups(provider, region)
    countries = [known.get((provider[row] or "", region[row] or "")) for row in first]
    return replaced(Coded(group, ("",) * len(first)), countries)
