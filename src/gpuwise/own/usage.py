"""Rows of FOCUS cost exports, summed up → GPU-hours, spend and commitments, month by month and hour by hour.

    GPU-hours = Σ quantity in hours × GPUs of the machine, over rows of use
    trend     = Σ EffectiveCost of use: unused commitments are in it, since they are paid; purchases are not, since
                EffectiveCost spreads them over the use; tax, credits and corrections stand apart
    cash      = Σ BilledCost of all rows, in the month of the invoice
    utilisation of a commitment = EffectiveCost Used / (Used + Unused); rows without a status are none of it

A correction (ChargeClass) nets hours: its quantity is negative. A credit is money alone and changes no hour. What is
unused has no hours. Amounts are in `currency`, and several currencies are never added up without rates.

Source: FOCUS 1.2, EffectiveCost, BilledCost, ChargeClass, CommitmentDiscountStatus, SkuPriceDetails; its data of
commitment examples. Test values: Used 0.75 and Unused 0.25: utilisation 0.75, effective 1.0. 1 USD/h over 8,760 h paid
half up front: 4,380 at once and 365 in each of 12 months (the prose of the specification prints 182.50).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import fsum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import Message
from gpuwise.units import SECONDS_PER_HOUR, Fraction, Hours

Floats = NDArray[np.float64]
Kind = Literal["usage", "purchase", "tax", "credit", "adjustment", "correction"]
"""ChargeCategory; correction where ChargeClass says so."""
Role = Literal["none", "machine", "card", "beside", "unknown"]
"""machine: a machine with GPUs. card: a GPU billed by itself (Google). beside: cores and memory billed beside such a
card. unknown: by its name a machine with GPUs, and nobody says with how many, or for how long."""
Pricing = Literal["standard", "committed", "spot", "other"]
"""PricingCategory; spot is FOCUS's Dynamic."""
MOST_OF_THE_HOURS = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Rows that are alike in all but their amounts, summed up. Amounts in `currency`; None: no row has one.

    month: of use; invoice: of the invoice. machine: only for an unknown one. hours: that machines with GPUs, or
    single cards, ran. odd, whole: rows of use whose BilledCost is no whole amount, and those of them whose
    EffectiveCost is one.
    """

    provider: str
    service: str
    category: str
    region: str
    currency: str
    month: str
    invoice: str
    kind: Kind
    unused: bool
    pricing: Pricing
    role: Role
    machine: str | None
    flow: Literal["egress", "storage"] | None
    commitment: str | None
    commitment_category: str
    commitment_type: str
    status: Literal["used", "unused"] | None
    first: datetime
    last: datetime
    rows: int
    effective: float
    billed: float
    listed: float | None
    contracted: float | None
    gpu_h: float
    hours: float
    odd: int = 0
    whole: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """GPU-hours by charge period, (n,): start_h, end_h in hours since 1970 UTC. accelerators: id, None if not known."""

    accelerators: tuple[str | None, ...]
    start_h: Floats
    end_h: Floats
    gpu_h: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BillMonth:
    """One month in one currency.

    By the month of use: effective (the trend, with unused), list_cost and contracted (the same rows; None where the
    export has none), unused, gpu_rows (of machines with GPUs and of cards, used or not), instance_h (of them),
    GPU-hours (corrections netted, as in instance_h), gpu_effective (machines with GPUs, cores and memory beside cards,
    and the unused part of commitments on GPUs), gpu_list, gpu_unused, gpu_corrections (apart from gpu_effective).
    By the month of the invoice: billed (all rows), and of it purchases, credits, refunds (adjustments and
    corrections), tax.
    """

    month: str
    currency: str
    effective: float
    list_cost: float | None
    contracted: float | None
    unused: float
    gpu_rows: int
    instance_h: float
    gpu_h: float
    standard_gpu_h: float
    committed_gpu_h: float
    spot_gpu_h: float
    other_gpu_h: float
    gpu_effective: float
    gpu_list: float | None
    gpu_unused: float
    gpu_corrections: float
    billed: float
    purchases: float
    credits: float
    refunds: float
    tax: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSpend:
    """The trend of one service over all months. gpu_effective: the part of it that is GPUs."""

    provider: str
    service: str
    category: str
    currency: str
    effective: float
    gpu_effective: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionSpend:
    """The trend of one region over all months, and its GPU-hours. region "": the rows name none."""

    provider: str
    region: str
    currency: str
    effective: float
    gpu_h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSpend:
    """What data costs: egress (transfer out of a region or a provider) and storage, by provider, over all months."""

    kind: Literal["egress", "storage"]
    provider: str
    currency: str
    effective: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """A commitment discount. used, unused: effective; bought: billed by its purchase rows, the month's fees included.

    first, last: the record's first and last moment of it. until: the latest end of what was bought, None if the record
    does not hold the purchase. gpu_fraction: part of what was used that went to GPUs, None where none was used.
    """

    id: str
    provider: str
    category: str
    type: str
    currency: str
    used: float
    unused: float
    bought: float
    first: datetime
    last: datetime
    until: datetime | None
    gpu_fraction: Fraction | None

    @property
    def utilisation_fraction(self) -> Fraction | None:
        """Used / (used + unused); None where no row says that it was used or not."""
        whole = self.used + self.unused
        return self.used / whole if whole else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownMachine:
    """Machines that have GPUs by their name, of a number or for a time that nobody says: neither hours nor cost are in
    the months' GPU figures. hours: of machines, as far as they are told."""

    machine: str
    provider: str
    currency: str
    rows: int
    hours: float
    effective: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bill:
    """Months of cost exports.

    rows: read, with those that were refused; rejects: the first reasons, with file and row; rejected: how many in all.
    start: UTC hour of the first GPU-hour, None without any. gpus: GPUs in use at once, hour by hour, (hours,), never
    below 0; by_accelerator: the same for each id (None: not known which); both empty without GPU-hours.
    resolution_h: charge periods are no longer than this for 95 % of the GPU-hours; how use varies within it is not
    known, and it is spread evenly. None without GPU-hours. paid: accelerator -> effective cost of the very rows that
    have its GPU-hours, without what is billed beside them; empty where currencies stand apart.
    """

    rows: int
    files: tuple[str, ...]
    months: tuple[BillMonth, ...]
    start: datetime | None
    gpus: Floats
    by_accelerator: Mapping[str | None, Floats]
    resolution_h: Hours | None
    services: tuple[ServiceSpend, ...]
    regions: tuple[RegionSpend, ...]
    flows: tuple[FlowSpend, ...]
    commitments: tuple[Commitment, ...]
    unknown: tuple[UnknownMachine, ...]
    rejected: int = 0
    rejects: tuple[Message, ...] = ()
    notes: tuple[Message, ...] = ()
    paid: Mapping[str | None, float] = field(default_factory=dict)

    @property
    def gpu_h(self) -> float:
        """All GPU-hours, corrections netted."""
        return fsum(month.gpu_h for month in self.months)

    @property
    def currencies(self) -> tuple[str, ...]:
        return tuple(sorted({month.currency for month in self.months}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is known of the files themselves. paid: accelerator, currency, effective cost of the rows with its hours."""

    files: tuple[str, ...]
    rejected: int = 0
    rejects: tuple[Message, ...] = ()
    notes: tuple[Message, ...] = field(default=())
    paid: tuple[tuple[str | None, str, float], ...] = ()


# ---- hour by hour ----

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def hourly(spans: Spans) -> tuple[datetime | None, dict[str | None, Floats], float]:
    """The first hour, GPUs in use in each hour from then on by accelerator, and GPU-hours below 0 that were left out.

    A correction may take hours where none were used; GPUs in use are never below 0. Test value: 48 GPU-hours in a
    charge period of a day are 2 GPUs in each of its hours.
    """
    if not len(spans.gpu_h):
        return None, {}, 0.0
    origin = float(np.floor(spans.start_h.min()))
    number = int(np.ceil(max(spans.end_h.max(), origin + 1) - origin))
    names = np.array([name or "" for name in spans.accelerators])
    series: dict[str | None, Floats] = {}
    clipped = 0.0
    for name in sorted(set(names.tolist())):
        rows = names == name
        gpus = spread(spans.start_h[rows] - origin, spans.end_h[rows] - origin, spans.gpu_h[rows], number)
        gpus[np.abs(gpus) < NOTHING] = 0.0
        clipped -= float(gpus[gpus < 0].sum())
        series[name or None] = np.maximum(gpus, 0.0)
    return _EPOCH + timedelta(seconds=origin * SECONDS_PER_HOUR), series, clipped


NOTHING = 1e-9
"""GPUs in use: less is what rounding leaves."""


def spread(start_h: Floats, end_h: Floats, gpu_h: Floats, hours: int) -> Floats:
    """GPU-hours of each hour, each span spread evenly over its own time; (hours,). Nothing is lost at the edges."""
    first = np.floor(start_h).astype(np.int64)
    last = np.maximum(np.ceil(end_h).astype(np.int64) - 1, first)
    whole = first == last
    rate = np.divide(gpu_h, end_h - start_h, out=np.zeros_like(gpu_h), where=~whole)
    found, steps = np.zeros(hours), np.zeros(hours + 1)
    np.add.at(found, first, np.where(whole, gpu_h, rate * (first + 1 - start_h)))
    long = ~whole
    np.add.at(found, last[long], rate[long] * (end_h[long] - last[long]))
    np.add.at(steps, first[long] + 1, rate[long])
    np.add.at(steps, last[long], -rate[long])
    return np.asarray(found + np.cumsum(steps)[:-1])


def resolution_h(spans: Spans) -> Hours | None:
    """The length of charge periods that 95 % of the GPU-hours lie in, or shorter ones; None without GPU-hours."""
    weight = np.abs(spans.gpu_h)
    if not weight.sum():
        return None
    length = spans.end_h - spans.start_h
    order = np.argsort(length, kind="stable")
    reached = np.cumsum(weight[order]) >= MOST_OF_THE_HOURS * weight.sum()
    return float(length[order][int(np.argmax(reached))])
