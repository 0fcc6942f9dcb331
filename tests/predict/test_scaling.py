"""From one device to n: never faster than n, never slower with one more, wide where little is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import ASSUMPTIONS, CARDS, JOB, accelerator, evidence, on, row

from gpuwise.model import Accelerator, Platform, Prediction, Workload
from gpuwise.predict import predict
from gpuwise.predict.evidence import Evidence
from gpuwise.predict.scaling import Losses, Scaling, link_class
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

    assert total(n) <= n * nodes * (1 + 1e-12)
    assert total(n + 1) >= total(n)


CLASSES = [
    ("large", None, 1, "NVLink"),
    ("large", "PCIe", 1, "PCIe"),
    ("middle", None, 1, "PCIe"),
    ("middle", "NVLink 3", 1, "NVLink"),
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
    two = predict(JOB, on("middle", n=2), known, ASSUMPTIONS)
    eight = predict(JOB, on("middle", n=8), known, ASSUMPTIONS)
    assert isinstance(two, Prediction)
    assert isinstance(eight, Prediction)
    assert two.throughput_per_s.value == pytest.approx(800)
    assert 0.6 * 4000 < eight.throughput_per_s.value < 0.8 * 4000  # 7/8 against 1/2 of the gradients to send
    assert "it was measured on several" in " ".join(str(line) for line in eight.evidence)


def test_kin_measured_on_several_such_cards_tell_more_than_the_class_of_the_link() -> None:
    slow = evidence(*(r for n in (2, 4, 8) for r in several("resnet50", 0.6, n)))
    assert scaling(JOB, CARDS["middle"], on("middle", n=4), 300.0, slow).efficiency < 0.85
    assert scaling(JOB, CARDS["middle"], on("middle", n=4), 300.0, evidence()).efficiency > 0.9


def test_a_table_that_scales_better_than_linear_is_not_believed() -> None:
    known = evidence(*several("job", 1.1))
    assert scaling(JOB, CARDS["middle"], on("middle", n=8), 500.0, known).efficiency == 1.0


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
