"""Units: the aliases that name them, the only conversion factors, and parsing at the door.

Text from a person or a table is parsed once, by `parse_*`, into the units below; `InvalidInput` names the value, the
rule and an example. Figures become words once, in `view.figures`.

Memory: a GPU's "80 GB" is a trade name; the driver counts in binary, so GB of a GPU is read as GiB. Host memory and
disks are sold in decimal GB by some: `parse_memory(text, decimal=True)`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from itertools import pairwise
from typing import Literal

from gpuwise.errors import InvalidInput, Message

Seconds = float
Hours = float
Usd = float
UsdPerHour = float
Gib = float
Gigabytes = float
GbPerSecond = float
Tflops = float
Watts = float
Fraction = float

SECONDS_PER_HOUR = 3600.0
SECONDS_PER_DAY = 86_400.0
HOURS_PER_DAY = 24.0
HOURS_PER_WEEK = 168.0
HOURS_PER_MONTH = 730.0
"""A month in the price lists used here: 8,760 h / 12 (shared with AWS, Azure and Google calculators)."""
HOURS_PER_YEAR = 8760.0
"""A year in the price lists used here: 365 days. The spans below follow from it."""
DAYS_PER_WEEK = 7
MONTHS_PER_YEAR = 12
DAYS_PER_YEAR = HOURS_PER_YEAR / HOURS_PER_DAY
MEAN_DAYS_PER_YEAR = 365.25
"""Between two days of the calendar, leap years counted: rates of change fitted on dates are for such a year."""
DAYS_PER_MONTH = HOURS_PER_MONTH / HOURS_PER_DAY
WEEKS_PER_YEAR = HOURS_PER_YEAR / HOURS_PER_WEEK
WEEKS_PER_MONTH = HOURS_PER_MONTH / HOURS_PER_WEEK
BYTES_PER_GIB = 2.0**30
BYTES_PER_GB = 1e9
KG_PER_POUND = 0.45359237
"""Exact, by the international yard and pound agreement of 1959."""

SUFFIXES: Mapping[str, str] = {
    "_s": "s",
    "_h": "h",
    "_days": "days",
    "_weeks": "weeks",
    "_months": "months",
    "_epochs": "epochs",
    "_years": "years",
    "_hours_per_month": "h a month",
    "_usd": "USD",
    "_usd_per_hour": "USD an hour",
    "_usd_per_month": "USD a month",
    "_usd_per_year": "USD a year",
    "_usd_per_million_samples": "USD for 10^6 samples",
    "_usd_per_1000_steps": "USD for 1,000 steps of the optimizer",
    "_usd_per_kwh": "USD a kWh",
    "_usd_per_gpu_hour": "USD a GPU-hour",
    "_gpu_h": "GPU-hours",
    "_gpu_h_per_month": "GPU-hours a month",
    "_g_co2e_per_kwh": "g CO2e a kWh",
    "_kg_co2e": "kg CO2e",
    "_kw": "kW",
    "_gbit_per_s": "10^9 bits a second",
    "_usd_per_unit": "USD for one unit of the currency or resource beside it",
    "_gib": "GiB (2^30 bytes)",
    "_gb": "GB (10^9 bytes)",
    "_gb_per_s": "GB/s (10^9 bytes a second)",
    "_usd_per_gb": "USD a GB (10^9 bytes)",
    "_usd_per_gb_month": "USD a GB (10^9 bytes) and month",
    "_losses_per_hour": "losses an hour",
    "_tflops": "10^12 operations a second",
    "_w": "W",
    "_j": "J",
    "_mhz": "MHz",
    "_c": "°C",
    "_px": "pixels",
    "_bytes": "bytes",
    "_mb_per_s": "10^6 bytes a second",
    "_per_step": "a step of the optimizer",
    "_kwh": "kWh",
    "_fraction": "1 (never per cent)",
    "_fraction_per_day": "1/day (never per cent)",
    "_fraction_per_year": "1/year (never per cent)",
    "_m": "10^6",
    "_per_s": "samples a second",
    "_per_parameter": "bytes a parameter",
    "_log_sd": "1 (standard deviation of a natural logarithm)",
}
"""Endings of the names of number fields, and the unit that each stands for. The longest that fits holds."""

COUNTS = frozenset({
    "accelerators", "accumulation", "admits", "allowed", "at", "at_end", "batch", "batch_per_accelerator", "classes",
    "correct", "count", "depthwise_gmacs", "epochs", "failed_runs", "funnel", "gmacs", "host", "host_gpus",
    "image_size", "index", "input_size", "jobs", "launches", "learning_rate", "limit", "loss", "micro_batches", "nodes",
    "number", "operations", "p_cheapest", "patience", "per_node", "period", "prefetch", "processes", "pue", "rank",
    "recompiles", "samples", "schema", "seed", "server_gpus",
    "sessions", "shown_every", "steps", "syncs", "threads", "tokens",
    "total_candidates", "total_offers", "validated", "validation_every", "validation_samples", "vcpus",
    "warm_up", "workers",
})  # fmt: skip
"""Number fields that are plain counts (input_size, image_size: pixels; gmacs, depthwise_gmacs: 10^9
multiply-accumulates; host, allowed, at_end: CPUs) or have no dimension (loss, learning_rate)."""

BESIDE: Mapping[str, tuple[str, ...]] = {
    "price_native": ("currency", "price_unit"),
    "quantity": ("unit",),
    "value": ("unit",),
    "low": ("unit",),
    "high": ("unit",),
}
"""Number fields whose unit stands in other fields of the same record."""

PriceBasis = Literal["hour", "day", "month", "year", "kwh"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """An amount as a person wrote it. currency: ISO 4217 code, None if not stated; per: None for a plain sum."""

    amount: float
    currency: str | None = None
    per: PriceBasis | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Bounds, both included, None where open: GiB a GPU (kind memory) or a number of GPUs (kind count)."""

    low: float | None
    high: float | None
    kind: Literal["memory", "count"]

    def holds(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """How a column writes its numbers. decimal: "." or ","; thousands: "", ".", ",", " " (any space) or "'".

    note: what was assumed, where the column itself leaves it open.
    """

    decimal: str
    thousands: str = ""
    note: Message | None = None


# ---- numbers of tables ------------------------------------------------------------------------------------------

_FORMATS = tuple(
    NumberFormat(decimal=d, thousands=t)
    for d, t in ((".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
)
_GROUPING = {"": "(?!)", ",": ",", ".": r"\.", " ": "[ \u00a0\u2009\u202f]", "'": "['’]"}
_SHAPE = str.maketrans("23456789", "11111111")


def number_format(texts: Iterable[str]) -> NumberFormat:
    """The one way to read all numbers of a column; texts that are no numbers are left to `parse_number`.

    "1.234" alone is read as 1.234, with a note; "1,234" alone may be 1234 or 1.234 and is refused (InvalidInput names
    both readings). A person's own choice is an example: `number_format(["1.234,56"])`.
    """
    shapes: dict[str, str] = {}
    for text in texts:
        shapes.setdefault(text.strip().translate(_SHAPE), text.strip())
    numbers = [t for t in shapes.values() if any(_read(t, f) is not None for f in _FORMATS)]
    _refuse_mixed_percent(numbers)
    first, *others = _fitting(numbers)
    for text in numbers:
        for other in others:
            if _read(text, other) != _read(text, first):
                return _settle(text, first, other)
    return first


def _fitting(numbers: list[str]) -> list[NumberFormat]:
    fitting = list(_FORMATS)
    for text in numbers:
        if not any(_read(text, f) is not None for f in fitting):
            raise InvalidInput(
                Message('"{text}" is written another way than the numbers before it, such as "{first}".',
                        text=text, first=numbers[0]),
                Message('Write all numbers of the column one way, such as "1234.56".'),
            )  # fmt: skip
        fitting = [f for f in fitting if _read(text, f) is not None]
    return fitting


def _settle(text: str, first: NumberFormat, other: NumberFormat) -> NumberFormat:
    values = {"text": text, "first": f"{_read(text, first):g}", "other": f"{_read(text, other):.10g}"}
    if first != _FORMATS[0]:
        raise InvalidInput(
            Message('"{text}" may be {first} or {other}, and no other value of the column decides.', **values),
            Message('State the format by an example, such as "1,234.56" or "1.234,56".'),
        )
    note = Message('"{text}" was read as {first}, not {other}: state the format if that is wrong', **values)
    return NumberFormat(decimal=first.decimal, thousands=first.thousands, note=note)


def parse_number(text: str, signs: NumberFormat | None = None) -> float:
    """A finite number in the column's format (found from the text alone without one); "12,5 %" is 0.125."""
    value = _read(text.strip(), signs or number_format([text]))
    if value is None:
        raise InvalidInput(
            Message('"{text}" is not a number of this format.', text=text),
            Message('Write digits with at most one decimal sign, such as "{example}".', example=_example(signs)),
        )
    return value


def _read(text: str, signs: NumberFormat) -> float | None:
    match = _pattern(signs.decimal, signs.thousands).fullmatch(text)
    if match is None:
        return None
    sign, whole, part, exponent, percent = match.groups(default="")
    value = float(f"{re.sub('[^0-9]', '', whole) or 0}.{part or 0}e{exponent or 0}")
    if not math.isfinite(value):
        return None
    return (-value if sign in ("-", "−") else value) / (100 if percent else 1)


@cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = rf"[1-9][0-9]{{0,2}}(?:{_GROUPING[thousands]}[0-9]{{3}})+|[0-9]+"
    part = rf"(?:{re.escape(decimal)}([0-9]+))?"
    return re.compile(rf"([-+−])?({whole}|(?={re.escape(decimal)})){part}(?:[eE]([-+]?[0-9]{{1,3}}))?(?:\s*(%))?")


def _example(signs: NumberFormat | None) -> str:
    return "1234.56" if signs is None else f"1{signs.thousands}234{signs.decimal}56"


def _refuse_mixed_percent(numbers: list[str]) -> None:
    marked = [t for t in numbers if t.endswith("%")]
    bare = [t for t in numbers if not t.endswith("%")]
    if marked and bare:
        raise InvalidInput(
            Message(
                '"{text}" has a per cent sign and "{bare}" in the same column has none.', text=marked[0], bare=bare[0]
            ),
            Message("Write all values of the column one way."),
        )


# ---- what a person types ----------------------------------------------------------------------------------------

_NUMBER = r"[0-9.,](?:[0-9.,'’\s]*[0-9])?"
_BARE = rf"\s*[-+−]?{_NUMBER}\s*"
_PART = rf"\s*({_NUMBER})\s*([a-z]+)"
_PARTS = rf"(?:{_PART})+\s*"
_CLOCK = r"\s*([0-9]+):([0-5][0-9]):([0-5][0-9])\s*"
_SECONDS = {
    **dict.fromkeys(("ms",), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), SECONDS_PER_HOUR),
    **dict.fromkeys(("d", "day", "days"), SECONDS_PER_DAY),
    **dict.fromkeys(("w", "week", "weeks"), 7 * SECONDS_PER_DAY),
}


def parse_duration(text: str) -> Seconds:
    """Seconds of "1 h 30 min", "90min", "1:30:00", "1.5h" or "2 d". A number without a unit is refused."""
    if clock := re.fullmatch(_CLOCK, text):
        hours, minutes, seconds = map(int, clock.groups())
        return hours * SECONDS_PER_HOUR + minutes * 60 + seconds
    parts = re.findall(_PART, text.lower()) if re.fullmatch(_PARTS, text.lower()) else []
    units = [_SECONDS.get(unit, math.nan) for _, unit in parts]
    if not parts or any(math.isnan(u) for u in units) or not all(a > b for a, b in pairwise(units)):
        raise _no_duration(text)
    return math.fsum(parse_number(number) * unit for (number, _), unit in zip(parts, units, strict=True))


def _no_duration(text: str) -> InvalidInput:
    if re.fullmatch(_BARE, text):
        return InvalidInput(
            Message('The duration "{text}" has no unit.', text=text.strip()),
            Message('Write "{text} s", "{text} min", "{text} h" or "{text} d".', text=text.strip().lstrip("-+−")),
        )
    return InvalidInput(
        Message('"{text}" is not a duration: numbers with s, min, h, d or w, the largest unit first.', text=text),
        Message('Write for example "1 h 30 min", "90 min" or "1:30:00" (hours, minutes, seconds).'),
    )


_MEMORY = rf"\s*({_NUMBER})\s*([mgtp])(i?)b?\s*"
_POWER = {"m": 2, "g": 3, "t": 4, "p": 5}


def parse_memory(text: str, *, decimal: bool = False) -> Gib:
    """GiB of "80 GB", "23028 MiB" or "1.5 TB". GB is the GPU trade's (= GiB), or 10^9 bytes with `decimal`."""
    match = re.fullmatch(_MEMORY, text, re.IGNORECASE)
    if match is None:
        raise InvalidInput(
            Message('"{text}" is not a size of memory: a number with MB, GB, TB, MiB, GiB or TiB.', text=text),
            Message('Write for example "80 GB" or "23028 MiB".'),
        )
    number, unit, binary = match.groups()
    base = 1000.0 if decimal and not binary else 1024.0
    return _above_zero(parse_number(number), text) * base ** _POWER[unit.lower()] / BYTES_PER_GIB


def parse_size(text: str) -> Gigabytes:
    """GB (10^9 bytes) of data or disk: "150 GB", "1.5 TB", "200 GiB"."""
    try:
        return parse_memory(text, decimal=True) * BYTES_PER_GIB / BYTES_PER_GB
    except InvalidInput as error:
        if re.fullmatch(_MEMORY, text, re.IGNORECASE):
            raise
        raise InvalidInput(
            Message('"{text}" is not a size of data: a number with MB, GB, TB or GiB.', text=text),
            Message("Write for example: 150 GB."),
        ) from error


_RATE = rf"\s*({_NUMBER})\s*([kmgt]?)(b|bit|byte|bytes)(?:ps|\s*/\s*s(?:ec|econd)?)\s*"
_RATE_POWER = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12}


def parse_rate(text: str) -> GbPerSecond:
    """GB/s (10^9 bytes a second) of a link: "1 Gbit/s", "100Mbps", "120 MB/s". A small b is bits, a large one bytes."""
    match = re.fullmatch(_RATE, text, re.IGNORECASE)
    if match is None:
        raise InvalidInput(
            Message('"{text}" is no rate of data: a number with Mbit/s, Gbit/s or MB/s.', text=text),
            Message("Write for example: 1 Gbit/s, or 120 MB/s."),
        )
    number, power, unit = match.groups()
    bits = 8.0 if unit.casefold() == "bit" or unit == "b" else 1.0
    return _above_zero(parse_number(number), text) * 10.0 ** _RATE_POWER[power.casefold()] / bits / BYTES_PER_GB


_CURRENCIES = {
    "$": "USD", "us$": "USD", "€": "EUR", "£": "GBP", "₹": "INR", "c$": "CAD", "a$": "AUD", "hk$": "HKD", "s$": "SGD",
    "元": "CNY", "cn¥": "CNY", "jp¥": "JPY", "₩": "KRW", "zł": "PLN",
}  # fmt: skip
_PER: dict[str, PriceBasis] = {
    **dict.fromkeys(("h", "hr", "hour"), "hour"),
    **dict.fromkeys(("d", "day"), "day"),
    **dict.fromkeys(("mo", "month"), "month"),
    **dict.fromkeys(("y", "yr", "year"), "year"),
    "kwh": "kwh",
}
_PRICE_BASIS = r"(?:(?:/|\bper\b|\ban?\b)\s*([a-z]+)\s*)?"
_MONEY = rf"\s*([^0-9\s.,/+−-]*)\s*({_NUMBER})\s*((?!per\b|an?\b)[^0-9\s.,/]*?)\s*{_PRICE_BASIS}"


def parse_money(text: str) -> Money:
    """Reads "3.50", "€0.94", "0.94 EUR/h", "1.300,00 EUR/month" or "3.50 USD per hour". "¥" is refused: CNY or JPY."""
    match = re.fullmatch(_MONEY, text, re.IGNORECASE)
    per = _PER.get((match[4] or "hour").lower()) if match else None
    if match is None or per is None:
        raise InvalidInput(
            Message(
                '"{text}" is not an amount of money: a number, then a currency, then /h, /month or /year.', text=text
            ),
            Message('Write for example "3.50 USD", "0.94 EUR/h" or "1300 EUR/month".'),
        )
    codes = {_currency(sign) for sign in (match[1], match[3]) if sign}
    if len(codes) > 1:
        raise InvalidInput(
            Message('"{text}" names two currencies.', text=text), Message("Write one, such as 0.94 EUR.")
        )
    return Money(amount=parse_number(match[2]), currency=next(iter(codes), None), per=per if match[4] else None)


def _currency(sign: str) -> str:
    code = _CURRENCIES.get(sign.lower(), sign.upper())
    if re.fullmatch("[A-Z]{3}", code):
        return code
    raise InvalidInput(
        Message('The currency "{sign}" is not known or may be several.', sign=sign),
        Message("Use the code of three letters, such as USD, EUR, CNY or JPY."),
    )


def parse_fraction(text: str) -> Fraction:
    """0.125 of "12,5 %", 0.19 of "0.19"; "19" may be meant either way and is refused."""
    value = parse_number(text)
    if "%" not in text and value > 1:
        raise InvalidInput(
            Message('"{text}" is above 1 and has no per cent sign.', text=text.strip()),
            Message('Write "{text} %", or as a fraction {share:.4g}.', text=text.strip(), share=value / 100),
        )
    if not 0 <= value <= 1:
        raise InvalidInput(
            Message('"{text}" is outside 0 % to 100 %.', text=text.strip()),
            Message('Write for example "19 %" or "0.19".'),
        )
    return value


def parse_hours(text: str) -> Hours:
    """Hours of "160", "160 h" or any other duration above 0."""
    if re.fullmatch(_BARE, text):
        return _above_zero(parse_number(text), text)
    return _above_zero(parse_duration(text), text) / SECONDS_PER_HOUR


def parse_date(text: str) -> date:
    """A day as YYYY-MM-DD, and no other way: 03/04/2026 is two different days."""
    try:
        if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text.strip()):
            return date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            Message('There is no day "{text}" in the calendar.', text=text.strip()),
            Message("Check month (01 to 12) and day: write year-month-day, such as 2026-11-30."),
        ) from None
    raise InvalidInput(
        Message('"{text}" is not a date of the form YYYY-MM-DD.', text=text),
        Message("Write year-month-day with all digits, such as 2026-11-30."),
    )


def parse_moment(text: str) -> datetime:
    """A moment as in ISO 8601: 2026-11-30T22:58Z, 2026-11-30 23:58:00+01:00. Without a zone it is left without one."""
    try:
        if re.match("[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:", text.strip(), re.I):
            return datetime.fromisoformat(re.sub(" ?UTC$", "Z", text.strip().upper()))
    except ValueError:
        raise InvalidInput(
            Message('There is no moment "{text}".', text=text.strip()),
            Message("Check day, hour and minute: write for example 2026-11-30T22:58:00Z."),
        ) from None
    raise InvalidInput(
        Message('"{text}" is not a moment of the form YYYY-MM-DDThh:mm, with Z or an offset.', text=text.strip()),
        Message("Write for example 2026-11-30T22:58:00Z, or 2026-11-30T23:58:00+01:00."),
    )


def parse_count(text: str) -> int:
    """A whole number from 1 up."""
    value = _above_zero(parse_number(text), text)
    if not value.is_integer() or "%" in text:
        raise InvalidInput(Message('"{text}" is not a whole number.', text=text), Message('Write a count such as "8".'))
    return int(value)


def parse_positive(text: str) -> float:
    """Any number above 0."""
    return _above_zero(parse_number(text), text)


def _above_zero(value: float, text: str) -> float:
    if value > 0:
        return value
    raise InvalidInput(
        Message('"{text}" is not above 0.', text=text.strip()), Message('Write a number such as "8" or "1.5".')
    )


def parse_range(text: str) -> Range:
    """Bounds of "80GB..", "..24GB", "24..48GB" (GiB a GPU), "1..8" or "4" (GPUs). A unit at one end holds for both."""
    low, dots, high = (part.strip() for part in text.partition(".."))
    if not low and not high:
        raise InvalidInput(
            Message('"{text}" is not a range: at least one bound is needed.', text=text),
            Message('Write for example "80GB..", "24GB..48GB", "1..8" or "4".'),
        )
    units = [unit[0] for end in (high, low) if (unit := re.search("[A-Za-z]+$", end))]
    ends = [_bound(end, units[0] if units else "") for end in (low, high if dots else low)]
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise InvalidInput(
            Message('The range "{text}" is empty: its upper bound is below its lower one.', text=text),
            Message('Write the smaller bound first, such as "24GB..48GB".'),
        )
    return Range(low=ends[0], high=ends[1], kind="memory" if units else "count")


def _bound(end: str, unit: str) -> float | None:
    if not end:
        return None
    if not unit:
        return parse_count(end)
    return parse_memory(end if end[-1].isalpha() else end + unit)
