"""Small worlds for the predictor: invented accelerators and rows, so that a test shows all that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from gpuwise.model import Accelerator, Assumption, BenchmarkResult, Measurement, Platform, Source, Workload
from gpuwise.predict import Evidence, Work
from gpuwise.predict.answer import Model
from gpuwise.predict.features import Basis
from gpuwise.predict.fit import Design, basis, posterior, usable
from gpuwise.predict.gp import START, Posterior
from gpuwise.predict.reference import REFERENCE
from gpuwise.predict.roofline import work_of
from gpuwise.predict.rows import readings
from gpuwise.predict.setting import Reading, Setting

ASSUMPTIONS = {
    name: Assumption(name=name, value=value, low=None, high=None, unit="1", source="test")
    for name, value in (
        ("noise_other_machine_log_sd", 0.035),
        ("noise_memory_format_log_sd", 0.31),
        ("usable_memory_fraction", 0.95),
    )
}


def accelerator(key: str, **changes: object) -> Accelerator:
    """An Ampere card between A10 and A100 unless changed."""
    usual = Accelerator(
        id=key,
        name=key.upper(),
        vendor="NVIDIA",
        architecture="Ampere",
        form_factor="PCIe",
        memory_gib=24.0,
        bandwidth_gb_per_s=900.0,
        fp32_tflops=20.0,
        tf32_tflops=75.0,
        fp16_tflops=150.0,
        bf16_tflops=150.0,
        tdp_w=300.0,
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


CARDS = {
    card.id: card
    for card in (
        accelerator("small", bandwidth_gb_per_s=450.0, fp16_tflops=70.0, tf32_tflops=35.0, tdp_w=150.0),
        accelerator("middle"),
        accelerator("large", bandwidth_gb_per_s=2000.0, fp16_tflops=312.0, tf32_tflops=156.0, tdp_w=400.0,
                    form_factor="SXM4", memory_gib=80.0),
        accelerator("old", architecture="Pascal", fp32_tflops=11.0, tf32_tflops=None, fp16_tflops=None,
                    bf16_tflops=None, tdp_w=250.0, memory_gib=11.0),
        accelerator("volta", architecture="Volta", fp32_tflops=15.0, tf32_tflops=None, fp16_tflops=120.0,
                    bf16_tflops=None),
        accelerator("tpu", vendor="Google", architecture="TPU", fp32_tflops=None, tf32_tflops=None, fp16_tflops=None),
        accelerator("radeon", vendor="AMD", architecture="CDNA 3", fp16_tflops=600.0, tf32_tflops=None,
                    bandwidth_gb_per_s=3000.0, memory_gib=128.0),
        accelerator("secret", bandwidth_gb_per_s=None),
    )
}  # fmt: skip

JOB = Workload(
    name="job",
    title="a network like ResNet-101",
    family="cnn",
    model="job",
    sample="image",
    gmacs=7.8,
    activations_m=16.2,
    parameters_m=44.5,
    operations=105,
    state_bytes_per_parameter=12.0,
    batch_per_accelerator=64,
    precision="amp",
    samples=1000,
    epochs=1.0,
    source=Source(kind="assumed", ref="test"),
)


def row(workload: str, card: str, rate: float, **changes: object) -> BenchmarkResult:
    """A measured rate of one card in AMP at batch 64 with current software unless changed."""
    usual = BenchmarkResult(
        workload=workload,
        family="cnn",
        accelerator=card,
        accelerators=1,
        precision="amp",
        batch_per_accelerator=64,
        samples_per_s=rate,
        software="ngc-pytorch-2.3",
        source=Source(kind="published", ref="test"),
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


COUNTS = {"job": work_of(JOB)}


@cache
def shared_basis() -> Basis:
    """Smooth functions over the cards here and the counted networks of the benchmark."""
    some = CARDS["middle"]
    networks = [
        Setting(workload=name, family="cnn", accelerator=some, precision="amp", batch=64, work=work)
        for name, work in (*REFERENCE.items(), *COUNTS.items())
    ]
    return basis(CARDS.values(), networks)


def fitted(rows: Iterable[Reading]) -> Model:
    """The model that has seen these rows and nothing else; its scales are those from which a fit starts."""
    seen = usable(rows)
    if seen:
        return Model(posterior=posterior(Design.of(seen, shared_basis()), START), factors={})
    nothing: frozenset[str] = frozenset()
    prior = Posterior(
        scales=START, basis=shared_basis(), starts={}, block=(), mean=np.zeros(0), covariance=np.zeros((0, 0)),
        workloads=nothing, answering=nothing, cards=nothing, architectures=nothing, families=nothing,
    )  # fmt: skip
    return Model(posterior=prior, factors={})


def evidence(
    *rows: BenchmarkResult, counts: Mapping[str, Work] = COUNTS, measurements: Iterable[Measurement] = ()
) -> Evidence:
    """These rows, a model fitted on exactly them, and a person's own runs."""
    return Evidence.of(rows, CARDS, fitted(readings(rows, CARDS, counts)), measurements)


def on(*cards: str, n: int = 1, nodes: int = 1, link: str | None = None) -> Platform:
    return Platform(variants=tuple(CARDS[c] for c in cards), per_node=n, nodes=nodes, link=link)
