"""One job on several cards, and several jobs: what each added card brings."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.predict.scenes import JOB

from gpuwise.errors import Message
from gpuwise.estimate import Estimate
from gpuwise.model import Prediction, Refusal
from gpuwise.rank.several import Priced, several


def told(n: int, rate: float) -> Prediction:
    return Prediction(
        workload="job",
        platform="middle",
        accelerators=n,
        throughput_per_s=Estimate(value=rate, basis="predicted"),
        method="ratio",
        evidence=(),
        advice=Message("none"),
    )


def refused(n: int) -> Refusal:
    return Refusal(workload="job", platform="middle", accelerators=n, rule="x", reason=Message("too little memory"))


def priced(*answers: Prediction | Refusal) -> list[Priced]:
    return [Priced(prediction=answer, one_job=None, all_jobs=None) for answer in answers]


def test_each_added_card_brings_its_share_of_what_one_does_alone() -> None:
    rows = several(JOB, priced(told(1, 100), told(2, 190), told(4, 350), told(8, 340)))
    assert [row.added_fraction for row in rows] == [None, pytest.approx(0.9), pytest.approx(0.8), pytest.approx(-0.025)]


def test_as_many_jobs_as_cards_take_less_time_side_by_side_than_one_after_another() -> None:
    rows = several(JOB, priced(told(1, 100), told(4, 350)))
    assert rows[1].side_by_side_s == pytest.approx(JOB.total_samples / 100)
    assert rows[1].together_s == pytest.approx(4 * JOB.total_samples / 350)
    assert rows[0].together_s is None


def test_every_figure_that_is_missing_has_its_reason() -> None:
    for row in several(JOB, priced(refused(1), told(2, 190), refused(4), told(8, 700))):
        missing = [name for name in row.__slots__ if name != "reasons" and getattr(row, name) is None]
        assert set(missing) == set(row.reasons)


def test_a_job_of_unknown_length_has_no_time_on_any_number() -> None:
    rows = several(replace(JOB, undecided=("epochs",)), priced(told(1, 100), told(2, 190)))
    assert [row.time_s for row in rows] == [None, None]
    assert rows[1].added_fraction == pytest.approx(0.9)
    assert str(rows[1].reasons["time_s"]) == "nothing says how long the job is"
