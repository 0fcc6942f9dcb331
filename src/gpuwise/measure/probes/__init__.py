"""What this machine can do, one probe a question, each with its own time limit. Run in a child: `python -m
gpuwise.measure.probes SPEC` writes a line of JSON for each probe that begins and each that ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuwise.estimate import Interval

Condition = str | float
RANGE = "slowest to fastest of the runs"


class Skipped(Exception):
    """A probe that is not run here; its text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """device: of the framework (cuda, xpu, mps, cpu); none: no framework. folder: where to read and write.

    cap_s: seconds of measuring a probe; preparing and warming up come on top, within the parent's limit.
    """

    device: str
    folder: Path
    cap_s: float = 1.0
    devices: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a probe found: the fastest run with the range of all, in `unit`. conditions: what it was measured on."""

    unit: str
    value: Interval
    conditions: Mapping[str, Condition] = field(default_factory=dict)


Run = Callable[[], object]


def seconds_of(run: Run, cap_s: float, *, least: int = 3, most: int = 50, settle: Run | None = None) -> list[float]:
    """Seconds of single runs after one that does not count, until `cap_s` is over. settle: waits for the device.

    Runs on a device shorter than 5 ms are timed in blocks, so that launching them does not count.
    """
    block = _block(run, settle)
    taken: list[float] = []
    begun = time.perf_counter()
    while len(taken) < least or (len(taken) < most and time.perf_counter() - begun < cap_s):
        before = time.perf_counter()
        for _ in range(block):
            run()
        if settle is not None:
            settle()
        taken.append((time.perf_counter() - before) / block)
        if time.perf_counter() - begun > 3 * cap_s:  # so slow that even the least number takes too long
            break
    return taken


def _block(run: Run, settle: Run | None) -> int:
    """Runs in a block: the second run tells, the first one warms up."""
    wait = settle or (lambda: None)
    seconds = 0.0
    for _ in range(2):
        before = time.perf_counter()
        run()
        wait()
        seconds = time.perf_counter() - before
    return 1 if settle is None else min(max(round(0.005 / max(seconds, 1e-9)), 1), 1000)


def rate(amount: float, seconds: list[float], unit: str, **conditions: Condition) -> Found:
    """amount / seconds of the fastest run, which is what a ceiling is, with the slowest one beside."""
    value = Interval(value=amount / min(seconds), low=amount / max(seconds), high=amount / min(seconds))
    return Found(unit=unit, value=value, conditions={**conditions, "runs": len(seconds), "range": RANGE})


def largest(seconds: Callable[[int], float], sizes: tuple[int, ...], growth: float, cap_s: float) -> int:
    """The largest size whose single run is expected to stay below a quarter of `cap_s`, climbing from the smallest.

    growth: how much longer the next size takes. Guards against arithmetic that is emulated: a product of 4,096 ×
    4,096 numbers in float16 took 169 s on a CPU without it, one of 256 × 256 shows that in 0.1 s.
    """
    chosen = sizes[0]
    for size in sizes:
        taken = seconds(size)
        chosen = size
        if taken * growth > cap_s / 4:
            break
    return chosen
