"""The Pareto frontier and the probability of being the cheapest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.estimate import Estimate, probability_less
from gpuwise.rank.frontier import frontier, p_cheapest

POINTS = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), min_size=1, max_size=30)


def on(points):
    time, cost = np.array(points, float).T
    return frontier(time, cost)


def dominated(points, i):
    t, c = points[i]
    return any(a <= t and b <= c and (a < t or b < c) for a, b in points)


def test_the_docstrings_example():
    assert list(on([(1, 3), (2, 2), (2, 3), (3, 1)])) == [True, True, False, True]


@given(POINTS)
def test_nobody_on_the_frontier_is_dominated_and_everybody_off_it_is(points):
    assert list(on(points)) == [not dominated(points, i) for i in range(len(points))]


@given(POINTS, st.randoms())
def test_input_order_changes_nothing(points, random):
    shuffled = random.sample(points, len(points))
    assert {p for p, here in zip(points, on(points), strict=True) if here} == {
        p for p, here in zip(shuffled, on(shuffled), strict=True) if here
    }


@given(POINTS)
def test_a_dominated_newcomer_changes_nothing(points):
    worse = (points[0][0] + 1, points[0][1] + 1)
    assert list(on([*points, worse])) == [*on(points), False]


@given(POINTS, st.floats(0.1, 10))
def test_the_currency_does_not_change_the_frontier(points, rate):
    assert list(on(points)) == list(on([(t, c * rate) for t, c in points]))


def test_an_unknown_figure_is_never_on_the_frontier():
    assert list(frontier(np.array([1.0, 2.0]), np.array([np.nan, 5.0]))) == [False, True]


def test_the_chances_add_up_and_the_cheaper_of_two_gets_the_pairwise_probability():
    a = Estimate(value=1.0, spread=(("a", 0.2),))
    b = Estimate(value=1.1, spread=(("b", 0.2),))
    chances = p_cheapest([a, b])
    assert chances.sum() == pytest.approx(1)
    assert chances[0] == pytest.approx(probability_less(a, b), abs=0.03)


def test_a_shared_error_does_not_blur_who_is_cheaper():
    shared = (("price of the dollar", 0.5),)
    assert list(p_cheapest([Estimate(value=1.0, spread=shared), Estimate(value=1.01, spread=shared)])) == [1, 0]


def test_equal_offers_share_the_chance_and_an_empty_list_has_none():
    assert list(p_cheapest([Estimate(value=2.0), Estimate(value=2.0)])) == [0.5, 0.5]
    assert len(p_cheapest([])) == 0
