"""Scores of splits A to F, I, J, L and M, from what `splits` predicts; and split E, with the table of many networks.

`Draw` with a number takes the shipped scales instead of new ones (quick, for the ratchet of the tests; the scales have
seen the rows then, the coefficients have not).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from math import exp, log
from statistics import median

import numpy as np

from gpuwise.predict.answer import Model, Told, answer
from gpuwise.predict.cells import canonical, source
from gpuwise.predict.fit import Design, fit_scales, posterior, usable
from gpuwise.predict.gp import Scales
from gpuwise.predict.roofline import Work, ideal_seconds, rates
from gpuwise.predict.rows import readings
from gpuwise.predict.score import Score
from gpuwise.predict.setting import Reading, Setting
from gpuwise.predict.splits import (
    FAMILIES,
    ITERATIONS,
    NOT_BOUND,
    SEED,
    Question,
    Raw,
    bench,
    card_folds,
    card_unknown,
    family_known,
    family_unknown,
    raws,
    scored,
    workload_known,
)
from gpuwise.predict.tables import Draw, Tables, drawn
from gpuwise.units import SECONDS_PER_HOUR

Scoring = Callable[[Tables, Draw], list[Score]]


def of_split(*names: str, bound: bool = True) -> Scoring:
    """The scoring function of these splits."""

    def scores(tables: Tables, draw: Draw) -> list[Score]:
        every = found(tables, draw)
        wanted = [r for r in every if r.split in names and not (bound and r.question.workload in NOT_BOUND)]
        return drawn(scored(wanted, lambda _: True, every), draw)

    return scores


def found(tables: Tables, draw: Draw) -> Sequence[Raw]:
    """All predictions, or those of a few families and cards with the shipped scales."""
    return raws(tables) if draw.most is None else quick(tables, draw.seed)


@lru_cache(maxsize=1)
def quick(tables: Tables, seed: int) -> tuple[Raw, ...]:
    """Known cards in full, and one fold of unknown ones, by the seed."""
    assert tables.model is not None
    b, scales = bench(tables), tables.model.posterior.scales
    design, folds = b.design(), card_folds(b)
    cards = folds[seed % len(folds)]
    without = b.design(cards)
    parts = [
        raw
        for family in FAMILIES
        for raw in (
            *family_known(b, design, family, scales),
            *family_unknown(b, design, family, scales),
            *card_unknown(b, without, family, scales, cards),
        )
    ]
    return (*parts, *workload_known(b, without, scales, cards))


# ---- M: beside the roofline with one efficiency for all ----


def nothing_measured(tables: Tables, draw: Draw) -> list[Score]:
    """Split M, with the classic roofline at the median efficiency of the other workloads as its naive rule."""
    every = found(tables, draw)
    wanted = [r for r in every if r.split == "M" and r.question.workload not in NOT_BOUND]
    reached = {(r.question.workload, r.reading): _efficiency(r.reading) for r in wanted}
    beside = []
    for raw in wanted:
        others = [e for (name, _), e in reached.items() if name != raw.question.workload and e is not None]
        here = _ideal(raw.reading.setting)
        beside.append(raw._replace(naive={"roofline": median(others) * here} if others and here else {}))
    return drawn(scored(beside, lambda _: True, every), draw)


def _ideal(setting: Setting) -> float | None:
    """samples/s that the data sheet allows."""
    on = rates(setting.accelerator, setting.arithmetic)
    return None if setting.work is None or on is None else 1 / ideal_seconds(setting.work, on)


def _efficiency(reading: Reading) -> float | None:
    ideal = _ideal(reading.setting)
    return None if ideal is None else reading.samples_per_s / ideal


# ---- J: which card is the cheapest ----

CLEAR = 1.1
"""Pairs of cards whose real costs are at least so far apart should come out in the right order."""


def cheapest(tables: Tables, draw: Draw) -> list[Score]:
    """Real cost of the card that is called cheapest (predicted) beside that of the cheapest one (truth), in USD for
    10^6 samples: one card measured, GPU-bound."""
    return drawn([_choice(cards) for cards in _costs(tables, draw) if len(cards.real) > 1], draw)


def in_order(tables: Tables, _scores: Sequence[Score]) -> Mapping[str, float]:
    """Share of the clear pairs that come out in the right order."""
    right = [
        (cards.real[a] < cards.real[b]) == (cards.told[a] < cards.told[b])
        for cards in _costs(tables, Draw())
        for a, b in combinations(sorted(cards.real), 2)
        if max(cards.real[a] / cards.real[b], cards.real[b] / cards.real[a]) >= CLEAR
    ]
    return {"pairs_in_order_percent": 100 * float(np.mean(right))} if right else {}


class Costs:
    """USD for 10^6 samples by card, of one question and one measured card."""

    def __init__(self, question: Question, measured: str) -> None:
        self.question, self.measured = question, measured
        self.real: dict[str, float] = {}
        self.told: dict[str, float] = {}
        self.naive: dict[str, dict[str, float]] = defaultdict(dict)

    def add(
        self, card: str, usd_per_hour: float, real_per_s: float, told_per_s: float, rules: Mapping[str, float]
    ) -> None:
        """Of several batches of a card, the one that is said to be the cheapest."""
        usd = usd_per_hour / SECONDS_PER_HOUR * 1e6
        if card in self.told and usd / told_per_s >= self.told[card]:
            return
        self.real[card], self.told[card] = usd / real_per_s, usd / told_per_s
        for rule, rate in rules.items():
            self.naive[rule][card] = usd / rate


def _costs(tables: Tables, draw: Draw) -> list[Costs]:
    groups: dict[tuple[Question, str], Costs] = {}
    by_card = {(r.question, r.reading.setting.accelerator.id): r for r in found(tables, draw) if r.split == "M"}
    for raw in found(tables, draw):
        if raw.split != "A" or raw.question.workload in NOT_BOUND:
            continue
        key, card = (raw.question, raw.source[0]), raw.reading.setting.accelerator.id
        costs = groups.setdefault(key, Costs(*key))
        if card in tables.usd_per_hour:
            rules, real = raw.naive, raw.reading.samples_per_s
            costs.add(card, tables.usd_per_hour[card], real, exp(raw.log_rate), rules)
    for (question, card), costs in groups.items():
        if card in tables.usd_per_hour and (question, card) in by_card:
            own = by_card[question, card].reading.samples_per_s
            costs.add(card, tables.usd_per_hour[card], own, own, dict.fromkeys(costs.naive, own))
    return list(groups.values())


def _choice(cards: Costs) -> Score:
    best = min(cards.real.values())

    def paid(told: Mapping[str, float]) -> float:
        return cards.real[min(told, key=lambda card: told[card])]

    return Score(
        truth=best,
        predicted=paid(cards.told),
        naive={rule: paid(told) for rule, told in cards.naive.items()},
        tags={"workload": cards.question.workload, "precision": cards.question.arithmetic, "k": "1"},
    )


# ---- E: many networks on one card, the family out ----

E_FOLDS = 8
PREFIXES = ("tf_", "tv_", "gluon_", "ig_", "ssl_", "swsl_", "adv_", "ens_", "eca_", "jx_", "legacy_", "gc")


def stem(workload: str) -> str:
    """The family by name: efficientnet of tf_efficientnetv2_b0."""
    name = workload.partition("@")[0]
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    found = re.match(r"[a-z]+", name)
    return found[0][:6] if found else name


def many_networks(tables: Tables, draw: Draw) -> list[Score]:
    """Split E: training rows of timm on one card, all networks whose name begins alike out."""
    chosen = _networks(tables, draw.most is not None)
    return drawn(list(chosen), draw)


@lru_cache(maxsize=2)
def _networks(tables: Tables, quickly: bool) -> tuple[Score, ...]:
    b = bench(tables)
    train = usable(readings(tables.rows, tables.accelerators, tables.counts))
    design = Design.of(_joined(train, b.readings), b.basis)
    stems = sorted({stem(r.setting.workload) for r in train if source(r.setting) == "timm"})
    mixed = np.random.default_rng(SEED).permutation(stems).tolist()
    folds = [set(mixed[fold::E_FOLDS]) for fold in range(E_FOLDS)][: 2 if quickly else E_FOLDS]
    shipped = tables.model.posterior.scales if quickly and tables.model else None
    told = [pair for fold in folds for pair in _fold(design, train, fold, shipped)]
    return tuple(_of_network(r, t, _factor(told, r)) for r, t in told)


def _joined(train: Sequence[Reading], more: Iterable[Reading]) -> list[Reading]:
    """All training rows of the table, and the inference rows that take part in fits."""
    return [*train, *(r for r in more if r.setting.mode == "infer")]


def _fold(
    design: Design, train: Sequence[Reading], fold: set[str], scales: Scales | None
) -> Iterator[tuple[Reading, Told]]:
    twins = {_counted(r.setting.work) for r in train if stem(r.setting.workload) in fold and r.setting.work}
    alike = {canonical(r.setting.workload) for r in train if r.setting.work and _counted(r.setting.work) in twins}
    out = [name for name in design.workloads if stem(name) in fold or name in alike]
    left = design.without(out)
    model = Model(posterior=posterior(left, scales or fit_scales(left, ITERATIONS)), factors={})
    for r in train:
        wanted = source(r.setting) == "timm" and stem(r.setting.workload) in fold and r.setting.work is not None
        if wanted and r.setting.memory_format == "nchw":
            (told,) = answer(model, [r.setting])
            if isinstance(told, Told):
                yield r, told


def _counted(work: Work) -> tuple[float, float]:
    """Networks with equal figures are one network under two names."""
    return round(work.gmacs, 2), round(work.activations_m, 2)


def _factor(told: Sequence[tuple[Reading, Told]], reading: Reading) -> float:
    """Interval factor from the other families."""
    own = stem(reading.setting.workload)
    ratio = [_ratio(r, t) for r, t in told if stem(r.setting.workload) != own]
    return float(np.quantile(ratio, 0.8)) if ratio else 1.0


def _ratio(reading: Reading, told: Told) -> float:
    interval = told.rate_per_s.interval()
    return abs(log(told.rate_per_s.value / reading.samples_per_s)) / log(interval.high / interval.value)


def _of_network(reading: Reading, told: Told, factor: float) -> Score:
    rate = told.rate_per_s
    widened = replace(rate, spread=tuple((name, sd * factor) for name, sd in rate.spread)).interval()
    return Score(
        truth=reading.samples_per_s,
        predicted=rate.value,
        low=widened.low,
        high=widened.high,
        tags={"family": reading.setting.family or "", "stem": stem(reading.setting.workload), "table": "timm"},
    )


SCORINGS: Mapping[str, Scoring] = {
    "A": of_split("A"),
    "B": of_split("B"),
    "C": of_split("C"),
    "D": of_split("D"),
    "E": many_networks,
    "F": of_split("F"),
    "I": of_split("A", "B", "C", "D", "D3", "F", "L", "M", "U", bound=False),
    "J": cheapest,
    "L": of_split("L"),
    "U": of_split("U"),
    "M": nothing_measured,
}
"""Split -> how it is scored."""
