"""The verbs about jobs, as pages and documents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from gpuwise.api import jobs as api
from gpuwise.faces.answer import NOTHING, Answer, document
from gpuwise.locale import _, words
from gpuwise.model import Refusal
from gpuwise.request import DescribeRequest, ExplainRequest, RankRequest
from gpuwise.view.candidates import candidate_table, ranked, setting
from gpuwise.view.explanation import explanation_page
from gpuwise.view.page import Page
from gpuwise.view.ranking import ranking_page
from gpuwise.view.workload import workload_page


def rank(request: RankRequest, today: date) -> Answer:
    answer = api.rank(request, today=today)
    return Answer(
        result=answer,
        exit_code=0 if any(map(ranked, answer.ranking.candidates)) else NOTHING,
        pages=lambda r: ranking_page(r.ranking, r.request, r.fx),
        documents=_ranked_document,
        tables=lambda r: candidate_table(
            r.ranking, r.ranking.candidates, setting(r.ranking, r.fx, r.request.deadline_s)
        ),
    )


def _ranked_document(r: api.Ranked) -> Mapping[str, Any]:
    from gpuwise.render.data import ranking_document

    document = ranking_document(r.ranking, r.request, r.fx)
    return {**document, "result": {**document["result"], "rejects": [words(reject) for reject in r.rejects]}}


def explain(request: ExplainRequest, today: date) -> Answer:
    explained = api.explain(request, today=today)
    refused = bool(explained.exclusions) or all(isinstance(a, Refusal) for a in explained.answers)
    return Answer(
        result=explained, exit_code=NOTHING if refused else 0, pages=_explained_page, documents=_explained_document
    )


def describe(request: DescribeRequest, today: date) -> Answer:
    return Answer(
        result=api.describe(request, today=today),
        exit_code=0,
        pages=lambda r: workload_page(r.workload),
        documents=lambda r: document(r, {"workload": r.workload}),
    )


def _explained_page(r: api.Explained) -> Page:
    return explanation_page(
        r.workload, r.answers, candidate=r.candidate, exclusions=r.exclusions, ranking=r.ranking, fx=r.fx
    )


def _explained_document(r: api.Explained) -> Mapping[str, Any]:
    from gpuwise.render import data as forms

    return document(
        r,
        {
            "workload": r.workload,
            "predictions": r.answers,
            "candidate": forms.candidate(r.candidate) if r.candidate else None,
            "candidate_reason": None if r.candidate else _("no single offer was asked about, or it was left out"),
            "exclusions": [forms.exclusion(e) for e in r.exclusions],
            "offers": [forms.candidate(c) for c in r.ranking.candidates] if r.ranking else [],
        },
    )
