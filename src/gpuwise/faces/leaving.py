"""The verb about leaving, as page and document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from gpuwise.api import leaving as api
from gpuwise.api.committed import Committed
from gpuwise.faces.answer import Answer, document
from gpuwise.faces.moving import data_move
from gpuwise.faces.owning import figure, spread
from gpuwise.locale import _, words
from gpuwise.own.checklist import Checklist, Item
from gpuwise.own.leaving import When
from gpuwise.own.sensitivity import Weights
from gpuwise.request import ExitRequest
from gpuwise.view.checklist import listed_page, listed_table
from gpuwise.view.left import dates_table, left_page
from gpuwise.view.summary import left_summary

FIRED = 10
"""Exit code where the date has come, for those who watch."""


def leave(request: ExitRequest, today: date) -> Answer:
    result = api.exit_(request, today=today)
    if isinstance(result, api.Listed):
        return Answer(result=result, exit_code=0, pages=listed_page, documents=_listed, tables=listed_table)
    code = FIRED if result.request.watch and result.fired else 0
    return Answer(
        result=result, exit_code=code, pages=left_page, documents=_left, tables=dates_table, summaries=left_summary
    )


def _listed(r: api.Listed) -> Mapping[str, Any]:
    return document(r, {"checklist": _checklist(r.checklist)})


def _left(r: api.Left) -> Mapping[str, Any]:
    return document(
        r,
        {
            "advice": r.advice,
            "fired": r.fired,
            "stage": r.assembled.staged.stage,
            "stage_rule": words(r.assembled.staged.rule),
            **_of_the_bill(r),
            **_dates(r),
            **_money(r),
            **_moving(r),
            "data_move": None if r.moved is None else data_move(r.moved),
            "checklist": _checklist(r.checklist),
            "lead_times": r.assembled.leads,
            "figures": {name: figure(one) for name, one in r.assembled.case.figures.by_name.items()},
            "not_contained": [words(each) for each in r.unknown],
        },
    )  # fmt: skip


def _dates(r: api.Left) -> Mapping[str, Any]:
    """Months as 2027-03; never: not within the horizon."""
    e = r.exit
    return {
        "horizon_months": r.assembled.case.months,
        "site": r.site,
        "robust": _when(r, e.robust),
        "probable": _when(r, e.probable),
        "month": _month(r, e.month),
        "p10_month": _month(r, e.p10_month),
        "p50_month": _month(r, e.p50_month),
        "p90_month": _month(r, e.p90_month),
        "order_month": _month(r, e.order_month),
        "p_never": e.p_never,
        "commitments": [
            {"name": one.name, "usd_per_month": one.usd_per_month, "end_month": one.end_month,
             "p_before": e.p_before[one.name]}
            for one in r.promises
        ],
        "commitments_of_the_bill": [_commitment(one) for one in r.committed],
    }  # fmt: skip


def _commitment(one: Committed) -> Mapping[str, Any]:
    found = one.commitment
    return {
        "name": found.id,
        "provider": found.provider,
        "type": found.type,
        "used_usd": found.used,
        "unused_usd": found.unused,
        "utilisation_fraction": found.utilisation_fraction,
        "utilisation_fraction_reason": _("the bill does not say whether it was used"),
        "gpu_fraction": found.gpu_fraction,
        "gpu_fraction_reason": _("nothing used it"),
        "bought_usd": found.bought,
        "end": one.end,
        "end_reason": _("the bill does not say until when"),
    }


def _money(r: api.Left) -> Mapping[str, Any]:
    """What was paid, what leaving costs and saves."""
    e = r.exit
    return {
        "servers": e.servers,
        "gpus": e.gpus,
        "premium_usd": e.premium_usd,
        "barrier_usd": e.barrier_usd,
        "meter": [
            {"month": r.month(number - e.past), "premium_usd": float(usd)} for number, usd in enumerate(e.meter_usd)
        ],
        "utilisation_fraction": e.utilisation_fraction,
        "break_even_fraction": e.break_even_fraction,
        "value_usd": spread(e.value_usd),
        "p_pays": e.p_pays,
        "wait_usd": {str(months): spread(lost) for months, lost in e.wait_usd.items()},
        "payback_months": r.payback_months,
        "weights": _weights(e.weights),
    }  # fmt: skip


def _moving(r: api.Left) -> Mapping[str, Any]:
    if r.moving_reason is not None:
        return {"moving_usd": None, "moving_usd_reason": words(r.moving_reason)}
    return {"moving_usd": r.moving_usd}


def _of_the_bill(r: api.Left) -> Mapping[str, Any]:
    used = r.used
    months = zip(used.months, used.history.gpu_h, used.history.effective_usd, strict=True)
    return {
        "accelerator": used.accelerator.id,
        "demand_gpu_h_per_month": used.wanted.level.value,
        "growth_seen_fraction_per_year": used.seen.growth_fraction_per_year,
        "cloud_usd_per_gpu_hour": used.paid.value,
        "months": [
            {"month": month, "gpu_h": float(gpu_h), "effective_usd": float(usd)} for month, gpu_h, usd in months
        ],
        "rows": r.bill.rows,
        "rejected": r.bill.rejected,
    }


def _month(r: api.Left, number: int | None) -> str:
    return r.month(number) or "never"


def _when(r: api.Left, when: When) -> Mapping[str, Any]:
    never = when.month is None
    return {"month": _month(r, when.month), **({} if never else {"servers": when.servers})}


def _weights(found: Weights) -> Mapping[str, Any]:
    return {"saving_usd": found.saving_usd, "figures": found.figures}


def _checklist(found: Checklist) -> Mapping[str, Any]:
    return {
        "lock_in_fraction": found.lock_in_fraction,
        "unknown_fraction": found.unknown_fraction,
        "by_spend": found.by_spend,
        "services": [_item(item) for item in found.items],
    }


def _item(item: Item) -> Mapping[str, Any]:
    return {
        "provider": item.use.provider or (item.service.provider if item.service else ""),
        "name": item.use.name,
        "usd": item.use.usd,
        "fraction": item.fraction,
        "service": item.service,
        **({} if item.missing is None else {"service_reason": words(item.missing), "nearest": list(item.nearest)}),
    }
