"""From what a person says and what is known to one case: the figures with their ranges, and which options there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from gpuwise.api.bought import Bought, bought, server_figures
from gpuwise.api.closing import close, refuse_nothing_left
from gpuwise.api.making import Making, country_of
from gpuwise.api.renting import put_rent, quotes_of, stated_cloud
from gpuwise.api.wanted import Wanted
from gpuwise.api.world import unknown
from gpuwise.asset import LeadTime
from gpuwise.errors import InvalidInput, Message
from gpuwise.estimate import Z80
from gpuwise.model import Accelerator, Assumption
from gpuwise.offer import Offer
from gpuwise.own import market
from gpuwise.own.case import OPTIONS, PRICE_TO_COME, SITES, Case, asset, useful_usd
from gpuwise.own.demand import Staged, assumed, staged
from gpuwise.own.figures import figures, pooled, refuse_impossible, stated
from gpuwise.own.market import BreakEven, Quote
from gpuwise.own.plan import useful_year_usd
from gpuwise.own.prices import Jumps
from gpuwise.request import OwnFilters, at
from gpuwise.store import package
from gpuwise.store.leaving import lead_times
from gpuwise.units import DAYS_PER_YEAR, HOURS_PER_MONTH

TAKEN = (
    "idle_billed_fraction", "network_fraction", "storage_fraction", "spares_fraction", "life_years",
    "residual_fraction", "idle_power_fraction", "pue_office", "pue_colocation", "colocation_usd_per_kw_month",
    "support_fraction_per_year", "insurance_fraction_per_year", "availability_fraction", "discount_fraction",
    "spot_available_fraction", "spot_waste_fraction", "demand_variation",
)  # fmt: skip
"""Figures that are as assumptions.toml has them unless the person says otherwise."""
WANDER = "demand_wander_log_sd_per_root_year"
LEFT_OUT: Mapping[str, tuple[str, Message]] = {
    "tax_fraction": ("1", Message("tax on the purchase (--set tax_fraction=0.19)")),
    "office_usd_per_month": ("USD/month", Message("rent of the room for a server (--set office_usd_per_month=…)")),
    "licence_usd_per_gpu_year": ("USD/year", Message("software licences (--set licence_usd_per_gpu_year=…)")),
    WANDER: ("1", Message("how the demand wanders off what is known of it (--set {name}=0.3)", name=WANDER)),
}
"""Figures that nobody can know for a person: not contained unless he says them, and said to be."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assembled:
    """case: what is decided. accelerator: that of the demand. wanted: how the demand was said. quotes: all prices that
    were found; cloud: the one that stands for the cloud, None where the person stated it. bought: what would be bought,
    or why it has no price. leads: weeks from order to first job. country: where own servers would stand. missing: what
    is not contained."""

    case: Case
    accelerator: Accelerator
    wanted: Wanted
    quotes: tuple[Quote, ...]
    cloud: Quote | None
    bought: Bought | Message
    staged: Staged
    leads: tuple[LeadTime, ...]
    country: str | None
    missing: tuple[Message, ...]
    notes: tuple[Message, ...]


def assemble(
    request: OwnFilters, device: Accelerator, wanted: Wanted, as_of: date, paid: Assumption | None = None
) -> Assembled:
    """The case of a request. paid: what the cloud bills for a GPU-hour, where it is known.

    MissingEvidence where nothing has a price; UnknownName for a figure that there is not.
    """
    paid = paid or stated_cloud(request)
    making = Making()
    quotes = quotes_of(request, device, as_of, making)
    chosen = bought(request, device, as_of)
    _put_defaults(making)
    _put_demand(wanted, making)
    put_rent(request, quotes, paid, making)
    if isinstance(chosen, Message):
        making.close(SITES, chosen)
    else:
        making.put(*server_figures(replace(request, country=country_of(request)), device, chosen, as_of))
    _put_lead(device, as_of, making)
    _put_price_change(request.horizon_months, making)
    _put_said(request, making)
    _say_left_out(making)
    _say_many(wanted, making)
    close(request, as_of, making)
    case = _case(request, quotes, chosen, wanted, making)
    refuse_nothing_left(making)
    return Assembled(
        case=case,
        accelerator=device,
        wanted=wanted,
        quotes=tuple(quotes),
        cloud=market.cheapest(quotes).get("on-demand") if paid is None else None,
        bought=chosen,
        staged=_staged(request, wanted, case),
        leads=lead_times(),
        country=country_of(request),
        missing=tuple(making.missing),
        notes=(*wanted.notes, *making.notes),
    )


# ---- the other figures ----


def _put_defaults(making: Making) -> None:
    known = package.assumptions()
    making.put(*(known[name] for name in TAKEN))
    making.put(stated("work_fraction", 1.0, "1"))


def _put_demand(wanted: Wanted, making: Making) -> None:
    making.put(wanted.level)
    if wanted.growth is not None:
        making.put(wanted.growth)
        return
    making.put(Assumption(name="demand_growth_per_year", value=0.0, low=None, high=None, unit="1/year", source="none"))
    making.missing.append(Message("growth of the demand: nobody said it (--set demand_growth_per_year=20%)"))


def _put_lead(device: Accelerator, as_of: date, making: Making) -> None:
    """Weeks from order to first job of an own server: what sources of these years say, each as likely right."""
    kind = "parts" if device.id.startswith(CARDS_IN_SHOPS) else "server"
    known = [lead for lead in lead_times() if lead.kind == kind]
    found = [lead for lead in known if 0 <= (as_of - lead.observed).days <= LEAD_YEARS * DAYS_PER_YEAR] or known
    low, middle, high = pooled([(lead.low_weeks, lead.high_weeks) for lead in found])
    making.put(
        Assumption(
            name="lead_weeks",
            value=middle,
            low=low,
            high=high,
            unit="weeks",
            source=", ".join(dict.fromkeys(lead.source for lead in found)),
            observed=max(lead.observed for lead in found),
            note=f"from order to first job of a {'workstation' if kind == 'parts' else kind}, each source as likely "
            "right; less for what is integrated before it ships: say yours",
        )
    )


CARDS_IN_SHOPS = ("rtx-", "gtx-", "titan-", "quadro-")
"""Accelerators that are sold over the counter: their machines are built of parts."""
LEAD_YEARS = 2
"""An older lead time tells of another market; where there is none of these years, all count."""


def _put_price_change(months: int, making: Making) -> None:
    """Where the cloud's price stands on average over the horizon."""
    low, middle, high = _jumps().to_come(months)
    making.put(
        Assumption(
            name=PRICE_TO_COME,
            value=middle,
            low=low,
            high=high,
            unit="of today's price",
            source=package.assumptions()["price_jump_log_sd"].source,
            observed=package.assumptions()["price_jump_log_sd"].observed,
            note="mean over the horizon: jumps, see price_jumps_per_year",
        )
    )


def _jumps() -> Jumps:
    known = package.assumptions()
    return Jumps(
        per_year=known["price_jumps_per_year"],
        log_sd=known["price_jump_log_sd"],
        down_fraction=known["price_jump_down_fraction"],
    )


def _put_said(request: OwnFilters, making: Making) -> None:
    """What the person says in place of an assumption: taken as it is, or with his range."""
    if request.interest_fraction is not None:
        making.put(stated("discount_fraction", request.interest_fraction, "1/year"))
    names = {*making.figures, *LEFT_OUT, "server_usd"}
    for said in request.set:
        if said.name not in names:
            raise unknown(Message("figure"), said.name, sorted(names))
        unit = making.figures[said.name].unit if said.name in making.figures else LEFT_OUT.get(said.name, ("USD",))[0]
        one = Assumption(name=said.name, value=said.value, low=said.low, high=said.high, unit=unit, source="stated")
        try:
            refuse_impossible(one)
        except InvalidInput as error:
            raise at("--set", error) from None
        making.put(one)


def _say_left_out(making: Making) -> None:
    for name, (unit, what) in LEFT_OUT.items():
        if name not in making.figures:
            making.put(Assumption(name=name, value=0.0, low=None, high=None, unit=unit, source="none"))
            making.missing.append(what)


MANY_GPUS = 1_000
"""A judgement: lists price single machines, and no list says whether so many are there."""


def _say_many(wanted: Wanted, making: Making) -> None:
    gpus = wanted.level.value / HOURS_PER_MONTH
    if gpus >= MANY_GPUS and not making.nothing_rented:
        text = "whether a cloud has {gpus:,.0f} GPUs, and at these list prices, nobody says: ask for a quote"
        making.notes.append(Message(text, gpus=gpus))


# ---- the case ----


def _case(
    request: OwnFilters, quotes: Sequence[Quote], chosen: Bought | Message, wanted: Wanted, making: Making
) -> Case:
    best, most = market.cheapest(quotes), dict[str, int | None]()
    if request.room_power_kw is not None and "max_kw" in making.figures:
        most["office"] = int(request.room_power_kw // making.figures["max_kw"].value)
        if most["office"] == 0:
            values = {"room": request.room_power_kw, "server": making.figures["max_kw"].value}
            text = Message("the room feeds {room:.3g} kW, and one server takes {server:.3g} kW", **values)
            making.close(("office",), text)
    return Case(
        figures=figures(making.figures.values()),
        months=request.horizon_months,
        accelerators=1 if isinstance(chosen, Message) else chosen.accelerators,
        block=best["dedicated"].block if "dedicated" in best else 1,
        jumps=_jumps(),
        open=frozenset(option for option in OPTIONS if option not in making.refused),
        shape=wanted.shape,
        refused=making.refused,
        most=most,
        weeks=wanted.weeks,
        wander_log_sd=making.figures[WANDER].value,
        at_home=making.nothing_rented,
    )


def _staged(request: OwnFilters, wanted: Wanted, case: Case) -> Staged:
    if request.stage is not None:
        return Staged(stage=request.stage, rule=Message("as stated"))  # type: ignore[arg-type]  # one of CHOICES
    level = wanted.level
    sd = 0.0 if not level.low or not level.high else float(np.log(level.high / level.low) / (2 * Z80))
    growth = wanted.growth.value if wanted.growth else 0.0
    shape = case.shape or assumed(case.figures["demand_variation"].value)
    return staged(level.value / HOURS_PER_MONTH, sd, growth, shape)


def break_evens(found: Assembled, site: str, *, alone: bool) -> tuple[BreakEven, ...]:
    """Against the person's own price, and the cheapest of each provider and way, at the middle figures.

    alone: one server, which needs no network of a cluster.
    """
    middle = found.case.figures.middle()
    server = asset(found.case, middle, site, alone=alone)
    year, hour = (float(np.squeeze(usd)) for usd in useful_year_usd(server, middle["discount_fraction"]))

    def against(way: str, offer: Offer | None, billed: float) -> BreakEven:
        by_use = way in market.PAID_BY_USE
        useful = float(np.squeeze(useful_usd(middle, billed, spot=way == "spot")))
        between = market.owning_pays(year, hour, useful if by_use else billed, by_use=by_use) or (None, None)
        return BreakEven(
            way=way, offer=offer, usd_per_gpu_hour=billed, useful_usd_per_gpu_hour=useful if by_use else None,
            from_fraction=between[0], upto_fraction=between[1],
        )  # fmt: skip

    listed = [against(one.way, one.offer, one.usd_per_gpu_hour) for one in market.by_provider(found.quotes)]
    cloud = found.case.figures["cloud_usd_per_gpu_hour"]
    own = [against("on-demand", None, cloud.value)] if found.cloud is None and cloud.value > 0 else []
    return (*own, *listed)
