"""From the command line to the page: when training ends, what feeds it, and what a job of unknown length is told."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from gpuwise import api, faces
from gpuwise.errors import DataError, InvalidInput, MissingEvidence
from gpuwise.model import Measurement
from gpuwise.render.data import plain
from gpuwise.render.text import text
from gpuwise.render.toml import workload_toml
from gpuwise.request import ExplainRequest, RankRequest, parse
from gpuwise.sources import file
from gpuwise.workloads import of_run
from tests.measure.records import MEASUREMENT

DAY = date(2026, 11, 30)
OWN = replace(MEASUREMENT, workload="train.py", family="cnn", epochs=None, samples=None, decode_s=None)
CURVE = tuple(1 - 0.2 - 0.6 * (e + 2) ** -0.7 for e in range(12))

WORKLOAD = """
family = "cnn"
sample = "image"
gmacs = 4.09
activations_m = 11.11
parameters_m = 25.557
batch_per_accelerator = 256
precision = "amp"
"""


@pytest.fixture
def run(tmp_path: Path):
    def write(measurement: Measurement) -> str:
        path = tmp_path / "run.json"
        path.write_text(json.dumps(plain(measurement)), "utf-8")
        return str(path)

    return write


@pytest.fixture
def job(tmp_path: Path):
    def write(*more: str) -> str:
        path = tmp_path / "own.toml"
        path.write_text(WORKLOAD + "\n".join(more), "utf-8")
        return str(path)

    return write


def asked(**said: object) -> RankRequest:
    return parse(RankRequest, {"workloads": ["painter-light"], **said})


def page(request: RankRequest | ExplainRequest) -> str:
    answer = faces.rank(request, today=DAY) if isinstance(request, RankRequest) else faces.explain(request, today=DAY)
    return text(answer.page(), width=160)


# ---- what can be said ----


def test_early_stopping_is_said_as_least_most_and_patience() -> None:
    assert asked(early_stop="5 .. 100 : 10").early_stop_epochs == (5, 100, 10)
    assert asked(early_stop="0.5..3:1").early_stop_epochs == (0.5, 3, 1)


@pytest.mark.parametrize("wrong", ["5..100", "100..5:2", "5..10:20", "five..ten:2", "5..10:0", "5"])
def test_a_rule_of_early_stopping_that_nobody_can_follow_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="--early-stop"):
        asked(early_stop=wrong)


@pytest.mark.parametrize(
    "ends",
    [
        {"epochs": "3", "target-accuracy": "76%"},
        {"epochs": "3", "early-stop": "1..9:2"},
        {"target-accuracy": "76%", "early-stop": "1..9:2"},
    ],
)
def test_training_ends_in_one_way(ends: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="exclude each other"):
        asked(**ends)


def test_a_target_without_any_evidence_is_refused_with_what_would_be_some() -> None:
    with pytest.raises(MissingEvidence, match="Nothing says how many epochs painter-light needs") as caught:
        api.rank(asked(target_accuracy="80%"), today=DAY)
    assert "--measured" in str(caught.value.hint)
    assert "resnet50-imagenet" in str(caught.value.hint)


# ---- what a person sees ----


def test_the_page_tells_time_as_p10_p50_and_p90_and_why() -> None:
    said = page(asked(early_stop="5..100:10", gpu="T4", limit="3"))
    assert "(P10 " in said
    assert "Ranges are P10 to P90, the value is P50." in said
    assert "when accuracy stops growing: 5 to 100 epochs, patience 10" in said
    assert "nothing says when accuracy stops growing" in said


def test_explain_names_p10_p50_and_p90_and_the_error_of_the_epochs() -> None:
    said = page(parse(ExplainRequest, {"workload": "painter-light", "early-stop": "5..100:10", "gpu": "T4"}))
    assert "Time, P10 / P50 / P90" in said
    assert "epochs to target ×/÷" in said


def test_a_known_task_needs_no_run_and_its_epochs_grow_with_the_gpus(job) -> None:
    name = job("samples = 1_281_167", 'task = "resnet50-imagenet"', "target_fraction = 0.759")
    ranking = api.rank(parse(RankRequest, {"workloads": [name], "gpu": "H100", "limit": "all"}), today=DAY).ranking
    (workload,) = ranking.workloads
    assert workload.stop is not None
    assert workload.epochs == pytest.approx(35, rel=0.02)
    assert workload.accuracy_fraction == 0.759
    assert ranking.candidates


def test_a_recorded_curve_is_continued_to_the_target(run) -> None:
    measured = run(replace(MEASUREMENT, epochs=None, curve_fraction=CURVE))
    (workload,) = api.rank(asked(measured=[measured], target_accuracy="74%"), today=DAY).ranking.workloads
    assert workload.stop is not None
    assert workload.stop.p10_epochs <= 25.8 <= workload.stop.p90_epochs
    assert "cut off as warm-up" in str(workload.stop.notes[0])


def test_uc_060_the_page_says_that_there_is_no_p90_and_how_many_runs_failed(job) -> None:
    name = job("samples = 100_000", "target_fraction = 0.8", "reached_epochs = [61.0, 63.0]", "failed_runs = 1")
    said = page(parse(RankRequest, {"workloads": [name], "gpu": "T4", "limit": "3"}))
    assert "P90 more than" in said
    assert "1 of 3 runs never got there: they count as infinite" in said
    assert "–>" in said, "the interval of a time has no upper end"


# ---- no length ----


def test_uc_050_a_run_that_does_not_say_how_long_the_job_is_gets_no_total(run) -> None:
    request = parse(RankRequest, {"measured": [run(OWN)], "limit": "5"})
    said = page(request)
    assert "Duration unknown, so no totals." in said
    assert "USD a million samples" in said
    assert "USD for 1,000 steps" in said
    assert "1,000,000" not in said
    table = said.split("Offers\n")[1].split("What this assumes")[0]
    assert "Time," not in table
    assert "Cost," not in table


def test_uc_050_the_json_holds_null_and_why_in_place_of_totals(run) -> None:
    answer = faces.rank(parse(RankRequest, {"measured": [run(OWN)], "limit": "1"}), today=DAY).json()
    (first, *_rest) = answer["result"]["candidates"]
    assert first["time_s"] is None
    assert first["cost_usd"] is None
    assert "duration unknown" in first["cost_usd_reason"]
    assert first["usd_per_million_samples"]["value"] > 0


def test_uc_050_with_samples_and_epochs_there_is_a_total(run) -> None:
    said = {"measured": [run(OWN)], "limit": "1", "samples": "50000", "epochs": "10"}
    (best, *_rest) = api.rank(parse(RankRequest, said), today=DAY).ranking.candidates
    assert best.time_s is not None
    assert best.usd_per_million_samples is None


def test_uc_050_explain_tells_no_time_either(job) -> None:
    said = page(ExplainRequest(workload=job(), gpu=("T4",)))
    assert "duration unknown" in said
    assert "for the whole job" not in said


@pytest.mark.parametrize("limit", [{"deadline": "2h"}, {"budget": "5 USD"}])
def test_uc_050_a_limit_has_nothing_to_hold_against(run, limit: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=r"nothing says how long train\.py is"):
        api.rank(parse(RankRequest, {"measured": [run(OWN)], **limit}), today=DAY)


def test_a_workload_without_a_length_is_written_without_one_and_read_back(tmp_path: Path) -> None:
    counted = of_run(OWN)
    path = tmp_path / "train.toml"
    path.write_text(workload_toml(counted), "utf-8")
    again = file.workload(path)
    assert "samples = 1" not in path.read_text("utf-8")
    assert again.undecided == counted.undecided == ("samples", "epochs")


def test_early_stopping_in_a_file_has_to_be_possible(job) -> None:
    with pytest.raises(DataError, match="early_stop can never be followed"):
        file.workload(Path(job("[early_stop]", "least_epochs = 9", "most_epochs = 5", "patience_epochs = 2")))


# ---- the host ----


def test_uc_051_the_loading_time_of_ones_own_run_caps_offers_and_the_page_says_so(run) -> None:
    measured = run(replace(MEASUREMENT, device="cpu", accelerator=None, samples_per_s=None, decode_s=0.030))
    said = page(asked(measured=[measured], gpu="T4", limit="8"))
    assert "CPU limits this offer" in said
    assert "30.0 ms of one CPU a sample, as measured" in said


def test_without_a_measured_loading_time_the_page_says_that_times_hold_only_if_images_come_fast_enough() -> None:
    assert "the times hold only if the CPUs load images fast enough" in page(asked(gpu="T4", limit="2"))


def test_uc_057_a_program_measured_on_x86_is_not_sent_to_an_arm_host(run) -> None:
    request = {"limit": "all", "gpu": "GH200"}
    free = api.rank(parse(RankRequest, {"measured": [run(OWN)], **request}), today=DAY).ranking
    built = replace(OWN, machine={"system": "Linux 6.1 x86_64"})
    bound = api.rank(parse(RankRequest, {"measured": [run(built)], **request}), today=DAY).ranking
    assert free.candidates
    assert not bound.candidates
    assert bound.counts["cpu_architecture"] == len(free.candidates)
