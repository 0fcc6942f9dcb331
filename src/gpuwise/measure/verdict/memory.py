"""Memory: of devices (spilling, the batch that fits) and shared memory of the host (what the loader needs).

A batch is fitted on allocated memory, measured in fresh processes; reserved memory holds caches of any size. Test
values: batches 1, 2, 4, 8 with 1.1, 1.9, 3.5, 6.7 GiB → 0.8 GiB a sample and 0.3 GiB beside; 8 workers × 2 batches of
256 × 3 × 224 × 224 float32 → 2.5 GB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor

import numpy as np

from gpuwise.errors import InvalidInput, Message
from gpuwise.measure.record import Record, Setup
from gpuwise.measure.verdict.facts import Facts
from gpuwise.measure.verdict.kinds import Finding
from gpuwise.units import BYTES_PER_GIB, Fraction, Gib

MARGIN: Fraction = 0.05
SHM_USABLE: Fraction = 0.9
SHM_FULL: Fraction = 0.8
CHANNELS = 3
FLOAT32_BYTES, UINT8_BYTES = 4, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFit:
    """batch: the largest that should fit, to be tried by a real step; 0: not even one sample. others_gib: what other
    processes hold. margin_fraction: of the card, kept free."""

    batch: int
    per_sample_gib: Gib
    fixed_gib: Gib
    others_gib: Gib
    margin_fraction: Fraction


def batch_that_fits(
    batches: Sequence[int],
    allocated_gib: Sequence[Gib],
    card_gib: Gib,
    others_gib: Gib = 0.0,
    margin_fraction: Fraction = MARGIN,
) -> BatchFit:
    """A line through the allocated peaks of measured batches (least squares). InvalidInput for fewer than two batches,
    or where memory does not grow with the batch."""
    if len(set(batches)) < 2:
        raise InvalidInput(
            Message("{count} batch sizes were measured; a line needs two.", count=len(set(batches))),
            Message("Measure the allocated memory of another batch, in a process of its own."),
        )
    slope, fixed = np.polyfit(np.array(batches, float), np.array(allocated_gib, float), 1)
    if slope <= 0:
        raise InvalidInput(
            Message("Allocated memory does not grow with the batch ({slope:.3g} GiB a sample).", slope=float(slope)),
            Message("Measure each batch in a process of its own, and allocated rather than reserved memory."),
        )
    free = card_gib * (1 - margin_fraction) - others_gib - fixed
    return BatchFit(
        batch=max(0, floor(free / slope + 1e-9)),
        per_sample_gib=float(slope),
        fixed_gib=float(fixed),
        others_gib=others_gib,
        margin_fraction=margin_fraction,
    )


def needed_gib(record: Record) -> Gib | None:
    """Memory that a device must have for this run: the most allocated on one. Spilled memory counts."""
    return max((load.allocated_gib for load in record.device_loads if load.allocated_gib is not None), default=None)


def spilling(facts: Facts) -> Iterator[Finding]:
    """More is allocated than a device has: the driver pages to the host's memory instead of failing."""
    sizes = {d.index: d.memory_gib for d in facts.record.devices if not d.unified and d.backend != "cpu"}
    for load in facts.record.device_loads:
        size = sizes.get(load.index)
        if size is None or load.allocated_gib is None or load.allocated_gib <= size:
            continue
        message = Message(
            "spilling to host memory: {allocated:.1f} GiB are allocated on a device of {size:.1f} GiB",
            allocated=load.allocated_gib,
            size=size,
        )
        fix = Message("Take a smaller batch, or a card with at least {need:.0f} GiB.", need=load.allocated_gib)
        yield Finding(kind="memory-bound", cause="spill", share_fraction=None, message=message, fix=fix)


def shared_memory_need_gib(setup: Setup) -> Gib | None:
    """What the loader's queues take at most: workers × prefetched batches × bytes of one. None: not known enough.

    Our own feeds hand on uint8; another program's pictures are taken as float32.
    """
    if not setup.workers or not setup.batch_per_accelerator or not setup.image_size:
        return None
    each = FLOAT32_BYTES if setup.feed is None else UINT8_BYTES
    prefetch = 2 if setup.prefetch is None else setup.prefetch
    of_batch = setup.batch_per_accelerator * CHANNELS * setup.image_size**2 * each
    return setup.workers * prefetch * of_batch * max(setup.processes, 1) / BYTES_PER_GIB


def shared_memory(facts: Facts) -> Iterator[Finding]:
    """The mount is smaller than the loader's need, or nearly full."""
    host, load = facts.record.host, facts.record.host_load
    need = shared_memory_need_gib(facts.record.setup)
    if host.shm_gib is not None and need is not None and need > SHM_USABLE * host.shm_gib:
        message = Message(
            "shared memory is {size:.3g} MiB, the loader needs about {need:.1f} GB",
            size=host.shm_gib * 1024,
            need=need * BYTES_PER_GIB / 1e9,
        )
        yield _shared(message)
        return
    gauge = load.shm_used_fraction if load else None
    used = gauge.maximum if gauge else host.shm_used_fraction
    if used is not None and used >= SHM_FULL:
        yield _shared(Message("shared memory was {share:.0%} full", share=used))


def shared_fix() -> Message:
    return Message(
        "Enlarge /dev/shm (docker --shm-size or --ipc=host; Kubernetes: an emptyDir with medium: Memory on /dev/shm), "
        "or take fewer workers."
    )


def _shared(message: Message) -> Finding:
    return Finding(kind="input-bound", cause="shared memory", share_fraction=None, message=message, fix=shared_fix())
