"""Marks, gauges, host and devices of a run → its Record, with what `rank --measured` may take from it (`usable`).

Nothing is counted twice: sums that a process repeats are taken once, at their last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gpuwise.estimate import Interval
from gpuwise.measure import steps
from gpuwise.measure.energy import HostSample, Sample, Window, agreed, device_loads, host_load
from gpuwise.measure.marks import Marks
from gpuwise.measure.record import (
    Device,
    DeviceLoad,
    Ending,
    Epoch,
    Host,
    Limits,
    LoaderTimes,
    Pace,
    Record,
    Setup,
    Stages,
    Status,
    Work,
)
from gpuwise.measure.usable import measurement
from gpuwise.units import BYTES_PER_GIB, Seconds

NOBODY = (
    "no process of the program wrote marks: it is no Python program, runs isolated (python -I or -E), or imports "
    "neither torch nor gpuwise.meter"
)
NO_STEP = "torch was imported and no optimizer step followed"
UNTOLD = "the program did not tell which of the devices it used: these are all that it may use"
CUSTOM = "the data set reads and decodes by functions that are not watched"
MOST_OVERHEAD = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a Sampler saw, until now. affinity: CPUs of the main process now, and the fewest of a worker."""

    samples: Sequence[Sample] = ()
    host_samples: Sequence[HostSample] = ()
    asked_s: Seconds | None = None
    device_reasons: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    host_reasons: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How it stands with a run. reasons: what the session itself has to say, by field of Record."""

    created_utc: str
    status: Status = "running"
    ending: Ending | None = None
    failure: str | None = None
    ended_utc: str | None = None
    wall_s: Seconds | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


def record(
    *,
    marks: Marks,
    setup: Setup,
    host: Host,
    outcome: Outcome,
    devices: Sequence[Device] = (),
    watched: Watched | None = None,
    own_data: bool = True,
) -> Record:
    """Everything that is known so far. devices: those of the machine that the job may use; what it did use, it says.
    own_data: as in `measurement`."""
    seen = watched or Watched()
    pace = steps.pace(marks, setup.samples_per_step)
    used = used_devices(marks, devices, host)
    window = _window(marks, seen.host_samples if outcome.ending == "stalled" else ())
    result = Record(
        created_utc=outcome.created_utc,
        setup=merged_setup(setup, marks, pace),
        host=_with_affinity(host, marks, seen.affinity),
        status=outcome.status,
        ending=outcome.ending,
        failure=outcome.failure,
        ended_utc=outcome.ended_utc,
        wall_s=outcome.wall_s,
        sessions=marks.sessions,
        devices=used,
        pace=pace,
        stages=_stages(marks, pace, used),
        loader=loader_times(marks),
        limits=_limits(marks),
        epochs=_epochs(marks),
        work=_work(marks),
        host_load=host_load(seen.host_samples, window, seen.host_reasons) if seen.host_samples else None,
        device_loads=_loads(marks, seen, window, used, _numbers(marks, devices, host)),
        ranks=steps.ranks(marks) if pace is not None else (),
        skipped=_skipped(marks),
        **_overhead(marks),
        reasons=_reasons(marks, pace, devices) | dict(outcome.reasons),
    )
    told, why = measurement(result, own_data=own_data)
    return replace(result, measurement=told, reasons={**result.reasons, **why})


# ---- setup, host and devices ----


def merged_setup(setup: Setup, marks: Marks, pace: Pace | None) -> Setup:
    """What was asked for, with the gaps filled by what the program told; the program's own words of rank 0 count."""
    told: dict[str, Any] = {}
    for event in marks.told("setup"):
        if event["rank"] == 0:
            told.update((key, value) for key, value in event.items() if value is not None)
    names = {f.name for f in fields(Setup)} - {"workload", "command", "software"}
    new = {key: value for key, value in told.items() if key in names and _unset(setup, key)}
    starts = marks.told("start")
    versions = {str(k): str(v) for k, v in (starts[-1].get("versions") or {}).items()} if starts else {}
    micro = round(pace.micro_batches) if pace is not None and setup.accumulation == 1 else setup.accumulation
    new |= {"software": {**versions, **told.get("software", {}), **setup.software}}
    new |= {"accumulation": told.get("accumulation") or micro, **_originals(marks, setup)}
    return _with_batch(replace(setup, **new))


def _with_batch(setup: Setup) -> Setup:
    """The batch that the stated samples of a step come to, where the program told none."""
    parts = setup.processes * setup.accumulation
    if setup.batch_per_accelerator is not None or not setup.samples_per_step or setup.samples_per_step % parts:
        return setup
    return replace(setup, batch_per_accelerator=setup.samples_per_step // parts)


def _unset(setup: Setup, name: str) -> bool:
    value = getattr(setup, name)
    return value is None or (name, value) in (("processes", 1), ("cached", False), ("accumulation", 1))


def _originals(marks: Marks, setup: Setup) -> dict[str, float]:
    """Mean bytes and pixels of a file, as the loader met them."""
    sums = _loader_sums(marks)
    means = {"original_bytes": ("file_bytes", "files"), "original_px": ("px", "pictures")}
    return {
        name: sums[total] / sums[count]
        for name, (total, count) in means.items()
        if sums.get(count) and getattr(setup, name) is None
    }


def _with_affinity(host: Host, marks: Marks, seen: tuple[int | None, int | None]) -> Host:
    """UC-019: CPUs that the process was left with after its imports, and the fewest that a worker had."""
    told = [len(event["cpus"]) for event in marks.told("affinity") if event.get("cpus")]
    workers = [n for e in marks.told("loader") if e["worker"] >= 0 and (n := _cpus(e.get("affinity")))]
    others = [allowed for rule, allowed in host.cpus.rules.items() if rule != "affinity"]
    now = [float(n) for n in (seen[0], told[-1] if told else None) if n is not None]
    least = [n for n in (seen[1], *workers) if n is not None]
    cpus = replace(
        host.cpus,
        at_end=min((*now, *others)) if now else host.cpus.at_end,
        workers=min(least, default=host.cpus.workers),
    )
    return replace(host, cpus=cpus)


def _cpus(affinity: object) -> int | None:
    return len(affinity) if isinstance(affinity, list) else affinity if isinstance(affinity, int) else None


def used_devices(marks: Marks, devices: Sequence[Device], host: Host) -> tuple[Device, ...]:
    """The devices that the ranks told they compute on, each once, the machines of a job apart; all that were handed in
    while nobody has told any."""
    told = _told_devices(marks)
    if not told:
        return tuple(devices)
    machines = {event["file"]: event.get("host") for event in marks.told("start")}
    found: dict[tuple[str, ...], Device] = {}
    for file, one in told:
        device = _device(one, devices, host)
        own = (device.uuid,) if device.uuid else (device.backend, f"{device.index:06}")
        found[(str(machines.get(file)), *own)] = device
    return tuple(found[key] for key in sorted(found, key=lambda key: (key[0], found[key].backend, found[key].index)))


def _told_devices(marks: Marks) -> list[tuple[str, Mapping[str, Any]]]:
    """File of the process -> one device it told of."""
    events = marks.told("devices")
    return [(event["file"], one) for event in events for one in event.get("list", ()) if isinstance(one, dict)]


def _numbers(marks: Marks, devices: Sequence[Device], host: Host) -> dict[tuple[str, int], int]:
    """File and index of a device in that process -> its index in the record, under which its gauges are read."""
    return {
        (file, int(one.get("index", 0))): _device(one, devices, host).index
        for file, one in _told_devices(marks)
        if one.get("backend") != "cpu"
    }


def _device(told: Mapping[str, Any], devices: Sequence[Device], host: Host) -> Device:
    """What the machine knows of the device that a process told of, else the process's own words (UC-028)."""
    known = _known(told, devices)
    if known is not None:
        return known
    if told.get("backend") == "cpu":
        return _cpu(devices, host)
    names = {f.name for f in fields(Device)}
    given = {key: value for key, value in told.items() if key in names}
    return Device(**{"index": 0, "name": "unknown", "vendor": "unknown", "backend": "cuda", **given})


def _known(told: Mapping[str, Any], devices: Sequence[Device]) -> Device | None:
    """The device with the UUID that was told. Without one the device of that number, unless it has another name: the
    process may see other devices than its parent, and then no stranger's power is read."""
    alike = [device for device in devices if device.backend == told.get("backend")]
    if told.get("uuid"):
        return next((device for device in alike if device.uuid and _bare(device.uuid) == _bare(told["uuid"])), None)
    named = [device for device in alike if told.get("name") in (None, "unknown", device.name)]
    return next((device for device in named if device.index == told.get("index", 0)), None)


def _bare(uuid: object) -> str:
    """CUDA tells it without the kind in front, NVML with it."""
    return str(uuid).lower().removeprefix("gpu-").removeprefix("mig-")


def _cpu(devices: Sequence[Device], host: Host) -> Device:
    reasons = {"accelerator": "the job uses the CPU"}
    if devices:
        names = ", ".join(sorted({device.name for device in devices}))
        reasons["unused"] = f"a GPU is present ({names}) but the job uses the CPU"
    name = host.cpus.model or "CPU"
    return Device(index=0, name=name, vendor="unknown", backend="cpu", unified=True, reasons=reasons)


# ---- what the steps took ----


def _window(marks: Marks, until: Sequence[HostSample]) -> Window:
    """The steady part, else all that was watched: infinite borders are those of the samples, which are of this session
    alone. until: of a run that stalled, to look at what came after its steps."""
    steady = steps.steady(marks)
    begin, end = steady.window if steady is not None else (float("-inf"), float("inf"))
    return (begin, max(end, *(sample.t_s for sample in until))) if until else (begin, end)


def _stages(marks: Marks, pace: Pace | None, used: Sequence[Device]) -> Stages | None:
    if pace is None:
        return None
    result = steps.stages(marks, pace)
    launches, syncs = marks.told("launches"), marks.told("syncs")
    if launches:
        result = replace(result, operations=int(launches[-1]["operations"]))
    if syncs and syncs[-1].get("steps"):
        result = replace(result, syncs=syncs[-1]["count"] / syncs[-1]["steps"])
    reasons = dict(result.reasons)
    if used and all(device.backend == "cpu" for device in used) and result.copy_s is None:
        reasons |= dict.fromkeys(
            ("copy_s", "sync_s"), "the program computes on the CPU: there is no device to wait for"
        )
    if len(marks.series) < 2 and result.all_reduce_s is None:
        reasons["all_reduce_s"] = "one process"
    return replace(result, reasons=reasons)


def _loader_sums(marks: Marks) -> dict[str, float]:
    """Sums over workers: events are cumulative in a worker, so its last counts; -1 (not seen) is left out."""
    last: dict[tuple[object, object], Mapping[str, Any]] = {}
    for event in marks.told("loader"):
        last[event["file"], event.get("worker")] = event
    sums: dict[str, float] = {}
    for event in last.values():
        split = event.get("split_samples", event.get("samples", 0))
        for name, value in {**event, "split_samples": split}.items():
            if isinstance(value, int | float) and value >= 0 and name not in ("t", "worker", "rank"):
                sums[name] = sums.get(name, 0.0) + value
    return sums


def loader_times(marks: Marks) -> LoaderTimes | None:
    """Mean host seconds of a sample in the loader; None where no loader was seen."""
    sums = _loader_sums(marks)
    if not sums.get("samples"):
        return None
    fetch_s = sums["fetch_ns"] * 1e-9 / sums["samples"] if "fetch_ns" in sums else None
    parts = {f"{name}_s": _part(sums, name, fetch_s) for name in PARTS}
    reasons = {name: CUSTOM for name, value in parts.items() if value is None}
    return LoaderTimes(fetch_s=fetch_s, **parts, reasons=reasons)


def _part(sums: Mapping[str, float], name: str, fetch_s: Seconds | None) -> Seconds | None:
    """The share of a part in the fetches that were split, of the mean fetch: parts stay within the whole."""
    spent = sums.get(f"{name}_ns")
    if spent is None:
        return None
    if fetch_s is not None and sums.get("split_fetch_ns"):
        return fetch_s * spent / sums["split_fetch_ns"]
    return spent * 1e-9 / (sums.get("split_samples") or sums["samples"])


PARTS = ("read", "decode", "augment")


# ---- what was told ----


def _limits(marks: Marks) -> Limits:
    found = {
        event["which"]: Interval(value=event["value"], low=event["low"], high=event["high"])
        for event in marks.told("limit")
        if {"which", "value", "low", "high"} <= event.keys()
    }
    missing = {f"{which}_per_s": "not measured" for which in ("feed", "device") if which not in found}
    return Limits(feed_per_s=found.get("feed"), device_per_s=found.get("device"), reasons=missing)


def _epochs(marks: Marks) -> tuple[Epoch, ...]:
    """Each epoch once, as it was told last: a session that resumed does its unfinished one again."""
    names = {f.name for f in fields(Epoch)}
    told = {int(e["number"]): e for e in marks.told("epoch") if "number" in e and e["rank"] == 0}
    return tuple(Epoch(**{k: v for k, v in told[n].items() if k in names}) for n in sorted(told))


def _work(marks: Marks) -> Work | None:
    names = {f.name for f in fields(Work)} - {"reasons"}
    told: dict[str, Any] = {}
    for event in (event for event in marks.told("work") if event["rank"] == 0):
        told.update((key, value) for key, value in event.items() if value is not None)
    if not told:
        return None
    reasons = dict(told.get("reasons") or {})
    if told.get("missing"):
        reasons["flops_per_step"] = f"not counted, since these operations have no formula: {', '.join(told['missing'])}"
    return Work(**{key: value for key, value in told.items() if key in names}, reasons=reasons)


def _skipped(marks: Marks) -> dict[str, int]:
    """Samples left out, by reason: every session and rank looks at the same data, so the largest count holds."""
    most: dict[str, int] = {}
    for event in marks.told("skipped"):
        for reason, count in (event.get("counts") or {}).items():
            most[reason] = max(most.get(reason, 0), int(count))
    return most


def _overhead(marks: Marks) -> dict[str, Any]:
    told = marks.told("overhead")
    if not told:
        return {}
    last = told[-1]
    return {"overhead_fraction": max(0.0, float(last["fraction"])), "overhead_method": str(last.get("method", ""))}


def _loads(
    marks: Marks, seen: Watched, window: Window, used: Sequence[Device], numbers: Mapping[tuple[str, int], int]
) -> tuple[DeviceLoad, ...]:
    """Gauges of the devices that the job used, with the peaks that the framework's allocator told; a neighbour's on the
    same machine tell nothing of the job."""
    indices = {device.index for device in used if device.backend != "cpu"}
    samples = [sample for sample in seen.samples if not used or sample.device in indices]
    loads = {load.index: load for load in device_loads(samples, window, seen.asked_s, seen.device_reasons)}
    for event in marks.told("memory"):
        told = int(event.get("index", 0))
        index = numbers.get((event["file"], told), told)
        load = loads.get(index) or DeviceLoad(index=index, asked_s=seen.asked_s)
        loads[index] = replace(
            load,
            allocated_gib=_gib(event.get("allocated"), load.allocated_gib),
            reserved_gib=_gib(event.get("reserved"), load.reserved_gib),
        )
    return tuple(_agreeing(loads[index]) for index in sorted(loads))


def _agreeing(load: DeviceLoad) -> DeviceLoad:
    """Without a gauge of memory that the framework contradicts (UC-035)."""
    _, why = agreed(load.used_gib.maximum if load.used_gib else None, load.allocated_gib)
    return load if why is None else replace(load, used_gib=None, reasons={**load.reasons, "used_gib": why})


def _gib(told: object, known: float | None) -> float | None:
    if not isinstance(told, int | float) or told < 0:
        return known
    return max(told / BYTES_PER_GIB, known or 0.0)


def _reasons(marks: Marks, pace: Pace | None, devices: Sequence[Device]) -> dict[str, str]:
    said: dict[str, str] = {}
    if len(devices) > 1 and not _told_devices(marks):
        said["devices"] = UNTOLD
    if pace is None:
        said["pace"] = steps.why_none(marks) if marks.series else _why_no_step(marks)
    hooks = sorted({f"{event.get('name')}: {event.get('failure')}" for event in marks.told("hook")})
    if hooks:
        said["hooks"] = "switched off after an error of their own: " + "; ".join(hooks)
    overhead = marks.told("overhead")
    if overhead and overhead[-1]["fraction"] - overhead[-1].get("error", 0.0) > MOST_OVERHEAD:
        said["overhead_fraction"] = (
            f"watching cost {100 * overhead[-1]['fraction']:.1f} %: more than 1 %, times are that much long"
        )
    if marks.redone:
        said["sessions"] = f"{marks.redone} steps after the last checkpoint were done again and count once"
    return said


def _why_no_step(marks: Marks) -> str:
    return NO_STEP if any(event["event"] in ("start", "shape", "loader") for event in marks.events) else NOBODY
