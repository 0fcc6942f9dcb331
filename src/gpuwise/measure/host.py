"""What this machine is, as a job sees it: the CPUs and the memory it may use, shared memory, storage, container.

Linux tells all of it in /proc and /sys. Elsewhere a figure that cannot be had is None with its reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from gpuwise.measure import cgroups
from gpuwise.measure.mounts import shared_memory, storage
from gpuwise.measure.record import Cpus, Host, Storage
from gpuwise.measure.system import REAL, System
from gpuwise.units import BYTES_PER_GIB, Gib

BATCH_SYSTEMS: Mapping[str, tuple[str, ...]] = {
    "slurm": ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"),
    "pbs": ("PBS_NUM_PPN", "NCPUS"),
    "grid engine": ("NSLOTS",),
    "lsf": ("LSB_DJOB_NUMPROC", "LSB_MAX_NUM_PROCESSORS"),
}
"""Variables in which a batch system says how many CPUs of this node a task got; the first that is set counts."""


def host(path: Path | None = None, *, system: System = REAL) -> Host:
    """The machine now. path: where the data lie (default: the current folder)."""
    held, storage_reasons = storage(path if path is not None else Path(), system)
    memory, memory_reasons = _memory(system)
    shared = shared_memory(system)
    reasons = {**storage_reasons, **memory_reasons}
    if isinstance(shared, str):
        reasons["shm_gib"] = reasons["shm_used_fraction"] = shared
    return Host(
        system=f"{system.name} {system.release} {system.machine}".strip(),
        cpus=cpus(system),
        storage=held,
        container=container(system),
        shm_gib=None if isinstance(shared, str) else shared[0],
        shm_used_fraction=None if isinstance(shared, str) else shared[1],
        reasons=reasons,
        **memory,
    )


def cpus(system: System = REAL) -> Cpus:
    """CPUs on the machine and those the job may use, with what each rule leaves."""
    rules = _rules(system)
    count = max(_count(system), *(int(n) for name, n in rules.items() if name in {"affinity", "cpuset"}), 1)
    return Cpus(host=count, allowed=min((float(count), *rules.values())), rules=rules, model=cpu_model(system))


def explained(seen: Cpus) -> str:
    """ "192 on host, 4 allowed (affinity 4, slurm 4)": the figure with the rules that made it."""
    rules = ", ".join(f"{name} {number:g}" for name, number in seen.rules.items() if number < seen.host)
    return f"{seen.host} on host, {seen.allowed:g} allowed" + (f" ({rules})" if rules else "")


def _rules(system: System) -> dict[str, float]:
    affinity, group = system.affinity(), cgroups.cpu_set(system)
    found: dict[str, float | None] = {
        "affinity": float(len(affinity)) if affinity else None,
        "cpuset": float(len(group)) if group else None,
        "quota": cgroups.cpu_quota(system),
        **{name: _of_batch_system(variables, system) for name, variables in BATCH_SYSTEMS.items()},
    }
    return {name: number for name, number in found.items() if number}


def _of_batch_system(variables: tuple[str, ...], system: System) -> float | None:
    told = (system.environ.get(v, "").strip() for v in variables)
    return next((float(t) for t in told if t.isdecimal() and int(t)), None)


def _count(system: System) -> int:
    """Logical CPUs that the machine has, whoever may use them."""
    online = system.line("/sys/devices/system/cpu/online")
    listed = len(cgroups.cpu_list(online)) if online else 0
    return max(listed, system.cpu_count() or 0)


def cpu_model(system: System = REAL) -> str | None:
    """The CPU's name as its maker writes it, None if the system does not tell."""
    fields = cpu_fields(system)
    name = fields.get("model name") or fields.get("Model") or fields.get("cpu model")
    if name is None and system.name == "Darwin":
        name = system.run(("sysctl", "-n", "machdep.cpu.brand_string"), 2.0).text.strip()
    elif name is None and system.name == "Windows":
        name = system.environ.get("PROCESSOR_IDENTIFIER")
    elif name is None:
        name = system.line("/proc/device-tree/model")
    return re.sub(r"\s+", " ", name).strip() or None if name else None


def cpu_fields(system: System = REAL) -> dict[str, str]:
    """The first CPU's lines of /proc/cpuinfo; empty where there is none."""
    first = (system.text("/proc/cpuinfo") or "").partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs if value.strip()}


def cpu_flags(system: System = REAL) -> frozenset[str]:
    """What the CPU can do, in the kernel's words (x86: avx512_bf16, amx_bf16 …; ARM: bf16, fphp …)."""
    fields = cpu_fields(system)
    return frozenset((fields.get("flags") or fields.get("Features") or "").split())


def _memory(system: System) -> tuple[dict[str, Gib | None], dict[str, str]]:
    """Fields of Host about memory, with reasons."""
    seen = _meminfo(system)
    total, free = seen.get("MemTotal"), seen.get("MemAvailable", seen.get("MemFree"))
    if total is None:
        total, free = _memory_by_psutil(system)
    limit = cgroups.memory_limit_bytes(system)
    if limit is not None and total is not None and limit >= total:
        limit = None
    fields = {"memory_gib": total, "available_gib": _available(free, limit, system), "memory_limit_gib": limit}
    reasons = dict.fromkeys(("memory_gib", "available_gib"), "this system does not tell it without psutil")
    return (
        {name: None if b is None else b / BYTES_PER_GIB for name, b in fields.items()},
        {name: why for name, why in reasons.items() if fields[name] is None},
    )


def _available(free: int | None, limit: int | None, system: System) -> int | None:
    """Bytes the job can still get: the machine's, and what the group's limit leaves."""
    used = cgroups.memory_used_bytes(system) if limit is not None else None
    if free is None or limit is None or used is None:
        return free
    return min(free, max(limit - used, 0))


def _meminfo(system: System) -> dict[str, int]:
    """Bytes by name, of /proc/meminfo (written in kB = 1,024 bytes)."""
    pairs = (line.split() for line in (system.text("/proc/meminfo") or "").splitlines())
    return {p[0].rstrip(":"): int(p[1]) * 1024 for p in pairs if len(p) == 3 and p[1].isdecimal()}


def _memory_by_psutil(system: System) -> tuple[int | None, int | None]:
    if system is not REAL or sys.platform == "linux":
        return None, None
    try:
        import psutil
    except ImportError:
        return None, None
    seen = psutil.virtual_memory()
    return seen.total, seen.available


def container(system: System = REAL) -> str | None:
    """What the job runs inside, from the outside in: "wsl, docker"; None on a plain machine."""
    found = [kind for kind, is_inside in _INSIDE if is_inside(system)]
    return ", ".join(found) or None


def _wsl(system: System) -> bool:
    return "microsoft" in (system.text("/proc/sys/kernel/osrelease") or "").lower()


def _kubernetes(system: System) -> bool:
    return "KUBERNETES_SERVICE_HOST" in system.environ or "kubepods" in (system.text("/proc/1/cgroup") or "")


def _docker(system: System) -> bool:
    return system.exists("/.dockerenv") or "/docker/" in (system.text("/proc/1/cgroup") or "")


def _podman(system: System) -> bool:
    return system.exists("/run/.containerenv") or system.environ.get("container") == "podman"


def _apptainer(system: System) -> bool:
    return bool({"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"} & set(system.environ))


def _other(system: System) -> bool:
    return system.environ.get("container") in {"lxc", "systemd-nspawn", "oci"}


_INSIDE = (
    ("wsl", _wsl),
    ("slurm", lambda system: "SLURM_JOB_ID" in system.environ),
    ("kubernetes", _kubernetes),
    ("docker", _docker),
    ("podman", _podman),
    ("apptainer", _apptainer),
    ("container", _other),
)

__all__ = ["Host", "Storage", "container", "cpu_flags", "cpu_model", "cpus", "explained", "host"]
