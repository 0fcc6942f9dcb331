"""A page as text for a console. Whoever wants to read it by program uses JSON or CSV: this may change."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, OverflowMethod, RenderableType
from rich.containers import Lines
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text as PlainText

from gpuwise.locale import _, with_commas
from gpuwise.locale.lines import closed, pieces, wide
from gpuwise.render.grid import grid
from gpuwise.view.page import Caution, Cell, Chart, Facts, Page, Table, Text

WIDTH = 120
"""Columns where nobody says how many there are: a pipe or a file."""

PLAIN_SIGNS = {"×": "x", "★": "*", "→": "->", "–": "-", "—": "-", "·": "-", "…": "...", "─": "-", "−": "-", "€": "EUR",
               "≥": ">=", "≤": "<=", "²": "2", "³": "3", "µ": "u", "’": "'", "“": '"', "”": '"'}  # fmt: skip
"""What stands for a sign that the console cannot show."""


class RichText(PlainText):
    """Rich's text, with lines that end where other scripts let them end: Chinese has no blanks between its words."""

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        if no_wrap or not wide(self.plain):
            kept = {"justify": justify, "overflow": overflow, "tab_size": tab_size, "no_wrap": no_wrap}
            return super().wrap(console, width, **kept)  # type: ignore[arg-type]
        lines = self.divide(_ends(self.plain, width))
        for line in lines:
            line.rstrip_end(width)
        return lines

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        least, most = super().__rich_measure__(console, options)
        if wide(self.plain):
            least = max((cell_len(piece.rstrip()) for piece in pieces(self.plain)), default=least)
        return Measurement(least, most)


def _ends(text: str, width: int) -> list[int]:
    """Where lines of at most `width` columns end, as places in the text."""
    ends, line, place = [], "", 0
    for piece in pieces(text):
        if line and cell_len((line + piece).rstrip()) > width:
            ends.append(place)
            line = ""
        line += piece
        place += len(piece)
    return ends


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
    console.print(Group(RichText(plain(page.title), style="bold")))  # a bare text would be joined to a plain one
    before: object = page.title
    for block in page.blocks:
        if isinstance(block, Chart):
            continue
        if type(block) is not type(before) or not isinstance(block, Text | Caution):
            console.print()
        console.print(Group(_block(block, plain, width)))
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
    return lambda shown: closed(shown.translate(table)).encode(encoding, "replace").decode(encoding)


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
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", min_width=min(12, width // 4), max_width=width // 3)
    grid.add_column()
    for fact in block.facts:
        why = _(" ({why})").format(why=fact.why) if fact.why else ""
        grid.add_row(RichText(plain(fact.label)), RichText(plain(fact.text + why)))
    return Group(RichText(plain(block.title), style="bold"), Padding(grid, (0, 0, 0, 2)))


@_block.register
def _table(block: Table, plain: Plain, width: int) -> RenderableType:
    shown = _in_plain(block, plain)
    laid = grid(shown, width)
    lines = [RichText(plain(line), style="bold") for line in laid.head[:-1]] + [RichText(plain(laid.head[-1]))]
    for row, notes in laid.rows:
        lines += [*map(RichText, row), *(RichText(note, style="dim") for note in notes)]
    left = [_("Not shown at this width: {names}.").format(names=with_commas(laid.left))] if laid.left else []
    said = [RichText(plain(text), style="dim") for text in (*shown.sentences(laid.shown), *left)]
    return Group(RichText(plain(block.title), style="bold"), *lines, *said)


def _in_plain(table: Table, plain: Plain) -> Table:
    """The table in signs that the console has, before anything is measured."""

    def cell(given: Cell) -> Cell:
        return replace(given, shown=plain(given.shown), span=plain(given.span), note=plain(given.note))

    columns = tuple(replace(c, title=plain(c.title), unit=plain(c.unit)) for c in table.columns)
    return replace(table, columns=columns, rows=tuple(tuple(map(cell, row)) for row in table.rows))
