"""Ski rental over paths of premiums: bounds that hold whatever happens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gpuwise.errors import InvalidInput
from gpuwise.own.rental import NEVER, clamped_month, competitive_ratio, hindsight_usd, left_usd, robust_month

PREMIUMS = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 40)),
    elements=st.one_of(st.just(0.0), st.floats(0, 1e5).map(lambda usd: round(usd, 2))),
)
"""Of paths by months; months without demand have none."""
BARRIERS = st.floats(0.01, 5e5).map(lambda usd: round(usd, 2))
SLACK = 1 + 1e-9


@given(PREMIUMS, BARRIERS)
def test_the_robust_trigger_costs_at_most_twice_hindsight_on_any_demand(premium, barrier):
    cost = left_usd(premium, barrier, robust_month(premium, barrier))
    assert (cost <= 2 * hindsight_usd(premium, barrier) * SLACK).all()


@given(PREMIUMS, BARRIERS)
def test_a_bill_that_comes_a_month_late_adds_that_months_premium(premium, barrier):
    month = robust_month(premium, barrier)
    late = np.where(month == NEVER, NEVER, month + 1)
    last = np.where(month == NEVER, 0.0, premium[np.arange(len(premium)), month])
    assert (left_usd(premium, barrier, late) <= (2 * hindsight_usd(premium, barrier) + last) * SLACK).all()


@given(PREMIUMS, BARRIERS, st.floats(0.05, 1), st.data())
def test_no_forecast_costs_more_than_the_trust_that_it_is_given(premium, barrier, trust, data):
    forecast = data.draw(
        arrays.arrays(np.int64, len(premium), elements=st.integers(NEVER, premium.shape[1] + 5)), "forecast"
    )
    cost = left_usd(premium, barrier, clamped_month(forecast, premium, barrier, trust))
    assert (cost <= (1 + 1 / trust) * hindsight_usd(premium, barrier) * SLACK).all()


@given(PREMIUMS, BARRIERS)
def test_hindsight_is_the_best_of_all_months_and_of_staying(premium, barrier):
    each = [left_usd(premium, barrier, month) for month in (NEVER, *range(premium.shape[1]))]
    assert hindsight_usd(premium, barrier) == pytest.approx(np.min(each, axis=0))


@given(PREMIUMS, BARRIERS, st.floats(1, 4))
def test_a_dearer_cloud_never_delays_the_robust_month(premium, barrier, times):
    before, after = robust_month(premium, barrier), robust_month(times * premium, barrier)
    never = premium.shape[1]
    assert (np.where(after == NEVER, never, after) <= np.where(before == NEVER, never, before)).all()


@given(PREMIUMS, BARRIERS)
def test_paths_are_decided_one_by_one(premium, barrier):
    assert robust_month(premium, barrier).tolist() == [int(robust_month(path, barrier)) for path in premium]


@given(PREMIUMS, BARRIERS, st.integers(NEVER, 50))
def test_without_trust_the_clamped_month_is_the_robust_one(premium, barrier, forecast):
    assert clamped_month(forecast, premium, barrier, 1.0).tolist() == robust_month(premium, barrier).tolist()


@pytest.mark.parametrize(("forecast", "month"), [(0, 2), (7, 7), (30, 11), (NEVER, 11)])
def test_a_forecast_moves_the_month_only_between_half_and_twice_the_barrier(forecast, month):
    premium = np.full(36, 10_000.0)
    assert robust_month(premium, 60_000) == 5
    assert clamped_month(forecast, premium, 60_000, 0.5) == month


def test_a_barrier_that_is_not_reached_within_the_horizon_means_never():
    premium = np.array([1.0, 0.0, 0.0, 1.0])
    assert robust_month(premium, 2.01) == NEVER
    assert clamped_month(0, premium, 100.0, 0.5) == NEVER
    assert left_usd(premium, 2.01, NEVER) == pytest.approx(2.0)


def test_each_path_may_have_its_own_barrier():
    premium = np.ones((3, 4))
    assert robust_month(premium, np.array([1.0, 3.0, 5.0])).tolist() == [0, 2, NEVER]


@given(st.floats(0, 1))
def test_drawing_the_moment_never_makes_the_bound_worse(alpha):
    assert 1 <= competitive_ratio(alpha, randomised=True) <= competitive_ratio(alpha) * SLACK


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_a_price_above_that_before_the_reservation_is_refused(alpha):
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        competitive_ratio(alpha)


@pytest.mark.parametrize("trust", [0.0, 1.5])
def test_a_trust_that_bounds_nothing_is_refused(trust):
    with pytest.raises(InvalidInput, match="trust"):
        clamped_month(1, np.ones(3), 1.0, trust)
