"""A job on machines that are lost: published formulas, a simulation, and what must hold for any job and pool."""

from __future__ import annotations

from math import exp, expm1, inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.cost.spot import Held, Pool, held, young_interval_s

HOUR = 3600.0
MEANS = ("busy_s", "checkpoints_s", "lost_s", "restart_s", "losses", "wait_s", "finish_s")
SPREADS = ("busy_sd_s", "finish_sd_s")


def job(work_s=48 * HOUR, *, every_s=inf, write_s=0.0, restart_s=0.0, **pool) -> Held:
    return held(work_s, Pool(**{"losses_per_hour": 0.15} | pool), every_s=every_s, write_s=write_s, restart_s=restart_s)


def daly_s(work_s, *, every_s, write_s, restart_s, losses_per_hour):
    """Daly (2006), for whole segments."""
    rate = losses_per_hour / HOUR
    return exp(rate * restart_s) / rate * expm1(rate * (every_s + write_s)) * work_s / every_s


# -- what people met ------------------------------------------------------------------------------------------------


def test_uc_054_spot_without_checkpoints_is_practically_endless():
    assert job().busy_s / HOUR == pytest.approx(expm1(7.2) / 0.15)
    assert job().busy_s / HOUR == pytest.approx(8923, abs=0.5)


def test_uc_054_checkpoints_every_half_hour_bring_it_near_the_work():
    assert job(every_s=HOUR / 2).busy_s / HOUR == pytest.approx(49.8, abs=0.05)


def test_uc_055_a_lost_node_stops_all_nodes_and_the_answer_has_a_spread():
    eight = job(100 * HOUR, every_s=HOUR, restart_s=20 * 60.0, losses_per_hour=8 * 0.02)
    assert 114 < eight.busy_s / HOUR < 116
    assert 915 < 8 * eight.busy_s / HOUR < 925
    assert eight.losses == pytest.approx(0.16 * 114.385, rel=1e-4)
    assert eight.busy_sd_s / HOUR == pytest.approx(3.93, abs=0.01)


# -- formulas -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write_s", "between_s", "interval_s"),
    [(60, 10_800, 1138.419958), (300, 11_134.8, 2584.739832), (0, 3600, 0), (60, inf, inf), (0, inf, inf)],
)
def test_youngs_interval_is_the_published_one(write_s, between_s, interval_s):
    assert young_interval_s(write_s, between_s) == pytest.approx(interval_s, rel=1e-9)


def test_whole_segments_take_dalys_time_but_for_the_checkpoint_that_the_end_needs_not():
    terms = {"every_s": HOUR, "write_s": 300.0, "restart_s": 600.0, "losses_per_hour": 0.3}
    last = daly_s(HOUR, **terms) - daly_s(HOUR, **terms | {"write_s": 0.0})
    assert job(20 * HOUR, **terms).busy_s == pytest.approx(daly_s(20 * HOUR, **terms) - last)


def test_without_restart_the_variance_of_one_stretch_is_the_textbooks():
    """Var = (e^2x − 2x·e^x − 1)/λ²: the wait for a gap of L in a Poisson stream (Cox, Renewal Theory, 1962)."""
    x = 0.15 * 10
    assert job(10 * HOUR).busy_sd_s / HOUR == pytest.approx(sqrt(exp(2 * x) - 2 * x * exp(x) - 1) / 0.15)


def test_a_job_shorter_than_the_interval_writes_no_checkpoint():
    short = job(HOUR, every_s=5 * HOUR, write_s=60.0)
    assert short.checkpoints_s == 0
    assert short.busy_s == job(HOUR).busy_s


@pytest.mark.parametrize(("work_s", "checkpoints"), [(0.3, 2), (0.30001, 3), (0.29, 2), (0.1, 0), (0.05, 0)])
def test_a_checkpoint_is_written_between_segments_not_at_the_end(work_s, checkpoints):
    assert job(work_s * HOUR, every_s=0.1 * HOUR, write_s=1.0).checkpoints_s == checkpoints


def test_what_a_pools_availability_does_not_say_is_not_known():
    assert np.isnan(job().wait_s)
    assert np.isnan(job(losses_per_hour=0.0, available_fraction=0.9).wait_s)
    assert job(losses_per_hour=0.0, available_fraction=1.0).wait_s == 0
    assert np.isnan(job(losses_per_hour=nan).busy_s)


def test_a_pool_that_is_there_for_a_part_of_the_time_makes_a_long_job_longer_by_the_inverse():
    long = job(10_000 * HOUR, every_s=HOUR, available_fraction=0.25)
    assert long.finish_s / long.busy_s == pytest.approx(4, rel=1e-2)


def test_clumps_lengthen_the_wait_at_the_start_and_the_spread_but_not_the_mean_on_the_bill():
    terms = {"every_s": HOUR, "available_fraction": 0.5}
    even, clumped = job(**terms), job(**terms, dispersion=4.0)
    assert clumped.busy_s == even.busy_s
    assert clumped.busy_sd_s == pytest.approx(2 * even.busy_sd_s)
    assert clumped.wait_s - even.wait_s == pytest.approx(3 * 0.5 * HOUR / 0.15)


def test_n_offers_are_computed_at_once():
    rates, works = np.array([0.0, 0.1, 5.0]), np.array([1.0, 10.0, 100.0]) * HOUR
    together = job(works, losses_per_hour=rates, every_s=HOUR, write_s=60.0, available_fraction=0.7)
    for i in range(3):
        alone = job(works[i], losses_per_hour=rates[i], every_s=HOUR, write_s=60.0, available_fraction=0.7)
        for name in (*MEANS, *SPREADS):
            assert getattr(together, name).shape == (3,)
            np.testing.assert_array_equal(getattr(together, name)[i], getattr(alone, name))


# -- properties -----------------------------------------------------------------------------------------------------

WORK = st.floats(1.0, 1e7)
EVERY = st.one_of(st.just(inf), st.floats(1.0, 1e7))
COST = st.one_of(st.just(0.0), st.floats(0.0, 1e5))
RATE = st.one_of(st.just(0.0), st.floats(1e-320, 1e6))
TERMS = st.fixed_dictionaries({"every_s": EVERY, "write_s": COST, "restart_s": COST, "losses_per_hour": RATE})


@given(WORK, TERMS, st.floats(0, 1), st.floats(1, 20))
def test_every_figure_is_finite_and_none_is_negative(work_s, terms, available, dispersion):
    one = job(work_s, **terms, available_fraction=available, dispersion=dispersion)
    known = MEANS if terms["losses_per_hour"] or available == 1 else MEANS[:5]
    assert all(np.isfinite(getattr(one, name)) and getattr(one, name) >= 0 for name in known)
    assert one.busy_sd_s >= 0
    assert np.isfinite(one.busy_sd_s)


@given(WORK, TERMS)
def test_the_job_never_takes_less_than_the_work_and_its_parts_add_up(work_s, terms):
    one = job(work_s, **terms)
    assert one.busy_s >= work_s
    assert one.busy_s == pytest.approx(work_s + one.checkpoints_s + one.lost_s + one.restart_s)


@given(WORK, TERMS)
def test_without_losses_a_job_takes_exactly_work_and_checkpoints(work_s, terms):
    one = job(work_s, **terms | {"losses_per_hour": 0.0}, available_fraction=1.0)
    assert one.busy_s == one.finish_s == work_s + one.checkpoints_s
    assert (one.losses, one.lost_s, one.restart_s, one.busy_sd_s, one.finish_sd_s) == (0, 0, 0, 0, 0)


@given(WORK, TERMS, st.sampled_from(["write_s", "restart_s", "losses_per_hour"]), st.floats(0, 1e5))
def test_more_losses_slower_checkpoints_and_slower_restarts_take_longer(work_s, terms, name, more):
    less, longer = job(work_s, **terms), job(work_s, **terms | {name: terms[name] + more})
    assert longer.busy_s >= less.busy_s * (1 - 1e-12)


@given(st.floats(0.5, 100), st.floats(1e-6, 2.0), st.floats(0, 0.5))
def test_the_expected_time_of_one_stretch_is_dalys(hours, losses_per_hour, restart_h):
    terms = {"write_s": 0.0, "restart_s": restart_h * HOUR, "losses_per_hour": losses_per_hour}
    if hours * losses_per_hour < 90:
        assert job(hours * HOUR, **terms).busy_s == pytest.approx(
            daly_s(hours * HOUR, every_s=hours * HOUR, **terms), rel=1e-9
        )


@given(st.floats(1, 120), st.floats(0.01, 0.5), st.floats(0, 600))
def test_youngs_interval_costs_hardly_more_than_the_best(write_s, losses_per_hour, restart_s):
    """Cost: the time beyond the work. C is at most a 60th of the time between losses here."""
    young = young_interval_s(write_s, HOUR / losses_per_hour)
    every = young * np.append(1.0, np.geomspace(0.2, 5, 201))
    cost = job(young * 5000, every_s=every, write_s=write_s, restart_s=restart_s, losses_per_hour=losses_per_hour)
    beyond = cost.busy_s - young * 5000
    assert beyond[0] <= beyond.min() * 1.02


# -- simulation -----------------------------------------------------------------------------------------------------

JOBS = 40_000


def simulate(work_s, *, every_s, write_s, restart_s, losses_per_hour, available_fraction):
    """Busy seconds, finish and losses of JOBS jobs, loss by loss, on machines without memory."""
    draw = np.random.default_rng(54)
    rate, away = losses_per_hour / HOUR, 1 - available_fraction
    outage = away / available_fraction / rate
    waiting = draw.exponential(outage, JOBS) * (draw.random(JOBS) < away)
    left, busy, losses, begin = np.full(JOBS, work_s), np.zeros(JOBS), np.zeros(JOBS), np.zeros(JOBS)
    going = np.arange(JOBS)
    while going.size:
        up = draw.exponential(1 / rate, going.size)
        between = np.ceil(left[going] / every_s * (1 - 1e-9)) - 1 if every_s < inf else np.zeros(going.size)
        done = up >= begin[going] + left[going] + between * write_s
        busy[going] += np.where(done, begin[going] + left[going] + between * write_s, up)
        lost = going[~done]
        kept = np.minimum((up[~done] - begin[lost]) // (every_s + write_s), between[~done]).clip(0)
        left[lost] -= kept * every_s if every_s < inf else 0.0
        losses[lost] += 1
        begin[lost] = restart_s
        waiting[lost] += draw.exponential(outage, lost.size)
        going = lost
    return busy, busy + waiting, losses


@pytest.mark.parametrize(
    ("hours", "terms"),
    [
        (10.0, {"every_s": HOUR, "write_s": 120.0, "restart_s": 900.0}),
        (10.3, {"every_s": HOUR, "write_s": 120.0, "restart_s": 900.0}),
        (0.4, {"every_s": HOUR, "write_s": 120.0, "restart_s": 300.0}),
        (4.0, {"every_s": inf, "write_s": 0.0, "restart_s": 1800.0}),
        (6.5, {"every_s": 0.7 * HOUR, "write_s": 0.0, "restart_s": 0.0}),
    ],
)
def test_mean_and_spread_are_those_of_a_simulation(hours, terms):
    terms = terms | {"losses_per_hour": 0.6, "available_fraction": 0.7}
    one = job(hours * HOUR, **terms)
    busy, finish, losses = simulate(hours * HOUR, **terms)
    for seen, mean, sd in ((busy, one.busy_s, one.busy_sd_s), (finish, one.finish_s, one.finish_sd_s)):
        assert abs(seen.mean() - mean) < 4 * sd / sqrt(JOBS)
        fourth = np.mean((seen - seen.mean()) ** 4)
        assert abs(seen.var() - sd**2) < 4 * sqrt((fourth - sd**4) / JOBS)
    assert abs(losses.mean() - one.losses) < 4 * losses.std() / sqrt(JOBS)
