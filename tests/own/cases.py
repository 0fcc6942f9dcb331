"""A decision as tests need it: figures of an H100 server, few paths, and what a test changes of it."""

from gpuwise.model import Assumption
from gpuwise.own.case import OPTIONS, Case
from gpuwise.own.figures import figures
from gpuwise.own.prices import Jumps

BASE = {
    "demand_gpu_h_per_month": (20 * 730.0, 14 * 730.0, 28 * 730.0),
    "demand_growth_per_year": (0.1, 0.0, 0.3),
    "demand_variation": (0.5, 0.3, 2.0),
    "cloud_usd_per_gpu_hour": 4.0,
    "cloud_price_change": (1.0, 0.8, 1.25),
    "idle_billed_fraction": (0.1, 0.02, 0.3),
    "committed_1y_discount_fraction": 0.3,
    "committed_3y_discount_fraction": 0.5,
    "spot_discount_fraction": 0.6,
    "spot_available_fraction": (0.6, 0.3, 0.9),
    "spot_waste_fraction": (0.1, 0.04, 0.2),
    "dedicated_usd_per_gpu_hour": 2.5,
    "server_usd": (270_000.0, 230_000.0, 375_000.0),
    "network_fraction": (0.13, 0.09, 0.19),
    "storage_fraction": (0.1, 0.05, 0.2),
    "spares_fraction": (0.03, 0.02, 0.1),
    "tax_fraction": 0.0,
    "life_years": (4.0, 3.0, 6.0),
    "residual_fraction": (0.25, 0.1, 0.45),
    "busy_kw": (8.0, 7.0, 9.0),
    "idle_power_fraction": (0.2, 0.1, 0.35),
    "pue_office": 1.3,
    "pue_colocation": 1.5,
    "electricity_usd_per_kwh": (0.155, 0.1, 0.2),
    "max_kw": 10.2,
    "colocation_usd_per_kw_month": (184.0, 90.0, 250.0),
    "office_usd_per_month": 0.0,
    "staff_usd_per_month": (1540.0, 620.0, 3850.0),
    "support_fraction_per_year": (0.05, 0.02, 0.1),
    "insurance_fraction_per_year": 0.0,
    "licence_usd_per_gpu_year": 0.0,
    "lead_weeks": (13.0, 4.0, 40.0),
    "availability_fraction": (0.99, 0.96, 0.998),
    "work_fraction": 1.0,
    "discount_fraction": (0.1, 0.06, 0.15),
}
MONEY = [name for name in BASE if "usd" in name]
SHARES = ("fraction", "variation")


def figure(name, value):
    middle, low, high = value if isinstance(value, tuple) else (value, None, None)
    unit = "1" if any(word in name for word in SHARES) else "unit"
    return Assumption(name=name, value=middle, low=low, high=high, unit=unit, source="test")


def jumps(per_year=0.1, log_sd=0.25, down_fraction=0.5):
    return Jumps(
        per_year=figure("price_jumps_per_year", per_year),
        log_sd=figure("price_jump_log_sd", log_sd),
        down_fraction=figure("price_jump_down_fraction", down_fraction),
    )


JUMPS = jumps()


def case(months=36, *, options=OPTIONS, jumps=JUMPS, most=None, scale=1.0, **changed):
    """`scale`: all money in another currency."""
    values = BASE | changed
    if scale != 1.0:
        for name in MONEY:
            old = values[name]
            values[name] = tuple(scale * x for x in old) if isinstance(old, tuple) else scale * old
    return Case(
        figures=figures(figure(name, value) for name, value in values.items()), months=months, accelerators=8, block=8,
        jumps=jumps, open=frozenset(options), most=most or {}, wander_log_sd=0.2,
    )  # fmt: skip
