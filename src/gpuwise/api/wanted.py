"""How much work is wanted, however it was said: GPU-hours, a record, a job that comes again, or a bill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwise.api.world import workload_of
from gpuwise.errors import InvalidInput, Message
from gpuwise.estimate import Z80
from gpuwise.model import Accelerator, Assumption, Platform, Refusal
from gpuwise.names import Index, resolve_request
from gpuwise.own.demand import Shape
from gpuwise.own.figures import stated
from gpuwise.own.record import Fitted, fit, going_on
from gpuwise.predict import Evidence, needed, predictor
from gpuwise.predict.memory import with_memory
from gpuwise.request import DescribeRequest, OwnFilters, OwnRequest
from gpuwise.sources.demand import Record, read_record
from gpuwise.store import package
from gpuwise.units import DAYS_PER_MONTH, HOURS_PER_WEEK, SECONDS_PER_DAY, SECONDS_PER_HOUR

Floats = NDArray[np.float64]
LEVEL, GROWTH = "demand_gpu_h_per_month", "demand_growth_per_year"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """level: GPU-hours of an average month, now. growth: a year, None where nobody said it and no record shows it.

    shape, weeks: of a record; teams: GPUs of each at each of its steps, where it is of several. gpu_h_per_run: of one
    training, where a job stands behind it. told: how it was said; notes: what must be known of it."""

    level: Assumption
    growth: Assumption | None
    told: Message
    shape: Shape | None = None
    weeks: tuple[float, ...] = ()
    teams: Mapping[str, Floats] = field(default_factory=dict)
    gpu_h_per_run: float | None = None
    notes: tuple[Message, ...] = ()


def accelerator_of(request: OwnFilters) -> Accelerator:
    """The one accelerator that the demand is counted in. InvalidInput where none or several are named."""
    known = package.accelerators()
    index = Index(known.values())
    if not request.gpu:
        raise InvalidInput(
            Message("--gpu is missing: GPU-hours of which GPU are wanted?"),
            Message("Name one, such as --gpu H100-SXM."),
        )
    ids = sorted({name for text in request.gpu for name in resolve_request(index, text).ids})
    if len(ids) == 1:
        return known[ids[0]]
    if not ids:
        raise InvalidInput(
            Message("--gpu {text} names no GPU.", text=", ".join(request.gpu)),
            Message("Name one, such as --gpu H100-SXM."),
        )
    raise InvalidInput(
        Message("--gpu {text} may be {names}: GPU-hours of each are worth and cost something else.",
                text=", ".join(request.gpu), names=", ".join(ids)),
        Message("Name one of them, such as --gpu {name}.", name=ids[0]),
    )  # fmt: skip


def wanted(request: OwnRequest, device: Accelerator) -> Wanted:
    """From exactly one of --demand, --record and --job."""
    ways = {"--demand": request.demand_gpu_h_per_month, "--record": request.record, "--job": request.job}
    said = [name for name, value in ways.items() if value is not None]
    if len(said) != 1:
        raise InvalidInput(
            Message("{names} exclude each other: one says how much.", names=" and ".join(said))
            if said
            else Message("Nothing says how much work is wanted."),
            Message("Give one of --demand, --record and --job, such as --demand '1200 GPU-h/month'."),
        )
    _refuse_unused(request)
    if request.job is not None:
        return _of_job(request, device)
    if request.record is not None:
        return _of_file(request)
    return Wanted(
        level=stated(LEVEL, float(request.demand_gpu_h_per_month or 0), "GPU-h/month"),
        growth=_growth(request),
        told=Message("as stated"),
    )


def _refuse_unused(request: OwnRequest) -> None:
    """--every and --data-growth belong to --job, which needs the first of them."""
    if request.job is None and (request.every_s is not None or request.data_growth_fraction_per_year is not None):
        raise InvalidInput(
            Message("--every and --data-growth are for --job."), Message("Say --job WORKLOAD, or leave them out.")
        )
    if request.job is not None and request.every_s is None:
        raise InvalidInput(
            Message("--job {job}: nothing says how often it is trained.", job=request.job),
            Message("Add --every, such as --every 7d."),
        )
    if request.job is not None and request.growth_fraction_per_year is not None:
        raise InvalidInput(
            Message("--growth is for --demand: a job grows with its data."), Message("Say --data-growth instead.")
        )


def _growth(request: OwnRequest) -> Assumption | None:
    if request.growth_fraction_per_year is None:
        return None
    return stated(GROWTH, request.growth_fraction_per_year, "1/year")


def _of_file(request: OwnRequest) -> Wanted:
    record = read_record(Path(str(request.record)))
    seen = fit(record.gpus, record.step_h)
    found, own = replace(of_record(seen, _told(record)), teams=record.teams), _growth(request)
    if own is not None or seen.growth_fraction_per_year is None:
        return replace(found, growth=own, notes=idle_end(seen))
    low, value, high = going_on(seen, request.horizon_months)
    growth = Assumption(name=GROWTH, value=value, low=low, high=high, unit="1/year", source="record",
                        note="the trend of the record, going on for as long as it was seen")  # fmt: skip
    text = (
        "use changed by {seen:+.0%} a year over {weeks:.0f} weeks, which is taken to go on for as long again: "
        "{value:+.0%} a year over the horizon (yours: --growth)"
    )
    values = {"seen": seen.growth_fraction_per_year, "weeks": seen.hours / HOURS_PER_WEEK, "value": value}
    noted = () if abs(seen.growth_fraction_per_year) < STEADY else (Message(text, **values),)
    return replace(found, growth=growth, notes=(*noted, *idle_end(seen)))


def _told(record: Record) -> Message:
    hours, step = len(record.gpus) * record.step_h, record.step_h
    length = (
        Message("{hours:,.0f} h of a record, in steps of {step:g} h", hours=hours, step=step)
        if step >= 1
        else Message("{hours:,.0f} h of a record, in steps of {step:g} s", hours=hours, step=SECONDS_PER_HOUR * step)
    )
    return Message("{n} teams, {length}", n=len(record.teams), length=length) if record.teams else length


STEADY = 0.005
"""A change of less a year reads 0 %."""
IDLE_WEEKS = 2
"""Holidays are shorter."""


def idle_end(seen: Fitted) -> tuple[Message, ...]:
    """Work that stopped may be over: the fit cannot tell."""
    if seen.idle_weeks < IDLE_WEEKS:
        return ()
    text = "the last {n} weeks are without any use, which counts as a pause: is the work over?"
    return (Message(text, n=seen.idle_weeks),)


def of_record(fitted: Fitted, told: Message, *, source: str = "record") -> Wanted:
    """What a record of GPUs in use says of the demand, its growth apart."""
    level = Assumption(
        name=LEVEL, value=fitted.gpu_h_per_month, low=fitted.low_gpu_h_per_month, high=fitted.high_gpu_h_per_month,
        unit="GPU-h/month", source=source,
    )  # fmt: skip
    return Wanted(level=level, growth=None, told=told, shape=fitted.shape, weeks=fitted.weeks)


def _of_job(request: OwnRequest, device: Accelerator) -> Wanted:
    """Retraining makes standing demand: the training time on this GPU by prediction, and preparation, each time."""
    workload = workload_of(str(request.job), DescribeRequest(target=str(request.job)))
    if workload.undecided:
        raise InvalidInput(
            Message("--job {job}: nothing says how long it is ({what}).", job=str(request.job),
                    what=", ".join(workload.undecided)),
            Message("State samples and epochs in its file."),
        )  # fmt: skip
    names = needed(workload)
    evidence = Evidence.of(
        (*package.throughput(names), *package.inference(names)), package.accelerators(), package.model(), [],
        package.counts(),
    )  # fmt: skip
    predict = with_memory(predictor(evidence, package.assumptions()), package.assumptions(), package.memory())
    (answer,) = predict(workload, [Platform(variants=(device,))])
    if isinstance(answer, Refusal):
        raise InvalidInput(
            Message("--job {job} on {gpu}: {why}", job=workload.name, gpu=device.id, why=answer.reason),
            Message("Choose another GPU, or state the demand: --demand '1200 GPU-h/month'."),
        )
    hours = workload.total_samples / answer.throughput_per_s / SECONDS_PER_HOUR
    hours = hours + package.assumptions()["preparation_s"].estimate / SECONDS_PER_HOUR
    runs = DAYS_PER_MONTH * SECONDS_PER_DAY / float(request.every_s or 1)
    spread = exp(Z80 * hours.log_sd)
    growth = request.data_growth_fraction_per_year
    return Wanted(
        level=Assumption(
            name=LEVEL, value=hours.value * runs, low=hours.value * runs / spread, high=hours.value * runs * spread,
            unit="GPU-h/month", source="predicted",
        ),
        growth=None if growth is None else stated(GROWTH, growth, "1/year"),
        told=Message("{job} on one {gpu}, {runs:.3g} times a month, {hours:.3g} GPU-hours each", job=workload.name,
                     gpu=device.id, runs=runs, hours=hours.value),
        gpu_h_per_run=hours.value,
    )  # fmt: skip
