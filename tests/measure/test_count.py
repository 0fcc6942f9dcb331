"""Counts against known totals: torchvision's published GFLOPS and parameters, timm's benchmark table (activations)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="counting needs torch: pip install 'gpuwise[torch]'")
pytest.importorskip("torchvision", reason="counting needs torchvision: pip install 'gpuwise[torch]'")

import torch

from gpuwise.errors import InvalidInput, UnknownName
from gpuwise.measure import count

KNOWN = [  # name, GMAC, 10^6 activations, parameters
    ("resnet34", 3.66, 3.74, 21_797_672),
    ("resnet50", 4.09, 11.11, 25_557_032),
    ("resnet101", 7.80, 16.23, 44_549_160),
    ("vgg16", 15.47, 13.56, 138_357_544),
    ("mobilenet_v2", 0.30, 6.68, 3_504_872),
    ("convnext_tiny", 4.46, 13.44, 28_589_128),
]


@pytest.mark.parametrize(("name", "gmacs", "activations_m", "parameters"), KNOWN, ids=[k[0] for k in KNOWN])
def test_a_vision_model_has_its_known_counts(name: str, gmacs: float, activations_m: float, parameters: int) -> None:
    counts = count.count(f"torchvision.models:{name}")
    assert sum(counts.gmacs.values()) == pytest.approx(gmacs, rel=0.015)
    assert counts.activations_m == pytest.approx(activations_m, rel=0.005)
    assert counts.parameters_m * 1e6 == parameters


def test_attention_is_counted_in_full_and_its_score_matrix_is_not_written() -> None:
    """ViT-B/16: timm counts 23.9 M activations, of which 12 layers × 12 heads × 197² scores are not ours."""
    counts = count.count("torchvision.models:vit_b_16")
    assert sum(counts.gmacs.values()) == pytest.approx(17.56, rel=0.002)
    assert counts.gmacs["attention"] == pytest.approx(2 * 12 * 197**2 * 768 / 1e9)
    assert counts.activations_m == pytest.approx(23.9 - 12 * 12 * 197**2 / 1e6, rel=0.01)


def test_work_grows_with_the_image_and_parameters_do_not() -> None:
    small, large = (count.count("torchvision.models:resnet50", input_size=size) for size in (224, 448))
    assert large.gmacs["conv"] == pytest.approx(4 * small.gmacs["conv"])
    assert large.stored_m == pytest.approx(4 * small.stored_m, rel=0.01)
    assert large.parameters_m == small.parameters_m


def test_depthwise_convolutions_are_a_class_of_their_own() -> None:
    gmacs = count.count("torchvision.models:mobilenet_v2").gmacs
    assert gmacs["depthwise"] == pytest.approx(0.0206, rel=0.02)  # 7 % of the work, most of the memory traffic
    assert gmacs["conv"] > 10 * gmacs["depthwise"]


def test_a_recurrent_model_counts_every_time_step(own_module: str) -> None:
    """4 gates × (input + hidden) × hidden MACs a step: 4 × 128 × 64 × 10 steps."""
    counts = count.count(f"{own_module}:recurrent", tokens=10)
    assert sum(counts.gmacs.values()) == pytest.approx(4 * (64 + 64) * 64 * 10 / 1e9)


def test_what_autograd_keeps_of_a_resnet_matches_a_measured_training_step() -> None:
    """ResNet-34 at batch 16 and ResNet-101 at batch 8 kept 485 and 973 MB of fp32 activations on a real CPU step."""
    for name, batch, megabytes in (("resnet34", 16, 485), ("resnet101", 8, 973)):
        kept_mb = count.count(f"torchvision.models:{name}").stored_m * 4 * batch
        assert kept_mb == pytest.approx(megabytes, rel=0.08)


def test_the_loss_and_the_output_are_held_as_well(own_module: str) -> None:
    """A language model of 64 wide and 5,000 words: its logits, and their softmax, are most of what it holds."""
    counts = count.count(f"{own_module}:speaker", tokens=10)
    logits = 10 * 5_000 / 1e6
    assert 2 * logits < counts.stored_m < 2.1 * logits


def test_what_gpt_2_holds_is_what_the_workload_states() -> None:
    from benchmarks.count_workloads import Gpt2

    from gpuwise.measure import meta
    from gpuwise.store import package

    model = meta.build(Gpt2)
    assert isinstance(model, torch.nn.Module)
    held_m = meta.trace(model, meta.tokens(2, 1024)).kept_bytes / 2 / 4e6
    assert held_m == pytest.approx(package.workloads()["gpt"].stored_m, rel=0.001)


def test_describe_gives_a_workload_that_names_what_it_assumes() -> None:
    workload = count.describe("torchvision.models:resnet50", batch=128, optimizer="adamw")
    assert (workload.name, workload.family, workload.sample) == ("resnet50", "cnn", "image")
    assert workload.measured_as == ("resnet50",)
    assert workload.batch_per_accelerator == 128
    assert workload.state_bytes_per_parameter == 16
    assert set(workload.assumed) == {"samples", "epochs"}
    assert workload.accuracy_fraction is None
    assert "accuracy_fraction" in workload.reasons


def test_what_a_person_states_is_no_assumption() -> None:
    workload = count.describe("torchvision.models:resnet34", samples=79_433, epochs=30)
    assert workload.assumed == {}
    assert workload.total_samples == 79_433 * 30


def test_another_image_size_is_not_the_workload_that_was_measured() -> None:
    assert count.describe("torchvision.models:resnet50", input_size=320).measured_as == ()


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the person's own, in the current folder."""
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(
        "from torch import nn\n"
        "number = 3\n"
        "class Recurrent(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.words, self.cell = nn.Embedding(100, 64), nn.LSTM(64, 64, batch_first=True)\n"
        "    def forward(self, x):\n"
        "        return self.cell(self.words(x))[0]\n"
        "recurrent = Recurrent\n"
        "def speaker():\n"
        "    return nn.Sequential(nn.Embedding(5000, 64), nn.Linear(64, 5000))\n"
        "def needs(width):\n"
        "    return nn.Linear(width, 1)\n"
        "def text():\n"
        "    return 'no model'\n"
    )
    monkeypatch.chdir(tmp_path)
    yield name
    sys.modules.pop(name, None)


def test_a_model_in_the_current_folder_is_found(own_module: str) -> None:
    workload = count.describe(f"{own_module}:recurrent", tokens=10)
    assert (workload.sample, workload.family) == ("sequence", "transformer")


WRONG = [
    ("torchvision.models:resnet5", UnknownName, "resnet50"),
    ("torchvision.models", InvalidInput, "module:callable"),
    ("no_such_module:model", InvalidInput, "cannot import no_such_module"),
    ("{own}:number", InvalidInput, "not a torch.nn.Module"),
    ("{own}:text", InvalidInput, "gives a str, not a torch.nn.Module"),
    ("{own}:needs", InvalidInput, "width"),
    ("{own}:recurrent", InvalidInput, "--tokens"),
    ("torchvision.models.detection:fasterrcnn_resnet50_fpn", InvalidInput, "cannot be counted without data"),
]


@pytest.mark.parametrize(("target", "kind", "says"), WRONG, ids=[w[0] for w in WRONG])
def test_a_target_that_cannot_be_counted_says_why(own_module: str, target: str, kind: type, says: str) -> None:
    with pytest.raises(kind, match=says):
        count.describe(target.format(own=own_module))


@pytest.mark.parametrize(
    ("option", "value"), [("precision", "fp12"), ("optimizer", "lion"), ("batch", 0), ("input_size", -1)]
)
def test_an_option_out_of_its_range_is_refused(option: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=str(value)):
        count.describe("torchvision.models:resnet50", **{option: value})  # type: ignore[arg-type]


def test_without_torch_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "gpuwise.measure.meta", raising=False)
    with pytest.raises(InvalidInput, match=r"gpuwise\[torch\]"):
        count.describe("collections:OrderedDict")


def test_counting_leaves_torch_as_it_was() -> None:
    before = torch.nn.functional.scaled_dot_product_attention
    count.count("torchvision.models:vit_b_16")
    assert torch.nn.functional.scaled_dot_product_attention is before
    assert torch.ones(1).device.type == "cpu"
