"""Does the job fit? A plain bound: what a training step must hold, against what a device can give.

    need = context + parameters · state bytes + batch · elements held when the backward pass begins · bytes an element

It leaves out workspaces, fragmentation and the first gradients of the backward pass, so a job that fits by little may
still fail; one that does not fit by this cannot run as it is written. Recomputed activations, a loss that is fused or
cut in pieces, and a compiler can do with less. Checked against 2020 to 2025 runs that filled their cards: see
tests/predict/test_memory.py.
"""

from __future__ import annotations

from gpuwise.errors import Message
from gpuwise.model import Accelerator, Assumptions, Workload
from gpuwise.predict.evidence import kind
from gpuwise.units import Gib

CONTEXT_GIB: Gib = 0.5
"""CUDA context and libraries, the least that is seen (0.5 to 1.5 GiB by version and architecture)."""

KEPT_PER_ACTIVATION = 2.0
"""Elements kept for each activation written, where nobody counted: ResNets 1.9 to 2.2, ViT 1.6, VGG 1.4."""

BYTES_FULL, BYTES_HALF, BYTES_MIXED_TRANSFORMER = 4.0, 2.0, 2.5
"""Of an element held. Mixed precision holds in fp32 what normalisation, softmax and loss need: counted with autocast on
torch's fake CUDA tensors, 2.7 bytes in GPT-2, 2.5 in BERT, 2.0 in SSD and ResNet-101."""

HALF_COPY_BYTES = 2.0
"""Per parameter, in mixed precision: autograd holds the half copy of each weight."""

MIXED = ("amp", "amp_bf16")
GIB = 2.0**30


def need_gib(workload: Workload) -> Gib:
    """Memory that one device must hold at least, in GiB. What a run was seen to allocate is better than any bound."""
    if workload.peak_memory_gib is not None:
        return CONTEXT_GIB + workload.peak_memory_gib
    kept_m = workload.stored_m or KEPT_PER_ACTIVATION * workload.activations_m
    copies = HALF_COPY_BYTES if workload.precision in MIXED else 0.0
    states = workload.parameters_m * (workload.state_bytes_per_parameter + copies)
    activations = workload.batch_per_accelerator * kept_m * _bytes(workload)
    return CONTEXT_GIB + 1e6 * (states + activations) / GIB


def _bytes(workload: Workload) -> float:
    if workload.precision in ("fp32", "tf32"):
        return BYTES_FULL
    mixed = workload.precision in MIXED and kind(workload.family) == "transformer"
    return BYTES_MIXED_TRANSFORMER if mixed else BYTES_HALF


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
