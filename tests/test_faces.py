"""Every verb's document on the bundled facts: nulls say why, JSON and page and table tell one story."""

from __future__ import annotations

import json
from datetime import date

import pytest

from gpuwise import api, faces
from gpuwise.errors import InvalidInput
from gpuwise.render.data import json_text
from gpuwise.request import AccuracyRequest, DataRequest, DescribeRequest, ExplainRequest, RankRequest

DAY = date(2026, 11, 30)
ASKED = {
    "rank": lambda: faces.rank(RankRequest(workloads=("painter-light", "painter-heavy"), limit=3), today=DAY),
    "rank months": lambda: faces.rank(
        RankRequest(workloads=("gpt",), hours_per_month=400.0, currency="EUR"), today=DAY
    ),
    "explain": lambda: faces.explain(ExplainRequest(workload="painter-heavy", on="T4"), today=DAY),
    "describe": lambda: faces.describe(DescribeRequest(target="bert-finetune"), today=DAY),
    "data list": lambda: faces.data(DataRequest(action="list"), today=DAY),
    "data list by": lambda: faces.data(DataRequest(action="list", by=("provider", "gpu")), today=DAY),
    "data show": lambda: faces.data(DataRequest(action="show", names=("p2.xlarge",)), today=DAY),
    "data check": lambda: faces.data(DataRequest(action="check"), today=DAY),
    "accuracy": lambda: faces.accuracy(AccuracyRequest(), today=DAY),
    "data diff": lambda: faces.data(DataRequest(action="diff", names=("2025-06-01", "2026-11-30")), today=DAY),
}


def nulls_without_reason(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner is None and not value.get(f"{key}_reason"):
                yield f"{path}.{key}"
            yield from nulls_without_reason(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from nulls_without_reason(inner, f"{path}[]")


@pytest.mark.parametrize("verb", ASKED)
def test_every_verb_answers_by_schema_1_and_no_null_is_without_a_reason(verb):
    document = json.loads(json_text(ASKED[verb]().json()))
    assert {"schema", "request", "data_version", "as_of", "warnings", "result"} <= document.keys()
    assert document["schema"] == 1
    assert set(nulls_without_reason(document["result"])) == set()


def test_python_and_json_give_equal_values():
    request = RankRequest(workloads=("painter-heavy",), limit=5)
    ranking = api.rank(request, today=DAY).ranking
    shown = faces.rank(request, today=DAY).json()["result"]["candidates"]
    assert [c["offer"]["id"] for c in shown] == [c.offer.id for c in ranking.candidates]
    assert [c["cost_usd"]["value"] for c in shown] == [c.cost_usd.value for c in ranking.candidates]


def test_the_first_answer_has_a_hundred_offers_of_fifteen_providers_in_five_markets():
    ranking = api.rank(RankRequest(workloads=("painter-heavy",), limit=None), today=DAY).ranking
    offers = [c.offer for c in ranking.candidates]
    assert len(offers) >= 100
    assert len({o.provider for o in offers}) >= 15
    assert len({o.market for o in offers}) >= 5
    assert all(o.observed and o.source.ref for o in offers)
    assert all((DAY - o.observed).days <= 365 for o in offers)
    rented = [c for c in ranking.candidates if c.offer.market != "owned"]
    assert all(c.cost_usd.value > 0 for c in rented)


def test_two_examples_of_owned_machines_stand_in_the_table_and_say_so():
    page = faces.rank(RankRequest(workloads=("painter-heavy",)), today=DAY)
    own = page.result.ranking.own
    assert len(own) == 2
    assert all("example" in [str(m) for m in c.marks] for c in own)


def test_every_offer_is_a_candidate_or_an_exclusion():
    ranking = api.rank(RankRequest(workloads=("painter-heavy",), limit=None), today=DAY).ranking
    assert len(ranking.candidates) + len(ranking.exclusions) == ranking.total_offers
    assert sum(ranking.counts.values()) == len(ranking.exclusions)


def test_uc_067_a_type_that_is_gone_is_said_to_be_and_prices_of_two_months_are_compared(tmp_path):
    march, april = tmp_path / "march.csv", tmp_path / "april.csv"
    march.write_text("provider,instance,gpu,price,currency\np,X,H100 SXM,2.10,USD\np,Y,A100-80GB,1.50,USD\n")
    april.write_text("provider,instance,gpu,price,currency\np,Y,A100-80GB,1.20,USD\n")
    answer = faces.data(DataRequest(action="diff", names=(str(march), str(april))), today=DAY)
    changes = {(c["before"] or c["after"])["instance"]: c for c in answer.json()["result"]["changes"]}
    assert (changes["X"]["after"], changes["X"]["after_reason"]) == (None, "no longer offered")
    assert [changes["Y"][side]["price_usd_per_hour"] for side in ("before", "after")] == [1.50, 1.20]
    assert "no longer offered: 1" in answer.page().blocks[0].text


def test_one_workload_cannot_be_asked_for_twice():
    with pytest.raises(InvalidInput, match="twice"):
        api.rank(RankRequest(workloads=("gpt", "gpt")), today=DAY)
