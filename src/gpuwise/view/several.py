"""Several of one GPU: what each added card brings and costs, and N jobs side by side beside one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuwise.locale import _, with_commas, words
from gpuwise.model import Fx, Prediction
from gpuwise.rank.several import Several
from gpuwise.view import figures
from gpuwise.view.page import SPANS, Block, Cell, Made, column, tabulate, word


def several_blocks(rows: Sequence[Several], fx: Fx | None) -> Iterator[Block]:
    """Two tables: one job on so many cards, and so many jobs on so many cards."""
    if not rows:
        return
    spans = {SPANS: _("Ranges are 80 % intervals.")}
    yield tabulate(_("Several of them"), _one_job(rows, fx), rows, _notes(rows), spans)
    many = [row for row in rows if row.side_by_side_s is not None and row.together_s is not None]
    if many:
        yield tabulate(_("As many jobs as cards"), _many_jobs(many, fx), many, [_how()])


def _one_job(rows: Sequence[Several], fx: Fx | None) -> list[Made[Several]]:
    times = [row.time_s.value for row in rows if row.time_s]
    unit = figures.time_unit(times)
    money = figures.code(fx)
    return [
        column(
            "accelerators", _("GPUs"), lambda r: Cell(shown=str(r.accelerators), value=r.accelerators), kind="number"
        ),
        column("throughput_per_s", _("Throughput"), _throughput, kind="estimate", unit=_("samples/s")),
        column("time_s", _("Time of the job"), lambda r: _time(r, unit), kind="estimate", unit=unit),
        column("added_fraction", _("Each added card brings"), _added, kind="number"),
        column("cost_usd", _("Bill"), lambda r: _bill(r, fx), kind="estimate", unit=money),
        column("offer_id", _("Cheapest offer"), lambda r: word(r.candidate.offer.id if r.candidate else ""), rank=1),
    ]


def _throughput(row: Several) -> Cell:
    if not isinstance(row.prediction, Prediction):
        return figures.unknown(row.prediction.reason)
    return figures.estimate_cell(row.prediction.throughput_per_s, 1.0)


def _time(row: Several, unit: str) -> Cell:
    if row.time_s is None:
        return figures.unknown(row.reasons.get("time_s"))
    return figures.estimate_cell(row.time_s, figures.TIME_UNITS[unit])


def _added(row: Several) -> Cell:
    if row.added_fraction is None:
        return Cell(shown="–" if row.accelerators == 1 else _("unknown"))
    return Cell(shown=figures.exact_percent(row.added_fraction, ".0f"), value=row.added_fraction)


def _bill(row: Several, fx: Fx | None) -> Cell:
    cost = row.candidate.cost_usd if row.candidate else None
    if cost is None:
        return figures.unknown(row.reasons.get("candidate"))
    return figures.estimate_cell(cost, 1.0 if fx is None else fx.usd_per_unit)


def _notes(rows: Sequence[Several]) -> list[str]:
    """What the table says of added cards, and which numbers have no offer and why."""
    notes = [_("Each added card brings so much of what one does alone; less than 0 % makes the job slower.")]
    missing: dict[str, list[str]] = {}
    for row in rows:
        if "candidate" in row.reasons:
            missing.setdefault(words(row.reasons["candidate"]), []).append(str(row.accelerators))
    said = _("{numbers}: {reason}.")
    return [*notes, *(said.format(numbers=with_commas(numbers), reason=reason) for reason, numbers in missing.items())]


def _many_jobs(rows: Sequence[Several], fx: Fx | None) -> list[Made[Several]]:
    unit, money = figures.time_unit([row.together_s or 0.0 for row in rows]), figures.code(fx)
    return [
        column(
            "accelerators", _("Jobs and GPUs"), lambda r: Cell(shown=str(r.accelerators), value=r.accelerators),
            kind="number",
        ),
        column("side_by_side_s", _("Side by side"), lambda r: _plain(r, "side_by_side_s", unit), kind="number",
               unit=unit),
        column("side_by_side_usd", _("their bill"), lambda r: _paid(r, "side_by_side_usd", fx), kind="number",
               unit=money),
        column("together_s", _("One after another"), lambda r: _plain(r, "together_s", unit), kind="number", unit=unit),
        column("together_usd", _("their bill"), lambda r: _paid(r, "together_usd", fx), kind="number", unit=money),
    ]  # fmt: skip


def _how() -> str:
    return _(
        "Side by side: each job on a card of its own, on so many of the cheapest offer with one. One after another: "
        "each job on all cards, on the cheapest offer with so many. Times are without preparation."
    )


def _plain(row: Several, name: str, unit: str) -> Cell:
    seconds = getattr(row, name)
    if seconds is None:
        return figures.unknown(row.reasons.get(name))
    return Cell(shown=figures.number(seconds / figures.TIME_UNITS[unit]), value=seconds)


def _paid(row: Several, name: str, fx: Fx | None) -> Cell:
    usd = getattr(row, name)
    if usd is None:
        return figures.unknown(row.reasons.get(name))
    return Cell(shown=figures.amount(usd, fx), value=usd)
