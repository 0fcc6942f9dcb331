"""The bill of the whole job, on every kind of offer: what people met elsewhere, and what must hold in general."""

from __future__ import annotations

from dataclasses import replace
from math import expm1, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rank.scenes import ASSUMPTIONS, JOB, SPEED_PER_S, names, offer, ranking, rules

from gpuwise.cost.discounts import Commitment, Discounts, Scope
from gpuwise.cost.tariffs import Tariff, Tariffs, Tier, stored_usd, tiered_usd, transfer_s
from gpuwise.model import Assumption
from gpuwise.offer import CpuHost, Provider, ProviderFact
from gpuwise.rank.conditions import Surroundings

HOUR = 3600.0
AVAILABLE = {
    "spot_available_fraction": Assumption(
        name="spot_available_fraction", value=0.5, low=0.3, high=0.9, unit="1", source="test"
    )
}
BARE = {"prepare_s": 0.0}
"""Nothing before the first step."""


def lasting(hours: float, gpu: str = "h100"):
    """A job that takes so long on one GPU."""
    return replace(JOB, samples=round(SPEED_PER_S[gpu] * hours * HOUR), epochs=1)


def only(*rows, job=None, **request):
    """The one candidate that is left."""
    result = ranking(*rows, workloads=(job or lasting(10),), **request)
    (candidate,) = result.candidates
    return candidate


def parts(candidate) -> dict[str, float]:
    """kind of a line -> its amount in USD."""
    kinds = dict.fromkeys(line.kind for line in candidate.cost.lines)
    return {kind: sum(line.amount_usd for line in candidate.cost.lines if line.kind == kind) for kind in kinds}


def fact(name: str, value: object) -> ProviderFact:
    return ProviderFact(name=name, value=str(value), observed=None, source="test")


def around(provider: str = "acme", tariffs=(), cpu_hosts=(), **facts: object) -> dict[str, object]:
    known = {name: fact(name, value) for name, value in facts.items()}
    given = {provider: Provider(name=provider, facts=known)}
    return {"around": Surroundings(providers=given, tariffs=Tariffs(tariffs), cpu_hosts=cpu_hosts)}


def tariff(item, *tiers, provider="acme", region=None):
    found = tuple(Tier(start=start, end=end, usd_per_unit=usd) for start, end, usd in tiers)
    return Tariff(provider=provider, region=region, item=item, tiers=found, observed=None, source="list")


# ---- what comes before the first step --------------------------------------------------------------------------


def test_uc_052_an_image_over_a_slow_link_lengthens_a_short_job_by_four_fifths():
    row = offer(gpu="h100", price=1.20, billing_step_s=1, wait_s=28 * 60)
    asked = BARE | {"image_gb": 12.0, "network_gb_per_s": 0.0125}
    slow = only(row, job=lasting(20 / 60), **asked)
    assert transfer_s(12, 0.0125) == 960
    assert slow.cost.billed_usd == pytest.approx(0.72, abs=1e-3)
    assert parts(slow) == {"image": pytest.approx(0.32), "compute": pytest.approx(0.40, abs=1e-3)}
    assert slow.wait_s.value == 28 * 60
    assert slow.time_s.value == pytest.approx((28 + 36) * 60, rel=1e-3), "waiting is in the time, not in the bill"
    assert only(row, job=lasting(20 / 60), **BARE).cost.billed_usd == pytest.approx(0.40, abs=1e-3)


def test_preparation_is_shorter_where_frameworks_are_there_and_for_those_who_did_it_before():
    assumed = {
        name: Assumption(name=name, value=value, low=low, high=high, unit="s", source="test")
        for name, value, low, high in (
            ("preparation_ready_s", 1500, 1200, 2000),
            ("preparation_bare_s", 2700, 2000, 3600),
        )
    }
    scene = {"assumptions": ASSUMPTIONS | assumed}

    def prepared(frameworks, **asked):
        candidate = only(offer(gpu="h100"), context=scene | around(frameworks=frameworks), **asked)
        return next(line.quantity * HOUR for line in candidate.cost.lines if line.kind == "preparation")

    assert prepared("preinstalled") == pytest.approx(1500)
    assert prepared("none") == pytest.approx(2700)
    assert prepared("optional") == pytest.approx(1800), "not known which of both"
    assert prepared("none", skill="practised") == pytest.approx(2000)
    assert prepared("none", skill="first-time") == pytest.approx(3600)


def test_preparing_on_a_machine_without_gpu_is_billed_there_where_the_disk_can_be_moved():
    cpu = CpuHost(
        provider="acme", instance="small", region="here", vcpus=2, memory_gib=8, usd_per_hour=0.10, observed=None,
        source="list",
    )  # fmt: skip
    scene = around(cpu_hosts=(cpu,), disk_moves="yes")
    row = offer(gpu="h100", price=10.0, region="here")
    asked = {"prepare_s": 1800.0, "restart_s": 300.0, "prepare_on": "cpu"}
    moved = only(row, context=scene, **asked)
    assert parts(moved)["preparation without GPU"] == pytest.approx(0.05)
    assert parts(moved)["moving the disk"] == pytest.approx(10 * 300 / HOUR)
    assert "preparation" not in parts(moved)
    here = only(row, context=scene, prepare_s=1800.0)
    assert here.cost.billed_usd - moved.cost.billed_usd == pytest.approx(5 - 0.05 - 10 / 12, rel=1e-6)
    assert moved.time_s.value == pytest.approx(here.time_s.value + 300)
    stays = only(row, context=around(cpu_hosts=(cpu,)), **asked)
    assert parts(stays)["preparation"] == pytest.approx(5)
    assert any("moving a disk" in str(mark) for mark in stays.marks)
    abroad = only(row | {"region": "there"}, context=scene, **asked)
    assert any("no price of a machine without GPU is known in its region" in str(mark) for mark in abroad.marks)


# ---- checkpoints, evaluation, sessions -------------------------------------------------------------------------


def test_uc_053_checkpoints_and_evaluations_are_part_of_the_time():
    asked = BARE | {"checkpoint_s": 15 * 60.0, "checkpoint_every_s": 2 * HOUR, "evaluation_s": 20 * 60.0,
                    "evaluation_every_s": 5 * HOUR, "final_evaluation_s": 6 * HOUR}  # fmt: skip
    whole = only(offer(gpu="h100", price=1.0), job=lasting(100), **asked)
    assert whole.time_s.value / HOUR == pytest.approx(125.2, abs=0.06)
    bill = parts(whole)
    assert (bill["compute"], bill["evaluation"]) == (pytest.approx(100), pytest.approx(12 + 2 / 3))
    assert bill["checkpoints"] == pytest.approx(12.5)


def test_a_session_limit_cuts_the_job_into_sessions_each_with_preparation_and_checkpoint():
    row = offer(gpu="h100", price=1.0, session_limit_s=6 * HOUR, billing_step_s=HOUR)
    cut = only(row, job=lasting(20), prepare_s=1800.0, checkpoint_s=0.0)
    assert cut.time_s.value / HOUR == pytest.approx(22, abs=0.01)
    assert cut.cost.billed_usd == pytest.approx(24), "four sessions of 5.5 h, six hours each on the bill"
    assert any("4 sessions of at most 6 h" in str(mark) for mark in cut.marks)
    whole = only(offer(gpu="h100", price=1.0), job=lasting(20), prepare_s=1800.0)
    assert whole.time_s.value / HOUR == pytest.approx(20.5, abs=0.01)


def test_a_session_too_short_to_begin_in_is_left_out_with_the_reason():
    result = ranking(offer(gpu="h100", session_limit_s=1000.0), prepare_s=1800.0)
    assert rules(result) == {"acme-0": "session_too_short"}


def test_the_session_limit_of_a_provider_holds_where_the_offer_states_none():
    scene = around(session_limit_h=6.0, session_limit_paid_h=24.0)
    free = only(offer(gpu="h100", price=0.0, market="free", price_state="free"), job=lasting(20), context=scene)
    paid = only(offer(gpu="h100"), job=lasting(20), context=scene)
    assert any("sessions of at most 6 h" in str(mark) for mark in free.marks)
    assert not any("sessions" in str(mark) for mark in paid.marks)


# ---- spot --------------------------------------------------------------------------------------------------------


def test_uc_054_spot_without_checkpoints_is_refused_as_practically_endless():
    row = offer(gpu="h100", price=0.3, market="spot")
    asked = BARE | {"losses_per_hour": 0.15, "restart_s": 0.0, "available_fraction": 1.0}
    never = ranking(row, workloads=(lasting(48),), checkpoint_every_s=inf, **asked)
    assert rules(never) == {"acme-0": "endless"}
    (exclusion,) = never.exclusions
    assert "186 times as long" in str(exclusion.reason), "8,923 h for 48 h of work"
    assert "never writes a checkpoint" in str(exclusion.reason)
    often = only(row, job=lasting(48), checkpoint_every_s=1800.0, checkpoint_s=0.0, **asked)
    assert often.time_s.value / HOUR == pytest.approx(49.85, abs=0.05)
    assert expm1(7.2) / 0.15 / 48 == pytest.approx(186, abs=0.2)


def test_uc_055_one_lost_node_costs_all_of_them_their_work():
    row = offer(gpu="h100", price=8.0, nodes=8, market="spot")
    asked = BARE | {"losses_per_hour": 0.02, "restart_s": 1200.0, "available_fraction": 1.0, "checkpoint_s": 0.0,
                    "checkpoint_every_s": HOUR}  # fmt: skip
    eight = only(row, job=lasting(800), **asked)
    hours = eight.time_s.interval()
    assert 114 < hours.value / HOUR < 116
    assert 915 <= eight.accelerator_h.value <= 925
    assert hours.low < hours.value < hours.high, "a spread, not a single number"
    assert "losses of acme h100x1" in dict(eight.time_s.spread)


@pytest.mark.parametrize("step_s", [1.0, HOUR])
@pytest.mark.parametrize("asked", [{}, {"checkpoint_s": 60.0, "checkpoint_every_s": HOUR}])
def test_spot_that_is_never_lost_takes_and_costs_what_on_demand_does(step_s, asked):
    scene = {"assumptions": ASSUMPTIONS | AVAILABLE}
    rows = (offer(gpu="h100", market=market, billing_step_s=step_s) for market in ("spot", "on-demand"))
    spot, usual = (only(row, losses_per_hour=0.0, context=scene, **asked) for row in rows)
    assert spot.time_s.value == usual.time_s.value
    assert spot.cost.billed_usd == usual.cost.billed_usd


@pytest.mark.parametrize("hours", [0.4, 1.1, 1.9, 10.2])
def test_more_losses_never_make_an_hourly_bill_smaller(hours):
    asked = {"available_fraction": 1.0, "checkpoint_s": 30.0}
    row = offer(gpu="h100", price=1.0, market="spot", billing_step_s=HOUR)
    rates = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    bills = [only(row, job=lasting(hours), losses_per_hour=rate, **asked, **BARE).cost.billed_usd for rate in rates]
    assert bills == sorted(bills)
    assert bills[1] == pytest.approx(bills[0], rel=0.15)


def test_few_losses_mean_short_waits_where_only_the_losses_are_stated():
    """A machine is away for as long as is usual, however seldom: (1 − 0.5) / (0.5 · 0.4) = 2.5 h each time."""
    scene = {"assumptions": ASSUMPTIONS | AVAILABLE}
    row = offer(gpu="h100", market="spot")
    often, seldom = (only(row, job=lasting(50), losses_per_hour=rate, context=scene) for rate in (0.4, 0.01))
    assert often.wait_s.value > 20 * HOUR
    assert seldom.wait_s.value < 2 * HOUR


def test_waiting_for_spot_machines_lengthens_the_time_and_not_the_bill():
    asked = {"losses_per_hour": 0.2, "checkpoint_s": 30.0}
    row = offer(gpu="h100", market="spot", billing_step_s=1)
    there, scarce = (only(row, available_fraction=share, **asked) for share in (1.0, 0.5))
    assert scarce.cost.billed_usd == pytest.approx(there.cost.billed_usd)
    assert scarce.time_s.value > 1.5 * there.time_s.value
    assert scarce.wait_s.value == pytest.approx(scarce.time_s.value - there.time_s.value)


@given(st.floats(0.01, 1.0), st.floats(1.0, 3.0))
def test_more_losses_never_make_a_job_shorter_or_cheaper(rate, factor):
    asked = {"available_fraction": 1.0, "checkpoint_s": 30.0}
    row = offer(gpu="h100", market="spot")
    few, many = (only(row, losses_per_hour=rate * by, **asked) for by in (1.0, factor))
    assert many.time_s.value >= few.time_s.value * (1 - 1e-9)
    assert many.cost.billed_usd >= few.cost.billed_usd * (1 - 1e-9)


# ---- beside the machine ------------------------------------------------------------------------------------------


def test_uc_069_a_disk_of_two_terabytes_is_part_of_the_bill():
    row = offer(gpu="h100", price=1.0, storage_usd_per_gb_month=0.08)
    with_disk = only(row, job=lasting(240), disk_gb=2000.0, **BARE)
    assert parts(with_disk) == {"compute": pytest.approx(240, rel=1e-3), "disk": pytest.approx(52.60, abs=0.03)}
    assert stored_usd(2000, 0.08, 240) == pytest.approx(52.60, abs=0.005)
    included = only(row | {"disk_included_gb": 500.0}, job=lasting(240), disk_gb=2000.0, **BARE)
    assert parts(included)["disk"] == pytest.approx(0.75 * parts(with_disk)["disk"])
    unknown = only(offer(gpu="h100"), job=lasting(240), disk_gb=2000.0, **BARE)
    assert any("disk" in str(mark) and "not contained" in str(mark) for mark in unknown.marks)


def test_disk_and_address_follow_the_tariff_of_provider_and_region():
    tariffs = (
        tariff("disk", (0, None, 0.10), region="us-east"),
        tariff("disk", (0, None, 0.20), region="eu"),
        tariff("address", (0, None, 0.005)),
    )
    east, eu, elsewhere = (
        only(offer(gpu="h100", region=region), disk_gb=730.0, context=around(tariffs=tariffs), **BARE)
        for region in ("us-east", "eu", "asia")
    )
    assert parts(eu)["disk"] == pytest.approx(2 * parts(east)["disk"])
    assert parts(elsewhere)["disk"] == parts(east)["disk"]
    named = {line.source for line in elsewhere.cost.lines if line.kind == "disk"}
    assert named == {"as in us-east, list"}, "another region stands in, and the line says which"
    assert parts(east)["public address"] == pytest.approx(0.05, rel=1e-3)
    assert next(line.source for line in eu.cost.lines if line.kind == "disk") == "list"


def test_data_pays_what_leaving_its_place_costs_by_tier():
    tiers = ((0, 100, 0.0), (100, 10_000, 0.09), (10_000, None, 0.085))
    tariffs = (tariff("egress", *tiers, region="a"), tariff("between regions", (0, None, 0.02), region="a"))
    scene = around(tariffs=tariffs)
    asked = BARE | {"data_gb": 20_000.0, "data_from": "acme/a", "network_gb_per_s": 1.0}
    left = {
        where: parts(only(row, context=scene, **asked)).get("data from its provider", 0.0)
        for where, row in {
            "same region": offer(gpu="h100", region="a"),
            "other region": offer(gpu="h100", region="b"),
            "other provider": offer("else", gpu="h100"),
        }.items()
    }
    assert left == {
        "same region": 0.0,
        "other region": pytest.approx(400),
        "other provider": pytest.approx(9_900 * 0.09 + 10_000 * 0.085),
    }
    results = only(offer(gpu="h100"), context=scene, results_gb=200.0, **BARE)
    assert parts(results)["egress"] == pytest.approx(9.0)


@pytest.mark.parametrize(("gigabytes", "usd"), [(10_100, 900), (50_100, 4_300), (150_100, 11_300), (1_150_100, 61_300)])
def test_the_tiers_of_a_published_list_add_up(gigabytes, usd):
    """AWS, internet, standard regions: 900, 3,400, 7,000 and 50,000 USD for the four tiers after 100 GB."""
    ends = (0, 100, 10_100, 50_100, 150_100, None)
    prices = (0, 0.09, 0.085, 0.07, 0.05)
    tiers = [Tier(start=a or 0, end=b, usd_per_unit=p) for a, b, p in zip(ends, ends[1:], prices, strict=False)]
    assert tiered_usd(tiers, gigabytes) == pytest.approx(usd)


def test_data_from_far_away_is_copied_while_the_machine_is_billed():
    row = offer(gpu="h100", price=1.0, billing_step_s=1)
    copied = only(row, data_gb=450.0, network_gb_per_s=0.125, **BARE)
    assert parts(copied)["data transfer"] == pytest.approx(1.0)


# ---- stopping, moving, sharing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stopped", "usd", "says"),
    [
        ("everything", 8.0, None),
        ("disk", 1.0 * 8 / 730, None),
        ("nothing", 0.0, None),
        (None, 8.0, "what it costs while stopped is not known: taken in full"),
    ],
)
def test_uc_082_a_stopped_machine_is_billed_as_its_provider_does(stopped, usd, says):
    row = offer(gpu="h100", price=1.0, storage_usd_per_gb_month=0.01, billing_step_s=1, stopped=stopped)
    asked = BARE | {"disk_gb": 100.0}
    on, night = (only(row, stopped_s=seconds, **asked) for seconds in (None, 8 * HOUR))
    kept = {"everything": 8 * 100 * 0.01 / 730, None: 8 * 100 * 0.01 / 730}.get(stopped, 0.0)
    assert night.cost.billed_usd - on.cost.billed_usd == pytest.approx(usd + kept, abs=1e-6)
    assert night.time_s.value - on.time_s.value == pytest.approx(8 * HOUR)
    assert says is None or says in [str(mark) for mark in night.marks]


def test_uc_082_a_machine_tied_to_its_host_may_come_back_without_gpu():
    scene = around(resume="may have no GPU", stopped="disk")
    night = only(offer(gpu="h100"), stopped_s=8 * HOUR, context=scene)
    assert "stopped, it may come back without its GPU: copy the data out" in [str(mark) for mark in night.marks]
    assert not any("without its GPU" in str(mark) for mark in only(offer(gpu="h100"), context=scene).marks)


def test_uc_082_an_offer_that_ends_before_the_job_is_left_out():
    short, long = offer("short", gpu="h100", longest_h=72.0), offer("long", gpu="h100", longest_h=200.0)
    result = ranking(short, long, workloads=(lasting(120),))
    assert names(result) == ["long"]
    assert rules(result) == {"short-0": "host_ends"}
    (exclusion,) = result.exclusions
    assert "72 h" in str(exclusion.reason)
    assert "moved with its checkpoints" in str(exclusion.reason)


def test_a_shared_host_widens_what_its_cpus_feed():
    shared = Assumption(name="shared_host_cpu_fraction", value=0.85, low=0.6, high=1.0, unit="1", source="test")
    job = replace(lasting(10), decode_s=0.01)
    scene = {"assumptions": ASSUMPTIONS | {shared.name: shared}}
    physical, vds = (
        only(offer(gpu="h100", vcpus=4, host_shared=said), job=job, context=scene) for said in ("no", "yes")
    )
    assert vds.time_s.value > physical.time_s.value
    assert vds.time_s.log_sd > physical.time_s.log_sd
    assert "others share its host: its CPUs may give less" in [str(mark) for mark in vds.marks]


# ---- series, rules, agreements -----------------------------------------------------------------------------------


def test_uc_083_short_experiments_are_billed_one_by_one_unless_they_share_the_machine():
    row = offer(gpu="h100", price=1.0, billing_step_s=HOUR)
    shared, apart = (only(row, job=lasting(2 / 60), jobs=30, apart=apart, **BARE) for apart in (False, True))
    assert shared.cost.billed_usd == pytest.approx(1.0)
    assert apart.cost.billed_usd == pytest.approx(30.0)
    monthly = offer(gpu="h100", price=1.0, market="dedicated")
    assert only(monthly, job=lasting(2 / 60), jobs=30, apart=True).cost.billed_usd == pytest.approx(730)


def test_uc_083_the_rule_decides_who_is_cheapest_for_two_minutes():
    rows = [
        offer("whole-hours", gpu="h100", price=1.00, billing_step_s=3600),
        offer("by-the-second", gpu="h100", price=1.50, billing_step_s=1, billing_minimum_s=60),
        offer("quarter-and-fee", gpu="h100", price=1.20, billing_step_s=1, billing_minimum_s=900, fee_usd=0.10),
        offer("clock-hours", gpu="h100", price=0.90, billing_step_s=3600, billing_clock="calendar"),
    ]
    result = ranking(*rows, workloads=(lasting(2 / 60),), start_s=9 * HOUR + 59 * 60, **BARE)
    bills = {c.offer.provider: c.cost.billed_usd for c in result.candidates}
    assert bills == {
        "by-the-second": pytest.approx(0.05),
        "quarter-and-fee": pytest.approx(0.40),
        "whole-hours": pytest.approx(1.00),
        "clock-hours": pytest.approx(1.80),
    }
    assert names(result) == list(bills)


def test_a_providers_rule_holds_where_the_price_list_says_nothing():
    row = offer(gpu="h100", price=6.0) | {"billing_step_s": np.nan, "billing_minimum_s": np.nan}
    job = lasting(10.5 / 60)
    assumed, known = (only(row, job=job, context=scene, **BARE) for scene in ({}, around(billing_step_s=60)))
    assert (assumed.cost.billed_usd, known.cost.billed_usd) == (pytest.approx(6.0), pytest.approx(1.1))
    assert "billing by the hour assumed" in [str(mark) for mark in assumed.marks]
    assert "billing by the hour assumed" not in [str(mark) for mark in known.marks]


def test_uc_086_a_licence_a_node_makes_the_big_node_win():
    rows = [
        offer("small-nodes", gpu="h100", price=8.00, nodes=8, licence_usd_per_month=200.0),
        offer("one-big-node", gpu="h100", price=8.40, count=8, licence_usd_per_month=200.0),
    ]
    result = ranking(*rows, workloads=(lasting(8 * 729.9),), **BARE)
    bills = {c.offer.provider: c.cost.billed_usd for c in result.candidates}
    assert bills == {"one-big-node": pytest.approx(6332, rel=1e-3), "small-nodes": pytest.approx(7440, rel=1e-3)}
    assert names(result)[0] == "one-big-node"


def test_uc_091_a_spend_commitment_pays_part_of_each_hour_and_the_rest_is_billed():
    agreed = Discounts(commitments=[Commitment(scope=Scope(provider="acme"), usd_per_hour=1.0)])
    covered = only(offer(gpu="h100", price=2.0), job=lasting(12), context={"discounts": agreed}, **BARE)
    assert covered.cost.billed_usd == pytest.approx(12, rel=1e-3)
    assert parts(covered)["covered by a commitment"] == pytest.approx(-12, rel=1e-3)


def test_vat_stands_apart_and_makes_the_bill_gross():
    net, gross = (
        only(offer(gpu="h100", price=1.0), job=lasting(10), **BARE, **tax)
        for tax in ({}, {"tax": "gross", "vat_fraction": 0.19})
    )
    assert parts(gross)["compute"] == pytest.approx(parts(net)["compute"])
    assert parts(gross)["VAT"] == pytest.approx(0.19 * parts(net)["compute"])
    assert gross.price_usd_per_hour == pytest.approx(1.19)


# ---- marketplaces ------------------------------------------------------------------------------------------------


def test_uc_068_an_odd_quote_does_not_set_the_minimum():
    quotes = {"odd": 0.05, "a": 0.29, "b": 0.31, "c": 0.33, "d": 0.34, "dear": 0.80}
    rows = [
        offer("market", gpu="h100", price=price, market="community", instance=name)
        for name, price in quotes.items()
    ]  # fmt: skip
    result = ranking(*rows)
    assert rules(result) == {"market-0": "outlier_price"}
    assert result.candidates[0].offer.instance == "a"
    assert "0.32" in str(next(iter(result.exclusions)).reason), "the median of the six"
    rows[0]["price_state"] = "confirmed"
    assert ranking(*rows).candidates[0].offer.instance == "odd"


def test_uc_068_a_host_that_its_marketplace_calls_unreliable_is_left_out_unless_one_takes_it():
    row = offer("market", gpu="h100", price=0.30, market="community", reliability_fraction=0.61)
    assert rules(ranking(row)) == {"market-0": "unreliable"}
    assert "61 % reliable" in str(next(iter(ranking(row).exclusions)).reason)
    assert names(ranking(row, min_reliability_fraction=0.6)) == ["market"]
    assert [str(r.change) for r in ranking(row).relaxations] == ["--min-reliability 61%"]


# ---- in general --------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(["on-demand", "spot", "dedicated", "community"]),
    st.sampled_from([1.0, 60.0, 3600.0]),
    st.floats(0.5, 60.0),
    st.sampled_from([None, 6 * HOUR]),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([0.0, 0.19]),
)
def test_the_lines_of_any_job_add_up_to_its_bill(market, step_s, hours, session_s, jobs, apart, vat):
    limit = np.nan if session_s is None else session_s
    row = offer(gpu="h100", market=market, billing_step_s=step_s, storage_usd_per_gb_month=0.1, stopped="disk",
                session_limit_s=limit, fee_usd=0.1, egress_usd_per_gb=0.09)  # fmt: skip
    asked = {"disk_gb": 200.0, "results_gb": 5.0, "stopped_s": 4 * HOUR, "data_gb": 30.0, "image_gb": 8.0,
             "jobs": jobs, "apart": apart, "network_gb_per_s": 0.1, "available_fraction": 0.9, "checkpoint_s": 20.0,
             "tax": "gross" if vat else "net", "vat_fraction": vat or None}  # fmt: skip
    whole = only(row, job=lasting(hours), **asked)
    lines = whole.cost.lines
    assert sum(line.amount_usd for line in lines) == pytest.approx(whole.cost.billed_usd, rel=1e-6)
    assert all(line.amount_usd > 0 for line in lines)
    inside = whole.cost_usd.interval()
    assert inside.low <= inside.value * (1 + 1e-9)
    assert inside.value <= inside.high * (1 + 1e-9)


def test_the_checkpoint_interval_follows_how_often_machines_are_lost():
    def share(rate):
        candidate = only(
            offer(gpu="h100", price=1.0, market="spot"), job=lasting(100), losses_per_hour=rate, checkpoint_s=60.0,
            available_fraction=1.0, **BARE,
        )  # fmt: skip
        return parts(candidate)["checkpoints"] / 100

    assert share(0.02) == pytest.approx((60 * 0.02 / 2 / HOUR) ** 0.5, rel=0.05), "C / √(2·C·MTBF)"
    assert share(0.32) == pytest.approx(4 * share(0.02), rel=0.1)


def test_a_series_of_jobs_loses_at_most_the_one_that_runs_and_waits_once_to_begin():
    row = offer(gpu="h100", market="spot")
    asked = BARE | {"losses_per_hour": 0.5, "available_fraction": 0.5, "checkpoint_every_s": inf}
    alone, series = (only(row, job=lasting(1), jobs=jobs, **asked) for jobs in (1, 20))
    assert series.accelerator_h.value == pytest.approx(20 * alone.accelerator_h.value)
    assert series.wait_s.value < 20 * alone.wait_s.value
    assert series.accelerator_h.log_sd < alone.accelerator_h.log_sd, "twenty jobs even out"
    one_of_twenty = ranking(row, workloads=(lasting(20),), **asked)
    assert rules(one_of_twenty) == {"acme-0": "endless"}


# ---- found by reviewers --------------------------------------------------------------------------------------------


def test_a_bill_of_which_a_part_is_not_known_is_not_called_the_cheapest():
    rows = [offer("whole", gpu="h100", price=2.0, egress_usd_per_gb=0.09), offer("part", gpu="h100", price=1.0)]
    result = ranking(*rows, results_gb=100.0)
    assert names(result) == ["whole", "part"]
    whole, part = result.candidates
    assert (whole.p_cheapest, part.p_cheapest) == (1.0, None)
    assert "part of its bill is not known" in str(part.reasons["p_cheapest"])
    assert (whole.on_frontier, part.on_frontier) == (True, False)
    assert names(ranking(rows[1], results_gb=100.0)) == ["part"], "where none is whole they are compared, and say so"
    assert ranking(rows[1], results_gb=100.0).candidates[0].p_cheapest == 1.0


def test_the_break_even_compares_the_rent_with_what_is_paid_for_the_machine():
    monthly = offer("month", gpu="h100", price=1.0, market="dedicated", egress_usd_per_gb=0.10)
    by_use = offer("use", gpu="h100", price=2.0, egress_usd_per_gb=0.10)
    asked = {"results_gb": 500.0, "network_gb_per_s": 1e9, **BARE}
    result = ranking(monthly, by_use, workloads=(lasting(10),), **asked)
    found = next(c for c in result.candidates if c.offer.provider == "month")
    assert found.break_even_hours_per_month.value == pytest.approx(365, rel=1e-3)


def test_a_committed_machine_pays_nothing_more_for_standing_stopped():
    for market, term in (("reserved", 8760.0), ("dedicated", np.nan)):
        row = offer(gpu="h100", market=market, term_h=term)
        on, night = (only(row, stopped_s=seconds) for seconds in (None, 40 * HOUR))
        assert night.cost.billed_usd == on.cost.billed_usd
        assert night.time_s.value - on.time_s.value == pytest.approx(40 * HOUR)


def test_hours_that_are_paid_for_cover_a_machine_that_stands_stopped_too():
    agreed = Discounts(commitments=[Commitment(scope=Scope(provider="acme"), left_h=100.0)])
    row = offer(gpu="h100", price=1.0, stopped="everything")
    night = only(row, job=lasting(5), stopped_s=5 * HOUR, context={"discounts": agreed}, **BARE)
    assert night.cost.billed_usd == 0


def test_the_data_of_a_series_counts_once_for_the_tiers_of_its_provider():
    scene = around("store", tariffs=(tariff("egress", (0, 100, 0.0), (100, None, 0.09), provider="store"),))
    asked = {"data_gb": 90.0, "data_from": "store", "jobs": 60, "apart": True, "network_gb_per_s": 1.0}
    apart = only(offer(gpu="h100"), job=lasting(1), context=scene, **asked, **BARE)
    assert parts(apart)["data from its provider"] == pytest.approx((60 * 90 - 100) * 0.09)


def test_the_cap_and_the_licence_hold_for_each_machine_of_a_series_apart():
    row = offer(gpu="h100", price=1.0, monthly_cap_h=672.0, licence_usd_per_month=10.0)
    apart = only(row, job=lasting(1), jobs=900, apart=True, **BARE)
    assert parts(apart)["licence"] == pytest.approx(9000)
    assert "above the monthly cap" not in parts(apart)


def test_a_job_that_never_writes_a_checkpoint_cannot_go_on_in_another_session():
    row = offer(gpu="h100", session_limit_s=6 * HOUR)
    result = ranking(row, workloads=(lasting(20),), checkpoint_every_s=inf, **BARE)
    assert rules(result) == {"acme-0": "session_too_short"}
    assert "no checkpoint" in str(next(iter(result.exclusions)).reason)
    assert names(ranking(row, workloads=(lasting(5),), checkpoint_every_s=inf, **BARE)) == ["acme"]


def test_data_is_copied_at_each_start_where_the_disk_goes_with_the_machine():
    row = offer(gpu="h100", price=1.0, session_limit_s=6 * HOUR)
    asked = BARE | {"data_gb": 360.0, "network_gb_per_s": 0.1}
    kept, lost = (only(row, job=lasting(20), context=around(disk_survives=said), **asked) for said in ("yes", "no"))
    assert parts(kept)["data transfer"] == pytest.approx(1.0)
    assert parts(lost)["data transfer"] == pytest.approx(5.0), "an hour of each of five sessions"


def test_a_host_must_stay_for_the_time_that_the_machine_stands_stopped_too():
    row = offer(gpu="h100", longest_h=72.0, stopped="disk")
    assert names(ranking(row, workloads=(lasting(60),))) == ["acme"]
    assert rules(ranking(row, workloads=(lasting(60),), stopped_s=40 * HOUR)) == {"acme-0": "host_ends"}


def test_exact_tariffs_do_not_take_on_the_age_of_the_machines_price():
    row = offer(gpu="h100", price=1.0, egress_usd_per_gb=0.09, age_days=360)
    plain, heavy = (only(row, job=lasting(10), results_gb=gb, network_gb_per_s=1e9, **BARE) for gb in (None, 5000.0))
    assert heavy.cost_usd.log_sd < 0.1 * plain.cost_usd.log_sd
    assert heavy.cost_usd.interval().low > 450


def test_the_luck_of_twenty_machines_evens_out_and_that_of_two_pools_is_not_shared():
    asked = BARE | {"losses_per_hour": 0.3, "available_fraction": 0.8, "checkpoint_s": 30.0}
    rows = [offer(name, gpu="h100", market="spot") for name in ("one", "two")]
    alone = ranking(*rows, workloads=(lasting(2),), **asked).candidates
    luck = [{name for name, _sd in c.accelerator_h.spread if name.startswith("losses of")} for c in alone]
    assert luck[0]
    assert luck[0] != luck[1]
    apart = only(rows[0], job=lasting(2), jobs=20, apart=True, **asked)
    one, twenty = (dict(c.accelerator_h.spread)["losses of one h100x1"] for c in (alone[0], apart))
    assert twenty == pytest.approx(one / 20**0.5, rel=0.01)


def test_the_share_of_a_month_adds_up_line_by_line():
    row = offer(gpu="h100", price=1.0, market="dedicated", egress_usd_per_gb=0.10)
    asked = {"hours_per_month": 365.0, "results_gb": 50.0, "tax": "gross", "vat_fraction": 0.2}
    found = only(row, job=lasting(10), **asked)
    assert [line.kind for line in found.share_lines] == ["share of the machine", "egress", "VAT"]
    assert sum(line.amount_usd for line in found.share_lines) == pytest.approx(found.cost_share_usd.value)


def test_the_parts_of_the_time_add_up_to_it():
    asked = {"data_gb": 90.0, "results_gb": 9.0, "image_gb": 5.0, "stopped_s": 3 * HOUR, "network_gb_per_s": 0.1,
             "available_fraction": 0.7, "checkpoint_s": 20.0, "losses_per_hour": 0.2}  # fmt: skip
    found = only(offer(gpu="h100", market="spot", stopped="disk"), **asked)
    assert sum(found.time_parts_s.values()) == pytest.approx(found.time_s.value)
    assert {"waiting", "taking results out", "standing stopped", "interruption"} <= found.time_parts_s.keys()


def test_a_job_of_unknown_length_has_no_part_of_egress_in_its_price_a_million():
    job = replace(JOB, undecided=("epochs",))
    rows = [offer("use", gpu="h100", egress_usd_per_gb=0.1), offer("month", gpu="h100", market="dedicated")]
    asked = {"hours_per_month": 365.0}
    plain, sent = (ranking(*rows, workloads=(job,), **asked, **more) for more in ({}, {"results_gb": 500.0}))
    for before, after in zip(plain.candidates, sent.candidates, strict=True):
        assert after.usd_per_million_samples.value == before.usd_per_million_samples.value
