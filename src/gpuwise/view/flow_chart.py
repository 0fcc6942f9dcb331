"""What each option of owning and renting has paid by each month, and where one breaks even."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.api.owning import Owned
from gpuwise.locale import _
from gpuwise.own.decide import Outcome
from gpuwise.view import figures
from gpuwise.view.chart import SCHEMA
from gpuwise.view.owned_words import option
from gpuwise.view.page import Chart

Rows = list[dict[str, Any]]


def flow_chart(r: Owned) -> Chart:
    """Lines of the middle case; a point where what was saved against all cloud has paid the machines."""
    outcomes = list(r.decision.outcomes.values())
    paid = {one.option: _paid_so_far(one) / 1000 for one in outcomes}
    rows: Rows = [
        {"option": option(name), "month": month, "paid": figures.in_currency(float(usd), r.fx)}
        for name, path in paid.items()
        for month, usd in enumerate(path)
    ]  # fmt: skip
    even = [_even(r, one, paid[one.option]) for one in outcomes if one.payback_months is not None]
    alt = _("Lines of what {n} options have paid by each of {months} months; where two cross, the one breaks even.")
    note = _("Without what own servers are still worth at the end.")
    points = _("Points: from there on it has paid less than all cloud, on demand.")
    return Chart(
        title=_("Cumulative cash flow, middle case"),
        alt=alt.format(n=len(outcomes), months=r.assembled.case.months),
        spec=_spec(rows, even, _("Paid so far, thousand {money}").format(money=figures.code(r.fx))),
        note=f"{note} {points}" if even else note,
    )


def _even(r: Owned, one: Outcome, paid: NDArray[np.float64]) -> dict[str, Any]:
    month = float(one.payback_months or 0.0)
    usd = float(np.interp(month, np.arange(len(paid)), paid))
    return {"option": option(one.option), "month": month, "paid": figures.in_currency(usd, r.fx)}


def _spec(rows: Rows, even: Rows, head: str) -> dict[str, Any]:
    tooltip = [{"field": "option", "title": _("Option")}, {"field": "month", "title": _("Month"), "format": ".1f"},
               {"field": "paid", "title": head, "format": ",.0f"}]  # fmt: skip
    lines = {"mark": {"type": "line"}}
    points = {"data": {"values": even}, "mark": {"type": "point", "filled": True, "size": 80},
              "encoding": {"tooltip": tooltip}}  # fmt: skip
    return {
        "$schema": SCHEMA,
        "data": {"values": rows},
        "encoding": {
            "x": {"field": "month", "type": "quantitative", "title": _("Month"), "axis": {"tickCount": 10}},
            "y": {"field": "paid", "type": "quantitative", "title": head, "axis": {"tickCount": 8, "format": ",~r"}},
            "color": {"field": "option", "type": "nominal", "title": None},
        },
        "layer": [lines, *([points] if even else [])],
    }


def _paid_so_far(one: Outcome) -> NDArray[np.float64]:
    """By the end of each month, (months + 1,); what servers are then still worth is not taken off."""
    paid = np.cumsum(one.path_usd)
    paid[-1] += one.resold_usd
    return paid
