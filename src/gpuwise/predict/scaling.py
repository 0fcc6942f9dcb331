"""From one device to n: data-parallel steps that wait for the slowest and for a ring all-reduce of the gradients.

    step of n = step of one · (1 + s) + c · 2·(n − 1)/n · gradient bytes

s: share of a step lost to unequal devices, hosts and samples. c: seconds that a step waits for each GB (ring: Patarasuk
and Yuan, JPDC 69(2), 2009), less what is hidden behind the backward pass. Both are products: of the class of the link,
the workload and the card (`scaling_fit` finds the factors); runs on several of these very devices, with the same batch
and software as a run on one, move them. s and c are positive, so the efficiency never reaches 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import exp, hypot, log, log2
from typing import NamedTuple

import numpy as np

from gpuwise.errors import Message
from gpuwise.model import Accelerator, BenchmarkResult, Platform, Workload
from gpuwise.predict.cells import is_old
from gpuwise.predict.evidence import Evidence, Site
from gpuwise.predict.reference import REFERENCE, SAMPLES_PER_ITEM
from gpuwise.predict.scaling_fitted import FITTED

Fitted = Mapping[str, float]
"""Name of a factor -> its natural logarithm; "noise" and "share" of a situation: see `spread`."""

STEPS: Mapping[str, tuple[float, float]] = {
    name: (work.parameters_m, SAMPLES_PER_ITEM.get(name, 1)) for name, work in REFERENCE.items()
}
"""Of the workloads measured on several devices: 10^6 parameters, and what the rate counts in each sample of a batch
(tokens of a sentence, mel frames of an utterance, audio samples of a segment)."""

NVLINK_GB_PER_S = 600.0
"""Of a device, both directions together, for which the NVLink figure holds (A100); other NVLinks wait in proportion."""

NETWORK = {"uneven": 0.03, "wait": 0.4, "noise": 0.1, "share": 0.4}
"""Between machines, assumed: 25 Gbit/s Ethernet at line rate, and as unequal as three machines of one class."""

UNKNOWN_SD, KNOWN_SD = {"card": (0.4, 0.5), "work": (0.8, 1.0)}, {"card": (0.2, 0.3), "work": (0.2, 0.3)}
"""Log sd of s and c: how cards of one class and workloads differ, and what is left where the table knows them."""

NOISE, SHARE = 0.008, 0.25
"""Log sd of the efficiency that a run shows: what repeats of it differ by, and a share of what was lost."""

DOUBTFUL_LINK_SD = 0.03
"""An unstated link of a card that comes with and without a bridge."""

ROUNDS, SETTLED = 20, 0.003
"""Of Gauss-Newton at most; less change of a logarithm than this is none."""

LEAST, MOST = -14.0, 4.0
"""Bounds of ln s and ln c · GB/s while they are fitted."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """What n devices reach of n times one. own: the workload itself was measured on several. evidence: in words."""

    efficiency: float
    own: bool
    sd: float
    name: str
    evidence: Message


class Sharing(NamedTuple):
    """What decides how n devices share a job. card: as `card_model`; link: as `link_class`; gb_per_s: gradients for
    each second of a step of one. faster: bandwidth of the NVLink over NVLINK_GB_PER_S. half: see `_half`."""

    workload: str
    card: str
    link: str
    n: int
    gb_per_s: float
    faster: float = 1.0
    old: bool = False
    half: bool = False


class Run(NamedTuple):
    """A run on several: ln(n · rate of one / rate of n), and whether it is of the workload asked about."""

    sharing: Sharing
    lost_log: float
    own_work: bool = True


def step_together_s(step_s: float, gradient_gb: float, wait_s_per_gb: float, n: int, uneven: float = 0.0) -> float:
    """Seconds of a step on n devices, from that on one. wait_s_per_gb: 1 / (GB/s of a measured all-reduce, as
    nccl-tests give busbw) if nothing is hidden behind the backward pass.

    Test value: 0.18 s, 2.6 GB at 20 GB/s on two: 0.31 s.
    """
    return step_s * (1 + uneven) + wait_s_per_gb * _ring(n) * gradient_gb


def uneven_terms(at: Sharing) -> dict[str, float]:
    """Factor -> its exponent in s."""
    shared = (f"uneven {_base(at.link)}", f"uneven {at.workload}", f"uneven {at.card}")
    return {**dict.fromkeys(shared, 1.0), "uneven growth": log(_ring(at.n))}


def wait_terms(at: Sharing) -> dict[str, float]:
    """Factor -> its exponent in c."""
    base = _base(at.link)
    shared = (f"wait {base}", f"wait {at.workload}", f"wait {at.card}")
    kinds = {"wait bridge": at.link.endswith("bridge"), "wait old": at.old, "wait half": at.half}
    more = {name: 1.0 for name, applies in kinds.items() if applies}
    return {**dict.fromkeys(shared, 1.0), **more, f"wait growth {base}": log(at.n / 2)}


def wait_offset(at: Sharing) -> float:
    """ln of the seconds of waiting for each second of a step, where each GB takes one second."""
    return log(_ring(at.n) * at.gb_per_s / at.faster)


def spread(fitted: Fitted, situation: str, link: str, n: int, efficiency: float) -> float:
    """Log sd of the efficiency. situation: own (runs of the workload on such cards), card (the workload is known on
    other cards), workload (it is not). Bridges are known from two cards: theirs is the wider of bridge and class."""
    kinds = [_base(link), *(["bridge"] if link.endswith("bridge") else [])]
    pairs = [(fitted[f"noise {situation} {kind}"], fitted[f"share {situation} {kind}"]) for kind in kinds]
    return max(hypot(noise * log2(n), share * (1 - efficiency)) for noise, share in pairs)


@dataclass(frozen=True, slots=True)
class Losses:
    """What a workload loses when several devices share it: the fitted factors, and the runs that move them.

    work: its name in the fit, else its own. there: card -> runs on it, of the workload or such as the fit has not seen.
    elsewhere: those of the workload on any card that the fit has not seen. moved: by card, what `_conditioned` found.
    """

    work: str
    there: Mapping[str, tuple[Run, ...]]
    elsewhere: tuple[Run, ...]
    fitted: Fitted
    moved: dict[str, tuple[float, float]] = field(default_factory=dict)

    @staticmethod
    def of(workload: Workload, evidence: Evidence, fitted: Fitted = FITTED) -> Losses:
        names = tuple(dict.fromkeys((workload.name, *workload.measured_as)))
        own = [run for name in names for run in _runs(name, workload, True, evidence, fitted)]
        kin = [run for name in STEPS if name not in names for run in _runs(name, workload, False, evidence, fitted)]
        work = next((name for name in names if f"wait {name}" in fitted), names[0])
        return Losses.made(work, (*own, *kin), fitted)

    @staticmethod
    def made(work: str, runs: Iterable[Run], fitted: Fitted) -> Losses:
        """From runs at hand."""
        there: dict[str, tuple[Run, ...]] = {}
        for run in (every := list(runs)):
            there[run.sharing.card] = (*there.get(run.sharing.card, ()), run)
        new = tuple(r for r in every if r.own_work and _unseen(r.sharing.workload, r.sharing.card, fitted))
        return Losses(work, there, new, fitted)

    def efficiency(self, at: Sharing) -> tuple[float, str]:
        """Of n devices, and by which situation it is judged."""
        uneven, wait = self._moved(at.card)
        lost = exp(_uneven_log(at, self.fitted) + uneven) + exp(_wait_log(at, self.fitted) + wait)
        if any(run.own_work for run in self.there.get(at.card, ())):
            return 1 / (1 + lost), "own"
        return 1 / (1 + lost), "card" if f"wait {at.workload}" in self.fitted else "workload"

    def kin(self, card: str) -> bool:
        """Was any workload measured on several of these?"""
        return f"wait {card}" in self.fitted or card in self.there

    def _moved(self, card: str) -> tuple[float, float]:
        """By what the runs move ln s and ln c of the workload on this card."""
        if card not in self.moved:
            runs = [*self.there.get(card, ()), *(run for run in self.elsewhere if run.sharing.card != card)]
            self.moved[card] = _conditioned(runs, self._sds(card), card, self.fitted) if runs else (0.0, 0.0)
        return self.moved[card]

    def _sds(self, card: str) -> tuple[float, ...]:
        card_sd = (KNOWN_SD if f"wait {card}" in self.fitted else UNKNOWN_SD)["card"]
        return (*card_sd, *(KNOWN_SD if f"wait {self.work}" in self.fitted else UNKNOWN_SD)["work"])


def scaling(workload: Workload, accelerator: Accelerator, platform: Platform, rate_1: float, losses: Losses) -> Scaling:
    """rate_1: samples/s of one device."""
    n, link = platform.accelerators, link_class(accelerator, platform)
    gb_per_s = _gb_per_s(step_of(losses.work, workload), rate_1, workload.batch_per_accelerator)
    half = _half(workload.name, workload.precision)
    at = Sharing(losses.work, card_model(accelerator), link, n, gb_per_s, _faster(accelerator, link), half=half)
    efficiency, situation, sd = _shared(at, losses)
    if platform.nodes == 1 and n > MOST_IN_ONE:  # where machines begin, the network must not take a device away
        inside = scaling(workload, accelerator, replace(platform, per_node=MOST_IN_ONE), rate_1, losses)
        efficiency = max(efficiency, MOST_IN_ONE * inside.efficiency / n)
    if platform.link is None and situation in ("card", "workload") and not _on_board(accelerator):
        sd = hypot(sd, DOUBTFUL_LINK_SD)
    near = "kin" if situation in ("card", "workload") and losses.kin(at.card) else situation
    values = {"n": n, "efficiency": efficiency, "factor": n * efficiency, "name": accelerator.name, "link": link}
    text = Message(EVIDENCE[near], **values)
    return Scaling(efficiency, situation == "own", sd, f"scaling ×{n} {link} {accelerator.id}", text)


def _shared(at: Sharing, losses: Losses) -> tuple[float, str, float]:
    """Efficiency, the situation by which it is judged, and its log sd."""
    if at.n == 1:
        return 1.0, "alone", 0.0
    if at.link == "network":
        uneven = NETWORK["uneven"] * _ring(at.n)
        efficiency = 1 / step_together_s(1.0, at.gb_per_s, NETWORK["wait"], at.n, uneven)
        return efficiency, "network", hypot(NETWORK["noise"] * log2(at.n), NETWORK["share"] * (1 - efficiency))
    efficiency, situation = losses.efficiency(at)
    return efficiency, situation, spread(losses.fitted, situation, at.link, at.n, efficiency)


EVIDENCE = {
    "own": "× {n} × {efficiency:.3f}: it was measured on several {name}",
    "kin": "× {n} × {efficiency:.3f}: its kin were measured on several {name}",
    "card": "× {n} × {efficiency:.3f}: it was measured on several other cards; usual for {link}",
    "workload": "× {n} × {efficiency:.3f}: usual for {link}",
    "network": "× {n} × {efficiency:.3f}: usual for {link}",
    "alone": "× {n}",
}


MOST_IN_ONE = 16
"""More devices than any measured machine has are taken to be several machines."""


def link_class(accelerator: Accelerator, platform: Platform) -> str:
    """NVLink of a board, PCIe, PCIe of consumer cards (no direct traffic), either with an NVLink bridge between pairs,
    or network; by form factor if not stated."""
    if platform.nodes > 1 or platform.per_node > MOST_IN_ONE:
        return "network"
    board = _on_board(accelerator)
    link = (platform.link or ("NVLink" if board else "PCIe")).casefold()
    if board and "nvlink" in link:
        return "NVLink"
    kind = "PCIe, consumer" if accelerator.name.startswith(("GeForce", "TITAN")) else "PCIe"
    return f"{kind}, bridge" if "nvlink" in link else kind


def _on_board(accelerator: Accelerator) -> bool:
    """Of a form that always has NVLink."""
    return accelerator.form_factor.startswith(("SXM", "superchip"))


def card_model(accelerator: Accelerator) -> str:
    """The name without the size of the memory, which says nothing about links."""
    return _MEMORY.sub("", accelerator.name)


_MEMORY = re.compile(r" [0-9]+GB\b")


def _base(link: str) -> str:
    return link.removesuffix(", bridge")


def _ring(n: int) -> float:
    """What each device sends of its gradients in a ring all-reduce, in times of their size."""
    return 2 * (n - 1) / n


def step_of(name: str, workload: Workload) -> tuple[float, float]:
    """As in STEPS; of another workload its parameters, and rates in samples."""
    return STEPS.get(name, (workload.parameters_m, 1.0))


def _gb_per_s(step: tuple[float, float], rate_1: float, batch: int) -> float:
    """GB of 4-byte gradients for each second of a step of one device; little, but not 0, where nobody counted."""
    parameters_m, units = step
    return max(4e-3 * parameters_m * rate_1 / units / batch, LEAST_GB_PER_S)


LEAST_GB_PER_S = 1e-6


def _half(workload: str, precision: str) -> bool:
    """Does it exchange gradients of two bytes? The table's own runs do in mixed precision (Apex O2). PyTorch's own
    keeps them at four, and so does a job that is only measured as one of them."""
    return workload in STEPS and precision == "amp"


def _faster(accelerator: Accelerator, link: str) -> float:
    known = accelerator.link_gb_per_s if link == "NVLink" else None
    return known / NVLINK_GB_PER_S if known else 1.0


def _uneven_log(at: Sharing, fitted: Fitted) -> float:
    return sum(fitted.get(name, 0.0) * times for name, times in uneven_terms(at).items())


def _wait_log(at: Sharing, fitted: Fitted) -> float:
    return wait_offset(at) + sum(fitted.get(name, 0.0) * times for name, times in wait_terms(at).items())


def _conditioned(runs: Iterable[Run], sds: tuple[float, ...], card: str, fitted: Fitted) -> tuple[float, float]:
    """Deviations of ln s and ln c, from those of the card and of the workload: least squares with priors around 0."""
    found = list(runs)
    parts = np.array([[run.sharing.card == card] * 2 + [run.own_work] * 2 for run in found], dtype=float)
    usual = np.array([[_uneven_log(r.sharing, fitted), _wait_log(r.sharing, fitted)] for r in found])
    measured, moved, prior = np.array([run.lost_log for run in found]), np.zeros(4), np.array(sds) ** -2.0
    for _ in range(ROUNDS):
        lost = np.exp(np.clip(usual + parts[:, :2] * moved[:2] + parts[:, 2:] * moved[2:], LEAST, MOST))
        step = 1 + lost.sum(axis=1)
        slope = parts * np.tile(lost, 2) / step[:, None]
        weight = 1 / (NOISE**2 + (SHARE * (1 - 1 / step)) ** 2)
        normal = slope.T @ (slope * weight[:, None]) + np.diag(prior)
        gradient = slope.T @ (weight * (measured - np.log(step))) - prior * moved
        change = np.clip(np.linalg.solve(normal, gradient), -1, 1)
        moved = moved + change
        if np.abs(change).max() < SETTLED:
            break
    return float(moved[0] + moved[2]), float(moved[1] + moved[3])


def _runs(name: str, workload: Workload, own: bool, evidence: Evidence, fitted: Fitted) -> Iterator[Run]:
    """Measured runs of a workload on several, where one was measured alike; of others those the fit has not seen."""
    for run in (row.result for row in evidence.several.get(name, ())):
        card = evidence.accelerators.get(run.accelerator)
        if card is None or not (own or _unseen(name, card_model(card), fitted)):
            continue
        if one := same_on_one(run, evidence):
            at = sharing_of(run, card, one, step_of(name, workload))
            yield Run(at, log(run.accelerators * one / run.samples_per_s), own)


def _unseen(workload: str, card: str, fitted: Fitted) -> bool:
    return f"wait {workload}" not in fitted or f"wait {card}" not in fitted


def sharing_of(run: BenchmarkResult, card: Accelerator, one_per_s: float, step: tuple[float, float]) -> Sharing:
    """A measured run as the fit sees it. one_per_s: rate of one device. step: see STEPS."""
    link = link_class(card, Platform(variants=(card,), per_node=run.accelerators, link=run.link))
    gb_per_s = _gb_per_s(step, one_per_s, run.batch_per_accelerator)
    return Sharing(
        run.workload,
        card_model(card),
        link,
        run.accelerators,
        gb_per_s,
        _faster(card, link),
        is_old(run.software),
        _half(run.workload, run.precision),
    )


def same_on_one(run: BenchmarkResult, evidence: Evidence) -> float | None:
    """samples/s of one device at the same batch with the same software."""
    rows = evidence.rows.get(run.workload, {}).get(Site(run.accelerator, run.precision), ())
    return next(
        (
            row.result.samples_per_s
            for row in rows
            if row.together == 1
            and (row.result.batch_per_accelerator, row.result.software) == (run.batch_per_accelerator, run.software)
        ),
        None,
    )
