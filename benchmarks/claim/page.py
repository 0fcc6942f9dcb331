"""docs/own-or-rent.md, written from the ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isinf

from benchmarks.claim import fleets
from benchmarks.claim.frozen import ERAS, Era, case, prices, title
from benchmarks.claim.ratios import (
    PLACES,
    THRICE,
    TWICE,
    UTILISATIONS,
    Place,
    Ratio,
    Verdict,
    committed,
    ratio,
    table,
    used_from,
)
from gpuwise.model import Assumption

SIGNS = {
    Verdict.MORE: "**>3**", Verdict.HOLDS: "**yes**", Verdict.DEPENDS: "?", Verdict.LESS: "no",
    Verdict.CHEAPER: "no, cloud cheaper",
}  # fmt: skip
HEAD = """# Does the cloud cost two to three times as much?

One of the articles that this project stands on says: for steady, large work a public cloud costs two to three times as
much as one's own servers; for small, unknown or varying work it is cheaper. Here the sentence is put to figures, for
the A100 in 2021 and for the H100 today. `make docs` writes this page from prices and figures that are frozen with their
days, so that later data do not change it.

Everywhere a ratio is what the work costs in the cloud over what it costs with own servers, in the middle, with the 80 %
interval that the ranges of all figures leave.

| sign | the interval of the ratio |
| --- | --- |
| **>3** | lies at or above three: the cloud is dearer still |
| **yes** | lies at or above two: the sentence holds |
| ? | reaches below two and above it: it depends on figures that only you know |
| no | lies below two |
| no, cloud cheaper | lies below one |
"""

RENTED = """Cloud hours carry the share that is billed without work (10 %, 2 to 30); spot hours also what is lost and
done again. A commitment is paid whether it is used or not, as an own server is, so its ratio does not depend on use.
"""


def page() -> str:
    parts = (_fleets, _in_short, *(_of(era) for era in ERAS), _taken, _missing)
    return "\n".join([HEAD, *(line for part in parts for line in part())]) + "\n"


def _of(era: Era) -> Callable[[], Iterator[str]]:
    return lambda: _era(era)


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


# ---- steady or varying, small or large ----

FLEETS = """## Steady or varying, small or large

All in the cloud on demand (AWS), over own servers in colocation with the rest of the work in that cloud, for five
years. As many servers as cost least, but one of eight GPUs at least; *none pays*: it would be better to own none. In
the first column the five years begin when the servers work; in the others when they are ordered, so that both sides pay
the cloud until they come: {weeks}.
How demand varies is its standard deviation over its mean within a month.
"""


def _fleets() -> Iterator[str]:
    yield FLEETS.format(weeks=" and ".join(map(_weeks, ERAS)))
    for era in ERAS:
        price = fleets.list_price(era)
        yield f"{title(era)}, {price.usd_per_gpu_hour:.2f} USD a GPU-hour (price of {price.observed}):\n"
        yield "| GPUs in use on average | " + " | ".join(demand.words for demand in fleets.DEMANDS) + " |"
        yield "| --- " * (1 + len(fleets.DEMANDS)) + "|"
        for gpus, found in fleets.table(era):
            yield f"| {gpus} | " + " | ".join(map(_fleet, found)) + " |"
        yield ""


def _weeks(era: Era) -> str:
    lead = case(era).figures["lead_weeks"]
    return f"{lead.value:.0f} weeks ({lead.low or 0:.0f} to {lead.high or 0:.0f}) in the table of {era.key}"


def _fleet(found: fleets.Fleet) -> str:
    owned = f"own {8 * found.servers}" if found.pays else "none pays"
    return f"{cell(found.ratio)}; {owned}"


def cell(found: Ratio) -> str:
    return f"{found.middle:.1f} ({found.low:.1f} to {found.high:.1f}) {SIGNS[found.verdict]}"


# ---- by price and use ----

SERVER = """The server: {gpus} GPUs for {price:,.0f} USD{ends}, price of {day}, {source}. Electricity {kwh:g} USD/kWh,
capital {capital:.0f} % a year, life {life:g} years, {staff:,.0f} USD of staff a server and month.
"""


def _era(era: Era) -> Iterator[str]:
    yield f"## {title(era)}, by price and use\n"
    yield _server(era)
    yield RENTED
    yield from _from_use(era)
    for place in PLACES:
        yield from _grid(era, place)


def _server(era: Era) -> str:
    figures = case(era).figures
    server = figures["server_usd"]
    return SERVER.format(
        gpus=era.accelerators, price=server.value, ends=_ends(server), day=server.observed, source=server.source,
        kwh=figures["electricity_usd_per_kwh"].value, capital=100 * figures["discount_fraction"].value,
        life=figures["life_years"].value, staff=figures["staff_usd_per_month"].value,
    )  # fmt: skip


def _ends(server: Assumption) -> str:
    return "" if server.low == server.high else f" ({server.low:,.0f} to {server.high:,.0f})"


def _from_use(era: Era) -> Iterator[str]:
    """From which use on the cloud is dearer, twice and three times as dear."""
    yield "The share of the time that own GPUs must be in use for the cloud to cost more, twice, three times as much:\n"
    heads = [f"{place.words}: {words}" for place in PLACES for words in ("more", "twice", "three times")]
    yield "| rented | USD a GPU-hour | " + " | ".join(heads) + " |"
    yield "| --- " * (2 + len(heads)) + "|"
    for price in prices():
        if price.era != era.key:
            continue
        if committed(price):
            found = [f"{cell(ratio(era, price, place, 1.0))} at any use | | |" for place in PLACES]
        else:
            ends = (used_from(era, price, place, times) for place in PLACES for times in (1.0, TWICE, THRICE))
            found = [f"{_use(one)} |" for one in ends]
        yield f"| {price.provider}, {price.kind} | {price.usd_per_gpu_hour:.2f} | " + " ".join(found)
    yield ""


def _use(found: Ratio) -> str:
    if isinf(found.low):
        return "never"
    ends = [f"{end:.0%}".removesuffix("%") for end in (found.low, found.middle)]
    low, middle = ends if not isinf(found.middle) else (ends[0], "never")
    high = "never" if isinf(found.high) else percent(found.high)
    return f"{middle} ({low} to {high})" if middle == "never" else f"{middle} % ({low} to {high})"


def _grid(era: Era, place: Place) -> Iterator[str]:
    yield f"Own: {place.words}.\n"
    shares = " | ".join(f"{percent(share)} in use" for share in UTILISATIONS)
    yield f"| rented | USD a GPU-hour | seen | {shares} |"
    yield "| --- " * (3 + len(UTILISATIONS)) + "|"
    for price, found in table(era, place):
        head = f"| {price.provider}, {price.kind} | {price.usd_per_gpu_hour:.2f} | {price.observed} | "
        yield head + " | ".join(map(cell, found)) + " |"
    yield ""


# ---- in short ----

SHORT: tuple[tuple[str, Callable[[Ratio], bool]], ...] = (
    ("at least twice as dear, wherever the figures lie in their ranges", lambda one: one.low >= TWICE),
    (
        "two to three times in the middle, with an interval that reaches below two",
        lambda one: one.low < TWICE <= one.middle <= THRICE,
    ),
    ("less than twice as dear, wherever the figures lie in their ranges", lambda one: one.high < TWICE),
)


def _in_short() -> Iterator[str]:
    """The conditions, told by the same rule."""
    yield "## Where it holds, and where not\n"
    yield 'A share "in use" counts where it is true both of one server in the office and of a cluster in colocation.\n'
    for era in ERAS:
        for words, fits in SHORT:
            named = [*_demands(era, fits), *_prices(era, fits)]
            yield f"**{title(era)}, {words}:**\n"
            yield from (f"- {name}" for name in named or ["nowhere"])
            yield ""


def _demands(era: Era, fits: Callable[[Ratio], bool]) -> Iterator[str]:
    """Sizes of which it is true, for each kind of demand."""
    rows = [[fits(one.ratio) for one in found] for _gpus, found in fleets.table(era)]
    for column, demand in enumerate(fleets.DEMANDS):
        sizes = _span(fleets.GPUS, [row[column] for row in rows])
        if sizes:
            yield f"AWS on demand, {demand.words}: GPUs in use on average: {sizes}"


def _prices(era: Era, fits: Callable[[Ratio], bool]) -> Iterator[str]:
    """Shares of which it is true at both places, for each price."""
    for rows in zip(*(table(era, place) for place in PLACES), strict=True):
        (price, _found), true = (
            rows[0],
            [all(map(fits, found)) for found in zip(*(row[1] for row in rows), strict=True)],
        )
        shares = _span([round(100 * share) for share in UTILISATIONS], true)
        if shares:
            yield f"{price.provider}, {price.kind}: {shares} % in use"


def _span(numbers: Sequence[int], true: Sequence[bool]) -> str:
    """Those that are true, as a range where they lie side by side."""
    places = [place for place, one in enumerate(true) if one]
    if len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        return f"{numbers[places[0]]} to {numbers[places[-1]]}"
    return ", ".join(str(numbers[place]) for place in places)


# ---- what stands behind it ----

TAKEN = """## What owning is taken to cost

As the product took it when the page was frozen; ranges are 80 % intervals. Only the price and the power of the server
are of their time: care, place, electricity, life and capital are today's in both tables. How they make a year is in
[owning and leaving](method/owning.md).

| figure | 2021 | today | unit | source | day |
| --- | --- | --- | --- | --- | --- |"""


def _taken() -> Iterator[str]:
    yield TAKEN
    then, now = (case(era).figures.by_name for era in ERAS)
    for name, one in now.items():
        if one.source not in ("none", "stated") and name != "demand_variation":
            day = one.observed or ""
            yield f"| `{name}` | {_figure(then[name])} | {_figure(one)} | {one.unit} | {one.source} | {day} |"
    yield ""


def _figure(one: Assumption) -> str:
    if one.low is None or one.high is None or one.low == one.high:
        return _number(one.value)
    return f"{_number(one.value)} ({_number(one.low)} to {_number(one.high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


NOT_KNOWN = """- No current price of an H100 committed for a year was found.
- For the A100 with 80 GB no cloud price of 2021 was found, so it is not here; its server was said to cost 300,000 USD
  (DGX A100 640GB, 2021-06-30).
- 199,000 USD is NVIDIA's price at release, May 2020; what was really paid is not known.
- Prices of H100 servers are what resellers and analysts name, 2023 to March 2025; none of 2026 was found. The middle is
  their median.
- Weeks from order to first job of 2021 are not known: those that were named since stand for them.
- Tax, rent of one's own room and licences are in no figure. Queueing is not either: what finds no own GPU is rented.
- Figures are drawn independently, which makes intervals too wide rather than too narrow."""


def _missing() -> Iterator[str]:
    yield "## What is not known\n"
    later = [price for price in prices() if price.era == "2021" and price.observed.year > 2021]
    names = ", ".join(f"{price.provider} {price.kind} ({price.observed})" for price in later)
    yield f"- No price of 2021 was found for these; the first later one stands in: {names}."
    yield NOT_KNOWN
