"""What nvidia-smi and xpu-smi print, read tolerantly: the way to a device where no library answers.

Dialects differ by version: what a device does not tell is "[N/A]", "[Not Supported]", "[Unknown Error]", "N/A", "ERR!"
or a blank; units stand in the header, in the cell or nowhere. All of that becomes None; a value that contradicts
another is dropped with a note. Never raises on text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpuwise.measure.nvml import Card, normal_bus_id
from gpuwise.measure.system import System
from gpuwise.units import BYTES_PER_GIB, Fraction, Gib, Watts

TIMEOUT_S = 10.0

Vendor = Literal["NVIDIA", "Intel"]
Cell = float | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One device as a tool printed it. driver: as text. notes: field -> why its value was dropped."""

    index: int
    name: str | None = None
    uuid: str | None = None
    bus_id: str | None = None
    driver: str | None = None
    capability: str | None = None
    busy_fraction: Fraction | None = None
    used_gib: Gib | None = None
    memory_gib: Gib | None = None
    power_w: Watts | None = None
    power_limit_w: Watts | None = None
    power_least_w: Watts | None = None
    power_most_w: Watts | None = None
    clock_mhz: float | None = None
    temperature_c: float | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def card(self) -> Card:
        """The same as NVML would have told it."""
        return Card(
            index=self.index,
            name=self.name or "unknown",
            uuid=self.uuid,
            bus_id=self.bus_id,
            memory_gib=self.memory_gib,
            capability=self.capability,
            power_limit_w=self.power_limit_w,
            reasons=self.notes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a tool on the path listed. failure: why nothing."""

    vendor: Vendor = "NVIDIA"
    readings: tuple[Reading, ...] = ()
    failure: str | None = None


COLUMNS: Mapping[str, str] = {
    "index": "index", "deviceid": "index", "device id": "index",
    "name": "name", "gpu_name": "name", "device name": "name",
    "uuid": "uuid", "gpu_uuid": "uuid",
    "pci.bus_id": "bus_id", "pci bdf address": "bus_id",
    "driver_version": "driver", "compute_cap": "capability",
    "utilization.gpu": "busy_fraction", "gpu utilization": "busy_fraction",
    "memory.used": "used_gib", "gpu memory used": "used_gib",
    "memory.total": "memory_gib", "memory physical size": "memory_gib",
    "power.draw": "power_w", "power.draw.instant": "power_w", "gpu power": "power_w",
    "power.limit": "power_limit_w", "enforced.power.limit": "power_limit_w",
    "power.min_limit": "power_least_w", "power.max_limit": "power_most_w",
    "clocks.sm": "clock_mhz", "clocks.current.sm": "clock_mhz", "gpu frequency": "clock_mhz",
    "temperature.gpu": "temperature_c", "gpu core temperature": "temperature_c",
}  # fmt: skip
"""Heads of both tools' columns -> field."""

TEXTS = frozenset({"name", "uuid", "bus_id", "driver", "capability"})

UNIT: Mapping[str, float] = {
    "%": 0.01, "w": 1.0, "mw": 1e-3, "mhz": 1.0, "ghz": 1e3, "c": 1.0, "celsius degree": 1.0, "": 1.0,
    "b": 1 / BYTES_PER_GIB, "kib": 2.0**-20, "mib": 2.0**-10, "mb": 2.0**-10, "gib": 1.0,
}  # fmt: skip
"""Factor into the unit of the field; both tools print binary megabytes, some versions as MB."""

PLAIN_UNIT: Mapping[str, str] = {"busy_fraction": "%", "used_gib": "mib", "memory_gib": "mib"}
"""Unit of a cell and a head without any (--format=csv,nounits)."""

NVIDIA_BASIC = (
    "index", "uuid", "pci.bus_id", "name", "driver_version", "memory.total", "memory.used", "utilization.gpu",
    "power.draw", "power.limit", "clocks.sm", "temperature.gpu",
)  # fmt: skip
"""Fields that nvidia-smi has known for ten years; compute_cap is younger and is asked for first."""

INTEL_METRICS = "0,1,2,3,18"
"""xpu-smi dump: utilization, power, frequency, core temperature, memory used (xpu-smi user guide)."""

_MISSING = re.compile(r"^(\[.*\]|n/?a|err!?|-+|unknown( error)?|not (supported|available|applicable)|no data|)$", re.I)
_NUMBER = re.compile(r"^([-+]?\d+(?:[.,]\d+)?)\s*([^\d]*)$")


def version(text: str | None) -> tuple[int, ...]:
    """Components of a version, compared one by one: "418.87.01" is (418, 87, 1), less than "418.110"."""
    return tuple(int(part) for part in re.findall(r"\d+", text or ""))


def read(system: System) -> Listing:
    """The devices that a tool on the path lists: nvidia-smi first, then xpu-smi."""
    listing = nvidia(system)
    return listing if listing.readings or not system.which("xpu-smi") else intel(system)


def nvidia(system: System) -> Listing:
    tool = system.which("nvidia-smi")
    if tool is None:
        return Listing(failure="nvidia-smi is not on the path")
    for fields in ((*NVIDIA_BASIC, "compute_cap"), NVIDIA_BASIC):
        ran = system.run((tool, f"--query-gpu={','.join(fields)}", "--format=csv"), TIMEOUT_S)
        if ran.failure is None:
            return Listing(readings=parse(ran.text))
        if "not a valid field" not in ran.failure:
            break
    return Listing(failure=ran.failure)


def intel(system: System) -> Listing:
    tool = system.which("xpu-smi")
    if tool is None:
        return Listing(vendor="Intel", failure="xpu-smi is not on the path")
    ran = system.run((tool, "dump", "-d", "-1", "-m", INTEL_METRICS, "-n", "1"), TIMEOUT_S)
    return Listing(vendor="Intel", readings=parse(ran.text) if ran.failure is None else (), failure=ran.failure)


def parse(text: str, columns: Sequence[str] | None = None) -> tuple[Reading, ...]:
    """One reading a line. columns: heads in order, where the text has no header (--format=csv,noheader)."""
    rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if any(c.strip() for c in row)]
    if columns is None:
        columns, rows = (rows[0], rows[1:]) if rows else ((), [])
    heads = [_head(c) for c in columns]
    return tuple(_reading(number, _cells(heads, row)) for number, row in enumerate(rows))


def _head(text: str) -> tuple[str | None, str]:
    """Field and unit of a column: "memory.used [MiB]", "GPU Power (W)"."""
    name, _, unit = re.sub(r"[\])]\s*$", "", text.strip()).partition("[" if "[" in text else "(")
    name = COLUMNS.get(name.strip().lower(), "")
    return name or None, unit.strip().lower() or PLAIN_UNIT.get(name, "")


def _cells(heads: Sequence[tuple[str | None, str]], row: Sequence[str]) -> dict[str, Cell]:
    pairs = zip(heads, row, strict=False)
    return {name: cell(text, unit, text_wanted=name in TEXTS) for (name, unit), text in pairs if name is not None}


def cell(text: str, unit: str = "", *, text_wanted: bool = False) -> Cell:
    """One cell: a number in the unit of its field, a text, or None for any way of saying that there is none."""
    plain = text.strip()
    if _MISSING.match(plain):
        return None
    if text_wanted:
        return plain
    found = _NUMBER.match(plain)
    factor = UNIT.get((found[2].strip().lower() or unit) if found else "none")
    return float(found[1].replace(",", ".")) * factor if found and factor is not None else None


def _reading(number: int, cells: Mapping[str, Cell]) -> Reading:
    kept, notes = _without_contradictions(cells)
    index, bus = kept.pop("index", None), kept.pop("bus_id", None)
    return Reading(
        index=int(index) if isinstance(index, float) else number,
        bus_id=_bus(bus),
        notes=notes,
        **kept,  # type: ignore[arg-type]
    )


def _bus(text: Cell) -> str | None:
    return normal_bus_id(text) if isinstance(text, str) and re.match(r"^[\dA-Fa-f]+:[\dA-Fa-f]+:", text) else None


def _without_contradictions(cells: Mapping[str, Cell]) -> tuple[dict[str, Cell], dict[str, str]]:
    """Values that can be true together, and why each of the others was dropped."""
    numbers = {name: value for name, value in cells.items() if isinstance(value, float)}
    notes: dict[str, str] = {}
    least, most = numbers.get("power_least_w"), numbers.get("power_most_w")
    if least is not None and most is not None and least > most:
        notes["power_least_w"] = notes["power_most_w"] = f"a range from {least:g} to {most:g} W: dropped"
    used, total = numbers.get("used_gib"), numbers.get("memory_gib")
    if used is not None and total is not None and used > total:
        notes["used_gib"] = f"{used:.1f} GiB used of {total:.1f}: dropped"
    if numbers.get("clock_mhz") == 0:
        notes["clock_mhz"] = "0 MHz: the device sleeps"
    if not 0 <= numbers.get("busy_fraction", 0) <= 1:
        notes["busy_fraction"] = f"{100 * numbers['busy_fraction']:.0f} % of the time: dropped"
    notes |= {n: f"{v:g}: dropped" for n, v in numbers.items() if v < 0 and n != "temperature_c" and n not in notes}
    return {name: None if name in notes else value for name, value in cells.items()}, notes
