"""What a purchase is worth: net present value, internal rate, pay-back, break-even, depreciation, and a verdict.

A flow is money at the end of a month, in above 0 and out below 0; month 0 is today.

    NPV = Σ fₜ·(1 + r)^(−t/12)               r: a year; at 0 % it is the sum
    internal rate: r with NPV = 0            a purchase that pays back has one, other flows have none or several
    break-even = capex / (rented − owned)    hours or months of use; capex counts once, and never in `owned` as well
    a loan's payment = loan · CRF            see `cost.annuity`
    depreciation = (price − resale) / life   straight line; the US schedule of five years is a table

The verdict: buy if NPV is above 0 at every rate from 0 to the person's own, do not buy if it is at none of them, and
else it depends on the rate, which is said with the rate at which it turns.

Source: W. Short et al., NREL/TP-462-5173 (1995), §3 (NPV, internal rate, pay-back); US schedule: IRS Publication 946,
table A-1 (half-year convention). Test values: 131,000 USD that save 52,000 at the end of each of three years: +25,000
in all, −1,684 at 10 %, turning at 9.27 % (UC-092). 833,806 USD against 98.32 − 0.87 USD/h: 8,556 h (Lenovo LP2225).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuwise.cost.annuity import capital_recovery_factor
from gpuwise.errors import InvalidInput, Message
from gpuwise.own.choose import discount
from gpuwise.units import DAYS_PER_YEAR, HOURS_PER_MONTH, Fraction, Hours, Usd

Floats = NDArray[np.float64]
Figure = Floats | float
LOWEST_RATE, HIGHEST_RATE = -0.99, 100.0
"""Yearly rates between which an internal rate is looked for."""
SEARCHED_RATES = 4096


# ---- cash flows ----


def npv_usd(flows_usd: Floats, yearly_rate: Floats | Fraction) -> Floats:
    """What flows (…, T + 1) are worth today, (…)."""
    flows = np.asarray(flows_usd, np.float64)
    return np.asarray((flows * discount(flows.shape[-1] - 1, yearly_rate)).sum(axis=-1))


def internal_rates(flows_usd: Floats) -> tuple[float, ...]:
    """Yearly rates at which the flows (T + 1,) are worth nothing, ascending: none, one, or several where there are.

    Between −99 % and 10,000 % a year; a pair closer together than 0.2 % of 1 + r is not told from none.
    """
    flows = np.asarray(flows_usd, np.float64)
    if (flows >= 0).all() or (flows <= 0).all():
        return ()
    from scipy.optimize import brentq

    logs = np.linspace(np.log1p(LOWEST_RATE), np.log1p(HIGHEST_RATE), SEARCHED_RATES)
    signs = np.sign(npv_usd(flows, np.expm1(logs)[:, None]))
    turns = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    found = [brentq(lambda log: float(npv_usd(flows, float(np.expm1(log)))), logs[at], logs[at + 1]) for at in turns]
    return tuple(sorted(float(np.expm1(log)) for log in (*found, *logs[signs == 0])))


def payback_months(flows_usd: Floats) -> float | None:
    """Months until the flows (T + 1,) first sum up to 0, even within a month. 0: nothing is paid first; None: never."""
    ahead = np.cumsum(np.asarray(flows_usd, np.float64))
    reached = np.flatnonzero(ahead >= 0)
    if not len(reached):
        return None
    month = int(reached[0])
    return month - float(ahead[month] / (ahead[month] - ahead[month - 1])) if month else 0.0


def saving_flows_usd(capex_usd: Usd, saving_usd_per_year: Usd, years: int, *, payments_per_year: int = 12) -> Floats:
    """A purchase today and an even saving after it, at the end of each period; (12·years + 1,)."""
    if payments_per_year not in (1, 2, 3, 4, 6, 12):
        raise InvalidInput(
            Message("{number} payments a year do not fall on ends of months.", number=payments_per_year),
            Message("Give 12, 6, 4, 3, 2 or 1."),
        )
    flows = np.zeros(12 * years + 1)
    flows[:: 12 // payments_per_year] = saving_usd_per_year / payments_per_year
    flows[0] = -capex_usd
    return flows


def net_saving_usd(avoided_usd: Sequence[Usd], added_usd: Sequence[Usd] = ()) -> Usd:
    """What is no longer paid less what is paid instead. Test value: 92.5 and 53.0 M USD: 39.5 (Dropbox, 2016)."""
    return sum(avoided_usd) - sum(added_usd)


# ---- the verdict ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An answer by the rule at the top. total_usd: undiscounted; npv_usd: at yearly_rate_fraction; break_even_rates:
    yearly, where NPV is 0, empty if nowhere. criterion: the rule, in words."""

    answer: Literal["buy", "do not buy", "depends on the rate"]
    criterion: Message
    total_usd: Usd
    npv_usd: Usd
    yearly_rate_fraction: Fraction
    break_even_rates: tuple[Fraction, ...]


def judged(flows_usd: Floats, yearly_rate: Fraction) -> Verdict:
    """Whether the flows (T + 1,) of a purchase speak for it at this rate."""
    rates = internal_rates(flows_usd)
    present = float(npv_usd(flows_usd, yearly_rate))
    turns = any(min(0.0, yearly_rate) < rate < max(0.0, yearly_rate) for rate in rates)
    return Verdict(
        answer="depends on the rate" if turns else "buy" if present > 0 else "do not buy",
        criterion=Message(
            "buy if the net present value is above 0 at every rate from 0 to {rate:.3g} a year, do not buy if at none",
            rate=yearly_rate,
        ),
        total_usd=float(np.sum(flows_usd)),
        npv_usd=present,
        yearly_rate_fraction=yearly_rate,
        break_even_rates=rates,
    )


# ---- break-even ----


def break_even_h(capex_usd: Figure, cloud_usd_per_hour: Figure, own_usd_per_hour: Figure = 0.0) -> Floats:
    """Hours of use after which a purchase has cost as much as renting; inf: never. One number, or an array of them.

    own_usd_per_hour: without any part of the purchase. A year's fixed cost in the place of capex gives the hours of
    use a year: 14,000 USD against 0.45 USD a GPU-hour are 31,111 GPU-hours (UC-095).
    """
    margin = np.asarray(cloud_usd_per_hour - own_usd_per_hour, np.float64)
    return np.asarray(np.where(margin > 0, capex_usd / np.where(margin > 0, margin, 1.0), np.inf))[()]


def break_even_months(
    capex_usd: Usd, cloud_usd_per_month: Usd, own_usd_per_month: Usd = 0.0, lead_months: float = 0.0
) -> float:
    """The same in months from the order: until the machine is there, the cloud is paid as before.

    Test value: 30 weeks are 6.9 months, and 150,000 / (9,000 − 1,500) are 20: 26.9 (UC-096).
    """
    return lead_months + float(break_even_h(capex_usd, cloud_usd_per_month, own_usd_per_month))


def months_of_use(hours: Hours, hours_per_month: Hours = HOURS_PER_MONTH) -> float:
    """Months in which so many hours are used. Vendors count 720 h to a month; a year has twelve of 730."""
    return hours / hours_per_month


def years_of_use(hours: Hours, hours_per_day: Hours = 24.0) -> float:
    """Years of 365 days. Test value: 25,951 h at 12 h a day are 5.92 years, not the 4.8 that were printed."""
    return hours / hours_per_day / DAYS_PER_YEAR


# ---- loans, depreciation, prices ----


def payment_usd(loan_usd: Usd, rate_per_period: Fraction, periods: float) -> Usd:
    """Equal payments at the end of each period that repay a loan. Test value: 1,000 at 0 % in 10 periods: 100."""
    return loan_usd * capital_recovery_factor(rate_per_period, periods)


def straight_line_usd(price_usd: Usd, residual_usd: Usd, years: float) -> Usd:
    """Depreciation a year. Test value: 240,000 USD less 15 % over 3, 5 and 6 years: 68,000, 40,800, 34,000 (UC-094)."""
    return (price_usd - residual_usd) / years


MACRS5 = (0.20, 0.32, 0.192, 0.1152, 0.1152, 0.0576)


def macrs5_usd(basis_usd: Usd, year: int) -> Usd:
    """US tax depreciation of computers in year 1 to 6; nothing later. Test value: 250,000 USD, year 2: 80,000."""
    if year < 1:
        raise InvalidInput(
            Message("The tax schedule has no year {year}: it starts with 1.", year=year),
            Message("Give the year since the machine was put into use, from 1."),
        )
    return basis_usd * MACRS5[year - 1] if year <= len(MACRS5) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLife:
    """One year of a machine that lives for life_years. capital: depreciation less resale; spares: bought with it."""

    life_years: float
    capital_usd_per_year: Usd
    spares_usd_per_year: Usd
    upkeep_usd_per_year: Usd

    @property
    def total_usd_per_year(self) -> Usd:
        return self.capital_usd_per_year + self.spares_usd_per_year + self.upkeep_usd_per_year


def over_lives(
    price_usd: Usd,
    *,
    residual_fraction: Fraction,
    spares_fraction: Fraction,
    upkeep_usd_per_year: Usd,
    lives_years: Sequence[float] = (3, 5, 6),
) -> tuple[OfLife, ...]:
    """What a year costs by how long the machine is kept; upkeep: staff, hosting, support. The same resale for each."""
    return tuple(
        OfLife(
            life_years=years,
            capital_usd_per_year=straight_line_usd(price_usd, residual_fraction * price_usd, years),
            spares_usd_per_year=straight_line_usd(spares_fraction * price_usd, 0.0, years),
            upkeep_usd_per_year=upkeep_usd_per_year,
        )
        for years in lives_years
    )


def changed_usd(price_usd: Usd, change_fraction: float, gpus: int = 1) -> Usd:
    """A GPU's price after a change. Test value: 98.32 USD/h for eight, −44 %: 6.88 (AWS p5, June 2025)."""
    return price_usd * (1 + change_fraction) / gpus


def spread_ratio(prices_usd: Sequence[Usd]) -> float:
    """The dearest over the cheapest of the same thing. Test value: 12.29 and 2.69 USD/h: 4.57."""
    return max(prices_usd) / min(prices_usd)
