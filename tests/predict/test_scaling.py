"""From one device to n: never faster than n, never slower with one more, wide where little is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import ASSUMPTIONS, CARDS, JOB, accelerator, evidence, on, row

from gpuwise.estimate import Interval
from gpuwise.model import Accelerator, Measurement, Platform, Prediction, Refusal, Workload
from gpuwise.predict import predict, predict_many
from gpuwise.predict.evidence import Evidence
from gpuwise.predict.scaling import Losses, Scaling, link_class, step_together_s
from gpuwise.predict.scaling import scaling as scaled


def scaling(job: Workload, card: Accelerator, platform: Platform, rate_1: float, known: Evidence) -> Scaling:
    return scaled(job, card, platform, rate_1, Losses.of(job, known))


@settings(deadline=None)
@given(st.integers(1, 64), st.integers(1, 4), st.floats(1, 5000), st.sampled_from(["NVLink", "PCIe", None]))
def test_n_devices_are_at_most_n_times_one_and_one_more_never_slows_the_job(
    n: int, nodes: int, rate: float, link: str | None
) -> None:
    def total(count: int) -> float:
        platform = on("large", n=count, nodes=nodes, link=link)
        return platform.accelerators * scaling(JOB, CARDS["large"], platform, rate, evidence()).efficiency

    assert 0 < total(n) <= n * nodes * (1 + 1e-12)
    assert total(n + 1) >= total(n) * (1 - 1e-12)


CLASSES = [
    ("large", None, 1, "NVLink"),
    ("large", "PCIe", 1, "PCIe"),
    ("middle", None, 1, "PCIe"),
    ("middle", "NVLink 3", 1, "PCIe, bridge"),
    ("large", "NVLink", 2, "network"),
]


@pytest.mark.parametrize(("card", "link", "nodes", "kind"), CLASSES)
def test_the_class_of_the_link_is_what_is_stated_else_what_the_form_implies(
    card: str, link: str | None, nodes: int, kind: str
) -> None:
    assert link_class(CARDS[card], on(card, n=2, nodes=nodes, link=link)) == kind


def test_consumer_cards_on_pcie_scale_worse_and_are_less_certain() -> None:
    card = accelerator("geforce", name="GeForce RTX 9090")
    consumer = scaling(JOB, card, Platform(variants=(card,), per_node=4), 300.0, evidence())
    professional = scaling(JOB, CARDS["middle"], on("middle", n=4), 300.0, evidence())
    assert consumer.efficiency < professional.efficiency
    assert consumer.sd > professional.sd


def test_more_nodes_are_less_certain_than_one() -> None:
    one, two = (scaling(JOB, CARDS["large"], on("large", n=8, nodes=k), 300.0, evidence()) for k in (1, 2))
    assert two.efficiency < one.efficiency
    assert two.sd > 2 * one.sd


def several(workload: str, efficiency: float, n: int = 4):  # type: ignore[no-untyped-def]
    return (
        row(workload, "middle", 500.0),
        row(workload, "middle", 500.0 * n * efficiency, accelerators=n),
    )


def test_a_run_of_the_job_on_several_tells_how_it_scales_to_others() -> None:
    known = evidence(*several("job", 0.8, n=2))
    two, eight = (scaling(JOB, CARDS["middle"], on("middle", n=n), 500.0, known) for n in (2, 8))
    assert two.efficiency == pytest.approx(0.8, abs=0.03)
    assert 0.4 < eight.efficiency < 0.7  # 7/8 against 1/2 of the gradients, over one bus
    assert eight.own
    assert "it was measured on several" in str(eight.evidence)


def test_kin_measured_on_several_such_cards_tell_more_than_the_class_of_the_link() -> None:
    slow = evidence(*(r for n in (2, 4, 8) for r in several("resnet50", 0.6, n)))
    usual = scaling(JOB, CARDS["middle"], on("middle", n=4), 300.0, evidence()).efficiency
    assert usual > 0.9
    assert scaling(JOB, CARDS["middle"], on("middle", n=4), 300.0, slow).efficiency < usual - 0.1


def test_a_table_that_scales_better_than_linear_is_not_believed() -> None:
    known = evidence(*several("job", 1.1))
    assert 0.97 < scaling(JOB, CARDS["middle"], on("middle", n=8), 500.0, known).efficiency < 1.0


def test_a_larger_batch_waits_less_for_its_gradients() -> None:
    small, large = (
        scaling(replace(JOB, batch_per_accelerator=b), CARDS["middle"], on("middle", n=8), 300.0, evidence()).efficiency
        for b in (16, 256)
    )
    assert small < large


def test_one_device_scaled_by_class_is_no_measurement_any_more() -> None:
    known = evidence(row("job", "middle", 300.0))
    answer = predict(JOB, on("middle", n=2), known, ASSUMPTIONS)
    assert isinstance(answer, Prediction)
    assert (answer.method, answer.throughput_per_s.basis) == ("ratio", "predicted")
    assert any(name.startswith("scaling ×2 PCIe") for name, _ in answer.throughput_per_s.spread)


@settings(deadline=None)
@given(
    st.integers(2, 16),
    st.floats(0.1, 1e6),
    st.floats(0.1, 5000),
    st.sampled_from(["large", "middle"]),
    st.floats(0.05, 1.05),
)
def test_the_efficiency_is_above_0_and_never_above_1_whatever_was_measured(
    n: int, rate: float, parameters_m: float, card: str, efficiency: float
) -> None:
    job = replace(JOB, parameters_m=parameters_m)
    known = evidence(*several("job", efficiency, n=2))
    answer = scaling(job, CARDS[card], on(card, n=n), rate, known)
    assert 0 < answer.efficiency <= 1
    assert answer.sd > 0


def own_run(card: str, rate: float, n: int, day: int) -> Measurement:
    return Measurement(
        created_utc=f"2026-11-{day:02}T10:00:00Z",
        workload="job",
        device="gpu",
        accelerator=card,
        accelerators=n,
        precision="amp",
        batch_per_accelerator=64,
        samples_per_s=Interval(value=rate, low=0.99 * rate, high=1.01 * rate),
        software={"torch": "2.4.1"},
    )


def test_the_persons_own_run_on_two_beside_one_on_one_makes_four_and_eight_easy() -> None:
    one, two = own_run("middle", 500.0, 1, 1), own_run("middle", 850.0, 2, 2)
    alone, both = (evidence(measurements=runs) for runs in ([one], [one, two]))
    for n, low, high in ((2, 0.82, 0.88), (4, 0.65, 0.82), (8, 0.5, 0.8)):
        assert low < of_one(n, both) < high < of_one(n, alone)


def of_one(n: int, known: Evidence) -> float:
    """Efficiency of the whole prediction against that of one."""
    rates = []
    for answer in predict_many(JOB, [on("middle", n=k) for k in (1, n)], known, ASSUMPTIONS):
        assert isinstance(answer, Prediction)
        rates.append(answer.throughput_per_s.value)
    return rates[1] / rates[0] / n


def test_a_run_on_two_of_other_cards_tells_how_evenly_the_job_is_shared() -> None:
    other = (row("job", "large", 900.0), row("job", "large", 900.0 * 2 * 0.7, accelerators=2))
    told = scaling(JOB, CARDS["middle"], on("middle", n=4), 500.0, evidence(*other))
    assert told.efficiency < scaling(JOB, CARDS["middle"], on("middle", n=4), 500.0, evidence()).efficiency - 0.02


def test_an_nvlink_bridge_between_pairs_waits_less_than_pcie() -> None:
    bridged, plain = (
        scaling(JOB, CARDS["middle"], on("middle", n=2, link=link), 500.0, evidence()) for link in ("NVLink", "PCIe")
    )
    assert bridged.efficiency > plain.efficiency


def test_twice_the_nvlink_waits_half_as_long() -> None:
    board = {"form_factor": "SXM", "link": "NVLink"}
    slow, fast = (accelerator(f"b{gb}", link_gb_per_s=gb, **board) for gb in (600.0, 1200.0))
    job = replace(JOB, parameters_m=10_000.0)
    late = [
        1 / scaling(job, card, Platform(variants=(card,), per_node=2), 300.0, evidence()).efficiency - 1
        for card in (slow, fast)
    ]
    assert late[0] == pytest.approx(2 * late[1], rel=0.05)


PAIR = Platform(variants=(CARDS["large"], CARDS["old"]), per_node=2, mixed=True)


def test_uc_061_a_machine_with_different_gpus_is_as_fast_as_twice_the_slower_and_names_both() -> None:
    known = evidence(row("job", "large", 900.0), row("job", "old", 100.0, precision="fp32"))
    answer, slow = predict_many(JOB, [PAIR, on("old", n=2)], known, ASSUMPTIONS)
    assert isinstance(answer, Prediction)
    assert isinstance(slow, Prediction)
    assert answer.throughput_per_s.value == pytest.approx(slow.throughput_per_s.value)
    assert "LARGE + OLD in one machine" in str(answer.evidence[0])
    assert "on each of LARGE + OLD alone" in str(answer.advice)
    assert answer.platform == "large+old"


def test_uc_061_memory_is_that_of_the_smallest_gpu() -> None:
    job = replace(JOB, batch_per_accelerator=4096)
    known = evidence(row("job", "large", 900.0), row("job", "old", 100.0, precision="fp32"))
    answer = predict(job, PAIR, known, ASSUMPTIONS)
    assert isinstance(answer, Refusal)
    assert answer.rule == "does_not_fit"
    assert str(answer.reason).startswith("old: ")


GRADIENT_GB = 2.6


def test_uc_062_a_pair_of_a100_with_nvlink_and_one_of_h100_on_pcie_take_the_same_step() -> None:
    assert step_together_s(0.30, GRADIENT_GB, 1 / 300, 2) == pytest.approx(0.31, abs=0.005)
    assert step_together_s(0.18, GRADIENT_GB, 1 / 20, 2) == pytest.approx(0.31, abs=0.005)


def test_uc_062_two_machines_on_10_gbit_per_s_are_slower_than_one() -> None:
    step_s = step_together_s(0.18, GRADIENT_GB, 1 / 1.25, 2)
    assert step_s == pytest.approx(2.3, abs=0.05)
    assert 2 / step_s < 1 / 0.18


def test_uc_062_two_machines_with_many_gradients_are_predicted_to_be_slower_than_one() -> None:
    job = replace(JOB, parameters_m=1300.0, batch_per_accelerator=8)
    rate = 8 / 0.18
    assert 2 * scaling(job, CARDS["large"], on("large", nodes=2), rate, evidence()).efficiency < 1


def test_uc_062_an_unknown_interconnect_widens_the_range() -> None:
    stated, unknown = (
        scaling(JOB, CARDS["middle"], on("middle", n=2, link=link), 500.0, evidence()) for link in ("PCIe", None)
    )
    assert unknown.efficiency == stated.efficiency
    assert unknown.sd > stated.sd
