"""Every text that a person sees can be translated: it is in the template, and it is looked up where it is shown."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po
from tools.messages import extract

from gpuwise import locale
from gpuwise.cost.monthly import Month
from gpuwise.cost.sharing import Node, Pod, split
from gpuwise.cost.usage import Meter, Promise, usage_bill
from gpuwise.errors import Message
from gpuwise.integrity import Finding
from gpuwise.predict.against import score
from gpuwise.request import RankRequest
from gpuwise.view.accuracy import against_page, splits_page
from gpuwise.view.bill import bill_page, shared_page
from gpuwise.view.catalogue import Change, changes_page, check_page, offers_page, pools_page
from gpuwise.view.costs import costs_page
from gpuwise.view.explanation import explanation_page
from gpuwise.view.page import Caution, Chart, Facts, Page, Table, Text
from gpuwise.view.ranking import ranking_page
from gpuwise.view.workload import workload_page  # fmt: skip
from tests.cost.test_usage import DAY, REPORT, seen
from tests.pages import JOB, small_ranking
from tests.scoring import SEEN, SHIPPED, by_sheet
from tests.test_view import EURO, fleet

PACKAGE = Path(__file__).parent.parent / "src" / "gpuwise"
TECHNICAL = re.compile(
    r"datum\.|isValid\(|font|sans-serif|var\(--|window\.|^'none'$|has no form|has no block|&lt;|<a href"
)
"""Words for Vega, CSS, HTML and programmers."""


@pytest.fixture(scope="module")
def template() -> Catalog:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return extract()


def sentences(file: Path) -> Iterator[str]:
    """Strings of two words or more that are neither docstrings, nor keys of a table, nor technical."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    docs |= {id(key) for n in ast.walk(tree) if isinstance(n, ast.Dict) for key in n.keys}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if re.search(r"[a-z] [a-z]", text, re.IGNORECASE) and id(node) not in docs and not TECHNICAL.search(text):
            yield text


@pytest.mark.parametrize("file", [*PACKAGE.glob("view/*.py"), *PACKAGE.glob("render/*.py")], ids=lambda p: p.name)
def test_every_sentence_of_view_and_render_is_in_the_template(template, file):
    known = {text for m in template for text in (m.id if isinstance(m.id, tuple) else (m.id,))}
    assert set(sentences(file)) <= known


def test_messages_of_the_core_and_help_texts_are_in_the_template(template):
    for text in ("there is no translation into {name}", "the offer was withdrawn", "What comes first."):
        assert text in template


@pytest.fixture
def bracketed(template, tmp_path) -> Iterator[None]:
    """A language in which every known text stands in corner brackets."""
    there = Catalog(locale="eo")
    for message in template:
        if isinstance(message.id, tuple):
            there.add(message.id, tuple(f"「{text}」" for text in message.id))
        elif message.id:
            there.add(message.id, f"「{message.id}」")
    with (tmp_path / "eo.po").open("wb") as file:
        write_po(file, there)
    locale.activate("eo", tmp_path)
    yield
    locale.activate("en")


def shown(page: Page) -> Iterator[str]:
    """Every text of a page that must not be bare English."""
    yield page.title
    if page.foot:
        yield page.foot
    for block in page.blocks:
        match block:
            case Text() | Caution():
                yield block.text
            case Facts():
                yield from (block.title, *(fact.label for fact in block.facts if fact.label != JOB.name))
            case Chart():
                yield from (block.title, block.alt, block.note, block.spec["encoding"]["x"]["title"])
            case Table():
                seen = block.visible()
                yield from (block.title, *block.notes, *(c.title for c in seen.columns if c.title != "★"))


METERED = usage_bill(
    [Meter(name="m", price_per_hour=1.0, events=seen((8, "up"), (9, "stopped")), disk_price_per_month=1.0)],
    REPORT,
    [Promise(per_hour=1.0, start=DAY)],
)
NODE = Node(name="「n」", price_per_hour=4.0, vcpus=32, accelerators=4, memory_gib=128.0)
MONTHS = [Month(month="2026-01", currency=code, amount=3.0, charges=1) for code in ("EUR", "USD")]
PAGES = {
    "ranking": lambda r: ranking_page(r, RankRequest(hours_per_month=400.0, jobs=2, prepare_s=60.0), EURO),
    "explanation": lambda r: explanation_page(JOB, [r.candidates[0].prediction], candidate=r.candidates[0]),
    "comparison": lambda r: explanation_page(JOB, [c.prediction for c in r.candidates]),
    "workload": lambda r: workload_page(JOB),
    "offers": lambda r: offers_page(fleet(), 4),
    "pools": lambda r: pools_page(fleet(), ["provider", "gpu", "market", "region", "country", "host", "date"]),
    "check": lambda r: check_page([Finding(table="t", row="r", rule="x", message=Message("odd"))], [], {"t": 1}),
    "accuracy": lambda r: splits_page(SHIPPED, by="family"),
    "against": lambda r: against_page(score(SEEN, by_sheet, frozenset()), by="workload"),
    "bill": lambda r: bill_page(METERED, stated=False),
    "shared": lambda r: shared_page([split(NODE, [Pod(name="A", vcpus=8)])]),
    "costs": lambda r: costs_page("billed", "「cost」", "day", MONTHS, [("USD", 3.0), ("EUR", 3.0)], []),
    "changes": lambda r: changes_page("a", "b", [Change(before=None, after=fleet()[0])]),
}


@pytest.mark.usefixtures("bracketed")
@pytest.mark.parametrize("build", PAGES.values(), ids=PAGES)
def test_no_text_of_a_page_is_bare_english(build):
    bare = [
        text
        for text in shown(build(replace(small_ranking(), warnings=())))
        if "「" not in text and not re.fullmatch(r"\d*", text)
    ]
    assert bare == []
