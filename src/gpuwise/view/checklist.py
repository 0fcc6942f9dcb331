"""The checklist: services in use, what takes their place elsewhere, and how much of the spend is locked in."""

from __future__ import annotations

from gpuwise.api.leaving import Listed
from gpuwise.locale import _, ngettext, with_semicolons, words
from gpuwise.own.checklist import Checklist, Item
from gpuwise.view import figures
from gpuwise.view.page import Cell, Made, Page, Table, Text, column, tabulate, word

UNKNOWN = "?"
"""Class of a service that the table does not have."""


def listed_page(r: Listed) -> Page:
    """The answer to `exit --services`."""
    blocks = (Text(text=lock_in(r.checklist), role="answer"), checklist_table(r.checklist))
    return Page(title=_("What replaces the services of the cloud?"), blocks=blocks)


def listed_table(r: Listed) -> Table:
    return checklist_table(r.checklist)


def lock_in(found: Checklist) -> str:
    """The lock-in score in a sentence, with what it does not know."""
    share = figures.percent(found.lock_in_fraction)
    if not found.by_spend:
        text = ngettext(
            "Lock-in score: {share} of {n} service has no open counterpart (class C). It counts alike: without a bill "
            "nobody knows what it costs.",
            "Lock-in score: {share} of {n} services have no open counterpart (class C). They count alike: without a "
            "bill nobody knows what each costs.",
            len(found.items),
        )
        return _with_unknown(text.format(share=share, n=len(found.items)), found)
    text = _("Lock-in score: {share} of the spend is on services without an open counterpart (class C).")
    return _with_unknown(text.format(share=share), found)


def _with_unknown(said: str, found: Checklist) -> str:
    if not found.unknown_fraction:
        return said
    spent = _("{unknown} is on services that are not in the table, and may add to it.")
    alike = _("{unknown} of them are not in the table, and may add to it.")
    more = (spent if found.by_spend else alike).format(unknown=figures.percent(found.unknown_fraction))
    return f"{said} {more}"


def checklist_table(found: Checklist) -> Table:
    share = _("Share of the spend") if found.by_spend else _("Share of the services")
    columns: list[Made[Item]] = [
        column("service", _("Service"), lambda row: Cell(shown=_name(row), value=_name(row), title=row.use.name)),
        column("class", _("Class"), lambda row: word(row.service.portability if row.service else UNKNOWN)),
        column("replacement", _("Takes its place"), lambda row: word(_replacement(row))),
        column("gives", _("What it gives"), lambda row: word(_(row.service.gives) if row.service else ""), rank=1),
        column("effort", _("Effort"), _effort, rank=3),
        column("fraction", share, lambda row: Cell(shown=figures.percent(row.fraction), value=row.fraction),
               kind="number"),
        column("valid", _("Holds"), lambda row: word(_valid(row)), rank=2),
        column("source", _("Source"), lambda row: word(row.service.source if row.service else ""), rank=4),
    ]  # fmt: skip
    notes = [
        _("A: an open product with the same interface. B: an open product, with changes. C: none, a rewrite."),
        _("Effort is shown where a source states it."),
    ]
    if found.unknown_fraction:
        notes.append(_("A service that is not in the table may be of any class: judge it yourself."))
    return tabulate(_("Checklist"), columns, found.items, notes)


def _name(row: Item) -> str:
    return row.service.name if row.service else row.use.name


def _replacement(row: Item) -> str:
    """What takes its place, with what has to be known about it; or that nobody says."""
    if row.service is None:
        return words(row.missing) if row.missing else ""
    return with_semicolons(filter(None, (_(row.service.replacement) or _("nothing"), _(row.service.note))))


def _effort(row: Item) -> Cell:
    if row.service is None or row.service.effort_low_days is None or row.service.effort_high_days is None:
        return figures.unknown(None)
    low, high = figures.written(row.service.effort_low_days, "g"), figures.written(row.service.effort_high_days, "g")
    return word(_("{low} to {high} days").format(low=low, high=high))


def _valid(row: Item) -> str:
    if row.service is None:
        return ""
    if row.service.valid_until is None:
        return _("from {day}").format(day=row.service.valid_from)
    return _("{first} to {last}").format(first=row.service.valid_from, last=row.service.valid_until)
