"""How many to own, side by side: numbers of servers over the horizon, and the best one for the demand of each year."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpuwise.own.case import SEARCHED, Case, Count, asset, servers, stack, waiting_servers, world
from gpuwise.own.choose import discount
from gpuwise.own.figures import Drawn
from gpuwise.own.ledger import OfLife, over_lives
from gpuwise.own.plan import World, flows, own_usd_per_gpu_hour
from gpuwise.units import HOURS_PER_MONTH, MONTHS_PER_YEAR, Fraction, Usd, UsdPerHour

SHOWN = 8
"""Numbers of servers that are compared, 0 among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """So many servers, on average over chance. present_usd: value today of all that is paid, the rest by the hour.

    owned_fraction: of the work done on them; busy_fraction: of their time in which they work, None for none.
    last_fraction: the same of the last server: of it, how much does it work? best: the least present_usd of these.
    """

    servers: int
    gpus: int
    present_usd: Usd
    owned_fraction: Fraction
    busy_fraction: Fraction | None
    last_fraction: Fraction | None
    best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Year:
    """The best number of servers for the demand of one year, if that went on. gpus_wanted: on average."""

    year: int
    gpus_wanted: float
    servers: int
    gpus: int


def fleets(case: Case, site: str, *, seed: int = 0) -> tuple[Fleet, ...]:
    """Numbers of servers from none to twice the best one, over the paths by which that one was chosen."""
    rng = np.random.default_rng(seed)
    drawn = case.figures.drawn(SEARCHED, rng)
    lived = world(case, drawn, rng)
    best = waiting_servers(case, case.figures.middle(), site) if case.at_home else servers(case, drawn, lived, site)
    upto = max(2 * best, 2)
    most = case.most.get(site)
    numbers = sorted({int(n) for n in np.rint(np.linspace(0, upto, SHOWN))} | {best, max(best - 1, 0), best + 1})
    found = [_fleet(case, site, number, drawn, lived) for number in numbers if most is None or number <= most]
    return tuple(replace(fleet, best=fleet.servers == best) for fleet in found)


def _fleet(case: Case, site: str, number: int, drawn: Drawn, lived: World) -> Fleet:
    layers, rest = stack(case, Count(servers={site: number}), drawn)
    paid = flows(layers, rest, lived)
    factors = discount(case.months, drawn["discount_fraction"])
    present = float((paid.total_usd * factors).sum(axis=1).mean())
    if not number:
        return Fleet(servers=0, gpus=0, present_usd=present, owned_fraction=0.0, busy_fraction=None, last_fraction=None)
    held = np.broadcast_to(layers[0].gpus(case.months), lived.demand_gpu_h.shape)
    work, room = paid.served_gpu_h[0].sum(), held.sum() * HOURS_PER_MONTH
    before = flows(stack(case, Count(servers={site: number - 1}), drawn)[0], rest, lived)
    less = before.served_gpu_h[0].sum() if number > 1 else 0.0
    return Fleet(
        servers=number,
        gpus=number * case.accelerators,
        present_usd=present,
        owned_fraction=float(work / lived.demand_gpu_h.sum()),
        busy_fraction=float(work / room) if room else None,
        last_fraction=float((work - less) / (room / number)) if room else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The first server: how much of its time it would work, and the price of a cloud GPU-hour from which it pays."""

    busy_fraction: Fraction
    usd_per_gpu_hour: UsdPerHour


def first(case: Case, site: str) -> First | None:
    """A year's cost over the hours that it would work, and the energy of one: the break-even price at that use. None
    where no server works within the horizon."""
    middle = case.figures.middle()
    one = _fleet(case, site, 1, middle, world(case, middle))
    server = asset(case, middle, site, alone=True)
    busy = one.busy_fraction
    if not busy:
        return None
    hourly = own_usd_per_gpu_hour(server, middle["discount_fraction"], busy)
    billed = float(np.squeeze(hourly)) * (1 - float(middle["idle_billed_fraction"][0, 0]))
    return First(busy_fraction=busy, usd_per_gpu_hour=billed)


def lives(case: Case, site: str) -> tuple[OfLife, ...]:
    """A server's year by how long it is kept, without interest: its resale falls with its age.

    spares: with the tax on them and on the server, which nobody gets back.
    """
    middle = case.figures.middle()
    server = asset(case, middle, site, alone=True)
    price, capex, upkeep, decline = (
        float(np.squeeze(figure))
        for figure in (
            server.server_usd, server.capex_usd, 12 * server.fixed_usd_per_month, server.worth_decline_per_year
        )
    )  # fmt: skip
    found = list[OfLife]()
    for kept in LIVES_YEARS:
        found += over_lives(
            price,
            residual_fraction=float(np.exp(-decline * kept)),
            spares_fraction=capex / price - 1,
            upkeep_usd_per_year=upkeep,
            lives_years=(kept,),
        )
    return tuple(found)


LIVES_YEARS = (3.0, 4.0, 5.0, 6.0)


def years(case: Case, site: str, *, seed: int = 0) -> tuple[Year, ...]:
    """Year 0 is now: the demand of each year as if it stayed so, over the paths by which the number is chosen."""
    found = []
    for year in range(case.months // MONTHS_PER_YEAR + 1):
        rng = np.random.default_rng(seed)
        drawn = case.figures.drawn(SEARCHED, rng)
        level = drawn[LEVEL] * (1 + drawn[GROWTH]) ** year
        still = {**drawn, LEVEL: level, GROWTH: np.zeros((1, 1))}
        number = _best(case, site, still, world(case, still, rng), float(level.mean()))
        found.append(
            Year(
                year=year,
                gpus_wanted=float(level.mean()) / HOURS_PER_MONTH,
                servers=number,
                gpus=number * case.accelerators,
            )
        )
    return tuple(found)


LEVEL, GROWTH = "demand_gpu_h_per_month", "demand_growth_per_year"


def _best(case: Case, site: str, drawn: Drawn, lived: World, level: float) -> int:
    """Servers for a demand that stays at this level, GPU-hours a month on average."""
    if not case.at_home:
        return servers(case, drawn, lived, site)
    middle = {**case.figures.middle(), LEVEL: np.full((1, 1), level), GROWTH: np.zeros((1, 1))}
    return waiting_servers(case, middle, site)
