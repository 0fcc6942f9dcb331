"""Peak memory counted on fake tensors, against the allocator of the CPU, torch's own tracker and known figures."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import get_args

import pytest

pytest.importorskip("torch", reason="counting needs torch: pip install 'gpuwise[torch]'")
pytest.importorskip("torchvision", reason="counting needs torchvision: pip install 'gpuwise[torch]'")

import torch
import torchvision
from benchmarks.memory_counts import Case, allocated_mb, case, counted_mb, encoder, tracked_mb
from torch import nn

from gpuwise import api
from gpuwise.errors import InvalidInput, UnknownName
from gpuwise.measure import ledger, memory, meta
from gpuwise.request import DescribeRequest
from gpuwise.workloads import override

MB = 2**30 / 1e6
"""Megabytes (10^6 bytes) of a gibibyte."""


def dilated() -> nn.Module:
    """One convolution with gaps, as the head of DeepLab has: columns of the whole batch are much of its memory."""
    return nn.Sequential(nn.Conv2d(3, 512, 3, padding=1), nn.Conv2d(512, 256, 3, padding=12, dilation=12))


SMALL = (
    case("resnet18", 4, 96),
    case("squeezenet1_1", 8, 96, "adam"),
    case("shufflenet_v2_x0_5", 8, 64, "adamw"),
    Case("encoder", encoder, 4, 64, "adamw", text=True),
)


@pytest.mark.parametrize("small", SMALL, ids=[c.name for c in SMALL])
def test_the_count_is_within_a_tenth_of_what_the_cpu_allocates(small: Case) -> None:
    assert counted_mb(small) == pytest.approx(allocated_mb(small), rel=0.1)


def test_a_dilated_convolution_takes_its_columns_or_none_as_the_cpu_has_units_for_it() -> None:
    """oneDNN makes columns of the whole batch, but copies only the weights where the CPU multiplies in tiles (AMX)."""
    gaps = Case("dilated", dilated, 2, 32)
    columns, none = (
        ledger.peak(meta.built(dilated), gaps.meta(), replace(gaps.step, kernels=kernels)).total_gib * MB
        for kernels in ("cpu", "cuda")
    )
    found, weights = allocated_mb(gaps), sum(p.numel() * p.element_size() for p in dilated().parameters()) / 1e6
    tiles = none - 1 <= found <= none + 2 * weights  # with copies of the weights in tiles
    assert tiles or found == pytest.approx(columns, rel=0.1)
    assert columns > 1.4 * none


def test_a_gpu_makes_no_columns_for_a_dilated_convolution() -> None:
    on_cpu, on_gpu = (
        memory.of_model(dilated(), torch.empty(2, 3, 32, 32), kernels=kernels).total_gib for kernels in ("cpu", "cuda")
    )
    assert on_cpu > 1.4 * on_gpu


def test_the_count_is_what_torchs_own_tracker_says() -> None:
    small = case("squeezenet1_1", 8, 96, "adam")
    assert counted_mb(small) == pytest.approx(tracked_mb(small), rel=0.001)


def peak(model: nn.Module, inputs: torch.Tensor, **how: str) -> memory.Peak:
    return memory.of_model(model, inputs, **how)  # type: ignore[arg-type]


KNOWN = [  # a real step on a CPU: 738 and 2,011 MB
    ("resnet34", 16, "momentum", 733, "backward", 738),
    ("vit_b_16", 8, "adam", 2011, "backward", 2011),
]


@pytest.mark.parametrize(("name", "batch", "optimizer", "mb", "phase", "real_mb"), KNOWN, ids=[k[0] for k in KNOWN])
def test_a_training_step_has_its_known_peak(
    name: str, batch: int, optimizer: str, mb: float, phase: str, real_mb: float
) -> None:
    found = peak(meta.built(getattr(torchvision.models, name)), meta.image(batch, 224), optimizer=optimizer)
    assert found.total_gib * MB == pytest.approx(mb, rel=0.002)
    assert found.total_gib * MB == pytest.approx(real_mb, rel=0.01)
    assert found.phase == phase


def test_the_parts_add_up_to_the_peak() -> None:
    found = peak(meta.built(plain), meta.image(8, 32), optimizer="adam")
    parts = (found.parameters_gib, found.gradients_gib, found.optimizer_gib, found.activations_gib, found.temporary_gib)
    assert sum(parts) == pytest.approx(found.total_gib)
    assert found.total_gib == max(found.phases_gib.values())


def wide() -> nn.Module:
    """Ten million parameters, hardly any activations."""
    with torch.device("meta"):
        return nn.Sequential(*(nn.Linear(1000, 1000, bias=False) for _ in range(10)))


GIB = 1e7 * 4 / 2**30
"""Of those parameters, in fp32."""
UPDATES = [  # optimizer, states, temporaries of the optimizer when it takes all parameters at once: copies of the model
    ("sgd", 0, 0),
    ("momentum", 1, 0),
    ("adam", 2, 1),
    ("adamw", 2, 1),
]


@pytest.mark.parametrize(("optimizer", "states", "copies"), UPDATES, ids=[u[0] for u in UPDATES])
def test_the_states_of_an_optimizer_and_its_temporaries_are_seen(optimizer: str, states: int, copies: int) -> None:
    """vit_l_16 with Adam: 6.1 GB all at once, 4.9 GB one by one, as PyTorch's tutorial on its memory shows."""
    batch = torch.empty(1, 1000, device="meta")
    at_once, alone, fused = (peak(wide(), batch, optimizer=optimizer, update=u) for u in ("foreach", "loop", "fused"))
    assert at_once.optimizer_gib == pytest.approx(states * GIB, rel=0.001)
    assert at_once.phases_gib["optimizer"] == pytest.approx((2 + states + copies) * GIB, rel=0.005)
    assert alone.phases_gib["optimizer"] <= (2 + states + 0.31) * GIB  # three copies of one layer in ten
    assert fused.phases_gib["optimizer"] == pytest.approx((2 + states) * GIB, rel=0.005)


def plain() -> nn.Module:
    layers = (nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16), nn.ReLU())
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 28 * 28, 10))


def test_half_precision_halves_everything_and_autocast_the_activations_alone() -> None:
    full, half, amp = (peak(meta.built(plain), meta.image(16, 32), precision=p) for p in ("fp32", "bf16", "amp"))
    assert half.total_gib == pytest.approx(full.total_gib / 2, rel=0.02)
    assert amp.parameters_gib == full.parameters_gib
    assert amp.optimizer_gib == full.optimizer_gib
    assert 0.45 * full.activations_gib < amp.activations_gib < 0.75 * full.activations_gib


class Attends(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.attention(x, x, x, need_weights=False)[0])  # type: ignore[no-any-return]


def test_attention_on_a_gpu_holds_no_scores_and_dropout_a_byte_an_element() -> None:
    """512 tokens: scores would be 4 × 512² elements a sample, thirty-two times the output."""
    batch, out_gib = torch.empty(8, 512, 64, device="meta"), 8 * 512 * 64 * 4 / 2**30

    def forward(dropout: float, kernels: memory.Kernels) -> float:
        return memory.of_model(Attends(dropout), batch, kernels=kernels).phases_gib["forward"]

    on_gpu, on_cpu = ([forward(dropout, kernels) for dropout in (0.0, 0.5)] for kernels in get_args(memory.Kernels))
    assert on_gpu[0] < 12 * out_gib
    assert on_gpu[1] - on_gpu[0] == pytest.approx(out_gib / 4)  # a byte for each element of four bytes
    assert on_cpu[1] - on_cpu[0] == pytest.approx(out_gib, rel=0.01)


def test_memory_grows_in_proportion_to_the_batch() -> None:
    four, eight, sixteen = (
        peak(meta.built(plain), meta.image(batch, 32)).phases_gib["forward"] for batch in (4, 8, 16)
    )
    assert sixteen - eight == pytest.approx(2 * (eight - four), rel=0.001)


def test_a_shared_weight_takes_its_memory_once() -> None:
    with torch.device("meta"):
        words, out = nn.Embedding(5000, 64), nn.Linear(64, 5000, bias=False)
    out.weight = words.weight
    found = peak(nn.Sequential(words, out), meta.tokens(1, 4))
    assert found.parameters_gib == pytest.approx(5000 * 64 * 4 / 2**30)


def test_counting_takes_no_memory_of_its_own_and_leaves_the_model_alone() -> None:
    model = nn.Linear(4, 4).eval()
    memory.of_model(model, torch.rand(2, 4))
    assert not model.training
    assert model.weight.grad is None
    assert type(model.weight) is nn.Parameter


def test_the_peak_of_a_named_model_comes_from_a_child_process() -> None:
    asked = {"batch": 8, "input_size": 64, "optimizer": "adam", "update": "fused"}
    found, here = (ask("torchvision.models:squeezenet1_1", **asked) for ask in (memory.peak, memory.peak_here))
    assert found == here


def test_what_cannot_be_counted_says_to_measure() -> None:
    with pytest.raises(InvalidInput, match="Measure it"):
        memory.peak_here("torchvision.models.detection:ssd300_vgg16", batch=1)


@pytest.mark.parametrize("wrong", [{"optimizer": "lion"}, {"precision": "fp12"}, {"update": "slowly"}])
def test_a_name_that_is_not_known_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UnknownName, match=next(iter(wrong.values()))):
        memory.peak("torchvision.models:resnet18", batch=1, **wrong)  # type: ignore[arg-type]


def test_fp8_has_no_autocast_and_is_refused() -> None:
    with pytest.raises(InvalidInput, match="fp8"):
        memory.peak("torchvision.models:resnet18", batch=1, precision="fp8")


def test_describe_tells_the_peak_and_another_batch_takes_it_away_again():
    request = DescribeRequest(target="torchvision.models:resnet18", batch=8, input_size=96)
    workload = api.describe(request, today=date(2026, 11, 30)).workload
    assert 0.1 < workload.peak_memory_gib < 0.6
    assert "fake tensors" in str(workload.reasons["peak_memory_gib"])
    assert override(workload, batch=16).peak_memory_gib is None
    assert override(workload, batch=8).peak_memory_gib == workload.peak_memory_gib
