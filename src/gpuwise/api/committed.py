"""Commitments of a bill: how well they were used, until when they run, and what of them must be paid on.

The record of a commitment that is bought month by month ends with the bill, and so does its last purchase: its end is
known only where what was bought ends after the bill, or its use before.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from gpuwise.errors import Message
from gpuwise.own.leaving import Promise
from gpuwise.own.usage import Bill, Commitment
from gpuwise.request import ExitRequest
from gpuwise.units import HOURS_PER_MONTH, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A commitment of the bill. end: its last day, ahead or past; None where the bill does not say it."""

    commitment: Commitment
    end: date | None


def committed(bill: Bill, first: date) -> tuple[Committed, ...]:
    """All of them, the dearest first. first: the first day after the bill."""
    found = sorted(bill.commitments, key=lambda one: -(one.used + one.unused))
    return tuple(Committed(commitment=one, end=_end(one, first)) for one in found)


def _end(one: Commitment, first: date) -> date | None:
    if one.until is not None and _last_day(one.until) >= first:
        return _last_day(one.until)
    return _last_day(one.last) if _ended(one, first) else None


def _last_day(end: datetime) -> date:
    """What ends at midnight has the day before as its last one."""
    return (end - timedelta(seconds=1)).date()


def _ended(one: Commitment, first: date) -> bool:
    return (first - one.last.date()).days > 1


def promised(request: ExitRequest, bill: Bill, first: date) -> tuple[tuple[Promise, ...], list[Message]]:
    """Commitments that go on after the bill: those that the person says, and those of which the bill has the end."""
    notes: list[Message] = []
    found = []
    for said in request.committed_until:
        if said.until < first:
            notes.append(Message("--committed-until {day} has passed, and changes nothing", day=said.until))
            continue
        name, months = f"{said.until:%Y-%m-%d}", _months_until(said.until, first)
        found.append(Promise(name=name, usd_per_month=said.usd_per_month, end_month=months))
    said_ends = {(said.until.year, said.until.month) for said in request.committed_until}
    for one in bill.commitments:
        if one.gpu_fraction is None and one.unused > 0:
            text = "commitment {name}: nothing used it, so it is not known whether it is for GPUs; it is not contained"
            notes.append(Message(text, name=one.id))
            continue
        end, monthly = _end(one, first), _monthly_usd(one, first)
        if monthly <= 0 or (end is not None and (end.year, end.month) in said_ends):
            continue  # what the person says of that end stands for it
        if end is not None:
            found.append(Promise(name=one.id, usd_per_month=monthly, end_month=_months_until(end, first)))
        elif not request.committed_until:
            text = (
                "commitment {name}: {usd:,.0f} USD a month, and the bill does not say until when; say "
                "--committed-until DATE=MONEY"
            )
            notes.append(Message(text, name=one.id, usd=monthly))
    return tuple(found), notes


def _monthly_usd(one: Commitment, first: date) -> Usd:
    """What its GPUs cost a month, used or not; 0 where it has ended with the bill or before."""
    if _ended(one, first):
        return 0.0
    seen = min(one.last.date(), first) - one.first.date()  # the purchase's row ends with its term, after the bill
    months = max(24 * seen.days / HOURS_PER_MONTH, 1.0)
    return (one.used + one.unused) * (one.gpu_fraction or 0.0) / months


def _months_until(day: date, first: date) -> float:
    whole = 12 * (day.year - first.year) + day.month - first.month
    return whole + day.day / monthrange(day.year, day.month)[1]
