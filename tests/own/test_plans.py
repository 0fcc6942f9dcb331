"""Plans under a load-duration curve, and the decision over chance: what must hold whatever the figures are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.own.cases import case, figure, jumps

from gpuwise.errors import InvalidInput
from gpuwise.own.case import stack, world
from gpuwise.own.choose import Way, best_servers, discount, least, mix, rented_gpus
from gpuwise.own.decide import decide
from gpuwise.own.demand import assumed, expected, of_record, staged, steady, uncertain, wandering
from gpuwise.own.figures import LIMITS, at, figures, has_range, pooled
from gpuwise.own.fleets import fleets, years
from gpuwise.own.leaving import History, Leaving, Promise, leave
from gpuwise.own.plan import Asset, Own, Rented, Tail, World, capital, flows, own_usd_per_gpu_hour
from gpuwise.own.sensitivity import evppi_usd, total_indices
from gpuwise.store import package

FEW = settings(max_examples=25, deadline=None)
BARE = Asset(
    accelerators=8, capex_usd=240_000.0, server_usd=240_000.0, life_years=4.0,
    worth_decline_per_year=np.inf, busy_kw=0.0, idle_kw=0.0,
    pue=1.0, electricity_usd_per_kwh=0.0, hosting_usd_per_month=0.0, staff_usd_per_month=0.0,
    upkeep_usd_per_year=0.0, licence_usd_per_gpu_year=0.0, lead_months=0.0,
)  # fmt: skip


def still(gpus=8.0, months=48, variation=0.5):
    return World(demand_gpu_h=np.full((1, months), gpus * 730), price=np.ones((1, months)), shape=assumed(variation))


# ---- demand ----


def test_a_fleet_serves_what_lies_below_it_of_two_levels():
    shape = of_record(np.array([4.0, 12.0]))
    assert shape.served(np.array([0.0, 0.5, 1.0, 1.5, 9.0])) == pytest.approx([0, 0.5, 0.75, 1, 1])


def test_demand_of_an_exponential_law_is_served_as_the_formula_says():
    assert assumed(1.0).served(np.array([1.0]))[0] == pytest.approx(1 - np.exp(-1), abs=2e-3)


def test_an_assumed_shape_has_the_variation_that_was_asked_for():
    for variation in (0.3, 0.5, 1.0, 2.0):
        assert assumed(variation).variation == pytest.approx(variation, rel=0.03)
    assert steady().variation == 0


def test_a_record_without_any_gpu_is_refused():
    for record in ([], [0.0, 0.0], [1.0, float("nan")], [-1.0, 2.0]):
        with pytest.raises(InvalidInput):
            of_record(np.array(record))


def test_shapes_that_are_uncertain_serve_each_path_by_its_own():
    shapes = uncertain(np.array([0.3, 0.3, 2.0, 2.0]))
    served = shapes.served(np.ones((4, 2)))
    assert served[0, 0] > served[2, 0] + 0.2
    assert served[0, 0] == served[1, 1]


def test_demand_grows_and_shrinks_by_the_year():
    grown = expected(np.array([[1000.0]]), np.array([[0.2]]), 24)[0]
    assert grown[12] / grown[0] == pytest.approx(1.2)
    assert expected(1000.0, -0.5, 24)[12] / expected(1000.0, -0.5, 24)[0] == pytest.approx(0.5)


def test_recorded_weeks_are_drawn_in_blocks_and_keep_their_mean():
    rng = np.random.default_rng(1)
    drawn = wandering(4000, 6, rng, log_sd_per_root_year=0.0, weeks=(0.5, 1.5, 1.0, 1.0))
    assert drawn.mean() == pytest.approx(1.0, abs=0.01)
    assert (wandering(3, 4, rng, log_sd_per_root_year=0.0) == 1).all()


@pytest.mark.parametrize(
    ("gpus", "sd", "growth", "shape", "stage"),
    [
        (0.5, 0.0, 0.0, assumed(0.5), "exploring"),
        (20.0, 1.0, 0.0, assumed(0.5), "exploring"),
        (20.0, 0.0, 0.0, of_record(np.array([0.0] * 9 + [200.0])), "exploring"),
        (20.0, 0.0, 0.8, assumed(0.5), "growing"),
        (20.0, 0.0, -0.6, assumed(0.5), "exploring"),
        (20.0, 0.0, -0.4, assumed(0.5), "steady"),
        (20.0, 0.1, 0.2, assumed(2.0), "steady"),
    ],
)
def test_the_stage_follows_a_printed_rule(gpus, sd, growth, shape, stage):
    found = staged(gpus, sd, growth, shape)
    assert found.stage == stage
    assert str(found.rule)


# ---- prices ----


def test_prices_jump_with_the_variance_of_their_rate_and_size():
    prices = jumps(per_year=0.5, log_sd=0.3).paths(40_000, 49, np.random.default_rng(2))
    logs = np.log(prices[:, -1])
    assert logs.std() == pytest.approx(np.sqrt(0.5 * 4 * 0.09), rel=0.03)
    assert abs(logs.mean()) < 0.01, "half of them up"
    assert (prices[:, 0] == 1).all(), "the first month has today's price"
    assert (np.diff(prices, axis=1) == 0).mean() > 0.9, "most months nothing moves"


@pytest.mark.parametrize("down", [0.0, 0.8, 1.0])
def test_prices_jump_down_as_often_as_was_seen(down):
    prices = jumps(per_year=2.0, log_sd=0.3, down_fraction=down).paths(20_000, 25, np.random.default_rng(3))
    steps = np.diff(np.log(prices), axis=1)
    moves = steps[np.abs(steps) > 0]
    alone = 2 / 12 / 2  # now and then two fall into one month, and may cancel
    assert (moves < 0).mean() == pytest.approx(down, abs=alone)
    mean = -(2 * down - 1) * 0.3 * np.sqrt(2 / np.pi)
    assert np.log(prices[:, -1]).mean() == pytest.approx(4 * mean, abs=0.02)


def test_the_rate_of_the_jumps_is_drawn_from_its_range():
    """A Poisson count whose rate is itself uncertain scatters more than one of a known rate."""

    def moved(rate):
        prices = jumps(per_year=rate).paths(20_000, 37, np.random.default_rng(4))
        return (np.diff(prices, axis=1) != 0).sum(axis=1).var()

    assert moved((2.0, 0.5, 8.0)) > 1.5 * moved(2.0)


def test_the_price_to_come_is_the_mean_of_its_path():
    low, middle, high = jumps(per_year=0.1, log_sd=0.25, down_fraction=0.8).to_come(60)
    assert low < 0.95
    assert (middle, high) == (1.0, 1.0), "on most paths nothing moves, and few move up"
    found = decide(case(jumps=jumps(per_year=1.0, log_sd=0.4)), paths=300)
    to_come = found.drawn["cloud_price_change"][:, 0]
    assert np.corrcoef(np.log(to_come), found.present_usd["on-demand"])[0, 1] > 0.3, "figures of the very paths"


# ---- plans ----


def test_capex_is_counted_once():
    paid = flows([Own(asset=BARE, servers=1)], Tail(usd_per_gpu_hour=0.0), still())
    assert paid.total_usd.sum() == 240_000.0
    assert (paid.capex_usd != 0).sum() == 1


def test_a_server_is_bought_again_at_the_end_of_its_life_and_sold_for_what_it_is_worth():
    asset = replace(BARE, life_years=2.0, worth_decline_per_year=0.5)
    capex = flows([Own(asset=asset, servers=1)], Tail(usd_per_gpu_hour=0.0), still(months=48)).capex_usd[0]
    sold = 240_000 * np.exp(-1.0)
    assert capex[0] == 240_000
    assert capex[24] == pytest.approx(240_000 - sold)
    assert capex[48] == pytest.approx(-sold)
    assert capex.sum() == pytest.approx(2 * (240_000 - sold))


def test_what_goes_with_a_server_is_not_sold_again_and_it_ages_from_its_order_on():
    asset = replace(BARE, server_usd=100_000.0, worth_decline_per_year=np.log(2), lead_months=6.0)
    late = flows([Own(asset=asset, servers=1, order_month=42)], Tail(usd_per_gpu_hour=0.0), still(months=48))
    assert late.capex_usd[0, 42] == 240_000
    assert late.capex_usd[0, 48] == pytest.approx(-100_000 / np.sqrt(2)), "half a year old, though it never worked"
    short = replace(asset, life_years=1.0)
    capex = flows([Own(asset=short, servers=1)], Tail(usd_per_gpu_hour=0.0), still(months=48)).capex_usd[0]
    assert capex[18] == pytest.approx(240_000 - 100_000 * 0.5**1.5), "a year of work, and the way"
    assert capex[30] == pytest.approx(240_000 - 100_000 * 0.5), "the next one comes when it is needed"


@pytest.mark.parametrize("lead", [0.0, 7.5, 47.5, 60.0])
@pytest.mark.parametrize("order", [0, 47, 48])
def test_capital_is_a_number_wherever_the_servers_come(lead, order):
    paid = capital(Own(asset=replace(BARE, lead_months=lead), servers=1, order_month=order), 48)
    assert np.isfinite(paid).all()
    assert paid.sum() >= 0


def test_uc_096_the_cloud_is_paid_until_the_hardware_arrives():
    asset = replace(BARE, lead_months=30 / (730 / 168))
    paid = flows([Own(asset=asset, servers=1)], Tail(usd_per_gpu_hour=1.0), still(variation=0.0))
    tail = paid.tail_usd[0, 1:]
    assert (tail[:6] == 8 * 730).all()
    assert (tail[7:] == 0).all()
    assert 0 < tail[6] < 8 * 730


def test_an_order_in_a_later_month_moves_all_that_follows():
    now, later = (
        flows([Own(asset=BARE, servers=1, order_month=month)], Tail(usd_per_gpu_hour=1.0), still()) for month in (0, 6)
    )
    assert later.capex_usd[0, 6] == 240_000
    assert later.tail_usd[0, 1:7] == pytest.approx(8 * 730)
    assert later.tail_usd[0, 7:] == pytest.approx(now.tail_usd[0, 1:-6])


def test_money_of_layers_adds_up_and_work_is_done_once():
    layers = [Own(asset=BARE, servers=1), Rented(count=4.0, usd_per_gpu_hour=2.0, term_months=12)]
    lived = still(gpus=12.0)
    paid = flows(layers, Tail(usd_per_gpu_hour=3.0), lived)
    assert paid.served_gpu_h.sum(axis=0) == pytest.approx(lived.demand_gpu_h)
    assert paid.fixed_usd[0, 1:] == pytest.approx(4 * 730 * 2.0)
    assert (paid.served_gpu_h >= 0).all()


def test_a_term_keeps_the_price_at_which_it_began():
    lived = replace(still(months=24), price=np.linspace(1, 2, 24)[None])
    paid = flows([Rented(count=1.0, usd_per_gpu_hour=1.0, term_months=12)], Tail(usd_per_gpu_hour=0.0), lived)
    assert set(np.round(paid.fixed_usd[0, 1:] / 730, 6)) == {1.0, round(float(lived.price[0, 12]), 6)}


def test_useful_hours_carry_what_is_billed_while_idle():
    assert Tail(usd_per_gpu_hour=3.0, idle_fraction=0.25).useful_usd_per_gpu_hour == 4.0
    spot = Tail(usd_per_gpu_hour=3.0, spot_fraction=0.5, spot_usd_per_gpu_hour=1.0)
    assert spot.useful_usd_per_gpu_hour == 2.0


def test_uc_095_break_even_needs_utilisation():
    asset = replace(BARE, accelerators=7, capex_usd=0.0, staff_usd_per_month=14_000 / 12)
    assert own_usd_per_gpu_hour(asset, 0.1, 14_000 / 0.45 / 61_320) == pytest.approx(0.45)


# ---- how many ----


def test_the_least_of_a_convex_cost_is_found():
    for best in (0, 1, 7, 40):
        assert least(lambda n, best=best: float((n - best) ** 2), 40) == best


@FEW
@given(st.floats(0.2, 60), st.floats(0, 2), st.floats(0.3, 12))
def test_no_neighbour_of_the_best_number_of_servers_costs_less(gpus, variation, price):
    lived, tail = still(gpus, variation=variation), Tail(usd_per_gpu_hour=price)
    best = best_servers(BARE, tail, lived, 0.1)
    costs = [
        (flows([Own(asset=BARE, servers=n)], tail, lived).total_usd * discount(48, 0.1)).sum()
        for n in (max(best - 1, 0), best, best + 1)
    ]
    assert min(costs) == pytest.approx(costs[1], rel=1e-12)


@FEW
@given(st.floats(0.2, 60), st.floats(0, 2), st.floats(0.3, 12))
def test_a_hybrid_never_costs_more_than_all_cloud_or_all_own_with_bursting(gpus, variation, price):
    lived, tail = still(gpus, variation=variation), Tail(usd_per_gpu_hour=price)
    best = best_servers(BARE, tail, lived, 0.1)
    peak = int(np.ceil(lived.demand_gpu_h.max() / 730 * lived.shape.peak / 8))
    hybrid, cloud, own = (
        (flows([Own(asset=BARE, servers=n)], tail, lived).total_usd * discount(48, 0.1)).sum() for n in (best, 0, peak)
    )
    assert hybrid <= min(cloud, own) * (1 + 1e-12)


def test_the_mix_owns_the_second_half_where_the_cloud_is_just_dearer():
    shape, demand = of_record(np.array([4.0, 8.0])), np.full(12, 6 * 730.0)
    own = [Way(name="own", block=1, usd_per_year=8760, usd_per_gpu_hour=0)]
    assert mix(own, 2.01, demand, shape) == {"own": 8}
    assert mix(own, 1.99, demand, shape) == {"own": 4}
    assert mix([], 2.0, demand, shape) == {}


def test_nothing_is_committed_to_where_the_hour_is_as_cheap():
    assert not rented_gpus(2.0, 2.0, np.full(12, 7300.0), assumed(0.5), 12, 1).any()
    assert rented_gpus(1.0, 3.0, np.full(12, 7300.0), assumed(0.5), 1, 8)[0] % 8 == 0


@pytest.mark.parametrize("price", [2.5, 3.0, 4.0, 6.0, 12.0])
def test_without_growth_every_year_has_the_number_that_is_best_now(price):
    asked = case(60, cloud_usd_per_gpu_hour=price, demand_growth_per_year=0.0)
    (best,) = [fleet.servers for fleet in fleets(asked, "colocation") if fleet.best]
    assert [year.servers for year in years(asked, "colocation")] == [best] * 6


def test_at_home_every_year_has_servers_for_its_demand():
    asked = replace(case(36, options=("office",), demand_growth_per_year=0.5), at_home=True)
    numbers = [year.servers for year in years(asked, "office")]
    assert numbers[0] > 0
    assert numbers == sorted(numbers)
    assert numbers[-1] > numbers[0]


# ---- figures ----


def test_a_figure_is_at_its_ends_where_its_interval_ends():
    life = figure("life_years", (4.0, 3.0, 6.0))
    assert at(life, np.array([-1.2815515655, 0.0, 1.2815515655])) == pytest.approx([3, 4, 6])


@given(st.floats(-5, 5))
def test_a_share_never_leaves_0_to_1(z):
    share = figure("idle_billed_fraction", (0.1, 0.02, 0.3))
    assert 0 < at(share, np.array([z]))[0] < 1


@pytest.mark.parametrize("z", [-8.0, -4.0, 4.0, 8.0])
def test_no_draw_goes_beyond_what_a_figure_can_mean(z):
    """Every figure that the product draws, and the widest ranges that may be said."""
    widest = [figure(name, (sum(ends) / 2, *ends)) for name, ends in LIMITS.items()]
    for one in [*package.assumptions().values(), *widest]:
        if has_range(one):
            low, high = LIMITS.get(one.name, (0.0, np.inf))
            assert low <= at(one, np.array([z]))[0] <= high, one.name


def test_sources_of_a_range_count_alike():
    assert pooled([(1.0, 4.0)]) == pytest.approx((1, 2, 4), rel=1e-3)
    low, middle, high = pooled([(1.0, 4.0), (10.0, 40.0)])
    assert 1 < low < 4 < middle < 10 < high < 40


def test_a_value_outside_of_its_own_range_is_refused():
    with pytest.raises(InvalidInput, match="outside"):
        at(figure("life_years", (7.0, 3.0, 6.0)), np.zeros(1))


# ---- the decision ----


def test_the_same_seed_gives_the_same_answer_and_the_mix_is_best_in_expectation():
    one, two = (decide(case(), paths=400, seed=3) for _ in range(2))
    assert {n: o.present_usd for n, o in one.outcomes.items()} == {n: o.present_usd for n, o in two.outcomes.items()}
    assert one.outcomes["mix"].present_usd.mean <= 1.005 * min(o.present_usd.mean for o in one.outcomes.values())
    assert sum(o.p_cheapest for o in one.outcomes.values()) == pytest.approx(1.0)


def test_currency_changes_nothing_in_the_order():
    usd, other = (decide(case(scale=scale), paths=300) for scale in (1.0, 7.3))
    order = [sorted(d.outcomes, key=lambda name, d=d: d.outcomes[name].present_usd.mean) for d in (usd, other)]
    assert order[0] == order[1]
    assert [o.count.servers for o in usd.outcomes.values()] == [o.count.servers for o in other.outcomes.values()]
    assert other.p_own == usd.p_own


def test_net_present_value_without_interest_is_the_sum():
    for outcome in decide(case(discount_fraction=0.0), paths=200).outcomes.values():
        assert outcome.present_usd.mean == pytest.approx(outcome.total_usd.mean)


def test_a_dear_cloud_is_left_and_a_cheap_one_is_not():
    dear, cheap = (
        decide(case(cloud_usd_per_gpu_hour=price, options=("on-demand", "office")), paths=400) for price in (12.0, 1.0)
    )
    assert dear.verdict == "own"
    assert dear.p_own > 0.95
    assert (cheap.verdict, cheap.outcomes["office"].gpus) == ("rent", 0)


def test_a_room_limits_the_servers():
    found = decide(
        case(cloud_usd_per_gpu_hour=12.0, options=("on-demand", "office", "mix"), most={"office": 1}), paths=200
    )
    assert found.outcomes["office"].gpus == 8
    assert found.outcomes["mix"].gpus == 8


def test_data_that_must_stay_is_worked_on_at_home_alone():
    asked = replace(case(options=("office",)), at_home=True)
    found = decide(asked, paths=200)
    office = found.outcomes["office"]
    assert found.verdict == "own"
    assert office.gpus >= 8
    layers, rest = stack(asked, office.count, asked.figures.middle())
    assert flows(layers, rest, world(asked, asked.figures.middle())).tail_usd.sum() == 0


def test_options_that_own_nothing_cost_what_all_cloud_costs():
    found = decide(case(cloud_usd_per_gpu_hour=0.5, options=("on-demand", "colocation")), paths=200)
    assert found.outcomes["colocation"].count.servers == {"colocation": 0}
    assert found.outcomes["colocation"].present_usd == found.outcomes["on-demand"].present_usd


def test_at_home_an_hour_costs_what_is_paid_over_the_hours_that_are_served():
    asked = replace(case(options=("office",), lead_weeks=26.0), at_home=True, wander_log_sd=0.0)
    certain = [replace(one, low=None, high=None) for one in asked.figures.by_name.values()]
    asked = replace(asked, figures=figures(certain))
    office = decide(asked, paths=2).outcomes["office"]
    middle = asked.figures.middle()
    served = flows(*stack(asked, office.count, middle), world(asked, middle)).served_gpu_h[0, 0]
    assert served[:5].sum() == 0, "nothing works before they come"
    hours = (served * discount(36, 0.1)[1:]).sum()
    assert office.usd_per_gpu_hour.p50 == pytest.approx(office.present_usd.p50 / hours)


def test_a_purchase_that_its_last_month_pays_back_is_paid_back():
    asked = case(12, options=("on-demand", "office"), residual_fraction=0.25)
    for outcome in decide(asked, paths=200).outcomes.values():
        assert outcome.resold_usd >= 0
        assert (outcome.resold_usd > 0) == (outcome.gpus > 0)


# ---- what decides ----


def test_total_indices_of_a_sum_are_the_shares_of_its_variance():
    first, second = total_indices(lambda z: z[:, 0] + 2 * z[:, 1], 2, base=2048, seed=0)
    assert first == pytest.approx(0.2, abs=0.02)
    assert second == pytest.approx(0.8, abs=0.02)


def test_a_figure_that_alone_decides_is_worth_what_it_saves():
    figure_, saving = np.arange(1000.0), np.where(np.arange(1000) < 500, -10.0, 10.0)
    assert evppi_usd(figure_, saving) == pytest.approx(5.0)
    assert evppi_usd(figure_, np.full(1000, 3.0)) == 0.0


# ---- leaving ----

PRICES = st.lists(st.floats(0.8, 15), min_size=2, max_size=2, unique=True).map(sorted)


def left(price, months=36, **changed):
    asked = case(months, options=("on-demand", "colocation"), cloud_usd_per_gpu_hour=price, **changed)
    history = History(gpu_h=np.full(6, 20 * 730.0), effective_usd=np.full(6, 20 * 730.0 * price))
    return leave(Leaving(case=asked, history=history, site="colocation", moving_usd=20_000.0), paths=150)


def key(month):
    return 10**6 if month is None else month


@settings(max_examples=8, deadline=None)
@given(PRICES)
def test_a_dearer_cloud_never_delays_the_exit(prices):
    cheap, dear = (left(price) for price in prices)
    assert key(dear.robust.month) <= key(cheap.robust.month)
    assert key(dear.probable.month) <= key(cheap.probable.month)
    assert key(dear.p50_month) <= key(cheap.p50_month)
    assert dear.p_never <= cheap.p_never


def test_a_cheap_cloud_is_never_left_within_the_horizon():
    found = left(0.5)
    assert (found.robust.month, found.probable.month, found.p50_month, found.order_month) == (None, None, None, None)
    assert (found.servers, found.p_never) == (0, 1.0)


def test_a_heavy_commitment_moves_the_order_to_its_end_and_a_light_one_does_not():
    asked = case(36, options=("on-demand", "colocation"), cloud_usd_per_gpu_hour=9.0)
    history = History(gpu_h=np.full(3, 20 * 730.0), effective_usd=np.full(3, 20 * 730.0 * 9))
    free, light, bound = (
        leave(Leaving(case=asked, history=history, site="colocation", promises=promises), paths=150)
        for promises in (
            (),
            *((Promise(name="one", usd_per_month=usd, end_month=14.0),) for usd in (1000.0, 200_000.0)),
        )
    )
    assert free.order_month == light.order_month == 0
    assert bound.order_month == 14 - int(np.ceil(13 / (730 / 168)))
    assert 0 <= bound.p_before["one"] <= 1


def test_waiting_costs_where_leaving_pays():
    found = left(9.0)
    assert found.p_pays > 0.8
    assert 0 < found.wait_usd[6].mean < found.wait_usd[12].mean
