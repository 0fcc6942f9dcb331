"""The roofline: its monotonies, its bound, and what devices are said to do in each arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import CARDS, accelerator

from gpuwise.predict.roofline import (
    NOMINAL,
    Rates,
    Work,
    arithmetic,
    ideal_seconds,
    rates,
    seconds,
    unsupported,
)
from gpuwise.store import package

WORKS = st.builds(
    Work,
    gmacs=st.floats(0.1, 500),
    activations_m=st.floats(0.5, 800),
    parameters_m=st.floats(1, 2000),
    operations=st.floats(5, 400),
    transformer=st.booleans(),
)
DEVICES = st.builds(
    Rates,
    peak_tflops=st.floats(2, 3000),
    bandwidth_gb_per_s=st.floats(100, 9000),
    w_per_tflops=st.floats(0.3, 60),
    half=st.booleans(),
)
BATCHES = st.integers(1, 4096)
FASTER = st.floats(1.01, 4)


@settings(deadline=None)
@given(WORKS, DEVICES, BATCHES, FASTER)
def test_more_bandwidth_never_makes_a_job_slower(work: Work, on: Rates, batch: int, factor: float) -> None:
    wider = replace(on, bandwidth_gb_per_s=on.bandwidth_gb_per_s * factor)
    assert seconds(work, wider, batch, NOMINAL) < seconds(work, on, batch, NOMINAL)


@settings(deadline=None)
@given(WORKS, DEVICES, BATCHES, FASTER)
def test_a_higher_peak_at_the_same_power_never_makes_a_job_slower(
    work: Work, on: Rates, batch: int, factor: float
) -> None:
    """The power stays, so each operation has less of it."""
    faster = replace(on, peak_tflops=on.peak_tflops * factor, w_per_tflops=on.w_per_tflops / factor)
    assert seconds(work, faster, batch, NOMINAL) < seconds(work, on, batch, NOMINAL)


@settings(deadline=None)
@given(WORKS, DEVICES, st.integers(1, 2048))
def test_a_larger_batch_never_costs_more_a_sample(work: Work, on: Rates, batch: int) -> None:
    assert seconds(work, on, 2 * batch, NOMINAL) < seconds(work, on, batch, NOMINAL)


@settings(deadline=None)
@given(WORKS, DEVICES)
def test_the_ideal_is_the_larger_of_arithmetic_and_traffic(work: Work, on: Rates) -> None:
    ideal = ideal_seconds(work, on)
    ideal *= 1 + 1e-9
    assert ideal >= 6e9 * work.gmacs / (on.peak_tflops * 1e12)
    assert ideal >= 2 * work.activations_m * 1e6 * (2 if on.half else 4) / (on.bandwidth_gb_per_s * 1e9)


def test_only_in_fp32_does_a_network_beat_the_ideal_since_winograd_needs_fewer_multiplications() -> None:
    """Dense peaks and two moves an activation bound every other bundled row whose work is counted."""
    cards, counts = package.accelerators(), package.counts()
    beaten, counted = set(), 0
    for result in package.throughput():
        card, work = cards[result.accelerator], counts.get(result.workload)
        on = rates(card, result.precision) if work else None  # type: ignore[arg-type]
        if work and on:
            counted += 1
            if result.samples_per_s / result.accelerators > 1 / ideal_seconds(work, on):
                beaten.add((result.workload.partition("@")[0].rstrip("_bn0123456789"), result.precision))
    assert counted > 1000
    assert beaten == {("vgg", "fp32"), ("alexnet", "fp32")}


ARITHMETIC = [
    ("middle", "fp32", "tf32"),
    ("middle", "amp_bf16", "amp"),
    ("volta", "fp32", "fp32"),
    ("volta", "tf32", "fp32"),
    ("volta", "amp", "amp"),
]


@pytest.mark.parametrize(("card", "asked", "done"), ARITHMETIC)
def test_fp32_runs_as_tf32_only_where_there_is_tf32(card: str, asked: str, done: str) -> None:
    assert arithmetic(asked, CARDS[card]) == done  # type: ignore[arg-type]


def test_without_tensor_cores_amp_runs_at_the_fp32_rate() -> None:
    pascal = rates(CARDS["old"], "amp")
    assert pascal is not None
    assert (pascal.peak_tflops, pascal.derived) == (CARDS["old"].fp32_tflops, False)


def test_a_card_without_half_precision_computes_in_fp32_whatever_is_asked() -> None:
    assert arithmetic("amp", accelerator("k80", architecture="Kepler 2.0")) == "fp32"


DERIVED = [  # card, dense fp16 rate with fp32 accumulation in 10^12 operations/s as its vendor states it
    ("rtx-a4000", 76.7),
    ("rtx-3070", 40.6),
    ("a30", 165.0),
    ("rtx-6000-ada", 364.2),
    ("t4g", 65.1),
    ("gtx-1660", 5.0),
]


@pytest.mark.parametrize(("name", "tflops"), DERIVED, ids=[d[0] for d in DERIVED])
def test_a_matrix_rate_that_no_table_gives_comes_from_the_architecture(name: str, tflops: float) -> None:
    card = replace(package.accelerators()[name], fp16_tflops=None)
    found = rates(card, "amp")
    assert found is not None
    assert found.peak_tflops == pytest.approx(tflops, rel=0.03)


def test_a_card_without_known_bandwidth_has_no_rates() -> None:
    assert rates(CARDS["secret"], "amp") is None


def test_uc_037_bfloat16_is_not_predicted_where_it_is_emulated() -> None:
    cards = package.accelerators()
    for name in ("t4", "v100-sxm2-16gb", "rtx-2080-ti"):
        assert "no native bfloat16" in str(unsupported("bf16", cards[name]))
    for name in ("l4", "rtx-3090"):
        assert unsupported("bf16", cards[name]) is None
