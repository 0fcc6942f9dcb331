"""The bundled facts as values."""

from __future__ import annotations

from collections.abc import Callable, Sized
from datetime import date

import pytest

from gpuwise.catalogue import Coded
from gpuwise.store import leaving, package


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


@pytest.mark.parametrize(
    ("read", "table"),
    [
        (package.servers, "servers"),
        (package.hosting, "hosting"),
        (package.carbon, "carbon"),
    ],
)
def test_every_row_of_a_table_becomes_one_value(read: Callable[[], Sized], table: str) -> None:
    assert len(read()) == len(package.tables()[table]) > 0


def test_a_server_without_a_public_price_says_what_to_do() -> None:
    servers = package.servers()
    unpriced = [server for server in servers if server.price_usd is None]
    assert {"PowerEdge R750", "PowerEdge R740xd", "PowerEdge XE8545"} <= {server.model for server in unpriced}
    for server in unpriced:
        assert "--server-price" in str(server.reasons["price_usd"])
    assert all(not server.reasons for server in servers if server.price_usd is not None)


def test_a_price_in_euros_is_that_of_the_bundled_rate() -> None:
    in_euros = [server for server in package.servers() if server.currency == "EUR"]
    assert in_euros
    for server in in_euros:
        assert server.price_usd == pytest.approx((server.price_native or 0.0) * package.fx()["EUR"].usd_per_unit)


def test_the_price_at_release_is_a_list_price_and_not_an_offer() -> None:
    kinds = {(s.model, s.observed): s.price_kind for s in package.servers() if s.price_usd is not None}
    assert kinds["DGX A100 320GB", date(2020, 5, 21)] == "list"
    assert set(kinds.values()) == {"list", "offer", "street", "insured value"}


def test_carbon_is_found_by_the_code_of_a_country_and_names_its_year() -> None:
    germany = package.carbon()["DE"]
    assert germany.name == "Germany"
    assert 100 < germany.g_co2e_per_kwh < 700
    assert germany.year >= 2022
    assert all(len(code) == 2 for code in package.carbon())


def test_what_nobody_can_assume_has_a_reason_and_no_value() -> None:
    unassumed = package.unassumed()
    assert {"demand_growth_per_year", "tax_fraction"} <= unassumed.keys()
    assert unassumed.keys().isdisjoint(package.assumptions())
    assert all(str(reason).startswith("no figure") for reason in unassumed.values())


def test_a_service_that_ended_says_until_when_it_was_there() -> None:
    named = {service.name: service for service in leaving.services()}
    assert named["Azure AI Personalizer"].valid_until == date(2026, 10, 1)
    assert named["Cloud TPU"].portability == "C"
    assert "amazon s3" in named["Amazon Simple Storage Service"].names
