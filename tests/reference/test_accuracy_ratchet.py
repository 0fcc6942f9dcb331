"""The accuracy that was reached is kept: `python -m benchmarks.accuracy --ratchet` writes what it is now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.reference.ratchet import Ratchet, drawn, worse
from tests.scoring import TABLES, shifted, splits

from gpuwise.api.trust import bundled
from gpuwise.predict.accuracy import SPLITS

KEPT = Ratchet(**json.loads(Path(__file__).with_name("accuracy_ratchet.json").read_text("utf-8")))
HELD = Ratchet(mape_percent={"A": 10.0, "C": 20.0}, margin_percent=1.0, most=30, seed=1)


def test_no_split_predicts_worse_than_it_once_did() -> None:
    assert worse(drawn(SPLITS, bundled(), KEPT), KEPT) == []


def test_every_split_is_held() -> None:
    assert KEPT.mape_percent.keys() == SPLITS.keys()


def test_an_error_within_the_margin_passes_and_a_larger_one_does_not() -> None:
    there = drawn(splits(A=shifted(0.105, sd=0.0), C=shifted(0.215, sd=0.0)), TABLES, HELD)
    assert [line.partition(":")[0] for line in worse(there, HELD)] == ["C"]
    assert worse(there, replace(HELD, margin_percent=2.0)) == []


def test_a_split_that_is_no_longer_scored_does_not_pass() -> None:
    there = drawn(splits(A=shifted(0.1, sd=0.0)), TABLES, HELD)
    assert [line.partition(":")[0] for line in worse(there, HELD)] == ["C"]
    none = drawn(splits(A=shifted(0.1, n=0), C=shifted(0.2)), TABLES, HELD)
    assert "A: 10.00 % was reached, and now it is None" in worse(none, HELD)


def test_the_subset_is_as_large_as_it_says() -> None:
    found = drawn(splits(A=shifted(0.1, n=500), C=shifted(0.2, n=500)), TABLES, HELD)
    assert {name: errors.n for name, errors in found.items()} == {"A": 30, "C": 30}
