"""The vocabulary of owning: options, figures and units in words."""

from __future__ import annotations

from gpuwise.locale import N_, _, ngettext
from gpuwise.units import MONTHS_PER_YEAR
from gpuwise.view import figures

OPTIONS = {
    "on-demand": N_("all cloud, on demand"),
    "committed-1y": N_("commitment, 1 year"),
    "committed-3y": N_("commitment, 3 years"),
    "spot": N_("spot"),
    "dedicated": N_("machines by the month"),
    "office": N_("own servers, office"),
    "colocation": N_("own servers, colocation"),
    "mix": N_("best mix"),
}
FIGURES = {
    "availability_fraction": N_("availability of own servers"),
    "busy_kw": N_("power of a server at work"),
    "cloud_price_change": N_("cloud price to come"),
    "cloud_usd_per_gpu_hour": N_("cloud price"),
    "colocation_usd_per_kw_month": N_("colocation rate"),
    "committed_1y_discount_fraction": N_("discount for 1 year"),
    "committed_3y_discount_fraction": N_("discount for 3 years"),
    "dedicated_usd_per_gpu_hour": N_("price by the month"),
    "committed_1y_usd_per_gpu_hour": N_("price for 1 year"),
    "committed_3y_usd_per_gpu_hour": N_("price for 3 years"),
    "demand_gpu_h_per_month": N_("level of the demand"),
    "demand_growth_per_year": N_("growth of the demand"),
    "demand_wander_log_sd_per_root_year": N_("wander of the demand"),
    "demand_variation": N_("variation of the demand"),
    "discount_fraction": N_("cost of capital"),
    "electricity_usd_per_kwh": N_("price of electricity"),
    "idle_billed_fraction": N_("billed while idle"),
    "idle_power_fraction": N_("power when idle"),
    "insurance_fraction_per_year": N_("insurance"),
    "lead_weeks": N_("weeks until a server works"),
    "licence_usd_per_gpu_year": N_("software licences"),
    "life_years": N_("life of a server"),
    "max_kw": N_("power of a server at most"),
    "network_fraction": N_("network of the cluster"),
    "office_usd_per_month": N_("rent of the room"),
    "pue_colocation": N_("PUE, colocation"),
    "pue_office": N_("PUE, office"),
    "residual_fraction": N_("resale value after 4 years"),
    "server_usd": N_("price of a server"),
    "spares_fraction": N_("spare parts"),
    "spot_available_fraction": N_("availability of spot"),
    "spot_discount_fraction": N_("discount of spot"),
    "spot_usd_per_gpu_hour": N_("price of spot"),
    "spot_waste_fraction": N_("spot hours lost"),
    "staff_usd_per_month": N_("staff for a server"),
    "storage_fraction": N_("storage"),
    "support_fraction_per_year": N_("support"),
    "tax_fraction": N_("tax on the purchase"),
    "work_fraction": N_("speed of the owned GPU"),
}
UNITS = {
    "year": N_("year"),
    "weeks": N_("weeks"),
    "days": N_("days"),
    "ratio": N_("ratio"),
    "1/year": N_("1/year"),
    "GPU-h/month": N_("GPU-h/month"),
    "USD/month": N_("USD/month"),
    "USD/year": N_("USD/year"),
    "USD/kW-month": N_("USD/kW-month"),
    "of today's price": N_("of today's price"),
}
KINDS = {
    "cloud": N_("cloud"),
    "dedicated": N_("machine by the month"),
    "bundle": N_("pre-integrated bundle"),
    "server": N_("server"),
    "parts": N_("parts"),
}


def fleet(servers: int, site: str) -> str:
    """3 servers in colocation."""
    office = ngettext("{n} server in the office", "{n} servers in the office", servers)
    colocation = ngettext("{n} server in colocation", "{n} servers in colocation", servers)
    return (office if site == "office" else colocation).format(n=servers)


def gpus(number: int) -> str:
    """1 GPU; 1,144 GPUs."""
    return ngettext("{n} GPU", "{n} GPUs", number).format(n=figures.count(number))


def years(months: int) -> str:
    """1 year; 2.5 years."""
    return ngettext("{n} year", "{n} years", 1 if months == MONTHS_PER_YEAR else 2).format(
        n=figures.written(months / MONTHS_PER_YEAR, "g")
    )


def option(name: str) -> str:
    return _(OPTIONS.get(name, name))


def figure(name: str) -> str:
    return _(FIGURES.get(name, name))


def unit_of(name: str) -> str:
    """The unit of a figure; units of physics and money are the same in every language."""
    return "" if name == "1" else _(UNITS.get(name, name))


def lead(kind: str) -> str:
    return _(KINDS.get(kind, kind))
