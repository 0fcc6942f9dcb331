"""What a request is answered from: offers, evidence and agreements, read and put together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from gpuwise.api.ends import ended
from gpuwise.catalogue import Catalogue, join
from gpuwise.cost.annuity import owned_offers
from gpuwise.cost.discounts import Discounts
from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.model import Fx, Machine, Measurement, Platform, Workload
from gpuwise.names import Index, resolve_request
from gpuwise.plugins import source
from gpuwise.predict import Evidence, needed, predictor
from gpuwise.predict.evidence import unused
from gpuwise.predict.memory import Predict, with_memory
from gpuwise.rank import Context, GpuFilter, usual_prices
from gpuwise.request import DescribeRequest, JobFilters, OfferFilters
from gpuwise.sources.offered import nearest, spellings
from gpuwise.store import package
from gpuwise.workloads import DURATION, as_measured, of_run, override

R = TypeVar("R", bound=OfferFilters)
MOST_REFUSED = 10
"""So many refused rows of a person's files are told with the answer; the JSON has them all."""
MOST_LISTED = 12
"""Known names up to this number are all said to somebody who wrote another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a request is answered from: the offers, all else that ranking needs, and what reading them had to say."""

    offers: Catalogue
    context: Context
    notes: tuple[Message, ...]
    fx: Fx | None

    @staticmethod
    def of(request: JobFilters, workloads: Sequence[Workload], today: date) -> World:
        facts = package.facts()
        offers, notes = read_offers(request, today)
        context, remarks = filter_context(request, offers, today)
        measurements = own_runs(request)
        quotas = own().quotas(Path(request.quota), facts, _nameable(request, offers)) if request.quota else ()
        fx = shown_in(request, context.as_of)
        return World(
            offers=offers,
            context=replace(context, predict=_predictor(workloads, measurements), quotas=quotas),
            notes=(
                *notes,
                *remarks,
                *_run_notes(measurements, workloads),
                *rate_notes(fx, context.as_of),
                *_upside_down(fx, offers),
            ),
            fx=fx,
        )


def _run_notes(runs: Sequence[Measurement], workloads: Sequence[Workload]) -> Iterator[Message]:
    """What of a job is as a run of the person's own had it; and what the runs do not say."""
    for workload in workloads:
        own_runs = [run for run in runs if run.workload in (workload.name, *workload.measured_as)]
        for run in own_runs:
            taken = {"samples": run.samples, "epochs": run.epochs}
            same = [
                Message("{n:g} {what}", n=n, what=name) for name, n in taken.items() if n == getattr(workload, name)
            ]
            if same:
                both = Message("{one}, {other}", one=same[0], other=same[1]) if len(same) == 2 else same[0]
                yield Message("{workload}: {what} as in your own run", workload=workload.name, what=both)
        if workload.undecided:
            yield Message(
                "{workload}: duration unknown, so no times or totals: nothing says its {what} (--samples, --epochs)",
                workload=workload.name,
                what=" and ".join(workload.undecided),
            )
        ends = {"epochs"} if workload.stop is not None else set()
        assumed = [name for name in DURATION if own_runs and name in workload.assumed and name not in ends]
        if assumed and not workload.undecided:
            yield Message(
                "{workload}: your run does not say how long the job is; assumed are {samples:,} samples × {epochs:g} "
                "epochs: give --samples and --epochs",
                workload=workload.name,
                samples=workload.samples,
                epochs=workload.epochs,
            )
    names = {name for workload in workloads for name in (workload.name, *workload.measured_as)}
    for run in runs:
        if run.workload in names and (why := unused(run, package.accelerators())):
            yield Message("the speed of your run of {workload} is not used: {why}", workload=run.workload, why=why)
    for run in (run for run in runs if run.workload not in names):
        yield Message("the run measured {workload}, which is none of these jobs: it is not used", workload=run.workload)


def own() -> ModuleType:
    """The reader of the person's files, imported when there is one to read."""
    return import_module("gpuwise.sources.file")


def own_runs(request: JobFilters | DescribeRequest) -> list[Measurement]:
    """The runs that `--measured` names: files, or numbers of the run store, oldest first; each of them once."""
    runs = [_run(text) for text in request.measured] if isinstance(request, JobFilters) else []
    different = [run for i, run in enumerate(runs) if run not in runs[:i]]
    return sorted(different, key=lambda run: run.created_utc)


def _run(text: str) -> Measurement:
    from gpuwise.measure import kept

    if not kept.is_number(text):
        return own().measurement(Path(text), package.facts())  # type: ignore[no-any-return]
    from gpuwise.sources.document import Document
    from gpuwise.store.runs import open_store

    payload = open_store().get(int(text)).payload
    return own().measured(Document(name=f"run {text}", text="", data=payload), package.facts())  # type: ignore[no-any-return]


def filter_context(request: OfferFilters, offers: Catalogue, today: date) -> tuple[Context, tuple[Message, ...]]:
    """What filtering needs, without evidence for predictions; with it remarks on the names and agreements given.

    offers: those that agreements may name.
    """
    gpu, remarks = gpu_filter(request)
    as_of, agreed, notes = request.as_of or today, Discounts(), ()
    if request.discounts:
        named = _nameable(request, offers)
        agreed, notes = own().discounts(Path(request.discounts), package.facts(), named, as_of)
    context = Context(
        as_of=as_of,
        data_version=package.version(),
        accelerators=package.accelerators(),
        predict=lambda workload, platforms: (),
        assumptions=package.assumptions(),
        gpu=gpu,
        discounts=agreed,
        usual_usd_per_hour=usual_prices(package.offers()),
        hosts=package.hosts(),
        around=package.surroundings(),
    )
    return context, (*remarks, *notes)


def _nameable(request: OfferFilters, offers: Catalogue) -> Catalogue:
    """Offers whose names a person may use: those in play, and the bundled ones even where they are not."""
    return join([offers, package.offers()]) if request.only_offers else offers


def read_offers(request: OfferFilters, today: date) -> tuple[Catalogue, tuple[Message, ...]]:
    """The offers a request looks at: bundled, the person's own, today's, and owned machines (examples unless he has
    his own). With them what reading had to say, and why the first of the refused rows were refused. UnknownName for a
    provider that none of them has."""
    facts = package.facts()
    loaded = [] if request.only_offers else [source("package").load(facts, today)]
    if request.offers:
        loaded.append(own().FileSource([Path(p) for p in request.offers]).load(facts, today))
    if request.live:
        loaded.append(source("gpuhunt").load(facts, today))
    machines = _checked(request, [m for path in request.machine for m in own().machines(Path(path), facts)])
    if not request.machine and not request.only_offers:
        machines = list(package.machines())
    owned = [owned_offers(machines)] if machines else []
    offers = join([*(one.catalogue for one in loaded), *owned])
    as_offered(request, offers)
    notes = tuple(note for one in loaded for note in one.notes)
    return offers, (*notes, *_checked_notes(request), *_refused(offers.rejects))


def _checked(request: OfferFilters, machines: list[Machine]) -> list[Machine]:
    """The person's machines, with the preparation time that `check` found on them."""
    path = request.checked if isinstance(request, JobFilters) else None
    if path is None:
        return machines
    if not machines:
        raise InvalidInput(
            Message("--checked {path} has no machine to hold for.", path=path), Message("Add --machine FILE.")
        )
    prepare_s = own().preparation_s(Path(path))
    return [replace(machine, preparation_s=prepare_s) for machine in machines]


def _checked_notes(request: OfferFilters) -> tuple[Message, ...]:
    if not isinstance(request, JobFilters) or request.checked is None:
        return ()
    seconds = own().preparation_s(Path(request.checked))
    text = "your machines need {seconds:.3g} s to prepare, as checked: until a first step, without copying data"
    return (Message(text, seconds=seconds),)


def _refused(rejects: Sequence[Message]) -> tuple[Message, ...]:
    more = len(rejects) - MOST_REFUSED
    rest = (Message("… and {more} more rows were refused: see --json", more=more),) if more > 0 else ()
    return (*rejects[:MOST_REFUSED], *rest)


def as_offered(request: R, offers: Catalogue) -> R:
    """The same request with the providers as the offers spell them. UnknownName for one that no offer has."""
    known = offers.provider.values
    found = {name: spellings(name, known) for name in request.provider}
    for name in (name for name, spelled in found.items() if not spelled):
        raise unknown(Message("provider"), name, known)
    return replace(request, provider=tuple(name for spelled in found.values() for name in spelled))


def gpu_filter(request: OfferFilters) -> tuple[GpuFilter, tuple[Message, ...]]:
    """`--gpu` resolved to ids; the notes say where a name stands for several. UnknownName with what may be meant."""
    index = Index(package.accelerators().values())
    picked = [resolve_request(index, text) for text in request.gpu]
    names = tuple((frozenset(p.ids), p.count) for p in picked if p.ids)
    memory = [p.memory for p in picked if p.memory is not None]
    count = [p.count for p in picked if p.count is not None and not p.ids]
    notes = tuple(note for p in picked for note in p.notes)
    return GpuFilter(names=names, memory_gib=tuple(memory), count=tuple(count)), notes


def currency(code: str, as_of: date | None = None) -> Fx | None:
    """The rate of a currency on a day (its newest without one), None for USD; a currency without any is refused."""
    if code == "USD":
        return None
    rates = package.rates()
    if code not in rates:
        error = unknown(Message("currency with a dated rate"), code, ["USD", *rates])
        raise UnknownName(error.message, Message("{hint} Or give your own: --rate", hint=error.hint), error.nearest)
    return rate_on(rates[code], as_of)


def shown_in(request: OfferFilters, as_of: date) -> Fx | None:
    """The rate of the currency that a request wants to see: the person's own, else a dated one; None for USD."""
    if request.usd_per_unit is not None:
        return Fx(code=request.currency, usd_per_unit=request.usd_per_unit, observed=as_of, source="--rate")
    return currency(request.currency, as_of)


def rate_on(rates: Sequence[Fx], as_of: date | None) -> Fx:
    """The newest of the rates up to the day, else the first after it. rates: the oldest first."""
    known = [rate for rate in rates if as_of is None or rate.observed <= as_of]
    return known[-1] if known else rates[0]


def rate_notes(fx: Fx | None, as_of: date) -> tuple[Message, ...]:
    """A rate that nobody could know on the day asked about is said to be one."""
    if fx is None or fx.observed <= as_of:
        return ()
    values = {"code": fx.code, "as_of": as_of, "day": fx.observed}
    return (Message("no rate of {code} up to {as_of} is known: the one of {day} is used", **values),)


def as_placed(request: R, offers: Catalogue) -> R:
    """The same request with the place of the data as offers and tariffs spell it. UnknownName for a provider or a
    region that none of them has."""
    if not isinstance(request, JobFilters) or request.data_from == "here":
        return request
    provider, slash, region = request.data_from.partition("/")
    tariffs = package.tariffs()
    known = {name.casefold(): name for name in (*offers.provider.values, *tariffs.providers)}
    if provider.casefold() not in known:
        raise unknown(Message("provider in --from"), provider, [*sorted(known.values()), "here"])
    provider = known[provider.casefold()]
    theirs = offers.take(offers.provider.isin((provider,)))
    regions = {theirs.region[row] for row in range(len(theirs))} | tariffs.regions(provider)
    named = sorted(name for name in regions if name)
    spelled = {name.casefold(): name for name in named}
    if slash and named and region.casefold() not in spelled:
        raise unknown(Message("region of that provider in --from"), region, named)
    return replace(request, data_from=f"{provider}{slash}{spelled.get(region.casefold(), region)}")


FAR_OFF = 3.0
"""A rate so many times the one at which prices of the same currency were converted is questioned."""


def _upside_down(fx: Fx | None, offers: Catalogue) -> Iterator[Message]:
    """A person's own rate that does not fit the prices that are published in that currency."""
    if fx is None or fx.source != "--rate":
        return
    rows = np.flatnonzero(offers.currency.isin((fx.code,)) & (offers.price_usd_per_hour > 0))
    dated = [rate.usd_per_unit for rate in package.rates().get(fx.code, ())]
    used = offers.offer(int(rows[0])).usd_per_unit if len(rows) else dated[-1] if dated else None
    if used and not 1 / FAR_OFF < fx.usd_per_unit / used < FAR_OFF:
        text = "--rate: 1 {code} is {said:.4g} USD, but prices in {code} were converted at {used:.4g}: upside down?"
        yield Message(text, code=fx.code, said=fx.usd_per_unit, used=used)


def platforms(text: str, option: str = "--on") -> tuple[list[Platform], tuple[Message, ...]]:
    """The platforms that an option names: one a variant; with "+" between them, one machine that has them all."""
    if _AND.search(text):
        return [_mixed([platforms(part)[0] for part in _AND.split(text)], text)], ()
    index = Index(package.accelerators().values())
    picked = resolve_request(index, text)
    if not picked.ids:
        raise InvalidInput(
            Message("{option} {text}: this names no GPU.", option=option, text=text),
            Message("Write a GPU, such as A100-80GB:2."),
        )
    if picked.count is not None and picked.count.low != picked.count.high:
        raise InvalidInput(
            Message("{option} {text}: a prediction is for one number of GPUs.", option=option, text=text),
            Message("Write A100-80GB:2."),
        )
    count = 1 if picked.count is None or picked.count.low is None else int(picked.count.low)
    return [Platform(variants=(package.accelerators()[name],), per_node=count) for name in picked.ids], picked.notes


_AND = re.compile(r"\s*\+\s*")


def _mixed(named: Sequence[Sequence[Platform]], text: str) -> Platform:
    """One machine with all that is named, each of them one GPU of which it is known which."""
    doubtful = next((found for found in named if len(found) > 1), None)
    if doubtful is not None:
        names = ", ".join(platform.name.upper() for platform in doubtful)
        raise InvalidInput(
            Message("--on {text}: one of these names stands for several GPUs.", text=text),
            Message("Write one of: {names}.", names=names),
        )
    parts = [found[0] for found in named]
    variants = tuple(dict.fromkeys(part.variants[0] for part in parts))
    return Platform(variants=variants, per_node=sum(p.per_node for p in parts), mixed=len(variants) > 1)


def _predictor(workloads: Sequence[Workload], measurements: Sequence[Measurement]) -> Predict:
    """Predictions from the shipped model and all that is measured about these workloads."""
    names = frozenset().union(*(needed(workload) for workload in workloads))
    rows = (*package.throughput(names), *package.inference(names))
    evidence = Evidence.of(rows, package.accelerators(), package.model(), measurements, package.counts())
    return with_memory(predictor(evidence, package.assumptions()), package.assumptions(), package.memory())


def workload_of(name: str, request: JobFilters | DescribeRequest) -> Workload:
    """A built-in workload or a TOML file, with what the request overrides."""
    known = package.workloads()
    if name in known:
        workload = known[name]
    elif Path(name).suffix.casefold() == ".toml" or Path(name).exists():
        workload = own().workload(Path(name))
    else:
        raise unknown(Message("workload"), name, list(known))
    return _ended(override(_as_measured(workload, request), **_stated(request)), request)


def _as_measured(workload: Workload, request: JobFilters | DescribeRequest) -> Workload:
    """The workload with what the person's own runs of it say of the job."""
    for run in own_runs(request):
        if run.workload in (workload.name, *workload.measured_as):
            workload = as_measured(workload, run)
    return workload


def workloads_of_runs(request: JobFilters) -> list[Workload]:
    """The jobs that the runs measured, where no workload is named: built in, or described by the run's counts."""
    known, found = package.workloads(), dict[str, Workload]()
    for run in own_runs(request):
        named = known.get(run.workload)
        found[run.workload] = as_measured(named, run) if named else of_run(run)
    return [_ended(override(workload, **_stated(request)), request) for workload in found.values()]


def _ended(workload: Workload, request: JobFilters | DescribeRequest) -> Workload:
    """With what is known of the epochs until training ends, where they are not a number."""
    wish = request if isinstance(request, JobFilters) else JobFilters(epochs=request.epochs)
    runs = [run for run in own_runs(request) if run.workload in (workload.name, *workload.measured_as)]
    return ended(workload, wish, runs, package.epochs())


def _stated(request: JobFilters | DescribeRequest) -> dict[str, Any]:
    """What the person states of a job, instead of what the workload says."""
    return {
        key: getattr(request, key)
        for key in ("batch", "epochs", "samples", "precision", "mode")
        if hasattr(request, key)
    }


_LOOK = {
    "provider": "gpuwise data list --by provider",
    "figure": "gpuwise own … --json (figures)",
    "offer": "gpuwise data list --limit all",
    "instance, GPU, offer or provider": "gpuwise data list --limit all",
}
"""Where the names of a kind stand, if they are too many to be said."""


def unknown(what: Message, name: str, known: Sequence[str]) -> UnknownName:
    """Nobody bears that name: what may have been meant, and how many there are. A list is said whole or not at all."""
    near = nearest(name, known)
    if len(known) <= MOST_LISTED:
        hint = Message("Known are: {names}.", names=", ".join(sorted(known)))
    else:
        hint = Message(
            "There are {count}: {look}", count=len(set(known)), look=_LOOK.get(what.template, "gpuwise data list")
        )
    if near:
        hint = Message("Did you mean {names}? {hint}", names=", ".join(near), hint=hint)
    return UnknownName(Message('There is no {what} "{name}".', what=what, name=name), hint, near)
