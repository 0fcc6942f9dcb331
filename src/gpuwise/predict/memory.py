"""Does the job fit? What a training step holds in its three phases, against what a device can give.

    forward    weights + optimizer states + activations
    backward   the same + the first gradients
    optimizer  weights + gradients + optimizer states + what the optimizer makes for itself
    need       the largest of these + context + workspace

Weights, gradients and states are exact. Activations are counted, or what a run took says what they are. Three figures
of the need: the least (a plain bound: nothing but what must be held), the usual, and what it rarely exceeds. Only a
job whose least does not fit is excluded; recomputed activations, a loss that is cut in pieces, or a compiler can do
with less. Held against runs of 2020 and 2021 that filled their cards: `memory_split`, tests/predict/test_memory.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from gpuwise.errors import Message
from gpuwise.estimate import Estimate, Interval
from gpuwise.memory import MemoryFit, MemoryReading
from gpuwise.model import Accelerator, Assumptions, Platform, Prediction, Refusal, Workload
from gpuwise.predict.memory_line import ALLOCATED_SD, DRIVER_SD, Fixed, line
from gpuwise.units import Fraction, Gib

Phase = Literal["forward", "backward", "optimizer"]
Verdict = Literal["fits", "doubtful", "does_not_fit"]
Readings = Mapping[str, Sequence[MemoryReading]]
"""Workload of memory.csv -> what a driver saw its runs take, context and caches included."""
Predict = Callable[[Workload, Sequence[Platform]], Sequence[Prediction | Refusal]]

MARGIN: Fraction = 0.92
"""Of usable memory: fragmentation, and batches larger than the usual one, take the rest (DESIGN §5)."""

CONTEXT_GIB: Gib = 0.5
"""CUDA context and libraries, the least that is seen (0.5 to 1.5 GiB by version and architecture)."""
USUAL_CONTEXT_GIB: Gib = 0.75
WORKSPACE_GIB: Gib = 0.25
"""With the context: 1.2 GiB beside the states is the median over memory.csv (0.6 to 3.2 GiB)."""
MOST_BESIDE_GIB: Gib = 2.0
"""Context and workspace, rarely exceeded."""

KEPT_PER_ACTIVATION = 2.0
"""Elements kept for each activation written, where nobody counted: ResNets 1.9 to 2.2, ViT 1.6, VGG 1.4."""

BYTES_FULL, BYTES_HALF, BYTES_MIXED_TRANSFORMER = 4.0, 2.0, 2.5
"""Of an element held. Mixed precision holds in fp32 what normalisation, softmax and loss need: counted with autocast on
torch's fake CUDA tensors, 2.7 bytes in GPT-2, 2.5 in BERT, 2.0 in SSD and ResNet-101."""

USUAL_OVER_COUNTED: Mapping[bool, float] = {False: 1.2, True: 1.1}
MOST_OVER_COUNTED: Mapping[bool, float] = {False: 1.4, True: 2.2}
"""Activations in use over those counted, by whether the network attends. Rounding, fragmentation and workspaces: 1.15
to 1.45 in ResNet-50 and SSD of memory.csv. Attention that is not fused keeps its scores: BERT there, 1.9 to 2.4."""

USUAL_OVER_ALLOCATED, MOST_OVER_ALLOCATED = 1.06, 1.12
"""The caching allocator's rounding and fragmentation, on what the framework allocated (5 to 10 %)."""

FIRST_GRADIENTS: Fraction = 0.3
"""Of all gradients, those that are there when most is held in the backward pass: counted on fake tensors, 0.05 to 0.6
(VGG 0.9, whose parameters come last)."""

HALF_COPY_BYTES = 2.0
"""Per parameter, in mixed precision: autograd holds the half copy of each weight."""
ADAM_STATE_BYTES = 8.0
"""From so many bytes of states a parameter on, the update makes a temporary copy of the gradients (torch, foreach)."""

MIXED = ("amp", "amp_bf16")
FULL = ("fp32", "tf32")
ATTENDING = ("transformer", "hybrid")
GIB = 2.0**30
LARGEST_BATCH = 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Bytes of one device by what they are. buckets: gradients once more, as data-parallel training sends them."""

    weights: float
    copies: float
    gradients: float
    states: float
    activations: float
    buckets: float = 0.0

    def phases(self) -> dict[Phase, float]:
        """Bytes in the worst moment of each phase."""
        resident = self.weights + self.states + self.buckets
        forward = resident + self.copies + self.activations
        return {
            "forward": forward,
            "backward": forward + FIRST_GRADIENTS * self.gradients,
            "optimizer": resident + self.gradients + self.update,
        }

    @property
    def update(self) -> float:
        """What the optimizer makes for itself."""
        adam = self.states >= self.gradients * ADAM_STATE_BYTES / BYTES_FULL * 0.99
        return self.gradients if adam else 0.0

    @property
    def least(self) -> float:
        """What must be held at once: all activations, or all gradients."""
        kept = self.weights + self.states
        return kept + max(self.copies + self.activations, self.gradients)

    def parts(self, phase: Phase) -> dict[str, float]:
        """What is held in a phase, by name."""
        passing = phase != "optimizer"
        there = {"forward": 0.0, "backward": FIRST_GRADIENTS, "optimizer": 1.0}[phase]
        return {
            "weights": self.weights + (self.copies if passing else 0.0),
            "gradients": there * self.gradients,
            "gradient buckets": self.buckets,
            "optimizer states": self.states,
            "activations": self.activations if passing else 0.0,
            "workspace": 0.0 if passing else self.update,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one device must hold, whatever device it is; see `MemoryFit`."""

    gib: Interval
    phase: Phase
    parts_gib: Mapping[str, Gib]
    basis: Literal["measured", "published", "predicted"]


def held(workload: Workload, accelerators: int = 1) -> Held:
    """By counts. Exact but for the activations."""
    if workload.mode == "infer":
        return _held_forward(workload)
    parameters, each = 1e6 * workload.parameters_m, BYTES_FULL if workload.precision in (*FULL, *MIXED) else BYTES_HALF
    each = min(each, workload.state_bytes_per_parameter / 2)
    kept_m = KEPT_PER_ACTIVATION * workload.activations_m if workload.stored_m is None else workload.stored_m
    return Held(
        weights=parameters * each,
        copies=parameters * HALF_COPY_BYTES if workload.precision in MIXED else 0.0,
        gradients=parameters * each,
        states=parameters * (workload.state_bytes_per_parameter - 2 * each),
        activations=workload.batch_per_accelerator * 1e6 * kept_m * _bytes(workload),
        buckets=parameters * each if accelerators > 1 else 0.0,
    )


ALIVE: Fraction = 0.1
"""Of all elements that a forward pass writes, those that are needed at once when nothing is kept: an assumption."""


def _held_forward(workload: Workload) -> Held:
    """Weights, and the few layers that are at work."""
    parameters, half = 1e6 * workload.parameters_m, workload.precision not in (*FULL, *MIXED)
    alive = ALIVE * workload.batch_per_accelerator * 1e6 * workload.activations_m
    return Held(
        weights=parameters * (BYTES_HALF if half else BYTES_FULL),
        copies=parameters * HALF_COPY_BYTES if workload.precision in MIXED else 0.0,
        gradients=0.0,
        states=0.0,
        activations=alive * _bytes(workload),
    )


def need_gib(workload: Workload) -> Gib:
    """Memory that one device must hold at least, in GiB. What a run was seen to allocate is better than any bound."""
    return need(workload).gib.low


def need(workload: Workload, accelerators: int = 1, published: Readings = MappingProxyType({})) -> Need:
    """What one device must hold: by the person's own runs, else by published rows of the very job, else by counts."""
    counted = held(workload, accelerators)
    own = _own(workload)
    if own is not None:
        return _measured(counted, own)
    used = _published(workload, counted, published)
    return _counted(workload, counted) if used is None else _as_published(counted, used)


def fit(
    workload: Workload,
    accelerator: Accelerator,
    assumptions: Assumptions,
    *,
    accelerators: int = 1,
    published: Readings = MappingProxyType({}),
) -> MemoryFit:
    """Verdict, need and parts on one of `accelerators` equal devices. Memory is each device's own."""
    return _judged(need(workload, accelerators, published), usable_gib(accelerator, assumptions))


def verdict(need_gib: Interval, usable_gib: Gib) -> Verdict:
    """See `MemoryFit`."""
    if need_gib.low > usable_gib:
        return "does_not_fit"
    return "fits" if need_gib.value <= MARGIN * usable_gib and need_gib.high <= usable_gib else "doubtful"


def usable_gib(accelerator: Accelerator, assumptions: Assumptions) -> Gib:
    """What a driver gives, in GiB: reported where a source says so, else the assumed share of the nominal size."""
    return accelerator.usable_memory_gib or accelerator.memory_gib * assumptions["usable_memory_fraction"].value


def smallest(accelerators: Iterable[Accelerator], assumptions: Assumptions) -> Accelerator:
    """The one that bounds a machine of several, or an offer that does not say which of them it is."""
    return min(accelerators, key=lambda accelerator: usable_gib(accelerator, assumptions))


def does_not_fit(
    workload: Workload, accelerator: Accelerator, assumptions: Assumptions, least_gib: Gib | None = None
) -> Message | None:
    """Why the job cannot run on this device, or None. least_gib: `need_gib`, where it is known already."""
    least, usable = need_gib(workload) if least_gib is None else least_gib, usable_gib(accelerator, assumptions)
    if least <= usable:
        return None
    return Message(
        "needs at least {need:.1f} GiB at batch {batch}, {name} has {usable:.1f} GiB usable",
        need=least,
        batch=workload.batch_per_accelerator,
        name=accelerator.name,
        usable=usable,
    )


def largest_batch(
    workload: Workload,
    accelerator: Accelerator,
    assumptions: Assumptions,
    *,
    accelerators: int = 1,
    published: Readings = MappingProxyType({}),
) -> int:
    """The largest batch per device that fits without doubt; 0: not even one sample."""
    usable = usable_gib(accelerator, assumptions)

    def fits(batch: int) -> bool:
        return verdict(need(at_batch(workload, batch), accelerators, published).gib, usable) == "fits"

    low, high = 0, 1
    while high <= LARGEST_BATCH and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def at_batch(workload: Workload, batch: int) -> Workload:
    """The job at another batch; what was seen at its own is then one reading of several."""
    if batch == workload.batch_per_accelerator:
        return workload
    seen = () if workload.peak_memory_gib is None else (_reading(workload, workload.peak_memory_gib),)
    return replace(workload, batch_per_accelerator=batch, peak_memory_gib=None, memory=(*workload.memory, *seen))


def as_run(workload: Workload) -> Workload:
    """At the batch of the newest run of the person's own, where the workload's is only assumed."""
    if not workload.memory or "batch_per_accelerator" not in workload.assumed:
        return workload
    return at_batch(workload, workload.memory[-1].batch_per_accelerator)


def with_memory(predict: Predict, assumptions: Assumptions, published: Readings = MappingProxyType({})) -> Predict:
    """The same predictions, each with whether the job fits; of several variants the smallest bounds it."""
    needs: dict[tuple[str, bool], tuple[Workload, Need]] = {}

    def need_of(workload: Workload, several: bool) -> Need:
        key = (workload.name, several)
        if key not in needs or needs[key][0] != workload:
            needs[key] = (workload, need(as_run(workload), 2 if several else 1, published))
        return needs[key][1]

    def answer(workload: Workload, platforms: Sequence[Platform]) -> list[Prediction | Refusal]:
        return [
            replace(said, memory=_on(platform, need_of(workload, platform.accelerators > 1), assumptions))
            for platform, said in zip(platforms, predict(workload, platforms), strict=True)
        ]

    return answer


def only_fitting(predict: Predict) -> Predict:
    """The same, where memory is beyond doubt; else a refusal."""

    def answer(workload: Workload, platforms: Sequence[Platform]) -> list[Prediction | Refusal]:
        return [_if_fitting(said) for said in predict(workload, platforms)]

    return answer


def _if_fitting(said: Prediction | Refusal) -> Prediction | Refusal:
    if isinstance(said, Refusal) or said.memory is None or said.memory.verdict == "fits":
        return said
    return Refusal(
        workload=said.workload,
        platform=said.platform,
        accelerators=said.accelerators,
        rule="does_not_fit",
        reason=Message(
            "may need {need:.1f} GiB of {usable:.1f} GiB usable",
            need=said.memory.need_gib.high,
            usable=said.memory.usable_gib,
        ),
        memory=said.memory,
    )


def _on(platform: Platform, needed: Need, assumptions: Assumptions) -> MemoryFit:
    """By the smallest of the variants; in doubt where it depends on which one it is."""
    sizes = [usable_gib(variant, assumptions) for variant in platform.variants]
    small = _judged(needed, min(sizes))
    either = small.verdict == "does_not_fit" and verdict(needed.gib, max(sizes)) != "does_not_fit"
    return replace(small, verdict="doubtful") if either else small


def _judged(needed: Need, usable: Gib) -> MemoryFit:
    return MemoryFit(
        need_gib=needed.gib,
        usable_gib=usable,
        verdict=verdict(needed.gib, usable),
        phase=needed.phase,
        parts_gib=needed.parts_gib,
        basis=needed.basis,
    )


def _counted(workload: Workload, counted: Held) -> Need:
    """Nothing was measured: usual and most are the counts with what runs are seen to take above them."""
    attends = workload.family in ATTENDING
    usual = replace(counted, activations=counted.activations * USUAL_OVER_COUNTED[attends])
    most = replace(counted, activations=counted.activations * MOST_OVER_COUNTED[attends])
    ends = Interval(
        low=CONTEXT_GIB + counted.least / GIB,
        value=USUAL_CONTEXT_GIB + WORKSPACE_GIB + _peak(usual) / GIB,
        high=MOST_BESIDE_GIB + _peak(most) / GIB,
    )
    return _needed(usual, ends, "predicted")


def _measured(counted: Held, allocated: Estimate) -> Need:
    """The activations are what the framework allocated beside weights, states and first gradients."""
    inside = allocated.interval()
    ends = Interval(
        low=CONTEXT_GIB + inside.low,
        value=USUAL_CONTEXT_GIB + (inside.value * GIB * USUAL_OVER_ALLOCATED + counted.buckets) / GIB,
        high=1.5 + (inside.high * GIB * MOST_OVER_ALLOCATED + counted.buckets) / GIB,
    )
    basis: Literal["measured", "predicted"] = "predicted" if allocated.basis == "predicted" else "measured"
    return _needed(_beside(counted, inside.value * GIB + counted.buckets), ends, basis)


def _as_published(counted: Held, used: Estimate) -> Need:
    """What a driver saw in use under older software; a bound of the counts stays a bound."""
    inside = used.interval()
    least = min(inside.low, CONTEXT_GIB + counted.least / GIB)
    in_use = inside.value * GIB - (USUAL_CONTEXT_GIB + WORKSPACE_GIB) * GIB
    return _needed(_beside(counted, in_use), Interval(low=least, value=inside.value, high=inside.high), "published")


def _needed(usual: Held, ends: Interval, basis: Literal["measured", "published", "predicted"]) -> Need:
    """Parts in the worst phase. Context and workspace take what the phase leaves of the need."""
    phases = usual.phases()
    phase = max(phases, key=lambda name: phases[name])
    parts = usual.parts(phase)
    beside = max(ends.value * GIB - phases[phase] - USUAL_CONTEXT_GIB * GIB, 0.0)
    parts |= {"workspace": parts["workspace"] + beside, "context": USUAL_CONTEXT_GIB * GIB}
    named = {name: size / GIB for name, size in parts.items() if size}
    return Need(gib=ends, phase=phase, parts_gib=named, basis=basis)


def _beside(counted: Held, total: float) -> Held:
    """The same states with the activations that make `total` bytes of a step."""
    rest = replace(counted, activations=0.0).phases()["backward"]
    return replace(counted, activations=max(total - rest, 0.0))


def _peak(parts: Held) -> float:
    return max(parts.phases().values())


def _own(workload: Workload) -> Estimate | None:
    """What the framework allocates, in GiB, by the person's own runs."""
    if workload.peak_memory_gib is not None:
        counted = "peak_memory_gib" in workload.reasons  # on fake tensors, and not in a run
        return Estimate(value=workload.peak_memory_gib, basis="predicted" if counted else "measured")
    seen = [r for r in workload.memory if _alike(r, workload)]
    if not seen:
        return None
    if same := [r.used_gib for r in seen if r.batch_per_accelerator == workload.batch_per_accelerator]:
        return Estimate(value=max(same), basis="measured")
    states = replace(held(workload), activations=0.0).phases()["backward"] / GIB
    points = [(float(r.batch_per_accelerator), r.used_gib) for r in seen]
    found = line(points, Fixed(gib=states, sd_gib=0.1 + 0.2 * states), ALLOCATED_SD).at(workload.batch_per_accelerator)
    return replace(found, basis="measured")


def _published(workload: Workload, counted: Held, published: Readings) -> Estimate | None:
    """What a driver saw in use, by measured rows of the very job; under the newest software that has rows."""
    names = (workload.name, *workload.measured_as)
    seen = [r for name in names for r in published.get(name, ()) if _alike(r, workload)]
    if not seen:
        return None
    newest = max(_version(r) for r in seen)
    points = [(float(r.batch_per_accelerator), r.used_gib) for r in seen if _version(r) == newest]
    states = replace(counted, activations=0.0).phases()["backward"] / GIB
    fixed = Fixed(gib=USUAL_CONTEXT_GIB + WORKSPACE_GIB + states, sd_gib=1.0)
    return line(points, fixed, DRIVER_SD).at(workload.batch_per_accelerator)


def _version(reading: MemoryReading) -> tuple[int, ...]:
    """Of the framework, to be compared."""
    return tuple(int(part) for part in _NUMBER.findall(reading.software or ""))


_NUMBER = re.compile(r"\d+")


def _alike(reading: MemoryReading, workload: Workload) -> bool:
    """An element takes the same bytes."""
    kinds = (FULL, MIXED)
    return reading.precision == workload.precision or any(
        reading.precision in kind and workload.precision in kind for kind in kinds
    )


def _reading(workload: Workload, allocated_gib: Gib) -> MemoryReading:
    return MemoryReading(
        batch_per_accelerator=workload.batch_per_accelerator,
        precision=workload.precision,
        used_gib=allocated_gib,
    )


def _bytes(workload: Workload) -> float:
    if workload.precision in FULL:
        return BYTES_FULL
    mixed = workload.precision in MIXED and workload.family in ATTENDING
    return BYTES_MIXED_TRANSFORMER if mixed else BYTES_HALF
