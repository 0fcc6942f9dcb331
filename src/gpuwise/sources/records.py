"""Records of what happened, told apart by their content: events of machines, machines with their pods, cost exports.

Events and pods are read whole and strictly: a line that were left out would make the bill wrong without a word. Cost
exports are read row by row (`sources.costs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar
from zoneinfo import ZoneInfo

import numpy as np

from gpuwise.cost.sharing import Node, Pod
from gpuwise.cost.states import Event
from gpuwise.cost.usage import BY_THE_SECOND, Meter, Promise
from gpuwise.errors import DataError, InvalidInput, Message
from gpuwise.sources.costs import csv_rows, first_bytes
from gpuwise.sources.document import Document, Keys, build, only, read_json, read_toml, tables
from gpuwise.sources.moments import moment
from gpuwise.sources.offered import nearest
from gpuwise.store.delimited import read, to_utf8
from gpuwise.store.sheet import Sheet
from gpuwise.store.tables import read_bytes
from gpuwise.units import Fraction, Gib, Seconds

T = TypeVar("T")
Kind = Literal["events", "pods", "costs"]
Form = Literal["toml", "json", "csv"]
_OF_EVENTS, _OF_PODS = ("machine", "commitment", "report"), ("node", "pod")
_ALIASES = {
    "name": "machine", "instance": "machine", "instance_id": "machine", "cluster": "machine", "vm": "machine",
    "timestamp": "time", "at": "time", "when": "time", "status": "state", "event": "state", "price": "price_per_hour",
}  # fmt: skip
_NEEDED = ("machine", "time", "state")
_TERMS = ("price_per_hour", "disk_price_per_month", "nodes", "billing_step_s", "billing_minimum_s")
_ZERO_PRICES = frozenset(("price_per_hour", "disk_price_per_month", "billing_minimum_s"))
_TOML = re.compile(r"(?:\s*#.*\n|\s*\n)*\s*(?:\[\[?\s*[\w\"'.-]+\s*\]\]?\s*(?:#.*)?$|[\w\"'.-]+\s*=)", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """What was seen of machines. report: the moment that the files ask about. notes: what was assumed."""

    meters: tuple[Meter, ...]
    promises: tuple[Promise, ...] = ()
    report: datetime | None = None
    notes: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Machines, each with the pods that share it."""

    nodes: tuple[tuple[Node, tuple[Pod, ...]], ...]


def recognised(path: Path) -> tuple[Kind, Form]:
    """What a file records, and how it is written. DataError for a file that cannot be read or holds nothing."""
    head = first_bytes(path)
    form = _form(head)
    if form != "csv":
        return ("pods" if _of_pods(_document(path, form)) else "events"), form
    with closing(csv_rows(path)) as rows:
        _, header = next(rows, (0, []))
    if not header:
        raise DataError(
            Message("{file} is empty.", file=path.name), Message("Give a file with records."), file=path.name
        )
    titles = {_proper(title) for title in header}
    return ("events" if titles >= {"machine", "state"} else "costs"), form


def _form(head: bytes) -> Form:
    if head.startswith((b"\x1f\x8b", b"PAR1", b"PK")):
        return "csv"
    try:
        text = to_utf8(head[:4096].rpartition(b"\n")[0] or head, "")[0].decode().lstrip("\ufeff").lstrip()
    except DataError:
        return "csv"
    if _TOML.match(text):
        return "toml"
    return "json" if text.startswith(("{", "[")) else "csv"


def _document(path: Path, form: Form) -> Document:
    return read_toml(path) if form == "toml" else read_json(path)


def _of_pods(document: Document) -> bool:
    return isinstance(document.data, dict) and any(key in document.data for key in _OF_PODS)


# ---- events of machines ----


def read_events(paths: Sequence[Path], place: ZoneInfo | None) -> Events:
    """The machines of all files; a machine in several of them has the events of all, if its prices are the same."""
    read_in = [_events(path, place) for path in paths]
    reports = [one.report for one in read_in if one.report is not None]
    promises = tuple(promise for one in read_in for promise in one.promises)
    meters = tuple(_merged([meter for one in read_in for meter in one.meters]))
    _refuse_promises(promises, meters)
    notes = tuple(note for one in read_in for note in one.notes)
    return Events(meters=meters, promises=promises, report=max(reports, default=None), notes=notes)


def _merged(meters: Sequence[Meter]) -> Iterator[Meter]:
    for name in dict.fromkeys(meter.name for meter in meters):
        first, *others = [meter for meter in meters if meter.name == name]
        for other in others:
            if replace(other, events=first.events, file=first.file) != first:
                raise DataError(
                    Message("{machine} has other prices in {other} than in {first}.", machine=name, other=other.file,
                            first=first.file),
                    Message("Give each price a machine of its own name."), file=other.file,
                )  # fmt: skip
        yield replace(first, events=tuple(event for meter in (first, *others) for event in meter.events))


def _events(path: Path, place: ZoneInfo | None) -> Events:
    _, form = recognised(path)
    if form == "csv":
        return _of_table(path, place)
    document = _document(path, form)
    if isinstance(document.data, list):
        return Events(meters=tuple(_of_list(document, place)))
    only(document, *_OF_EVENTS)
    report = document.data.get("report")
    meters = [_meter(document, entry, keys, place) for keys, entry in tables(document, "machine")]
    if not meters:
        raise document.error((), Message("holds no machine"), Message("Begin each machine with [[machine]]."))
    _refuse_twice(document, "machine", [meter.name for meter in meters])
    return Events(
        meters=tuple(meters),
        promises=tuple(_promise(document, entry, keys, place) for keys, entry in tables(document, "commitment")),
        report=None if report is None else _moment(document, ("report",), str(report), place),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """`[[machine]]`, without its events."""

    name: str
    price_per_hour: float
    currency: str = "USD"
    disk_price_per_month: float | None = None
    nodes: int = 1
    billing_step_s: Seconds = BY_THE_SECOND
    billing_minimum_s: Seconds = 0.0


def _meter(document: Document, entry: Any, keys: Keys, place: ZoneInfo | None) -> Meter:
    plain = {k: v for k, v in entry.items() if k != "events"} if isinstance(entry, dict) else entry
    stated = build(document, _Machine, plain, keys, may_be_zero=_ZERO_PRICES)
    listed = entry.get("events")
    if not isinstance(listed, list) or not listed:
        raise document.error((*keys, "events"), Message("is missing: a list of what was seen"), _EVENTS_HINT)
    events = [_event(document, each, (*keys, "events", at), place) for at, each in enumerate(listed)]
    return _metered(stated, events, document.name, lambda what, hint: document.error((*keys, "currency"), what, hint))


_EVENTS_HINT = Message('Write events = [{{time = 2026-11-30T08:00:00Z, state = "running"}}].')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    time: str
    state: str


def _event(document: Document, entry: Any, keys: Keys, place: ZoneInfo | None) -> Event:
    seen = build(document, _Seen, entry, keys)
    return Event(when=_moment(document, (*keys, "time"), seen.time, place), state=seen.state.strip())


def _metered(
    stated: _Machine, events: Sequence[Event], file: str, error: Callable[[Message, Message], DataError]
) -> Meter:
    code = _code(stated.currency, error)
    values = {f.name: getattr(stated, f.name) for f in fields(stated)} | {"currency": code}
    return Meter(**values, events=tuple(events), file=file)


def _code(text: str, error: Callable[[Message, Message], DataError]) -> str:
    if not re.fullmatch("[A-Za-z]{3}", text.strip()):
        raise error(Message('is "{text}", no currency code', text=text), Message("Write USD or EUR, say."))
    return text.strip().upper()


def _moment(document: Document, keys: Keys, text: str, place: ZoneInfo | None) -> datetime:
    try:
        return moment(text, place)
    except InvalidInput as error:
        line = document.line(keys)
        where = Message("{file}, line {line}", file=document.name, line=line) if line else document.name
        said = Message("{where}: {problem}", where=where, problem=error.message)
        raise DataError(said, error.hint, file=document.name, row=line, column=str(keys[-1])) from None


def _refuse_twice(document: Document, key: str, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise document.error(
                (key, place, "name"), Message('is "{name}", which is there twice', name=name),
                Message("Put all that belongs to it into one entry, or give the other its own name."),
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commitment:
    per_hour: float
    start: str
    currency: str = "USD"
    off_fraction: Fraction = 0.0
    end: str | None = None
    machines: tuple[str, ...] = ()


def _promise(document: Document, entry: Any, keys: Keys, place: ZoneInfo | None) -> Promise:
    said = build(document, _Commitment, entry, keys, may_be_zero=frozenset(("off_fraction",)))
    if said.off_fraction >= 1:
        raise document.error((*keys, "off_fraction"), Message("is 1, which would make all use free"))
    start = _moment(document, (*keys, "start"), said.start, place)
    end = None if said.end is None else _moment(document, (*keys, "end"), said.end, place)
    if end is not None and end <= start:
        raise document.error((*keys, "end"), Message("is not after start"))
    return Promise(
        per_hour=said.per_hour,
        start=start,
        currency=_code(said.currency, lambda what, hint: document.error((*keys, "currency"), what, hint)),
        off_fraction=said.off_fraction,
        end=end,
        machines=said.machines,
    )


def _refuse_promises(promises: Sequence[Promise], meters: Sequence[Meter]) -> None:
    """Names that no machine has, and machines whose use would count for two commitments."""
    names = [meter.name for meter in meters]
    for promise in promises:
        for name in (each for each in promise.machines if each not in names):
            near = nearest(name, names)
            raise InvalidInput(
                Message('A commitment names the machine "{name}", which is not there.', name=name),
                Message("Did you mean {name}?", name=near[0]) if near else Message("Correct its name."),
            )
    for meter in meters:
        covering = [p for p in promises if p.currency == meter.currency and meter.name in (p.machines or names)]
        if len(covering) > 1:
            raise InvalidInput(
                Message("{machine} is covered by {n} commitments.", machine=meter.name, n=len(covering)),
                Message("Say machines = [...] in each, so that every machine has one."),
            )


# ---- events as rows ----


def _proper(title: str) -> str:
    slug = title.strip().casefold().replace(" ", "_").lstrip("\ufeff")
    return _ALIASES.get(slug, slug)


def _of_table(path: Path, place: ZoneInfo | None) -> Events:
    """A row an event; the prices of a machine stand in one of its rows or in all."""
    table = read(read_bytes(path), path.name, frozenset((*_NEEDED, *_TERMS, *_ALIASES)))
    sheet = Sheet(table, _proper, {})
    missing = next((column for column in _NEEDED if column not in sheet), None)
    if missing:
        what = Message("the column {column} is missing.", column=missing)
        raise sheet.error(what, Message("Needed are {names}.", names="machine, time, state"), column=missing)
    if not (sheet.rows or table.rejects):
        raise sheet.error(Message("there are no rows below the header."), Message("Write a row an event."))
    unknown = [t for t in sheet.titles if _proper(t) not in (*_NEEDED, *_TERMS, "currency")]
    if unknown:
        hint = Message("Known are {names}.", names=", ".join((*_NEEDED, *_TERMS, "currency")))
        raise sheet.error(Message("the column {column} is not known.", column=unknown[0]), hint, column=unknown[0])
    numbers = {column: sheet.numbers(column) for column in _TERMS if column in sheet}
    for refused in (*table.rejects, *(sheet.rejects[row] for row in sorted(sheet.rejects))):
        raise DataError(refused, Message("Correct the line: a bill without it would be wrong."), file=path.name)
    texts = {column: sheet.text(column) for column in (*_NEEDED, "currency")}
    rows = [
        {column: cells[row] for column, cells in texts.items() if cells[row] is not None}
        | {column: float(cells[row]) for column, cells in numbers.items() if not np.isnan(cells[row])}
        for row in range(sheet.rows)
    ]
    meters = _of_rows(path.name, [*zip(sheet.lines.tolist(), rows, strict=True)], place)
    return Events(meters=tuple(meters), notes=(*table.notes, *sheet.notes))


def _of_list(document: Document, place: ZoneInfo | None) -> Iterator[Meter]:
    """A JSON list with an object an event, of the same keys."""
    rows = document.listed()
    if not rows:
        raise document.error((), Message("holds no event"), Message("Give an object an event: machine, time, state."))
    known = (*_NEEDED, *_TERMS, "currency")
    for line, row in rows:
        if not isinstance(row, dict) or any(key not in known for key in row):
            raise _at(document.name, line, Message("an event has the keys {names}", names=", ".join(known)))
        bad = next((k for k in _TERMS if k in row and not _is_amount(row[k])), None)
        if bad:
            raise _at(document.name, line, Message("{key} is {value}: no number from 0 up", key=bad, value=row[bad]))
    yield from _of_rows(document.name, rows, place)


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _of_rows(file: str, rows: Sequence[tuple[int, Mapping[str, Any]]], place: ZoneInfo | None) -> Iterator[Meter]:
    machines: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for line, row in rows:
        gap = next((key for key in _NEEDED if not str(row.get(key) or "").strip()), None)
        if gap:
            raise _at(file, line, Message("{key} is missing", key=gap))
        machines.setdefault(str(row["machine"]).strip(), []).append((line, row))
    for name, own in machines.items():
        yield _of_machine(file, name, own, place)


def _of_machine(file: str, name: str, own: Sequence[tuple[int, Mapping[str, Any]]], place: ZoneInfo | None) -> Meter:
    first, terms = own[0][0], dict[str, Any]()
    for line, row in own:
        for key in (*_TERMS, "currency"):
            if key in row and terms.setdefault(key, row[key]) != row[key]:
                values = {"key": key, "machine": name, "one": terms[key], "other": row[key]}
                raise _at(file, line, Message("{key} of {machine} is {other}, and was {one} before", **values))
    if "price_per_hour" not in terms:
        raise _at(file, first, Message("no row says the price_per_hour of {machine}", machine=name))
    for key in ("nodes", "billing_step_s"):
        if terms.get(key) == 0 or (key == "nodes" and float(terms.get(key, 1)) % 1):
            raise _at(file, first, Message("{key} of {machine} is {value}", key=key, machine=name, value=terms[key]))
    stated = _Machine(name=name, **terms | {"nodes": int(terms.get("nodes", 1))})
    events = [_row_event(file, line, row, place) for line, row in own]
    return _metered(stated, events, file, lambda what, _hint: _at(file, first, Message("currency {what}", what=what)))


def _row_event(file: str, line: int, row: Mapping[str, Any], place: ZoneInfo | None) -> Event:
    try:
        return Event(when=moment(str(row["time"]), place), state=str(row["state"]).strip())
    except InvalidInput as error:
        raise DataError(
            Message("{file}, line {line}: {problem}", file=file, line=line, problem=error.message), error.hint,
            file=file, row=line, column="time",
        ) from None  # fmt: skip


def _at(file: str, line: int, what: Message) -> DataError:
    return DataError(
        Message("{file}, line {line}: {what}.", file=file, line=line, what=what), Message("Correct the line."),
        file=file, row=line,
    )  # fmt: skip


# ---- machines and their pods ----


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pod:
    name: str
    node: str | None = None
    accelerators: float = 0.0
    vcpus: float = 0.0
    memory_gib: Gib | None = None
    start: str | None = None
    end: str | None = None


def read_shared(paths: Sequence[Path], place: ZoneInfo | None) -> Shared:
    """The machines of all files with their pods."""
    nodes = tuple(pair for path in paths for pair in _nodes(_document(path, recognised(path)[1]), place))
    names = [node.name for node, _pods in nodes]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise InvalidInput(Message("The node {name} is in two files.", name=twice), Message("Give it in one."))
    return Shared(nodes=nodes)


def _nodes(document: Document, place: ZoneInfo | None) -> Iterator[tuple[Node, tuple[Pod, ...]]]:
    only(document, *_OF_PODS)
    zero = frozenset(("accelerators", "gpu_fraction", "host_price_per_hour"))
    nodes = [build(document, Node, entry, keys, may_be_zero=zero) for keys, entry in tables(document, "node")]
    if not nodes:
        raise document.error((), Message("holds no node"), Message("Begin each node with [[node]]."))
    names = [node.name for node in nodes]
    _refuse_twice(document, "node", names)
    pods = [_pod(document, entry, keys, names, place) for keys, entry in tables(document, "pod")]
    always = [f"{node} {pod.name}" for node, pod in pods if pod.start is None and pod.end is None]
    if len(set(always)) < len(always):
        _refuse_twice(document, "pod", [pod.name for _node, pod in pods])
    for node in nodes:
        code = _code(node.currency, lambda what, hint: document.error(("node", 0, "currency"), what, hint))
        yield replace(node, currency=code), tuple(pod for name, pod in pods if name == node.name)


def _pod(document: Document, entry: Any, keys: Keys, names: Sequence[str], place: ZoneInfo | None) -> tuple[str, Pod]:
    """The pod, and the node that it is on."""
    said = build(document, _Pod, entry, keys, may_be_zero=frozenset(("accelerators", "vcpus", "memory_gib")))
    if said.node is None and len(names) > 1:
        raise document.error((*keys, "name"), Message("names no node, and there are several"), Message("Add node."))
    node = said.node or names[0]
    if node not in names:
        near = nearest(node, names)
        hint = Message("Did you mean {name}?", name=near[0]) if near else Message("Add the node.")
        raise document.error((*keys, "node"), Message('is "{node}", which is not there', node=node), hint)
    if not (said.accelerators or said.vcpus or said.memory_gib):
        raise document.error((*keys, "name"), Message("requests nothing"), Message("State accelerators or vcpus."))
    start, end = (
        None if text is None else _moment(document, (*keys, key), text, place)
        for key, text in (("start", said.start), ("end", said.end))
    )
    if (start is None) != (end is None):
        raise document.error((*keys, "name"), Message("has only one of start and end"), Message("State both, or none."))
    if start is not None and end is not None and end <= start:
        raise document.error((*keys, "end"), Message("is not after start"))
    return node, Pod(
        name=said.name, accelerators=said.accelerators, vcpus=said.vcpus, memory_gib=said.memory_gib, start=start,
        end=end,
    )  # fmt: skip
