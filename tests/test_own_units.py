"""What a unit of work costs: a million of what a GPU gets done, and one training."""

from __future__ import annotations

import pytest

from gpuwise.errors import InvalidInput
from tests.test_own import AWS, asked, faces_json


@pytest.mark.parametrize(
    ("text", "a_second", "unit"),
    [
        ("5500 tokens/s", 5500, "tokens"),
        ("90 images a minute", 1.5, "images"),
        ("7200 forward passes per hour", 2, "forward passes"),
    ],
)
def test_what_a_gpu_gets_done_has_a_unit_and_a_time(text, a_second, unit):
    found = asked(**AWS, throughput=text).throughput
    assert (found.units_per_s, found.unit) == (pytest.approx(a_second), unit)


@pytest.mark.parametrize(
    "text", ["5500", "5500/s", "tokens/s", "5500 tokens", "0 tokens/s", "-1 tokens/s", "5 tokens/moon"]
)
def test_what_a_gpu_gets_done_is_refused_without_number_unit_or_time(text):
    with pytest.raises(InvalidInput):
        asked(**AWS, throughput=text)


def document_of(**said):
    return faces_json(asked(**said))["result"]


def test_a_million_tokens_cost_what_their_hours_cost():
    """2.49 USD/h at 5,500 tokens/s are 0.126 USD: the row of the reference cases, through the verb."""
    for option in document_of(**AWS, throughput="5500 tokens/s")["options"]:
        hour, million = option["usd_per_gpu_hour"], option["usd_per_million_units"]
        for end in ("mean", "p10", "p50", "p90"):
            assert million[end] == pytest.approx(hour[end] * 0.126 / 2.49, rel=2e-3)


def test_one_training_costs_what_its_hours_cost():
    found = document_of(job="painter-heavy", every="7d", gpu="H100-SXM", provider="aws")
    for option in found["options"]:
        assert option["usd_per_run"]["p50"] == pytest.approx(option["usd_per_gpu_hour"]["p50"] * found["gpu_h_per_run"])
        assert "usd_per_million_units" not in option
