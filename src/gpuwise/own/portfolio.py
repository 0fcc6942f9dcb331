"""How much to own if the cloud takes what is above: a quantile of demand.

A GPU that is owned costs 1 in each step of time, used or not; one from the cloud costs ρ > 1 in each step that it is
used in.

    cost(n) = n + ρ · E[max(D − n, 0)]
    least at the (1 − 1/ρ) quantile of demand: the n-th GPU pays if it is wanted in more than 1/ρ of the time

cost(0) is all cloud, cost(peak) is the peak owned, so the best n is never dearer than either.

Source: newsvendor, K. J. Arrow, T. Harris, J. Marschak, Econometrica 19 (1951) 250. Test values: 16 teams of one
cluster by the minute (Helios, Earth, May 2020), ρ = 2: 665 GPUs owned together cost 742.4, all cloud 1,264.6, every
team for itself 844.7, and three of the teams own nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import InvalidInput, Message

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """How much to own of one demand. Costs by step of time, in the cost of one owned GPU: hybrid (`gpus` owned, the
    cloud above), all_cloud, and all_own, the peak owned."""

    gpus: int
    hybrid: float
    all_cloud: float
    all_own: float


def owned_quantile(demand: Floats, cloud_per_own: float) -> int:
    """Whole GPUs to own for GPUs wanted (T,) at equal steps; of several that cost the same the fewest.

    Demand may be in parts of GPUs: the best whole number lies beside the quantile, as the cost is convex.
    """
    wanted = _checked(demand, cloud_per_own)
    if cloud_per_own <= 1:
        return 0
    place = ceil((1 - 1 / cloud_per_own) * len(wanted) * (1 - ROUNDING)) - 1
    quantile = float(np.partition(wanted, max(place, 0))[max(place, 0)])
    return min((floor(quantile), ceil(quantile)), key=lambda gpus: hybrid_cost(wanted, gpus, cloud_per_own))


ROUNDING = 1e-12
"""A share of all steps that is whole but for the last digits is whole."""


def hybrid_cost(demand: Floats, gpus: float, cloud_per_own: float) -> float:
    """Cost of a step of time with so many owned, the cloud above; 0: all cloud."""
    wanted = _checked(demand, cloud_per_own)
    return float(gpus + cloud_per_own * np.maximum(wanted - gpus, 0.0).mean())


def portfolio(demand: Floats, cloud_per_own: float) -> Portfolio:
    """The best, beside both extremes."""
    gpus = owned_quantile(demand, cloud_per_own)
    return Portfolio(
        gpus=gpus,
        hybrid=hybrid_cost(demand, gpus, cloud_per_own),
        all_cloud=hybrid_cost(demand, 0, cloud_per_own),
        all_own=hybrid_cost(demand, ceil(np.max(demand)), cloud_per_own),
    )


def together(parts: Iterable[Portfolio]) -> Portfolio:
    """Several demands, each served for itself: what a shared fleet is compared with."""
    found = tuple(parts)
    return Portfolio(
        gpus=sum(part.gpus for part in found),
        hybrid=sum(part.hybrid for part in found),
        all_cloud=sum(part.all_cloud for part in found),
        all_own=sum(part.all_own for part in found),
    )


def _checked(demand: Floats, cloud_per_own: float) -> Floats:
    wanted = np.asarray(demand, np.float64)
    if not wanted.size or not np.isfinite(wanted).all() or wanted.min() < 0:
        raise InvalidInput(
            Message("The demand is empty, or holds a figure that is no number from 0 up."),
            Message("Give GPUs wanted at equal steps of time."),
        )
    if not 0 < cloud_per_own < np.inf:
        raise InvalidInput(
            Message("The cloud costs {value:g} times as much as owning: the ratio is above 0.", value=cloud_per_own),
            Message("Write the price of a GPU-hour in the cloud over that of an hour of an owned GPU."),
        )
    return wanted
