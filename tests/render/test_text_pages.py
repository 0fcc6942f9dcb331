"""A page on a console: as wide as it is, in the signs that it knows, without colour where nobody looks."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.pages import make_candidate, make_offer, make_ranking

from gpuwise.render.text import text
from gpuwise.request import RankRequest
from gpuwise.view.page import Cell, Column, Page, Table
from gpuwise.view.ranking import ranking_page

REQUEST = RankRequest(workloads=("painter-heavy",))
ESCAPE = "\x1b"


@pytest.fixture
def page(ranking) -> Page:
    return ranking_page(ranking, REQUEST)


def test_the_page_at_100_columns(page, golden):
    golden("ranking.txt", text(page, width=100))


@pytest.mark.parametrize("width", [160, 120, 100, 80, 60, 50])
def test_no_line_is_wider_than_the_console(page, width):
    assert max(map(cell_len, text(page, width=width).splitlines())) <= width


@pytest.mark.parametrize("width", [120, 80, 50])
def test_what_does_not_fit_is_left_out_as_a_whole_and_named(page, width):
    shown = text(page, width=width)
    head = shown[shown.index("Offers\n") : shown.index("───")]
    named = re.search(r"Not shown at this width: (.*?)\.", shown, re.DOTALL).group(1)
    for title in ("Region", "Instance"):
        assert title not in head
        assert title in named
    for title in ("Provider", "GPUs", "Time", "Cost"):
        assert title in head
        assert title not in named.split(", ")


@pytest.mark.parametrize("width", [80, 60, 50])
def test_no_word_of_the_table_is_broken(page, width):
    def words(columns: int) -> set[str]:
        shown = text(page, width=columns)
        table = shown[shown.index("Offers\n") : shown.index("★ on the frontier")]
        return {word.strip("(),") for word in table.replace("─", "").split()}

    assert words(width) <= words(400)


def test_remarks_stand_on_one_line_below_their_row_at_any_width(page):
    for width in (160, 80):
        assert re.search(r"own machine.*(\n.*)?\n   example$", text(page, width=width), re.MULTILINE)


@pytest.mark.parametrize("kind", ["text", "number"])
def test_remarks_of_a_word_stand_beside_what_they_are_about(kind):
    columns = (Column(key="servers", title="Servers", kind=kind), Column(key="gpus", title="GPUs", kind="number"))
    rows = tuple((Cell(shown=str(n), note="best" if n == 6 else ""), Cell(shown=str(8 * n))) for n in (5, 6, 7))
    shown = text(Page(title="x", blocks=(Table(title="How many", columns=columns, rows=rows),)))
    assert re.search(r"^ *6 +best +48$", shown, re.MULTILINE)
    assert shown.count("\n") == 2 + 1 + 2 + len(rows), "no line more"


@pytest.mark.parametrize("width", [120, 100])
def test_time_cost_chance_price_and_its_date_are_there_at_100_columns(page, width):
    shown = text(page, width=width)
    head = shown[shown.index("Offers\n") : shown.index("───")]
    for title in ("Time", "Cost", "P(cheapest)", "Price, USD", "Price seen", "Market"):
        assert title in head


@pytest.mark.parametrize("width", [120, 80, 60, 40, 24])
def test_the_legend_explains_what_is_shown_and_nothing_else(page, width):
    shown = text(page, width=width)
    head = shown[shown.index("Offers\n") : shown.index("───")]
    assert ("P(cheapest): how likely" in shown.replace("\n", " ")) == ("P(cheapest)" in head)
    assert ("Ranges are 80 % intervals" in shown) == ("8.20–11.01" in shown)


def test_where_few_offers_name_an_instance_it_stands_beside_the_provider(ranking):
    rows = tuple(make_candidate(make_offer(f"p{i}", "big.1" if i == 0 else "", "a10", 1, 0.5), 9.0) for i in range(3))
    page = ranking_page(make_ranking(rows), REQUEST)
    assert "p0 big.1" in text(page, width=160)
    assert "Instance" not in text(page, width=160)


def test_counts_stay_beside_a_long_reason_on_a_narrow_console():
    columns = (Column(key="n", title="Rows", kind="number"), Column(key="why", title="Reason"))
    table = Table(title="Left out", columns=columns, rows=((Cell(shown="1,012"), Cell(shown="word " * 60)),))
    assert "1,012  word word" in text(Page(title="x", blocks=(table,)), width=40)


def test_a_number_is_not_parted_from_its_gigabytes(page):
    assert not re.search(r"^ *GB\b", text(page, width=60), re.MULTILINE)


def test_figures_and_their_intervals_stand_below_each_other(page):
    lines = [line for line in text(page, width=160).splitlines() if re.match(r"[★ ] {2}\w.*\(\d", line)]
    assert len(lines) == 8
    assert len({line.index("(") for line in lines}) == 1


def test_uc_124_text_has_no_colours_unless_they_are_asked_for(page):
    assert "Cheapest: vast" in text(page)
    assert ESCAPE not in text(page)


def test_a_console_that_a_person_looks_at_has_colours(page):
    assert ESCAPE in text(page, colour=True)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "utf-8", "gbk"])
def test_uc_121_a_console_of_any_code_page_shows_the_page_without_exception(ranking, encoding):
    row = make_candidate(make_offer("Ü-Cloud € 🎨", "ставка", "a10", 1, 0.5), 9.0, on_frontier=True)
    shown = text(ranking_page(make_ranking((row,)), REQUEST), width=100, encoding=encoding)
    assert shown.encode(encoding).decode(encoding) == shown
    assert "-Cloud" in shown
    assert "1 x A10" in shown or "1 × A10" in shown


def test_uc_121_signs_have_plain_stand_ins_and_only_names_lose_letters():
    row = make_candidate(make_offer("ü", "i", "a10", 1, 0.5), 9.0, on_frontier=True)
    shown = text(ranking_page(make_ranking((row,)), REQUEST), encoding="ascii")
    assert shown.count("?") == shown.count("Where should painter-heavy run?") + 2
    assert "* " in shown
    assert "9.40 (8.11-10.89)" in shown


@given(
    st.lists(st.text(max_size=12), min_size=1, max_size=6), st.integers(20, 120), st.sampled_from(["ascii", "utf-8"])
)
def test_any_words_fit_any_console(words, width, encoding):
    columns = tuple(Column(key=str(i), title=w, rank=i) for i, w in enumerate(words))
    table = Table(title="", columns=columns, rows=(tuple(Cell(shown=w) for w in words),))
    shown = text(Page(title="x", blocks=(table,)), width=width, encoding=encoding)
    assert max(map(cell_len, shown.splitlines())) <= width


def test_brackets_in_a_name_are_not_taken_for_markup(ranking):
    odd = replace(ranking.candidates[0], offer=make_offer("[bold]x[/]", ":smile:", "a10", 1, 0.5))
    assert "[bold]x[/]" in text(ranking_page(make_ranking((odd,)), REQUEST))
    assert ":smile:" in text(ranking_page(make_ranking((odd,)), REQUEST), width=200)
