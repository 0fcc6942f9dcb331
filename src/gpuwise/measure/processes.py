"""The job's processes and its neighbours on the CPUs, by /proc: time used, time waited for a CPU, memory, reading.

Figures that grow (CPU time, bytes) are summed over processes that come and go; what one did between its last look and
its end is lost. Source: proc(5); schedstat is time on the CPU, time waiting on a run queue (ns), runs
(Documentation/scheduler/sched-stats).
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

from gpuwise.measure import cgroups
from gpuwise.measure.energy import HostSample
from gpuwise.measure.mounts import SHARED_MEMORY
from gpuwise.measure.system import System
from gpuwise.units import BYTES_PER_GIB

TREE_EVERY = 4
"""Looks between two searches for processes that other threads than the first one started."""
PAGE_BYTES = 4096 if os.name == "nt" else os.sysconf("SC_PAGE_SIZE")
TICK_S = 0.01 if os.name == "nt" else 1 / os.sysconf("SC_CLK_TCK")
BUSY = (1, 2, 3, 6, 7, 8)
"""Columns of a cpu line in /proc/stat: user, nice, system, irq, softirq, steal. Guests are in user already."""


@dataclass(slots=True)
class _Grown:
    """A sum of counters that appear and vanish: what each grew by since it was first seen.

    One that appears after the first look began in between, so all of it counts.
    """

    total: float = 0.0
    started: bool = False

    def add(self, before: float | None, now: float) -> float:
        grown = max(now - before, 0.0) if before is not None else (now if self.started else 0.0)
        self.total += grown
        return grown


@dataclass(frozen=True, slots=True)
class _Look:
    """One process at one look. threads: id -> (s on a CPU, s waiting for one)."""

    threads: dict[str, tuple[float, float]]
    state: str
    read_bytes: float | None
    private_bytes: int
    shared_bytes: int


class Job:
    """The tree of processes under `pid`. mains: those said to train; training: those that do; others load or launch."""

    def __init__(self, pid: int, system: System) -> None:
        self.root = pid
        self.pids: tuple[int, ...] = (pid,)
        self.mains: Collection[int] = ()
        self.training: Collection[int] = {pid}
        self.searched = False
        self._system = system
        self._rounds = 0
        self._parents: dict[int, list[int]] = {}

    def look(self) -> tuple[int, ...]:
        """Processes now, those known and new ones; now and then (then `searched` is true) those of every thread.

        New loaders have to be seen at once, else their time would look like a neighbour's.
        """
        self.searched = self._rounds % TREE_EVERY == 0
        self._parents = self._all_parents() if self._rounds == 0 or self._parents else {}
        self.pids = self._tree()
        if self.searched:
            self.training = self._training()
        self._rounds += 1
        return self.pids

    def _all_parents(self) -> dict[int, list[int]]:
        """Parent -> children of the whole machine, where the kernel keeps no list of children a thread; else empty."""
        if self._system.text(f"/proc/{self.root}/task/{self.root}/children") is not None:
            return {}
        found: dict[int, list[int]] = {}
        for name in self._system.names("/proc"):
            fields = (
                (self._system.text(f"/proc/{name}/stat") or "").rpartition(")")[2].split() if name.isdecimal() else []
            )
            if len(fields) > 1:
                found.setdefault(int(fields[1]), []).append(int(name))
        return found

    def _tree(self) -> tuple[int, ...]:
        found, ahead = dict.fromkeys(self.pids), list(self.pids)
        while ahead:
            for child in self._children(ahead.pop()):
                if child not in found:
                    found[child] = None
                    ahead.append(child)
        return tuple(p for p in found if p == self.root or self._system.exists(f"/proc/{p}"))

    def _children(self, pid: int) -> list[int]:
        if self._parents:
            return self._parents.get(pid, [])
        tasks = f"/proc/{pid}/task"
        threads = self._system.names(tasks) if self.searched else (str(pid),)
        texts = (self._system.text(f"{tasks}/{tid}/children") for tid in threads)
        return [int(p) for text in texts for p in (text or "").split()]

    def _training(self) -> Collection[int]:
        """Main processes: those named, else the root and, where it only launches, what it started."""
        named = set(self.mains) & set(self.pids)
        return named or {self.root, *(self._children(self.root) if self._launches() else ())}

    def _launches(self) -> bool:
        words = (self._system.text(f"/proc/{self.root}/cmdline") or "").replace("\0", " ")
        return any(
            name in words for name in ("torchrun", "distributed.run", "accelerate", "deepspeed", "mpirun", "srun")
        )


class HostReader:
    """One look at a time. allowed: CPUs the job may use, which fractions are shares of. `reasons`: field -> why not."""

    def __init__(self, job: Job, allowed: float, system: System) -> None:
        self.reasons: dict[str, str] = {}
        self.affinity_now: int | None = None
        self.affinity_least_worker: int | None = None
        self._job, self._allowed, self._system = job, allowed, system
        self._cpu, self._waiting, self._read = _Grown(), _Grown(), _Grown()
        self._threads: dict[str, tuple[float, float]] = {}
        self._bytes: dict[int, float] = {}
        self._last_s: float | None = None
        self._last_busy: tuple[float, int] | None = None
        self._rapl = Rapl(system)
        if self._rapl.reason is not None:
            self.reasons["energy_j"] = self._rapl.reason

    def read(self, t_s: float) -> HostSample:
        looks = {pid: seen for pid in self._job.look() if (seen := self._look(pid)) is not None}
        step_s = None if self._last_s is None else t_s - self._last_s
        spent = {pid: self._spent(seen, step_s or 0.0) for pid, seen in looks.items()}
        fractions = self._fractions(spent, step_s)
        read_bytes = self._read_bytes(looks)
        if self._job.searched:
            self._notice_affinity(looks)
        self._threads = {name: pair for seen in looks.values() for name, pair in seen.threads.items()}
        self._cpu.started = self._waiting.started = self._read.started = True
        self._last_s = t_s
        periods = cgroups.throttled(self._system, self._job.root)
        if periods is None:
            self.reasons["quota_fraction"] = "no CPU quota is set"
        return HostSample(
            t_s=t_s,
            **fractions,
            shm_used_fraction=self._shm(),
            job_gib=_resident_gib(looks),
            io_fraction=self._waiting_for_storage(looks),
            read_bytes=read_bytes,
            quota_periods=periods[0] if periods else None,
            quota_throttled=periods[1] if periods else None,
            waiting_s=self._waiting.total if looks and "waiting_fraction" not in self.reasons else None,
            cpu_s=self._cpu.total if looks else None,
            energy_j=self._rapl.read(),
        )

    def _look(self, pid: int) -> _Look | None:
        stat = self._system.text(f"/proc/{pid}/stat")
        if not stat:
            return None
        fields = stat.rpartition(")")[2].split()
        pages = (self._system.text(f"/proc/{pid}/statm") or "0 0 0").split()
        return _Look(
            self._times(pid, fields),
            fields[0],
            self._bytes_read(pid),
            (int(pages[1]) - int(pages[2])) * PAGE_BYTES,
            int(pages[2]) * PAGE_BYTES,
        )

    def _times(self, pid: int, stat: list[str]) -> dict[str, tuple[float, float]]:
        """Of each thread by schedstat; of the whole process, without the waiting, where the kernel keeps none."""
        tasks = f"/proc/{pid}/task"
        lines = {tid: self._system.text(f"{tasks}/{tid}/schedstat") for tid in self._system.names(tasks)}
        if any(lines.values()):
            pairs = {tid: line.split() for tid, line in lines.items() if line}
            return {f"{pid}/{tid}": (int(p[0]) * 1e-9, int(p[1]) * 1e-9) for tid, p in pairs.items()}
        self.reasons["waiting_fraction"] = "this kernel does not count time spent waiting for a CPU"
        return {str(pid): ((int(stat[11]) + int(stat[12])) * TICK_S, 0.0)}

    def _spent(self, seen: _Look, step_s: float) -> float:
        """CPU seconds of a process since the last look; a thread found late cannot have used more than that."""
        known = self._threads
        for name, (_, waited) in seen.threads.items():
            self._waiting.add(known[name][1] if name in known else None, waited)
        old = sum(self._cpu.add(known[n][0], used) for n, (used, _) in seen.threads.items() if n in known)
        new = [self._cpu.add(None, used) for n, (used, _) in seen.threads.items() if n not in known]
        return old + sum(min(used, step_s) for used in new)

    def _fractions(self, spent: dict[int, float], step_s: float | None) -> dict[str, float | None]:
        names = ("job_fraction", "others_fraction", "main_fraction")
        others = self._others(sum(spent.values()), step_s)
        if not step_s or not spent:
            return dict.fromkeys(names)
        mains = [spent[p] for p in self._job.training if p in spent]
        main = max(mains) / step_s if mains else None
        return dict(zip(names, (sum(spent.values()) / step_s / self._allowed, others, main), strict=True))

    def _others(self, job_s: float, step_s: float | None) -> float | None:
        """Share of the CPUs that the job may run on which everybody else used: neighbours, and a hypervisor's steal."""
        now, before = self._busy(), self._last_busy
        self._last_busy = now
        if now is None or before is None or not step_s:
            return None
        return min(max((now[0] - before[0] - job_s) / step_s / now[1], 0.0), 1.0)

    def _busy(self) -> tuple[float, int] | None:
        """Busy seconds so far of the CPUs the job may run on, and how many those are."""
        listed = self._allowed_list(self._job.root)
        lines = (line.split() for line in (self._system.text("/proc/stat") or "").splitlines() if line[3:4].isdecimal())
        counted = [f for f in lines if listed is None or int(f[0][3:]) in listed]
        if not counted:
            self.reasons["others_fraction"] = "/proc/stat does not list the CPUs the job may use"
            return None
        return sum(int(f[i]) for f in counted for i in BUSY if i < len(f)) * TICK_S, len(counted)

    def _allowed_list(self, pid: int) -> frozenset[int] | None:
        text = self._system.text(f"/proc/{pid}/status") or ""
        line = next((s for s in text.splitlines() if s.startswith("Cpus_allowed_list:")), "")
        return cgroups.cpu_list(line.partition(":")[2]) or None

    def _notice_affinity(self, looks: dict[int, _Look]) -> None:
        """CPUs that the main process may use now, and the fewest of any worker: an imported library can change both."""
        mains = self._job.training
        counts = {pid: len(listed) for pid in looks if (listed := self._allowed_list(pid)) is not None}
        of_mains = [n for pid, n in counts.items() if pid in mains]
        of_workers = [n for pid, n in counts.items() if pid not in mains]
        self.affinity_now = min(of_mains, default=self.affinity_now)
        least = [n for n in (min(of_workers, default=None), self.affinity_least_worker) if n is not None]
        self.affinity_least_worker = min(least, default=None)

    def _bytes_read(self, pid: int) -> float | None:
        for line in (self._system.text(f"/proc/{pid}/io") or "").splitlines():
            if line.startswith("read_bytes:"):
                return float(line.partition(":")[2])
        return None

    def _read_bytes(self, looks: dict[int, _Look]) -> float | None:
        told = {pid: seen.read_bytes for pid, seen in looks.items() if seen.read_bytes is not None}
        for pid, number in told.items():
            self._read.add(self._bytes.get(pid), number)
        self._bytes |= told
        if not told:
            self.reasons["read_mb_per_s"] = "the kernel does not tell this user what the job reads"
            return None
        return self._read.total

    def _waiting_for_storage(self, looks: dict[int, _Look]) -> float | None:
        """Share of the loader processes (of all, where the main process loads) in uninterruptible sleep."""
        mains = self._job.training
        states = [seen.state for pid, seen in looks.items() if pid not in mains] or [s.state for s in looks.values()]
        return states.count("D") / len(states) if states else None

    def _shm(self) -> float | None:
        seen = self._system.usage(self._system.path(SHARED_MEMORY))
        return 1 - seen[1] / seen[0] if seen and seen[0] else None


def _resident_gib(looks: dict[int, _Look]) -> float | None:
    """Private pages of each process and the largest shared part once; pages shared by a fork count for each."""
    if not looks:
        return None
    shared = max(seen.shared_bytes for seen in looks.values())
    return (sum(seen.private_bytes for seen in looks.values()) + shared) / BYTES_PER_GIB


class Rapl:
    """The processor package's own energy counter (Intel, AMD; powercap in the kernel's driver-api guide). Measured or
    unknown, never a table's guess. Counts the whole package, neighbours included."""

    def __init__(self, system: System) -> None:
        self.reason: str | None = None
        self._system = system
        root = "/sys/class/powercap"
        self._zones = [f"{root}/{n}" for n in system.names(root) if n.startswith("intel-rapl:") and n.count(":") == 1]
        self._before: dict[str, int] = {}
        self._grown_j = 0.0
        if not self._zones:
            self.reason = "this machine shows no energy counter of its CPU; virtual machines hide it"
        elif any(system.number(f"{zone}/energy_uj") is None for zone in self._zones):
            self.reason = "the CPU's energy counter is readable by the administrator only"

    def read(self) -> float | None:
        """J since the first look; None where there is no counter to read."""
        if self.reason is not None:
            return None
        for zone in self._zones:
            now = self._system.number(f"{zone}/energy_uj")
            if now is None:
                self.reason = "the CPU's energy counter stopped answering"
                return None
            before = self._before.get(zone, now)
            wrap = self._system.number(f"{zone}/max_energy_range_uj") or 0
            self._grown_j += (now - before if now >= before else now + wrap - before) * 1e-6
            self._before[zone] = now
        return self._grown_j
