"""How a chart is drawn: the Vega scripts for a live one, an SVG for a still one, both in the page's own colours.

Colours are CSS custom properties of the page, so that one drawing serves light, dark and print.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuwise.errors import InvalidInput
from gpuwise.render import write_text
from gpuwise.store import cache

STILL_WIDTH = 860
HEIGHT = 430
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
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
    "axis": _AXIS,
    "legend": _LEGEND,
    "range": {"category": [f"var(--c{i})" for i in range(1, MARKET_COLOURS + 1)]},
    "text": {"fontSize": 11.5},
}


def live(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification for the browser: as wide as the page lets it be."""
    return {**spec, "width": "container", "height": HEIGHT, "config": THEME}


def still(spec: Mapping[str, Any], alt: str) -> str:
    """The chart as SVG, for a page without JavaScript, for paper, and until the live one is there."""
    import vl_convert

    drawn = {**spec, "width": STILL_WIDTH, "height": HEIGHT, "config": THEME, "description": alt}
    return vl_convert.vegalite_to_svg(drawn)


def scripts() -> str:
    """Vega, Vega-Lite and vega-embed as one script, safe to stand inside a page.

    Bundling takes more than a second, so it is kept in the cache folder by version, with its own digest.
    """
    import vl_convert

    versions = (
        vl_convert.get_vega_version(),
        vl_convert.get_vegalite_versions()[-1],
        vl_convert.get_vega_embed_version(),
    )
    path = cache.folder() / f"vega-{'-'.join(versions)}.js"
    try:
        digest, _, script = path.read_text(encoding="utf-8").partition("\n")
    except OSError:
        digest, script = "", ""
    if digest == sha256(script):
        return script
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    script = script.replace("</script", r"<\/script").replace("<!--", r"<\!--")
    _keep(path, f"{sha256(script)}\n{script}")
    return script


def sha256(text: str) -> str:
    """The digest as a content security policy writes it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _keep(path: Path, text: str) -> None:
    """A cache that cannot be written is no error: the next report takes a second longer."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    except (OSError, InvalidInput):
        return
