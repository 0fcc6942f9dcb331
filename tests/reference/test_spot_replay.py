"""Recorded spot pools (SkyPilot's traces, NSDI 2024): jobs replayed over each against the model given a few figures.

A job starts at 200 evenly spaced moments, waits until all nodes of the series are there, loses the work since its last
checkpoint when one goes, waits, restarts and goes on. The record goes round. Pools with fewer than ten losses tell too
little of a mean and are left out of the comparison.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuwise.cost.spot import Held, Pool, chance, held, young_interval_s
from gpuwise.estimate import Estimate, total

Floats = NDArray[np.float64]
TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"
pytestmark = pytest.mark.skipif(
    not TRACES.is_dir(), reason="the collected traces (../shared/data/traces) are not there"
)

HOUR = 3600.0
WORK_H = (4, 12, 24, 48)
WRITE_S, RESTART_S = 60.0, 300.0
STARTS = 200
FEWEST_LOSSES = 10
ROUND_OFF = 5.1e-5
"""Half a unit of the last digit in spot_summary.csv."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """When all nodes of a pool are there: begin_s, end_s (k,), of length_s in all; summary: its row as published."""

    name: str
    summary: dict[str, str]
    begin_s: Floats
    end_s: Floats
    length_s: float

    @property
    def recording(self) -> str:
        return self.name.rsplit("/", 1)[0]

    @property
    def available_fraction(self) -> float:
        return float((self.end_s - self.begin_s).sum() / self.length_s)

    @property
    def losses(self) -> int:
        return int((self.end_s < self.length_s).sum())

    @property
    def losses_per_hour(self) -> float:
        return self.losses / (self.available_fraction * self.length_s / HOUR)

    def round(self) -> tuple[Floats, Floats]:
        """Begin and end with the last up-time running on into the first, where both are at the record's edge."""
        if self.begin_s[0] > 0 or self.end_s[-1] < self.length_s:
            return self.begin_s, self.end_s
        return self.begin_s[1:], np.append(self.end_s[1:-1], self.length_s + self.end_s[0])

    @property
    def dispersion(self) -> float:
        """Mean of the squared coefficients of variation of up-times and outages."""
        begin, end = self.round()
        outages = np.append(begin[1:], begin[0] + self.length_s) - end
        return float(np.mean([np.var(s) / np.mean(s) ** 2 for s in (end - begin, outages)]))


def read_series() -> Iterator[Series]:
    with (TRACES / "spot_summary.csv").open(encoding="utf-8") as file:
        summaries = {row["series"]: row for row in csv.DictReader(file)}
    with (TRACES / "spot_runs.csv").open(encoding="utf-8") as file:
        for name, rows in groupby(csv.DictReader(file), key=lambda row: row["series"]):
            runs = [(float(row["duration_s"]), int(row["available_nodes"])) for row in rows]
            yield _series(name, summaries[name], runs)


def _series(name: str, summary: dict[str, str], runs: list[tuple[float, int]]) -> Series:
    ends = np.cumsum([duration for duration, _ in runs])
    full = np.array([nodes >= int(summary["nodes"]) for _, nodes in runs])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], full, [False])).astype(int)))
    moments = np.append(0.0, ends)[edges]
    return Series(name=name, summary=summary, begin_s=moments[::2], end_s=moments[1::2], length_s=float(ends[-1]))


def replay(series: Series, work_s: float, every_s: float) -> tuple[Floats, Floats]:
    """(finish_s, busy_s) of the jobs, each of shape (STARTS,); all jobs go from loss to loss together."""
    begin, end = (np.concatenate([edge + series.length_s * lap for lap in range(-1, 40)]) for edge in series.round())
    start = np.arange(STARTS) * series.length_s / STARTS
    left, busy, finish, restart = np.full(STARTS, work_s), np.zeros(STARTS), np.full(STARTS, np.nan), np.zeros(STARTS)
    up = np.searchsorted(end, start, side="right")
    going = np.arange(STARTS)
    while going.size:
        there = np.maximum(begin[up[going]], start[going])
        room = end[up[going]] - there
        between = np.ceil(left[going] / every_s * (1 - 1e-9)) - 1
        needed = restart[going] + left[going] + between * WRITE_S
        done, lost = needed <= room, going[needed > room]
        busy[going] += np.minimum(needed, room)
        finish[going[done]] = (there + needed)[done]
        kept = np.floor((room - restart[going])[~done] / (every_s + WRITE_S))
        left[lost] -= np.clip(kept, 0, between[~done]) * every_s
        restart[lost] = RESTART_S
        up[lost] += 1
        going = lost
    return finish - start, busy


def interval_s(series: Series) -> float:
    return float(young_interval_s(WRITE_S, HOUR / series.losses_per_hour))


def model(pools: list[Series], dispersion: Floats | float) -> Held:
    """What the model says, figures of shape (len(WORK_H), pools)."""
    one = Pool(
        losses_per_hour=np.array([s.losses_per_hour for s in pools]),
        available_fraction=np.array([s.available_fraction for s in pools]),
        dispersion=dispersion,
    )
    every = np.array([interval_s(s) for s in pools])
    return held(np.array(WORK_H)[:, None] * HOUR, one, every_s=every, write_s=WRITE_S, restart_s=RESTART_S)


def others_dispersion(pools: list[Series]) -> Floats:
    """Of every pool the mean of the other half: every second recording (days and provider) is in the other half."""
    recordings = sorted({s.recording for s in pools})
    odd = np.array([recordings.index(s.recording) % 2 == 1 for s in pools])
    own = np.array([s.dispersion for s in pools])
    return np.where(odd, own[~odd].mean(), own[odd].mean())


@pytest.fixture(scope="module")
def pools() -> list[Series]:
    return [series for series in read_series() if series.losses >= FEWEST_LOSSES]


@pytest.fixture(scope="module")
def replayed(pools: list[Series]) -> dict[str, Floats]:
    """Mean and standard deviation of the jobs, named as in `Held`, each of shape (len(WORK_H), pools)."""
    jobs = [[replay(series, hours * HOUR, interval_s(series)) for series in pools] for hours in WORK_H]
    finish, busy = np.moveaxis(np.array(jobs), 2, 0)
    return {
        "finish_s": finish.mean(axis=-1), "finish_sd_s": finish.std(axis=-1),
        "busy_s": busy.mean(axis=-1), "busy_sd_s": busy.std(axis=-1),
    }  # fmt: skip


def ratios(pools: list[Series], replayed: dict[str, Floats], name: str, knowing: str) -> Floats:
    """Model over replay. knowing: what the model is told of a pool besides loss rate and availability."""
    dispersion = {
        "nothing": 1.0,
        "others": others_dispersion(pools),
        "itself": np.array([series.dispersion for series in pools]),
    }[knowing]
    return np.asarray(getattr(model(pools, dispersion), name) / replayed[name])


def test_all_recorded_pools_are_read():
    assert len(list(read_series())) == 34
    assert sum(series.losses >= FEWEST_LOSSES for series in read_series()) == 30


def test_availability_and_losses_counted_here_are_the_published_ones():
    for series in read_series():
        summary = series.summary
        assert series.losses == int(summary["losses"]), series.name
        assert series.available_fraction == pytest.approx(float(summary["full_availability_fraction"]), abs=ROUND_OFF)
        assert series.losses_per_hour == pytest.approx(float(summary["losses_per_available_hour"]), abs=ROUND_OFF)
        assert series.length_s / HOUR == pytest.approx(float(summary["hours_observed"]), abs=5.1e-3)


def test_a_job_on_a_pool_that_never_goes_takes_its_work():
    """24 h in the three pools that lost nothing in two days, begun in the first 21 h."""
    for series in (series for series in read_series() if series.losses == 0):
        finish, busy = replay(series, 24 * HOUR, every_s=48 * HOUR)
        early = slice(1, int(STARTS * 21 * HOUR / series.length_s))
        np.testing.assert_allclose(finish[early], busy[early])
        one = held(24 * HOUR, Pool(losses_per_hour=0.0), every_s=np.inf, write_s=WRITE_S, restart_s=RESTART_S)
        np.testing.assert_allclose(busy[early], one.busy_s)


def test_the_pools_lose_their_machines_in_clumps(pools):
    """The figures that `Pool` states, and those that the halves of the recordings lend each other."""
    own = np.array([series.dispersion for series in pools])
    assert (own.min(), own.mean(), own.max()) == pytest.approx((1.25, 5.67, 15.2), abs=0.05)
    assert sorted(set(others_dispersion(pools))) == pytest.approx([4.84, 7.60], abs=0.01)


TOLERANCES = [  # figure, what the model is told besides rate and availability, hours, median, lowest and highest pool
    ("busy_s", "nothing", 4, 0.03, 0.75, 1.10),
    ("busy_s", "nothing", 12, 0.02, 0.85, 1.10),
    ("busy_s", "nothing", 24, 0.02, 0.85, 1.10),
    ("busy_s", "nothing", 48, 0.02, 0.90, 1.10),
    ("finish_s", "itself", 4, 0.10, 0.55, 1.20),
    ("finish_s", "itself", 12, 0.10, 0.65, 1.10),
    ("finish_s", "itself", 24, 0.05, 0.75, 1.35),
    ("finish_s", "itself", 48, 0.05, 0.85, 1.65),
    ("finish_s", "others", 4, 0.10, 0.45, 1.75),
    ("finish_s", "others", 12, 0.10, 0.55, 1.25),
    ("finish_s", "others", 24, 0.05, 0.75, 1.25),
    ("finish_s", "others", 48, 0.05, 0.85, 1.55),
    ("finish_s", "nothing", 4, 0.30, 0.20, 1.05),
    ("finish_s", "nothing", 12, 0.20, 0.45, 1.05),
    ("finish_s", "nothing", 24, 0.10, 0.70, 1.10),
    ("finish_s", "nothing", 48, 0.05, 0.85, 1.35),
]


@pytest.mark.parametrize(("figure", "knowing", "hours", "median", "lowest", "highest"), TOLERANCES)
def test_means_are_those_of_the_replay_within(pools, replayed, figure, knowing, hours, median, lowest, highest):
    """nothing: dispersion 1; others: the mean of the other half of the recordings; itself: the pool's own."""
    of_pools = ratios(pools, replayed, figure, knowing)[WORK_H.index(hours)]
    assert np.median(of_pools) == pytest.approx(1, abs=median)
    assert lowest < of_pools.min()
    assert of_pools.max() < highest


@pytest.mark.parametrize(("figure", "median"), [("busy_s", 0.02), ("finish_s", 0.03)])
def test_over_all_lengths_the_median_pool_is_met(pools, replayed, figure, median):
    assert np.median(ratios(pools, replayed, figure, "others")) == pytest.approx(1, abs=median)


def test_what_other_pools_tell_of_clumps_takes_a_third_off_the_error_of_the_finish(pools, replayed):
    wrong = {k: np.abs(np.log(ratios(pools, replayed, "finish_s", k))).mean() for k in ("nothing", "others", "itself")}
    assert wrong["others"] < wrong["nothing"] * 2 / 3
    assert wrong["itself"] < wrong["nothing"] / 2


@pytest.mark.parametrize(
    ("figure", "knowing", "low", "high"),
    [
        ("busy_sd_s", "nothing", 0.45, 0.60),
        ("busy_sd_s", "others", 1.20, 1.50),
        ("busy_sd_s", "itself", 0.90, 1.10),
        ("finish_sd_s", "nothing", 0.30, 0.40),
        ("finish_sd_s", "others", 0.90, 1.20),
        ("finish_sd_s", "itself", 0.80, 1.00),
    ],
)
def test_without_clumps_the_spread_would_be_half_of_what_it_is(pools, replayed, figure, knowing, low, high):
    """Median over pools and lengths of the standard deviation, model over replay."""
    assert low < np.median(ratios(pools, replayed, figure, knowing)) < high


# ---- the interval of one job -----------------------------------------------------------------------------------------

GENERAL_DISPERSION = 5.0
"""As in assumptions.toml: what is taken of a pool of which nobody knows better."""


def interval_of(said: Held, work_h: float, row: int, pool: int) -> tuple[float, float]:
    """80 % of the finish, as `rank` makes it of mean and sd: busy and waiting, never below the work."""
    away = np.sqrt(np.maximum(said.finish_sd_s**2 - said.busy_sd_s**2, 0.0))
    parts = []
    for mean, sd, name in ((said.busy_s, said.busy_sd_s, "losses"), (said.wait_s, away, "waiting")):
        log_sd, median = (figures[row, pool] for figures in chance(mean, sd))
        value = float(mean[row, pool])
        parts.append(Estimate(value=value, spread=((name, float(log_sd)),), median=value * float(median)))
    inside = total(parts).interval()
    return max(inside.low, work_h * HOUR * (1 - 1e-9)), inside.high


@pytest.mark.parametrize("row", range(len(WORK_H)), ids=[f"{h} h" for h in WORK_H])
def test_an_interval_of_80_percent_holds_about_so_many_jobs_and_its_centre_is_their_median(
    row: int, pools: list[Series]
) -> None:
    said, held_in, centres = model(pools, GENERAL_DISPERSION), [], []
    for i, series in enumerate(pools):
        finish, _ = replay(series, WORK_H[row] * HOUR, interval_s(series))
        low, high = interval_of(said, WORK_H[row], row, i)
        held_in.append(float(np.mean((finish >= low) & (finish <= high))))
        centres.append((low * high) ** 0.5 / float(np.median(finish)))
    assert 0.75 <= np.mean(held_in) <= 0.86
    assert min(held_in) > 0.4, "the worst pool"
    assert 0.8 <= np.median(centres) <= 1.25
