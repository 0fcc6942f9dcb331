"""The verb about what happened, as pages and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

from gpuwise.api import usage as api
from gpuwise.cost.monthly import KINDS
from gpuwise.cost.sharing import Split
from gpuwise.cost.usage import Kept, Unknown
from gpuwise.faces.answer import Answer, document
from gpuwise.locale import _, words
from gpuwise.request import BillRequest
from gpuwise.view.bill import bill_page, lines_table, shared_page
from gpuwise.view.costs import costs_page
from gpuwise.view.page import Page


def bill(request: BillRequest, today: date) -> Answer:
    result = api.bill(request, today=today)
    pages, documents = _FORMS[type(result)]
    tables = (lambda r: lines_table(r.bill)) if isinstance(result, api.Billed) else None
    return Answer(result=result, exit_code=0, pages=pages, documents=documents, tables=tables)


def _billed(r: api.Billed) -> Mapping[str, Any]:
    made = r.bill
    return document(
        r,
        {
            "records": "events",
            "until": _utc(made.until),
            "until_stated": r.stated,
            "machines": made.machines,
            "hours": made.hours,
            "totals": [{"currency": t.currency, "low": t.low, "high": t.high} for t in made.totals],
            "lines": made.lines,
            "unknown": [_unknown(one) for one in made.unknown],
            "commitments": [_kept(one) for one in made.kept],
        },
    )


def _utc(when: datetime) -> str:
    return when.isoformat().replace("+00:00", "Z")


def _unknown(one: Unknown) -> Mapping[str, Any]:
    """A stretch of time, and the most that it can have cost."""
    found = {"machine": one.machine, "kind": one.span.kind, "start_utc": _utc(one.span.start),
             "end_utc": _utc(one.span.end), "currency": one.currency, "most": one.most}  # fmt: skip
    why = {} if one.most is not None else {"most_reason": _("the price of the disks was not said")}
    return {**found, **why, "reason": words(one.span.why) if one.span.why else ""}


def _kept(one: Kept) -> Mapping[str, Any]:
    names = ("currency", "hours", "per_hour", "paid", "used", "wasted", "over", "on_demand")
    return {name: getattr(one, name) for name in names}


def _shared(r: api.Shared) -> Mapping[str, Any]:
    return document(r, {"records": "pods", "nodes": [_split(one) for one in r.splits]})


def _split(one: Split) -> Mapping[str, Any]:
    gpu, cpu, memory = one.fractions
    parts = [
        {"pod": part.pod or "", "idle": part.pod is None, "gpu": part.gpu, "cpu": part.cpu, "memory": part.memory,
         "amount": part.total}
        for part in one.parts
    ]  # fmt: skip
    return {
        "node": one.node.name,
        "price_per_hour": one.node.price_per_hour,
        "currency": one.node.currency,
        "hours": one.hours,
        "gpu_fraction": gpu,
        "cpu_fraction": cpu,
        "memory_fraction": memory,
        "rule": words(one.rule),
        "parts": parts,
    }


def _monthly_page(r: api.Monthly) -> Page:
    return costs_page(r.kind, r.column, r.dated, r.months, r.totals, r.others)


def _monthly(r: api.Monthly) -> Mapping[str, Any]:
    return document(
        r,
        {
            "records": "costs",
            "kind": r.kind,
            "column": r.column,
            "date_column": r.dated,
            "months": r.months,
            "totals": [{"currency": currency, "amount": amount} for currency, amount in r.totals],
            "others": [
                {"kind": kind, "column": KINDS[kind], "currency": currency, "amount": amount}
                for kind, currency, amount in r.others
            ],
            "rows": r.rows,
            "rejects": [words(reject) for reject in r.rejects],
        },
    )


_FORMS: Mapping[type, tuple[Callable[[Any], Page], Callable[[Any], Mapping[str, Any]]]] = {
    api.Billed: (lambda r: bill_page(r.bill, r.stated), _billed),
    api.Shared: (lambda r: shared_page(r.splits), _shared),
    api.Monthly: (_monthly_page, _monthly),
}
