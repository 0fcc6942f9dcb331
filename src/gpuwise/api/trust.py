"""The verb about trust: how wrong predictions were on rows that were left out, and on a table of the person's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from statistics import median

from gpuwise.errors import Message, UnknownName
from gpuwise.names import Index
from gpuwise.predict.accuracy import SPLITS, Split, ids, result
from gpuwise.predict.against import Answer, Scored, cells, score
from gpuwise.predict.spelling import Names
from gpuwise.predict.tables import Tables
from gpuwise.predict.tested import Table
from gpuwise.request import AccuracyRequest
from gpuwise.sources.rates import Known, read_claims
from gpuwise.store import package

Tell = Callable[[Message], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """The answer to `accuracy`: the splits that were asked for. fresh: computed just now."""

    request: AccuracyRequest
    as_of: date
    table: Table
    fresh: bool
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The answer to `accuracy --against`. rejects: lines of the file that are no rows, and why."""

    request: AccuracyRequest
    as_of: date
    scored: Scored
    rejects: tuple[Message, ...]
    warnings: tuple[Message, ...] = ()


def accuracy(
    request: AccuracyRequest,
    *,
    today: date,
    tell: Tell,
    splits: Mapping[str, Split] = SPLITS,
    answer: Answer | None = None,
    shipped: Table | None = None,
) -> Proved | Compared:
    """May I trust you? splits, answer and shipped: the registry, the predictor and the table, unless the bundled ones.

    UnknownName for a split or tag that there is not; DataError for a table that cannot be used.
    """
    if request.against is not None:
        return _against(request, today, answer or _predictor())
    table = shipped or package.accuracy()
    if request.fresh:
        table = _computed(request, today, splits, tell)
    elif request.split:
        wanted = _wanted(request.split, table.results)
        table = replace(table, results={name: table.results[name] for name in wanted})
    _refuse_tag(request.by, [tag for found in table.results.values() for tag in found.groups])
    stale = not request.fresh and table.data_version != package.version()
    return Proved(
        request=request,
        as_of=today,
        table=table,
        fresh=request.fresh,
        warnings=(_stale(table),) if stale else (),
    )


def _stale(table: Table) -> Message:
    text = "these figures stand on data {then}, and predictions on data {now}: compute them again with --fresh"
    return Message(text, then=table.data_version, now=package.version())


def _computed(request: AccuracyRequest, today: date, splits: Mapping[str, Split], tell: Tell) -> Table:
    """The splits, scored again on this machine."""
    tables, results = bundled(), {}
    for name in _wanted(request.split or tuple(splits), splits):
        tell(Message("Split {id}: {title} ...", id=name, title=splits[name].about.title))
        results[name] = result(splits[name], tables)
    return Table(data_version=package.version(), computed=today.isoformat(), results=results)


def _wanted(said: Sequence[str], known: Mapping[str, object]) -> tuple[str, ...]:
    """The ids, in any case, in order. UnknownName for one that there is not."""
    wanted = [name.strip().upper() for name in said]
    for name in wanted:
        if name not in known:
            raise UnknownName(
                Message('There is no split "{name}".', name=name),
                Message("There is {names}.", names=", ".join(known) or Message("none yet")),
            )
    return ids(wanted)


def _refuse_tag(tag: str | None, known: Sequence[str]) -> None:
    if tag is None or tag in known:
        return
    near = tuple(get_close_matches(tag, known, 1))
    raise UnknownName(
        Message('No split is parted by "{tag}".', tag=tag),
        Message("There is {names}.", names=", ".join(dict.fromkeys(known)) or Message("no group")),
        near,
    )


def _against(request: AccuracyRequest, today: date, answer: Answer) -> Compared:
    """The person's table, scored."""
    rows = (*package.throughput(), *package.inference())
    known = Known(
        index=Index(package.accelerators().values()),
        accelerators=package.accelerators(),
        names=Names.of(rows),
        counts=package.counts(),
    )
    loaded = read_claims(Path(str(request.against)), known)
    scored = score(loaded.claims, answer, cells(rows))
    _refuse_tag(request.by, [tag for found in scored.scores for tag in found.tags])
    lost = [Message("{line}: not read", line=line) for line in loaded.rejects]
    left = [
        Message("line {line} was given and is not used: {why}", line=o.claim.line, why=o.reason)
        for o in scored.left_out
    ]
    return Compared(
        request=request,
        as_of=today,
        scored=scored,
        rejects=loaded.rejects,
        warnings=(*loaded.notes, *lost, *left),
    )


def _predictor() -> Answer:
    """The predictor that `rank` asks, over the bundled tables."""
    from gpuwise.predict.asked import Asker, Bundle

    return Asker(
        Bundle(
            rows=package.throughput(),
            inference=package.inference(),
            accelerators=package.accelerators(),
            counts=package.counts(),
            assumptions=package.assumptions(),
            model=package.model(),
        )
    )


def bundled(*, model: bool = True) -> Tables:
    """What the splits are computed from. model: the shipped one too (not while another is made)."""
    texts = package.tables()
    return Tables(
        rows=package.throughput(),
        inference=package.inference(),
        model=package.model() if model else None,
        accelerators=package.accelerators(),
        counts=package.counts(),
        assumptions=package.assumptions(),
        memory=package.memory(),
        usd_per_hour=_usd_per_hour(texts["offers"]),
        texts=texts,
    )


def _usd_per_hour(offers: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """The median price on demand of one such card, over all days."""
    prices: dict[str, list[float]] = {}
    for row in offers:
        if row["market"] == "on-demand" and row["price_state"] == "listed" and "|" not in row["accelerator"]:
            each = float(row["price_usd_per_hour"]) / float(row["accelerators"])
            prices.setdefault(row["accelerator"], []).append(each)
    return {card: median(found) for card, found in prices.items()}
