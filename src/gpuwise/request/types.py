# ruff: noqa: RUF009 - about() is dataclasses.field() with our metadata
"""The request types about offers and jobs: what a person can ask, one frozen dataclass a verb (more: `measuring`).

Nothing here is heavy, so that `--help` stays fast. All values are already parsed: durations in s, money in USD, shares
as fractions, days as dates.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import NamedTuple

from gpuwise.request.about import about
from gpuwise.request.billing import BillFilters
from gpuwise.request.offers import OfferFilters
from gpuwise.units import Fraction, Hours, Seconds, Usd

CHOICES: dict[str, tuple[str, ...]] = {
    "action": ("list", "show", "check", "diff", "refresh"),
    "runs_action": ("list", "show", "compare"),
    "market": ("on-demand", "spot", "reserved", "dedicated", "community", "free", "owned"),
    "host": ("any", "datacentre"),
    "tax": ("net", "gross"),
    "precision": ("fp32", "tf32", "amp", "amp_bf16", "bf16", "fp8"),
    "mode": ("train", "infer"),
    "optimizer": ("sgd", "momentum", "adam", "adamw", "adafactor"),
    "trainer": ("sgd", "adamw"),
    "memory_format": ("nchw", "nhwc"),
    "feed": ("exact", "fast"),
    "prepare_on": ("gpu", "cpu"),
    "skill": ("first-time", "practised"),
    "sort": ("cost", "time", "price", "p_cheapest"),
    "price_per": ("charged", "hour", "month"),
    "column": ("provider", "gpu", "market", "region", "country", "host", "date"),
    "cost_kind": ("effective", "billed", "list", "contracted"),
    "stage": ("exploring", "growing", "steady"),
}
"""Closed lists, by kind. Those that `model` has too are compared with it by a test: importing it would cost time."""

VERBS = ("rank", "explain", "describe", "measure", "ceilings", "check", "runs", "data", "accuracy", "bill", "own",
         "exit")  # fmt: skip
GROUPS = (
    "Filters", "Job", "Demand", "Owning", "Moving the data", "Leaving", "The bill", "Checkpoints", "Until", "Training",
    "Your own data", "Output",
)  # fmt: skip


class EarlyStopEpochs(NamedTuple):
    """Training ends after `patience` epochs without a better one, not before `least` epochs and not after `most`."""

    least: float
    most: float
    patience: float


class Takes(NamedTuple):
    """A job takes from low_s to high_s on `gpu`, a name with a number."""

    low_s: Seconds
    high_s: Seconds
    gpu: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilters(BillFilters):
    """Which offers, and how the job runs there: what `rank` and `explain` share."""

    deadline_s: Seconds | None = about(
        "Longest time to the finished job.", kind="duration", show="DURATION", flags=("--deadline",), example="36h"
    )
    budget_usd: Usd | None = about(
        "Highest bill, gross, before credits (a bare number: in --currency).",
        kind="money",
        show="MONEY",
        flags=("--budget",),
        example="50USD",
    )
    quota: str | None = about(
        "Your quotas: TOML.", kind="path", show="FILE", group="Your own data", example="quota.toml"
    )
    measured: tuple[str, ...] = about(
        "Measured runs to predict from: files of measure --out, or numbers of runs; may be given several times.",
        kind="paths",
        show="FILE|RUN",
        default=(),
        group="Your own data",
        example="run.json",
    )
    checked: str | None = about(
        "What check --out wrote on your own machine: its preparation time holds for --machine.",
        kind="path", show="FILE", group="Your own data", example="check.json",
    )  # fmt: skip
    hours_per_month: Hours | None = about(
        "Busy hours a month of a monthly or owned machine: rank by the job's share of its price.",
        kind="hours", show="HOURS", group="The bill", example="400",
    )  # fmt: skip
    jobs: int = about(
        "How many such jobs, one after another.", kind="count", show="N", default=1, group="The bill", example="60"
    )
    takes: Takes | None = about(
        "Instead of a workload: how long such a job takes, and on which GPUs. Only offers with just these are priced.",
        kind="takes", show="TIME on GPUS", group="Job", example="2-3 days on 8xA100",
    )  # fmt: skip
    tax: str = about(
        "net: you reclaim VAT; gross: you pay it.",
        kind="tax",
        show="MODE",
        default="net",
        group="The bill",
        example="gross",
    )
    vat_fraction: Fraction | None = about(
        "Your VAT rate, for --tax gross: 19 % or 0.19.",
        kind="fraction",
        show="PERCENT",
        group="The bill",
        flags=("--vat",),
        example="19%",
    )
    batch: int | None = about("Batch per GPU.", kind="count", show="N", group="Job", example="64")
    epochs: float | None = about("Epochs to train.", kind="positive", show="N", group="Job", example="30")
    samples: int | None = about("Samples in an epoch.", kind="count", show="N", group="Job", example="79433")
    target_fraction: Fraction | None = about(
        "Train to this accuracy, instead of --epochs: time and bill as P10, P50, P90, by the learning curve of a run "
        "(--measured) or by reference runs of a known task.",
        kind="share", show="PERCENT", group="Job", flags=("--target-accuracy",), example="75.9%",
    )  # fmt: skip
    early_stop_epochs: EarlyStopEpochs | None = about(
        "Train until accuracy stops growing, instead of --epochs: least and most epochs, and the patience.",
        kind="early_stop", show="MIN..MAX:PATIENCE", group="Job", flags=("--early-stop",), example="5..100:10",
    )  # fmt: skip
    precision: str | None = about(
        "Arithmetic of the training.", kind="precision", show="NAME", group="Job", example="amp"
    )
    mode: str | None = about(
        "infer: forward passes only, once over the samples unless --epochs says otherwise.",
        kind="mode", show="MODE", group="Job", example="infer",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRequest(JobFilters):
    """Where should these jobs run? Every offer with its time and cost, and what was left out and why."""

    workloads: tuple[str, ...] = about(
        "Built-in names or TOML files; without any, the jobs that --measured names.",
        default=(), show="WORKLOAD", example="painter-heavy", positional=True,
    )  # fmt: skip
    price_per: str = about(
        "What prices are shown for; the bill of the job stands beside them.", kind="price_per", show="TIME",
        default="charged", group="Output", flags=("--price-per",), example="month",
    )  # fmt: skip
    sort: str = about("What comes first.", kind="sort", show="KEY", default="cost", group="Output", example="time")
    limit: int | None = about(
        "Rows to show, or all (frontier and probability always use all).",
        kind="limit", show="N|all", default=20, group="Output", example="all",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest(JobFilters):
    """Why do you think so? The evidence behind one prediction: of an offer, of a GPU, or of the best offer."""

    workload: str | None = about(
        "A built-in name or a TOML file.", show="WORKLOAD", example="painter-heavy", positional=True,
    )  # fmt: skip
    offer: str | None = about(
        "The offer to explain, by its id.", show="ID", example="aws/p3.2xlarge/us-east-1/on-demand"
    )
    on: str | None = about(
        "The GPU to explain, with its number; with + between several of them, one machine that has them all.",
        show="GPU", example="A100-80GB:2",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeRequest:
    """What does this training job consist of? Counts that hold on any machine."""

    target: str = about(
        "A torch model as module:callable (extra [torch]), a built-in workload or a TOML file.",
        default=MISSING, show="TARGET", example="torchvision.models:resnet50", positional=True, required=True,
    )  # fmt: skip
    input_size: int = about(
        "Height and width of an image, in pixels.", kind="count", show="N", default=224, group="Job", example="299"
    )
    tokens: int | None = about("Length of a sequence, in tokens.", kind="count", show="N", group="Job", example="512")
    batch: int | None = about("Batch per GPU.", kind="count", show="N", group="Job", example="64")
    precision: str | None = about(
        "Arithmetic of the training.", kind="precision", show="NAME", group="Job", example="amp"
    )
    optimizer: str = about(
        "What keeps states beside the weights.",
        kind="optimizer", show="NAME", default="momentum", group="Job", example="adam",
    )  # fmt: skip
    samples: int | None = about("Samples in an epoch.", kind="count", show="N", group="Job", example="79433")
    epochs: float | None = about("Epochs to train.", kind="positive", show="N", group="Job", example="30")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRequest(OfferFilters):
    """What are the facts? List them, show one, check them, compare two days, or fetch today's."""

    action: str = about(
        "list the offers, show one NAME, check every row, diff two FILEs or DAYs, refresh from the providers. "
        "Filters are for list and diff, your own data for list and show; check and refresh take no option of these.",
        kind="action", show="ACTION", default=MISSING, example="list", positional=True, required=True,
    )  # fmt: skip
    names: tuple[str, ...] = about(
        "For show: an instance, GPU, offer id or provider. For diff: two files, or days of the bundled history.",
        default=(), show="NAME", example="p2.xlarge", positional=True,
    )  # fmt: skip
    by: tuple[str, ...] = about(
        "For list: count by these columns.",
        kind="column",
        show="COLUMN",
        default=(),
        group="Output",
        example="provider,gpu",
    )
    limit: int | None = about(
        "For list, show and diff: rows to show, or all.",
        kind="limit",
        show="N|all",
        default=20,
        group="Output",
        example="all",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyRequest:
    """May I trust you? How wrong predictions were on measured rows that were left out, or on a table of your own."""

    against: str | None = about(
        "Score a CSV table of your own: rows that are given, and rows to be predicted from them.",
        kind="path", show="FILE", group="Your own data", example="ours.csv",
    )  # fmt: skip
    split: tuple[str, ...] = about("Only these splits.", kind="names", default=(), show="ID", example="A,C")
    by: str | None = about("Show the groups of one tag as well.", show="TAG", group="Output", example="family")
    fresh: bool = about(
        "Compute the splits again on this machine, which takes minutes.", kind="flag", default=False, group="Output"
    )
