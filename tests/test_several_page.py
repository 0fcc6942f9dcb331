"""`explain --on`: a table of 1, 2, 4 and 8 of a GPU, and machines with different ones (the whole way down)."""

from __future__ import annotations

from datetime import date

import pytest

from gpuwise import faces
from gpuwise.api.jobs import Explained
from gpuwise.api.world import platforms
from gpuwise.errors import InvalidInput
from gpuwise.faces.answer import Answer
from gpuwise.model import Prediction
from gpuwise.request import ExplainRequest
from gpuwise.view.page import Table

DAY = date(2026, 11, 30)


def asked(on: str) -> Answer:
    return faces.explain(ExplainRequest(workload="painter-heavy", on=on), today=DAY)


def table(answer: Answer, title: str) -> Table | None:
    return next((b for b in answer.page().blocks if isinstance(b, Table) and b.title == title), None)


@pytest.fixture(scope="module")
def three() -> Answer:
    return asked("A100 80GB SXM:3")


def test_1_2_4_8_and_the_number_asked_about_are_compared(three: Answer) -> None:
    found = table(three, "Several of them")
    assert found is not None
    assert [row[0].value for row in found.rows] == [1, 2, 3, 4, 8]


def test_no_card_brings_more_than_a_card_and_more_cards_bring_more(three: Answer) -> None:
    shares = [row.added_fraction for row in three.result.several[1:]]
    assert all(share is not None and 0 < share <= 1 for share in shares)


def test_a_number_that_nobody_offers_has_no_bill_and_a_reason(three: Answer) -> None:
    found = table(three, "Several of them")
    assert found is not None
    missing = [row for row in three.result.several if row.candidate is None]
    for row in missing:
        assert "candidate" in row.reasons
        assert any(str(row.accelerators) in note and "no offer" in note for note in found.notes)


def test_bills_are_those_of_the_cheapest_offer_with_just_so_many(three: Answer) -> None:
    for row in three.result.several:
        if row.candidate:
            assert row.candidate.offer.accelerators == row.accelerators


def test_as_many_jobs_as_cards_are_never_slower_side_by_side(three: Answer) -> None:
    assert table(three, "As many jobs as cards") is not None
    for row in three.result.several[1:]:
        assert row.side_by_side_s <= row.together_s


def test_the_document_has_the_same_figures_and_a_reason_beside_each_null(three: Answer) -> None:
    rows = three.json()["result"]["several"]
    assert [row["accelerators"] for row in rows] == [1, 2, 3, 4, 8]
    for row, value in zip(rows, three.result.several, strict=True):
        assert row["throughput_per_s"]["value"] == value.prediction.throughput_per_s.value
        assert all(f"{name}_reason" in row for name, figure in row.items() if figure is None)


def test_several_variants_have_no_table_of_numbers() -> None:
    assert table(asked("A100"), "Several of them") is None


def test_uc_061_both_gpus_of_a_mixed_machine_are_named_and_the_smaller_memory_counts() -> None:
    answer = asked("RTX 3090 + GTX 1080 Ti")
    explained: Explained = answer.result
    (said,) = explained.answers
    assert isinstance(said, Prediction)
    assert said.memory is not None
    assert said.memory.usable_gib < 11.1
    assert "RTX 3090 + GTX 1080 Ti in one machine" in str(answer.page().blocks[0])
    assert "RTX 3090 + GeForce GTX 1080 Ti alone" in str(said.advice)
    slow = asked("GTX 1080 Ti:2").result.answers[0]
    assert said.throughput_per_s.value == pytest.approx(slow.throughput_per_s.value)


def test_uc_061_counts_in_a_mixed_machine_add_up() -> None:
    (found,), _notes = platforms("RTX 3090:2 + GTX 1080 Ti")
    assert (found.accelerators, found.mixed, found.name) == (3, True, "rtx-3090+gtx-1080-ti")


def test_one_gpu_named_twice_is_a_machine_with_two() -> None:
    (found,), _notes = platforms("RTX 3090 + RTX 3090")
    assert (found.accelerators, found.mixed) == (2, False)


def test_a_name_of_several_gpus_is_refused_in_a_mixed_machine() -> None:
    with pytest.raises(InvalidInput, match="stands for several GPUs"):
        platforms("A100 80GB + GTX 1080 Ti")
