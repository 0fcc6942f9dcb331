"""What only a device has: its own clock, copies to it, waits for it, its memory. Imported only once torch is there.

Nothing is touched before the program itself has put a module with weights on a device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from gpuwise.measure.attach.clock import DeviceClock
from gpuwise.measure.attach.recorder import Recorder

WAITS = ("item", "cpu", "tolist", "__float__", "__int__", "__bool__")
"""Methods of a tensor that wait for the device when it lies there."""
Function = Callable[..., Any]


class Devices:
    """kind: torch's word for the kind of device the first trained module lies on (cuda, xpu, mps, cpu …)."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self.index = 0
        self.syncs = 0
        self._waiting = False

    def first(self, recorder: Recorder, module: Any) -> None:
        """Looks once at where the first module that trains has its weights."""
        weight = next(module.parameters(), None)
        if weight is None:
            return
        device = weight.device
        self.kind, self.index = device.type, device.index or 0
        recorder.writer.event("devices", list=[self._described()])
        events = getattr(getattr(torch, self.kind, None), "Event", None)
        recorder.writer.event("timing", clock="host" if self.kind == "cpu" else "device" if events else "launch")
        if events is not None and self.kind != "cpu":
            recorder.use(DeviceClock(functools.partial(events, enable_timing=True)))
        if self.kind != "cpu":
            self._install(recorder, getattr(torch, self.kind, None))

    def _described(self) -> dict[str, object]:
        backend = "rocm" if self.kind == "cuda" and torch.version.hip else self.kind
        described: dict[str, object] = {"backend": backend, "index": self.index}
        if self.kind == "cuda":
            described["name"] = torch.cuda.get_device_name(self.index)
        return described

    def _install(self, recorder: Recorder, module: Any) -> None:
        tensor: Any = torch.Tensor
        for name in ("to", "cuda"):
            setattr(tensor, name, self._copy(recorder, getattr(tensor, name)))
        for name in WAITS:
            setattr(tensor, name, self._wait(recorder, getattr(tensor, name)))
        if hasattr(module, "synchronize"):
            module.synchronize = self._wait_all(recorder, module.synchronize)

    def _copy(self, recorder: Recorder, original: Function) -> Function:
        @functools.wraps(original)
        def copy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            here = not recorder.on or tensor.device.type != "cpu"
            if here or not goes_to(self.kind, args, kwargs, original.__name__):
                return original(tensor, *args, **kwargs)
            recorder.push("copy")
            try:
                return original(tensor, *args, **kwargs)
            finally:
                recorder.pop("copy")

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
        if self._waiting or not recorder.on:
            return original(*args, **kwargs)
        self._waiting = True
        begin = recorder.now()
        try:
            return original(*args, **kwargs)
        finally:
            recorder.sync(recorder.now() - begin)
            self.syncs += 1
            self._waiting = False

    def tell(self, recorder: Recorder) -> None:
        """Peak memory of the allocator so far, and how often the program waited, as events."""
        if self.kind in (None, "cpu"):
            return
        module: Any = getattr(torch, str(self.kind), None)
        if hasattr(module, "max_memory_allocated"):
            recorder.writer.event(
                "memory", index=self.index, allocated=module.max_memory_allocated(self.index),
                reserved=module.max_memory_reserved(self.index),
                total=module.get_device_properties(self.index).total_memory,
            )  # fmt: skip
        recorder.writer.event("syncs", count=self.syncs, steps=recorder.closed)


def goes_to(kind: str | None, args: tuple[Any, ...], kwargs: dict[str, Any], method: str) -> bool:
    """Whether this call of Tensor.to or Tensor.cuda goes to a device of this kind: only then is it a copy."""
    if method == "cuda":
        return True
    target = kwargs.get("device", args[0] if args else kwargs.get("other"))
    if isinstance(target, torch.Tensor):
        return target.device.type == kind
    return isinstance(target, int) or str(target).startswith(str(kind))
