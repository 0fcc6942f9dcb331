"""What a person can ask: one frozen request type a verb, and how texts become one.

Command line, web form, query string, TOML and the reference page are all derived from the fields of these types.
"""

from gpuwise.request.about import Option, options
from gpuwise.request.billing import without_bill
from gpuwise.request.measuring import CeilingsRequest, CheckRequest, MeasureRequest, RunsRequest
from gpuwise.request.offers import OfferFilters
from gpuwise.request.owning import ExitRequest, OwnFilters, OwnRequest, Promised, Said, Throughput
from gpuwise.request.reading import KINDS, at, parse
from gpuwise.request.types import (
    CHOICES,
    GROUPS,
    VERBS,
    AccuracyRequest,
    DataRequest,
    DescribeRequest,
    ExplainRequest,
    JobFilters,
    RankRequest,
    Takes,
)
from gpuwise.request.usage import BillRequest
from gpuwise.request.wishes import refuse_passed

__all__ = [
    "CHOICES",
    "GROUPS",
    "KINDS",
    "VERBS",
    "AccuracyRequest",
    "BillRequest",
    "CeilingsRequest",
    "CheckRequest",
    "DataRequest",
    "DescribeRequest",
    "ExitRequest",
    "ExplainRequest",
    "JobFilters",
    "MeasureRequest",
    "OfferFilters",
    "Option",
    "OwnFilters",
    "OwnRequest",
    "Promised",
    "RankRequest",
    "RunsRequest",
    "Said",
    "Takes",
    "Throughput",
    "at",
    "options",
    "parse",
    "refuse_passed",
    "without_bill",
]
