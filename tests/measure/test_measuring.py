"""The verbs of measuring, from request to answer: programs are really run, and what they did is really kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from datetime import date
from pathlib import Path

import pytest
from tests.measure.records import gpu_record

from gpuwise import api, faces
from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.measure import kept
from gpuwise.render.data import json_text
from gpuwise.request import MeasureRequest, RunsRequest
from gpuwise.store.runs import open_store

DAY = date(2026, 11, 30)
STEPS = """
    import sys, time
    from gpuwise.meter import Meter

    meter = Meter(samples=8)
    for step in range(int(sys.argv[1])):
        with meter.stage("wait"):
            time.sleep(0.002)
        with meter.stage("forward"):
            time.sleep(0.004)
        meter.step()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs are kept in the test's own folder."""
    monkeypatch.setenv("GPUWISE_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setattr(kept, "runs_folder", lambda: tmp_path / "runs")
    return tmp_path


@pytest.fixture
def program(tmp_path: Path):
    def write(text: str = STEPS) -> Path:
        file = tmp_path / "train.py"
        file.write_text(textwrap.dedent(text))
        return file

    return write


def measured(*command: str, **more: object):
    return api.measure(MeasureRequest(command=command, **more), today=DAY, tell=lambda message: None)


def test_a_program_is_run_and_kept_with_what_it_did(program) -> None:
    result = measured(sys.executable, str(program()), "120")
    record = result.record
    assert (record.status, record.ending) == ("finished", "program ended")
    assert record.pace is not None
    assert record.pace.samples_per_step == 8
    assert record.stages is not None
    assert 0.004 <= record.stages.forward_s < 0.02
    assert kept.find(str(result.run), open_store()) == record


def test_a_program_is_ended_after_the_steps_that_were_asked_for(program) -> None:
    result = measured(sys.executable, str(program()), "1000000", steps=150)
    assert (result.record.status, result.record.ending) == ("finished", "steps")
    assert result.record.pace.steps >= 100


def test_a_program_that_fails_has_its_last_line_and_exit_code_4(program) -> None:
    file = program("raise SystemExit('no such data: pictures/')")
    answer = faces.measure(MeasureRequest(command=(sys.executable, str(file))), today=DAY)
    assert answer.exit_code == 4
    assert "no such data: pictures/" in answer.result.record.failure
    assert answer.result.run is not None


def test_a_program_that_is_not_there_is_refused_and_nothing_is_kept() -> None:
    with pytest.raises(InvalidInput, match='no program "pyhton"'):
        measured("pyhton", "train.py")
    assert open_store().list() == ()
    assert not kept.runs_folder().exists()


def test_a_store_that_cannot_be_used_costs_the_keeping_and_not_the_answer(
    program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-store").write_text("this is no database, and long enough to be seen as none")
    monkeypatch.setenv("GPUWISE_STORE", str(tmp_path / "no-store"))
    told: list[Message] = []
    request = MeasureRequest(command=(sys.executable, str(program()), "60"))
    result = api.measure(request, today=DAY, tell=told.append)
    assert result.run is None
    assert result.record.pace is not None
    assert ["not kept" in str(warning) for warning in result.warnings] == [True]
    assert any("not kept" in str(line) for line in told)


def test_a_command_line_that_is_interrupted_keeps_the_run_and_ends_with_130(program, tmp_path: Path) -> None:
    environment = {**os.environ, "GPUWISE_STORE": str(tmp_path / "runs.sqlite3"), "XDG_DATA_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "gpuwise", "measure", "--json", "--", sys.executable, str(program()), "1000000"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while time.monotonic() < until and not any(tmp_path.glob("gpuwise/runs/*/*.marks")):
        time.sleep(0.1)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, _err = process.communicate(timeout=60)
    assert process.returncode == 130
    record = json.loads(out)["result"]["record"]
    assert (record["status"], record["ending"]) == ("interrupted", "interrupted")
    assert open_store().list()[0].payload["ending"] == "interrupted"


def test_runs_are_listed_newest_first_and_shown_again() -> None:
    numbers = [open_store().put(kept.run_of(gpu_record(sessions=n), "2026.11.30")) for n in (1, 2)]
    listed = api.runs(RunsRequest(action="list", limit=1), today=DAY)
    assert [number for number, _record in listed.runs] == [numbers[1]]
    assert listed.total == 2
    shown = api.runs(RunsRequest(action="show", names=(str(numbers[0]),)), today=DAY)
    assert shown.record == gpu_record(sessions=1)


def test_a_run_that_cannot_be_read_costs_its_line_and_not_the_list() -> None:
    store = open_store()
    broken = kept.run_of(gpu_record(), "2026.11.30")
    broken.payload["pace"]["steps"] = "many"
    store.put(broken)
    good = store.put(kept.run_of(gpu_record(), "2026.11.30"))
    listed = api.runs(RunsRequest(action="list"), today=DAY)
    assert [number for number, _record in listed.runs] == [good]
    assert "pace.steps" in str(listed.warnings[0])


def test_two_runs_are_compared_and_never_by_a_naked_difference() -> None:
    store = open_store()
    numbers = [store.put(kept.run_of(gpu_record(), "2026.11.30")) for _ in range(2)]
    compared = api.runs(RunsRequest(action="compare", names=tuple(map(str, numbers))), today=DAY)
    assert not compared.comparison.significant
    assert str(compared.comparison.sentence).startswith("Not significant")


def test_a_run_without_a_checkpoint_here_cannot_be_resumed() -> None:
    number = open_store().put(kept.run_of(gpu_record(folder=None), "2026.11.30"))
    with pytest.raises(InvalidInput, match="cannot be resumed"):
        api.measure(MeasureRequest(resume=str(number)), today=DAY, tell=lambda message: None)


def test_a_model_that_nobody_knows_is_refused_before_anything_runs() -> None:
    with pytest.raises(UnknownName, match="resnet3"):
        api.measure(MeasureRequest(workload="resnet3"), today=DAY, tell=lambda message: None)
    assert open_store().list() == ()


def nulls_without_reason(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict):
        own = [f"{path}.{k}" for k, v in value.items() if v is None and not value.get(f"{k}_reason")]
        return [*own, *(n for k, v in value.items() for n in nulls_without_reason(v, f"{path}.{k}"))]
    return [n for inner in value for n in nulls_without_reason(inner, path)] if isinstance(value, list) else []


def test_every_verb_of_runs_has_a_document_whose_nulls_have_reasons() -> None:
    store = open_store()
    names = tuple(str(store.put(kept.run_of(gpu_record(), "2026.11.30"))) for _ in range(2))
    for request in (
        RunsRequest(action="list"),
        RunsRequest(action="show", names=names[:1]),
        RunsRequest(action="compare", names=names),
    ):
        answer = faces.runs(request, today=DAY)
        document = json.loads(json_text(answer.json()))
        assert document["schema"] == 1
        assert nulls_without_reason(document["result"]) == []
        assert answer.page().blocks
        assert answer.table().rows


def test_data_that_cannot_be_used_is_one_error_and_leaves_no_run(tmp_path: Path) -> None:
    (tmp_path / "pictures" / "alone").mkdir(parents=True)
    (tmp_path / "pictures" / "alone" / "a.jpg").write_bytes(b"no picture")
    request = MeasureRequest(workload="resnet18", data=str(tmp_path / "pictures"), steps=2, no_limits=True)
    with pytest.raises(InvalidInput, match="two"):
        api.measure(request, today=DAY, tell=lambda message: None)
    assert open_store().list() == ()


def test_a_folder_that_is_not_there_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidInput, match="there is nothing"):
        api.measure(MeasureRequest(workload="resnet18", data="nowhere"), today=DAY, tell=lambda message: None)


def test_a_run_is_not_compared_with_itself() -> None:
    number = str(open_store().put(kept.run_of(gpu_record(), "2026.11.30")))
    with pytest.raises(InvalidInput, match=f"Run {number} is there twice"):
        api.runs(RunsRequest(action="compare", names=(f"{number},{number}", "2")), today=DAY)
