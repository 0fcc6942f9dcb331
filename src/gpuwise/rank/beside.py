"""What is billed beside the machine: disk, address, data that moves, a machine without a GPU, standing stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.cost.billing import Beside
from gpuwise.cost.tariffs import Item
from gpuwise.rank.conditions import RENTED, Conditions, Surroundings, Tariffed
from gpuwise.rank.timing import Timing
from gpuwise.request import RankRequest
from gpuwise.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thing:
    """One thing on n bills: quantity · unit_price_usd, both of shape (n,); 0 where there is nothing to pay.

    per_hour: the quantity is of one hour that the machine is held. unknown: it falls due, and nobody states its price.
    """

    kind: str
    unit: str
    quantity: Floats
    unit_price_usd: Floats
    source: Callable[[int], str]
    unknown: Mask
    per_hour: bool = False

    @property
    def usd(self) -> Floats:
        return np.nan_to_num(self.quantity * self.unit_price_usd)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Things:
    """All that is billed beside n machines."""

    things: Sequence[Thing]

    @property
    def usd_per_hour(self) -> Floats:
        return np.asarray(sum(thing.usd for thing in self.things if thing.per_hour))

    @property
    def once_usd(self) -> Floats:
        return np.asarray(sum(thing.usd for thing in self.things if not thing.per_hour))

    def lines(self, row: int, used_h: float) -> list[Beside]:
        """The lines of one bill; used_h: hours that the machine is held."""
        return [
            Beside(
                kind=thing.kind,
                quantity=float(thing.quantity[row]) * (used_h if thing.per_hour else 1.0),
                unit=thing.unit,
                unit_price_usd=float(thing.unit_price_usd[row]),
                source=thing.source(row),
            )
            for thing in self.things
            if thing.usd[row]
        ]

    def unknown(self, row: int) -> Iterator[str]:
        """What falls due there without a known price."""
        return (thing.kind for thing in self.things if thing.unknown[row])


def beside(
    offers: Catalogue, conditions: Conditions, around: Surroundings, request: RankRequest, timing: Timing,
    price_usd_per_hour: Floats,
) -> Things:  # fmt: skip
    """What falls due beside each machine for the whole job, net of VAT."""
    rented = ~offers.market.isin(("owned", "free"))
    nodes = np.where(rented, offers.nodes, 0.0)
    disk, stopped_h = _disk(conditions, request, nodes), timing.stopped_s / SECONDS_PER_HOUR * timing.copies

    def price_list(row: int) -> str:
        return offers.source[row] or offers.name

    def listed(tariffs: Tariffed) -> Callable[[int], str]:
        return lambda row: tariff.source if (tariff := tariffs[row]) else price_list(row)

    def once(kind: str, unit: str, quantity: Floats, price: Floats, source: Callable[[int], str]) -> Thing:
        missing = (quantity > 0) & np.isnan(price)
        return Thing(kind=kind, unit=unit, quantity=quantity, unit_price_usd=price, source=source, unknown=missing)

    def hourly(kind: str, unit: str, quantity: Floats, price: Floats, source: Callable[[int], str]) -> Thing:
        missing = (quantity > 0) & np.isnan(price) & (kind == "disk")
        return Thing(
            kind=kind, unit=unit, quantity=quantity, unit_price_usd=price, source=source, unknown=missing, per_hour=True
        )

    by_use = offers.market.isin(RENTED)
    on = np.where((conditions.stopped_everything | _silent(conditions)) & by_use, stopped_h, 0.0)
    kept = np.where(conditions.stopped_disk, stopped_h, 0.0) + on + timing.cpu_s / SECONDS_PER_HOUR
    return Things(
        things=(
            hourly("disk", "GB-month", disk / HOURS_PER_MONTH, conditions.disk_usd_per_gb_month,
                   listed(conditions.disk)),
            hourly("public address", "h", nodes, conditions.address_usd_per_hour, listed(conditions.address)),
            once("preparation without GPU", "h", timing.cpu_s / SECONDS_PER_HOUR, conditions.cpu_usd_per_hour,
                 lambda row: around.cpu_source(offers.provider[row], offers.region[row])),
            once("standing stopped", "h", on, price_usd_per_hour, price_list),
            once("disk in between", "GB-month", kept * disk / HOURS_PER_MONTH, conditions.disk_usd_per_gb_month,
                 listed(conditions.disk)),
            *_moved(offers, conditions, around, request, timing, rented, price_list),
        )
    )  # fmt: skip


def _silent(conditions: Conditions) -> Mask:
    """Where nobody says what a stopped machine is billed: it is taken to be billed in full, the dearest rule."""
    said = conditions.stopped_everything | conditions.stopped_disk | conditions.stopped_nothing
    return np.asarray(~said)


def _disk(conditions: Conditions, request: RankRequest, nodes: Floats) -> Floats:
    """GB on top of what the price includes, on all machines together; a machine by the month brings its disk along."""
    wanted = request.disk_gb or 0.0
    return np.maximum(wanted - np.nan_to_num(conditions.included_gb), 0.0) * nodes


def _moved(
    offers: Catalogue, conditions: Conditions, around: Surroundings, request: RankRequest, timing: Timing, rented: Mask,
    price_list: Callable[[int], str],
) -> Iterator[Thing]:  # fmt: skip
    """Data that leaves where it lies, and results that leave the provider: each GB at the price of its tier."""
    copies, jobs = timing.copies, float(request.jobs)
    if request.data_gb and request.data_from != "here":
        usd, unknown = _left(offers, around, request.data_from, request.data_gb)
        price = usd / request.data_gb
        yield Thing(
            kind="data from its provider", unit="GB", quantity=request.data_gb * copies, unit_price_usd=price,
            source=lambda row: around.egress_source(request.data_from), unknown=unknown,
        )  # fmt: skip
    if request.results_gb:
        gigabytes = request.results_gb * jobs
        tiered = conditions.egress.each(lambda tariff: tariff.usd(gigabytes) / gigabytes)
        price = np.where(np.isnan(offers.egress_usd_per_gb), tiered, offers.egress_usd_per_gb)
        yield Thing(
            kind="egress", unit="GB", quantity=np.where(rented, gigabytes, 0.0), unit_price_usd=price,
            source=lambda row: tariff.source if (tariff := conditions.egress[row]) else price_list(row),
            unknown=rented & np.isnan(price),
        )  # fmt: skip


def _left(offers: Catalogue, around: Surroundings, place: str, gigabytes: float) -> tuple[Floats, Mask]:
    """USD for the data to leave its provider or region for each offer, and where nobody states it."""
    provider, _slash, region = place.partition("/")
    same = offers.provider.isin((provider,))
    near = same & offers.region.isin((region,))

    def usd(item: Item) -> float:
        tariff = around.tariffs.find(provider, item, region or None)
        return np.nan if tariff is None else tariff.usd(gigabytes)

    paid = np.where(near, 0.0, np.where(same, usd("between regions"), usd("egress")))
    return paid, np.isnan(paid)
