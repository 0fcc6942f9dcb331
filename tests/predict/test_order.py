"""Sister cards in an order that their owners believe: sanity, with room for what tables really say."""

from __future__ import annotations

import pytest

from gpuwise.model import Platform, Prediction
from gpuwise.predict import Evidence, predictor
from gpuwise.store import package

CARDS, WORKLOADS = package.accelerators(), package.workloads()
ANSWER = predictor(Evidence.of(package.throughput(), CARDS, package.model()), package.assumptions())

AT_LEAST = [  # card, other card, least ratio of their rates
    ("b200", "h200-sxm", 1.0),
    ("b300", "b200", 0.95),
    ("h200-sxm", "h100-sxm5-80gb", 1.0),
    ("h200-sxm", "h200-nvl", 0.95),
    ("h200-nvl", "h100-nvl-94gb", 0.98),
    ("h100-sxm5-80gb", "h100-nvl-94gb", 0.95),
    ("h100-nvl-94gb", "h100-pcie-80gb", 1.0),
    ("h100-sxm5-80gb", "h100-pcie-80gb", 1.0),
    ("h100-pcie-80gb", "a100-sxm4-80gb", 1.0),
    ("h100-sxm5-80gb", "a100-sxm4-80gb", 1.0),
    ("a100-sxm4-80gb", "a100-sxm4-40gb", 0.97),
    ("a100-sxm4-80gb", "a100-pcie-80gb", 0.97),
    ("a100-sxm4-40gb", "a100-pcie-40gb", 0.97),
    ("a100-sxm4-80gb", "a800-sxm4-80gb", 0.9),
    ("a800-sxm4-80gb", "a100-sxm4-80gb", 0.9),
    ("a100-pcie-40gb", "v100-sxm2-32gb", 1.0),
    ("a100-pcie-40gb", "a30", 1.0),
    ("v100-sxm3-32gb", "v100-sxm2-32gb", 1.0),
    ("v100-sxm2-16gb", "v100-pcie-16gb", 0.95),
    ("v100-sxm2-32gb", "v100-pcie-32gb", 0.95),
    ("v100-sxm2-16gb", "v100-sxm2-32gb", 0.9),
    ("v100-sxm2-32gb", "v100-sxm2-16gb", 0.85),
    ("l40s", "l40", 1.0),
    ("l40", "l4", 1.0),
    ("a10", "t4", 1.0),
    ("l4", "t4", 1.0),
    ("a40", "a10", 1.0),
    ("rtx-4090", "rtx-3090", 1.0),
    ("rtx-3090-ti", "rtx-3090", 0.95),
    ("rtx-5090", "rtx-4090", 1.0),
]

HELD_BACK = {"b200": 0.7}
"""Of what AT_LEAST says, for convolutional networks: its rows of them are no faster in AMP than in TF32 (3,077 and
2,967 images/s of ResNet-50), so the host set their pace, and the card is taken for slower than it is."""


def least_of(workload: str, card: str, least: float) -> float:
    held = WORKLOADS[workload].family.startswith("cnn")
    return least * HELD_BACK.get(card, 1.0) if held else least


def rate(workload: str, card: str, n: int) -> float | None:
    """Samples/s, None where the job does not run."""
    (answer,) = ANSWER(WORKLOADS[workload], [Platform(variants=(CARDS[card],), per_node=n)])
    return answer.throughput_per_s.value if isinstance(answer, Prediction) else None


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_cards_of_one_line_stand_in_the_order_of_what_they_are(workload: str, n: int) -> None:
    wrong = []
    for card, other, least in AT_LEAST:
        one, two = rate(workload, card, n), rate(workload, other, n)
        if n > 1 and CARDS[card].name.startswith("GeForce"):
            continue  # without direct traffic the host decides
        if one and two and one < least_of(workload, card, least) * two:
            wrong.append(f"{card} {one:.4g} < {least} × {other} {two:.4g}")
    assert not wrong


@pytest.mark.parametrize("workload", WORKLOADS)
def test_nodes_with_nvlink_scale_alike(workload: str) -> None:
    """None of one line falls far behind its sisters because of a few noisy rows."""
    reached = {
        card: eight / (8 * one)
        for card, device in CARDS.items()
        if device.form_factor.startswith("SXM")
        and (one := rate(workload, card, 1))
        and (eight := rate(workload, card, 8))
    }
    assert len(reached) > 8
    assert min(reached.values()) > 0.75
    assert max(reached.values()) <= 1


def test_a_cnn_on_a_current_nvlink_node_loses_little() -> None:
    """Bundled rows: 0.97 to 0.99 at batches of 256 to 2,560; here the batch is 64, so gradients weigh more."""
    for card in ("h100-sxm5-80gb", "h200-sxm", "b200", "a100-sxm4-80gb"):
        one, eight = rate("painter-heavy", card, 1), rate("painter-heavy", card, 8)
        assert one is not None
        assert eight is not None
        assert 0.92 < eight / (8 * one) < 0.99
