"""What would be bought, where it would stand, and what that costs: the figures of an own server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from statistics import median

from gpuwise.asset import Server
from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.model import Accelerator, Assumption, Machine
from gpuwise.own.figures import stated
from gpuwise.request import OwnFilters
from gpuwise.sources.offered import nearest
from gpuwise.store import package
from gpuwise.units import DAYS_PER_YEAR

SMALL_SERVER_GPUS = 2
"""A machine with so few GPUs is a workstation: it takes less care."""
PRICE_YEARS = 3
"""Prices of the last years that make the range of a server's price."""
REGIONS: Mapping[str, str] = {
    **dict.fromkeys(("US", "CA", "MX"), "North America"),
    **dict.fromkeys(("AU", "NZ"), "Oceania"),
    **dict.fromkeys(("CN", "JP", "KR", "IN", "SG", "HK", "TW", "TH", "MY", "ID", "VN", "PH"), "Asia"),
    **dict.fromkeys(("BR", "AR", "CL", "CO", "PE"), "South America"),
    **dict.fromkeys(("ZA", "NG", "KE", "EG", "MA"), "Africa"),
    **dict.fromkeys(
        ("EU", "AT", "BE", "BG", "CH", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GB", "GR", "HR", "HU", "IE",
         "IS", "IT", "LT", "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "SK"), "Europe",
    ),
}  # fmt: skip
"""Country -> the region for which a business price of electricity is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """What would be bought. server: as it is sold; machine: as the person's file states it; both None: only figures
    that the person gave. accelerators: of one."""

    accelerators: int
    server: Server | None = None
    machine: Machine | None = None


def bought(request: OwnFilters, device: Accelerator, as_of: date) -> Bought | Message:
    """The server of the request, or why none can be priced. UnknownName for a model that nobody sells."""
    if request.machine:
        return _of_file(request, device)
    sold = [server for server in package.servers() if server.observed is None or server.observed <= as_of]
    named = _named(request, sold)
    fitting = [one for one in named if one.accelerator == device.id and one.complete and one.accelerators]
    priced = sorted((one for one in fitting if one.price_usd is not None), key=_by_price)
    if request.server_price_usd is not None:
        return _at_own_price(request, [*priced, *fitting])
    if priced:
        return Bought(accelerators=int(priced[0].accelerators or 1), server=priced[0])
    text = (
        "{what}: no public price was found for it with this GPU; give yours with --server-price, and --server-gpus and "
        "--server-power where they are not known"
    )
    return Message(text, what=request.server or device.name)


def _by_price(server: Server) -> tuple[int, float]:
    """Of the newest prices (within PRICE_YEARS of the newest) the least a GPU: an old price is not the cheapest."""
    year = server.observed.year if server.observed else 0
    return -year, float(server.price_usd or 0) / float(server.accelerators or 1)


def _named(request: OwnFilters, sold: Sequence[Server]) -> list[Server]:
    if request.server is None:
        return list(sold)
    words = _words(request.server)
    found = [one for one in sold if words <= _words(f"{one.vendor} {one.model} {one.configuration}")]
    if not found:
        models = sorted({f"{one.vendor} {one.model}" for one in sold})
        near = nearest(request.server, models)
        hint = Message("Did you mean {names}?", names=", ".join(near)) if near else Message(
            "Give --server-price and --server-gpus without a model.")  # fmt: skip
        raise UnknownName(Message('--server: there is no "{name}".', name=request.server), hint, near)
    return found


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.casefold()))


def _at_own_price(request: OwnFilters, fitting: Sequence[Server]) -> Bought:
    server = fitting[0] if fitting else None
    number = request.server_gpus or (server.accelerators if server else None)
    if number is None:
        raise InvalidInput(
            Message("--server-price: how many GPUs has the server?"), Message("Add --server-gpus, such as 8.")
        )
    return Bought(accelerators=number, server=server if server and server.accelerators == number else None)


def _of_file(request: OwnFilters, device: Accelerator) -> Bought:
    from gpuwise.sources import file as files

    machines = [one for path in request.machine for one in files.machines(Path(path), package.facts())]
    fitting = [one for one in machines if one.accelerator == device.id]
    if len(fitting) != 1:
        raise InvalidInput(
            Message("--machine: {n} of the machines have the GPU {gpu}; one is needed.", n=len(fitting), gpu=device.id),
            Message("Name one machine with this GPU, or another --gpu."),
        )
    return Bought(accelerators=fitting[0].accelerators, machine=fitting[0])


# ---- its figures ----


def server_figures(request: OwnFilters, device: Accelerator, chosen: Bought, as_of: date) -> list[Assumption]:
    """Price, power, care and place of one server, each with its range and origin."""
    if chosen.machine is not None:
        return _machine_figures(chosen.machine)
    assumed = package.assumptions()
    staff = assumed[
        "server_staff_usd_per_month" if chosen.accelerators > SMALL_SERVER_GPUS else "workstation_staff_usd_per_month"
    ]
    return [
        _price(request, chosen, as_of),
        *_power(request, device, chosen),
        replace(staff, name="staff_usd_per_month"),
        electricity(request),
    ]


def _price(request: OwnFilters, chosen: Bought, as_of: date) -> Assumption:
    """The person's price is taken as it is; else the middle of all public prices of its kind in these years, with the
    least and the most of them: the cheapest one is not what everybody gets."""
    if request.server_price_usd is not None:
        return stated("server_usd", request.server_price_usd, "USD")
    server = chosen.server
    assert server is not None
    assert server.price_usd is not None
    alike = [
        float(one.price_usd) / float(one.accelerators or 1) * chosen.accelerators
        for one in package.servers()
        if one.accelerator == server.accelerator and one.complete and one.price_usd and one.observed and server.observed
        and abs((one.observed - server.observed).days) <= PRICE_YEARS * DAYS_PER_YEAR and one.observed <= as_of
    ]  # fmt: skip
    return Assumption(
        name="server_usd", value=median(alike), low=min(alike), high=max(alike), unit="USD", source=server.source,
        observed=server.observed, note=f"middle and range of {len(alike)} public prices of such servers, the newest of "
        f"{server.vendor} {server.model}",
    )  # fmt: skip


def _power(request: OwnFilters, device: Accelerator, chosen: Bought) -> list[Assumption]:
    """Power at the most (for the place) and while it works (for the energy)."""
    assumed = package.assumptions()
    share = assumed["power_fraction_of_max"]
    most = _max_kw(request, device, chosen)
    busy = Assumption(
        name="busy_kw", value=most.value * share.value, low=most.value * float(share.low or share.value),
        high=most.value * float(share.high or share.value), unit="kW", source=share.source, observed=share.observed,
        note="power_fraction_of_max of the most",
    )  # fmt: skip
    return [most, busy]


def _max_kw(request: OwnFilters, device: Accelerator, chosen: Bought) -> Assumption:
    if request.server_power_kw is not None:
        return stated("max_kw", request.server_power_kw, "kW")
    if chosen.server is not None and chosen.server.max_power_w is not None:
        server = chosen.server
        return Assumption(
            name="max_kw", value=float(server.max_power_w or 0) / 1000, low=None, high=None, unit="kW",
            source=server.source, observed=server.observed,
        )  # fmt: skip
    if device.tdp_w is None:
        raise InvalidInput(
            Message("The power of a server with {gpu} is not known.", gpu=device.id),
            Message("Give it: --server-power, such as 3kW."),
        )
    over = package.assumptions()["server_power_over_tdp"]
    tdp_kw = device.tdp_w * chosen.accelerators / 1000
    return Assumption(
        name="max_kw", value=over.value * tdp_kw, low=float(over.low or over.value) * tdp_kw,
        high=float(over.high or over.value) * tdp_kw, unit="kW", source=over.source, observed=over.observed,
        note="server_power_over_tdp times the board power of its GPUs",
    )  # fmt: skip


def electricity(request: OwnFilters) -> Assumption:
    """Of the person, of the country's region for businesses, or of the world; households pay the high end."""
    if request.electricity_usd_per_kwh is not None:
        return stated("electricity_usd_per_kwh", request.electricity_usd_per_kwh, "USD/kWh")
    facts = [fact for fact in package.hosting() if fact.kind == "electricity" and fact.unit == "USD/kWh"]
    business = {fact.region: fact for fact in facts if fact.customer == "business"}
    region = REGIONS.get(request.country or "", "World")
    base = business[region]
    homes = [fact for fact in facts if fact.country == request.country and fact.customer == "residential"]
    ends = [fact.value for fact in business.values()] if region == "World" else [base.value, *(h.value for h in homes)]
    return Assumption(
        name="electricity_usd_per_kwh", value=base.value, low=min(*ends, 0.7 * base.value),
        high=max(*ends, 1.3 * base.value),
        unit="USD/kWh", source=base.source, observed=base.observed, note=f"business, {region}",
    )  # fmt: skip


def _machine_figures(machine: Machine) -> list[Assumption]:
    """A person's own machine as it is stated, with its ranges."""

    def figure(name: str, field: str, unit: str, scale: float = 1.0) -> Assumption:
        ends = [end.get(field) for end in (machine.low, machine.high)]
        low, high = (None if end is None else end * scale for end in ends)
        return Assumption(name=name, value=getattr(machine, field) * scale, low=low, high=high, unit=unit,
                          source=machine.source.ref, observed=machine.observed)  # fmt: skip

    worth = machine.residual_usd / machine.capex_usd if machine.capex_usd else 0.0
    four_years = max(worth, 1e-6) ** (4.0 / machine.life_years)
    return [
        figure("server_usd", "capex_usd", "USD"),
        stated("residual_fraction", four_years, "1"),
        figure("life_years", "life_years", "year"),
        figure("busy_kw", "power_w", "kW", 1e-3),
        figure("max_kw", "power_w", "kW", 1e-3),
        figure("pue_office", "pue", "1"),
        figure("electricity_usd_per_kwh", "electricity_usd_per_kwh", "USD/kWh"),
        figure("office_usd_per_month", "hosting_usd_per_month", "USD/month"),
        figure("staff_usd_per_month", "staff_usd_per_month", "USD/month"),
        figure("discount_fraction", "discount_fraction", "1/year"),
    ]
