"""Every language is whole: its catalogue is that of the source, and no verb says an English sentence in it."""

from __future__ import annotations

import contextvars
import csv
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po
from tools.messages import DATA, LOCALE, PACKAGE, Unreadable, extract, main, missing, updated, write

from gpuwise import locale
from gpuwise.cli.help import QUESTIONS
from gpuwise.cli.program import _run
from gpuwise.cli.session import Session
from gpuwise.errors import Message as Sentence
from gpuwise.locale import lines, writing
from gpuwise.render.data import markdown
from gpuwise.render.text import text as as_text
from gpuwise.view import figures
from gpuwise.view.page import Cell, Page, Table, Text, column, tabulate

SAME = {
    "MAPE", "P90", "MFU", "GPU", "CPU", "GB", "GiB", "SSH", "Pod", "Rank", "all-reduce", "h", "s", "ms", "A", "B",
    "Open Policy Agent", "Keycloak", "OpenBao", "Trino", "Spark", "Valkey", "Harbor", "Kafka", "Airflow", "OpenSearch",
    "PostgreSQL", "ClickHouse", "Grafana", "Knative", "pip install 'gpuwise[measure]'",
}  # fmt: skip
"""Names, units and commands: the same in Chinese. So are texts of nothing but places, signs, units and options."""
BARE = re.compile(r"\{[^{}]*\}|--[a-z-]+|\b(?:min|USD|GB|GiB|GMAC|px|W|MHz|J|h|ms|C)\b|[^A-Za-z]")
CATALOGUES = sorted(LOCALE.glob("*.po"))
EVERY = pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def template() -> Catalog:
    return extract()


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.stem, abort_invalid=True)


def forms(message: Message) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a text says in English, and in the other language."""
    one = isinstance(message.id, str)
    return ((message.id,), (message.string,)) if one else (tuple(message.id), tuple(message.string))


def places(text: str) -> set[tuple[str, str]]:
    """The values that a text takes, with their formats."""
    return {(name, spec or "") for _text, name, spec, _conversion in Formatter().parse(text) if name is not None}


# ---- the catalogues ----


def test_chinese_is_there() -> None:
    assert "zh_CN" in locale.available()


@EVERY
def test_a_catalogue_holds_the_texts_of_the_source_and_no_others(path: Path, template: Catalog) -> None:
    there = {message.id for message in read(path) if message.id}
    assert there == {message.id for message in template if message.id}, "python -m tools.messages update"


@EVERY
def test_every_text_is_translated_and_no_translation_is_a_guess(path: Path) -> None:
    catalog = read(path)
    assert missing(catalog) == []
    assert [message.id for message in catalog if message.fuzzy and message.id] == []
    assert list(catalog.obsolete) == []


@EVERY
def test_a_translation_takes_the_values_of_its_text(path: Path) -> None:
    wrong = []
    for message in read(path):
        english, other = forms(message)
        taken = set.union(*map(places, english))
        wrong += [text for text in other if message.id and not (places(english[-1]) <= places(text) <= taken)]
    assert wrong == []


@EVERY
def test_the_plural_forms_are_those_of_the_language(path: Path) -> None:
    catalog = read(path)
    assert f"Plural-Forms: {Catalog(locale=path.stem).plural_forms}\\n" in path.read_text(encoding="utf-8")
    assert {len(message.string) for message in catalog if isinstance(message.id, tuple)} == {catalog.num_plurals}


def test_what_stays_english_in_chinese_is_names_and_units() -> None:
    same = [m.id for m in read(LOCALE / "zh_CN.po") if m.id and m.id == m.string]
    assert [text for text in same if text not in SAME and BARE.sub("", text)] == []


def test_chinese_is_set_as_chinese_is() -> None:
    """Full-width punctuation after Chinese, a blank between Chinese and Latin letters or numbers, none before %."""
    wrong = re.compile(r"[\u4e00-\u9fff][,;:!?](?![\w*])|[\u4e00-\u9fff][A-Za-z0-9{]|[A-Za-z0-9%][\u4e00-\u9fff]")
    kept = re.compile(r"最少\.\.最多:耐心|[\u4e00-\u9fff](?:\{\w+\})+|https?://\S+|按年-月-日")
    texts = [text for m in read(LOCALE / "zh_CN.po") if m.id for text in forms(m)[1]]
    assert [text for text in texts if wrong.search(kept.sub("", text))] == []
    assert [text for text in texts if re.search(r"[\d}] %(?![\d}\"])", text) and "写" not in text] == []


# ---- a further language is one file ----


def test_a_further_language_is_one_file(tmp_path: Path, template: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.messages.LOCALE", tmp_path)
    monkeypatch.setattr(locale, "FOLDER", tmp_path)
    main(["add", "de"])
    begun = read(tmp_path / "de.po")
    assert len(missing(begun)) == len([m for m in template if m.id])
    begun["Where should {workloads} run?"].string = "Wo soll {workloads} laufen?"
    write(begun, tmp_path / "de.po")
    locale.activate("de-AT")
    assert locale.gettext("Where should {workloads} run?").format(workloads="x") == "Wo soll x laufen?"
    assert (figures.number(1234.5), figures.percent(0.65)) == ("1.234", "65\xa0%")
    assert locale.day(date(2026, 11, 30)) == "30. November 2026"


def test_an_update_keeps_what_was_translated_and_drops_what_is_gone(tmp_path: Path) -> None:
    template = Catalog()
    for text in ("kept", "new"):
        template.add(text, locations=[("view/a.py", 0)])
    old = Catalog(locale="eo", header_comment="# Esperanto")
    old.add("kept", "tenita")
    old.add("gone", "for")
    write(old, tmp_path / "eo.po")
    with (tmp_path / "eo.po").open("rb") as file:
        now = updated(file, template, "eo")
    write(now, tmp_path / "eo.po")
    told = (tmp_path / "eo.po").read_text(encoding="utf-8")
    assert "# Esperanto" in told
    assert "#: view/a.py\n" in told
    assert missing(now) == ["new"]
    assert "tenita" in told
    assert "gone" not in told


def test_the_files_are_as_the_tool_writes_them(tmp_path: Path, template: Catalog) -> None:
    for path in CATALOGUES:
        with path.open("rb") as file:
            write(updated(file, template, path.stem), tmp_path / path.name)
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), "python -m tools.messages update"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('Message("a {x} " "b", x=1)', {"a {x} b"}),
        ('def f(y):\n    text = "one" if y else "two"\n    Message(text)', {"one", "two"}),
        ('T = {"a": "first", "b": "second"}\nMessage(T[k])', {"first", "second"}),
        ('text = "tail"\nMessage("head: " + text)', {"head: tail"}),
        ('ngettext("{n} row", "{n} rows", n)', {("{n} row", "{n} rows")}),
        ('about("What comes first.", kind="sort")', {"What comes first."}),
        ("_(TABLE.get(name, name))", set()),
    ],
)
def test_a_text_is_found_however_it_reaches_its_call(tmp_path: Path, source: str, found: set[Any]) -> None:
    assert extracted(tmp_path, source) == found


def test_a_text_that_nobody_can_follow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"code\.py:2"):
        extracted(tmp_path, "def f(text):\n    return Message(text)")


def extracted(folder: Path, source: str) -> set[Any]:
    (folder / "data").mkdir()
    (folder / "data" / "workloads.toml").write_text("", encoding="utf-8")
    for name in DATA:
        shutil.copy(PACKAGE / "data" / name, folder / "data")
    (folder / "code.py").write_text(source, encoding="utf-8")
    return {m.id for m in extract(folder) if m.id and any(file == "code.py" for file, _line in m.locations)}


# ---- what verbs say ----

ACCENTS = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "áβçđéƒĝĥíĵķłɱñóƥɋŕšŧúṽŵẋýžÁΒÇĐÉƑĜĤÍĴĶŁṀÑÓÞɊŔŠŦÚṼŴẊÝŽ"
)
ENGLISH = re.compile(r"(?<![\w./-])[A-Za-z]+(?: [a-z]{2,}){2,}")
TODAY = ["--as-of", "2026-11-30"]
ASKED = {
    "rank": ["rank", "painter-heavy", "bert-finetune", "--data-size", "100GB", "--deadline", "9h", "--limit", "5"],
    "rank nothing": ["rank", "painter-heavy", "--max-price", "0.0001"],
    "rank takes": ["rank", "--takes", "2-3 days on 8xA100", "--limit", "3"],
    "explain": ["explain", "painter-heavy"],
    "explain several": ["explain", "painter-heavy", "--on", "A100-80GB:2"],
    "describe": ["describe", "gpt"],
    "own": ["own", "--demand", "40 GPUs", "--gpu", "H100-SXM", "--country", "US"],
    "exit": ["exit", "USAGE", "--moving-cost", "40000USD", "--data-size", "100TB", "--country", "US"],
    "services": ["exit", "--services", "S3,SageMaker,EC2,TPU,Glacier"],
    "bill": ["bill", "EVENTS"],
    "accuracy": ["accuracy", "--by", "family"],
    "list": ["data", "list", "--by", "provider,gpu", "--limit", "9"],
    "show": ["data", "show", "vast"],
    "check": ["data", "check"],
    "ready": ["check"],
    "runs": ["runs", "list"],
    "wrong option": ["rank", "--nonsense"],
    "wrong name": ["explain", "painter-hevy"],
}
"""Verbs without a day take no --as-of."""
DAYLESS = {"describe", "ready", "accuracy", "runs", "check", "wrong option", "services", "bill"}


def accented(text: str) -> str:
    """The same with accents, but for what is put into it."""
    parts = re.split(r"(\{[^{}]*\})", text)
    return "".join(part if part.startswith("{") else part.translate(ACCENTS) for part in parts)


@pytest.fixture
def accents(template: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A language in which every known text has accents: what has none was never looked up."""
    there = Catalog(locale="eo", header_comment="#")
    for message in template:
        if message.id:
            one = isinstance(message.id, str)
            there.add(message.id, accented(message.id) if one else tuple(map(accented, message.id)))
    write(there, tmp_path / "eo.po")
    monkeypatch.setattr(locale, "FOLDER", tmp_path)
    monkeypatch.setenv("GPUWISE_STORE", str(tmp_path / "runs.sqlite"))


@pytest.fixture(scope="module")
def quoted() -> set[str]:
    """Three words in a row of the bundled data: names and sources, which are said as they are written."""
    cells: list[str] = []
    for path in (PACKAGE / "data").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            cells += {cell for row in csv.reader(file) for cell in row if " " in cell}
    for path in (PACKAGE / "data").glob("*.toml"):
        cells += _leaves(tomllib.loads(path.read_text(encoding="utf-8")))
    return {three for cell in cells for three in threes(cell)}


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, str):
        yield value


def threes(text: str) -> list[str]:
    words = re.findall(r"[A-Za-z]+", text)
    return [" ".join(words[i : i + 3]).casefold() for i in range(len(words) - 2)]


def english(text: str, quoted: set[str]) -> list[str]:
    """Runs of three and more English words that are neither of the data nor an example of a command nor authors."""
    shown = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("gpuwise "))
    shown = shown.replace(" et al.", "")
    return [run for run in ENGLISH.findall(shown) if not set(threes(run)) <= quoted]


SHOWN = re.compile(r":caption: (usage\.csv|events\.toml)\n\n(.*?)```", re.DOTALL)


def files(folder: Path) -> dict[str, str]:
    """The files of the how-to pages on bills, by the word that stands for them."""
    words = {"usage.csv": "USAGE", "events.toml": "EVENTS"}
    for page in ("leave-the-cloud.md", "read-a-bill.md"):
        text = (PACKAGE.parent.parent / "docs" / "how-to" / page).read_text(encoding="utf-8")
        for name, body in SHOWN.findall(text):
            (folder / name).write_text(body, encoding="utf-8")
    return {word: str(folder / name) for name, word in words.items()}


def run(arguments: list[str]) -> int:
    return contextvars.copy_context().run(_run, arguments, Session())


@pytest.mark.usefixtures("accents")
@pytest.mark.parametrize("asked", ASKED)
def test_no_verb_says_an_english_sentence_in_another_language(
    asked: str, quoted: set[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    day = [] if asked in DAYLESS else TODAY
    page = [] if asked.startswith("wrong") else ["--html", str(tmp_path / "page.html")]
    there = files(tmp_path)
    run([*(there.get(word, word) for word in ASKED[asked]), *day, *page, "--lang", "eo", "--width", "500"])
    said = capsys.readouterr()
    assert english(said.out + said.err, quoted) == []
    if page and not asked.startswith("wrong"):
        html = (tmp_path / "page.html").read_text(encoding="utf-8")
        body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", html.partition("<main>")[2], flags=re.DOTALL)
        assert english(re.sub(r"<[^>]*>", "\n", body), quoted) == []


@pytest.mark.usefixtures("accents")
@pytest.mark.parametrize("verb", QUESTIONS)
def test_no_help_says_an_english_sentence_in_another_language(
    verb: str, quoted: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run([verb, "--lang", "eo", "--help"])
    told = re.sub(r"'[^']*'", "", capsys.readouterr().out)
    assert english(told, quoted) == []


def test_json_and_csv_are_the_same_in_every_language(capsys: pytest.CaptureFixture[str]) -> None:
    told = {}
    for language in ("en", "zh_CN"):
        for form in ("--json", "--csv"):
            run(["rank", "painter-heavy", "--gpu", "T4", "--limit", "3", *TODAY, form, "--lang", language])
            told[language, form] = capsys.readouterr().out
    assert told["en", "--csv"] == told["zh_CN", "--csv"]
    assert json.loads(told["en", "--json"]) == json.loads(told["zh_CN", "--json"])


def test_an_error_is_said_in_the_language_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rank", "painter-heavy", "--lang=zh_CN", "--nonsense", "--json"]) == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["message"] == 'There is no option "--nonsense".'
    assert "没有选项“--nonsense”。" in said.err


# ---- numbers, days, lines ----


@pytest.fixture
def chinese() -> None:
    locale.activate("zh_CN")


@pytest.mark.usefixtures("chinese")
def test_numbers_shares_and_days_are_chinese() -> None:
    assert figures.number(1234.5) == "1,234"
    assert [figures.percent(0.65), figures.chance(0.001), figures.exact_percent(0.004, ".1f")] == ["65%", "<1%", "0.4%"]
    assert figures.of_day(date(2026, 11, 30)) == "2026年11月30日 的价格"
    assert figures.day(date(2026, 11, 30)) == "2026-11-30"
    assert figures.year_month("2026-11") == "2026年11月"
    assert locale.words(Sentence("the price of {day} is {days} days old", day=date(2026, 1, 2), days=9)) == (
        "2026年1月2日 的价格已有 9 天"
    )
    growth = Sentence("it grows by {change:.0%} a year, which is {most:.0%} or more", change=0.6, most=0.5)
    assert locale.words(growth) == "每年增长 60%，达到或超过 50%"


def test_the_same_sentence_in_english_and_for_machines() -> None:
    locale.activate("zh_CN")
    with locale.in_english():
        assert locale.language() == "en"
        assert figures.of_day(date(2026, 11, 30)) == "price of 2026-11-30"
    assert locale.language() == "zh-CN"


@pytest.mark.parametrize(
    ("name", "number", "share"),
    [("de", "1.234,5", "65\xa0%"), ("fr", "1\u202f234,5", "65\u202f%"), ("zh_CN", "1,234.5", "65%")],
)
def test_signs_of_numbers_are_those_of_the_language(name: str, number: str, share: str) -> None:
    habits = writing.of_language(name)
    assert habits.number("1,234.5") == number
    assert habits.share("65").replace("\xa0", " ") == share.replace("\u202f", " ").replace("\xa0", " ")


def test_charts_write_numbers_and_months_as_the_language_does() -> None:
    told = writing.in_charts("zh_CN")
    assert (told["number"]["decimal"], told["number"]["thousands"]) == (".", ",")
    assert told["time"]["months"][10] == "十一月"
    assert (told["time"]["days"][0], told["time"]["shortDays"][1]) == ("星期日", "周一")
    assert locale.vega() is None


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", ["zh-CN", "zh", "en"]),
        ("en;q=0.3, zh-Hans-SG", ["zh-Hans-SG", "en"]),
        ("de;q=0, en", ["en"]),
        ("en;q=nonsense, zh", ["zh"]),
        ("", []),
    ],
)
def test_a_browser_says_what_it_wants_most_first(header: str, wanted: list[str]) -> None:
    assert locale.accepted(header) == wanted


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [("zh-CN,zh;q=0.9", "zh_CN"), ("zh-Hans-SG", "zh_CN"), ("zh", "zh_CN"), ("fr, en;q=0.5", "en"), ("*", "en")],
)
def test_a_browser_is_answered_in_a_language_that_there_is(wanted: str, chosen: str) -> None:
    assert locale.negotiate(locale.accepted(wanted)) == chosen


@pytest.mark.parametrize(
    ("text", "width", "broken"),
    [
        ("没有报价通过筛选。", 10, ["没有报价通", "过筛选。"]),
        ("没有报价通过筛选。", 16, ["没有报价通过筛", "选。"]),
        ("显存 80 GB（单卡）", 8, ["显存", "80 GB", "（单卡）"]),
        ("plain English words", 8, ["plain", "English", "words"]),
        ("用时 7 小时", 6, ["用时 7", "小时"]),
        ("每 GPU /月", 6, ["每 GPU", "/月"]),
    ],
)
def test_lines_end_where_chinese_lets_them_end(text: str, width: int, broken: list[str]) -> None:
    assert lines.broken(text, width) == broken
    assert "".join(lines.pieces(text)) == text


def test_blanks_beside_chinese_signs_are_closed() -> None:
    assert lines.closed("第一句。 第二句（甲） 2026年1月2日 的") == "第一句。第二句（甲）2026年1月2日的"
    assert lines.closed("Two sentences. And a day: 2026-01-02") == "Two sentences. And a day: 2026-01-02"


@pytest.fixture
def table() -> Table:
    """Names in Chinese beside figures."""
    rows = [("自有服务器", 12.5), ("云", 3.25)]
    return tabulate(
        "表",
        [
            column("name", "方案名称", lambda row: Cell(shown=row[0], value=row[0])),
            column("usd", "每小时的费用", lambda row: Cell(shown=f"{row[1]}", value=row[1]), kind="number"),
        ],
        rows,
    )


@pytest.mark.parametrize("width", [24, 20, 16])
def test_columns_line_up_under_signs_of_double_width(table: Table, width: int) -> None:
    told = as_text(Page(title="题", blocks=(table,)), width=width).splitlines()
    ends = {lines.columns(line) for line in told if line.endswith(("12.5", "3.25"))}
    assert len(ends) == 1
    assert max(map(lines.columns, told)) <= width


def test_a_paragraph_fills_its_lines_and_no_line_begins_with_a_closing_sign() -> None:
    text = "abc " + "在参与排名的报价中它最便宜。" * 8
    told = as_text(Page(title="题", blocks=(Text(text=text),)), width=40).splitlines()[1:]
    body = [line for line in told if line]
    assert all(36 <= lines.columns(line) <= 40 for line in body[:-1])
    assert not any(line.startswith(tuple("，。；：、）")) for line in body)


@pytest.mark.usefixtures("chinese")
def test_markdown_joins_notes_in_chinese_brackets() -> None:
    made = tabulate("t", [column("a", "名", lambda row: Cell(shown=row, note="示例"))], ["甲"])
    assert "甲（示例）" in markdown(made)


def test_a_catalogue_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(locale, "_language", locale._language.__wrapped__)
    locale.activate("zh_CN")
    assert len(list((tmp_path / "languages").glob("zh_CN-*.mo"))) == 1
    monkeypatch.setattr(locale, "_compiled", _never)
    locale.activate("zh_CN")
    assert locale.gettext("Offers") == "报价"


_never: Callable[..., bytes]


def _never(*_given: object) -> bytes:
    raise AssertionError("compiled again")
