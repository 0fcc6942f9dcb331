"""The log of `exit --watch`: a CSV with one line a month, which is there whole or not at all.

A line is written by making the log anew beside the old one, which it then takes the place of: an interruption leaves
the log as it was. Only a log that was written so is touched; anything else is refused and left alone.
"""

from __future__ import annotations

import csv
import io
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path

from gpuwise.errors import DataError, Message

Line = Mapping[str, str]
"""Column -> text, for each of COLUMNS."""
COLUMNS = (
    "month", "as_of", "gpu", "premium_usd", "barrier_usd", "robust_month", "probable_month", "p10_month", "p50_month",
    "p90_month", "servers", "utilisation_fraction", "break_even_fraction", "p_pays", "fired",
)  # fmt: skip
NEVER = "never"
_MONTH = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])")
_MONTHS = ("robust_month", "probable_month", "p10_month", "p50_month", "p90_month")
_FIGURES = ("premium_usd", "barrier_usd", "servers", "p_pays")
_KNOWN_OR_NOT = ("utilisation_fraction", "break_even_fraction")


def append(path: Path, line: Line) -> None:
    """The log with this line, which takes the place of one of the same month. DataError for what is no such log."""
    lines = {old["month"]: old for old in read(path)} | {line["month"]: line}
    try:
        _write(path, _text(lines[month] for month in sorted(lines)))
    except OSError as error:
        raise _refused(path, Message("{cause}", cause=error.strerror or str(error))) from error


def read(path: Path) -> list[dict[str, str]]:
    """Its lines, the oldest first; none where there is no log yet. DataError for what is no such log."""
    if not path.exists():
        return []
    if not path.is_file():
        raise _refused(path, Message("it is no file"))
    try:
        text = path.read_text("utf-8")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (OSError, UnicodeError, csv.Error) as error:
        raise _refused(path, Message("{cause}", cause=error)) from error
    if not text:
        return []
    if tuple(rows[0]) != COLUMNS:
        raise _refused(path, Message("its first line is not that of such a log"), 1)
    if not text.endswith("\n"):
        raise _refused(path, Message("its last line is cut off"), len(rows))
    return _lines(path, rows[1:])


def _lines(path: Path, rows: list[list[str]]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for number, row in enumerate(rows, 2):
        if len(row) != len(COLUMNS):
            text = Message("{n} cells instead of {wanted}", n=len(row), wanted=len(COLUMNS))
            raise _refused(path, text, number)
        line = dict(zip(COLUMNS, row, strict=True))
        if bad := next((column for column in COLUMNS if not _reads(column, line[column])), None):
            text = Message('"{text}" cannot stand in the column {column}', text=line[bad], column=bad)
            raise _refused(path, text, number)
        if found and found[-1]["month"] >= line["month"]:
            raise _refused(path, Message("the months are not in order"), number)
        found.append(line)
    return found


def _reads(column: str, text: str) -> bool:
    if column in _MONTHS or column == "month":
        return bool(_MONTH.fullmatch(text)) or (text == NEVER and column != "month")
    if column in _FIGURES or column in _KNOWN_OR_NOT:
        return _is_number(text) or (not text and column in _KNOWN_OR_NOT)
    if column == "as_of":
        with suppress(ValueError):
            return bool(date.fromisoformat(text))
        return False
    return text in ("yes", "no") if column == "fired" else bool(text)


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        return float(text) == float(text)
    return False


def _text(lines: Iterable[Line]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _write(path: Path, text: str) -> None:
    """In one step: what is read at the same time is the old log or the new one."""
    target = path.resolve()  # a link stays one
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _refused(path: Path, why: Message, row: int | None = None) -> DataError:
    place = path.name if row is None else Message("{file}, line {row}", file=path.name, row=row)
    return DataError(
        Message("--watch: {place} is no log that can be written: {why}.", place=place, why=why),
        Message("It was left as it is. Name another file, or one in a folder that is there."),
        file=path.name,
        row=row,
    )
