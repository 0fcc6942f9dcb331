"""What holds a run back, from its record alone.

The time that the device loses decides first: the largest of waiting for data, copying, waiting inside the program,
waiting for other processes. A device that loses little is bound by launches, heat, memory or arithmetic. What keeps the
job from its CPUs explains a slow loader or a slow CPU, so it is named before them. Where evidence is thin the kind is
"unknown" and the sentence says what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpuwise.measure.record import Record
from gpuwise.measure.verdict import cpus, endings, evidence, feeding, memory, special, working
from gpuwise.measure.verdict.facts import Facts, of_record
from gpuwise.measure.verdict.kinds import Cause, Finding, Gain, Judgement, Kind
from gpuwise.measure.verdict.memory import needed_gib, shared_memory_need_gib

__all__ = ["Cause", "Finding", "Gain", "Judgement", "Kind", "judge", "needed_gib", "shared_memory_need_gib"]


def judge(record: Record) -> Judgement:
    """The verdict on one run. Never raises for what a record lacks."""
    facts = of_record(record)
    first = _first(facts)
    base = None if first else _base(facts)
    kind: Kind = base.kind if base else "unknown"
    share = _lost_share(base) if base else 1.0
    explaining = tuple(
        f for f in cpus.find(facts, kind) if _cpus_matter(facts, base) and cpus.explains(f, facts, base, share)
    )
    found = _unique((*first, *explaining, *([base] if base else ()), *_beside(facts)))
    lead = found[0] if first or explaining or base else None
    return Judgement(
        kind=lead.kind if lead else "unknown",
        cause=lead.cause if lead else None,
        sentence=evidence.sentence(lead, base, facts),
        evidence=tuple(evidence.figures(facts)),
        gain=lead.gain if lead and lead.gain else base.gain if base else None,
        fix=lead.fix if lead else evidence.what_to_measure(facts),
        findings=found,
        cautions=tuple(evidence.cautions(facts)),
    )


def _first(facts: Facts) -> tuple[Finding, ...]:
    """What makes every other figure beside the point."""
    return (*endings.find(facts), *special.unused_accelerator(facts), *memory.spilling(facts))


@dataclass(frozen=True, slots=True)
class _Lost:
    share: float
    finding: Finding


def _base(facts: Facts) -> Finding | None:
    """The finding that leads by the course of the step, None where no part of it does."""
    lost = [_Lost(_lost_share(finding), finding) for finding in _losing(facts)]
    if lost:
        return max(lost, key=lambda one: one.share).finding
    if facts.record.pace is None and facts.busy is None and facts.real_per_s is None:
        return None
    hot = [finding for finding in special.throttled(facts) if special.leads(finding, facts)]
    return next(iter((*hot, *special.emulated_bf16(facts), *working.used(facts))), None)


def _losing(facts: Facts) -> Iterable[Finding]:
    waits = feeding.find(facts)
    if waits is not None and not working.full(facts):
        yield feeding.full_cpus(waits, facts) or waits
    yield from working.lost(facts)
    yield from (f for f in special.recompiles(facts) if (f.share_fraction or 0) >= special.RECOMPILES_LEAD)


def _lost_share(finding: Finding) -> float:
    if finding.share_fraction is not None:
        return finding.share_fraction
    return 1 - 1 / finding.gain.factor if finding.gain else 0.0


def _cpus_matter(facts: Facts, base: Finding | None) -> bool:
    """CPUs explain what happens on the host: loading, launching, and a CPU that is slow as the device."""
    if base is None:
        return cpus.pinned_to(facts) is not None
    if base.kind == "input-bound":
        return True
    return base.cause in (("launches",) if facts.accelerator else ("device", "threads", "neighbour"))


def _beside(facts: Facts) -> Iterable[Finding]:
    """Findings that do not lead, most important first."""
    yield from special.emulated_bf16(facts)
    yield from special.throttled(facts)
    yield from special.recompiles(facts)
    waits = feeding.find(facts)
    if waits is not None:
        yield waits
    yield from working.lost(facts)
    yield from working.used(facts)
    yield from cpus.find(facts, "host-bound")
    yield from memory.shared_memory(facts)


def _unique(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first of each cause; of a device's being as it should only where nothing else was found."""
    kept: dict[Cause, Finding] = {}
    for finding in findings:
        kept.setdefault(finding.cause, finding)
    if len(kept) > 1 and next(iter(kept)) != "device":
        kept.pop("device", None)
    return tuple(kept.values())
