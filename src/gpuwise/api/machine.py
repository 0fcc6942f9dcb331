"""The verbs about the machine at hand: what it can do at best, and whether it is ready."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from gpuwise.errors import InvalidInput, Message
from gpuwise.measure.ceilings import Ceilings
from gpuwise.measure.ceilings import ceilings as probe
from gpuwise.measure.check import Checked
from gpuwise.measure.check import check as look
from gpuwise.measure.energy import gauge
from gpuwise.measure.gauges import Sampler
from gpuwise.measure.host import cpus
from gpuwise.measure.record import Gauge
from gpuwise.request import CeilingsRequest, CheckRequest

Tell = Callable[[Message], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """The answer to `ceilings`. others: what other processes took of the allowed CPUs meanwhile."""

    request: CeilingsRequest
    as_of: date
    ceilings: Ceilings
    others: Gauge | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The answer to `check`."""

    request: CheckRequest
    as_of: date
    checked: Checked


def ceilings(request: CeilingsRequest, *, today: date, tell: Tell) -> Probed:
    """What can this machine do at best? InvalidInput for a folder that is not there."""
    folder, watch = _folder(request.data), Sampler()
    watch.start(os.getpid(), allowed=cpus().allowed)
    try:
        found = probe(folder, budget_s=request.within_s, tell=tell)
    finally:
        _, seen = watch.stop()
    others = gauge(sample.others_fraction for sample in seen)
    return Probed(request=request, as_of=today, ceilings=found, others=others)


def check(request: CheckRequest, *, today: date, tell: Tell) -> Looked:
    """Is this machine ready? InvalidInput for a folder that is not there."""
    folder = _folder(request.data)
    tell(Message("Looking at the machine and doing a first step ..."))
    return Looked(request=request, as_of=today, checked=look(folder))


def _folder(text: str | None) -> Path:
    folder = Path(text or ".")
    if not folder.is_dir():
        raise InvalidInput(Message("--data {path}: there is no such folder.", path=text), Message("Write its path."))
    return folder
