"""Time, bill, order and marks of what is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rank.scenes import ASSUMPTIONS, JOB, SPEED_PER_S, names, offer, ranking

from gpuwise.cost.discounts import Commitment, Credit, Discounts, Rate, Scope

RUN_S = 36e6 / SPEED_PER_S["h100"]


def one(*args, **kwargs):
    (candidate,) = ranking(*args, **kwargs).candidates
    return candidate


def test_time_is_preparation_and_run_and_the_bill_is_time_by_price():
    best = one(offer(gpu="h100", price=2.0))
    assert best.time_s.value == pytest.approx(1800 + RUN_S)
    assert best.cost_usd.value == pytest.approx(2.0 * (1800 + RUN_S) / 3600, rel=1e-4)
    assert [(x.kind, x.quantity) for x in best.cost.lines] == [("preparation", 0.5), ("compute", pytest.approx(5.0))]


def test_preparation_can_be_stated_by_the_person_or_the_offer():
    assert one(offer(gpu="h100"), prepare_s=60.0).time_s.value == pytest.approx(60 + RUN_S)
    assert one(offer(gpu="h100", preparation_s=300)).time_s.value == pytest.approx(300 + RUN_S)


def test_a_series_of_jobs_prepares_once_and_is_billed_as_one_stay():
    assert one(offer(gpu="h100"), jobs=3).time_s.value == pytest.approx(1800 + 3 * RUN_S)


def test_a_spot_run_is_longer_by_its_expected_interruptions():
    spot = one(offer(gpu="h100", market="spot"))
    every_s = (2 * 30 * 3600 / 0.4) ** 0.5  # Young's interval
    expected = RUN_S * (1 + 30 / every_s + 0.4 * (every_s / 2 + 600) / 3600)
    assert spot.time_s.value == pytest.approx(1800 + expected, rel=0.02)
    assert spot.wait_s is None
    assert "spot_losses_per_hour" in dict(spot.time_s.spread)
    assert [x.kind for x in spot.cost.lines][:3] == ["preparation", "compute", "checkpoints"]


def test_every_interval_encloses_its_value():
    rows = [offer(gpu="h100", market=m, price=2.0, billing_step_s=3600) for m in ("on-demand", "spot", "dedicated")]
    for candidate in ranking(*rows).candidates:
        for figure in (candidate.time_s, candidate.cost_usd):
            interval = figure.interval()
            assert interval.low <= interval.value <= interval.high


def test_the_interval_of_a_bill_by_the_hour_never_goes_under_one_hour():
    best = one(offer(gpu="b200", price=2.0, billing_step_s=3600), workloads=(replace(JOB, epochs=1.0),))
    assert best.cost_usd.interval().low >= 2.0


def test_the_cheapest_comes_first_and_the_fast_one_shares_the_frontier():
    result = ranking(offer("slow", "l4", 0.1), offer("fast", "h100", 3.0), offer("bad", "l4", 5.0))
    assert names(result) == ["slow", "fast", "bad"]
    assert [c.on_frontier for c in result.candidates] == [True, True, False]
    assert [c.offer.provider for c in result.frontier] == ["slow", "fast"]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("cost", ["slow", "fast"]),
        ("time", ["fast", "slow"]),
        ("price", ["slow", "fast"]),
        ("p_cheapest", ["slow", "fast"]),
    ],
)
def test_sort_orders_by_its_key(sort, order):
    assert names(ranking(offer("fast", "h100", 3.0), offer("slow", "l4", 0.1), sort=sort)) == order


def test_the_limit_cuts_after_frontier_and_probability():
    rows = [offer(f"p{i}", "l4", 1.0 + i / 100) for i in range(10)] + [offer("fast", "h100", 50.0)]
    short, full = ranking(*rows, limit=3), ranking(*rows, limit=None)
    assert short.candidates == full.candidates[:3]
    assert short.total_candidates == 11
    assert [c.offer.provider for c in short.frontier] == ["p0", "fast"]


def test_shared_prediction_errors_leave_no_doubt_between_two_prices_of_one_card():
    sure = ranking(offer("a", "h100", 2.0), offer("b", "h100", 2.2), workloads=(JOB,))
    assert [c.p_cheapest for c in sure.candidates] == [1.0, 0.0]


def test_equal_cards_of_two_providers_differ_by_their_hosts():
    unlike = {**ASSUMPTIONS, "noise_other_machine_log_sd": replace(ASSUMPTIONS["restart_s"], value=0.1)}
    rows = (offer("a", "h100", 2.0), offer("b", "h100", 2.1))
    chances = [c.p_cheapest for c in ranking(*rows, context={"assumptions": unlike}).candidates]
    assert 0.55 < chances[0] < 0.75
    assert sum(chances) == pytest.approx(1)


def test_unlike_cards_at_nearly_one_cost_are_a_coin_toss_and_the_page_warns():
    close = ranking(offer("a", "h100", 2.0), offer("b", "l4", 0.34), offer("c", "a100", 1.1))
    assert sum(c.p_cheapest for c in close.candidates) == pytest.approx(1)
    assert max(c.p_cheapest for c in close.candidates) < 0.7


def test_a_month_is_billed_in_full_and_shared_only_when_asked():
    month = offer("month", "l4", 0.1, market="dedicated", price_unit="month")
    alone = one(month)
    assert alone.cost_usd.value == pytest.approx(73)
    assert alone.cost_share_usd is None
    assert "--hours-per-month" in str(alone.reasons["cost_share_usd"])
    shared = one(month, hours_per_month=365.0)
    assert shared.cost_share_usd.value == pytest.approx(shared.time_s.value / 3600 * 0.2)


def test_rank_uses_the_share_only_if_hours_per_month_are_given():
    rows = [offer("cloud", "l4", 0.5), offer("month", "l4", 0.1, market="dedicated")]
    assert names(ranking(*rows)) == ["cloud", "month"]
    shared = ranking(*rows, hours_per_month=600.0)
    assert (shared.basis, names(shared)) == ("share", ["month", "cloud"])


def test_break_even_is_where_the_month_costs_what_the_cheapest_on_demand_offer_does():
    result = ranking(offer("cloud", "l4", 2.0), offer("month", "l4", 1.0, market="dedicated"))
    month = next(c for c in result.candidates if c.offer.provider == "month")
    assert month.break_even_hours_per_month.value == pytest.approx(365, rel=1e-3)
    assert month.break_even_hours_per_month.log_sd < 0.01  # one card: the prediction's error cancels


def test_a_month_dearer_than_the_cloud_never_breaks_even_and_says_so():
    result = ranking(offer("cloud", "l4", 0.5), offer("month", "l4", 1.0, market="dedicated"))
    assert str(result.candidates[-1].reasons["break_even_hours_per_month"]).startswith("never")


def test_an_owned_machine_has_only_a_share_and_is_never_free():
    own = offer("own", "h100", 1.2, market="owned", running_usd_per_hour=0.2)
    assert one(own).cost_usd is None
    shared = one(own, hours_per_month=365.0)
    assert shared.cost_share_usd.value == pytest.approx(shared.time_s.value / 3600 * 2.2)


def test_an_owned_machine_whose_energy_alone_is_dearer_never_breaks_even():
    own = offer("own", "l4", 3.0, market="owned", running_usd_per_hour=2.5)
    result = ranking(offer("cloud", "l4", 1.0), own)
    assert "energy alone" in str(result.candidates[-1].reasons["break_even_hours_per_month"])


def test_free_tiers_stand_apart_at_the_end():
    free = offer("free", "h100", 0.0, market="free", price_state="free")
    result = ranking(free, offer("paid", "l4", 1.0))
    assert names(result) == ["paid", "free"]
    assert result.candidates[1].p_cheapest is None
    assert [str(m) for m in result.candidates[1].marks] == ["free, no guarantee"]


def test_several_workloads_are_ranked_side_by_side_each_with_its_own_frontier():
    heavy = replace(JOB, name="heavy", epochs=72.0)
    result = ranking(offer("a"), offer("b", "h100", 9.0), workloads=(JOB, heavy), limit=1)
    assert [(c.workload, c.offer.provider) for c in result.candidates] == [("job", "a"), ("heavy", "a")]
    assert result.total_candidates == 4


def test_uc_066_each_price_has_date_source_and_kind_and_a_marketplace_its_spread():
    quotes = [offer("vast", "l4", p, market="community", instance=f"host{p}") for p in (0.80, 0.95, 1.10, 3.00)]
    listed = offer("cloud", "l4", 4.49, age_days=40, source="list")
    result = ranking(*quotes, listed)
    best, old = result.candidates[0], result.candidates[-1]
    assert (best.quotes.count, best.quotes.minimum_usd_per_hour, best.quotes.maximum_usd_per_hour) == (4, 0.80, 3.00)
    assert best.quotes.median_usd_per_hour == pytest.approx(1.025)
    assert (old.offer.observed.isoformat(), old.offer.source.ref) == ("2026-10-21", "list")
    assert "price 40 days old" in [str(m) for m in old.marks]


def test_uc_090_each_term_is_a_row_of_its_own_with_its_whole_obligation():
    rows = [
        offer("aws", "h100", 3.00),
        offer("aws", "h100", 1.80, market="reserved", term_h=8760, upfront_usd=15_768),
        offer("aws", "h100", 1.35, market="reserved", term_h=26_280),
        offer("aws", "h100", 1.90, market="reserved", term_h=8760, instance="savings plan"),
    ]
    result = ranking(*rows)
    assert len(result.candidates) == 4
    bills = {(c.offer.price_usd_per_hour, c.offer.term_h): c.cost_usd.value for c in result.candidates}
    assert bills[1.80, 8760] == pytest.approx(15_768)
    assert bills[1.35, 26_280] == pytest.approx(1.35 * 26_280)
    assert bills[1.90, 8760] == pytest.approx(1.90 * 8760)


def test_uc_125_own_machines_stay_in_the_table_beside_cloud_and_monthly_ones():
    rows = [
        offer("a"),
        offer("b"),
        offer("own", market="owned"),
        offer("month", market="dedicated", price_unit="month"),
    ]
    result = ranking(*rows)
    assert sorted(names(result)) == ["a", "b", "month", "own"]
    assert {c.offer.provider: c.offer.price_unit for c in result.candidates}["month"] == "month"


def test_agreements_change_the_bill_and_credits_are_shown_beside_it():
    agreed = Discounts(
        rates=[Rate(scope=Scope(provider="aws"), off_fraction=0.5)],
        commitments=[Commitment(scope=Scope(provider="gcp"), left_h=1000)],
        credits=[Credit(provider="aws", left_usd=3.0)],
    )
    result = ranking(offer("aws", "h100", 4.0), offer("gcp", "h100", 4.0), context={"discounts": agreed})
    aws = next(c for c in result.candidates if c.offer.provider == "aws")
    gcp = next(c for c in result.candidates if c.offer.provider == "gcp")
    assert aws.cost.billed_usd == pytest.approx(2.0 * aws.time_s.value / 3600, rel=1e-3)
    assert aws.cost.credit_usd == 3.0
    assert gcp.cost.billed_usd == 0
    assert [x.kind for x in gcp.cost.lines] == ["committed hours"]


def test_paid_hours_that_cover_part_of_the_run_give_a_finite_bill_and_honest_chances():
    part = Discounts(commitments=[Commitment(scope=Scope(provider="aws"), left_h=5.5)])
    result = ranking(offer("aws", "h100", 4.0), offer("gcp", "h100", 4.0), context={"discounts": part})
    assert sum(c.p_cheapest for c in result.candidates) == pytest.approx(1)
    aws = result.candidates[0].cost_usd.interval()
    assert aws.low <= aws.value <= aws.high
    assert aws.high > 0


def test_an_agreed_price_has_not_aged_and_the_bill_names_the_agreement():
    agreed = Discounts(rates=[Rate(scope=Scope(provider="aws"), price_usd_per_hour=1.0)])
    candidate = one(offer("aws", "h100", 4.0, age_days=200), context={"discounts": agreed})
    assert not [name for name, _ in candidate.cost_usd.spread if name.startswith("price age")]
    assert {line.source for line in candidate.cost.lines} == {"discounts"}
    assert candidate.price_usd_per_hour == 1.0
    assert "your rate" in [str(m) for m in candidate.marks]


def test_a_doubtful_deadline_is_told_with_its_chance():
    result = ranking(offer(gpu="h100"), deadline_s=(1800 + RUN_S) * 1.02)
    (warning,) = (str(w) for w in result.warnings)
    assert "meets the deadline with a probability of 5" in warning
    assert ranking(offer(gpu="h100"), deadline_s=1e6).warnings == ()


def test_of_very_many_equal_offers_the_chance_is_not_said_rather_than_said_to_be_nothing():
    rows = [offer(f"p{i}", "h100", 2.0) for i in range(160)]
    chances = [c.p_cheapest for c in ranking(*rows, limit=None).candidates]
    assert chances.count(None) == 10
    assert all(c > 0 for c in chances if c is not None)


def test_uc_087_the_budget_looks_at_the_gross_bill():
    granted = {"discounts": Discounts(credits=[Credit(provider="aws", left_usd=1e6)])}
    result = ranking(offer("aws", "h100", 100.0), budget_usd=100.0, context=granted)
    assert result.counts == {"budget": 1}


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(SPEED_PER_S)), st.floats(0.05, 50)), min_size=1, max_size=12),
    st.randoms(),
)
def test_the_order_of_the_offers_changes_nothing(rows, random):
    offers = [offer(f"p{i}", gpu, price) for i, (gpu, price) in enumerate(rows)]
    shuffled = random.sample(offers, len(offers))
    there, back = (
        {c.offer.provider: (c.cost_usd.value, c.on_frontier) for c in ranking(*o, limit=None).candidates}
        for o in (offers, shuffled)
    )
    assert there == back


@settings(max_examples=40)
@given(st.floats(0.05, 50), st.floats(1.0, 3.0))
def test_a_dearer_price_never_lowers_the_cost(price, factor):
    cheap, dear = (one(offer(gpu="h100", price=p)).cost_usd.value for p in (price, price * factor))
    assert dear >= cheap


def test_the_arrays_and_the_named_spreads_agree_on_the_error():
    result = ranking(offer("spot", "h100", 2.0, market="spot", age_days=200), offer("l", "l4", 0.3, age_days=100))
    for candidate in result.candidates:
        bounds = candidate.cost_usd.interval()
        assert np.log(bounds.high / bounds.low) / (2 * 1.28155) == pytest.approx(candidate.cost_usd.log_sd, rel=0.02)
