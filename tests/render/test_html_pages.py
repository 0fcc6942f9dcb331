"""The report as one HTML file: escaped, self-contained, complete without a script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.pages import make_candidate, make_offer, make_ranking

from gpuwise import locale
from gpuwise.render import vega
from gpuwise.render.html import embedded, html
from gpuwise.request import RankRequest
from gpuwise.view.page import Caution, Cell, Chart, Column, Fact, Facts, Page, Table, Text
from gpuwise.view.ranking import ranking_page

REQUEST = RankRequest(workloads=("painter-heavy",))
HOSTILE = "</script><script>alert(1)</script>&\"'"


class Elements(HTMLParser):
    """Every element with its attributes; and what stands inside scripts and styles."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, dict[str, str | None], str]] = []
        self.code = False
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.code = tag in ("script", "style")
        if self.code:
            self.inside.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag):
        self.code = False

    def handle_data(self, data):
        if self.code:
            tag, attributes, before = self.inside.pop()
            self.inside.append((tag, attributes, before + data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory) -> Path:
    """One cache folder for all tests, away from the person's own."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("GPUWISE_CACHE", str(folder))
        yield folder


@pytest.fixture
def report(ranking) -> str:
    return html(ranking_page(ranking, REQUEST))


def small_page() -> Page:
    columns = (
        Column(key="on_frontier", title="★", kind="mark"),
        Column(key="name", title="Name"),
        Column(key="id", title="", hidden=True),
        Column(key="time_s", title="Time", unit="h", kind="estimate"),
    )
    rows = (
        (
            Cell(shown="★", value=True),
            Cell(shown="a & b", value="a & b", note="example"),
            Cell(shown="1", value="1"),
            Cell(shown="9.40", span="8.11–10.89", value=33_840.0, title="speed 12 %"),
        ),
        (Cell(shown="", value=False), Cell(shown="c", value="c"), Cell(shown="2"), Cell(shown="unknown", title="why")),
    )
    return Page(
        title="Where <should> it run?",
        blocks=(
            Text(text="Cheapest: a & b.", role="answer"),
            Caution(text="One price is old."),
            Table(title="Offers", columns=columns, rows=rows, notes=("Two rows.",)),
            Facts(title="Facts", facts=(Fact(label="Tax", text="net", why="as you said"),)),
        ),
        foot="Data 1.",
    )


def test_the_markup_of_a_small_page(golden):
    document = html(small_page())
    golden("page.html", document[document.index("<main>") : document.index("</footer>")] + "</footer>\n")


def test_the_policy_lets_nothing_in_but_the_scripts_and_the_style_of_the_page(report):
    elements = Elements(report)
    (policy,) = [m["content"] for m in elements.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert parts["default-src"] == "'none'"
    assert "unsafe" not in policy
    runnable = [data for tag, attributes, data in elements.inside if tag == "script" and not attributes.get("type")]
    digests = {f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in runnable}
    assert len(digests) == 2
    assert set(parts["script-src"].split()) == digests


def test_nothing_is_asked_of_another_host(report):
    """A link is followed only by a person."""
    for tag, attributes in Elements(report).found:
        for name in ("src", "href", "action", "srcset", "data"):
            assert tag == "a" or (attributes.get(name) or "data:").startswith(("data:", "#"))
        assert not {n for n in attributes if n.startswith("on")}
        assert "style" not in attributes


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("no address", []),
        ("see https://a.org/x, or", ["https://a.org/x"]),
        ("javascript:alert(1)", []),
        ("<b>&", []),
        ('https://a.org/"><script>', ['https://a.org/"><script']),
    ],
)
def test_an_address_becomes_a_link_and_the_rest_stays_text(text, addresses):
    page = Page(title="x", blocks=(Facts(title="y", facts=(Fact(label="z", text=text),)),))
    found = Elements(html(page)).found
    links = [attributes for tag, attributes in found if tag == "a"]
    assert [link["href"] for link in links] == addresses
    assert all(set(link["rel"].split()) == {"noopener", "noreferrer"} for link in links)
    bare = Elements(html(Page(title="x", blocks=()))).found
    assert [tag for tag, _ in found].count("script") == [tag for tag, _ in bare].count("script")


def test_the_document_states_its_charset_first_and_its_language(report):
    elements = Elements(report)
    assert elements.all("meta")[0] == {"charset": "utf-8"}
    assert elements.all("html") == [{"lang": "en"}]


def test_tables_are_tables_for_those_who_listen(report):
    elements = Elements(report)
    assert {head["scope"] for head in elements.all("th")} == {"col", "row"}
    assert len(elements.all("caption")) == len(elements.all("table")) == 3
    headings = {heading.get("id") for heading in elements.all("h2")}
    assert {part["aria-labelledby"] for part in elements.all("section")} <= headings


def test_the_picture_is_there_without_a_script_and_says_the_same_in_words(report):
    (plot,) = [d for d in Elements(report).all("div") if d.get("class") == "plot"]
    assert plot["role"] == "img"
    assert plot["aria-label"].startswith(
        "Scatter plot of 6 offers: cost from 3.23 to 330 USD, time from 0.87 to 14.5 h"
    )
    assert report.count('<svg xmlns="http://www.w3.org/2000/svg"') == 1


def test_every_row_with_a_cost_is_one_point_of_the_chart(report, ranking):
    (data,) = [d for tag, attributes, d in Elements(report).inside if tag == "script" and attributes.get("type")]
    spec = json.loads(data)
    assert len(spec["data"]["values"]) == sum(c.cost_usd is not None for c in ranking.candidates)
    assert [p["frontier"] for p in spec["data"]["values"]].count(True) == 3


def test_uc_119_a_hostile_name_stays_text_everywhere(ranking):
    row = make_candidate(make_offer(HOSTILE, "BaNaNa", "a10", 1, 0.5), 9.0, on_frontier=True)
    report = html(ranking_page(make_ranking((row,)), REQUEST))
    elements = Elements(report)
    assert len(elements.all("script")) == 3
    assert "alert(1)</script>" not in report
    (data,) = [d for tag, attributes, d in elements.inside if tag == "script" and attributes.get("type")]
    assert json.loads(data)["data"]["values"][0]["provider"] == HOSTILE


def test_data_inside_a_script_element_cannot_end_it():
    text = embedded({"x": "</script><!--", "y": "&"})
    assert not re.search("[<>&]", text)
    assert json.loads(text) == {"x": "</script><!--", "y": "&"}


def test_a_page_without_a_chart_carries_no_chart_library():
    assert len(html(small_page())) < 30_000


def test_two_charts_are_drawn_each_from_its_own_figures(ranking):
    chart = next(b for b in ranking_page(ranking, REQUEST).blocks if isinstance(b, Chart))
    report = html(Page(title="x", blocks=(chart, chart)))
    assert report.count('<figure class="chart"') == 2
    assert report.count('type="application/json"') == 2


def test_the_scripts_are_bundled_once_and_a_damaged_copy_is_made_anew(cache):
    first = vega.scripts()
    (file,) = cache.glob("scripts/vega-*.js")
    assert "</script" not in first
    kept = file.read_bytes()
    file.write_bytes(kept[:1000])
    assert vega.scripts() == first
    assert file.read_bytes() == kept


def test_a_drawing_is_kept_and_a_damaged_one_is_drawn_anew(cache, ranking):
    chart = next(b for b in ranking_page(ranking, REQUEST).blocks if isinstance(b, Chart))
    before = set(cache.glob("charts/*.svg"))
    first = vega.still(replace(chart, alt="drawn for this test"))
    (file,) = set(cache.glob("charts/*.svg")) - before
    assert first.startswith("<svg")
    file.write_bytes(b"<svg>nonsense")
    assert vega.still(replace(chart, alt="drawn for this test")) == first


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GPUWISE_CACHE", str(tmp_path / "file"))
    assert "vegaEmbed" in vega.scripts()


def test_the_page_speaks_the_language_that_is_active(tmp_path):
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'
    (tmp_path / "eo.po").write_text(head + 'msgid "Offers"\nmsgstr "Ofertoj"\n', encoding="utf-8")
    locale.activate("eo", tmp_path)
    row = make_candidate(make_offer("a", "b", "a10", 1, 0.5), 9.0)
    report = html(ranking_page(make_ranking((row,)), REQUEST))
    assert '<html lang="eo">' in report
    assert ">Ofertoj</h2>" in report
