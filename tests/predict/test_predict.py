"""The predictor's face: what it trusts, error budgets, refusals, variants, evidence that adds up."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import ASSUMPTIONS, CARDS, COUNTS, JOB, evidence, fitted, on, row

from gpuwise.errors import Message
from gpuwise.estimate import Estimate
from gpuwise.model import BenchmarkResult, Platform, Prediction, Refusal
from gpuwise.predict import Evidence, needed, predict, predict_many, predictor
from gpuwise.predict.answer import WINOGRAD
from gpuwise.predict.roofline import NOMINAL, ideal_seconds, rates, seconds, work_of
from gpuwise.predict.rows import readings
from gpuwise.store import package

NOTHING = evidence()
RATES = st.floats(20, 400)


def asked(platform: Platform, known: Evidence = NOTHING, job=JOB) -> Prediction:  # type: ignore[no-untyped-def]
    answer = predict(job, platform, known, ASSUMPTIONS)
    assert isinstance(answer, Prediction), answer
    return answer


def refused(platform: Platform, known: Evidence = NOTHING, job=JOB) -> Refusal:  # type: ignore[no-untyped-def]
    answer = predict(job, platform, known, ASSUMPTIONS)
    assert isinstance(answer, Refusal), answer
    return answer


def words(prediction: Prediction) -> str:
    return " | ".join(str(line) for line in prediction.evidence)


@settings(deadline=None, max_examples=30)
@given(RATES)
def test_a_row_of_the_job_on_that_card_is_nearly_the_answer(rate: float) -> None:
    answer = asked(on("middle"), evidence(row("job", "middle", rate)))
    assert answer.method == "measured"
    assert answer.throughput_per_s.value == pytest.approx(rate, rel=0.08)
    assert answer.throughput_per_s.basis == "measured"


def test_a_row_under_another_name_of_the_job_counts_as_its_own() -> None:
    job = replace(JOB, measured_as=("resnet101",))
    counts = {"resnet101": work_of(JOB)}
    answer = asked(on("middle"), evidence(row("resnet101", "middle", 150.0), counts=counts), job)
    assert answer.method == "measured"
    assert answer.throughput_per_s.value == pytest.approx(150, rel=0.05)


def test_the_names_of_torchvision_and_a_stated_size_are_the_same_network() -> None:
    counts = {name: work_of(JOB) for name in ("tv_job", "job@224")}
    for name in counts:
        answer = asked(on("middle"), evidence(row(name, "middle", 150.0), counts=counts))
        assert answer.throughput_per_s.value == pytest.approx(150, rel=0.05), name


def rate_with(*rows: BenchmarkResult, card: str = "large") -> Estimate:
    return asked(on(card), evidence(*rows)).throughput_per_s


def test_a_row_on_another_card_moves_by_what_its_kin_did_between_the_two() -> None:
    own, kin = row("job", "middle", 300.0), (row("resnet50", "middle", 500.0),)
    slow, fast = (rate_with(own, *kin, row("resnet50", "large", rate)) for rate in (700.0, 1400.0))
    assert asked(on("large"), evidence(own, *kin)).method == "ratio"
    assert slow.value * 1.2 < fast.value < slow.value * 2
    assert fast.log_sd < rate_with(own).log_sd


@pytest.mark.parametrize("rate", [700.0, 900.0, 1300.0])
def test_the_more_kin_agree_the_nearer_the_ratio_is_to_theirs(rate: float) -> None:
    rates = {"middle": 500.0, "large": rate}
    runs = [row("resnet50", card, r, batch_per_accelerator=64 + i) for card, r in rates.items() for i in range(8)]
    one, many = (rate_with(row("job", "middle", 300.0), *kin).value for kin in (runs[::8], runs))
    theirs = 300 * rate / 500
    assert many == pytest.approx(theirs, rel=0.12)
    assert abs(many - theirs) <= abs(one - theirs) + 0.02 * theirs


def test_a_job_without_a_row_is_as_fast_as_its_kin_by_counted_work() -> None:
    plain, faster = (rate_with(row("resnet50", "middle", rate), card="middle") for rate in (500.0, 1000.0))
    assert 150 < plain.value < 400  # about half of ResNet-50, which has half of its work
    assert 1.3 < faster.value / plain.value < 2
    assert plain.log_sd < asked(on("middle")).throughput_per_s.log_sd


def test_with_no_row_at_all_the_roofline_answers_with_a_wide_interval() -> None:
    answer = asked(on("middle"))
    on_card = rates(CARDS["middle"], "amp")
    assert on_card is not None
    assert answer.method == "roofline"
    assert answer.throughput_per_s.value == pytest.approx(1 / seconds(work_of(JOB), on_card, 64, NOMINAL))
    assert answer.throughput_per_s.log_sd > 0.4
    assert "by counted work on the data sheet of MIDDLE" in words(answer)


def test_a_current_row_counts_more_than_an_old_one() -> None:
    kin = [
        row("resnet50", card, rate, batch_per_accelerator=64 + i)
        for card, rate in (("middle", 500.0), ("large", 1100.0))
        for i in range(8)
    ]
    own, here = row("job", "middle", 300.0), row("job", "large", 900.0)
    old = replace(here, software="ngc-pytorch-1.4", batch_per_accelerator=2048)
    assert rate_with(own, here, *kin).value == pytest.approx(900, rel=0.06)
    assert rate_with(own, old, *kin).value < 800


def test_a_row_of_old_software_is_brought_to_the_current_by_kin_that_ran_under_both() -> None:
    old, new = "ngc-pytorch-1.7", "ngc-pytorch-2.3"
    kin = [row("resnet50", "middle", rate, software=v) for v, rate in ((old, 400.0), (new, 500.0))]
    own = row("job", "middle", 300.0, software=old)
    assert 300 * 1.08 < rate_with(own, *kin, card="middle").value < 300 * 1.25
    assert rate_with(own, card="middle").value == pytest.approx(300, rel=0.06)


def test_more_measured_cards_make_the_interval_narrower() -> None:
    other = replace(CARDS["middle"], id="other", name="OTHER", bandwidth_gb_per_s=1200.0, fp16_tflops=200.0)
    rows = (row("job", "small", 130.0), row("job", "middle", 300.0), row("job", "large", 600.0))
    sds = []
    for k in range(4):
        answer = asked(Platform(variants=(other,)), evidence(*rows[:k]))
        sds.append(answer.throughput_per_s.log_sd)
    assert sds[3] < sds[2] < sds[1] < 0.6 * sds[0]


@settings(deadline=None, max_examples=40)
@given(st.floats(1, 1e5), st.sampled_from(["small", "middle", "large", "old", "volta"]))
def test_no_prediction_passes_the_ideal_roofline(rate: float, card: str) -> None:
    known = evidence(row("job", "middle", rate), row("resnet50", "middle", 1.0), row("resnet50", card, rate))
    job = replace(JOB, batch_per_accelerator=16)
    answer = asked(on(card), known, job)
    device = rates(CARDS[card], "amp")
    assert device is not None
    if answer.method != "measured":
        fewer = 1.0 if device.tensor else WINOGRAD
        assert answer.throughput_per_s.value <= (1 + 1e-9) * fewer / ideal_seconds(work_of(job), device)


def test_a_prediction_at_the_ideal_roofline_says_so() -> None:
    """And its factors still multiply to the rate."""
    answer = asked(on("large"), evidence(row("job", "middle", 1e5)))
    device = rates(CARDS["large"], "amp")
    assert device is not None
    assert answer.throughput_per_s.value == pytest.approx(1 / ideal_seconds(work_of(JOB), device))
    assert "no faster than the data sheet of LARGE allows" in words(answer)
    assert said(answer) == pytest.approx(answer.throughput_per_s.value)


WIDER = {
    "another batch": {"batch_per_accelerator": 512},
    "another memory format": {"memory_format": "nhwc"},
    "old software": {"software": "ngc-pytorch-1.4"},
    "another framework": {"software": "tensorflow-2.5"},
    "another precision": {"precision": "tf32"},
}


@pytest.mark.parametrize("why", WIDER)
def test_a_row_unlike_the_job_has_a_wider_interval(why: str) -> None:
    job = replace(JOB, memory_format="nchw")
    like = row("job", "middle", 300.0, memory_format="nchw")
    unlike = replace(like, **WIDER[why])  # type: ignore[arg-type]
    plain, wide = (asked(on("middle"), evidence(r), job).throughput_per_s.log_sd for r in (like, unlike))
    assert wide > plain * 1.1


def test_two_cards_predicted_from_one_row_share_its_errors() -> None:
    """So that the probability that one of them is cheaper is not washed out by what they have in common."""
    known = evidence(
        row("job", "middle", 300.0),
        *(row("resnet50", card, rate) for card, rate in (("small", 250.0), ("middle", 500.0), ("large", 1100.0))),
    )
    small, large = (asked(on(card), known).throughput_per_s for card in ("small", "large"))
    assert (large / small).log_sd < 0.85 * hypot(large.log_sd, small.log_sd)


REFUSALS = [
    ("tpu", JOB, "no_prediction", "does not run CUDA"),
    ("secret", JOB, "no_prediction", "no source gives"),
    ("volta", replace(JOB, precision="bf16"), "no_prediction", "no native bfloat16"),
    ("large", replace(JOB, precision="fp8"), "no_prediction", "fp8"),
    ("old", replace(JOB, batch_per_accelerator=512), "does_not_fit", "GiB"),
]


@pytest.mark.parametrize(("card", "job", "rule", "says"), REFUSALS, ids=[f"{r[0]} {r[3]}" for r in REFUSALS])
def test_what_cannot_be_predicted_is_refused_with_its_reason(card, job, rule, says) -> None:  # type: ignore[no-untyped-def]
    answer = refused(on(card), job=job)
    assert answer.rule == rule
    assert says in str(answer.reason)


@pytest.mark.parametrize("card", ["tpu", "secret"])
def test_a_device_that_cannot_be_modelled_is_answered_by_its_own_rows(card: str) -> None:
    answer = asked(on(card), evidence(row("job", card, 123.0)))
    assert (answer.method, answer.throughput_per_s.value) == ("measured", pytest.approx(123.0))


def test_another_vendor_is_predicted_with_a_wider_interval() -> None:
    known = evidence(row("job", "middle", 300.0))
    assert asked(on("radeon"), known).throughput_per_s.log_sd > 1.5 * asked(on("large"), known).throughput_per_s.log_sd


V100_TO_A100 = 1555 / 900
"""Ratio of their memory bandwidths: the rule that a spreadsheet would use."""


def test_uc_047_without_a_measurement_on_the_target_the_basis_and_the_range_say_so() -> None:
    cards = package.accelerators()
    volta, target = (cards[name] for name in ("v100-sxm2-16gb", "a100-sxm4-40gb"))
    rows = [row("job", volta.id, 150.0), row("job", target.id, 260.0)]

    def answer(k: int) -> Prediction:
        model = fitted(readings(rows[:k], cards, COUNTS))
        known = Evidence.of(rows[:k], cards, model)
        return asked(Platform(variants=(target,)), known)

    one, both = answer(1), answer(2)
    interval = one.throughput_per_s.interval()
    assert (one.method, one.throughput_per_s.basis) == ("ratio", "predicted")
    assert interval.low < 150 * V100_TO_A100 < interval.high
    assert interval.high / interval.low > 1.4
    assert one.throughput_per_s.log_sd > 2 * both.throughput_per_s.log_sd
    assert (both.method, both.throughput_per_s.basis) == ("measured", "measured")
    assert "measured on 1 × v100-sxm2-16gb" in words(one)


def test_uc_048_a_half_precision_result_does_not_carry_over_to_a_card_without_tensor_cores() -> None:
    """79 s in half precision on V100 (24 epochs of 50,000 images); a GTX 1080 Ti took about four minutes, and the ratio
    of fp32 rates says 110 s. The network: 0.377 GMAC, 0.38 M activations, 6.6 M parameters in nine layers."""
    cards, rows = package.accelerators(), package.throughput()
    tiny = {"gmacs": 0.377, "activations_m": 0.38, "parameters_m": 6.6, "operations": 9}
    fast = replace(JOB, name="fast", batch_per_accelerator=512, samples=50_000, epochs=24.0, **tiny)
    own = row("fast", "v100-sxm2-16gb", fast.total_samples / 79, batch_per_accelerator=512)
    known = Evidence.of((*rows, own), cards, package.model())
    answer = predict(fast, Platform(variants=(cards["gtx-1080-ti"],)), known, package.assumptions())
    assert isinstance(answer, Prediction)
    interval = answer.throughput_per_s.interval()
    assert fast.total_samples / interval.high < 1.05 * 240  # about four minutes
    assert fast.total_samples / interval.low > 0.95 * 240
    assert fast.total_samples / interval.value > 1.5 * 110
    assert "no tensor cores" in words(answer)


def test_uc_056_a_card_that_is_in_no_table_is_not_replaced_by_a_similar_one() -> None:
    unknown = replace(CARDS["middle"], id="b300x", name="B300X", bandwidth_gb_per_s=None, fp16_tflops=None)
    answer = predict(JOB, Platform(variants=(unknown,)), evidence(row("job", "middle", 300.0)), ASSUMPTIONS)
    assert isinstance(answer, Refusal)
    assert "B300X" in str(answer.reason)


@pytest.mark.parametrize(
    ("unlike", "says"),
    [
        ({"batch_per_accelerator": 512}, "(amp, batch 512, ngc-pytorch-2.3; test)"),
        ({"precision": "tf32"}, "(tf32, batch 64, ngc-pytorch-2.3; test)"),
        ({"precision": "tf32", "batch_per_accelerator": 32}, "(tf32, batch 32, ngc-pytorch-2.3; test)"),
    ],
)
def test_uc_059_a_reference_row_with_another_batch_or_precision_widens_the_range_and_is_named(
    unlike: dict[str, object], says: str
) -> None:
    like = row("job", "middle", 300.0)
    answer, plain = asked(on("large"), evidence(replace(like, **unlike))), asked(on("large"), evidence(like))  # type: ignore[arg-type]
    assert answer.throughput_per_s.log_sd > 1.1 * plain.throughput_per_s.log_sd
    assert says in words(answer)


def test_uc_059_software_that_nobody_states_is_said_to_be_unknown() -> None:
    assert "batch 64, software not stated" in words(
        asked(on("middle"), evidence(row("job", "middle", 300.0, software=None)))
    )


# ---- variants ----


def test_an_offer_that_may_be_two_cards_gets_a_range_over_both() -> None:
    known = evidence(row("job", "small", 100.0), row("job", "large", 400.0))
    answer = asked(on("small", "large"), known)
    assert answer.throughput_per_s.value == pytest.approx(200.0, rel=0.05)
    assert "does not say which of small, large" in words(answer)


@settings(deadline=None, max_examples=30)
@given(RATES, RATES)
def test_the_range_over_variants_contains_each_of_them(a: float, b: float) -> None:
    known = evidence(row("job", "small", a), row("job", "large", b))
    whole = asked(on("small", "large"), known).throughput_per_s.interval()
    for card in ("small", "large"):
        each = asked(on(card), known).throughput_per_s.value
        assert whole.low <= each * (1 + 1e-9)
        assert whole.high >= each * (1 - 1e-9)


def test_a_variant_on_which_the_job_does_not_fit_is_named_and_left_out_of_the_range() -> None:
    job = replace(JOB, batch_per_accelerator=512)
    answer = asked(on("old", "large"), job=job)
    assert "left out of the range: old" in words(answer)
    assert answer.throughput_per_s.value == pytest.approx(asked(on("large"), job=job).throughput_per_s.value)


def test_an_offer_whose_every_variant_is_refused_is_refused() -> None:
    assert refused(on("tpu", "secret")).rule == "no_prediction"


# ---- the evidence adds up ----


def said(prediction: Prediction) -> float:
    """What a reader gets who multiplies the evidence line by line."""
    values = [line.values for line in prediction.evidence]
    rates = [v["rate"] for v in values if "rate" in v and "model" not in v]
    assert len(rates) == 1
    return float(prod((rates[0], *(v["factor"] for v in values if "factor" in v))))  # type: ignore[arg-type]


PLACES = (
    "h100-nvl-94gb",
    "h100-sxm5-80gb",
    "a100-sxm4-40gb",
    "v100-pcie-16gb",
    "rtx-3090",
    "gtx-1080-ti",
    "t4",
    "b200",
)


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("name", package.workloads())
def test_the_roofline_times_all_factors_is_the_answer(name: str, n: int) -> None:
    cards, workload = package.accelerators(), package.workloads()[name]
    known = Evidence.of(package.throughput(), cards, package.model())
    one_of_two = Platform(variants=(cards["a100-sxm4-80gb"], cards["a100-pcie-80gb"]), per_node=n)
    platforms = [*(Platform(variants=(cards[place],), per_node=n) for place in PLACES), one_of_two]
    for answer in predict_many(workload, platforms, known, package.assumptions()):
        if isinstance(answer, Prediction):
            assert said(answer) == pytest.approx(answer.throughput_per_s.value, rel=1e-9), words(answer)


def test_every_factor_is_shown_in_its_line() -> None:
    old = row("job", "middle", 300.0, batch_per_accelerator=256, software="ngc-pytorch-1.7")
    answer = asked(on("large", n=4), evidence(old, row("resnet50", "large", 1100.0)))
    factors = [line for line in answer.evidence if "factor" in line.values]
    assert len(factors) == 7  # data sheet, architecture, card, network, software, the job's own rows, four of them
    assert all(str(line).startswith("× ") for line in factors)


def measured(prediction: Prediction) -> list[object]:
    """Cards of the measured rows that are named, in their order."""
    return [line.values["accelerator"] for line in prediction.evidence if "model" in line.values]


def test_the_measured_row_that_the_answer_follows_most_is_named_first() -> None:
    known = evidence(
        *(row("job", card, rate) for card, rate in (("small", 130.0), ("middle", 300.0), ("large", 600.0)))
    )
    for card in ("small", "middle", "large"):
        assert measured(asked(on(card), known))[0] == card


def test_a_row_that_cannot_be_used_is_not_named_in_place_of_another() -> None:
    known = evidence(row("job", "secret", 500.0), row("job", "middle", 300.0))
    assert measured(asked(on("large"), known)) == ["middle"]


# ---- the face ----


def test_many_platforms_are_answered_in_order_and_as_one_by_one() -> None:
    known = evidence(row("job", "middle", 300.0))
    platforms = [on("small"), on("tpu"), on("middle", n=2), on("small"), on("small", "large")]
    together = predict_many(JOB, platforms, known, ASSUMPTIONS)
    for answer, platform in zip(together, platforms, strict=True):
        assert alike(answer, predict(JOB, platform, known, ASSUMPTIONS))
    assert together[0] is together[3]


def test_a_predictor_remembers_a_workload_but_not_its_older_self() -> None:
    answer = predictor(evidence(), ASSUMPTIONS)
    first = answer(JOB, [on("middle")])
    assert answer(JOB, [on("middle")])[0] is first[0]
    assert answer(replace(JOB, gmacs=2 * JOB.gmacs), [on("middle")]) != first


def alike(one: Prediction | Refusal, other: Prediction | Refusal) -> bool:
    """The same but for the last digits: sums over other cards beside it may round otherwise."""
    if isinstance(one, Refusal) or isinstance(other, Refusal):
        return one == other
    rates = (one.throughput_per_s, other.throughput_per_s)
    return (
        (one.platform, one.accelerators, one.method) == (other.platform, other.accelerators, other.method)
        and rates[0].value == pytest.approx(rates[1].value, rel=1e-9)
        and dict(rates[0].spread) == pytest.approx(dict(rates[1].spread), rel=1e-4, abs=1e-5)
    )


@pytest.mark.parametrize("name", package.workloads())
def test_the_rows_a_workload_needs_are_enough(name: str) -> None:
    """Reading only these rows changes nothing."""
    cards, assumptions, workload = package.accelerators(), package.assumptions(), package.workloads()[name]
    platforms = [Platform(variants=(card,), per_node=n) for card in cards.values() for n in (1, 4)]
    some = Evidence.of(package.throughput(needed(workload)), cards, package.model())
    everything = Evidence.of(package.throughput(), cards, package.model())
    answers = (predict_many(workload, platforms, known, assumptions) for known in (some, everything))
    assert all(alike(one, other) for one, other in zip(*answers, strict=True))


def test_advice_names_the_card_and_what_a_measurement_would_bring() -> None:
    advice = asked(on("middle")).advice
    assert isinstance(advice, Message)
    assert "Run job for a few minutes on one MIDDLE" in str(advice)


def test_every_built_in_workload_has_an_answer_on_every_card_that_trains() -> None:
    """Each prediction is finite, has a budget, evidence and advice; each refusal a reason."""
    cards, assumptions = package.accelerators(), package.assumptions()
    known = Evidence.of(package.throughput(), cards, package.model())
    platforms = [Platform(variants=(card,)) for card in cards.values()]
    for workload in package.workloads().values():
        for answer in predict_many(workload, platforms, known, assumptions):
            if isinstance(answer, Refusal):
                assert str(answer.reason)
            else:
                assert answer.evidence
                assert str(answer.advice)
                assert 0.02 < answer.throughput_per_s.log_sd < 2
