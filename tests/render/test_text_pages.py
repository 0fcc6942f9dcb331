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
    head = next(line for line in shown.splitlines() if line.startswith("★ "))
    named = re.search(r"Not shown at this width: (.*?)\.", shown, re.DOTALL).group(1)
    for title in ("Region", "Break-even"):
        assert title not in head
        assert title in named
    for title in ("Provider", "GPUs", "Time", "Cost"):
        assert title in head
        assert title not in named.split(", ")


@pytest.mark.parametrize("width", [80, 60, 50])
def test_no_word_of_the_table_is_broken(page, width):
    def words(columns: int) -> set[str]:
        shown = text(page, width=columns)
        return set(shown[shown.index("★  ") : shown.index("★ on the frontier")].replace("─", "").split())

    assert words(width) <= words(400)


def test_remarks_stand_below_the_provider_at_any_width(page):
    for width in (160, 80):
        assert re.search(r"^ +own machine.*\n +example$", text(page, width=width), re.MULTILINE)


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
