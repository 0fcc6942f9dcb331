"""Split G: a step profiled on one GPU, told on another by a fit that has not seen the model, or its whole family.

The scales are fitted anew without what is left out, on all pairs of GPUs. The factor of an interval comes from the
predictions of what else was left out: no error of a model (or family) is in its own factor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import exp
from typing import NamedTuple

import numpy as np

from gpuwise.estimate import Z80
from gpuwise.model import Accelerator
from gpuwise.predict.profile import CLASSES, Profiles, pace, predicted
from gpuwise.predict.profile_fit import OUT, fit_profile
from gpuwise.predict.profile_fitted import FACTORS
from gpuwise.predict.score import Score
from gpuwise.predict.tables import ALL, Draw, drawn

ROUNDS_DRAWN = 6
"""Of a fit, where only some of the questions are scored."""

IDLE = CLASSES.index("idle")


class Raw(NamedTuple):
    """A prediction before its interval factor. out: model or family; name: which one; row, anchor, target: places among
    the rows and their GPUs; error: ln ratio told less the measured one."""

    out: str
    name: str
    row: int
    anchor: int
    target: int
    pace: str
    log: float
    log_sd: float
    error: float


def profile_scores(rows: Profiles, accelerators: Mapping[str, Accelerator], draw: Draw = ALL) -> list[Score]:
    """Every configuration on every pair of GPUs, in samples/s on the target, model out and family out.

    Tags: left_out (model or family), workload, family, anchor, target, pace. A draw leaves one model and one family
    out, and takes the shipped factors.
    """
    if draw.most is None:
        every = raws(rows)
        own = {key: factors([r for r in every if (r.out, r.name) != key]) for key in {(r.out, r.name) for r in every}}
        return [_score(rows, accelerators, raw, own[raw.out, raw.name]) for raw in every]
    one = Draw(most=1, seed=draw.seed)
    some = [r for out in OUT for name in drawn(_names(rows, out), one) for r in _without(rows, out, name, ROUNDS_DRAWN)]
    return [_score(rows, accelerators, raw, FACTORS) for raw in drawn(some, draw)]


def raws(rows: Profiles) -> list[Raw]:
    """Every model left out, then every family."""
    return [raw for out in OUT for name in _names(rows, out) for raw in _without(rows, out, name)]


def factors(found: Sequence[Raw]) -> dict[str, float]:
    """On the sd, so that 80 % intervals hold 80 %: "model busy", "family waiting", …"""
    spread: dict[str, list[float]] = defaultdict(list)
    for raw in found:
        spread[f"{raw.out} {raw.pace}"].append(abs(raw.error) / raw.log_sd)
    return {key: float(np.quantile(each, 0.8)) / Z80 for key, each in spread.items()}


def _names(rows: Profiles, out: str) -> list[str]:
    return [str(name) for name in np.unique(rows.workload if out == "model" else rows.family)]


def _without(rows: Profiles, out: str, name: str, rounds: int | None = None) -> Iterator[Raw]:
    left = (rows.workload if out == "model" else rows.family) == name
    seen, asked, places = rows.only(~left), rows.only(left), np.flatnonzero(left).tolist()
    scales = fit_profile(seen, rounds) if rounds else fit_profile(seen)
    for pair in permutations(range(len(rows.gpus)), 2):
        mean, sd = predicted(seen, asked, pair, scales)
        error = mean - np.log(asked.step_s[:, pair[1]] / asked.step_s[:, pair[0]])
        for k, row in enumerate(places):
            waits = pace(float(asked.shares[k, pair[0], IDLE]))
            yield Raw(out, name, row, *pair, waits, float(mean[k]), float(sd[k]), float(error[k]))


def _score(rows: Profiles, accelerators: Mapping[str, Accelerator], raw: Raw, factor: Mapping[str, float]) -> Score:
    anchor, target = (accelerators[rows.gpus[place]] for place in (raw.anchor, raw.target))
    before = float(rows.batch[raw.row] / rows.step_s[raw.row, raw.anchor])
    rate, half = before * exp(-raw.log), Z80 * raw.log_sd * factor[f"{raw.out} {raw.pace}"]
    return Score(
        truth=float(rows.batch[raw.row] / rows.step_s[raw.row, raw.target]),
        predicted=rate,
        low=rate * exp(-half),
        high=rate * exp(half),
        naive={rule: before * ratio for rule, ratio in _sheets(anchor, target).items()},
        tags={
            "left_out": raw.out,
            "workload": str(rows.workload[raw.row]),
            "family": str(rows.family[raw.row]),
            "anchor": anchor.id,
            "target": target.id,
            "pace": raw.pace,
        },
    )


def _sheets(anchor: Accelerator, target: Accelerator) -> dict[str, float]:
    """Ratios of data sheets in fp32; none where one says nothing."""
    rates = (anchor.fp32_tflops, target.fp32_tflops, anchor.bandwidth_gb_per_s, target.bandwidth_gb_per_s)
    peak = rates[1] / rates[0] if rates[0] and rates[1] else None
    bandwidth = rates[3] / rates[2] if rates[2] and rates[3] else None
    if peak is None or bandwidth is None:
        return {}
    return {"peak": peak, "bandwidth": bandwidth, "geometric_mean": (peak * bandwidth) ** 0.5}
