"""Counts of a torch model, without an accelerator: what one sample costs, on any machine.

Conventions. One multiply-accumulate (MAC) is one multiplication with its addition; FLOPs are 2 × MACs. Counted are
convolutions, matrix products, attention (the full square, masked or not) and recurrent layers, forward and backward;
element-wise work is not. Activations are the elements those operations write, which is what timm's tables call
activations. Kept are the tensors that are held when the backward pass begins: what autograd saves of the model and of a
loss on its output, and the output itself. Known: ResNet-50 at 224 px has 4.09 GMAC, 11.11 M activations, 25.557 M
parameters.

Counted on the meta device, in training mode (in evaluation mode `nn.MultiheadAttention` hides its work from the
counter), with fused attention as CUDA has it. A model whose shapes depend on the data (detection) is run once on real
tensors of one image, with made-up boxes. `count` does all this in a child process with time limits, `count_here` in
this one; `work` counts a model that is being trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, get_args

from gpuwise.errors import InvalidInput, MeasurementFailed, Message, UnknownName
from gpuwise.measure import apart
from gpuwise.measure.record import Work
from gpuwise.measure.target import FOREIGN, first_line, load, model_of, need_torch, parts
from gpuwise.model import Precision, Source, Workload
from gpuwise.workloads import UNDECIDED

if TYPE_CHECKING:
    import torch

    from gpuwise.measure.inputs import Sample
    from gpuwise.measure.meta import Trace

BATCH = 2
"""Samples in the pass on the meta device: batch normalisation refuses one sample in some heads."""

LIMITS_S: Mapping[str, float] = {"meta": 20.0, "real": 240.0}
"""Shapes alone take a second, the largest models of torchvision four; real tensors of one image some seconds a hundred
GMAC. Both several times longer on a busy machine."""

STATE_BYTES: Mapping[str, float] = {"sgd": 8.0, "momentum": 12.0, "adam": 16.0, "adamw": 16.0, "adafactor": 8.0}
"""Bytes per parameter of weight, gradient and optimizer state in fp32: 4 + 4 + 0, 4 or 8 (adafactor: factored, ~0).
Under AMP the weights stay fp32; `predict.memory` adds their half copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Per sample. gmacs: of the forward pass, training_gmacs: of forward and backward together, both by class (conv,
    depthwise, matmul, attention, recurrent); stored_m: 10^6 elements kept for the backward pass; trainable_m: 10^6
    parameters that get a gradient; launches: kernels of one forward and backward pass of a batch, about; method: on
    what it was counted; cautions: what the counts leave out or took for granted. The other fields as in
    `model.Workload`."""

    gmacs: Mapping[str, float]
    training_gmacs: Mapping[str, float]
    activations_m: float
    stored_m: float
    operations: int
    launches: int
    parameters_m: float
    trainable_m: float
    method: Literal["meta", "real"] = "meta"
    cautions: tuple[str, ...] = ()

    @property
    def training_flops(self) -> float:
        """FLOPs of one sample in a training step."""
        return 2e9 * sum(self.training_gmacs.values())

    @property
    def gradient_bytes(self) -> float:
        """What data-parallel training sums over all accelerators in every step, in fp32."""
        return 4e6 * self.trainable_m

    def minimum_bytes(self, batch: int) -> float:
        """Least bytes that a training step moves in fp32: weights read forward and backward and their gradients
        written; what is stored, written and read once."""
        return 4e6 * (3 * self.parameters_m + 2 * self.stored_m * batch)


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
    batch: per accelerator. Without `samples` and `epochs` the length of the job stays undecided, and one pass over a
    million samples only compares machines; `assumed` says so.
    """
    _check(precision, optimizer, input_size=input_size, batch=batch, tokens=tokens)
    counts = count(target, input_size=input_size, tokens=tokens)
    return workload(
        counts,
        target,
        input_size=input_size,
        tokens=tokens,
        batch=batch,
        precision=precision,
        optimizer=optimizer,
        samples=samples,
        epochs=epochs,
    )


def workload(
    counts: Counts,
    target: str,
    *,
    input_size: int,
    tokens: int | None,
    batch: int,
    precision: Precision,
    optimizer: str,
    samples: int | None,
    epochs: float | None,
) -> Workload:
    """What `describe` makes of the counts of `target`."""
    module, _, name = target.partition(":")
    shape = Message("{n} tokens", n=tokens) if tokens else Message("{n} px", n=input_size)
    how = "counted on the meta device" if counts.method == "meta" else "counted on real tensors"
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
        launches=float(counts.launches),
        depthwise_gmacs=counts.gmacs.get("depthwise", 0.0),
        parameters_m=counts.parameters_m,
        state_bytes_per_parameter=STATE_BYTES[optimizer],
        batch_per_accelerator=batch,
        precision=precision,
        samples=1_000_000 if samples is None else samples,
        epochs=1.0 if epochs is None else epochs,
        measured_as=(name,) if module == "torchvision.models" and input_size == 224 and not tokens else (),
        undecided=tuple(name for name, value in (("samples", samples), ("epochs", epochs)) if value is None),
        assumed=_assumed(samples, epochs, counts),
        source=Source(kind="predicted", ref=f"{how}: {target}"),
        reasons={"accuracy_fraction": Message("not measured: counting a model does not train it")},
    )


def count(
    target: str, *, input_size: int = 224, tokens: int | None = None, limits_s: Mapping[str, float] = LIMITS_S
) -> Counts:
    """Counts of `target`, made in a child process. Raises InvalidInput if the model cannot be found, built or run so;
    MeasurementFailed if that takes longer than `limits_s`, crashes, or needs more memory than there is."""
    parts(target)
    need_torch()
    arguments = {"target": target, "input_size": input_size, "tokens": tokens}
    found = apart.call("gpuwise.measure.count:count_here", arguments, limits_s)
    return Counts(**found | {"cautions": tuple(found["cautions"])})


def count_here(
    target: str, *, input_size: int = 224, tokens: int | None = None, tell: apart.Tell = lambda stage: None
) -> Counts:
    """The same in this process, without limits. tell: hears which stage begins (meta, real)."""
    need_torch()
    made = load(target)
    from gpuwise.measure import inputs, meta

    def make() -> torch.nn.Module:
        return model_of(made(), target)

    sample = inputs.Sample(input_size=input_size, tokens=tokens)
    tell("meta")
    try:
        return of_model(meta.built(make), sample.batch(BATCH, "meta"), BATCH)
    except FOREIGN as error:
        said = error
    tell("real")
    try:
        return _on_real(make, sample)
    except FOREIGN as error:
        raise _cannot_run(target, sample.shape, said, error) from error


def of_model(model: torch.nn.Module, batch: Any, samples: int) -> Counts:
    """Counts of a model with `samples` samples in `batch` (a tensor, or a tuple or mapping of arguments), both on the
    meta device. Raises what the model raises."""
    from gpuwise.measure import meta

    return _counts(model, meta.trace(model, batch), samples)


def _on_real(make: Callable[[], torch.nn.Module], sample: Sample) -> Counts:
    """On one sample; on two where batch normalisation refuses one."""
    try:
        return _run(make(), sample, 1)
    except ValueError as error:
        if "per channel" not in str(error):
            raise
        return _run(make(), sample, 2)


def _run(model: torch.nn.Module, sample: Sample, samples: int) -> Counts:
    from gpuwise.measure import meta

    batch, cautions = sample.real(model, samples)
    return _counts(model, meta.trace(model, batch), samples, method="real", cautions=cautions)


def _counts(
    model: torch.nn.Module,
    seen: Trace,
    samples: int,
    method: Literal["meta", "real"] = "meta",
    cautions: tuple[str, ...] = (),
) -> Counts:
    unseen = (f"without the work of {', '.join(sorted(seen.unknown))}, which nobody states",) if seen.unknown else ()
    return Counts(
        gmacs={kind: macs / samples / 1e9 for kind, macs in seen.macs.items()},
        training_gmacs={kind: macs / samples / 1e9 for kind, macs in seen.training.items()},
        activations_m=seen.written / samples / 1e6,
        stored_m=seen.kept_bytes / samples / 4e6,
        operations=seen.operations,
        launches=seen.launches,
        parameters_m=sum(p.numel() for p in model.parameters()) / 1e6,
        trainable_m=sum(p.numel() for p in model.parameters() if p.requires_grad) / 1e6,
        method=method,
        cautions=cautions + unseen,
    )


def family(counts: Counts) -> str:
    """cnn where convolutions do most of the work, else transformer: the families of the measured tables."""
    conv = counts.gmacs.get("conv", 0.0) + counts.gmacs.get("depthwise", 0.0)
    return "cnn" if 2 * conv >= sum(counts.gmacs.values()) else "transformer"


def work(
    model: torch.nn.Module,
    inputs: Any,
    *,
    samples_per_step: int,
    peak_tflops: float | None = None,
    peak_source: str | None = None,
) -> Work:
    """Counts of a model that is about to be trained, from its shapes alone: the model is not touched.

    inputs: a batch as the model takes it, a tensor, or a tuple or mapping of arguments; its first tensor's first
    dimension is the batch. samples_per_step: of one optimizer step of the whole job. Where shapes do not suffice the
    figures are None with the reason: watch one step then (`meta.watching`) and use `work_seen`.
    """
    from gpuwise.measure import meta

    try:
        counts = of_model(meta.shapes_of(model), *meta.shapes(inputs))
    except FOREIGN as error:
        why = str(Message("not countable from its shapes: {error}", error=first_line(error)))
        reasons = dict.fromkeys(("gmacs", "activations_m", "stored_m", "operations", "flops_per_step"), why)
        return Work(
            parameters_m=_parameters_m(model), peak_tflops=peak_tflops, peak_source=peak_source, reasons=reasons
        )
    return Work(
        gmacs=sum(counts.gmacs.values()),
        activations_m=counts.activations_m,
        stored_m=counts.stored_m,
        parameters_m=counts.parameters_m,
        operations=counts.operations,
        flops_per_step=counts.training_flops * samples_per_step,
        peak_tflops=peak_tflops,
        peak_source=peak_source,
        reasons={"gmacs": "; ".join(counts.cautions)} if counts.cautions else {},
    )


def work_seen(
    model: torch.nn.Module,
    seen: Trace,
    *,
    samples: int,
    samples_per_step: int,
    peak_tflops: float | None = None,
    peak_source: str | None = None,
) -> Work:
    """The same of a real step that was watched. samples: that went through this process in it."""
    counted = bool(seen.macs)
    why = "a watched step does not tell it"
    return Work(
        gmacs=sum(seen.macs.values()) / samples / 1e9 if counted else None,
        activations_m=seen.written / samples / 1e6 if counted else None,
        parameters_m=_parameters_m(model),
        operations=seen.operations if counted else None,
        flops_per_step=2 * sum(seen.training.values()) / samples * samples_per_step if counted else None,
        peak_tflops=peak_tflops,
        peak_source=peak_source,
        reasons={"stored_m": why} if counted else dict.fromkeys(("gmacs", "flops_per_step"), "no operation was seen"),
    )


def _parameters_m(model: torch.nn.Module) -> float:
    return sum(p.numel() for p in model.parameters()) / 1e6


def _cannot_run(target: str, shape: Message, said: Exception, error: Exception) -> InvalidInput | MeasurementFailed:
    """Whatever a foreign model does wrong, told as one error; `said`: on shapes, `error`: on real tensors."""
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return apart.out_of_memory(Message("{target} cannot be run on {shape}", target=target, shape=shape))
    return InvalidInput(
        Message("{target} cannot be run on {shape}: {error}", target=target, shape=shape, error=first_line(error)),
        Message(
            "Give the input it takes (--tokens N or --input-size N), name a function of your own that returns a model "
            "for such an input, or state the counts in a TOML file. On shapes alone: {error}",
            error=first_line(said),
        ),
    )


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


def _assumed(samples: int | None, epochs: float | None, counts: Counts) -> dict[str, str]:
    given = {"samples": samples, "epochs": epochs}
    found = {name: UNDECIDED[name] for name, value in given.items() if value is None}
    return found | ({"gmacs": "; ".join(counts.cautions)} if counts.cautions else {})
