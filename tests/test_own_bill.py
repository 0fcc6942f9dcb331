"""The bill of a person's own offers, through the verbs: stated times, months in another currency, own rates."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gpuwise import faces, request
from gpuwise.errors import DataError, InvalidInput, UnknownName
from gpuwise.request import ExplainRequest, RankRequest, Takes
from gpuwise.view.page import Text

DAY = date(2026, 11, 30)
HEAD = "provider,instance,gpu,gpus,price,currency,market,observed,tax,billing_step_s"
EIGHT = (
    f"{HEAD}\nacme,big,A100-SXM4-80GB,8,8.80,USD,on-demand,2026-11-30,net,1\n"
    "acme,one,H100-SXM,1,2.5,USD,,2026-11-30,net,1\n"
)

Write = Callable[[str, str], str]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWISE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, "utf-8")
        return str(tmp_path / name)

    return written


def asked(**said: Any) -> RankRequest:
    """As the command line reads it."""
    return request.parse(RankRequest, {name.replace("_", "-"): value for name, value in said.items()})


def ranked(**said: Any) -> dict[str, Any]:
    """The JSON of `rank`, as a program reads it."""
    found: dict[str, Any] = json.loads(json.dumps(faces.rank(asked(**said), today=DAY).json()))
    return found["result"]


# ---- a stated time -------------------------------------------------------------------------------------------------


def test_uc_049_a_stated_range_becomes_gpu_hours_and_money_of_the_lowest_confidence(write: Write) -> None:
    said = {
        "takes": "roughly 2-3 days on 8xA100",
        "offers": write("o.csv", EIGHT),
        "only_offers": True,
        "prepare": "0 s",
    }
    result = ranked(**said)
    (candidate,) = result["candidates"]
    hours, cost = candidate["accelerator_h"], candidate["cost_usd"]
    assert (hours["low"], hours["high"]) == (pytest.approx(384, rel=1e-3), pytest.approx(576, rel=1e-3))
    assert (cost["low"], cost["high"]) == (pytest.approx(422, abs=1), pytest.approx(634, abs=1))
    assert candidate["method"] == "stated"
    assert "nothing was measured" in candidate["evidence"][0]
    assert result["excluded_by_rule"] == {"not_stated": 1}
    page = faces.rank(asked(**said), today=DAY).page()
    answer = " ".join(b.text for b in page.blocks if isinstance(b, Text) and b.role == "answer")
    assert "384 to 576 GPU-hours of work as you stated" in answer
    assert "gpuwise measure" in answer
    assert result["tested"] == [], "no test of the predictor stands behind it"


@pytest.mark.parametrize(
    ("text", "low_h", "high_h", "gpu"),
    [
        ("2-3 days on 8xA100", 48, 72, "8xA100"),
        ("about 50 h on H100-SXM:8", 50, 50, "H100-SXM:8"),
        ("36h..2d@A100:8", 36, 48, "A100:8"),
        ("90 min to 2 h on T4", 1.5, 2, "T4"),
        ("2 – 3 weeks on 8 × A100", 336, 504, "8 × A100"),
    ],
)
def test_a_stated_time_is_read_as_people_write_it(text: str, low_h: float, high_h: float, gpu: str) -> None:
    assert asked(takes=text).takes == Takes(low_h * 3600, high_h * 3600, gpu)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("3-2 days on 8xA100", "the shorter time comes first"),
        ("2 days", "does not say how long on which GPUs"),
        ("50 on A100", "has no unit"),
        ("soon on A100", "is not a duration"),
    ],
)
def test_a_stated_time_that_cannot_be_read_says_why(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        asked(takes=text)


def test_a_stated_time_and_a_workload_exclude_each_other() -> None:
    with pytest.raises(InvalidInput, match="--takes and WORKLOAD exclude each other"):
        asked(takes="2 d on A100", workloads=["painter-heavy"])


# ---- a month in another currency -----------------------------------------------------------------------------------

MONTHLY = (
    "provider,instance,gpu,gpus,price,currency,price_unit,market,usd_per_unit,observed,tax\n"
    "lab,box,A100-SXM4-80GB,1,5129,CNY,month,dedicated,0.14925373134,2026-11-01,net\n"
)


def test_uc_084_a_months_rent_is_the_bill_of_a_short_job(write: Write) -> None:
    said = {"takes": "40 h on A100-SXM4-80GB", "offers": write("o.csv", MONTHLY), "only_offers": True, "prepare": "0 s"}
    (candidate,) = ranked(**said)["candidates"]
    assert candidate["cost_usd"]["value"] == pytest.approx(765.52, abs=0.01)
    assert [(x["kind"], x["quantity"]) for x in candidate["cost_lines"]] == [("commitment", 730.0)]
    assert candidate["offer"]["price_native"] == 5129
    assert candidate["offer"]["currency"] == "CNY"
    shared = ranked(**said, hours_per_month="730")["candidates"][0]
    assert shared["cost_share_usd"]["value"] == pytest.approx(765.52 * 40 / 730, abs=0.01)
    table = faces.rank(asked(**said), today=DAY).table()
    price = next(row[i] for row in table.rows for i, c in enumerate(table.columns) if c.key == "price_usd_per_hour")
    assert price.shown == "765.52 /month"
    assert "1.049 an hour if used the whole month" in price.title


def test_a_currency_without_a_rate_is_refused_unless_one_brings_ones_own(write: Write) -> None:
    bare = MONTHLY.replace(",usd_per_unit", "").replace(",0.14925373134", "")
    said = {"takes": "40 h on A100-SXM4-80GB", "offers": write("o.csv", bare), "only_offers": True}
    (refused,) = ranked(**said)["rejects"]
    assert "no rate for CNY is known: give yours in usd_per_unit" in refused
    with pytest.raises(InvalidInput, match="currency with a dated rate"):
        faces.rank(asked(**{**said, "currency": "CNY"}), today=DAY)
    mine = {**said, "offers": write("o2.csv", MONTHLY), "currency": "CNY", "rate": "1/6.70"}
    answer = faces.rank(asked(**mine), today=DAY)
    assert answer.json()["fx"] == {
        "code": "CNY",
        "rate": pytest.approx(1 / 6.7),
        "date": "2026-11-30",
        "source": "--rate",
    }
    money = request.parse(RankRequest, {"takes": "1 h on T4", "currency": "CNY", "rate": "1/6.70", "budget": "670 CNY"})
    assert money.budget_usd == pytest.approx(100)
    with pytest.raises(InvalidInput, match="--rate needs the currency"):
        asked(takes="1 h on T4", rate="0.15")


# ---- agreements, places, platforms ---------------------------------------------------------------------------------


def test_uc_091_a_spend_commitment_in_discounts_pays_its_sum_in_each_hour(write: Write) -> None:
    agreed = write("discounts.toml", '[[commitment]]\nprovider = "acme"\nusd_per_hour = 1.0\n')
    said = {"takes": "12 h on H100-SXM", "offers": write("o.csv", EIGHT), "only_offers": True, "prepare": "0 s"}
    (candidate,) = ranked(**said, discounts=agreed)["candidates"]
    lines = {line["kind"]: line["amount_usd"] for line in candidate["cost_lines"]}
    assert lines == {"compute": pytest.approx(30), "covered by a commitment": pytest.approx(-12)}
    both = write("both.toml", '[[commitment]]\nprovider = "acme"\nusd_per_hour = 1.0\nleft_h = 3\n')
    with pytest.raises(DataError, match="both or neither of left_h and usd_per_hour"):
        ranked(**said, discounts=both)


def test_the_bill_and_the_platform_of_an_offer_stand_on_its_page() -> None:
    listed = ranked(workloads=["painter-heavy"], gpu="V100", provider="aws", market="on-demand", limit="1")
    offer = listed["candidates"][0]["offer"]["id"]
    more = {"data-size": "150GB", "from": "gcp/us-east1", "disk": "300GB", "prepare-on": "cpu", "results-size": "200GB"}
    asked_for = request.parse(ExplainRequest, {"workload": "painter-heavy", "offer": offer, **more})
    answer = faces.explain(asked_for, today=DAY).json()["result"]
    lines = {line["kind"]: line for line in answer["candidate"]["cost_lines"]}
    assert {"compute", "disk", "public address", "preparation without GPU", "moving the disk", "egress"} <= lines.keys()
    assert lines["data from its provider"]["amount_usd"] == pytest.approx(18.0), "150 GB at 0.12"
    assert lines["egress"]["amount_usd"] == pytest.approx(9.0), "100 GB are free, 100 at 0.09"
    total = sum(line["amount_usd"] for line in lines.values())
    assert total == pytest.approx(answer["candidate"]["cost_usd"]["value"])
    facts = {fact["name"]: fact for fact in answer["platform"]}
    assert facts["container_runtime"]["value"] == "preinstalled"
    assert all(fact["source"] and fact["observed"] for fact in facts.values())


def test_uc_068_a_price_list_may_state_how_reliable_a_host_is(write: Write) -> None:
    rows = "provider,gpu,price,currency,market,observed,reliability_fraction\n" + "".join(
        f"market,RTX 4090,{price},USD,community,2026-11-30,{share}\n"
        for price, share in ((0.05, 0.61), (0.29, 0.99), (0.31, 0.98), (0.33, 0.99), (0.34, 0.97), (0.80, 0.99))
    )
    said = {"takes": "10 h on RTX 4090", "offers": write("o.csv", rows), "only_offers": True}
    result = ranked(**said)
    assert [c["offer"]["price_usd_per_hour"] for c in result["candidates"]] == [0.29, 0.31, 0.33, 0.34, 0.80]
    assert result["excluded_by_rule"] == {"unreliable": 1}
    assert "61 % reliable" in result["exclusions"][0]["reason"]
    assert result["candidates"][0]["quotes"]["count"] == 6


def test_what_nobody_stated_is_named_as_not_contained() -> None:
    def unsaid(**said: Any) -> str:
        page = faces.rank(asked(workloads=["painter-light"], limit="1", **said), today=DAY).page()
        return next((b.text for b in page.blocks if isinstance(b, Text) and b.text.startswith("Unknown and not")), "")

    assert "checkpoints" in unsaid()
    assert "evaluation" in unsaid()
    partly = unsaid(checkpoint="30 s", checkpoint_every="1 h", disk="100GB")
    assert "checkpoints" not in partly
    assert "disk" not in partly
    assert "evaluation" in partly
    all_of_it = {
        "checkpoint": "30 s",
        "checkpoint_every": "1 h",
        "disk": "1GB",
        "data_size": "1GB",
        "results_size": "1GB",
        "final_evaluation": "1 min",
    }
    assert unsaid(**all_of_it) == ""


def test_a_place_that_nobody_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="us-esat-1") as error:
        faces.rank(asked(workloads=["painter-light"], data_size="10GB", **{"from": "aws/us-esat-1"}), today=DAY)
    assert "us-east-1" in error.value.nearest
    with pytest.raises(UnknownName, match="nowhere"):
        faces.rank(asked(workloads=["painter-light"], data_size="10GB", **{"from": "nowhere"}), today=DAY)


def test_the_bill_of_a_stated_job_is_explained_line_by_line(write: Write) -> None:
    said = {"takes": "48 h on A100-SXM4-80GB:8", "offers": write("o.csv", EIGHT), "only-offers": True}
    answer = faces.explain(request.parse(ExplainRequest, said), today=DAY)
    found = answer.json()["result"]
    assert {line["kind"] for line in found["candidate"]["cost_lines"]} == {"preparation", "compute"}
    assert found["nearest"] == []
    assert found["candidate"]["method"] == "stated"
    with pytest.raises(InvalidInput, match="WORKLOAD is missing"):
        request.parse(ExplainRequest, {})


def test_the_interval_of_a_spot_job_never_begins_before_its_work_is_done(write: Write) -> None:
    spot = EIGHT.replace("on-demand", "spot")
    said = {"takes": "48 h on A100-SXM4-80GB:8", "offers": write("o.csv", spot), "only_offers": True, "prepare": "0 s"}
    risky = {"checkpoint_every": "never", "spot_losses": "0.03", "spot_available": "90%"}
    (candidate,) = ranked(**said, **risky)["candidates"]
    assert candidate["accelerator_h"]["low"] >= 384 * (1 - 1e-9)
    assert candidate["cost_usd"]["low"] >= 48 * 8.80 * (1 - 1e-6)
    assert candidate["time_s"]["low"] >= 48 * 3600 * (1 - 1e-9)
    assert candidate["accelerator_h"]["high"] > 1.5 * 384
