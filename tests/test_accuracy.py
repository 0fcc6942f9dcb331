"""`accuracy` as a person meets it: the splits, a table of his own, and the error that stands under a ranking."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpuwise.api.situations import situations
from gpuwise.api.trust import accuracy, bundled
from gpuwise.cli import Session, program
from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.estimate import Interval
from gpuwise.faces.answer import Answer
from gpuwise.faces.trust import answered
from gpuwise.model import Measurement
from gpuwise.predict.accuracy import PUBLISHED
from gpuwise.render.data import csv_text, json_text, markdown
from gpuwise.render.html import html
from gpuwise.render.text import text
from gpuwise.request import AccuracyRequest, RankRequest, parse
from gpuwise.sources.rates import COLUMNS
from gpuwise.store import package
from gpuwise.view.ranking import ranking_page
from tests.pages import small_ranking
from tests.scoring import REGISTRY, SHIPPED, by_sheet
from tests.test_faces import nulls_without_reason

DAY = date(2026, 11, 30)
OURS = """\
group,role,accelerator,workload,precision,batch_per_accelerator,samples_per_s
1,given,Tesla V100-SXM2-16GB,ours,amp,64,100
1,predict,A100-SXM4-40GB,ours,amp,64,200
1,predict,RTX 5090 D v2,ours,amp,64,400
2,predict,Tesla T4,ours,amp,64,40
"""


def quiet(_progress: Message) -> None:
    """Nobody listens."""


def asked(**said: Any) -> Answer:
    request = AccuracyRequest(**said)
    return answered(accuracy(request, today=DAY, tell=quiet, splits=REGISTRY, answer=by_sheet, shipped=SHIPPED))


@pytest.fixture
def ours(tmp_path: Path) -> str:
    path = tmp_path / "ours.csv"
    path.write_text(OURS, "utf-8")
    return str(path)


def shown(answer: Answer) -> str:
    return text(answer.page(), width=160)


# ---- the splits ----


def test_every_split_stands_with_its_errors_its_goal_and_the_naive_ratios() -> None:
    page = shown(asked())
    assert "Split A (one GPU measured)" in page
    for column in ("MAPE", "Median", "P90", "Covered", "Rows", "Goal", "peak rates"):
        assert column in page
    assert "11.1 / 7.3 / 26" in page
    assert "Computed on 2026-11-30 from data" in page


def test_what_others_published_stands_beside_it_with_what_it_was_found_on() -> None:
    page = " ".join(shown(asked()).split())
    assert {p.mape_percent for p in PUBLISHED} == {11.8, 9.7, 7.3, 15.2}
    assert all(p.name in page for p in PUBLISHED)
    assert "they show what is usual, not who is better" in page


def test_the_json_has_each_split_by_the_names_of_the_contract() -> None:
    document = json.loads(json_text(asked().json()))
    assert set(nulls_without_reason(document["result"])) == set()
    assert [split["id"] for split in document["result"]["splits"]] == ["A", "C", "M"]
    for split in document["result"]["splits"]:
        names = {"id", "mape_percent", "median_percent", "p90_percent", "coverage_percent", "n", "naive", "groups"}
        assert names <= split.keys()
        assert split["naive"]["peak"].keys() >= {"mape_percent", "median_percent", "p90_percent", "n"}
        assert split["groups"]["family"].keys() == {"cnn", "transformer"}


def test_only_the_splits_that_are_asked_for_are_shown_in_any_case() -> None:
    assert [s["id"] for s in asked(split=("m", "A")).json()["result"]["splits"]] == ["A", "M"]


def test_a_tag_parts_each_split_by_its_groups() -> None:
    lines = csv_text(asked(by="family").table()).splitlines()
    assert lines[0].startswith("split,title,group,mape_percent,median_percent,p90_percent,coverage_percent,n")
    assert [line.split(",")[0] for line in lines[1:]] == ["A", "A", "A", "C", "C", "C", "M", "M", "M"]
    assert [line for line in lines if ",cnn," in line]


@pytest.mark.parametrize(("said", "says"), [({"split": ("Z",)}, "There is A, C, M."), ({"by": "famly"}, "family")])
def test_a_split_or_tag_that_there_is_not_is_refused_with_those_that_there_are(said: Any, says: str) -> None:
    with pytest.raises(UnknownName) as raised:
        asked(**said)
    assert says in str(raised.value)


def test_fresh_figures_are_computed_here_with_a_line_of_progress_for_each_split() -> None:
    lines: list[str] = []
    request = AccuracyRequest(fresh=True, split=("C",))
    answer = answered(
        accuracy(request, today=DAY, tell=lambda line: lines.append(str(line)), splits=REGISTRY, shipped=SHIPPED)
    )
    assert lines == ["Split C: one GPU measured, the target by its data sheet only ..."]
    assert answer.json()["result"]["splits"][0]["mape_percent"] == pytest.approx(20, abs=1)
    assert "Computed now, on this machine" in shown(answer)


def test_figures_of_other_data_say_that_they_are() -> None:
    old = replace(SHIPPED, data_version="2025.01.01")
    answer = answered(accuracy(AccuracyRequest(), today=DAY, tell=quiet, splits=REGISTRY, shipped=old))
    assert "these figures stand on data 2025.01.01" in shown(answer)


def test_a_table_without_any_split_says_so() -> None:
    none = replace(SHIPPED, results={})
    answer = answered(accuracy(AccuracyRequest(), today=DAY, tell=quiet, splits={}, shipped=none))
    assert "No split has been computed." in shown(answer)
    assert "Habitat" in shown(answer)


def test_the_splits_are_computed_from_all_bundled_tables_and_the_median_price_on_demand() -> None:
    tables = bundled()
    assert len(tables.rows) == len(package.throughput())
    assert {"throughput", "offers", "accelerators"} <= tables.texts.keys()
    assert tables.usd_per_hour["v100-sxm2-16gb"] == pytest.approx(3.06)


# ---- a table of one's own ----


def test_each_row_is_shown_with_its_error_and_interval_and_the_summary_counts_refusals(ours: str) -> None:
    page = shown(asked(against=ours))
    assert "1 row was predicted: MAPE 3.8 %" in page
    assert "2 refused" in page
    assert "+3.8" in page
    assert "is not a GPU that is known here" in page


def test_the_json_of_a_table_has_rows_and_a_summary(ours: str) -> None:
    document = json.loads(json_text(asked(against=ours).json()))["result"]
    assert set(nulls_without_reason(document)) == set()
    row, unknown, alone = document["rows"]
    assert (row["group"], row["accelerator"], row["measured"], row["line"]) == ("1", "a100-sxm4-40gb", 200.0, 3)
    assert row["low"] < row["measured"] < row["high"]
    assert row["error_percent"] == pytest.approx(100 * (row["predicted"] / 200 - 1))
    assert (row["reason"], unknown["predicted"], alone["reason"]) == ("", None, "nothing was measured")
    assert "RTX-5090" in unknown["reason"]
    summary = document["summary"]
    assert (summary["n"], summary["refused"], summary["given"], summary["seen"]) == (1, 2, 1, 0)
    assert summary["coverage_percent"] == 100.0
    assert summary["naive"]["geometric_mean"]["n"] == 1


def test_a_table_is_csv_markdown_and_a_page_as_well(ours: str) -> None:
    answer = asked(against=ours)
    lines = csv_text(answer.table()).splitlines()
    assert lines[0].startswith("line,group,workload,accelerator,samples_per_s,predicted_per_s,predicted_per_s_low")
    assert len(lines) == 4
    assert "A100-SXM4-40GB" in markdown(answer.table())
    assert "How wrong is the predictor on this table?" in html(answer.page())


def test_a_table_can_be_grouped_by_what_its_rows_state(ours: str) -> None:
    answer = asked(against=ours, by="accelerator")
    assert "By accelerator, in per cent" in shown(answer)
    assert answer.json()["result"]["groups"]["accelerator"]["a100-sxm4-40gb"]["n"] == 1


def test_where_every_row_is_refused_the_exit_code_says_so(ours: str) -> None:
    Path(ours).write_text("\n".join([*OURS.splitlines()[:1], OURS.splitlines()[4], ""]), "utf-8")
    answer = asked(against=ours)
    assert answer.exit_code == 3
    assert "No row could be predicted" in shown(answer)


def test_a_given_row_that_is_not_used_is_said_above_the_table(ours: str) -> None:
    Path(ours).write_text(OURS.replace("Tesla V100-SXM2-16GB", "Tesla V101"), "utf-8")
    page = " ".join(shown(asked(against=ours)).split())
    assert 'line 2 was given and is not used: accelerator: "Tesla V101" is not a GPU that is known here' in page


def test_the_bundled_predictor_answers_and_knows_which_rows_it_has_seen(tmp_path: Path) -> None:
    path = tmp_path / "known.csv"
    row = next(
        r for r in package.throughput()
        if (r.workload, r.accelerator, r.precision, r.accelerators) == ("resnet50", "a100-sxm4-40gb", "amp", 1)
    )  # fmt: skip
    rate = f"{row.batch_per_accelerator},{row.samples_per_s}"
    path.write_text(f"{OURS.splitlines()[0]}\n1,predict,A100-SXM4-40GB,ResNet-50,amp,{rate}\n", "utf-8")
    found = answered(accuracy(AccuracyRequest(against=str(path)), today=DAY, tell=quiet)).json()["result"]
    assert (found["summary"]["n"], found["summary"]["seen"]) == (1, 1)
    assert found["summary"]["mape_percent"] < 30


@pytest.mark.parametrize("said", [{"split": "A"}, {"fresh": True}])
def test_a_table_of_ones_own_and_our_splits_exclude_each_other(said: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="exclude each other"):
        parse(AccuracyRequest, {"against": "ours.csv", **said})


# ---- on the command line ----


def run(*args: str) -> Result:
    return CliRunner(env={"LC_ALL": "C.UTF-8", "COLUMNS": "120"}).invoke(program, args, obj=Session(today=DAY))


def test_the_command_shows_the_shipped_figures() -> None:
    done = run("accuracy")
    assert done.exit_code == 0, done.stderr
    assert "May I trust these predictions?" in done.stdout


def test_an_error_in_a_table_is_one_error_with_file_row_and_column(ours: str) -> None:
    Path(ours).write_text(OURS.replace("given,", "mesured,"), "utf-8")
    done = run("accuracy", "--against", ours, "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["kind"], error["row"], error["column"]) == (2, "DataError", 2, "role")
    assert (error["file"], "mesured" in error["message"]) == ("ours.csv", True)


def test_every_column_of_a_table_is_in_the_reference() -> None:
    chapter = (Path(__file__).parent.parent / "docs" / "reference" / "files.md").read_text("utf-8")
    assert [c for c in COLUMNS if f"| `{c}` |" not in chapter.split("## Tables of rates")[1]] == []


# ---- under a ranking ----


def own_run(card: str) -> Measurement:
    return Measurement(
        created_utc="2026-11-30T10:00:00",
        workload="painter-heavy",
        device="gpu",
        accelerator=card,
        accelerators=1,
        precision="amp",
        batch_per_accelerator=64,
        samples_per_s=Interval(value=100.0, low=99.0, high=101.0),
    )


ALL_CARDS = frozenset(package.accelerators())


@pytest.mark.parametrize(
    ("runs", "split"), [((), "M"), (("t4",), "A"), (("t4", "t4"), "A"), (("t4", "l4"), "A"), (("t4", "l4", "a10"), "B")]
)
def test_the_situation_of_a_ranking_counts_the_gpus_that_were_measured(runs: tuple[str, ...], split: str) -> None:
    results = {name: replace(SHIPPED.results["A"], id=name) for name in "ABCFM"}
    told = situations(small_ranking(), [own_run(card) for card in runs], ALL_CARDS, results)
    assert [one.split for one in told] == [split]


def test_a_ranking_with_cards_that_no_table_has_names_both_situations_the_commoner_first() -> None:
    ranking = small_ranking()
    cards = [c.offer.accelerator for c in ranking.candidates]
    known = frozenset(cards) - {cards[0]}
    results = {name: replace(SHIPPED.results["A"], id=name) for name in "FM"}
    assert {one.split for one in situations(ranking, (), known, results)} == {"F", "M"}
    assert [one.split for one in situations(ranking, (), frozenset(), results)] == ["F"]


def test_a_ranking_prints_the_error_of_its_own_situation_under_the_table() -> None:
    told = situations(small_ranking(), (), ALL_CARDS, SHIPPED.results)
    page = ranking_page(small_ranking(), RankRequest(workloads=("painter-heavy",)), tested=told)
    (sentence,) = (str(one.sentence) for one in told)
    assert "half of the predictions were within" in sentence
    assert sentence in " ".join(text(page, width=120).split())


def test_the_json_of_a_ranking_has_what_tests_of_its_situation_found() -> None:
    done = run("rank", "painter-heavy", "--gpu", "A100", "--limit", "1", "--json")
    found = json.loads(done.stdout)["result"]["tested"]
    shipped = package.accuracy().results
    assert [one["split"] for one in found] == (["M"] if "M" in shipped else [])
