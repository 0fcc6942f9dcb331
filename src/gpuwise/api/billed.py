"""A bill as a demand and a price: which GPU it is about, what was used and paid month by month, and how that grows."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from math import fsum

import numpy as np
from numpy.typing import NDArray

from gpuwise.api.wanted import GROWTH, STEADY, Wanted, idle_end, of_record
from gpuwise.errors import InvalidInput, Message
from gpuwise.model import Accelerator, Assumption
from gpuwise.names import Index, resolve_request
from gpuwise.own.leaving import History
from gpuwise.own.record import Fitted, fit, going_on
from gpuwise.own.usage import Bill
from gpuwise.request import ExitRequest
from gpuwise.store import package
from gpuwise.units import SECONDS_PER_HOUR, Usd, UsdPerHour

Floats = NDArray[np.float64]
LEAST_MONTHS = 3
"""Fewer say nothing about growth; and so many of the last ones say what the cloud costs today."""
CENT: Usd = 0.01
HOURLY_H, WEEKLY_H = 2.0, 170.0
"""Longer charge periods do not tell how use varies within a day, or from week to week."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Used:
    """months: those of the history, the last one last. first: the first day after them, from which months count.

    series: GPUs in use, hour by hour. wanted: the demand that follows. paid: a GPU-hour of the last months. seen: the
    fit of the record. said: what the person must know."""

    accelerator: Accelerator
    months: tuple[str, ...]
    history: History
    first: date
    series: Floats
    wanted: Wanted
    paid: Assumption
    seen: Fitted
    said: tuple[Message, ...]


def used(request: ExitRequest, bill: Bill, as_of: date) -> Used:
    """What the bill says of one accelerator. InvalidInput where it holds no GPU-hours, or none of it."""
    name, notes = _chosen(request, bill)
    kept, remarks = _months(bill, as_of)
    hours = {one: [_slice(bill, bill.by_accelerator[one], month) for month in kept] for one in bill.by_accelerator}
    series = np.concatenate(hours[name])
    gpu_h = {one: np.array([part.sum() for part in parts]) for one, parts in hours.items()}
    history = History(gpu_h=gpu_h[name], effective_usd=_cost(bill, kept, gpu_h, name))
    seen = fit(series)
    growth, more = _growth(request, seen, len(kept))
    device = package.accelerators()[str(_known(request, name))]
    return Used(
        accelerator=device,
        months=tuple(kept),
        history=history,
        first=_next(kept[-1]),
        series=series,
        wanted=_wanted(bill, seen, growth, kept),
        paid=_price(history, kept),
        seen=seen,
        said=(*notes, *remarks, *_credits(bill, kept), *more, *idle_end(seen), *_coarse(bill)),
    )


# ---- which GPU ----


def _chosen(request: ExitRequest, bill: Bill) -> tuple[str | None, list[Message]]:
    """The accelerator that --gpu names, else the one with most GPU-hours; and what is left out for it."""
    hours = {name: float(gpus.sum()) for name, gpus in bill.by_accelerator.items() if gpus.sum() > 0}
    if not hours:
        raise _no_gpu(bill)
    asked = _asked(request)
    among = [name for name in hours if name is not None and (not asked or name in asked)]
    if not among and len(asked) == 1 and None in hours:
        text = "the bill does not say which GPU was used: it is taken to be {gpu}, as --gpu says"
        return None, [*_others(hours, None), Message(text, gpu=asked[0])]
    if not among:
        raise _none_of_it(request, hours)
    best = max(among, key=lambda name: hours[name])
    return best, _others(hours, best)


def _asked(request: ExitRequest) -> list[str]:
    index = Index(package.accelerators().values())
    return sorted({name for text in request.gpu for name in resolve_request(index, text).ids})


def _known(request: ExitRequest, name: str | None) -> str:
    return _asked(request)[0] if name is None else name


def _others(hours: Mapping[str | None, float], best: str | None) -> list[Message]:
    left = sorted(((h, name) for name, h in hours.items() if name != best and name), reverse=True)
    found = []
    if left:
        names = ", ".join(f"{name} {h:,.0f}" for h, name in left)
        text = "the answer is about {gpu} alone; GPU-hours of others in the bill: {names} (ask for one with --gpu)"
        found.append(Message(text, gpu=best or "-", names=names))
    if best is not None and (unknown := hours.get(None)):
        text = "{h:,.0f} GPU-hours of the bill are of a GPU that it does not name, and are left out"
        found.append(Message(text, h=unknown))
    return found


def _no_gpu(bill: Bill) -> InvalidInput:
    names = ", ".join(dict.fromkeys(one.service or "-" for one in bill.services[:8]))
    machines = ", ".join(one.machine for one in bill.unknown[:4])
    if machines:
        return InvalidInput(
            Message("The bill holds machines with GPUs of which nobody says how many: {names}.", names=machines),
            Message("Export SkuPriceDetails with it, whose GpuCount says so; or ask: gpuwise own --record FILE"),
        )
    return InvalidInput(
        Message("The bill holds no GPU-hours. Its services are: {names}.", names=names or "-"),
        Message("Give the export of the accounts that train. For the services alone: gpuwise exit --services LIST"),
    )


def _none_of_it(request: ExitRequest, hours: Mapping[str | None, float]) -> InvalidInput:
    known = ", ".join(f"{name} {h:,.0f}" for name, h in hours.items() if name)
    if not request.gpu:
        return InvalidInput(
            Message("The bill does not say which GPU its GPU-hours are of."),
            Message("Say it with --gpu, such as --gpu A100-40GB."),
        )
    return InvalidInput(
        Message(
            "The bill holds no GPU-hours of {gpu}; it has: {names}.", gpu=",".join(request.gpu), names=known or "-"
        ),
        Message("Name one of them, or leave --gpu out."),
    )


# ---- months ----


def _months(bill: Bill, as_of: date) -> tuple[list[str], list[Message]]:
    """The months of the record that count, and what is missing among them."""
    rows = {month.month for month in bill.months if month.gpu_rows or month.effective}
    assert bill.start is not None
    first = max(f"{bill.start:%Y-%m}", min(rows))
    calendar = list(_calendar(first, max(rows)))
    missing = [month for month in calendar if month not in rows]
    notes = []
    if missing:
        text = "months are missing in the bill: {names}; the others are taken as if they followed one another"
        notes.append(Message(text, names=", ".join(missing)))
    kept = [month for month in calendar if month in rows]
    if len(kept) > 1 and kept[-1] == f"{as_of:%Y-%m}":
        notes.append(Message("{month} is not over yet and is left out", month=kept.pop()))
    return kept, notes


def _calendar(first: str, last: str) -> Iterator[str]:
    while first <= last:
        yield first
        first = f"{_next(first):%Y-%m}"


def _next(month: str) -> date:
    return (date.fromisoformat(f"{month}-28") + timedelta(days=4)).replace(day=1)


def _slice(bill: Bill, gpus: Floats, month: str) -> Floats:
    """The hours of a month, from the first GPU-hour of the bill on; a month without any is one of 0 GPUs."""
    assert bill.start is not None
    begin = datetime.fromisoformat(f"{month}-01").replace(tzinfo=UTC)
    at = round((begin - bill.start).total_seconds() / SECONDS_PER_HOUR)
    number = 24 * monthrange(begin.year, begin.month)[1]
    found = gpus[max(at, 0) : max(at + number, 0)]
    return found if len(found) else np.zeros(number)


# ---- what was paid ----


def _cost(bill: Bill, kept: Sequence[str], gpu_h: Mapping[str | None, Floats], name: str | None) -> Floats:
    """Effective cost of this accelerator, month by month: its part of what all GPUs cost.

    The parts are by GPU-hours, weighed with what the rows of each kind cost on average: what is billed beside them, or
    for commitments that were not used, follows.
    """
    totals = dict.fromkeys(kept, 0.0)
    for month in bill.months:
        if month.month in totals:
            totals[month.month] += month.gpu_effective + month.gpu_corrections
    whole = {one: float(hours.sum()) for one, hours in gpu_h.items()}
    dear = {one: bill.paid.get(one, 0.0) / whole[one] for one in whole if whole[one] > 0}
    known = bool(dear) and min(dear.values()) > 0
    parts = {one: hours * (dear.get(one, 0.0) if known else 1.0) for one, hours in gpu_h.items()}
    every = np.sum(list(parts.values()), axis=0)
    usual = float(parts[name].sum() / every.sum())
    share = np.where(every > 0, parts[name] / np.where(every > 0, every, 1.0), usual)
    return np.asarray(share * np.array([totals[month] for month in kept]))


def _credits(bill: Bill, kept: Sequence[str]) -> list[Message]:
    """Credits of the months that count, of all services: a bill does not say for which of them they are."""
    usd = fsum(month.credits for month in bill.months if month.month in kept)
    if abs(usd) < CENT / 2:
        return []
    text = (
        "credits took {usd:,.2f} USD off the bill, {first} to {last}: the price of a GPU-hour and the premium leave "
        "them out; the premium that was paid was lower by up to that much while they lasted"
    )
    taken_back = "credits of {usd:,.2f} USD were taken back, {first} to {last}: price and premium leave that out"
    return [Message(text if usd < 0 else taken_back, usd=abs(usd), first=kept[0], last=kept[-1])]


def _price(history: History, kept: Sequence[str]) -> Assumption:
    """A GPU-hour of the last months, or of all where the last ones have none."""
    last = slice(-LEAST_MONTHS, None)
    hours, usd = history.gpu_h[last], history.effective_usd[last]
    if hours.sum() <= 0:
        hours, usd = history.gpu_h, history.effective_usd
    price: UsdPerHour = float(usd.sum() / hours.sum())
    if price <= 0:
        raise InvalidInput(
            Message("The GPU-hours of the bill cost nothing: {usd:.2f} USD in all.", usd=float(usd.sum())),
            Message("Give an export with EffectiveCost, without credits taken off."),
        )
    note = f"effective cost over GPU-hours, {kept[max(0, len(kept) - len(hours))]} to {kept[-1]}"
    return Assumption(name="cloud_usd_per_gpu_hour", value=price, low=None, high=None, unit="USD/h", source="bill",
                      observed=_next(kept[-1]) - timedelta(days=1), note=note)  # fmt: skip


# ---- how it grows ----


def _growth(request: ExitRequest, seen: Fitted, months: int) -> tuple[Assumption | None, list[Message]]:
    """A trend is taken to go on for as long as it was seen, spread over the horizon: nothing doubles for ever."""
    if months < LEAST_MONTHS or seen.growth_fraction_per_year is None:
        text = "{n} months are too few for a trend: demand is taken to stay as it is (--set demand_growth_per_year=…)"
        return None, [Message(text, n=months)]
    low, value, high = going_on(seen, request.horizon_months)
    text = (
        "use changed by {seen:+.0%} a year over {months} months, which is taken to go on for as long again: "
        "{value:+.0%} a year over the horizon (yours: --set demand_growth_per_year=LOW..HIGH)"
    )
    made = Assumption(name=GROWTH, value=value, low=low, high=high, unit="1/year", source="bill",
                      note="the trend of the bill, going on for as long as it was seen")  # fmt: skip
    steady = abs(seen.growth_fraction_per_year) < STEADY
    return made, [] if steady else [Message(text, seen=seen.growth_fraction_per_year, months=months, value=value)]


def _wanted(bill: Bill, seen: Fitted, growth: Assumption | None, kept: Sequence[str]) -> Wanted:
    told = Message("bills of {n} months, {first} to {last}", n=len(kept), first=kept[0], last=kept[-1])
    found = of_record(seen, told, source="bill")
    resolution = bill.resolution_h or 0.0
    return replace(
        found,
        growth=growth,
        shape=found.shape if resolution <= HOURLY_H else None,
        weeks=found.weeks if resolution <= WEEKLY_H else (),
    )


def _coarse(bill: Bill) -> list[Message]:
    if (bill.resolution_h or 0.0) <= HOURLY_H:
        return []
    text = "rows of the bill are {hours:.0f} h long: how use varies within them is not known, and is assumed"
    return [Message(text, hours=bill.resolution_h)]
