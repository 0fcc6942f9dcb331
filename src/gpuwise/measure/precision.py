"""Which precision and memory layout training should have on a device, from what the device is.

Half precision pays where the chip has units for it. fp16 needs loss scaling and is for Volta and Turing; Pascal runs it
at 1/64 of its fp32 rate (all but P100), and a CPU without fp16 units 400 times slower than fp32. bf16 is for Ampere and
newer: Volta and Turing only emulate it, though the framework calls it supported (UC-037). Source of the rates: CUDA C++
Programming Guide, arithmetic instructions; of the CPU's: own measurement of matmul, 0.41 against 195 GFLOP/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuwise.errors import InvalidInput, Message
from gpuwise.measure.job import MemoryFormat
from gpuwise.measure.record import Device
from gpuwise.model import Precision

Half = Literal["float16", "bfloat16"]
VOLTA, AMPERE = (7, 0), (8, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerics:
    """How numbers are kept and multiplied. half: type of the products under autocast, or of everything when `pure`.

    scaled: the loss is scaled so that small gradients do not vanish in fp16. tf32: fp32 products on tensor cores.
    why: the reason of the choice.
    """

    precision: Precision
    memory_format: MemoryFormat
    half: Half | None = None
    pure: bool = False
    scaled: bool = False
    tf32: bool = False
    why: Message


def choose(device: Device, precision: Precision | None = None, memory_format: MemoryFormat | None = None) -> Numerics:
    """Numerics for the device; what is wanted is kept. Raises InvalidInput for fp16 where it never pays, and fp8."""
    if precision is None:
        picked, why = _pick(device)
    else:
        _refuse(device, precision)
        picked, why = precision, Message("as asked for")
    half = _half(picked)
    return Numerics(
        precision=picked,
        memory_format=memory_format or _layout(device, picked),
        half=half,
        pure=picked == "bf16",
        scaled=half == "float16",
        tf32=picked != "fp32" and device.backend == "cuda" and _at_least(device, AMPERE),
        why=why,
    )


def _pick(device: Device) -> tuple[Precision, Message]:
    if device.backend in ("cpu", "rocm", "xpu", "xla"):
        if device.native_bf16:
            return "amp_bf16", Message("{name} multiplies bf16 natively", name=device.name)
        return "fp32", Message("{name} has no units for bf16", name=device.name)
    if device.backend == "mps":
        return "fp32", Message("half precision on Apple GPUs brings little and loses accuracy")
    if _at_least(device, AMPERE):
        return "amp_bf16", Message("{name} multiplies bf16 natively", name=device.name)
    if _at_least(device, VOLTA):
        return "amp", Message("{name} multiplies fp16 natively and emulates bf16", name=device.name)
    return "fp32", Message("{name} is slower in half precision than in fp32", name=device.name)


def _refuse(device: Device, precision: Precision) -> None:
    if precision == "fp8":
        raise InvalidInput(
            Message("reference training has no fp8"),
            Message("Leave the precision open, or choose fp32, amp or amp_bf16."),
        )
    if precision == "tf32" and device.backend != "cuda":
        raise InvalidInput(
            Message("tf32 is of NVIDIA's cards, not of {name}", name=device.name),
            Message("Choose fp32 or leave it open."),
        )
    if precision == "amp" and device.backend in ("cpu", "cuda") and not _at_least(device, VOLTA):
        raise InvalidInput(
            Message("fp16 on {name} is far slower than fp32", name=device.name),
            Message("Leave the precision open, or choose fp32."),
        )


def _half(precision: Precision) -> Half | None:
    if precision == "amp":
        return "float16"
    return "bfloat16" if precision in ("amp_bf16", "bf16") else None


def _layout(device: Device, precision: Precision) -> MemoryFormat:
    """Channels last: 1.06 times as fast on a CPU; what tensor cores work on. Elsewhere PyTorch's default."""
    cores = precision != "fp32" and device.backend in ("cuda", "rocm", "xpu")
    return "nhwc" if device.backend == "cpu" or cores else "nchw"


def _at_least(device: Device, capability: tuple[int, int]) -> bool:
    """An unknown capability is taken as old: slower, and never wrong."""
    major, _, minor = (device.capability or "").partition(".")
    if device.backend != "cuda" or not major.isdecimal():
        return False
    return (int(major), int(minor) if minor.isdecimal() else 0) >= capability
