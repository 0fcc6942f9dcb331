"""The verbs about the machine at hand, as pages and documents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from gpuwise.api import machine as api
from gpuwise.errors import Message
from gpuwise.faces.answer import FAILED, NOTHING, Answer, document
from gpuwise.measure.check import document as check_file
from gpuwise.request import CeilingsRequest, CheckRequest
from gpuwise.view.machine import ceilings_page, check_page

Tell = Callable[[Message], None]


def ceilings(request: CeilingsRequest, today: date, tell: Tell) -> Answer:
    result = api.ceilings(request, today=today, tell=tell)
    return Answer(
        result=result,
        exit_code=0 if any(probe.value for probe in result.ceilings.probes) else FAILED,
        pages=lambda r: ceilings_page(r.ceilings, r.others),
        documents=lambda r: document(r, {"ceilings": r.ceilings, "others_fraction": r.others}),
    )


def check(request: CheckRequest, today: date, tell: Tell) -> Answer:
    result = api.check(request, today=today, tell=tell)
    return Answer(
        result=result,
        exit_code=NOTHING if result.checked.ready == "not ready" else 0,
        pages=lambda r: check_page(r.checked),
        documents=lambda r: document(r, {"check": r.checked}),
        records=lambda r: check_file(r.checked),
    )
