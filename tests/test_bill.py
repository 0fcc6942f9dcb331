"""The verb bill from files to pages and documents, on the bundled facts' day."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuwise import faces
from gpuwise.cli import Session, program
from gpuwise.request import BillRequest
from gpuwise.view.page import Chart, Table
from tests.test_faces import nulls_without_reason

DAY = date(2026, 11, 30)
EVENTS = """
report = 2026-11-30T22:58:00Z

[[machine]]
name = "train-1"
price_per_hour = 4.444
events = [{time = 2026-11-30T08:00:00Z, state = "UP"}, {time = 2026-11-30T10:00:00Z, state = "autostopped"}]

[[machine]]
name = "sweep"
price_per_hour = 8.80
nodes = 100
events = [{time = 2026-11-30T08:00:00Z, state = "requested"}, {time = 2026-11-30T08:06:00Z, state = "failed"}]
"""
SHARED = """
[[node]]
name = "node"
price_per_hour = 4.00
vcpus = 32
memory_gib = 128
accelerators = 4

[[pod]]
name = "A"
accelerators = 1
vcpus = 8

[[pod]]
name = "B"
vcpus = 16
"""
HEAD = "BilledCost,EffectiveCost,ListCost,ContractedCost,BillingCurrency,BillingPeriodStart,ChargePeriodStart\n"
FOCUS = HEAD + "".join(
    f"{12000 if month == 1 else 0},1000,1600,1500,USD,2026-{month:02d}-01T00:00:00Z,2026-{month:02d}-01T00:00:00Z\n"
    for month in range(1, 13)
)
OTHER = "day,cost\n2026-01-03,12.5\n2026-02-03,7.5\n"
RECORDS = {"events": EVENTS, "pods": SHARED, "focus": FOCUS}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {**RECORDS, "other": OTHER}.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bill(*args: str):
    runner = CliRunner(env={"LC_ALL": "C.UTF-8", "COLUMNS": "120"})
    return runner.invoke(program, ["bill", *args], obj=Session(today=DAY))


def answer(*args: str):
    done = bill(*args, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)["result"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"], ["--markdown"], ["--html", "-"]])
def test_every_kind_of_record_has_every_form(name, form):
    done = bill(name, *form)
    assert done.exit_code == 0, done.stderr
    assert done.stdout


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", RECORDS)
def test_no_null_of_the_document_is_without_a_reason(name):
    assert set(nulls_without_reason(answer(name))) == set()


@pytest.mark.usefixtures("folder")
def test_uc_099_the_page_says_what_was_billed_and_what_was_not():
    shown = " ".join(bill("events").stdout.split())
    assert "8.89 USD for 2 machine-hours of 101 machines, up to 2026-11-30 22:58 UTC." in shown
    assert "1 stretch of time is unknown, and not in it." in shown
    assert "sweep running 0 h 8.80 0.00 USD" in shown
    found = answer("events")
    assert found["totals"] == [{"currency": "USD", "low": 8.888, "high": 8.888}]
    assert found["unknown"][0]["most_reason"]


@pytest.mark.usefixtures("folder")
def test_the_moment_of_the_report_may_be_said():
    found = answer("events", "--until", "2026-11-30T09:00+00:00")
    assert (found["until"], found["totals"][0]["high"]) == ("2026-11-30T09:00:00Z", 4.444)


def test_without_a_report_the_bill_goes_to_the_last_event(folder):
    (folder / "events").write_text(EVENTS.replace("report = 2026-11-30T22:58:00Z", ""), "utf-8")
    found = answer("events")
    assert (found["until"], found["until_stated"]) == ("2026-11-30T10:00:00Z", False)
    assert "up to the last event" in bill("events").stdout


@pytest.mark.usefixtures("folder")
def test_uc_097_the_page_names_the_rule_and_the_parts():
    shown = " ".join(bill("pods").stdout.split())
    assert "A 1.00, B 0.5805, idle 2.42" in shown
    assert "GPUs are 71.0 % of the price, by usual unit prices" in shown
    (node,) = answer("pods")["nodes"]
    assert sum(part["amount"] for part in node["parts"]) == pytest.approx(4.00)
    assert next(part["gpu"] for part in node["parts"] if part["pod"] == "B") == 0


@pytest.mark.usefixtures("folder")
def test_uc_098_effective_cost_is_the_default_and_billed_is_cash_flow():
    effective, billed, listed = (answer("focus", "--kind", kind) for kind in ("effective", "billed", "list"))
    assert answer("focus") == effective
    assert {month["amount"] for month in effective["months"]} == {1000}
    assert [month["amount"] for month in billed["months"]] == [12000, *[0] * 11]
    assert {month["amount"] for month in listed["months"]} == {1600}
    assert [found["column"] for found in (effective, billed, listed)] == ["EffectiveCost", "BilledCost", "ListCost"]


@pytest.mark.usefixtures("folder")
def test_uc_098_one_kind_stands_in_a_table_and_in_a_chart_with_its_name():
    from gpuwise import faces
    from gpuwise.request import BillRequest

    blocks = faces.bill(BillRequest(files=("focus",), kind="billed"), today=DAY).page().blocks
    (table,), (chart,) = ([b for b in blocks if isinstance(b, kind)] for kind in (Table, Chart))
    assert table.title == "BilledCost by month"
    assert chart.title == "BilledCost, USD"
    assert "EffectiveCost" not in str([table, chart])


@pytest.mark.usefixtures("folder")
def test_uc_098_an_export_of_another_kind_is_asked_for_its_meaning():
    asked = bill("other")
    assert asked.exit_code == 2
    assert "but cost: what do they mean?" in asked.stderr
    assert "--column cost --kind billed" in asked.stderr
    found = answer("other", "--column", "cost", "--kind", "billed", "--currency", "EUR")
    assert found["totals"] == [{"currency": "EUR", "amount": 20.0}]


def test_uc_098_several_currencies_are_never_added_up(folder):
    (folder / "focus").write_text(HEAD + "1,2,3,4,USD,2026-01-01,2026-01-01\n1,5,3,4,EUR,2026-01-01,2026-01-01\n")
    assert answer("focus")["totals"] == [{"currency": "EUR", "amount": 5.0}, {"currency": "USD", "amount": 2.0}]
    assert "Currencies are not added up." in bill("focus").stdout


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["events", "focus"], "may be in both"),
        (["focus", "focus"], "named twice"),
        (["events", "--kind", "billed"], "--kind has no meaning for events of machines"),
        (["focus", "--until", "2026-11-30T08:00Z"], "--until has no meaning for a cost export"),
        (["pods", "--until", "2026-11-30T08:00Z"], "--until has no meaning for a machine with its pods"),
        (["events", "--until", "2026-11-30"], "--until"),
        (["events", "--until", "2026-11-30T08:00"], "names no time zone"),
        (["events", "--time-zone", "Berlin"], "Did you mean Europe/Berlin"),
        (["nowhere"], "cannot be read"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_word(args, says):
    done = bill(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.usefixtures("folder")
def test_a_report_before_every_event_is_said_to_be_one():
    assert "every event is later" in bill("events", "--until", "2026-11-29T09:00Z").stdout


def test_rounding_may_make_known_time_the_dearer_bill_and_the_range_still_holds_both(folder):
    (folder / "events").write_text(
        "machine,time,state,price_per_hour,billing_step_s\n"
        "a,2026-11-30T08:00Z,running,1,3600\na,2026-11-30T08:10Z,glowing,,\n"
        "a,2026-11-30T08:20Z,running,,\na,2026-11-30T08:30Z,deleted,,\n"
    )
    assert answer("events")["totals"] == [{"currency": "USD", "low": 1.0, "high": 2.0}]


@pytest.mark.parametrize(
    ("state", "says"),
    [("running", "it still runs at its last record"), ("dancing", '"dancing" is no state that is known')],
)
def test_what_the_last_record_leaves_open_is_said(tmp_path: Path, state: str, says: str) -> None:
    path = tmp_path / "one.csv"
    path.write_text(f"machine,time,state,price_per_hour\na,2026-11-30T08:00:00Z,{state},2.0\n", "utf-8")
    answer = faces.bill(BillRequest(files=(str(path),)), today=date(2026, 11, 30))
    assert any(says in text for text in answer.json()["warnings"])
