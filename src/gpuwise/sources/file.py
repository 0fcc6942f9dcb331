"""What a person keeps in files: offers, machines, agreements, quotas, workloads and measured runs.

Every reader raises DataError (file, line, key, what to do) for what it cannot use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields, make_dataclass, replace
from datetime import date
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

from gpuwise.catalogue import Catalogue, coded, join
from gpuwise.cost.discounts import Commitment, Credit, Discounts, Rate, Scope
from gpuwise.errors import Message, UnknownName
from gpuwise.model import Accelerator, Machine, Market, Measurement, Source, Workload
from gpuwise.names import Match, Unknown, resolve
from gpuwise.rank import Quota
from gpuwise.request.places import country
from gpuwise.sources import Facts, Loaded
from gpuwise.sources.document import CONTROL, Document, Keys, build, only, path_of, read_json, read_toml, tables
from gpuwise.sources.offered import Offered, nearest
from gpuwise.stopping import EarlyStop
from gpuwise.store.delimited import Table, controls_note
from gpuwise.store.tables import from_table, read_offers
from gpuwise.units import Fraction, Hours, Seconds, UsdPerHour
from gpuwise.workloads import DURATION, FAMILIES, PLACEHOLDERS, UNDECIDED

MEASUREMENT_SCHEMA = 1
ADAM_BYTES = 16
"""State bytes a parameter where a workload file says nothing: weight, gradient and two moments of 4 bytes each."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """A person's own price lists: CSV, or TOML and JSON with one table an offer."""

    paths: Sequence[Path] = ()

    def load(self, facts: Facts, as_of: date) -> Loaded:
        """The offers of all files, in order."""
        loaded = [offers(path, facts) for path in self.paths]
        notes = tuple(note for one in loaded for note in one.notes)
        return Loaded(catalogue=join([one.catalogue for one in loaded]), notes=notes)


def offers(path: Path, facts: Facts) -> Loaded:
    """The offers of one file; its columns or keys are those of `store.tables.COLUMNS`."""
    suffix = path.suffix.casefold()
    if suffix not in (".toml", ".json"):
        return read_offers(path, facts)
    document = read_toml(path) if suffix == ".toml" else read_json(path)
    version = hashlib.sha256(document.text.encode()).hexdigest()[:12]
    return from_table(_table(document), facts, version=version, own=True)


def _table(document: Document) -> Table:
    """`[[offer]]` tables, or a JSON list of objects, as rows."""
    listed = document.listed() if isinstance(document.data, list) else _offer_tables(document)
    if not listed or not all(isinstance(entry, dict) for _, entry in listed):
        raise document.error((), Message("holds no list of offers"), Message("Begin each offer with [[offer]]."))
    titles = dict.fromkeys(key for _, entry in listed for key in entry)
    texts = {title: [_cell(entry.get(title)) for _, entry in listed] for title in titles}
    steering = [line for line, entry in listed for value in entry.values() for _ in CONTROL.findall(str(value))]
    return Table(
        name=document.name,
        columns={title: coded(column) for title, column in texts.items()},
        lines=np.array([line for line, _ in listed], np.int32),
        rejects=(),
        blank=0,
        encoding="utf-8",
        separator=",",
        notes=(controls_note(len(steering), steering[0]),) if steering else (),
    )


def _offer_tables(document: Document) -> list[tuple[int, Any]]:
    only(document, "offer")
    return [(document.line(keys) or 1, entry) for keys, entry in tables(document, "offer")]


def _cell(value: object) -> str | None:
    return None if value is None else CONTROL.sub("", str(value)).strip() or None


# ---- machines, quotas, agreements ----


def machines(path: Path, facts: Facts) -> tuple[Machine, ...]:
    """The machines of `[[machine]]` tables, money in USD. Ranges and remarks may stand beside."""
    document = read_toml(path)
    only(document, "machine")
    return tuple(_machine(document, entry, keys, facts) for keys, entry in tables(document, "machine"))


def _machine(document: Document, entry: Any, keys: Keys, facts: Facts) -> Machine:
    aside = ("origin", "remark", "source")
    plain = {k: v for k, v in entry.items() if k not in aside} if isinstance(entry, dict) else entry
    machine = build(document, Machine, plain, keys, source={"kind": "quoted", "ref": document.name})
    if machine.residual_usd > machine.capex_usd:
        raise document.error((*keys, "residual_usd"), Message("is above capex_usd"))
    return replace(
        machine,
        accelerator=_one_gpu(document, machine.accelerator, (*keys, "accelerator"), facts),
        country=_country(document, machine.country, (*keys, "country")),
    )


def _country(document: Document, text: str | None, keys: Keys) -> str | None:
    try:
        return None if text is None else country(text)
    except UnknownName as error:
        what = Message('is "{text}", no country code of two letters (ISO 3166-1)', text=text)
        raise document.error(keys, what, error.hint) from None


def quotas(path: Path, facts: Facts, offers: Catalogue) -> tuple[Quota, ...]:
    """The quotas of `[[quota]]` tables: provider, accelerators, and region or accelerator if it holds for one only.

    offers: those whose names it may use, in any case. DataError for a provider or a region that none of them has.
    """
    document, offered = read_toml(path), Offered(offers)
    only(document, "quota")
    found = []
    for keys, entry in tables(document, "quota"):
        quota = build(document, Quota, entry, keys, may_be_zero=("accelerators",))
        gpus = _gpus(document, quota.accelerator, (*keys, "accelerator"), facts)
        for scope in offered.scopes(document, keys, Scope(provider=quota.provider, region=quota.region), gpus):
            named = {"provider": scope.provider, "region": scope.region, "accelerator": scope.accelerator}
            found.append(replace(quota, **named))  # type: ignore[arg-type]
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agreement:
    """What the entries of discounts.toml share: which offers they hold for, and until when."""

    provider: str
    instance: str | None = None
    region: str | None = None
    accelerator: str | None = None
    market: Market | None = None
    until: date | None = None

    @property
    def scope(self) -> Scope:
        return Scope(provider=self.provider, instance=self.instance, region=self.region, market=self.market)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rate(_Agreement):
    off_fraction: Fraction | None = None
    price_usd_per_hour: UsdPerHour | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commitment(_Agreement):
    left_h: Hours | None = None
    usd_per_hour: UsdPerHour | None = None


A = TypeVar("A", bound=_Agreement)


def discounts(path: Path, facts: Facts, offers: Catalogue, as_of: date) -> tuple[Discounts, tuple[Message, ...]]:
    """The agreements of `[[rate]]`, `[[commitment]]` and `[[credit]]` tables, and notes on those without effect.

    offers: those whose names the agreements may use, in any case; DataError for a name that none of them has. as_of:
    the day asked about; an agreement that ended before it is noted.
    """
    document, offered = read_toml(path), Offered(offers)
    only(document, "rate", "commitment", "credit")
    rates = _scoped(document, "rate", _Rate, facts, offered)
    commitments = _scoped(document, "commitment", _Commitment, facts, offered)
    granted = [(keys, build(document, Credit, entry, keys)) for keys, entry in tables(document, "credit")]
    agreed = Discounts(
        rates=tuple(
            Rate(
                scope=scope,
                off_fraction=rate.off_fraction,
                price_usd_per_hour=rate.price_usd_per_hour,
                until=rate.until,
            )
            for _, rate, scopes in rates
            for scope in scopes
        ),
        commitments=tuple(
            Commitment(
                scope=scope,
                left_h=commitment.left_h or 0.0,
                usd_per_hour=commitment.usd_per_hour or 0.0,
                until=commitment.until,
            )
            for _, commitment, scopes in commitments
            for scope in scopes
        ),
        credits=tuple(
            replace(credit, provider=name)
            for keys, credit in granted
            for name in offered.providers(document, (*keys, "provider"), credit.provider)
        ),
    )
    idle = [(keys, agreement.until, _covers_none(offers, scopes)) for keys, agreement, scopes in (*rates, *commitments)]
    idle += [(keys, credit.until, False) for keys, credit in granted]
    return agreed, tuple(
        note for keys, until, none in idle for note in _without_effect(document, keys, until, none, as_of)
    )


def _without_effect(document: Document, keys: Keys, until: date | None, none: bool, as_of: date) -> Iterator[Message]:
    where = {"file": document.name, "line": document.line(keys) or 1, "path": path_of(keys)}
    if until is not None and until < as_of:
        yield Message("{file}, line {line}: {path} ended on {until} and is not used", **where, until=until)
    elif none:
        yield Message("{file}, line {line}: {path} covers no offer", **where)


def _covers_none(offers: Catalogue, scopes: Sequence[Scope]) -> bool:
    return not any(scope.covers(offers).any() for scope in scopes)


def _scoped(
    document: Document, key: str, cls: type[A], facts: Facts, offered: Offered
) -> list[tuple[Keys, A, list[Scope]]]:
    """Each entry of `[[key]]` with every scope that its names stand for."""
    found = []
    for keys, entry in tables(document, key):
        stated = build(document, cls, entry, keys)
        if isinstance(stated, _Rate) and (stated.off_fraction is None) == (stated.price_usd_per_hour is None):
            raise document.error(keys, Message("states both or neither of off_fraction and price_usd_per_hour"))
        if isinstance(stated, _Commitment) and (stated.left_h is None) == (stated.usd_per_hour is None):
            raise document.error(keys, Message("states both or neither of left_h and usd_per_hour"))
        gpus = _gpus(document, stated.accelerator, (*keys, "accelerator"), facts)
        found.append((keys, stated, offered.scopes(document, keys, stated.scope, gpus)))
    return found


def _gpus(document: Document, text: str | None, keys: Keys, facts: Facts) -> list[str | None]:
    """What the column `accelerator` of a catalogue may hold for this name: ids, and ids joined by "|"."""
    if text is None:
        return [None]
    ids = [a.id for a in _variants(document, text, keys, facts)]
    return ["|".join(some) for size in range(1, len(ids) + 1) for some in combinations(ids, size)]


def _one_gpu(document: Document, text: str, keys: Keys, facts: Facts) -> str:
    variants = _variants(document, text, keys, facts)
    if len(variants) > 1:
        hint = Message("Write one of {names}.", names=", ".join(a.id for a in variants))
        raise document.error(keys, Message('"{text}" may be several', text=text), hint)
    return variants[0].id


def _variants(document: Document, text: str, keys: Keys, facts: Facts) -> tuple[Accelerator, ...]:
    if text in facts.accelerators:
        return (facts.accelerators[text],)
    name = resolve(facts.index, text)
    if isinstance(name, Match) or name.variants:
        return name.variants
    near = name.nearest if isinstance(name, Unknown) else tuple(a.id for a in name.candidates)
    hint = Message("See gpuwise data list --by gpu.")
    if near:
        hint = Message("Did you mean {names}?", names=", ".join(near))
    raise document.error(keys, Message('"{text}" is no GPU that is known here', text=text), hint)


# ---- workloads and measured runs ----


def workload(path: Path) -> Workload:
    """The workload that a TOML file states: the counts of `model.Workload`, with or without `[workload]` above them.
    DataError for a family nobody knows."""
    document = read_toml(path)
    inner = document.data.get("workload", document.data)
    keys: Keys = ("workload",) if "workload" in document.data else ()
    if not isinstance(inner, dict):
        raise document.error(keys, Message("is not a table of keys and values"))
    name = inner.get("name", path.stem)
    usual = {"name": name, "title": name, "model": name, "sample": "sample", "state_bytes_per_parameter": ADAM_BYTES}
    undecided = tuple(key for key in DURATION if key not in inner)
    stated = build(document, _workload_file(), usual | {k: PLACEHOLDERS[k] for k in undecided} | inner, keys)
    if stated.early_stop is not None:
        _followed(document, (*keys, "early_stop"), stated.early_stop)
    _known(document, (*keys, "family"), stated.family, FAMILIES, Message("Use {names}.", names=", ".join(FAMILIES)))
    assumed = dict(stated.assumed)
    if "state_bytes_per_parameter" not in inner:
        assumed["state_bytes_per_parameter"] = "Adam in fp32; the file does not say"
    assumed |= {key: UNDECIDED[key] for key in undecided}
    return Workload(
        **{f.name: getattr(stated, f.name) for f in fields(stated)} | {"assumed": assumed, "undecided": undecided},
        source=Source(kind="quoted", ref=path.name),
        reasons={} if stated.accuracy_fraction else {"accuracy_fraction": Message("the file does not state it")},
    )


def _followed(document: Document, keys: Keys, rule: EarlyStop) -> None:
    if max(rule.least_epochs, rule.patience_epochs) > rule.most_epochs:
        raise document.error(keys, Message("can never be followed: least and patience lie above the most"))


def _known(document: Document, keys: Keys, name: str, known: Collection[str], look: Message) -> None:
    if name not in known:
        near = nearest(name, known)
        hint = Message("Did you mean {names}? {look}", names=", ".join(near), look=look) if near else look
        raise document.error(keys, Message('is "{name}", which nobody knows here', name=name), hint)


_MADE = ("source", "reasons", "stop", "undecided", "memory")


@cache
def _workload_file() -> type[Any]:
    """`model.Workload` without the fields that only the product fills."""
    hints = get_type_hints(Workload)
    stated = [(f.name, hints[f.name], _plain(f)) for f in fields(Workload) if f.name not in _MADE]
    return make_dataclass("WorkloadFile", stated, kw_only=True, frozen=True)


def _plain(item: Field[Any]) -> Any:
    return field(default=item.default, default_factory=item.default_factory)


def preparation_s(path: Path) -> Seconds:
    """How long a machine takes until its first step, of the file that `check --out` wrote there."""
    document = read_json(path)
    data = document.data
    if not isinstance(data, dict) or data.get("kind") != "check":
        raise document.error((), Message('is no checked machine: its "kind" is not "check"'))
    if data.get("ready") == "not ready":
        raise document.error(("ready",), Message("is not ready: mend first what is missing there"))
    seconds = data.get("preparation_s")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds < 0:
        why = (data.get("reasons") or {}).get("preparation_s", "not measured")
        raise document.error(
            ("preparation_s",), Message("is not known ({why})", why=why), Message("State it: --prepare 20min")
        )
    return float(seconds)


def measurement(path: Path, facts: Facts) -> Measurement:
    """The run in a file: as `measure --out` or `measure --json` wrote it, or the measurement alone."""
    return measured(read_json(path), facts)


def _inner(document: Document) -> Any:
    """The measurement inside a record of a run, or inside the answer that holds the record."""
    data = document.data
    if isinstance(data, dict) and isinstance(data.get("result"), dict):
        data = data["result"].get("record")
    if not isinstance(data, dict) or data.get("kind") != "run":
        return data
    if data.get("measurement") is None:
        reasons = data.get("reasons") or {}
        why = data.get("measurement_reason") or reasons.get("measurement") or data.get("failure") or "it saw no steps"
        raise document.error((), Message("holds nothing to predict from ({why})", why=why), Message("Measure again."))
    return data["measurement"]


def measured(document: Document, facts: Facts) -> Measurement:
    """A recorded run; keys that end in _reason say why another one is null, and are not read."""
    data = _inner(document)
    if not isinstance(data, dict) or data.get("kind") != "measurement":
        raise document.error((), Message('is no measured run: its "kind" is not "measurement" or "run"'))
    if data.get("schema") != MEASUREMENT_SCHEMA:
        what = Message("is {schema}; this gpuwise reads {known}", schema=data.get("schema"), known=MEASUREMENT_SCHEMA)
        raise document.error(("schema",), what, Message("Update gpuwise, or measure again."))
    run = build(document, Measurement, {k: v for k, v in data.items() if not k.endswith("_reason")})
    speed = run.samples_per_s
    if speed is not None and not speed.low <= speed.value <= speed.high:
        raise document.error(("samples_per_s",), Message("has a value outside its interval"))
    if run.accelerator is None:
        return run
    return replace(run, accelerator=_one_gpu(document, run.accelerator, ("accelerator",), facts))
