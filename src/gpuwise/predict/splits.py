"""Splits A to F, I, J, L and M: whole workloads, families, chips left out of rows, scales and interval factors alike.

    family out  → scales fitted without the whole family of the workload that is scored
    card out    → the same, and without every row of its chip (and of a sixth of the other chips)

Rows are those of one benchmark with many cards (Lambda's, source "ngc-") and of one with many networks (timm's).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import exp, log
from typing import NamedTuple

import numpy as np

from gpuwise.estimate import Z80
from gpuwise.model import Accelerator
from gpuwise.predict.answer import Model, Situation, Told, answer
from gpuwise.predict.cells import canonical, era, source
from gpuwise.predict.features import Basis
from gpuwise.predict.fit import Design, basis, fit_scales, posterior, usable
from gpuwise.predict.gp import Scales
from gpuwise.predict.naive import naive
from gpuwise.predict.rows import readings
from gpuwise.predict.score import Score
from gpuwise.predict.setting import Reading
from gpuwise.predict.tables import Tables

FAMILIES: tuple[tuple[str, ...], ...] = (
    ("resnet50", "ssd", "maskrcnn"),
    ("waveglow",),
    ("bert_base_squad", "bert_large_squad", "transformerxlbase", "transformerxllarge", "gnmt"),
    ("tacotron2",),
    ("ncf",),
)
"""Of the benchmark with many cards."""

NOT_BOUND = frozenset(("tacotron2", "maskrcnn", "ncf"))
"""The host or the data set their pace: they are in I, and not in the splits of GPU-bound jobs."""

FOLDS = 6
ITERATIONS = 12
"""Of a fit inside a split; the shipped one takes more."""

TRIPLES = 8
"""Drawn for each question with three measured cards."""

SEED = 20261130
NETWORKS, ANSWERING = 160, 100
"""Workloads of timm that take part in every fit, and those of them whose inference rows do."""


class Question(NamedTuple):
    """Rows of one workload in one era of software and one arithmetic."""

    workload: str
    era: str
    arithmetic: str


class Raw(NamedTuple):
    """A prediction before its interval factor. source: cards that were measured."""

    split: str
    question: Question
    reading: Reading
    source: tuple[str, ...]
    situation: Situation
    log_rate: float
    log_sd: float
    naive: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """All rows that take part, and those with many cards by question."""

    readings: Sequence[Reading]
    basis: Basis
    questions: Mapping[Question, Sequence[Reading]]

    def design(self, out: Iterable[str] = ()) -> Design:
        """Without these cards."""
        cards = set(out)
        return Design.of([r for r in self.readings if r.setting.accelerator.id not in cards], self.basis)


@lru_cache(maxsize=1)
def bench(tables: Tables) -> Bench:
    """The rows that fits inside the splits see: all with many cards, a draw of those with many networks."""
    train = usable(readings(tables.rows, tables.accelerators, tables.counts))
    answering = [r for r in readings(tables.inference, tables.accelerators, tables.counts) if r.setting.work]
    names = sorted({canonical(r.setting.workload) for r in train if source(r.setting) == "timm"})
    drawn = np.random.default_rng(SEED).permutation(names).tolist()
    kept, answered = set(drawn[:NETWORKS]), set(drawn[:ANSWERING])
    rows = [r for r in train if source(r.setting) != "timm" or canonical(r.setting.workload) in kept]
    rows += [r for r in answering if canonical(r.setting.workload) in answered]
    return Bench(rows, basis(tables.accelerators.values(), [r.setting for r in train]), _questions(train))


SHIPPED_ANSWERING = 500


def shipped_rows(tables: Tables) -> list[Reading]:
    """What the shipped posterior sees: every training row, and the inference rows of a draw of networks."""
    train = usable(readings(tables.rows, tables.accelerators, tables.counts))
    answering = [r for r in readings(tables.inference, tables.accelerators, tables.counts) if r.setting.work]
    names = sorted({canonical(r.setting.workload) for r in answering})
    drawn = set(np.random.default_rng(SEED).permutation(names)[:SHIPPED_ANSWERING].tolist())
    return [*train, *(r for r in answering if canonical(r.setting.workload) in drawn)]


def _questions(rows: Iterable[Reading]) -> dict[Question, list[Reading]]:
    found: dict[Question, list[Reading]] = defaultdict(list)
    for r in rows:
        if source(r.setting) == "ngc":
            found[Question(r.setting.workload, era(r.setting), r.setting.arithmetic)].append(r)
    return dict(sorted(found.items()))


# ---- predictions of what was left out ----


@lru_cache(maxsize=1)
def raws(tables: Tables) -> tuple[Raw, ...]:
    """Every prediction of splits A to D, F, L and M, with scales fitted anew for each family and fold of cards."""
    return (*_cards_known(tables), *_cards_unknown(tables))


def _cards_known(tables: Tables) -> Iterator[Raw]:
    b = bench(tables)
    design = b.design()
    for family in FAMILIES:
        scales = fit_scales(design.without(family), ITERATIONS)
        yield from family_known(b, design, family, scales)
        yield from family_unknown(b, design, family, scales)


def family_known(b: Bench, design: Design, family: Sequence[str], scales: Scales) -> Iterator[Raw]:
    """Each workload out, its family in: nothing, one and three cards measured."""
    for name in family:
        model = Model(posterior=posterior(design.without([name]), scales), factors={})
        for question, rows in _of(b, name):
            yield from _asked("M", model, question, rows, [()])
            yield from _asked("A", model, question, rows, [(r,) for r in _one_a_card(rows)])
            yield from _asked("B", model, question, rows, _triples(rows))
            bare = [replace(r, setting=replace(r.setting, work=None, family=None)) for r in rows]
            yield from _asked("U", model, question, bare, [(r,) for r in _one_a_card(bare)])
            yield from _asked("U", model, question, bare, _triples(bare))


def family_unknown(b: Bench, design: Design, family: Sequence[str], scales: Scales) -> Iterator[Raw]:
    model = Model(posterior=posterior(design.without(family), scales), factors={})
    for question, rows in (found for name in family for found in _of(b, name)):
        yield from _asked("D", model, question, rows, [(r,) for r in _one_a_card(rows)])
        yield from _asked("D3", model, question, rows, _triples(rows))


def _cards_unknown(tables: Tables) -> Iterator[Raw]:
    b = bench(tables)
    for cards in card_folds(b):
        design = b.design(cards)
        yield from workload_known(b, design, fit_scales(design, ITERATIONS), cards)
        for family in FAMILIES:
            scales = fit_scales(design.without(family), ITERATIONS)
            yield from card_unknown(b, design, family, scales, cards)


def workload_known(b: Bench, design: Design, scales: Scales, cards: Iterable[str]) -> Iterator[Raw]:
    """The cards in no row, each workload with all its other rows in the tables."""
    new, model = set(cards), Model(posterior=posterior(design, scales), factors={})
    for question, rows in b.questions.items():
        targets = [r for r in rows if r.setting.accelerator.id in new]
        seen = [
            r
            for r in b.readings
            if canonical(r.setting.workload) == canonical(question.workload) and r.setting.accelerator.id not in new
        ]
        if targets and seen:
            for target, told in zip(targets, answer(model, [t.setting for t in targets], seen), strict=True):
                if isinstance(told, Told):
                    yield _raw("L", question, target, (), told, ())


def card_unknown(
    b: Bench, design: Design, family: Sequence[str], scales: Scales, cards: Iterable[str]
) -> Iterator[Raw]:
    """The cards in no row, each workload out: nothing and one other card measured."""
    new = set(cards)
    for name in family:
        model = Model(posterior=posterior(design.without([name]), scales), factors={})
        for question, rows in _of(b, name):
            targets = [r for r in rows if r.setting.accelerator.id in new]
            others = [r for r in _one_a_card(rows) if r.setting.accelerator.id not in new]
            yield from _asked("F", model, question, targets, [()])
            yield from _asked("C", model, question, targets, [(r,) for r in others])


def card_folds(b: Bench) -> list[list[str]]:
    """Cards by chip, whatever its form and memory: an A100 of 40 GB tells all about one of 80."""
    chips: dict[str, set[str]] = defaultdict(set)
    for r in (r for rows in b.questions.values() for r in rows):
        chips[chip(r.setting.accelerator)].add(r.setting.accelerator.id)
    mixed = np.random.default_rng(SEED).permutation(sorted(chips)).tolist()
    return [[card for name in mixed[fold::FOLDS] for card in sorted(chips[name])] for fold in range(FOLDS)]


SAME_CHIP = {"H200": "H100", "GH200": "H100", "A800": "A100"}


def chip(accelerator: Accelerator) -> str:
    """The name without form and memory; H200 is H100 with more memory."""
    name = " ".join(word for word in accelerator.name.split() if not _FORM.fullmatch(word))
    return SAME_CHIP.get(name, name)


_FORM = re.compile(r"SXM[0-9]*|PCIe|NVL|[0-9]+GB")


def _of(b: Bench, workload: str) -> Iterator[tuple[Question, Sequence[Reading]]]:
    return ((q, rows) for q, rows in b.questions.items() if q.workload == workload)


def _one_a_card(rows: Sequence[Reading]) -> list[Reading]:
    return list({r.setting.accelerator.id: r for r in reversed(rows)}.values())[::-1]


def _triples(rows: Sequence[Reading]) -> list[tuple[Reading, ...]]:
    every = list(combinations(_one_a_card(rows), 3))
    drawn = np.random.default_rng(SEED).permutation(len(every))[:TRIPLES]
    return [every[place] for place in sorted(drawn.tolist())]


def _asked(
    split: str, model: Model, question: Question, rows: Sequence[Reading], given: Iterable[Sequence[Reading]]
) -> Iterator[Raw]:
    """The rows on other cards than those measured, from each set of measured ones."""
    for measured in given:
        cards = tuple(r.setting.accelerator.id for r in measured)
        own = [replace(r, yours=True) for r in measured]
        targets = [r for r in rows if r.setting.accelerator.id not in cards]
        if not targets:
            continue
        for target, told in zip(targets, answer(model, [t.setting for t in targets], (), own), strict=True):
            if isinstance(told, Told):
                yield _raw(split, question, target, cards, told, measured)


def _raw(
    split: str, question: Question, target: Reading, cards: tuple[str, ...], told: Told, measured: Sequence[Reading]
) -> Raw:
    rate = told.rate_per_s
    rules = naive(target.setting, measured)
    return Raw(split, question, target, cards, told.situation, log(rate.value), rate.log_sd, rules)


# ---- interval factors, and scores ----


def factors(found: Sequence[Raw], without: str = "") -> dict[str, float]:
    """Situation -> factor on the deviation with which 80 % of the rows lie inside, each workload with one weight; from
    other workloads than `without`. Situations with few rows take the factor of all."""
    groups: dict[str, list[Raw]] = defaultdict(list)
    for raw in found:
        if raw.question.workload != without:
            groups[raw.situation.key].append(raw)
    every = _quantile([raw for rows in groups.values() for raw in rows])
    return {key: _quantile(rows) if _enough(rows) else every for key, rows in groups.items()}


LEAST_WORKLOADS = 3


def _enough(rows: Sequence[Raw]) -> bool:
    return len({raw.question.workload for raw in rows}) >= LEAST_WORKLOADS


def _quantile(rows: Sequence[Raw]) -> float:
    """Weighted quantile of |error| / (Z80 · sd) at 80 %."""
    count: dict[str, int] = defaultdict(int)
    for raw in rows:
        count[raw.question.workload] += 1
    ratio = np.array([abs(_error(raw)) / raw.log_sd / Z80 for raw in rows])
    weight = np.array([1 / count[raw.question.workload] for raw in rows])
    order = np.argsort(ratio)
    place = np.searchsorted(np.cumsum(weight[order]), 0.8 * weight.sum())
    return float(ratio[order][min(int(place), len(rows) - 1)])


def _error(raw: Raw) -> float:
    return raw.log_rate - log(raw.reading.samples_per_s)


def scored(found: Sequence[Raw], wanted: Callable[[Raw], bool], every: Sequence[Raw]) -> list[Score]:
    """Scores with intervals whose factors come from other workloads."""
    by = {name: factors(every, name) for name in {raw.question.workload for raw in found}}
    return [_score(raw, by[raw.question.workload].get(raw.situation.key, 1.0)) for raw in found if wanted(raw)]


def _score(raw: Raw, factor: float) -> Score:
    half = Z80 * factor * raw.log_sd
    setting = raw.reading.setting
    return Score(
        truth=raw.reading.samples_per_s,
        predicted=exp(raw.log_rate),
        low=exp(raw.log_rate - half),
        high=exp(raw.log_rate + half),
        naive=raw.naive,
        tags={
            "split": raw.split,
            "workload": raw.question.workload,
            "family": setting.family or "",
            "target": setting.accelerator.id,
            "architecture": setting.accelerator.architecture,
            "precision": raw.question.arithmetic,
            "family_known": "yes" if raw.situation.family_known else "no",
            "card_known": "yes" if raw.situation.card_known else "no",
            "k": str(raw.situation.measured),
            "counted": "yes" if raw.situation.counted else "no",
            "table": "lambda",
        },
    )
