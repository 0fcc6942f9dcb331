"""Commitments in a bill, from its rows to the promise, the month to order in, the page and the document."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpuwise import faces
from gpuwise.render.data import json_text
from tests.bills import COLUMNS, DAY, H100, HOUR, answer, asked, bill, facts_of, machines, row, warned

pytest.importorskip("duckdb", reason="DuckDB reads the bills (extra [focus])")

NAME = "arn:reservation/p5"
USED_USD, UNUSED_USD = 30.0, 30.0
"""A machine-hour of the reservation, used or not."""
MONTHS = (8, 9, 10, 11)
DAYS = 31 + 30 + 31 + 30


def reserved(path: Path, machines_: int, until: datetime | None, used: bool = True) -> Path:
    """Four months of three machines on demand, beside so many that are reserved: 18 hours of a day used, 6 not."""
    bill(path, lambda _month, _day, _hour: 3, MONTHS)
    named = {"CommitmentDiscountId": NAME, "CommitmentDiscountType": "Reserved Instance"}
    first = datetime(2026, 8, 1, tzinfo=UTC)
    rows = []
    for day in (first + timedelta(days=number) for number in range(DAYS)):
        if used:
            rows.append(machines(day, 18, machines_, **(H100 | {"usd_per_hour": USED_USD}), **named,
                                 PricingCategory="Committed", CommitmentDiscountStatus="Used"))  # fmt: skip
        rows.append(row(day + 18 * HOUR, day + 24 * HOUR, "Amazon Elastic Compute Cloud", 6 * machines_ * UNUSED_USD,
                        **named, PricingCategory="Committed", CommitmentDiscountStatus="Unused"))  # fmt: skip
    if until is not None:
        rows.append(row(first, until, "Amazon Elastic Compute Cloud", 262_800 * machines_, **named,
                        ChargeCategory="Purchase", EffectiveCost="0"))  # fmt: skip
    titles = (*COLUMNS, "CommitmentDiscountId", "CommitmentDiscountType", "CommitmentDiscountStatus")
    with path.open(encoding="utf-8", newline="") as file:
        plain = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, titles, restval="")
        writer.writeheader()
        writer.writerows([*plain, *rows])
    return path


@pytest.fixture(scope="module")
def bound(tmp_path_factory) -> Path:
    """Eight machines of which the bill has the end: the last day of July 2027."""
    folder = tmp_path_factory.mktemp("bills")
    return reserved(folder / "bound.csv", 8, datetime(2027, 8, 1, tzinfo=UTC))


def test_what_was_bought_becomes_a_promise_until_its_end(bound):
    found = answer(bound)
    (promise,) = found.promises
    a_day = 8 * 24 * USED_USD
    assert promise.name == NAME
    assert promise.usd_per_month == pytest.approx(a_day * 365 / 12, rel=1e-6), "used or not, all of it for GPUs"
    assert promise.end_month == 8, "December to July are eight months"
    assert found.exit.p_before.keys() == {NAME}


def test_the_order_waits_for_the_end_of_what_was_bought(bound, tmp_path):
    soon = {"set": ["lead_weeks=13"]}
    found = answer(bound, **soon)
    free = answer(reserved(tmp_path / "free.csv", 8, None), **soon)
    assert (free.promises, free.exit.order_month) == ((), 0)
    assert found.exit.order_month == 8 - round(found.lead_months + 0.5), "so that servers are there when it ends"
    assert "does not say until when" in warned(free)
    assert "The order waits for the end of a commitment" in facts_of(bound, **soon)[0]
    stranded = found.promises[0].usd_per_month * (found.promises[0].end_month - found.lead_months)
    assert free.exit.value_usd.p50 - found.exit.value_usd.p50 > 0.3 * stranded, "paid on for the work that has left"


def test_what_the_person_says_of_the_same_end_stands_for_it(bound):
    (promise,) = answer(bound, committed_until=["2027-07-31=1000USD"]).promises
    assert (promise.name, promise.usd_per_month, promise.end_month) == ("2027-07-31", 1000, 8)


def test_each_commitment_is_shown_with_its_use_its_waste_and_its_end(bound, tmp_path):
    text, why = facts_of(bound)[1][NAME]
    assert "a month until 2027-07; the date comes before it with" in text
    wasted_usd = 8 * 6 * DAYS * UNUSED_USD
    assert why == f"75 % of it used; {wasted_usd:,.0f} USD left unused"
    document = json.loads(json_text(faces.exit(asked(bound), today=DAY).json()))["result"]
    (one,) = document["commitments_of_the_bill"]
    assert (one["name"], one["end"], one["gpu_fraction"]) == (NAME, "2027-07-31", 1)
    assert one["utilisation_fraction"] == pytest.approx(0.75)
    assert one["unused_usd"] == pytest.approx(wasted_usd)
    assert document["commitments"][0]["end_month"] == 8
    without_end = facts_of(reserved(tmp_path / "free.csv", 1, None))[1][NAME]
    assert without_end[0] == "the bill does not say until when"


def test_a_commitment_that_nothing_used_is_shown_and_in_no_promise(tmp_path):
    path = reserved(tmp_path / "idle.csv", 2, datetime(2027, 8, 1, tzinfo=UTC), used=False)
    found = answer(path)
    assert found.promises == ()
    assert "nothing used it" in warned(found)
    text, why = facts_of(path)[1][NAME]
    assert text == "until 2027-07-31"
    assert why.startswith("0 % of it used")
