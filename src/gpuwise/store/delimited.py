"""Bytes of a delimited text file → coded columns: any encoding, separator, line end and quoting a spreadsheet writes.

The common case (quotes as in RFC 4180) is split and dictionary-coded by numpy on the bytes; a text whose quotes do not
follow the rules goes through `csv.reader` record by record, so that one bad line costs one line. Both ways give the
same table: `tests/store/test_delimited.py` says so.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Coded, coded
from gpuwise.errors import DataError, Message

if TYPE_CHECKING:
    from _csv import Reader

SEPARATORS = ",;\t|"
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_NEWLINE, _QUOTE = 10, 34
_CHUNK, _BLOCK = 1 << 17, 1 << 13
_WORD = 7
_MASKS = np.array([(1 << 8 * min(n, _WORD)) - 1 for n in range(_WORD + 2)], np.uint64)
_TAGS = np.arange(_WORD + 2, dtype=np.uint64) << np.uint64(56)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SLOT_BITS = 18
_LONGEST_HASHED = 1024
_CONTROLS = bytes({*range(32), 127} - {*b"\t\n\r"})
_CONTROL = re.compile(b"[" + re.escape(_CONTROLS) + b"]|\xc2[\x80-\x9f]")
"""What steers a terminal (ESC and its kin, in UTF-8): nobody means it in a price list."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """n records in columns. Values are stripped of blanks around them; only the empty cell is missing ("NA" is text).

    columns: header as written -> texts. lines: int32 (n,), the line of the file where each record begins (header = 1).
    rejects: records that do not fit the header. blank: empty records that were skipped. encoding, separator: as found.
    notes: what had to be changed before the text could be read.
    """

    name: str
    columns: dict[str, Coded]
    lines: NDArray[np.int32]
    rejects: tuple[Message, ...]
    blank: int
    encoding: str
    separator: str
    notes: tuple[Message, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)


def read(content: bytes, name: str, known: Collection[str] = ()) -> Table:
    """The table that `content` holds; `known` column names (lower case) help to tell the separator.

    Raises DataError for an encoding that cannot be told, an empty file and a header that names a column twice.
    """
    body, encoding = to_utf8(content, name)
    body, notes = _without_controls(body)
    body, skipped = _from_header(body)
    if not body:
        raise DataError(Message("{file} is empty.", file=name), Message("Write a header line and rows."), file=name)
    separator = _separator(body, known)
    header = _header(body, separator, name, skipped + 1)
    records = _split(body, separator, len(header)) or _walk(body, separator, len(header))
    columns = {title: column for title, column in zip(header, records.columns, strict=True) if title}
    used = np.any([c.codes >= 0 for c in columns.values()], axis=0)
    return Table(
        name=name,
        columns=columns if used.all() else {title: c.take(used) for title, c in columns.items()},
        lines=records.lines[used] + np.int32(skipped),
        rejects=tuple(reject(name, line + skipped, reason) for line, reason in records.rejects),
        blank=records.blank + int(np.count_nonzero(~used)),
        encoding=encoding,
        separator=separator,
        notes=notes,
    )


def reject(name: str, line: int, reason: Message) -> Message:
    """One line of a file that was not read, and why."""
    return Message("{file}, line {line}: {reason}", file=name, line=line, reason=reason)


def _without_controls(body: bytes) -> tuple[bytes, tuple[Message, ...]]:
    """The text without control characters; a note names the first line that had any."""
    if len(body.translate(None, _CONTROLS)) == len(body) and (body.isascii() or not _CONTROL.search(body)):
        return body, ()
    line = 1 + body.count(b"\n", 0, _CONTROL.search(body).start())  # type: ignore[union-attr]
    clean, count = _CONTROL.subn(b"", body)
    return clean, (controls_note(count, line),)


def controls_note(count: int, line: int) -> Message:
    """Characters that steer a terminal were in the file, and are not in what was read."""
    return Message("{count} control characters were taken out, the first in line {line}", count=count, line=line)


def replaced(column: Coded, texts: Sequence[str | None]) -> Coded:
    """The column with texts[i] in the place of values[i]; None becomes missing, and equal texts one code."""
    if column.values == (*texts,):
        return column
    table = coded(texts)
    return Coded(np.append(table.codes, np.int32(-1))[column.codes], table.values)


def merged(first: Coded, second: Coded) -> Coded:
    """The first column, and the second where the first is missing."""
    values = (*first.values, *second.values)
    moved = np.where(second.codes < 0, second.codes, second.codes + np.int32(len(first.values)))
    return replaced(Coded(np.where(first.codes < 0, moved, first.codes), values), values)


def stacked(first: Coded, second: Coded) -> Coded:
    """The rows of the first column, then those of the second."""
    values = (*first.values, *second.values)
    moved = np.where(second.codes < 0, second.codes, second.codes + np.int32(len(first.values)))
    return replaced(Coded(np.concatenate([first.codes, moved]), values), values)


# ---- encoding, separator, header ----


def to_utf8(content: bytes, name: str) -> tuple[bytes, str]:
    """The text as UTF-8 with "\\n" line ends, and the encoding it had.

    Bytes that are not UTF-8 are taken as Windows-1252, unless valid UTF-8 sequences stand before the first bad byte or
    a byte has no meaning there: then DataError names the line.
    """
    if content.startswith(b"PK\x03\x04"):
        raise DataError(
            Message("{file} is a spreadsheet or an archive, not text.", file=name),
            Message("Export the sheet as CSV, UTF-8."),
            file=name,
        )
    encoding = next((e for mark, e in _MARKS if content.startswith(mark)), None) or _unmarked(content)
    try:
        body = content if encoding == "utf-8" and content.isascii() else content.decode(encoding).encode()
    except UnicodeDecodeError as error:
        body, encoding = _windows(content, error, name), "windows-1252"
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return body, encoding.removesuffix("-sig")


def _unmarked(content: bytes) -> str:
    """UTF-16 without a mark has a zero byte in every second place of plain text."""
    sample = content[:400]
    if sample[1::2].count(0) * 4 > len(sample):
        return "utf-16-le"
    return "utf-16-be" if sample[::2].count(0) * 4 > len(sample) else "utf-8"


def _windows(content: bytes, error: UnicodeDecodeError, name: str) -> bytes:
    try:
        if error.encoding != "utf-8" or not content[: error.start].isascii():
            raise error
        return content.decode("cp1252").encode()
    except UnicodeDecodeError as failed:
        line, byte = content.count(b"\n", 0, failed.start) + 1, f"0x{content[failed.start]:02X}"
        raise DataError(
            Message("{file}, line {line}: the byte {byte} is not in this encoding.", file=name, line=line, byte=byte),
            Message("Save the file as UTF-8."),
            file=name,
            row=line,
        ) from None


def _from_header(body: bytes) -> tuple[bytes, int]:
    """The text from its header on, and the number of lines before it (blank ones, and the `sep=;` of spreadsheets)."""
    skipped = 0
    while body:
        line = body[: body.find(b"\n") + 1] or body
        if line.strip() and not line.lower().startswith(b"sep="):
            break
        body, skipped = body[len(line) :], skipped + 1
    return body if not body or body.endswith(b"\n") else body + b"\n", skipped


def _separator(body: bytes, known: Collection[str]) -> str:
    """The one that finds most known names in the header line, then most fields."""

    def score(separator: str) -> tuple[int, int]:
        fields = _first_record(body, separator)
        return sum(f.strip().lower() in known for f in fields), len(fields)

    return max(SEPARATORS, key=score)


def _header(body: bytes, separator: str, name: str, line: int) -> list[str]:
    header = [" ".join(f.split()) for f in _first_record(body, separator)]
    while header and not header[-1]:
        header.pop()
    twice = next((f for f in header if f and header.count(f) > 1), None)
    if not header or twice:
        what = Message("it names the column {column} twice", column=twice) if twice else Message("it cannot be read")
        raise DataError(
            Message("{file}, line {line}, is no header: {what}.", file=name, line=line, what=what),
            Message("The first line names each column once."),
            file=name,
            row=line,
            column=twice,
        )
    return header


def _first_record(body: bytes, separator: str) -> list[str]:
    try:
        return next(_reader(body, separator), [])
    except csv.Error:
        return []


def _reader(body: bytes, separator: str) -> Reader:
    stream = io.TextIOWrapper(io.BytesIO(body), "utf-8", newline="")
    return csv.reader(stream, delimiter=separator, strict=True, skipinitialspace=True)


# ---- records below the header ----


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Records:
    """columns and lines of the sound records; line and reason of the others."""

    columns: list[Coded]
    lines: NDArray[np.int32]
    rejects: list[tuple[int, Message]]
    blank: int


def _fits(record: list[str], width: int) -> bool | None:
    """Whether it has the fields of the header (empty ones more do not count); None if it is blank."""
    if not any(f.strip() for f in record):
        return None
    return len(record) >= width and not any(f.strip() for f in record[width:])


def _misfit(fields: int, width: int) -> Message:
    return Message("{fields} fields where the header has {width}", fields=fields, width=width)


def _trimmed(column: Coded) -> Coded:
    return replaced(column, [text.strip() or None for text in column.values])


class _Column:
    """Texts on their way to codes."""

    def __init__(self) -> None:
        self.codes, self.index = array("i"), dict[str, int]()

    def append(self, text: str) -> None:
        self.codes.append(self.index.setdefault(text, len(self.index)))

    def coded(self) -> Coded:
        return _trimmed(Coded(np.array(self.codes, np.int32), tuple(self.index)))


def _walk(body: bytes, separator: str, width: int) -> _Records:
    """One record at a time by `csv.reader`; a record that it refuses is a reject."""
    columns, lines, rejects, blank = [_Column() for _ in range(width)], array("i"), list[tuple[int, Message]](), 0
    for line, record in _parsed(body, separator):
        fits = False if isinstance(record, Message) else _fits(record, width)
        if fits is None:
            blank += 1
        elif not fits or isinstance(record, Message):
            rejects.append((line, record if isinstance(record, Message) else _misfit(len(record), width)))
        else:
            lines.append(line)
            for column, text in zip(columns, record, strict=False):
                column.append(text)
    return _Records(columns=[c.coded() for c in columns], lines=np.array(lines, np.int32), rejects=rejects, blank=blank)


def _parsed(body: bytes, separator: str) -> Iterator[tuple[int, list[str] | Message]]:
    reader = _reader(body, separator)
    next(reader)
    while True:
        line = reader.line_num + 1
        try:
            yield line, next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield line, _bad_quote(line, reader.line_num)


def _bad_quote(line: int, last: int) -> Message:
    if last > line:
        return Message("a quote is opened and never closed: nothing was read up to line {last}", last=last)
    return Message("a quote stands in the middle of a quoted field: write it twice")


# ---- all records at once, on the bytes ----


def _split(body: bytes, separator: str, width: int) -> _Records | None:
    """The records, or None where a quote stands elsewhere than RFC 4180 allows."""
    padded, mark, quoted = body + bytes(8), ord(separator), b'"' in body
    data = np.frombuffer(padded, np.uint8)[:-8]
    if quoted and not _well_quoted(data, mark):
        return None
    bounds = np.concatenate([np.array([-1], np.int32), *_boundaries(data, mark, quoted)])
    ends = np.flatnonzero(data[bounds[1:]] == _NEWLINE) + 1
    first, last = ends[:-1] + 1, ends[1:]  # the first and the last bound of each record below the header
    begins, fields = bounds[first - 1] + 1, last - first + 1
    blank = bounds[last] - begins == fields - 1
    surplus = bounds[last] - bounds[np.minimum(first + width - 1, last)]
    sound = ~blank & (fields >= width) & (surplus == fields - width)
    for row in np.flatnonzero(~blank & ~sound):
        fits = _fits(next(_reader(body[begins[row] : bounds[last[row]]], separator)), width)
        blank[row], sound[row] = fits is None, fits
    lines, bad = _lines(data, begins, quoted), np.flatnonzero(~blank & ~sound)
    first, words = first[sound], np.ndarray(len(body), "<u8", padded, strides=(1,))
    return _Records(
        columns=[_cells(body, words, bounds, first + j) for j in range(width)],
        lines=lines[sound],
        rejects=[(int(lines[row]), _misfit(int(fields[row]), width)) for row in bad],
        blank=int(np.count_nonzero(blank)),
    )


def _well_quoted(data: NDArray[np.uint8], mark: int) -> bool:
    """Quotes come in pairs; each pair is a whole field, or meets the next pair at a doubled quote."""
    quotes = np.flatnonzero(data == _QUOTE)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    before, after = data[opening - 1], data[closing + 1]
    joined = opening[1:] == closing[:-1] + 1
    starts = (before == mark) | (before == _NEWLINE) | (opening == 0) | np.append(False, joined)
    stops = (after == mark) | (after == _NEWLINE) | np.append(joined, False)
    return bool(starts.all() and stops.all())


def _boundaries(data: NDArray[np.uint8], mark: int, quoted: bool) -> Iterator[NDArray[np.int32]]:
    """Where fields end: each separator and line end outside quotes; in chunks that a processor's cache holds."""
    inside = np.uint8(0)
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK]
        hits = (chunk == mark) | (chunk == _NEWLINE)
        if quoted:
            parity = np.cumsum(chunk == _QUOTE, dtype=np.uint8) + inside & 1
            inside = parity[-1]
            hits &= parity == 0
        yield (np.flatnonzero(hits) + start).astype(np.int32)


def _lines(data: NDArray[np.uint8], begins: NDArray[np.int32], quoted: bool) -> NDArray[np.int32]:
    if not quoted:
        return np.arange(2, len(begins) + 2, dtype=np.int32)
    return (np.searchsorted(np.flatnonzero(data == _NEWLINE), begins) + 1).astype(np.int32)


def _cells(body: bytes, words: NDArray[np.uint64], bounds: NDArray[np.int32], at: NDArray[np.intp]) -> Coded:
    """The texts between bounds[at - 1] and bounds[at] as codes, in order of first appearance."""

    def texts(rows: NDArray[np.intp]) -> list[str]:
        spans = zip((bounds[rows - 1] + 1).tolist(), bounds[rows].tolist(), strict=True)
        return [_cell(body[start:end]) for start, end in spans]

    hashes = _hashed(words, bounds, at)
    if hashes is None:
        return _trimmed(coded(texts(at)))
    codes, first = grouped(hashes)
    return _trimmed(Coded(codes, tuple(texts(at[first]))))


def _cell(raw: bytes) -> str:
    text = raw.decode()
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def _hashed(words: NDArray[np.uint64], bounds: NDArray[np.int32], at: NDArray[np.intp]) -> NDArray[np.uint64] | None:
    """64 bits a text: 7 bytes and their count are mixed in at a time, by a bijection; None if one is very long.

    Texts of up to 7 bytes never share a value; among 100,000 longer ones the chance that two do is 3 in 10^10."""
    hashes = np.zeros(len(at), np.uint64)
    for rows in _blocks(len(at)):
        start = bounds[at[rows] - 1] + np.intp(1)
        length = bounds[at[rows]] - start
        most = length.max()
        if most > _LONGEST_HASHED:
            return None
        for offset in range(0, most, _WORD):
            _mix_in(hashes[rows], words, start, length, offset)
    return hashes


def _mix_in(
    hashes: NDArray[np.uint64],
    words: NDArray[np.uint64],
    start: NDArray[np.intp],
    length: NDArray[np.intp],
    offset: int,
) -> None:
    rows = np.flatnonzero(length > offset) if offset else slice(None)
    size = np.minimum(length[rows] - offset, _WORD + 1)
    word = words[start[rows] + offset] & _MASKS[size] | _TAGS[size]
    value = (hashes[rows] ^ word) * _MIX
    hashes[rows] = value ^ value >> np.uint64(32)


def _blocks(rows: int) -> Iterator[slice]:
    """Slices so short that the arrays made for one stay in the processor's cache."""
    return (slice(start, start + _BLOCK) for start in range(0, rows, _BLOCK))


def grouped(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Codes of equal values in order of first appearance, and the row where each appears first.

    A table of 2^18 slots does it without sorting, as long as no two different values share a slot."""
    slots, table = np.empty(len(hashes), np.intp), np.full(1 << _SLOT_BITS, -1, np.int32)
    for rows in reversed([*_blocks(len(hashes))]):
        slots[rows] = hashes[rows] * _MIX >> np.uint64(64 - _SLOT_BITS)
        slot = slots[rows]
        table[slot[::-1]] = np.arange(rows.start + len(slot) - 1, rows.start - 1, -1, dtype=np.int32)
    if all((hashes[table[slots[rows]]] == hashes[rows]).all() for rows in _blocks(len(hashes))):
        first = np.sort(table[table >= 0])
        table[slots[first]] = np.arange(len(first), dtype=np.int32)
        return table[slots], first.astype(np.intp)
    _, found, codes = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(found)
    return np.argsort(order).astype(np.int32)[codes], found[order]
