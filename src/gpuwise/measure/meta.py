"""One forward pass and its loss on the meta device, watched: multiply-accumulates, activations written, tensors kept.

Needs torch (extra [torch]); imported by `count` only when it counts. Shapes only: no weights, no data, no accelerator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry


@dataclass(slots=True)
class Trace:
    """Totals of one forward pass of a whole batch. macs: by class of operation; written: elements; operations: calls;
    kept: the storages that are held when the backward pass begins."""

    macs: dict[str, float] = field(default_factory=dict)
    written: int = 0
    operations: int = 0
    kept: dict[int, Any] = field(default_factory=dict)

    def add(self, kind: str, macs: float, out: torch.Tensor) -> None:
        self.macs[kind] = self.macs.get(kind, 0.0) + macs
        self.written += out.numel()
        self.operations += 1

    @property
    def kept_bytes(self) -> int:
        return sum(storage.nbytes() for storage in self.kept.values())


def trace(model: torch.nn.Module, inputs: torch.Tensor) -> Trace:
    """Run `model` once in training mode. The model and its inputs live on the meta device."""
    seen = Trace()
    own = {id_of(t) for t in (*model.parameters(), *model.buffers())}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if id_of(tensor) not in own:
            seen.kept[id_of(tensor)] = tensor.untyped_storage()
        return tensor

    model.train()
    with torch.autograd.graph.saved_tensors_hooks(keep, _same), _fused_attention(seen), _Watch(seen):
        for out in _floating(model(inputs)):
            keep(out)
            _loss(out)
    return seen


def _floating(outputs: object) -> Iterator[torch.Tensor]:
    """What a model puts out, whatever it is wrapped in."""
    yield from (leaf for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point())


def _loss(out: torch.Tensor) -> torch.Tensor:
    """As much as any usual loss keeps: once more what the model puts out (the logarithms of a softmax). The output is
    held as well, by the loop that called the model; of a language model these two are the largest tensors of all."""
    return functional.log_softmax(out, -1)


def id_of(tensor: torch.Tensor) -> int:
    """Views of one storage are one thing; the storages are held, so their addresses stay unique."""
    return int(tensor.untyped_storage()._cdata)


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up every operation that torch has a formula for; the others move data but multiply nothing."""

    def __init__(self, seen: Trace) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if formula := flop_registry.get(func.overloadpacket):
            first = out[0] if isinstance(out, tuple) else out
            self.seen.add(_kind(func, args), formula(*args, **(kwargs or {}), out_val=out) / 2, first)
        return out


def _kind(func: Any, args: tuple[Any, ...]) -> str:
    if "convolution" not in func.overloadpacket.__name__:
        return "matmul"
    return "depthwise" if args[8] > 1 else "conv"  # the ninth argument of aten.convolution is `groups`


@contextmanager
def _fused_attention(seen: Trace) -> Iterator[None]:
    """Attention as CUDA runs it: one fused kernel that never writes the score matrix. On meta tensors torch would
    take the unfused path, whose scores are most of a long sequence's activations."""

    def attend(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> torch.Tensor:
        out: torch.Tensor = _Attention.apply(query, key, value)
        seen.add("attention", prod(query.shape[:-1]) * key.shape[-2] * (query.shape[-1] + value.shape[-1]), out)
        return out

    real = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = attend
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = real


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(query, key, value)
        return query.new_empty((*query.shape[:-1], value.shape[-1]))


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def build(make: Callable[[], object]) -> object:
    """The model, its parameters on the meta device: shapes without memory."""
    with torch.device("meta"):
        return make()


def image(batch: int, size: int) -> torch.Tensor:
    return torch.empty((batch, 3, size, size), device="meta")


def tokens(batch: int, length: int) -> torch.Tensor:
    return torch.zeros((batch, length), dtype=torch.long, device="meta")
