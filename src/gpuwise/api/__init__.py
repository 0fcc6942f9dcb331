"""One function a verb: the only place where what is read meets what is computed.

Each takes its request and today's date and gives back a plain result; `faces` turns results into pages and documents.
"""

from gpuwise.api.data import Checked, Compared, Listed, Named, Refreshed, data
from gpuwise.api.jobs import Described, Explained, Ranked, describe, explain, rank
from gpuwise.api.world import data_version, usd_per

__all__ = [
    "Checked",
    "Compared",
    "Described",
    "Explained",
    "Listed",
    "Named",
    "Ranked",
    "Refreshed",
    "data",
    "data_version",
    "describe",
    "explain",
    "rank",
    "usd_per",
]
