"""An hourly commitment does not carry over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.cost.commitments import settle
from gpuwise.errors import InvalidInput

HALF_A_DAY = np.array([2.0] * 12 + [0.0] * 12)
USAGE = st.lists(st.floats(0, 1e6), min_size=1, max_size=48).map(np.array)
MONEY = st.floats(0, 1e6)


def test_uc_091_an_unused_hour_of_a_commitment_is_lost():
    settled = settle(HALF_A_DAY, 1.0)
    assert settled.paid_usd.sum() == 24
    assert settled.used_usd.sum() == 12
    assert settled.wasted_usd.sum() == 12
    assert settled.on_demand_usd.sum() == 12


def test_uc_091_the_average_of_the_day_would_hide_it():
    averaged = settle(np.full(24, HALF_A_DAY.mean()), 1.0)
    assert (averaged.used_usd.sum(), averaged.wasted_usd.sum()) == (24, 0)


def test_what_is_over_costs_more_without_the_discount():
    settled = settle(np.array([2.0]), 1.0, off_fraction=0.25)
    assert settled.over_usd[0] == 1
    assert settled.on_demand_usd[0] == pytest.approx(4 / 3)


@given(USAGE, MONEY, st.floats(0, 0.99))
def test_what_is_paid_is_used_or_lost_and_all_use_is_covered_or_over(usage, committed, off):
    settled = settle(usage, committed, off)
    np.testing.assert_allclose(settled.used_usd + settled.wasted_usd, settled.paid_usd, rtol=1e-12)
    np.testing.assert_allclose(settled.used_usd + settled.over_usd, usage, rtol=1e-12)
    parts = (settled.paid_usd, settled.used_usd, settled.wasted_usd, settled.over_usd, settled.on_demand_usd)
    assert all((part >= 0).all() for part in parts)


@given(USAGE, MONEY, MONEY)
def test_more_commitment_never_loses_less_and_never_leaves_more_over(usage, one, other):
    less, more = settle(usage, min(one, other)), settle(usage, max(one, other))
    assert (less.wasted_usd <= more.wasted_usd).all()
    assert (less.over_usd >= more.over_usd).all()


@pytest.mark.parametrize(
    ("usage", "committed", "off"),
    [([-1.0], 1.0, 0.0), ([np.nan], 1.0, 0.0), ([1.0], -1.0, 0.0), ([1.0], np.inf, 0.0), ([1.0], 1.0, 1.0)],
)
def test_what_no_hour_can_hold_is_refused(usage, committed, off):
    with pytest.raises(InvalidInput):
        settle(np.array(usage), committed, off)
