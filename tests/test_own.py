"""The verb own from what a person says to page and document, on the bundled facts."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gpuwise import faces
from gpuwise.api.owning import own
from gpuwise.cli import Session, program
from gpuwise.errors import DataError, InvalidInput, MissingEvidence, UnknownName
from gpuwise.own.record import fit
from gpuwise.request import OwnRequest, parse
from gpuwise.sources.demand import read_record
from gpuwise.view.page import Chart, Facts, Table, Text
from tests.test_faces import nulls_without_reason

DAY = date(2026, 12, 1)
AWS = {"demand": "40 GPUs", "gpu": "H100-SXM", "provider": "aws"}


def asked(**said):
    return parse(
        OwnRequest, {name.replace("_", "-"): value for name, value in said.items()}, usd_per=lambda _code: 1.1567
    )


def answer(**said):
    return own(asked(**said), today=DAY)


def run(*words):
    return CliRunner().invoke(program, words, obj=Session(today=DAY))


# ---- what is wanted ----


@pytest.mark.parametrize(
    ("text", "gpu_h"),
    [
        ("1200 GPU-h/month", 1200),
        ("8 GPUs", 5840),
        ("300 GPU-hours a week", 300 * 365 / 7 / 12),
        ("14,400.0 gpu-h/y", 1200),
    ],
)
def test_a_demand_is_hours_a_time_or_gpus_at_all_times(text, gpu_h):
    assert asked(demand=text).demand_gpu_h_per_month == pytest.approx(gpu_h)


@pytest.mark.parametrize(
    "text", ["1200", "1200 h", "1200 GPU-h", "8 GPUs/month", "-3 GPUs", "0 GPUs", "many", "1200 GPU-h/fortnight"]
)
def test_a_demand_without_its_units_is_refused(text):
    with pytest.raises(InvalidInput, match="--demand"):
        asked(demand=text)


@pytest.mark.parametrize(("text", "yearly"), [("20%/y", 0.2), ("3%/month", 1.03**12 - 1), ("-5 % a year", -0.05)])
def test_a_growth_is_a_share_with_its_time(text, yearly):
    assert asked(demand="8 GPUs", growth=text).growth_fraction_per_year == pytest.approx(yearly)


@pytest.mark.parametrize("text", ["20%", "0.2", "20", "-100%/y", "9900%/month", "20%/moon"])
def test_a_growth_that_says_no_time_or_ends_the_world_is_refused(text):
    with pytest.raises(InvalidInput, match="--growth"):
        asked(growth=text)


@pytest.mark.parametrize("text", ["5", "1y 3", "3 months", "40y", "2.3 months"])
def test_a_horizon_is_whole_months_between_half_a_year_and_fifteen_years(text):
    with pytest.raises(InvalidInput, match="--horizon"):
        asked(horizon=text)


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ({"gpu": "H100-SXM"}, "how much work"),
        ({"gpu": "H100-SXM", "demand": "8 GPUs", "job": "painter-heavy", "every": "7d"}, "--demand and --job"),
        ({"gpu": "H100-SXM", "job": "painter-heavy"}, "how often"),
        ({"gpu": "H100-SXM", "demand": "8 GPUs", "every": "7d"}, "--every"),
        ({"gpu": "H100-SXM", "job": "painter-heavy", "every": "7d", "growth": "3%/y"}, "--growth"),
        ({"demand": "8 GPUs"}, "--gpu is missing"),
        ({"demand": "8 GPUs", "gpu": "H100"}, "may be"),
        ({"demand": "8 GPUs", "gpu": "80GB.."}, "names no GPU"),
    ],
)
def test_what_is_missing_or_said_twice_is_named(said, part):
    with pytest.raises(InvalidInput, match=part):
        answer(**said)


def test_retraining_makes_a_standing_demand():
    weekly, daily = (
        answer(job="painter-heavy", every=every, gpu="A100-80GB-SXM", data_growth="3%/month") for every in ("7d", "1d")
    )
    level = weekly.assembled.wanted.level
    assert daily.assembled.wanted.level.value == pytest.approx(7 * level.value)
    assert level.low < level.value < level.high, "a prediction has its interval"
    assert weekly.assembled.case.figures["demand_growth_per_year"].value == pytest.approx(1.03**12 - 1)
    assert level.value == pytest.approx(weekly.assembled.wanted.gpu_h_per_run * 365 / 12 / 7)
    assert weekly.advice == "cloud", "less than one GPU in use"


# ---- a record ----


def record(path: Path, gpus, start="2026-01-05T{:02d}:00") -> Path:
    hours = np.datetime64("2026-01-05T00", "h") + np.arange(len(gpus))
    path.write_text(
        "time,gpus\n" + "".join(f"{hour}:00Z,{n:g}\n" for hour, n in zip(hours, gpus, strict=True)), "utf-8"
    )
    return path


def test_a_record_says_level_growth_and_how_demand_varies(tmp_path):
    rng = np.random.default_rng(0)
    weeks = np.repeat(10 * np.exp(0.01 * np.arange(30)), 168)
    read = read_record(record(tmp_path / "gpus.csv", np.round(weeks * rng.gamma(4, 0.25, len(weeks)))))
    fitted = fit(read.gpus, read.step_h)
    assert (read.step_h, read.teams) == (1.0, {})
    assert fitted.low_growth_fraction < math.expm1(0.01 * 365.25 / 7) < fitted.high_growth_fraction
    assert fitted.shape.variation == pytest.approx(0.5, abs=0.05), "the trend is not counted as variation"
    assert fitted.gpu_h_per_month == pytest.approx(weeks[-1] * 730, rel=0.05)


def test_a_short_record_has_a_level_and_no_trend(tmp_path):
    fitted = fit(np.array([2.0, 4.0] * 168), 1.0)
    assert fitted.growth_fraction_per_year is None
    assert fitted.gpu_h_per_month == pytest.approx(3 * 730)


def test_own_takes_a_record(tmp_path):
    path = record(tmp_path / "gpus.csv", np.tile([0, 8, 16, 24], 168))
    found = answer(record=str(path), gpu="H100-SXM", provider="aws")
    assert found.assembled.case.shape.measured
    assert found.assembled.wanted.level.value == pytest.approx(12 * 730)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "is empty"),
        ("time,gpus\n", "0 rows"),
        ("hour,cards\n2026-01-01T00:00Z,1\n", "no column gpus"),
        ("time,gpus\n2026-01-01T00:00Z,1\n2026-01-01T01:00Z,1\n2026-01-01T03:00Z,1\n", "line 4"),
        ("time,gpus\n2026-01-01T01:00Z,1\n2026-01-01T00:00Z,1\n", "line 3"),
        ("time,gpus\n2026-01-01T00:00Z,1\n2026-01-01T01:00Z,-2\n", "line 3.*below 0"),
        ("time,gpus\n2026-01-01T00:00Z,1\n2026-02-31T01:00Z,2\n", "line 3"),
        ("time,gpus\n2026-01-01T00:00Z,1\n2026-01-01T01:00Z\n", "line 3.*missing"),
    ],
)
def test_a_record_that_cannot_be_used_names_its_line(tmp_path, text, part):
    path = tmp_path / "gpus.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=f"(?s){part}"):
        read_record(path)


# ---- prices and servers ----


def test_each_price_has_its_break_even_and_a_dearer_one_a_lower_one():
    found = answer(demand="40 GPUs", gpu="H100-SXM")
    rows = [row for row in found.break_evens if row.way == "on-demand"]
    assert len({row.offer.provider for row in rows}) == len(rows) > 5
    shares = [
        math.inf if row.from_fraction is None else row.from_fraction
        for row in sorted(rows, key=lambda row: row.usd_per_gpu_hour)
    ]
    assert shares == sorted(shares, reverse=True)
    assert all(row.offer.observed for row in found.break_evens), "each price has its day"


def test_the_break_even_of_the_own_price_is_where_the_first_server_pays():
    """`First` asks for the price at a use, the table for the use at a price: one is the other's inverse."""
    asked = {"demand": "8 GPUs", "gpu": "H100-SXM", "server_gpus": 8, "server_price": "300000 USD", "stage": "steady"}
    first = answer(**asked, cloud_price="9 USD").first
    own = next(
        row for row in answer(**asked, cloud_price=f"{first.usd_per_gpu_hour} USD").break_evens if row.offer is None
    )
    assert own.from_fraction == pytest.approx(first.busy_fraction, rel=1e-3)


def test_hours_that_are_lost_or_idle_are_in_what_owning_is_held_against():
    found = answer(demand="40 GPUs", gpu="H100-SXM")
    for row in found.break_evens:
        if row.way in ("on-demand", "spot"):
            assert row.useful_usd_per_gpu_hour > row.usd_per_gpu_hour / 0.9 * 0.999
        else:
            assert row.useful_usd_per_gpu_hour is None, "paid whether it is used or not"
            assert row.from_fraction in (None, 0.0)


def test_uc_094_what_owning_hides_is_visible_and_can_be_changed():
    shown = answer(**AWS).assembled.case.figures
    for name in (
        "spares_fraction",
        "staff_usd_per_month",
        "colocation_usd_per_kw_month",
        "life_years",
        "residual_fraction",
        "network_fraction",
    ):
        assert shown[name].low < shown[name].value < shown[name].high
        assert shown[name].source
    changed = answer(**AWS, set=["life_years=3", "spares_fraction=0.05..0.10"]).assembled.case.figures
    assert (changed["life_years"].value, changed["life_years"].low) == (3.0, None)
    assert (changed["spares_fraction"].low, changed["spares_fraction"].high) == (0.05, 0.10)


def test_uc_094_the_year_of_a_server_is_shown_by_how_long_it_is_kept():
    by_life = {
        row.life_years: row for row in answer(**AWS, server_price="240000 USD", set=["residual_fraction=0.15"]).lives
    }
    assert list(by_life) == [3, 4, 5, 6]
    assert by_life[4].capital_usd_per_year == pytest.approx(240_000 * 0.85 / 4), (
        "the share that is left belongs to four years"
    )
    assert by_life[4].spares_usd_per_year == pytest.approx(240_000 * (1.1 * 1.03 - 1) / 4), "storage and spares"
    totals = [row.total_usd_per_year for row in by_life.values()]
    assert totals == sorted(totals, reverse=True)


def test_uc_092_a_purchase_is_judged_by_its_present_value_and_not_by_savings():
    found = answer(**AWS, market="on-demand,owned")
    judged, paths = found.investment, found.decision.outcomes
    saved = paths[found.decision.rented].path_usd - paths[found.decision.owned].path_usd
    assert judged.total_usd == pytest.approx(saved.sum())
    assert judged.npv_usd < judged.total_usd
    assert judged.answer == "buy"
    page = faces.own(asked(**AWS), today=DAY).page()
    facts = {fact.label: fact for block in page.blocks if isinstance(block, Facts) for fact in block.facts}
    assert "at 10 % a year" in facts["Net present value"].why
    assert facts["It turns at"].text.endswith("%")


@pytest.mark.parametrize("text", ["life_years", "life_years=", "life_years=6..3", "life_years=x", "spares_fraction=-1"])
def test_a_figure_that_says_nothing_is_refused(text):
    with pytest.raises(InvalidInput, match="--set"):
        asked(**AWS, set=[text])


@pytest.mark.parametrize(
    "text",
    [
        "idle_billed_fraction=1",
        "life_years=0",
        "network_fraction=1",
        "availability_fraction=0..1",
        "pue_office=0.5",
        "discount_fraction=5",
        "residual_fraction=2",
        "spot_discount_fraction=0.5..1",
        "server_usd=0",
    ],
)
def test_a_value_at_which_nothing_can_be_reckoned_is_refused_and_never_an_answer(text):
    with pytest.raises(InvalidInput, match=r"--set: .* it lies from"):
        answer(**AWS, set=[text])


@pytest.mark.parametrize(
    "text", ["residual_fraction=0", "discount_fraction=0", "lead_weeks=0", "demand_variation=0", "tax_fraction=0.25"]
)
def test_a_value_at_the_edge_is_reckoned_with(text):
    found = answer(**AWS, set=[text])
    assert all(math.isfinite(one.present_usd.mean) for one in found.decision.outcomes.values())
    assert found.decision.outcomes["office"].gpus > 0


def test_no_resale_makes_owning_dearer():
    kept, lost = (answer(**AWS, set=[f"residual_fraction={value}"]) for value in (0.25, 0))
    assert lost.decision.outcomes["office"].usd_per_gpu_hour.p50 > kept.decision.outcomes["office"].usd_per_gpu_hour.p50


@pytest.mark.parametrize("said", [{"horizon": "6mo"}, {"horizon": "1y", "set": ["lead_weeks=60"]}])
def test_servers_that_come_after_the_horizon_are_no_fault_and_the_first_pays_at_no_price(said):
    found = answer(**AWS, **said)
    assert found.first is None
    assert all(fleet.busy_fraction is None or 0 <= fleet.busy_fraction <= 1 for fleet in found.fleets)
    assert faces.own(asked(**AWS, **said), today=DAY).page().blocks


def test_a_figure_that_nobody_uses_is_named_with_the_nearest():
    with pytest.raises(UnknownName, match="life_year") as caught:
        answer(**AWS, set=["life_year=3"])
    assert "life_years" in caught.value.nearest


@pytest.mark.parametrize("model", ["R750", "R740xd", "XE8545", "XE9680"])
def test_a_server_without_a_public_price_asks_for_one(model):
    gpu = "H100-SXM" if model == "XE9680" else "A100-80GB-SXM"
    found = answer(demand="40 GPUs", gpu=gpu, server=model, cloud_price="3 USD")
    why = str(found.assembled.case.refused["office"])
    assert "no public price" in why
    assert "--server-price" in why
    said = answer(
        demand="40 GPUs", gpu=gpu, server=model, cloud_price="3 USD", server_price="200000 EUR", server_gpus="4"
    )
    assert said.assembled.case.figures["server_usd"].value == pytest.approx(200_000 * 1.1567)
    assert "office" in said.decision.outcomes


def test_a_server_that_nobody_sells_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="--server"):
        answer(**AWS, server="XE9681")


def test_the_page_names_the_source_and_day_of_the_server_price():
    price = answer(**AWS).assembled.case.figures["server_usd"]
    assert price.observed is not None
    assert price.low <= price.value <= price.high


def test_no_price_of_the_cloud_is_no_answer():
    with pytest.raises(MissingEvidence, match="--cloud-price"):
        answer(demand="40 GPUs", gpu="V100-SXM2-32GB", max_age="5")


# ---- conditions ----


def test_conditions_close_options_and_say_why():
    closed = {
        "premises": answer(demand="40 GPUs", gpu="H100-SXM", data_must_stay="on-premises"),
        "capex": answer(**AWS, no_capex=True),
        "weeks": answer(**AWS, by="2026-12-10"),
        "feeds": answer(**AWS, room_power="5kW"),
    }
    for word, found in closed.items():
        assert any(word in str(why) for why in found.assembled.case.refused.values()), word
    assert set(closed["premises"].decision.outcomes) == {"office"}
    assert closed["capex"].advice == "rent"
    assert "office" not in closed["feeds"].decision.outcomes
    assert "colocation" in closed["feeds"].decision.outcomes


def test_a_room_holds_as_many_servers_as_its_power_feeds():
    found = answer(**AWS, room_power="23kW", server_power="10.2kW", server_price="250000", server_gpus="8")
    assert found.assembled.case.most == {"office": 2}
    assert found.decision.outcomes["office"].gpus <= 16


def test_the_country_sets_electricity_and_carbon():
    germany, states = (answer(**AWS, country=country) for country in ("DE", "US"))
    assert (
        germany.assembled.case.figures["electricity_usd_per_kwh"].value
        > states.assembled.case.figures["electricity_usd_per_kwh"].value
    )
    own_de = next(row for row in germany.energy if row.option == germany.decision.owned)
    assert own_de.kg_co2e > 0
    assert "Germany" in str(own_de.origin)
    unknown = next(row for row in answer(**AWS).energy if row.option != "on-demand")
    assert unknown.kg_co2e is None
    assert "unknown" in str(unknown.origin)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ({"demand": "500 GPU-h/month", "provider": "aws"}, "cloud"),
        ({"demand": "40 GPUs", "provider": "aws", "stage": "exploring"}, "cloud"),
        ({"demand": "40 GPUs", "provider": "azure", "market": "on-demand,owned"}, "own"),
        ({"demand": "40 GPUs", "cloud_price": "1 USD", "market": "on-demand,owned"}, "rent"),
    ],
)
def test_small_or_exploring_demand_gets_the_cloud_and_steady_demand_what_costs_less(said, advice):
    found = answer(gpu="H100-SXM", **said)
    assert found.advice == advice
    assert str(found.staged.rule)


# ---- scenarios ----


def test_a_scenario_says_the_same_as_options_and_the_command_line_wins(tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text(
        'demand = "40 GPUs"\ngpu = "H100-SXM"\nprovider = "aws"\nhorizon = "3y"\n[set]\nlife_years = "3..5"\n', "utf-8"
    )
    written, said = answer(scenario=str(path)), answer(**AWS, horizon="3y", set=["life_years=3..5"])
    assert written.decision.outcomes["office"].present_usd == said.decision.outcomes["office"].present_usd
    assert answer(scenario=str(path), horizon="4y").assembled.case.months == 48
    assert answer(scenario=str(path), horizon="5y").assembled.case.months == 60, "a default that is said is said"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('demand = "40"\ngpu = "H100-SXM"\n', "demand in scenario.toml, line 1"),
        ('demnd = "40 GPUs"\n', "demnd in scenario.toml"),
        ('demand = "40 GPUs\n', "scenario.toml"),
        ('scenario = "other.toml"\n', "another scenario"),
    ],
)
def test_a_scenario_that_cannot_be_read_names_file_and_line(tmp_path, text, part):
    path = tmp_path / "scenario.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidInput, match=part):
        answer(scenario=str(path))


@pytest.mark.parametrize("day", ["2026-11-30", "2020-01-01"])
def test_a_day_that_has_passed_is_refused_wherever_it_was_said(tmp_path, day):
    path = tmp_path / "scenario.toml"
    path.write_text(f'demand = "40 GPUs"\ngpu = "H100-SXM"\nby = {day}\n', "utf-8")
    passed = f"--by {day} has passed on 2026-12-01"
    for said in ({**AWS, "by": day}, {**AWS, "by": day, "as_of": "2026-12-01"}, {"scenario": str(path)}):
        with pytest.raises(InvalidInput, match=passed):
            answer(**said)


# ---- forms ----


def test_python_and_the_command_line_give_equal_documents():
    words = ("own", "--demand", "40 GPUs", "--gpu", "H100-SXM", "--provider", "aws", "--json")
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document == json.loads(json.dumps(faces_json(asked(**AWS))))
    assert not list(nulls_without_reason(document["result"]))


def faces_json(request):
    from gpuwise.render.data import json_text

    return json.loads(json_text(faces.own(request, today=DAY).json()))


def test_the_page_has_an_answer_tables_charts_and_what_is_not_contained():
    page = faces.own(asked(**AWS, country="US"), today=DAY).page()
    kinds = [type(block) for block in page.blocks]
    assert (kinds.count(Table) >= 5, kinds.count(Chart), kinds.count(Facts) >= 3) == (True, 2, True)
    texts = [block.text for block in page.blocks if isinstance(block, Text)]
    assert "tax on the purchase" in texts[-1]
    assert "H100 SXM5 80 GB" in texts[1]
    assert "aws" in texts[1]


def test_every_form_can_be_written(tmp_path):
    words = ("own", "--demand", "40 GPUs", "--gpu", "H100-SXM", "--provider", "aws", "--currency", "EUR")
    for form in ("--csv", "--markdown"):
        assert "office" in run(*words, form).stdout
    target = tmp_path / "own.html"
    assert run(*words, "--html", str(target)).exit_code == 0
    html = target.read_text("utf-8")
    assert "EUR" in html
    assert "http://" not in html.replace("http://www.w3.org", "")


def test_a_bare_number_ends_with_exit_code_2_and_one_clear_line():
    result = run("own", "--demand", "1200", "--gpu", "H100-SXM")
    assert result.exit_code == 2
    assert "GPU-hours a time" in result.stderr
    assert "Traceback" not in result.stderr


def test_without_a_price_the_exit_code_is_3():
    assert run("own", "--demand", "40 GPUs", "--gpu", "V100-SXM2-32GB", "--max-age", "5").exit_code == 3


@pytest.mark.parametrize("also", [{"no_capex": True}, {"room_power": "5kW"}, {"by": "2026-12-05"}])
def test_conditions_that_leave_no_option_are_refused_with_each_reason(also):
    with pytest.raises(MissingEvidence, match=r"No option is left: .*; the data must stay on the premises"):
        answer(**AWS, data_must_stay="on-premises", **also)
