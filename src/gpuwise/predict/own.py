"""What a person's own run says: how the job will be run, and a rate that is checked against the published rows."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from typing import Any

from gpuwise.errors import Message
from gpuwise.estimate import Z80
from gpuwise.model import Measurement, Workload
from gpuwise.predict.evidence import Evidence
from gpuwise.predict.ratio import Path


def as_run(workload: Workload, evidence: Evidence) -> tuple[Workload, tuple[Message, ...]]:
    """The workload as the person's newest run of it had it: memory format, and the batch where it was only assumed; and
    what that changed, in words."""
    runs = [evidence.runs[n] for n in (workload.name, *workload.measured_as) if n in evidence.runs]
    if not runs:
        return workload, ()
    run = max(runs, key=lambda m: m.created_utc)
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
    if run.compiled:
        said.append(Message("predicted for a compiled model, as in your own run"))
    return said


def reconciled(mine: Path, published: Path | None) -> Path:
    """The path from the person's own run, and what the published rows alone would say of the same.

    Where the 80 % intervals do not meet, the own run stands, with an interval wide enough for the doubt. Where they do,
    the narrower one is the answer: a run never makes it wider.
    """
    if published is None:
        return mine
    gap = abs(log(mine.rate.value / published.rate.value))
    said = {"own": mine.rate.value, "other": published.rate.value}
    if gap > Z80 * (mine.rate.log_sd + published.rate.log_sd):
        text = "from your own run {own:.4g}, from published rows {other:.4g}: they disagree, so the interval is wider"
        rate = mine.rate.widened("your run and published rows disagree", gap / (2 * Z80))
        return replace(mine, rate=rate, steps=(*mine.steps, Message(text, **said)))
    if mine.rate.log_sd <= published.rate.log_sd:
        return mine
    text = "your own run agrees ({own:.4g}), and says less exactly: ±{sd:.0f} %"
    sd = 100 * (exp(Z80 * mine.rate.log_sd) - 1)
    return replace(published, steps=(*published.steps, Message(text, own=mine.rate.value, sd=sd)))
