"""What a verdict is made of: closed lists of kinds and causes, findings with figures, the judgement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuwise.errors import Message
from gpuwise.units import Fraction

Kind = Literal[
    "input-bound", "host-bound", "copy-bound", "compute-bound", "memory-bound", "communication-bound",
    "storage-bound", "throttled", "unknown",
]  # fmt: skip
Cause = Literal[
    "loader", "workers", "decode", "bursts", "pinned", "few CPUs", "quota", "neighbour", "shared memory", "disk",
    "network storage", "optimizer", "launches", "sync", "copies", "collective", "straggler", "heat", "power", "spill",
    "recompiles", "cpu instead of gpu", "fallback", "bf16", "precision", "out of memory", "stalled", "not finite",
    "data", "ended", "threads", "device",
]  # fmt: skip
"""What holds the run back, nearer than its kind. device: the accelerator (or, without one, the CPU) works as it
should; fallback: operations of an Apple GPU that run on the CPU; bf16: emulated; precision: a faster one is unused;
threads: a job that computes on the CPU leaves cores of it idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The largest possible speed-up, an upper bound: old time / new time. assumes: under which it holds."""

    factor: float
    assumes: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was seen. kind: what the run would be bound by if this led. share_fraction: of the step's time,
    where it has one. message: the evidence in figures. fix: None where nothing is to be done."""

    kind: Kind
    cause: Cause
    share_fraction: Fraction | None
    message: Message
    fix: Message | None = None
    gain: Gain | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What holds a run back. kind "unknown" has a sentence that says why. evidence: what the sentence rests on.

    findings: most important first, the leading one included. cautions: what makes the figures less sure.
    """

    kind: Kind
    cause: Cause | None
    sentence: Message
    evidence: tuple[Message, ...] = ()
    gain: Gain | None = None
    fix: Message | None = None
    findings: tuple[Finding, ...] = ()
    cautions: tuple[Message, ...] = ()
