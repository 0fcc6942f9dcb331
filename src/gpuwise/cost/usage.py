"""The bill of machines from the events that were recorded: time in running states × price, and disks while stopped.

Two bills are made: one leaves all unknown time out, the other bills it. Where they differ the answer is a range, and
each unknown stretch is named. Times are rounded as the provider rounds them (`cost.billing`), session by session.

Source: SkyPilot issues 2769 and 1751 (cost that goes on after an autostop, cost of launches that failed). Test value:
running 08:00, stopped 10:00, asked at 22:58, 4.444 USD/h: 8.888 USD, and the disks of 12.97 h; launch failed: 0 USD.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import fsum
from typing import Literal

import numpy as np

from gpuwise.cost.billing import ROUNDING, Floats, in_steps
from gpuwise.cost.commitments import settle
from gpuwise.cost.states import DIFFERENT_DISKS, Event, Span, in_order, meaning, spans
from gpuwise.errors import Message
from gpuwise.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, Fraction, Seconds

Kind = Literal["compute", "billing step", "disk", "commitment", "covered"]
BY_THE_SECOND: Seconds = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """A machine and what was seen of it. Prices are in `currency`, of one node.

    price_per_hour: while it runs. disk_price_per_month: of its disks while it is stopped; None: nobody said.
    billing_step_s, billing_minimum_s: how the provider rounds a session. file: where it is recorded.
    """

    name: str
    price_per_hour: float
    events: tuple[Event, ...]
    currency: str = "USD"
    disk_price_per_month: float | None = None
    nodes: int = 1
    billing_step_s: Seconds = BY_THE_SECOND
    billing_minimum_s: Seconds = 0.0
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A commitment to spend `per_hour` in each hour from `start` on, at rates that lie off_fraction below on-demand.

    end: None where it goes on. machines: those that it covers; all of its currency if none is named.
    """

    per_hour: float
    start: datetime
    currency: str = "USD"
    off_fraction: Fraction = 0.0
    end: datetime | None = None
    machines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the bill: amount = quantity × unit_price, unrounded, in `currency`.

    sure: False for what unknown time would add. machine: empty for a line of a commitment.
    """

    machine: str
    kind: Kind
    quantity: float
    unit: Literal["h", "month"]
    unit_price: float
    amount: float
    currency: str
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A stretch of unknown time of a machine. most: what it would cost, by the second; None without a price."""

    machine: str
    span: Span
    most: float | None
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a commitment, summed over its hours: paid = used + wasted; over: usage above it."""

    currency: str
    hours: int
    per_hour: float
    paid: float
    used: float
    wasted: float
    over: float
    on_demand: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What one currency comes to, with unknown time billed and not: the ends. Several currencies are never added up."""

    currency: str
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageBill:
    """The whole bill up to `until`. hours: machine-hours that surely ran. notes: doubts about the records."""

    until: datetime
    machines: int
    hours: float
    lines: tuple[Line, ...]
    unknown: tuple[Unknown, ...]
    totals: tuple[Total, ...]
    kept: tuple[Kept, ...] = ()
    notes: tuple[Message, ...] = field(default=())


def usage_bill(meters: Sequence[Meter], until: datetime, promises: Sequence[Promise] = ()) -> UsageBill:
    """What these machines cost up to a moment."""
    seen = [(meter, spans(meter.events, until)) for meter in meters]
    kept = [_kept(promise, seen, until) for promise in promises]
    lines = [line for meter, found in seen for line in _lines(meter, found)]
    lines += [line for promise in kept for line in _promise_lines(promise)]
    sure = [meter.nodes * span.length_s for meter, found in seen for span in found if _sure(span)]
    return UsageBill(
        until=until,
        machines=sum(meter.nodes for meter in meters),
        hours=fsum(sure) / SECONDS_PER_HOUR,
        lines=tuple(lines),
        unknown=tuple(_unknown(meter, span) for meter, found in seen for span in found if span.why is not None),
        totals=tuple(_totals(meters, lines)),
        kept=tuple(kept),
        notes=tuple(note for meter, found in seen for note in (*_notes(meter, found), *_open(meter, until))),
    )


def _sure(span: Span) -> bool:
    return span.kind == "compute" and span.why is None


def _lines(meter: Meter, found: Sequence[Span]) -> Iterator[Line]:
    """What is sure, then what unknown time would add."""
    sure_s = meter.nodes * fsum(span.length_s for span in found if _sure(span))
    low_s = _billed_s(meter, [span for span in found if _sure(span)])
    high_s = _billed_s(meter, [span for span in found if span.kind == "compute"])
    yield _line(meter, "compute", sure_s / SECONDS_PER_HOUR)  # though it be 0: that nothing is billed is an answer
    if low_s - sure_s > ROUNDING * low_s:
        yield from _priced(meter, "billing step", (low_s - sure_s) / SECONDS_PER_HOUR)
    yield from _priced(meter, "compute", (high_s - low_s) / SECONDS_PER_HOUR, sure=False)
    for sure in (True, False):
        disk_s = fsum(span.length_s for span in found if span.kind == "disk" and (span.why is None) == sure)
        yield from _priced(meter, "disk", meter.nodes * disk_s / SECONDS_PER_HOUR / HOURS_PER_MONTH, sure=sure)


def _priced(meter: Meter, kind: Kind, quantity: float, *, sure: bool = True) -> Iterator[Line]:
    """A line where there is something to bill; disks without a price get a remark instead (`_notes`)."""
    if quantity and (kind != "disk" or meter.disk_price_per_month is not None):
        yield _line(meter, kind, quantity, sure=sure)


def _line(meter: Meter, kind: Kind, quantity: float, *, sure: bool = True) -> Line:
    price = (meter.disk_price_per_month or 0.0) if kind == "disk" else meter.price_per_hour
    return Line(
        machine=meter.name, kind=kind, quantity=quantity, unit="month" if kind == "disk" else "h", unit_price=price,
        amount=quantity * price, currency=meter.currency, sure=sure,
    )  # fmt: skip


def _billed_s(meter: Meter, found: Sequence[Span]) -> Seconds:
    """Seconds on the bill of all nodes: stretches that meet are one session, and each session is rounded up."""
    lengths = list[Seconds]()
    for before, span in zip([None, *found], found, strict=False):
        if before is not None and before.end == span.start:
            lengths[-1] += span.length_s
        else:
            lengths.append(span.length_s)
    return meter.nodes * float(in_steps(np.array(lengths), meter.billing_step_s, meter.billing_minimum_s).sum())


def _unknown(meter: Meter, span: Span) -> Unknown:
    price = meter.price_per_hour
    if span.kind == "disk":
        price = np.nan if meter.disk_price_per_month is None else meter.disk_price_per_month / HOURS_PER_MONTH
    most = meter.nodes * span.length_s / SECONDS_PER_HOUR * price
    return Unknown(machine=meter.name, span=span, most=None if np.isnan(most) else most, currency=meter.currency)


def _totals(meters: Sequence[Meter], lines: Sequence[Line]) -> Iterator[Total]:
    """Rounding can make the joined session of a longer use the cheaper one: low and high are the ends all the same."""
    for currency in dict.fromkeys([*(meter.currency for meter in meters), *(line.currency for line in lines)]):
        known = fsum(line.amount for line in lines if line.currency == currency and line.sure)
        billed = fsum(line.amount for line in lines if line.currency == currency)
        yield Total(currency=currency, low=min(known, billed), high=max(known, billed))


def _open(meter: Meter, until: datetime) -> Iterator[Message]:
    """What the last event of a machine leaves open just where the bill ends."""
    last = max(meter.events, key=lambda event: event.when, default=None)
    if last is None or last.when < until:
        return
    if meaning(last.state) == "running":
        text = "{machine}: it still runs at its last record, and is billed up to that moment: say until when (--until)"
        yield Message(text, machine=meter.name)
    elif meaning(last.state) is None:
        yield Message('{machine}: "{state}" is no state that is known', machine=meter.name, state=last.state)


def _notes(meter: Meter, found: Sequence[Span]) -> Iterator[Message]:
    if not in_order(meter.events):
        yield Message("{machine}: its events are not in order; they were sorted by time", machine=meter.name)
    first = min(meter.events, key=lambda event: event.when, default=None)
    if first and meaning(first.state) not in ("waiting", "running", "failed"):
        yield Message(
            '{machine}: the first event is "{state}", and what was before it is in no record',
            machine=meter.name,
            state=first.state,
        )
    stopped_s = fsum(span.length_s for span in found if span.kind == "disk")
    if stopped_s and meter.disk_price_per_month is None:
        yield Message(
            "{machine}: disks of a stopped machine are billed, and nobody said their price (disk_price_per_month)",
            machine=meter.name,
        )
    differing = next((e.state for e in meter.events if e.state.casefold() in DIFFERENT_DISKS), None)
    if differing and meter.disk_price_per_month is not None:
        yield Message(
            '{machine}: "{state}" is read as deleted; where your cloud keeps the disks, write stopped',
            machine=meter.name,
            state=differing,
        )


# ---- commitments ----


def _kept(promise: Promise, seen: Sequence[tuple[Meter, Sequence[Span]]], until: datetime) -> Kept:
    """The commitment against what the machines used in each of its hours. An hour that has begun is paid."""
    end = min(until, promise.end or until)
    hours = max(0, int(np.ceil((end - promise.start).total_seconds() / SECONDS_PER_HOUR)))
    covered = [
        (meter, found)
        for meter, found in seen
        if meter.currency == promise.currency and (not promise.machines or meter.name in promise.machines)
    ]
    sure, whole = (
        (1 - promise.off_fraction) * _summed([_hourly(m, f, promise.start, hours, sure) for m, f in covered], hours)
        for sure in (True, False)
    )
    settled, most = (settle(usage, promise.per_hour, promise.off_fraction) for usage in (sure, whole))
    return Kept(
        currency=promise.currency,
        hours=hours,
        per_hour=promise.per_hour,
        paid=fsum(settled.paid_usd),
        used=fsum(settled.used_usd),
        wasted=fsum(settled.wasted_usd),
        over=fsum(settled.over_usd),
        on_demand=fsum(settled.on_demand_usd),
        low=fsum(settled.used_usd) / (1 - promise.off_fraction),
        high=fsum(most.used_usd) / (1 - promise.off_fraction),
    )


def _summed(rows: Sequence[Floats], length: int) -> Floats:
    """The sum of arrays, zeros if there is none."""
    return np.sum(rows, axis=0) if rows else np.zeros(length)


def _hourly(meter: Meter, found: Sequence[Span], start: datetime, hours: int, sure: bool) -> Floats:
    """What a machine used in each hour, at its own price; shape (hours,)."""
    used, hour = np.zeros(hours), timedelta(hours=1)
    for span in found:
        if span.kind == "compute" and (span.why is None or not sure):
            begin, end = ((t - start) / hour for t in (span.start, span.end))
            edges = np.arange(hours)
            used += np.clip(np.minimum(edges + 1, end) - np.maximum(edges, begin), 0, 1)
    return np.asarray(used * meter.nodes * meter.price_per_hour)


def _promise_lines(kept: Kept) -> Iterator[Line]:
    """What is paid for the hours, and what the machines need not pay because of it, at on-demand rates."""

    def line(kind: Kind, quantity: float, price: float, sure: bool = True) -> Line:
        return Line(
            machine="", kind=kind, quantity=quantity, unit="h", unit_price=price, amount=quantity * price,
            currency=kept.currency, sure=sure,
        )  # fmt: skip

    if kept.hours:
        yield line("commitment", kept.hours, kept.per_hour)
        yield line("covered", kept.hours, -kept.low / kept.hours)
    if kept.high > kept.low:
        yield line("covered", kept.hours, -(kept.high - kept.low) / kept.hours, sure=False)
