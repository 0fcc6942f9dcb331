"""What of holding a machine makes an offer unfit, and what a reader must not miss about those that are left."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np

from gpuwise.errors import Message
from gpuwise.rank.conditions import BY_USE
from gpuwise.rank.pricing import Priced
from gpuwise.rank.rules import Rule
from gpuwise.request import RankRequest
from gpuwise.units import SECONDS_PER_HOUR

ENDLESS = 4.0
"""A job that losses make so many times as long is not offered: three quarters of what is paid is paid for nothing."""
MUCH_LONGER = 1.5
"""Losses that make a job so much longer are named in its row."""
WITHOUT_PRICE = {
    "disk": Message("disk"),
    "public address": Message("public address"),
    "preparation without GPU": Message("preparation without GPU"),
    "data from its provider": Message("data from its provider"),
    "egress": Message("egress"),
}
"""What may fall due beside a machine without a known price; the keys are kinds of `rank.beside`."""


def held_rules(priced: Priced) -> list[Rule]:
    """Sessions too short to begin, hosts that end too early, and jobs that losses make practically endless."""
    timing, offers, limit = priced.times.timing, priced.offers, priced.conditions.session_s
    longer = stretched(priced)
    there_h = (timing.time_s - timing.cpu_s) / SECONDS_PER_HOUR

    def no_session(row: int) -> Message:
        hours = float(limit[row] / SECONDS_PER_HOUR)
        if timing.before.never:
            return Message("a session ends after {hours:.3g} h, and no checkpoint is there to go on from", hours=hours)
        return Message("a session ends after {hours:.3g} h, before preparing is done", hours=hours)

    def too_early(row: int) -> Message:
        return Message(
            "its host ends it after {longest:.3g} h, and the job needs it for {held:.3g} h: it would have to be moved "
            "with its checkpoints",
            longest=float(offers.longest_h[row]),
            held=float(there_h[row]),
        )

    def endless(row: int) -> Message:
        text = "lost every {hours:.3g} h on average, the job would take {factor:,.0f} times as long: {advice}"
        rate = float(timing.work.losses[row] / timing.work.busy_s[row])
        never = Message("it never writes a checkpoint")
        seldom = Message("its checkpoints are too far apart")
        advice = never if np.isinf(timing.work.every_s[row]) else seldom
        return Message(text, hours=1 / (rate * SECONDS_PER_HOUR), factor=float(longer[row]), advice=advice)

    return [
        Rule(name="session_too_short", fails=np.isnan(timing.use.starts), reason=no_session),
        Rule(name="host_ends", fails=there_h > offers.longest_h, reason=too_early),
        Rule(name="endless", fails=longer > ENDLESS, reason=endless),
    ]


def stretched(priced: Priced) -> np.typing.NDArray[np.float64]:
    """How many times as long losses make the work of each offer; 1 where nothing is lost."""
    work = priced.times.timing.work
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(work.losses > 0, work.busy_s / work.work_s, 1.0)


def held_marks(priced: Priced, row: int, request: RankRequest) -> Iterator[Message]:
    """Remarks on how the machine is held and what its bill leaves out, in a fixed order."""
    timing, conditions, market = priced.times.timing, priced.conditions, priced.offers.market[row]
    starts = float(np.asarray(timing.use.starts)[row])
    if starts > 1:
        hours = float(conditions.session_s[row] / SECONDS_PER_HOUR)
        yield Message("{n:.0f} sessions of at most {hours:.3g} h", n=starts, hours=hours)
    work = timing.work
    factor = float(work.busy_s[row] / work.work_s[row]) if work.losses[row] else 1.0
    if factor > MUCH_LONGER:
        yield Message("losses make it {factor:.1f} times as long", factor=factor)
    if conditions.shared[row]:
        yield Message("others share its host: its CPUs may give less")
    if priced.offers.billing_clock[row] == "calendar" and priced.terms.calendar[row]:
        yield Message("billed by the hours of the clock that it touches")
    yield from _of_stopping(priced, row, request)
    if request.prepare_on == "cpu" and not timing.elsewhere[row] and market not in ("owned", "free"):
        moves = Message("prepared on itself: no price of a machine without GPU is known in its region")
        fixed = Message("prepared on itself: moving a disk to it is not known to be possible")
        yield moves if conditions.disk_moves[row] else fixed
    unknown = [WITHOUT_PRICE[kind] for kind in priced.beside.unknown(row)]
    if unknown:
        what = reduce(lambda one, other: Message("{one}, {other}", one=one, other=other), unknown)
        yield Message("price not known and not contained: {what}", what=what)


def _of_stopping(priced: Priced, row: int, request: RankRequest) -> Iterator[Message]:
    conditions, offers = priced.conditions, priced.offers
    if not request.stopped_s or offers.market[row] not in BY_USE:
        return
    if offers.market[row] == "spot":
        yield Message("a spot machine can seldom be stopped and had again")
    if conditions.resume_in_doubt[row]:
        yield Message("stopped, it may come back without its GPU: copy the data out")
    elif conditions.included_gb[row] > 0 and not conditions.stopped_everything[row]:
        yield Message("its local disk is emptied when it stops: copy the data out")
    if conditions.stopped_in_full[row] and not conditions.stopped_everything[row]:
        yield Message("what it costs while stopped is not known: taken in full")
