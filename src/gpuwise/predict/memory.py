"""Does the job fit? A plain bound: what a training step must hold, against what a device can give.

    need = context + parameters · state bytes + batch · elements kept for the backward pass · bytes an element

It leaves out workspaces and fragmentation, so a job that fits by little may still fail; one that does not fit by this
cannot run. Checked against 2020 to 2025 runs that filled their cards: see tests/predict/test_memory.py.
"""

from __future__ import annotations

from gpuwise.errors import Message
from gpuwise.model import Accelerator, Assumptions, Workload
from gpuwise.units import Gib

CONTEXT_GIB: Gib = 0.5
"""CUDA context and libraries, the least that is seen (0.5 to 1.5 GiB by version and architecture)."""

KEPT_PER_ACTIVATION = 2.0
"""Elements kept for each activation written, where nobody counted: ResNets 1.9 to 2.2, ViT 1.6, VGG 1.4."""

BYTES_HALF, BYTES_FULL = 2.0, 4.0
GIB = 2.0**30


def need_gib(workload: Workload) -> Gib:
    """Memory that one device must hold at least, in GiB."""
    kept_m = workload.stored_m or KEPT_PER_ACTIVATION * workload.activations_m
    size = BYTES_FULL if workload.precision in ("fp32", "tf32") else BYTES_HALF
    states = workload.parameters_m * workload.state_bytes_per_parameter
    activations = workload.batch_per_accelerator * kept_m * size
    return CONTEXT_GIB + 1e6 * (states + activations) / GIB


def usable_gib(accelerator: Accelerator, assumptions: Assumptions) -> Gib:
    """What a driver gives, in GiB: reported where a source says so, else the assumed share of the nominal size."""
    return accelerator.usable_memory_gib or accelerator.memory_gib * assumptions["usable_memory_fraction"].value


def does_not_fit(workload: Workload, accelerator: Accelerator, assumptions: Assumptions) -> Message | None:
    """Why the job cannot run on this device, or None."""
    need, usable = need_gib(workload), usable_gib(accelerator, assumptions)
    if need <= usable:
        return None
    return Message(
        "needs at least {need:.1f} GiB at batch {batch}, {name} has {usable:.1f} GiB usable",
        need=need,
        batch=workload.batch_per_accelerator,
        name=accelerator.name,
        usable=usable,
    )
