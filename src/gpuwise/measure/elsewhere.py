"""The job's processes where there is no /proc (macOS, Windows), by psutil. Fewer figures, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwise.measure.energy import HostSample
from gpuwise.units import BYTES_PER_GIB

ONLY_LINUX: Mapping[str, str] = {
    "waiting_fraction": "only Linux counts time spent waiting for a CPU",
    "quota_fraction": "only Linux has CPU quotas of control groups",
    "read_mb_per_s": "not read on this system",
    "io_fraction": "not read on this system",
    "shm_used_fraction": "this system has no shared memory mount",
    "energy_j": "the CPU's energy counter is not read on this system",
}


def find() -> Any | None:
    """The module `psutil`, None where it is not installed."""
    try:
        import psutil
    except ImportError:
        return None
    return psutil


class PsutilReader:
    """As `processes.HostReader`, for the tree under `pid`. psutil is handed in; without it there are reasons only."""

    def __init__(self, pid: int, allowed: float, psutil: Any | None) -> None:
        self.reasons = dict(ONLY_LINUX)
        self.affinity_now: int | None = None
        self.affinity_least_worker: int | None = None
        self._pid, self._allowed, self._psutil = pid, allowed, psutil
        self._spent: dict[int, float] = {}
        self._total_s = 0.0
        self._last_s: float | None = None
        if psutil is None:
            names = ("job_fraction", "others_fraction", "main_fraction", "peak_gib")
            self.reasons |= dict.fromkeys(names, "the package psutil is not installed")

    def read(self, t_s: float) -> HostSample:
        if self._psutil is None:
            return HostSample(t_s=t_s)
        step_s = None if self._last_s is None else t_s - self._last_s
        seen = dict(filter(None, map(self._look, self._tree())))
        grown = {pid: max(s - self._spent.get(pid, s if step_s is None else 0.0), 0.0) for pid, (s, _) in seen.items()}
        job = sum(grown.values())
        busy = self._psutil.cpu_percent(None) / 100 * self._psutil.cpu_count()
        self._total_s += job
        self._spent, self._last_s = {pid: s for pid, (s, _) in seen.items()}, t_s
        return HostSample(
            t_s=t_s,
            job_fraction=job / step_s / self._allowed if step_s and seen else None,
            others_fraction=min(max((busy - job / step_s) / self._allowed, 0.0), 1.0) if step_s and seen else None,
            main_fraction=grown.get(self._pid, 0.0) / step_s if step_s and seen else None,
            job_gib=sum(b for _, b in seen.values()) / BYTES_PER_GIB if seen else None,
            cpu_s=self._total_s if seen else None,
        )

    def _tree(self) -> list[Any]:
        assert self._psutil is not None
        try:
            root = self._psutil.Process(self._pid)
            return [root, *root.children(recursive=True)]
        except self._psutil.Error:
            return []

    def _look(self, process: Any) -> tuple[int, tuple[float, int]] | None:
        """CPU seconds and resident bytes of one process, None where it just ended."""
        assert self._psutil is not None
        try:
            times = process.cpu_times()
            return process.pid, (times.user + times.system, process.memory_info().rss)
        except self._psutil.Error:
            return None
