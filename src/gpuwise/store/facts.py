"""What every price list is read against, apart from the reading: a cached list needs this and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gpuwise.model import Accelerator, Fx
from gpuwise.names import Index


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the cells of a price list are read against.

    accelerators: by id. fx: currency -> dated rate. countries: (provider, region) -> country, for tables without.
    instances: (provider, instance type) -> GPUs it has. usual_usd_per_hour: accelerator -> usual price of one.
    version: of all five; parsed tables are cached under it.
    """

    accelerators: Mapping[str, Accelerator]
    fx: Mapping[str, Fx] = field(default_factory=dict)
    countries: Mapping[tuple[str, str], str] = field(default_factory=dict)
    instances: Callable[[], Mapping[tuple[str, str], int]] = dict
    usual_usd_per_hour: Callable[[], Mapping[str, float]] = dict
    version: str = ""

    @cached_property
    def index(self) -> Index:
        """GPU names; built when the first name is read that is no id."""
        return Index(self.accelerators.values())
