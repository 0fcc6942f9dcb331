"""Error budgets: what adds, what cancels, and what an interval holds."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpuwise.estimate import Estimate, difference, exact, probability_less, total, z_score

values = st.floats(1e-6, 1e6)
spreads = st.dictionaries(st.sampled_from(["price", "speed", "epochs", "power"]), st.floats(-0.5, 0.5), max_size=4)
estimates = st.builds(
    lambda value, spread: Estimate(value=value, spread=tuple(sorted((n, s) for n, s in spread.items() if s))),
    values,
    spreads,
)


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def test_the_interval_of_the_gum_example_comes_out():
    found = Estimate(value=2.0, spread=(("a", 0.3), ("b", 0.4)))
    interval = found.interval()
    assert found.log_sd == pytest.approx(0.5)
    assert (interval.low, interval.high) == pytest.approx((1.054, 3.796), abs=5e-4)


@pytest.mark.parametrize(("level", "z"), [(0.8, 1.2816), (0.95, 1.9600), (0.6827, 1.0)])
def test_the_width_of_an_interval_is_that_of_the_normal_law(level, z):
    assert z_score(level) == pytest.approx(z, abs=1e-4)
    assert Estimate(value=1, spread=(("a", 0.1),)).interval(level).high == pytest.approx(math.exp(0.1 * z), rel=1e-4)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, -math.inf])
def test_an_estimate_is_positive_and_finite(value):
    with pytest.raises(ValueError, match="positive"):
        Estimate(value=value)


def test_nothing_at_all_is_exact_or_no_estimate():
    assert Estimate(value=0.0).interval().high == 0
    with pytest.raises(ValueError, match="exactly 0"):
        Estimate(value=0.0, spread=(("a", 0.1),))


def test_errors_of_different_names_add_in_quadrature_and_of_one_name_linearly():
    price, speed = Estimate(value=3, spread=(("price", 0.3),)), Estimate(value=5, spread=(("speed", 0.4),))
    assert (price * speed).log_sd == pytest.approx(0.5)
    assert (price * price).log_sd == pytest.approx(0.6)


def test_a_mix_of_origins_has_the_weakest():
    mixed = exact(2, basis="measured") * exact(3, basis="assumed") + exact(1, basis="quoted")
    assert mixed.basis == "assumed"


def test_one_more_error_widens_and_keeps_the_sign_of_what_is_there():
    cost = 1 / Estimate(value=4, spread=(("speed", 0.3),))
    assert dict(cost.spread) == {"speed": -0.3}
    wider = cost.widened("speed", 0.4)
    assert dict(wider.spread) == {"speed": -0.5}
    assert (wider * Estimate(value=4, spread=(("speed", 0.3),))).log_sd == pytest.approx(0.2)
    assert dict(exact(1).widened("price", 0.1).spread) == {"price": 0.1}


def test_an_interval_that_is_known_better_scales_with_its_value():
    bill = Estimate(value=10, spread=(("speed", 0.1),), bounds=(8, 16))
    assert (bill.interval().low, bill.interval().high) == (8, 16)
    assert ((bill * 2).interval().low, (bill / 2).interval().high) == (16, 8)
    assert bill.interval(0.95).high == pytest.approx(10 * math.exp(0.1 * z_score(0.95)))


def test_nothing_of_a_quantity_is_exactly_nothing():
    assert Estimate(value=5, spread=(("price", 0.1),)) * 0 == Estimate(value=0)


@given(estimates)
def test_a_quantity_over_itself_has_no_spread(x):
    assert (x / x).spread == ()
    assert (x / x).value == near(1)


@given(estimates, estimates)
def test_dividing_undoes_multiplying(x, y):
    back = x * y / y
    assert back.value == near(x.value)
    assert back.log_sd == near(x.log_sd)


@given(estimates, estimates)
def test_products_and_sums_do_not_depend_on_the_order(x, y):
    assert x * y == y * x
    assert (x + y).value == near((y + x).value)
    assert (x + y).log_sd == near((y + x).log_sd)


@given(st.lists(estimates, min_size=1, max_size=5))
def test_a_sum_is_relatively_no_wider_than_its_widest_part(parts):
    assert total(parts).log_sd <= max(p.log_sd for p in parts) * (1 + 1e-9) + 1e-12
    assert total(parts).value == near(math.fsum(p.value for p in parts))


@given(estimates)
def test_a_sum_of_the_same_quantity_is_its_multiple(x):
    assert total([x, x, x]).value == near((3 * x).value)
    assert total([x, x, x]).log_sd == near(x.log_sd)


@given(estimates, estimates, st.floats(1e-3, 1e3))
def test_the_unit_of_a_quantity_changes_no_relative_error(x, y, scale):
    assert (x * scale).log_sd == near(x.log_sd)
    assert (x * scale + y * scale).log_sd == near((x + y).log_sd)
    assert probability_less(x * scale, y * scale) == pytest.approx(probability_less(x, y), abs=1e-6)


@given(estimates, st.floats(0.01, 0.99))
def test_an_interval_holds_its_value_and_grows_with_its_level(x, level):
    narrow, wide = x.interval(level), x.interval((1 + level) / 2)
    assert narrow.low <= narrow.value <= narrow.high
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@given(estimates, estimates)
def test_what_is_smaller_is_decided_between_none_and_both(x, y):
    p, q = probability_less(x, y), probability_less(y, x)
    assert 0 <= p <= 1
    assert p + q == pytest.approx(1)
    if x.value < y.value:
        assert p >= 0.5


@given(values, values, estimates)
def test_a_shared_error_cancels_when_two_are_compared(a, b, shared):
    assume(a < b * (1 - 1e-9))
    assert probability_less(exact(a) * shared, exact(b) * shared) == 1.0


def test_an_error_of_its_own_makes_a_comparison_uncertain():
    a, b = Estimate(value=1, spread=(("a", 0.3),)), Estimate(value=math.e**0.5, spread=(("b", 0.4),))
    assert probability_less(a, b) == pytest.approx(0.8413, abs=1e-4)


def test_equal_exact_values_are_even_and_nothing_is_less_than_anything():
    some, none = Estimate(value=1, spread=(("a", 0.3),)), exact(0)
    assert probability_less(exact(2), exact(2)) == 0.5
    assert probability_less(none, some) == 1.0
    assert probability_less(some, none) == 0.0
    assert probability_less(none, none) == 0.5


@given(estimates, estimates)
def test_a_difference_added_back_gives_the_whole(x, y):
    whole = x + y
    assume(y.value > whole.value * 1e-3)
    rest = difference(whole, x)
    assert (rest + x).value == near(whole.value)
    assert rest.log_sd == pytest.approx(y.log_sd, rel=1e-5, abs=1e-5)


def test_a_difference_that_is_not_positive_is_no_estimate():
    with pytest.raises(ValueError, match="not positive"):
        difference(exact(1), exact(1))
