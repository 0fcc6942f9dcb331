"""The price of one machine, shared among those who use it: parts that add up to the price, and nothing below 0.

1. The price falls into a GPU part and a host part. The GPU part is, in this order: the fraction that the person states;
   the price less that of the same machine without GPUs; or the share of usual unit prices (`WEIGHTS`).
2. The host part falls into vCPUs and memory by their usual unit prices.
3. Each part goes to the pods by the share of the machine that they requested. What nobody requested is idle.

So a pod without a GPU pays none, and the parts of a machine always sum to its price, whatever the unit prices are.

Source: OpenCost, default custom pricing (configs/default.json, list prices of Google's us-central1), as weights only;
its issue 2029 shows what goes wrong. Test value: 4.00 USD/h, 32 vCPUs, 128 GiB, 4 GPUs: GPUs 2.839, vCPUs 0.756,
memory 0.405 USD/h; a pod of 1 GPU and 8 vCPUs costs 1.000, one of 16 vCPUs 0.580, and 2.420 are idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from math import fsum, inf

from gpuwise.errors import InvalidInput, Message
from gpuwise.model import Assumption
from gpuwise.units import SECONDS_PER_HOUR, Fraction, Gib, Hours

SLACK = 1e-9
"""Relative slack before requests are more than the machine has: thirds of a GPU may add up to it."""


def _weight(name: str, value: float, unit: str) -> Assumption:
    return Assumption(
        name=name, value=value, low=None, high=None, unit=unit, source="OpenCost configs/default.json",
        observed=date(2026, 11, 30), note="list price of Google's us-central1; only the ratios matter",
    )  # fmt: skip


WEIGHTS = {
    "gpu": _weight("share_gpu", 0.95, "USD an hour and GPU"),
    "vcpu": _weight("share_vcpu", 0.031611, "USD an hour and vCPU"),
    "memory": _weight("share_memory", 0.004237, "USD an hour and GiB"),
}
"""How the price is split where nobody states a better way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine that several share. memory_gib: None if it is not to be told apart from the vCPUs.

    gpu_fraction: share of the price that is the GPUs'. host_price_per_hour: of the same machine without GPUs; one of
    the two, or neither. overcommitted: requests above what it has are scaled down instead of refused.
    """

    name: str
    price_per_hour: float
    vcpus: int
    accelerators: int
    memory_gib: Gib | None = None
    currency: str = "USD"
    gpu_fraction: Fraction | None = None
    host_price_per_hour: float | None = None
    overcommitted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """What somebody requested of a machine. memory_gib: None: as large a share as that of the vCPUs.

    start, end: None where it was there from the first moment or to the last that any pod names.
    """

    name: str
    accelerators: float = 0.0
    vcpus: float = 0.0
    memory_gib: Gib | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one pod owes, or what is idle (pod None), in the node's currency."""

    pod: str | None
    gpu: float
    cpu: float
    memory: float

    @property
    def total(self) -> float:
        return self.gpu + self.cpu + self.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A machine's price in parts, idle last. hours: that the amounts are for; start: None for an hour of any day.

    fractions: of the price, for GPUs, vCPUs and memory. rule: how they came about. scaled: resources that were
    requested more than once.
    """

    node: Node
    parts: tuple[Part, ...]
    fractions: tuple[Fraction, Fraction, Fraction]
    rule: Message
    hours: Hours = 1.0
    start: datetime | None = None
    scaled: tuple[str, ...] = ()


def split(node: Node, pods: Sequence[Pod]) -> Split:
    """The price of an hour in parts; with pods that came and went, of the whole time from the first to the last.

    InvalidInput for a node whose parts cannot be told, and for pods that request more than it has.
    """
    fractions, rule = _fractions(node)
    moments = sorted({t for pod in pods for t in (pod.start, pod.end) if t is not None})
    stretches = [*pairwise(moments)] if len(moments) > 1 else [(None, None)]
    found, scaled = list[tuple[Hours, list[Part]]](), list[str]()
    for start, end in stretches:
        there = [pod for pod in pods if _there(pod, start)]
        hours = 1.0 if start is None or end is None else (end - start).total_seconds() / SECONDS_PER_HOUR
        parts, over = _an_hour(node, there, fractions)
        found.append((hours, parts))
        scaled += over
    return Split(
        node=node,
        parts=tuple(_summed(name, found) for name in (*dict.fromkeys(pod.name for pod in pods), None)),
        fractions=fractions,
        rule=rule,
        hours=fsum(hours for hours, _parts in found),
        start=moments[0] if len(moments) > 1 else None,
        scaled=tuple(dict.fromkeys(scaled)),
    )


def _there(pod: Pod, at: datetime | None) -> bool:
    return at is None or ((pod.start is None or pod.start <= at) and (pod.end is None or at < pod.end))


def _summed(pod: str | None, found: Sequence[tuple[Hours, Sequence[Part]]]) -> Part:
    own = [(hours, part) for hours, parts in found for part in parts if part.pod == pod]
    return Part(
        pod=pod,
        gpu=fsum(hours * part.gpu for hours, part in own),
        cpu=fsum(hours * part.cpu for hours, part in own),
        memory=fsum(hours * part.memory for hours, part in own),
    )


# ---- the parts of the price ----


def _fractions(node: Node) -> tuple[tuple[Fraction, Fraction, Fraction], Message]:
    """The shares of GPUs, vCPUs and memory, which sum to 1, and how they came about. No divisor can be 0."""
    cpu, memory = WEIGHTS["vcpu"].value * node.vcpus, WEIGHTS["memory"].value * (node.memory_gib or 0.0)
    if cpu <= 0:
        raise InvalidInput(Message("{node} has no vCPUs.", node=node.name), Message("State how many: vcpus = 32"))
    gpu, rule = _gpu_fraction(node, cpu + memory)
    of_memory = (1 - gpu) * memory / (cpu + memory)
    return (gpu, 1 - gpu - of_memory, of_memory), rule


def _gpu_fraction(node: Node, host: float) -> tuple[Fraction, Message]:
    if node.gpu_fraction is not None and node.host_price_per_hour is not None:
        raise InvalidInput(
            Message("{node}: gpu_fraction and host_price_per_hour exclude each other.", node=node.name),
            Message("Leave one of them out."),
        )
    if not node.accelerators:
        return _no_gpus(node)
    if node.gpu_fraction is not None:
        return node.gpu_fraction, Message("GPUs are {share:.1%} of the price, as stated", share=node.gpu_fraction)
    if node.host_price_per_hour is not None:
        return _above_host(node, node.host_price_per_hour)
    gpus = WEIGHTS["gpu"].value * node.accelerators
    fraction = gpus / (gpus + host)
    return fraction, Message(
        "GPUs are {share:.1%} of the price, by usual unit prices ({gpu:g} a GPU, {vcpu:g} a vCPU, {memory:g} a GiB)",
        share=fraction,
        **{name: weight.value for name, weight in WEIGHTS.items()},
    )


def _no_gpus(node: Node) -> tuple[Fraction, Message]:
    if node.gpu_fraction:
        raise InvalidInput(
            Message("{node} has no GPUs, and gpu_fraction is {value:g}.", node=node.name, value=node.gpu_fraction),
            Message("State accelerators, or leave gpu_fraction out."),
        )
    return 0.0, Message("there are no GPUs: all of the price is the host's")


def _above_host(node: Node, host_price: float) -> tuple[Fraction, Message]:
    if host_price >= node.price_per_hour:
        raise InvalidInput(
            Message("{node} costs {price:g} an hour, and {host:g} without its GPUs: these would be free, or less.",
                    node=node.name, price=node.price_per_hour, host=host_price),
            Message("Correct host_price_per_hour, or leave it out."),
        )  # fmt: skip
    fraction = 1 - host_price / node.price_per_hour
    return fraction, Message(
        "GPUs are {share:.1%} of the price: what it costs above {host:g} an hour for the machine without them",
        share=fraction,
        host=host_price,
    )


# ---- one hour ----


def _an_hour(
    node: Node, pods: Sequence[Pod], fractions: tuple[Fraction, Fraction, Fraction]
) -> tuple[list[Part], list[str]]:
    """The price of an hour in parts, and the resources that had to be scaled."""
    wanted = {
        "GPUs": [_share(pod.accelerators, node.accelerators) for pod in pods],
        "vCPUs": [_share(pod.vcpus, node.vcpus) for pod in pods],
        "memory": [_memory_share(pod, node) for pod in pods],
    }
    over = [resource for resource, shares in wanted.items() if fsum(shares) > 1 + SLACK]
    beyond = [resource for resource in over if not node.overcommitted or fsum(wanted[resource]) == inf]
    if beyond:
        raise _overcommitted(node, pods, beyond[0], fsum(wanted[beyond[0]]))
    shares = [_scaled(column) for column in wanted.values()]
    prices = [node.price_per_hour * fraction for fraction in fractions]
    rows = [[price * share for price, share in zip(prices, row, strict=True)] for row in zip(*shares, strict=True)]
    spent = [fsum(row[i] for row in rows) for i in range(3)]
    idle = [max(0.0, price - part) for price, part in zip(prices, spent, strict=True)]
    named = zip((*(pod.name for pod in pods), None), (*rows, idle), strict=True)
    return [Part(pod=pod, gpu=row[0], cpu=row[1], memory=row[2]) for pod, row in named], over


def _share(wanted: float, there: float) -> float:
    """The share of what is there; what is wanted of nothing is beyond all measure."""
    return wanted / there if there else inf if wanted else 0.0


def _memory_share(pod: Pod, node: Node) -> float:
    if node.memory_gib is None or pod.memory_gib is None:
        return _share(pod.vcpus, node.vcpus)
    return _share(pod.memory_gib, node.memory_gib)


def _scaled(shares: Sequence[float]) -> list[float]:
    whole = fsum(shares)
    return [share / whole for share in shares] if whole > 1 else [*shares]


def _overcommitted(node: Node, pods: Sequence[Pod], resource: str, share: float) -> InvalidInput:
    names = ", ".join(pod.name for pod in pods)
    what = Message("{pods} request {share:.0%} of the {resource} of {node}.", pods=names, share=share,
                   resource=resource, node=node.name)  # fmt: skip
    if share == inf:
        what = Message("{pods} request {resource}, and {node} has none.", pods=names, resource=resource, node=node.name)
        return InvalidInput(what, Message("Correct the request, or what the node has."))
    return InvalidInput(what, Message("Correct it, or say overcommitted = true: then their shares are scaled to fit."))
