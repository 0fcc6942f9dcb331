"""Pictures of facts and of trust repeat their tables, mark for row; and their axes can be read."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuwise import faces
from gpuwise.cli import Session, program
from gpuwise.rank.history import Quarter, price_history
from gpuwise.render.data import plain
from gpuwise.render.vega import still
from gpuwise.request import AccuracyRequest, DataRequest, OwnRequest, RankRequest, parse
from gpuwise.store import package
from gpuwise.view import figures
from gpuwise.view.catalogue_charts import price_history_blocks
from gpuwise.view.chart import ticks
from gpuwise.view.page import Chart, Page, Table
from tests.pages import make_offer

DAY = date(2026, 12, 1)
OURS = """\
group,role,accelerator,accelerators,workload,precision,batch_per_accelerator,samples_per_s,software
1,given,Tesla V100-SXM2-16GB,1,ResNet-50,amp,256,833,PyTorch 1.13
1,predict,NVIDIA A100 80GB PCIe,1,ResNet-50,amp,1280,1528,PyTorch 1.13
1,predict,NVIDIA GeForce RTX 3090,1,ResNet-50,amp,448,905,PyTorch 1.13
2,predict,RTX A6000,1,ResNet-50,amp,928,9170,PyTorch 1.13
"""


def asked(**said):
    return faces.data(parse(DataRequest, {name.replace("_", "-"): value for name, value in said.items()}), today=DAY)


def chart(page: Page) -> Chart:
    (found,) = (block for block in page.blocks if isinstance(block, Chart))
    return found


def points(found: Chart) -> list[dict[str, object]]:
    return list(found.spec["data"]["values"])


def column(found: Table, key: str) -> list[object]:
    place = next(i for i, one in enumerate(found.columns) if one.key == key)
    return [row[place].value for row in found.rows]


def table(page: Page, title: str) -> Table:
    (found,) = (block for block in page.blocks if isinstance(block, Table) and block.title == title)
    return found


# ---- what a GPU-hour cost ----


@pytest.fixture(scope="module")
def h100():
    return asked(action="show", names=["H100-SXM"])


def test_the_history_of_a_card_has_a_point_for_each_row(h100):
    page = h100.page()
    rows, drawn = table(page, "A GPU-hour, quarter by quarter"), points(chart(page))
    assert sorted(one["median"] for one in drawn) == sorted(column(rows, "median_usd_per_gpu_hour"))
    assert len(drawn) == len(rows.rows) > 10
    assert len({(one["day"]) for one in drawn}) == len(drawn), "none hides another"


def test_the_history_is_that_of_the_document_and_of_the_bundled_offers(h100):
    history, offers = h100.result.history, package.offers()
    assert h100.json()["result"]["history"] == plain(history)
    assert history == price_history(offers, ["h100-sxm5-80gb"])
    assert all(one.lowest_usd_per_gpu_hour <= one.median_usd_per_gpu_hour <= one.highest_usd_per_gpu_hour
               for one in history)  # fmt: skip
    known = [row for row in range(len(offers)) if offers.accelerator[row] == "h100-sxm5-80gb"]
    priced = [row for row in known if offers.price_usd_per_hour[row] > 0 and offers.market[row] != "free"]
    assert sum(one.offers for one in history) == len(priced)


def test_nobody_sees_prices_of_later_days():
    early = asked(action="show", names=["H100-SXM"], as_of="2024-12-31").result.history
    assert {one.first.year for one in early} == {2023, 2024}


def test_a_name_that_is_no_gpu_has_no_history():
    assert asked(action="show", names=["aws"]).json()["result"]["history"] == []


def test_one_quarter_is_a_table_and_no_picture():
    one = Quarter(first=date(2026, 1, 1), market="spot", offers=1, lowest_usd_per_gpu_hour=1.0,
                  median_usd_per_gpu_hour=1.0, highest_usd_per_gpu_hour=1.0)  # fmt: skip
    (found,) = price_history_blocks([one], None)
    assert isinstance(found, Table)
    assert list(price_history_blocks([], None)) == []


# ---- who offers what ----


def test_bars_of_providers_are_the_groups_of_the_document():
    answer = asked(action="list", by=["gpu,provider"])
    drawn = points(chart(answer.page()))
    groups = answer.json()["result"]["groups"]
    largest = sorted(groups, key=lambda group: -group["offers"])[0]
    (bar,) = (one for one in drawn if one["offers"] == largest["offers"])
    assert bar["part"] == largest["provider"]
    every = sum(group["offers"] for group in groups if group["gpu"] == largest["gpu"])
    assert bar["share"] == pytest.approx(largest["offers"] / every)


def test_a_limit_on_rows_cuts_no_bar():
    few, all_ = (points(chart(asked(action="list", by=["provider"], limit=n).page())) for n in ("2", "all"))
    assert few == all_


# ---- predicted against measured ----


def test_predictions_are_drawn_against_what_was_measured(tmp_path: Path):
    file = tmp_path / "ours.csv"
    file.write_text(OURS, "utf-8")
    page = faces.accuracy(parse(AccuracyRequest, {"against": str(file)}), today=DAY).page()
    drawn, rows = points(chart(page)), table(page, "Rows")
    assert [one["measured"] for one in drawn] == column(rows, "samples_per_s")
    assert [one["predicted"] for one in drawn] == [value.value for value in column(rows, "predicted_per_s")]
    assert [one["held"] for one in drawn] == ["inside", "inside", "outside"]
    assert "2 hold it" in chart(page).alt


# ---- axes ----


@pytest.mark.parametrize(("low", "high", "least"), [(0.02, 3e5, 3), (0.3, 40, 6), (860, 1650, 3), (9, 11, 1)])
def test_an_axis_has_marks_enough_to_be_read(low, high, least):
    found = ticks(low, high)
    assert least <= len(found) <= 12
    assert all(low <= tick <= high for tick in found)


def test_every_chart_can_be_drawn_still(h100):
    assert still(chart(h100.page())).startswith("<svg")
    assert still(chart(asked(action="list", by=["gpu,provider"]).page())).startswith("<svg")


# ---- owning over time ----


def test_a_point_shows_where_an_option_breaks_even():
    answer = faces.own(parse(OwnRequest, {"demand": "40 GPUs", "gpu": "H100-SXM", "provider": "aws"}), today=DAY)
    (drawn,) = (b for b in answer.page().blocks if isinstance(b, Chart) and "cash flow" in b.title)
    lines, points = drawn.spec["data"]["values"], drawn.spec["layer"][1]["data"]["values"]
    options = answer.result.decision.outcomes
    assert sorted(point["month"] for point in points) == sorted(
        one.payback_months for one in options.values() if one.payback_months is not None
    )
    cloud = [row["paid"] for row in lines if row["option"] == "all cloud, on demand"]
    for point in points:
        month = int(point["month"])
        assert cloud[month] * 0.999 <= point["paid"] <= cloud[month + 1] * 1.001, "on the line of the cloud"


# ---- prices in one unit ----


@pytest.mark.parametrize(("per", "shown"), [("charged", "0.30 /h"), ("hour", "0.30 /h"), ("month", "219.00 /month")])
def test_a_price_is_shown_in_the_unit_that_was_asked_for_and_keeps_its_value(per, shown):
    cell = figures.price(make_offer("vast", "x", "rtx-3090", 1, 0.30), None, per=per)
    assert (cell.shown, cell.value) == (shown, 0.30)


def test_a_price_by_the_month_reads_by_the_hour_as_if_used_all_of_it():
    monthly = make_offer(
        "hetzner", "GEX44", "rtx-4000-ada", 1, 0.30, market="dedicated", price_unit="month", term_h=730.0
    )
    assert figures.price(monthly, None, per="hour").shown == "0.30 /h"
    assert figures.price(monthly, None).shown == figures.price(monthly, None, per="month").shown == "219.00 /month"


def test_a_ranking_by_the_month_is_the_same_ranking():
    usual, monthly = (
        faces.rank(parse(RankRequest, {"workloads": ["painter-heavy"], "limit": "5", "price-per": per}), today=DAY)
        for per in ("charged", "month")
    )
    shown = [table(one.page(), "Offers") for one in (usual, monthly)]
    assert column(shown[0], "price_usd_per_hour") == column(shown[1], "price_usd_per_hour")
    place = next(i for i, one in enumerate(shown[1].columns) if one.key == "price_usd_per_hour")
    assert all(row[place].shown.endswith("/month") for row in shown[1].rows)


# ---- pictures from the command line ----


def test_charts_are_written_as_pictures(tmp_path: Path):
    words = ("own", "--demand", "40 GPUs", "--gpu", "H100-SXM", "--provider", "aws", "--chart", str(tmp_path / "c.svg"))
    said = CliRunner().invoke(program, words, obj=Session(today=DAY))
    assert said.exit_code == 0, said.output
    assert (tmp_path / "c.svg").read_text("utf-8").startswith("<svg")
    assert (tmp_path / "c-2.svg").exists()
    png = ("data", "list", "--by", "gpu,provider", "--chart", str(tmp_path / "d.png"))
    assert CliRunner().invoke(program, png, obj=Session(today=DAY)).exit_code == 0
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_another_kind_is_refused_before_any_work(tmp_path: Path):
    said = CliRunner().invoke(program, ("data", "list", "--chart", str(tmp_path / "c.pdf")), obj=Session(today=DAY))
    assert said.exit_code == 2
    assert ".svg" in said.stderr
