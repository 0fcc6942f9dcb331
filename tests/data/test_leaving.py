"""The bundled facts about leaving a cloud, as the program reads them, and against the bills of a real sample."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import gpuwise
from gpuwise.own.checklist import Use, checklist
from gpuwise.store import leaving, package

BUILT = date(2026, 11, 30)
FOLDER = Path(gpuwise.__file__).parent / "data"
SAMPLE = Path(__file__).parents[3] / "shared" / "data" / "focus" / "focus_1_0_sample.csv"
CLOUDS = ("aws", "azure", "gcp")

READERS: dict[str, Callable[[], Sequence[Any]]] = {
    "services": leaving.services, "waivers": leaving.waivers, "links": leaving.links,
    "cold_tiers": leaving.cold_tiers, "lead_times": leaving.lead_times,
}  # fmt: skip


@pytest.mark.parametrize("table", READERS)
def test_every_row_of_a_table_is_read_and_read_once(table: str) -> None:
    with (FOLDER / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(one.source, one.note) for one in READERS[table]()] == [(row["source"], row["note"]) for row in rows]
    assert READERS[table]() is READERS[table]()


def test_what_nobody_states_is_none_and_not_zero() -> None:
    assert all(one.effort_low_days is None and one.effort_high_days is None for one in leaving.services())
    assert any(one.usd_per_month is None for one in leaving.links())
    assert all(one.usd_per_month is None or one.usd_per_month > 0 for one in leaving.links())
    at_cost = [one for one in leaving.waivers() if one.usd_per_gb is None]
    assert all("at cost" in one.condition for one in at_cost)
    assert at_cost


def test_the_law_changes_from_at_cost_to_nothing_without_a_gap() -> None:
    before, after = (one for one in leaving.waivers() if (one.where, one.covers) == ("EU", "switching"))
    assert before.valid_until is not None
    assert (after.valid_from - before.valid_until).days == 1
    assert (before.usd_per_gb, after.usd_per_gb, after.valid_until) == (None, 0.0, None)


def test_each_of_the_three_clouds_lets_all_data_go_for_nothing_on_a_condition() -> None:
    free = {one.where for one in leaving.waivers() if one.covers in ("exit", "switching") and one.usd_per_gb == 0}
    assert free >= set(CLOUDS)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_private_line_costs_less_a_gb_than_the_first_tier_of_the_internet(cloud: str) -> None:
    tariff = package.tariffs().on(BUILT).find(cloud, "egress", None)
    assert tariff is not None
    assert all(one.usd_per_gb < tariff.first_usd for one in leaving.links() if one.provider == cloud)
    assert any(one.provider == cloud for one in leaving.links())


def test_google_lists_its_lines_by_the_hour() -> None:
    monthly = {one.gbit_per_s: one.usd_per_month for one in leaving.links() if one.provider == "gcp"}
    assert monthly == {10: pytest.approx(2.328 * 730), 100: pytest.approx(23.28 * 730)}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_tier_that_bills_more_days_stores_for_less_and_bills_what_is_read(cloud: str) -> None:
    tiers = [one for one in leaving.cold_tiers() if one.provider == cloud]
    assert {one.least_days for one in tiers} >= {30, 90}
    for one in tiers:
        assert one.usd_per_gb_month is not None
        assert one.retrieval_usd_per_gb is not None
        assert 0 < one.retrieval_usd_per_gb <= 0.05
        longer = [two.usd_per_gb_month for two in tiers if two.least_days > one.least_days]
        assert all(price is not None and price < one.usd_per_gb_month for price in longer)


def test_uc_096_hardware_arrives_months_later() -> None:
    servers = [one for one in leaving.lead_times() if one.kind == "server"]
    assert max(one.high_weeks for one in servers) == 52
    assert min(one.low_weeks for one in servers) > max(
        one.high_weeks for one in leaving.lead_times() if one.kind == "cloud"
    )


def test_an_assumption_among_the_lead_times_says_so() -> None:
    assumed = [one for one in leaving.lead_times() if one.source == "project"]
    assert assumed
    assert all("assumption" in one.note for one in assumed)


def test_object_stores_say_why_minio_is_not_named() -> None:
    stores = [one for one in leaving.services() if (one.category, one.gives) == ("storage", "objects")]
    assert {one.provider for one in stores} >= set(CLOUDS)
    assert all("MinIO" in one.note and "MinIO" not in one.replacement for one in stores)


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the sample of FOCUS (../shared/data/focus) is not there")
def test_every_service_of_the_sample_of_focus_is_in_the_table() -> None:
    with SAMPLE.open(encoding="utf-8", newline="") as file:
        billed = {(row["ProviderName"], row["ServiceName"]) for row in csv.DictReader(file)}
    billed = {(provider, name) for provider, name in billed if name not in ("", "NULL")}
    found = checklist([Use(provider=p, name=n) for p, n in sorted(billed)], leaving.services(), BUILT)
    assert [item.use for item in found.items if item.service is None] == []
    assert len(found.items) >= 30
