"""What the page of a ranking says where the answer is no, how sure it is, and what a price or a bill really is."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from gpuwise.errors import Message
from gpuwise.estimate import Estimate, exact, probability_less
from gpuwise.model import Refusal
from gpuwise.request import RankRequest
from gpuwise.view.explanation import explanation_page
from gpuwise.view.page import Facts, Text
from gpuwise.view.ranking import ranking_page
from tests.pages import JOB, make_candidate, make_offer, make_ranking
from tests.test_view import REQUEST, answers, chart, column, facts, heads, one_row, table


def cells(found, key):
    place = [c.key for c in found.columns].index(key)
    return [row[place] for row in found.rows]


# ---- where the answer is no ----


def test_where_nothing_passes_the_answer_says_so_and_points_to_what_would_let_one_in(ranking):
    empty = replace(ranking, candidates=(), frontier=(), own=())
    assert answers(ranking_page(empty, REQUEST)) == [
        "No offer passes the filters.",
        "The nearest changes that would admit one stand below.",
    ]
    assert answers(ranking_page(replace(empty, relaxations=()), REQUEST)) == ["No offer passes the filters."]


def test_where_only_owned_machines_pass_the_answer_says_how_to_rank_them():
    mine = make_candidate(make_offer("own", "x", "a10", 1, 0.5, market="owned"), 9.0, cost_usd=None)
    answer = make_ranking((mine,))
    assert answers(ranking_page(answer, REQUEST)) == [
        "Only offers without a cost of their own pass the filters: owned.",
        "Say how busy an owned machine is, and it is ranked by its share: --hours-per-month.",
    ]
    assert len(answers(ranking_page(answer, replace(REQUEST, hours_per_month=400.0)))) == 1


# ---- how sure it is ----


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"observed": date(2026, 11, 1)}, "at prices as old as stated."),
        ({"observed": date(2026, 9, 1)}, "at prices as old as stated."),
        ({"observed": date(2026, 8, 31)}, "; its own price is 91 days old."),
        ({"observed": date(2026, 11, 1), "market": "spot"}, "; its own price is a spot price."),
        ({"observed": date(2026, 6, 1), "market": "spot"}, "; its own price is 182 days old and a spot price."),
        ({"observed": None}, "; its own price is without a date."),
    ],
)
def test_the_claim_says_what_it_stands_on_and_what_may_have_changed(more, words):
    page = ranking_page(one_row(make_offer("a", "b", "a10", 1, 0.5, **more), p_cheapest=0.99), REQUEST)
    (claim, _fastest) = answers(page)
    assert "Of the offers ranked it is the cheapest with a probability of 99 %" in claim
    assert claim.endswith(words)


@pytest.mark.parametrize(
    ("observed", "precision", "words"),
    [
        (date(2026, 6, 15), "day", "price of 2026-06-15."),
        (date(2026, 6, 15), "month", "price of 2026-06."),
        (date(2026, 6, 15), "not-before", "price of 2026-06-15 or later."),
        (date(2026, 6, 15), "first-recorded", "price unchanged since 2026-06-15."),
        (None, "day", "price without a date."),
    ],
)
def test_the_date_of_a_price_is_said_as_a_person_would(observed, precision, words):
    offer = make_offer("a", "b", "a10", 1, 0.5, observed=observed, observed_precision=precision)
    assert answers(ranking_page(one_row(offer, p_cheapest=None), REQUEST))[0].endswith(words)


# ---- what is billed ----


def test_the_price_is_the_one_that_is_billed_with_the_listed_one_beside_it():
    offer = make_offer("a", "b", "a10", 1, 1.0)
    found = table(ranking_page(one_row(offer, price_usd_per_hour=1.19), REQUEST))
    (cell,) = cells(found, "price_usd_per_hour")
    assert (cell.shown, cell.value, cell.note) == ("1.19 /h", 1.19, "listed: 1.00 /h")
    (same,) = cells(table(ranking_page(one_row(offer, price_usd_per_hour=1.0), REQUEST)), "price_usd_per_hour")
    assert same.note == ""


def test_a_credit_stands_beside_the_bill_and_does_not_lower_it():
    row = make_candidate(make_offer("a", "b", "a10", 1, 1.0), 9.0)
    paid = replace(row, cost=replace(row.cost, credit_usd=5.0))
    found = table(ranking_page(make_ranking((paid,)), REQUEST))
    (cell,) = cells(found, "cost_usd")
    assert (cell.shown, cell.note) == ("9.40", "credit pays 5.00")
    assert "Costs are before credits; what a credit pays of one stands beside it." in found.sentences()
    without = table(ranking_page(make_ranking((row,)), REQUEST))
    assert not any("credit" in sentence for sentence in without.sentences())


# ---- deadline, columns, exclusions ----


def test_with_a_deadline_each_row_says_how_likely_it_is_to_be_met():
    row = make_candidate(make_offer("a", "b", "a10", 1, 1.0), 9.0)
    page = ranking_page(make_ranking((row,)), replace(REQUEST, deadline_s=10 * 3600.0))
    (cell,) = cells(table(page), "p_in_time")
    assert cell.value == pytest.approx(probability_less(row.time_s, exact(36_000.0)))
    assert cell.shown == "70 %"
    assert "P(in time): how likely the job ends within 10 h." in table(page).sentences()
    assert "P(in time)" not in heads(table(ranking_page(make_ranking((row,)), REQUEST)))


def test_what_decides_stands_first(ranking):
    assert [c.title for c in table(ranking_page(ranking, REQUEST)).columns] == [
        "★", "GPUs", "Provider", "Market", "Time", "Cost", "P(cheapest)", "Price", "Price seen", "Break-even",
        "Instance", "Region",
    ]  # fmt: skip


def test_the_filters_are_followed_to_the_end_for_one_job(ranking):
    counts = {"stale_price": 1012, "does_not_fit": 88, "deadline": 4, "budget": 7}
    answer = replace(ranking, counts=counts, funnel=(("offers", 1655), ("stale_price", 643)))
    (note,) = table(ranking_page(answer, REQUEST), "Left out, and why").notes
    assert note.endswith(
        "the job does not fit in GPU memory 555; takes longer than --deadline 551; costs more than --budget 544."
    )


def test_what_is_counted_once_a_job_says_so_where_there_are_several_jobs(ranking):
    light = replace(JOB, name="painter-light")
    answer = replace(ranking, workloads=(JOB, light), counts={"stale_price": 1012, "does_not_fit": 88})
    found = table(ranking_page(answer, REQUEST), "Left out, and why")
    assert [cell.note for cell in cells(found, "rule")] == ["", "counted once for each job"]


def test_the_cheapest_offer_of_the_answer_has_a_name_in_the_chart():
    """Six points of the frontier side by side leave no room for a name of two lines."""
    rows = tuple(
        make_candidate(
            make_offer(f"provider-{i}", "x", "rtx-pro-6000-server|rtx-pro-6000-ws", 1, 0.5 + i / 50), 9.0 - i / 9,
            on_frontier=True,
        )
        for i in range(6)
    )  # fmt: skip
    page = ranking_page(make_ranking(rows), REQUEST)
    cheapest = min(chart(page).spec["data"]["values"], key=lambda p: p["cost"])
    assert cheapest["label"].startswith("provider-")
    assert cheapest["end"]


# ---- explain ----


def test_several_variants_are_each_explained_and_the_heading_names_the_range():
    offers = (make_offer("a", "b", "v100-pcie-16gb", 1, 1.0), make_offer("a", "b", "v100-sxm2-16gb", 1, 1.0))
    slow, fast = (make_candidate(o, h).prediction for o, h in zip(offers, (10.0, 8.0), strict=True))
    no = Refusal(workload="w", platform="v100-x", accelerators=1, rule="no_prediction", reason=Message("no row"))
    page = explanation_page(JOB, [slow, fast, no])
    assert answers(page) == [
        "1 × V100 PCIe or SXM2 16 GB: 66.2 to 82.7 samples a second, by variant (with their intervals 56.8 to 96.5); "
        "8 h to 10 h for the whole job without preparation."
    ]
    said = facts(page, "The evidence for 1 × V100 PCIe 16 GB")
    assert said["Evidence"].startswith("3 measured rows of v100-pcie-16gb")
    assert said["Uncertain by"].startswith("80 % factors: speed of v100-pcie-16gb ×/÷ 1.17")
    assert said["To narrow it"].startswith("Measure one minute")
    assert facts(page, "The evidence for 1 × V100 X") == {"No prediction": "no row | "}
    assert len([b for b in page.blocks if isinstance(b, Facts)]) == 4


def test_the_cheapest_offers_with_a_gpu_stand_below_its_evidence(ranking):
    page = explanation_page(JOB, [ranking.candidates[0].prediction], ranking=replace(ranking, total_candidates=14))
    found = table(page, "The cheapest offers with it")
    assert column(found, "provider")[0] == "vast"
    assert found.notes[-1] == "8 of 14 offers; rank shows them all (--gpu)."


def test_one_convention_for_errors_holds_in_hints_and_in_tables():
    error = Estimate(value=1.0, spread=(("x", 0.2),))
    row = make_candidate(make_offer("a", "b", "a10", 1, 0.5), 9.0)
    row = replace(row, prediction=replace(row.prediction, throughput_per_s=error), time_s=error)
    page = explanation_page(JOB, [row.prediction], candidate=row)
    assert column(table(page, "What makes it uncertain"), "log_sd") == ["×/÷ 1.29"]
    assert facts(page, "The offer")["Time"].endswith("80 % factors: x ×/÷ 1.29")
    assert error.interval().high == pytest.approx(1.29, abs=0.005)


def test_the_first_sentence_of_an_answer_stands_for_itself(ranking):
    page = ranking_page(replace(ranking, candidates=(), frontier=(), own=()), RankRequest(workloads=("painter-heavy",)))
    assert isinstance(page.blocks[0], Text)
    assert page.blocks[0].text == "No offer passes the filters."
