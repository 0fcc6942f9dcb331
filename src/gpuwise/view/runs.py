"""Pages about several runs: the list, and two kinds side by side."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwise.locale import _, ngettext, with_commas, with_semicolons, words
from gpuwise.measure.compare import Comparison
from gpuwise.measure.record import Record
from gpuwise.measure.verdict import judge
from gpuwise.view import figures
from gpuwise.view.page import Block, Caution, Cell, Made, Page, Table, Text, column, tabulate, word
from gpuwise.view.vocabulary import ending, verdict

Row = tuple[int | str, Record]
"""Number of a run, or the name of its file."""


def runs_page(rows: Sequence[Row], total: int, place: str, workload: str | None = None) -> Page:
    """The answer to `runs list`. workload: the one that was asked for."""
    foot = _("Kept in {place}.").format(place=place)
    if not rows:
        answer = _("No run has been kept yet. Measure one: gpuwise measure painter-light")
        if workload:
            answer = _("No run of {workload} is kept.").format(workload=workload)
        return Page(title=_("What was measured?"), blocks=(Text(text=answer, role="answer"),), foot=foot)
    answer = ngettext("{n} run is kept: run {newest}.", "{n} runs are kept; the newest is run {newest}.", total)
    answer = answer.format(n=figures.count(total), newest=rows[0][0])
    blocks: tuple[Block, ...] = (Text(text=answer, role="answer"), runs_table(rows, total))
    return Page(title=_("What was measured?"), blocks=blocks, foot=foot)


def runs_table(rows: Sequence[Row], total: int) -> Table:
    """A line for each run; total: how many there are."""
    columns: list[Made[Row]] = [
        column("run", _("Run"), _named, kind="number"),
        column("created_utc", _("Measured, UTC"), lambda row: word(row[1].created_utc.replace("T", " ")[:16])),
        column("workload", _("Workload"), lambda row: word(row[1].setup.workload)),
        column("device", _("Device"), lambda row: word(_devices(row[1])), rank=1),
        column("samples_per_s", _("Throughput"), lambda row: _speed(row[1]), kind="estimate", unit=_("samples/s")),
        column("accuracy_fraction", _("Accuracy"), lambda row: _accuracy(row[1]), kind="number", rank=2),
        column("verdict", _("Verdict"), lambda row: word(verdict(judge(row[1]).kind))),
        column("ending", _("Ended"), lambda row: word(_ended(row[1])), rank=2),
    ]
    left = total - len(rows)
    notes = [_("{n} older runs are not shown (--limit all).").format(n=figures.count(left))] if left else []
    return tabulate(_("Runs"), columns, rows, notes=notes)


def _named(row: Row) -> Cell:
    return Cell(shown=str(row[0]), value=row[0])


def _devices(record: Record) -> str:
    names = with_commas(dict.fromkeys(device.name for device in record.devices))
    return f"{record.setup.processes} × {names}" if names else _("unknown")


def _speed(record: Record) -> Cell:
    speed = record.pace.samples_per_s if record.pace else None
    if speed is None:
        reasons = record.pace.reasons if record.pace else record.reasons
        why = next((reasons[k] for k in ("samples_per_s", "pace") if k in reasons), _("not seen in this run"))
        return Cell(shown=_("unknown"), title=why)
    shown, ends = figures.rounded(speed, 1.0)
    return Cell(shown=shown, span="–".join(ends), value=speed)


def _accuracy(record: Record) -> Cell:
    found = [e.accuracy_fraction for e in record.epochs if e.accuracy_fraction is not None]
    if not found:
        return word("")
    return Cell(
        shown=figures.exact_percent(found[-1], ".1f"),
        value=found[-1],
        title=_("on what was held out, after the last epoch"),
    )


def _ended(record: Record) -> str:
    if record.ending is None:
        return _("running, or cut off") if record.status == "running" else record.status
    return ending(record.ending)


def comparison_page(before: Sequence[Row], after: Sequence[Row], comparison: Comparison) -> Page:
    """The answer to `runs compare`."""
    rows = [(_("A"), record, name) for name, record in before] + [(_("B"), record, name) for name, record in after]
    columns: list[Made[tuple[str, Record, int | str]]] = [
        column("side", _("Side"), lambda row: word(row[0])),
        column("run", _("Run"), lambda row: _named((row[2], row[1]))),
        column("workload", _("Workload"), lambda row: word(row[1].setup.workload)),
        column("created_utc", _("Measured, UTC"), lambda row: word(row[1].created_utc.replace("T", " ")[:16]), rank=1),
        column("samples_per_s", _("Throughput"), lambda row: _speed(row[1]), kind="estimate", unit=_("samples/s")),
        column("step_ms", _("Step"), lambda row: _step(row[1]), kind="estimate", unit=_("ms")),
        column("device", _("Device"), lambda row: word(_devices(row[1])), rank=1),
    ]
    blocks: list[Block] = [Text(text=words(comparison.sentence), role="answer")]
    blocks += [Caution(text=words(said)) for said in (*comparison.unlike, *comparison.cautions)]
    blocks.append(tabulate(_("The runs"), columns, rows, notes=_ratio(comparison)))
    return Page(title=_("Is B faster than A?"), blocks=tuple(blocks))


def _step(record: Record) -> Cell:
    if record.pace is None:
        return Cell(shown=_("unknown"), title=record.reasons.get("pace", _("not seen in this run")))
    shown, ends = figures.rounded(record.pace.step_s, 1e-3)
    return Cell(shown=shown, span="–".join(ends), value=record.pace.step_s)


def _ratio(comparison: Comparison) -> list[str]:
    if comparison.ratio is None:
        return [_("Ratio unknown: {why}.").format(why=with_semicolons(comparison.reasons.values()))]
    return [_("Speed of B / speed of A: {ratio}, 80 % interval.").format(ratio=figures.interval(comparison.ratio))]
