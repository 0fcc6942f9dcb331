"""Which CPU a host has: a program built for one architecture does not start on another (UC-057).

No price list says it, so it comes from a table of instance families and superchips that are known (cpu_architectures
.csv); what is not in it is not known, and left out by nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuwise.catalogue import Catalogue
from gpuwise.errors import Message
from gpuwise.model import Workload
from gpuwise.rank.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFact:
    """The CPU of an instance family (`instance` is how its names begin) or of a superchip, at one provider or any."""

    provider: str | None
    instance: str | None
    accelerator: str | None
    cpu_architecture: str
    source: str


def rule(offers: Catalogue, workload: Workload, facts: Sequence[HostFact]) -> Rule | None:
    """Leaves out hosts that are known to have another architecture than the job was built for; None if it has none."""
    wanted = workload.cpu_architecture
    if wanted is None:
        return None
    other = [fact for fact in facts if fact.cpu_architecture != wanted]
    fails = np.zeros(len(offers), np.bool_)
    for fact in other:
        fails |= _covered(offers, fact)

    def reason(row: int) -> Message:
        found = next(f for f in other if _covered(offers.take(np.array([row], np.intp)), f)[0])
        return Message(
            "its CPU is {has}, and the job was measured on {wanted}: a container or a program built for one does not "
            "run on the other",
            has=found.cpu_architecture,
            wanted=wanted,
        )

    return Rule(name="cpu_architecture", fails=fails, reason=reason)


def _covered(offers: Catalogue, fact: HostFact) -> np.typing.NDArray[np.bool_]:
    """Rows of the fact's provider (any, if it names none) whose instance begins so, or whose every GPU is this one."""
    rows = np.ones(len(offers), np.bool_)
    if fact.provider:
        rows &= offers.provider.isin((fact.provider,))
    if fact.instance:
        named = [value.casefold().startswith(fact.instance) for value in offers.instance.values]
        rows &= offers.instance.lookup(named, False, np.bool_)
    if fact.accelerator:
        rows &= offers.accelerator.isin((fact.accelerator,))
    return rows
