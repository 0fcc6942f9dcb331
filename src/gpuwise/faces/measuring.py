"""The verbs about this machine and its runs, as pages and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from gpuwise.api import measuring as api
from gpuwise.errors import Message
from gpuwise.faces.answer import FAILED, INTERRUPTED, Answer, document
from gpuwise.measure import kept
from gpuwise.measure.energy import energy_total
from gpuwise.request import MeasureRequest, RunsRequest
from gpuwise.view.run import run_page
from gpuwise.view.runs import comparison_page, runs_page, runs_table


def measure(request: MeasureRequest, today: date, tell: Callable[[Message], None]) -> Answer:
    return _measured(api.measure(request, today=today, tell=tell))


def runs(request: RunsRequest, today: date) -> Answer:
    result = api.runs(request, today=today)
    if isinstance(result, api.Measured):
        return _answer(result, 0)
    pages, documents = _SEVERAL[type(result)]
    return Answer(result=result, exit_code=0, pages=pages, documents=documents)


def _measured(result: api.Measured) -> Answer:
    code = {"failed": FAILED, "interrupted": INTERRUPTED}.get(result.record.status, 0)
    return _answer(result, code)


def _answer(result: api.Measured, code: int) -> Answer:
    return Answer(
        result=result,
        exit_code=code,
        pages=_page,
        documents=_document,
        tables=lambda r: runs_table([(r.run if r.run is not None else "", r.record)], 1),
        records=_record,
    )


def _page(r: api.Measured) -> Any:
    return run_page(r.record, r.judgement, r.run, r.tried)


def _record(r: api.Measured) -> Mapping[str, Any]:
    return kept.payload(r.record)


def _document(r: api.Measured) -> Mapping[str, Any]:
    return document(
        r,
        {
            "run": r.run,
            **({} if r.run is not None else {"run_reason": "read from a file, or the run store could not be used"}),
            "verdict": r.judgement,
            "tried": r.tried,
            **({} if r.tried is not None else {"tried_reason": "not asked for (--advise)"}),
            "record": r.record,
            "energy": energy_total(r.record),
        },
    )


def _listed_document(r: api.Listed) -> Mapping[str, Any]:
    rows = [{"run": number, "record": record} for number, record in r.runs]
    return document(r, {"total": r.total, "place": r.place, "runs": rows})


_SEVERAL: Mapping[type, tuple[Callable[[Any], Any], Callable[[Any], Mapping[str, Any]]]] = {
    api.Listed: (lambda r: runs_page(r.runs, r.total, r.place, r.request.workload), _listed_document),
    api.Compared: (
        lambda r: comparison_page(r.before, r.after, r.comparison),
        lambda r: document(
            r,
            {
                "comparison": r.comparison,
                "before": [{"run": name, "record": record} for name, record in r.before],
                "after": [{"run": name, "record": record} for name, record in r.after],
            },
        ),
    ),
}
