"""Peak memory of one training step, without a GPU and without that memory: the step is run on fake tensors, and every
storage is booked from its birth to its death (`ledger`).

What counts is what torch's allocator is asked for. Not in it: rounding and fragmentation of the caching allocator
(usually 5 to 10 % more), the context of the driver, and workspaces of cuDNN and cuBLAS (about 0.6 to 1 GiB together).

    peak("torchvision.models:resnet50", batch=64, optimizer="momentum", precision="amp").total_gib
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, get_args

from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.measure import apart
from gpuwise.measure.target import FOREIGN, first_line, load, model_of, need_torch, parts
from gpuwise.model import Precision
from gpuwise.units import Gib

if TYPE_CHECKING:
    import torch

Phase = Literal["forward", "backward", "optimizer"]
Optimizer = Literal["sgd", "momentum", "adam", "adamw"]
Update = Literal["foreach", "loop", "fused"]
"""How the optimizer goes over the parameters: all at once (torch's own choice on a GPU), one by one (its choice on a
CPU), or in one kernel without temporaries."""
Kernels = Literal["cuda", "cpu"]

LIMITS_S: Mapping[str, float] = {"fake": 120.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """What is held at the worst moment of a training step, and in which of its phases that is.

    parameters_gib: with buffers. activations_gib: the batch, and what the forward pass made. temporary_gib: what the
    backward pass or the optimizer made for itself. phases_gib: the worst moment of each phase.
    """

    parameters_gib: Gib
    gradients_gib: Gib
    optimizer_gib: Gib
    activations_gib: Gib
    temporary_gib: Gib
    phase: Phase
    phases_gib: Mapping[str, Gib]

    @property
    def total_gib(self) -> Gib:
        return self.phases_gib[self.phase]


def peak(
    target: str,
    *,
    batch: int,
    input_size: int = 224,
    tokens: int | None = None,
    optimizer: Optimizer = "momentum",
    precision: Precision = "fp32",
    update: Update = "foreach",
    limits_s: Mapping[str, float] = LIMITS_S,
) -> Peak:
    """The peak of `target` ("module:callable") with `batch` samples on one accelerator, found in a child process.

    Raises InvalidInput for a model that cannot be run on fake tensors (shapes that depend on the data: measure a few
    steps then), MeasurementFailed if it takes too long or crashes.
    """
    check(optimizer, precision, update)
    parts(target)
    need_torch()
    asked = {"input_size": input_size, "tokens": tokens, "optimizer": optimizer, "precision": precision}
    found = apart.call(f"{__name__}:peak_here", {"target": target, "batch": batch, "update": update, **asked}, limits_s)
    return Peak(**found)


def peak_here(
    target: str,
    *,
    batch: int,
    input_size: int = 224,
    tokens: int | None = None,
    optimizer: Optimizer = "momentum",
    precision: Precision = "fp32",
    update: Update = "foreach",
    tell: apart.Tell = lambda stage: None,
) -> Peak:
    """The same in this process, without a limit. tell: hears that the counting begins (fake)."""
    need_torch()
    make = load(target)
    from gpuwise.measure import inputs, meta

    samples = inputs.Sample(input_size=input_size, tokens=tokens).batch(batch, "meta")
    tell("fake")
    try:
        model = meta.built(lambda: model_of(make(), target))
        return of_model(model, samples, optimizer=optimizer, precision=precision, update=update)
    except FOREIGN as error:
        raise InvalidInput(
            Message("the memory of {target} cannot be counted: {error}", target=target, error=first_line(error)),
            Message("Measure it: a few steps of training show what they take."),
        ) from error


def of_model(
    model: torch.nn.Module,
    batch: Any,
    *,
    optimizer: Optimizer = "momentum",
    precision: Precision = "fp32",
    update: Update = "foreach",
    kernels: Kernels = "cuda",
) -> Peak:
    """The peak of a model, whose values are not needed (it may be on the meta device), with a batch as it takes it: a
    tensor, or a tuple or mapping of arguments.

    kernels: as CUDA has them (fused attention, masks of dropout as bytes, the types that its autocast chooses), or as
    the CPU does. Raises what the model raises.
    """
    check(optimizer, precision, update)
    from gpuwise.measure import ledger

    step = ledger.Step(optimizer=optimizer, precision=precision, update=update, kernels=kernels)
    return ledger.peak(model, batch, step)


def check(optimizer: str, precision: str, update: str) -> None:
    """Raises UnknownName for a name that is not known here, InvalidInput for fp8: torch has no autocast for it."""
    choices = (("optimizer", optimizer, Optimizer), ("precision", precision, Precision), ("update", update, Update))
    for name, value, known in choices:
        if value not in get_args(known):
            raise UnknownName(
                Message("{name} “{value}” is not known", name=name, value=value),
                Message("Choose one of {known}.", known=", ".join(get_args(known))),
                get_close_matches(value, get_args(known), 3),
            )
    if precision == "fp8":
        raise InvalidInput(
            Message("the memory of a step in fp8 cannot be counted"),
            Message("Choose amp or bf16, which is an upper bound for it."),
        )
