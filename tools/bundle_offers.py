"""offers.csv: the price observations in our columns, and for left_out.csv each other row with its rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bundle_tables import Row, fact, number, read

COLUMNS = (
    "id", "provider", "instance", "region", "country", "market", "accelerator", "accelerators", "memory_gib", "vcpus",
    "host_memory_gib", "price", "currency", "price_unit", "price_usd_per_hour", "price_state", "tax", "term_h",
    "upfront", "billing_step_s", "billing_minimum_s", "disk_included_gb", "link", "host", "availability", "observed",
    "observed_precision", "withdrawn", "quality", "source", "note",
)  # fmt: skip
MARKETS = {
    "on-demand": ("on-demand", ""),
    "spot": ("spot", ""),
    "reserved-1y": ("reserved", "8760"),
    "reserved-3y": ("reserved", "26280"),
    "monthly": ("dedicated", ""),
    "marketplace": ("community", ""),
    "community": ("community", ""),
    "free tier": ("free", ""),
}
STEPS = {"second": "1", "minute": "60", "hour": "3600", "month": "2628000"}  # a month is 730 h
MINIMA = {"60 s": "60", "300 s": "300", "1 h": "3600"}
HOURS_PER_MONTH = 730.0
SHARE_ALIKE = frozenset({"S11"})
VARIANT = re.compile(
    r"(?<=-)(nova|atlas|orion|x-series|yotta|classic|production|prototyping|bare-metal|high-freq|cc)(?=-)"
)
COLAB_USD_PER_UNIT = 9.99 / 100
PER_GPU = "per-GPU price"
SOLD_WHOLE = frozenset({"aws", "azure"})  # providers that rent out machines of named sizes and never a part of one
SAME_PRICE = 1e-3  # prices that differ by less are one price, rounded differently


class Rejected(Exception):
    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule, self.reason = rule, reason


def build(source: Path, accelerators: Mapping[str, Row]) -> tuple[list[Row], list[Row]]:
    """Every usable row of offers.csv in our columns, and the others as rows of left_out.csv."""
    found = read(source / "prices" / "offers.csv")
    tables = _Tables(source, accelerators, found)
    kept: list[Row] = []
    left_out: list[Row] = []
    for line, old in enumerate(found, start=2):
        row = tables.translated(old)
        try:
            tables.check(old, row)
            kept.append(row)
        except Rejected as why:
            left_out.append(_left(row["id"] + f"#line-{line}", why))
    kept, dropped = _without_duplicates(kept)
    kept, above = _without_dear_spot(kept)
    return _unique(kept), left_out + dropped + above


class _Tables:
    """The look-up tables of tools/facts and the accelerators, as dictionaries."""

    def __init__(self, source: Path, accelerators: Mapping[str, Row], found: Sequence[Row]) -> None:
        self.accelerators = accelerators
        self.providers = {r["provider"]: r for r in fact("providers")}
        self.countries = {(r["provider"], r["region"]): r["country"] for r in fact("regions")}
        self.regions = {(r["provider"], r["spelling"]): r["region"] for r in fact("region_spellings")}
        self.instances = {(r["provider"], r["spelling"]): r["instance"] for r in fact("instance_spellings")}
        self.names = {(r["raw"], r["memory"], r["interconnect"], r["provider"]): r for r in fact("gpu_names")}
        self.fixes = fact("offer_fixes")
        self.remarks = fact("notes")
        (fx,) = (r for r in read(source / "prices" / "fx.csv") if r["from"] == "EUR")
        self.usd_per_eur = float(fx["rate"])
        self.devices = self._devices(found)

    def _devices(self, found: Sequence[Row]) -> dict[tuple[str, str], float]:
        """(provider, instance) -> GPUs of the machine, where the rows that price it whole agree on it."""
        counts: dict[tuple[str, str], set[float]] = {}
        for old in found:
            if old["instance"] and old["gpu_count"] and PER_GPU not in old["notes"]:
                counts.setdefault((old["provider"], self._instance(old)), set()).add(float(old["gpu_count"]))
        return {name: count.pop() for name, count in counts.items() if len(count) == 1}

    def translated(self, old: Row) -> Row:
        """The row in our columns, before anything is judged."""
        market, term_h = MARKETS[old["price_kind"]]
        provider = self.providers[old["provider"]]
        region = self.regions.get((old["provider"], old["region"]), old["region"])
        accelerator = self._accelerator(old)
        row = dict.fromkeys(COLUMNS, "") | {
            "provider": old["provider"],
            "instance": self._instance(old),
            "region": region,
            "country": self.countries.get((old["provider"], region), ""),
            "market": market,
            "accelerator": accelerator,
            "accelerators": number(old["gpu_count"]),
            "memory_gib": self._memory(accelerator),
            "vcpus": number(old["vcpus"]),
            "host_memory_gib": number(old["memory_gb"]),
            "price": number(old["price_native"]),
            "currency": old["currency"],
            "price_unit": old["native_unit"],
            "price_state": _state(old, market),
            "tax": provider["tax"],
            "term_h": term_h,
            "billing_step_s": STEPS.get(old["billing_granularity"], ""),
            "billing_minimum_s": STEPS["month"] if market == "dedicated" else MINIMA.get(old["billing_minimum"], ""),
            "disk_included_gb": number(old["local_disk_gb"]),
            "link": self._link(old, accelerator),
            "host": "peer" if old["price_kind"] in ("community", "marketplace") else provider["host"],
            "availability": _availability(old),
            "observed": old["as_of"],
            "observed_precision": old["as_of_precision"].split()[0],
            "quality": old["quality"].replace(" ", "-"),
            "source": old["source_id"],
            "note": self._note(old),
        }
        self._fix(old, row)
        if _part_of_a_machine(old) and (devices := self.devices.get((old["provider"], row["instance"]), 1.0)) > 1:
            _whole_node(row, devices)
            row["note"] = row["note"].replace("price of one GPU", "the source prices one GPU of the machine")
        row["price_usd_per_hour"] = self._usd_per_hour(old, row)
        row["id"] = _identity(row, old)
        return row

    def check(self, old: Row, row: Row) -> None:
        """Raise Rejected with the rule under which the row is left out."""
        known = self.names.get(("", "", "", "")) if not old["gpu_raw"] and not old["gpu_id"] else self._named(old)
        if old["source_id"] in SHARE_ALIKE:
            raise Rejected("share_alike", "the source is under CC BY-SA, which the bundle does not carry")
        if old["quality"] == "suspect":
            raise Rejected("suspect", old["notes"])
        for fix in self.fixes:
            if fix["column"] == "" and _matches(fix, old):
                raise Rejected(fix["rule"], fix["reason"])
        if known and known["rule"]:
            raise Rejected(known["rule"], known["reason"])
        if not row["accelerator"]:
            raise Rejected("accelerator_unknown", f"no accelerator is known under the name {old['gpu_raw']!r}")
        if not row["accelerators"]:
            raise Rejected("count_missing", "the source does not say how many GPUs, or less than one, the price buys")
        if not row["price"]:
            raise Rejected("price_missing", "the source gives no price")
        if _part_of_a_machine(old) and (old["provider"], row["instance"]) not in self.devices:
            raise Rejected("machine_unknown", "the price of one GPU where only machines are sold, and no row says how "
                           "many GPUs this one has")  # fmt: skip

    def _named(self, old: Row) -> Row | None:
        """The rule of gpu_names.csv for this spelling, the most special first."""
        raw, memory, link, provider = old["gpu_raw"], old["gpu_memory_gb"], old["interconnect"], old["provider"]
        keys = [(raw, memory, k, p) for k in (link, "") for p in (provider, "")]
        return next((self.names[k] for k in keys if k in self.names), None)

    def _accelerator(self, old: Row) -> str:
        named = self._named(old)
        if named and (not old["gpu_id"] or "/" in old["gpu_raw"] or "M60" in old["gpu_raw"]):
            return named["accelerator"]
        return old["gpu_id"]

    def _memory(self, accelerator: str) -> str:
        sizes = {self.accelerators[a]["memory_gib"] for a in accelerator.split("|") if a in self.accelerators}
        return sizes.pop() if len(sizes) == 1 else ""

    def _instance(self, old: Row) -> str:
        name = old["instance"]
        if (spelled := self.instances.get((old["provider"], name))) is not None:
            return spelled
        if old["provider"] == "runpod":
            return ""
        if old["source_id"] == "S07":
            return " ".join(VARIANT.findall(name))
        if old["provider"] == "azure" and name and not name.startswith("Standard_"):
            return "Standard_" + name.replace(" ", "_")
        return name

    def _link(self, old: Row, accelerator: str) -> str:
        """NVLink or PCIe, by the label of the offer, else by the board; blank where the board leaves it open."""
        label = old["interconnect"]
        if "NVLink" in label or label == "SXM":
            return "NVLink"
        links = {self.accelerators.get(a, {}).get("link", "") for a in accelerator.split("|")}
        if all(k.startswith("NVLink") for k in links):
            return "NVLink"
        return "PCIe" if links == {"PCIe"} else ""

    def _note(self, old: Row) -> str:
        """The source's remark in our own words, and what has no column of its own."""
        known = [r["note"] for r in self.remarks if r["contains"] in old["notes"]]
        parts = known or [old["notes"]]
        if old["zone"]:
            parts.append(f"zone {old['zone']}")
        if old["region"] in ("global", "all-regions", "cheapest region", "EU (NL) presumed"):
            parts.append(f"region: {old['region']}")
        if old["interconnect"].startswith("network") or "IB" in old["interconnect"]:
            parts.append(old["interconnect"])
        return "; ".join(dict.fromkeys(p for p in parts if p))

    def _usd_per_hour(self, old: Row, row: Row) -> str:
        """The native price in USD an hour, checked against the source's own conversion."""
        if row["price_state"] not in ("listed", "free") or not row["price"]:
            return ""
        rate = self.usd_per_eur if row["currency"] == "EUR" else 1.0
        hours = HOURS_PER_MONTH if row["price_unit"] == "month" else 1.0
        usd = float(row["price"]) * rate / hours
        per_source = float(old["price_usd_per_hour"]) * float(row["accelerators"] or 1) / float(old["gpu_count"] or 1)
        if old["gpu_count"] and abs(usd - per_source) > 1e-3 * max(usd, 0.1):
            raise ValueError(f"price of {old} is {usd} USD an hour by its native figure")
        return number(usd)

    def _fix(self, old: Row, row: Row) -> None:
        for fix in self.fixes:
            if fix["column"] and _matches(fix, old):
                if fix["column"] == "accelerators" and fix["value"].startswith("×"):
                    _whole_node(row, float(fix["value"][1:]))
                else:
                    row[fix["column"]] = fix["value"]
                row["note"] = "; ".join(filter(None, (row["note"], fix["reason"])))
        if old["currency"] == "compute-unit":
            units = float(old["price_native"])
            row["price"], row["currency"] = number(units * COLAB_USD_PER_UNIT, 6), "USD"
            row["note"] = f"{units:g} compute units an hour; {row['note']}"


def _part_of_a_machine(old: Row) -> bool:
    """Is it the price of one GPU of a machine that nobody can rent in parts?"""
    return PER_GPU in old["notes"] and old["provider"] in SOLD_WHOLE


def _whole_node(row: Row, devices: float) -> None:
    """A price given for one device of a machine that is sold whole becomes the price of the machine."""
    row["accelerators"] = number(float(row["accelerators"]) * devices)
    row["price"] = number(float(row["price"]) * devices)


def _matches(fix: Row, old: Row) -> bool:
    """A fix applies where each of its stated match columns equals the row (instance: is contained in it)."""
    pairs = ((fix["provider"], old["provider"]), (fix["source"], old["source_id"]), (fix["gpu_raw"], old["gpu_raw"]))
    same = all(not wanted or wanted == found for wanted, found in pairs)
    return same and fix["instance"] in old["instance"] and fix["notes"] in old["notes"]


def _state(old: Row, market: str) -> str:
    """free, incomplete (the host is billed apart) or listed."""
    if market == "free":
        return "free"
    gpu_only = old["instance"].startswith(("GPU only", "per-GPU rate")) or "without host" in old["notes"]
    apart = "billed sepa" in old["notes"] or old["provider"] in ("modal", "salad")
    return "incomplete" if gpu_only or apart else "listed"


def _availability(old: Row) -> str:
    said = ("live offer", "provisioned successfully", "cheapest host at time of collection", "across providers")
    return "available" if any(s in old["notes"] for s in said) else "unknown"


def _identity(row: Row, old: Row) -> str:
    """provider/what-xN/where/market[-term]/day/source: readable, and the same in each build."""
    card = row["accelerator"].replace("|", "+") or old["gpu_raw"] or "unnamed"
    variant = row["instance"] == "GPU only" or old["source_id"] == "S07"
    what = f"{row['instance']}-{card}" if variant and row["instance"] else row["instance"] or card
    term = {"8760": "-1y", "26280": "-3y"}.get(row["term_h"], "")
    paid = next((f"-{p}-upfront" for p in ("no", "partial", "all") if f"{p} upfront" in old["notes"].lower()), "")
    where = old["zone"] or row["region"] or "-"
    parts = (row["provider"], f"{what}-x{row['accelerators'] or '?'}", where, row["market"] + term + paid)
    return "/".join((*parts, row["observed"], row["source"])).replace(" ", "_")


def _left(key: str, why: Rejected) -> Row:
    return {"table": "offers", "row_key": key, "rule": why.rule, "reason": why.reason}


def _without_duplicates(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows that repeat another in all that matters (offer, day, price) under a second source go."""
    same = ("provider", "instance", "region", "market", "accelerator", "accelerators", "term_h", "observed", "price")
    seen: dict[tuple[str, ...], str] = {}
    kept, left_out = [], []
    for row in rows:
        key = (*(row[c] for c in same), row["note"] if "zone" in row["note"] else "", row["vcpus"])
        if key in seen:
            left_out.append(_left(row["id"], Rejected("duplicate", f"says the same as {seen[key]}")))
        else:
            seen[key] = row["id"]
            kept.append(row)
    return kept, left_out


def _without_dear_spot(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Spot rows dearer than on-demand of the same offer and day are taken for errors of the source."""
    same = ("provider", "instance", "region", "accelerator", "accelerators", "observed")
    listed: dict[tuple[str, ...], float] = {}
    for row in rows:
        if row["market"] == "on-demand":
            key = tuple(row[c] for c in same)
            listed[key] = max(float(row["price"]), listed.get(key, 0.0))
    kept, left_out = [], []
    for row in rows:
        limit = listed.get(tuple(row[c] for c in same), float("inf"))
        if row["market"] == "spot" and float(row["price"]) > limit * (1 + SAME_PRICE):
            why = f"the spot price {row['price']} is above the on-demand price {limit:g} of the same day"
            left_out.append(_left(row["id"], Rejected("spot_above_on_demand", why)))
        else:
            kept.append(row)
    return kept, left_out


def _unique(rows: Sequence[Row]) -> list[Row]:
    """Ids made unique: by the accelerator, then the size of the host, then the position by price."""
    for extra in (lambda r: r["accelerator"].replace("|", "+"), lambda r: f"{r['vcpus']}v" if r["vcpus"] else ""):
        counts = Counter(r["id"] for r in rows)
        for row in rows:
            suffix = extra(row)
            if counts[row["id"]] > 1 and suffix and suffix not in row["id"]:
                row["id"] += f"/{suffix}"
    position: Counter[str] = Counter()
    for row in sorted(rows, key=lambda r: (r["id"], float(r["price"] or 0), r["note"])):
        position[row["id"]] += 1
        if position[row["id"]] > 1:
            row["id"] += f"/{position[row['id']]}"
    return list(rows)
