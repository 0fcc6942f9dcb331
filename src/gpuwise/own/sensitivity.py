"""What decides it, and what to measure next.

Total Sobol index of a figure: the share of the variance of ln(cheapest rented / cheapest owned, present values) that
would be left if all other figures were known, its interactions contained. Tornado: the saving of owning, in USD, at the
low and the high end of one figure, all others in the middle. Value of knowing one figure: how much less is paid in
expectation by somebody who learns it before deciding,

    EVPPI = E[max(0, E[saving | figure])] − max(0, E[saving])

with the inner mean over equal parts of the figure's range. Ranges are data; all of it is computed anew for each case.

Source: A. Saltelli et al., Computer Physics Communications 181 (2010) 259 (total index, scipy.stats.sobol_indices);
A. Brennan et al., Medical Decision Making 27 (2007) 448 (EVPPI); parts of the range: M. Strong, J. Oakley, Med. Decis.
Making 33 (2013) 755. Test value: y = x₁ + 2x₂ with standard normal figures has total indices 0.2 and 0.8; a saving of
±10 decided by one figure alone is worth 5 to know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpuwise.own.case import Case, Count, stack, world
from gpuwise.own.choose import discount
from gpuwise.own.decide import Decision
from gpuwise.own.figures import Drawn
from gpuwise.own.plan import flows
from gpuwise.units import Fraction, Usd

Floats = NDArray[np.float64]
Sides = Callable[[Drawn], tuple[Floats, Floats]]
"""Figures -> what renting and owning (staying and leaving) cost, (samples,) each, present values."""
BASE = 1024
"""Base samples of the indices; (figures + 2) times as many plans are evaluated."""
PARTS = 20
"""Parts of a figure's range over which its value is averaged."""
SMALL: Fraction = 0.005
"""A figure with less of the variance is counted, not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """How much one figure decides. total_fraction: Sobol's total index. low_usd, high_usd: saving of owning (present
    value, may be below 0) at the figure's low and high end. worth_usd: EVPPI, what it is worth to know it."""

    name: str
    total_fraction: Fraction
    low_usd: Usd
    high_usd: Usd
    worth_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """All figures with a range, the heaviest first. saving_usd: of owning, all figures in the middle."""

    saving_usd: Usd
    figures: tuple[Weight, ...]


def weights(case: Case, decision: Decision, *, base: int = BASE, seed: int = 0) -> Weights | None:
    """Of the cheapest rented against the cheapest owned option; None where one of the two is not there."""
    if decision.rented is None or decision.owned is None:
        return None
    counts = tuple(decision.outcomes[name].count for name in (decision.rented, decision.owned))
    saved = decision.present_usd[decision.rented] - decision.present_usd[decision.owned]
    return weigh(case, partial(_present_usd, case, counts), decision.drawn, saved, base=base, seed=seed)


def weigh(case: Case, sides: Sides, drawn: Drawn, saving_usd: Floats, *, base: int = BASE, seed: int = 0) -> Weights:
    """The weights of all figures with a range. drawn, saving_usd: of the paths, for the worth of knowing a figure."""
    names = case.figures.ranged()

    def saved(figures: Drawn) -> Usd:
        rented, owned = sides(figures)
        return float(rented[0] - owned[0])

    def log_ratio(z: Floats) -> Floats:
        rented, owned = sides(case.figures.scored(names, z))
        return np.asarray(np.log(rented / owned))

    found = []
    for name, share in zip(names, total_indices(log_ratio, len(names), base=base, seed=seed), strict=True):
        low, high = (saved(end) for end in case.figures.ends(name))
        worth = evppi_usd(drawn[name][:, 0], saving_usd)
        found.append(Weight(name=name, total_fraction=share, low_usd=low, high_usd=high, worth_usd=worth))
    ordered = sorted(found, key=lambda weight: -weight.total_fraction)
    return Weights(saving_usd=saved(case.figures.middle()), figures=tuple(ordered))


def _present_usd(case: Case, counts: Sequence[Count], drawn: Drawn) -> tuple[Floats, Floats]:
    """Present value of each side at these figures, demand growing evenly; shape (samples,)."""
    lived = world(case, drawn)
    factors = discount(case.months, drawn["discount_fraction"])
    found = []
    for count in counts:
        layers, rest = stack(case, count, drawn)
        found.append((flows(layers, rest, lived).total_usd * factors).sum(axis=1))
    return found[0], found[1]


def total_indices(outcome: Callable[[Floats], Floats], figures: int, *, base: int, seed: int) -> list[Fraction]:
    """Of an outcome (samples,) of standard normal figures (samples, figures); base: a power of two."""
    from scipy.special import ndtri
    from scipy.stats import sobol_indices, uniform

    found = sobol_indices(
        func=lambda shares: outcome(ndtri(shares.T)),
        n=base,
        dists=[uniform()] * figures,
        rng=np.random.default_rng(seed),
    )
    return [float(min(max(share, 0.0), 1.0)) for share in np.nan_to_num(found.total_order)]


def evppi_usd(figure: Floats, saving_usd: Floats) -> Usd:
    """What it is worth to know a figure before deciding; both of shape (paths,). Never below 0.

    Paths of the same value are in the same part: a price that did not move on most paths tells nothing among them.
    """
    edges = np.unique(np.quantile(figure, np.linspace(0, 1, PARTS + 1)))
    parts = np.minimum(np.searchsorted(edges, figure, side="right"), max(len(edges) - 1, 1))
    knowing = float(np.maximum(np.bincount(parts, saving_usd), 0.0).sum()) / len(saving_usd)
    return max(knowing - max(float(saving_usd.mean()), 0.0), 0.0)
