"""A run in half precision, carried over to a card without tensor cores, as a person asks for it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from gpuwise import ExplainRequest, api
from gpuwise.model import Prediction

NETWORK = """\
name = "fast"
family = "cnn"
gmacs = 0.377
activations_m = 0.38
parameters_m = 6.6
operations = 9
batch_per_accelerator = 512
precision = "amp"
samples = 50000
epochs = 24.0
"""
"""The ResNet with nine layers that learns CIFAR-10 in 79 s (github.com/davidcpage/cifar10-fast, issue 6)."""

SAMPLES, V100_S, GTX_1080_TI_S, BY_FP32_RATES_S = 24 * 50_000, 79.0, 240.0, 110.0


@pytest.fixture
def request_(tmp_path: Path) -> ExplainRequest:
    (tmp_path / "fast.toml").write_text(NETWORK, "utf-8")
    rate = SAMPLES / V100_S
    run = {
        "schema": 1, "kind": "measurement", "created_utc": "2018-11-01T12:00:00Z", "workload": "fast", "device": "gpu",
        "accelerator": "V100 SXM2 16GB", "accelerators": 1, "precision": "amp", "batch_per_accelerator": 512,
        "samples_per_s": {"value": rate, "low": 0.99 * rate, "high": 1.01 * rate}, "epochs": 24, "samples": 50_000,
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(run), "utf-8")
    return ExplainRequest(
        workload=str(tmp_path / "fast.toml"), on="gtx-1080-ti", measured=(str(tmp_path / "run.json"),)
    )


def test_uc_048_explain_moves_a_half_precision_run_to_a_card_without_tensor_cores(request_: ExplainRequest) -> None:
    (answer,) = api.explain(request_, today=date(2026, 11, 30)).answers
    assert isinstance(answer, Prediction)
    rate = answer.throughput_per_s.interval()
    fastest_s, usual_s, slowest_s = (SAMPLES / r for r in (rate.high, rate.value, rate.low))
    assert fastest_s < GTX_1080_TI_S < slowest_s
    assert fastest_s > 1.5 * BY_FP32_RATES_S
    assert slowest_s / fastest_s > 1.4, "tensor cores or none is no small step: the range is wide"
    assert usual_s == pytest.approx(GTX_1080_TI_S, rel=0.25)
    assert answer.method == "ratio"


def test_uc_048_the_evidence_says_that_there_are_no_tensor_cores(request_: ExplainRequest) -> None:
    (answer,) = api.explain(request_, today=date(2026, 11, 30)).answers
    assert isinstance(answer, Prediction)
    said = [str(message) for message in answer.evidence]
    assert "GeForce GTX 1080 Ti has no tensor cores: it computes at its fp32 rate" in said
    assert any(text.endswith("your own run)") and "(amp, batch 512" in text for text in said)
