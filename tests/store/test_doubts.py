"""A person's own list is read with care: what stands twice and what is far too dear is said, with its lines."""

from __future__ import annotations

import pytest

from gpuwise.store.cache import Loaded
from gpuwise.store.facts import Facts
from gpuwise.store.tables import parse_offers

HEADER = "provider,instance,gpu,gpus,price,currency,observed,note\n"


def own(rows: str, facts: Facts, header: str = HEADER) -> Loaded:
    return parse_offers((header + rows).encode(), "mine.csv", facts, own=True)


def remarks(loaded: Loaded) -> list[str]:
    return [str(note).removeprefix("mine.csv: ") for note in loaded.notes if "line" in str(note)]


def test_rows_that_say_the_same_are_one_offer_and_the_lines_are_named(facts: Facts) -> None:
    row = "here,big,T4,1,0.50,USD,2026-11-01,\n"
    loaded = own(f"{row}here,small,T4,1,0.40,USD,2026-11-01,\n{row}{row}", facts)
    assert [loaded.catalogue.instance[i] for i in range(len(loaded.catalogue))] == ["big", "small"]
    assert remarks(loaded) == ["left out, since they repeat an earlier line: line 4, 5"]
    assert loaded.lines is not None
    assert loaded.lines.tolist() == [2, 3]


def test_several_prices_of_one_offer_on_one_day_all_stand_and_are_named(facts: Facts) -> None:
    rows = "".join(f"here,big,T4,1,{price},USD,{day},\n" for price, day in (
        ("0.50", "2026-11-01"), ("0.60", "2026-11-01"), ("0.50", "2026-11-02"), ("0.60", "2026-11-01")))  # fmt: skip
    loaded = own(rows, facts)
    assert loaded.catalogue.price_usd_per_hour.tolist() == [0.5, 0.6, 0.5]
    assert remarks(loaded) == [
        "left out, since they repeat an earlier line: line 5",
        "one offer on one day at several prices, which all stand: line 2, 3",
    ]


def test_rows_of_one_price_that_differ_otherwise_stand_without_a_word(facts: Facts) -> None:
    loaded = own("here,big,T4,1,0.5,USD,2026-11-01,left\nhere,big,T4,1,0.5,USD,2026-11-01,right\n", facts)
    assert (len(loaded.catalogue), remarks(loaded)) == (2, [])


def test_the_bundled_list_is_not_questioned(facts: Facts) -> None:
    row = "here,big,T4,1,500,USD,2026-11-01,\n"
    loaded = parse_offers((HEADER + row + row).encode(), "mine.csv", facts)
    assert (len(loaded.catalogue), remarks(loaded)) == (2, [])


def test_a_price_far_above_the_usual_one_is_questioned_and_stays(facts: Facts) -> None:
    loaded = own('here,a,L4,1,"$1,234.50",USD,2026-11-01,\nhere,b,L4,1,"$0.80",USD,2026-11-01,\n', facts)
    assert loaded.catalogue.price_usd_per_hour.tolist() == [1234.5, 0.8]
    (remark,) = remarks(loaded)
    assert remark.startswith("line 2: 1234.50 USD an hour for one l4, usual are 0.")
    assert "price_state = confirmed" in remark


@pytest.mark.parametrize("state", ["confirmed", "free", "suspect"])
def test_a_price_that_is_vouched_for_or_used_by_nobody_is_not_questioned(state: str, facts: Facts) -> None:
    loaded = own(f"L4,1234.50,USD,{state}\n", facts, "gpu,price,currency,price_state\n")
    assert (len(loaded.catalogue), remarks(loaded)) == (1, [])


def test_a_card_of_many_variants_or_without_a_usual_price_is_judged_by_what_is_known(facts: Facts) -> None:
    rows = "here,a,A100,8,9000,USD,2026-11-01,\nhere,b,H101,1,9000,USD,2026-11-01,\nhere,c,T4,,9,USD,2026-11-01,\n"
    assert [remark[:7] for remark in remarks(own(rows, facts))] == ["line 2:"]


def test_long_lists_of_remarks_are_cut_and_the_rest_is_counted(facts: Facts) -> None:
    rows = "".join(f"here,{i},L4,1,999,USD,2026-11-01,\n" for i in range(13))
    loaded = own(rows, facts)
    assert len(remarks(loaded)) == 10
    assert "mine.csv: 3 more such remarks" in map(str, loaded.notes)
