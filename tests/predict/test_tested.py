"""Splits become figures, figures become a file and come back, and a situation finds the test that is like it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.scoring import TABLES, shifted, splits

from gpuwise.predict.accuracy import ABOUT, MORE, ids, registry, result, worst_coverage
from gpuwise.predict.score import Errors, Score, errors
from gpuwise.predict.tables import Draw
from gpuwise.predict.tested import Result, Table, document, in_tests, parse


def found(name: str, median: float, p90: float) -> Result:
    return Result(id=name, errors=Errors(n=50, mape_percent=median, median_percent=median, p90_percent=p90))


RESULTS = {name: found(name, 10.0 * n, 20.0 * n) for n, name in enumerate("ABCFM", 1)}


def test_110_100_and_80_where_100_was_measured_are_a_mape_of_ten_per_cent() -> None:
    scores = [Score(truth=100.0, predicted=value, low=90.0, high=112.0) for value in (110.0, 100.0, 80.0)]
    told = errors([*scores, Score(truth=100.0, predicted=None)])
    assert (told.mape_percent, told.median_percent) == pytest.approx((10.0, 10.0))
    assert (told.n, told.refused, told.coverage_percent) == (3, 1, 100.0)


def test_a_split_is_told_as_a_whole_by_each_tag_and_beside_the_naive_rules() -> None:
    told = result(splits(A=shifted(0.1, sd=0.0))["A"], TABLES)
    assert told.errors.mape_percent == pytest.approx(10.0)
    assert told.errors.naive["peak"].mape_percent == pytest.approx(50.0)
    assert told.groups["family"].keys() == {"cnn", "transformer"}
    assert "k" not in told.groups, "a tag with one value parts nothing"


def test_a_draw_scores_so_many_questions_and_the_same_ones_for_the_same_seed() -> None:
    split = splits(A=shifted(0.1))["A"]
    first, again, other = (result(split, TABLES, Draw(most=7, seed=seed)) for seed in (3, 3, 4))
    assert first.errors.n == 7
    assert first == again
    assert first.errors.mape_percent != other.errors.mape_percent


def test_the_worst_group_is_one_with_enough_rows() -> None:
    inside = Score(truth=100.0, predicted=100.0, low=90.0, high=110.0, tags={"k": "0"})
    outside = replace(inside, truth=200.0, tags={"k": "1"})
    few = [inside] * 30 + [outside] * 29
    assert worst_coverage(TABLES, few) == {"worst_group_coverage_percent": 100.0}
    assert worst_coverage(TABLES, [*few, outside]) == {"worst_group_coverage_percent": 0.0}
    assert worst_coverage(TABLES, [inside]) == {}


def test_a_split_tells_its_further_figures() -> None:
    told = result(splits(I=shifted(0.0))["I"], TABLES)
    assert told.more == {"worst_group_coverage_percent": 100.0}


def test_a_table_comes_back_from_its_file_as_it_was_with_two_decimals() -> None:
    one = result(splits(I=shifted(0.1, sd=0.0))["I"], TABLES)
    table = Table(data_version="2026.11.30", computed="2026-11-30", results={"I": one})
    back = parse(json.loads(json.dumps(document(table))))
    assert document(back) == document(table)
    assert back.results["I"].errors.mape_percent == pytest.approx(10.0)
    assert back.results["I"].groups["family"]["cnn"].naive["peak"].n == 20


@pytest.mark.parametrize(
    ("measured", "card_known", "split"),
    [(0, True, "M"), (1, True, "A"), (2, True, "A"), (5, True, "B"), (0, False, "F"), (1, False, "C"), (3, False, "C")],
)
def test_a_situation_finds_the_split_that_is_like_it(measured: int, card_known: bool, split: str) -> None:
    told = in_tests(RESULTS, measured=measured, card_known=card_known)
    assert told is not None
    assert told.split == split
    assert f"(split {split} of gpuwise accuracy)" in str(told.sentence)


def test_the_sentence_says_half_and_nine_of_ten() -> None:
    told = in_tests({"M": found("M", 9.6, 24.4)}, measured=0, card_known=True)
    assert str(told and told.sentence) == (
        "In tests with nothing measured, the workload left out and the card in the tables, half of the predictions "
        "were within 10 %, nine of ten within 24 % (split M of gpuwise accuracy)."
    )


def test_several_measured_gpus_are_told_by_one_where_nobody_tested_several() -> None:
    told = in_tests({"A": RESULTS["A"]}, measured=4, card_known=True)
    assert told is not None
    assert told.split == "A"
    assert "one GPU measured" in str(told.situation)


@pytest.mark.parametrize("results", [{}, {"M": Result(id="M", errors=Errors(n=0))}, {"A": RESULTS["A"]}])
def test_a_situation_that_nobody_tested_is_not_told(results: dict[str, Result]) -> None:
    assert in_tests(results, measured=0, card_known=True) is None


def test_the_registry_holds_the_splits_that_can_be_scored_in_their_order() -> None:
    made = registry({"M": shifted(0.1), "A": shifted(0.1)})
    assert list(made) == ["A", "M"]
    assert ids(["M", "C", "A"]) == ("A", "C", "M")
    assert {about.id for about in ABOUT} == set("ABCDEFGHIJKLMU")
    assert MORE.keys() <= {about.id for about in ABOUT}


def test_a_workload_of_the_tables_has_a_split_of_its_own_on_a_new_card_and_none_on_theirs() -> None:
    results = dict.fromkeys("ACFLM", RESULTS["A"])
    new = in_tests(results, measured=0, card_known=False, in_tables=True)
    assert new is not None
    assert new.split == "L"
    assert in_tests(results, measured=0, card_known=True, in_tables=True) is None
