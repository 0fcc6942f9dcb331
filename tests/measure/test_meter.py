"""The marks that a program writes about itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwise import meter
from gpuwise.measure import marks
from gpuwise.meter import Meter, Writer

METER = Path(meter.__file__)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUWISE_MARKS", str(tmp_path))
    monkeypatch.setattr(meter, "_writer", None)
    return tmp_path


def written(folder: Path) -> marks.Marks:
    return marks.parse({path.name: path.read_text("utf-8") for path in folder.iterdir()})


def closed(folder: Path) -> marks.Marks:
    Writer.from_environment().close()
    return written(folder)


def test_without_the_variable_a_meter_does_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("GPUWISE_MARKS", raising=False)
    monkeypatch.chdir(tmp_path)
    alone = Meter(samples=4)
    with alone.stage("forward"), alone.phase("validation"):
        alone.step()
    assert Writer.from_environment() is None
    assert list(tmp_path.iterdir()) == []


def test_importing_the_meter_writes_and_imports_nothing(tmp_path):
    code = "import sys, runpy; before = set(sys.modules); runpy.run_path(sys.argv[1]); print(set(sys.modules) - before)"
    environ = {**os.environ, "GPUWISE_MARKS": str(tmp_path)}
    done = subprocess.run((sys.executable, "-I", "-c", code, METER), env=environ, capture_output=True, text=True)
    assert done.returncode == 0
    assert "gpuwise" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_steps_stages_and_phases_come_back_as_they_were_marked(folder):
    alone = Meter(samples=4, tokens=100)
    with alone.stage("forward"):
        pass
    with alone.stage("backward"):
        pass
    with alone.stage("backward"):
        pass
    alone.step()
    alone.step(samples=3, tokens=70)
    with alone.phase("validation"):
        pass
    found = closed(folder)
    (series,) = found.series
    assert series.samples.tolist() == [4, 3]
    assert series.tokens.tolist() == [100, 70]
    assert series.micro.tolist() == [2, 1]
    assert series.forward_s[0] > 0
    assert series.forward_s[1] != series.forward_s[1]  # not seen
    assert [phase.name for phase in found.phases] == ["validation"]
    assert found.told("start")[0]["pid"] == os.getpid()


def test_a_stage_with_an_unknown_name_is_refused(folder):
    with pytest.raises(ValueError, match="forwards"), Meter().stage("forwards"):
        pass


def test_an_error_inside_a_stage_goes_through_and_the_stage_is_kept(folder):
    alone = Meter(samples=1)
    with pytest.raises(KeyError), alone.stage("copy"):
        raise KeyError
    alone.step()
    assert closed(folder).series[0].copy_s[0] > 0


def test_one_process_has_one_writer_and_one_file(folder):
    first, second = Writer.from_environment(), Writer.from_environment()
    assert first is second
    first.step(10, samples=1)
    first.event("setup", model="x")
    first.step(20, samples=1)
    first.close()
    assert [path.name for path in folder.iterdir()] == [f"0-{os.getpid()}.marks"]
    kinds = [line[:1] for line in next(folder.iterdir()).read_text().splitlines()]
    assert kinds == ["1", "{", "2"]


def test_the_rank_is_what_the_launcher_says(folder, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    writer = Writer.from_environment()
    writer.start()
    writer.step(5)
    writer.close()
    assert next(folder.iterdir()).name.startswith("3-")
    assert written(folder).told("start")[0]["world"] == 4
    assert written(folder).series[0].rank == 3


@pytest.mark.parametrize(
    ("environ", "processes"),
    [
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, 1),  # one process in an allocation of eight tasks
        ({"SLURM_NTASKS": "8", "RANK": "1", "WORLD_SIZE": "2"}, 2),
        ({"WORLD_SIZE": "2"}, 1),  # no launcher says which of them this is
        ({}, 1),
    ],
)
def test_processes_are_those_that_a_launcher_joined_and_not_the_tasks_of_an_allocation(environ, processes):
    assert meter.world(environ) == processes


def test_the_first_lines_are_written_at_once_and_later_ones_within_half_a_second(folder):
    writer = Writer.from_environment()
    for i in range(meter.AT_ONCE):
        writer.step(i + 1)
        assert len(written(folder).series[0].end_s) == i + 1
    begin = writer._flushed_ns
    writer.step(begin + 1)
    assert len(written(folder).series[0].end_s) == meter.AT_ONCE
    writer.step(begin + meter.FLUSH_NS + 1)
    assert len(written(folder).series[0].end_s) == meter.AT_ONCE + 2


def test_a_folder_that_is_gone_stops_the_marks_and_not_the_program(folder, monkeypatch):
    monkeypatch.setenv("GPUWISE_MARKS", str(folder / "gone" / "away"))
    alone = Meter(samples=1)
    alone.step()
    writer = Writer.from_environment()
    writer.flush()
    assert "No such file" in (writer.broken or "")
    alone.step()


def test_a_forked_child_does_not_write_the_lines_of_its_parent(folder):
    code = (
        "import os, sys; from gpuwise.meter import Writer; w = Writer.from_environment(); w.step(1)\n"
        "pid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: w.flush(); sys.exit()\n"
    )
    subprocess.run((sys.executable, "-c", code), check=True)
    assert len(written(folder).series[0].end_s) == 1


def test_a_meter_leaves_the_line_to_hooks_where_there_are_some(folder):
    told = []

    class Hooks:
        def step(self, samples, tokens, own):
            told.append((samples, tokens, sorted(own)))

    writer = Writer.from_environment()
    writer.hooks = Hooks()
    alone = Meter(samples=8)
    with alone.stage("wait"):
        pass
    alone.step(tokens=5)
    assert told == [(8, 5, ["wait"])]
    assert writer.claimed
    assert len(closed(folder).series) == 0


def test_known_stages_of_a_metered_loop_come_out_within_5_per_cent(tmp_path):
    """Read 10, forward 20, optimizer 40 ms a step by sleeping, in a process where gpuwise is not installed."""
    program = tmp_path / "loop.py"
    program.write_text(
        f"import sys, time; sys.path.insert(0, {str(METER.parent)!r})\n"
        "from meter import Meter\n"
        "spent = {'wait': 0.0, 'forward': 0.0, 'optimizer': 0.0}; m = Meter(samples=4)\n"
        "for _ in range(12):\n"
        "    for name, s in (('wait', .01), ('forward', .02), ('optimizer', .04)):\n"
        "        with m.stage(name):\n"
        "            t = time.perf_counter(); time.sleep(s); spent[name] += time.perf_counter() - t\n"
        "    m.step()\n"
        "import json; print(json.dumps(spent))\n"
    )
    environ = {**os.environ, "GPUWISE_MARKS": str(tmp_path)}
    done = subprocess.run((sys.executable, "-I", program), env=environ, capture_output=True, text=True, check=True)
    spent = json.loads(done.stdout)
    text = next(tmp_path.glob("*.marks")).read_text()
    (series,) = marks.parse({"0-1.marks": text}).series
    for name, truth in spent.items():
        assert getattr(series, f"{name}_s").sum() == pytest.approx(truth, rel=0.05)
