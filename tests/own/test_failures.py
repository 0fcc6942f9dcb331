"""Interruptions of clusters, availability and checkpoints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.errors import UnknownName
from gpuwise.own.failures import Interruptions, availability_fraction, checkpoint_every_s, mean_h_between

LLAMA3 = Interruptions(
    days=54, accelerators=16_384, per_node=8, count=419, by_cause={"gpu": 148, "memory": 72, "software": 54}
)


def test_the_rate_of_a_gpu_gives_back_the_clusters_mean_time():
    every = Interruptions(days=54, accelerators=16_384, per_node=8, count=419, by_cause={"any": 419})
    assert mean_h_between(16_384, every.per_gpu_year("any")) == pytest.approx(every.mean_h)


def test_shares_of_causes_add_up():
    assert LLAMA3.share("gpu", "memory") == pytest.approx(LLAMA3.share("gpu") + LLAMA3.share("memory"))


def test_a_cause_that_the_record_does_not_name_is_refused_with_those_that_it_does():
    with pytest.raises(UnknownName, match="gpu, memory, software"):
        LLAMA3.share("fan")


def test_a_cluster_that_never_fails_has_no_mean_time():
    assert mean_h_between(8, 0.0) is None


@given(st.floats(1, 1e5), st.floats(0.01, 1e4))
def test_availability_is_the_part_of_a_cycle_that_works(mean, repair):
    assert availability_fraction(mean, repair) * (mean + repair) == pytest.approx(mean)
    assert availability_fraction(mean, repair / 2) > availability_fraction(mean, repair)


def test_a_checkpoint_of_a_minute_is_worth_writing_every_19_minutes_at_3_hours_between_failures():
    assert checkpoint_every_s(60, 3) == pytest.approx(1_138.42, abs=0.005)
