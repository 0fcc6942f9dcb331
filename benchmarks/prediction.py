"""The predictor alone: 500 platforms of one workload, conditioning on three runs, and the memory of both.

Goals: each under 20 ms, less than 200 MiB. Nothing is asserted; times are medians of several runs in this process.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

from gpuwise.estimate import Interval
from gpuwise.model import Measurement, Platform
from gpuwise.predict import Evidence, needed, predictor
from gpuwise.predict.answer import answer
from gpuwise.predict.cells import runnable
from gpuwise.predict.roofline import work_of
from gpuwise.predict.setting import Reading, Setting
from gpuwise.store import package

RUNS = 15
PLATFORMS = 500
WORKLOAD = "painter-heavy"
MEASURED = {"rtx-3090": 420.0, "v100-sxm2-16gb": 330.0, "a100-sxm4-80gb": 700.0}
"""Invented rates of the job on three cards."""


def main() -> None:
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    job, cards = package.workloads()[WORKLOAD], package.accelerators()
    nvidia = [card for card in cards.values() if card.vendor == "NVIDIA" and runnable(card, "amp")]
    asked = [
        Platform(variants=(card,), per_node=n, link=link)
        for n in (1, 2, 4, 8, 3, 6)
        for link in (None, "PCIe")
        for card in nvidia
    ][:PLATFORMS]
    rows = (*package.throughput(needed(job)), *package.inference(needed(job)))
    evidence = Evidence.of(rows, cards, package.model())

    setting = Setting(
        workload="a new network",
        family=job.family,
        accelerator=cards["h100-sxm5-80gb"],
        precision="amp",
        batch=job.batch_per_accelerator,
        work=work_of(job),
    )
    given = [Reading(setting=replace(setting, accelerator=cards[c]), samples_per_s=r) for c, r in MEASURED.items()]
    batches = (8, 16, 32, 64, 128, 256)
    many = [replace(setting, accelerator=card, batch=batch) for batch in batches for card in nvidia][:PLATFORMS]
    model, assumptions = package.model(), package.assumptions()
    own = Evidence.of(rows, cards, model, measurements=[_run(card, rate) for card, rate in MEASURED.items()])
    _told(f"{len(many)} platforms, rates with their errors (goal 20)", lambda: answer(model, many))
    _told("conditioning on three rows, one card asked (goal 20)", lambda: answer(model, [setting], (), given))
    _told(f"{len(asked)} platforms with words, memory, scaling", lambda: predictor(evidence, assumptions)(job, asked))
    _told("the same with three own runs", lambda: predictor(own, assumptions)(job, asked))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak memory of the process {peak:.0f} MiB (goal 200), {begun:.0f} MiB of it before anything was read")


def _told(what: str, work: Callable[[], object]) -> None:
    print(f"  {what}: {_median(work):.1f} ms")


def _median(work: Callable[[], object]) -> float:
    """Milliseconds."""
    seconds = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return 1e3 * statistics.median(seconds)


def _run(card: str, rate: float) -> Measurement:
    return Measurement(
        created_utc="",
        workload=WORKLOAD,
        device="gpu",
        accelerator=card,
        accelerators=1,
        precision="amp",
        batch_per_accelerator=64,
        samples_per_s=Interval(value=rate, low=0.98 * rate, high=1.02 * rate),
    )


if __name__ == "__main__":
    main()
