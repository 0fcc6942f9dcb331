"""Findings beside the course of a step: the wrong device, emulated precision, heat, recompiles."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwise.errors import Message
from gpuwise.measure.verdict.facts import UNUSED, Facts, loads_of
from gpuwise.measure.verdict.kinds import Cause, Finding, Gain
from gpuwise.units import Fraction

THROTTLES: Fraction = 0.2
RECOMPILES: Fraction = 0.05
RECOMPILES_LEAD: Fraction = 0.3
BF16 = ("bf16", "amp_bf16")
CLOCK_FELL: Fraction = 0.95
HEAT = ("heat", "hardware", "power brake")
"""Why a device is slower than it could be for good. A cap of power is how a card is meant to run."""


def unused_accelerator(facts: Facts) -> Iterator[Finding]:
    """The parameters lie on the CPU although the machine has an accelerator."""
    why = next((d.reasons[UNUSED] for d in facts.record.devices if UNUSED in d.reasons), None)
    if facts.accelerator or why is None:
        return
    message = Message("{why}", why=(why[:1].upper() + why[1:]).rstrip("."))
    fix = Message("Install a build of the framework for this GPU, or move model and batches to it (.to(device)).")
    yield Finding(kind="compute-bound", cause="cpu instead of gpu", share_fraction=None, message=message, fix=fix)


def emulated_bf16(facts: Facts) -> Iterator[Finding]:
    """bf16 on a device that has it in software only."""
    for device in facts.record.devices:
        if facts.record.setup.precision in BF16 and device.native_bf16 is False:
            message = Message("{name} has no native bf16: it is emulated and slow", name=device.name)
            on_cpu = device.backend == "cpu"
            fix = Message("Train in fp32.") if on_cpu else Message("Take fp16 with loss scaling (amp), or fp32.")
            yield Finding(kind="compute-bound", cause="bf16", share_fraction=None, message=message, fix=fix)
            return


def throttled(facts: Facts) -> Iterator[Finding]:
    """Devices that lower their clock: for heat, or for a limit of power."""
    loads = [load for load in loads_of(facts.record) if load.throttled]
    for load in loads:
        hot = max(load.throttled.get(reason, 0.0) for reason in HEAT)
        capped = load.throttled.get("power", 0.0)
        if hot >= THROTTLES:
            yield _slowed(facts, "heat" if load.throttled.get("heat") else "power", hot, load.index)
            return
        clock = load.clock_mhz
        if capped >= 0.5 and clock is not None and clock.mean < CLOCK_FELL * clock.maximum:
            yield _slowed(facts, "power", capped, load.index)
            return


def leads(finding: Finding, facts: Facts) -> bool:
    """A cap of power is how a busy card runs; heat, or a fall of speed, is not."""
    return finding.cause == "heat" or _fell(facts) is not None


def _fell(facts: Facts) -> float | None:
    """Later step / earlier step, where the speed fell for good."""
    shift = facts.record.pace.shift if facts.record.pace else None
    return shift.after_s / shift.before_s if shift is not None and shift.after_s > shift.before_s else None


def _slowed(facts: Facts, cause: Cause, share: Fraction, index: int) -> Finding:
    load = next(load for load in facts.record.device_loads if load.index == index)
    clock, fell = load.clock_mhz, _fell(facts)
    message = Message(
        "device {index} lowered its clock {share:.0%} of the time for {cause}{clock}{pace}",
        index=index,
        share=share,
        cause=Message("heat") if cause == "heat" else Message("power"),
        clock="" if clock is None else _clocks(clock.maximum, clock.minimum),
        pace="" if fell is None else Message("; a step became {fell:.2f} times as long", fell=fell),
    )
    fix = (
        Message(
            "Cool it better (fans, airflow, dust); plan with the later speed, and judge other cards by the earlier one."
        )
        if cause == "heat"
        else Message("Raise the power limit (nvidia-smi -pl) as far as its supply and cooling allow.")
    )
    ratio = fell or (clock.maximum / clock.mean if clock is not None and clock.mean else None)
    gain = None if ratio is None else Gain(factor=ratio, assumes=Message("if it kept its highest clock"))
    return Finding(kind="throttled", cause=cause, share_fraction=share, message=message, fix=fix, gain=gain)


def _clocks(high: float, low: float) -> Message:
    return Message(", from {high:.0f} to {low:.0f} MHz", high=high, low=low)


def recompiles(facts: Facts) -> Iterator[Finding]:
    """Rare, very long steps."""
    pace = facts.record.pace
    if pace is None or not pace.recompiles or not pace.window_s or pace.recompile_s < RECOMPILES * pace.window_s:
        return
    share = pace.recompile_s / pace.window_s
    known = not pace.reasons.get("recompiles", "").startswith("0 ")
    message = Message(
        "{count} {what}, {time:.0f} s, {share:.0%} of the window",
        count=pace.recompiles,
        what=Message("recompiles") if known else Message("very long steps"),
        time=pace.recompile_s,
        share=share,
    )
    fix = Message("Pad inputs to a few sizes (bucketing), or compile with dynamic shapes.")
    gain = Gain(factor=1 / (1 - min(share, 0.98)), assumes=Message("in this window, had none of them come"))
    yield Finding(
        kind="host-bound",
        cause="recompiles",
        share_fraction=share,
        message=message,
        fix=fix
        if known
        else Message("Find out what the program did there: a checkpoint, a garbage collection, a disk."),
        gain=gain,
    )
