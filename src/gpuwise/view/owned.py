"""The page about owning: the advice, the options side by side, how many, against which prices, and what decides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from gpuwise.api.owning import Owned
from gpuwise.estimate import Interval
from gpuwise.locale import N_, _, with_commas, with_semicolons, words
from gpuwise.own.case import SITES
from gpuwise.own.decide import PATHS, Outcome, Range
from gpuwise.own.fleets import Fleet, Year
from gpuwise.own.ledger import OfLife
from gpuwise.own.market import BreakEven, by_provider
from gpuwise.units import HOURS_PER_MONTH, Hours
from gpuwise.view import figures
from gpuwise.view.flow_chart import flow_chart
from gpuwise.view.moving import moving_table, unmoved
from gpuwise.view.owned_words import figure, gpus, option, years
from gpuwise.view.page import Block, Cell, Fact, Facts, Made, Page, Table, Text, column, tabulate, word
from gpuwise.view.teams import teams_blocks
from gpuwise.view.weighed import figures_table, lead_facts, tornado, weights_table


def owned_page(r: Owned) -> Page:
    """The answer to `own`."""
    return Page(title=_("Own or rent?"), blocks=tuple(_blocks(r)))


def _blocks(r: Owned) -> Iterator[Block]:
    yield Text(text=" ".join(filter(None, (in_short(r), _unmoved(r)))), role="answer")
    yield Text(text=_why(r))
    yield options_table(r)
    yield flow_chart(r)
    if left_out := tuple(_refused(r)):
        yield Facts(title=_("Not among them"), facts=left_out)
    if r.first is not None and not r.assembled.case.at_home:
        yield Text(text=_first(r))
    if r.fleets and not r.assembled.case.at_home:
        yield _fleet_table(r)
        yield _year_table(r)
    yield from teams_blocks(r)
    if r.investment is not None:
        yield Facts(title=_("Buying as an investment, middle case"), facts=tuple(_investment(r)))
    if r.lives:
        yield _life_table(r)
    if r.break_evens:
        yield break_even_table(r)
    if r.weights is not None:
        known = r.assembled.case.figures.by_name
        yield weights_table(r.weights, known, r.fx, _("Saved by owning at its low end"))
        note = _("Right of 0 owning is cheaper; the line is the middle case.")
        yield tornado(r.weights, r.fx, _("Saved by owning"), note)
    yield Facts(title=_("From order to first job"), facts=tuple(lead_facts(r.assembled.leads)))
    if r.move is not None:
        yield moving_table(r.move, r.fx)
    yield Facts(title=_("Energy and carbon"), facts=tuple(_energy(r)))
    yield figures_table(r.assembled.case.figures.by_name)
    if r.assembled.missing:
        absent = with_semicolons(words(each) for each in r.assembled.missing)
        yield Text(text=_("Unknown and not contained: {what}.").format(what=absent), role="note")


# ---- the advice ----


def in_short(r: Owned) -> str:
    """One sentence: what to do, what it costs, how sure that is."""
    best = r.decision.outcomes[r.decision.best]
    rented, owned = (r.decision.outcomes.get(name or "") for name in (r.decision.rented, r.decision.owned))
    values: dict[str, Any] = {"money": _gpu_hour(r, best.usd_per_gpu_hour), "option": option(best.option)}
    if r.advice == "cloud" and rented is not None:
        text = _("Rent: the demand is {rule}. Cheapest to rent: {option}, {money} a useful GPU-hour.")
        if r.request.stage is not None:
            text = _("Rent: you are exploring. Cheapest to rent: {option}, {money} a useful GPU-hour.")
        values |= {"rule": words(r.staged.rule), "option": option(rented.option)}
        return text.format(**values | {"money": _gpu_hour(r, rented.usd_per_gpu_hour)})
    if r.advice == "rent" and owned is None:
        return _own_nothing(r).format(**values | {"option": values["option"][:1].upper() + values["option"][1:]})
    values["chance"] = figures.chance_in_words(r.decision.p_own or 0.0) if r.decision.p_own is not None else ""
    if r.advice == "own" and owned is not None:
        values |= {
            "gpus": gpus(owned.gpus),
            "option": option(owned.option),
            "money": _gpu_hour(r, owned.usd_per_gpu_hour),
        }
        text = _("Own {gpus} ({option}): {money} a useful GPU-hour; owning is cheaper with a probability of {chance}.")
        return (text if values["chance"] else _("Own {gpus} ({option}): {money} a useful GPU-hour.")).format(**values)
    if rented is not None and r.advice == "rent":
        values |= {"option": option(rented.option), "money": _gpu_hour(r, rented.usd_per_gpu_hour)}
        text = _("Rent ({option}): {money} a useful GPU-hour; owning is cheaper with a probability of {chance} only.")
        return text.format(**values)
    text = _(
        "Open: {option} costs least on average, {money} a useful GPU-hour, but owning is cheaper with a probability of "
        "{chance}. Measure next: {figure}."
    )
    return text.format(**values, figure=_next(r))


def _own_nothing(r: Owned) -> str:
    """Owning costs more, or was not weighed at all: these are not the same."""
    case = r.assembled.case
    if any(site in case.open for site in SITES):
        return _("Rent: to own nothing costs least. {option}: {money} a useful GPU-hour.")
    text = _("Cheapest to rent: {{option}}, {{money}} a useful GPU-hour. Owning was not weighed: {why}.")
    return text.format(why=words(case.refused[SITES[-1]]))


def _next(r: Owned) -> str:
    """What is worth most to know: the figure with the largest value of knowing it, else the heaviest."""
    found = r.weights.figures if r.weights else ()
    if not found:
        return _("the demand")
    best = max(found, key=lambda weight: (weight.worth_usd, weight.total_fraction))
    return figure(best.name)


def _unmoved(r: Owned) -> str:
    """Owning asks for the data too."""
    return "" if r.move is None or r.move.stuck is None else unmoved(r.move, dated=False)


def _gpu_hour(r: Owned, spread: Range) -> str:
    shown = figures.interval(_interval(r, spread))
    return _("{value} {money}").format(value=shown, money=figures.code(r.fx))


def _interval(r: Owned, spread: Range) -> Interval:
    low, value, high = (figures.in_currency(x, r.fx) for x in (spread.p10, spread.p50, spread.p90))
    return Interval(value=value, low=low, high=high)


def _why(r: Owned) -> str:
    """What was asked, and what the cloud is."""
    wanted, months = r.assembled.wanted, r.assembled.case.months
    level = wanted.level.value
    hours = _three_digits(level) if level < 100 else figures.count(level)
    growth = r.assembled.case.figures["demand_growth_per_year"].value
    text = _(
        "Demand: {hours} GPU-hours of {gpu} a month, {wanted} GPUs in use on average ({told}), {growth:+.0f} % a year, "
        "over {years}. Stage: {stage} ({rule})."
    )
    first = text.format(
        hours=hours, gpu=figures.device(r.assembled.accelerator.id),
        wanted=_three_digits(level / HOURS_PER_MONTH),
        told=words(wanted.told), growth=100 * growth, years=years(months), stage=_STAGES[r.staged.stage](),
        rule=words(r.staged.rule),
    )  # fmt: skip
    return f"{first} {_cloud(r)}".strip()


_STAGES = {"exploring": lambda: _("exploring"), "growing": lambda: _("growing"), "steady": lambda: _("steady")}


def _cloud(r: Owned) -> str:
    """Which price stands for the cloud, and how it lies among the others."""
    quote = r.assembled.cloud
    if quote is None:
        return ""
    prices = [q.usd_per_gpu_hour for q in by_provider(r.assembled.quotes) if q.way == "on-demand"]
    text = _("The cloud is the cheapest price on demand that is known: {provider}, {price} {money} a GPU-hour ({seen})")
    more = _("; {n} providers ask up to {most}.") if len(prices) > 1 else _(".")
    return (text + more).format(
        provider=quote.offer.provider, price=figures.amount(quote.usd_per_gpu_hour, r.fx), money=figures.code(r.fx),
        seen=figures.of_day(quote.offer.observed, quote.offer.observed_precision), n=len(prices),
        most=figures.amount(max(prices), r.fx),
    )  # fmt: skip


# ---- options ----


def options_table(r: Owned) -> Table:
    """All options over the same chances."""
    money = figures.code(r.fx)
    columns: list[Made[Outcome]] = [
        column("option", _("Option"), lambda row: _option(r, row)),
        column("gpus", _("GPUs held"), lambda row: Cell(shown=_held(row), value=row.gpus)),
        column("usd_per_gpu_hour", _("A useful GPU-hour"), lambda row: _spread(r, row.usd_per_gpu_hour),
               kind="estimate", unit=money),
        *_per_work(r),
        column("present_usd", _("All of it, value today"), lambda row: _spread(r, row.present_usd, 1000.0),
               kind="estimate", unit=_("thousand {money}").format(money=money)),
        column("capex_usd", _("Purchase"), lambda row: _thousands(r, row.capex_usd), kind="number",
               unit=_("thousand {money}").format(money=money), rank=1),
        column("busy_fraction", _("Own GPUs busy"), lambda row: _share(row.busy_fraction), kind="number", rank=2),
        column("p_below_cloud", _("P(below cloud)"), lambda row: _chance(row.p_below_cloud), kind="number", rank=1),
        column("p_cheapest", _("P(cheapest)"), lambda row: _chance(row.p_cheapest), kind="number"),
        column("payback_months", _("Paid back after"), lambda row: _months(row), kind="number", unit=_("months"),
               rank=3),
    ]  # fmt: skip
    notes = [
        _(
            "Over {years} and {paths:,} paths of prices and figures, and of what a record or a "
            "range leaves open of the demand; in brackets 80 % of them."
        ).format(years=years(r.assembled.case.months), paths=PATHS),
        _("Work that no held GPU takes {waits}; what own servers are worth at the end is taken off.").format(
            waits=_("waits, for at most 5 % of the time") if r.assembled.case.at_home else _("is rented by the hour")
        ),
        *_done(r),
    ]
    return tabulate(_("Options"), columns, [one for one in r.decision.outcomes.values() if takes(one)], notes)


def takes(row: Outcome) -> bool:
    """Does the option hold anything that all cloud, on demand, does not?"""
    held = row.gpus > 0 or any(gpus.any() for gpus in row.count.gpus.values())
    return held or row.count.spot or row.option == "on-demand"


def _per_work(r: Owned) -> Iterator[Made[Outcome]]:
    """What a unit of work costs."""
    for work, hours in r.work_gpu_h.items():
        name = _("One training") if work == "run" else _("A million {unit}").format(unit=_unit(r))
        yield column(f"usd_per_{work}", name, partial(_work_cost, r, hours), kind="estimate", unit=figures.code(r.fx))


def _work_cost(r: Owned, hours: Hours, row: Outcome) -> Cell:
    return _spread(r, row.usd_per_gpu_hour * hours)


def _unit(r: Owned) -> str:
    return r.request.throughput.unit if r.request.throughput else ""


def _done(r: Owned) -> Iterator[str]:
    done = r.request.throughput
    if done is not None:
        text = _("A GPU does {n} {unit} a second of work, as you say: exact.")
        yield text.format(n=_three_digits(done.units_per_s), unit=done.unit)


def _three_digits(value: float) -> str:
    return figures.exact_number(float(f"{value:.3g}"))


def _option(r: Owned, row: Outcome) -> Cell:
    mark = _("best") if row.option == r.decision.best else ""
    return Cell(shown=option(row.option), value=row.option, note=mark)


def _held(row: Outcome) -> str:
    """8 own + 4 committed for 1 year; nothing."""
    parts = [_("{n} own").format(n=figures.count(row.gpus))] if row.gpus else []
    for way, rented in row.count.gpus.items():
        low, high = float(rented.min()), float(rented.max())
        if high > 0:
            number = (
                figures.written(low, ".0f")
                if low == high
                else _("{low} to {high}").format(low=figures.written(low, ".0f"), high=figures.written(high, ".0f"))
            )
            parts.append(f"{number} {option(way)}" if row.option == "mix" else number)
    if row.count.spot and row.option == "mix":
        parts.append(_("rest on spot"))
    return " + ".join(parts) or _("none")


def _spread(r: Owned, given: Range, scale: float = 1.0) -> Cell:
    inside = _interval(r, given)
    shown, ends = figures.rounded(inside, scale)
    value = Interval(value=given.p50, low=given.p10, high=given.p90)
    return Cell(shown=shown, span="–".join(ends), value=value, title=_("mean {mean}").format(
        mean=figures.number(figures.in_currency(given.mean, r.fx) / scale)))  # fmt: skip


def _thousands(r: Owned, usd: float) -> Cell:
    return Cell(shown=figures.count(figures.in_currency(usd, r.fx) / 1000), value=usd) if usd else word(_("none"))


def _share(value: float | None) -> Cell:
    return word("") if value is None else Cell(shown=figures.percent(value), value=value)


def _chance(value: float | None) -> Cell:
    return word("") if value is None else Cell(shown=figures.chance(value), value=value)


def _months(row: Outcome) -> Cell:
    if row.payback_months is None:
        return word(_("never") if row.gpus else "")
    return Cell(shown=figures.written(row.payback_months, ".0f"), value=row.payback_months)


def _refused(r: Owned) -> Iterator[Fact]:
    for name, why in r.assembled.case.refused.items():
        yield Fact(label=option(name), text=words(why))
    for one in r.decision.outcomes.values():
        if not takes(one):
            yield Fact(label=option(one.option), text=_("to take none of it costs least"))


def _first(r: Owned) -> str:
    """From which price of the cloud on the first server pays."""
    assert r.first is not None
    text = _("The first own server would be busy {share} of its time: it pays where the cloud costs {price} {money} a "
             "GPU-hour or more ({site}, middle figures).")  # fmt: skip
    return text.format(
        share=figures.percent(r.first.busy_fraction), price=figures.amount(r.first.usd_per_gpu_hour, r.fx),
        money=figures.code(r.fx), site=option(str(r.site)),
    )  # fmt: skip


# ---- how many, against which price ----


def _fleet_table(r: Owned) -> Table:
    columns: list[Made[Fleet]] = [
        column("servers", _("Servers"), lambda row: Cell(shown=figures.count(row.servers), value=row.servers,
               note=_("best") if row.best else ""), kind="number"),
        column("gpus", _("GPUs"), lambda row: Cell(shown=figures.count(row.gpus), value=row.gpus), kind="number"),
        column("present_usd", _("All of it, value today"), lambda row: _thousands(r, row.present_usd), kind="number",
               unit=_("thousand {money}").format(money=figures.code(r.fx))),
        column("owned_fraction", _("Work done on them"), lambda row: _share(row.owned_fraction), kind="number"),
        column("busy_fraction", _("Busy"), lambda row: _share(row.busy_fraction), kind="number"),
        column("last_fraction", _("The last one busy"), lambda row: _share(row.last_fraction), kind="number"),
    ]  # fmt: skip
    title = _("How many to own ({site}), the rest by the hour").format(site=option(str(r.site)))
    return tabulate(title, columns, r.fleets, [_("Means over chance; the best number is chosen by them.")])


def _gpus_wanted(row: Year) -> Cell:
    return Cell(shown=_three_digits(row.gpus_wanted), value=row.gpus_wanted)


def _year_table(r: Owned) -> Table:
    columns: list[Made[Year]] = [
        column("year", _("Year"), lambda row: Cell(shown=str(row.year), value=row.year), kind="number"),
        column("gpus_wanted", _("GPUs wanted"), _gpus_wanted,
               kind="number"),
        column("servers", _("Servers"), lambda row: Cell(shown=figures.count(row.servers), value=row.servers),
               kind="number"),
        column("gpus", _("GPUs to own"), lambda row: Cell(shown=figures.count(row.gpus), value=row.gpus),
               kind="number"),
    ]  # fmt: skip
    return tabulate(_("How many for the demand of each year"), columns, r.years, [_("As if it stayed at that level.")])


ANSWERS = {
    "buy": N_("it pays at every rate from 0 to this one"),
    "do not buy": N_("it pays at no rate from 0 to this one"),
    "depends on the rate": N_("it depends on the rate"),
}


def _investment(r: Owned) -> Iterator[Fact]:
    """What the purchase saves, with interest and without: a saving that is not discounted is no verdict (UC-092)."""
    one, money = r.investment, figures.code(r.fx)
    assert one is not None
    thousand = _("{value} thousand {money}")
    total, present = (
        figures.written(figures.in_currency(usd, r.fx) / 1000, ",.0f") for usd in (one.total_usd, one.npv_usd)
    )
    rates = with_commas(figures.exact_percent(rate, ".3g") for rate in one.break_even_rates if rate >= 0) or _(
        "no rate from 0 % on"
    )
    rented, owned = (option(str(name)) for name in (r.decision.rented, r.decision.owned))
    yield Fact(label=_("Compared"), text=_("{owned} in the place of {rented}").format(owned=owned, rented=rented))
    yield Fact(label=_("Saved, undiscounted"), text=thousand.format(value=total, money=money))
    yield Fact(label=_("Net present value"), text=thousand.format(value=present, money=money),
               why=_("at {rate} a year; {answer}").format(
                   rate=figures.percent(one.yearly_rate_fraction), answer=_(ANSWERS[one.answer])))  # fmt: skip
    yield Fact(label=_("It turns at"), text=rates, why=_("the rates of interest at which both sides cost the same"))


def _life_table(r: Owned) -> Table:
    """UC-094: how long a server is kept moves its year by thousands."""

    def money(usd: float) -> Cell:
        return Cell(shown=figures.count(figures.in_currency(usd, r.fx)), value=usd)

    unit = figures.code(r.fx)
    columns: list[Made[OfLife]] = [
        column("life_years", _("Kept for"),
               lambda row: Cell(shown=figures.written(row.life_years, "g"), value=row.life_years),
               kind="number", unit=_("years")),
        column("capital_usd_per_year", _("Price less resale"), lambda row: money(row.capital_usd_per_year),
               kind="number", unit=unit),
        column("spares_usd_per_year", _("Storage, spares, tax"), lambda row: money(row.spares_usd_per_year),
               kind="number", unit=unit),
        column("upkeep_usd_per_year", _("Place, care, idle energy"), lambda row: money(row.upkeep_usd_per_year),
               kind="number", unit=unit),
        column("total_usd_per_year", _("A year"), lambda row: money(row.total_usd_per_year), kind="number", unit=unit),
    ]  # fmt: skip
    title = _("A year of one server, by how long it is kept ({site})").format(site=option(str(r.site)))
    return tabulate(title, columns, r.lives, [_("Without interest and without the energy of work; middle figures.")])


def break_even_table(r: Owned) -> Table:
    """At how much use owning beats each price."""
    columns: list[Made[BreakEven]] = [
        column("provider", _("Provider"), lambda row: word(row.offer.provider if row.offer else _("your price"))),
        column("way", _("Option"), lambda row: Cell(shown=option(row.way), value=row.way)),
        column("usd_per_gpu_hour", _("A GPU-hour"), lambda row: _price(r, row.usd_per_gpu_hour), kind="number",
            unit=figures.code(r.fx)),
        column("useful_usd_per_gpu_hour", _("Useful"), lambda row: _price(r, row.useful_usd_per_gpu_hour),
            kind="number", unit=figures.code(r.fx), rank=1),
        column("from_fraction", _("Owning pays"), _pays, kind="text"),
        column("observed", _("Price seen"), lambda row: word(figures.day(row.offer.observed,
               row.offer.observed_precision) if row.offer else ""), rank=1),
        column("offer", _("Offer"), lambda row: word(row.offer.id if row.offer else ""), rank=2),
    ]  # fmt: skip
    cluster = any(fleet.best and fleet.servers > 1 for fleet in r.fleets)
    notes = [
        _("Share of all hours in which an owned GPU works ({site}, {what}, middle figures).").format(
            site=option(str(r.site)), what=_("server of a cluster") if cluster else _("single server")
        ),
        _(
            "By the hour a useful GPU-hour counts: with what is billed idle, on spot with what is lost. A commitment "
            "or a machine by the month is paid whatever its use: owning pays where it costs less at that use."
        ),
    ]
    return tabulate(_("Break-even utilisation against each price"), columns, r.break_evens, notes)


def _price(r: Owned, usd: float | None) -> Cell:
    return word("") if usd is None else Cell(shown=figures.amount(usd, r.fx), value=usd)


def _pays(row: BreakEven) -> Cell:
    """From 47 %; up to 80 %; at any use; never."""
    if row.from_fraction is None or row.upto_fraction is None:
        return word(_("never"))
    if row.from_fraction > 0:
        text = _("from {share} busy").format(share=figures.percent(row.from_fraction))
    elif row.upto_fraction < 1:
        text = _("up to {share} busy").format(share=figures.percent(row.upto_fraction))
    else:
        text = _("at any use")
    return Cell(shown=text, value=row.from_fraction)


# ---- the rest ----


def _energy(r: Owned) -> Iterator[Fact]:
    """What the work draws, owned and rented, with the carbon of the countries' electricity."""
    for one in r.energy:
        text = _("{kwh} MWh over {years}").format(
            kwh=figures.number(one.kwh / 1000), years=years(r.assembled.case.months)
        )
        if one.kg_co2e is not None:
            text += _(", {tonnes} t CO2e").format(tonnes=figures.number(one.kg_co2e / 1000))
        label = _("{option}: the rest, rented") if one.rest else "{option}"
        yield Fact(label=label.format(option=option(one.option)), text=text, why=words(one.origin))
