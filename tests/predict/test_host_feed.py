"""What the host lets through: the ceiling itself, softly, with the errors of whichever part is the limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.scenes import JOB

from gpuwise.estimate import Estimate
from gpuwise.model import Assumption
from gpuwise.predict.feed import LOAD, SHARED_HOST, VCPU, WHICH_LIMITS, Feeds, joined, storage_per_s, under

RATES = st.floats(1.0, 1e5)
SDS = st.floats(0.0, 1.0)
ASSUMED = {
    "image_load_s": Assumption(name="image_load_s", value=0.003, low=0.0005, high=0.02, unit="s", source="test"),
    VCPU: Assumption(name=VCPU, value=1.0, low=0.65, high=1.5, unit="1", source="test"),
}


def gpu(rate: float, sd: float = 0.1) -> Estimate:
    return Estimate(value=rate, spread=(("speed", sd),))


def feeds(*vcpus: float, decode_s: float | None = 0.030, store: float | None = None, sample: str = "image") -> Feeds:
    job = replace(JOB, decode_s=decode_s, storage_per_s=store, sample=sample)
    return Feeds.of(job, np.array(vcpus, float), ASSUMED)


def test_uc_051_four_vcpus_at_30_ms_an_image_feed_133_a_second_of_the_900_a_gpu_takes() -> None:
    few = feeds(4)
    assert few.fed(0).value == pytest.approx(133.3, abs=0.1)  # type: ignore[union-attr]
    assert few.rate(0, gpu(900)).value == pytest.approx(133.3, rel=0.005)
    limit = few.limit(0, gpu(900))
    assert limit is not None
    assert (limit.part, limit.sure) == ("CPU", True)
    assert limit.used_fraction == pytest.approx(0.148, abs=0.001)


def test_a_host_with_cpus_in_plenty_leaves_the_devices_rate_and_its_errors() -> None:
    many = feeds(4000).rate(0, gpu(900))
    assert many.value == pytest.approx(900)
    assert dict(many.spread)["speed"] == pytest.approx(0.1, rel=0.01)


def test_the_error_of_a_capped_rate_is_that_of_the_cap() -> None:
    spread = dict(feeds(4).rate(0, gpu(900)).spread)
    assert spread[LOAD] < 0, "a longer loading time is a lower rate"
    assert spread.get("speed", 0.0) < 0.01
    assert spread[VCPU] > 0.2


def test_uc_016_a_network_store_caps_every_host_alike() -> None:
    store = storage_per_s(95, 110e3)
    assert store == pytest.approx(864, abs=1)
    limit = feeds(64, decode_s=None, store=store).limit(0, gpu(3600))
    assert limit is not None
    assert limit.part == "storage"
    assert limit.used_fraction == pytest.approx(864 / 3600, rel=0.01)


def test_unknown_vcpus_cap_nothing() -> None:
    unknown = feeds(np.nan)
    assert unknown.rate(0, gpu(900)) == gpu(900)
    assert unknown.limit(0, gpu(900)) is None


def test_a_loading_time_that_nobody_measured_caps_only_what_no_loader_can_feed() -> None:
    few = feeds(2, decode_s=None)
    assert few.rate(0, gpu(2000)).value == pytest.approx(2000, rel=0.01), "0.5 ms an image feed 4,000/s"
    limit = few.limit(0, gpu(2000))
    assert limit is not None
    assert not limit.sure, "at the usual 3 ms they feed 667/s: said, not counted"
    assert few.rate(0, gpu(9000)).value == pytest.approx(4000, rel=0.01)


def test_texts_have_nothing_to_load_that_is_known() -> None:
    assert feeds(1, decode_s=None, sample="sequence").rate(0, gpu(1e6)) == gpu(1e6)


def test_others_on_a_shared_host_take_their_part() -> None:
    job = replace(JOB, decode_s=0.030)
    less = Assumption(name=SHARED_HOST, value=0.5, low=0.4, high=0.625, unit="1", source="test")
    fed = Feeds.of(job, np.array([8.0, 8.0]), ASSUMED | {SHARED_HOST: less}, np.array([True, False]))
    assert fed.fed(0).value == pytest.approx(133.3, abs=0.1)  # type: ignore[union-attr]
    assert fed.fed(1).value == pytest.approx(266.7, abs=0.1)  # type: ignore[union-attr]
    assert fed.fed(0).log_sd > fed.fed(1).log_sd  # type: ignore[union-attr]
    rates, sds = fed.rates(np.array([900.0, 900.0]), np.array([0.1, 0.1]))
    assert rates[0] == pytest.approx(fed.rate(0, gpu(900)).value)
    assert sds[0] > sds[1]


def test_two_equal_parts_lose_a_little() -> None:
    assert under(gpu(100), gpu(100)).value == pytest.approx(91.7, abs=0.1)


def test_where_either_may_be_the_limit_that_is_an_error_of_its_own() -> None:
    both = under(gpu(100, 0.3), Estimate(value=100, spread=(("feed", 0.3),)))
    parts = dict(both.spread)
    assert parts["speed"] == pytest.approx(parts["feed"]) == pytest.approx(0.15)
    assert both.log_sd**2 == pytest.approx(0.341 * 2 * 0.3**2, rel=0.02), "Var(min) of two equal normals"
    assert WHICH_LIMITS in parts


@given(RATES, RATES, SDS, SDS)
def test_the_rate_is_under_both_parts_and_not_far(rate: float, cap: float, sd: float, cap_sd: float) -> None:
    left = under(gpu(rate, sd), Estimate(value=cap, spread=(("feed", cap_sd),) if cap_sd else ())).value
    assert 0.917 * min(rate, cap) <= left <= min(rate, cap) * (1 + 1e-12)


@given(RATES, st.floats(1, 256), st.floats(0, 256), st.floats(1e-4, 0.1))
def test_more_vcpus_never_make_it_slower(rate: float, vcpus: float, more: float, decode_s: float) -> None:
    both = feeds(vcpus, vcpus + more, decode_s=decode_s)
    assert both.rate(1, gpu(rate)).value >= both.rate(0, gpu(rate)).value * (1 - 1e-12)


@given(st.lists(st.tuples(RATES, SDS, st.one_of(st.just(float("nan")), st.floats(1, 256))), min_size=1, max_size=6),
       st.floats(1e-4, 0.1), st.one_of(st.none(), RATES))  # fmt: skip
def test_columns_and_single_offers_say_the_same(
    offers: list[tuple[float, float, float]], decode_s: float, store: float | None
) -> None:
    rate, sd, vcpus = (np.array(column) for column in zip(*offers, strict=True))
    host = feeds(*vcpus, decode_s=decode_s, store=store)
    values, sds = host.rates(rate, sd)
    for row in range(len(offers)):
        one = host.rate(row, gpu(float(rate[row]), float(sd[row])) if sd[row] else Estimate(value=float(rate[row])))
        assert values[row] == pytest.approx(one.value, rel=1e-9)
        assert sds[row] == pytest.approx(one.log_sd, rel=0.02, abs=0.01)


def test_a_cap_that_is_not_known_is_none() -> None:
    mixed = joined(np.array([5.0]), np.array([0.1]), np.array([np.nan]), np.array([0.2]))
    assert (mixed.rate[0], mixed.second[0], mixed.which_sd[0]) == (5.0, 0.0, 0.0)
