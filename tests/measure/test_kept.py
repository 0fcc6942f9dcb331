"""What is kept of a run: the same value comes back, from store and file, and what is no record is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.measure.records import gpu_record

from gpuwise.errors import DataError, GpuwiseError, InvalidInput, UnknownName
from gpuwise.measure import kept
from gpuwise.measure.record import Cpus, Host, Record, Setup
from gpuwise.store.runs import Run, open_store


@pytest.fixture
def store(tmp_path: Path):
    return open_store(str(tmp_path / "runs.sqlite3"))


def test_a_full_record_comes_back_from_the_store_as_it_was(store) -> None:
    record = gpu_record()
    number = store.put(kept.run_of(record, "2026.11.30"))
    assert kept.find(str(number), store) == record


def test_a_record_of_a_run_that_saw_nothing_comes_back_too(store) -> None:
    bare = Record(
        created_utc="2026-11-30T10:00:00Z",
        setup=Setup(workload="train.py", command=("python", "train.py")),
        host=Host(system="Linux", cpus=Cpus(host=2, allowed=1.5)),
        reasons={"pace": "no step was marked"},
    )
    assert kept.find(str(store.put(kept.run_of(bare, "2026.11.30"))), store) == bare


def test_a_newer_state_takes_the_place_of_an_older_one(store) -> None:
    number = store.put(kept.run_of(gpu_record(status="running", ending=None), "2026.11.30"))
    store.replace(number, kept.run_of(gpu_record(), "2026.11.30"))
    assert [kept.record_of(run).status for run in store.list()] == ["finished"]


def test_a_file_and_a_number_name_the_same_run(store, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(kept.payload(gpu_record())))
    number = store.put(kept.run_of(gpu_record(), "2026.11.30"))
    assert kept.find(str(file), store) == kept.find(str(number), store)


def test_a_file_whose_name_is_a_number_is_a_file(store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("7").write_text(json.dumps(kept.payload(gpu_record(sessions=3))))
    assert kept.find("7", store).sessions == 3


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("", DataError, "line 1"),
        ("{", DataError, "line 1"),
        ("[]", DataError, "kind"),
        ('{"kind": "measurement"}', DataError, "kind"),
        ('{"kind": "run", "setup": {}}', DataError, "created_utc"),
    ],
)
def test_what_is_no_record_is_refused_with_the_place(
    store, tmp_path: Path, text: str, error: type[GpuwiseError], says: str
) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(error, match=says):
        kept.find(str(file), store)


def test_a_record_with_an_impossible_field_is_refused_by_its_name(store, tmp_path: Path) -> None:
    broken = kept.payload(gpu_record())
    broken["pace"]["steps"] = "many"
    file = tmp_path / "run.json"
    file.write_text(json.dumps(broken))
    with pytest.raises(DataError, match=r"pace\.steps"):
        kept.find(str(file), store)


def test_a_missing_file_and_a_missing_number_are_told_apart(store) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.json cannot be read"):
        kept.find("nowhere.json", store)
    with pytest.raises(UnknownName, match="no run 99"):
        kept.find("99", store)


def test_an_answer_of_another_verb_is_no_measurement(store) -> None:
    number = store.put(Run(kind="rank", schema=1, created_utc="x", data_version="y", workload="z", payload={}))
    with pytest.raises(UnknownName, match="answer to rank"):
        kept.find(str(number), store)
