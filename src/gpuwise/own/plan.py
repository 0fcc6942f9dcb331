"""One plan is a stack of capacity under a load-duration curve, and what takes the rest; its cash flows, path by path.

Layers are filled from the bottom: what is paid anyway (own servers, then machines by the month, then commitments) takes
the steady part of the demand, the tail (on demand, or spot) takes what is above. A layer that holds N GPUs on top of B
serves m·[served((B + N)/m) − served(B/m)] GPU-hours of a month with the mean demand m (`demand.Shape`). So all options
are one formula, capex is counted once, and a mix can be no dearer than its parts.

Own: capex at the order and again at the end of each life; what the server itself is still worth, price·e^(−δ·age),
comes back when it leaves and at the horizon. Tax, spares, network and storage are not sold again. It ages from its
order on, and works and lives from the end of the lead time on: hosting, staff, upkeep and licences by the month, energy
by the hour, busy and idle. Until then the tail does all the work. Cloud hours carry what is billed while idle:
useful / (1 − idle share).

Source: notes on the total cost of ownership as in Barroso, Hölzle, Ranganathan, The Datacenter as a Computer, 3rd ed.
(2018) ch. 6; served share: see `demand`. Monthly flows, end of month.
Test value: 8 GPUs, capex 240,000, nothing else, life 4 years without worth at the end, 48 months: flows sum to 240,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.cost.annuity import capital_recovery_factor, sinking_fund_factor
from gpuwise.own.demand import Shape, Shapes
from gpuwise.units import HOURS_PER_MONTH, HOURS_PER_YEAR, MONTHS_PER_YEAR

Floats = NDArray[np.float64]
Figure = Floats | float
"""One number, or one a path: shape (paths, 1)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asset:
    """A server that is owned, with all that it costs. Each figure is one number, or one a path.

    accelerators: of one server. capex_usd: its price, all that goes with it added (`all_in_usd`); server_usd: of the
    server alone, which is what can be sold again. life_years: of work, until it is replaced. worth_decline_per_year: δ,
    the rate at which its resale value falls, natural log. busy_kw, idle_kw: at the wall, before PUE. A month of one
    server: hosting_usd_per_month, staff_usd_per_month; a year: upkeep_usd_per_year (support, insurance),
    licence_usd_per_gpu_year. lead_months: order to first job. availability_fraction: of the time in which it can work.
    work_fraction: GPU-hours of the demand that one of its hours does (1 for the GPU that the demand is counted in).
    """

    accelerators: int
    capex_usd: Figure
    server_usd: Figure
    life_years: Figure
    worth_decline_per_year: Figure
    busy_kw: Figure
    idle_kw: Figure
    pue: Figure
    electricity_usd_per_kwh: Figure
    hosting_usd_per_month: Figure
    staff_usd_per_month: Figure
    upkeep_usd_per_year: Figure
    licence_usd_per_gpu_year: Figure
    lead_months: Figure
    availability_fraction: Figure = 1.0
    work_fraction: Figure = 1.0

    @property
    def fixed_usd_per_month(self) -> Figure:
        """What one server costs a month, idle, without its price."""
        upkeep = self.upkeep_usd_per_year + self.accelerators * self.licence_usd_per_gpu_year
        idle_usd = self.idle_kw * self.pue * self.electricity_usd_per_kwh * HOURS_PER_MONTH
        return self.hosting_usd_per_month + self.staff_usd_per_month + upkeep / MONTHS_PER_YEAR + idle_usd

    @property
    def running_usd_per_gpu_hour(self) -> Figure:
        """What a busy hour of one GPU costs on top: the energy above idle."""
        return (self.busy_kw - self.idle_kw) * self.pue * self.electricity_usd_per_kwh / self.accelerators

    @property
    def useful_gpus(self) -> Figure:
        """GPUs of the demand that one server replaces."""
        return self.accelerators * self.availability_fraction * self.work_fraction


def yearly_usd(asset: Asset, yearly_rate: Figure) -> Floats:
    """One server's year without a busy hour: annuity of the price less the resale value, and all that is paid anyway.

    Source: capital recovery and sinking fund factors, see `cost.annuity`. For display and for how many to own; the
    ledger uses monthly flows.
    """
    years, rate = np.asarray(asset.life_years, np.float64), np.asarray(yearly_rate, np.float64)
    worth = np.asarray(asset.server_usd) * np.exp(-asset.worth_decline_per_year * years)
    capital = asset.capex_usd * capital_recovery_factor(rate, years)
    capital = capital - worth * sinking_fund_factor(rate, years)
    return np.asarray(capital + 12 * np.asarray(asset.fixed_usd_per_month), np.float64)


def useful_year_usd(asset: Asset, yearly_rate: Figure) -> tuple[Floats, Floats]:
    """Of one GPU of the demand that is owned: USD a year whatever the use, and USD of each hour of work on top."""
    yearly = yearly_usd(asset, yearly_rate) / np.asarray(asset.useful_gpus)
    return yearly, np.asarray(asset.running_usd_per_gpu_hour / np.asarray(asset.work_fraction))


def own_usd_per_gpu_hour(asset: Asset, yearly_rate: Figure, utilisation: Figure) -> Floats:
    """USD for a useful GPU-hour of an owned server in use for this share of the time in which it is available."""
    yearly, running = useful_year_usd(asset, yearly_rate)
    return yearly / (HOURS_PER_YEAR * np.asarray(utilisation)) + running


def all_in_usd(price_usd: Figure, network: Figure, storage: Figure, spares: Figure, tax: Figure) -> Figure:
    """A server with all that goes with it. network: share of all of the cost; the others: on top of the price."""
    return price_usd / (1 - network) * (1 + storage) * (1 + spares) * (1 + tax)


# ---- layers ----


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Own:
    """So many servers of one kind, ordered at the end of month `order_month` (0: today)."""

    asset: Asset
    servers: int
    order_month: int = 0

    def gpus(self, months: int) -> Floats:
        """GPUs that can work in each month: none before they are there, a part of the month in which they come."""
        start = self.order_month + np.asarray(self.asset.lead_months)
        there = np.clip(np.arange(1, months + 1) - start, 0, 1)
        return np.asarray(there * self.servers * self.asset.useful_gpus)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rented:
    """GPUs that are paid whether they are used or not. count: in each month, (months,) or one number.

    usd_per_gpu_hour: today's. term_months: for so long a price stands once agreed (1: each month has its own).
    """

    count: Figure
    usd_per_gpu_hour: Figure
    term_months: int

    def gpus(self, months: int) -> Floats:
        return np.asarray(np.ones(months) * self.count)


Layer = Own | Rented


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tail:
    """What takes the work that no layer serves, by the hour.

    usd_per_gpu_hour: on demand. idle_fraction: of the billed hours, without work. spot_fraction: of the work that runs
    on spot, at spot_usd_per_gpu_hour a useful hour (what is lost and restarted contained).
    """

    usd_per_gpu_hour: Figure
    idle_fraction: Figure = 0.0
    spot_fraction: Figure = 0.0
    spot_usd_per_gpu_hour: Figure = 0.0

    @property
    def useful_usd_per_gpu_hour(self) -> Figure:
        """USD for an hour of work, today."""
        billed = self.usd_per_gpu_hour / (1 - np.asarray(self.idle_fraction))
        return self.spot_fraction * self.spot_usd_per_gpu_hour + (1 - np.asarray(self.spot_fraction)) * billed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """What happens. demand_gpu_h: (paths, months). price: (paths or 1, months), multiples of today's. shape: how demand
    varies within a month, one for all or one a path."""

    demand_gpu_h: Floats
    price: Floats
    shape: Shape | Shapes

    @property
    def months(self) -> int:
        return int(self.demand_gpu_h.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flows:
    """What a plan pays at the end of each month, by path; month 0 is today. All (paths, months + 1), money out above 0.

    capex_usd: purchases less what is sold. fixed_usd: whatever the use. running_usd: energy of busy hours. tail_usd: by
    the hour in the cloud. served_gpu_h: (layers and the tail last, paths, months).
    """

    capex_usd: Floats
    fixed_usd: Floats
    running_usd: Floats
    tail_usd: Floats
    served_gpu_h: Floats

    @property
    def total_usd(self) -> Floats:
        return self.capex_usd + self.fixed_usd + self.running_usd + self.tail_usd


def flows(layers: Sequence[Layer], tail: Tail, world: World) -> Flows:
    """The cash flows of a plan; layers are filled in their order."""
    capex, fixed, running, spent = (np.zeros((len(world.demand_gpu_h), world.months + 1)) for _ in range(4))
    hours, taken = list[Floats](), np.zeros((1, 1))
    for upto, layer in zip(_stacked(layers, world.months), layers, strict=True):
        share = _served(upto, world)
        work = world.demand_gpu_h * (share - taken)
        taken = share
        hours.append(work)
        if isinstance(layer, Own):
            capex += layer.servers * capital(layer, world.months)
            running[:, 1:] += work / layer.asset.work_fraction * layer.asset.running_usd_per_gpu_hour
        fixed[:, 1:] += _fixed(layer, world)
    hours.append(world.demand_gpu_h * (1 - taken))
    spent[:, 1:] = hours[-1] * tail.useful_usd_per_gpu_hour * world.price
    return Flows(capex_usd=capex, fixed_usd=fixed, running_usd=running, tail_usd=spent, served_gpu_h=np.stack(hours))


def _stacked(layers: Sequence[Layer], months: int) -> Iterator[Floats]:
    """GPUs of each layer and all below it."""
    below = np.zeros((1, months))
    for layer in layers:
        below = below + layer.gpus(months)
        yield below


def _served(gpus: Floats, world: World) -> Floats:
    """Share of each month's work that so many GPUs take."""
    mean = world.demand_gpu_h / HOURS_PER_MONTH
    return world.shape.served(gpus / np.maximum(mean, LEAST_GPUS))


LEAST_GPUS = 1e-12
"""A month without demand is served in full by nothing."""


def _fixed(layer: Layer, world: World) -> Floats:
    """USD of each month whatever the use, (paths or 1, months)."""
    if isinstance(layer, Own):
        there = layer.gpus(world.months) / layer.asset.useful_gpus
        return np.asarray(there * layer.asset.fixed_usd_per_month)
    agreed = np.arange(world.months) // layer.term_months * layer.term_months
    return np.asarray(layer.gpus(world.months) * HOURS_PER_MONTH * layer.usd_per_gpu_hour * world.price[:, agreed])


def capital(layer: Own, months: int) -> Floats:
    """One server's price at each order, less the worth of what leaves; (paths or 1, months + 1).

    A server that takes the place of another is there, and paid, when that one leaves.
    Test value: 100,000 USD that lose half a year, ordered half a year before the end: −70,711 at the end, there or not.
    """
    asset, month = layer.asset, np.arange(months + 1)
    price, worth, decline, years, lead = (
        np.asarray(figure, np.float64).reshape(-1, 1)
        for figure in (
            asset.capex_usd, asset.server_usd, asset.worth_decline_per_year, asset.life_years, asset.lead_months
        )
    )  # fmt: skip
    if layer.order_month >= months:
        return np.zeros((1, months + 1))
    worked = (month - layer.order_month - lead) / MONTHS_PER_YEAR
    generation = np.floor(np.maximum(worked, 0) / years) * (month < months)
    generation[:, -1] = generation[:, -2]
    replaced = np.diff(generation, axis=1, prepend=0)
    way = lead / MONTHS_PER_YEAR  # the first one ages before it works
    left = years + way * (generation == 1)
    last = worked[:, -1:] - generation[:, -1:] * years + way * (generation[:, -1:] == 0)
    sold = replaced * np.exp(-decline * left) + (month == months) * np.exp(-decline * last)
    return np.asarray(price * ((month == layer.order_month) + replaced) - worth * sold)
