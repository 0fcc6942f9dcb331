"""What of a stated rate or count cannot be: units that were mistaken, rates that no device reaches.

    samples/s ≤ 3 · devices / max(MACs at peak, activations at bandwidth)      training: 3 forward passes

The factor leaves room for data sheets that say too little (half accumulation, sparsity is never counted).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log, sqrt

from gpuwise.errors import Message
from gpuwise.predict.naive import site
from gpuwise.predict.roofline import Work, ideal_seconds
from gpuwise.predict.setting import Reading, Setting

BEYOND = 3.0
"""A rate so many times beyond the data sheet's is a mistake of units."""

SLOW, SLOW_STEP_S = 100.0, 2.0
"""So many times the least time of a sample, and so long a step beside it, are no step of a job: it is another unit."""

MOST_GMACS, MOST_PARAMETERS_M, MOST_ACTIVATIONS_M = 1e6, 2e6, 1e6
SPARSE_PARAMETERS_M, SPARSE_GMACS = 1e5, 1e3
"""A network of more parameters than the one and less work than the other has mistaken their unit, or is a table of
embeddings."""

LEAST_PLACES = 4
INVERSE_SLOPE, INVERSE_CORRELATION = -0.5, -0.9
"""Where rates of training fall so with what data sheets promise, on so many places, they are times."""


def impossible(name: str, value: float) -> Message | None:
    """Why a count cannot be; name: gmacs, activations_m or parameters_m."""
    most = {"gmacs": MOST_GMACS, "activations_m": MOST_ACTIVATIONS_M, "parameters_m": MOST_PARAMETERS_M}[name]
    unit = {"gmacs": "10^9", "activations_m": "10^6", "parameters_m": "10^6"}[name]
    if not value > 0:
        return Message("{value:g} is not above 0", value=value)
    if value > most:
        return Message("{value:g} is more than any network has: it is counted in {unit}", value=value, unit=unit)
    return None


def sparse(gmacs: float | None, parameters_m: float | None, family: str | None) -> Message | None:
    """Why so many parameters do not go with so little work."""
    if gmacs is None or parameters_m is None or family == "recommendation":
        return None
    if parameters_m > SPARSE_PARAMETERS_M and gmacs < SPARSE_GMACS:
        return Message(
            "{value:g} does not go with {gmacs:g} gmacs: it is counted in 10^6", value=parameters_m, gmacs=gmacs
        )
    return None


def doubt(reading: Reading) -> Message | None:
    """Why a rate cannot be samples a second of this network on this device; None where nothing speaks against it."""
    setting, work = reading.setting, reading.setting.work
    on = site(setting)
    if work is None or on is None:
        return None
    least_s = ideal_seconds(work if setting.mode == "train" else _forward(work), on)
    each_s = setting.accelerators / reading.samples_per_s
    if each_s * BEYOND < least_s:
        return Message(
            "{rate:,.9g} samples/s is {times:,.0f} times what the data sheet of {name} allows a network of {gmacs:g} "
            "gmacs: one of the two is in another unit",
            rate=reading.samples_per_s, times=least_s / each_s, name=setting.accelerator.name, gmacs=work.gmacs,
        )  # fmt: skip
    if each_s > SLOW * least_s + SLOW_STEP_S * setting.accelerators / setting.batch:
        return Message(
            "{rate:,.9g} samples/s is less than a hundredth of what {name} could do: is it a time, or a rate of steps?",
            rate=reading.samples_per_s, name=setting.accelerator.name,
        )  # fmt: skip
    return None


def _forward(work: Work) -> Work:
    """Inference is one forward pass of the three of a training step, and need not write what it computes."""
    return Work(gmacs=work.gmacs / 3, activations_m=0.0, parameters_m=work.parameters_m)


@dataclass(frozen=True, slots=True)
class _Point:
    sheet: float
    rate: float


def inverse(questions: Iterable[Sequence[tuple[Setting, float]]]) -> bool:
    """Do the rates of one network fall where devices are faster, in question after question? Then they are times.

    questions: settings of one network in one arithmetic, each with what was measured there.
    """
    points = [point for question in questions for point in _centred(question) if question[0][0].mode == "train"]
    spread = sqrt(sum(p.sheet**2 for p in points))
    height = sqrt(sum(p.rate**2 for p in points))
    if len(points) < LEAST_PLACES or not spread or not height:
        return False
    product = sum(p.sheet * p.rate for p in points)
    return product / spread**2 < INVERSE_SLOPE and product / (spread * height) < INVERSE_CORRELATION


def _centred(question: Sequence[tuple[Setting, float]]) -> list[_Point]:
    """Logarithms of what the data sheets promise and of what was measured, each about its mean."""
    sheets = [(site(setting), rate / setting.accelerators) for setting, rate in question]
    known = [(log(on.peak_tflops * on.bandwidth_gb_per_s) / 2, log(rate)) for on, rate in sheets if on is not None]
    if not known:
        return []
    x, y = (sum(values) / len(known) for values in zip(*known, strict=True))
    return [_Point(sheet - x, rate - y) for sheet, rate in known]
