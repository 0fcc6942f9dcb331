"""`gpuwise ceilings`: what this machine can do, in under a minute, each figure with its range or a reason.

The probes run in a child, so that one that crashes, hangs or runs out of memory costs its own figure only: a new
child goes on with the next.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpuwise.errors import Message
from gpuwise.estimate import Interval
from gpuwise.measure.host import host
from gpuwise.measure.probes import Condition
from gpuwise.measure.probes.names import NAMES, UNITS
from gpuwise.measure.record import Device, Host
from gpuwise.measure.system import REAL, System
from gpuwise.units import Seconds

BUDGET_S: Seconds = 58.0
CAP_S: Seconds = 1.0
"""Measuring time of one probe."""
LIMIT_S: Seconds = 20.0
"""A probe that says nothing for so long is ended."""
START_S: Seconds = 40.0
"""For the child to start and import the framework, cold from a slow disk."""
READING = "disk in order"
COMMAND = (sys.executable, "-m", "gpuwise.measure.probes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One figure in `unit`, median with its range, or the reason why there is none. conditions: what it was had at."""

    name: str
    unit: str
    value: Interval | None = None
    reason: str | None = None
    conditions: Mapping[str, Condition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """All probes in order, of one machine. took_s: of budget_s."""

    probes: tuple[Probe, ...]
    host: Host
    devices: tuple[Device, ...]
    took_s: Seconds
    budget_s: Seconds
    schema: int = 1
    kind: str = "ceilings"

    def of(self, name: str) -> Probe | None:
        return next((p for p in self.probes if p.name == name), None)


def ceilings(
    folder: Path | None = None,
    *,
    names: Sequence[str] = NAMES,
    budget_s: Seconds = BUDGET_S,
    cap_s: Seconds = CAP_S,
    limit_s: Seconds = LIMIT_S,
    command: Sequence[str] = COMMAND,
    system: System = REAL,
    tell: Callable[[Message], None] = lambda message: None,
) -> Ceilings:
    """Runs the probes. folder: whose storage is read (default: the current one). tell: hears what runs now."""
    where = (folder if folder is not None else Path()).absolute()
    begun = time.perf_counter()
    run = _Run(names=list(names), until=begun + budget_s, tell=tell)
    while run.names and time.perf_counter() < run.until and run.failure is None:
        with _Child(command, {"names": run.names, "folder": str(where), "cap_s": cap_s}) as child:
            run.follow(child, limit_s)
    why = run.failure or f"no time left: {budget_s:g} s were over"
    probes = tuple(run.found.get(n) or Probe(name=n, unit=UNITS.get(n, ""), reason=why) for n in names)
    return Ceilings(
        probes=probes,
        host=_with_reading(host(where, system=system), probes),
        devices=run.devices,
        took_s=time.perf_counter() - begun,
        budget_s=budget_s,
    )


def _with_reading(seen: Host, probes: Sequence[Probe]) -> Host:
    """The host with what one reader got from its storage."""
    read = next((p.value.value for p in probes if p.name == READING and p.value is not None), None)
    return replace(seen, storage=replace(seen.storage, read_mb_per_s=read))


class _Child:
    """A process with its descendants, whose lines can be waited for."""

    def __init__(self, command: Sequence[str], spec: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            (*command, json.dumps(spec)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._said: list[str] = []
        self._readers = [threading.Thread(target=r, daemon=True) for r in (self._forward, self._collect)]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for reader in self._readers:
            reader.join(1.0)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def line(self, timeout_s: Seconds) -> str | None:
        """The next line, None at the end. TimeoutError if it does not come."""
        try:
            return self._lines.get(timeout=max(timeout_s, 0.01))
        except queue.Empty:
            raise TimeoutError from None

    def end(self) -> int:
        """Ends it and what it started, and gives its exit code."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):  # all of the group may be gone already
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()
        return self._process.wait()

    def left(self) -> str:
        """How it ended, in words; of a child that closed its output."""
        try:
            code = self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            code = self.end()
        last = "".join(self._said).strip().splitlines()[-1:]
        how = f"was killed by {_signal(-code)}" if code < 0 else f"ended with {code}"
        return f"its process {how}" + (f" ({last[0][:200]})" if last else "")

    def _forward(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _collect(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(slots=True, kw_only=True)
class _Run:
    """What was found and what is left. failure: why no child can run any probe."""

    names: list[str]
    until: Seconds
    tell: Callable[[Message], None]
    found: dict[str, Probe] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    failure: str | None = None

    def follow(self, child: _Child, limit_s: Seconds) -> None:
        """Reads a child to its end; the probe that it died in, or hung in, gets that as its reason."""
        now, before = None, len(self.found)
        while self.names:
            wait_s = min(limit_s if now else START_S, self.until - time.perf_counter())
            try:
                line = child.line(wait_s)
            except TimeoutError:
                self._gave_up(now, f"stopped: no answer within {wait_s:.0f} s")
                return
            if line is None:
                if now is not None or len(self.found) == before:
                    self._gave_up(now, child.left())
                return
            now = self._heard(line, now)

    def _heard(self, line: str, now: str | None) -> str | None:
        """The probe under way after this line. A line that is not the child's own is passed over."""
        try:
            told = json.loads(line)
        except ValueError:
            return now
        if not isinstance(told, dict):
            return now
        if "devices" in told:
            self.devices = tuple(Device(**d) for d in told["devices"])
        if "begin" in told:
            self.tell(Message("{probe} …", probe=told["begin"]))
        if "end" in told:
            self._note(_probe(told))
        return told.get("begin") if "end" not in told else None

    def _note(self, probe: Probe) -> None:
        self.found[probe.name] = probe
        if probe.name in self.names:
            self.names.remove(probe.name)

    def _gave_up(self, name: str | None, why: str) -> None:
        if name is None:
            self.failure = f"the probes could not be started: {why}"
        else:
            self._note(Probe(name=name, unit=UNITS.get(name, ""), reason=why))


def _probe(told: Mapping[str, Any]) -> Probe:
    value = told.get("value")
    return Probe(
        name=told["end"],
        unit=told.get("unit") or UNITS.get(told["end"], ""),
        value=None if value is None else Interval(**value),
        reason=told.get("reason"),
        conditions=told.get("conditions", {}),
    )
