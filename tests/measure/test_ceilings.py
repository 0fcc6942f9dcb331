"""Probes give a figure with its range or a reason; one that dies takes no other with it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from machines import machine

from gpuwise.errors import Message
from gpuwise.measure.ceilings import Ceilings, ceilings
from gpuwise.measure.probes import Skipped, Task, images, largest, rate, seconds_of, storage
from gpuwise.measure.probes.names import NAMES, UNITS

CHILD = """
import json, os, signal, sys, time
spec = json.loads(sys.argv[-1])
def say(**line): print(json.dumps(line), flush=True)
say(devices=[])
for name in spec["names"]:
    say(begin=name)
    {body}
    say(end=name, unit="GB/s", value=dict(value=2.0, low=1.0, high=3.0), conditions=dict(n=4))
"""


def scripted(tmp_path: Path, body: str, names: tuple[str, ...] = ("a", "b", "c"), **given: float) -> Ceilings:
    command = (sys.executable, "-c", CHILD.replace("{body}", body))
    return ceilings(tmp_path, names=names, command=command, system=machine(tmp_path), **given)


def test_a_probe_that_crashes_costs_its_own_figure_only(tmp_path: Path) -> None:
    seen = scripted(tmp_path, "if name == 'b': os.kill(os.getpid(), signal.SIGSEGV)")
    assert [p.value.value if p.value else None for p in seen.probes] == [2.0, None, 2.0]
    assert seen.probes[1].reason == "its process was killed by SIGSEGV"


def test_a_probe_that_hangs_is_ended_and_the_next_one_runs(tmp_path: Path) -> None:
    seen = scripted(tmp_path, "if name == 'b': time.sleep(60)", limit_s=0.3)
    assert [p.value is not None for p in seen.probes] == [True, False, True]
    assert "no answer within" in (seen.probes[1].reason or "")


def test_all_the_time_together_is_bounded_and_what_did_not_run_says_so(tmp_path: Path) -> None:
    seen = scripted(tmp_path, "if name != 'a': time.sleep(60)", budget_s=0.6)
    assert seen.probes[0].value is not None
    assert [p.value for p in seen.probes[1:]] == [None, None]
    assert "no time left" in (seen.probes[2].reason or "")


def test_a_child_that_cannot_start_is_one_reason_for_all(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "raise SystemExit('no framework here')")
    seen = ceilings(tmp_path, names=("a", "b"), command=command, system=machine(tmp_path))
    assert [p.reason for p in seen.probes] == [
        "the probes could not be started: its process ended with 1 (no framework here)"
    ] * 2


def test_what_a_library_prints_in_between_is_no_answer(tmp_path: Path) -> None:
    seen = scripted(tmp_path, "print('warning: [1, 2]'); print('[3]'); print('7')", names=("a",))
    assert seen.probes[0].value is not None
    assert seen.of("a") == seen.probes[0]
    assert dict(seen.probes[0].conditions) == {"n": 4}


def test_uc_016_what_one_reader_gets_from_the_storage_is_kept_with_it(tmp_path: Path) -> None:
    assert scripted(tmp_path, "pass", names=("disk in order",)).host.storage.read_mb_per_s == 2.0
    assert scripted(tmp_path, "pass", names=("a",)).host.storage.read_mb_per_s is None


def test_what_runs_now_is_told(tmp_path: Path) -> None:
    heard: list[Message] = []
    command = (sys.executable, "-c", CHILD.replace("{body}", "pass"))
    ceilings(tmp_path, names=("a", "b"), command=command, system=machine(tmp_path), tell=heard.append)
    assert [m.values["probe"] for m in heard] == ["a", "b"]


def test_the_ladder_stops_before_a_size_that_would_take_too_long() -> None:
    asked: list[int] = []

    def emulated(n: int) -> float:
        asked.append(n)
        return 0.1 * (n / 256) ** 3

    assert largest(emulated, (256, 512, 1024, 4096), 8.0, cap_s=1.0) == 256
    assert asked == [256]
    assert largest(lambda n: 1e-6, (256, 512, 1024), 8.0, cap_s=1.0) == 1024


def test_a_ceiling_is_the_fastest_run_with_the_slowest_beside() -> None:
    found = rate(12.0, [2.0, 3.0, 4.0], "GB/s", n=1)
    assert (found.value.value, found.value.low, found.value.high) == (6.0, 3.0, 6.0)
    assert found.conditions["runs"] == 3


def test_runs_end_with_the_time_and_are_at_least_as_many_as_wanted() -> None:
    assert len(seconds_of(lambda: None, 10.0, least=3, most=3)) == 3
    assert len(seconds_of(lambda: None, 10.0, most=5)) == 5
    assert len(seconds_of(lambda: time.sleep(0.02), 0.005, least=100)) < 100


def test_a_disk_is_read_past_the_cache_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "FILE_MIB", 16)
    task = Task(device="cpu", folder=tmp_path, cap_s=0.1)
    for found in (storage.in_order(task), storage.at_random(1, task), storage.at_random(4, task)):
        assert 0 < found.value.low <= found.value.value <= found.value.high
        assert found.conditions["how"] in {"O_DIRECT", "page cache dropped by fadvise"}
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(Skipped, match="cannot write"):
        storage.in_order(Task(device="cpu", folder=tmp_path / "gone"))


def test_jpegs_are_decoded_by_what_is_installed(tmp_path: Path) -> None:
    found = images.decode(Task(device="cpu", folder=tmp_path, cap_s=0.05))
    assert found.value.value > 0
    assert 40_000 < float(found.conditions["bytes"]) < 90_000


def test_every_probe_has_a_unit() -> None:
    assert set(UNITS) == set(NAMES)
    assert UNITS["matmul bf16"] == "TFLOP/s"
    assert UNITS["all-reduce 85 MB"] == "GB/s"


def test_half_precision_that_a_cpu_would_emulate_is_not_run() -> None:
    pytest.importorskip("torch")
    from gpuwise.measure.probes import arithmetic

    reasons = {p: arithmetic.unsupported(p, "cpu") for p in ("fp32", "tf32")}
    assert reasons == {"fp32": None, "tf32": "only NVIDIA devices have it"}


def test_products_and_copies_are_measured_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from gpuwise.measure.probes import arithmetic, transfers

    torch.set_num_threads(1)
    monkeypatch.setattr(arithmetic, "SIZES", (64, 128))
    monkeypatch.setattr(arithmetic, "BATCHES", (1,))
    monkeypatch.setattr(transfers, "SIZES_MIB", (1, 4))
    task = Task(device="cpu", folder=tmp_path, cap_s=0.05)
    for found in (arithmetic.matmul("fp32", task), arithmetic.convolution("fp32", task), transfers.copy(task)):
        assert 0 < found.value.low <= found.value.value <= found.value.high
    with pytest.raises(Skipped, match="no accelerator"):
        transfers.to_device(True, task)


def test_the_real_child_measures_an_all_reduce_of_two_processes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    names = ("all-reduce 1 MiB", "host to device, pinned")
    seen = ceilings(tmp_path, names=names, cap_s=0.05, limit_s=60.0)
    reduce, copy = seen.probes
    assert reduce.reason is None
    assert reduce.value is not None
    assert dict(reduce.conditions)["processes"] == 2
    assert len(seen.devices) >= 1
    assert (copy.value is None) == (seen.devices[0].backend == "cpu")
