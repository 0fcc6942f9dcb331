"""Months of FOCUS 1.0 to 1.3 exports of AWS, Azure and Google (CSV, gzip, Parquet) → a bill in GPU-hours and spend.

DuckDB (extra `[focus]`) reads and sums each file in bounded memory; what does not fit goes to a folder that is removed
afterwards. `sources.focus_rows` says what a row is, `own.booking` where it counts.

Moments are UTC, as FOCUS has them, also those without a zone. Months are those of `Wish.time_zone` if one is given.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpuwise.errors import DataError, InvalidInput, Message
from gpuwise.own.booking import booked
from gpuwise.own.usage import Bill, Fact, Reading, Spans
from gpuwise.sources.costs import first_bytes, opened
from gpuwise.sources.focus_rows import (
    BROKEN,
    COLUMNS,
    ELSEWHERE,
    FACTS,
    NEEDED,
    PAID,
    SCHEMA,
    SPANS,
    UNITS,
    UNREAD,
    picked,
    refused,
    summing,
)
from gpuwise.sources.instances import Instances
from gpuwise.sources.moments import zone

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "384MB"
"""Of DuckDB, beside what Python takes. With less, an export of which hardly two rows are alike does not pass."""
THREADS = 2
BUFFER = 8_388_608
"""Bytes of text that a thread reads at a time: they cannot be put aside when memory is short."""
SHOWN = 10
"""So many refused rows are shown, of all files together."""
AGAIN, PARTS = Message("Fetch it again, as CSV, gzip or Parquet."), Message("Give it in parts, such as months.")
MOST_BROKEN = 100_000
"""Lines that do not fit the header: a file with more of them is none that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the person, or the caller, says of the exports.

    time_zone: whose months are meant, such as Europe/Berlin; None: those of UTC. days: what comes first in days such as
    01/06/2026; None: such days are refused. rates: currency -> USD for one unit; None: currencies stand apart.
    """

    instances: Instances = field(default_factory=Instances)
    time_zone: str | None = None
    days: Literal["day first", "month first"] | None = None
    rates: Mapping[str, float] | None = None


def read_bill(paths: Sequence[Path], wish: Wish | None = None) -> Bill:
    """The bill of all files together.

    A row that cannot be read is refused, with its number (the header is row 1), and the others go on. DataError for a
    file that cannot be used and for files without one row that can; InvalidInput for what must be said first, for the
    same file twice, and where DuckDB is not installed.
    """
    said = wish or Wish()
    place = zone(said.time_zone)
    _refuse_same(paths)
    with _database(said.instances) as database:
        reader = _Reader(database=database, zone="UTC" if place is None else place.key, days=said.days or "")
        for path in paths:
            reader.add(path)
        reader.finish(paths)
        facts = [_fact(row) for row in database.execute(FACTS).fetchall()]
        spans = _spans(database, said.instances)
        paid = _paid(database, said.instances)
    reading = Reading(
        files=tuple(path.name for path in paths),
        rejected=reader.rejected,
        rejects=tuple(reader.rejects),
        notes=tuple(reader.notes),
        paid=paid,
    )
    return booked(facts, spans, reading, said.rates)


def _refuse_same(paths: Sequence[Path]) -> None:
    """The same bytes twice would count double."""
    if not paths:
        raise InvalidInput(Message("No cost export is named."), Message("Name one file or more."))
    sizes: dict[int, list[Path]] = defaultdict(list)
    for path in paths:
        first_bytes(path, 1)
        sizes[path.stat().st_size].append(path)
    seen: dict[str, Path] = {}
    for path in (path for same in sizes.values() if len(same) > 1 for path in same):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest in seen:
            raise InvalidInput(
                Message("{one} and {other} are the same file: its rows would count double.",
                        one=seen[digest].name, other=path.name),
                Message("Name it once."),
            )  # fmt: skip
        seen[digest] = path


# ---- the database ----


@contextmanager
def _database(known: Instances) -> Iterator[DuckDBPyConnection]:
    """One that lives in a folder of its own, and goes with it."""
    try:
        import duckdb
    except ImportError as error:
        raise InvalidInput(
            Message("Cost exports are read by DuckDB, which is not installed."),
            Message("Run: pip install 'gpuwise[focus]'"),
        ) from error
    with TemporaryDirectory(prefix="gpuwise-", ignore_cleanup_errors=True) as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY,
            "threads": THREADS,
            "temp_directory": str(Path(folder) / "spilled"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
        with duckdb.connect(str(Path(folder) / "bill.duckdb"), config=config) as database:
            database.execute("SET TimeZone = 'UTC'")
            database.execute(SCHEMA)
            _fill(database, "machines", [(name, each.accelerator, each.gpus) for name, each in known.machines.items()])
            _fill(database, "units", UNITS)
            yield database


def _fill(database: DuckDBPyConnection, table: Literal["machines", "units"], rows: Sequence[Sequence[Any]]) -> None:
    """In one parameter: DuckDB looks long at each of a list."""
    each = """SELECT unnest(from_json($1, '[["VARCHAR"]]')) AS row"""
    database.execute(f"INSERT INTO {table} SELECT row[1], row[2], row[3] FROM ({each})", [json.dumps(rows)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A file as SQL sees it. numbered, plain: what selects its rows with and without their number; values: parameters.

    header: rows before the first one. keeps_broken: records that do not fit are set aside in tables.
    """

    numbered: str
    plain: str
    values: Mapping[str, Any]
    header: int
    keeps_broken: bool = False


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Adds files to the facts, and keeps what was refused."""

    database: DuckDBPyConnection
    zone: str
    days: str
    rejected: int = 0
    rejects: list[Message] = field(default_factory=list)
    first: tuple[str, int] | None = None
    notes: list[Message] = field(default_factory=list)

    def add(self, path: Path) -> None:
        import duckdb

        try:
            source = _parquet(self.database, path) if first_bytes(path, 4) == b"PAR1" else _text(path)
            before = self._unread()
            values = {**source.values, "zone": self.zone, "days": self.days}
            self.database.execute(summing(source.plain), values)
            broken = self._broken(source)
            if (unread := self._unread() - before) or broken:
                self._refuse(path.name, source, unread, broken)
        except (duckdb.DataError, duckdb.OperationalError, duckdb.InvalidInputException) as error:
            what = Message("{file} cannot be read: {cause}", file=path.name, cause=str(error).strip().splitlines()[0])
            scarce = isinstance(error, duckdb.OutOfMemoryException)
            raise DataError(what, PARTS if scarce else AGAIN, file=path.name) from error

    def _unread(self) -> int:
        return int(self._one("SELECT coalesce(sum(number_of), 0)::BIGINT FROM facts WHERE why IS NOT NULL"))

    def _one(self, query: str) -> Any:
        found = self.database.execute(query).fetchone()
        return None if found is None else found[0]

    def _broken(self, source: _Source) -> list[tuple[int, str]]:
        """Records that do not fit the header, of the last reading: their number, and what DuckDB says of them."""
        if not source.keeps_broken:
            return []
        found = self.database.execute(BROKEN).fetchall()
        self.database.execute("DROP TABLE broken; DROP TABLE broken_scans")
        return [(int(line), str(cause).splitlines()[0]) for line, cause in found]

    def _refuse(self, name: str, source: _Source, unread: int, broken: Sequence[tuple[int, str]]) -> None:
        self.rejected += unread + len(broken)
        rows = [(number, Message("{cause}", cause=cause)) for number, cause in broken[:SHOWN]]
        if unread:
            unclear = bool(self._one("SELECT count(*) FROM facts WHERE why = 'ambiguous'"))
            for row, why, texts in self._refused(source, "ambiguous" if unclear else None):
                if why == "ambiguous":
                    raise _ask(name, row, texts)
                rows.append((row, _reason(why, texts)))
        for row, reason in sorted(rows, key=lambda each: each[0])[: SHOWN - len(self.rejects)]:
            self.first = self.first or (name, row)
            self.rejects.append(Message("{file}, row {row}: {reason}", file=name, row=row, reason=reason))

    def _refused(self, source: _Source, only: str | None) -> list[tuple[int, str, list[str | None]]]:
        """Row, why, texts: read again in the order of the file, which the summing does without.

        DuckDB does not number the records that do not fit, and finds fewer of them where it reads fewer columns.
        """
        self.database.execute("SET threads = 1; SET preserve_insertion_order = true")
        values = {**source.values, "days": self.days, "only": only}
        found = self.database.execute(refused(source.numbered), values).fetchall()
        self.database.execute(f"SET threads = {THREADS}; SET preserve_insertion_order = false")
        broken = [line for line, _cause in self._broken(source)]
        return [(_in_file(number + source.header, broken), why, texts) for number, why, *texts in found]

    def finish(self, paths: Sequence[Path]) -> None:
        """DataError if no row is left; else what must be said of those that were refused, and of their moments."""
        if not self._one("SELECT count(*) FROM facts WHERE why IS NULL"):
            if self.first is None:
                raise DataError(
                    Message("{file} holds no row.", file=paths[0].name),
                    Message("Give an export with rows."),
                    file=paths[0].name,
                )
            raise DataError(
                self.rejects[0], Message("No row could be read: correct them."), file=self.first[0], row=self.first[1]
            )
        if self.rejected:
            self.notes.append(Message("rows that were refused: {count}", count=self.rejected))
        self.notes += [
            Message("rows that were refused bill {amount:.2f} {currency}, which is in no sum", amount=amount,
                    currency=_printable(currency))
            for currency, amount in self.database.execute(UNREAD).fetchall()
        ]  # fmt: skip
        if self.zone == "UTC" and (count := self._one(ELSEWHERE)):
            text = "{count} rows give their time in another zone: months are those of UTC, unless you name yours"
            self.notes.append(Message(text, count=count))


def _in_file(number: int, broken: Sequence[int]) -> int:
    """The number of a row with the broken ones before it."""
    for at in broken:
        if at <= number:
            number += 1
    return number


_COLUMN = {"start": 0, "end": 1, "order": 1, "long": 1, "billed": 2, "effective": 3, "currency": 4, "category": 5}
_REASONS = {
    "start": Message('ChargePeriodStart "{text}" is no moment of this century'),
    "end": Message('ChargePeriodEnd "{text}" is no moment of this century'),
    "order": Message('ChargePeriodEnd "{text}" lies before its start'),
    "long": Message('ChargePeriodEnd "{text}" lies more than a year after its start'),
    "billed": Message('BilledCost "{text}" is no number'),
    "effective": Message('EffectiveCost "{text}" is no number'),
    "currency": Message('BillingCurrency "{text}" is no code of three letters'),
    "category": Message('ChargeCategory "{text}" is none of FOCUS'),
}


def _reason(why: str, texts: Sequence[str | None]) -> Message:
    return Message(_REASONS[why].template, text=_printable(texts[_COLUMN[why]] or ""))


def _ask(name: str, row: int, texts: Sequence[str | None]) -> InvalidInput:
    text = next((text for text in texts[:2] if text and re.match(r"[0-9]{1,2}[/.-]", text)), "")
    return DataError(
        Message('{file}, row {row}: "{text}" may be a day of two months.', file=name, row=row, text=text),
        Message("Say whether the day or the month comes first, or write it as 2026-06-01."),
        file=name,
        row=row,
    )


# ---- a file ----

_CSV = f"""read_csv($path, auto_detect = false, header = true, delim = $separator, quote = '"', escape = '"',
    columns = $columns, skip = $skipped, compression = $packed, encoding = $encoding, hive_partitioning = false,
    nullstr = ['', 'NULL', 'null'], ignore_errors = true, buffer_size = {BUFFER}"""
_KEPT = f""", store_rejects = true, rejects_table = 'broken', rejects_scan = 'broken_scans',
    rejects_limit = {MOST_BROKEN}"""


def _text(path: Path) -> _Source:
    header, separator, skipped = _header(path)
    titles = {title.strip().casefold(): f"c{at}" for at, title in reversed([*enumerate(header)])}
    head = first_bytes(path, 4)
    if packed := head.startswith(b"\x1f\x8b"):
        _refuse_cut_off(path)
    values = {
        "path": _no_pattern(path),
        "separator": separator,
        "columns": {f"c{at}": "VARCHAR" for at in range(len(header))},
        "skipped": skipped,
        "packed": "gzip" if packed else "none",
        "encoding": "utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8",
    }
    columns = picked(_found(path.name, titles))
    return _Source(
        plain=f"SELECT {columns} FROM {_CSV}{_KEPT})",
        numbered=f"SELECT row_number() OVER () AS number, {columns} FROM {_CSV}{_KEPT})",
        values=values,
        header=1 + skipped,
        keeps_broken=True,
    )


def _header(path: Path) -> tuple[list[str], str, int]:
    """The titles, what separates them, and the lines before them."""
    try:
        with opened(path) as (text, separator):
            start, skipped = text.tell(), 0
            header = next(csv.reader(text, delimiter=separator), [])
            text.seek(0)
            while text.tell() < start:
                text.readline()
                skipped += 1
    except (csv.Error, OSError, EOFError, UnicodeError) as error:
        what = Message("{file} cannot be read: {cause}", file=path.name, cause=str(error))
        raise DataError(what, AGAIN, file=path.name) from error
    if not header:
        raise DataError(
            Message("{file} is empty.", file=path.name), Message("Give an export with rows."), file=path.name
        )
    return header, separator, skipped


def _refuse_cut_off(path: Path) -> None:
    """DuckDB takes the rows that are there; a bill without its last rows is wrong, and nothing would show it."""
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error) as error:
        what = Message("{file} cannot be unpacked to its end: {cause}", file=path.name, cause=str(error))
        raise DataError(what, AGAIN, file=path.name) from error


def _no_pattern(path: Path) -> str:
    """DuckDB would take * ? [ in a name for a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def _parquet(database: DuckDBPyConnection, path: Path) -> _Source:
    values = {"path": _no_pattern(path)}
    found = database.execute("DESCRIBE SELECT * FROM read_parquet($path, hive_partitioning = false)", values).fetchall()
    titles = {str(name).strip().casefold(): _as_text(str(name), str(kind)) for name, kind, *_ in reversed(found)}
    columns = picked(_found(path.name, titles))
    read = "read_parquet($path, hive_partitioning = false"
    return _Source(
        plain=f"SELECT {columns} FROM {read})",
        numbered=f"SELECT file_row_number + 1 AS number, {columns} FROM {read}, file_row_number = true)",
        values=values,
        header=0,
    )


def _as_text(name: str, kind: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if kind.startswith(("MAP", "STRUCT")) or kind.endswith("[]"):
        return f"to_json({quoted})::VARCHAR"
    return f"nullif(nullif({quoted}::VARCHAR, ''), 'NULL')"


def _found(name: str, titles: Mapping[str, str]) -> dict[str, list[str]]:
    """What is read -> how the file's columns for it are spelled in SQL. DataError where a needed one is missing."""
    found = {
        meant: [titles[column.casefold()] for column in columns if column.casefold() in titles]
        for meant, columns in COLUMNS.items()
    }
    missing = [COLUMNS[meant][-1] if meant != "provider" else "ProviderName" for meant in NEEDED if not found[meant]]
    if missing:
        raise DataError(
            Message("{file} is no FOCUS export: it has no {names}.", file=name, names=", ".join(missing)),
            Message("Export cost and usage as FOCUS 1.0 or later."),
            file=name,
        )
    return found


# ---- what was summed ----


_FIELDS = tuple(each.name for each in fields(Fact))


def _fact(row: Sequence[Any]) -> Fact:
    """FACTS selects the fields of a fact, in their order."""
    values = dict(zip(_FIELDS, map(_printable, row), strict=True))
    return Fact(**{**values, "first": values["first"].replace(tzinfo=UTC), "last": values["last"].replace(tzinfo=UTC)})


def _printable(value: Any) -> Any:
    """A text without what steers a terminal; all else as it is."""
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(sign if sign.isprintable() else " " for sign in value)


def _spans(database: DuckDBPyConnection, known: Instances) -> Spans:
    columns = database.execute(SPANS).fetchnumpy()
    cards = {text: None if text is None else known.card(text) for text in set(_texts(columns["card"]))}
    names = zip(_texts(columns["accelerator"]), _texts(columns["card"]), strict=True)
    return Spans(
        accelerators=tuple(accelerator or cards[card] for accelerator, card in names),
        start_h=np.asarray(columns["start_h"], np.float64),
        end_h=np.asarray(columns["end_h"], np.float64),
        gpu_h=np.asarray(columns["gpu_h"], np.float64),
    )


def _paid(database: DuckDBPyConnection, known: Instances) -> tuple[tuple[str | None, str, float], ...]:
    """Accelerator, currency, effective cost of the rows that have its GPU-hours."""
    return tuple(
        (accelerator or (None if card is None else known.card(card)), currency, float(amount))
        for accelerator, card, currency, amount in database.execute(PAID).fetchall()
    )


def _texts(column: Any) -> list[str | None]:
    """Texts of a column of DuckDB's; None where there is none."""
    mask = np.ma.getmaskarray(column)
    return [None if gone else str(text) for text, gone in zip(np.ma.getdata(column), mask, strict=True)]
