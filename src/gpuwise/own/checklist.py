"""The services of a cloud in use, and what takes their place elsewhere: what leaving means beside the GPUs.

    lock-in score = Σ spend of services of class C / Σ spend of all      (without a bill: services counted alike)

Class C has no product with the same interface anywhere: what is built on it is written anew. Services that the table
does not have may be of any class: their share stands beside the score, which may be so much higher.

Source: this project's (own notes, section 4.2); classes: `asset.Portability`. Test value: 70 of class A, 20 of class C
and 10 that nobody knows: score 0.2, and 0.1 not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from math import fsum

from gpuwise.asset import Service
from gpuwise.errors import InvalidInput, Message
from gpuwise.units import Fraction, Usd

CLOUDS = {
    "amazon": "aws", "aws": "aws", "microsoft": "azure", "azure": "azure", "google": "gcp", "gcp": "gcp",
    "oracle": "oci", "oci": "oci",
}  # fmt: skip
"""A word of a provider's name in bills -> the provider in our tables."""
NEAREST = 3
"""So many spellings like a name that is not in the table are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A service that is in use. provider: as the bill has it, None where only the service was named. name: as it was
    spelled. usd: spent on it in the months of the bill, None without a bill."""

    provider: str | None
    name: str
    usd: Usd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One service in use. service: None where the table does not have it. fraction: of all spend, or of the number of
    services. nearest: names of the table that may have been meant, where it does not have this one."""

    use: Use
    service: Service | None
    fraction: Fraction
    nearest: tuple[str, ...] = ()

    @property
    def missing(self) -> Message | None:
        """That the table does not have it, with the nearest names; None where it does."""
        if self.service is not None:
            return None
        if not self.nearest:
            return Message("not in the table")
        return Message("not in the table; nearest: {names}", names=", ".join(self.nearest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    """items: the dearest first. lock_in_fraction: share of class C; unknown_fraction: of what the table does not have.
    by_spend: shares are of the spend, not of the number of services."""

    items: tuple[Item, ...]
    lock_in_fraction: Fraction
    unknown_fraction: Fraction
    by_spend: bool


def cloud(provider: str) -> str:
    """Our name of a provider as bills spell it: Amazon Web Services is aws; others stay, in lower case."""
    words = provider.casefold().split()
    return next((CLOUDS[word] for word in words if word in CLOUDS), provider.casefold().strip())


def checklist(uses: Iterable[Use], services: Sequence[Service], on: date) -> Checklist:
    """What is in use, against the table as it holds on a day. InvalidInput for a name that stands for several."""
    listed = list(uses)
    paid = [max(use.usd or 0.0, 0.0) for use in listed]
    by_spend = bool(fsum(paid))
    parts = paid if by_spend else [1.0] * len(listed)
    whole = fsum(parts) or 1.0
    items = [_item(use, services, on, part / whole) for use, part in zip(listed, parts, strict=True)]
    return Checklist(
        items=tuple(sorted(items, key=lambda item: -item.fraction)),
        lock_in_fraction=fsum(item.fraction for item in items if item.service and item.service.portability == "C"),
        unknown_fraction=fsum(item.fraction for item in items if item.service is None),
        by_spend=by_spend,
    )


def _item(use: Use, services: Sequence[Service], on: date, fraction: Fraction) -> Item:
    service = _found(use, services, on)
    near = () if service else _nearest(use, services)
    return Item(use=use, service=service, fraction=fraction, nearest=near)


def _nearest(use: Use, services: Sequence[Service]) -> tuple[str, ...]:
    """Services whose spellings are like the name, the likeliest first."""
    provider = None if use.provider is None else cloud(use.provider)
    spelled = {
        text: one.name
        for one in services
        if provider in (None, one.provider)
        for text in (*one.names, one.name.casefold())
    }
    near = get_close_matches(use.name.casefold(), spelled, NEAREST)
    return tuple(dict.fromkeys(spelled[text] for text in near))


def _found(use: Use, services: Sequence[Service], on: date) -> Service | None:
    """The service of this name, at its provider where one is said; the row that holds on the day, else the newest."""
    provider = None if use.provider is None else cloud(use.provider)
    named = [one for one in services if provider in (None, one.provider) and _bears(one, use.name)]
    if providers := sorted({one.provider for one in named})[1:]:
        first = min(one.provider for one in named)
        raise InvalidInput(
            Message('"{name}" is a service of {names}.', name=use.name, names=", ".join((first, *providers))),
            Message("Say whose: add --provider {name}, or write its full name.", name=first),
        )
    return max(named, key=lambda one: (_holds(one, on), one.valid_from), default=None)


def _bears(service: Service, name: str) -> bool:
    wanted = " ".join(name.casefold().split())
    return wanted in service.names or wanted == service.name.casefold()


def _holds(service: Service, on: date) -> bool:
    return service.valid_from <= on and (service.valid_until is None or on <= service.valid_until)
