"""The sum-form roofline: seconds a sample takes if arithmetic, memory traffic and launches follow one another.

    t = 6·MAC / (e·peak)  +  a·k·bytes / (b·bandwidth)  +  state / (batch·bandwidth)  +  launches / batch     [s/sample]

6·MAC: 2 operations a MAC, a training step 3 forward passes. a: activation elements, k: how often one moves in a step.
e and b fall with a card's size (a fast card is harder to fill) and with missing power; they are fitted.
The sum fits measured steps better than the classic maximum (Williams et al., CACM 52(4) 2009, has the maximum): the
phases of one step hardly overlap. `ideal` is the classic bound, which no prediction may pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Literal

from gpuwise.errors import Message
from gpuwise.model import Accelerator, Precision, Workload

Arithmetic = Literal["fp32", "tf32", "amp"]

SINCE_AMPERE = frozenset(("Ampere", "Ada Lovelace", "Hopper", "Blackwell", "Blackwell Ultra", "Blackwell 2.0"))
"""Architectures with TF32 and bfloat16 in their tensor cores."""

TENSOR_RATIO = {
    "Volta": 8.0, "Turing": 8.0, "Ampere": 4.0, "Ada Lovelace": 4.0, "Hopper": 14.8, "Blackwell": 28.0,
    "Blackwell Ultra": 28.0, "Blackwell 2.0": 4.0, "CDNA 1.0": 8.0, "CDNA 2.0": 8.0, "CDNA 3": 8.0, "CDNA 4": 16.0,
    "RDNA 3.0": 2.0, "RDNA 4.0": 4.0,
}  # fmt: skip
"""Dense fp16 matrix rate over fp32 vector rate, where a table lacks it; GeForce has half (fp32 accumulation)."""

NO_HALF = ("Kepler", "Kepler 2.0", "Maxwell 2.0")
"""Architectures without arithmetic in half precision: whatever is asked runs in fp32."""

LARGE_AMPERE = ("a100", "a800", "a30")
LARGE_AMPERE_RATIO = 16.0
SLOWER = {"Kepler": 0.7, "Kepler 2.0": 0.7}
"""Rate against the roofline of newer architectures: TensorFlow CNN training on K80 against V100 and T4 (PROFET)."""

CEILING = 0.95
"""Largest share of a peak rate that the fit may use."""

STATE_TRAFFIC_BYTES = 28.0
"""Per parameter and step: weight read twice and written, gradient written and read, one state read and written."""

UNKNOWN_OPERATIONS = 80.0
"""Operations of a forward pass where nobody counted them: between ResNet-50 (54) and ResNet-101 (105)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one sample costs in a forward pass: 10^9 MACs, 10^6 activations, 10^6 parameters, operations of a batch.

    What only a full count says, else None: stored_m, 10^6 elements kept for the backward pass; launches, kernels of one
    forward and backward pass of a batch, about; depthwise_gmacs, 10^9 MACs of depthwise convolutions.
    """

    gmacs: float
    activations_m: float
    parameters_m: float
    operations: float = UNKNOWN_OPERATIONS
    transformer: bool = False
    stored_m: float | None = None
    launches: float | None = None
    depthwise_gmacs: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a device can do in one arithmetic: dense 10^12 operations/s, 10^9 byte/s, W for each 10^12 operations/s.

    half: activations of 2 bytes. tensor: in tensor cores. slower: factor of an old architecture. derived: the matrix
    rate comes from the architecture and not from a table.
    """

    peak_tflops: float
    bandwidth_gb_per_s: float
    w_per_tflops: float
    half: bool
    tensor: bool = True
    slower: float = 1.0
    derived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """Dimensionless but for launch_s (s per operation and step)."""

    compute: float
    compute_half: float
    peak_exponent: float
    power_exponent: float
    traffic: float
    traffic_half: float
    traffic_transformer: float
    bandwidth_exponent: float
    launch_s: float
    old_software: float


NOMINAL = Coefficients(
    compute=0.7,
    compute_half=2.0,
    peak_exponent=0.25,
    power_exponent=0.5,
    traffic=24.0,
    traffic_half=1.5,
    traffic_transformer=0.6,
    bandwidth_exponent=-0.2,
    launch_s=3e-4,
    old_software=1.0,
)
"""Round figures from which the predictor starts; its posterior says how far from them the measured rows lie."""


def work_of(workload: Workload) -> Work:
    return Work(
        gmacs=workload.gmacs,
        activations_m=workload.activations_m,
        parameters_m=workload.parameters_m,
        operations=workload.operations or UNKNOWN_OPERATIONS,
        transformer=workload.family == "transformer",
        stored_m=workload.stored_m,
        launches=workload.launches,
        depthwise_gmacs=workload.depthwise_gmacs,
    )


def unsupported(precision: Precision, accelerator: Accelerator) -> Message | None:
    """Why this precision cannot be predicted there, or None."""
    if accelerator.vendor not in ("NVIDIA", "AMD"):
        return Message(
            "{name} does not run CUDA programs, and no figure of a GPU carries over to it; what runs there leaves only "
            "with a port",
            name=accelerator.name,
        )
    if precision == "fp8":
        return Message("nothing here was measured in fp8")
    if precision in ("bf16", "amp_bf16") and accelerator.vendor == "NVIDIA" and not _modern(accelerator):
        return Message("{name} has no native bfloat16: use amp (fp16) or fp32", name=accelerator.name)
    return None


def arithmetic(precision: Precision, accelerator: Accelerator) -> Arithmetic:
    """What the device really computes in: fp32 runs as TF32 where there is TF32 (the frameworks' convolutions and the
    measured containers turn it on); every half precision runs at the rate of AMP."""
    if precision in ("fp32", "tf32") or accelerator.architecture in NO_HALF:
        return "tf32" if _modern(accelerator) else "fp32"
    return "amp"


def rates(accelerator: Accelerator, kind: Arithmetic) -> Rates | None:
    """None where no table gives the memory bandwidth or any rate."""
    matrix, derived = _matrix_tflops(accelerator)
    tensor = accelerator.tf32_tflops or (matrix and matrix / 2)
    peak = {"amp": matrix, "tf32": tensor, "fp32": accelerator.fp32_tflops}[kind]
    if peak is None or accelerator.bandwidth_gb_per_s is None:
        return None
    return Rates(
        peak_tflops=peak,
        bandwidth_gb_per_s=accelerator.bandwidth_gb_per_s,
        w_per_tflops=accelerator.tdp_w / peak if accelerator.tdp_w else TYPICAL_W_PER_TFLOPS,
        half=kind == "amp",
        tensor=kind != "fp32" and peak != accelerator.fp32_tflops,
        slower=SLOWER.get(accelerator.architecture, 1.0),
        derived=derived and kind != "fp32",
    )


TYPICAL_PEAK_TFLOPS, TYPICAL_W_PER_TFLOPS, TYPICAL_GB_PER_S = 50.0, 6.0, 900.0
"""Where the power laws of the fit are 1."""


def seconds(work: Work, on: Rates, batch: float, c: Coefficients, reached: float = 0.0, launches: float = 1.0) -> float:
    """Seconds a sample takes in training at this batch, with current software. Works on arrays, element by element.

    reached: log of what the device does beyond the roofline; it does not change the launches, which are the host's.
    launches: share of the assumed launch time that is really spent.
    """
    return device_seconds(work, on, batch, c) * exp(-reached) + launches * launch_seconds(work, on, batch, c)


def device_seconds(work: Work, on: Rates, batch: float, c: Coefficients) -> float:
    """The part in which the device computes or moves data."""
    share = c.compute * c.compute_half**on.half * (on.peak_tflops / TYPICAL_PEAK_TFLOPS) ** c.peak_exponent
    share = share * (on.w_per_tflops / TYPICAL_W_PER_TFLOPS) ** c.power_exponent
    share = (share**-8 + CEILING**-8) ** (-1 / 8)
    touches = c.traffic * c.traffic_half**on.half * c.traffic_transformer**work.transformer
    touches = touches * (on.bandwidth_gb_per_s / TYPICAL_GB_PER_S) ** -c.bandwidth_exponent
    compute = 6e-3 * work.gmacs / (on.peak_tflops * share)
    memory = 1e-3 * work.activations_m * touches * _bytes(on) / on.bandwidth_gb_per_s
    state = 1e-3 * work.parameters_m * STATE_TRAFFIC_BYTES / (batch * on.bandwidth_gb_per_s)
    whole: float = (compute + memory + state) / on.slower
    return whole


def launch_seconds(work: Work, on: Rates, batch: float, c: Coefficients) -> float:
    """The part in which the host starts operations; an old device waits longer for each."""
    return c.launch_s * work.operations / batch / on.slower


def ideal_seconds(work: Work, on: Rates) -> float:
    """The least a sample can take: all arithmetic at peak, or each activation written once and read once."""
    return max(6e-3 * work.gmacs / on.peak_tflops, 2e-3 * work.activations_m * _bytes(on) / on.bandwidth_gb_per_s)


def _bytes(on: Rates) -> float:
    return 4.0 - 2.0 * on.half


def _modern(accelerator: Accelerator) -> bool:
    return accelerator.architecture in SINCE_AMPERE


def _matrix_tflops(accelerator: Accelerator) -> tuple[float | None, bool]:
    """Dense fp16 matrix rate, and whether it is derived. Cards without tensor cores run AMP at their fp32 rate."""
    if accelerator.fp16_tflops:
        return accelerator.fp16_tflops, False
    if accelerator.fp32_tflops is None:
        return None, False
    ratio = TENSOR_RATIO.get(accelerator.architecture, 1.0)
    if accelerator.id.startswith("gtx"):
        ratio = 1.0  # the GTX 16 cards are Turing without tensor cores
    elif accelerator.id.startswith(LARGE_AMPERE):
        ratio = LARGE_AMPERE_RATIO
    elif accelerator.name.startswith("GeForce"):
        ratio /= 2
    return accelerator.fp32_tflops * ratio, ratio > 1
