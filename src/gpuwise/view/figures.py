"""How figures are written: the one place where a number becomes words.

Rounding happens here and nowhere before, so that sums are made of full values (user case UC-085).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import takewhile

from gpuwise.errors import Message
from gpuwise.estimate import Z80, Estimate, Interval
from gpuwise.locale import _, month, ngettext, share, with_commas, words
from gpuwise.locale import number as signs
from gpuwise.model import Fx, Offer
from gpuwise.units import HOURS_PER_MONTH, SECONDS_PER_DAY, SECONDS_PER_HOUR
from gpuwise.view.page import Cell
from gpuwise.view.vocabulary import error

DIGITS = 3
"""Significant digits of a figure with an interval; more would claim too much."""

ERRORS_NAMED = 4
"""The largest errors that a hint names; `explain` lists all."""

SMALL_SD = 0.0039
"""The 80 % factor of a smaller error (a log standard deviation) reads 1.00: it is counted and not named."""

TIME_UNITS = {"min": 60.0, "h": SECONDS_PER_HOUR, "d": SECONDS_PER_DAY}


def significant(value: float, digits: int) -> int:
    """Decimals that leave `digits` significant ones; an integer part is never cut."""
    return 0 if value == 0 else max(0, digits - 1 - math.floor(math.log10(abs(value))))


def decimals(value: float) -> int:
    """Decimals of a figure with an interval: 1,132, 14.2, 0.84, 0.0842."""
    return min(2, significant(value, DIGITS)) if abs(value) >= 0.1 else significant(value, DIGITS)


def written(value: float, form: str) -> str:
    """A number in a format of Python's, with the signs of the reader's language: written(2.5, "g")."""
    return signs(format(value, form))


def number(value: float) -> str:
    return written(value, f",.{decimals(value)}f")


def exact_number(value: float, least: int = 0) -> str:
    """All digits that a person can check by hand (at most six significant), at least `least` decimals."""
    text = f"{value:,.{significant(value, 6)}f}"
    head, point, tail = text.partition(".")
    return signs(f"{head}.{tail.rstrip('0').ljust(least, '0')}".rstrip(".") if point else text)


def count(value: float) -> str:
    return written(value, ",.0f")


def amount(usd: float, fx: Fx | None = None) -> str:
    """Money in a sentence or on a bill, two decimals, four digits where it is less than one: 14.20, 0.0084."""
    value = in_currency(usd, fx)
    return written(value, ",.2f") if abs(value) >= 1 or value == 0 else exact_number(float(f"{value:.4g}"), 2)


def in_currency(usd: float, fx: Fx | None) -> float:
    return usd if fx is None else usd / fx.usd_per_unit


def code(fx: Fx | None) -> str:
    return "USD" if fx is None else fx.code


def percent(fraction: float) -> str:
    """A share: 41 %."""
    return exact_percent(fraction, ".0f") if fraction >= 0.01 or fraction == 0 else "<" + share("1")


def exact_percent(fraction: float, form: str) -> str:
    """A share as it is, in a format of Python's: 0.4 %."""
    return share(format(100 * fraction, form))


def chance(probability: float) -> str:
    """A probability; it never claims to be sure."""
    bounds = "<" + share("1") if probability < 0.01 else ">" + share("99") if probability > 0.99 else ""
    return bounds or percent(probability)


def chance_in_words(probability: float) -> str:
    """The same in a sentence: less than 1 %, 41 %, more than 99 %."""
    shown = chance(probability)
    words = {"<": _("less than {percent}"), ">": _("more than {percent}")}
    return words[shown[0]].format(percent=shown[1:]) if shown[0] in words else shown


def duration(seconds: float) -> str:
    """45 s, 35 min, 9 h 20 min, 4 d 6 h: the two largest units."""
    if seconds < 59.5:
        return _("{n} s").format(n=f"{seconds:.0f}")
    minutes = round(seconds / 60)
    if minutes < 60:
        return _("{n} min").format(n=minutes)
    if minutes < 72 * 60:
        text = _("{h} h {min} min") if minutes % 60 else _("{h} h")
        return text.format(h=minutes // 60, min=minutes % 60)
    hours = round(seconds / SECONDS_PER_HOUR)
    return _("{d} d {h} h").format(d=hours // 24, h=hours % 24)


def time_unit(seconds: list[float]) -> str:
    """One unit for a column of times, so that they can be compared: the one that suits their median."""
    middle = sorted(seconds)[len(seconds) // 2] if seconds else SECONDS_PER_HOUR
    return "min" if middle < 5400 else "h" if middle < 3 * SECONDS_PER_DAY else "d"


def day(when: date | None, precision: str = "day") -> str:
    """The day a price was seen, as a table has it in every language: columns of ISO 8601 sort and align. A bound says
    so: the price list names no exact day for it."""
    if when is None:
        return _("undated")
    return {
        "month": f"{when:%Y-%m}",
        "not-before": _("after {date}").format(date=when.isoformat()),
        "first-recorded": _("since {date}").format(date=when.isoformat()),
    }.get(precision, when.isoformat())


def year_month(text: str) -> str:
    """A month as the core counts them, 2026-06, as a sentence has it."""
    return month(date.fromisoformat(f"{text}-01"))


def of_day(when: date | None, precision: str = "day") -> str:
    """The same in a sentence: price of 2026-06-15; price without a date."""
    if when is None:
        return _("price without a date")
    bounds = {
        "not-before": _("price of {date} or later"),
        "first-recorded": _("price unchanged since {date}"),
    }
    return bounds.get(precision, _("price of {date}")).format(date=month(when) if precision == "month" else when)


def unknown(reason: Message | None) -> Cell:
    """A figure that is not known, with the reason on hover; never 0."""
    return Cell(shown=_("unknown"), title=words(reason) if reason else _("the source does not say"))


def estimate_cell(estimate: Estimate, scale: float) -> Cell:
    """value / scale with its 80 % interval; on hover what makes the interval as wide as it is. value: unscaled."""
    inside = estimate.interval()
    shown, ends = rounded(inside, scale)
    return Cell(shown=shown, span="–".join(ends), value=inside, title=budget(estimate))


def rounded(interval: Interval, scale: float) -> tuple[str, tuple[str, ...]]:
    """Value and both bounds in another unit: "14.2", ("11.8", "17.1"); no bounds where rounding makes them one."""
    places = decimals(interval.value / scale)
    low, shown, high = (written(x / scale, f",.{places}f") for x in (interval.low, interval.value, interval.high))
    return shown, () if low == high else (low, high)


def interval(given: Interval, scale: float = 1.0) -> str:
    """A figure with its 80 % interval: 14.2 (13.9 to 14.5); without one where rounding makes the ends one."""
    shown, ends = rounded(given, 1 / scale)
    return _("{value} ({low} to {high})").format(value=shown, low=ends[0], high=ends[1]) if ends else shown


def seconds(value: float) -> str:
    """0.45 s, 12.3 s, 4 min."""
    return _("{n} s").format(n=number(value)) if value < 100 else duration(value)


def budget(estimate: Estimate) -> str:
    """The error budget in words, largest first: "80 % factors: time to prepare ×/÷ 1.17, price age ×/÷ 1.04"; without
    any error: exact. Errors too small to show are counted."""
    parts = sorted(estimate.spread, key=lambda s: -abs(s[1]))
    named = [f"{error(name)} {factor(sd)}" for name, sd in parts[:ERRORS_NAMED] if abs(sd) > SMALL_SD]
    rest = len(parts) - len(named)
    if not parts:
        return _("exact")
    smaller = ngettext("{n} smaller one", "{n} smaller ones", rest).format(n=rest)
    listed = [*named, *([smaller] if rest else [])]
    return _("80 % factors: {errors}").format(errors=with_commas(listed))


def factor(log_sd: float) -> str:
    """The 80 % interval that one error alone would leave: × or ÷ so much. The one way in which errors are stated."""
    return f"×/÷ {written(math.exp(Z80 * abs(log_sd)), '.2f')}"


def price(offer: Offer, fx: Fx | None, usd_per_hour: float | None = None, per: str = "charged") -> Cell:
    """The price as it is charged: each row names its own unit, so that hours and months are never mixed up.

    usd_per_hour: what is really billed, where it is not the listed price. per: charged, or one unit for all rows (hour,
    month of 730 h), used all the time.
    """
    hourly = offer.price_usd_per_hour if usd_per_hour is None else usd_per_hour
    if hourly is None or not math.isfinite(hourly):
        return unknown(offer.reasons.get("price_usd_per_hour"))
    local = in_currency(hourly, fx)
    charged = "hour" if offer.price_unit == "term" and offer.term_h is None else offer.price_unit
    unit = charged if per == "charged" else per
    title = _native(offer) if charged == "hour" else _used(charged, local)
    if unit == "hour":
        return Cell(
            shown=_("{price} /h").format(price=exact_number(_rough(local, charged), 2)), value=hourly, title=title
        )
    hours = HOURS_PER_MONTH if unit == "month" else (offer.term_h or 0)
    shown = _("{price} /month") if unit == "month" else _("{price} /{term}")
    shown = shown.format(price=amount(hourly * hours, fx), term=term(offer.term_h or 0))
    return Cell(shown=shown, value=hourly, title=title)


def _rough(local: float, charged: str) -> float:
    """An hour of what is charged by the month is no price that anybody asks: four digits say enough."""
    return local if charged == "hour" else float(f"{local:.4g}")


def _used(charged: str, local: float) -> str:
    used = (
        _("{price} an hour if used the whole month")
        if charged == "month"
        else _("{price} an hour if used all the time")
    )
    return used.format(price=exact_number(_rough(local, charged), 2))


def term(hours: float) -> str:
    """A commitment in words: 1 month, 12 months, 3 years are all given in months."""
    return _("{n} mo").format(n=f"{hours / HOURS_PER_MONTH:.0f}")


def _native(offer: Offer) -> str:
    if offer.currency == "USD" or offer.price_native is None:
        return ""
    native = exact_number(offer.price_native, 2)
    return _("published as {price} {currency}").format(price=native, currency=offer.currency)


def gpus(offer: Offer) -> str:
    """8 × H100 SXM5 80 GB; an offer that does not say which variant names them all."""
    return f"{offer.accelerators} × {devices(offer.accelerator)}"


def devices(names: str) -> str:
    """One accelerator, or those that it may be, with what they share said once: V100 PCIe or SXM2 16 GB.

    names: ids joined by | (in an offer), by / (in a platform's name), or by + where all are in one machine.
    """
    if "+" in names:
        return " + ".join(device(name) for name in names.split("+"))
    variants = [device(name).split() for name in re.split(r"[|/]", names)]
    alike = len({len(words) for words in variants}) == 1
    own = len(variants[0]) - 1 if alike else 1
    head = _shared(variants, range(min(own, *(len(v) - 1 for v in variants))))
    tail = _shared(variants, range(-1, head - own - 1, -1)) if alike else 0
    either = _(" or ").join(" ".join(v[head : len(v) - tail]) for v in variants)
    return " ".join([*variants[0][:head], either, *variants[0][len(variants[0]) - tail :]])


def _shared(variants: Sequence[Sequence[str]], places: Iterable[int]) -> int:
    """How many of these places hold the same word in all variants, up to the first that does not."""
    same = takewhile(lambda place: len({v[place] for v in variants}) == 1, places)
    return sum(1 for _place in same)


_SIZE = re.compile(r"\b(\d+)GB\b")
_LOWER = re.compile(r"v\d[a-z]?$")
_SPELLED = {
    word.lower(): word
    for word in ("PCIe", "Ti", "Ada", "Super", "Titan", "Quadro", "Server", "Max", "Xp", "half", "Gaudi2", "Gaudi3")
}


def device(accelerator: str) -> str:
    """An accelerator's id as it is written: h100-sxm5-80gb becomes H100 SXM5 80 GB."""
    return _SIZE.sub(r"\1 GB", " ".join(_device_word(part) for part in accelerator.split("-")))


def _device_word(part: str) -> str:
    return _SPELLED.get(part.lower(), part.lower() if _LOWER.match(part.lower()) else part.upper())
