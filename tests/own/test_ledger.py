"""Cash flows, break-even, verdicts, loans and depreciation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gpuwise.errors import InvalidInput
from gpuwise.own.case import WEEKS_PER_MONTH
from gpuwise.own.demand import steady
from gpuwise.own.ledger import (
    break_even_h,
    break_even_months,
    changed_usd,
    internal_rates,
    judged,
    macrs5_usd,
    months_of_use,
    net_saving_usd,
    npv_usd,
    over_lives,
    payback_months,
    payment_usd,
    saving_flows_usd,
    spread_ratio,
    straight_line_usd,
    years_of_use,
)
from gpuwise.own.market import break_even, owning_pays
from gpuwise.own.plan import Asset, Own, Tail, World, flows, yearly_usd
from gpuwise.units import HOURS_PER_MONTH, HOURS_PER_YEAR

MONEY = st.floats(-1e6, 1e6).map(lambda usd: round(usd, 2))
FLOWS = arrays.arrays(np.float64, st.integers(2, 121), elements=MONEY)
RATES = st.one_of(st.just(0.0), st.floats(1e-16, 1.0))


# ---- net present value and internal rate ----


@given(FLOWS)
def test_at_no_interest_the_present_value_is_the_sum(flow):
    assert npv_usd(flow, 0.0) == pytest.approx(flow.sum(), abs=1e-6)


@given(st.floats(1, 1e9), RATES, st.integers(1, 480))
def test_an_annuity_repays_its_loan_at_any_rate_down_to_1e_16(loan, rate, periods):
    """Each month's balance with interest, less the payment, ends at nothing: the same as a present value of 0."""
    flow = np.full(periods + 1, -payment_usd(loan, rate, periods))
    flow[0] = loan
    yearly = float(np.expm1(12 * np.log1p(rate)))
    assert npv_usd(flow, yearly) == pytest.approx(0.0, abs=1e-9 * loan)


@pytest.mark.parametrize("rate", [1e-16, 1e-15, 1e-12, 1e-9])
def test_a_rate_that_nearly_is_none_gives_the_payment_of_none(rate):
    assert payment_usd(1_000, rate, 10) == pytest.approx(payment_usd(1_000, 0.0, 10), rel=1e-8)


def test_present_values_of_many_paths_are_each_at_its_own_rate():
    flow = np.array([[-100.0, *[0.0] * 11, 110.0]] * 2)
    assert npv_usd(flow, np.array([[0.0], [0.1]])) == pytest.approx([10.0, 0.0])


@settings(deadline=None)
@given(st.floats(1e3, 1e6), st.floats(0.05, 1.5), st.integers(1, 10))
def test_a_purchase_has_one_internal_rate_and_it_makes_the_present_value_nothing(capex, share, years):
    flow = saving_flows_usd(capex, share * capex, years, payments_per_year=1)
    (rate,) = internal_rates(flow)
    assert npv_usd(flow, rate) == pytest.approx(0.0, abs=1e-6 * capex)


def test_flows_that_only_cost_have_no_internal_rate():
    assert internal_rates(np.array([-5.0, -1.0, 0.0])) == ()
    assert internal_rates(np.zeros(13)) == ()


def test_flows_that_turn_twice_have_two_internal_rates():
    """−100, +230, −132 by the year: (1 + r) is 1.1 or 1.2."""
    flow = np.zeros(25)
    flow[[0, 12, 24]] = -100, 230, -132
    assert internal_rates(flow) == pytest.approx((0.1, 0.2))


# ---- pay-back and break-even ----


@pytest.mark.parametrize(
    ("flow", "months"),
    [
        ([-100, 50, 50], 2.0),
        ([-100, 80, 80], 1.25),
        ([-100, 0, 40, 40], None),
        ([0, 10], 0.0),
        ([-100, 150, -100, 100], pytest.approx(2 / 3)),
    ],
)
def test_a_purchase_is_paid_back_when_what_it_saved_first_reaches_its_price(flow, months):
    assert payback_months(np.array(flow, float)) == months


@given(st.floats(1, 1e6), st.floats(0.1, 1e3), st.floats(0, 1e3))
def test_break_even_counts_capex_once(capex, cloud, own):
    hours = break_even_h(capex, cloud, own)
    if cloud <= own:
        assert hours == np.inf
    else:
        assert hours * cloud == pytest.approx(capex + hours * own, rel=1e-6)


@given(st.floats(1, 1e6), st.floats(0.1, 1e3), st.floats(0, 0.09), st.floats(0.01, 1e3))
def test_a_dearer_cloud_breaks_even_earlier(capex, cloud, own, more):
    assert break_even_h(capex, cloud + more, own) < break_even_h(capex, cloud, own)


def test_months_and_years_of_use_say_how_long_a_month_and_a_day_are():
    assert months_of_use(8_556.24, 720) == pytest.approx(11.88, abs=0.005)
    assert months_of_use(8_556.24) == pytest.approx(11.72, abs=0.005)
    assert years_of_use(HOURS_PER_YEAR) == pytest.approx(1.0)
    assert years_of_use(HOURS_PER_YEAR, 12) == pytest.approx(2.0)


def test_uc_095_break_even_is_a_utilisation():
    hours = break_even_h(14_000, 0.45)
    assert hours == pytest.approx(31_111, abs=0.5)
    assert hours / (7 * HOURS_PER_YEAR) == pytest.approx(0.51, abs=0.005)
    assert break_even(14_000 / 7, 0.0, 0.45) == pytest.approx(hours / (7 * HOURS_PER_YEAR))


def test_what_is_paid_anyway_is_beaten_up_to_a_use_and_what_is_paid_by_the_hour_from_one_on():
    assert owning_pays(8_760, 0.5, 1.25, by_use=False) == (0.0, 0.5)
    assert owning_pays(8_760, 0.5, 1.5, by_use=False) == (0.0, 1.0)
    assert owning_pays(8_760, 0.5, 1.0, by_use=False) is None
    assert owning_pays(8_760, 0.5, 2.5, by_use=True) == (0.5, 1.0)
    assert owning_pays(8_760, 0.5, 1.4, by_use=True) is None
    assert owning_pays(8_760, 0.5, 0.4, by_use=True) is None


@given(st.floats(100, 50_000), st.floats(0, 1), st.floats(0.1, 20), st.floats(0.01, 0.99))
def test_at_a_use_between_its_ends_owning_costs_less(yearly, running, price, use):
    own = yearly / HOURS_PER_YEAR + running * use
    for by_use, rent in ((True, price * use), (False, price)):
        between = owning_pays(yearly, running, price, by_use=by_use)
        inside = between is not None and between[0] < use < between[1]
        assert inside == (own < rent) or own == pytest.approx(rent)


def test_uc_096_the_cloud_is_paid_until_the_hardware_is_there():
    lead = 30 / WEEKS_PER_MONTH
    assert lead == pytest.approx(6.9, abs=0.01)
    assert break_even_months(150_000, 9_000, 1_500, lead) == pytest.approx(26.9, abs=0.05)
    assert break_even_months(150_000, 9_000) == pytest.approx(16.7, abs=0.05)
    assert break_even_months(150_000, 1_500, 9_000, lead) == np.inf


def test_uc_096_the_flows_of_the_plan_have_seven_months_of_cloud_and_the_same_pay_back():
    server = Asset(
        accelerators=1, capex_usd=150_000, server_usd=150_000, life_years=5,
        worth_decline_per_year=1e3, busy_kw=0, idle_kw=0, pue=1,
        electricity_usd_per_kwh=0, hosting_usd_per_month=1_500, staff_usd_per_month=0, upkeep_usd_per_year=0,
        licence_usd_per_gpu_year=0, lead_months=30 / WEEKS_PER_MONTH,
    )  # fmt: skip
    world = World(demand_gpu_h=np.full((1, 48), HOURS_PER_MONTH), price=np.ones((1, 48)), shape=steady())
    tail = Tail(usd_per_gpu_hour=9_000 / HOURS_PER_MONTH)
    own, rent = flows([Own(asset=server, servers=1)], tail, world), flows([], tail, world)
    assert own.tail_usd[0, 1:7] == pytest.approx(np.full(6, 9_000))
    assert own.tail_usd[0, 7] > 8_000
    assert own.tail_usd[0, 8:] == pytest.approx(np.zeros(41))
    assert payback_months((rent.total_usd - own.total_usd)[0]) == pytest.approx(26.9, abs=0.05)


# ---- verdicts ----


def test_uc_092_a_saving_whose_present_value_is_below_zero_depends_on_the_rate():
    found = judged(saving_flows_usd(131_000, 52_000, 3, payments_per_year=1), 0.10)
    assert found.total_usd == pytest.approx(25_000)
    assert found.npv_usd == pytest.approx(-1_684, abs=0.5)
    assert found.answer == "depends on the rate"
    assert found.break_even_rates == (pytest.approx(0.0927, abs=0.00005),)
    assert "0.1 a year" in str(found.criterion)


@pytest.mark.parametrize(
    ("saving", "answer"), [(52_000, "buy"), (43_000, "do not buy"), (44_000, "depends on the rate")]
)
def test_the_verdict_follows_the_stated_criterion(saving, answer):
    assert judged(saving_flows_usd(131_000, saving, 3, payments_per_year=1), 0.05).answer == answer


@settings(deadline=None)
@given(FLOWS, st.floats(0, 0.5))
def test_a_verdict_to_buy_has_a_present_value_above_zero_at_each_rate_up_to_the_persons(flow, rate):
    if judged(flow, rate).answer == "buy":
        assert (npv_usd(flow, np.linspace(rate / 50, rate, 50)[:, None]) > -1e-6 * np.abs(flow).sum()).all()


def test_savings_that_do_not_fall_on_ends_of_months_are_refused():
    with pytest.raises(InvalidInput, match="5 payments"):
        saving_flows_usd(1.0, 1.0, 1, payments_per_year=5)


def test_a_net_saving_is_what_is_avoided_less_what_is_added():
    assert net_saving_usd([92.5, 35.1], [53.0]) == pytest.approx(74.6)


# ---- depreciation and prices ----


def test_uc_094_the_fixed_part_of_a_year_is_a_table_over_life():
    lives = over_lives(
        240_000, residual_fraction=0.15, spares_fraction=0.07, upkeep_usd_per_year=0.1 * 90_000 + 12 * 900
    )
    assert [life.life_years for life in lives] == [3, 5, 6]
    assert [life.capital_usd_per_year for life in lives] == pytest.approx([68_000, 40_800, 34_000])
    assert [life.spares_usd_per_year for life in lives] == pytest.approx([5_600, 3_360, 2_800])
    assert [life.total_usd_per_year for life in lives] == pytest.approx([93_400, 63_960, 56_600])


def test_the_tax_schedule_writes_off_all_of_the_price_in_six_years():
    assert sum(macrs5_usd(250_000, year) for year in range(1, 10)) == pytest.approx(250_000)
    with pytest.raises(InvalidInput, match="no year 0"):
        macrs5_usd(250_000, 0)


@given(st.floats(0, 1e6), st.floats(0, 1), st.floats(0.5, 30))
def test_straight_line_depreciation_ends_at_the_resale_value(price, left, years):
    assert price - years * straight_line_usd(price, left * price, years) == pytest.approx(left * price, abs=1e-6)


def test_a_price_after_a_change_and_the_spread_of_a_market():
    assert changed_usd(98.32, -0.44, gpus=8) == pytest.approx(6.88, abs=0.006)
    assert spread_ratio([6.88, 12.29, 2.69]) == pytest.approx(4.57, abs=0.005)


def test_the_engines_yearly_cost_holds_without_interest():
    """Straight line less resale: 240,000 · (1 − e^(−0.2 · 4)) / 4."""
    server = Asset(
        accelerators=8, capex_usd=240_000, server_usd=240_000, life_years=4,
        worth_decline_per_year=0.2, busy_kw=0, idle_kw=0, pue=1,
        electricity_usd_per_kwh=0, hosting_usd_per_month=0, staff_usd_per_month=0, upkeep_usd_per_year=0,
        licence_usd_per_gpu_year=0, lead_months=0,
    )  # fmt: skip
    wanted = straight_line_usd(240_000, 240_000 * np.exp(-0.8), 4)
    assert yearly_usd(server, 0.0) == pytest.approx(wanted)
    assert yearly_usd(server, np.array([[0.0], [1e-16]])).ravel() == pytest.approx([wanted, wanted], rel=1e-9)
