"""One decision: what is wanted, what may be rented or bought, and at which figures; as plans and as a world to live in.

The options are all cloud (on demand), commitments for one and three years, spot, machines by the month, own servers in
the office or in colocation, each with the rest of the work on demand, and the mix that costs least. How many GPUs each
takes is decided once, in the middle case or over chance, and holds on all paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import Message
from gpuwise.own.choose import Way, best_servers, discount, mix, rented_gpus
from gpuwise.own.demand import Shape, Shapes, assumed, expected, uncertain, wandering
from gpuwise.own.figures import Drawn, Figures
from gpuwise.own.plan import Asset, Layer, Own, Rented, Tail, World, all_in_usd, flows, yearly_usd
from gpuwise.own.prices import Jumps
from gpuwise.units import HOURS_PER_MONTH, HOURS_PER_YEAR, WEEKS_PER_MONTH

Floats = NDArray[np.float64]
SITES = ("office", "colocation")
RENTED: Mapping[str, int] = {"committed-1y": 12, "committed-3y": 36, "dedicated": 1}
"""Option -> months for which its price stands."""
OPTIONS = ("on-demand", "committed-1y", "committed-3y", "spot", "dedicated", *SITES, "mix")
SEARCHED = 256
"""Paths over which counts are chosen: enough that one server more or less is not decided by luck."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """What is decided. figures: by the names used below. shape: of a record, None where demand_variation stands for it.

    months: the horizon. accelerators: of one server; block: of one machine by the month. open: the options there are;
    refused: why others are not. most: servers that a site can hold, None: any number. weeks, wander: see `demand`.
    at_home: nothing may leave the premises, so that no cloud takes the rest: what finds no GPU waits.
    """

    figures: Figures
    months: int
    accelerators: int
    block: int
    jumps: Jumps
    open: frozenset[str]
    shape: Shape | None = None
    refused: Mapping[str, Message] = field(default_factory=dict)
    most: Mapping[str, int | None] = field(default_factory=dict)
    weeks: tuple[float, ...] = ()
    wander_log_sd: float = 0.0
    at_home: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Count:
    """How much of what one option takes. servers: site -> servers; gpus: rented way -> GPUs of each month, (months,).
    spot: does spot take the rest?"""

    servers: Mapping[str, int] = field(default_factory=dict)
    gpus: Mapping[str, Floats] = field(default_factory=dict)
    spot: bool = False


# ---- figures as a world ----


def world(case: Case, drawn: Drawn, rng: np.random.Generator | None = None) -> World:
    """What happens at these figures. With rng demand and price go their own ways; without it the price stands at
    PRICE_TO_COME times today's, and demand grows evenly."""
    level, growth = drawn["demand_gpu_h_per_month"], drawn["demand_growth_per_year"]
    paths, months = max(len(figure) for figure in drawn.values()), case.months
    demand = np.broadcast_to(expected(level, growth, months), (paths, months))
    if rng is None:
        return World(demand_gpu_h=demand, price=drawn[PRICE_TO_COME] * np.ones(months), shape=_shape(case, drawn))
    chance = wandering(paths, months, rng, log_sd_per_root_year=case.wander_log_sd, weeks=case.weeks)
    return World(demand_gpu_h=demand * chance, price=case.jumps.paths(paths, months, rng), shape=_shape(case, drawn))


PRICE_TO_COME = "cloud_price_change"
"""The figure that stands for the path of the cloud's price: its mean over the horizon, of today's."""


def as_lived(drawn: Drawn, lived: World) -> Drawn:
    """The figures of paths on which the price went its own way: each has its own mean."""
    return {**drawn, PRICE_TO_COME: lived.price.mean(axis=1, keepdims=True)}


def _shape(case: Case, drawn: Drawn) -> Shape | Shapes:
    if case.shape is not None:
        return case.shape
    variation = drawn["demand_variation"]
    return assumed(float(variation[0, 0])) if len(variation) == 1 else uncertain(variation[:, 0])


def asset(case: Case, drawn: Drawn, site: str, *, alone: bool = False) -> Asset:
    """A server at a site. alone: the only one, which needs no network of a cluster."""
    network, storage = 0.0 if alone else drawn["network_fraction"], drawn["storage_fraction"]
    hardware = all_in_usd(drawn["server_usd"], network, storage, 0.0, 0.0)
    colocated = site == "colocation"
    rent = drawn["max_kw"] * drawn["colocation_usd_per_kw_month"] if colocated else drawn["office_usd_per_month"]
    return Asset(
        accelerators=case.accelerators,
        capex_usd=all_in_usd(hardware, 0.0, 0.0, drawn["spares_fraction"], drawn["tax_fraction"]),
        server_usd=drawn["server_usd"],
        life_years=drawn["life_years"],
        worth_decline_per_year=-np.log(np.maximum(drawn["residual_fraction"], WORTHLESS)) / RESIDUAL_YEARS,
        busy_kw=drawn["busy_kw"],
        idle_kw=drawn["busy_kw"] * drawn["idle_power_fraction"],
        pue=drawn["pue_colocation" if colocated else "pue_office"],
        electricity_usd_per_kwh=drawn["electricity_usd_per_kwh"],
        hosting_usd_per_month=rent,
        staff_usd_per_month=drawn["staff_usd_per_month"],
        upkeep_usd_per_year=hardware * (drawn["support_fraction_per_year"] + drawn["insurance_fraction_per_year"]),
        licence_usd_per_gpu_year=drawn["licence_usd_per_gpu_year"],
        lead_months=drawn["lead_weeks"] / WEEKS_PER_MONTH,
        availability_fraction=drawn["availability_fraction"],
        work_fraction=drawn["work_fraction"],
    )


WORTHLESS = 1e-6
"""A share of the price that is nothing, and still has a logarithm."""
RESIDUAL_YEARS = 4.0
"""The age to which `residual_fraction` belongs."""


def useful_usd(drawn: Drawn, usd_per_gpu_hour: Floats | float, *, spot: bool = False) -> Floats:
    """USD for an hour of work where a GPU-hour is billed at so much: with idle hours, and on spot with lost ones."""
    kept = 1 - drawn["spot_waste_fraction"] if spot else 1.0
    return np.asarray(usd_per_gpu_hour / (1 - drawn["idle_billed_fraction"]) / kept)


def tail(drawn: Drawn, *, spot: bool = False) -> Tail:
    """What takes the rest by the hour: on demand, or spot for as long as it can be had."""
    hourly = drawn["cloud_usd_per_gpu_hour"]
    if not spot:
        return Tail(usd_per_gpu_hour=hourly, idle_fraction=drawn["idle_billed_fraction"])
    return Tail(
        usd_per_gpu_hour=hourly,
        idle_fraction=drawn["idle_billed_fraction"],
        spot_fraction=drawn["spot_available_fraction"],
        spot_usd_per_gpu_hour=useful_usd(drawn, rent_usd_per_gpu_hour(drawn, "spot"), spot=True),
    )


def rent_usd_per_gpu_hour(drawn: Drawn, way: str) -> Floats:
    """USD for a GPU-hour of a commitment or of a machine by the month, used or not, or of spot while it can be had: the
    price itself, or the discount from the cloud's."""
    name = way.replace("-", "_")
    price = drawn.get(f"{name}_usd_per_gpu_hour")
    return drawn["cloud_usd_per_gpu_hour"] * (1 - drawn[f"{name}_discount_fraction"]) if price is None else price


def stack(case: Case, count: Count, drawn: Drawn) -> tuple[list[Layer], Tail]:
    """The layers of one option, what is owned at the bottom, and what takes the rest."""
    alone = sum(count.servers.values()) <= 1
    layers: list[Layer] = [
        Own(asset=asset(case, drawn, site, alone=alone), servers=number)
        for site, number in count.servers.items()
        if number
    ]
    for way, gpus in count.gpus.items():
        if gpus.any():
            layers.append(
                Rented(count=gpus, usd_per_gpu_hour=rent_usd_per_gpu_hour(drawn, way), term_months=RENTED[way])
            )
    return layers, NOTHING if case.at_home else tail(drawn, spot=count.spot)


NOTHING = Tail(usd_per_gpu_hour=0.0)
"""What takes the rest where no cloud may: time."""


# ---- how many ----


def counts(case: Case, rng: np.random.Generator) -> dict[str, Count]:
    """How much of what each open option takes: own servers over chance, rented GPUs in the middle case."""
    middle = case.figures.middle()
    drawn = case.figures.drawn(SEARCHED, rng)
    lived = world(case, drawn, rng)
    found = {"on-demand": Count()} if "on-demand" in case.open else {}
    if "spot" in case.open:
        found["spot"] = Count(spot=True)
    for way in RENTED:
        if way in case.open:
            found[way] = Count(gpus={way: _rented(case, middle, way)})
    for site in SITES:
        if site in case.open:
            number = waiting_servers(case, middle, site) if case.at_home else servers(case, drawn, lived, site)
            found[site] = Count(servers={site: number})
    if "mix" in case.open:
        found["mix"] = _mixed(case, found, middle, lambda count: _expected_usd(case, count, drawn, lived))
    return {option: found[option] for option in OPTIONS if option in found}


def servers(case: Case, drawn: Drawn, lived: World, site: str) -> int:
    """Servers that cost least in expectation; the first needs no network of a cluster."""
    rate, rest, most = drawn["discount_fraction"], tail(drawn), case.most.get(site)
    many = best_servers(asset(case, drawn, site), rest, lived, rate, most)
    if many > 1:
        return many
    first = 1 if most is None else min(most, 1)
    return best_servers(asset(case, drawn, site, alone=True), rest, lived, rate, first)


AT_ONCE = 0.95
"""Where nothing takes the rest, as much of the time all work finds a GPU at once."""


def waiting_servers(case: Case, middle: Drawn, site: str) -> int:
    """Servers with which work waits for 5 % of the time at most in the largest month; fewer if there is no room."""
    shape = _shape(case, middle)
    assert isinstance(shape, Shape)
    wanted = expected(middle["demand_gpu_h_per_month"], middle["demand_growth_per_year"], case.months).max()
    gpus = shape.quantile(AT_ONCE) * float(wanted) / HOURS_PER_MONTH
    number = ceil(gpus / _one(asset(case, middle, site).useful_gpus))
    most = case.most.get(site)
    return number if most is None else min(number, most)


def _expected_usd(case: Case, count: Count, drawn: Drawn, lived: World) -> float:
    layers, rest = stack(case, count, drawn)
    factors = discount(case.months, drawn["discount_fraction"])
    return float((flows(layers, rest, lived).total_usd * factors).sum(axis=1).mean())


def _rented(case: Case, middle: Drawn, way: str) -> Floats:
    wanted = expected(middle["demand_gpu_h_per_month"], middle["demand_growth_per_year"], case.months)[0]
    shape = _shape(case, middle)
    assert isinstance(shape, Shape)
    block = case.block if way == "dedicated" else 1
    hourly = _one(tail(middle).useful_usd_per_gpu_hour)
    return rented_gpus(_one(rent_usd_per_gpu_hour(middle, way)), hourly, wanted, shape, RENTED[way], block)


def _mixed(case: Case, alone: Mapping[str, Count], middle: Drawn, cost: Callable[[Count], float]) -> Count:
    """The programme's mix with and without spot, refined by a server up and down, or the best single option."""
    tried = list(alone.values())
    for spot in (False, True) if "spot" in case.open else (False,):
        tried += _neighbours(case, _programme(case, middle, spot=spot))
    return min(tried, key=cost)


def _programme(case: Case, middle: Drawn, *, spot: bool) -> Count:
    """The integer programme at the middle figures."""
    rest = _one(tail(middle, spot=spot).useful_usd_per_gpu_hour)
    wanted = expected(middle["demand_gpu_h_per_month"], middle["demand_growth_per_year"], case.months)[0]
    shape = _shape(case, middle)
    assert isinstance(shape, Shape)
    found = mix(_ways(case, middle), rest, wanted, shape)
    return Count(
        servers={site: found[site] for site in SITES if found.get(site)},
        gpus={
            way: np.full(case.months, float(found[way] * (case.block if way == "dedicated" else 1)))
            for way in RENTED
            if found.get(way)
        },
        spot=spot,
    )


def _ways(case: Case, middle: Drawn) -> list[Way]:
    """What the programme may choose from."""
    ways = []
    for site in (site for site in SITES if site in case.open):
        one = asset(case, middle, site)
        ways.append(
            Way(
                name=site,
                block=_one(one.useful_gpus),
                usd_per_year=_one(yearly_usd(one, middle["discount_fraction"])),
                usd_per_gpu_hour=_one(one.running_usd_per_gpu_hour / one.work_fraction),
                most=case.most.get(site),
            )
        )
    for way in (way for way in RENTED if way in case.open):
        block = case.block if way == "dedicated" else 1
        yearly = HOURS_PER_YEAR * block * _one(rent_usd_per_gpu_hour(middle, way))
        ways.append(Way(name=way, block=block, usd_per_year=yearly, usd_per_gpu_hour=0.0))
    return ways


def _one(figure: Floats | float) -> float:
    """A figure of the middle case."""
    return float(np.squeeze(figure))


def _neighbours(case: Case, count: Count) -> list[Count]:
    """The count itself, and each with one server less or more."""
    found = [count]
    for site in (site for site in SITES if site in case.open):
        number, most = count.servers.get(site, 0), case.most.get(site)
        others = [n for n in (number - 1, number + 1) if n >= 0 and (most is None or n <= most)]
        found += [replace(count, servers={**count.servers, site: other}) for other in others]
    return found
