"""docs/own-or-rent.md, written from the ratios."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.claim.ratios import ERAS, PLACES, UTILISATIONS, Era, Ratio, Verdict, assembled, prices, table
from gpuwise.model import Assumption

SIGNS = {
    Verdict.MORE: "**>3**", Verdict.HOLDS: "**yes**", Verdict.DEPENDS: "?", Verdict.LESS: "no",
    Verdict.CHEAPER: "no, cloud cheaper",
}  # fmt: skip
HEAD = """# Does the cloud cost two to three times as much?

One of the articles that this project stands on says: for steady, large work a public cloud costs two to three times as
much as one's own servers; for small, unknown or varying work it is cheaper. Here the sentence is put to figures, for
the A100 in 2021 and for the H100 today. `make docs` writes this page; prices are frozen with their days.

A cell is what a useful GPU-hour costs in the cloud over what it costs on an own server that is in use for that share of
the time, with the 80 % interval that the ranges of all figures leave. **yes**: the whole interval lies at or above two.
**>3**: at or above three. *no*: below two. *?*: it depends on figures that only you know. Cloud hours carry the share
that is billed without work (10 %, 2 to 30), spot hours also what is lost and done again. A commitment is paid whether
it is used or not, as an own server is.
"""


NOT_KNOWN = """- No current price of an H100 committed for a year was found.
- 199,000 USD is NVIDIA's price at release, May 2020; what was really paid is not known. Tax is in no figure.
- Own costs contain network (in a cluster), storage, spares, support, insurance, staff, place, energy and resale.
- Varying demand is a low utilisation; how many GPUs to own so that they are used is what `gpuwise own` answers."""


def page() -> str:
    return "\n".join([HEAD, *(line for era in ERAS for line in _era(era)), *_summary(), *_missing()]) + "\n"


SERVER = """The server: {gpus} GPUs for {price:,.0f} USD{ends}, price of {day}, {source}. Electricity {kwh:g} USD/kWh,
capital {capital:.0f} % a year, life {life:g} years, {staff:,.0f} USD of staff a server and month.
"""


def _ends(server: Assumption) -> str:
    return "" if server.low == server.high else f" ({server.low:,.0f} to {server.high:,.0f})"


def _era(era: Era) -> Iterator[str]:
    figures = assembled(era).case.figures
    server = figures["server_usd"]
    yield f"## {assembled(era).accelerator.name}, {'2021' if era.key == '2021' else 'today'}\n"
    text = SERVER.format(
        gpus=assembled(era).case.accelerators, price=server.value, ends=_ends(server), day=server.observed,
        source=server.source, kwh=figures["electricity_usd_per_kwh"].value,
        capital=100 * figures["discount_fraction"].value, life=figures["life_years"].value,
        staff=figures["staff_usd_per_month"].value,
    )  # fmt: skip
    yield text
    for place in PLACES:
        yield f"Own: {place[0]}.\n"
        shares = " | ".join(f"{share:.0%} in use".replace("%", " %") for share in UTILISATIONS)
        yield f"| rented | USD a GPU-hour | seen | {shares} |"
        yield "| --- " * (3 + len(UTILISATIONS)) + "|"
        for price, found in table(era, place):
            yield (
                f"| {price.provider}, {price.kind} | {price.usd_per_gpu_hour:.2f} | {price.observed} | "
                + " | ".join(map(cell, found))
                + " |"
            )
        yield ""


def cell(found: Ratio) -> str:
    return f"{found.middle:.1f} ({found.low:.1f} to {found.high:.1f}) {SIGNS[found.verdict]}"


def _summary() -> Iterator[str]:
    """The conditions, counted and named."""
    yield "## Where it holds, and where not\n"
    for era in ERAS:
        name = f"{assembled(era).accelerator.name} {era.key}"
        for words, wanted in (
            ("at least twice as dear", (Verdict.HOLDS, Verdict.MORE)),
            ("surely less than twice", (Verdict.LESS, Verdict.CHEAPER)),
        ):
            yield f"- **{name}, {words}:** {_named(era, wanted)}"
    yield ""


def _named(era: Era, wanted: tuple[Verdict, ...]) -> str:
    """For each price the utilisations at which both places agree."""
    by_place = [list(table(era, place)) for place in PLACES]
    parts = []
    for row, (price, _found) in enumerate(by_place[0]):
        shares = [
            share for at, share in enumerate(UTILISATIONS)
            if all(rows[row][1][at].verdict in wanted for rows in by_place)
        ]  # fmt: skip
        if shares:
            ends = f"{min(shares):.0%}" if len(shares) == 1 else f"{min(shares):.0%} to {max(shares):.0%}"
            parts.append(f"{price.provider}, {price.kind}, {ends.replace('%', ' %')} in use")
    return "; ".join(parts) + "." if parts else "nowhere."


def _missing() -> Iterator[str]:
    yield "## What is not known\n"
    later = [price for price in prices() if price.era == "2021" and price.observed.year > 2021]
    names = ", ".join(f"{price.provider} {price.kind} ({price.observed})" for price in later)
    yield f"- No price of 2021 was found for these; the first later one stands in: {names}."
    yield NOT_KNOWN
