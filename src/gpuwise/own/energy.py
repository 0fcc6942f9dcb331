"""Energy of machines, what it costs, and what it emits.

    kWh = kW · h · PUE          kW at the wall of the machine, on average: a nameplate is not
    kg CO2e = kWh · g / 1000    g CO2e a kWh of the grid, of a country and a year

Source: E. Strubell, A. Ganesh, A. McCallum, ACL 2019, §2 (P·t·PUE); A. S. Luccioni, S. Viguier, A.-L. Ligozat, JMLR 24
(2023) 253 (BLOOM). Test values: 1,082,990 GPU-hours at 0.4 kW are 433,196 kWh, 24.7 t at 57 g/kWh (BLOOM); seven
cards that idle at 40 W take 2,453 kWh a year, 736 USD at 0.30 USD/kWh (UC-095).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuwise.units import KG_PER_POUND, Usd

Figure = TypeVar("Figure", float, NDArray[np.float64])
"""One number, or an array of them."""


def energy_kwh(kw: Figure, hours: Figure, *, pue: float = 1.0, count: int = 1) -> Figure:
    """kWh of `count` machines of so many kW each; hours: of each. pue 1: without cooling, or kw has it in."""
    return kw * count * hours * pue


def energy_usd(kwh: float, usd_per_kwh: float) -> Usd:
    return kwh * usd_per_kwh


def kg_co2e(kwh: float, g_co2e_per_kwh: float) -> float:
    return kwh * g_co2e_per_kwh / 1000


def g_co2e_per_kwh(pounds_per_kwh: float) -> float:
    """US sources state pounds. Test value: 0.954 lb/kWh are 432.7 g/kWh (EPA, as in Strubell et al.)."""
    return pounds_per_kwh * KG_PER_POUND * 1000
