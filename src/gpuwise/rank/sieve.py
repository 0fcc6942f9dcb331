"""Rules applied to a catalogue: who is left, who was left out and by what, and what would let one more in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue
from gpuwise.model import Exclusion, Relaxation
from gpuwise.rank.rules import Mask, Rule

Rows = NDArray[np.intp]
NEAREST = 200
"""So many of the offers nearest to passing are asked whether they could run the job at all."""


@dataclass(frozen=True, slots=True, eq=False)
class Sieve:
    """failing: rules × n. first: the first rule an offer fails, len(rules) for those left. workload: None for all."""

    offers: Catalogue
    rules: Sequence[Rule]
    workload: str | None
    failing: NDArray[np.bool_]
    first: Rows

    @property
    def alive(self) -> Mask:
        return np.asarray(self.first == len(self.rules))

    def excluded(self) -> Iterator[Exclusion]:
        for row in map(int, np.flatnonzero(~self.alive)):
            rule = self.rules[self.first[row]]
            yield Exclusion(
                offer_id=self.offers.offer_id(row), workload=self.workload, rule=rule.name, reason=rule.reason(row)
            )

    def counts(self) -> Counter[str]:
        """Rule -> offers of which it is the first reason."""
        numbers = np.bincount(self.first, minlength=len(self.rules))
        return Counter({rule.name: int(n) for rule, n in zip(self.rules, numbers, strict=False) if n})

    def funnel(self) -> tuple[tuple[str, int], ...]:
        """Offers left after each rule that took any, in order."""
        left, steps = len(self.offers), [("offers", len(self.offers))]
        for name, taken in self.counts().items():
            left -= taken
            steps.append((name, left))
        return tuple(steps)

    def relaxations(self, could_run: Callable[[Rows], Mask] | None) -> Iterator[Relaxation]:
        """For each filter, the change that admits the nearest offer which only it keeps out, and how many it admits.

        could_run: which rows could run the job.
        """
        alone = self.failing.sum(axis=0, dtype=np.int32) == 1
        for rule, fails in zip(self.rules, self.failing, strict=True):
            if rule.distance is None or rule.change is None:
                continue
            rows = np.flatnonzero(fails & alone & ~np.isnan(rule.distance))
            rows = rows[np.argsort(rule.distance[rows], kind="stable")][:NEAREST]
            if could_run is not None and len(rows):
                rows = rows[could_run(rows)]
            if len(rows):
                change = rule.change(int(rows[0]))
                nearest = rows[rule.distance[rows] <= rule.distance[rows[0]]]
                admits = sum(rule.change(int(row)) == change for row in nearest)
                offer_id = self.offers.offer_id(int(rows[0]))
                yield Relaxation(rule=rule.name, admits=admits, offer_id=offer_id, change=change)


def sieve(offers: Catalogue, rules: Sequence[Rule], workload: str | None = None) -> Sieve:
    failing = np.stack([r.fails for r in rules]) if rules else np.zeros((0, len(offers)), bool)
    closed = np.vstack([failing, np.ones((1, len(offers)), bool)])
    return Sieve(offers, rules, workload, failing, closed.argmax(axis=0))


class Exclusions(Sequence[Exclusion]):
    """Every exclusion, made when it is looked at: a catalogue of 100,000 rows costs nothing until then."""

    def __init__(self, sieves: Sequence[Sieve]) -> None:
        self._sieves = tuple(sieves)

    def __len__(self) -> int:
        return sum(int((~s.alive).sum()) for s in self._sieves)

    def __iter__(self) -> Iterator[Exclusion]:
        return chain.from_iterable(s.excluded() for s in self._sieves)

    @overload
    def __getitem__(self, index: int) -> Exclusion: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Exclusion]: ...
    def __getitem__(self, index: int | slice) -> Exclusion | Sequence[Exclusion]:
        return tuple(self)[index]
