"""Figures with a range, drawn: one way for the middle case, for chance, for the tornado and for Sobol's indices.

A figure is a `model.Assumption`: value in the middle, low and high as its 80 % interval. A draw at the standard normal
score z is value·(high/value)^(z/1.2816) above the middle and value·(value/low)^(z/1.2816) below it. A share between 0
and 1 follows the same law in its odds x/(1 − x), so that no draw reaches 0 or 1; where low is 0 or below the law is
straight. No draw goes beyond what the figure can mean (LIMITS).

Source: two-piece normal, K. F. Wallis, Statistical Science 29 (2014) 106. Test value: 4 years (3 to 6): 3 at
z = −1.2816, 4 at 0, 6 at 1.2816.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import InvalidInput, Message
from gpuwise.estimate import Z80
from gpuwise.model import Assumption

Floats = NDArray[np.float64]
Drawn = Mapping[str, Floats]
"""Name -> one number a path, shape (paths, 1), or (1, 1) for all."""

LARGEST_SHARE = 0.99
"""A share of all of something (a discount, idle time, tax) leaves something over."""


def has_range(figure: Assumption) -> bool:
    return figure.low is not None and figure.high is not None and figure.high > figure.low


def at(figure: Assumption, z: Floats) -> Floats:
    """The figure at standard normal scores, in the shape of z; never beyond LIMITS."""
    return np.clip(_at(figure, z), *LIMITS.get(figure.name, (0.0, MOST)))


def _at(figure: Assumption, z: Floats) -> Floats:
    if not has_range(figure):
        return np.full_like(z, figure.value)
    assert figure.low is not None
    assert figure.high is not None
    if not figure.low <= figure.value <= figure.high:
        raise InvalidInput(
            Message("{name} is {value:g}, outside of its range {low:g} to {high:g}.", name=figure.name,
                    value=figure.value, low=figure.low, high=figure.high),
            Message("Give the middle value between low and high."),
        )  # fmt: skip
    share = figure.unit == "1" and figure.high < 1
    if figure.low <= 0:
        found = figure.value + z / Z80 * np.where(z > 0, figure.high - figure.value, figure.value - figure.low)
        return np.minimum(found, LARGEST_SHARE) if share else found
    low, middle, high = (x / (1 - x) if share else x for x in (figure.low, figure.value, figure.high))
    found = middle * np.exp(z / Z80 * np.where(z > 0, np.log(high / middle), np.log(middle / low)))
    return found / (1 + found) if share else found


def pooled(ranges: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """10th, 50th and 90th percentile of a figure of which sources say 80 % intervals (above 0), each as likely right.

    Test value: 1 to 4 and 1 to 4 are 1, 2, 4.
    """
    from scipy.special import ndtri

    scores = ndtri((np.arange(POOLED) + 0.5) / POOLED) / Z80
    laws = [np.sqrt(low * high) * (high / low) ** (scores / 2) for low, high in ranges]
    low, middle, high = np.quantile(np.concatenate(laws), (0.1, 0.5, 0.9))
    return float(low), float(middle), float(high)


POOLED = 2_000

_BELOW_ONE = (
    "idle_billed_fraction", "network_fraction", "spot_waste_fraction", "committed_1y_discount_fraction",
    "committed_3y_discount_fraction", "spot_discount_fraction",
)  # fmt: skip
_SHARES = (
    "spot_available_fraction", "residual_fraction", "idle_power_fraction", "insurance_fraction_per_year",
    "support_fraction_per_year",
)  # fmt: skip
LIMITS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(_BELOW_ONE, (0.0, 0.95)),
    **dict.fromkeys(_SHARES, (0.0, 1.0)),
    **dict.fromkeys(("pue_office", "pue_colocation"), (1.0, 5.0)),
    **dict.fromkeys(("storage_fraction", "spares_fraction"), (0.0, 5.0)),
    **dict.fromkeys(("busy_kw", "max_kw"), (0.01, 1000.0)),
    "availability_fraction": (0.05, 1.0),
    "life_years": (0.5, 20.0),
    "discount_fraction": (0.0, 1.0),
    "lead_weeks": (0.0, 260.0),
    "demand_variation": (0.0, 10.0),
    "demand_growth_per_year": (-0.95, 99.0),
    "work_fraction": (0.001, 1000.0),
    "tax_fraction": (0.0, 2.0),
    "server_usd": (1.0, 1e9),
}
"""Between which values a figure means something; all others: from 0 up."""
MOST = 1e12


def refuse_impossible(figure: Assumption) -> None:
    """InvalidInput for a value, or an end of a range, at which nothing can be reckoned."""
    low, high = LIMITS.get(figure.name, (0.0, MOST))
    for value in (figure.value, figure.low, figure.high):
        if value is not None and not low <= value <= high:
            raise InvalidInput(
                Message("{name} is {value:g}: it lies from {low:g} to {high:g}.",
                        name=figure.name, value=value, low=low, high=high),
                Message("Correct the value, or leave it as it is."),
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figures:
    """All figures of a decision, by name."""

    by_name: Mapping[str, Assumption]

    def __getitem__(self, name: str) -> Assumption:
        return self.by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def middle(self) -> Drawn:
        """Every figure at its middle value, shape (1, 1)."""
        return {name: np.full((1, 1), figure.value) for name, figure in self.by_name.items()}

    def ranged(self) -> tuple[str, ...]:
        """Those that have a range, in order of their names."""
        return tuple(sorted(name for name, figure in self.by_name.items() if has_range(figure)))

    def drawn(self, paths: int, rng: np.random.Generator) -> Drawn:
        """Every figure once a path, independently; those without a range are the same on all."""
        found = dict(self.middle())
        for name in self.ranged():
            found[name] = at(self.by_name[name], rng.standard_normal((paths, 1)))
        return found

    def scored(self, names: Sequence[str], z: Floats) -> Drawn:
        """Named figures at given scores (paths, names), all others in the middle."""
        found = dict(self.middle())
        found.update({name: at(self.by_name[name], z[:, [column]]) for column, name in enumerate(names)})
        return found

    def ends(self, name: str) -> tuple[Drawn, Drawn]:
        """All figures in the middle, but one at its low and at its high end."""
        figure = self.by_name[name]
        low, high = (replace(figure, value=float(end)) for end in (figure.low or 0.0, figure.high or 0.0))
        return tuple(dict(self.middle()) | {name: np.full((1, 1), one.value)} for one in (low, high))  # type: ignore[return-value]


def stated(name: str, value: float, unit: str, note: str = "") -> Assumption:
    """What the person said: without a range, so that it is taken as it is."""
    return Assumption(name=name, value=value, low=None, high=None, unit=unit, source="stated", note=note)


def figures(parts: Iterable[Assumption]) -> Figures:
    """Later ones take the place of earlier ones of the same name."""
    return Figures(by_name={figure.name: figure for figure in parts})
