"""Where should these jobs run? Offers in, a ranking out; pure, on columns.

The steps: rules that need no prediction (`rules`), one prediction a platform with time and bill of every offer left
(`pricing`), the rules on memory, time and bill, then frontier, probability and the objects that are shown (`settled`).
`sieve` keeps count of what was left out, why, and what would let one more in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from gpuwise.catalogue import NO_DATE, Catalogue, as_date
from gpuwise.cost.billing import tax_factor
from gpuwise.cost.discounts import Discounts
from gpuwise.errors import Message
from gpuwise.estimate import exact, probability_less
from gpuwise.model import Accelerator, Assumptions, Candidate, Ranking, Refusal, Workload
from gpuwise.rank import architecture
from gpuwise.rank.architecture import HostFact
from gpuwise.rank.conditions import Surroundings
from gpuwise.rank.marks import held_rules
from gpuwise.rank.pricing import Predict, Priced, Pricing, Rows, price
from gpuwise.rank.rules import Floats, GpuFilter, Mask, Quota, Rule, offer_rules, usual_prices
from gpuwise.rank.settled import SORT_KEYS, Settled, settle
from gpuwise.rank.sieve import Exclusions, Sieve, sieve
from gpuwise.request import OfferFilters, RankRequest
from gpuwise.units import SECONDS_PER_HOUR

__all__ = ["SORT_KEYS", "Context", "GpuFilter", "Quota", "listed", "rank", "usable", "usual_prices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """All that a ranking needs beside the offers and the request.

    predict: one workload and its platforms -> a Prediction or Refusal each. gpu, quotas, discounts: the person's own,
    parsed. usual_usd_per_hour: accelerator id -> usual hourly price of one device, against implausible prices.
    hosts: what is known of the CPUs of instance families. around: what is known of the providers' platforms.
    """

    as_of: date
    data_version: str
    accelerators: Mapping[str, Accelerator]
    predict: Predict
    assumptions: Assumptions
    gpu: GpuFilter = field(default_factory=GpuFilter)
    quotas: Sequence[Quota] = ()
    discounts: Discounts = field(default_factory=Discounts)
    usual_usd_per_hour: Mapping[str, float] = field(default_factory=dict)
    hosts: Sequence[HostFact] = ()
    around: Surroundings = field(default_factory=Surroundings)


def rank(offers: Catalogue, workloads: Sequence[Workload], request: RankRequest, context: Context) -> Ranking:
    """Rank the offers for each workload; `model.Ranking` says what comes back.

    An offer is left out by the first rule it fails; nothing is dropped silently and nothing unknown counts as zero.
    """
    hourly = context.discounts.price_usd_per_hour(offers, context.as_of)
    hourly = hourly * tax_factor(offers, request.tax, request.vat_fraction)
    first = sieve(offers, _offer_rules(offers, hourly, request, context))
    left = offers.take(first.alive)
    judged = [_judge(left, hourly[first.alive], workload, request, context) for workload in workloads]
    settled = [settle(priced, late.alive, offers, request) for priced, late in judged]
    sieves = [first, *(late for _, late in judged)]
    dates = left.observed[left.observed != NO_DATE]

    def could_run(rows: Rows) -> Mask:
        """Would some workload find a place there, but for the one rule?"""
        some = offers.take(rows)
        lates = [_judge(some, hourly[rows], workload, request, context)[1] for workload in workloads]
        return np.asarray(np.logical_or.reduce([late.alive for late in lates]))

    return Ranking(
        as_of=context.as_of,
        data_version=context.data_version,
        workloads=tuple(workloads),
        basis="cost" if request.hours_per_month is None else "share",
        total_offers=len(offers),
        total_candidates=sum(s.total for s in settled),
        candidates=tuple(c for s in settled for c in s.candidates(request.limit)),
        frontier=tuple(c for s in settled for c in s.frontier()),
        own=tuple(c for s in settled for c in s.own()),
        exclusions=Exclusions(sieves),
        counts=sum((s.counts() for s in sieves), Counter()),
        funnel=first.funnel(),
        relaxations=(*first.relaxations(could_run), *(r for s in sieves[1:] for r in s.relaxations(None))),
        warnings=tuple(w for s in settled for w in _warnings(request, s)),
        oldest=as_date(int(dates.min())) if len(dates) else None,
        newest=as_date(int(dates.max())) if len(dates) else None,
    )


def _judge(
    offers: Catalogue, hourly: Floats, workload: Workload, request: RankRequest, context: Context
) -> tuple[Priced, Sieve]:
    """Time and bill of every offer, and the rules that need them."""
    given = Pricing(
        accelerators=context.accelerators,
        predict=context.predict,
        assumptions=context.assumptions,
        discounts=context.discounts,
        around=context.around,
        as_of=context.as_of,
    )
    priced = price(offers, hourly, workload, request, given)
    built_for = architecture.rule(offers, workload, context.hosts)
    rules = [*([built_for] if built_for else []), *_outcome_rules(priced, request)]
    return priced, sieve(offers, rules, workload.name)


SURE = 0.9
"""A deadline that is met less surely than this deserves a word (the upper end of the 80 % interval is at 0.9)."""

PRICE_RULES = (
    "minimum_bid",
    "incomplete_price",
    "suspect_price",
    "unknown_price",
    "implausible_price",
    "outlier_price",
    "unreliable",
)
AGE_RULES = ("stale_price", "superseded")


def listed(offers: Catalogue, request: OfferFilters, context: Context, *, history: bool = False) -> Sieve:
    """Which rows pass a request's filters, whatever is wrong with their price; history: old prices too."""
    aside = PRICE_RULES + (AGE_RULES if history else ())
    hourly = context.discounts.price_usd_per_hour(offers, context.as_of)
    rules = [r for r in _offer_rules(offers, hourly, request, context) if r.name not in aside]
    return sieve(offers, rules)


def usable(offers: Catalogue, request: OfferFilters, context: Context) -> tuple[Sieve, Floats]:
    """Which rows can be planned with: those that pass the filters and have a sound, current price; and every row's
    price in USD an hour after the person's agreements, shape (n,)."""
    hourly = context.discounts.price_usd_per_hour(offers, context.as_of)
    return sieve(offers, _offer_rules(offers, hourly, request, context)), hourly


def _offer_rules(offers: Catalogue, hourly: Floats, request: OfferFilters, context: Context) -> list[Rule]:
    return offer_rules(
        offers,
        hourly,
        request,
        context.as_of,
        context.gpu,
        _nominal_memory(offers, context.accelerators),
        context.usual_usd_per_hour,
        context.quotas,
    )


def _nominal_memory(offers: Catalogue, accelerators: Mapping[str, Accelerator]) -> Floats:
    """Nominal GiB per device as sold, shape (n,): of the smallest variant; as stated where the GPU is unknown."""
    known = [
        min((accelerators[name].memory_gib for name in names.split("|") if name in accelerators), default=np.nan)
        for names in offers.accelerator.values
    ]
    nominal = offers.accelerator.lookup(known, np.nan, np.float64)
    return np.where(np.isnan(nominal), offers.memory_gib, nominal)


def _outcome_rules(priced: Priced, request: RankRequest) -> list[Rule]:
    """The rules that need a prediction: refusals under their own names, then time and bill (gross, before credits)."""

    def refusal(row: int) -> Message:
        outcome = priced.prediction(row)
        assert isinstance(outcome, Refusal)
        return outcome.reason

    rules = [Rule(name=name, fails=fails, reason=refusal) for name, fails in priced.refused().items()]
    rules += held_rules(priced)
    if (limit_s := request.deadline_s) is not None:
        hours = priced.time_s / SECONDS_PER_HOUR
        rules.append(
            Rule(
                name="deadline",
                fails=priced.time_s > limit_s,
                reason=lambda row: Message("it takes {hours:.2f} h", hours=float(hours[row])),
                distance=hours,
                change=lambda row: Message("--deadline {minutes:.0f}min", minutes=float(np.ceil(hours[row] * 60))),
            )
        )
    if (limit_usd := request.budget_usd) is not None:
        bill = np.where(priced.terms.billable, priced.cost_usd, priced.share_usd)
        rules.append(
            Rule(
                name="budget",
                fails=~(bill <= limit_usd),
                reason=lambda row: (
                    Message("it costs {usd:.2f} USD", usd=float(bill[row]))
                    if bill[row] >= 0
                    else Message("what it costs is not known; for an owned machine say --hours-per-month")
                ),
                distance=bill,
                change=lambda row: Message("--budget {usd:.2f}USD", usd=float(np.ceil(bill[row] * 100) / 100)),
            )
        )
    return rules


def _memory_in_doubt(best: Candidate, settled: Settled) -> Iterator[Message]:
    memory = best.prediction.memory
    if memory is None or memory.verdict != "doubtful":
        return
    values = {"workload": best.workload, "need": memory.need_gib.high, "usable": memory.usable_gib}
    sure = settled.surely_fitting()
    if sure is None:
        text = "{workload}: the first offer may lack memory ({usable:.1f} GiB, up to {need:.1f} needed), as all others"
        yield Message(text, **values)
        return
    text = (
        "{workload}: the first offer may lack memory ({usable:.1f} GiB, up to {need:.1f} needed); "
        "the first one that surely fits is {offer} ({gpu})"
    )
    yield Message(text, offer=sure.offer.id, gpu=sure.offer.accelerator, **values)


def _warnings(request: RankRequest, settled: Settled) -> Iterator[Message]:
    """What a reader should know before he trusts the first row."""
    if parts := settled.incomplete:
        text = (
            "{workload}: of {n} offers a part of the bill that you asked about has no known price; where others are "
            "whole, these stand below them and are not compared"
        )
        yield Message(text, workload=settled.priced.workload.name, n=parts)
    for best in settled.candidates(1):
        yield from _memory_in_doubt(best, settled)
        if request.deadline_s is None or best.time_s is None:
            continue
        chance = settled.reached_fraction * probability_less(best.time_s, exact(request.deadline_s))
        if chance < SURE:
            yield Message(
                "{workload}: the first offer meets the deadline with a probability of {percent:.0f} %",
                workload=best.workload,
                percent=100 * chance,
            )
