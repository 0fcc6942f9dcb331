"""What a prediction may stand on: the shipped model, measured rows of the tables, and the person's own runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from types import MappingProxyType
from typing import NamedTuple

from gpuwise.errors import Message
from gpuwise.estimate import Z80
from gpuwise.model import Accelerator, BenchmarkResult, Measurement, Source
from gpuwise.predict.answer import Model
from gpuwise.predict.cells import KIN
from gpuwise.predict.roofline import Work


class Site(NamedTuple):
    """One device in one arithmetic."""

    accelerator: str
    arithmetic: str


@dataclass(frozen=True, slots=True)
class Row:
    """One measured rate. own_sd: log sd of the figure itself, 0 where the table states none. yours: the person's own
    run. together: devices of the run of which this is one device's part. compiled: None where nobody says."""

    result: BenchmarkResult
    own_sd: float = 0.0
    yours: bool = False
    compiled: bool | None = None
    together: int = 1


RowsBySite = Mapping[str, Mapping[Site, tuple[Row, ...]]]
"""Workload -> site -> rows of one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All measured rows at hand. Make it with `Evidence.of`; it does not change.

    rows: workload -> site -> rows of one device, in training. several: workload -> rows of more than one device.
    answering: workload -> rows of forward passes on one device. counts: of the tables' workloads. runs: the person's
    newest run of each workload.
    """

    model: Model
    accelerators: Mapping[str, Accelerator]
    rows: RowsBySite
    several: Mapping[str, tuple[Row, ...]]
    answering: Mapping[str, tuple[Row, ...]]
    counts: Mapping[str, Work]
    runs: Mapping[str, Measurement]

    @staticmethod
    def of(
        rows: Iterable[BenchmarkResult],
        accelerators: Mapping[str, Accelerator],
        model: Model,
        measurements: Iterable[Measurement] = (),
        counts: Mapping[str, Work] = MappingProxyType({}),
    ) -> Evidence:
        """Index the rows of tables and the person's own runs on GPUs (a CPU run is no evidence of speed).

        accelerators: by id. rows: at least those of the workloads that are asked for, if the model has seen them.
        """
        runs = sorted((m for m in measurements if _tells_speed(m, accelerators)), key=lambda m: m.created_utc)
        every = [*(Row(r) for r in rows), *_own_rows(runs, accelerators)]
        return Evidence(
            model=model,
            accelerators=accelerators,
            rows=_by_site(row for row in every if row.result.mode == "train" and row.result.accelerators == 1),
            several=_by_workload(row for row in every if row.result.accelerators > 1),
            answering=_by_workload(row for row in every if row.result.mode == "infer"),
            counts=counts,
            runs={m.workload: m for m in runs},
        )

    def of_one(self, names: Iterable[str]) -> Iterator[Row]:
        """Rows of one device of these workloads, in training and inference."""
        for name in dict.fromkeys(names):
            yield from (row for rows in self.rows.get(name, {}).values() for row in rows)
            yield from self.answering.get(name, ())


def kind(family: str) -> str:
    """The family whose rows stand for this one from device to device."""
    return KIN.get(family, family)


def _by_site(rows: Iterable[Row]) -> dict[str, dict[Site, tuple[Row, ...]]]:
    found: dict[str, dict[Site, tuple[Row, ...]]] = {}
    for row in rows:
        site = Site(row.result.accelerator, row.result.precision)
        sites = found.setdefault(row.result.workload, {})
        sites[site] = (*sites.get(site, ()), row)
    return found


def _by_workload(rows: Iterable[Row]) -> dict[str, tuple[Row, ...]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.result.workload, []).append(row)
    return {name: tuple(each) for name, each in found.items()}


def unused(run: Measurement, accelerators: Mapping[str, Accelerator]) -> Message | None:
    """Why a run says nothing about the speed of a GPU, or None."""
    if run.device != "gpu":
        return Message("it ran on a CPU: what it says of loading, memory and epochs holds, its speed tells nothing")
    card = accelerators.get(run.accelerator or "")
    if card is None or run.samples_per_s is None:
        return Message("it states no speed of a GPU that is known here")
    if run.precision == "fp8":
        return Message("nothing else was measured in fp8, so that it tells nothing about other GPUs")
    if card.vendor not in ("NVIDIA", "AMD"):
        return Message("no figure carries over from {name} to a GPU", name=card.name)
    return None


def _tells_speed(run: Measurement, accelerators: Mapping[str, Accelerator]) -> bool:
    """A run on a GPU that is known; in fp8 nothing else was measured, so that it tells of nothing else."""
    known = run.device == "gpu" and run.accelerator in accelerators and run.samples_per_s is not None
    return known and run.precision != "fp8"


def _own_rows(runs: Sequence[Measurement], accelerators: Mapping[str, Accelerator]) -> Iterator[Row]:
    for run in runs:
        assert run.accelerator is not None
        assert run.samples_per_s is not None
        device, rate = accelerators[run.accelerator], run.samples_per_s
        result = BenchmarkResult(
            workload=run.workload,
            family=run.family or "",
            accelerator=device.id,
            accelerators=run.accelerators,
            precision=run.precision,
            batch_per_accelerator=run.batch_per_accelerator,
            samples_per_s=rate.value,
            software=f"torch-{run.software['torch']}" if "torch" in run.software else None,
            memory_format=run.memory_format,
            compiled=bool(run.compiled),
            source=Source(kind="measured", ref="your own run"),
        )
        row = Row(result, log(rate.high / rate.low) / (2 * Z80), yours=True, compiled=bool(run.compiled))
        yield row
        if run.accelerators > 1:
            yield _one_of(row)


def _one_of(row: Row) -> Row:
    """One device of a run on several, with what they lost together still in it."""
    n = row.result.accelerators
    one = replace(row.result, accelerators=1, samples_per_s=row.result.samples_per_s / n)
    return replace(row, result=one, together=n)
