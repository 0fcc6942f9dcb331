"""Cost exports (CSV, row by row, however large) → sums by month: FOCUS 1.0 and later, or a column that is named.

FOCUS says what its costs mean; any other export is asked for it, because a column called cost may be what was billed,
what it would have cost at public prices, or what is left after commitments are spread. Nothing is guessed or converted.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from itertools import chain, islice
from math import isfinite, nan
from pathlib import Path

from gpuwise.cost.monthly import KINDS, Ledger
from gpuwise.errors import DataError, InvalidInput, Message
from gpuwise.sources.offered import nearest
from gpuwise.store.delimited import SEPARATORS, reject
from gpuwise.store.sheet import NO_NUMBER
from gpuwise.units import NumberFormat, number_format, parse_moment, parse_number

CHARGED, INVOICED = "ChargePeriodStart", "BillingPeriodStart"
OTHER_DATES = (
    "lineitem/usagestartdate", "line_item_usage_start_date", "usagestartdate", "usage_start_time", "usagedate",
    "usage_date", "date", "day", "month", "invoice_month", "billingperiodstartdate",
)  # fmt: skip
OTHER_CURRENCIES = (
    "billingcurrency", "billing_currency", "billingcurrencycode", "lineitem/currencycode", "line_item_currency_code",
    "currencycode", "currency_code", "currency",
)  # fmt: skip
_LIKE_COSTS = re.compile("cost|amount|charge|total|price|spend|kosten|betrag", re.I)
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])(?:-[0-9]{2})?(?:[T ][0-9:.]*)?Z?", re.I)
_INVOICE_MONTH = re.compile(r"([0-9]{4})(0[1-9]|1[0-2])")
_CURRENCY = re.compile("[A-Z]{3}")
_SAMPLE = 1000
"""Rows by which the way in which a file writes its numbers is told."""

PLAIN = NumberFormat(decimal=".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the person says of an export. See `request.BillRequest`."""

    kind: str | None = None
    column: str | None = None
    date_column: str | None = None
    currency: str | None = None


@dataclass(slots=True, kw_only=True)
class Costs:
    """What the exports hold. kind: the one that was asked for; column: as the file calls it; dated: the column of days.

    rows: below the headers. missing: kind -> rows without a figure of it. rejects: first reasons of rows that were not
    read, and how many were not in all.
    """

    kind: str
    column: str = ""
    dated: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    rows: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    rejects: list[Message] = field(default_factory=list)
    rejected: int = 0
    notes: list[Message] = field(default_factory=list)

    def refuse(self, name: str, line: int, why: Message) -> None:
        self.rejected += 1
        if len(self.rejects) < 10:
            self.rejects.append(reject(name, line, why))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Which columns of a file are used. kinds: kind -> its column and that of its month, by place."""

    kinds: Mapping[str, tuple[int, int]]
    currency_at: int | None
    currency: str


def read_costs(paths: Sequence[Path], wish: Wish) -> Costs:
    """The sums of all files together. DataError for what cannot be read, InvalidInput for what must be said first."""
    costs = Costs(kind=wish.kind or "effective")
    for path in paths:
        with closing(csv_rows(path)) as rows:
            _, header = next(rows, (0, []))
            if not header:
                raise DataError(
                    Message("{file} is empty.", file=path.name), Message("Give an export with rows."), file=path.name
                )
            _add(costs, path.name, rows, _plan(path.name, header, wish, costs))
    if not any(kind == costs.kind for kind in costs.ledger.kinds):
        why = costs.rejects[0] if costs.rejects else Message("no row has a figure of {column}", column=costs.column)
        what = Message("Nothing could be summed: {why}.", why=why)
        raise DataError(what, Message("Correct the rows, or name another column."), file=paths[0].name)
    return costs


# ---- the text ----


def csv_rows(path: Path) -> Generator[tuple[int, list[str]], None, None]:
    """Line number and fields of each record, the header first, one at a time. Blank records are left out."""
    try:
        with opened(path) as (text, separator):
            reader = csv.reader(text, delimiter=separator)
            yield from ((reader.line_num, record) for record in reader if any(cell.strip() for cell in record))
    except csv.Error as error:
        what = Message("{file}: a record cannot be read ({cause}).", file=path.name, cause=str(error))
        raise DataError(what, Message("Correct its quotes, or a cell of more than 128 kB."), file=path.name) from error
    except (OSError, EOFError, UnicodeDecodeError) as error:
        what = Message("{file} cannot be read to its end: {cause}.", file=path.name, cause=str(error))
        raise DataError(what, Message("Fetch it again."), file=path.name) from error


@contextmanager
def opened(path: Path) -> Iterator[tuple[io.TextIOWrapper, str]]:
    """The text of a file from its first line with words on, unpacked if it is gzip, and what separates its fields."""
    head = first_bytes(path)
    if head.startswith((b"PAR1", b"PK\x03\x04")):
        raise DataError(
            Message("{file} is no text: it is Parquet, a spreadsheet or an archive.", file=path.name),
            Message("Export it as CSV."),
            file=path.name,
        )
    unpack = gzip.open if head.startswith(b"\x1f\x8b") else open
    encoding = "utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    with unpack(path, "rt", encoding=encoding, errors="replace", newline="") as text:
        line, start = text.readline(), 0
        while line and (not line.strip() or line.lower().startswith("sep=")):
            start = text.tell()
            line = text.readline()
        text.seek(start)
        yield text, max(SEPARATORS, key=line.count)


def first_bytes(path: Path, size: int = 65_536) -> bytes:
    """How a file begins. DataError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise DataError(
            Message("{file} cannot be read: {cause}.", file=str(path), cause=error.strerror or str(error)),
            Message("Check the name, and that you may read it."),
            file=str(path),
        ) from error


# ---- which columns ----


def _plan(name: str, header: Sequence[str], wish: Wish, costs: Costs) -> _Plan:
    titles = {" ".join(title.split()).casefold(): place for place, title in reversed([*enumerate(header)])}
    found = {kind: titles[column.casefold()] for kind, column in KINDS.items() if column.casefold() in titles}
    if wish.column is not None:
        found = {_said_kind(wish): _place(name, titles, header, wish.column, "--column")}
    elif costs.kind not in found:
        raise _ask(name, header, found, costs.kind)
    costs.column = costs.column or header[found[costs.kind]].strip()
    currency_at = next((titles[title] for title in OTHER_CURRENCIES if title in titles), None)
    if currency_at is None and wish.currency is None:
        raise InvalidInput(
            Message("{file} names no currency.", file=name), Message("Say which it is, such as --currency USD.")
        )
    if currency_at is not None and wish.currency is not None:
        raise InvalidInput(
            Message("{file} names its currency in the column {column}.", file=name, column=header[currency_at]),
            Message("Leave --currency out: nothing is converted."),
        )
    months = {kind: _dated(name, titles, header, kind, wish) for kind in found}
    costs.dated = costs.dated or header[months[costs.kind]].strip()
    return _Plan(
        kinds={kind: (place, months[kind]) for kind, place in found.items()},
        currency_at=currency_at,
        currency=wish.currency or "",
    )


def _said_kind(wish: Wish) -> str:
    if wish.kind is None:
        raise InvalidInput(
            Message("--column {column}: what does this cost mean?", column=wish.column), _meanings(str(wish.column))
        )
    return wish.kind


def _meanings(column: str) -> Message:
    return Message(
        "Say it: --column {column} --kind billed (what was invoiced), effective (what was paid up front is spread), "
        "contracted (your prices) or list (public prices).",
        column=column if re.fullmatch(r"[\w/.:-]+", column) else f'"{column}"',
    )


def _place(name: str, titles: Mapping[str, int], header: Sequence[str], wanted: str, option: str) -> int:
    if (place := titles.get(" ".join(wanted.split()).casefold())) is not None:
        return place
    near = nearest(wanted, header)
    raise InvalidInput(
        Message("{option} {column}: {file} has no such column.", option=option, column=wanted, file=name),
        Message("Did you mean {name}?", name=near[0])
        if near
        else Message("It has {names}.", names=", ".join(header[:20])),
    )


def _ask(name: str, header: Sequence[str], found: Mapping[str, int], kind: str) -> InvalidInput:
    """The columns do not say what was asked for: what there is, and what to say."""
    if found:
        there = ", ".join(KINDS[each] for each in found)
        return InvalidInput(
            Message("{file} has no {column}; it has {there}.", file=name, column=KINDS[kind], there=there),
            Message("Ask for one that it has, such as --kind {kind}.", kind=next(iter(found))),
        )
    columns = ", ".join(KINDS.values())
    likely = [title for title in header if _LIKE_COSTS.search(title)]
    if not likely:
        return InvalidInput(
            Message("{file} is no record of a known kind: its columns are {names}.", file=name,
                    names=", ".join(header[:12])),
            Message("Events of machines have machine, time and state; a FOCUS export has {columns}.", columns=columns),
        )  # fmt: skip
    return InvalidInput(
        Message("{file} has none of the cost columns of FOCUS ({columns}), but {names}: what do they mean?",
                file=name, columns=columns, names=", ".join(likely[:6])),
        _meanings(likely[0]),
    )  # fmt: skip


def _dated(name: str, titles: Mapping[str, int], header: Sequence[str], kind: str, wish: Wish) -> int:
    """The invoice's month for what was billed, the month of use for all else."""
    if wish.date_column is not None:
        return _place(name, titles, header, wish.date_column, "--date-column")
    wanted = (INVOICED, CHARGED) if kind == "billed" else (CHARGED, INVOICED)
    for title in (*wanted, *OTHER_DATES):
        if title.casefold() in titles:
            return titles[title.casefold()]
    raise InvalidInput(
        Message("{file} does not say which column holds the day or the month.", file=name),
        Message("Name it, such as --date-column {column}.", column=header[0]),
    )


# ---- the rows ----


def _add(costs: Costs, name: str, rows: Iterator[tuple[int, list[str]]], plan: _Plan) -> None:
    sample = [*islice(rows, _SAMPLE)]
    signs = {kind: _signs(name, [r[at] for _, r in sample if at < len(r)]) for kind, (at, _) in plan.kinds.items()}
    last = max(plan.currency_at or 0, *(max(places) for places in plan.kinds.values()))
    for line, row in chain(sample, rows):
        costs.rows += 1
        try:
            if len(row) <= last:
                raise InvalidInput(Message("it has {n} fields, and more are needed", n=len(row)), "")
            _add_row(costs, row, plan, signs)
        except InvalidInput as error:
            costs.refuse(name, line, error.message)


def _signs(name: str, texts: Sequence[str]) -> NumberFormat:
    try:
        return number_format(text for text in texts if text.strip().casefold() not in NO_NUMBER)
    except InvalidInput as error:
        raise DataError(
            Message("{file}: {what}", file=name, what=error.message), Message("Write numbers as 1234.56."), file=name
        ) from error


def _add_row(costs: Costs, row: Sequence[str], plan: _Plan, signs: Mapping[str, NumberFormat]) -> None:
    currency = plan.currency if plan.currency_at is None else row[plan.currency_at].strip().upper()
    if not _CURRENCY.fullmatch(currency):
        raise InvalidInput(Message('the currency "{text}" is no code of three letters', text=currency), "")
    for kind, (at, dated) in plan.kinds.items():
        amount = _amount(row[at].strip(), signs[kind])
        if amount != amount:
            costs.missing[kind] = costs.missing.get(kind, 0) + 1
        else:
            costs.ledger.add(kind, _month(row[dated].strip()), currency, amount)


def _amount(text: str, signs: NumberFormat) -> float:
    """NaN where there is none."""
    if not text or text.casefold() in NO_NUMBER:
        return nan
    if signs == PLAIN:
        try:
            if isfinite(value := float(text)):
                return value
        except ValueError:
            pass
    return parse_number(text, signs)


def _month(text: str) -> str:
    """2026-01 of a day, a moment (in UTC, as FOCUS counts) or 202601."""
    if _MONTH.fullmatch(text):
        return text[:7]
    if found := _INVOICE_MONTH.fullmatch(text):
        return f"{found[1]}-{found[2]}"
    when = parse_moment(text)
    return f"{when if when.tzinfo is None else when.astimezone(UTC):%Y-%m}"
