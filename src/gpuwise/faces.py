"""What each verb answers, in every form: the one place that command line and web ask, so that both say the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from gpuwise import api
from gpuwise.api import data_version, usd_per
from gpuwise.model import Refusal
from gpuwise.render import data as data_form
from gpuwise.render.toml import workload_toml
from gpuwise.request import DataRequest, DescribeRequest, ExplainRequest, RankRequest
from gpuwise.view import (
    Change,
    Page,
    Table,
    changes_page,
    check_page,
    explanation_page,
    facts_table,
    name_page,
    offers_page,
    pools,
    pools_page,
    ranking_page,
    workload_page,
)

NOTHING = 3
"""Exit code where nothing is feasible, a prediction is refused, or the facts do not pass."""

__all__ = ["Answer", "data", "data_version", "describe", "explain", "rank", "usd_per"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A result as a page, as the document of schema 1, and as the table that CSV and Markdown hold.

    exit_code: 0, or 3 where nothing is feasible or the facts do not pass. The forms are made when they are asked for.
    """

    result: Any
    exit_code: int
    pages: Callable[[Any], Page]
    documents: Callable[[Any], Mapping[str, Any]]

    def page(self) -> Page:
        return self.pages(self.result)

    def json(self) -> Mapping[str, Any]:
        return self.documents(self.result)

    def table(self) -> Table:
        """The first table of the page; an answer without one gives its facts as rows."""
        blocks = self.page().blocks
        tables = [block for block in blocks if isinstance(block, Table)]
        return tables[0] if tables else facts_table(blocks)

    def toml(self) -> str:
        """The workload of `describe`, to be changed and used."""
        return workload_toml(self.result.workload)


def rank(request: RankRequest, *, today: date) -> Answer:
    ranked = api.rank(request, today=today)
    return Answer(
        result=ranked,
        exit_code=0 if ranked.ranking.candidates else NOTHING,
        pages=lambda r: ranking_page(r.ranking, r.request, r.fx),
        documents=lambda r: data_form.ranking_document(r.ranking, r.request, r.fx),
    )


def explain(request: ExplainRequest, *, today: date) -> Answer:
    explained = api.explain(request, today=today)
    refused = bool(explained.exclusions) or all(isinstance(a, Refusal) for a in explained.answers)
    return Answer(
        result=explained, exit_code=NOTHING if refused else 0, pages=_explained_page, documents=_explained_document
    )


def describe(request: DescribeRequest, *, today: date) -> Answer:
    return Answer(
        result=api.describe(request, today=today),
        exit_code=0,
        pages=lambda r: workload_page(r.workload),
        documents=lambda r: _document(r, {"workload": r.workload}),
    )


def data(request: DataRequest, *, today: date) -> Answer:
    result = api.data(request, today=today)
    pages, documents = _DATA[type(result)]
    return Answer(
        result=result, exit_code=NOTHING if getattr(result, "findings", ()) else 0, pages=pages, documents=documents
    )


def _explained_page(r: api.Explained) -> Page:
    return explanation_page(r.workload, r.answers, candidate=r.candidate, exclusions=r.exclusions, fx=r.fx)


def _explained_document(r: api.Explained) -> Mapping[str, Any]:
    return _document(
        r,
        {
            "workload": r.workload,
            "predictions": r.answers,
            "candidate": data_form.candidate(r.candidate) if r.candidate else None,
            "candidate_reason": None if r.candidate else "no single offer was asked about, or it was left out",
            "exclusions": [data_form.exclusion(e) for e in r.exclusions],
        },
    )


def _listed_page(r: api.Listed) -> Page:
    if r.request.by:
        return pools_page(r.offers, r.request.by, r.fx, r.request.limit)
    return offers_page(r.offers, r.total, r.fx)


def _listed_document(r: api.Listed) -> Mapping[str, Any]:
    if not r.request.by:
        return _document(r, {"total": r.total, "offers": [data_form.offer(o) for o in r.offers]})
    groups = [
        {**dict(zip(r.request.by, pool.names, strict=True)), "offers": len(pool.offers),
         "offers_fraction": len(pool.offers) / r.total}
        for pool in pools(r.offers, r.request.by)
    ]  # fmt: skip
    return _document(r, {"total": r.total, "groups": groups})


def _named_document(r: api.Named) -> Mapping[str, Any]:
    offers = [data_form.offer(o) for o in r.offers]
    return _document(r, {"name": r.name, "accelerators": r.accelerators, "offers": offers})


def _checked_document(r: api.Checked) -> Mapping[str, Any]:
    return _document(r, {"rows": r.rows, "findings": r.findings, "left_out": r.left_out})


def _compared_page(r: api.Compared) -> Page:
    return changes_page(r.before, r.after, [Change(before=a, after=b) for a, b in r.changes], r.fx)


def _compared_document(r: api.Compared) -> Mapping[str, Any]:
    form = data_form.offer
    changes = [
        {"before": form(a) if a else None, "before_reason": None if a else "not listed then",
         "after": form(b) if b else None, "after_reason": None if b else "no longer offered"}
        for a, b in r.changes
    ]  # fmt: skip
    return _document(r, {"before": r.before, "after": r.after, "changes": changes})


def _document(r: Any, result: Mapping[str, Any]) -> Mapping[str, Any]:
    return data_form.document(
        result,
        request=r.request,
        data_version=data_version(),
        as_of=r.as_of,
        warnings=getattr(r, "warnings", ()),
        fx=getattr(r, "fx", None),
    )


_DATA: Mapping[type, tuple[Callable[[Any], Page], Callable[[Any], Mapping[str, Any]]]] = {
    api.Listed: (_listed_page, _listed_document),
    api.Named: (lambda r: name_page(r.name, r.offers, r.accelerators, r.fx), _named_document),
    api.Checked: (lambda r: check_page(r.findings, r.left_out, r.rows), _checked_document),
    api.Compared: (_compared_page, _compared_document),
    api.Refreshed: (
        lambda r: check_page(r.findings, (), r.providers),
        lambda r: _document(r, {"providers": r.providers, "findings": r.findings}),
    ),
}
