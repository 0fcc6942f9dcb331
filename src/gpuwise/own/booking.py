"""Facts of cost exports → the bill: every rule of which row counts where. The rules stand at the top of `own.usage`.

Two more: an export that rounds EffectiveCost (the public FOCUS sample does: 13 for 12.126483) is told by ROUNDED_ROWS
rows or more of use that bill odd amounts and all have whole EffectiveCosts; and what a commitment leaves unused is of
GPUs in the proportion in which it was used for them, unless its rows name the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Literal

import numpy as np

from gpuwise.errors import InvalidInput, Message
from gpuwise.own.usage import (
    NOTHING,
    Bill,
    BillMonth,
    Commitment,
    Fact,
    FlowSpend,
    Kind,
    Pricing,
    Reading,
    RegionSpend,
    ServiceSpend,
    Spans,
    UnknownMachine,
    hourly,
    resolution_h,
)
from gpuwise.units import Fraction

ROUNDED_ROWS = 5
Shares = Mapping[tuple[str, str], Fraction]
"""(id of a commitment, currency) -> the part of its use that went to GPUs."""


def booked(facts: Iterable[Fact], spans: Spans, reading: Reading, rates: Mapping[str, float] | None = None) -> Bill:
    """The bill of all facts. rates: currency -> USD for one unit, which makes all amounts USD; None: each its own.

    InvalidInput where a currency has no rate.
    """
    given = list(facts)
    read, rounded = _unrounded([_in_usd(fact, rates) for fact in given])
    commitments = _commitments(read)
    shares = {(c.id, c.currency): c.gpu_fraction or 0.0 for c in commitments}
    unknown = _unknown(read)
    start, series, clipped_gpu_h = hourly(spans)
    gpus = np.sum([*series.values()], axis=0) if series else np.zeros(0)
    return Bill(
        rows=sum(fact.rows for fact in read) + reading.rejected,
        files=reading.files,
        months=_months(read, shares),
        start=start,
        gpus=gpus,
        by_accelerator=series,
        resolution_h=resolution_h(spans),
        services=_services(read, shares),
        regions=_regions(read),
        flows=_flows(read),
        commitments=commitments,
        unknown=unknown,
        rejected=reading.rejected,
        rejects=reading.rejects,
        notes=(*reading.notes, *_rate_notes(given, rates), *_notes(read, rounded, unknown, clipped_gpu_h)),
        paid=_paid(reading, rates),
    )


def _in_usd(fact: Fact, rates: Mapping[str, float] | None) -> Fact:
    if rates is None or fact.currency == "USD":
        return fact
    if (rate := rates.get(fact.currency)) is None:
        raise InvalidInput(
            Message("The bill holds {currency}, and there is no rate for it.", currency=fact.currency),
            Message("Give USD for one of it, such as --currency {currency} --rate 1.16.", currency=fact.currency),
        )
    return replace(
        fact,
        currency="USD",
        effective=fact.effective * rate,
        billed=fact.billed * rate,
        listed=None if fact.listed is None else fact.listed * rate,
        contracted=None if fact.contracted is None else fact.contracted * rate,
    )


def _rate_notes(facts: Sequence[Fact], rates: Mapping[str, float] | None) -> list[Message]:
    """The rates that were taken."""
    used = sorted({fact.currency for fact in facts} & set(rates or ()) - {"USD"})
    text = "amounts in {currency} are taken at {rate:.6g} USD each"
    return [Message(text, currency=currency, rate=(rates or {})[currency]) for currency in used]


def _paid(reading: Reading, rates: Mapping[str, float] | None) -> dict[str | None, float]:
    """In USD with rates; without them only where there is one currency."""
    if rates is None and len({currency for _name, currency, _amount in reading.paid}) > 1:
        return {}
    found: dict[str | None, float] = defaultdict(float)
    for name, currency, amount in reading.paid:
        found[name] += amount * (1.0 if rates is None or currency == "USD" else rates[currency])
    return dict(found)


def _unrounded(facts: Sequence[Fact]) -> tuple[list[Fact], tuple[str, ...]]:
    """BilledCost in the place of an EffectiveCost that the provider's export rounds, but for rows of a commitment."""
    odd: dict[str, int] = defaultdict(int)
    whole: dict[str, int] = defaultdict(int)
    for fact in facts:
        odd[fact.provider] += fact.odd
        whole[fact.provider] += fact.whole
    rounded = tuple(sorted(name for name, count in odd.items() if count >= ROUNDED_ROWS and whole[name] == count))
    exact = [
        replace(fact, effective=fact.billed) if fact.provider in rounded and fact.status is None else fact
        for fact in facts
    ]
    return exact, rounded


def _is_trend(fact: Fact) -> bool:
    return fact.kind == "usage"


def _is_gpu(fact: Fact) -> bool:
    return fact.role in ("machine", "card", "beside")


def _gpu_part(fact: Fact, shares: Shares) -> Fraction:
    """1 for GPUs; for what is unused of a commitment that names no machine, the part that went to GPUs when used."""
    if _is_gpu(fact):
        return 1.0
    if fact.status == "unused" and fact.commitment is not None and fact.role == "none":
        return shares.get((fact.commitment, fact.currency), 0.0)
    return 0.0


# ---- the sums ----


def _months(facts: Sequence[Fact], shares: Shares) -> tuple[BillMonth, ...]:
    keys = {(f.currency, f.month) for f in facts if f.kind in ("usage", "correction")}
    keys |= {(f.currency, f.invoice) for f in facts}
    used: dict[tuple[str, str], list[Fact]] = {key: [] for key in keys}
    invoiced: dict[tuple[str, str], list[Fact]] = {key: [] for key in keys}
    for fact in facts:
        invoiced[fact.currency, fact.invoice].append(fact)
        if fact.kind in ("usage", "correction"):
            used[fact.currency, fact.month].append(fact)
    return tuple(_month(key, used[key], invoiced[key], shares) for key in sorted(keys))


def _month(key: tuple[str, str], used: Sequence[Fact], invoiced: Sequence[Fact], shares: Shares) -> BillMonth:
    trend = [fact for fact in used if _is_trend(fact)]
    parts = [(fact, part) for fact in trend if (part := _gpu_part(fact, shares))]
    return BillMonth(
        month=key[1],
        currency=key[0],
        effective=fsum(fact.effective for fact in trend),
        list_cost=_sum_or_none([fact.listed for fact in trend]),
        contracted=_sum_or_none([fact.contracted for fact in trend]),
        unused=fsum(fact.effective for fact in trend if fact.unused),
        gpu_rows=sum(fact.rows for fact in used if fact.role in ("machine", "card")),
        instance_h=fsum(fact.hours for fact in used if fact.role in ("machine", "card")),
        gpu_h=fsum(fact.gpu_h for fact in used),
        standard_gpu_h=_gpu_h(used, "standard"),
        committed_gpu_h=_gpu_h(used, "committed"),
        spot_gpu_h=_gpu_h(used, "spot"),
        other_gpu_h=_gpu_h(used, "other"),
        gpu_effective=fsum(fact.effective * part for fact, part in parts),
        gpu_list=_sum_or_none([None if fact.listed is None else fact.listed * part for fact, part in parts]),
        gpu_unused=fsum(fact.effective * part for fact, part in parts if fact.unused),
        gpu_corrections=fsum(fact.effective for fact in used if fact.kind == "correction" and _is_gpu(fact)),
        billed=fsum(fact.billed for fact in invoiced),
        purchases=_billed(invoiced, "purchase"),
        credits=_billed(invoiced, "credit"),
        refunds=_billed(invoiced, "adjustment", "correction"),
        tax=_billed(invoiced, "tax"),
    )


def _gpu_h(facts: Sequence[Fact], pricing: Pricing) -> float:
    return fsum(fact.gpu_h for fact in facts if fact.pricing == pricing)


def _billed(facts: Sequence[Fact], *kinds: Kind) -> float:
    return fsum(fact.billed for fact in facts if fact.kind in kinds)


def _sum_or_none(amounts: Sequence[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return fsum(known) if known else None


def _services(facts: Sequence[Fact], shares: Shares) -> tuple[ServiceSpend, ...]:
    """The dearest first."""
    groups: dict[tuple[str, str, str, str], list[Fact]] = defaultdict(list)
    for fact in filter(_is_trend, facts):
        groups[fact.provider, fact.service, fact.category, fact.currency].append(fact)
    spends = (
        ServiceSpend(
            provider=provider,
            service=service,
            category=category,
            currency=currency,
            effective=fsum(fact.effective for fact in group),
            gpu_effective=fsum(fact.effective * _gpu_part(fact, shares) for fact in group),
        )
        for (provider, service, category, currency), group in sorted(groups.items())
    )
    return tuple(sorted(spends, key=lambda spend: -spend.effective))


def _regions(facts: Sequence[Fact]) -> tuple[RegionSpend, ...]:
    groups: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.kind in ("usage", "correction"):
            groups[fact.provider, fact.region, fact.currency].append(fact)
    spends = (
        RegionSpend(
            provider=provider,
            region=region,
            currency=currency,
            effective=fsum(fact.effective for fact in group if _is_trend(fact)),
            gpu_h=fsum(fact.gpu_h for fact in group),
        )
        for (provider, region, currency), group in sorted(groups.items())
    )
    return tuple(sorted(spends, key=lambda spend: -spend.effective))


def _flows(facts: Sequence[Fact]) -> tuple[FlowSpend, ...]:
    groups: dict[tuple[Literal["egress", "storage"], str, str], list[float]] = defaultdict(list)
    for fact in filter(_is_trend, facts):
        if fact.flow is not None:
            groups[fact.flow, fact.provider, fact.currency].append(fact.effective)
    return tuple(
        FlowSpend(kind=kind, provider=provider, currency=currency, effective=fsum(amounts))
        for (kind, provider, currency), amounts in sorted(groups.items())
    )


def _commitments(facts: Sequence[Fact]) -> tuple[Commitment, ...]:
    groups: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.commitment is not None:
            groups[fact.commitment, fact.currency].append(fact)
    return tuple(_commitment(*key, group) for key, group in sorted(groups.items()))


def _commitment(name: str, currency: str, facts: Sequence[Fact]) -> Commitment:
    used = [fact for fact in facts if fact.status == "used" and _is_trend(fact)]
    spent = fsum(fact.effective for fact in used)
    gpu_fraction = fsum(fact.effective for fact in used if _is_gpu(fact)) / spent if spent else None
    return Commitment(
        id=name,
        provider=min(fact.provider for fact in facts),
        category=max(fact.commitment_category for fact in facts),
        type=max(fact.commitment_type for fact in facts),
        currency=currency,
        used=spent,
        unused=fsum(fact.effective for fact in facts if fact.status == "unused" and _is_trend(fact)),
        bought=_billed(facts, "purchase"),
        first=min(fact.first for fact in facts),
        last=max(fact.last for fact in facts),
        until=max((fact.last for fact in facts if fact.kind == "purchase"), default=None),
        gpu_fraction=gpu_fraction,
    )


def _unknown(facts: Sequence[Fact]) -> tuple[UnknownMachine, ...]:
    groups: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.role == "unknown" and fact.kind in ("usage", "correction"):
            groups[fact.machine or "", fact.provider, fact.currency].append(fact)
    return tuple(
        UnknownMachine(
            machine=machine,
            provider=provider,
            currency=currency,
            rows=sum(fact.rows for fact in group),
            hours=fsum(fact.hours for fact in group),
            effective=fsum(fact.effective for fact in group if _is_trend(fact)),
        )
        for (machine, provider, currency), group in sorted(groups.items())
    )


# ---- what must be said ----


def _notes(
    facts: Sequence[Fact], rounded: Sequence[str], unknown: Sequence[UnknownMachine], clipped_gpu_h: float
) -> list[Message]:
    notes = [
        Message(
            "{provider}: EffectiveCost is rounded to whole amounts; BilledCost was used in its place, except for "
            "commitments",
            provider=provider,
        )
        for provider in rounded
    ]
    notes += [
        Message(
            "{machine} ({provider}): GPUs by its name, and nobody says how many or how long: {rows} rows, "
            "{hours:.6g} h and {amount:.2f} {currency} are not in the GPU figures",
            machine=each.machine, provider=each.provider, rows=each.rows, hours=each.hours, amount=each.effective,
            currency=each.currency,
        )
        for each in unknown
    ]  # fmt: skip
    if clipped_gpu_h > NOTHING:
        text = "corrections take {gpu_h:.6g} GPU-hours from hours without use: they are netted in months, not in hours"
        notes.append(Message(text, gpu_h=clipped_gpu_h))
    if len(currencies := sorted({fact.currency for fact in facts})) > 1:
        notes.append(Message("several currencies stand apart: {names}", names=", ".join(currencies)))
    return notes + _purchase_notes(facts)


def _purchase_notes(facts: Sequence[Fact]) -> list[Message]:
    """A purchase that is no commitment may hold an EffectiveCost, which the trend then lacks."""
    amounts: dict[str, float] = defaultdict(float)
    for fact in facts:
        if fact.kind == "purchase" and fact.commitment is None:
            amounts[fact.currency] += fact.effective
    return [
        Message(
            "purchases that are no commitment have an effective cost of {amount:.2f} {currency}, which the trend lacks",
            amount=amount,
            currency=currency,
        )
        for currency, amount in sorted(amounts.items())
        if abs(amount) >= 0.005
    ]
