"""One machine's price among those who use it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.cost.sharing import Node, Pod, split
from gpuwise.errors import InvalidInput

NODE = Node(name="node", price_per_hour=4.00, vcpus=32, memory_gib=128, accelerators=4)
A, B = Pod(name="A", accelerators=1, vcpus=8), Pod(name="B", vcpus=16)
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def node(**changed: object) -> Node:
    values = {"name": "node", "price_per_hour": 4.0, "vcpus": 32, "memory_gib": 128, "accelerators": 4}
    return Node(**{**values, **changed})  # type: ignore[arg-type]


def test_uc_097_parts_sum_to_the_price_and_a_pod_without_gpu_pays_none():
    made = split(NODE, [A, B])
    a, b, idle = made.parts
    assert fsum(part.total for part in made.parts) == pytest.approx(4.00, abs=1e-12)
    assert b.gpu == 0
    assert (a.total, b.total, idle.total) == pytest.approx((1.000, 0.580, 2.420), abs=5e-4)
    assert min(value for part in made.parts for value in (part.gpu, part.cpu, part.memory)) >= 0


def test_uc_097_the_rule_is_said():
    assert "71.0 % of the price" in str(split(NODE, [A, B]).rule)


def test_uc_097_parts_sum_to_the_price_in_each_hour():
    """A is there for one hour, B for three of which the last is its own: 4 USD each hour."""
    first = Pod(name="A", accelerators=1, vcpus=8, start=NOON, end=NOON + timedelta(hours=1))
    second = Pod(name="B", vcpus=16, start=NOON, end=NOON + timedelta(hours=3))
    made = split(NODE, [first, second])
    assert made.hours == 3
    assert fsum(part.total for part in made.parts) == pytest.approx(12.00)
    one = {part.pod: part.total for part in split(NODE, [A, B]).parts}
    assert {part.pod: part.total for part in made.parts if part.pod} == pytest.approx(
        {"A": one["A"], "B": 3 * one["B"]}
    )


def test_a_gpu_more_never_makes_the_rest_sum_to_less():
    for gpus in range(9):
        parts = split(node(accelerators=gpus), [B]).parts
        assert fsum(part.total for part in parts) == pytest.approx(4.0)


def test_a_machine_without_gpus_is_all_host():
    made = split(node(accelerators=0), [B])
    assert made.fractions[0] == 0
    assert fsum(made.fractions) == pytest.approx(1)


def test_the_persons_own_fraction_is_taken():
    assert split(node(gpu_fraction=0.8), []).fractions[0] == 0.8


def test_gpus_are_what_the_machine_costs_above_the_one_without_them():
    assert split(node(host_price_per_hour=1.0), []).fractions[0] == pytest.approx(0.75)


def test_memory_that_is_not_told_apart_follows_the_vcpus():
    made = split(node(memory_gib=None), [B])
    assert made.parts[0].memory == 0
    assert made.parts[0].cpu / (made.parts[0].cpu + made.parts[1].cpu) == pytest.approx(0.5)


def test_a_pod_that_states_its_memory_pays_for_that():
    half = split(NODE, [Pod(name="B", vcpus=16, memory_gib=32)]).parts[0]
    assert half.memory == pytest.approx(4.0 * split(NODE, []).fractions[2] / 4)


@pytest.mark.parametrize(
    ("given", "pods", "says"),
    [
        (node(), [Pod(name="x", accelerators=3), Pod(name="y", accelerators=2)], "125 % of the GPUs"),
        (node(), [Pod(name="x", vcpus=40)], "125 % of the vCPUs"),
        (node(accelerators=0), [A], "has none"),
        (node(accelerators=0, overcommitted=True), [A], "has none"),
        (node(vcpus=0), [], "no vCPUs"),
        (node(accelerators=0, gpu_fraction=0.5), [], "no GPUs"),
        (node(host_price_per_hour=5.0), [], "free, or less"),
        (node(host_price_per_hour=1.0, gpu_fraction=0.5), [], "exclude each other"),
    ],
)
def test_what_cannot_be_shared_is_refused(given, pods, says):
    with pytest.raises(InvalidInput, match=says):
        split(given, pods)


def test_overcommitted_requests_are_scaled_where_that_is_said():
    made = split(node(overcommitted=True), [Pod(name="x", vcpus=48), Pod(name="y", vcpus=16)])
    x, y, idle = made.parts
    assert made.scaled == ("vCPUs", "memory")
    assert (x.cpu / y.cpu, idle.cpu) == (pytest.approx(3), pytest.approx(0, abs=1e-12))
    assert fsum(part.total for part in made.parts) == pytest.approx(4.0)


PODS = st.lists(
    st.builds(
        Pod,
        name=st.sampled_from("abcd"),
        accelerators=st.floats(0, 8),
        vcpus=st.floats(0, 64),
        memory_gib=st.none() | st.floats(0, 256),
        start=st.none() | st.integers(0, 5).map(lambda h: NOON + timedelta(hours=h)),
        end=st.none() | st.integers(6, 9).map(lambda h: NOON + timedelta(hours=h)),
    ),
    max_size=5,
)
NODES = st.builds(
    node,
    price_per_hour=st.floats(0.01, 500),
    vcpus=st.integers(1, 256),
    memory_gib=st.none() | st.floats(0.5, 2048),
    accelerators=st.integers(1, 16),
    gpu_fraction=st.none() | st.floats(0, 1),
    overcommitted=st.just(True),
)


@given(NODES, PODS)
def test_whatever_is_requested_parts_sum_to_the_price_and_none_is_negative(given, pods):
    made = split(given, pods)
    assert fsum(part.total for part in made.parts) == pytest.approx(given.price_per_hour * made.hours, rel=1e-9)
    assert all(min(part.gpu, part.cpu, part.memory) >= 0 for part in made.parts)
    assert all(part.gpu == 0 for part in made.parts[:-1] if not any(p.accelerators for p in pods if p.name == part.pod))
