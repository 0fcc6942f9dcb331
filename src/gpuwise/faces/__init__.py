"""What each verb answers, in every form: the one place that command line and web ask, so that both say the same.

A verb's own modules are imported when it is asked, so that a short question starts fast.
"""

from __future__ import annotations

from datetime import date

from gpuwise.faces.answer import Answer
from gpuwise.request import DataRequest, DescribeRequest, ExplainRequest, RankRequest

__all__ = ["Answer", "data", "data_version", "describe", "explain", "rank", "usd_per"]


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


def data(request: DataRequest, *, today: date) -> Answer:
    """What are the facts?"""
    from gpuwise.faces import facts

    return facts.data(request, today)


def data_version() -> str:
    """The version of the bundled data."""
    from gpuwise.store import package

    return package.version()


def usd_per(code: str) -> float:
    """USD for one unit of a currency, at its dated rate; UnknownName for one without."""
    from gpuwise.api.world import currency

    rate = currency(code)
    return 1.0 if rate is None else rate.usd_per_unit
