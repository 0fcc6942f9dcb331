"""What a run may tell a prediction: the speed of its device, never that of a starved, hot or spilling one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measure.records import gpu_record

from gpuwise.estimate import Interval
from gpuwise.measure.record import Limits, Shift, Stages
from gpuwise.measure.usable import device_speed, measurement

BUSY = Stages(wait_s=0.001, forward_s=0.05, backward_s=0.1, optimizer_s=0.009)
ALONE = Limits()


def test_a_run_that_hardly_waits_has_the_speed_that_was_seen() -> None:
    record = gpu_record(stages=BUSY, limits=ALONE)
    assert device_speed(record) == (record.pace.samples_per_s, "")


def test_uc_014_a_starved_run_gives_the_speed_of_its_device_where_that_was_measured_alone() -> None:
    speed, note = device_speed(gpu_record())
    assert speed == gpu_record().limits.device_per_s
    assert "waited for its data" in note


def test_uc_014_else_a_range_from_the_speed_seen_to_that_without_the_wait() -> None:
    """104 of 160 ms are waiting: 400/s as seen, 1,143/s if the device never worked in that time."""
    speed, note = device_speed(gpu_record(limits=ALONE))
    assert speed.low == 392.0
    assert speed.high == pytest.approx(408 / (1 - 0.104 / 0.16))
    assert speed.low < speed.value < speed.high
    assert "between" in note


def test_uc_024_a_card_that_grew_hot_is_told_by_its_speed_before() -> None:
    """6 steps a second in the first hour, 5 from then on, for heat: other hardware is predicted from 6."""
    pace = gpu_record().pace
    slow = replace(
        pace, step_s=Interval(value=1 / 5, low=0.199, high=0.201),
        samples_per_s=Interval(value=320.0, low=318.0, high=322.0),
        shift=Shift(at=21_600, before_s=1 / 6, after_s=1 / 5),
    )  # fmt: skip
    (load,) = gpu_record().device_loads
    hot = gpu_record(stages=BUSY, limits=ALONE, pace=slow, device_loads=(replace(load, throttled={"heat": 0.9}),))
    assert device_speed(hot)[0].value == pytest.approx(320 * 6 / 5)
    cool = gpu_record(stages=BUSY, limits=ALONE, pace=slow)
    assert device_speed(cool)[0].value == 320.0, "a change for another cause is how the job runs"


def test_uc_022_a_run_that_spilled_to_the_host_gives_memory_and_no_speed() -> None:
    (load,) = gpu_record().device_loads
    (card,) = gpu_record().devices
    spilled = gpu_record(devices=(replace(card, memory_gib=8.0),), device_loads=(replace(load, allocated_gib=13.0),))
    told, _why = measurement(spilled)
    assert (told.samples_per_s, told.peak_memory_gib) == (None, 13.0)
