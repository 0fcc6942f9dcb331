"""The predictor asked about settings, one at a time: what `accuracy --against` scores.

On one device a setting is asked as it stands, counted or not. On several a counted network becomes a workload and a
platform, every reading a run of one's own, and the same predictor answers that `rank` asks; of a network that nobody
counted n devices do what one does, n times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot

from gpuwise.errors import Message
from gpuwise.estimate import Estimate, Interval
from gpuwise.model import (
    Accelerator,
    Assumptions,
    BenchmarkResult,
    Measurement,
    Platform,
    Prediction,
    Source,
    Workload,
)
from gpuwise.predict import Evidence, predictor
from gpuwise.predict.answer import Model, Told, answer
from gpuwise.predict.cells import canonical
from gpuwise.predict.evidence import SHARED_RUN_SD
from gpuwise.predict.roofline import Work
from gpuwise.predict.rows import readings
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
        """In order. Settings of one network on one device are answered together."""
        several = [place for place, setting in enumerate(asked) if _shared(setting, given)]
        found = dict(zip(several, self._of_several([asked[place] for place in several], given), strict=True))
        groups: dict[str, list[int]] = defaultdict(list)
        for place, setting in enumerate(asked):
            if place not in found:
                groups[canonical(setting.workload)].append(place)
        for name, places in groups.items():
            found |= zip(places, self._of_each(name, [asked[place] for place in places], given), strict=True)
        return [found[place] for place in range(len(asked))]

    def _of_each(self, name: str, asked: Sequence[Setting], given: Sequence[Reading]) -> Iterator[Estimate | Message]:
        """Settings of one network, by the rate of one device; several that nobody counted share it alike."""
        own = [_one_of(r) for r in given if canonical(r.setting.workload) == name]
        seen, others = self.seen.get(name, []), self.others.get(name, [])
        counts = {r.setting.accelerators for r in given}
        if not (own or seen or others) and all(setting.work is None for setting in asked):
            yield from (_undescribed(setting) for setting in asked)
            return
        alone = [replace(setting, accelerators=1) for setting in asked]
        for setting, told in zip(asked, answer(self.bundle.model, alone, seen, [*others, *own]), strict=True):
            if not isinstance(told, Told) or setting.accelerators == 1:
                yield told.rate_per_s if isinstance(told, Told) else told
                continue
            sd = ALIKE_SD if setting.accelerators in counts else UNCOUNTED_SD
            yield (told.rate_per_s * setting.accelerators).widened(f"scaling ×{setting.accelerators}", sd)

    def _of_several(self, asked: Sequence[Setting], given: Sequence[Reading]) -> Iterator[Estimate | Message]:
        """Counted networks where devices share a step, as `rank` answers."""
        if not asked:
            return
        tables, runs = self.bundle, [_run(reading) for reading in given if reading.setting.mode == "train"]
        evidence = Evidence.of(tables.rows, tables.accelerators, tables.model, measurements=runs)
        predict = predictor(evidence, tables.assumptions)
        for setting in asked:
            assert setting.work is not None
            platform = Platform(variants=(setting.accelerator,), per_node=setting.accelerators)
            (found,) = predict(_workload(setting, setting.work), [platform])
            yield found.throughput_per_s if isinstance(found, Prediction) else found.reason


def _undescribed(setting: Setting) -> Message:
    return Message(
        "nothing says what {name} is: state gmacs, activations_m and parameters_m, or give a measured row of it",
        name=setting.workload,
    )


ALIKE_SD, UNCOUNTED_SD = 0.05, 0.15
"""Log sd of n devices against n times one, of a network that nobody counted: measured on as many, and not."""


def _one_of(reading: Reading) -> Reading:
    """One device of a run on several, as if nothing was lost between them; the loss is an error of its own."""
    n = reading.setting.accelerators
    if n == 1:
        return reading
    alone = replace(reading.setting, accelerators=1)
    return Reading(setting=alone, samples_per_s=reading.samples_per_s / n, log_sd=hypot(reading.log_sd, SHARED_RUN_SD))


def _shared(setting: Setting, given: Sequence[Reading]) -> bool:
    """Do several devices share a training step of a counted network, in what is asked or in what was measured?"""
    several = setting.accelerators > 1 or any(reading.setting.accelerators > 1 for reading in given)
    return several and setting.mode == "train" and setting.work is not None


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
