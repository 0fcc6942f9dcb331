"""What devices and host show while a job runs: metric by metric, of the right card, of the job's own processes."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from machines import GIB, NOT_SUPPORTED, UNKNOWN, FakeCard, FakeError, FakeNvml, FakeSlice, machine

from gpuwise.measure import energy
from gpuwise.measure.counters import PATIENCE, NvmlReader, readers, throttles
from gpuwise.measure.elsewhere import PsutilReader
from gpuwise.measure.gauges import MOST_LOOKS, Rhythm, Sampler
from gpuwise.measure.processes import TICK_S, HostReader, Job, Rapl
from gpuwise.measure.record import Device
from gpuwise.measure.system import Ran, System

A100 = Device(index=0, name="NVIDIA A100", vendor="NVIDIA", backend="cuda", uuid="GPU-4")


def test_uc_028_power_is_that_of_the_card_with_the_devices_uuid() -> None:
    idle = FakeCard(uuid="GPU-0", values={"nvmlDeviceGetPowerUsage": 55_000})
    sample = NvmlReader(FakeNvml(idle, FakeCard(uuid="GPU-4")), A100).read(1.0)
    assert (sample.device, sample.power_w, sample.busy_fraction) == (0, 390, 0.97)
    assert (sample.clock_mhz, sample.temperature_c, sample.used_gib, sample.energy_j) == (1410, 61, 10, 5000)
    assert sample.throttle == ()


def test_uc_028_a_device_that_could_not_be_tied_is_not_read(tmp_path: Path) -> None:
    lost = replace(A100, uuid=None, reasons={"uuid": "cannot be tied to a physical device"})
    found, without = readers([lost], FakeNvml(FakeCard(uuid="GPU-0")), machine(tmp_path))
    assert found == ()
    assert without[0]["power_w"] == "cannot be tied to a physical device"


def test_uc_025_metrics_that_fail_are_none_with_the_reason_and_the_run_goes_on() -> None:
    broken = {"nvmlDeviceGetUtilizationRates": UNKNOWN, "nvmlDeviceGetPowerUsage": NOT_SUPPORTED}
    nvml = FakeNvml(FakeCard(uuid="GPU-4", values=broken))
    reader = NvmlReader(nvml, A100)
    samples = [reader.read(float(t)) for t in range(10)]
    assert all(s.busy_fraction is None and s.power_w is None and s.used_gib == 10 for s in samples)
    assert (reader.reasons["busy_fraction"], reader.reasons["power_w"]) == ("Unknown Error", "Not Supported")
    assert nvml.calls["nvmlDeviceGetUtilizationRates"] == PATIENCE
    load = energy.device_load(samples, (0, 9), 1.0, reader.reasons)
    assert load.reasons["busy_fraction"] == "Unknown Error"


def test_a_metric_that_fails_once_is_asked_for_again() -> None:
    answers = iter([UNKNOWN, SimpleNamespace(gpu=50), SimpleNamespace(gpu=60)])

    def utilisation() -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    reader = NvmlReader(FakeNvml(FakeCard(uuid="GPU-4", values={"nvmlDeviceGetUtilizationRates": utilisation})), A100)
    assert [reader.read(float(t)).busy_fraction for t in range(3)] == [None, 0.5, 0.6]
    assert "busy_fraction" not in reader.reasons


def test_uc_030_a_slice_has_memory_of_its_own_and_no_utilisation_or_power() -> None:
    card = FakeCard(uuid="GPU-4", slices=[FakeSlice(uuid="MIG-a")])
    reader = NvmlReader(FakeNvml(card), replace(A100, uuid="MIG-a", slice="1g.10gb"))
    sample = reader.read(0.0)
    assert (sample.busy_fraction, sample.power_w, sample.energy_j) == (None, None, None)
    assert (sample.used_gib, sample.clock_mhz) == (2, 1410)
    assert "MIG" in reader.reasons["busy_fraction"]


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0x0, ()),
        (0x1, ()),
        (0x4, ("power",)),
        (0x8 | 0x40, ("heat",)),
        (0x8, ("hardware",)),
        (0x20 | 0x4, ("power", "heat")),
        (0x8 | 0x80, ("power brake",)),
    ],
)
def test_reasons_for_a_low_clock_are_named(bits: int, names: tuple[str, ...]) -> None:
    assert throttles(bits) == names


class OldDriver(FakeNvml):
    """Bindings of today on a driver before 535, which knows the older of the two calls only."""

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any) -> int:  # noqa: N802
        return 0x40


def test_a_driver_that_knows_only_the_older_call_still_tells_that_its_card_is_hot() -> None:
    missing = {"nvmlDeviceGetCurrentClocksEventReasons": FakeError("Function Not Found")}
    reader = NvmlReader(OldDriver(FakeCard(uuid="GPU-4", values=missing)), A100)
    assert [reader.read(float(t)).throttle for t in range(2 * PATIENCE)] == [("heat",)] * 2 * PATIENCE
    assert "throttled" not in reader.reasons
    neither = NvmlReader(FakeNvml(FakeCard(uuid="GPU-4", values=missing)), A100)
    assert neither.read(0.0).throttle is None
    assert neither.reasons["throttled"]


class GpmNvml(FakeNvml):
    """A card with performance metrics: 70 % of its multiprocessors, 30 % of its bandwidth."""

    VALUES: Mapping[int, float] = {2: 70.0, 10: 30.0}

    def nvmlGpmQueryDeviceSupport(self, handle: Any) -> Any:  # noqa: N802
        return SimpleNamespace(isSupportedDevice=1)

    def nvmlGpmSampleAlloc(self) -> Any:  # noqa: N802
        return SimpleNamespace(taken=0)

    def nvmlGpmSampleGet(self, handle: Any, sample: Any) -> None:  # noqa: N802
        self.calls["gpm"] = self.calls.get("gpm", 0) + 1
        sample.taken = self.calls["gpm"]

    def c_nvmlGpmMetricsGet_t(self) -> Any:  # noqa: N802
        return SimpleNamespace(metrics=[SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0) for _ in range(4)])

    def nvmlGpmMetricsGet(self, wanted: Any) -> Any:  # noqa: N802
        assert wanted.sample1.taken < wanted.sample2.taken
        for slot in wanted.metrics[: wanted.numMetrics]:
            slot.value = self.VALUES[slot.metricId]
        return wanted


def test_how_much_of_a_chip_worked_is_known_from_the_second_look_on() -> None:
    reader = NvmlReader(GpmNvml(FakeCard(uuid="GPU-4")), A100)
    samples = [reader.read(float(t)) for t in range(4)]
    assert samples[0].sm_fraction is None
    assert [(s.sm_fraction, s.bandwidth_fraction) for s in samples[1:]] == [(0.7, 0.3)] * 3


def test_an_older_chip_says_why_it_has_no_such_counters() -> None:
    reader = NvmlReader(FakeNvml(FakeCard(uuid="GPU-4")), A100)
    assert reader.read(0.0).sm_fraction is None
    assert reader.reasons["sm_fraction"] == "nvmlGpmQueryDeviceSupport: Not Supported"


def test_the_real_library_has_the_calls_that_are_used() -> None:
    pynvml = pytest.importorskip("pynvml")
    wanted = pynvml.c_nvmlGpmMetricsGet_t()
    wanted.metrics[1].metricId = 10
    assert isinstance(wanted, ctypes.Structure)
    assert pynvml.NVML_GPM_METRIC_SM_UTIL == 2
    assert pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL == 10
    for name in (
        "nvmlGpmMigSampleGet",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetAttributes",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
    ):
        assert callable(getattr(pynvml, name))


def test_memory_of_others_is_told_only_where_the_driver_names_the_job() -> None:
    held = [SimpleNamespace(pid=7, usedGpuMemory=3 * GIB), SimpleNamespace(pid=8, usedGpuMemory=2 * GIB)]
    nvml = FakeNvml(FakeCard(uuid="GPU-4", values={"nvmlDeviceGetComputeRunningProcesses": lambda: held}))
    assert NvmlReader(nvml, A100, lambda: (7,)).read(0.0).others_gib == 2
    strange = NvmlReader(nvml, A100, lambda: (99,))
    assert strange.read(0.0).others_gib is None
    assert "others_gib" in strange.reasons


def test_without_the_library_the_tool_is_asked_and_says_what_it_cannot(tmp_path: Path) -> None:
    text = "index, uuid, utilization.gpu [%], power.draw [W]\n0, GPU-4, 88 %, 250.5 W\n"
    system = machine(tmp_path, programs={"nvidia-smi": lambda command: Ran(text=text)})
    (reader,), _ = readers([A100], FakeNvml(init=FakeError("NVML Shared Library Not Found")), system)
    assert (reader.read(0.0).busy_fraction, reader.read(0.0).power_w) == (0.88, 250.5)
    assert reader.reasons["energy_j"] == "the tool does not tell it"


def test_uc_031_an_amd_device_is_read_from_the_files_of_its_driver_in_its_own_slot(tmp_path: Path) -> None:
    slot = "/sys/bus/pci/devices/0000:c1:00.0"
    files = {
        f"{slot}/gpu_busy_percent": "96\n",
        f"{slot}/mem_info_vram_used": f"{48 * GIB}\n",
        f"{slot}/hwmon/hwmon3/power1_input": "620000000\n",
        f"{slot}/hwmon/hwmon3/freq1_input": "2100000000\n",
    }
    mi300x = Device(index=0, name="AMD Instinct MI300X", vendor="AMD", backend="rocm", uuid="0000:c1:00.0")
    (reader,), without = readers([mi300x], None, machine(tmp_path, files))
    sample = reader.read(0.0)
    assert (sample.busy_fraction, sample.used_gib, sample.power_w, sample.clock_mhz) == (0.96, 48, 620, 2100)
    assert sample.temperature_c is None
    assert "temperature_c" in reader.reasons
    assert "power_w" not in reader.reasons
    assert without == {}


# --- the host ---------------------------------------------------------------------------------------------------------


class FakeJob:
    """A scripted /proc: process 10 trains, 11 and 12 load."""

    def __init__(self, root: Path, *, children: str = "11 12") -> None:
        self.root, self.system = root, machine(root)
        self.write("/proc/10/task/10/children", children)
        self.set(0.0)

    def write(self, path: str, text: str) -> None:
        machine(self.root, {path: text})

    def set(
        self, cpu_s: float, *, waited_s: float = 0.0, busy_s: float = 0.0, state: str = "S", read_bytes: int = 0
    ) -> None:
        """Each process has used cpu_s so far; each of the two CPUs was busy for busy_s."""
        for pid in (10, 11, 12):
            ticks = round(cpu_s / TICK_S)
            self.write(f"/proc/{pid}/stat", f"{pid} (a (b) c) {state} " + " ".join(["0"] * 10) + f" {ticks} 0 0 0\n")
            self.write(f"/proc/{pid}/statm", "1000 300 100 0 0 0 0\n")
            self.write(f"/proc/{pid}/io", f"rchar: 1\nread_bytes: {read_bytes}\n")
            self.write(f"/proc/{pid}/status", "Name: x\nCpus_allowed_list:\t0-1\n")
            self.write(f"/proc/{pid}/task/{pid}/schedstat", f"{round(cpu_s * 1e9)} {round(waited_s * 1e9)} 5\n")
        ticks = round(busy_s / TICK_S)
        self.write(
            "/proc/stat", f"cpu 0\ncpu0 {ticks} 0 0 9 9 0 0 0\ncpu1 {ticks} 0 0 9 9 0 0 0\ncpu2 99999 0 0 0 0 0 0 0\n"
        )

    def reader(self, allowed: float = 2.0) -> HostReader:
        return HostReader(Job(10, self.system), allowed, self.system)


def test_the_jobs_share_is_of_the_allowed_cpus_and_the_rest_is_others(tmp_path: Path) -> None:
    job = FakeJob(tmp_path)
    reader = job.reader()
    reader.read(0.0)
    job.set(0.4, waited_s=0.1, busy_s=0.9)
    sample = reader.read(1.0)
    assert sample.job_fraction == pytest.approx(3 * 0.4 / 2)
    assert sample.main_fraction == pytest.approx(0.4)
    assert sample.others_fraction == pytest.approx((2 * 0.9 - 1.2) / 2)
    assert (sample.cpu_s, sample.waiting_s) == (pytest.approx(1.2), pytest.approx(0.3))


def test_a_loader_that_started_since_the_last_look_is_the_jobs_and_not_a_neighbour(tmp_path: Path) -> None:
    job = FakeJob(tmp_path, children="11")
    reader = job.reader()
    reader.read(0.0)
    job.write("/proc/10/task/10/children", "11 12")
    job.set(0.5, busy_s=0.75)
    sample = reader.read(1.0)
    assert sample.job_fraction == pytest.approx(3 * 0.5 / 2)
    assert sample.others_fraction == pytest.approx(0.0)


def test_a_thread_found_late_counts_for_no_more_than_the_time_since_the_last_look(tmp_path: Path) -> None:
    job = FakeJob(tmp_path, children="")
    reader = job.reader()
    reader.read(0.0)
    job.write("/proc/10/task/99/children", "11")
    job.set(5.0)
    for t in range(1, 4):
        reader.read(float(t))
    sample = reader.read(4.0)
    assert sample.job_fraction == pytest.approx(1.0 / 2)
    assert sample.cpu_s == pytest.approx(10.0)


def test_a_kernel_that_lists_no_children_is_asked_for_every_process_its_parent(tmp_path: Path) -> None:
    job = FakeJob(tmp_path)
    (tmp_path / "proc/10/task/10/children").unlink()
    for pid, parent in ((11, 10), (12, 11), (13, 1)):
        job.write(f"/proc/{pid}/stat", f"{pid} (x) S {parent} " + "0 " * 12)
    assert Job(10, job.system).look() == (10, 11, 12)


def test_uc_030_per_cent_are_of_the_allotted_cores(tmp_path: Path) -> None:
    job = FakeJob(tmp_path)
    reader = job.reader(allowed=16)
    reader.read(0.0)
    job.set(15.93 / 3)
    share = reader.read(1.0).job_fraction
    assert share == pytest.approx(0.996, abs=0.0005)
    assert energy.share(1.0, 0.0) is None


def test_uc_030_a_loader_that_waits_for_storage_is_seen_in_its_state(tmp_path: Path) -> None:
    job = FakeJob(tmp_path)
    reader = job.reader()
    job.write("/proc/11/stat", "11 (x) D " + "0 " * 12)
    sample = reader.read(0.0)
    assert sample.io_fraction == 0.5
    assert sample.job_gib == pytest.approx((3 * 200 + 100) * os.sysconf("SC_PAGE_SIZE") / GIB)


def test_bytes_read_grow_over_processes_that_come_and_go(tmp_path: Path) -> None:
    job = FakeJob(tmp_path)
    reader = job.reader()
    job.set(0.0, read_bytes=1000)
    assert reader.read(0.0).read_bytes == 0
    job.set(0.0, read_bytes=1500)
    (tmp_path / "proc/12/stat").unlink()
    assert reader.read(1.0).read_bytes == 1000


def test_uc_019_an_affinity_that_an_import_narrowed_is_noticed_in_the_job_and_its_workers(tmp_path: Path) -> None:
    job = FakeJob(tmp_path)
    reader = job.reader()
    reader.read(0.0)
    assert (reader.affinity_now, reader.affinity_least_worker) == (2, 2)
    job.write("/proc/10/status", "Cpus_allowed_list:\t0-15\n")
    job.write("/proc/11/status", "Cpus_allowed_list:\t0\n")
    for t in range(1, 5):
        reader.read(float(t))
    assert (reader.affinity_now, reader.affinity_least_worker) == (16, 1)


def test_a_kernel_without_schedstat_gives_cpu_time_and_a_reason_for_the_waiting(tmp_path: Path) -> None:
    job = FakeJob(tmp_path)
    for pid in (10, 11, 12):
        (tmp_path / f"proc/{pid}/task/{pid}/schedstat").unlink()
    reader = job.reader()
    reader.read(0.0)
    for pid in (10, 11, 12):
        job.write(f"/proc/{pid}/stat", f"{pid} (x) S " + "0 " * 10 + f"{round(0.5 / TICK_S)} 0\n")
    sample = reader.read(1.0)
    assert (sample.cpu_s, sample.waiting_s) == (pytest.approx(1.5), None)
    assert "waiting_fraction" in reader.reasons


def test_a_job_that_has_ended_gives_nothing_and_no_error(tmp_path: Path) -> None:
    sample = HostReader(Job(999, machine(tmp_path)), 2.0, machine(tmp_path)).read(0.0)
    assert (sample.job_fraction, sample.job_gib, sample.read_bytes) == (None, None, None)


def test_the_quotas_periods_are_those_of_the_jobs_group(tmp_path: Path) -> None:
    job = FakeJob(tmp_path)
    job.write("/proc/self/mountinfo", "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    job.write("/proc/10/cgroup", "0::/job\n")
    job.write("/sys/fs/cgroup/job/cpu.max", "200000 100000\n")
    job.write("/sys/fs/cgroup/job/cpu.stat", "nr_periods 100\nnr_throttled 40\n")
    sample = job.reader().read(0.0)
    assert (sample.quota_periods, sample.quota_throttled) == (100, 40)


RAPL = "/sys/class/powercap/intel-rapl:0"


def test_uc_044_the_cpus_energy_is_measured_or_unknown_and_never_a_guess(tmp_path: Path) -> None:
    hidden = Rapl(machine(tmp_path))
    assert hidden.read() is None
    assert hidden.reason is not None
    locked = machine(tmp_path, {f"{RAPL}/name": "package-0\n"})
    assert "administrator" in (Rapl(locked).reason or "")


def test_a_counter_of_energy_that_wraps_around_goes_on_growing(tmp_path: Path) -> None:
    files = {f"{RAPL}/energy_uj": "9000000\n", f"{RAPL}/max_energy_range_uj": "10000000\n"}
    counter = Rapl(machine(tmp_path, files))
    assert counter.read() == 0
    machine(tmp_path, {f"{RAPL}/energy_uj": "2000000\n"})
    assert counter.read() == pytest.approx(3.0)


# --- the sampler ------------------------------------------------------------------------------------------------------


def wait_until(there: Callable[[], bool], within_s: float = 20.0) -> None:
    until = time.monotonic() + within_s
    while not there():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_looks_beyond_the_limit_are_thinned_and_the_interval_doubles() -> None:
    clock = iter(range(10**9))
    rhythm = Rhythm(lambda t: t, 0.2, lambda: float(next(clock)))
    for _ in range(MOST_LOOKS + 1):
        rhythm.step()
    assert len(rhythm.seen()) == MOST_LOOKS // 2 + 1
    assert rhythm.asked_s == 0.4


def test_the_sampler_watches_a_real_process_and_says_what_that_cost() -> None:
    sampler = Sampler(nvml=FakeNvml(FakeCard(uuid="GPU-4")), device_s=0.02, host_s=0.02)
    sampler.start(os.getpid(), [A100])
    wait_until(lambda: all(len(seen) > 2 for seen in sampler.taken()))
    samples, host_samples = sampler.stop()
    assert samples[0].power_w == 390
    assert host_samples[-1].cpu_s is None or host_samples[-1].cpu_s >= 0
    assert sampler.cost_fraction is not None
    assert sampler.device_reasons[0]["sm_fraction"]
    assert len(sampler.taken()[0]) == len(samples)


def test_devices_may_become_known_while_the_job_runs(tmp_path: Path) -> None:
    sampler = Sampler(nvml=FakeNvml(FakeCard(uuid="GPU-4")), system=machine(tmp_path), device_s=0.01, host_s=0.01)
    sampler.start(10, [])
    sampler.use([replace(A100, index=3)])
    wait_until(lambda: bool(sampler.taken()[0]))
    assert {s.device for s in sampler.stop()[0]} == {3}


def test_a_system_without_proc_is_watched_by_psutil() -> None:
    psutil = pytest.importorskip("psutil")
    reader = PsutilReader(os.getpid(), 2.0, psutil)
    reader.read(0.0)
    sum(range(200_000))
    sample = reader.read(1.0)
    assert sample.job_gib is not None
    assert sample.job_gib > 0
    assert sample.job_fraction is not None
    assert set(PsutilReader(1, 2.0, None).reasons) > {"job_fraction", "energy_j"}


def test_the_view_of_a_machine_says_how_a_program_failed() -> None:
    real = System()
    assert real.run(("false",), 5.0).failure == "false ended with 1"
    assert "no answer within" in (real.run(("sleep", "5"), 0.1).failure or "")
    assert real.run(("a-program-that-is-not-there",), 1.0).failure is not None
    assert real.run(("printf", "x"), 5.0) == Ran(text="x")
