"""The counts that data/workloads.toml and predict/reference.py state, counted again.

    python -m benchmarks.count_workloads [NAME …]

Needs the extra [torch]. The models have the shapes of those that people train and that the benchmarks ran; they are
never trained here. Mask R-CNN needs data: real tensors at 800 × 1066 px (the mean shape of a COCO image at that size),
seven random boxes, weights at the start of training. Mask R-CNN and Tacotron 2 take a minute or two each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.counts import count
from benchmarks.reference_models import Gnmt, NeuMf, Tacotron2, TransformerXl, WaveGlow
from gpuwise.measure import meta
from gpuwise.predict.reference import SAMPLES_PER_ITEM

PAINTERS = 1584

Inputs = Tensor | tuple[Tensor, ...]
Case = tuple[str, Callable[[], nn.Module], Inputs]


class Attention(nn.Module):
    """Self-attention; unfused, it writes its score matrix, as it did before 2022."""

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        parts = (self.query(x), self.key(x), self.value(x))
        query, key, value = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts)
        if self.fused:
            mixed = functional.scaled_dot_product_attention(query, key, value)
        else:
            mixed = (query @ key.transpose(-1, -2)).softmax(-1) @ value
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads, fused)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x + self.attention(x))
        return self.second(x + self.narrow(functional.gelu(self.wide(x))))


class Bert(nn.Module):
    """With the two outputs of question answering."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, fused: bool = True) -> None:
        super().__init__()
        self.words, self.places, self.kinds = (nn.Embedding(n, width) for n in (30_522, 512, 2))
        self.norm, self.answer = nn.LayerNorm(width), nn.Linear(width, 2)
        self.blocks = nn.Sequential(*(Block(width, heads, fused) for _ in range(layers)))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]] + self.kinds.weight[0]
        return self.answer(self.blocks(self.norm(x)))


class Gpt2(nn.Module):
    """124 M parameters; input and output embedding are one."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50_257, width), nn.Embedding(1024, width)
        self.blocks, self.norm = nn.Sequential(*(Block(width, heads, True) for _ in range(layers))), nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.words.weight)


class Ssd300(nn.Module):
    """SSD at 300 px on ResNet-50 up to its third stage, that stage at stride 1; 81 classes."""

    WIDTHS, MIDDLE, BOXES = (1024, 512, 512, 256, 256, 256), (256, 256, 128, 128, 128), (4, 6, 6, 6, 4, 4)

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(*list(torchvision.models.resnet50().children())[:7])
        first = self.trunk[-1][0]
        first.conv1.stride = first.conv2.stride = first.downsample[0].stride = (1, 1)
        steps = zip(self.WIDTHS, self.WIDTHS[1:], self.MIDDLE, (2, 2, 2, 1, 1), strict=False)
        self.smaller = nn.ModuleList(self._smaller(*step) for step in steps)
        self.places = nn.ModuleList(
            nn.Conv2d(w, 4 * n, 3, padding=1) for w, n in zip(self.WIDTHS, self.BOXES, strict=True)
        )
        self.kinds = nn.ModuleList(
            nn.Conv2d(w, 81 * n, 3, padding=1) for w, n in zip(self.WIDTHS, self.BOXES, strict=True)
        )

    @staticmethod
    def _smaller(wide: int, out: int, middle: int, stride: int) -> nn.Sequential:
        second = nn.Conv2d(middle, out, 3, padding=stride - 1, stride=stride, bias=False)
        first = nn.Conv2d(wide, middle, 1, bias=False)
        return nn.Sequential(first, nn.BatchNorm2d(middle), nn.ReLU(True), second, nn.BatchNorm2d(out), nn.ReLU(True))

    def forward(self, image: Tensor) -> list[Tensor]:
        maps = [self.trunk(image)]
        for step in self.smaller:
            maps.append(step(maps[-1]))
        return [head(x) for heads in (self.places, self.kinds) for head, x in zip(heads, maps, strict=True)]


class MaskRcnn(nn.Module):
    """Normalisation and the first layers of the trunk are frozen, as every recipe has it."""

    def __init__(self) -> None:
        super().__init__()
        self.model = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None)
        body = self.model.backbone.body
        for name, module in list(body.named_modules()):
            if isinstance(module, nn.BatchNorm2d):
                frozen = torchvision.ops.FrozenBatchNorm2d(module.num_features)
                setattr(body.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2], frozen)
        for first in (body.conv1, body.layer1):
            first.requires_grad_(False)

    def forward(self, images: Tensor) -> object:
        corner = torch.rand(7, 2) * 400
        boxes = torch.cat((corner, corner + 50 + torch.rand(7, 2) * 300), 1)
        masks = torch.zeros(7, *images.shape[-2:], dtype=torch.uint8)
        target = {"boxes": boxes, "labels": torch.ones(7, dtype=torch.long), "masks": masks}
        return self.model(list(images), [target] * len(images))


def bundled() -> Iterator[Case]:
    """The examples of data/workloads.toml."""
    vision, tokens = partial(meta.image, 2), partial(meta.tokens, 2)
    yield "painter-light", partial(torchvision.models.resnet34, num_classes=PAINTERS), vision(224)
    yield "painter-heavy", partial(torchvision.models.resnet101, num_classes=PAINTERS), vision(224)
    yield "bert-finetune", Bert, tokens(384)
    yield "gpt", Gpt2, tokens(1024)


def benchmarked() -> Iterator[Case]:
    """Lambda's benchmark, at the lengths of its runs and at batches that its cards of 24 to 80 GB had. Padding is work:
    a pair of sentences of 48 tokens was padded to 32 and 32, a spoken sentence of 564 frames to 860."""
    vision, tokens = partial(meta.image, 2), partial(meta.tokens, 2)
    base, large = partial(TransformerXl, 16, 512, 8, 0.1, 0.0), partial(TransformerXl, 18, 1024, 16, 0.2, 0.2)
    pairs = torch.zeros(2**20, dtype=torch.long, device="meta")
    yield "resnet50", torchvision.models.resnet50, vision(224)
    yield "ssd", Ssd300, vision(300)
    yield "maskrcnn", MaskRcnn, torch.rand(1, 3, 800, 1066)
    yield "bert_base_squad", partial(Bert, fused=False), tokens(384)
    yield "bert_large_squad", partial(Bert, 24, 1024, 16, fused=False), tokens(384)
    yield "gnmt", Gnmt, (meta.tokens(256, 32), meta.tokens(256, 32))
    yield "transformerxlbase", base, (meta.tokens(32, 192), shaped(16, 32, 192, 512))
    yield "transformerxllarge", large, (meta.tokens(16, 256), shaped(18, 16, 256, 1024))
    yield "waveglow", WaveGlow, (shaped(16, 80, 32), shaped(16, 8000))
    yield "tacotron2", Tacotron2, (meta.tokens(96, 170), shaped(96, 860, 80))
    yield "ncf", NeuMf, (pairs, pairs)


def shaped(*shape: int) -> Tensor:
    return torch.empty(shape, device="meta")


def line(name: str, make: Callable[[], nn.Module], inputs: Inputs) -> str:
    """Counts per sample, in the unit in which the table of the benchmark counts samples."""
    batch = inputs[0].shape[0] if isinstance(inputs, tuple) else inputs.shape[0]
    figures = count(make, inputs, batch * SAMPLES_PER_ITEM.get(name, 1))
    return f"{name:20} " + "  ".join(f"{key} {value}" for key, value in figures.items())


def main(names: Sequence[str] = ()) -> None:
    torch.manual_seed(0)
    for case in (*bundled(), *benchmarked()):
        if not names or case[0] in names:
            print(line(*case), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
