"""What each step away from a measured row costs: named log standard deviations.

They were measured by leaving rows out; `python benchmarks/accuracy_first.py` prints the errors again, and
docs/why/predict-first.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import copysign, exp, hypot, log
from typing import NamedTuple

from gpuwise.estimate import Estimate
from gpuwise.model import Accelerator, Assumptions, Workload
from gpuwise.predict.evidence import Evidence, Row, Site, is_old, kind, kindred
from gpuwise.predict.reached import Step
from gpuwise.predict.roofline import SINCE_AMPERE, Work, work_of

ROOFLINE_SD = 0.22
ROOFLINE_OTHER_FAMILY_SD = 0.5
NEW_ARCHITECTURE_SD, UNTRIED_SD = 0.2, 0.5
"""No row at all: families of the fit; other families; and, on top, for newer NVIDIA architectures than the fit's, and
for other vendors and older architectures."""

DERIVED_RATE_SD = 0.10
"""The matrix rate comes from the architecture: L40 and L40S differ by a factor of two there, most others do not."""

JOB_SD = 0.03
OTHER_FAMILY_SD = 0.165
ARITHMETIC_SD = {"same": 0.0, "fp32": 0.09, "tensor": 0.085, "vector": 0.30}
"""Device change, beside the error of `reached`: the job's own ways; a family that no kin row is of; fp32 without TF32,
a change between AMP and TF32, and a step into or out of tensor cores."""

TWIN_DISTANCE = 0.1
TWIN_SD, MODEL_SD, MODEL_OTHER_FAMILY_SD = 0.13, 0.18, 0.30
"""Another workload's row corrected by counted work: all counts within a tenth or so, the family, any other."""

BATCH_SD = 0.05
"""For each factor of e between the batches."""

LAUNCH_SD = 0.4
"""Of the assumed launch time: 0.15 to 0.5 ms an operation are seen. It counts by the share of a step that launches gain
between the row and the answer."""

SOFTWARE_SD = 0.06
OLD_SOFTWARE_SD = 0.08
OTHER_FRAMEWORK_SD = 0.25

FITTED_FAMILIES = ("cnn", "transformer")
FITTED_ARCHITECTURES = ("Pascal", "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper", "Blackwell")


class Part(NamedTuple):
    """One named error: log standard deviation. A sign matters only between estimates that share the name."""

    name: str
    sd: float


def estimate(log_rate: float, parts: Iterable[Part], basis: str) -> Estimate:
    """Samples/s with the budget; parts of one name in quadrature."""
    named: dict[str, float] = {}
    for part in parts:
        named[part.name] = copysign(hypot(named.get(part.name, 0.0), part.sd), part.sd)
    spread = tuple(sorted((name, sd) for name, sd in named.items() if sd))
    return Estimate(value=exp(log_rate), spread=spread, basis=basis)


def total(parts: Iterable[Part]) -> float:
    return hypot(*(part.sd for part in parts))


def of_row(row: Row, workload: Workload, assumptions: Assumptions) -> Iterator[Part]:
    """Errors that come with the row itself. The sign of the batch's error says on which side the row lies."""
    result = row.result
    yield Part(f"hosts differ, {result.accelerator}", assumptions["noise_other_machine_log_sd"].value)
    if row.own_sd:
        yield Part(f"measurement of {result.workload} on {result.accelerator}", row.own_sd)
    if not row.yours:
        yield _of_software(result.software or "")
    if batch := log(workload.batch_per_accelerator / result.batch_per_accelerator):
        yield Part("batch differs", BATCH_SD * batch)
    if result.memory_format and workload.memory_format and result.memory_format != workload.memory_format:
        yield Part("memory format differs", assumptions["noise_memory_format_log_sd"].value)


def of_model(name: str, workload: Workload, evidence: Evidence) -> tuple[Part, ...]:
    """Error of starting at another workload's row."""
    kin = kindred(evidence.family[name], workload.family)
    twin = kin and name in evidence.work and is_twin(workload, evidence.work[name])
    sd = TWIN_SD if twin else MODEL_SD if kin else MODEL_OTHER_FAMILY_SD
    return (Part(f"model {name} → {workload.name}", sd),)


def of_device(source: Site, target: Site, change: str, step: Step, family: str, measured: bool) -> Iterator[Part]:
    """Errors of moving a row. change: see ARITHMETIC_SD; measured: kin was, on the target."""
    other = 0.0 if kind(family) in FITTED_FAMILIES else OTHER_FAMILY_SD
    same = source.arithmetic == target.arithmetic
    name = "ratio" if measured else "specifications"
    yield Part(f"what {_place(source, same)} reaches", -step.source_sd)
    yield Part(
        f"{name} {_place(source, same)} → {_place(target, same)}",
        hypot(step.target_sd, JOB_SD, ARITHMETIC_SD[change], other),
    )


def of_figures(accelerator: Accelerator, derived: bool) -> Iterator[Part]:
    """Errors of a card on which no kin was measured."""
    if sd := _untried(accelerator):
        yield Part(f"roofline on {accelerator.id}", sd)
    if derived:
        yield Part(f"matrix rate of {accelerator.id}", DERIVED_RATE_SD)


def of_roofline(family: str) -> Part:
    known = any(kindred(family, fitted) for fitted in FITTED_FAMILIES)
    return Part("roofline", ROOFLINE_SD if known else ROOFLINE_OTHER_FAMILY_SD)


def of_launches(gained: float) -> Part:
    """gained: share of a step that launches take in the answer, less their share in the row."""
    return Part("cost of launches", LAUNCH_SD * gained)


def change(source: Site, target: Site, source_tensor: bool, target_tensor: bool) -> str:
    """Which units compute before and after: a step into or out of tensor cores is the least certain."""
    if source_tensor != target_tensor:
        return "vector"
    if source.arithmetic == target.arithmetic:
        return "same" if source_tensor else "fp32"
    return "tensor" if source_tensor else "vector"


def is_twin(workload: Workload, other: Work) -> bool:
    return distance(work_of(workload), other) < TWIN_DISTANCE


def distance(a: Work, b: Work) -> float:
    return hypot(
        log(a.gmacs / b.gmacs), log(a.activations_m / b.activations_m), log(a.parameters_m / b.parameters_m) / 2
    )


def _of_software(software: str) -> Part:
    if software.startswith("tensorflow"):
        return Part(f"framework differs, {software}", OTHER_FRAMEWORK_SD)
    return Part(f"software differs, {software or 'not stated'}", OLD_SOFTWARE_SD if is_old(software) else SOFTWARE_SD)


def _untried(accelerator: Accelerator) -> float:
    if accelerator.architecture in FITTED_ARCHITECTURES:
        return 0.0
    return NEW_ARCHITECTURE_SD if accelerator.architecture in SINCE_AMPERE else UNTRIED_SD


def _place(site: Site, plain: bool) -> str:
    return site.accelerator if plain else f"{site.accelerator} {site.arithmetic}"
