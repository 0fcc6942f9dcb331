"""When to stop renting if nobody knows the future: ski rental, with and without advice, over paths of premiums.

Each month that one stays, the cloud costs a premium pₜ ≥ 0 over what one's own machines would cost to run. To leave
costs B once; running costs are on both sides and left out. To leave in month m costs p₀ + … + pₘ₋₁ + B, to stay all.

    hindsight = min(Σ p, B), as the best month to leave is the first or none
    robust month: the first in which the sum of premiums, its own contained, reaches B
        before it less than B was paid, so that it costs less than 2B, and hindsight is B; without one it is hindsight
    clamped month: what a forecast says, kept from the month that reaches λB to the one that reaches B/λ
        at most 1 + 1/λ times hindsight, whatever the forecast

A bill that comes at a month's end tells one month late, which adds that month's premium to these bounds.
A reservation is the same question with a running price α ≤ 1 of the on-demand price afterwards: at most 2 − α times
hindsight, or e/(e − 1 + α) in expectation if the moment is drawn.

Source: A. Karlin et al., Algorithmica 3 (1988) 79; W. Wang, B. Li, B. Liang, To Reserve or Not to Reserve, ICAC 2013;
advice trusted by λ: M. Purohit, Z. Svitkina, R. Kumar, NeurIPS 31 (2018) 9661, §2.
Test values: 10,000 USD a month, B = 60,000: month 5, the sixth; λ = 0.5: months 2 to 11. α = 0: 2, and 1.5820.
"""

from __future__ import annotations

from math import e

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import InvalidInput, Message
from gpuwise.units import Fraction, Usd

Floats = NDArray[np.float64]
Months = NDArray[np.int_]
NEVER = -1
"""In the place of a month: not within the horizon."""


def competitive_ratio(after_fraction: Fraction, *, randomised: bool = False) -> float:
    """How many times the cost of hindsight a reservation by the rule costs at most. after_fraction: α."""
    if not 0 <= after_fraction <= 1:
        raise InvalidInput(
            Message("The price after a reservation is {value:g} of the price before: it lies from 0 to 1.",
                    value=after_fraction),
            Message("Write 0.4 for an hour that costs 40 % of on demand once it is reserved."),
        )  # fmt: skip
    return e / (e - 1 + after_fraction) if randomised else 2 - after_fraction


def robust_month(premium_usd: Floats, barrier_usd: Floats | Usd) -> Months:
    """The first month in which the premiums (…, T), summed up, reach the barrier (…); NEVER if none does."""
    reached = np.cumsum(premium_usd, axis=-1) >= np.asarray(barrier_usd)[..., None]
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1), NEVER)


def clamped_month(
    forecast_month: Months | int, premium_usd: Floats, barrier_usd: Floats | Usd, trust_fraction: Fraction
) -> Months:
    """The forecast's month (…, NEVER: stay), moved to where the premiums allow it. trust_fraction: λ; 1: no trust."""
    if not 0 < trust_fraction <= 1:
        raise InvalidInput(
            Message("The trust in a forecast is {value:g}: it lies above 0 and up to 1.", value=trust_fraction),
            Message("Write 0.5 to let it act between half and twice the barrier; 1 leaves it no say."),
        )
    barrier = np.asarray(barrier_usd, np.float64)
    never = np.shape(premium_usd)[-1]
    early, late, forecast = (
        np.where(np.asarray(month) == NEVER, never, month)
        for month in (
            robust_month(premium_usd, barrier * trust_fraction),
            robust_month(premium_usd, barrier / trust_fraction),
            forecast_month,
        )
    )
    month = np.clip(forecast, early, late)
    return np.where(month >= never, NEVER, month)


def left_usd(premium_usd: Floats, barrier_usd: Floats | Usd, month: Months | int) -> Floats:
    """What leaving in this month (…, NEVER: staying) costs: the premiums (…, T) before it, and the barrier."""
    months = np.arange(np.shape(premium_usd)[-1])
    month = np.asarray(month)
    stays = (months < month[..., None]) | (month == NEVER)[..., None]
    return np.asarray((premium_usd * stays).sum(axis=-1) + np.where(month == NEVER, 0.0, barrier_usd))


def hindsight_usd(premium_usd: Floats, barrier_usd: Floats | Usd) -> Floats:
    """What leaving in the best month, or staying, would have cost."""
    return np.asarray(np.minimum(np.sum(premium_usd, axis=-1), barrier_usd))
