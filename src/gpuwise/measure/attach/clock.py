"""Two clocks for spans: the host's, and a device's through pooled events that are asked and never waited for.

On a device a span is what the device took for it: a launch returns at once. Events are resolved by `query`, some steps
later (the manner of UC-001 and UC-002: no synchronisation, ever).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter_ns
from typing import Any, Protocol

Token = Any
"""A moment: an int of perf_counter_ns, or a recorded event."""


class Event(Protocol):
    """What torch.cuda.Event(enable_timing=True) offers; elapsed_time is in milliseconds."""

    def record(self) -> None: ...
    def query(self) -> bool: ...
    def elapsed_time(self, end: Any) -> float: ...


class Clock(Protocol):
    device: bool

    def stamp(self) -> Token: ...
    def between(self, begin: Token, end: Token) -> int:
        """Nanoseconds."""

    def ready(self, token: Token) -> bool: ...
    def release(self, tokens: Iterable[Token]) -> None: ...


class HostClock:
    device = False

    def __init__(self, now: Callable[[], int] = perf_counter_ns) -> None:
        self.stamp = now

    def between(self, begin: Token, end: Token) -> int:
        return int(end - begin)

    def ready(self, token: Token) -> bool:
        return True

    def release(self, tokens: Iterable[Token]) -> None:
        return None


class DeviceClock:
    """make: a new event. Events that are released are recorded again."""

    device = True

    def __init__(self, make: Callable[[], Event]) -> None:
        self._make = make
        self._pool: list[Event] = []

    def stamp(self) -> Token:
        event = self._pool.pop() if self._pool else self._make()
        event.record()
        return event

    def between(self, begin: Token, end: Token) -> int:
        return max(0, int(begin.elapsed_time(end) * 1e6))

    def ready(self, token: Token) -> bool:
        return bool(token.query())

    def release(self, tokens: Iterable[Token]) -> None:
        self._pool += tokens
