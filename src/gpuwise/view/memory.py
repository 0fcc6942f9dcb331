"""Does the job fit? Need, parts and phase for each platform asked about, and what to take where it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuwise.errors import Message
from gpuwise.estimate import Interval
from gpuwise.locale import _, with_commas, words
from gpuwise.memory import MemoryFit
from gpuwise.model import Candidate, Fx, Prediction, Refusal, Workload
from gpuwise.predict.memory import MARGIN, Need
from gpuwise.view import figures
from gpuwise.view.page import Block, Fact, Facts
from gpuwise.view.vocabulary import memory_basis, memory_part, memory_phase, memory_verdict


def memory_blocks(
    workload: Workload,
    answers: Sequence[Prediction | Refusal],
    *,
    largest: Mapping[str, int],
    instead: Candidate | None = None,
    fx: Fx | None = None,
) -> Iterator[Block]:
    """One platform in full, several in a line each. largest: platform -> largest batch that fits. instead: the cheapest
    offer that does, where one of the platforms leaves it in doubt."""
    known = [(answer, answer.memory, largest.get(answer.platform)) for answer in answers if answer.memory]
    facts = _facts(workload, *known[0]) if len(known) == 1 else (_in_short(*one) for one in known)
    if known:
        yield Facts(title=_("Memory"), facts=tuple(facts))
    if instead:
        yield Facts(title=_("What has enough memory"), facts=(_instead(instead, fx),))


def need_facts(needed: Need) -> Iterator[Fact]:
    """What any device must hold."""
    yield _need(needed.gib, needed.basis)
    yield _phase(needed.phase, needed.parts_gib)


def doubtful(memory: MemoryFit | None) -> bool:
    return memory is not None and memory.verdict == "doubtful"


def _facts(workload: Workload, answer: Prediction | Refusal, memory: MemoryFit, largest: int | None) -> Iterator[Fact]:
    yield Fact(label=_("Verdict"), text=memory_verdict(memory.verdict), why=_why(memory))
    yield _need(memory.need_gib, memory.basis)
    usable = _("{gib} GiB").format(gib=figures.number(memory.usable_gib))
    yield Fact(label=_("Usable"), text=usable, why=_("of one GPU") if answer.accelerators > 1 else "")
    yield _phase(memory.phase, memory.parts_gib)
    if answer.accelerators > 1:
        text = _("each GPU holds all of this; data-parallel training keeps the gradients once more, to send them")
        yield Fact(label=_("Several GPUs"), text=text)
    if largest is not None:
        asked = _("asked: {batch}").format(batch=workload.batch_per_accelerator)
        yield Fact(label=_("Largest batch that fits"), text=figures.count(largest), why=asked)


def _in_short(answer: Prediction | Refusal, memory: MemoryFit, largest: int | None) -> Fact:
    said = _("{verdict}: {need} GiB needed, {usable} GiB usable").format(
        verdict=memory_verdict(memory.verdict),
        need=figures.number(memory.need_gib.value),
        usable=figures.number(memory.usable_gib),
    )
    most = "" if largest is None else _("largest batch that fits: {batch}").format(batch=figures.count(largest))
    return Fact(label=figures.devices(answer.platform), text=said, why=most)


def _why(memory: MemoryFit) -> str:
    if memory.verdict == "fits":
        text = _("the need is at most {percent} of what is usable, its upper end at most all of it")
    elif memory.verdict == "does_not_fit":
        text = _("even the least that a step must hold is more than what is usable")
    else:
        text = _(
            "the least would go in; the need is above {percent} of what is usable, or its upper end above all of it"
        )
    return text.format(percent=figures.percent(MARGIN))


def _need(need_gib: Interval, basis: str) -> Fact:
    value, low, high = (figures.number(gib) for gib in (need_gib.value, need_gib.low, need_gib.high))
    text = _("{value} GiB ({low} to {high})").format(value=value, low=low, high=high)
    return Fact(label=_("Need"), text=text, why=memory_basis(basis))


def _phase(phase: str, parts_gib: Mapping[str, float]) -> Fact:
    sizes = sorted(parts_gib.items(), key=lambda part: -part[1])
    parts = with_commas(f"{memory_part(name)} {figures.number(gib)} GiB" for name, gib in sizes)
    return Fact(label=_("Most is held"), text=memory_phase(phase), why=parts)


def _instead(candidate: Candidate, fx: Fx | None) -> Fact:
    price = figures.price(candidate.offer, fx, candidate.price_usd_per_hour)
    said = Message("offer {id}, {price} ({money})", id=candidate.offer.id, price=price.shown, money=figures.code(fx))
    return Fact(label=_("Cheapest that fits"), text=figures.gpus(candidate.offer), why=words(said))
