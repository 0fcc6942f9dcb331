"""Prices of the same card hardly move, then jump, mostly down: paths of a compound Poisson process.

The log of the price moves by jumps at λ a year; between them it stands still. A jump is ±|x|, x normal with sd s, and
down with the share d of the jumps that were seen. So its root mean square is s and its mean −(2d − 1)·s·√(2/π). No
yearly decline is assumed beyond that (V100 −2.7 %, A100 +3.0 % a year, then −44 % at once). λ, s and d are drawn once a
path from their ranges: they come from few moves.

Source: R. C. Merton, J. Financial Economics 3 (1976) 125, without the diffusion; the three figures from pairs of the
same offer (`price_jumps_per_year`, `price_jump_log_sd`, `price_jump_down_fraction` in assumptions.toml).
Test values: the mean square of the log of a price after y years is λ·y·s² + (λ·y·mean)²: with as many up as down, 0.5 a
year of 0.3 leave a log sd of 0.424 after 4 years. d = 0.8: a mean jump of −0.144.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.model import Assumption
from gpuwise.own.figures import at
from gpuwise.units import MONTHS_PER_YEAR

Floats = NDArray[np.float64]
LOOKED_AT = 20_000
"""Paths from which the range of the mean price is told: its ends are then right to 0.01."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jumps:
    """per_year: how often a price moves (λ). log_sd: root mean square of a move (s). down_fraction: of them (d)."""

    per_year: Assumption
    log_sd: Assumption
    down_fraction: Assumption

    def paths(self, paths: int, months: int, rng: np.random.Generator) -> Floats:
        """The price of each month as a multiple of today's, shape (paths, months). The first month has today's."""
        logs = np.zeros((paths, months))
        if months > 1:
            rate, size, down = (
                at(figure, rng.standard_normal(paths)) for figure in (self.per_year, self.log_sd, self.down_fraction)
            )
            path = np.repeat(np.arange(paths), rng.poisson(rate / MONTHS_PER_YEAR * (months - 1)))
            month = rng.integers(1, months, len(path))
            sign = np.where(rng.random(len(path)) < down[path], -1.0, 1.0)
            np.add.at(logs, (path, month), sign * size[path] * np.abs(rng.standard_normal(len(path))))
        np.cumsum(logs, axis=1, out=logs)
        return np.exp(logs)

    def to_come(self, months: int) -> tuple[float, float, float]:
        """The mean price over the horizon, of today's: the 10th, 50th and 90th percentile."""
        means = self.paths(LOOKED_AT, months, np.random.default_rng(0)).mean(axis=1)
        low, middle, high = np.quantile(means, (0.1, 0.5, 0.9))
        return float(low), float(middle), float(high)
