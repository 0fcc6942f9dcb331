"""The bill of one run, for n offers at once.

A session is one start of a machine and its end. Each is billed on its own (`Use`):

    billed_s = ceil(max(used_s, minimum_s) / step_s) · step_s

or, where a provider counts hours of the clock, the steps that the session touches. Of the hours of a month those above
the cap are free, hours that are paid for already cost nothing more, and

    bill = (charged hours · price + starts · fee + months · licence + what is beside the machine) · (1 + VAT)

A month's rent is a step and a minimum of one month; a reservation is a step and a minimum of its term: so a commitment
is owed in full.

Source: the providers' own rules as recorded in offers.csv and platforms.toml (per second after 60 s: AWS, Google; per
hour; per month). Test value: 61 min used at 2.00 USD/h is 4.00 USD by the hour, 2.0333 USD by the second, 1,460 USD by
the month.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.estimate import Z80
from gpuwise.model import CostLine
from gpuwise.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, Fraction, Seconds

Floats = NDArray[np.float64]
MONTH_S = HOURS_PER_MONTH * SECONDS_PER_HOUR
NOTICED_H = 2 / SECONDS_PER_HOUR
"""A rest of the billing step that is no longer than this has no line of its own."""
ROUNDING = 1e-9
"""Relative slack before a step is begun, so that 3,600.0000001 s is one hour."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Terms:
    """How n offers are billed; every array has shape (n,).

    price_usd_per_hour: of the whole offer, net of VAT, discounts applied. step_s, minimum_s: billing rule; calendar:
    the steps are those of the clock. start_s: time of day at which a session begins, NaN if unknown. committed: the
    step is a commitment (month or term), owed in full. share_usd_per_hour: price of an hour when the machine is busy
    for the hours a month asked about, NaN without that figure. licence_usd_per_month: on top, per month begun.
    fee_usd: at each start. cap_h: hours of a month that are charged at most. covered_usd_per_hour: of each hour's
    price, what a spend commitment pays. beside_usd_per_hour: what falls due beside the machine while it is held, and
    once_usd whatever the time. vat_fraction: on top of all. billable: False for owned machines, which send no bill for
    one job.
    """

    price_usd_per_hour: Floats
    step_s: Floats
    minimum_s: Floats
    calendar: NDArray[np.bool_]
    start_s: Floats
    committed: NDArray[np.bool_]
    share_usd_per_hour: Floats
    licence_usd_per_month: Floats
    prepaid_h: Floats
    fee_usd: Floats
    cap_h: Floats
    covered_usd_per_hour: Floats
    beside_usd_per_hour: Floats
    once_usd: Floats
    vat_fraction: Floats
    billable: NDArray[np.bool_]

    def row(self, row: int) -> Terms:
        """The terms of one offer, arrays of shape (1,)."""
        return Terms(**{f.name: getattr(self, f.name)[row : row + 1] for f in fields(self)})

    def beside(self, usd_per_hour: Floats, once_usd: Floats) -> Terms:
        """The same with what falls due beside the machine, net of VAT."""
        return replace(self, beside_usd_per_hour=usd_per_hour, once_usd=once_usd)


def terms(
    offers: Catalogue,
    *,
    price_usd_per_hour: Floats,
    prepaid_h: Floats,
    step_unknown_s: Seconds,
    hours_per_month: float | None,
    covered_usd_per_hour: Floats | None = None,
    cap_h: Floats | None = None,
    vat_fraction: Floats | None = None,
    start_s: Seconds | None = None,
) -> Terms:
    """The billing terms of every row. step_unknown_s: the step taken where the provider's rule is not known; cap_h: of
    a month, NaN for none; start_s: when each session begins, in seconds of the day."""
    none = np.zeros(len(offers))
    dedicated, reserved, owned = (offers.market.isin((m,)) for m in ("dedicated", "reserved", "owned"))
    term_s = offers.term_h * SECONDS_PER_HOUR
    span = np.where(reserved, term_s, np.where(dedicated, np.fmax(term_s, MONTH_S), np.nan))
    step = np.where(np.isnan(offers.billing_step_s), step_unknown_s, offers.billing_step_s)
    committed = dedicated | reserved
    licence = np.nan_to_num(offers.licence_usd_per_month) * np.nan_to_num(offers.nodes, nan=1.0)
    share = _share_usd_per_hour(offers, price_usd_per_hour, licence, hours_per_month)
    return Terms(
        price_usd_per_hour=price_usd_per_hour,
        step_s=np.where(committed, span, step),
        minimum_s=np.where(committed, span, np.nan_to_num(offers.billing_minimum_s)),
        calendar=offers.billing_clock.isin(("calendar",)) & ~committed,
        start_s=np.full(len(offers), np.nan if start_s is None else start_s),
        committed=committed,
        share_usd_per_hour=np.where(committed | owned, share, np.nan),
        licence_usd_per_month=licence,
        prepaid_h=prepaid_h,
        fee_usd=np.nan_to_num(offers.fee_usd),
        cap_h=none + np.inf if cap_h is None else np.where(committed | np.isnan(cap_h), np.inf, cap_h),
        covered_usd_per_hour=none if covered_usd_per_hour is None else np.where(committed, 0.0, covered_usd_per_hour),
        beside_usd_per_hour=none,
        once_usd=none,
        vat_fraction=none if vat_fraction is None else vat_fraction,
        billable=~owned,
    )


def _share_usd_per_hour(offers: Catalogue, price: Floats, licence: Floats, hours_per_month: float | None) -> Floats:
    """Price of a busy hour where a month has so many; NaN without that figure."""
    running = np.nan_to_num(offers.running_usd_per_hour)
    busy = np.nan if hours_per_month is None else HOURS_PER_MONTH / hours_per_month
    return np.asarray((price - running + licence / HOURS_PER_MONTH) * busy + running)


def in_steps(used_s: Floats, step_s: Floats | Seconds, minimum_s: Floats | Seconds) -> Floats:
    """Each session's seconds, brought up to the minimum and to whole steps, of which one at least is begun."""
    steps = np.ceil(np.maximum(used_s, minimum_s) / step_s * (1 - ROUNDING))
    return np.asarray(np.maximum(steps, 1) * step_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Use:
    """How n offers are used for one job; every figure of shape (n,), or one for all.

    used_s: seconds in all. copies: so many machines one after another, each with its part. starts: sessions of each.
    losses: interruptions that are expected in all; after each a machine starts once more.
    """

    used_s: Floats
    starts: Floats | float = 1.0
    losses: Floats | float = 0.0
    copies: Floats | float = 1.0

    def scaled(self, factor: Floats | float) -> Use:
        """The same for so many times as long; a session limit makes more sessions of it."""
        starts = np.where(np.asarray(self.starts) > 1, np.maximum(np.ceil(self.starts * factor * (1 - ROUNDING)), 1), 1)
        return replace(self, used_s=self.used_s * factor, starts=starts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Charged:
    """What a bill counts, of all copies together: hours on the bill, of them those above the monthly cap and those paid
    for already, the rest that costs something, months begun, and starts."""

    billed_h: Floats
    above_h: Floats
    prepaid_h: Floats
    charged_h: Floats
    months: Floats
    starts: Floats


def billed_s(terms: Terms, use: Use) -> Floats:
    """Seconds on the bill of each copy; shape (n,).

    A session that begins at an unknown minute touches used / step + 1 steps of the clock on average; of several only
    the first begins when the person says. Each loss begins a step anew, of which half is lost on average.
    """
    each = use.used_s / use.copies / use.starts
    billed = in_steps(each, terms.step_s, terms.minimum_s) * use.starts
    if (rows := terms.calendar).any():
        step, starts = terms.step_s[rows], np.broadcast_to(use.starts, each.shape)[rows]
        wanted, begun = np.maximum(each, terms.minimum_s)[rows], np.mod(terms.start_s[rows], step)
        mean = wanted / step + 1
        first = np.where(np.isnan(begun), mean, np.ceil((begun + wanted) / step * (1 - ROUNDING)))
        billed[rows] = (first + (starts - 1) * mean) * step
    return np.asarray(billed + np.where(terms.committed, 0.0, use.losses / use.copies * terms.step_s / 2))


def charged(terms: Terms, use: Use) -> Charged:
    """What the bill counts: the cap and the licence hold for each copy, hours paid for already once."""
    hours = billed_s(terms, use) / SECONDS_PER_HOUR
    capped = _capped_h(terms, hours) * use.copies
    prepaid = np.minimum(terms.prepaid_h, capped)
    return Charged(
        billed_h=hours * use.copies,
        above_h=np.maximum(hours * use.copies - capped, 0.0),
        prepaid_h=prepaid,
        charged_h=capped - prepaid,
        months=np.ceil(hours / HOURS_PER_MONTH * (1 - ROUNDING)) * use.copies,
        starts=np.asarray(use.starts * use.copies + use.losses, np.float64),
    )


def _capped_h(terms: Terms, hours: Floats) -> Floats:
    """672 hours of each month at most, where that is the cap: 730 h are 672, and 731 h are 673."""
    months = np.floor(hours / HOURS_PER_MONTH)
    rest = np.minimum(hours - months * HOURS_PER_MONTH, terms.cap_h)
    return np.asarray(np.where(months > 0, months * np.minimum(terms.cap_h, HOURS_PER_MONTH), 0.0) + rest)


def bill_usd(terms: Terms, use: Use) -> Floats:
    """The gross bill of one job; shape (n,)."""
    counted = charged(terms, use)
    beside = use.used_s / SECONDS_PER_HOUR * terms.beside_usd_per_hour + terms.once_usd
    return np.asarray((_machine_usd(terms, counted) + beside) * (1 + terms.vat_fraction))


def machine_usd(terms: Terms, use: Use) -> Floats:
    """Of the gross bill what is the machine's own; shape (n,)."""
    return np.asarray(_machine_usd(terms, charged(terms, use)) * (1 + terms.vat_fraction))


def _machine_usd(terms: Terms, counted: Charged) -> Floats:
    """A spend commitment pays up to its sum in each hour, and nothing is carried over to the next."""
    hourly = np.maximum(terms.price_usd_per_hour - terms.covered_usd_per_hour, 0.0)
    agreed = counted.starts * terms.fee_usd + counted.months * terms.licence_usd_per_month
    return np.asarray(counted.charged_h * hourly + agreed)


def share_usd(terms: Terms, used_s: Floats) -> Floats:
    """The run's share of a monthly, reserved or owned machine at the hours a month asked about; NaN elsewhere.

    Hours already paid for are used up first. What falls due beside the machine is the run's own.
    """
    hours = used_s / SECONDS_PER_HOUR
    machine = np.maximum(hours - terms.prepaid_h, 0.0) * terms.share_usd_per_hour
    return np.asarray((machine + hours * terms.beside_usd_per_hour + terms.once_usd) * (1 + terms.vat_fraction))


def share_lines(terms: Terms, row: int, used_s: Seconds, source: str, beside: Sequence[Beside]) -> tuple[CostLine, ...]:
    """The share of one row, line by line; the amounts add up to `share_usd`."""
    one, hours = terms.row(row), used_s / SECONDS_PER_HOUR
    prepaid = min(float(one.prepaid_h[0]), hours)
    lines = [_line("committed hours", prepaid, "h", 0.0, "discounts")] if prepaid else []
    if hours > prepaid:
        lines.append(_line("share of the machine", hours - prepaid, "h", float(one.share_usd_per_hour[0]), source))
    return _with_vat([*lines, *(thing.line for thing in beside if thing.quantity)], one)


def elasticity(terms: Terms, use: Use, log_sd: Floats) -> Floats:
    """d ln(bill) / d ln(use) over the 80 % range of use: 1 by the second, 0 while a month's rent covers both ends.

    Where hours already paid for cover the lower end, the slope is that of the upper half.
    """
    width = np.maximum(log_sd, 1e-3) * Z80
    low, middle, high = (bill_usd(terms, use.scaled(np.exp(sign * width))) for sign in (-1, 0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(low > 0, np.log(high / low) / (2 * width), np.log(high / middle) / width)
    return np.where(np.isfinite(slope), slope, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One thing that is billed beside the machine: quantity · unit_price_usd, before VAT."""

    kind: str
    quantity: float
    unit: str
    unit_price_usd: float
    source: str

    @property
    def line(self) -> CostLine:
        return _line(self.kind, self.quantity, self.unit, self.unit_price_usd, self.source)


def bill_lines(
    terms: Terms, use: Use, parts_s: Mapping[str, Seconds], source: str, beside: Sequence[Beside] = ()
) -> tuple[CostLine, ...]:
    """The bill of one offer, line by line: its parts (preparation, compute, …), then what the step adds, fees,
    licences, what is beside the machine, and VAT.

    terms, use: of shape (1,). parts_s: kind -> seconds of use, in order, together use.used_s. The amounts add up to
    `bill_usd`.
    """
    machine = _machine_lines(terms, charged(terms, use), parts_s, source)
    return _with_vat([*machine, *(thing.line for thing in beside if thing.quantity)], terms)


def _with_vat(net: Sequence[CostLine], one: Terms) -> tuple[CostLine, ...]:
    vat, taxed = float(one.vat_fraction[0]), sum(line.amount_usd for line in net)
    return (*net, *([_line("VAT", vat, "of the net bill", taxed, "--vat")] if vat and taxed else []))


def _machine_lines(one: Terms, counted: Charged, parts_s: Mapping[str, Seconds], source: str) -> Iterator[CostLine]:
    price, hours = float(one.price_usd_per_hour[0]), float(counted.billed_h[0])
    prepaid, above = float(counted.prepaid_h[0]), float(counted.above_h[0])
    free = [("committed hours", prepaid, "discounts"), ("above the monthly cap", above, source)]
    yield from (_line(kind, h, "h", 0.0, origin) for kind, h, origin in free if h > ROUNDING * hours)
    kinds = {kind: s / SECONDS_PER_HOUR for kind, s in parts_s.items()}
    rest = hours - sum(kinds.values())
    if one.committed[0]:
        kinds = {"commitment": hours}
    elif rest <= NOTICED_H and kinds:  # a second more belongs to what came last
        kinds[list(kinds)[-1]] += rest
    else:
        kinds["billing step"] = rest
    left = prepaid + above
    for kind, wanted in kinds.items():
        taken = min(left, wanted)
        left -= taken
        if wanted - taken > ROUNDING * hours:
            yield _line(kind, wanted - taken, "h", price, source)
    yield from _agreed_lines(one, counted, source)


def _agreed_lines(one: Terms, counted: Charged, source: str) -> Iterator[CostLine]:
    """What a spend commitment pays, fees of each start, licences of each month begun."""
    covered = min(float(one.covered_usd_per_hour[0]), float(one.price_usd_per_hour[0]))
    if covered and counted.charged_h[0]:
        yield _line("covered by a commitment", float(counted.charged_h[0]), "h", -covered, "discounts")
    if fee := float(one.fee_usd[0]):
        yield _line("fee", float(counted.starts[0]), "start", fee, source)
    if licence := float(one.licence_usd_per_month[0]):
        yield _line("licence", float(counted.months[0]), "month", licence, source)


def tax_factor(offers: Catalogue, mode: str, vat_fraction: Fraction | None) -> Floats:
    """What each price is multiplied by to be net (`mode` net) or gross at the person's own rate (`mode` gross).

    A gross price of unknown rate, or of unknown tax state, is left as it is (factor 1); `rank` marks it.
    """
    known_gross = offers.tax.isin(("gross",)) & ~np.isnan(offers.vat_fraction)
    to_net = np.where(known_gross, 1 / (1 + np.nan_to_num(offers.vat_fraction)), 1.0)
    return to_net * (1 + added_vat(offers, mode, vat_fraction))


def added_vat(offers: Catalogue, mode: str, vat_fraction: Fraction | None) -> Floats:
    """VAT on top of each net price, a fraction; 0 where the person reclaims it or nobody says what the price holds."""
    known = offers.tax.isin(("net",)) | (offers.tax.isin(("gross",)) & ~np.isnan(offers.vat_fraction))
    return np.where(known & (mode == "gross"), vat_fraction or 0.0, 0.0)


def _line(kind: str, quantity: float, unit: str, unit_price_usd: float, source: str) -> CostLine:
    return CostLine(
        kind=kind, quantity=quantity, unit=unit, unit_price_usd=unit_price_usd, amount_usd=quantity * unit_price_usd,
        source=source,
    )  # fmt: skip
