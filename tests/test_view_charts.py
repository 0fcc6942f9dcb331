"""Pictures of facts and of trust repeat their tables, mark for row; and their axes can be read."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gpuwise import faces
from gpuwise.rank.history import Quarter, price_history
from gpuwise.render.data import plain
from gpuwise.render.vega import still
from gpuwise.request import AccuracyRequest, DataRequest, parse
from gpuwise.store import package
from gpuwise.view.catalogue_charts import price_history_blocks
from gpuwise.view.chart import ticks
from gpuwise.view.page import Chart, Page, Table

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
