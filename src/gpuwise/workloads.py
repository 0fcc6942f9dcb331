"""The built-in workloads: what data/workloads.toml says, as values; and how a person's own figures replace it.

Pure: `store.package` reads the file, `parse` makes workloads of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.memory import MemoryReading
from gpuwise.model import Measurement, Precision, Source, Workload
from gpuwise.units import Gib

FAMILIES = (
    "cnn", "cnn-detection", "transformer", "hybrid", "mlp", "conv1d", "recurrent", "speech", "recommendation",
)  # fmt: skip
"""What limits a network of each kind is alike, so the same ratio between two devices should hold within it."""
OVERRIDES = {
    "batch": "batch_per_accelerator",
    "epochs": "epochs",
    "samples": "samples",
    "precision": "precision",
    "accuracy": "accuracy_fraction",
    "mode": "mode",
}
"""What a person may state instead -> the field of `model.Workload`."""

_OF_MEMORY = ("batch_per_accelerator", "precision", "mode")
"""A peak of memory holds for these alone."""
DURATION = ("samples", "epochs")
"""Fields that say how long a job is."""
PLACEHOLDERS = {"samples": 1_000_000, "epochs": 1.0}
UNDECIDED = {
    "samples": "one million samples, to compare machines: give the size of your own epoch",
    "epochs": "one pass: give your own number of epochs",
}
"""What stands there where nobody said it, and why."""
TRAINING = frozenset(("epochs", "samples", "batch_per_accelerator"))
"""Fields on which the accuracy that is reached depends."""


def parse(document: Mapping[str, Mapping[str, Any]]) -> dict[str, Workload]:
    """Name -> workload, of a TOML document with one table each; `accuracy_reason` says why the accuracy is unknown."""
    return {name: _workload(name, table) for name, table in document.items()}


def override(workload: Workload, **stated: Any) -> Workload:
    """The workload with what the person states (names of OVERRIDES; None changes nothing); stated is not assumed."""
    given = {_field(name): value for name, value in stated.items() if value is not None}
    for field, value in given.items():
        _check(field, value)
    if any(field in given and given[field] != getattr(workload, field) for field in _OF_MEMORY):
        given["peak_memory_gib"] = None
    if given.get("mode") == "infer" and "epochs" not in given:
        given["epochs"] = 1.0
    if "epochs" in given:
        given |= {"stop": None, "early_stop": None, "target_fraction": None}
    reasons = {name: why for name, why in workload.reasons.items() if name not in given}
    if given.keys() & TRAINING and workload.accuracy_fraction is not None and "accuracy_fraction" not in given:
        given["accuracy_fraction"] = None
        reasons["accuracy_fraction"] = Message("the stated accuracy is that of another length or batch of training")
    return replace(
        workload,
        **given,
        assumed={name: why for name, why in workload.assumed.items() if name not in given},
        undecided=tuple(name for name in workload.undecided if name not in given),
        reasons=reasons,
    )


def of_run(run: Measurement) -> Workload:
    """The job that a run measured, from the run's own counts. InvalidInput where it has none.

    Where the run does not say how long the job is, that stays undecided: a million samples, in one pass, only compare
    machines.
    """
    counts = ("gmacs", "activations_m", "parameters_m")
    missing = [name for name in counts if getattr(run, name) is None]
    if missing:
        raise InvalidInput(
            Message("The run of {name} has no {missing}.", name=run.workload, missing=", ".join(missing)),
            Message("Name the workload, or describe it in a TOML file: gpuwise describe MODULE:CALLABLE --toml FILE"),
        )
    assumed = UNDECIDED | {
        "state_bytes_per_parameter": "SGD with momentum or lighter in fp32",
    }
    job = Workload(
        name=run.workload,
        title=run.workload,
        family=run.family or "cnn",
        model=run.workload,
        sample="sample",
        gmacs=float(run.gmacs or 0),
        activations_m=float(run.activations_m or 0),
        parameters_m=float(run.parameters_m or 0),
        stored_m=run.stored_m,
        operations=run.operations,
        state_bytes_per_parameter=12.0,
        batch_per_accelerator=run.batch_per_accelerator,
        precision=run.precision,
        memory_format=run.memory_format if run.memory_format in ("nchw", "nhwc") else None,  # type: ignore[arg-type]
        samples=1_000_000,
        epochs=1.0,
        undecided=DURATION,
        assumed=assumed,
        source=Source(kind="measured", ref="your own run"),
        reasons={"accuracy_fraction": Message("the run does not state one for this length of training")},
    )
    return as_measured(job, run)


def as_measured(workload: Workload, run: Measurement) -> Workload:
    """The workload with what the person's own run of it says: epochs and samples where they were only assumed, memory
    at the same batch and precision, the host's work for a sample and what a network store gives. Its speed is evidence,
    not part of the job."""
    given: dict[str, Any] = {
        name: getattr(run, name)
        for name in ("epochs", "samples")
        if name in workload.assumed and getattr(run, name) is not None
    }
    alike = (run.batch_per_accelerator, run.precision) == (workload.batch_per_accelerator, workload.precision)
    if run.peak_memory_gib is not None:
        given["memory"] = (*workload.memory, _memory(run, run.peak_memory_gib))
    if alike and run.peak_memory_gib is not None:
        given["peak_memory_gib"] = run.peak_memory_gib
    given |= {name: value for name in ("decode_s", "storage_per_s") if (value := getattr(run, name))}
    if workload.source.kind in ("quoted", "measured") and (built_for := _architecture(run)):
        given["cpu_architecture"] = built_for
    assumed = {name: why for name, why in workload.assumed.items() if name not in given}
    undecided = tuple(name for name in workload.undecided if name not in given)
    return replace(workload, **given, assumed=assumed, undecided=undecided)


def _memory(run: Measurement, allocated_gib: Gib) -> MemoryReading:
    return MemoryReading(
        batch_per_accelerator=run.batch_per_accelerator,
        precision=run.precision,
        used_gib=allocated_gib,
        accelerator=run.accelerator,
        accelerators=run.accelerators,
    )


ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
"""As operating systems and container images write it -> as it is called here."""


def _architecture(run: Measurement) -> str | None:
    """Of the machine on which a program of the person's own ran; reference training runs on any."""
    told = run.machine.get("system", "").casefold().split()
    return next((ARCHITECTURES[word] for word in told if word in ARCHITECTURES), None)


def _workload(name: str, table: Mapping[str, Any]) -> Workload:
    known = {f.name for f in fields(Workload)} - {"name", "source", "reasons"}
    stated: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items() if key in known
    }
    reasons = {"accuracy_fraction": Message(table["accuracy_reason"])} if "accuracy_reason" in table else {}
    return Workload(name=name, **stated, source=Source(kind="assumed", ref=table["source"]), reasons=reasons)


def _field(name: str) -> str:
    if name not in OVERRIDES:
        raise UnknownName(
            Message("“{name}” cannot be replaced in a workload", name=name),
            Message("Replace one of {names}.", names=", ".join(OVERRIDES)),
        )
    return OVERRIDES[name]


def _check(field: str, value: Any) -> None:
    if field == "precision":
        if value not in get_args(Precision):
            raise UnknownName(
                Message("precision “{value}” is not known", value=value),
                Message("Choose one of {names}.", names=", ".join(get_args(Precision))),
            )
    elif field == "mode":
        if value not in ("train", "infer"):
            raise UnknownName(Message("mode “{value}” is not known", value=value), Message("Choose train or infer."))
    elif field == "accuracy_fraction":
        if not 0 < value <= 1:
            raise InvalidInput(
                Message("an accuracy of {value} is no share", value=value), Message("Write it as 0.76 or 76 %.")
            )
    elif not value > 0:
        raise InvalidInput(Message("{field} is {value}", field=field, value=value), Message("It must be above 0."))
