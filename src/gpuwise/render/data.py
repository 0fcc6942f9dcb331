"""Results for programs: JSON (schema 1) and CSV, and a Markdown table for an issue or a paper.

JSON is made from the result itself, field by field and by hand, so that a change of the model cannot change the
published form. Nothing is rounded. What is not known is null, with the reason under the same name and `_reason`.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from functools import singledispatch
from typing import Any

from gpuwise.errors import Message
from gpuwise.estimate import Estimate, Interval
from gpuwise.locale import gettext, words
from gpuwise.locale.lines import closed
from gpuwise.model import BenchmarkResult, Candidate, CostLine, Exclusion, Fx, Offer, Prediction, Ranking
from gpuwise.offer import Provider
from gpuwise.rank.several import Several
from gpuwise.store.sheet import neutralise
from gpuwise.view.page import Cell, Column, Table

SCHEMA = 1

Json = dict[str, Any]


def json_text(document: Mapping[str, Any]) -> str:
    """The document as JSON that every reader accepts: no NaN, no Infinity, UTF-8."""
    return json.dumps(plain(document), allow_nan=False, ensure_ascii=False, indent=2) + "\n"


def document(
    result: Mapping[str, Any],
    *,
    request: object,
    data_version: str,
    as_of: date,
    warnings: Sequence[Message] = (),
    fx: Fx | None = None,
) -> Json:
    """What every verb's `--json` has around its result. fx: where a currency is shown; `*_usd` is USD all the same."""
    envelope: Json = {
        "schema": SCHEMA,
        "request": plain(request),
        "data_version": data_version,
        "as_of": as_of.isoformat(),
        "warnings": [words(w) for w in warnings],
    }
    if fx:
        rate = {"code": fx.code, "rate": fx.usd_per_unit, "date": fx.observed.isoformat(), "source": fx.source}
        envelope["fx"] = rate
    return {**envelope, "result": _reasoned(plain(result))}


def _reasoned(value: Any) -> Any:
    """The same with a reason beside every null that has none."""
    if isinstance(value, list):
        return [_reasoned(v) for v in value]
    if not isinstance(value, dict):
        return value
    shown: Json = {}
    for name, inner in value.items():
        shown[name] = _reasoned(inner)
        if inner is None and f"{name}_reason" not in value:
            shown[f"{name}_reason"] = gettext("not known, or there is none")
    return shown


def ranking_document(ranking: Ranking, request: object, fx: Fx | None = None) -> Json:
    """The answer to `rank`, by the contract of schema 1."""
    result = {
        "basis": ranking.basis,
        "total_offers": ranking.total_offers,
        "total_candidates": ranking.total_candidates,
        "candidates": [candidate(c) for c in ranking.candidates],
        "frontier": [{"offer_id": c.offer.id, "workload": c.workload} for c in ranking.frontier],
        "own": [{"offer_id": c.offer.id, "workload": c.workload} for c in ranking.own],
        "workloads": [plain(w) for w in ranking.workloads],
        "exclusions": [exclusion(e) for e in ranking.exclusions],
        "excluded_by_rule": dict(ranking.counts),
        "left_by_rule": [{"rule": rule, "offers": left} for rule, left in ranking.funnel],
        "relaxations": [plain(r) for r in ranking.relaxations],
        "sources": dict(ranking.sources),
        "oldest_price": plain(ranking.oldest),
        "newest_price": plain(ranking.newest),
    }
    return document(
        result,
        request=request,
        data_version=ranking.data_version,
        as_of=ranking.as_of,
        warnings=ranking.warnings,
        fx=fx,
    )


def candidate(given: Candidate) -> Json:
    """One row: every estimate as {value, low, high}, or null with its reason."""
    known: Json = {
        "price_usd_per_hour": given.price_usd_per_hour,
        "throughput_per_s": given.prediction.throughput_per_s,
        "time_s": given.time_s,
        "wait_s": given.wait_s,
        "accelerator_h": given.accelerator_h,
        "cost_usd": given.cost_usd,
        "cost_share_usd": given.cost_share_usd,
        "usd_per_million_samples": given.usd_per_million_samples,
        "usd_per_1000_steps": given.usd_per_1000_steps,
        "break_even_hours_per_month": given.break_even_hours_per_month,
        "p_cheapest": given.p_cheapest,
        "credit_usd": given.cost.credit_usd if given.cost else None,
    }
    known_length = Message("the length of the job is known: cost_usd is its bill")
    reasons = {
        "credit_usd": Message("there is no bill that a credit could pay"),
        "usd_per_million_samples": known_length,
        "usd_per_1000_steps": known_length,
        **given.reasons,
    }
    return {
        "offer": offer(given.offer),
        "workload": given.workload,
        "on_frontier": given.on_frontier,
        **_with_reasons(known, reasons, gettext("the source does not say")),
        "cost_lines": [cost_line(line) for line in given.cost.lines] if given.cost else [],
        "share_lines": [cost_line(line) for line in given.share_lines],
        "time_parts": [{"kind": kind, "time_s": seconds} for kind, seconds in given.time_parts_s.items()],
        "sessions": given.sessions,
        "quotes": plain(given.quotes),
        **({} if given.quotes else {"quotes_reason": gettext("no marketplace, or a single quote of the day")}),
        "method": given.prediction.method,
        "evidence": [words(e) for e in given.prediction.evidence],
        "remarks": [words(m) for m in given.marks],
    }


def several(given: Several) -> Json:
    """So many cards of one kind: one job on all of them, and as many jobs."""
    answer, best = given.prediction, given.candidate
    known: Json = {
        "throughput_per_s": answer.throughput_per_s if isinstance(answer, Prediction) else None,
        "time_s": given.time_s,
        "added_fraction": given.added_fraction,
        "cost_usd": best.cost_usd if best else None,
        "offer_id": best.offer.id if best else None,
        "side_by_side_s": given.side_by_side_s,
        "side_by_side_usd": given.side_by_side_usd,
        "together_s": given.together_s,
        "together_usd": given.together_usd,
    }
    refused = {} if isinstance(answer, Prediction) else {"throughput_per_s": answer.reason}
    offered = {name: given.reasons["candidate"] for name in ("cost_usd", "offer_id") if "candidate" in given.reasons}
    return {"accelerators": given.accelerators, **_with_reasons(known, {**refused, **offered, **given.reasons})}


def platform(given: Provider | None) -> list[Json]:
    """What is known of a provider's platform, each fact with its day and source."""
    facts = given.facts.values() if given else ()
    return [plain(fact) for fact in facts]


def measured(given: BenchmarkResult) -> Json:
    """A measured row; what is not known of it has its reason."""
    known: Json = {
        "workload": given.workload,
        "mode": given.mode,
        "accelerator": given.accelerator,
        "precision": given.precision,
        "batch_per_accelerator": given.batch_per_accelerator,
        "samples_per_s": given.samples_per_s,
        "software": given.software,
        "memory_format": given.memory_format,
        "source": given.source.ref,
    }
    unstated = Message("the table does not state it")
    return _with_reasons(known, {name: unstated for name, value in known.items() if value is None})


def errors(given: Estimate) -> list[Json]:
    """The error budget, the largest part first; shares of the variance add up to 1."""
    parts = sorted(given.spread, key=lambda part: -abs(part[1]))
    variance = given.log_sd**2
    return [{"error": name, "log_sd": abs(sd), "variance_fraction": sd**2 / variance} for name, sd in parts]


def offer(given: Offer) -> Json:
    known: Json = {
        "id": given.id,
        "provider": given.provider,
        "instance": given.instance,
        "region": given.region,
        "country": given.country,
        "market": given.market,
        "accelerator": given.accelerator,
        "accelerators": given.accelerators,
        "memory_gib": given.memory_gib,
        "vcpus": given.vcpus,
        "host_memory_gib": given.host_memory_gib,
        "host": given.host,
        "price_usd_per_hour": given.price_usd_per_hour,
        "price_native": given.price_native,
        "currency": given.currency,
        "price_unit": given.price_unit,
        "tax": given.tax,
        "term_h": given.term_h,
        "upfront_usd": given.upfront_usd,
        "billing_step_s": given.billing_step_s,
        "billing_minimum_s": given.billing_minimum_s,
        "billing_clock": given.billing_clock,
        "fee_usd": given.fee_usd,
        "monthly_cap_h": given.monthly_cap_h,
        "licence_usd_per_month": given.licence_usd_per_month,
        "host_gpus": given.host_gpus,
        "host_shared": given.host_shared,
        "disk_included_gb": given.disk_included_gb,
        "stopped": given.stopped,
        "session_limit_s": given.session_limit_s,
        "longest_h": given.longest_h,
        "reliability_fraction": given.reliability_fraction,
        "availability": given.availability,
        "observed": given.observed,
        "observed_precision": given.observed_precision,
        "source": given.source.ref,
    }
    return _with_reasons(known, given.reasons, gettext("the source does not say"))


def cost_line(given: CostLine) -> Json:
    names = ("kind", "quantity", "unit", "unit_price_usd", "amount_usd", "source")
    return {name: plain(getattr(given, name)) for name in names}


def exclusion(given: Exclusion) -> Json:
    return {
        "offer_id": given.offer_id,
        "workload": given.workload,
        **({} if given.workload else {"workload_reason": gettext("left out for every workload")}),
        "rule": given.rule,
        "reason": words(given.reason),
    }


@singledispatch
def plain(value: object) -> Any:
    """Any value of the domain as JSON knows it. A number that is not finite becomes null: JSON has no word for it."""
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    known = {f.name: getattr(value, f.name) for f in fields(value) if f.repr and f.name != "reasons"}
    return _with_reasons(known, getattr(value, "reasons", {}))


@plain.register
def _(value: str | int | None) -> Any:
    return value


@plain.register
def _(value: float) -> Any:
    return value if math.isfinite(value) else None


@plain.register
def _(value: date) -> Any:
    return value.isoformat()


@plain.register
def _(value: Message) -> Any:
    return words(value)


@plain.register
def _(value: Estimate) -> Any:
    return plain(value.interval())


@plain.register
def _(value: Interval) -> Any:
    bounds = {"value": value.value, "low": value.low, "high": value.high}
    return bounds if all(map(math.isfinite, bounds.values())) else None


@plain.register
def _(value: Mapping) -> Any:  # type: ignore[type-arg]
    return _with_reasons({str(k): v for k, v in value.items()}, {})


@plain.register
def _(value: Sequence) -> Any:  # type: ignore[type-arg]
    return [plain(v) for v in value]


def _with_reasons(known: Mapping[str, object], reasons: Mapping[str, Message], otherwise: str = "") -> Json:
    """The values, each null followed by its reason. otherwise: the reason of a missing value that states none."""
    shown: Json = {}
    for name, value in known.items():
        shown[name] = plain(value)
        if shown[name] is not None:
            continue
        stated = otherwise if value is None else gettext("the figure is not a finite number")
        if why := words(reasons[name]) if name in reasons else stated:
            shown[f"{name}_reason"] = why
    return shown


def csv_text(table: Table) -> str:
    """The table as CSV: a header of stable names with units, full values, empty cells for what is not known.

    A text that a spreadsheet would run as a formula is made harmless; numbers stay numbers.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([name for column in table.columns for name in _header(column)])
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        writer.writerow([value for column, cell in cells for value in _values(column, cell)])
    return out.getvalue()


def _header(column: Column) -> Iterator[str]:
    yield column.key
    if column.kind == "estimate":
        yield f"{column.key}_low"
        yield f"{column.key}_high"


def _values(column: Column, cell: Cell) -> Iterator[str]:
    if column.kind == "estimate":
        inside = cell.value
        ends = (inside.value, inside.low, inside.high) if isinstance(inside, Interval) else (None, None, None)
        yield from map(_field, ends)
    else:
        yield _field(cell.value)


def _field(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value) if math.isfinite(value) else ""
        case None:
            return ""
    return neutralise(value) if isinstance(value, str) else str(value)


def markdown(table: Table) -> str:
    """The table as people see it, in the pipe syntax that code forges know, with its notes below."""
    seen = table.visible()
    head = [_escaped(column.head) for column in seen.columns]
    rule = ["--:" if column.figures else "---" for column in seen.columns]
    body = [[_escaped(_noted(cell)) for cell in row] for row in seen.rows]
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, rule, *body)]
    return "\n".join([*lines, "", *(f"{_escaped(note)}  " for note in table.sentences())]).rstrip() + "\n"


def _noted(cell: Cell) -> str:
    return cell.text + (gettext(" ({why})").format(why=cell.note) if cell.note else "")


def _escaped(text: str) -> str:
    """Text that Markdown leaves as it is: no cell, tag or emphasis begins in a name."""
    for sign in "\\|*_`[]":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(closed(text).replace("&", "&amp;").replace("<", "&lt;").split())
