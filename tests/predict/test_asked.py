"""The shipped predictor asked about the rows of a person's table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwise.errors import Message
from gpuwise.estimate import Estimate
from gpuwise.predict.asked import Asker, Bundle
from gpuwise.predict.roofline import Work
from gpuwise.predict.setting import Reading, Setting
from gpuwise.store import package

CARDS = package.accelerators()
V100, A100 = "v100-sxm2-16gb", "a100-sxm4-40gb"
COUNTED = Work(gmacs=7.8, activations_m=16.2, parameters_m=44.5)


@pytest.fixture(scope="module")
def ask() -> Asker:
    return Asker(
        Bundle(
            model=package.model(),
            rows=package.throughput(),
            inference=package.inference(),
            accelerators=CARDS,
            counts=package.counts(),
            assumptions=package.assumptions(),
        )
    )


def setting(card: str, n: int = 1, **changes: object) -> Setting:
    """A network that no table has, in AMP at batch 64 unless changed."""
    usual = Setting(workload="ours", family=None, accelerator=CARDS[card], accelerators=n, precision="amp", batch=64)
    return replace(usual, **changes)  # type: ignore[arg-type]


def one(ask: Asker, asked: Setting, *given: Reading) -> Estimate:
    (found,) = ask([asked], given)
    assert isinstance(found, Estimate), found
    return found


def test_a_network_that_nobody_counted_is_predicted_from_the_given_rows_alone(ask: Asker) -> None:
    given = Reading(setting=setting(V100), samples_per_s=100.0)
    assert 120 < one(ask, setting(A100), given).value < 280


def test_one_that_nothing_describes_is_refused_with_what_would_describe_it(ask: Asker) -> None:
    (why,) = ask([setting(A100)], [])
    assert isinstance(why, Message)
    assert "state gmacs, activations_m and parameters_m, or give a measured row" in str(why)


def test_one_that_is_counted_needs_no_measured_row_and_one_row_narrows_it(ask: Asker) -> None:
    alone = one(ask, setting(A100, work=COUNTED, family="cnn"))
    given = Reading(setting=setting(V100, work=COUNTED, family="cnn"), samples_per_s=300.0)
    helped = one(ask, setting(A100, work=COUNTED, family="cnn"), given)
    assert helped.log_sd < alone.log_sd


@pytest.mark.parametrize("work", [None, COUNTED])
def test_several_devices_are_faster_than_one_and_never_more_than_so_many_times(ask: Asker, work: Work | None) -> None:
    given = Reading(setting=setting(V100, work=work, family="cnn"), samples_per_s=300.0)
    asked = [setting(A100, n, work=work, family="cnn") for n in (1, 2, 8)]
    first, two, eight = (found.value for found in ask(asked, [given]) if isinstance(found, Estimate))
    assert first < two <= 2 * first * 1.001
    assert two < eight <= 4 * two * 1.001


def test_a_run_on_as_many_devices_leaves_less_open_than_one_on_one(ask: Asker) -> None:
    on_eight = Reading(setting=setting(V100, 8), samples_per_s=800.0)
    on_one = Reading(setting=setting(V100), samples_per_s=100.0)
    same, other = (one(ask, setting(A100, 8), given) for given in (on_eight, on_one))
    scaling = [next(sd for name, sd in found.spread if name.startswith("scaling ×8")) for found in (same, other)]
    assert scaling[0] < scaling[1]


def test_a_reading_of_another_network_says_nothing(ask: Asker) -> None:
    known = setting(A100, work=COUNTED, family="cnn")
    other = Reading(setting=setting(V100, workload="theirs"), samples_per_s=5.0)
    assert one(ask, known, other).value == pytest.approx(one(ask, known).value)


def test_answers_stand_in_the_order_of_the_questions(ask: Asker) -> None:
    given = Reading(setting=setting(V100), samples_per_s=100.0)
    asked = [setting(A100), setting("t4"), setting(A100, 2), setting("t4", 2)]
    together = [found.value for found in ask(asked, [given]) if isinstance(found, Estimate)]
    assert together == pytest.approx([one(ask, s, given).value for s in asked])


def test_inference_of_a_known_network_is_predicted(ask: Asker) -> None:
    training = one(ask, setting("rtx-4090", workload="resnet50", work=package.counts()["resnet50"], family="cnn"))
    forward = setting("rtx-4090", workload="resnet50", work=package.counts()["resnet50"], family="cnn", mode="infer")
    assert one(ask, forward).value > 1.5 * training.value


def test_uc_059_a_given_row_in_other_arithmetic_or_at_another_batch_leaves_the_range_wider(ask: Asker) -> None:
    asked = setting(A100, batch=256)
    alike = Reading(setting=setting(V100, batch=256), samples_per_s=350.0)
    unlike = Reading(setting=setting(V100, batch=32, precision="fp32"), samples_per_s=350.0)
    assert one(ask, asked, unlike).log_sd > one(ask, asked, alike).log_sd
