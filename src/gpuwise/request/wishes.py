"""What nothing can ever meet: wishes whose parts exclude each other, named before any work is done."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from gpuwise import units
from gpuwise.errors import InvalidInput, Message
from gpuwise.request.about import options
from gpuwise.request.measuring import MeasureRequest, RunsRequest
from gpuwise.request.offers import OfferFilters
from gpuwise.request.owning import ExitRequest, OwnFilters, OwnRequest
from gpuwise.request.types import (
    AccuracyRequest,
    DataRequest,
    DescribeRequest,
    ExplainRequest,
    JobFilters,
    RankRequest,
)


def refuse_contradictions(request: object) -> None:
    """Raises InvalidInput for a wish that nothing can ever meet, or whose parts exclude each other."""
    if isinstance(request, OfferFilters):
        _refuse_no_offer(request)
    if isinstance(request, JobFilters):
        _refuse_no_tax(request)
        _refuse_two_ends(request)
        _refuse_no_work(request)
        _refuse_idle(request)
    if isinstance(request, ExplainRequest) and request.offer and request.on:
        raise InvalidInput(Message("--offer and --on exclude each other: one names an offer, the other a GPU."), ONE)
    if isinstance(request, DescribeRequest) and request.tokens and request.input_size != _USUAL_SIDE:
        raise InvalidInput(Message("--tokens and --input-size exclude each other: a sequence, or an image."), ONE)
    if isinstance(request, DataRequest):
        _refuse_wrong_names(request)
        _refuse_unused(request, "data", USED_BY)
    if isinstance(request, AccuracyRequest) and request.against and (request.split or request.fresh):
        said = "--split" if request.split else "--fresh"
        raise InvalidInput(
            Message("--against and {other} exclude each other: your table, or our splits.", other=said), ONE
        )
    for kind, refuse in _LATER.items():
        if isinstance(request, kind):
            refuse(request)
    if isinstance(request, RunsRequest):
        _refuse_wrong_runs(request)
        _refuse_unused(request, "runs", USED_BY_RUNS)


_RANGE = re.compile(r"[^.:]*\.\.[^.:]*|[0-9]{1,3}|[0-9.]+\s*[MGT]i?B", re.I)


def gpu_ranges(texts: Sequence[str]) -> list[units.Range]:
    """The ranges among what `--gpu` asks for. The other texts are names; so is a number of four digits (4090)."""
    return [units.parse_range(t) for t in texts if _RANGE.fullmatch(t)]


ONE = Message("Leave one of them out.")
_USUAL_SIDE = options(DescribeRequest)["input-size"].default


def _refuse_no_offer(request: OfferFilters) -> None:
    _refuse_no_gpu(request.gpu)
    if request.usd_per_unit is not None and request.currency == "USD":
        raise InvalidInput(
            Message("--rate needs the currency that it is of, and that is USD."),
            Message("Add --currency, for example: --currency CNY --rate 1/6.70"),
        )
    if request.only_offers and not (request.offers or request.machine or request.live):
        raise InvalidInput(
            Message("--only-offers leaves the bundled offers out, and there are no others."),
            Message("Add --offers FILE, --machine FILE or --live."),
        )
    if request.data_must_stay == "on-premises" and request.market and "owned" not in request.market:
        raise InvalidInput(
            Message(
                "--data-must-stay on-premises and --market {markets} exclude each other.",
                markets=",".join(request.market),
            ),
            Message("Data stays on the premises only on owned machines: add owned to --market, or leave one out."),
        )


def _refuse_no_demand(request: OwnRequest) -> None:
    """What a scenario says is not known here."""
    ways = {"--demand": request.demand_gpu_h_per_month, "--record": request.record, "--job": request.job}
    said = [name for name, value in ways.items() if value is not None]
    if not said and request.scenario is None:
        raise InvalidInput(
            Message("--demand is missing: how much work is wanted? --record and --job say it too."),
            Message("Give it, for example: --demand '1200 GPU-h/month'"),
        )
    if len(said) > 1:
        raise InvalidInput(Message("{names} exclude each other: one says how much.", names=" and ".join(said)), ONE)


def _refuse_no_usage(request: ExitRequest) -> None:
    """What a scenario says is not known here."""
    if not (request.files or request.services) and request.scenario is None:
        raise InvalidInput(
            Message("USAGE is missing: cost exports of some months, or --services for the checklist alone."),
            Message("Give it, for example: gpuwise exit usage.csv"),
        )
    if request.files and request.services:
        raise InvalidInput(Message("--services is for where there is no bill: a bill names its services."), ONE)


def refuse_passed(request: OwnFilters, as_of: date | None) -> None:
    """Nothing can run by a day that lies before the one that is answered for (None: not known yet)."""
    if request.by is not None and as_of is not None and request.by < as_of:
        raise InvalidInput(
            Message("--by {by} has passed on {as_of}.", by=request.by, as_of=as_of),
            Message("Give a later day, or leave it out."),
        )


def _refuse_no_gpu(texts: Sequence[str]) -> None:
    """Any of the names may match, but every range must hold: of memory, and of the number of GPUs."""
    ranges = gpu_ranges(texts)
    sizes, counts = ([r for r in ranges if r.kind == kind] for kind in ("memory", "count"))
    numbers = [_number(t) for t in texts if not gpu_ranges([t])]
    misfits = [n for n in numbers if n is not None and not all(r.holds(n) for r in counts)]
    if _empty(sizes) or _empty(counts) or (misfits and len(misfits) == len(numbers)):
        raise InvalidInput(
            Message("--gpu {texts}: no GPU can meet all of these.", texts=",".join(texts)),
            Message("Any of the names may match, but every range must hold: leave one out, or write 24GB..80GB."),
        )


def _number(text: str) -> int | None:
    """The number of GPUs after a name: 8 of "H100-SXM:8"."""
    found = re.search(r":\s*([0-9]+)$", text)
    return int(found[1]) if found else None


def _empty(ranges: Sequence[units.Range]) -> bool:
    """Is there nothing that lies in all of them?"""
    low = max((r.low for r in ranges if r.low is not None), default=-math.inf)
    high = min((r.high for r in ranges if r.high is not None), default=math.inf)
    return low > high


def _refuse_no_tax(request: JobFilters) -> None:
    if request.tax == "gross" and request.vat_fraction is None:
        raise InvalidInput(
            Message("--tax gross needs your VAT rate, and --vat is missing."),
            Message("Add it, for example: --vat 19%"),
        )
    if request.tax == "net" and request.vat_fraction is not None:
        raise InvalidInput(
            Message("--vat has no meaning with --tax net: net prices hold no VAT."),
            Message("Add --tax gross if you pay VAT, or leave --vat out."),
        )


def _refuse_two_ends(request: JobFilters) -> None:
    """Training ends after so many epochs, at an accuracy, or when accuracy stops growing: one of them."""
    ends = {
        "--epochs": request.epochs,
        "--target-accuracy": request.target_fraction,
        "--early-stop": request.early_stop_epochs,
    }
    given = [name for name, value in ends.items() if value is not None]
    if len(given) > 1:
        raise InvalidInput(
            Message("{names} exclude each other: training ends in one way.", names=" and ".join(given)), ONE
        )


def _refuse_idle(request: JobFilters) -> None:
    """An option that changes nothing without another one is refused rather than ignored."""
    one, every = request.evaluation_s, request.evaluation_every_s
    pairs: list[tuple[bool, str, bool, str]] = [
        (one is not None, "--evaluation", every is not None, "--evaluation-every"),
        (every is not None, "--evaluation-every", one is not None, "--evaluation"),
        (request.data_from != "here", "--from", bool(request.data_gb), "--data-size"),
        (request.apart, "--apart", request.jobs > 1, "--jobs"),
        (
            request.network_gb_per_s is not None,
            "--network",
            bool(request.data_gb or request.image_gb or request.results_gb),
            "--data-size, --image-size or --results-size",
        ),
    ]
    for said, option, needed, other in pairs:
        if said and not needed:
            raise InvalidInput(
                Message("{option} changes nothing without {other}.", option=option, other=other),
                Message("Add {other}, or leave {option} out.", option=option, other=other),
            )
    both = [
        (request.skill and request.prepare_s is not None, "--skill", "--prepare"),
        (request.checkpoint_every_s == math.inf and request.checkpoint_s, "--checkpoint-every never", "--checkpoint"),
    ]
    for clash, first, other in both:
        if clash:
            raise InvalidInput(Message("{one} and {other} exclude each other.", one=first, other=other), ONE)


OF_A_WORKLOAD = (
    "measured", "batch", "epochs", "samples", "target_fraction", "early_stop_epochs", "precision", "mode",
)  # fmt: skip
"""What can be changed of a workload."""


def _refuse_no_work(request: JobFilters) -> None:
    """A job is named, measured or stated; of a stated one nothing is known that could be changed."""
    named = "workload" if isinstance(request, ExplainRequest) else "workloads"
    asked = {option.field: option for option in options(type(request)).values()}
    if request.takes is None:
        measured = isinstance(request, RankRequest) and request.measured
        if named in asked and not getattr(request, named) and not measured:
            raise InvalidInput(
                Message("{what} is missing: {help}", what=asked[named].spelled, help=asked[named].help),
                Message("Give it, for example: {example}", example=asked[named].example),
            )
        return
    said = [asked[name].spelled for name in (named, *OF_A_WORKLOAD) if getattr(request, name)]
    if said:
        raise InvalidInput(Message("--takes and {other} exclude each other: the time is stated.", other=said[0]), ONE)


_NAMES = {
    "show": (1, Message("data show needs one name: of an instance, a GPU, an offer or a provider."), "p2.xlarge"),
    "diff": (
        2,
        Message("data diff needs two names: files, or days of the bundled history."),
        "2026-01-01 2026-06-01",
    ),
}


def _refuse_wrong_names(request: DataRequest) -> None:
    none = (0, Message("data {action} takes no name.", action=request.action), "")
    wanted, rule, names = _NAMES.get(request.action, none)
    if len(request.names) != wanted:
        example = f"gpuwise data {request.action} {names}".rstrip()
        raise InvalidInput(rule, Message("For example: {example}", example=example))


_FILTERS = frozenset((
    "gpu", "provider", "region", "market", "host", "max_price_usd_per_hour", "data_must_stay", "startable",
    "max_age_days", "min_reliability_fraction",
))  # fmt: skip
_OWN = frozenset(("offers", "machine", "only_offers", "live"))
USED_BY = {
    "list": _FILTERS | _OWN | {"as_of", "discounts", "currency", "usd_per_unit", "limit", "by"},
    "show": _OWN | {"as_of", "currency", "usd_per_unit", "limit"},
    "diff": _FILTERS | {"currency", "usd_per_unit", "limit"},
    "check": frozenset(("offers", "only_offers")),
    "refresh": frozenset[str](),
}
"""Which options each action of `data` looks at. An option that changes nothing is refused rather than ignored."""


USED_BY_RUNS = {
    "list": frozenset(("workload", "limit")),
    "show": frozenset[str](),
    "compare": frozenset[str](),
}
"""The same for `runs`."""


def _refuse_unused(request: DataRequest | RunsRequest, verb: str, used_by: Mapping[str, frozenset[str]]) -> None:
    for option in options(type(request)).values():
        said = not option.positional and getattr(request, option.field) != option.default
        if said and option.field not in used_by[request.action]:
            uses = ", ".join(f"{verb} {action}" for action, used in used_by.items() if option.field in used)
            raise InvalidInput(
                Message(
                    "{option} has no meaning with {verb} {action}.",
                    option=option.spelled,
                    verb=verb,
                    action=request.action,
                ),
                Message("It is for: {actions}.", actions=uses),
            )


_MEASURED_ALIKE = frozenset(("workload", "command", "resume", "data", "steps", "until_s", "stall_s"))
"""What every way of measuring understands."""
OF_A_PROGRAM = _MEASURED_ALIKE | {"samples_per_step"}
OF_A_RESUMED_RUN = _MEASURED_ALIKE - {"data"} | {"epochs", "target_fraction", "patience"}


def _refuse_no_job(request: MeasureRequest) -> None:
    """One of three is measured: reference training, a program, or the rest of an interrupted run."""
    given = [what for what in ("workload", "command", "resume") if getattr(request, what)]
    if len(given) != 1:
        what = Message("WORKLOAD or -- COMMAND is missing.") if not given else Message(
            "measure takes a workload, a program or --resume: one of them."
        )  # fmt: skip
        raise InvalidInput(what, Message("For example: gpuwise measure painter-light, or -- python train.py"))
    if request.command:
        _refuse_foreign(request, OF_A_PROGRAM, Message("your own program"))
    elif request.resume:
        _refuse_foreign(request, OF_A_RESUMED_RUN, Message("a resumed run, which goes on as it was begun"))
    elif request.samples_per_step is not None:
        raise InvalidInput(
            Message("--samples-per-step is for your own program: reference training knows its batch."),
            Message("Use --batch."),
        )


def _refuse_foreign(request: MeasureRequest, used: frozenset[str], what: Message) -> None:
    for option in options(MeasureRequest).values():
        if option.field not in used and getattr(request, option.field) != option.default:
            raise InvalidInput(
                Message("{option} has no meaning for {what}.", option=option.spelled, what=what),
                Message("Leave it out."),
            )


_RUNS = {"list": (0, 0, "gpuwise runs list"), "show": (1, 1, "gpuwise runs show 12"),
         "compare": (2, 2, "gpuwise runs compare 11 12")}  # fmt: skip


def _refuse_wrong_runs(request: RunsRequest) -> None:
    least, most, example = _RUNS[request.action]
    if not least <= len(request.names) <= most:
        raise InvalidInput(
            Message("runs {action} takes {n} of: RUN.", action=request.action, n=least),
            Message("For example: {example}", example=example),
        )


_LATER: Mapping[type, Callable[[Any], None]] = {
    MeasureRequest: _refuse_no_job, OwnRequest: _refuse_no_demand, ExitRequest: _refuse_no_usage,
}  # fmt: skip
"""Request type -> what its wishes must hold."""
