"""Memory at another batch, from one batch that was seen, or more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.predict.memory_line import Fixed, line

ONE_GIB = Fixed(gib=1.0, sd_gib=0.5)
GIBS = st.floats(0.1, 200)


def test_two_batches_give_the_line_through_both() -> None:
    found = line([(8, 3.0), (16, 5.0)], ONE_GIB)
    assert found.fixed_gib == pytest.approx(1.0)
    assert found.per_sample_gib == pytest.approx(0.25)
    assert found.at(32).value == pytest.approx(9.0)


def test_one_batch_stands_on_what_is_thought_to_be_fixed() -> None:
    assert line([(8, 3.0)], ONE_GIB).at(16).value == pytest.approx(5.0)


def test_a_batch_that_was_seen_is_told_better_than_one_far_from_it() -> None:
    found = line([(8, 3.0), (16, 5.0)], ONE_GIB)
    assert found.at(16).log_sd < found.at(64).log_sd
    assert found.at(16).log_sd < 0.08


def test_equal_batches_of_several_machines_count_once() -> None:
    assert line([(8, 3.0), (8, 3.0), (8, 3.0), (16, 5.0)], ONE_GIB) == line([(8, 3.0), (16, 5.0)], ONE_GIB)


def test_a_line_needs_a_batch() -> None:
    with pytest.raises(ValueError, match="at least one batch"):
        line([], ONE_GIB)


@given(st.lists(st.tuples(st.integers(1, 512), GIBS), min_size=1, max_size=6), st.integers(1, 1000))
def test_neither_part_is_ever_below_nothing(seen: list[tuple[int, float]], batch: int) -> None:
    found = line(seen, ONE_GIB)
    assert found.fixed_gib >= 0
    assert found.per_sample_gib >= 0
    assert found.at(batch).value <= found.at(batch + 1).value
