"""The bundled facts about leaving a cloud, each table read when it is asked for and once."""

from __future__ import annotations

from datetime import date
from functools import cache

from gpuwise.asset import ColdTier, LeadTime, Link, Service, Waiver
from gpuwise.store.package import day_of, number, rows


@cache
def services() -> tuple[Service, ...]:
    """Managed services of the clouds, and what takes their place."""
    return tuple(
        Service(
            provider=row["provider"], name=row["name"], names=tuple(row["names"].casefold().split("|")),
            category=row["category"], gives=row["gives"], portability=row["portability"],
            replacement=row["replacement"], effort_low_days=number(row["effort_low_days"]),
            effort_high_days=number(row["effort_high_days"]), valid_from=date.fromisoformat(row["valid_from"]),
            valid_until=day_of(row["valid_until"]), source=row["source"], note=row["note"],
        )
        for row in rows("services.csv")
    )  # fmt: skip


@cache
def waivers() -> tuple[Waiver, ...]:
    """When data may leave for less."""
    return tuple(
        Waiver(
            where=row["where"], covers=row["covers"], condition=row["condition"], usd_per_gb=number(row["usd_per_gb"]),
            valid_from=date.fromisoformat(row["valid_from"]), valid_until=day_of(row["valid_until"]),
            source=row["source"], note=row["note"],
        )
        for row in rows("waivers.csv")
    )  # fmt: skip


@cache
def links() -> tuple[Link, ...]:
    """Private lines out of a provider."""
    return tuple(
        Link(
            provider=row["provider"], name=row["name"], gbit_per_s=number(row["gbit_per_s"]),
            usd_per_gb=float(row["usd_per_gb"]), usd_per_month=number(row["usd_per_month"]),
            observed=date.fromisoformat(row["observed"]), source=row["source"], note=row["note"],
        )
        for row in rows("links.csv")
    )  # fmt: skip


@cache
def cold_tiers() -> tuple[ColdTier, ...]:
    """Storage classes that bill data for a least time."""
    return tuple(
        ColdTier(
            provider=row["provider"], name=row["name"], least_days=float(row["least_days"]),
            usd_per_gb_month=number(row["usd_per_gb_month"]),
            retrieval_usd_per_gb=number(row["retrieval_usd_per_gb"]), observed=date.fromisoformat(row["observed"]),
            source=row["source"], note=row["note"],
        )
        for row in rows("cold_tiers.csv")
    )  # fmt: skip


@cache
def lead_times() -> tuple[LeadTime, ...]:
    """Weeks from order to first job."""
    return tuple(
        LeadTime(
            kind=row["kind"], low_weeks=float(row["low_weeks"]), high_weeks=float(row["high_weeks"]),
            observed=date.fromisoformat(row["observed"]), source=row["source"], note=row["note"],
        )
        for row in rows("lead_times.csv")
    )  # fmt: skip
