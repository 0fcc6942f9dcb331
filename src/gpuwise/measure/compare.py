"""Two runs, or several each, side by side: how much faster, with its interval, or "not significant".

The ratio is of samples/s. Several runs each: Welch's test on the logarithms of the runs' speeds, which holds what
differs from run to run. One run each: the runs' own intervals, which only hold what differs within a run; a caution
says so.
Test values: 100, 102, 98 against 125, 123, 127 samples/s → 1.25× faster; 51.82 and 124.55 s a step on 1 and 2 devices →
0.83×.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, hypot, log, sqrt
from statistics import fmean, variance

from gpuwise.errors import InvalidInput, Message
from gpuwise.estimate import LEVEL, Z80, Interval
from gpuwise.measure.intervals import student
from gpuwise.measure.record import Record
from gpuwise.measure.verdict.memory import batch_that_fits, needed_gib
from gpuwise.units import Fraction

SIGNIFICANT: Fraction = 0.95
BETWEEN_RUNS_LOG_SD = 0.02
"""Assumed: what runs of one setting on one quiet machine differ by; a run's own interval is taken as no narrower."""
LEAST_EFFICIENCY: Fraction = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """ratio: speed of b / speed of a, with its 80 % interval; None with a reason. significant: at 95 %.

    sentence: "1.23× faster …", "not significant" or, of two jobs that are not the same, "not comparable". unlike:
    settings that differ between the sides or within one, so that a and b are not like for like. cautions: what makes
    it less sure, and the batch that memory leaves room for where they differ in it.
    efficiency_fraction: speed a device of b / of a, where both ran on accelerators of different number; cost_ratio:
    device-seconds a sample, b / a.
    """

    ratio: Interval | None
    significant: bool
    sentence: Message
    unlike: tuple[Message, ...] = ()
    cautions: tuple[Message, ...] = ()
    efficiency_fraction: Fraction | None = None
    cost_ratio: float | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


def compare(a: Sequence[Record], b: Sequence[Record]) -> Comparison:
    """Runs of one kind (a) against runs of another (b). Runs without a speed are left out, counted in the reasons."""
    slow, fast = _speeds(a), _speeds(b)
    unlike = tuple(_unlike(a, b))
    reasons = _left_out(a, slow, "a") | _left_out(b, fast, "b")
    if (apart := _other_job(a, b)) is not None:
        reasons |= {"ratio": "two jobs are not the same work"}
        return Comparison(ratio=None, significant=False, sentence=apart, unlike=unlike, reasons=reasons)
    if not slow or not fast:
        sentence = Message("Not comparable: {which} has no speed.", which="a" if not slow else "b")
        return Comparison(ratio=None, significant=False, sentence=sentence, unlike=unlike, reasons=reasons)
    difference = _difference(slow, fast)
    ratio = difference.interval()
    scale = _scale(a, b)
    return Comparison(
        ratio=ratio,
        significant=difference.significant,
        sentence=_sentence(difference, unlike),
        unlike=unlike,
        cautions=(*_cautions(slow, fast, scale, ratio), *_recomputing(a, b), *_fitting((*a, *b))),
        efficiency_fraction=None if scale is None else ratio.value / scale,
        cost_ratio=None if scale is None else scale / ratio.value,
        reasons=reasons,
    )


@dataclass(frozen=True, slots=True)
class _Speed:
    """log of samples/s, and its standard deviation by the run's own interval."""

    log: float
    log_sd: float


@dataclass(frozen=True, slots=True)
class _Difference:
    """log of the ratio, its standard error and degrees of freedom (None: normal)."""

    log: float
    error: float
    freedom: float | None

    def half(self, level: Fraction) -> float:
        from_t = student(level, max(self.freedom, 1.0)) if self.freedom is not None else student(level, 1e6)
        return from_t * self.error

    @property
    def significant(self) -> bool:
        return abs(self.log) > self.half(SIGNIFICANT)

    def interval(self) -> Interval:
        half = self.half(LEVEL)
        return Interval(value=exp(self.log), low=exp(self.log - half), high=exp(self.log + half))


def _speeds(runs: Sequence[Record]) -> list[_Speed]:
    found = []
    for run in runs:
        rate = _rate(run)
        if rate is not None:
            found.append(_Speed(log(rate.value), max(log(rate.high / rate.value), 1e-6) / Z80))
    return found


def _rate(run: Record) -> Interval | None:
    """samples/s, or steps/s where samples were not counted; None for launch times and for runs without a pace."""
    pace = run.pace
    if pace is None or "step_s" in pace.reasons or pace.step_s.low <= 0:
        return None
    if pace.samples_per_s is not None and pace.samples_per_s.value > 0:
        return pace.samples_per_s
    step = pace.step_s
    return Interval(value=1 / step.value, low=1 / step.high, high=1 / step.low)


def _difference(a: Sequence[_Speed], b: Sequence[_Speed]) -> _Difference:
    mean = fmean(s.log for s in b) - fmean(s.log for s in a)
    if len(a) > 1 and len(b) > 1:
        return _welch(mean, a, b)
    error = hypot(_own_error(a), _own_error(b))
    return _Difference(mean, error, None)


def _welch(mean: float, a: Sequence[_Speed], b: Sequence[_Speed]) -> _Difference:
    """Welch 1947, with the degrees of freedom of Welch and Satterthwaite. A spread between runs that is smaller than
    what their own intervals explain is chance: the own errors are the least that counts."""
    parts = [variance([s.log for s in runs]) / len(runs) for runs in (a, b)]
    own = hypot(_own_error(a), _own_error(b))
    whole = sum(parts)
    if whole <= own**2:
        return _Difference(mean, own, len(a) + len(b) - 2)
    freedom = whole**2 / sum(p**2 / (len(runs) - 1) for p, runs in zip(parts, (a, b), strict=True))
    return _Difference(mean, sqrt(whole), freedom)


def _own_error(runs: Sequence[_Speed]) -> float:
    """Of the mean log speed, by the runs' own intervals; of a single run at least what differs between two."""
    least = BETWEEN_RUNS_LOG_SD if len(runs) == 1 else 0.0
    return sqrt(sum(max(s.log_sd, least) ** 2 for s in runs)) / len(runs)


def _sentence(difference: _Difference, unlike: Sequence[Message]) -> Message:
    apart = _apart(len(unlike))
    ratio = difference.interval()
    if not difference.significant:
        return Message(
            "Not significant: the ratio lies between {low:.2f} and {high:.2f}.{apart}",
            low=ratio.low,
            high=ratio.high,
            apart=apart,
        )
    word = Message("faster") if ratio.value > 1 else Message("slower")
    inverse = ratio.value < 1
    return Message(
        "{factor:.2f}× {word} ({low:.2f} to {high:.2f}).{apart}",
        factor=1 / ratio.value if inverse else ratio.value,
        word=word,
        low=1 / ratio.high if inverse else ratio.low,
        high=1 / ratio.low if inverse else ratio.high,
        apart=apart,
    )


def _apart(count: int) -> Message | str:
    if count == 1:
        return Message(" Not like for like: 1 setting differs.")
    return Message(" Not like for like: {count} settings differ.", count=count) if count else ""


def _left_out(runs: Sequence[Record], speeds: Sequence[_Speed], name: str) -> dict[str, str]:
    missing = len(runs) - len(speeds)
    if not missing and runs:
        return {}
    return {name: f"{missing} of {len(runs)} runs have no speed" if runs else "no run was given"}


def _scale(a: Sequence[Record], b: Sequence[Record]) -> float | None:
    """Accelerators of b / of a; None where they are as many, where one ran on a CPU, or a side is mixed."""
    one, other = ({accelerators(run) for run in runs} for runs in (a, b))
    if len(one) > 1 or len(other) > 1 or one == other or 0 in one | other:
        return None
    return other.pop() / one.pop()


def accelerators(run: Record) -> int:
    """How many the job used, 0 on a CPU. Where nobody told which, one a process: the others of the machine idle."""
    devices = [device for device in run.devices if device.backend != "cpu"]
    told = 0 if "devices" in run.reasons else len(devices)
    return max(told, run.setup.processes) if devices else 0


def _cautions(a: Sequence[_Speed], b: Sequence[_Speed], scale: float | None, ratio: Interval) -> list[Message]:
    said = []
    if len(a) == 1 and len(b) == 1:
        said.append(Message("one run each tells nothing of how much runs differ: repeat them"))
    elif len(a) == 1 or len(b) == 1:
        said.append(Message("a single run on one side tells nothing of how much such runs differ: repeat it"))
    if scale is not None and scale > 1 and ratio.value < LEAST_EFFICIENCY * scale:
        said.append(
            Message(
                "{scale:g}× the devices give {ratio:.2f}× the speed, {efficiency:.0%} of it: "
                "communication, or processes that share CPUs, take the rest",
                scale=scale,
                ratio=ratio.value,
                efficiency=ratio.value / scale,
            )
        )
    return said


_OF_MEMORY = ("workload", "model", "precision", "memory_format", "optimizer", "compiled", "image_size")
"""Settings that the memory of a batch depends on, beside the device."""


def _fitting(runs: Sequence[Record]) -> list[Message]:
    """The batch that the memory of runs with several batches leaves room for (UC-023); nothing where they do not tell,
    or were not of one job on one kind of card."""
    jobs = {tuple(getattr(run.setup, name) for name in _OF_MEMORY) for run in runs}
    cards = {(device.name, device.memory_gib) for run in runs for device in run.devices if not device.unified}
    size = next(iter(cards))[1] if len(cards) == 1 else None
    took = [(run.setup.batch_per_accelerator, needed_gib(run)) for run in runs]
    known = [(batch, gib) for batch, gib in took if batch is not None and gib is not None]
    if len(jobs) > 1 or size is None or len({batch for batch, _ in known}) < 2:
        return []
    others = max((load.others_gib or 0.0 for run in runs for load in run.device_loads), default=0.0)
    try:
        fit = batch_that_fits([batch for batch, _ in known], [gib for _, gib in known], size, others)
    except InvalidInput:
        return []
    text = (
        "a sample takes {each:.3g} GiB and {fixed:.3g} GiB go beside: batch {batch} should fit on this device, try it"
    )
    return [Message(text, each=fit.per_sample_gib, fixed=max(fit.fixed_gib, 0.0), batch=fit.batch)]


_COMPARED: tuple[tuple[Message, Callable[[Record], object]], ...] = (
    (Message("workload"), lambda r: r.setup.workload),
    (Message("model"), lambda r: r.setup.model),
    (Message("device"), lambda r: _devices(r)),
    (Message("processes"), lambda r: r.setup.processes),
    (Message("batch a device"), lambda r: r.setup.batch_per_accelerator),
    (Message("accumulation"), lambda r: r.setup.accumulation),
    (Message("picture size"), lambda r: r.setup.image_size),
    (Message("precision"), lambda r: r.setup.precision),
    (Message("memory format"), lambda r: r.setup.memory_format),
    (Message("compiled"), lambda r: r.setup.compiled),
    (Message("optimizer"), lambda r: r.setup.optimizer),
    (Message("feed"), lambda r: r.setup.feed),
    (Message("cached"), lambda r: r.setup.cached),
    (Message("workers"), lambda r: r.setup.workers),
    (Message("threads"), lambda r: r.setup.threads),
    (Message("usable CPUs"), lambda r: r.host.cpus.allowed),
    (Message("CPU"), lambda r: r.host.cpus.model),
    (Message("data"), lambda r: r.setup.data),
    (Message("command"), lambda r: " ".join(r.setup.command)),
)


def _devices(run: Record) -> str:
    return ", ".join(sorted({device.name for device in run.devices}))


def _unlike(a: Sequence[Record], b: Sequence[Record]) -> list[Message]:
    """What differs, setting by setting, among all runs; what only one side knows is not called a difference."""
    said = []
    for name, of in (*_COMPARED, *_versions((*a, *b))):
        one, other = _values(a, of), _values(b, of)
        if one == other and len(one) > 1:
            said.append(Message("{name}: {one} on both sides", name=name, one=_joined(one)))
        elif one and other and set(one) != set(other):
            said.append(Message("{name}: {one} and {other}", name=name, one=_joined(one), other=_joined(other)))
    return said


def _values(runs: Sequence[Record], of: Callable[[Record], object]) -> tuple[object, ...]:
    """What is known of one setting, each value once, in the order of their names."""
    known = {value for run in runs if (value := of(run)) not in (None, "")}
    return tuple(sorted(known, key=lambda value: (isinstance(value, str), value)))


def _joined(values: Sequence[object]) -> object:
    """A side with several is told as mixed."""
    if len(values) == 1:
        return values[0]
    return Message("mixed ({values})", values=", ".join(str(value) for value in values))


def _versions(runs: Sequence[Record]) -> list[tuple[Message, Callable[[Record], object]]]:
    names = sorted({name for run in runs for name in run.setup.software})
    return [(Message("{name}", name=name), lambda run, name=name: run.setup.software.get(name)) for name in names]  # type: ignore[misc]


def _other_job(a: Sequence[Record], b: Sequence[Record]) -> Message | None:
    """Another model, or another workload of reference training, is other work: its samples are not the same. The
    names of a person's own programs tell nothing of that."""
    named = () if any(run.setup.command for run in (*a, *b)) else (lambda run: run.setup.workload,)
    for of in (*named, lambda run: run.setup.model):
        one, other = _values(a, of), _values(b, of)
        if one and other and (one != other or len(one) > 1):
            return Message("Not comparable: {one} and {other}.", one=_joined(one), other=_joined(other))
    return None


MORE_KEPT: Fraction = 0.05


def _recomputing(a: Sequence[Record], b: Sequence[Record]) -> list[Message]:
    """Runs of one setting that keep another amount of memory for the backward pass: one of them recomputes (UC-040)."""
    kept = [_values(runs, lambda run: run.work.stored_m if run.work else None) for runs in (a, b)]
    if not all(kept):
        return []
    one, other = (fmean(float(str(value)) for value in values) for values in kept)
    if abs(one - other) <= MORE_KEPT * max(one, other):
        return []
    text = (
        "a sample keeps {one:.3g} and {other:.3g} million values for the backward pass: one side recomputes more, "
        "which is not like for like"
    )
    return [Message(text, one=one, other=other)]
