"""What the product answers about the frozen offers: `rank` for each job, precision, way of loading and busy hours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path

from gpuwise.api.world import World, workload_of
from gpuwise.estimate import Estimate
from gpuwise.model import Candidate, Exclusion, Offer, Prediction, Workload
from gpuwise.rank import rank
from gpuwise.request import RankRequest

OFFERS = Path(__file__).parents[2] / "tests" / "reference" / "founding" / "offers.csv"
DAY = date(2026, 11, 30)
ALL_AGES_DAYS = 36500
"""Each price holds at its own date, so that none is too old."""

JOBS = {"light": "painter-light", "heavy": "painter-heavy"}
PRECISIONS = ("fp32", "amp")
LOADING_S = {"copies": None, "fast loader": 0.008, "slow loader": 0.035}
"""CPU time to load an image. Copies of the size that is trained on: not measured. Scans of 2,000 × 1,600 pixels: the
ends of what was measured, by loader (note of `image_load_s` in assumptions.toml). That scans are so large: assumed."""

HOURS = (200, 400, 730)
"""Busy hours a month."""

K80, T4, V100 = "k80-2026", "t4-2022", "v100-2026"
COLAB, COLAB_FREE = "colab-paid-2023", "colab-free"
ONE, THREE, VDS = "1080ti-physical-1", "1080ti-physical-3", "1080ti-vds-1"
"""Ids of offers.csv."""


@dataclass(frozen=True, slots=True)
class Case:
    """One job in one arithmetic, with one way of loading."""

    job: str
    precision: str
    loading: str = "copies"

    @property
    def name(self) -> str:
        return f"{self.job}, {self.precision}"


CASES = tuple(Case(job, precision) for precision, job in product(PRECISIONS, JOBS))


@cache
def _world(precision: str) -> World:
    return World.of(_request(precision), [_job(Case(job, precision)) for job in JOBS], DAY)


def _request(precision: str, hours: float | None = None) -> RankRequest:
    return RankRequest(
        workloads=tuple(JOBS.values()),
        offers=(str(OFFERS),),
        only_offers=True,
        as_of=DAY,
        max_age_days=ALL_AGES_DAYS,
        precision=precision,
        hours_per_month=hours,
        limit=None,
    )


def _job(case: Case) -> Workload:
    return workload_of(JOBS[case.job], _request(case.precision))


@cache
def candidates(case: Case, hours: float | None = None) -> Mapping[str, Candidate]:
    """Every offer that is left, by its id."""
    world, job = _world(case.precision), replace(_job(case), decode_s=LOADING_S[case.loading])
    ranking = rank(world.offers, [job], _request(case.precision, hours), world.context)
    return {candidate.offer.id: candidate for candidate in ranking.candidates}


def exclusions() -> Iterator[Exclusion]:
    """Offers that a newer price of the same offer replaces."""
    case = CASES[0]
    world, request = _world(case.precision), _request(case.precision)
    yield from rank(world.offers, [_job(case)], request, world.context).exclusions


def all_offers() -> list[Offer]:
    """Every row of the frozen file, as the product reads it."""
    offers = _world(CASES[0].precision).offers
    return [offers.offer(row) for row in range(len(offers))]


def prediction(case: Case, offer: str) -> Prediction:
    return candidates(case)[offer].prediction


def rate(case: Case, offer: str) -> Estimate:
    """Samples a second of this offer, under what its host lets through."""
    return candidates(case)[offer].prediction.throughput_per_s


def bill(case: Case, offer: str) -> Estimate:
    """USD for this job alone."""
    found = candidates(case)[offer].cost_usd
    assert found is not None
    return found


def share(case: Case, offer: str, hours: float) -> Estimate:
    """USD of a month's rent that this job takes, with so many busy hours a month."""
    found = candidates(case, hours)[offer].cost_share_usd
    assert found is not None
    return found


def limits(case: Case, offer: str) -> tuple[str, ...]:
    """What the product remarks about the host of this offer."""
    return tuple(str(m) for m in candidates(case)[offer].marks if "limit" in str(m))
