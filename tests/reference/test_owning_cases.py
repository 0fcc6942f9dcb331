"""Published figures of owning, renting and leaving (owning_cases.csv), each through the product's own functions.

63 of the 110 go through functions that the verbs call; most of `unit_costs`, `failures` and parts of `ledger`, `rental`
and `energy` are formulas for those who call gpuwise from Python.

An adapter names the inputs of a row as the product does, and nothing more. Kinds: a trap has printed a figure that does
not follow from its own inputs, so that the recomputed one counts; a bound must not be exceeded; any other row has its
published figure within abs(x − published) ≤ max(tol_rel · |published|, tol_abs).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from itertools import accumulate, pairwise
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.own.facts import JANUARY, NO_SPANS, READING, fact

from gpuwise.cost.spot import young_interval_s
from gpuwise.cost.tariffs import Tariff, Tier
from gpuwise.own.booking import booked
from gpuwise.own.demand import expected, steady
from gpuwise.own.energy import energy_kwh, energy_usd, g_co2e_per_kwh, kg_co2e
from gpuwise.own.failures import Interruptions
from gpuwise.own.gravity import Line, egress_usd, transfer_days
from gpuwise.own.ledger import (
    break_even_h,
    changed_usd,
    macrs5_usd,
    months_of_use,
    net_saving_usd,
    payback_months,
    saving_flows_usd,
    spread_ratio,
    straight_line_usd,
    years_of_use,
)
from gpuwise.own.plan import Asset, Flows, Own, Tail, World, all_in_usd, flows, yearly_usd
from gpuwise.own.portfolio import portfolio, together
from gpuwise.own.rental import competitive_ratio
from gpuwise.own.unit_costs import (
    Chip,
    cluster_usd,
    draw_kw,
    mixed_usd,
    pays_back_months,
    run_usd,
    usd_per_core_h,
    usd_per_million,
    usd_per_pflop_year,
    work_to_pay_back,
)
from gpuwise.own.usage import Bill
from gpuwise.sources.focus import Wish, read_bill
from gpuwise.sources.instances import instances
from gpuwise.store import package
from gpuwise.units import HOURS_PER_MONTH, KG_PER_POUND, parse_size

Inputs = Mapping[str, Any]
Floats = NDArray[np.float64]
TABLE = Path(__file__).with_name("owning_cases.csv")
SHARED = Path(__file__).parents[3] / "shared" / "data"
GROUPS = (
    "break_even", "tco_total", "capex", "run_cost", "energy", "unit_cost", "egress", "transfer_time", "reliability",
    "focus", "price_change", "licence", "depreciation", "exit", "online_rule", "hybrid", "checkpoint", "trap",
)  # fmt: skip
KG_PER_TONNE = 1000
MILLION = 1e6
"""A resale value that falls so fast leaves nothing after years."""


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["group"] in GROUPS]


ROWS = read(TABLE)


def shared(*parts: str) -> Path:
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the shared data (../shared/data/{'/'.join(parts)}) are not there")
    return path


# ---- break-even ----


def break_even_hours(i: Inputs) -> float | None:
    return break_even_h(i["capex_usd"], i["cloud_usd_per_h"], i["own_opex_usd_per_h"])


def break_even_calendar_months(i: Inputs) -> float:
    return months_of_use(break_even_hours(i), i["hours_per_month"])


def break_even_calendar_years(i: Inputs) -> float:
    return years_of_use(break_even_hours(i), i["hours_per_day"])


def break_even_against_another_api(i: Inputs) -> float | None:
    power = energy_usd(energy_kwh(i["power_kw"], i["hours_per_month"]), i["usd_per_kwh"])
    a, b = (mixed_usd(*i[f"api_{which}_usd_per_mtok_in_out"], i["input_share"]) for which in "ab")
    work = work_to_pay_back(i["hardware_usd"], i["break_even_months_vs_a"], a, power)
    return pays_back_months(i["hardware_usd"], work, b, power)


def break_even_with_capex_once(i: Inputs) -> float | None:
    """The engine's own flows: servers against the cloud for the same demand."""
    months = 12 * i["years"]
    lived = world(expected(i["gpus"] * i["hours_per_month"], 0.0, months))
    machine = owned(
        accelerators=i["gpus"],
        capex_usd=all_in_usd(i["gpus"] * i["usd_per_gpu"], 0.0, i["infra_overhead"], 0.0, 0.0),
        life_years=i["years"],
        busy_kw=i["gpus"] * i["kw"],
        pue=i["pue"],
        electricity_usd_per_kwh=i["usd_per_kwh"],
        hosting_usd_per_month=i["dc_usd_per_month"],
    )
    rent = flows([], Tail(usd_per_gpu_hour=i["cloud_usd_per_gpu_h"]), lived)
    own = flows([Own(asset=machine, servers=1)], Tail(usd_per_gpu_hour=0.0), lived)
    return payback_months(np.subtract(rent.total_usd, own.total_usd)[0])


# ---- totals, through the flows of plans ----


def world(demand_gpu_h: Floats) -> World:
    months = demand_gpu_h.reshape(1, -1)
    return World(demand_gpu_h=months, price=np.ones_like(months), shape=steady())


def owned(**figures: float) -> Asset:
    nothing = {
        "accelerators": 1, "capex_usd": 0.0, "server_usd": 0.0, "life_years": 1.0,
        "worth_decline_per_year": 1.0, "busy_kw": 0.0,
        "idle_kw": 0.0, "pue": 1.0, "electricity_usd_per_kwh": 0.0, "hosting_usd_per_month": 0.0,
        "staff_usd_per_month": 0.0, "upkeep_usd_per_year": 0.0, "licence_usd_per_gpu_year": 0.0,
        "lead_months": 0.0,
    }  # fmt: skip
    return Asset(**(nothing | figures))


def cloud_total(i: Inputs) -> float:
    if "gpu_hours" in i:
        demand, gpus, price = np.array([i["gpu_hours"]]), i["gpus_per_instance"], i["cloud_usd_per_instance_h"]
    else:
        demand = expected(i["utilisation"] * HOURS_PER_MONTH, 0.0, 12 * i["years"])
        gpus, price = 1, i["cloud_usd_per_h"]
    return float(flows([], Tail(usd_per_gpu_hour=changed_usd(price, 0.0, gpus)), world(demand)).total_usd.sum())


def cluster_flows(i: Inputs) -> Flows:
    machine = owned(
        capex_usd=i["price_usd"],
        life_years=i["years"],
        busy_kw=i["tdp_kw"],
        pue=i["pue"],
        electricity_usd_per_kwh=i["usd_per_kwh"],
    )
    demand = expected(i["utilisation"] * i["accelerators"] * HOURS_PER_MONTH, 0.0, 12 * i["years"])
    return flows([Own(asset=machine, servers=i["accelerators"])], Tail(usd_per_gpu_hour=0.0), world(demand))


def cluster_energy_musd(i: Inputs) -> float:
    return float(cluster_flows(i).running_usd.sum()) / MILLION


def cluster_musd(i: Inputs) -> float:
    return float(cluster_flows(i).total_usd.sum()) / MILLION


def pflop_year(i: Inputs) -> float:
    total = float(cluster_flows(i).total_usd.sum())
    return usd_per_pflop_year(total, i["accelerators"], i["dense_pflops"], i["years"], i["utilisation"])


def licence(i: Inputs) -> float:
    machine = owned(accelerators=i["gpus"], licence_usd_per_gpu_year=i["usd_per_gpu_year"])
    return float(yearly_usd(machine, 0.0))


# ---- clusters, runs, units ----


def cluster(i: Inputs) -> float:
    return cluster_usd(
        i["chips"],
        i["price_usd_per_chip_in_server"],
        i["interconnect_share_of_cluster"],
        i["price_index_ratio_to_2024_12"],
    )


def run_on_owned_chips(i: Inputs) -> float:
    chip = Chip(
        price_usd=i["price_usd_per_chip_in_server"],
        age_days=i["days_from_acquisition_to_training_start"],
        network_fraction=i["interconnect_share_of_cluster"],
        draw_kw=draw_kw(i["chip_tdp_kw"], i["server_over_chip_power"], i["power_fraction_of_tdp"]),
        pue=i["pue"],
        usd_per_kwh=i["usd_per_kwh"],
    )
    return run_usd(chip, i["chip_hours"], i["price_decline_oom_per_year"], i["price_index_ratio_to_2024_12"])


def core_hour(i: Inputs) -> float:
    return usd_per_core_h(i["server_usd"], i["cores"], i["years"], i["utilisation"])


def million_tokens(i: Inputs) -> float:
    return usd_per_million(i["usd_per_h"], i["tokens_per_s"], i["utilisation"])


# ---- energy ----


def gpu_energy(i: Inputs) -> float:
    return energy_kwh(i["kw_per_gpu"], i["gpu_hours"], pue=i["pue"])


def training_energy(i: Inputs) -> float:
    return energy_kwh(i["avg_power_w"] / 1000, i["hours"], pue=i["pue"])


def tonnes(i: Inputs) -> float:
    return kg_co2e(i["energy_kwh"], i["g_co2e_per_kwh"]) / KG_PER_TONNE


def pounds(i: Inputs) -> float:
    return kg_co2e(i["energy_kwh"], g_co2e_per_kwh(i["lb_co2e_per_kwh"])) / KG_PER_POUND


def yearly_energy(i: Inputs) -> float:
    return energy_usd(energy_kwh(i["kw"], i["hours_per_year"], pue=i["pue"], count=i["gpus"]), i["usd_per_kwh"])


# ---- data that leaves ----


def tariff(i: Inputs) -> Tariff:
    """Widths of tiers as starts and ends, the free GB first."""
    widths = [i["free_gb"], *(width for width, _ in i["tiers_gb_usd"])]
    ends = [
        None if None in widths[: n + 1] else end for n, end in enumerate(accumulate(width or 0 for width in widths))
    ]
    prices = [0.0, *(usd for _, usd in i["tiers_gb_usd"])]
    tiers = tuple(
        Tier(start=start, end=end, usd_per_unit=usd)
        for (start, end), usd in zip(pairwise([0, *ends]), prices, strict=True)
    )
    return Tariff(provider="", region=None, item="egress", tiers=tiers, observed=None, source="")


def tier_cost(i: Inputs) -> float:
    bought = tariff(i)
    return egress_usd(bought, i["billable_gb_in_tier"], before_gb=bought.tiers[i["tier"]].start)


def month_of_egress(i: Inputs) -> float:
    return egress_usd(tariff(i), i["gb"])


def copy_days(i: Inputs) -> float:
    return transfer_days(
        parse_size(f"{i['terabytes']} TB"), Line(gbit_per_s=i["gbps"], efficiency_fraction=i["efficiency"])
    )


# ---- failures ----


def interruptions(i: Inputs) -> Interruptions:
    """Llama 3's record; the row of the trap leaves its days and GPUs out."""
    causes = {"hbm_interruptions": "memory", "gpu_interruptions": "gpu", "faulty_gpu": "gpu"}
    return Interruptions(
        days=i.get("days", 54),
        accelerators=i.get("gpus", 16384),
        per_node=i.get("gpus_per_node", 8),
        count=i["unplanned"],
        by_cause={cause: i[key] for key, cause in causes.items() if key in i},
    )


# ---- bills ----


def charges(i: Inputs) -> Bill:
    """The specification's rows of (CommitmentDiscountStatus, EffectiveCost); without a status: of no commitment."""
    rows = [
        fact(
            effective=cost, billed=0.0, status=status and status.lower(), unused=status == "Unused",
            commitment=status and "c", pricing="committed" if status else "standard",
        )
        for status, cost in i["rows_status_effective_cost"]
    ]  # fmt: skip
    return booked(rows, NO_SPANS, READING)


def utilisation(i: Inputs) -> float | None:
    (one,) = charges(i).commitments
    return one.utilisation_fraction


def term(i: Inputs) -> Bill:
    """A commitment of so many hours from January on, its part up front invoiced in the month before: purchases have no
    effective cost, and each hour of use has its own."""
    hours = [JANUARY + timedelta(hours=hour) for hour in range(i["hours"])]
    bought = {"kind": "purchase", "commitment": "c", "role": "none", "effective": 0.0, "gpu_h": 0.0, "hours": 0.0}
    upfront = fact(
        **bought, month="2025-12", invoice="2025-12", billed=i["usd_per_h"] * i["hours"] * i["upfront_share"]
    )
    each = i["usd_per_h"] * (1 - i["upfront_share"])
    rows = [
        row
        for hour in hours
        for month in [f"{hour:%Y-%m}"]
        for row in (
            fact(**bought, month=month, invoice=month, billed=each),
            fact(month=month, invoice=month, commitment="c", status="used", effective=i["usd_per_h"], billed=0.0),
        )
    ]
    found = booked([upfront, *rows], NO_SPANS, READING)
    assert fsum(month.effective for month in found.months) == pytest.approx(fsum(m.billed for m in found.months))
    return found


def upfront_billed(i: Inputs) -> float:
    return term(i).months[0].purchases


def recurring_billed(i: Inputs) -> float:
    """Of the months of the term, on average: the fee is by the hour, and months differ in length."""
    months = term(i).months[1:]
    assert len(months) == i["months"]
    return fsum(month.purchases for month in months) / len(months)


@cache
def sample() -> Bill:
    known = instances(package.offers(), package.accelerators().values())
    return read_bill([shared("focus", "focus_1_0_sample.csv")], Wish(instances=known))


def sample_billed(i: Inputs) -> float:
    """Of all rows, or of the ten GPU rows, where BilledCost stands in for an EffectiveCost that the sample rounds."""
    bill = sample()
    return fsum(month.billed if i["rows"] == bill.rows else month.gpu_effective for month in bill.months)


# ---- how much to own ----


@cache
def helios() -> Floats:
    """GPUs wanted, (teams, minutes)."""
    with shared("traces", "helios_earth_demand.csv").open(encoding="utf-8") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1)[:, 1:].T


def cloud_per_own(i: Inputs) -> float:
    return i["cloud_cost_per_gpu_minute"] / i["own_cost_per_gpu_minute"]


def pooled(i: Inputs) -> Any:
    return portfolio(helios().sum(axis=0), cloud_per_own(i))


def each_team(i: Inputs) -> Any:
    return together(portfolio(team, cloud_per_own(i)) for team in helios())


ADAPTERS: Mapping[tuple[str, str], Callable[[Inputs], float | None]] = {
    ("break_even", "break_even_hours"): break_even_hours,
    ("break_even", "break_even_months"): break_even_calendar_months,
    ("break_even", "break_even_months_vs_b"): break_even_against_another_api,
    ("tco_total", "cloud_total_usd"): cloud_total,
    ("tco_total", "tco_musd"): cluster_musd,
    ("capex", "cluster_acquisition_usd"): cluster,
    ("run_cost", "amortised_hardware_plus_energy_usd"): run_on_owned_chips,
    ("energy", "energy_kwh"): gpu_energy,
    ("energy", "energy_kwh_incl_pue"): training_energy,
    ("energy", "co2e_tonnes"): tonnes,
    ("energy", "co2e_lb"): pounds,
    ("energy", "energy_cost_musd"): cluster_energy_musd,
    ("unit_cost", "usd_per_effective_pflop_year"): pflop_year,
    ("unit_cost", "hardware_usd_per_core_h"): core_hour,
    ("unit_cost", "usd_per_million_tokens"): million_tokens,
    ("egress", "tier_cost_usd"): tier_cost,
    ("egress", "month_cost_usd"): month_of_egress,
    ("transfer_time", "days"): copy_days,
    ("reliability", "mean_hours_between_unplanned"): lambda i: interruptions(i).mean_h,
    ("reliability", "share_of_unplanned"): lambda i: interruptions(i).share("memory"),
    ("reliability", "gpu_interruptions_per_gpu_year"): lambda i: interruptions(i).per_gpu_year("gpu", "memory"),
    ("reliability", "interruptions_per_1000_node_days"): lambda i: interruptions(i).per_1000_node_days,
    ("focus", "commitment_utilisation"): utilisation,
    ("focus", "effective_cost_usd"): lambda i: charges(i).months[0].effective,
    ("focus", "upfront_billed_usd"): upfront_billed,
    ("focus", "recurring_per_month_usd"): recurring_billed,
    ("focus", "instance_hours"): lambda _: sample().gpu_h,
    ("focus", "billed_cost_usd"): sample_billed,
    ("focus", "sum_of_EffectiveCost_column"): lambda _: fsum(month.gpu_effective for month in sample().months),
    ("price_change", "usd_per_gpu_h"): lambda i: changed_usd(i["old_usd_per_h"], -i["cut"], i["gpus"]),
    ("price_change", "new_usd_per_h"): lambda i: changed_usd(i["old_usd_per_h"], i["change"]),
    ("price_change", "ratio"): lambda i: spread_ratio([i["min_usd_per_gpu_h"], i["max_usd_per_gpu_h"]]),
    ("licence", "usd_per_server_year"): licence,
    ("depreciation", "annual_usd"): lambda i: straight_line_usd(i["price_usd"], i["residual"], i["years"]),
    ("depreciation", "deduction_usd"): lambda i: macrs5_usd(i["basis_usd"], i["year"]),
    ("exit", "net_saving_musd"): lambda i: net_saving_usd([i["avoided_third_party_musd"]], [i["added_own_musd"]]),
    ("exit", "two_year_saving_musd"): lambda i: net_saving_usd([i["net_2016_musd"], i["further_2017_musd"]]),
    ("exit", "saving_musd_per_year"): lambda i: net_saving_usd([i["before_musd_per_year"]], [i["after_musd_per_year"]]),
    ("exit", "payback_months"): lambda i: payback_months(
        saving_flows_usd(i["hardware_musd"], i["saving_musd_per_year"], years=1)
    ),
    ("online_rule", "competitive_ratio"): lambda i: competitive_ratio(i["alpha"], randomised=i["rule"] == "randomised"),
    ("hybrid", "best_owned_gpus"): lambda i: pooled(i).gpus,
    ("hybrid", "mean_cost_per_minute"): lambda i: pooled(i).hybrid,
    ("hybrid", "sum_of_best_costs"): lambda i: each_team(i).hybrid,
    ("checkpoint", "optimal_interval_s"): lambda i: float(
        young_interval_s(i["checkpoint_s"], i["mean_time_between_failures_s"])
    ),
    ("trap", "break_even_years"): break_even_calendar_years,
    ("trap", "break_even_months"): break_even_with_capex_once,
    ("trap", "annual_energy_usd"): yearly_energy,
    ("trap", "share_of_unplanned"): lambda i: interruptions(i).share("gpu"),
}


def adapter(row: Mapping[str, str]) -> Callable[[Inputs], float | None] | None:
    return ADAPTERS.get((row["group"], row["output_name"]))


def tolerance(row: Mapping[str, str], wanted: float) -> float:
    return max(float(row["tol_rel"]) * abs(wanted), float(row["tol_abs"]))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case_id"])
def test_the_published_figure_is_given_back(row: dict[str, str]) -> None:
    calculate = adapter(row)
    assert calculate is not None
    found = calculate(json.loads(row["inputs_json"]))
    assert found is not None
    printed, right = float(row["published_value"]), float(row["recomputed_value"])
    if row["kind"] == "bound":
        assert found <= printed + tolerance(row, printed)
        assert found == pytest.approx(right, rel=1e-9)
    elif row["kind"] == "trap":
        assert abs(found - right) <= tolerance(row, right)
        assert abs(found - printed) > tolerance(row, printed)
    else:
        assert abs(found - printed) <= tolerance(row, printed)


def test_all_110_rows_have_an_adapter(record_property: Callable[[str, object], None]) -> None:
    covered = [row["case_id"] for row in ROWS if adapter(row)]
    record_property("reference cases of owning", f"{len(covered)} of {len(ROWS)}")
    print(f"{len(covered)} of {len(ROWS)} reference cases go through the product's own functions")
    assert [row["case_id"] for row in ROWS if not adapter(row)] == []
    assert len({row["case_id"] for row in ROWS}) == len(covered) == 110
    assert {row["group"] for row in ROWS} == set(GROUPS)


def test_no_adapter_stands_without_a_row() -> None:
    assert set(ADAPTERS) == {(row["group"], row["output_name"]) for row in ROWS}


def test_the_rows_are_those_of_the_shared_table_with_their_sources() -> None:
    assert read(shared("tco", "reference_cases.csv")) == ROWS
    assert all(row["source_title"] and row["source_access"] for row in ROWS)
