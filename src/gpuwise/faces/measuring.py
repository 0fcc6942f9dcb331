"""The verbs about this machine and its runs, as pages and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from gpuwise.api import measuring as api
from gpuwise.errors import Message
from gpuwise.faces.answer import FAILED, INTERRUPTED, Answer, document
from gpuwise.measure import kept
from gpuwise.request import MeasureRequest, RunsRequest
from gpuwise.view.run import run_page
from gpuwise.view.runs import comparison_page, runs_page


def measure(request: MeasureRequest, today: date, tell: Callable[[Message], None]) -> Answer:
    return _measured(api.measure(request, today=today, tell=tell))


def runs(request: RunsRequest, today: date) -> Answer:
    result = api.runs(request, today=today)
    if isinstance(result, api.Measured):
        return Answer(result=result, exit_code=0, pages=_page, documents=_document, records=_record)
    pages, documents = _SEVERAL[type(result)]
    return Answer(result=result, exit_code=0, pages=pages, documents=documents)


def _measured(result: api.Measured) -> Answer:
    code = {"failed": FAILED, "interrupted": INTERRUPTED}.get(result.record.status, 0)
    return Answer(result=result, exit_code=code, pages=_page, documents=_document, records=_record)


def _page(r: api.Measured) -> Any:
    return run_page(r.record, r.judgement, r.run)


def _record(r: api.Measured) -> Mapping[str, Any]:
    return kept.payload(r.record)


def _document(r: api.Measured) -> Mapping[str, Any]:
    return document(
        r,
        {
            "run": r.run,
            **({} if r.run is not None else {"run_reason": "read from a file, or the run store could not be used"}),
            "verdict": r.judgement,
            "record": r.record,
        },
    )


def _listed_document(r: api.Listed) -> Mapping[str, Any]:
    rows = [{"run": number, "record": record} for number, record in r.runs]
    return document(r, {"total": r.total, "place": r.place, "runs": rows})


_SEVERAL: Mapping[type, tuple[Callable[[Any], Any], Callable[[Any], Mapping[str, Any]]]] = {
    api.Listed: (lambda r: runs_page(r.runs, r.total, r.place), _listed_document),
    api.Compared: (
        lambda r: comparison_page(r.before, r.after, r.comparison),
        lambda r: document(r, {"comparison": r.comparison, "before": r.before, "after": r.after}),
    ),
}
