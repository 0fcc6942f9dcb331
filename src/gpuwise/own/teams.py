"""Several teams, each with a demand of its own: what one fleet that all share saves against a fleet for each.

An owned GPU of the demand costs F USD a year and r USD a busy hour, a useful hour in the cloud c. What an hour of work
costs anyway, r, cancels out of how many to own, so that whole GPUs are found as in `portfolio`:

    ρ = (c − r) / (F / 8,760)
    a year = F · n + 8,760 · (r · E[D] + (c − r) · E[max(D − n, 0)])

Where c − r is no more than F / 8,760 nothing is owned.

Source: newsvendor, see `portfolio`; risk pooling, G. D. Eppen, Management Science 25 (1979) 498. Test value: teams that
want 8 GPUs by turns, half of the time each, F = 8,760 USD, r = 0, c = 1.8 USD: each rents (2 · 63,072 USD a year),
shared 8 are owned for 70,080.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.own.portfolio import Portfolio, portfolio, together
from gpuwise.units import HOURS_PER_YEAR, Usd, UsdPerHour

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Of one GPU of the demand. own_usd_per_year: owned, used or not; busy_usd_per_hour: on top for an hour of work;
    cloud_usd_per_hour: of a useful hour."""

    own_usd_per_year: Usd
    busy_usd_per_hour: UsdPerHour
    cloud_usd_per_hour: UsdPerHour

    @property
    def cloud_per_own(self) -> float:
        """ρ, from 1 (at and below it nothing is owned) to MOST_PER_OWN."""
        over = (self.cloud_usd_per_hour - self.busy_usd_per_hour) * HOURS_PER_YEAR
        return float(np.clip(over / max(self.own_usd_per_year, LEAST_USD), 1.0, MOST_PER_OWN))


LEAST_USD, MOST_PER_OWN = 1e-6, 1e9
"""What costs nothing to own is owned for the largest demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What one team, or several together, should own. gpus_wanted: on average; most_gpus: at once, of several fleets
    the sum; gpus: to own. usd_per_year: with them, the rest in the cloud; cloud_usd_per_year: with none."""

    gpus_wanted: float
    most_gpus: float
    gpus: int
    usd_per_year: Usd
    cloud_usd_per_year: Usd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sharing:
    """each: by team; apart: all of these; shared: one fleet for the sum of the demands. prices: which that is at."""

    each: Mapping[str, Fleet]
    apart: Fleet
    shared: Fleet
    prices: Prices


def sharing(teams: Mapping[str, Floats], prices: Prices) -> Sharing:
    """teams: GPUs wanted by each, (T,), at the same equal steps of time."""
    demands = [np.asarray(gpus, np.float64) for gpus in teams.values()]
    best = [portfolio(demand, prices.cloud_per_own) for demand in demands]
    total = np.sum(demands, axis=0)
    peaks = float(sum(demand.max() for demand in demands))
    return Sharing(
        each={
            name: _fleet(demand, float(demand.max()), one, prices)
            for name, demand, one in zip(teams, demands, best, strict=True)
        },
        apart=_fleet(total, peaks, together(best), prices),
        shared=_fleet(total, float(total.max()), portfolio(total, prices.cloud_per_own), prices),
        prices=prices,
    )


def _fleet(demand: Floats, most_gpus: float, best: Portfolio, prices: Prices) -> Fleet:
    wanted = float(demand.mean())
    rented = (best.hybrid - best.gpus) / prices.cloud_per_own
    over = prices.cloud_usd_per_hour - prices.busy_usd_per_hour
    hourly = prices.busy_usd_per_hour * wanted + over * rented
    return Fleet(
        gpus_wanted=wanted,
        most_gpus=most_gpus,
        gpus=best.gpus,
        usd_per_year=best.gpus * prices.own_usd_per_year + HOURS_PER_YEAR * hourly,
        cloud_usd_per_year=HOURS_PER_YEAR * prices.cloud_usd_per_hour * wanted,
    )
