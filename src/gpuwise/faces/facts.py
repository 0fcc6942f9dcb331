"""The verb about facts, as pages and documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from gpuwise.api import facts as api
from gpuwise.faces.answer import NOTHING, Answer, document
from gpuwise.locale import _, number, with_colon, with_semicolons
from gpuwise.render import data as forms
from gpuwise.request import DataRequest
from gpuwise.view.catalogue import (
    Change,
    changes_page,
    check_page,
    name_page,
    offers_page,
    pools,
    pools_page,
    refreshed_page,
)
from gpuwise.view.page import Page, Text
from gpuwise.view.vocabulary import rule


def data(request: DataRequest, today: date) -> Answer:
    result = api.data(request, today=today)
    pages, documents = _DATA[type(result)]
    nothing = getattr(result, "findings", ()) or getattr(result, "providers", True) == {}
    return Answer(result=result, exit_code=NOTHING if nothing else 0, pages=pages, documents=documents)


def _listed_page(r: api.Listed) -> Page:
    if r.request.by:
        page = pools_page(r.offers, r.request.by, r.fx, r.request.limit)
    else:
        page = offers_page(r.offers, r.total, r.fx)
    return replace(page, blocks=(*page.blocks, *_hidden(r.hidden)))


def _hidden(counts: Mapping[str, int]) -> Iterator[Text]:
    """How many offers the list leaves out, and why."""
    if counts:
        why = with_semicolons(
            with_colon(rule(name), number(f"{count:,}")) for name, count in sorted(counts.items(), key=lambda c: -c[1])
        )
        text = _("{total} more offers are hidden: {why}.").format(total=number(f"{sum(counts.values()):,}"), why=why)
        yield Text(text=text, role="note")


def _listed_document(r: api.Listed) -> Mapping[str, Any]:
    aside = {"hidden": r.hidden, "rejects": r.rejects}
    if not r.request.by:
        return document(r, {"total": r.total, "offers": [forms.offer(o) for o in r.offers], **aside})
    groups = [
        {**dict(zip(r.request.by, pool.names, strict=True)), "offers": len(pool.offers),
         "offers_fraction": len(pool.offers) / r.total}
        for pool in pools(r.offers, r.request.by)
    ]  # fmt: skip
    return document(r, {"total": r.total, "groups": groups, **aside})


def _named_document(r: api.Named) -> Mapping[str, Any]:
    offers = [forms.offer(o) for o in r.offers]
    return document(
        r,
        {
            "name": r.name,
            "accelerators": r.accelerators,
            "platform": forms.platform(r.provider),
            "offers": offers,
            "history": r.history,
        },
    )


def _checked_document(r: api.Checked) -> Mapping[str, Any]:
    return document(r, {"rows": r.rows, "findings": r.findings, "left_out": r.left_out})


def _compared_page(r: api.Compared) -> Page:
    return changes_page(r.before, r.after, [Change(before=a, after=b) for a, b in r.changes], r.fx, r.request.limit)


def _compared_document(r: api.Compared) -> Mapping[str, Any]:
    form = forms.offer
    changes = [
        {"before": form(a) if a else None, "before_reason": None if a else "not listed then",
         "after": form(b) if b else None, "after_reason": None if b else "no longer offered"}
        for a, b in r.changes
    ]  # fmt: skip
    return document(r, {"before": r.before, "after": r.after, "changes": changes})


_DATA: Mapping[type, tuple[Callable[[Any], Page], Callable[[Any], Mapping[str, Any]]]] = {
    api.Listed: (_listed_page, _listed_document),
    api.Named: (lambda r: name_page(r.name, r.offers, r.accelerators, r.fx, r.provider, r.history), _named_document),
    api.Checked: (lambda r: check_page(r.findings, r.left_out, r.rows), _checked_document),
    api.Compared: (_compared_page, _compared_document),
    api.Refreshed: (
        lambda r: refreshed_page(r.providers, r.rejects),
        lambda r: document(r, {"providers": r.providers, "rejects": r.rejects}),
    ),
}
