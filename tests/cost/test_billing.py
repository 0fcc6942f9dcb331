"""The bill of one run: public rules as tables, and what must hold for every rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.catalogue import from_rows
from gpuwise.cost.billing import Beside, Use, bill_lines, bill_usd, billed_s, elasticity, share_usd, tax_factor, terms

HOUR = 3600.0


def make_terms(hours_per_month=None, prepaid_h=0.0, covered=0.0, vat=0.0, start_s=None, **row):
    """Terms of one offer at 2 USD an hour unless the row says otherwise."""
    row = {"market": "on-demand", "price_usd_per_hour": 2.0} | row
    offers = from_rows("test", "1", [row])
    return terms(
        offers,
        price_usd_per_hour=offers.price_usd_per_hour,
        prepaid_h=np.array([prepaid_h]),
        covered_usd_per_hour=np.array([covered]),
        cap_h=offers.monthly_cap_h,
        vat_fraction=np.array([vat]),
        step_unknown_s=HOUR,
        hours_per_month=hours_per_month,
        start_s=start_s,
    )


def using(used_s, **more):
    """One offer, used for so long."""
    return Use(used_s=np.array([used_s]), **{name: np.array([value]) for name, value in more.items()})


def bill(used_s, sessions=1.0, **row):
    return float(bill_usd(make_terms(**row), using(used_s, starts=sessions))[0])


PUBLISHED = [
    # what the provider's own page (or a case that a user met) says is billed: rule, hours of use, starts, price, bill
    ("aws-hour-billing: by the second after 60 s", {"billing_step_s": 1, "billing_minimum_s": 60}, 5 / 3600, 1, 1 / 60),
    ("aws-hour-billing: each start counts 60 s", {"billing_step_s": 1, "billing_minimum_s": 60}, 20 / 3600, 4, 1 / 15),
    ("gcp-vm-pricing: 30 s are a minute", {"billing_step_s": 1, "billing_minimum_s": 60}, 30 / 3600, 1, 1 / 60),
    ("azure, 2025-06: 90 s are five minutes", {"billing_step_s": 1, "billing_minimum_s": 300}, 90 / 3600, 1, 1 / 12),
    ("lambda-billing: by the minute", {"billing_step_s": 60}, 61 / 3600, 1, 2 / 60),
    ("hetzner-billing: a few minutes are an hour", {"billing_step_s": 3600, "billing_minimum_s": 3600}, 0.05, 1, 1.0),
    ("linode: 2.5 h at 1.30 are 3.90", {"billing_step_s": 3600, "price_usd_per_hour": 1.30}, 2.5, 1, 3.90),
    ("linode: 24 h at 0.0075 are 0.18", {"billing_step_s": 3600, "price_usd_per_hour": 0.0075}, 24, 1, 0.18),
    ("alestic, before 2017: an hour with two restarts is three", {"billing_step_s": 3600}, 1.0, 3, 3.0),
    ("digitalocean-cap: 336 h of a 10 USD month are 5",
     {"billing_step_s": 3600, "monthly_cap_h": 672, "price_usd_per_hour": 10 / 672}, 336, 1, 5.0),
    ("digitalocean-cap: 700 h of a 10 USD month are 10",
     {"billing_step_s": 3600, "monthly_cap_h": 672, "price_usd_per_hour": 10 / 672}, 700, 1, 10.0),
    ("vultr-billing: 672 h are charged, the rest of the month is free",
     {"billing_step_s": 3600, "monthly_cap_h": 672}, 730, 1, 672.0),
    ("vultr-billing: the next month begins anew", {"billing_step_s": 3600, "monthly_cap_h": 672}, 731, 1, 673.0),
    ("UC-083 A: 2 min by the whole hour", {"billing_step_s": 3600, "price_usd_per_hour": 1.00}, 2 / 60, 1, 1.00),
    ("UC-083 B: by the second, at least a minute",
     {"billing_step_s": 1, "billing_minimum_s": 60, "price_usd_per_hour": 1.50}, 2 / 60, 1, 0.05),
    ("UC-083 C: at least 15 min, and a workspace fee",
     {"billing_step_s": 1, "billing_minimum_s": 900, "fee_usd": 0.10, "price_usd_per_hour": 1.20}, 2 / 60, 1, 0.40),
    ("UC-083 D: hours of the clock from 9:59",
     {"billing_step_s": 3600, "billing_clock": "calendar", "start_s": 9 * HOUR + 59 * 60, "price_usd_per_hour": 0.90},
     2 / 60, 1, 1.80),
    ("ovh-billing: day 4 09:40 to day 12 16:30 at 0.111 are 200 hours of the clock",
     {"billing_step_s": 3600, "billing_clock": "calendar", "start_s": 9 * HOUR + 40 * 60, "price_usd_per_hour": 0.111},
     8 * 24 + 6 + 50 / 60, 1, 200 * 0.111),
    ("ovh-billing: from the full hour nothing is lost",
     {"billing_step_s": 3600, "billing_clock": "calendar", "start_s": 9 * HOUR}, 2.0, 1, 2.0),
    ("a session from any minute touches one step more on average",
     {"billing_step_s": 3600, "billing_clock": "calendar"}, 2.0, 1, 3.0),
]  # fmt: skip


@pytest.mark.parametrize(("page", "row", "hours", "starts", "usd"), PUBLISHED, ids=[rule[0] for rule in PUBLISHED])
def test_the_bill_is_the_one_that_the_page_prints(page, row, hours, starts, usd):
    row = {"price_usd_per_hour": 1.0} | row
    assert bill(hours * HOUR, sessions=starts, **row) == pytest.approx(usd, rel=1e-9)


def test_uc_091_what_a_spend_commitment_does_not_use_in_an_hour_is_lost():
    """12 h at 2 USD under 1 USD an hour: half of each hour is paid, however many idle hours there were before."""
    agreed = make_terms(covered=1.0, billing_step_s=1)
    assert bill_usd(agreed, using(12 * HOUR))[0] == pytest.approx(12)
    lines = bill_lines(agreed, using(sum(({"compute": 12 * HOUR}).values())), {"compute": 12 * HOUR}, "test")
    assert [(x.kind, x.amount_usd) for x in lines] == [("compute", 24.0), ("covered by a commitment", -12.0)]
    assert bill_usd(make_terms(covered=5.0, billing_step_s=1), using(12 * HOUR))[0] == 0


def test_vat_is_a_line_of_its_own():
    taxed = make_terms(vat=0.19, billing_step_s=1)
    lines = bill_lines(taxed, using(sum(({"compute": 10 * HOUR}).values())), {"compute": 10 * HOUR}, "test")
    assert [(x.kind, x.amount_usd) for x in lines] == [("compute", 20.0), ("VAT", pytest.approx(3.8))]
    assert bill_usd(taxed, using(10 * HOUR))[0] == pytest.approx(23.8)


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
    assert billed_s(make_terms(**row), using(used_s))[0] == pytest.approx(billed, rel=1e-12)


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
    assert bill_usd(agreed, using(10 * HOUR))[0] == pytest.approx(18)
    lines = bill_lines(
        agreed,
        using(sum(({"preparation": HOUR, "compute": 9 * HOUR}).values())),
        {"preparation": HOUR, "compute": 9 * HOUR},
        "test",
    )
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
    slopes = elasticity(agreed, Use(used_s=np.array([1.05 * HOUR])), np.array([0.2]))
    assert np.isfinite(slopes).all()
    assert elasticity(make_terms(prepaid_h=9.0), Use(used_s=np.array([HOUR])), np.array([0.2]))[0] == 0


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
        "fee_usd": st.sampled_from([0.0, 0.1]),
        "monthly_cap_h": st.sampled_from([np.nan, 672.0]),
        "billing_clock": st.sampled_from([None, "calendar"]),
        "vat": st.sampled_from([0.0, 0.19]),
        "covered": st.sampled_from([0.0, 0.5]),
    }
)
STARTS = st.sampled_from([1.0, 2.0, 7.0])
USED = st.floats(1.0, 5e6)


@given(RULES, USED, st.floats(0, 50), STARTS, st.sampled_from([0.0, 0.003]), st.sampled_from([0.0, 12.0]))
def test_the_lines_add_up_to_the_bill_which_is_never_negative(row, used_s, prepaid_h, starts, hourly, once):
    agreed = make_terms(prepaid_h=prepaid_h, **row).beside(np.array([hourly]), np.array([once]))
    parts = {"preparation": used_s / 4, "compute": used_s * 3 / 4}
    things = [
        Beside(kind="disk", quantity=used_s / HOUR, unit="GB-month", unit_price_usd=hourly, source="test"),
        Beside(kind="egress", quantity=1.0, unit="GB", unit_price_usd=once, source="test"),
    ]
    lines = bill_lines(agreed, using(used_s, starts=starts), parts, "test", things)
    total = bill_usd(agreed, using(used_s, starts=starts))[0]
    assert total >= 0
    assert all(line.quantity > 0 for line in lines)
    assert all(line.amount_usd >= 0 or line.kind == "covered by a commitment" for line in lines)
    assert sum(line.amount_usd for line in lines) == pytest.approx(total, rel=1e-6, abs=1e-9)


@given(RULES, USED, st.floats(1.0, 3.0), STARTS)
def test_longer_use_and_a_dearer_price_never_lower_the_bill(row, used_s, factor, starts):
    once = bill(used_s, sessions=starts, **row)
    slack = 1e-9 * (1 + once)
    assert bill(used_s * factor, sessions=starts, **row) >= once - slack
    dearer = row | {"price_usd_per_hour": row["price_usd_per_hour"] * factor}
    assert bill(used_s, sessions=starts, **dearer) >= once - slack


@given(RULES, USED, STARTS)
def test_what_is_billed_covers_what_is_used(row, used_s, starts):
    assert billed_s(make_terms(**row), using(used_s, starts=starts))[0] >= used_s * (1 - 1e-8)


@given(st.sampled_from([1.0, 60.0, 3600.0]), st.integers(1, 700), st.floats(0.01, 100))
def test_beyond_the_step_the_bill_grows_in_proportion(step_s, steps, price):
    row = {"billing_step_s": step_s, "price_usd_per_hour": price}
    assert bill(steps * step_s, **row) == pytest.approx(steps * bill(step_s, **row))


def test_the_bill_follows_time_one_to_one_by_the_second_and_not_at_all_within_a_month():
    week, narrow = np.array([168 * HOUR]), np.array([0.1])
    assert elasticity(make_terms(billing_step_s=1), Use(used_s=week), narrow)[0] == pytest.approx(1, abs=1e-4)
    assert elasticity(make_terms(market="dedicated"), Use(used_s=week), narrow)[0] == 0
