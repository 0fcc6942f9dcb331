"""Energy, its cost and its emissions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.own.energy import energy_kwh, energy_usd, g_co2e_per_kwh, kg_co2e
from gpuwise.units import HOURS_PER_YEAR

AMOUNT = st.floats(0, 1e6)


def test_uc_095_seven_idle_cards_take_2453_kwh_and_736_usd_a_year():
    idle = energy_kwh(0.040, HOURS_PER_YEAR, count=7)
    assert idle == pytest.approx(2_453, abs=0.5)
    assert energy_usd(idle, 0.30) == pytest.approx(736, abs=0.5)


def test_pounds_and_grams_say_the_same():
    assert g_co2e_per_kwh(0.954) == pytest.approx(432.7, abs=0.05)
    assert kg_co2e(26.843, g_co2e_per_kwh(0.954)) == pytest.approx(11.616, abs=0.001)


@given(AMOUNT, AMOUNT, st.floats(1, 3), st.integers(1, 100))
def test_cooling_and_each_further_machine_add_in_proportion(kw, hours, pue, count):
    one = energy_kwh(kw, hours)
    assert energy_kwh(kw, hours, pue=pue, count=count) == pytest.approx(one * pue * count)
    assert energy_kwh(kw, hours, pue=pue) >= one
