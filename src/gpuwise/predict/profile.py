"""From a step's time by class of operation on one GPU to its time on another.

    ln t(target)/t(anchor) = ln Σ_c share_c · exp g_c(x_c)

share_c: of class c in the step on the anchor, idle time of the device included; g_c: ln of that class's time on the
target over its time on the anchor, a Gaussian process of its own for each class and pair of GPUs. It learns from steps
of other models that were profiled on both. x_c: ln of the class's, the idle and the whole time, ln batch, ln size.
Between GPUs that no table has profiled, data sheets give the ratio: matrix classes by the geometric mean of the ratios
of peak rate and bandwidth, the others by bandwidth, idle time as it is (it belongs to the host).

Source of the rows: Lee et al., PROFET, IEEE CLOUD 2022 (TensorFlow 2.5, fp32, 12 CNNs on K80, M60, T4 and V100).
Test value: half a step in convolutions that take a third of the time, half idle as before: ln(0.5/3 + 0.5) = −0.405.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from math import hypot, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import InvalidInput, Message
from gpuwise.model import Accelerator, Precision
from gpuwise.predict.profile_fitted import FACTORS, SCALES
from gpuwise.predict.roofline import SINCE_AMPERE, arithmetic, rates
from gpuwise.units import Fraction, Seconds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CLASSES = ("convolution", "matrix", "norm", "elementwise", "optimizer", "idle")
MATRIX = ("convolution", "matrix")

FLOOR_S = 1e-4
"""Added to a time before its logarithm: a class that is not there has no logarithm."""

LEAST_SHARE = 1e-3
"""Below it a share says nothing about the class's rate."""

ABSENT = 1e-4
"""A class with less of a step, on either GPU, is not learned from."""

BLIND = 1e4
"""Variance of a row that is not to be learned from."""

SHEET_LOG_SD = 0.25
"""What data sheets alone missed between M60, T4 and V100 (root mean square 0.19, on PROFET), and a margin."""

OLD_LOG_SD = 0.5
"""The same from and to K80 (0.47)."""

UNTRIED_LOG_SD = 0.25
"""Added to both for arithmetic and architectures that PROFET did not have."""

SUM_TOLERANCE = 0.02

PAUSING, WAITING = 0.1, 0.4
"""Idle shares on the anchor from which the device pauses, and waits: the posterior is too sure of such steps."""


def pace(idle: Fraction) -> str:
    """How much the device waits: busy, pausing or waiting."""
    return "busy" if idle < PAUSING else "pausing" if idle < WAITING else "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Shares of one training step as the device spends it; they sum to 1. Host threads that run beside are not in it.

    convolution, matrix: with their gradients. norm: batch and layer normalisation. elementwise: with pooling, losses
    and copies. optimizer: weight updates. idle: the device waits for launches, copies or data.
    """

    convolution: Fraction
    matrix: Fraction
    norm: Fraction
    elementwise: Fraction
    optimizer: Fraction
    idle: Fraction

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value <= 1:
                raise InvalidInput(
                    Message("The share of {name} is {value:.4g}.", name=field.name, value=value),
                    Message("Shares of a step lie between 0 and 1."),
                )
        if abs(self.shares.sum() - 1) > SUM_TOLERANCE:
            raise InvalidInput(
                Message("The shares of the step sum to {total:.4g}.", total=float(self.shares.sum())),
                Message("Give every class of operation, and idle, as a share of the same step: they sum to 1."),
            )

    @property
    def shares(self) -> Floats:
        """In the order of CLASSES, (6,)."""
        return np.array([getattr(self, name) for name in CLASSES])


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step as it was profiled on the anchor. image_size: edge in pixels, None where there are no images."""

    profile: Profile
    step_s: Seconds
    batch: int
    image_size: int | None = None
    precision: Precision = "fp32"
    family: str | None = None


class Ratio(NamedTuple):
    """ln of the step's time on the target over that on the anchor, its sd (of an 80 % interval: ± 1.2816 sd), and
    whether profiled rows of both GPUs say so, or data sheets."""

    log: float
    log_sd: float
    learned: bool


@dataclass(frozen=True, slots=True, eq=False)
class Profiles:
    """Steps that were profiled on every one of `gpus`: n configurations on g GPUs. Make it once: answers are kept.

    shares: (n, g, 6); step_s: (n, g); batch, image_size, workload, family: (n,).
    """

    gpus: tuple[str, ...]
    shares: Floats
    step_s: Floats
    batch: Floats
    image_size: Floats
    workload: NDArray[np.str_]
    family: NDArray[np.str_]

    @staticmethod
    def of(rows: Iterable[Mapping[str, str]]) -> Profiles:
        """Rows of profiles.csv as text; configurations that lack a GPU are left out."""
        found: dict[tuple[str, str, int, int], dict[str, Mapping[str, str]]] = {}
        for row in rows:
            size, batch = int(row["image_size"]), int(row["batch_per_accelerator"])
            found.setdefault((row["family"], row["workload"], size, batch), {})[row["accelerator"]] = row
        gpus = tuple(sorted({gpu for seen in found.values() for gpu in seen}))
        whole = {key: [seen[g] for g in gpus] for key, seen in sorted(found.items()) if len(seen) == len(gpus)}
        shares = np.array([[[float(row[c]) for c in CLASSES] for row in each] for each in whole.values()])
        return Profiles(
            gpus=gpus,
            shares=shares.reshape(len(whole), len(gpus), len(CLASSES)),
            step_s=np.array([[float(row["step_s"]) for row in each] for each in whole.values()]),
            batch=np.array([key[3] for key in whole], dtype=float),
            image_size=np.array([key[2] for key in whole], dtype=float),
            workload=np.array([key[1] for key in whole]),
            family=np.array([key[0] for key in whole]),
        )

    def only(self, kept: NDArray[np.bool_]) -> Profiles:
        """Those configurations."""
        return Profiles(
            self.gpus, self.shares[kept], self.step_s[kept], self.batch[kept], self.image_size[kept],
            self.workload[kept], self.family[kept],
        )  # fmt: skip

    def features(self, gpu: int, c: int) -> Floats:
        """x_c on one GPU, (n, 5)."""
        return features(self.shares[:, gpu], self.step_s[:, gpu], self.batch, self.image_size, c)

    def learned(self, anchor: int, target: int, c: int) -> tuple[Floats, Floats]:
        """ln of the class's time on the target over that on the anchor, 0 where it cannot be learned from, (n,); the
        share it rests on (geometric mean of both), 0 likewise."""
        before, after = self.shares[:, anchor, c], self.shares[:, target, c]
        told = (before >= ABSENT) & (after >= ABSENT)
        times = np.where(told, before * self.step_s[:, anchor], 1), np.where(told, after * self.step_s[:, target], 1)
        return np.log(times[1] / times[0]), np.where(told, np.sqrt(before * after), 0)


def features(shares: Floats, step_s: Floats, batch: Floats, image_size: Floats, c: int) -> Floats:
    """x_c of n steps, (n, 5)."""
    own, idle = (np.log(step_s * shares[:, k] + FLOOR_S) for k in (c, CLASSES.index("idle")))
    return np.column_stack([own, idle, np.log(step_s), np.log(batch), np.log(image_size)])


CENTRE = np.array([-3.5, -5.5, -2.5, 4.1, 4.6])
"""Where the linear part of the kernel is 0: about the middle of the features."""

FEATURES = len(CENTRE)
PARTS = ("constant", "smooth", "workload", "family", "noise", "share noise")
"""Standard deviations of the kernel's parts; the last is divided by the share a row rests on."""


class Kernel(NamedTuple):
    """The scales of one class: s of PARTS (6,), lengths and slopes of the features (5,)."""

    s: Floats
    lengths: Floats
    slopes: Floats

    @staticmethod
    def of(logs: Floats) -> Kernel:
        """From natural logarithms in this order, (16,)."""
        values = np.exp(logs)
        return Kernel(values[:6], values[6 : 6 + FEATURES], values[6 + FEATURES :])

    def smooth(self, x: Floats, y: Floats) -> Floats:
        """exp(−½ Σ ((x − y)/length)²), (n, m)."""
        a, b = x / self.lengths, y / self.lengths
        square = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T
        return np.asarray(np.exp(-0.5 * np.maximum(square, 0)))

    def shared(self, x: Floats, y: Floats) -> Floats:
        """What steps of different workloads have in common, (n, m)."""
        line = ((x - CENTRE) * self.slopes) @ ((y - CENTRE) * self.slopes).T
        return np.asarray(self.s[0] ** 2 + self.s[1] ** 2 * self.smooth(x, y) + line)

    def noise(self, weight: Floats) -> Floats:
        """Variance of each row, from the share that it rests on, (n,)."""
        own = self.s[4] ** 2 + self.s[5] ** 2 / np.maximum(weight, LEAST_SHARE) ** 2
        return np.asarray(np.where(weight > 0, own, BLIND))


def centre(y: Floats, weight: Floats) -> float:
    """Mean of what can be learned from."""
    return float(y[weight > 0].mean()) if (weight > 0).any() else 0.0


def covariance(rows: Profiles, anchor: int, c: int, kernel: Kernel) -> Floats:
    """Of all rows, noise apart, (n, n)."""
    x = rows.features(anchor, c)
    alike = kernel.s[2] ** 2 * _same(rows.workload) + kernel.s[3] ** 2 * _same(rows.family)
    return np.asarray(kernel.shared(x, x) + alike)


def _same(names: NDArray[np.str_]) -> Floats:
    """1 where two rows have the name in common, else 0, (n, n)."""
    codes = np.unique(names, return_inverse=True)[1]
    return np.asarray(codes[:, None] == codes, dtype=float)


def told(rows: Profiles, asked: Profiles, pair: tuple[int, int], c: int, kernel: Kernel) -> tuple[Floats, Floats]:
    """Mean and variance of g_c for steps of workloads that are not among the rows, (m,) each."""
    y, weight = rows.learned(*pair, c)
    mean, x, at = centre(y, weight), rows.features(pair[0], c), asked.features(pair[0], c)
    cross = kernel.shared(x, at) + kernel.s[3] ** 2 * (rows.family[:, None] == asked.family)
    whole = covariance(rows, pair[0], c, kernel) + np.diag(kernel.noise(weight))
    known = np.where(weight > 0, y - mean, 0)
    solved = np.linalg.solve(whole, np.column_stack([known, cross]))
    own = kernel.s[0] ** 2 + kernel.s[1] ** 2 + (((at - CENTRE) * kernel.slopes) ** 2).sum(1)
    prior = own + (kernel.s[2:5] ** 2).sum()
    return mean + cross.T @ solved[:, 0], np.maximum(prior - (cross * solved[:, 1:]).sum(0), 0)


def predicted(rows: Profiles, asked: Profiles, pair: tuple[int, int], scales: Floats) -> tuple[Floats, Floats]:
    """ln ratio of each step and its sd before the interval factor, (m,) each: the means over the members.

    pair: places of anchor and target among the GPUs of the rows. scales: logarithms, (members, 6, 16). What the members
    have in common is worked out once.
    """
    kept: dict[tuple[int, bytes], tuple[Floats, Floats]] = {}
    found = []
    for member in scales:
        for c, logs in enumerate(member):
            if (c, logs.tobytes()) not in kept:
                kept[c, logs.tobytes()] = told(rows, asked, pair, c, Kernel.of(logs))
        each = [kept[c, logs.tobytes()] for c, logs in enumerate(member)]
        found.append(_summed(asked.shares[:, pair[0]], *(np.column_stack([e[k] for e in each]) for k in (0, 1))))
    return np.mean([mean for mean, _ in found], axis=0), np.mean([sd for _, sd in found], axis=0)


def _summed(shares: Floats, logs: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """ln Σ share · exp(log), and its sd to first order; the errors of the classes are taken as independent."""
    parts = shares * np.exp(logs)
    total = parts.sum(1)
    return np.log(total), np.sqrt(((parts / total[:, None]) ** 2 * variances).sum(1))


@lru_cache(maxsize=256)
def _asked(rows: Profiles, step: Step, pair: tuple[int, int]) -> tuple[float, float]:
    shares = step.profile.shares / step.profile.shares.sum()
    one = Profiles(
        gpus=rows.gpus,
        shares=np.tile(shares, (1, len(rows.gpus), 1)),
        step_s=np.full((1, len(rows.gpus)), step.step_s),
        batch=np.array([float(step.batch)]),
        image_size=np.array([float(step.image_size or 1)]),
        workload=np.array([""]),
        family=np.array([step.family or ""]),
    )
    mean, sd = predicted(rows, one, pair, np.array(SCALES))
    return float(mean[0]), float(sd[0])


def ratio(
    step: Step, anchor: Accelerator, target: Accelerator, rows: Profiles, seats: Mapping[str, Accelerator]
) -> Ratio | None:
    """See above. rows: profiled steps; seats: data sheets of their GPUs, by id. None: a data sheet says too little.

    A GPU with the same chip, rate and bandwidth as a profiled one counts as that one.
    """
    places = _place(anchor, rows, seats), _place(target, rows, seats)
    if places[0] is None or places[1] is None or step.precision != "fp32" or step.image_size is None:
        return by_data_sheet(step, anchor, target)
    if places[0] == places[1]:
        return Ratio(0.0, 0.0, True)
    mean, sd = _asked(rows, step, (places[0], places[1]))
    known = step.family is not None and step.family in rows.family
    return Ratio(mean, sd * FACTORS[f"{'model' if known else 'family'} {pace(step.profile.idle)}"], True)


def _place(card: Accelerator, rows: Profiles, seats: Mapping[str, Accelerator]) -> int | None:
    """Which of the profiled GPUs it is, or is like."""
    if card.id in rows.gpus:
        return rows.gpus.index(card.id)
    sheet = (card.architecture, card.fp32_tflops, card.bandwidth_gb_per_s)
    for place, gpu in enumerate(rows.gpus):
        seat = seats.get(gpu)
        if seat and (seat.architecture, seat.fp32_tflops, seat.bandwidth_gb_per_s) == sheet:
            return place
    return None


def by_data_sheet(step: Step, anchor: Accelerator, target: Accelerator) -> Ratio | None:
    """Class rates from data sheets alone."""
    before, after = (rates(card, arithmetic(step.precision, card)) for card in (anchor, target))
    if before is None or after is None:
        return None
    old = before.slower / after.slower
    traffic = before.bandwidth_gb_per_s / after.bandwidth_gb_per_s * old
    matrix = (before.peak_tflops / after.peak_tflops * old * traffic) ** 0.5
    each = [1.0 if c == "idle" else matrix if c in MATRIX else traffic for c in CLASSES]
    shares = step.profile.shares / step.profile.shares.sum()
    sd = OLD_LOG_SD if min(before.slower, after.slower) < 1 else SHEET_LOG_SD
    untried = step.precision != "fp32" or {anchor.architecture, target.architecture} & SINCE_AMPERE
    return Ratio(log(float(shares @ each)), hypot(sd, UNTRIED_LOG_SD) if untried else sd, False)
