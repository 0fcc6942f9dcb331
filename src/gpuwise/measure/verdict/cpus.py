"""What keeps the job from the CPUs: pinned, few, a quota, a neighbour. They explain a slow loader or a slow CPU."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwise.errors import Message
from gpuwise.measure.verdict.facts import Facts
from gpuwise.measure.verdict.feeding import of_host
from gpuwise.measure.verdict.kinds import Cause, Finding, Gain, Kind
from gpuwise.units import Fraction

QUOTA: Fraction = 0.10
OTHERS: Fraction = 0.20
WAITING: Fraction = 0.15
OTHERS_ALONE: Fraction = 0.5
"""Share of the CPUs that others take, where nobody tells how long the job's processes wait for one."""
EXPLAINS: Fraction = 0.5
"""Share of the lost time that the mean process of the job must wait for CPUs."""
SATURATED, FULL = 0.80, 0.90
FEW: Fraction = 0.5


def find(facts: Facts, kind: Kind) -> Iterator[Finding]:
    """Findings about CPUs, nearest cause first. kind: what the run is bound by, which all share but a neighbour: work
    of others is no arithmetic and no input of the job's own."""
    shared = (_neighbour(facts), _few(facts, kind))
    ours = (facts.job_cpu or 0) > (facts.others_cpu or 0)
    for finding in (_pinned(facts, kind), _quota(facts, kind), *(reversed(shared) if ours else shared)):
        if finding is not None:
            yield finding


def explains(finding: Finding, facts: Facts, base: Finding | None, share: Fraction) -> bool:
    """Whether it can be why so much of the step is lost: a job that sleeps most of the time and waits for a CPU in the
    rest of it does not sleep for want of a CPU. base: what was lost, `share` of the step; nothing by a CPU that
    computes, which is only slower."""
    if finding.cause != "neighbour":
        return True
    if base is None or base.kind != "input-bound":
        return _waits_a_second(facts) >= WAITING
    return _waits_a_second(facts) / (1 + (facts.workers or 0)) >= EXPLAINS * share


def _waits_a_second(facts: Facts) -> float:
    """Seconds a second that all processes of the job together wait for a CPU; unbounded where nobody tells."""
    waiting, used = facts.waiting_cpu, facts.job_cpu
    if waiting is None or used is None or waiting >= 1:
        return float("inf")
    return used * facts.allowed * waiting / (1 - waiting)


def pinned_to(facts: Facts) -> float | None:
    """CPUs left to the job or its workers by their own affinity, where they began with more: half of them or less, and
    so few that they are all in use, or 1."""
    cpus = facts.record.host.cpus
    left = min((n for n in (cpus.at_end, cpus.workers) if n is not None), default=None)
    if left is None or left > FEW * cpus.allowed:
        return None
    full = facts.job_cpu is not None and facts.job_cpu * cpus.allowed >= SATURATED * left
    return left if left <= 1 or full else None


def _pinned(facts: Facts, kind: Kind) -> Finding | None:
    left = pinned_to(facts)
    if left is None:
        return None
    message = Message(
        "the job was pinned to {left:g} of {allowed:g} usable CPUs after it began",
        left=left,
        allowed=facts.allowed,
    )
    fix = Message(
        "An imported library or a launcher sets the CPU affinity: set it back after the imports "
        "(os.sched_setaffinity), or unset OMP_PROC_BIND, KMP_AFFINITY and GOMP_CPU_AFFINITY."
    )
    return _finding(kind, "pinned", None, message, fix, facts.allowed / left)


def _quota(facts: Facts, kind: Kind) -> Finding | None:
    load = facts.record.host_load
    share = load.quota_fraction if load else None
    if share is None or share < QUOTA:
        return None
    message = Message(
        "the CPU quota of {allowed:g} CPUs stopped the job in {share:.0%} of its periods{host}",
        allowed=facts.allowed,
        share=share,
        host=of_host(facts),
    )
    fix = Message("Raise the CPU limit of the container (docker --cpus, Kubernetes limits.cpu, Slurm --cpus-per-task).")
    return _finding(kind, "quota", share, message, fix, facts.record.host.cpus.host / max(facts.allowed, 0.1))


def _neighbour(facts: Facts) -> Finding | None:
    others, waiting = facts.others_cpu, facts.waiting_cpu
    if others is None or others < OTHERS:
        return None
    if others < OTHERS_ALONE if waiting is None else waiting < WAITING:
        return None
    waited = "" if waiting is None else Message("; the job waits for a CPU {share:.0%} of its time", share=waiting)
    message = Message("other processes take {others:.0%} of the usable CPUs{waited}", others=others, waited=waited)
    fix = Message("Stop the other processes, or ask for CPUs of your own, and measure again.")
    return _finding("host-bound", "neighbour", None, message, fix, 1 / (1 - min(waiting or others, 0.95)))


def _few(facts: Facts, kind: Kind) -> Finding | None:
    cpus, used = facts.record.host.cpus, facts.job_cpu
    if used is None or cpus.allowed > FEW * cpus.host:
        return None
    if used < SATURATED and (used < FEW or used + (facts.others_cpu or 0) < FULL):
        return None
    message = Message(
        "the job uses {used:.0%} of its CPUs: {host} on the host, {allowed:g} allowed by {rules}",
        used=used,
        host=cpus.host,
        allowed=cpus.allowed,
        rules=_rules(facts),
    )
    fix = Message("Ask for more CPUs (affinity, cpuset, container limit, Slurm --cpus-per-task).")
    return _finding(kind, "few CPUs", used, message, fix, cpus.host / cpus.allowed)


def _rules(facts: Facts) -> str | Message:
    """The rules that leave the fewest."""
    cpus = facts.record.host.cpus
    names = sorted(name for name, left in cpus.rules.items() if left <= cpus.allowed)
    return ", ".join(names) if names else Message("its environment")


def _finding(
    kind: Kind, cause: Cause, share: Fraction | None, message: Message, fix: Message, factor: float
) -> Finding:
    gain = Gain(factor=factor, assumes=Message("if all that waits for CPUs ran on as many as there are"))
    return Finding(kind=kind, cause=cause, share_fraction=share, message=message, fix=fix, gain=gain)
