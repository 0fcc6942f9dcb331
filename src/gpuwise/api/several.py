"""So many cards of the GPU that `explain` is asked about: predictions, and the cheapest offers with each number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuwise.api.world import World
from gpuwise.model import Candidate, Platform, Workload
from gpuwise.rank import GpuFilter, rank
from gpuwise.rank.several import NUMBERS, Priced, Several, several
from gpuwise.request import RankRequest
from gpuwise.units import Range


def several_of(wanted: RankRequest, world: World, workload: Workload, asked: Platform) -> tuple[Several, ...]:
    """On 1, 2, 4, 8 and as many as asked about. wanted: which offers count, for one job."""
    numbers = sorted({*NUMBERS, asked.accelerators})
    platforms = [replace(asked, per_node=n) for n in numbers]
    answers = world.context.predict(workload, platforms)
    single = replace(wanted, jobs=1, limit=1)
    return several(
        workload,
        (
            Priced(
                prediction=answer,
                one_job=next(_cheapest(single, world, workload, platform), None),
                all_jobs=next(_cheapest(replace(single, jobs=n), world, workload, platform), None) if n > 1 else None,
            )
            for n, platform, answer in zip(numbers, platforms, answers, strict=True)
        ),
    )


def _cheapest(wanted: RankRequest, world: World, workload: Workload, platform: Platform) -> Iterator[Candidate]:
    """The best offer with just so many of it, if there is one with a bill."""
    number, ids = float(platform.accelerators), frozenset(v.id for v in platform.variants)
    wish = GpuFilter(names=((ids, Range(low=number, high=number, kind="count")),))
    found = rank(world.offers, [workload], wanted, replace(world.context, gpu=wish)).candidates
    return (candidate for candidate in found if candidate.cost_usd is not None)
