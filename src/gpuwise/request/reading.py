"""From texts to a request: one way for the command line, a TOML file and a query string."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from typing import Any, TypeVar

from gpuwise import units
from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.request import amounts
from gpuwise.request.about import Option, options
from gpuwise.request.billing import NEVER
from gpuwise.request.places import country
from gpuwise.request.types import CHOICES, EarlyStopEpochs, Takes
from gpuwise.request.wishes import gpu_ranges, refuse_contradictions
from gpuwise.units import Usd, UsdPerHour

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Kind:
    """How texts of one kind are read. split: commas part several values. parse raises InvalidInput."""

    parse: Callable[[str], Any]
    split: bool = False


def parse(
    request: type[R],
    raw: Mapping[str, object],
    *,
    usd_per: Callable[[str], float] | None = None,
    spelled: Mapping[str, str] | None = None,
) -> R:
    """A request from what a person said: option -> text, list of texts or bool.

    So a command line, a TOML file (whose numbers and dates count as the texts that they are) and a query string give
    it; max_price is max-price. usd_per: USD for one unit of a currency, asked only where an amount is in another one.
    spelled: option -> how the person wrote it, for the errors. Raises InvalidInput, which names option, value and
    rule and says what to do, and UnknownName for an option that there is not.
    """
    asked = options(request)
    spell = {name: option.spelled for name, option in asked.items()} | dict(spelled or {})
    verb = request.__name__.removesuffix("Request").lower()
    said = {_known(name, verb, asked, spell): value for name, value in raw.items()}
    _refuse_gaps(asked.values(), said)
    values = {name: _values(asked[name], value, spell[name]) for name, value in said.items()}
    currency = values.get("currency", "USD")
    usd_per = _with_own_rate(currency, values.get("rate"), usd_per)
    for name, value in values.items():
        if isinstance(value, units.Money):
            values[name] = _usd(value, asked[name].kind, spell[name], currency, usd_per)
    for name in (name for name, value in values.items() if asked[name].kind == "promise"):
        values[name] = tuple(
            said._replace(usd_per_month=_usd(said.usd_per_month, "money", spell[name], currency, usd_per))
            for said in values[name]
        )
    named = {asked[name].field: value for name, value in values.items()}
    made = request(**named, **({"said": frozenset(named)} if hasattr(request, "said") else {}))
    refuse_contradictions(made)
    return made


def _with_own_rate(
    currency: str, usd_per_unit: float | None, usd_per: Callable[[str], float] | None
) -> Callable[[str], float] | None:
    """The person's own rate holds for the currency that is shown."""
    if usd_per_unit is None:
        return usd_per

    def own(code: str) -> float:
        if code == currency or usd_per is None:
            return usd_per_unit
        return usd_per(code)

    return own


def _known(name: str, verb: str, asked: Mapping[str, Option], spelled: Mapping[str, str]) -> str:
    tidy = name.replace("_", "-")
    if tidy in asked:
        return tidy
    near = get_close_matches(tidy.lower(), asked)
    look = Message("See what there is: gpuwise {verb} --help", verb=verb)
    raise UnknownName(
        Message("There is no option {name}.", name=spelled.get(tidy, name)), _did_you_mean(near, look), near
    )


def _refuse_gaps(asked: Collection[Option], said: Mapping[str, object]) -> None:
    for option in asked:
        if option.required and said.get(option.name) in (None, [], ()):
            raise InvalidInput(
                Message("{what} is missing: {help}", what=option.spelled, help=option.help),
                Message("Give it, for example: {example}", example=option.example),
            )


def _values(option: Option, given: object, spelled: str) -> Any:
    """What one option says, parsed: one value, or a tuple where it may be said several times."""
    if option.kind == "flag":
        return given if isinstance(given, bool) else _value(option, given, spelled)
    kind = KINDS[option.kind]
    texts = [
        t for part in (given if isinstance(given, list | tuple) else (given,)) for t in _texts(part, kind, spelled)
    ]
    if option.repeats:
        return tuple(_value(option, t, spelled) for t in texts)
    if len(texts) > 1:
        raise InvalidInput(
            Message("{option} can be said only once.", option=spelled), Message("Leave all but one out.")
        )
    return _value(option, texts[0] if texts else "", spelled)


def _texts(part: object, kind: Kind, spelled: str) -> list[str]:
    if isinstance(part, bool) or not isinstance(part, str | int | float | date):
        raise InvalidInput(
            Message("{option} is {value}: it needs a text or a number.", option=spelled, value=str(part)),
            Message("Write the value as on the command line."),
        )
    return str(part).split(",") if kind.split else [str(part)]


def _value(option: Option, text: object, spelled: str) -> Any:
    """One text, read by the rule of its kind; an error says which option it was given to."""
    if option.kind == "command":  # word for word
        return str(text)
    tidy = str(text).strip()
    if not tidy:
        raise InvalidInput(
            Message("{option} is empty.", option=spelled),
            Message("Write for example: {example}", example=option.example or "true"),
        )
    try:
        return KINDS[option.kind].parse(tidy)
    except InvalidInput as error:
        raise at(spelled, error) from None


def at(spelled: str, error: InvalidInput) -> InvalidInput:
    """The same error, saying which option it is about."""
    problem = Message("{option}: {problem}", option=spelled, problem=error.message)
    if isinstance(error, UnknownName):
        return UnknownName(problem, error.hint, error.nearest)
    return InvalidInput(problem, error.hint)


_HOURS = {
    None: 1.0,
    "hour": 1.0,
    "day": units.HOURS_PER_DAY,
    "month": units.HOURS_PER_MONTH,
    "year": units.HOURS_PER_YEAR,
}


def _usd(
    money: units.Money, kind: str, spelled: str, currency: str, usd_per: Callable[[str], float] | None
) -> Usd | UsdPerHour:
    """The amount in USD, of the kind "price" for an hour. Without a currency it is in the one that is shown."""
    if kind in ("money", "purchase") and money.per is not None:
        raise InvalidInput(
            Message("{option}: a sum is asked for, not an amount a {unit}.", option=spelled, unit=money.per),
            Message("Write for example: 50 USD"),
        )
    if kind == "per_kwh":
        if money.per != "kwh":
            raise InvalidInput(
                Message("{option}: a price a kWh is asked for.", option=spelled),
                Message("Write for example: 0.21 EUR/kWh"),
            )
        money = units.Money(amount=money.amount, currency=money.currency)
    if money.per not in _HOURS:
        raise InvalidInput(
            Message("{option}: a price an hour is asked for, not a {unit}.", option=spelled, unit=money.per),
            Message("Write for example: 2.50 USD"),
        )
    code = money.currency or currency
    if code == "USD":
        return money.amount / _HOURS[money.per]
    if usd_per is None:
        raise InvalidInput(
            Message("{option} is in {code}, and no rate is known here.", option=spelled, code=code),
            Message("Write the amount in USD."),
        )
    try:
        return money.amount * usd_per(code) / _HOURS[money.per]
    except InvalidInput as error:
        raise at(spelled, error) from None


def _typed(parse: Callable[[str], Any], hint: Message | None = None) -> Callable[[str], Any]:
    """A parser of `units` for one value that a person typed: no other value decides what "1,000" means."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except InvalidInput as error:
            said = error.message.values
            if {"text", "first", "other"} <= said.keys():
                raise InvalidInput(
                    Message('"{text}" may be {first} or {other}.', **said),
                    Message("Write it without a sign between thousands: {first} or {other}.", **said),
                ) from None
            raise InvalidInput(error.message, hint or error.hint) from None

    return read


def _rate_of(text: str) -> float:
    """19 % or 0.19, of a price. A bare number above one half is refused: 1 may be meant as 1 % or as the whole."""
    bare = None if "%" in text else units.parse_number(text)
    if bare is not None and bare > LARGEST_BARE:
        raise InvalidInput(
            Message('"{text}" has no per cent sign: it may be {one:g} % or {other:g} %.', text=text, one=bare,
                    other=100 * bare),
            Message('Write "{text} %", or as a fraction {fraction:.4g}.', text=text, fraction=bare / 100),
        )  # fmt: skip
    return units.parse_fraction(text)


def _share(text: str) -> float:
    """80 % or 0.8; more than all of it is refused."""
    fraction = units.parse_fraction(text)
    if 0 < fraction <= 1:
        return fraction
    raise InvalidInput(
        Message('"{text}" is no share: it lies above 0 and up to 100 %.', text=text),
        Message('Write "80 %", or 0.8.'),
    )


_EARLY_STOP = re.compile(r"\s*([^.:]+(?:\.[0-9]+)?)\s*\.\.\s*([^:]+):\s*(.+)")


def _early_stop(text: str) -> EarlyStopEpochs:
    """5..100:10 is from 5 epochs on, at most 100, with a patience of 10."""
    found = _EARLY_STOP.fullmatch(text)
    hint = Message("Write least..most:patience in epochs, such as 5..100:10.")
    if not found:
        raise InvalidInput(Message('"{text}" is no rule of early stopping.', text=text), hint)
    least, most, patience = (units.parse_positive(part.strip()) for part in found.groups())
    if least > most or patience > most:
        raise InvalidInput(
            Message('"{text}" can never be followed: least and patience lie above the most.', text=text), hint
        )
    return EarlyStopEpochs(least, most, patience)


_TAKES = re.compile(
    r"(?:about|roughly|some)?\s*(.+?)(?:\s*(?:-|–|to|\.\.)\s*(.+?))?\s*(?:\bon\b|\bwith\b|@)\s*(.+)", re.I
)
_NUMBERS = {
    "half an": "0.5", "half a": "0.5", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9", "ten": "10", "an": "1", "a": "1",
}  # fmt: skip
_IN_WORDS = re.compile(rf"\b({'|'.join(_NUMBERS)})\b(?=\s)", re.I)
_COUNTED = re.compile(r"(\d+)\s+(?=[A-Za-z])")


def _takes(text: str) -> Takes:
    """2-3 days on 8xA100, 50h@A100:8, half a day with eight A100."""
    found = _TAKES.fullmatch(_IN_WORDS.sub(lambda word: _NUMBERS[word[1].lower()], text))
    if not found:
        raise InvalidInput(
            Message('"{text}" does not say how long on which GPUs.', text=text),
            Message('Write for example: "2-3 days on 8xA100", or 50h@H100-SXM:8.'),
        )
    first, last, gpu = found[1].strip(), (found[2] or "").strip(), _COUNTED.sub(r"\1x", found[3].strip())
    high_s = units.parse_duration(last or first)
    low_s = units.parse_duration(f"{first} {last.lstrip('0123456789., ')}" if last and first[-1].isdigit() else first)
    if 0 < low_s <= high_s:
        return Takes(low_s, high_s, gpu)
    raise InvalidInput(
        Message('"{text}": the shorter time comes first, and both are above 0.', text=text),
        Message('Write for example: "2-3 days on 8xA100".'),
    )


def _minutes(text: str) -> float:
    """A bare number is in minutes; a duration with its unit is read as one."""
    try:
        return 60.0 * units.parse_positive(text)
    except InvalidInput:
        return units.parse_duration(text)


_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


def _clock(text: str) -> float:
    """09:59 is 35,940 s after midnight."""
    if found := _OF_DAY.fullmatch(text):
        return int(found[1]) * units.SECONDS_PER_HOUR + int(found[2]) * 60.0
    raise InvalidInput(
        Message('"{text}" is no time of day.', text=text), Message("Write hours and minutes, such as 09:59.")
    )


def _interval(text: str) -> float:
    """A duration above 0, or never."""
    return NEVER if text.lower() == "never" else amounts.parse_period(text)


def _rate(text: str) -> float:
    """0 or more, an hour; above one a minute nothing would ever be computed."""
    losses = 0.0 if text == "0" else units.parse_positive(text)
    if losses <= LARGEST_LOSSES:
        return losses
    raise InvalidInput(
        Message("{losses:g} losses an hour are more than one a minute.", losses=losses),
        Message("Write how often one machine is lost in an hour, such as 0.15."),
    )


def _exchange(text: str) -> float:
    """USD for one unit: 1.16, or 1/6.70."""
    above, slash, below = text.partition("/")
    return units.parse_positive(above) / (units.parse_positive(below) if slash else 1.0)


def _whole(text: str) -> int:
    """0, 1, 2, ..."""
    if re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    raise InvalidInput(
        Message('"{text}" is not a whole number from 0 up.', text=text), Message("Write 0, 1, 2 and so on.")
    )


def _hours_per_month(text: str) -> float:
    if not any(sign.isdigit() for sign in text):
        raise InvalidInput(
            Message('"{text}" is not a number of hours.', text=text), Message("Write for example 400, or 400 h.")
        )
    hours = units.parse_hours(text)
    if hours > units.HOURS_PER_MONTH:
        raise InvalidInput(
            Message('"{text}" is more than the {most:g} hours of a month.', text=text, most=units.HOURS_PER_MONTH),
            Message("Write a number of hours up to {most:g}.", most=units.HOURS_PER_MONTH),
        )
    return hours


def _choice(kind: str) -> Callable[[str], str]:
    """Reads one of a closed list, in upper or lower case."""
    spellings = {c.lower(): c for c in CHOICES[kind]}

    def read(text: str) -> str:
        if text.lower() in spellings:
            return spellings[text.lower()]
        near = get_close_matches(text.lower(), spellings)
        choices = ", ".join(CHOICES[kind])
        raise UnknownName(
            Message('"{text}" is not one of {choices}.', text=text, choices=choices),
            _did_you_mean(near, Message("Write one of them.")),
            near,
        )

    return read


def _did_you_mean(near: Sequence[str], otherwise: Message) -> Message:
    return Message("Did you mean {name}?", name=near[0]) if near else otherwise


def _place(text: str) -> str:
    if text.lower() == "on-premises":
        return text.lower()
    try:
        return country(text)
    except UnknownName as error:
        if error.nearest:
            raise
        raise UnknownName(error.message, Message("Write for example DE, EU or on-premises.")) from None


def _country(text: str) -> str:
    try:
        return country(text)
    except UnknownName as error:
        if error.nearest:
            raise
        raise UnknownName(error.message, Message("Write for example DE, US or EU.")) from None


def _currency(text: str) -> str:
    if re.fullmatch("[A-Za-z]{3}", text):
        return text.upper()
    raise InvalidInput(
        Message('"{text}" is not a currency code of three letters.', text=text),
        Message("Write for example USD or EUR."),
    )


def _flag(text: str) -> bool:
    if text.lower() in ("true", "yes", "on", "1"):
        return True
    if text.lower() in ("false", "no", "off", "0"):
        return False
    raise InvalidInput(Message('"{text}" is neither true nor false.', text=text), Message("Write true or false."))


def _gpu(text: str) -> str:
    """A range is checked here; names are looked up where the table of accelerators is at hand."""
    gpu_ranges([text])
    return text


def _limit(text: str) -> int | None:
    return None if text.lower() == "all" else int(_typed(units.parse_count, Message("Write 1 or more, or all."))(text))


LARGEST_BARE = 0.5
"""No tax and no interest takes half of a price; so a larger number is meant in per cent."""

LARGEST_LOSSES = 60.0
"""Losses an hour that are believed."""

_WHOLE = Message("Write a whole number from 1 up, such as 8.")


KINDS: dict[str, Kind] = {
    "text": Kind(str),
    "names": Kind(str, split=True),
    "gpu": Kind(_gpu, split=True),
    "path": Kind(str),
    "paths": Kind(str),
    "flag": Kind(_flag),
    "price": Kind(_typed(units.parse_money)),
    "money": Kind(_typed(units.parse_money)),
    "rent": Kind(_typed(amounts.parse_price, Message("Write for example 2.99 USD, or leave it out."))),
    "purchase": Kind(_typed(amounts.parse_price, Message("Write for example 240000 EUR, or leave it out."))),
    "duration": Kind(_typed(units.parse_duration)),
    "takes": Kind(_takes),
    "size": Kind(_typed(units.parse_size, Message("Write for example: 150 GB."))),
    "rate": Kind(_typed(units.parse_rate, Message("Write for example: 1 Gbit/s, or 120 MB/s."))),
    "clock": Kind(_clock),
    "interval": Kind(_typed(_interval, Message("Write 30 min, or never."))),
    "period": Kind(_typed(amounts.parse_period)),
    "throughput": Kind(_typed(amounts.parse_throughput)),
    "losses": Kind(_typed(_rate)),
    "exchange": Kind(_typed(_exchange)),
    "prepare_on": Kind(_choice("prepare_on")),
    "skill": Kind(_choice("skill")),
    "date": Kind(units.parse_date),
    "days": Kind(_typed(units.parse_count, _WHOLE)),
    "hours": Kind(_typed(_hours_per_month)),
    "count": Kind(_typed(units.parse_count, _WHOLE)),
    "early_stop": Kind(_early_stop),
    "positive": Kind(_typed(units.parse_positive)),
    "fraction": Kind(_typed(_rate_of)),
    "share": Kind(_typed(_share)),
    "part": Kind(_typed(units.parse_fraction)),
    "minutes": Kind(_typed(_minutes)),
    "whole": Kind(_typed(_whole)),
    "run": Kind(str),
    "command": Kind(str),
    "limit": Kind(_limit),
    "place": Kind(_place),
    "country": Kind(_country),
    "currency": Kind(_currency),
    "action": Kind(_choice("action")),
    "runs_action": Kind(_choice("runs_action")),
    "market": Kind(_choice("market"), split=True),
    "host": Kind(_choice("host")),
    "tax": Kind(_choice("tax")),
    "precision": Kind(_choice("precision")),
    "mode": Kind(_choice("mode")),
    "optimizer": Kind(_choice("optimizer")),
    "trainer": Kind(_choice("trainer")),
    "memory_format": Kind(_choice("memory_format")),
    "feed": Kind(_choice("feed")),
    "sort": Kind(_choice("sort")),
    "price_per": Kind(_choice("price_per")),
    "column": Kind(_choice("column"), split=True),
    "cost_kind": Kind(_choice("cost_kind")),
    "moment": Kind(units.parse_moment),
    "demand": Kind(_typed(amounts.parse_demand)),
    "growth": Kind(_typed(amounts.parse_growth)),
    "horizon": Kind(_typed(amounts.parse_months)),
    "power": Kind(_typed(amounts.parse_power, Message('Write for example "10.2 kW".'))),
    "per_kwh": Kind(_typed(units.parse_money)),
    "said": Kind(_typed(amounts.parse_said)),
    "promise": Kind(_typed(amounts.parse_promise)),
    "stage": Kind(_choice("stage")),
    "cold": Kind(_typed(amounts.parse_cold)),
}
