"""One job on 1, 2, 4 and 8 of a GPU: what each added card brings, and N jobs side by side or one after another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpuwise.errors import Message
from gpuwise.estimate import Estimate
from gpuwise.model import Candidate, Prediction, Refusal, Workload
from gpuwise.predict.target import samples_needed

NUMBERS = (1, 2, 4, 8)
"""So many cards of one kind are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """So many cards of one kind. reasons say why a figure is None, by its name.

    time_s: of one job, without preparation. added_fraction: what each card beside those of the row before brings, as a
    share of what one card does alone; a job that gets slower has a negative one. candidate: the cheapest offer with
    just so many. side_by_side_s, together_s: as many jobs as cards, one on each card, or one after another on all of
    them, without preparation. side_by_side_usd: on as many of the cheapest single offers; together_usd: on the offer.
    """

    accelerators: int
    prediction: Prediction | Refusal
    time_s: Estimate | None = None
    added_fraction: float | None = None
    candidate: Candidate | None = None
    side_by_side_s: float | None = None
    together_s: float | None = None
    side_by_side_usd: float | None = None
    together_usd: float | None = None
    reasons: dict[str, Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What is known of one number: its prediction, the cheapest offer for one job, and for as many jobs as cards."""

    prediction: Prediction | Refusal
    one_job: Candidate | None
    all_jobs: Candidate | None


NO_OFFER = Message("no offer with just so many is left")
NO_SINGLE = Message("no offer with a single one is left")
NO_LENGTH = Message("nothing says how long the job is")
THE_ONE = Message("one card is what the others are compared with")
UNTOLD = Message("the speed of fewer cards is not known")


def several(workload: Workload, priced: Iterable[Priced]) -> tuple[Several, ...]:
    """In the order given, the smallest number first."""
    rows: list[Several] = []
    for known in priced:
        told = [row for row in rows if isinstance(row.prediction, Prediction)]
        single = rows[0] if rows and rows[0].accelerators == 1 else None
        rows.append(_row(workload, known, told[-1] if told else None, single))
    return tuple(rows)


def _row(workload: Workload, known: Priced, before: Several | None, single: Several | None) -> Several:
    """before: the row of the next smaller number with a prediction. single: that of one card."""
    answer = known.prediction
    n, time = answer.accelerators, _time(workload, answer)
    single_usd, alone_s = _usd(single.candidate) if single else None, single.time_s if single else None
    row = Several(
        accelerators=n,
        prediction=answer,
        time_s=time,
        added_fraction=_added(answer, before, single),
        candidate=known.one_job,
        side_by_side_s=alone_s.value if alone_s else None,
        together_s=n * time.value if time and n > 1 else None,
        side_by_side_usd=None if single_usd is None else n * single_usd,
        together_usd=_usd(known.all_jobs),
        reasons={},
    )
    return replace(row, reasons=_reasons(workload, row))


def _time(workload: Workload, answer: Prediction | Refusal) -> Estimate | None:
    if isinstance(answer, Refusal) or workload.undecided:
        return None
    return samples_needed(workload, answer.accelerators) / answer.throughput_per_s


def _reasons(workload: Workload, row: Several) -> dict[str, Message]:
    """Why each figure that is None is not known."""
    slow = row.prediction.reason if isinstance(row.prediction, Refusal) else NO_LENGTH
    why = {
        "time_s": slow,
        "candidate": slow if workload.undecided else NO_OFFER,
        "added_fraction": slow if isinstance(row.prediction, Refusal) else UNTOLD,
        "side_by_side_s": NO_LENGTH if workload.undecided else UNTOLD,
        "together_s": slow,
        "side_by_side_usd": NO_SINGLE,
        "together_usd": NO_OFFER,
    }
    compared = ("added_fraction", "side_by_side_s", "together_s", "side_by_side_usd", "together_usd")
    why |= dict.fromkeys(compared, THE_ONE) if row.accelerators == 1 else {}
    return {name: reason for name, reason in why.items() if getattr(row, name) is None}


def _usd(candidate: Candidate | None) -> float | None:
    return candidate.cost_usd.value if candidate and candidate.cost_usd else None


def _added(answer: Prediction | Refusal, before: Several | None, single: Several | None) -> float | None:
    if before is None or single is None or isinstance(answer, Refusal):
        return None
    if isinstance(before.prediction, Refusal) or isinstance(single.prediction, Refusal):
        return None
    more = answer.throughput_per_s.value - before.prediction.throughput_per_s.value
    return more / ((answer.accelerators - before.accelerators) * single.prediction.throughput_per_s.value)
