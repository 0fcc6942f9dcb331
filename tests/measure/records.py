"""Records of runs made by hand, for tests of what is kept, shown and compared."""

from __future__ import annotations

from typing import Any

from gpuwise.estimate import Interval
from gpuwise.measure.record import (
    Cpus,
    Device,
    DeviceLoad,
    Epoch,
    Gauge,
    Host,
    HostLoad,
    Limits,
    LoaderTimes,
    Pace,
    Record,
    Setup,
    Stages,
    Storage,
    Work,
)
from gpuwise.measure.usable import measurement
from gpuwise.model import Measurement

DEVICE = Device(
    index=0, name="Tesla T4", vendor="NVIDIA", backend="cuda", accelerator="t4", memory_gib=14.6, power_limit_w=70.0
)
HOST = Host(
    system="Linux 6.1",
    cpus=Cpus(host=16, allowed=4.0, rules={"affinity": 4.0, "quota": 8.0}, model="a CPU"),
    memory_gib=64.0,
    shm_gib=8.0,
    storage=Storage(filesystem="ext4", network=False, free_gib=100.0),
)


def gpu_record(**more: Any) -> Record:
    """A run that waits for its data two thirds of the time; every part of a record is there."""
    return Record(**(_PARTS | {"measurement": MEASUREMENT} | more))


_PARTS: dict[str, Any] = {
    "created_utc": "2026-11-30T10:00:00Z",
    "ended_utc": "2026-11-30T10:03:00Z",
    "status": "finished",
    "ending": "patience",
    "wall_s": 180.0,
    "setup": Setup(
        workload="painter-light", model="resnet34", data="4 painters in a folder a class", samples=20_000,
        validation_samples=2_000, classes=4, image_size=224, batch_per_accelerator=64, precision="amp",
        memory_format="nhwc", compiled=False, optimizer="sgd", feed="fast", workers=2, prefetch=2, pinned=True, seed=0,
        threads=4, software={"torch": "2.14.1", "torchvision": "0.29.1"},
    ),
    "host": HOST,
    "devices": (DEVICE,),
    "pace": Pace(
        steps=500, warm_up=12, step_s=Interval(value=0.16, low=0.157, high=0.163), median_s=0.05, minimum_s=0.049,
        maximum_s=0.5, samples_per_s=Interval(value=400.0, low=392.0, high=408.0), samples_per_step=64.0, start_s=4.2,
        validation_s=5.0, validation_every=313.0, window_s=80.0, shown_s=(0.05, 0.05, 0.38), period=None,
    ),
    "stages": Stages(wait_s=0.104, copy_s=0.002, forward_s=0.016, backward_s=0.03, optimizer_s=0.004, rest_s=0.004),
    "loader": LoaderTimes(fetch_s=0.0052, read_s=0.0002, decode_s=0.004, augment_s=0.001),
    "limits": Limits(
        feed_per_s=Interval(value=410.0, low=400.0, high=420.0),
        device_per_s=Interval(value=1150., low=1140., high=1160.)
    ),
    "epochs": (
        Epoch(number=11, loss=1.31, samples=20_000, train_s=50.0, validation_s=5.0, accuracy_fraction=0.51,
              correct=1020, validated=2000),
        Epoch(number=12, loss=0.92, samples=20_000, train_s=50.0, validation_s=5.0, accuracy_fraction=0.68,
              correct=1360, validated=2000),
    ),
    "work": Work(
        gmacs=3.664, activations_m=3.74, parameters_m=21.3, operations=37, flops_per_step=1.4e12, peak_tflops=65.0,
        peak_source="data sheet, fp16 with fp32 accumulation",
    ),
    "host_load": HostLoad(
        job_fraction=Gauge(mean=0.7, minimum=0.5, maximum=0.9, samples=160),
        others_fraction=Gauge(mean=0.02, minimum=0.0, maximum=0.1, samples=160),
        reasons={"energy_j": "the counter can be read by root alone"},
    ),
    "device_loads": (
        DeviceLoad(
            index=0, busy_fraction=Gauge(mean=0.4, minimum=0.1, maximum=1.0, samples=400),
            power_w=Gauge(mean=38.0, minimum=27.0, maximum=66.0, samples=400),
            clock_mhz=Gauge(mean=1350.0, minimum=585.0, maximum=1590.0, samples=400),
            allocated_gib=3.2, energy_j=3040.0,
            energy_source="counter", interval_s=0.2, asked_s=0.2, throttled={"power": 0.05},
            reasons={"sm_fraction": "counters of this kind are there from Hopper on"},
        ),
    ),
    "overhead_fraction": 0.002,
    "overhead_method": "20 steps with the marks and 20 without, alternating",
    "skipped": {"no JPEG could be decoded": 3},
    "folder": "20261130T100000-abc123",
}  # fmt: skip


def _told() -> Measurement:
    found, _reasons = measurement(Record(**_PARTS))
    assert found is not None
    return found


MEASUREMENT = _told()
"""What a prediction may take from that run of the light painter on a T4, on the person's own pictures, until accuracy
stopped growing: 1,150 samples/s, which the device does alone."""
