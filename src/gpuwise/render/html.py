"""A page as one HTML file: no foreign request, JavaScript optional, dark and light, wide and narrow, and on paper."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gpuwise.estimate import Interval
from gpuwise.locale import _, language
from gpuwise.locale.lines import closed
from gpuwise.render import vega
from gpuwise.view.page import Cell, Chart, Page

if TYPE_CHECKING:
    from jinja2 import Template


def html(page: Page) -> str:
    """The whole document as text (write it as UTF-8)."""
    charts = [b for b in page.blocks if isinstance(b, Chart)]
    style, script = part("style.css"), part("report.js")
    scripts = [vega.scripts(), script] if charts else [script]
    policy = {
        "default-src": "'none'",
        "style-src": f"'{vega.sha256(style)}'",
        "script-src": " ".join(f"'{vega.sha256(s)}'" for s in scripts),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return _template("page.html").render(
        page=page,
        language=language(),
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        style=style,
        scripts=scripts,
        **_drawn(page),
    )


def fragment(page: Page) -> str:
    """The blocks alone, for a page that brings style.css, the chart scripts and report.js."""
    return _template("blocks.html").render(page=page, **_drawn(page))


def _drawn(page: Page) -> dict[str, dict[int, str]]:
    """Each chart as a still picture, and as the live one's specification."""
    charts = [block for block in page.blocks if isinstance(block, Chart)]
    return {
        "stills": {id(chart): vega.still(chart) for chart in charts},
        "specs": {id(chart): embedded(vega.live(chart)) for chart in charts},
    }


def embedded(value: Mapping[str, Any]) -> str:
    """JSON that may stand inside a script element: no sign in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def sort_key(cell: Cell) -> str:
    """What a column is sorted by in the browser: the full value, empty for what is not known."""
    value = cell.value.value if isinstance(cell.value, Interval) else cell.value
    return "" if value is None or value != value else str(value)


def unbroken(text: str) -> str:
    """The text with its figures kept on one line with their signs: no 80 at its end and GB below it."""
    return closed(text).replace(" GB", "\u00a0GB").replace(" %", "\u00a0%")


def part(name: str) -> str:
    """A file of the report: style.css, report.js, or one of its templates."""
    return files("gpuwise.render").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(part), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"sort_key": sort_key, "id": id, "unbroken": unbroken}
    environment.globals |= {"_": _, "kind": lambda block: type(block).__name__}
    return environment.get_template(name)
