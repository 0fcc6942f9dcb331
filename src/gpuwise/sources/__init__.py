"""Where offers come from. A source turns what it knows into a dated `Catalogue`, and never into a guess."""

from __future__ import annotations

from datetime import date
from typing import Protocol

from gpuwise.store.cache import Loaded
from gpuwise.store.facts import Facts

__all__ = ["Facts", "Loaded", "Source"]


class Source(Protocol):
    """A place that offers come from. A plug-in of the group `gpuwise.sources` is a class like this, made without
    arguments."""

    def load(self, facts: Facts, as_of: date) -> Loaded:
        """Its offers, read against `facts`; as_of: today, for ages. GpuwiseError if there is nothing to be had."""
        ...
