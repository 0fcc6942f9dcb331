"""Limits that a control group sets: CPU quota, CPU set, memory. Versions 1 and 2, in a container or outside of one.

Every group above counts too, so each figure is the least from the process's own group up to the mount.
Source: the kernel's admin guide, cgroup-v1 (cpuset, memory; scheduler/sched-bwc) and cgroup-v2.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from gpuwise.measure.mounts import Mount, mounts
from gpuwise.measure.system import System

UNLIMITED_BYTES = 2**60
"""Version 1 writes "no limit" as the largest number of pages, about 2^63; no machine has an exbibyte."""


def folders(controller: str, system: System, pid: int | str = "self") -> tuple[str, ...]:
    """Folders of one controller's groups that hold a process, its own first; none without control groups."""
    group, mount = _place(controller, system, pid)
    if group is None or mount is None:
        return ()
    inside = _below(group, mount.root)
    here = PurePosixPath(mount.point)
    own = here / inside if inside and system.exists(here / inside) else here
    return tuple(str(p) for p in (own, *own.parents) if p.is_relative_to(here))


def _place(controller: str, system: System, pid: int | str) -> tuple[str | None, Mount | None]:
    """Path of the group and where its hierarchy is mounted: version 1 where it has the controller, else version 2."""
    groups = [line.split(":", 2) for line in (system.text(f"/proc/{pid}/cgroup") or "").splitlines()]
    seen = mounts(system)
    for fields in groups:
        if len(fields) == 3 and controller in fields[1].split(","):
            found = next((m for m in seen if m.filesystem == "cgroup" and controller in m.options), None)
            return fields[2], found
    second = next((fields[2] for fields in groups if len(fields) == 3 and fields[:2] == ["0", ""]), None)
    return second, next((m for m in seen if m.filesystem == "cgroup2"), None)


def _below(group: str, root: str) -> str:
    """The group's path under the mounted folder; empty where a container cannot see so far."""
    path, top = PurePosixPath(group), PurePosixPath(root)
    if ".." in path.parts or not path.is_relative_to(top):
        return ""
    return str(path.relative_to(top)).removeprefix(".")


def cpu_quota(system: System, pid: int | str = "self") -> float | None:
    """CPUs' worth of time a second that the group may use (2.5), None without a quota."""
    quotas = [q for q in (_quota(folder, system) for folder in folders("cpu", system, pid)) if q is not None]
    return min(quotas, default=None)


def _quota(folder: str, system: System) -> float | None:
    line = system.line(f"{folder}/cpu.max")
    if line is not None:
        quota, _, period = line.partition(" ")
        return _ratio(quota, period or "100000")
    return _ratio(system.line(f"{folder}/cpu.cfs_quota_us"), system.line(f"{folder}/cpu.cfs_period_us"))


def _ratio(quota: str | None, period: str | None) -> float | None:
    if not quota or not period or not quota.isdecimal() or not period.isdecimal():  # "max", "-1": no quota
        return None
    return int(quota) / int(period) if int(quota) and int(period) else None


def cpu_set(system: System, pid: int | str = "self") -> frozenset[int] | None:
    """CPUs of the group's set; None where none is set."""
    for folder in folders("cpuset", system, pid):
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            line = system.line(f"{folder}/{name}")
            if line:
                return cpu_list(line)
    return None


def cpu_list(text: str) -> frozenset[int]:
    """CPUs of a list as the kernel writes it: "0-3,8" is 0, 1, 2, 3, 8."""
    return frozenset(cpu for part in text.split(",") for cpu in _span(part.strip()))


def _span(part: str) -> Iterator[int]:
    first, _, last = part.partition("-")
    if first.isdecimal() and (last or first).isdecimal():
        yield from range(int(first), int(last or first) + 1)


def memory_limit_bytes(system: System) -> int | None:
    """The least limit of the groups, None without one."""
    names = ("memory.max", "memory.high", "memory.limit_in_bytes")
    places = (f"{folder}/{name}" for folder in folders("memory", system) for name in names)
    limits = [n for n in map(system.number, places) if n is not None and 0 < n < UNLIMITED_BYTES]
    return min(limits, default=None)


def memory_used_bytes(system: System) -> int | None:
    """What counts against the limit, without file pages that the kernel can take back at once."""
    for folder in reversed(folders("memory", system)):
        for name in ("memory.current", "memory.usage_in_bytes"):
            used = system.number(f"{folder}/{name}")
            if used is not None:
                return used - _figures(f"{folder}/memory.stat", system).get("inactive_file", 0)
    return None


def throttled(system: System, pid: int | str = "self") -> tuple[int, int] | None:
    """Periods of the CPU quota so far and those in which the group was stopped, of the nearest group that has one."""
    for folder in folders("cpu", system, pid):
        if _quota(folder, system) is not None:
            seen = _figures(f"{folder}/cpu.stat", system)
            if "nr_periods" in seen and "nr_throttled" in seen:
                return seen["nr_periods"], seen["nr_throttled"]
    return None


def _figures(path: str, system: System) -> dict[str, int]:
    """A file of lines "name number"."""
    pairs = (line.split() for line in (system.text(path) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
