"""How much to own is a quantile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gpuwise.errors import InvalidInput
from gpuwise.own.portfolio import hybrid_cost, owned_quantile, portfolio, together

HELIOS = Path(__file__).parents[3] / "shared" / "data" / "traces" / "helios_earth_demand.csv"
WHOLE = arrays.arrays(np.float64, st.integers(1, 60), elements=st.integers(0, 200).map(float))
PARTS = arrays.arrays(np.float64, st.integers(1, 60), elements=st.floats(0, 200).map(lambda gpus: round(gpus, 3)))
DEMAND = st.one_of(WHOLE, PARTS)
RATIO = st.floats(0.2, 20)
SLACK = 1e-9


@given(DEMAND, RATIO)
def test_the_quantile_beats_every_neighbour_and_every_other_number(demand, ratio):
    best = owned_quantile(demand, ratio)
    cost = hybrid_cost(demand, best, ratio)
    assert all(cost <= hybrid_cost(demand, other, ratio) + SLACK for other in range(int(demand.max()) + 2))


@given(DEMAND, RATIO)
def test_a_hybrid_costs_no_more_than_all_cloud_or_all_own_with_burst(demand, ratio):
    found = portfolio(demand, ratio)
    assert found.hybrid <= min(found.all_cloud, found.all_own) + SLACK
    burst = [hybrid_cost(demand, gpus, ratio) for gpus in (int(demand.mean()), int(demand.max()))]
    assert found.hybrid <= min(burst) + SLACK


@given(DEMAND, RATIO, st.floats(1, 3))
def test_a_dearer_cloud_never_means_owning_less(demand, ratio, times):
    assert owned_quantile(demand, ratio * times) >= owned_quantile(demand, ratio)


@given(DEMAND)
def test_nothing_is_owned_where_the_cloud_is_as_cheap(demand):
    assert owned_quantile(demand, 1.0) == 0


@given(WHOLE, st.floats(1.01, 20), st.data())
def test_sharing_a_fleet_is_never_dearer(demand, ratio, data):
    other = data.draw(arrays.arrays(np.float64, len(demand), elements=st.integers(0, 200).map(float)))
    apart = together([portfolio(demand, ratio), portfolio(other, ratio)])
    assert portfolio(demand + other, ratio).hybrid <= apart.hybrid + SLACK


def test_the_peak_is_owned_for_whole_gpus():
    assert portfolio(np.array([0.5, 2.5]), 2.0).all_own == pytest.approx(3.0)


@pytest.mark.parametrize("demand", [[], [1.0, -1.0], [np.nan]])
def test_a_demand_that_is_none_is_refused(demand):
    with pytest.raises(InvalidInput, match="demand"):
        portfolio(np.array(demand), 2.0)


@pytest.mark.parametrize("ratio", [0.0, np.inf, np.nan])
def test_a_ratio_that_is_none_is_refused(ratio):
    with pytest.raises(InvalidInput, match="ratio"):
        owned_quantile(np.ones(3), ratio)


@pytest.mark.skipif(not HELIOS.exists(), reason="the collected traces (../shared/data/traces) are not there")
def test_sixteen_teams_of_one_cluster_at_a_cloud_that_costs_twice_as_much():
    """Helios, Earth, May 2020. Today's capacity, 856 GPUs, is larger than the demand's best by 191."""
    with HELIOS.open(encoding="utf-8") as file:
        teams = np.loadtxt(file, delimiter=",", skiprows=1)[:, 1:].T
    pooled, each = portfolio(teams.sum(axis=0), 2.0), [portfolio(team, 2.0) for team in teams]
    assert pooled.gpus == 665
    assert pooled.hybrid == pytest.approx(742.4, abs=0.05)
    assert pooled.all_cloud == pytest.approx(1_264.6, abs=0.05)
    assert together(each).hybrid == pytest.approx(844.7, abs=0.05)
    assert together(each).all_own == 1_526
    assert hybrid_cost(teams.sum(axis=0), 856, 2.0) == pytest.approx(856, abs=1)
    assert sum(one.gpus == 0 for one in each) == 3
