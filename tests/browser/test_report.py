"""The report in a real browser: nothing is fetched, nothing complains; wide, narrow, dark, and without JavaScript."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.pages import JOB, make_candidate, make_offer, make_ranking, small_ranking

from gpuwise.cli import Session, program
from gpuwise.render import write_text
from gpuwise.render.html import html
from gpuwise.request import RankRequest
from gpuwise.view.ranking import ranking_page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

REQUEST = RankRequest(workloads=("painter-heavy",))
POINTS = ".plot .role-mark.mark-symbol path"
HOSTILE = "</script><script>document.title='owned'</script>&<img src=x onerror=1>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        file = tmp_path_factory.mktemp("report") / "report.html"
        write_text(file, html(ranking_page(small_ranking(), REQUEST)))
    return file


@pytest.fixture(scope="module")
def owned(tmp_path_factory) -> Path:
    """The report of `own`: charts without layers and without a frontier, and tables with long heads."""
    file = tmp_path_factory.mktemp("owned") / "own.html"
    words = ("own", "--demand", "40 GPUs", "--gpu", "H100-SXM", "--provider", "aws", "--data-size", "50TB", "--html")
    env = {"GPUWISE_CACHE": str(tmp_path_factory.mktemp("cache"))}
    said = CliRunner().invoke(program, (*words, str(file)), obj=Session(today=date(2026, 12, 1)), env=env)
    assert said.exit_code == 0, said.output
    return file


Open = Callable[..., Any]


@pytest.fixture
def visit(browser, report) -> Open:
    """visit(file, width=…, dark=…, script=…): the page, opened; anything fetched or complained of fails the test."""

    @contextmanager
    def opened(file: Path = report, *, width: int = 1400, dark: bool = False, script: bool = True) -> Iterator[Any]:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
        )
        page, said, asked = context.new_page(), [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        if script:
            page.wait_for_selector(".still", state="detached")
        yield page
        context.close()
        assert said == []
        assert asked == [file.as_uri()]

    return opened


def test_every_row_with_a_cost_is_one_mark_and_the_frontier_is_drawn(visit):
    with visit() as page:
        drawn = sum(c.cost_usd is not None for c in small_ranking().candidates)
        assert page.locator(POINTS).count() == drawn == 6
        assert page.locator("tbody tr.marked").count() == 3
        assert page.locator(".plot .mark-line path").count() == 1


def test_a_point_says_on_hover_what_the_table_says(visit):
    with visit() as page:
        page.locator(POINTS).first.hover()
        hint = page.locator("#vg-tooltip-element.visible")
        hint.wait_for()
        assert "9.50 (8.20–11.01)" in hint.inner_text()
        assert "rtx-4090 host" in hint.inner_text()


def test_without_javascript_the_answer_the_picture_and_the_table_are_there(visit):
    with visit(script=False) as page:
        assert page.locator(".answer").first.is_visible()
        assert page.locator(".still svg").is_visible()
        assert page.locator(".still .role-mark.mark-symbol path").count() == 6
        assert page.locator("tbody tr").count() == 8 + 4 + 1


@pytest.mark.parametrize("width", [1400, 1000, 800, 390])
@pytest.mark.parametrize("script", [True, False])
def test_the_page_never_scrolls_sideways_and_wide_tables_do_so_in_their_own_box(visit, width, script):
    with visit(width=width, script=script) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture = page.locator(".plot > div").bounding_box()
        assert 0 < picture["width"] <= width
        if width == 1000:
            box = page.locator(".scroll").first
            assert box.evaluate("b => b.scrollWidth > b.clientWidth")


@pytest.mark.parametrize("width", [1400, 800, 390])
@pytest.mark.parametrize("script", [True, False])
def test_what_decides_is_in_sight_at_any_width(visit, width, script):
    with visit(width=width, script=script) as page:
        row = page.locator("table").first.locator("tbody tr").first
        assert row.locator("th").inner_text() == "1 × RTX 4090"
        for key in ("Time, h", "Cost, USD", "P(cheapest)", "Price, USD", "Price seen"):
            box = row.locator(f"[data-label='{key}']").bounding_box()
            assert box["width"] > 0
            assert box["x"] + box["width"] <= width
        if width < 1000:
            assert page.locator(".scroll").first.evaluate("b => b.scrollWidth <= b.clientWidth")


@pytest.mark.parametrize("width", [390, 1280, 1600])
def test_the_report_of_owning_draws_all_charts_and_cuts_no_table(visit, owned, width):
    with visit(owned, width=width) as page:
        assert page.locator(".live svg").count() == page.locator("figure.chart").count() == 2
        cut = "boxes => boxes.filter(b => b.scrollWidth > b.clientWidth).map(b => b.innerText.slice(0, 40))"
        assert page.locator(".scroll").evaluate_all(cut) == []
        legend = page.locator(".role-legend").first.bounding_box()
        assert legend["x"] + legend["width"] <= width


def test_on_a_phone_a_figure_that_is_not_there_has_no_label(visit, owned):
    with visit(owned, width=390) as page:
        row = page.locator("table").first.locator("tbody tr").first
        assert row.locator("[data-label='A useful GPU-hour, USD']").is_visible()
        assert row.locator("[data-label='Paid back after, months']").is_hidden()


def test_on_a_phone_each_figure_has_its_label_and_its_interval(visit):
    with visit(width=390) as page:
        cell = page.locator("table").first.locator("tbody tr").first.locator("[data-label='Time, h']")
        label, span = (
            cell.evaluate("(e, p) => getComputedStyle(e, p).content", f"::{side}") for side in ("before", "after")
        )
        assert (label, span) == ('"Time, h"', '"8.20–11.01"')


def test_addresses_are_links_that_tell_nobody_where_one_comes_from(visit, tmp_path):
    page = ranking_page(
        replace(small_ranking(), sources={"S06": "GPU prices, https://example.org/a_(b)?c=1&d."}), REQUEST
    )
    file = tmp_path / "links.html"
    write_text(file, html(page))
    with visit(file) as opened:
        link = opened.locator("dd a").first
        assert link.get_attribute("href") == "https://example.org/a_(b)?c=1&d"
        assert link.get_attribute("rel") == "noopener noreferrer"


def test_dark_and_light_change_paper_ink_and_picture(visit):
    def colours(page) -> list[str]:
        return page.evaluate(
            """() => [document.body, document.querySelector(".plot .role-axis-label text")]
                     .map((e, i) => i ? getComputedStyle(e).fill : getComputedStyle(e).backgroundColor)"""
        )

    with visit() as light, visit(dark=True) as dark:
        assert all(a != b for a, b in zip(colours(light), colours(dark), strict=True))


def test_a_click_on_a_head_sorts_by_full_values_and_unknown_ones_stay_last(visit):
    with visit() as page:
        head = page.locator("th[data-key=cost_usd]").first
        providers = page.locator("table").first.locator("tbody .name:nth-child(3)")
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "ascending"
        assert providers.all_inner_texts()[0] == "vast"
        head.locator("button").press("Enter")
        assert head.get_attribute("aria-sort") == "descending"
        assert providers.all_inner_texts()[0] == "hostkey"
        assert {text.split("\n")[0] for text in providers.all_inner_texts()[-2:]} == {"own machine", "colab"}


def test_the_heads_and_the_wide_table_are_reached_by_keyboard(visit):
    with visit() as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "scroll"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('th').dataset.key") == "on_frontier"


def test_uc_119_a_hostile_name_is_shown_as_it_is_and_runs_nothing(visit, tmp_path):
    row = make_candidate(make_offer("BaNaNa Cloud", HOSTILE, "a10", 1, 0.5), 9.0, on_frontier=True, p_cheapest=0.5)
    file = tmp_path / "Läufe №1 & more.html"
    write_text(file, html(ranking_page(make_ranking((row,)), REQUEST)))
    with visit(file) as page:
        assert page.title() == "Where should painter-heavy run?"
        assert HOSTILE in page.locator("tbody").first.inner_text()
        page.locator(POINTS).first.hover()
        page.locator("#vg-tooltip-element.visible").wait_for()
        assert page.locator("img").count() == 0


def test_hundreds_of_offers_are_drawn_and_each_is_a_row(visit, tmp_path):
    rows = tuple(
        make_candidate(make_offer(f"p{i}", "x", "a10", 1, 0.1 + i / 100), 5.0 + i % 17, on_frontier=i < 3)
        for i in range(600)
    )
    file = tmp_path / "many.html"
    write_text(file, html(ranking_page(make_ranking(rows, workloads=(JOB,)), REQUEST)))
    with visit(file) as page:
        assert page.locator(POINTS).count() == page.locator("table").first.locator("tbody tr").count() == 600
