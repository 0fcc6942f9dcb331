"""The errors that tests found, as values: the shipped table, and what it says of one situation.

    results = parse(document).results
    in_tests(results, measured=0, card_known=True).sentence

`document` and `parse` are inverse to each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from gpuwise.errors import Message
from gpuwise.predict.score import Errors

SCHEMA = 1
SEVERAL = 3
"""So many measured GPUs count as several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One split. more: further figures by name. groups: tag -> value -> errors."""

    id: str
    errors: Errors
    more: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    groups: Mapping[str, Mapping[str, Errors]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Results by split. data_version: of the tables they stand on. computed: the day, as YYYY-MM-DD."""

    data_version: str
    computed: str
    results: Mapping[str, Result]


def document(table: Table) -> dict[str, Any]:
    """The table as plain values, percentages with two decimals."""
    return {
        "schema": SCHEMA,
        "data_version": table.data_version,
        "computed": table.computed,
        "splits": [_plain(found) for found in table.results.values()],
    }


def _plain(found: Result) -> dict[str, Any]:
    groups = {tag: {key: figures(e) for key, e in values.items()} for tag, values in found.groups.items()}
    more = {name: round(value, 2) for name, value in found.more.items()}
    return {"id": found.id, **figures(found.errors), "more": more, "groups": groups}


def figures(found: Errors) -> dict[str, Any]:
    """Errors as plain values."""
    known = {f.name: _rounded(getattr(found, f.name)) for f in fields(found) if f.name != "naive"}
    naive = {rule: {k: v for k, v in figures(e).items() if k in NAIVE_FIGURES} for rule, e in found.naive.items()}
    return {**known, "naive": naive}


def _rounded(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value


NAIVE_FIGURES = ("n", "mape_percent", "median_percent", "p90_percent")


def parse(document: Mapping[str, Any]) -> Table:
    """The table of a document that `document` made."""
    found = [_result(entry) for entry in document["splits"]]
    return Table(
        data_version=document["data_version"],
        computed=document["computed"],
        results={one.id: one for one in found},
    )


def _result(entry: Mapping[str, Any]) -> Result:
    groups = {tag: {key: _errors(e) for key, e in values.items()} for tag, values in entry["groups"].items()}
    return Result(id=entry["id"], errors=_errors(entry), more=entry["more"], groups=groups)


def _errors(entry: Mapping[str, Any]) -> Errors:
    names = ("n", "refused", "mape_percent", "median_percent", "p90_percent", "coverage_percent", "half_width_percent")
    known: dict[str, Any] = {name: entry[name] for name in names if name in entry}
    return Errors(**known, naive={rule: _errors(e) for rule, e in entry.get("naive", {}).items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What tests of one situation found. split: of `accuracy`."""

    split: str
    situation: Message
    errors: Errors

    @property
    def sentence(self) -> Message:
        """The one line for a person who has a prediction before him."""
        return Message(
            "In tests with {situation}, half of the predictions were within {median:.0f} %, nine of ten within "
            "{p90:.0f} % (split {split} of gpuwise accuracy).",
            situation=self.situation,
            median=self.errors.median_percent,
            p90=self.errors.p90_percent,
            split=self.split,
        )


_NOTHING = Message("nothing measured, the workload left out and the card in the tables")
_ONE = Message("one GPU measured, the workload in no table and the card in the tables")
_MORE = Message("three GPUs measured, the workload in no table and the card in the tables")
_SHEET = Message("one GPU measured, and the card known by its data sheet only")
_NEITHER = Message("nothing measured, and the card known by its data sheet only")
_LISTED = Message("a workload of the tables, and the card known by its data sheet only")


def in_tests(
    results: Mapping[str, Result], *, measured: int, card_known: bool, in_tables: bool = False
) -> Tested | None:
    """What tests like this situation found. measured: GPUs on which the person measured the workload. in_tables: they
    have the workload on many cards. None without such a test."""
    for split, situation in _alike(measured, card_known, in_tables):
        found = results[split].errors if split in results else None
        if found is not None and found.median_percent is not None and found.p90_percent is not None:
            return Tested(split=split, situation=situation, errors=found)
    return None


def _alike(measured: int, card_known: bool, in_tables: bool) -> Sequence[tuple[str, Message]]:
    """Splits that are like the situation, the nearest first; none is like a workload of the tables on a card of
    theirs."""
    if in_tables:
        return () if card_known else (("L", _LISTED),)
    if not card_known:
        return (("C", _SHEET),) if measured else (("F", _NEITHER),)
    if measured >= SEVERAL:
        return ("B", _MORE), ("A", _ONE)
    return (("A", _ONE),) if measured else (("M", _NOTHING),)
