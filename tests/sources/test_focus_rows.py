"""One row of a FOCUS export: its machine, its GPU-hours, what it is about."""

from __future__ import annotations

import pytest
from tests.sources.exports import month

from gpuwise.sources.focus import Wish, read_bill
from gpuwise.sources.instances import Machine, bare

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
