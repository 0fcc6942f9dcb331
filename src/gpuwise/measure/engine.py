"""The measuring engine: a plain loop with what is known to be fast, and stamps around its stages.

Channels last, half precision where the device has units for it, uint8 images normalised on the device, fused optimizer,
copies that are not waited for, gradients set to None. No step waits for the device. Several processes train together
with DistributedDataParallel; what its all-reduce adds to the backward pass is the time from the last gradients that
were handed over until the backward pass is done.
"""

from __future__ import annotations

import ctypes
import gc
import inspect
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from gpuwise.estimate import Interval
from gpuwise.measure.precision import Numerics
from gpuwise.measure.timer import UNSEEN, DeviceTimer, HostTimer, Lines, Losses

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's channels, 0 to 1."""
BLOCKS = 8
T80 = 1.415
"""Student's t, 7 degrees of freedom, two-sided 80 %."""
FUSED = ("cpu", "cuda", "xpu", "mps")
"""Devices with fused optimizers."""


class Timer(Protocol):
    """HostTimer and DeviceTimer. A mark is a point in time: of the host's clock, or of the device's queue."""

    losses: Losses

    @property
    def mark(self) -> Callable[[], Any]: ...
    @property
    def keep(self) -> Callable[[Any], Any]: ...
    def step(self, samples: int, wait_ns: int, marks: Any, reduced: Any, loss: Any, /) -> None: ...
    def anchor(self) -> None: ...
    def finish(self) -> None: ...


class Silent:
    """Lines that nobody reads."""

    def step(self, end_ns: int, *stages: int) -> None:
        """Forgets the step."""


class Engine:
    """Trains one model on one device, of one process or of several that torch.distributed has joined.

    model: its weights are moved to the device. schedule: step -> share of the highest learning rate. compiled: through
    torch.compile. timer: reads the stages; by default the one that suits the device, which writes to `lines`.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        device: torch.device,
        numerics: Numerics,
        optimizer: str = "adamw",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.05,
        label_smoothing: float = 0.0,
        schedule: Callable[[int], float] | None = None,
        compiled: bool = False,
        lines: Lines | None = None,
        timer: Timer | None = None,
    ) -> None:
        self.device, self.numerics = device, numerics
        self.timer = timer or timer_for(device, lines or Silent())
        self.steps = 0
        self.model = _placed(model, device, numerics)
        if compiled:
            self.model.compile()
        self._optimizer_settings = (optimizer, learning_rate, weight_decay)
        self.optimizer = _optimizer(self.model, device, *self._optimizer_settings)
        self.scaler = torch.amp.GradScaler(device.type) if numerics.scaled else None
        self._learning_rate, self._schedule = learning_rate, schedule
        self._parameters = [p for p in self.model.parameters() if p.requires_grad]
        self._loss = nn.CrossEntropyLoss(label_smoothing=label_smoothing)
        self._autocast = _autocast(device, numerics)
        self._shift, self._scale = _normalisation(device, numerics)
        self._layout = layout(numerics)
        self._on_host = device.type == "cpu"
        self._reduced: Any = None
        self.network = self._joined() if _world() > 1 else self.model

    # ---- a step ----

    def step(self, images: Tensor, labels: Tensor, wait_ns: int = UNSEEN) -> None:
        """One optimizer step. images: uint8 (n, h, w, 3) or (n, 3, h, w), or floats that are normalised already;
        labels: int64 (n,); wait_ns: host time that the loop waited for them."""
        mark = self.timer.mark
        start = mark()
        x, y = self.place(images), labels if self._on_host else labels.to(self.device, non_blocking=True)
        copied = mark()
        if self._schedule is not None:
            self.rate(self._schedule(self.steps))
        loss = self.forward(x, y)
        forward = mark()
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()  # type: ignore[no-untyped-call]
        backward = mark()
        self._update()
        kept = self.timer.keep(loss.detach())
        end = mark()
        self.steps += 1
        self.timer.step(len(labels), wait_ns, (start, copied, forward, backward, end), self._reduced, kept)

    def place(self, images: Tensor) -> Tensor:
        """The batch on the device, normalised, in the layout and type that the model takes."""
        x = images if self._on_host else images.to(self.device, non_blocking=True)
        if x.dtype is torch.uint8:
            x = x.permute(0, 3, 1, 2) if x.shape[-1] == 3 else x
            x = torch.addcmul(self._shift, x.to(self._shift.dtype), self._scale)
        return x.contiguous(memory_format=self._layout)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if self._autocast is None:
            return self._loss(self.network(x), y)  # type: ignore[no-any-return]
        with self._autocast:
            return self._loss(self.network(x), y)  # type: ignore[no-any-return]

    def _update(self) -> None:
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        for parameter in self._parameters:
            parameter.grad = None

    def rate(self, factor: float) -> None:
        """Sets the learning rate to this share of the highest."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate * factor

    # ---- several steps ----

    def run(self, batches: Iterable[Sequence[Any]]) -> Iterator[int]:
        """Trains on each batch (images, labels, …), the wait for it measured, and yields its number of samples."""
        clock, step = time.perf_counter_ns, self.step
        source = iter(batches)
        while True:
            asked = clock()
            batch = next(source, None)
            if batch is None:
                return
            step(batch[0], batch[1], clock() - asked)
            yield len(batch[1])

    def validate(
        self, batches: Iterable[tuple[Tensor, Tensor]], beat: Callable[[], None] = lambda: None
    ) -> tuple[int, int]:
        """How many are named right, and of how many; of this process alone. beat: called after every batch."""
        right = torch.zeros((), dtype=torch.int64, device=self.device)
        count = 0
        self.model.eval()
        with torch.inference_mode(), self._autocast or nullcontext():
            for images, labels in batches:
                named = self.model(self.place(images)).argmax(1)
                right += (named == labels.to(self.device, non_blocking=True)).sum()
                count += len(labels)
                beat()
        self.model.train()
        return int(right), count

    def device_only(
        self,
        batches: Sequence[tuple[Tensor, Tensor]],
        *,
        seconds: float = 4.0,
        beat: Callable[[], None] = lambda: None,
    ) -> Interval:
        """Samples/s of the whole job when the batches are on the device already, with its 80 % interval over BLOCKS
        spans; it trains, so the weights are of no use afterwards. The device is waited for between spans only. beat:
        called with every step."""
        held = _beating(cycle([(i.to(self.device), y.to(self.device)) for i, y in batches]), beat)
        timer, self.timer = self.timer, timer_for(self.device, Silent())
        try:
            for _ in range(2):
                self.step(*next(held))
            steps = self._agreed(max(1, round(seconds / BLOCKS / self._block(held, 1))))
            rates = [steps * len(batches[0][1]) * _world() / self._block(held, steps) for _ in range(BLOCKS)]
        finally:
            self.timer = timer
        return interval(rates)

    def _agreed(self, steps: int) -> int:
        """That of the first process: each has timed its own."""
        if _world() == 1:
            return steps
        agreed = torch.tensor(steps, device=self.device)
        distributed.broadcast(agreed, 0)
        return int(agreed)

    def _block(self, held: Iterator[tuple[Tensor, Tensor]], steps: int) -> float:
        self.timer.anchor()
        start = time.perf_counter()
        for _ in range(steps):
            self.step(*next(held))
        self.timer.finish()
        return time.perf_counter() - start

    # ---- several processes ----

    def _joined(self) -> nn.Module:
        known = inspect.signature(DistributedDataParallel).parameters
        without = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # in older ones
        index = None if self.device.type in ("cpu", "mps") else [self.device]
        how: dict[str, Any] = {without: False, "device_ids": index, "gradient_as_bucket_view": True}
        joined = DistributedDataParallel(self.model, **how)
        joined.register_comm_hook(None, lambda _, bucket: self._all_reduce(bucket))  # it inspects annotations
        return joined

    def _all_reduce(self, bucket: Any) -> Any:
        """DDP's own mean of the gradients. The last bucket comes when the last gradient is there."""
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

        group: Any = distributed.group.WORLD
        if bucket.is_last():
            self._reduced = self.timer.mark()
        return allreduce_hook(group, bucket)

    # ---- what a checkpoint holds ----

    def state(self) -> dict[str, Any]:
        """Weights, optimizer and loss scale, with the number of steps."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
            "steps": self.steps,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scaler is not None and state["scaler"] is not None:
            self.scaler.load_state_dict(state["scaler"])
        self.steps = state["steps"]


# ---- parts ----


def timer_for(device: torch.device, lines: Lines) -> Timer:
    """Host stamps on the CPU and where the framework has no timed events; else events."""
    module = getattr(torch, device.type, None)
    if clock_of(device) != "device" or module is None:
        return HostTimer(lines)
    return DeviceTimer(lines, make_event=lambda: module.Event(enable_timing=True), keep=Pinned().keep)


def clock_of(device: torch.device) -> Literal["device", "host", "launch"]:
    """What the times of stages are of: events of the device, the host where it does the work itself, else launching."""
    if device.type == "cpu":
        return "host"
    return "device" if device.type in ("cuda", "xpu") else "launch"


def take(device: torch.device, framework: Any = torch) -> None:
    """Makes it the device of this process: events and random numbers are of the current one unless told otherwise."""
    module: Any = getattr(framework, device.type, None)
    if device.index is not None and hasattr(module, "set_device"):
        module.set_device(device.index)


def forget_peaks(device: torch.device, framework: Any = torch) -> None:
    """Gives back what is no longer used on the device; the allocator's peaks begin anew."""
    gc.collect()
    module: Any = getattr(framework, device.type, None)
    if hasattr(module, "empty_cache"):
        module.empty_cache()
    if hasattr(module, "reset_peak_memory_stats"):
        module.reset_peak_memory_stats(device)


def _beating(held: Iterator[tuple[Tensor, Tensor]], beat: Callable[[], None]) -> Iterator[tuple[Tensor, Tensor]]:
    for batch in held:
        beat()
        yield batch


@dataclass(slots=True)
class Pinned:
    """Copies of losses on their way to the host, into page-locked memory so that nothing waits for them."""

    most: int = 1024
    _places: list[Tensor] = field(default_factory=list)
    _next: int = 0

    def keep(self, loss: Tensor) -> Tensor:
        if not self._places:
            self._places = list(torch.zeros(self.most, pin_memory=True).unbind())
        place = self._places[self._next]
        self._next = (self._next + 1) % self.most
        return place.copy_(loss, non_blocking=True)


def layout(numerics: Numerics) -> torch.memory_format:
    return torch.channels_last if numerics.memory_format == "nhwc" else torch.contiguous_format


def _placed(model: nn.Module, device: torch.device, numerics: Numerics) -> nn.Module:
    model = model.to(device=device, memory_format=layout(numerics))  # type: ignore[call-overload]
    return (model.to(torch.bfloat16) if numerics.pure else model).train()


def _optimizer(
    model: nn.Module, device: torch.device, name: str, learning_rate: float, weight_decay: float
) -> torch.optim.Optimizer:
    """Norms and biases do not decay. Each group is a call of its own in a step, so there is one where one will do."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups: list[dict[str, Any]] = [{"params": parameters, "weight_decay": 0.0}]
    if weight_decay:
        groups = [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
    how: dict[str, Any] = {"fused": True} if device.type in FUSED else {"foreach": True}
    if name == "sgd":
        return torch.optim.SGD(groups, lr=learning_rate, momentum=0.9, nesterov=True, **how)
    return torch.optim.AdamW(groups, lr=learning_rate, **how)


def _autocast(device: torch.device, numerics: Numerics) -> AbstractContextManager[Any] | None:
    if numerics.half is None or numerics.pure:
        return None
    return torch.autocast(device.type, dtype=getattr(torch, numerics.half))


def _normalisation(device: torch.device, numerics: Numerics) -> tuple[Tensor, Tensor]:
    """shift + image · scale, for images from 0 to 255."""
    dtype = torch.bfloat16 if numerics.pure else torch.float32
    std = torch.tensor(STD).view(1, 3, 1, 1)
    shift = -torch.tensor(MEAN).view(1, 3, 1, 1) / std
    return shift.to(device, dtype), (1 / (255 * std)).to(device, dtype)


def _world() -> int:
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def own_cost_s(device: torch.device, times: int = 300) -> float:
    """What the stamps and the line of one step cost the host, in seconds; the median of so many."""
    timer = timer_for(device, _Kept())
    loss, spent = torch.zeros((), device=device), []
    timer.anchor()
    for _ in range(times):
        start = time.perf_counter()
        marks = [timer.mark() for _ in range(4)]
        kept = timer.keep(loss)
        timer.step(1, 0, [*marks, timer.mark()], None, kept)
        spent.append(time.perf_counter() - start)
    timer.finish()
    return statistics.median(spent)


class _Kept:
    """Makes the line and keeps it, as the writer of marks does."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def step(self, end_ns: int, *stages: int) -> None:
        self.lines.append(" ".join(map(str, (end_ns, *stages))))


def interval(rates: Sequence[float]) -> Interval:
    """Mean of BLOCKS rates with its 80 % interval."""
    mean = statistics.fmean(rates)
    half = T80 * statistics.stdev(rates) / len(rates) ** 0.5
    return Interval(value=mean, low=max(mean - half, 0.0), high=mean + half)


def prepare(device: torch.device, numerics: Numerics, threads: int) -> None:
    """Settings of the whole process: threads, the fastest convolutions, tf32, and memory that is kept once freed."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # large pages for large tensors on the CPU
    torch.set_num_threads(threads)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high" if numerics.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = numerics.tf32
    if device.type == "cpu":
        torch.set_flush_denormal(True)
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Has glibc keep what is freed: given back, every step asks for it again and the kernel clears each page anew."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        for option, value in ((-3, 1 << 30), (-1, (1 << 31) - 1)):  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD (mallopt(3))
            libc.mallopt(option, value)
