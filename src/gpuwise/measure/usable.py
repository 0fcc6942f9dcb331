"""What predictions may use of a run: `rank --measured` reads it.

A GPU run gives the speed of its device. A CPU run gives counts, host work a sample, memory and epochs, and never a
speed: a CPU says nothing about how fast a GPU is.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuwise.estimate import Interval
from gpuwise.measure.record import DeviceLoad, Record, Work
from gpuwise.model import Measurement


def measurement(run: Record, *, own_data: bool = True) -> tuple[Measurement | None, dict[str, str]]:
    """What predictions may use of the run, or why there is nothing. own_data: it was trained on the person's own, so
    that its epochs and samples say something."""
    setup = run.setup
    if setup.precision is None or setup.batch_per_accelerator is None:
        return None, {"measurement": "precision or batch is not known"}
    if run.pace is None and run.work is None:
        return None, {"measurement": run.reasons.get("pace", "nothing was measured")}
    gpu = bool(run.devices) and run.devices[0].backend != "cpu"
    work = run.work or Work()
    speed, note = device_speed(run) if gpu else (None, "")
    return Measurement(
        created_utc=run.created_utc,
        workload=setup.workload,
        device="gpu" if gpu else "cpu",
        accelerator=run.devices[0].accelerator if gpu else None,
        accelerators=max(len(run.devices), setup.processes) if gpu else 1,
        precision=setup.precision,
        batch_per_accelerator=setup.batch_per_accelerator,
        samples_per_s=speed,
        memory_format=setup.memory_format,
        compiled=setup.compiled,
        peak_memory_gib=_peak_gib(run.device_loads),
        decode_s=run.loader.fetch_s if run.loader is not None else None,
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
    ), {}


MOST_WAIT = 0.05
"""Share of a step that may be waiting for data in a speed that is taken for the device's."""


def device_speed(run: Record) -> tuple[Interval | None, str]:
    """Samples/s that the device does, the host apart, from which other devices are predicted; and how it was had.

    Measured alone, if it was. A run that waits for data says between its own speed and the one without the wait, since
    the device may have had work left while the host waited. A card that grew slower for heat is taken as it was before
    (UC-024). None for times of launching (UC-001), and where memory spilled to the host (UC-022).
    """
    pace = run.pace
    if pace is None or pace.samples_per_s is None or "step_s" in pace.reasons or _spilled(run):
        return None, ""
    if run.limits.device_per_s is not None and _waiting(run) > MOST_WAIT:
        return run.limits.device_per_s, "the device alone: in training, the run waited for its data"
    heat = max((load.throttled.get("heat", 0.0) for load in run.device_loads), default=0.0)
    if pace.shift is not None and heat > 0 and pace.shift.before_s < pace.step_s.value:
        cool = pace.step_s.value / pace.shift.before_s
        return _times(pace.samples_per_s, cool, cool, cool), "before the device grew hot and slower"
    free = 1 / (1 - min(_waiting(run), 0.99))
    if _waiting(run) > MOST_WAIT:
        return _times(
            pace.samples_per_s, 1.0, free**0.5, free
        ), "the run waited for data: between its speed with and without"
    return pace.samples_per_s, ""


def _times(speed: Interval, low: float, middle: float, high: float) -> Interval:
    return Interval(value=speed.value * middle, low=speed.low * low, high=speed.high * high)


def _waiting(run: Record) -> float:
    """Share of the step that is waiting for data."""
    wait = run.stages.wait_s if run.stages is not None else None
    return 0.0 if wait is None or run.pace is None else wait / run.pace.step_s.value


def _spilled(run: Record) -> bool:
    sizes = {device.index: device.memory_gib for device in run.devices}
    took = ((load.allocated_gib, sizes.get(load.index)) for load in run.device_loads)
    return any(used is not None and size is not None and used > size for used, size in took)


def _peak_gib(loads: Iterable[DeviceLoad]) -> float | None:
    """What the framework allocated at most on one device; the resident memory of a CPU job holds other things too."""
    known = [load.allocated_gib for load in loads if load.allocated_gib is not None]
    return max(known, default=None)


def _epochs_to_the_end(run: Record) -> float | None:
    """Epochs that training took where accuracy ended it; the number asked for is no finding."""
    ended = run.ending in ("target", "patience")
    return float(run.epochs[-1].number) if ended and run.epochs else None


def _machine(run: Record) -> dict[str, str]:
    told = {"system": run.host.system, "cpu": run.host.cpus.model, "cpus": f"{run.host.cpus.allowed:g}"}
    if run.devices:
        told |= {"device": run.devices[0].name, "driver": run.devices[0].driver}
    return {name: text for name, text in told.items() if text}
