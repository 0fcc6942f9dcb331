"""Scripted runs on fake accelerators with a known truth: the text of marks and the samples that such a run would give.

Severities are drawn from a seed. Nothing here ran anywhere: it stands in for accelerators and links that are not at
hand. Everything passes through the same parser, series, gauges and assembly as a real run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpuwise.measure.assemble import Outcome, Watched, record
from gpuwise.measure.energy import HostSample, Sample
from gpuwise.measure.marks import parse
from gpuwise.measure.record import Cpus, Device, Host, Record, Setup, Storage
from gpuwise.measure.verdict import Judgement

Rng = np.random.Generator
STEPS = 300
BEGIN_S = 1000.0
A100 = Device(
    index=0, name="NVIDIA A100-SXM4-80GB", vendor="NVIDIA", backend="cuda", memory_gib=80.0, native_bf16=True,
    power_limit_w=400.0,
)  # fmt: skip
CPU = Device(index=0, name="AMD EPYC", vendor="AMD", backend="cpu", native_bf16=False)
HOST = Host(system="Linux", cpus=Cpus(host=16, allowed=16.0))
COLUMNS = ("wait", "copy", "forward", "backward", "all_reduce", "optimizer", "sync")


@dataclass(kw_only=True)
class Script:
    """One run. ranks: seconds of each stage by rank; what they leave of step_s is nobody's. gauges: means of a device,
    None: not readable. events: of rank 0, written after its tenth step. waiting: share of the job's CPU
    time. needed: gauges, of device or host, without which nobody could tell."""

    step_s: float
    ranks: list[dict[str, float]]
    gauges: dict[str, float | None] = field(default_factory=dict)
    host: dict[str, float] = field(default_factory=dict)
    setup: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    device: Device | None = A100
    machine: Host = HOST
    factors: np.ndarray | None = None
    throttle: tuple[str, ...] = ()
    throttled: float = 0.0
    waiting: float | None = None
    needed: tuple[str, ...] = ()
    noise: float = 0.05

    def record(self, rng: Rng) -> Record:
        files = {f"{n}-{n + 1}.marks": self._marks(n, rng) for n in range(len(self.ranks))}
        marks = parse(files)
        end_s = max((float(series.end_s[-1]) for series in marks.series), default=BEGIN_S)
        devices = () if self.device is None else (self.device,)
        return record(
            marks=marks,
            setup=Setup(**{"workload": "w", "workers": 8, "processes": len(self.ranks), **self.setup}),
            host=self.machine,
            outcome=Outcome(created_utc="2026-11-30T12:00:00Z"),
            devices=devices,
            watched=Watched(
                samples=self._samples(end_s, rng) if devices else (), host_samples=self._host(end_s, rng), asked_s=0.2
            ),
        )

    def _marks(self, rank: int, rng: Rng) -> str:
        """Noise is shared by the ranks, which wait for each other."""
        factors = np.ones(STEPS) if self.factors is None else self.factors
        wave = np.random.default_rng(STEPS).lognormal(0, self.noise, STEPS) * factors
        now = BEGIN_S
        lines = [json.dumps({"event": "start", "t": round(now * 1e9), "rank": rank})]
        if self.device is not None:
            lines.append(json.dumps({"event": "timing", "t": round(now * 1e9), "clock": "device"}))
        for n, factor in enumerate(wave):
            now += self.step_s * factor + (5.0 if n == 0 else 0.0)
            own = [self.ranks[rank].get(name) for name in COLUMNS]
            times = [-1 if s is None else round(s * factor * rng.lognormal(0, 0.02) * 1e9) for s in own]
            lines.append(" ".join(map(str, (round(now * 1e9), 64, -1, 1, *times))))
            if n == 10 and rank == 0:
                lines += [json.dumps({"t": round(now * 1e9), **event}) for event in self.events]
        return "\n".join(lines) + "\n"

    def _samples(self, end_s: float, rng: Rng) -> list[Sample]:
        times = np.arange(BEGIN_S, end_s, max(0.2, (end_s - BEGIN_S) / 300))
        slow = rng.random(len(times)) < self.throttled
        found = []
        for t, hot in zip(times, slow, strict=True):
            values = {k: None if v is None else float(v * rng.normal(1, 0.03)) for k, v in self.gauges.items()}
            values = {k: v if v is None or "fraction" not in k else min(v, 1.0) for k, v in values.items()}
            found.append(Sample(t_s=float(t), device=0, throttle=self.throttle if hot else (), **values))
        return found

    def _host(self, end_s: float, rng: Rng) -> list[HostSample]:
        times = np.arange(BEGIN_S, end_s, max(0.5, (end_s - BEGIN_S) / 100))
        noisy = lambda v: float(min(v * rng.normal(1, 0.03), 1.0))  # noqa: E731
        w = self.waiting
        grown = [{} if w is None else {"waiting_s": w * (t - BEGIN_S), "cpu_s": (1 - w) * (t - BEGIN_S)} for t in times]
        fractions = [{name: noisy(value) for name, value in self.host.items()} for _ in times]
        return [HostSample(t_s=float(t), **f, **g) for t, f, g in zip(times, fractions, grown, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    kinds: frozenset[str]
    causes: frozenset[str | None]
    script: Callable[[Rng], Script]

    def record(self, seed: int) -> Record:
        """As the script has it, with what real machines add: readings that are missing, neighbours that do no harm, a
        main process that spins while it waits."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        return _blurred(self.script(rng), rng).record(rng)


def _blurred(script: Script, rng: Rng) -> Script:
    lost = {name for name in script.gauges if rng.random() < 0.2} - set(script.needed)
    gauges = {name: None if name in lost else value for name, value in script.gauges.items()}
    events = [event for event in script.events if event["event"] != "launches" or rng.random() < 0.8]
    told = {name for name in script.host if rng.random() < 0.8} | set(script.needed)
    host = {name: value for name, value in script.host.items() if name in told}
    if rng.random() < 0.3 and "others_fraction" not in script.needed:
        host["others_fraction"] = rng.uniform(0.0, 0.6)
        script = replace(script, waiting=rng.uniform(0.0, 0.08))
    if rng.random() < 0.3:
        host["main_fraction"] = rng.uniform(0.95, 1.0)
    return replace(script, gauges=gauges, events=events, host=host)


def _step(rng: Rng, low: float = 0.02, high: float = 0.5) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _work(step_s: float, share: float, **others: float) -> dict[str, float]:
    """Stages of a step of which `share` is forward, backward and optimizer; others: further shares of the step."""
    parts = {"forward": 0.31, "backward": 0.62, "optimizer": 0.07}
    return {n: p * share * step_s for n, p in parts.items()} | {n: s * step_s for n, s in others.items()}


def _busy(share: float, power: float, rng: Rng) -> dict[str, float | None]:
    gauges: dict[str, float | None] = {"busy_fraction": share, "power_w": 400 * power, "clock_mhz": 1410.0}
    return gauges | ({"bandwidth_fraction": rng.uniform(0.1, 0.5)} if rng.random() < 0.5 else {})


def starved(rng: Rng) -> Script:
    step_s, wait = _step(rng), rng.uniform(0.15, 0.9)
    return Script(
        step_s=step_s,
        ranks=[_work(step_s, 0.97 - wait, wait=wait)],
        gauges=_busy(1 - wait, 0.2 + 0.6 * (1 - wait), rng),
        host={"job_fraction": rng.uniform(0.1, 0.5), "main_fraction": rng.uniform(0.1, 0.9)},
        setup={"workers": int(rng.integers(1, 7))},
    )


def bursts(rng: Rng) -> Script:
    workers = int(rng.integers(2, 9))
    factors = np.tile([1.0] * (workers - 1) + [rng.uniform(5, 20)], STEPS)[:STEPS]
    step_s = _step(rng, 0.02, 0.1)
    script = starved(rng)
    wait = 1 - 0.9 / float(factors.mean())
    return replace(
        script, step_s=step_s, ranks=[_work(step_s, 0.97 - wait, wait=wait)], factors=factors,
        setup={"workers": workers},
    )  # fmt: skip


def network(rng: Rng) -> Script:
    script = starved(rng)
    size = rng.uniform(60e3, 300e3)
    real = 64 / script.step_s
    storage = Storage(filesystem="nfs4", network=True, read_mb_per_s=real * rng.uniform(0.98, 1.1) * size / 1e6)
    return replace(script, machine=replace(HOST, storage=storage), setup={"workers": 8, "original_bytes": size})


def waiting_for_a_value(rng: Rng) -> Script:
    step_s, idle = _step(rng), rng.uniform(0.2, 0.8)
    return Script(
        step_s=step_s,
        ranks=[_work(step_s, 1 - idle, wait=0.005, sync=rng.uniform(idle, 1) * 0.98)],
        gauges=_busy(1 - idle, 0.25 + 0.5 * (1 - idle), rng),
        host={"main_fraction": rng.uniform(0.3, 0.8)},
        events=[{"event": "syncs", "count": 11, "steps": 11}, {"event": "launches", "operations": 400}],
    )


def copying(rng: Rng) -> Script:
    step_s, copy = _step(rng), rng.uniform(0.2, 0.7)
    return Script(
        step_s=step_s, ranks=[_work(step_s, 0.97 - copy, wait=0.01, copy=copy)],
        gauges=_busy(1 - copy, 0.25 + 0.5 * (1 - copy), rng),
    )  # fmt: skip


def launching(rng: Rng) -> Script:
    step_s, busy = _step(rng, 0.005, 0.05), rng.uniform(0.05, 0.5)
    return Script(
        step_s=step_s,
        ranks=[_work(step_s, 0.95, wait=0.01)],
        gauges={"busy_fraction": busy, "power_w": 400 * (0.15 + 0.3 * busy)},
        host={"main_fraction": rng.uniform(0.93, 1.0), "job_fraction": 0.08},
        events=[{"event": "launches", "operations": int(step_s / rng.uniform(5e-6, 13e-6))}],
    )


def at_work(rng: Rng) -> Script:
    step_s = _step(rng)
    wait = rng.uniform(0, 0.03)
    return Script(
        step_s=step_s,
        ranks=[_work(step_s, 0.96 - wait, wait=wait, sync=rng.choice([0.0, 0.9]))],
        gauges=_busy(rng.uniform(0.94, 1.0), rng.uniform(0.65, 1.0), rng),
        host={"main_fraction": rng.uniform(0.2, 1.0), "job_fraction": rng.uniform(0.05, 0.3)},
        events=[{"event": "launches", "operations": int(step_s / rng.uniform(40e-6, 500e-6))}],
        throttle=("power",),
        throttled=rng.uniform(0, 1),
    )


def at_memory(rng: Rng) -> Script:
    script, mfu = at_work(rng), rng.uniform(0.03, 0.25)
    work = {"event": "work", "flops_per_step": mfu * 312e12 * script.step_s, "peak_tflops": 312.0}
    loud = script.gauges | {"bandwidth_fraction": rng.uniform(0.68, 0.95), "power_w": 400 * rng.uniform(0.5, 0.8)}
    return replace(script, gauges=loud, events=[*script.events, work], needed=("bandwidth_fraction",))


def hot(rng: Rng) -> Script:
    script, at, ratio = at_work(rng), int(rng.integers(80, 200)), rng.uniform(1.15, 1.6)
    factors = np.concatenate((np.ones(at), np.full(STEPS - at, ratio)))
    step_s = max(script.step_s, 70.0 / at)
    return replace(
        script,
        step_s=step_s,
        ranks=[_work(step_s, 0.96, wait=0.01)],
        factors=factors,
        throttle=("heat",),
        throttled=rng.uniform(0.4, 1.0),
        gauges=script.gauges | {"clock_mhz": 1410 / ratio, "temperature_c": 87.0},
    )


def reducing(rng: Rng) -> Script:
    step_s, share, count = _step(rng), rng.uniform(0.2, 0.7), int(rng.choice([2, 4, 8]))
    of = [_work(step_s, 0.97 - share, wait=0.01, all_reduce=share) for _ in range(count)]
    return Script(step_s=step_s, ranks=of, gauges=_busy(0.99, 0.2 + 0.6 * (1 - share), rng))


def spinning(rng: Rng) -> Script:
    step_s, count = _step(rng), int(rng.choice([2, 4, 8]))
    gauges = {"busy_fraction": rng.uniform(0.97, 1), "power_w": 400 * rng.uniform(0.15, 0.32),
              "bandwidth_fraction": rng.uniform(0.01, 0.1)}  # fmt: skip
    return Script(step_s=step_s, ranks=[{"wait": 0.005 * step_s} for _ in range(count)], gauges=gauges,
                  needed=("busy_fraction", "power_w"))  # fmt: skip


def one_slow_rank(rng: Rng) -> Script:
    step_s, count = _step(rng), int(rng.choice([4, 8]))
    share, slow = rng.uniform(0.4, 0.78), int(rng.integers(count))
    of = [_work(step_s, share, wait=0.005, all_reduce=0.99 - share) for _ in range(count)]
    of[slow] = _work(step_s, 0.97, wait=0.005, all_reduce=0.01)
    return Script(step_s=step_s, ranks=of, gauges=_busy(0.99, 0.5, rng))


def like_ranks(rng: Rng) -> Script:
    """All wait for a slow link; chance makes one of them work a little longer."""
    step_s, share, count = _step(rng), rng.uniform(0.4, 0.65), int(rng.choice([2, 2, 4]))
    own = share * rng.lognormal(0, 0.08, count)
    of = [_work(step_s, s, wait=0.005, all_reduce=0.99 - s) for s in own]
    return Script(step_s=step_s, ranks=of, gauges=_busy(0.99, rng.uniform(0.3, 0.6), rng))


def slice_of_a_card(rng: Rng) -> Script:
    """A slice has no utilisation and no power of its own."""
    script = at_work(rng)
    return replace(script, gauges={"used_gib": 8.0}, device=replace(A100, slice="1g.10gb", memory_gib=10.0))


def starved_slice(rng: Rng) -> Script:
    return replace(starved(rng), gauges={"used_gib": 8.0}, device=replace(A100, slice="2g.20gb", memory_gib=20.0))


def spilling(rng: Rng) -> Script:
    script, size = at_work(rng), float(rng.choice([8.0, 12.0, 16.0]))
    peak = size * rng.uniform(1.05, 2.0) * 2**30
    memory = {"event": "memory", "index": 0, "allocated": peak, "reserved": peak * 1.1, "total": size * 2**30}
    return replace(script, device=replace(A100, memory_gib=size), events=[*script.events, memory])


def updating(rng: Rng) -> Script:
    step_s, share = _step(rng), rng.uniform(0.35, 0.8)
    stages = {"forward": 0.3 * (0.95 - share), "backward": 0.7 * (0.95 - share), "optimizer": share, "wait": 0.01}
    return Script(
        step_s=step_s,
        ranks=[{n: s * step_s for n, s in stages.items()}],
        gauges=_busy(0.97, rng.uniform(0.5, 0.8), rng),
    )


def unseen(rng: Rng) -> Script:
    """Marks without stages, a device that tells nothing."""
    return Script(step_s=_step(rng), ranks=[{}], gauges={"busy_fraction": None, "power_w": None})


def only_use(rng: Rng) -> Script:
    """Utilisation alone must decide nothing."""
    return Script(step_s=_step(rng), ranks=[{}], gauges={"busy_fraction": rng.uniform(0.3, 1.0)})


def _on_cpu(rng: Rng, cpus: int, **host: float) -> Script:
    """Training on the CPU itself."""
    step_s = _step(rng)
    return Script(
        step_s=step_s, ranks=[_work(step_s, 0.96, wait=0.01)], device=CPU, host=host, needed=tuple(host),
        machine=replace(HOST, cpus=Cpus(host=cpus, allowed=float(cpus))),
        events=[{"event": "launches", "operations": max(int(step_s / rng.uniform(100e-6, 2e-3)), 1)}],
    )  # fmt: skip


def cpu_at_work(rng: Rng) -> Script:
    return _on_cpu(rng, int(rng.choice([2, 4, 8])), job_fraction=rng.uniform(0.85, 1.0))


def idle_cores(rng: Rng) -> Script:
    cpus = int(rng.choice([2, 4, 8]))
    threads = int(rng.integers(1, cpus // 2 + 1))
    used = rng.uniform(0.95, 1.1) * threads / cpus
    others = rng.uniform(0.0, 0.5 * (1 - used))  # the others leave some of the cores idle
    script = _on_cpu(rng, cpus, job_fraction=used, others_fraction=others)
    return replace(script, setup={"threads": threads, "workers": 0})


def beside_a_neighbour(rng: Rng) -> Script:
    others = rng.uniform(0.35, 0.8)
    script = _on_cpu(rng, int(rng.choice([2, 4, 8])), job_fraction=1 - others, others_fraction=others)
    return replace(script, waiting=rng.uniform(0.25, 0.7))


def loading_and_training(rng: Rng) -> Script:
    """Loader and training share all cores: neither can have more of them."""
    script, wait = _on_cpu(rng, int(rng.choice([2, 4, 8])), job_fraction=rng.uniform(0.95, 1.0)), rng.uniform(0.2, 0.6)
    workers = int(rng.integers(0, 3))
    return replace(script, ranks=[_work(script.step_s, 0.97 - wait, wait=wait)], setup={"workers": workers})


def apple(rng: Rng) -> Script:
    device = Device(index=0, name="M2", vendor="Apple", backend="mps", unified=True)
    step_s, copy = _step(rng), rng.uniform(0.45, 0.85)
    return Script(step_s=step_s, ranks=[_work(step_s, 0.97 - copy, wait=0.01, copy=copy)], device=device)


def _case(name: str, kinds: str, causes: str | None, script: Callable[[Rng], Script]) -> Case:
    words = frozenset({None}) if causes is None else frozenset(causes.split("|"))
    return Case(name=name, kinds=frozenset(kinds.split("|")), causes=words, script=script)


CASES: tuple[Case, ...] = (
    _case("starved by few workers", "input-bound", "workers|loader", starved),
    _case("bursts of the workers", "input-bound", "bursts", bursts),
    _case("network storage", "storage-bound", "network storage", network),
    _case("a value read in every step", "host-bound", "sync", waiting_for_a_value),
    _case("copies", "copy-bound", "copies", copying),
    _case("launches", "host-bound", "launches", launching),
    _case("healthy", "compute-bound", "device", at_work),
    _case("memory bandwidth", "memory-bound", "device", at_memory),
    _case("heat", "throttled", "heat", hot),
    _case("gradients", "communication-bound", "collective", reducing),
    _case("busy at low power", "communication-bound", "collective", spinning),
    _case("one slow rank", "communication-bound", "straggler", one_slow_rank),
    _case("like ranks under noise", "communication-bound", "collective", like_ranks),
    _case("healthy slice", "compute-bound", "device", slice_of_a_card),
    _case("starved slice", "input-bound", "workers|loader", starved_slice),
    _case("spilling", "memory-bound", "spill", spilling),
    _case("heavy optimizer", "compute-bound", "optimizer", updating),
    _case("nothing seen", "unknown", None, unseen),
    _case("utilisation alone", "unknown", None, only_use),
    _case("a CPU at work", "compute-bound", "device", cpu_at_work),
    _case("idle cores", "compute-bound", "threads", idle_cores),
    _case("a neighbour on the CPU", "host-bound", "neighbour", beside_a_neighbour),
    _case("loading and training on full CPUs", "compute-bound", "device", loading_and_training),
    _case("fallback on an Apple GPU", "copy-bound", "fallback", apple),
)


def outcome(case: Case, judgement: Judgement) -> str:
    """right, unknown or wrong."""
    if judgement.kind in case.kinds and judgement.cause in case.causes:
        return "right"
    return "unknown" if judgement.kind == "unknown" else "wrong"
