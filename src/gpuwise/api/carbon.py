"""Energy and carbon beside money: what the same work draws where it is owned, and where it is rented."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwise.api.assembly import Assembled
from gpuwise.errors import Message
from gpuwise.own.case import stack, world
from gpuwise.own.decide import Decision, own_energy_kwh
from gpuwise.own.energy import energy_kwh, kg_co2e
from gpuwise.own.plan import Own, flows
from gpuwise.store import package


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Of one part of the work over the horizon, in the middle case. option: whose; rest: what it rents besides its own
    servers. kg_co2e: None where the country is not known."""

    option: str
    rest: bool
    kwh: float
    kg_co2e: float | None
    origin: Message


def energies(found: Assembled, decision: Decision) -> tuple[Energy, ...]:
    """All of it rented; and the cheapest option that owns something: its servers, and what it rents besides."""
    case, middle = found.case, found.case.figures.middle()
    lived = world(case, middle)
    parts = [_rented(found, "on-demand", float(lived.demand_gpu_h.sum()), rest=False)]
    owned = decision.outcomes.get(decision.owned or "")
    if owned is not None:
        layers, rest = stack(case, owned.count, middle)
        paid = flows(layers, rest, lived)
        own_kwh, all_gpu_h = float(own_energy_kwh(layers, paid).sum()), float(paid.served_gpu_h.sum())
        on_own = float(paid.served_gpu_h[: sum(isinstance(layer, Own) for layer in layers)].sum())
        why = Message("own servers, cooling contained")
        parts.append(_of(owned.option, own_kwh, found.country, why, rest=False))
        parts.append(_rented(found, owned.option, all_gpu_h - on_own, rest=True))
    return tuple(part for part in parts if part is not None)


def _rented(found: Assembled, option: str, gpu_h: float, *, rest: bool) -> Energy | None:
    """The same GPUs in a data centre of the provider: its PUE where it claims one, else the survey's average. None
    where nothing is rented, or it is not known from whom, or what a server draws."""
    figures = found.case.figures
    if "busy_kw" not in figures or found.cloud is None or gpu_h <= 0 or found.case.at_home:
        return None
    provider = found.cloud.offer.provider
    claims = [f for f in package.hosting() if f.kind == "pue" and f.region == provider]
    pue = claims[0].value if claims else figures["pue_colocation"].value
    kwh = energy_kwh(figures["busy_kw"].value / found.case.accelerators, gpu_h, pue=pue)
    why = Message("a server like the one that would be bought, at the PUE of {who} ({pue:g})", pue=pue,
                  who=provider if claims else Message("the survey's average"))  # fmt: skip
    return _of(option, kwh, found.cloud.offer.country, why, rest=rest)


def _of(option: str, kwh: float, country: str | None, why: Message, *, rest: bool) -> Energy:
    carbon = package.carbon().get(country or "")
    if carbon is None:
        text = Message("{why}; carbon unknown: the country is not known", why=why)
        return Energy(option=option, rest=rest, kwh=kwh, kg_co2e=None, origin=text)
    text = Message("{why}; {grams:.0f} g CO2e a kWh, {country} {year}", why=why, grams=carbon.g_co2e_per_kwh,
                   country=carbon.name, year=carbon.year)  # fmt: skip
    return Energy(option=option, rest=rest, kwh=kwh, kg_co2e=kg_co2e(kwh, carbon.g_co2e_per_kwh), origin=text)
