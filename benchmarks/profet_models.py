"""The Keras networks that PROFET measured (data_generation/workload of the repository ddps-lab/profet), in torch.

Only their shapes: they are counted and never trained. Unlike their namesakes they have biases, the residual networks
normalise before each convolution, AlexNet strides nowhere, and what follows `Flatten` grows with the image. Counted at
each size with the classes that PROFET gave it. InceptionResNetV2 is counted by count_timm, from timm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

CLASSES = {32: 10, 64: 100, 128: 100, 224: 1000, 256: 1000}
"""By image size in px."""


def _conv(wide: int, out: int, size: int = 3, padding: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(wide, out, size, padding=padding), nn.ReLU())


def _dense(out: int, drop: float = 0.0) -> nn.Sequential:
    return nn.Sequential(nn.LazyLinear(out), nn.ReLU(), *([nn.Dropout(drop)] if drop else []))


def lenet5(classes: int) -> nn.Module:
    first, second = _conv(3, 6, 5, 0), _conv(6, 16, 5, 0)
    pools = (nn.MaxPool2d(2), nn.MaxPool2d(2))
    return nn.Sequential(
        first, pools[0], second, pools[1], nn.Flatten(), _dense(120), _dense(84), nn.LazyLinear(classes)
    )


def mnist_cnn(classes: int) -> nn.Module:
    first, second = _conv(3, 32, padding=0), _conv(32, 64, padding=0)
    end = (nn.Flatten(), nn.Dropout(0.5), nn.LazyLinear(classes))
    return nn.Sequential(first, nn.MaxPool2d(2), second, nn.MaxPool2d(2), *end)


def cifar10_cnn(classes: int) -> nn.Module:
    first = (_conv(3, 32), _conv(32, 32, padding=0), nn.MaxPool2d(2), nn.Dropout(0.25))
    second = (_conv(32, 64), _conv(64, 64, padding=0), nn.MaxPool2d(2), nn.Dropout(0.25))
    return nn.Sequential(*first, *second, nn.Flatten(), _dense(512, 0.5), nn.LazyLinear(classes))


def vgg(convolutions: tuple[int, ...], classes: int) -> nn.Module:
    """convolutions: how many before each of the five poolings."""
    layers: list[nn.Module] = []
    wide = 3
    for many, out in zip(convolutions, (64, 128, 256, 512, 512), strict=True):
        layers += [_conv(wide if n == 0 else out, out) for n in range(many)]
        layers.append(nn.MaxPool2d(2))
        wide = out
    return nn.Sequential(*layers, nn.Flatten(), _dense(4096), _dense(4096), nn.LazyLinear(classes))


def alexnet(classes: int) -> nn.Module:
    """The last three convolutions pad by two: each grows the image by two."""
    shapes = ((3, 96, 11, 5), (96, 256, 5, 2), (256, 512, 3, 2), (512, 1024, 3, 2), (1024, 1024, 3, 2))
    layers: list[nn.Module] = []
    for index, (wide, out, size, padding) in enumerate(shapes):
        layers += [nn.Conv2d(wide, out, size, padding=padding), nn.BatchNorm2d(out), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if index != 3 else []
    for out in (3072, 4096):
        layers += [nn.LazyLinear(out), nn.BatchNorm1d(out), nn.ReLU(), nn.Dropout(0.5)]
    layers.insert(-8, nn.Flatten())
    return nn.Sequential(*layers, nn.LazyLinear(classes), nn.BatchNorm1d(classes))


class Residual(nn.Module):
    """Normalised before each of its convolutions, the first of all left out where that was just done."""

    def __init__(self, wide: int, shapes: tuple[tuple[int, int], ...], stride: int, first: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inner = wide
        for index, (out, size) in enumerate(shapes):
            layers += [] if first and index == 0 else [nn.BatchNorm2d(inner), nn.ReLU()]
            layers.append(nn.Conv2d(inner, out, size, 1 if index else stride, padding=size // 2))
            inner = out
        changed = stride > 1 or inner != wide
        self.way, self.short = nn.Sequential(*layers), nn.Conv2d(wide, inner, 1, stride) if changed else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.short(x) + self.way(x)


def resnet(blocks: tuple[int, ...], deep: bool, classes: int) -> nn.Module:
    """deep: blocks of three convolutions, four times as wide at their end."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, padding=3), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, padding=1))
    wide = 64
    for index, many in enumerate(blocks):
        out = 64 * 2**index
        shapes = ((out, 1), (out, 3), (4 * out, 1)) if deep else ((out, 3), (out, 3))
        for n in range(many):
            layers.append(Residual(wide, shapes, 1 if n or not index else 2, first=not index and not n))
            wide = shapes[-1][0]
    end = (nn.BatchNorm2d(wide), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, classes))
    return nn.Sequential(*layers, *end)


class Pointwise(nn.Module):
    """A residual block of the small network, whose convolutions see one pixel each."""

    def __init__(self, wide: int, out: int, stride: int) -> None:
        super().__init__()
        first = (nn.Conv2d(wide, out, 1, stride), nn.BatchNorm2d(out), nn.ReLU())
        self.way = nn.Sequential(*first, nn.Conv2d(out, out, 1), nn.BatchNorm2d(out))
        self.short = (
            nn.Sequential(nn.Conv2d(wide, out, 1, stride), nn.BatchNorm2d(out)) if stride > 1 else nn.Identity()
        )
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.short(x) + self.way(x))


def resnetsmall(classes: int) -> nn.Module:
    start = (nn.Conv2d(3, 64, 7, 2, padding=3), nn.ReLU(), nn.BatchNorm2d(64), nn.MaxPool2d(3, 2, padding=1))
    blocks = (Pointwise(64, 64, 2), Pointwise(64, 64, 1), Pointwise(64, 128, 2), Pointwise(128, 128, 1))
    return nn.Sequential(*start, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, classes))


NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "lenet5": lenet5,
    "mnist_cnn": mnist_cnn,
    "cifar10_cnn": cifar10_cnn,
    "alexnet": alexnet,
    "vgg11": partial(vgg, (1, 1, 2, 2, 2)),
    "vgg13": partial(vgg, (2, 2, 2, 2, 2)),
    "vgg19": partial(vgg, (2, 2, 4, 4, 4)),
    "resnetsmall": resnetsmall,
    "resnet18": partial(resnet, (2, 2, 2, 2), False),
    "resnet34": partial(resnet, (3, 4, 6, 3), False),
    "resnet50": partial(resnet, (3, 4, 6, 3), True),
}
