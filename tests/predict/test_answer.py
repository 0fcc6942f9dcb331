"""From the process to an answer: intervals by situation, bounds, disagreement, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.predict.scenes import CARDS, COUNTS, JOB, fitted

from gpuwise.errors import Message
from gpuwise.predict.answer import DOUBT, WINOGRAD, Model, Situation, Told, answer, measured_apart, refusal
from gpuwise.predict.reference import REFERENCE
from gpuwise.predict.roofline import ideal_seconds, rates, work_of
from gpuwise.predict.setting import Reading, Setting

WORK = {**REFERENCE, **COUNTS}


def setting(card: str, workload: str = "job", **changes: object) -> Setting:
    usual = Setting(
        workload=workload, family="cnn", accelerator=CARDS[card], precision="amp", batch=64, work=WORK.get(workload)
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def read(card: str, rate: float, workload: str = "job", log_sd: float = 0.0, **changes: object) -> Reading:
    return Reading(setting=setting(card, workload, **changes), samples_per_s=rate, log_sd=log_sd)


KIN = [
    read(card, rate * scale, name)
    for name, scale in (("resnet50", 1.0), ("ssd", 0.25))
    for card, rate in (("small", 260.0), ("middle", 500.0), ("large", 1100.0))
]
MODEL = fitted(KIN)
EMPTY = fitted([])


def told(asked: Setting, given: Sequence[Reading] = (), model: Model = MODEL, seen: Sequence[Reading] = ()) -> Told:
    (found,) = answer(model, [asked], seen, given)
    assert isinstance(found, Told), found
    return found


def refused(asked: Setting, given: Sequence[Reading] = (), model: Model = MODEL) -> str:
    (found,) = answer(model, [asked], (), given)
    assert isinstance(found, Message), found
    return str(found)


# ---- intervals by situation ----

FACTORS = {"new family, card, 0": 2.0, "new family, card, 1": 3.0, "new family, new card, 0": 5.0}


@pytest.mark.parametrize(
    ("card", "k", "factor"), [("middle", 0, 2.0), ("middle", 1, 3.0), ("volta", 0, 5.0), ("middle", 2, 3.0)]
)
def test_the_interval_is_widened_by_the_factor_of_its_situation(card: str, k: int, factor: float) -> None:
    """One that was never scored takes that with fewer measured cards."""
    given = [read("small", 120.0), read("large", 520.0)][:k]
    one, wide = (told(setting(card), given, replace(MODEL, factors=f)) for f in ({}, FACTORS))
    untried = {f"what {CARDS[card].architecture} reaches"}
    for name, sd in one.rate_per_s.spread:
        if name not in untried:
            assert dict(wide.rate_per_s.spread)[name] == pytest.approx(factor * sd), name
    assert wide.rate_per_s.value == one.rate_per_s.value


def test_a_situation_like_none_that_was_scored_takes_the_largest_factor() -> None:
    model = replace(MODEL, factors={"family, card, 1": 1.5, "family, new card, 2": 4.0})
    assert model.factor(Situation(family_known=False, card_known=True, measured=0)) == 4.0
    assert replace(MODEL, factors={}).factor(Situation(family_known=True, card_known=True, measured=1)) == 1.0


def test_a_situation_says_what_the_model_knows() -> None:
    assert MODEL.situation(setting("middle"), ()).key == "new family, card, 0"
    assert MODEL.situation(setting("volta"), [read("small", 1.0), read("large", 1.0)]).key == "new family, new card, 2"
    many = fitted([*KIN, *(read(c, 100.0, "resnet50") for c in ("old", "volta", "radeon"))])
    rows = [read(c, 1.0) for c in ("small", "middle", "large", "volta")]
    assert many.situation(setting("old"), rows).key == "family, card, 3"
    assert many.situation(setting("old", family="cnn-detection"), ()).family_known
    assert not many.situation(setting("old", family="speech"), ()).family_known


@settings(deadline=None, max_examples=30)
@given(st.permutations(["small", "middle", "large", "volta"]), st.sampled_from(["small", "middle", "large", "volta"]))
def test_one_more_measured_card_never_widens_the_interval_much(order: list[str], asked: str) -> None:
    rates_per_s = {"small": 130.0, "middle": 250.0, "large": 550.0, "volta": 200.0}
    rows = [read(card, rates_per_s[card]) for card in order]
    found = [told(setting(asked), rows[:k]) for k in range(len(rows) + 1)]
    for fewer, more in pairwise(found):
        if not more.disagree:
            assert more.rate_per_s.log_sd <= 1.001 * fewer.rate_per_s.log_sd


def test_the_cards_and_families_that_it_does_not_know_are_less_certain() -> None:
    known, new_card = (told(setting(card)).rate_per_s.log_sd for card in ("middle", "volta"))
    new_family = told(setting("middle", family="speech")).rate_per_s.log_sd
    assert new_card > 1.5 * known
    assert new_family > known
    assert new_family < told(setting("middle"), model=EMPTY).rate_per_s.log_sd


# ---- what a run on the very card does ----


@settings(deadline=None, max_examples=30)
@given(st.floats(0.5, 2), st.sampled_from(["small", "middle", "large"]))
def test_a_narrow_run_on_this_very_card_is_followed_closely(off: float, card: str) -> None:
    before = told(setting(card)).rate_per_s
    assume(abs(off - 1) > 0.05)
    after = told(setting(card), [read(card, before.value * off, log_sd=0.01)])
    assert after.rate_per_s.value == pytest.approx(before.value * off, rel=0.12)
    assert after.rate_per_s.log_sd < 0.8 * before.log_sd or after.disagree
    assert after.rate_per_s.basis == "measured"
    assert after.pull[0] > 0.8


def test_a_run_with_a_wide_interval_is_followed_little() -> None:
    before = told(setting("middle")).rate_per_s.value
    after = told(setting("middle"), [read("middle", 1.5 * before, log_sd=3.0)])
    assert after.rate_per_s.value == pytest.approx(before, rel=0.02)
    assert abs(after.pull[0]) < 0.05


def test_a_run_far_from_what_published_rows_say_widens_the_interval_and_says_so() -> None:
    model = fitted([*KIN, *(seen := [read("middle", 150.0)])])
    near, far = (told(setting("middle"), [read("middle", r, log_sd=0.01)], model, seen) for r in (155.0, 450.0))
    assert near.disagree == 0
    assert far.disagree > 0.05
    assert far.rate_per_s.log_sd > near.rate_per_s.log_sd
    assert DOUBT > 1


# ---- bounds ----


@settings(deadline=None, max_examples=40)
@given(st.floats(1, 1e6), st.sampled_from(["small", "large", "volta", "old"]), st.sampled_from(["train", "infer"]))
def test_no_answer_passes_the_data_sheet(rate: float, card: str, mode: str) -> None:
    found = told(setting(card, mode=mode), [read("middle", rate, mode=mode)])
    device = rates(CARDS[card], "amp")
    assert device is not None
    fewer = 1.0 if device.tensor else WINOGRAD
    least_s = ideal_seconds(work_of(JOB), device) * (1 / 3 if mode == "infer" else 1) / fewer
    assert found.rate_per_s.value <= (1 + 1e-9) / least_s
    assert 0 < found.limit <= 1


def test_a_measured_card_is_believed_beyond_its_data_sheet() -> None:
    """Winograd needs fewer multiplications: fp32 rows of VGG pass it."""
    found = told(setting("middle"), [read("middle", 9000.0)])
    assert found.limit == 1
    assert found.rate_per_s.value > 3000


# ---- networks that nobody counted ----


def uncounted(card: str, **changes: object) -> Setting:
    return setting(card, "mystery", work=None, **changes)


def test_a_network_that_nobody_counted_is_predicted_from_given_rows_alone() -> None:
    given = [Reading(setting=uncounted("small"), samples_per_s=5000.0)]
    found = told(uncounted("large"), given)
    assert 1.5 * 5000 < found.rate_per_s.value < 6 * 5000
    assert found.rate_per_s.log_sd < 1
    assert found.rate_per_s.basis == "predicted"


def test_a_network_that_nobody_counted_and_nobody_measured_is_refused() -> None:
    assert "nobody counted the work of mystery, and it was measured nowhere" in refused(uncounted("large"))


@settings(deadline=None, max_examples=30)
@given(st.floats(0.01, 100))
def test_without_counts_the_answer_scales_with_the_given_rates(scale: float) -> None:
    def rate(by: float) -> float:
        given = [Reading(setting=uncounted(c), samples_per_s=r * by) for c, r in (("small", 80.0), ("middle", 150.0))]
        return told(uncounted("large"), given).rate_per_s.value

    assert rate(scale) / rate(1.0) == pytest.approx(scale, rel=0.05)


@settings(deadline=None, max_examples=30)
@given(st.permutations(range(4)))
def test_the_order_of_the_given_rows_does_not_matter(order: list[int]) -> None:
    rows = [read(c, r) for c, r in (("small", 130.0), ("middle", 250.0), ("volta", 220.0))]
    rows.append(read("middle", 240.0, batch=128))
    plain, mixed = told(setting("large"), rows), told(setting("large"), [rows[i] for i in order])
    assert mixed.rate_per_s.value == pytest.approx(plain.rate_per_s.value, rel=1e-9)
    assert mixed.rate_per_s.log_sd == pytest.approx(plain.rate_per_s.log_sd, rel=1e-9)
    assert [mixed.pull[order.index(i)] for i in range(4)] == pytest.approx(plain.pull, abs=1e-9)


def test_what_is_told_multiplies_to_the_rate() -> None:
    for given_rows in ((), [read("small", 130.0)], [read("middle", 1e5)]):
        found = told(setting("large"), given_rows)
        product = found.nominal_per_s * found.limit
        for factor in found.factors.values():
            product *= factor
        assert product == pytest.approx(found.rate_per_s.value, rel=1e-9)


# ---- refusals ----


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (setting("tpu"), "does not run CUDA"),
        (setting("secret"), "no source gives the bandwidth or rates of SECRET"),
        (setting("volta", precision="bf16"), "no native bfloat16"),
        (setting("large", precision="fp8"), "fp8"),
    ],
)
def test_what_no_figure_carries_over_to_is_refused(asked: Setting, says: str) -> None:
    assert says in refused(asked, [read("middle", 200.0)])
    assert says in str(refusal(asked))


def test_refusals_stand_in_their_places_among_the_answers() -> None:
    found = answer(MODEL, [setting(card) for card in ("tpu", "middle", "secret", "large")])
    assert [isinstance(each, Told) for each in found] == [False, True, False, True]
    alone = told(setting("large"))
    assert isinstance(found[3], Told)
    assert found[3].rate_per_s.value == pytest.approx(alone.rate_per_s.value)


def test_a_device_that_cannot_be_modelled_is_as_fast_as_it_was_measured_at_the_nearest_batch() -> None:
    rows = [read("tpu", 100.0, batch=32), read("tpu", 140.0, batch=256, log_sd=0.08)]
    same = measured_apart(setting("tpu", batch=32), rows)
    other = measured_apart(setting("tpu", batch=512), rows)
    assert (same.rate_per_s.value, other.rate_per_s.value) == (100.0, 140.0)
    assert other.rate_per_s.log_sd > 1.5 * same.rate_per_s.log_sd
    assert same.pull == (1.0, 0.0)
    assert exp(same.rate_per_s.log_sd) < 1.2
