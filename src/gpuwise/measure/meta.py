"""One training step of a torch model, watched: multiply-accumulates, activations written, tensors kept, launches.

On the meta device it needs shapes only: no weights, no data, no accelerator. On real tensors the forward pass is
computed and the backward pass only counted. Needs torch (extra [torch]); imported by `count` only when it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from gpuwise.measure import flops


@dataclass(slots=True)
class Trace:
    """Totals of one step of a whole batch. macs, backward: of the two passes, by class of operation; written: elements
    that counted operations of the forward pass write; operations: their calls; launches: calls of any kind that make
    the device work, both passes; kept_bytes: held when the backward pass begins; unknown: operations of other packages,
    which nobody here can count."""

    macs: dict[str, float] = field(default_factory=dict)
    backward: dict[str, float] = field(default_factory=dict)
    written: int = 0
    operations: int = 0
    launches: int = 0
    kept_bytes: int = 0
    unknown: set[str] = field(default_factory=set)

    def add(self, kind: str, macs: float, out: torch.Tensor) -> None:
        self.macs[kind] = self.macs.get(kind, 0.0) + macs
        self.written += out.numel()
        self.operations += 1

    def add_backward(self, kind: str, macs: float) -> None:
        self.backward[kind] = self.backward.get(kind, 0.0) + macs

    @property
    def training(self) -> dict[str, float]:
        """Multiply-accumulates of both passes."""
        kinds = [kind for kind in flops.KINDS if kind in self.macs or kind in self.backward]
        return {kind: self.macs.get(kind, 0.0) + self.backward.get(kind, 0.0) for kind in kinds}


def trace(model: torch.nn.Module, inputs: Any, *, backward: bool = True) -> Trace:
    """One step of `model` in training mode. inputs: a tensor, or a tuple or mapping of arguments, on the device of the
    model. Gradients that the step leaves are taken away again."""
    on_meta = _device(model, inputs) == "meta"
    _materialise(model, inputs, on_meta)
    seen, scopes, kept = Trace(), _Scopes(), _Kept(model)
    model.train()
    with ExitStack() as stack:
        stack.enter_context(_slow_path())
        stack.enter_context(scopes.of(model))
        stack.enter_context(torch.device("meta") if on_meta else nullcontext())
        stack.enter_context(_fused_attention(seen) if on_meta else nullcontext())
        stack.enter_context(_Watch(seen, scopes, hollow=not on_meta))
        with torch.autograd.graph.saved_tensors_hooks(kept.keep, _same):
            losses = losses_of(model, inputs, kept.keep)
        seen.kept_bytes = kept.close()
        if backward:
            _backward(model, losses)
    return seen


def _materialise(model: torch.nn.Module, inputs: Any, on_meta: bool) -> None:
    """Lazy layers learn their shapes from a first pass."""
    if any(torch.nn.parameter.is_lazy(p) for p in model.parameters()):
        with torch.no_grad(), torch.device("meta") if on_meta else nullcontext():
            _call(model, inputs)


def losses_of(model: torch.nn.Module, inputs: Any, keep: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
    """A loss on each floating output of a forward pass; `keep` sees the outputs, which the caller of a model holds."""
    return [_loss(keep(out)) for out in _floating(_call(model, inputs))]


def _call(model: torch.nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def _device(model: torch.nn.Module, inputs: Any) -> str:
    tensors = (leaf for leaf in (*tree_leaves(inputs), *model.parameters()) if isinstance(leaf, torch.Tensor))
    return next((tensor.device.type for tensor in tensors), "cpu")


def _floating(outputs: object) -> Iterator[torch.Tensor]:
    """What a model puts out, whatever it is wrapped in."""
    leaves = tree_leaves(outputs)
    if len(leaves) == 1 and leaves[0] is outputs and hasattr(outputs, "__dict__"):
        leaves = leaves if isinstance(outputs, torch.Tensor) else tree_leaves(vars(outputs))
    yield from (leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point())


def _loss(out: torch.Tensor) -> torch.Tensor:
    """As much as any usual loss keeps: once more what the model puts out (the logarithms of a softmax). The output is
    held as well, by the loop that called the model; of a language model these two are the largest tensors of all. A
    model that puts out its loss has that one."""
    return functional.log_softmax(out, -1) if out.dim() else out


def _backward(model: torch.nn.Module, losses: list[torch.Tensor]) -> None:
    before = {id(p): p.grad for p in model.parameters()}
    back(losses)
    for parameter in model.parameters():
        parameter.grad = before[id(parameter)]


def back(losses: list[torch.Tensor]) -> None:
    """The backward pass of all losses together, where anything is to be learned."""
    wanted = [loss.sum().float() for loss in losses if loss.requires_grad]
    if wanted:
        torch.stack(wanted).sum().backward()  # type: ignore[no-untyped-call]


@contextmanager
def watching() -> Iterator[Trace]:
    """Count what runs inside, such as one step of a real training: `with watching() as seen: step()`. Slows that step
    by some microseconds an operation. What runs in another process or inside a compiled graph is not seen."""
    seen = Trace()
    with _slow_path(), _Watch(seen, _Scopes(), hollow=False):
        yield seen


class _Kept:
    """The storages that autograd saves, the model's own parameters and buffers left out."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.own = {id_of(t) for t in (*model.parameters(), *model.buffers())}
        self.storages: dict[int, Any] = {}

    def keep(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout == torch.strided and (key := id_of(tensor)) not in self.own:
            self.storages[key] = tensor.untyped_storage()
        return tensor

    def close(self) -> int:
        """Bytes of all of them, which are let go."""
        total = sum(int(storage.nbytes()) for storage in self.storages.values())
        self.storages.clear()
        return total


def id_of(tensor: torch.Tensor) -> int:
    """Views of one storage are one thing; the storages are held, so their addresses stay unique."""
    return int(tensor.untyped_storage()._cdata)


class _Scopes:
    """Which modules are at work: products inside a recurrent layer, and those of two computed matrices inside
    `nn.MultiheadAttention`, are of the class of that layer. Autograd numbers its nodes in the order of the forward
    pass, so a node of the backward pass is known by its number."""

    KINDS: Mapping[type[torch.nn.Module], str] = {
        torch.nn.RNNBase: "recurrent",
        torch.nn.RNNCellBase: "recurrent",
        torch.nn.MultiheadAttention: "attention",
    }

    def __init__(self) -> None:
        self.open: list[tuple[str, int]] = []
        self.ranges: list[tuple[int, int, str]] = []

    @contextmanager
    def of(self, model: torch.nn.Module) -> Iterator[None]:
        hooks = []
        for module in model.modules():
            kind = next((kind for cls, kind in self.KINDS.items() if isinstance(module, cls)), None)
            if kind is not None:
                hooks.append(module.register_forward_pre_hook(self._enter(kind)))
                hooks.append(module.register_forward_hook(self._leave, always_call=True))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _enter(self, kind: str) -> Callable[..., None]:
        return lambda *_: self.open.append((kind, _number()))

    def _leave(self, *_: Any) -> None:
        kind, first = self.open.pop()
        self.ranges.append((first, _number(), kind))

    def kind(self, usual: str, name: str, node: Any) -> str:
        scope = self._scope(node) if usual == "matmul" else None
        if scope == "recurrent" or (scope == "attention" and "bmm" in name):
            return scope
        return usual

    def _scope(self, node: Any) -> str | None:
        if node is None:
            return self.open[-1][0] if self.open else None
        number = int(node._sequence_nr())
        return next((kind for first, last, kind in reversed(self.ranges) if first <= number < last), None)


def _number() -> int:
    return int(torch.autograd._get_sequence_nr())  # type: ignore[attr-defined]


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up every operation. hollow: the operations of a backward pass are not computed; they give zeros of the right
    shape, which take no memory until somebody writes to them. Their values change no count."""

    def __init__(self, seen: Trace, scopes: _Scopes, *, hollow: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen, self.scopes, self.hollow = seen, scopes, hollow

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        node = torch._C._current_autograd_node()
        hollow = self.hollow and node is not None and not getattr(func, "is_view", True)
        out = _zeros(func, args, kwargs) if hollow else func(*args, **kwargs)
        self._note(func, args, kwargs, out, node)
        return out

    def _note(self, func: Any, args: Any, kwargs: Any, out: Any, node: Any) -> None:
        self.seen.launches += flops.launches(func)
        if (found := flops.of(func, args, kwargs, out)) is not None:
            kind = self.scopes.kind(found[0], flops.operation(func), node)
            first = out[0] if isinstance(out, tuple | list) else out
            self.seen.add(kind, found[1], first) if node is None else self.seen.add_backward(kind, found[1])
        elif flops.unknown(func):
            self.seen.unknown.add(flops.operation(func))


def _zeros(func: Any, args: Any, kwargs: Any) -> Any:
    """What `func` would give, by its shapes; really computed where shapes do not tell it."""
    if func._schema.is_mutable:
        return args[0] if func._schema.name.endswith("_") else func(*args, **kwargs)
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    shapes = tree_map_only(torch.Tensor, lambda t: t.to("meta"), (args, kwargs))
    try:
        out = func(*shapes[0], **shapes[1])
    except (RuntimeError, TypeError):
        return func(*args, **kwargs)
    return tree_map_only(torch.Tensor, lambda t: torch.zeros_like(t, device=tensors[0].device), out) if tensors else out


@contextmanager
def _slow_path() -> Iterator[None]:
    """Without the fused encoder layer of evaluation mode, which hides all its products in one operation."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def _fused_attention(seen: Trace) -> Iterator[None]:
    """Attention as CUDA runs it: one fused kernel that never writes the score matrix. On meta tensors torch would
    take the unfused path, whose scores are most of a long sequence's activations."""

    def attend(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> torch.Tensor:
        out: torch.Tensor = _Attention.apply(query, key, value, seen)
        seen.add("attention", flops.attention(query, key, value), out)
        seen.launches += 1
        return out

    with attention_by(attend):
        yield


@contextmanager
def attention_by(attend: Callable[..., Any]) -> Iterator[None]:
    """`scaled_dot_product_attention` done by another function, under whatever name a model holds it."""
    real = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = attend
    try:
        with _Instead(real, attend):
            yield
    finally:
        functional.scaled_dot_product_attention = real


class _Instead(TorchFunctionMode):
    """Calls one function instead of another. Inside torch's own Python functions no such mode is asked, so that the
    name in `functional` has to be exchanged as well."""

    def __init__(self, real: Callable[..., Any], other: Callable[..., Any]) -> None:
        super().__init__()
        self.real, self.other = real, other

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return (self.other if func is self.real else func)(*args, **(kwargs or {}))


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, seen: Trace) -> torch.Tensor:
        ctx.save_for_backward(query, key, value)
        ctx.seen = seen
        return query.new_empty((*query.shape[:-1], value.shape[-1]))

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        query, key, value = ctx.saved_tensors
        ctx.seen.add_backward("attention", 2 * flops.attention(query, key, value))
        ctx.seen.launches += 1
        return *(torch.empty_like(t) for t in (query, key, value)), None


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def build(make: Callable[[], object]) -> object:
    """The model, its parameters on the meta device: shapes without memory."""
    with torch.device("meta"):
        return make()


def built(make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    """The same for a model that reads a value while it is built, too: its parameters alone are without memory then."""
    try:
        with torch.device("meta"):
            return make()
    except (RuntimeError, TypeError, ValueError):
        hook = register_module_parameter_registration_hook(_on_meta)  # type: ignore[arg-type]
    try:
        return shapes_of(make())
    finally:
        hook.remove()


def _on_meta(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter) -> torch.nn.Parameter | None:
    if parameter is None or parameter.is_meta or torch.nn.parameter.is_lazy(parameter):
        return None
    return torch.nn.Parameter(parameter.to("meta"), parameter.requires_grad)


def shapes_of(model: torch.nn.Module) -> torch.nn.Module:
    """A copy in fp32 on the meta device, which takes no memory. What two layers share stays shared, as it would not
    with `to_empty`. Wrappers of data-parallel training and compilation are left out."""
    model = getattr(model, "_orig_mod", model)
    parallel = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)
    return copied(model.module if isinstance(model, parallel) else model, shape_of)


def copied(model: torch.nn.Module, other: Callable[[torch.Tensor], torch.Tensor]) -> torch.nn.Module:
    """A copy of the model with another tensor in place of each; parameters stay parameters."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        for leaf in tree_leaves(dict(vars(module))):
            if isinstance(leaf, torch.Tensor) and id(leaf) not in memo:
                parameter = isinstance(leaf, torch.nn.Parameter)
                memo[id(leaf)] = torch.nn.Parameter(other(leaf), leaf.requires_grad) if parameter else other(leaf)
    copy: torch.nn.Module = deepcopy(model, memo)
    return copy


def shape_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without its values: on the meta device, floating types as fp32."""
    dtype = torch.float32 if tensor.is_floating_point() else tensor.dtype
    return torch.empty_like(tensor, device="meta", dtype=dtype, requires_grad=False)


def shapes(inputs: Any) -> tuple[Any, int]:
    """A batch without its values, and how many samples it holds: the first dimension of its first tensor."""
    leaves = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor) and leaf.dim()]
    if not leaves:
        raise ValueError("the batch holds no tensor")
    return tree_map_only(torch.Tensor, shape_of, inputs), int(leaves[0].shape[0])


def image(batch: int, size: int, device: str = "meta") -> torch.Tensor:
    return torch.rand((batch, 3, size, size), device=device)


def tokens(batch: int, length: int, device: str = "meta") -> torch.Tensor:
    return torch.zeros((batch, length), dtype=torch.long, device=device)
