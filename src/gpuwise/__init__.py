"""gpuwise: where to train, what it takes and what it costs.

from datetime import date
from gpuwise import RankRequest, rank

ranked = rank(RankRequest(workloads=("painter-heavy",)), today=date(2026, 11, 30))
ranked.ranking.candidates[0].cost_usd.interval()
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuwise.api import data, describe, explain, rank
    from gpuwise.request import DataRequest, DescribeRequest, ExplainRequest, RankRequest

__all__ = ["DataRequest", "DescribeRequest", "ExplainRequest", "RankRequest", "data", "describe", "explain", "rank"]


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: `import gpuwise` itself costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("gpuwise.request" if name.endswith("Request") else "gpuwise.api"), name)
