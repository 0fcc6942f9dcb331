"""The words of a verdict: its sentence, the figures it rests on, and what makes them less sure."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwise.errors import Message
from gpuwise.measure.energy import interval_caution
from gpuwise.measure.verdict import feeding
from gpuwise.measure.verdict.endings import BAD as BAD_ENDINGS
from gpuwise.measure.verdict.facts import UNUSED, Facts, limits_outrun
from gpuwise.measure.verdict.kinds import Finding, Kind
from gpuwise.measure.verdict.working import COMPUTES, uneven
from gpuwise.units import Fraction, Seconds

OVERHEAD: Fraction = 0.02
WIDE: Fraction = 0.10
OTHERS: Fraction = 0.15
THERMAL_S: Seconds = 300.0
"""Cards reach their steady temperature after some minutes (84 °C after hundreds of steps in the reports)."""

_KINDS: dict[Kind, Message] = {
    "input-bound": Message("Input-bound"),
    "host-bound": Message("Host-bound"),
    "copy-bound": Message("Copy-bound"),
    "compute-bound": Message("Compute-bound"),
    "memory-bound": Message("Memory-bound"),
    "communication-bound": Message("Waiting on communication (likely)"),
    "storage-bound": Message("Storage-bound"),
    "throttled": Message("Throttled"),
}
_STAGES = {
    "wait": Message("waiting for data"),
    "copy": Message("copying"),
    "forward": Message("forward"),
    "backward": Message("backward"),
    "all_reduce": Message("waiting for other processes"),
    "optimizer": Message("optimizer"),
    "sync": Message("waiting for a value"),
    "rest": Message("everything else"),
}


def sentence(lead: Finding | None, base: Finding | None, facts: Facts) -> Message:
    """One sentence: the kind, its share of the step, and why."""
    if lead is None:
        return _unknown(facts)
    if lead.cause == "cpu instead of gpu":
        return Message("{why}.", why=lead.message)
    if lead.kind == "unknown" or (base is None and facts.record.ending in BAD_ENDINGS):
        return Message("Stopped: {why}.", why=lead.message)
    name = _KINDS[lead.kind]
    if lead.cause == "device" and lead.kind == "compute-bound":
        return _healthy(lead, facts)
    of = base if base is not None and base.kind == lead.kind else lead
    if of.share_fraction is None or lead.kind in ("throttled", "memory-bound") or of.cause in _SAID_ALREADY:
        return Message("{kind}: {why}.", kind=name, why=lead.message)
    return Message("{kind}, {share:.0%} of the step: {why}.", kind=name, share=of.share_fraction, why=lead.message)


_SAID_ALREADY = (
    "straggler",
    "recompiles",
    "optimizer",
    "copies",
    "fallback",
    "sync",
    "collective",
    "device",
    "launches",
)
"""Their own words hold the share."""


def _healthy(lead: Finding, facts: Facts) -> Message:
    if facts.accelerator:
        return Message("GPU-bound, healthy: {why}; more CPU cores will not help.", why=lead.message)
    waits = feeding.find(facts)
    if waits is not None and feeding.full_cpus(waits, facts) is not None:
        return Message(
            "Bound by the CPU, all of it in use: {why}; more loader workers will not help.", why=lead.message
        )
    return Message(
        "Bound by the CPU's arithmetic, healthy: {why}; more loader workers will not help.", why=lead.message
    )


def _unknown(facts: Facts) -> Message:
    pace = facts.record.pace
    if pace is None or "step_s" in pace.reasons:
        return _without_times(facts)
    if (waiting := uneven(facts)) is not None:
        return Message("Unknown: {waiting}.", waiting=waiting)
    if facts.wait is None and facts.computing is None:
        return Message("Unknown, since neither the stages of a step nor what the device did could be seen.")
    if facts.launch_only:
        return Message("Unknown: stages are times of launching, and the device does not tell whether it works.")
    if facts.accelerator and (facts.computing or 0) >= COMPUTES:
        return Message(
            "Unknown: forward, backward and optimizer take {share:.0%} of the step, and nothing tells whether the "
            "device works in them or waits for launches and other devices.",
            share=facts.computing,
        )
    return Message("Unknown, since no part of the step leads: {shares}.", shares=_shares(facts))


def _without_times(facts: Facts) -> Message:
    pace = facts.record.pace
    if pace is not None:
        return Message("Unknown, since times are {reason}.", reason=pace.reasons["step_s"].rstrip("."))
    reason = facts.record.reasons.get("pace", "no steps were seen")
    return Message("Unknown: {reason}.", reason=reason.rstrip("."))


def _shares(facts: Facts) -> Message:
    """The three largest parts, by name."""
    known = {name: getattr(facts, name) for name in _STAGES}
    largest = sorted(((share, name) for name, share in known.items() if share), reverse=True)[:3]
    parts = [Message("{name} {share:.0%}", name=_STAGES[name], share=share) for share, name in largest]
    if not parts:
        return Message("none was seen")
    said = parts[0]
    for part in parts[1:]:
        said = Message("{so_far}, {next}", so_far=said, next=part)
    return said


def what_to_measure(facts: Facts) -> Message | None:
    """What would make an unknown verdict a known one."""
    if facts.record.pace is None:
        return _more_steps(facts)
    if uneven(facts) is not None:
        return Message("Let it run for more steps, and look at the speed of each process's machine.")
    if facts.wait is None or facts.launch_only:
        return Message("Mark the stages with gpuwise.meter, or measure where device events can be read.")
    return None


FEW = "too few steps"
"""How `steps.why_none` begins where steps were seen."""


def _more_steps(facts: Facts) -> Message:
    """By why there is no pace: a program of the person's own may have no marks, reference training always has."""
    record = facts.record
    few = record.reasons.get("pace", "").startswith(FEW)
    if not record.setup.command:
        return Message("Let it train longer: more steps, minutes or epochs.")
    if few:
        return Message("Let the program run for more steps.")
    if "pace" in record.reasons and "torch was imported" in record.reasons["pace"]:
        return Message("Mark the end of each step with gpuwise.meter: no optimizer of torch made one.")
    return Message(
        "Mark the end of each step with gpuwise.meter, and start Python without -I and -E: they keep gpuwise out."
    )


def figures(facts: Facts) -> Iterator[Message]:
    """What was seen, in figures."""
    if facts.step_s is not None and (facts.wait is not None or facts.computing is not None):
        yield Message("a step takes {step:.3g} s: {shares}", step=facts.step_s, shares=_shares(facts))
    if facts.busy is not None:
        yield Message(
            "the device was busy {busy:.0%} of the time: in that time some kernel ran, on however little of the chip",
            busy=facts.busy,
        )
    if facts.power is not None:
        yield Message("it drew {power:.0%} of its power limit", power=facts.power)
    if facts.bandwidth is not None:
        yield Message("its memory was active {share:.0%} of the time", share=facts.bandwidth)
    if facts.mfu is not None:
        yield Message("it reached {mfu:.1%} of its arithmetic", mfu=facts.mfu)
    yield from _limits(facts)
    if (facts.wait or 0) >= 0.5 and facts.accelerator:
        yield Message("a faster accelerator would gain almost nothing now")


def _limits(facts: Facts) -> Iterator[Message]:
    feed, device, real = facts.feed_per_s, facts.device_per_s, facts.real_per_s
    if feed is None or device is None:
        return
    if real is not None:
        yield Message(
            "{real:.4g} samples/s are {share:.0%} of what its slower part does alone",
            real=real,
            share=real / min(feed, device),
        )
    if not facts.accelerator:
        yield Message(
            "the loader alone gives {feed:.4g} samples/s, the CPU training alone {device:.4g}", feed=feed, device=device
        )
        return
    yield Message(
        "the loader alone gives {feed:.4g} samples/s, the device alone {device:.4g}: "
        "this CPU could feed {count:.1f} such devices",
        feed=feed,
        device=device,
        count=feed / device * len([d for d in facts.record.devices if d.backend != "cpu"]),
    )


def cautions(facts: Facts) -> Iterator[Message]:
    """What makes the figures less sure."""
    yield from _of_pace(facts)
    yield from _of_devices(facts)
    record = facts.record
    if record.overhead_fraction is not None and record.overhead_fraction > OVERHEAD:
        yield Message("measuring itself cost {share:.1%} of the time", share=record.overhead_fraction)
    if facts.others_cpu is not None and facts.others_cpu >= OTHERS:
        yield Message("other processes took {share:.0%} of the CPUs while this was measured", share=facts.others_cpu)
    if limits_outrun(record):
        yield Message("loader and device alone were measured under another load than the training: they do not count")
    if facts.launch_only:
        yield Message("stages are times of launching: what the device does in them is not seen")
    if any(UNUSED in device.reasons for device in record.devices):
        yield Message("this is the CPU's speed: no GPU is predicted from it")


def _of_pace(facts: Facts) -> Iterator[Message]:
    pace = facts.record.pace
    if pace is None:
        return
    step = pace.step_s
    if step.value and step.high - step.low > 2 * WIDE * step.value:
        yield Message(
            "few or uneven steps: the mean is between {low:.3g} and {high:.3g} s", low=step.low, high=step.high
        )
    if pace.shift is not None:
        yield Message(
            "the speed changed at step {at}, from {before:.3g} to {after:.3g} s a step: the later level counts",
            at=pace.shift.at,
            before=pace.shift.before_s,
            after=pace.shift.after_s,
        )
    if facts.accelerator and pace.window_s < THERMAL_S:
        yield Message(
            "before thermal steady state: {window:.0f} s are too short to see a card become slower when hot",
            window=pace.window_s,
        )


def _of_devices(facts: Facts) -> Iterator[Message]:
    for device in facts.record.devices:
        if device.slice is not None:
            yield Message("{name} is a slice ({slice}): use and power are not measurable on MIG", name=device.name,
                          slice=device.slice)  # fmt: skip
        if device.backend in ("mps", "xla"):
            yield Message(
                "measured on {backend}: predictions for CUDA cards have low confidence", backend=device.backend
            )
        if device.unified and device.backend != "cpu":
            yield Message(
                "{name} shares its memory with the host: not comparable in the test of memory", name=device.name
            )
    for load in facts.record.device_loads:
        caution = interval_caution(load)
        if caution is not None:
            yield caution
