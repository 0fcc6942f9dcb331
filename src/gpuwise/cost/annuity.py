"""An owned machine's hour.

Per month: [capex · CRF − residual · SFF] / 12 + hosting + staff; per busy hour: power · PUE · electricity.
SFF = r / ((1+r)^n − 1), by expm1 and log1p so that r → 0 gives 1/n; CRF = r / (1 − (1+r)^−n) = SFF + r.

Source: capital recovery and sinking fund factors, ASTM E917; W. Short et al., NREL/TP-462-5173 (1995), §3.
Test value: CRF(7 %, 25 a) = 0.08581 (PyPSA's annuity test), CRF(0 %, 5 a) = 0.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import hypot, log
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import Catalogue, as_days, from_rows
from gpuwise.estimate import Z80
from gpuwise.model import Machine
from gpuwise.units import HOURS_PER_MONTH, Usd, UsdPerHour

Figure = TypeVar("Figure", float, NDArray[np.float64])
"""One number, or an array of them."""


def sinking_fund_factor(rate: Figure, years: Figure) -> Figure:
    """Yearly payment that grows to 1 after `years` at `rate` a year."""
    growth = years * np.log1p(rate)
    none = growth == 0
    found: Any = np.where(none, 1 / np.asarray(years), rate / np.expm1(np.where(none, 1.0, growth)))
    return found[()]  # type: ignore[no-any-return]  # of one number one number


def capital_recovery_factor(rate: Figure, years: Figure) -> Figure:
    """Yearly payment that repays 1 over `years` at `rate` a year."""
    return sinking_fund_factor(rate, years) + rate


def fixed_usd_per_month(machine: Machine) -> Usd:
    """What the machine costs a month whether it is used or not."""
    crf = capital_recovery_factor(machine.discount_fraction, machine.life_years)
    sff = sinking_fund_factor(machine.discount_fraction, machine.life_years)
    capital = (machine.capex_usd * crf - machine.residual_usd * sff) / 12
    return capital + machine.hosting_usd_per_month + machine.staff_usd_per_month


def running_usd_per_hour(machine: Machine) -> UsdPerHour:
    """Energy of one busy hour: W / 1000 · PUE · USD/kWh."""
    return machine.power_w / 1000 * machine.pue * machine.electricity_usd_per_kwh


def price_log_sd(machine: Machine) -> float:
    """Log standard deviation of a full month's cost: each figure moved over its own range, in quadrature."""

    def month_usd(one: Machine) -> Usd:
        return fixed_usd_per_month(one) + running_usd_per_hour(one) * HOURS_PER_MONTH

    parts = []
    for name in machine.low.keys() & machine.high.keys():
        low, high = (month_usd(_with(machine, name, end[name])) for end in (machine.low, machine.high))
        parts.append(log(high / low) / (2 * Z80))
    return hypot(*parts)


def _with(machine: Machine, name: str, value: float) -> Machine:
    return replace(machine, **{name: value})  # type: ignore[arg-type]


def owned_offers(machines: Sequence[Machine], name: str = "machines") -> Catalogue:
    """The machines as offers of the market `owned`: never free, without a bill for a single job."""
    return from_rows(name, name, [_row(m) for m in machines], ids=[f"owned/{m.name}" for m in machines])


def _row(machine: Machine) -> dict[str, object]:
    fixed, running = fixed_usd_per_month(machine), running_usd_per_hour(machine)
    return {
        "provider": "owned", "instance": machine.name, "country": machine.country, "market": "owned",
        "accelerator": machine.accelerator, "accelerators": machine.accelerators, "nodes": 1, "host": "own",
        "availability": "available", "price_state": "listed", "currency": "USD", "price_unit": "month", "tax": "net",
        "price_native": fixed, "price_usd_per_hour": fixed / HOURS_PER_MONTH + running,
        "running_usd_per_hour": running,
        "price_log_sd": price_log_sd(machine), "observed": as_days(machine.observed), "observed_precision": "day",
        "quality": "example" if machine.example else "own", "source": machine.source.ref, "note": machine.note,
        "preparation_s": machine.preparation_s,
    }  # fmt: skip
