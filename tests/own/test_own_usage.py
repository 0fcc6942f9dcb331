"""Hours from charge periods, and what counts where in a bill."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.own.facts import JANUARY, NO_SPANS, READING, fact, unused

from gpuwise.errors import InvalidInput
from gpuwise.own.booking import booked
from gpuwise.own.usage import Spans, hourly, resolution_h, spread

HOUR_OF_JANUARY = JANUARY.timestamp() / 3600


def spans(*rows: tuple[str | None, float, float, float]) -> Spans:
    """Accelerator, start and end in hours of January, GPU-hours."""
    names, start, end, gpu_h = zip(*rows, strict=True)
    offset = HOUR_OF_JANUARY
    return Spans(
        accelerators=names, start_h=np.array(start) + offset, end_h=np.array(end) + offset, gpu_h=np.array(gpu_h)
    )


# ---- hours ----


def test_an_hourly_row_stands_in_its_hour():
    start, series, _clipped = hourly(spans(("a", 5, 6, 8.0), ("a", 7, 8, 4.0)))
    assert start == datetime(2026, 1, 1, 5, tzinfo=UTC)
    assert series["a"].tolist() == [8, 0, 4]


def test_48_instance_hours_in_a_day_are_two_at_once_and_the_resolution_says_so():
    day = spans(("a", 0, 24, 48.0))
    assert hourly(day)[1]["a"].tolist() == [2.0] * 24
    assert resolution_h(day) == 24


def test_a_row_over_the_edge_of_an_hour_is_shared_by_both():
    assert hourly(spans(("a", 0.5, 1.5, 3.0)))[1]["a"].tolist() == [1.5, 1.5]


def test_a_row_without_a_length_stands_in_its_hour():
    assert hourly(spans(("a", 2, 2, 3.0)))[1]["a"].tolist() == [3.0]


def test_accelerators_stand_apart_and_an_unknown_one_under_none():
    series = hourly(spans(("a", 0, 1, 1.0), (None, 1, 2, 2.0)))[1]
    assert {name: gpus.tolist() for name, gpus in series.items()} == {None: [0, 2], "a": [1, 0]}


def test_gpus_in_use_are_never_below_zero_and_what_is_left_out_is_said():
    bill = booked([fact()], spans(("a", 0, 1, 4.0), ("a", 3, 4, -1.0)), READING)
    assert bill.gpus.tolist() == [4, 0, 0, 0]
    assert "take 1 GPU-hours" in str(bill.notes[0])


def test_without_hours_there_is_no_start_and_no_resolution():
    bill = booked([fact(role="none", gpu_h=0.0)], NO_SPANS, READING)
    assert (bill.start, bill.resolution_h, len(bill.gpus), bill.by_accelerator) == (None, None, 0, {})


@given(
    st.lists(
        st.tuples(st.floats(0, 90), st.floats(0, 60), st.floats(-50, 50)).map(lambda t: (t[0], t[0] + t[1], t[2])),
        min_size=1,
        max_size=30,
    )
)
def test_spreading_loses_no_gpu_hour(rows):
    start, end, gpu_h = (np.array(column) for column in zip(*rows, strict=True))
    assert spread(start, end, gpu_h, 151).sum() == pytest.approx(gpu_h.sum(), abs=1e-6)


def test_the_resolution_is_that_of_nearly_all_hours_not_of_one_odd_row():
    assert resolution_h(spans(*[("a", hour, hour + 1, 1.0) for hour in range(99)], ("a", 0, 700, 1.0))) == 1


# ---- what counts where ----


def only(bill):
    (month,) = bill.months
    return month


@pytest.mark.parametrize(
    ("kind", "field"),
    [("tax", "tax"), ("credit", "credits"), ("adjustment", "refunds"), ("correction", "refunds"),
     ("purchase", "purchases")],
)  # fmt: skip
def test_what_is_no_use_stands_apart_from_the_trend_and_is_in_the_cash(kind, field):
    month = only(booked([fact(), fact(kind=kind, gpu_h=0.0, billed=-3.0, effective=-3.0)], NO_SPANS, READING))
    assert (month.effective, month.gpu_effective, month.billed) == (10, 10, 7)
    assert getattr(month, field) == -3


def test_cash_is_of_the_invoices_month_and_the_trend_of_the_month_of_use():
    first, second = booked([fact(invoice="2026-02")], NO_SPANS, READING).months
    assert (first.effective, first.billed, first.gpu_h) == (10, 0, 4)
    assert (second.effective, second.billed, second.gpu_h) == (0, 10, 0)


def test_what_a_commitment_leaves_unused_raises_cost_and_not_hours():
    used = fact(status="used", pricing="committed", commitment="c")
    before, after = (only(booked(facts, NO_SPANS, READING)) for facts in ([used], [used, unused()]))
    assert after.gpu_effective == before.gpu_effective + 10
    assert after.unused == after.gpu_unused == 10
    assert after.gpu_h == before.gpu_h


def test_an_unused_part_that_names_no_machine_is_of_gpus_as_far_as_the_use_was():
    facts = [
        fact(status="used", commitment="c", effective=30.0),
        fact(status="used", commitment="c", effective=10.0, role="none", gpu_h=0.0),
        unused(role="none", effective=8.0),
    ]
    bill = booked(facts, NO_SPANS, READING)
    assert only(bill).gpu_unused == 6.0
    assert bill.commitments[0].gpu_fraction == 0.75
    assert bill.commitments[0].utilisation_fraction == pytest.approx(40 / 48)


def test_a_commitment_ends_when_what_was_bought_ends():
    end = datetime(2027, 1, 1, tzinfo=UTC)
    bought = fact(kind="purchase", commitment="c", last=end, role="none", gpu_h=0.0, effective=0.0)
    (seen,) = booked([bought], NO_SPANS, READING).commitments
    (unseen,) = booked([fact(commitment="c", status="used")], NO_SPANS, READING).commitments
    assert (seen.until, seen.bought, seen.utilisation_fraction) == (end, 10, None)
    assert unseen.until is None
    assert unseen.utilisation_fraction == 1


def test_an_unknown_machine_is_in_no_gpu_figure_and_is_named():
    bill = booked([fact(role="unknown", machine="p9.48xlarge", gpu_h=0.0, hours=5.0, rows=3)], NO_SPANS, READING)
    assert (only(bill).gpu_effective, only(bill).gpu_h, only(bill).effective) == (0, 0, 10)
    assert (bill.unknown[0].machine, bill.unknown[0].rows, bill.unknown[0].hours) == ("p9.48xlarge", 3, 5)
    assert "p9.48xlarge" in str(bill.notes[0])


def test_a_rounded_effective_cost_gives_way_to_what_was_billed_but_for_commitments():
    rounded = fact(effective=13.0, billed=12.126483, rows=10, odd=10, whole=10)
    committed = fact(effective=2.0, billed=0.0, status="used", commitment="c")
    bill = booked([rounded, committed], NO_SPANS, READING)
    assert only(bill).effective == pytest.approx(14.126483)
    assert "rounded" in str(bill.notes[0])


@pytest.mark.parametrize(("odd", "whole"), [(4, 4), (10, 9), (0, 0)])
def test_few_whole_amounts_or_one_that_is_not_are_no_rounding(odd, whole):
    bill = booked([fact(effective=13.0, billed=12.126483, odd=odd, whole=whole)], NO_SPANS, READING)
    assert only(bill).effective == 13.0


def test_currencies_stand_apart_unless_rates_are_given():
    facts = [fact(), fact(currency="EUR")]
    apart = booked(facts, NO_SPANS, READING)
    assert [(m.currency, m.effective, m.gpu_h) for m in apart.months] == [("EUR", 10, 4), ("USD", 10, 4)]
    assert "EUR, USD" in str(apart.notes[-1])
    month = only(booked(facts, NO_SPANS, READING, {"EUR": 1.1}))
    assert (month.currency, month.effective, month.billed, month.gpu_h) == (
        "USD",
        pytest.approx(21),
        pytest.approx(21),
        8,
    )
    assert month.list_cost == pytest.approx(12 + 13.2)


def test_a_currency_without_a_rate_is_refused_by_name():
    with pytest.raises(InvalidInput, match="GBP"):
        booked([fact(currency="GBP")], NO_SPANS, READING, {"EUR": 1.1})


def test_costs_that_no_row_has_are_none_and_not_zero():
    month = only(booked([fact(listed=None, contracted=None)], NO_SPANS, READING))
    assert (month.list_cost, month.contracted, month.gpu_list) == (None, None, None)


def test_a_purchase_that_is_no_commitment_is_said_to_be_missing_from_the_trend():
    bill = booked([fact(), fact(kind="purchase", role="none", gpu_h=0.0)], NO_SPANS, READING)
    assert only(bill).effective == 10
    assert "10.00 USD, which the trend lacks" in str(bill.notes[0])


@given(st.lists(st.floats(-100, -0.01), max_size=5), st.lists(st.floats(0.01, 100), min_size=1, max_size=5))
def test_credits_change_no_gpu_hour(amounts, costs):
    used = [fact(effective=cost) for cost in costs]
    given_ = [fact(kind="credit", billed=amount, effective=amount, gpu_h=0.0, hours=0.0) for amount in amounts]
    credited, plain = (only(booked(facts, NO_SPANS, READING)) for facts in ([*used, *given_], used))
    for name in ("gpu_h", "instance_h", "effective", "gpu_effective"):
        assert getattr(credited, name) == getattr(plain, name)
    assert credited.credits == pytest.approx(sum(amounts))
