"""The verb about facts: list them, show one, check them, compare two days or files, fetch today's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from gpuwise.api.world import currency, filter_context, read_offers, unknown
from gpuwise.catalogue import Catalogue
from gpuwise.errors import Message
from gpuwise.integrity import Finding, check, check_hashes
from gpuwise.model import Accelerator, Fx, Offer
from gpuwise.names import Index, resolve
from gpuwise.plugins import source
from gpuwise.rank import listed
from gpuwise.request import DataRequest
from gpuwise.sources import file as files
from gpuwise.store import package


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What all answers about facts share."""

    request: DataRequest
    as_of: date
    fx: Fx | None
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(_Answer):
    """`data list`: the offers that pass the filters, cut to the limit unless they are counted `--by` something."""

    offers: tuple[Offer, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(_Answer):
    """`data show`: the offers of that name, newest first, and the accelerators it stands for."""

    name: str
    offers: tuple[Offer, ...]
    accelerators: tuple[Accelerator, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(_Answer):
    """`data check`: objections, what was left out of the bundle and why, and how many rows each table has."""

    findings: tuple[Finding, ...]
    left_out: tuple[Finding, ...]
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(_Answer):
    """`data diff`: offers whose price changed, that are new (no first) or are no longer offered (no second)."""

    before: str
    after: str
    changes: tuple[tuple[Offer | None, Offer | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed(_Answer):
    """`data refresh`: live offers a provider, and those that the rules of `integrity` keep out of use, with why."""

    providers: Mapping[str, int]
    rejects: tuple[Message, ...]


def data(request: DataRequest, *, today: date) -> Listed | Named | Checked | Compared | Refreshed:
    """Answer one question about the facts. UnknownName for a name that nothing bears."""
    verbs: dict[str, Callable[[DataRequest, date], Listed | Named | Checked | Compared | Refreshed]] = {
        "list": _list, "show": _show, "check": _check, "diff": _diff, "refresh": _refresh,
    }  # fmt: skip
    return verbs[request.action](request, today)


def _list(request: DataRequest, today: date) -> Listed:
    offers, notes = read_offers(request, today)
    context, remarks = filter_context(request, today)
    rows = np.flatnonzero(listed(offers, request, context, history="date" in request.by))
    order = rows[np.lexsort((np.nan_to_num(offers.price_usd_per_hour[rows], nan=np.inf), offers.provider.codes[rows]))]
    shown = order if request.by else order[: request.limit]
    return Listed(
        **_common(request, context.as_of, (*notes, *remarks)),
        offers=tuple(offers.offer(int(row)) for row in shown),
        total=len(rows),
    )


def _show(request: DataRequest, today: date) -> Named:
    (name,) = request.names
    offers, notes = read_offers(request, today)
    wanted = name.casefold()
    named = _rows_named(offers, wanted)
    gpus = resolve(Index(package.accelerators().values()), name).variants
    if not named and not gpus:
        known = [*offers.instance.values, *offers.provider.values, *package.accelerators()]
        raise unknown("instance, GPU, offer or provider", name, known)
    found = sorted((offers.offer(row) for row in named), key=lambda o: (o.observed or date.min, o.id), reverse=True)
    held = {
        i: package.accelerators()[i] for o in found[:1] for i in o.accelerator.split("|") if o.accelerator != "unknown"
    }
    return Named(
        **_common(request, request.as_of or today, notes),
        name=name,
        offers=tuple(found[: request.limit]),
        accelerators=gpus or tuple(held.values()),
    )


def _rows_named(offers: Catalogue, wanted: str) -> list[int]:
    """Rows whose instance or provider goes by that name, or whose id it is."""
    hit = np.zeros(len(offers), bool)
    for column in (offers.instance, offers.provider):
        hit |= column.lookup([v.casefold() == wanted for v in column.values], False, np.bool_)
    rows = [int(row) for row in np.flatnonzero(hit)]
    return rows or [row for row in range(len(offers)) if offers.offer_id(row).casefold() == wanted]


def _check(request: DataRequest, today: date) -> Checked:
    tables, contents = package.tables(), package.contents()
    findings = [*check_hashes(package.description(), contents), *check(tables, today)]
    left = [
        Finding(table=row["table"], row=row["row_key"], rule=row["rule"], message=Message("{why}", why=row["reason"]))
        for row in package.left_out()
    ]
    rows = {name: len(table) for name, table in tables.items()}
    return Checked(**_common(request, today), findings=tuple(findings), left_out=tuple(left), rows=rows)


def _diff(request: DataRequest, today: date) -> Compared:
    before, after = (_side(text, request, today) for text in request.names)
    keys = dict.fromkeys([*before, *after])
    pairs = ((before.get(key), after.get(key)) for key in keys)
    changes = [(a, b) for a, b in pairs if a is None or b is None or a.price_usd_per_hour != b.price_usd_per_hour]
    first, second = request.names
    return Compared(**_common(request, today), before=first, after=second, changes=tuple(changes))


def _side(text: str, request: DataRequest, today: date) -> dict[tuple[object, ...], Offer]:
    """The offers of a file, or those that were current on a day of the bundled history, by what names an offer."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        offers = files.offers(Path(text), package.facts()).catalogue
        rows = np.ones(len(offers), bool)
    else:
        offers = package.offers()
        context, _ = filter_context(replace(request, as_of=day), today)
        rows = listed(offers, replace(request, as_of=day), context)
    found = (offers.offer(int(row)) for row in np.flatnonzero(rows))
    return {(o.provider, o.instance, o.region, o.market, o.accelerator, o.accelerators, o.term_h): o for o in found}


def _refresh(request: DataRequest, today: date) -> Refreshed:
    loaded = source("gpuhunt").load(package.facts(), today)
    offers = loaded.catalogue
    counts = Counter(offers.provider[row] or "unknown" for row in range(len(offers)))
    return Refreshed(**_common(request, today, loaded.notes), providers=counts, rejects=offers.rejects)


def _common(request: DataRequest, as_of: date, warnings: Sequence[Message] = ()) -> dict[str, Any]:
    return {"request": request, "as_of": as_of, "fx": currency(request.currency), "warnings": tuple(warnings)}
