"""The measured rows that are nearest to a question: of the job itself, else of networks like it on cards like this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

from gpuwise.model import Accelerator, BenchmarkResult, Workload
from gpuwise.predict.cells import canonical, runnable
from gpuwise.predict.evidence import kind
from gpuwise.predict.roofline import Work, arithmetic, rates, work_of
from gpuwise.predict.rows import work

OTHER_CARD, OTHER_FAMILY, OTHER_ARITHMETIC, OTHER_ARCHITECTURE = 1.0, 2.0, 1.0, 1.0
"""How far a row is for each of these, where a factor e in one count is 1."""


class Near(NamedTuple):
    """A measured row, whether it is of the job itself, and how far it is."""

    row: BenchmarkResult
    own: bool
    distance: float


def nearest(
    workload: Workload,
    accelerator: Accelerator,
    rows: Iterable[BenchmarkResult],
    accelerators: Mapping[str, Accelerator],
    counts: Mapping[str, Work],
    most: int = 5,
) -> Sequence[Near]:
    """The nearest rows of one device in this mode, the job's own first where there are some; one a network and card."""
    names = {canonical(name) for name in (workload.name, *workload.measured_as)}
    found: dict[tuple[str, str], Near] = {}
    for row in (r for r in rows if r.accelerators == 1 and r.mode == workload.mode):
        key = canonical(row.workload), row.accelerator
        own = key[0] in names
        distance = _distance(workload, accelerator, row, accelerators[row.accelerator], None if own else counts)
        if distance is not None and (key not in found or distance < found[key].distance):
            found[key] = Near(row, own, distance)
    return sorted(found.values(), key=lambda near: (not near.own, near.distance, near.row.workload))[:most]


def _distance(
    workload: Workload,
    target: Accelerator,
    row: BenchmarkResult,
    card: Accelerator,
    counts: Mapping[str, Work] | None,
) -> float | None:
    """counts: None if the row is of the job itself. None where its network is not counted."""
    far = 0.0
    if counts is not None:
        counted = work(row.workload, counts)
        if counted is None:
            return None
        far = _apart(work_of(workload), counted) + OTHER_FAMILY * (kind(row.family) != kind(workload.family))
    far += abs(log(row.batch_per_accelerator / workload.batch_per_accelerator)) / 2
    far += OTHER_ARITHMETIC * (arithmetic(row.precision, card) != arithmetic(workload.precision, target))
    return far + _cards_apart(target, card)


def _apart(a: Work, b: Work) -> float:
    return abs(log(a.gmacs / b.gmacs)) + abs(log(a.activations_m / b.activations_m))


def _cards_apart(a: Accelerator, b: Accelerator) -> float:
    """By architecture and data sheet."""
    if a.id == b.id:
        return 0.0
    far = OTHER_CARD + OTHER_ARCHITECTURE * (a.architecture != b.architecture)
    if not (runnable(a, "amp") and runnable(b, "amp")):
        return far + OTHER_CARD
    here, there = rates(a, "amp"), rates(b, "amp")
    assert here is not None
    assert there is not None
    peak, bandwidth = here.peak_tflops / there.peak_tflops, here.bandwidth_gb_per_s / there.bandwidth_gb_per_s
    return far + abs(log(peak)) / 2 + abs(log(bandwidth)) / 2
