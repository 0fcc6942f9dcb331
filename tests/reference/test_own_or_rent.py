"""The founding claim "two to three times as dear", at frozen prices: the document, the verdicts and what moves them."""

from __future__ import annotations

import csv
import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from benchmarks.claim import fleets
from benchmarks.claim.fleets import DEMANDS, Fleet
from benchmarks.claim.frozen import ERAS, NOT_FROZEN, Era, Price, case, prices, product
from benchmarks.claim.page import page
from benchmarks.claim.ratios import (
    PLACES,
    UTILISATIONS,
    Ratio,
    Verdict,
    committed,
    ratio,
    table,
    used_from,
)

from gpuwise.own.case import asset
from gpuwise.own.plan import own_usd_per_gpu_hour

DOCUMENT = Path(__file__).parents[2] / "docs" / "own-or-rent.md"
OFFICE, COLOCATION = PLACES
THERE, STEADY, _TEAM, VARYING, UNKNOWN = DEMANDS
_THEN, NOW = ERAS


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


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.key)
def test_every_figure_that_the_product_takes_is_frozen_with_its_origin(era: Era) -> None:
    frozen = case(era).figures.by_name
    assert {*frozen} == {*product(era).case.figures.by_name} - {*NOT_FROZEN}
    assert product(era).case.accelerators == era.accelerators
    for one in frozen.values():
        assert one.source
        assert one.low is None or one.high is None or one.low <= one.value <= one.high


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
            if committed(price):
                assert max(middles) / min(middles) < 1.15
            else:
                assert middles == sorted(middles)
            assert all(each.low < each.middle < each.high for each in found)


@pytest.mark.parametrize("times", [1.0, 2.0])
def test_at_the_use_from_which_the_cloud_is_so_much_dearer_the_ratio_is_just_that(times: float) -> None:
    era, price = one("today", "aws", "on demand")
    middle = used_from(era, price, OFFICE, times).middle
    assert ratio(era, price, OFFICE, middle).middle == pytest.approx(times, rel=0.02)


def test_where_the_cloud_is_cheap_no_use_is_enough() -> None:
    assert used_from(*one("today", "verda", "spot"), COLOCATION, 1.0).low == math.inf


def fleet(era: Era, gpus: int, demand: fleets.Demand) -> Fleet:
    return fleets.fleet(era, fleets.list_price(era), gpus, demand)


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.key)
def test_the_claim_lies_in_the_middle_for_steady_large_work_at_list_price_and_fails_for_the_rest(era: Era) -> None:
    assert 2 <= fleet(era, 40, THERE).ratio.middle <= 3, "once the servers work"
    assert 1.5 <= fleet(era, 40, STEADY).ratio.middle < fleet(era, 40, THERE).ratio.middle, "both pay until they come"
    assert fleet(era, 1, STEADY).ratio.verdict is Verdict.CHEAPER
    assert not fleet(era, 1, STEADY).pays
    assert fleet(era, 40, VARYING).ratio.verdict is Verdict.LESS
    assert fleet(era, 40, UNKNOWN).ratio.low < fleet(era, 40, STEADY).ratio.low < 2


def test_the_more_demand_varies_the_less_owning_saves_from_a_server_s_worth_of_demand_on() -> None:
    """Below it a server is idle in part anyway, and variation uses some of that."""
    for gpus, found in (row for row in fleets.table(NOW) if row[0] >= 8):
        by_variation = [one.ratio.middle for one in found[:3]]
        assert by_variation == sorted(by_variation, reverse=True), gpus


def test_an_own_hour_at_the_middle_figures_is_what_a_person_finds_by_hand() -> None:
    """H100 in the office, 80 % in use.

    313,112 USD with 10 % of storage and 3 % of spares are 354,756; at 10 % over four years, a quarter of the server
    left, these are 95,049 USD a year. Staff 18,480, support and insurance 18,943, idle energy 4,413. Over
    8 · 8,760 · 0.99 · 0.8 = 55,503 hours it makes 2.466 USD, and 0.140 more is the energy of a busy hour.
    """
    middle = case(NOW).figures.middle()
    server = asset(case(NOW), middle, OFFICE.site, alone=OFFICE.alone)
    hourly = own_usd_per_gpu_hour(server, middle["discount_fraction"], 0.8)
    assert float(np.squeeze(hourly)) == pytest.approx(2.606, abs=0.001)


def test_every_price_of_both_eras_is_shown_with_its_day() -> None:
    text = page()
    for price in prices():
        assert f"| {price.provider}, {price.kind} | {price.usd_per_gpu_hour:.2f} | {price.observed} |" in text
    assert all(f"{share:.0%}".replace("%", " %") in text for share in UTILISATIONS)


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    for block in page().split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1, block
