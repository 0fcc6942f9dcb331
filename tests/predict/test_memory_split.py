"""How wrong memory at a batch that was left out is, over the bundled table; and that nothing leaks into it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpuwise.memory import MemoryReading
from gpuwise.predict.memory_split import left_out, memory_scores, verdicts
from gpuwise.predict.score import errors
from gpuwise.store import package

ROWS = package.memory()


def test_memory_at_a_batch_that_was_left_out_is_within_six_percent_on_average() -> None:
    found = errors(memory_scores(ROWS))
    assert found.n > 500
    assert found.mape_percent < 5.5
    assert found.median_percent < 4
    assert found.p90_percent < 12
    assert 75 < found.coverage_percent < 85
    assert found.mape_percent < found.naive["proportional"].mape_percent / 2


@pytest.mark.parametrize(("given", "most_percent"), [(1, 11.5), (2, 6.5)])
def test_one_batch_or_two_that_a_person_has_seen_tell_of_another(given: int, most_percent: float) -> None:
    scores = memory_scores(ROWS, given=given)
    assert {score.tags["k"] for score in scores} <= {str(k) for k in range(1, given + 1)}
    assert errors(scores).mape_percent < most_percent
    assert 75 < errors(scores).coverage_percent < 87


def test_shuffled_memory_cannot_be_told() -> None:
    """Each reading gets the memory of another of its group: what is left is that runs fill their cards."""
    chance = random.Random(7)
    mixed = {}
    for name, readings in ROWS.items():
        used = [r.used_gib for r in readings]
        chance.shuffle(used)
        mixed[name] = [replace(r, used_gib=gib) for r, gib in zip(readings, used, strict=True)]
    assert errors(memory_scores(mixed)).mape_percent > 40


def test_no_row_of_a_batch_is_seen_when_it_is_left_out() -> None:
    """Readings a hundred times too large change nothing of what their own batch is told to take."""

    def is_one(reading: MemoryReading) -> bool:
        return (reading.batch_per_accelerator, reading.software, reading.precision) == (32, "ngc-pytorch-1.4", "amp")

    rows = ROWS["bert_base_squad"]
    spoilt = [replace(r, used_gib=r.used_gib * 100) if is_one(r) else r for r in rows]
    before, after = (
        [told.need for told in left_out({"bert_base_squad": some}) if is_one(told.reading)] for some in (rows, spoilt)
    )
    assert before
    assert before == after


def test_few_questions_are_doubtful_and_no_run_that_ran_is_refused() -> None:
    found = verdicts(ROWS, package.accelerators(), package.assumptions())
    assert found.questions > 2500
    assert found.doubtful <= 0.25
    assert found.refused_wrongly <= 0.01
    assert found.fits_wrongly <= 0.01


def test_every_row_names_a_card_and_takes_no_more_than_it_has() -> None:
    cards = package.accelerators()
    for readings in ROWS.values():
        for reading in readings:
            assert 0 < reading.used_gib <= cards[str(reading.accelerator)].memory_gib
            assert reading.batch_per_accelerator >= 1
