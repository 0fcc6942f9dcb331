"""What a GPU-hour costs to rent in each way: as listed, as billed, as the person says it, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from gpuwise.api.making import HOME, Making, said
from gpuwise.api.world import filter_context, read_offers
from gpuwise.errors import Message, MissingEvidence
from gpuwise.model import Accelerator, Assumption
from gpuwise.own import market
from gpuwise.own.case import RENTED
from gpuwise.own.figures import stated
from gpuwise.own.market import Quote
from gpuwise.rank import usable
from gpuwise.request import OwnFilters, OwnRequest
from gpuwise.store import package

CLOUD = "cloud_usd_per_gpu_hour"
COMMITTED = ("committed-1y", "committed-3y")
ONE_CLOUD = ("TPU", "Trainium")
"""Architectures that nobody else offers or sells."""
WAY_NAMES = {
    "committed-1y": Message("a commitment for a year"),
    "committed-3y": Message("a commitment for three years"),
    "spot": Message("spot"),
}


def quotes_of(request: OwnFilters, device: Accelerator, as_of: date, making: Making) -> list[Quote]:
    """All current prices of the accelerator that the filters let through."""
    offers, notes = read_offers(replace(request, machine=()), as_of)
    context, remarks = filter_context(request, offers, as_of)
    left, hourly = usable(offers, request, context)
    making.notes += [*notes, *remarks]
    if device.architecture in ONE_CLOUD:
        text = "{name} is to be had in one cloud only: what runs there leaves only with a port"
        making.notes.append(Message(text, name=device.name))
    found = market.quotes(offers, np.flatnonzero(left.alive), hourly, device.id)
    return [quote for quote in found if quote.offer.host != "peer"]


def stated_cloud(request: OwnFilters) -> Assumption | None:
    """The person's own price."""
    if isinstance(request, OwnRequest) and request.cloud_usd_per_gpu_hour is not None:
        return stated(CLOUD, request.cloud_usd_per_gpu_hour, "USD/h")
    return None


def put_rent(request: OwnFilters, quotes: Sequence[Quote], paid: Assumption | None, making: Making) -> None:
    """The price of the cloud, and of commitments, spot and machines by the month.

    paid: what the cloud bills, where it is known. MissingEvidence where nothing says it, and work may go to a cloud.
    """
    best = market.cheapest(quotes)
    if paid is not None:
        making.put(paid)
    elif "on-demand" in best:
        making.put(_quoted(CLOUD, best["on-demand"]))
    elif request.data_must_stay is not None:
        _rent_nothing(request.data_must_stay, making)
    else:
        raise _no_price(request)
    for way in (*COMMITTED, "spot"):
        _put_way(request, way, best, making)
    if "dedicated" in best:
        making.put(_quoted(_price_of("dedicated"), best["dedicated"]))
    else:
        making.close(("dedicated",), Message("no current price by the month is known for this GPU"))
    _say_what_a_stated_price_leaves(request, best, making)


def _no_price(request: OwnFilters) -> MissingEvidence:
    names = request.gpu
    return MissingEvidence(
        Message("No current on-demand price of {gpu} is known that these filters let through.", gpu=", ".join(names)),
        Message("Give yours with --cloud-price, or look with: gpuwise data list --gpu {gpu}", gpu=",".join(names)),
    )


def _rent_nothing(place: str, making: Making) -> None:
    """No cloud is known where the data must stay: all work is done on own servers, and waits for them."""
    making.put(replace(stated(CLOUD, 0.0, "USD/h", "nothing may be rented"), source="none"))
    making.nothing_rented = True
    if place == HOME:
        why = Message("the data must stay on the premises")
    else:
        why = Message("no price by the hour is known in {place}, where the data must stay", place=place)
        text = "no cloud is known in {place}: all work waits for own servers (say yours with --cloud-price)"
        making.notes.append(Message(text, place=place))
    making.close(("on-demand", *RENTED, "spot", "mix"), why)


def _price_of(way: str) -> str:
    return f"{way.replace('-', '_')}_usd_per_gpu_hour"


def discount_of(way: str) -> str:
    return f"{way.replace('-', '_')}_discount_fraction"


def _quoted(name: str, quote: Quote) -> Assumption:
    offer = quote.offer
    return Assumption(
        name=name, value=quote.usd_per_gpu_hour, low=None, high=None, unit="USD/h", source=offer.source.ref,
        observed=offer.observed, note=offer.id,
    )  # fmt: skip


def _put_way(request: OwnFilters, way: str, best: Mapping[str, Quote], making: Making) -> None:
    """The person's discount, a listed price, or what the cloud takes off on its other machines; else it is closed."""
    name, known = discount_of(way), package.assumptions()
    if said(request, name):
        making.put(known[name])  # a name to be replaced
        return
    if way in best:
        making.put(_quoted(_price_of(way), best[way]))
        return
    base, priced = best.get("on-demand"), making.figures[CLOUD]
    quoted = base is not None and priced.note == base.offer.id  # and not the person's own price
    alike = known.get(f"{name}_{base.offer.provider}") if base and quoted else None
    if alike is not None and way in COMMITTED:
        making.put(replace(alike, name=name))
        text = "no price of {way} is listed: taken as {provider} has it for other machines, {low:.0%} to {high:.0%} off"
        values = {"way": WAY_NAMES[way], "low": alike.low, "high": alike.high}
        making.notes.append(Message(text, **values, provider=base.offer.provider if base else ""))
        return
    usual = known[name]
    text = "no current price of {way} is known for it (usual: {low:.0%} to {high:.0%} off; say --set {name}=…)"
    making.close((way,), Message(text, way=WAY_NAMES[way], low=usual.low, high=usual.high, name=name))


def _say_what_a_stated_price_leaves(request: OwnFilters, best: Mapping[str, Quote], making: Making) -> None:
    """A person's price is that of his hours on demand; what others list for a term, or on spot, stands beside it."""
    if stated_cloud(request) is None:
        return
    for way in (*COMMITTED, "spot"):
        if way in best and not said(request, discount_of(way)):
            quote = best[way]
            text = (
                "{way} stands at the listed price of {provider} ({usd:.2f} USD), whatever --cloud-price is: yours "
                "with --set {name}=…"
            )
            values = {"usd": quote.usd_per_gpu_hour, "provider": quote.offer.provider, "name": discount_of(way)}
            making.notes.append(Message(text, way=WAY_NAMES[way], **values))
