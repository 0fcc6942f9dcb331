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
    if len(known) == 0:
        return on
    order = known[np.argsort(time[known])]
    t, c = time[order], cost[order]
    starts = np.flatnonzero(np.concatenate(([True], t[1:] > t[:-1])))
    cheapest = np.minimum.reduceat(c, starts)  # of each distinct time
    earlier = np.concatenate(([np.inf], np.minimum.accumulate(cheapest)[:-1]))
    best = np.where(cheapest < earlier, cheapest, -np.inf)
    on[order] = c == np.repeat(best, np.diff(starts, append=len(t)))
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
        logs = np.log([c.centre for c in costs]) + z @ loading.T
    winners = logs <= logs.min(axis=1, keepdims=True) + 1e-12
    shares: NDArray[np.float64] = (winners / winners.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares
