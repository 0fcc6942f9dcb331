"""What a device shows while it works, read metric by metric: one that fails is dropped with its reason.

busy_fraction is NVML's utilisation, the share of time in which any kernel ran. sm_fraction and bandwidth_fraction say
how much of the chip worked: NVML's GPM, Hopper and newer. energy_j is the card's own counter, Volta and newer.
Source: NVML API reference (nvmlDeviceGet…, nvmlGpmMetricsGet; GPM ids SM_UTIL = 2, DRAM_BW_UTIL = 10).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gpuwise.measure import smi
from gpuwise.measure.energy import Sample
from gpuwise.measure.nvml import ask, look
from gpuwise.measure.record import Device
from gpuwise.measure.system import System
from gpuwise.units import BYTES_PER_GIB

PATIENCE = 3
"""A metric that fails so often in a row is not asked for again."""
OTHERS_EVERY = 25
"""Who else uses the device changes rarely, and costs more to ask."""
SM_CLOCK = 1
GPU_SENSOR = 0
GPM_METRICS: Mapping[str, int] = {"sm_fraction": 2, "bandwidth_fraction": 10}

THROTTLES: Mapping[int, str] = {
    0x02: "clocks set", 0x04: "power", 0x08: "hardware", 0x10: "sync", 0x20: "heat", 0x40: "heat", 0x80: "power brake",
    0x100: "clocks set",
}  # fmt: skip
"""Bits of nvmlClocksEventReason… -> `energy.Throttle`. 0x1, idle, holds nothing back."""

ON_SLICE = "not measurable on a MIG slice: the card counts it for all its slices"
NOT_ON_SLICES = ("busy_fraction", "power_w", "energy_j")
FIELDS = (
    "busy_fraction", "sm_fraction", "bandwidth_fraction", "power_w", "energy_j", "clock_mhz", "temperature_c",
    "used_gib", "others_gib", "throttled",
)  # fmt: skip


def throttles(bits: int) -> tuple[str, ...]:
    """Reasons in force, by name. "hardware" only where the hardware does not say what of."""
    named = dict.fromkeys(name for bit, name in THROTTLES.items() if bits & bit)
    if "hardware" in named and ("heat" in named or "power brake" in named):
        del named["hardware"]
    return tuple(named)


class NvmlReader:
    """One device by NVML. `read` gives a sample; `reasons`: field -> why it is missing."""

    def __init__(self, nvml: Any, device: Device, job: Callable[[], Collection[int]] = tuple) -> None:
        self.reasons: dict[str, str] = {}
        self._nvml, self.read_index, self._job = nvml, device.index, job
        self._failed: dict[str, int] = {}
        self._others: float | None = None
        self._rounds = 0
        own = ask(nvml, "nvmlDeviceGetHandleByUUID", device.uuid)
        card = ask(nvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", own.value) if device.slice else own
        self._own = own.value
        self._metrics = self._table(own.value, card.value if card.value is not None else own.value)
        if own.value is None:
            self._give_up(FIELDS, device.reasons.get("uuid") or own.reason or "")
        elif device.slice:
            self._give_up(NOT_ON_SLICES, ON_SLICE)
        self._gpm = Gpm(nvml, own.value, card.value if device.slice else None) if own.value is not None else None
        if self._gpm is not None and self._gpm.reason is not None:
            self.reasons |= dict.fromkeys(GPM_METRICS, self._gpm.reason)

    def read(self, t_s: float) -> Sample:
        values = {name: self._value(name, get) for name, get in list(self._metrics.items())}
        values |= self._gpm.read() if self._gpm is not None else {}
        self._rounds += 1
        return Sample(
            t_s=t_s,
            device=self.read_index,
            throttle=values.pop("throttled", None),
            others_gib=self._of_others(),
            **values,
        )

    def _table(self, own: Any, card: Any) -> dict[str, Callable[[], Any]]:
        """Field -> how to read it; a slice has memory of its own, clocks and heat of its card."""
        n = self._nvml
        return {
            "busy_fraction": lambda: n.nvmlDeviceGetUtilizationRates(own).gpu / 100,
            "power_w": lambda: n.nvmlDeviceGetPowerUsage(own) / 1000,
            "energy_j": lambda: n.nvmlDeviceGetTotalEnergyConsumption(own) / 1000,
            "clock_mhz": lambda: float(n.nvmlDeviceGetClockInfo(card, SM_CLOCK)),
            "temperature_c": lambda: float(n.nvmlDeviceGetTemperature(card, GPU_SENSOR)),
            "used_gib": lambda: n.nvmlDeviceGetMemoryInfo(own).used / BYTES_PER_GIB,
            "throttled": lambda: throttles(_event_reasons(n, card)),
        }

    def _give_up(self, fields: Sequence[str], reason: str) -> None:
        for name in fields:
            self._metrics.pop(name, None)
            self.reasons[name] = reason

    def _value(self, name: str, get: Callable[[], Any]) -> Any:
        seen = ask(_Call(get, self._nvml), "now")
        if seen.reason is None:
            self._failed.pop(name, None)
            self.reasons.pop(name, None)
            return seen.value
        self.reasons[name] = seen.reason.removeprefix("now: ")
        self._failed[name] = self._failed.get(name, 0) + 1
        if self._failed[name] >= PATIENCE:
            del self._metrics[name]
        return None

    def _of_others(self) -> float | None:
        """GiB that processes outside of the job hold, None where the driver does not tell whose they are."""
        if self._own is None or self._rounds % OTHERS_EVERY != 1:
            return self._others
        seen, job = ask(self._nvml, "nvmlDeviceGetComputeRunningProcesses", self._own), set(self._job())
        there = {p.pid: getattr(p, "usedGpuMemory", None) for p in seen.value or ()}
        if seen.reason is not None:
            self.reasons["others_gib"] = seen.reason
        elif not job & set(there) or None in there.values():
            self.reasons["others_gib"] = "the driver does not tell which of its processes are the job's"
            self._others = None
        else:
            self.reasons.pop("others_gib", None)
            self._others = sum(v or 0 for pid, v in there.items() if pid not in job) / BYTES_PER_GIB
        return self._others


class _Call:
    """A single call, as a library with one function, so that `ask` handles what it raises."""

    def __init__(self, now: Callable[[], Any], nvml: Any) -> None:
        self.now, self.NVMLError = now, getattr(nvml, "NVMLError", None)


def _event_reasons(nvml: Any, card: Any) -> int:
    """The call was renamed with driver 535: newer bindings have both names, older drivers answer to the old one."""
    newer = ask(nvml, "nvmlDeviceGetCurrentClocksEventReasons", card)
    bits = newer.value if newer.reason is None else nvml.nvmlDeviceGetCurrentClocksThrottleReasons(card)
    return int(bits)


class Gpm:
    """Performance metrics between two looks: how much of the chip worked, not whether any of it did.

    card: of a slice, whose instance is read by itself. reason: why there are none.
    """

    def __init__(self, nvml: Any, device: Any, card: Any = None) -> None:
        self.reason: str | None = None
        self._nvml, self._device, self._card = nvml, device, card
        self._instance = ask(nvml, "nvmlDeviceGetGpuInstanceId", device).value if card is not None else None
        support = ask(nvml, "nvmlGpmQueryDeviceSupport", card if card is not None else device)
        if not getattr(support.value, "isSupportedDevice", 0):
            self.reason = (
                "counters of the chip's parts need Hopper or newer" if support.reason is None else support.reason
            )
            return
        taken = [ask(nvml, "nvmlGpmSampleAlloc") for _ in range(2)]
        self.reason = next((a.reason for a in taken if a.reason is not None), None)
        self._before, self._after = (a.value for a in taken)
        self._ready = False

    def read(self) -> dict[str, float | None]:
        """Fractions since the last call; None at the first one."""
        if self.reason is not None:
            return {}
        looked = self._look()
        if looked is not None:
            self._ready = False
            return {}
        ready, self._ready = self._ready, True
        self._before, self._after = self._after, self._before
        return self._since(self._after, self._before) if ready else {}

    def _look(self) -> str | None:
        if self._card is None:
            return ask(self._nvml, "nvmlGpmSampleGet", self._device, self._after).reason
        return ask(self._nvml, "nvmlGpmMigSampleGet", self._card, self._instance, self._after).reason

    def _since(self, first: Any, second: Any) -> dict[str, float | None]:
        wanted = ask(self._nvml, "c_nvmlGpmMetricsGet_t").value
        wanted.version, wanted.numMetrics = getattr(self._nvml, "NVML_GPM_METRICS_GET_VERSION", 1), len(GPM_METRICS)
        wanted.sample1, wanted.sample2 = first, second
        for slot, metric in enumerate(GPM_METRICS.values()):
            wanted.metrics[slot].metricId = metric
        got = ask(self._nvml, "nvmlGpmMetricsGet", wanted)
        if got.reason is not None:
            self.reason = got.reason
            return {}
        filled = {name: wanted.metrics[slot] for slot, name in enumerate(GPM_METRICS)}
        return {name: None if m.nvmlReturn else m.value / 100 for name, m in filled.items()}


class SmiReader:
    """One device by the tool on the path, where no library answers; asked rarely, since each look starts a program."""

    def __init__(self, system: System, device: Device) -> None:
        self.reasons = dict.fromkeys((*GPM_METRICS, "energy_j", "throttled", "others_gib"), "the tool does not tell it")
        self.read_index = device.index
        self._system, self._device = system, device

    def read(self, t_s: float) -> Sample:
        listing = smi.read(self._system)
        found = next((r for r in listing.readings if r.uuid and r.uuid == self._device.uuid), None)
        if found is None:
            self.reasons |= dict.fromkeys(FIELDS, listing.failure or "the tool does not list this device")
            return Sample(t_s=t_s, device=self._device.index)
        self.reasons |= found.notes
        return Sample(
            t_s=t_s,
            device=self._device.index,
            busy_fraction=found.busy_fraction,
            power_w=found.power_w,
            clock_mhz=found.clock_mhz,
            temperature_c=found.temperature_c,
            used_gib=found.used_gib,
        )


class AmdReader:
    """One AMD device by the files of the kernel's driver (amdgpu, GPU Power/Thermal Controls and Monitoring)."""

    def __init__(self, system: System, device: Device) -> None:
        self.read_index = device.index
        self.reasons = dict.fromkeys(FIELDS, "the kernel's driver does not show it")
        self._system, self._folder = system, f"/sys/bus/pci/devices/{device.uuid}"
        sensors = system.names(f"{self._folder}/hwmon")
        self._sensor = f"{self._folder}/hwmon/{sensors[0]}" if sensors else ""

    def read(self, t_s: float) -> Sample:
        values: dict[str, Any] = {
            "busy_fraction": self._number(f"{self._folder}/gpu_busy_percent", 0.01),
            "used_gib": self._number(f"{self._folder}/mem_info_vram_used", 1 / BYTES_PER_GIB),
            "power_w": self._power_w(),
            "clock_mhz": self._number(f"{self._sensor}/freq1_input", 1e-6),
            "temperature_c": self._number(f"{self._sensor}/temp1_input", 1e-3),
        }
        for name, value in values.items():
            if value is not None:
                self.reasons.pop(name, None)
        return Sample(t_s=t_s, device=self.read_index, **values)

    def _power_w(self) -> float | None:
        """Newer cards show a momentary power only, older ones an average."""
        mean = self._number(f"{self._sensor}/power1_average", 1e-6)
        return mean if mean is not None else self._number(f"{self._sensor}/power1_input", 1e-6)

    def _number(self, path: str, factor: float) -> float | None:
        seen = self._system.number(path)
        return None if seen is None else seen * factor


Reader = NvmlReader | SmiReader | AmdReader


def readers(
    devices: Sequence[Device], nvml: Any, system: System, job: Callable[[], Collection[int]] = tuple
) -> tuple[tuple[Reader, ...], dict[int, dict[str, str]]]:
    """A reader for each device that can be read, and for each other one why it cannot."""
    seen = look(nvml)
    found: list[Reader] = []
    without: dict[int, dict[str, str]] = {}
    for device in devices:
        if device.backend == "rocm" and device.uuid is not None:
            found.append(AmdReader(system, device))
        elif device.backend != "cuda" or device.uuid is None:
            why = device.reasons.get("uuid") or f"no counters are read on {device.backend}"
            without[device.index] = dict.fromkeys(FIELDS, why)
        elif seen.failure is None:
            found.append(NvmlReader(nvml, device, job))
        elif system.which("nvidia-smi"):
            found.append(SmiReader(system, device))
        else:
            without[device.index] = dict.fromkeys(FIELDS, seen.failure)
    return tuple(found), without
