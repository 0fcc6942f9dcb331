"""What a run may tell a prediction: the speed of its device, never that of a starved, hot or spilling one."""

from __future__ import annotations

from dataclasses import replace
from math import exp, hypot, log

import pytest
from tests.measure.records import gpu_record

from gpuwise.estimate import Z80, Interval
from gpuwise.measure.compare import BETWEEN_RUNS_LOG_SD
from gpuwise.measure.record import Epoch, Gauge, HostLoad, Limits, LoaderTimes, Record, Shift, Stages, Storage
from gpuwise.measure.usable import device_speed, host_work, measurement

BUSY = Stages(wait_s=0.001, forward_s=0.05, backward_s=0.1, optimizer_s=0.009)
BLIND = Stages(forward_s=0.05, backward_s=0.1, optimizer_s=0.009)
"""A loop of its own without a loader: nobody saw whether it waits."""
ALONE = Limits()


def even(mean: float) -> Gauge:
    return Gauge(mean=mean, minimum=mean, maximum=mean, samples=100)


def at_work(stages: Stages = BUSY, busy: float | None = 0.97, **more: object) -> Record:
    """A run whose device was not measured alone. busy: its utilisation, None: not readable."""
    (load,) = gpu_record().device_loads
    throttled = more.pop("throttled", {})
    gauges = {"busy_fraction": None if busy is None else even(busy), "clock_mhz": more.pop("clock_mhz", even(1350.0))}
    return gpu_record(
        **{"limits": ALONE, "stages": stages, "device_loads": (replace(load, throttled=throttled, **gauges),), **more}
    )


def spread(speed: Interval) -> tuple[float, float]:
    """Logarithm of how far the interval reaches below and above its value."""
    return log(speed.value / speed.low), log(speed.high / speed.value)


def test_a_run_that_hardly_waits_has_the_speed_that_was_seen_and_what_another_run_would_differ_by() -> None:
    """Its own steps leave 2 %, and two runs differ by another 2 % (one standard deviation)."""
    speed, note = device_speed(at_work())
    assert (speed.value, note) == (400.0, "")
    assert spread(speed) == (
        pytest.approx(hypot(log(400 / 392), Z80 * 0.02)),
        pytest.approx(hypot(log(1.02), Z80 * 0.02)),
    )


def test_the_most_even_run_is_no_more_certain_than_runs_are_alike() -> None:
    pace = replace(gpu_record().pace, samples_per_s=Interval(value=400.0, low=399.9, high=400.1))
    speed, _note = device_speed(at_work(pace=pace))
    assert spread(speed) == pytest.approx((Z80 * BETWEEN_RUNS_LOG_SD,) * 2, rel=0.01)


@pytest.mark.parametrize("stages", [gpu_record().stages, BLIND])
def test_uc_014_a_starved_run_gives_the_speed_of_its_device_where_that_was_measured_alone(stages: Stages) -> None:
    speed, note = device_speed(gpu_record(stages=stages))
    assert speed.value == 1150.0
    assert speed.low == pytest.approx(1150 / exp(Z80 * 0.02), rel=0.005)
    assert "the device alone" in note


def test_a_device_alone_that_was_slower_than_the_training_does_not_count() -> None:
    slow = Limits(device_per_s=Interval(value=200.0, low=199.0, high=201.0))
    assert device_speed(at_work(BLIND, limits=slow))[0].value == 400.0


@pytest.mark.parametrize(("busy", "highest"), [(0.97, 1.0), (0.8, 1.0), (0.5, 2.0)])
def test_uc_014_where_nobody_saw_the_waiting_the_device_has_to_be_busy(busy: float, highest: float) -> None:
    speed, note = device_speed(at_work(BLIND, busy))
    assert speed.low == pytest.approx(400, rel=0.05)
    assert speed.high == pytest.approx(400 * highest, rel=0.05)
    assert ("at least" in note) == (highest > 1)


def test_uc_014_where_nothing_tells_whether_the_device_waited_there_is_no_speed() -> None:
    speed, note = device_speed(at_work(BLIND, None))
    assert speed is None
    assert "nobody saw" in note
    found, _reasons = measurement(at_work(BLIND, None))
    assert (found.samples_per_s, found.note) == (None, note)


def test_uc_014_else_a_range_from_the_speed_seen_to_that_without_the_wait() -> None:
    """104 of 160 ms are waiting: 400/s as seen, 1,143/s if the device never worked in that time."""
    speed, note = device_speed(gpu_record(limits=ALONE))
    assert speed.low == pytest.approx(392.0, rel=0.001)
    assert speed.high == pytest.approx(408 / (1 - 0.104 / 0.16), rel=0.001)
    assert speed.low < speed.value < speed.high
    assert "between" in note


@pytest.mark.parametrize("why", ["heat", "hardware", "power brake"])
def test_uc_024_a_card_that_grew_hot_is_told_by_its_speed_before(why: str) -> None:
    """6 steps a second in the first hour, 5 from then on, for heat: other hardware is predicted from 6."""
    pace = gpu_record().pace
    slow = replace(
        pace, step_s=Interval(value=1 / 5, low=0.199, high=0.201),
        samples_per_s=Interval(value=320.0, low=318.0, high=322.0),
        shift=Shift(at=21_600, before_s=1 / 6, after_s=1 / 5),
    )  # fmt: skip
    (load,) = gpu_record().device_loads
    hot = gpu_record(stages=BUSY, limits=ALONE, pace=slow, device_loads=(replace(load, throttled={why: 0.9}),))
    assert device_speed(hot)[0].value == pytest.approx(320 * 6 / 5)
    cool = gpu_record(stages=BUSY, limits=ALONE, pace=slow)
    assert device_speed(cool)[0].value == 320.0, "a change for another cause is how the job runs"


@pytest.mark.parametrize("why", ["heat", "hardware", "power brake"])
def test_uc_024_a_card_that_was_hot_from_the_start_may_be_faster_and_that_is_said(why: str) -> None:
    """1,380 → 1,150 MHz cost a fifth; a clock that fell further within the run says more."""
    speed, note = device_speed(at_work(throttled={why: 1.0}))
    assert speed.low == pytest.approx(400, rel=0.05)
    assert speed.high == pytest.approx(480, rel=0.05)
    assert "lowered its clock 100 % of the time" in note
    fell = Gauge(mean=1000.0, minimum=900.0, maximum=1500.0, samples=100)
    assert device_speed(at_work(throttled={why: 1.0}, clock_mhz=fell))[0].high == pytest.approx(600, rel=0.05)


def test_uc_024_a_hot_device_is_no_surer_where_it_was_measured_alone() -> None:
    (load,) = gpu_record().device_loads
    speed, note = device_speed(gpu_record(device_loads=(replace(load, clock_mhz=None, throttled={"heat": 0.5}),)))
    assert speed.high == pytest.approx(1150 * 1.1, rel=0.05)
    assert "lowered its clock 50 % of the time" in note


def test_a_cap_of_power_is_how_a_card_runs() -> None:
    assert device_speed(at_work(throttled={"power": 1.0})) == device_speed(at_work())


def test_a_neighbours_hot_card_leaves_the_jobs_speed_as_it_was_seen() -> None:
    loads = at_work().device_loads
    beside = replace(loads[0], index=1, throttled={"heat": 1.0})
    assert device_speed(at_work(device_loads=(*loads, beside))) == device_speed(at_work())


@pytest.mark.parametrize(("ending", "status"), [("failed", "failed"), ("stalled", "failed"), ("killed", "failed")])
def test_a_run_that_failed_after_few_steps_has_no_speed(ending: str, status: str) -> None:
    few, many = (replace(gpu_record().pace, steps=12 + n) for n in (29, 30))
    speed, note = device_speed(at_work(pace=few, ending=ending, status=status))
    assert speed is None
    assert "after 29 steady steps" in note
    assert device_speed(at_work(pace=many, ending=ending, status=status))[0].value == 400.0
    assert device_speed(at_work(pace=few))[0].value == 400.0, "a short run that ended as it should"


def test_neighbours_on_the_cpus_leave_the_speed_a_least_one() -> None:
    loud, quiet = (HostLoad(others_fraction=even(share)) for share in (0.5, 0.2))
    speed, note = device_speed(at_work(host_load=loud))
    assert speed.low == pytest.approx(400, rel=0.05)
    assert speed.high == pytest.approx(800, rel=0.05)
    assert "other processes took 50 % of the CPUs" in note
    assert device_speed(at_work(host_load=quiet)) == device_speed(at_work())


def test_a_run_that_the_host_holds_back_gives_a_least_speed() -> None:
    """The program reads a value in each step and waits half of it; the device is busy the other half."""
    waits = Stages(wait_s=0.001, forward_s=0.02, backward_s=0.04, optimizer_s=0.01, sync_s=0.08, syncs=1.0)
    speed, note = device_speed(at_work(waits, busy=0.5))
    assert speed.low == pytest.approx(400, rel=0.05)
    assert speed.high > 600
    assert "the host holds the device back (sync)" in note


def test_the_host_work_of_a_sample_is_decoding_and_augmenting_without_the_wait_for_storage() -> None:
    slow = LoaderTimes(fetch_s=0.105, read_s=0.1, decode_s=0.004, augment_s=0.001)
    assert host_work(gpu_record(loader=slow)) == (pytest.approx(0.005), "")
    assert host_work(gpu_record(loader=replace(slow, augment_s=None))) == (0.105, "")
    assert host_work(gpu_record(loader=None)) == (None, "")


def test_workers_that_share_cpus_take_longer_by_the_wall_than_they_work() -> None:
    """16 workers on 4 CPUs: each waits three quarters of its time."""
    crowded = replace(gpu_record().setup, workers=16)
    loader = LoaderTimes(fetch_s=0.02, decode_s=0.016, augment_s=0.004)
    seconds, why = host_work(gpu_record(setup=crowded, loader=loader))
    assert seconds == pytest.approx(0.005)
    assert "4 / 16" in why
    found, reasons = measurement(gpu_record(setup=crowded, loader=loader))
    assert (found.decode_s, reasons) == (pytest.approx(0.005), {"decode_s": why})


def test_a_run_on_re_encoded_files_says_nothing_of_what_the_originals_cost() -> None:
    found, reasons = measurement(gpu_record(setup=replace(gpu_record().setup, cached=True)))
    assert found.decode_s is None
    assert "re-encoded" in reasons["decode_s"]


def test_a_whole_run_gives_a_prediction_all_that_it_knows() -> None:
    found, reasons = measurement(gpu_record())
    assert (found.accelerator, found.accelerators, found.samples_per_s.value) == ("t4", 1, 1150.0)
    assert (found.decode_s, found.peak_memory_gib, found.epochs, found.samples) == (0.005, 3.2, 12.0, 20_000)
    assert reasons == {}


def test_uc_022_a_run_that_spilled_to_the_host_gives_memory_and_no_speed() -> None:
    (load,) = gpu_record().device_loads
    (card,) = gpu_record().devices
    spilled = gpu_record(devices=(replace(card, memory_gib=8.0),), device_loads=(replace(load, allocated_gib=13.0),))
    told, _why = measurement(spilled)
    assert (told.samples_per_s, told.peak_memory_gib) == (None, 13.0)


# ---- what travels with the job ----


def test_uc_016_what_a_network_store_gave_travels_to_every_offer_that_reads_from_it() -> None:
    base = gpu_record()
    store = Storage(filesystem="nfs4", network=True, read_mb_per_s=95.0)
    pace = replace(base.pace, step_s=even_s(64 / 850), samples_per_s=even_s(850.0), samples_per_step=64.0)
    run = gpu_record(
        host=replace(base.host, storage=store),
        setup=replace(base.setup, original_bytes=110e3),
        pace=pace,
        limits=Limits(device_per_s=even_s(3600.0)),
    )
    told, _why = measurement(run)
    assert told is not None
    assert told.storage_per_s == pytest.approx(95e6 / 110e3)
    local, _why = measurement(replace(run, host=replace(run.host, storage=replace(store, network=False))))
    assert local is not None
    assert local.storage_per_s is None


def even_s(value: float) -> Interval:
    return Interval(value=value, low=value * 0.99, high=value * 1.01)


def test_the_learning_curve_of_ones_own_data_is_told_from_its_first_epoch_on() -> None:
    epochs = tuple(Epoch(number=n, loss=1.0, samples=10, train_s=1.0, accuracy_fraction=n / 10) for n in (1, 2, 3))
    told, _why = measurement(gpu_record(epochs=epochs))
    assert told is not None
    assert told.curve_fraction == (0.1, 0.2, 0.3)
    resumed, _why = measurement(gpu_record(epochs=epochs[1:]))
    assert resumed is not None
    assert resumed.curve_fraction == ()
    made, _why = measurement(gpu_record(epochs=epochs), own_data=False)
    assert made is not None
    assert made.curve_fraction == ()
