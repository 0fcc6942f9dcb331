"""The figures of a record that verdicts rest on, each None where the record does not hold it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuwise.measure.record import Device, DeviceLoad, Gauge, Limits, Record
from gpuwise.units import Fraction, Seconds

UNUSED = "unused"
"""Key in the CPU's reasons: an accelerator is there, and why the job does not use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Shares are of the mean step: wait, copy … as in Stages. busy, sm, bandwidth, power: means over the devices that
    tell; power is the share of the limit. accelerator: the job computes on one. feed_per_s, device_per_s, real_per_s:
    samples/s of the loader alone, of training alone, and as it ran. mfu: of the peak that the record names."""

    record: Record
    accelerator: bool
    step_s: Seconds | None
    wait: Fraction | None
    copy: Fraction | None
    forward: Fraction | None
    backward: Fraction | None
    all_reduce: Fraction | None
    optimizer: Fraction | None
    sync: Fraction | None
    rest: Fraction | None
    busy: Fraction | None
    sm: Fraction | None
    bandwidth: Fraction | None
    power: Fraction | None
    feed_per_s: float | None
    device_per_s: float | None
    real_per_s: float | None
    mfu: Fraction | None

    @property
    def computing(self) -> Fraction | None:
        """Forward, backward and optimizer together."""
        parts = [p for p in (self.forward, self.backward, self.optimizer) if p is not None]
        return sum(parts) if parts else None

    @property
    def workers(self) -> int | None:
        return self.record.setup.workers

    @property
    def allowed(self) -> float:
        return self.record.host.cpus.allowed

    @property
    def usable(self) -> float:
        """CPUs that the loader's workers really have: of the allowed ones, less what was taken by pinning."""
        cpus = self.record.host.cpus
        return min(n for n in (cpus.allowed, cpus.at_end, cpus.workers) if n is not None)

    @property
    def launch_only(self) -> bool:
        return self.record.stages is not None and self.record.stages.launch_only

    @property
    def job_cpu(self) -> Fraction | None:
        """Share of the allowed CPUs that the job used."""
        return _mean(self.record.host_load.job_fraction) if self.record.host_load else None

    @property
    def others_cpu(self) -> Fraction | None:
        return _mean(self.record.host_load.others_fraction) if self.record.host_load else None

    @property
    def main_cpu(self) -> Fraction | None:
        return _mean(self.record.host_load.main_fraction) if self.record.host_load else None

    @property
    def waiting_cpu(self) -> Fraction | None:
        return self.record.host_load.waiting_fraction if self.record.host_load else None

    @property
    def operation_s(self) -> Seconds | None:
        """Mean time of one operation of the step, forward, backward and optimizer; on a CPU without what the process
        waited for it."""
        operations = self.record.stages.operations if self.record.stages else None
        if not operations or self.step_s is None or self.computing is None:
            return None
        waited = 0.0 if self.accelerator else self.waiting_cpu or 0.0
        return self.computing * self.step_s * (1 - min(waited, 0.9)) / operations

    @property
    def demand_per_s(self) -> float | None:
        """What the device takes: measured alone, else what was left had no step waited for data."""
        if self.device_per_s is not None:
            return self.device_per_s
        if self.real_per_s is None or self.wait is None or self.wait > 0.98:
            return None
        return self.real_per_s / (1 - self.wait)


def of_record(record: Record) -> Facts:
    used = record.devices
    loads = loads_of(record)
    step_s = record.pace.step_s.value if record.pace and "step_s" not in record.pace.reasons else None
    shares = {name: _share(record, f"{name}_s", step_s) for name in _STAGES}
    rate = record.pace.samples_per_s if record.pace and step_s else None
    limits = Limits() if limits_outrun(record) else record.limits
    return Facts(
        record=record,
        accelerator=any(d.backend != "cpu" for d in used),
        step_s=step_s,
        **shares,
        busy=_over(load.busy_fraction for load in loads),
        sm=_over(load.sm_fraction for load in loads),
        bandwidth=_over(load.bandwidth_fraction for load in loads),
        power=_power(used, loads),
        feed_per_s=limits.feed_per_s.value if limits.feed_per_s else None,
        device_per_s=limits.device_per_s.value if limits.device_per_s else None,
        real_per_s=rate.value if rate else None,
        mfu=record.mfu,
    )


OUTRUN = 1.15


def limits_outrun(record: Record) -> bool:
    """Whether training was faster than one of its parts alone: these were then measured under another load."""
    rate = record.pace.samples_per_s if record.pace else None
    alone = [limit.value for limit in (record.limits.feed_per_s, record.limits.device_per_s) if limit]
    return rate is not None and bool(alone) and rate.value > OUTRUN * min(alone)


_STAGES = ("wait", "copy", "forward", "backward", "all_reduce", "optimizer", "sync", "rest")


def _share(record: Record, name: str, step_s: Seconds | None) -> Fraction | None:
    seconds = getattr(record.stages, name) if record.stages else None
    return None if seconds is None or not step_s else min(seconds / step_s, 1.0)


def loads_of(record: Record) -> list[DeviceLoad]:
    """Loads of the accelerators that the job used, not of others in the machine."""
    indices = {device.index for device in record.devices if device.backend != "cpu"}
    return [load for load in record.device_loads if load.index in indices]


def _mean(gauge: Gauge | None) -> float | None:
    return gauge.mean if gauge else None


def _over(gauges: Iterable[Gauge | None]) -> float | None:
    """Mean over the devices that tell; None where none does (a slice has no utilisation)."""
    there = [gauge.mean for gauge in gauges if gauge is not None]
    return sum(there) / len(there) if there else None


def _power(used: Sequence[Device], loads: Sequence[DeviceLoad]) -> Fraction | None:
    limits = {d.index: d.power_limit_w for d in used if d.slice is None}
    shares = [
        load.power_w.mean / limit
        for load in loads
        if load.power_w is not None and (limit := limits.get(load.index)) is not None and limit > 0
    ]
    return sum(shares) / len(shares) if shares else None
