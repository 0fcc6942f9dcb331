"""The bill of one run, for n offers at once.

billed_s = ceil(max(used_s, minimum_s) / step_s) · step_s, and the bill is billed_s · price. A month's rent is a step
and a minimum of one month; a reservation is a step and a minimum of its term: so a commitment is owed in full.

Source: the providers' own rules as recorded in offers.csv (per second after 60 s: AWS, Google; per hour; per month).
Test value: 61 min used at 2.00 USD/h is 4.00 USD by the hour, 2.0333 USD by the second, 1,460 USD by the month.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.estimate import Z80
from gpuwise.model import CostLine
from gpuwise.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, Fraction, Seconds

Floats = NDArray[np.float64]
MONTH_S = HOURS_PER_MONTH * SECONDS_PER_HOUR
ROUNDING = 1e-9
"""Relative slack before a step is begun, so that 3,600.0000001 s is one hour."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Terms:
    """How n offers are billed; every array has shape (n,).

    price_usd_per_hour: of the whole offer, tax and discounts applied. step_s, minimum_s: billing rule.
    committed: the step is a commitment (month or term), owed in full. share_usd_per_hour: price of an hour when the
    machine is busy for the hours a month asked about, NaN without that figure. licence_usd_per_month: on top, per month
    begun. billable: False for owned machines, which send no bill for one job.
    """

    price_usd_per_hour: Floats
    step_s: Floats
    minimum_s: Floats
    committed: NDArray[np.bool_]
    share_usd_per_hour: Floats
    licence_usd_per_month: Floats
    prepaid_h: Floats
    billable: NDArray[np.bool_]

    def row(self, row: int) -> Terms:
        """The terms of one offer, arrays of shape (1,)."""
        return Terms(**{f.name: getattr(self, f.name)[row : row + 1] for f in fields(self)})


def terms(
    offers: Catalogue,
    *,
    price_usd_per_hour: Floats,
    prepaid_h: Floats,
    step_unknown_s: Seconds,
    hours_per_month: float | None,
) -> Terms:
    """The billing terms of every row. step_unknown_s: the step taken where the provider's rule is not known."""
    dedicated, reserved, owned = (offers.market.isin((m,)) for m in ("dedicated", "reserved", "owned"))
    term_s = offers.term_h * SECONDS_PER_HOUR
    span = np.where(reserved, term_s, np.where(dedicated, np.fmax(term_s, MONTH_S), np.nan))
    step = np.where(np.isnan(offers.billing_step_s), step_unknown_s, offers.billing_step_s)
    minimum = np.nan_to_num(offers.billing_minimum_s)
    committed = dedicated | reserved
    running = np.nan_to_num(offers.running_usd_per_hour)
    licence = np.nan_to_num(offers.licence_usd_per_month) * np.nan_to_num(offers.nodes, nan=1.0)
    busy = np.nan if hours_per_month is None else HOURS_PER_MONTH / hours_per_month
    return Terms(
        price_usd_per_hour=price_usd_per_hour,
        step_s=np.where(committed, span, step),
        minimum_s=np.where(committed, span, minimum),
        committed=committed,
        share_usd_per_hour=np.where(
            committed | owned, (price_usd_per_hour - running + licence / HOURS_PER_MONTH) * busy + running, np.nan
        ),
        licence_usd_per_month=licence,
        prepaid_h=prepaid_h,
        billable=~owned,
    )


def billed_s(terms: Terms, used_s: Floats) -> Floats:
    """Seconds on the bill for `used_s` seconds of use; shape (n,)."""
    wanted = np.maximum(used_s, terms.minimum_s)
    steps = np.ceil(wanted / terms.step_s * (1 - ROUNDING))
    return np.maximum(steps, 1) * terms.step_s


def bill_usd(terms: Terms, used_s: Floats) -> Floats:
    """The gross bill of one run that uses the machine for `used_s`; shape (n,)."""
    hours = billed_s(terms, used_s) / SECONDS_PER_HOUR
    months = np.ceil(hours / HOURS_PER_MONTH * (1 - ROUNDING))
    paid = np.maximum(hours - terms.prepaid_h, 0.0) * terms.price_usd_per_hour
    return np.asarray(paid + months * terms.licence_usd_per_month)


def share_usd(terms: Terms, used_s: Floats) -> Floats:
    """The run's share of a monthly, reserved or owned machine at the hours a month asked about; NaN elsewhere.

    Hours already paid for are used up first.
    """
    return np.maximum(used_s / SECONDS_PER_HOUR - terms.prepaid_h, 0.0) * terms.share_usd_per_hour


def elasticity(terms: Terms, used_s: Floats, log_sd: Floats) -> Floats:
    """d ln(bill) / d ln(use) over the 80 % range of use: 1 by the second, 0 while a month's rent covers both ends.

    Where hours already paid for cover the lower end, the slope is that of the upper half.
    """
    width = np.maximum(log_sd, 1e-3) * Z80
    low, middle, high = (bill_usd(terms, used_s * np.exp(sign * width)) for sign in (-1, 0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(low > 0, np.log(high / low) / (2 * width), np.log(high / middle) / width)
    return np.where(np.isfinite(slope), slope, 0.0)


def bill_lines(terms: Terms, row: int, parts_s: dict[str, Seconds], source: str) -> tuple[CostLine, ...]:
    """The bill of one row, line by line: its parts (preparation, compute, …), then what the step adds, then licences.

    parts_s: kind -> seconds of use, in order. The amounts add up to `bill_usd`.
    """
    used = np.array([sum(parts_s.values())])
    hours = float(billed_s(terms.row(row), used)[0]) / SECONDS_PER_HOUR
    if terms.committed[row]:
        kinds = {"commitment": hours}
    else:
        kinds = {kind: s / SECONDS_PER_HOUR for kind, s in parts_s.items()}
        kinds["billing step"] = hours - sum(kinds.values())
    prepaid = min(float(terms.prepaid_h[row]), hours)
    lines = [_line("committed hours", prepaid, "h", 0.0, "discounts")] if prepaid else []
    for kind, wanted in kinds.items():
        free = min(prepaid, wanted)
        prepaid -= free
        if wanted - free > ROUNDING * hours:
            lines.append(_line(kind, wanted - free, "h", float(terms.price_usd_per_hour[row]), source))
    licence = float(terms.licence_usd_per_month[row])
    if licence:
        months = float(np.ceil(hours / HOURS_PER_MONTH * (1 - ROUNDING)))
        lines.append(_line("licence", months, "month", licence, source))
    return tuple(lines)


def tax_factor(offers: Catalogue, mode: str, vat_fraction: Fraction | None) -> Floats:
    """What each price is multiplied by to be net (`mode` net) or gross at the person's own rate (`mode` gross).

    A gross price of unknown rate, or of unknown tax state, is left as it is (factor 1); `rank` marks it.
    """
    known_gross = offers.tax.isin(("gross",)) & ~np.isnan(offers.vat_fraction)
    to_net = np.where(known_gross, 1 / (1 + np.nan_to_num(offers.vat_fraction)), 1.0)
    if mode == "net":
        return to_net
    return np.where(known_gross | offers.tax.isin(("net",)), to_net * (1 + (vat_fraction or 0.0)), 1.0)


def _line(kind: str, quantity: float, unit: str, unit_price_usd: float, source: str) -> CostLine:
    return CostLine(
        kind=kind, quantity=quantity, unit=unit, unit_price_usd=unit_price_usd, amount_usd=quantity * unit_price_usd,
        source=source,
    )  # fmt: skip
