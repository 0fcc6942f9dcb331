"""Predicted against measured, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpuwise.locale import _
from gpuwise.predict.against import Outcome, Scored
from gpuwise.view.chart import MARGIN, SCHEMA, ticks
from gpuwise.view.page import Chart

Spec = dict[str, Any]


def against_chart(scored: Scored) -> Iterator[Chart]:
    """Each row that was predicted and measured is a point with its interval; nothing for less than two."""
    points = [point for row in scored.rows if (point := _point(row))]
    if len(points) < 2:
        return
    alt = _("Scatter plot of {n} predictions against what was measured; {inside} hold it in their 80 % interval.")
    yield Chart(
        title=_("Predicted against measured"),
        alt=alt.format(n=len(points), inside=sum(point["held"] == _("inside") for point in points)),
        spec=_spec(points),
        note=_("On the line a prediction is right; rules are 80 % intervals; both axes are logarithmic."),
    )


def _point(row: Outcome) -> Spec | None:
    inside, rate, wrong = row.predicted, row.claim.samples_per_s, row.error_fraction
    if inside is None or not rate or wrong is None:
        return None
    held = _("inside") if inside.low <= rate <= inside.high else _("outside")
    return {"line": row.claim.line, "workload": row.claim.workload, "card": row.claim.name, "measured": rate,
            "predicted": inside.value, "low": inside.low, "high": inside.high, "held": held,
            "error": f"{100 * wrong:+.1f}"}  # fmt: skip


def _spec(points: Sequence[Spec]) -> Spec:
    least = min(min(point["measured"], point["low"]) for point in points)
    most = max(max(point["measured"], point["high"]) for point in points)
    room = (most / least) ** MARGIN
    ends = [least / room, most * room]
    axis: Spec = {"type": "quantitative", "scale": {"type": "log", "domain": ends, "nice": False},
                  "axis": {"values": ticks(*ends), "format": ",~g"}}  # fmt: skip
    x = {"field": "measured", "title": _("Measured, samples/s"), **axis}
    y = {"field": "predicted", "title": _("Predicted, samples/s"), **axis}
    faint: Spec = {"strokeWidth": 1, "aria": False}
    diagonal = {"data": {"values": [{"at": end} for end in ends]}, "mark": {"type": "line", "opacity": 0.6, **faint},
                "encoding": {"x": {**x, "field": "at"}, "y": {**y, "field": "at"},
                             "color": {"value": "currentColor"}}}  # fmt: skip
    rules = {"mark": {"type": "rule", "opacity": 0.35, **faint},
             "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": _held()}}  # fmt: skip
    dots = {"mark": {"type": "point", "filled": True, "size": 50},
            "encoding": {"x": x, "y": y, "color": _held(), "tooltip": _tooltip()}}  # fmt: skip
    return {"$schema": SCHEMA, "data": {"values": [*points]}, "layer": [diagonal, rules, dots]}


def _held() -> Spec:
    names = [_("inside"), _("outside")]
    return {"field": "held", "type": "nominal", "title": None, "scale": {"domain": names}}


def _tooltip() -> list[Spec]:
    titles = {"workload": _("Workload"), "card": _("GPU"), "line": _("Line"), "measured": _("Measured"),
              "predicted": _("Predicted"), "error": _("Error, %"), "held": _("80 % interval")}  # fmt: skip
    return [{"field": field, "title": title} for field, title in titles.items()]
