"""How many epochs until training ends: P10, P50, P90 of a number that seeds, batch and schedule decide.

    known epochs                exact
    early stopping (`early`)    a range with its patience, or the learning curve of a run continued
    target accuracy             a run's curve (`at_accuracy`), or the table of reference convergence points (`of_table`)
    earlier runs (`of_runs`)    their epochs, those that never got there counted as infinite

Epochs grow with the global batch, batch a GPU × GPUs: ln epochs = … + g · ln batch, g of the table where the task has
one, else `GROWTH` (mlcommons/logging, reference convergence points, 512 rows: 0.24 resnet, 0.17 bert, 0.33 rnnt, 0.65
ssd, 0.08 maskrcnn). Below the smallest batch that was measured they stay: small batches save no epochs.

Curves: error(e) = a + b·e^(-c), one law for each a and c of a grid with b by least squares, weighted by likelihood (an
ensemble of power laws, as in J. Hestness et al., arXiv:1712.00409, §4, for data). Warm-up is cut off first.

Test values: runs of 61, 63 and one that did not converge have P50 63 and no P90 (UC-060); 40 epochs at a batch of 256
are 40·4^0.25 = 56.6 at 1,024; early stopping 5..100 with patience 10 has P50 √(10·100) = 31.6 where nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, hypot, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import Message, MissingEvidence
from gpuwise.estimate import Z80, Estimate
from gpuwise.model import Workload
from gpuwise.stopping import EarlyStop, EpochReference, EpochsAt, Stop
from gpuwise.units import Fraction, Seconds

Floats = NDArray[np.float64]

GROWTH, GROWTH_SD = 0.25, 0.176
"""Of ln epochs with ln global batch where the table has no such task: 0.05 to 0.5 as 80 % interval."""
ONE_RUN_SD = 0.15
"""Log sd of the epochs of another run where one is known: reference runs have 1 to 5 % with ssd and resnet, 9 % with
diffusion, 20 to 30 % with unet3d."""
LEAST_CV: Fraction = 0.03
"""Of epochs that the table calls equal in every run: they are counted in whole evaluations."""
TO_TARGET, WITH_BATCH = "epochs to target", "growth of epochs with the batch"
"""Names of errors: shared by all offers, so they cancel where two are compared."""

WARM_UP: Fraction = 0.1
LEAST_WARM_UP = 2
"""Epochs at the begin of a curve that are left out, a tenth and two at least: the learning rate still rises there."""
LEAST_POINTS = 5
"""Epochs after warm-up below which a curve is not continued."""
LEVELS, POWERS = 60, 40
"""Grid of the ensemble: limits of the error, and powers between 0.1 and 3."""
DRAWS = 500
FURTHEST = 50
"""A curve is not continued beyond so many times its length: further targets count as never reached."""
SEED = 20261130


# ---- the number of samples ----


def samples_needed(workload: Workload, accelerators: int) -> Estimate:
    """Samples until training ends on so many accelerators, with the errors that offers share; exact without a stop."""
    stop = workload.stop
    if stop is None:
        return Estimate(value=workload.total_samples, basis="measured")  # a count weakens no basis
    global_batch = workload.batch_per_accelerator * accelerators
    scale, beyond = _scale(stop, global_batch)
    middle = stop.p50_epochs * scale
    if stop.most_epochs is not None:
        middle = min(middle, stop.most_epochs)
    spread = {TO_TARGET: log_sd(stop), WITH_BATCH: stop.growth_sd * beyond}
    named = tuple(sorted((name, sd) for name, sd in spread.items() if sd))
    return Estimate(value=workload.samples * middle, spread=named, basis=stop.basis)


def log_sd(stop: Stop) -> float:
    """Of the log-normal law that P10 and P90 stand for; without a P90 the lower half says all that is known."""
    if stop.open_ended:
        return log(stop.p50_epochs / stop.p10_epochs) / Z80
    return log(stop.p90_epochs / stop.p10_epochs) / (2 * Z80)


def _scale(stop: Stop, global_batch: float) -> tuple[float, float]:
    """Epochs at a global batch over those at the least batch of `at`; and how far it lies beyond the last, ln."""
    if not stop.at:
        return 1.0, 0.0
    x = np.log([point.global_batch for point in stop.at])
    y = np.maximum.accumulate(np.log([point.epochs for point in stop.at]))
    where = log(global_batch)
    beyond = max(0.0, where - float(x[-1]))
    return exp(float(np.interp(where, x, y)) - float(y[0]) + stop.growth * beyond), beyond


# ---- what the epochs are known from ----


def of_runs(reached_epochs: Sequence[float], failed: int = 0, *, global_batch: float | None = None) -> Stop:
    """Of earlier runs to the same end. failed: runs that never got there; they count as infinite and are not left out
    of the mean. MissingEvidence where none or less than half of them got there.

    Up to one failure in ten the law is log-normal, with the wider spread of few runs; above, quantiles of the runs.
    """
    reached = sorted(reached_epochs)
    n = len(reached) + failed
    if not reached or len(reached) * 2 < n:
        raise MissingEvidence(
            Message("{reached} of {n} runs reached the target: no median can be told.", reached=len(reached), n=n),
            Message("Lower the target, or state the epochs: --epochs."),
        )
    notes = [Message("from {n} runs, {reached} of which reached the target", n=n, reached=len(reached))]
    share = len(reached) / n
    logs = np.log(reached)
    sd = max(float(np.std(logs, ddof=1)), LEAST_CV) * sqrt(1 + 1 / len(reached)) if len(reached) > 1 else ONE_RUN_SD
    middle = float(reached[ceil(n / 2) - 1]) if failed else exp(float(logs.mean()))
    if failed:
        notes.append(_failed(failed, n))
    high = max(reached[-1], middle) if share < 0.9 else middle * exp(Z80 * sd)
    return Stop(
        kind="runs",
        p10_epochs=min(middle, middle * exp(-Z80 * sd)),
        p50_epochs=middle,
        p90_epochs=high,
        at=() if global_batch is None else (EpochsAt(global_batch=global_batch, epochs=middle),),
        growth=GROWTH,
        growth_sd=GROWTH_SD,
        reached_fraction=share,
        basis="measured",
        notes=tuple(notes),
    )


def _failed(failed: int, n: int) -> Message:
    return Message("{failed} of {n} runs never got there: they count as infinite, not as left out", failed=failed, n=n)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTime:
    """Published times to a target, made fit for a bill. p90_s: the least it can be where `open_ended`.

    excluded_s: phases that the published time leaves out, added back here. notes: what is still not in it."""

    p10_s: Seconds
    p50_s: Seconds
    p90_s: Seconds
    open_ended: bool
    excluded_s: Seconds
    notes: tuple[Message, ...]


def reference_time(
    times_s: Sequence[Seconds], failed: int = 0, *, excluded_s: Seconds = 0.0, left_out: str = ""
) -> ReferenceTime:
    """Times of reference runs with the excluded phases (initialisation, unpacking) added back: those are billed too.

    Test value: 61 and 63 min, one failure, 25 min excluded: P50 88 min, P90 more than 88 min (UC-060).
    """
    runs = of_runs(times_s, failed)
    notes = list(runs.notes)
    if excluded_s:
        notes.append(
            Message("the published time leaves out {minutes:.0f} min ({what}): added", minutes=excluded_s / 60,
                    what=left_out or Message("initialisation"))
        )  # fmt: skip
    return ReferenceTime(
        p10_s=runs.p10_epochs + excluded_s,
        p50_s=runs.p50_epochs + excluded_s,
        p90_s=runs.p90_epochs + excluded_s,
        open_ended=runs.open_ended,
        excluded_s=excluded_s,
        notes=tuple(notes),
    )


def of_table(rows: Sequence[EpochReference], task: str, target_fraction: Fraction, samples: int) -> Stop:
    """Of the reference convergence points of a known task, one row a global batch. samples: of an epoch.

    A lower target than the table's is taken as the table's: at most so long. UnknownName or MissingEvidence where the
    table does not know the task, or only a lower target.
    """
    known = sorted((r for r in rows if r.task == task), key=lambda r: r.global_batch)
    if not known:
        raise MissingEvidence(
            Message("The table of epochs to a target knows no task {task}.", task=task),
            Message("It knows {names}.", names=", ".join(sorted({r.task for r in rows}))),
        )
    goal = known[0].target_fraction
    if target_fraction > goal + 1e-9:
        raise MissingEvidence(
            Message(
                "Reference runs of {task} end at {goal:.2f} %: nothing is known beyond.", task=task, goal=100 * goal
            ),
            Message("Measure a run of your own and give it: --measured."),
        )
    growth, growth_sd = growth_of(known)
    cv = max(LEAST_CV, max(r.cv_fraction for r in known))
    first = known[0].samples_to_target / samples
    notes = [
        Message("{task}: reference runs to {goal:.2f} % at global batches of {low:,} to {high:,} ({source})", task=task,
                goal=100 * goal, low=known[0].global_batch, high=known[-1].global_batch, source=known[0].source)
    ]  # fmt: skip
    if target_fraction < goal - 1e-9:
        notes.append(Message("a lower target needs fewer epochs: these are at most as many"))
    return Stop(
        kind="target",
        p10_epochs=first * exp(-Z80 * cv),
        p50_epochs=first,
        p90_epochs=first * exp(Z80 * cv),
        at=tuple(EpochsAt(global_batch=r.global_batch, epochs=r.samples_to_target / samples) for r in known),
        growth=growth,
        growth_sd=growth_sd,
        basis="published",
        notes=tuple(notes),
    )


def growth_of(rows: Sequence[EpochReference]) -> tuple[float, float]:
    """d ln samples / d ln batch with its sd: the slope of the rows and the usual one, each by its precision."""
    if len(rows) < 3:
        return GROWTH, GROWTH_SD
    x = np.log([float(r.global_batch) for r in rows])
    y = np.log([r.samples_to_target for r in rows])
    x = x - x.mean()
    slope = float((x * y).sum() / (x * x).sum())
    left = y - y.mean() - slope * x
    own = max(float((left**2).sum()) / (len(rows) - 2), LEAST_CV**2) / float((x * x).sum())
    weight = (1 / own) / (1 / own + 1 / GROWTH_SD**2)
    return max(weight * slope + (1 - weight) * GROWTH, 0.0), (1 / own + 1 / GROWTH_SD**2) ** -0.5


def early(rule: EarlyStop, curve_fraction: Sequence[float] = (), *, global_batch: float | None = None) -> Stop:
    """Early stopping by patience. curve_fraction: held-out accuracy after each epoch of a run that did not end so.

    Without a curve long enough the end is log-uniform between the first epoch at which the rule can end and the last:
    nobody knows more, and the notes say so.
    """
    lowest = max(rule.least_epochs, rule.patience_epochs)
    if len(curve_fraction) >= _shortest_curve():
        laws = PowerLaws.of(curve_fraction)
        ends = laws.stops(rule, np.asarray(curve_fraction))
        found = (float(q) for q in np.quantile(ends, (0.1, 0.5, 0.9), method="inverted_cdf"))
        p10, p50, p90 = (min(max(q, lowest), rule.most_epochs) for q in _another_run(*found))
        ended = _of_curve((p10, p50, p90), global_batch, laws.notes)
        return replace(ended, kind="early stopping", most_epochs=rule.most_epochs)
    p10, p50, p90 = (lowest * (rule.most_epochs / lowest) ** q for q in (0.1, 0.5, 0.9))
    note = Message(
        "nothing says when accuracy stops growing: any epoch from {low:g} to {high:g} is as likely, by its logarithm; "
        "a run's learning curve narrows it (--measured)",
        low=lowest,
        high=rule.most_epochs,
    )
    return Stop(
        kind="early stopping",
        p10_epochs=p10,
        p50_epochs=p50,
        p90_epochs=p90,
        most_epochs=rule.most_epochs,
        notes=(note,),
    )


def at_accuracy(
    curve_fraction: Sequence[float], target_fraction: Fraction, *, global_batch: float | None = None
) -> Stop:
    """Epochs to an accuracy by a run's own curve: read off where it got there, else the curve continued.

    MissingEvidence where the curve is too short after warm-up, or most of its continuations never get there.
    """
    reached = [epoch for epoch, accuracy in enumerate(curve_fraction, 1) if accuracy >= target_fraction]
    if reached:
        found = of_runs([float(reached[0])], global_batch=global_batch)
        note = Message("your run reached it after {epochs} epochs", epochs=reached[0])
        return replace(found, kind="target", notes=(note,))
    if len(curve_fraction) < _shortest_curve():
        raise MissingEvidence(
            Message(
                "The learning curve has {n} epochs: {least} are needed to continue it, the first {cut} are warm-up.",
                n=len(curve_fraction),
                least=_shortest_curve(),
                cut=LEAST_WARM_UP,
            ),
            Message("Measure longer, or state the epochs: --epochs."),
        )
    return _continued(PowerLaws.of(curve_fraction), target_fraction, global_batch)


def _continued(laws: PowerLaws, target_fraction: Fraction, global_batch: float | None) -> Stop:
    """Quantiles of the laws' epochs; a law that never gets there counts as infinite."""
    needed = np.sort(laws.epochs_to(target_fraction))
    share = float((needed < inf).mean())
    if share < 0.5:
        level = 100 * (1 - laws.level())
        raise MissingEvidence(
            Message("The learning curve does not lead to {target:.1f} %: it levels off near {level:.1f} %.",
                    target=100 * target_fraction, level=level),
            Message("Lower the target, or change what is trained."),
        )  # fmt: skip
    last = int((needed < inf).sum()) - 1
    p10, p50, p90 = _another_run(*(float(needed[min(int(q * DRAWS), last)]) for q in (0.1, 0.5, 0.9)))
    never = Message("{percent:.0f} % of its continuations never get there", percent=100 * (1 - share))
    notes = laws.notes if share >= 0.9 else (*laws.notes, never)
    return replace(_of_curve((p10, p50, p90), global_batch, notes), reached_fraction=share)


def _of_curve(quantiles: tuple[float, float, float], global_batch: float | None, notes: tuple[Message, ...]) -> Stop:
    """P10, P50 and P90 of the epochs of another run, by a curve continued; with the usual growth by global batch."""
    p10, p50, p90 = quantiles
    return Stop(
        kind="target",
        p10_epochs=p10,
        p50_epochs=p50,
        p90_epochs=p90,
        at=() if global_batch is None else (EpochsAt(global_batch=global_batch, epochs=p50),),
        growth=GROWTH,
        growth_sd=GROWTH_SD,
        basis="predicted",
        notes=notes,
    )


def _another_run(p10: float, p50: float, p90: float) -> tuple[float, float, float]:
    """Quantiles of a run with another seed, where the curve is of one run."""
    below, above = (hypot(log(side), Z80 * ONE_RUN_SD) for side in (p50 / p10, p90 / p50))
    return p50 * exp(-below), p50, p50 * exp(above)


def _shortest_curve() -> int:
    return LEAST_WARM_UP + LEAST_POINTS


# ---- curves ----


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerLaws:
    """error(e) = level + scale · e^(-power): n laws with their weights (n,), and the noise of one epoch around them."""

    levels: Floats
    scales: Floats
    powers: Floats
    weights: Floats
    noise: float
    length: int
    notes: tuple[Message, ...]

    @staticmethod
    def of(curve_fraction: Sequence[float]) -> PowerLaws:
        """Fitted to what follows warm-up. The likelihood is normal with unknown noise: weight ∝ RSS^(-n/2)."""
        cut = max(LEAST_WARM_UP, ceil(WARM_UP * len(curve_fraction)))
        error = 1 - np.asarray(curve_fraction[cut:], np.float64)
        epoch = np.arange(cut + 1, len(curve_fraction) + 1, dtype=np.float64)
        level, power = (
            g.ravel() for g in np.meshgrid(np.linspace(0, error.min(), LEVELS), np.geomspace(0.1, 3, POWERS))
        )
        shape = epoch ** -power[:, None]
        above = error - level[:, None]
        scale = (shape * above).sum(1) / (shape**2).sum(1)
        left = ((above - scale[:, None] * shape) ** 2).sum(1) + len(error) * FLOOR**2
        weights = np.where(scale > 0, np.exp(-0.5 * len(error) * np.log(left / left.min())), 0.0)
        best = float(left[weights.argmax()])
        return PowerLaws(
            levels=level,
            scales=scale,
            powers=power,
            weights=weights / weights.sum(),
            noise=sqrt(best / max(len(error) - 3, 1)),
            length=len(curve_fraction),
            notes=(_cut(len(curve_fraction), cut),),
        )

    def level(self) -> float:
        """The error that is never undercut, on average."""
        return float((self.levels * self.weights).sum())

    def epochs_to(self, target_fraction: Fraction) -> Floats:
        """Epoch at which each of DRAWS runs that go on from the curve first has the accuracy, shape (DRAWS,); inf where
        none of FURTHEST times the curve's epochs has. The noise of its epochs brings a run there before its law is."""
        later = self._accuracies(np.arange(self.length + 1, int(FURTHEST * self.length) + 1, dtype=np.float64))
        there = later >= target_fraction
        return np.where(there.any(1), self.length + 1.0 + there.argmax(1), inf)

    def _accuracies(self, epoch: Floats) -> Floats:
        """Of DRAWS runs, each by a law drawn by weight, with noise; shape (DRAWS, epochs). Seeded."""
        draw = np.random.default_rng(SEED)
        which = draw.choice(len(self.weights), DRAWS, p=self.weights)
        error = self.levels[which, None] + self.scales[which, None] * epoch ** -self.powers[which, None]
        return 1 - error + self.noise * draw.standard_normal(error.shape)

    def stops(self, rule: EarlyStop, curve_fraction: Floats) -> Floats:
        """Epochs at which the rule ends runs that go on from the curve, each by a law drawn by weight and noise.

        Shape (DRAWS,). The curve's own epochs count as they were, so a run that would have ended in it has."""
        last = int(rule.most_epochs)
        accuracy = self._accuracies(np.arange(1, last + 1, dtype=np.float64))
        seen = min(len(curve_fraction), last)
        accuracy[:, :seen] = curve_fraction[:seen]
        return np.array([_end(one, rule) for one in accuracy])


def _cut(n: int, cut: int) -> Message:
    return Message(
        "the learning curve of {n} epochs continued by power laws; the first {cut} are cut off as warm-up", n=n, cut=cut
    )


FLOOR = 3e-3
"""What no law explains of an accuracy: it is counted on some thousand samples, and no curve is a power law."""


def _end(accuracy: Floats, rule: EarlyStop) -> float:
    """The epoch at which the rule ends a run: patience counts epochs without a better accuracy, as in training."""
    best = np.maximum.accumulate(accuracy)
    better = np.concatenate(([True], accuracy[1:] > best[:-1]))
    epoch = np.arange(1, len(accuracy) + 1)
    stale = epoch - np.maximum.accumulate(np.where(better, epoch, 0))
    ends = np.flatnonzero((stale >= rule.patience_epochs) & (epoch >= rule.least_epochs))
    return float(epoch[ends[0]]) if len(ends) else float(rule.most_epochs)
