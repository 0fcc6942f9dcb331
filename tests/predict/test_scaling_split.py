"""Split H by its own rules: the card that is scored is not in the fit, and what is shipped is what the fit gives."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median

import pytest

from gpuwise.model import BenchmarkResult
from gpuwise.predict.scaling import STEPS, Run, spread
from gpuwise.predict.scaling_fit import as_module, fit_factors, left_out, on_two, runs_of
from gpuwise.predict.scaling_fitted import FITTED
from gpuwise.predict.scaling_split import scaling_scores
from gpuwise.predict.score import Score, errors
from gpuwise.store import package

CARDS = ("A100 SXM4", "RTX A6000")
FEW = frozenset({"a100-sxm4-40gb", "a100-sxm4-80gb", "v100-sxm2-32gb", "h100-sxm5-80gb", "a100-pcie-40gb",
                 "rtx-a6000", "rtx-a4000"})  # fmt: skip
"""Of so many cards the fit is made in these tests, for speed."""


@pytest.fixture(scope="module")
def rows() -> tuple[BenchmarkResult, ...]:
    return package.throughput(frozenset(STEPS))


@pytest.fixture(scope="module")
def few(rows: tuple[BenchmarkResult, ...]) -> tuple[BenchmarkResult, ...]:
    return tuple(row for row in rows if row.accelerator in FEW)


@pytest.fixture(scope="module")
def scores(few: tuple[BenchmarkResult, ...]) -> list[Score]:
    return scaling_scores(few, package.accelerators(), only=CARDS)


def of(scores: list[Score], **tags: str) -> list[Score]:
    return [score for score in scores if all(score.tags[name] == value for name, value in tags.items())]


def test_nvlink_and_pcie_of_cards_that_the_fit_has_not_seen_are_told_far_better_than_by_perfect_scaling(
    scores: list[Score],
) -> None:
    for link, most in (("NVLink", 3.0), ("PCIe", 6.0)):
        found = errors(of(scores, link=link, own_two="no"))
        assert found.n > 50
        assert found.mape_percent is not None
        assert found.mape_percent < most
        assert found.mape_percent < 0.75 * (found.naive["perfect"].mape_percent or 0.0)


def test_one_run_on_two_tells_more_of_four_and_eight(scores: list[Score]) -> None:
    told = of(scores, own_two="yes")
    same = [s for s in of(scores, own_two="no") if s.tags["n"] != "2"]
    assert all(s.tags["n"] != "2" for s in told)
    assert (errors(told).mape_percent or 0) < (errors(same).mape_percent or 0)


def test_efficiencies_and_their_intervals_are_numbers_that_can_be(scores: list[Score]) -> None:
    for score in scores:
        assert score.predicted is not None
        assert score.low is not None
        assert score.high is not None
        assert 0 < score.low < score.predicted <= 1
        assert score.predicted < score.high


def test_rows_of_the_card_that_is_scored_change_nothing_in_its_scores(few: tuple[BenchmarkResult, ...]) -> None:
    def told(rate: float) -> list[float | None]:
        rows = [
            replace(row, samples_per_s=rate * row.samples_per_s)
            if row.accelerators > 1 and row.accelerator == "rtx-a6000"
            else row
            for row in few
        ]
        scores = scaling_scores(rows, package.accelerators(), only=["RTX A6000"])
        return [score.predicted for score in of(scores, own_two="no")]

    assert told(1.0) == told(0.8)


def test_shuffled_efficiencies_are_told_no_better_than_by_their_median(few: tuple[BenchmarkResult, ...]) -> None:
    runs = runs_of(few, package.accelerators())
    lost = [run.lost_log for run in runs]
    constant = sum(abs(value - median(lost)) for value in lost)
    random.Random(7).shuffle(lost)
    shuffled = [run._replace(lost_log=value) for run, value in zip(runs, lost, strict=True)]

    def error(given: list[Run]) -> float:
        return sum(abs(missed.log_error) for missed in left_out(given, "card") if missed.situation == "card")

    assert error(shuffled) > 0.95 * constant
    assert error(runs) < 0.7 * constant


def test_what_is_shipped_is_what_the_fit_gives(rows: tuple[BenchmarkResult, ...]) -> None:
    again = fit_factors(runs_of(rows, package.accelerators()))
    assert {name: FITTED[name] for name in again} == pytest.approx(again, abs=0.02)


def test_the_module_of_the_factors_reads_back_as_the_same_numbers() -> None:
    space: dict[str, object] = {}
    exec(as_module({"wait PCIe": -4.25, "share card bridge": 0.5}), space)
    assert space["FITTED"] == {"wait PCIe": -4.25, "share card bridge": 0.5}


def test_a_run_on_two_is_found_for_one_on_more_and_not_for_itself(rows: tuple[BenchmarkResult, ...]) -> None:
    runs = runs_of(rows, package.accelerators())
    two = next(run for run in runs if run.sharing.n == 2)
    assert on_two(two, runs) is None
    assert on_two(two._replace(sharing=two.sharing._replace(n=8)), runs) == two


def test_a_run_whose_batch_or_software_nobody_measured_on_one_is_left_out(rows: tuple[BenchmarkResult, ...]) -> None:
    alone = [row for row in rows if row.accelerators == 1][:40]
    foreign = [replace(row, accelerators=2, software="ngc-pytorch-9.9") for row in alone]
    assert runs_of([*alone, *foreign], package.accelerators()) == []


@pytest.mark.parametrize("link", ["NVLink", "PCIe", "PCIe, consumer", "PCIe, bridge"])
def test_more_devices_are_less_certain_and_so_is_a_workload_that_nobody_measured(link: str) -> None:
    def sd(situation: str, n: int) -> float:
        return spread(FITTED, situation, link, n, 0.95)

    assert sd("card", 8) > sd("card", 2)
    assert sd("workload", 4) > 0
