"""FOCUS exports as they are found: the public sample, and months made by the rules."""

from __future__ import annotations

import gzip
import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.own.golden_focus import CLOCKS_ON, MONEY, VERSIONS, Golden, golden
from tests.sources.exports import as_parquet, month

from gpuwise.own.usage import Bill
from gpuwise.sources.focus import Wish, read_bill
from gpuwise.sources.instances import Instances

SAMPLE = Path(__file__).parents[3] / "shared" / "data" / "focus" / "focus_1_0_sample.csv"
HOURS = ("gpu_h", "standard_gpu_h", "committed_gpu_h", "spot_gpu_h")


@pytest.fixture(scope="module")
def made() -> Golden:
    return golden()


@pytest.fixture(scope="module")
def months_of_use(made: Golden, known: Instances, tmp_path_factory: pytest.TempPathFactory) -> Bill:
    """The golden case: AWS as CSV, Azure as gzip, Google as Parquet, together."""
    folder = tmp_path_factory.mktemp("golden")
    aws, azure, google = folder / "aws.csv", folder / "azure.csv.gz", folder / "google.parquet"
    aws.write_text(made.text("aws"), encoding="utf-8")
    azure.write_bytes(gzip.compress(made.text("azure").encode()))
    as_parquet(folder, made.text("google"), google)
    return read_bill([aws, azure, google], Wish(instances=known))


# ---- the public sample ----


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the collected sample (../shared/data/focus) is not there")
def test_the_public_sample_is_read_with_all_its_quirks(known):
    bill = read_bill([SAMPLE], Wish(instances=known))
    assert (bill.rows, bill.rejected, sum(m.gpu_rows for m in bill.months)) == (1000, 0, 10)
    assert sum(m.instance_h for m in bill.months) == pytest.approx(7.969723, abs=1e-6)
    assert bill.gpu_h == pytest.approx(7.969723, abs=1e-6)
    assert sum(m.gpu_effective for m in bill.months) == pytest.approx(12.126483, abs=1e-6)
    assert sum(m.billed for m in bill.months) == pytest.approx(20.520227, abs=1e-6)
    assert any("AWS: EffectiveCost is rounded" in str(note) for note in bill.notes)
    assert set(bill.by_accelerator) == {"m60-half", "a10g"}
    assert bill.gpus.sum() == pytest.approx(7.969723)


def test_rounding_shows_in_what_is_used_and_is_not_a_trifle(write):
    rounded, exact = {"EffectiveCost": "2", "BilledCost": "1.6"}, {"EffectiveCost": "0.004", "BilledCost": "0.004"}
    bill = read_bill([write(*[rounded] * 5, exact)])
    assert month(bill).effective == pytest.approx(8.004)
    fees = [{"ChargeCategory": kind, "EffectiveCost": "0", "BilledCost": "9.5"} for kind in ("Purchase", "Tax")]
    covered = {"CommitmentDiscountStatus": "Used", "EffectiveCost": "1", "BilledCost": "0.5"}
    plain = read_bill([write(*fees * 3, *[covered] * 6, name="plain.csv")])
    assert month(plain).effective == 6
    assert not any("rounded" in str(note) for note in plain.notes)


# ---- the golden case ----


def test_each_month_and_currency_comes_to_what_the_plan_says(made, months_of_use):
    got = {(m.currency, m.month): m for m in months_of_use.months}
    assert {key for key, sums in made.expected.months.items() if any(sums.values())} == set(got)
    for key, sums in made.expected.months.items():
        for name in (*MONEY, *HOURS):
            assert getattr(got[key], name) == pytest.approx(sums.get(name, 0.0), abs=1e-5), (key, name)


def test_each_hour_of_each_accelerator_is_the_plans(made, months_of_use):
    assert set(months_of_use.by_accelerator) == set(made.expected.hours)
    for accelerator, gpus in months_of_use.by_accelerator.items():
        planned = np.zeros(len(gpus))
        for when, amount in made.expected.hours[accelerator].items():
            planned[int((when - months_of_use.start) / timedelta(hours=1))] += amount
        np.testing.assert_allclose(gpus, planned, atol=1e-6)
    assert months_of_use.gpus.sum() == pytest.approx(months_of_use.gpu_h)


def test_the_sunday_on_which_clocks_go_on_has_23_hours_none_twice_and_none_missing(months_of_use):
    at = int((CLOCKS_ON - months_of_use.start) / timedelta(hours=1))
    night = months_of_use.by_accelerator["a10g"][at - 1 : at + 24]
    spot = np.array([6.0 * (hour % 3 == 0) for hour in (22, *range(23, 24), *range(23))])
    assert (night - spot).tolist() == [0, *[1] * 23, 0]


def test_every_service_of_the_plan_is_there_with_its_spend(made, months_of_use):
    got = {(s.provider, s.service, s.currency): s.effective for s in months_of_use.services}
    assert got == pytest.approx(dict(made.expected.services), abs=1e-5)


def test_machines_that_nobody_can_count_are_named_with_rows_hours_and_cost(made, months_of_use):
    (unknown,) = months_of_use.unknown
    plan = made.expected
    assert (unknown.machine, unknown.rows, unknown.hours) == ("p9.48xlarge", plan.unknown_rows, plan.unknown_h)
    assert unknown.effective == pytest.approx(plan.unknown_effective)


def test_commitments_are_told_with_use_waste_and_end(months_of_use):
    reserved, plan = months_of_use.commitments
    assert (reserved.id, reserved.category, reserved.gpu_fraction) == ("arn:reservation/p3", "Usage", 1)
    assert reserved.utilisation_fraction == pytest.approx(0.75)
    assert reserved.until == datetime(2026, 5, 1, tzinfo=UTC)
    assert reserved.first == datetime(2026, 1, 1, tzinfo=UTC)
    assert (plan.gpu_fraction, plan.utilisation_fraction) == (pytest.approx(0.6), pytest.approx(0.75))


def test_egress_and_storage_are_told_apart(months_of_use):
    flows = {(flow.kind, flow.provider): flow.effective for flow in months_of_use.flows}
    assert flows == {("egress", "AWS"): pytest.approx(120 * 11), ("storage", "AWS"): pytest.approx(120 * 512 / 7)}


def test_rates_make_one_currency_of_two_and_change_no_hour(made, known, months_of_use, tmp_path):
    paths = []
    for provider in VERSIONS:
        paths.append(tmp_path / f"{provider}.csv")
        paths[-1].write_text(made.text(provider), encoding="utf-8")
    bill = read_bill(paths, Wish(instances=known, rates={"EUR": 1.1}))
    assert bill.currencies == ("USD",)
    assert bill.gpu_h == pytest.approx(months_of_use.gpu_h)
    total = {c: sum(m.billed for m in months_of_use.months if m.currency == c) for c in ("EUR", "USD")}
    assert sum(m.billed for m in bill.months) == pytest.approx(total["USD"] + 1.1 * total["EUR"])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), parts=st.integers(1, 4))
def test_splitting_a_bill_over_files_or_shuffling_its_rows_changes_nothing(seed, parts, known):
    made = golden(["2026-03"])
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for provider in VERSIONS:
            rows = made.rows[provider][:]
            rng.shuffle(rows)
            for part in range(parts):
                paths.append(Path(folder) / f"{provider}{part}.csv")
                paths[-1].write_text(made.text(provider, rows[part::parts]), encoding="utf-8")
        rng.shuffle(paths)
        bill = read_bill(paths, Wish(instances=known))
    (euro, *_, dollar) = bill.months
    for m in (euro, dollar):
        sums = made.expected.months[m.currency, m.month]
        for name in (*MONEY, *HOURS):
            assert getattr(m, name) == pytest.approx(sums.get(name, 0.0), abs=1e-5), (m.currency, name)
    for accelerator, gpus in bill.by_accelerator.items():
        # the correction is of a day of February, on which nothing ran: it is cut off at 0 there
        expected = sum(amount for amount in made.expected.hours[accelerator].values() if amount > 0)
        assert gpus.sum() == pytest.approx(expected)
