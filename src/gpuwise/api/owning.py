"""The verb about owning: what is wanted, what it costs to rent and to own, and how much of it to own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gpuwise.api.assembly import Assembled, assemble, break_evens
from gpuwise.api.carbon import Energy, energies
from gpuwise.api.moving import Moved, moved
from gpuwise.api.wanted import accelerator_of, wanted
from gpuwise.api.world import currency, rate_notes, shown_in
from gpuwise.errors import Message
from gpuwise.model import Fx
from gpuwise.own.case import SITES, Case, asset, tail
from gpuwise.own.decide import Decision, decide
from gpuwise.own.demand import Staged
from gpuwise.own.fleets import First, Fleet, Year, first, fleets, lives, years
from gpuwise.own.ledger import OfLife, Verdict, judged
from gpuwise.own.market import BreakEven
from gpuwise.own.plan import useful_year_usd
from gpuwise.own.sensitivity import Weights, weights
from gpuwise.own.teams import Prices, Sharing, sharing
from gpuwise.own.unit_costs import hours_per_million
from gpuwise.request import OwnFilters, OwnRequest, parse, refuse_passed
from gpuwise.units import Hours

R = TypeVar("R", bound=OwnFilters)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Owned:
    """The answer to `own`. assembled: what it was asked of; decision: all options over chance; weights: what decides.

    advice: own, rent, cloud (what is wanted is not known well enough to own for it), or open. site: where own servers
    would stand, None where none may. break_evens: there, against each provider's price; fleets: numbers of servers side
    by side; years: how many for the demand of each year. work_gpu_h: of a unit of work (run, million_units). move:
    of the data; energy: with carbon, owned and rented.
    """

    request: OwnRequest
    as_of: date
    fx: Fx | None
    assembled: Assembled
    staged: Staged
    decision: Decision
    weights: Weights | None
    site: str | None
    break_evens: tuple[BreakEven, ...]
    fleets: tuple[Fleet, ...]
    years: tuple[Year, ...]
    first: First | None
    lives: tuple[OfLife, ...]
    investment: Verdict | None
    move: Moved | None
    work_gpu_h: Mapping[str, Hours]
    teams: Sharing | Message | None = None
    energy: tuple[Energy, ...] = ()
    warnings: tuple[Message, ...] = ()

    @property
    def advice(self) -> str:
        if self.staged.stage == "exploring" and self.decision.rented is not None:
            return "cloud"
        return self.decision.verdict


def own(request: OwnRequest, *, today: date) -> Owned:
    """Own or rent, and how much? InvalidInput for what must be said first, MissingEvidence without any price."""
    asked = with_scenario(request, today)
    as_of = asked.as_of or today
    device = accelerator_of(asked)
    found = assemble(asked, device, wanted(asked, device), as_of)
    case = found.case
    decision = decide(case, seed=asked.seed)
    site = _site(case, decision)
    many = fleets(case, site, seed=asked.seed) if site else ()
    single = not any(fleet.best and fleet.servers > 1 for fleet in many)
    fx = shown_in(asked, as_of)
    return Owned(
        request=request,
        as_of=as_of,
        fx=fx,
        assembled=found,
        staged=found.staged,
        decision=decision,
        weights=weights(case, decision, seed=asked.seed),
        break_evens=break_evens(found, site, alone=single) if site else (),
        site=site,
        fleets=many,
        years=years(case, site, seed=asked.seed) if site else (),
        first=first(case, site) if site else None,
        lives=lives(case, site) if site else (),
        investment=_investment(case, decision),
        move=_moved(asked, found, as_of),
        work_gpu_h=_work_gpu_h(asked, found),
        teams=_teams(found, site) if found.wanted.teams else None,
        energy=energies(found, decision),
        warnings=(*found.notes, *rate_notes(fx, as_of)),
    )


def _moved(request: OwnRequest, found: Assembled, as_of: date) -> Moved | None:
    """Out of the provider that is asked about, or the one that stands for the cloud."""
    rented = found.cloud.offer.provider if found.cloud is not None else ""
    provider = request.provider[0] if len(request.provider) == 1 else rented
    return moved(request, provider, None, as_of, found.case.figures["lead_weeks"].value)


def _investment(case: Case, decision: Decision) -> Verdict | None:
    """Buying instead of renting as a purchase: what is saved by month, in the middle case. None without both."""
    rented, owned = (decision.outcomes.get(name or "") for name in (decision.rented, decision.owned))
    if rented is None or owned is None:
        return None
    return judged(rented.path_usd - owned.path_usd, case.figures["discount_fraction"].value)


def _work_gpu_h(request: OwnRequest, found: Assembled) -> Mapping[str, Hours]:
    """GPU-hours of a unit of work: of one training, and of a million of what a GPU does."""
    hours, done = found.wanted.gpu_h_per_run, request.throughput
    run = {} if hours is None else {"run": hours}
    return run if done is None else {**run, "million_units": hours_per_million(done.units_per_s)}


def _teams(found: Assembled, site: str | None) -> Sharing | Message:
    """At the middle figures and today's price of the cloud; of servers in a cluster."""
    case = found.case
    if site is None:
        return case.refused[SITES[-1]]
    if case.at_home:
        return Message("no cloud takes what a team's own GPUs do not")
    middle = case.figures.middle()
    year, hour = useful_year_usd(asset(case, middle, site), middle["discount_fraction"])
    cloud = np.asarray(tail(middle).useful_usd_per_gpu_hour)
    return sharing(
        found.wanted.teams,
        Prices(own_usd_per_year=year.item(), busy_usd_per_hour=hour.item(), cloud_usd_per_hour=cloud.item()),
    )


def _site(case: Case, decision: Decision) -> str | None:
    """Where the servers of the cheapest option that owns some would stand, else the first site that there is."""
    owned = decision.outcomes.get(decision.owned or "")
    places = [*(owned.count.servers if owned else ()), *(site for site in SITES if site in case.open)]
    return places[0] if places else None


def with_scenario(request: R, today: date | None = None) -> R:
    """The request with what its scenario file says where the person left it as it is. DataError for a bad file,
    InvalidInput for a day that has passed."""
    asked = _with_file(request)
    refuse_passed(asked, asked.as_of or today)
    return asked


def _with_file(request: R) -> R:
    path = getattr(request, "scenario", None)
    if path is None:
        return request
    from gpuwise.sources.document import read_toml

    file = read_toml(Path(path))
    said = {key.replace("_", "-"): value for key, value in file.data.items()}
    if "scenario" in said:
        raise file.error(("scenario",), Message("names another scenario"), Message("Leave it out."))
    said["set"] = _figures(said.get("set", []))
    if not said["set"]:
        del said["set"]
    places = {key.replace("_", "-"): f"{key} in {file.name}, line {file.line((key,)) or 1}" for key in file.data}
    written = parse(type(request), said | {"scenario": path}, usd_per=_usd_per, spelled=places)
    usual = {item.name: item.default for item in fields(request)}
    kept = {
        name: getattr(request, name) for name in usual if name in request.said or getattr(request, name) != usual[name]
    }
    return replace(written, **kept)


def _figures(given: Any) -> Any:
    """A table `[set]` of names and values reads as the option --set would: NAME=VALUE."""
    return [f"{name}={value}" for name, value in given.items()] if isinstance(given, Mapping) else given


def _usd_per(code: str) -> float:
    rate = currency(code)
    return 1.0 if rate is None else rate.usd_per_unit
