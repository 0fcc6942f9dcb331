"""One machine with different accelerators: a data-parallel step takes as long as it takes the slowest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuwise.errors import Message
from gpuwise.model import Platform, Prediction, Refusal


def slowest(outcomes: Sequence[Prediction | Refusal], platform: Platform) -> Prediction | Refusal:
    """So many times the slowest, from what each would do if all were of its kind; where one cannot run it, the refusal
    of the one with the least memory."""
    names = " + ".join(accelerator.name for accelerator in platform.variants)
    by_memory = sorted(zip(platform.variants, outcomes, strict=True), key=lambda pair: pair[0].memory_gib)
    refused = next((o for _, o in by_memory if isinstance(o, Refusal)), None)
    if refused is not None:
        reason = Message("{name}: {reason}", name=refused.platform, reason=refused.reason)
        return replace(refused, platform=platform.name, reason=reason)
    found = [o for o in outcomes if isinstance(o, Prediction)]
    last = min(found, key=lambda o: o.throughput_per_s.value)
    values = {"names": names, "n": platform.accelerators, "slowest": last.platform}
    pace = Message("{names} in one machine: {n} × {slowest}, the slowest, for which the others wait", **values)
    trial = Message("Run a few steps on each of {names} alone: the slowest sets the pace of all.", names=names)
    return replace(last, platform=platform.name, evidence=(pace, *last.evidence), advice=trial)
