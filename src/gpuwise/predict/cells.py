"""Settings in columns: what the predictor knows of each row before anything is measured.

`mean` is the sum-form roofline of `roofline`, ln(samples/s); the other columns say what the row is like. Nothing here
is fitted but the roofline's coefficients, and those only as a starting point: `physics` lets the fit move them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from gpuwise.model import Accelerator
from gpuwise.predict.reference import SAMPLES_PER_ITEM
from gpuwise.predict.roofline import (
    NOMINAL,
    Coefficients,
    Rates,
    Work,
    device_seconds,
    launch_seconds,
    rates,
)
from gpuwise.predict.setting import Setting

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TYPICAL_WORK = {
    "transformer": Work(gmacs=35.0, activations_m=57.0, parameters_m=100.0, operations=0.0),
    "": Work(gmacs=4.0, activations_m=11.0, parameters_m=25.0, operations=0.0),
}
"""Stands in where nobody counted: only its mix of arithmetic and traffic counts, since the level is then free."""

KIN = {"cnn-detection": "cnn", "hybrid": "transformer", "mlp": "transformer"}
"""Families whose rows stand for one another from device to device."""

CURRENT = {"train": "PyTorch 2", "infer": "inference, PyTorch 2.9"}
"""The era of software that a prediction is for."""

STEPS = {
    "compute": 0.3, "compute_half": 0.3, "peak_exponent": 0.2, "power_exponent": 0.3, "traffic": 0.3,
    "traffic_half": 0.3, "traffic_transformer": 0.3, "bandwidth_exponent": 0.2, "launch_s": 0.5,
}  # fmt: skip
"""Prior log standard deviation of each coefficient (of an exponent: of itself) around NOMINAL."""

FORWARD_SHARE = 1 / 3
"""Of a training step's work: one forward pass of the three passes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """n settings in columns; arrays have shape (n,) unless they say otherwise.

    mean: ln samples/s of one device by the nominal roofline. physics: d mean / d coefficient × its prior sd, (n, 9).
    kappa: share of the device's seconds that is arithmetic. launch: share of a step that launches take. sheet: ln of
    peak rate, bandwidth, board power and fp32 rate relative to typical ones, (n, 4). step: ln of 10^9 activations a
    step; batch: ln samples a step. counts: ln of GMACs, activations and parameters, (n, 3). more: what only a full
    count says, (n, 3), 0 where it is missing. counted, full, inference: 1 or 0.
    """

    workload: tuple[str, ...]
    family: tuple[str, ...]
    card: tuple[str, ...]
    architecture: tuple[str, ...]
    arithmetic: tuple[str, ...]
    era: tuple[str, ...]
    source: tuple[str, ...]
    layout: tuple[str, ...]
    mean: Floats
    physics: Floats
    kappa: Floats
    launch: Floats
    sheet: Floats
    step: Floats
    batch: Floats
    counts: Floats
    more: Floats
    counted: Floats
    full: Floats
    inference: Floats

    def __len__(self) -> int:
        return len(self.workload)


def cells(settings: Sequence[Setting]) -> Cells:
    """In the order given. ValueError for an accelerator whose rates nobody states: ask `runnable` first."""
    works = [_work(s) for s in settings]
    devices = [_rates(s) for s in settings]
    work, on = _columns(works), _rate_columns(devices)
    batch = np.array([s.batch * SAMPLES_PER_ITEM.get(canonical(s.workload), 1) for s in settings], np.float64)
    inference = np.array([s.mode == "infer" for s in settings], np.float64)

    def rate(c: Coefficients) -> Floats:
        device = device_seconds(work, on, batch, c)  # type: ignore[arg-type]
        return np.asarray(-np.log(device + launch_seconds(work, on, batch, c)))  # type: ignore[arg-type]

    mean = rate(NOMINAL)
    slopes = [(rate(_moved(name)) - mean) / SMALL * sd for name, sd in STEPS.items()]
    device = np.asarray(device_seconds(work, on, batch, NOMINAL))  # type: ignore[arg-type]
    launches = np.asarray(launch_seconds(work, on, batch, NOMINAL))  # type: ignore[arg-type]
    faster = np.asarray(device_seconds(work, on, batch, _moved("compute")))  # type: ignore[arg-type]
    counted = np.array([s.work is not None for s in settings], np.float64)
    more = [_more(s.work) for s in settings]
    return Cells(
        workload=tuple(canonical(s.workload) for s in settings),
        family=tuple(s.family or "" for s in settings),
        card=tuple(s.accelerator.id for s in settings),
        architecture=tuple(s.accelerator.architecture for s in settings),
        arithmetic=tuple(s.arithmetic for s in settings),
        era=tuple(era(s) for s in settings),
        source=tuple(source(s) for s in settings),
        layout=tuple(_layout(s) for s in settings),
        mean=mean - inference * log(FORWARD_SHARE),
        physics=np.array(slopes).T.reshape(len(settings), len(STEPS)),
        kappa=-np.log(faster / device) / SMALL,
        launch=launches / (device + launches),
        sheet=np.array([_sheet(s.accelerator, r) for s, r in zip(settings, devices, strict=True)]).reshape(-1, 4),
        step=np.where(counted > 0, np.log(batch * work.activations_m / 1e3), 0.0),
        batch=np.log(batch),
        counts=np.log(np.array([work.gmacs, work.activations_m, work.parameters_m])).T,
        more=np.array([m or (0.0, 0.0, 0.0) for m in more]).reshape(-1, 3),
        counted=counted,
        full=np.array([m is not None for m in more], np.float64),
        inference=inference,
    )


SMALL = 1e-4
"""Step of the numerical derivatives."""


def canonical(workload: str) -> str:
    """One name for one network: torchvision's own names, and 224 px written out or not."""
    return workload.removeprefix("tv_").removesuffix("@224")


def runnable(accelerator: Accelerator, kind: str) -> bool:
    """Does any table give the rates of this arithmetic there?"""
    return rates(accelerator, kind) is not None  # type: ignore[arg-type]


def era(setting: Setting) -> str:
    """Versions of software that run alike; the current one where none is stated."""
    software = setting.software
    if software is None:
        return CURRENT[setting.mode]
    if software.startswith("tensorflow"):
        return "TensorFlow"
    if software == _SMALL_BATCH:
        return "PyTorch 1.7 to 1.11"
    found = _TORCH.search(software)
    if found is None:
        return CURRENT[setting.mode]
    version = int(found[1]), int(found[2])
    eras = _INFERENCE_ERAS if setting.mode == "infer" else _ERAS
    return next(name for since, name in eras if version >= since)


def is_old(software: str | None) -> bool:
    """PyTorch before 1.12: with a distributed training that hid less of what it sends."""
    found = _TORCH.search(software or "")
    return software == _SMALL_BATCH or (found is not None and (int(found[1]), int(found[2])) < (1, 12))


def source(setting: Setting) -> str:
    """Whose scripts ran: they differ a little in what they count."""
    software = setting.software or ""
    return next((name for start, name in _SCRIPTS if software.startswith(start)), "")


_SMALL_BATCH = "torchvision-2021"
_ERAS = (
    ((2, 0), CURRENT["train"]),
    ((1, 12), "PyTorch 1.13"),
    ((1, 5), "PyTorch 1.7 to 1.11"),
    ((0, 0), "PyTorch 1.4"),
)
_INFERENCE_ERAS = (
    ((2, 6), CURRENT["infer"]), ((2, 3), "inference, PyTorch 2.4"), ((2, 0), "inference, PyTorch 2.1"),
    ((0, 0), "inference, PyTorch 1.13"),
)  # fmt: skip
_TORCH = re.compile(r"torch-(\d+)\.(\d+)")
_SCRIPTS = (("ngc-", "ngc"), ("timm-", "timm"), ("tensorflow", "tensorflow"), (_SMALL_BATCH, _SMALL_BATCH))


def _work(setting: Setting) -> Work:
    typical = TYPICAL_WORK.get(setting.family or "", TYPICAL_WORK[""])
    return replace(setting.work or typical, transformer=setting.family == "transformer")


def _rates(setting: Setting) -> Rates:
    found = rates(setting.accelerator, setting.arithmetic)
    if found is None:
        raise ValueError(f"no rates of {setting.accelerator.id} in {setting.precision}")
    return found


def _layout(setting: Setting) -> str:
    """Memory format, and what else changes the kernels."""
    plain = "bf16" if setting.precision == "bf16" else ""
    return " ".join(filter(None, (setting.memory_format, plain, "compiled" if setting.compiled else "")))


def _sheet(accelerator: Accelerator, on: Rates) -> tuple[float, float, float, float]:
    return (
        log(on.peak_tflops / 50.0),
        log(on.bandwidth_gb_per_s / 900.0),
        log((accelerator.tdp_w or 250.0) / 250.0),
        log((accelerator.fp32_tflops or 20.0) / 20.0),
    )


def _more(work: Work | None) -> tuple[float, float, float] | None:
    """Elements kept for each activation, launches for each operation (both as logarithms), share of depthwise work."""
    if work is None or work.stored_m is None or work.launches is None or work.depthwise_gmacs is None:
        return None
    return log(work.stored_m / (2 * work.activations_m)), log(work.launches / 400.0), work.depthwise_gmacs / work.gmacs


def _moved(name: str) -> Coefficients:
    """NOMINAL with one coefficient a little larger."""
    value = getattr(NOMINAL, name)
    moved = value + SMALL if name.endswith("exponent") else value * np.exp(SMALL)
    return replace(NOMINAL, **{name: float(moved)})


def _columns(works: Sequence[Work]) -> Work:
    return Work(
        gmacs=_column(works, lambda w: w.gmacs),
        activations_m=_column(works, lambda w: w.activations_m),
        parameters_m=_column(works, lambda w: w.parameters_m),
        operations=_column(works, lambda w: w.operations),
        transformer=_column(works, lambda w: w.transformer),  # type: ignore[arg-type]
    )


def _rate_columns(devices: Sequence[Rates]) -> Rates:
    return Rates(
        peak_tflops=_column(devices, lambda r: r.peak_tflops),
        bandwidth_gb_per_s=_column(devices, lambda r: r.bandwidth_gb_per_s),
        w_per_tflops=_column(devices, lambda r: r.w_per_tflops),
        half=_column(devices, lambda r: r.half),  # type: ignore[arg-type]
        tensor=_column(devices, lambda r: r.tensor),  # type: ignore[arg-type]
        slower=_column(devices, lambda r: r.slower),
    )


def _column(values: Sequence[object], take: Callable[..., float]) -> float:
    """A column that the scalar formulas of `roofline` work on element by element."""
    return np.array([take(v) for v in values], np.float64)  # type: ignore[return-value]
