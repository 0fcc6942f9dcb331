"""How people write an amount of work, a growth, a span of months and a power. See `gpuwise.units` for the rest."""

from __future__ import annotations

import math
import re

from gpuwise import units
from gpuwise.errors import InvalidInput, Message
from gpuwise.request.owning import Cooled, Promised, Said, Throughput
from gpuwise.units import DAYS_PER_YEAR, HOURS_PER_MONTH, HOURS_PER_YEAR, MONTHS_PER_YEAR, WEEKS_PER_YEAR

_NUMBER = r"[0-9.,](?:[0-9.,'’\s]*[0-9])?"

_WORK = r"\s*(?:gpu|accelerator)s?(?:[-\s]*(h|hr|hrs|hour|hours))?\s*(?:(?:/|per|an?)\s*([a-z]+))?\s*"
_DEMAND = rf"\s*([-+−]?{_NUMBER}(?:e\+?[0-9]+)?){_WORK}"
_DEMANDS = rf"\s*({_NUMBER})(?:\s*gpus?)?\s*(?:\.\.|-|–|to)\s*({_NUMBER})({_WORK})"
_TIMES_A_YEAR = {
    **dict.fromkeys(("h", "hour"), HOURS_PER_YEAR),
    **dict.fromkeys(("d", "day"), DAYS_PER_YEAR),
    **dict.fromkeys(("w", "week"), WEEKS_PER_YEAR),
    **dict.fromkeys(("mo", "month"), float(MONTHS_PER_YEAR)),
    **dict.fromkeys(("q", "quarter"), 4.0),
    **dict.fromkeys(("y", "yr", "year", "a"), 1.0),
}


def parse_demand(text: str) -> float:
    """GPU-hours of an average month of "1200 GPU-h/month", "300 GPU-hours a week" or "8 GPUs" (at all times).

    A number without both units is refused: 1,200 may be GPU-hours of a month, of a year, or GPUs. So is a range.
    """
    if ends := re.fullmatch(_DEMANDS, text, re.IGNORECASE):
        raise _no_range(text.strip(), ends[1], ends[2], ends[3])
    match = re.fullmatch(_DEMAND, text, re.IGNORECASE)
    hours, per = match.group(2, 3) if match else (None, None)
    times = _TIMES_A_YEAR.get((per or "").lower()) if per else None
    if match is None or (hours is None) != (per is None) or (per is not None and times is None):
        raise InvalidInput(
            Message('"{text}" does not say how much work is wanted: GPU-hours a time, or a number of GPUs.',
                    text=text.strip()),
            _DEMAND_HINT,
        )  # fmt: skip
    amount = units.parse_number(match[1])
    if amount <= 0:
        raise InvalidInput(Message('"{text}" is no work: it lies above 0.', text=text.strip()), _DEMAND_HINT)
    return amount * HOURS_PER_MONTH if times is None else amount * times / MONTHS_PER_YEAR


def _no_range(text: str, low: str, high: str, unit: str) -> InvalidInput:
    """A range of the demand is said by its middle and by --set. low, high: numbers; unit: of both."""
    ends = [parse_demand(end + unit) for end in (low, high)]
    middle = sum(map(units.parse_number, (low, high))) / 2
    return InvalidInput(
        Message('"{text}" is a range, and one number is asked for.', text=text),
        Message('Give its middle, and both ends in GPU-hours a month: --demand "{middle:.10g}{unit}" '
                "--set demand_gpu_h_per_month={low:.8g}..{high:.8g}", middle=middle, unit=unit,
                low=min(ends), high=max(ends)),
    )  # fmt: skip


_DEMAND_HINT = Message('Write for example "1200 GPU-h/month", "300 GPU-h/week", or "8 GPUs" for all of the time.')


_GROWTH = rf"\s*([-+−]?)\s*({_NUMBER}\s*%)\s*(?:/|per|an?)\s*([a-z]+)\s*"


def parse_growth(text: str) -> float:
    """Fraction a year, compounded, of "20%/y", "-5 % a year" or "3%/month" (3 % a month are 42.6 % a year)."""
    match = re.fullmatch(_GROWTH, text, re.IGNORECASE)
    times = _TIMES_A_YEAR.get(match[3].lower()) if match else None
    if match is None or times is None:
        raise InvalidInput(
            Message('"{text}" is no growth: a share with its time.', text=text.strip()),
            Message('Write for example "20%/y", "3%/month" or "-5%/y".'),
        )
    rate = units.parse_number(match[2]) * (-1 if match[1] in ("-", "−") else 1)
    yearly = (1 + rate) ** times - 1 if rate > -1 else -1.0
    if -1 < yearly <= LARGEST_GROWTH:
        return yearly
    raise InvalidInput(
        Message('"{text}" is {factor:.3g} times as much after a year.', text=text.strip(), factor=1 + yearly),
        Message("Check share and time: nothing shrinks by 100 %, and growth above a hundredfold a year is refused."),
    )


LARGEST_GROWTH = 99.0


def parse_months(text: str) -> int:
    """Whole months of "5y", "18 months" or "2 years"."""
    hint = Message(
        'Write "5y" or "36 months": whole months, from {low} months to {high} years.',
        low=LEAST_MONTHS, high=MOST_MONTHS // MONTHS_PER_YEAR,
    )  # fmt: skip
    match = re.fullmatch(rf"\s*({_NUMBER})\s*(mo|months?|y|yr|years?)?\s*", text, re.IGNORECASE)
    if match is None:
        raise InvalidInput(Message('"{text}" is no span of months or years.', text=text.strip()), hint)
    if match[2] is None:
        raise InvalidInput(Message('"{text}" has no unit: months, or years.', text=text.strip()), hint)
    months = units.parse_number(match[1]) * (MONTHS_PER_YEAR if match[2][0].lower() == "y" else 1)
    if months < LEAST_MONTHS:
        raise InvalidInput(Message('"{text}" is too short.', text=text.strip()), hint)
    if months > MOST_MONTHS:
        raise InvalidInput(Message('"{text}" is too long.', text=text.strip()), hint)
    if not math.isclose(months, round(months)):
        raise InvalidInput(Message('"{text}" is no whole number of months.', text=text.strip()), hint)
    return round(months)


LEAST_MONTHS, MOST_MONTHS = 6, 180
"""What --horizon may be: in less nothing pays back, in more no price of today says anything."""


def parse_period(text: str) -> float:
    """How often something comes again, in s: a duration above 0."""
    seconds = units.parse_duration(text)
    if seconds > 0:
        return seconds
    raise InvalidInput(
        Message('"{text}" is no time between two things.', text=text), Message('Write for example "7 d" or "12 h".')
    )


def parse_price(text: str) -> units.Money:
    """A price above 0: what costs nothing is not for sale."""
    money = units.parse_money(text)
    if money.amount > 0:
        return money
    raise InvalidInput(
        Message('"{text}" is no price: it lies above 0.', text=text), Message("Write for example 2.99 USD.")
    )


_THROUGHPUT = rf"\s*({_NUMBER})\s*([^\W\d_][\w -]*?)(?:\s*/|\s+(?:per|an?)\s)\s*([a-z]+)\s*"
_SECONDS = {
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("min", "minute"), 60.0),
    **dict.fromkeys(("h", "hour"), units.SECONDS_PER_HOUR),
    **dict.fromkeys(("d", "day"), units.SECONDS_PER_DAY),
}


def parse_throughput(text: str) -> Throughput:
    """Of "5500 tokens/s", "90 images a minute" or "1.2e3 requests per h": of one GPU, in the unit's own words."""
    match = re.fullmatch(_THROUGHPUT, text, re.IGNORECASE)
    seconds = _SECONDS.get(match[3].lower()) if match else None
    if match is None or seconds is None:
        raise InvalidInput(
            Message('"{text}" does not say what a GPU gets done: a number, what of, and in which time.',
                    text=text.strip()),
            Message('Write for example "5500 tokens/s".'),
        )  # fmt: skip
    return Throughput(units.parse_positive(match[1]) / seconds, match[2])


def parse_power(text: str) -> float:
    """kW of "10.2 kW" or "850W"."""
    match = re.fullmatch(rf"\s*({_NUMBER})\s*(k?)w\s*", text, re.IGNORECASE)
    if match is None:
        raise InvalidInput(
            Message('"{text}" is no power: a number with W or kW.', text=text.strip()),
            Message('Write for example "10.2 kW".'),
        )
    return units.parse_positive(match[1]) / (1 if match[2] else 1000)


_SAID = re.compile(r"([a-z][a-z0-9_]*)\s*=\s*(\S.*)")


def parse_said(text: str) -> Said:
    """life_years=4, life_years=3..4..6, or life_years=3..6 (its middle is the geometric mean)."""
    found = _SAID.fullmatch(text)
    hint = Message("Write the name of a figure and a number or a range, such as life_years=3..6.")
    if not found:
        raise InvalidInput(Message('"{text}" does not say which figure, and what it is.', text=text), hint)
    ends = [units.parse_number(part.strip()) for part in found[2].split("..")]
    if len(ends) > 3 or ends != sorted(ends) or min(ends) < 0:
        raise InvalidInput(Message('"{text}" is no range: it goes from low to high, from 0 up.', text=text), hint)
    if len(ends) == 1:
        return Said(found[1], ends[0], None, None)
    middle = ends[1] if len(ends) == 3 else (ends[0] * ends[-1]) ** 0.5 if ends[0] else ends[-1] / 2
    return Said(found[1], middle, ends[0], ends[-1])


_PROMISE = re.compile(r"(\S+?)\s*=\s*(\S.*)")


def parse_promise(text: str) -> Promised:
    """2027-06-30=12000USD: a commitment that must be paid until that day, a month."""
    found = _PROMISE.fullmatch(text)
    if not found:
        raise InvalidInput(
            Message('"{text}" does not say until when, and what a month costs.', text=text),
            Message("Write for example 2027-06-30=12000USD."),
        )
    return Promised(units.parse_date(found[1]), units.parse_money(found[2]))


_COLD = re.compile(r"([^=]+?)\s*=\s*([^:]+?)\s*:\s*(\S.*)")


def parse_cold(text: str) -> Cooled:
    """Archive=20TB:60d: 20 TB that have lain in that class for 60 days."""
    found = _COLD.fullmatch(text)
    if not found:
        raise InvalidInput(
            Message('"{text}" does not say which class, how much data and for how long.', text=text),
            Message("Write for example Archive=20TB:60d."),
        )
    stored_s = units.parse_duration(found[3])
    return Cooled(found[1], units.parse_size(found[2]), stored_s / units.SECONDS_PER_DAY)
