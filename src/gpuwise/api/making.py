"""A case while it is put together: figures by name, options that are closed with why, what is left out, what to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwise.errors import Message
from gpuwise.model import Assumption
from gpuwise.request import OwnFilters

HOME = "on-premises"
"""The word of --data-must-stay that is no country."""


@dataclass(slots=True, kw_only=True)
class Making:
    """nothing_rented: no cloud may take any of the work, so that what finds no own GPU waits."""

    figures: dict[str, Assumption] = field(default_factory=dict)
    refused: dict[str, Message] = field(default_factory=dict)
    missing: list[Message] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)
    nothing_rented: bool = False

    def put(self, *found: Assumption) -> None:
        self.figures.update({one.name: one for one in found})

    def close(self, options: Sequence[str], why: Message) -> None:
        """The first reason stands."""
        for option in options:
            self.refused.setdefault(option, why)


def said(request: OwnFilters, name: str) -> bool:
    """Did the person give this figure with --set?"""
    return any(one.name == name for one in request.set)


def country_of(request: OwnFilters) -> str | None:
    """Where own servers would stand: as said, else where the data must stay; None: nobody said it."""
    return request.country or (request.data_must_stay if request.data_must_stay != HOME else None)
