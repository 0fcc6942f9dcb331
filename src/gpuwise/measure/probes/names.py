"""The probes by name, in the order in which they run. Imports no framework."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from gpuwise.measure.probes import Found, Task


def _late(module: str, name: str, *arguments: Any) -> Callable[[Task], Found]:
    """A probe whose module is imported when it runs, so that what needs no framework runs without one."""

    def run(task: Task) -> Found:
        found: Found = getattr(import_module(f"gpuwise.measure.probes.{module}"), name)(*arguments, task)
        return found

    return run


PROBES: dict[str, Callable[[Task], Found]] = {
    "jpeg decode": _late("images", "decode"),
    "disk in order": _late("storage", "in_order"),
    "disk at random": _late("storage", "at_random", 1),
    "disk at random, 16 readers": _late("storage", "at_random", 16),
    "all-reduce 1 MiB": _late("transfers", "all_reduce", 2**20),
    "all-reduce 85 MB": _late("transfers", "all_reduce", 85_000_000),
    "memory copy": _late("transfers", "copy"),
    "host to device, pinned": _late("transfers", "to_device", True),
    "host to device, pageable": _late("transfers", "to_device", False),
    **{f"matmul {p}": _late("arithmetic", "matmul", p) for p in ("fp32", "tf32", "bf16", "fp16")},
    **{f"convolution {p}": _late("arithmetic", "convolution", p) for p in ("fp32", "tf32", "bf16", "fp16")},
}
"""85 MB: gradients of ResNet-34 in fp32. The collectives come before all that starts threads of arithmetic: their
processes are forked."""

NAMES = tuple(PROBES)
UNITS = {
    name: "images/s a core" if name.startswith("jpeg") else "MB/s" if name.startswith("disk")
    else "TFLOP/s" if name.startswith(("matmul", "convolution")) else "GB/s"
    for name in NAMES
}  # fmt: skip
"""Unit of each probe, for those that found nothing too."""

__all__ = ["NAMES", "PROBES", "UNITS"]
