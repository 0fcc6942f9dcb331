"""Ski rental over paths of premiums: bounds that hold whatever happens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gpuwise.errors import InvalidInput
from gpuwise.own.demand import steady
from gpuwise.own.plan import Asset, Own, Tail, World, flows
from gpuwise.own.rental import NEVER, clamped_month, competitive_ratio, hindsight_usd, left_usd, robust_month
from gpuwise.units import HOURS_PER_MONTH

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


# ---- from demand, by the flows of plans ----

MONTHS = 36
BARRIER = 150_000.0
GPUS = arrays.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(MONTHS)), elements=st.integers(0, 24).map(float))
"""Wanted at once, of paths by months."""


def rented_and_owned(gpus, cloud_usd_per_gpu_hour, hosting_usd_per_month):
    """What each month costs without and with a server of eight, its price left out; (paths, months) each."""
    server = Asset(
        accelerators=8, capex_usd=0.0, server_usd=0.0, life_years=4.0,
        worth_decline_per_year=1.0, busy_kw=8.0, idle_kw=0.0, pue=1.3,
        electricity_usd_per_kwh=0.1, hosting_usd_per_month=hosting_usd_per_month, staff_usd_per_month=0.0,
        upkeep_usd_per_year=0.0, licence_usd_per_gpu_year=0.0, lead_months=0.0,
    )  # fmt: skip
    world = World(demand_gpu_h=gpus * HOURS_PER_MONTH, price=np.ones((1, MONTHS)), shape=steady())
    tail = Tail(usd_per_gpu_hour=cloud_usd_per_gpu_hour)
    return tuple(flows(layers, tail, world).total_usd[:, 1:] for layers in ([], [Own(asset=server, servers=1)]))


def best_usd(premium):
    """Leaving in the best of all months, or staying."""
    return np.min([left_usd(premium, BARRIER, month) for month in (NEVER, *range(MONTHS))], axis=0)


@given(GPUS, st.floats(0.2, 15))
def test_on_random_demand_a_server_that_costs_only_what_it_works_is_bought_for_at_most_twice_hindsight(gpus, price):
    rented, owned = rented_and_owned(gpus, price, hosting_usd_per_month=0.0)
    premium = rented - owned
    assert (premium >= 0).all()
    cost = left_usd(premium, BARRIER, robust_month(premium, BARRIER))
    assert (cost <= 2 * best_usd(premium) * SLACK).all()


def test_a_server_that_is_paid_for_while_it_idles_can_cost_more_than_twice_hindsight():
    """Demand ends when the trigger has fired: months whose premium is below 0 are outside of what the rule promises."""
    rented, owned = rented_and_owned(np.where(np.arange(MONTHS) < 9, 8.0, 0.0)[None], 4.0, 5_000.0)
    premium = rented - owned
    assert robust_month(premium, BARRIER) == 8
    cost, best = (usd + owned.sum() for usd in (left_usd(premium, BARRIER, robust_month(premium, BARRIER)),
                                                best_usd(premium)))  # fmt: skip
    assert best == pytest.approx(rented.sum()), "to stay is best"
    assert cost > 2.2 * best
