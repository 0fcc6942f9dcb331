"""Machines that do not exist: files under a folder, and a scripted NVML with cards of our choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gpuwise.measure.system import Ran, System, Usage

GIB = 2**30

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:22 / /proc rw - proc proc rw
25 22 0:24 / /dev/shm rw - tmpfs shm rw,size=65536k
31 22 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
40 22 0:50 / /mnt/paintings rw - nfs4 server:/export rw
41 22 0:51 / /mnt/my\\040bucket rw - fuse.s3fs s3fs rw
"""
MEMINFO = "MemTotal:       209715200 kB\nMemFree:        100000000 kB\nMemAvailable:   200000000 kB\n"


def machine(
    root: Path,
    files: Mapping[str, str] | None = None,
    *,
    affinity: int | None = 4,
    usage: Callable[[Path], Usage | None] = lambda path: (100 * GIB, 40 * GIB),
    programs: Mapping[str, Callable[[Sequence[str]], Ran]] | None = None,
    environ: Mapping[str, str] | None = None,
    cpu_count: int = 192,
    name: str = "Linux",
    machine: str = "x86_64",
) -> System:
    """A machine whose /proc and /sys are `files`, and on whose path are `programs`."""
    for path, text in (files or {}).items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    known = programs or {}
    return System(
        root=root,
        environ=environ or {},
        name=name,
        release="6.1",
        machine=machine,
        cpu_count=lambda: cpu_count,
        affinity=lambda: frozenset(range(affinity)) if affinity else None,
        usage=usage,
        run=lambda command, timeout_s: known[Path(command[0]).name](command),
        which=lambda program: f"/usr/bin/{program}" if program in known else None,
    )


class FakeError(Exception):
    """As pynvml raises it: one class for all codes, worded by the library."""

    def __init__(self, text: str) -> None:
        super().__init__(text)


NOT_SUPPORTED = FakeError("Not Supported")
UNKNOWN = FakeError("Unknown Error")


@dataclass
class FakeSlice:
    uuid: str
    name: str = "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    memory: int = 10 * GIB
    gpu_instance: int = 7
    compute_instance: int = 0
    card: Any = None


@dataclass
class FakeCard:
    """values: name of an NVML call -> what it gives, an exception to raise, or a function without arguments."""

    uuid: str
    name: str = "NVIDIA A100-SXM4-40GB"
    bus: int = 1
    values: Mapping[str, Any] = field(default_factory=dict)
    slices: Sequence[FakeSlice] = ()

    @property
    def bus_id(self) -> str:
        return f"00000000:{self.bus:02X}:00.0"


DEFAULTS: Mapping[str, Any] = {
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=40 * GIB, used=10 * GIB),
    "nvmlDeviceGetCudaComputeCapability": (8, 0),
    "nvmlDeviceGetEnforcedPowerLimit": 400_000,
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97, memory=40),
    "nvmlDeviceGetPowerUsage": 390_000,
    "nvmlDeviceGetTotalEnergyConsumption": 5_000_000,
    "nvmlDeviceGetClockInfo": 1410,
    "nvmlDeviceGetTemperature": 61,
    "nvmlDeviceGetCurrentClocksEventReasons": 0,
    "nvmlDeviceGetComputeRunningProcesses": (),
    "nvmlGpmQueryDeviceSupport": NOT_SUPPORTED,
}


class FakeNvml:
    """The calls of pynvml that are used, on scripted cards. `calls` counts them."""

    NVMLError = FakeError

    def __init__(self, *cards: FakeCard, init: Exception | None = None) -> None:
        self.cards, self.init = cards, init
        self.calls: dict[str, int] = {}

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        if self.init is not None:
            raise self.init

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeCard:  # noqa: N802
        return self.cards[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:  # noqa: N802
        found = [h for c in self.cards for h in (c, *c.slices) if h.uuid == uuid]
        if not found:
            raise FakeError("Not Found")
        return found[0]

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"418.87.01"

    def nvmlSystemGetCudaDriverVersion(self) -> int:  # noqa: N802
        return 13000

    def nvmlDeviceGetName(self, handle: Any) -> str:  # noqa: N802
        return str(handle.name)

    def nvmlDeviceGetUUID(self, handle: Any) -> str:  # noqa: N802
        return str(handle.uuid)

    def nvmlDeviceGetPciInfo(self, handle: FakeCard) -> Any:  # noqa: N802
        return SimpleNamespace(busId=handle.bus_id.encode())

    def nvmlDeviceGetMigMode(self, handle: FakeCard) -> tuple[int, int]:  # noqa: N802
        return (1, 1) if handle.slices else (0, 0)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: FakeCard) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: FakeCard, index: int) -> FakeSlice:  # noqa: N802
        if index >= len(handle.slices):
            raise FakeError("Not Found")
        return handle.slices[index]

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, part: FakeSlice) -> FakeCard:  # noqa: N802
        return next(c for c in self.cards if part in c.slices)

    def nvmlDeviceGetGpuInstanceId(self, part: FakeSlice) -> int:  # noqa: N802
        return part.gpu_instance

    def nvmlDeviceGetComputeInstanceId(self, part: FakeSlice) -> int:  # noqa: N802
        return part.compute_instance

    def __getattr__(self, name: str) -> Any:
        if name not in DEFAULTS:
            raise AttributeError(name)

        def call(handle: Any, *_: Any) -> Any:
            self.calls[name] = self.calls.get(name, 0) + 1
            if isinstance(handle, FakeSlice) and name == "nvmlDeviceGetMemoryInfo":
                return SimpleNamespace(total=handle.memory, used=2 * GIB)
            value = getattr(handle, "values", {}).get(name, DEFAULTS[name])
            if isinstance(value, Exception):
                raise value
            return value() if callable(value) else value

        return call


def torch_with(
    *cards: Mapping[str, Any], hip: str | None = None, cuda: str | None = "13.0", available: bool = True
) -> Any:
    """A framework that sees these devices, each given by its properties."""
    return SimpleNamespace(
        __version__="2.14.1",
        version=SimpleNamespace(hip=hip, cuda=cuda),
        cuda=SimpleNamespace(
            is_available=lambda: available and bool(cards),
            device_count=lambda: len(cards),
            get_device_properties=lambda i: SimpleNamespace(**cards[i]),
        ),
    )
