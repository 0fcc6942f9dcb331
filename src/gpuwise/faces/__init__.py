"""What each verb answers, in every form: the one place that command line and web ask, so that both say the same.

A verb's own modules are imported when it is asked, so that a short question starts fast.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from gpuwise.errors import Message
from gpuwise.faces.answer import Answer
from gpuwise.request import (
    AccuracyRequest,
    BillRequest,
    CeilingsRequest,
    CheckRequest,
    DataRequest,
    DescribeRequest,
    ExitRequest,
    ExplainRequest,
    MeasureRequest,
    OwnRequest,
    RankRequest,
    RunsRequest,
)

__all__ = [
    "Answer", "accuracy", "bill", "ceilings", "check", "data", "data_version", "describe", "exit", "explain", "keep",
    "measure",
    "own", "rank", "runs", "usd_per",
]  # fmt: skip
Tell = Callable[[Message], None]


def rank(request: RankRequest, *, today: date) -> Answer:
    """Where should these jobs run?"""
    from gpuwise.faces import jobs

    return jobs.rank(request, today)


def explain(request: ExplainRequest, *, today: date) -> Answer:
    """Why do you think so?"""
    from gpuwise.faces import jobs

    return jobs.explain(request, today)


def describe(request: DescribeRequest, *, today: date) -> Answer:
    """What does this training job consist of?"""
    from gpuwise.faces import jobs

    return jobs.describe(request, today)


def _silent(_progress: Message) -> None:
    """Nobody wants to know how far it is."""


def measure(request: MeasureRequest, *, today: date, tell: Tell = _silent) -> Answer:
    """How fast does it train here, and what holds it back? tell: takes lines of progress."""
    from gpuwise.faces import measuring

    return measuring.measure(request, today, tell)


def runs(request: RunsRequest, *, today: date) -> Answer:
    """What was measured?"""
    from gpuwise.faces import measuring

    return measuring.runs(request, today)


def keep(data: object) -> int:
    """A record of a run, as `measure --out` writes it, into the store; its number, once it is there for good."""
    from gpuwise.api import measuring

    return measuring.keep(data)


def ceilings(request: CeilingsRequest, *, today: date, tell: Tell = _silent) -> Answer:
    """What can this machine do at best?"""
    from gpuwise.faces import machine

    return machine.ceilings(request, today, tell)


def check(request: CheckRequest, *, today: date, tell: Tell = _silent) -> Answer:
    """Is this machine ready?"""
    from gpuwise.faces import machine

    return machine.check(request, today, tell)


def data(request: DataRequest, *, today: date) -> Answer:
    """What are the facts?"""
    from gpuwise.faces import facts

    return facts.data(request, today)


def accuracy(request: AccuracyRequest, *, today: date, tell: Tell = _silent) -> Answer:
    """May I trust you?"""
    from gpuwise.faces import trust

    return trust.accuracy(request, today, tell)


def bill(request: BillRequest, *, today: date) -> Answer:
    """What did it cost?"""
    from gpuwise.faces import usage

    return usage.bill(request, today)


def own(request: OwnRequest, *, today: date) -> Answer:
    """Own or rent?"""
    from gpuwise.faces import owning

    return owning.own(request, today)


def exit(request: ExitRequest, *, today: date) -> Answer:  # noqa: A001 - the verb's name
    """When to leave the cloud?"""
    from gpuwise.faces import leaving

    return leaving.leave(request, today)


def data_version() -> str:
    """The version of the bundled data."""
    from gpuwise.store import package

    return package.version()


def usd_per(code: str) -> float:
    """USD for one unit of a currency, at its dated rate; UnknownName for one without."""
    from gpuwise.api.world import currency

    rate = currency(code)
    return 1.0 if rate is None else rate.usd_per_unit
