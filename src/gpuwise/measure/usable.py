"""What predictions may use of a run: `rank --measured` reads it.

A GPU run gives the speed of its device. A CPU run gives counts, host work a sample, memory and epochs, and never a
speed: a CPU says nothing about how fast a GPU is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import exp, hypot, log
from typing import NamedTuple

from gpuwise.estimate import Z80, Interval
from gpuwise.measure.compare import BETWEEN_RUNS_LOG_SD, accelerators
from gpuwise.measure.record import DeviceLoad, Record, Work
from gpuwise.measure.verdict import judge, needed_gib
from gpuwise.measure.verdict.facts import limits_outrun, loads_of
from gpuwise.measure.verdict.special import HEAT
from gpuwise.model import Measurement
from gpuwise.predict.feed import storage_per_s
from gpuwise.units import Fraction, Seconds

MOST_WAIT: Fraction = 0.05
"""Of a step that may be waiting for data in a speed that is taken for the device's."""
BUSY: Fraction = 0.8
"""Of the time that a device has to be busy to be called fed where nobody saw whether it waited for data."""
OTHERS: Fraction = 0.25
"""Of the CPUs that others may not take in a speed that is taken for the device's."""
SLOWED: Fraction = 0.2
"""What a device that is hot all the time loses, where its clock does not show more: 1,380 → 1,150 MHz (UC-024)."""
FEWEST_STEPS = 30
"""Steady steps of a run that failed, below which it has no speed to tell."""


def measurement(run: Record, *, own_data: bool = True) -> tuple[Measurement | None, dict[str, str]]:
    """What predictions may use of the run, or why there is nothing, and why a part of it is missing or corrected.
    own_data: it was trained on the person's own, so that its epochs and samples say something."""
    setup = run.setup
    if setup.precision is None or setup.batch_per_accelerator is None:
        return None, {"measurement": "precision or batch is not known"}
    if run.pace is None and run.work is None:
        return None, {"measurement": run.reasons.get("pace", "nothing was measured")}
    gpus = accelerators(run)
    work = run.work or Work()
    speed, note = device_speed(run) if gpus else (None, "")
    decode_s, why = host_work(run)
    return Measurement(
        created_utc=run.created_utc,
        workload=setup.workload,
        device="gpu" if gpus else "cpu",
        accelerator=run.devices[0].accelerator if gpus else None,
        accelerators=gpus or 1,
        precision=setup.precision,
        batch_per_accelerator=setup.batch_per_accelerator,
        samples_per_s=speed,
        memory_format=setup.memory_format,
        compiled=setup.compiled,
        peak_memory_gib=needed_gib(run),
        decode_s=decode_s,
        storage_per_s=_stored(run),
        curve_fraction=_curve(run) if own_data else (),
        epochs=_epochs_to_the_end(run) if own_data else None,
        samples=setup.samples if own_data else None,
        gmacs=work.gmacs,
        activations_m=work.activations_m,
        stored_m=work.stored_m,
        parameters_m=work.parameters_m,
        operations=work.operations,
        software=setup.software,
        machine=_machine(run),
        seed=setup.seed,
        note=note,
    ), {"decode_s": why} if why else {}


# ---- the speed of the device ----


def device_speed(run: Record) -> tuple[Interval | None, str]:
    """Samples/s that the device does, the host apart, from which other devices are predicted; and how it was had, or
    why there is none.

    Measured alone, if it was and the run waited for data. Else the speed seen is the least: what may have held the
    device back leaves a range up to the speed without it. A card that grew slower for heat is taken as it was before
    (UC-024). Two runs differ by more than the steps of one: the interval holds that too.
    """
    why = _no_speed(run)
    if why is not None or run.pace is None or run.pace.samples_per_s is None:
        return None, why or ""
    alone, wait = run.limits.device_per_s, _waiting(run)
    if alone is not None and not limits_outrun(run) and (wait is None or wait > MOST_WAIT):
        return _doubted(alone, ["the device alone: in training it may have waited for data"], _of_heat(run))
    if wait is None and _busy(run) is None:
        return None, "nobody saw whether the device waited for data, or how busy it was"
    cool, notes = _cooled(run)
    seen = run.pace.samples_per_s
    return _doubted(_times(seen, cool, cool, cool), notes, (*_of_data(run), *_of_host(run), *_of_heat(run)))


def _no_speed(run: Record) -> str | None:
    """Why nothing can be said: times of launching (UC-001), memory that spilled to the host (UC-022), a failure."""
    pace = run.pace
    if pace is None:
        return run.reasons.get("pace", "")
    if pace.samples_per_s is None or "step_s" in pace.reasons:
        return pace.reasons.get("samples_per_s", "")
    if _spilled(run):
        return "memory spilled to the host"
    steady = pace.steps - max(pace.warm_up, pace.shift.at if pace.shift else 0)
    if run.status == "failed" and steady < FEWEST_STEPS:
        return f"the run failed after {steady} steady steps: {FEWEST_STEPS} are needed"
    return None


class _Doubt(NamedTuple):
    """Something that may have held the device back. free: its speed without it / the speed seen, at most."""

    free: float
    note: str


def _doubted(speed: Interval, notes: Iterable[str], doubts: Iterable[_Doubt]) -> tuple[Interval, str]:
    """From the speed itself up to that without what weighs most, with what another run would differ by."""
    known = tuple(doubts)
    free = max((doubt.free for doubt in known), default=1.0)
    wide = _between_runs(_times(speed, 1.0, free**0.5, free))
    return wide, "; ".join((*notes, *(doubt.note for doubt in known)))


def _of_data(run: Record) -> Iterator[_Doubt]:
    wait, busy = _waiting(run), _busy(run)
    if wait is not None and wait > MOST_WAIT:
        yield _Doubt(1 / (1 - min(wait, 0.99)), "the run waited for data: between its speed with and without")
    if wait is None and busy is not None and busy < BUSY:
        note = f"at least that: the device was busy {100 * busy:.0f} % of the time, and nobody saw what it waited for"
        yield _Doubt(1 / max(busy, 0.01), note)


def _of_heat(run: Record) -> Iterator[_Doubt]:
    """Hot from the start: nobody saw how fast it is when cool."""
    if not _grew_hot(run) and (hot := _hot(run)) > 0:
        note = f"at least that: the device lowered its clock {100 * hot:.0f} % of the time, for heat or its supply"
        yield _Doubt(max(1 + SLOWED * hot, *(_clock_ratio(load) for load in loads_of(run))), note)


def _of_host(run: Record) -> Iterator[_Doubt]:
    """Neighbours on the CPUs, and a program that launches or waits more than the device works."""
    gauge = run.host_load.others_fraction if run.host_load else None
    if gauge is not None and gauge.mean >= OTHERS:
        note = f"at least that: other processes took {100 * gauge.mean:.0f} % of the CPUs"
        yield _Doubt(1 / (1 - min(gauge.mean, 0.95)), note)
    verdict = judge(run)
    if verdict.kind == "host-bound" and verdict.cause in ("launches", "sync"):
        note = f"at least that: the host holds the device back ({verdict.cause})"
        yield _Doubt(verdict.gain.factor if verdict.gain else 1.0, note)


def _cooled(run: Record) -> tuple[float, list[str]]:
    """Speed before the device grew hot / the speed after."""
    pace = run.pace
    if not _grew_hot(run) or pace is None or pace.shift is None:
        return 1.0, []
    return pace.step_s.value / pace.shift.before_s, ["before the device grew hot and slower"]


def _grew_hot(run: Record) -> bool:
    shift = run.pace.shift if run.pace else None
    return shift is not None and run.pace is not None and shift.before_s < run.pace.step_s.value and _hot(run) > 0


def _hot(run: Record) -> Fraction:
    return max((load.throttled.get(reason, 0.0) for load in loads_of(run) for reason in HEAT), default=0.0)


def _clock_ratio(load: DeviceLoad) -> float:
    clock = load.clock_mhz
    return clock.maximum / clock.mean if clock is not None and clock.mean else 1.0


def _times(speed: Interval, low: float, middle: float, high: float) -> Interval:
    return Interval(value=speed.value * middle, low=speed.low * low, high=speed.high * high)


def _between_runs(speed: Interval) -> Interval:
    """With what another run of the same would differ by."""
    half = Z80 * BETWEEN_RUNS_LOG_SD
    below, above = (hypot(log(side), half) for side in (speed.value / max(speed.low, 1e-9), speed.high / speed.value))
    return Interval(value=speed.value, low=speed.value * exp(-below), high=speed.value * exp(above))


def _waiting(run: Record) -> Fraction | None:
    """Share of the step that is waiting for data; None where nobody saw it (a loop without a loader)."""
    wait = run.stages.wait_s if run.stages is not None else None
    return None if wait is None or run.pace is None else wait / run.pace.step_s.value


def _busy(run: Record) -> Fraction | None:
    """Of the least busy device."""
    return min((load.busy_fraction.mean for load in loads_of(run) if load.busy_fraction is not None), default=None)


def _spilled(run: Record) -> bool:
    sizes = {device.index: device.memory_gib for device in run.devices}
    took = ((load.allocated_gib, sizes.get(load.index)) for load in run.device_loads)
    return any(used is not None and size is not None and used > size for used, size in took)


# ---- the host's work, epochs, the machine ----


def host_work(run: Record) -> tuple[Seconds | None, str]:
    """CPU seconds of one sample in the loader, and what was done to have them or why there are none.

    Times are of the wall: reading, which mostly waits, is left out where the parts are known, and workers that share
    CPUs wait for each other.
    """
    loader, setup, cpus = run.loader, run.setup, run.host.cpus
    if loader is None:
        return None, ""
    if setup.cached:
        return None, "the run read re-encoded files: what the originals take was not measured"
    parts = (loader.decode_s, loader.augment_s)
    spent = loader.fetch_s if parts[0] is None or parts[1] is None else parts[0] + parts[1]
    usable = min(n for n in (cpus.allowed, cpus.at_end, cpus.workers) if n is not None)
    workers = (setup.workers or 0) * max(setup.processes, 1)
    if spent is None or workers <= usable:
        return spent, ""
    return spent * usable / workers, f"times {usable:g} / {workers}: so many loader workers shared so many CPUs"


def _stored(run: Record) -> float | None:
    """samples/s of a network store that held the run back: every machine that reads from it gets no more (UC-016)."""
    storage, pace = run.host.storage, run.pace
    if not storage.network or pace is None or pace.samples_per_s is None or judge(run).kind != "storage-bound":
        return None
    seen, size = pace.samples_per_s.value, run.setup.original_bytes
    return max(seen, storage_per_s(storage.read_mb_per_s, size)) if storage.read_mb_per_s and size else seen


def _curve(run: Record) -> tuple[Fraction, ...]:
    """Held-out accuracy after each epoch, from the first on; empty where one is missing or nothing was held out."""
    found = [epoch.accuracy_fraction for epoch in run.epochs]
    whole = [epoch.number for epoch in run.epochs] == list(range(1, len(found) + 1))
    return tuple(a for a in found if a is not None) if whole and None not in found else ()


def _epochs_to_the_end(run: Record) -> float | None:
    """Epochs that training took where accuracy ended it; the number asked for is no finding."""
    ended = run.ending in ("target", "patience")
    return float(run.epochs[-1].number) if ended and run.epochs else None


def _machine(run: Record) -> dict[str, str]:
    told = {"system": run.host.system, "cpu": run.host.cpus.model, "cpus": f"{run.host.cpus.allowed:g}"}
    if run.devices:
        told |= {"device": run.devices[0].name, "driver": run.devices[0].driver}
    return {name: text for name, text in told.items() if text}
