"""What a job leaves open, settled: sizes, workers, threads, optimizer and learning rate for this device and this data.

A small set of paintings needs many small steps to learn anything from random weights; a large one does not. The
defaults were found on four genres of 50 paintings each at 64 px: AdamW at 1e-3 reached 29 of 48 held out in 20 epochs,
SGD with momentum 26.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, cos, pi

from gpuwise.measure.job import Job, Optimizer
from gpuwise.units import Fraction

BATCH = 64
STEPS_AN_EPOCH = 12
"""At least so many steps, so that a small set is passed in small batches."""
LEAST_BATCH = 8
CPU_PX, ACCELERATOR_PX = 64, 224
SMALLEST_PX = {"inception_v3": 75, "maxvit_t": 224}
"""Sides below which a network cannot run."""
FIXED_PX = {"vit_b_16": 224, "vit_b_32": 224, "vit_l_16": 224, "vit_l_32": 224, "vit_h_14": 224, "maxvit_t": 224}
"""Sides that networks are built for and accept alone."""
EPOCHS = 24
PATIENCE = 8
WARM_UP_FRACTION = 0.1
FLOOR_FRACTION = 0.01
"""Of the highest learning rate, kept after the schedule is over."""
MOST_WORKERS = 16
WITHOUT_NORM = ("alexnet", "squeezenet", "vit_", "swin_", "maxvit", "convnext")
"""Networks without batch normalisation: they take a third of the learning rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Settled for one rank. batch: samples of a step. epochs: length of the learning rate's schedule. most_epochs: end
    at the latest, None for no such end. learning_rate: the highest."""

    batch: int
    image_size: int
    workers: int
    threads: int
    optimizer: Optimizer
    learning_rate: float
    weight_decay: float
    label_smoothing: float
    epochs: int
    most_epochs: int | None
    patience: int | None


def plan(job: Job, *, accelerated: bool, samples: int, cpus: float, world: int = 1, cpus_a_core: float = 1.0) -> Plan:
    """samples: in an epoch of the whole job. cpus: that the job may use, shared by `world` processes. cpus_a_core:
    logical ones; a second thread on a core makes matrix products no faster. On an accelerator, the workload's own
    paintings come in its own batch: what is measured is then what the catalogue predicts."""
    batch = job.batch or (BATCH if accelerated and job.data is None else _batch(samples // world))
    own = cpus / world
    workers = job.workers if job.workers is not None else _workers(own, accelerated)
    optimizer: Optimizer = job.optimizer or "adamw"
    epochs = job.epochs or _epochs(job, max(samples // (batch * world), 1))
    return Plan(
        batch=batch,
        image_size=image_size(job, accelerated=accelerated),
        workers=workers,
        threads=job.threads or _threads(own, cpus_a_core, 0 if accelerated else workers),
        optimizer=optimizer,
        learning_rate=job.learning_rate or _rate(job.network, optimizer, batch * world),
        weight_decay=0.05 if optimizer == "adamw" else 5e-4,
        label_smoothing=0.1,
        epochs=epochs,
        most_epochs=job.epochs or (epochs if job.early_stop else None),
        patience=(job.patience or PATIENCE) if job.early_stop else None,
    )


def image_size(job: Job, *, accelerated: bool) -> int:
    """px a side: as wanted, as the network needs, or what the device does in reasonable time."""
    if job.network in FIXED_PX:
        return FIXED_PX[job.network]
    wanted = job.image_size or (ACCELERATOR_PX if accelerated else CPU_PX)
    return max(wanted, SMALLEST_PX.get(job.network, 0))


def factor(progress: Fraction) -> Fraction:
    """Learning rate at this share of the schedule, of its highest: up in a line, down along a cosine, then a floor."""
    if progress < WARM_UP_FRACTION:
        return max(progress / WARM_UP_FRACTION, FLOOR_FRACTION)
    rest = min((progress - WARM_UP_FRACTION) / (1 - WARM_UP_FRACTION), 1.0)
    return FLOOR_FRACTION + (1 - FLOOR_FRACTION) * 0.5 * (1 + cos(pi * rest))


def _batch(samples: int) -> int:
    """A power of two."""
    wanted = max(LEAST_BATCH, min(BATCH, samples // STEPS_AN_EPOCH))
    return int(2 ** (wanted.bit_length() - 1))


def _workers(cpus: float, accelerated: bool) -> int:
    """On a CPU the network needs the CPUs itself, and on two of them a worker only takes turns with it."""
    if accelerated:
        return max(1, min(int(cpus) - 1, MOST_WORKERS))
    return 0 if cpus <= 2 else 1 + int(cpus) // 8


def _threads(cpus: float, cpus_a_core: float, workers: int) -> int:
    """A thread a core, as far as loader workers that share them leave CPUs, and at least half of the CPUs: a loader
    that waits would leave the rest idle. Two CPUs count as two cores, whatever the machine says of them."""
    cores = int(cpus if cpus <= 2 else cpus / cpus_a_core)
    return max(1, min(cores, max(int(cpus) - workers, ceil(cpus / 2))))


def _epochs(job: Job, steps_an_epoch: int) -> int:
    return EPOCHS if job.steps is None else max(1, ceil(job.steps / steps_an_epoch))


def _rate(network: str, optimizer: Optimizer, batch: int) -> float:
    """SGD's grows with the batch (Goyal et al. 2017, arXiv 1706.02677: 0.1 at 256); a small one learns at 0.02."""
    plain = network.startswith(WITHOUT_NORM) or (network.startswith("vgg") and not network.endswith("_bn"))
    rate = 1e-3 if optimizer == "adamw" else max(0.02, 0.1 * batch / 256)
    return rate / 3 if plain else rate
