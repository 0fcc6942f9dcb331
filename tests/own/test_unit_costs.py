"""What a unit of work or capacity costs, and a run on owned chips."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.errors import InvalidInput
from gpuwise.own.unit_costs import (
    MEAN_HOURS_PER_YEAR,
    Chip,
    amortised_usd_per_hour,
    cluster_usd,
    draw_kw,
    mixed_usd,
    pays_back_months,
    run_usd,
    usd_per_core_h,
    usd_per_million,
    usd_per_pflop_year,
    work_to_pay_back,
    worth_usd,
)


@pytest.mark.parametrize(("years", "worth"), [(0, 10_000), (1, 7_244), (2, 5_248)])
def test_a_card_loses_27_6_percent_of_its_worth_each_year(years, worth):
    assert worth_usd(10_000, years, 0.14) == pytest.approx(worth, abs=0.5)


@given(st.floats(0, 6), st.floats(0.02, 0.3))
def test_what_an_hour_takes_is_what_the_worth_loses_in_it(years, decline):
    """The amortised hour is the slope of the falling value."""
    step = 1 / MEAN_HOURS_PER_YEAR
    lost = worth_usd(1e6, years, decline) - worth_usd(1e6, years + step, decline)
    assert amortised_usd_per_hour(worth_usd(1e6, years, decline), decline) == pytest.approx(lost, rel=1e-3)


def test_a_cluster_is_its_chips_and_the_networks_share_of_all():
    price = cluster_usd(100, 1_000, 0.2)
    assert price == pytest.approx(125_000)
    assert cluster_usd(100, 1_000, 0.2, price_index=1.1) == pytest.approx(1.1 * price)


def test_a_run_on_chips_that_lose_no_worth_costs_its_energy():
    chip = Chip(price_usd=20_000, age_days=100, network_fraction=0.1, draw_kw=0.5, pue=1.2, usd_per_kwh=0.1)
    assert run_usd(chip, 1_000, 0.0) == pytest.approx(0.5 * 1_000 * 1.2 * 0.1)
    assert run_usd(chip, 1_000, 0.14) > run_usd(chip, 1_000, 0.0)


def test_an_older_chip_makes_a_run_cheaper():
    young, old = (
        Chip(price_usd=20_000, age_days=age, network_fraction=0.1, draw_kw=0.5, pue=1.2, usd_per_kwh=0.1)
        for age in (0, 700)
    )
    assert run_usd(old, 1e6, 0.14) < run_usd(young, 1e6, 0.14)


def test_the_draw_of_a_chip_has_its_part_of_the_server():
    assert draw_kw(0.4, 2.03125, 0.75) == pytest.approx(0.609, abs=0.001)


@given(st.floats(0.01, 1e3), st.floats(1, 1e6), st.floats(0.01, 1))
def test_idle_hours_make_work_dearer_in_proportion(price, rate, busy):
    assert usd_per_million(price, rate, busy) == pytest.approx(usd_per_million(price, rate) / busy)


@pytest.mark.parametrize("utilisation", [0.0, -0.1, 1.1])
def test_a_utilisation_that_no_machine_has_is_refused(utilisation):
    for ask in (
        lambda: usd_per_million(1.0, 1.0, utilisation),
        lambda: usd_per_core_h(1.0, 1, 1.0, utilisation),
        lambda: usd_per_pflop_year(1.0, 1, 1.0, 1.0, utilisation),
    ):
        with pytest.raises(InvalidInput, match="utilisation"):
            ask()


@given(st.floats(1e3, 1e6), st.floats(0.5, 100), st.floats(0.1, 100), st.floats(0, 1e3))
def test_the_work_that_pays_back_in_so_many_months_does_so(capex, months, price, own):
    work = work_to_pay_back(capex, months, price, own)
    assert pays_back_months(capex, work, price, own) == pytest.approx(months, rel=1e-3)


def test_work_that_is_worth_less_than_its_power_never_pays_back():
    assert pays_back_months(1_000, 1.0, 0.5, 1.0) == float("inf")


def test_a_mixed_price_lies_between_its_parts():
    assert mixed_usd(1.25, 10, 1 / 3) == pytest.approx(7.083, abs=0.001)
