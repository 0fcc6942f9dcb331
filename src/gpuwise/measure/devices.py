"""The devices a job uses, as its framework numbers them, each tied to the physical device that the driver knows.

The framework decides the vendor, not the tools found on the path. Frameworks number the visible devices from zero, the
driver numbers all of them, so they are matched by UUID or PCI bus id. Without a match there is no uuid, with the
reason, and nobody reads power of a stranger's card. Never raises for a missing library, driver or device.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuwise.errors import Message
from gpuwise.measure import nvml as management
from gpuwise.measure import smi
from gpuwise.measure.host import cpu_flags, cpu_model
from gpuwise.measure.nvml import Card, Seen, Slice
from gpuwise.measure.record import Backend, Device
from gpuwise.measure.system import REAL, System
from gpuwise.measure.visible import Entry, entries, limited
from gpuwise.units import BYTES_PER_GIB

LOADED = object()
"""torch: the one this process has imported, if it has. It is not imported for this: that takes seconds."""
INSTALLED = object()
"""nvml: the package `pynvml`, where it is installed."""

NATIVE_BF16 = (8, 0)
"""NVIDIA: bfloat16 in hardware from compute capability 8.0 (CUDA C++ programming guide, arithmetic instructions).
Frameworks call it supported on older cards too and emulate it there."""

CPU_BF16 = frozenset({"avx512_bf16", "amx_bf16", "bf16", "avx10_2"})
CPU_FP16 = frozenset({"avx512_fp16", "amx_fp16", "asimdhp"})
"""Flags of /proc/cpuinfo for arithmetic in hardware."""

UNUSED = "unused"
"""Key of a CPU device's reasons: an accelerator is there, and why the job does not use it."""

VENDORS: Mapping[str, str] = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
"""PCI vendor ids (PCI ID database)."""

TORCH_FAILURES = (RuntimeError, AssertionError, AttributeError, OSError, ValueError, TypeError, IndexError)
"""What asking a framework about devices can raise; torch asserts where it was built without them."""

_TEGRA = re.compile(r"\b(jetson|tegra|orin|thor|xavier|gb10)\b", re.I)


def devices(*, torch: Any = LOADED, nvml: Any = INSTALLED, system: System = REAL) -> tuple[Device, ...]:
    """Accelerators the job can use, or the CPU as the only device.

    torch, nvml: the modules, None where they are not there. Without torch the driver's list is taken, in the order of
    the visibility variable. A CPU device beside an idle accelerator says so in reasons["unused"].
    """
    framework = sys.modules.get("torch") if torch is LOADED else torch
    seen = management.look(management.find() if nvml is INSTALLED else nvml)
    found = _of_framework(framework, seen, system) if framework is not None else _of_driver(seen, system)
    return found or (cpu(system, unused(framework, seen, system)),)


def cpu(system: System = REAL, idle: str | None = None) -> Device:
    """The CPU as the one device of a job."""
    flags = cpu_flags(system)
    name = cpu_model(system)
    reasons = {"accelerator": "the job uses the CPU"} | ({UNUSED: idle} if idle else {})
    if name is None:
        reasons["name"] = "this system does not tell the CPU's name"
    if not flags:
        reasons["native_bf16"] = "this system does not list what the CPU can do"
    return Device(
        index=0,
        name=name or system.machine or "CPU",
        vendor=_cpu_vendor(name or ""),
        backend="cpu",
        unified=True,
        native_bf16=bool(flags & CPU_BF16) if flags else None,
        reasons=reasons,
    )


def _cpu_vendor(name: str) -> str:
    known = ("AMD", "Intel", "Apple", "ARM", "Ampere", "NVIDIA")
    return next((v for v in known if v.lower() in name.lower()), "unknown")


def native_bf16(capability: str | None) -> bool | None:
    """Whether an NVIDIA device of this compute capability ("7.5") computes bfloat16 in hardware."""
    return smi.version(capability) >= NATIVE_BF16 if capability else None


def unused(torch: Any, seen: Seen, system: System) -> str | None:
    """An accelerator that is there while the job uses the CPU, and the likely reason."""
    there = present(seen, system)
    if not there:
        return None
    return f"a GPU is present ({', '.join(there)}) but the job uses the CPU: {_why(torch, seen, system)}"


def present(seen: Seen, system: System = REAL) -> tuple[str, ...]:
    """Names of the accelerators in the machine, whether anything can use them or not."""
    if seen.cards:
        return tuple(card.name for card in seen.cards)
    vendors = [_pci_vendor(name, system) for name in system.names("/sys/bus/pci/devices")]
    return tuple(f"{vendor} accelerator" for vendor in vendors if vendor)


def _pci_vendor(slot: str, system: System) -> str | None:
    """The vendor of a 3D controller or processing accelerator (PCI classes 0x0302, 0x1200) or of NVIDIA's VGA cards.

    AMD and Intel put VGA functions into processors too, which train nothing.
    """
    kind = (system.line(f"/sys/bus/pci/devices/{slot}/class") or "")[:6]
    vendor = VENDORS.get(system.line(f"/sys/bus/pci/devices/{slot}/vendor") or "")
    return vendor if kind in {"0x0302", "0x1200"} or (kind == "0x0300" and vendor == "NVIDIA") else None


def _why(torch: Any, seen: Seen, system: System) -> str:
    hidden = limited("cuda", system.environ)
    if hidden is not None and entries(hidden[1]) == ():
        return f"{hidden[0]}={hidden[1]!r} hides every device"
    if torch is not None and not _built_for(torch):
        return f"torch {getattr(torch, '__version__', '')} is built without CUDA and ROCm"
    if seen.failure is not None:
        return f"its driver does not answer ({seen.failure})"
    if torch is None:
        return "no framework was asked"
    return f"torch is built for CUDA {_version(torch, 'cuda')} and the driver {seen.driver} is for CUDA {seen.cuda}"


def _built_for(torch: Any) -> str | None:
    return _version(torch, "cuda") or _version(torch, "hip") or _version(torch, "xpu")


def _version(torch: Any, name: str) -> str | None:
    return getattr(getattr(torch, "version", None), name, None)


def _of_framework(torch: Any, seen: Seen, system: System) -> tuple[Device, ...]:
    backend = framework_backend(torch, system)
    if backend == "cuda":
        return tuple(_cuda(torch, i, seen, system) for i in range(_count(torch.cuda)))
    if backend == "rocm":
        return tuple(_rocm(torch, i) for i in range(_count(torch.cuda)))
    if backend == "xpu":
        return tuple(_xpu(torch, i) for i in range(_count(torch.xpu)))
    if backend == "mps":
        return (_mps(system),)
    return (_xla(system),) if backend == "xla" else ()


def framework_backend(torch: Any, system: System = REAL) -> Backend:
    """What this build of the framework trains on here. ROCm shows itself through torch.cuda, with version.hip set."""
    if system.environ.get("PJRT_DEVICE") == "TPU":
        return "xla"
    for name, module in (("cuda", "cuda"), ("xpu", "xpu"), ("mps", "backends.mps")):
        if _available(torch, module):
            return "rocm" if name == "cuda" and _version(torch, "hip") else name  # type: ignore[return-value]
    return "cpu"


def _available(torch: Any, path: str) -> bool:
    try:
        place = torch
        for part in path.split("."):
            place = getattr(place, part)
        return bool(place.is_available())
    except TORCH_FAILURES:
        return False


def _count(module: Any) -> int:
    try:
        return int(module.device_count())
    except TORCH_FAILURES:
        return 0


def _properties(module: Any, index: int) -> Any:
    try:
        return module.get_device_properties(index)
    except TORCH_FAILURES:
        return None


def _cuda(torch: Any, index: int, seen: Seen, system: System) -> Device:
    told = _properties(torch.cuda, index)
    name, profile = management.split_name(str(getattr(told, "name", "unknown")))
    card, part, reason = _matched(told, profile, seen)
    total = getattr(told, "total_memory", None)
    major, minor = getattr(told, "major", None), getattr(told, "minor", None)
    device = Device(
        index=index,
        name=name,
        vendor="NVIDIA",
        backend="cuda",
        slice=profile,
        memory_gib=total / BYTES_PER_GIB if total else None,
        capability=None if major is None else f"{major}.{minor or 0}",
        unified=bool(getattr(told, "is_integrated", False)),
        driver=seen.driver,
        reasons={} if reason is None else {"uuid": reason, "power_limit_w": reason},
    )
    return _with_card(device, card, part, system) if card is not None else _finished(device, system)


def _matched(told: Any, profile: str | None, seen: Seen) -> tuple[Card | None, Slice | None, str | None]:
    """The physical device that a framework's device is: by its UUID, else by its PCI bus id."""
    uuid = str(getattr(told, "uuid", "") or "").removeprefix("GPU-").removeprefix("MIG-")
    for card in seen.cards if uuid else ():
        part = next((s for s in card.slices if s.uuid == f"MIG-{uuid}"), None)
        if part is not None or (card.uuid == f"GPU-{uuid}" and not profile):
            return card, part, None
    bus = _torch_bus_id(told)
    for card in seen.cards if bus else ():
        if card.bus_id == bus or card.uuid == f"GPU-{uuid}":
            return _only_slice(card, profile)
    why = seen.failure or "the driver lists no device with this device's UUID or PCI bus id"
    return None, None, f"cannot be tied to a physical device: {why}"


def _only_slice(card: Card, profile: str | None) -> tuple[Card | None, Slice | None, str | None]:
    if profile is None and not card.sliced:
        return card, None, None
    alike = [s for s in card.slices if profile in (None, s.profile)]
    if len(alike) == 1:
        return card, alike[0], None
    return None, None, f"cannot be tied to a physical device: the card has {len(alike)} such slices"


def _torch_bus_id(told: Any) -> str | None:
    bus, device = getattr(told, "pci_bus_id", None), getattr(told, "pci_device_id", None)
    if bus is None or device is None:
        return None
    return f"{getattr(told, 'pci_domain_id', 0) or 0:08x}:{bus:02x}:{device:02x}.0"


def _with_card(device: Device, card: Card, part: Slice | None, system: System) -> Device:
    """The driver's facts over the framework's. A slice has no power of its own: the card's serves all its slices."""
    reasons = dict(device.reasons) | dict(card.reasons)
    if part is not None:
        reasons["power_limit_w"] = "not measurable on a MIG slice: the card's power serves all its slices"
    merged = replace(
        device,
        uuid=part.uuid if part is not None else card.uuid,
        slice=device.slice or (part.profile if part is not None else None),
        memory_gib=(part.memory_gib if part is not None else card.memory_gib) or device.memory_gib,
        capability=device.capability or card.capability,
        power_limit_w=None if part is not None else card.power_limit_w,
        unified=device.unified or (card.memory_unsupported and _is_board(card, system)),
        reasons=reasons,
    )
    return _finished(merged, system)


def _is_board(card: Card, system: System) -> bool:
    """A board whose GPU uses the host's memory (Jetson, DGX Spark)."""
    model = system.line("/proc/device-tree/model") or ""
    return system.exists("/etc/nv_tegra_release") or bool(_TEGRA.search(model) or _TEGRA.search(card.name))


def _finished(device: Device, system: System) -> Device:
    """bfloat16 by capability; a board with shared memory has the host's."""
    reasons = dict(device.reasons)
    memory = device.memory_gib
    if device.unified:
        memory = memory or _host_gib(system)
        reasons["memory_gib"] = "unified memory, shared with the host: not comparable with a card's own"
    elif memory is not None:
        reasons.pop("memory_gib", None)
    if device.capability is not None:
        reasons.pop("capability", None)
    return replace(device, memory_gib=memory, native_bf16=native_bf16(device.capability), reasons=reasons)


def _host_gib(system: System) -> float | None:
    line = next((s for s in (system.text("/proc/meminfo") or "").splitlines() if s.startswith("MemTotal:")), "")
    return int(line.split()[1]) * 1024 / BYTES_PER_GIB if line else None


def _rocm(torch: Any, index: int) -> Device:
    """uuid: the PCI slot, under which the kernel's driver shows the device's figures (0000:c1:00.0)."""
    told = _properties(torch.cuda, index)
    total = getattr(told, "total_memory", None)
    slot = _torch_bus_id(told)
    architecture = str(getattr(told, "gcnArchName", "") or "").partition(":")[0]
    return Device(
        index=index,
        name=str(getattr(told, "name", "AMD accelerator")),
        vendor="AMD",
        backend="rocm",
        memory_gib=total / BYTES_PER_GIB if total else None,
        capability=architecture or None,
        native_bf16=_amd_bf16(architecture),
        unified=bool(getattr(told, "is_integrated", False)),
        driver=_version(torch, "hip"),
        uuid=slot[4:] if slot else None,
        reasons={"power_limit_w": "not read on AMD devices"} | ({} if slot else {"uuid": "torch tells no PCI slot"}),
    )


def _amd_bf16(architecture: str) -> bool | None:
    """Matrix units with bfloat16: CDNA (gfx908, gfx90a, gfx94x, gfx95x), RDNA 3 on (gfx11, gfx12); AMD ISA guides."""
    if not architecture:
        return None
    return architecture.startswith(("gfx908", "gfx90a", "gfx94", "gfx95", "gfx11", "gfx12"))


def _xpu(torch: Any, index: int) -> Device:
    told = _properties(torch.xpu, index)
    total = getattr(told, "total_memory", None)
    return Device(
        index=index,
        name=str(getattr(told, "name", "Intel accelerator")),
        vendor="Intel",
        backend="xpu",
        memory_gib=total / BYTES_PER_GIB if total else None,
        driver=getattr(told, "driver_version", None),
        reasons={
            "uuid": "Intel devices are not read out by NVML",
            "power_limit_w": "not read on Intel devices",
            "native_bf16": "the framework does not tell",
        },
    )


def _mps(system: System) -> Device:
    name = cpu_model(system) or "Apple GPU"
    why = "Apple's devices do not tell it to an ordinary user"
    return Device(
        index=0,
        name=name,
        vendor="Apple",
        backend="mps",
        unified=True,
        memory_gib=_host_gib(system),
        reasons={"uuid": why, "power_limit_w": why, "native_bf16": why, "memory_gib": "unified memory of the host"},
    )


def _xla(system: System) -> Device:
    kind = system.environ.get("TPU_ACCELERATOR_TYPE", "")
    why = "not read on TPUs"
    return Device(
        index=0,
        name=f"TPU {kind}".strip(),
        vendor="Google",
        backend="xla",
        native_bf16=True,
        reasons={"uuid": why, "power_limit_w": why, "memory_gib": why},
    )


def _of_driver(seen: Seen, system: System) -> tuple[Device, ...]:
    """No framework here: NVML's cards, else what a tool on the path lists, in the order of the visibility variable."""
    listing = smi.Listing() if seen.cards else smi.read(system)
    cards = seen.cards or tuple(reading.card for reading in listing.readings)
    driver = seen.driver or next((reading.driver for reading in listing.readings), None)
    backend: Backend = "xpu" if listing.vendor == "Intel" else "cuda"
    plain = Device(index=0, name="unknown", vendor=listing.vendor, backend=backend, driver=driver)
    chosen = _visible(cards, backend, system) if cards else ()
    return tuple(_of_card(replace(plain, index=i), card, part, system) for i, (card, part) in enumerate(chosen))


def _visible(cards: Sequence[Card], backend: Backend, system: System) -> tuple[tuple[Card | None, Slice | None], ...]:
    told = limited(backend, system.environ)
    listed = entries(told[1]) if told is not None else None
    if listed is None:
        sure = backend != "cuda" or _numbered_alike(cards, system)
        return tuple(_first_slice(card) if sure else (None, None) for card in cards)
    return tuple(_chosen(entry, cards, system) for entry in listed)


def _first_slice(card: Card) -> tuple[Card, Slice | None]:
    """CUDA shows the first slice of a card that is cut up."""
    return card, (card.slices[0] if card.slices else None)


def _chosen(entry: Entry, cards: Sequence[Card], system: System) -> tuple[Card | None, Slice | None]:
    if entry.kind == "slice":
        pairs = ((c, s) for c in cards for s in c.slices if _is_slice(entry, c, s))
        return next(pairs, (None, None))
    if entry.kind == "gpu":
        alike = [c for c in cards if c.uuid is not None and c.uuid.startswith(entry.uuid or "")]
    else:
        alike = [c for c in cards if c.index == entry.index] if _numbered_alike(cards, system) else []
    return _first_slice(alike[0]) if len(alike) == 1 else (None, None)


def _is_slice(entry: Entry, card: Card, part: Slice) -> bool:
    if entry.gpu_instance is None:
        return part.uuid is not None and part.uuid.startswith(entry.uuid or "")
    numbers = (part.gpu_instance, part.compute_instance)
    return card.uuid == entry.uuid and numbers == (entry.gpu_instance, entry.compute_instance)


def _numbered_alike(cards: Sequence[Card], system: System) -> bool:
    """CUDA numbers the fastest card first unless it is told to go by bus; among equal cards both mean the same."""
    by_bus = system.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    return by_bus or len({(c.name, c.memory_gib) for c in cards}) <= 1


def _of_card(device: Device, card: Card | None, part: Slice | None, system: System) -> Device:
    if card is None:
        why = (
            "cannot be tied to a physical device: the visibility variable names none, or the cards are unlike and "
            "CUDA_DEVICE_ORDER is not PCI_BUS_ID"
        )
        return replace(device, reasons={"uuid": why, "name": why, "power_limit_w": why})
    return _with_card(replace(device, name=card.name), card, part, system)


def words(found: Sequence[Device]) -> tuple[Message, ...]:
    """The devices as one says them, equal ones together: "1 MIG slice, 1g.10gb of H100", "unified memory 128 GiB"."""
    alike: dict[tuple[str, str | None, bool, float | None], int] = {}
    for device in found:
        key = (short_name(device.name), device.slice, device.unified and device.backend != "cpu", device.memory_gib)
        alike[key] = alike.get(key, 0) + 1
    return tuple(_words(count, *key) for key, count in alike.items())


def _words(count: int, name: str, profile: str | None, unified: bool, memory_gib: float | None) -> Message:
    if profile is not None and count == 1:
        return Message("1 MIG slice, {profile} of {name}", profile=profile, name=name)
    if profile is not None:
        return Message("{count} MIG slices, {profile} of {name}", count=count, profile=profile, name=name)
    if unified and memory_gib is not None:
        return Message("{count} {name}, unified memory {gib:.0f} GiB (shared)", count=count, name=name, gib=memory_gib)
    return Message("{count} {name}", count=count, name=name)


def short_name(name: str) -> str:
    """ "NVIDIA H100 80GB HBM3" is an H100: without the maker and what follows the memory size."""
    plain = re.sub(r"^(NVIDIA|AMD|Intel\(R\)|Intel)\s+", "", name)
    return re.sub(r"[\s-]+\d+\s?GB\b.*$", "", plain) or name


__all__ = ["UNUSED", "cpu", "devices", "framework_backend", "native_bf16", "present", "unused", "words"]
