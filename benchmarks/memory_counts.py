"""Peak memory of a training step: counted on fake tensors, against what torch's allocator on the CPU really gave.

    python benchmarks/memory_counts.py [NAME …]

Needs the extra [torch]. Really allocated: parameters, buffers, states of the optimizer and the batch before the step,
and the highest sum of the allocations that the profiler sees in it. The third column is torch's own MemTracker
(private), run on the same fake tensors. Goal: within 10 %. A CPU's dilated convolution makes columns of the
whole batch, which no GPU does: they are counted for the CPU alone.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler tells of GPUs that are not there

import torch
import torchvision
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torchvision.models import segmentation

from gpuwise.measure import ledger, memory, meta

MB = 1e6


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], nn.Module]
    batch: int
    size: int
    optimizer: memory.Optimizer = "momentum"
    text: bool = False

    @property
    def step(self) -> ledger.Step:
        return ledger.Step(optimizer=self.optimizer, precision="fp32", update="foreach", kernels="cpu")

    @property
    def title(self) -> str:
        unit = "tokens" if self.text else "px"
        return f"{self.name}, {self.batch} × {self.size} {unit}, {self.optimizer}"

    def meta(self) -> Tensor:
        """The batch, without values."""
        return meta.tokens(self.batch, self.size) if self.text else meta.image(self.batch, self.size)

    def real(self) -> Tensor:
        if self.text:
            return torch.randint(0, WORDS, (self.batch, self.size))
        return torch.rand(self.batch, 3, self.size, self.size)


def case(name: str, batch: int, size: int = 224, optimizer: memory.Optimizer = "momentum") -> Case:
    return Case(name, getattr(torchvision.models, name), batch, size, optimizer)


WORDS = 1000


def encoder() -> nn.Module:
    """Four layers of attention over words."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    stack = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(WORDS, 256), stack, nn.Linear(256, WORDS))


CASES = (
    case("resnet18", 16, 128),
    case("resnet34", 16),
    case("resnet50", 8, 128, "adam"),
    case("resnet101", 8),
    case("wide_resnet50_2", 4, 128, "adamw"),
    case("resnext50_32x4d", 4, 128),
    case("vgg16", 4, 128),
    case("densenet121", 4, 128, "sgd"),
    case("mobilenet_v2", 16, 128),
    case("mobilenet_v3_large", 16, 128, "adam"),
    case("efficientnet_b0", 8, 128, "adamw"),
    case("convnext_tiny", 4, 128, "adamw"),
    case("regnet_y_800mf", 8, 128),
    case("shufflenet_v2_x1_0", 16, 128),
    case("swin_t", 4, 224, "adamw"),
    case("vit_b_16", 8, 224, "adam"),
    Case("encoder", encoder, 8, 256, "adamw", text=True),
    Case("deeplabv3_resnet50", partial(segmentation.deeplabv3_resnet50, weights_backbone=None), 2, 256),
)


def counted_mb(case: Case) -> float:
    """By this project."""
    return ledger.peak(meta.built(case.make), case.meta(), case.step).total_gib * 2**30 / MB


def allocated_mb(case: Case) -> float:
    """By a real step on the CPU, the second of two."""
    torch.manual_seed(0)
    model, batch = case.make().train(), case.real()
    optimizer = case.step.optimizer_for(model)
    train(model, batch, optimizer)
    optimizer.zero_grad()
    gc.collect()
    states = [leaf for state in optimizer.state.values() for leaf in tree_leaves(dict(state))]
    resident = sum(t.untyped_storage().nbytes() for t in (*model.parameters(), *model.buffers(), *states, batch))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        train(model, batch, optimizer)
    return (resident + highest(seen)) / MB


def train(model: nn.Module, batch: Tensor, optimizer: torch.optim.Optimizer) -> None:
    held: list[Tensor] = []

    def hold(out: Tensor) -> Tensor:
        held.append(out)
        return out

    meta.back(meta.losses_of(model, batch, hold))
    held.clear()
    optimizer.step()


def highest(seen: Any) -> int:
    """The highest sum of allocations less releases."""
    now = most = 0
    events = (event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]")
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def tracked_mb(case: Case) -> float:
    """By torch's MemTracker, on fake tensors of the CPU."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    shapes = meta.built(case.make)
    with FakeTensorMode():
        model = meta.copied(shapes, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype)).train()
        batch = torch.empty_like(case.real()) if case.text else torch.empty(case.batch, 3, case.size, case.size)
        optimizer = case.step.optimizer_for(model)
        train(model, batch, optimizer)
        optimizer.zero_grad()
        tracker = MemTracker()
        tracker.track_external(model, optimizer, batch)
        with tracker:
            train(model, batch, optimizer)
    return float(tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]) / MB


def main(names: list[str]) -> None:
    print(f"{'MB':50} {'counted':>8} {'real':>8} {'off':>7} {'tracker':>8}   seconds (counted, tracker)")
    errors = []
    for case in (c for c in CASES if not names or c.name in names):
        counted, counted_s = timed(counted_mb, case)
        tracked, tracked_s = timed(tracked_mb, case)
        real = allocated_mb(case)
        errors.append(counted / real - 1)
        figures = f"{counted:8.0f} {real:8.0f} {errors[-1]:+7.1%} {tracked:8.0f}"
        print(f"{case.title:50} {figures}   {counted_s:.1f}, {tracked_s:.1f}", flush=True)
    within = sum(abs(error) <= 0.1 for error in errors)
    print(f"within 10 %: {within} of {len(errors)}; largest {max(errors, key=abs):+.1%}")


def timed(count: Callable[[Case], float], case: Case) -> tuple[float, float]:
    start = time.perf_counter()
    return count(case), time.perf_counter() - start


if __name__ == "__main__":
    main(sys.argv[1:])
