"""The predictor asked about settings, one at a time: what `accuracy --against` scores.

A setting is asked on one device as it stands, counted or not; several devices share it by `scaling`, or, where nobody
counted the network, do n times what one does. Whether it fits into memory is not asked: the table says that it ran.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log2

from gpuwise.errors import Message
from gpuwise.estimate import Estimate, Interval
from gpuwise.model import (
    Accelerator,
    Assumptions,
    BenchmarkResult,
    Measurement,
    Platform,
    Source,
    Workload,
)
from gpuwise.predict import Evidence
from gpuwise.predict.answer import Model, Told, answer, refusal
from gpuwise.predict.cells import canonical
from gpuwise.predict.roofline import Work
from gpuwise.predict.rows import readings
from gpuwise.predict.scaling import Losses, link_class, scaling
from gpuwise.predict.setting import Reading, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The tables at hand, and the shipped model. inference: rates of forward passes."""

    rows: Sequence[BenchmarkResult]
    inference: Sequence[BenchmarkResult]
    accelerators: Mapping[str, Accelerator]
    counts: Mapping[str, Work]
    assumptions: Assumptions
    model: Model


class Asker:
    """Predicts settings from readings, the tables and the model; an `against.Answer`."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.seen, self.others = defaultdict[str, list[Reading]](list), defaultdict[str, list[Reading]](list)
        alone = (row for row in (*bundle.rows, *bundle.inference) if row.accelerators == 1)
        for reading in readings(alone, bundle.accelerators, bundle.counts):
            known = self.seen if bundle.model.posterior.has_seen(reading.setting) else self.others
            known[canonical(reading.setting.workload)].append(reading)

    def __call__(self, asked: Sequence[Setting], given: Sequence[Reading]) -> list[Estimate | Message]:
        """In order. Settings of one network are answered together."""
        groups: dict[str, list[int]] = defaultdict(list)
        for place, setting in enumerate(asked):
            groups[canonical(setting.workload)].append(place)
        found: dict[int, Estimate | Message] = {}
        for name, places in groups.items():
            own = [r for r in given if canonical(r.setting.workload) == name]
            found |= zip(places, self._of_each(name, [asked[place] for place in places], own), strict=True)
        return [found[place] for place in range(len(asked))]

    def _of_each(self, name: str, asked: Sequence[Setting], own: Sequence[Reading]) -> Iterator[Estimate | Message]:
        """Settings of one network, each by the rate of one device as it is stated."""
        seen, others = self.seen.get(name, []), self.others.get(name, [])
        if not (own or seen or others) and all(setting.work is None for setting in asked):
            yield from (_undescribed(setting) for setting in asked)
            return
        shared = self._sharing(asked, own)
        alone = [replace(setting, accelerators=1) for setting in asked]
        readings = [*others, *(shared.one_of(r) for r in own if refusal(r.setting) is None)]
        for setting, told in zip(asked, answer(self.bundle.model, alone, seen, readings), strict=True):
            yield shared.all_of(setting, told.rate_per_s) if isinstance(told, Told) else told

    def _sharing(self, asked: Sequence[Setting], own: Sequence[Reading]) -> _Sharing:
        counted = next((s for s in (*asked, *(r.setting for r in own)) if s.work is not None), None)
        counts = frozenset(r.setting.accelerators for r in own)
        alone = all(s.accelerators == 1 for s in (*asked, *(r.setting for r in own)))
        if alone or counted is None or counted.work is None:
            return _Sharing(None, None, counts)
        runs = [_run(reading) for reading in own if reading.setting.mode == "train"]
        job, tables = _workload(counted, counted.work), self.bundle
        return _Sharing(job, Losses.of(job, Evidence.of(tables.rows, tables.accelerators, tables.model, runs)), counts)


@dataclass(frozen=True, slots=True)
class _Sharing:
    """How several devices share one network. job, losses: None where nobody counted it. measured: on how many devices
    the person measured it."""

    job: Workload | None
    losses: Losses | None
    measured: frozenset[int]

    def all_of(self, setting: Setting, one: Estimate) -> Estimate:
        """From one device to all."""
        n = setting.accelerators
        if n == 1:
            return one
        efficiency, sd = self._kept(setting, one.value)
        return (one * (n * efficiency)).widened(f"scaling ×{n} {setting.accelerator.id}", sd)

    def one_of(self, reading: Reading) -> Reading:
        """One device of a run on several, as it would be alone; what was lost between them has an error of its own."""
        n = reading.setting.accelerators
        if n == 1:
            return reading
        efficiency, sd = self._kept(reading.setting, reading.samples_per_s / n)
        return replace(
            reading,
            setting=replace(reading.setting, accelerators=1),
            samples_per_s=reading.samples_per_s / n / efficiency,
            log_sd=hypot(reading.log_sd, sd),
        )

    def _kept(self, setting: Setting, one_per_s: float) -> tuple[float, float]:
        """What n devices keep of n times one, and its log sd; forward passes do not wait for each other."""
        if setting.mode == "infer":
            return 1.0, 0.0
        platform = Platform(variants=(setting.accelerator,), per_node=setting.accelerators)
        if self.job is None or self.losses is None:
            lost, sd = USUAL_LOSS[link_class(setting.accelerator, platform)]
            doublings, known = log2(setting.accelerators), setting.accelerators in self.measured
            return exp(-lost * doublings), ALIKE_SD if known else sd * doublings
        job = replace(self.job, batch_per_accelerator=setting.batch, precision=setting.precision)
        found = scaling(job, setting.accelerator, platform, one_per_s, self.losses)
        return found.efficiency, found.sd


def _undescribed(setting: Setting) -> Message:
    return Message(
        "nothing says what {name} is: state gmacs, activations_m and parameters_m, or give a measured row of it",
        name=setting.workload,
    )


USUAL_LOSS = {
    "NVLink": (0.013, 0.03), "PCIe": (0.025, 0.06), "PCIe, bridge": (0.04, 0.07), "PCIe, consumer": (0.10, 0.20),
    "PCIe, consumer, bridge": (0.10, 0.15), "network": (0.3, 0.4),
}  # fmt: skip
"""Link -> what a network that nobody counted loses for each doubling of devices, and its log sd: medians and spread of
the bundled rows on several devices; between machines assumed."""

ALIKE_SD = 0.05
"""Where the person measured it on as many. Assumed."""


def _workload(setting: Setting, work: Work) -> Workload:
    return Workload(
        name=setting.workload,
        title=setting.workload,
        family=setting.family or "",
        model=setting.workload,
        sample="sample",
        gmacs=work.gmacs,
        activations_m=work.activations_m,
        parameters_m=work.parameters_m,
        stored_m=work.stored_m,
        launches=work.launches,
        depthwise_gmacs=work.depthwise_gmacs,
        operations=int(work.operations),
        state_bytes_per_parameter=0.0,
        batch_per_accelerator=setting.batch,
        precision=setting.precision,
        memory_format=setting.memory_format if setting.memory_format in ("nchw", "nhwc") else None,  # type: ignore[arg-type]
        samples=1,
        epochs=1.0,
        measured_as=(setting.workload,),
        source=Source(kind="assumed", ref="a person's table"),
    )


def _run(reading: Reading) -> Measurement:
    setting, rate = reading.setting, reading.samples_per_s
    return Measurement(
        created_utc="",
        workload=setting.workload,
        device="gpu",
        accelerator=setting.accelerator.id,
        accelerators=setting.accelerators,
        precision=setting.precision,
        batch_per_accelerator=setting.batch,
        samples_per_s=Interval(value=rate, low=rate, high=rate),
        memory_format=setting.memory_format,
    )
