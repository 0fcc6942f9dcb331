"""gpuwise: where to train, what it takes and what it costs.

from datetime import date
from gpuwise import RankRequest, api

ranked = api.rank(RankRequest(workloads=("painter-heavy",)), today=date(2026, 11, 30))
ranked.ranking.candidates[0].cost_usd.interval()
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuwise import api
    from gpuwise.request import (
        AccuracyRequest,
        CeilingsRequest,
        CheckRequest,
        DataRequest,
        DescribeRequest,
        ExplainRequest,
        MeasureRequest,
        RankRequest,
        RunsRequest,
    )

__all__ = [
    "AccuracyRequest", "CeilingsRequest", "CheckRequest", "DataRequest", "DescribeRequest", "ExplainRequest",
    "MeasureRequest", "RankRequest", "RunsRequest", "api",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: `gpuwise --help` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module("gpuwise.api") if name == "api" else getattr(import_module("gpuwise.request"), name)
