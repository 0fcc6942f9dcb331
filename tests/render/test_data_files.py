"""JSON, CSV and Markdown: full values, stable names, nothing that a reader trips over."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pages import JOB, make_candidate, make_offer, make_ranking

from gpuwise.errors import Message
from gpuwise.estimate import Interval
from gpuwise.model import Fx
from gpuwise.render.data import csv_text, document, json_text, markdown, plain, ranking_document
from gpuwise.request import RankRequest
from gpuwise.store.sheet import restore
from gpuwise.view.candidates import candidate_table, setting, shown
from gpuwise.view.page import Cell, Column, Table

REQUEST = RankRequest(workloads=("painter-heavy",))
HEADER = (
    "on_frontier,workload,offer_id,accelerators,accelerator,provider,market,accuracy_fraction,"
    "throughput_per_s,throughput_per_s_low,throughput_per_s_high,time_s,time_s_low,time_s_high,p_in_time,"
    "wait_s,wait_s_low,wait_s_high,accelerator_h,accelerator_h_low,accelerator_h_high,"
    "cost_usd,cost_usd_low,cost_usd_high,"
    "usd_per_million_samples,usd_per_million_samples_low,usd_per_million_samples_high,"
    "usd_per_1000_steps,usd_per_1000_steps_low,usd_per_1000_steps_high,"
    "cost_share_usd,cost_share_usd_low,cost_share_usd_high,p_cheapest,price_usd_per_hour,listed_usd_per_hour,observed,"
    "break_even_hours_per_month,break_even_hours_per_month_low,break_even_hours_per_month_high,"
    "instance,region,country,availability,source,method,remarks,unknown"
)


def strict(text: str) -> dict:
    """JSON as a browser reads it: NaN and Infinity are refused."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def table(ranking, fx=None) -> Table:
    return candidate_table(ranking, shown(ranking), setting(ranking, fx))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_json_of_one_candidate_is_the_one_agreed_on(ranking, golden):
    one = replace(ranking, candidates=ranking.candidates[:1])
    candidate = strict(json_text(ranking_document(one, REQUEST)))["result"]["candidates"][0]
    golden("offer.json", json_text(candidate.pop("offer")))
    golden("candidate.json", json_text(candidate))


def test_the_envelope_says_what_was_asked_of_which_data_and_when(ranking):
    whole = strict(json_text(ranking_document(ranking, REQUEST)))
    assert list(whole) == ["schema", "request", "data_version", "as_of", "warnings", "result"]
    assert (whole["schema"], whole["data_version"], whole["as_of"]) == (1, "2026.11.30", "2026-11-30")
    assert whole["warnings"] == ["1 of the offers shown have no exact price date"]
    assert whole["request"]["workloads"] == ["painter-heavy"]
    assert whole["request"]["deadline_s"] is None
    assert whole["result"]["total_candidates"] == 214
    assert whole["result"]["exclusions"] == [
        {
            "offer_id": "azure/NC6/us-east-1/on-demand/2020-01-05#3",
            "workload": None,
            "workload_reason": "left out for every workload",
            "rule": "stale_price",
            "reason": "the price of 2020-01-05 is 2521 days old",
        }
    ]


def test_a_shown_currency_adds_its_rate_and_leaves_usd_as_it_is(ranking):
    euro = Fx(code="EUR", usd_per_unit=1.16, observed=date(2026, 8, 14), source="ECB")
    plain_usd, shown_eur = (strict(json_text(ranking_document(ranking, REQUEST, fx))) for fx in (None, euro))
    assert shown_eur.pop("fx") == {"code": "EUR", "rate": 1.16, "date": "2026-08-14", "source": "ECB"}
    assert shown_eur == plain_usd


def test_what_is_not_known_is_null_with_its_reason(ranking):
    own = strict(json_text(ranking_document(ranking, REQUEST)))["result"]["candidates"][6]
    assert own["cost_usd"] is None
    assert own["cost_usd_reason"] == "nobody sends a bill for one job"
    assert own["wait_s_reason"] == "the source does not say"
    assert "time_s_reason" not in own


def test_python_and_json_give_equal_values(ranking):
    found = strict(json_text(ranking_document(ranking, REQUEST)))["result"]["candidates"]
    for given_row, shown_row in zip(ranking.candidates, found, strict=True):
        inside = given_row.time_s.interval()
        assert shown_row["time_s"] == {"value": inside.value, "low": inside.low, "high": inside.high}
        assert sum(line["amount_usd"] for line in shown_row["cost_lines"]) == pytest.approx(
            given_row.cost.billed_usd if given_row.cost else 0.0
        )


def test_uc_119_one_nan_leaves_valid_json_with_a_reason_and_names_as_they_are():
    offer = make_offer("BaNaNa Cloud", "</script><b>&", "a10", 1, 0.5)
    bad = replace(make_candidate(offer, 9.0), offer=replace(offer, price_usd_per_hour=math.nan), p_cheapest=math.inf)
    text = json_text(ranking_document(make_ranking((bad,)), REQUEST))
    row = strict(text)["result"]["candidates"][0]
    assert row["offer"]["price_usd_per_hour"] is None
    assert row["offer"]["price_usd_per_hour_reason"] == "the figure is not a finite number"
    assert row["p_cheapest"] is None
    assert row["p_cheapest_reason"] == "the figure is not a finite number"
    assert (row["offer"]["provider"], row["offer"]["instance"]) == ("BaNaNa Cloud", "</script><b>&")
    (line,) = rows(csv_text(table(make_ranking((bad,)))))
    assert (line["price_usd_per_hour"], line["p_cheapest"], line["provider"]) == ("", "", "BaNaNa Cloud")


@given(st.recursive(st.floats() | st.text() | st.none() | st.dates() | st.integers() | st.booleans(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_any_value_becomes_json_that_a_browser_reads(value):
    strict(json_text({"value": value}))


def test_an_interval_with_an_infinite_end_is_unknown_as_a_whole():
    assert plain(Interval(value=1.0, low=0.5, high=math.inf)) is None


def test_a_value_that_json_does_not_know_is_refused_by_name():
    with pytest.raises(TypeError, match="complex has no form in JSON"):
        plain({"x": [1j]})


def test_uc_124_the_header_of_the_csv_is_the_same_for_every_answer(ranking):
    share = replace(ranking, basis="share", workloads=(JOB, replace(JOB, name="painter-light")))
    for answer in (ranking, share, make_ranking(())):
        assert csv_text(table(answer)).splitlines()[0] == HEADER


def test_uc_124_an_empty_list_is_valid_json_and_valid_csv():
    empty = make_ranking((), total_offers=0)
    assert strict(json_text(ranking_document(empty, REQUEST)))["result"]["candidates"] == []
    assert rows(csv_text(table(empty))) == []
    assert markdown(table(empty)).startswith("| ★ | GPUs | Provider |")


def test_uc_085_csv_and_json_hold_the_full_value_and_the_table_rounds():
    given_row = make_candidate(make_offer("a", "b", "a10", 1, 0.0084), 729.6)
    answer = make_ranking((given_row,))
    (line,) = rows(csv_text(table(answer)))
    assert float(line["cost_usd"]) == given_row.cost_usd.value
    assert float(line["price_usd_per_hour"]) * 730 == pytest.approx(6.132)
    assert "| 6.13 (5.26–7.15) |" in markdown(table(answer))
    assert "| 0.0084 /h |" in markdown(table(answer))


@pytest.mark.parametrize(
    "text", ["=HYPERLINK(1)", "+49 call", "@x", "\ttab-led", "-cmd", "'=quoted", "plain", 'a,"b"\nc']
)
def test_uc_120_text_is_made_harmless_and_comes_back_through_our_reader(text):
    written = Table(title="", columns=(Column(key="note", title="Note"),), rows=((Cell(shown=text, value=text),),))
    field = rows(csv_text(written))[0]["note"]
    assert field[0] not in "=+-@\t"
    assert restore(field) == text


def test_uc_120_a_negative_number_stays_a_number():
    columns = (Column(key="saving_usd", title="Saving", kind="number"), Column(key="note", title="Note"))
    written = Table(title="", columns=columns, rows=((Cell(shown="-12.5", value=-12.5), Cell(shown="x", value="-x")),))
    assert csv_text(written) == "saving_usd,note\n-12.5,'-x\n"


def test_markdown_repeats_what_the_table_shows(ranking, golden):
    golden("ranking.md", markdown(table(ranking)))


def test_markdown_keeps_a_hostile_name_inside_its_cell():
    name = "a|b</td><script>`*_[x](y)\nc"
    row = make_candidate(make_offer(name, "i", "a10", 1, 0.5), 9.0)
    (line,) = [x for x in markdown(table(make_ranking((row,)))).splitlines() if "script" in x]
    assert line.replace("\\|", "").count("|") == len(table(make_ranking((row,))).visible().columns) + 1
    assert "<" not in line


def test_the_document_of_another_verb_has_the_same_envelope():
    said = document(
        {"offers": 3, "odd": math.nan},
        request=REQUEST,
        data_version="v",
        as_of=date(2026, 1, 2),
        warnings=(Message("{n} odd", n=1),),
    )
    assert said["result"] == {"offers": 3, "odd": None, "odd_reason": "the figure is not a finite number"}
    assert said["warnings"] == ["1 odd"]
