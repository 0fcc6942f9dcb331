"""The verbs about jobs: where to run them, why we think so, and what they consist of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from gpuwise.api.several import several_of
from gpuwise.api.situations import situations
from gpuwise.api.stated import stated, stated_workload
from gpuwise.api.world import (
    World,
    as_offered,
    as_placed,
    own_runs,
    platforms,
    unknown,
    workload_of,
    workloads_of_runs,
)
from gpuwise.errors import InvalidInput, MeasurementFailed, Message, MissingEvidence
from gpuwise.model import BenchmarkResult, Candidate, Exclusion, Fx, Platform, Prediction, Ranking, Refusal, Workload
from gpuwise.offer import Provider
from gpuwise.predict import needed
from gpuwise.predict.cells import canonical
from gpuwise.predict.memory import Need, as_run, largest_batch, need, only_fitting, smallest
from gpuwise.predict.nearest import nearest
from gpuwise.predict.tested import Tested
from gpuwise.rank import GpuFilter
from gpuwise.rank import rank as rank_offers
from gpuwise.rank.several import Several
from gpuwise.request import DescribeRequest, ExplainRequest, JobFilters, RankRequest
from gpuwise.store import package
from gpuwise.units import Range
from gpuwise.workloads import override

OFFERS_OF_A_GPU = 5
"""So many of the cheapest offers stand under the explanation of a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The answer to `rank`. fx: the currency shown, None for USD. rejects: why rows of a person's files are refused.
    tested: how wrong predictions were in tests of the same situation."""

    request: RankRequest
    ranking: Ranking
    fx: Fx | None
    rejects: tuple[Message, ...] = ()
    tested: tuple[Tested, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The answer to `explain`: predictions of the platforms asked about, and the offer with its bill or exclusion.

    ranking: where a GPU was asked about, the cheapest offers with it. instead: the cheapest offer with enough memory,
    where that is in doubt. largest_batch: by platform, the largest batch per device that fits. several: 1, 2, 4, 8 and
    as many as asked of the GPU. nearest: the measured rows that are nearest to the one platform asked about.
    provider: what is known of the platform of the offer. sources: key -> title of what bill and platform stand on.
    """

    request: ExplainRequest
    as_of: date
    workload: Workload
    answers: tuple[Prediction | Refusal, ...]
    candidate: Candidate | None
    exclusions: tuple[Exclusion, ...]
    ranking: Ranking | None
    warnings: tuple[Message, ...]
    fx: Fx | None
    instead: Candidate | None = None
    largest_batch: Mapping[str, int] = field(default_factory=dict)
    several: tuple[Several, ...] = ()
    nearest: tuple[BenchmarkResult, ...] = ()
    provider: Provider | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The answer to `describe`. need: of memory, on any device."""

    request: DescribeRequest
    as_of: date
    workload: Workload
    need: Need | None = None


def rank(request: RankRequest, *, today: date) -> Ranked:
    """Where should these jobs run? InvalidInput for what cannot be read; an empty ranking is an answer."""
    workloads = [stated_workload()] if request.takes else _workloads(request)
    _refuse_repeated([workload.name for workload in workloads])
    _refuse_totals(request, workloads)
    world = _world(request, workloads, today)
    asked = as_offered(as_placed(request, world.offers), world.offers)
    ranking = rank_offers(world.offers, workloads, asked, world.context)
    known = cited_sources()
    used = sorted({c.offer.source.ref for c in (*ranking.candidates, *ranking.frontier, *ranking.own)})
    titles = {key: _title(known[key]) for key in used if key in known}
    notes = (*world.notes, *ranking.warnings)
    ranking = replace(ranking, warnings=notes, sources=titles)
    return Ranked(
        request=request,
        ranking=ranking,
        fx=world.fx,
        rejects=world.offers.rejects,
        tested=()
        if request.takes
        else situations(
            ranking,
            own_runs(request),
            package.model().posterior.cards,
            package.accuracy().results,
            [workload.name for workload in workloads if _on_many_cards(workload)],
        ),
    )


def _world(request: JobFilters, workloads: Sequence[Workload], today: date) -> World:
    """With the predictor that fits the job: ours, or what the person stated."""
    world = World.of(request, workloads, today)
    if request.takes is None:
        return world
    asked, notes = platforms(request.takes.gpu, "--takes")
    context = replace(world.context, predict=stated(request.takes, asked))
    return replace(world, context=context, notes=(*world.notes, *notes))


def _workloads(request: RankRequest) -> list[Workload]:
    """Those that are named, else those that the runs measured."""
    return [workload_of(name, request) for name in request.workloads] or workloads_of_runs(request)


MANY_CARDS = 6


def _on_many_cards(workload: Workload) -> bool:
    """Do the tables have this very workload on many cards?"""
    names = {canonical(name) for name in (workload.name, *workload.measured_as)}
    rows = package.throughput(needed(workload))
    return len({row.accelerator for row in rows if canonical(row.workload) in names}) >= MANY_CARDS


def _refuse_repeated(names: Sequence[str]) -> None:
    """Two workloads of one name could not be told apart in the table."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidInput(
            Message('The workload "{name}" is there twice.', name=repeated[0]),
            Message("Leave one out, or give the file another name = …"),
        )


def _refuse_totals(request: JobFilters, workloads: Sequence[Workload]) -> None:
    """A limit of time or money has nothing to hold against where nobody said how long the job is."""
    limits = {"--deadline": request.deadline_s, "--budget": request.budget_usd}
    given = [name for name, value in limits.items() if value is not None]
    endless = [workload.name for workload in workloads if workload.undecided]
    if given and endless:
        raise InvalidInput(
            Message("{option}: nothing says how long {name} is.", option=given[0], name=endless[0]),
            Message("Give its length: --samples and --epochs."),
        )


def _cited(candidate: Candidate | None, provider: Provider | None) -> Mapping[str, str]:
    """The sources that bill and platform name, by the key that they are named by."""
    lines = candidate.cost.lines if candidate and candidate.cost else ()
    facts = provider.facts.values() if provider else ()
    named = dict.fromkeys([*(line.source.rpartition(", ")[2] for line in lines), *(fact.source for fact in facts)])
    known = cited_sources()
    return {key: _title(known[key]) for key in named if key in known}


def cited_sources() -> Mapping[str, Mapping[str, str]]:
    """Sources outside the bundle; a table of it that figures were computed from is none, and a person's file may bear
    its name."""
    return {key: source for key, source in package.sources().items() if not key.endswith(".csv")}


def _title(source: Mapping[str, str]) -> str:
    """What a source is called, and where it lies if that is an address."""
    place = source["url"]
    return f"{source['title']}, {place}" if place.startswith("http") else source["title"]


def explain(request: ExplainRequest, *, today: date) -> Explained:
    """Why do you think so? Of an offer, of a GPU, or of the best offer. UnknownName for an id that no offer has."""
    workload = stated_workload() if request.workload is None else workload_of(request.workload, request)
    _refuse_totals(request, [workload])
    world = _world(request, [workload], today)
    if request.on is not None:
        return _of_gpu(request, world, workload, platforms(request.on)[0])
    ranking = rank_offers(world.offers, [workload], _wanted(request, world), world.context)
    if request.offer is None:
        found = ranking.candidates[:1]
        if not found:
            raise MissingEvidence(
                Message("No offer is left to explain."),
                Message("See why with: gpuwise rank {name}", name=workload.name),
            )
        return _explained(request, world, workload, candidate=found[0])
    named = [c for c in ranking.candidates if c.offer.id == request.offer]
    if named:
        return _explained(request, world, workload, candidate=named[0])
    return _left_out(request, world, workload, ranking)


def _of_gpu(request: ExplainRequest, world: World, workload: Workload, asked: Sequence[Platform]) -> Explained:
    """The variants of a GPU, and the cheapest offers with so many of it; no offer is a machine of different ones."""
    if asked[0].mixed:
        return _explained(request, world, workload, answers=tuple(world.context.predict(workload, asked)))
    number, ids = float(asked[0].accelerators), frozenset(v.id for platform in asked for v in platform.variants)
    wish = GpuFilter(names=((ids, Range(low=number, high=number, kind="count")),))
    context = replace(world.context, gpu=wish)
    ranking = rank_offers(world.offers, [workload], _wanted(request, world, limit=OFFERS_OF_A_GPU), context)
    answers = tuple(context.predict(workload, asked))
    explained = _explained(request, world, workload, answers=answers, ranking=ranking)
    if len(asked) > 1:
        return explained
    return replace(explained, several=several_of(_wanted(request, world), world, workload, asked[0]))


def _left_out(request: ExplainRequest, world: World, workload: Workload, ranking: Ranking) -> Explained:
    """The exclusion of one offer, with the prediction it would have had."""
    exclusions = tuple(e for e in ranking.exclusions if e.offer_id == request.offer)
    if not exclusions:
        ids = [world.offers.offer_id(row) for row in range(len(world.offers))]
        raise unknown(Message("offer"), str(request.offer), ids)
    row = next(row for row in range(len(world.offers)) if world.offers.offer_id(row) == request.offer)
    offer = world.offers.offer(row)
    known = package.accelerators()
    variants = tuple(known[name] for name in offer.accelerator.split("|") if name in known)
    each = offer.accelerators // offer.nodes
    platform = Platform(variants=variants, per_node=each, nodes=offer.nodes, link=offer.link)
    answers = world.context.predict(workload, [platform]) if variants else ()
    return _explained(request, world, workload, answers=tuple(answers), exclusions=exclusions)


def _explained(
    request: ExplainRequest,
    world: World,
    workload: Workload,
    *,
    answers: tuple[Prediction | Refusal, ...] = (),
    candidate: Candidate | None = None,
    exclusions: tuple[Exclusion, ...] = (),
    ranking: Ranking | None = None,
) -> Explained:
    answers = answers or ((candidate.prediction,) if candidate else ())
    return Explained(
        request=request,
        as_of=world.context.as_of,
        workload=workload,
        answers=answers,
        candidate=candidate,
        exclusions=exclusions,
        ranking=ranking,
        warnings=world.notes,
        fx=world.fx,
        instead=_surely_fitting(request, world, workload, answers),
        largest_batch={} if request.takes else {a.platform: _largest(workload, a) for a in answers},
        nearest=() if request.takes else _nearest(workload, answers),
        provider=(provider := package.providers().get(candidate.offer.provider) if candidate else None),
        sources=_cited(candidate, provider),
    )


def _nearest(workload: Workload, answers: Sequence[Prediction | Refusal]) -> tuple[BenchmarkResult, ...]:
    """Bundled rows; none where several platforms are compared, or where the one is in doubt."""
    known = package.accelerators()
    if len(answers) != 1 or answers[0].platform not in known:
        return ()
    rows = package.inference() if workload.mode == "infer" else package.throughput()
    found = nearest(workload, known[answers[0].platform], rows, known, package.counts())
    return tuple(near.row for near in found)


def _surely_fitting(
    request: ExplainRequest, world: World, workload: Workload, answers: Sequence[Prediction | Refusal]
) -> Candidate | None:
    """The cheapest offer with enough memory, where one of the answers leaves that in doubt."""
    if all(answer.memory is None or answer.memory.verdict == "fits" for answer in answers):
        return None
    context = replace(world.context, predict=only_fitting(world.context.predict))
    found = rank_offers(world.offers, [workload], _wanted(request, world, limit=1), context).candidates
    return found[0] if found else None


def _largest(workload: Workload, answer: Prediction | Refusal) -> int:
    known, assumptions = package.accelerators(), package.assumptions()
    device = smallest((known[name] for name in re.split(r"[/+]", answer.platform)), assumptions)
    several, published = answer.accelerators, package.memory()
    return largest_batch(as_run(workload), device, assumptions, accelerators=several, published=published)


def describe(request: DescribeRequest, *, today: date) -> Described:
    """What does this job consist of? A torch model is counted on the meta device (extra [torch])."""
    if ":" in request.target and not Path(request.target).exists():
        from gpuwise.measure.count import describe as count

        workload = count(
            request.target,
            input_size=request.input_size,
            tokens=request.tokens,
            optimizer=request.optimizer,
        )
        stated = ("batch", "precision", "samples", "epochs")
        workload = override(workload, **{name: getattr(request, name) for name in stated})
        workload = _with_peak(workload, request)
    else:
        _refuse_counting(request)
        workload = workload_of(request.target, request)
    return Described(request=request, as_of=today, workload=workload, need=need(workload, published=package.memory()))


def _with_peak(workload: Workload, request: DescribeRequest) -> Workload:
    """With the memory that a training step takes at this batch, found on fake tensors; else with why it is unknown."""
    from gpuwise.measure.memory import peak

    try:
        found = peak(
            request.target,
            batch=workload.batch_per_accelerator,
            input_size=request.input_size,
            tokens=request.tokens,
            optimizer=request.optimizer,  # type: ignore[arg-type]  # `peak` refuses those it cannot count
            precision=workload.precision,
        )
    except (InvalidInput, MeasurementFailed) as error:
        return replace(workload, reasons={**workload.reasons, "peak_memory_gib": error.message})
    why = Message("counted on fake tensors; the largest part falls due in: {phase}", phase=found.phase)
    return replace(workload, peak_memory_gib=found.total_gib, reasons={**workload.reasons, "peak_memory_gib": why})


def _refuse_counting(request: DescribeRequest) -> None:
    """Options that only a count of a torch model can follow; the counts of a stated workload are what they are."""
    usual = DescribeRequest(target=request.target)
    for name in ("input_size", "tokens", "optimizer"):
        if getattr(request, name) != getattr(usual, name):
            raise InvalidInput(
                Message("--{name} has no meaning for {target}.", name=name.replace("_", "-"), target=request.target),
                Message("It is for a torch model to be counted, such as torchvision.models:resnet50."),
            )


def _wanted(request: ExplainRequest, world: World, limit: int | None = None) -> RankRequest:
    """The ranking that the explanation is about: the same filters and job options."""
    shared: Mapping[str, Any] = {f.name: getattr(request, f.name) for f in fields(JobFilters)}
    named = () if request.workload is None else (request.workload,)
    return as_offered(as_placed(RankRequest(workloads=named, limit=limit, **shared), world.offers), world.offers)
