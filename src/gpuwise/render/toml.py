"""A workload as a TOML file, which `rank` and `explain` read back."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import date

from gpuwise.locale import _
from gpuwise.model import Workload
from gpuwise.stopping import EarlyStop

_KEPT_APART = ("assumed", "source", "reasons", "stop", "undecided", "memory")


def workload_toml(workload: Workload) -> str:
    """The workload as TOML. What is not known is left out; what is assumed is listed under [assumed]."""
    stated = [f.name for f in fields(workload) if f.name not in (*_KEPT_APART, *workload.undecided)]
    lines = [f"{name} = {_value(v)}" for name in stated if (v := getattr(workload, name)) is not None]
    why = _("state it: without it the length of the job is unknown")
    lines += [f"# {name} =  # {why}" for name in workload.undecided]
    assumed = {key: why for key, why in workload.assumed.items() if key not in workload.undecided}
    if assumed:
        lines += ["", "[assumed]", *(f"{key} = {_value(why)}" for key, why in assumed.items())]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, EarlyStop):
        return "{ " + ", ".join(f"{f.name} = {_value(getattr(value, f.name))}" for f in fields(value)) + " }"
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False)  # basic strings and numbers of JSON are those of TOML
