"""A commitment to spend so much in each hour: what an hour leaves unused is gone, and does not carry over.

used = min(usage, committed); wasted = committed − used; over = usage − used, which is billed at on-demand rates:
over / (1 − discount). All of it hour by hour: the sum of the hours is not the hour of the sums.

Source: FOCUS 1.0, CommitmentDiscountStatus (Used, Unused) of a commitment of the category Spend; AWS Savings Plans User
Guide, "How Savings Plans apply to your usage". Test value: 1 USD/h for 24 h, and usage of 2 USD in 12 hours and none in
12: paid 24, used 12, wasted 12, over 12. The averages of the day (24 used of 24) would hide all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import InvalidInput, Message
from gpuwise.units import Fraction

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settled:
    """What became of a commitment, hour by hour; every array has shape (hours,). USD, or any other one currency.

    paid = used + wasted. used + over = usage, at the rates of the commitment; on_demand: what `over` costs without it.
    """

    paid_usd: Floats
    used_usd: Floats
    wasted_usd: Floats
    over_usd: Floats
    on_demand_usd: Floats


def settle(usage_usd_per_hour: Floats, committed_usd_per_hour: Floats | float, off_fraction: Fraction = 0.0) -> Settled:
    """Each hour for itself. usage: at the rates of the commitment; off_fraction: how far these lie below on-demand.

    InvalidInput for what no hour can hold: below 0, not a number, or a discount of all of the price.
    """
    usage = np.asarray(usage_usd_per_hour, np.float64)
    paid = np.broadcast_to(np.asarray(committed_usd_per_hour, np.float64), usage.shape).copy()
    _refuse_impossible(usage, paid, off_fraction)
    used = np.minimum(usage, paid)
    over = usage - used
    return Settled(
        paid_usd=paid, used_usd=used, wasted_usd=paid - used, over_usd=over, on_demand_usd=over / (1 - off_fraction)
    )


def _refuse_impossible(usage: Floats, paid: Floats, off_fraction: Fraction) -> None:
    for values, what in ((usage, Message("The usage of an hour")), (paid, Message("The commitment"))):
        bad = values[~(np.isfinite(values) & (values >= 0))]
        if bad.size:
            raise InvalidInput(
                Message("{what} is {value:g}: it is a number from 0 up.", what=what, value=float(bad[0])),
                Message("Correct the figure."),
            )
    if not 0 <= off_fraction < 1:
        raise InvalidInput(
            Message("The discount of a commitment is {value:g}: it lies from 0 to below 1.", value=off_fraction),
            Message("Write 0.30 for rates that are 30 % below on-demand."),
        )
