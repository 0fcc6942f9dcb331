"""How a language writes numbers, shares and days. Babel knows, and is imported only where the language is not English.

In English numbers are 1,234.5, shares have a space before their sign (SI brochure, 9th edition, 5.4.7), and days are
those of ISO 8601. Machines get these whatever the language: JSON and CSV do not come here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache
from string import Formatter
from typing import Any

PLACES = str.maketrans({",": "\0", ".": "\1"})


@dataclass(frozen=True, slots=True)
class Writing:
    """group, point: the signs in a number; percent: what follows the number of a share; day, month: a date in words."""

    group: str
    point: str
    percent: str
    day: Callable[[date], str]
    month: Callable[[date], str]

    def number(self, text: str) -> str:
        """A number that was written as 1,234.5."""
        if (self.group, self.point) == (",", "."):
            return text
        return text.translate(PLACES).replace("\0", self.group).replace("\1", self.point)

    def share(self, text: str) -> str:
        """A number of per cent, written as 1,234.5, with its sign."""
        return self.number(text) + self.percent


ENGLISH = Writing(",", ".", " %", date.isoformat, lambda when: f"{when:%Y-%m}")


@cache
def of_language(language: str) -> Writing:
    """The habits of a language by its name: zh_CN, de."""
    from babel import Locale, dates, numbers

    locale = Locale.parse(language)
    pattern = locale.percent_formats[None].pattern
    return Writing(
        group=numbers.get_group_symbol(locale),
        point=numbers.get_decimal_symbol(locale),
        percent=pattern.lstrip("#,0."),
        day=lambda when: dates.format_date(when, "long", locale=locale),
        month=lambda when: dates.format_skeleton("yMMMM", when, locale=locale),
    )


class Filled(Formatter):
    """Fills a translated text: numbers with a format, shares and days as the language writes them."""

    def __init__(self, writing: Writing) -> None:
        self.writing = writing

    def format_field(self, value: Any, format_spec: str) -> str:
        if type(value) is date:
            return self.writing.day(value) if not format_spec else format(value, format_spec)
        if format_spec.endswith("%"):
            return self.writing.share(f"{100 * value:{format_spec[:-1]}f}")
        text = format(value, format_spec)
        return self.writing.number(text) if format_spec and isinstance(value, int | float) else text


@cache
def in_charts(language: str) -> dict[str, Any]:
    """The same for charts: the `locale` of a Vega configuration."""
    from babel import Locale

    locale, writing = Locale.parse(language), of_language(language)
    months, days = locale.months["format"], locale.days["format"]
    return {
        "number": {"decimal": writing.point, "thousands": writing.group, "grouping": [3], "currency": ["", ""],
                   "percent": writing.percent},
        "time": {
            "dateTime": "%x %X", "date": "%Y-%m-%d", "time": "%H:%M:%S", "periods": ["AM", "PM"],
            "days": [days["wide"][(i - 1) % 7] for i in range(7)],
            "shortDays": [days["abbreviated"][(i - 1) % 7] for i in range(7)],
            "months": [months["wide"][i] for i in range(1, 13)],
            "shortMonths": [months["abbreviated"][i] for i in range(1, 13)],
        },
    }  # fmt: skip
