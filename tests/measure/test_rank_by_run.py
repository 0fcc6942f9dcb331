"""`rank --measured`: what a run says of the job, and that a CPU run never says how fast a GPU is."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.measure.records import MEASUREMENT, gpu_record

from gpuwise import api, faces
from gpuwise.errors import DataError, InvalidInput
from gpuwise.measure import kept
from gpuwise.model import Measurement
from gpuwise.request import RankRequest
from gpuwise.store import package
from gpuwise.store.runs import open_store
from gpuwise.workloads import as_measured, of_run

DAY = date(2026, 11, 30)
CPU = replace(MEASUREMENT, device="cpu", accelerator=None, samples_per_s=None)


@pytest.fixture
def written(tmp_path: Path):
    def write(measurement: Measurement | None, name: str = "run.json", **more: object) -> str:
        file = tmp_path / name
        file.write_text(json.dumps(kept.payload(gpu_record(measurement=measurement, **more))))
        return str(file)

    return write


def ranked(*measured: str, workloads: tuple[str, ...] = (), **more: object):
    request = RankRequest(workloads=workloads, measured=measured, limit=None, **more)
    return api.rank(request, today=DAY).ranking


def speeds(ranking) -> dict[str, float]:
    return {c.offer.id: c.prediction.throughput_per_s.value for c in ranking.candidates}


def test_a_gpu_run_is_the_measured_row_of_that_card(written) -> None:
    ranking = ranked(written(MEASUREMENT), workloads=("painter-light",))
    mine = [c.prediction for c in ranking.candidates if c.offer.accelerator == "t4" and c.offer.accelerators == 1]
    assert mine
    assert {p.method for p in mine} == {"measured"}


def test_a_cpu_run_changes_no_speed_and_gives_the_epochs_and_samples_of_the_persons_data(written) -> None:
    unfed = written(replace(CPU, decode_s=None))
    usual, after = ranked(workloads=("painter-light",)), ranked(unfed, workloads=("painter-light",))
    shared = speeds(usual).keys() & speeds(after).keys()
    assert len(shared) > 100
    assert all(speeds(usual)[offer] == speeds(after)[offer] for offer in shared)
    (job,) = after.workloads
    assert (job.epochs, job.samples) == (12.0, 20_000)
    assert not {"epochs", "samples"} & job.assumed.keys()


def test_the_answer_says_what_of_the_job_is_as_in_the_run(written) -> None:
    notes = [str(note) for note in ranked(written(CPU), workloads=("painter-light",)).warnings]
    assert "painter-light: 20000 samples, 12 epochs as in your own run" in notes


def test_what_the_person_states_now_is_stronger_than_the_run(written) -> None:
    (job,) = ranked(written(CPU), workloads=("painter-light",), epochs=3.0).workloads
    assert (job.epochs, job.samples) == (3.0, 20_000)


def test_without_a_workload_the_run_names_it(written) -> None:
    assert [w.name for w in ranked(written(MEASUREMENT)).workloads] == ["painter-light"]


def test_a_program_of_ones_own_is_ranked_by_its_own_counts(written) -> None:
    own = replace(CPU, workload="train.py", family="cnn", epochs=None, samples=None)
    (job,) = ranked(written(own)).workloads
    assert (job.name, job.gmacs, job.parameters_m) == ("train.py", 3.664, 21.3)
    assert {"epochs", "samples"} <= job.assumed.keys()


def test_a_program_without_counts_is_refused_by_what_is_missing() -> None:
    with pytest.raises(InvalidInput, match="gmacs, activations_m"):
        of_run(replace(CPU, workload="train.py", gmacs=None, activations_m=None))


def test_a_number_of_the_store_is_a_run_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWISE_STORE", str(tmp_path / "runs.sqlite3"))
    number = open_store().put(kept.run_of(gpu_record(measurement=CPU), "2026.11.30"))
    assert ranked(str(number)).workloads[0].epochs == 12.0


def test_the_answer_of_measure_as_json_is_read_too(written, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    file.write_text(json.dumps({"schema": 1, "result": {"run": 3, "record": kept.payload(gpu_record())}}))
    assert ranked(str(file)).workloads[0].name == "painter-light"


def test_a_run_that_saw_no_step_is_refused_with_its_reason(written) -> None:
    file = written(None, reasons={"measurement": "no step was marked"})
    with pytest.raises(DataError, match="no step was marked"):
        ranked(file)


def test_the_memory_that_a_run_took_stands_in_for_the_bound() -> None:
    job = replace(package.workloads()["painter-light"], batch_per_accelerator=64, precision="amp")
    assert as_measured(job, MEASUREMENT).peak_memory_gib == 3.2
    assert as_measured(job, replace(MEASUREMENT, batch_per_accelerator=32)).peak_memory_gib is None
    assert as_measured(job, replace(MEASUREMENT, precision="fp32")).peak_memory_gib is None


def test_uc_022_a_card_smaller_than_what_was_allocated_is_left_out(written) -> None:
    """13 GiB were allocated on an 8 GiB card that spilled: cards of 8 and 12 GB are no candidates."""
    spilled = replace(MEASUREMENT, peak_memory_gib=13.0, samples_per_s=None)
    ranking = ranked(written(spilled), workloads=("painter-light",))
    cards = package.accelerators()
    left = {min(cards[a].memory_gib for a in c.offer.accelerator.split("|")) for c in ranking.candidates}
    assert min(left) >= 16
    assert ranking.counts["does_not_fit"] > 10


def test_a_host_that_cannot_feed_its_gpus_says_so(written) -> None:
    slow = replace(CPU, decode_s=0.05)
    ranking = ranked(written(slow), workloads=("painter-light",))
    marks = [(c.offer, str(m)) for c in ranking.candidates for m in c.marks if "CPU limits this offer" in str(m)]
    assert marks
    assert all(speeds(ranking)[offer.id] <= offer.vcpus / 0.05 for offer, _mark in marks)
    page = faces.rank(RankRequest(measured=(written(slow),), limit=3), today=DAY).page()
    assert page.blocks
