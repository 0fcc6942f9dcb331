"""The factors of `scaling` from measured runs: what a link, a workload and a card make a step lose.

Robust least squares on ln(n · rate of one / rate of n), Student's t with four degrees of freedom (Lange, Little and
Taylor, JASA 84, 1989, by reweighting), Gauss-Newton, a normal prior around each logarithm. `make fit` writes the result
to `scaling_fitted.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from gpuwise.estimate import Z80
from gpuwise.model import Accelerator, BenchmarkResult
from gpuwise.predict.scaling import (
    LEAST,
    MOST,
    NOISE,
    ROUNDS,
    SETTLED,
    SHARE,
    STEPS,
    Fitted,
    Losses,
    Run,
    sharing_of,
    uneven_terms,
    wait_offset,
    wait_terms,
)

Floats = NDArray[np.float64]

CLASSES = {"NVLink": (-4.6, -4.8), "PCIe": (-4.6, -4.0), "PCIe, consumer": (-4.1, -2.2)}
"""Around which ln s and ln c of a class are sought, widely: 1 %; bus rates of 120, 55 and 9 GB/s."""

CLASS_SD, CARD_SD, WORK_SD, OTHER_SD = 1.0, (0.3, 0.4), (0.8, 0.6), 0.5
UNCLEAR, UNCLEAR_SD = ("transformerxlbase", "transformerxllarge", "ncf", "tacotron2", "waveglow"), 3.0
"""Workloads that exchange gradients once in an unknown number of such steps, or not while the backward pass runs."""

DEGREES = 4.0

SITUATIONS = ("card", "workload", "own")
SHOWN = {"card": "own", "workload": "workload"}
"""What leaving out a card shows beside."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A run that was left out: its efficiency, as measured and as predicted."""

    run: Run
    efficiency: float
    situation: str

    @property
    def log_error(self) -> float:
        return -self.run.lost_log - log(self.efficiency)


def runs_of(rows: Iterable[BenchmarkResult], accelerators: Mapping[str, Accelerator]) -> list[Run]:
    """The runs on several devices of which one was measured alike."""
    found = [row for row in rows if row.workload in STEPS and row.accelerator in accelerators]
    ones: dict[tuple[object, ...], float] = {}
    for row in found:
        if row.accelerators == 1:
            ones.setdefault(_alike(row), row.samples_per_s)
    return [
        Run(
            sharing_of(row, accelerators[row.accelerator], one, STEPS[row.workload]),
            log(row.accelerators * one / row.samples_per_s),
        )
        for row in found
        if row.accelerators > 1 and (one := ones.get(_alike(row)))
    ]


def _alike(row: BenchmarkResult) -> tuple[object, ...]:
    return row.workload, row.accelerator, row.precision, row.batch_per_accelerator, row.software


def fit_classes(rows: Iterable[BenchmarkResult], accelerators: Mapping[str, Accelerator]) -> Fitted:
    """All factors, and how far predictions of left-out cards and workloads, and of 4 and more from 2, are off."""
    return fit_runs(runs_of(rows, accelerators))


def fit_runs(runs: Sequence[Run], situations: Sequence[str] = SITUATIONS) -> Fitted:
    """`fit_classes` of runs at hand. situations: those whose spread is wanted."""
    misses = [miss for by in ("card", "workload") if {by, SHOWN[by]} & {*situations} for miss in left_out(runs, by)]
    return {**fit_factors(runs), **_spreads(misses)}


def fit_factors(runs: Sequence[Run]) -> Fitted:
    """Name of a factor -> its logarithm."""
    terms = [(uneven_terms(run.sharing), wait_terms(run.sharing)) for run in runs]
    names = sorted({name for pair in terms for part in pair for name in part})
    uneven, wait = (np.array([[pair[i].get(n, 0.0) for n in names] for pair in terms]) for i in (0, 1))
    offset, lost = np.array([wait_offset(r.sharing) for r in runs]), np.array([r.lost_log for r in runs])
    around, sd = (np.array(values) for values in zip(*map(_prior, names), strict=True))
    found = around.copy()
    for _ in range(ROUNDS):
        change = _step(found, uneven, wait, offset, lost, around, sd)
        found = found + change
        if np.abs(change).max() < SETTLED:
            break
    return dict(zip(names, map(float, found), strict=True))


def _step(
    found: Floats, uneven: Floats, wait: Floats, offset: Floats, lost: Floats, around: Floats, sd: Floats
) -> Floats:
    """One of Gauss-Newton, each row weighted by how usual its error is."""
    slow = np.exp(np.clip(uneven @ found, LEAST, MOST))[:, None]
    late = np.exp(np.clip(wait @ found + offset, LEAST, MOST))[:, None]
    step = 1 + slow + late
    slope, error = (uneven * slow + wait * late) / step, lost - np.log(step[:, 0])
    variance = NOISE**2 + (SHARE * (1 - 1 / step[:, 0])) ** 2
    weight = (DEGREES + 1) / (DEGREES + error**2 / variance) / variance
    normal = slope.T @ (slope * weight[:, None]) + np.diag(sd**-2)
    gradient = slope.T @ (weight * error) - (found - around) / sd**2
    return np.clip(np.linalg.solve(normal, gradient), -1, 1)


def _prior(name: str) -> tuple[float, float]:
    """Middle and sd of a factor's logarithm."""
    kind, _, what = name.partition(" ")
    i = ("uneven", "wait").index(kind)
    if what in CLASSES:
        return CLASSES[what][i], CLASS_SD
    if what in STEPS:
        return 0.0, UNCLEAR_SD if what in UNCLEAR and kind == "wait" else WORK_SD[i]
    if what.startswith("growth") or what in ("bridge", "old", "half"):
        return 0.0, OTHER_SD
    return 0.0, CARD_SD[i]


def left_out(runs: Sequence[Run], by: str) -> Iterator[Miss]:
    """Every run, predicted without those of its card, or of its workload. by: card, workload.

    Those of a card on more than two are predicted once more, with one run on two of it as the person's own.
    """
    for name in sorted({getattr(run.sharing, by) for run in runs}):
        fitted = fit_factors([run for run in runs if getattr(run.sharing, by) != name])
        for run in (run for run in runs if getattr(run.sharing, by) == name):
            yield Miss(run, told(fitted, run, ()), by)
            if by == "card" and (two := on_two(run, runs)):
                yield Miss(run, told(fitted, run, (two,)), "own")


def on_two(run: Run, runs: Iterable[Run]) -> Run | None:
    """The same job on two of the same cards with the same link, batch and software; None if the run is on two."""
    wanted = run.sharing._replace(n=2)
    return next((other for other in runs if other.sharing == wanted != run.sharing), None)


def told(fitted: Fitted, run: Run, own: tuple[Run, ...]) -> float:
    """Efficiency that a person is told who has these runs of his own."""
    return Losses.made(run.sharing.workload, own, fitted).efficiency(run.sharing)[0]


def _spreads(missed: Sequence[Miss]) -> dict[str, float]:
    """Noise and share of each situation and class, so that 80 % of the left-out runs lie inside."""
    found: dict[str, float] = {}
    for situation in SITUATIONS:
        near = [m for m in missed if m.situation == situation]
        for name in (*CLASSES, "bridge"):
            same = [m for m in near if m.run.sharing.link == name or m.run.sharing.link.endswith(f", {name}")]
            noise, share = _spread(same if len(same) >= ENOUGH else near)
            found |= {f"noise {situation} {name}": noise, f"share {situation} {name}": share}
    return found


ENOUGH = 20
"""Runs by which a class is judged alone."""

_NOISES, _SHARES = np.geomspace(0.002, 0.05, 12), np.geomspace(0.03, 1.5, 12)
_LEAST: tuple[float, float] = (0.01, 0.3)


def _spread(missed: Sequence[Miss]) -> tuple[float, float]:
    """The likeliest noise and share (Student's t), scaled until 80 % of the errors lie inside."""
    if not missed:
        return _LEAST
    errors = np.array([m.log_error for m in missed])
    growth, lost = np.log2([m.run.sharing.n for m in missed]), np.array([1 - m.efficiency for m in missed])
    pairs = [(float(a), float(b)) for a in _NOISES for b in _SHARES]
    noise, share = max(pairs, key=lambda pair: _likelihood(errors, np.hypot(pair[0] * growth, pair[1] * lost)))
    scale = float(np.quantile(np.abs(errors) / np.hypot(noise * growth, share * lost), 0.8)) / Z80
    return noise * scale, share * scale


def _likelihood(errors: Floats, sd: Floats) -> float:
    return float(-np.sum(np.log(sd) + (DEGREES + 1) / 2 * np.log1p((errors / sd) ** 2 / DEGREES)))


MODULE = '''"""Factors of `scaling`, as natural logarithms: written by `make fit` (`scaling_fit.fit_classes`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FITTED: Mapping[str, float] = MappingProxyType(
    {{
{lines}
    }}
)
'''


def as_module(fitted: Fitted) -> str:
    """The text of `scaling_fitted.py`."""
    return MODULE.format(lines="\n".join(f'        "{name}": {value:.4f},' for name, value in sorted(fitted.items())))
