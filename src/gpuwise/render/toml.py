"""A workload as a TOML file, which `rank` and `explain` read back."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import date

from gpuwise.model import Workload

_KEPT_APART = ("assumed", "source", "reasons")


def workload_toml(workload: Workload) -> str:
    """The workload as TOML. What is not known is left out; what is assumed is listed under [assumed]."""
    lines = [f"{f.name} = {_value(v)}" for f in fields(workload) if (v := getattr(workload, f.name)) is not None
             and f.name not in _KEPT_APART]  # fmt: skip
    if workload.assumed:
        lines += ["", "[assumed]", *(f"{key} = {_value(why)}" for key, why in workload.assumed.items())]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False)  # basic strings and numbers of JSON are those of TOML
