"""Stage times of a step: host stamps where the work is done in the call, events in the device's queue where it is not.

A launch returns long before its work is done, so the clock of the host tells nothing about a device with a queue
(UC-001). Its events are recorded in the queue, asked for by `query` while later steps run, and never waited for inside
a step: waiting would take away the overlap that is to be measured (UC-002).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from time import monotonic, perf_counter_ns
from typing import Any, Protocol

UNSEEN = -1
ALIVE_S = 5.0
"""Between two signs of life while something takes long that is no step."""
AHEAD = 256
"""Steps that may wait for their events: a host that is further ahead than this waits for the oldest."""


class Lines(Protocol):
    """Where step lines go: gpuwise.meter.Writer, or anything with its `step`."""

    def step(
        self,
        end_ns: int,
        samples: int = ...,
        tokens: int = ...,
        micro: int = ...,
        wait: int = ...,
        copy: int = ...,
        forward: int = ...,
        backward: int = ...,
        all_reduce: int = ...,
        optimizer: int = ...,
        sync: int = ...,
    ) -> None: ...


class Event(Protocol):
    """A point in the queue of a device, as torch.cuda.Event(enable_timing=True) is one."""

    def record(self) -> None: ...
    def query(self) -> bool: ...
    def synchronize(self) -> None: ...
    def elapsed_time(self, end: Any, /) -> float:
        """Milliseconds from this event to `end`."""


class Scalar(Protocol):
    """A number that may still be on its way from the device."""

    def item(self) -> float | int: ...


class Events(Protocol):
    """Where events go: gpuwise.meter.Writer."""

    def event(self, name: str, /, **fields: object) -> None: ...


class Pulse:
    """A sign of life for whoever waits for steps. It is given from within the work, so work that hangs gives none."""

    def __init__(self, events: Events, clock: Callable[[], float] = monotonic) -> None:
        self._events, self._clock = events, clock
        self._told = clock()

    def beat(self) -> None:
        """Something moved; told every ALIVE_S at most."""
        now = self._clock()
        if now - self._told >= ALIVE_S:
            self._told = now
            self._events.event("alive", flush=True)


class Losses:
    """Mean of the losses since `reset`, and whether every one was finite."""

    __slots__ = ("count", "finite", "total")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.count, self.total, self.finite = 0, 0.0, True

    def add(self, loss: float) -> None:
        self.count += 1
        self.total += loss
        if not isfinite(loss):
            self.finite = False

    @property
    def mean(self) -> float:
        """0 steps have no mean: nan."""
        return self.total / self.count if self.count else float("nan")


class HostTimer:
    """For a device whose work is done when the call returns (the CPU)."""

    __slots__ = ("lines", "losses", "mark")

    def __init__(self, lines: Lines, *, clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self.lines = lines
        self.losses = Losses()
        self.mark = clock_ns

    def keep(self, loss: Scalar) -> Scalar:
        """The loss as `step` wants it; it is here already."""
        return loss

    def step(self, samples: int, wait_ns: int, marks: Sequence[int], reduced: int | None, loss: Scalar) -> None:
        """Writes the line of a step. marks: before the copy, after copy, forward, backward and optimizer; reduced: when
        the last gradients were handed to the all-reduce."""
        start, copied, forward, backward, end = marks
        self.losses.add(loss.item())
        exposed = UNSEEN if reduced is None else backward - reduced
        own = backward - forward - (exposed if reduced is not None else 0)
        self.lines.step(
            end, samples, UNSEEN, 1, wait_ns, copied - start, forward - copied, own, exposed, end - backward, 0
        )

    def anchor(self) -> None:
        """Before the first step, and after anything that is no step."""

    def finish(self) -> None:
        """Write what is still waiting for its events."""


@dataclass(slots=True)
class _Pending:
    samples: int
    wait_ns: int
    marks: Sequence[Event]
    reduced: Event | None
    loss: Scalar


class DeviceTimer:
    """For a device with a queue. make_event: a new event of it; keep: puts the copy of a loss to the host into the
    queue, which the last mark of the step has to come after; clock_ns: the host's clock, which the events are set
    against whenever the queue is empty anyway."""

    def __init__(
        self,
        lines: Lines,
        *,
        make_event: Callable[[], Event],
        keep: Callable[[Any], Scalar],
        clock_ns: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self.lines = lines
        self.losses = Losses()
        self._make, self.keep, self._clock = make_event, keep, clock_ns
        self._free: list[Event] = []
        self._pending: deque[_Pending] = deque()
        self._last: Event | None = None
        self._last_ns = 0

    def mark(self) -> Event:
        event = self._free.pop() if self._free else self._make()
        event.record()
        return event

    def anchor(self) -> None:
        """Waits for the queue to be empty, so that a point in it has a time of the host."""
        self.finish()
        event = self.mark()
        event.synchronize()
        self._release(self._last)
        self._last, self._last_ns = event, self._clock()

    def step(self, samples: int, wait_ns: int, marks: Sequence[Event], reduced: Event | None, loss: Scalar) -> None:
        """As HostTimer.step; the line is written some steps later, when the device has come so far."""
        self._pending.append(_Pending(samples, wait_ns, marks, reduced, loss))
        if len(self._pending) > AHEAD:
            self._pending[0].marks[-1].synchronize()
        while self._pending and self._pending[0].marks[-1].query():
            self._write(self._pending.popleft())

    def finish(self) -> None:
        while self._pending:
            self._pending[0].marks[-1].synchronize()
            self._write(self._pending.popleft())

    def _write(self, done: _Pending) -> None:
        """Exposed wait is the least of what the host waited and of the gap in the device's queue."""
        start, copied, forward, backward, end = done.marks
        gap_ns = _ns(self._last, start) if self._last is not None else done.wait_ns
        self._last_ns += gap_ns + _ns(start, end)
        exposed = UNSEEN if done.reduced is None else _ns(done.reduced, backward)
        own = _ns(forward, backward) - max(exposed, 0)
        self.losses.add(float(done.loss.item()))
        self.lines.step(
            self._last_ns, done.samples, UNSEEN, 1, min(done.wait_ns, gap_ns), _ns(start, copied),
            _ns(copied, forward), own, exposed, _ns(backward, end), 0,
        )  # fmt: skip
        for event in (self._last, *done.marks[:-1], done.reduced):
            self._release(event)
        self._last = end

    def _release(self, event: Event | None) -> None:
        if event is not None:
            self._free.append(event)


def _ns(start: Event | None, end: Event) -> int:
    return 0 if start is None else max(0, round(start.elapsed_time(end) * 1e6))
