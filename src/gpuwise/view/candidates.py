"""The table of candidates: which columns there are, and what each cell says of one offer for one job.

The keys are the header of the CSV file, with base units (s, USD) in the cells' values; people see the columns that are
not hidden, in the unit and currency that suit them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuwise.errors import Message
from gpuwise.estimate import Estimate, exact, probability_less
from gpuwise.locale import N_, _, with_colon, with_commas, with_semicolons, words
from gpuwise.model import Candidate, Fx, Ranking, Workload
from gpuwise.rank.settled import CPU_LIMITS, STORAGE_LIMITS
from gpuwise.view import figures, offers
from gpuwise.view.page import SPANS, Cell, Made, Table, column, tabulate, word
from gpuwise.view.vocabulary import line, method, unit

STAR = "★"
UNSCALED = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the cells of one table share. deadline_s: the longest time that was asked for, None if none was. price_per:
    charged, hour or month."""

    fx: Fx | None
    workloads: Mapping[str, Workload]
    time_unit: str
    basis: str
    deadline_s: float | None
    price_per: str = "charged"

    @property
    def money(self) -> str:
        return figures.code(self.fx)

    @property
    def usd_per_unit(self) -> float:
        return UNSCALED if self.fx is None else self.fx.usd_per_unit

    @property
    def time_scale(self) -> float:
        return figures.TIME_UNITS[self.time_unit]


def ranked(candidate: Candidate) -> Estimate | None:
    """The figure by which an offer is called cheap: its share where there is one, else its bill; for a job of unknown
    length what a million samples cost."""
    return candidate.cost_share_usd or candidate.cost_usd or candidate.usd_per_million_samples


def setting(ranking: Ranking, fx: Fx | None, deadline_s: float | None = None, price_per: str = "charged") -> Setting:
    return Setting(
        fx=fx,
        deadline_s=deadline_s,
        price_per=price_per,
        workloads={w.name: w for w in ranking.workloads},
        time_unit=figures.time_unit([c.time_s.value for c in shown(ranking) if c.time_s]),
        basis=ranking.basis,
    )


def shown(ranking: Ranking) -> tuple[Candidate, ...]:
    """The rows of table and chart: by workload the candidates up to the limit, the rest of the frontier, one's own."""
    there = {(c.workload, c.offer.id) for c in ranking.candidates}
    more = {(c.workload, c.offer.id): c for c in (*ranking.frontier, *ranking.own)}
    extra = [candidate for key, candidate in more.items() if key not in there]
    names = [w.name for w in ranking.workloads]
    return tuple(sorted([*ranking.candidates, *extra], key=lambda c: names.index(c.workload)))


Usual = Mapping[str, Sequence[Message]]


def candidate_table(ranking: Ranking, rows: Sequence[Candidate], given: Setting) -> Table:
    """What decides stands first. The instance has a column of its own only where most offers name one."""
    usual = _usual_marks(rows)
    columns = [*_offer_columns(given, usual), *_figure_columns(rows, given), *_other_columns(rows)]
    return tabulate(_("Offers"), columns, rows, _notes(ranking, rows, usual), dict(_legend(rows, given)))


def _offer_columns(given: Setting, usual: Usual) -> Iterator[Made[Candidate]]:
    several = len(given.workloads) > 1
    yield column("on_frontier", STAR, _star, kind="mark")
    yield column("workload", _("Workload"), lambda c: word(c.workload), hidden=not several)
    yield column("offer_id", "", lambda c: word(c.offer.id), hidden=True)
    yield column("accelerators", "", lambda c: offers.number_of_gpus(c.offer), kind="number", hidden=True)
    yield column("accelerator", _("GPUs"), _gpus)
    yield column("provider", _("Provider"), lambda c: _provider(c, usual))
    yield column("market", _("Market"), lambda c: offers.market_cell(c.offer), rank=1)


def _figure_columns(rows: Sequence[Candidate], given: Setting) -> Iterator[Made[Candidate]]:
    def estimate(key: str, title: str, unit: str, scale: float, **more: Any) -> Made[Candidate]:
        return column(key, title, lambda c: _estimate(c, key, given, scale), kind="estimate", unit=unit, **more)

    def number(key: str, title: str, make: Callable[[Candidate], Cell], **more: Any) -> Made[Candidate]:
        return column(key, title, make, kind="number", **more)

    time, money = (given.time_unit, given.time_scale), (given.money, given.usd_per_unit)
    no_accuracy, no_deadline = not _accuracy_counts(given), given.deadline_s is None
    whole, parts = any(c.time_s for c in rows), any(c.usd_per_million_samples for c in rows)
    waits, bound = any(c.wait_s for c in rows), any(c.break_even_hours_per_month for c in rows)
    yield number(
        "accuracy_fraction", _("Accuracy"), lambda c: _accuracy(c, given), unit="%", rank=3, hidden=no_accuracy
    )
    yield estimate("throughput_per_s", _("Throughput"), "", UNSCALED, hidden=True)
    yield estimate("time_s", _("Time"), *time, hidden=not whole)
    yield number("p_in_time", _("P(in time)"), lambda c: _in_time(c, given), rank=2, hidden=no_deadline)
    yield estimate("wait_s", _("Wait"), *time, rank=3, hidden=not waits)
    yield estimate("accelerator_h", _("GPU-hours"), "h", UNSCALED, hidden=True)
    yield estimate("cost_usd", _("Cost"), *money, hidden=not whole)
    million, steps = (_("{money} a million samples"), _("{money} for 1,000 steps"))
    yield estimate(
        "usd_per_million_samples", million.format(money=given.money), "", given.usd_per_unit, hidden=not parts
    )
    yield estimate("usd_per_1000_steps", steps.format(money=given.money), "", given.usd_per_unit, hidden=not parts)
    yield estimate("cost_share_usd", _("Share"), *money, hidden=given.basis != "share")
    yield number("p_cheapest", _("P(cheapest)"), _chance, rank=2)
    yield number(
        "price_usd_per_hour", _("Price"), lambda c: _price(c, given.fx, given.price_per), unit=given.money, rank=2
    )
    yield number("listed_usd_per_hour", "", lambda c: figures.price(c.offer, given.fx), hidden=True)
    yield column("observed", _("Price seen"), lambda c: offers.seen(c.offer), rank=2)
    yield estimate("break_even_hours_per_month", _("Break-even"), _("h/month"), UNSCALED, rank=5, hidden=not bound)


def _other_columns(rows: Sequence[Candidate]) -> Iterator[Made[Candidate]]:
    joins = "provider" if 2 * sum(bool(c.offer.instance) for c in rows) < len(rows) else ""
    yield column("instance", _("Instance"), lambda c: offers.instance(c.offer), rank=6, joins=joins)
    yield column("region", _("Region"), lambda c: offers.region(c.offer), rank=7)
    yield column("country", "", lambda c: word(c.offer.country), hidden=True)
    yield column("availability", "", lambda c: word(c.offer.availability), hidden=True)
    yield column("source", "", lambda c: word(c.offer.source.ref), hidden=True)
    yield column("method", "", lambda c: word(c.prediction.method), hidden=True)
    yield column("remarks", "", lambda c: word(_remarks(c)), hidden=True)
    yield column("unknown", "", lambda c: word(_unknown(c)), hidden=True)


def _remarks(candidate: Candidate) -> str:
    return with_semicolons(words(m) for m in candidate.marks)


def _unknown(candidate: Candidate) -> str:
    """Why figures are missing: "cost_usd: an owned machine sends no bill; …"."""
    reasons = {**candidate.offer.reasons, **candidate.reasons}
    return with_semicolons(with_colon(name, words(reason)) for name, reason in reasons.items())


def _star(candidate: Candidate) -> Cell:
    if not candidate.on_frontier:
        return Cell(shown="", value=False)
    return Cell(shown=STAR, value=True, title=_("on the frontier: no offer is both faster and cheaper"))


def _provider(candidate: Candidate, usual: Usual) -> Cell:
    """Under the name what is special about the offer; what holds for most rows is said once, below the table."""
    provider = candidate.offer.provider
    told = _told_elsewhere(candidate)
    special = with_semicolons(words(m) for m in candidate.marks if m.template not in usual and m.template not in told)
    return Cell(shown=provider, value=provider, note=special, title=_remarks(candidate))


def _told_elsewhere(candidate: Candidate) -> set[str]:
    """Marks that another cell of the row shows, with what the legend says of it: the GPUs (A or B), the market."""
    markets = {
        "community": {N_("private host")},
        "spot": {N_("spot losses and waits as on AWS in 2022 and 2023: assumed")},
    }
    variants = {N_("GPU variant not stated")} if "|" in candidate.offer.accelerator else set()
    return variants | markets.get(candidate.offer.market, set())


def _gpus(candidate: Candidate) -> Cell:
    how = [method(candidate.prediction.method), *(words(e) for e in candidate.prediction.evidence[:3])]
    return replace(offers.gpus(candidate.offer), title=with_semicolons(how))


def _price(candidate: Candidate, fx: Fx | None, per: str) -> Cell:
    """What is billed, after tax and agreements; the listed price beside it where it is another one."""
    offer, quotes, used = candidate.offer, candidate.quotes, candidate.price_usd_per_hour
    cell, listed, notes = figures.price(offer, fx, used, per), figures.price(offer, fx, per=per), []
    if cell.shown != listed.shown:
        notes.append(_("listed: {price}").format(price=listed.shown))
    if quotes:
        spread = (quotes.minimum_usd_per_hour, quotes.median_usd_per_hour, quotes.maximum_usd_per_hour)
        low, middle, high = (figures.exact_number(figures.in_currency(p, fx), 2) for p in spread)
        notes.append(_("{n} offers at {low}–{middle}–{high}").format(low=low, middle=middle, high=high, n=quotes.count))
    if offer.upfront_usd:
        notes.append(_("{amount} at once").format(amount=figures.amount(offer.upfront_usd, fx)))
    return replace(cell, note=with_semicolons(notes))


def _estimate(candidate: Candidate, key: str, given: Setting, scale: float) -> Cell:
    holder = candidate.prediction if key == "throughput_per_s" else candidate
    estimate: Estimate | None = getattr(holder, key)
    reason = candidate.reasons.get(key)
    if estimate is None and not _applies(candidate, key):
        return Cell(shown="–", title=words(reason) if reason else _("does not apply to this market"))
    if estimate is None:
        return figures.unknown(reason)
    cell = figures.estimate_cell(estimate, scale)
    stop = given.workloads[candidate.workload].stop
    if stop is not None and stop.open_ended and key in ("time_s", "cost_usd", "cost_share_usd"):
        cell = _open_ended(cell)
    return _explained(cell, candidate, given.fx) if key == "cost_usd" else cell


def _open_ended(cell: Cell) -> Cell:
    """So many runs never reach the target that there is no upper end: the P90 shown is the least that it can be."""
    low, dash, high = cell.span.partition("–")
    return replace(cell, span=f"{low}–>{high}") if dash else cell


def _explained(cell: Cell, candidate: Candidate, fx: Fx | None) -> Cell:
    """The bill on hover, and what a credit pays of it beside it: a credit never makes a bill smaller."""
    credit = candidate.cost.credit_usd if candidate.cost else 0.0
    note = _("credit pays {amount}").format(amount=figures.amount(credit, fx)) if credit else ""
    return replace(cell, note=note, title=with_semicolons(filter(None, (bill(candidate), cell.title))))


def bill(candidate: Candidate) -> str:
    """The bill in one line: preparation 0.40 h, compute 9.33 h."""
    lines = candidate.cost.lines if candidate.cost else ()
    return with_commas(f"{line(c.kind)} {figures.number(c.quantity)} {unit(c.unit)}" for c in lines)


def _applies(candidate: Candidate, key: str) -> bool:
    """A bill for one job has no meaning for what one owns, a share none for what is billed by use."""
    if key == "cost_usd":
        return candidate.offer.market not in ("owned", "free")
    fixed = candidate.offer.market in ("owned", "dedicated", "reserved")
    return fixed or key not in ("cost_share_usd", "break_even_hours_per_month")


def _chance(candidate: Candidate) -> Cell:
    probability = candidate.p_cheapest
    if probability is None or not math.isfinite(probability):
        reason = candidate.reasons.get("p_cheapest")
        return Cell(shown="–", title=words(reason) if reason else _("stands apart from the order of costs"))
    return Cell(shown=figures.chance(probability), value=probability)


def _in_time(candidate: Candidate, given: Setting) -> Cell:
    """P(time ≤ deadline), by the log-normal law of the time: Φ(ln(deadline / time) / sd)."""
    if given.deadline_s is None or candidate.time_s is None:
        return Cell(shown="–")
    stop = given.workloads[candidate.workload].stop
    reached = 1.0 if stop is None else stop.reached_fraction
    probability = reached * probability_less(candidate.time_s, exact(given.deadline_s))
    return Cell(shown=figures.chance(probability), value=probability)


def _accuracy_counts(given: Setting) -> bool:
    """Is there an accuracy by which jobs can be told apart?"""
    return len(given.workloads) > 1 and any(w.accuracy_fraction is not None for w in given.workloads.values())


def _accuracy(candidate: Candidate, given: Setting) -> Cell:
    workload = given.workloads[candidate.workload]
    fraction = workload.accuracy_fraction
    if fraction is None:
        return figures.unknown(workload.reasons.get("accuracy_fraction"))
    return Cell(shown=figures.number(100 * fraction), value=fraction, title=workload.source.ref)


def _usual_marks(rows: Sequence[Candidate]) -> Usual:
    """Marks of more than half of the rows, by template."""
    found: dict[str, list[Message]] = {}
    for mark in (mark for candidate in rows for mark in candidate.marks):
        found.setdefault(mark.template, []).append(mark)
    usual = {template: marks for template, marks in found.items() if template not in (CPU_LIMITS, STORAGE_LIMITS)}
    return {template: marks for template, marks in usual.items() if len(marks) > max(2, len(rows) / 2)}


class _Ends(tuple[Any, Any]):
    """The least and the greatest value of some marks, each written as the mark's text writes it: 77–190."""

    def __format__(self, spec: str) -> str:
        return "–".join(dict.fromkeys(format(value, spec) for value in self))


def _in_one(marks: Sequence[Message]) -> str:
    """Marks of one kind as one: "price 77–190 days old (23)"."""
    spread: dict[str, _Ends | str] = {}
    for name in marks[0].values:
        values = {mark.values[name] for mark in marks}
        numbers = sorted(value for value in values if isinstance(value, int | float))
        listed = with_commas(sorted(words(v) if isinstance(v, Message) else str(v) for v in values))
        spread[name] = _Ends((numbers[0], numbers[-1])) if len(numbers) == len(values) else listed
    rows = {id(mark) for mark in marks}
    return _("{what} ({n})").format(what=words(Message(marks[0].template, **spread)), n=len(rows))


def _legend(rows: Sequence[Candidate], given: Setting) -> Iterator[tuple[str, str]]:
    """What the signs of a column mean, by its key."""
    yield "on_frontier", _("{star} on the frontier: no other offer is both faster and cheaper.").format(star=STAR)
    stops = [w.stop for w in given.workloads.values() if w.stop]
    yield SPANS, _("Ranges are P10 to P90, the value is P50.") if stops else _("Ranges are 80 % intervals.")
    if any(stop.open_ended for stop in stops):
        yield "time_s", _("“>”: so many runs never reach the target that there is no P90; at least so much.")
    yield "p_cheapest", _("P(cheapest): how likely the offer is the cheapest of those ranked.")
    if given.deadline_s is not None:
        said = _("P(in time): how likely the job ends within {time}.")
        yield "p_in_time", said.format(time=figures.duration(given.deadline_s))
    if any(c.quotes for c in rows):
        yield "price_usd_per_hour", _("Offers at a–b–c: lowest, median and highest price of that marketplace that day.")
    if any(c.cost and c.cost.credit_usd for c in rows):
        yield "cost_usd", _("Costs are before credits; what a credit pays of one stands beside it.")
    about = {
        "community": _("community: on machines of private hosts."),
        "spot": _("spot: machines are lost as often as on AWS in 2022 and 2023, an assumption."),
    }
    if len(given.workloads) > 1 and not _accuracy_counts(given):
        yield "workload", _("The accuracy of these jobs is unknown: nobody has measured it.")
    there = {c.offer.market for c in rows}
    if met := [text for name, text in about.items() if name in there]:
        yield "market", " ".join(met)


def _notes(ranking: Ranking, rows: Sequence[Candidate], usual: Usual) -> Iterator[str]:
    if usual:
        marks = with_commas(map(_in_one, usual.values()))
        yield _("Holds for most of these {n} rows: {marks}.").format(n=len(rows), marks=marks)
    extra = len(rows) - len(ranking.candidates)
    more = _(", and {n} more: on the frontier, or owned")
    yield _("{shown} of {candidates} candidates shown{tail}; {offers} offers were looked at.").format(
        shown=len(ranking.candidates),
        candidates=figures.count(ranking.total_candidates),
        tail=more.format(n=extra) if extra else "",
        offers=figures.count(ranking.total_offers),
    )
