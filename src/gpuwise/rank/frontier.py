"""Who is not beaten in both time and cost, and who is probably the cheapest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuwise.estimate import Estimate

DRAWS = 2000
"""Shared draws behind p_cheapest: its standard error is at most 1.2 points (√(0.25 / 2,000))."""


def frontier(time: NDArray[np.float64], cost: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The Pareto frontier of n offers, both figures to be small; rows without a figure (NaN) are never on it.

    An offer is dominated if another is no worse in both and better in one; equals stay together.
    Test value: (1, 3), (2, 2), (2, 3), (3, 1) -> the first, second and fourth.
    """
    on = np.zeros(len(time), bool)
    known = np.flatnonzero(~(np.isnan(time) | np.isnan(cost)))
    order = known[np.lexsort((cost[known], time[known]))]
    if len(order) == 0:
        return on
    t, c = time[order], cost[order]
    before = np.concatenate(([np.inf], np.minimum.accumulate(c)[:-1]))
    first_of_time = np.concatenate(([True], t[1:] > t[:-1]))
    group = np.cumsum(first_of_time) - 1
    starts = np.flatnonzero(first_of_time)
    cheapest_of_time, cheapest_earlier = c[starts][group], before[starts][group]
    on[order] = (c == cheapest_of_time) & (c < cheapest_earlier)
    return on


def p_cheapest(costs: Sequence[Estimate]) -> NDArray[np.float64]:
    """Probability of each to be the cheapest of all: shared errors move all of them together in every draw.

    Ties share their draw. The draws are seeded, so one question has one answer.
    """
    if not costs:
        return np.zeros(0)
    names = sorted({name for cost in costs for name, _ in cost.spread})
    column = {name: i for i, name in enumerate(names)}
    loading = np.zeros((len(costs), len(names)))
    for row, cost in enumerate(costs):
        for name, sd in cost.spread:
            loading[row, column[name]] = sd
    z = np.random.default_rng(20261130).standard_normal((DRAWS, len(names)))
    with np.errstate(divide="ignore"):  # a bill of exactly 0 is the cheapest in every draw
        logs = np.log([c.value for c in costs]) + z @ loading.T
    winners = logs <= logs.min(axis=1, keepdims=True) + 1e-12
    shares: NDArray[np.float64] = (winners / winners.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares
