"""What the host lets through: its CPUs, the store of the data, and the rate that is left of the device's.

    fed = vCPUs · CPUs a vCPU is worth / CPU seconds of a sample          stored = what the store gives, samples/s
    rate = (device^-p + fed^-p + stored^-p)^(-1/p),  p = SHARPNESS

A minimum with a soft corner: where two parts are equally fast their variations do not overlap, and some is lost. Of the
parts' named errors each counts with the probability that this part is the limit, Φ of the distance over its sd (C. E.
Clark, Operations Research 9 (1961) 145, the linear part), here by the logistic law of the same variance; what that
leaves out of the variance of a minimum is an error of its own, `WHICH_LIMITS`.

Test values: 30 ms a sample on 4 vCPUs are 133.3 samples/s, and a device of 900/s runs at 133.3, 14.8 % of it (UC-051);
two parts of 100/s leave 91.7/s. A store of 95 MB/s with files of 110 kB gives 863.6/s (UC-016).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import pi, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwise.estimate import Estimate, exact
from gpuwise.model import Assumptions, Workload
from gpuwise.units import Fraction, Seconds

Floats = NDArray[np.float64]

SHARPNESS = 8.0
"""Of the soft corner: two equal parts together reach 2^(-1/8) = 92 % of either. An assumption; a loader with deep
prefetch has a sharper one."""
CORNER_SD = pi / (sqrt(3) * SHARPNESS)
"""Log sd of the difference of two parts from step to step that such a corner stands for."""
MIXED = 0.36
"""Var(min(0, u)) of a centred normal u is 0.341·Var(u); half the error of either part makes 0.25 of it, and the rest is
0.091 = 0.36 · ½ · ½."""
WHICH_LIMITS = "whether the host or the device limits"
LOAD = "CPU time to load a sample"
VCPU = "vcpu_cpus"
SHARED_HOST = "shared_host_cpu_fraction"
IMAGE_LOAD = "image_load_s"
"""Names of assumptions: what a vCPU is worth of the CPU on which loading was measured, what of it is left where others
use the same physical host, and what loading an image takes where nobody measured it."""
OWN_LOAD_SD = 0.1
"""Two measurements of the same loader differ by so much: other files, a warm or a cold cache."""

TINY = 1e-6
"""A smaller log sd is none."""

Part = Literal["CPU", "storage"]


class Mixed(NamedTuple):
    """Two parts together. first, second: the probability that this part is the limit; which_sd: see `WHICH_LIMITS`."""

    rate: Floats
    first: Floats
    second: Floats
    which_sd: Floats


def joined(rate: Floats, sd: Floats, cap: Floats, cap_sd: Floats) -> Mixed:
    """A rate under a cap, both samples/s with their log sd, shape (m,); a NaN cap is none.

    The rate is under both; it never falls where a part grows.
    """
    known = ~np.isnan(cap)
    ratio = np.log(rate / np.where(known, cap, rate))
    corner = (1 + np.exp(-SHARPNESS * np.abs(ratio))) ** (-1 / SHARPNESS)
    softened = np.where(known, np.where(ratio > 0, cap, rate) * corner, rate)
    uncertain = sd**2 + np.where(known, cap_sd, 0.0) ** 2
    second = np.where(known, _logistic(ratio * pi / np.sqrt(3 * (CORNER_SD**2 + uncertain))), 0.0)
    which = np.sqrt(MIXED * second * (1 - second) * uncertain)
    return Mixed(rate=softened, first=1 - second, second=second, which_sd=which)


def _logistic(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * np.clip(x, -700, 700))))


def under(rate: Estimate, cap: Estimate) -> Estimate:
    """One rate under one cap, with the errors of both."""
    mixed = joined(*(np.array(x) for x in (rate.value, rate.log_sd, cap.value, cap.log_sd)))
    parts: dict[str, float] = {}
    for one, weight in ((rate, float(mixed.first)), (cap, float(mixed.second))):
        for name, sd in one.spread:
            parts[name] = parts.get(name, 0.0) + weight * sd
    # Far from the corner nothing is added, so that a device with CPUs in plenty keeps the very errors it had.
    spread = tuple(sorted((name, sd) for name, sd in parts.items() if abs(sd) > TINY))
    capped = replace(rate, value=float(mixed.rate), spread=spread, bounds=None)
    which = float(mixed.which_sd)
    return capped.widened(WHICH_LIMITS, which) if which > TINY else capped


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What caps one offer. per_s: what the part gives; used_fraction: of the device's rate that is left.

    sure: False where it rests on a loading time that nobody measured.
    """

    part: Part
    per_s: float
    device_per_s: float
    used_fraction: Fraction
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feeds:
    """What the hosts of m offers let through for one workload.

    load: CPU seconds of a sample, None where the job has nothing to load that is known of. measured: somebody measured
    it; else `load` is the least that is known (copies of the size that is trained on), so that only what no loader can
    feed is capped, and usual_s is what is usual. vcpu: what a vCPU is worth. vcpus: of each offer's machines together,
    shape (m,), NaN where it is not known; shared: others use the same physical host, which leaves `left` of its CPUs.
    store: samples/s that the store of the data gives the whole job.
    """

    load: Estimate | None
    measured: bool
    usual_s: Seconds | None
    vcpu: Estimate
    vcpus: Floats
    shared: NDArray[np.bool_]
    left: Estimate
    store: Estimate | None

    @staticmethod
    def of(
        workload: Workload, vcpus: Floats, assumptions: Assumptions, shared: NDArray[np.bool_] | None = None
    ) -> Feeds:
        """shared: offers known to be a part of a physical host that others use too, shape (m,)."""
        assumed = assumptions.get(IMAGE_LOAD) if workload.sample == "image" else None
        load, usual_s = None, None
        if workload.decode_s:
            load = Estimate(value=workload.decode_s, spread=((LOAD, OWN_LOAD_SD),), basis="measured")
        elif assumed is not None:
            load, usual_s = Estimate(value=assumed.low or assumed.value, basis="assumed"), assumed.value
        worth = assumptions[VCPU].estimate if VCPU in assumptions else Estimate(value=1.0, basis="assumed")
        store = workload.storage_per_s
        return Feeds(
            load=load,
            measured=bool(workload.decode_s),
            usual_s=usual_s,
            vcpu=worth if workload.decode_s else replace(worth, spread=()),
            vcpus=vcpus,
            shared=np.zeros(len(vcpus), np.bool_) if shared is None else shared,
            left=assumptions[SHARED_HOST].estimate if SHARED_HOST in assumptions else exact(1.0, "assumed"),
            store=None if store is None else Estimate(value=store, spread=(("store", OWN_LOAD_SD),), basis="measured"),
        )

    def fed(self, row: int) -> Estimate | None:
        """samples/s that the CPUs of an offer load; None where its vCPUs or the loading time are not known."""
        vcpus = float(self.vcpus[row])
        if self.load is None or not vcpus > 0:
            return None
        alone = self.vcpu * vcpus / self.load
        return alone * self.left if self.shared[row] else alone

    def rates(self, rate: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Rates of m offers under their caps, and their log sd; as `rate` says of one, but for errors of one name."""
        if self.load is not None:
            fed = self.vcpus * self.vcpu.value / self.load.value * np.where(self.shared, self.left.value, 1.0)
            shared_sd = np.where(self.shared, self.left.log_sd, 0.0)
            cap_sd = np.hypot(np.hypot(self.vcpu.log_sd, self.load.log_sd), shared_sd)
            rate, sd = _after(joined(rate, sd, np.where(fed > 0, fed, np.nan), cap_sd), sd, cap_sd)
        if self.store is not None:
            cap, cap_sd = (np.full(len(rate), x) for x in (self.store.value, self.store.log_sd))
            rate, sd = _after(joined(rate, sd, cap, cap_sd), sd, cap_sd)
        return rate, sd

    def rate(self, row: int, device: Estimate) -> Estimate:
        """The device's rate under what this offer's host and the store let through."""
        fed = self.fed(row)
        left = device if fed is None else under(device, fed)
        return left if self.store is None else under(left, self.store)

    def limit(self, row: int, device: Estimate) -> Limit | None:
        """The part that caps this offer for sure, or would if an image takes what is usual; None if none does."""
        caps: list[tuple[Part, float, bool]] = []
        fed = self.fed(row)
        if fed is not None:
            caps.append(("CPU", fed.value, True))
        if self.store is not None:
            caps.append(("storage", self.store.value, True))
        if fed is not None and self.load is not None and self.usual_s:
            caps.append(("CPU", fed.value * self.load.value / self.usual_s, False))
        held = [(part, cap, sure) for part, cap, sure in caps if cap < device.value]
        if not held:
            return None
        part, cap, sure = min(held, key=lambda one: (not one[2], one[1]))
        used = self.rate(row, device).value / device.value if sure else cap / device.value
        return Limit(part=part, per_s=cap, device_per_s=device.value, used_fraction=used, sure=sure)


def _after(mixed: Mixed, sd: Floats, cap_sd: Floats) -> tuple[Floats, Floats]:
    parts = (mixed.first * sd, mixed.second * cap_sd, mixed.which_sd)
    return mixed.rate, np.sqrt(np.sum([part**2 for part in parts], axis=0))


def storage_per_s(read_mb_per_s: float, sample_bytes: float) -> float:
    """samples/s that a store gives: 10^6 bytes a second over the mean size of a sample's file."""
    return read_mb_per_s * 1e6 / sample_bytes
