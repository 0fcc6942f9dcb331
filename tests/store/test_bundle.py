"""The bundled facts as values."""

from __future__ import annotations

from datetime import date

import pytest

from gpuwise.catalogue import Coded
from gpuwise.store import package


def test_every_bundled_offer_is_read_and_none_is_refused() -> None:
    offers, rows = package.offers(), package.tables()["offers"]
    assert offers.rejects == ()
    assert len(offers) == len(rows)
    assert [offers.offer_id(i) for i in range(len(offers))] == [row["id"] for row in rows]


def test_the_price_an_hour_is_the_one_the_table_states() -> None:
    offers, rows = package.offers(), package.tables()["offers"]
    stated = [float(row["price_usd_per_hour"] or "nan") for row in rows]
    assert offers.price_usd_per_hour.tolist() == pytest.approx(stated, rel=1e-6, nan_ok=True)


def test_every_id_of_an_offer_is_an_accelerator() -> None:
    column: Coded = package.offers().accelerator
    assert {i for text in column.values for i in text.split("|")} <= set(package.accelerators())


def test_a_benchmark_row_is_made_only_for_the_workloads_asked_for() -> None:
    some = package.throughput({"resnet50"})
    assert {row.workload for row in some} == {"resnet50"}
    assert some == tuple(row for row in package.throughput() if row.workload == "resnet50")


def test_machines_assumptions_and_rates_are_dated_values() -> None:
    assert [m.example for m in package.machines()] == [True, True]
    assert package.assumptions()["preparation_s"].unit == "s"
    assert package.fx()["EUR"].observed == date(2026, 8, 14)
    assert package.sources()["S01"]["licence"] == "Apache-2.0"
    assert {"table", "row_key", "rule", "reason"} == set(package.left_out()[0])


def test_the_data_version_is_the_day_the_bundle_was_made() -> None:
    assert date.fromisoformat(package.version().replace(".", "-")) <= date(2026, 12, 31)


def test_a_workload_that_was_measured_may_be_counted() -> None:
    counts = package.counts()
    assert counts["adv_inception_v3@299"].gmacs == 5.73
