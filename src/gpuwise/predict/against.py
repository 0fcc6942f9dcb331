"""A table that the predictor has never seen, scored: what its rows state, what is predicted, how wrong that is.

    scored = score(claims, answer, bundled)
    scored.summary.mape_percent

A question (`group`) is some given rows and some rows to be predicted from them. Nothing is predicted from a row that is
to be predicted. Where a name leaves open which card it is, a prediction is a range over all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import product
from math import prod, sqrt
from typing import Literal, Protocol

from gpuwise.errors import Message
from gpuwise.estimate import Estimate, Interval
from gpuwise.model import BenchmarkResult
from gpuwise.predict.answer import refusal
from gpuwise.predict.cells import canonical
from gpuwise.predict.naive import naive
from gpuwise.predict.plausible import doubt
from gpuwise.predict.score import Errors, Score, errors
from gpuwise.predict.setting import Reading, Setting

Role = Literal["given", "predict"]

MOST_MEANINGS = 16
"""More combinations of what the given names may mean are not worked through."""

BATCHES_APART = 2.0
"""Batches that differ more are said to."""


class Answer(Protocol):
    """The predictor: an estimate for each setting from what was measured, or why there is none."""

    def __call__(self, asked: Sequence[Setting], given: Sequence[Reading]) -> Sequence[Estimate | Message]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One row of the table. settings: one for each card that its name may mean; empty where `refused` says why.

    name: of the card, as it is written. samples_per_s: None where nothing was measured (role predict).
    """

    line: int
    group: str
    role: Role
    name: str
    workload: str
    settings: tuple[Setting, ...] = ()
    samples_per_s: float | None = None
    refused: Message | None = None
    remarks: tuple[Message, ...] = ()

    @property
    def accelerator(self) -> str | None:
        """The card, or the cards that it may be, by id."""
        return "|".join(s.accelerator.id for s in self.settings) or None

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What was measured, for each card that it may have been measured on."""
        if self.samples_per_s is None:
            return ()
        return tuple(Reading(setting=setting, samples_per_s=self.samples_per_s) for setting in self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One row with what was predicted, or why not. seen: the bundled tables have this workload on this card."""

    claim: Claim
    predicted: Interval | None = None
    reason: Message | None = None
    remarks: tuple[Message, ...] = ()
    naive: tuple[tuple[str, float], ...] = ()
    seen: bool = False

    @property
    def error_fraction(self) -> float | None:
        """predicted / measured − 1."""
        if self.predicted is None or self.claim.samples_per_s is None:
            return None
        return self.predicted.value / self.claim.samples_per_s - 1

    @property
    def score(self) -> Score | None:
        """None where nothing was measured."""
        claim, inside = self.claim, self.predicted
        if claim.samples_per_s is None:
            return None
        tags = {"workload": claim.workload, "accelerator": claim.accelerator or claim.name, "group": claim.group}
        return Score(
            truth=claim.samples_per_s,
            predicted=inside.value if inside else None,
            low=inside.low if inside else None,
            high=inside.high if inside else None,
            naive=dict(self.naive),
            tags=tags | ({"precision": claim.settings[0].precision} if claim.settings else {}),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """rows: those to be predicted, in order. given: rows that were predicted from; left_out: given rows that were not,
    with why. seen: rows with a prediction whose card and workload the bundled tables have."""

    rows: tuple[Outcome, ...]
    summary: Errors
    given: int
    left_out: tuple[Outcome, ...]
    seen: int

    @property
    def scores(self) -> tuple[Score, ...]:
        return tuple(score for row in self.rows if (score := row.score) is not None)


Cell = tuple[str, str, int, str, str]
"""Workload, card, number of devices, arithmetic, training or inference."""


def cells(rows: Iterable[BenchmarkResult]) -> frozenset[Cell]:
    """What the bundled tables have."""
    return frozenset(
        (canonical(r.workload), r.accelerator, r.accelerators, _as_computed(r.precision), r.mode) for r in rows
    )


def _as_computed(precision: str) -> str:
    """The tables say what was computed; every half precision counts as one."""
    return precision if precision in ("fp32", "tf32") else "amp"


def score(claims: Sequence[Claim], answer: Answer, bundled: Set[Cell]) -> Scored:
    """Every question answered and scored. Rows that were refused on reading stay refused."""
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.group, []).append(_doubted(claim))
    found = [outcome for group in groups.values() for outcome in _question(group, answer, bundled)]
    rows = tuple(sorted((o for o in found if o.claim.role == "predict"), key=lambda o: o.claim.line))
    left_out = tuple(o for o in found if o.claim.role == "given" and o.reason is not None)
    scored = Scored(
        rows=rows,
        summary=Errors(n=0),
        given=sum(o.claim.role == "given" for o in found) - len(left_out),
        left_out=left_out,
        seen=sum(row.seen for row in rows if row.predicted is not None),
    )
    refused = sum(row.predicted is None for row in rows)
    return replace(scored, summary=replace(errors(scored.scores), refused=refused))


def _doubted(claim: Claim) -> Claim:
    """Refused where no card that it may be can be so fast, or so slow, or can do this arithmetic at all."""
    unable = [refusal(setting) for setting in claim.settings]
    if unable and all(unable):
        return replace(claim, settings=(), refused=Message("{why}", why=unable[0]))
    doubts = [doubt(reading) for reading in claim.readings]
    if not doubts or not all(doubts):
        return claim
    return replace(claim, settings=(), refused=Message("samples_per_s: {why}", why=doubts[0]))


def _question(claims: Sequence[Claim], answer: Answer, bundled: Set[Cell]) -> Iterator[Outcome]:
    given = [claim for claim in claims if claim.role == "given"]
    usable, left = _usable([claim for claim in given if claim.readings])
    yield from (Outcome(claim=claim) for claim in usable)
    yield from (Outcome(claim=claim, reason=_TOO_OPEN) for claim in left)
    yield from (Outcome(claim=claim, reason=claim.refused) for claim in given if not claim.readings)
    asked = [claim for claim in claims if claim.role == "predict"]
    yield from (Outcome(claim=c, reason=c.refused, remarks=c.remarks) for c in asked if not c.settings)
    possible = [claim for claim in asked if claim.settings]
    settings = [setting for claim in possible for setting in claim.settings]
    meanings = list(product(*(claim.readings for claim in usable)))
    answers = [answer(settings, meaning) for meaning in meanings] if settings else []
    place = 0
    for claim in possible:
        end = place + len(claim.settings)
        told = [found for one in answers for found in one[place:end]]
        place = end
        yield _outcome(claim, told, meanings[0], bundled)


_TOO_OPEN = Message("the names in this group leave open too many cards: write which ones they are")


def _usable(given: Sequence[Claim]) -> tuple[list[Claim], list[Claim]]:
    """Given rows whose meanings can be worked through, those that are sure first, and the others."""
    ordered = sorted(given, key=lambda claim: len(claim.settings))
    fits = [prod(len(c.settings) for c in ordered[: n + 1]) <= MOST_MEANINGS for n in range(len(ordered))]
    return [c for c, fit in zip(ordered, fits, strict=True) if fit], [
        c for c, fit in zip(ordered, fits, strict=True) if not fit
    ]


def _outcome(claim: Claim, told: Sequence[Estimate | Message], given: Sequence[Reading], bundled: Set[Cell]) -> Outcome:
    """The range over all that the names may mean; refused where nothing was predicted."""
    found = [estimate.interval() for estimate in told if isinstance(estimate, Estimate)]
    refusals = [why for why in told if isinstance(why, Message)]
    remarks = (*claim.remarks, *unlike(claim.settings[0], given))
    if not found:
        return Outcome(claim=claim, reason=refusals[0], remarks=remarks)
    middle = sqrt(min(i.value for i in found) * max(i.value for i in found))
    span = Interval(value=middle, low=min(i.low for i in found), high=max(i.high for i in found))
    several = len(claim.settings) > 1 or len(found) > 1
    return Outcome(
        claim=claim,
        predicted=span if several else found[0],
        remarks=(*remarks, *([_range(claim.settings)] if len(claim.settings) > 1 else [])),
        naive=tuple(naive(claim.settings[0], given).items()) if not several else (),
        seen=any(_cell(setting) in bundled for setting in claim.settings),
    )


def _cell(setting: Setting) -> Cell:
    return canonical(setting.workload), setting.accelerator.id, setting.accelerators, setting.arithmetic, setting.mode


def _range(settings: Sequence[Setting]) -> Message:
    names = ", ".join(s.accelerator.id for s in settings)
    return Message("the name may mean {names}: the range covers all of them", names=names)


def unlike(asked: Setting, given: Sequence[Reading]) -> Iterator[Message]:
    """In what no given row is like the one that is asked, so that its ratio is not to be trusted blindly."""
    if not given:
        return
    there = [reading.setting for reading in given]
    if asked.precision not in {s.precision for s in there}:
        names = ", ".join(dict.fromkeys(s.precision for s in there))
        yield Message("measured in {given} only, and asked in {asked}", given=names, asked=asked.precision)
    nearest = min(there, key=lambda s: max(s.batch / asked.batch, asked.batch / s.batch))
    if max(nearest.batch / asked.batch, asked.batch / nearest.batch) > BATCHES_APART:
        yield Message("measured at batch {given}, and asked at {asked}", given=nearest.batch, asked=asked.batch)
    yield from _other_software(asked, there)
    if asked.memory_format is not None and all(s.memory_format not in (None, asked.memory_format) for s in there):
        yield Message("measured in another memory format than {asked}", asked=asked.memory_format)


def _other_software(asked: Setting, there: Sequence[Setting]) -> Iterator[Message]:
    known = {s.software for s in there if s.software is not None}
    if asked.software is None or len(known) < len({s.software for s in there}):
        if known or asked.software is not None:
            yield Message("the software is not stated in every row")
    elif asked.software not in known:
        names = ", ".join(sorted(known))
        yield Message("measured with {given}, and asked with {asked}", given=names, asked=asked.software)
