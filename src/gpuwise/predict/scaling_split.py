"""Split H: rates on several devices, told from the measured rate on one, by a fit that has not seen the card."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import exp

from gpuwise.estimate import Z80
from gpuwise.model import Accelerator, BenchmarkResult
from gpuwise.predict.scaling import Fitted, Losses, Run, spread
from gpuwise.predict.scaling_fit import fit_runs, on_two, runs_of
from gpuwise.predict.score import Score

LINKS = {"NVLink": "NVLink", "PCIe": "PCIe", "PCIe, bridge": "PCIe"}
"""Professional cards by link; the rest are GeForce and TITAN. A bridge joins pairs of PCIe cards."""


def scaling_scores(
    rows: Iterable[BenchmarkResult],
    accelerators: Mapping[str, Accelerator],
    *,
    out: str = "card",
    only: Collection[str] | None = None,
) -> list[Score]:
    """Every run on several of which one was measured alike, of n times the rate of one (truth: its efficiency).

    out: card or workload; factors and spreads are fitted without the rows of the card (whatever its memory), or of the
    workload, that is scored. With "card" a run on more than two is scored once more with the run on two as the
    person's own (tag own_two). only: names of cards or workloads to score, None: all.
    """
    runs = runs_of(rows, accelerators)
    names = sorted({getattr(run.sharing, out) for run in runs})
    return [score for name in names if only is None or name in only for score in _without(name, out, runs)]


def _without(name: str, out: str, runs: Sequence[Run]) -> Iterator[Score]:
    fitted = fit_runs([run for run in runs if getattr(run.sharing, out) != name], (out,))
    for run in (run for run in runs if getattr(run.sharing, out) == name):
        yield _score(run, (), fitted)
        two = on_two(run, runs) if out == "card" else None
        if two:
            yield _score(run, (two,), fitted)


def _score(run: Run, own: tuple[Run, ...], fitted: Fitted) -> Score:
    at = run.sharing
    told, situation = Losses.made(at.workload, own, fitted).efficiency(at)
    sd = spread(fitted, situation, at.link, at.n, told)
    return Score(
        truth=exp(-run.lost_log),
        predicted=told,
        low=told * exp(-Z80 * sd),
        high=told * exp(Z80 * sd),
        naive={"perfect": 1.0},
        tags={
            "link": LINKS.get(at.link, "GeForce"),
            "bridge": "yes" if at.link.endswith("bridge") else "no",
            "n": str(at.n),
            "accelerator": at.card,
            "workload": at.workload,
            "own_two": "yes" if own else "no",
        },
    )
