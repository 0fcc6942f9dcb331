"""Pictures of the facts: what an hour of a GPU cost over the years, and who offers how much of what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gpuwise.locale import _
from gpuwise.model import Fx
from gpuwise.rank.history import Quarter
from gpuwise.view import figures
from gpuwise.view.chart import MARGIN, SCHEMA, market_colours, ticks
from gpuwise.view.page import Block, Cell, Chart, Made, column, tabulate
from gpuwise.view.vocabulary import MARKETS, market

if TYPE_CHECKING:
    from gpuwise.view.catalogue import Pool

BARS = 24
"""So many groups can be told apart in one picture; the table holds all."""
STEP_DAYS = 12
NAMED = 6
"""So many of the second name have a colour of their own, the rest share the last."""


# ---- prices over the years ----


def price_history_blocks(history: Sequence[Quarter], fx: Fx | None) -> Iterator[Block]:
    """The picture, and the table that it repeats; nothing where no dated price is known."""
    if not history:
        return
    if len({row.first for row in history}) > 1:
        yield _history_chart(history, fx)
    money = figures.code(fx)
    columns: list[Made[Quarter]] = [
        column("quarter", _("Quarter"), lambda row: Cell(shown=_quarter(row), value=row.first.isoformat())),
        column("market", _("Market"), lambda row: Cell(shown=market(row.market), value=row.market)),
        column("offers", _("Offers"), lambda row: Cell(shown=figures.count(row.offers), value=row.offers),
               kind="number"),
        column("lowest_usd_per_gpu_hour", _("Lowest"), lambda row: _money(row.lowest_usd_per_gpu_hour, fx),
               kind="number", unit=money),
        column("median_usd_per_gpu_hour", _("Median"), lambda row: _money(row.median_usd_per_gpu_hour, fx),
               kind="number", unit=money),
        column("highest_usd_per_gpu_hour", _("Highest"), lambda row: _money(row.highest_usd_per_gpu_hour, fx),
               kind="number", unit=money),
    ]  # fmt: skip
    notes = [_("What lists asked on the day, exact as listed; not what was sold, nor weighted by how many machines "
               "there were. Other providers are listed in other quarters.")]  # fmt: skip
    yield tabulate(_("A GPU-hour, quarter by quarter"), columns, list(reversed(history)), notes)


def _quarter(row: Quarter) -> str:
    return _("{year}, quarter {n}").format(year=row.first.year, n=(row.first.month + 2) // 3)


def _place(row: Quarter) -> str:
    """Within a quarter the markets stand side by side, so that none hides another."""
    return (row.first + timedelta(days=STEP_DAYS * [*MARKETS].index(row.market))).isoformat()


def _money(usd: float, fx: Fx | None) -> Cell:
    return Cell(shown=figures.amount(usd, fx), value=usd)


def _history_chart(history: Sequence[Quarter], fx: Fx | None) -> Chart:
    """Medians as points, from the lowest to the highest as rules."""
    points: list[dict[str, Any]] = [
        {"day": _place(row), "name": _quarter(row), "market": market(row.market), "offers": row.offers,
         "median": figures.in_currency(row.median_usd_per_gpu_hour, fx),
         "lowest": figures.in_currency(row.lowest_usd_per_gpu_hour, fx),
         "highest": figures.in_currency(row.highest_usd_per_gpu_hour, fx)}
        for row in history
    ]  # fmt: skip
    head = _("A GPU-hour, {money}").format(money=figures.code(fx))
    least, most = min(point["lowest"] for point in points), max(point["highest"] for point in points)
    span = max(most / least, 1.2)
    ends = [least / span**MARGIN, most * span**MARGIN]
    y = {"field": "median", "type": "quantitative", "title": head, "axis": {"values": ticks(*ends), "format": "~g"},
         "scale": {"type": "log", "domain": ends, "nice": False}}  # fmt: skip
    rule = {"mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.35, "aria": False},
            "encoding": {"y": {"field": "lowest", "type": "quantitative"}, "y2": {"field": "highest"}}}  # fmt: skip
    titles = {"name": _("Quarter"), "market": _("Market"), "offers": _("Offers"), "lowest": _("Lowest"),
              "median": _("Median"), "highest": _("Highest")}  # fmt: skip
    tooltip = [{"field": field, "title": title} for field, title in titles.items()]
    dots: dict[str, Any] = {"mark": {"type": "point", "filled": True, "size": 60}, "encoding": {"tooltip": tooltip}}
    alt = _("Points of the median price of each of {n} quarters and markets, from {low} to {high} {money} a GPU-hour, "
            "{first} to {last}.")  # fmt: skip
    return Chart(
        title=_("What a GPU-hour cost"),
        alt=alt.format(n=len(points), low=figures.number(least), high=figures.number(most),
                       money=figures.code(fx), first=_quarter(history[0]), last=_quarter(history[-1])),
        spec={"$schema": SCHEMA, "data": {"values": points},
              "encoding": {"x": {"field": "day", "type": "temporal", "title": None,
                                 "axis": {"format": "%Y-%m", "tickCount": 8}}, "y": y,
                           "color": market_colours({row.market for row in history})},
              "layer": [rule, dots]},
        note=_("Points are medians, rules reach from the lowest to the highest price; the axis is logarithmic."),
    )  # fmt: skip


# ---- who offers what ----


def pools_chart(pools: Sequence[Pool], by: Sequence[str]) -> Iterator[Chart]:
    """Bars of how many offers each group holds, parted by the second name where there is one."""
    if len(pools) < 2 or len(by) > 2:
        return
    sizes: dict[str, int] = {}
    for pool in pools:
        sizes[pool.names[0]] = sizes.get(pool.names[0], 0) + len(pool.offers)
    firsts = sorted(sizes, key=lambda name: -sizes[name])[:BARS]
    drawn = [pool for pool in pools if pool.names[0] in firsts]
    rows = [
        {"group": _said(by[0], pool.names[0]), "part": _said(by[-1], pool.names[-1]), "offers": len(pool.offers),
         "share": len(pool.offers) / sizes[pool.names[0]]}
        for pool in drawn
    ]  # fmt: skip
    encoding: dict[str, Any] = {
        "y": {"field": "group", "type": "nominal", "sort": [_said(by[0], name) for name in firsts], "title": None},
        "x": {"field": "offers", "type": "quantitative", "title": _("Offers"), "axis": {"tickCount": 8}},
        "tooltip": [{"field": "group", "title": _("Group")}, {"field": "part", "title": _("Part")},
                    {"field": "offers", "title": _("Offers")},
                    {"field": "share", "title": _("Share of the group"), "format": ".0%"}],
    }  # fmt: skip
    if len(by) == 2:
        encoding |= {"color": _parts(rows), "order": {"field": "offers", "sort": "descending"}}
    alt = _("Bars of the offers of {n} groups; the largest, {name}, has {most}.")
    held = _("The {n} largest of {all} groups, with all their offers.").format(n=len(firsts), all=len(sizes))
    several = len(by) == 2 and len({row["part"] for row in rows}) > NAMED
    rest = _("What the legend does not name shares a colour.") if several else ""
    yield Chart(
        title=_("Shares of each group") if len(by) == 2 else _("Offers of each group"),
        alt=alt.format(n=len(firsts), name=_said(by[0], firsts[0]), most=figures.count(sizes[firsts[0]])),
        spec={"$schema": SCHEMA, "data": {"values": rows}, "mark": {"type": "bar"}, "encoding": encoding},
        note=" ".join(filter(None, (held, rest))),
    )  # fmt: skip


def _said(name: str, value: str) -> str:
    said = {"gpu": figures.devices, "market": market}.get(name, str)
    return said(value) or _("unknown")


def _parts(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The parts with the most offers have colours of their own."""
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row["part"]] = sizes.get(row["part"], 0) + row["offers"]
    names = sorted(sizes, key=lambda name: -sizes[name])
    palette = [f"var(--c{min(place, NAMED) + 1})" for place in range(len(names))]
    return {
        "field": "part", "type": "nominal", "title": None, "scale": {"domain": names, "range": palette},
        "legend": {"values": names[:NAMED]},
    }  # fmt: skip
