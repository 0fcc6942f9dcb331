"""Reference training as a whole: how it ends, what it leaves behind, and that a killed one goes on."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch: pip install 'gpuwise[measure]'")
pytest.importorskip("torchvision", reason="training needs torchvision: pip install 'gpuwise[measure]'")
pytest.importorskip("simplejpeg", reason="reading images needs simplejpeg: pip install 'gpuwise[measure]'")

import simplejpeg
import torch

from gpuwise.errors import DataError, InvalidInput, Message
from gpuwise.measure import checkpoint
from gpuwise.measure.job import Job
from gpuwise.measure.precision import choose
from gpuwise.measure.record import Device, Ending
from gpuwise.measure.timer import Pulse
from gpuwise.measure.train import ECHO_S, End, Interrupt, living, main, reference_training, settled_device
from gpuwise.measure.training import AGREED_EVERY, AGREED_S, Agreement, fitting_batch, is_out_of_memory

STEPS_AN_EPOCH = 4


class Seen:
    """Lines and events of a run, kept; and the interruption of it, which comes after so many steps."""

    def __init__(self, interrupted_after: int | None = None) -> None:
        self.steps: list[tuple[int, ...]] = []
        self.events: list[dict[str, Any]] = []
        self.gentle = False
        self._after = interrupted_after

    @property
    def asked(self) -> bool:
        return self._after is not None and len(self.steps) >= self._after

    def step(self, *values: int) -> None:
        self.steps.append(values)

    def event(self, name: str, /, **fields: Any) -> None:
        self.events.append({"event": name, **fields})

    def told(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == name]

    @property
    def losses(self) -> list[float]:
        return [event["loss"] for event in self.told("epoch")]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes, one reddish and one bluish: 16 of each to train, 4 of each to hold out."""
    folder = tmp_path_factory.mktemp("pictures")
    chance = np.random.default_rng(0)
    for part, count in (("train", 16), ("val", 4)):
        for channel, name in ((0, "red"), (2, "blue")):
            (folder / part / name).mkdir(parents=True)
            for i in range(count):
                image = chance.integers(0, 120, (40, 48, 3), dtype=np.uint8)
                image[..., channel] += 100
                (folder / part / name / f"{i}.jpg").write_bytes(simplejpeg.encode_jpeg(image, quality=90))
    return folder


@pytest.fixture
def job(pictures: Path) -> Job:
    """Small enough for a second: 4 steps an epoch."""
    return Job(
        model="shufflenet_v2_x0_5", data=str(pictures), epochs=2, image_size=32, batch=8, threads=1, workers=0,
        device="cpu", limits=False, counts=False,
    )  # fmt: skip


def train(job: Job, interrupted_after: int | None = None) -> tuple[End, Seen]:
    seen = Seen(interrupted_after)
    return reference_training(job, seen, seen), seen  # type: ignore[arg-type]


def weights(folder: Path, name: str = checkpoint.LAST) -> Mapping[str, torch.Tensor]:
    state = checkpoint.read(folder / name)
    assert state is not None
    model: Mapping[str, torch.Tensor] = state["engine"]["model"]
    return model


def same(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


# ---- what it tells ----


def test_a_training_tells_all_that_a_record_needs(job: Job) -> None:
    end, seen = train(job)
    assert (end.ending, end.code) == ("epochs", 0)
    assert len(seen.steps) == 2 * STEPS_AN_EPOCH
    setup = seen.told("setup")[0]
    assert (setup["samples"], setup["validation_samples"], setup["classes"]) == (32, 8, 2)
    usual = choose(settled_device(job, 0)[0]).precision  # of this very CPU: bf16 where it has units for it
    assert usual in ("fp32", "amp_bf16")
    assert (setup["precision"], setup["memory_format"], setup["batch_per_accelerator"]) == (usual, "nhwc", 8)
    assert [(e["number"], e["samples"], e["validated"]) for e in seen.told("epoch")] == [(1, 32, 8), (2, 32, 8)]
    assert [device["backend"] for device in seen.told("devices")[0]["list"]] == ["cpu"]
    assert seen.told("timing") == [{"event": "timing", "clock": "host"}]
    assert seen.told("loader")[-1]["samples"] == 2 * 32
    assert seen.told("loader")[-1]["decode_ns"] > 0
    assert {p["name"] for p in seen.told("phase")} == {"data", "building", "validation"}
    assert 0 < seen.told("overhead")[0]["fraction"] < 1


def test_ceilings_are_measured_on_weights_that_are_thrown_away(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuwise.measure.train.LIMIT_S", 0.2)
    _, plain = train(job)
    _, seen = train(replace(job, limits=True))
    assert {e["which"] for e in seen.told("limit")} == {"feed", "device"}
    assert all(0 < e["low"] <= e["value"] <= e["high"] for e in seen.told("limit"))
    assert seen.losses == plain.losses
    assert seen.told("loader")[-1]["samples"] == 2 * 32  # those of the ceiling are not counted


def test_a_long_validation_and_long_ceilings_give_signs_of_life(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuwise.measure.timer.ALIVE_S", 0.0)  # then every sign is told
    monkeypatch.setattr("gpuwise.measure.train.LIMIT_S", 0.2)
    _, seen = train(replace(job, limits=True, epochs=1))
    names = [event.get("name", event["event"]) for event in seen.events]
    before, after = names[: names.index("limits")], names[names.index("limits") :]
    assert before.count("alive") >= 9 + 8  # spans of the feed and of the device
    assert after[: after.index("validation")].count("alive") == 1  # 8 held out, one batch


def test_work_that_tells_how_far_it_is_gives_signs_of_life(capsys: pytest.CaptureFixture[str]) -> None:
    seen, now = Seen(), [0.0]
    telling = living(Pulse(seen, clock=lambda: now[0]))
    for second in range(0, 61, 2):
        now[0] = float(second)
        telling(Message("so many paintings made"))
    assert len(seen.told("alive")) == 10
    assert len(capsys.readouterr().err.splitlines()) == 31


# ---- on which device ----


def cards(*capabilities: str) -> tuple[Device, ...]:
    return tuple(
        Device(index=i, name=f"card {c}", vendor="NVIDIA", backend="cuda", capability=c)
        for i, c in enumerate(capabilities)
    )


def test_a_process_uses_one_device_of_the_machine_and_its_facts_decide(job: Job) -> None:
    machine = cards("7.5", "9.0")
    own, device = settled_device(replace(job, device="cuda:1"), 0, look=lambda: machine)
    assert (own, device) == (machine[1], torch.device("cuda", 1))
    assert choose(own).precision == "amp_bf16"  # card 0 only emulates it
    own, device = settled_device(replace(job, device=None), 0, look=lambda: machine)
    assert (own, device) == (machine[0], torch.device("cuda", 0))
    with pytest.raises(InvalidInput, match="there are 2"):
        settled_device(replace(job, device="cuda:2"), 0, look=lambda: machine)


def test_counts_of_the_model_are_told(job: Job) -> None:
    _, seen = train(replace(job, counts=True, steps=1, epochs=None))
    work = seen.told("work")[0]
    assert work["parameters_m"] == pytest.approx(1.366792 - 1000 * 1025e-6 + 2 * 1025e-6)  # timm's, with our head
    assert work["flops_per_step"] == pytest.approx(6e9 * work["gmacs"] * 8, rel=0.2)


# ---- one seed ----


def test_two_runs_with_one_seed_give_the_same_losses_to_the_last_bit(job: Job, tmp_path: Path) -> None:
    _, one = train(replace(job, checkpoint=str(tmp_path / "one")))
    _, two = train(replace(job, checkpoint=str(tmp_path / "two")))
    _, other = train(replace(job, seed=1))
    assert one.losses == two.losses != other.losses
    assert same(weights(tmp_path / "one"), weights(tmp_path / "two"))


@pytest.mark.parametrize("after", [STEPS_AN_EPOCH, STEPS_AN_EPOCH + 2])
def test_a_resumed_run_gives_the_losses_of_one_that_was_never_interrupted(job: Job, tmp_path: Path, after: int) -> None:
    _, whole = train(replace(job, checkpoint=str(tmp_path / "whole")))
    kept = replace(job, checkpoint=str(tmp_path / "kept"))
    end, first = train(kept, interrupted_after=after)
    assert (end.ending, end.code) == ("interrupted", 130)
    _, second = train(replace(kept, resume=True))
    assert second.told("resume") == [{"event": "resume", "from_step": after, "flush": True}]
    assert len(first.steps) + len(second.steps) == len(whole.steps)
    assert first.losses + second.losses == whole.losses
    assert same(weights(tmp_path / "kept"), weights(tmp_path / "whole"))


def test_resuming_what_has_ended_trains_no_more(job: Job, tmp_path: Path) -> None:
    kept = replace(job, checkpoint=str(tmp_path))
    train(kept)
    end, seen = train(replace(kept, resume=True))
    assert (end.ending, seen.steps) == ("epochs", [])


def test_a_checkpoint_of_another_training_is_refused_by_what_differs(job: Job, tmp_path: Path) -> None:
    train(replace(job, checkpoint=str(tmp_path), epochs=1))
    with pytest.raises(InvalidInput, match="batch 8 instead of 4"):
        train(replace(job, checkpoint=str(tmp_path), batch=4, resume=True))


def test_a_file_that_is_no_checkpoint_is_refused_by_name(job: Job, tmp_path: Path) -> None:
    (tmp_path / checkpoint.LAST).write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(DataError, match=r"last\.pt is no checkpoint"):
        train(replace(job, checkpoint=str(tmp_path), resume=True))


# ---- how it ends ----


def test_steps_and_minutes_end_it_inside_an_epoch(job: Job) -> None:
    end, seen = train(replace(job, epochs=None, steps=3))
    assert (end.ending, len(seen.steps), seen.losses) == ("steps", 3, [])
    end, seen = train(replace(job, epochs=None, minutes=1e-9))
    assert (end.ending, len(seen.steps)) == ("minutes", 1)


def test_a_target_ends_it_as_soon_as_it_is_reached(job: Job) -> None:
    end, seen = train(replace(job, epochs=30, target_fraction=0.7))
    accuracies = [e["accuracy_fraction"] for e in seen.told("epoch")]
    assert end.ending == "target"
    assert accuracies[-1] >= 0.7 > max(accuracies[:-1], default=0)


def test_accuracy_that_no_longer_grows_ends_it(job: Job) -> None:
    end, seen = train(replace(job, epochs=None, patience=2, learning_rate=1e-9))
    best = [e["accuracy_fraction"] for e in seen.told("epoch")]
    assert end.ending == "patience"
    assert max(best[:-2]) >= max(best[-2:])


def test_a_loss_that_is_not_finite_ends_it_and_the_best_checkpoint_stays(job: Job, tmp_path: Path) -> None:
    train(replace(job, checkpoint=str(tmp_path), epochs=1))
    before = weights(tmp_path, checkpoint.BEST)
    wild = replace(job, checkpoint=str(tmp_path), resume=True, optimizer=None, epochs=5, learning_rate=1e30)
    end, seen = train(wild)
    assert (end.ending, end.code) == ("loss not finite", 4)
    assert f"step {STEPS_AN_EPOCH + len(seen.steps)}" in str(end.failure)
    assert same(before, weights(tmp_path, checkpoint.BEST))
    assert all(value.isfinite().all() for value in weights(tmp_path).values())


def test_too_many_damaged_images_end_it_and_a_few_are_counted(job: Job, pictures: Path, tmp_path: Path) -> None:
    for part, damaged in (("few", 3), ("many", 14)):
        folder = tmp_path / part
        for path in pictures.rglob("*.jpg"):
            target = folder / path.relative_to(pictures)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        for path in sorted((folder / "train" / "red").iterdir())[:damaged]:
            path.write_bytes(b"\xff\xd8 no image")
    end, seen = train(replace(job, data=str(tmp_path / "few")))
    assert (end.ending, seen.told("skipped")[-1]["counts"]) == ("epochs", {"damaged": 3})
    with pytest.raises(DataError, match="cannot be read"):
        train(replace(job, data=str(tmp_path / "many")))


# ---- together ----


@pytest.mark.parametrize(
    ("step_s", "after_steps"), [((0.01, 0.012), AGREED_EVERY), ((0.45, 0.7), 2), ((30.0, 31.0), 1)]
)
def test_processes_end_after_the_same_step_within_two_seconds_or_a_step(
    step_s: tuple[float, float], after_steps: int
) -> None:
    """Each process has its own clock; the first wants to end after its step 40."""
    figures, ends = [[0.0], [0.0]], [0, 0]
    both = threading.Barrier(2, timeout=20)

    def process(number: int) -> None:
        def highest(own: list[float]) -> list[float]:
            figures[number] = own
            both.wait()
            most = [max(column) for column in zip(*figures, strict=True)]
            both.wait()
            return most

        agreement = Agreement(highest)
        for step in range(1, 1000):
            wanted: Ending | None = "minutes" if number == 0 and step >= 40 else None
            if agreement.ending(wanted, 1e6 * number + step * step_s[number]) is not None:
                ends[number] = step
                return

    threads = [threading.Thread(target=process, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends[0] == ends[1]
    assert 40 <= ends[0] < 40 + after_steps
    assert AGREED_S <= 2


@contextmanager
def limited(kind: int, value: int) -> Iterator[None]:
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (value, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def test_a_full_disk_stops_checkpoints_and_not_the_training(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(replace(job, checkpoint=str(tmp_path), epochs=1))
    before = weights(tmp_path)
    with limited(resource.RLIMIT_FSIZE, 100_000):  # as a full disk: a write comes up short
        end, seen = train(replace(job, checkpoint=str(tmp_path), resume=True))
    assert end.ending == "epochs"
    assert end.code == 0
    assert "checkpoint could not be written" in str(end.failure)
    assert len(seen.steps) == STEPS_AN_EPOCH
    assert capsys.readouterr().err.count("could not be written") == 1
    assert same(before, weights(tmp_path))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_uc_023_the_batch_that_fits_is_one_whose_step_was_run() -> None:
    tried = []

    def attempt(batch: int) -> None:
        tried.append(batch)
        if batch > 16:
            raise torch.OutOfMemoryError("CUDA out of memory")

    assert fitting_batch(attempt, 100) == 12
    assert tried == [50, 25, 12]


def test_nothing_fits_where_no_step_runs() -> None:
    def attempt(_: int) -> None:
        raise MemoryError

    assert fitting_batch(attempt, 64) is None


def test_an_error_that_is_not_about_memory_is_not_taken_for_it() -> None:
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"))
    assert not is_out_of_memory(RuntimeError("shapes cannot be multiplied"))

    def attempt(_: int) -> None:
        raise RuntimeError("shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        fitting_batch(attempt, 64)


def used_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space by Linux's means")
def test_out_of_memory_is_told_with_the_batch(job: Job) -> None:
    large = replace(job, model="vgg11", image_size=64, batch=16, epochs=1)  # 1.5 GB of weights and states
    with limited(resource.RLIMIT_AS, used_bytes() + 300 * 2**20):
        end, _ = train(large)
    assert (end.ending, end.code) == ("out of memory", 4)
    assert end.failure == "out of memory at batch 16; no smaller batch was found to fit"


# ---- as a process ----


def spawn(job: Job, folder: Path, *before: str) -> subprocess.Popen[str]:
    (folder / "marks").mkdir(exist_ok=True)
    (folder / "spec.json").write_text(job.to_json())
    command = before or (sys.executable,)
    environ = {**os.environ, "GPUWISE_MARKS": str(folder / "marks"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "-m", "gpuwise.measure.train", str(folder / "spec.json")],
        env=environ, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def lines_of(folder: Path) -> dict[str, list[str]]:
    return {path.name: path.read_text().splitlines() for path in sorted((folder / "marks").iterdir())}


def events(lines: list[str], name: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [event for event in found if event["event"] == name]


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    assert condition()


def test_a_killed_process_goes_on_from_its_last_checkpoint_and_sigterm_ends_it_with_one(
    job: Job, tmp_path: Path
) -> None:
    endless = replace(job, epochs=100_000, checkpoint=str(tmp_path / "kept"), checkpoint_every_s=0.1)
    first = spawn(endless, tmp_path)
    until(lambda: (tmp_path / "kept" / checkpoint.LAST).exists())
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    reached = checkpoint.read(tmp_path / "kept" / checkpoint.LAST)
    assert reached is not None

    second = spawn(replace(endless, resume=True), tmp_path)
    until(lambda: any("resume" in line for lines in lines_of(tmp_path).values() for line in lines))
    second.send_signal(signal.SIGTERM)
    said = second.communicate()[1]
    assert second.returncode == 130, said
    lines = next(lines for name, lines in lines_of(tmp_path).items() if name == f"0-{second.pid}.marks")
    assert events(lines, "resume")[0]["from_step"] == reached["engine"]["steps"]
    assert events(lines, "end")[0]["ending"] == "interrupted"
    steps = sum(not line.startswith("{") for line in lines)
    last = checkpoint.read(tmp_path / "kept" / checkpoint.LAST)
    assert last is not None
    assert last["engine"]["steps"] == reached["engine"]["steps"] + steps


def test_two_processes_train_together_and_see_their_all_reduce(job: Job, tmp_path: Path) -> None:
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    process = spawn(replace(job, batch=4), tmp_path, *launcher)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    assert "Warning" not in said
    ranks = sorted(lines_of(tmp_path).items())
    assert [name[:2] for name, _ in ranks] == ["0-", "1-"]
    for _, lines in ranks:
        steps = [[int(value) for value in line.split()] for line in lines if not line.startswith("{")]
        assert len(steps) == 2 * STEPS_AN_EPOCH
        assert all(step[8] > 0 for step in steps)
        assert events(lines, "end")[0]["ending"] == "epochs"
    assert [(e["samples"], e["validated"]) for e in events(ranks[0][1], "epoch")] == [(32, 8), (32, 8)]
    assert events(ranks[1][1], "epoch") == []


@pytest.fixture
def signals() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
def test_a_signal_that_a_launcher_passes_on_again_does_not_cut_the_last_step_off() -> None:
    now = [100.0]
    interrupt = Interrupt(clock=lambda: now[0])
    interrupt.gentle = True
    for _ in range(2):
        signal.raise_signal(signal.SIGTERM)
        now[0] += ECHO_S / 2
    assert interrupt.asked
    now[0] += ECHO_S
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.usefixtures("signals")
def test_a_signal_before_training_ends_the_program_at_once() -> None:
    Interrupt()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("signals")
def test_bad_input_ends_with_one_line_and_the_code_of_bad_input(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.json"
    for wrong in (replace(job, data=str(tmp_path / "missing")), replace(job, precision="amp")):
        spec.write_text(wrong.to_json())
        assert main([str(spec)]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
