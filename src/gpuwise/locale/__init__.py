"""The language that a person reads: gettext over one `.po` a language, read at run time.

English is the source text and needs no file. The choice is per context (`contextvars`), so that two requests of one
server may be answered in two languages. Babel is imported only when the language is not English.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextvars import ContextVar
from functools import cache
from gettext import GNUTranslations, NullTranslations
from pathlib import Path

from gpuwise.errors import Message, UnknownName

FOLDER = Path(__file__).parent
"""Holds `<language>.po`: `zh_CN.po`, `de.po`, …"""

ENGLISH = "en"

_PLAIN = (ENGLISH, NullTranslations())
_active: ContextVar[tuple[str, NullTranslations]] = ContextVar("gpuwise_language", default=_PLAIN)


def gettext(text: str) -> str:
    """The text in the active language; the text itself where no translation is known."""
    return _active.get()[1].gettext(text) if text else ""


_ = gettext


def ngettext(one: str, many: str, count: int) -> str:
    """The form that the active language uses for this count."""
    return _active.get()[1].ngettext(one, many, count)


def N_(text: str) -> str:  # noqa: N802 - the name that gettext tools know
    """Marks a text that is translated later, where it is shown."""
    return text


def words(message: Message | str) -> str:
    """A message of the pure core in the active language; of a plain text, as records keep reasons, its translation."""
    return gettext(message) if isinstance(message, str) else message.text(gettext)


def language() -> str:
    """The active language as a BCP 47 tag: en, zh-CN."""
    return _active.get()[0].replace("_", "-")


def available(folder: Path = FOLDER) -> tuple[str, ...]:
    """The languages that there are: English, and one for each `.po` file."""
    return (ENGLISH, *sorted(p.stem for p in folder.glob("*.po")))


def activate(name: str, folder: Path = FOLDER) -> None:
    """Sets the language of this context. Raises UnknownName for one without a catalogue."""
    known = available(folder)
    found = _match(name, known)
    if found is None:
        raise UnknownName(
            Message("there is no translation into {name}", name=repr(name)),
            Message("Choose one of: {names}.", names=", ".join(known)),
            nearest=known,
        )
    _active.set(_PLAIN if found == ENGLISH else (found, _load(folder / f"{found}.po")))


def negotiate(wanted: Iterable[str], folder: Path = FOLDER) -> str:
    """The first wanted language that there is (`LANG`, `Accept-Language`: de_AT.UTF-8, zh-CN), else English."""
    known = available(folder)
    return next((found for name in wanted if (found := _match(name, known))), ENGLISH)


def _match(name: str, known: tuple[str, ...]) -> str | None:
    """de_AT.UTF-8 fits de_AT, else de; zh-cn fits zh_CN."""
    tag = name.partition(".")[0].partition("@")[0].replace("-", "_").lower()
    by_tag = {k.lower(): k for k in known}
    return by_tag.get(tag) or by_tag.get(tag.partition("_")[0])


@cache
def _load(path: Path) -> GNUTranslations:
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with path.open("rb") as file:
        catalogue = read_po(file, locale=path.stem, abort_invalid=True)
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return GNUTranslations(compiled)
