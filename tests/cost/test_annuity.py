"""An owned machine's hour: published factors, and what must hold at any rate."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.cost.annuity import (
    capital_recovery_factor,
    fixed_usd_per_month,
    owned_offers,
    price_log_sd,
    running_usd_per_hour,
    sinking_fund_factor,
)
from gpuwise.estimate import Z80
from gpuwise.model import Machine, Source

RATES = st.one_of(st.just(0.0), st.floats(1e-16, 0.5))
YEARS = st.floats(1, 30)

MACHINE = Machine(
    name="box", accelerator="l4", accelerators=2, capex_usd=24_000, residual_usd=0, life_years=5, power_w=1_000,
    pue=1.5,    electricity_usd_per_kwh=0.20, hosting_usd_per_month=100, staff_usd_per_month=50, discount_fraction=0.0,
    source=Source(kind="assumed", ref="test"),
)  # fmt: skip


def test_the_annuity_of_7_percent_over_25_years_is_pypsas():
    assert capital_recovery_factor(0.07, 25) == pytest.approx(0.0858, abs=5e-5)


def test_without_interest_the_yearly_payment_is_the_plain_share():
    assert capital_recovery_factor(0.0, 5) == pytest.approx(0.2)
    assert sinking_fund_factor(0.0, 5) == pytest.approx(0.2)


@given(RATES, YEARS)
def test_recovery_is_sinking_fund_plus_interest(rate, years):
    assert capital_recovery_factor(rate, years) == pytest.approx(sinking_fund_factor(rate, years) + rate, rel=1e-9)


def test_a_machine_costs_its_capital_hosting_and_staff_a_month_and_its_energy_an_hour():
    assert fixed_usd_per_month(MACHINE) == pytest.approx(24_000 / 60 + 150)
    assert running_usd_per_hour(MACHINE) == pytest.approx(1 * 1.5 * 0.20)


def test_an_owned_machine_is_an_offer_that_is_never_free():
    offers = owned_offers([MACHINE])
    assert offers.offer(0).market == "owned"
    assert offers.price_usd_per_hour[0] == pytest.approx(550 / 730 + 0.30)


def test_ranges_of_a_machines_figures_make_its_costs_interval():
    assert price_log_sd(MACHINE) == 0
    staff = replace(MACHINE, low={"staff_usd_per_month": 0.0}, high={"staff_usd_per_month": 400.0})
    both = replace(staff, low=staff.low | {"life_years": 6.0}, high=staff.high | {"life_years": 4.0})
    month = 550 + 0.30 * 730
    assert price_log_sd(staff) == pytest.approx(log((month + 350) / (month - 50)) / (2 * Z80))
    assert price_log_sd(both) > price_log_sd(staff)
    assert owned_offers([staff]).price_log_sd[0] == price_log_sd(staff)
