"""Data are there: what takes the time then. Copies, waits for the device, launches, other ranks, memory, arithmetic.

Utilisation (busy) alone decides nothing: it is the time in which any kernel ran. It counts together with the share of
the power limit, with counters of the chip, or with the stages of the step.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwise.errors import Message
from gpuwise.measure.record import Rank
from gpuwise.measure.steps import longest, straggler
from gpuwise.measure.verdict.facts import Facts
from gpuwise.measure.verdict.feeding import WAITS
from gpuwise.measure.verdict.kinds import Finding, Gain
from gpuwise.units import Fraction, Seconds

LOST: Fraction = 0.15
"""Of the step, from which a copy, a host wait or a collective counts."""
BUSY, MOSTLY_BUSY, HALF_BUSY = 0.9, 0.8, 0.6
WORKING: Fraction = 0.6
"""Share of the power limit, or of the chip, at which an accelerator really works."""
IDLING, LOW_POWER = 0.35, 0.5
QUIET_MEMORY, LOUD_MEMORY = 0.2, 0.6
LOW_MFU: Fraction = 0.35
STRAGGLES_STEPS = 30
"""Steps after warm-up, below which no rank is called slow."""
OTHERS_COUNT: Fraction = 0.2
IDLE_CPUS: Fraction = 0.75
"""Of the usable CPUs: a job that computes on the CPU and uses less leaves cores idle."""
MAIN_BUSY: Fraction = 0.85
COMPUTES: Fraction = 0.7
NEAR_DEVICE: Fraction = 0.85
OPTIMIZES: Fraction = 0.3
FALLS_BACK: Fraction = 0.4
TINY_OPERATION_S: Seconds = 30e-6
LAUNCH_S: Seconds = 15e-6
"""About what a launch takes through Python and the framework; a CPU's operations need some of that on top."""
TINY_MFU: Fraction = 0.005


def lost(facts: Facts) -> Iterator[Finding]:
    """Findings of time in which the device does not work, each with its share of the step."""
    for finding in (_copies(facts), _syncs(facts), _collectives(facts), _slow_rank(facts), _spinning(facts)):
        if finding is not None:
            yield finding


def used(facts: Facts) -> Iterator[Finding]:
    """What bounds a device that is not waiting, nearest first. Nothing where ranks wait, and not for a slow one."""
    if uneven(facts) is not None:
        return
    for finding in (_launches(facts), _memory(facts), _optimizer(facts), _device(facts)):
        if finding is not None:
            yield finding


def full(facts: Facts) -> bool:
    """The accelerator was busy nearly all the time and really worked."""
    return facts.accelerator and (facts.busy or 0) >= BUSY and _works(facts)


def _works(facts: Facts) -> bool:
    return max(facts.power or 0, facts.sm or 0) >= WORKING


def without(share: Fraction, assumes: Message) -> Gain:
    return Gain(factor=1 / (1 - min(share, 0.98)), assumes=assumes)


def _copies(facts: Facts) -> Finding | None:
    if facts.copy is None or facts.copy < LOST:
        return None
    if facts.copy >= FALLS_BACK and any(device.backend == "mps" for device in facts.record.devices):
        message = Message("{share:.0%} of the step is copying: operations fall back to the CPU", share=facts.copy)
        fix = Message("Unset PYTORCH_ENABLE_MPS_FALLBACK to see which operations fall back, and replace them.")
        gain = without(facts.copy, Message("if no operation fell back"))
        return Finding(
            kind="copy-bound", cause="fallback", share_fraction=facts.copy, message=message, fix=fix, gain=gain
        )
    fix = (
        Message("Send less: uint8 pictures that are normalised on the device.")
        if facts.record.setup.pinned
        else Message("Pin the loader's memory and copy without waiting (pin_memory=True, non_blocking=True).")
    )
    message = Message("{share:.0%} of the step is copying to the device", share=facts.copy)
    gain = without(facts.copy, Message("if copies ran beside the work"))
    return Finding(kind="copy-bound", cause="copies", share_fraction=facts.copy, message=message, fix=fix, gain=gain)


def _syncs(facts: Facts) -> Finding | None:
    """Waits that the program asks for. On a device that works all the time they only hold its work."""
    if facts.sync is None or facts.sync < LOST or full(facts):
        return None
    if facts.accelerator and not facts.launch_only and (facts.computing or 0) >= NEAR_DEVICE:
        return None
    times = facts.record.stages.syncs if facts.record.stages else None
    message = Message(
        "{share:.0%} of the step is waiting inside the program for a value of the device (item, print, a metric), "
        "{times:.2g} times a step",
        share=facts.sync,
        times=times if times is not None else 1,
    )
    fix = Message("Keep losses and metrics on the device and read them every 50 steps or so.")
    assumes = Message("if nothing waited; part of the wait may be work of the device that was launched before it")
    left = 0.0 if facts.launch_only or not facts.accelerator else facts.computing or 0.0
    gain = without(min(facts.sync, 1 - left), assumes)
    return Finding(kind="host-bound", cause="sync", share_fraction=facts.sync, message=message, fix=fix, gain=gain)


def _collectives(facts: Facts) -> Finding | None:
    if facts.all_reduce is None or facts.all_reduce < LOST or _straggler(facts):
        return None
    message = _collective_message(facts.all_reduce, facts.record.setup.processes - 1)
    fix = Message("Accumulate more micro-batches a step, take a larger batch, or cards with a faster link.")
    gain = without(facts.all_reduce, Message("if all communication ran beside the work"))
    return Finding(
        kind="communication-bound",
        cause="collective",
        share_fraction=facts.all_reduce,
        message=message,
        fix=fix,
        gain=gain,
    )


def _collective_message(share: Fraction, others: int) -> Message:
    if others == 1:
        return Message("{share:.0%} of the step is waiting for the other process's gradients", share=share)
    return Message(
        "{share:.0%} of the step is waiting for the other {count} processes' gradients", share=share, count=others
    )


def _straggler(facts: Facts) -> tuple[Rank, Fraction] | None:
    pace = facts.record.pace
    if pace is None or pace.steps - pace.warm_up < STRAGGLES_STEPS:
        return None
    return straggler(facts.record.ranks)


def uneven(facts: Facts) -> Message | None:
    """The other ranks wait for one that waits little, and it is not clearly slow: what they wait for is not known."""
    found = longest(facts.record.ranks)
    if found is None or not found.alone or _straggler(facts) or not facts.step_s:
        return None
    share = (found.others_wait_s or 0.0) / facts.step_s
    if share < LOST:
        return None
    return Message(
        "the others wait {share:.0%} of the step for rank {rank}, whose own work is hardly longer, "
        "or was seen in too few steps",
        share=share,
        rank=found.rank.rank,
    )


def _slow_rank(facts: Facts) -> Finding | None:
    found = _straggler(facts)
    if found is None:
        return None
    rank, efficiency = found
    message = Message(
        "rank {rank}{host} works {own:.3g} s a step and waits {wait:.3g} s: the others wait for it, "
        "which leaves an efficiency of {efficiency:.0%}",
        rank=rank.rank,
        host=Message(" on {name}", name=rank.host) if rank.host else "",
        own=rank.compute_s,
        wait=rank.all_reduce_s or 0.0,
        efficiency=efficiency,
    )
    fix = Message("Look at that process's machine: clock, other jobs on its device, its share of the data.")
    gain = Gain(factor=1 / efficiency, assumes=Message("if it were as fast as the median rank"))
    return Finding(
        kind="communication-bound",
        cause="straggler",
        share_fraction=1 - efficiency,
        message=message,
        fix=fix,
        gain=gain,
    )


def _spinning(facts: Facts) -> Finding | None:
    """Fully busy devices of a job of several that draw little power: kernels wait for communication (likely)."""
    several = facts.record.setup.processes > 1 or len(facts.record.devices) > 1
    if not several or facts.all_reduce is not None or facts.busy is None or facts.busy < BUSY or facts.power is None:
        return None
    if facts.power > IDLING or (facts.bandwidth or 0) > QUIET_MEMORY or (facts.sm or 0) > WORKING:
        return None
    message = Message(
        "the devices are {busy:.0%} busy at {power:.0%} of their power limit: kernels run and wait for other devices",
        busy=facts.busy,
        power=facts.power,
    )
    fix = Message("Compare with one device alone, then look at the link between the devices and at the slowest rank.")
    return Finding(kind="communication-bound", cause="collective", share_fraction=None, message=message, fix=fix)


def _launches(facts: Facts) -> Finding | None:
    share = _launching_device(facts) if facts.accelerator else _launching_cpu(facts)
    if share is None:
        return None
    gain = without(share, Message("if the device were never idle")) if facts.accelerator and share else None
    return Finding(
        kind="host-bound",
        cause="launches",
        share_fraction=share if facts.accelerator and share else None,
        message=_launch_message(facts),
        fix=_launch_fix(facts),
        gain=gain,
    )


def _launching_device(facts: Facts) -> Fraction | None:
    """Share of time in which the device idles while the main process is at work; None where that is not so."""
    fed = facts.wait < WAITS if facts.wait is not None else bool(facts.workers)
    if not fed or facts.main_cpu is None or facts.main_cpu < MAIN_BUSY:
        return None
    if facts.busy is None:
        return _idle_by_time(facts)
    seen = facts.wait is not None or (facts.power is not None and facts.power <= LOW_POWER)
    return 1 - facts.busy if facts.busy < HALF_BUSY and seen else None


def _idle_by_time(facts: Facts) -> Fraction | None:
    """Without gauges: the device's own stages leave much of the step, or its operations are as short as launches."""
    if facts.launch_only or facts.computing is None:
        return None
    if 1 - facts.computing > 1 - HALF_BUSY:
        return 1 - facts.computing
    return 0.0 if _tiny(facts) else None


def _tiny(facts: Facts) -> bool:
    return facts.operation_s is not None and facts.operation_s < LAUNCH_S


def _launching_cpu(facts: Facts) -> Fraction | None:
    """On a CPU: operations so short that calling them takes the time, or a rate far below any arithmetic."""
    if facts.computing is None or facts.computing < 0.5:
        return None
    tiny = facts.operation_s is not None and facts.operation_s < TINY_OPERATION_S
    hollow = facts.operation_s is None and facts.mfu is not None and facts.mfu < TINY_MFU
    return facts.computing if tiny or hollow else None


def _launch_message(facts: Facts) -> Message:
    if not facts.accelerator and facts.operation_s is not None:
        return Message(
            "an operation takes {time:.0f} µs: calling it costs more than its work", time=facts.operation_s * 1e6
        )
    if not facts.accelerator:
        return Message(
            "the step reaches {mfu:.2%} of the CPU's arithmetic: calls, not work, take the time", mfu=facts.mfu
        )
    busy = "" if facts.busy is None else Message("the device is {busy:.0%} busy and ", busy=facts.busy)
    return Message("{busy}the main process is at {main:.0%} of a CPU: launching takes longer than working", busy=busy,
                   main=facts.main_cpu)  # fmt: skip


def _launch_fix(facts: Facts) -> Message:
    if not facts.accelerator:
        return Message("Take larger batches, or compile the model.")
    if facts.record.setup.compiled:
        return Message(
            'Take larger batches, or CUDA graphs (mode="reduce-overhead"); a small model may do better on the CPU.'
        )
    return Message("Take larger batches, CUDA graphs or torch.compile; a small model may do better on the CPU.")


def _memory(facts: Facts) -> Finding | None:
    busy = facts.busy if facts.busy is not None else facts.computing or 0
    if (facts.bandwidth or 0) < LOUD_MEMORY or busy < HALF_BUSY or (facts.mfu or 0) > LOW_MFU:
        return None
    if facts.sm is not None and facts.mfu is None and facts.sm > 0.95 and (facts.bandwidth or 0) < 0.75:
        return None
    message = Message("the device's memory is active {share:.0%} of the time", share=facts.bandwidth)
    fix = Message("A device with more memory bandwidth helps, more FLOPS do not; fuse operations (torch.compile).")
    if facts.record.setup.compiled:
        fix = Message("A device with more memory bandwidth helps, more FLOPS do not.")
    gain = Gain(factor=1 / min(facts.bandwidth or 1, 1), assumes=Message("on this device, if its memory never paused"))
    return Finding(
        kind="memory-bound", cause="device", share_fraction=facts.bandwidth, message=message, fix=fix, gain=gain
    )


def _optimizer(facts: Facts) -> Finding | None:
    """Its own stage; as launch times it would be no measure of the device's work."""
    if facts.optimizer is None or facts.optimizer < OPTIMIZES or (facts.accelerator and facts.launch_only):
        return None
    message = Message("the optimizer takes {share:.0%} of the step", share=facts.optimizer)
    fix = Message(
        "Take the fused optimizer (fused=True), one with less state, or accumulate more micro-batches a step."
    )
    gain = without(facts.optimizer, Message("if the optimizer's step were free"))
    return Finding(
        kind="compute-bound", cause="optimizer", share_fraction=facts.optimizer, message=message, fix=fix, gain=gain
    )


def _device(facts: Facts) -> Finding | None:
    """The device itself is the limit, and that is as it should be; a CPU only where its cores are in use."""
    message = _by_limit(facts) or _by_gauges(facts) or _by_stages(facts)
    if message is None:
        return None
    if idle_cores(facts):
        return _taken(facts) or _threads(facts)
    return Finding(
        kind="compute-bound", cause="device", share_fraction=facts.computing, message=message, fix=faster(facts)
    )


def idle_cores(facts: Facts) -> bool:
    return not facts.accelerator and facts.job_cpu is not None and facts.job_cpu < IDLE_CPUS


CPUS_FULL: Fraction = 0.9


def _taken(facts: Facts) -> Finding | None:
    """Others hold the CPUs that the job does not use: more threads would find none."""
    used, others = facts.job_cpu or 0.0, facts.others_cpu or 0.0
    if others < OTHERS_COUNT or used + others < CPUS_FULL:
        return None
    text = "the job uses {used:.0%} of the usable CPUs, other processes {others:.0%}: none is left for more threads"
    fix = Message("Stop the other processes, or ask for CPUs of your own, and measure again.")
    gain = Gain(factor=1 / max(used, 0.01), assumes=Message("if the job had all usable CPUs"))
    message = Message(text, used=used, others=others)
    return Finding(kind="host-bound", cause="neighbour", share_fraction=None, message=message, fix=fix, gain=gain)


def _threads(facts: Facts) -> Finding:
    used = facts.job_cpu or 0.01
    fix = Message(
        "Give it as many threads as there are CPUs (torch.set_num_threads, OMP_NUM_THREADS); of two threads on one "
        "core the second adds little."
    )
    if not _few_threads(facts):
        fix = Message("Take larger batches, so that every thread has work, and look for parts that one thread does.")
    gain = Gain(factor=1 / max(used, 0.01), assumes=Message("if all usable CPUs computed"))
    return Finding(
        kind="compute-bound", cause="threads", share_fraction=None, message=_idle_message(facts), fix=fix, gain=gain
    )


def _few_threads(facts: Facts) -> bool:
    """Fewer threads than CPUs, as far as is known."""
    threads = facts.record.setup.threads
    return threads is None or threads * max(facts.record.setup.processes, 1) < int(facts.allowed)


def _idle_message(facts: Facts) -> Message:
    threads = facts.record.setup.threads
    count = None if threads is None else threads * max(facts.record.setup.processes, 1)
    others = facts.others_cpu or 0.0
    return Message(
        "the job uses {used:.0%} of its {cpus:g} CPUs{others}{threads}",
        used=facts.job_cpu,
        cpus=facts.allowed,
        others=Message(", other processes {others:.0%}", others=others) if others >= OTHERS_COUNT else "",
        threads="" if count is None else _computing_threads(count),
    )


def _computing_threads(count: int) -> Message:
    return Message(": 1 thread computes") if count == 1 else Message(": {count} threads compute", count=count)


def _by_limit(facts: Facts) -> Message | None:
    if facts.device_per_s is None or facts.real_per_s is None or facts.real_per_s < NEAR_DEVICE * facts.device_per_s:
        return None
    return Message(
        "{real:.4g} samples/s are {share:.0%} of what the device does without waiting for data",
        real=facts.real_per_s,
        share=facts.real_per_s / facts.device_per_s,
    )


def _by_gauges(facts: Facts) -> Message | None:
    """Busy, and either really at work or never waiting for data."""
    fed = facts.wait is not None and facts.wait < WAITS
    if not facts.accelerator or (facts.busy or 0) < BUSY or not (fed or _works(facts)):
        return None
    if not _works(facts) and (_unseen_waits(facts) or (facts.power is not None and facts.power <= IDLING)):
        return None
    return Message("the device is {busy:.0%} busy and does not wait for data", busy=facts.busy)


def _by_stages(facts: Facts) -> Message | None:
    if facts.computing is None or facts.computing < COMPUTES or (facts.accelerator and not _really(facts)):
        return None
    return Message("forward, backward and optimizer take {share:.0%} of the step", share=facts.computing)


def _really(facts: Facts) -> bool:
    """Whether times of an accelerator's stages are of work: gaps between launches lie within them too, so a gauge, long
    operations or a main process at rest has to speak for it."""
    if facts.launch_only or _tiny(facts):
        return False
    if _unseen_waits(facts):
        return _works(facts)
    if facts.busy is not None:
        return facts.busy >= MOSTLY_BUSY and (facts.power or 1) > IDLING
    at_rest = facts.main_cpu is not None and facts.main_cpu < MAIN_BUSY
    return facts.operation_s is not None or at_rest or _works(facts)


def _unseen_waits(facts: Facts) -> bool:
    """A job of several processes whose waits for each other nobody saw."""
    return facts.record.setup.processes > 1 and facts.all_reduce is None


def faster(facts: Facts) -> Message | None:
    """What is left to speed up the device's own work; None where all that is known was done."""
    setup, devices = facts.record.setup, facts.record.devices
    if setup.precision in ("fp32", "tf32") and devices and all(device.native_bf16 for device in devices):
        return Message("Train in bf16 (autocast): this device has it in hardware.")
    if setup.memory_format == "nchw":
        return Message("Try channels_last as memory format.")
    if facts.accelerator and setup.compiled is False:
        return Message("Try torch.compile.")
    return None
