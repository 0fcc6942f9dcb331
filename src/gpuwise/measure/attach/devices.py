"""What only a device has: its own clock, copies to it, waits for it, its memory. Imported only once torch is there.

Nothing is touched before the program itself has put a module with weights on a device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuwise.measure.attach.border import Border
from gpuwise.measure.attach.clock import DeviceClock
from gpuwise.measure.attach.recorder import Recorder

WAITS = ("item", "cpu", "tolist", "__float__", "__int__", "__bool__")
"""Methods of a tensor that wait for the device when it lies there."""
Function = Callable[..., Any]


class Devices:
    """kind: torch's word for the kind of device the first trained module lies on (cuda, xpu, mps, cpu …). index: of the
    one that its first weights are on, whose clock is read; indices: of all that it uses.

    mine: whether the thread that runs is the one that trains; framework: handed in by tests.
    """

    def __init__(
        self, border: Border | None = None, mine: Callable[[], bool] = lambda: True, framework: Any = torch
    ) -> None:
        self.kind: str | None = None
        self.index = 0
        self.indices: list[int] = []
        self.syncs = 0
        self._border = border or Border(lambda name, error: None)
        self._mine, self._framework = mine, framework
        self._waiting = False

    def first(self, recorder: Recorder, module: Any) -> None:
        """Looks once at where the first module that trains has its weights."""
        weights = [parameter.device for parameter in module.parameters()]
        if not weights:
            return
        self.kind, self.index, self.indices = used(weights, getattr(module, "device_ids", None))
        recorder.writer.event("devices", list=[self._described(index) for index in self.indices])
        own = getattr(self._framework, self.kind, None)
        events = None if self.kind == "cpu" else getattr(own, "Event", None)
        device = events is not None and recorder.use(
            DeviceClock(functools.partial(events, enable_timing=True), self._stream(own))
        )
        recorder.writer.event("timing", clock="host" if self.kind == "cpu" else "device" if device else "launch")
        if self.kind != "cpu":
            self._install(recorder, own)

    def _stream(self, module: Any) -> Callable[[], Any] | None:
        """An event without a stream would be recorded on that of the current device, which may be another one."""
        current = getattr(module, "current_stream", None)
        return None if current is None else functools.partial(current, self.index)

    def _described(self, index: int) -> dict[str, object]:
        backend = "rocm" if self.kind == "cuda" and self._framework.version.hip else self.kind
        described: dict[str, object] = {"backend": backend, "index": index}
        if self.kind == "cuda":
            described["name"] = self._framework.cuda.get_device_name(index)
        uuid = getattr(self._framework.cuda.get_device_properties(index), "uuid", None) if backend == "cuda" else None
        return described | ({"uuid": f"GPU-{uuid}"} if uuid else {})

    def _install(self, recorder: Recorder, module: Any) -> None:
        self._waited = self._border.eager("sync", recorder.sync)
        tensor: Any = self._framework.Tensor
        for name in ("to", "cuda"):
            setattr(tensor, name, self._copy(recorder, getattr(tensor, name)))
        for name in WAITS:
            setattr(tensor, name, self._wait(recorder, getattr(tensor, name)))
        if hasattr(module, "synchronize"):
            module.synchronize = self._wait_all(recorder, module.synchronize)

    def _copy(self, recorder: Recorder, original: Function) -> Function:
        push, pop = self._border.eager("copy", recorder.push), self._border.eager("copy", recorder.pop)

        @functools.wraps(original)
        def copy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            unseen = torch.compiler.is_compiling() or not recorder.on or not self._mine()
            here = unseen or tensor.device.type != "cpu"
            if here or not goes_to(self.kind, args, kwargs, original.__name__):
                return original(tensor, *args, **kwargs)
            push("copy")
            try:
                return original(tensor, *args, **kwargs)
            finally:
                pop("copy")

        return copy

    def _wait(self, recorder: Recorder, original: Function) -> Function:
        @functools.wraps(original)
        def wait(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if tensor.device.type != self.kind:
                return original(tensor, *args, **kwargs)
            return self._timed(recorder, original, tensor, *args, **kwargs)

        return wait

    def _wait_all(self, recorder: Recorder, original: Function) -> Function:
        @functools.wraps(original)
        def synchronize(*args: Any, **kwargs: Any) -> Any:
            return self._timed(recorder, original, *args, **kwargs)

        return synchronize

    def _timed(self, recorder: Recorder, original: Function, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or self._waiting or not recorder.on or not self._mine():
            return original(*args, **kwargs)
        self._waiting = True
        begin = recorder.now()
        try:
            return original(*args, **kwargs)
        finally:
            self._waited(recorder.now() - begin)
            self.syncs += 1
            self._waiting = False

    def tell(self, recorder: Recorder) -> None:
        """Peak memory of the allocator so far, and how often the program waited, as events."""
        if self.kind in (None, "cpu"):
            return
        module: Any = getattr(self._framework, str(self.kind), None)
        for index in self.indices if hasattr(module, "max_memory_allocated") else ():
            recorder.writer.event(
                "memory", index=index, allocated=module.max_memory_allocated(index),
                reserved=module.max_memory_reserved(index), total=module.get_device_properties(index).total_memory,
            )  # fmt: skip
        recorder.writer.event("syncs", count=self.syncs, steps=recorder.closed)


def used(weights: Sequence[torch.device], device_ids: Any) -> tuple[str, int, list[int]]:
    """Kind of the devices, index of the first, and of all: of the weights, and of the copies that DataParallel makes.
    Weights that were put aside on the CPU or the disk (meta) count where there are no others."""
    there = [device for device in weights if device.type not in ("cpu", "meta")] or [torch.device("cpu")]
    first = there[0]
    copies = [getattr(one, "index", one) for one in device_ids or () if first.type != "cpu"]
    indices = {device.index or 0 for device in there if device.type == first.type} | set(copies)
    return first.type, first.index or 0, sorted(indices)


def goes_to(kind: str | None, args: tuple[Any, ...], kwargs: dict[str, Any], method: str) -> bool:
    """Whether this call of Tensor.to or Tensor.cuda goes to a device of this kind: only then is it a copy."""
    if method == "cuda":
        return True
    target = kwargs.get("device", args[0] if args else kwargs.get("other"))
    if isinstance(target, torch.Tensor):
        return target.device.type == kind
    return isinstance(target, int) or str(target).startswith(str(kind))
