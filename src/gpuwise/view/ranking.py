"""The page of a ranking: the answer first, then what to beware of, the picture, the table, and what was left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from gpuwise.locale import _, with_commas, with_semicolons, words
from gpuwise.model import Candidate, Fx, Offer, Ranking
from gpuwise.predict.tested import Tested
from gpuwise.request import JobFilters, RankRequest, Takes
from gpuwise.units import SECONDS_PER_HOUR
from gpuwise.view import figures
from gpuwise.view.candidates import Setting, candidate_table, ranked, setting, shown
from gpuwise.view.chart import cost_time_chart
from gpuwise.view.page import Block, Cell, Column, Fact, Facts, Page, Table, Text, stated
from gpuwise.view.vocabulary import market, method, rule
from gpuwise.view.workload import assumed, end_facts, feed_facts, job_text

OLD_PRICE_DAYS = 90
"""An older price of the cheapest offer is named in the answer, not only in its row."""

NAMED_WAIT_FRACTION = 0.1
"""A wait that is a larger share of the time is named beside it."""

OUTCOME_RULES = (
    "cpu_architecture", "does_not_fit", "no_prediction", "not_stated", "session_too_short", "host_ends", "endless",
    "deadline", "budget",
)  # fmt: skip
"""Rules that each job applies for itself, in their order."""


def ranking_page(ranking: Ranking, request: RankRequest, fx: Fx | None = None, tested: Sequence[Tested] = ()) -> Page:
    """The answer to `rank`. fx: the rate of the currency to show, None for USD. tested: what tests of the same
    situation found."""
    rows, given = shown(ranking), setting(ranking, fx, request.deadline_s, request.price_per)
    names = with_commas(w.name for w in ranking.workloads)
    page = Page(
        title=_("Where should {workloads} run?").format(workloads=names),
        blocks=tuple(_blocks(ranking, request, rows, given, tested)),
    )
    return stated(page, warnings=ranking.warnings, data_version=ranking.data_version, as_of=ranking.as_of)


def _blocks(
    ranking: Ranking, request: RankRequest, rows: Sequence[Candidate], given: Setting, tested: Sequence[Tested]
) -> Iterator[Block]:
    yield from _answers(ranking, request, given)
    yield from _left_unsaid(ranking, request)
    chart = cost_time_chart(rows, given)
    if chart:
        yield chart
    if rows:
        yield candidate_table(ranking, rows, given)
        yield from (Text(text=words(one.sentence), role="note") for one in tested)
    yield Facts(title=_("What this assumes"), facts=tuple(_assumptions(ranking, request, rows)))
    if ranking.counts:
        yield _left_out(ranking)
    if ranking.relaxations:
        yield _relaxations(ranking)
    yield Facts(title=_("What this stands on"), facts=tuple(_sources(ranking, rows, given)))


def _answers(ranking: Ranking, request: RankRequest, given: Setting) -> Iterator[Text]:
    """For each job one sentence about the cheapest and one about the fastest; several jobs: a paragraph each."""
    for workload in ranking.workloads:
        sentences = answer_sentences(ranking, request, given, workload.name)
        if len(ranking.workloads) > 1:
            yield Text(text=f"{workload.name}. {' '.join(sentences)}", role="answer")
        else:
            yield from (Text(text=sentence, role="answer") for sentence in sentences)


def answer_sentences(ranking: Ranking, request: RankRequest, given: Setting, workload: str) -> Iterator[str]:
    """The answer for one job; the first sentence stands for itself."""
    known = (*ranking.frontier, *ranking.candidates, *ranking.own)
    return _answer([c for c in known if c.workload == workload], ranking, request, given)


def unsaid_text(request: JobFilters, *, spot: bool) -> str:
    """What nobody said of the job, empty if all is said. spot: some offer is one, and contains assumed checkpoints."""
    but = _("checkpoints, but for those assumed of spot offers (--checkpoint, --checkpoint-every)")
    usual = but if spot else _("checkpoints (--checkpoint, --checkpoint-every)")
    said = request.checkpoint_s is not None and request.checkpoint_every_s is not None
    parts = (
        (not said and request.checkpoint_every_s != math.inf, usual),
        (not (request.evaluation_s or request.final_evaluation_s), _("evaluation (--evaluation)")),
        (request.disk_gb is None, _("disk (--disk)")),
        (request.data_gb is None, _("copying the data (--data-size)")),
        (request.results_gb is None, _("taking results out (--results-size)")),
    )
    unsaid = [name for missing, name in parts if missing]
    return _("Unknown and not contained: {parts}.").format(parts=with_commas(unsaid)) if unsaid else ""


def _left_unsaid(ranking: Ranking, request: RankRequest) -> Iterator[Text]:
    """What of the job no figure contains, since nobody said it (UC-053)."""
    if not ranking.candidates or all(workload.undecided for workload in ranking.workloads):
        return
    spot = any(c.offer.market == "spot" for c in (*ranking.candidates, *ranking.frontier))
    if unsaid := unsaid_text(request, spot=spot):
        yield Text(text=unsaid, role="note")


def _answer(known: Sequence[Candidate], ranking: Ranking, request: RankRequest, given: Setting) -> Iterator[str]:
    """known: all candidates that may be the cheapest or the fastest; the frontier holds both, whatever the limit.

    The first sentence stands for itself: where the answer is no, it is all that standard error says.
    """
    choice = [c for c in known if ranked(c) and c.offer.market != "free"]
    if not choice:
        yield from _no_answer(known, ranking, request)
        return
    if all(c.time_s is None for c in choice):
        yield _by_the_million(min(choice, key=_cost), given)
        return
    cheapest = min(choice, key=lambda c: (_cost(c), _seconds(c)))
    fastest = min(choice, key=lambda c: (_seconds(c), _cost(c)))
    yield _("Cheapest: {what}").format(what=_sentence(cheapest, request, given)) + _sure(cheapest, ranking.as_of)
    if request.takes is not None:
        yield _stated(request.takes, cheapest.offer.accelerators)
    if fastest.offer.id == cheapest.offer.id:
        yield _("It is also the fastest.")
    else:
        yield _("Fastest: {what}").format(what=_sentence(fastest, request, given)) + _(".")


def _no_answer(known: Sequence[Candidate], ranking: Ranking, request: RankRequest) -> Iterator[str]:
    """Nothing passed at all, or only what has no cost by which it could be ranked."""
    if not known:
        yield _("No offer passes the filters.")
        if ranking.relaxations:
            yield _("The nearest changes that would admit one stand below.")
        return
    markets = with_commas(dict.fromkeys(market(c.offer.market) for c in known))
    yield _("Only offers without a cost of their own pass the filters: {markets}.").format(markets=markets)
    if request.hours_per_month is None and any(c.offer.market == "owned" for c in known):
        yield _("Say how busy an owned machine is, and it is ranked by its share: --hours-per-month.")


def _stated(takes: Takes, gpus: int) -> str:
    """What a stated time comes to, and how to know better."""
    hours = dict.fromkeys(figures.exact_number(gpus * s / SECONDS_PER_HOUR) for s in (takes.low_s, takes.high_s))
    return _(
        "{hours} GPU-hours of work as you stated: nothing was measured, and no figure here is surer than that. Some "
        "minutes of it on one of these GPUs tell more: gpuwise measure -- python train.py, then rank --measured."
    ).format(hours=_(" to ").join(hours))


def _cost(candidate: Candidate) -> float:
    figure = ranked(candidate)
    return figure.value if figure else float("inf")


def _seconds(candidate: Candidate) -> float:
    return candidate.time_s.value if candidate.time_s else float("inf")


def _by_the_million(candidate: Candidate, given: Setting) -> str:
    """The cheapest work, where nothing says how much of it there is: no total is a default's (UC-050)."""
    offer, million = candidate.offer, candidate.usd_per_million_samples
    assert million is not None
    shown, ends = figures.rounded(million.interval(), given.usd_per_unit)
    return _(
        "Duration unknown, so no totals. Cheapest work: {offer}, {gpus}, {price} ({money}), {amount} {money} ({low} to "
        "{high}) for a million samples; --samples and --epochs give time and bill."
    ).format(
        offer=f"{offer.provider} {offer.instance}".strip(), gpus=figures.gpus(offer), money=given.money, amount=shown,
        price=figures.price(offer, given.fx, candidate.price_usd_per_hour).shown, low=(ends or (shown, shown))[0],
        high=(ends or (shown, shown))[1],
    )  # fmt: skip


def _sentence(candidate: Candidate, request: RankRequest, given: Setting) -> str:
    offer, figure = candidate.offer, ranked(candidate)
    assert figure is not None
    shown, ends = figures.rounded(figure.interval(), given.usd_per_unit)
    money = f"{shown if ends else figures.amount(figure.value, given.fx)} {given.money}"
    if ends:
        money += " " + _("({low} to {high})").format(low=ends[0], high=ends[1])
    if given.basis == "share" and candidate.cost_share_usd and request.hours_per_month:
        money += " " + _("as the share of {n} busy hours a month").format(
            n=figures.written(request.hours_per_month, "g")
        )
    return _("{offer}, {gpus}, {money} in {time}, {price}").format(
        offer=f"{offer.provider} {offer.instance}".strip(), gpus=figures.gpus(offer), money=money,
        time=_time(candidate, given), price=figures.of_day(offer.observed, offer.observed_precision),
    )  # fmt: skip


def _time(candidate: Candidate, given: Setting) -> str:
    """The time, with P10 and P90 where the length of the job is itself uncertain."""
    assert candidate.time_s is not None
    wait, time = candidate.wait_s, candidate.time_s
    if wait is not None and wait.value > NAMED_WAIT_FRACTION * time.value:
        said = _("{time}, of which {wait} waiting for machines")
        return said.format(time=_length(candidate, given), wait=figures.duration(wait.value))
    return _length(candidate, given)


def _length(candidate: Candidate, given: Setting) -> str:
    assert candidate.time_s is not None
    stop, inside = given.workloads[candidate.workload].stop, candidate.time_s.interval()
    low, middle, high = (figures.duration(s) for s in (inside.low, inside.value, inside.high))
    if stop is None:
        return middle
    said = _("{middle} (P10 {low}, P90 more than {high})") if stop.open_ended else _("{middle} (P10 {low}, P90 {high})")
    return said.format(middle=middle, low=low, high=high)


def _sure(candidate: Candidate, as_of: date) -> str:
    """How sure the claim is, so that nobody takes a coin's toss, or a price that may be gone, for a fact."""
    if candidate.p_cheapest is None:
        return _(".")
    doubts = _(" and ").join(_doubts(candidate.offer, as_of))
    said = _(". Of the offers ranked it is the cheapest with a probability of {chance}, at prices as old as stated")
    own = _("; its own price is {doubts}").format(doubts=doubts) if doubts else ""
    return said.format(chance=figures.chance_in_words(candidate.p_cheapest)) + own + _(".")


def _doubts(offer: Offer, as_of: date) -> Iterator[str]:
    """What may have changed the price since it was seen."""
    age = None if offer.observed is None else (as_of - offer.observed).days
    if age is None:
        yield _("without a date")
    elif age > OLD_PRICE_DAYS:
        yield _("{n} days old").format(n=age)
    if offer.market == "spot":
        yield _("a spot price")


def _assumptions(ranking: Ranking, request: RankRequest, rows: Sequence[Candidate]) -> Iterator[Fact]:
    for workload in ranking.workloads:
        yield Fact(label=workload.name, text=job_text(workload), why=assumed(workload))
        yield from end_facts(workload)
        yield from feed_facts(workload, rows)
    preparation = _preparation(request, rows)
    if preparation:
        yield preparation
    yield from _copying(request, rows)
    if request.hours_per_month is not None:
        hours = _("{n} a month; monthly and owned machines are ranked by this job's share").format(
            n=figures.written(request.hours_per_month, "g"))  # fmt: skip
        yield Fact(label=_("Busy hours"), text=hours)
    if request.jobs > 1:
        several = _("{n}, one after another; figures are for all of them").format(n=request.jobs)
        yield Fact(label=_("Jobs"), text=several)
    net = _("net: VAT is left out") if request.tax == "net" else _("gross: VAT is included")
    yield Fact(label=_("Tax"), text=net)
    age = _("no older than {n} days on {day}").format(n=request.max_age_days, day=ranking.as_of)
    yield Fact(label=_("Prices"), text=age)


def _preparation(request: RankRequest, rows: Sequence[Candidate]) -> Fact | None:
    """The time before the first step: given, or as it stands on the bills."""
    label = _("Preparation")
    if request.prepare_s is not None:
        said = _("{time} a machine, as you said").format(time=figures.duration(request.prepare_s))
        return Fact(label=label, text=said)
    hours = sorted(c.time_parts_s["preparation"] / c.sessions / SECONDS_PER_HOUR for c in rows if _prepared(c))
    if not hours:
        return None
    ends = dict.fromkeys(figures.duration(SECONDS_PER_HOUR * h) for h in (hours[0], hours[-1]))
    return Fact(label=label, text=_("{time} a machine").format(time=_(" to ").join(ends)), why=_("assumed"))


def _copying(request: RankRequest, rows: Sequence[Candidate]) -> Iterator[Fact]:
    """How long data, image and results travel: as stated, or as is assumed."""
    why = _("at the rate you stated") if request.network_gb_per_s else _("assumed; say how fast with --network")
    told = (("image", _("Fetching the image")), ("data transfer", _("Copying the data")),
            ("taking results out", _("Taking results out")))  # fmt: skip
    for kind, label in told:
        times = sorted(c.time_parts_s[kind] for c in rows if c.time_parts_s.get(kind))
        if times:
            ends = dict.fromkeys(map(figures.duration, (times[0], times[-1])))
            yield Fact(label=label, text=_(" to ").join(ends), why=why)


def _prepared(candidate: Candidate) -> bool:
    return bool(candidate.time_parts_s.get("preparation") and candidate.sessions)


def _left_out(ranking: Ranking) -> Table:
    several = len(ranking.workloads) > 1
    steps = with_semicolons(f"{rule(name)} {figures.count(left)}" for name, left in _funnel(ranking))
    rows = sorted(ranking.counts.items(), key=lambda item: -item[1])
    once = _("counted once for each job")
    return Table(
        title=_("Left out, and why"),
        columns=(
            Column(key="rule", title=_("Reason")),
            Column(key="offers", title=_("Offers"), kind="number"),
        ),
        rows=tuple(
            (
                Cell(shown=rule(n), value=n, note=once if several and n in OUTCOME_RULES else ""),
                Cell(shown=figures.count(k), value=k),
            )
            for n, k in rows
        ),
        notes=(_("Offers left, filter by filter: {steps}.").format(steps=steps),) if steps else (),
    )


def _funnel(ranking: Ranking) -> Iterator[tuple[str, int]]:
    """Offers left after each rule; for one job down to the candidates, for several to where their ways part."""
    yield from ranking.funnel
    if not ranking.funnel or len(ranking.workloads) > 1:
        return
    left, there = ranking.funnel[-1][1], {name for name, _left in ranking.funnel}
    for name in OUTCOME_RULES:
        if name in ranking.counts and name not in there:
            left -= ranking.counts[name]
            yield name, left


def _relaxations(ranking: Ranking) -> Table:
    return Table(
        title=_("The nearest changes that would admit more"),
        columns=(
            Column(key="change", title=_("Change")),
            Column(key="admits", title=_("Admits"), unit=_("offers"), kind="number"),
            Column(key="offer_id", title=_("For example"), rank=1),
        ),
        rows=tuple(
            (
                Cell(shown=words(r.change), value=words(r.change), title=rule(r.rule)),
                Cell(shown=figures.count(r.admits), value=r.admits),
                Cell(shown=r.offer_id, value=r.offer_id),
            )
            for r in ranking.relaxations
        ),
    )


def _sources(ranking: Ranking, rows: Sequence[Candidate], given: Setting) -> Iterator[Fact]:
    if ranking.oldest and ranking.newest:
        seen = _("seen from {oldest} to {newest}").format(oldest=ranking.oldest, newest=ranking.newest)
        yield Fact(label=_("Prices"), text=seen)
    for key, number in Counter(c.offer.source.ref for c in rows).most_common():
        text = _("{what} ({n})").format(what=ranking.sources.get(key, key), n=number)
        yield Fact(label=_("Source {key}").format(key=key), text=text)
    if rows:
        yield Fact(label=_("Speeds"), text=_counted(method(c.prediction.method) for c in rows))
    if given.fx:
        rate = _("1 {code} = {rate} USD on {day}, {source}").format(
            code=given.fx.code, rate=figures.exact_number(given.fx.usd_per_unit), day=given.fx.observed,
            source=given.fx.source,
        )  # fmt: skip
        yield Fact(label=_("Exchange rate"), text=rate)


def _counted(names: Iterable[str]) -> str:
    return with_commas(_("{what} ({n})").format(what=name, n=n) for name, n in Counter(names).most_common())
