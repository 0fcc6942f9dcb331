"""The verb about facts: list them, show one, check them, compare two days or files, fetch today's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from gpuwise.api.world import as_offered, filter_context, rate_notes, read_offers, shown_in, unknown
from gpuwise.catalogue import Catalogue, as_date, as_days
from gpuwise.errors import InvalidInput, Message
from gpuwise.integrity import Finding, check, check_hashes
from gpuwise.model import Accelerator, Fx, Offer
from gpuwise.names import Index, resolve
from gpuwise.offer import Provider
from gpuwise.plugins import source
from gpuwise.rank import listed
from gpuwise.rank.history import Quarter, price_history
from gpuwise.request import DataRequest
from gpuwise.sources import Loaded
from gpuwise.sources import file as files
from gpuwise.sources.gate import objections
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
    """`data list`: the offers that pass the filters, cut to the limit unless they are counted `--by` something.

    hidden: rule -> offers that it hides. rejects: rows of the person's files that could not be read, and why.
    """

    offers: tuple[Offer, ...]
    total: int
    hidden: Mapping[str, int]
    rejects: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(_Answer):
    """`data show`: the offers of that name known on the day, newest first, and the accelerators it stands for.

    history: what an hour of the accelerator cost, where the name is one. provider: what is known of the platform, where
    the name is a provider's.
    """

    name: str
    offers: tuple[Offer, ...]
    accelerators: tuple[Accelerator, ...]
    history: tuple[Quarter, ...] = ()
    provider: Provider | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(_Answer):
    """`data check`: objections to the bundle and to the person's offers, what was left out of the bundle and why, and
    how many rows each table has."""

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
    context, remarks = filter_context(request, offers, today)
    passed = listed(offers, as_offered(request, offers), context, history="date" in request.by)
    rows = np.flatnonzero(passed.alive)
    order = rows[np.lexsort((np.nan_to_num(offers.price_usd_per_hour[rows], nan=np.inf), offers.provider.codes[rows]))]
    shown = order if request.by else order[: request.limit]
    return Listed(
        **_common(request, context.as_of, (*notes, *remarks)),
        offers=tuple(offers.offer(int(row)) for row in shown),
        total=len(rows),
        hidden=passed.counts(),
        rejects=offers.rejects,
    )


def _show(request: DataRequest, today: date) -> Named:
    (name,) = request.names
    as_of = request.as_of or today
    every, notes = read_offers(request, today)
    offers = every.take(every.observed <= as_days(as_of))
    wanted = name.casefold()
    named = _rows_named(offers, wanted)
    cards = resolve(Index(package.accelerators().values()), name).variants
    gpus = tuple(card for card in cards if card.launched is None or card.launched <= as_of)
    if not named and not gpus:
        _refuse_later(name, every, cards, as_of)
        known = [*offers.instance.values, *offers.provider.values, *package.accelerators()]
        raise unknown(Message("instance, GPU, offer or provider"), name, known)
    named, uncounted = _counted(offers, named)
    found = sorted((offers.offer(row) for row in named), key=lambda o: (o.observed or date.min, o.id), reverse=True)
    held = {
        i: package.accelerators()[i] for o in found[:1] for i in o.accelerator.split("|") if o.accelerator != "unknown"
    }
    return Named(
        **_common(request, as_of, (*notes, *uncounted)),
        name=name,
        offers=tuple(found[: request.limit]),
        accelerators=gpus or tuple(held.values()),
        history=price_history(offers, [card.id for card in gpus]) if gpus else (),
        provider=package.providers().get(wanted),
    )


def _counted(offers: Catalogue, rows: Sequence[int]) -> tuple[list[int], tuple[Message, ...]]:
    """Those of the rows that say how many GPUs they are about, and a note on the others."""
    counted = [row for row in rows if offers.accelerators[row] >= 1]
    if len(counted) == len(rows):
        return counted, ()
    values = {"rows": len(rows) - len(counted)}
    return counted, (Message("{rows} offers of that name do not say how many GPUs they have", **values),)


def _refuse_later(name: str, offers: Catalogue, cards: Sequence[Accelerator], as_of: date) -> None:
    """InvalidInput where the name is known, but was not yet on that day."""
    days = [as_date(int(offers.observed[row])) for row in _rows_named(offers, name.casefold())]
    if first := min((day for day in (*days, *(card.launched for card in cards)) if day is not None), default=None):
        raise InvalidInput(
            Message("{name} was not known on {as_of}, but from {first} on.", name=name, as_of=as_of, first=first),
            Message("Leave --as-of out, or write a later day."),
        )


def _rows_named(offers: Catalogue, wanted: str) -> list[int]:
    """Rows whose instance or provider goes by that name, or whose id it is."""
    hit = np.zeros(len(offers), bool)
    for column in (offers.instance, offers.provider):
        hit |= column.lookup([v.casefold() == wanted for v in column.values], False, np.bool_)
    rows = [int(row) for row in np.flatnonzero(hit)]
    return rows or [row for row in range(len(offers)) if offers.offer_id(row).casefold() == wanted]


def _check(request: DataRequest, today: date) -> Checked:
    findings, left, rows = list[Finding](), list[Finding](), dict[str, int]()
    if not request.only_offers:
        tables = package.tables()
        findings = [*check_hashes(package.description(), package.contents()), *check(tables, today)]
        left = [
            Finding(table=r["table"], row=r["row_key"], rule=r["rule"], message=Message("{why}", why=r["reason"]))
            for r in package.left_out()
        ]
        rows = {name: len(table) for name, table in tables.items()}
    own = {Path(path).name: files.offers(Path(path), package.facts()) for path in request.offers}
    for name, loaded in own.items():
        findings += _own_findings(name, loaded, today)
        rows[name] = len(loaded.catalogue)
    notes = [note for loaded in own.values() for note in loaded.notes]
    return Checked(**_common(request, today, notes), findings=tuple(findings), left_out=tuple(left), rows=rows)


def _own_findings(name: str, loaded: Loaded, today: date) -> Iterator[Finding]:
    """Rows of a person's list that could not be read, and objections to the others, each with its line."""
    for reject in loaded.catalogue.rejects:
        said = reject.values
        yield Finding(table=name, row=_line(said.get("line")), rule="refused_row", message=_reason(reject))
    for row, finding in sorted(objections(loaded.catalogue, today).items(), key=lambda item: item[0]):
        line = None if loaded.lines is None else loaded.lines[row]
        yield replace(finding, table=name, row=_line(line))


def _line(number: object) -> str:
    return "" if number is None else f"line {number}"


def _reason(reject: Message) -> Message:
    """Why, without the file and the line, which stand beside it."""
    reason = reject.values.get("reason")
    return reason if isinstance(reason, Message) else reject


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
        rows = offers.accelerators >= 1
    else:
        offers = package.offers()
        then = as_offered(replace(request, as_of=day), offers)
        context, _ = filter_context(then, offers, today)
        rows = listed(offers, then, context).alive
    found = (offers.offer(int(row)) for row in np.flatnonzero(rows))
    return {(o.provider, o.instance, o.region, o.market, o.accelerator, o.accelerators, o.term_h): o for o in found}


def _refresh(request: DataRequest, today: date) -> Refreshed:
    loaded = source("gpuhunt").load(package.facts(), today)
    offers = loaded.catalogue
    counts = Counter(offers.provider[row] or "unknown" for row in range(len(offers)))
    return Refreshed(**_common(request, today, loaded.notes), providers=counts, rejects=offers.rejects)


def _common(request: DataRequest, as_of: date, warnings: Sequence[Message] = ()) -> dict[str, Any]:
    fx = shown_in(request, as_of)
    return {"request": request, "as_of": as_of, "fx": fx, "warnings": (*warnings, *rate_notes(fx, as_of))}
