"""When a job's training ends: the person's wish, the job's own rule, and what the person's runs say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuwise.errors import InvalidInput, Message, MissingEvidence
from gpuwise.model import Measurement, Workload
from gpuwise.predict.target import at_accuracy, early, of_runs, of_table, samples_needed
from gpuwise.request import JobFilters
from gpuwise.stopping import EarlyStop, EpochReference, Stop


def ended(
    workload: Workload, request: JobFilters, runs: Sequence[Measurement], known: Sequence[EpochReference]
) -> Workload:
    """The workload with its `stop`, where its epochs are not a known number. runs: of this job, oldest first; known:
    the table of reference runs. MissingEvidence where nothing says how many epochs a target takes."""
    if request.epochs is not None:
        return workload
    rule = request.early_stop_epochs
    wished = EarlyStop(least_epochs=rule.least, most_epochs=rule.most, patience_epochs=rule.patience) if rule else None
    target = request.target_fraction
    if wished is None and target is None:
        wished, target = workload.early_stop, workload.target_fraction
    workload = replace(workload, early_stop=wished, target_fraction=target)
    stop = _stop(workload, _curve(runs), known)
    return workload if stop is None else _stopped(workload, stop)


def _stop(workload: Workload, run: Measurement | None, known: Sequence[EpochReference]) -> Stop | None:
    """By the best that is there: earlier runs, the run's own curve, the table."""
    curve = () if run is None else run.curve_fraction
    at = None if run is None else float(run.batch_per_accelerator * run.accelerators)
    if workload.early_stop is not None:
        return early(workload.early_stop, curve, global_batch=at)
    if workload.reached_epochs:
        return of_runs(workload.reached_epochs, workload.failed_runs)
    if workload.target_fraction is None:
        return None
    if curve:
        return at_accuracy(curve, workload.target_fraction, global_batch=at)
    if workload.task is not None:
        return of_table(known, workload.task, workload.target_fraction, _samples(workload))
    raise MissingEvidence(
        Message(
            "Nothing says how many epochs {name} needs to reach {percent:.4g} %.",
            name=workload.name,
            percent=100 * workload.target_fraction,
        ),
        Message(
            "Give a run with its learning curve (--measured), name a known task in a workload file (task = …, of "
            "{names}), or state the epochs (--epochs).",
            names=", ".join(sorted({row.task for row in known})),
        ),
    )


def _samples(workload: Workload) -> int:
    if "samples" in workload.undecided:
        raise InvalidInput(
            Message("The samples of an epoch of {name} are not known.", name=workload.name),
            Message("Give them: --samples."),
        )
    return workload.samples


def _curve(runs: Sequence[Measurement]) -> Measurement | None:
    """The newest run that tells how accuracy grew."""
    return next((run for run in reversed(runs) if run.curve_fraction), None)


def _stopped(workload: Workload, stop: Stop) -> Workload:
    """epochs: the median on one accelerator; accuracy is the target's."""
    reached = workload.target_fraction
    made = replace(
        workload,
        stop=stop,
        assumed={name: why for name, why in workload.assumed.items() if name != "epochs"},
        undecided=tuple(name for name in workload.undecided if name != "epochs"),
        accuracy_fraction=workload.accuracy_fraction if reached is None else reached,
        reasons={name: why for name, why in workload.reasons.items() if reached is None or name != "accuracy_fraction"},
    )
    return replace(made, epochs=samples_needed(made, 1).value / made.samples)
