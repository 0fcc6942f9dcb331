"""Samples of devices and host → what they showed in a window, with energy, clocks and throttling.

Energy comes from the hardware's counter where there is one (NVIDIA since Volta), else from polled power, which lags and
is refused for short windows; a modelled figure is never shown as a measured one. NVML's power of Ampere and newer is
itself a mean over a second (nvmlDeviceGetPowerUsage, NVML API reference), its counter moves every 20 to 100 ms.
Test value: 327 J by the counter over 5 s are 65.4 W, whatever the polled mean says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import Message
from gpuwise.measure.record import DeviceLoad, EnergySource, Gauge, HostLoad, Record
from gpuwise.units import Fraction, Gib, Seconds, Watts

Throttle = Literal["heat", "power", "power brake", "hardware", "sync", "clocks set"]
"""Why a device lowers its clock. heat: thermal slowdown of hardware or software; power: its cap; power brake: the power
supply asked for it; hardware: slowed down, cause not told; sync: held to others' clock; clocks set: by a person."""

Window = tuple[Seconds, Seconds]
Floats = NDArray[np.float64]

COUNTER_MINIMUM_S = 2.0
"""A counter that moves every 0.1 s is then within 5 %."""
POLLED_MINIMUM_S = 10.0
"""Polled power is a mean over a second and lags as much: within 10 % then."""
COVERED: Fraction = 0.8
"""Share of a window that samples have to cover before its energy is told."""
INTERVAL_TOLERANCE = 0.25
"""A real sampling interval further than this from the one asked for is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One reading of one device. t_s: perf_counter. device: index as the framework numbers it. None: not readable.

    energy_j: the counter as read, not a difference. throttle: reasons in force, empty: none; None: not readable.
    """

    t_s: Seconds
    device: int
    busy_fraction: Fraction | None = None
    sm_fraction: Fraction | None = None
    bandwidth_fraction: Fraction | None = None
    power_w: Watts | None = None
    clock_mhz: float | None = None
    temperature_c: float | None = None
    used_gib: Gib | None = None
    others_gib: Gib | None = None
    energy_j: float | None = None
    throttle: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """One reading of the host. *_fraction of CPUs are of the allowed ones. None: not readable.

    Cumulative, as read: read_bytes, quota_periods, quota_throttled, waiting_s (the job's processes runnable, not
    running), cpu_s (CPU time of the job), energy_j. io_fraction: share of loader processes that wait for storage.
    """

    t_s: Seconds
    job_fraction: Fraction | None = None
    others_fraction: Fraction | None = None
    main_fraction: Fraction | None = None
    shm_used_fraction: Fraction | None = None
    job_gib: Gib | None = None
    io_fraction: Fraction | None = None
    read_bytes: float | None = None
    quota_periods: float | None = None
    quota_throttled: float | None = None
    waiting_s: Seconds | None = None
    cpu_s: Seconds | None = None
    energy_j: float | None = None


def device_load(
    samples: Iterable[Sample], window: Window, asked_s: Seconds | None = None, reasons: Mapping[str, str] | None = None
) -> DeviceLoad:
    """What one device showed between the two times of the window; an infinite border is that of the samples.

    samples: of one device. asked_s: the sampling interval that was asked for. reasons: why a metric is missing, by
    field, as the probe found it; it is kept unless the metric is there after all. ValueError without any sample.
    """
    ordered = sorted(samples, key=lambda s: s.t_s)
    if not ordered:
        raise ValueError("a device's load needs at least one sample")
    begin, end = window
    window = (begin if isfinite(begin) else ordered[0].t_s, end if isfinite(end) else ordered[-1].t_s)
    inside = [s for s in ordered if window[0] <= s.t_s <= window[1]]
    gauges: dict[str, Any] = {name: gauge(getattr(s, name) for s in inside) for name in _DEVICE_GAUGES}
    energy = _energy(ordered, inside, window)
    if energy.source == "counter" and energy.mean_w is not None:
        gauges["power_w"] = _with_mean(gauges["power_w"], energy.mean_w)
    interval_s = _interval_s(inside)
    said = {name: reason for name, reason in (reasons or {}).items() if gauges.get(name) is None}
    said.update(_gaps(gauges, inside, energy, said) | _of_interval(interval_s, asked_s))
    return DeviceLoad(
        index=ordered[0].device,
        **gauges,
        others_gib=_peak(s.others_gib for s in inside),
        throttled=throttled(inside),
        energy_j=energy.energy_j,
        energy_source=energy.source,
        interval_s=interval_s,
        asked_s=asked_s,
        reasons=said,
    )


def device_loads(
    samples: Iterable[Sample],
    window: Window,
    asked_s: Seconds | None = None,
    reasons: Mapping[int, Mapping[str, str]] | None = None,
) -> tuple[DeviceLoad, ...]:
    """`device_load` of each device that was sampled, by index."""
    by_device: dict[int, list[Sample]] = {}
    for sample in samples:
        by_device.setdefault(sample.device, []).append(sample)
    return tuple(device_load(by_device[i], window, asked_s, (reasons or {}).get(i)) for i in sorted(by_device))


def host_load(samples: Iterable[HostSample], window: Window, reasons: Mapping[str, str] | None = None) -> HostLoad:
    """What the host showed between the two times of the window; all None, with reasons, where nothing was sampled."""
    inside = sorted((s for s in samples if window[0] <= s.t_s <= window[1]), key=lambda s: s.t_s)
    gone = {name: _grown(inside, name) for name in _COUNTERS}
    waited, worked = gone["waiting_s"], gone["cpu_s"]
    values: dict[str, object] = {
        "job_fraction": gauge(s.job_fraction for s in inside),
        "others_fraction": gauge(s.others_fraction for s in inside),
        "main_fraction": gauge(s.main_fraction for s in inside),
        "waiting_fraction": None if waited is None or worked is None else share(waited, waited + worked),
        "quota_fraction": share(gone["quota_throttled"], gone["quota_periods"]),
        "read_mb_per_s": _rate(inside, "read_bytes", 1e-6),
        "io_fraction": _mean(s.io_fraction for s in inside),
        "shm_used_fraction": gauge(s.shm_used_fraction for s in inside),
        "peak_gib": _peak(s.job_gib for s in inside),
        "energy_j": gone["energy_j"],
    }
    source: EnergySource = "unknown" if gone["energy_j"] is None else "counter"
    missing = {name: "not readable here" if inside else "no sample" for name, value in values.items() if value is None}
    said = missing | {name: reason for name, reason in (reasons or {}).items() if name in missing}
    return HostLoad(**values, energy_source=source, reasons=said)  # type: ignore[arg-type]


def gauge(values: Iterable[float | None]) -> Gauge | None:
    """Mean and range of the values that were readable; None where none was."""
    there = _finite(values)
    if not len(there):
        return None
    return Gauge(mean=float(there.mean()), minimum=float(there.min()), maximum=float(there.max()), samples=len(there))


def throttled(samples: Iterable[Sample]) -> dict[str, Fraction]:
    """Reason → share of the samples in which it was in force; of samples that could tell."""
    told = [s.throttle for s in samples if s.throttle is not None]
    names = sorted({name for reasons in told for name in reasons})
    return {name: sum(name in reasons for reasons in told) / len(told) for name in names}


def share(part: float | None, whole: float | None) -> Fraction | None:
    """part / whole; None where either is unknown or the whole is 0, as on a slice without a limit."""
    if part is None or not whole:
        return None
    return part / whole


def agreed(tool_gib: Gib | None, framework_gib: Gib | None) -> tuple[Gib | None, str | None]:
    """Memory in use, and a note where the tool contradicts the framework, which knows what it allocated (UC-035).

    The device holds at least what the framework does; a tool that reports less is wrong.
    """
    if framework_gib is None or tool_gib is None:
        return (tool_gib if framework_gib is None else framework_gib), None
    if tool_gib < framework_gib:
        why = f"the tool reports {tool_gib:.3g} GiB, the framework {framework_gib:.3g}: the framework's kept"
        return framework_gib, why
    return tool_gib, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Energy of one part of a machine; None with a reason where it is unknown."""

    name: str
    energy_j: float | None
    source: EnergySource
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyTotal:
    """The parts' sum, split by origin. total_j: None while a part is unknown; measured_j, modelled_j: of the others."""

    total_j: float | None
    measured_j: float
    modelled_j: float
    unknown: tuple[str, ...]
    components: tuple[Component, ...] = field(default=())


def total(components: Sequence[Component]) -> EnergyTotal:
    """Counter and polled readings are measured; an unknown part leaves the total unknown, it is not 0."""
    unknown = tuple(c.name for c in components if c.energy_j is None)
    measured = sum(c.energy_j or 0.0 for c in components if c.source in ("counter", "polled"))
    modelled = sum(c.energy_j or 0.0 for c in components if c.source == "modelled")
    return EnergyTotal(
        total_j=None if unknown else measured + modelled,
        measured_j=measured,
        modelled_j=modelled,
        unknown=unknown,
        components=tuple(components),
    )


def energy_total(record: Record) -> EnergyTotal:
    """Energy of a run in its steady part: of the CPU package and of each device that it used, each with its source."""
    cpu = record.host_load or HostLoad(reasons={"energy_j": "the host was not watched"})
    parts = [Component(name="cpu", energy_j=cpu.energy_j, source=cpu.energy_source, reason=cpu.reasons.get("energy_j"))]
    return total(parts + [_device_part(load) for load in record.device_loads])


def _device_part(load: DeviceLoad) -> Component:
    reason = load.reasons.get("energy_j")
    return Component(name=f"device {load.index}", energy_j=load.energy_j, source=load.energy_source, reason=reason)


def interval_caution(load: DeviceLoad) -> Message | None:
    """Where samples came at another rhythm than was asked for."""
    if load.interval_s is None or load.asked_s is None or not _off(load.interval_s, load.asked_s):
        return None
    return Message(
        "device {index} was sampled every {real:.2g} s, not every {asked:.2g} s as asked",
        index=load.index,
        real=load.interval_s,
        asked=load.asked_s,
    )


_DEVICE_GAUGES = (
    "busy_fraction", "sm_fraction", "bandwidth_fraction", "power_w", "clock_mhz", "temperature_c", "used_gib",
)  # fmt: skip
_COUNTERS = ("waiting_s", "cpu_s", "quota_periods", "quota_throttled", "energy_j")


@dataclass(frozen=True, slots=True)
class _Energy:
    energy_j: float | None
    source: EnergySource
    mean_w: Watts | None = None
    reason: str = ""


def _energy(ordered: Sequence[Sample], inside: Sequence[Sample], window: Window) -> _Energy:
    """Of the whole window: from the counter (samples beside the window help), else from polled power."""
    length = window[1] - window[0]
    counted = _counted(ordered, window)
    if counted is not None and length >= COUNTER_MINIMUM_S:
        return _Energy(counted, "counter", counted / length)
    power = [(s.t_s, s.power_w) for s in inside if s.power_w is not None]
    if len(power) < 2:
        short = "" if counted is None else f": {length:.1f} s are less than the {COUNTER_MINIMUM_S:g} s a counter needs"
        return _Energy(None, "unknown", reason=f"neither an energy counter nor power could be read{short}")
    if length < POLLED_MINIMUM_S:
        needs = f"polled power lags: {length:.1f} s are less than the {POLLED_MINIMUM_S:g} s it needs"
        return _Energy(None, "unknown", reason=needs)
    times, watts = np.array(power).T
    if times[-1] - times[0] < COVERED * length:
        why = f"power was read in {times[-1] - times[0]:.0f} s of the {length:.0f} s alone"
        return _Energy(None, "unknown", reason=why)
    mean = float(np.trapezoid(watts, times) / (times[-1] - times[0]))
    return _Energy(mean * length, "polled", mean, "mean of polled power, which lags by about a second, × time")


def _counted(samples: Sequence[Sample], window: Window) -> float | None:
    """The counter's growth in the window, interpolated at its borders; None where it went back or covers too little."""
    read = [(s.t_s, s.energy_j) for s in samples if s.energy_j is not None]
    if len(read) < 2:
        return None
    times, joules = np.array(read).T
    begin, end = max(window[0], times[0]), min(window[1], times[-1])
    if np.any(np.diff(joules) < 0) or end - begin < COVERED * (window[1] - window[0]):
        return None
    grown = float(np.interp(end, times, joules) - np.interp(begin, times, joules))
    return float(grown * (window[1] - window[0]) / (end - begin))


def _with_mean(polled: Gauge | None, mean: float) -> Gauge:
    """The counter's mean with the polled range, which is stretched where the mean lies outside."""
    if polled is None:
        return Gauge(mean=mean, minimum=mean, maximum=mean, samples=2)
    low, high = min(polled.minimum, mean), max(polled.maximum, mean)
    return Gauge(mean=mean, minimum=low, maximum=high, samples=polled.samples)


def _gaps(
    gauges: Mapping[str, Gauge | None], inside: Sequence[Sample], energy: _Energy, said: Mapping[str, str]
) -> dict[str, str]:
    why = "not readable on this device" if inside else "no sample in the steady part"
    gaps = {name: why for name, value in gauges.items() if value is None and name not in said}
    if energy.reason:
        gaps["energy_j"] = said.get("energy_j", energy.reason) if energy.energy_j is None else energy.reason
    if inside and all(s.throttle is None for s in inside):
        gaps["throttled"] = said.get("throttled", "this device does not tell why its clock is low")
    return gaps


def _interval_s(samples: Sequence[Sample]) -> Seconds | None:
    return (samples[-1].t_s - samples[0].t_s) / (len(samples) - 1) if len(samples) > 1 else None


def _off(real_s: Seconds, asked_s: Seconds) -> bool:
    return abs(real_s - asked_s) > INTERVAL_TOLERANCE * asked_s


def _of_interval(real_s: Seconds | None, asked_s: Seconds | None) -> dict[str, str]:
    if real_s is None:
        return {"interval_s": "fewer than two samples"}
    if asked_s is None or not _off(real_s, asked_s):
        return {}
    return {"interval_s": f"asked for {asked_s:g} s, got {real_s:.3g} s"}


def _grown(samples: Sequence[HostSample], name: str) -> float | None:
    """Last minus first reading of a cumulative figure; None where it went back (a process ended) or was not read."""
    read: list[float] = [value for s in samples if (value := getattr(s, name)) is not None]
    return read[-1] - read[0] if len(read) > 1 and read[-1] >= read[0] else None


def _rate(samples: Sequence[HostSample], name: str, scale: float) -> float | None:
    read: list[tuple[float, float]] = [(s.t_s, value) for s in samples if (value := getattr(s, name)) is not None]
    if len(read) < 2 or read[-1][1] < read[0][1]:
        return None
    return share((read[-1][1] - read[0][1]) * scale, read[-1][0] - read[0][0])


def _finite(values: Iterable[float | None]) -> Floats:
    there = np.array([v for v in values if v is not None], np.float64)
    return there[np.isfinite(there)]


def _mean(values: Iterable[float | None]) -> float | None:
    there = _finite(values)
    return float(there.mean()) if len(there) else None


def _peak(values: Iterable[float | None]) -> float | None:
    there = _finite(values)
    return float(there.max()) if len(there) else None
