"""A measured run as facts: what ran, on what, and how long each part took. Values only, no judgement.

`steps` makes a Pace from step marks, `verdict` says what holds the run back, `compare` sets two runs side by side. A
figure that nobody could read is None, and `reasons` of the same record says why; it is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpuwise.estimate import Interval
from gpuwise.model import Measurement, Precision
from gpuwise.units import Fraction, Gib, Seconds, Watts

Status = Literal["running", "finished", "interrupted", "failed"]
Ending = Literal[
    "steps", "minutes", "epochs", "target", "patience", "precise", "program ended",
    "interrupted", "killed", "stalled", "out of memory", "loss not finite", "disk full", "data", "failed",
]  # fmt: skip
"""Why a run ended. The first seven are as wanted; "precise": the interval was narrow enough."""
Backend = Literal["cuda", "rocm", "xpu", "mps", "xla", "cpu"]
Feed = Literal["exact", "fast"]
EnergySource = Literal["counter", "polled", "modelled", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What was run, and how. command: of a person's own program, empty for reference training.

    data: where the samples came from, in words without a path. samples, validation_samples: in an epoch. image_size:
    px a side after cropping; original_bytes, original_px: mean of a file, and of its width × height. accumulation:
    micro-batches an optimizer step. samples_per_step: of the whole job in an optimizer step, as the person states it
    for a program whose marks do not count them. processes: ranks of the job. threads: of the main process. cached: read
    from re-encoded files.
    """

    workload: str
    command: tuple[str, ...] = ()
    model: str | None = None
    data: str | None = None
    samples: int | None = None
    validation_samples: int | None = None
    classes: int | None = None
    image_size: int | None = None
    original_bytes: float | None = None
    original_px: float | None = None
    batch_per_accelerator: int | None = None
    samples_per_step: int | None = None
    accumulation: int = 1
    precision: Precision | None = None
    memory_format: Literal["nchw", "nhwc"] | None = None
    compiled: bool | None = None
    optimizer: str | None = None
    feed: Feed | None = None
    cached: bool = False
    workers: int | None = None
    prefetch: int | None = None
    pinned: bool | None = None
    seed: int | None = None
    processes: int = 1
    threads: int | None = None
    software: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpus:
    """host: logical CPUs of the machine. allowed: those the job may use, the least of what each rule in `rules` leaves
    (affinity, cpuset, quota, slurm; a quota may be a fraction). at_end: allowed when the run ended; workers: least
    affinity that a loader worker had."""

    host: int
    allowed: float
    rules: Mapping[str, float] = field(default_factory=dict)
    model: str | None = None
    at_end: float | None = None
    workers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where the data lie. filesystem: type of the mount (ext4, nfs4, overlay …). network: it is on another machine.
    read_mb_per_s: 10^6 bytes a second that one reader saw, by `ceilings`."""

    filesystem: str | None = None
    network: bool | None = None
    free_gib: Gib | None = None
    read_mb_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator (or the CPU as one). index: as the framework numbers it. accelerator: its id in the catalogue.

    memory_gib: what the driver reports. unified: shared with the host. slice: MIG profile such as 1g.10gb.
    """

    index: int
    name: str
    vendor: str
    backend: Backend
    uuid: str | None = None
    accelerator: str | None = None
    memory_gib: Gib | None = None
    unified: bool = False
    slice: str | None = None
    driver: str | None = None
    capability: str | None = None
    native_bf16: bool | None = None
    power_limit_w: Watts | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine without its devices. container: docker, podman, slurm, wsl … or None. shm_gib: size of the shared
    memory mount, shm_used_fraction: at the run's start."""

    system: str
    cpus: Cpus
    memory_gib: Gib | None = None
    available_gib: Gib | None = None
    memory_limit_gib: Gib | None = None
    shm_gib: Gib | None = None
    shm_used_fraction: Fraction | None = None
    storage: Storage = Storage()
    container: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One quantity as it was sampled in the steady part, in the unit that its field's name states."""

    mean: float
    minimum: float
    maximum: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLoad:
    """What a device showed in the steady part.

    busy_fraction: time in which any kernel ran (NVML's utilisation): not how much of the chip worked. sm_fraction,
    bandwidth_fraction: how much of it did, where counters exist. throttled: reason -> share of the samples.
    energy_j with energy_source; interval_s: between samples, really; asked_s: as it was asked for.
    allocated_gib, reserved_gib: peak of the framework's allocator; used_gib: of the whole device, others included.
    """

    index: int
    busy_fraction: Gauge | None = None
    sm_fraction: Gauge | None = None
    bandwidth_fraction: Gauge | None = None
    power_w: Gauge | None = None
    clock_mhz: Gauge | None = None
    temperature_c: Gauge | None = None
    used_gib: Gauge | None = None
    allocated_gib: Gib | None = None
    reserved_gib: Gib | None = None
    others_gib: Gib | None = None
    throttled: Mapping[str, Fraction] = field(default_factory=dict)
    energy_j: float | None = None
    energy_source: EnergySource = "unknown"
    interval_s: Seconds | None = None
    asked_s: Seconds | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """What the host showed in the steady part. All *_fraction of CPUs are shares of the allowed ones.

    job_fraction: used by the job and its workers. others_fraction: by everybody else. main_fraction: of one CPU, by the
    busiest main process. waiting_fraction: share of the job's CPU time asked for and not given (runnable, not running).
    quota_fraction: share of periods in which the cgroup was throttled. read_mb_per_s: 10^6 bytes a second from storage.
    io_fraction: share of the time in which a loader process waited for storage. peak_gib: resident memory of the job.
    """

    job_fraction: Gauge | None = None
    others_fraction: Gauge | None = None
    main_fraction: Gauge | None = None
    waiting_fraction: Fraction | None = None
    quota_fraction: Fraction | None = None
    read_mb_per_s: float | None = None
    io_fraction: Fraction | None = None
    shm_used_fraction: Gauge | None = None
    peak_gib: Gib | None = None
    energy_j: float | None = None
    energy_source: EnergySource = "unknown"
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Mean seconds of one optimizer step by stage, in the steady part, of the slowest rank. None: not seen.

    forward and backward hold the device's time where there are device events, else the host's (then `launch_only` is
    true on an accelerator: times of launching, not of working). rest_s: what no stage explains. syncs: waits for the
    device that the program itself asked for (item, print), a step, with their sync_s.
    """

    wait_s: Seconds | None = None
    copy_s: Seconds | None = None
    forward_s: Seconds | None = None
    backward_s: Seconds | None = None
    all_reduce_s: Seconds | None = None
    optimizer_s: Seconds | None = None
    rest_s: Seconds | None = None
    syncs: float | None = None
    sync_s: Seconds | None = None
    operations: int | None = None
    launch_only: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderTimes:
    """Mean host seconds of one sample inside the loader (its worker, or the main process). fetch_s: all of it."""

    fetch_s: Seconds | None = None
    read_s: Seconds | None = None
    decode_s: Seconds | None = None
    augment_s: Seconds | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """The speed changed for good at step `at`: mean step before and after."""

    at: int
    before_s: Seconds
    after_s: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast the steady part was. A step is an optimizer step of the whole job; steps and samples of all ranks.

    step_s: mean with its 80 % interval, validation and compilation left out; median_s, minimum_s, maximum_s: of single
    steps. start_s: what the first steps took beyond the steady one, with any time to compile. recompiles, recompile_s:
    rare, very long steps later on. period: steps after which a burst repeats (None: no bursts). shift: the last change
    of level; step_s is then that of the later level. validation_s: one validation, every validation_every steps.
    window_s: length of the steady part. shown_s: step times for a drawing, at most 500, each the mean of `shown_every`
    steps.
    """

    steps: int
    warm_up: int
    step_s: Interval
    median_s: Seconds
    minimum_s: Seconds
    maximum_s: Seconds
    samples_per_s: Interval | None = None
    tokens_per_s: float | None = None
    samples_per_step: float | None = None
    micro_batches: float = 1.0
    start_s: Seconds = 0.0
    recompiles: int = 0
    recompile_s: Seconds = 0.0
    period: int | None = None
    shift: Shift | None = None
    validation_s: Seconds | None = None
    validation_every: float | None = None
    window_s: Seconds = 0.0
    shown_s: tuple[float, ...] = ()
    shown_every: int = 1
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the parts can do alone, samples/s of the whole job. feed_per_s: the loader with its workers and no training;
    device_per_s: training on batches already on the device."""

    feed_per_s: Interval | None = None
    device_per_s: Interval | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One pass. accuracy_fraction: of the held-out samples, correct of validated; None where nothing was held out."""

    number: int
    loss: float
    samples: int
    train_s: Seconds
    validation_s: Seconds | None = None
    accuracy_fraction: Fraction | None = None
    correct: int | None = None
    validated: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Counts of the model for one sample. flops_per_step: 2 × MACs, forward and backward, of one optimizer step of the
    job. peak_tflops: the rate that MFU is measured against, with its origin in `peak_source`."""

    gmacs: float | None = None
    activations_m: float | None = None
    stored_m: float | None = None
    parameters_m: float | None = None
    operations: int | None = None
    flops_per_step: float | None = None
    peak_tflops: float | None = None
    peak_source: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One process of the job: its own work a step, and its wait for the others in collectives."""

    rank: int
    host: str | None = None
    compute_s: Seconds | None = None
    all_reduce_s: Seconds | None = None
    step_s: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything that is known of one run. created_utc, ended_utc: ISO 8601.

    overhead_fraction: what measuring cost, by `overhead_method`. skipped: reason -> samples left out of the data.
    sessions: times it was started, resumes included. failure: the error in one line. measurement: what `rank
    --measured` reads, None until there is something to tell. folder: name of the folder that holds its marks and its
    checkpoint, below the place where runs are kept.
    """

    created_utc: str
    setup: Setup
    host: Host
    schema: int = 1
    kind: str = "run"
    status: Status = "running"
    ending: Ending | None = None
    failure: str | None = None
    ended_utc: str | None = None
    wall_s: Seconds | None = None
    sessions: int = 1
    devices: tuple[Device, ...] = ()
    pace: Pace | None = None
    stages: Stages | None = None
    loader: LoaderTimes | None = None
    limits: Limits = Limits()
    epochs: tuple[Epoch, ...] = ()
    work: Work | None = None
    host_load: HostLoad | None = None
    device_loads: tuple[DeviceLoad, ...] = ()
    ranks: tuple[Rank, ...] = ()
    overhead_fraction: float | None = None
    overhead_method: str | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    measurement: Measurement | None = None
    folder: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def devices_fed(self) -> float | None:
        """How many such devices this host could feed; None where the feed or the device was not measured alone, or
        where the device is the host's own CPU."""
        if all(device.backend == "cpu" for device in self.devices):
            return None
        feed, device = self.limits.feed_per_s, self.limits.device_per_s
        return None if feed is None or device is None else self.setup.processes * feed.value / device.value

    @property
    def mfu(self) -> float | None:
        """Model FLOPs utilisation: FLOPs of a step over what all devices of the job could do in its time. None where
        the FLOPs, the peak or the time are not known."""
        work, pace = self.work, self.pace
        if work is None or pace is None or not work.flops_per_step or not work.peak_tflops or "step_s" in pace.reasons:
            return None
        return work.flops_per_step / (pace.step_s.value * work.peak_tflops * 1e12 * max(self.setup.processes, 1))
