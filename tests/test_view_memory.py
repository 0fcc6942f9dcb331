"""What a person reads about memory: the verdict, what is held when, and what to take where it is not enough."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from gpuwise import api
from gpuwise.errors import Message
from gpuwise.model import Measurement, Refusal
from gpuwise.predict.memory import fit, need
from gpuwise.request import ExplainRequest, RankRequest
from gpuwise.view.memory import memory_blocks, need_facts
from gpuwise.view.page import Facts
from gpuwise.workloads import as_measured, override
from tests.predict.scenes import ASSUMPTIONS, CARDS, JOB

TODAY = date(2026, 11, 30)


def told(batch: int, card: str = "old", n: int = 1) -> Facts:
    job = replace(JOB, batch_per_accelerator=batch)
    memory = fit(job, CARDS[card], ASSUMPTIONS, accelerators=n)
    answer = Refusal(
        workload="job", platform=card, accelerators=n, rule="does_not_fit", reason=Message("too small"), memory=memory
    )
    (block,) = memory_blocks(job, [answer], largest={card: 97})
    assert isinstance(block, Facts)
    return block


def texts(block: Facts) -> dict[str, str]:
    return {fact.label: f"{fact.text} ({fact.why})" for fact in block.facts}


def test_the_page_says_verdict_need_usable_phase_parts_and_the_largest_batch() -> None:
    shown = texts(told(512))
    assert shown["Verdict"].startswith("does not fit")
    assert "GiB" in shown["Need"]
    assert shown["Usable"].startswith("10.4 GiB")
    assert "first gradients" in shown["Most is held"]
    assert "activations" in shown["Most is held"]
    assert shown["Largest batch that fits"] == "97 (asked: 512)"
    assert "Several GPUs" not in shown


def test_of_several_gpus_it_says_that_each_holds_it_all() -> None:
    shown = texts(told(64, n=4))
    assert "each GPU holds all of this" in shown["Several GPUs"]
    assert "gradients to send" in shown["Most is held"]


def test_each_verdict_has_its_words() -> None:
    assert [texts(told(b))["Verdict"].split(" (")[0] for b in (16, 130, 512)] == ["fits", "doubtful", "does not fit"]


def test_what_any_device_must_hold_is_said_without_one() -> None:
    assert [fact.label for fact in need_facts(need(JOB))] == ["Need", "Most is held"]


def test_a_gpu_that_is_too_small_gets_the_cheapest_offer_that_is_not() -> None:
    answer = api.explain(ExplainRequest(workload="painter-heavy", on="T4", batch=256), today=TODAY)
    assert [a.memory.verdict for a in answer.answers] == ["does_not_fit"]
    assert answer.instead is not None
    assert answer.instead.prediction.memory.verdict == "fits"
    everything = api.rank(RankRequest(workloads=("painter-heavy",), batch=256, limit=None), today=TODAY).ranking
    fitting = [c for c in everything.candidates if c.prediction.memory.verdict == "fits"]
    assert answer.instead.offer.id == fitting[0].offer.id
    assert 64 < answer.largest_batch["t4"] < 256


def test_an_offer_in_doubt_is_marked_and_not_left_out() -> None:
    request = RankRequest(workloads=("bert-finetune",), gpu=("RTX 3070", "T4"), limit=None)
    ranking = api.rank(request, today=TODAY).ranking
    marked = {c.offer.accelerator for c in ranking.candidates if any("memory doubtful" in str(m) for m in c.marks)}
    assert marked == {"rtx-3070"}
    first = ranking.candidates[0]
    if first.offer.accelerator == "rtx-3070":
        assert any("surely fits" in str(w) and "t4" in str(w) for w in ranking.warnings)


def test_runs_at_two_batches_say_what_a_third_takes() -> None:
    job = JOB
    for batch, gib in ((16, 3.0), (32, 5.5)):
        job = as_measured(job, measured(batch, gib))
    third = need(override(job, batch=128))
    assert third.basis == "measured"
    assert third.gib.low < 0.5 + 20.5 < third.gib.high
    assert need(override(job, precision="fp32")).basis == "predicted"


def measured(batch: int, gib: float) -> Measurement:
    return Measurement(
        created_utc="2026-11-30T00:00:00Z", workload="job", device="gpu", accelerator="middle", accelerators=1,
        precision="amp", batch_per_accelerator=batch, samples_per_s=None, peak_memory_gib=gib,
    )  # fmt: skip
