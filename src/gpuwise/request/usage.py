# ruff: noqa: RUF009 - about() is dataclasses.field() with our metadata
"""The request type of the verb that reads records of what happened: bill."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpuwise.request.about import about


@dataclass(frozen=True, slots=True, kw_only=True)
class BillRequest:
    """What did it cost? From records of what happened: states of machines, pods on a machine, or a cost export."""

    files: tuple[str, ...] = about(
        "Records of one kind, told apart by their content: events of machines, a machine with its pods, a cost export.",
        kind="paths", default=(), show="FILE", example="events.toml", positional=True, required=True,
    )  # fmt: skip
    until: datetime | None = about(
        "For events: the moment up to which is billed (default: what the file says, else its last event).",
        kind="moment", show="TIME", group="Your own data", example="2026-11-30T22:58Z",
    )  # fmt: skip
    time_zone: str | None = about(
        "For events: the zone of times that name none. Without it they are refused.",
        show="ZONE", group="Your own data", example="Europe/Berlin",
    )  # fmt: skip
    kind: str | None = about(
        "For cost exports: what a cost is to mean (default: effective).",
        kind="cost_kind", show="KIND", group="Your own data", example="billed",
    )  # fmt: skip
    column: str | None = about(
        "For cost exports other than FOCUS: the column of the cost; say with --kind what it means.",
        show="NAME", group="Your own data", example="lineItem/UnblendedCost",
    )  # fmt: skip
    date_column: str | None = about(
        "For cost exports other than FOCUS: the column of the day or month.",
        show="NAME", group="Your own data", example="day",
    )  # fmt: skip
    currency: str | None = about(
        "For cost exports that name none: the currency of their amounts. Nothing is converted.",
        kind="currency", show="CODE", group="Your own data", example="EUR",
    )  # fmt: skip


OF_EVENTS = frozenset(("until", "time_zone"))
OF_COSTS = frozenset(("kind", "column", "date_column", "currency"))
"""Which options are for which records. One that changes nothing is refused rather than ignored."""
