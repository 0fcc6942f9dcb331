"""The ways out for the data, side by side: what each costs, how long it takes, and on which condition."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwise.api.moving import CUT_OVER_H, Moved, Open
from gpuwise.locale import _, with_colon, with_semicolons, words
from gpuwise.model import Fx
from gpuwise.own.gravity import Way
from gpuwise.view import figures
from gpuwise.view.page import Cell, Made, Table, column, tabulate, word


def moving_table(found: Moved, fx: Fx | None) -> Table:
    columns: list[Made[Open]] = [
        column("way", _("Way"), lambda row: Cell(shown=_way(row.way), value=row.way.kind,
               note=_("taken") if row.way is found.best else "")),
        column("usd", _("Costs"), lambda row: _cost(row.way, fx), kind="number", unit=figures.code(fx)),
        column("days", _("Takes"), lambda row: _days(row.way), kind="number", unit=_("days")),
        column("condition", _("Condition"), lambda row: word(_condition(row))),
        column("from_day", _("From"), lambda row: word("" if row.way.from_day is None else str(row.way.from_day)),
               rank=1),
        column("source", _("Source"), lambda row: word(row.way.source), rank=2),
    ]  # fmt: skip
    size = figures.count(found.move.gb / 1000)
    title = _("Ways to take {size} TB out of {provider}").format(size=size, provider=found.provider or _("the cloud"))
    notes = [_line(found), *_cold(found, fx), *filter(None, [unmoved(found)])]
    return tabulate(title, columns, found.ways, notes)


def unmoved(found: Moved, *, dated: bool = False) -> str:
    """That the data cannot go, or at what nobody knows; "" where it can. dated: it is said of a date to leave."""
    if found.usd_reason is None:
        return ""
    if found.stuck is not None:
        text = _("The data cannot be moved over this line ({why}).")
        of_date = _("But the data cannot be moved over this line ({why}): the date holds only without it.")
    else:
        text = _("What it costs to move the data is not known ({why}).")
        of_date = _("But what it costs to move the data is not known ({why}): the date does not contain it.")
    return (of_date if dated else text).format(why=words(found.usd_reason))


def _line(found: Moved) -> str:
    text = _("Over a line of {rate} Gbit/s, of which a copy gets {share}; writing stops for {hours} h at most.")
    if not found.stated:
        text += " " + _("The line is an assumption: say yours with --link.")
    return text.format(
        rate=figures.written(found.line.gbit_per_s, ".3g"),
        share=figures.percent(found.line.efficiency_fraction),
        hours=figures.written(CUT_OVER_H, "g"),
    )


def _cold(found: Moved, fx: Fx | None) -> Iterator[str]:
    """What cold storage classes bill on any way."""
    early, read = found.move.early_usd, found.move.retrieval_usd
    if early is None or read is None:
        yield _("What the cold storage classes bill is not known, and not contained.")
    elif early or read:
        text = _(
            "On any way: {early} {money} for early deletion from cold storage classes, {read} {money} to read it back."
        )
        both = (figures.amount(usd, fx) for usd in (early, read))
        yield text.format(early=next(both), read=next(both), money=figures.code(fx))


def _way(way: Way) -> str:
    kinds = {"internet": _("over the internet"), "waiver": _("with a waiver"), "link": _("over a private line")}
    return with_colon(kinds[way.kind], way.name) if way.name else kinds[way.kind]


def _cost(way: Way, fx: Fx | None) -> Cell:
    if way.usd is None:
        return figures.unknown(way.reason)
    return Cell(shown=figures.count(figures.in_currency(way.usd, fx)), value=way.usd)


def _days(way: Way) -> Cell:
    if way.days is None:
        return Cell(shown=_("never"), title=words(way.copy.reason) if way.copy.reason else "")
    return Cell(shown=figures.number(way.days), value=way.days)


def _condition(row: Open) -> str:
    """What must be kept to; why the way does not count, or has no price."""
    why = [words(one) for one in (row.why_not, row.way.reason) if one is not None]
    return with_semicolons(filter(None, (_(row.way.condition), *why)))
