"""Rows of the tables as readings of the predictor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpuwise.model import Accelerator, BenchmarkResult
from gpuwise.predict.reference import REFERENCE
from gpuwise.predict.roofline import Work
from gpuwise.predict.setting import Reading, Setting

_SIZED = re.compile(r"(.+)@(\d+)")


def readings(
    rows: Iterable[BenchmarkResult], accelerators: Mapping[str, Accelerator], counts: Mapping[str, Work]
) -> Iterator[Reading]:
    """Each row with its card and its counts, where there are any."""
    for row in rows:
        placed = setting(row, accelerators[row.accelerator], counts)
        yield Reading(setting=placed, samples_per_s=row.samples_per_s, yours=False)


def setting(row: BenchmarkResult, accelerator: Accelerator, counts: Mapping[str, Work]) -> Setting:
    return Setting(
        workload=row.workload,
        family=row.family or None,
        accelerator=accelerator,
        accelerators=row.accelerators,
        precision=row.precision,
        batch=row.batch_per_accelerator,
        work=work(row.workload, counts),
        software=row.software,
        memory_format=row.memory_format,
        mode=row.mode,
        compiled=row.compiled,
        as_computed=row.source.kind == "published",
    )


def work(name: str, counts: Mapping[str, Work]) -> Work | None:
    """Counts of a measured workload: counted, or those of a convolutional network at another image size by area."""
    found = REFERENCE.get(name) or counts.get(name)
    sized = None if found else _SIZED.fullmatch(name)
    base = counts.get(sized[1]) if sized else None
    if sized is None or base is None:
        return found
    area = (int(sized[2]) / 224) ** 2
    stored = base.stored_m and base.stored_m * area
    depthwise = base.depthwise_gmacs and base.depthwise_gmacs * area
    return replace(
        base,
        gmacs=base.gmacs * area,
        activations_m=base.activations_m * area,
        stored_m=stored,
        depthwise_gmacs=depthwise,
    )
