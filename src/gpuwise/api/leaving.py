"""The verb about leaving: from months of bills to dates, the premium so far, how many to own, and the checklist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwise.api.assembly import LEFT_OUT, Assembled, assemble
from gpuwise.api.billed import Used, used
from gpuwise.api.committed import Committed, committed, promised
from gpuwise.api.moving import Moved, moved
from gpuwise.api.owning import with_scenario
from gpuwise.api.world import rate_notes, rate_on, shown_in
from gpuwise.errors import InvalidInput, Message, MissingEvidence, UnknownName
from gpuwise.estimate import Z80
from gpuwise.model import Fx
from gpuwise.own.checklist import Checklist, Item, Use, checklist
from gpuwise.own.demand import assumed, staged
from gpuwise.own.figures import figures, stated
from gpuwise.own.leaving import Exit, Leaving, Promise, leave, paid_back_months
from gpuwise.own.usage import Bill
from gpuwise.request import ExitRequest
from gpuwise.sources import watch
from gpuwise.sources.instances import instances
from gpuwise.store import package
from gpuwise.store.leaving import services
from gpuwise.units import HOURS_PER_MONTH, WEEKS_PER_MONTH, Usd

Floats = NDArray[np.float64]
IDLE = "idle_billed_fraction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The answer to `exit --services`: the checklist alone."""

    request: ExitRequest
    as_of: date
    checklist: Checklist
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Left:
    """The answer to `exit`. used: what the bill says; exit: when to leave, in months from `used.first`; site: where own
    servers would stand; promises: what must be paid on, and committed: all commitments of the bill; moved: the data,
    None where nobody says how much; unknown: what is not contained.

    moving_usd: what moving costs once, as far as it is known. moving_reason: why that is not all of it, None: it is.
    """

    request: ExitRequest
    as_of: date
    fx: Fx | None
    bill: Bill
    used: Used
    assembled: Assembled
    exit: Exit
    site: str
    promises: tuple[Promise, ...]
    committed: tuple[Committed, ...]
    moved: Moved | None
    moving_usd: Usd
    moving_reason: Message | None
    checklist: Checklist
    unknown: tuple[Message, ...]
    warnings: tuple[Message, ...] = ()

    @property
    def now(self) -> int:
        """The month of the answer, counted as the engine does; 0 where the bill ends later."""
        first = self.used.first
        return max(12 * (self.as_of.year - first.year) + self.as_of.month - first.month, 0)

    @property
    def advice(self) -> str:
        """leave (the date has come), later, never (not within the horizon, or to own nothing costs least), or cloud.

        cloud: the demand is not known well enough to own for it.
        """
        if self.assembled.staged.stage == "exploring":
            return "cloud"
        if self.exit.month is None or not self.exit.servers:
            return "never"
        return "leave" if self.exit.month <= self.now else "later"

    @property
    def fired(self) -> bool:
        """The date has come, and the data can go: nobody acts on a date that the data cannot keep."""
        return self.advice == "leave" and (self.moved is None or self.moved.stuck is None)

    @property
    def lead_months(self) -> float:
        return self.assembled.case.figures["lead_weeks"].value / WEEKS_PER_MONTH

    @property
    def coming_usd(self) -> Floats:
        """The premium of each coming month, in the middle case."""
        return np.diff(np.concatenate(([0.0], self.exit.meter_usd)))[self.exit.past :]

    @property
    def payback_months(self) -> float | None:
        """From an order now until what leaving costs has come back; None: not within the horizon."""
        return paid_back_months(self.coming_usd, self.exit.barrier_usd, self.lead_months)

    def month(self, number: int | None) -> str | None:
        """2027-03, of a month counted from the end of the bill; None: never within the horizon."""
        if number is None:
            return None
        months = 12 * self.used.first.year + self.used.first.month - 1 + number
        return f"{months // 12:04d}-{months % 12 + 1:02d}"


def exit_(request: ExitRequest, *, today: date) -> Listed | Left:
    """When to leave the cloud? InvalidInput for what must be said first, MissingEvidence where no server can stand."""
    asked = with_scenario(request, today)
    as_of = asked.as_of or today
    _refuse_nothing(asked)
    if asked.services:
        return _listed(asked, as_of)
    found = _left(asked, as_of)
    if asked.watch:
        watch.append(Path(asked.watch), _line(found))
    return found


def _line(r: Left) -> watch.Line:
    """What the log keeps of an answer: figures in full."""
    e = r.exit
    months = {"robust_month": e.robust.month, "probable_month": e.probable.month, "p10_month": e.p10_month,
              "p50_month": e.p50_month, "p90_month": e.p90_month}  # fmt: skip
    return {
        "month": f"{r.as_of:%Y-%m}",
        "as_of": r.as_of.isoformat(),
        "gpu": r.used.accelerator.id,
        "premium_usd": repr(e.premium_usd),
        "barrier_usd": repr(e.barrier_usd),
        **{name: r.month(number) or watch.NEVER for name, number in months.items()},
        "servers": str(e.servers),
        "utilisation_fraction": repr(e.utilisation_fraction),
        "break_even_fraction": "" if e.break_even_fraction is None else repr(float(e.break_even_fraction)),
        "p_pays": repr(e.p_pays),
        "fired": "yes" if r.fired else "no",
    }


def _refuse_nothing(request: ExitRequest) -> None:
    if request.services and (request.files or request.watch):
        raise InvalidInput(
            Message("--services is for those who have no bill: a bill names its services itself."),
            Message("Give the bill or --services, and --watch with a bill only."),
        )
    if not request.services and not request.files:
        raise InvalidInput(
            Message("No bill is named."),
            Message("Give cost exports: gpuwise exit usage.csv; or the services alone: --services S3,SageMaker,EC2"),
        )
    if request.no_capex:
        raise InvalidInput(
            Message("--no-capex: without money for purchases there is nowhere to go from the cloud."),
            Message("Leave it out; or ask what is cheapest to rent: gpuwise own --no-capex"),
        )


# ---- the checklist ----


def _listed(request: ExitRequest, as_of: date) -> Listed:
    provider = request.provider[0] if request.provider else None
    found = checklist([Use(provider=provider, name=name) for name in request.services], services(), as_of)
    if not any(item.service for item in found.items):
        raise _nobody_has(found.items[0])
    once: dict[object, Use] = {}
    for item in found.items:
        once.setdefault(item.service or item.use.name.casefold(), item.use)  # EC2 and Amazon EC2 are one
    found = checklist(once.values(), services(), as_of)
    text = '--services: "{name}" is {missing}'
    unknown = (Message(text, name=item.use.name, missing=item.missing) for item in found.items if item.missing)
    return Listed(request=request, as_of=as_of, checklist=found, warnings=tuple(unknown))


def _nobody_has(item: Item) -> UnknownName:
    spelled = Message("Write it as the bill does, such as Amazon SageMaker.")
    hint = Message("Did you mean {names}?", names=", ".join(item.nearest)) if item.nearest else spelled
    return UnknownName(
        Message('--services: there is no "{name}" in the table.', name=item.use.name), hint, item.nearest
    )


def _uses(bill: Bill) -> list[Use]:
    return [Use(provider=one.provider, name=one.service or "-", usd=one.effective) for one in bill.services]


# ---- the bill ----


LATE_MONTHS = 2
"""So many months after its last one a bill is old news."""
GONE_MONTHS = 12
"""So many months after it, it says nothing about today: its date to order would lie in the past, at today's prices."""


def _old(first: date, as_of: date) -> tuple[Message, ...]:
    """first: the month after the bill's last one."""
    months = 12 * (as_of.year - first.year) + as_of.month - first.month
    if months < 0:
        text = "the bill goes on after {day}, for which this is answered: prices of servers are those of that day"
        return (Message(text, day=as_of),)
    if months >= GONE_MONTHS:
        raise _gone(first, as_of, months)
    if months < LATE_MONTHS:
        return ()
    text = "the bill ends {n} months before {day}: use and prices may be others by now, and dates count from {month}"
    return (Message(text, n=months, day=as_of, month=f"{first:%Y-%m}"),)


def _gone(first: date, as_of: date, months: int) -> InvalidInput:
    last = first - timedelta(days=1)
    text = "The last month of the bill is {month}, {n} months before {day}: its use and prices are of long ago."
    return InvalidInput(
        Message(text, month=f"{last:%Y-%m}", n=months, day=as_of),
        Message("Give newer months; or ask as of then: --as-of {day}", day=first),
    )


def _left(request: ExitRequest, as_of: date) -> Left:
    bill = _read(request, as_of)
    found = used(request, bill, as_of)
    late = _old(found.first, as_of)
    assembled = assemble(
        replace(request, gpu=(found.accelerator.id,)), found.accelerator, found.wanted, as_of, found.paid
    )
    site = _site(request, assembled)
    assembled = _of_a_bill(request, assembled, found, site)
    where = _biggest(bill)
    move = moved(request, *where, as_of, assembled.case.figures["lead_weeks"].value)
    once = (request.moving_usd or 0.0) + (0.0 if move is None else move.usd or 0.0)
    promises, notes = promised(request, bill, found.first)
    fx = shown_in(request, as_of)
    return Left(
        request=request,
        as_of=as_of,
        fx=fx,
        bill=bill,
        used=found,
        assembled=assembled,
        exit=leave(
            Leaving(
                case=assembled.case, history=found.history, site=site, moving_usd=once, promises=promises,
                trust=request.trust_fraction,
            ),
            seed=request.seed,
        ),
        site=site,
        promises=promises,
        committed=committed(bill, found.first),
        moved=move,
        moving_usd=once,
        moving_reason=_moving_reason(request, move),
        checklist=checklist(_uses(bill), services(), as_of),
        unknown=tuple(_unknown(request, assembled, site, move)),
        warnings=(*late, *_refused(bill), *bill.notes, *found.said, *notes, *_idle(request),
                  *assembled.notes, *rate_notes(fx, as_of)),
    )  # fmt: skip


def _read(request: ExitRequest, as_of: date) -> Bill:
    from gpuwise.sources.focus import Wish, read_bill  # DuckDB is an extra

    known = instances(package.offers(), package.accelerators().values())
    return read_bill([Path(name) for name in request.files], Wish(instances=known, rates=_rates(request, as_of)))


def _rates(request: ExitRequest, as_of: date) -> Mapping[str, float]:
    """USD for one of each currency that has a dated rate, and of the person's own."""
    rates = {code: rate_on(found, as_of).usd_per_unit for code, found in package.rates().items()}
    return rates if request.usd_per_unit is None else rates | {request.currency: request.usd_per_unit}


def _biggest(bill: Bill) -> tuple[str, str | None]:
    """Provider and region with most GPU-hours: where the data is taken to lie."""
    most = max(bill.regions, key=lambda one: one.gpu_h)
    return most.provider, most.region or None


def _refused(bill: Bill) -> list[Message]:
    return list(bill.rejects[:3])


def _idle(request: ExitRequest) -> list[Message]:
    if any(said.name == IDLE for said in request.set):
        return [Message("--set idle_billed_fraction changes nothing here: billed hours are the demand")]
    return []


# ---- the case ----


def _site(request: ExitRequest, assembled: Assembled) -> str:
    """Colocation, or the office where its power or the premises are spoken of. MissingEvidence where none can be."""
    home = request.room_power_kw is not None or request.data_must_stay == "on-premises"
    site = "office" if home else "colocation"
    if (why := assembled.case.refused.get(site)) is not None:
        raise MissingEvidence(
            Message("When to leave cannot be said: own servers are out of the question ({why}).", why=why),
            Message("Change that; for the services alone: gpuwise exit --services LIST"),
        )
    return site


def _of_a_bill(request: ExitRequest, assembled: Assembled, found: Used, site: str) -> Assembled:
    """Billed hours are the demand, so that none of them is idle; the cloud takes what own servers do not."""
    idle = replace(stated(IDLE, 0.0, "1", note="billed hours are the demand"), source="bill")
    held = figures([*assembled.case.figures.by_name.values(), idle])
    case = replace(assembled.case, figures=held, open=frozenset(("on-demand", site)), refused={}, at_home=False)
    stage = assembled.staged
    seen = found.seen.growth_fraction_per_year
    if request.stage is None and seen is not None:
        shape = case.shape or assumed(held["demand_variation"].value)
        stage = staged(found.seen.gpu_h_per_month / HOURS_PER_MONTH, _level_sd(found), seen, shape)
    return replace(assembled, case=case, staged=stage)


def _level_sd(found: Used) -> float:
    return log(found.seen.high_gpu_h_per_month / found.seen.low_gpu_h_per_month) / (2 * Z80)


def _moving_reason(request: ExitRequest, move: Moved | None) -> Message | None:
    """Why what moving costs is not known; None where what was said of it has a price."""
    if move is not None:
        return move.usd_reason
    said = request.moving_usd is not None
    return None if said else Message("nobody says what moving costs (--moving-cost), or what data moves (--data-size)")


def _unknown(request: ExitRequest, assembled: Assembled, site: str, move: Moved | None) -> list[Message]:
    room = LEFT_OUT["office_usd_per_month"][1]
    found = [each for each in assembled.missing if each != room or site == "office"]
    if request.moving_usd is None:
        found.append(Message("the work of moving, and both sides running meanwhile (--moving-cost)"))
    if move is None:
        found.append(Message("the data that has to move (--data-size)"))
    elif move.usd is None:
        text = "the price of taking the data out of {provider} ({why})"
        found.append(Message(text, provider=move.provider, why=move.usd_reason))
    return found
