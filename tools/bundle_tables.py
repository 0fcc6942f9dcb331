"""Reading and writing of the tables: UTF-8, LF, explicit columns, sorted rows, the same bytes on every run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

FACTS = Path(__file__).parent / "facts"
Row = dict[str, str]


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fact(name: str) -> list[Row]:
    """A hand-kept table of tools/facts."""
    return read(FACTS / f"{name}.csv")


def number(value: float | str | None, digits: int = 10) -> str:
    """The shortest text of a number; an empty text stays empty."""
    return "" if value in ("", None) else f"{float(value):.{digits}g}"


def write(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, str]], key: Sequence[str]) -> None:
    """Rows sorted by `key`, one line each."""
    ordered = sorted(rows, key=lambda r: [r[k] for k in key])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="raise")
        writer.writeheader()
        writer.writerows(ordered)


def write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
