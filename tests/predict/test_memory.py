"""The memory bound: it never excludes a run that really ran, and it does exclude what cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import ASSUMPTIONS, CARDS, JOB

from gpuwise.predict import does_not_fit, need_gib, usable_gib
from gpuwise.predict.memory import CONTEXT_GIB
from gpuwise.store import package


def test_the_bound_admits_every_measured_run_of_a_built_in_workload() -> None:
    """Those runs filled their cards on purpose: 8 to 192 GB, batches of 2 to 3,328."""
    cards, assumptions = package.accelerators(), package.assumptions()
    checked, excluded = 0, []
    for workload in package.workloads().values():
        for run in package.throughput(frozenset(workload.measured_as)):
            as_run = replace(workload, batch_per_accelerator=run.batch_per_accelerator, precision=run.precision)
            checked += 1
            if reason := does_not_fit(as_run, cards[run.accelerator], assumptions):
                excluded.append((run.workload, run.accelerator, str(reason)))
    assert checked > 400
    assert excluded == []


def test_three_times_the_batch_that_filled_a_card_does_not_fit() -> None:
    """BERT-base in fp32 filled an RTX 2080 Ti at batch 10; ResNet-50's fp32 runs filled theirs at 9 a GiB."""
    bert = replace(package.workloads()["bert-finetune"], precision="fp32", batch_per_accelerator=50)
    assert does_not_fit(bert, package.accelerators()["rtx-2080-ti"], package.assumptions()) is not None


def test_need_is_context_states_and_activations() -> None:
    job = replace(JOB, parameters_m=100.0, state_bytes_per_parameter=16.0, stored_m=10.0, batch_per_accelerator=32)
    assert need_gib(job) == pytest.approx(CONTEXT_GIB + (100e6 * 16 + 32 * 10e6 * 2) / 2**30)
    assert need_gib(replace(job, precision="fp32")) == pytest.approx(CONTEXT_GIB + (100e6 * 16 + 32 * 10e6 * 4) / 2**30)


@settings(deadline=None)
@given(st.integers(1, 2000), st.integers(1, 2000))
def test_a_larger_batch_needs_more(a: int, b: int) -> None:
    small, large = sorted((a, b))
    assert need_gib(replace(JOB, batch_per_accelerator=small)) <= need_gib(replace(JOB, batch_per_accelerator=large))


def test_what_the_driver_reports_is_used_where_it_is_known() -> None:
    card = replace(CARDS["middle"], usable_memory_gib=22.5)
    assert usable_gib(card, ASSUMPTIONS) == 22.5
    assert usable_gib(CARDS["middle"], ASSUMPTIONS) == pytest.approx(0.95 * 24)


def test_the_reason_states_both_figures() -> None:
    reason = str(does_not_fit(replace(JOB, batch_per_accelerator=512), CARDS["old"], ASSUMPTIONS))
    assert "needs at least" in reason
    assert "10.4 GiB usable" in reason
    assert "batch 512" in reason


def test_uc_058_a_job_that_fits_an_a100_may_not_fit_an_h100_of_the_same_nominal_size() -> None:
    """Real totals are 81,559 MiB (H100) and 81,920 MiB (A100 80 GB)."""
    a100 = replace(CARDS["large"], usable_memory_gib=81_920 / 1024)
    h100 = replace(CARDS["large"], usable_memory_gib=81_559 / 1024)
    states = 79.9 - CONTEXT_GIB
    job = replace(JOB, stored_m=0.001, parameters_m=states * 2**30 / 12 / 1e6)
    assert need_gib(job) == pytest.approx(79.9, rel=1e-4)
    assert does_not_fit(job, a100, ASSUMPTIONS) is None
    assert does_not_fit(job, h100, ASSUMPTIONS) is not None
