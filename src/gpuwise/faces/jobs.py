"""The verbs about jobs, as pages and documents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from gpuwise.api import jobs as api
from gpuwise.faces.answer import NOTHING, Answer, document
from gpuwise.locale import _, words
from gpuwise.model import Candidate, Prediction, Refusal
from gpuwise.predict.tested import Tested, figures
from gpuwise.request import DescribeRequest, ExplainRequest, RankRequest
from gpuwise.view.candidates import candidate_table, ranked, setting
from gpuwise.view.explanation import explanation_page
from gpuwise.view.page import Page
from gpuwise.view.ranking import ranking_page, unsaid_text
from gpuwise.view.summary import ranking_summary
from gpuwise.view.workload import workload_page


def rank(request: RankRequest, today: date) -> Answer:
    answer = api.rank(request, today=today)
    return Answer(
        result=answer,
        exit_code=0 if any(map(ranked, answer.ranking.candidates)) else NOTHING,
        pages=lambda r: ranking_page(r.ranking, r.request, r.fx, r.tested),
        documents=_ranked_document,
        tables=lambda r: candidate_table(
            r.ranking, r.ranking.candidates, setting(r.ranking, r.fx, r.request.deadline_s, r.request.price_per)
        ),
        summaries=ranking_summary,
    )


def _ranked_document(r: api.Ranked) -> Mapping[str, Any]:
    from gpuwise.render.data import ranking_document

    document = ranking_document(r.ranking, r.request, r.fx)
    more = {"rejects": [words(reject) for reject in r.rejects], "tested": [_tested(one) for one in r.tested]}
    return {**document, "result": {**document["result"], **more}}


def _tested(one: Tested) -> Mapping[str, Any]:
    """How wrong predictions were in tests of the same situation."""
    found = {"split": one.split, "situation": words(one.situation), "sentence": words(one.sentence)}
    return {**found, **figures(one.errors)}


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
        pages=lambda r: workload_page(r.workload, r.need),
        documents=lambda r: document(r, {"workload": r.workload, "memory": r.need}),
    )


def _explained_page(r: api.Explained) -> Page:
    return explanation_page(
        r.workload,
        r.answers,
        candidate=r.candidate,
        exclusions=r.exclusions,
        ranking=r.ranking,
        fx=r.fx,
        instead=r.instead,
        largest_batch=r.largest_batch,
        several=r.several,
        nearest=r.nearest,
        provider=r.provider,
        sources=r.sources,
        unsaid="" if r.workload.undecided else unsaid_text(r.request, spot=_is_spot(r.candidate)),
    )


def _is_spot(candidate: Candidate | None) -> bool:
    return candidate is not None and candidate.offer.market == "spot"


def _absent(name: str, value: object, reason: str) -> Mapping[str, str]:
    """The reason of a missing value, under its name and _reason."""
    return {} if value else {f"{name}_reason": reason}


def _explained_document(r: api.Explained) -> Mapping[str, Any]:
    from gpuwise.render import data as forms

    return document(
        r,
        {
            "workload": r.workload,
            "predictions": r.answers,
            "candidate": forms.candidate(r.candidate) if r.candidate else None,
            **_absent("candidate", r.candidate, _("no single offer was asked about, or it was left out")),
            "largest_batch": r.largest_batch,
            "instead": forms.candidate(r.instead) if r.instead else None,
            **_absent("instead", r.instead, _("memory is enough, or no offer has enough")),
            "exclusions": [forms.exclusion(e) for e in r.exclusions],
            "offers": [forms.candidate(c) for c in r.ranking.candidates] if r.ranking else [],
            "several": [forms.several(row) for row in r.several],
            "sources": dict(r.sources),
            "platform": forms.platform(r.provider),
            "nearest": [forms.measured(row) for row in r.nearest],
            "errors": {a.platform: forms.errors(a.throughput_per_s) for a in r.answers if isinstance(a, Prediction)},
        },
    )
