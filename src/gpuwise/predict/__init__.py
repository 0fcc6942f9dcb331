"""How fast would this job train there? A prediction with its error budget, or a refusal with its reason.

    evidence = Evidence.of(rows, accelerators, counts, measurements)
    predict_many(workload, platforms, evidence, assumptions)

In order of trust: a row of the very workload on that accelerator; ratios of measured rows; the roofline (see `ratio`).
`accuracy`: `python benchmarks/accuracy_first.py` leaves rows out and prints how wrong it is and whether it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, hypot, log, sqrt
from typing import Literal, cast

from gpuwise.errors import Message
from gpuwise.estimate import Z80, Estimate
from gpuwise.model import Accelerator, Assumptions, Platform, Prediction, Refusal, Workload
from gpuwise.predict.evidence import Evidence
from gpuwise.predict.memory import does_not_fit, need_gib, usable_gib
from gpuwise.predict.own import as_run, reconciled
from gpuwise.predict.ratio import Path, Paths
from gpuwise.predict.reference import PROXIES
from gpuwise.predict.roofline import Work, unsupported
from gpuwise.predict.scaling import Losses, scaling

__all__ = [
    "Evidence",
    "Work",
    "does_not_fit",
    "need_gib",
    "needed",
    "predict",
    "predict_many",
    "predictor",
    "usable_gib",
]

Predictor = Callable[[Workload, Sequence[Platform]], list[Prediction | Refusal]]
Method = Literal["measured", "ratio", "roofline"]
TRUST: tuple[Method, ...] = ("measured", "ratio", "roofline")


def needed(workload: Workload) -> frozenset[str] | None:
    """Names of the measured workloads that a prediction looks at, so that the others need not be read; None: all."""
    if not workload.nearest:
        return None
    return frozenset((workload.name, *workload.measured_as, *workload.nearest, *PROXIES))


def predict(
    workload: Workload, platform: Platform, evidence: Evidence, assumptions: Assumptions
) -> Prediction | Refusal:
    """One platform: see `predict_many`."""
    return predict_many(workload, (platform,), evidence, assumptions)[0]


def predict_many(
    workload: Workload, platforms: Sequence[Platform], evidence: Evidence, assumptions: Assumptions
) -> list[Prediction | Refusal]:
    """Throughput of the workload on each platform, in order. Equal platforms share one answer."""
    return predictor(evidence, assumptions)(workload, platforms)


def predictor(evidence: Evidence, assumptions: Assumptions) -> Predictor:
    """`predict_many` that remembers: what was answered for a workload is not worked out again."""
    tellers: dict[str, _Teller] = {}

    def answer(workload: Workload, platforms: Sequence[Platform]) -> list[Prediction | Refusal]:
        teller = tellers.get(workload.name)
        if teller is None or teller.asked != workload:
            teller = tellers[workload.name] = _Teller(workload, evidence, assumptions)
        return [teller.answer(platform) for platform in platforms]

    return answer


class _Teller:
    """Answers for one workload; what was worked out for an accelerator or a platform is kept."""

    def __init__(self, workload: Workload, evidence: Evidence, assumptions: Assumptions) -> None:
        self.asked, self.assumptions = workload, assumptions
        self.workload, self.as_run = as_run(workload, evidence)
        self.all = _Ways(self.workload, evidence, assumptions)
        self.published = _Ways(self.workload, evidence.published(), assumptions) if self._ran(evidence) else None
        self.answers: dict[tuple[object, ...], Prediction | Refusal] = {}

    def _ran(self, evidence: Evidence) -> bool:
        return any(name in evidence.runs for name in (self.asked.name, *self.asked.measured_as))

    def answer(self, platform: Platform) -> Prediction | Refusal:
        key = (platform.name, platform.per_node, platform.nodes, platform.link)
        if key not in self.answers:
            self.answers[key] = self._answer(platform)
        return self.answers[key]

    def _answer(self, platform: Platform) -> Prediction | Refusal:
        outcomes = [self._variant(variant, platform) for variant in platform.variants]
        found = [o for o in outcomes if isinstance(o, Prediction)]
        if not found:
            return next(o for o in outcomes if isinstance(o, Refusal))
        return found[0] if len(outcomes) == 1 else _range(found, outcomes, platform)

    def _variant(self, accelerator: Accelerator, platform: Platform) -> Prediction | Refusal:
        path = self._path(accelerator, platform)
        if not isinstance(path, Path):
            rule, reason = path
            return Refusal(
                workload=self.workload.name,
                platform=accelerator.id,
                accelerators=platform.accelerators,
                rule=rule,
                reason=reason,
            )
        return Prediction(
            workload=self.workload.name,
            platform=accelerator.id,
            accelerators=platform.accelerators,
            throughput_per_s=path.rate,
            method=cast(Method, path.method),
            evidence=(*_row_in_words(path, self.workload), *path.steps, *self.as_run),
            advice=_advice(path, accelerator, self.workload),
        )

    def _path(self, accelerator: Accelerator, platform: Platform) -> Path | tuple[str, Message]:
        if reason := does_not_fit(self.workload, accelerator, self.assumptions):
            return "does_not_fit", reason
        path = self.all.path(accelerator, platform)
        if isinstance(path, Path) and path.row and path.row.yours and self.published:
            other = self.published.path(accelerator, platform)
            return reconciled(path, other if isinstance(other, Path) else None)
        return path


class _Ways:
    """From some evidence to a path on any platform."""

    def __init__(self, workload: Workload, evidence: Evidence, assumptions: Assumptions) -> None:
        self.workload = workload
        self.paths = Paths.of(workload, evidence, assumptions)
        self.losses = Losses.of(workload, evidence)
        self.devices: dict[str, Path | tuple[str, Message]] = {}

    def path(self, accelerator: Accelerator, platform: Platform) -> Path | tuple[str, Message]:
        """The best path, or rule and reason of a refusal."""
        if accelerator.id not in self.devices:
            self.devices[accelerator.id] = self._one(accelerator)
        one = self.devices[accelerator.id]
        several = isinstance(one, Path) and platform.accelerators > 1
        return self._several(one, accelerator, platform) if several else one  # type: ignore[arg-type]

    def _one(self, accelerator: Accelerator) -> Path | tuple[str, Message]:
        reason = unsupported(self.workload.precision, accelerator)
        path = self.paths.measured(accelerator) if reason else self.paths.best(accelerator)
        return path or (
            "no_prediction",
            reason
            or Message(
                "no source gives the bandwidth or rates of {name}, and the job was not measured there",
                name=accelerator.name,
            ),
        )

    def _several(self, one: Path, accelerator: Accelerator, platform: Platform) -> Path:
        """From one device to all of the platform: a run on just so many, else one device's rate scaled."""
        n = platform.accelerators
        together = self.paths.together(accelerator, n) if platform.nodes == 1 else None
        if together is not None:
            return self._as_many(together, accelerator, platform)
        scaled = scaling(self.workload, accelerator, platform, one.rate.value, self.losses)
        rate = (one.rate * (n * scaled.efficiency)).widened(scaled.name, scaled.sd)
        method = one.method if scaled.own or one.method != "measured" else "ratio"
        basis = rate.basis if method == "measured" else "predicted"
        return replace(one, rate=replace(rate, basis=basis), method=method, steps=(*one.steps, scaled.evidence))

    def _as_many(self, each: Path, accelerator: Accelerator, platform: Platform) -> Path:
        """From one device of a run on just so many to all of them; at another batch they wait for each other more, or
        less."""
        assert each.row is not None
        n, row = platform.accelerators, each.row.result
        whole = replace(each, rate=each.rate * n)
        if row.batch_per_accelerator == self.workload.batch_per_accelerator:
            return whole
        as_run = replace(self.workload, batch_per_accelerator=row.batch_per_accelerator)
        there = scaling(as_run, accelerator, platform, row.samples_per_s / n, self.losses)
        here = scaling(self.workload, accelerator, platform, each.rate.value, self.losses)
        factor = here.efficiency / there.efficiency
        rate = (whole.rate * factor).widened(here.name, abs(log(factor)) / 2)
        step = Message(
            "× {factor:.3g} for exchanging gradients after {batch} samples",
            factor=factor,
            batch=self.workload.batch_per_accelerator,
        )
        return replace(whole, rate=rate, steps=(*each.steps, step))


def _range(found: Sequence[Prediction], outcomes: Sequence[object], platform: Platform) -> Prediction:
    """Several accelerators are possible: the geometric middle, an interval that covers them all, the weakest method."""
    values = [p.throughput_per_s.value for p in found]
    widest = max(found, key=lambda p: p.throughput_per_s.log_sd)
    middle = Estimate(
        value=sqrt(min(values) * max(values)),
        spread=widest.throughput_per_s.spread,
        basis=widest.throughput_per_s.basis,
    )
    half = log(max(values) / min(values)) / 2
    weakest = max(found, key=lambda p: TRUST.index(p.method))
    names = ", ".join(p.platform for p in found)
    refused = [o for o in outcomes if isinstance(o, Refusal)]
    return Prediction(
        workload=widest.workload,
        platform=platform.name,
        accelerators=platform.accelerators,
        throughput_per_s=middle.widened(f"variant unknown {platform.name}", half / Z80),
        method=weakest.method,
        evidence=(
            Message("the offer does not say which of {names} it is: the range covers all of them", names=names),
            *(Message("left out of the range: {name}, {reason}", name=r.platform, reason=r.reason) for r in refused),
            *widest.evidence,
            Message(
                "× {factor:.3g} from {name} to the middle of the range",
                factor=middle.value / widest.throughput_per_s.value,
                name=widest.platform,
            ),
        ),
        advice=Message("Ask the provider which of {names} it is.", names=names),
    )


def _row_in_words(path: Path, workload: Workload) -> tuple[Message, ...]:
    if path.row is None:
        return ()
    row = path.row.result
    return (
        Message(
            "{rate:.4g} {sample}s/s of {model} measured on {accelerator} "
            "({precision}, batch {batch}, {software}; {source})",
            rate=row.samples_per_s,
            sample=workload.sample,
            model=row.workload,
            accelerator=row.accelerator,
            precision=row.precision,
            batch=row.batch_per_accelerator,
            software=row.software or Message("software not stated"),
            source=row.source.ref,
        ),
    )


OWN_RUN_SD = 0.05
"""What a short run of one's own on such a device leaves: its noise and the difference between hosts."""


def _advice(path: Path, accelerator: Accelerator, workload: Workload) -> Message:
    """What to measure next, and how much narrower the interval would be."""
    if path.row is not None and path.row.yours and path.method == "measured":
        return Message("This is your own run; a second one on another such machine would show how much hosts differ.")
    scaled = [sd for name, sd in path.rate.spread if name.startswith("scaling ")]
    return Message(
        "Run {workload} for a few minutes on one {name}: ±{now:.0f} % would become about ±{then:.0f} %.",
        workload=workload.name,
        name=accelerator.name,
        now=100 * (exp(Z80 * path.rate.log_sd) - 1),
        then=100 * (exp(Z80 * hypot(OWN_RUN_SD, *scaled)) - 1),
    )
