"""Records written by hand → verdicts. The GPU cases: no GPU is needed to know what its gauges would mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.measure.scripted import CASES

from gpuwise.errors import InvalidInput
from gpuwise.estimate import Interval
from gpuwise.measure.record import (
    Cpus,
    Device,
    DeviceLoad,
    Gauge,
    Host,
    HostLoad,
    Limits,
    LoaderTimes,
    Pace,
    Rank,
    Record,
    Setup,
    Shift,
    Stages,
    Storage,
    Work,
)
from gpuwise.measure.verdict import Judgement, judge, needed_gib, shared_memory_need_gib
from gpuwise.measure.verdict.memory import batch_that_fits

A100 = Device(
    index=0, name="NVIDIA A100-SXM4-80GB", vendor="NVIDIA", backend="cuda", memory_gib=80.0, native_bf16=True,
    power_limit_w=300.0,
)  # fmt: skip
CPU = Device(index=0, name="EPYC", vendor="AMD", backend="cpu", native_bf16=False)
SIXTEEN = Host(system="Linux", cpus=Cpus(host=16, allowed=16.0))


def around(value: float, share: float = 0.01) -> Interval:
    return Interval(value=value, low=value * (1 - share), high=value * (1 + share))


def gauge(mean: float) -> Gauge:
    return Gauge(mean=mean, minimum=mean, maximum=mean, samples=100)


def paced(step_s: float, samples: float | None = 64.0, **fields: Any) -> Pace:
    rate = None if samples is None else around(samples / step_s)
    base = Pace(
        steps=500, warm_up=2, step_s=around(step_s), median_s=step_s, minimum_s=step_s, maximum_s=step_s,
        samples_per_s=rate, samples_per_step=samples, window_s=600.0,
    )  # fmt: skip
    return replace(base, **fields)


def run(
    step_s: float | None = None, device: Device | None = A100, load: dict[str, float] | None = None, **fields: Any
) -> Record:
    """A record; `load` are means of the device's gauges, the device's own fields included."""
    gauges = {k: gauge(v) if k not in ("allocated_gib", "reserved_gib") else v for k, v in (load or {}).items()}
    setup = {"workload": "w", "workers": 8, **fields.pop("setup", {})}
    return Record(
        created_utc="2026-11-30T12:00:00Z",
        setup=Setup(**setup),
        host=fields.pop("host", SIXTEEN),
        devices=fields.pop("devices", () if device is None else (device,)),
        pace=fields.pop("pace", None if step_s is None else paced(step_s)),
        device_loads=fields.pop("device_loads", (DeviceLoad(index=0, **gauges),) if load is not None else ()),  # type: ignore[arg-type]
        **fields,
    )


def told(judgement: Judgement) -> str:
    """Everything that a person reads of it."""
    parts = [judgement.sentence, *judgement.evidence, *judgement.cautions, judgement.fix or ""]
    parts += [part for f in judgement.findings for part in (f.message, f.fix or "")]
    parts += [judgement.gain.assumes] if judgement.gain else []
    return "\n".join(str(part) for part in parts)


def test_uc_002_what_measuring_costs_is_told_above_two_per_cent():
    stages = Stages(wait_s=0.0, forward_s=0.006, backward_s=0.013, operations=300)
    assert "measuring itself" not in told(judge(run(0.020, stages=stages, overhead_fraction=0.005)))
    assert "measuring itself cost 115.0 % of the time" in told(judge(run(0.043, stages=stages, overhead_fraction=1.15)))


def test_uc_010_busy_devices_that_draw_little_power_wait_for_communication():
    load = {"busy_fraction": 1.0, "power_w": 66.0, "bandwidth_fraction": 0.02}
    found = judge(run(load=load, setup={"processes": 8}))
    assert (found.kind, found.cause) == ("communication-bound", "collective")
    assert str(found.sentence).startswith("Waiting on communication (likely)")
    assert "100 % busy at 22 % of their power limit" in str(found.sentence)


def test_uc_010_one_busy_device_at_low_power_is_not_called_gpu_bound():
    found = judge(run(0.1, load={"busy_fraction": 1.0, "power_w": 66.0}, stages=Stages(launch_only=True)))
    assert found.kind == "unknown"


def test_uc_011_low_use_with_a_full_main_process_is_host_bound():
    found = judge(run(load={"busy_fraction": 0.31, "power_w": 66.0}, host_load=HostLoad(main_fraction=gauge(1.0))))
    assert (found.kind, found.cause) == ("host-bound", "launches")
    assert "larger batches" in str(found.fix)
    assert "some kernel ran" in told(found)


def test_uc_011_high_use_with_loud_memory_and_few_flops_is_memory_bound():
    load = {"busy_fraction": 0.92, "power_w": 213.0, "bandwidth_fraction": 0.8}
    work = Work(flops_per_step=1e12, peak_tflops=312.0)
    found = judge(run(0.1, load=load, work=work, stages=Stages(wait_s=0.001)))
    assert found.kind == "memory-bound"
    assert "more FLOPS do not" in str(found.fix)
    assert "some kernel ran" in told(found)


def test_uc_012_an_idle_cpu_beside_a_busy_gpu_is_healthy():
    found = judge(
        run(
            0.1,
            load={"busy_fraction": 0.97},
            stages=Stages(wait_s=0.001),
            host_load=HostLoad(job_fraction=gauge(0.12)),
        )
    )
    assert (found.kind, found.cause) == ("compute-bound", "device")
    assert str(found.sentence).startswith("GPU-bound, healthy")
    assert "more CPU cores will not help" in str(found.sentence)
    assert found.gain is None


@pytest.mark.parametrize("device", [A100, Device(index=0, name="M3", vendor="Apple", backend="mps", unified=True)])
def test_uc_013_a_value_read_in_every_step_is_found_and_its_cost_told(device):
    stages = Stages(wait_s=0.0, sync_s=0.006, syncs=1.0, forward_s=0.001, backward_s=0.002, launch_only=True)
    found = judge(run(0.010, device=device, stages=stages, load={"busy_fraction": 0.9}))
    assert (found.kind, found.cause) == ("host-bound", "sync")
    assert "60 % of the step" in str(found.sentence)
    assert found.gain is not None
    assert found.gain.factor == pytest.approx(2.5)
    assert "every 50 steps" in str(found.fix)


def test_uc_001_a_wait_on_a_device_that_works_all_the_time_is_its_work():
    stages = Stages(wait_s=0.0, sync_s=0.006, syncs=1.0, launch_only=True)
    found = judge(run(0.010, stages=stages, load={"busy_fraction": 0.99, "power_w": 270.0}))
    assert (found.kind, found.cause) == ("compute-bound", "device")


def test_uc_001_launch_times_alone_give_no_verdict():
    pace = paced(0.00003, reasons={"step_s": "launch time only: nobody waited for the device"})
    found = judge(run(pace=pace, stages=Stages(forward_s=0.00002, launch_only=True)))
    assert found.kind == "unknown"
    assert "launch time only" in str(found.sentence)


def test_uc_014_two_workers_of_sixteen_leave_the_gpu_waiting():
    found = judge(run(0.333, stages=Stages(wait_s=0.217), setup={"workers": 2}))
    assert (found.kind, found.cause) == ("input-bound", "workers")
    assert str(found.sentence).startswith("Input-bound, 65 % of the step")
    assert found.gain is not None
    assert found.gain.factor == pytest.approx(2.9, rel=0.02)
    assert str(found.gain.assumes) == "if data were free: 0.116 s a step"
    assert str(found.fix) == "Try more loader workers: 4, 8, 16."
    assert "a faster accelerator would gain almost nothing now" in told(found)


def test_uc_014_with_all_cpus_used_the_advice_is_not_more_workers():
    loader = LoaderTimes(fetch_s=0.03, read_s=0.001, decode_s=0.025, augment_s=0.004)
    full = run(
        0.333,
        stages=Stages(wait_s=0.217),
        loader=loader,
        host_load=HostLoad(job_fraction=gauge(0.98)),
        setup={"workers": 16, "feed": "exact", "original_px": 3.2e6},
    )
    assert judge(full).cause == "decode"
    assert "Re-encode" in str(judge(full).fix)
    cached = replace(full, setup=replace(full.setup, cached=True))
    assert "fast feed" in str(judge(cached).fix)
    fast = replace(cached, setup=replace(cached.setup, feed="fast"))
    assert str(judge(fast).fix) == "All 16 usable CPUs are busy: about 46 are needed."
    for record in (full, cached, fast):
        assert "more loader workers" not in told(judge(record))


def test_uc_015_bursts_name_the_loader_and_its_workers():
    pace = paced(0.5, period=4, median_s=0.1)
    found = judge(run(pace=pace, stages=Stages(wait_s=0.4), setup={"workers": 4}))
    assert (found.kind, found.cause) == ("input-bound", "bursts")
    assert "every 4 steps" in str(found.sentence)
    assert "only the best case" in str(found.sentence)


@pytest.mark.parametrize("median_s", [0.0377, 0.028])
def test_where_most_steps_wait_the_loader_is_slow_and_not_bursting(median_s):
    pace = paced(0.0355, period=2, median_s=median_s)
    found = judge(run(pace=pace, stages=Stages(wait_s=0.03), setup={"workers": 2}))
    assert (found.kind, found.cause) == ("input-bound", "workers")
    assert "best case" not in told(found)


def test_uc_016_small_files_on_network_storage_have_a_ceiling():
    host = replace(SIXTEEN, storage=Storage(filesystem="nfs4", network=True, read_mb_per_s=95.0))
    limits = Limits(device_per_s=around(3600.0))
    setup = {"original_bytes": 110e3, "samples": 1_200_000, "processes": 4}
    found = judge(run(pace=paced(64 / 850), host=host, limits=limits, setup=setup))
    assert (found.kind, found.cause) == ("storage-bound", "network storage")
    assert "864 samples/s" in str(found.sentence)
    assert "large shards" in str(found.fix)
    assert found.gain is not None
    assert found.gain.factor == pytest.approx(3600 / 850)


def test_uc_016_a_run_faster_than_its_storage_reads_from_memory():
    host = replace(SIXTEEN, storage=Storage(filesystem="nfs4", network=True, read_mb_per_s=95.0))
    record = run(
        pace=paced(64 / 3400), host=host, limits=Limits(device_per_s=around(3600.0)), setup={"original_bytes": 110e3}
    )
    assert judge(record).kind == "compute-bound"


def test_a_loader_that_spends_its_time_reading_is_bound_by_the_disk():
    loader = LoaderTimes(fetch_s=0.030, read_s=0.025, decode_s=0.004)
    found = judge(run(0.3, stages=Stages(wait_s=0.2), loader=loader, setup={"workers": 16}))
    assert (found.kind, found.cause) == ("storage-bound", "disk")
    assert "83 %" in str(found.sentence)


def test_uc_018_the_reason_for_few_cpus_is_told():
    cpus = Cpus(host=192, allowed=4.0, rules={"affinity": 4.0, "slurm": 4.0})
    host = replace(SIXTEEN, cpus=cpus)
    found = judge(
        run(
            0.3,
            host=host,
            stages=Stages(wait_s=0.2),
            host_load=HostLoad(job_fraction=gauge(0.97)),
            setup={"workers": 4},
        )
    )
    assert (found.kind, found.cause) == ("input-bound", "few CPUs")
    assert "192 on the host, 4 allowed by affinity, slurm" in str(found.sentence)
    idle = judge(run(0.3, host=host, stages=Stages(wait_s=0.2), setup={"workers": 2}))
    assert str(idle.fix) == "Try more loader workers: 4."
    assert "192 on the host, 4 allowed" in str(idle.sentence)


def test_uc_019_a_job_pinned_by_a_library_is_named_before_its_slow_input():
    cpus = Cpus(host=16, allowed=16.0, at_end=1.0, workers=1.0)
    found = judge(run(0.3, host=replace(SIXTEEN, cpus=cpus), stages=Stages(wait_s=0.2)))
    assert (found.kind, found.cause) == ("input-bound", "pinned")
    assert "pinned to 1 of 16 usable CPUs" in str(found.sentence)
    assert [f.cause for f in found.findings][:2] == ["pinned", "loader"]


TWO = replace(SIXTEEN, cpus=Cpus(host=2, allowed=2.0))


def on_two_cpus(used: float | None, stages: Stages, others: float = 0.0, **fields: Any) -> Record:
    """A job that computes on the CPU, and how much of two of them it uses."""
    load = HostLoad(job_fraction=None if used is None else gauge(used), others_fraction=gauge(others))
    return run(fields.pop("step_s", 0.1), device=CPU, host=TWO, stages=stages, host_load=load, **fields)


BEFORE_STEPS = Stages(wait_s=0.03, forward_s=0.02, backward_s=0.04, optimizer_s=0.005)


def test_a_cpu_that_loads_and_trains_gains_no_more_than_its_idle_cores_allow():
    limits = Limits(feed_per_s=around(2000.0), device_per_s=around(883.0))
    found = judge(on_two_cpus(0.86, BEFORE_STEPS, limits=limits, setup={"workers": 0}))
    assert (found.kind, found.cause) == ("input-bound", "workers")
    assert found.gain is not None
    assert found.gain.factor == pytest.approx(1 / 0.86)
    assert str(found.gain.assumes) == "if no CPU were idle: the job uses 86 % of its 2"
    idle = judge(on_two_cpus(0.3, BEFORE_STEPS, limits=limits, setup={"workers": 0}))
    assert idle.gain is not None
    assert idle.gain.factor == pytest.approx(883 / 640)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_full_cpus_that_load_and_train_are_not_input_bound(workers):
    found = judge(on_two_cpus(0.95, BEFORE_STEPS, setup={"workers": workers}))
    assert (found.kind, found.cause, found.gain) == ("compute-bound", "device", None)
    assert str(found.sentence) == (
        "Bound by the CPU, all of it in use: the job uses 95 % of its 2 CPUs, which load the data (30 % of the step is "
        "waiting for them) and train; more loader workers will not help."
    )
    assert "Try more loader workers" not in told(found)
    assert str(found.fix) == "Make a sample cheaper: fewer or simpler transformations, or smaller files."
    feeding = run(0.1, host=TWO, stages=BEFORE_STEPS, host_load=HostLoad(job_fraction=gauge(0.95)))
    assert judge(feeding).kind == "input-bound"


AT_WORK = Stages(wait_s=0.0, forward_s=0.03, backward_s=0.06, optimizer_s=0.005)


def test_idle_cores_are_named_where_one_thread_computes():
    found = judge(on_two_cpus(0.6, AT_WORK, setup={"threads": 1}))
    assert (found.kind, found.cause) == ("compute-bound", "threads")
    assert str(found.sentence) == "Compute-bound: the job uses 60 % of its 2 CPUs: 1 thread computes."
    assert "torch.set_num_threads" in str(found.fix)
    assert found.gain is not None
    assert found.gain.factor == pytest.approx(1 / 0.6)
    assert "healthy" not in told(found)


def test_threads_enough_that_find_no_work_are_told_apart():
    found = judge(on_two_cpus(0.6, AT_WORK, setup={"threads": 2}))
    assert "2 threads compute" in str(found.sentence)
    assert "larger batches" in str(found.fix)
    shared = judge(on_two_cpus(0.5, AT_WORK, others=0.45, setup={"threads": 1}))
    assert (shared.kind, shared.cause) == ("host-bound", "neighbour")
    assert "none is left for more threads" in str(shared.sentence)
    assert "healthy" not in told(shared)


@pytest.mark.parametrize("used", [0.76, 1.0, None])
def test_a_cpu_whose_cores_are_in_use_is_healthy(used):
    assert str(judge(on_two_cpus(used, AT_WORK)).sentence).startswith("Bound by the CPU's arithmetic, healthy")


def test_a_cpu_feeds_no_devices_such_as_itself():
    limits = Limits(feed_per_s=around(2000.0), device_per_s=around(700.0))
    record = on_two_cpus(0.9, AT_WORK, limits=limits)
    assert "such devices" not in told(judge(record))
    assert "the CPU training alone 700" in told(judge(record))
    assert record.devices_fed is None
    assert replace(record, devices=(A100,)).devices_fed == pytest.approx(2000 / 700)


def test_a_program_without_a_loader_is_not_told_to_try_workers():
    found = judge(run(0.1, stages=Stages(wait_s=0.06), setup={"workers": None}))
    assert (found.kind, found.cause) == ("input-bound", "loader")
    assert "makes each batch itself" in str(found.sentence)
    assert "Time what makes the batches" in str(found.fix)
    assert "workers" not in str(found.fix)
    seen = run(0.1, stages=Stages(wait_s=0.06), setup={"workers": None}, loader=LoaderTimes(fetch_s=0.01))
    assert "loader workers" in str(judge(seen).fix)


OWN = {"command": ("python", "train.py")}


@pytest.mark.parametrize(
    ("setup", "why", "fix"),
    [
        (OWN, "no process of the program wrote marks: it is no Python program, runs isolated", "without -I and -E"),
        (OWN, "torch was imported and no optimizer step followed", "no optimizer of torch made one"),
        (OWN, "too few steps: 9 were done", "Let the program run for more steps."),
        ({}, "too few steps: 9 were done", "Let it train longer: more steps, minutes or epochs."),
        ({}, "no step was marked", "Let it train longer: more steps, minutes or epochs."),
    ],
)
def test_what_to_do_fits_why_nothing_is_known(setup, why, fix):
    found = judge(run(setup=setup, reasons={"pace": why}))
    assert found.kind == "unknown"
    assert fix in str(found.fix)


def test_after_a_crash_the_error_comes_first():
    found = judge(run(status="failed", ending="failed", failure="ValueError: no such column.", setup=OWN))
    assert str(found.sentence) == "Stopped: the run ended early (failed): ValueError: no such column."
    assert str(found.fix) == "Look at the error first and mend it, then measure again."


def ranked(*own_and_wait: tuple[float, float]) -> tuple[Rank, ...]:
    return tuple(
        Rank(rank=n, compute_s=own, all_reduce_s=wait, step_s=own + wait) for n, (own, wait) in enumerate(own_and_wait)
    )


def test_like_ranks_under_noise_wait_for_each_other_and_none_is_slow():
    ranks = ranked((0.0170, 0.0130), (0.0189, 0.0111))
    found = judge(run(0.03, ranks=ranks, stages=Stages(all_reduce_s=0.0111), setup={"processes": 2}))
    assert (found.kind, found.cause) == ("communication-bound", "collective")
    assert "37 % of the step is waiting for the other process's gradients" in str(found.sentence)


def test_a_rank_that_is_hardly_longer_or_was_seen_for_few_steps_is_not_blamed():
    stages = Stages(wait_s=0.0, forward_s=0.03, backward_s=0.06, all_reduce_s=0.001, operations=9)
    near = run(0.1, ranks=ranked((0.079, 0.021), (0.099, 0.001)), stages=stages, setup={"processes": 2})
    found = judge(near)
    assert (found.kind, found.cause) == ("unknown", None)
    assert "the others wait 21 % of the step for rank 1" in str(found.sentence)
    slow = replace(near, ranks=ranked((0.05, 0.05), (0.099, 0.001)))
    assert judge(slow).cause == "straggler"
    assert judge(replace(slow, pace=paced(0.1, steps=31))).kind == "unknown"


def test_emulated_bf16_on_a_cpu_is_advised_to_be_fp32():
    found = judge(run(0.1, device=CPU, stages=AT_WORK, setup={"precision": "bf16"}))
    assert (found.cause, str(found.fix)) == ("bf16", "Train in fp32.")


def test_a_neighbour_that_slows_a_cpu_is_not_called_arithmetic():
    load = HostLoad(job_fraction=gauge(0.5), others_fraction=gauge(0.45), waiting_fraction=0.4)
    found = judge(run(0.1, device=CPU, host=TWO, stages=AT_WORK, host_load=load))
    assert (found.kind, found.cause) == ("host-bound", "neighbour")
    assert str(found.sentence).startswith("Host-bound: other processes take 45 % of the usable CPUs")


def said_of(record: Record) -> tuple[list[str], list[str]]:
    """Sentences, and pieces that stand in a table or within a sentence."""
    found = judge(record)
    whole = [found.sentence, found.fix, *(f.fix for f in found.findings)]
    pieces = [*found.evidence, *found.cautions, *(f.message for f in found.findings)]
    return [str(text) for text in whole if text is not None], [str(text) for text in pieces]


def test_every_sentence_ends_with_one_full_stop_and_no_piece_does():
    failed = [
        run(status="failed", ending=ending, failure=why)
        for ending in ("failed", "killed", "stalled", "out of memory", "loss not finite", "disk full", "data")
        for why in ("It broke.", "It broke...", "it broke", None)
    ]
    unused = run(1.0, device=replace(CPU, reasons={"unused": "a GPU is present."}), stages=AT_WORK)
    thin = run(reasons={"pace": "too few steps."})
    for record in (*failed, unused, thin, *(case.record(seed) for case in CASES for seed in range(3))):
        whole, pieces = said_of(record)
        assert [text for text in whole if not text.endswith(".") or ".." in text] == []
        assert [text for text in pieces if text.endswith(".") or ".." in text or ": ." in text] == []


def test_a_quota_and_a_neighbour_are_told_apart():
    slow = run(0.3, stages=Stages(wait_s=0.2))
    quota = replace(slow, host_load=HostLoad(quota_fraction=0.6))
    neighbour = replace(slow, host_load=HostLoad(others_fraction=gauge(0.5), waiting_fraction=0.4))
    resting = replace(slow, host_load=HostLoad(others_fraction=gauge(0.5), waiting_fraction=0.01))
    assert judge(quota).cause == "quota"
    assert judge(neighbour).cause == "neighbour"
    assert judge(resting).cause == "workers"
    assert "other processes took 50 % of the CPUs" in told(judge(resting))


def test_a_neighbour_is_not_blamed_for_a_loader_that_sleeps():
    stages, setup = Stages(wait_s=0.29), {"workers": 1}
    busy = {"others_fraction": gauge(0.9), "waiting_fraction": 0.44}
    asleep = HostLoad(job_fraction=gauge(0.005), **busy)
    at_work = HostLoad(job_fraction=gauge(0.1), **busy)
    assert judge(run(0.3, stages=stages, host_load=asleep, setup=setup)).cause == "workers"
    assert judge(run(0.3, stages=stages, host_load=at_work, setup=setup)).cause == "neighbour"


def test_the_larger_of_a_small_share_and_a_neighbour_comes_first():
    host = replace(SIXTEEN, cpus=Cpus(host=16, allowed=1.0, rules={"affinity": 1.0}))
    stages = Stages(wait_s=0.0, forward_s=0.03, backward_s=0.06)
    for own, others, cause in ((0.77, 0.23, "few CPUs"), (0.43, 0.57, "neighbour")):
        load = HostLoad(job_fraction=gauge(own), others_fraction=gauge(others), waiting_fraction=others)
        assert judge(run(0.1, device=CPU, host=host, stages=stages, host_load=load)).cause == cause


def test_waiting_for_a_cpu_is_no_time_of_an_operation():
    stages = Stages(wait_s=0.0, forward_s=0.008, backward_s=0.010, optimizer_s=0.002, operations=600)
    load = HostLoad(job_fraction=gauge(0.02), others_fraction=gauge(0.9), waiting_fraction=0.7)
    assert judge(run(0.021, device=CPU, stages=stages, host_load=load)).cause == "launches"


def test_uc_020_too_small_a_shared_memory_is_told_before_it_fails():
    setup = {"workers": 8, "prefetch": 2, "batch_per_accelerator": 256, "image_size": 224}
    need = shared_memory_need_gib(Setup(workload="w", **setup))
    assert need is not None
    assert need * 2**30 / 1e9 == pytest.approx(2.5, rel=0.02)
    host = replace(SIXTEEN, shm_gib=64 / 1024)
    found = judge(run(0.1, host=host, load={"busy_fraction": 0.97}, stages=Stages(wait_s=0.001), setup=setup))
    assert "shared memory" in [f.cause for f in found.findings]
    assert "shared memory is 64 MiB, the loader needs about 2.5 GB" in told(found)
    assert "--shm-size" in told(found)
    assert "emptyDir" in told(found)


def test_uc_020_a_bus_error_is_explained_by_the_mount():
    failure = "DataLoader worker (pid 4711) is killed by signal: Bus error."
    found = judge(run(host=replace(SIXTEEN, shm_gib=64 / 1024), status="failed", ending="failed", failure=failure))
    assert found.cause == "shared memory"
    assert str(found.sentence) == "Stopped: the loader died with 64 MiB of shared memory."


def test_uc_021_a_hang_with_full_shared_memory_says_so_and_forecasts_nothing():
    record = run(
        host=replace(SIXTEEN, shm_gib=1.0),
        host_load=HostLoad(shm_used_fraction=gauge(0.87)),
        status="failed",
        ending="stalled",
        failure="no progress for 300 s",
    )
    found = judge(record)
    assert found.cause == "shared memory"
    assert str(found.sentence) == "Stopped: no progress for 300 s, shared memory was 87 % full."


def test_uc_022_more_memory_than_the_card_has_is_spilling():
    card = replace(A100, name="RTX 4060", memory_gib=8.0)
    record = run(5.3, device=card, load={"allocated_gib": 13.0, "busy_fraction": 1.0}, stages=Stages(wait_s=0.0))
    found = judge(record)
    assert (found.kind, found.cause) == ("memory-bound", "spill")
    assert "spilling to host memory" in str(found.sentence)
    assert needed_gib(record) == 13.0


def test_uc_023_the_batch_is_fitted_on_allocated_memory():
    fit = batch_that_fits([1, 2, 4, 8], [1.1, 1.9, 3.5, 6.7], card_gib=16.0, others_gib=0.6)
    assert fit.per_sample_gib == pytest.approx(0.8, rel=0.01)
    assert fit.batch == 17
    assert fit.others_gib == 0.6
    assert batch_that_fits([1, 2], [1.1, 1.9], card_gib=1.0).batch == 0
    with pytest.raises(InvalidInput, match="needs two"):
        batch_that_fits([4, 4], [3.5, 3.5], card_gib=16.0)
    with pytest.raises(InvalidInput, match="does not grow"):
        batch_that_fits([1, 2], [3.0, 1.2], card_gib=16.0)


def test_heat_of_a_card_that_the_job_does_not_use_is_no_finding():
    own, beside = DeviceLoad(index=0, busy_fraction=gauge(0.98)), DeviceLoad(index=1, throttled={"heat": 1.0})
    found = judge(run(0.2, device_loads=(own, beside), stages=Stages(wait_s=0.001, forward_s=0.19)))
    assert found.kind == "compute-bound"
    assert "heat" not in {finding.cause for finding in found.findings}


def test_uc_024_heat_is_told_with_clocks_and_the_step_it_costs():
    clock = Gauge(mean=1200.0, minimum=1150.0, maximum=1380.0, samples=100)
    load = DeviceLoad(index=0, busy_fraction=gauge(0.98), clock_mhz=clock, throttled={"heat": 0.8})
    pace = paced(0.2, shift=Shift(at=21_600, before_s=1 / 6, after_s=0.2))
    found = judge(run(pace=pace, device_loads=(load,), stages=Stages(wait_s=0.001)))
    assert (found.kind, found.cause) == ("throttled", "heat")
    assert "from 1380 to 1150 MHz" in str(found.sentence)
    assert found.gain is not None
    assert found.gain.factor == pytest.approx(1.2)
    assert "judge other cards by the earlier one" in str(found.fix)


def test_uc_024_a_trial_of_a_minute_is_before_thermal_steady_state():
    found = judge(run(pace=paced(0.1, window_s=60.0), load={"busy_fraction": 0.97}, stages=Stages(wait_s=0.0)))
    assert "before thermal steady state: 60 s are too short" in told(found)
    long = judge(run(pace=paced(0.1, window_s=3600.0), load={"busy_fraction": 0.97}, stages=Stages(wait_s=0.0)))
    assert "thermal" not in told(long)


def test_a_busy_card_at_its_power_cap_is_no_fault():
    clock = Gauge(mean=1350.0, minimum=1300.0, maximum=1410.0, samples=100)
    load = DeviceLoad(
        index=0, busy_fraction=gauge(0.98), power_w=gauge(298.0), clock_mhz=clock, throttled={"power": 0.9}
    )
    assert judge(run(0.1, device_loads=(load,), stages=Stages(wait_s=0.001))).cause == "device"


def test_uc_025_without_any_gauge_the_stages_still_give_a_verdict():
    stages = Stages(wait_s=0.001, forward_s=0.03, backward_s=0.06, optimizer_s=0.005, operations=400)
    load = DeviceLoad(index=0, reasons={"busy_fraction": "Unknown Error", "power_w": "NotSupported"})
    assert judge(run(0.1, device_loads=(load,), stages=stages)).kind == "compute-bound"
    assert judge(run(0.1, device_loads=(load,), stages=replace(stages, wait_s=0.05))).kind == "input-bound"


def test_uc_026_a_board_with_shared_memory_neither_spills_nor_is_compared():
    thor = Device(index=0, name="Thor", vendor="NVIDIA", backend="cuda", memory_gib=None, unified=True)
    found = judge(run(0.1, device=thor, load={"allocated_gib": 90.0}, stages=Stages(wait_s=0.09)))
    assert found.kind == "input-bound"
    assert "not comparable" in told(found)


def test_uc_030_a_slice_is_judged_by_its_stages_and_said_not_to_be_measurable():
    slice_ = replace(A100, slice="1g.10gb")
    stages = Stages(wait_s=0.001, forward_s=0.03, backward_s=0.06, optimizer_s=0.005, operations=400)
    found = judge(run(0.1, device=slice_, device_loads=(DeviceLoad(index=0),), stages=stages))
    assert found.kind == "compute-bound"
    assert "not measurable on MIG" in told(found)


def test_uc_032_a_gpu_that_is_not_used_comes_first():
    idle = "a GPU is present (NVIDIA A100) but the job uses the CPU: torch 2.14.1 is built without CUDA and ROCm"
    stages = Stages(wait_s=0.001, forward_s=0.5, backward_s=0.4)
    found = judge(run(1.0, device=replace(CPU, reasons={"unused": idle}), stages=stages))
    assert found.cause == "cpu instead of gpu"
    assert str(found.sentence).startswith("A GPU is present (NVIDIA A100) but the job uses the CPU")
    assert "built without CUDA" in str(found.sentence)
    assert "no GPU is predicted from it" in told(found)


def test_uc_033_copies_on_an_apple_gpu_are_operations_that_fell_back():
    apple = Device(index=0, name="M2", vendor="Apple", backend="mps", unified=True)
    found = judge(run(0.1, device=apple, stages=Stages(wait_s=0.0, copy_s=0.08)))
    assert (found.kind, found.cause) == ("copy-bound", "fallback")
    assert "80 % of the step is copying" in str(found.sentence)
    assert "low confidence" in told(found)


def test_uc_034_a_small_network_that_only_launches_is_advised_to_try_the_cpu():
    host = Host(system="Linux", cpus=Cpus(host=2, allowed=2.0))
    stages = Stages(wait_s=0.001, forward_s=0.015, backward_s=0.02, launch_only=True)
    load = HostLoad(main_fraction=gauge(0.99))
    found = judge(run(0.040, host=host, load={"busy_fraction": 0.08}, stages=stages, host_load=load))
    assert (found.kind, found.cause) == ("host-bound", "launches")
    assert "may do better on the CPU" in str(found.fix)


def test_uc_035_a_silent_intel_gpu_is_judged_by_time():
    arc = Device(index=0, name="Arc A770", vendor="Intel", backend="xpu", memory_gib=16.0)
    found = judge(run(0.3, device=arc, device_loads=(DeviceLoad(index=0),), stages=Stages(wait_s=0.2)))
    assert found.kind == "input-bound"


def test_uc_037_emulated_bf16_is_told():
    t4 = replace(A100, name="Tesla T4", native_bf16=False)
    stages = Stages(wait_s=0.001, forward_s=0.03, backward_s=0.06, operations=400)
    found = judge(run(0.1, device=t4, stages=stages, setup={"precision": "amp_bf16"}))
    assert (found.kind, found.cause) == ("compute-bound", "bf16")
    assert "fp16 with loss scaling" in str(found.fix)
    assert judge(run(0.1, stages=stages, setup={"precision": "amp_bf16"})).cause == "device"


def test_uc_038_the_straggler_is_named_with_its_efficiency():
    of = [Rank(rank=n, compute_s=0.18 if n == 3 else 0.1, all_reduce_s=0.0 if n == 3 else 0.08) for n in range(4)]
    found = judge(run(0.18, ranks=tuple(of), stages=Stages(all_reduce_s=0.0), setup={"processes": 4}))
    assert (found.kind, found.cause) == ("communication-bound", "straggler")
    assert "rank 3" in str(found.sentence)
    assert "56 %" in str(found.sentence)


def test_uc_004_recompiles_that_take_most_of_the_window_lead():
    pace = paced(
        0.3,
        recompiles=3,
        recompile_s=113.1,
        window_s=203.0,
        reasons={"recompiles": "3 of 3 came with a new input shape"},
    )
    found = judge(run(pace=pace, load={"busy_fraction": 0.97}, stages=Stages(wait_s=0.001)))
    assert (found.kind, found.cause) == ("host-bound", "recompiles")
    assert "3 recompiles, 113 s, 56 % of the window" in str(found.sentence)
    assert "dynamic shapes" in str(found.fix)


def test_limits_decide_where_no_stage_was_seen():
    limits = Limits(feed_per_s=around(300.0), device_per_s=around(900.0))
    starved = judge(run(pace=paced(64 / 290), limits=limits, device_loads=()))
    assert (starved.kind, starved.gain is not None and round(starved.gain.factor, 1)) == ("input-bound", 3.1)
    assert "this CPU could feed 0.3 such devices" in told(starved)
    fed = judge(run(pace=paced(64 / 290), limits=Limits(feed_per_s=around(900.0), device_per_s=around(300.0))))
    assert (fed.kind, fed.cause) == ("compute-bound", "device")
    neither = judge(run(pace=paced(64 / 100), limits=Limits(feed_per_s=around(900.0), device_per_s=around(300.0))))
    assert neither.kind == "unknown"


def test_a_heavy_optimizer_is_named():
    stages = Stages(wait_s=0.001, forward_s=0.02, backward_s=0.03, optimizer_s=0.045)
    found = judge(run(0.1, device=CPU, stages=stages))
    assert (found.kind, found.cause) == ("compute-bound", "optimizer")
    assert found.gain is not None
    assert found.gain.factor == pytest.approx(1 / 0.55)


def test_tiny_operations_on_a_cpu_are_bound_by_calling_them():
    stages = Stages(wait_s=0.0, forward_s=0.002, backward_s=0.003, operations=800)
    found = judge(run(0.0055, device=CPU, stages=stages))
    assert (found.kind, found.cause) == ("host-bound", "launches")
    long = judge(run(0.0055, device=CPU, stages=replace(stages, operations=8)))
    assert long.cause == "device"


def test_gaps_between_launches_are_not_taken_for_work():
    stages = Stages(wait_s=0.0, forward_s=0.003, backward_s=0.006, optimizer_s=0.0005, operations=900)
    busy_host = HostLoad(main_fraction=gauge(1.0))
    assert judge(run(0.010, stages=stages, host_load=busy_host)).cause == "launches"
    assert judge(run(0.010, stages=replace(stages, operations=90), host_load=busy_host)).cause == "device"
    assert judge(run(0.010, stages=replace(stages, operations=None), host_load=busy_host)).kind == "unknown"
    assert judge(run(0.010, stages=replace(stages, operations=None))).kind == "unknown"
    low = run(0.010, stages=replace(stages, operations=90), load={"busy_fraction": 0.3})
    assert judge(low).kind == "unknown"


def test_waiting_for_gradients_is_communication():
    found = judge(run(0.1, stages=Stages(wait_s=0.0, all_reduce_s=0.04), setup={"processes": 2}))
    assert (found.kind, found.cause) == ("communication-bound", "collective")


def test_thin_evidence_is_unknown_and_says_what_is_missing():
    nothing = judge(run(reasons={"pace": "too few steps: 9 were done"}))
    assert (nothing.kind, str(nothing.sentence)) == ("unknown", "Unknown: too few steps: 9 were done.")
    assert nothing.fix is not None
    unseen = judge(run(0.1))
    assert unseen.kind == "unknown"
    spread = judge(run(0.1, device=CPU, stages=Stages(wait_s=0.005, forward_s=0.03, backward_s=0.02, rest_s=0.04)))
    assert spread.kind == "unknown"
    assert "everything else 40 %" in str(spread.sentence)


def test_cautions_name_what_makes_the_figures_less_sure():
    pace = replace(paced(0.1), step_s=around(0.1, 0.3))
    found = judge(
        run(
            pace=pace,
            stages=Stages(wait_s=0.05),
            overhead_fraction=0.04,
            host_load=HostLoad(others_fraction=gauge(0.3)),
        )
    )
    text = told(found)
    assert "measuring itself cost 4.0 %" in text
    assert "other processes took 30 % of the CPUs" in text
    assert "the mean is between 0.07 and 0.13 s" in text


def test_a_process_that_ran_out_of_memory_says_so():
    found = judge(run(status="failed", ending="out of memory", failure="CUDA out of memory. Tried to allocate 2 GiB"))
    assert (found.kind, found.cause) == ("unknown", "out of memory")
    assert "smaller batch" in str(found.fix)
    host = replace(SIXTEEN, memory_limit_gib=4.0)
    killed = judge(run(status="failed", ending="killed", host=host, host_load=HostLoad(peak_gib=3.95)))
    assert "held 4.0 GiB when it was killed" in str(killed.sentence)


def test_parts_that_were_slower_alone_than_in_training_do_not_count():
    """Measured while others had the machine: 34 samples/s in training, 4.7 from the device "alone"."""
    record = run(
        0.475,
        stages=Stages(wait_s=0.01, forward_s=0.12, backward_s=0.31, optimizer_s=0.033),
        limits=Limits(feed_per_s=around(1124.0), device_per_s=around(4.7)),
        device=CPU,
    )
    said = told(judge(record))
    assert "716 %" not in said
    assert "measured under another load" in said
