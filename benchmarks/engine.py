"""`python -m benchmarks.engine`: the measuring engine against loops that do the same work, and what it costs itself.

Three comparisons, each in one run, its sides taken in turn (ABAB), medians. Both sides get the same batches and the
same threads. The goals are those of the issue on `measure`; nothing is asserted. On a machine without native bf16 the
second goal (1.9) is out of reach: it was measured with it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor, nn
from torchvision.models import resnet18

from gpuwise.measure.devices import cpu
from gpuwise.measure.engine import MEAN, STD, Engine, prepare
from gpuwise.measure.precision import Numerics, choose
from gpuwise.meter import Writer

PX, BATCH, CLASSES = 128, 16, 100
ROUNDS, STEPS = 8, 4
TINY_ROUNDS, TINY_STEPS = 15, 1000
CHILD_ROUNDS = 4

Batch = tuple[Tensor, Tensor]


def pictures(count: int = 4) -> list[Batch]:
    chance = torch.Generator().manual_seed(0)
    return [
        (
            torch.randint(0, 256, (BATCH, PX, PX, 3), dtype=torch.uint8, generator=chance),
            torch.randint(0, CLASSES, (BATCH,), generator=chance),
        )
        for _ in range(count)
    ]


def endless(batches: Sequence[Batch]) -> Iterator[Batch]:
    while True:
        yield from batches


def seconds(steps: Callable[[int], object], count: int) -> float:
    """Of one step, the mean of `count`."""
    start = time.perf_counter()
    steps(count)
    return (time.perf_counter() - start) / count


def taken_in_turn(sides: Sequence[Callable[[int], object]], rounds: int, steps: int) -> list[float]:
    """Median seconds a step of each side, after one round that is not counted."""
    times: list[list[float]] = [[] for _ in sides]
    for number in range(rounds + 1):
        for kept, side in zip(times, sides, strict=True):
            spent = seconds(side, steps)
            if number:
                kept.append(spent)
    return [statistics.median(kept) for kept in times]


# ---- a) a loop tuned by hand, equal precision and layout ----


def engine(numerics: Numerics, batches: Sequence[Batch]) -> Callable[[int], object]:
    torch.manual_seed(0)
    made = Engine(
        resnet18(num_classes=CLASSES), device=torch.device("cpu"), numerics=numerics, optimizer="sgd", weight_decay=0.0,
        lines=Writer.from_environment(),
    )  # fmt: skip
    running = made.run(endless(batches))
    return lambda count: list(islice(running, count))


def tuned_by_hand(numerics: Numerics, batches: Sequence[Batch]) -> Callable[[int], object]:
    """What the recipes say: channels last, autocast where it pays, fused optimizer, images as uint8."""
    torch.manual_seed(0)
    model = resnet18(num_classes=CLASSES).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True, fused=True)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    shift, scale = -mean / std, 1 / (255 * std)
    source = endless(batches)

    def steps(count: int) -> None:
        for images, labels in islice(source, count):
            x = torch.addcmul(shift, images.permute(0, 3, 1, 2).float(), scale)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=numerics.half == "bfloat16"):
                loss = nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            loss.item()

    return steps


def against_hand_tuned() -> None:
    numerics = choose(cpu())
    prepare(torch.device("cpu"), numerics, os.cpu_count() or 1)
    batches = pictures()
    own, hand = taken_in_turn([engine(numerics, batches), tuned_by_hand(numerics, batches)], ROUNDS, STEPS)
    print(
        f"engine / loop tuned by hand, ResNet-18 {PX} px batch {BATCH}, {numerics.precision} {numerics.memory_format}: "
        f"{hand / own:.3f} ({BATCH / own:.1f} and {BATCH / hand:.1f} images/s; goal 0.98)"
    )


# ---- b) the tutorial's loop: a process each, since the engine sets up its process too ----


def tutorial(batches: Sequence[Batch]) -> Callable[[int], object]:
    """PyTorch's image tutorials: default layout, fp32, default optimizer, float images, loss read in each step."""
    torch.manual_seed(0)
    model = resnet18(num_classes=CLASSES)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    ready = [((i.permute(0, 3, 1, 2).float().contiguous() / 255 - mean) / std, y) for i, y in batches]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    criterion, source = nn.CrossEntropyLoss(), endless(ready)

    def steps(count: int) -> None:
        running = 0.0
        for images, labels in islice(source, count):
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()

    return steps


def child(side: str) -> None:
    """One side in its own process: seconds of each of a few blocks, as JSON."""
    if side == "engine":
        numerics = choose(cpu())
        prepare(torch.device("cpu"), numerics, os.cpu_count() or 1)
        steps = engine(numerics, pictures())
    else:
        steps = tutorial(pictures())
    steps(3)
    print(json.dumps([seconds(steps, 3) for _ in range(3)]))


def against_tutorial() -> None:
    times: dict[str, list[float]] = {"engine": [], "tutorial": []}
    for _ in range(CHILD_ROUNDS):
        for side, kept in times.items():
            command = (sys.executable, "-m", "benchmarks.engine", side)
            kept += json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    own, theirs = (statistics.median(kept) for kept in times.values())
    print(
        f"engine as it chooses / the tutorial's loop: {theirs / own:.2f} ({BATCH / own:.1f} and {BATCH / theirs:.1f} "
        f"images/s; goal 1.9 with native bf16, which this CPU has: {'yes' if cpu().native_bf16 else 'no'})"
    )


# ---- c) the engine's own cost ----


def tiny() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))


def plain(batches: Sequence[Batch]) -> Callable[[int], object]:
    model, source = tiny(), endless(batches)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True, fused=True)
    criterion = nn.CrossEntropyLoss()

    def steps(count: int) -> None:
        for x, y in islice(source, count):
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

    return steps


def own_cost() -> None:
    torch.set_num_threads(1)
    batches = [(torch.randn(16, 32), torch.randint(0, 10, (16,))) for _ in range(8)]
    numerics = choose(cpu(), "fp32", "nchw")
    made = Engine(
        tiny(), device=torch.device("cpu"), numerics=numerics, optimizer="sgd", weight_decay=0.0,
        lines=Writer.from_environment(),
    )  # fmt: skip
    running = made.run(endless(batches))
    sides = [lambda count: list(islice(running, count)), plain(batches)]
    own, bare = taken_in_turn(sides, TINY_ROUNDS, TINY_STEPS)
    print(f"engine's own cost: {1e6 * (own - bare):.1f} µs a step of {1e6 * bare:.0f} µs (goal 15 µs)")


def main() -> None:
    if sys.argv[1:]:
        child(sys.argv[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GPUWISE_MARKS"] = folder
        own_cost()
        against_hand_tuned()
        against_tutorial()


if __name__ == "__main__":
    main()
