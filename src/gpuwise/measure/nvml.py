"""The cards that NVIDIA's management library sees. Each call stands alone: what one cannot tell is None with a reason.

Under WSL2, on boards with shared memory and on MIG slices single calls fail, with documented error codes and with
others. `pynvml` is handed in, so that tests script a machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuwise.units import BYTES_PER_GIB, Gib, Watts

FEATURES = 64
"""Most MIG slices looked for on a card (7 exist today)."""

_PROFILE = re.compile(r"\s+MIG\s+(\S+)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """value of one call, or None with the reason."""

    value: Any = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One MIG slice of a card. profile: such as 1g.10gb."""

    uuid: str | None
    profile: str | None
    memory_gib: Gib | None
    gpu_instance: int | None
    compute_instance: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One physical card. index: as NVML numbers it, by PCI bus. memory_unsupported: the driver keeps no memory of its
    own for it (boards whose memory is the host's)."""

    index: int
    name: str
    uuid: str | None = None
    bus_id: str | None = None
    memory_gib: Gib | None = None
    memory_unsupported: bool = False
    capability: str | None = None
    power_limit_w: Watts | None = None
    slices: tuple[Slice, ...] = ()
    sliced: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What NVML saw. failure: why nothing, where it could not be asked at all. cuda: newest CUDA of the driver."""

    cards: tuple[Card, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    failure: str | None = None


def find() -> Any | None:
    """The module `pynvml`, None where it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def failures(nvml: Any) -> tuple[type[Exception], ...]:
    """What a call into the library can raise; bindings and drivers of unlike age raise more than its own errors."""
    own = getattr(nvml, "NVMLError", None)
    named = (own,) if isinstance(own, type) and issubclass(own, Exception) else ()
    return (*named, AttributeError, TypeError, ValueError, OSError, ArithmeticError)


def ask(nvml: Any, function: str, *arguments: Any) -> Answer:
    """One call. Text of old bindings comes as bytes and is decoded."""
    try:
        value = getattr(nvml, function)(*arguments)
        return Answer(value=value.decode(errors="replace") if isinstance(value, bytes) else value)
    except failures(nvml) as error:
        return Answer(reason=f"{function}: {_said(error, nvml)}")


def _said(error: Exception, nvml: Any) -> str:
    try:
        return str(error) or type(error).__name__
    except failures(nvml):  # the library words its own errors, and can fail at it
        return f"error code {getattr(error, 'value', 'unknown')}"


def look(nvml: Any | None) -> Seen:
    """All cards of the machine, whoever may use them."""
    if nvml is None:
        return Seen(failure="the package nvidia-ml-py is not installed")
    started = ask(nvml, "nvmlInit")
    count = ask(nvml, "nvmlDeviceGetCount")
    if started.reason is not None or count.value is None:
        return Seen(failure=started.reason or count.reason)
    handles = [(i, ask(nvml, "nvmlDeviceGetHandleByIndex", i)) for i in range(count.value)]
    return Seen(
        cards=tuple(_card(nvml, i, h) for i, h in handles),
        driver=ask(nvml, "nvmlSystemGetDriverVersion").value,
        cuda=_cuda(ask(nvml, "nvmlSystemGetCudaDriverVersion").value),
    )


def _cuda(number: int | None) -> str | None:
    """13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _card(nvml: Any, index: int, handle: Answer) -> Card:
    if handle.value is None:
        return Card(index=index, name="unknown", reasons={"name": handle.reason or ""})
    asked = {
        "name": ask(nvml, "nvmlDeviceGetName", handle.value),
        "uuid": ask(nvml, "nvmlDeviceGetUUID", handle.value),
        "bus_id": ask(nvml, "nvmlDeviceGetPciInfo", handle.value),
        "memory_gib": ask(nvml, "nvmlDeviceGetMemoryInfo", handle.value),
        "capability": ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle.value),
        "power_limit_w": ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle.value),
    }
    sliced = _is_sliced(nvml, handle.value)
    limit = asked["power_limit_w"].value
    return Card(
        index=index,
        name=asked["name"].value or "unknown",
        uuid=asked["uuid"].value,
        bus_id=_bus_id(asked["bus_id"].value),
        memory_gib=_gib(asked["memory_gib"].value),
        memory_unsupported=_unsupported(asked["memory_gib"].reason),
        capability=_capability(asked["capability"].value),
        power_limit_w=limit / 1000 if limit else None,
        sliced=sliced,
        slices=_slices(nvml, handle.value) if sliced else (),
        reasons={name: answer.reason for name, answer in asked.items() if answer.reason is not None},
    )


def _bus_id(info: Any) -> str | None:
    text = getattr(info, "busId", None)
    return normal_bus_id(text.decode() if isinstance(text, bytes) else text) if text else None


def normal_bus_id(text: str) -> str:
    """Domain of eight digits, lower case: 0000:1B:00.0 and 00000000:1b:00.0 are one slot."""
    domain, _, rest = text.lower().rpartition(":")[0].rpartition(":")
    return f"{int(domain or '0', 16):08x}:{rest}:{text.lower().rpartition(':')[2]}"


def _gib(memory: Any) -> Gib | None:
    total = getattr(memory, "total", None)
    return total / BYTES_PER_GIB if total else None


def _unsupported(reason: str | None) -> bool:
    return reason is not None and re.sub(r"[^a-z]", "", reason.lower()).endswith("notsupported")


def _capability(pair: Any) -> str | None:
    return f"{pair[0]}.{pair[1]}" if pair else None


def _is_sliced(nvml: Any, handle: Any) -> bool:
    mode = ask(nvml, "nvmlDeviceGetMigMode", handle).value
    return bool(mode and mode[0])


def _slices(nvml: Any, handle: Any) -> tuple[Slice, ...]:
    most = ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle).value or 0
    found = (ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, i).value for i in range(min(most, FEATURES)))
    return tuple(_slice(nvml, h) for h in found if h is not None)


def _slice(nvml: Any, handle: Any) -> Slice:
    memory = _gib(ask(nvml, "nvmlDeviceGetMemoryInfo", handle).value)
    return Slice(
        uuid=ask(nvml, "nvmlDeviceGetUUID", handle).value,
        profile=_profile(nvml, handle),
        memory_gib=memory,
        gpu_instance=ask(nvml, "nvmlDeviceGetGpuInstanceId", handle).value,
        compute_instance=ask(nvml, "nvmlDeviceGetComputeInstanceId", handle).value,
    )


def _profile(nvml: Any, handle: Any) -> str | None:
    """From the slice's name, else from its share of the card: 1g.10gb has one compute slice and about 10 GB."""
    _, told = split_name(ask(nvml, "nvmlDeviceGetName", handle).value or "")
    if told is not None:
        return told
    attributes = ask(nvml, "nvmlDeviceGetAttributes", handle).value
    slices, megabytes = getattr(attributes, "gpuInstanceSliceCount", 0), getattr(attributes, "memorySizeMB", 0)
    return f"{slices}g.{round(megabytes / 1024)}gb" if slices and megabytes else None


def split_name(name: str) -> tuple[str, str | None]:
    """ "NVIDIA H100 80GB HBM3 MIG 1g.10gb" is the card's name and the profile of a slice."""
    found = _PROFILE.search(name)
    return (name[: found.start()], found[1]) if found else (name, None)
