"""From the Gaussian process to an answer: a rate with its named errors, what it stands on, or why there is none.

The process says ln rate and its deviation; a factor for each kind of situation makes its 80 % intervals cover 80 % of
rows that were left out (split conformal: G. Shafer and V. Vovk, JMLR 9, 2008). No answer passes the classic roofline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log, sqrt

import numpy as np

from gpuwise.errors import Message
from gpuwise.estimate import Z80, Estimate
from gpuwise.model import Accelerator
from gpuwise.predict.cells import KIN, runnable
from gpuwise.predict.gp import OWN_WAYS, SETUP_SD, TOLD, Joint, Posterior
from gpuwise.predict.roofline import (
    SINCE_AMPERE,
    Rates,
    ideal_seconds,
    rates,
    unsupported,
)
from gpuwise.predict.setting import Reading, Setting

NEW_ARCHITECTURE_SD, UNTRIED_SD = 0.15, 0.5
"""Beside what the process says: a newer architecture than any measured one; other vendors and older ones."""

DERIVED_RATE_SD = 0.10
"""The matrix rate comes from the architecture: L40 and L40S differ by a factor of two there, most others do not."""

MOST_K = 3
"""More measured cards than this are one kind of situation."""

PUBLISHED_DISAGREE, RUNS_DISAGREE = "your run and published rows disagree", "your runs disagree"
DOUBT = 2.0
"""A run of one's own that lies further from what everything else says, in standard deviations, disagrees with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What an interval's honesty depends on. measured: cards on which the workload was measured."""

    family_known: bool
    card_known: bool
    measured: int
    counted: bool = True

    @property
    def key(self) -> str:
        """As `Model.factors` names it."""
        return self.with_measured(self.measured)

    def with_measured(self, k: int) -> str:
        told = ("family" if self.family_known else "new family", "card" if self.card_known else "new card")
        return ", ".join((*told, str(min(k, MOST_K)), *(() if self.counted else ("not counted",))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """The shipped predictor. factors: situation -> by how much the deviation is multiplied."""

    posterior: Posterior
    factors: Mapping[str, float]

    def situation(self, setting: Setting, readings: Sequence[Reading]) -> Situation:
        family = KIN.get(setting.family or "", setting.family or "")
        return Situation(
            family_known=family in self.posterior.families,
            card_known=setting.accelerator.id in self.posterior.cards,
            measured=len({r.setting.accelerator.id for r in readings if r.setting.mode == setting.mode}),
            counted=setting.work is not None,
        )

    def factor(self, situation: Situation) -> float:
        """Of a situation that was never scored, that of the next with fewer measured cards, else the largest."""
        fewer = (situation.with_measured(k) for k in range(min(situation.measured, MOST_K), -1, -1))
        found = next((self.factors[key] for key in fewer if key in self.factors), None)
        return max(self.factors.values(), default=1.0) if found is None else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The rate of one device. nominal_per_s: by the roofline alone; factors: part of TOLD -> what it multiplies it by
    (they and `limit` give the rate). pull: index of a reading -> how much of its deviation the answer follows.
    disagree: log sd added since the person's runs and the published rows do not agree. apart: a measured rate as it is,
    of a device that is not modelled."""

    rate_per_s: Estimate
    situation: Situation
    nominal_per_s: float
    factors: Mapping[str, float]
    limit: float
    pull: tuple[float, ...]
    disagree: float = 0.0
    apart: bool = False


def answer(
    model: Model, asked: Sequence[Setting], seen: Sequence[Reading] = (), given: Sequence[Reading] = ()
) -> list[Told | Message]:
    """asked: one device each, all of one workload. seen: every reading of it among the rows of the fit; given: others
    of it; each of a setting that `refusal` lets pass. A message says why there is no answer."""
    readings = (*seen, *given)
    refused = [refusal(s) or (None if readings else unknown(s)) for s in asked]
    able = [s for s, why in zip(asked, refused, strict=True) if why is None]
    if not able:
        return [why for why in refused if why is not None]
    joint = model.posterior.joint(able, seen, given)
    doubts = _doubts(model, seen, given)
    told = iter([_told(model, joint, i, s, readings, doubts) for i, s in enumerate(able)])
    return [next(told) if why is None else why for why in refused]


def refusal(setting: Setting) -> Message | None:
    """Why this cannot be predicted there, or None."""
    card = setting.accelerator
    if why := unsupported(setting.precision, card):
        return why
    if not runnable(card, setting.arithmetic):
        return Message(
            "no source gives the bandwidth or rates of {name}, and the job was not measured there", name=card.name
        )
    return None


def unknown(setting: Setting) -> Message | None:
    """Why nothing can be said of a workload that was measured nowhere, or None."""
    if setting.work is not None:
        return None
    return Message("nobody counted the work of {workload}, and it was measured nowhere", workload=setting.workload)


def _told(
    model: Model, joint: Joint, i: int, setting: Setting, readings: Sequence[Reading], doubts: tuple[float, float]
) -> Told:
    situation = model.situation(setting, readings)
    factors = {part: float(np.exp(value)) for part, value in zip(TOLD, joint.parts[i], strict=True)}
    whole = float(joint.mean[i])
    spread = _spread(model, joint, i, setting, situation)
    here = _here(setting, readings)
    doubt = hypot(doubts[0] / 2 if here else doubts[0], doubts[1])
    if doubt:
        spread[PUBLISHED_DISAGREE if doubts[0] > doubts[1] else RUNS_DISAGREE] = doubt
    limit = 0.0 if here else min(0.0, _limit(setting) - whole)
    basis = "measured" if here else "predicted"
    return Told(
        rate_per_s=Estimate(value=exp(whole + limit), spread=tuple(sorted(spread.items())), basis=basis),
        situation=situation,
        nominal_per_s=float(np.exp(joint.nominal[i])),
        factors=factors,
        limit=exp(limit),
        pull=tuple(joint.pull[i].tolist()),
        disagree=doubt,
    )


def measured_apart(setting: Setting, readings: Sequence[Reading]) -> Told:
    """Of a device that cannot be modelled: the reading at the nearest batch."""
    distance = [abs(log(r.setting.batch / setting.batch)) for r in readings]
    nearest = distance.index(min(distance))
    found = readings[nearest]
    spread = {
        f"hosts differ, {setting.accelerator.id}": hypot(APART_SD, found.log_sd),
        "batch differs": distance[nearest] * BATCH_SD,
    }
    named = tuple((name, sd) for name, sd in spread.items() if sd > LEAST_SD)
    return Told(
        rate_per_s=Estimate(value=found.samples_per_s, spread=named, basis="measured"),
        situation=Situation(family_known=False, card_known=True, measured=1),
        nominal_per_s=found.samples_per_s,
        factors={},
        limit=1.0,
        pull=tuple(float(i == nearest) for i in range(len(readings))),
        apart=True,
    )


APART_SD, BATCH_SD = 0.06, 0.2
"""Where nothing is known of a device: between hosts, and for each factor e between batches."""


def _here(setting: Setting, readings: Sequence[Reading]) -> bool:
    """Was it measured on this very card in this arithmetic?"""
    return any(
        r.setting.mode == setting.mode
        and r.setting.accelerator.id == setting.accelerator.id
        and r.setting.arithmetic == setting.arithmetic
        for r in readings
    )


def _limit(setting: Setting) -> float:
    """ln samples/s that the data sheet allows; infinite without counts."""
    card = setting.accelerator
    on = rates(card, setting.arithmetic)
    if setting.work is None or on is None:
        return float("inf")
    share = 1 / 3 if setting.mode == "infer" else 1.0
    convolves = KIN.get(setting.family or "", setting.family) == "cnn"
    peak = on.peak_tflops * (WINOGRAD if convolves and not on.tensor else 1.0)
    return -log(share * ideal_seconds(setting.work, replace(on, peak_tflops=peak)))


WINOGRAD = 2.25
"""Without tensor cores, 3 × 3 convolutions need so many fewer multiplications than counted: F(2 × 2, 3 × 3), A. Lavin
and S. Gray, CVPR 2016, §4.1."""


def _spread(model: Model, joint: Joint, i: int, setting: Setting, situation: Situation) -> dict[str, float]:
    """Named log standard deviations, multiplied by the factor of the situation."""
    factor, card = model.factor(situation), setting.accelerator
    deviation = sqrt(max(float(joint.variance[i]), 0.0))
    named = {
        _name(part, setting): factor * deviation * sqrt(float(share))
        for part, share in zip(TOLD, joint.shares[i], strict=True)
    }
    named[f"hosts differ, {card.id}"] = factor * float(joint.noise[i])
    if extra := _untried(model, card):
        named[f"what {card.architecture} reaches"] = hypot(named[f"what {card.architecture} reaches"], extra)
    if _derived(setting):
        named[f"matrix rate of {card.id}"] = DERIVED_RATE_SD
    return {name: sd for name, sd in named.items() if sd > LEAST_SD}


LEAST_SD = 1e-4
"""Smaller errors are not worth a name."""


def _name(part: str, setting: Setting) -> str:
    card = setting.accelerator
    return {
        "sheet": f"data sheet of {card.id}",
        "architecture": f"what {card.architecture} reaches",
        "card": f"what {card.id} reaches",
        "network": f"networks like {setting.workload}",
        "software": "software and memory format",
        OWN_WAYS: f"own ways of {setting.workload}",
    }[part]


def _untried(model: Model, card: Accelerator) -> float:
    if card.architecture in model.posterior.architectures:
        return 0.0
    return NEW_ARCHITECTURE_SD if card.architecture in SINCE_AMPERE else UNTRIED_SD


def _derived(setting: Setting) -> bool:
    on: Rates | None = rates(setting.accelerator, setting.arithmetic)
    return on is not None and on.derived


def _doubts(model: Model, seen: Sequence[Reading], given: Sequence[Reading]) -> tuple[float, float]:
    """Log sd to add where the person's runs lie further from what the published rows say than both allow, and where
    they lie so from one another: from 0 up to what puts half of the deviation into the 80 % interval."""
    mine = [r for r in given if r.yours]
    others = [r for r in given if not r.yours]
    if not mine:
        return 0.0, 0.0
    published = _doubt(model, mine, seen, others)
    if len(mine) < 2:
        return published, 0.0
    each = (_doubt(model, [r], seen, [*others, *mine[:i], *mine[i + 1 :]]) for i, r in enumerate(mine[:MOST_RUNS]))
    return published, max(each)


MOST_RUNS = 8
"""So many runs are held against one another."""


def _doubt(model: Model, runs: Sequence[Reading], seen: Sequence[Reading], given: Sequence[Reading]) -> float:
    joint = model.posterior.joint([r.setting for r in runs], seen, given)
    off = np.array([log(r.samples_per_s) for r in runs]) - joint.mean
    known = (*seen, *given)
    sd = joint.log_sd * np.array([model.factor(model.situation(r.setting, known)) for r in runs])
    far = np.abs(off) / np.hypot(np.hypot(sd, [r.log_sd for r in runs]), SETUP_SD)
    worst = int(np.argmax(far))
    return 0.0 if far[worst] <= DOUBT else float((1 - (DOUBT / far[worst]) ** 2) * np.abs(off[worst]) / (2 * Z80))
