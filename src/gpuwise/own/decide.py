"""Own or rent: every option over the same chances, and a verdict by a stated rule.

For each option the cash flows of all paths (`plan`), their present value, what a useful GPU-hour costs (levelised:
discounted cost over discounted hours of work), how much of the work is done on what is owned, and on how many paths the
option is cheaper than renting by the hour, and than all others. Demand, prices and figures are the same for all options
on a path, so that what they share cancels.

The rule: of the options that own and of those that rent, each side's cheapest in expectation are compared. Own, if that
costs less on at least 80 % of the paths; rent, if on 20 % or fewer; else it is open, and what to measure next is said.

Source: levelised cost, W. Short et al., NREL/TP-462-5173 (1995), §4.2. Test value: 100 USD a month for 12 months and 10
GPU-hours a month cost 10 USD a GPU-hour at any rate of interest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import InvalidInput, Message
from gpuwise.own.case import SITES, Case, Count, as_lived, counts, stack, world
from gpuwise.own.choose import discount
from gpuwise.own.energy import energy_kwh
from gpuwise.own.figures import Drawn
from gpuwise.own.ledger import payback_months
from gpuwise.own.plan import Flows, Layer, Own, flows
from gpuwise.units import HOURS_PER_MONTH, Fraction, Usd

Floats = NDArray[np.float64]
SURE: Fraction = 0.8
"""Owning, or renting, is said to be cheaper from this share of the paths on."""
PATHS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What chance leaves of a figure: mean, and the 10th, 50th and 90th percentile. May be below 0."""

    mean: float
    p10: float
    p50: float
    p90: float

    def __mul__(self, factor: float) -> Range:
        """Of what is so many times as much; factor: above 0."""
        return Range(mean=self.mean * factor, p10=self.p10 * factor, p50=self.p50 * factor, p90=self.p90 * factor)


def spread(values: Floats) -> Range:
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    return Range(mean=float(values.mean()), p10=float(low), p50=float(middle), p90=float(high))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """One option. present_usd: value today of all that is paid; total_usd: the same without interest.

    usd_per_gpu_hour: of useful work, levelised. capex_usd: paid at the first order, mean. owned_fraction: of the work
    done on own servers; busy_fraction: of the time in which own GPUs are there, they work; both means, None where
    nothing is owned. energy_kwh: of own servers over the horizon, PUE contained; None likewise. p_below_cloud:
    P(cheaper than all on demand); p_cheapest: than all others. path_usd: the middle case, paid by month, (months + 1,);
    resold_usd: what is taken off its last month for machines that are then sold.
    payback_months: from the order until what is saved has paid the machines, in the middle case; None: never.
    """

    option: str
    count: Count
    gpus: int
    present_usd: Range
    total_usd: Range
    usd_per_gpu_hour: Range
    capex_usd: Usd
    owned_fraction: Fraction | None
    busy_fraction: Fraction | None
    energy_kwh: Range | None
    p_below_cloud: Fraction | None
    p_cheapest: Fraction
    path_usd: Floats
    resold_usd: Usd
    payback_months: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """The answer. outcomes: by option, in the order of `case.OPTIONS`. best: cheapest in expectation; rented, owned: of
    those that own nothing, and something. p_own: P(owned costs less than rented), None where one side is not there.

    present_usd: option -> value today on each path. verdict: own, rent or open. error_fraction: Monte Carlo error (one
    standard error) of p_own.
    """

    outcomes: Mapping[str, Outcome]
    best: str
    rented: str | None
    owned: str | None
    p_own: Fraction | None
    error_fraction: Fraction | None
    verdict: Literal["own", "rent", "open"]
    present_usd: Mapping[str, Floats]
    drawn: Drawn


def decide(case: Case, *, paths: int = PATHS, seed: int = 0) -> Decision:
    """All options over the same paths. The same seed gives the same answer."""
    rng = np.random.default_rng(seed)
    taken = counts(case, rng)
    drawn = case.figures.drawn(paths, rng)
    lived = world(case, drawn, rng)
    factors = discount(case.months, drawn["discount_fraction"])
    present, found = dict[str, Floats](), dict[str, dict[str, object]]()
    for option, count in taken.items():
        layers, rest = stack(case, count, drawn)
        paid = flows(layers, rest, lived)
        present[option] = _finite(option, (paid.total_usd * factors).sum(axis=1))
        work = paid.served_gpu_h[:-1].sum(axis=0) if case.at_home else lived.demand_gpu_h
        found[option] = _paid(layers, paid, present[option], (work * factors[:, 1:]).sum(axis=1))
    cheapest = np.argmin(np.stack(list(present.values())), axis=0)
    middle = _middle(case, taken)
    outcomes = {
        option: Outcome(
            option=option,
            count=taken[option],
            gpus=_owned_gpus(case, taken[option]),
            present_usd=spread(present[option]),
            p_below_cloud=_below(present, option, "on-demand"),
            p_cheapest=float((cheapest == place).mean()),
            path_usd=middle[option].total_usd[0],
            resold_usd=-float(middle[option].capex_usd[0, -1]),
            payback_months=_payback(middle, option),
            **found[option],  # type: ignore[arg-type]
        )
        for place, option in enumerate(taken)
    }
    return _decided(outcomes, present, as_lived(drawn, lived))


def _finite(option: str, present_usd: Floats) -> Floats:
    """A cost that is no number must never look like the cheapest one."""
    if np.isfinite(present_usd).all():
        return present_usd
    raise InvalidInput(
        Message("The cost of {option} is no number at these figures.", option=option),
        Message("A range reaches a value at which nothing can be reckoned: narrow what you gave with --set."),
    )


def _levelised(present_usd: Floats, hours: Floats) -> Range:
    """Cost of an hour of work; of the paths on which any is done. On the premises servers may come too late for it."""
    if not (hours > 0).any():
        raise InvalidInput(
            Message("No server would work within the horizon: they take longer to come."),
            Message("Look further ahead with --horizon, or say --set lead_weeks=…"),
        )
    return spread(present_usd[hours > 0] / hours[hours > 0])


def _paid(layers: list[Layer], paid: Flows, present_usd: Floats, hours: Floats) -> dict[str, object]:
    """What can be said of an option without the others. hours: of work done, discounted."""
    own = [place for place, layer in enumerate(layers) if isinstance(layer, Own)]
    figures: dict[str, object] = {
        "total_usd": spread(paid.total_usd.sum(axis=1)),
        "usd_per_gpu_hour": _levelised(present_usd, hours),
        "capex_usd": float(paid.capex_usd[:, 0].mean()),
        "owned_fraction": None, "busy_fraction": None, "energy_kwh": None,
    }  # fmt: skip
    if own:
        work = paid.served_gpu_h[own].sum(axis=0)
        there = sum(layers[place].gpus(work.shape[1]) for place in own) * HOURS_PER_MONTH
        room = np.broadcast_to(there, work.shape).sum(axis=1)
        figures["owned_fraction"] = float(work.sum() / paid.served_gpu_h.sum())
        used = room > 0  # on some paths the servers come after the horizon
        figures["busy_fraction"] = float((work.sum(axis=1)[used] / room[used]).mean()) if used.any() else None
        figures["energy_kwh"] = spread(own_energy_kwh(layers, paid).sum(axis=1))
    return figures


def own_energy_kwh(layers: list[Layer], paid: Flows) -> Floats:
    """Energy of own servers by path and month, cooling contained: idle all the time, and the rest while they work."""
    months = paid.served_gpu_h.shape[2]
    total = np.zeros((paid.served_gpu_h.shape[1], months))
    for layer, work in zip(layers, paid.served_gpu_h, strict=False):
        if isinstance(layer, Own):
            one = layer.asset
            there = layer.gpus(months) / one.useful_gpus * HOURS_PER_MONTH
            busy = np.asarray(work / one.work_fraction / one.accelerators)
            at_work = energy_kwh(np.asarray(one.busy_kw) - one.idle_kw, busy)
            total += (energy_kwh(np.asarray(one.idle_kw), there) + at_work) * one.pue
    return total


def _owned_gpus(case: Case, count: Count) -> int:
    return case.accelerators * sum(count.servers.values())


def _below(present: Mapping[str, Floats], option: str, other: str) -> Fraction | None:
    if option == other or other not in present:
        return None
    return float((present[option] < present[other]).mean())


# ---- the middle case ----


def _middle(case: Case, taken: Mapping[str, Count]) -> dict[str, Flows]:
    """What each option pays month by month if nothing is left to chance."""
    drawn = case.figures.middle()
    lived = world(case, drawn)
    return {option: flows(*stack(case, count, drawn), lived) for option, count in taken.items()}


def _payback(middle: Mapping[str, Flows], option: str) -> float | None:
    """Months until all that was paid is no more than on demand, without what the machines are worth at the end."""
    if option == "on-demand" or "on-demand" not in middle:
        return None
    saved = (middle["on-demand"].total_usd - middle[option].total_usd)[0]
    saved[-1] += middle[option].capex_usd[0, -1]
    return payback_months(saved) if saved[0] < 0 else None


# ---- the verdict ----


def owns(outcome: Outcome) -> bool:
    return outcome.gpus > 0


def _decided(outcomes: Mapping[str, Outcome], present: Mapping[str, Floats], drawn: Drawn) -> Decision:
    def cheapest(names: list[str]) -> str | None:
        return min(names, key=lambda name: outcomes[name].present_usd.mean) if names else None

    rented = cheapest([name for name, one in outcomes.items() if not owns(one) and name not in SITES])
    owned = cheapest([name for name, one in outcomes.items() if owns(one)])
    best = cheapest(list(outcomes)) or ""
    p_own = None
    if rented is not None and owned is not None:
        p_own = float((present[owned] < present[rented]).mean())
    return Decision(
        outcomes=outcomes,
        best=best,
        rented=rented,
        owned=owned,
        p_own=p_own,
        error_fraction=None if p_own is None else float(np.sqrt(p_own * (1 - p_own) / len(present[best]))),
        verdict=_verdict(p_own, owned),
        present_usd=present,
        drawn=drawn,
    )


def _verdict(p_own: Fraction | None, owned: str | None) -> Literal["own", "rent", "open"]:
    if p_own is None:
        return "own" if owned is not None else "rent"
    return "own" if p_own >= SURE else "rent" if p_own <= 1 - SURE else "open"
