"""Which tests are like the situation of a ranking: what was measured, and whether the tables have the cards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from gpuwise.model import Measurement, Ranking, Workload
from gpuwise.predict.tested import Result, Tested, in_tests


def situations(
    ranking: Ranking,
    runs: Sequence[Measurement],
    cards: Collection[str],
    results: Mapping[str, Result],
    listed: Collection[str] = (),
) -> tuple[Tested, ...]:
    """What tests found in the situations of these candidates, each once; the commonest first.

    runs: the person's own. cards: those that the tables have. results: of `accuracy`. listed: workloads that the tables
    have on many cards. Only training was tested.
    """
    found: dict[str, Tested] = {}
    for workload in (w for w in ranking.workloads if w.mode == "train"):
        measured = len(set(_measured_on(workload, runs)))
        for known in _known(ranking, workload, cards):
            one = in_tests(results, measured=measured, card_known=known, in_tables=workload.name in listed)
            if one is not None:
                found.setdefault(one.split, one)
    return tuple(found.values())


def _measured_on(workload: Workload, runs: Sequence[Measurement]) -> Iterator[str]:
    """The GPUs on which the person measured this very workload."""
    for run in runs:
        named = run.workload in (workload.name, *workload.measured_as)
        if named and run.device == "gpu" and run.accelerator is not None and run.samples_per_s is not None:
            yield run.accelerator


def _known(ranking: Ranking, workload: Workload, cards: Collection[str]) -> list[bool]:
    """Have the tables the card? For each answer that a candidate gives, the commoner one first."""
    offers = [c.offer.accelerator.split("|") for c in ranking.candidates if c.workload == workload.name]
    answers = [all(card in cards for card in names) for names in offers]
    return sorted(set(answers), key=lambda known: -answers.count(known))
