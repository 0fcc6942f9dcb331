"""Why an offer is left out: one rule a reason, each a mask over the catalogue's columns.

Rules are independent masks, so that an offer can be asked "what else would keep you out?": the nearest relaxation of a
filter is found among the offers that fail that filter and nothing else. The first failing rule names the exclusion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from gpuwise.catalogue import NO_DATE, Catalogue, as_date, as_days, price_reason
from gpuwise.errors import Message
from gpuwise.request import OfferFilters
from gpuwise.units import Range

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

FRESH_DAYS = 7
"""What was seen available longer ago says nothing about today."""

MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd multiplier that spreads bits (2⁶⁴ over the golden ratio; Knuth, TAOCP vol. 3, §6.4)."""

ODD_FRACTION = 0.4
"""A quote under this share of the median that the same marketplace asks for the same GPUs on that day is an outlier."""
ENOUGH_QUOTES = 4
"""So many quotes at least make a median to compare with."""

IMPLAUSIBLE_FRACTION = 0.05
"""A price under this share of the usual price of the same accelerator is taken for an error (bid floor, wrong unit)."""

EU = frozenset(
    {"AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IT", "LT", "LU", "LV"}
    | {"MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK", "EU"}
)
"""Member states since 2020-02-01 (ISO 3166-1); "EU" stands for rows whose provider says no more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFilter:
    """What `--gpu` asks for. names: (accelerator ids, number of GPUs or None), any of which may match; all ranges of
    memory_gib (nominal, per GPU) and of count must hold."""

    names: tuple[tuple[frozenset[str], Range | None], ...] = ()
    memory_gib: tuple[Range, ...] = ()
    count: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """At most `accelerators` devices of `accelerator` (None: of any) at `provider`, in `region` (None: anywhere)."""

    provider: str
    accelerators: int
    region: str | None = None
    accelerator: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """fails: rows (n,) that the rule leaves out. reason: of one row. distance: how far a row is from passing, NaN or
    None if the rule cannot be relaxed; change: what to alter so that the row passes."""

    name: str
    fails: Mask
    reason: Callable[[int], Message]
    distance: Floats | None = None
    change: Callable[[int], Message] | None = None


def offer_rules(
    offers: Catalogue,
    price_usd_per_hour: Floats,
    request: OfferFilters,
    as_of: date,
    gpu: GpuFilter,
    memory_gib: Floats,
    usual_usd_per_hour: Mapping[str, float],
    quotas: Sequence[Quota],
) -> list[Rule]:
    """All rules that need no prediction, in the order in which they name an exclusion.

    memory_gib: nominal per accelerator, shape (n,). usual_usd_per_hour: accelerator id -> usual price of one device.
    """
    return [
        *_age_rules(offers, request, as_of),
        *_price_rules(offers, price_usd_per_hour, usual_usd_per_hour, getattr(request, "sort", "") == "time"),
        *_market_rules(offers, price_usd_per_hour, request.min_reliability_fraction),
        *_state_rules(offers, request, as_of),
        *_gpu_rules(offers, gpu, memory_gib),
        *_text_rules(offers, request),
        *_limit_rules(offers, price_usd_per_hour, request, quotas),
    ]


def _age_rules(offers: Catalogue, request: OfferFilters, as_of: date) -> list[Rule]:
    today = as_days(as_of)
    dated = offers.observed != NO_DATE
    age = np.where(dated, today - offers.observed, 0)
    bound = offers.observed_precision.isin(("not-before",))

    def stale(row: int) -> Message:
        day, days = as_date(offers.observed[row]), int(age[row])
        if bound[row]:
            return Message("the price is from {day} or later, the true date is not known", day=day)
        return Message("the price of {day} is {days} days old", day=day, days=days)

    future = dated & (age < 0)
    return [
        Rule(
            name="after_as_of",
            fails=future,
            reason=lambda row: Message(
                "the price was seen on {day}, after the day asked for", day=as_date(offers.observed[row])
            ),
        ),
        Rule(
            name="stale_price",
            fails=age > request.max_age_days,
            reason=stale,
            distance=age.astype(float),
            change=lambda row: Message("--max-age {days}", days=int(age[row])),
        ),
        Rule(
            name="superseded",
            fails=_superseded(offers, ~future),
            reason=lambda row: Message("a newer price of the same offer is listed"),
        ),
    ]


def _superseded(offers: Catalogue, known: Mask) -> Mask:
    """Rows for which a newer priced row of the same offer exists among the `known` ones.

    Where no instance is named, machines that differ in vCPUs or host memory are different offers.
    """
    nameless = offers.instance.codes < 0
    texts = (offers.provider, offers.instance, offers.region, offers.market, offers.accelerator)
    hosts = (np.where(nameless, column, -1.0) for column in (offers.vcpus, offers.host_memory_gib))
    numbers = (offers.accelerators * offers.nodes, offers.term_h, *hosts)
    parts = [*(text.codes.astype(np.uint64) for text in texts), *(_bits(number) for number in numbers)]
    mixed = np.zeros(len(offers), np.uint64)
    for part in parts:  # 64 bits: two of 100,000 different offers meet with a probability of 3·10⁻¹⁰
        mixed = (mixed ^ part) * MIXER
        mixed ^= mixed >> np.uint64(29)
    if not len(offers):
        return known
    order = np.argsort(mixed)
    starts = np.flatnonzero(np.diff(mixed[order], prepend=~mixed[order[:1]]))
    priced = known & (offers.price_usd_per_hour >= 0)
    newest = np.maximum.reduceat(np.where(priced, offers.observed, NO_DATE)[order], starts)
    superseded = np.empty(len(offers), bool)
    superseded[order] = offers.observed[order] < np.repeat(newest, np.diff(starts, append=len(offers)))
    return known & superseded


def _bits(numbers: Floats) -> NDArray[np.uint64]:
    """Each number as 64 bits, equal for equal numbers; what is not known is one of them."""
    return np.nan_to_num(numbers, nan=-1.0).view(np.uint64)


def _price_rules(offers: Catalogue, price: Floats, usual: Mapping[str, float], by_time: bool) -> list[Rule]:
    """by_time: offers without a price stay, since what is asked for is speed."""

    def state(*names: str) -> Mask:
        return offers.price_state.isin(names)

    def reason(row: int) -> Message:
        return price_reason(offers.price_state[row])

    with np.errstate(divide="ignore", invalid="ignore"):  # a row of no GPUs fails another rule
        per_device = price / (offers.accelerators * offers.nodes)
    floor = IMPLAUSIBLE_FRACTION * offers.accelerator.lookup(
        [usual.get(a, np.nan) for a in offers.accelerator.values], np.nan, np.float64
    )
    vouched = state("free", "confirmed") | offers.market.isin(("owned", "free"))
    stated = state("minimum bid", "incomplete", "suspect")
    return [
        Rule(name="minimum_bid", fails=state("minimum bid"), reason=reason),
        Rule(name="incomplete_price", fails=state("incomplete"), reason=reason),
        Rule(name="suspect_price", fails=state("suspect"), reason=reason),
        Rule(name="unknown_price", fails=~stated & ~(price > 0) & ~state("free") & (not by_time), reason=reason),
        Rule(
            name="implausible_price",
            fails=~vouched & ~stated & (per_device < floor),
            reason=lambda row: Message(
                "{price:.4f} USD an hour for one GPU is under a twentieth of its usual price ({usual:.2f} USD); "
                "if it is right, give the row price_state = confirmed",
                price=float(per_device[row]),
                usual=float(floor[row] / IMPLAUSIBLE_FRACTION),
            ),
        ),
    ]


def _market_rules(offers: Catalogue, price: Floats, least_fraction: float) -> list[Rule]:
    """What of a marketplace is no fair offer: a host that fails too often, a quote far below all others (UC-068)."""
    reliability, usual = offers.reliability_fraction, quoted_medians(offers, price)
    vouched = offers.price_state.isin(("confirmed",))
    return [
        Rule(
            name="unreliable",
            fails=reliability < least_fraction,
            reason=lambda row: Message(
                "the marketplace calls it {percent:.0f} % reliable", percent=100 * reliability[row]
            ),
            distance=least_fraction - reliability,
            change=lambda row: Message(
                "--min-reliability {percent:.0f}%", percent=float(np.floor(100 * reliability[row]))
            ),
        ),
        Rule(
            name="outlier_price",
            fails=(price < ODD_FRACTION * usual) & ~vouched,
            reason=lambda row: Message(
                "{price:.3g} USD an hour, where the median of the same marketplace is {usual:.3g}; if it is right, "
                "give the row price_state = confirmed",
                price=float(price[row]),
                usual=float(usual[row]),
            ),
        ),
    ]


def quoted_medians(offers: Catalogue, price: Floats) -> Floats:
    """Median price of the same marketplace, GPUs and day, NaN where there are few quotes; shape (n,)."""
    quoted = np.flatnonzero(offers.market.isin(("community",)) & (price > 0))
    found = np.full(len(offers), np.nan)
    if not len(quoted):
        return found
    parts = (offers.provider.codes, offers.accelerator.codes, offers.accelerators * offers.nodes, offers.observed)
    keys = np.stack([np.nan_to_num(np.asarray(part, float)[quoted], nan=-1.0) for part in parts])
    _, group, count = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    for one in np.flatnonzero(count >= ENOUGH_QUOTES):
        rows = quoted[group.ravel() == one]
        found[rows] = np.median(price[rows])
    return found


def _state_rules(offers: Catalogue, request: OfferFilters, as_of: date) -> list[Rule]:
    gone = offers.availability.isin(("withdrawn",)) | (
        (offers.withdrawn != NO_DATE) & (offers.withdrawn <= as_days(as_of))
    )
    rules = [
        Rule(
            name="unknown_accelerator",
            fails=(offers.accelerator.codes < 0) | ~(offers.accelerators >= 1),
            reason=lambda row: Message("the source does not say which GPU it is, or how many"),
        ),
        Rule(name="withdrawn", fails=gone, reason=lambda row: Message("the offer was withdrawn")),
    ]
    if request.startable:
        age = as_days(as_of) - offers.observed
        fresh = offers.market.isin(("owned",)) & ~offers.quality.isin(("example",))
        fresh |= (offers.observed != NO_DATE) & (age <= FRESH_DAYS) & ~offers.market.isin(("owned",))

        def unseen(row: int) -> Message:
            state = offers.availability[row] or "unknown"
            if state == "available" and not fresh[row]:
                return Message("it was last seen available {days} days ago", days=int(age[row]))
            return Message("available now: {state}", state=state)

        rules.append(
            Rule(
                name="not_startable",
                fails=~(offers.availability.isin(("available",)) & fresh),
                reason=unseen,
                distance=np.zeros(len(offers)),
                change=lambda row: Message("leave out --startable"),
            )
        )
    return rules


def _gpu_rules(offers: Catalogue, gpu: GpuFilter, memory_gib: Floats) -> list[Rule]:
    count = offers.accelerators * offers.nodes
    rules = []
    if gpu.names:
        variants = [frozenset(v.split("|")) for v in offers.accelerator.values]
        hits = [
            offers.accelerator.lookup([v <= ids for v in variants], False, np.bool_)
            & (True if number is None else _distance(count, [number]) <= 0)
            for ids, number in gpu.names
        ]
        rules.append(
            Rule(
                name="gpu_name",
                fails=~np.logical_or.reduce(hits),
                reason=lambda row: Message("the GPU is {gpu}", gpu=offers.accelerator[row] or "unknown"),
                distance=np.zeros(len(offers)),
                change=lambda row: Message("--gpu {gpu}", gpu=(offers.accelerator[row] or "").replace("|", ",")),
            )
        )
    if gpu.memory_gib:
        rules.append(
            _range_rule(
                "gpu_memory",
                memory_gib,
                gpu.memory_gib,
                says=lambda value: Message("{value:g} GB per GPU", value=value),
                change=lambda value: Message("--gpu {value:g}GB", value=value),
            )
        )
    if gpu.count:
        rules.append(
            _range_rule(
                "gpu_count",
                count,
                gpu.count,
                says=lambda value: Message("{value:g} GPUs", value=value),
                change=lambda value: Message("--gpu {value:g}", value=value),
            )
        )
    return rules


def _range_rule(
    name: str,
    values: Floats,
    bounds: Sequence[Range],
    *,
    says: Callable[[float], Message],
    change: Callable[[float], Message],
) -> Rule:
    distance = _distance(values, bounds)
    return Rule(
        name=name,
        fails=~(distance <= 0),
        reason=lambda row: says(float(values[row])),
        distance=distance,
        change=lambda row: change(float(values[row])),
    )


def _distance(values: Floats, bounds: Sequence[Range]) -> Floats:
    """How far each value lies outside the ranges; 0 or less inside, NaN for an unknown value."""
    below = [r.low - values for r in bounds if r.low is not None]
    above = [values - r.high for r in bounds if r.high is not None]
    return np.asarray(np.maximum.reduce([*below, *above, np.where(np.isnan(values), np.nan, 0.0)]))


def usual_prices(offers: Catalogue, least: int = 4) -> dict[str, float]:
    """accelerator -> median price of one device and hour, in USD, where at least so many listed prices are known."""
    listed = offers.price_state.isin(("listed",)) & (offers.price_usd_per_hour > 0) & (offers.accelerator.codes >= 0)
    each = offers.price_usd_per_hour / (offers.accelerators * offers.nodes)
    codes, prices = offers.accelerator.codes[listed], each[listed]
    order = np.lexsort((prices, codes))
    cards, first, count = np.unique(codes[order], return_index=True, return_counts=True)
    middle = (prices[order][first + (count - 1) // 2] + prices[order][first + count // 2]) / 2
    found = zip(cards, middle, count, strict=True)
    return {offers.accelerator.values[card]: float(price) for card, price, n in found if n >= least}


def _text_rules(offers: Catalogue, request: OfferFilters) -> list[Rule]:
    rules = []

    def only(name: str, passes: Mask, option: str, value: Callable[[int], str | None]) -> None:
        rules.append(
            Rule(
                name=name,
                fails=~passes,
                reason=lambda row: Message("{what}: {value}", what=name, value=value(row) or "unknown"),
                distance=np.zeros(len(offers)),
                change=lambda row: Message("{option} {value}", option=option, value=value(row) or "…"),
            )
        )

    if request.provider:
        only("provider", offers.provider.isin(request.provider), "--provider", lambda row: offers.provider[row])
    if request.region:
        starts = tuple(r.casefold() for r in request.region)
        match = [v.casefold().startswith(starts) for v in offers.region.values]
        only("region", offers.region.lookup(match, False, np.bool_), "--region", lambda row: offers.region[row])
    if request.market:
        only("market", offers.market.isin(request.market), "--market", lambda row: offers.market[row])
    if request.host == "datacentre":
        only("host", offers.host.isin(("datacentre", "own")), "--host", lambda row: "any")
    if request.data_must_stay:
        rules.append(_residence_rule(offers, request.data_must_stay))
    return rules


def _residence_rule(offers: Catalogue, where: str) -> Rule:
    """Where the data may lie. An offer whose country is not known is left out: doubt counts against it."""
    place = where.strip()
    if place.casefold() == "on-premises":
        passes = offers.market.isin(("owned",))
    else:
        code = place.upper()
        passes = offers.country.isin(EU if code == "EU" else (code,))
    return Rule(
        name="data_must_stay",
        fails=~passes,
        reason=lambda row: (
            Message("the country is {country}", country=offers.country[row])
            if offers.country[row]
            else Message("the country is not known")
        ),
        distance=np.where(offers.country.codes >= 0, 0.0, np.nan),
        change=lambda row: Message("--data-must-stay {country}", country=offers.country[row]),
    )


def _limit_rules(offers: Catalogue, price: Floats, request: OfferFilters, quotas: Sequence[Quota]) -> list[Rule]:
    rules = []
    if (most := request.max_price_usd_per_hour) is not None:
        rules.append(
            Rule(
                name="max_price",
                fails=price > most,
                reason=lambda row: Message("{price:.4g} USD an hour", price=float(price[row])),
                distance=price,
                change=lambda row: Message("--max-price {price:.4g}USD", price=_ceil(float(price[row]))),
            )
        )
    if quotas:
        over, limit = _over_quota(offers, quotas)
        rules.append(
            Rule(
                name="quota",
                fails=over,
                reason=lambda row: Message("your quota there is {limit:g} GPUs", limit=float(limit[row])),
                distance=offers.accelerators * offers.nodes - limit,
                change=lambda row: Message(
                    "a quota of {count:g} GPUs", count=float(offers.accelerators[row] * offers.nodes[row])
                ),
            )
        )
    return rules


def _over_quota(offers: Catalogue, quotas: Sequence[Quota]) -> tuple[Mask, Floats]:
    """Rows above the tightest quota that names them, and that quota; providers without one are not limited."""
    limit = np.full(len(offers), np.inf)
    for quota in quotas:
        rows = offers.provider.isin((quota.provider,))
        if quota.region is not None:
            rows &= offers.region.isin((quota.region,))
        if quota.accelerator is not None:
            rows &= offers.accelerator.isin((quota.accelerator,))
        limit[rows] = np.minimum(limit[rows], quota.accelerators)
    return offers.accelerators * offers.nodes > limit, limit


def _ceil(value: float) -> float:
    """Rounded up to four significant digits, so that the printed limit admits the offer."""
    step = 10.0 ** (np.floor(np.log10(value)) - 3)
    return float(np.ceil(value / step) * step)
