"""From one device to n: data-parallel steps that wait for a ring all-reduce of the gradients.

    step of n = step of one + 2·(n − 1)/n · gradient bytes · c          (ring: Patarasuk, Yuan, JPDC 69(2) 2009)

c, seconds for each GB that the step really waits, comes from runs of the workload or its kin on several such devices
(same batch and software as the run on one), else from the class of the link. Efficiency never exceeds 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import hypot, log2
from statistics import median

from gpuwise.errors import Message
from gpuwise.model import Accelerator, BenchmarkResult, Platform, Workload
from gpuwise.predict.evidence import Evidence, Site, kindred
from gpuwise.predict.reference import REFERENCE

WAIT_S_PER_GB = {"NVLink": 0.012, "PCIe": 0.03, "PCIe, consumer": 0.17, "network": 0.4}
"""Medians of the bundled CNN and BERT rows by class; the network is assumed: 25 Gbit/s Ethernet at line rate."""

DOUBLING_SD = {"NVLink": 0.018, "PCIe": 0.025, "PCIe, consumer": 0.05, "network": 0.10}
LOSS_SD = {"own": 0.3, "kin": 0.4, "class": 0.5}
"""Log sd of the efficiency: for each doubling of devices, and this share of what is lost, in quadrature."""

UNKNOWN_LINK_SD = 0.03
MIN_ROWS = 3
CLASS_ROWS = 8
"""So many rows weigh what the class of the link does: a few noisy runs on one card do not set its own scaling."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """What n devices reach of n times one. own: the workload itself was measured on several. evidence: in words."""

    efficiency: float
    own: bool
    sd: float
    name: str
    evidence: Message


def scaling(
    workload: Workload, accelerator: Accelerator, platform: Platform, rate_1: float, evidence: Evidence
) -> Scaling:
    """rate_1: samples/s of one device."""
    n = platform.accelerators
    kind = link_class(accelerator, platform)
    wait_s, origin = _wait_s_per_gb(workload, accelerator, kind, evidence)
    step_s = workload.batch_per_accelerator / rate_1
    efficiency = step_s / (step_s + max(wait_s, 0.0) * _ring_gb(workload.parameters_m, n))
    sd = hypot(DOUBLING_SD[kind] * log2(n), LOSS_SD[origin] * (1 - efficiency))
    if origin == "class" and platform.link is None:
        sd = hypot(sd, UNKNOWN_LINK_SD)
    text = {
        "own": Message(
            "× {n} × {efficiency:.2f}: it was measured on several {name}",
            n=n,
            efficiency=efficiency,
            name=accelerator.name,
        ),
        "kin": Message(
            "× {n} × {efficiency:.2f}: its kin were measured on several {name}",
            n=n,
            efficiency=efficiency,
            name=accelerator.name,
        ),
        "class": Message("× {n} × {efficiency:.2f}: usual for {link}", n=n, efficiency=efficiency, link=kind),
    }[origin]
    return Scaling(efficiency, origin == "own", sd, f"scaling ×{n} {kind} {accelerator.id}", text)


def link_class(accelerator: Accelerator, platform: Platform) -> str:
    """NVLink, PCIe, PCIe of consumer cards (no direct traffic) or network; by form factor if not stated."""
    if platform.nodes > 1:
        return "network"
    link = platform.link or ("NVLink" if accelerator.form_factor.startswith(("SXM", "superchip")) else "PCIe")
    if "nvlink" in link.casefold():
        return "NVLink"
    return "PCIe, consumer" if accelerator.name.startswith(("GeForce", "TITAN")) else "PCIe"


def _ring_gb(parameters_m: float, n: int) -> float:
    """GB that each device sends in a ring all-reduce of 4-byte gradients."""
    return 2 * (n - 1) / n * 4e-3 * parameters_m


def _wait_s_per_gb(workload: Workload, accelerator: Accelerator, kind: str, evidence: Evidence) -> tuple[float, str]:
    if kind == "network":
        return WAIT_S_PER_GB[kind], "class"
    own = list(_waits((workload.name, *workload.measured_as), accelerator, workload.parameters_m, evidence))
    if own:
        return median(own), "own"
    kin = [
        wait
        for name, work in REFERENCE.items()
        if kindred(evidence.family.get(name, ""), workload.family)
        for wait in _waits((name,), accelerator, work.parameters_m, evidence)
    ]
    if len(kin) >= MIN_ROWS:
        return (len(kin) * median(kin) + CLASS_ROWS * WAIT_S_PER_GB[kind]) / (len(kin) + CLASS_ROWS), "kin"
    return WAIT_S_PER_GB[kind], "class"


def _waits(names: Iterable[str], accelerator: Accelerator, parameters_m: float, evidence: Evidence) -> Iterator[float]:
    """Seconds waited for each GB in every measured run on several of these devices."""
    for name in names:
        for run in (row.result for row in evidence.several.get(name, ())):
            if run.accelerator == accelerator.id and (one := same_on_one(run, evidence)):
                step_s = run.batch_per_accelerator / one
                many_s = run.batch_per_accelerator * run.accelerators / run.samples_per_s
                yield (many_s - step_s) / _ring_gb(parameters_m, run.accelerators)


def same_on_one(run: BenchmarkResult, evidence: Evidence) -> float | None:
    """samples/s of one device at the same batch with the same software."""
    rows = evidence.rows.get(run.workload, {}).get(Site(run.accelerator, run.precision), ())
    return next(
        (
            row.result.samples_per_s
            for row in rows
            if (row.result.batch_per_accelerator, row.result.software) == (run.batch_per_accelerator, run.software)
        ),
        None,
    )
