"""Own for a record of several teams: a column each, from the file to the page."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from gpuwise import faces
from gpuwise.api.owning import own
from gpuwise.errors import DataError, Message
from gpuwise.own.choose import best_servers
from gpuwise.own.demand import of_record
from gpuwise.own.plan import Asset, Own, Tail, World, flows
from gpuwise.own.teams import Prices, sharing
from gpuwise.render.data import json_text
from gpuwise.request import OwnRequest, parse
from gpuwise.sources.demand import read_record
from gpuwise.units import HOURS_PER_MONTH, HOURS_PER_YEAR
from gpuwise.view.page import Table, Text

DAY = date(2026, 12, 1)
HELIOS = Path(__file__).parents[2] / "shared" / "data" / "traces" / "helios_earth_demand.csv"
needs_helios = pytest.mark.skipif(
    not HELIOS.exists(), reason="the collected traces (../shared/data/traces) are not there"
)
TWICE = Prices(own_usd_per_year=HOURS_PER_YEAR, busy_usd_per_hour=0.0, cloud_usd_per_hour=2.0)
"""An own GPU costs 1 USD an hour, used or not, and the cloud 2."""


def asked(path: Path, **said: str) -> OwnRequest:
    words = {"record": str(path), "gpu": "H100-SXM", **{name.replace("_", "-"): text for name, text in said.items()}}
    return parse(OwnRequest, words, usd_per=lambda _code: 1.1567)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Four weeks by the hour: one steady team, and two that work by turns."""
    path = tmp_path / "teams.csv"
    lines = [f"{hour},8,{16 * (hour % 2)},{16 * (1 - hour % 2)}" for hour in range(4 * 168)]
    path.write_text("\n".join(["hour,vision,speech,text", *lines]) + "\n", "utf-8")
    return path


def test_a_record_of_teams_is_their_sum(three):
    read = read_record(three)
    assert (read.step_h, list(read.teams)) == (1.0, ["vision", "speech", "text"])
    assert read.gpus == pytest.approx(np.full(4 * 168, 24.0))


def test_a_column_of_gpus_is_the_record_whatever_stands_beside_it(tmp_path):
    path = tmp_path / "gpus.csv"
    path.write_text("minute,gpus,waiting,site\n0,4,1,x\n15,6,1,y\n", "utf-8")
    read = read_record(path)
    assert (read.step_h, read.gpus.tolist(), read.teams) == (0.25, [4.0, 6.0], {})


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("hour,a,b,total\n0,1,2,3\n1,1,2,3\n", '"total" counts the teams a second time'),
        ("hour,a,a\n0,1,2\n1,1,2\n", "same name"),
        ("hour,a,b\n0,1,2\n1,1,\n", "line 3, column b"),
        ("hour,a,weekday\n0,1,Mon\n1,1,Mon\n", "line 2, column weekday"),
        ("time,a,b\n0,1,2\n1,1,2\n", "line 2, column time"),
        ("minute,a,b\n0,1,2\n1,1,2\n3,1,2\n", "line 4.*120 s"),
    ],
)
def test_what_is_no_record_of_teams_names_its_place(tmp_path, text, part):
    path = tmp_path / "teams.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=part):
        read_record(path)


def test_teams_that_work_by_turns_own_nothing_alone_and_all_together():
    turns = np.tile([0.0, 8.0], 12)
    prices = Prices(own_usd_per_year=HOURS_PER_YEAR, busy_usd_per_hour=0.0, cloud_usd_per_hour=1.8)
    found = sharing({"a": turns, "b": 8 - turns}, prices)
    assert [one.gpus for one in found.each.values()] == [0, 0]
    assert found.apart.usd_per_year == pytest.approx(2 * 63_072)
    assert (found.shared.gpus, found.shared.usd_per_year) == (8, pytest.approx(70_080))


def test_what_a_busy_hour_costs_is_paid_for_all_work_and_moves_no_number_that_is_owned():
    demand = {"a": np.array([1.0, 3.0, 5.0])}
    found = sharing(demand, Prices(own_usd_per_year=HOURS_PER_YEAR, busy_usd_per_hour=0.5, cloud_usd_per_hour=2.5))
    free = sharing(demand, TWICE)
    assert found.shared.gpus == free.shared.gpus == 3
    assert found.shared.usd_per_year == pytest.approx(free.shared.usd_per_year + HOURS_PER_YEAR * 0.5 * 3)


@pytest.mark.parametrize("cloud", [0.0, 0.4, 0.5, 1.4])
def test_nothing_is_owned_where_the_cloud_costs_no_more_than_owning(cloud):
    prices = Prices(own_usd_per_year=HOURS_PER_YEAR, busy_usd_per_hour=0.5, cloud_usd_per_hour=cloud)
    found = sharing({"a": np.array([2.0, 4.0]), "b": np.array([1.0, 1.0])}, prices)
    assert (found.shared.gpus, found.apart.gpus) == (0, 0)
    assert found.shared.usd_per_year == pytest.approx(HOURS_PER_YEAR * cloud * 4)
    assert found.shared.usd_per_year == pytest.approx(found.shared.cloud_usd_per_year)


def test_what_costs_nothing_to_own_is_owned_for_the_peak():
    free = Prices(own_usd_per_year=0.0, busy_usd_per_hour=0.5, cloud_usd_per_hour=2.0)
    assert sharing({"a": np.array([1.0, 9.0])}, free).shared.gpus == 9


def test_the_page_sets_a_shared_fleet_against_one_for_each_team(three):
    request = asked(three, cloud_price="4USD")
    found = own(request, today=DAY).teams
    assert found.shared.gpus == 24
    assert found.shared.usd_per_year < found.apart.usd_per_year < found.apart.cloud_usd_per_year
    page = faces.own(request, today=DAY).page()
    (table,) = (block for block in page.blocks if isinstance(block, Table) and block.title.startswith("Teams"))
    assert [row[0].shown for row in table.rows] == ["vision", "speech", "text", "each for itself", "shared"]
    texts = [block.text for block in page.blocks if isinstance(block, Text)]
    assert any(text.startswith("Shared, 24 GPUs serve all teams") for text in texts)
    assert any("3 teams, 672 h of a record, in steps of 1 h" in text for text in texts)


def test_the_document_holds_the_teams_or_why_not(three):
    def teams(**said: str) -> tuple[object, object]:
        result = json.loads(json_text(faces.own(asked(three, **said), today=DAY).json()))["result"]
        return result["teams"], result.get("teams_reason")

    found, _ = teams(cloud_price="4USD")
    assert found["shared"]["gpus"] == 24
    assert found["each"]["vision"]["gpus_wanted"] == 8
    nothing, why = teams(no_capex="yes")
    assert nothing is None
    assert why


def test_without_money_for_servers_the_page_says_why_no_fleet_is_weighed(three):
    assert isinstance(own(asked(three, no_capex="yes"), today=DAY).teams, Message)
    texts = [b.text for b in faces.own(asked(three, no_capex="yes"), today=DAY).page().blocks if isinstance(b, Text)]
    assert any(text.startswith("A fleet for each team: not weighed") for text in texts)


# ---- sixteen teams of one cluster ----


@needs_helios
def test_sixteen_teams_go_through_the_verb():
    """Helios, Earth, May 2020, a row a minute."""
    found = own(asked(HELIOS, provider="aws"), today=DAY)
    assert found.assembled.wanted.level.value == pytest.approx(632.3 * HOURS_PER_MONTH, rel=1e-3)
    teams = found.teams
    assert (len(teams.each), teams.shared.most_gpus, teams.apart.most_gpus) == (16, 933, 1_526)
    assert [name for name, team in teams.each.items() if not team.gpus] == ["vcJkd", "vcira"]
    assert teams.shared.gpus < teams.apart.gpus
    assert teams.shared.usd_per_year < teams.apart.usd_per_year < teams.shared.cloud_usd_per_year


@needs_helios
def test_sixteen_teams_at_a_cloud_that_costs_twice_as_much():
    found = sharing(read_record(HELIOS).teams, TWICE)
    hourly = [one.usd_per_year / HOURS_PER_YEAR for one in (found.shared, found.apart)]
    assert found.shared.gpus == 665
    assert hourly == pytest.approx([742.4, 844.7], abs=0.05)
    assert found.shared.cloud_usd_per_year / HOURS_PER_YEAR == pytest.approx(1_264.6, abs=0.05)
    assert sum(not one.gpus for one in found.each.values()) == 3


@needs_helios
def test_the_search_for_servers_finds_the_same_as_the_quantile():
    """A server of one GPU whose hour costs 1, used or not, and a cloud of 2."""
    read = read_record(HELIOS)
    asset = Asset(
        accelerators=1, capex_usd=0.0, server_usd=0.0, life_years=5.0, worth_decline_per_year=1.0, busy_kw=0.0,
        idle_kw=0.0, pue=1.0, electricity_usd_per_kwh=0.0, hosting_usd_per_month=HOURS_PER_MONTH,
        staff_usd_per_month=0.0, upkeep_usd_per_year=0.0, licence_usd_per_gpu_year=0.0, lead_months=0.0,
    )  # fmt: skip
    cloud = Tail(usd_per_gpu_hour=2.0)

    def world(gpus: np.ndarray) -> World:
        level = np.full((1, 1), gpus.mean() * HOURS_PER_MONTH)
        return World(demand_gpu_h=level, price=np.ones((1, 1)), shape=of_record(gpus))

    def hourly(gpus: np.ndarray, servers: int) -> float:
        paid = flows([Own(asset=asset, servers=servers)], cloud, world(gpus))
        return float(paid.total_usd.sum()) / HOURS_PER_MONTH

    best = best_servers(asset, cloud, world(read.gpus), 0.0)
    assert best == 665
    assert hourly(read.gpus, best) == pytest.approx(742.4, abs=0.05)
    assert hourly(read.gpus, 0) == pytest.approx(1_264.6, abs=0.05)
    each = {name: best_servers(asset, cloud, world(gpus), 0.0) for name, gpus in read.teams.items()}
    assert sum(hourly(read.teams[name], servers) for name, servers in each.items()) == pytest.approx(844.7, abs=0.05)
    assert sum(servers == 0 for servers in each.values()) == 3
