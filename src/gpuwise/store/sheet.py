"""Cells of a table → values. Each distinct text of a column is converted once, however many rows hold it.

A cell that cannot be read refuses its row, with line, column and reason, and never the file; a column whose numbers
cannot be told (1,234: a thousand or one?) refuses the file, because every row of it would be a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import NO_DATE, Coded, as_days
from gpuwise.errors import DataError, InvalidInput, Message
from gpuwise.store.delimited import Table, reject, replaced
from gpuwise.units import Money, NumberFormat, number_format, parse_date, parse_money, parse_number

Floats = NDArray[np.float64]
T = TypeVar("T")

NO_NUMBER = frozenset(("n/a", "na", "nan", "null", "none", "unknown", "on request", "tbd", "?", "-", "–", "—"))
"""What people write in a column of numbers where they have none. In a column of text each of them is text."""
_EXAMPLE = re.compile(r"(.*?)\s*\[(.*)\]")
_AMOUNT = re.compile(r"([^0-9.,+−-]*)([-+−]?[0-9.,](?:[0-9.,'’\s]*[0-9])?(?:[eE][-+]?[0-9]+)?)(.*)")
PLAIN = NumberFormat(decimal=".")
_NOTHING = Money(amount=np.nan)
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")


def neutralise(text: str) -> str:
    """Text that a spreadsheet will not run as a formula: an apostrophe before a leading = + - @ tab or line break."""
    return "'" + text if _FORMULA.match(text) else text


def restore(text: str) -> str:
    """The text that `neutralise` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Amounts:
    """A column of prices: amount (n,), NaN where there is none; currency and basis where the cell states them."""

    amount: Floats
    currency: Coded
    per: Coded


class Sheet:
    """The columns of a table under their proper names, and the rows that had to be refused so far.

    given: what every row holds in a column that the table lacks. rejects: row -> why it is refused. notes: what was
    assumed. A header may show how its numbers are written, by an example in brackets: `price [1.234,56]`.
    """

    def __init__(self, table: Table, proper: Callable[[str], str], given: Mapping[str, str]) -> None:
        self.name, self.lines, self.rows, self.given = table.name, table.lines, len(table), dict(given)
        self.rejects: dict[int, Message] = {}
        self.notes: list[Message] = []
        self._cells: dict[str, Coded] = {}
        self._titles: dict[str, str] = {}
        self._examples: dict[str, str] = {}
        for title, cells in table.columns.items():
            self._add(title, cells, proper)

    def _add(self, title: str, cells: Coded, proper: Callable[[str], str]) -> None:
        shown = _EXAMPLE.fullmatch(title)
        name = proper(shown[1] if shown else title)
        if name in self._cells:
            raise self.error(
                Message("the columns {first} and {second} mean the same.", first=self._titles[name], second=title),
                Message("Keep one of them."),
                column=title,
            )
        self._cells[name], self._titles[name] = cells, title
        if shown:
            self._examples[name] = shown[2]

    def __contains__(self, column: str) -> bool:
        return column in self._cells

    @property
    def titles(self) -> tuple[str, ...]:
        """The columns that are there, as the file writes them."""
        return tuple(self._titles.values())

    def title(self, column: str) -> str:
        """The column's name as the file writes it."""
        return self._titles.get(column, column)

    def error(self, what: Message, hint: Message, *, column: str | None = None, row: int = 1) -> DataError:
        """The whole file cannot be used; `row` is a line of it."""
        return DataError(reject(self.name, row, what), hint, file=self.name, row=row, column=column)

    def refuse(self, rows: Iterable[int], column: str, reason: Message) -> None:
        """These rows cannot be read; the first reason of a row stays."""
        what = Message("{column}: {reason}", column=self.title(column), reason=reason)
        for row in rows:
            self.rejects.setdefault(int(row), reject(self.name, int(self.lines[row]), what))

    def constant(self, text: str | None) -> Coded:
        """A column that holds one text in every row."""
        code = np.int32(-1 if text is None else 0)
        return Coded(np.broadcast_to(code, (self.rows,)), () if text is None else (text,))

    def cells(self, column: str) -> Coded:
        """The texts as they stand."""
        return self._cells[column] if column in self._cells else self.constant(self.given.get(column))

    def text(self, column: str) -> Coded:
        """Texts with what `neutralise` added taken away. Only the empty cell is missing: "NA" is a region."""
        cells = self.cells(column)
        return replaced(cells, [restore(text) for text in cells.values])

    def choice(self, column: str, words: Mapping[str, str]) -> Coded:
        """One of a closed list; `words` as made by `choices`."""
        cells = self.cells(column)
        return replaced(cells, self._each(column, cells, lambda text: _meant(text, words)))

    def parsed(self, column: str, parse: Callable[[str], str]) -> Coded:
        """Texts as `parse` understands them."""
        cells = self.text(column)
        return replaced(cells, self._each(column, cells, parse))

    def days(self, column: str) -> NDArray[np.int32]:
        """Dates (YYYY-MM-DD; a time after it is cut off) as days since 1970-01-01."""
        cells = self.cells(column)
        table = self._each(column, cells, lambda text: as_days(parse_date(text[:10] if text[10:11] in "T " else text)))
        return cells.lookup([NO_DATE if day is None else day for day in table], NO_DATE, np.int32)

    def numbers(self, column: str, parse: Callable[[str], float] | None = None, *, most: float = np.inf) -> Floats:
        """Numbers from 0 to `most`, NaN where there is none; `parse` reads what carries a unit ("80 GB")."""
        cells = self.cells(column)
        signs = self._signs(column, cells.values)
        table = self._each(column, cells, lambda text: _number(text, signs, parse, most))
        return cells.lookup([np.nan if v is None else v for v in table], np.nan, np.float64)

    def amounts(self, column: str) -> Amounts:
        """Money with whatever stands around the number ("2,50 €", "$1.20/h"); a sum below 0 is no price."""
        cells = self.cells(column)
        signs = self._signs(column, [_around(text)[0] for text in cells.values])
        if signs.decimal == "." and all(map(_is_plain, cells.values)):
            amount = cells.lookup([float(text) for text in cells.values], np.nan, np.float64)
            return Amounts(amount=amount, currency=self.constant(None), per=self.constant(None))
        table = self._each(column, cells, lambda text: _amount(text, signs))
        values = [_NOTHING if v is None else v for v in table]
        return Amounts(
            amount=cells.lookup([v.amount for v in values], np.nan, np.float64),
            currency=replaced(cells, [v.currency for v in values]),
            per=replaced(cells, [v.per for v in values]),
        )

    def _each(self, column: str, cells: Coded, convert: Callable[[str], T]) -> list[T | None]:
        """One value a distinct text; None, and its rows refused, where `convert` raises InvalidInput."""
        values: list[T | None] = []
        reasons: dict[int, Message] = {}
        for code, text in enumerate(cells.values):
            try:
                values.append(convert(text))
            except InvalidInput as error:
                values.append(None)
                reasons[code] = error.message
        if reasons:
            faulty = cells.lookup([code in reasons for code in range(len(values))], False, np.bool_)
            for row in np.flatnonzero(faulty).tolist():
                self.refuse((row,), column, reasons[cells.codes[row]])
        return values

    def _signs(self, column: str, texts: Sequence[str]) -> NumberFormat:
        """How the column writes its numbers. If it mixes ways, the plain one holds and others refuse their rows."""
        title, example = self.title(column), self._examples.get(column)
        try:
            signs = number_format(texts if example is None else [example])
        except InvalidInput as error:
            if _is_mixed(texts):
                return PLAIN
            raise self.error(
                Message("column {column}: {what}", column=title, what=error.message),
                Message('Show how it writes numbers in the header: "{column} [1234.56]".', column=title),
                column=title,
            ) from error
        if example is None and signs.note is not None:
            self.notes.append(Message("{column}: {note}", column=title, note=signs.note))
        return signs


def refusal(what: Message) -> InvalidInput:
    """What a converter raises for a cell that it cannot read."""
    return InvalidInput(what, Message("Correct the cell."))


def choices(*meant: str, **also: str) -> dict[str, str]:
    """What may be written -> what is meant; case, _ and - do not matter. also: other words, with _ for a blank."""
    return {_word(text): text for text in meant} | {_word(word): text for word, text in also.items()}


def _word(text: str) -> str:
    return text.casefold().replace("_", " ").replace("-", " ")


def _is_mixed(texts: Sequence[str]) -> bool:
    """Some numbers are plain, and the others have a way of their own which is not in doubt."""
    others = [text for text in texts if not _is_plain(text)]
    if len(others) == len(texts) or any("%" in text for text in texts):
        return False
    try:
        number_format(others)
    except InvalidInput:
        return False
    return True


def _meant(text: str, words: Mapping[str, str]) -> str:
    if (found := words.get(_word(text))) is None:
        allowed = ", ".join(dict.fromkeys(words.values()))
        raise refusal(Message('"{text}" is none of {allowed}', text=text, allowed=allowed))
    return found


def _number(
    text: str, signs: NumberFormat, parse: Callable[[str], float] | None, most: float = np.inf, least: float = 0.0
) -> float:
    if text.casefold() in NO_NUMBER:
        return np.nan
    value = _read(text, signs, parse)
    if not least <= value <= most:
        below = Message('"{text}" is below {least:g}', text=text, least=least)
        between = Message('"{text}" is not between {least:g} and {most:g}', text=text, least=least, most=most)
        raise refusal(below if np.isinf(most) else between)
    return value


def _read(text: str, signs: NumberFormat, parse: Callable[[str], float] | None) -> float:
    if signs.decimal == "." and _is_plain(text):
        return float(text)
    try:
        return parse_number(text, signs)
    except InvalidInput:
        if parse is None:
            raise
        return parse(text)


def _is_plain(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _around(text: str) -> tuple[str, str]:
    """The number in a text, and the text with a 1 in its place; ("", "") where no number is found."""
    if _is_plain(text):
        return text, "1"
    match = _AMOUNT.fullmatch(text)
    return (match[2], f"{match[1]}1{match[3]}") if match else ("", "")


def _amount(text: str, signs: NumberFormat) -> Money:
    number, around = _around(text)
    value = _number(number or text, signs, None, least=-np.inf)
    if around in ("1", ""):
        return Money(amount=value if value >= 0 else np.nan)
    money = parse_money(around)
    return Money(amount=value if value >= 0 else np.nan, currency=money.currency, per=money.per)
