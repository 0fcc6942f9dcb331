"""Energy and carbon beside money: what the work draws where it is owned, and where it is rented."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwise.api.assembly import Assembled
from gpuwise.errors import Message
from gpuwise.own.decide import Decision
from gpuwise.own.energy import energy_kwh, kg_co2e
from gpuwise.store import package


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Of one option over the horizon, in the middle case. kg_co2e: None where the country is not known."""

    option: str
    kwh: float
    kg_co2e: float | None
    origin: Message


def energies(found: Assembled, decision: Decision) -> tuple[Energy, ...]:
    """All of it rented, and the cheapest option that owns something (its own servers alone)."""
    rented = _rented(found)
    owned = decision.outcomes.get(decision.owned or "")
    if owned is None or owned.energy_kwh is None:
        return (rented,) if rented else ()
    country = found.country
    mine = _of(owned.option, owned.energy_kwh.p50, country, Message("own servers alone, cooling contained"))
    return (rented, mine) if rented else (mine,)


def _rented(found: Assembled) -> Energy | None:
    """The same GPUs in a data centre of the provider: its PUE where it claims one, else the survey's average."""
    figures = found.case.figures
    if "busy_kw" not in figures or found.cloud is None:
        return None
    provider = found.cloud.offer.provider
    claims = [f for f in package.hosting() if f.kind == "pue" and f.region == provider]
    pue = claims[0].value if claims else figures["pue_colocation"].value
    hours = figures["demand_gpu_h_per_month"].value * found.case.months
    kwh = energy_kwh(figures["busy_kw"].value / found.case.accelerators, hours, pue=pue)
    why = Message("a server like the one that would be bought, at the PUE of {who} ({pue:g})", pue=pue,
                  who=provider if claims else "the survey's average")  # fmt: skip
    return _of("on-demand", kwh, found.cloud.offer.country, why)


def _of(option: str, kwh: float, country: str | None, why: Message) -> Energy:
    carbon = package.carbon().get(country or "")
    if carbon is None:
        text = Message("{why}; carbon unknown: the country is not known", why=why)
        return Energy(option=option, kwh=kwh, kg_co2e=None, origin=text)
    text = Message("{why}; {grams:.0f} g CO2e a kWh, {country} {year}", why=why, grams=carbon.g_co2e_per_kwh,
                   country=carbon.name, year=carbon.year)  # fmt: skip
    return Energy(option=option, kwh=kwh, kg_co2e=kg_co2e(kwh, carbon.g_co2e_per_kwh), origin=text)
