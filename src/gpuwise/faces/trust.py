"""The verb about trust, as pages and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

from gpuwise.api import trust as api
from gpuwise.errors import Message
from gpuwise.faces.answer import NOTHING, Answer, document
from gpuwise.locale import words
from gpuwise.predict.accuracy import ABOUT, PUBLISHED
from gpuwise.predict.against import Outcome
from gpuwise.predict.score import grouped
from gpuwise.predict.tested import Result, figures
from gpuwise.request import AccuracyRequest
from gpuwise.view.accuracy import against_page, rows_table, splits_page, splits_table

_ABOUT = {about.id: about for about in ABOUT}


def accuracy(request: AccuracyRequest, today: date, tell: Callable[[Message], None]) -> Answer:
    return answered(api.accuracy(request, today=today, tell=tell))


def answered(result: api.Proved | api.Compared) -> Answer:
    """A result in all its forms."""
    if isinstance(result, api.Proved):
        return Answer(
            result=result,
            exit_code=0,
            pages=lambda r: splits_page(r.table, r.request.by, r.fresh),
            documents=lambda r: document(r, _proved(r)),
            tables=lambda r: splits_table(r.table, r.request.by),
        )
    nothing = not any(row.predicted for row in result.scored.rows)
    return Answer(
        result=result,
        exit_code=NOTHING if nothing else 0,
        pages=lambda r: against_page(r.scored, r.request.by),
        documents=lambda r: document(r, _compared(r)),
        tables=lambda r: rows_table(r.scored),
    )


def _proved(r: api.Proved) -> Mapping[str, Any]:
    return {
        "computed": r.table.computed,
        "stands_on": r.table.data_version,
        "splits": [_split(found, r.request.by) for found in r.table.results.values()],
        "published": [{**asdict(p), "inputs": words(p.inputs), "measured_on": words(p.measured_on)} for p in PUBLISHED],
    }


def _split(found: Result, by: str | None) -> Mapping[str, Any]:
    about = _ABOUT.get(found.id)
    tags = [by] if by else list(found.groups)
    groups = {tag: {k: figures(e) for k, e in found.groups.get(tag, {}).items()} for tag in tags}
    return {
        "id": found.id,
        "title": words(about.title) if about else found.id,
        "question": words(about.question) if about else "",
        "goal": about.goal if about else "",
        **figures(found.errors),
        **found.more,
        "groups": groups,
    }


def _compared(r: api.Compared) -> Mapping[str, Any]:
    scored = r.scored
    by = {key[0]: figures(e) for key, e in grouped(scored.scores, r.request.by).items()} if r.request.by else {}
    return {
        "rows": [_row(row) for row in scored.rows],
        "summary": {**figures(scored.summary), "given": scored.given, "seen": scored.seen},
        "groups": {r.request.by: by} if r.request.by else {},
        "left_out": [{"line": o.claim.line, "reason": words(o.reason or "")} for o in scored.left_out],
        "rejects": [words(reject) for reject in r.rejects],
    }


def _row(row: Outcome) -> Mapping[str, Any]:
    """One row; where it was refused, `reason` says why."""
    claim, inside, wrong = row.claim, row.predicted, row.error_fraction
    why = words(row.reason) if row.reason else ""
    return {
        "line": claim.line,
        "group": claim.group,
        "workload": claim.workload,
        "accelerator": claim.accelerator or claim.name,
        "accelerators": claim.settings[0].accelerators if claim.settings else None,
        "measured": claim.samples_per_s,
        "predicted": inside.value if inside else None,
        "low": inside.low if inside else None,
        "high": inside.high if inside else None,
        "error_percent": None if wrong is None else 100 * wrong,
        **({f"{name}_reason": why for name in _OF_A_PREDICTION} if why else {}),
        "reason": why,
        "remarks": [words(remark) for remark in row.remarks],
        "seen": row.seen,
    }


_OF_A_PREDICTION = ("predicted", "low", "high", "error_percent", "accelerators")
