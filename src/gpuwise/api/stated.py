"""A job of which a person knows only how long it took somewhere: "2 to 3 days on 8 A100" (UC-049).

It is priced on just those GPUs; of others such a statement says nothing, and nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

from gpuwise.errors import Message
from gpuwise.estimate import Z80, Estimate
from gpuwise.model import Platform, Prediction, Refusal, Source, Workload
from gpuwise.predict.memory import Predict
from gpuwise.request import Takes
from gpuwise.units import SECONDS_PER_HOUR

NAME = "stated-job"
STATED = "the time as you stated it"
"""The name of the error that a stated range leaves."""
ADVICE = Message("measure it for some minutes on any of them: gpuwise measure -- python train.py, then rank --measured")


def stated_workload() -> Workload:
    """One job as one sample: nothing else is known of it."""
    return Workload(
        name=NAME, title=Message("A job of stated length").template, family="mlp", model="unknown", sample="job",
        gmacs=0,
        activations_m=0, parameters_m=0, state_bytes_per_parameter=0, batch_per_accelerator=1, precision="fp32",
        samples=1, epochs=1,
        source=Source(kind="assumed", ref="--takes"),
        reasons={"accuracy_fraction": Message("nothing but its length is stated")},
    )  # fmt: skip


def stated(takes: Takes, asked: Sequence[Platform]) -> Predict:
    """Jobs a second on the GPUs that the person named, and a refusal for all others. asked: its variants.

    The two ends are taken as an 80 % interval, with their geometric mean as the value: 2 to 3 days are 2.45 days.
    """
    ids, number = {variant.id for platform in asked for variant in platform.variants}, asked[0].per_node
    spread = ((STATED, log(takes.high_s / takes.low_s) / (2 * Z80)),) if takes.high_s > takes.low_s else ()
    rate = Estimate(value=1 / sqrt(takes.low_s * takes.high_s), spread=spread, basis="assumed")
    said = Message("you stated {low_h:.4g} to {high_h:.4g} h on {gpu}: nothing was measured", gpu=takes.gpu,
                   low_h=takes.low_s / SECONDS_PER_HOUR, high_h=takes.high_s / SECONDS_PER_HOUR)  # fmt: skip

    def one(workload: Workload, platform: Platform) -> Prediction | Refusal:
        job, name, count = workload.name, platform.name, platform.accelerators
        if count == number and {variant.id for variant in platform.variants} <= ids:
            return Prediction(
                workload=job, platform=name, accelerators=count, throughput_per_s=rate, method="stated",
                evidence=(said,), advice=ADVICE,
            )  # fmt: skip
        reason = Message("you stated the time on {gpu}, which says nothing of these", gpu=takes.gpu)
        return Refusal(workload=job, platform=name, accelerators=count, rule="not_stated", reason=reason)

    return lambda workload, platforms: [one(workload, platform) for platform in platforms]
