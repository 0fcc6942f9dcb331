"""Counts against known totals: torchvision's published GFLOPS and parameters, timm's benchmark table (activations)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="counting needs torch: pip install 'gpuwise[torch]'")
pytest.importorskip("torchvision", reason="counting needs torchvision: pip install 'gpuwise[torch]'")

import torch
import torchvision
from benchmarks.count_workloads import Bert, Gpt2
from torch import nn

from gpuwise.errors import InvalidInput, MeasurementFailed, UnknownName
from gpuwise.measure import count, meta
from gpuwise.model import Workload
from gpuwise.store import package

KNOWN = [  # name, GMAC, 10^6 activations, parameters
    ("resnet34", 3.66, 3.74, 21_797_672),
    ("resnet50", 4.09, 11.11, 25_557_032),
    ("vgg16", 15.47, 13.56, 138_357_544),
    ("mobilenet_v2", 0.30, 6.68, 3_504_872),
    ("convnext_tiny", 4.46, 13.44, 28_589_128),
]


@cache
def counted(target: str, **options: int) -> count.Counts:
    """In this process: a child for each would take seconds."""
    return count.count_here(f"torchvision.models{target}", **options)


def of(make: Callable[[], nn.Module], inputs: torch.Tensor) -> count.Counts:
    return count.of_model(meta.built(make), inputs, inputs.shape[0])


@pytest.mark.parametrize(("name", "gmacs", "activations_m", "parameters"), KNOWN, ids=[k[0] for k in KNOWN])
def test_a_vision_model_has_its_known_counts(name: str, gmacs: float, activations_m: float, parameters: int) -> None:
    counts = counted(f":{name}")
    assert sum(counts.gmacs.values()) == pytest.approx(gmacs, rel=0.015)
    assert counts.activations_m == pytest.approx(activations_m, rel=0.005)
    assert counts.parameters_m * 1e6 == parameters
    assert (counts.method, counts.cautions) == ("meta", ())


def deeplab(aux_loss: bool) -> nn.Module:
    model: nn.Module = torchvision.models.segmentation.deeplabv3_resnet50(weights_backbone=None, aux_loss=aux_loss)
    return model


TOTALS = [  # GFLOP forward of a sample, and forward with backward
    ("resnet34", torchvision.models.resnet34, meta.image(2, 224), 7.328, 21.75),
    ("resnet101", torchvision.models.resnet101, meta.image(2, 224), 15.603, 46.57),
    ("vit_b_16", torchvision.models.vit_b_16, meta.image(2, 224), 35.128, 105.15),
    ("deeplabv3", partial(deeplab, False), meta.image(2, 520), 337.46, 1011.1),
    ("deeplabv3 with its second head", partial(deeplab, True), meta.image(2, 520), 357.44, 1071.1),
    ("BERT base, 128 tokens", Bert, meta.tokens(2, 128), 22.35, 67.0),
    ("GPT-2, 1024 tokens", Gpt2, meta.tokens(2, 1024), 291.6, 874.9),
]


@pytest.mark.parametrize(("make", "inputs", "forward", "training"), [t[1:] for t in TOTALS], ids=[t[0] for t in TOTALS])
def test_forward_and_backward_have_their_known_totals(
    make: Callable[[], nn.Module], inputs: torch.Tensor, forward: float, training: float
) -> None:
    counts = of(make, inputs)
    assert 2 * sum(counts.gmacs.values()) == pytest.approx(forward, rel=2e-4)
    assert counts.training_flops / 1e9 == pytest.approx(training, rel=8e-4)


def test_bert_from_torchs_own_layers_is_as_much_work() -> None:
    """12 layers of 12 × 768² weights and two products of 128 × 128 × 768."""
    layer = partial(nn.TransformerEncoderLayer, 768, 12, 3072, batch_first=True)
    counts = of(lambda: nn.TransformerEncoder(layer(), 12), torch.empty(2, 128, 768, device="meta"))
    assert counts.gmacs["matmul"] == pytest.approx(12 * 12 * 768**2 * 128 / 1e9)
    assert counts.gmacs["attention"] == pytest.approx(12 * 2 * 128**2 * 768 / 1e9)
    assert counts.training_gmacs["attention"] == pytest.approx(3 * counts.gmacs["attention"])


def test_attention_is_counted_in_full_and_its_score_matrix_is_not_written() -> None:
    """ViT-B/16: timm counts 23.9 M activations, of which 12 layers × 12 heads × 197² scores are not ours."""
    counts = counted(":vit_b_16")
    assert sum(counts.gmacs.values()) == pytest.approx(17.56, rel=0.002)
    assert counts.gmacs["attention"] == pytest.approx(2 * 12 * 197**2 * 768 / 1e9)
    assert counts.activations_m == pytest.approx(23.9 - 12 * 12 * 197**2 / 1e6, rel=0.01)


def test_work_grows_with_the_image_and_parameters_do_not() -> None:
    small, large = (counted(":resnet50", input_size=size) for size in (224, 448))
    assert large.gmacs["conv"] == pytest.approx(4 * small.gmacs["conv"])
    assert large.stored_m == pytest.approx(4 * small.stored_m, rel=0.01)
    assert large.parameters_m == small.parameters_m


def test_depthwise_convolutions_are_a_class_of_their_own_and_grouped_ones_are_not() -> None:
    gmacs = counted(":mobilenet_v2").gmacs
    assert gmacs["depthwise"] == pytest.approx(0.0206, rel=0.02)  # 7 % of the work, most of the memory traffic
    assert gmacs["conv"] > 10 * gmacs["depthwise"]
    assert set(counted(":resnext50_32x4d").gmacs) == {"conv", "matmul"}


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnext50_32x4d"])
def test_the_backward_pass_of_a_grouped_convolution_is_twice_its_forward_pass(name: str) -> None:
    """torch's own counter has the gradient of the weight once for every group."""
    counts = counted(f":{name}")
    assert counts.training_flops == pytest.approx(2e9 * 2.97 * sum(counts.gmacs.values()), rel=0.01)


def test_a_recurrent_model_counts_every_time_step(own_module: str) -> None:
    """4 gates × (input + hidden) × hidden MACs a step: 4 × 128 × 64 × 10 steps; the backward pass is twice that."""
    counts = count.count_here(f"{own_module}:recurrent", tokens=10)
    assert counts.gmacs == pytest.approx({"recurrent": 4 * (64 + 64) * 64 * 10 / 1e9})
    assert counts.training_gmacs == pytest.approx({"recurrent": 3 * counts.gmacs["recurrent"]}, rel=0.05)


def test_what_autograd_keeps_of_a_resnet_matches_a_measured_training_step() -> None:
    """ResNet-34 at batch 16 and ResNet-101 at batch 8 kept 485 and 973 MB of fp32 activations on a real CPU step."""
    for name, batch, megabytes in (("resnet34", 16, 485), ("resnet101", 8, 973)):
        kept_mb = counted(f":{name}").stored_m * 4 * batch
        assert kept_mb == pytest.approx(megabytes, rel=0.08)


def test_the_loss_and_the_output_are_held_as_well(own_module: str) -> None:
    """A language model of 64 wide and 5,000 words: its logits, and their softmax, are most of what it holds."""
    counts = count.count_here(f"{own_module}:speaker", tokens=10)
    logits = 10 * 5_000 / 1e6
    assert 2 * logits < counts.stored_m < 2.1 * logits


def test_what_gpt_2_holds_is_what_the_workload_states() -> None:
    counts = of(Gpt2, meta.tokens(2, 1024))
    assert counts.stored_m == pytest.approx(package.workloads()["gpt"].stored_m, rel=0.001)


def test_bytes_that_a_step_must_move_and_that_a_job_must_sum() -> None:
    counts = counted(":resnet50")
    assert counts.gradient_bytes == pytest.approx(4 * 25_557_032)
    assert counts.minimum_bytes(32) == pytest.approx(4e6 * (3 * 25.557032 + 2 * 32 * counts.stored_m))


def test_frozen_layers_have_no_gradient_and_less_backward_work(own_module: str) -> None:
    counts, free = (count.count_here(f"{own_module}:{name}", input_size=32) for name in ("frozen", "free"))
    assert counts.trainable_m == pytest.approx(free.trainable_m - 3 * 8 * 9 / 1e6)
    assert sum(counts.training_gmacs.values()) < sum(free.training_gmacs.values())


def test_launches_are_the_operations_that_do_something() -> None:
    """Convolution, then ReLU; their gradients, and those that the loss adds: a dozen, no view among them."""
    counts = of(lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten()), meta.image(2, 16))
    assert counts.operations == 1
    assert 6 <= counts.launches <= 20


def test_describe_gives_a_workload_that_names_what_it_assumes() -> None:
    workload = described("torchvision.models:resnet50", counted(":resnet50"), batch=128, optimizer="adamw")
    assert (workload.name, workload.family, workload.sample) == ("resnet50", "cnn", "image")
    assert workload.measured_as == ("resnet50",)
    assert workload.gmacs == pytest.approx(sum(counted(":resnet50").gmacs.values()))
    assert workload.batch_per_accelerator == 128
    assert workload.state_bytes_per_parameter == 16
    assert set(workload.assumed) == {"samples", "epochs"}
    assert workload.accuracy_fraction is None
    assert "accuracy_fraction" in workload.reasons


def described(target: str, counts: count.Counts, **given: object) -> Workload:
    usual = {"input_size": 224, "tokens": None, "batch": 64, "precision": "amp", "optimizer": "sgd"}
    return count.workload(counts, target, **usual | {"samples": None, "epochs": None} | given)  # type: ignore[arg-type]


def test_what_a_person_states_is_no_assumption() -> None:
    workload = described("torchvision.models:resnet34", counted(":resnet34"), samples=79_433, epochs=30)
    assert workload.assumed == {}
    assert workload.total_samples == 79_433 * 30


def test_another_image_size_is_not_the_workload_that_was_measured() -> None:
    counts = counted(":resnet34", input_size=320)
    assert described("torchvision.models:resnet34", counts, input_size=320).measured_as == ()


def test_a_detection_model_is_counted_on_a_real_image_with_made_up_boxes() -> None:
    """SSDlite with MobileNetV3: torchvision publishes 0.583 GMAC; the model brings any image to 320 px. It refuses a
    single image."""
    target = "torchvision.models.detection:ssdlite320_mobilenet_v3_large"
    workload = described(target, counted(".detection:ssdlite320_mobilenet_v3_large"))
    assert workload.gmacs == pytest.approx(0.583, rel=2e-3)
    assert (workload.family, workload.parameters_m) == ("cnn", pytest.approx(3.440, rel=1e-3))
    assert "7 boxes" in workload.assumed["gmacs"]
    assert "320 px" in workload.assumed["gmacs"]
    assert workload.source.ref == f"counted on real tensors: {target}"


def test_faster_r_cnn_at_800_px_is_counted_forward_and_backward() -> None:
    """254.7 and 761 GFLOP with the 512 regions of a training step; torchvision's 268.8 has the 1,000 of evaluation."""
    counts = counted(".detection:fasterrcnn_resnet50_fpn")
    assert 2 * sum(counts.gmacs.values()) == pytest.approx(254.7, rel=1e-3)
    assert counts.training_flops / 1e9 == pytest.approx(761, rel=1e-3)
    assert counts.method == "real"


class RetinaNet(nn.Module):
    """The layers alone, without what depends on the boxes: these can be counted on shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.model = torchvision.models.detection.retinanet_resnet50_fpn(weights=None, weights_backbone=None)

    def forward(self, image: torch.Tensor) -> object:
        return self.model.head(list(self.model.backbone(image).values()))


def test_the_layers_of_retinanet_at_800_px_have_the_work_that_torchvision_publishes() -> None:
    """151.54 GMAC, all of it in layers; a training step on real tensors with boxes has 906 GFLOP as well."""
    counts = of(RetinaNet, meta.image(1, 800))
    assert sum(counts.gmacs.values()) == pytest.approx(151.54, rel=1e-4)
    assert counts.training_flops / 1e9 == pytest.approx(906, rel=1e-3)


OWN = """
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as attend
print("a module may talk")
number = 3
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.cell = nn.Embedding(100, 64), nn.LSTM(64, 64, batch_first=True)
    def forward(self, x):
        return self.cell(self.words(x))[0]
recurrent = Recurrent
def speaker():
    return nn.Sequential(nn.Embedding(5000, 64), nn.Linear(64, 5000))
def needs(width):
    return nn.Linear(width, 1)
def text():
    return 'no model'
def free():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3))
def frozen():
    model = free()
    model[0].weight.requires_grad_(False)
    return model
class Reader(nn.Module):
    "Reads a value while it is built, and makes tensors without a word about their device."
    def __init__(self):
        super().__init__()
        self.layer, self.rate = nn.Linear(8, 8), torch.linspace(0, 1, 3)[1].item()
    def forward(self, x):
        return self.layer(x[..., :8]) * (self.rate + torch.arange(8))
class Chooser(nn.Module):
    "Goes on with those values that are above the mean."
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 8, 3)
    def forward(self, x):
        y = self.layer(x)
        return y[y > y.mean()] if y.mean().item() < 9 else y
class Own(nn.Module):
    "Holds the function of attention under a name of its own; two layers share a weight."
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(100, 64), nn.Linear(64, 100, bias=False)
        self.out.weight = self.words.weight
    def forward(self, x):
        x = self.words(x).unsqueeze(1)
        return self.out(attend(x, x, x).squeeze(1))
class Endless(nn.Module):
    def forward(self, x):
        while True:
            x = x + 1
def lazy():
    return nn.Sequential(nn.LazyConv2d(8, 3), nn.Flatten(), nn.LazyLinear(4))
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of the person's own, in the current folder."""
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield name
    sys.modules.pop(name, None)


def test_a_model_in_the_current_folder_is_found_by_the_child_process(own_module: str) -> None:
    workload = count.describe(f"{own_module}:recurrent", tokens=10, optimizer="adam")
    assert (workload.sample, workload.family) == ("sequence", "transformer")
    assert workload.gmacs == pytest.approx(4 * (64 + 64) * 64 * 10 / 1e9)
    assert (workload.state_bytes_per_parameter, workload.measured_as) == (16, ())


def test_a_model_that_reads_a_value_while_it_is_built_is_counted_on_shapes_all_the_same(own_module: str) -> None:
    counts = count.count_here(f"{own_module}:Reader", input_size=16)
    assert counts.method == "meta"
    assert counts.gmacs == pytest.approx({"matmul": 3 * 16 * 8 * 8 / 1e9})


def test_a_model_that_chooses_by_values_is_counted_on_real_tensors_and_says_so(own_module: str) -> None:
    counts = count.count_here(f"{own_module}:Chooser", input_size=16)
    assert counts.method == "real"
    assert counts.gmacs == pytest.approx({"conv": 14 * 14 * 8 * 3 * 9 / 1e9})
    assert "depends on the data" in counts.cautions[0]


def test_attention_is_known_under_any_name_and_a_shared_weight_counts_once(own_module: str) -> None:
    counts = count.count_here(f"{own_module}:Own", tokens=10)
    assert counts.gmacs["attention"] == pytest.approx(2 * 10 * 10 * 64 / 1e9)
    assert counts.parameters_m == pytest.approx(100 * 64 / 1e6)


def test_a_lazy_model_learns_its_shapes_first(own_module: str) -> None:
    counts = count.count_here(f"{own_module}:lazy", input_size=16)
    assert counts.parameters_m == pytest.approx((8 * 28 + 4 * (14 * 14 * 8 + 1)) / 1e6)
    assert counts.gmacs["conv"] == pytest.approx(14 * 14 * 8 * 27 / 1e9)


WRONG = [
    ("torchvision.models:resnet5", UnknownName, "resnet50"),
    ("torchvision.models", InvalidInput, "module:callable"),
    ("no_such_module:model", InvalidInput, "cannot import no_such_module"),
    ("{own}:number", InvalidInput, "not a torch.nn.Module"),
    ("{own}:text", InvalidInput, "gives a str, not a torch.nn.Module"),
    ("{own}:needs", InvalidInput, "width"),
    ("{own}:recurrent", InvalidInput, "--tokens"),
]


@pytest.mark.parametrize(("target", "kind", "says"), WRONG, ids=[w[0] for w in WRONG])
def test_a_target_that_cannot_be_counted_says_why(own_module: str, target: str, kind: type, says: str) -> None:
    with pytest.raises(kind, match=says):
        count.count_here(target.format(own=own_module))


def test_the_child_process_hands_back_the_error_with_the_names_that_are_near(own_module: str) -> None:
    with pytest.raises(UnknownName, match="recurrent") as caught:
        count.describe(f"{own_module}:recurent")
    assert "recurrent" in caught.value.nearest
    assert caught.value.message.template == "{module} has no “{name}”"


def test_a_model_that_takes_too_long_is_stopped(own_module: str) -> None:
    with pytest.raises(MeasurementFailed, match=r"counting the model took longer than 0\.1 s"):
        count.count(f"{own_module}:Endless", limits_s={"meta": 0.1, "real": 1.0})


@pytest.mark.parametrize(
    ("option", "value"), [("precision", "fp12"), ("optimizer", "lion"), ("batch", 0), ("input_size", -1)]
)
def test_an_option_out_of_its_range_is_refused(option: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=str(value)):
        count.describe("torchvision.models:resnet50", **{option: value})  # type: ignore[arg-type]


def test_without_torch_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for counting in (count.describe, count.count_here):
        with pytest.raises(InvalidInput, match=r"gpuwise\[torch\]"):
            counting("collections:OrderedDict")


def test_counting_leaves_torch_as_it_was() -> None:
    before = torch.nn.functional.scaled_dot_product_attention
    counted(":vit_b_16")
    assert torch.nn.functional.scaled_dot_product_attention is before
    assert torch.backends.mha.get_fastpath_enabled()
    assert torch.ones(1).device.type == "cpu"


def small() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10))


def test_work_of_a_model_that_is_about_to_be_trained_leaves_it_alone() -> None:
    model = small().eval()
    found = count.work(model, torch.rand(4, 3, 16, 16), samples_per_step=64, peak_tflops=1.0, peak_source="data sheet")
    forward = (14 * 14 * 8 * 27 + 8 * 14 * 14 * 10) / 1e9
    backward = (14 * 14 * 8 * 27 + 2 * 8 * 14 * 14 * 10) / 1e9  # the image needs no gradient
    assert found.gmacs == pytest.approx(forward)
    assert found.flops_per_step == pytest.approx(2e9 * (forward + backward) * 64)
    assert (found.parameters_m, found.peak_source) == (pytest.approx((8 * 28 + 15690) / 1e6), "data sheet")
    assert not model.training
    assert all(p.grad is None and p.device.type == "cpu" for p in model.parameters())


def test_work_of_a_model_in_half_precision_is_that_in_full_precision() -> None:
    full, half = (count.work(small().to(t), torch.rand(2, 3, 16, 16, dtype=t), samples_per_step=2) for t in TYPES)
    assert half == full


TYPES = (torch.float32, torch.bfloat16)


def test_a_step_can_be_watched_where_shapes_do_not_suffice(own_module: str) -> None:
    sys.path.insert(0, "")
    try:
        model = __import__(own_module).Chooser()
    finally:
        sys.path.remove("")
    batch = torch.rand(2, 3, 16, 16)
    blind = count.work(model, batch, samples_per_step=8)
    assert blind.flops_per_step is None
    assert "not countable from its shapes" in blind.reasons["flops_per_step"]
    with meta.watching() as seen:
        model(batch).sum().backward()
    watched = count.work_seen(model, seen, samples=2, samples_per_step=8)
    assert watched.gmacs == pytest.approx(14 * 14 * 8 * 27 / 1e9)
    assert watched.flops_per_step == pytest.approx(8 * 2 * 2 * 14 * 14 * 8 * 27)
    assert watched.stored_m is None
    assert "stored_m" in watched.reasons


def test_a_step_in_which_nothing_was_seen_has_no_work_and_a_reason() -> None:
    with meta.watching() as seen:
        pass
    found = count.work_seen(small(), seen, samples=2, samples_per_step=8)
    assert (found.gmacs, found.flops_per_step) == (None, None)
    assert set(found.reasons) >= {"gmacs", "flops_per_step"}
