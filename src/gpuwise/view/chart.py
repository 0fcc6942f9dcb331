"""The cost × time chart of a ranking, as a Vega-Lite specification; colours, fonts and sizes are `render`'s.

It repeats figures of the table and adds none. Both axes are logarithmic, because the interval of a prediction is a
factor. One point a row; thin rules are 80 % intervals; the line is the frontier.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpuwise.estimate import Estimate, Interval
from gpuwise.locale import _, ngettext
from gpuwise.model import Candidate
from gpuwise.view import figures
from gpuwise.view.candidates import Setting, ranked
from gpuwise.view.page import Chart
from gpuwise.view.vocabulary import MARKETS, market, method

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MARGIN = 0.03
"""How far an axis reaches beyond the outermost interval, as a share of its length."""

BELOW = 0.12
"""The same at the foot of the picture, where names need room."""

NAME_LETTER, NAME_LINE, NAME_GAP = 0.0072, 0.034, 0.008
"""Room that a name takes, as shares of the picture: a letter's width, a line's height, the gap to its point."""

Spec = dict[str, Any]
Drawn = Sequence[tuple[Candidate, Estimate]]


def cost_time_chart(rows: Sequence[Candidate], given: Setting) -> Chart | None:
    """The chart of the rows that have both figures; None if none has."""
    drawn = [(c, figure) for c in rows if c.time_s and (figure := ranked(c)) and figure.value > 0]
    if not drawn:
        return None
    left = len(rows) - len(drawn)
    note = ngettext(
        "{n} row has no cost of its own and is not drawn.",
        "{n} rows have no cost of their own and are not drawn.",
        left,
    )
    return Chart(
        title=_("Cost and time of the whole job"),
        alt=_alt(drawn, given),
        spec=_spec(drawn, given),
        note=_("Lower left is better; both axes are logarithmic.") + (f" {note.format(n=left)}" if left else ""),
    )


def _spec(drawn: Drawn, given: Setting) -> Spec:
    points = [_point(c, cost, given) for c, cost in drawn]
    several = len({p["workload"] for p in points}) > 1
    money = _("Cost or share of it") if given.basis == "share" else _("Cost")
    x = _axis("cost", _titled(money, given.money), points, MARGIN)
    y = _axis("time", _titled(_("Time"), given.time_unit), points, BELOW)
    _name_points(points, x, y)
    return {
        "$schema": SCHEMA,
        "data": {"values": points},
        "encoding": {"x": x, "y": y, "color": _colour(points)},
        "layer": [*_intervals(), _frontier(several), _points(given, several), _labels()],
    }


def _titled(title: str, unit: str) -> str:
    return _("{title}, {unit}").format(title=title, unit=unit)


def _point(candidate: Candidate, cost: Estimate, given: Setting) -> Spec:
    offer = candidate.offer
    return {
        "provider": offer.provider,
        "instance": offer.instance,
        "gpus": figures.gpus(offer),
        "market": market(offer.market),
        "workload": candidate.workload,
        **_numbers("cost", cost.interval(), given.usd_per_unit),
        **(_numbers("time", candidate.time_s.interval(), given.time_scale) if candidate.time_s else {}),
        "price": f"{figures.price(offer, given.fx).shown} ({given.money})",
        "seen": figures.day(offer.observed, offer.observed_precision),
        "basis": method(candidate.prediction.method),
        "chance": figures.chance(candidate.p_cheapest) if candidate.p_cheapest is not None else "–",
        "frontier": candidate.on_frontier,
    }


def _numbers(name: str, interval: Interval, scale: float) -> Spec:
    """A figure for the axes and in words. A logarithmic axis has no 0: a bound of 0 (nothing to pay) is left out."""
    value, low, high = (x / scale for x in (interval.value, interval.low, interval.high))
    text, ends = figures.rounded(interval, scale)
    return {
        name: value,
        f"{name}_low": low or value,
        f"{name}_high": high,
        f"{name}_text": f"{text} ({'–'.join(ends)})" if ends else text,
    }


def _name_points(points: Sequence[Spec], x: Spec, y: Spec) -> None:
    """Name what of the frontier can be named without covering another name or point: the ends first.

    The first of a frontier, which the answer calls the cheapest, always has a name: at worst its provider's alone.
    """
    frontier = sorted((p for p in points if p["frontier"]), key=lambda p: (p["workload"], p["cost"]))
    ends = [p for p in frontier if p in (_chain(frontier, p)[0], _chain(frontier, p)[-1])]
    places = [_Place(_share(p["cost"], x), 1 - _share(p["time"], y)) for p in frontier]
    taken: list[_Box] = []
    for point in [*ends, *(p for p in frontier if p not in ends)]:
        at = _Place(_share(point["cost"], x), 1 - _share(point["time"], y))
        sides = ("left", "right") if at.x < 0.5 else ("right", "left")
        short = [point["provider"]] if point in ends else []
        tries = [(label, side) for label in (f"{point['provider']}\n{point['gpus']}", *short) for side in sides]
        free = [t for t in tries if _free(_box(at, *t), taken, places)]
        if not free and point is _chain(frontier, point)[0]:
            free = tries[-2:]
        if free:
            label, side = free[0]
            taken.append(_box(at, label, side))
            point |= {"label": label, "side": side, "end": point in ends}


def _free(box: _Box, taken: Sequence[_Box], places: Sequence[_Place]) -> bool:
    return box.inside() and not any(map(box.meets, taken)) and not any(map(box.holds, places))


def _chain(frontier: Sequence[Spec], point: Spec) -> list[Spec]:
    return [p for p in frontier if p["workload"] == point["workload"]]


def _share(value: float, axis: Spec) -> float:
    """Where a value lies on a logarithmic axis, from 0 to 1."""
    low, high = axis["scale"]["domain"]
    return math.log(value / low) / math.log(high / low)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in the picture, in shares of its width from the left and of its height from the top."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    right: float
    top: float
    bottom: float

    def inside(self) -> bool:
        return self.left >= 0 and self.right <= 1 and self.bottom <= 1

    def meets(self, other: _Box) -> bool:
        beside = self.right < other.left or other.right < self.left
        return not beside and not (self.bottom < other.top or other.bottom < self.top)

    def holds(self, place: _Place) -> bool:
        return self.left < place.x < self.right and self.top < place.y < self.bottom


def _box(at: _Place, label: str, side: str) -> _Box:
    """The room that a name takes below its point; side: where it is bound to the point."""
    lines = label.split("\n")
    start, length = at.x + (NAME_GAP if side == "left" else -NAME_GAP), max(map(len, lines)) * NAME_LETTER
    left, right = (start, start + length) if side == "left" else (start - length, start)
    return _Box(left, right, at.y + NAME_GAP, at.y + NAME_GAP + len(lines) * NAME_LINE)


def _axis(field: str, title: str, points: Sequence[Spec], below: float) -> Spec:
    least, most = min(p[f"{field}_low"] for p in points), max(p[f"{field}_high"] for p in points)
    span = max(most / least, 1.2)
    low, high = least / span**below, most * span**MARGIN
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {"values": ticks(low, high), "format": "~g" if low < 1 else ",~g"},
    }


def ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … between two positive bounds; only the powers of ten where that would crowd the axis, and more
    where hardly one would lie between them."""
    steps = (1.0, 2.0, 5.0) if high / low < 1e4 else (1.0,)
    found = _between(low, high, steps)
    return found if len(found) >= LEAST_TICKS else _between(low, high, FINE_STEPS)


LEAST_TICKS = 3
FINE_STEPS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)


def _between(low: float, high: float, steps: Sequence[float]) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [t for p in powers for s in steps if low <= (t := float(f"{s}e{p}")) <= high]


def _colour(points: Sequence[Spec]) -> Spec:
    return _market_scale({p["market"] for p in points})


def market_colours(markets: Collection[str]) -> Spec:
    """The colour of a chart's markets, by `Offer.market`; its field is "market", in words."""
    return _market_scale({market(name) for name in markets})


def _market_scale(there: Collection[str]) -> Spec:
    """All markets keep their place in the scale, so that a market has one colour in every report."""
    order = [market(m) for m in MARKETS]
    return {
        "field": "market",
        "type": "nominal",
        "title": None,
        "scale": {"domain": order},
        "legend": {"values": [m for m in order if m in there]},
    }


def _intervals() -> list[Spec]:
    """The 80 % intervals of both figures."""
    mark = {"type": "rule", "strokeWidth": 1, "opacity": 0.35, "aria": False}
    return [
        {"mark": mark, "encoding": {"x": {"field": "cost_low"}, "x2": {"field": "cost_high"}}},
        {"mark": mark, "encoding": {"y": {"field": "time_low"}, "y2": {"field": "time_high"}}},
    ]


def _frontier(several: bool) -> Spec:
    """The staircase of what is reachable: the time of a point holds until a dearer point is faster."""
    encoding: Spec = {"color": {"value": "currentColor"}, "order": {"field": "cost"}}
    if several:
        encoding["detail"] = {"field": "workload"}
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.25, "opacity": 0.6, "aria": False}
    return {"transform": [{"filter": "datum.frontier"}], "mark": mark, "encoding": encoding}


def _points(given: Setting, several: bool) -> Spec:
    encoding: Spec = {
        "size": {"condition": {"test": "datum.frontier", "value": 110}, "value": 42},
        "opacity": {"condition": {"test": "datum.frontier", "value": 1}, "value": 0.75},
        "tooltip": list(_tooltip(given, several)),
    }
    if several:
        encoding["shape"] = {"field": "workload", "type": "nominal", "title": None}
    return {"name": "offers", "mark": {"type": "point", "filled": True}, "encoding": encoding}


def _tooltip(given: Setting, several: bool) -> Iterator[Spec]:
    names = {
        "workload": _("Workload") if several else "",
        "provider": _("Provider"),
        "instance": _("Instance"),
        "gpus": _("GPUs"),
        "market": _("Market"),
        "price": _("Price"),
        "seen": _("Price seen"),
        "time_text": _titled(_("Time"), given.time_unit),
        "cost_text": _titled(_("Cost"), given.money),
        "chance": _("P(cheapest)"),
        "basis": _("Speed is"),
    }
    return ({"field": field, "title": title, "type": "nominal"} for field, title in names.items() if title)


def _labels() -> Spec:
    """Names below the frontier, where no point can be; they grow towards the middle of the picture."""
    mark = {
        "type": "text",
        "lineBreak": "\n",
        "align": {"expr": "datum.side"},
        "dx": {"expr": "datum.side == 'left' ? 6 : -6"},
        "baseline": "top",
        "dy": 7,
        "aria": False,
    }
    return {
        "transform": [{"filter": "isValid(datum.label)"}],
        "mark": mark,
        "encoding": {"text": {"field": "label"}, "color": {"value": "currentColor"}},
    }


def _alt(drawn: Drawn, given: Setting) -> str:
    """The picture in one sentence."""
    costs = sorted(cost.value / given.usd_per_unit for _c, cost in drawn)
    times = sorted(c.time_s.value / given.time_scale for c, _cost in drawn if c.time_s)
    return _(
        "Scatter plot of {n} offers: cost from {cost_low} to {cost_high} {money}, "
        "time from {time_low} to {time_high} {unit}; {frontier} of them on the frontier."
    ).format(
        n=len(drawn), money=given.money, unit=given.time_unit, frontier=sum(c.on_frontier for c, _cost in drawn),
        cost_low=figures.number(costs[0]), cost_high=figures.number(costs[-1]),
        time_low=figures.number(times[0]), time_high=figures.number(times[-1]),
    )  # fmt: skip
