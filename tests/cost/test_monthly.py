"""Sums by kind, month and currency."""

from __future__ import annotations

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.cost.monthly import KINDS, Ledger
from gpuwise.request import CHOICES


def test_the_kinds_are_those_that_a_person_can_ask_for():
    assert tuple(KINDS) == CHOICES["cost_kind"]


def test_currencies_and_kinds_stay_apart():
    ledger = Ledger()
    for kind, currency in (("billed", "USD"), ("billed", "EUR"), ("list", "USD")):
        ledger.add(kind, "2026-01", currency, 1.0)
    assert [(m.currency, m.amount) for m in ledger.months("billed")] == [("EUR", 1), ("USD", 1)]
    assert dict(ledger.totals("billed")) == {"EUR": 1, "USD": 1}


@given(st.lists(st.floats(-1e12, 1e12), max_size=200))
def test_a_sum_does_not_depend_on_how_many_small_rows_it_has(amounts):
    ledger = Ledger()
    for amount in amounts:
        ledger.add("billed", "2026-01", "USD", amount)
    months = ledger.months("billed")
    assert (months[0].amount if months else 0.0) == pytest.approx(fsum(amounts), abs=1e-3)


def test_a_million_cents_are_ten_thousand():
    ledger = Ledger()
    for _ in range(1_000_000):
        ledger.add("billed", "2026-01", "USD", 0.01)
    assert ledger.months("billed")[0].amount == 10_000
