"""A run that did not end as it should: what is known of why."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwise.errors import Message
from gpuwise.measure.verdict import memory
from gpuwise.measure.verdict.facts import Facts
from gpuwise.measure.verdict.kinds import Cause, Finding

SHARED = ("bus error", "shared memory", "shm", "no space left on device: '/torch")
BAD = ("stalled", "failed", "killed", "out of memory", "loss not finite", "disk full", "data")
MEMORY_FULL = 0.95


def find(facts: Facts) -> Iterator[Finding]:
    """One finding, if the run failed or was ended from outside."""
    record = facts.record
    failure = _failure(facts).lower()
    shared = next(memory.shared_memory(facts), None)
    if record.ending == "stalled":
        yield _stalled(facts, shared)
    elif record.ending == "failed" and any(word in failure for word in SHARED):
        yield _shared_memory(facts, shared)
    elif record.ending == "out of memory" or (record.ending == "killed" and _host_full(facts)):
        yield _out_of_memory(facts)
    elif record.ending == "loss not finite":
        fix = Message(
            "Lower the learning rate, clip gradients, or train in fp32 to see whether precision is the cause."
        )
        yield _ended("not finite", _with_failure(Message("the loss is not finite"), facts), fix)
    elif record.ending in _MENDED:
        yield _ended("data" if record.ending == "data" else "ended", _why(facts), _MENDED[record.ending])


_MENDED: dict[str | None, Message] = {
    "disk full": Message("Free space on the disk, then measure again."),
    "data": Message("Look at the data that could not be used, then measure again."),
    "failed": Message("Look at the error first and mend it, then measure again."),
    "killed": Message("Find out who ended it (a time limit, a person, the system's log), then measure again."),
}


def _failure(facts: Facts) -> str:
    """The error, without the full stop that a sentence around it has itself."""
    return (facts.record.failure or "").strip().rstrip(".")


def _with_failure(what: Message, facts: Facts) -> Message:
    why = _failure(facts)
    return Message("{what}: {why}", what=what, why=why) if why else what


def _why(facts: Facts) -> Message:
    return _with_failure(Message("the run ended early ({ending})", ending=facts.record.ending), facts)


def _stalled(facts: Facts, shared: Finding | None) -> Finding:
    why = _failure(facts) or Message("no progress")
    if shared is None:
        fix = Message("Try workers = 0 to see whether the loader hangs; py-spy dump --pid shows where.")
        return _ended("stalled", Message("{why}", why=why), fix)
    return Finding(
        kind="input-bound",
        cause="shared memory",
        share_fraction=None,
        message=Message("{why}, {shared}", why=why, shared=shared.message),
        fix=shared.fix,
    )


def _shared_memory(facts: Facts, shared: Finding | None) -> Finding:
    size = facts.record.host.shm_gib
    if shared is not None:
        message = Message("the loader died: {shared}", shared=shared.message)
    elif size is None:
        message = Message("the loader died for want of shared memory")
    else:
        message = Message("the loader died with {size:.3g} MiB of shared memory", size=size * 1024)
    fix = shared.fix if shared is not None else memory.shared_fix()
    return Finding(kind="input-bound", cause="shared memory", share_fraction=None, message=message, fix=fix)


def _host_full(facts: Facts) -> bool:
    host, load = facts.record.host, facts.record.host_load
    limit = host.memory_limit_gib or host.memory_gib
    return limit is not None and load is not None and load.peak_gib is not None and load.peak_gib > MEMORY_FULL * limit


def _out_of_memory(facts: Facts) -> Finding:
    record = facts.record
    if record.ending == "killed":
        message = Message(
            "the job held {peak:.1f} GiB when it was killed: the host's memory was full",
            peak=record.host_load.peak_gib if record.host_load else None,
        )
        return _ended(
            "out of memory", message, Message("Take fewer workers or smaller batches, or a host with more memory.")
        )
    message = _with_failure(Message("out of memory"), facts)
    return _ended("out of memory", message, Message("Take a smaller batch, or accumulate micro-batches."))


def _ended(cause: Cause, message: Message, fix: Message | None) -> Finding:
    return Finding(kind="unknown", cause=cause, share_fraction=None, message=message, fix=fix)
