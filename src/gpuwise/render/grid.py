"""A table on a console: which columns fit, how wide each is, and the lines that they make.

Where the page gets narrow, the least important columns go first; then names take two lines; then intervals stand below
their figures and the names of a row share one column; at last intervals go. What is left out is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rich.cells import cell_len, chop_cells

from gpuwise.locale import _, with_commas, with_semicolons
from gpuwise.locale.lines import pieces, wide
from gpuwise.view.page import SPANS, Cell, Column, Table, joined

GAP = 2
LONG_NAME = 26
"""Columns that a name may ask for; a longer text takes more lines."""

FEW = 0.2
"""The share of rows whose figure may take two lines ("4,477.90 /month" among hours)."""

SHORT_NOTE = 8
"""Columns of a note that may stand beside its row."""

SHORT_WIDE = 8
"""Columns of a Chinese text that stays on one line: four signs, as most of its terms have."""

NICE, WANTED = 3, 1
"""Columns of this rank go before anything is folded, and of this one only after intervals stand below their figures."""


@dataclass(frozen=True)
class Grid:
    """head, rows: lines of the table, a row with what must be said about it. left: what is not shown, in words.
    shown: keys of what is shown, for the legend."""

    head: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    left: tuple[str, ...]
    shown: frozenset[str]


def grid(table: Table, width: int) -> Grid:
    """The table in lines of at most `width` columns. A row's notes stand on lines of their own below it, or beside it
    where all are short."""
    columns, left = _fit(_columns(_beside(table.seen())), width)
    sizes = _widths(columns, width)
    head = [_wrapped(c.column.head, size) for c, size in zip(columns, sizes, strict=True)]
    head = [[""] * (max(map(len, head)) - len(lines)) + lines for lines in head]
    rule = "─" * (sum(sizes) + GAP * (len(sizes) - 1))
    return Grid(
        head=(*_side_by_side(columns, sizes, head), rule),
        rows=tuple(_row(columns, sizes, i, width) for i in range(len(table.rows))),
        left=tuple(left),
        shown=frozenset(key for c in columns for key in c.keys),
    )


@dataclass(frozen=True)
class _Column:
    """One column as it is laid out. joins: another one whose words may stand in its cells. below: intervals stand on
    a line of their own. keys: what it shows."""

    column: Column
    cells: tuple[Cell, ...]
    keys: tuple[str, ...]
    joins: _Column | None = None
    spans: bool = False
    below: bool = False

    @property
    def figures(self) -> bool:
        return self.column.figures

    @property
    def rank(self) -> int:
        return self.joins.column.rank if self.joins else self.column.rank

    @cached_property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """For each row the lines of its cell, not yet folded; values and intervals stand below each other."""
        cells = (
            self.cells if self.joins is None else map(joined, map(list, zip(self.cells, self.joins.cells, strict=True)))
        )
        if not self.figures:
            return tuple(tuple(cell.shown.split("\n")) for cell in cells)
        if self.below:
            return tuple((cell.shown, cell.span) if cell.span else (cell.shown,) for cell in cells)
        tail = max((cell_len(c.span) + len(" ()") for c in self.cells if c.span), default=0) if self.spans else 0
        return tuple((c.shown + (f" ({c.span})" if c.span and tail else "").ljust(tail),) for c in self.cells)

    @cached_property
    def natural(self) -> int:
        """Wide enough for every line and for the head."""
        return max((cell_len(line) for line in (*self._lines, self.column.head)), default=0)

    @cached_property
    def folded(self) -> int:
        """Wide enough for names in two lines, and for figures, of which a few may take two lines."""
        if self.figures:
            sizes = sorted(cell_len(line) for line in self._lines)
            usual = sizes[-1 - int(FEW * len(sizes))] if sizes else 0
            return max(usual, self.narrow)
        return max(self.narrow, min(max(map(_in_two, self._lines), default=0), LONG_NAME))

    @cached_property
    def relaxed(self) -> int:
        return self.natural if self.figures else max(self.folded, min(self.natural, LONG_NAME))

    @cached_property
    def narrow(self) -> int:
        """No word is broken, and no figure is parted from its interval."""
        whole = self.figures and self.spans and not self.below
        head = self.column.head
        parts = [self._lines] if not whole else []
        words = max((_unbroken(line) for part in parts for line in part), default=0)
        words = max(words, _in_two(head) if wide(head) else _unbroken(head))
        return max(words, max(map(cell_len, self._lines), default=0)) if whole else words

    @property
    def _lines(self) -> list[str]:
        return [line for lines in self.texts for line in lines]

    def without_spans(self) -> _Column:
        bare = tuple(replace(cell, span="") for cell in self.cells)
        return replace(self, cells=bare, spans=False, keys=tuple(key for key in self.keys if key != SPANS))

    def without(self) -> tuple[list[_Column], str]:
        """What stays when its least important part goes, and what that is called."""
        if self.joins:
            keys = tuple(key for key in self.keys if key != self.joins.column.key)
            return [replace(self, joins=None, keys=keys)], self.joins.column.title
        return [], self.column.title


def _beside(table: Table) -> Table:
    """Notes that are all short (best) as a column of their own, beside what they are about."""
    notes = [_note(row) for row in table.rows]
    if not 0 < max(map(cell_len, notes), default=0) <= SHORT_NOTE:
        return table
    at = 1 + min(i for row in table.rows for i, cell in enumerate(row) if cell.note)
    bare = [tuple(replace(cell, note="") for cell in row) for row in table.rows]
    rows = tuple((*row[:at], Cell(shown=note), *row[at:]) for row, note in zip(bare, notes, strict=True))
    return replace(table, columns=(*table.columns[:at], Column(key="note", title=""), *table.columns[at:]), rows=rows)


def _columns(table: Table) -> list[_Column]:
    made: list[_Column] = []
    for place, column in enumerate(table.columns):
        cells = tuple(row[place] for row in table.rows)
        spans = any(cell.span for cell in cells)
        one = _Column(column, cells, (column.key, *((SPANS,) if spans else ())), spans=spans)
        if not column.joins:
            made.append(one)
            continue
        host = next(i for i, c in enumerate(made) if c.column.key == column.joins)
        made[host] = replace(made[host], joins=one, keys=(*made[host].keys, column.key))
    return made


Size = Callable[[_Column], int]


def _fit(columns: list[_Column], width: int) -> tuple[list[_Column], list[str]]:
    """The columns that are shown, and the names of those that are not."""
    spans, left = any(c.spans for c in columns), list[str]()
    shown = _drop(columns, left, width, NICE, lambda c: c.relaxed)
    if spans and _total(shown, lambda c: c.folded) > width:
        shown, left = _below(columns, shown, left, width)
    shown = _drop(shown, left, width, WANTED, lambda c: c.folded)
    if spans and _total(shown, lambda c: c.narrow) > width:
        shown = [c.without_spans() for c in shown]
        left.append(_("intervals"))
    return shown, left


def _below(
    columns: Sequence[_Column], shown: Sequence[_Column], left: list[str], width: int
) -> tuple[list[_Column], list[str]]:
    """Rows of two lines, with all names if they fit, else with those that were shown."""
    dropped = list[str]()
    whole = _drop(_stacked(columns), dropped, width, NICE, lambda c: c.relaxed)
    if _total(whole, lambda c: c.folded) <= width:
        return whole, dropped
    return _stacked(shown), left


def _drop(columns: list[_Column], left: list[str], width: int, least: int, size: Size) -> list[_Column]:
    """The least important go first, of equals the last one."""
    while _total(columns, size) > width:
        place = max(range(len(columns)), key=lambda i: (columns[i].rank, i))
        if columns[place].rank < least:
            return columns
        rest, name = columns[place].without()
        columns = [*columns[:place], *rest, *columns[place + 1 :]]
        left.append(name)
    return columns


def _stacked(columns: Sequence[_Column]) -> list[_Column]:
    """Intervals below their figures, and the names of a row in one column: "8 × L40S", below it "vultr, on-demand"."""
    names = [c for c in columns if c.column.kind == "text" and c.column.rank <= WANTED]
    first, *others = names
    below = [
        with_commas(dict.fromkeys(" ".join(cell) for cell in row if any(cell)))
        for row in zip(*(c.texts for c in others), strict=True)
    ]
    cells = tuple(
        replace(cell, shown=f"{text[0]}\n{more}" if more else text[0], note=_note([c.cells[i] for c in names]))
        for i, (cell, text, more) in enumerate(
            zip(first.cells, first.texts, below or [""] * len(first.cells), strict=True)
        )
    )
    title = with_commas(filter(None, (c.column.title for c in names)))
    keys = tuple(key for c in names for key in c.keys)
    both = _Column(replace(first.column, title=title), cells, keys)
    return [both if c is first else replace(c, below=c.spans) for c in columns if c not in others]


def _total(columns: Sequence[_Column], size: Size) -> int:
    return sum(size(column) + GAP for column in columns) - GAP


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """The natural widths, less what must be saved: heads and figures first, then names, where most can be saved."""
    sizes = [c.natural for c in columns]
    excess = _total(columns, lambda c: c.natural) - width
    for least in ([c.folded for c in columns], [c.narrow for c in columns], [1] * len(columns)):
        for i in sorted(range(len(columns)), key=lambda i: (not columns[i].figures, least[i] - sizes[i])):
            saved = max(0, min(excess, sizes[i] - least[i]))
            sizes[i] -= saved
            excess -= saved
    return sizes


def _row(
    columns: Sequence[_Column], sizes: Sequence[int], i: int, width: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    cells = [
        [folded for line in c.texts[i] for folded in ([line] if cell_len(line) <= size else _wrapped(line, size))]
        for c, size in zip(columns, sizes, strict=True)
    ]
    marks = columns[0].column.kind == "mark" and len(columns) > 1
    indent = sizes[0] + GAP if marks else GAP
    note = _note([c.cells[i] for c in columns])
    notes = tuple(" " * indent + line for line in _wrapped(note, max(width - indent, 1))) if note else ()
    return tuple(_side_by_side(columns, sizes, cells)), notes


def _note(cells: Sequence[Cell]) -> str:
    return with_semicolons(filter(None, (cell.note for cell in cells)))


def _side_by_side(columns: Sequence[_Column], sizes: Sequence[int], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    for i in range(max(map(len, cells), default=0)):
        parts = [lines[i] if i < len(lines) else "" for lines in cells]
        padded = (_padded(part, size, c.figures) for part, size, c in zip(parts, sizes, columns, strict=True))
        yield (" " * GAP).join(padded)


def _padded(text: str, size: int, right: bool) -> str:
    blank = " " * (size - cell_len(text))
    return blank + text if right else text + blank


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, folded where a line may end; only a longer word is broken."""
    lines = [""]
    for word in pieces(text.strip()):
        for piece in chop_cells(word, width) if cell_len(word.rstrip()) > width else [word]:
            if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return [line.rstrip() for line in lines]


def _unbroken(text: str) -> int:
    """The width of its longest word; Chinese is not broken where it is short, which would tear its words."""
    longest = max((cell_len(piece.rstrip()) for piece in pieces(text)), default=0)
    return max(longest, min(cell_len(text), SHORT_WIDE)) if wide(text) else longest


def _in_two(text: str) -> int:
    """The least width at which a text takes two lines."""
    words = pieces(text.strip())
    cuts = (("".join(words[:i]).rstrip(), "".join(words[i:])) for i in range(1, len(words)))
    return min((max(map(cell_len, cut)) for cut in cuts), default=cell_len(text))
