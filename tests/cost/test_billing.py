"""The bill of one run: public rules as tables, and what must hold for every rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.catalogue import from_rows
from gpuwise.cost.billing import bill_lines, bill_usd, billed_s, elasticity, share_usd, tax_factor, terms

HOUR = 3600.0


def make_terms(hours_per_month=None, prepaid_h=0.0, **row):
    """Terms of one offer at 2 USD an hour unless the row says otherwise."""
    row = {"market": "on-demand", "price_usd_per_hour": 2.0} | row
    offers = from_rows("test", "1", [row])
    return terms(
        offers,
        price_usd_per_hour=offers.price_usd_per_hour,
        prepaid_h=np.array([prepaid_h]),
        step_unknown_s=HOUR,
        hours_per_month=hours_per_month,
    )


def bill(used_s, **row):
    return float(bill_usd(make_terms(**row), np.array([used_s]))[0])


@pytest.mark.parametrize(
    ("row", "used_s", "billed"),
    [
        ({"billing_step_s": 1, "billing_minimum_s": 60}, 61.2, 62),  # AWS, Google: by the second after one minute
        ({"billing_step_s": 1, "billing_minimum_s": 60}, 5, 60),
        ({"billing_step_s": 1, "billing_minimum_s": 300}, 299, 300),  # Azure row of offers.csv
        ({"billing_step_s": 60}, 61, 120),  # Hyperstack: by the minute
        ({"billing_step_s": 3600, "billing_minimum_s": 3600}, 3660, 7200),  # OVH, Vultr: by the hour
        ({"billing_step_s": 3600}, 3600.0000001, 3600),  # rounding error is not a second hour
        ({}, 61, 3600),  # an unknown step is taken as an hour
        ({"market": "dedicated"}, 3600, 730 * HOUR),  # a month is owed in full
        ({"market": "dedicated"}, 731 * HOUR, 1460 * HOUR),
        ({"market": "reserved", "term_h": 8760}, HOUR, 8760 * HOUR),
    ],
)
def test_billed_time_follows_the_step_and_the_minimum(row, used_s, billed):
    assert billed_s(make_terms(**row), np.array([used_s]))[0] == pytest.approx(billed, rel=1e-12)


def test_61_minutes_cost_what_the_docstring_says():
    assert bill(3660, billing_step_s=3600) == pytest.approx(4.00)
    assert bill(3660, billing_step_s=1) == pytest.approx(2.0333, abs=5e-5)
    assert bill(3660, market="dedicated") == pytest.approx(1460)


def test_uc_085_a_small_unit_price_is_not_rounded_before_the_sum():
    assert bill(730 * HOUR, price_usd_per_hour=0.0084, billing_step_s=1) == pytest.approx(6.132, abs=1e-9)


def test_uc_086_a_licence_a_node_and_month_favours_the_large_node():
    small = bill(730 * HOUR, price_usd_per_hour=8 * 1.00, nodes=8, licence_usd_per_month=200, billing_step_s=1)
    large = bill(730 * HOUR, price_usd_per_hour=8.40, nodes=1, licence_usd_per_month=200, billing_step_s=1)
    assert (small, large) == (pytest.approx(7440), pytest.approx(6332))


def test_uc_090_an_all_upfront_year_is_owed_in_full_for_a_three_month_project():
    year = {"market": "reserved", "term_h": 8760, "price_usd_per_hour": 15_768 / 8_760}
    assert year["price_usd_per_hour"] == pytest.approx(1.80)
    assert bill(3 * 730 * HOUR, **year) == pytest.approx(15_768)


def test_a_month_kept_busy_for_365_hours_shares_twice_its_full_time_price():
    monthly = make_terms(hours_per_month=365, market="dedicated")
    assert share_usd(monthly, np.array([10 * HOUR]))[0] == pytest.approx(10 * 2.0 * 2)


def test_an_owned_machine_pays_its_energy_only_in_busy_hours():
    owned = make_terms(hours_per_month=365, market="owned", price_usd_per_hour=1.2, running_usd_per_hour=0.2)
    assert share_usd(owned, np.array([HOUR]))[0] == pytest.approx(1.0 * 2 + 0.2)


def test_an_hourly_offer_has_no_share():
    assert np.isnan(share_usd(make_terms(hours_per_month=365), np.array([HOUR]))[0])


def test_committed_hours_cost_nothing_until_they_are_used_up():
    agreed = make_terms(prepaid_h=4, price_usd_per_hour=3.0, billing_step_s=1)
    assert bill_usd(agreed, np.array([10 * HOUR]))[0] == pytest.approx(18)
    lines = bill_lines(agreed, 0, {"preparation": HOUR, "compute": 9 * HOUR}, "test")
    assert [(x.kind, x.quantity, x.amount_usd) for x in lines] == [
        ("committed hours", 4.0, 0.0),
        ("compute", pytest.approx(6.0), pytest.approx(18.0)),
    ]


def test_a_licence_is_part_of_the_share_and_paid_hours_are_used_up_before_it():
    monthly = make_terms(hours_per_month=365, market="dedicated", price_usd_per_hour=1.0, licence_usd_per_month=365)
    assert share_usd(monthly, np.array([HOUR]))[0] == pytest.approx(2.0 + 1.0)
    prepaid = make_terms(hours_per_month=365, market="reserved", term_h=8760, prepaid_h=10)
    assert share_usd(prepaid, np.array([HOUR]))[0] == 0


@pytest.mark.parametrize("step_s", [1, 3600])
def test_paid_hours_that_end_inside_the_times_interval_leave_a_finite_slope(step_s):
    agreed = make_terms(prepaid_h=1.0, billing_step_s=step_s)
    slopes = elasticity(agreed, np.array([1.05 * HOUR]), np.array([0.2]))
    assert np.isfinite(slopes).all()
    assert elasticity(make_terms(prepaid_h=9.0), np.array([HOUR]), np.array([0.2]))[0] == 0


def test_a_gross_price_of_known_rate_is_brought_to_the_persons_own_rate():
    offers = from_rows(
        "test", "1", [{"tax": "gross", "vat_fraction": 0.19}, {"tax": "gross"}, {"tax": "unknown"}, {"tax": "net"}]
    )
    assert tax_factor(offers, "gross", 0.25) == pytest.approx([1.25 / 1.19, 1.0, 1.0, 1.25])
    assert tax_factor(offers, "net", None) == pytest.approx([1 / 1.19, 1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("mode", "vat", "expected"),
    [("gross", 0.19, (1.19, 1.10)), ("net", None, (1.00, 1.10 / 1.19))],
)
def test_uc_089_net_and_gross_prices_are_compared_on_one_footing(mode, vat, expected):
    offers = from_rows(
        "test",
        "1",
        [
            {"tax": "net", "price_usd_per_hour": 1.00},
            {"tax": "gross", "vat_fraction": 0.19, "price_usd_per_hour": 1.10},
        ],
    )
    prices = offers.price_usd_per_hour * tax_factor(offers, mode, vat)
    assert prices == pytest.approx(expected, abs=5e-4)


RULES = st.fixed_dictionaries(
    {
        "market": st.sampled_from(["on-demand", "spot", "dedicated"]),
        "price_usd_per_hour": st.floats(0.01, 100),
        "billing_step_s": st.sampled_from([1.0, 60.0, 3600.0, np.nan]),
        "billing_minimum_s": st.sampled_from([0.0, 60.0, 3600.0]),
        "licence_usd_per_month": st.sampled_from([0.0, 200.0]),
    }
)
USED = st.floats(1.0, 5e6)


@given(RULES, USED, st.floats(0, 50))
def test_the_lines_add_up_to_the_bill_and_none_is_negative(row, used_s, prepaid_h):
    agreed = make_terms(prepaid_h=prepaid_h, **row)
    lines = bill_lines(agreed, 0, {"preparation": used_s / 4, "compute": used_s * 3 / 4}, "test")
    assert all(line.amount_usd >= 0 and line.quantity > 0 for line in lines)
    assert sum(line.amount_usd for line in lines) == pytest.approx(bill_usd(agreed, np.array([used_s]))[0], rel=1e-6)


@given(RULES, USED, st.floats(1.0, 3.0))
def test_longer_use_and_a_dearer_price_never_lower_the_bill(row, used_s, factor):
    assert bill(used_s * factor, **row) >= bill(used_s, **row)
    assert bill(used_s, **row | {"price_usd_per_hour": row["price_usd_per_hour"] * factor}) >= bill(used_s, **row)


@given(RULES, USED)
def test_what_is_billed_covers_what_is_used(row, used_s):
    assert billed_s(make_terms(**row), np.array([used_s]))[0] >= used_s * (1 - 1e-8)


def test_the_bill_follows_time_one_to_one_by_the_second_and_not_at_all_within_a_month():
    week, narrow = np.array([168 * HOUR]), np.array([0.1])
    assert elasticity(make_terms(billing_step_s=1), week, narrow)[0] == pytest.approx(1, abs=1e-4)
    assert elasticity(make_terms(market="dedicated"), week, narrow)[0] == 0
