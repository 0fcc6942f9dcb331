"""What a unit of work or of capacity costs on what is owned: tokens, samples, core-hours, PFLOP-years, a whole run.

    USD for 10⁶ units = USD/h / (units/s · 3600 · utilisation) · 10⁶
    USD for a unit of capacity and time = total / (capacity · time · utilisation)
    worth after y years = p·10^(−d·y)               d in orders of magnitude a year; 0.14 is −27.6 % a year
    an hour takes worth · d·ln 10 / 8766 of it      what a run on owned chips uses up
    a cluster = chips · price / (1 − share of the network)

Source: B. Cottier et al., The rising costs of training frontier AI models, arXiv 2405.21015, with
the code of epoch-research/training-cost-trends. Test values: 25,000 A100 at 24,875 USD, 19 % network, index 1.01344:
778.1 M USD; 57 M chip-hours of them 638 days later: 40.70 M USD with energy (GPT-4); 2.49 USD/h at 5,500 tokens/s:
0.126 USD for 10⁶ tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from gpuwise.errors import InvalidInput, Message
from gpuwise.own.energy import energy_kwh, energy_usd
from gpuwise.own.ledger import break_even_months, straight_line_usd
from gpuwise.own.plan import all_in_usd
from gpuwise.units import (
    HOURS_PER_DAY,
    HOURS_PER_YEAR,
    MEAN_DAYS_PER_YEAR,
    SECONDS_PER_HOUR,
    Fraction,
    Hours,
    Usd,
    UsdPerHour,
)

MEAN_HOURS_PER_YEAR = HOURS_PER_DAY * MEAN_DAYS_PER_YEAR
"""With the leap years, as a value that falls all the time counts them."""


# ---- work ----


def usd_per_million(usd_per_hour: UsdPerHour, units_per_s: float, utilisation_fraction: Fraction = 1.0) -> Usd:
    """USD for 10⁶ tokens, samples or steps at a rate that holds for this share of the hours paid."""
    return usd_per_hour * hours_per_million(units_per_s, utilisation_fraction)


def hours_per_million(units_per_s: float, utilisation_fraction: Fraction = 1.0) -> Hours:
    """Hours paid for 10⁶ of them. Test value: 5,500 a second: 0.0505 h."""
    _refuse_idle(utilisation_fraction)
    return 1e6 / (units_per_s * SECONDS_PER_HOUR * utilisation_fraction)


def mixed_usd(input_usd: Usd, output_usd: Usd, input_fraction: Fraction) -> Usd:
    """Price of a unit of which a share is input. Test value: 1.25 and 10 USD, a third input: 7.083."""
    return input_fraction * input_usd + (1 - input_fraction) * output_usd


def work_to_pay_back(capex_usd: Usd, months: float, usd_per_unit: Usd, own_usd_per_month: Usd) -> float:
    """Units of work a month with which a purchase pays back in so many months, against a price a unit elsewhere."""
    return (capex_usd / months + own_usd_per_month) / usd_per_unit


def pays_back_months(capex_usd: Usd, units_per_month: float, usd_per_unit: Usd, own_usd_per_month: Usd) -> float:
    """Months until a purchase pays back at so much work a month; inf: never."""
    return break_even_months(capex_usd, units_per_month * usd_per_unit, own_usd_per_month)


# ---- capacity ----


def usd_per_pflop_year(
    total_usd: Usd, accelerators: int, pflops: float, years: float, utilisation_fraction: Fraction
) -> Usd:
    """USD for a year of 10¹⁵ FLOP/s in use. pflops: dense peak of one. Test value: 32.83 M USD, 1,024 H100 (0.989
    PFLOP/s), 5 years at 70 %: 9,262."""
    _refuse_idle(utilisation_fraction)
    return total_usd / (accelerators * pflops * years * utilisation_fraction)


def usd_per_core_h(price_usd: Usd, cores: int, years: float, utilisation_fraction: Fraction = 1.0) -> Usd:
    """Hardware alone, straight line. Test value: 14,375 USD, 36 cores, 5 years: 0.0091 (Internet2, 2017)."""
    _refuse_idle(utilisation_fraction)
    return straight_line_usd(price_usd, 0.0, years) / (cores * HOURS_PER_YEAR * utilisation_fraction)


def _refuse_idle(utilisation_fraction: Fraction) -> None:
    if not 0 < utilisation_fraction <= 1:
        raise InvalidInput(
            Message("The utilisation is {value:g}: it lies above 0 and up to 1.", value=utilisation_fraction),
            Message("Write the share of the time in which the machine works, such as 0.7."),
        )


# ---- a cluster, and a run on it ----


def cluster_usd(chips: int, usd_per_chip: Usd, network_fraction: Fraction, price_index: float = 1.0) -> Usd:
    """Price of a cluster. usd_per_chip: in its server; network_fraction: of all of the cost; price_index: to the year
    in whose money the answer is."""
    return float(all_in_usd(chips * usd_per_chip, network_fraction, 0.0, 0.0, 0.0)) * price_index


def worth_usd(price_usd: Usd, years: float, decline_oom_per_year: float) -> Usd:
    """What an accelerator is worth at this age: better ones have come."""
    return price_usd * 10 ** (-decline_oom_per_year * years)


def amortised_usd_per_hour(value_usd: Usd, decline_oom_per_year: float) -> UsdPerHour:
    """What an hour takes of a value that falls like that."""
    return value_usd * decline_oom_per_year * log(10) / MEAN_HOURS_PER_YEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One accelerator that is owned. price_usd: with its part of the server; network_fraction: of the cluster's cost;
    age_days: at the start of the run; draw_kw: on average, with its part of the server, before PUE."""

    price_usd: Usd
    age_days: float
    network_fraction: Fraction
    draw_kw: float
    pue: float
    usd_per_kwh: float


def draw_kw(tdp_kw: float, server_over_chip: float, of_tdp_fraction: Fraction) -> float:
    """Average draw of an accelerator and its part of the server. Test value: 0.4 · 2.03 · 0.75 = 0.609 kW (A100)."""
    return tdp_kw * server_over_chip * of_tdp_fraction


def run_usd(chip: Chip, chip_h: Hours, decline_oom_per_year: float, price_index: float = 1.0) -> Usd:
    """What a run costs on owned chips: the value that they lose meanwhile, the network's part, and energy."""
    value = worth_usd(chip.price_usd, chip.age_days * HOURS_PER_DAY / MEAN_HOURS_PER_YEAR, decline_oom_per_year)
    hourly = float(
        all_in_usd(amortised_usd_per_hour(value, decline_oom_per_year), chip.network_fraction, 0.0, 0.0, 0.0)
    )
    kwh = energy_kwh(chip.draw_kw, chip_h, pue=chip.pue)
    return (hourly * chip_h + energy_usd(kwh, chip.usd_per_kwh)) * price_index
