"""Steps and stages of unmodified programs (loops.py), seen from inside their process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpuwise.measure import assemble, marks
from gpuwise.measure.attach import trial as trials
from gpuwise.measure.attach.border import Border
from gpuwise.measure.attach.fetching import Fetching
from gpuwise.measure.attach.trial import Trial
from gpuwise.measure.session import ATTACH, environment

LOOPS = Path(__file__).parent / "loops.py"
SAME = (
    "plain", "accumulation", "gan", "tensors", "generator", "kept_batches", "by_hand", "closure", "teacher", "scaled",
    "text", "saved", "recovered", "secretive", "compiled", "compiled_step", "background", "ahead", "inside",
    "recomputed", "metered",
)  # fmt: skip
ONLY_WATCHED = ("known", "short", "files", "narrowed")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Iterator[tuple[Path, Path]]:
    """Folders of what the loops did and wrote: watched, and bare. Warnings are errors in both."""
    watched, bare = tmp_path_factory.mktemp("watched"), tmp_path_factory.mktemp("bare")
    plain = {**os.environ, "OMP_NUM_THREADS": "1"}
    plain.pop("GPUWISE_MARKS", None)
    both = [
        subprocess.Popen((sys.executable, "-W", "error", LOOPS, folder, *names), env=environ)
        for folder, names, environ in (
            (watched, SAME + ONLY_WATCHED, environment(plain, watched, attach=True)),
            (bare, SAME, plain),
        )
    ]
    assert [one.wait() for one in both] == [0, 0]
    return watched, bare


def seen(runs: tuple[Path, Path], name: str) -> marks.Marks:
    return marks.parse({path.name: path.read_text("utf-8") for path in (runs[0] / name).glob("*.marks")})


def only(runs: tuple[Path, Path], name: str) -> marks.Series:
    (series,) = seen(runs, name).series
    return series


# ---- nothing changes for the program ----


@pytest.mark.parametrize("name", SAME)
def test_what_a_program_computes_is_equal_to_the_last_bit(runs, name):
    assert (runs[0] / f"{name}.json").read_text() == (runs[1] / f"{name}.json").read_text()


def test_no_hook_failed_but_where_the_program_did_not_let_it(runs):
    failed = {name: [e["failure"] for e in seen(runs, name).told("hook")] for name in SAME + ONLY_WATCHED}
    assert {name for name, failures in failed.items() if failures} == {"secretive"}
    assert "asked once too often" in failed["secretive"][0]


# ---- steps ----


@pytest.mark.parametrize(
    ("name", "count", "samples", "micro"),
    [
        ("plain", 23, 4, 1),
        ("accumulation", 2, 16, 4),
        ("gan", 11, 4, 2),
        ("tensors", 11, 4, 1),
        ("generator", 11, 5, 1),
        ("kept_batches", 23, 4, 1),
        ("closure", 11, 4, 3),
        ("teacher", 11, 4, 1),
        ("scaled", 11, 4, 1),
        ("text", 9, 4, 1),
        ("recovered", 9, 4, 1),
        ("secretive", 11, 4, 1),
        ("compiled", 12, 4, 1),
        ("compiled_step", 12, 4, 1),
        ("background", 11, 4, 1),
        ("ahead", 23, 4, 1),
        ("inside", 11, 4, 1),
        ("recomputed", 11, 4, 1),
        ("metered", 5, 8, 2),
    ],
)
def test_each_optimizer_step_is_one_line_but_the_one_whose_operations_are_counted(runs, name, count, samples, micro):
    """UC-007: micro-batches and optimizer steps are told apart."""
    series = only(runs, name)
    assert len(series.end_s) == count
    assert (series.samples == samples).mean() > 0.9
    assert set(series.micro) == {micro}
    assert (np.diff(series.end_s) > 0).all()


def test_without_an_optimizer_each_backward_pass_is_a_step(runs):
    series = only(runs, "by_hand")
    assert series.micro.tolist() == [8.0] + [1.0] * 15  # after eight passes it was clear that none would come
    assert series.samples.tolist() == [32.0] + [4.0] * 15


def test_uc_008_tokens_are_those_of_the_batch(runs):
    assert set(only(runs, "text").tokens) == {28.0}


@pytest.mark.parametrize(
    ("name", "validations"), [("plain", 2), ("tensors", 3), ("ahead", 2), ("teacher", 0), ("gan", 0)]
)
def test_uc_006_validation_is_a_phase_and_a_teacher_is_none(runs, name, validations):
    phases = [phase.name for phase in seen(runs, name).phases]
    assert phases.count("validation") == validations
    assert set(phases) <= {"validation", "count"}


def test_validation_takes_no_time_from_the_steps_around_it(runs):
    found = seen(runs, "plain")
    first = next(phase for phase in found.phases if phase.name == "validation")
    (series,) = found.series
    before = series.end_s[series.end_s <= first.begin_s]
    assert len(before) == 11
    assert (series.end_s[len(before)] > first.end_s).all()


# ---- stages ----


def test_known_delays_come_out_within_5_per_cent_in_an_unmodified_script(runs):
    """Read 10, forward 20, optimizer 40 ms a batch; Catalyst's timer reports 57 and 26 (training.md, section 2)."""
    truth = json.loads((runs[0] / "known.json").read_text())
    series = only(runs, "known")
    assert len(series.end_s) == 24
    for name, seconds in truth.items():
        assert np.median(getattr(series, f"{name}_s")) == pytest.approx(np.median(seconds), rel=0.05)
    assert np.median(series.backward_s) < 0.002


def test_what_the_optimizer_calls_is_not_counted_as_its_own_time(runs):
    """Its closure sleeps for 2 ms outside of forward and backward, three times."""
    series = only(runs, "closure")
    whole = series.optimizer_s + series.forward_s + series.backward_s
    assert (series.forward_s > 0).all()
    assert (series.optimizer_s < whole).all()


def test_a_compiled_module_is_seen_and_a_compiled_function_has_no_forward(runs):
    assert np.isfinite(only(runs, "compiled").forward_s).all()
    assert np.isnan(only(runs, "compiled_step").forward_s).all()
    assert seen(runs, "compiled").told("setup")[-1]["compiled"] is True


def test_reading_decoding_and_augmenting_are_told_apart_in_the_workers(runs):
    found = seen(runs, "files")
    assert {e["worker"] for e in found.told("loader")} == {0, 1}
    times = assemble.loader_times(found)
    assert times is not None
    parts = (times.read_s, times.decode_s, times.augment_s)
    assert all(part is not None and part > 0 for part in parts)
    assert sum(parts) < times.fetch_s
    assert times.read_s < times.decode_s


# ---- what is known of the program ----


def test_setup_is_read_from_the_running_program(runs):
    setup = seen(runs, "files").told("setup")[-1]
    expected = {
        "model": "Sequential", "data": "ImageFolder", "samples": 16, "batch_per_accelerator": 4, "workers": 2,
        "prefetch": 2, "pinned": False, "optimizer": "SGD", "precision": "fp32", "image_size": 32, "seed": 0,
        "compiled": False, "memory_format": "nchw",
    }  # fmt: skip
    assert {name: setup[name] for name in expected} == expected
    assert seen(runs, "plain").told("setup")[-1]["validation_samples"] == 16


def test_precision_is_that_of_autocast(runs):
    assert seen(runs, "scaled").told("setup")[-1]["precision"] == "amp_bf16"


def test_operations_of_one_step_are_counted_forward_and_backward(runs):
    """Linear 4 → 1, batch 4: 4·4 MACs forward, and as many for the weight's gradient; x needs none."""
    work = seen(runs, "saved").told("work")[-1]
    assert work["flops_per_step"] == 2 * (16 + 16)
    assert work["gmacs"] == 4e-9
    assert work["parameters_m"] == 5e-6


def test_attention_on_a_cpu_is_counted_too(runs):
    """Sequences of 7, width 16: embedding nothing, attention 2·7·7·16, the last layer 7·16·50 MACs a sample."""
    work = seen(runs, "text").told("work")[-1]
    assert work["gmacs"] * 1e9 == pytest.approx(2 * 7 * 7 * 16 + 7 * 16 * 50)


def test_uc_019_the_affinity_at_the_start_and_in_the_loop_is_told(runs):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.fail("this test needs two CPUs")
    start = [e for e in seen(runs, "narrowed").told("affinity") if e["when"] == "loop"]
    assert len(start[-1]["cpus"]) == 1


def test_uc_002_what_watching_costs_is_measured_by_steps_with_and_without(runs):
    told = seen(runs, "short").told("overhead")
    assert len(told) == 1
    assert told[0]["method"].endswith("with hooks")
    series = only(runs, "short")
    off = np.isnan(series.forward_s)
    assert 70 <= off.sum() <= 90
    assert np.isfinite(series.samples).all()


# ---- parts ----


def test_a_hook_that_fails_is_noted_once_and_never_called_again():
    noted, calls = [], []

    def hook() -> None:
        calls.append(1)
        raise ZeroDivisionError("no")

    safe = Border(lambda name, error: noted.append((name, repr(error))))("forward", hook)
    assert [safe(), safe(), safe()] == [None] * 3
    assert calls == [1]
    assert noted == [("forward", "ZeroDivisionError('no')")]


def test_the_trial_turns_hooks_off_and_on_so_that_a_drift_cancels():
    trial = Trial(first=10, window=5)
    times = []
    for step in range(60):
        on = trial.on(step)
        drift = 1_000_000 + 2_000 * step
        trial.add(on, True, drift + (50_000 if on else 0))
        times.append(on)
        told = trial.told(4.0, drift)
        if told is not None:
            break
    assert times[10:50] == [on for on in trials.ORDER for _ in range(5)]
    assert told is not None
    assert told["fraction"] == pytest.approx(0.05, abs=0.015)


def test_long_steps_keep_their_stages_and_hooks_are_timed_by_themselves():
    trial = Trial(first=10, window=5)
    for step in range(30):
        assert trial.on(step)
        trial.add(True, True, 200_000_000)
    told = trial.told(4.0, 200_000_000)
    assert told is not None
    assert 0 < told["fraction"] < 0.01


def test_the_file_is_read_before_it_is_decoded_and_its_position_stays(tmp_path):
    told = []
    fetching = Fetching(lambda name, **fields: told.append(fields))
    path = tmp_path / "picture.jpg"
    path.write_bytes(b"x" * 3_000_000)
    decode = fetching.timed("decode", lambda file: file.read(5), fetching.warm)
    begin = fetching.begin()
    with path.open("rb") as file:
        assert decode(file) == b"xxxxx"
    fetching.end(begin, 1)
    fetching.tell()
    assert told[0]["file_bytes"] == 3_000_000
    assert told[0]["read_ns"] > 0
    assert told[0]["decode_ns"] > 0
    assert told[0]["augment_ns"] == -1


def test_a_file_that_cannot_be_read_is_left_to_whoever_opens_it(tmp_path):
    fetching = Fetching(lambda name, **fields: None)
    fetching.begin()
    fetching.warm(tmp_path / "missing.jpg")
    fetching.warm(object())
    assert fetching.files == 0


def test_another_sitecustomize_still_has_its_turn(tmp_path):
    other, folder = tmp_path / "other", tmp_path / "marks"
    other.mkdir()
    folder.mkdir()
    (other / "sitecustomize.py").write_text("print('mine')\n")
    environ = environment({**os.environ, "PYTHONPATH": str(other)}, folder, attach=True)
    code = "import sys; print([p for p in sys.path if 'attach' in p], 'torch' in sys.modules)"
    done = subprocess.run((sys.executable, "-c", code), env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "mine\n[] False\n"
    assert done.stderr == ""


def test_without_the_variable_sitecustomize_does_nothing():
    code = "import sys; print([name for name in sys.modules if 'gpuwise' in name], sys.meta_path[0])"
    environ = {**os.environ, "PYTHONPATH": str(ATTACH / "site")}
    environ.pop("GPUWISE_MARKS", None)
    done = subprocess.run((sys.executable, "-c", code), env=environ, capture_output=True, text=True, check=True)
    assert "AfterImport" not in done.stdout


def test_attaching_works_where_gpuwise_is_not_installed(tmp_path):
    environ = environment({"PATH": os.environ["PATH"]}, tmp_path, attach=True)
    code = "import sys; from gpuwise.meter import Meter; Meter(samples=1).step(); print(sys.meta_path[0])"
    done = subprocess.run(
        (sys.executable, "-S", "-c", "import sitecustomize\n" + code), env=environ, capture_output=True, text=True
    )
    assert "AfterImport" in done.stdout, done.stderr
    assert len(marks.parse({p.name: p.read_text() for p in tmp_path.iterdir()}).series[0].end_s) == 1


def test_a_failure_to_attach_is_written_down_and_the_program_runs(tmp_path):
    code = "import sys; sys.modules['multiprocessing'] = None; import sitecustomize; print('ran')"
    environ = environment({"PATH": os.environ["PATH"]}, tmp_path, attach=True)
    done = subprocess.run((sys.executable, "-S", "-c", code), env=environ, capture_output=True, text=True)
    assert done.stdout == "ran\n"
    found = marks.parse({p.name: p.read_text() for p in tmp_path.iterdir()})
    assert found.told("hook")[0]["name"] == "attach"
