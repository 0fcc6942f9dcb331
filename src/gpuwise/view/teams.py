"""Several teams: what each should own for itself, and one fleet that all share."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwise.api.owning import Owned
from gpuwise.errors import Message
from gpuwise.locale import _, words
from gpuwise.model import Fx
from gpuwise.own.teams import Fleet, Sharing
from gpuwise.view import figures
from gpuwise.view.owned_words import option
from gpuwise.view.page import Block, Cell, Made, Table, Text, column, tabulate, word

Row = tuple[str, Fleet]


def teams_blocks(r: Owned) -> Iterator[Block]:
    """Nothing where the demand is not a record of several teams."""
    if isinstance(r.teams, Message):
        yield Text(text=_("A fleet for each team: not weighed, {why}.").format(why=words(r.teams)), role="note")
    elif r.teams is not None:
        yield Text(text=in_short(r.teams, r.fx))
        yield _table(r, r.teams)


def in_short(found: Sharing, fx: Fx | None) -> str:
    """Shared against each for itself, in one sentence."""
    shared, apart = found.shared, found.apart
    if not shared.gpus and not apart.gpus:
        text = _("To own GPUs pays neither for all teams together nor for one alone: all in the cloud, {apart} "
                 "thousand {money} a year.")  # fmt: skip
    else:
        text = _("Shared, {n} GPUs serve all teams for {shared} thousand {money} a year; each for itself {m} GPUs "
                 "and {apart} thousand {money}.")  # fmt: skip
    return text.format(
        n=figures.count(shared.gpus), m=figures.count(apart.gpus), money=figures.code(fx),
        shared=_thousands(shared.usd_per_year, fx), apart=_thousands(apart.usd_per_year, fx),
    )  # fmt: skip


def _thousands(usd: float, fx: Fx | None) -> str:
    return figures.count(figures.in_currency(usd, fx) / 1000)


def _table(r: Owned, found: Sharing) -> Table:
    def gpus(value: float) -> Cell:
        return Cell(shown=figures.exact_number(float(f"{value:.3g}")), value=value)

    def thousands(usd: float) -> Cell:
        return Cell(shown=_thousands(usd, r.fx), value=usd)

    money = _("thousand {money}").format(money=figures.code(r.fx))
    columns: list[Made[Row]] = [
        column("team", _("Team"), lambda row: word(row[0])),
        column("gpus_wanted", _("GPUs wanted"), lambda row: gpus(row[1].gpus_wanted), kind="number"),
        column("most_gpus", _("At the most"), lambda row: Cell(shown=figures.count(row[1].most_gpus),
               value=row[1].most_gpus), kind="number"),
        column("gpus", _("GPUs to own"), lambda row: _own(row[1]), kind="number"),
        column("usd_per_year", _("A year"), lambda row: thousands(row[1].usd_per_year), kind="number", unit=money),
        column("cloud_usd_per_year", _("All in the cloud"), lambda row: thousands(row[1].cloud_usd_per_year),
               kind="number", unit=money),
    ]  # fmt: skip
    rows = [*found.each.items(), (_("each for itself"), found.apart), (_("shared"), found.shared)]
    return tabulate(_("Teams: each for itself, or one fleet"), columns, rows, _notes(r, found))


def _own(row: Fleet) -> Cell:
    return Cell(shown=figures.count(row.gpus), value=row.gpus) if row.gpus else word(_("none"))


def _notes(r: Owned, found: Sharing) -> Iterator[str]:
    text = _(
        "The record as it is, without growth and chance, at the middle figures: an own GPU costs {own} {money} a year "
        "({site}) and {busy} a busy hour, a useful hour in the cloud {cloud}, at today's price."
    )
    yield text.format(
        own=figures.count(figures.in_currency(found.prices.own_usd_per_year, r.fx)), money=figures.code(r.fx),
        site=option(str(r.site)), busy=figures.amount(found.prices.busy_usd_per_hour, r.fx),
        cloud=figures.amount(found.prices.cloud_usd_per_hour, r.fx),
    )  # fmt: skip
    text = _("Whole GPUs that are always there to work, exact for this record; servers of {n} come in whole ones.")
    yield text.format(n=r.assembled.case.accelerators)
