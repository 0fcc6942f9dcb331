"""assumptions.toml, machines.toml, spot.csv and fx.csv: what is taken for granted, with range and source."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path

from bundle_tables import Row, fact, number, read

SPOT_COLUMNS = (
    "provider", "zone", "accelerator", "accelerators", "nodes", "observed", "hours_observed",
    "full_availability_fraction", "losses_per_available_hour", "source",
)  # fmt: skip
FX_COLUMNS = ("code", "usd_per_unit", "observed", "source")
GPU_POOLS = {"v100": "v100-sxm2-16gb", "k80": "k80-half"}
SAME_OFFER = ("provider", "instance", "region", "market", "accelerator", "accelerators", "term_h", "vcpus")
MIN_DAYS = 30
DAYS_PER_YEAR = 365.25
TEXT = frozenset({"accelerator", "country", "observed"})


def spot(source: Path) -> list[Row]:
    """The GPU pools of spot_rates.csv."""
    rows = [r for r in read(source / "prices" / "spot_rates.csv") if r["device"] in GPU_POOLS]
    return [
        {
            "provider": r["provider"],
            "zone": r["zone"],
            "accelerator": GPU_POOLS[r["device"]],
            "accelerators": r["devices_per_node"],
            "nodes": r["nodes"],
            "observed": r["observed"],
            "hours_observed": r["hours_observed"],
            "full_availability_fraction": r["full_availability_fraction"],
            "losses_per_available_hour": number(r["losses_per_available_hour"]),
            "source": r["source_id"],
        }
        for r in rows
    ]


def fx(source: Path) -> list[Row]:
    """Dated exchange rates to USD."""
    rows = [r for r in read(source / "prices" / "fx.csv") if r["to"] == "USD"]
    return [
        {"code": r["from"], "usd_per_unit": r["rate"], "observed": r["date"], "source": r["source_id"]} for r in rows
    ]


def assumptions(offers: Sequence[Row], pools: Sequence[Row], accelerators: Sequence[Row], built: str) -> list[Row]:
    """The hand-kept assumptions and those that follow from the bundled tables."""
    kept = fact("assumptions")
    by_name = {r["name"]: r for r in kept}
    computed = [*_spot_losses(pools), *_price_age(offers, built), _usable_memory(accelerators, built)]
    losses = float(computed[0]["value"])
    return [*kept, *computed, _checkpoint_interval(float(by_name["checkpoint_s"]["value"]), losses, built)]


def _assumption(name: str, values: tuple[float, float, float], unit: str, source: str, observed: str, note: str) -> Row:
    value, low, high = (number(v, 4) for v in values)
    return {"name": name, "value": value, "low": low, "high": high, "unit": unit, "source": source,
            "observed": observed, "note": note}  # fmt: skip


def _spot_losses(pools: Sequence[Row]) -> Iterable[Row]:
    pools = [r for r in pools if r["nodes"] == "1"]
    rates = sorted(float(r["losses_per_available_hour"]) for r in pools)
    deciles = statistics.quantiles(rates, n=10, method="inclusive")
    note = (
        f"losses per available hour of {len(rates)} pools of one machine at AWS (V100, K80); median, 10th and 90th "
        "percentile; pools of newer cards were not observed"
    )
    values = (statistics.median(rates), deciles[0], deciles[-1])
    yield _assumption("spot_losses_per_hour", values, "1/h", "S36", max(r["observed"] for r in pools), note)
    yield _spot_available(pools)


def _spot_available(pools: Sequence[Row]) -> Row:
    """Share of the time in which all machines of a pool could be had."""
    shares = sorted(float(r["full_availability_fraction"]) for r in pools)
    deciles = statistics.quantiles(shares, n=10, method="inclusive")
    note = (
        f"share of the time in which a machine of {len(shares)} GPU pools of AWS (V100, K80) could be had; median, "
        "10th and 90th percentile; pools of newer cards were not observed"
    )
    values = (statistics.median(shares), deciles[0], deciles[-1])
    return _assumption("spot_available_fraction", values, "1", "S36", max(r["observed"] for r in pools), note)


def _price_age(offers: Sequence[Row], built: str) -> Iterable[Row]:
    """How far a listed price wanders: the root mean square of ln(p1/p0)/√years over pairs of the same offer."""
    pairs: dict[str, list[float]] = defaultdict(list)
    for market, steps in _price_steps(offers).items():
        pairs[market] += steps
        pairs[""] += steps
    for market, steps in sorted(pairs.items()):
        sd = math.sqrt(math.fsum(x * x for x in steps) / len(steps))
        suffix = f"_{market.replace('-', '_')}" if market else ""
        moved = sum(x != 0 for x in steps) / len(steps)
        note = (
            f"root mean square of ln(p1/p0)/√years over {len(steps)} pairs of the same offer at two days at least "
            f"{MIN_DAYS} days apart; {moved:.0%} of them moved; the range is the 80 % interval of that estimate"
        )
        half = math.exp(1.2816 / math.sqrt(2 * len(steps)))
        name = f"price_age_log_sd_per_root_year{suffix}"
        yield _assumption(name, (sd, sd / half, sd * half), "1/sqrt(year)", "offers.csv", built, note)


def _price_steps(offers: Sequence[Row]) -> Mapping[str, list[float]]:
    series: dict[tuple[str, ...], list[tuple[date, float]]] = defaultdict(list)
    for row in offers:
        if row["price_state"] == "listed":
            key = (*(row[c] for c in SAME_OFFER), row["id"].split("/")[2], "upfront" in row["id"])
            series[key].append((date.fromisoformat(row["observed"]), float(row["price_usd_per_hour"])))  # type: ignore[index]
    steps: dict[str, list[float]] = defaultdict(list)
    for key, points in series.items():
        points.sort()
        for (day, price), (later, now) in pairwise(points):
            years = (later - day).days / DAYS_PER_YEAR
            if years >= MIN_DAYS / DAYS_PER_YEAR:
                steps[key[3]].append(math.log(now / price) / math.sqrt(years))
    return steps


def _usable_memory(accelerators: Sequence[Row], built: str) -> Row:
    known = [r for r in accelerators if r["usable_memory_gib"]]
    shares = sorted(float(r["usable_memory_gib"]) / float(r["memory_gib"]) for r in known)
    note = f"driver-reported share of the nominal memory, over {len(shares)} accelerators of accelerators.csv"
    values = (statistics.median(shares), shares[0], min(shares[-1], 1.0))
    return _assumption("usable_memory_fraction", values, "1", "accelerators.csv", built, note)


def _checkpoint_interval(checkpoint_s: float, losses_per_hour: float, built: str) -> Row:
    """Young (1974): √(2 · checkpoint time · mean time between losses)."""
    value = math.sqrt(2 * checkpoint_s * 3600 / losses_per_hour)
    note = "√(2 · checkpoint_s · mean time between losses), Young (1974); a job may choose its own"
    return _assumption("checkpoint_interval_s", (value, value / 2, value * 2), "s", "project", built, note)


def assumptions_toml(rows: Sequence[Row]) -> str:
    """One table an assumption, sorted by name."""
    parts = ["# What is assumed, with its 80 % range and source. Written by tools/build_data.py; do not edit."]
    for row in sorted(rows, key=lambda r: r["name"]):
        lines = [f"[{row['name']}]", *(f"{c} = {row[c]}" for c in ("value", "low", "high") if row["value"])]
        lines += [f"unit = {_quoted(row['unit'])}", f"source = {_quoted(row['source'])}"]
        note = "note" if row["value"] else "reason"
        lines += [f"observed = {_day(row['observed'])}", f"{note} = {_quoted(row['note'])}"]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def machines_toml(source: Path) -> str:
    """The owned example machines: values, then their ranges and origins by field."""
    machines: dict[str, list[Row]] = defaultdict(list)
    for row in fact("machines"):
        machines[row["machine"]].append(row)
    _check_capex(source, machines)
    head = "# Owned example machines made from priced ones. Written by tools/build_data.py; do not edit."
    return "\n\n".join([head, *(_machine(name, rows) for name, rows in sorted(machines.items()))]) + "\n"


def _machine(name: str, rows: Sequence[Row]) -> str:
    by_field = {r["field"]: r for r in rows}
    capex = by_field["capex_usd"]
    note = f"{by_field['accelerator']['note']}; {capex['note']}"
    lines = ["[[machine]]", f"name = {_quoted(name)}"]
    lines += [f"{r['field']} = {_value(r)}" for r in rows]
    lines += ["example = true", f"source = {_quoted(capex['source'])}", f"note = {_quoted(note)}", ""]
    ranged = [r for r in rows if r["low"]]
    lines += ["[machine.low]", *(f"{r['field']} = {r['low']}" for r in ranged), ""]
    lines += ["[machine.high]", *(f"{r['field']} = {r['high']}" for r in ranged), ""]
    lines += ["[machine.origin]", *(f"{r['field']} = {_quoted(r['source'])}" for r in rows), ""]
    lines += ["[machine.remark]", *(f"{r['field']} = {_quoted(r['note'])}" for r in rows if r["note"])]
    return "\n".join(lines)


def _check_capex(source: Path, machines: Mapping[str, Sequence[Row]]) -> None:
    """The purchase prices must be those of servers.csv, in USD or in EUR at the bundled rate."""
    rates = {r["code"]: float(r["usd_per_unit"]) for r in fx(source)} | {"USD": 1.0}
    priced = [r for r in read(source / "prices" / "servers.csv") if r["list_price"]]
    known = [float(r["list_price"]) * rates[r["currency"]] for r in priced]
    for name, rows in machines.items():
        capex = float(next(r["value"] for r in rows if r["field"] == "capex_usd"))
        if not any(abs(capex - k) < 0.01 for k in known):
            raise ValueError(f"no priced server costs {capex} USD, as {name} claims")


def _value(row: Row) -> str:
    if row["field"] == "observed":
        return row["value"]
    return _quoted(row["value"]) if row["field"] in TEXT else row["value"]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _day(observed: str) -> str:
    """A TOML date; a bare year stands for its last day."""
    return observed if len(observed) > 4 else f"{observed}-12-31"
