"""Matrix products and convolutions by precision. FLOPs are 2 × MACs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gpuwise.measure.devices import CPU_BF16, CPU_FP16, NATIVE_BF16
from gpuwise.measure.host import cpu_flags
from gpuwise.measure.probes import Found, Run, Skipped, Task, largest, rate, seconds_of

SIZES = (256, 512, 1024, 2048, 4096, 8192)
CUBE = 8.0
TYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

CHANNELS, SIDE = 64, 56
BATCHES = (8, 32, 128, 512)


def settle(device: str) -> Run | None:
    """What waits for a device; None on the CPU."""
    module = getattr(torch, device, None)
    return None if device == "cpu" else getattr(module, "synchronize", None)


def unsupported(precision: str, device: str) -> str | None:
    """Why a precision is not computed in hardware here, so that nobody waits for its emulation."""
    if device == "cpu":
        return _unsupported_on_cpu(precision)
    if device != "cuda" or torch.version.hip or precision in {"fp32", "fp16"}:
        return "only NVIDIA devices have it" if precision == "tf32" and device != "cuda" else None
    capability = torch.cuda.get_device_capability()
    if capability < NATIVE_BF16:
        return f"needs compute capability 8.0, this device has {capability[0]}.{capability[1]}"
    return None


def _unsupported_on_cpu(precision: str) -> str | None:
    if precision == "tf32":
        return "only NVIDIA devices have it"
    wanted = {"bf16": CPU_BF16, "fp16": CPU_FP16}.get(precision)
    if wanted is None or wanted & cpu_flags():
        return None
    return (
        f"this CPU does not compute {precision} in hardware, and emulating it can be hundreds of times slower: not run"
    )


@contextmanager
def exactly(precision: str) -> Iterator[None]:
    """float32 as float32, or as TF32 where that is asked for: convolutions are set apart, and take TF32 by default."""
    before, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
        torch.backends.cudnn.allow_tf32 = convolutions


def matmul(precision: str, task: Task) -> Found:
    """A square matrix product, as large as the time allows."""
    _refuse(precision, task.device)
    with exactly(precision):
        n = largest(lambda size: _once(_product(size, precision, task.device), task.device), SIZES, CUBE, task.cap_s)
        taken = seconds_of(_product(n, precision, task.device), task.cap_s, settle=settle(task.device))
    return rate(2e-12 * n**3, taken, "TFLOP/s", n=n, precision=precision, threads=_threads(task.device))


def convolution(precision: str, task: Task) -> Found:
    """3 × 3 with 64 channels at 56 px, forward, channels last: the commonest layer of a residual network."""
    _refuse(precision, task.device)
    torch.backends.cudnn.benchmark = True
    with exactly(precision), torch.no_grad():
        batch = largest(lambda n: _once(_layer(n, precision, task.device), task.device), BATCHES, 4.0, task.cap_s)
        taken = seconds_of(_layer(batch, precision, task.device), task.cap_s, settle=settle(task.device))
    flops = 2 * batch * SIDE**2 * CHANNELS**2 * 9
    return rate(flops * 1e-12, taken, "TFLOP/s", batch=batch, precision=precision, threads=_threads(task.device))


def _refuse(precision: str, device: str) -> None:
    why = unsupported(precision, device)
    if why is not None:
        raise Skipped(why)


def _threads(device: str) -> float | str:
    return float(torch.get_num_threads()) if device == "cpu" else "of the device"


def _product(n: int, precision: str, device: str) -> Run:
    a, b = (torch.randn(n, n, device=device).to(TYPES[precision]) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _layer(batch: int, precision: str, device: str) -> Run:
    kind = TYPES[precision]
    layer = torch.nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False).to(device, kind)
    image = torch.randn(batch, CHANNELS, SIDE, SIDE, device=device).to(kind)
    layer, image = layer.to(memory_format=torch.channels_last), image.to(memory_format=torch.channels_last)
    return lambda: layer(image)


def _once(run: Run, device: str) -> float:
    """Seconds of the fastest of a few runs: the first one compiles, loads and pages in, and others may disturb some.
    Slow ones are not run often."""
    wait = settle(device) or (lambda: None)
    fastest, begun = float("inf"), time.perf_counter()
    for _ in range(TRIES):
        before = time.perf_counter()
        run()
        wait()
        fastest = min(fastest, time.perf_counter() - before)
        if time.perf_counter() - begun > TRIES_S:
            break
    return fastest


TRIES, TRIES_S = 8, 0.15
