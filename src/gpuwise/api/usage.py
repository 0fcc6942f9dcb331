"""The verb about what happened: records of machines, of pods on a machine, or of a cost export, as a bill."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from gpuwise.cost.monthly import Month
from gpuwise.cost.sharing import Split, split
from gpuwise.cost.usage import UsageBill, usage_bill
from gpuwise.errors import InvalidInput, Message
from gpuwise.request import BillRequest
from gpuwise.request.about import options
from gpuwise.request.usage import OF_COSTS, OF_EVENTS
from gpuwise.sources.costs import Wish, read_costs
from gpuwise.sources.moments import in_utc, zone
from gpuwise.sources.records import Kind, read_events, read_shared, recognised


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """The bill of machines from their events. stated: somebody said up to when; else it is up to the last event."""

    request: BillRequest
    as_of: date
    bill: UsageBill
    stated: bool
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The prices of machines, shared among their pods."""

    request: BillRequest
    as_of: date
    splits: tuple[Split, ...]
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Monthly:
    """A cost export by month, by one kind of cost. column, dated: the columns of the cost and of its day, as the file
    calls them. others: kind -> its total a currency, which stands apart. rows: of the files; rejects: first reasons."""

    request: BillRequest
    as_of: date
    kind: str
    column: str
    dated: str
    months: tuple[Month, ...]
    totals: tuple[tuple[str, float], ...]
    others: tuple[tuple[str, str, float], ...]
    rows: int
    rejects: tuple[Message, ...]
    warnings: tuple[Message, ...] = ()


_OPTIONS: dict[Kind, Collection[str]] = {"events": OF_EVENTS, "pods": ("time_zone",), "costs": OF_COSTS}
_NAMES: dict[Kind, Message] = {
    "events": Message("events of machines"),
    "pods": Message("a machine with its pods"),
    "costs": Message("a cost export"),
}


def bill(request: BillRequest, *, today: date) -> Billed | Shared | Monthly:
    """What did it cost? DataError for records that cannot be used, InvalidInput for what must be said first."""
    paths = [Path(name) for name in request.files]
    _refuse_twice(paths)
    kinds: dict[Kind, Path] = {}
    for path in paths:
        kinds.setdefault(recognised(path)[0], path)
    kind = _one_kind(kinds)
    _refuse_unused(request, kind)
    if kind == "costs":
        return _monthly(request, paths, today)
    return _billed(request, paths, today) if kind == "events" else _shared(request, paths, today)


def _refuse_twice(paths: Sequence[Path]) -> None:
    places = [path.resolve() for path in paths]
    for at, path in enumerate(paths):
        if places[at] in places[:at]:
            raise InvalidInput(
                Message("{file} is named twice: its records would count double.", file=path.name),
                Message("Name it once."),
            )


def _one_kind(kinds: dict[Kind, Path]) -> Kind:
    """The same hours may stand in events and in the export of their cost: both together would count them twice."""
    first, *others = kinds
    if others:
        values = {"one": kinds[first].name, "first": _NAMES[first], "other": kinds[others[0]].name}
        raise InvalidInput(
            Message("{one} holds {first}, and {other} holds {second}: the same cost may be in both.",
                    **values, second=_NAMES[others[0]]),
            Message("Ask about one kind at a time."),
        )  # fmt: skip
    return first


def _refuse_unused(request: BillRequest, kind: Kind) -> None:
    for option in options(BillRequest).values():
        said = not option.positional and getattr(request, option.field) is not None
        if said and option.field not in _OPTIONS[kind]:
            raise InvalidInput(
                Message("{option} has no meaning for {kind}.", option=option.spelled, kind=_NAMES[kind]),
                Message("Leave it out."),
            )


# ---- events ----


def _billed(request: BillRequest, paths: Sequence[Path], today: date) -> Billed:
    place = zone(request.time_zone)
    events = read_events(paths, place)
    said = in_utc(request.until, place) if request.until is not None else events.report
    moments = [event.when for meter in events.meters for event in meter.events]
    made = usage_bill(events.meters, said or max(moments), events.promises)
    early = (
        (Message("every event is later than the moment up to which is billed"),) if made.until < min(moments) else ()
    )
    return Billed(
        request=request,
        as_of=today,
        bill=made,
        stated=said is not None,
        warnings=(*early, *events.notes, *made.notes),
    )


# ---- pods ----


def _shared(request: BillRequest, paths: Sequence[Path], today: date) -> Shared:
    found = read_shared(paths, zone(request.time_zone))
    splits = tuple(split(node, pods) for node, pods in found.nodes)
    scaled = tuple(
        Message("{node}: more {resource} are requested than there are; the shares were scaled to fit",
                node=one.node.name, resource=", ".join(one.scaled))
        for one in splits if one.scaled
    )  # fmt: skip
    unsaid = tuple(
        Message("{node}: pods that state no memory are taken to use as large a share of it as of the vCPUs",
                node=node.name)
        for node, pods in found.nodes if node.memory_gib is not None and any(pod.memory_gib is None for pod in pods)
    )  # fmt: skip
    return Shared(request=request, as_of=today, splits=splits, warnings=(*scaled, *unsaid))


# ---- cost exports ----


def _monthly(request: BillRequest, paths: Sequence[Path], today: date) -> Monthly:
    wish = Wish(kind=request.kind, column=request.column, date_column=request.date_column, currency=request.currency)
    costs = read_costs(paths, wish)
    kinds = [kind for kind in costs.ledger.kinds if kind != costs.kind]
    return Monthly(
        request=request,
        as_of=today,
        kind=costs.kind,
        column=costs.column,
        dated=costs.dated,
        months=costs.ledger.months(costs.kind),
        totals=tuple(costs.ledger.totals(costs.kind)),
        others=tuple((kind, *total) for kind in kinds for total in costs.ledger.totals(kind)),
        rows=costs.rows,
        rejects=tuple(costs.rejects),
        warnings=tuple(_doubts(costs.missing.get(costs.kind, 0), costs.rejected, costs.rows, costs.rejects)),
    )


def _doubts(missing: int, rejected: int, rows: int, rejects: Sequence[Message]) -> list[Message]:
    found = []
    if rejected:
        found.append(
            Message(
                "{n} of {rows} rows could not be read, and the sums are without them; the first: {why}",
                n=rejected,
                rows=rows,
                why=rejects[0],
            )
        )
    if missing:
        found.append(Message("{n} of {rows} rows have no figure of this kind", n=missing, rows=rows))
    return found
