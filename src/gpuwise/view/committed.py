"""Commitments of a bill in facts: what must be paid on and until when, how well each was used, and what was wasted."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from gpuwise.api.committed import Committed
from gpuwise.api.leaving import Left
from gpuwise.locale import _, ngettext
from gpuwise.own.leaving import Promise
from gpuwise.view import figures
from gpuwise.view.page import Fact

SHOWN = 8
"""So many commitments of a bill are shown, the dearest; the JSON has them all."""


def commitment_facts(r: Left) -> Iterator[Fact]:
    """Those that a person said, then those of the bill; none where there are none."""
    promised = {promise.name: promise for promise in r.promises}
    of_bill = {one.commitment.id for one in r.committed}
    for promise in r.promises:
        if promise.name not in of_bill:
            yield Fact(label=promise.name, text=_renewal(r, promise))
    for one in r.committed[:SHOWN]:
        paid_on = promised.get(one.commitment.id)
        text = _end(one) if paid_on is None else _renewal(r, paid_on)
        yield Fact(label=one.commitment.id, text=text, why=_use(r, one))
    if rest := r.committed[SHOWN:]:
        text = ngettext("{n} more, of which {usd} {money} were left unused: see --json",
                        "{n} more, of which {usd} {money} were left unused: see --json", len(rest))  # fmt: skip
        unused = sum(one.commitment.unused for one in rest)
        yield Fact(label=_("Others"), text=text.format(n=len(rest), usd=_whole(r, unused), money=figures.code(r.fx)))


def _renewal(r: Left, promise: Promise) -> str:
    text = _("{money_a_month} {money} a month until {month}; the date comes before it with {chance}")
    return text.format(money_a_month=_whole(r, promise.usd_per_month), money=figures.code(r.fx),
                       month=figures.year_month(r.month(ceil(promise.end_month) - 1) or ""),
                       chance=figures.chance_in_words(r.exit.p_before[promise.name]))  # fmt: skip


def _end(one: Committed) -> str:
    if one.end is None:
        return _("the bill does not say until when")
    return _("until {day}").format(day=one.end)


def _use(r: Left, one: Committed) -> str:
    """Of its cost in the bill: the part that was used, and the money for the rest."""
    used = one.commitment.utilisation_fraction
    if used is None:
        return _("the bill does not say whether it was used")
    text = _("{share} of it used; {usd} {money} left unused")
    return text.format(share=figures.percent(used), usd=_whole(r, one.commitment.unused), money=figures.code(r.fx))


def _whole(r: Left, usd: float) -> str:
    return figures.count(figures.in_currency(usd, r.fx))
