"""A page as text for a console. Whoever wants to read it by program uses JSON or CSV: this may change."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text as RichText

from gpuwise.locale import _
from gpuwise.view.page import Caution, Cell, Chart, Column, Facts, Page, Table, Text

WIDTH = 120
"""Columns where nobody says how many there are: a pipe or a file."""

GAP = 2
LONG_NAME = 26
HEAD_RULE = "    \n    \n ── \n    \n    \n    \n    \n    \n"
"""A line below the head and no other (rich draws a table with eight times four signs)."""

PLAIN_SIGNS = {"×": "x", "★": "*", "→": "->", "–": "-", "—": "-", "·": "-", "…": "...", "─": "-", "−": "-", "€": "EUR",
               "≥": ">=", "≤": "<=", "²": "2", "³": "3", "µ": "u", "’": "'", "“": '"', "”": '"'}  # fmt: skip
"""What stands for a sign that the console cannot show."""

CONTROL = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)


def text(page: Page, *, width: int = WIDTH, colour: bool = False, encoding: str = "utf-8") -> str:
    """The page in lines of at most `width` columns, in signs that `encoding` can write.

    A table that is too wide loses its least important columns and says which.
    """
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    plain = _plain(encoding)
    console.print(RichText(plain(page.title), style="bold"))
    before: object = page.title
    for block in page.blocks:
        if isinstance(block, Chart):
            continue
        if type(block) is not type(before) or not isinstance(block, Text | Caution):
            console.print()
        console.print(_block(block, plain, width))
        before = block
    if page.foot:
        console.print(Group("", RichText(plain(page.foot), style="dim")))
    assert isinstance(console.file, io.StringIO)
    lines = (line.rstrip() for line in console.file.getvalue().splitlines())
    return "".join(f"{line}\n" for line in lines).encode(encoding, "replace").decode(encoding)


Plain = Callable[[str], str]


def _plain(encoding: str) -> Plain:
    """Puts a plain sign, or a question mark, where the encoding lacks the right one, before anything is laid out.

    Control signs become blanks: a name in somebody's file must not steer the console.
    """
    table = {ord(sign): other for sign, other in PLAIN_SIGNS.items() if not _writes(encoding, sign)}
    table |= dict.fromkeys(CONTROL, " ")
    return lambda shown: shown.translate(table).encode(encoding, "replace").decode(encoding)


def _writes(encoding: str, sign: str) -> bool:
    try:
        sign.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


@singledispatch
def _block(block: object, plain: Plain, width: int) -> RenderableType:
    raise TypeError(f"a page has no block of type {type(block).__name__}")


@_block.register
def _text(block: Text, plain: Plain, width: int) -> RenderableType:
    return RichText(plain(block.text), style={"answer": "bold", "note": "dim"}.get(block.role, ""))


@_block.register
def _caution(block: Caution, plain: Plain, width: int) -> RenderableType:
    return RichText(plain(_("Note: {text}").format(text=block.text)), style="yellow")


@_block.register
def _facts(block: Facts, plain: Plain, width: int) -> RenderableType:
    grid = RichTable.grid(padding=(0, GAP, 0, 0))
    grid.add_column(style="dim", min_width=min(12, width // 4), max_width=width // 3)
    grid.add_column()
    for fact in block.facts:
        why = f" ({fact.why})" if fact.why else ""
        grid.add_row(RichText(plain(fact.label)), RichText(plain(fact.text + why)))
    return Group(RichText(plain(block.title), style="bold"), Padding(grid, (0, 0, 0, 2)))


@_block.register
def _table(block: Table, plain: Plain, width: int) -> RenderableType:
    block = block.visible()
    fit = _fit(block, width)
    grid = RichTable(
        box=Box("\n".join(map(plain, HEAD_RULE.split("\n")))),
        padding=(0, GAP - 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for column, size in zip(fit.columns, _widths(fit.columns, width), strict=True):
        head = RichText(plain(column.head), justify="right" if column.figures else "left", style="bold")
        grid.add_column(head, width=size)
    for row in block.rows:
        grid.add_row(*(column.cell(row[column.place], plain) for column in fit.columns))
    notes = [RichText(plain(note), style="dim") for note in (*block.notes, *fit.notes())]
    return Group(RichText(plain(block.title), style="bold"), grid, *notes)


@dataclass(frozen=True, slots=True)
class _Column:
    """One column as it is laid out. values, spans: columns of the longest figure and interval (0 if none is shown)."""

    place: int
    column: Column
    values: int
    spans: int
    words: int

    @property
    def figures(self) -> bool:
        return self.column.figures

    @property
    def head(self) -> str:
        return self.column.head

    @property
    def natural(self) -> int:
        """Wide enough for every cell in one line; notes may be folded between words."""
        return max(self.values + (self.spans and self.spans + len(" ()")), self.words, cell_len(self.head))

    @property
    def relaxed(self) -> int:
        """Long names may take two lines before another column has to go."""
        return self.natural if self.figures else max(self.folded, min(self.natural, LONG_NAME))

    @property
    def folded(self) -> int:
        """The least width: names may take two lines, figures may not."""
        return self.natural if self.figures else max(self.words, self.natural * 2 // 3)

    def cell(self, cell: Cell, plain: Plain) -> RichText:
        """Figures are padded so that values and intervals stand below each other."""
        shown = plain(cell.shown)
        if self.figures:
            bracket = f" ({plain(cell.span)})" if cell.span and self.spans else ""
            tail = bracket.ljust(self.spans and self.spans + len(" ()"))
            shown = (shown.rjust(self.values) + tail).rjust(self.natural)
        line = RichText(shown)
        if cell.note:
            line.append(f"\n{plain(cell.note)}", style="dim")
        return line


@dataclass(frozen=True, slots=True)
class _Fit:
    columns: tuple[_Column, ...]
    left: tuple[Column, ...]
    without_spans: bool

    def notes(self) -> Iterator[str]:
        names = [column.title for column in self.left] + ([_("intervals")] if self.without_spans else [])
        if names:
            yield _("Not shown at this width: {names}.").format(names=", ".join(names))


def _fit(block: Table, width: int) -> _Fit:
    """Which columns are shown: the least important go first, then names are folded, at last intervals are left out."""
    columns = [_laid_out(block, i) for i in range(len(block.columns))]
    left: list[Column] = []
    _drop(columns, left, width, 2, lambda c: c.relaxed)
    if _total(columns, lambda c: c.relaxed) > width:
        _drop(columns, left, width, 1, lambda c: c.folded)
    narrow = _total(columns, lambda c: c.folded) > width and any(c.spans for c in columns)
    shown = [replace(c, spans=0) for c in columns] if narrow else columns
    return _Fit(tuple(shown), tuple(left), narrow)


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """The width of each column: the natural one, less what folding must save, taken where most can be saved."""
    sizes = [c.natural for c in columns]
    excess = _total(columns, lambda c: c.natural) - width
    for i in sorted(range(len(columns)), key=lambda i: columns[i].folded - columns[i].natural):
        saved = max(0, min(excess, columns[i].natural - columns[i].folded))
        sizes[i] -= saved
        excess -= saved
    return sizes


def _drop(columns: list[_Column], left: list[Column], width: int, least: int, size: Callable[[_Column], int]) -> None:
    while _total(columns, size) > width:
        victim = max(columns, key=lambda c: c.column.rank)
        if victim.column.rank < least:
            return
        columns.remove(victim)
        left.append(victim.column)


def _total(columns: Sequence[_Column], size: Callable[[_Column], int]) -> int:
    return sum(size(column) + GAP for column in columns) - GAP


def _laid_out(block: Table, place: int) -> _Column:
    cells, column = [row[place] for row in block.rows], block.columns[place]
    notes = " ".join(cell.note for cell in cells)
    names = "" if column.figures else " ".join(cell.shown for cell in cells)
    return _Column(
        place=place,
        column=column,
        values=max((cell_len(c.shown) for c in cells), default=0),
        spans=max((cell_len(c.span) for c in cells), default=0),
        words=max(map(cell_len, f"{notes} {names} {column.head}".split()), default=0),
    )
