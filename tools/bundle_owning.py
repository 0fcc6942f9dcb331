"""servers.csv, hosting.csv and carbon.csv, and the assumptions of owning that follow from the offers."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path

from bundle_tables import Row, fact, number, read, write

SERVER_COLUMNS = (
    "id", "vendor", "model", "configuration", "accelerator", "accelerators", "rack_units", "max_power_w", "link",
    "cpu", "price_native", "currency", "price_usd", "price_kind", "observed", "observed_precision", "complete",
    "source", "note",
)  # fmt: skip
HOSTING_COLUMNS = (
    "kind", "country", "region", "value", "unit", "customer", "observed", "observed_precision", "source", "note"
)  # fmt: skip
HOSTING_KEY = ("kind", "country", "region", "customer", "observed", "value")
CARBON_COLUMNS = ("country", "name", "year", "g_co2e_per_kwh", "source")
PRICE_KINDS = {"list/offer": "offer", "secondary": "street", "insured value": "insured value"}
HOSTING_KINDS = ("electricity", "pue", "colocation")
OFFER = ("provider", "instance", "region", "accelerator", "accelerators")
DISCOUNTED = {"committed_1y": ("reserved", 1), "committed_3y": ("reserved", 3), "spot": ("spot", 0)}
CLOUDS = ("aws", "azure", "gcp")
"""Whose discounts are bundled one by one as well."""
LOSING = ("checkpoint_s", "restart_s", "spot_losses_per_hour")
"""From which assumptions the share of the hours that is lost on spot follows; it grows with each."""
SAME_PRICE_DAYS = 7
"""Two prices of one offer are compared where they were seen within so many days."""
DAYS_PER_YEAR = 365.25
MIN_DAYS = 30


def build(source: Path, target: Path) -> list[Row]:
    """Write the three tables; for left_out.csv what is no fact about a place."""
    kept, of_owners = hosting(source)
    write(target / "servers.csv", SERVER_COLUMNS, servers(source), ["id"])
    write(target / "hosting.csv", HOSTING_COLUMNS, kept, HOSTING_KEY)
    write(target / "carbon.csv", CARBON_COLUMNS, carbon(source), ["country"])
    return of_owners


def servers(source: Path) -> list[Row]:
    """The machines that can be bought; several prices of one are several rows."""
    rates = {r["from"]: float(r["rate"]) for r in read(source / "prices" / "fx.csv")} | {"USD": 1.0}
    known = {r["model"]: r for r in fact("server_facts")}
    judged = {(r["model"], r["observed"]): r["price_kind"] for r in fact("server_prices")}
    found, seen = [], defaultdict[str, int](int)
    for old in read(source / "prices" / "servers.csv"):
        key = "/".join((old["vendor"], old["model"], old["config"])).lower().replace(" ", "-").replace(",", "")
        seen[key] += 1
        row = _server(old, rates, known.get(old["model"], {}))
        row["id"] = key if seen[key] == 1 else f"{key}/{seen[key]}"
        row["price_kind"] = judged.pop((row["model"], row["observed"]), row["price_kind"])
        found.append(row)
    if judged:
        raise ValueError(f"server_prices: no priced server is {sorted(judged)}")
    return found


def _server(old: Row, rates: Mapping[str, float], more: Mapping[str, str]) -> Row:
    """One row; facts that a person read elsewhere stand beside it, each with its source."""
    price, day = old["list_price"], old["price_as_of"]
    sources = [*old["source_id"].split("+"), *([more["source"]] if more.get("source") else [])]
    return {
        "vendor": old["vendor"], "model": old["model"], "configuration": old["config"],
        "accelerator": old["gpu_id"] or more.get("accelerator", ""), "accelerators": old["gpu_count"],
        "rack_units": old["rack_units"] or more.get("rack_units", ""),
        "max_power_w": old["max_power_w"] or more.get("max_power_w", ""),
        "link": old["gpu_interconnect"].strip() or more.get("link", ""), "cpu": _cpu(old) or more.get("cpu", ""),
        "price_native": number(price), "currency": old["currency"] or "USD",
        "price_usd": number(float(price) * rates[old["currency"]], 8) if price else "",
        "price_kind": PRICE_KINDS.get(old["price_kind"], "") if price else "",
        "observed": day, "observed_precision": ("year" if day.endswith("-01-01") else "day") if day else "",
        "complete": "no" if "no host" in old["model"] or "kit" in old["model"] or "UBB" in old["model"] else "yes",
        "source": "|".join(dict.fromkeys(s for s in sources if s)) or "project",
        "note": "; ".join(filter(None, (more.get("note", ""), old["notes"]))),
    }  # fmt: skip


def _cpu(old: Row) -> str:
    count = old["cpu_count"]
    return f"{count} × {old['cpu']}" if old["cpu"] and count not in ("", "1") else old["cpu"]


def hosting(source: Path) -> tuple[list[Row], list[Row]]:
    """Electricity, PUE and colocation; what one owner wrote of himself is no fact about a place."""
    kept, left_out = [], []
    for old in read(source / "prices" / "hosting_energy.csv"):
        key = "/".join((old["kind"], old["country"], old["region"], old["customer"], old["as_of"], old["source_id"]))
        if old["kind"] not in HOSTING_KINDS or old["customer"] == "project assumption":
            left_out.append({
                "table": "hosting", "row_key": f"{key}/{old['value']}", "rule": "one_owner",
                "reason": "what one operator reckons for himself; in the example machines and the assumptions",
            })  # fmt: skip
            continue
        day, precision = _dated(old["as_of"])
        country = "" if old["country"] == "WORLD" else old["country"]
        kept.append({
            "kind": old["kind"], "country": country,
            "region": old["region"] or ("World" if old["country"] == "WORLD" else ""), "value": number(old["value"]),
            "unit": {"ratio": "1"}.get(old["unit"], old["unit"]), "customer": old["customer"], "observed": day,
            "observed_precision": precision, "source": old["source_id"], "note": old["notes"],
        })  # fmt: skip
    return kept, left_out


def _dated(text: str) -> tuple[str, str]:
    """The last day of a year, half-year or quarter stands for it, and says so."""
    if len(text) == 10:
        return text, "day"
    if len(text) == 4:
        return f"{text}-12-31", "year"
    year, _, part = text.partition("-")
    ends = {"Q1": "03-31", "Q2": "06-30", "Q3": "09-30", "Q4": "12-31", "H1": "06-30", "H2": "12-31"}
    return f"{year}-{ends.get(part, part + '-28')}", {"Q": "quarter", "H": "half"}.get(part[0], "month")


def carbon(source: Path) -> list[Row]:
    """g CO2e a kWh of a country, by its code of two letters."""
    codes = {r["alpha3"]: r["alpha2"] for r in fact("country_codes")}
    return [
        {
            "country": codes[r["iso3"]], "name": r["country"], "year": r["year"],
            "g_co2e_per_kwh": number(r["g_co2e_per_kwh"]), "source": r["source_id"],
        }
        for r in read(source / "prices" / "grid_carbon.csv") if r["iso3"] in codes
    ]  # fmt: skip


# ---- assumptions that follow from the offers ----


def assumptions(offers: Sequence[Row], built: str) -> list[Row]:
    """Discounts of commitments and of spot, and how often and how far listed prices move."""
    listed = [r for r in offers if r["price_state"] == "listed"]
    return [*_discounts(listed, built), *_cloud_discounts(offers, built), *_jumps(listed, built)]


def _row(name: str, values: tuple[float, float, float], unit: str, built: str, note: str) -> Row:
    value, low, high = (number(v, 4) for v in values)
    return {"name": name, "value": value, "low": low, "high": high, "unit": unit, "source": "offers.csv",
            "observed": built, "note": note}  # fmt: skip


def _discounts(offers: Sequence[Row], built: str) -> Iterator[Row]:
    """1 − price / price on demand of the same offer in the same week: median, 10th and 90th percentile."""
    for kind in DISCOUNTED:
        found = [discount for _, discount in _pairs(offers, kind)]
        yield _discount(f"{kind}_discount_fraction", found, f"{len(offers)} listed prices", built)


def _cloud_discounts(offers: Sequence[Row], built: str) -> Iterator[Row]:
    """The same of one provider. Google's commitments are listed for the GPU alone, so they are compared with that."""
    for kind in DISCOUNTED:
        for cloud in CLOUDS:
            own = [r for r in offers if r["provider"] == cloud and r["price_state"] in ("listed", "incomplete")]
            found = list(_pairs(own, kind))
            alone = sum(r["price_state"] == "incomplete" for r, _ in found)
            hosts = f"; {alone} of the pairs are of GPUs without their host" if alone else ""
            what = f"{len(own)} prices of {cloud}{hosts}"
            yield _discount(f"{kind}_discount_fraction_{cloud}", [discount for _, discount in found], what, built)


def _discount(name: str, found: Sequence[float], what: str, built: str) -> Row:
    deciles = statistics.quantiles(found, n=10, method="inclusive")
    note = (
        f"below the price on demand of the same machine, region and week: median, 10th and 90th percentile of "
        f"{len(found)} pairs of {what}"
    )
    return _row(name, (statistics.median(found), deciles[0], deciles[-1]), "1", built, note)


def _pairs(offers: Sequence[Row], kind: str) -> Iterator[tuple[Row, float]]:
    """Each offer of the kind that has a twin on demand, with its discount."""
    market, years = DISCOUNTED[kind]
    same = (*OFFER, "price_state")
    hourly = {(*(r[c] for c in same), _week(r)): _hourly(r) for r in offers if r["market"] == "on-demand"}
    for row in (r for r in offers if r["market"] == market and _years(r) == years):
        if base := hourly.get((*(row[c] for c in same), _week(row))):
            yield row, 1 - _hourly(row) / base


def _hourly(row: Row) -> float:
    """An incomplete price has no place among the comparable ones; those of the three clouds are in USD an hour."""
    return float(row["price_usd_per_hour"] or row["price"])


def _week(row: Row) -> int:
    return date.fromisoformat(row["observed"]).toordinal() // SAME_PRICE_DAYS


def _years(row: Row) -> int:
    return round(float(row["term_h"]) / 8760) if row["term_h"] else 0


def _jumps(offers: Sequence[Row], built: str) -> Iterator[Row]:
    """Moves of the same on-demand offer between two days at least 30 days apart, over the years that they span."""
    series: dict[tuple[str, ...], list[tuple[date, float]]] = defaultdict(list)
    for row in (r for r in offers if r["market"] == "on-demand"):
        key = (*(row[c] for c in (*OFFER, "vcpus")), row["id"].split("/")[2])
        series[key].append((date.fromisoformat(row["observed"]), float(row["price_usd_per_hour"])))
    years, moves = 0.0, list[float]()
    for points in series.values():
        for (day, price), (later, now) in pairwise(sorted(points)):
            if (later - day).days >= MIN_DAYS:
                years += (later - day).days / DAYS_PER_YEAR
                moves += [math.log(now / price)] if now != price else []
    rate, sd = len(moves) / years, math.sqrt(math.fsum(x * x for x in moves) / len(moves))
    down = sum(x < 0 for x in moves) / len(moves)
    counted = (
        f"{len(moves)} moves in {years:.0f} offer-years of {len(series)} offers on demand; {down:.0%} of them down"
    )
    half = 1.2816 / math.sqrt(len(moves))
    note = f"{counted}; a lower bound, as only the ends of each span were seen; 80 % interval of a Poisson count"
    yield _row("price_jumps_per_year", (rate, rate * math.exp(-half), rate * math.exp(half)), "1/year", built, note)
    half = 1.2816 / math.sqrt(2 * len(moves))
    note = f"root mean square of ln(p1/p0) where it moved: {counted}; the range is the 80 % interval of that estimate"
    yield _row("price_jump_log_sd", (sd, sd * math.exp(-half), sd * math.exp(half)), "1", built, note)
    half = 1.2816 * math.sqrt(down * (1 - down) / len(moves))
    note = f"share of the moves that go down: {counted}; the range is the 80 % interval of a share"
    yield _row("price_jump_down_fraction", (down, down - half, min(down + half, 1)), "1", built, note)


def spot_waste(assumed: Sequence[Row], built: str) -> Row:
    """The share of the billed hours that is lost, of the assumptions that it follows from. Range: each of them at its
    end with the others in the middle, their logarithms in quadrature."""
    by_name = {r["name"]: r for r in assumed}
    middle = [float(by_name[name]["value"]) for name in LOSING]
    value = _wasted(*middle)

    def end(column: str) -> float:
        each = ([*middle[:i], float(by_name[name][column]), *middle[i + 1 :]] for i, name in enumerate(LOSING))
        return math.sqrt(math.fsum(math.log(_wasted(*figures) / value) ** 2 for figures in each))

    checkpoint_s, restart_s, losses_per_hour = middle
    note = (
        f"of the billed hours: a checkpoint of {checkpoint_s:g} s after each √(2 · checkpoint_s / losses) of work "
        f"(Young 1974), what {losses_per_hour:.2g} losses an hour undo, and {restart_s:g} s of restart after each "
        "(Daly 2006, exact for losses without memory); see checkpoint_s, restart_s, spot_losses_per_hour"
    )
    row = _row(
        "spot_waste_fraction", (value, value * math.exp(-end("low")), value * math.exp(end("high"))), "1", built, note
    )
    return row | {"source": "project"}


def _wasted(checkpoint_s: float, restart_s: float, losses_per_hour: float) -> float:
    """1 − τ/t: work τ = √(2C/λ) between checkpoints takes t = e^(λR)·(e^(λ(τ + C)) − 1)/λ on the bill (Daly 2006).
    Test value: 30 s, 300 s, 0.4415/h: 0.1165."""
    rate = losses_per_hour / 3600
    work_s = math.sqrt(2 * checkpoint_s / rate)
    return 1 - work_s * rate / (math.exp(rate * restart_s) * math.expm1(rate * (work_s + checkpoint_s)))
