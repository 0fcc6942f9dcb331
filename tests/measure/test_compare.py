"""Two records → faster, slower or not significant; what is unlike is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpuwise.estimate import Interval
from gpuwise.measure.compare import compare
from gpuwise.measure.record import Cpus, Device, DeviceLoad, Host, Pace, Record, Setup, Stages, Work

V100 = Device(index=0, name="V100", vendor="NVIDIA", backend="cuda")


def around(value: float, share: float) -> Interval:
    return Interval(value=value, low=value * (1 - share), high=value * (1 + share))


def run(rate: float | None, share: float = 0.005, devices: int = 1, samples: float = 32.0, **setup: Any) -> Record:
    setup = {"workload": "w", "batch_per_accelerator": 32, "processes": devices, **setup}
    pace = None
    if rate is not None:
        pace = Pace(
            steps=500, warm_up=2, step_s=around(samples / rate, share), median_s=samples / rate,
            minimum_s=samples / rate, maximum_s=samples / rate, samples_per_s=around(rate, share),
            samples_per_step=samples,
        )  # fmt: skip
    return Record(
        created_utc="2026-11-30T12:00:00Z",
        setup=Setup(**setup),
        host=Host(system="Linux", cpus=Cpus(host=16, allowed=16.0)),
        devices=tuple(replace(V100, index=n) for n in range(devices)),
        pace=pace,
    )


def test_several_runs_each_give_a_ratio_and_not_a_difference():
    found = compare([run(100), run(102), run(98)], [run(125), run(123), run(127)])
    assert found.significant
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1.25, rel=0.01)
    assert found.ratio.low < 1.25 < found.ratio.high
    assert str(found.sentence).startswith("1.25× faster (")
    assert (found.unlike, found.cautions) == ((), ())


def test_a_slower_run_is_called_slower_by_its_factor():
    assert str(compare([run(125)], [run(100)]).sentence).startswith("1.25× slower (")


def test_runs_that_differ_by_chance_are_not_significant():
    found = compare([run(100), run(110), run(92)], [run(104), run(95), run(112)])
    assert not found.significant
    assert str(found.sentence).startswith("Not significant: the ratio lies between 0.9")


def test_one_run_each_is_compared_by_their_own_intervals_with_a_caution():
    assert compare([run(100)], [run(110)]).significant
    close = compare([run(100)], [run(101)])
    assert not close.significant
    assert "repeat them" in str(close.cautions[0])
    assert not compare([run(100, share=0.2)], [run(110, share=0.2)]).significant


def test_equal_settings_are_called_different_once_in_twenty_at_most():
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(400):
        a, b = ([run(float(r), share=1e-4) for r in 100 * rng.lognormal(0, 0.03, 4)] for _ in range(2))
        wrong += compare(a, b).significant
    assert wrong / 400 <= 0.07


@pytest.mark.parametrize(
    ("steps_s", "devices", "ratio", "cost"), [((51.82, 124.55), 2, 0.83, 2.4), ((1 / 8.71, 1 / 0.61), 8, 0.56, 14.3)]
)
def test_uc_039_more_devices_can_be_slower(steps_s, devices, ratio, cost):
    one, many = run(32 / steps_s[0]), run(32 * devices / steps_s[1], devices=devices, samples=32.0 * devices)
    found = compare([one], [many])
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(ratio, rel=0.01)
    assert found.cost_ratio == pytest.approx(cost, rel=0.01)
    assert "slower" in str(found.sentence)
    assert "communication, or processes that share CPUs" in str(found.cautions[-1])


def test_uc_040_two_devices_as_fast_as_one_have_half_the_efficiency():
    found = compare([run(100)], [run(100, devices=2)])
    assert not found.significant
    assert found.efficiency_fraction == pytest.approx(0.5, rel=0.01)


def test_uc_040_recomputation_makes_a_pair_not_like_for_like():
    one, other = replace(run(100), work=Work(stored_m=40.0)), replace(run(100, devices=2), work=Work(stored_m=6.0))
    found = compare([one], [other])
    assert str(found.sentence).endswith("Not like for like: 1 setting differs.")
    assert [str(u) for u in found.unlike] == ["processes: 1 and 2"]
    assert "keeps 40 and 6 million values for the backward pass" in str(found.cautions[-1])
    assert "recomputes more, which is not like for like" in str(found.cautions[-1])


def test_what_was_measured_is_no_setting():
    one, other = (
        replace(run(100), stages=Stages(operations=n), work=Work(stored_m=m)) for n, m in ((99, 6), (90, 6.1))
    )
    found = compare([one], [other])
    assert found.unlike == ()
    assert [str(c) for c in found.cautions] == ["one run each tells nothing of how much runs differ: repeat them"]


@pytest.mark.parametrize("setting", ["workload", "model"])
def test_two_jobs_are_not_comparable_and_that_is_said_first(setting):
    found = compare([run(100, **{setting: "resnet34"})] * 2, [run(200, **{setting: "resnet18"})] * 2)
    assert str(found.sentence) == "Not comparable: resnet34 and resnet18."
    assert (found.ratio, found.significant) == (None, False)
    assert found.reasons == {"ratio": "two jobs are not the same work"}


def test_a_side_with_two_models_is_not_comparable():
    found = compare([run(100, model="resnet34"), run(150, model="resnet18")], [run(100, model="resnet34")])
    assert str(found.sentence) == "Not comparable: mixed (resnet18, resnet34) and resnet34."


def test_two_programs_of_ones_own_are_compared_whatever_they_are_called():
    one, other = (run(r, workload=w, command=("python", w)) for r, w in ((100, "train.py"), (200, "train_fast.py")))
    assert compare([one], [other]).ratio is not None
    heads = [replace(r, setup=replace(r.setup, model=m)) for r, m in ((one, "Small"), (other, "Large"))]
    assert str(compare(heads[:1], heads[1:]).sentence) == "Not comparable: Small and Large."


def test_settings_of_all_runs_of_a_side_count_and_a_mixed_side_is_named():
    pair = [run(100, workers=2), run(101, workers=4)]
    found = compare(pair, [run(120, workers=2), run(121, workers=2)])
    assert [str(u) for u in found.unlike] == ["workers: mixed (2, 4) and 2"]
    assert str(found.sentence).endswith("Not like for like: 1 setting differs.")
    assert [str(u) for u in compare(pair, pair[::-1]).unlike] == ["workers: mixed (2, 4) on both sides"]


def test_a_side_of_runs_on_one_and_on_two_devices_has_no_efficiency():
    found = compare([run(100)] * 2, [run(100, devices=2), run(100)])
    assert (found.efficiency_fraction, found.cost_ratio) == (None, None)


def test_a_single_run_on_one_side_is_cautioned_too():
    assert "a single run on one side" in str(compare([run(100)], [run(110), run(111)]).cautions[0])


def test_batch_precision_and_versions_are_named_and_unknown_ones_are_not():
    a = run(100, precision="fp32", software={"torch": "2.13.0", "numpy": "2.4"}, compiled=None)
    b = run(120, precision="amp", batch_per_accelerator=64, software={"torch": "2.14.1"}, compiled=True)
    assert [str(u) for u in compare([a], [b]).unlike] == [
        "batch a device: 32 and 64",
        "precision: fp32 and amp",
        "torch: 2.13.0 and 2.14.1",
    ]


def test_runs_without_a_speed_are_counted_and_give_no_ratio():
    found = compare([run(None)], [run(100)])
    assert found.ratio is None
    assert str(found.sentence) == "Not comparable: a has no speed."
    assert found.reasons == {"a": "1 of 1 runs have no speed"}
    assert compare([], [run(100)]).reasons == {"a": "no run was given"}
    assert compare([run(100), run(None)], [run(100)]).reasons == {"a": "1 of 2 runs have no speed"}


def test_uc_034_a_cpu_can_be_the_faster_one():
    gpu, cpu = run(16 / 0.040, samples=16.0), run(16 / 0.004, samples=16.0)
    cpu = replace(cpu, devices=(Device(index=0, name="i7", vendor="Intel", backend="cpu"),))
    found = compare([gpu], [cpu])
    assert str(found.sentence).startswith("10.00× faster")
    assert found.efficiency_fraction is None
    assert "device: V100 and i7" in [str(u) for u in found.unlike]


def with_batch(batch: int, gib: float | None, **load: Any) -> Record:
    card = replace(V100, memory_gib=16.0)
    loads = (DeviceLoad(index=0, allocated_gib=gib, reserved_gib=1.5 * (gib or 0), **load),)
    made = run(100 + batch, batch_per_accelerator=batch)
    return replace(made, devices=(card,), device_loads=loads)


def test_uc_023_runs_with_several_batches_tell_which_one_should_fit_by_allocated_memory():
    small, large = [with_batch(1, 1.1), with_batch(2, 1.9)], [with_batch(4, 3.5, others_gib=0.6), with_batch(8, 6.7)]
    (said,) = (str(c) for c in compare(small, large).cautions if "should fit" in str(c))
    assert said == "a sample takes 0.8 GiB and 0.3 GiB go beside: batch 17 should fit on this device, try it"


@pytest.mark.parametrize(
    "other", [with_batch(1, 3.5), with_batch(8, None), replace(with_batch(8, 6.7), devices=(V100,)), with_batch(8, 0.5)]
)
def test_a_batch_that_memory_does_not_tell_is_not_named(other: Record):
    assert not [c for c in compare([with_batch(1, 1.1)], [other]).cautions if "should fit" in str(c)]
