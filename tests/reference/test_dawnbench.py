"""DAWNBench (Stanford, 2017 to 2020): the cost of every training entry that states a rate follows from its hours."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from gpuwise.catalogue import from_rows
from gpuwise.cost.billing import Use, bill_usd, terms

TABLE = Path(__file__).with_name("dawnbench.csv").read_text(encoding="utf-8")
ENTRIES = list(csv.DictReader(TABLE.splitlines()))


def test_41_entries_state_a_rate():
    assert len(ENTRIES) == 41


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["entry"])
def test_hours_and_rate_give_the_published_cost(entry):
    offers = from_rows("dawnbench", "2020", [{"market": "on-demand", "billing_step_s": 1e-3}])
    conditions = terms(
        offers,
        price_usd_per_hour=np.array([float(entry["cost_per_hour_usd"])]),
        prepaid_h=np.zeros(1),
        step_unknown_s=3600.0,
        hours_per_month=None,
    )
    bill = bill_usd(conditions, Use(used_s=np.array([float(entry["hours_to_target"]) * 3600])))[0]
    assert bill == pytest.approx(float(entry["cost_to_target_usd"]), rel=1e-3)
