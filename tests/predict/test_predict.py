"""The predictor's face: order of trust, error budgets, refusals, variants, a person's own runs."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import ASSUMPTIONS, CARDS, JOB, evidence, on, row

from gpuwise.errors import Message
from gpuwise.model import Platform, Prediction, Refusal
from gpuwise.predict import Evidence, needed, predict, predict_many, predictor
from gpuwise.predict.roofline import FITTED, ideal_seconds, rates, seconds, work_of
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


@settings(deadline=None)
@given(RATES)
def test_a_row_of_the_job_on_that_card_is_the_answer(rate: float) -> None:
    answer = asked(on("middle"), evidence(row("job", "middle", rate)))
    assert answer.method == "measured"
    assert answer.throughput_per_s.value == pytest.approx(rate)
    assert answer.throughput_per_s.basis == "measured"


def test_a_row_under_another_name_of_the_job_counts_as_its_own() -> None:
    job = replace(JOB, measured_as=("resnet101",))
    assert asked(on("middle"), evidence(row("resnet101", "middle", 300.0)), job).method == "measured"


def test_a_row_on_another_card_moves_by_the_ratio_of_its_kin() -> None:
    known = evidence(row("job", "middle", 300.0), row("resnet50", "middle", 500.0), row("resnet50", "large", 1100.0))
    answer, by_sheets = asked(on("large"), known), asked(on("large"), evidence(row("job", "middle", 300.0)))
    assert answer.method == "ratio"
    assert by_sheets.throughput_per_s.value < answer.throughput_per_s.value < 300 * 1100 / 500  # one row is noisy
    assert "by what resnet50 reached beyond the data sheet" in words(answer)
    assert any(name == "ratio middle → large" for name, _ in answer.throughput_per_s.spread)


def test_the_more_kin_agree_the_nearer_the_ratio_is_to_theirs() -> None:
    rates = {"middle": 500.0, "large": 1100.0}
    runs = [row("resnet50", card, rate, batch_per_accelerator=64 + i) for card, rate in rates.items() for i in range(8)]
    answer = asked(on("large"), evidence(row("job", "middle", 300.0), *runs))
    assert answer.throughput_per_s.value == pytest.approx(300 * 1100 / 500, rel=0.05)


@settings(deadline=None)
@given(RATES, RATES, RATES)
def test_going_from_a_to_b_to_c_is_going_from_a_to_c(a: float, b: float, c: float) -> None:
    kin = (row("resnet50", "small", a), row("resnet50", "middle", b), row("resnet50", "large", c))
    direct = asked(on("large"), evidence(row("job", "small", 50.0), *kin)).throughput_per_s.value
    between = asked(on("middle"), evidence(row("job", "small", 50.0), *kin)).throughput_per_s.value
    via = asked(on("large"), evidence(row("job", "middle", between), *kin)).throughput_per_s.value
    limit = 1 / ideal_seconds(work_of(JOB), rates(CARDS["large"], "amp"))  # type: ignore[arg-type]
    assert via == pytest.approx(direct) or limit == pytest.approx(max(via, direct))


def test_without_kin_on_the_target_data_sheets_move_the_row_and_the_interval_is_wider() -> None:
    own = row("job", "middle", 300.0)
    kin = (row("resnet50", "middle", 500.0), row("resnet50", "large", 1100.0))
    by_specs, by_kin = asked(on("large"), evidence(own)), asked(on("large"), evidence(own, *kin))
    assert by_specs.method == "roofline"
    assert "from middle to large, moved by the data sheets of both" in words(by_specs)
    assert by_specs.throughput_per_s.log_sd > by_kin.throughput_per_s.log_sd


def test_a_job_without_a_row_starts_at_its_nearest_workload() -> None:
    answer = asked(on("middle"), evidence(row("resnet50", "middle", 500.0)))
    assert answer.method == "ratio"
    assert "from resnet50 to job, by counted work" in words(answer)
    assert 150 < answer.throughput_per_s.value < 400  # about half of ResNet-50, which has half of its work


def test_with_no_row_at_all_the_roofline_answers_with_a_wide_interval() -> None:
    answer = asked(on("middle"))
    on_card = rates(CARDS["middle"], "amp")
    assert on_card is not None
    assert answer.method == "roofline"
    assert answer.throughput_per_s.value == pytest.approx(1 / seconds(work_of(JOB), on_card, 64, FITTED))
    assert answer.throughput_per_s.log_sd > 0.2
    assert "no measured row" in words(answer)


def test_a_current_row_beats_every_other_path_and_an_old_one_may_lose() -> None:
    kin = [
        row("resnet50", card, rate, batch_per_accelerator=64 + i)
        for card, rate in (("middle", 500.0), ("large", 1100.0))
        for i in range(8)
    ]
    own = row("job", "middle", 300.0)
    here = row("job", "large", 700.0)
    old = replace(here, software="ngc-pytorch-1.4", batch_per_accelerator=2048)
    assert asked(on("large"), evidence(own, here, *kin)).throughput_per_s.value == pytest.approx(700)
    assert asked(on("large"), evidence(own, old, *kin)).method == "ratio"


def test_a_row_of_old_software_is_brought_to_the_current_by_kin_that_ran_under_both() -> None:
    old, new = "ngc-pytorch-1.7", "ngc-pytorch-2.3"
    kin = [row("resnet50", "middle", rate, software=v) for v, rate in ((old, 400.0), (new, 500.0))]
    answer = asked(on("middle"), evidence(row("job", "middle", 300.0, software=old), *kin))
    assert 305 < answer.throughput_per_s.value < 300 * 500 / 400
    assert "with PyTorch 2 instead of PyTorch 1.7 to 1.11" in words(answer)


@settings(deadline=None)
@given(st.floats(1, 1e5), st.sampled_from(["small", "middle", "large", "old", "volta"]))
def test_no_prediction_passes_the_ideal_roofline(rate: float, card: str) -> None:
    known = evidence(row("job", "middle", 300.0), row("resnet50", "middle", 1.0), row("resnet50", card, rate))
    job = replace(JOB, batch_per_accelerator=16)
    answer = asked(on(card), known, job)
    device = rates(CARDS[card], "amp")
    assert device is not None
    if answer.method != "measured":
        assert answer.throughput_per_s.value <= (1 + 1e-9) / ideal_seconds(work_of(job), device)


WIDER = {
    "another batch": {"batch_per_accelerator": 512},
    "another memory format": {"memory_format": "nhwc"},
    "old software": {"software": "ngc-pytorch-1.4"},
    "another framework": {"software": "tensorflow-2.5"},
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


def test_another_vendor_is_predicted_with_a_wide_interval() -> None:
    assert asked(on("radeon")).throughput_per_s.log_sd > 2 * asked(on("large")).throughput_per_s.log_sd


def test_uc_047_without_a_measurement_on_the_target_the_basis_and_the_range_say_so() -> None:
    known = evidence(row("job", "volta", 150.0))
    answer = asked(on("large"), known)
    interval = answer.throughput_per_s.interval()
    bandwidth = 150 * CARDS["large"].bandwidth_gb_per_s / CARDS["volta"].bandwidth_gb_per_s  # type: ignore[operator]
    assert "moved by the data sheets of both" in words(answer)
    assert answer.throughput_per_s.value != pytest.approx(bandwidth, rel=0.02)
    assert interval.high / interval.low > 1.4


def test_uc_048_a_half_precision_result_does_not_carry_over_to_a_card_without_tensor_cores() -> None:
    """79 s in half precision on V100 (24 epochs of 50,000 images); a GTX 1080 Ti took about four minutes, and the ratio
    of fp32 rates says 110 s. The network: 0.377 GMAC, 0.38 M activations, 6.6 M parameters in nine layers."""
    cards, rows = package.accelerators(), package.throughput()
    tiny = {"gmacs": 0.377, "activations_m": 0.38, "parameters_m": 6.6, "operations": 9}
    fast = replace(JOB, name="fast", batch_per_accelerator=512, samples=50_000, epochs=24.0, **tiny)
    own = row("fast", "v100-sxm2-16gb", fast.total_samples / 79, batch_per_accelerator=512)
    known = Evidence.of((*rows, own), cards, package.counts())
    answer = predict(fast, Platform(variants=(cards["gtx-1080-ti"],)), known, package.assumptions())
    assert isinstance(answer, Prediction)
    interval = answer.throughput_per_s.interval()
    assert fast.total_samples / interval.high < 240 < fast.total_samples / interval.low
    assert "no tensor cores" in words(answer)


def test_uc_056_a_card_that_is_in_no_table_is_not_replaced_by_a_similar_one() -> None:
    unknown = replace(CARDS["middle"], id="b300x", name="B300X", bandwidth_gb_per_s=None, fp16_tflops=None)
    answer = predict(JOB, Platform(variants=(unknown,)), evidence(row("job", "middle", 300.0)), ASSUMPTIONS)
    assert isinstance(answer, Refusal)
    assert "B300X" in str(answer.reason)


def test_uc_059_a_reference_row_with_another_batch_widens_the_range_and_is_named() -> None:
    known = evidence(row("job", "middle", 300.0, batch_per_accelerator=256, software=None))
    answer = asked(on("middle"), known)
    assert "batch 256, software not stated" in words(answer)
    assert "batch differs" in dict(answer.throughput_per_s.spread)


# ---- variants ----


def test_an_offer_that_may_be_two_cards_gets_a_range_over_both() -> None:
    known = evidence(row("job", "small", 100.0), row("job", "large", 400.0))
    answer = asked(on("small", "large"), known)
    assert answer.throughput_per_s.value == pytest.approx(200.0)
    assert "does not say which of small, large" in words(answer)


@settings(deadline=None)
@given(RATES, RATES)
def test_the_range_over_variants_contains_each_of_them(a: float, b: float) -> None:
    known = evidence(row("job", "small", a), row("job", "large", b))
    whole = asked(on("small", "large"), known).throughput_per_s.interval()
    for rate in (a, b):
        assert whole.low <= rate * (1 + 1e-9)
        assert whole.high >= rate * (1 - 1e-9)


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
    rates = [v["rate"] for v in values if "rate" in v]
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
def test_row_times_all_factors_is_the_answer(name: str, n: int) -> None:
    cards, workload = package.accelerators(), package.workloads()[name]
    known = Evidence.of(package.throughput(), cards, package.counts())
    one_of_two = Platform(variants=(cards["a100-sxm4-80gb"], cards["a100-pcie-80gb"]), per_node=n)
    platforms = [*(Platform(variants=(cards[place],), per_node=n) for place in PLACES), one_of_two]
    for answer in predict_many(workload, platforms, known, package.assumptions()):
        if isinstance(answer, Prediction):
            assert said(answer) == pytest.approx(answer.throughput_per_s.value, rel=1e-9), words(answer)


def test_every_factor_is_shown_in_its_line() -> None:
    old = row("job", "middle", 300.0, batch_per_accelerator=256, software="ngc-pytorch-1.7")
    answer = asked(on("large", n=4), evidence(old, row("resnet50", "large", 1100.0)))
    factors = [line for line in answer.evidence if "factor" in line.values]
    assert len(factors) == 5  # software, batch, data sheets, kin, four of them
    assert all(str(line).startswith("× ") for line in factors)


# ---- the face ----


def test_many_platforms_are_answered_in_order_and_as_one_by_one() -> None:
    known = evidence(row("job", "middle", 300.0))
    platforms = [on("small"), on("tpu"), on("middle", n=2), on("small"), on("small", "large")]
    assert predict_many(JOB, platforms, known, ASSUMPTIONS) == [
        predict(JOB, platform, known, ASSUMPTIONS) for platform in platforms
    ]


def test_a_predictor_remembers_a_workload_but_not_its_older_self() -> None:
    answer = predictor(evidence(), ASSUMPTIONS)
    first = answer(JOB, [on("middle")])
    assert answer(JOB, [on("middle")])[0] is first[0]
    assert answer(replace(JOB, gmacs=2 * JOB.gmacs), [on("middle")]) != first


def test_the_rows_a_workload_needs_are_enough() -> None:
    """Reading only these rows changes nothing."""
    cards, counts, assumptions = package.accelerators(), package.counts(), package.assumptions()
    platforms = [Platform(variants=(card,), per_node=n) for card in cards.values() for n in (1, 4)]
    for workload in package.workloads().values():
        some = Evidence.of(package.throughput(needed(workload)), cards, counts)
        everything = Evidence.of(package.throughput(), cards, counts)
        assert predict_many(workload, platforms, some, assumptions) == predict_many(
            workload, platforms, everything, assumptions
        )


def test_without_named_neighbours_all_rows_are_needed() -> None:
    assert needed(replace(JOB, nearest=())) is None


def test_a_workload_without_named_neighbours_finds_its_twin_by_counts() -> None:
    counts = {"twin": replace(work_of(JOB), gmacs=7.9)}
    known = evidence(row("twin", "middle", 310.0), row("resnet50", "middle", 500.0), counts=counts)
    answer = asked(on("middle"), known, replace(JOB, nearest=()))
    assert "from twin to job, by counted work" in words(answer)


def test_advice_names_the_card_and_what_a_measurement_would_bring() -> None:
    advice = asked(on("middle")).advice
    assert isinstance(advice, Message)
    assert "Run job for a few minutes on one MIDDLE" in str(advice)


def test_every_built_in_workload_has_an_answer_on_every_card_that_trains() -> None:
    """Each prediction is finite, has a budget, evidence and advice; each refusal a reason."""
    cards, assumptions = package.accelerators(), package.assumptions()
    known = Evidence.of(package.throughput(), cards, package.counts())
    for workload in package.workloads().values():
        for card in cards.values():
            answer = predict(workload, Platform(variants=(card,)), known, assumptions)
            if isinstance(answer, Refusal):
                assert str(answer.reason)
            else:
                assert answer.evidence
                assert str(answer.advice)
                assert 0.03 < answer.throughput_per_s.log_sd < 1
