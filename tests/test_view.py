"""What the pages say: the answer first, doubts aloud, every figure with its unit, nothing unknown shown as nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.errors import Message
from gpuwise.estimate import Estimate, Interval, exact
from gpuwise.integrity import Finding
from gpuwise.model import Accelerator, Exclusion, Fx, Refusal, Source
from gpuwise.request import RankRequest
from gpuwise.view import figures
from gpuwise.view.catalogue import Change, changes_page, check_page, name_page, offers_page, pools_page
from gpuwise.view.explanation import explanation_page
from gpuwise.view.page import Caution, Chart, Facts, Page, Table, Text
from gpuwise.view.ranking import ranking_page
from gpuwise.view.workload import workload_page
from tests.pages import JOB, make_candidate, make_offer, make_ranking

REQUEST = RankRequest(workloads=("painter-heavy",))
EURO = Fx(code="EUR", usd_per_unit=1.16, observed=date(2026, 8, 14), source="ECB")


def answers(page: Page) -> list[str]:
    return [b.text for b in page.blocks if isinstance(b, Text) and b.role == "answer"]


def table(page: Page, title: str = "Offers") -> Table:
    (found,) = [b.visible() for b in page.blocks if isinstance(b, Table) and b.title == title]
    return found


def facts(page: Page, title: str) -> dict[str, str]:
    (found,) = [b for b in page.blocks if isinstance(b, Facts) and b.title == title]
    return {f.label: f"{f.text} | {f.why}" for f in found.facts}


def chart(page: Page) -> Chart:
    (found,) = [b for b in page.blocks if isinstance(b, Chart)]
    return found


def column(found: Table, key: str) -> list[str]:
    place = [c.key for c in found.columns].index(key)
    return [row[place].text for row in found.rows]


def heads(found: Table) -> list[str]:
    return [c.head for c in found.columns]


def one_row(offer, hours=9.0, **more):
    return make_ranking((make_candidate(offer, hours, **more),))


# ---- figures ----


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (45, "45 s"),
        (59.6, "1 min"),
        (2100, "35 min"),
        (3599, "1 h"),
        (33_600, "9 h 20 min"),
        (367_200, "4 d 6 h"),
    ],
)
def test_a_duration_is_its_two_largest_units(seconds, words):
    assert figures.duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (0.0084, "0.00840"), (0.5, "0.50"), (9.4, "9.40"), (14.23, "14.2"), (132.4, "132"), (1132, "1,132")],
)
def test_a_figure_with_an_interval_shows_three_digits_and_cents_at_most(value, words):
    assert figures.number(value) == words


@pytest.mark.parametrize(
    ("usd", "words"), [(0.0084, "0.0084"), (0.5, "0.50"), (6.132, "6.13"), (1234.5, "1,234.50"), (0, "0.00")]
)
def test_money_shows_enough_digits_to_be_checked(usd, words):
    assert figures.amount(usd) == words


@pytest.mark.parametrize(
    ("p", "words"), [(0.0, "<1 %"), (0.004, "<1 %"), (0.41, "41 %"), (0.999, ">99 %"), (1.0, ">99 %")]
)
def test_a_probability_never_claims_to_be_sure(p, words):
    assert figures.chance(p) == words
    said = words.replace("<", "less than ").replace(">", "more than ")
    assert figures.chance_in_words(p) == said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("h100-sxm5-80gb", "H100 SXM5 80 GB"), ("rtx-3090-ti", "RTX 3090 Ti"), ("v100-sxm2-16gb", "V100 SXM2 16 GB"),
        ("tpu-v5e", "TPU v5e"), ("k80-half", "K80 half"), ("rtx-pro-6000-server", "RTX PRO 6000 Server"),
    ],
)  # fmt: skip
def test_an_accelerator_is_written_as_people_write_it(name, words):
    assert figures.device(name) == words


def test_an_offer_that_does_not_say_which_variant_names_them_all():
    offer = make_offer("a", "b", "a100-sxm4-40gb|a100-sxm4-80gb", 8, 10.0)
    assert figures.gpus(offer) == "8 × A100 SXM4 40 or 80 GB"


@given(st.floats(1e-6, 1e9), st.floats(0, 1), st.floats(1e-3, 1e6))
def test_rounding_keeps_the_order_of_an_interval(value, log_sd, scale):
    inside = Estimate(value=value, spread=(("x", log_sd),)).interval()
    shown, ends = figures.rounded(inside, scale)
    numbers = [float(text.replace(",", "")) for text in (shown, *ends)]
    assert numbers[0] == pytest.approx(value / scale, rel=0.05)
    if ends:
        assert numbers[1] <= numbers[0] <= numbers[2]


def test_a_bill_that_may_be_nothing_has_an_interval_from_zero():
    assert figures.rounded(Interval(value=1.0, low=0.0, high=2.0), 1.0) == ("1.00", ("0.00", "2.00"))


# ---- the ranking ----


def test_the_answer_comes_first_with_cost_time_date_and_its_chance(ranking):
    page = ranking_page(ranking, REQUEST)
    assert isinstance(page.blocks[0], Text)
    assert answers(page) == [
        "Cheapest: vast rtx-4090 host, 1 × RTX 4090, 3.23 USD (2.79 to 3.74) in 9 h 30 min, price of 2026-06-15. "
        "Of the offers ranked it is the cheapest with a probability of 87 %, at prices as old as stated; "
        "its own price is 168 days old.",
        "Fastest: coreweave 8x H100, 8 × H100 SXM5 80 GB, 16.0 USD (14.7 to 17.4) in 52 min, price of 2026-06-15.",
    ]


def test_a_limit_hides_neither_the_fastest_nor_the_frontier_nor_ones_own_machines(ranking):
    cut = replace(ranking, candidates=ranking.candidates[:2])
    page = ranking_page(cut, REQUEST)
    assert answers(page) == answers(ranking_page(ranking, REQUEST))
    assert column(table(page), "provider") == ["vast", "aws", "runpod", "coreweave", "own machine"]
    assert (
        "2 of 214 candidates shown, and 3 more: on the frontier, or owned; 1,655 offers were looked at."
        in table(page).notes
    )


def test_one_offer_that_is_both_says_so_once():
    page = ranking_page(one_row(make_offer("a", "b", "a10", 1, 0.5), on_frontier=True), REQUEST)
    assert answers(page)[1] == "It is also the fastest."


def test_without_a_known_cost_nothing_is_called_cheapest():
    page = ranking_page(one_row(make_offer("a", "b", "a10", 1, None)), REQUEST)
    assert answers(page) == ["Only offers without a cost of their own pass the filters: on-demand."]
    assert not [b for b in page.blocks if isinstance(b, Chart)]


def test_an_empty_ranking_still_says_what_was_left_out_and_what_would_admit_more(ranking):
    page = ranking_page(replace(ranking, candidates=(), frontier=(), own=()), REQUEST)
    assert not [b for b in page.blocks if isinstance(b, Table) and b.title == "Offers"]
    assert column(table(page, "Left out, and why"), "offers") == ["1,012", "317", "88", "24"]
    assert column(table(page, "The nearest changes that would admit more"), "change") == ["--max-age 400"]


def test_warnings_stand_between_the_answer_and_the_table(ranking):
    kinds = [type(b) for b in ranking_page(ranking, REQUEST).blocks]
    assert kinds[:6] == [Text, Text, Caution, Text, Chart, Table]


def test_every_column_of_figures_names_its_unit_or_each_cell_does(ranking):
    found = table(ranking_page(ranking, REQUEST))
    for place, head in enumerate(found.columns):
        if head.figures and not head.unit:
            assert {row[place].shown[-1] for row in found.rows} <= {"%", "–"}
    assert "Time, h" in heads(found)
    assert "Cost, USD" in heads(found)


def test_what_is_unknown_says_so_and_why(ranking):
    found = table(ranking_page(ranking, REQUEST))
    place = [c.key for c in found.columns].index("region")
    assert (found.rows[0][place].shown, found.rows[0][place].title) == ("unknown", "the source does not say")
    place = [c.key for c in found.columns].index("cost_usd")
    assert (found.rows[6][place].shown, found.rows[6][place].title) == ("–", "nobody sends a bill for one job")


def test_free_tiers_and_owned_examples_are_labelled(ranking):
    found = table(ranking_page(ranking, REQUEST))
    assert column(found, "market")[6:] == ["owned", "free tier"]
    place = [c.key for c in found.columns].index("provider")
    assert [row[place].note for row in found.rows[6:]] == ["example", "sessions of 12 h"]


def test_a_hint_on_the_cost_shows_the_bill_and_what_makes_it_uncertain(ranking):
    found = table(ranking_page(ranking, REQUEST))
    place = [c.key for c in found.columns].index("cost_usd")
    assert found.rows[0][place].title == "preparation 0.40 h, compute 9.10 h; 80 % factors: speed of rtx-4090 ×/÷ 1.16"


def test_an_exact_figure_says_so(ranking):
    found = table(ranking_page(ranking, REQUEST))
    place = [c.key for c in found.columns].index("cost_usd")
    assert (found.rows[5][place].text, found.rows[5][place].title[-5:]) == ("330", "exact")


def test_uc_066_a_marketplace_shows_lowest_median_and_highest_price_with_its_number_of_offers(ranking):
    found = table(ranking_page(ranking, REQUEST))
    place = [c.key for c in found.columns].index("price_usd_per_hour")
    assert found.rows[0][place].note == "4 offers at 0.29–0.41–1.10"
    assert column(found, "observed")[:2] == ["2026-06-15", "after 2026-06-15"]


def test_the_currency_asked_for_is_in_the_heads_and_its_rate_below(ranking):
    page = ranking_page(ranking, REQUEST, EURO)
    assert "Cost, EUR" in heads(table(page))
    assert column(table(page), "cost_usd")[0] == "2.78 (2.40–3.23)"
    assert "2.78 EUR (2.40 to 3.23)" in answers(page)[0]
    assert facts(page, "What this stands on")["Exchange rate"].startswith("1 EUR = 1.16 USD on 2026-08-14, ECB")
    assert chart(page).spec["encoding"]["x"]["title"] == "Cost, EUR"


def test_a_share_is_named_as_one_with_the_hours_that_it_assumes():
    offer = make_offer("own", "R750", "a10", 2, 0.61, market="owned", price_unit="month")
    mine = make_candidate(offer, 7.2, cost_usd=None, cost_share_usd=exact(3.2), on_frontier=True, p_cheapest=0.6)
    rented = make_candidate(make_offer("a", "b", "a10", 1, 0.75), 13.4, p_cheapest=0.4)
    answer = make_ranking((mine, rented), basis="share")
    page = ranking_page(answer, replace(REQUEST, hours_per_month=400.0))
    assert "3.20 USD as the share of 400 busy hours a month in 7 h 36 min" in answers(page)[0]
    assert column(table(page), "cost_share_usd") == ["3.20", "–"]
    assert len(chart(page).spec["data"]["values"]) == 2
    assert facts(page, "What this assumes")["Busy hours"].startswith("400 a month")


def test_several_workloads_share_one_table_with_their_accuracy():
    light = replace(JOB, name="painter-light", accuracy_fraction=0.812)
    offer = make_offer("a", "b", "a10", 1, 0.75)
    rows = (make_candidate(offer, 13.4, on_frontier=True), make_candidate(offer, 4.0, workload=light, on_frontier=True))
    page = ranking_page(make_ranking(rows, workloads=(JOB, light)), REQUEST)
    assert page.title == "Where should painter-heavy, painter-light run?"
    assert column(table(page), "workload") == ["painter-heavy", "painter-light"]
    assert column(table(page), "accuracy_fraction") == ["unknown", "81.2"]
    unmeasured = ranking_page(make_ranking(rows, workloads=(JOB, replace(light, accuracy_fraction=None))), REQUEST)
    assert "The accuracy of these jobs is unknown: nobody has measured it." in table(unmeasured).sentences()
    assert "Accuracy, %" not in heads(table(unmeasured))
    assert [text.split(".")[0] for text in answers(page)] == ["painter-heavy", "painter-light"]
    assert {p["workload"] for p in chart(page).spec["data"]["values"]} == {"painter-heavy", "painter-light"}


def test_the_assumptions_are_said_one_a_line(ranking):
    said = facts(ranking_page(ranking, replace(REQUEST, jobs=3)), "What this assumes")
    assert said["painter-heavy"].startswith(
        "Painter of a painting, ResNet-101: 79,433 samples (image of 224 px) × 30 epochs"
    )
    assert said["painter-heavy"].endswith("assumed: samples, epochs; the reasons: gpuwise describe painter-heavy")
    assert said["Preparation"] == "24 min a machine | assumed"
    assert said["Jobs"].startswith("3, one after another")
    assert said["Tax"].startswith("net")


def test_an_unknown_rule_is_shown_as_it_is_spelled():
    page = ranking_page(make_ranking((), counts={"moon_phase": 2}), REQUEST)
    assert column(table(page, "Left out, and why"), "rule") == ["moon phase"]


# ---- the chart ----


def test_both_axes_are_logarithmic_and_hold_every_interval(ranking):
    spec = chart(ranking_page(ranking, REQUEST)).spec
    for axis, field in (("x", "cost"), ("y", "time")):
        scale = spec["encoding"][axis]["scale"]
        assert scale["type"] == "log"
        for point in spec["data"]["values"]:
            assert scale["domain"][0] <= point[f"{field}_low"] <= point[f"{field}_high"] <= scale["domain"][1]


def test_the_chart_names_the_ends_of_the_frontier_and_nothing_off_it(ranking):
    points = chart(ranking_page(ranking, REQUEST)).spec["data"]["values"]
    named = [p for p in points if "label" in p]
    assert [p["label"].split("\n")[0] for p in named] == ["vast", "runpod", "coreweave"]
    assert all(p["frontier"] for p in named)


def test_a_bill_of_nothing_is_not_drawn_on_a_logarithmic_axis():
    covered = make_candidate(make_offer("a", "b", "a10", 1, 0.5), 9.0, cost_usd=exact(0.0), on_frontier=True)
    paid = make_candidate(make_offer("c", "d", "a10", 1, 0.5), 9.0)
    page = ranking_page(make_ranking((covered, paid)), REQUEST)
    assert [p["provider"] for p in chart(page).spec["data"]["values"]] == ["c"]
    assert chart(page).note.endswith("1 row has no cost of its own and is not drawn.")


def test_a_bill_that_may_be_nothing_is_drawn_without_a_lower_end():
    row = make_candidate(make_offer("a", "b", "a10", 1, 0.5), 9.0)
    maybe = replace(row, cost_usd=Estimate(value=2.0, spread=(("x", 0.1),), bounds=(0.0, 3.0)))
    (point,) = chart(ranking_page(make_ranking((maybe,)), REQUEST)).spec["data"]["values"]
    assert (point["cost_low"], point["cost"], point["cost_high"]) == (2.0, 2.0, 3.0)


@pytest.mark.parametrize(("hours", "unit"), [(0.5, "min"), (9.0, "h"), (400.0, "d")])
def test_the_unit_of_time_suits_the_rows(hours, unit):
    page = ranking_page(one_row(make_offer("a", "b", "a10", 1, 0.5), hours), REQUEST)
    assert f"Time, {unit}" in heads(table(page))
    assert chart(page).spec["encoding"]["y"]["title"] == f"Time, {unit}"


# ---- other pages ----


def test_an_explanation_shows_evidence_the_error_budget_and_a_bill_that_can_be_checked(ranking):
    row = ranking.candidates[0]
    page = explanation_page(JOB, [row.prediction], candidate=row)
    assert answers(page)[0].startswith(
        "1 × RTX 4090: 72.7 (62.4 to 84.8) samples a second, moved from measured rows; 9 h 6 min"
    )
    assert facts(page, "The evidence") == {"1": "3 measured rows of rtx-4090 | "}
    budget = table(page, "What makes it uncertain")
    assert [column(budget, key) for key in ("error", "log_sd", "variance_fraction")] == [
        ["speed of rtx-4090"], ["×/÷ 1.17"], ["100 %"],
    ]  # fmt: skip
    assert column(table(page, "The bill"), "amount_usd") == ["0.136", "3.09"]
    assert table(page, "The bill").notes == ("In all 3.23 USD, before credits.",)


def test_uc_085_the_bill_shows_enough_digits_that_quantity_times_price_can_be_checked():
    row = make_candidate(make_offer("a", "b", "a10", 1, 0.0084), 730.0)
    bill = table(explanation_page(JOB, [row.prediction], candidate=row), "The bill")
    assert column(bill, "unit_price_usd") == ["0.0084", "0.0084"]
    assert column(bill, "amount_usd") == ["0.00336", "6.13"]


def test_an_offer_that_was_left_out_is_explained_by_its_rule(ranking):
    left = Exclusion(offer_id="x", workload=None, rule="stale_price", reason=Message("{n} days old", n=900))
    page = explanation_page(JOB, [ranking.candidates[0].prediction], exclusions=[left])
    assert [b.text for b in page.blocks if isinstance(b, Caution)] == ["price too old (--max-age): 900 days old"]


def test_a_refusal_gives_its_reason_and_no_number(ranking):
    no = Refusal(
        workload="w", platform="tpu-v4", accelerators=4, rule="no_prediction", reason=Message("no row of a TPU")
    )
    assert answers(explanation_page(JOB, [no])) == ["4 × TPU v4: no prediction, no row of a TPU."]
    compared = table(explanation_page(JOB, [ranking.candidates[0].prediction, no]), "Platforms")
    assert column(compared, "throughput_per_s") == ["72.7 (62.4–84.8)", "unknown"]


def test_a_workload_page_marks_assumptions_and_what_is_not_known():
    page = workload_page(JOB)
    job = facts(page, "The job")
    assert (
        job["Samples in an epoch"]
        == "79,433 (image of 224 px) | assumed: size of a public painter-recognition competition"
    )
    assert job["Accuracy"] == "unknown | nobody has measured it"
    assert facts(page, "One sample")["Training state"].startswith("0.50 GiB")


def fleet():
    return [
        make_offer("aws", "p4d", "a100-sxm4-40gb", 8, 32.77),
        make_offer("lambda", "8x A100", "a100-sxm4-40gb", 8, 10.32),
        make_offer(
            "own machine", "DGX A100", "a100-sxm4-40gb", 8, 9.10, market="owned", price_unit="month", host="own"
        ),
        make_offer("hetzner", "GEX44", "rtx-4000-ada", 1, 0.30, market="dedicated", price_unit="month", term_h=730.0),
    ]


def test_uc_125_the_own_fleet_stays_in_its_group_and_prices_of_hours_and_months_stand_apart():
    found = table(pools_page(fleet(), ["gpu"]), "Offers by group")
    assert column(found, "gpu") == ["A100 SXM4 40 GB", "RTX 4000 Ada"]
    assert column(found, "offers") == ["3", "1"]
    assert column(found, "offers_fraction") == ["75 %", "25 %"]
    assert heads(found)[4:6] == ["By use, USD/h", "By month, USD/month"]
    assert column(found, "lowest_usd_per_hour") == ["10.32–32.77", "–"]
    assert column(found, "lowest_usd_per_month") == ["6,643.00", "219.00"]


def test_uc_125_every_row_names_the_unit_of_its_own_price():
    found = table(offers_page(fleet(), 4))
    assert column(found, "price_usd_per_hour") == ["32.77 /h", "10.32 /h", "6,643.00 /month", "219.00 /month"]


def test_uc_125_no_column_sums_prices_of_different_units():
    found = table(pools_page(fleet(), ["gpu"]), "Offers by group")
    total = {sum(o.price_usd_per_hour for o in fleet()), sum(o.price_usd_per_hour for o in fleet()[:3])}
    values = {cell.value for row in found.rows for cell in row if isinstance(cell.value, float)}
    assert not {v for v in values for t in total if math.isclose(v, t)}


def test_pools_are_counted_by_several_columns_and_date():
    offers = [*fleet(), replace(fleet()[0], observed=None)]
    found = table(pools_page(offers, ["provider", "date"], limit=2), "Offers by group")
    assert [row[0].shown for row in found.rows] == ["aws", "aws"]
    assert column(found, "date") == ["unknown", "2026-06-15"]
    assert found.notes == ("2 of 5 groups, 5 offers in all. Prices of hours and of months stand apart.",)


def test_a_name_is_decoded_with_what_is_known_of_its_gpu():
    card = Accelerator(
        id="a100-sxm4-40gb", name="A100 SXM4 40GB", vendor="NVIDIA", architecture="Ampere", form_factor="SXM4",
        memory_gib=40.0, fp16_tflops=312.0, aliases=("A100",),
    )  # fmt: skip
    page = name_page("p4d", fleet()[:1], [card])
    assert answers(page) == ["p4d of aws: 8 × A100 SXM4 40 GB, 16 vCPUs, 64 GiB of host memory; prices known: 1."]
    assert facts(page, "A100 SXM4 40GB")["Peak FP16"].startswith("312 TFLOPS, dense")
    assert facts(page, "A100 SXM4 40GB")["Peak FP8"] == "unknown | no source states it"


def test_the_check_names_each_row_that_was_left_out_and_why():
    left = [
        Finding(table="offers", row=f"x/{i}", rule="suspect", message=Message("0.01 USD for a B200")) for i in range(3)
    ]
    page = check_page([], left, {"offers": 1655, "accelerators": 101})
    assert answers(page) == ["The facts are sound. Objections: none; rows: 1,756; tables: 2."]
    assert column(table(page, "Left out"), "reason") == ["0.01 USD for a B200"]
    assert column(table(page, "Left out"), "rows") == ["3"]
    assert column(table(page, "Left out"), "example") == ["x/0"]


def test_objections_stand_first_each_with_its_row():
    odd = Finding(table="offers", row="x/y", rule="price_positive", message=Message("the price is 0"))
    page = check_page([odd], [], {"offers": 1})
    assert answers(page) == ["Objections: 1; rows: 1; tables: 1."]
    assert [cell.shown for cell in table(page, "Objections").rows[0]] == [
        "offers",
        "x/y",
        "price positive",
        "the price is 0",
    ]


def test_uc_067_an_offer_that_is_gone_is_said_to_be_no_longer_offered():
    gone, cheaper = make_offer("a", "X", "a10", 1, 2.10), make_offer("a", "Y", "a10", 1, 1.50)
    changes = [Change(before=gone, after=None), Change(before=cheaper, after=replace(cheaper, price_usd_per_hour=1.20))]
    page = changes_page("March", "April", changes)
    assert answers(page) == ["Changed prices: 1; new offers: 0; no longer offered: 1."]
    assert column(table(page, "Changes"), "after_usd_per_hour") == ["gone", "1.20 /h"]
    assert column(table(page, "Changes"), "change_fraction") == ["–", "-20.0 %"]


def test_a_comparison_names_the_gpus_and_says_what_its_limit_cut():
    changes = [Change(before=make_offer(f"p{i}", "X", "a10", 2, 2.10), after=None) for i in range(5)]
    found = table(changes_page("March", "April", changes, limit=2), "Changes")
    assert column(found, "accelerator") == ["2 × A10", "2 × A10"]
    assert found.notes == ("2 of 5 changes; all of them: --limit all",)
    assert table(changes_page("March", "April", changes), "Changes").notes == ()


def test_a_provider_is_shown_by_its_offers_and_not_by_the_first_of_their_gpus():
    page = name_page("AWS", [make_offer("aws", "p4d", "a100-sxm4-40gb", 8, 32.77)] * 2, [])
    assert page.title == "What does aws offer?"
    assert answers(page) == ["aws is a provider; of its offers the 2 seen last stand below."]
    assert len(table(page, "Offers of aws").rows) == 2


def test_reserved_offers_show_their_term_and_what_is_paid_at_once():
    offer = make_offer(
        "a", "b", "a10", 1, 1.80, market="reserved", price_unit="term", term_h=8760.0, upfront_usd=15_768.0
    )
    found = table(ranking_page(one_row(offer), REQUEST))
    (row,) = found.rows
    cells = dict(zip([c.key for c in found.columns], row, strict=True))
    assert (cells["market"].shown, cells["market"].value) == ("reserved, 12 mo", "reserved")
    assert (cells["price_usd_per_hour"].shown, cells["price_usd_per_hour"].note) == (
        "15,768.00 /12 mo",
        "15,768.00 at once",
    )


def test_a_price_published_in_another_currency_says_so():
    offer = make_offer("a", "b", "a10", 1, 1.0151, price_native=0.94, currency="EUR")
    found = table(offers_page([offer], 1))
    place = [c.key for c in found.columns].index("price_usd_per_hour")
    assert found.rows[0][place].title == "published as 0.94 EUR"


def test_sources_are_named_and_counted(ranking):
    mine = make_candidate(make_offer("me", "b", "a10", 1, 0.4, source=Source(kind="quoted", ref="mine.csv")), 9.0)
    both = replace(make_ranking((ranking.candidates[0], mine)), sources={"S06": "GPU prices, https://example.org"})
    said = facts(ranking_page(both, REQUEST), "What this stands on")
    assert said["Source S06"].startswith("GPU prices, https://example.org (1)")
    assert said["Source mine.csv"].startswith("mine.csv (1)")


def test_remarks_that_hold_for_most_rows_are_said_once_below_the_table():
    old = [Message("price {days} days old", days=n) for n in (190, 77, 100)]
    rows = [make_candidate(make_offer(f"p{i}", "x", "a10", 1, 0.5), 9.0, marks=(m,)) for i, m in enumerate(old)]
    rows.append(make_candidate(make_offer("q", "x", "a10", 1, 0.5), 9.0, marks=(Message("sold out"),)))
    found = table(ranking_page(make_ranking(tuple(rows)), REQUEST))
    place = [c.key for c in found.columns].index("provider")
    assert [row[place].note for row in found.rows] == ["", "", "", "sold out"]
    assert found.rows[0][place].title == "price 190 days old"
    assert "Holds for most of these 4 rows: price 77–190 days old (3)." in found.notes


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ("a10", "A10"),
        ("v100-pcie-16gb|v100-sxm2-16gb", "V100 PCIe or SXM2 16 GB"),
        ("rtx-pro-6000-server|rtx-pro-6000-ws", "RTX PRO 6000 Server or WS"),
        ("rtx-3090/rtx-3090-ti", "RTX 3090 or 3090 Ti"),
        ("rtx-3080-10gb|rtx-3080-ti", "RTX 3080 10 GB or 3080 Ti"),
        ("a10|l4", "A10 or L4"),
        ("k80|k80-half", "K80 or K80 half"),
        ("h200-nvl|h200-sxm", "H200 NVL or SXM"),
    ],
)
def test_variants_say_once_what_they_share(ids, words):
    assert figures.devices(ids) == words


def test_a_remark_that_another_cell_tells_is_not_repeated():
    offer = make_offer("vast", "x", "a100-pcie-40gb|a100-sxm4-40gb", 1, 0.5, market="community", host="peer")
    marks = (Message("GPU variant not stated"), Message("private host"), Message("sold out"))
    found = table(ranking_page(one_row(offer, marks=marks), REQUEST))
    place = [c.key for c in found.columns].index("provider")
    assert found.rows[0][place].note == "sold out"
    assert found.rows[0][place].title == "GPU variant not stated; private host; sold out"
    assert "community: on machines of private hosts." in found.sentences()


def test_a_hint_names_the_largest_errors_and_counts_the_others():
    spread = tuple(
        (name, sd) for name, sd in zip(("a", "b", "c", "d", "e", "preparation_s"), (1, 2, 3, 4, 5, 60), strict=True)
    )
    estimate = Estimate(value=1.0, spread=tuple((name, sd / 100) for name, sd in spread))
    said = "80 % factors: time to prepare ×/÷ 2.16, e ×/÷ 1.07, d ×/÷ 1.05, c ×/÷ 1.04, 2 smaller ones"
    assert figures.budget(estimate) == said
