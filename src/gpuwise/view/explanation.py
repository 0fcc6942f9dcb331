"""The page behind one prediction: what it stands on, what makes its interval wide, and the bill line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from gpuwise.estimate import Estimate
from gpuwise.locale import _, with_colon, with_semicolons, words
from gpuwise.model import BenchmarkResult, Candidate, CostLine, Exclusion, Fx, Prediction, Ranking, Refusal, Workload
from gpuwise.offer import Provider
from gpuwise.predict.target import samples_needed
from gpuwise.rank.several import Several
from gpuwise.stopping import Stop
from gpuwise.view import figures
from gpuwise.view.candidates import candidate_table, setting
from gpuwise.view.memory import memory_blocks
from gpuwise.view.offers import platform_facts
from gpuwise.view.page import SPANS, Block, Caution, Cell, Fact, Facts, Made, Page, Table, Text, column, tabulate, word
from gpuwise.view.several import several_blocks
from gpuwise.view.vocabulary import error, line, method, rule, unit
from gpuwise.view.workload import workload_facts

Answer = Prediction | Refusal


def explanation_page(
    workload: Workload,
    answers: Sequence[Answer],
    *,
    candidate: Candidate | None = None,
    exclusions: Sequence[Exclusion] = (),
    ranking: Ranking | None = None,
    fx: Fx | None = None,
    instead: Candidate | None = None,
    largest_batch: Mapping[str, int] = MappingProxyType({}),
    several: Sequence[Several] = (),
    nearest: Sequence[BenchmarkResult] = (),
    provider: Provider | None = None,
    sources: Mapping[str, str] = MappingProxyType({}),
    unsaid: str = "",
) -> Page:
    """The answer to `explain`.

    answers: one platform is explained in full, several are compared and explained in short. candidate: the offer asked
    about, priced; exclusions: why it was left out, if it was. ranking: the cheapest offers with the GPU asked about.
    instead, largest_batch, several, nearest, provider, sources: as in `api.Explained`. unsaid: what no figure contains.
    """
    return Page(
        title=_("Why do we think so about {workload}?").format(workload=workload.name),
        blocks=(
            *_blocks(workload, answers, candidate, exclusions, ranking, fx, provider, unsaid),
            *([_nearest(nearest)] if nearest else []),
            *several_blocks(several, fx),
            *memory_blocks(workload, answers, largest=largest_batch, instead=instead, fx=fx),
            workload_facts(workload),
            *([_sources(sources)] if sources else []),
        ),
    )


def _blocks(
    workload: Workload,
    answers: Sequence[Answer],
    candidate: Candidate | None,
    exclusions: Sequence[Exclusion],
    ranking: Ranking | None,
    fx: Fx | None,
    provider: Provider | None,
    unsaid: str,
) -> Iterator[Block]:
    yield Text(text=_answer(answers, workload), role="answer")
    yield from (Caution(text=with_colon(rule(e.rule), words(e.reason))) for e in exclusions)
    if len(answers) > 1:
        yield _comparison(answers)
        yield from (
            Facts(
                title=_("The evidence for {where}").format(where=_where(answer)),
                facts=tuple(_in_short(answer, workload)),
            )
            for answer in answers
        )
    elif answers and isinstance(answers[0], Prediction):
        yield from _evidence(answers[0])
    if ranking and ranking.candidates:
        yield _offers(ranking, fx)
    if candidate:
        yield Facts(title=_("The offer"), facts=tuple(_offer(candidate, workload.stop, fx)))
        if candidate.cost:
            yield _bill(candidate.cost.lines, candidate.cost.billed_usd, candidate.cost.credit_usd, fx)
        if candidate.share_lines and candidate.cost_share_usd:
            yield _share_bill(candidate.share_lines, candidate.cost_share_usd.value, fx)
        if candidate.time_parts_s:
            yield _time_parts(candidate.time_parts_s)
        if unsaid:
            yield Text(text=unsaid, role="note")
        if provider and provider.facts:
            yield platform_facts(provider)


def _sources(sources: Mapping[str, str]) -> Facts:
    facts = tuple(Fact(label=_("Source {key}").format(key=key), text=title) for key, title in sources.items())
    return Facts(title=_("What bill and platform stand on"), facts=facts)


def _nearest(rows: Sequence[BenchmarkResult]) -> Table:
    columns: list[Made[BenchmarkResult]] = [
        column("workload", _("Network"), lambda r: word(r.workload)),
        column("accelerator", _("GPU"), lambda r: Cell(shown=figures.devices(r.accelerator), value=r.accelerator)),
        column("samples_per_s", _("Rate"), _rate, kind="number", unit=_("samples/s")),
        column("precision", _("Precision"), lambda r: word(r.precision)),
        column(
            "batch_per_accelerator",
            _("Batch"),
            lambda r: Cell(shown=str(r.batch_per_accelerator), value=r.batch_per_accelerator),
            kind="number",
        ),
        column("software", _("Software"), lambda r: word(r.software or ""), rank=1),
        column("source", _("Source"), lambda r: word(r.source.ref), rank=1),
    ]
    return tabulate(_("The nearest measured rows"), columns, rows)


def _rate(row: BenchmarkResult) -> Cell:
    return Cell(shown=figures.number(row.samples_per_s), value=row.samples_per_s)


def _where(answer: Answer) -> str:
    if "+" in answer.platform:
        return _("{n} GPUs, {names} in one machine").format(
            n=answer.accelerators, names=figures.devices(answer.platform)
        )
    return f"{answer.accelerators} × {figures.devices(answer.platform)}"


def _answer(answers: Sequence[Answer], workload: Workload) -> str:
    """One claim; of several variants the range that covers them all."""
    claims = [answer for answer in answers if isinstance(answer, Prediction)]
    if len(answers) == 1 or not claims:
        return _claim(answers[0], workload)
    speeds = sorted((claim.throughput_per_s.interval() for claim in claims), key=lambda inside: inside.value)
    widest = (min(inside.low for inside in speeds), max(inside.high for inside in speeds))
    time = _job_time(workload, claims[0].accelerators, *(inside.value for inside in (speeds[-1], speeds[0])))
    devices = figures.devices("/".join(claim.platform for claim in claims))
    return _(
        "{where}: {slow} to {fast} samples a second, by variant (with their intervals {low} to {high}); {time}."
    ).format(
        where=f"{claims[0].accelerators} × {devices}", time=time,
        slow=figures.number(speeds[0].value), fast=figures.number(speeds[-1].value),
        low=figures.number(widest[0]), high=figures.number(widest[1]),
    )  # fmt: skip


def _claim(answer: Answer, workload: Workload) -> str:
    if isinstance(answer, Refusal):
        return _("{where}: no prediction, {reason}.").format(where=_where(answer), reason=words(answer.reason))
    return _("{where}: {speed}; {time}.").format(
        where=_where(answer), speed=_speed(answer), time=_run_time(answer, workload)
    )


def _speed(prediction: Prediction) -> str:
    value, ends = figures.rounded(prediction.throughput_per_s.interval(), 1.0)
    between = " " + _("({low} to {high})").format(low=ends[0], high=ends[1]) if ends else ""
    return _("{value}{between} samples a second, {how}").format(
        value=value, between=between, how=method(prediction.method)
    )


def _run_time(prediction: Prediction, workload: Workload) -> str:
    return _job_time(workload, prediction.accelerators, prediction.throughput_per_s.value)


def _job_time(workload: Workload, accelerators: int, *speeds_per_s: float) -> str:
    """In words, at one speed or from one to another; what nobody said the length of has no time."""
    if workload.undecided:
        return _("duration unknown: nothing says how long the job is")
    work = samples_needed(workload, accelerators).value
    times = dict.fromkeys(figures.duration(work / per_s) for per_s in speeds_per_s)
    return _("{time} for the whole job without preparation").format(time=_(" to ").join(times))


def _in_short(answer: Answer, workload: Workload) -> Iterator[Fact]:
    """One of several variants: claim, evidence and error budget, each on a line."""
    if isinstance(answer, Refusal):
        yield Fact(label=_("No prediction"), text=words(answer.reason))
        return
    yield Fact(label=_("Speed"), text=_speed(answer))
    yield Fact(label=_("The whole job"), text=_run_time(answer, workload))
    yield from (Fact(label=_("Evidence"), text=words(e)) for e in answer.evidence)
    yield Fact(label=_("Uncertain by"), text=figures.budget(answer.throughput_per_s))
    yield Fact(label=_("To narrow it"), text=words(answer.advice))


def _offers(ranking: Ranking, fx: Fx | None) -> Table:
    """The table of `rank`, of the few offers that stand for the GPU."""
    table = candidate_table(ranking, ranking.candidates, setting(ranking, fx))
    note = _("{shown} of {n} offers; rank shows them all (--gpu).").format(
        shown=len(ranking.candidates), n=figures.count(ranking.total_candidates)
    )
    return replace(table, title=_("The cheapest offers with it"), notes=(*table.notes[:-1], note))


def _comparison(answers: Sequence[Answer]) -> Table:
    columns: list[Made[Answer]] = [
        column(
            "accelerators", _("GPUs"), lambda a: Cell(shown=str(a.accelerators), value=a.accelerators), kind="number"
        ),
        column("platform", _("Platform"), lambda a: Cell(shown=figures.devices(a.platform), value=a.platform)),
        column("throughput_per_s", _("Throughput"), _throughput, kind="estimate", unit=_("samples/s")),
        column("method", _("Basis"), lambda a: word(method(a.method) if isinstance(a, Prediction) else rule(a.rule))),
    ]
    return tabulate(_("Platforms"), columns, answers, legend={SPANS: _("Ranges are 80 % intervals.")})


def _throughput(answer: Answer) -> Cell:
    if isinstance(answer, Refusal):
        return figures.unknown(answer.reason)
    return figures.estimate_cell(answer.throughput_per_s, 1.0)


def _evidence(prediction: Prediction) -> Iterator[Block]:
    facts = tuple(Fact(label=str(i), text=words(e)) for i, e in enumerate(prediction.evidence, 1))
    yield Facts(title=_("The evidence"), facts=facts)
    if prediction.throughput_per_s.spread:
        yield _uncertainty(prediction.throughput_per_s)
    yield Text(text=_("To narrow it: {advice}").format(advice=words(prediction.advice)))


def _uncertainty(estimate: Estimate) -> Table:
    """Which errors make the interval as wide as it is; shares of the variance add up to 100 %."""
    variance = estimate.log_sd**2
    rows = sorted(estimate.spread, key=lambda part: -abs(part[1]))
    columns: list[Made[tuple[str, float]]] = [
        column("error", _("Error"), lambda part: Cell(shown=error(part[0]), value=part[0])),
        column("log_sd", _("80 % factor"), lambda part: _factor(part[1]), kind="number"),
        column("variance_fraction", _("Share"), lambda part: _share(part[1] ** 2 / variance), kind="number"),
    ]
    return tabulate(_("What makes it uncertain"), columns, rows)


def _factor(log_sd: float) -> Cell:
    return Cell(shown=figures.factor(log_sd), value=log_sd)


def _share(fraction: float) -> Cell:
    return Cell(shown=figures.percent(fraction), value=fraction)


def _offer(candidate: Candidate, stop: Stop | None, fx: Fx | None) -> Iterator[Fact]:
    offer, money = candidate.offer, figures.code(fx)
    price, seen = figures.price(offer, fx), figures.day(offer.observed, offer.observed_precision)
    yield Fact(label=_("Offer"), text=offer.id, why=offer.note)
    yield Fact(label=_("GPUs"), text=figures.gpus(offer))
    where = _("seen {day}, source {ref}").format(day=seen, ref=offer.source.ref)
    yield Fact(
        label=_("Price"), text=f"{price.shown} ({money})", why=with_semicolons(filter(None, (where, price.title)))
    )
    billed = figures.price(offer, fx, candidate.price_usd_per_hour)
    if billed.shown != price.shown:
        yield Fact(label=_("Billed at"), text=f"{billed.shown} ({money})", why=_("after tax and agreements"))
    yield _time(candidate, stop)
    usd = 1.0 if fx is None else fx.usd_per_unit
    yield _figure(_("Wait"), candidate.wait_s, "h", figures.TIME_UNITS["h"], candidate, "wait_s")
    yield _figure(_("GPU-hours"), candidate.accelerator_h, "h", 1.0, candidate, "accelerator_h")
    yield _figure(_("Cost"), candidate.cost_usd, money, usd, candidate, "cost_usd")
    yield _figure(_("Share"), candidate.cost_share_usd, money, usd, candidate, "cost_share_usd")
    for label, key in ((_("A million samples"), "usd_per_million_samples"), (_("1,000 steps"), "usd_per_1000_steps")):
        if estimate := getattr(candidate, key):
            yield _figure(label, estimate, money, usd, candidate, key)
    even = candidate.break_even_hours_per_month
    yield _figure(_("Break-even"), even, _("h/month"), 1.0, candidate, "break_even_hours_per_month")
    yield from (Fact(label=_("Remark"), text=words(mark)) for mark in candidate.marks)


def _time(candidate: Candidate, stop: Stop | None) -> Fact:
    """With its 80 % interval, which is P10 to P90; said so where the number of epochs is uncertain itself."""
    time = candidate.time_s
    if time is None:
        reason = candidate.reasons.get("time_s")
        return Fact(label=_("Time"), text=_("unknown"), why=words(reason) if reason else "")
    inside = time.interval()
    low, middle, high = (figures.duration(s) for s in (inside.low, inside.value, inside.high))
    if stop is not None:
        more = _("more than {time}").format(time=high) if stop.open_ended else high
        return Fact(label=_("Time, P10 / P50 / P90"), text=f"{low} / {middle} / {more}", why=figures.budget(time))
    between = f"{middle} " + _("({low} to {high})").format(low=low, high=high) if low != high else middle
    return Fact(label=_("Time"), text=between, why=figures.budget(time))


def _figure(label: str, estimate: Estimate | None, unit: str, scale: float, candidate: Candidate, key: str) -> Fact:
    if estimate is None:
        reason = candidate.reasons.get(key)
        return Fact(label=label, text="–", why=words(reason) if reason else "")
    cell = figures.estimate_cell(estimate, scale)
    return Fact(label=label, text=f"{cell.text} {unit}", why=cell.title)


def _bill(lines: Sequence[CostLine], billed_usd: float, credit_usd: float, fx: Fx | None) -> Table:
    """Enough digits that quantity × price can be checked by hand; only amounts are summed, for all are money."""
    money = figures.code(fx)
    columns: list[Made[CostLine]] = [
        column("kind", _("Line"), lambda c: Cell(shown=line(c.kind), value=c.kind)),
        column("quantity", _("Quantity"), lambda c: _quantity(c.quantity), kind="number"),
        column("unit", _("Unit"), lambda c: word(unit(c.unit))),
        column("unit_price_usd", _("Price a unit"), lambda c: _paid(c.unit_price_usd, fx), kind="number", unit=money),
        column("amount_usd", _("Amount"), lambda c: _sum(c.amount_usd, fx), kind="number", unit=money),
        column("source", _("Price from"), lambda c: word(c.source), rank=1),
    ]
    notes = [_("In all {amount} {money}, before credits.").format(amount=figures.amount(billed_usd, fx), money=money)]
    if credit_usd:
        net = figures.amount(billed_usd - credit_usd, fx)
        said = _("Credits pay {credit} of it; {net} {money} are left.")
        notes.append(said.format(credit=figures.amount(credit_usd, fx), net=net, money=money))
    return tabulate(_("The bill"), columns, lines, notes)


def _share_bill(lines: Sequence[CostLine], share_usd: float, fx: Fx | None) -> Table:
    """The share of a machine that others of one's own jobs use too."""
    return replace(_bill(lines, share_usd, 0.0, fx), title=_("The share"))


def _time_parts(parts_s: Mapping[str, float]) -> Table:
    """What the time consists of; waiting is not billed."""
    columns: list[Made[tuple[str, float]]] = [
        column("kind", _("Part"), lambda p: Cell(shown=line(p[0]), value=p[0])),
        column("time_s", _("Time"), lambda p: Cell(shown=figures.duration(p[1]), value=p[1]), kind="number"),
    ]
    whole = _("In all {time}.").format(time=figures.duration(sum(parts_s.values())))
    return tabulate(_("The time"), columns, list(parts_s.items()), [whole])


def _quantity(number: float) -> Cell:
    return Cell(shown=figures.exact_number(number), value=number)


def _paid(usd: float, fx: Fx | None) -> Cell:
    return Cell(shown=figures.exact_number(figures.in_currency(usd, fx), 2), value=usd)


def _sum(usd: float, fx: Fx | None) -> Cell:
    return Cell(shown=figures.amount(usd, fx), value=usd)
