"""The sums behind `own`: 10,000 paths of demand and prices over 60 months for six options, and Sobol's indices.

Goals: the paths under 1 s, the indices under 3 s; processes of their own pay imports, which are shown apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date

from gpuwise.api.assembly import assemble
from gpuwise.api.wanted import accelerator_of, wanted
from gpuwise.own.case import Case
from gpuwise.own.decide import decide
from gpuwise.own.sensitivity import weights
from gpuwise.request import OwnRequest, parse

SIX = ("on-demand", "committed-3y", "spot", "office", "colocation", "mix")
REPEATS = 5


def main() -> None:
    case = _case()
    decision = decide(case)
    _show("10,000 paths × 60 months × 6 options, counts chosen too", lambda: decide(case))
    ranged = len(case.figures.ranged())
    _show(f"Sobol's indices of {ranged} figures, tornado, worth of knowing", lambda: weights(case, decision))


def _case() -> Case:
    """40 H100 wanted on average from a hyperscaler, whose commitments and spot have prices."""
    said = {"demand": "40 GPUs", "gpu": "H100-SXM", "growth": "20%/y", "provider": "aws,gcp"}
    request = parse(OwnRequest, said)
    device = accelerator_of(request)
    case = assemble(request, device, wanted(request, device), date(2026, 12, 1)).case
    return replace(case, open=frozenset(SIX) & case.open)


def _show(what: str, work: Callable[[], object]) -> None:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    print(f"  {what}: {min(times):.2f} s at best, {sorted(times)[REPEATS // 2]:.2f} s in the middle of {REPEATS}")


if __name__ == "__main__":
    main()
