"""What a person's own run says of how the job will be run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuwise.errors import Message
from gpuwise.model import Measurement, Workload
from gpuwise.predict.evidence import Evidence


def as_run(workload: Workload, evidence: Evidence) -> tuple[Workload, tuple[Message, ...]]:
    """The workload as the person's newest run of it had it: memory format, and the batch where it was only assumed; and
    what that changed, in words. The software too is that of the run: see `software_of`."""
    run = _newest(workload, evidence)
    if run is None:
        return workload, ()
    changes: dict[str, Any] = {}
    if run.memory_format in ("nchw", "nhwc") and run.memory_format != workload.memory_format:
        changes["memory_format"] = run.memory_format
    batch = run.batch_per_accelerator
    if "batch_per_accelerator" in workload.assumed and batch != workload.batch_per_accelerator:
        changes["batch_per_accelerator"] = batch
    return replace(workload, **changes), tuple(_said(run, changes))


def _said(run: Measurement, changes: dict[str, Any]) -> list[Message]:
    said = []
    if "memory_format" in changes:
        said.append(Message("predicted for memory format {format}, as in your own run", format=run.memory_format))
    if "batch_per_accelerator" in changes:
        said.append(Message("predicted for batch {batch}, as in your own run", batch=run.batch_per_accelerator))
    if version := run.software.get("torch"):
        said.append(Message("predicted for PyTorch {version}, as in your own run", version=version))
    if run.compiled:
        said.append(Message("predicted for a compiled model, as in your own run"))
    return said


def software_of(workload: Workload, evidence: Evidence) -> str | None:
    """Of the person's newest run of it, as the tables spell it; None without one: the current one."""
    run = _newest(workload, evidence)
    version = run.software.get("torch") if run else None
    return f"torch-{version}" if version else None


def _newest(workload: Workload, evidence: Evidence) -> Measurement | None:
    """The person's newest run of the workload, under any of its names."""
    runs = [evidence.runs[n] for n in (workload.name, *workload.measured_as) if n in evidence.runs]
    return max(runs, key=lambda m: m.created_utc, default=None)
