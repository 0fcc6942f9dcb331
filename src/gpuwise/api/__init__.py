"""One function a verb: the only place where what is read meets what is computed.

Each takes its request and today's date and gives back a plain result; `faces` turns results into pages and documents.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuwise.api.facts import data
    from gpuwise.api.jobs import describe, explain, rank
    from gpuwise.api.machine import ceilings, check
    from gpuwise.api.measuring import measure, runs
    from gpuwise.api.trust import accuracy
    from gpuwise.api.usage import bill

__all__ = ["accuracy", "bill", "ceilings", "check", "data", "describe", "explain", "measure", "rank", "runs"]

_MODULES = {
    "accuracy": "gpuwise.api.trust",
    "bill": "gpuwise.api.usage",
    "ceilings": "gpuwise.api.machine",
    "check": "gpuwise.api.machine",
    "measure": "gpuwise.api.measuring",
    "runs": "gpuwise.api.measuring",
    "data": "gpuwise.api.facts",
    "describe": "gpuwise.api.jobs",
    "explain": "gpuwise.api.jobs",
    "rank": "gpuwise.api.jobs",
}


def __getattr__(name: str) -> Any:
    """A verb, imported when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
