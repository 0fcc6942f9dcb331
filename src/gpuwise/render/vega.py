"""How a chart is drawn: the Vega scripts for a live one, an SVG for a still one, both in the page's own colours.

Colours are CSS custom properties of the page, so that one drawing serves light, dark and print.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpuwise import locale
from gpuwise.store import cache
from gpuwise.view.page import Chart

STILL_WIDTH = 860
HEIGHT = 430
FLAT_HEIGHT = 210
FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'PingFang SC', 'Microsoft YaHei', "
    "'Noto Sans CJK SC', 'Source Han Sans SC', sans-serif"
)
MARKET_COLOURS = 7
"""The page defines --c1 to --c7."""

_AXIS = {
    "domainColor": "var(--line-strong)",
    "gridColor": "var(--line)",
    "tickColor": "var(--line-strong)",
    "labelColor": "var(--soft)",
    "titleColor": "var(--ink)",
    "titleFontWeight": 500,
    "titlePadding": 10,
    "labelFontSize": 12,
    "titleFontSize": 12.5,
    "labelPadding": 6,
    "tickSize": 0,
    "domain": False,
    "labelOverlap": True,
}
_LEGEND = {
    "orient": "top",
    "columns": 4,
    "labelColor": "var(--ink)",
    "labelFontSize": 12.5,
    "symbolSize": 80,
    "symbolOpacity": 1,
    "symbolBaseFillColor": "var(--soft)",
    "layout": {"top": {"direction": "vertical", "anchor": "start", "margin": 6}},
    "offset": 14,
    "columnPadding": 18,
}
THEME: Mapping[str, Any] = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "mark": {"color": "var(--c1)"},
    "axis": _AXIS,
    "legend": _LEGEND,
    "range": {"category": [f"var(--c{i})" for i in range(1, MARKET_COLOURS + 1)]},
    "text": {"fontSize": 11.5},
}


def _theme() -> dict[str, Any]:
    """The page's colours, and how the reader's language writes numbers and days."""
    told = locale.vega()
    return {**THEME, **({"locale": told} if told else {})}


def live(chart: Chart) -> dict[str, Any]:
    """The specification for the browser: as wide as the page lets it be."""
    return {**chart.spec, "width": "container", "height": _height(chart), "config": _theme()}


def _height(chart: Chart) -> int:
    return FLAT_HEIGHT if chart.flat else HEIGHT


def still(chart: Chart) -> str:
    """The chart as SVG, for a page without JavaScript, for paper, and until the live one is there.

    Drawing takes most of a second, so the newest drawings are kept in the cache folder.
    """
    size = {"width": STILL_WIDTH, "height": _height(chart)}
    drawn = {**chart.spec, **size, "config": _theme(), "description": chart.alt}
    entry = cache.key("svg", version("vl-convert-python"), json.dumps(drawn, sort_keys=True))

    def draw() -> str:
        import vl_convert

        return vl_convert.vegalite_to_svg(drawn)

    return _kept(cache.folder() / "charts" / f"{entry}.svg", draw)


PICTURE_SCALE = 2.0
"""Pixels of a PNG for each of the drawing."""
LIGHT: Mapping[str, str] = {
    "--paper": "#fdfdfb", "--ink": "#1c1d1f", "--soft": "#63666b", "--line": "#e9e8e4", "--line-strong": "#cfcdc7",
    "--c1": "#2b6cb0", "--c2": "#d97706", "--c3": "#7c5cbf", "--c4": "#2f855a", "--c5": "#c2415a", "--c6": "#8b8f96",
    "--c7": "#0f8b8d",
}  # fmt: skip
"""The page's light colours: a picture of its own has no page around it to take them from."""


def picture(chart: Chart, form: str) -> tuple[str, bytes]:
    """The chart as a file of its own, svg or png: its content type and its bytes."""
    import vl_convert

    drawn = {**live(chart), "width": STILL_WIDTH, "description": chart.alt, "background": "white"}
    text = json.dumps(drawn)
    for name, colour in LIGHT.items():
        text = text.replace(f"var({name})", colour)
    if form == "svg":
        return "image/svg+xml", vl_convert.vegalite_to_svg(json.loads(text)).encode()
    return "image/png", bytes(vl_convert.vegalite_to_png(json.loads(text), scale=PICTURE_SCALE))


def scripts() -> str:
    """Vega, Vega-Lite and vega-embed as one script, safe to stand inside a page.

    Bundling takes more than a second, so it is kept in the cache folder by version.
    """

    def bundle() -> str:
        import vl_convert

        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        return script.replace("</script", r"<\/script").replace("<!--", r"<\!--")

    return _kept(cache.folder() / "scripts" / f"vega-{version('vl-convert-python')}.js", bundle)


def _kept(path: Path, make: Callable[[], str]) -> str:
    """What `make` gives, from the cache if it was made before. Where nothing can be kept, it takes its time again."""
    body, _ = cache.load_bytes(path)
    if body is not None:
        return body.decode()
    made = make()
    if cache.save_bytes(path, made.encode()):
        cache.prune(path.parent)
    return made


def sha256(text: str) -> str:
    """The digest as a content security policy writes it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
