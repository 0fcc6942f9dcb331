"""Parsing at the door, formatting at the exit, and the unit in every number's name."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from datetime import date
from typing import get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise import catalogue, model, offer, request, units
from gpuwise.errors import InvalidInput
from gpuwise.estimate import Estimate, Interval
from gpuwise.measure import record as run_record
from gpuwise.units import Money, NumberFormat, Range

NBSP, THIN, NARROW = "\u00a0", "\u2009", "\u202f"
POINT = NumberFormat(decimal=".")


def test_a_year_of_the_price_lists_has_12_months_of_730_hours():
    assert units.HOURS_PER_YEAR == units.MONTHS_PER_YEAR * units.HOURS_PER_MONTH
    assert units.HOURS_PER_WEEK == units.DAYS_PER_WEEK * units.HOURS_PER_DAY
    assert units.SECONDS_PER_DAY == units.HOURS_PER_DAY * units.SECONDS_PER_HOUR
    assert (units.DAYS_PER_YEAR, pytest.approx(30.41667)) == (365.0, units.DAYS_PER_MONTH)
    assert (pytest.approx(52.142857), pytest.approx(4.345238)) == (units.WEEKS_PER_YEAR, units.WEEKS_PER_MONTH)


# ---- names ------------------------------------------------------------------------------------------------------


IN_THE_UNIT_OF_ITS_FIELD = (run_record.Gauge,)
"""As an Interval: the name of the field that holds it says its unit."""


def records():
    for module in (model, offer, request, run_record):
        for value in vars(module).values():
            ours = dataclasses.is_dataclass(value) and value.__module__.startswith(module.__name__)
            if ours and value not in IN_THE_UNIT_OF_ITS_FIELD:
                yield value


def holds_a_number(hint) -> bool:
    """A mapping's numbers have their unit in the keys, which name fields."""
    if get_origin(hint) is Mapping:
        return False
    if hint in (int, float, Estimate, Interval, *IN_THE_UNIT_OF_ITS_FIELD):
        return True
    return any(holds_a_number(arg) for arg in get_args(hint) if isinstance(arg, type) or get_args(arg))


def number_fields():
    for record in records():
        for name, hint in get_type_hints(record).items():
            if holds_a_number(hint):
                yield record, name


def unit_of(name: str) -> str | None:
    fitting = [suffix for suffix in units.SUFFIXES if f"_{name}".endswith(suffix)]
    return units.SUFFIXES[max(fitting, key=len)] if fitting else None


def unit_stands_beside(record, name: str) -> bool:
    return name in units.BESIDE and set(units.BESIDE[name]) <= {f.name for f in dataclasses.fields(record)}


def test_every_number_field_names_its_unit():
    seen = list(number_fields())
    assert len(seen) > 90, "the walk finds the fields"
    nameless = [
        f"{record.__name__}.{name}"
        for record, name in seen
        if not (unit_of(name) or name in units.COUNTS or unit_stands_beside(record, name))
    ]
    assert nameless == []


def test_every_number_column_of_a_catalogue_names_its_unit():
    assert [c for c in catalogue.NUMBERS if not (unit_of(c) or c in units.COUNTS or c in units.BESIDE)] == []


def test_no_name_is_exempt_that_no_record_has():
    assert {name for _, name in number_fields()} | set(catalogue.NUMBERS) >= units.COUNTS | set(units.BESIDE)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("time_s", "s"),
        ("samples_per_s", "samples a second"),
        ("price_usd_per_hour", "USD an hour"),
        ("hours_per_month", "h a month"),
        ("samples", None),
        ("price", None),
    ],
)
def test_the_longest_suffix_that_fits_names_the_unit(name, unit):
    assert unit_of(name) == unit


# ---- durations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 h 30 min", 5400),
        ("1h30m", 5400),
        ("90min", 5400),
        ("1:30:00", 5400),
        ("1.5h", 5400),
        ("1,5 h", 5400),
        ("45 s", 45),
        ("350 ms", 0.35),
        ("2 d", 172_800),
        ("1 d 2 h 3 min 4 s", 93_784),
        ("1 week", 604_800),
        ("1 000 s", 1000),
        (f"1{NARROW}000 s", 1000),
        (" 2 Hours ", 7200),
        ("0 min", 0),
    ],
)
def test_a_duration_is_read_as_seconds(text, seconds):
    assert units.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h",
        "1:30",
        "1:75:00",
        "30 min 1 h",
        "1 h 2 h",
        "-5 s",
        "5 fortnights",
        "1 h 30",
        "nan h",
        "inf s",
        "1,234 h",
        "٣ h",
    ],
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(InvalidInput):
        units.parse_duration(text)


def test_a_duration_without_a_unit_is_refused_with_a_hint_that_repeats_the_number():
    with pytest.raises(InvalidInput) as error:
        units.parse_duration("90")
    assert '"90"' in str(error.value.message)
    assert '"90 min"' in str(error.value.hint)


# ---- memory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gib"),
    [
        ("80 GB", 80),
        ("80GB", 80),
        ("80g", 80),
        ("23028 MiB", 23028 / 1024),
        ("22 GiB", 22),
        ("1.5 TB", 1536),
        ("22,5 GiB", 22.5),
    ],
)
def test_the_memory_of_a_gpu_is_read_as_sold(text, gib):
    assert units.parse_memory(text) == pytest.approx(gib)


@pytest.mark.parametrize(("text", "gib"), [("80 GB", 74.5058), ("1 TB", 931.3226), ("80 GiB", 80), ("512 MiB", 0.5)])
def test_host_memory_can_be_read_in_decimal_units(text, gib):
    assert units.parse_memory(text, decimal=True) == pytest.approx(gib, rel=1e-6)


@pytest.mark.parametrize("text", ["80", "GB", "", "80 GW", "-80 GB", "0 GB", "80 GB RAM", "eighty GB", "1,024 MB"])
def test_what_is_no_memory_size_is_refused(text):
    with pytest.raises(InvalidInput) as error:
        units.parse_memory(text)
    assert str(error.value.hint)


# ---- money ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "money"),
    [
        ("3.50", Money(amount=3.5)),
        ("3.50 USD", Money(amount=3.5, currency="USD")),
        ("USD 3.50", Money(amount=3.5, currency="USD")),
        ("$3.50/hr", Money(amount=3.5, currency="USD", per="hour")),
        ("US$ 3.50 USD", Money(amount=3.5, currency="USD")),
        ("€0.94", Money(amount=0.94, currency="EUR")),
        ("0,94 €", Money(amount=0.94, currency="EUR")),
        ("0.94 EUR/h", Money(amount=0.94, currency="EUR", per="hour")),
        ("1.300,00 EUR/month", Money(amount=1300, currency="EUR", per="month")),
        ("3.50 USD per hour", Money(amount=3.5, currency="USD", per="hour")),
        ("0.30 eur/kWh", Money(amount=0.3, currency="EUR", per="kwh")),
        ("1'234.50 CHF", Money(amount=1234.5, currency="CHF")),
        ("5129 CNY per month", Money(amount=5129, currency="CNY", per="month")),
        ("0", Money(amount=0)),
    ],
)
def test_money_is_read_with_its_currency_and_basis(text, money):
    assert units.parse_money(text) == money


@pytest.mark.parametrize(
    "text",
    [
        "",
        "USD",
        "-1 USD",
        "¥5129",
        "3.50 USD/GPU/h",
        "3.50 USD/fortnight",
        "3.50 dollars",
        "$3 EUR",
        "1,234 USD",
        "nan USD",
        "3 per",
    ],
)
def test_what_is_no_clear_amount_of_money_is_refused(text):
    with pytest.raises(InvalidInput) as error:
        units.parse_money(text)
    assert str(error.value.hint)


# ---- fractions, hours, dates, counts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"), [("12,5 %", 0.125), ("19%", 0.19), ("0.19", 0.19), ("100 %", 1), ("1", 1), ("0", 0)]
)
def test_a_fraction_is_read_from_per_cent_or_a_share_of_one(text, value):
    assert units.parse_fraction(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["19", "150 %", "-5 %", "-0.1", "half", "", "%"])
def test_what_is_no_clear_fraction_is_refused(text):
    with pytest.raises(InvalidInput):
        units.parse_fraction(text)


@pytest.mark.parametrize(("text", "hours"), [("160", 160), ("160 h", 160), ("6 d", 144), ("90 min", 1.5)])
def test_hours_are_read_with_or_without_their_unit(text, hours):
    assert units.parse_hours(text) == pytest.approx(hours)


@pytest.mark.parametrize("text", ["0", "-1", "0 h", "many", ""])
def test_hours_that_are_not_above_zero_are_refused(text):
    with pytest.raises(InvalidInput):
        units.parse_hours(text)


def test_a_date_is_read_in_iso_form():
    assert units.parse_date(" 2026-11-30 ") == date(2026, 11, 30)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-02-30", "no day"),
        ("2026-13-01", "no day"),
        ("03/04/2026", "not a date"),
        ("30.11.2026", "not a date"),
        ("20261130", "not a date"),
        ("2026-W48-1", "not a date"),
        ("2026-1-3", "not a date"),
        ("yesterday", "not a date"),
        ("", "not a date"),
    ],
)
def test_a_date_of_another_form_or_of_no_calendar_is_refused_with_the_form_to_write(text, says):
    with pytest.raises(InvalidInput, match=says) as error:
        units.parse_date(text)
    assert "2026-11-30" in str(error.value.hint)


@given(st.dates())
def test_an_iso_date_reads_back(day):
    assert units.parse_date(day.isoformat()) == day


def test_a_count_is_a_whole_number_from_one_up():
    assert [units.parse_count(t) for t in ("1", "79433", "1 000", "1e6")] == [1, 79433, 1000, 1_000_000]


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "8x", "100 %", "1,000", "", "inf"])
def test_what_is_no_count_is_refused(text):
    with pytest.raises(InvalidInput):
        units.parse_count(text)


@pytest.mark.parametrize("text", ["0", "-0.1", "x"])
def test_a_positive_number_is_above_zero(text):
    assert units.parse_positive("0,5") == 0.5
    with pytest.raises(InvalidInput):
        units.parse_positive(text)


# ---- ranges -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "low", "high", "kind"),
    [
        ("80GB..", 80, None, "memory"),
        ("..24GB", None, 24, "memory"),
        ("24GB..48GB", 24, 48, "memory"),
        ("24..48GB", 24, 48, "memory"),
        ("24 GB", 24, 24, "memory"),
        ("1..8", 1, 8, "count"),
        ("4..", 4, None, "count"),
        ("4", 4, 4, "count"),
    ],
)
def test_a_range_is_read_with_its_kind(text, low, high, kind):
    assert units.parse_range(text) == Range(low=low, high=high, kind=kind)


@pytest.mark.parametrize(
    "text", ["", "..", "48GB..24GB", "8..1", "1.5..2", "0..4", "a..b", "1..2..3", "GB..", "80GB..4W"]
)
def test_a_range_that_is_empty_or_unclear_is_refused(text):
    with pytest.raises(InvalidInput):
        units.parse_range(text)


def test_a_range_holds_its_bounds():
    bounds = units.parse_range("24GB..48GB")
    assert [bounds.holds(v) for v in (23.9, 24, 48, 48.1)] == [False, True, True, False]
    assert units.parse_range("80GB..").holds(1e9)


# ---- numbers of tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.234,56", 1234.56),
        ("0,75", 0.75),
        ("-2,40", -2.40),
        ("\u22122,40", -2.40),
        ("9,99", 9.99),
        (f"1{NARROW}234,56", 1234.56),
        (f"1{NBSP}234,56", 1234.56),
        (f"1{THIN}234.5", 1234.5),
        ("1'234.50", 1234.5),
        ("1’234.50", 1234.5),
        ("1.234.567", 1_234_567),
        ("12,5 %", 0.125),
        ("12,345,678", 12_345_678),
        ("0,750", 0.75),
        ("1234,567", 1234.567),
        ("+3", 3),
        (".5", 0.5),
        ("1.5e-3", 0.0015),
    ],
)
def test_uc_115_a_number_is_read_in_the_format_its_column_shows(text, value):
    assert units.parse_number(text, units.number_format([text])) == pytest.approx(value)


def test_uc_115_the_format_is_decided_by_the_column_not_by_the_cell():
    column = ["1.234,56", "9,99", "1.234", "", "n/a"]
    found = units.number_format(column)
    assert (found.decimal, found.thousands, found.note) == (",", ".", None)
    assert [units.parse_number(t, found) for t in column[:3]] == [1234.56, 9.99, 1234.0]


def test_uc_115_a_person_can_set_the_format_by_an_example():
    assert units.parse_number("1.234", units.number_format(["1.234,56"])) == 1234


def test_uc_116_comma_and_three_digits_alone_are_refused_with_both_readings():
    with pytest.raises(InvalidInput) as error:
        units.number_format(["1,234", "2,500"])
    assert "1.234" in str(error.value.message)
    assert "1234" in str(error.value.message)


def test_uc_116_a_second_value_decides_what_the_comma_means():
    found = units.number_format(["1,234", "1,500.95"])
    assert [units.parse_number(t, found) for t in ("1,234", "1,500.95")] == [1234, 1500.95]


def test_uc_116_point_and_three_digits_alone_are_read_as_a_decimal_with_a_note():
    found = units.number_format(["1.234"])
    assert units.parse_number("1.234", found) == 1.234
    assert found.note is not None
    assert "1234" in str(found.note)


@pytest.mark.parametrize("column", [["0.526", "3.060"], ["1.5", "2"], ["7"], []])
def test_a_plain_column_needs_no_note(column):
    assert units.number_format(column) == POINT


@pytest.mark.parametrize(
    "column", [["1.234.567", "0.5"], ["1,234", "1 234", "1.5"], ["1.5", "2,5"], ["1,234", "1.234"], ["19 %", "19"]]
)
def test_a_column_that_contradicts_itself_is_refused(column):
    with pytest.raises(InvalidInput):
        units.number_format(column)


@pytest.mark.parametrize(
    "text", ["", "NaN", "n/a", "inf", "1e999", "12,34,567", "1 23", "8x", "--1", "0x10", "1_000", "٣"]
)
def test_what_is_no_number_is_refused_by_name(text):
    with pytest.raises(InvalidInput) as error:
        units.parse_number(text, POINT)
    assert f'"{text}"' in str(error.value.message)


FORMATS = [
    NumberFormat(decimal=d, thousands=t)
    for d, t in [(".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'")]
]


def write(value: float, signs: NumberFormat) -> str:
    return f"{value:,.2f}".translate(str.maketrans({",": signs.thousands, ".": signs.decimal}))


@given(st.lists(st.integers(-(10**9), 10**9).map(lambda n: n / 100), min_size=1), st.sampled_from(FORMATS))
def test_a_column_of_any_format_reads_back(values, signs):
    column = [write(v, signs) for v in values]
    found = units.number_format(column)
    assert [units.parse_number(t, found) for t in column] == values


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_python_wrote_reads_back_exactly(value):
    assert units.parse_number(repr(value), POINT) == value


@given(st.text(max_size=20))
def test_no_text_makes_a_parser_fail_in_another_way_than_by_invalid_input(text):
    parsers = (
        units.parse_duration, units.parse_memory, units.parse_money, units.parse_fraction, units.parse_hours,
        units.parse_date, units.parse_count, units.parse_positive, units.parse_range, units.parse_number,
    )  # fmt: skip
    for parse in parsers:
        with contextlib.suppress(InvalidInput):
            parse(text)
