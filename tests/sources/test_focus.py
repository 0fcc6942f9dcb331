"""FOCUS exports as they are found: the public sample, months made by the rules, and files with faults."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.own.golden_focus import CLOCKS_ON, MONEY, VERSIONS, Golden, golden

from gpuwise.errors import DataError, InvalidInput, UnknownName
from gpuwise.own.usage import Bill
from gpuwise.sources.focus import Wish, read_bill
from gpuwise.sources.instances import Instances, Machine, bare, instances
from gpuwise.store import package

SAMPLE = Path(__file__).parents[3] / "shared" / "data" / "focus" / "focus_1_0_sample.csv"
HOURS = ("gpu_h", "standard_gpu_h", "committed_gpu_h", "spot_gpu_h")


@pytest.fixture(scope="module")
def known() -> Instances:
    return instances(package.offers(), package.accelerators().values())


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


def as_parquet(folder: Path, text: str, path: Path, **options: object) -> None:
    import duckdb

    plain = folder / "plain.csv"
    plain.write_text(text, encoding="utf-8")
    with duckdb.connect() as database:
        database.read_csv(str(plain), **options).write_parquet(str(path))  # type: ignore[arg-type]


BASE = {
    "ProviderName": "AWS", "ServiceName": "EC2", "ServiceCategory": "Compute", "BillingCurrency": "USD",
    "ChargeCategory": "Usage", "ChargePeriodStart": "2026-06-10T00:00:00Z", "ChargePeriodEnd": "2026-06-10T01:00:00Z",
    "BillingPeriodStart": "2026-06-01T00:00:00Z", "BilledCost": "1.5", "EffectiveCost": "1.5",
    "ConsumedQuantity": "1", "ConsumedUnit": "Hours", "ChargeDescription": "$1.006 per On Demand g5.xlarge Hour",
}  # fmt: skip


@pytest.fixture
def write(tmp_path: Path):
    """write(row, …): a file of these rows, each as it differs from BASE; a column that is None is not there."""

    def made_(*rows: dict[str, str | None], name: str = "bill.csv", separator: str = ",") -> Path:
        full = [{**BASE, **row} for row in rows]
        titles = [
            title for title in dict.fromkeys(key for row in full for key in row) if full[0].get(title, "") is not None
        ]
        lines = [separator.join(titles), *(separator.join(cell(row.get(title)) for title in titles) for row in full)]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def cell(text: str | None) -> str:
        return '"' + (text or "").replace('"', '""') + '"'

    return made_


def month(bill: Bill):
    (one,) = bill.months
    return one


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


# ---- GPUs and hours of a row ----

CASES = [
    ("the count of SkuPriceDetails", {"SkuPriceDetails": '{"GpuCount": 8}', "ChargeDescription": "x"}, 8),
    ("the same with x_ and as a text", {"SkuPriceDetails": '{"x_GpuCount": "2"}', "ChargeDescription": "x"}, 2),
    ("a count goes before the table", {"SkuPriceDetails": '{"GpuCount": 3, "InstanceType": "g5.xlarge"}'}, 3),
    ("an instance type in the details", {"SkuPriceDetails": '{"InstanceType":"p4d.24xlarge"}'}, 8),
    ("x_InstanceType", {"x_InstanceType": "g5.48xlarge"}, 8),
    ("x_SkuInstanceType", {"x_SkuInstanceType": "Standard_NC48ads_A100_v4"}, 2),
    ("details in two columns", {"SkuPriceDetails": '{"CoreCount": 4}', "x_SkuDetails": '{"GpuCount": 2}'}, 2),
    ("a machine of SageMaker", {"ChargeDescription": "$1.408 per Hour for ml.g5.xlarge in training"}, 1),
    ("a meter of Azure", {"ChargeDescription": "x", "SkuMeter": "NC96ads A100 v4"}, 4),
    ("a meter of Azure's spot", {"ChargeDescription": "x", "SkuMeter": "NC24ads A100 v4 Spot"}, 1),
    ("a name of Azure", {"ChargeDescription": "Standard_ND96isr_H100_v5"}, 8),
    ("a machine of Google", {"ProviderName": "Google Cloud", "ChargeDescription": "a2-highgpu-4g"}, 4),
    ("a part of an hour", {"ConsumedQuantity": "0.25"}, 0.25),
    ("Hrs", {"ConsumedUnit": "Hrs"}, 1),
    ("hour(s)", {"ConsumedUnit": "hour(s)"}, 1),
    ("Instance-Hours", {"ConsumedUnit": "Instance-Hours"}, 1),
    ("days", {"ConsumedUnit": "Days"}, 24),
    ("minutes", {"ConsumedUnit": "Minutes", "ConsumedQuantity": "30"}, 0.5),
    ("hours of GPUs are not multiplied", {"ConsumedUnit": "GPU-Hours", "x_InstanceType": "p4d.24xlarge"}, 1),
    ("the priced quantity", {"ConsumedUnit": "", "PricingQuantity": "3", "PricingUnit": "Hours"}, 3),
    ("no consumed quantity", {"ConsumedQuantity": "", "PricingQuantity": "3", "PricingUnit": "Hours"}, 3),
    ("a block of 100 hours", {"ConsumedUnit": "Units", "PricingQuantity": "0.02", "PricingUnit": "100 Hours"}, 2),
    ("hours of vCPUs", {"ConsumedUnit": "vCPU-Hours"}, 0),
    ("a machine of CPUs", {"ChargeDescription": "$0.085 per On Demand Linux c5.large Instance Hour"}, 0),
    ("no GPU by its count", {"SkuPriceDetails": '{"GpuCount": 0}'}, 0),
    ("a purchase", {"ChargeCategory": "Purchase"}, 0),
    ("a credit", {"ChargeCategory": "Credit"}, 0),
    ("tax", {"ChargeCategory": "Tax"}, 0),
    ("what is left unused", {"CommitmentDiscountStatus": "Unused", "CommitmentDiscountId": "c"}, 0),
    ("a reservation of capacity, unused", {"CapacityReservationStatus": "Unused"}, 0),
    ("the same before there was a column for it", {
        "ChargeDescription": "$1.006 per Unused Reservation Linux g5.xlarge Instance Hour"}, 0),
    ("software on the machine", {"ChargeDescription": "AWS Marketplace hourly software usage|g5.xlarge"}, 0),
    ("another publisher's", {"PublisherName": "Red Hat Inc."}, 0),
    ("a surcharge of a cluster", {"ServiceName": "Amazon Elastic MapReduce"}, 0),
    ("cores beside Google's cards", {"ProviderName": "Google", "ChargeDescription": "A2 Instance Core in Iowa",
                                     "x_InstanceType": "a2-highgpu-1g"}, 0),
    ("Google's fee for a commitment", {"ProviderName": "Google",
                                       "ChargeDescription": "Commitment v1: Nvidia A100 GPU in Iowa for 1 Year"}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("row", "gpu_h"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_gpu_hours_of_a_row(row, gpu_h, write, known):
    bill = read_bill([write(row)], Wish(instances=known))
    assert bill.gpu_h == pytest.approx(gpu_h)
    assert bill.unknown == ()


@pytest.mark.parametrize(
    ("text", "accelerator"),
    [("Nvidia Tesla A100 GPU running in Americas", "a100-sxm4-40gb"),
     ("Nvidia Tesla A100 80GB GPU in Iowa", "a100-sxm4-80gb"),
     ("Nvidia L4 GPU attached to Spot Preemptible VMs running in Iowa", "l4"),
     ("Nvidia H100 80GB Mega GPU running in Iowa", "h100-sxm5-80gb"),
     ("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Iowa", "b200"),
     ("H200 141GB GPU running in Iowa", "h200-sxm"), ("RTX 6000 96GB running in Iowa", None),
     ("Nvidia Zeta 9 GPU running in Iowa", None)],
)  # fmt: skip
def test_a_card_of_google_is_counted_by_itself_and_named_if_it_is_known(text, accelerator, write, known):
    row = {
        "ProviderName": "Google Cloud",
        "ChargeDescription": text,
        "ConsumedUnit": "seconds",
        "ConsumedQuantity": "7200",
    }
    bill = read_bill([write(row)], Wish(instances=known))
    assert bill.gpu_h == 2
    assert [*bill.by_accelerator] == [accelerator]


@pytest.mark.parametrize(
    ("row", "name"),
    [({"ChargeDescription": "$90 per p6-b999.48xlarge Instance Hour"}, "p6-b999.48xlarge"),
     ({"ChargeDescription": "g7x.metal hour"}, "g7x.metal"),
     ({"ChargeDescription": "x", "SkuMeter": "ND128isr GB300 v9"}, "nd128isr_gb300_v9"),
     ({"ProviderName": "Google", "ChargeDescription": "a4-highgpu-8g in Iowa"}, "a4-highgpu-8g"),
     ({"ChargeDescription": "Training cluster GPU, per hour"}, "training cluster gpu, per hour")],
)  # fmt: skip
def test_a_gpu_machine_without_a_count_is_named_and_not_guessed(row, name, write):
    bill = read_bill([write(row)])
    assert bill.gpu_h == 0
    assert [each.machine for each in bill.unknown] == [name]
    assert bill.unknown[0].effective == 1.5
    assert month(bill).gpu_effective == 0


@pytest.mark.parametrize("family", ["A2", "A3", "A3Plus", "A3Ultra", "A4", "G2", "G2 Custom", "G4"])
def test_cores_beside_googles_cards_are_cost_of_gpus_without_hours(family, write):
    bill = read_bill(
        [write({"ProviderName": "Google", "ChargeDescription": f"{family} Instance Core running in Iowa"})]
    )
    assert (bill.gpu_h, month(bill).gpu_effective) == (0, 1.5)


@pytest.mark.parametrize(
    "row",
    [{"ConsumedUnit": "Months"}, {"ConsumedUnit": "Unit"}, {"ConsumedQuantity": "1,000"}, {"ConsumedQuantity": ""}],
)
def test_a_gpu_machine_whose_hours_are_not_told_is_named_and_not_dropped(row, write, known):
    bill = read_bill([write(row)], Wish(instances=known))
    assert (bill.gpu_h, month(bill).gpu_effective) == (0, 0)
    assert [(each.machine, each.effective) for each in bill.unknown] == [("g5.xlarge", 1.5)]
    assert "nobody says how many or how long" in str(bill.notes[0])


def test_a_gpu_machine_without_any_unit_is_named_and_other_rows_without_one_are_not(write, known):
    unitless = {"ConsumedUnit": "", "ConsumedQuantity": ""}
    bill = read_bill([write(unitless, {**unitless, "ChargeDescription": "Support"})], Wish(instances=known))
    assert [(each.machine, each.rows, each.hours) for each in bill.unknown] == [("g5.xlarge", 1, 0)]


def test_the_fee_for_a_machine_that_nobody_can_count_is_no_use_of_it(write):
    fee = {"ChargeCategory": "Purchase", "ChargeDescription": "p9.48xlarge reserved instance fee"}
    assert read_bill([write({"ChargeDescription": "Support"}, fee)]).unknown == ()


def test_a_correction_of_money_alone_is_of_the_gpus_that_it_names(write, known):
    back = {"ChargeClass": "Correction", "ConsumedQuantity": "", "ConsumedUnit": "", "EffectiveCost": "-1"}
    got = month(read_bill([write({}, back)], Wish(instances=known)))
    assert (got.gpu_h, got.gpu_effective, got.gpu_corrections) == (1, 1.5, -1)


@pytest.mark.parametrize(
    ("text", "category", "kind"),
    [("$0.09 per GB - first 10 TB / month data transfer out", "Storage", "egress"),
     ("$0.010 per GB - regional data transfer - in/out/between EC2 AZs", "Compute", None),
     ("$0.00 per GB - data transfer in per month", "Compute", None),
     ("Standard Data Transfer Out", "Networking", "egress"), ("LRS Data Stored", "Storage", "storage")],
)  # fmt: skip
def test_what_leaves_is_told_from_what_comes_in_or_stays(text, category, kind, write):
    bill = read_bill([write({"ChargeDescription": text, "ServiceCategory": category, "ConsumedUnit": "GB"})])
    assert [flow.kind for flow in bill.flows] == ([] if kind is None else [kind])


def test_a_correction_takes_its_hours_back_in_the_month_of_the_use(write, known):
    back = {"ChargeClass": "Correction", "ConsumedQuantity": "-1", "BilledCost": "-1.5", "EffectiveCost": "-1.5",
            "BillingPeriodStart": "2026-07-01T00:00:00Z"}  # fmt: skip
    first, second = read_bill([write({}, {}, back)], Wish(instances=known)).months
    assert (first.gpu_h, first.gpu_effective, first.gpu_corrections, first.billed) == (1, 3, -1.5, 3)
    assert (second.month, second.refunds, second.billed, second.gpu_h) == ("2026-07", -1.5, -1.5, 0)


def test_the_table_of_machines_leaves_out_what_is_offered_with_several_kinds(known):
    assert known.machines[bare("Standard_NC24ads_A100_v4")] == Machine(accelerator="a100-pcie-80gb", gpus=1)
    assert bare("NC24ads A100 v4") in known.machines
    assert bare("ml.g5.xlarge") in known.machines
    assert "n1-highmem-8" not in known.machines
    assert "" not in known.machines


# ---- days and months ----


def test_uc_101_first_of_the_month_slips_into_the_month_before(write):
    """A moment with its zone is booked in June in the person's zone; a date is a date; the third is asked for, the
    fourth is an error with its row."""
    hour = {"ChargePeriodEnd": "2026-06-01T01:00:00+03:00", "BillingPeriodStart": "2026-06-01T00:00:00+03:00"}
    zoned = write({"ChargePeriodStart": "2026-06-01T00:00:00+03:00", **hour}, name="zoned.csv")
    bill = read_bill([zoned], Wish(time_zone="Europe/Moscow", instances=ONE))
    assert bill.start == datetime(2026, 5, 31, 21, tzinfo=UTC)
    assert [(m.month, m.gpu_h, m.billed) for m in bill.months] == [("2026-06", 1, 1.5)]
    assert bill.notes == ()
    in_utc = read_bill([zoned], Wish(instances=ONE))
    assert [(m.month, m.gpu_h) for m in in_utc.months] == [("2026-05", 1), ("2026-06", 0)]
    assert "another zone" in str(in_utc.notes[0])

    dated = write({"ChargePeriodStart": "2026-06-01", "ChargePeriodEnd": "2026-06-02"}, name="dated.csv")
    for place in (None, "America/New_York", "Pacific/Auckland"):
        assert month(read_bill([dated], Wish(time_zone=place))).month == "2026-06"

    last = write({"ChargePeriodStart": "2026-06-30", "ChargePeriodEnd": "2026-07-01"}, name="last.csv")
    assert month(read_bill([last], Wish(time_zone="Pacific/Auckland"))).month == "2026-06"

    unclear = write({}, {"ChargePeriodStart": "01/06/2026", "ChargePeriodEnd": "02/06/2026"}, name="unclear.csv")
    with pytest.raises(InvalidInput, match=r'row 3: "01/06/2026" may be a day of two months.*Say whether'):
        read_bill([unclear])
    june = read_bill([unclear], Wish(days="day first"))
    assert (june.rejected, month(june).effective) == (0, 3)
    assert {m.month for m in read_bill([unclear], Wish(days="month first")).months} == {"2026-01", "2026-06"}

    late = write(*[{"BilledCost": "x"}] * 20, {"ChargePeriodStart": "01/06/2026"}, name="late.csv")
    with pytest.raises(InvalidInput, match=r'row 22: "01/06/2026" may be'):
        read_bill([late])

    wrong = write({"ChargePeriodStart": "2026-06-31"}, name="wrong.csv")
    with pytest.raises(DataError, match='row 2: ChargePeriodStart "2026-06-31" is no moment') as caught:
        read_bill([wrong])
    assert caught.value.row == 2


def test_a_zone_needs_no_seconds(write):
    bill = read_bill([write({"ChargePeriodStart": "2026-06-10T03:00+03:00"})], Wish(instances=ONE))
    assert (bill.rejected, bill.start) == (0, datetime(2026, 6, 10, tzinfo=UTC))


def test_use_of_more_than_a_year_is_refused_and_stretches_no_series(write):
    bill = read_bill([write({}, {"ChargePeriodEnd": "2062-06-10T01:00:00Z"})], Wish(instances=ONE))
    assert (bill.rejected, len(bill.gpus), bill.resolution_h) == (1, 1, 1)
    assert 'row 3: ChargePeriodEnd "2062-06-10T01:00:00Z" lies more than a year after its start' in str(bill.rejects[0])


ONE = Instances(machines={"g5.xlarge": Machine(accelerator="a10g", gpus=1)})


@pytest.mark.parametrize(
    ("start", "end", "place", "booked"),
    [("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z", "America/New_York", "2026-06"),
     ("2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z", "America/New_York", "2026-06"),
     ("2026-06-01T00:00:00Z", "2026-06-01T01:00:00Z", "America/New_York", "2026-05"),
     ("2026-06-01T00:00Z", "2026-06-01T01:00Z", None, "2026-06"),
     ("2026-06-01 00:00:00", "2026-06-01 01:00:00", None, "2026-06"),
     ("2026-05-31T23:00:00Z", "2026-06-01T00:00:00Z", None, "2026-05"),
     ("2026-06-01T00:00:00Z", "2027-06-01T00:00:00Z", None, "2026-06")],
)  # fmt: skip
def test_a_row_is_booked_in_the_month_of_most_of_it(start, end, place, booked, write):
    path = write({"ChargePeriodStart": start, "ChargePeriodEnd": end})
    bill = read_bill([path], Wish(time_zone=place))
    assert [m.month for m in bill.months if m.effective] == [booked]


def test_an_unknown_time_zone_is_refused_by_name(write):
    with pytest.raises(UnknownName, match="Europe/Berlim"):
        read_bill([write({})], Wish(time_zone="Europe/Berlim"))


# ---- versions and formats ----


@pytest.mark.parametrize("column", ["ProviderName", "ServiceProviderName", "HostProviderName"])
def test_a_renamed_column_is_the_same_column(column, write, known):
    row = {"ProviderName": None, column: "Google Cloud", "ChargeDescription": "Nvidia L4 GPU running in Iowa"}
    bill = read_bill([write(row)], Wish(instances=known))
    assert bill.gpu_h == 1
    assert bill.services[0].provider == "Google Cloud"


def test_null_words_extra_columns_and_other_cases_are_no_matter(write, known):
    row = {"Id": "7", "CommitmentDiscountId": "NULL", "ChargeClass": "null", "ChargeCategory": "USAGE",
           "billedcost": "9", "ChargeFrequency": "Usage-based"}  # fmt: skip
    bill = read_bill([write(row)], Wish(instances=known))
    assert (bill.commitments, bill.gpu_h, month(bill).billed) == ((), 1, 1.5)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_are_told_by_the_header(separator, write, known):
    assert read_bill([write({}, separator=separator)], Wish(instances=known)).gpu_h == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_text_of_a_spreadsheet_is_read(encoding, write, known):
    path = write({"ServiceName": "Größe"})
    path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
    bill = read_bill([path], Wish(instances=known))
    assert bill.gpu_h == 1
    assert bill.services[0].service == "Größe"


def test_a_line_that_names_the_separator_is_skipped_and_rows_keep_their_numbers(write, known):
    path = write({}, {"BilledCost": "x"}, separator=";")
    text = path.read_text(encoding="utf-8").replace("\n", "\n1;2\n", 1)
    path.write_text("sep=;\n" + text, encoding="utf-8")
    bill = read_bill([path], Wish(instances=known))
    assert (bill.gpu_h, bill.rejected) == (1, 2)
    assert "row 3: Expected Number of Columns" in str(bill.rejects[0])
    assert 'row 5: BilledCost "x"' in str(bill.rejects[1])


def test_parquet_with_types_and_maps_reads_as_its_text(tmp_path, write, known):
    import duckdb

    text = write({"ChargeDescription": "x"})
    path = tmp_path / "typed.parquet"
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'Asia/Tokyo'")
        database.sql(
            "SELECT * REPLACE (BilledCost::DECIMAL(30, 12) AS BilledCost, ChargePeriodStart::TIMESTAMPTZ AS "
            "ChargePeriodStart, '2026-06-10 01:00:00'::TIMESTAMP AS ChargePeriodEnd), map {'GpuCount': '4'} AS "
            f"SkuPriceDetails FROM read_csv('{text}', all_varchar = true)"
        ).write_parquet(str(path))
    bill = read_bill([path], Wish(instances=known))
    assert (bill.gpu_h, bill.start) == (4, datetime(2026, 6, 10, tzinfo=UTC))
    assert month(bill).billed == 1.5


def test_signs_of_patterns_and_quotes_in_a_name_or_a_column_are_signs(tmp_path, write, known):
    path = write({"a'; DROP TABLE facts; --": "'"}, name="b[1]*'?; drop.csv")
    write({}, {}, name="b1.csv")
    bill = read_bill([path], Wish(instances=known))
    assert (bill.rows, bill.gpu_h) == (1, 1)
    as_parquet(tmp_path, path.read_text(encoding="utf-8"), tmp_path / "b[1]'*.parquet")
    assert read_bill([tmp_path / "b[1]'*.parquet"], Wish(instances=known)).gpu_h == 1


def test_what_steers_a_terminal_is_in_no_name_and_in_no_message(write):
    paint = "\x1b[31m"
    rows = ({"ServiceName": paint, "ChargeDescription": f"{paint} gpu hours"}, {"BillingCurrency": paint})
    bill = read_bill([write(*rows)])
    said = [bill.services[0].service, bill.unknown[0].machine, *map(str, (*bill.notes, *bill.rejects))]
    assert not any("\x1b" in text for text in said)


# ---- faults ----


@pytest.mark.parametrize(
    ("row", "says"),
    [({"ChargePeriodEnd": "2026-06-10T30:00:00Z"}, 'ChargePeriodEnd "2026-06-10T30:00:00Z" is no moment'),
     ({"ChargePeriodEnd": "2026-06-09T00:00:00Z"}, 'ChargePeriodEnd "2026-06-09T00:00:00Z" lies before its start'),
     ({"ChargePeriodStart": "0001-06-10"}, 'ChargePeriodStart "0001-06-10" is no moment of this century'),
     ({"ChargePeriodEnd": "infinity"}, 'ChargePeriodEnd "infinity" is no moment'),
     ({"ChargePeriodStart": ""}, 'ChargePeriodStart "" is no moment'),
     ({"BilledCost": "1,5"}, 'BilledCost "1,5" is no number'), ({"EffectiveCost": "nan"}, 'EffectiveCost "nan"'),
     ({"BillingCurrency": "Dollars"}, 'BillingCurrency "Dollars"'),
     ({"ChargeCategory": "Fee"}, 'ChargeCategory "Fee"')],
)  # fmt: skip
def test_a_row_that_cannot_be_read_is_refused_by_number_and_the_others_go_on(row, says, write, known):
    bill = read_bill([write({}, row, {})], Wish(instances=known))
    assert (bill.rows, bill.rejected, bill.gpu_h) == (3, 1, 2)
    assert f"bill.csv, row 3: {says}" in str(bill.rejects[0])


def test_what_refused_rows_bill_is_said(write):
    bill = read_bill([write({}, {"ChargePeriodEnd": "2026-06-10T30:00:00Z", "BilledCost": "7.25"})])
    assert "bill 7.25 USD" in " ".join(map(str, bill.notes))
    assert month(bill).billed == 1.5


def test_a_row_of_other_length_is_refused_and_those_after_it_keep_their_numbers(write, known):
    path = write({}, {}, {"BilledCost": "x"}, {})
    lines = path.read_text(encoding="utf-8").splitlines()
    lines.insert(2, "1,2,3")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    bill = read_bill([path], Wish(instances=known))
    assert (bill.rows, bill.rejected, bill.gpu_h) == (5, 2, 3)
    assert "row 3: Expected Number of Columns: 13 Found: 3" in str(bill.rejects[0])
    assert 'row 5: BilledCost "x"' in str(bill.rejects[1])


def test_the_number_of_a_refused_row_of_parquet_is_its_place(tmp_path, write):
    as_parquet(tmp_path, write({}, {"ChargeCategory": "Fee"}).read_text(encoding="utf-8"), tmp_path / "b.parquet")
    assert "b.parquet, row 2: ChargeCategory" in str(read_bill([tmp_path / "b.parquet"]).rejects[0])


def test_only_the_first_refused_rows_are_shown_and_all_are_counted(write):
    bill = read_bill([write({}, *[{"BilledCost": "x"}] * 25)])
    assert (bill.rejected, len(bill.rejects), bill.rows) == (25, 10, 26)
    assert "row 3:" in str(bill.rejects[0])
    assert "row 12:" in str(bill.rejects[9])


def test_a_packed_file_that_is_cut_off_is_refused_even_between_two_rows(write):
    path = write(*[{}] * 500)
    path.write_bytes(gzip.compress(path.read_bytes(), mtime=0)[:-8])
    with pytest.raises(DataError, match="cannot be unpacked to its end"):
        read_bill([path])


def test_parts_of_a_packed_file_are_one_file(write, known):
    path = write({}, {}, {})
    head, *rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(gzip.compress(head + rows[0]) + gzip.compress(rows[1] + rows[2]))
    assert read_bill([path], Wish(instances=known)).gpu_h == 3


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_end_of_a_line_blank_lines_and_lines_within_a_cell_are_read(end, write, known):
    text = write({"ServiceName": "a\nb"}, {}, {"BilledCost": "x"}).read_text(encoding="utf-8")
    path = write({})
    path.write_bytes(text.replace("a\nb", "a b" if end == "\r" else "a\nb").replace("\n", end).encode() + end.encode())
    bill = read_bill([path], Wish(instances=known))
    assert (bill.gpu_h, bill.rejected) == (2, 1)
    assert "row 4" in str(bill.rejects[0])


def test_bytes_that_are_no_utf_8_cost_their_row_alone(write, known):
    path = write({"ServiceName": "Groesse"}, {}, {"BilledCost": "x"})
    path.write_bytes(path.read_bytes().replace(b"oe", b"\xf6"))
    bill = read_bill([path], Wish(instances=known))
    assert (bill.gpu_h, bill.rejected) == (1, 2)
    assert "row 2: Invalid unicode" in str(bill.rejects[0])
    assert "row 4: BilledCost" in str(bill.rejects[1])


@pytest.mark.parametrize("name", ["copy.csv", "bill.csv"])
def test_the_same_bytes_twice_are_refused(name, write):
    first = write({})
    again = write({}, name=name)
    with pytest.raises(InvalidInput, match="the same file: its rows would count double"):
        read_bill([first, again])


def test_files_of_one_size_and_other_rows_are_two_files(write, known):
    paths = [write({"BilledCost": cost}, name=f"{cost}.csv") for cost in ("1.5", "2.5")]
    assert month(read_bill(paths, Wish(instances=known))).billed == 4


def test_a_file_without_the_columns_is_refused_with_their_names(write):
    with pytest.raises(DataError, match=r"bill\.csv is no FOCUS export: it has no ChargeCategory, EffectiveCost\."):
        read_bill([write({"ChargeCategory": None, "EffectiveCost": None})])


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "is empty"), (b"PAR1 and nothing else", "cannot be read"), (b"\x1f\x8b broken", "cannot be read"),
     (b"PK\x03\x04 a spreadsheet", "is no text")],
)  # fmt: skip
def test_a_file_that_is_no_table_is_one_clear_error(content, says, tmp_path):
    path = tmp_path / "bill.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        read_bill([path])
    assert caught.value.file == "bill.csv"


def test_a_header_alone_and_no_file_at_all_are_refused(write, tmp_path):
    path = write({})
    path.write_text(path.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="holds no row"):
        read_bill([path])
    with pytest.raises(InvalidInput, match="No cost export"):
        read_bill([])
    with pytest.raises(DataError, match="cannot be read"):
        read_bill([tmp_path / "absent.csv"])


def test_a_reading_leaves_nothing_behind(write, monkeypatch, tmp_path):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    path = write({})
    read_bill([path])
    path.write_text("nothing\n", encoding="utf-8")
    with pytest.raises(DataError):
        read_bill([path])
    assert [*place.iterdir()] == []


def test_without_duckdb_the_error_says_what_to_install(write):
    code = (
        "import sys; sys.modules['duckdb'] = None\nfrom pathlib import Path\n"
        "from gpuwise.errors import InvalidInput\nfrom gpuwise.sources.focus import read_bill\n"
        f"try: read_bill([Path({str(write({}))!r})])\nexcept InvalidInput as error: print(error.hint)"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Run: pip install 'gpuwise[focus]'"
