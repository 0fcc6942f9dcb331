"""A page: blocks of words and figures, without markup. The builders of `view` make it; `render` walks its blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal, TypeVar

from gpuwise.errors import Message
from gpuwise.estimate import Interval
from gpuwise.locale import _, with_semicolons, words

R = TypeVar("R")

Kind = Literal["text", "number", "estimate", "mark"]
"""What a column holds: words; a figure; a figure with its interval beside it; a sign."""

Value = str | float | int | bool | Interval | None
"""A cell's full value in the unit that its column's key names, for sorting and for CSV: never rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A paragraph. role: answer (the one that was asked for), note (small print) or body."""

    text: str
    role: Literal["answer", "body", "note"] = "body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """Something that the reader must know before using the answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line: what it is, what it says, and where it comes from or why it is unknown."""

    label: str
    text: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A short list of facts under one heading."""

    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """key: stable name for machines, with the unit of the values. unit: of the figures as they are shown, empty where
    each cell names its own.

    rank: 0 is always shown; the highest is the first to go where the page is narrow. hidden: for machines only.
    joins: key of the column before it in whose cells people read its words.
    """

    key: str
    title: str
    unit: str = ""
    kind: Kind = "text"
    rank: int = 0
    hidden: bool = False
    joins: str = ""

    @property
    def figures(self) -> bool:
        return self.kind in ("number", "estimate")

    @property
    def head(self) -> str:
        return _("{title}, {unit}").format(title=self.title, unit=self.unit) if self.unit else self.title


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """shown: the rounded words; span: the interval ("11.8–17.1"); value: in full.

    note: a label in small print that must be seen (example, sold out); title: reason or origin, on hover.
    """

    shown: str
    value: Value = None
    span: str = ""
    note: str = ""
    title: str = ""

    @property
    def text(self) -> str:
        return f"{self.shown} ({self.span})" if self.span else self.shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """rows: one cell a column. legend: what a column's signs mean, by its key; SPANS: what intervals mean.
    notes: sentences below the table (totals, what was cut)."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    legend: Mapping[str, str] = field(default_factory=dict)

    def visible(self) -> Table:
        """The table as people see it: without the columns that are there for machines, and with joined cells."""
        kept = self.seen()
        keys = [column.key for column in kept.columns]
        alone = [i for i, column in enumerate(kept.columns) if not column.joins]
        groups = [[i, *(j for j, c in enumerate(kept.columns) if c.joins == keys[i])] for i in alone]
        columns = tuple(kept.columns[i] for i in alone)
        rows = tuple(tuple(joined([row[i] for i in group]) for group in groups) for row in kept.rows)
        return replace(kept, columns=columns, rows=rows)

    def seen(self) -> Table:
        """The table without the columns that are there for machines."""
        kept = [i for i, column in enumerate(self.columns) if not column.hidden]
        columns = tuple(self.columns[i] for i in kept)
        return replace(self, columns=columns, rows=tuple(tuple(row[i] for i in kept) for row in self.rows))

    def sentences(self, shown: Iterable[str] | None = None) -> tuple[str, ...]:
        """Legend and notes. shown: keys of what is there to be explained, where it is not all of the columns."""
        keys = {column.key for column in self.columns if not column.hidden} | {SPANS} if shown is None else set(shown)
        return (*(text for key, text in self.legend.items() if key in keys), *self.notes)


SPANS = "spans"
"""The key of what a legend says about intervals."""


def joined(cells: Sequence[Cell]) -> Cell:
    """Several cells as one; what is missing is left out."""
    first, *others = cells
    more = [cell for cell in others if cell.value not in (None, "")]
    return replace(
        first,
        shown=" ".join([first.shown, *(cell.shown for cell in more)]),
        title=with_semicolons(filter(None, (first.title, *(cell.title for cell in more)))),
    )


Made = tuple[Column, Callable[[R], Cell]]
"""A column, and how its cell is made of one row."""


def tabulate(
    title: str,
    columns: Iterable[Made[R]],
    rows: Sequence[R],
    notes: Iterable[str] = (),
    legend: Mapping[str, str] | None = None,
) -> Table:
    """A table from its columns, each with how its cell is made of one row."""
    named = list(columns)
    return Table(
        title=title,
        columns=tuple(column for column, _make in named),
        rows=tuple(tuple(make(row) for _column, make in named) for row in rows),
        notes=tuple(notes),
        legend=legend or {},
    )


def column(
    key: str,
    title: str,
    make: Callable[[R], Cell],
    *,
    kind: Kind = "text",
    unit: str = "",
    rank: int = 0,
    hidden: bool = False,
    joins: str = "",
) -> Made[R]:
    """One entry for `tabulate`: see `Column` for the words."""
    return Column(key=key, title=title, unit=unit, kind=kind, rank=rank, hidden=hidden, joins=joins), make


def word(text: str | None) -> Cell:
    """A cell that says what it holds; missing text is empty."""
    return Cell(shown=text or "", value=text or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture of a table's figures. spec: Vega-Lite, without colours or sizes. alt: the same in one sentence.
    flat: a few bars or one line need less height than a cloud of points."""

    title: str
    alt: str
    spec: Mapping[str, Any]
    note: str = ""
    flat: bool = False


Block = Text | Caution | Facts | Table | Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """title: the question; blocks: the answer, in reading order; foot: what it stands on, in one line. upright: on
    paper in portrait, as what is signed."""

    title: str
    blocks: tuple[Block, ...]
    foot: str = ""
    upright: bool = False


def facts_table(blocks: Iterable[Block]) -> Table:
    """The facts of a page that has no table, as rows for CSV and Markdown."""
    columns: list[Made[tuple[str, Fact]]] = [
        column("group", _("Group"), lambda row: word(row[0])),
        column("fact", _("Fact"), lambda row: word(row[1].label)),
        column("value", _("Value"), lambda row: word(row[1].text)),
        column("origin", _("Origin"), lambda row: word(row[1].why)),
    ]
    rows = [(block.title, fact) for block in blocks if isinstance(block, Facts) for fact in block.facts]
    return tabulate(_("Facts"), columns, rows)


def stated(page: Page, *, warnings: Iterable[Message], data_version: str, as_of: date) -> Page:
    """The page with what its reader must know: the warnings after the answer, data and day at the foot."""
    answers = sum(isinstance(block, Text) and block.role == "answer" for block in page.blocks)
    cautions = tuple(Caution(text=words(warning)) for warning in warnings)
    foot = _("Data {version}, answered for {day}.").format(version=data_version, day=as_of)
    blocks = page.blocks[:answers] + cautions + page.blocks[answers:]
    return replace(page, blocks=blocks, foot=f"{page.foot} {foot}".strip())
