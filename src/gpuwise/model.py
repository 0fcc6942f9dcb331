"""Every domain type. Read this first; offers and machines are in `offer`, and named here too.

Values only: frozen, slotted, keyword-only. A number carries its unit in its name (`units.SUFFIXES`) and its docstring.
A figure that is not known is None, and the field `reasons` or a `Message` beside it says why; it is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import log
from typing import Literal

from gpuwise.errors import Message
from gpuwise.estimate import Z80, Estimate, Interval
from gpuwise.memory import MemoryFit, MemoryReading
from gpuwise.offer import Availability as Availability
from gpuwise.offer import Host as Host
from gpuwise.offer import Machine as Machine
from gpuwise.offer import Market as Market
from gpuwise.offer import Offer as Offer
from gpuwise.offer import PriceUnit as PriceUnit
from gpuwise.offer import Source as Source
from gpuwise.stopping import EarlyStop, Stop
from gpuwise.units import Fraction, GbPerSecond, Gib, Seconds, Tflops, Usd, UsdPerHour, Watts

Precision = Literal["fp32", "tf32", "amp", "amp_bf16", "bf16", "fp8"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One accelerator as it is sold, form factor and memory size included. Peak rates are dense, fp32 accumulation.

    memory_gib: nominal size per device, as sold. usable_memory_gib: what a driver reports, None where no source says.
    *_tflops: 10^12 operations/s; None where the device has no such unit or no source gives it.
    link_gb_per_s: device to device, both directions together.
    """

    id: str
    name: str
    vendor: str
    architecture: str
    form_factor: str
    memory_gib: Gib
    usable_memory_gib: Gib | None = None
    bandwidth_gb_per_s: GbPerSecond | None = None
    fp32_tflops: Tflops | None = None
    tf32_tflops: Tflops | None = None
    fp16_tflops: Tflops | None = None
    bf16_tflops: Tflops | None = None
    fp8_tflops: Tflops | None = None
    tdp_w: Watts | None = None
    link: str | None = None
    link_gb_per_s: GbPerSecond | None = None
    launched: date | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What a job runs on: performance belongs to it, not to the accelerator alone.

    variants: the accelerators it may be; more than one where the offer does not say which (predicted as a range).
    per_node: accelerators in one machine. link: NVLink, PCIe or None if unknown. mixed: all variants are in the one
    machine, one accelerator each or more, and the slowest sets the pace.
    """

    variants: tuple[Accelerator, ...]
    per_node: int = 1
    nodes: int = 1
    link: str | None = None
    mixed: bool = False

    @property
    def accelerators(self) -> int:
        return self.per_node * self.nodes

    @property
    def name(self) -> str:
        """The ids, joined by "/" where it is one of them, by "+" where all are in it."""
        return ("+" if self.mixed else "/").join(a.id for a in self.variants)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A job, in training unless `mode` says otherwise, described by counts that hold on any machine.

    gmacs: 10^9 multiply-accumulates of one forward pass of one sample. activations_m: 10^6 activation elements one
    sample's forward pass writes. stored_m: 10^6 elements one sample keeps for the backward pass (None: not counted,
    taken as 2 × activations_m). operations: convolutions, matrix products and attentions of one forward pass (None: not
    counted). launches: kernels of a forward and backward pass of a batch, about; depthwise_gmacs: 10^9 of the
    multiply-accumulates that are in depthwise convolutions. mode: train, or infer (forward passes only).
    peak_memory_gib, decode_s: as the person's own run had them, see `Measurement`. parameters_m: 10^6. gradient bytes =
    4 × parameters. state_bytes_per_parameter: weights, gradients and optimizer states together. samples: what an epoch
    holds (images, sequences). measured_as: names under which measured tables know this very model. assumed: fields
    that are assumptions (name -> why); overridden ones leave it.
    accuracy_fraction: reached after the stated epochs, None with a reason. storage_per_s: samples/s that the store of
    the data gives the whole job, where it is known and goes with the job (a network store).
    cpu_architecture: x86_64 or arm64, if the program was built for one.
    target_fraction: accuracy that ends the training; early_stop: rule that does; task: the job's name in epochs.csv;
    reached_epochs, failed_runs: epochs that earlier runs took to the same end, and how many of them never came there.
    stop: what these say of the epochs, None where the number is known; `epochs` is then the median.
    undecided: of samples and epochs, those that nobody stated: the job has no length, and no total may be shown.
    memory: what the person's own runs allocated, at any batch; `peak_memory_gib` is of this batch alone.
    """

    name: str
    title: str
    family: str
    model: str
    sample: str
    gmacs: float
    activations_m: float
    parameters_m: float
    state_bytes_per_parameter: float
    batch_per_accelerator: int
    precision: Precision
    samples: int
    epochs: float
    mode: Literal["train", "infer"] = "train"
    stored_m: float | None = None
    operations: int | None = None
    launches: float | None = None
    depthwise_gmacs: float | None = None
    peak_memory_gib: Gib | None = None
    decode_s: Seconds | None = None
    memory: tuple[MemoryReading, ...] = ()
    memory_format: Literal["nchw", "nhwc"] | None = None
    measured_as: tuple[str, ...] = ()
    accuracy_fraction: Fraction | None = None
    storage_per_s: float | None = None
    cpu_architecture: str | None = None
    task: str | None = None
    target_fraction: Fraction | None = None
    early_stop: EarlyStop | None = None
    reached_epochs: tuple[float, ...] = ()
    failed_runs: int = 0
    stop: Stop | None = None
    undecided: tuple[str, ...] = ()
    assumed: Mapping[str, str] = field(default_factory=dict)
    source: Source
    reasons: Mapping[str, Message] = field(default_factory=dict)

    @property
    def total_samples(self) -> float:
        return self.samples * self.epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A figure nobody measured here: value in `unit`, low and high as its 80 % interval, with who says so and when."""

    name: str
    value: float
    low: float | None
    high: float | None
    unit: str
    source: str
    observed: date | None = None
    note: str = ""

    @property
    def estimate(self) -> Estimate:
        """The value with one error of its own name: ln(high/low) over twice the 80 % quantile."""
        if self.low is None or self.high is None or self.low <= 0:
            return Estimate(value=self.value, basis="assumed")
        sd = log(self.high / self.low) / (2 * Z80)
        return Estimate(value=self.value, spread=((self.name, sd),) if sd else (), basis="assumed")


Assumptions = Mapping[str, Assumption]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """One measured throughput. precision: the arithmetic really used. samples_per_s: of all accelerators together.

    link: between the accelerators of one machine, None for one or if unknown. mode: train, or infer (forward passes).
    """

    workload: str
    family: str
    accelerator: str
    accelerators: int
    precision: Precision
    batch_per_accelerator: int
    samples_per_s: float
    software: str | None = None
    memory_format: str | None = None
    link: str | None = None
    mode: Literal["train", "infer"] = "train"
    compiled: bool = False
    observed: date | None = None
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A recorded run, as `measure` writes it and `rank --measured` reads it: one JSON document (schema 1).

    device: gpu or cpu; a CPU run gives counts and memory, never speed for a GPU. samples_per_s: steady state, of all
    accelerators together. peak_memory_gib: per device, what the framework allocated. decode_s: host work per sample, of
    one core. storage_per_s: samples/s of a network store that held the run back. curve_fraction: held-out accuracy
    after each epoch. epochs, samples: of the person's own data, None where it was trained on other data or stopped
    before its time. gmacs to operations: counts of the model as in `Workload`.
    """

    schema: int = 1
    kind: str = "measurement"
    created_utc: str
    workload: str
    device: Literal["gpu", "cpu"]
    accelerator: str | None
    accelerators: int
    precision: Precision
    batch_per_accelerator: int
    samples_per_s: Interval | None
    memory_format: str | None = None
    compiled: bool | None = None
    peak_memory_gib: Gib | None = None
    decode_s: Seconds | None = None
    storage_per_s: float | None = None
    curve_fraction: tuple[float, ...] = ()
    epochs: float | None = None
    samples: int | None = None
    family: str | None = None
    gmacs: float | None = None
    activations_m: float | None = None
    stored_m: float | None = None
    parameters_m: float | None = None
    operations: int | None = None
    software: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Throughput of one workload on one platform, with why we think so.

    throughput_per_s: samples of all accelerators together. method: measured, ratio, roofline, or stated by the person.
    evidence: the rows it stands on, in words; advice: what to measure next to narrow it.
    """

    workload: str
    platform: str
    accelerators: int
    throughput_per_s: Estimate
    method: Literal["measured", "ratio", "roofline", "stated"]
    evidence: tuple[Message, ...]
    advice: Message
    memory: MemoryFit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No prediction, and why: a value, not an exception and not a guess. rule: the exclusion rule that it becomes."""

    workload: str
    platform: str
    accelerators: int
    rule: str
    reason: Message
    memory: MemoryFit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """One line of a bill: amount_usd = quantity × unit_price_usd, unrounded."""

    kind: str
    quantity: float
    unit: str
    unit_price_usd: float
    amount_usd: Usd
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one run costs. billed_usd is gross: the sum of the lines; credits are shown apart and never hide it."""

    billed_usd: Usd
    lines: tuple[CostLine, ...]
    credit_usd: Usd = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes:
    """How the prices of one marketplace spread for one GPU on one day, per offer and hour, in USD."""

    count: int
    minimum_usd_per_hour: UsdPerHour
    median_usd_per_hour: UsdPerHour
    maximum_usd_per_hour: UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One offer for one workload, priced. None has its reason under the same name in `reasons`.

    price_usd_per_hour: what the bill is made of: the offer's price after tax and agreements, None if unknown.
    time_s: until the job is done, waiting where it is known included. wait_s: of it, until a machine is there, at first
    and after each loss; not billed. accelerator_h: device hours that are held. cost_usd: billed for this job alone.
    usd_per_million_samples, usd_per_1000_steps: what its work costs there, where nobody said how long the job is
    (`Workload.undecided`) and there are no totals.
    cost_share_usd: the job's share when the machine is busy for the hours per month given.
    break_even_hours_per_month: busy hours at which a monthly machine costs what the cheapest hourly offer does.
    p_cheapest: probability of being the cheapest of its workload, by the figure the ranking uses.
    share_lines: cost_share_usd line by line. time_parts_s: kind -> seconds; together time_s. sessions: starts of a
    machine that are planned, losses aside.
    quotes: spread of the marketplace that the price comes from. marks: short remarks (example, sold out, stale by …).
    """

    offer: Offer
    workload: str
    prediction: Prediction
    price_usd_per_hour: UsdPerHour | None = None
    time_s: Estimate | None
    wait_s: Estimate | None
    accelerator_h: Estimate | None = None
    cost_usd: Estimate | None
    cost_share_usd: Estimate | None
    break_even_hours_per_month: Estimate | None
    on_frontier: bool
    p_cheapest: Fraction | None
    cost: Cost | None
    share_lines: tuple[CostLine, ...] = ()
    time_parts_s: Mapping[str, float] = field(default_factory=dict)
    sessions: float = 1.0
    usd_per_million_samples: Estimate | None = None
    usd_per_1000_steps: Estimate | None = None
    quotes: Quotes | None = None
    marks: tuple[Message, ...] = ()
    reasons: Mapping[str, Message] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """One offer that was left out: by which rule, and why in one sentence. workload: None if left out for all."""

    offer_id: str
    workload: str | None
    rule: str
    reason: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """The smallest change of one filter that would admit at least one more offer."""

    rule: str
    admits: int
    offer_id: str
    change: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The answer to `rank`. candidates: sorted, cut to the limit after frontier and probability were computed.

    frontier, own: every candidate on the frontier, every owned machine, whatever the limit.
    basis: the figure that sort, frontier and p_cheapest use: cost (billed alone) or share (at hours_per_month).
    sources: key of a price source -> its title and address. counts: rule -> offers it excluded.
    funnel: offers left after each filter, in order. oldest, newest: price dates.
    """

    as_of: date
    data_version: str
    workloads: tuple[Workload, ...]
    basis: Literal["cost", "share"]
    total_offers: int
    total_candidates: int
    candidates: tuple[Candidate, ...]
    frontier: tuple[Candidate, ...]
    own: tuple[Candidate, ...]
    exclusions: Sequence[Exclusion]
    counts: Mapping[str, int]
    funnel: tuple[tuple[str, int], ...]
    relaxations: tuple[Relaxation, ...]
    warnings: tuple[Message, ...]
    oldest: date | None
    newest: date | None
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fx:
    """A dated exchange rate: usd_per_unit USD for one unit of `code`."""

    code: str
    usd_per_unit: float
    observed: date
    source: str
