"""All measured rows, indexed for lookup: who was measured where, and how far from the roofline each row lies.

The residual of a row is ln(roofline / measured) of the seconds in which the device works. Between two devices the
residuals of one workload differ as those of its kin do (`reached`); that takes batch and data sheets into account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, hypot, log
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from gpuwise.estimate import Z80
from gpuwise.model import Accelerator, BenchmarkResult, Measurement, Source
from gpuwise.predict.reference import PROXIES, REFERENCE
from gpuwise.predict.roofline import (
    FITTED,
    Coefficients,
    Rates,
    Work,
    arithmetic,
    device_seconds,
    launch_seconds,
    rates,
)

NEW_TORCH = (1, 12)

SHARED_RUN_SD = 0.1
"""Of one device's rate, taken from a run on several."""

GROUP_EFFICIENCY = 0.95
"""Of a kin row, where a device was measured in groups only."""

HOST_BOUND_GAIN, USUAL_GAIN = 1.15, 1.3
"""Where AMP gains less than the one over TF32, and the same workload at least the other on most cards, the host set the
pace: ResNet-50 and SSD on B200 (1.04, 0.98; 1.3 to 1.9 elsewhere). Mask R-CNN gains nothing on any card."""

LEAST_DEVICE_SHARE = 0.5
"""Of a measured step, at least this is the device's, whatever the assumed launch time says."""

CURRENT = "PyTorch 2"
"""The era of software that a prediction is for."""


class Site(NamedTuple):
    """One device in one arithmetic."""

    accelerator: str
    arithmetic: str


class Observation(NamedTuple):
    """One kin row as `reached` reads it. device_share: of the step; noise counts by its inverse. foreign: in another
    framework, or at the small batches of 2021. shared: taken from a run on several."""

    workload: str
    family: str
    site: Site
    era: str | None
    residual: float
    device_share: float
    foreign: bool
    shared: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One measured rate of one device. own_sd: log sd of the figure itself, 0 where the table states none.

    yours: the person's own run. shared: one device's part of a run on several.
    """

    result: BenchmarkResult
    log_rate: float
    own_sd: float = 0.0
    yours: bool = False
    compiled: bool = False
    shared: bool = False


RowsBySite = Mapping[str, Mapping[Site, tuple[Row, ...]]]
"""Workload -> site -> rows of one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All measured rows at hand. Make it with `Evidence.of`; it does not change.

    rows: workload -> site -> rows of one device. several: workload -> rows of more than one device. work, family: of
    workloads whose counts are known. kin: the rows by which devices are compared. held_back: (workload, card) whose
    published rows tell about their host and not about the card. runs: the person's newest run of each workload.
    """

    accelerators: Mapping[str, Accelerator]
    rows: RowsBySite
    several: Mapping[str, tuple[Row, ...]]
    work: Mapping[str, Work]
    family: Mapping[str, str]
    kin: tuple[Observation, ...]
    held_back: frozenset[tuple[str, str]]
    runs: Mapping[str, Measurement]
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
        runs = sorted((m for m in measurements if _tells_speed(m, accelerators)), key=lambda m: m.created_utc)
        for row in (*(Row(r, log(r.samples_per_s)) for r in rows), *_own_rows(runs, accelerators)):
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
            kin=tuple(_kin_rows(frozen, several, work, accelerators, coefficients)),
            held_back=frozenset((name, card) for name, sites in frozen.items() for card in _held_back(sites)),
            runs={m.workload: m for m in runs},
            coefficients=coefficients,
        )

    def rates(self, site: Site) -> Rates | None:
        """What the device can do there; None if it or its rates are not known."""
        return site_rates(site, self.accelerators)

    def published(self) -> Evidence:
        """The same without the person's own runs."""
        single = (row for sites in self.rows.values() for rows in sites.values() for row in rows)
        several = (row for rows in self.several.values() for row in rows)
        rows = (row.result for row in (*single, *several) if not row.yours)
        return Evidence.of(rows, self.accelerators, self.work, coefficients=self.coefficients)


def site_rates(site: Site, accelerators: Mapping[str, Accelerator]) -> Rates | None:
    """What the device can do there; None if it or its rates are not known."""
    accelerator, name = accelerators.get(site.accelerator), site.arithmetic
    return rates(accelerator, name) if accelerator and name in ("amp", "tf32", "fp32") else None  # type: ignore[arg-type]


def kindred(family: str, other: str) -> bool:
    """Families that behave alike from device to device."""
    return kind(family) == kind(other)


def kind(family: str) -> str:
    """The family whose rows stand for this one from device to device."""
    return _KIN.get(family, family)


_KIN = {"cnn-detection": "cnn", "hybrid": "transformer"}


def residual(row: Row, work: Work, on: Rates, c: Coefficients) -> float:
    """ln(roofline / measured) of the device's part of a step, old software taken into account."""
    batch = row.result.batch_per_accelerator
    launches = launch_share(row, work, on, c) * launch_seconds(work, on, batch, c)
    return log(device_seconds(work, on, batch, c) / (_seconds_now(row, c) - launches))


def launch_share(row: Row, work: Work, on: Rates, c: Coefficients) -> float:
    """What of the assumed launch time the row can really have spent: 1, or less where the step was too short for it."""
    assumed = launch_seconds(work, on, row.result.batch_per_accelerator, c)
    return min(1.0, (1 - LEAST_DEVICE_SHARE) * _seconds_now(row, c) / assumed)


def _seconds_now(row: Row, c: Coefficients) -> float:
    """Seconds a sample, with current software; the person's own run stays as it was."""
    faster = c.old_software if is_old(row.result.software) and not row.yours else 1.0
    return exp(-row.log_rate) * faster


def is_old(software: str | None) -> bool:
    """PyTorch before 1.12 (or of 2021 without a version): slower than today's by `Coefficients.old_software`."""
    version = _version(software)
    return software == _SMALL_BATCH or (version is not None and version < NEW_TORCH)


def era(software: str | None) -> str | None:
    """Versions that run alike; None if unknown."""
    if software == _SMALL_BATCH:
        return "PyTorch 1.7 to 1.11"
    version = _version(software)
    if version is None:
        return "TensorFlow" if (software or "").startswith("tensorflow") else None
    return next(name for since, name in _ERAS if version >= since)


_SMALL_BATCH = "torchvision-2021"
_ERAS = (((2, 0), CURRENT), (NEW_TORCH, "PyTorch 1.13"), ((1, 5), "PyTorch 1.7 to 1.11"), ((0, 0), "PyTorch 1.4"))
_TORCH = re.compile(r"torch-(\d+)\.(\d+)")
_SIZED = re.compile(r"(.+)@(\d+)")


def _version(software: str | None) -> tuple[int, int] | None:
    found = _TORCH.search(software or "")
    return (int(found[1]), int(found[2])) if found else None


def _tells_speed(run: Measurement, accelerators: Mapping[str, Accelerator]) -> bool:
    return run.device == "gpu" and run.accelerator in accelerators and run.samples_per_s is not None


def _own_rows(runs: Iterable[Measurement], accelerators: Mapping[str, Accelerator]) -> Iterator[Row]:
    for run in runs:
        assert run.accelerator is not None
        assert run.samples_per_s is not None
        device, rate = accelerators[run.accelerator], run.samples_per_s
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
        sd = log(rate.high / rate.low) / (2 * Z80)
        row = Row(result, log(rate.value), sd, yours=True, compiled=bool(run.compiled))
        yield row
        if run.accelerators > 1:
            yield _one_of(row)


def _one_of(row: Row) -> Row:
    """One device of a run on several, as if nothing was lost between them; the loss is an error of its own."""
    n = row.result.accelerators
    one = replace(row.result, accelerators=1, samples_per_s=row.result.samples_per_s / n)
    return replace(
        row, result=one, log_rate=row.log_rate - log(n), own_sd=hypot(row.own_sd, SHARED_RUN_SD), shared=True
    )


def _work(family: Mapping[str, str], counts: Mapping[str, Work]) -> dict[str, Work]:
    """Counts of every measured workload that has some."""
    found: dict[str, Work] = {}
    for name, family_name in family.items():
        work = counts.get(name) or _by_area(name, counts)
        if work is not None:
            found[name] = replace(work, transformer=family_name == "transformer")
    return found


def _by_area(name: str, counts: Mapping[str, Work]) -> Work | None:
    """Counts of a convolutional network at another image size: work and activations grow with the area."""
    sized = _SIZED.fullmatch(name)
    work = counts.get(sized[1]) if sized else None
    if sized is None or work is None:
        return None
    area = (int(sized[2]) / 224) ** 2
    return replace(work, gmacs=work.gmacs * area, activations_m=work.activations_m * area)


def _kin_rows(
    rows: RowsBySite,
    several: Mapping[str, Iterable[Row]],
    work: Mapping[str, Work],
    accelerators: Mapping[str, Accelerator],
    c: Coefficients,
) -> Iterator[Observation]:
    """The published rows of the PROXIES, as they are compared; rows that the host slowed down are not among them."""
    for name in (n for n in PROXIES if n in work):
        single = rows.get(name, {})
        held_back = _held_back(single)
        for site, row in (*_alone(single), *_in_groups(single, several.get(name, ()))):
            on = site_rates(site, accelerators)
            if on and not row.yours and row.result.memory_format != "nhwc" and site.accelerator not in held_back:
                yield _observation(name, site, row, work[name], on, c)


def _alone(single: Mapping[Site, Iterable[Row]]) -> Iterator[tuple[Site, Row]]:
    return ((site, row) for site, rows in single.items() for row in rows)


def _in_groups(single: Mapping[Site, Iterable[Row]], several: Iterable[Row]) -> Iterator[tuple[Site, Row]]:
    """Devices of which no single one was measured."""
    for row in several:
        site = Site(row.result.accelerator, row.result.precision)
        if site not in single:
            yield site, _one_of(row)


def _observation(name: str, site: Site, row: Row, work: Work, on: Rates, c: Coefficients) -> Observation:
    software = row.result.software or ""
    launches = launch_seconds(work, on, row.result.batch_per_accelerator, c) * exp(row.log_rate)
    return Observation(
        workload=name,
        family="transformer" if work.transformer else "cnn",
        site=site,
        era=era(software),
        residual=residual(row, work, on, c) - (log(GROUP_EFFICIENCY) if row.shared else 0.0),
        device_share=max(1 - launches, LEAST_DEVICE_SHARE),
        foreign=software.startswith(("tensorflow", _SMALL_BATCH)),
        shared=row.shared,
    )


def _held_back(sites: Mapping[Site, tuple[Row, ...]]) -> set[str]:
    """Cards on which the host set the pace of one workload."""
    fastest = {site: max(row.log_rate for row in rows) for site, rows in sites.items()}
    gains = {
        site.accelerator: exp(amp - fastest[tf32])
        for site, amp in fastest.items()
        if site.arithmetic == "amp" and (tf32 := Site(site.accelerator, "tf32")) in fastest
    }
    if not gains or median(gains.values()) < USUAL_GAIN:
        return set()
    return {card for card, gain in gains.items() if gain < HOST_BOUND_GAIN}
