"""One training step on fake tensors, in which every storage is booked from its birth to its death. Needs torch.

`torch.distributed._tools.mem_tracker.MemTracker` does the same, module by module; it is private and several times
slower, so that it only serves as a check in the tests.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from gpuwise.measure import meta
from gpuwise.measure.memory import Kernels, Optimizer, Peak, Phase, Update
from gpuwise.model import Precision

GIB = 2.0**30
PHASES: tuple[Phase, ...] = ("forward", "backward", "optimizer")
HALVES = {"amp": torch.float16, "amp_bf16": torch.bfloat16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How a model is trained."""

    optimizer: Optimizer
    precision: Precision
    update: Update
    kernels: Kernels

    def autocast(self) -> AbstractContextManager[Any]:
        half = HALVES.get(self.precision)
        return torch.autocast("cpu", dtype=half) if half else nullcontext()

    def optimizer_for(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        parameters, foreach = [p for p in model.parameters() if p.requires_grad], self.update != "loop"
        if self.optimizer in {"adam", "adamw"}:
            kind = torch.optim.Adam if self.optimizer == "adam" else torch.optim.AdamW
            return kind(parameters, foreach=foreach)
        return torch.optim.SGD(parameters, 0.1, momentum=0.9 if self.optimizer == "momentum" else 0.0, foreach=foreach)


def peak(model: torch.nn.Module, batch: Any, step: Step) -> Peak:
    """Two steps: the first makes the states of the optimizer, the second is booked."""
    shapes = meta.shapes_of(model)

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        dtype = torch.bfloat16 if step.precision == "bf16" and tensor.is_floating_point() else tensor.dtype
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device="cpu")

    with FakeTensorMode(), _kernels(step):
        copy, samples = meta.copied(shapes, fake).train(), tree_map_only(torch.Tensor, fake, batch)
        optimizer = step.optimizer_for(copy)
        for _ in range(2):
            ledger = Ledger(step.kernels)
            train(copy, samples, optimizer, ledger, step)
    return ledger.peak()


def train(model: torch.nn.Module, batch: Any, optimizer: torch.optim.Optimizer, ledger: Ledger, step: Step) -> None:
    """One step, booked."""
    optimizer.zero_grad()
    states = (leaf for state in optimizer.state.values() for leaf in tree_leaves(dict(state)))
    ledger.open("parameters", (*model.parameters(), *model.buffers()))
    ledger.open("optimizer", states)
    ledger.open("activations", tree_leaves(batch))
    held: list[torch.Tensor] = []

    def hold(out: torch.Tensor) -> torch.Tensor:
        held.append(out)
        return out

    with ledger.phase("forward", "activations"), step.autocast():
        losses = meta.losses_of(model, batch, hold)
    with ledger.phase("backward", "temporary"):
        meta.back(losses)
    ledger.rename("gradients", (p.grad for p in model.parameters()))
    losses.clear()
    held.clear()
    with ledger.phase("optimizer", "temporary", watched=step.update != "fused"):
        optimizer.step()


@dataclass(slots=True, eq=False)
class Entry:
    """One storage. kind: as the fields of `Peak` call it."""

    size: int
    kind: str
    alive: Any = None


class Ledger(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What is held at any time, and the worst moment of each phase."""

    def __init__(self, kernels: Kernels = "cuda") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels = kernels
        self.live: dict[int, Entry] = {}
        self.held, self.now, self.born = 0, PHASES[0], "activations"
        self.worst = dict.fromkeys(PHASES, 0)
        self.snapshot: list[Entry] = []
        self.at: Phase = PHASES[0]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.open(self.born, tree_leaves(out))
        if self.kernels == "cpu" and (taken := _columns(func, args)):
            self._pass(taken)
        return out

    def _pass(self, size: int) -> None:
        """A workspace of `size` bytes, gone when its kernel is done."""
        passing = Entry(size, "temporary")
        self.held += size
        self.live[-1] = passing
        self._look()
        self._close(-1, None)

    @contextmanager
    def phase(self, name: Phase, born: str, *, watched: bool = True) -> Iterator[None]:
        """New storages are of the kind `born`. watched: else only what is held when it begins is seen."""
        self.now, self.born = name, born
        self._look()
        with self if watched else nullcontext():
            yield

    def open(self, kind: str, things: Iterable[object]) -> None:
        for storage in _storages(things):
            if (key := storage._cdata) not in self.live:
                entry = Entry(storage.nbytes(), kind)
                entry.alive = weakref.ref(storage, partial(self._close, key))
                self.live[key] = entry
                self.held += entry.size
        self._look()

    def rename(self, kind: str, things: Iterable[object]) -> None:
        for storage in _storages(things):
            self.live[storage._cdata].kind = kind

    def _close(self, key: int, _: Any) -> None:
        self.held -= self.live.pop(key).size

    def _look(self) -> None:
        if self.held > max(self.worst.values()):
            self.snapshot, self.at = list(self.live.values()), self.now
        self.worst[self.now] = max(self.worst[self.now], self.held)

    def peak(self) -> Peak:
        kinds = dict.fromkeys(("parameters", "gradients", "optimizer", "activations", "temporary"), 0)
        for entry in self.snapshot:
            kinds[entry.kind] += entry.size
        return Peak(
            **{f"{kind}_gib": size / GIB for kind, size in kinds.items()},
            phase=self.at,
            phases_gib={name: size / GIB for name, size in self.worst.items()},
        )


def _columns(func: Any, args: Any) -> int:
    """Bytes of the columns (im2col) that a CPU makes of the whole batch in the backward pass of a dilated convolution.

    As oneDNN does for layers of some 500 channels (DeepLab); narrow ones may take less.
    """
    if func is not torch.ops.aten.convolution_backward.default:
        return 0
    made, weight, dilation = args[0], args[2], args[6]
    positions = made.shape[0] * math.prod(made.shape[2:])
    return int(positions * weight[0].numel() * made.element_size()) if max(dilation) > 1 else 0


def _storages(things: Iterable[object]) -> Iterator[Any]:
    for thing in things:
        if isinstance(thing, torch.Tensor) and thing.layout == torch.strided:
            yield thing.untyped_storage()


@contextmanager
def _kernels(step: Step) -> Iterator[None]:
    with ExitStack() as stack:
        if step.kernels == "cuda":
            stack.enter_context(meta.attention_by(_attend))
            stack.enter_context(_AsOnCuda())
        yield


def _attend(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> torch.Tensor:
    out: torch.Tensor = _Attention.apply(query, key, value)
    return out


class _Attention(torch.autograd.Function):
    """A fused kernel keeps its inputs, its output (laid out as the query is) and one number a row: no scores."""

    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        alike = value.shape[-1] == query.shape[-1]
        out = torch.empty_like(query) if alike else query.new_empty((*query.shape[:-1], value.shape[-1]))
        ctx.save_for_backward(query, key, value, out, query.new_empty(query.shape[:-1], dtype=torch.float32))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.empty_like(t) for t in ctx.saved_tensors[:3])


class _AsOnCuda(TorchFunctionMode):
    """Dropout keeps a mask of bytes; autocast computes norms, softmax and losses in fp32 (torch's documentation of
    `torch.amp`, "CUDA ops that autocast to float32")."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.dropout:
            return _dropout(*args, **kwargs)
        if getattr(func, "__name__", "") in IN_FULL and args and torch.is_autocast_enabled("cpu"):
            args = (args[0].float(), *args[1:])
        return func(*args, **kwargs)


IN_FULL = {"layer_norm", "group_norm", "softmax", "log_softmax", "cross_entropy"}


def _dropout(data: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    return torch.native_dropout(data, p, True)[0] if training and p else data
