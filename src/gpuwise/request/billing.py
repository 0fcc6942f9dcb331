# ruff: noqa: RUF009 - about() is dataclasses.field() with our metadata
"""What of a job decides its bill beside the training itself: preparation, data, disks, checkpoints, evaluation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import Any

from gpuwise.request.about import about
from gpuwise.request.offers import OfferFilters
from gpuwise.units import Fraction, GbPerSecond, Gigabytes, Seconds


def without_bill() -> dict[str, Any]:
    """What a request is without all that a part of a job of unknown length has no share in."""
    nothing = {f.name: f.default for f in fields(BillFilters) if f.metadata.get("group") == "The bill"}
    return nothing | {"prepare_s": 0.0, "final_evaluation_s": None, "jobs": 1}


NEVER = inf
"""Between two checkpoints, where none is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillFilters(OfferFilters):
    """What `rank` and `explain` share about the bill. What is not said is not contained, and the page says so."""

    prepare_s: Seconds | None = about(
        "Time to prepare a machine before the first step (assumed: 20 to 60 min, by what is preinstalled).",
        kind="duration", show="DURATION", group="The bill", flags=("--prepare",), example="20min",
    )  # fmt: skip
    prepare_on: str = about(
        "cpu: prepare on the cheapest machine without a GPU, and move the disk, where the provider allows it.",
        kind="prepare_on", show="WHERE", default="gpu", group="The bill", example="cpu",
    )  # fmt: skip
    skill: str | None = about(
        "Instead of --prepare. first-time: preparing takes as long as it may; practised: as short.",
        kind="skill", show="WHO", group="The bill", example="practised",
    )  # fmt: skip
    image_gb: Gigabytes | None = about(
        "Size of the container image that each machine fetches.",
        kind="size", show="SIZE", group="The bill", flags=("--image-size",), example="12GB",
    )  # fmt: skip
    data_gb: Gigabytes | None = about(
        "Size of the data that the job reads, to be copied to the machine.",
        kind="size", show="SIZE", group="The bill", flags=("--data-size",), example="150GB",
    )  # fmt: skip
    data_from: str = about(
        "Where the data lies: a provider, with a region after a slash, or here.",
        kind="text", show="PLACE", default="here", group="The bill", flags=("--from",), example="aws/us-east-1",
    )  # fmt: skip
    results_gb: Gigabytes | None = about(
        "Size of what leaves the provider at the end: weights, logs.",
        kind="size", show="SIZE", group="The bill", flags=("--results-size",), example="2GB",
    )  # fmt: skip
    network_gb_per_s: GbPerSecond | None = about(
        "Rate at which data, images and results travel (assumed: 0.3 GB/s in a region, 0.05 GB/s from elsewhere).",
        kind="rate", show="RATE", group="The bill", flags=("--network",), example="1Gbit/s",
    )  # fmt: skip
    disk_gb: Gigabytes | None = about(
        "Disk that the job needs; what the price does not include is billed.",
        kind="size", show="SIZE", group="The bill", flags=("--disk",), example="500GB",
    )  # fmt: skip
    stopped_s: Seconds | None = about(
        "For how long in all the machine stands stopped before the job is done, as in nights.",
        kind="duration", show="DURATION", group="The bill", flags=("--stopped",), example="40h",
    )  # fmt: skip
    start_s: Seconds | None = about(
        "Time of day at which the job starts, for providers that bill hours of the clock.",
        kind="clock", show="HH:MM", group="The bill", flags=("--start",), example="09:59",
    )  # fmt: skip
    apart: bool = about(
        "Each of --jobs on a machine of its own, prepared and billed on its own.",
        kind="flag", default=False, group="The bill",
    )  # fmt: skip
    checkpoint_s: Seconds | None = about(
        "Time to write a checkpoint (assumed on spot machines: 30 s).",
        kind="duration", show="DURATION", group="Checkpoints", flags=("--checkpoint",), example="30s",
    )  # fmt: skip
    checkpoint_every_s: Seconds | None = about(
        "Training between two checkpoints, or never (spot machines: what costs least, by Young).",
        kind="interval", show="DURATION|never", group="Checkpoints", flags=("--checkpoint-every",), example="30min",
    )  # fmt: skip
    restart_s: Seconds | None = about(
        "From a new machine at hand to the first new step, after an interruption (assumed: 5 min).",
        kind="duration", show="DURATION", group="Checkpoints", flags=("--restart",), example="5min",
    )  # fmt: skip
    losses_per_hour: float | None = about(
        "How often a spot machine is lost, an hour and machine (assumed: as on AWS in 2022 and 2023).",
        kind="losses", show="N/HOUR", group="Checkpoints", flags=("--spot-losses",), example="0.15",
    )  # fmt: skip
    available_fraction: Fraction | None = about(
        "Share of the time in which a spot machine can be had: decides how long one waits for it.",
        kind="share", show="PERCENT", group="Checkpoints", flags=("--spot-available",), example="90%",
    )  # fmt: skip
    evaluation_s: Seconds | None = about(
        "Time of one evaluation during the training.",
        kind="duration", show="DURATION", group="Checkpoints", flags=("--evaluation",), example="20min",
    )  # fmt: skip
    evaluation_every_s: Seconds | None = about(
        "Training between two evaluations.",
        kind="duration", show="DURATION", group="Checkpoints", flags=("--evaluation-every",), example="5h",
    )  # fmt: skip
    final_evaluation_s: Seconds | None = about(
        "Time of the evaluation at the end.",
        kind="duration", show="DURATION", group="Checkpoints", flags=("--final-evaluation",), example="6h",
    )  # fmt: skip

    @property
    def evaluation_fraction(self) -> Fraction:
        """Evaluation time for each second of training."""
        return self.evaluation_s / self.evaluation_every_s if self.evaluation_s and self.evaluation_every_s else 0.0
