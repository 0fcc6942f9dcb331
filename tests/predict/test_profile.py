"""A step's profile on one GPU tells its time on another; how well is scored on models the fit has not seen."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import exp, log

import numpy as np
import pytest
from tests.predict.scenes import accelerator

from gpuwise.errors import InvalidInput
from gpuwise.predict.profile import CLASSES, Profile, Profiles, Step, by_data_sheet, ratio
from gpuwise.predict.profile_fit import FITTED, MEMBERS, START, Bench, fit_profile, unseen
from gpuwise.predict.profile_fit import _objective as objective
from gpuwise.predict.profile_fitted import SCALES
from gpuwise.predict.profile_split import profile_scores
from gpuwise.predict.score import errors
from gpuwise.predict.tables import Draw
from gpuwise.store import package

SHARES = {
    "convolution": 0.5, "matrix": 0.05, "norm": 0.05, "elementwise": 0.15, "optimizer": 0.05, "idle": 0.2,
}  # fmt: skip


@cache
def rows() -> Profiles:
    return Profiles.of(package.tables()["profiles"])


def few(every: int = 4) -> Profiles:
    """One configuration in so many, of every model."""
    return rows().only(np.arange(len(rows().batch)) % every == 0)


def step(rows: Profiles, k: int, gpu: int) -> Step:
    return Step(
        profile=Profile(**dict(zip(CLASSES, rows.shares[k, gpu].tolist(), strict=True))),
        step_s=float(rows.step_s[k, gpu]),
        batch=int(rows.batch[k]),
        image_size=int(rows.image_size[k]),
    )


def test_the_bundle_has_every_configuration_on_all_four_gpus() -> None:
    assert rows().gpus == ("k80-half", "m60-half", "t4", "v100-sxm2-16gb")
    assert rows().shares.shape == (253, 4, 6)
    assert rows().shares.sum(-1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("wrong", [{"idle": 0.9}, {"idle": -0.1}, {"convolution": 1.2}])
def test_shares_that_are_no_shares_of_one_step_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Profile(**{**SHARES, **wrong})


def test_by_data_sheets_each_class_moves_by_its_own_rate() -> None:
    """Half in convolutions on twice the peak and twice the bandwidth, half idle: 0.25 + 0.5."""
    slow = accelerator("slow", architecture="Pascal", fp32_tflops=10.0, bandwidth_gb_per_s=400.0)
    fast = accelerator("fast", architecture="Pascal", fp32_tflops=20.0, bandwidth_gb_per_s=800.0)
    empty = dict.fromkeys(CLASSES, 0.0)
    half = Step(profile=Profile(**{**empty, "convolution": 0.5, "idle": 0.5}), step_s=0.1, batch=32)
    found = by_data_sheet(half, slow, fast)
    assert found is not None
    assert found.log == pytest.approx(log(0.75))
    assert not found.learned


def test_a_card_without_a_bandwidth_is_not_predicted() -> None:
    blank = accelerator("blank", bandwidth_gb_per_s=None)
    asked = Step(profile=Profile(**SHARES), step_s=0.1, batch=32, image_size=224)
    assert ratio(asked, accelerator("any"), blank, rows(), {}) is None


def test_a_gpu_with_the_data_sheet_of_a_profiled_one_counts_as_that_one() -> None:
    cards = package.accelerators()
    asked = step(rows(), 0, rows().gpus.index("t4"))
    small, large = (ratio(asked, cards["t4"], cards[f"v100-sxm2-{size}gb"], rows(), cards) for size in (16, 32))
    assert small is not None
    assert large is not None
    assert small.learned
    assert large == small


def test_elsewhere_the_error_is_wider_than_where_both_gpus_were_profiled() -> None:
    cards = package.accelerators()
    asked = step(rows(), 120, rows().gpus.index("t4"))
    learned, sheet = (ratio(asked, cards["t4"], cards[key], rows(), cards) for key in ("v100-sxm2-16gb", "rtx-4090"))
    assert learned is not None
    assert sheet is not None
    assert learned.learned
    assert not sheet.learned
    assert sheet.log_sd > learned.log_sd


def test_what_amp_does_is_not_learned_from_fp32_rows() -> None:
    cards = package.accelerators()
    asked = replace(step(rows(), 120, rows().gpus.index("t4")), precision="amp")
    found = ratio(asked, cards["t4"], cards["v100-sxm2-16gb"], rows(), cards)
    assert found is not None
    assert not found.learned


def test_an_idle_device_gains_less_from_a_faster_card() -> None:
    cards = package.accelerators()
    busy = step(rows(), 120, rows().gpus.index("t4"))
    shares = busy.profile.shares * 0.3
    shares[CLASSES.index("idle")] += 0.7
    waiting = replace(busy, profile=Profile(**dict(zip(CLASSES, shares.tolist(), strict=True))))
    times = [ratio(each, cards["t4"], cards["v100-sxm2-16gb"], rows(), cards) for each in (busy, waiting)]
    assert times[0] is not None
    assert times[1] is not None
    assert times[0].log < times[1].log - 0.2


def test_leaving_out_in_closed_form_is_the_posterior_without_the_rows() -> None:
    """The block formula against conditioning on the rest; the mean of each class is the one of all rows."""
    from gpuwise.predict import profile

    some, scales = few(6), np.tile(START, (len(CLASSES), 1))
    found = unseen(some, scales[None])
    bench = Bench.of(some)
    left = some.workload == some.workload[0]
    k = bench.pairs.index((0, 3))
    logs = []
    for c in range(len(CLASSES)):
        kernel = profile.Kernel.of(scales[c])
        whole = profile.covariance(some, 0, c, kernel)
        seen = whole[np.ix_(~left, ~left)] + np.diag(kernel.noise(bench.weight[c, k])[~left])
        told = whole[np.ix_(left, ~left)] @ np.linalg.solve(seen, bench.y[c, k][~left])
        logs.append(told + bench.mean[c, k])
    parts = bench.shares[k][left] * np.exp(np.array(logs).T)
    assert found[0, k, left] == pytest.approx(np.log(parts.sum(-1)) - bench.total[k][left], abs=1e-6)


def test_the_slope_of_the_objective_is_that_of_small_steps() -> None:
    bench = Bench.of(few(8))
    cost = objective(
        bench, {c: np.zeros((2, 12, len(bench.rows.batch))) for c in range(len(CLASSES)) if c not in FITTED}
    )
    at = np.tile(START, len(FITTED)) + 0.1 * np.random.default_rng(0).normal(size=len(FITTED) * len(START))
    slope = cost(at)[1]
    for place in (0, 1, 4, 5, 8, 13, 18, 30, 40):
        ahead, behind = at.copy(), at.copy()
        ahead[place] += 1e-4
        behind[place] -= 1e-4
        assert slope[place] == pytest.approx((cost(ahead)[0] - cost(behind)[0]) / 2e-4, rel=1e-3, abs=1e-4)


def test_the_shipped_scales_tell_unseen_rows_better_than_where_the_fit_starts() -> None:
    assert np.array(SCALES).shape == (len(MEMBERS), len(CLASSES), len(START))
    shipped, start = (np.abs(unseen(rows(), s)).mean() for s in (np.array(SCALES), np.tile(START, (1, 6, 1))))
    assert shipped < 0.95 * start


def test_a_step_that_the_rows_lack_is_told_within_a_third_and_better_than_by_any_data_sheet() -> None:
    """A ratchet on a drawn model and family; the whole split is in the docs."""
    scores = profile_scores(rows(), package.accelerators(), Draw(most=500, seed=3))
    found = errors(scores)
    assert found.mape_percent is not None
    assert found.mape_percent < 14
    assert found.median_percent is not None
    assert found.median_percent < 10
    assert min(other.mape_percent or 0 for other in found.naive.values()) > 1.5 * found.mape_percent


def test_shuffled_times_are_told_as_badly_as_they_should_be() -> None:
    """No row of the target may reach its own prediction: with times of other steps nothing is left to learn."""
    some = few(3)
    order = np.random.default_rng(1).permutation(len(some.batch))
    target = 3
    step_s, shares = some.step_s.copy(), some.shares.copy()
    step_s[:, target], shares[:, target] = step_s[order, target], shares[order, target]
    shuffled = Profiles(some.gpus, shares, step_s, some.batch, some.image_size, some.workload, some.family)
    scales = fit_profile(shuffled, 2)
    wrong, right = (np.abs(unseen(each, scales)[0, 2]).mean() for each in (shuffled, some))
    assert wrong > 0.5
    assert exp(right) < exp(wrong) / 1.3
