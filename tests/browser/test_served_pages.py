"""The served pages in a real browser: nothing foreign, nothing complained of; for mouse, keyboard and screen reader.

Each page is photographed into tests/artefacts, to be looked at.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.web.asking import DAY, EVENTS

from gpuwise.cli import Session, program

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("fastapi", reason="the extra [web] is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

ARTEFACTS = Path(__file__).parent.parent / "artefacts"
RANK = "/rank?workloads=painter-heavy"
PAGES = {
    "entry": "/", "rank-form": "/rank", "rank": RANK, "explain": "/explain?workload=painter-heavy",
    "describe": "/describe?target=painter-heavy", "runs": "/runs", "own": "/own?demand=40+GPUs&gpu=H100-SXM",
    "exit": "/exit?services=S3,SageMaker,EC2", "accuracy": "/accuracy", "data": "/data", "bill": "/bill",
}  # fmt: skip
EVERY = pytest.mark.parametrize("name", PAGES)
UNFOLD = "document.querySelectorAll('details').forEach((one) => one.open = true)"
POINTS = ".plot .role-mark.mark-symbol path"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    from tests.web.conftest import in_a_thread

    from gpuwise.web.app import Settings

    folder = tmp_path_factory.mktemp("served")
    ARTEFACTS.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUWISE_CACHE", str(folder / "cache"))
        patch.setenv("GPUWISE_STORE", str(folder / "runs.sqlite3"))
        with in_a_thread(Settings(today=lambda: DAY)) as asking:
            yield str(asking.base_url).rstrip("/")


Open = Callable[..., Any]


@pytest.fixture
def visit(browser, address) -> Open:
    """visit(path, width=…, dark=…, script=…): the page, opened; what is foreign or complained of fails the test."""

    @contextmanager
    def opened(path: str, *, width: int = 1400, dark: bool = False, script: bool = True) -> Iterator[Any]:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light",
            java_script_enabled=script, reduced_motion="reduce",
        )  # fmt: skip
        context.set_default_timeout(15_000)
        page, said, asked = context.new_page(), [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address + path)
        if script:
            page.wait_for_load_state("networkidle")
        try:
            yield page
        finally:
            context.close()
        assert said == []
        assert [url for url in asked if not url.startswith((address, "data:"))] == []

    return opened


def sideways(page: Any) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


# ---- every page ----


@EVERY
@pytest.mark.parametrize("width", [390, 820, 1400, 2200])
def test_a_page_never_scrolls_sideways_and_asks_no_other_host(visit, name, width):
    with visit(PAGES[name], width=width) as page:
        assert sideways(page) <= 0
        page.evaluate(UNFOLD)
        assert sideways(page) <= 0
        page.screenshot(path=ARTEFACTS / f"{name}-{width}.png", full_page=True)


@EVERY
@pytest.mark.parametrize("width", [390, 1400])
def test_without_javascript_the_page_is_there_and_keeps_its_width(visit, name, width):
    with visit(PAGES[name], width=width, script=False) as page:
        assert page.locator("h1").is_visible()
        assert sideways(page) <= 0
        if "?" in PAGES[name]:
            assert page.locator("article .answer, article p").first.is_visible()
            assert page.locator(".still svg").count() == page.locator("figure.chart").count()


NAMELESS = """() => {
  const seen = (e) => e.checkVisibility();
  const by = (e) => document.getElementById(e.getAttribute("aria-labelledby") || "-")?.textContent;
  const named = (e) => (e.getAttribute("aria-label") || by(e) || e.textContent || "").trim();
  const found = [];
  for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!e.labels.length && !e.getAttribute("aria-label")) found.push(e.outerHTML);
  for (const e of document.querySelectorAll("a[href], button, summary, figure, section, nav, [role=region]"))
    if (seen(e) && !named(e)) found.push(e.outerHTML.slice(0, 100));
  for (const e of document.querySelectorAll("[role=img]")) if (!e.getAttribute("aria-label")) found.push(e.outerHTML);
  for (const e of document.querySelectorAll("table")) if (!e.caption && !e.closest(".compared")) found.push("table");
  for (const e of document.querySelectorAll("th:not([scope])")) found.push(e.outerHTML);
  const described = document.querySelectorAll("[aria-describedby]");
  for (const e of described) if (!document.getElementById(e.getAttribute("aria-describedby"))) found.push(e.outerHTML);
  const ids = [...document.querySelectorAll("[id]:not(svg *)")].map((e) => e.id);
  found.push(...ids.filter((id, place) => ids.indexOf(id) !== place).map((id) => `twice: ${id}`));
  const places = document.querySelectorAll("[tabindex]");
  for (const e of places) if (Number(e.getAttribute("tabindex")) > 0) found.push(e.outerHTML.slice(0, 100));
  return found;
}"""
HEADINGS = "() => [...document.querySelectorAll('h1, h2, h3, h4')].map((e) => Number(e.tagName[1]))"


@EVERY
def test_everything_has_a_name_headings_stand_in_order_and_there_are_landmarks(visit, name):
    with visit(PAGES[name]) as page:
        assert page.evaluate(NAMELESS) == []
        levels = page.evaluate(HEADINGS)
        assert levels.count(1) == 1
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert page.locator("html").get_attribute("lang") == "en"
        assert page.locator("main").count() == page.locator("body > header").count() == 1
        assert page.locator("nav").count() >= 1
        assert page.title()
        current = page.locator("nav [aria-current=page]").all_inner_texts()
        assert len(current) == (name != "entry")


PALE = """() => {
  const parts = (text) => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return found.length > 3 ? found : [...found, 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const linear = (v) => (v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
  const behind = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) layers.push(parts(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const ratio = (colour, ground) => {
    const [a, b] = [light(over(colour, ground)), light(ground)].sort((x, y) => y - x);
    return (a + .05) / (b + .05);
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest("svg, script, .skip, caption")) continue;
    const got = ratio(parts(getComputedStyle(e).color), behind(e));
    if (got < 4.5) found.push(`${got.toFixed(2)} ${e.outerHTML.slice(0, 90)}`);
  }
  for (const e of document.querySelectorAll("[placeholder]")) {
    const style = getComputedStyle(e, "::placeholder"), colour = parts(style.color);
    colour[3] *= Number(style.opacity);
    const got = ratio(colour, behind(e));
    if (got < 4.5) found.push(`${got.toFixed(2)} placeholder of ${e.name}`);
  }
  for (const e of document.querySelectorAll("svg text")) {
    const got = ratio(parts(getComputedStyle(e).fill), behind(e.closest("figure")));
    if (e.textContent.trim() && got < 4.5) found.push(`${got.toFixed(2)} ${e.textContent}`);
  }
  return found;
}"""


@EVERY
@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground_by_four_and_a_half(visit, name, dark):
    with visit(PAGES[name], dark=dark) as page:
        page.evaluate(UNFOLD)
        assert page.evaluate(PALE) == []
        page.screenshot(path=ARTEFACTS / f"{name}-{'dark' if dark else 'light'}.png", full_page=True)


FOCUSED = """() => [document.activeElement.dataset.place ?? "",
  getComputedStyle(document.activeElement).outlineStyle]"""
REACHABLE = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((e) => e.type !== "hidden" && e.checkVisibility() && e.tabIndex >= 0 && !e.closest("svg"))
  .map((e, n) => { e.dataset.place = n; return String(n); })"""


@EVERY
def test_every_control_is_reached_with_the_tab_key_in_order_and_shows_it(visit, name):
    with visit(PAGES[name]) as page:
        page.evaluate(UNFOLD)
        wanted = page.evaluate(REACHABLE)
        found = []
        for _ in wanted:
            page.keyboard.press("Tab")
            place, outline = page.evaluate(FOCUSED)
            found.append(place)
            assert outline != "none" or place == "0"  # the first one is the way past the head, which appears itself
        assert found == wanted


def test_the_first_tab_leads_past_the_head_to_the_answer(visit):
    with visit(RANK) as page:
        page.keyboard.press("Tab")
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "answer"


# ---- asking ----


def answer_of(*words: str) -> Any:
    said = CliRunner().invoke(program, (*words, "--json"), obj=Session(today=DAY))
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)["result"]


@pytest.mark.parametrize("script", [True, False])
def test_a_form_becomes_an_address_and_its_figures_are_those_of_the_command_line(visit, address, script):
    with visit("/rank", script=script) as page:
        page.fill("#ask [name=workloads]", "painter-heavy")
        page.click("summary:text('Filters')")
        page.fill("#ask [name=gpu]", "T4,L4")
        page.fill("#ask [name=max-price]", "5 USD")
        page.click("summary:text('Output')")
        page.fill("#ask [name=limit]", "all")
        page.click("#ask button[type=submit]")
        page.wait_for_url(re.compile("max-price"))
        assert page.locator("#ask [name=gpu]").input_value() == "T4,L4"
        query = page.url.partition("?")[2].partition("#")[0]
        if script:
            assert "deadline" not in query
        shown = page.locator("article table").first.locator("tbody tr")
        figures = [row.locator("[data-label^='Cost, ']").get_attribute("data-v") for row in shown.all()]
        result = answer_of("rank", "painter-heavy", "--gpu", "T4,L4", "--max-price", "5 USD", "--limit", "all")
        costs = [c["cost_usd"]["value"] for c in result["candidates"] if c["cost_usd"]]
        assert [float(text) for text in figures if text] == costs
        assert costs


def test_marks_are_rows_and_both_are_the_answer(visit):
    with visit(RANK + "&limit=all") as page:
        page.wait_for_selector(".still", state="detached")
        result = answer_of("rank", "painter-heavy", "--limit", "all")
        drawn = [c for c in result["candidates"] if c["cost_usd"] and c["time_s"]]
        rows = page.locator("article table").first.locator("tbody tr [data-label^='Cost, ']")
        figures = [text for text in rows.evaluate_all("cells => cells.map((cell) => cell.dataset.v)") if text]
        assert page.locator(POINTS).count() == len(figures) == len(drawn)


def test_an_address_opened_again_gives_the_same_form_and_answer(visit):
    path = RANK + "&gpu=24GB..&market=on-demand&currency=EUR&limit=5"
    with visit(path) as first, visit(path) as second:
        assert first.locator("article").inner_text() == second.locator("article").inner_text()
        assert second.locator("#ask [name=limit]").input_value() == "5"
        assert second.locator("#ask details[open] [name=gpu]").is_visible()


def test_the_currency_is_switched_by_a_link(visit):
    with visit(RANK) as page:
        assert "USD" in page.locator("article .answer").first.inner_text()
        page.click(".switch a:text('EUR')")
        page.wait_for_load_state("networkidle")
        assert "currency=EUR" in page.url
        assert "EUR" in page.locator("article .answer").first.inner_text()
        assert page.locator(".switch").first.locator("[aria-current]").inner_text() == "EUR"


def test_prices_are_switched_from_what_is_charged_to_a_month(visit):
    with visit(RANK + "&limit=5") as page:
        page.click(".switch a:text('a month')")
        page.wait_for_load_state("networkidle")
        assert "price-per=month" in page.url
        prices = page.locator("article table").first.locator("tbody [data-label^='Price, ']").all_inner_texts()
        assert prices
        assert all(text.split("\n")[0].endswith("/month") for text in prices)


def test_a_table_is_filtered_sorted_and_two_rows_are_compared_side_by_side(visit):
    with visit(RANK) as page:
        table = page.locator("article table").first
        rows = table.locator("tbody tr")
        every = rows.count()
        page.locator(".filter").first.fill("spot")
        shown = [row for row in rows.all() if row.is_visible()]
        assert 0 < len(shown) < every
        assert all("spot" in row.inner_text() for row in shown)
        page.locator(".filter").first.fill("")
        head = table.locator("th[data-key=cost_usd]")
        head.locator("button").click()
        head.locator("button").press("Enter")
        assert head.get_attribute("aria-sort") == "descending"
        pins = table.locator("input[type=checkbox]")
        names = [pins.nth(n).locator("xpath=..").inner_text().strip() for n in (0, 2)]
        pins.nth(0).focus()
        page.keyboard.press("Space")
        assert page.locator(".compared table").count() == 0
        pins.nth(2).check()
        compared = page.locator(".compared table").first
        assert compared.locator("tr").count() == table.locator("thead th").count()
        assert all(name in compared.inner_text() for name in names)
        for n in (4, 6, 8):
            pins.nth(n).click()
        assert table.locator("tr.pinned").count() == 4
        page.screenshot(path=ARTEFACTS / "rank-compared.png", full_page=True)


@pytest.mark.parametrize("width", [390, 820])
def test_the_filter_hides_rows_on_a_phone_too(visit, width):
    with visit(RANK, width=width) as page:
        page.locator(".filter").first.fill("no such offer")
        assert not any(row.is_visible() for row in page.locator("article table").first.locator("tbody tr").all())


@pytest.mark.parametrize("script", [True, False])
def test_a_file_is_uploaded_with_what_is_filled_in(visit, tmp_path, script):
    path = tmp_path / "events.toml"
    path.write_text(EVENTS, "utf-8")
    with visit("/bill", script=script) as page:
        if script:  # which carries over what is filled in; without it, what was asked goes along
            page.click("summary:text('Your own data')")
            page.fill("#ask [name=until]", "2026-11-30T22:58Z")
        page.click("summary:text('With files of yours')")
        page.set_input_files("#u-files", path)
        page.click("#upload button")
        page.wait_for_selector("article .answer")
        assert f"up to 2026-11-30 {'22:58' if script else '10:00'}" in page.locator("article").inner_text()
        assert page.locator(".twins").count() == 0  # an address cannot hold a file


def test_long_work_says_how_far_it_is_and_can_be_stopped(visit):
    with visit("/accuracy") as page:
        page.click("summary:text('Output')")
        page.check("#ask [name=fresh]")
        page.click("#ask button[type=submit]")
        bar = page.locator(".working [role=status]")
        assert bar.inner_text() == "Working …"
        playwright.expect(bar).not_to_have_text("Working …", timeout=20_000)
        page.screenshot(path=ARTEFACTS / "working.png")
        page.click(".working button")
        assert page.locator(".working").count() == 0
        assert page.url.endswith("/accuracy")
        assert page.evaluate("document.activeElement.type") == "submit"


CHINESE = re.compile("[\u4e00-\u9fff]")


@EVERY
def test_a_page_is_in_the_language_of_the_browser_and_a_link_leads_to_the_other(browser, address, name):
    context = browser.new_context(locale="zh-CN", viewport={"width": 1400, "height": 900})
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.goto(address + PAGES[name])
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert CHINESE.search(page.locator("nav").first.inner_text())
    assert CHINESE.search(page.locator("main").inner_text())
    page.click("nav.languages a:text-is('English')")
    page.wait_for_url(re.compile("lang=en"))
    assert page.locator("html").get_attribute("lang") == "en"
    assert not CHINESE.search(page.locator("main").inner_text())
    assert said == []
    context.close()


def test_an_error_keeps_the_form_and_says_what_to_do(browser, address):
    """Its status is a line on the console of the browser, which is right."""
    page = browser.new_page()
    page.goto(f"{address}/rank?workloads=painter-heavy&deadline=soon")
    assert "soon" in page.locator("article .answer").inner_text()
    assert page.locator("#ask [name=deadline]").input_value() == "soon"
    page.fill("#ask [name=deadline]", "36h")
    page.click("#ask button[type=submit]")
    page.wait_for_url(re.compile("deadline=36h"))
    assert "painter-heavy" in page.locator("article h1").inner_text()
    page.close()
