"""Prices of the same card hardly move, then jump, both ways: paths of a compound Poisson process.

The log of the price moves by jumps of normal size, mean 0, log sd s, at λ a year; between them it stands still. No
yearly decline is assumed (V100 −2.7 %, A100 +3.0 % a year, then −44 % at once). This favours owning: of the moves that
were seen 80 % were cuts (`price_jump_down_fraction`, which is not used here yet).

Source: R. C. Merton, J. Financial Economics 3 (1976) 125, without the diffusion; λ and s from pairs of the same offer
(`price_jumps_per_year`, `price_jump_log_sd` in assumptions.toml).
Test value: the log variance of a price after y years is λ·y·s²: 0.5 a year of 0.3 for 4 years leave a log sd of 0.424.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jumps:
    """per_year: how often a price moves. log_sd: of the size of a move."""

    per_year: float
    log_sd: float

    def paths(self, paths: int, months: int, rng: np.random.Generator) -> Floats:
        """The price of each month as a multiple of today's, shape (paths, months). The first month has today's."""
        logs = np.zeros((paths, months))
        moves = rng.poisson(self.per_year / 12 * paths * max(months - 1, 0))
        if months > 1:
            path, month = rng.integers(0, paths, moves), rng.integers(1, months, moves)
            np.add.at(logs, (path, month), self.log_sd * rng.standard_normal(moves))
        np.cumsum(logs, axis=1, out=logs)
        return np.exp(logs)
