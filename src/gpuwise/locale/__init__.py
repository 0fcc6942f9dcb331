"""The language that a person reads: gettext over one `.po` a language, read at run time.

English is the source text and needs no file. The choice is per context (`contextvars`), so that two requests of one
server may be answered in two languages. Babel is imported only when the language is not English, and a catalogue is
compiled once: what was made of it is kept in the cache folder.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from functools import cache
from gettext import GNUTranslations, NullTranslations
from pathlib import Path
from typing import Any

from gpuwise.errors import Message, UnknownName
from gpuwise.locale.writing import ENGLISH as ENGLISH_WRITING
from gpuwise.locale.writing import Filled, Writing, in_charts, of_language

FOLDER = Path(__file__).parent
"""Holds `<language>.po`: `zh_CN.po`, `de.po`, …"""

ENGLISH = "en"


@dataclass(frozen=True, slots=True)
class _Language:
    name: str
    texts: NullTranslations
    writing: Writing
    filled: Filled | None = None

    def of(self, text: str) -> str:
        return text if self.filled is None else _Translated(text)


class _Translated(str):
    """A text of another language: what is put into it is written as that language writes it."""

    __slots__ = ()

    def format(self, *args: object, **values: object) -> str:
        filled = _active.get().filled
        return str.format(self, *args, **values) if filled is None else filled.vformat(self, args, values)

    def format_map(self, values: Mapping[str, Any]) -> str:  # type: ignore[override]
        filled = _active.get().filled
        return str.format_map(self, values) if filled is None else filled.vformat(self, (), values)


_PLAIN = _Language(ENGLISH, NullTranslations(), ENGLISH_WRITING)
_active: ContextVar[_Language] = ContextVar("gpuwise_language", default=_PLAIN)


def gettext(text: str) -> str:
    """The text in the active language; the text itself where no translation is known."""
    active = _active.get()
    return active.of(active.texts.gettext(text)) if text else ""


_ = gettext


def ngettext(one: str, many: str, count: int) -> str:
    """The form that the active language uses for this count."""
    active = _active.get()
    return active.of(active.texts.ngettext(one, many, count))


def N_(text: str) -> str:  # noqa: N802 - the name that gettext tools know
    """Marks a text that is translated later, where it is shown."""
    return text


def words(message: Message | str) -> str:
    """A message of the pure core in the active language; of a plain text, as records keep reasons, its translation."""
    return gettext(message) if isinstance(message, str) else message.text(gettext)


def with_commas(parts: Iterable[str]) -> str:
    """A list in the reader's punctuation: a, b, c."""
    return _(", ").join(parts)


def with_semicolons(parts: Iterable[str]) -> str:
    """Remarks one after another in the reader's punctuation: a; b; c."""
    return _("; ").join(parts)


def with_colon(name: str, what: str) -> str:
    """What is said of something, in the reader's punctuation: name: what."""
    return _("{name}: {what}").format(name=name, what=what)


def number(text: str) -> str:
    """A number that was written as 1,234.5, with the signs of the active language."""
    return _active.get().writing.number(text)


def share(text: str) -> str:
    """A number of per cent, written as 1,234.5, with its sign: 65 % in English, 65% in Chinese."""
    return _active.get().writing.share(text)


def day(when: date) -> str:
    """A day as a sentence has it: 2026-11-30 in English, 2026年11月30日 in Chinese."""
    return _active.get().writing.day(when)


def month(when: date) -> str:
    """A month as a sentence has it: 2026-11 in English, 2026年11月 in Chinese."""
    return _active.get().writing.month(when)


def language() -> str:
    """The active language as a BCP 47 tag: en, zh-CN."""
    return _active.get().name.replace("_", "-")


def vega() -> dict[str, Any] | None:
    """How charts write numbers and days in the active language; None in English, which is what they do anyway."""
    active = _active.get()
    return None if active.filled is None else in_charts(active.name)


def available(folder: Path | None = None) -> tuple[str, ...]:
    """The languages that there are: English, and one for each `.po` file."""
    return (ENGLISH, *sorted(p.stem for p in (folder or FOLDER).glob("*.po")))


def activate(name: str, folder: Path | None = None) -> None:
    """Sets the language of this context. Raises UnknownName for one without a catalogue."""
    known = available(folder)
    found = _match(name, known)
    if found is None:
        raise UnknownName(
            Message("there is no translation into {name}", name=repr(name)),
            Message("Choose one of: {names}.", names=", ".join(known)),
            nearest=known,
        )
    _active.set(_PLAIN if found == ENGLISH else _language(folder or FOLDER, found))


@contextmanager
def in_english() -> Iterator[None]:
    """What is made here is for machines: the same in every language."""
    before = _active.set(_PLAIN)
    try:
        yield
    finally:
        _active.reset(before)


def negotiate(wanted: Iterable[str], folder: Path | None = None) -> str:
    """The first wanted language that there is (`LANG`, `Accept-Language`: de_AT.UTF-8, zh-CN), else English."""
    known = available(folder)
    return next((found for name in wanted if (found := _match(name, known))), ENGLISH)


def accepted(header: str) -> list[str]:
    """The languages of an `Accept-Language` header, the most wanted first (RFC 9110, 12.5.4); those of weight 0 left
    out, and a weight that is no number counts as 0."""
    parts = (part.strip().partition(";") for part in header.split(","))
    weighed = [(name.strip(), _weight(weight)) for name, _sign, weight in parts if name.strip()]
    return [name for name, weight in sorted(weighed, key=lambda one: -one[1]) if weight > 0]


def _weight(text: str) -> float:
    value = text.strip().removeprefix("q=").strip()
    try:
        return float(value) if value else 1.0
    except ValueError:
        return 0.0


def _match(name: str, known: tuple[str, ...]) -> str | None:
    """de_AT.UTF-8 fits de_AT, else de; zh-cn fits zh_CN, and so do zh and zh-Hans-SG if no other Chinese is there."""
    tag = name.partition(".")[0].partition("@")[0].replace("-", "_").lower()
    by_tag = {k.lower(): k for k in known}
    alike = (k for k in known if k.lower().partition("_")[0] == tag.partition("_")[0])
    return by_tag.get(tag) or by_tag.get(tag.partition("_")[0]) or next(alike, None)


@cache
def _language(folder: Path, name: str) -> _Language:
    habits = of_language(name)
    return _Language(name, _load(folder / f"{name}.po"), habits, Filled(habits))


def _load(path: Path) -> GNUTranslations:
    """The catalogue, compiled; from the cache folder if this very text was compiled before."""
    from gpuwise.store import cache as kept

    text = path.read_bytes()
    place = kept.folder() / "languages" / f"{path.stem}-{kept.key(text.decode())}.mo"
    body, _why = kept.load_bytes(place)
    if body is None:
        body = _compiled(text, path.stem)
        if kept.save_bytes(place, body):
            kept.prune(place.parent)
    return GNUTranslations(io.BytesIO(body))


def _compiled(text: bytes, name: str) -> bytes:
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    compiled = io.BytesIO()
    write_mo(compiled, read_po(io.BytesIO(text), locale=name, abort_invalid=True))
    return compiled.getvalue()
