"""Moving the data: from what a person says of it, and where it lies, to the ways out and the cheapest that is open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from gpuwise.api.world import unknown
from gpuwise.asset import Waiver
from gpuwise.errors import InvalidInput, Message
from gpuwise.own.checklist import cloud
from gpuwise.own.gravity import Cold, Data, DataMove, Line, Way, data_move, open_waivers
from gpuwise.rank.rules import EU
from gpuwise.request import ExitRequest, OwnFilters
from gpuwise.store import package
from gpuwise.store.leaving import cold_tiers, links, waivers
from gpuwise.units import Usd

EFFICIENCY = 0.75
"""Share of a line that a copy gets: 0.75 to 0.8 on one that carries other things too (`own.gravity`)."""
CUT_OVER_H = 8.0
"""For so long writing may stop: a night. An assumption."""
LAW = "EU"
DAYS_PER_WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A way out, and why it does not count yet: None where it does."""

    way: Way
    why_not: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The data move. provider: whose tariff. ways: all of them; best: the cheapest that counts, None where the price of
    none is known. line: over which it goes. stated: the person named the line."""

    provider: str
    move: DataMove
    ways: tuple[Open, ...]
    best: Way | None
    line: Line
    stated: bool

    @property
    def cold_usd(self) -> Usd | None:
        """Early deletion and retrieval, whichever way the data takes; None where a price is not known."""
        parts = (self.move.early_usd, self.move.retrieval_usd)
        return None if None in parts else sum(part for part in parts if part is not None)

    @property
    def usd(self) -> Usd | None:
        """The way that is taken, and what cold classes bill."""
        if self.best is None or self.best.usd is None or self.cold_usd is None:
            return None
        return self.best.usd + self.cold_usd

    @property
    def stuck(self) -> Message | None:
        """Why the data never arrives on any way that counts; None where it arrives on one."""
        copies = [one.way.copy for one in self.ways if one.why_not is None]
        return None if any(copy.days is not None for copy in copies) else copies[0].reason

    @property
    def usd_reason(self) -> Message | None:
        """Why `usd` is not known; None where it is."""
        if self.usd is not None:
            return None
        return self.move.reason if self.best is not None else self.stuck or self.ways[0].way.reason


def moved(request: OwnFilters, provider: str, region: str | None, on: date, wait_weeks: float = 0.0) -> Moved | None:
    """The ways out of a provider; None where nobody says how much data there is.

    wait_weeks: until own servers can be there: what holds by then counts, and data in cold classes lies on until then.
    """
    if request.data_size_gb is None:
        _refuse_cold_alone(request)
        return None
    name = cloud(provider)
    cold = tuple(_cold(request, name, wait_weeks))
    line, stated = _line(request)
    lawful = [one for one in open_waivers(waivers(), on) if one.where == name or _by_law(request, one)]
    change = request.data_change_fraction_per_day or 0.0
    found = data_move(
        Data(
            gb=request.data_size_gb, cut_over_h=CUT_OVER_H, change_gb_per_day=change * request.data_size_gb, cold=cold
        ),
        line,
        on=on,
        tariff=package.tariffs().on(on).find(name, "egress", region),
        links=[one for one in links() if one.provider == name],
        waivers=lawful,
    )
    ways = tuple(_opened(request, found, lawful, on + timedelta(weeks=wait_weeks)))
    counted = [one.way for one in ways if one.why_not is None and one.way.usd is not None]
    best = min(counted, key=lambda way: way.usd or 0.0, default=None)
    return Moved(provider=name, move=found, ways=ways, best=best, line=line, stated=stated)


def _refuse_cold_alone(request: OwnFilters) -> None:
    if request.cold_data:
        raise InvalidInput(
            Message("--cold-data is a part of --data-size, which is missing."),
            Message("Add --data-size, such as 50TB."),
        )


def _cold(request: OwnFilters, provider: str, wait_weeks: float) -> Iterator[Cold]:
    """The storage classes of the provider that were named, for as long as data will have lain there when it moves.

    UnknownName for one that it does not have.
    """
    tiers = {tier.name.casefold(): tier for tier in cold_tiers() if tier.provider == provider}
    short = {name.removeprefix("s3 "): tier for name, tier in tiers.items()}
    whole = sum(one.gb for one in request.cold_data)
    if request.data_size_gb is not None and whole > request.data_size_gb:
        raise InvalidInput(
            Message(
                "--cold-data: {cold:g} GB are more than the {all:g} GB of --data-size.",
                cold=whole,
                all=request.data_size_gb,
            ),
            Message("The cold data is a part of it."),
        )
    for one in request.cold_data:
        tier = tiers.get(one.tier.casefold()) or short.get(one.tier.casefold())
        if tier is None:
            raise unknown(
                Message("storage class of {provider} with a known fee", provider=provider),
                one.tier,
                [t.name for t in tiers.values()],
            )
        yield Cold(tier=tier, gb=one.gb, stored_days=one.stored_days + DAYS_PER_WEEK * wait_weeks)


def _home(request: OwnFilters) -> str | None:
    return request.country or (request.data_must_stay if request.data_must_stay != "on-premises" else None)


def _by_law(request: OwnFilters, waiver: Waiver) -> bool:
    """Of the law where the person may be its customer; of what is free, also where nobody says the country."""
    home = _home(request)
    return waiver.where == LAW and (home in EU or (home is None and waiver.usd_per_gb is not None))


def _line(request: OwnFilters) -> tuple[Line, bool]:
    said = request.link_gb_per_s
    rate = package.assumptions()["internet_gb_per_s"].value if said is None else said
    return Line(gbit_per_s=8 * rate, efficiency_fraction=EFFICIENCY), said is not None


def _opened(request: OwnFilters, found: DataMove, lawful: Sequence[Waiver], by: date) -> list[Open]:
    """`data_move` lists the waivers in the order in which they were handed in."""
    held = iter(lawful)
    return [
        Open(way=way, why_not=_why_not(request, next(held), way, by) if way.kind == "waiver" else None)
        for way in found.ways
    ]


def _why_not(request: OwnFilters, waiver: Waiver, way: Way, by: date) -> Message | None:
    if waiver.covers == "parallel":
        return Message("for use side by side")
    if way.from_day is not None and way.from_day > by:
        return Message("it holds too late")
    if waiver.where == LAW:
        return None if _home(request) in EU else Message("for customers in the EU: say --country")
    leaves = isinstance(request, ExitRequest) and request.closes_account
    return None if leaves else Message("only if all of it leaves: say --close-account")
