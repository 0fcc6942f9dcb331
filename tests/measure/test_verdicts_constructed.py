"""Verdicts on jobs whose truth is known, since it was put in: scripted accelerators, and a few real child processes.

`python -m benchmarks.verdicts` runs all of them on many seeds. Thresholds were set on seeds 0 to 99; the seeds here are
others.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.measure.scripted import CASES, outcome
from tests.measure.verdict_jobs import JOBS, measured, severity

from gpuwise.measure.verdict import judge

SEEDS = range(2000, 2005)
QUICK = ("loading between the steps", "pinned by a library")
"""Jobs whose verdict other work on the machine does not change, and which need no rights."""


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_scripted_run_is_never_judged_wrongly_and_hardly_ever_left_unknown(case):
    found = [outcome(case, judge(case.record(seed))) for seed in SEEDS]
    assert "wrong" not in found
    assert found.count("right") >= 4, found


@pytest.mark.skipif(sys.platform != "linux", reason="CPU affinities and /proc are those of Linux")
@pytest.mark.parametrize("job", [job for job in JOBS if job.name in QUICK], ids=QUICK)
def test_a_real_job_is_judged_by_what_was_put_into_it(job, tmp_path: Path):
    record = measured(job, severity(job, 2000), tmp_path / "record.json")
    found = judge(record)
    assert record.ending == "program ended", record.failure
    assert (found.kind in job.kinds, found.cause in job.causes) == (True, True), str(found.sentence)


def test_severities_are_the_same_for_one_seed_and_differ_between_two():
    for job in JOBS:
        assert severity(job, 7) == severity(job, 7)
        assert severity(job, 7) != severity(job, 8)
