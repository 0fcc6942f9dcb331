"""The verb about owning, as page and document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from gpuwise.api import owning as api
from gpuwise.api.carbon import Energy
from gpuwise.errors import Message
from gpuwise.faces.answer import Answer, document
from gpuwise.faces.moving import data_move
from gpuwise.locale import _, words
from gpuwise.model import Assumption
from gpuwise.own.decide import Outcome, Range
from gpuwise.own.market import BreakEven
from gpuwise.request import OwnRequest
from gpuwise.view.owned import options_table, owned_page
from gpuwise.view.summary import owned_summary


def own(request: OwnRequest, today: date) -> Answer:
    result = api.own(request, today=today)
    return Answer(
        result=result, exit_code=0, pages=owned_page, documents=_document, tables=options_table, summaries=owned_summary
    )


def _document(r: api.Owned) -> Mapping[str, Any]:
    found, decision = r.assembled, r.decision
    return document(
        r,
        {
            "advice": r.advice,
            "stage": r.staged.stage,
            "stage_rule": words(r.staged.rule),
            "accelerator": found.accelerator.id,
            "demand_gpu_h_per_month": found.wanted.level.value,
            "gpu_h_per_run": found.wanted.gpu_h_per_run,
            "horizon_months": found.case.months,
            "best": decision.best,
            "rented": decision.rented,
            "owned": decision.owned,
            "p_own": decision.p_own,
            "p_own_error": decision.error_fraction,
            "options": [_outcome(one, r.work_gpu_h) for one in decision.outcomes.values()],
            "refused": {name: words(why) for name, why in found.case.refused.items()},
            "fleets": r.fleets,
            "years": r.years,
            "first_server": r.first,
            "lives": r.lives,
            "investment": r.investment and _investment(r),
            "break_evens": [_break_even(one) for one in r.break_evens],
            "weights": None if r.weights is None else r.weights.figures,
            "saving_usd": None if r.weights is None else r.weights.saving_usd,
            "energy": [_energy(one) for one in r.energy],
            **_teams(r),
            "data_move": None if r.move is None else data_move(r.move),
            "lead_times": found.leads,
            "figures": {name: figure(one) for name, one in found.case.figures.by_name.items()},
            "not_contained": [words(each) for each in found.missing],
        },
    )


def _teams(r: api.Owned) -> Mapping[str, Any]:
    if r.teams is None:
        return {"teams": None, "teams_reason": _("not a record of several teams")}
    return {"teams": None, "teams_reason": words(r.teams)} if isinstance(r.teams, Message) else {"teams": r.teams}


def figure(one: Assumption) -> Mapping[str, Any]:
    return {"value": one.value, "low": one.low, "high": one.high, "unit": one.unit, "source": one.source,
            "observed": one.observed, "note": one.note}  # fmt: skip


def spread(one: Range | None) -> Mapping[str, float] | None:
    return None if one is None else {"mean": one.mean, "p10": one.p10, "p50": one.p50, "p90": one.p90}


def _investment(r: api.Owned) -> Mapping[str, Any]:
    """The middle case alone: `advice` is over chance, and may say open where this says buy."""
    one = r.investment
    assert one is not None
    return {"case": "middle", "buys": r.decision.owned, "instead_of": r.decision.rented, "answer": one.answer,
            "total_usd": one.total_usd, "npv_usd": one.npv_usd, "rate_fraction": one.yearly_rate_fraction,
            "break_even_rates": list(one.break_even_rates)}  # fmt: skip


def _outcome(one: Outcome, work_gpu_h: Mapping[str, float]) -> Mapping[str, Any]:
    return {
        "option": one.option,
        "gpus_owned": one.gpus,
        "servers": dict(one.count.servers),
        "gpus_rented": {way: [float(n) for n in gpus] for way, gpus in one.count.gpus.items()},
        "spot": one.count.spot,
        "present_usd": spread(one.present_usd),
        "total_usd": spread(one.total_usd),
        "usd_per_gpu_hour": spread(one.usd_per_gpu_hour),
        **{f"usd_per_{work}": spread(one.usd_per_gpu_hour * hours) for work, hours in work_gpu_h.items()},
        "capex_usd": one.capex_usd,
        "owned_fraction": one.owned_fraction,
        "busy_fraction": one.busy_fraction,
        "p_below_cloud": one.p_below_cloud,
        "p_cheapest": one.p_cheapest,
        "payback_months": one.payback_months,
        "path_usd": [float(paid) for paid in one.path_usd],
    }


def _energy(one: Energy) -> Mapping[str, Any]:
    return {"option": one.option, "rented_rest": one.rest, "energy_kwh": one.kwh, "co2e_kg": one.kg_co2e,
            "origin": words(one.origin)}  # fmt: skip


def _break_even(one: BreakEven) -> Mapping[str, Any]:
    """Owning is cheaper between these shares of the time in use; both null: at no use. offer null: the stated price."""
    offer = one.offer
    return {
        "way": one.way,
        "provider": offer.provider if offer else None,
        "offer": offer.id if offer else None,
        "observed": offer.observed if offer else None,
        "usd_per_gpu_hour": one.usd_per_gpu_hour,
        "useful_usd_per_gpu_hour": one.useful_usd_per_gpu_hour,
        "owning_pays_from_fraction": one.from_fraction,
        "owning_pays_upto_fraction": one.upto_fraction,
    }
