"""The page about leaving: the date in a sentence, the dates side by side, the meter, moving, and the checklist."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuwise.api.leaving import Left
from gpuwise.estimate import Interval
from gpuwise.locale import _, with_semicolons, words
from gpuwise.own.decide import Range
from gpuwise.view import figures
from gpuwise.view.chart import SCHEMA
from gpuwise.view.checklist import checklist_table, lock_in
from gpuwise.view.committed import commitment_facts
from gpuwise.view.moving import moving_table, unmoved
from gpuwise.view.owned_words import fleet, gpus, years
from gpuwise.view.page import Block, Cell, Chart, Fact, Facts, Made, Page, Table, Text, column, tabulate, word
from gpuwise.view.weighed import figures_table, lead_facts, tornado, weights_table

NEVER = "never"
DATED = ("leave", "later")
"""Advice that names a date."""
OF_OTHERS = ("committed", "spot", "dedicated")
"""Figures of ways to rent, of which none is asked here."""


def left_page(r: Left) -> Page:
    """The answer to `exit`."""
    return Page(title=_("When to leave the cloud?"), blocks=tuple(_blocks(r)))


def _blocks(r: Left) -> Iterator[Block]:
    known = {name: one for name, one in r.assembled.case.figures.by_name.items() if _counts(r, name)}
    yield Text(text=" ".join(filter(None, (in_short(r), _waits(r), _unmoved(r)))), role="answer")
    yield Text(text=_asked(r))
    yield dates_table(r)
    yield Facts(title=_("The premium, and what leaving costs"), facts=tuple(_meter(r)))
    yield _meter_chart(r)
    yield Facts(title=_("Leaving now, and waiting"), facts=tuple(waiting_facts(r)))
    if facts := tuple(commitment_facts(r)):
        yield Facts(title=_("Commitments"), facts=facts)
    yield Facts(title=_("From order to first job"), facts=(*lead_facts(r.assembled.leads), *_waiting(r)))
    if r.moved is not None:
        yield moving_table(r.moved, r.fx)
    yield weights_table(r.exit.weights, r.assembled.case.figures.by_name, r.fx, _("Saved now at its low end"))
    note = _("Right of 0 leaving now is cheaper; the line is the middle case.")
    yield tornado(r.exit.weights, r.fx, _("Saved by leaving now"), note)
    yield Text(text=lock_in(r.checklist))
    yield checklist_table(r.checklist)
    yield figures_table(known)
    if r.unknown:
        left_out = with_semicolons(words(each) for each in r.unknown)
        yield Text(text=_("Unknown and not contained: {what}.").format(what=left_out), role="note")


def _counts(r: Left, name: str) -> bool:
    """Does the answer stand on this figure?"""
    other = {"office": ("pue_colocation", "colocation_usd_per_kw_month"), "colocation": ("pue_office",)}[r.site]
    return not name.startswith(OF_OTHERS) and name not in other


# ---- the answer ----


def in_short(r: Left) -> str:
    """One or two sentences: leave or stay, when, and with how many GPUs; or why not."""
    if r.advice == "cloud" and r.request.stage is not None:
        return _("Stay in the cloud: you are exploring.")
    if r.advice == "cloud":
        text = _("Stay in the cloud: the demand is {rule}.")
        return text.format(rule=words(r.assembled.staged.rule))
    if r.advice == "never" and r.exit.month is not None:
        return _("Stay in the cloud: {why}").format(why=_why_nothing(r))
    if r.advice == "never":
        text = _("Stay in the cloud: the date to leave never comes within {years}. {why}")
        return text.format(years=years(r.assembled.case.months), why=_why_never(r))
    values: dict[str, Any] = {
        "month": _in_words(r, r.exit.month), "gpus": gpus(r.exit.gpus), "fleet": fleet(r.exit.servers, r.site),
        "order": _in_words(r, r.exit.order_month), "chance": figures.chance_in_words(r.exit.p_pays),
    }  # fmt: skip
    if r.advice == "leave":
        text = _("Leave: the date has come ({month}). Own {gpus} ({fleet}), to be ordered in "
                 "{order}. Leaving now pays with a probability of {chance}.")  # fmt: skip
        return text.format(**values)
    now = r.exit.order_month is not None and r.exit.order_month <= r.now
    text = _("Leave in {month} ({low} to {high} with a probability of 80 %). Then own {gpus} ({fleet}), "
             "to be ordered in {order}.")  # fmt: skip
    urgent = _("Leave in {month} ({low} to {high} with a probability of 80 %). Then own {gpus} ({fleet}); "
               "order them now, for they take their time.")  # fmt: skip
    low, high = _in_words(r, r.exit.p10_month), _in_words(r, r.exit.p90_month)
    return (urgent if now else text).format(**values, low=low, high=high)


def _waits(r: Left) -> str:
    """Why the order comes after the date."""
    month, order = r.exit.month, r.exit.order_month
    if r.advice not in DATED or month is None or order is None or order <= month:
        return ""
    return _("The order waits for the end of a commitment, which would be paid on for work that has left.")


def _unmoved(r: Left) -> str:
    """What the date leaves out because nobody can move it, or knows at what price."""
    return "" if r.moved is None else unmoved(r.moved, dated=r.advice in DATED)


def _month(r: Left, number: int | None) -> str:
    return r.month(number) or _("never")


def _in_words(r: Left, number: int | None) -> str:
    """A month as a sentence has it."""
    found = r.month(number)
    return _("never") if found is None else figures.year_month(found)


def _why_nothing(r: Left) -> str:
    """There is a date, and to own nothing costs least all the same."""
    if r.exit.robust.month is not None and r.exit.robust.month <= r.now:
        return _("from now on it costs least to own nothing, although the premium paid so far would have bought "
                 "servers.")  # fmt: skip
    text = _("as things stand it costs least to own nothing. The premium would be worth leaving in {month} only: ask "
             "again with the bills to come.")  # fmt: skip
    return text.format(month=_in_words(r, r.exit.month))


def _why_never(r: Left) -> str:
    if r.exit.robust.month is not None:
        text = _("The premium reaches what leaving costs in {month}, but leaving does not pay surely enough; without "
                 "that the rule waits for {times:.3g} times as much (--trust {trust}), which does not come."
                 )  # fmt: skip
        trust = r.request.trust_fraction
        return text.format(month=_in_words(r, r.exit.robust.month), times=1 / trust, trust=figures.percent(trust))
    most = float(r.exit.meter_usd.max(initial=0.0))
    if most <= 0:
        return _("For this work even one own server costs more than the cloud bills.")
    text = _("The premium paid to the cloud reaches {most} of the {barrier} {money} that leaving costs.")
    return text.format(most=figures.count(figures.in_currency(most, r.fx)),
                       barrier=figures.count(figures.in_currency(r.exit.barrier_usd, r.fx)),
                       money=figures.code(r.fx))  # fmt: skip


def _asked(r: Left) -> str:
    """What the bill says."""
    level, growth = r.used.wanted.level, r.assembled.case.figures["demand_growth_per_year"].value
    text = _(
        "The bill: {hours} GPU-hours of {gpu} a month at its end ({told}), {price} {money} each, all of it taken as "
        "demand. Stage: {stage}. Ahead: {years}, {growth:+.0f} % a year. Months count from {first}."
    )
    return text.format(
        hours=figures.count(level.value), gpu=figures.device(r.used.accelerator.id), told=words(r.used.wanted.told),
        price=figures.amount(r.used.paid.value, r.fx), money=figures.code(r.fx),
        stage=words(r.assembled.staged.rule), years=years(r.assembled.case.months), growth=100 * growth,
        first=_in_words(r, 0),
    )  # fmt: skip


# ---- dates ----


@dataclass(frozen=True, slots=True, kw_only=True)
class _Date:
    """A row of the table of dates."""

    key: str
    name: str
    number: int | None
    servers: int | None
    says: str


def dates_table(r: Left) -> Table:
    """Every date of the answer."""
    columns: list[Made[_Date]] = [
        column("date", _("Date"), lambda row: Cell(shown=row.name, value=row.key)),
        column("month", _("Month"), lambda row: Cell(shown=_month(r, row.number), value=r.month(row.number) or NEVER)),
        column("servers", _("Servers"), lambda row: word("") if row.servers is None
               else Cell(shown=figures.count(row.servers), value=row.servers), kind="number"),
        column("says", _("What it says"), lambda row: word(row.says), rank=1),
    ]  # fmt: skip
    notes = []
    if r.exit.p_never > 0:
        text = _("On {share} of the paths the date does not come within {years}.")
        notes.append(text.format(share=figures.chance(r.exit.p_never), years=years(r.assembled.case.months)))
    return tabulate(_("When to leave"), columns, list(_dates(r)), notes)


def _dates(r: Left) -> Iterator[_Date]:
    e = r.exit
    for key, name, number, servers, says in (
        ("robust", _("robust"), e.robust.month, e.robust.servers,
         _("the premium paid reaches what leaving costs: needs no forecast, at most twice the cost of hindsight while "
           "servers cost no more than the cloud bills")),
        ("probable", _("probable"), e.probable.month, e.probable.servers,
         _("leaving pays with 80 %, two months running, and the servers are busy enough")),
        ("rule", _("both together"), e.month, None,
         _("the probable date, kept to what the premium allows: --trust {trust}").format(
             trust=figures.percent(r.request.trust_fraction))),
        ("p10", _("the same, by 10 % of the paths"), e.p10_month, None, ""),
        ("p50", _("the same, by 50 % of the paths"), e.p50_month, None, ""),
        ("p90", _("the same, by 90 % of the paths"), e.p90_month, None, ""),
        ("order", _("order"), e.order_month, e.servers or None,
         _("{weeks} weeks before it, or before the end of a commitment where that is worth more").format(
             weeks=figures.written(r.assembled.case.figures["lead_weeks"].value, ".0f"))),
    ):  # fmt: skip
        yield _Date(key=key, name=name, number=number, servers=None if number is None else servers, says=says)


# ---- the meter ----


def _meter(r: Left) -> Iterator[Fact]:
    e, money = r.exit, figures.code(r.fx)
    servers = max(e.servers, 1)
    text = _("{amount} {money}").format
    yield Fact(label=_("Premium paid so far"), text=text(amount=_whole(r, e.premium_usd), money=money),
               why=_("cloud bill less what {fleet} would have cost to run, {first} to {last}").format(
                   fleet=fleet(servers, r.site), first=figures.year_month(r.used.months[0]),
                   last=figures.year_month(r.used.months[-1])))  # fmt: skip
    yield Fact(label=_("What leaving costs"), text=text(amount=_whole(r, e.barrier_usd), money=money),
               why=_of_moving(r).format(usd=_whole(r, r.moving_usd), money=money))  # fmt: skip
    yield Fact(label=_("How many to own now"), text=_("{gpus} ({fleet})").format(
        gpus=gpus(e.gpus), fleet=fleet(e.servers, r.site)) if e.servers else _("none"))  # fmt: skip
    needed = _("none: no use of them would pay") if e.break_even_fraction is None else figures.percent(
        e.break_even_fraction)  # fmt: skip
    why = _("{fleet} with today's work; break-even utilisation {needed}")
    why = why.format(fleet=fleet(servers, r.site), needed=needed)
    yield Fact(label=_("Busy"), text=figures.percent(e.utilisation_fraction), why=why)


def _of_moving(r: Left) -> str:
    if r.moving_reason is None:
        return _("the servers less their worth at the end, and {usd} {money} of moving")
    if not r.moving_usd:
        return _("the servers less their worth at the end; what moving costs is unknown and not contained")
    return _("the servers less their worth at the end, and {usd} {money} of moving; what it costs to take the data out "
             "is unknown and not contained")  # fmt: skip


def _whole(r: Left, usd: float) -> str:
    return figures.count(figures.in_currency(usd, r.fx))


def _meter_chart(r: Left) -> Chart:
    """The premium summed up, past and to come, against what leaving costs."""
    rows = [
        {"month": f"{r.month(number - r.exit.past)}-01", "premium": figures.in_currency(float(usd), r.fx) / 1000,
         "part": _("paid") if number < r.exit.past else _("to come, middle case")}
        for number, usd in enumerate(r.exit.meter_usd)
    ]  # fmt: skip
    head = _("Premium so far, thousand {money}").format(money=figures.code(r.fx))
    barrier = figures.in_currency(r.exit.barrier_usd, r.fx) / 1000
    line: dict[str, Any] = {
        "mark": {"type": "line"},
        "encoding": {
            "x": {"field": "month", "type": "temporal", "title": None},
            "y": {"field": "premium", "type": "quantitative", "title": head},
            "color": {"field": "part", "type": "nominal", "title": None},
        },
    }
    rule = {"mark": {"type": "rule"}, "encoding": {"y": {"datum": barrier}}}
    alt = _("A line of the premium from {first} on, {paid} paid by now, against the {barrier} that leaving costs.")
    return Chart(
        title=_("Premium meter"),
        alt=alt.format(first=figures.year_month(r.used.months[0]), paid=_whole(r, r.exit.premium_usd),
                       barrier=_whole(r, r.exit.barrier_usd)),
        spec={"$schema": SCHEMA, "data": {"values": rows}, "layer": [line, rule]},
        note=_("For {fleet}; the rule across is what leaving costs.").format(
            fleet=fleet(max(r.exit.servers, 1), r.site)),
    )  # fmt: skip


# ---- waiting ----


def waiting_facts(r: Left) -> Iterator[Fact]:
    """What leaving now saves, and what waiting loses."""
    money = figures.code(r.fx)
    text = _("{value} thousand {money}")
    yield Fact(
        label=_("Saved by leaving now"),
        text=text.format(value=_spread(r, r.exit.value_usd), money=money),
        why=_("over {years}, value today; above 0 with {chance}").format(
            years=years(r.assembled.case.months), chance=figures.chance_in_words(r.exit.p_pays)
        ),
    )
    for months, lost in r.exit.wait_usd.items():
        label = _("Lost by waiting {n} months").format(n=months)
        yield Fact(label=label, text=text.format(value=_spread(r, lost), money=money))


def _spread(r: Left, given: Range) -> str:
    low, value, high = (figures.in_currency(x, r.fx) / 1000 for x in (given.p10, given.p50, given.p90))
    return figures.interval(Interval(value=value, low=low, high=high))


def _waiting(r: Left) -> Iterator[Fact]:
    """The time in which servers are on their way, and the cloud is paid all the same."""
    monthly = r.used.wanted.level.value * r.used.paid.value
    text = _("{weeks} weeks in the middle, in which the cloud bills {usd} {money} all the same")
    yield Fact(label=_("Meanwhile"), text=text.format(
        weeks=figures.written(r.assembled.case.figures["lead_weeks"].value, ".0f"),
        usd=_whole(r, monthly * r.lead_months), money=figures.code(r.fx)))  # fmt: skip
    if r.payback_months is None:
        shown = _("not within {years}").format(years=years(r.assembled.case.months))
    else:
        shown = _("{n} months after an order now").format(n=figures.written(r.payback_months, ".1f"))
    yield Fact(label=_("Paid back"), text=shown, why=_("middle figures, {fleet}").format(
        fleet=fleet(max(r.exit.servers, 1), r.site)))  # fmt: skip
