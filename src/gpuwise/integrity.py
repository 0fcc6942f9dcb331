"""Are the facts sound? Rules over the tables of a data package, the gate of `gpuwise data check` and `data refresh`.

Pure: the tables come in as read (header -> text, one mapping a row, as `csv.DictReader` gives them), findings come out.
A rule never mends anything. Each names the row it objects to, so that a person can look it up; `check` runs them all.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import isfinite
from statistics import median
from typing import get_args

from gpuwise.asset import HostingKind, Portability
from gpuwise.errors import Message
from gpuwise.model import Availability, Host, Market, Precision, PriceUnit

Row = Mapping[str, str]
Tables = Mapping[str, Sequence[Row]]

KEYS: Mapping[str, tuple[str, ...]] = {
    "accelerators": ("id",),
    "offers": ("id",),
    "throughput": (
        "workload", "accelerator", "accelerators", "precision", "batch_per_accelerator", "software", "memory_format",
        "link", "source",
    ),
    "memory": (
        "workload", "accelerator", "accelerators", "precision", "batch_per_accelerator", "software", "source",
    ),
    "profiles": ("workload", "accelerator", "image_size", "batch_per_accelerator"),
    "counts": ("workload",),
    "epochs": ("task", "global_batch"),
    "cpu_architectures": ("provider", "instance", "accelerator"),
    "spot": ("provider", "zone", "accelerator", "accelerators", "nodes", "observed"),
    "fx": ("code", "observed"),
    "regions": ("provider", "region"),
    "tariffs": ("provider", "region", "item", "start", "observed", "source"),
    "cpu_hosts": ("provider", "instance", "region"),
    "servers": ("id",),
    "hosting": ("kind", "country", "region", "customer", "observed", "value"),
    "carbon": ("country",),
    "services": ("provider", "name"),
    "waivers": ("where", "covers", "valid_from"),
    "links": ("provider", "name"),
    "cold_tiers": ("provider", "name"),
    "lead_times": ("kind", "source"),
    "sources": ("key",),
    "left_out": ("table", "row_key", "rule"),
}  # fmt: skip
"""The columns that name a row of each table. A table that is absent is not checked."""

CHOICES: Mapping[tuple[str, str], frozenset[str]] = {
    ("offers", "market"): frozenset(get_args(Market)),
    ("offers", "host"): frozenset(get_args(Host)),
    ("offers", "availability"): frozenset(get_args(Availability)),
    ("offers", "price_unit"): frozenset(get_args(PriceUnit)),
    ("offers", "price_state"): frozenset(
        {"listed", "confirmed", "free", "unknown", "minimum bid", "incomplete", "suspect"}
    ),
    ("offers", "tax"): frozenset({"net", "gross", "unknown"}),
    ("throughput", "precision"): frozenset(get_args(Precision)),
    ("memory", "precision"): frozenset(get_args(Precision)),
    ("profiles", "precision"): frozenset(get_args(Precision)),
    ("servers", "price_kind"): frozenset({"", "list", "offer", "street", "insured value"}),
    ("servers", "complete"): frozenset({"yes", "no"}),
    ("hosting", "kind"): frozenset(get_args(HostingKind)),
    ("services", "portability"): frozenset(get_args(Portability)),
    ("waivers", "covers"): frozenset({"exit", "switching", "parallel"}),
    ("lead_times", "kind"): frozenset({"cloud", "dedicated", "bundle", "server", "parts"}),
}
NUMBER_ENDINGS = (
    "_gib", "_s", "_tflops", "_w", "_usd", "_per_hour", "_h", "_fraction", "_per_unit", "_m", "_per_gb", "_month",
    "_days", "_weeks", "_per_kwh",
)  # fmt: skip
NUMBER_NAMES = frozenset(
    (
        "accelerators", "batch_per_accelerator", "global_batch", "gmacs", "hosts", "nodes", "price",
        "price_native", "price_usd", "rack_units", "runs", "samples_to_target", "upfront", "value", "vcpus",
    )
)  # fmt: skip
DATE_NAMES = frozenset({"observed", "withdrawn", "launched", "retrieved"})
VALID_NAMES = frozenset({"valid_from", "valid_until"})
"""Days that may lie ahead: a law is known before it holds."""

USUAL_LOW, USUAL_HIGH = 1 / 20, 8.0
"""Band of the price of one GPU around the median of its card. In the bundled table of 2026-11-30 it runs from 0.06
(a V100 after its price was cut) to 5.8 (a T4 under a host of 64 vCPUs)."""
ENOUGH_ROWS = 4
"""Cards with fewer priced rows have no usual price."""
SAME_PRICE = 1e-3
"""Prices nearer than this are one price, rounded differently."""
MAX_EFFICIENCY = 1.05
"""Rate of n devices over n times the rate of one, at the same batch a device: above it, the reading is in error."""
TRAINING_PASSES = 3.0
"""Work of a training step in forward passes: one forward, twice that backward."""
WINOGRAD = 2.25
"""Fewest multiplications of a 3×3 convolution by F(2×2, 3×3): 36 / 16 (Lavin and Gray 2016). So a convolutional
network may exceed the naive roofline by this factor, and no network by more."""
FRESH_DAYS = 365
MIN_OFFERS, MIN_PROVIDERS, MIN_MARKETS = 100, 15, 5
SHARE_ALIKE = ("by-sa", "share-alike", "sharealike")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One objection. table, row: where (row: the key as text, "" for the whole table); rule: its name; message: why."""

    table: str
    row: str
    rule: str
    message: Message


Rule = Callable[[Tables, date], Iterator[Finding]]


def check(tables: Tables, today: date) -> list[Finding]:
    """Every finding of every rule, in the order of the rules. An empty list means that the facts are sound."""
    return [finding for rule in RULES for finding in rule(tables, today)]


def check_hashes(package: Mapping[str, object], contents: Mapping[str, bytes]) -> list[Finding]:
    """Files that are missing, or whose content is not what datapackage.json says. contents: file name -> bytes."""
    findings = []
    for resource in _resources(package):
        name, digest = str(resource["path"]), str(resource["hash"]).removeprefix("sha256:")
        content = contents.get(name)
        if content is None:
            findings.append(_finding(name, "", "file_missing", Message("the file is not there")))
        elif hashlib.sha256(content).hexdigest() != digest:
            message = Message("the content is not the one that datapackage.json describes")
            findings.append(_finding(name, "", "hash_mismatch", message))
    return findings


def usual_usd_per_hour(offers: Sequence[Row]) -> dict[str, float]:
    """accelerator (as in the offers) -> median price of one device and hour in USD, over cards with enough rows."""
    prices: dict[str, list[float]] = {}
    for row in _listed(offers):
        prices.setdefault(row["accelerator"], []).append(_per_device(row))
    return {card: median(found) for card, found in prices.items() if len(found) >= ENOUGH_ROWS}


def roofline_unchecked(tables: Tables) -> int:
    """Rows of throughput that the roofline cannot judge, since the work of a sample or the peak is not known."""
    peaks, work = _peaks(tables), _work(tables)
    return sum(_limit_per_s(row, peaks, work) is None for row in tables.get("throughput", ()))


def unique_key(tables: Tables, today: date) -> Iterator[Finding]:
    for table, columns in KEYS.items():
        counts = Counter(tuple(row[c] for c in columns) for row in tables.get(table, ()))
        for key, count in counts.items():
            if count > 1:
                message = Message("{count} rows have this key ({columns})", count=count, columns=", ".join(columns))
                yield _finding(table, "/".join(key), "unique_key", message)


def known_words(tables: Tables, today: date) -> Iterator[Finding]:
    """Columns with a closed list of values hold only those."""
    for (table, column), allowed in CHOICES.items():
        for row in tables.get(table, ()):
            if row[column] not in allowed:
                message = Message("{column} is {value!r}, not one of {allowed}", column=column, value=row[column],
                                  allowed=", ".join(sorted(allowed)))  # fmt: skip
                yield _finding(table, _key(table, row), "known_words", message)


def sound_cells(tables: Tables, today: date) -> Iterator[Finding]:
    """Numbers are finite and not negative, dates are dates; an empty cell is a figure that is not known."""
    for table, rows in tables.items():
        for row in rows:
            for column, text in row.items():
                if text and (fault := _fault(column, text)):
                    yield _finding(table, _key(table, row), "sound_cells", fault)


def accelerator_known(tables: Tables, today: date) -> Iterator[Finding]:
    """Every accelerator is one of accelerators.csv, and an offer says how many it has. A server may hold any kind."""
    for row in tables.get("offers", ()):
        if not _number(row["accelerators"]) >= 1:
            message = Message("the source does not say how many accelerators there are")
            yield _finding("offers", row["id"], "accelerator_known", message)
    known = {row["id"] for row in tables.get("accelerators", ())}
    for table in ("offers", "throughput", "memory", "profiles", "spot", "servers"):
        for row in tables.get(table, ()):
            for card in row["accelerator"].split("|"):
                if card not in known and (card or table != "servers"):
                    message = (
                        Message("no accelerator has the id {id!r}", id=card)
                        if card
                        else Message("the source does not say which accelerator it is")
                    )
                    yield _finding(table, _key(table, row), "accelerator_known", message)


def price_positive(tables: Tables, today: date) -> Iterator[Finding]:
    """A listed price is above zero, a free one is zero, and any other state has no price an hour."""
    for row in tables.get("offers", ()):
        state, hourly = row["price_state"], row["price_usd_per_hour"]
        priced = _number(hourly) > 0
        sound = {"listed": priced, "confirmed": priced, "free": _number(hourly) == 0}.get(state, hourly == "")
        if not sound:
            message = Message("the price {price!r} does not go with the state {state}", price=hourly, state=state)
            yield _finding("offers", row["id"], "price_positive", message)


def spot_at_most_on_demand(tables: Tables, today: date) -> Iterator[Finding]:
    """Of one offer on one day, spot costs at most what on-demand does."""
    same = ("provider", "instance", "region", "accelerator", "accelerators", "observed")
    offers = _listed(tables.get("offers", ()))
    on_demand: dict[tuple[str, ...], float] = {}
    for row in offers:
        if row["market"] == "on-demand":
            key = tuple(row[c] for c in same)
            on_demand[key] = max(_number(row["price_usd_per_hour"]), on_demand.get(key, 0.0))
    for row in offers:
        limit = on_demand.get(tuple(row[c] for c in same))
        if row["market"] == "spot" and limit and _number(row["price_usd_per_hour"]) > limit * (1 + SAME_PRICE):
            message = Message("spot costs {price} USD an hour, on-demand {limit}", price=row["price_usd_per_hour"],
                              limit=limit)  # fmt: skip
            yield _finding("offers", row["id"], "spot_at_most_on_demand", message)


def price_in_band(tables: Tables, today: date) -> Iterator[Finding]:
    """The price of one GPU lies within `USUAL_LOW` to `USUAL_HIGH` times the usual price of its card."""
    offers = _listed(tables.get("offers", ()))
    usual = usual_usd_per_hour(offers)
    for row in offers:
        middle = usual.get(row["accelerator"])
        if middle and not USUAL_LOW <= _per_device(row) / middle <= USUAL_HIGH:
            message = Message("{price:.4f} USD an hour for one GPU; usual are {usual:.2f}", price=_per_device(row),
                              usual=middle)  # fmt: skip
            yield _finding("offers", row["id"], "price_in_band", message)


def not_in_future(tables: Tables, today: date) -> Iterator[Finding]:
    for table, rows in tables.items():
        for row in rows:
            for column in DATE_NAMES & row.keys():
                day = _date(row[column])
                if day and day > today:
                    message = Message("{column} is {day}, after {today}", column=column, day=day, today=today)
                    yield _finding(table, _key(table, row), "not_in_future", message)


def under_roofline(tables: Tables, today: date) -> Iterator[Finding]:
    """No rate exceeds what the arithmetic of its devices allows; rows without the figures are passed over."""
    peaks, work = _peaks(tables), _work(tables)
    for row in tables.get("throughput", ()):
        limit = _limit_per_s(row, peaks, work)
        if limit is not None and _number(row["samples_per_s"]) > limit:
            message = Message("{rate} {unit}, but the peak rate allows {limit:.0f}", rate=row["samples_per_s"],
                              unit=row["unit"], limit=limit)  # fmt: skip
            yield _finding("throughput", _key("throughput", row), "under_roofline", message)


def scaling_at_most_linear(tables: Tables, today: date) -> Iterator[Finding]:
    """n devices give at most 1.05 × n times what one gives at the same batch a device."""
    same = ("workload", "accelerator", "precision", "batch_per_accelerator", "software", "memory_format", "source")
    rows = tables.get("throughput", ())
    one = {tuple(r[c] for c in same): _number(r["samples_per_s"]) for r in rows if r["accelerators"] == "1"}
    for row in rows:
        single = one.get(tuple(row[c] for c in same))
        gain = _number(row["samples_per_s"]) / (single * _number(row["accelerators"])) if single else 1.0
        if gain > MAX_EFFICIENCY:
            message = Message("{gain:.2f} times linear", gain=gain)
            yield _finding("throughput", _key("throughput", row), "scaling_at_most_linear", message)


def source_known(tables: Tables, today: date) -> Iterator[Finding]:
    """Every row names its source, and sources.csv has it. accelerators: column=key, joined by |."""
    known = {row["key"] for row in tables.get("sources", ())}
    for table, rows in tables.items():
        for row in rows:
            named = [part.partition("=")[2] or part for part in row.get("source", "-").split("|")]
            if unknown := [key for key in named if key != "-" and key not in known]:
                message = Message("no source has the key {keys}", keys=", ".join(k or "(none)" for k in unknown))
                yield _finding(table, _key(table, row), "source_known", message)


def cell_sourced(tables: Tables, today: date) -> Iterator[Finding]:
    """Every figure of an accelerator names the source of that very cell."""
    for row in tables.get("accelerators", ()):
        named = {part.partition("=")[0] for part in row["source"].split("|")}
        for column, text in row.items():
            if text and column.endswith(("_gib", "_per_s", "_tflops", "_w")) and column not in named:
                message = Message("{column} has no source", column=column)
                yield _finding("accelerators", row["id"], "cell_sourced", message)


def licence_allows(tables: Tables, today: date) -> Iterator[Finding]:
    """No fact comes from a source under share-alike terms."""
    for row in tables.get("sources", ()):
        if any(term in row["licence"].lower() for term in SHARE_ALIKE):
            message = Message("the licence is {licence}", licence=row["licence"])
            yield _finding("sources", row["key"], "licence_allows", message)


def reason_stated(tables: Tables, today: date) -> Iterator[Finding]:
    """Each row that was left out says which, by which rule and why."""
    for row in tables.get("left_out", ()):
        if not all(row[c].strip() for c in ("table", "row_key", "rule", "reason")):
            message = Message("a row was left out without a reason")
            yield _finding("left_out", _key("left_out", row), "reason_stated", message)


def price_dated(tables: Tables, today: date) -> Iterator[Finding]:
    """A server with a price says in USD above zero what it costs, on which day, and what kind of price that is."""
    for row in tables.get("servers", ()):
        told = [bool(row[c]) for c in ("price_native", "price_usd", "price_kind", "observed")]
        if any(told) and not (all(told) and _number(row["price_usd"]) > 0):
            message = Message("a price without its day, kind or value in USD")
            yield _finding("servers", row["id"], "price_dated", message)


def service_replaced(tables: Tables, today: date) -> Iterator[Finding]:
    """What has an equal or a cousin elsewhere names it; a name means one service of a provider."""
    seen: dict[tuple[str, str], str] = {}
    for row in tables.get("services", ()):
        key = _key("services", row)
        if not row["replacement"] and row["portability"] != "C":
            yield _finding("services", key, "service_replaced", Message("nothing is named that takes its place"))
        for name in row["names"].split("|"):
            if seen.setdefault((row["provider"], name), key) != key:
                message = Message("{name!r} is {other} as well", name=name, other=seen[row["provider"], name])
                yield _finding("services", key, "service_replaced", message)


def in_order(tables: Tables, today: date) -> Iterator[Finding]:
    """What has a first and a last value has them in this order: days of a fact, days of work, weeks."""
    spans = (("valid_from", "valid_until"), ("effort_low_days", "effort_high_days"), ("low_weeks", "high_weeks"))
    for table, rows in tables.items():
        for row in rows:
            for first, last in spans:
                if row.get(first) and row.get(last) and _after(row[first], row[last]):
                    message = Message("{first} is {low}, {last} is {high}", first=first, low=row[first], last=last,
                                      high=row[last])  # fmt: skip
                    yield _finding(table, _key(table, row), "in_order", message)


def enough_offers(tables: Tables, today: date) -> Iterator[Finding]:
    """At least 100 offers of 15 providers in five markets have a usable price no older than a year."""
    oldest = (today - timedelta(days=FRESH_DAYS)).isoformat()
    fresh = [row for row in _listed(tables.get("offers", ())) if row["observed"] >= oldest]
    found = (len(fresh), len({r["provider"] for r in fresh}), len({r["market"] for r in fresh}))
    wanted = (MIN_OFFERS, MIN_PROVIDERS, MIN_MARKETS)
    for count, least, what in zip(found, wanted, ("offers", "providers", "markets"), strict=True):
        if count < least:
            message = Message("{count} {what} with a price of the last year, {least} are wanted", count=count,
                              what=what, least=least)  # fmt: skip
            yield _finding("offers", "", "enough_offers", message)


RULES: tuple[Rule, ...] = (
    unique_key, known_words, sound_cells, accelerator_known, price_positive, spot_at_most_on_demand, price_in_band,
    not_in_future, under_roofline, scaling_at_most_linear, source_known, cell_sourced, licence_allows, reason_stated,
    price_dated, service_replaced, in_order, enough_offers,
)  # fmt: skip


LIVE_RULES: tuple[Rule, ...] = (
    known_words, accelerator_known, price_positive, spot_at_most_on_demand, price_in_band, not_in_future,
)  # fmt: skip
"""What an offer fetched today, or written by a person, must pass beside the bundled ones."""


def check_live(offers: Sequence[Row], bundled: Tables, today: date) -> list[Finding]:
    """Objections to offers that are not bundled, each judged in the company of the bundled ones."""
    tables = {"accelerators": bundled["accelerators"], "offers": [*bundled["offers"], *offers]}
    ids = {row["id"] for row in offers}
    return [f for rule in LIVE_RULES for f in rule(tables, today) if f.table == "offers" and f.row in ids]


def _finding(table: str, row: str, rule: str, message: Message) -> Finding:
    return Finding(table=table, row=row, rule=rule, message=message)


def _key(table: str, row: Row) -> str:
    columns = KEYS.get(table) or tuple(row)[:1]
    return "/".join(row.get(c, "") for c in columns)


def _resources(package: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    resources = package.get("resources", ())
    return resources if isinstance(resources, list) else ()


def _listed(offers: Sequence[Row]) -> list[Row]:
    """Offers with a price that can be used, of a known number of devices."""
    return [row for row in offers if row["price_state"] == "listed" and _number(row["price_usd_per_hour"]) > 0
            and _number(row["accelerators"]) > 0]  # fmt: skip


def _per_device(row: Row) -> float:
    return _number(row["price_usd_per_hour"]) / _number(row["accelerators"])


def _peaks(tables: Tables) -> dict[tuple[str, str], float]:
    """(accelerator, precision) -> peak in 10^12 operations/s: the fastest unit that can do this arithmetic."""
    units = {
        "fp32": ("fp32",), "tf32": ("tf32", "fp32"), "amp": ("fp16", "fp32"), "amp_bf16": ("bf16", "fp32"),
        "bf16": ("bf16",), "fp8": ("fp8",),
    }  # fmt: skip
    peaks = {}
    for row in tables.get("accelerators", ()):
        for precision, names in units.items():
            rates = [_number(row[f"{n}_tflops"]) for n in names]
            if rates[0] > 0:
                peaks[row["id"], precision] = max(rates)
    return peaks


def _work(tables: Tables) -> dict[str, float]:
    """workload -> 10^9 multiply-accumulates of one forward pass; `name@224` is `name`."""
    work = {row["workload"]: _number(row["gmacs"]) for row in tables.get("counts", ()) if row["gmacs"]}
    return work | {f"{name}@224": gmacs for name, gmacs in work.items()}


def _limit_per_s(row: Row, peaks: Mapping[tuple[str, str], float], work: Mapping[str, float]) -> float | None:
    """Most samples/s that the devices of this row could compute; None if peak or work is not known."""
    peak = peaks.get((row["accelerator"], row["precision"]))
    gmacs = work.get(row["workload"])
    if peak is None or not gmacs:
        return None
    shortcut = WINOGRAD if row["family"].startswith(("cnn", "hybrid")) else 1.0
    return shortcut * peak * 1e12 * _number(row["accelerators"]) / (2e9 * gmacs * TRAINING_PASSES)


def _fault(column: str, text: str) -> Message | None:
    if column in DATE_NAMES | VALID_NAMES:
        return None if _date(text) else Message("{column} is {text!r}, not a date", column=column, text=text)
    if column not in NUMBER_NAMES and not column.endswith(NUMBER_ENDINGS):
        return None
    number = _number(text)
    return None if number >= 0 else Message("{column} is {text!r}, not a number ≥ 0", column=column, text=text)


def _after(first: str, last: str) -> bool:
    """Days as they are written, in the order of the calendar; else numbers."""
    return first > last if _date(first) else _number(first) > _number(last)


def _number(text: str) -> float:
    """The number, or -1 for an empty or unsound cell."""
    try:
        number = float(text)
    except ValueError:
        return -1.0
    return number if isfinite(number) else -1.0


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
