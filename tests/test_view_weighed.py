"""What decides an answer about owning, in words: one of a thing, none of it, and nothing below 0."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from gpuwise.asset import LeadTime
from gpuwise.own.sensitivity import Weight, Weights
from gpuwise.store import package
from gpuwise.view.weighed import lead_facts, thousands, tornado, weights_table

LIFE = Weight(name="life_years", total_fraction=0.9, low_usd=-2e6, high_usd=1e6, worth_usd=0.0)
SPARES = replace(LIFE, name="spares_fraction", total_fraction=0.001)


@pytest.mark.parametrize(
    ("light", "said"),
    [
        ((), []),
        ((SPARES,), ["1 more figure with a range decides less than 1 %."]),
        ((SPARES, SPARES), ["2 more figures with a range decide less than 1 % each."]),
    ],
)
def test_figures_that_decide_nothing_are_counted_where_there_are_any(light, said):
    notes = weights_table(Weights(saving_usd=0.0, figures=(LIFE, *light)), package.assumptions(), None, "Saved").notes
    assert [note for note in notes if "more figure" in note] == said


def test_money_that_rounds_to_nothing_has_no_sign():
    assert [thousands(usd, None).shown for usd in (-300.0, 0.0, -1_500_000.0)] == ["0", "0", "-1,500"]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0, 1, "at once, up to 1 week"), (0, 2, "at once, up to 2 weeks"),
     (0.5, 1, "0.5 to 1 week"), (1, 2, "1 to 2 weeks")],
)  # fmt: skip
def test_a_lead_time_of_one_week_is_said_so(low, high, said):
    row = LeadTime(kind="cloud", low_weeks=low, high_weeks=high, observed=date(2026, 11, 30), source="x")
    assert [fact.text for fact in lead_facts([row])] == [said]


def test_the_words_for_a_chart_of_one_figure_are_of_one():
    chart = tornado(Weights(saving_usd=5e5, figures=(LIFE,)), None, "Saved", "")
    assert chart.alt == "Bar of the saving over the range of 1 figure, around 500."
