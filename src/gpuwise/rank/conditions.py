"""What is known of each offer beside its price: from its own columns, else from its provider's facts and tariffs.

What neither says is NaN or None, and the bill says what it leaves out. Where a provider lists a tariff for other
regions only, one of them stands in, and the line of the bill says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue, Coded
from gpuwise.cost.tariffs import Item, Tariff, Tariffs
from gpuwise.offer import CpuHost, Provider
from gpuwise.units import SECONDS_PER_HOUR

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

_FILLED = ("billing_step_s", "billing_minimum_s")
BY_USE = ("on-demand", "spot", "community")
"""Markets in which a machine can be given back at any time."""
RENTED = ("on-demand", "spot", "reserved", "community")
"""Markets in which disks and addresses are sold beside the machine; a machine by the month comes with its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known of providers: dated facts, tariffs, and their cheapest machines without a GPU."""

    providers: Mapping[str, Provider] = field(default_factory=dict)
    tariffs: Tariffs = field(default_factory=Tariffs)
    cpu_hosts: Sequence[CpuHost] = ()

    def on(self, day: date) -> Surroundings:
        """The same with the tariffs that were known on a day; facts about platforms hold whatever the day."""
        return replace(self, tariffs=self.tariffs.on(day))

    def number(self, offers: Catalogue, fact: str) -> Floats:
        """A fact in figures of each offer's provider, NaN if nobody states it; shape (n,)."""
        known = [self.providers[name].number(fact) if name in self.providers else None for name in _names(offers)]
        return offers.provider.lookup([np.nan if x is None else x for x in known], np.nan, np.float64)

    def says(self, offers: Catalogue, fact: str, *values: str) -> Mask:
        """Offers of whose provider the fact is one of these values; shape (n,)."""
        known = [name in self.providers and self.providers[name].text(fact) in values for name in _names(offers)]
        return offers.provider.lookup(known, False, np.bool_)

    def completed(self, offers: Catalogue) -> Catalogue:
        """The offers with the billing rules of their providers where the price list says nothing."""
        filled: dict[str, Any] = {name: _first(getattr(offers, name), self.number(offers, name)) for name in _FILLED}
        calendar = self.says(offers, "billing_clock", "calendar") & (offers.billing_clock.codes < 0)
        values = (*offers.billing_clock.values, "calendar")
        clock = Coded(np.where(calendar, len(values) - 1, offers.billing_clock.codes).astype(np.int32), values)
        return replace(offers, **filled, billing_clock=clock)

    def tariff(self, offers: Catalogue, item: Item) -> Tariffed:
        """The tariff of each offer's provider and region."""
        return Tariffed.of(offers, lambda provider, region: self.tariffs.find(provider, item, region))

    def cheapest_cpu(self, provider: str, region: str | None) -> CpuHost | None:
        """The cheapest machine without a GPU of that region, from which a disk can be moved; None if none is known."""
        hosts = [host for host in self.cpu_hosts if (host.provider, host.region) == (provider, region)]
        return min(hosts, key=lambda host: host.usd_per_hour, default=None)

    def cpu_source(self, provider: str | None, region: str | None) -> str:
        """Which machine without a GPU that is, and where its price comes from."""
        host = self.cheapest_cpu(provider or "", region)
        if host is None:
            return ""
        seen = "" if host.observed is None else f" of {host.observed}"
        return f"{host.instance}{seen}, {host.source}"


@dataclass(frozen=True, slots=True, eq=False)
class Tariffed:
    """One item's tariff of each offer. tariffs: the distinct ones; index: (n,), -1 where none is known."""

    tariffs: tuple[Tariff, ...]
    index: Rows

    @staticmethod
    def of(offers: Catalogue, find: Callable[[str, str | None], Tariff | None]) -> Tariffed:
        pairs, inverse = _pairs(offers.provider, offers.region)
        found = [find(provider, region) if provider else None for provider, region in pairs]
        tariffs = tuple(dict.fromkeys(tariff for tariff in found if tariff is not None))
        place = {tariff: i for i, tariff in enumerate(tariffs)}
        codes = np.array([-1 if tariff is None else place[tariff] for tariff in found], np.intp)
        return Tariffed(tariffs, codes[inverse] if len(codes) else np.zeros(0, np.intp))

    @staticmethod
    def fixed(choices: Sequence[Tariff | None], choice: Rows) -> Tariffed:
        """One of a few tariffs for each offer. choice: its place among them; None: nobody states it."""
        known = tuple(tariff for tariff in choices if tariff is not None)
        place = np.array([-1 if tariff is None else known.index(tariff) for tariff in choices], np.intp)
        return Tariffed(known, place[choice])

    def each(self, figure: Callable[[Tariff], float]) -> Floats:
        """A figure of each offer's tariff, NaN where none is known."""
        return np.array([*(figure(tariff) for tariff in self.tariffs), np.nan])[self.index]

    def __getitem__(self, row: int) -> Tariff | None:
        return None if self.index[row] < 0 else self.tariffs[int(self.index[row])]


def _pairs(first: Coded, second: Coded) -> tuple[list[tuple[str | None, str | None]], Rows]:
    """The distinct pairs of two text columns, and which one each row holds."""
    key = (first.codes.astype(np.int64) + 1) * (len(second.values) + 1) + second.codes + 1
    _, rows, inverse = np.unique(key, return_index=True, return_inverse=True)
    return [(first[int(row)], second[int(row)]) for row in rows], inverse


def _names(offers: Catalogue) -> Sequence[str]:
    return offers.provider.values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conditions:
    """n offers; arrays of shape (n,), NaN where nobody says.

    ready, bare: frameworks and container runtime are there, or nothing is; neither: not known. session_s: longest
    session. cap_h: of a month. stopped_everything, stopped_disk, stopped_nothing: what a stopped machine is billed;
    stopped_in_full: as if it ran, since it is so or nobody says. resume_in_doubt: a stopped machine may come back
    without its GPU. disk_lost: what is on the disk goes with the machine; disk_moves: it moves to another machine.
    shared: others use the physical host too. cpu_usd_per_hour: of the machine without a GPU on which a disk can be
    prepared and from which it can be moved. disk_usd_per_gb_month, stopped_disk_usd_per_gb_month, included_gb,
    address_usd_per_hour, egress: beside the machine; egress of the whole provider.
    """

    ready: Mask
    bare: Mask
    session_s: Floats
    cap_h: Floats
    stopped_everything: Mask
    stopped_disk: Mask
    stopped_nothing: Mask
    stopped_in_full: Mask
    stopped_disk_usd_per_gb_month: Floats
    resume_in_doubt: Mask
    disk_lost: Mask
    disk_moves: Mask
    shared: Mask
    cpu_usd_per_hour: Floats
    disk_usd_per_gb_month: Floats
    included_gb: Floats
    address_usd_per_hour: Floats
    disk: Tariffed
    address: Tariffed
    egress: Tariffed

    @staticmethod
    def of(offers: Catalogue, around: Surroundings) -> Conditions:
        disk, address, egress = (around.tariff(offers, item) for item in ("disk", "address", "egress"))
        stopped = _stopped(offers, around)
        dearer = around.number(offers, "stopped_disk_usd_per_gb_month")
        rented = offers.market.isin(RENTED)
        frameworks = {kind: around.says(offers, "frameworks", kind) for kind in ("preinstalled", "none")}
        free = offers.market.isin(("free",))
        limit_h = np.where(free, *(around.number(offers, f"session_limit{kind}_h") for kind in ("", "_paid")))
        return Conditions(
            ready=frameworks["preinstalled"],
            bare=frameworks["none"],
            session_s=_first(offers.session_limit_s, limit_h * SECONDS_PER_HOUR),
            cap_h=_first(offers.monthly_cap_h, np.where(rented, around.number(offers, "monthly_cap_h"), np.nan)),
            **stopped,
            stopped_in_full=offers.market.isin(BY_USE) & ~(stopped["stopped_disk"] | stopped["stopped_nothing"]),
            stopped_disk_usd_per_gb_month=_first(dearer, _first(offers.storage_usd_per_gb_month, _known(disk, rented))),
            resume_in_doubt=around.says(offers, "resume", "may have no GPU") | offers.host.isin(("peer",)),
            disk_lost=around.says(offers, "disk_survives", "no"),
            disk_moves=around.says(offers, "disk_moves", "yes"),
            shared=offers.host_shared.isin(("yes",)) | _part_of_a_host(offers),
            cpu_usd_per_hour=_cpu(offers, around),
            disk_usd_per_gb_month=_first(offers.storage_usd_per_gb_month, _known(disk, rented)),
            included_gb=offers.disk_included_gb,
            address_usd_per_hour=_first(offers.address_usd_per_hour, _known(address, rented)),
            disk=disk,
            address=address,
            egress=egress,
        )


def _first(own: Floats, provider: Floats) -> Floats:
    return np.where(np.isnan(own), provider, own)


def _known(tariffed: Tariffed, rented: Mask) -> Floats:
    """The first price of a tariff that is not free, where the market bills it."""
    return np.where(rented, tariffed.each(lambda tariff: tariff.first_usd), np.nan)


def _part_of_a_host(offers: Catalogue) -> Mask:
    """Fewer GPUs than the physical host holds, and nobody says that the rest stands empty."""
    part = offers.host_gpus > offers.accelerators
    return np.asarray(part & ~offers.host_shared.isin(("no",)))


def _stopped(offers: Catalogue, around: Surroundings) -> dict[str, Mask]:
    unsaid = offers.stopped.codes < 0
    return {
        f"stopped_{what}": offers.stopped.isin((what,)) | (unsaid & around.says(offers, "stopped", what))
        for what in ("everything", "disk", "nothing")
    }


def _cpu(offers: Catalogue, around: Surroundings) -> Floats:
    """Price of preparing an hour on a machine without a GPU, where the provider lets its disk be moved."""
    pairs, inverse = _pairs(offers.provider, offers.region)
    hosts = [around.cheapest_cpu(provider or "", region) for provider, region in pairs]
    prices = np.array([np.nan if host is None else host.usd_per_hour for host in hosts])
    moved = around.says(offers, "disk_moves", "yes") & offers.market.isin(RENTED)
    return np.where(moved, prices[inverse] if len(prices) else np.zeros(0), np.nan)
