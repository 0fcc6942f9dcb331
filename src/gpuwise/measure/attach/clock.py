"""Two clocks for spans: the host's, and a device's through pooled events that are asked and never waited for.

On a device a span is what the device took for it: a launch returns at once. Events are resolved by `query`, some steps
later (the manner of UC-001 and UC-002: no synchronisation, ever).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter_ns
from typing import Any, Protocol

Token = Any
"""A moment: an int of perf_counter_ns, or a Moment of a device."""


class Event(Protocol):
    """What torch.cuda.Event(enable_timing=True) offers; elapsed_time is in milliseconds."""

    def record(self, stream: Any = None, /) -> None: ...
    def query(self) -> bool: ...
    def elapsed_time(self, end: Any) -> float: ...


class Clock(Protocol):
    device: bool

    def stamp(self) -> Token: ...
    def between(self, begin: Token, end: Token) -> int:
        """Nanoseconds."""

    def ready(self, token: Token) -> bool: ...
    def line(self, token: Token) -> object:
        """What the token stands in line with: only tokens of one line have an order."""

    def release(self, tokens: Iterable[Token]) -> None: ...


class HostClock:
    device = False

    def __init__(self, now: Callable[[], int] = perf_counter_ns) -> None:
        self.stamp = now

    def between(self, begin: Token, end: Token) -> int:
        return int(end - begin)

    def ready(self, token: Token) -> bool:
        return True

    def line(self, token: Token) -> object:
        return None

    def release(self, tokens: Iterable[Token]) -> None:
        return None


class Moment:
    """An event, and the stream that it was recorded on last."""

    __slots__ = ("event", "stream")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.stream: Any = None


class DeviceClock:
    """make: a new event. stream: the one that the device which is watched works on now, whichever device is the current
    one; None for a framework that has a single one. Events that are released are recorded again."""

    device = True

    def __init__(self, make: Callable[[], Event], stream: Callable[[], Any] | None = None) -> None:
        self._make, self._stream = make, stream
        self._pool: list[Moment] = []

    def stamp(self) -> Token:
        moment = self._pool.pop() if self._pool else Moment(self._make())
        if self._stream is None:
            moment.event.record()
        else:
            moment.stream = self._stream()
            moment.event.record(moment.stream)
        return moment

    def between(self, begin: Token, end: Token) -> int:
        return max(0, int(begin.event.elapsed_time(end.event) * 1e6))

    def ready(self, token: Token) -> bool:
        return bool(token.event.query())

    def line(self, token: Token) -> object:
        return token.stream

    def release(self, tokens: Iterable[Token]) -> None:
        self._pool += tokens
