"""Moments as people record them → UTC, so that a difference of two is the time that went by, whatever the clocks did.

A time without a zone is refused unless the person says which zone is meant: an hour is money, and in the night in which
clocks go back such a time is two moments.
"""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.units import parse_moment

NO_ZONE = Message("Write Z or an offset after it, such as 2026-11-30T22:58:00+01:00, or say --time-zone UTC.")


def zone(name: str | None) -> ZoneInfo | None:
    """The zone of that name; UnknownName with the nearest for one that there is not."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = {each.casefold(): each for each in available_timezones()}
        folded = name.casefold().replace(" ", "_")
        near = [known[folded]] if folded in known else [known[k] for k in get_close_matches(folded, known, n=3)]
        hint = (
            Message("Did you mean {name}?", name=near[0]) if near else Message("Write UTC, or such as Europe/Berlin.")
        )
        raise UnknownName(Message('There is no time zone "{name}".', name=name), hint, near) from None


def moment(text: str, place: ZoneInfo | None) -> datetime:
    """The moment in UTC. place: the zone of times that name none. InvalidInput for a text that is no one moment."""
    return in_utc(parse_moment(text), place)


def in_utc(when: datetime, place: ZoneInfo | None) -> datetime:
    if when.tzinfo is not None:
        return when.astimezone(UTC)
    if place is None:
        raise InvalidInput(Message('"{text}" names no time zone.', text=when.isoformat(sep=" ")), NO_ZONE)
    first, second = (when.replace(tzinfo=place, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        _refuse_change(when, first, place)
    return first.astimezone(UTC)


def _refuse_change(when: datetime, first: datetime, place: ZoneInfo) -> None:
    """Clocks are put back or on at that time."""
    there = first.astimezone(UTC).astimezone(place).replace(tzinfo=None) == when
    text = Message('"{text}" is twice in {zone}: clocks are put back then.', text=when, zone=place.key)
    if not there:
        text = Message('"{text}" is not there in {zone}: clocks are put on then.', text=when, zone=place.key)
    raise InvalidInput(text, Message("Write the offset after it, such as {text}+02:00.", text=when.isoformat()))
