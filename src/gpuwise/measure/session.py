"""Runs a program as a measured child: passes its output on, follows its marks, watches the machine, keeps a Record.

The program runs in a process group of its own, which ends with it: at a limit (`Until`), when nothing moves any more
(UC-021), when we are interrupted, or when we are gone. Whatever happens, what was measured until then is kept.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from gpuwise.errors import InvalidInput, Message
from gpuwise.measure import assemble, steps
from gpuwise.measure.assemble import Outcome, Watched
from gpuwise.measure.energy import HostSample, Sample
from gpuwise.measure.failing import Failure, died, killed_for_memory
from gpuwise.measure.record import Device, Ending, Host, Record, Setup
from gpuwise.measure.tail import Tail
from gpuwise.units import Fraction, Seconds

ATTACH = Path(__file__).parent / "attach"
POLL_S: Seconds = 0.1
LOOK_S: Seconds = 0.5
KEEP_S: Seconds = 5.0
TELL_S: Seconds = 30.0
KEEP_COST: Fraction = 0.02
"""Share of the time that keeping may take: a long run is kept less often."""
BAD = ("stalled", "killed", "out of memory", "loss not finite", "disk full", "data", "failed")
ERROR_LINES = 200
TRAINING_GRACE_S: Seconds = 60.0
"""Grace of reference training: it ends its step and writes a checkpoint, which may lie on a slow disk."""
MOST_UNPLACED = 100
"""Steps after which devices that were not told are no longer looked for at every look."""
AFTER_OUTPUT_S: Seconds = 2.0
"""How long output is still read from a program that has ended; a grandchild may hold its end open."""


class Watch(Protocol):
    """What gauges.Sampler offers; tests hand in their own."""

    def start(self, pid: int, devices: Sequence[Device] = (), *, allowed: float | None = None) -> None: ...
    def use(self, devices: Sequence[Device]) -> None: ...
    def watch(self, mains: Sequence[int]) -> None: ...
    def taken(self) -> tuple[tuple[Sample, ...], tuple[HostSample, ...]]: ...
    def stop(self) -> tuple[tuple[Sample, ...], tuple[HostSample, ...]]: ...
    @property
    def asked_s(self) -> Seconds: ...
    @property
    def device_reasons(self) -> Mapping[int, Mapping[str, str]]: ...
    @property
    def host_reasons(self) -> Mapping[str, str]: ...
    @property
    def affinity(self) -> tuple[int | None, int | None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """When a program that does not end by itself is ended: at the first of these. steps: of this session; minutes: of
    the session; precise_fraction: the 80 % interval of the step is within ± this."""

    steps: int | None = None
    minutes: float | None = None
    precise_fraction: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """stall_s: without any mark, the program is ended; first_stall_s: the same before its first step. grace_s: from
    asking the program to end until it is made to; reference training is to be given TRAINING_GRACE_S."""

    stall_s: Seconds = 300.0
    first_stall_s: Seconds | None = None
    grace_s: Seconds = 10.0


def run(
    command: Sequence[str],
    *,
    setup: Setup,
    folder: Path,
    host: Host,
    devices: Sequence[Device] = (),
    watch: Watch | None = None,
    environ: Mapping[str, str] | None = None,
    until: Until = Until(),
    patience: Patience = Patience(),
    attach: bool = True,
    own_data: bool = True,
    tell: Callable[[Message], None] = lambda message: None,
    keep: Callable[[Record], None] = lambda record: None,
    output: BinaryIO | None = None,
) -> Record:
    """The record of the run of a command; `keep` gets it every five seconds or so, and at the end.

    folder: for marks; one that holds some already goes on with them. attach: watch the program from inside; reference
    training tells by itself. own_data: as in usable.measurement. output: where the program's own output goes, stderr
    by default. Raises InvalidInput for a command that cannot be started, and nothing for one that fails.
    """
    found = executable(command, os.environ if environ is None else environ)
    folder.mkdir(parents=True, exist_ok=True)
    session = _Session(
        setup=replace(setup, command=setup.command or tuple(command)) if attach else setup,
        folder=folder, host=host, devices=devices, watch=watch, until=until, patience=patience, tell=tell, keep=keep,
        own_data=own_data,
    )  # fmt: skip
    with _interruptible(session):
        return session.follow([found, *command[1:]], environment(environ, folder, attach=attach), output)


def _straight(output: BinaryIO | None) -> int:
    """Where the program's standard output goes: straight to our standard error, since passing it on would cost a
    talkative program a CPU; through a pipe where it is handed in, or where our own is no file."""
    if output is not None:
        return subprocess.PIPE
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return subprocess.PIPE


def executable(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """The program's path. InvalidInput where there is none, or none that can be started."""
    if not command:
        raise InvalidInput(
            Message("No command was given."), Message("Write for example: gpuwise measure -- python train.py")
        )
    found = shutil.which(command[0], path=environ.get("PATH"))
    if found is not None:
        return found
    if Path(command[0]).is_file():
        raise InvalidInput(
            Message('"{name}" cannot be executed.', name=command[0]),
            Message("For a Python script write: gpuwise measure -- python {name}", name=command[0]),
        )
    raise InvalidInput(
        Message('There is no program "{name}".', name=command[0]),
        Message("Check its name, or write its path; a Python script needs python before it."),
    )


def environment(environ: Mapping[str, str] | None, folder: Path, *, attach: bool) -> dict[str, str]:
    """The program's variables: its own, the folder of the marks, and the hooks' folder first on PYTHONPATH."""
    result = dict(os.environ if environ is None else environ)
    result["GPUWISE_MARKS"] = str(folder.resolve())
    if attach:
        result["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ATTACH / "site"), result.get("PYTHONPATH"))))
    return result


@contextmanager
def _interruptible(session: _Session) -> Iterator[None]:
    """SIGINT and SIGTERM end the child first; only the main thread may ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: session.interrupt()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@dataclass(kw_only=True)
class _Session:
    setup: Setup
    folder: Path
    host: Host
    devices: Sequence[Device]
    watch: Watch | None
    until: Until
    patience: Patience
    tell: Callable[[Message], None]
    keep: Callable[[Record], None]
    own_data: bool
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=ERROR_LINES))
    wanted: Ending | None = None
    last: Record | None = None
    placed: bool = False

    def interrupt(self) -> None:
        self.wanted = self.wanted or "interrupted"

    # ---- the child ----

    def follow(self, command: Sequence[str], environ: Mapping[str, str], output: BinaryIO | None) -> Record:
        self.tail = Tail(self.folder)
        self.created, self.used = _utc(), tuple(self.devices)
        self.began = self.moved = self.looked = self.kept = self.told = time.monotonic()
        self.kills_before = killed_for_memory()
        guard = [sys.executable, "-I", "-S", str(ATTACH / "guard.py"), str(os.getpid()), *command]
        stdin = None if not sys.stdin or sys.stdin.closed or not sys.stdin.isatty() else subprocess.DEVNULL
        self.child = subprocess.Popen(
            guard,
            env=dict(environ),
            stdin=stdin,
            stdout=_straight(output),
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        relays = self._relay(output or sys.stderr.buffer)
        if self.watch is not None:
            self.watch.start(self.child.pid, self.devices, allowed=self.host.cpus.allowed)
        try:
            self._wait()
        finally:
            self._end_group()
            if self.watch is not None:
                self.watch.stop()
        for relay in relays:
            relay.join(AFTER_OUTPUT_S)
        return self._finish()

    def _relay(self, output: BinaryIO) -> list[threading.Thread]:
        pipes = ((self.child.stdout, False), (self.child.stderr, True))
        threads = [threading.Thread(target=self._pass_on, args=(p, output, e), daemon=True) for p, e in pipes if p]
        for thread in threads:
            thread.start()
        return threads

    def _pass_on(self, pipe: BinaryIO, output: BinaryIO, errors: bool) -> None:
        """Bytes as they come; the last lines of stderr are kept for the reason of a failure. Once nobody takes them any
        more they are read nevertheless: the program would wait at a full pipe."""
        rest, taken = b"", True
        while chunk := os.read(pipe.fileno(), 65536):
            taken = taken and _passed_on(chunk, output)
            if errors:
                *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
                self.errors.extend(line.decode("utf-8", errors="replace") for line in lines if line.strip())
        if errors and rest.strip():
            self.errors.append(rest.decode("utf-8", errors="replace"))
        pipe.close()

    def _wait(self) -> None:
        """Until the child has ended or has to."""
        while self.child.poll() is None and self.wanted is None:
            time.sleep(POLL_S)
            now = time.monotonic()
            if now - self.looked > LOOK_S:
                self._look(now)
            self.wanted = self.wanted or self._limit(now)
            if now - self.kept > self.keep_s:
                self._keep(now)

    def _look(self, now: Seconds) -> None:
        self.looked = now
        self.moved = now if self.tail.look() else self.moved
        if self.watch is not None:
            self.watch.watch(self.tail.mains)
            if not self.placed:
                self._place()

    def _place(self) -> None:
        """A program that tells its devices does so before its first step ends."""
        told = self.tail.marks()
        self.placed = bool(told.told("devices")) or self.tail.steps > MOST_UNPLACED
        self._watch_used(assemble.used_devices(told, self.devices, self.host))

    def _limit(self, now: Seconds) -> Ending | None:
        until, patience = self.until, self.patience
        if until.steps is not None and self.tail.steps >= until.steps:
            return "steps"
        if until.minutes is not None and now - self.began >= 60 * until.minutes:
            return "minutes"
        first = patience.stall_s if patience.first_stall_s is None else patience.first_stall_s
        allowed = patience.stall_s if self.tail.steps else first
        return "stalled" if now - self.moved > allowed else None

    def _end_group(self) -> None:
        """Asks the whole group to end, waits, and makes it end."""
        if self.child.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self.child.wait(self.patience.grace_s)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self.child.wait()
        if self.wanted is not None or self.child.returncode:
            self._signal(signal.SIGKILL)  # what a program that ended well leaves behind, it may want

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.child.pid, number)
        except (ProcessLookupError, PermissionError):
            return

    # ---- the record ----

    keep_s: Seconds = KEEP_S

    def _keep(self, now: Seconds) -> None:
        self.last = self._record(Outcome(created_utc=self.created, wall_s=now - self.began))
        self.keep(self.last)
        precise = self.until.precise_fraction
        if precise is not None and steps.precise_enough(self.last.pace, precise):
            self.wanted = self.wanted or "precise"
        self._watch_used(self.last.devices)
        self.kept = time.monotonic()
        self.keep_s = max(KEEP_S, (self.kept - now) / KEEP_COST)
        if now - self.told > TELL_S:
            self.told = now
            self._tell(self.last)

    def _watch_used(self, devices: Sequence[Device]) -> None:
        """The machine may have other devices than those that the program has told it uses."""
        if self.watch is not None and devices and tuple(devices) != self.used:
            self.used = tuple(devices)
            self.watch.use(self.used)

    def _tell(self, record: Record) -> None:
        if record.pace is None and not self.tail.steps:
            return
        if record.pace is None:
            self.tell(Message("{steps} steps so far", steps=self.tail.steps))
        else:
            step_ms = 1000 * record.pace.step_s.value
            self.tell(Message("{steps} steps, {step_ms:.4g} ms a step", steps=record.pace.steps, step_ms=step_ms))

    def _finish(self) -> Record:
        self.tail.look()
        outcome = self._outcome()
        record = self._record(outcome)
        self.keep(record)
        return record

    def _outcome(self) -> Outcome:
        failure = self._failure()
        ending = failure.ending
        return Outcome(
            created_utc=self.created,
            status="interrupted" if ending == "interrupted" else "failed" if ending in BAD else "finished",
            ending=ending,
            failure=failure.text,
            ended_utc=_utc(),
            wall_s=time.monotonic() - self.began,
            reasons=self._stall_reasons() if ending == "stalled" else {},
        )

    def _failure(self) -> Failure:
        """Why it ended: what we wanted, what the program told by itself, else how its process died."""
        if self.wanted == "stalled":
            return Failure("stalled", f"no progress for {time.monotonic() - self.moved:.0f} s")
        told = self._told_end()
        if told is not None:
            return told
        if self.wanted is not None:
            return Failure(self.wanted, None)
        return died(self.child.returncode, list(self.errors), killed_for_memory() - self.kills_before)

    def _told_end(self) -> Failure | None:
        """The ending that a process of this session told; of several, one that failed."""
        events = self.tail.marks().told("end")
        ends = [Failure(e["ending"], e.get("failure")) for e in events if self.tail.new(e["file"]) and e.get("ending")]
        return next((end for end in ends if end.ending in BAD), ends[-1] if ends else None)

    def _stall_reasons(self) -> dict[str, str]:
        """UC-021: how full shared memory was when nothing moved any more."""
        samples = self.watch.taken()[1] if self.watch is not None else ()
        used = [s.shm_used_fraction for s in samples if s.shm_used_fraction is not None]
        full = used[-1] if used else self.host.shm_used_fraction
        last = f"no progress for {self.patience.stall_s:g} s"
        return {"ending": last if full is None else f"{last}, shared memory {100 * full:.0f} % full"}

    def _record(self, outcome: Outcome) -> Record:
        return assemble.record(
            marks=self.tail.marks(),
            setup=self.setup,
            host=self.host,
            outcome=outcome,
            devices=self.devices,
            watched=self._watched(),
            own_data=self.own_data,
        )

    def _watched(self) -> Watched | None:
        watch = self.watch
        if watch is None:
            return None
        samples, host_samples = watch.taken()
        return Watched(
            samples=samples,
            host_samples=host_samples,
            asked_s=watch.asked_s,
            device_reasons=watch.device_reasons,
            host_reasons=watch.host_reasons,
            affinity=watch.affinity,
        )


def _passed_on(chunk: bytes, output: BinaryIO) -> bool:
    """Whether it was taken: a terminal may be closed, and who reads a pipe may have gone."""
    try:
        output.write(chunk)
        output.flush()
    except (OSError, ValueError):  # ValueError: the file was closed on our side
        return False
    return True


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
