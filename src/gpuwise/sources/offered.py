"""Names as people write them → as the offers bear them, in any case; what nobody bears is refused with the nearest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from gpuwise.catalogue import Catalogue
from gpuwise.cost.discounts import Scope
from gpuwise.errors import Message

if TYPE_CHECKING:
    from gpuwise.sources.document import Document, Keys

OTHERWISE = {
    "amazon": "aws", "amazon web services": "aws", "ec2": "aws", "google": "gcp", "google cloud": "gcp", "gce": "gcp",
    "microsoft": "azure", "oracle": "oci", "oracle cloud": "oci", "colab": "google-colab", "vast.ai": "vast",
    "vastai": "vast", "lambdalabs": "lambda", "lambda labs": "lambda", "ovh": "ovhcloud", "datacrunch": "verda",
}  # fmt: skip
"""Providers by names that are no spelling of ours."""


def spellings(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Those of the known names that are this one, in any case."""
    wanted = text.strip().casefold()
    return tuple(name for name in known if name.casefold() == wanted)


def nearest(text: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """What may have been meant, the likeliest first."""
    names: dict[str, str] = {}
    for name in known:
        names.setdefault(name.casefold(), name)
    wanted = text.strip().casefold()
    if (meant := OTHERWISE.get(wanted, "")) in names:
        return (names[meant],)
    return tuple(names[name] for name in get_close_matches(wanted, names, most))


@dataclass(frozen=True, slots=True)
class Offered:
    """What an agreement or a quota can be about."""

    offers: Catalogue

    def providers(self, document: Document, keys: Keys, text: str) -> tuple[str, ...]:
        """The provider as the offers spell it. DataError if no offer is of this one."""
        known = self.offers.provider.values
        look = Message("There are {count}: gpuwise data list --by provider", count=len(known))
        return _borne(document, keys, text, known, Message('"{name}" is no provider of any offer', name=text), look)

    def among(
        self, document: Document, keys: Keys, column: str, text: str | None, providers: Sequence[str]
    ) -> tuple[str | None, ...]:
        """The instance or region as these providers spell it, (None,) if none is named. DataError if they have none."""
        if text is None:
            return (None,)
        cells = getattr(self.offers, column)
        rows = self.offers.provider.isin(providers) & (cells.codes >= 0)
        known = [cells.values[code] for code in np.unique(cells.codes[rows]).tolist()]
        what = Message('"{name}" is no {column} of {provider}', name=text, column=column, provider=providers[0])
        look = Message("There are {count}: gpuwise data show {provider}", count=len(known), provider=providers[0])
        return _borne(document, keys, text, known, what, look)

    def scopes(self, document: Document, keys: Keys, stated: Scope, gpus: Sequence[str | None]) -> list[Scope]:
        """The scope in every spelling of its names, and for each of the GPUs."""
        providers = self.providers(document, (*keys, "provider"), stated.provider)
        instances = self.among(document, (*keys, "instance"), "instance", stated.instance, providers)
        regions = self.among(document, (*keys, "region"), "region", stated.region, providers)
        return [
            Scope(provider=provider, instance=instance, region=region, accelerator=gpu, market=stated.market)
            for provider in providers
            for instance in instances
            for region in regions
            for gpu in gpus
        ]


def _borne(
    document: Document, keys: Keys, text: str, known: Sequence[str], what: Message, look: Message
) -> tuple[str, ...]:
    if found := spellings(text, known):
        return found
    near = nearest(text, known)
    hint = Message("Did you mean {names}? {look}", names=", ".join(near), look=look) if near else look
    raise document.error(keys, what, hint)
