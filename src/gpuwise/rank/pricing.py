"""Time and bill of every offer for one workload, on columns; objects only for the rows that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import exp, hypot, inf, log

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import NO_DATE, Catalogue, as_days, as_float
from gpuwise.cost.billing import Terms, bill_lines, bill_usd, elasticity, share_usd, terms
from gpuwise.cost.discounts import Discounts
from gpuwise.errors import Message
from gpuwise.estimate import Z80, Estimate, total
from gpuwise.model import Accelerator, Assumptions, Cost, Platform, Prediction, Refusal, Workload
from gpuwise.predict.feed import Feeds, Limit
from gpuwise.predict.target import samples_needed
from gpuwise.request import RankRequest
from gpuwise.units import SECONDS_PER_HOUR

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Predict = Callable[[Workload, Sequence[Platform]], Sequence[Prediction | Refusal]]

DAYS_PER_YEAR = 365.25
PRICE_AGE = "price_age_log_sd_per_root_year"
OTHER_HOST = "noise_other_machine_log_sd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """The parts of the time on a machine that do not depend on the offer."""

    prepare: Estimate
    stops: Estimate

    @staticmethod
    def of(request: RankRequest, assumptions: Assumptions) -> Duration:
        """prepare: seconds before the first step; stops: factor on a spot run with a checkpoint of C every τ.

        1 + C/τ + losses/h · (τ/2 + restart): writing checkpoints, and at each loss half an interval and the restart
        (J. Young, CACM 17(9) 1974, eq. 1). At τ = √(2·C·MTBF) the first two parts are equal.
        """
        if request.prepare_s is None:
            prepare = assumptions["preparation_s"].estimate
        else:
            prepare = Estimate(value=max(request.prepare_s, 1e-9), basis="quoted")
        interval, restart = assumptions["checkpoint_interval_s"].value, assumptions["restart_s"].estimate
        writing = assumptions["checkpoint_s"].estimate / interval
        lost_h = total((Estimate(value=interval / 2), restart)) / SECONDS_PER_HOUR
        stops = total((Estimate(value=1.0), writing, assumptions["spot_losses_per_hour"].estimate * lost_h))
        return Duration(prepare=prepare, stops=stops)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Times:
    """How long m offers take for one workload; arrays have shape (m,), NaN where there is no prediction.

    outcomes: one a platform, of the devices alone; platform: index into it. work: samples in all, one a platform (more
    accelerators need more epochs to a target). feeds: what hosts and store let through. run_s: without interruptions.
    host_sd: log sd between equal machines of two providers, which predictions by platform do not tell apart.
    whole: the times are of the whole job; else of a million samples, without preparation (`Workload.undecided`).
    """

    duration: Duration
    outcomes: Sequence[Prediction | Refusal]
    platform: Rows
    work: Sequence[Estimate]
    feeds: Feeds
    host_sd: float
    whole: bool
    spot: Mask
    prepare_s: Floats
    run_s: Floats
    time_s: Floats
    time_sd: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """m offers with time and bill for one workload; arrays have shape (m,), NaN where there is no figure.

    bill_slope: d ln bill / d ln time. figure_usd: what the ranking uses, with its log sd. rated: priced by a
    negotiated rate.
    """

    offers: Catalogue
    workload: Workload
    as_of: date
    times: Times
    terms: Terms
    cost_usd: Floats
    bill_slope: Floats
    share_usd: Floats
    figure_usd: Floats
    figure_sd: Floats
    price_sd: Floats
    rated: Mask
    discounts: Discounts

    @property
    def time_s(self) -> Floats:
        return self.times.time_s

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
        """Preparation + run + interruptions, in s, with its named errors."""
        outcome = self.prediction(row)
        assert isinstance(outcome, Prediction)
        host = f"host {self.offers.provider[row]} {self.offers.instance[row] or ''}".rstrip()
        work = self.times.work[int(self.times.platform[row])]
        run = (work / outcome.throughput_per_s).widened(host, self.times.host_sd)
        if self.times.spot[row]:
            run = run * self.times.duration.stops
        if not self.times.whole:
            return run
        own = as_float(self.offers.preparation_s[row])
        return total((self.times.duration.prepare if own is None else Estimate(value=own, basis="quoted"), run))

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
        one, time, middle = self.terms.row(row), self.time(row).interval(), float(self.cost_usd[row])
        low, high = (float(bill_usd(one, np.array([used_s]))[0]) for used_s in (time.low, time.high))
        price = Z80 * float(self.price_sd[row])
        if middle == 0:
            return 0.0, high * exp(price)
        below = hypot(log(low / middle), price) if low else inf
        return middle * exp(-below), middle * exp(hypot(log(high / middle), price))

    def _money(self, row: int, usd: float, slope: float) -> Estimate | None:
        if np.isnan(usd):
            return None
        if usd == 0:
            return Estimate(value=0.0, basis="quoted")
        time = self.time(row)
        spread = tuple((name, sd * slope) for name, sd in time.spread if sd * slope)
        name = f"price age {self.offers.provider[row]} {self.offers.accelerator[row]}"
        if not np.isnan(self.offers.price_log_sd[row]):
            name = f"own cost {self.offers.instance[row]}"
        price = Estimate(value=1.0, basis="quoted").widened(name, float(self.price_sd[row]))
        return Estimate(value=usd, spread=spread, basis=time.basis) * price

    def bill(self, row: int) -> Cost:
        """The bill line by line; the lines add up to it."""
        run, stops = float(self.times.run_s[row]), self.times.duration.stops.value - 1
        parts = {"preparation": float(self.times.prepare_s[row]), "compute": run}
        if self.times.spot[row]:
            parts["interruption"] = run * stops
        source = "discounts" if self.rated[row] else self.offers.source[row] or self.offers.name
        lines = bill_lines(self.terms, row, parts, source)
        gross = float(self.cost_usd[row])
        credit = self.discounts.credit_usd(self.offers.provider[row] or "", gross, self.as_of)
        return Cost(billed_usd=gross, lines=lines, credit_usd=credit)


def _as_evidence(limit: Limit) -> Message:
    return Message(
        "× {factor:.3g}: the {part} lets {fed:,.0f} samples/s through of the {taken:,.0f} that the GPUs take",
        factor=limit.used_fraction,
        part=limit.part,
        fed=limit.per_s,
        taken=limit.device_per_s,
    )


def price(
    offers: Catalogue,
    hourly_usd: Floats,
    workload: Workload,
    request: RankRequest,
    *,
    accelerators: Mapping[str, Accelerator],
    predict: Predict,
    assumptions: Assumptions,
    discounts: Discounts,
    as_of: date,
) -> Priced:
    """Predict, time and bill every row. hourly_usd: price after tax and discounts, shape (m,)."""
    times = _times(offers, workload, request, accelerators, predict, assumptions)
    conditions = terms(
        offers,
        price_usd_per_hour=hourly_usd,
        prepaid_h=discounts.committed_h(offers, as_of),
        step_unknown_s=assumptions["billing_step_s"].value,
        hours_per_month=request.hours_per_month,
    )
    rated, agreed = discounts.covered(offers, as_of)
    price_sd = np.where(agreed, 0.0, _price_sd(offers, assumptions, as_of))
    share = share_usd(conditions, times.time_s)
    bill, slope = _bill(conditions, times)
    cost = np.where(conditions.billable, bill, np.nan)
    return Priced(
        offers=offers,
        workload=workload,
        as_of=as_of,
        times=times,
        terms=conditions,
        cost_usd=cost,
        bill_slope=slope,
        share_usd=share,
        figure_usd=np.where(np.isnan(share), cost, share),
        figure_sd=np.hypot(times.time_sd * np.where(np.isnan(share), slope, 1.0), price_sd),
        price_sd=price_sd,
        rated=rated,
        discounts=discounts,
    )


def _bill(conditions: Terms, times: Times) -> tuple[Floats, Floats]:
    """USD and d ln bill / d ln time; of a job of unknown length what a million samples cost, without a billing step."""
    if times.whole:
        return bill_usd(conditions, times.time_s), elasticity(conditions, times.time_s, times.time_sd)
    return conditions.price_usd_per_hour * times.time_s / SECONDS_PER_HOUR, np.ones(len(times.time_s))


def _work(workload: Workload, platforms: Sequence[Platform], jobs: int) -> list[Estimate]:
    """Samples in all, one a platform; a million where nobody said how long the job is."""
    if workload.undecided:
        return [Estimate(value=1e6, basis="measured")] * len(platforms)
    needed = {n: samples_needed(workload, n) * jobs for n in {p.accelerators for p in platforms}}
    return [needed[p.accelerators] for p in platforms]


def _times(
    offers: Catalogue,
    workload: Workload,
    request: RankRequest,
    accelerators: Mapping[str, Accelerator],
    predict: Predict,
    assumptions: Assumptions,
) -> Times:
    platforms, platform = platforms_of(offers, accelerators)
    outcomes = predict(workload, platforms)
    duration = Duration.of(request, assumptions)
    host_sd = assumptions[OTHER_HOST].value
    whole, work = not workload.undecided, _work(workload, platforms, request.jobs)
    feeds = Feeds.of(workload, offers.vcpus * offers.nodes, assumptions)
    speed, speed_sd = _speed(outcomes)
    rate, rate_sd = feeds.rates(speed[platform], speed_sd[platform])
    samples, samples_sd = np.array([(w.value, w.log_sd) for w in work], np.float64).reshape(-1, 2)[platform].T
    spot, usual = offers.market.isin(("spot",)), np.isnan(offers.preparation_s)
    run_s = samples / rate
    busy_s = run_s * np.where(spot, duration.stops.value, 1.0)
    run_sd = np.hypot(np.hypot(rate_sd, samples_sd), host_sd)
    busy_sd = np.hypot(run_sd, np.where(spot, duration.stops.log_sd, 0.0))
    prepare_s = np.where(usual, duration.prepare.value, offers.preparation_s) * whole
    prepare_sd = np.where(usual, duration.prepare.log_sd, 0.0)
    time_s = prepare_s + busy_s
    return Times(
        duration=duration,
        outcomes=outcomes,
        platform=platform,
        work=work,
        feeds=feeds,
        host_sd=host_sd,
        whole=whole,
        spot=spot,
        prepare_s=prepare_s,
        run_s=run_s,
        time_s=time_s,
        time_sd=np.hypot(prepare_sd * prepare_s, busy_sd * busy_s) / time_s,
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
    years = np.maximum(as_days(as_of) - offers.observed, 0) / DAYS_PER_YEAR
    aged = np.where(offers.observed == NO_DATE, 1.0, np.sqrt(years))
    sd = offers.market.lookup(rates, general.value, np.float64) * aged
    return np.where(np.isnan(offers.price_log_sd), sd, offers.price_log_sd)
