"""Time and bill of every offer for one workload, on columns; objects only for the rows that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import exp, hypot, inf, log

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import NO_DATE, Catalogue, as_days
from gpuwise.cost.billing import (
    Terms,
    Use,
    added_vat,
    bill_lines,
    bill_usd,
    elasticity,
    machine_usd,
    share_lines,
    share_usd,
    terms,
)
from gpuwise.cost.discounts import Discounts
from gpuwise.errors import Message
from gpuwise.estimate import Z80, Estimate
from gpuwise.model import Accelerator, Assumptions, Cost, CostLine, Platform, Prediction, Refusal, Workload
from gpuwise.predict.feed import Feeds, Limit
from gpuwise.predict.target import samples_needed
from gpuwise.rank.beside import Things, beside
from gpuwise.rank.conditions import Conditions, Surroundings
from gpuwise.rank.timing import Timing, timing
from gpuwise.request import RankRequest, without_bill
from gpuwise.units import MEAN_DAYS_PER_YEAR, SECONDS_PER_HOUR

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Predict = Callable[[Workload, Sequence[Platform]], Sequence[Prediction | Refusal]]

PRICE_AGE = "price_age_log_sd_per_root_year"
OTHER_HOST = "noise_other_machine_log_sd"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Times:
    """How long m offers take for one workload; arrays have shape (m,), NaN where there is no prediction.

    outcomes: one a platform, of the devices alone; platform: index into it. work: samples of one job, one a platform
    (more accelerators need more epochs to a target). feeds: what hosts and store let through. host_sd: log sd between
    equal machines of two providers, which predictions by platform do not tell apart. timing: of the whole job; where
    `whole` is False of a million samples, without preparation (`Workload.undecided`).
    """

    outcomes: Sequence[Prediction | Refusal]
    platform: Rows
    work: Sequence[Estimate]
    feeds: Feeds
    host_sd: float
    whole: bool
    timing: Timing

    @property
    def time_s(self) -> Floats:
        return self.timing.time_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """m offers with time and bill for one workload; arrays have shape (m,), NaN where there is no figure.

    bill_slope: d ln bill / d ln time held. figure_usd: what the ranking uses, with its log sd. rated: priced by a
    negotiated rate. beside: what is billed beside the machine.
    """

    offers: Catalogue
    workload: Workload
    as_of: date
    conditions: Conditions
    times: Times
    terms: Terms
    beside: Things
    cost_usd: Floats
    bill_slope: Floats
    share_usd: Floats
    figure_usd: Floats
    figure_sd: Floats
    price_sd: Floats
    machine_fraction: Floats
    rated: Mask
    discounts: Discounts

    @property
    def time_s(self) -> Floats:
        return self.times.time_s

    def hourly(self, row: int) -> float:
        """What an hour of this machine costs, tax included; NaN if it is not known."""
        return float(self.terms.price_usd_per_hour[row] * (1 + self.terms.vat_fraction[row]))

    @property
    def hourly_usd(self) -> Floats:
        """What an hour of the machine costs, tax included."""
        return np.asarray(self.terms.price_usd_per_hour * (1 + self.terms.vat_fraction))

    def refused(self) -> dict[str, Mask]:
        """Rule -> rows (m,) whose platform was refused by it."""
        table = [o.rule if isinstance(o, Refusal) else "" for o in self.times.outcomes]
        return {rule: np.array([t == rule for t in table])[self.times.platform] for rule in sorted({*table} - {""})}

    def prediction(self, row: int) -> Prediction | Refusal:
        """Of this offer: what its host lets through of the devices' rate."""
        outcome = self._outcome(row)
        if isinstance(outcome, Refusal):
            return outcome
        left = self.times.feeds.rate(row, outcome.throughput_per_s)
        limit = self.limit(row)
        if limit is None or not limit.sure:
            return replace(outcome, throughput_per_s=left)
        return replace(outcome, throughput_per_s=left, evidence=(*outcome.evidence, _as_evidence(limit)))

    def limit(self, row: int) -> Limit | None:
        """What of the host or the store caps this offer, or may."""
        outcome = self._outcome(row)
        return self.times.feeds.limit(row, outcome.throughput_per_s) if isinstance(outcome, Prediction) else None

    def _outcome(self, row: int) -> Prediction | Refusal:
        return self.times.outcomes[int(self.times.platform[row])]

    def time(self, row: int) -> Estimate:
        """Until the job is done, in s, with its named errors."""
        return self.times.timing.done(row, self._run(row)) if self.times.whole else self.used(row)

    def used(self, row: int) -> Estimate:
        """How long the machine is held, in s."""
        return self.times.timing.used(row, self._run(row))

    def _run(self, row: int) -> Estimate:
        """Seconds of training of the jobs that share one machine."""
        outcome = self.prediction(row)
        assert isinstance(outcome, Prediction)
        host = f"host {self.offers.provider[row]} {self.offers.instance[row] or ''}".rstrip()
        work = self.times.work[int(self.times.platform[row])]
        return (work / outcome.throughput_per_s).widened(host, self.times.host_sd)

    def cost(self, row: int) -> Estimate | None:
        """The gross bill of this job alone, in USD; None for a machine that sends none."""
        money = self._money(row, float(self.cost_usd[row]), float(self.bill_slope[row]))
        return replace(money, bounds=self._bill_bounds(row)) if money is not None and self.times.whole else money

    def share(self, row: int) -> Estimate | None:
        return self._money(row, float(self.share_usd[row]), 1.0)

    def figure(self, row: int) -> Estimate | None:
        """What sort, frontier and probability use: the share where there is one, else the bill."""
        if np.isnan(self.share_usd[row]):
            return self._money(row, float(self.cost_usd[row]), float(self.bill_slope[row]))
        return self.share(row)

    def _bill_bounds(self, row: int) -> tuple[float, float]:
        """80 % bounds: the bill at both ends of the time's interval (it moves in steps), the price's error added."""
        one, use = self.terms.row(row), self._use(row)
        time, middle = self.used(row), float(self.cost_usd[row])
        inside = time.interval()
        low, high = (float(bill_usd(one, use.scaled(end / time.value))[0]) for end in (inside.low, inside.high))
        price = Z80 * float(self.price_sd[row] * self.machine_fraction[row])
        if middle == 0:
            return 0.0, high * exp(price)
        below = hypot(log(low / middle), price) if low else inf
        return middle * exp(-below), middle * exp(hypot(log(high / middle), price))

    def _use(self, row: int) -> Use:
        """How this offer is used, in arrays of shape (1,)."""
        use = self.times.timing.use
        one = {name: np.asarray(getattr(use, name))[row : row + 1] for name in ("used_s", "starts", "losses", "copies")}
        return Use(**one)

    def _money(self, row: int, usd: float, slope: float) -> Estimate | None:
        if np.isnan(usd):
            return None
        if usd == 0:
            return Estimate(value=0.0, basis="quoted")
        time = self.used(row)
        spread = tuple((name, sd * slope) for name, sd in time.spread if sd * slope)
        name = f"price age {self.offers.provider[row]} {self.offers.accelerator[row]}"
        if not np.isnan(self.offers.price_log_sd[row]):
            name = f"own cost {self.offers.instance[row]}"
        price = Estimate(value=1.0, basis="quoted").widened(
            name, float(self.price_sd[row] * self.machine_fraction[row])
        )
        median = None if time.median is None else usd * (time.median / time.value) ** slope
        return Estimate(value=usd, spread=spread, basis=time.basis, median=median) * price

    def bill(self, row: int) -> Cost:
        """The bill line by line; the lines add up to it."""
        timing, one = self.times.timing, self.terms.row(row)
        parts = {kind: float(seconds[row]) for kind, seconds in timing.parts.items() if seconds[row]}
        things = self.beside.lines(row, float(timing.use.used_s[row]) / SECONDS_PER_HOUR)
        lines = bill_lines(one, self._use(row), parts, self._source(row), things)
        gross = float(self.cost_usd[row])
        credit = self.discounts.credit_usd(self.offers.provider[row] or "", gross, self.as_of)
        return Cost(billed_usd=gross, lines=lines, credit_usd=credit)

    def time_parts_s(self, row: int) -> dict[str, float]:
        """What the time until the job is done consists of, in order; together it."""
        timing = self.times.timing
        held = {kind: float(seconds[row]) for kind, seconds in timing.parts.items()}
        around = {"waiting": np.nan_to_num(timing.wait_s), "preparation without GPU": timing.cpu_s}
        parts = {**{kind: float(s[row]) for kind, s in around.items()}, **held}
        parts["standing stopped"] += float(timing.idle_s[row])
        return {kind: seconds for kind, seconds in parts.items() if seconds}

    def sessions(self, row: int) -> float:
        """How often a machine is started for the job, losses aside."""
        use = self._use(row)
        return float(np.asarray(use.starts * use.copies)[0])

    def share_bill(self, row: int) -> tuple[CostLine, ...]:
        """The share line by line; empty where there is none."""
        if np.isnan(self.share_usd[row]) or not self.times.whole:
            return ()
        used_s = float(self.times.timing.use.used_s[row])
        things = self.beside.lines(row, used_s / SECONDS_PER_HOUR)
        return share_lines(self.terms, row, used_s, self._source(row), things)

    def _source(self, row: int) -> str:
        """Where the price of the machine comes from."""
        return "discounts" if self.rated[row] else self.offers.source[row] or self.offers.name


def _as_evidence(limit: Limit) -> Message:
    return Message(
        "× {factor:.3g}: the {part} lets {fed:,.0f} samples/s through of the {taken:,.0f} that the GPUs take",
        factor=limit.used_fraction,
        part=limit.part,
        fed=limit.per_s,
        taken=limit.device_per_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """All that pricing needs beside the offers, the workload and the request."""

    accelerators: Mapping[str, Accelerator]
    predict: Predict
    assumptions: Assumptions
    discounts: Discounts
    around: Surroundings
    as_of: date


def price(offers: Catalogue, hourly_usd: Floats, workload: Workload, request: RankRequest, given: Pricing) -> Priced:
    """Predict, time and bill every row. hourly_usd: price after tax and discounts, shape (m,)."""
    if workload.undecided:
        request = replace(request, **without_bill())
    around = given.around.on(given.as_of)
    offers = around.completed(offers)
    conditions = Conditions.of(offers, around)
    times = _times(offers, conditions, workload, request, given)
    vat = added_vat(offers, request.tax, request.vat_fraction)
    machine = terms(
        offers,
        price_usd_per_hour=hourly_usd / (1 + vat),
        prepaid_h=given.discounts.committed_h(offers, given.as_of),
        covered_usd_per_hour=given.discounts.covered_usd_per_hour(offers, given.as_of),
        step_unknown_s=given.assumptions["billing_step_s"].value,
        hours_per_month=request.hours_per_month,
        cap_h=conditions.cap_h,
        vat_fraction=vat,
        start_s=request.start_s,
    )
    things = beside(offers, conditions, around, request, times.timing)
    whole = machine.beside(things.usd_per_hour, things.once_usd)
    paid = request.vat_fraction if request.tax == "gross" else None
    return _priced(offers, workload, conditions, times, whole, things, given, paid)


def _priced(
    offers: Catalogue, workload: Workload, conditions: Conditions, times: Times, agreed_terms: Terms, things: Things,
    given: Pricing, vat_fraction: float | None,
) -> Priced:  # fmt: skip
    rated, agreed = given.discounts.covered(offers, given.as_of)
    price_sd = np.where(agreed, 0.0, _price_sd(offers, given.assumptions, given.as_of))
    price_sd = np.hypot(price_sd, _tax_sd(offers, vat_fraction))
    timing = times.timing
    share = share_usd(agreed_terms, timing.use.used_s)
    bill, slope = _bill(agreed_terms, times)
    cost = np.where(agreed_terms.billable, bill, np.nan)
    own = _machine_fraction(agreed_terms, timing.use, share, bill) if times.whole else np.ones(len(offers))
    return Priced(
        offers=offers,
        workload=workload,
        as_of=given.as_of,
        conditions=conditions,
        times=times,
        terms=agreed_terms,
        beside=things,
        cost_usd=cost,
        bill_slope=slope,
        share_usd=share,
        figure_usd=np.where(np.isnan(share), cost, share),
        figure_sd=np.hypot(timing.used_sd * np.where(np.isnan(share), slope, 1.0), price_sd * own),
        price_sd=price_sd,
        machine_fraction=own,
        rated=rated,
        discounts=given.discounts,
    )


def _bill(conditions: Terms, times: Times) -> tuple[Floats, Floats]:
    """USD and d ln bill / d ln time; of a job of unknown length what a million samples cost, without a billing step."""
    timing = times.timing
    if times.whole:
        return bill_usd(conditions, timing.use), elasticity(conditions, timing.use, timing.used_sd)
    hourly = conditions.price_usd_per_hour * (1 + conditions.vat_fraction)
    return hourly * timing.use.used_s / SECONDS_PER_HOUR, np.ones(len(hourly))


def _tax_sd(offers: Catalogue, vat_fraction: float | None) -> Floats:
    """Of a price of which nobody says whether it holds VAT, where VAT is paid: it may come on top or not."""
    unsaid = ~offers.tax.isin(("net", "gross")) & ~offers.market.isin(("owned", "free"))
    return np.where(unsaid, log(1 + (vat_fraction or 0.0)) / 2, 0.0)


def _machine_fraction(conditions: Terms, use: Use, share: Floats, bill: Floats) -> Floats:
    """Of the figure that ranks what follows the price of the machine; tariffs beside it have no error of their own."""
    alone = conditions.beside(np.zeros(len(bill)), np.zeros(len(bill)))
    part = np.where(np.isnan(share), machine_usd(conditions, use), share_usd(alone, use.used_s))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(part / np.where(np.isnan(share), bill, share), nan=1.0)


def _work(workload: Workload, platforms: Sequence[Platform]) -> list[Estimate]:
    """Samples of one job, one a platform; a million where nobody said how long the job is."""
    if workload.undecided:
        return [Estimate(value=1e6, basis="measured")] * len(platforms)
    needed = {n: samples_needed(workload, n) for n in {p.accelerators for p in platforms}}
    return [needed[p.accelerators] for p in platforms]


def _times(
    offers: Catalogue, conditions: Conditions, workload: Workload, request: RankRequest, given: Pricing
) -> Times:
    platforms, platform = platforms_of(offers, given.accelerators)
    outcomes = given.predict(workload, platforms)
    said = all(isinstance(o, Refusal) or o.method == "stated" for o in outcomes)
    host_sd = 0.0 if said else given.assumptions[OTHER_HOST].value
    whole, work = not workload.undecided, _work(workload, platforms)
    feeds = Feeds.of(workload, offers.vcpus * offers.nodes, given.assumptions, shared=conditions.shared)
    speed, speed_sd = _speed(outcomes)
    rate, rate_sd = feeds.rates(speed[platform], speed_sd[platform])
    samples, samples_sd = np.array([(w.value, w.log_sd) for w in work], np.float64).reshape(-1, 2)[platform].T
    run_sd = np.hypot(np.hypot(rate_sd, samples_sd), host_sd)
    timed = timing(offers, conditions, request, given.assumptions, samples / rate, run_sd)
    return Times(
        outcomes=outcomes,
        platform=platform,
        work=work,
        feeds=feeds,
        host_sd=host_sd,
        whole=whole,
        timing=timed,
    )


def platforms_of(offers: Catalogue, accelerators: Mapping[str, Accelerator]) -> tuple[list[Platform], Rows]:
    """The distinct platforms of the offers, and which one each row is."""
    key = np.zeros(len(offers), np.int64)
    for text in (offers.accelerator, offers.link):
        key = key * (len(text.values) + 1) + text.codes + 1
    for number in (offers.accelerators, offers.nodes):
        key = key * (int(number.max(initial=0)) + 1) + number.astype(np.int64)
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    return [_platform(offers, int(row), accelerators) for row in first], index


def _platform(offers: Catalogue, row: int, accelerators: Mapping[str, Accelerator]) -> Platform:
    names = (offers.accelerator[row] or "").split("|")
    return Platform(
        variants=tuple(accelerators[name] for name in names),
        per_node=int(offers.accelerators[row]),
        nodes=int(offers.nodes[row]),
        link=offers.link[row],
    )


def _speed(outcomes: Sequence[Prediction | Refusal]) -> tuple[Floats, Floats]:
    known = [o.throughput_per_s if isinstance(o, Prediction) else None for o in outcomes]
    value = np.array([np.nan if e is None else e.value for e in known], np.float64)
    return value, np.array([np.nan if e is None else e.log_sd for e in known], np.float64)


def _price_sd(offers: Catalogue, assumptions: Assumptions, as_of: date) -> Floats:
    """Log sd of a price: of its age (a random walk, sd a root year · √years, the market's own rate where one is known),
    or what the owner's ranges leave of an owned machine's.

    Fitted on the bundled history of prices (docs/why/data.md). A price without a date counts as a year old.
    """
    general = assumptions[PRICE_AGE]
    rates = [assumptions.get(f"{PRICE_AGE}_{m.replace('-', '_')}", general).value for m in offers.market.values]
    years = np.maximum(as_days(as_of) - offers.observed, 0) / MEAN_DAYS_PER_YEAR
    aged = np.where(offers.observed == NO_DATE, 1.0, np.sqrt(years))
    sd = offers.market.lookup(rates, general.value, np.float64) * aged
    return np.where(np.isnan(offers.price_log_sd), sd, offers.price_log_sd)
