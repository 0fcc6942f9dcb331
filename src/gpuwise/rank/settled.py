"""The offers that are left, compared: order, frontier, probability, and one `Candidate` for each row that is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import NO_DATE, Catalogue, as_days, as_float
from gpuwise.errors import Message
from gpuwise.estimate import Z80, Estimate, difference, exact, total
from gpuwise.model import Candidate, Offer, Prediction, Quotes
from gpuwise.rank.frontier import frontier, p_cheapest
from gpuwise.rank.marks import held_marks
from gpuwise.rank.pricing import Floats, Mask, Priced, Rows
from gpuwise.request import RankRequest
from gpuwise.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

OLD_PRICE_DAYS = 30
"""A price older than this is marked with its age beside its date."""
CONTENDERS = 150
"""So many offers at most, the cheapest first, are drawn for p_cheapest; of others it is not said."""

FULLY_USED = 0.95
"""An offer whose host leaves at least so much of the GPU is not marked as limited."""

CPU_LIMITS = "CPU limits this offer: {used} % of the GPU used ({vcpus} vCPUs load {fed} of {taken} samples/s)"
STORAGE_LIMITS = "storage limits this offer: {used} % of the GPU used ({fed} of {taken} samples/s)"
"""Marks that stand in each row that they hold for, however many there are."""

APART = 1e15
"""Stands above every key."""
Ranks = NDArray[np.int8]

SORT_KEYS = ("cost", "time", "price", "p_cheapest")


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """alive: rows (m,) that no rule left out. key: what they are sorted by, small first, inf where it is not known.
    apart: 0 for those that are compared; 1 where a part of the bill is not known and others know theirs, 2 for what is
    free or sold out; they come after. on_frontier, p_cheapest: (m,), NaN for offers that take no part.

    all_offers: the whole catalogue, for the spread of a marketplace. hourly: row of the cheapest on-demand offer.
    """

    priced: Priced
    request: RankRequest
    all_offers: Catalogue
    alive: Mask
    apart: Ranks
    key: Floats
    on_frontier: Mask
    p_cheapest: Floats
    hourly: int | None

    @property
    def reached_fraction(self) -> float:
        """Share of runs that reach the end of training at all."""
        stop = self.priced.workload.stop
        return 1.0 if stop is None else stop.reached_fraction

    @property
    def incomplete(self) -> int:
        """How many offers have a part of their bill without a known price."""
        return int((self.alive & self.priced.beside.incomplete).sum())

    @property
    def total(self) -> int:
        """How many offers are left."""
        return int(self.alive.sum())

    def candidates(self, limit: int | None) -> Iterator[Candidate]:
        """The best offers, best first."""
        rows = np.flatnonzero(self.alive)
        return self._shown(rows, limit)

    def surely_fitting(self) -> Candidate | None:
        """The best offer on which memory is not in doubt."""
        memory = [outcome.memory for outcome in self.priced.times.outcomes]
        fits = np.array([fit is None or fit.verdict == "fits" for fit in memory])[self.priced.times.platform]
        return next(self._shown(np.flatnonzero(self.alive & fits), 1), None)

    def frontier(self) -> Iterator[Candidate]:
        return self._shown(np.flatnonzero(self.on_frontier))

    def own(self) -> Iterator[Candidate]:
        return self._shown(np.flatnonzero(self.alive & self.priced.offers.market.isin(("owned",))))

    def _shown(self, rows: Rows, limit: int | None = None) -> Iterator[Candidate]:
        if limit is not None and limit < len(rows):
            ranks = self.apart[rows] * APART + np.where(np.isinf(self.key[rows]), APART / 2, self.key[rows])
            rows = rows[ranks <= np.partition(ranks, limit)[limit]]
        best = rows[np.lexsort((rows, self.priced.time_s[rows], self.key[rows], self.apart[rows]))]
        return (self.candidate(int(row)) for row in best[:limit])

    def candidate(self, row: int) -> Candidate:
        prediction = self.priced.prediction(row)
        assert isinstance(prediction, Prediction)
        offer = self.priced.offers.offer(row)
        p, whole = float(self.p_cheapest[row]), self.priced.times.whole
        reasons: dict[str, Message] = {}
        if np.isnan(p):
            reasons["p_cheapest"] = _no_chance(self, row)
        if not whole:
            return _by_the_million(self, row, offer, prediction, reasons, p)
        return Candidate(
            offer=offer,
            workload=self.priced.workload.name,
            prediction=prediction,
            price_usd_per_hour=as_float(self.priced.hourly(row)),
            time_s=self.priced.time(row),
            wait_s=_or(self.priced.times.timing.wait(row), reasons, "wait_s", NO_WAIT),
            accelerator_h=self.priced.used(row) * (offer.accelerators / SECONDS_PER_HOUR),
            cost_usd=_or(self.priced.cost(row), reasons, "cost_usd", _no_cost(offer)),
            cost_share_usd=_or(self.priced.share(row), reasons, "cost_share_usd", _no_share(offer)),
            break_even_hours_per_month=_or(*_break_even(self, row, reasons)),
            on_frontier=bool(self.on_frontier[row]),
            p_cheapest=None if np.isnan(p) else p,
            cost=self.priced.bill(row) if self.priced.terms.billable[row] else None,
            share_lines=self.priced.share_bill(row),
            time_parts_s=self.priced.time_parts_s(row),
            sessions=self.priced.sessions(row),
            quotes=_quotes(self.all_offers, offer),
            marks=tuple(_marks(self.priced, row, offer, self.request)),
            reasons=reasons,
        )


NO_WAIT = Message("no source states how long this offer makes you wait")
DURATION_UNKNOWN = Message("duration unknown: nothing says how long the job is (--samples, --epochs)")


def _by_the_million(
    settled: Settled, row: int, offer: Offer, prediction: Prediction, reasons: dict[str, Message], p: float
) -> Candidate:
    """An offer for a job of unknown length: no totals, but what its work costs there (UC-050)."""
    priced, request = settled.priced, settled.request
    million = priced.figure(row)
    steps = priced.workload.batch_per_accelerator * offer.accelerators * 1000
    totals = ("time_s", "accelerator_h", "cost_usd", "cost_share_usd", "break_even_hours_per_month")
    reasons = {**reasons, "wait_s": NO_WAIT, **dict.fromkeys(totals, DURATION_UNKNOWN)}
    if million is None:
        none = _no_share(offer) if offer.market == "owned" else _no_cost(offer)
        reasons |= dict.fromkeys(("usd_per_million_samples", "usd_per_1000_steps"), none)
    return Candidate(
        offer=offer,
        workload=priced.workload.name,
        prediction=prediction,
        price_usd_per_hour=as_float(priced.hourly(row)),
        time_s=None,
        wait_s=None,
        accelerator_h=None,
        cost_usd=None,
        cost_share_usd=None,
        break_even_hours_per_month=None,
        on_frontier=bool(settled.on_frontier[row]),
        p_cheapest=None if np.isnan(p) else p,
        cost=None,
        usd_per_million_samples=million,
        usd_per_1000_steps=None if million is None else million * (steps / 1e6),
        quotes=None,
        marks=tuple(_marks(priced, row, offer, request)),
        reasons=reasons,
    )


def settle(priced: Priced, alive: Mask, all_offers: Catalogue, request: RankRequest) -> Settled:
    """Compare what is left. Free tiers and sold-out offers take no part in frontier and probability."""
    apart = _apart(priced, alive)
    competes = alive & (apart == 0) & ~np.isnan(priced.figure_usd)
    figure = np.where(competes, priced.figure_usd, np.nan)
    chances = _chances(priced, competes)
    on_demand = np.where(priced.offers.market.isin(("on-demand",)), figure, np.nan)
    return Settled(
        priced=priced,
        request=request,
        all_offers=all_offers,
        alive=alive,
        apart=apart,
        key=_key(priced, alive, chances, request.sort),
        on_frontier=frontier(np.where(competes, priced.time_s, np.nan), figure),
        p_cheapest=chances,
        hourly=None if np.isnan(on_demand).all() else int(np.nanargmin(on_demand)),
    )


def _key(priced: Priced, alive: Mask, chances: Floats, sort: str) -> Floats:
    key = {
        "cost": priced.figure_usd,
        "time": priced.time_s,
        "price": priced.hourly_usd,
        "p_cheapest": -chances,
    }[sort]
    return np.where(alive & ~np.isnan(key), key, np.inf)


def _apart(priced: Priced, alive: Mask) -> Ranks:
    """A bill of which a part is not known is no bill to compare with those that are whole."""
    offers = priced.offers
    aside = offers.market.isin(("free",)) | offers.availability.isin(("sold out",))
    part = priced.beside.incomplete
    whole = bool((alive & ~aside & ~part & ~np.isnan(priced.figure_usd)).any())
    return np.where(aside, 2, np.where(part & whole, 1, 0)).astype(np.int8)


def _chances(priced: Priced, competes: Mask) -> Floats:
    """p_cheapest (m,): drawn for those that could be the cheapest, 0 for the rest, NaN where it was not worked out.

    An offer could be if its cost, two 80 % half-widths below, is under the least upper end of all intervals.
    """
    chance = np.where(competes, 0.0, np.nan)
    if not competes.any():
        return chance
    low = np.where(competes, priced.figure_usd * np.exp(-2 * Z80 * priced.figure_sd), np.inf)
    high = np.where(competes, priced.figure_usd * np.exp(Z80 * priced.figure_sd), np.inf)
    contenders = np.flatnonzero(low <= high.min())
    contenders = contenders[np.argsort(priced.figure_usd[contenders], kind="stable")]
    chance[contenders[CONTENDERS:]] = np.nan
    contenders = contenders[:CONTENDERS]
    figures = [priced.figure(int(row)) for row in contenders]
    chance[contenders] = p_cheapest([f for f in figures if f is not None])
    return chance


def _or(figure: Estimate | None, reasons: dict[str, Message], name: str, reason: Message) -> Estimate | None:
    if figure is None:
        reasons[name] = reason
    return figure


def _no_chance(settled: Settled, row: int) -> Message:
    if settled.apart[row] == 1:
        return Message("a part of its bill is not known: it is not compared with those that are whole")
    return Message("the offer stands apart, has no cost to compare, or too many cost the same")


def _no_cost(offer: Offer) -> Message:
    if offer.market == "owned":
        return Message("an owned machine sends no bill for one job; its share is the figure")
    return Message("the offer has no usable price")


def _no_share(offer: Offer) -> Message:
    if offer.market in ("dedicated", "reserved", "owned"):
        return Message("say how many hours a month the machine is busy: --hours-per-month")
    return Message("billed by use: there is nothing to share")


def _break_even(
    settled: Settled, row: int, reasons: dict[str, Message]
) -> tuple[Estimate | None, dict[str, Message], str, Message]:
    """Busy hours a month h at which fixed/h · t + running · t + b equals the cheapest on-demand bill C of the same job;
    b: its disk, data and addresses.

    h = fixed · t / (C − running · t − b), t in hours.
    Test value: 730 USD a month against 2 USD/h at equal speed is 365 h.
    """
    priced, name = settled.priced, "break_even_hours_per_month"
    owned = not priced.terms.billable[row]
    if not (owned or priced.terms.committed[row]):
        return None, reasons, name, Message("billed by use: there is no fixed cost to make up for")
    reference = None if settled.hourly is None else priced.cost(settled.hourly)
    if reference is None or reference.value == 0:
        return None, reasons, name, Message("no on-demand offer with a bill is left to compare with")
    running = float(np.nan_to_num(priced.offers.running_usd_per_hour[row]))
    vat = 1 + float(priced.terms.vat_fraction[row])
    fixed = (float(priced.terms.price_usd_per_hour[row]) - running) * HOURS_PER_MONTH
    fixed = (fixed + float(priced.terms.licence_usd_per_month[row])) * vat
    time_h = priced.used(row) / SECONDS_PER_HOUR
    more = time_h.value * float(priced.terms.beside_usd_per_hour[row]) + float(priced.terms.once_usd[row])
    parts = [time_h * (running * vat)] if running else []
    parts += [exact(more * vat)] if more else []
    energy = total(parts) if parts else None
    if energy is not None and energy.value >= reference.value:
        alone = Message("never: its energy alone costs more than the cheapest on-demand offer")
        beside = Message("never: what it needs beside its rent costs more than the cheapest on-demand offer")
        return None, reasons, name, beside if more else alone
    hours = time_h * fixed / (reference if energy is None else difference(reference, energy))
    if hours.value > HOURS_PER_MONTH:
        return None, reasons, name, Message("never: it would take {hours:.0f} busy hours a month", hours=hours.value)
    return hours, reasons, name, Message("")


def _spot_assumed(priced: Priced, row: int, request: RankRequest) -> bool:
    """Does nobody say how often this spot machine is lost, or how long one waits for it?"""
    losses = request.losses_per_hour is not None or not np.isnan(priced.offers.losses_per_hour[row])
    waits = request.available_fraction is not None or not np.isnan(priced.offers.wait_s[row])
    return priced.offers.market[row] == "spot" and not (losses and waits)


def _marks(priced: Priced, row: int, offer: Offer, request: RankRequest) -> list[Message]:
    """Short remarks a reader must not miss, in a fixed order."""
    offers = priced.offers
    age = as_days(priced.as_of) - int(offers.observed[row])
    undated = offers.observed[row] == NO_DATE
    by_use = bool(priced.terms.billable[row]) and not priced.terms.committed[row]
    assumed_step = by_use and offer.billing_step_s is None and offer.market != "free"
    tests: list[tuple[bool, Message]] = [
        (offer.quality == "example", Message("example")),
        (offer.quality == "count-assumed", Message("one GPU assumed")),
        (offer.market == "free", Message("free, no guarantee")),
        (offer.availability in ("sold out", "on request"), Message("{state}", state=offer.availability)),
        ("|" in offer.accelerator, Message("GPU variant not stated")),
        (bool(undated), Message("price without a date")),
        (not undated and age > OLD_PRICE_DAYS, Message("price {days} days old", days=age)),
        (offer.observed_precision == "not-before", Message("price date is the earliest possible")),
        (offer.observed_precision.startswith("not-after"), Message("price date is the latest possible")),
        (offers.tax[row] not in ("net", "gross"), Message("VAT not stated")),
        (
            offers.tax[row] == "gross" and bool(np.isnan(offers.vat_fraction[row])),
            Message("VAT of unknown rate inside"),
        ),
        (bool(priced.rated[row]), Message("your rate")),
        (_spot_assumed(priced, row, request), Message("spot losses and waits as on AWS in 2022 and 2023: assumed")),
        (assumed_step, Message("billing by the hour assumed")),
        (offer.host == "peer", Message("private host")),
    ]
    found = (mark for holds, mark in tests if holds)
    return [*found, *held_marks(priced, row, request), *_tight(priced, row), *_limited(priced, row, offer)]


def _tight(priced: Priced, row: int) -> Iterator[Message]:
    """Memory that may not be enough."""
    memory = priced.prediction(row).memory
    if memory is not None and memory.verdict == "doubtful":
        text = "memory doubtful: about {need:.1f} GiB needed, {usable:.1f} GiB usable"
        yield Message(text, need=memory.need_gib.value, usable=memory.usable_gib)


def _limited(priced: Priced, row: int, offer: Offer) -> Iterator[Message]:
    """A host or a store that caps the offer; one that may, where nobody measured the loading; one that says nothing."""
    limit, feeds = priced.limit(row), priced.times.feeds
    if limit is None:
        if feeds.measured and offer.vcpus is None:
            yield Message("feed unknown: the offer does not say how many vCPUs it has")
        return
    values = {"fed": round(limit.per_s), "taken": round(limit.device_per_s), "vcpus": offer.vcpus}
    if not limit.sure:
        yield Message(
            "its {vcpus} vCPUs may limit it: about {fed} of {taken} samples/s if loading is as assumed",
            **values,
        )
    elif limit.used_fraction < FULLY_USED:
        used = round(100 * limit.used_fraction)
        text = CPU_LIMITS if limit.part == "CPU" else STORAGE_LIMITS
        yield Message(text, used=used, **values)


def _quotes(offers: Catalogue, offer: Offer) -> Quotes | None:
    """Minimum, median and maximum that one marketplace asks for this GPU on that day; None for a single quote."""
    if offer.market != "community":
        return None
    same = offers.provider.isin((offer.provider,)) & offers.market.isin(("community",))
    same &= offers.accelerator.isin((offer.accelerator,)) & (offers.observed == as_days(offer.observed))
    same &= (offers.accelerators * offers.nodes == offer.accelerators) & (offers.price_usd_per_hour > 0)
    prices = offers.price_usd_per_hour[same]
    if len(prices) < 2:
        return None
    return Quotes(
        count=len(prices),
        minimum_usd_per_hour=float(prices.min()),
        median_usd_per_hour=float(np.median(prices)),
        maximum_usd_per_hour=float(prices.max()),
    )
