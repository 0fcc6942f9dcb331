"""When to leave the cloud: a date that needs no forecast, a date that uses one, and what waiting costs.

For a fleet of N servers, month by month: what the cloud bills for the work that the fleet would do, less what the fleet
would cost to run, is the premium. B = capex − worth at the end of its life + the cost of moving is what leaving costs.

Robust date: the first month in which the premium paid so far reaches B. Whoever leaves then never pays more than twice
what hindsight would have paid (`rental`), as long as no month's premium is below 0. A forecast may move it, but only
between the months in which the premium reaches λB and B/λ, 0 < λ ≤ 1.
Probable date: the first month m, and the next one, in which the value of ordering then,

    V(m) = Σ (premium of each month from m + lead on, discounted) − capital of a fleet ordered in m − cost of moving,

is above 0 on at least 80 % of the paths, and the fleet's median utilisation is at least 1.15 times its break-even.
Each date is the earliest over all fleet sizes, so that a dearer cloud never delays it: for each size the premium grows
with the price, and B does not.

Source: ski rental, A. Karlin et al., Algorithmica 3 (1988) 79; advice that is trusted by λ, M. Purohit, Z. Svitkina,
R. Kumar, NeurIPS 31 (2018) 9661, §2; thresholds of the probable date: this project's (assumption).
Test value: 10,000 USD a month premium, B = 60,000: robust in the 6th month; λ = 0.5: from the 3rd to the
12th.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpuwise.own.case import Case, as_lived, asset, servers, tail, world
from gpuwise.own.choose import discount
from gpuwise.own.decide import SURE, Range, spread
from gpuwise.own.figures import Drawn
from gpuwise.own.market import break_even
from gpuwise.own.plan import Asset, Own, World, capital, useful_year_usd
from gpuwise.own.rental import NEVER, Months, clamped_month, robust_month
from gpuwise.own.sensitivity import Weights, weigh
from gpuwise.units import HOURS_PER_MONTH, MONTHS_PER_YEAR, WEEKS_PER_MONTH, Fraction, Usd

Floats = NDArray[np.float64]
PATHS = 2_000
MARGIN = 1.15
"""Utilisation over break-even from which the probable date holds: a fleet at its break-even alone gains nothing."""
TRUST = 0.5
SIZES = 12
"""Fleet sizes that are tried, from one server to what the largest demand needs."""
WAITS = (6, 12)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """What was used and paid, month by month, the last month last: (months,). effective_usd: of the GPUs alone."""

    gpu_h: Floats
    effective_usd: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A commitment that must be paid on: usd_per_month until the end of month `end_month` from now."""

    name: str
    usd_per_month: Usd
    end_month: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaving:
    """The question. moving_usd: egress, both running side by side, work, once. trust: λ. promises: see `Promise`."""

    case: Case
    history: History
    site: str
    moving_usd: Usd = 0.0
    promises: tuple[Promise, ...] = ()
    trust: Fraction = TRUST


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A month from now: 0 is this one, below 0 in the past, None never within the horizon."""

    month: int | None
    servers: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exit:
    """The answer. Months count from now.

    month: of the clamped rule in the middle case, None: never. p10_month, p50_month, p90_month: of the month in which
    the clamped rule fires on a path, None: never within the horizon. p_before: name of a commitment -> P(it fires
    before that one ends); p_never: on this share of paths it does not fire. servers: how many to own now, by
    expectation; gpus of them. premium_usd: paid so far for the work that they, or one server if it is none, would have
    done; barrier_usd: their B. meter_usd: the premium summed up over past and middle future, (months,), `past` of them
    past. value_usd: V(0). wait_usd: months -> what waiting costs, V(0) − V(months). utilisation_fraction,
    break_even_fraction: of these servers now. order_month: when to order for the clamped rule's date in the middle
    case, or for the end of a later commitment where that is worth more; None: never.
    """

    robust: When
    probable: When
    month: int | None
    p10_month: int | None
    p50_month: int | None
    p90_month: int | None
    p_never: Fraction
    p_before: Mapping[str, Fraction]
    servers: int
    gpus: int
    site: str
    premium_usd: Usd
    barrier_usd: Usd
    meter_usd: Floats
    past: int
    value_usd: Range
    p_pays: Fraction
    wait_usd: Mapping[int, Range]
    utilisation_fraction: Fraction
    break_even_fraction: Fraction | None
    order_month: int | None
    weights: Weights


def leave(asked: Leaving, *, paths: int = PATHS, seed: int = 0) -> Exit:
    """When to leave, over chance. The same seed gives the same answer."""
    rng = np.random.default_rng(seed)
    case = asked.case
    drawn = case.figures.drawn(paths, rng)
    lived = world(case, drawn, rng)
    calm = world(case, middle := case.figures.middle())
    now = servers(case, drawn, lived, asked.site)
    sizes = _sizes(asked, lived)
    robust = min((_robust(asked, middle, calm, size) for size in sizes), key=_earlier)
    bought = {size: _bought(asked, drawn, size, range(case.months)) for size in (1, 2)}  # with and without a network
    probable = min((_probable(asked, drawn, lived, size, bought[min(size, 2)]) for size in sizes), key=_earlier)
    fired = _fired(asked, drawn, lived, sizes, probable)
    size, past = max(now, 1), len(asked.history.gpu_h)
    value = _value(asked, drawn, lived, size, bought[min(size, 2)])
    meter = np.cumsum(_premiums(asked, middle, calm, size)[0])
    clamped = _clamped(asked, middle, calm, sizes, probable)
    return Exit(
        robust=robust,
        probable=probable,
        month=clamped,
        **{f"p{share}_month": _percentile(fired, share / 100) for share in (10, 50, 90)},
        p_never=float((fired == NEVER_MONTH).mean()),
        p_before={promise.name: float((fired < promise.end_month).mean()) for promise in asked.promises},
        servers=now,
        gpus=now * case.accelerators,
        site=asked.site,
        premium_usd=float(meter[past - 1]) if past else 0.0,
        barrier_usd=float(_barrier(asked, middle, size)[0]),
        meter_usd=meter,
        past=past,
        value_usd=spread(value[:, 0]),
        p_pays=float((value[:, 0] > 0).mean()),
        wait_usd={wait: spread(value[:, 0] - value[:, wait]) for wait in WAITS if wait < case.months},
        utilisation_fraction=float(_utilisation(asked, middle, calm, size)[0, 0]),
        break_even_fraction=_possible(_break_even(asked, middle, calm, size)[0, 0]),
        order_month=_ordered(asked, clamped, middle, value.mean(axis=0)),
        weights=weigh(case, partial(_sides, asked, size), as_lived(drawn, lived), value[:, 0], seed=seed),
    )


def _possible(use: float) -> Fraction | None:
    """None for more than there are hours."""
    return float(use) if use <= 1 else None


NEVER_MONTH = 10**6
"""Later than any horizon: sorts after every month."""


def _earlier(when: When) -> tuple[int, int]:
    """The earliest first; of two that are as early the larger fleet."""
    return (NEVER_MONTH if when.month is None else when.month, -(when.servers or 0))


def _sizes(asked: Leaving, lived: World) -> Sequence[int]:
    """Fleet sizes to be tried: they follow from the demand alone, never from prices."""
    largest = max(float(np.quantile(lived.demand_gpu_h, 0.9)), float(asked.history.gpu_h.max(initial=0.0)))
    most = max(1, int(np.ceil(largest / HOURS_PER_MONTH * LARGEST_OVER_MEAN / asked.case.accelerators)))
    limit = asked.case.most.get(asked.site)
    most = most if limit is None else min(most, limit)
    return sorted({int(size) for size in np.rint(np.geomspace(1, max(most, 1), SIZES))})


LARGEST_OVER_MEAN = 2.0
"""Nobody owns for more than twice the mean of a large month."""


# ---- premium and barrier ----


def _fleet(asked: Leaving, drawn: Drawn, size: int) -> Asset:
    return asset(asked.case, drawn, asked.site, alone=size == 1)


def _work(asked: Leaving, one: Asset, size: int, demand_gpu_h: Floats, lived: World) -> Floats:
    """GPU-hours of the demand that the fleet does in each month."""
    mean = np.maximum(demand_gpu_h / HOURS_PER_MONTH, 1e-12)
    capacity = np.broadcast_to(size * np.asarray(one.useful_gpus) / mean, np.broadcast_shapes(np.shape(mean), (1, 1)))
    return demand_gpu_h * lived.shape.served(np.ascontiguousarray(capacity))


def _premium(asked: Leaving, drawn: Drawn, lived: World, size: int) -> Floats:
    """Of each coming month, as if the fleet were there, (paths, months)."""
    one = _fleet(asked, drawn, size)
    work = _work(asked, one, size, lived.demand_gpu_h, lived)
    hourly = tail(drawn).useful_usd_per_gpu_hour * lived.price - one.running_usd_per_gpu_hour / one.work_fraction
    return np.asarray(work * hourly - size * np.asarray(one.fixed_usd_per_month))


def _past(asked: Leaving, drawn: Drawn, lived: World, size: int) -> Floats:
    """Of each past month, at what was really paid, (paths or 1, months)."""
    history = asked.history
    if not len(history.gpu_h):
        return np.zeros((1, 0))
    one = _fleet(asked, drawn, size)
    demand = np.broadcast_to(history.gpu_h, (len(lived.demand_gpu_h), len(history.gpu_h)))
    work = _work(asked, one, size, demand, lived)
    paid = history.effective_usd / np.maximum(history.gpu_h, 1e-12)
    return np.asarray(
        work * (paid - one.running_usd_per_gpu_hour / one.work_fraction) - size * np.asarray(one.fixed_usd_per_month)
    )


def _premiums(asked: Leaving, drawn: Drawn, lived: World, size: int) -> Floats:
    """Of each month from the first one of the record to the horizon, (paths, past + months)."""
    past, coming = _past(asked, drawn, lived, size), _premium(asked, drawn, lived, size)
    return np.concatenate((np.broadcast_to(past, (len(coming), past.shape[1])), coming), axis=1)


def _barrier(asked: Leaving, drawn: Drawn, size: int) -> Floats:
    """B: capex less what the fleet is worth at the end of its life, and the cost of moving; (paths or 1,)."""
    one = _fleet(asked, drawn, size)
    aged = np.asarray(one.life_years) + np.asarray(one.lead_months) / MONTHS_PER_YEAR
    worth = one.server_usd * np.exp(-one.worth_decline_per_year * aged)
    return np.asarray(size * (one.capex_usd - worth) + asked.moving_usd)[:, 0]


def _from_now(asked: Leaving, months: Months) -> Months:
    """Months of the record and after, counted from now: below 0 in the past, NEVER_MONTH where there is none."""
    return np.where(months == NEVER, NEVER_MONTH, months - len(asked.history.gpu_h))


def _robust(asked: Leaving, middle: Drawn, calm: World, size: int) -> When:
    reached = robust_month(_premiums(asked, middle, calm, size), _barrier(asked, middle, size))
    month = int(_from_now(asked, reached)[0])
    return When(month=None if month == NEVER_MONTH else month, servers=size)


# ---- the value of leaving ----


def _bought(asked: Leaving, drawn: Drawn, size: int, orders: Sequence[int]) -> Floats:
    """Value today of what one server of such a fleet costs to buy and gives back, by month of its order,
    (paths or 1, orders)."""
    one, factors = _fleet(asked, drawn, size), discount(asked.case.months, drawn["discount_fraction"])
    layers = (Own(asset=one, servers=1, order_month=month) for month in orders)
    return np.stack([(capital(layer, asked.case.months) * factors).sum(axis=1) for layer in layers], axis=1)


def _value(asked: Leaving, drawn: Drawn, lived: World, size: int, bought: Floats) -> Floats:
    """V(m) by path for orders in the first months, as many as `bought` has, (paths, orders)."""
    months, one = asked.case.months, _fleet(asked, drawn, size)
    factors = np.broadcast_to(discount(months, drawn["discount_fraction"]), (len(lived.demand_gpu_h), months + 1))
    premium = _premium(asked, drawn, lived, size) * factors[:, 1:]
    after = np.concatenate((np.cumsum(premium[:, ::-1], axis=1)[:, ::-1], np.zeros((len(premium), 1))), axis=1)
    lead = np.broadcast_to(np.ceil(np.asarray(one.lead_months)), (len(premium), 1)).astype(int)
    starts = np.minimum(np.arange(bought.shape[1]) + lead, months)
    saved = np.take_along_axis(after, starts, axis=1)
    once = np.take_along_axis(factors, starts, axis=1) * (asked.moving_usd + _stranded(asked, starts, size, one, lived))
    return np.asarray(saved - size * bought - once)


def _stranded(asked: Leaving, starts: NDArray[np.int_], size: int, one: Asset, lived: World) -> Floats:
    """What commitments go on costing after the work has left, for the share of the work that leaves."""
    if not asked.promises:
        return np.zeros((1, 1))
    left = sum(p.usd_per_month * np.maximum(p.end_month - starts, 0.0) for p in asked.promises)
    share = _work(asked, one, size, lived.demand_gpu_h[:, :1], lived) / np.maximum(lived.demand_gpu_h[:, :1], 1e-12)
    return np.asarray(left * share)


def _probable(asked: Leaving, drawn: Drawn, lived: World, size: int, bought: Floats) -> When:
    """The first of two successive months in which leaving pays surely enough, and the fleet would be busy enough."""
    value = _value(asked, drawn, lived, size, bought)
    busy = np.median(_utilisation(asked, drawn, lived, size), axis=0)
    needed = np.quantile(_break_even(asked, drawn, lived, size), 0.5, axis=0, method="higher")  # some are inf
    holds = ((value > 0).mean(axis=0) >= SURE) & (busy >= MARGIN * needed)
    twice = holds[:-1] & holds[1:]
    return When(month=int(twice.argmax()), servers=size) if twice.any() else When(month=None, servers=size)


def _utilisation(asked: Leaving, drawn: Drawn, lived: World, size: int) -> Floats:
    """Share of the time in which the fleet's GPUs would work, by path and month."""
    one = _fleet(asked, drawn, size)
    work = _work(asked, one, size, lived.demand_gpu_h, lived)
    return np.asarray(work / (size * np.asarray(one.useful_gpus) * HOURS_PER_MONTH))


def _break_even(asked: Leaving, drawn: Drawn, lived: World, size: int) -> Floats:
    """Utilisation from which an hour of the fleet costs less than the cloud's, by path and month; inf: none does."""
    yearly, running = useful_year_usd(_fleet(asked, drawn, size), drawn["discount_fraction"])
    return break_even(yearly, running, tail(drawn).useful_usd_per_gpu_hour * lived.price)


# ---- the clamped rule ----


def _fired(asked: Leaving, drawn: Drawn, lived: World, sizes: Sequence[int], probable: When) -> NDArray[np.int_]:
    """On each path the month in which the rule fires: the probable month, kept between λB and B/λ of that path."""
    forecast = NEVER if probable.month is None else probable.month + len(asked.history.gpu_h)
    each = [
        clamped_month(forecast, _premiums(asked, drawn, lived, size), _barrier(asked, drawn, size), asked.trust)
        for size in sizes
    ]
    return np.asarray(np.maximum(np.min([_from_now(asked, months) for months in each], axis=0), 0))


def _clamped(asked: Leaving, middle: Drawn, calm: World, sizes: Sequence[int], probable: When) -> int | None:
    month = int(_fired(asked, middle, calm, sizes, probable)[0])
    return None if month == NEVER_MONTH else month


def _percentile(fired: NDArray[np.int_], share: Fraction) -> int | None:
    month = int(np.quantile(fired, share, method="inverted_cdf"))
    return None if month == NEVER_MONTH else month


def _ordered(asked: Leaving, clamped: int | None, middle: Drawn, value_usd: Floats) -> int | None:
    """When to order: the lead time before the date, or before the end of a later commitment where that is worth more.

    value_usd: V(m) in expectation, (months,); what commitments go on costing after the work has left is in it.
    """
    if clamped is None:
        return None
    lead = float(middle["lead_weeks"][0, 0]) / WEEKS_PER_MONTH
    leaves = [clamped, *(int(np.ceil(one.end_month)) for one in asked.promises if one.end_month > clamped)]
    orders = sorted({max(0, int(np.floor(month - lead))) for month in leaves})
    return max((month for month in orders if month < asked.case.months), key=lambda month: float(value_usd[month]))


def _sides(asked: Leaving, size: int, drawn: Drawn) -> tuple[Floats, Floats]:
    """What staying and leaving now cost at these figures, (samples,): for what decides the answer."""
    lived = world(asked.case, drawn)
    factors = discount(asked.case.months, drawn["discount_fraction"])
    stays = (lived.demand_gpu_h * tail(drawn).useful_usd_per_gpu_hour * lived.price * factors[:, 1:]).sum(axis=1)
    return stays, stays - _value(asked, drawn, lived, size, _bought(asked, drawn, size, (0,)))[:, 0]


def paid_back_months(coming_usd: Floats, barrier_usd: Usd, lead_months: float) -> float | None:
    """Months from an order until the premium that is no longer paid has made up for leaving; None: not within them.

    coming_usd: premium of each month from the order on, of which those before lead_months are still paid.
    Test value: 7,500 a month, 150,000, 30 weeks: 26.9 (UC-096).
    """
    saved = np.concatenate(([0.0], np.cumsum(coming_usd)))
    months = np.arange(len(saved), dtype=np.float64)
    saved = saved - np.interp(lead_months, months, saved)
    reached = np.flatnonzero((months > lead_months) & (saved >= barrier_usd))
    if not len(reached):
        return None
    last = int(reached[0])
    return float(np.interp(barrier_usd, saved[[last - 1, last]], months[[last - 1, last]]))
