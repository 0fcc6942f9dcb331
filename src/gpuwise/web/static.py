"""The files that a page brings: style, chart scripts and the page's own script. From the package, by a closed list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from fastapi.responses import JSONResponse, Response

from gpuwise.render import html, vega
from gpuwise.web import site

CSS, JS = "text/css; charset=utf-8", "text/javascript; charset=utf-8"
FILES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "style.css": (CSS, lambda: html.part("style.css")),
    "site.css": (CSS, lambda: site.part("site.css")),
    "report.js": (JS, lambda: html.part("report.js")),
    "site.js": (JS, lambda: site.part("site.js")),
    "vega.js": (JS, vega.scripts),
}


@cache
def _body(name: str) -> bytes:
    return FILES[name][1]().encode()


def static(name: str) -> Response:
    """A sync function, so that bundling the chart scripts for the first time holds nobody up."""
    if name not in FILES:
        return JSONResponse({"schema": 1, "error": {"kind": "UnknownName", "message": "There is no such file."}}, 404)
    return Response(_body(name), headers={"cache-control": "max-age=3600"}, media_type=FILES[name][0])
