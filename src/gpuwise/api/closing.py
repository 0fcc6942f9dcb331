"""Which options a person's conditions leave: each one that is closed has its reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from gpuwise.api.making import HOME, Making, country_of
from gpuwise.api.renting import COMMITTED
from gpuwise.errors import Message, MissingEvidence
from gpuwise.own.case import OPTIONS, SITES
from gpuwise.rank.rules import EU
from gpuwise.request import OwnFilters
from gpuwise.store.leaving import lead_times
from gpuwise.units import DAYS_PER_WEEK

MARKETS = {
    **dict.fromkeys(COMMITTED, "reserved"),
    "spot": "spot",
    "dedicated": "dedicated",
    **dict.fromkeys(SITES, "owned"),
}
"""Option -> the market that `--market` knows it by; on demand is what all others are compared with."""


def close(request: OwnFilters, as_of: date, making: Making) -> None:
    """Options that the conditions rule out."""
    _close_where_the_data_may_not_be(request, making)
    if request.no_capex:
        making.close(SITES, Message("there is no money for purchases (--no-capex)"))
    if request.market:
        left_out = [option for option, name in MARKETS.items() if name not in request.market]
        making.close(left_out, Message("--market leaves it out"))
    if request.by is not None:
        _close_late(request.by, as_of, making)
    if all(site in making.refused for site in SITES):
        making.close(("mix",), Message("there is nothing to mix: no servers may be owned"))


def _close_where_the_data_may_not_be(request: OwnFilters, making: Making) -> None:
    place, country = request.data_must_stay, country_of(request)
    if place == HOME:
        making.nothing_rented = True
        why = Message("the data must stay on the premises")
        making.close([option for option in OPTIONS if option != "office"], why)
    elif place is not None and country != place and not (place == "EU" and country in EU):
        text = "own servers would stand in {country}, and the data must stay in {place}"
        making.close(SITES, Message(text, country=country, place=place))


def refuse_nothing_left(making: Making) -> None:
    """Conditions that together rule out every option."""
    if any(option not in making.refused for option in OPTIONS):
        return
    reasons = dict.fromkeys(making.refused[option] for option in ("office", "on-demand"))
    raise MissingEvidence(
        Message("No option is left: {why}.", why="; ".join(map(str, reasons))),
        Message("Take one of these conditions away."),
    )


# ---- in time ----


def _close_late(by: date, as_of: date, making: Making) -> None:
    """What comes after the day on which the first job must run, by its own lead time."""
    weeks = (by - as_of).days / DAYS_PER_WEEK
    lead = making.figures["lead_weeks"]
    _late(
        SITES,
        Message("own servers take"),
        (float(lead.low or lead.value), float(lead.high or lead.value)),
        weeks,
        making,
    )
    _late(("dedicated",), Message("machines by the month take"), _known("dedicated"), weeks, making)
    _late((), Message("quota and stock in a cloud may take"), _known("cloud"), weeks, making)


def _known(kind: str) -> tuple[float, float]:
    found = [lead for lead in lead_times() if lead.kind == kind]
    return min(lead.low_weeks for lead in found), max(lead.high_weeks for lead in found)


def _late(options: Sequence[str], what: Message, lead: tuple[float, float], weeks: float, making: Making) -> None:
    """Closed if it comes too late even if all goes well; a note where it may. options (): cannot be closed."""
    low, high = lead
    if weeks >= high or (options and all(option in making.refused for option in options)):
        return
    values = {"what": what, "low": f"{low:.0f}", "high": f"{high:.0f}", "weeks": f"{weeks:.1f}"}
    text = "{what} {low} to {high} weeks from order to first job, and there are {weeks}"
    if weeks < low and options:
        making.close(options, Message(text, **values))
    else:
        making.notes.append(Message("it may come late: " + text, **values))
