"""What a split leaves out has no part in its prediction: a changed label changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from gpuwise.api.trust import bundled
from gpuwise.predict.fit import Design
from gpuwise.predict.gp import START
from gpuwise.predict.setting import Reading
from gpuwise.predict.splits import Bench, Raw, bench, card_folds, card_unknown, chip, family_known, workload_known

NAME = "ssd"


@cache
def small() -> Bench:
    """The rows of the table with many cards, without those of many networks."""
    full = bench(bundled(model=False))
    kept = [r for r in full.readings if (r.setting.software or "").startswith("ngc-")]
    return Bench(kept, full.basis, {q: rows for q, rows in full.questions.items() if q.workload == NAME})


def told(b: Bench, of: Callable[[Bench, Design, list[str]], list[Raw]]) -> dict[object, float]:
    cards = card_folds(b)[0]
    found = of(b, b.design(cards), cards)
    return {(r.split, r.question, r.reading.setting.accelerator.id, r.reading.setting.batch, r.source): r.log_rate
            for r in found}  # fmt: skip


def times_three(b: Bench, wrong: Callable[[Reading], bool]) -> Bench:
    def changed(r: Reading) -> Reading:
        return replace(r, samples_per_s=3 * r.samples_per_s) if wrong(r) else r

    questions = {q: [changed(r) for r in rows] for q, rows in b.questions.items()}
    return Bench([changed(r) for r in b.readings], b.basis, questions)


def test_the_rows_of_a_card_that_is_left_out_have_no_part_in_what_is_said_of_it() -> None:
    b = small()
    cards = set(card_folds(b)[0])
    wrong = times_three(b, lambda r: r.setting.accelerator.id in cards)
    for of in (
        lambda b, d, cards: list(card_unknown(b, d, [NAME], START, cards)),
        lambda b, d, cards: list(workload_known(b, d, START, cards)),
    ):
        right = told(b, of)
        assert right
        assert told(wrong, of) == pytest.approx(right, rel=1e-9)


def test_the_rows_of_a_workload_that_is_left_out_have_no_part_where_nothing_of_it_was_measured() -> None:
    b = small()

    def of(b: Bench, _design: Design, _cards: list[str]) -> list[Raw]:
        return [r for r in family_known(b, b.design(), [NAME], START) if r.split == "M"]

    right = told(b, of)
    assert right
    assert told(times_three(b, lambda r: r.setting.workload == NAME), of) == pytest.approx(right, rel=1e-9)


def test_a_chip_is_left_out_in_every_form_and_size_of_memory() -> None:
    folds = card_folds(bench(bundled(model=False)))
    cards = bundled(model=False).accelerators
    where = {card: place for place, fold in enumerate(folds) for card in fold}
    a100 = {where[name] for name in where if name.startswith("a100")}
    assert len(a100) == 1
    assert chip(cards["h200-sxm"]) == chip(cards["h100-pcie-80gb"]) == "H100"
