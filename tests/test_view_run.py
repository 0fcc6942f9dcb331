"""Pages of measured runs: the verdict first, every figure with unit and origin, what is unknown with its reason."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from gpuwise.estimate import Interval
from gpuwise.measure import record as run_record
from gpuwise.measure.ceilings import Ceilings, Probe
from gpuwise.measure.check import Checked, FirstStep, Item, Readiness, State
from gpuwise.measure.compare import compare
from gpuwise.measure.energy import Throttle
from gpuwise.measure.record import Epoch, Rank, Stages
from gpuwise.measure.verdict import Cause, Kind, judge
from gpuwise.render.text import text
from gpuwise.view import vocabulary
from gpuwise.view.machine import ceilings_page, check_page
from gpuwise.view.page import Caution, Chart, Facts, Page, Table, Text
from gpuwise.view.run import MOST_EPOCHS, run_page, stage_rows
from gpuwise.view.runs import comparison_page, runs_page
from tests.measure.records import DEVICE, HOST, gpu_record


def page_of(**more: object) -> Page:
    record = gpu_record(**more)
    return run_page(record, judge(record), 12)


def shown(page: Page) -> str:
    return text(page, width=200, colour=False, encoding="utf-8")


def facts(page: Page) -> dict[str, str]:
    return {f"{b.title}/{f.label}": f"{f.text} | {f.why}" for b in page.blocks if isinstance(b, Facts) for f in b.facts}


def table(page: Page, title: str) -> Table:
    return next(b for b in page.blocks if isinstance(b, Table) and b.title == title)


def test_the_page_begins_with_the_verdict_in_one_sentence() -> None:
    first = page_of().blocks[0]
    assert isinstance(first, Text)
    assert first.role == "answer"
    assert first.text.startswith("Input-bound")
    assert first.text.count(". ") == 0


def test_speed_has_its_interval_and_steps_their_range() -> None:
    known = facts(page_of())
    assert known["Speed/Throughput"] == "400 (392 to 408) samples a second | "
    assert known["Speed/Step"].startswith("160 (157 to 163) ms | 500 steps counted, 12 of warm-up left out")
    assert "from 49.0 to 500 ms" in known["Speed/Step"]


def test_uc_009_several_processes_have_the_speed_of_the_job_and_of_each() -> None:
    setup = replace(gpu_record().setup, processes=8)
    assert "of all 8 processes; 50.0 each" in facts(page_of(setup=setup))["Speed/Throughput"]


def test_mfu_names_its_convention_and_its_peak() -> None:
    said = facts(page_of())["Speed/MFU"]
    assert said.startswith("13.5 % | 2 × MAC, forward and backward, without recomputation; against 65.0 TFLOPS")


def test_uc_009_mfu_of_a_job_is_measured_against_all_of_its_devices() -> None:
    setup = replace(gpu_record().setup, processes=8)
    assert gpu_record(setup=setup).mfu == pytest.approx(gpu_record().mfu / 8)
    assert gpu_record(work=None).mfu is None


def test_uc_007_an_epoch_is_told_in_samples_micro_batches_and_optimizer_steps() -> None:
    """8,000 images, batch 2, accumulation 4, 0.5 s a micro-batch: 1,000 optimizer steps, 2,000 s."""
    pace = replace(
        gpu_record().pace, step_s=Interval(value=2.0, low=1.98, high=2.02), samples_per_step=8.0, micro_batches=4.0
    )
    setup = replace(gpu_record().setup, samples=8000, batch_per_accelerator=2, accumulation=4)
    said = facts(page_of(pace=pace, setup=setup))["Speed/An epoch"]
    assert said.startswith("33 min")
    assert "8,000 samples = 4,000 micro-batches = 1,000 optimizer steps" in said


def test_uc_001_times_of_launching_are_shown_as_no_speed() -> None:
    pace = replace(gpu_record().pace, reasons={"step_s": "launch time only: no device events"})
    known = facts(page_of(pace=pace))
    assert known["Speed/Throughput"] == "unknown | launch time only: no device events"
    assert not {"Speed/Step", "Speed/MFU"} & known.keys()


def test_bars_and_rows_are_the_stages_that_were_seen() -> None:
    page = page_of()
    chart = next(b for b in page.blocks if isinstance(b, Chart))
    names = [row[0].shown for row in table(page, "Stages").rows]
    assert [mark["stage"] for mark in chart.spec["data"]["values"]] == names
    assert names == ["wait for data", "copy to device", "forward", "backward", "optimizer", "the rest"]
    assert "read 0.20, decode 4.00, augment 1.00 ms a sample" in table(page, "Stages").rows[0][3].shown


def test_a_stage_that_was_not_seen_has_no_bar_and_says_why() -> None:
    stages = Stages(forward_s=0.01, backward_s=0.02, reasons={"wait_s": "the program has no loader"})
    page = page_of(stages=stages)
    assert [name for name, _value in stage_rows(gpu_record(stages=stages))] == ["forward", "backward"]
    assert "wait for data: the program has no loader" in table(page, "Stages").notes


def test_feed_and_device_stand_side_by_side_with_how_many_devices_the_host_feeds() -> None:
    known = facts(page_of())
    assert known["What the parts can do alone/Feed"].startswith("410 (400 to 420)")
    assert known["What the parts can do alone/Device"].startswith("1,150 (1,140 to 1,160)")
    assert known["What the parts can do alone/This host could feed"].startswith("0.36 such devices")


def test_power_and_energy_say_where_they_come_from() -> None:
    known = facts(page_of())
    assert known["Devices/Tesla T4: power"].startswith("38.0 (from 27.0 to 66.0) W of 70.0 W")
    assert known["Devices/Tesla T4: energy"] == "3,040 J | by the hardware's counter, sampled every 0.20 s"
    assert known["Host/Energy of the CPU"] == "unknown | the counter can be read by root alone"
    assert "not how much of the chip worked" in known["Devices/Tesla T4: busy"]


def test_uc_044_energy_is_no_total_while_a_part_is_unknown_and_each_part_has_its_source() -> None:
    known = facts(page_of())
    assert known["Energy in the steady part/Total"].startswith("unknown | cpu: the counter can be read by root alone")
    assert known["Energy in the steady part/Of the known parts"].startswith("3,040 J | device 0 3,040 J, by the hardw")


def test_what_a_prediction_takes_is_shown_with_how_it_was_had() -> None:
    known = facts(page_of())
    assert known["What a prediction takes from it/Speed of the device"].startswith("1,150")
    assert "waited for data" in known["What a prediction takes from it/Speed of the device"]
    assert known["What a prediction takes from it/Epochs"].startswith("12 of 20,000 samples")


def test_uc_018_the_cpus_of_the_job_stand_beside_those_of_the_host() -> None:
    assert facts(page_of())["Host/CPUs"] == "4 of 16 allowed | a CPU; affinity 4, quota 8"


def test_a_run_without_steps_says_why_and_shows_no_speed() -> None:
    page = page_of(pace=None, stages=None, epochs=(), reasons={"pace": "no step was marked"})
    assert facts(page)["Speed/Throughput"] == "unknown | no step was marked"
    assert not [b for b in page.blocks if isinstance(b, Chart)]


def test_a_failure_stands_beside_the_verdict() -> None:
    page = page_of(status="failed", ending="out of memory", failure="CUDA out of memory at batch 64")
    assert "CUDA out of memory at batch 64" in [b.text for b in page.blocks if isinstance(b, Caution)]


def test_of_many_epochs_the_first_and_the_last_are_shown_and_the_rest_counted() -> None:
    epochs = tuple(Epoch(number=n, loss=1 / n, samples=10, train_s=1.0) for n in range(1, 101))
    rows = table(page_of(epochs=epochs), "Epochs")
    assert [rows.rows[0][0].value, rows.rows[-1][0].value, len(rows.rows)] == [1, 100, MOST_EPOCHS]
    assert rows.notes == (f"{100 - MOST_EPOCHS} epochs between are not shown.",)
    assert rows.rows[0][2].shown == "unknown"


def test_ranks_are_shown_where_there_are_several() -> None:
    ranks = tuple(Rank(rank=n, compute_s=0.1 + 0.08 * (n == 3), all_reduce_s=0.08 * (n != 3)) for n in range(4))
    assert [row[2].shown for row in table(page_of(ranks=ranks), "Processes").rows] == ["100", "100", "100", "180"]


def test_no_number_of_the_page_is_nan_or_none() -> None:
    assert not {"nan", "None", "inf"} & set(shown(page_of()).replace("(", " ").split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_page_fits_the_terminal(width: int) -> None:
    page = text(page_of(), width=width, colour=False, encoding="utf-8")
    assert max(map(len, page.splitlines())) <= width


def test_the_list_of_runs_names_the_newest_and_what_is_not_shown() -> None:
    page = runs_page([(7, gpu_record()), (6, gpu_record(pace=None, reasons={"pace": "no step was marked"}))], 9, "a.db")
    assert "the newest is run 7" in shown(page)
    rows = table(page, "Runs").rows
    assert [row[4].shown for row in rows] == ["400", "unknown"]
    assert rows[1][4].title == "no step was marked"
    assert table(page, "Runs").notes == ("7 older runs are not shown (--limit all).",)


def test_an_empty_list_says_how_to_begin() -> None:
    assert "gpuwise measure painter-light" in shown(runs_page([], 0, "a.db"))


def test_a_comparison_is_a_sentence_with_its_interval_and_what_is_unlike() -> None:
    slow, setup = gpu_record(), gpu_record().setup
    pace = replace(slow.pace, step_s=Interval(value=0.08, low=0.0795, high=0.0805),
                   samples_per_s=Interval(value=800.0, low=795.0, high=805.0))  # fmt: skip
    fast = gpu_record(pace=pace, setup=replace(setup, precision="fp32"))
    page = comparison_page([("11", slow)], [("12", fast)], compare([slow], [fast]))
    assert "2.00× faster" in page.blocks[0].text
    assert any("precision" in b.text for b in page.blocks if isinstance(b, Caution))


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (vocabulary.VERDICTS, Kind),
        (vocabulary.CAUSES, Cause),
        (vocabulary.ENDINGS, run_record.Ending),
        (vocabulary.ENERGY, run_record.EnergySource),
        (vocabulary.THROTTLES, Throttle),
        (vocabulary.READINESS, Readiness),
        (vocabulary.STATES, State),
    ],
)
def test_every_name_of_a_closed_list_has_its_words(words: dict[str, str], names: object) -> None:
    assert set(words) == set(get_args(names))


def test_every_ceiling_is_a_figure_with_its_range_or_a_reason() -> None:
    probes = (
        Probe(name="matmul fp32", unit="TFLOP/s", value=Interval(value=8.1, low=8.0, high=8.2), conditions={"n": 4096}),
        Probe(name="host to device, pinned", unit="GB/s", reason="there is no accelerator to copy to"),
    )
    page = ceilings_page(Ceilings(probes=probes, host=HOST, devices=(DEVICE,), took_s=12.0, budget_s=55.0))
    rows = table(page, "Ceilings").rows
    assert [row[1].text for row in rows] == ["8.10 (8.00–8.20)", "unknown"]
    assert rows[1][3].shown == "there is no accelerator to copy to"
    assert "1 of 2 figures" in page.blocks[0].text


def test_a_checked_machine_says_what_is_missing_and_how_to_get_it() -> None:
    items = (
        Item(name="framework", state="ok", found="2.14.1"),
        Item(name="driver", state="missing", message=None, fix=None),
    )
    step = FirstStep(device="cpu", import_s=1.5, build_s=0.5, step_s=0.1)
    checked = Checked(
        items=items, ready="not ready", first_step=step, first_step_s=2.1, preparation_s=None, host=HOST, devices=(),
        reasons={"preparation_s": "nobody measured how long a driver takes"},
    )  # fmt: skip
    page = check_page(checked)
    assert page.blocks[0].text == "Not ready: driver would have to be mended."
    assert facts(page)["Time/Preparation"] == "unknown | nobody measured how long a driver takes"
    assert facts(page)["Time/First step, in a fresh process"].startswith("2.10 s | import 1.50 s")
