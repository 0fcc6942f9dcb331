"""One machine as the readers see it: its files, environment, programs. Handed in, so that tests script a machine."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

Usage = tuple[int, int]
"""Bytes of a file system: all of it, and free for an ordinary user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a program said. failure: why it gave no answer (not found, too slow, exit code), else None."""

    text: str = ""
    failure: str | None = None


def affinity() -> frozenset[int] | None:
    """CPUs that this process may run on; None where the operating system does not tell."""
    read = getattr(os, "sched_getaffinity", None)
    return frozenset(read(0)) if read is not None else None


def usage(path: Path) -> Usage | None:
    try:
        seen = shutil.disk_usage(path)
    except OSError:
        return None
    return seen.total, seen.free


def run(command: Sequence[str], timeout_s: float) -> Ran:
    """The output of a program, in its plain locale; a failure is a value."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=timeout_s,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ran(failure=f"{command[0]} gave no answer within {timeout_s:g} s")
    except OSError as error:
        return Ran(failure=f"{command[0]}: {error.strerror or error}")
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or text.strip()
        return Ran(text=text, failure=f"{command[0]} ended with {done.returncode}: {said[:200]}".rstrip(": "))
    return Ran(text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """root: folder under which /proc, /sys, /dev … lie. name, machine: as `platform` tells them (Linux, x86_64).

    memory_bytes: of the machine where no /proc tells, None if unknown.
    """

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    name: str = field(default_factory=platform.system)
    release: str = field(default_factory=platform.release)
    machine: str = field(default_factory=platform.machine)
    cpu_count: Callable[[], int | None] = os.cpu_count
    affinity: Callable[[], frozenset[int] | None] = affinity
    usage: Callable[[Path], Usage | None] = usage
    run: Callable[[Sequence[str], float], Ran] = run
    which: Callable[[str], str | None] = shutil.which

    def path(self, path: str | PurePath) -> Path:
        """Where an absolute path of the machine lies under `root`."""
        return self.root / str(path).lstrip("/")

    def text(self, path: str | Path) -> str | None:
        """The text of a file, or None where it is missing, unreadable or no text."""
        try:
            with open(f"{self.root}/{str(path).lstrip('/')}", "rb", buffering=0) as file:
                return (file.readall() or b"").decode(errors="replace")
        except OSError:
            return None

    def line(self, path: str | Path) -> str | None:
        """A file of one value; None as in `text` or when it is empty."""
        text = self.text(path)
        return (text.strip("\0 \n") or None) if text is not None else None

    def number(self, path: str | Path) -> int | None:
        """A file of one whole number; None where it holds none."""
        line = self.line(path)
        try:
            return int(line) if line is not None else None
        except ValueError:
            return None

    def exists(self, path: str | PurePath) -> bool:
        return self.path(path).exists()

    def names(self, path: str | Path) -> tuple[str, ...]:
        """Sorted names in a folder; none where it cannot be read."""
        try:
            return tuple(sorted(os.listdir(f"{self.root}/{str(path).lstrip('/')}")))
        except OSError:
            return ()


REAL = System()
