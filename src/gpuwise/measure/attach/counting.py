"""Counts what one step of the real run computes. Imported only once torch is there.

Operations are passed on unchanged, so results are equal to the last bit. Formulas are those of torch.utils.
flop_counter; its gap (attention on a CPU) is filled, and where an operation is known to have none the count is
refused rather than too small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from gpuwise.measure.attach.border import Border

UNCOUNTED = ("_cudnn_rnn", "miopen_rnn", "mkldnn_rnn_layer", "_ctc_loss")
KNOWN = ("aten", "prim", "prims", "c10d", "_c10d_functional", "torchvision", "profiler")
"""Namespaces of torch's own operations: others are kernels of a person's or a library's, of unknown work."""
NAMES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64"}


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: object, **__: object) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))  # type: ignore[no-untyped-call]


def attention_backward(
    grad: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: object, **__: object
) -> int:
    shapes = (grad.shape, query.shape, key.shape, value.shape)
    return int(sdpa_backward_flop_count(*shapes))  # type: ignore[no-untyped-call]


def formulas() -> dict[Any, Callable[..., int]]:
    aten = torch.ops.aten
    return {
        **flop_registry,
        aten._scaled_dot_product_flash_attention_for_cpu: attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
    }


class Counted(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's modes have no types
    """flops: 2 × MACs; by_type: the same by the type of numbers; operations: those that compute something; written:
    elements that those with FLOPs wrote in the forward pass (activations)."""

    def __init__(self, border: Border) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._safe_count = border("count", self._count)
        self.flops = self.forward_flops = self.operations = self.written = 0
        self.by_type: Counter[str] = Counter()
        self.missing: set[str] = set()
        self.forward = False
        self._formulas = formulas()
        self._views: dict[Any, bool] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self._safe_count(func, args, kwargs or {}, out)
        return out

    def _count(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        if func not in self._views:
            self._views[func] = is_view(func)
            name = func._schema.name.split("::")
            if name[0] not in KNOWN or name[1] in UNCOUNTED:
                self.missing.add(func._schema.name)
        self.operations += not self._views[func]
        formula = self._formulas.get(func._overloadpacket)
        if formula is not None:
            self._add(formula(*args, **kwargs, out_val=out), args)
            if self.forward:
                first = out[0] if isinstance(out, tuple) else out
                self.written += first.numel()

    def _add(self, flops: int, args: Any) -> None:
        self.flops += flops
        self.forward_flops += flops * self.forward
        kind = next((a.dtype for a in args if isinstance(a, torch.Tensor)), None)
        self.by_type[NAMES.get(kind, str(kind)) if kind is not None else "?"] += flops


def is_view(func: Any) -> bool:
    """It only names memory anew, and launches nothing."""
    written = [a.alias_info.is_write for a in func._schema.arguments if a.alias_info is not None]
    return bool(written) and not any(written)


class StepCount:
    """Counts one step, unless a mode of the program is active. told: called with what was counted."""

    def __init__(self, border: Border, told: Callable[[Counted, int], None]) -> None:
        self._border, self._told = border, told
        self.mode: Counted | None = None

    def begin(self) -> bool:
        if torch._C._len_torch_dispatch_stack() > 0:
            return False
        self.mode = Counted(self._border)
        self.mode.__enter__()  # type: ignore[no-untyped-call]
        return True

    def end(self, samples: int) -> None:
        mode, self.mode = self.mode, None
        if mode is not None:
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._told(mode, samples)
