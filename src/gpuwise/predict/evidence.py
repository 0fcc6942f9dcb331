"""Measured rows, indexed for lookup: who was measured where, and how far from the roofline each row lies.

The residual of a row is ln(measured rate / roofline rate). Between two devices the residuals of one workload differ as
those of its kin do; that is all a "ratio of measured rows" uses, and it takes batch and specifications into account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import hypot, log
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

from gpuwise.estimate import Z80
from gpuwise.model import Accelerator, BenchmarkResult, Measurement, Source
from gpuwise.predict.reference import PROXIES, REFERENCE
from gpuwise.predict.roofline import FITTED, Coefficients, Rates, Work, arithmetic, rates, seconds

NEW_TORCH = (1, 12)

SHARED_RUN_SD = 0.1
"""Of one device's rate, taken from a run on several."""

HOST_BOUND_GAIN = 1.15
"""AMP gains 1.3 to 1.9 over TF32 on the bundled rows, but for ResNet-50 on B200 (1.04)."""


class Site(NamedTuple):
    """One device in one arithmetic."""

    accelerator: str
    arithmetic: str


@dataclass(frozen=True, slots=True)
class Row:
    """One measured rate of one device. own_sd: log sd of the figure itself, 0 where the table states none."""

    result: BenchmarkResult
    log_rate: float
    own_sd: float = 0.0
    yours: bool = False


RowsBySite = Mapping[str, Mapping[Site, tuple[Row, ...]]]
"""Workload -> site -> rows of one device."""

Residuals = Mapping[Site, Mapping[str, float]]
"""Site -> software -> mean residual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All measured rows at hand. Make it with `Evidence.of`; it does not change.

    rows: workload -> site -> rows of one device. several: workload -> rows of more than one device. work, family: of
    workloads whose counts are known. proxies: residuals of the workloads by which devices are compared.
    """

    accelerators: Mapping[str, Accelerator]
    rows: RowsBySite
    several: Mapping[str, tuple[Row, ...]]
    work: Mapping[str, Work]
    family: Mapping[str, str]
    proxies: Mapping[str, Residuals]
    coefficients: Coefficients = FITTED

    @staticmethod
    def of(
        rows: Iterable[BenchmarkResult],
        accelerators: Mapping[str, Accelerator],
        counts: Mapping[str, Work] = MappingProxyType({}),
        measurements: Iterable[Measurement] = (),
        coefficients: Coefficients = FITTED,
    ) -> Evidence:
        """Index the rows of tables and the person's own runs on GPUs (a CPU run is no evidence of speed).

        accelerators: by id. counts: of the measured workloads, beside those in `reference`; "name@px" without counts
        of its own gets those of "name" by area.
        """
        single: dict[str, dict[Site, list[Row]]] = {}
        several: dict[str, list[Row]] = {}
        family: dict[str, str] = {}
        for row in (*(Row(r, log(r.samples_per_s)) for r in rows), *_own_rows(measurements, accelerators)):
            result = row.result
            family.setdefault(result.workload, result.family)
            if result.accelerators > 1:
                several.setdefault(result.workload, []).append(row)
            else:
                site = Site(result.accelerator, result.precision)
                single.setdefault(result.workload, {}).setdefault(site, []).append(row)
        work = _work(family, {**counts, **REFERENCE})
        frozen = {w: {s: tuple(r) for s, r in sites.items()} for w, sites in single.items()}
        return Evidence(
            accelerators=accelerators,
            rows=frozen,
            several={w: tuple(r) for w, r in several.items()},
            work=work,
            family=family,
            proxies=_proxies(frozen, work, accelerators, coefficients),
            coefficients=coefficients,
        )

    def rates(self, site: Site) -> Rates | None:
        """What the device can do there; None if it or its rates are not known."""
        return _rates(site, self.accelerators)


def kindred(family: str, other: str) -> bool:
    """Families that behave alike from device to device."""
    return _KIN.get(family, family) == _KIN.get(other, other)


_KIN = {"cnn-detection": "cnn", "hybrid": "transformer"}


def residual(row: Row, work: Work, on: Rates, c: Coefficients) -> float:
    """ln(measured / roofline), software of the row's age taken into account."""
    expected = log(seconds(work, on, row.result.batch_per_accelerator, c))
    return row.log_rate + expected - (log(c.old_software) if is_old(row.result.software) else 0.0)


def is_old(software: str | None) -> bool:
    """PyTorch before 1.12 (or of 2021 without a version): slower than today's by `Coefficients.old_software`."""
    if software == "torchvision-2021":
        return True
    found = _TORCH.search(software or "")
    return bool(found) and (int(found[1]), int(found[2])) < NEW_TORCH  # type: ignore[index]


_TORCH = re.compile(r"torch-(\d+)\.(\d+)")
_SIZED = re.compile(r"(.+)@(\d+)")


def _own_rows(measurements: Iterable[Measurement], accelerators: Mapping[str, Accelerator]) -> Iterable[Row]:
    for run in measurements:
        device, rate = accelerators.get(run.accelerator or ""), run.samples_per_s
        if run.device != "gpu" or device is None or rate is None:
            continue
        result = BenchmarkResult(
            workload=run.workload,
            family="",
            accelerator=device.id,
            accelerators=run.accelerators,
            precision=arithmetic(run.precision, device),
            batch_per_accelerator=run.batch_per_accelerator,
            samples_per_s=rate.value,
            software=f"torch-{run.software['torch']}" if "torch" in run.software else None,
            memory_format=run.memory_format,
            source=Source(kind="measured", ref="your own run"),
        )
        row = Row(result, log(rate.value), log(rate.high / rate.low) / (2 * Z80), yours=True)
        yield row
        if run.accelerators > 1:
            yield _one_of(row)


def _one_of(row: Row) -> Row:
    """One device of a run on several, as if nothing was lost between them; the loss is an error of its own."""
    n = row.result.accelerators
    one = replace(row.result, accelerators=1, samples_per_s=row.result.samples_per_s / n)
    return Row(one, row.log_rate - log(n), hypot(row.own_sd, SHARED_RUN_SD), yours=True)


def _work(family: Mapping[str, str], counts: Mapping[str, Work]) -> dict[str, Work]:
    """Counts of every measured workload that has some."""
    found: dict[str, Work] = {}
    for name, kind in family.items():
        work = counts.get(name) or _by_area(name, counts)
        if work is not None:
            found[name] = replace(work, transformer=kind == "transformer")
    return found


def _by_area(name: str, counts: Mapping[str, Work]) -> Work | None:
    """Counts of a convolutional network at another image size: work and activations grow with the area."""
    sized = _SIZED.fullmatch(name)
    work = counts.get(sized[1]) if sized else None
    if sized is None or work is None:
        return None
    area = (int(sized[2]) / 224) ** 2
    return replace(work, gmacs=work.gmacs * area, activations_m=work.activations_m * area)


def _proxies(
    rows: RowsBySite, work: Mapping[str, Work], accelerators: Mapping[str, Accelerator], c: Coefficients
) -> dict[str, Residuals]:
    return {
        name: {
            site: _by_software(found, work[name], on, c)
            for site, found in rows[name].items()
            if (on := _rates(site, accelerators)) and not _host_bound(site.accelerator, rows[name])
        }
        for name in PROXIES
        if name in rows and name in work
    }


def _host_bound(accelerator: str, sites: Mapping[Site, tuple[Row, ...]]) -> bool:
    """AMP hardly faster than TF32 there: the host set the pace, and the rows say nothing about the device."""
    amp, tf32 = (sites.get(Site(accelerator, kind), ()) for kind in ("amp", "tf32"))
    if not (amp and tf32):
        return False
    return max(r.log_rate for r in amp) < max(r.log_rate for r in tf32) + log(HOST_BOUND_GAIN)


def _by_software(rows: Iterable[Row], work: Work, on: Rates, c: Coefficients) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for row in rows:
        groups.setdefault(row.result.software or "", []).append(residual(row, work, on, c))
    return {software: fmean(values) for software, values in groups.items()}


def _rates(site: Site, accelerators: Mapping[str, Accelerator]) -> Rates | None:
    accelerator = accelerators.get(site.accelerator)
    kind = site.arithmetic
    return rates(accelerator, kind) if accelerator and kind in ("amp", "tf32", "fp32") else None  # type: ignore[arg-type]
