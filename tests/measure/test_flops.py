"""Where counters of FLOPs are silently wrong: each case on real tensors against what the shapes say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="counting needs torch: pip install 'gpuwise[torch]'")
pytest.importorskip("torchvision", reason="counting needs torchvision: pip install 'gpuwise[torch]'")

import torch
import torchvision
from torch import nn
from torch.nn import functional

from gpuwise.measure import meta


def step(model: nn.Module, *inputs: torch.Tensor) -> tuple[meta.Trace, meta.Trace]:
    """Of the same step, what is seen on the meta device and what is seen on real tensors."""
    shapes = tuple(meta.shape_of(i).requires_grad_(i.requires_grad) for i in inputs)
    return meta.trace(meta.shapes_of(model), shapes), meta.trace(model, inputs)


def test_fused_attention_of_the_cpu_is_seen() -> None:
    """torch's own counter misses it: ViT 4 %, GPT-2 13 % too little."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    on_meta, real = step(layer, torch.rand(2, 10, 64))
    assert on_meta.macs["attention"] == 2 * 2 * 10 * 10 * 64
    assert real.macs == on_meta.macs
    assert real.training == on_meta.training


def test_the_fast_path_of_evaluation_hides_no_work() -> None:
    """One fused operation for a whole layer: a counter sees a third less of a ViT."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    on_meta, _ = step(layer, torch.rand(2, 10, 64))
    with torch.no_grad(), meta.watching() as seen:
        layer.eval()(torch.rand(2, 10, 64))
    assert sum(seen.macs.values()) == sum(on_meta.macs.values())


def test_attention_that_gives_its_weights_is_of_the_class_of_attention() -> None:
    class Weights(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(64, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out, _ = self.attention(x, x, x, need_weights=True)
            return out  # type: ignore[no-any-return]

    for seen in step(Weights(), torch.rand(2, 10, 64, requires_grad=True)):
        assert seen.macs == {"matmul": 2 * 10 * 4 * 64 * 64, "attention": 2 * 2 * 10 * 10 * 64}
        assert seen.training == {kind: 3 * macs for kind, macs in seen.macs.items()}


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_are_seen_whole_and_as_such(kind: type[nn.RNNBase]) -> None:
    """On a CPU an LSTM may be one fused operation; backward it has the same products twice."""
    gates = {nn.LSTM: 4, nn.GRU: 3, nn.RNN: 1}[kind]
    forward = 2 * 10 * gates * (16 + 32) * 32
    for seen in step(kind(16, 32, batch_first=True), torch.rand(2, 10, 16, requires_grad=True)):
        assert seen.macs == {"recurrent": forward}
        assert seen.training["recurrent"] == pytest.approx(3 * forward, rel=0.06)  # nothing before the first step


def test_a_fused_recurrent_layer_in_evaluation_is_seen() -> None:
    with torch.no_grad(), meta.watching() as seen:
        nn.LSTM(16, 32, batch_first=True).eval()(torch.rand(2, 10, 16))
    assert seen.macs == {"recurrent": 2 * 10 * 4 * (16 + 32) * 32}


def test_a_cell_that_a_model_steps_itself_is_recurrent() -> None:
    for seen in step(nn.LSTMCell(16, 32), torch.rand(2, 16)):
        assert seen.macs == {"recurrent": 2 * 4 * (16 + 32) * 32}


CONVOLUTIONS = [
    ("plain", nn.Conv2d(8, 12, 3, padding=1), "conv", 8 * 12 * 9),
    ("grouped", nn.Conv2d(8, 12, 3, padding=1, groups=4), "conv", 8 * 12 * 9 / 4),
    ("depthwise", nn.Conv2d(8, 16, 3, padding=1, groups=8), "depthwise", 16 * 9),
    ("transposed", nn.ConvTranspose2d(8, 12, 2, stride=2), "conv", 8 * 12 * 4),
    ("transposed and grouped", nn.ConvTranspose2d(8, 12, 2, stride=2, groups=4), "conv", 8 * 12 * 4 / 4),
]


@pytest.mark.parametrize(("layer", "kind", "each"), [c[1:] for c in CONVOLUTIONS], ids=[c[0] for c in CONVOLUTIONS])
def test_a_convolution_costs_its_weights_at_every_place_and_twice_that_backward(
    layer: nn.Module, kind: str, each: float
) -> None:
    """The places of a transposed convolution are those of its input."""
    for seen in step(layer, torch.rand(2, 8, 10, 10, requires_grad=True)):
        assert seen.macs == {kind: 2 * 100 * each}
        assert seen.backward == {kind: 2 * 2 * 100 * each}


DIMENSIONS = [(nn.Conv1d(4, 6, 5), (2, 4, 20), 2 * 16), (nn.Conv3d(4, 6, 2), (2, 4, 5, 5, 5), 2 * 4**3)]


@pytest.mark.parametrize(("layer", "shape", "places"), DIMENSIONS, ids=["one", "three"])
def test_a_convolution_in_one_or_three_dimensions_is_counted_alike(
    layer: nn.Conv1d | nn.Conv3d, shape: tuple[int, ...], places: int
) -> None:
    for seen in step(layer, torch.rand(shape)):
        assert seen.macs == {"conv": places * layer.weight.numel()}


class Function(nn.Module):
    """A weight and what is done with it."""

    def __init__(self, shape: tuple[int, ...], work: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.weight, self.work = nn.Parameter(torch.rand(shape)), work

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.work(x, self.weight)


PRODUCTS = [
    ("matrix and vector", (8,), lambda x, w: x @ w, (10, 8), 80),
    ("two vectors", (8,), torch.dot, (8,), 8),
    ("einsum", (4, 8, 6), lambda x, w: torch.einsum("bhi,hij->bhj", x, w), (10, 4, 8), 10 * 4 * 8 * 6),
    ("bmm added", (2, 8, 6), lambda x, w: torch.baddbmm(w[:, :1], x, w), (2, 5, 8), 2 * 5 * 8 * 6),
]


@pytest.mark.parametrize(("shape", "work", "data", "macs"), [p[1:] for p in PRODUCTS], ids=[p[0] for p in PRODUCTS])
def test_products_of_every_kind_are_counted(
    shape: tuple[int, ...],
    work: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    data: tuple[int, ...],
    macs: int,
) -> None:
    for seen in step(Function(shape, work), torch.rand(data)):
        assert seen.macs == {"matmul": macs}


def test_a_deformable_convolution_is_a_convolution() -> None:
    layer = torchvision.ops.DeformConv2d(8, 12, 3, padding=1)
    for seen in step(layer, torch.rand(2, 8, 10, 10, requires_grad=True), torch.zeros(2, 18, 10, 10)):
        assert seen.macs == {"conv": 2 * 100 * 8 * 12 * 9}
        assert seen.backward == {"conv": 2 * 2 * 100 * 8 * 12 * 9}


def test_element_wise_work_is_not_counted_but_launched() -> None:
    for seen in step(nn.Sequential(nn.ReLU(), nn.BatchNorm2d(8), nn.MaxPool2d(2)), torch.rand(2, 8, 10, 10)):
        assert (seen.macs, seen.operations) == ({}, 0)
        assert seen.launches >= 3


@torch.library.custom_op("gpuwise_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_an_operation_of_somebody_elses_is_named_not_passed_over() -> None:
    with meta.watching() as seen:
        twice(torch.rand(3))
    assert seen.unknown == {"gpuwise_test::twice"}


def test_a_copy_by_shapes_shares_what_the_model_shares() -> None:
    """`to_empty` would make a second matrix of it: GPT-2 would have 163 M parameters instead of 124 M."""
    words, out = nn.Embedding(100, 8), nn.Linear(8, 100, bias=False)
    out.weight = words.weight
    copy = meta.shapes_of(nn.Sequential(words, out))
    assert copy[0].weight is copy[1].weight  # type: ignore[index]
    assert sum(p.numel() for p in copy.parameters()) == 800
    assert {p.device.type for p in copy.parameters()} == {"meta"}


def test_tracing_a_real_model_leaves_its_gradients_as_they_were() -> None:
    layer = nn.Linear(4, 4)
    layer.weight.grad = torch.ones(4, 4)
    meta.trace(layer, torch.rand(2, 4))
    assert torch.equal(layer.weight.grad, torch.ones(4, 4))
    assert layer.bias.grad is None


def test_a_watched_step_learns_what_it_would_learn_unwatched() -> None:
    torch.manual_seed(0)
    first, data = nn.Linear(4, 4), torch.rand(2, 4)
    second = nn.Linear(4, 4)
    second.load_state_dict(first.state_dict())
    functional.relu(first(data)).sum().backward()
    with meta.watching():
        functional.relu(second(data)).sum().backward()
    assert torch.equal(first.weight.grad, second.weight.grad)  # type: ignore[arg-type]
