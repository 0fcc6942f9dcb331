"""What watching costs: windows of steps with the hooks off and on, in the order off on on off (a drift cancels).

Steps that take long are not spared their stages: there, what a hook costs is timed by itself and counted.
"""

from __future__ import annotations

import math
import statistics
from time import perf_counter_ns

FIRST = 30
WINDOW = 20
ORDER = (False, True, True, False, False, True, True, False)
LONG_NS = 50_000_000
"""Hooks cost some 20 microseconds a step: below 0.05 % of a step this long."""
HOOK_US, SPAN_US = 23.0, 0.24
"""What one span adds to a step of a small network (five spans, 97 to 130 µs of CPU time on two busy cores of an EPYC),
and what one turn of `cost_ns` took on the same machine at the same time: their ratio carries the figure over."""


class Trial:
    """Says when the hooks are on, takes the durations of steps, and tells the result once."""

    def __init__(self, first: int = FIRST, window: int = WINDOW) -> None:
        self._first, self._window = first, window
        self._state = "before"
        self._before: list[int] = []
        self._times: dict[bool, list[int]] = {True: [], False: []}

    @property
    def open(self) -> bool:
        """The result is still to be told."""
        return self._state != "told"

    def on(self, step: int) -> bool:
        """Whether hooks are on in this step (counted from 0)."""
        if self._state == "told":
            return True
        if self._state == "before" and step == self._first:
            self._state = "running" if self._short() else "long"
        index = (step - self._first) // self._window
        if self._state == "running" and index >= len(ORDER):
            self._state = "ended"
        return self._state != "running" or ORDER[index]

    def _short(self) -> bool:
        return len(self._before) >= self._first // 2 and statistics.median(self._before) < LONG_NS

    def add(self, watched: bool, whole: bool, took_ns: int) -> None:
        if self._state == "before":
            self._before.append(took_ns)
        elif whole and self._state in ("running", "ended"):
            self._times[watched].append(took_ns)

    def abandon(self) -> None:
        if self._state == "running":
            self._state = "long"

    def told(self, spans_a_step: float, took_ns: int) -> dict[str, float | str] | None:
        """The overhead, once it is known: `fraction` with its standard error."""
        if self._state == "ended" and min(map(len, self._times.values())) >= self._window:
            self._state = "told"
            return self._compared()
        if self._state == "long" and took_ns > 0:
            self._state = "told"
            return {"fraction": spans_a_step * cost_ns() / took_ns, "error": 0.0, "method": "hooks timed by themselves"}
        return None

    def _compared(self) -> dict[str, float | str]:
        off, on = (self._times[watched] for watched in (False, True))
        ratio = statistics.median(on) / statistics.median(off)
        error = math.hypot(*(_error(times) / statistics.median(times) for times in (off, on)))
        return {"fraction": ratio - 1, "error": error, "method": f"{len(off)} steps without, {len(on)} with hooks"}


def _error(times: list[int]) -> float:
    """Standard error of a median: 1.2533 that of a mean, with the spread taken from the quartiles."""
    low, _, high = statistics.quantiles(times, n=4)
    return 1.2533 * (high - low) / 1.349 / math.sqrt(len(times))


def cost_ns() -> float:
    """What one watched span costs: stamps, keeping and the call of a hook, the best of five rounds."""
    return min(_round_ns() for _ in range(5))


def _round_ns() -> float:
    begin = perf_counter_ns()
    kept = []
    for _ in range(100):
        kept.append([perf_counter_ns(), {"stage": "forward"}])
        kept[-1].append(perf_counter_ns())
    return HOOK_US / SPAN_US * (perf_counter_ns() - begin) / 100
