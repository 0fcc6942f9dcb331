"""Threads and loader workers of a job that computes on the CPU: no core is left idle."""

from __future__ import annotations

import pytest

from gpuwise.measure.job import Job
from gpuwise.measure.plan import plan


def on_cpu(job: Job, cpus: float, cpus_a_core: float = 1.0, world: int = 1) -> tuple[int, int]:
    """(workers, threads)."""
    settled = plan(job, accelerated=False, samples=200, cpus=cpus, cpus_a_core=cpus_a_core, world=world)
    return settled.workers, settled.threads


@pytest.mark.parametrize("cpus_a_core", [1.0, 2.0])
def test_on_two_cpus_the_network_has_both_whatever_a_core_is(cpus_a_core: float) -> None:
    assert on_cpu(Job(), 2, cpus_a_core) == (0, 2)


@pytest.mark.parametrize(
    ("workers", "cpus", "threads"), [(1, 2, 1), (2, 2, 1), (4, 4, 2), (1, 4, 3), (8, 4, 2), (3, 3, 2), (0, 8, 8)]
)
def test_workers_take_threads_and_leave_at_least_half_of_the_cpus(workers: int, cpus: float, threads: int) -> None:
    assert on_cpu(Job(workers=workers), cpus)[1] == threads


def test_workers_first_take_the_second_threads_of_the_cores() -> None:
    assert on_cpu(Job(workers=4), 16, cpus_a_core=2) == (4, 8)
    assert on_cpu(Job(workers=12), 16, cpus_a_core=2) == (12, 8)


def test_a_fraction_of_a_cpu_still_has_a_thread() -> None:
    assert on_cpu(Job(), 0.5) == (0, 1)


def test_processes_share_the_cpus() -> None:
    assert on_cpu(Job(), 8, world=4) == (0, 2)
