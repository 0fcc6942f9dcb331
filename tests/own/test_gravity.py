"""Data that goes along: ways, days, waivers, rounds, and what cold tiers bill."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.asset import ColdTier, Link, Waiver
from gpuwise.cost.tariffs import Tariff, Tier
from gpuwise.errors import InvalidInput
from gpuwise.own.gravity import (
    Cold,
    Data,
    Line,
    copied,
    data_move,
    early_deletion_usd,
    egress_usd,
    link_usd,
    months_begun,
    open_waivers,
    retrieval_usd,
    transfer_days,
)

TODAY = date(2026, 10, 1)
LINE = Line(gbit_per_s=10, efficiency_fraction=1.0)
FLAT = Tariff(
    provider="cloud", region=None, item="egress", tiers=(Tier(usd_per_unit=0.09),), observed=TODAY, source="list"
)
TIERED = Tariff(
    provider="cloud", region=None, item="egress", observed=TODAY, source="list",
    tiers=(
        Tier(end=100, usd_per_unit=0.0), Tier(start=100, end=10_100, usd_per_unit=0.09),
        Tier(start=10_100, usd_per_unit=0.05),
    ),
)  # fmt: skip
LINK = Link(
    provider="cloud", name="private line", gbit_per_s=10, usd_per_gb=0.025, usd_per_month=1_700, observed=TODAY,
    source="list",
)  # fmt: skip
WAIVER = Waiver(
    where="cloud", covers="exit", condition="the account is closed", usd_per_gb=0.0, valid_from=date(2024, 3, 1),
    valid_until=None, source="announcement",
)  # fmt: skip
LAW = Waiver(
    where="EU", covers="switching", condition="notice is given", usd_per_gb=0.0, valid_from=date(2027, 1, 12),
    valid_until=None, source="Data Act",
)  # fmt: skip
AT_COST = Waiver(
    where="EU", covers="switching", condition="notice is given", usd_per_gb=None, valid_from=date(2024, 1, 11),
    valid_until=date(2027, 1, 11), source="Data Act",
)  # fmt: skip
COLD = ColdTier(
    provider="cloud", name="archive", least_days=90, usd_per_gb_month=0.004, retrieval_usd_per_gb=0.02, observed=TODAY,
    source="list",
)  # fmt: skip
PETABYTES_5 = Data(gb=5e6, cut_over_h=8)


def test_uc_100_leaving_with_5_pb_costs_450000_or_128400_or_the_closing_of_the_account():
    internet, waived, linked = data_move(PETABYTES_5, LINE, on=TODAY, tariff=FLAT, links=[LINK], waivers=[WAIVER]).ways
    assert internet.usd == pytest.approx(450_000)
    assert linked.usd == pytest.approx(128_400)
    assert waived.usd == 0.0
    assert waived.condition == "the account is closed"
    assert [way.kind for way in (internet, waived, linked)] == ["internet", "waiver", "link"]
    assert {round(way.days) for way in (internet, waived, linked)} == {46}


def test_a_waiver_that_holds_later_says_from_when():
    found = data_move(PETABYTES_5, LINE, on=TODAY, tariff=FLAT, waivers=[WAIVER, LAW]).ways
    assert [way.from_day for way in found] == [None, None, date(2027, 1, 12)]


def test_a_waiver_at_cost_has_no_price_and_the_reason():
    way = data_move(PETABYTES_5, LINE, on=TODAY, tariff=FLAT, waivers=[AT_COST]).ways[1]
    assert way.usd is None
    assert "own cost" in str(way.reason)


@pytest.mark.parametrize(("on", "held"), [(date(2027, 1, 11), 2), (date(2027, 1, 12), 1)])
def test_a_waiver_is_gone_after_its_last_day(on, held):
    assert len(open_waivers([AT_COST, LAW], on)) == held


def test_a_provider_without_a_tariff_has_no_price_for_what_leaves():
    way = data_move(PETABYTES_5, LINE, on=TODAY, tariff=None).ways[0]
    assert (way.usd, way.days) == (None, pytest.approx(46.3, abs=0.05))
    assert "not known" in str(way.reason)


def test_a_line_without_a_monthly_price_has_none_at_all():
    link = Link(
        provider="cloud", name="line", gbit_per_s=None, usd_per_gb=0.02, usd_per_month=None, observed=TODAY, source="x"
    )
    way = data_move(PETABYTES_5, LINE, on=TODAY, tariff=FLAT, links=[link]).ways[1]
    assert (way.usd, link_usd(link, 1.0, 1)) == (None, None)
    assert "month" in str(way.reason)
    assert way.days == pytest.approx(46.3, abs=0.05)


def test_a_wider_line_is_faster_and_billed_for_fewer_months():
    wide = Link(
        provider="cloud", name="line", gbit_per_s=100, usd_per_gb=0.025, usd_per_month=1_700, observed=TODAY, source="x"
    )
    way = data_move(PETABYTES_5, LINE, on=TODAY, tariff=FLAT, links=[wide]).ways[1]
    assert way.days == pytest.approx(4.63, abs=0.005)
    assert way.usd == pytest.approx(126_700)


# ---- rounds ----


def test_100_tb_of_which_a_tenth_changes_meanwhile_need_one_round_before_the_cut_over():
    daily = 0.1 * 100_000 / transfer_days(100_000, LINE)
    found = copied(Data(gb=100_000, cut_over_h=1, change_gb_per_day=daily), LINE)
    assert found.rounds == 1
    assert found.cut_over_h == pytest.approx(0.222, abs=0.001)
    assert 24 * found.days == pytest.approx(22.22 + 2.222 + 0.222, abs=0.01)


def test_data_that_do_not_change_are_copied_once():
    found = copied(PETABYTES_5, LINE)
    assert (found.rounds, found.cut_over_h, found.days) == (0, 0.0, transfer_days(5e6, LINE))


def test_data_that_change_faster_than_the_line_carries_never_arrive():
    data = Data(gb=1e6, cut_over_h=8, change_gb_per_day=200_000)
    found = copied(data, LINE)
    assert (found.rounds, found.days) == (None, None)
    assert "never catches up" in str(found.reason)
    ways = data_move(data, LINE, on=TODAY, tariff=FLAT, links=[LINK], waivers=[WAIVER]).ways
    assert all(way.usd is None and way.reason == found.reason for way in ways)


@given(st.floats(1, 1e7), st.floats(0, 1e5), st.floats(0.1, 100), st.floats(0.1, 100))
def test_rounds_are_as_many_as_they_need_to_be_and_no_more(gb, change, window, gbit):
    line = Line(gbit_per_s=gbit, efficiency_fraction=0.8)
    found = copied(Data(gb=gb, cut_over_h=window, change_gb_per_day=change), line)
    if found.rounds is None:
        assert change * transfer_days(1.0, line) >= 1
        return
    rounds_h = [24 * transfer_days(gb, line)]
    for _ in range(min(found.rounds, 5_000) + 1):
        rounds_h.append(24 * transfer_days(change * rounds_h[-1] / 24, line))
    if found.rounds <= 5_000:
        assert rounds_h[-1] == pytest.approx(found.cut_over_h)
        assert sum(rounds_h) == pytest.approx(24 * found.days)
        assert rounds_h[-1] <= window * (1 + 1e-9)
        assert all(hours > window * (1 - 1e-9) for hours in rounds_h[1:-1])


def test_what_changes_meanwhile_is_billed_too():
    moving = Data(gb=100_000, cut_over_h=1, change_gb_per_day=10_000)
    still, more = (
        data_move(data, LINE, on=TODAY, tariff=FLAT).ways[0] for data in (Data(gb=1e5, cut_over_h=1), moving)
    )
    capacity_gb = more.days / transfer_days(1.0, LINE)
    assert more.usd == pytest.approx(capacity_gb * 0.09)
    assert more.usd > still.usd


@pytest.mark.parametrize(
    "data", [Data(gb=-1, cut_over_h=1), Data(gb=1, cut_over_h=0), Data(gb=1, cut_over_h=1, change_gb_per_day=-1)]
)
def test_a_copy_of_less_than_nothing_is_refused(data):
    with pytest.raises(InvalidInput, match="window"):
        copied(data, LINE)


# ---- money ----


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_egress_after_other_traffic_is_the_difference_of_both_bills(before, gb):
    assert egress_usd(TIERED, gb, before_gb=before) + TIERED.usd(before) == pytest.approx(TIERED.usd(before + gb))


def test_a_copy_of_two_months_passes_through_the_tiers_twice():
    assert egress_usd(TIERED, 40_200, months=2) == pytest.approx(2 * (900 + 500))
    assert egress_usd(TIERED, 40_200, months=2) > egress_usd(TIERED, 40_200)


@pytest.mark.parametrize(("days", "months"), [(0, 1), (30.4, 1), (30.5, 2), (46.3, 2), (61, 3)])
def test_begun_months_are_billed(days, months):
    assert months_begun(days) == months


def test_what_is_deleted_before_its_least_time_is_billed_to_the_end_of_it():
    assert early_deletion_usd(Cold(tier=COLD, gb=1_000, stored_days=30)) == pytest.approx(7.89, abs=0.005)
    assert early_deletion_usd(Cold(tier=COLD, gb=1_000, stored_days=120)) == 0.0


def test_cold_tiers_are_billed_on_every_way():
    cold = Cold(tier=COLD, gb=1_000, stored_days=30)
    found = data_move(Data(gb=1_000, cut_over_h=1, cold=(cold, cold)), LINE, on=TODAY, tariff=FLAT)
    assert (found.early_usd, found.retrieval_usd) == (pytest.approx(15.78, abs=0.01), pytest.approx(40.0))
    assert found.reason is None


def test_a_cold_tier_without_a_price_leaves_the_sum_unknown():
    tier = ColdTier(
        provider="cloud", name="archive", least_days=90, usd_per_gb_month=None, retrieval_usd_per_gb=None,
        observed=TODAY, source="x",
    )  # fmt: skip
    cold = Cold(tier=tier, gb=1_000, stored_days=30)
    assert (early_deletion_usd(cold), retrieval_usd(cold)) == (None, None)
    known = Cold(tier=COLD, gb=1_000, stored_days=30)
    found = data_move(Data(gb=2_000, cut_over_h=1, cold=(known, cold)), LINE, on=TODAY, tariff=FLAT)
    assert (found.early_usd, found.retrieval_usd) == (None, None)
    assert "not known" in str(found.reason)
