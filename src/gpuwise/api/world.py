"""What a request is answered from: offers, evidence and agreements, read and put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType

from gpuwise.catalogue import Catalogue, join
from gpuwise.cost.annuity import owned_offers
from gpuwise.cost.discounts import Discounts
from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.model import Fx, Measurement, Platform, Workload
from gpuwise.names import Index, resolve_request
from gpuwise.plugins import source
from gpuwise.predict import Evidence, Predictor, needed, predictor
from gpuwise.rank import Context, GpuFilter, usual_prices
from gpuwise.request import DescribeRequest, JobFilters, OfferFilters
from gpuwise.store import package
from gpuwise.workloads import override


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
        context, remarks = filter_context(request, today)
        measurements = [own().measurement(Path(path), facts) for path in request.measured]
        quotas = own().quotas(Path(request.quota), facts) if request.quota else ()
        return World(
            offers=offers,
            context=replace(context, predict=_predictor(workloads, measurements), quotas=quotas),
            notes=(*notes, *remarks),
            fx=currency(request.currency),
        )


def own() -> ModuleType:
    """The reader of the person's files, imported when there is one to read."""
    return import_module("gpuwise.sources.file")


def filter_context(request: OfferFilters, today: date) -> tuple[Context, tuple[Message, ...]]:
    """What filtering needs, without evidence for predictions; with it remarks on the names that were given."""
    gpu, remarks = gpu_filter(request)
    path = request.discounts
    context = Context(
        as_of=request.as_of or today,
        data_version=package.version(),
        accelerators=package.accelerators(),
        predict=lambda workload, platforms: (),
        assumptions=package.assumptions(),
        gpu=gpu,
        discounts=own().discounts(Path(path), package.facts()) if path else Discounts(),
        usual_usd_per_hour=usual_prices(package.offers()),
    )
    return context, remarks


def read_offers(request: OfferFilters, today: date) -> tuple[Catalogue, tuple[Message, ...]]:
    """The offers a request looks at: bundled, the person's own, today's, and owned machines (examples unless he has
    his own). With them what reading had to say."""
    facts = package.facts()
    loaded = [] if request.only_offers else [source("package").load(facts, today)]
    if request.live:
        loaded.append(source("gpuhunt").load(facts, today))
    if request.offers:
        loaded.append(own().FileSource([Path(p) for p in request.offers]).load(facts, today))
    machines = [m for path in request.machine for m in own().machines(Path(path), facts)]
    if not request.machine and not request.only_offers:
        machines = list(package.machines())
    owned = [owned_offers(machines)] if machines else []
    offers = join([*(one.catalogue for one in loaded), *owned])
    _check_providers(request, offers)
    return offers, tuple(note for one in loaded for note in one.notes)


def gpu_filter(request: OfferFilters) -> tuple[GpuFilter, tuple[Message, ...]]:
    """`--gpu` resolved to ids; the notes say where a name stands for several. UnknownName with what may be meant."""
    index = Index(package.accelerators().values())
    picked = [resolve_request(index, text) for text in request.gpu]
    names = tuple((frozenset(p.ids), p.count) for p in picked if p.ids)
    memory = [p.memory for p in picked if p.memory is not None]
    count = [p.count for p in picked if p.count is not None and not p.ids]
    notes = tuple(note for p in picked for note in p.notes)
    return GpuFilter(names=names, memory_gib=tuple(memory), count=tuple(count)), notes


def currency(code: str) -> Fx | None:
    """The dated rate of a currency, None for USD; a currency without one is refused, never guessed."""
    if code == "USD":
        return None
    rates = package.fx()
    if code not in rates:
        raise unknown("currency with a dated rate", code, ["USD", *rates])
    return rates[code]


def platforms(text: str) -> list[Platform]:
    """The platforms that `--on` names: one a variant."""
    index = Index(package.accelerators().values())
    picked = resolve_request(index, text)
    if not picked.ids:
        raise InvalidInput(
            Message("--on {text}: this names no GPU.", text=text), Message("Write a GPU, such as A100-80GB:2.")
        )
    count = 1 if picked.count is None or picked.count.low is None else int(picked.count.low)
    return [Platform(variants=(package.accelerators()[name],), per_node=count) for name in picked.ids]


def _predictor(workloads: Sequence[Workload], measurements: Sequence[Measurement]) -> Predictor:
    """Predictions from all that is measured about these workloads and their nearest kin."""
    wanted = [needed(workload) for workload in workloads]
    names = None if None in wanted else frozenset().union(*(w for w in wanted if w is not None))
    evidence = Evidence.of(
        package.throughput(names), package.accelerators(), package.counts(), measurements=measurements
    )
    return predictor(evidence, package.assumptions())


def workload_of(name: str, request: JobFilters | DescribeRequest) -> Workload:
    """A built-in workload or a TOML file, with what the request overrides."""
    known = package.workloads()
    if name in known:
        workload = known[name]
    elif Path(name).suffix.casefold() == ".toml" or Path(name).exists():
        workload = own().workload(Path(name))
    else:
        raise unknown("workload", name, list(known))
    return override(workload, **{key: getattr(request, key) for key in ("batch", "epochs", "samples", "precision")})


def _check_providers(request: OfferFilters, offers: Catalogue) -> None:
    for name in request.provider:
        if name not in offers.provider.values:
            raise unknown("provider", name, offers.provider.values)


def unknown(what: str, name: str, known: Sequence[str]) -> UnknownName:
    nearest = get_close_matches(name, known, n=3)
    hint = (
        Message("Did you mean {names}?", names=", ".join(nearest))
        if nearest
        else Message("Known are: {names}.", names=", ".join(sorted(known)[:20]))
    )
    return UnknownName(Message('There is no {what} "{name}".', what=what, name=name), hint, nearest)
