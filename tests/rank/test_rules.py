"""Every reason for leaving an offer out, alone and in company."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from tests.rank.scenes import DAY, catalogue, names, offer, ranking, rules

from gpuwise.catalogue import as_days
from gpuwise.rank import GpuFilter, Quota
from gpuwise.units import Range

GOOD = offer("good")


def counted(low, high):
    return Range(low=low, high=high, kind="count")


def sized(low, high=None):
    return Range(low=low, high=high, kind="memory")


@pytest.mark.parametrize(
    ("rule", "bad", "request_"),
    [
        ("after_as_of", offer("bad", age_days=-1), {}),
        ("stale_price", offer("bad", age_days=366), {}),
        ("stale_price", offer("bad", age_days=41), {"max_age_days": 40}),
        ("minimum_bid", offer("bad", price=0.01, price_state="minimum bid"), {}),
        ("incomplete_price", offer("bad", price=2.48, price_state="incomplete"), {}),
        ("suspect_price", offer("bad", price_state="suspect"), {}),
        ("unknown_price", offer("bad", price=np.nan, price_state="unknown"), {}),
        ("unknown_price", offer("bad", price=0.0), {}),
        ("unknown_price", offer("bad", price=-1.0), {}),
        ("unknown_accelerator", offer("bad", gpu=None), {}),
        ("unknown_accelerator", offer("bad", accelerators=np.nan), {}),
        ("withdrawn", offer("bad", availability="withdrawn"), {}),
        ("withdrawn", offer("bad", withdrawn=as_days(DAY)), {}),
        ("not_startable", offer("bad", availability="unknown"), {"startable": True}),
        ("not_startable", offer("bad", availability="on request"), {"startable": True}),
        ("provider", offer("bad"), {"provider": ("good",)}),
        ("region", offer("bad", region="us-east-1"), {"region": ("EU",)}),
        ("region", offer("bad"), {"region": ("eu",)}),
        ("market", offer("bad", market="spot"), {"market": ("on-demand",)}),
        ("host", offer("bad", host="peer"), {"host": "datacentre"}),
        ("host", offer("bad", host="unknown"), {"host": "datacentre"}),
        ("data_must_stay", offer("bad", country="US"), {"data_must_stay": "EU"}),
        ("data_must_stay", offer("bad"), {"data_must_stay": "eu"}),
        ("data_must_stay", offer("bad", country="FR"), {"data_must_stay": "DE"}),
        ("max_price", offer("bad", price=3.0), {"max_price_usd_per_hour": 2.0}),
        ("does_not_fit", offer("bad", gpu="t4"), {}),
        ("deadline", offer("bad", gpu="l4"), {"deadline_s": 6 * 3600.0}),
        ("budget", offer("bad", gpu="h100", price=50.0), {"budget_usd": 100.0}),
    ],
)
def test_each_rule_leaves_out_its_offer_and_says_why(rule, bad, request_):
    good = offer("good", "h100", 1.5, country="DE", region="eu-de", availability="available", instance="good")
    result = ranking(good, bad, **request_)
    assert names(result) == ["good"]
    assert rules(result) == {"bad-1": rule}
    assert result.counts == {rule: 1}
    assert str(next(iter(result.exclusions)).reason).strip()


def test_a_member_state_satisfies_eu_and_an_owned_machine_stays_on_the_premises():
    cloud, own = offer("cloud", country="NL"), offer("own", market="owned", country="NL")
    assert names(ranking(cloud, own, data_must_stay="EU", hours_per_month=400.0)) == ["cloud", "own"]
    assert names(ranking(cloud, own, data_must_stay="on-premises")) == ["own"]


def test_the_newest_price_of_an_offer_replaces_older_ones():
    result = ranking(
        offer(price=2.0, age_days=50), offer(price=1.0, age_days=10), offer(price=9.0, market="spot", age_days=90)
    )
    assert rules(result) == {"acme-0": "superseded"}


def test_machines_without_a_name_are_told_apart_by_their_hosts():
    small, large = offer(price=0.5, age_days=9, vcpus=4), offer(price=1.0, vcpus=32)
    nameless = [row | {"instance": None} for row in (small, large)]
    assert rules(ranking(*nameless)) == {}


def test_a_newer_row_without_a_price_supersedes_nothing():
    result = ranking(offer(price=2.0, age_days=9), offer(price=np.nan, price_state="unknown"))
    assert rules(result) == {"acme-1": "unknown_price"}


def test_uc_065_offers_without_a_price_are_still_listed_by_speed():
    unpriced = offer("unpriced", "h100", np.nan, price_state="unknown")
    result = ranking(offer("priced", "l4"), unpriced, sort="time")
    assert names(result) == ["unpriced", "priced"]
    missing = next(c for c in result.candidates if c.offer.provider == "unpriced")
    assert missing.cost_usd is None
    assert not missing.on_frontier
    assert "price" in str(missing.reasons["cost_usd"])


def test_startable_means_seen_available_this_week_and_no_example():
    fresh, old = (offer(name, availability="available", age_days=age) for name, age in (("fresh", 2), ("old", 190)))
    mine, example = (offer(n, market="owned", availability="available", quality=n) for n in ("own", "example"))
    result = ranking(fresh, old, mine, example, startable=True)
    assert sorted(names(result)) == ["fresh", "own"]
    assert str(result.exclusions[0].reason) == "it was last seen available 190 days ago"


def test_a_budget_looks_at_the_bill_also_where_the_share_ranks_and_at_the_share_of_owned_machines():
    month, own = offer("month", "l4", 1.0, market="dedicated"), offer("own", "l4", 1.0, market="owned")
    assert ranking(month, own, budget_usd=100.0).counts == {"budget": 2}
    assert names(ranking(month, own, budget_usd=100.0, hours_per_month=700.0)) == ["own"]


def test_a_price_from_after_the_day_asked_for_supersedes_nothing():
    context = {"as_of": DAY - timedelta(days=20)}
    assert rules(ranking(offer(price=2.0, age_days=50), offer(price=1.0, age_days=10), context=context)) == {
        "acme-1": "after_as_of"
    }


def test_a_lower_bound_date_says_so_when_the_price_is_too_old():
    result = ranking(GOOD, offer("bad", age_days=447, observed_precision="not-before"))
    assert "or later, the true date is not known" in str(result.exclusions[0].reason)


def test_a_price_far_under_the_usual_one_is_left_out_unless_the_person_vouches_for_it():
    usual = {"usual_usd_per_hour": {"b200": 4.0}}
    floor = offer("bid", "b200", 0.01)
    assert rules(ranking(GOOD, floor, context=usual)) == {"bid-1": "implausible_price"}
    assert names(ranking(floor | {"price_state": "confirmed"}, context=usual)) == ["bid"]
    assert names(ranking(floor | {"market": "owned"}, context=usual)) == ["bid"]


@pytest.mark.parametrize(
    ("gpu", "left"),
    [
        (GpuFilter(names=((frozenset({"h100"}), None),)), ["h1", "h8"]),
        (GpuFilter(names=((frozenset({"h100"}), counted(8, 8)),)), ["h8"]),
        (GpuFilter(names=((frozenset({"h100"}), counted(8, 8)), (frozenset({"l4"}), None))), ["l1", "h8"]),
        (GpuFilter(memory_gib=(sized(80),)), ["h1", "h8"]),
        (GpuFilter(count=(counted(2, 8),)), ["h8"]),
        (GpuFilter(count=(counted(1, 1),)), ["h1", "l1"]),
    ],
)
def test_gpu_filters_by_name_memory_and_exact_or_ranged_count(gpu, left):
    offers = [offer("l1", "l4"), offer("h1", "h100", 2.0), offer("h8", "h100", 20.0, count=8)]
    assert sorted(names(ranking(*offers, context={"gpu": gpu}))) == sorted(left)


def test_an_offer_of_unstated_variant_passes_a_name_filter_only_if_all_its_variants_do():
    unstated = offer("unstated", "a100|h100")
    both, one = ({"gpu": GpuFilter(names=((frozenset(ids), None),))} for ids in ({"a100", "h100"}, {"h100"}))
    assert names(ranking(unstated, context=both)) == ["unstated"]
    assert rules(ranking(unstated, context=one)) == {"unstated-0": "gpu_name"}


def test_a_quota_limits_the_gpus_of_its_provider_only():
    quotas = {"quotas": [Quota(provider="aws", accelerators=4), Quota(provider="aws", accelerators=8, region="us")]}
    offers = [offer("aws", "h100", 9.0, count=8), offer("gcp", "h100", 9.0, count=8), offer("aws", "l4", 1.0)]
    result = ranking(*offers, context=quotas)
    assert rules(result) == {"aws-0": "quota"}
    assert str(result.exclusions[0].reason) == "your quota there is 4 GPUs"


def test_uc_063_an_accelerator_row_without_host_is_not_ranked_and_a_combined_one_is_charged_once():
    bare = offer("gcp", "a100", 2.48, price_state="incomplete", instance="GPU only")
    whole = offer("gcp", "a100", 3.67, instance="a2-highgpu-1g")
    result = ranking(bare, whole)
    assert rules(result) == {"gcp-0": "incomplete_price"}
    (best,) = result.candidates
    hours = best.time_s.value / 3600
    assert best.cost_usd.value == pytest.approx(3.67 * hours, rel=1e-3)


def test_uc_064_a_minimum_bid_is_never_ranked_and_the_reason_asks_for_the_clearing_price():
    result = ranking(GOOD, offer("auction", "b200", 0.01, price_state="minimum bid"))
    assert names(result) == ["good"]
    assert "clearing price" in str(result.exclusions[0].reason)


def test_uc_065_unknown_prices_never_win_and_a_zero_counts_only_when_marked_free():
    unknown = [offer(f"p{i}", price=p, price_state="unknown") for i, p in enumerate([np.nan, 0.0, -1.0])]
    free = offer("free", price=0.0, price_state="free", market="free")
    result = ranking(GOOD, *unknown, free)
    assert names(result) == ["good", "free"]
    assert result.counts == {"unknown_price": 3}
    assert result.candidates[1].cost_usd.interval().high == 0
    assert not result.candidates[1].on_frontier


def test_uc_078_the_funnel_counts_each_rule_and_the_nearest_relaxation_would_help():
    filters = {"gpu": GpuFilter(names=((frozenset({"h100"}), None),), memory_gib=(sized(24),))}
    result = ranking(offer("a", "l4"), offer("b", "a100", 2.0), context=filters, max_price_usd_per_hour=5.0)
    assert result.candidates == ()
    assert result.funnel == (("offers", 2), ("gpu_name", 0))
    (relaxed,) = result.relaxations
    assert (relaxed.rule, relaxed.admits) == ("gpu_name", 1)
    assert str(relaxed.change).startswith("--gpu ")


@pytest.mark.parametrize(
    ("request_", "change", "admitted"),
    [
        ({"max_price_usd_per_hour": 0.5}, "--max-price 1USD", "cheap-0"),
        ({"max_age_days": 5}, "--max-age 10", "cheap-0"),
        ({"deadline_s": 3600.0}, "--deadline 330min", "fast-1"),
        ({"budget_usd": 1.0}, "--budget 22", "fast-1"),
    ],
)
def test_the_nearest_relaxation_of_a_limit_admits_the_nearest_offer(request_, change, admitted):
    offers = (
        offer("cheap", "l4", 1.0, age_days=10),
        offer("fast", "h100", 4.0, age_days=10),
        offer("small", "t4", 0.1),
    )
    result = ranking(*offers, **request_)
    nearest = next(r for r in result.relaxations)
    assert (str(nearest.change)[: len(change)], nearest.offer_id) == (change, admitted)


def test_an_offer_that_could_not_run_the_job_is_no_relaxation():
    result = ranking(offer("small", "t4", 3.0), max_price_usd_per_hour=2.0)
    assert result.relaxations == ()


def test_uc_081_states_are_shown_and_a_sold_out_offer_is_not_the_recommendation():
    states = ["available", "on request", "sold out", "unknown", "withdrawn"]
    offers = [offer(state, availability=state, price=1.0 + i) for i, state in enumerate(states)]
    result = ranking(*offers, offer("sold", price=0.5, availability="sold out"))
    assert result.candidates[0].offer.availability == "available"
    assert [c.offer.availability for c in result.candidates][-2:] == ["sold out", "sold out"]
    assert not any(c.on_frontier for c in result.candidates if c.offer.availability == "sold out")
    assert rules(result) == {"withdrawn-4": "withdrawn"}
    startable = ranking(*offers, startable=True)
    assert names(startable) == ["available"]
    assert all("wait_s" in c.reasons and c.wait_s is None for c in startable.candidates)


def test_a_catalogue_of_nothing_gives_an_empty_ranking():
    result = ranking()
    assert (result.candidates, result.funnel, len(result.exclusions)) == ((), (("offers", 0),), 0)
    assert catalogue().offer_id is not None
