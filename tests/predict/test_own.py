"""A person's own runs: they are the answer, they say how the job is run, and they never make the answer worse."""

from __future__ import annotations

from dataclasses import replace
from math import hypot

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import ASSUMPTIONS, JOB, evidence, on, row

from gpuwise.estimate import Interval
from gpuwise.model import Measurement, Platform, Prediction
from gpuwise.predict import Evidence, predict, predict_many
from gpuwise.predict.gp import SETUP_SD
from gpuwise.store import package


def run(**changes: object) -> Measurement:
    usual = Measurement(
        created_utc="2026-11-30T12:00:00Z",
        workload="job",
        device="gpu",
        accelerator="middle",
        accelerators=1,
        precision="amp",
        batch_per_accelerator=64,
        samples_per_s=Interval(value=320.0, low=310.0, high=330.0),
        software={"torch": "2.6.0"},
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def asked(platform: Platform, known: Evidence, job=JOB) -> Prediction:  # type: ignore[no-untyped-def]
    answer = predict(job, platform, known, ASSUMPTIONS)
    assert isinstance(answer, Prediction), answer
    return answer


def words(prediction: Prediction) -> str:
    return " | ".join(str(line) for line in prediction.evidence)


def test_a_persons_own_run_counts_more_than_the_table() -> None:
    known = evidence(row("job", "middle", 280.0), measurements=(run(),))
    answer = asked(on("middle"), known)
    assert answer.method == "measured"
    assert answer.throughput_per_s.value == pytest.approx(320.0, rel=0.03)
    assert "your own run" in words(answer)
    assert "your own run" in str(answer.advice)


def test_the_interval_of_an_own_run_is_part_of_the_budget() -> None:
    loose = run(samples_per_s=Interval(value=320.0, low=200.0, high=512.0))
    tight, wide = (asked(on("middle"), evidence(measurements=(r,))).throughput_per_s.log_sd for r in (run(), loose))
    assert wide > 2 * tight


def test_a_run_on_a_cpu_says_nothing_about_the_speed_of_a_gpu() -> None:
    known = evidence(measurements=(run(device="cpu", accelerator=None),))
    assert asked(on("middle"), known) == asked(on("middle"), evidence())


def test_a_run_on_four_cards_is_the_answer_for_four_and_tells_about_one() -> None:
    known = evidence(measurements=(run(accelerators=4, samples_per_s=Interval(value=1200.0, low=1190.0, high=1210.0)),))
    eight, four, one = (asked(on("middle", n=n), known) for n in (8, 4, 1))
    assert (four.method, four.throughput_per_s.value) == ("measured", pytest.approx(1200.0, rel=0.03))
    assert 300 < one.throughput_per_s.value < 340, "alone it does not wait for the others"
    assert 1800 < eight.throughput_per_s.value < 2 * four.throughput_per_s.value
    assert eight.throughput_per_s.log_sd > four.throughput_per_s.log_sd
    assert "your own run had 4 of MIDDLE" in words(four)


# ---- the job as it was run ----

ASSUMED = replace(JOB, memory_format="nchw", assumed={"batch_per_accelerator": "usual"})


def test_a_run_says_in_which_memory_format_and_at_which_batch_the_job_runs() -> None:
    known = evidence(measurements=(run(memory_format="nhwc", batch_per_accelerator=128, compiled=True),))
    answer = asked(on("middle"), known, ASSUMED)
    assert answer.throughput_per_s.value == pytest.approx(320.0, rel=0.03)
    assert (
        answer.throughput_per_s.log_sd
        < 1.1 * asked(on("middle"), evidence(measurements=(run(),))).throughput_per_s.log_sd
    )
    for note in ("memory format nhwc", "batch 128", "a compiled model"):
        assert f"predicted for {note}, as in your own run" in words(answer)


def test_on_other_cards_the_job_is_predicted_as_it_was_run() -> None:
    known = evidence(measurements=(run(batch_per_accelerator=128),))
    answer = asked(on("large"), known, ASSUMED)
    assert "batch 128, as in your own run" in words(answer)
    at_64 = asked(on("large"), known, replace(ASSUMED, assumed={}))
    assert answer.throughput_per_s.log_sd < at_64.throughput_per_s.log_sd


def test_a_batch_that_the_person_states_stays() -> None:
    known = evidence(measurements=(run(batch_per_accelerator=128, memory_format="nchw"),))
    stated, as_run = asked(on("middle"), known, replace(ASSUMED, assumed={})), asked(on("middle"), known, ASSUMED)
    assert "predicted for batch" not in words(stated)
    assert "(amp, batch 128, nchw, torch-2.6.0; your own run)" in words(stated)
    assert stated.throughput_per_s.log_sd > 1.1 * as_run.throughput_per_s.log_sd


def test_the_newest_run_says_how_the_job_runs() -> None:
    runs = (
        run(created_utc="2026-11-02T08:00:00Z", batch_per_accelerator=256),
        run(created_utc="2026-11-01T08:00:00Z", batch_per_accelerator=32),
    )
    assert "batch 256, as in your own run" in words(asked(on("middle"), evidence(measurements=runs), ASSUMED))


def test_what_is_asked_runs_with_the_software_of_the_run() -> None:
    old, new = (asked(on("middle"), evidence(measurements=(run(software={"torch": v}),))) for v in ("1.7", "2.6"))
    assert old.throughput_per_s.value == pytest.approx(new.throughput_per_s.value, rel=0.02)
    assert "predicted for PyTorch 1.7, as in your own run" in words(old)


# ---- never worse than without it ----


@settings(deadline=None, max_examples=40)
@given(st.floats(1.001, 4), st.sampled_from([None, "nchw", "nhwc"]), st.floats(0.8, 1.25))
def test_a_run_that_agrees_hardly_makes_the_interval_wider(spread: float, form: str | None, off: float) -> None:
    table = row("job", "middle", 300.0, memory_format="nchw")
    value = 300.0 * off
    mine = run(samples_per_s=Interval(value=value, low=value / spread, high=value * spread), memory_format=form)
    job = replace(JOB, memory_format="nchw")
    without = asked(on("middle"), evidence(table), job).throughput_per_s
    within = asked(on("middle"), evidence(table, measurements=(mine,)), job)
    if "disagree" not in words(within) and form != "nhwc":
        assert within.throughput_per_s.log_sd <= hypot(without.log_sd, SETUP_SD), "but for the doubt about the set-up"


@settings(deadline=None, max_examples=40)
@given(st.floats(150, 600), st.sampled_from(["small", "middle", "large"]))
def test_a_narrow_run_on_the_very_card_is_followed_closely(rate: float, card: str) -> None:
    mine = run(accelerator=card, samples_per_s=Interval(value=rate, low=0.99 * rate, high=1.01 * rate))
    answer = asked(on(card), evidence(row("job", "middle", 300.0), measurements=(mine,)))
    assert answer.throughput_per_s.value == pytest.approx(rate, rel=0.12)


def test_a_run_less_exact_than_the_tables_moves_them_little() -> None:
    loose = run(samples_per_s=Interval(value=400.0, low=250.0, high=640.0))
    alone, both = (asked(on("middle"), evidence(row("job", "middle", 300.0), measurements=m)) for m in ((), (loose,)))
    assert alone.throughput_per_s.value < both.throughput_per_s.value < 1.06 * alone.throughput_per_s.value
    assert "400 samples/s of job measured on 1 × middle (amp, batch 64, torch-2.6.0; your own run)" in words(both)


def test_a_run_that_no_table_agrees_with_is_followed_with_a_wider_interval() -> None:
    known = evidence(row("job", "middle", 150.0), measurements=(run(),))
    agreed = asked(on("middle"), evidence(row("job", "middle", 315.0), measurements=(run(),)))
    answer = asked(on("middle"), known)
    assert answer.throughput_per_s.value == pytest.approx(320.0, rel=0.1)
    assert answer.throughput_per_s.log_sd > 1.2 * agreed.throughput_per_s.log_sd
    assert "your runs disagree with each other, or with the published rows" in words(answer)
    assert "your run and published rows disagree" in dict(answer.throughput_per_s.spread)
    assert "150 samples/s of job measured on 1 × middle" in words(answer)


def test_the_example_of_the_manual_makes_no_answer_worse() -> None:
    """docs/reference/files.md: painter-heavy on an RTX 4090, channels last, 812 images/s. Two per cent of room: a job
    that is faster than was thought waits longer for its launches on the other cards."""
    cards, heavy = package.accelerators(), package.workloads()["painter-heavy"]
    interval = Interval(value=812.0, low=796.0, high=828.0)
    mine = run(workload="painter-heavy", accelerator="rtx-4090", memory_format="nhwc", samples_per_s=interval)
    platforms = [Platform(variants=(card,)) for card in cards.values()]
    tables = Evidence.of(package.throughput(), cards, package.model())
    with_run = Evidence.of(package.throughput(), cards, package.model(), measurements=(mine,))
    pairs = zip(
        *(predict_many(heavy, platforms, known, package.assumptions()) for known in (tables, with_run)), strict=True
    )
    for before, after in pairs:
        if isinstance(before, Prediction) and isinstance(after, Prediction):
            assert after.throughput_per_s.log_sd <= hypot(before.throughput_per_s.log_sd, SETUP_SD) * 1.02, after
    there = predict(heavy, Platform(variants=(cards["rtx-4090"],)), with_run, package.assumptions())
    assert isinstance(there, Prediction)
    assert there.throughput_per_s.value == pytest.approx(812.0, rel=0.05)
    assert "memory format nhwc, as in your own run" in words(there)


def test_a_run_of_ones_own_is_not_widened_for_how_one_trains() -> None:
    job = replace(JOB, memory_format="nchw")
    interval = Interval(value=640.0, low=630.0, high=650.0)
    mine = run(accelerator="large", samples_per_s=interval, memory_format="nhwc", software={})
    known = evidence(row("job", "middle", 300.0), row("job", "large", 620.0), measurements=(mine,))
    without = evidence(row("job", "middle", 300.0), row("job", "large", 620.0))
    seen, before = (asked(on("large"), e, job).throughput_per_s for e in (known, without))
    assert seen.value == pytest.approx(640.0, rel=0.03)
    assert seen.log_sd <= before.log_sd
