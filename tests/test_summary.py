"""One page to sign: its figures are those of the document, and it says what comes second, what turns it, until when."""

from __future__ import annotations

import json
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuwise import faces
from gpuwise.cli import Session, program
from gpuwise.estimate import Interval
from gpuwise.render.data import json_text
from gpuwise.request import ExitRequest, OwnRequest, RankRequest, parse
from gpuwise.view.page import Facts, Page, Table, Text
from tests.bills import bill

DAY = date(2026, 12, 1)
AWS = {"demand": "40 GPUs", "gpu": "H100-SXM", "provider": "aws", "country": "US"}


def both(face, request):
    answer = face(request, today=DAY)
    return answer.summary(), json.loads(json_text(answer.json()))["result"]


def table(page: Page) -> Table:
    (found,) = (block for block in page.blocks if isinstance(block, Table))
    return found


def facts(page: Page, title: str) -> dict[str, str]:
    return {f.label: f.text for b in page.blocks if isinstance(b, Facts) and b.title == title for f in b.facts}


def lead(page: Page) -> str:
    return next(block.text for block in page.blocks if isinstance(block, Text) and block.role == "answer")


def column(found: Table, key: str) -> list[object]:
    place = next(i for i, one in enumerate(found.columns) if one.key == key)
    return [row[place].value for row in found.rows]


def test_of_rank_it_sets_the_two_cheapest_side_by_side_with_the_documents_figures():
    page, result = both(faces.rank, parse(RankRequest, {"workloads": ["painter-heavy"]}))
    first, second = result["candidates"][:2]
    shown = table(page)
    assert column(shown, "provider") == [first["offer"]["provider"], second["offer"]["provider"]]
    for value, one in zip(column(shown, "cost_usd"), (first, second), strict=True):
        assert isinstance(value, Interval)
        assert value.value == pytest.approx(one["cost_usd"]["value"])
    more = second["cost_usd"]["value"] / first["cost_usd"]["value"] - 1
    runner_up = facts(page, "What would turn it")[f"Runner-up: {second['offer']['provider']}"]
    assert runner_up.startswith(f"its bill lies {more:.0%} above".replace("%", " %"))


def test_a_ranking_holds_no_longer_than_the_price_it_stands_on():
    """A price may be 200 days old at most, and the cheapest offer's is 191: nine days are left."""
    page, _result = both(faces.rank, parse(RankRequest, {"workloads": ["painter-heavy"], "max-age": "200"}))
    seen = column(table(page), "observed")[0]
    left = facts(page, "Valid until")
    assert next(iter(left)) == date.fromordinal(date.fromisoformat(str(seen)).toordinal() + 200).isoformat()


def test_nothing_feasible_is_no_decision_with_figures():
    page, _result = both(faces.rank, parse(RankRequest, {"workloads": ["painter-heavy"], "budget": "0.0001 USD"}))
    assert not [block for block in page.blocks if isinstance(block, Table)]
    assert "No offer" in lead(page)


def test_of_own_it_sets_the_advice_beside_the_other_side():
    page, result = both(faces.own, parse(OwnRequest, AWS))
    options = {one["option"]: one for one in result["options"]}
    shown = table(page)
    assert column(shown, "option") == [result["rented"], result["owned"]]
    for name, value in zip(column(shown, "option"), column(shown, "usd_per_gpu_hour"), strict=True):
        spread = options[str(name)]["usd_per_gpu_hour"]
        assert value == Interval(value=spread["p50"], low=spread["p10"], high=spread["p90"])


def test_what_turns_own_is_what_changes_the_sign_of_the_saving():
    page, result = both(faces.own, parse(OwnRequest, AWS))
    turned = facts(page, "What would turn it")
    saving = result["saving_usd"]
    signs = {w["name"]: {w["low_usd"] > 0, w["high_usd"] > 0} - {saving > 0} for w in result["weights"]}
    assert bool(turned) == any(signs.values())
    assert len(turned) == min(sum(map(bool, signs.values())), 4)
    assert ("price of a server" in turned) == bool(signs["server_usd"])


@pytest.mark.skipif(find_spec("duckdb") is None, reason="DuckDB reads the bills (extra [focus])")
def test_of_exit_it_holds_the_dates_and_the_ends_of_commitments(tmp_path):
    file = bill(tmp_path / "usage.csv", lambda _month, _day, _hour: 2)
    said = {"files": [str(file)], "committed-until": ["2027-06-30=12000 USD"], "country": "US"}
    page, result = both(faces.exit, parse(ExitRequest, said, usd_per=lambda _code: 1.0))
    months = dict(zip(column(table(page), "date"), column(table(page), "month"), strict=True))
    assert months["robust"] == result["robust"]["month"]
    assert "2027-06" in facts(page, "Valid until")["2027-06-30"]


@pytest.mark.parametrize("verb", ["rank", "own", "exit"])
def test_help_names_it_where_there_is_a_decision(verb):
    assert "--summary" in CliRunner().invoke(program, [verb, "--help"]).output


def test_the_command_line_writes_it_beside_the_answer(tmp_path: Path):
    file = tmp_path / "sign.html"
    words = ["own", *(part for name, value in AWS.items() for part in (f"--{name}", value)), "--summary", str(file)]
    result = CliRunner().invoke(program, words, obj=Session(today=DAY))
    assert result.exit_code == 0, result.output
    text = file.read_text("utf-8")
    assert "Signature" in text
    assert 'class="upright"' in text
