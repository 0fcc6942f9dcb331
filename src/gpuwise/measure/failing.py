"""Why a child process died, from its exit status, its last words and the kernel's counts of processes it killed."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from gpuwise.measure.record import Ending
from gpuwise.measure.system import REAL, System

EXCEPTION = re.compile(r"^(?:\[[^]]*\]:?\s*)*([\w.]*(?:Error|Exception|Interrupt|Exit|OutOfMemory\w*)\b.*)")
"""The line of a traceback that names the exception; torchrun puts the rank before it."""
MEMORY = re.compile(r"out of memory|OutOfMemory|\bMemoryError\b|bad_alloc", re.I)
DISK = re.compile(r"no space left on device|disk quota exceeded", re.I)
SHARED = re.compile(r"/torch_|/dev/shm|shared memory|shm_open|bus error", re.I)
MOST_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Failure:
    """ending, and the error in one line where there was one."""

    ending: Ending
    text: str | None


def died(code: int, errors: Sequence[str], kernel_kills: int) -> Failure:
    """How a process that nobody asked to end did. code: as subprocess tells it. errors: last lines of its stderr.
    kernel_kills: processes that the kernel killed for want of memory meanwhile."""
    if code == 0:
        return Failure("program ended", None)
    line = last_words(errors)
    if code < 0 and -code == signal.SIGKILL:
        if kernel_kills > 0:
            return Failure("out of memory", "the kernel killed it: the memory that it may use was full")
        return Failure("killed", "killed by SIGKILL; who sent it is not known")
    if code < 0:
        return Failure(_ending(line or ""), f"died of {_name(-code)}" + (f": {line}" if line else ""))
    return Failure(_ending(line or ""), line or f"exit code {code}")


def last_words(errors: Sequence[str]) -> str | None:
    """The exception that was named last, else the last line."""
    named = [match[1] for line in errors if (match := EXCEPTION.match(line.strip()))]
    words = named[-1] if named else errors[-1].strip() if errors else None
    return words[:MOST_CHARACTERS] if words else None


def _ending(line: str) -> Ending:
    if SHARED.search(line):
        return "failed"
    if MEMORY.search(line):
        return "out of memory"
    return "disk full" if DISK.search(line) else "failed"


def _name(number: int) -> str:
    name = signal.Signals(number).name if number in {s.value for s in signal.Signals} else f"signal {number}"
    return f"{name} (bus error)" if name == "SIGBUS" else name


def killed_for_memory(system: System = REAL) -> int:
    """Processes that the kernel has killed for want of memory so far: in our cgroup, else on the machine."""
    for path, pattern in _counts(system):
        text = system.text(path)
        found = re.search(pattern, text, re.M) if text else None
        if found:
            return int(found[1])
    return 0


def _counts(system: System) -> list[tuple[str, str]]:
    groups = system.text("/proc/self/cgroup") or ""
    unified = re.search(r"^0::(/.*)$", groups, re.M)
    own = f"/sys/fs/cgroup{unified[1].rstrip('/')}" if unified else "/sys/fs/cgroup"
    return [
        (f"{own}/memory.events", r"^oom_kill (\d+)"),
        ("/sys/fs/cgroup/memory.events", r"^oom_kill (\d+)"),
        ("/sys/fs/cgroup/memory/memory.oom_control", r"^oom_kill (\d+)"),
        ("/proc/vmstat", r"^oom_kill (\d+)"),
    ]
