"""The page about a cost export: what each month cost, by one kind of cost, with its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from gpuwise.cost.monthly import KINDS, Month
from gpuwise.locale import N_, _
from gpuwise.view import figures
from gpuwise.view.bill import sums
from gpuwise.view.chart import SCHEMA
from gpuwise.view.page import Block, Cell, Chart, Fact, Facts, Made, Page, Table, Text, column, tabulate, word

MEANINGS = {
    "effective": N_("what was paid up front is spread over the time that it is for: the cost of what was used"),
    "billed": N_("what the invoices of the months say: the money that was paid"),
    "list": N_("at public prices, without any discount"),
    "contracted": N_("at your own prices, without commitments"),
}
"""What each kind of cost means."""

Totals = Sequence[tuple[str, float]]


def costs_page(
    kind: str, title: str, dated: str, months: Sequence[Month], totals: Totals, others: Sequence[tuple[str, str, float]]
) -> Page:
    """The answer to `bill` about an export. title, dated: its columns. others: kind, currency and total of the rest."""
    blocks = tuple(_blocks(kind, title, dated, months, totals, others))
    return Page(title=_("What did it cost?"), blocks=blocks)


def _blocks(
    kind: str, title: str, dated: str, months: Sequence[Month], totals: Totals, others: Sequence[tuple[str, str, float]]
) -> Iterator[Block]:
    yield Text(text=_in_short(title, months, totals), role="answer")
    text = _("{kind} cost: {meaning}. Months are those of {dated}.")
    yield Text(text=text.format(kind=named(kind), meaning=_(MEANINGS[kind]), dated=dated), role="note")
    yield months_table(kind, title, months, totals)
    for currency, own in groupby(months, key=lambda month: month.currency):
        yield _chart(title, currency, [*own])
    if others:
        yield Facts(title=_("Other kinds of cost in it, not to be mixed with this one"), facts=tuple(_others(others)))


def named(kind: str) -> str:
    return {
        "effective": _("Effective"), "billed": _("Billed"), "list": _("List"), "contracted": _("Contracted"),
    }[kind]  # fmt: skip


def _in_short(title: str, months: Sequence[Month], totals: Totals) -> str:
    amounts = sums([(figures.amount(total), currency) for currency, total in totals])
    first, last = min(month.month for month in months), max(month.month for month in months)
    if first == last:
        return _("{column}: {sum} in {month}.").format(column=title, sum=amounts, month=first)
    return _("{column}: {sum} from {first} to {last}.").format(column=title, sum=amounts, first=first, last=last)


def months_table(kind: str, title: str, months: Sequence[Month], totals: Totals) -> Table:
    """A row a month and currency."""
    columns: list[Made[Month]] = [
        column("month", _("Month"), lambda row: word(row.month)),
        column("amount", title, lambda row: Cell(shown=figures.amount(row.amount), value=row.amount), kind="number"),
        column("currency", _("Currency"), lambda row: word(row.currency)),
        column("charges", _("Rows"), lambda row: Cell(shown=figures.count(row.charges), value=row.charges),
               kind="number", rank=1),
        column("kind", "", lambda _row: Cell(shown="", value=kind), hidden=True),
    ]  # fmt: skip
    notes = [_("Total: {sum}.").format(sum=sums([(figures.amount(total), currency) for currency, total in totals]))]
    if len(totals) > 1:
        notes.append(_("Currencies are not added up."))
    return tabulate(_("{column} by month").format(column=title), columns, months, notes)


def _chart(title: str, currency: str, months: Sequence[Month]) -> Chart:
    head = _("{title}, {unit}").format(title=title, unit=currency)
    text = _("Bars of {column} a month: from {low} to {high} {currency}.")
    amounts = sorted(month.amount for month in months)
    return Chart(
        title=head,
        alt=text.format(
            column=title, currency=currency, low=figures.amount(amounts[0]), high=figures.amount(amounts[-1])
        ),
        spec={
            "$schema": SCHEMA,
            "data": {"values": [{"month": month.month, "amount": month.amount} for month in months]},
            "mark": {"type": "bar"},
            "encoding": {
                "x": {"field": "month", "type": "ordinal", "title": _("Month"), "axis": {"labelAngle": 0}},
                "y": {"field": "amount", "type": "quantitative", "title": head},
            },
        },
        flat=True,
    )


def _others(others: Sequence[tuple[str, str, float]]) -> Iterator[Fact]:
    for kind, currency, total in others:
        yield Fact(
            label=KINDS[kind], text=f"{figures.amount(total)} {currency}", why=_("--kind {kind}").format(kind=kind)
        )
