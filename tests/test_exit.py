"""The verb exit from bills to page, document, log and exit code, on the bundled facts."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpuwise import faces
from gpuwise.api.leaving import exit_
from gpuwise.errors import InvalidInput, MissingEvidence, UnknownName
from gpuwise.own.leaving import paid_back_months
from gpuwise.render.data import json_text
from gpuwise.request import ExitRequest, parse
from gpuwise.sources import watch
from gpuwise.units import HOURS_PER_MONTH
from gpuwise.view.page import Chart, Table, Text
from tests.bills import COLUMNS, DAY, answer, asked, bill, facts_of, row, run, warned
from tests.test_faces import nulls_without_reason

pytest.importorskip("duckdb", reason="DuckDB reads the bills (extra [focus])")


@cache
def usual(path):
    """Of a bill, without options: asked once."""
    return answer(path)


@pytest.fixture(scope="module")
def rising(tmp_path_factory) -> Path:
    """A dear bill that grows steadily, hour by hour."""
    path = tmp_path_factory.mktemp("bills") / "rising.csv"
    return bill(path, lambda month, _day, hour: 3 + month // 3 + (8 <= hour < 20), step_h=1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bills") / "tiny.csv"
    return bill(path, lambda _month, day, hour: day % 5 == 0 and hour == 8, step_h=1)


# ---- dates ----


def test_a_steady_expensive_bill_fires_and_says_what_was_paid(rising):
    found = usual(rising)
    assert found.advice == "leave"
    assert found.fired
    assert found.exit.servers >= 3
    assert found.month(0) == "2026-12"
    assert found.used.accelerator.id == "h100-sxm5-80gb"
    assert found.used.paid.value == pytest.approx(55.04 / 8)
    assert found.used.history.gpu_h.sum() == pytest.approx(found.bill.gpu_h)
    assert found.used.history.effective_usd.sum() == pytest.approx(found.bill.gpu_h * 55.04 / 8)
    assert found.exit.robust.month < 0, "the premium had reached the barrier of some fleet before the bill ended"
    assert 0 < found.exit.premium_usd == pytest.approx(found.exit.meter_usd[found.exit.past - 1])
    assert found.exit.wait_usd[12].p50 > found.exit.wait_usd[6].p50 > 0


def test_a_small_bill_stays_in_the_cloud_and_says_why(tiny):
    found = answer(tiny)
    assert (found.advice, found.exit.month, found.exit.p_never) == ("cloud", None, 1.0)
    assert not found.fired
    assert "small" in faces.exit(asked(tiny), today=DAY).page().blocks[0].text


def test_a_steady_small_bill_never_leaves_and_the_reason_is_in_the_sentence(tmp_path):
    cheap = bill(tmp_path / "cheap.csv", lambda _m, _d, _h: 2, usd_per_hour=8.0)
    found = answer(cheap)
    assert found.advice == "never"
    page = faces.exit(asked(cheap), today=DAY).page()
    assert "never comes within 5 years" in page.blocks[0].text
    assert "costs more than the cloud bills" in page.blocks[0].text


@pytest.mark.parametrize(
    ("usd_per_hour", "part"), [(20.0, "which does not come"), (28.0, "costs least to own nothing")]
)
def test_a_date_that_forecasts_do_not_bear_out_is_not_called_one_to_leave(tmp_path, usd_per_hour, part):
    path = bill(tmp_path / "one.csv", lambda _m, _d, _h: 1, range(8, 12), usd_per_hour=usd_per_hour)
    found = answer(path)
    number = found.exit.robust.month if found.exit.month is None else found.exit.month
    text = faces.exit(asked(path), today=DAY).page().blocks[0].text
    assert (found.advice, found.exit.servers, found.exit.probable.month) == ("never", 0, None)
    assert part in text
    assert found.month(number) in text, "the sentence names the month that the table has"


def test_two_files_say_what_one_says(tmp_path):
    def wanted(month, _day, _hour):
        return 2 + month // 3

    one = bill(tmp_path / "all.csv", wanted)
    two = (bill(tmp_path / "a.csv", wanted, range(1, 6)), bill(tmp_path / "b.csv", wanted, range(6, 12)))
    first, second = answer(one), answer(*two)
    assert first.exit.meter_usd == pytest.approx(second.exit.meter_usd)
    assert (first.exit.robust, first.exit.probable, first.exit.servers) == (
        second.exit.robust, second.exit.probable, second.exit.servers,
    )  # fmt: skip


def test_a_dearer_cloud_never_delays_the_date(tmp_path):
    months = []
    for price in (20.0, 30.0, 55.0, 90.0):
        found = answer(bill(tmp_path / f"{price}.csv", lambda _m, _d, _h: 3, range(8, 12), usd_per_hour=price))
        months.append(10**6 if found.exit.month is None else found.exit.month)
    assert months == sorted(months, reverse=True)
    assert months[0] > months[-1]


def test_exploring_gets_the_cloud_whatever_the_dates_say(rising):
    found = answer(rising, stage="exploring")
    assert (found.advice, found.fired) == ("cloud", False)


def test_a_trend_goes_on_for_as_long_as_it_was_seen(rising):
    found = usual(rising)
    seen, taken = found.used.seen.growth_fraction_per_year, found.used.wanted.growth.value
    assert 0 < taken < seen
    assert (1 + taken) ** 5 == pytest.approx((1 + seen) ** (found.used.seen.hours / (12 * HOURS_PER_MONTH)), rel=0.01)
    assert answer(rising, set=["demand_growth_per_year=0.5"]).assembled.case.figures[
        "demand_growth_per_year"
    ].value == pytest.approx(0.5)


# ---- what the bill does and does not say ----


def test_the_gpu_with_most_hours_is_asked_about_and_the_others_are_named(tmp_path):
    def both(path):
        bill(path, lambda _m, _d, _h: 2)
        text = bill(tmp_path / "v.csv", lambda _m, _d, _h: 1, others=(), machine="p3.16xlarge", usd_per_hour=24.48)
        path.write_text(path.read_text("utf-8") + text.read_text("utf-8").split("\n", 1)[1], "utf-8")
        return path

    found = answer(both(tmp_path / "both.csv"))
    assert found.used.accelerator.id == "h100-sxm5-80gb"
    assert "v100-sxm2-16gb" in warned(found)
    assert found.used.paid.value == pytest.approx(55.04 / 8), "each kind at its own price"
    assert answer(tmp_path / "both.csv", gpu="H100-SXM").used.history.gpu_h == pytest.approx(found.used.history.gpu_h)
    with pytest.raises(InvalidInput, match="no GPU-hours of A100"):
        answer(tmp_path / "both.csv", gpu="A100-40GB")


def test_rows_of_days_leave_the_shape_open_and_say_so(tmp_path):
    found = answer(bill(tmp_path / "daily.csv", lambda _m, _d, _h: 4, step_h=24))
    assert found.assembled.case.shape is None
    assert "24 h long" in warned(found)


def test_too_few_months_have_no_trend_and_missing_ones_are_named(tmp_path):
    assert "too few for a trend" in warned(answer(bill(tmp_path / "two.csv", lambda _m, _d, _h: 4, range(10, 12))))
    gap = answer(bill(tmp_path / "gap.csv", lambda _m, _d, _h: 4, (5, 6, 8, 9, 11)))
    assert "2026-07, 2026-10" in warned(gap)
    assert gap.used.months == ("2026-05", "2026-06", "2026-08", "2026-09", "2026-11")
    assert gap.used.wanted.level.value == pytest.approx(32 * HOURS_PER_MONTH)


def test_the_month_that_is_not_over_is_left_out(tmp_path):
    path = bill(tmp_path / "now.csv", lambda month, day, _h: 4 if month < 11 or day < 5 else 0, range(6, 12))
    found = answer(path, today=date(2026, 11, 5))
    assert found.used.months[-1] == "2026-10"
    assert found.month(0) == "2026-11"
    assert "not over" in warned(found)


def test_a_bill_without_gpus_says_which_services_it_has(tmp_path):
    with pytest.raises(InvalidInput, match="Amazon SageMaker"):
        answer(bill(tmp_path / "none.csv", lambda _m, _d, _h: 0))


def test_a_currency_needs_a_rate_which_is_said(tmp_path):
    path = bill(tmp_path / "gbp.csv", lambda _m, _d, _h: 4, range(9, 12), currency="GBP")
    with pytest.raises(InvalidInput, match="GBP"):
        answer(path)
    found = answer(path, currency="GBP", rate="1.25")
    assert found.used.paid.value == pytest.approx(1.25 * 55.04 / 8)
    assert "GBP are taken at 1.25" in warned(found)


def test_a_gpu_of_which_no_server_has_a_price_asks_for_one(tmp_path):
    path = bill(tmp_path / "k80.csv", lambda _m, _d, _h: 4, range(9, 12), machine="p2.8xlarge", usd_per_hour=7.2)
    with pytest.raises(MissingEvidence, match="--server-price"):
        answer(path)


# ---- moving, commitments ----


def test_uc_100_ways_out_with_their_condition_and_what_is_taken(rising):
    kept = answer(rising, data_size="5PB", link="10Gbit/s")
    list_price = next(one for one in kept.moved.ways if one.way.kind == "internet")
    assert kept.moved.best.kind == "link", "over its line the cloud asks less a GB"
    assert 250_000 < list_price.way.usd < 450_000, "0.05 USD a GB from 150 TB on"
    assert list_price.way.days == pytest.approx(46.3 / 0.75, rel=0.01)
    waiver = next(one for one in kept.moved.ways if one.way.name == "aws" and one.way.kind == "waiver")
    assert waiver.way.usd == 0
    assert "--close-account" in str(waiver.why_not)
    closed = answer(rising, data_size="5PB", link="10Gbit/s", close_account=True)
    assert closed.moved.best.kind == "waiver"
    assert closed.moved.best.condition
    assert kept.moving_usd - closed.moving_usd == pytest.approx(kept.moved.best.usd)
    assert kept.moved.best.usd < list_price.way.usd
    assert kept.exit.barrier_usd > closed.exit.barrier_usd


def test_cold_storage_bills_early_deletion_and_retrieval_on_any_way(rising):
    waits_days, soon = 7 * 8, {"data_size": "100TB", "set": ["lead_weeks=8"]}
    warm = answer(rising, **soon).moved
    found = answer(rising, **soon, cold_data=["Glacier Deep Archive=40TB:60d"]).moved
    early_usd = 40_000 * 0.00099 * (180 - 60 - waits_days) * 24 / HOURS_PER_MONTH  # kept 60 days, and until it moves
    assert found.move.early_usd == pytest.approx(early_usd, rel=1e-12)
    assert found.move.retrieval_usd == pytest.approx(40_000 * 0.02, rel=1e-12)
    assert found.usd == pytest.approx(warm.usd + early_usd + 800, rel=1e-12)
    kept = answer(rising, data_size="100TB", cold_data=["s3 glacier deep archive=40TB:200d"]).moved
    assert (kept.move.early_usd, kept.move.retrieval_usd) == (0, pytest.approx(800))


@pytest.mark.parametrize(
    ("said", "error", "part"),
    [
        ({"data_size": "100TB", "cold_data": ["Frozen=1TB:9d"]}, UnknownName, "storage class of aws"),
        ({"data_size": "1TB", "cold_data": ["S3 Standard-IA=2TB:9d"]}, InvalidInput, "more than the 1000 GB"),
        ({"cold_data": ["S3 Standard-IA=2TB:9d"]}, InvalidInput, "--data-size, which is missing"),
        ({"data_size": "1TB", "cold_data": ["S3 Standard-IA"]}, InvalidInput, "does not say which class"),
    ],
)
def test_cold_data_that_cannot_be_billed_is_refused(rising, said, error, part):
    with pytest.raises(error, match=part):
        answer(rising, **said)


def test_the_waiver_of_the_law_holds_for_its_customers_once_it_is_in_force(rising):
    before, after = (
        answer(rising, data_size="50TB", country="DE", as_of=day, max_age="900") for day in ("2026-06-01", "2026-12-01")
    )
    assert before.moved.usd > 0
    assert (after.moved.best.kind, after.moved.usd) == ("waiver", 0.0)


def test_data_that_changes_faster_than_the_line_is_said_right_after_the_date(rising):
    said = {"data_size": "5PB", "link": "1Gbit/s", "data_change": "100%"}
    found = answer(rising, **said)
    assert (found.advice, found.moved.usd) == ("leave", None)
    text, facts = facts_of(rising, **said)
    assert "cannot be moved over this line (5,000,000 GB change a day" in text
    assert text.endswith("the date holds only without it.")
    assert "unknown and not contained" in facts["What leaving costs"][1]
    assert "0 USD of moving" not in facts["What leaving costs"][1]
    document = json.loads(json_text(faces.exit(asked(rising, **said), today=DAY).json()))["result"]
    for part, key in ((document, "moving_usd"), (document["data_move"], "usd")):
        assert part[key] is None
        assert "never catches up" in part[f"{key}_reason"]
    with_work = facts_of(rising, **said, moving_cost="40000")[1]["What leaving costs"][1]
    assert "40,000 USD of moving; what it costs to take the data out is unknown" in with_work
    assert "cannot be moved" not in facts_of(rising, **{**said, "data_change": "0.01%"})[0]


def test_data_without_a_price_to_leave_is_said_with_its_reason(tmp_path):
    path = bill(tmp_path / "other.csv", lambda _m, _d, _h: 4, range(8, 12))
    path.write_text(path.read_text("utf-8").replace("AWS,AWS", "Elsewhere,Elsewhere"), "utf-8")
    text, facts = facts_of(path, data_size="50TB")
    assert "what it costs to move the data is not known (the provider's price" in text
    assert "unknown and not contained" in facts["What leaving costs"][1]


def test_what_moving_costs_is_never_0_where_nobody_said_it(rising):
    assert "unknown and not contained" in facts_of(rising)[1]["What leaving costs"][1]
    result = json.loads(json_text(faces.exit(asked(rising), today=DAY).json()))["result"]
    assert result["moving_usd"] is None
    assert "--moving-cost" in result["moving_usd_reason"]
    assert answer(rising, moving_cost="40000").moving_reason is None


def test_what_nobody_said_is_named_as_not_contained(rising):
    assert {"--moving-cost", "--data-size"} <= {
        word.strip("()") for word in " ".join(map(str, usual(rising).unknown)).split()
    }
    said = " ".join(map(str, answer(rising, moving_cost="1000", data_size="1TB").unknown))
    assert "--moving-cost" not in said
    assert "--data-size" not in said


def test_a_bill_that_ended_long_ago_is_said_to_be_old(rising):
    assert "months before 2027-06-01" in warned(answer(rising, as_of="2027-06-01", max_age="900"))
    assert "months before" not in warned(usual(rising))


def test_a_bill_of_long_ago_is_refused_with_its_last_month_and_what_to_do(rising):
    with pytest.raises(InvalidInput) as caught:
        answer(rising, as_of="2027-12-01", max_age="900")
    assert "2026-11, 12 months before 2027-12-01" in str(caught.value.message)
    assert "--as-of 2026-12-01" in str(caught.value.hint)
    assert "11 months before" in warned(answer(rising, as_of="2027-11-30", max_age="900"))


def test_credits_are_named_with_what_leaves_them_out(tmp_path):
    def credited(name, usd):
        path = bill(tmp_path / name, lambda _m, _d, _h: 4, range(8, 12))
        credit = [row(datetime(2026, month, 20, tzinfo=UTC), datetime(2026, month, 21, tzinfo=UTC), "Credit", usd,
                      ChargeCategory="Credit") for month in (9, 10)]  # fmt: skip
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, COLUMNS, restval="").writerows(credit)
        return answer(path)

    plain, found = credited("none.csv", 0.002), credited("some.csv", -1234.5)
    assert "credits took 2,469.00 USD off the bill, 2026-08 to 2026-11" in warned(found)
    assert "lower by up to that much" in warned(found)
    assert "credits" not in warned(plain)
    assert found.used.paid.value == plain.used.paid.value, "they are not taken off"
    assert "credits of 20.00 USD were taken back" in warned(credited("back.csv", 10))


def test_a_bill_that_goes_on_after_the_day_of_the_answer_is_said_to(rising):
    assert "goes on after 2026-06-15" in warned(answer(rising, as_of="2026-06-15"))
    assert "goes on after" not in warned(usual(rising))


def test_uc_096_the_cloud_is_paid_until_the_servers_are_there(rising):
    assert paid_back_months(np.full(60, 7500.0), 150_000.0, 30 / (365 / 12 / 7)) == pytest.approx(26.9, abs=0.05)
    assert paid_back_months(np.full(20, 7500.0), 150_000.0, 7.0) is None
    facts = facts_of(rising)[1]
    assert "all the same" in facts["Meanwhile"][0]
    assert "months after an order" in facts["Paid back"][0]


def test_a_commitment_moves_the_order_to_its_end(rising):
    free, bound = usual(rising), answer(rising, committed_until=["2027-12-31=400000USD"])
    assert free.exit.order_month == 0
    assert bound.exit.order_month > free.exit.order_month
    assert bound.exit.p_before.keys() == {"2027-12-31"}
    assert "has passed" in warned(answer(rising, committed_until=["2026-03-31=12000USD"]))


# ---- the checklist ----


def test_each_service_of_the_bill_has_its_class_and_the_score_is_of_the_spend(rising):
    found = usual(rising).checklist
    spend = {item.use.name: item.use.usd for item in found.items}
    assert found.lock_in_fraction == pytest.approx(spend["Amazon DynamoDB"] / sum(spend.values()))
    assert found.unknown_fraction == pytest.approx(spend["Mine"] / sum(spend.values()))


def test_services_without_a_bill_are_a_checklist_alone():
    found = exit_(parse(ExitRequest, {"services": ["S3,SageMaker,EC2,TPU"]}), today=DAY)
    assert found.checklist.lock_in_fraction == pytest.approx(0.25)
    assert "count alike" in " ".join(run("--services", "S3,SageMaker,EC2,TPU").stdout.split())
    result = run("--services", "S3,SageMaker,EC2,TPU", "--markdown")
    assert result.exit_code == 0
    assert "leaves only with a port" in result.stdout


def test_a_service_that_is_named_twice_counts_once():
    found = exit_(parse(ExitRequest, {"services": ["EC2,ec2,TPU,Amazon Elastic Compute Cloud"]}), today=DAY)
    assert [item.use.name for item in found.checklist.items] == ["EC2", "TPU"]
    assert found.checklist.lock_in_fraction == pytest.approx(0.5)


def test_a_service_that_nobody_has_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="SageMakr") as caught:
        exit_(parse(ExitRequest, {"services": ["SageMakr,Qwertz"]}), today=DAY)
    assert "Amazon SageMaker" in caught.value.nearest


def test_an_unknown_service_among_known_ones_is_listed_as_unknown_with_the_nearest():
    words = ("--services", "S3,SageMakr,Qwertz,qwertz")
    found = exit_(parse(ExitRequest, {"services": [words[1]]}), today=DAY)
    assert [(item.use.name, item.service is None) for item in found.checklist.items] == [
        ("S3", False), ("SageMakr", True), ("Qwertz", True),
    ]  # fmt: skip
    assert found.checklist.unknown_fraction == pytest.approx(2 / 3)
    assert '"SageMakr" is not in the table; nearest: Amazon SageMaker' in warned(found)
    result = run(*words)
    assert result.exit_code == 0
    assert "67 % of them are not in the table" in " ".join(result.stdout.split())
    assert "not in the table; nearest: Amazon SageMaker" in run(*words, "--csv").stdout
    service = json.loads(run(*words, "--json").stdout)["result"]["checklist"]["services"][1]
    assert (service["service"], service["nearest"]) == (None, ["Amazon SageMaker"])
    assert service["service_reason"].startswith("not in the table; nearest")


# ---- watch, forms, exit codes ----


def test_watch_writes_a_line_a_month_and_exits_10_when_the_date_has_come(rising, tiny, tmp_path):
    log = tmp_path / "log.csv"
    assert run(rising, "--watch", log).exit_code == 10
    assert run(rising, "--watch", log).exit_code == 10
    assert run(rising, "--watch", log, today=date(2027, 1, 2)).exit_code == 10
    found = usual(rising)
    first, second = watch.read(log)
    assert (first["month"], second["month"], first["fired"]) == ("2026-12", "2027-01", "yes")
    assert float(first["premium_usd"]) == found.exit.premium_usd
    assert first["robust_month"] == found.month(found.exit.robust.month)
    assert run(tiny, "--watch", tmp_path / "tiny.csv").exit_code == 0
    assert watch.read(tmp_path / "tiny.csv")[0]["robust_month"] == "never"
    assert run(rising).exit_code == 0, "10 is for those who watch"


def test_a_damaged_log_is_refused_and_left(rising, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("my diary\n", "utf-8")
    result = run(rising, "--watch", log)
    assert result.exit_code == 2
    assert "line 1" in result.stderr
    assert log.read_text("utf-8") == "my diary\n"


def test_python_and_the_command_line_give_equal_documents(rising):
    result = run(rising, "--data-size", "50TB", "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    request = asked(rising, data_size="50TB")
    assert document == json.loads(json_text(faces.exit(request, today=DAY).json()))
    assert not list(nulls_without_reason(document["result"]))
    found = exit_(request, today=DAY)
    assert document["result"]["premium_usd"] == found.exit.premium_usd
    assert document["result"]["data_move"]["usd"] == found.moved.usd


def test_the_page_has_an_answer_dates_a_meter_and_the_checklist(rising, tmp_path):
    page = faces.exit(asked(rising, data_size="50TB"), today=DAY).page()
    kinds = [type(block) for block in page.blocks]
    assert kinds.count(Chart) == 2
    titles = [block.title for block in page.blocks if isinstance(block, Table)]
    assert {"When to leave", "Checklist", "What decides it"} <= set(titles)
    assert [block for block in page.blocks if isinstance(block, Text)][-1].role == "note"
    for form in ("--csv", "--markdown"):
        assert "robust" in run(rising, form).stdout
    target = tmp_path / "exit.html"
    assert run(rising, "--html", target, "--currency", "EUR").exit_code == 0
    assert "EUR" in target.read_text("utf-8")


def test_a_scenario_says_what_options_say(rising, tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text('horizon = "4y"\nmoving_cost = "40000 USD"\n[set]\nlife_years = "3..5"\n', "utf-8")
    written = answer(rising, scenario=str(path))
    said = answer(rising, horizon="4y", moving_cost="40000", set=["life_years=3..5"])
    assert written.exit.value_usd == said.exit.value_usd
    assert written.assembled.case.months == 48


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "USAGE is missing"),
        (("none.csv",), "none.csv"),
        (("--services", "S3", "--watch", "log.csv"), "--watch with a bill"),
        (("--services", "S3", "--trust", "0"), "--trust"),
    ],
)
def test_what_cannot_be_asked_ends_with_exit_code_2(words, part):
    result = run(*words)
    assert result.exit_code == 2
    assert part in result.stderr
    assert "Traceback" not in result.stderr
