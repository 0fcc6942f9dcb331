"""Step marks for any training loop: what `gpuwise measure` reads. Standard library only, a no-op elsewhere.

    from gpuwise.meter import Meter

    meter = Meter(samples=64)                # of this process, in one optimizer step
    for batch in loader:
        with meter.stage("forward"):
            loss = model(batch)
        ...
        meter.step()                         # after optimizer.step()

Without the environment variable GPUWISE_MARKS, which `gpuwise measure` sets, every call returns at once. The file
`<rank>-<pid>.marks` in that folder holds a line of 11 integers a step and a JSON object an event; times are those of
`time.perf_counter_ns`. This file is also loaded by its path where gpuwise is not installed.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

FOLDER = "GPUWISE_MARKS"
FLUSH_NS = 500_000_000
AT_ONCE = 64
"""First steps that are written one by one: a program that soon hangs or is killed has told at least these."""
STAGES = ("wait", "copy", "forward", "backward", "all_reduce", "optimizer", "sync")
"""Columns of a step line after end, samples, tokens and micro-batches."""
LINE = " ".join(["%d"] * (4 + len(STAGES)))


class Hooks(Protocol):
    """What watches the process from outside, if anything does: it then writes the line of a step."""

    def step(self, samples: int, tokens: int, own: dict[str, int]) -> None: ...


class Writer:
    """The marks of one process. Lines are kept and written together, at most FLUSH_NS late; a full disk or a folder
    that is gone stops the writing and never the program (`broken` says why). claimed: a Meter tells the steps."""

    def __init__(self, folder: str) -> None:
        self.pid = os.getpid()
        self.rank, self.world = rank(os.environ), world(os.environ)
        self.hooks: Hooks | None = None
        self.claimed = False
        self.broken: str | None = None
        self._path = os.path.join(folder, f"{self.rank}-{self.pid}.marks")
        self._file: int | None = None
        self._started = False
        self._steps: list[tuple[int, ...]] = []
        self._events: list[str] = []
        self._flushed_ns = time.perf_counter_ns()
        self._at_once = AT_ONCE
        atexit.register(self.close)

    @staticmethod
    def from_environment() -> Writer | None:
        """The writer of this process, the same at every call; None where nobody measures."""
        global _writer
        folder = os.environ.get(FOLDER)
        if not folder:
            return None
        if _writer is None or _writer.pid != os.getpid():
            _writer = Writer(folder)
        return _writer

    def start(self, begin_ns: int | None = None, **versions: str) -> None:
        """The event that begins a session, now or at begin_ns; written at most once and at once."""
        if not self._started:
            self._started = True
            self.event(
                "start", t=begin_ns, rank=self.rank, world=self.world, pid=self.pid, unix_ns=time.time_ns(),
                host=platform.node(), versions={"python": platform.python_version(), **versions}, flush=True,
            )  # fmt: skip

    def step(
        self,
        end_ns: int,
        samples: int = -1,
        tokens: int = -1,
        micro: int = 1,
        wait: int = -1,
        copy: int = -1,
        forward: int = -1,
        backward: int = -1,
        all_reduce: int = -1,
        optimizer: int = -1,
        sync: int = -1,
    ) -> None:
        """One optimizer step that ended at end_ns; stages in nanoseconds, -1 where nothing was seen."""
        self._steps.append((end_ns, samples, tokens, micro, wait, copy, forward, backward, all_reduce, optimizer, sync))
        if self._at_once or end_ns - self._flushed_ns > FLUSH_NS:
            self._at_once = max(0, self._at_once - 1)
            self.flush()

    def event(self, name: str, /, **fields: object) -> None:
        """One event; `t` is now unless given. flush=True writes everything at once."""
        flush = fields.pop("flush", False)
        moment = fields.pop("t", None) or time.perf_counter_ns()
        self._settle()
        self._events.append(json.dumps({"event": name, "t": moment, **fields}, default=str))
        if flush or time.perf_counter_ns() - self._flushed_ns > FLUSH_NS:
            self.flush()

    def flush(self) -> None:
        self._settle()
        self._flushed_ns = time.perf_counter_ns()
        lines, self._events = self._events, []
        if not lines or self.broken is not None or self.pid != os.getpid():
            return  # a forked child (a loader worker) has a copy of lines that its parent writes
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.write(self._file, ("\n".join(lines) + "\n").encode())
        except OSError as error:
            self.broken = str(error)

    def close(self) -> None:
        """Writes what is kept and closes the file; a later line opens it again."""
        self.flush()
        if self._file is not None and self.pid == os.getpid():
            os.close(self._file)
            self._file = None

    def _settle(self) -> None:
        """Step lines go before the events that come after them."""
        steps, self._steps = self._steps, []
        self._events += [LINE % step for step in steps]


_writer: Writer | None = None


def rank(environ: os._Environ[str] | dict[str, str]) -> int:
    """The number of this process in its job, as torchrun, Slurm or MPI tell it; 0 alone."""
    return _number(environ, ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"), 0)


def world(environ: os._Environ[str] | dict[str, str]) -> int:
    """How many processes train together, as a launcher told each of them; 1 alone. Slurm's number of tasks is of the
    allocation, in which one process may run alone."""
    return _number(environ, ("WORLD_SIZE",), 1) if "RANK" in environ else 1


def _number(environ: os._Environ[str] | dict[str, str], names: tuple[str, ...], default: int) -> int:
    for name in names:
        if environ.get(name, "").isdecimal():
            return int(environ[name])
    return default


class Meter:
    """Marks the steps of a loop. samples, tokens: of one optimizer step of this process, where they are always alike.

    Stages are host time, sums within the step; unknown names are refused where somebody measures. Where `gpuwise
    measure` sees the stages by itself, those named here take their place.
    """

    def __init__(self, samples: int | None = None, tokens: int | None = None) -> None:
        self._samples, self._tokens = samples, tokens
        self._writer = Writer.from_environment()
        self._sums: dict[str, int] = {}
        self._micro = 0
        if self._writer is not None:
            self._writer.claimed = True
            self._writer.start()

    def step(self, samples: int | None = None, tokens: int | None = None) -> None:
        """The end of one optimizer step."""
        writer = self._writer
        if writer is None:
            return
        own, self._sums = self._sums, {}
        micro, self._micro = self._micro, 0
        counted, told = _first(samples, self._samples), _first(tokens, self._tokens)
        if writer.hooks is not None:
            writer.hooks.step(counted, told, own)
        else:
            writer.step(time.perf_counter_ns(), counted, told, max(1, micro), **own)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time in this block belongs to wait, copy, forward, backward, all_reduce, optimizer or sync."""
        if self._writer is None:  # nobody measures
            yield
            return
        if name not in STAGES:
            raise ValueError(f"{name!r} is no stage: choose {', '.join(STAGES)}")
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            self._sums[name] = self._sums.get(name, 0) + time.perf_counter_ns() - begin
            self._micro += name == "backward"

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A block that is not training: validation, a checkpoint."""
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            if self._writer is not None:
                self._writer.event("phase", name=name, begin=begin, end=time.perf_counter_ns())


def _first(*values: int | None) -> int:
    return next((value for value in values if value is not None), -1)
