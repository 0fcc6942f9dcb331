"""Memory of a device, as a run took it and as a job needs it. Values only, as in `model`, which holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpuwise.estimate import Interval
from gpuwise.units import Gib


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReading:
    """What one run was seen to take of one device's memory, at its batch and precision.

    used_gib: in `model.Workload.memory` what the framework allocated; in the bundled table what the driver saw in use,
    context and caches included. accelerator: where it ran, None if it is not known. software: None for a person's run.
    """

    batch_per_accelerator: int
    precision: str
    used_gib: Gib
    accelerator: str | None = None
    accelerators: int = 1
    software: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFit:
    """Does the job fit one device of a platform? Bytes decide; figures are in GiB.

    need_gib: with its 80 % interval; low: what a step must hold at least. usable_gib: of the smallest device. verdict:
    does_not_fit where even the least is too much; fits where the need is at most 0.92 of what is usable and its upper
    end at most all of it. phase: of a step, in which most is held. parts_gib: by name, what is held then.
    basis: measured (the person's own run), published (measured rows of the very job) or predicted (counts).
    """

    need_gib: Interval
    usable_gib: Gib
    verdict: Literal["fits", "doubtful", "does_not_fit"]
    phase: Literal["forward", "backward", "optimizer"]
    parts_gib: Mapping[str, Gib]
    basis: Literal["measured", "published", "predicted"]
