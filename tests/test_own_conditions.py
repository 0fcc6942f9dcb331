"""What conditions do to the answer of `own`: where data may be, by when, at which price, and in which words."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from gpuwise import faces
from gpuwise.api.wanted import IDLE_WEEKS
from gpuwise.errors import InvalidInput
from gpuwise.own.case import world
from gpuwise.own.record import fit, going_on
from gpuwise.view.page import Facts
from tests.test_own import AWS, DAY, answer, asked, run

SITES = ("office", "colocation")


def in_short(**said):
    return faces.own(asked(**said), today=DAY).page().blocks[0].text


def notes(found):
    return " ".join(map(str, found.assembled.notes))


# ---- where ----


@pytest.mark.parametrize(
    ("place", "country", "open_"),
    [("EU", "US", False), ("EU", "DE", True), ("EU", None, True), ("DE", "FR", False), ("DE", "DE", True),
     ("DE", "EU", False)],
)  # fmt: skip
def test_own_servers_stand_where_the_data_must_stay_or_nowhere(place, country, open_):
    said = {"demand": "40 GPUs", "gpu": "H100-SXM", "data_must_stay": place, "cloud_price": "4 USD"}
    said |= {"country": country} if country else {}
    found = answer(**said)
    refused = found.assembled.case.refused
    assert all((site not in refused) == open_ for site in SITES)
    if not open_:
        assert f"the data must stay in {place}" in str(refused["office"])
        assert "Owning was not weighed" in in_short(**said)


def test_where_data_must_stay_is_where_electricity_is_paid():
    said = {"demand": "40 GPUs", "gpu": "H100-SXM", "cloud_price": "4 USD"}
    stays, named = answer(**said, data_must_stay="DE"), answer(**said, country="DE", data_must_stay="DE")
    one, other = (found.assembled.case.figures["electricity_usd_per_kwh"] for found in (stays, named))
    assert one.value == other.value
    assert one.note == "business, Europe"


def test_where_no_cloud_is_known_owning_is_answered_all_the_same():
    found = answer(demand="40 GPUs", gpu="H100-SXM", data_must_stay="IS", provider="lambda")
    assert found.decision.rented is None
    assert found.advice == "own"
    assert all(row.servers > 0 for row in found.years)
    assert "no cloud is known in IS" in notes(found)
    assert "IS, where the data must stay" in str(found.assembled.case.refused["on-demand"])
    assert not found.break_evens or all(row.offer for row in found.break_evens), "no price of 0 USD is stated"


def test_data_that_stays_at_home_goes_to_no_cloud_even_at_a_stated_price():
    found = answer(demand="40 GPUs", gpu="H100-SXM", data_must_stay="on-premises", cloud_price="4 USD")
    assert found.assembled.case.open == {"office"}
    assert found.assembled.case.at_home


# ---- when ----


def test_what_comes_too_late_is_left_out_by_its_own_lead_time():
    found = answer(demand="40 GPUs", gpu="H100-SXM", by=(DAY + timedelta(weeks=3)).isoformat())
    assert all("weeks from order" in str(found.assembled.case.refused[site]) for site in SITES)
    assert "dedicated" not in found.assembled.case.refused or "weeks" not in str(
        found.assembled.case.refused["dedicated"]
    )
    soon = answer(demand="40 GPUs", gpu="H100-SXM", by=(DAY + timedelta(days=2)).isoformat())
    assert "quota and stock in a cloud" in notes(soon)


def test_a_day_that_has_passed_is_refused():
    with pytest.raises(InvalidInput, match="has passed"):
        answer(**AWS, by=date(2026, 11, 1).isoformat())


# ---- the price of the cloud ----


def test_a_stated_price_leaves_listed_terms_where_they_are_and_says_so():
    low, high = (answer(demand="40 GPUs", gpu="H100-SXM", cloud_price=f"{usd} USD") for usd in (3, 6))
    for way in ("committed_3y", "spot"):
        name = f"{way}_usd_per_gpu_hour"
        assert low.assembled.case.figures[name].value == high.assembled.case.figures[name].value
        assert f"--set {way}_discount_fraction=" in notes(low)
    said = answer(demand="40 GPUs", gpu="H100-SXM", cloud_price="6 USD", set=["committed_3y_discount_fraction=0.5"])
    assert "committed_3y_usd_per_gpu_hour" not in said.assembled.case.figures
    assert said.assembled.case.figures["committed_3y_discount_fraction"].value == 0.5
    row = next(row for row in low.break_evens if row.offer is None)
    assert (row.way, row.usd_per_gpu_hour) == ("on-demand", 3.0), "the own price has its break-even"


def test_no_discount_is_told_between_two_providers():
    figures = answer(demand="40 GPUs", gpu="H100-SXM").assembled.case.figures
    for name, one in figures.by_name.items():
        if name.endswith("discount_fraction") and name != "discount_fraction":
            assert one.value > 0, name


# ---- the demand ----


def test_nobody_knows_how_a_stated_demand_wanders_unless_it_is_said():
    still = answer(**AWS)
    moved = answer(**AWS, set=["demand_wander_log_sd_per_root_year=0.4"])
    assert any("wanders" in str(each) for each in still.assembled.missing)
    assert not any("wanders" in str(each) for each in moved.assembled.missing)
    wide, narrow = (found.decision.outcomes["on-demand"].present_usd for found in (moved, still))
    assert wide.p90 / wide.p10 > 1.2 * narrow.p90 / narrow.p10


def weekly(*gpus, weeks):
    return np.repeat(np.resize(np.array(gpus, float), weeks), 168)


def test_the_level_of_a_record_is_its_mean_and_not_its_middle_week():
    found = fit(weekly(1, 9, weeks=40))
    assert found.gpu_h_per_month == pytest.approx(5 * 730, rel=0.1)
    assert np.mean(found.weeks) == pytest.approx(1.0)


def test_an_idle_end_counts_as_a_pause_and_is_asked_about(tmp_path):
    busy = weekly(4, weeks=20)
    found = fit(np.concatenate((busy, np.zeros(20 * 168))))
    assert found.gpu_h_per_month == pytest.approx(2 * 730, rel=0.02)
    assert found.idle_weeks == 20 > IDLE_WEEKS
    assert min(found.weeks) == 0
    path = tmp_path / "gpus.csv"
    start = date(2026, 1, 1)
    rows = [
        f"{start + timedelta(days=day)}T{hour:02d}:00,{4 if day < 70 else 0}"
        for day in range(98)
        for hour in range(24)
    ]  # fmt: skip
    path.write_text("time,gpus\n" + "\n".join(rows), "utf-8")
    assert "the last 4 weeks are without any use" in notes(answer(record=str(path), gpu="H100-SXM"))


def test_a_trend_goes_on_for_as_long_again_as_it_was_seen():
    found = fit(np.concatenate([weekly(10 * 2 ** (week / 52.18), weeks=1) for week in range(53)]))
    assert found.growth_fraction_per_year == pytest.approx(1.0, rel=0.01)
    assert going_on(found, 48)[1] == pytest.approx(2**0.25 - 1, rel=0.03)
    assert going_on(found, 12)[1] == pytest.approx(1.0, rel=0.01)


def test_own_and_exit_tell_the_growth_of_a_record_by_one_rule(tmp_path):
    start, rows = date(2026, 1, 1), []
    for day in range(84):
        rows += [f"{start + timedelta(days=day)}T{hour:02d}:00,{4 * 2 ** (day / 42):.3f}" for hour in range(24)]
    path = tmp_path / "gpus.csv"
    path.write_text("time,gpus\n" + "\n".join(rows), "utf-8")
    found = answer(record=str(path), gpu="H100-SXM")
    growth = found.assembled.case.figures["demand_growth_per_year"].value
    assert growth < 0.5, "a doubling every six weeks does not go on for five years"
    assert "for as long again" in notes(found)
    assert answer(record=str(path), gpu="H100-SXM", growth="10%/y").assembled.wanted.growth.value == pytest.approx(0.1)


# ---- energy ----


def test_energy_of_both_sides_is_of_the_same_work():
    found = answer(**AWS, growth="50%/y", stage="steady")
    rented, own, rest = found.energy
    assert (rented.option, own.option, rest.rest) == ("on-demand", found.decision.owned, True)
    case, middle = found.assembled.case, found.assembled.case.figures.middle()
    hours = world(case, middle).demand_gpu_h.sum()
    per_hour = rented.kwh / hours
    assert per_hour == pytest.approx(middle["busy_kw"][0, 0] / 8 * 1.135, rel=1e-6)
    served = 1 - rest.kwh / per_hour / hours
    assert 0 < served < 1
    assert own.kwh > served * hours * middle["busy_kw"][0, 0] / 8, "cooling, and hours without work"


# ---- words ----


def test_an_investment_says_what_it_is_compared_with_and_no_rate_below_zero():
    page = faces.own(asked(**AWS, set=["server_usd=400000"]), today=DAY).page()
    facts = {fact.label: fact.text for block in page.blocks if isinstance(block, Facts) for fact in block.facts}
    assert " in the place of " in facts["Compared"]
    assert "-" not in facts["It turns at"]


def test_without_money_for_servers_owning_was_not_weighed():
    text = in_short(**AWS, no_capex=True)
    assert "Owning was not weighed: there is no money for purchases" in text
    assert "to own nothing costs least" not in text


def test_help_and_answer_speak_of_the_same_options():
    shown = run("own", "--help").output
    for name in ("--cloud-price", "--data-must-stay", "--by", "--country"):
        assert name in shown
