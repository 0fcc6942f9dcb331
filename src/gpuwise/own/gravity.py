"""Data that has to go along: what it costs to take out of a cloud, how long it takes, and on which condition.

    T₀ = bytes · 8 / (bandwidth · efficiency)        efficiency 0.75 to 0.8 on a line that carries other things too
    δₖ = change rate · Tₖ₋₁                          what has changed meanwhile is copied again, in rounds
    rounds until the last one fits the cut-over window, in which nothing is written

With ρ = change rate / (bandwidth · efficiency) each round takes ρ times the one before, all of them T₀·(1 + ρ + …);
from ρ = 1 on it never ends. A copy of several months is billed month by month, each through the tiers from the bottom.
A private line bills its GB and each begun month; a cold tier bills what is deleted before its least time.

Source: repeated copies as in C. Clark et al., Live migration of virtual machines, NSDI 2005; tariffs, waivers, lines
and cold tiers: their own records. Test values: 5 PB at 0.09 USD/GB are 450,000 USD, over a line at 0.025 and 1,700 a
month 128,400; at 10 Gbit/s it takes 46 days (UC-100). 100 TB at 10 Gbit/s: 22.2 h; of 10 % change meanwhile one round
of 2.2 h remains, and 0.2 h of cut-over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, log
from typing import Literal

from gpuwise.asset import ColdTier, Link, Waiver
from gpuwise.cost.tariffs import Tariff, stored_usd, transfer_s
from gpuwise.errors import InvalidInput, Message
from gpuwise.units import HOURS_PER_DAY, HOURS_PER_MONTH, SECONDS_PER_DAY, Fraction, Gigabytes, Hours, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What the data leaves through: the whole line, and the share of it that a copy gets."""

    gbit_per_s: float
    efficiency_fraction: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Cold:
    """Data in a cold tier. stored_days: how long it will have lain there when it moves."""

    tier: ColdTier
    gb: Gigabytes
    stored_days: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What must go. cut_over_h: for so long writing may stop; change_gb_per_day: written while it is copied."""

    gb: Gigabytes
    cut_over_h: Hours
    change_gb_per_day: float = 0.0
    cold: tuple[Cold, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """How long it takes. rounds: after the first copy, before the cut-over of cut_over_h; days: all of it. None with a
    reason where data changes faster than the line carries it."""

    rounds: int | None
    days: float | None
    cut_over_h: Hours | None
    reason: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way out. usd: None with its reason. condition: what must be kept to, "" for nothing; from_day: the first day
    on which it can be had, None: now. copy: over the line of this way."""

    kind: Literal["internet", "waiver", "link"]
    name: str
    usd: Usd | None
    copy: Copy
    condition: str = ""
    from_day: date | None = None
    source: str = ""
    reason: Message | None = None

    @property
    def days(self) -> float | None:
        return self.copy.days


@dataclass(frozen=True, slots=True, kw_only=True)
class DataMove:
    """All ways, and what cold tiers bill on any of them: early_usd for what has not lain long enough, retrieval_usd for
    reading it back; None with the reason where a tier's price is not known."""

    gb: Gigabytes
    ways: tuple[Way, ...]
    early_usd: Usd | None
    retrieval_usd: Usd | None
    reason: Message | None = None


def data_move(
    data: Data,
    line: Line,
    *,
    on: date,
    tariff: Tariff | None,
    links: Sequence[Link] = (),
    waivers: Sequence[Waiver] = (),
) -> DataMove:
    """The ways out that there are on a day or will be: at the tariff, by waivers (of one's provider and of the law),
    over private links."""
    own = copied(data, line)
    early = _known(early_deletion_usd(cold) for cold in data.cold)
    read = _known(retrieval_usd(cold) for cold in data.cold)
    missing = Message("the price of a cold tier is not known") if early is None or read is None else None
    return DataMove(
        gb=data.gb,
        ways=(
            _internet(data, own, tariff),
            *(_waived(data, own, waiver, on) for waiver in open_waivers(waivers, on)),
            *(_linked(data, line, link) for link in links),
        ),
        early_usd=early,
        retrieval_usd=read,
        reason=missing,
    )


def _known(amounts: Iterable[Usd | None]) -> Usd | None:
    found = list(amounts)
    return None if None in found else float(sum(amount for amount in found if amount is not None))


# ---- time ----


def transfer_days(gb: Gigabytes, line: Line) -> float:
    """Days of one copy. Test value: 500 TB over 1 Gbit/s at 80 %: 57.9."""
    return transfer_s(gb, line.gbit_per_s / 8, line.efficiency_fraction) / SECONDS_PER_DAY


def copied(data: Data, line: Line) -> Copy:
    """The copy with all its rounds."""
    if not (data.gb >= 0 and data.change_gb_per_day >= 0 and data.cut_over_h > 0):
        raise InvalidInput(
            Message("Data, its change and the cut-over window cannot be below 0, and the window not 0."),
            Message("Give GB, GB a day, and for how long writing may stop, such as 8 h."),
        )
    first = transfer_days(data.gb, line)
    ratio = data.change_gb_per_day * transfer_days(1.0, line)
    rest_h = 24 * first * ratio
    if rest_h <= data.cut_over_h:
        return Copy(rounds=0, days=first * (1 + ratio), cut_over_h=rest_h)
    if ratio >= 1:
        return Copy(rounds=None, days=None, cut_over_h=None, reason=Message(
            "{change:,.0f} GB change a day, and the line carries {carried:,.0f}: the copy never catches up",
            change=data.change_gb_per_day, carried=1 / transfer_days(1.0, line),
        ))  # fmt: skip
    rounds = ceil(log(data.cut_over_h / rest_h) / log(ratio))
    days = first * (1 - ratio ** (rounds + 2)) / (1 - ratio)
    return Copy(rounds=rounds, days=days, cut_over_h=rest_h * ratio**rounds)


def months_begun(days: float) -> int:
    """Months of 730 h that are begun, one at least: what a line or a tariff is billed by."""
    return max(1, ceil(24 * days / HOURS_PER_MONTH))


# ---- money ----


def egress_usd(tariff: Tariff, gb: Gigabytes, *, months: int = 1, before_gb: Gigabytes = 0.0) -> Usd:
    """What GB cost that leave in equal parts over months, after other traffic of each month has filled tiers."""
    return months * (tariff.usd(before_gb + gb / months) - tariff.usd(before_gb))


def link_usd(link: Link, gb: Gigabytes, months: int) -> Usd | None:
    """The GB and the months of a private line; None where its month has no known price."""
    return None if link.usd_per_month is None else gb * link.usd_per_gb + months * link.usd_per_month


def early_deletion_usd(cold: Cold) -> Usd | None:
    """For the days that are missing to the tier's least, as if the data stayed. None where the price is not known.

    Test value: 1,000 GB at 0.004 USD a GB and month, 90 days at least, after 30: 7.89 USD.
    """
    if cold.tier.usd_per_gb_month is None:
        return None
    missing_h = 24 * max(cold.tier.least_days - cold.stored_days, 0.0)
    return stored_usd(cold.gb, cold.tier.usd_per_gb_month, missing_h)


def retrieval_usd(cold: Cold) -> Usd | None:
    """For reading it back. None where the price is not known."""
    price = cold.tier.retrieval_usd_per_gb
    return None if price is None else cold.gb * price


# ---- ways ----


def open_waivers(waivers: Iterable[Waiver], on: date) -> tuple[Waiver, ...]:
    """Those that hold on the day or will hold later."""
    return tuple(waiver for waiver in waivers if waiver.valid_until is None or waiver.valid_until >= on)


def _moved_gb(data: Data, copy: Copy) -> Gigabytes:
    """All that goes over the line, what has changed meanwhile contained."""
    return data.gb + data.change_gb_per_day * ((copy.days or 0.0) - (copy.cut_over_h or 0.0) / HOURS_PER_DAY)


def _internet(data: Data, copy: Copy, tariff: Tariff | None) -> Way:
    if tariff is None:
        text = Message("the provider's price for data that leaves is not known")
        return Way(kind="internet", name="", usd=None, copy=copy, reason=text)
    if copy.days is None:
        return Way(kind="internet", name=tariff.provider, usd=None, copy=copy, source=tariff.source, reason=copy.reason)
    usd = egress_usd(tariff, _moved_gb(data, copy), months=months_begun(copy.days))
    return Way(kind="internet", name=tariff.provider, usd=usd, copy=copy, source=tariff.source)


def _waived(data: Data, copy: Copy, waiver: Waiver, on: date) -> Way:
    reason = copy.reason
    if waiver.usd_per_gb is None:
        reason = Message("at the provider's own cost, which nobody states")
    known = reason is None and waiver.usd_per_gb is not None
    return Way(
        kind="waiver",
        name=waiver.where,
        usd=_moved_gb(data, copy) * (waiver.usd_per_gb or 0.0) if known else None,
        copy=copy,
        condition=waiver.condition,
        from_day=waiver.valid_from if waiver.valid_from > on else None,
        source=waiver.source,
        reason=reason,
    )


def _linked(data: Data, line: Line, link: Link) -> Way:
    """Over the private line; as wide as one's own where nobody says how wide it is."""
    wide = link.gbit_per_s if link.gbit_per_s is not None else line.gbit_per_s
    copy = copied(data, Line(gbit_per_s=wide, efficiency_fraction=line.efficiency_fraction))
    usd = None
    if copy.days is not None:
        usd = link_usd(link, _moved_gb(data, copy), months_begun(copy.days))
    unpriced = Message("the price of a month of this line is not known") if usd is None else None
    return Way(kind="link", name=link.name, usd=usd, copy=copy, source=link.source, reason=copy.reason or unpriced)
