"""Counts of a torch model, without an accelerator: what one sample costs, on any machine.

Conventions. One multiply-accumulate (MAC) is one multiplication with its addition; FLOPs are 2 × MACs, a training step
3 × the forward pass. Counted are convolutions, matrix products and attention (the full square, masked or not), by the
formulas of `torch.utils.flop_counter`; element-wise work is not. Activations are the elements those operations write,
which is what timm's tables call activations. Kept are the tensors that are held when the backward pass begins: what
autograd saves of the model and of a loss on its output, and the output itself.
Known: ResNet-50 at 224 px has 4.09 GMAC, 11.11 M activations, 25.557 M parameters.

Counted on the meta device, in training mode (in evaluation mode `nn.MultiheadAttention` hides its work from the
counter), with fused attention as CUDA has it. Models whose shapes depend on the data (detection) cannot be counted so.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.model import Precision, Source, Workload

if TYPE_CHECKING:
    import torch

BATCH = 2
"""Samples in the counted pass: batch normalisation refuses one sample in some heads."""

STATE_BYTES: Mapping[str, float] = {"sgd": 8.0, "momentum": 12.0, "adam": 16.0, "adamw": 16.0, "adafactor": 8.0}
"""Bytes per parameter of weight, gradient and optimizer state in fp32: 4 + 4 + 0, 4 or 8 (adafactor: factored, ~0).
Under AMP the weights stay fp32; `predict.memory` adds their half copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Per sample, forward pass. gmacs: by class (conv, depthwise, matmul, attention); stored_m: 10^6 elements kept
    for the backward pass; the other fields as in `model.Workload`."""

    gmacs: Mapping[str, float]
    activations_m: float
    stored_m: float
    operations: int
    parameters_m: float


def describe(
    target: str,
    *,
    input_size: int = 224,
    tokens: int | None = None,
    batch: int = 64,
    precision: Precision = "amp",
    optimizer: str = "momentum",
    samples: int | None = None,
    epochs: float | None = None,
) -> Workload:
    """The workload of `target`, any "module:callable" that returns a torch model when called without arguments.

    input_size: pixels a side of a square image; tokens: length of a sequence of token ids instead of an image.
    batch: per accelerator. Without `samples` the job is one pass over a million samples, which is said in `assumed`.
    """
    _check(precision, optimizer, input_size=input_size, batch=batch, tokens=tokens)
    counts = count(target, input_size=input_size, tokens=tokens)
    module, _, name = target.partition(":")
    shape = Message("{n} tokens", n=tokens) if tokens else Message("{n} px", n=input_size)
    return Workload(
        name=name,
        title=f"{name}, {shape}",
        family=family(counts),
        model=target,
        sample="sequence" if tokens else "image",
        gmacs=sum(counts.gmacs.values()),
        activations_m=counts.activations_m,
        stored_m=counts.stored_m,
        operations=counts.operations,
        parameters_m=counts.parameters_m,
        state_bytes_per_parameter=STATE_BYTES[optimizer],
        batch_per_accelerator=batch,
        precision=precision,
        samples=1_000_000 if samples is None else samples,
        epochs=1.0 if epochs is None else epochs,
        measured_as=(name,) if module == "torchvision.models" and input_size == 224 and not tokens else (),
        assumed=_assumed(samples, epochs),
        source=Source(kind="predicted", ref=f"counted on the meta device: {target}"),
        reasons={"accuracy_fraction": Message("not measured: counting a model does not train it")},
    )


def count(target: str, *, input_size: int = 224, tokens: int | None = None) -> Counts:
    """Counts of one forward pass per sample. Raises InvalidInput if the model cannot be found, built or run so."""
    make = load(target)
    meta = _meta()
    inputs = meta.tokens(BATCH, tokens) if tokens else meta.image(BATCH, input_size)
    with _explained(target, inputs):
        model = _module(meta.build(make), target)
        seen = meta.trace(model, inputs)
    return Counts(
        gmacs={kind: macs / BATCH / 1e9 for kind, macs in seen.macs.items()},
        activations_m=seen.written / BATCH / 1e6,
        stored_m=seen.kept_bytes / BATCH / 4e6,
        operations=seen.operations,
        parameters_m=sum(p.numel() for p in model.parameters()) / 1e6,
    )


def family(counts: Counts) -> str:
    """cnn where convolutions do most of the work, else transformer: the families of the measured tables."""
    conv = counts.gmacs.get("conv", 0.0) + counts.gmacs.get("depthwise", 0.0)
    return "cnn" if 2 * conv >= sum(counts.gmacs.values()) else "transformer"


def load(target: str) -> Callable[[], object]:
    """The callable that "module:callable" names, looked for in the current folder too."""
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name):
        raise InvalidInput(
            Message("“{target}” does not name a model", target=target),
            Message("Write module:callable, for example torchvision.models:resnet50."),
        )
    module = _import(module_name, target)
    make = getattr(module, name, None)
    if make is None:
        near = get_close_matches(name, dir(module), 3)
        raise UnknownName(
            Message("{module} has no “{name}”", module=module_name, name=name),
            Message("Near it: {names}.", names=", ".join(near) or "-"),
            near,
        )
    return _without_arguments(make, target)


def _import(module_name: str, target: str) -> Any:
    try:
        with _current_folder():
            return importlib.import_module(module_name)
    except ImportError as error:
        if error.name in {"torch", "torchvision"}:
            raise _torch_missing(error) from error
        raise InvalidInput(
            Message("cannot import {module}: {error}", module=module_name, error=error),
            Message("Check the name in {target}, or run in the folder that holds the module.", target=target),
        ) from error


def _without_arguments(make: Any, target: str) -> Callable[[], object]:
    if not callable(make):
        raise _no_module(target, type(make).__name__)
    try:
        signature = inspect.signature(make)
        signature.bind()
    except TypeError as error:
        raise InvalidInput(
            Message("{target} cannot be called without arguments: {error}", target=target, error=error),
            Message("Write a function of your own that returns the model, and name that."),
        ) from error
    except ValueError:  # a callable written in C shows no signature
        return make  # type: ignore[no-any-return]
    downloads = {name: None for name, p in signature.parameters.items() if name.startswith("weights") and p.default}
    return partial(make, **downloads)


def _module(model: object, target: str) -> torch.nn.Module:
    import torch

    if not isinstance(model, torch.nn.Module):
        raise _no_module(target, type(model).__name__)
    return model


def _no_module(target: str, kind: str) -> InvalidInput:
    return InvalidInput(
        Message("{target} gives a {kind}, not a torch.nn.Module", target=target, kind=kind),
        Message("Name a function or class that returns the model when called without arguments."),
    )


def _meta() -> Any:
    try:
        return importlib.import_module("gpuwise.measure.meta")
    except ImportError as error:
        raise _torch_missing(error) from error


def _torch_missing(error: ImportError) -> InvalidInput:
    return InvalidInput(
        Message("counting a model needs {name}, which is not installed", name=error.name or "torch"),
        Message("Install the extra: pip install 'gpuwise[torch]'. A TOML file can state the counts instead."),
    )


@contextmanager
def _explained(target: str, inputs: torch.Tensor) -> Iterator[None]:
    """Whatever a foreign model does wrong while it is built or run, told as one error."""
    try:
        yield
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError, OSError) as error:
        what = str(error).strip().splitlines() or [type(error).__name__]
        raise InvalidInput(
            Message("{target} cannot be run on {shape}: {error}", target=target, shape=_shape(inputs), error=what[0]),
            Message(
                "Give the input it takes (--tokens N or --input-size N). A model that reads values, as detection "
                "models do, cannot be counted without data: state its counts in a TOML file."
            ),
        ) from error


def _shape(inputs: torch.Tensor) -> Message:
    if inputs.dim() == 2:
        return Message("{n} token ids", n=inputs.shape[1])
    return Message("an image of {n} × {n} px", n=inputs.shape[-1])


@contextmanager
def _current_folder() -> Iterator[None]:
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path.remove("")


def _check(precision: str, optimizer: str, **counts: int | None) -> None:
    choices = (("precision", precision, get_args(Precision)), ("optimizer", optimizer, tuple(STATE_BYTES)))
    for name, value, known in choices:
        if value not in known:
            raise UnknownName(
                Message("{name} “{value}” is not known", name=name, value=value),
                Message("Choose one of {known}.", known=", ".join(known)),
                get_close_matches(value, known, 3),
            )
    for name, number in counts.items():
        if number is not None and number < 1:
            raise InvalidInput(Message("{name} is {n}", name=name, n=number), Message("It must be 1 or more."))


def _assumed(samples: int | None, epochs: float | None) -> dict[str, str]:
    given = {"samples": samples, "epochs": epochs}
    why = {
        "samples": "one million samples, to compare machines: give the size of your own epoch",
        "epochs": "one pass: give your own number of epochs",
    }
    return {name: why[name] for name, value in given.items() if value is None}
