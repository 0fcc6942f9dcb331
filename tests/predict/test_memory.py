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


HELD = [  # family, precision, bytes a parameter beside the states, bytes an element held
    ("cnn", "amp", 2, 2.0),
    ("transformer", "amp", 2, 2.5),
    ("transformer", "bf16", 0, 2.0),
    ("cnn", "fp32", 0, 4.0),
    ("transformer", "tf32", 0, 4.0),
]


@pytest.mark.parametrize(("family", "precision", "copies", "each"), HELD, ids=[f"{h[0]} {h[1]}" for h in HELD])
def test_need_is_context_states_and_what_is_held(family: str, precision: str, copies: float, each: float) -> None:
    job = replace(
        JOB, family=family, precision=precision, parameters_m=100.0, state_bytes_per_parameter=16.0, stored_m=10.0,
        batch_per_accelerator=32,
    )  # fmt: skip
    assert need_gib(job) == pytest.approx(CONTEXT_GIB + (100e6 * (16 + copies) + 32 * 10e6 * each) / 2**30)


TOO_SMALL = [  # 12 sequences of 1,024 tokens: 1.9 GiB of states, 7 GiB held, 1.2 GiB of logits among them
    ("gpt", "rtx-3070"),
    ("gpt", "gtx-1080"),
    ("bert-finetune", "gtx-1660"),
]


@pytest.mark.parametrize(("workload", "card"), TOO_SMALL)
def test_a_job_that_surely_cannot_fit_is_excluded(workload: str, card: str) -> None:
    job, cards = package.workloads()[workload], package.accelerators()
    assert does_not_fit(job, cards[card], package.assumptions()) is not None


@pytest.mark.parametrize("card", ["rtx-3090", "t4", "v100-sxm2-16gb", "a10"])
def test_gpt_2_fits_cards_on_which_people_train_it(card: str) -> None:
    assert does_not_fit(package.workloads()["gpt"], package.accelerators()[card], package.assumptions()) is None


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
    job = replace(JOB, precision="fp32", stored_m=0.0005, parameters_m=states * 2**30 / 12 / 1e6)
    assert need_gib(job) == pytest.approx(79.9, rel=1e-4)
    assert does_not_fit(job, a100, ASSUMPTIONS) is None
    assert does_not_fit(job, h100, ASSUMPTIONS) is not None
