"""What a person should look at again in a price list of his own: offers that stand in it twice, prices far too high.

Nothing is left out for it, but for rows that repeat another one word for word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import DATES, NUMBERS, TEXT, Coded
from gpuwise.errors import Message
from gpuwise.integrity import USUAL_HIGH
from gpuwise.store.delimited import grouped

Mask = NDArray[np.bool_]
Lines = NDArray[np.int32]

EVERY = ("ids", *TEXT, *NUMBERS, *DATES)
SAME_OFFER = ("ids", "provider", "instance", "region", "market", "accelerator", "accelerators", "nodes", "term_h",
              "observed")  # fmt: skip
"""Columns that say which offer a row is, and of which day."""
PRICE = ("price_native", "price_usd_per_hour", "currency", "price_unit", "price_state", "upfront_usd")
MOST_NAMED = 10
_MIX = np.uint64(0x9E3779B97F4A7C15)


def repeated(columns: Mapping[str, Any], read: Mask, lines: Lines) -> tuple[Mask, list[Message]]:
    """Rows that repeat an earlier one in every column, and notes that name the lines of all that are there twice.

    columns: of a `Catalogue`, n values each; read: rows that count; lines: of the file.
    """
    offer = _groups(columns, SAME_OFFER, rows := np.flatnonzero(read))
    several = np.bincount(offer, minlength=1)[offer] > 1
    rows, offer = rows[several], offer[several]
    whole, price = _groups(columns, EVERY, rows), _groups(columns, PRICE, rows)
    groups: dict[int, list[int]] = {}
    for place, group in enumerate(offer.tolist()):
        groups.setdefault(group, []).append(place)
    repeats, notes = np.zeros(len(read), bool), list[Message]()
    for places in groups.values():
        first = {int(whole[place]): place for place in reversed(places)}
        twice = [place for place in places if first[int(whole[place])] != place]
        repeats[rows[twice]] = True
        if twice:
            named = _named(lines[rows[twice]])
            notes.append(Message("left out, since they repeat an earlier line: line {lines}", lines=named))
        if len({int(price[place]) for place in first.values()}) > 1:
            named = _named(lines[rows[sorted(first.values())]])
            notes.append(Message("one offer on one day at several prices, which all stand: line {lines}", lines=named))
    return repeats, _shortened(notes)


def unusual(
    columns: Mapping[str, Any], usual_usd_per_hour: Mapping[str, float], read: Mask, lines: Lines
) -> list[Message]:
    """A note for each listed price so far above what its card usually costs that the unit may be wrong."""
    cards: Coded = columns["accelerator"]
    usual = cards.lookup([_usual(name, usual_usd_per_hour) for name in cards.values], np.nan, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = columns["price_usd_per_hour"] / (columns["accelerators"] * columns["nodes"])
    doubtful = read & columns["price_state"].isin(("listed",)) & (each > USUAL_HIGH * usual)
    notes = [
        Message(
            "line {line}: {price:.2f} USD an hour for one {gpu}, usual are {usual:.2f}: check price and unit, or give "
            "the row price_state = confirmed",
            line=int(lines[row]),
            price=float(each[row]),
            gpu=cards[row],
            usual=float(usual[row]),
        )
        for row in np.flatnonzero(doubtful).tolist()
    ]
    return _shortened(notes)


def _usual(name: str, usual: Mapping[str, float]) -> float:
    """Of the dearest variant, where the row does not say which one it is."""
    return usual.get(name) or max((usual[v] for v in name.split("|") if v in usual), default=np.nan)


def _groups(columns: Mapping[str, Any], names: Sequence[str], rows: NDArray[np.intp]) -> NDArray[np.int32]:
    """The rows that hold the same in all of these columns have the same number; missing is equal to missing."""
    mixed = np.zeros(len(rows), np.uint64)
    for column in (columns[name] for name in names if columns[name] is not None):
        values = column.codes if isinstance(column, Coded) else np.nan_to_num(column, nan=-1.0)
        mixed = (mixed ^ values[rows].astype(np.float64).view(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(32)
    return grouped(mixed)[0]


def _named(lines: Lines) -> str:
    shown = ", ".join(map(str, lines[:MOST_NAMED].tolist()))
    return shown if len(lines) <= MOST_NAMED else f"{shown}, …"


def _shortened(notes: list[Message]) -> list[Message]:
    if (more := len(notes) - MOST_NAMED) <= 0:
        return notes
    return [*notes[:MOST_NAMED], Message("{more} more such remarks", more=more)]
