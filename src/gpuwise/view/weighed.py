"""What decides an answer about owning, and the figures that it stands on: tables and charts that own and exit share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpuwise.asset import LeadTime
from gpuwise.locale import _, ngettext
from gpuwise.model import Assumption, Fx
from gpuwise.own.sensitivity import SMALL, Weight, Weights
from gpuwise.view import figures
from gpuwise.view.chart import SCHEMA
from gpuwise.view.owned_words import figure, lead, unit_of
from gpuwise.view.page import Cell, Chart, Fact, Made, Table, column, tabulate, word

WEIGHTS_SHOWN = 8
SOON_WEEKS = 0.1
"""Hours: no number of weeks says it."""


def weights_table(weights: Weights, known: Mapping[str, Assumption], fx: Fx | None, saved: str) -> Table:
    """The heaviest figures. known: all figures, by name; saved: head of what is saved at a figure's low end."""
    shown = [weight for weight in weights.figures if weight.total_fraction >= SMALL][:WEIGHTS_SHOWN]
    money = _("thousand {money}").format(money=figures.code(fx))
    columns: list[Made[Weight]] = [
        column("figure", _("Figure"), lambda row: Cell(shown=figure(row.name), value=row.name)),
        column("range", _("Range"), lambda row: word(in_range(known[row.name])), rank=1),
        column("total_fraction", _("Decides"), lambda row: Cell(shown=figures.percent(row.total_fraction),
               value=row.total_fraction), kind="number"),
        column("low_usd", saved, lambda row: thousands(row.low_usd, fx), kind="number", unit=money),
        column("high_usd", _("at its high end"), lambda row: thousands(row.high_usd, fx), kind="number", unit=money),
        column("worth_usd", _("Worth to know"), lambda row: thousands(row.worth_usd, fx), kind="number", unit=money),
    ]  # fmt: skip
    left = sum(weight.total_fraction < SMALL for weight in weights.figures)
    rest = ngettext("{n} more figure with a range decides less than 1 %.",
                    "{n} more figures with a range decide less than 1 % each.", left).format(n=left)  # fmt: skip
    notes = [
        _("Sobol's total index: the share of the variance of rented / owned that would be left if only this figure "
          "were unknown; interactions count for each of their figures."),
        *([rest] if left else []),
        _("Worth to know: how much less would be paid in expectation by somebody who knew it before deciding."),
    ]  # fmt: skip
    return tabulate(_("What decides it"), columns, shown, notes)


def in_range(given: Assumption) -> str:
    if given.low is None or given.high is None:
        return _four_digits(given.value)
    return _("{low} to {high}").format(low=_four_digits(given.low), high=_four_digits(given.high))


def _four_digits(value: float) -> str:
    return figures.exact_number(float(f"{value:.4g}"))


def thousands(usd: float, fx: Fx | None) -> Cell:
    """Money that may be below 0, in thousands; what rounds to 0 has no sign."""
    return Cell(shown=figures.written(round(figures.in_currency(usd, fx) / 1000, 0) + 0.0, ",.0f"), value=usd)


def tornado(weights: Weights, fx: Fx | None, saved: str, note: str) -> Chart:
    """What is saved at both ends of each figure, the longest bar first. saved: what it is; note: how to read it."""
    shown = sorted(weights.figures, key=lambda weight: -abs(weight.high_usd - weight.low_usd))[:WEIGHTS_SHOWN]
    rows = [
        {"figure": figure(one.name), "low": figures.in_currency(min(one.low_usd, one.high_usd), fx) / 1000,
         "high": figures.in_currency(max(one.low_usd, one.high_usd), fx) / 1000}
        for one in shown
    ]  # fmt: skip
    head = _("{saved}, thousand {money}").format(saved=saved, money=figures.code(fx))
    bars: dict[str, Any] = {
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "figure", "type": "nominal", "sort": None, "title": None},
            "x": {"field": "low", "type": "quantitative", "title": head},
            "x2": {"field": "high"},
        },
    }
    middle = figures.in_currency(weights.saving_usd, fx) / 1000
    line = {"mark": {"type": "rule"}, "encoding": {"x": {"datum": middle}}}
    return Chart(
        title=_("Tornado: one figure at a time"),
        alt=ngettext(
            "Bar of the saving over the range of {n} figure, around {middle}.",
            "Bars of the saving over the range of each of {n} figures, around {middle}.",
            len(rows),
        ).format(n=len(rows), middle=figures.written(middle, ",.0f")),
        spec={"$schema": SCHEMA, "data": {"values": rows}, "layer": [bars, line]},
        note=note,
        flat=True,
    )


def lead_facts(leads: Iterable[LeadTime]) -> Iterator[Fact]:
    """Weeks from order to first job, by what is ordered."""
    for row in leads:
        number = 1 if row.high_weeks == 1 else 2
        soon = ngettext("at once, up to {high} week", "at once, up to {high} weeks", number)
        later = ngettext("{low} to {high} week", "{low} to {high} weeks", number)
        text = (later if row.low_weeks >= SOON_WEEKS else soon).format(
            low=figures.written(row.low_weeks, ".3g"), high=figures.written(row.high_weeks, ".3g")
        )
        yield Fact(label=lead(row.kind), text=text, why=f"{row.source}, {row.observed}")


def figures_table(known: Mapping[str, Assumption]) -> Table:
    """Every figure that the answer stands on."""
    columns: list[Made[Assumption]] = [
        column("figure", _("Figure"), lambda row: Cell(shown=figure(row.name), title=row.name, value=row.name)),
        column("value", _("Value"), lambda row: Cell(shown=_four_digits(row.value), value=row.value), kind="number"),
        column("range", _("Range"), lambda row: word("" if row.low is None else in_range(row))),
        column("unit", _("Unit"), lambda row: word(unit_of(row.unit))),
        column("source", _("Origin"), _origin),
    ]  # fmt: skip
    rows = [one for _name, one in sorted(known.items()) if one.source != "none"]
    return tabulate(
        _("What it stands on"), columns, rows, [_("Change any of them with --set NAME=VALUE or LOW..HIGH.")]
    )


def _origin(row: Assumption) -> Cell:
    text = " ".join(filter(None, (row.source, str(row.observed or ""))))
    return Cell(shown=text, value=text, title=row.note)
