# ruff: noqa: RUF009 - about() is dataclasses.field() with our metadata
"""The request types of the verbs that look at this machine: measure, ceilings, check, and the runs that were kept."""

from __future__ import annotations

from dataclasses import MISSING, dataclass

from gpuwise.request.about import about
from gpuwise.units import Fraction, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """How fast does it train here, and what holds it back? Reference training, or your own program after --."""

    workload: str | None = about(
        "painter-light, painter-heavy, or a classification model of torchvision by name.",
        show="WORKLOAD", example="painter-light", positional=True,
    )  # fmt: skip
    command: tuple[str, ...] = about(
        "Your own program, unchanged, after two dashes.",
        kind="command", show="-- COMMAND", default=(), example="-- python train.py", positional=True,
    )  # fmt: skip
    data: str | None = about(
        "Images: a folder a class, or a CSV beside its images. Without it, paintings are made on the spot. "
        "For your own program: the folder it reads.",
        kind="path", show="DIR", group="Your own data", example="paintings/",
    )  # fmt: skip
    label: str | None = about(
        "Column of the labels, where the CSV of --data has several.",
        show="NAME", group="Your own data", example="artist",
    )  # fmt: skip
    resume: str | None = about(
        "Go on with an interrupted run, by its number, from its last checkpoint.",
        kind="run", show="RUN", group="Your own data", example="12",
    )  # fmt: skip
    steps: int | None = about("So many steps.", kind="count", show="N", group="Until", example="200")
    until_s: Seconds | None = about(
        "So many minutes.", kind="minutes", show="N", group="Until", flags=("--minutes",), example="3"
    )
    epochs: int | None = about("So many epochs.", kind="count", show="N", group="Until", example="10")
    target_fraction: Fraction | None = about(
        "This accuracy on the held-out images.",
        kind="share", show="PERCENT", group="Until", flags=("--target",), example="80%",
    )  # fmt: skip
    patience: int | None = about(
        "So many epochs without a better accuracy.", kind="count", show="N", group="Until", example="5"
    )
    stall_s: Seconds = about(
        "No step for so long ends the run (default: 5 min, and 15 min before the first).",
        kind="duration", show="DURATION", group="Until", default=300.0, flags=("--stall",), example="5min",
    )  # fmt: skip
    batch: int | None = about("Batch per device.", kind="count", show="N", group="Training", example="32")
    samples_per_step: int | None = about(
        "Samples in a step of your own program, where it has no data loader to see them by.",
        kind="count", show="N", group="Training", example="256",
    )  # fmt: skip
    image_size: int | None = about(
        "Height and width of an image, in pixels.", kind="count", show="N", group="Training", example="64"
    )
    precision: str | None = about(
        "Arithmetic (default: the fastest this device has).", kind="precision", show="NAME", group="Training",
        example="amp_bf16",
    )  # fmt: skip
    memory_format: str | None = about(
        "Order of an image's numbers (default: the faster one here).",
        kind="memory_format", show="NAME", group="Training", example="nhwc",
    )  # fmt: skip
    compile: bool = about("Let torch.compile compile the model.", kind="flag", default=False, group="Training")
    optimizer: str | None = about(
        "What moves the weights.", kind="trainer", show="NAME", group="Training", example="adamw"
    )
    learning_rate: float | None = about(
        "Largest learning rate.", kind="positive", show="N", group="Training", example="0.001"
    )
    feed: str = about(
        "exact: decoded in full, resized as torchvision does it; fast: decoded at a reduced scale.",
        kind="feed", show="NAME", default="fast", group="Training", example="exact",
    )  # fmt: skip
    cache: bool = about(
        "Read from copies that are re-encoded once, a little larger than what is trained on.",
        kind="flag", default=False, group="Training",
    )  # fmt: skip
    workers: int | None = about("Processes that load data.", kind="whole", show="N", group="Training", example="4")
    device: str | None = about("cpu, cuda, cuda:1, ...", show="NAME", group="Training", example="cpu")
    processes: int = about(
        "Devices to train on together, one process each.",
        kind="count", show="N", default=1, group="Training", example="2",
    )  # fmt: skip
    seed: int = about("Where all chance begins.", kind="whole", show="N", default=0, group="Training", example="7")
    advise: bool = about(
        "Try on these images what would feed the device faster: workers, copies, the allocator (a minute).",
        kind="flag", default=False, group="Training",
    )  # fmt: skip
    no_limits: bool = about(
        "Leave out what the loader and the device could do alone.", kind="flag", default=False, group="Training"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingsRequest:
    """What can this machine do at best? Arithmetic, memory, links, disk and decoding, in less than a minute."""

    data: str | None = about(
        "A folder on the disk to be read from (default: the current one).",
        kind="path", show="DIR", group="Your own data", example="paintings/",
    )  # fmt: skip
    within_s: Seconds = about(
        "Longest time for all probes together (default: 55 s).",
        kind="duration", show="DURATION", group="Until", default=55.0, flags=("--within",), example="30s",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """Is this machine ready, and how long until the first step? What is there, what is missing, how to get it."""

    data: str | None = about(
        "Where the data will lie (default: the current folder).",
        kind="path", show="DIR", group="Your own data", example="paintings/",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsRequest:
    """What was measured? List the runs that were kept, show one again, or compare two."""

    action: str = about(
        "list the runs, show one by its number, or compare two; several runs of one kind count together: 11,13 12,14.",
        kind="runs_action", show="ACTION", default=MISSING, example="list", positional=True, required=True,
    )  # fmt: skip
    names: tuple[str, ...] = about(
        "Numbers of runs, or files that measure --out wrote.",
        default=(), show="RUN", example="12", positional=True,
    )  # fmt: skip
    workload: str | None = about("For list: only runs of this workload.", show="WORKLOAD", example="painter-light")
    limit: int | None = about(
        "For list: rows to show, or all.", kind="limit", show="N|all", default=20, group="Output", example="all"
    )
