"""The bundled offers as a source."""

from __future__ import annotations

from datetime import date

from gpuwise.sources import Facts, Loaded
from gpuwise.store import package


class PackageSource:
    """Always there, also without a network; as old as its newest price."""

    def load(self, facts: Facts, as_of: date) -> Loaded:
        """Every bundled offer, whatever its age: `rank` leaves out what is too old, and says so."""
        return Loaded(catalogue=package.offers())
