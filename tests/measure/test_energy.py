"""Samples → loads: energy with its source, throttling, gaps as None with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measure.records import gpu_record

from gpuwise.measure.energy import (
    Component,
    HostSample,
    Sample,
    agreed,
    device_load,
    device_loads,
    energy_total,
    gauge,
    host_load,
    interval_caution,
    share,
    total,
)  # fmt: skip


def five_seconds(**every: object) -> list[Sample]:
    return [Sample(t_s=n * 0.2, device=0, power_w=37.4, **every) for n in range(26)]  # type: ignore[arg-type]


def test_uc_043_the_counter_wins_over_polled_power():
    samples = [replace(s, energy_j=1000.0 + 65.4 * s.t_s) for s in five_seconds()]
    load = device_load(samples, (0.0, 5.0), 0.2)
    assert load.energy_j == pytest.approx(327)
    assert load.energy_source == "counter"
    assert load.power_w is not None
    assert load.power_w.mean == pytest.approx(65.4)
    assert load.power_w.minimum == 37.4


def test_uc_043_polled_power_of_a_short_window_is_refused():
    load = device_load(five_seconds(), (0.0, 5.0), 0.2)
    assert load.energy_j is None
    assert load.energy_source == "unknown"
    assert load.reasons["energy_j"] == "polled power lags: 5.0 s are less than the 10 s it needs"
    assert load.power_w is not None


def test_uc_043_polled_power_of_a_long_window_states_its_method_and_lag():
    samples = [Sample(t_s=float(n), device=0, power_w=100.0) for n in range(31)]
    load = device_load(samples, (0.0, 30.0))
    assert (load.energy_j, load.energy_source) == (pytest.approx(3000), "polled")
    assert "lags by about a second" in load.reasons["energy_j"]


def test_uc_043_without_borders_the_energy_is_that_of_the_time_that_was_watched():
    """A run that came to no steady part: 30 s at 100 W, and never an infinite figure."""
    samples = [Sample(t_s=1000.0 + n, device=0, power_w=100.0) for n in range(31)]
    load = device_load(samples, (float("-inf"), float("inf")))
    assert (load.energy_j, load.energy_source) == (pytest.approx(3000), "polled")
    counted = [replace(s, energy_j=65.4 * s.t_s) for s in samples]
    assert device_load(counted, (float("-inf"), float("inf"))).energy_j == pytest.approx(30 * 65.4)


def test_uc_043_power_that_was_read_in_a_small_part_of_the_time_is_not_stretched_over_it():
    samples = [Sample(t_s=3600.0 + n, device=0, power_w=100.0) for n in range(61)]
    load = device_load(samples, (0.0, 3660.0))
    assert (load.energy_j, load.energy_source) == (None, "unknown")
    assert load.reasons["energy_j"] == "power was read in 60 s of the 3660 s alone"


def test_uc_043_a_counter_needs_two_seconds_too():
    samples = [replace(s, energy_j=65.4 * s.t_s, power_w=None) for s in five_seconds()]
    load = device_load(samples, (0.0, 1.0))
    assert load.energy_j is None
    assert "1.0 s are less than the 2 s a counter needs" in load.reasons["energy_j"]


def test_a_counter_that_went_back_is_not_believed():
    samples = [replace(s, energy_j=100.0 if s.t_s < 2 else s.t_s) for s in five_seconds()]
    assert device_load(samples, (0.0, 5.0)).energy_source == "unknown"


def test_samples_beside_the_window_place_the_counter_at_its_borders():
    samples = [Sample(t_s=t, device=0, energy_j=10.0 * t) for t in (0.0, 3.0, 6.0, 9.0)]
    assert device_load(samples, (2.0, 8.0)).energy_j == pytest.approx(60)


def test_uc_044_every_part_of_the_energy_has_a_source_and_the_total_shows_the_split():
    parts = [
        Component(name="cpu", energy_j=None, source="unknown", reason="energy file not readable"),
        Component(name="device 0", energy_j=327.0, source="counter"),
        Component(name="memory", energy_j=12.0, source="modelled"),
    ]
    found = total(parts)
    assert found.total_j is None
    assert (found.measured_j, found.modelled_j, found.unknown) == (327.0, 12.0, ("cpu",))
    assert total(parts[1:]).total_j == 339.0


def test_uc_044_a_run_whose_cpu_energy_is_unreadable_still_tells_that_of_its_device():
    samples = [replace(s, energy_j=65.4 * s.t_s) for s in five_seconds()]
    host = host_load([HostSample(t_s=1.0), HostSample(t_s=2.0)], (0.0, 5.0), {"energy_j": "readable by root only"})
    found = energy_total(gpu_record(host_load=host, device_loads=(device_load(samples, (0.0, 5.0)),)))
    assert (found.unknown, found.total_j) == (("cpu",), None)
    assert found.measured_j == pytest.approx(327)
    assert found.components[0].reason == "readable by root only"
    assert found.components[1].source == "counter"


def test_uc_045_power_times_time_is_the_energy_within_one_per_cent():
    samples = [Sample(t_s=2.0 * n, device=0, power_w=390.0) for n in range(509)]
    load = device_load(samples, (0.0, 1015.2), asked_s=1.0)
    assert load.power_w is not None
    assert load.energy_j is not None
    assert load.energy_j / 3.6e6 == pytest.approx(0.110, rel=0.01)
    assert load.power_w.mean * 1015.2 == pytest.approx(load.energy_j, rel=0.01)


def test_uc_045_the_real_sampling_interval_is_told_where_it_differs():
    samples = [Sample(t_s=2.0 * n, device=0, power_w=390.0) for n in range(20)]
    load = device_load(samples, (0.0, 38.0), asked_s=1.0)
    assert load.interval_s == pytest.approx(2.0)
    assert load.reasons["interval_s"] == "asked for 1 s, got 2 s"
    assert str(interval_caution(load)) == "device 0 was sampled every 2 s, not every 1 s as asked"
    assert interval_caution(device_load(samples, (0.0, 38.0), asked_s=2.1)) is None


def test_uc_024_throttle_reasons_are_shares_of_the_samples_that_could_tell():
    samples = [
        Sample(t_s=float(n), device=0, throttle=("heat",) if n >= 5 else (), clock_mhz=1380.0 if n < 5 else 1150.0)
        for n in range(10)
    ]
    load = device_load([*samples, Sample(t_s=10.0, device=0)], (0.0, 10.0))
    assert load.throttled == {"heat": 0.5}
    assert load.clock_mhz is not None
    assert (load.clock_mhz.minimum, load.clock_mhz.maximum) == (1150.0, 1380.0)


def test_uc_030_a_slice_has_no_utilisation_and_is_left_out_of_means():
    why = {"busy_fraction": "not measurable on MIG"}
    slice_, whole = device_loads(
        [Sample(t_s=1.0, device=0, used_gib=3.0), Sample(t_s=1.0, device=1, busy_fraction=0.9)],
        (0.0, 2.0),
        reasons={0: why, 1: why},
    )
    assert slice_.busy_fraction is None
    assert slice_.reasons["busy_fraction"] == "not measurable on MIG"
    assert slice_.used_gib is not None
    assert whole.busy_fraction is not None
    assert "busy_fraction" not in whole.reasons


def test_uc_030_shares_are_of_what_was_allotted_and_of_nothing_there_is_no_share():
    assert share(15.93, 16) == pytest.approx(0.996, rel=0.001)
    assert share(15.93, 0) is None
    assert share(None, 16) is None


def test_uc_025_each_metric_is_missing_on_its_own():
    load = device_load(
        [Sample(t_s=1.0, device=0, used_gib=2.0)],
        (0.0, 2.0),
        reasons={"power_w": "NotSupported", "busy_fraction": "Unknown"},
    )
    assert load.used_gib is not None
    assert load.reasons["power_w"] == "NotSupported"
    assert load.reasons["busy_fraction"] == "Unknown"
    assert load.reasons["clock_mhz"] == "not readable on this device"
    assert load.reasons["throttled"] == "this device does not tell why its clock is low"


def test_a_load_outside_the_window_says_so():
    load = device_load([Sample(t_s=9.0, device=2, busy_fraction=0.5)], (0.0, 2.0))
    assert load.index == 2
    assert load.busy_fraction is None
    assert load.reasons["busy_fraction"] == "no sample in the steady part"
    with pytest.raises(ValueError, match="at least one sample"):
        device_load([], (0.0, 1.0))


def test_host_counters_become_rates_and_shares():
    samples = [
        HostSample(
            t_s=0.0, read_bytes=1e9, quota_periods=100, quota_throttled=10, waiting_s=1.0, cpu_s=10.0, job_gib=2.0
        ),
        HostSample(t_s=10.0, read_bytes=1.95e9, quota_periods=200, quota_throttled=60, waiting_s=6.0, cpu_s=15.0),
    ]
    load = host_load(samples, (0.0, 10.0))
    assert load.read_mb_per_s == pytest.approx(95)
    assert load.quota_fraction == pytest.approx(0.5)
    assert load.waiting_fraction == pytest.approx(0.5)
    assert load.peak_gib == 2.0
    assert load.job_fraction is None
    assert load.reasons["job_fraction"] == "not readable here"


def test_a_host_without_samples_is_unknown_not_idle():
    load = host_load([], (0.0, 1.0))
    assert load.read_mb_per_s is None
    assert load.reasons["read_mb_per_s"] == "no sample"


def test_figures_that_are_not_finite_are_no_figures():
    assert gauge([float("nan"), None, float("inf")]) is None
    found = gauge([1.0, float("nan"), 3.0])
    assert found is not None
    assert (found.mean, found.samples) == (2.0, 2)


def test_uc_035_the_framework_knows_best_what_it_allocated() -> None:
    value, note = agreed(0.9, 9.8)
    assert value == 9.8
    assert note is not None
    assert "0.9" in note
    assert agreed(10.4, 9.8) == (10.4, None)
