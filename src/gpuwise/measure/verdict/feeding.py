"""The run waits for data: which part of the way from storage to the device, and what is left to be done about it.

A fix knows what was done already: no more workers than CPUs that may be used, no cache where there is one, no fast feed
where it runs. Storage figures: read speed / bytes a file bounds samples/s for the whole machine (95 MB/s and 110 kB:
864 a second).
"""

from __future__ import annotations

from gpuwise.errors import Message
from gpuwise.measure.verdict.facts import Facts
from gpuwise.measure.verdict.kinds import Cause, Finding, Gain, Kind
from gpuwise.units import Fraction

WAITS: Fraction = 0.10
"""With workers, a device that waits this much of the mean step is fed too slowly: a faster feed is not waited for."""
WAITS_SERIAL: Fraction = 0.25
"""Without workers loading and training take turns, so that either may lead."""
SLOWER: Fraction = 0.95
NEAR_LIMIT: Fraction = 0.6
MOSTLY: Fraction = 0.5
IO: Fraction = 0.3
BUSY_CPUS: Fraction = 0.85
LARGE_PX = 700_000.0
BURST_MEDIAN: Fraction = 0.75
LONG_MEDIAN = 1.25
"""Of the mean step: where bursts are what is slow, the median step is far from it, on either side."""
SAME_RATE = 1.15


def find(facts: Facts) -> Finding | None:
    """The finding, if data are waited for."""
    by_ceiling = _storage_ceiling(facts)
    share = facts.wait
    if not _waits(facts) and by_ceiling is None:
        return None
    kind, cause, message = _cause(facts, by_ceiling)
    return Finding(
        kind=kind, cause=cause, share_fraction=share, message=message, fix=_fix(facts, cause), gain=_gain(facts)
    )


FULL_CAP = 1.1
"""Gain that idle CPUs leave room for, below which all are in use."""


def full_cpus(waits: Finding, facts: Facts) -> Finding | None:
    """Where the CPU is the device, loader and training share its cores: with all of them in use, waiting for data is
    only one of the two taking its turn. None where CPUs are left, or nobody tells."""
    if not _all_in_use(facts) or waits.kind != "input-bound":
        return None
    message = Message(
        "the job uses {used:.0%} of its {cpus:g} CPUs, which load the data ({share} of the step is waiting for them) "
        "and train",
        used=facts.job_cpu,
        cpus=facts.allowed,
        share="–" if facts.wait is None else Message("{share:.0%}", share=facts.wait),
    )
    return Finding(
        kind="compute-bound", cause="device", share_fraction=facts.wait, message=message, fix=_cheaper(facts)
    )


def _all_in_use(facts: Facts) -> bool:
    """Of a job that computes on the CPU: what loads takes from what trains."""
    return not facts.accelerator and bool(facts.job_cpu) and 1 / (facts.job_cpu or 1.0) < FULL_CAP


def _waits(facts: Facts) -> bool:
    """By the stages; or by the limits, where the loader alone is slower than the device and the run is near it."""
    if facts.wait is not None:
        return facts.wait >= (WAITS if facts.workers != 0 else WAITS_SERIAL)
    feed, device, real = facts.feed_per_s, facts.device_per_s, facts.real_per_s
    if feed is None or device is None or real is None:
        return False
    return feed < SLOWER * device and real >= NEAR_LIMIT * feed


def _storage_ceiling(facts: Facts) -> float | None:
    """samples/s that the storage can give at most, where that is less than the device takes and the run is not faster
    than it (then the data come from memory)."""
    read, size = facts.record.host.storage.read_mb_per_s, facts.record.setup.original_bytes
    demand = facts.demand_per_s
    if read is None or not size or demand is None:
        return None
    ceiling = read * 1e6 / size
    faster = facts.real_per_s is not None and facts.real_per_s > SAME_RATE * ceiling
    return None if faster or ceiling >= SLOWER * demand else ceiling


def _cause(facts: Facts, ceiling: float | None) -> tuple[Kind, Cause, Message]:
    if ceiling is not None:
        text = Message(
            "storage gives {read:.0f} MB/s, which is {ceiling:.0f} samples/s of {size:.0f} kB for the whole machine; "
            "{demand:.0f} could be used",
            read=facts.record.host.storage.read_mb_per_s,
            ceiling=ceiling,
            size=(facts.record.setup.original_bytes or 0) / 1e3,
            demand=facts.demand_per_s,
        )
        return "storage-bound", _store(facts), text
    if (reading := _reading(facts)) is not None:
        return "storage-bound", _store(facts), reading
    if (bursts := _bursts(facts)) is not None:
        return "input-bound", "bursts", bursts
    return ("input-bound", *_in_loader(facts))


def _store(facts: Facts) -> Cause:
    return "network storage" if facts.record.host.storage.network else "disk"


def _reading(facts: Facts) -> Message | None:
    loader, load = facts.record.loader, facts.record.host_load
    if loader is not None and loader.read_s is not None and loader.fetch_s and loader.read_s > MOSTLY * loader.fetch_s:
        return Message(
            "reading takes {share:.0%} of a sample's time in the loader ({time:.3g} ms)",
            share=loader.read_s / loader.fetch_s,
            time=loader.read_s * 1e3,
        )
    if load is not None and load.io_fraction is not None and load.io_fraction >= IO:
        return Message("the loader waits for storage {share:.0%} of the time", share=load.io_fraction)
    return None


def _bursts(facts: Facts) -> Message | None:
    pace = facts.record.pace
    if pace is None or pace.period is None or not facts.workers or pace.period % facts.workers:
        return None
    seen = {"workers": facts.workers, "period": pace.period, "mean": pace.step_s.value, "median": pace.median_s}
    if pace.median_s >= LONG_MEDIAN * pace.step_s.value:
        return Message("the loader's {workers} workers deliver in bursts: every {period} steps one waits", **seen)
    if pace.median_s > BURST_MEDIAN * pace.step_s.value:
        return None  # steps are alike: that is a slow loader
    return Message(
        "the loader's {workers} workers deliver in bursts: every {period} steps one waits; "
        "the mean step is {mean:.3g} s, the median of {median:.3g} s only the best case",
        **seen,
    )


def _in_loader(facts: Facts) -> tuple[Cause, Message]:
    if facts.workers == 0:
        return "workers", Message("the training process loads each batch itself, between two steps")
    if more_workers(facts):
        return "workers", Message(
            "{workers} loader workers on {cpus:g} usable CPUs{host}",
            workers=facts.workers,
            cpus=facts.usable,
            host=of_host(facts),
        )
    return _slow_part(facts)


def of_host(facts: Facts) -> Message | str:
    """How many CPUs the machine has, where the job may not use them all."""
    cpus = facts.record.host.cpus
    if cpus.allowed >= cpus.host:
        return ""
    return Message(" ({host} on the host, {allowed:g} allowed)", host=cpus.host, allowed=cpus.allowed)


def _slow_part(facts: Facts) -> tuple[Cause, Message]:
    loader = facts.record.loader
    if without_loader(facts):
        return "loader", Message("the program makes each batch itself, without a data loader that could be watched")
    parts = {} if loader is None else {"decode": loader.decode_s, "augment": loader.augment_s}
    known = {name: seconds for name, seconds in parts.items() if seconds is not None}
    if loader is None or not loader.fetch_s or not known:
        return "loader", Message("the time of single samples inside the loader was not seen")
    name = max(known, key=lambda part: known[part])
    values = {"share": known[name] / loader.fetch_s, "time": known[name] * 1e3}
    if known[name] <= MOSTLY * loader.fetch_s:
        return "loader", Message("a sample takes {time:.3g} ms in the loader", time=loader.fetch_s * 1e3)
    if name == "decode":
        return "decode", Message(
            "decoding takes {share:.0%} of a sample's time in the loader ({time:.3g} ms)", **values
        )
    return "loader", Message("augmenting takes {share:.0%} of a sample's time in the loader ({time:.3g} ms)", **values)


def more_workers(facts: Facts) -> bool:
    """There are CPUs left for more workers, as far as is known."""
    if facts.workers is None or facts.workers >= int(facts.usable):
        return False
    return facts.job_cpu is None or facts.job_cpu < BUSY_CPUS


def _fix(facts: Facts, cause: Cause) -> Message:
    if cause in ("network storage", "disk"):
        return _storage_fix(facts)
    alone = facts.workers == 0 and not _all_in_use(facts)
    if cause in ("workers", "bursts") and (alone or more_workers(facts)):
        return Message("Try more loader workers: {sweep}.", sweep=_sweep(facts))
    return _cheaper(facts)


def _cheaper(facts: Facts) -> Message:
    setup = facts.record.setup
    if not setup.cached and (setup.original_px or 0) >= LARGE_PX:
        return Message("Re-encode the pictures once near the size that is used (gpuwise measure --cache does it).")
    if setup.feed == "exact":
        return Message("Try the fast feed (--feed fast): it decodes pictures at a reduced scale.")
    return _last_fix(facts)


def _storage_fix(facts: Facts) -> Message:
    """More workers overlap their waits for a file, as long as no ceiling of the storage is known."""
    if _storage_ceiling(facts) is None and more_workers(facts):
        return Message(
            "Try more loader workers ({sweep}), whose reads overlap; then pack the files into large shards.",
            sweep=_sweep(facts),
        )
    if facts.record.setup.cached:
        return Message("Copy the re-encoded files to a disk of this machine, or into its memory.")
    if facts.record.host.storage.network:
        return Message("Copy the data to a local disk first, or pack the small files into large shards.")
    return Message("Pack the files into large shards, re-encode them smaller, or use a faster disk.")


def _last_fix(facts: Facts) -> Message:
    if without_loader(facts):
        return Message(
            "Time what makes the batches, and make it faster, or let a thread make the next one while this one trains."
        )
    if facts.workers is None:
        return Message(
            "Measure with other numbers of loader workers, up to the {cpus:g} usable CPUs.", cpus=facts.usable
        )
    need = _needed_cpus(facts) if facts.accelerator else None
    if need is not None and facts.job_cpu is not None and facts.job_cpu >= BUSY_CPUS:
        return Message("All {cpus:g} usable CPUs are busy: about {need:.0f} are needed.", cpus=facts.usable, need=need)
    if not facts.accelerator:
        return Message("Make a sample cheaper: fewer or simpler transformations, or smaller files.")
    return Message("Make a sample cheaper: fewer or simpler transformations, smaller files, or decoding on the device.")


def _needed_cpus(facts: Facts) -> float | None:
    """CPUs with which the loader would keep pace with the device."""
    feed, demand = facts.feed_per_s or facts.real_per_s, facts.demand_per_s
    return None if not feed or demand is None else facts.usable * demand / feed


def _sweep(facts: Facts) -> str:
    """Powers of two from above the present number up to the usable CPUs, which come last."""
    most = max(int(facts.usable), 1)
    counts = {2**n for n in range(9) if (facts.workers or 0) < 2**n < most} | {most}
    return ", ".join(str(n) for n in sorted(counts))


def without_loader(facts: Facts) -> bool:
    """A loop of the program's own makes the batches."""
    return facts.workers is None and facts.record.loader is None


def _gain(facts: Facts) -> Gain | None:
    """As far as data allow, and on a CPU, which loads and trains, as far as its idle cores do."""
    free = _without_waits(facts)
    if free is None or facts.accelerator or not facts.job_cpu:
        return free
    most = 1 / min(facts.job_cpu, 1.0)
    if free.factor <= most:
        return free
    assumes = Message("if no CPU were idle: the job uses {used:.0%} of its {cpus:g}", used=facts.job_cpu,
                      cpus=facts.allowed)  # fmt: skip
    return Gain(factor=most, assumes=assumes)


def _without_waits(facts: Facts) -> Gain | None:
    """Up to the device alone where it was measured, else the step without the wait."""
    if facts.device_per_s is not None and facts.real_per_s:
        factor = facts.device_per_s / facts.real_per_s
        assumes = Message(
            "if data were always ready: the device alone does {rate:.0f} samples/s", rate=facts.device_per_s
        )
        return Gain(factor=factor, assumes=assumes) if factor > 1 else None
    if facts.wait is None or facts.wait > 0.98 or facts.step_s is None:
        return None
    left = facts.step_s * (1 - facts.wait)
    return Gain(factor=1 / (1 - facts.wait), assumes=Message("if data were free: {left:.3g} s a step", left=left))
