"""Pages about trust: the splits with their errors, and a person's own table scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from gpuwise.estimate import Interval
from gpuwise.locale import N_, _, ngettext, with_colon, with_semicolons, words
from gpuwise.predict.accuracy import ABOUT, PUBLISHED, Published
from gpuwise.predict.against import Outcome, Scored
from gpuwise.predict.score import Errors, grouped
from gpuwise.predict.tested import Result, Table
from gpuwise.view import figures
from gpuwise.view import page as pages
from gpuwise.view.accuracy_chart import against_chart
from gpuwise.view.page import SPANS, Block, Cell, Fact, Facts, Made, Page, Text, column, tabulate, word

_ABOUT = {about.id: about for about in ABOUT}
RULES = {
    "peak": N_("peak rates"),
    "bandwidth": N_("bandwidths"),
    "geometric_mean": N_("geometric mean"),
    "perfect": N_("perfect scaling"),
    "roofline": N_("roofline"),
    "proportional": N_("in proportion"),
}
"""What stands beside a prediction, in the order of its columns."""
LINKS = {"geforce": "GeForce", "nvlink": "NVLink", "pcie": "PCIe"}
FURTHER_OF = {
    "_beyond_two_with_a_run_on_two_mape_percent": N_("{what}, mean error beyond two GPUs with a run on two"),
    "_beyond_two_mape_percent": N_("{what}, mean error beyond two GPUs"),
    "_out_mape_percent": N_("{what} left out, mean error"),
    "_out_median_percent": N_("{what} left out, median error"),
    "_out_p90_percent": N_("{what} left out, P90 of the error"),
    "_mape_percent": N_("{what}, mean error"),
}
FURTHER = {
    "worst_group_coverage_percent": N_("covered in the worst group"),
    "pairs_in_order_percent": N_("pairs in the right order"),
    "doubtful_percent": N_("doubtful"),
    "refused_wrongly_percent": N_("refused wrongly"),
    "fits_wrongly_percent": N_("said to fit wrongly"),
}
"""Figures that only one split has: by the end of their names, with a link or what was left out before it; by name."""
OUT = {"model": N_("the model"), "family": N_("the family")}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One line of the table of splits: a split, or a group of it."""

    id: str
    title: str
    goal: str
    errors: Errors
    group: str = ""


def splits_page(table: Table, by: str | None = None, fresh: bool = False) -> Page:
    """The answer to `accuracy`. by: the tag whose groups are shown as well."""
    return Page(title=_("May I trust these predictions?"), blocks=tuple(_blocks(table, by, fresh)))


def _blocks(table: Table, by: str | None, fresh: bool) -> Iterator[Block]:
    yield Text(text=_in_short(table), role="answer")
    when = _("Computed now, on this machine, from data {data}.") if fresh else _("Computed on {day} from data {data}.")
    yield Text(text=when.format(day=date.fromisoformat(table.computed), data=table.data_version), role="note")
    if table.results:
        yield splits_table(table, by)
        yield Facts(title=_("What each split asks"), facts=tuple(_questions(table)))
    yield _published_table()


def _in_short(table: Table) -> str:
    first = next((r for r in table.results.values() if r.errors.median_percent is not None), None)
    if first is None:
        return _("No split has been computed.")
    text = _(
        "{count} splits of measured rows that were left out. Split {id} ({title}): half of the predictions within "
        "{median} %, nine of ten within {p90} %."
    )
    return text.format(
        count=len(table.results), id=first.id, title=_title(first),
        median=_percent(first.errors.median_percent), p90=_percent(first.errors.p90_percent),
    )  # fmt: skip


def _title(found: Result) -> str:
    about = _ABOUT.get(found.id)
    return words(about.title) if about else found.id


def splits_table(table: Table, by: str | None = None) -> pages.Table:
    """A line for each split, and under it one for each group of the tag."""
    lines = [line for found in table.results.values() for line in _lines(found, by)]
    rules = [rule for rule in RULES if any(rule in line.errors.naive for line in lines)]
    columns: list[Made[_Line]] = [
        column("split", _("Split"), lambda line: word(line.id)),
        column("title", _("Known and asked"), lambda line: word(line.title), rank=1, hidden=False),
        *(_group_column(by) if by else ()),
        *_error_columns(),
        column("goal", _("Goal"), lambda line: word(_(line.goal)), rank=2),
        *(_naive_column(rule) for rule in rules),
    ]
    notes = [_("MAPE: mean absolute percentage error. P90: nine of ten predictions are nearer.")]
    legend = {SPANS: _("Covered: measured values inside the 80 % interval.")}
    if rules:
        notes.append(_("The last columns are the MAPE of plain ratios of data sheets on the same rows."))
    return tabulate(_("How wrong, in per cent"), columns, lines, notes=notes, legend=legend)


def _lines(found: Result, by: str | None) -> Iterator[_Line]:
    about = _ABOUT.get(found.id)
    goal = about.goal if about else ""
    yield _Line(id=found.id, title=_title(found), goal=goal, errors=found.errors)
    for key, errors in found.groups.get(by or "", {}).items():
        yield _Line(id=found.id, title="", goal="", errors=errors, group=key)


def _group_column(by: str) -> Iterator[Made[_Line]]:
    yield column("group", _("By {tag}").format(tag=by), lambda line: word(line.group))


def _error_columns() -> Iterator[Made[_Line]]:
    yield column("mape_percent", _("MAPE"), lambda line: _figure(line.errors.mape_percent), kind="number")
    yield column("median_percent", _("Median"), lambda line: _figure(line.errors.median_percent), kind="number")
    yield column("p90_percent", _("P90"), lambda line: _figure(line.errors.p90_percent), kind="number")
    yield column("coverage_percent", _("Covered"), lambda line: _figure(line.errors.coverage_percent), kind="number")
    yield column("n", _("Rows"), lambda line: _count(line.errors.n), kind="number")
    yield column("refused", _("Refused"), lambda line: _count(line.errors.refused), kind="number", rank=2)


def _naive_column(rule: str) -> Made[_Line]:
    def cell(line: _Line) -> Cell:
        errors = line.errors.naive.get(rule)
        return _figure(errors.mape_percent if errors else None)

    return column(f"{rule}_mape_percent", _(RULES[rule]), cell, kind="number", rank=1)


def _figure(value: float | None) -> Cell:
    if value is None:
        return Cell(shown="–", title=_("there is none"))
    return Cell(shown=_percent(value), value=value)


def _percent(value: float | None) -> str:
    """One decimal where it says something."""
    return "–" if value is None else figures.written(value, ".1f") if value < 20 else figures.written(value, ".0f")


def _count(value: int) -> Cell:
    return Cell(shown=figures.count(value), value=value)


def _questions(table: Table) -> Iterator[Fact]:
    for found in table.results.values():
        about = _ABOUT.get(found.id)
        more = with_semicolons(
            with_colon(_further(name), figures.exact_percent(value / 100, ".1f")) for name, value in found.more.items()
        )
        yield Fact(
            label=_("Split {id}").format(id=found.id), text=words(about.question) if about else found.id, why=more
        )


def _further(name: str) -> str:
    """The name of a figure that only one split has."""
    end = next((end for end in FURTHER_OF if name.endswith(end)), "")
    if not end:
        return _(FURTHER.get(name, name.replace("_", " ")))
    what = name.removesuffix(end)
    return _(FURTHER_OF[end]).format(what=_(OUT[what]) if what in OUT else LINKS.get(what, what))


def _published_table() -> pages.Table:
    columns: list[Made[Published]] = [
        column("name", _("Published by others"), lambda p: word(p.name)),
        column("mape_percent", _("Mean error"), lambda p: _figure(p.mape_percent), kind="number", unit="%"),
        column("inputs", _("Needs"), lambda p: word(words(p.inputs)), rank=1),
        column("measured_on", _("Found on"), lambda p: word(words(p.measured_on))),
        column("source", _("Source"), lambda p: word(p.source), rank=1),
    ]
    notes = [_("Found on other rows than ours: they show what is usual, not who is better.")]
    return tabulate(_("What others reach"), columns, PUBLISHED, notes=notes)


def against_page(scored: Scored, by: str | None = None) -> Page:
    """The answer to `accuracy --against`."""
    blocks: list[Block] = [
        Text(text=_verdict(scored), role="answer"),
        *_seen(scored),
        *against_chart(scored),
        rows_table(scored),
    ]
    if by is not None:
        blocks.append(_groups_table(scored, by))
    naive = [(_(RULES[rule]), errors) for rule, errors in scored.summary.naive.items() if rule in RULES]
    if naive:
        facts = (Fact(label=name, text=_of_errors(errors)) for name, errors in naive)
        blocks.append(Facts(title=_("What plain ratios of data sheets say of the same rows"), facts=tuple(facts)))
    return Page(title=_("How wrong is the predictor on this table?"), blocks=tuple(blocks))


def _verdict(scored: Scored) -> str:
    summary = scored.summary
    if summary.mape_percent is None:
        return _("No row could be predicted and scored; {refused} were refused.").format(refused=_refused(scored))
    text = ngettext(
        "{n} row was predicted: MAPE {mape} %, median {median} %, P90 {p90} %; {inside} % inside the 80 % interval; "
        "{refused} refused.",
        "{n} rows were predicted: MAPE {mape} %, median {median} %, P90 {p90} %; {inside} % inside the 80 % interval; "
        "{refused} refused.",
        summary.n,
    )
    return text.format(
        n=figures.count(summary.n), mape=_percent(summary.mape_percent), median=_percent(summary.median_percent),
        p90=_percent(summary.p90_percent), inside=_percent(summary.coverage_percent), refused=_refused(scored),
    )  # fmt: skip


def _refused(scored: Scored) -> int:
    return sum(row.predicted is None for row in scored.rows)


def _seen(scored: Scored) -> Iterator[Text]:
    if scored.seen:
        text = ngettext(
            "{n} of them is in the bundled tables, workload and GPU: the predictor knew it.",
            "{n} of them are in the bundled tables, workload and GPU: the predictor knew them.",
            scored.seen,
        )
        yield Text(text=text.format(n=figures.count(scored.seen)), role="note")


def rows_table(scored: Scored) -> pages.Table:
    """A line for each row that was to be predicted."""
    columns: list[Made[Outcome]] = [
        column("line", _("Line"), lambda o: _count(o.claim.line), kind="number", rank=1),
        column("group", _("Group"), lambda o: word(o.claim.group)),
        column("workload", _("Workload"), lambda o: word(o.claim.workload)),
        column("accelerator", _("GPU"), _card),
        column("samples_per_s", _("Measured"), _measured, kind="number", unit=_("samples/s")),
        column("predicted_per_s", _("Predicted"), _predicted, kind="estimate", unit=_("samples/s")),
        column("error_percent", _("Error"), _error, kind="number", unit="%"),
        column("reason", _("Remarks"), lambda o: word(_remarks(o)), rank=1),
    ]
    return tabulate(_("Rows"), columns, scored.rows, notes=_long(scored), legend={SPANS: _("Ranges: 80 % intervals.")})


def _card(row: Outcome) -> Cell:
    count = row.claim.settings[0].accelerators if row.claim.settings else 1
    name = row.claim.accelerator or row.claim.name
    return Cell(shown=f"{count} × {row.claim.name}" if count > 1 else row.claim.name, value=name, title=name)


def _measured(row: Outcome) -> Cell:
    rate = row.claim.samples_per_s
    return figures.unknown(None) if rate is None else Cell(shown=figures.number(rate), value=rate)


def _predicted(row: Outcome) -> Cell:
    inside = row.predicted
    if inside is None:
        return Cell(shown=_("refused"), title=words(row.reason) if row.reason else "")
    shown, ends = figures.rounded(Interval(value=inside.value, low=inside.low, high=inside.high), 1.0)
    return Cell(shown=shown, span="–".join(ends), value=inside)


def _error(row: Outcome) -> Cell:
    wrong = row.error_fraction
    if wrong is None:
        return Cell(shown="–", title=words(row.reason) if row.reason else _("nothing was measured there"))
    return Cell(shown=figures.written(100 * wrong, "+.1f"), value=100 * wrong)


def _remarks(row: Outcome) -> str:
    said = [row.reason] if row.reason else list(row.remarks)
    return with_semicolons(words(one) for one in said)


def _long(scored: Scored) -> list[str]:
    said = [_("{n} given rows were predicted from.").format(n=figures.count(scored.given))]
    return [*said, _("Error: predicted / measured − 1.")]


def _groups_table(scored: Scored, by: str) -> pages.Table:
    groups: Sequence[tuple[str, Errors]] = [(key[0], e) for key, e in grouped(scored.scores, by).items()]
    lines = [_Line(id="", title="", goal="", errors=errors, group=key) for key, errors in groups]
    columns: list[Made[_Line]] = [*_group_column(by), *_error_columns()]
    return tabulate(_("By {tag}, in per cent").format(tag=by), columns, lines)


def _of_errors(errors: Errors) -> str:
    return _("MAPE {mape} %, median {median} %, P90 {p90} % (rows: {n})").format(
        mape=_percent(errors.mape_percent), median=_percent(errors.median_percent), p90=_percent(errors.p90_percent),
        n=figures.count(errors.n),
    )  # fmt: skip
