"""What is billed beside the machine: disk, address, data that moves, a machine without a GPU, standing stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.cost.billing import Beside
from gpuwise.cost.tariffs import Tariff, stored_usd
from gpuwise.rank.conditions import Conditions, Surroundings, Tariffed
from gpuwise.rank.timing import Timing
from gpuwise.request import RankRequest
from gpuwise.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Lines = Callable[[int, float], list[Beside]]
"""row, hours that the machine is held -> the lines of its bill."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thing:
    """One thing on n bills, net of VAT, of shape (n,): hourly_usd while the machine is held and once_usd whatever the
    time. unknown: it falls due, and nobody states its price; it is then in no figure. named: whether a missing price is
    remarked on in each row.
    """

    kind: str
    hourly_usd: Floats | float = 0.0
    once_usd: Floats | float = 0.0
    unknown: Mask
    named: bool = True
    lines: Lines


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Things:
    """All that is billed beside n machines."""

    things: Sequence[Thing]

    @property
    def usd_per_hour(self) -> Floats:
        return np.asarray(sum(np.nan_to_num(thing.hourly_usd) for thing in self.things))

    @property
    def once_usd(self) -> Floats:
        return np.asarray(sum(np.nan_to_num(thing.once_usd) for thing in self.things))

    @property
    def incomplete(self) -> Mask:
        """Offers of which a part that was asked about has no known price."""
        return np.asarray(np.logical_or.reduce([thing.unknown for thing in self.things if thing.named]))

    def lines(self, row: int, used_h: float) -> list[Beside]:
        """The lines of one bill; used_h: hours that the machine is held."""
        return [line for thing in self.things if not thing.unknown[row] for line in thing.lines(row, used_h)]

    def unknown(self, row: int) -> Iterator[str]:
        """What falls due there without a known price."""
        return (thing.kind for thing in self.things if thing.named and thing.unknown[row])


def beside(
    offers: Catalogue, conditions: Conditions, around: Surroundings, request: RankRequest, timing: Timing
) -> Things:
    """What falls due beside each machine for the whole job, net of VAT."""
    made = _Maker(offers, conditions, around, request, timing)
    return Things(things=(made.disk(), made.kept(), made.address(), made.prepared(), made.moved(), made.results()))


@dataclass(frozen=True, slots=True, eq=False)
class _Maker:
    offers: Catalogue
    conditions: Conditions
    around: Surroundings
    request: RankRequest
    timing: Timing

    @property
    def rented(self) -> Mask:
        return ~self.offers.market.isin(("owned", "free"))

    def source(self, row: int, tariffed: Tariffed | None = None) -> str:
        """The tariff that holds, or the price list itself."""
        tariff = None if tariffed is None else tariffed[row]
        return tariff.shown(self.offers.region[row]) if tariff else self.offers.source[row] or self.offers.name

    def extra_gb(self) -> Floats:
        """Disk on top of what the price includes, on all machines of an offer together."""
        wanted = self.request.disk_gb or 0.0
        included = np.nan_to_num(self.conditions.included_gb)
        return np.maximum(wanted - included, 0.0) * np.where(self.rented, self.offers.nodes, 0.0)

    def disk(self) -> Thing:
        more_gb, price = self.extra_gb(), self.conditions.disk_usd_per_gb_month
        months = more_gb / HOURS_PER_MONTH
        return Thing(
            kind="disk",
            hourly_usd=stored_usd(more_gb, price, 1.0),
            unknown=(more_gb > 0) & np.isnan(price),
            lines=lambda row, used_h: self._line("disk", months[row] * used_h, "GB-month", price[row], row,
                                                 self.conditions.disk),
        )  # fmt: skip

    def kept(self) -> Thing:
        """The disk while no GPU is held: standing stopped, and while it is prepared without one."""
        hours = np.where(self.conditions.stopped_disk, self.timing.idle_s, 0.0) / SECONDS_PER_HOUR
        more_gb, cpu_h = self.extra_gb(), self.timing.cpu_s / SECONDS_PER_HOUR
        months = more_gb / HOURS_PER_MONTH
        stopped, usual = self.conditions.stopped_disk_usd_per_gb_month, self.conditions.disk_usd_per_gb_month

        def lines(row: int, _used_h: float) -> list[Beside]:
            told = (("disk while stopped", hours, stopped), ("disk while prepared", cpu_h, usual))
            return [
                line
                for kind, held, price in told
                for line in self._line(kind, months[row] * held[row], "GB-month", price[row], row, self.conditions.disk)
            ]

        idle, prepared = stored_usd(more_gb, stopped, hours), stored_usd(more_gb, usual, cpu_h)
        paid = np.where(hours > 0, idle, 0.0) + np.where(cpu_h > 0, prepared, 0.0)
        return Thing(kind="disk while stopped", once_usd=paid, unknown=np.isnan(paid), named=False, lines=lines)

    def address(self) -> Thing:
        price, nodes = self.conditions.address_usd_per_hour, np.where(self.rented, self.offers.nodes, 0.0)
        return Thing(
            kind="public address",
            hourly_usd=nodes * price,
            unknown=(nodes > 0) & np.isnan(price),
            named=False,
            lines=lambda row, used_h: self._line("public address", nodes[row] * used_h, "h", price[row], row,
                                                 self.conditions.address),
        )  # fmt: skip

    def prepared(self) -> Thing:
        hours, price = self.timing.cpu_s / SECONDS_PER_HOUR, self.conditions.cpu_usd_per_hour

        def lines(row: int, _used_h: float) -> list[Beside]:
            found = self._line("preparation without GPU", hours[row], "h", price[row], row)
            cpu = self.around.cpu_source(self.offers.provider[row], self.offers.region[row])
            return [Beside(kind=x.kind, quantity=x.quantity, unit=x.unit, unit_price_usd=x.unit_price_usd, source=cpu)
                    for x in found]  # fmt: skip

        paid = np.where(hours > 0, hours * price, 0.0)
        return Thing(kind="preparation without GPU", once_usd=paid, unknown=np.isnan(paid), lines=lines)

    def moved(self) -> Thing:
        """Data that leaves where it lies; each copy of it counts for the tiers."""
        provider, _slash, region = self.request.data_from.partition("/")
        gigabytes = (
            (self.request.data_gb or 0.0)
            * self.timing.use.copies
            * np.where(self.timing.before.copied, self.timing.use.starts, 1.0)
        )
        gigabytes = gigabytes * (self.request.data_from != "here")
        same = self.offers.provider.isin((provider,))
        near = same & self.offers.region.isin((region,))
        find = self.around.tariffs.find
        away = find(provider, "egress", region or None)
        between = find(provider, "between regions", region or None) or away
        free = Tariff(provider=provider, region=None, item="egress", tiers=(), observed=None, source="")
        choice = np.where(near, 0, np.where(same, 1, 2))
        return self._tiered("data from its provider", gigabytes, Tariffed.fixed((free, between, away), choice))

    def results(self) -> Thing:
        """What leaves the provider at the end."""
        gigabytes = np.where(self.rented, (self.request.results_gb or 0.0) * self.request.jobs, 0.0)
        own = self.offers.egress_usd_per_gb
        listed = self._tiered("egress", gigabytes, self.conditions.egress)
        if np.isnan(own).all():
            return listed

        def lines(row: int, used_h: float) -> list[Beside]:
            if np.isnan(own[row]):
                return listed.lines(row, used_h)
            return self._line("egress", gigabytes[row], "GB", own[row], row)

        paid = np.where(np.isnan(own), listed.once_usd, gigabytes * own)
        return Thing(kind="egress", once_usd=paid, unknown=listed.unknown & np.isnan(own), lines=lines)

    def _tiered(self, kind: str, gigabytes: Floats, tariffed: Tariffed) -> Thing:
        """Data that leaves by the tiers of each offer's tariff, one line a tier."""

        def lines(row: int, _used_h: float) -> list[Beside]:
            tariff = tariffed[row]
            return [] if tariff is None else [
                Beside(kind=kind, quantity=amount, unit="GB", unit_price_usd=usd, source=self.source(row, tariffed))
                for amount, usd in tariff.parts(float(gigabytes[row]))
            ]  # fmt: skip

        paid = np.zeros(len(gigabytes))
        for amount in np.unique(gigabytes[gigabytes > 0]):
            rows = gigabytes == amount
            paid[rows] = tariffed.each(lambda tariff, n=amount: tariff.usd(float(n)))[rows]  # type: ignore[misc]
        return Thing(kind=kind, once_usd=paid, unknown=np.isnan(paid), lines=lines)

    def _line(
        self, kind: str, quantity: float, unit: str, price: float, row: int, tariffed: Tariffed | None = None
    ) -> list[Beside]:
        if not quantity or np.isnan(price):
            return []
        source = self.source(row, tariffed)
        return [Beside(kind=kind, quantity=float(quantity), unit=unit, unit_price_usd=float(price), source=source)]
