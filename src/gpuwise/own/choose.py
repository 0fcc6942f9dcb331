"""How many: servers to own, GPUs to rent by the month or to commit to, and the mix of all that costs least.

The cost of N GPUs under a load-duration curve is convex in N, so the best N is found by halving; against a stationary
demand it is the (1 − own/cloud) quantile (`portfolio.owned_quantile`). The mix is a small integer programme: bands of
the load-duration curve, each served by one way of having GPUs, servers in whole numbers:

    min Σᵥ Fᵥ nᵥ + Σᵥₖ (rᵥ hₖ) xᵥₖ   with   Σᵥ xᵥₖ = wₖ   and   Σₖ xᵥₖ ≤ gᵥ nᵥ

Fᵥ: USD a year of one block of gᵥ GPUs, rᵥ: USD a busy hour, hₖ: hours a year in which band k of wₖ GPUs is wanted.

Source: newsvendor, Arrow, Harris, Marschak, Econometrica 19 (1951) 250; peak-load mix by screening curves, Crew et al.,
J. Regulatory Economics 8 (1995) 215, §2; solver: HiGHS (scipy.optimize.milp).
Test value: demand 4 GPUs always and 4 more for half of the time, own 8,760 USD a GPU-year: the upper four cost
2 · 4,380 = 8,760 in a cloud of 2 USD/h, so owning 4 is as good as owning 8; at 2.01 USD/h it is 8, at 1.99 it is 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from gpuwise.own.demand import Shape
from gpuwise.own.plan import Asset, Own, Tail, World, flows
from gpuwise.units import HOURS_PER_MONTH, HOURS_PER_YEAR, MONTHS_PER_YEAR

Floats = NDArray[np.float64]


def least(cost: Callable[[int], float], most: int) -> int:
    """The smallest count from 0 to `most` that costs least, for a cost that is convex in it."""
    low, high = 0, max(most, 0)
    while low < high:
        middle = (low + high) // 2
        if cost(middle + 1) < cost(middle):
            low = middle + 1
        else:
            high = middle
    return low


def discount(months: int, yearly_rate: Floats | float) -> Floats:
    """What a USD of the end of each month is worth today, (…, months + 1)."""
    return np.asarray(np.exp(-np.log1p(np.asarray(yearly_rate)) * np.arange(months + 1) / MONTHS_PER_YEAR))


def best_servers(asset: Asset, tail: Tail, world: World, yearly_rate: Floats | float, most: int | None = None) -> int:
    """Servers that make the expected cost over the horizon least, the rest of the work going to the tail."""
    useful = float(np.mean(asset.useful_gpus))
    upto = ceil(float(world.demand_gpu_h.max()) / HOURS_PER_MONTH * _peak(world) / useful)
    factors = discount(world.months, yearly_rate)

    def cost(servers: int) -> float:
        layers = [Own(asset=asset, servers=servers)]
        return float((flows(layers, tail, world).total_usd * factors).sum(axis=1).mean())

    return least(cost, upto if most is None else min(upto, most))


def _peak(world: World) -> float:
    if isinstance(world.shape, Shape):
        return world.shape.peak
    return max(shape.peak for shape in world.shape.shapes)


def rented_gpus(
    usd_per_gpu_hour: float,
    tail_usd_per_gpu_hour: float,
    demand_gpu_h: Floats,
    shape: Shape,
    term_months: int,
    block: int,
) -> Floats:
    """GPUs to rent for each term, in whole blocks, against the expected demand (months,): what is paid anyway, and the
    rest by the hour. Nothing where the rent is no cheaper than the hour."""
    found = np.zeros(len(demand_gpu_h))
    for start in range(0, len(found), term_months):
        part = slice(start, start + term_months)
        mean = demand_gpu_h[part] / HOURS_PER_MONTH

        def cost(blocks: int, mean: Floats = mean) -> float:
            gpus = blocks * block
            saved = tail_usd_per_gpu_hour * mean * shape.served(gpus / np.maximum(mean, 1e-12))
            return float((gpus * usd_per_gpu_hour - saved).sum())

        found[part] = block * least(cost, ceil(float(mean.max()) * shape.peak / block))
    return found


# ---- the best mix ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of having GPUs. block: GPUs that come together; usd_per_year: of one block, used or not; most: blocks, None
    for any number. usd_per_gpu_hour: of a busy hour on top."""

    name: str
    block: float
    usd_per_year: float
    usd_per_gpu_hour: float
    most: int | None = None


BANDS = 160
"""Bands of the load-duration curve: a finer one changes the mix by less than a server."""


def bands(demand_gpu_h: Floats, shape: Shape) -> tuple[Floats, Floats]:
    """Widths in GPUs and hours a year of each band of the demand of all months together, the steady one first."""
    levels = np.quantile(shape.levels, (np.arange(BANDS) + 0.5) / BANDS) if len(shape.levels) > BANDS else shape.levels
    gpus = np.sort(np.outer(demand_gpu_h / HOURS_PER_MONTH, levels).ravel())
    edges = np.unique(np.quantile(gpus, np.linspace(0, 1, BANDS + 1)))
    edges = edges if edges[0] == 0 else np.concatenate(([0.0], edges))
    middles = (edges[1:] + edges[:-1]) / 2
    wanted = 1 - np.searchsorted(gpus, middles, side="left") / len(gpus)
    return np.diff(edges), HOURS_PER_YEAR * wanted


def mix(ways: Sequence[Way], tail_usd_per_gpu_hour: float, demand_gpu_h: Floats, shape: Shape) -> dict[str, int]:
    """Blocks of each way that cost least together, the tail taking what is left. Exact for the middle path's curve."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not ways:
        return {}
    widths, hours = bands(demand_gpu_h, shape)
    number, count = len(ways), len(widths)
    running = np.array([way.usd_per_gpu_hour for way in ways] + [tail_usd_per_gpu_hour])
    price = np.concatenate(([way.usd_per_year for way in ways], np.outer(running, hours).ravel()))
    whole = np.concatenate((np.ones(number), np.zeros((number + 1) * count)))
    filled = np.hstack((np.zeros((count, number)), np.tile(np.eye(count), number + 1)))
    room = np.hstack((
        -np.diag([way.block for way in ways]),
        np.kron(np.eye(number), np.ones(count)),
        np.zeros((number, count)),
    ))  # fmt: skip
    top = ceil(widths.sum()) + 1
    most = [top if way.most is None else way.most for way in ways]
    upper = np.concatenate((most, np.tile(widths, number + 1)))
    solved = milp(
        price,
        integrality=whole,
        bounds=Bounds(0, upper),
        constraints=[LinearConstraint(filled, widths, widths), LinearConstraint(room, -np.inf, 0)],
        options={"mip_rel_gap": 1e-4, "time_limit": 10.0},
    )
    if solved.x is None:
        return {}
    return {way.name: round(solved.x[at]) for at, way in enumerate(ways)}
