"""One page that a manager can sign: what to do, what comes second, what would turn it, and until when it holds.

Its tables are rows and columns of the full page, so that no figure of it can differ from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import ceil

from gpuwise.api.jobs import Ranked
from gpuwise.api.leaving import Left
from gpuwise.api.owning import Owned
from gpuwise.estimate import probability_less
from gpuwise.locale import _
from gpuwise.model import Assumption, Candidate, Fx
from gpuwise.own.decide import Outcome
from gpuwise.own.sensitivity import Weights
from gpuwise.view import figures
from gpuwise.view.candidates import candidate_table, ranked, setting
from gpuwise.view.left import dates_table, waiting_facts
from gpuwise.view.left import in_short as when_to_leave
from gpuwise.view.owned import in_short as own_or_rent
from gpuwise.view.owned import options_table, takes
from gpuwise.view.owned_words import figure
from gpuwise.view.page import Block, Fact, Facts, Page, Table, Text, stated
from gpuwise.view.ranking import answer_sentences

HOLDS_DAYS = 30
"""For so long sellers' quotes usually hold: a judgement. A price that turns stale before it ends it sooner."""
TURNS_SHOWN = 4
LINE = "_" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    """title: the question. lead: the recommendation. table: it beside the runner-up. turns: what would flip it.
    valid: until when, and why. stands: what the figures are from. worth: of doing it now, where that is known."""

    title: str
    lead: str
    table: Table | None
    turns: tuple[Fact, ...]
    valid: tuple[Fact, ...]
    stands: tuple[Fact, ...]
    worth: tuple[Fact, ...] = ()


def _page(one: _Decision) -> Page:
    blocks: list[Block] = [Text(text=one.lead, role="answer")]
    if one.table is not None:
        blocks.append(one.table)
    named = ((_("Now, and waiting"), one.worth), (_("What would turn it"), one.turns), (_("Valid until"), one.valid),
             (_("What it stands on"), one.stands))  # fmt: skip
    blocks += [Facts(title=title, facts=facts) for title, facts in named if facts]
    signed = (_("Decision"), _("Name and date"), _("Signature"))
    blocks.append(Facts(title=_("Decided"), facts=tuple(Fact(label=label, text=LINE) for label in signed)))
    foot = _("All figures and their origin: the full report.")
    return Page(title=one.title, blocks=tuple(blocks), foot=foot, upright=True)


def picked(table: Table, title: str, keys: Sequence[str], rows: Sequence[int]) -> Table:
    """Some rows and columns of a table, in the order of the table's columns; none of its notes."""
    kept = [place for place, column in enumerate(table.columns) if column.key in keys]
    return replace(
        table,
        title=title,
        columns=tuple(replace(table.columns[place], rank=0) for place in kept),
        rows=tuple(tuple(table.rows[row][place] for place in kept) for row in rows),
        notes=(),
        legend={},
    )


def _until(as_of: date, stale: date | None = None) -> Fact:
    end = as_of + timedelta(days=HOLDS_DAYS)
    if stale is not None and stale < end:
        return Fact(label=figures.day(stale), text=_("then the price of it is too old to be compared"))
    return Fact(label=figures.day(end), text=_("ask again then: quotes usually hold for {n} days").format(n=HOLDS_DAYS))


# ---- rank ----


def ranking_summary(r: Ranked) -> Page:
    """Of `rank`: for the first job, the cheapest offer and the next."""
    given = setting(r.ranking, r.fx, r.request.deadline_s, r.request.price_per)
    name = r.ranking.workloads[0].name
    known = {c.offer.id: c for c in (*r.ranking.candidates, *r.ranking.frontier) if c.workload == name}
    order = sorted((c for c in known.values() if _costs(c)), key=_cost)[:2]
    keys = ("accelerator", "provider", "market", "time_s", "cost_usd", "cost_share_usd", "p_cheapest",
            "price_usd_per_hour", "observed")  # fmt: skip
    table = candidate_table(r.ranking, order, given) if order else None
    shown = table and picked(table, _("Side by side"), _shown(table, keys), range(len(order)))
    page = _page(
        _Decision(
            title=_("Where {workload} runs").format(workload=name),
            lead=" ".join(answer_sentences(r.ranking, r.request, given, name)),
            table=shown,
            turns=tuple(_turns_of_offers(order)),
            valid=tuple(_valid_offers(order, r)),
            stands=tuple(_priced(order, r.fx)),
        )
    )
    of = r.ranking
    return stated(page, warnings=of.warnings, data_version=of.data_version, as_of=of.as_of)


def _shown(table: Table, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(column.key for column in table.columns if column.key in keys and not column.hidden)


def _costs(candidate: Candidate) -> bool:
    return ranked(candidate) is not None and candidate.offer.market != "free"


def _cost(candidate: Candidate) -> float:
    found = ranked(candidate)
    assert found is not None
    return found.value


def _turns_of_offers(order: Sequence[Candidate]) -> Iterator[Fact]:
    if len(order) < 2:
        yield Fact(label=_("No runner-up"), text=_("no other offer passes the filters"))
        return
    first, second = (ranked(candidate) for candidate in order)
    assert first is not None
    assert second is not None
    name = order[1].offer.provider
    text = _("its bill lies {more} above; it is the cheaper one with a probability of {chance}")
    yield Fact(label=_("Runner-up: {name}").format(name=name), text=text.format(
        more=figures.percent(second.value / first.value - 1),
        chance=figures.chance_in_words(probability_less(second, first))))  # fmt: skip
    yield Fact(label=_("Least sure"), text=figures.budget(first), why=_("of the bill; a measured run narrows it"))


def _valid_offers(order: Sequence[Candidate], r: Ranked) -> Iterator[Fact]:
    if not order:
        return
    offer = order[0].offer
    stale = None if offer.observed is None else offer.observed + timedelta(days=r.request.max_age_days)
    yield _until(r.ranking.as_of, stale)
    if offer.market == "spot":
        yield Fact(label=_("Spot"), text=_("its price changes by the hour: look before you start"))


def _priced(order: Sequence[Candidate], fx: Fx | None) -> Iterator[Fact]:
    for one in order:
        seen = figures.of_day(one.offer.observed, one.offer.observed_precision)
        listed = one.price_usd_per_hour or one.offer.price_usd_per_hour
        priced = _("{price} {money} an hour, {seen}")
        text = seen if listed is None else priced.format(
            price=figures.amount(listed, fx), money=figures.code(fx), seen=seen)  # fmt: skip
        yield Fact(label=one.offer.provider, text=text, why=one.offer.source.ref)


# ---- own ----


def owned_summary(r: Owned) -> Page:
    """Of `own`: what is advised beside the best of the other side."""
    outcomes = [one for one in r.decision.outcomes.values() if takes(one)]
    order = _advised(r, outcomes)
    keys = ("option", "gpus", "usd_per_gpu_hour", "usd_per_run", "usd_per_million_units", "present_usd", "capex_usd",
            "p_cheapest", "payback_months")  # fmt: skip
    known = r.assembled.case.figures.by_name
    return _page(
        _Decision(
            title=_("Own or rent"),
            lead=own_or_rent(r),
            table=picked(options_table(r), _("Side by side"), keys, [outcomes.index(one) for one in order]),
            turns=tuple(_turns(r.weights, known, _("owning"), _("renting"))),
            valid=(_until(r.as_of), *_renewals(r)),
            stands=tuple(_stands(known)),
        )
    )


def _advised(r: Owned, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The advice first, then the best that rents where it owns, and the other way round."""
    names = [r.decision.owned, r.decision.rented] if r.advice == "own" else [r.decision.rented, r.decision.owned]
    there = {one.option: one for one in outcomes}
    found = [there[name] for name in names if name in there]
    rest = sorted((one for one in outcomes if one not in found), key=lambda one: one.present_usd.mean)
    return [*found, *rest][:2]


def _turns(weights: Weights | None, known: Mapping[str, Assumption], one: str, other: str) -> Iterator[Fact]:
    """Figures at whose ends the other side costs less."""
    if weights is None:
        return
    turning = [w for w in weights.figures if (w.low_usd > 0) != (weights.saving_usd > 0)
               or (w.high_usd > 0) != (weights.saving_usd > 0)]  # fmt: skip
    for weight in turning[:TURNS_SHOWN]:
        at_low = (weight.low_usd > 0) != (weights.saving_usd > 0)
        given = known[weight.name]
        end = given.low if at_low else given.high
        side = one if weights.saving_usd <= 0 else other
        assert end is not None
        text = _("at {end} {side} costs less").format(end=_said(end, given.unit), side=side)
        yield Fact(label=figure(weight.name), text=text)
    if not turning:
        yield Fact(label=_("No single figure"), text=_("none of them turns it alone, within its range"))


def _renewals(r: Owned) -> Iterator[Fact]:
    bought = r.assembled.case.figures.by_name.get("server_usd")
    if bought is not None and bought.observed is not None:
        text = _("get a quote: the one it stands on is of {day}").format(day=figures.day(bought.observed))
        yield Fact(label=_("Price of a server"), text=text)


HEAVY = ("demand_gpu_h_per_month", "cloud_usd_per_gpu_hour", "server_usd", "electricity_usd_per_kwh", "life_years",
         "discount_fraction")  # fmt: skip


def _stands(known: Mapping[str, Assumption]) -> Iterator[Fact]:
    for name in (name for name in HEAVY if name in known):
        one = known[name]
        origin = " ".join(filter(None, (one.source, str(one.observed or ""))))
        yield Fact(label=figure(name), text=_range(one), why=origin)


def _range(one: Assumption) -> str:
    """4 (3 to 6) years."""
    scaled, unit = _readable(one.unit)
    value, low, high = (None if x is None else figures.exact_number(float(f"{scaled * x:.4g}"))
                        for x in (one.value, one.low, one.high))  # fmt: skip
    if low is None or high is None or low == high:
        return f"{value} {unit}".strip()
    return _("{value} ({low} to {high}) {unit}").format(value=value, low=low, high=high, unit=unit).strip()


def _said(value: float, unit: str) -> str:
    scaled, name = _readable(unit)
    return f"{figures.exact_number(float(f'{scaled * value:.4g}'))} {name}".strip()


def _readable(unit: str) -> tuple[float, str]:
    """A factor, and the unit as people write it: shares in per cent."""
    known = {"1": (100.0, "%"), "1/year": (100.0, _("% a year")), "year": (1.0, _("years"))}
    return known.get(unit, (1.0, unit))


# ---- exit ----


def left_summary(r: Left) -> Page:
    """Of `exit`: the dates, what waiting costs, and what would turn it."""
    table, known = dates_table(r), r.assembled.case.figures.by_name
    ends = _("it ends in {month}: ask again before it renews")
    renewals = [Fact(label=p.name, text=ends.format(month=r.month(ceil(p.end_month) - 1))) for p in r.promises]
    return _page(
        _Decision(
            title=_("When to leave the cloud"),
            lead=when_to_leave(r),
            table=picked(table, table.title, ("date", "month", "servers"), range(len(table.rows))),
            turns=tuple(_turns(r.exit.weights, known, _("leaving now"), _("staying"))),
            worth=tuple(waiting_facts(r)),
            valid=(_until(r.as_of), *renewals),
            stands=tuple(_stands(known)),
        )
    )
