"""How wrong is memory at a batch that was left out? Over `memory.csv`, whose runs were tuned to fill their cards.

Readings of one workload, arithmetic and class of card (before Ampere, or Ampere: their containers differ too) are a
group. Each of its batches is left out in turn, with every row that has it, and told from the others by `line`, the
function that answers for a person's own runs. What is fixed is thought to be as in the workload's other groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from gpuwise.estimate import Estimate
from gpuwise.memory import MemoryReading
from gpuwise.model import Accelerator, Assumptions
from gpuwise.predict.memory import Readings, usable_gib, verdict
from gpuwise.predict.memory_line import Fixed, line
from gpuwise.predict.score import Score
from gpuwise.units import Fraction

ANY = Fixed(gib=2.0, sd_gib=4.0)
"""Of a job of which nothing is known: context and workspaces of 0.5 to 2 GiB, and some states."""
KIN_SD_GIB = 1.0
"""Of one workload, between arithmetics and classes of cards."""
BEFORE_AMPERE = ("ngc-pytorch-1.4",)


@dataclass(frozen=True, slots=True)
class Group:
    """Readings of one workload in one arithmetic on one class of cards."""

    workload: str
    precision: str
    before_ampere: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One reading that was left out, and what the others of its group say of its batch."""

    group: Group
    reading: MemoryReading
    need: Estimate
    given: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Would it fit? Of each batch that was left out, on each card that the table has for its workload.

    doubtful: share of these questions. refused_wrongly: share of the runs there were (they fitted) that are said not to
    fit. fits_wrongly: share of the answers "fits" on a card smaller than what the run took elsewhere.
    """

    questions: int
    doubtful: Fraction
    refused_wrongly: Fraction
    fits_wrongly: Fraction


def memory_scores(rows: Readings, *, given: int | None = None) -> list[Score]:
    """Every row, left out with its batch, in GiB. given: so many of the nearest batches are known, None: all others.

    naive: `proportional`: the nearest batch that was seen, in proportion. Tags: workload, precision, card, k (batches
    given).
    """
    return [_score(told, rows) for told in left_out(rows, given=given)]


def left_out(rows: Readings, *, given: int | None = None) -> Iterator[Told]:
    """See `memory_scores`. A batch without any other in its group is not asked."""
    groups = _groups(rows)
    for group, members in groups.items():
        fixed = ANY if given else _as_kin(group, groups)
        for batch in sorted({r.batch_per_accelerator for r in members}):
            others = _nearest([r for r in members if r.batch_per_accelerator != batch], batch, given)
            if others:
                need = line(_seen(others), fixed).at(batch)
                count = len({r.batch_per_accelerator for r in others})
                for reading in (r for r in members if r.batch_per_accelerator == batch):
                    yield Told(group=group, reading=reading, need=need, given=count)


def verdicts(rows: Readings, accelerators: Mapping[str, Accelerator], assumptions: Assumptions) -> Verdicts:
    """See `Verdicts`. One question for each group, batch and card; a batch that several machines ran is asked once."""
    asked: dict[tuple[Group, int, str], str] = {}
    ran: dict[tuple[Group, int, str], bool] = {}
    too_small: list[bool] = []
    cards = {name: {r.accelerator for r in found if r.accelerator} for name, found in rows.items()}
    for told in left_out(rows):
        for card in cards[told.group.workload]:
            key = (told.group, told.reading.batch_per_accelerator, card)
            usable = usable_gib(accelerators[card], assumptions)
            asked[key] = said = verdict(told.need.interval(), usable)
            ran[key] = ran.get(key, False) or card == told.reading.accelerator
            if said == "fits":
                too_small.append(told.reading.used_gib > usable)
    there = [key for key, was in ran.items() if was]
    return Verdicts(
        questions=len(asked),
        doubtful=fmean(said == "doubtful" for said in asked.values()),
        refused_wrongly=fmean(asked[key] == "does_not_fit" for key in there),
        fits_wrongly=fmean(too_small) if too_small else 0.0,
    )


def _groups(rows: Readings) -> dict[Group, list[MemoryReading]]:
    groups: dict[Group, list[MemoryReading]] = {}
    for workload, readings in rows.items():
        for reading in readings:
            group = Group(workload, reading.precision, reading.software in BEFORE_AMPERE)
            groups.setdefault(group, []).append(reading)
    return groups


def _as_kin(group: Group, groups: Mapping[Group, Sequence[MemoryReading]]) -> Fixed:
    """The mean of the workload's other groups; a group of one batch says nothing about it."""
    kin = [
        line(_seen(members), ANY).fixed_gib
        for other, members in groups.items()
        if other.workload == group.workload and other != group and len({r.batch_per_accelerator for r in members}) > 1
    ]
    return Fixed(gib=fmean(kin), sd_gib=KIN_SD_GIB) if kin else ANY


def _nearest(readings: Sequence[MemoryReading], batch: int, given: int | None) -> list[MemoryReading]:
    """Readings at the `given` batches nearest in ratio, or all."""
    batches = sorted({r.batch_per_accelerator for r in readings}, key=lambda b: (max(b / batch, batch / b), b))
    kept = frozenset(batches[:given])
    return [r for r in readings if r.batch_per_accelerator in kept]


def _seen(readings: Sequence[MemoryReading]) -> list[tuple[float, float]]:
    return [(float(r.batch_per_accelerator), r.used_gib) for r in readings]


def _score(told: Told, rows: Readings) -> Score:
    inside, reading, group = told.need.interval(), told.reading, told.group
    others = [r for r in _groups({group.workload: rows[group.workload]})[group]
              if r.batch_per_accelerator != reading.batch_per_accelerator]  # fmt: skip
    nearest = _nearest(others, reading.batch_per_accelerator, 1)[0]
    return Score(
        truth=reading.used_gib,
        predicted=inside.value,
        low=inside.low,
        high=inside.high,
        naive={"proportional": nearest.used_gib * reading.batch_per_accelerator / nearest.batch_per_accelerator},
        tags={
            "workload": group.workload,
            "precision": group.precision,
            "card": reading.accelerator or "",
            "k": str(told.given),
        },
    )
