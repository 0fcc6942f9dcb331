"""Marks, gauges and facts of a machine → a Record and what predictions may take from it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gpuwise.measure import assemble, kept, marks
from gpuwise.measure.assemble import Outcome, Watched
from gpuwise.measure.energy import HostSample, Sample
from gpuwise.measure.record import Cpus, Device, Host, Record, Setup
from gpuwise.measure.verdict import judge
from gpuwise.model import Measurement

SECOND = 10**9
HOST = Host(system="Linux", cpus=Cpus(host=16, allowed=16.0, rules={"affinity": 16.0, "quota": 12.5}, model="a CPU"))
GPU = Device(index=0, name="NVIDIA H100", vendor="NVIDIA", backend="cuda", accelerator="h100-sxm-80gb", driver="580")
CPU = Device(index=0, name="a CPU", vendor="AMD", backend="cpu", unified=True)
SETUP = Setup(workload="own")
TOLD = {"event": "setup", "model": "ResNet", "batch_per_accelerator": 32, "precision": "amp_bf16", "samples": 6400}


def text(*events: dict[str, object], rank: int = 0, steps: int = 60, samples: int = 32, start_s: float = 1.0) -> str:
    """A rank whose steps take 0.1 s: 10 wait, 30 forward, 60 backward ms."""
    begin = {"event": "start", "t": int(start_s * SECOND), "rank": rank, "unix_ns": 1, "versions": {"torch": "2.14"}}
    rows = [
        f"{int((start_s + 0.1 * (i + 1)) * SECOND)} {samples} -1 1 10000000 -1 30000000 60000000 -1 0 -1"
        for i in range(steps)
    ]
    told = [json.dumps({"t": int((start_s + 2) * SECOND), **event}) for event in events]
    return "\n".join([json.dumps(begin), *told, *rows]) + "\n"


def assembled(*events: dict[str, object], **more) -> Record:
    files = more.pop("files", None) or {"0-1.marks": text(*events)}
    values = {"setup": SETUP, "host": HOST, "outcome": Outcome(created_utc="2026-11-30T10:00:00Z"), **more}
    return assemble.record(marks=marks.parse(files), **values)


def on(backend: str) -> dict[str, object]:
    return {"event": "devices", "list": [{"backend": backend, "index": 0}]}


# ---- setup ----


def test_what_was_asked_for_stays_and_gaps_are_filled_by_what_the_program_told():
    record = assembled(TOLD, setup=Setup(workload="own", model="mine", software={"torch": "2.9"}))
    assert record.setup.model == "mine"
    assert record.setup.batch_per_accelerator == 32
    assert record.setup.software == {"torch": "2.9"}
    assert record.setup.workload == "own"


def test_of_several_ranks_the_first_tells_the_setup():
    other = {**TOLD, "model": "Other", "processes": 2}
    files = {"0-1.marks": text({**TOLD, "processes": 2}), "1-2.marks": text(other, rank=1)}
    record = assembled(files=files)
    assert (record.setup.model, record.setup.processes) == ("ResNet", 2)


def test_uc_009_the_speed_is_that_of_the_whole_job():
    """8 ranks, 32 samples each, 10 steps a second."""
    files = {f"{rank}-{rank + 1}.marks": text(TOLD, rank=rank) for rank in range(8)}
    record = assembled(files=files)
    assert record.pace.samples_per_s.value == pytest.approx(2560, rel=0.01)
    assert len(record.ranks) == 8


def test_samples_that_a_person_states_give_the_speed_and_the_batch_of_a_program_that_counts_none():
    """A loop of its own without a loader: 256 samples a step of two ranks, ten steps a second."""
    files = {f"{r}-{r + 1}.marks": text({"event": "setup", "processes": 2}, rank=r, samples=-1) for r in range(2)}
    record = assembled(files=files, setup=replace(SETUP, samples_per_step=256))
    assert record.pace.samples_per_s.value == pytest.approx(2560, rel=0.01)
    assert record.setup.batch_per_accelerator == 128
    assert assembled(files=files).pace.samples_per_s is None


# ---- nothing twice ----


def test_sums_that_a_worker_repeats_count_once_and_workers_are_added():
    def loader(worker: int, samples: int, ns: int) -> dict[str, object]:
        return {
            "event": "loader", "worker": worker, "samples": samples, "fetch_ns": ns, "read_ns": -1,
            "decode_ns": ns // 2, "augment_ns": 0, "split_samples": samples, "affinity": [0, 1],
        }  # fmt: skip

    record = assembled(loader(0, 10, 10**7), loader(1, 10, 10**7), loader(0, 30, 9 * 10**7), loader(1, 30, 3 * 10**7))
    assert record.loader.fetch_s == pytest.approx(0.002)
    assert record.loader.decode_s == pytest.approx(0.001)
    assert record.loader.read_s is None
    assert "not watched" in record.loader.reasons["read_s"]
    assert record.loader.augment_s == 0


def test_parts_of_a_sample_are_their_share_of_the_fetches_that_were_split():
    """The first fetches, which were split, took twice as long as the others: half of them is decoding."""
    split = {"split_samples": 25, "split_fetch_ns": 4 * 10**8, "decode_ns": 2 * 10**8}
    record = assembled({"event": "loader", "worker": -1, "samples": 100, "fetch_ns": 10**9, **split})
    assert record.loader.fetch_s == pytest.approx(0.010)
    assert record.loader.decode_s == pytest.approx(0.005)


def test_an_epoch_that_was_done_again_counts_once():
    first = {"event": "epoch", "number": 1, "loss": 2.0, "samples": 10, "train_s": 5.0}
    record = assembled(first, {**first, "number": 2}, {**first, "number": 2, "loss": 1.5, "accuracy_fraction": 0.4})
    assert [(e.number, e.loss) for e in record.epochs] == [(1, 2.0), (2, 1.5)]


def test_skipped_files_are_counted_by_the_session_that_found_most():
    record = assembled(
        {"event": "skipped", "counts": {"corrupt": 3}}, {"event": "skipped", "counts": {"corrupt": 4, "empty": 1}}
    )
    assert record.skipped == {"corrupt": 4, "empty": 1}


def test_steps_done_again_after_a_checkpoint_are_told():
    late = {"event": "start", "t": 99 * SECOND, "unix_ns": 10**12}
    resume = {"event": "resume", "t": 100 * SECOND, "from_step": 40}
    again = text(resume, start_s=100.0).replace('"unix_ns": 1,', f'"unix_ns": {late["unix_ns"]},')
    record = assembled(files={"0-1.marks": text(TOLD), "0-2.marks": again})
    assert record.sessions == 2
    assert record.pace.steps == 100
    assert "20 steps" in record.reasons["sessions"]


# ---- machine ----


def test_uc_019_a_process_left_with_one_cpu_is_told_beside_what_the_job_may_use():
    narrowed = {"event": "affinity", "when": "loop", "cpus": [0]}
    worker = {"event": "loader", "worker": 3, "samples": 1, "fetch_ns": 1, "affinity": [0]}
    record = assembled(narrowed, worker)
    assert (record.host.cpus.allowed, record.host.cpus.at_end, record.host.cpus.workers) == (16.0, 1.0, 1)


def test_an_unchanged_affinity_leaves_what_the_other_rules_allow():
    record = assembled(
        {"event": "affinity", "when": "loop", "cpus": list(range(16))}, watched=Watched(affinity=(16, None))
    )
    assert record.host.cpus.at_end == 12.5


FIRST = replace(GPU, uuid="GPU-aaaa")
SECOND_GPU = replace(GPU, index=1, uuid="GPU-bbbb", power_limit_w=400.0)


def told_as(**device: object) -> dict[str, object]:
    return {"event": "devices", "list": [{"backend": "cuda", "index": 0, **device}]}


def watched_by(*indices: int, **gauges: object) -> Watched:
    samples = [Sample(t_s=1.5 + 0.2 * n, device=i, **gauges) for n in range(25) for i in indices]  # type: ignore[arg-type]
    return Watched(samples=samples, asked_s=0.2)


@pytest.mark.parametrize("uuid", ["GPU-bbbb", "bbbb", "GPU-BBBB"])
def test_uc_028_the_device_is_that_of_the_uuid_that_the_program_told_whatever_its_number_there(uuid):
    """A program that limits itself to the second card calls it 0; its parent sees both."""
    memory = {"event": "memory", "index": 0, "allocated": 3 * 2**30}
    told = told_as(uuid=uuid)
    record = assembled(told, memory, devices=(FIRST, SECOND_GPU), watched=watched_by(0, 1, power_w=300.0))
    assert [device.uuid for device in record.devices] == ["GPU-bbbb"]
    assert [(load.index, load.allocated_gib) for load in record.device_loads] == [(1, 3.0)]


@pytest.mark.parametrize("strange", [{"uuid": "GPU-cccc"}, {"name": "Tesla T4"}])
def test_uc_028_a_device_that_the_parent_does_not_know_has_no_strangers_power(strange):
    record = assembled(told_as(**strange), devices=(FIRST, SECOND_GPU), watched=watched_by(1, power_w=300.0))
    (device,) = record.devices
    assert device.power_limit_w is None
    assert (device.uuid, device.name) == (strange.get("uuid"), strange.get("name", "unknown"))
    assert record.device_loads == ()


def test_a_device_of_that_number_and_name_is_the_one_where_no_uuid_was_told():
    record = assembled(told_as(index=1, name=GPU.name), devices=(FIRST, SECOND_GPU))
    assert record.devices == (SECOND_GPU,)


def test_devices_are_those_that_the_ranks_used_and_not_those_of_the_machine():
    four = tuple(replace(GPU, index=i, uuid=f"GPU-{i}") for i in range(4))
    files = {f"{r}-{r + 1}.marks": text(TOLD, told_as(index=r, uuid=f"GPU-{r}"), rank=r) for r in range(2)}
    record = assembled(files=files, devices=four)
    assert [device.uuid for device in record.devices] == ["GPU-0", "GPU-1"]
    assert told(record).accelerators == 2
    assert "devices" not in record.reasons


def test_devices_that_nobody_told_of_are_all_of_the_machine_and_no_more_count_than_there_are_processes():
    record = assembled(TOLD, devices=(FIRST, SECOND_GPU))
    assert record.devices == (FIRST, SECOND_GPU)
    assert "did not tell" in record.reasons["devices"]
    assert told(record).accelerators == 1


def test_two_machines_with_cards_of_one_number_have_two_devices():
    def of(rank: int) -> str:
        return text(told_as(index=0), rank=rank).replace('"unix_ns": 1,', f'"unix_ns": 1, "host": "node{rank}",')

    record = assembled(files={"0-1.marks": of(0), "1-2.marks": of(1)}, devices=(GPU,))
    assert len(record.devices) == 2


def test_a_neighbours_hot_card_is_no_load_of_the_job():
    """The job runs on device 0; the one beside it is throttled all the time."""
    samples = [
        Sample(t_s=1.5 + 0.2 * n, device=i, busy_fraction=0.97, throttle=("heat",) if i else ())
        for n in range(25)
        for i in range(2)
    ]
    record = assembled(
        TOLD, told_as(index=0), devices=(GPU, replace(GPU, index=1)), watched=Watched(samples=samples, asked_s=0.2)
    )
    assert [load.index for load in record.device_loads] == [0]
    assert judge(record).kind != "throttled"


def test_uc_035_a_gauge_of_memory_below_what_the_framework_allocated_is_dropped_with_a_note():
    memory = {"event": "memory", "index": 0, "allocated": 9.8 * 2**30}
    (load,) = assembled(memory, on("cuda"), devices=(GPU,), watched=watched_by(0, used_gib=0.9)).device_loads
    assert (load.used_gib, load.allocated_gib) == (None, pytest.approx(9.8))
    assert "0.9 GiB" in load.reasons["used_gib"]
    (fine,) = assembled(memory, on("cuda"), devices=(GPU,), watched=watched_by(0, used_gib=10.4)).device_loads
    assert fine.used_gib is not None


def test_a_program_on_the_cpu_beside_a_gpu_is_told_so():
    record = assembled(on("cpu"), devices=(GPU,))
    assert record.devices[0].backend == "cpu"
    assert "NVIDIA H100" in record.devices[0].reasons["unused"]


def test_a_device_that_only_the_program_knows_is_kept_as_it_told_it():
    record = assembled({"event": "devices", "list": [{"backend": "xpu", "index": 2, "name": "Arc"}]})
    assert (record.devices[0].name, record.devices[0].backend, record.devices[0].index) == ("Arc", "xpu", 2)


def test_peaks_of_the_allocator_stand_beside_the_gauges_in_gib():
    memory = {"event": "memory", "index": 0, "allocated": 3 * 2**30, "reserved": 4 * 2**30, "total": 80 * 2**30}
    samples = [Sample(t_s=2.0 + i, device=0, busy_fraction=0.5) for i in range(4)]
    record = assembled(memory, {**memory, "allocated": 2 * 2**30}, watched=Watched(samples=samples, asked_s=0.2))
    (load,) = record.device_loads
    assert (load.allocated_gib, load.reserved_gib) == (3.0, 4.0)
    assert load.busy_fraction.mean == 0.5


def test_uc_043_energy_without_a_steady_part_is_that_of_the_time_watched_and_finite():
    samples = [Sample(t_s=float(n), device=0, power_w=100.0) for n in range(61)]
    record = assembled(on("cuda"), files={"0-1.marks": text(on("cuda"), steps=3)}, devices=(GPU,),
                       watched=Watched(samples=samples, asked_s=1.0))  # fmt: skip
    assert record.pace is None
    assert record.device_loads[0].energy_j == pytest.approx(6000)
    json.dumps(kept.payload(record), allow_nan=False)


def test_uc_043_energy_after_a_resume_is_of_the_session_that_was_watched_without_the_pause():
    """60 s of 100 W after a pause of an hour are 6,000 J."""
    resumed = text(on("cuda"), start_s=3661.0, steps=600).replace('"unix_ns": 1,', f'"unix_ns": {10**13},')
    samples = [Sample(t_s=3661.0 + n, device=0, power_w=100.0) for n in range(61)]
    record = assembled(files={"0-1.marks": text(on("cuda")), "0-2.marks": resumed}, devices=(GPU,),
                       watched=Watched(samples=samples, asked_s=1.0))  # fmt: skip
    assert record.sessions == 2
    assert record.device_loads[0].energy_j == pytest.approx(6000, rel=0.02)


def test_gauges_are_of_the_steady_part_and_of_a_stall_also_of_what_came_after():
    samples = [HostSample(t_s=t, shm_used_fraction=u) for t, u in ((0.0, 0.9), (3.0, 0.2), (6.0, 0.2), (300.0, 0.87))]
    watched = Watched(host_samples=samples)
    assert assembled(watched=watched).host_load.shm_used_fraction.maximum == 0.2
    stalled = Outcome(created_utc="", status="failed", ending="stalled", failure="no progress for 300 s")
    assert assembled(watched=watched, outcome=stalled).host_load.shm_used_fraction.maximum == 0.87


# ---- stages, work and doubts ----


def test_stages_have_launches_and_waits_beside_them():
    record = assembled(
        {"event": "launches", "operations": 240}, {"event": "syncs", "count": 30, "steps": 60}, on("cpu")
    )
    assert record.stages.operations == 240
    assert record.stages.syncs == 0.5
    assert record.stages.forward_s == pytest.approx(0.03)
    assert "CPU" in record.stages.reasons["copy_s"]
    assert record.stages.reasons["all_reduce_s"] == "one process"


def test_operations_without_a_formula_leave_the_count_unknown_with_their_names():
    record = assembled({"event": "work", "parameters_m": 1.5, "missing": ["mine::kernel"]})
    assert record.work.flops_per_step is None
    assert "mine::kernel" in record.work.reasons["flops_per_step"]
    assert record.work.parameters_m == 1.5


@pytest.mark.parametrize(
    ("fraction", "error", "refused"), [(0.005, 0.0, False), (0.02, 0.015, False), (0.03, 0.005, True)]
)
def test_uc_002_watching_that_costs_more_than_1_per_cent_is_said(fraction, error, refused):
    record = assembled({"event": "overhead", "fraction": fraction, "error": error, "method": "x"})
    assert record.overhead_fraction == fraction
    assert ("overhead_fraction" in record.reasons) == refused


def test_a_negative_overhead_is_noise_and_told_as_none():
    assert assembled({"event": "overhead", "fraction": -0.01, "method": "x"}).overhead_fraction == 0


def test_hooks_that_failed_are_named():
    record = assembled({"event": "hook", "name": "forward", "failure": "KeyError(1)"})
    assert "forward: KeyError(1)" in record.reasons["hooks"]


def test_limits_are_those_that_were_measured():
    record = assembled({"event": "limit", "which": "feed", "value": 900.0, "low": 880.0, "high": 910.0})
    assert record.limits.feed_per_s.value == 900
    assert record.limits.device_per_s is None
    assert record.limits.reasons == {"device_per_s": "not measured"}


def test_no_marks_at_all_are_explained():
    record = assembled(files={"0-1.marks": ""})
    assert record.pace is None
    assert record.reasons["pace"] == assemble.NOBODY
    started = assembled(files={"0-1.marks": text(steps=0)})
    assert started.reasons["pace"] == assemble.NO_STEP


# ---- what rank --measured reads ----


def told(record: Record) -> Measurement:
    assert record.measurement is not None
    return record.measurement


def test_a_gpu_run_gives_speed():
    run = told(assembled(TOLD, on("cuda"), devices=(GPU,)))
    assert (run.device, run.accelerator, run.accelerators) == ("gpu", "h100-sxm-80gb", 1)
    assert run.samples_per_s.low == pytest.approx(320, rel=0.03), "as it was seen"
    assert run.samples_per_s.high == pytest.approx(320 / 0.9, rel=0.03), "without the 10 ms of waiting"
    assert run.samples_per_s.low < run.samples_per_s.value < run.samples_per_s.high
    assert run.machine["driver"] == "580"


def test_a_cpu_run_gives_counts_and_host_work_and_never_a_speed():
    work = {"event": "work", "gmacs": 3.6, "parameters_m": 21.3, "activations_m": 3.7, "operations": 36}
    loader = {"event": "loader", "worker": 0, "samples": 10, "fetch_ns": 10**8}
    run = told(assembled(TOLD, on("cpu"), work, loader, devices=(CPU,)))
    assert (run.device, run.accelerator, run.accelerators) == ("cpu", None, 1)
    assert run.samples_per_s is None
    assert (run.gmacs, run.parameters_m, run.activations_m, run.operations) == (3.6, 21.3, 3.7, 36)
    assert run.decode_s == pytest.approx(0.01)


def test_uc_001_times_of_launching_are_no_speed():
    run = told(assembled(TOLD, on("mps"), {"event": "timing", "clock": "launch"}))
    assert run.device == "gpu"
    assert run.samples_per_s is None


@pytest.mark.parametrize(
    ("ending", "own", "epochs"),
    [("patience", True, 7.0), ("target", True, 7.0), ("epochs", True, None), ("patience", False, None)],
)
def test_epochs_are_a_finding_only_where_accuracy_ended_a_training_on_own_data(ending, own, epochs):
    outcome = Outcome(created_utc="2026-11-30T10:00:00Z", status="finished", ending=ending)
    epoch = {"event": "epoch", "number": 7, "loss": 1.0, "samples": 10, "train_s": 5.0}
    run = told(assembled(TOLD, epoch, outcome=outcome, own_data=own))
    assert run.epochs == epochs
    assert (run.samples is None) == (not own)


def test_without_precision_or_batch_there_is_nothing_for_a_prediction():
    record = assembled()
    assert record.measurement is None
    assert "precision" in record.reasons["measurement"]
