"""The language of the reader: chosen by name or wish, loaded from a `.po` file, never leaking into another thread."""

from __future__ import annotations

import contextvars
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpuwise import locale
from gpuwise.errors import Message, UnknownName

ESPERANTO = """
msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

msgid "{n} rows"
msgstr "{n} vicoj"

msgid "row"
msgid_plural "rows"
msgstr[0] "vico"
msgstr[1] "vicoj"

#, fuzzy
msgid "frontier"
msgstr "limo?"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "eo.po").write_text(ESPERANTO, encoding="utf-8")
    (tmp_path / "zh_CN.po").write_text(ESPERANTO.replace("vicoj", "行"), encoding="utf-8")
    return tmp_path


def test_without_a_choice_texts_are_english():
    assert locale.language() == "en"
    assert locale.gettext("{n} rows") == "{n} rows"
    assert locale.ngettext("row", "rows", 2) == "rows"


def test_a_message_of_the_core_is_translated_where_it_is_shown(folder):
    locale.activate("eo", folder)
    outer = Message("{what}", what=Message("{n} rows", n=3))
    assert locale.words(outer) == "3 vicoj"


def test_plural_forms_are_those_of_the_language(folder):
    locale.activate("eo", folder)
    assert [locale.ngettext("row", "rows", n) for n in (1, 2)] == ["vico", "vicoj"]


def test_a_text_without_a_sure_translation_stays_english(folder):
    locale.activate("eo", folder)
    assert locale.gettext("frontier") == "frontier"
    assert locale.gettext("") == ""


@pytest.mark.parametrize("name", ["zh_CN", "zh-CN", "zh_CN.UTF-8", "ZH-cn"])
def test_a_language_is_known_by_every_usual_spelling(folder, name):
    locale.activate(name, folder)
    assert locale.language() == "zh-CN"
    assert locale.gettext("{n} rows") == "{n} 行"


def test_a_language_that_is_not_there_is_refused_with_those_that_are(folder):
    with pytest.raises(UnknownName, match="no translation into 'tlh'") as error:
        locale.activate("tlh", folder)
    assert error.value.nearest == ("en", "eo", "zh_CN")


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [(["de_AT.UTF-8", "eo"], "eo"), (["eo_XX"], "eo"), (["C"], "en"), ([], "en"), (["de"], "en")],
)
def test_the_first_wanted_language_that_is_there_is_taken_else_english(folder, wanted, chosen):
    assert locale.negotiate(wanted, folder) == chosen


def test_the_choice_of_one_thread_is_not_that_of_another(folder):
    def in_esperanto() -> str:
        locale.activate("eo", folder)
        return locale.gettext("{n} rows")

    with ThreadPoolExecutor(2) as pool:
        there = pool.submit(contextvars.copy_context().run, in_esperanto)
        assert there.result() == "{n} vicoj"
        assert pool.submit(locale.gettext, "{n} rows").result() == "{n} rows"
    assert locale.gettext("{n} rows") == "{n} rows"
