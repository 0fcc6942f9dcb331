"""What the page is computed from, as it stood on one day: prices of the cloud, and the figures of owning.

prices.csv is written by hand from the bundled offers. figures.csv is what the product took for each time when it was
last frozen (`python -m benchmarks.claim --freeze`), so that later data do not change the page.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date
from functools import cache
from pathlib import Path

from gpuwise.api.assembly import Assembled, assemble
from gpuwise.api.wanted import accelerator_of, wanted
from gpuwise.model import Assumption
from gpuwise.own.case import Case
from gpuwise.own.figures import figures, stated
from gpuwise.own.prices import Jumps
from gpuwise.request import OwnRequest, parse

PRICES = Path(__file__).parent / "prices.csv"
FIGURES = Path(__file__).parent / "figures.csv"
NOT_FROZEN = (
    "demand_gpu_h_per_month", "demand_wander_log_sd_per_root_year", "cloud_usd_per_gpu_hour",
    "committed_1y_discount_fraction", "committed_1y_usd_per_gpu_hour", "committed_3y_discount_fraction",
    "committed_3y_usd_per_gpu_hour",
    "spot_discount_fraction", "spot_usd_per_gpu_hour",
)  # fmt: skip
"""Figures of the product that each row of the page replaces, or does not use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """A time of the claim: the GPU, the day that is asked about, and the model of the server, with so many GPUs."""

    key: str
    gpu: str
    day: date
    server: str
    accelerators: int = 8


ERAS = (
    Era(key="2021", gpu="A100-SXM4-40GB", day=date(2021, 12, 31), server="DGX A100 320GB"),
    Era(key="today", gpu="H100-SXM", day=date(2026, 11, 30), server="HGX H100"),
)


def title(era: Era) -> str:
    return f"{accelerator_of(OwnRequest(gpu=(era.gpu,))).name}, {era.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One frozen price."""

    era: str
    kind: str
    provider: str
    usd_per_gpu_hour: float
    observed: date
    source: str
    offer: str


@cache
def prices() -> tuple[Price, ...]:
    with PRICES.open(encoding="utf-8", newline="") as file:
        return tuple(_price(row) for row in csv.DictReader(file))


def _price(row: dict[str, str]) -> Price:
    read = {"usd_per_gpu_hour": float(row["usd_per_gpu_hour"]), "observed": date.fromisoformat(row["observed"])}
    return Price(**{**row, **read})  # type: ignore[arg-type]


STILL = Jumps(
    per_year=stated("price_jumps_per_year", 0.0, "1/year"),
    log_sd=stated("price_jump_log_sd", 0.0, "1"),
    down_fraction=stated("price_jump_down_fraction", 0.5, "1"),
)
"""Prices that stay: the page holds a price against what owning costs at it."""


@cache
def case(era: Era) -> Case:
    """What is decided at that time; demand and the cloud's price are put in row by row."""
    with FIGURES.open(encoding="utf-8", newline="") as file:
        found = [_figure(row) for row in csv.DictReader(file) if row["era"] == era.key]
    return Case(
        figures=figures(found), months=60, accelerators=era.accelerators, block=1, jumps=STILL,
        open=frozenset(("on-demand", "office", "colocation")),
    )  # fmt: skip


def _figure(row: dict[str, str]) -> Assumption:
    low, high = (float(row[end]) if row[end] else None for end in ("low", "high"))
    observed = date.fromisoformat(row["observed"]) if row["observed"] else None
    return Assumption(name=row["name"], value=float(row["value"]), low=low, high=high, unit=row["unit"],
                      source=row["source"], observed=observed, note=row["note"])  # fmt: skip


def product(era: Era) -> Assembled:
    """What the product takes now for that time."""
    said = {"demand": "40 GPUs", "gpu": era.gpu, "server": era.server, "cloud-price": "1 USD", "country": "US",
            "as-of": era.day.isoformat()}  # fmt: skip
    request = parse(OwnRequest, said)
    device = accelerator_of(request)
    return assemble(request, device, wanted(request, device), era.day)


COLUMNS = ("era", *(field.name for field in fields(Assumption)))


def freeze() -> None:
    """Writes figures.csv anew from what the product takes now."""
    with FIGURES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for era in ERAS:
            taken = product(era).case.figures.by_name
            writer.writerows(_row(era, one) for name, one in taken.items() if name not in NOT_FROZEN)


def _row(era: Era, one: Assumption) -> Iterable[object]:
    return (era.key, *(getattr(one, name) for name in COLUMNS[1:]))
