"""How fast would this job run there? A prediction with its error budget, or a refusal with its reason.

    evidence = Evidence.of(rows, accelerators, model, measurements)
    predict_many(workload, platforms, evidence, assumptions)

ln rate = sum-form roofline (`roofline`) + Gaussian process (`features`, `gp`), conditioned on all measured rows of the
workload, with intervals that were checked on rows left out (`answer`); several devices by `scaling`. `make accuracy`
says how wrong it is, `make fit` makes the shipped model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import exp, hypot, log, sqrt
from typing import Literal

from gpuwise.errors import Message
from gpuwise.estimate import Z80, Estimate
from gpuwise.model import Accelerator, Assumptions, Platform, Prediction, Refusal, Workload
from gpuwise.predict.answer import Told, answer, measured_apart, refusal
from gpuwise.predict.cells import canonical
from gpuwise.predict.evidence import Evidence, Row
from gpuwise.predict.memory import does_not_fit, need_gib, usable_gib
from gpuwise.predict.mixed import slowest
from gpuwise.predict.own import as_run, software_of
from gpuwise.predict.plausible import doubt
from gpuwise.predict.reference import REFERENCE
from gpuwise.predict.roofline import Work, arithmetic, work_of
from gpuwise.predict.rows import setting, work
from gpuwise.predict.scaling import Losses, Scaling, scaling
from gpuwise.predict.setting import Reading, Setting
from gpuwise.predict.words import in_words, spread_in_words

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


def needed(workload: Workload) -> frozenset[str]:
    """Names of the measured workloads that a prediction looks at, so that the others need not be read."""
    return frozenset((*_spelled(workload), *REFERENCE))


def names_of(workload: Workload) -> tuple[str, ...]:
    """Under which tables and runs know it."""
    return tuple(dict.fromkeys((workload.name, *workload.measured_as)))


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

    def answers(workload: Workload, platforms: Sequence[Platform]) -> list[Prediction | Refusal]:
        teller = tellers.get(workload.name)
        if teller is None or teller.asked != workload:
            teller = tellers[workload.name] = _Teller(workload, evidence, assumptions)
        return teller.answers(platforms)

    return answers


class _Teller:
    """Answers for one workload; what was worked out for an accelerator or a platform is kept."""

    def __init__(self, workload: Workload, evidence: Evidence, assumptions: Assumptions) -> None:
        self.asked, self.assumptions, self.model = workload, assumptions, evidence.model
        self.workload, self.as_run = as_run(workload, evidence)
        self.software = software_of(workload, evidence)
        self.losses = Losses.of(self.workload, evidence)
        self.name, self.counts = _known_as(self.workload, evidence), evidence.counts
        self.work = work(self.name, evidence.counts) or work_of(self.workload)
        self.accelerators = evidence.accelerators
        found = evidence.of_one(_spelled(self.workload))
        rows = [row for row in found if row.result.samples_per_s > 0]
        odd = {id(row): why for row in rows if row.yours and (why := doubt(self._reading(row)))}
        self.as_run = (*self.as_run, *(Message("your run is not used: {why}", why=why) for why in odd.values()))
        rows = [row for row in rows if id(row) not in odd]
        able = [row for row in rows if refusal(self._reading(row).setting) is None]
        self.seen = [r for r in able if self._has_seen(r)]
        self.given = [r for r in able if not self._has_seen(r)]
        self.apart = [row for row in rows if refusal(self._reading(row).setting) is not None]
        self.devices: dict[str, Told | Message] = {}
        self.said: dict[str, tuple[Message, ...]] = {}
        self.known: dict[tuple[object, ...], Prediction | Refusal] = {}

    def _has_seen(self, row: Row) -> bool:
        same = canonical(row.result.workload) == self.name
        return same and not row.yours and self.model.posterior.has_seen(self._reading(row).setting)

    def answers(self, platforms: Sequence[Platform]) -> list[Prediction | Refusal]:
        self._work_out([card for platform in platforms for card in platform.variants])
        return [self._kept(platform) for platform in platforms]

    def _work_out(self, cards: Iterable[Accelerator]) -> None:
        """All cards that are not known yet, together."""
        new = {card.id: card for card in cards if card.id not in self.devices}
        least_gib = need_gib(self.workload)
        fit = {name: does_not_fit(self.workload, card, self.assumptions, least_gib) for name, card in new.items()}
        asked = [self._setting(card) for name, card in new.items() if fit[name] is None]
        told = answer(self.model, asked, self._readings(self.seen), self._readings(self.given)) if asked else []
        self.devices.update({s.accelerator.id: self._or_apart(s, t) for s, t in zip(asked, told, strict=True)})
        self.devices.update({name: why for name, why in fit.items() if why is not None})

    def _or_apart(self, setting: Setting, told: Told | Message) -> Told | Message:
        """What was measured on the very device counts even where nothing carries over to it."""
        here = self._rows_apart(setting.accelerator) if isinstance(told, Message) else []
        return measured_apart(setting, self._readings(here)) if here else told

    def _rows_apart(self, card: Accelerator) -> list[Row]:
        kind = arithmetic(self.workload.precision, card)
        rows = [row for row in self.apart if row.result.accelerator == card.id and row.result.mode == self.asked.mode]
        return [row for row in rows if arithmetic(row.result.precision, card) == kind]

    def _setting(self, card: Accelerator) -> Setting:
        job = self.workload
        return Setting(
            workload=self.name,
            family=job.family,
            accelerator=card,
            precision=job.precision,
            batch=job.batch_per_accelerator,
            work=self.work,
            software=self.software,
            memory_format=job.memory_format,
            mode=job.mode,
            compiled=self._compiled(),
        )

    def _compiled(self) -> bool:
        return any(row.yours and row.compiled for row in self.given)

    def _readings(self, rows: Iterable[Row]) -> list[Reading]:
        return [self._reading(row) for row in rows]

    def _reading(self, row: Row) -> Reading:
        """A row of the tables as the model saw it; a run of the person's own with the job's counts."""
        card = self.accelerators[row.result.accelerator]
        placed = setting(row.result, card, self.counts)
        if row.yours or placed.work is None:
            placed = replace(placed, workload=self.name, family=self.workload.family, work=self.work)
        rate, sd = row.result.samples_per_s, row.own_sd
        if row.together > 1:
            lost = self._lost(card, row.together, rate)
            rate, sd = rate / lost.efficiency, hypot(sd, lost.sd)
        return Reading(setting=placed, samples_per_s=rate, log_sd=sd, yours=row.yours)

    def _lost(self, card: Accelerator, n: int, one_per_s: float) -> Scaling:
        """What n of them lose together in one machine."""
        return scaling(self.workload, card, Platform(variants=(card,), per_node=n), one_per_s, self.losses)

    def _kept(self, platform: Platform) -> Prediction | Refusal:
        key = (platform.name, platform.per_node, platform.nodes, platform.link, platform.mixed)
        if key not in self.known:
            self.known[key] = self._answer(platform)
        return self.known[key]

    def _answer(self, platform: Platform) -> Prediction | Refusal:
        outcomes = [self._variant(variant, platform) for variant in platform.variants]
        if platform.mixed:
            return slowest(outcomes, platform)
        found = [o for o in outcomes if isinstance(o, Prediction)]
        if not found:
            return next(o for o in outcomes if isinstance(o, Refusal))
        return found[0] if len(outcomes) == 1 else _range(found, outcomes, platform)

    def _variant(self, card: Accelerator, platform: Platform) -> Prediction | Refusal:
        told = self.devices[card.id]
        if isinstance(told, Message):
            fits = does_not_fit(self.workload, card, self.assumptions) is None
            return Refusal(
                workload=self.asked.name,
                platform=card.id,
                accelerators=platform.accelerators,
                rule="no_prediction" if fits else "does_not_fit",
                reason=told,
            )
        rate, method = told.rate_per_s, self._method(told)
        steps = self._said(told, card)
        if platform.accelerators > 1:
            rate, method, step = self._several(told, method, card, platform)
            steps = (*steps, step)
        return Prediction(
            workload=self.asked.name,
            platform=card.id,
            accelerators=platform.accelerators,
            throughput_per_s=rate,
            method=method,
            evidence=(*steps, *self.as_run),
            advice=self._advice(rate, method, card),
        )

    def _said(self, told: Told, card: Accelerator) -> tuple[Message, ...]:
        """Why one device is so fast, once for each card."""
        if card.id not in self.said:
            rows = self._rows_apart(card) if told.apart else self._rows()
            self.said[card.id] = in_words(told, self._setting(card), rows)
        return self.said[card.id]

    def _rows(self) -> list[Row]:
        return [*self.seen, *self.given]

    def _method(self, told: Told) -> Method:
        """measured: on this card in this arithmetic; ratio: elsewhere; roofline: nowhere."""
        if told.rate_per_s.basis == "measured":
            return "measured"
        return "ratio" if self._rows() else "roofline"

    def _several(
        self, told: Told, method: Method, card: Accelerator, platform: Platform
    ) -> tuple[Estimate, Method, Message]:
        """From one device to all of the platform."""
        n, one = platform.accelerators, told.rate_per_s
        if self.workload.mode == "infer":
            text = Message("× {n}: forward passes do not wait for each other", n=n, factor=n)
            return one * float(n), "ratio" if method == "measured" else method, text
        scaled = self._scaled(card, platform, one.value)
        rate = one * (n * scaled.efficiency)
        rate = rate.widened(scaled.name, scaled.sd) if scaled.sd else rate
        as_measured = method if scaled.own or method != "measured" else "ratio"
        basis = rate.basis if as_measured == "measured" else "predicted"
        return replace(rate, basis=basis), as_measured, scaled.evidence

    def _scaled(self, card: Accelerator, platform: Platform, one_per_s: float) -> Scaling:
        """From one device; where the person's run had k together, the error of k is in the rate of one already."""
        scaled, k = scaling(self.workload, card, platform, one_per_s, self.losses), self._together(card)
        if k is None:
            return scaled
        of_k = scaling(self.workload, card, replace(platform, per_node=k, nodes=1), one_per_s, self.losses)
        n, left = platform.accelerators, scaled.efficiency
        text = "× {n} × {efficiency:.3f}: your own run had {k} of {name}"
        said = Message(text, n=n, efficiency=left, factor=n * left, k=k, name=card.name)
        return replace(scaled, own=True, sd=abs(scaled.sd - of_k.sd), evidence=said)

    def _together(self, card: Accelerator) -> int | None:
        """Devices of the person's newest run on this card, if none was on one alone."""
        own = [row.together for row in self.given if row.yours and row.result.accelerator == card.id]
        return own[-1] if own and min(own) > 1 else None

    def _advice(self, rate: Estimate, method: Method, card: Accelerator) -> Message:
        """What to measure next, and how much narrower the interval would be."""
        if method == "measured" and any(r.yours and r.result.accelerator == card.id for r in self.given):
            text = "This is your own run; a second one on another such machine would show how much hosts differ."
            return Message(text)
        scaled = [sd for name, sd in rate.spread if name.startswith("scaling ")]
        if scaled and 2 * hypot(*scaled) ** 2 > rate.log_sd**2:
            text = "Run {workload} for a few minutes on two {name}, and on one: what several lose is the largest doubt."
            return Message(text, workload=self.asked.name, name=card.name)
        return Message(
            "Run {workload} for a few minutes on one {name}: ±{now:.0f} % would become about ±{then:.0f} %.",
            workload=self.asked.name,
            name=card.name,
            now=100 * (exp(Z80 * rate.log_sd) - 1),
            then=100 * (exp(Z80 * hypot(OWN_RUN_SD, *scaled)) - 1),
        )


OWN_RUN_SD = 0.05
"""What a short run of one's own on such a device leaves: its noise and the difference between hosts."""


def _known_as(workload: Workload, evidence: Evidence) -> str:
    """The name under which the model has seen it, else its own."""
    names, model = [canonical(name) for name in names_of(workload)], evidence.model.posterior
    return next((name for name in names if name in model.workloads | model.answering), names[0])


def _spelled(workload: Workload) -> list[str]:
    """Every name of the tables that means it."""
    plain = list(dict.fromkeys(canonical(name) for name in names_of(workload)))
    return [*names_of(workload), *plain, *(f"tv_{n}" for n in plain), *(f"{n}@224" for n in plain)]


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
    refused = [o for o in outcomes if isinstance(o, Refusal)]
    return Prediction(
        workload=widest.workload,
        platform=platform.name,
        accelerators=platform.accelerators,
        throughput_per_s=middle.widened(f"variant unknown {platform.name}", half / Z80),
        method=weakest.method,
        evidence=spread_in_words(found, refused, widest, middle.value),
        advice=Message("Ask the provider which of {names} it is.", names=", ".join(p.platform for p in found)),
    )
