"""The founding claim "two to three times as dear", at frozen prices: the document, the verdicts and what moves them."""

from __future__ import annotations

import csv
import math
from importlib import resources
from pathlib import Path

import pytest
from benchmarks.claim.page import page
from benchmarks.claim.ratios import (
    ERAS,
    PLACES,
    UTILISATIONS,
    Era,
    Price,
    Ratio,
    Verdict,
    assembled,
    prices,
    ratio,
    table,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "own-or-rent.md"
OFFICE, COLOCATION = PLACES


def one(era: str, provider: str, kind: str) -> tuple[Era, Price]:
    (found,) = (p for p in prices() if (p.era, p.provider, p.kind) == (era, provider, kind))
    return next(e for e in ERAS if e.key == era), found


def test_the_document_is_what_the_figures_say() -> None:
    assert DOCUMENT.read_text("utf-8") == page()


def test_frozen_prices_are_those_of_the_bundle_on_their_days() -> None:
    text = (resources.files("gpuwise") / "data" / "offers.csv").read_text("utf-8")
    known = [
        (row["provider"], row["observed"], round(float(row["price_usd_per_hour"]) / int(row["accelerators"]), 2))
        for row in csv.DictReader(text.splitlines()) if row["price_usd_per_hour"]
    ]  # fmt: skip
    for price in prices():
        assert (price.provider, price.observed.isoformat(), round(price.usd_per_gpu_hour, 2)) in known, price


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (3.1, 5, Verdict.MORE),
        (2.0, 4, Verdict.HOLDS),
        (1.5, 2.5, Verdict.DEPENDS),
        (1.1, 1.9, Verdict.LESS),
        (0.4, 0.9, Verdict.CHEAPER),
    ],
)
def test_a_verdict_follows_from_the_ends_of_the_interval(low: float, high: float, verdict: Verdict) -> None:
    assert Ratio(middle=math.sqrt(low * high), low=low, high=high).verdict is verdict


@pytest.mark.parametrize(
    ("era", "provider", "kind", "share", "expected"),
    [
        ("2021", "aws", "on demand", 0.95, Verdict.HOLDS),
        ("2021", "aws", "on demand", 0.4, Verdict.LESS),
        ("2021", "aws", "commitment of 3 years", 0.8, Verdict.LESS),
        ("today", "azure", "on demand", 0.6, Verdict.HOLDS),
        ("today", "lambda", "on demand", 0.2, Verdict.CHEAPER),
        ("today", "hyperstack", "on demand", 0.95, Verdict.LESS),
        ("today", "verda", "spot", 0.95, Verdict.CHEAPER),
    ],
)
def test_the_claim_holds_for_busy_servers_against_list_prices_and_not_for_the_rest(
    era: str, provider: str, kind: str, share: float, expected: Verdict
) -> None:
    time, price = one(era, provider, kind)
    assert ratio(time, price, OFFICE, share).verdict is expected


def test_the_ratio_rises_with_use_and_a_commitment_hardly_moves() -> None:
    for era in ERAS:
        for price, found in table(era, COLOCATION):
            middles = [each.middle for each in found]
            if price.kind.startswith("commitment"):
                assert max(middles) / min(middles) < 1.15
            else:
                assert middles == sorted(middles)
            assert all(each.low < each.middle < each.high for each in found)


def test_the_middle_is_near_the_sum_of_the_middle_figures_by_hand() -> None:
    """H100 in the office, 80 % in use, at 6.88 USD: annuity, staff, support, insurance, energy; 10 % billed idle."""
    time, price = one("today", "aws", "on demand")
    f = {name: figure.value for name, figure in assembled(time).case.figures.by_name.items()}
    capex = f["server_usd"] * (1 + f["storage_fraction"]) * (1 + f["spares_fraction"])
    crf = f["discount_fraction"] / (1 - (1 + f["discount_fraction"]) ** -f["life_years"])
    sff = f["discount_fraction"] / ((1 + f["discount_fraction"]) ** f["life_years"] - 1)
    kwh = f["pue_office"] * f["electricity_usd_per_kwh"] * 8760
    upkeep = f["support_fraction_per_year"] + f["insurance_fraction_per_year"]
    year = capex * (crf - f["residual_fraction"] * sff) + 12 * f["staff_usd_per_month"] + capex * upkeep
    year += (
        kwh
        * f["busy_kw"]
        * (f["idle_power_fraction"] + 0.8 * f["availability_fraction"] * (1 - f["idle_power_fraction"]))
    )
    by_hand = 6.88 / 0.9 / (year / (8 * 8760 * f["availability_fraction"] * 0.8))
    assert by_hand == pytest.approx(3.9, abs=0.3)
    assert ratio(time, price, OFFICE, 0.8).low < by_hand < ratio(time, price, OFFICE, 0.8).high


def test_every_price_of_both_eras_is_shown_with_its_day() -> None:
    text = page()
    for price in prices():
        assert f"| {price.provider}, {price.kind} | {price.usd_per_gpu_hour:.2f} | {price.observed} |" in text
    assert all(f"{share:.0%}".replace("%", " %") in text for share in UTILISATIONS)
