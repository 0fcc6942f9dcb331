"""The pages of `gpuwise data`: the offers, what pools hold, one name, the state of the facts, and what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuwise.locale import _, with_commas, words
from gpuwise.model import Accelerator, Fx, Offer
from gpuwise.offer import Provider
from gpuwise.rank.history import Quarter
from gpuwise.units import HOURS_PER_MONTH
from gpuwise.view import figures, offers
from gpuwise.view.catalogue_charts import pools_chart, price_history_blocks
from gpuwise.view.page import Block, Cell, Fact, Facts, Made, Page, Table, Text, column, tabulate, word
from gpuwise.view.vocabulary import market, rule

if TYPE_CHECKING:
    from gpuwise.errors import Message
from gpuwise.integrity import Finding

KEYS: Mapping[str, Callable[[Offer], str]] = {
    "provider": lambda o: o.provider,
    "gpu": lambda o: o.accelerator,
    "market": lambda o: o.market,
    "region": lambda o: o.region or "",
    "country": lambda o: o.country or "",
    "host": lambda o: o.host,
    "date": lambda o: str(o.observed or ""),
}
"""What offers can be counted by: the words of `data list --by`."""


def offers_page(found: Sequence[Offer], total: int, fx: Fx | None = None) -> Page:
    """`data list`: the offers that pass the filters. total: how many there are beside those shown."""
    note = _("{shown} of {total} offers.").format(shown=figures.count(len(found)), total=figures.count(total))
    return Page(
        title=_("Which offers are there?"),
        blocks=(
            Text(text=note, role="answer"),
            tabulate(_("Offers"), offers.offer_columns(fx), found),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Offers that are alike in what they are counted by. names: one a column asked for."""

    names: tuple[str, ...]
    offers: tuple[Offer, ...]


def pools(found: Sequence[Offer], by: Sequence[str]) -> list[Pool]:
    """The offers by these columns, the largest pool first. Each offer is in one pool: one's own machines too."""
    groups: dict[tuple[str, ...], list[Offer]] = {}
    for offer in found:
        groups.setdefault(tuple(KEYS[name](offer) for name in by), []).append(offer)
    largest = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [Pool(names=names, offers=tuple(members)) for names, members in largest]


def pools_page(found: Sequence[Offer], by: Sequence[str], fx: Fx | None = None, limit: int | None = None) -> Page:
    """`data list --by`: counts and shares, never sums of prices, because rows are charged by different units."""
    groups, total = pools(found, by), len(found)
    shown = groups if limit is None else groups[:limit]
    columns = [*_name_columns(by), *_pool_columns(total, fx)]
    note = _("{shown} of {groups} groups, {total} offers in all. Prices of hours and of months stand apart.")
    text = note.format(shown=len(shown), groups=len(groups), total=figures.count(total))
    held = tabulate(_("Offers by group"), columns, shown, [text])
    return Page(title=_("What do the pools hold?"), blocks=(*pools_chart(groups, by), held))


def _name_columns(by: Sequence[str]) -> Iterator[Made[Pool]]:
    titles = {
        "provider": _("Provider"), "gpu": _("GPU"), "market": _("Market"), "region": _("Region"),
        "country": _("Country"), "host": _("Host"), "date": _("Price seen"),
    }  # fmt: skip
    for place, name in enumerate(by):
        yield column(name, titles[name], _name_cell(place, name))


def _name_cell(place: int, name: str) -> Callable[[Pool], Cell]:
    said = {"gpu": figures.devices, "market": market}.get(name, str)
    return lambda pool: Cell(shown=said(pool.names[place]) or _("unknown"), value=pool.names[place])


def _pool_columns(total: int, fx: Fx | None) -> Iterator[Made[Pool]]:
    def gpus(pool: Pool) -> Cell:
        number = sum(o.accelerators for o in pool.offers)
        return Cell(shown=figures.count(number), value=number)

    def size(pool: Pool) -> Cell:
        return Cell(shown=figures.count(len(pool.offers)), value=len(pool.offers))

    def share(pool: Pool) -> Cell:
        fraction = len(pool.offers) / total
        return Cell(shown=figures.percent(fraction), value=fraction)

    yield column("offers", _("Offers"), size, kind="number")
    yield column("offers_fraction", _("Share"), share, kind="number")
    yield column("accelerators", _("GPUs in them"), gpus, kind="number", rank=3)
    yield _price_column("lowest_usd_per_hour", _("By use"), _("{money}/h"), False, fx)
    yield _price_column("lowest_usd_per_month", _("By month"), _("{money}/month"), True, fx)
    yield column("observed", _("Prices seen"), _dates, rank=2)


def _price_column(key: str, title: str, unit: str, monthly: bool, fx: Fx | None) -> Made[Pool]:
    unit = unit.format(money=figures.code(fx))
    return column(key, title, lambda pool: _range(pool, monthly, fx), kind="number", unit=unit, rank=2)


def _range(pool: Pool, monthly: bool, fx: Fx | None) -> Cell:
    """Lowest and highest price of the offers charged by this unit; – if none is."""
    scale = HOURS_PER_MONTH if monthly else 1.0
    prices = sorted(
        o.price_usd_per_hour * scale
        for o in pool.offers
        if o.price_usd_per_hour is not None and (o.price_unit != "hour") == monthly
    )
    if not prices:
        return Cell(shown="–", title=_("no offer of this group is charged so"))
    shown = (figures.in_currency(p, fx) for p in (prices[0], prices[-1]))
    ends = dict.fromkeys(figures.exact_number(float(f"{p:.4g}"), 2) for p in shown)
    return Cell(shown="–".join(ends), value=prices[0])


def _dates(pool: Pool) -> Cell:
    days = sorted(str(o.observed) for o in pool.offers if o.observed)
    if not days:
        return figures.unknown(None)
    return Cell(shown=_(" to ").join(dict.fromkeys((days[0], days[-1]))), value=days[-1])


def name_page(
    name: str, found: Sequence[Offer], accelerators: Sequence[Accelerator], fx: Fx | None = None,
    provider: Provider | None = None, history: Sequence[Quarter] = (),
) -> Page:  # fmt: skip
    """`data show NAME`: what a name stands for. found: offers of that name, newest first; accelerators: their GPUs;
    provider: what is known of its platform, where it is one; history: prices, where the name is a GPU's."""
    if found and name.casefold() == found[0].provider.casefold():
        page = _provider_page(found, fx)
        facts = [offers.platform_facts(provider)] if provider and provider.facts else []
        return replace(page, blocks=(*page.blocks, *facts))
    blocks: list[Block] = [Text(text=_meaning(name, found, accelerators), role="answer")]
    blocks += [Facts(title=a.name, facts=tuple(_device_facts(a))) for a in accelerators]
    if found:
        blocks.append(tabulate(_("Offers"), offers.offer_columns(fx), found))
    blocks += price_history_blocks(history, fx)
    return Page(title=_("What is {name}?").format(name=name), blocks=tuple(blocks))


def _meaning(name: str, found: Sequence[Offer], accelerators: Sequence[Accelerator]) -> str:
    if not found:
        return _("{name}: {gpus}.").format(name=name, gpus=_(" or ").join(a.name for a in accelerators) or _("unknown"))
    offer = found[0]
    memory = (
        ""
        if offer.host_memory_gib is None
        else _(", {n} GiB of host memory").format(n=figures.written(offer.host_memory_gib, "g"))
    )
    vcpus = "" if offer.vcpus is None else _(", {n} vCPUs").format(n=offer.vcpus)
    return _("{name} of {provider}: {gpus}{vcpus}{memory}; prices known: {n}.").format(
        name=name, provider=offer.provider, gpus=figures.gpus(offer), vcpus=vcpus, memory=memory, n=len(found)
    )


def _provider_page(found: Sequence[Offer], fx: Fx | None) -> Page:
    """A provider stands for what it offers, not for the first of its offers."""
    name = found[0].provider
    text = _("{name} is a provider; of its offers the {n} seen last stand below.").format(name=name, n=len(found))
    if len(found) == 1:
        text = _("{name} is a provider; the offer seen last stands below.").format(name=name)
    return Page(
        title=_("What does {name} offer?").format(name=name),
        blocks=(
            Text(text=text, role="answer"),
            tabulate(_("Offers of {name}").format(name=name), offers.offer_columns(fx), found),
        ),
    )


def _device_facts(device: Accelerator) -> Iterator[Fact]:
    def fact(label: str, value: float | None, unit: str) -> Fact:
        text = _("unknown") if value is None else f"{figures.exact_number(value)} {unit}"
        return Fact(label=label, text=text, why=_("no source states it") if value is None else "")

    yield Fact(label=_("Maker"), text=f"{device.vendor}, {device.architecture}, {device.form_factor}")
    yield fact(_("Memory"), device.memory_gib, "GB")
    yield fact(_("Usable memory"), device.usable_memory_gib, "GiB")
    yield fact(_("Bandwidth"), device.bandwidth_gb_per_s, "GB/s")
    peaks = {"FP32": device.fp32_tflops, "TF32": device.tf32_tflops, "FP16": device.fp16_tflops,
             "BF16": device.bf16_tflops, "FP8": device.fp8_tflops}  # fmt: skip
    yield from (fact(_("Peak {precision}").format(precision=p), rate, _("TFLOPS, dense")) for p, rate in peaks.items())
    yield fact(_("Power limit"), device.tdp_w, "W")
    yield Fact(label=_("Also known as"), text=with_commas((device.id, *device.aliases)))


def check_page(findings: Sequence[Finding], left_out: Sequence[Finding], rows: Mapping[str, int]) -> Page:
    """`data check`: what is wrong with the facts, and why each row that was left out was. rows: table -> its rows."""
    sound = _("The facts are sound. Objections: none; rows: {n}; tables: {tables}.")
    faulty = _("Objections: {faults}; rows: {n}; tables: {tables}.")
    text = (faulty if findings else sound).format(
        faults=len(findings), n=figures.count(sum(rows.values())), tables=len(rows)
    )
    blocks: list[Block] = [Text(text=text, role="answer")]
    if findings:
        blocks.append(_objections(findings))
    if left_out:
        blocks.append(_left_out(left_out))
    return Page(title=_("Are the facts sound?"), blocks=tuple(blocks))


def _objections(found: Sequence[Finding]) -> Table:
    columns: list[Made[Finding]] = [
        column("table", _("Table"), lambda f: word(f.table), rank=1),
        column("row", _("Row"), lambda f: word(f.row)),
        column("rule", _("Rule"), lambda f: Cell(shown=rule(f.rule), value=f.rule), rank=2),
        column("reason", _("Reason"), lambda f: word(words(f.message))),
    ]
    return tabulate(_("Objections"), columns, found)


def _left_out(found: Sequence[Finding]) -> Table:
    """The rows by table and reason: thousands of lines would hide the few that matter."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for finding in found:
        groups.setdefault((finding.table, finding.rule, words(finding.message)), []).append(finding.row)
    largest = sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1])))
    columns: list[Made[tuple[tuple[str, str, str], list[str]]]] = [
        column("table", _("Table"), lambda g: word(g[0][0])),
        column("rows", _("Rows"), lambda g: Cell(shown=figures.count(len(g[1])), value=len(g[1])), kind="number"),
        column("reason", _("Reason"), lambda g: word(g[0][2])),
        column("rule", "", lambda g: word(g[0][1]), hidden=True),
        column("example", _("For example"), lambda g: word(g[1][0]), rank=2),
    ]
    note = _("Each row with its reason: gpuwise data check --json")
    return tabulate(_("Left out"), columns, largest, [note])


def refreshed_page(providers: Mapping[str, int], rejects: Sequence[Message]) -> Page:
    """`data refresh`: what the providers gave today, and what of it is kept out of use. providers: name -> offers."""
    none = _("No provider gave any offer; what was known before stays in use.")
    some = _("{offers} offers of {providers} providers are ready for --live; {rejects} are kept out.")
    text = some.format(offers=figures.count(sum(providers.values())), providers=len(providers), rejects=len(rejects))
    rows = sorted(providers.items(), key=lambda item: (-item[1], item[0]))
    columns: list[Made[tuple[str, int]]] = [
        column("provider", _("Provider"), lambda row: word(row[0])),
        column("offers", _("Offers"), lambda row: Cell(shown=figures.count(row[1]), value=row[1]), kind="number"),
    ]
    blocks: list[Block] = [Text(text=text if providers else none, role="answer")]
    if providers:
        blocks.append(tabulate(_("Live offers"), columns, rows))
    if rejects:
        reason: list[Made[Message]] = [column("reason", _("Reason"), lambda message: word(words(message)))]
        blocks.append(tabulate(_("Kept out"), reason, rejects))
    return Page(title=_("What do the providers ask today?"), blocks=tuple(blocks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One offer on two days; None where it was not, or is no longer, listed."""

    before: Offer | None
    after: Offer | None

    @property
    def offer(self) -> Offer:
        offer = self.after or self.before
        assert offer is not None
        return offer


def changes_page(
    before: str, after: str, changes: Sequence[Change], fx: Fx | None = None, limit: int | None = None
) -> Page:
    """`data diff`: what has changed from one table to another. An offer that is gone is said to be, not forgotten."""
    new, gone = sum(c.before is None for c in changes), sum(c.after is None for c in changes)
    text = _("Changed prices: {prices}; new offers: {new}; no longer offered: {gone}.")
    money = figures.code(fx)
    columns: list[Made[Change]] = [
        column("offer_id", "", lambda c: word(c.offer.id), hidden=True),
        column("provider", _("Provider"), lambda c: word(c.offer.provider)),
        column("instance", _("Instance"), lambda c: offers.instance(c.offer), rank=2),
        column("accelerators", "", lambda c: offers.number_of_gpus(c.offer), kind="number", hidden=True),
        column("accelerator", _("GPUs"), lambda c: offers.gpus(c.offer)),
        column("market", _("Market"), lambda c: offers.market_cell(c.offer), rank=1),
        column("region", _("Region"), lambda c: offers.region(c.offer), rank=3),
        column("before_usd_per_hour", _("Before"), lambda c: _price(c.before, fx, _("new")), kind="number", unit=money),
        column("after_usd_per_hour", _("After"), lambda c: _price(c.after, fx, _("gone")), kind="number", unit=money),
        column("change_fraction", _("Change"), _moved, kind="number"),
    ]
    shown = changes[:limit]
    cut = _("{shown} of {n} changes; all of them: --limit all").format(shown=len(shown), n=figures.count(len(changes)))
    return Page(
        title=_("What has changed from {before} to {after}?").format(before=before, after=after),
        blocks=(
            Text(text=text.format(prices=len(changes) - new - gone, new=new, gone=gone), role="answer"),
            tabulate(_("Changes"), columns, shown, [cut] if len(shown) < len(changes) else []),
        ),
    )


def _price(offer: Offer | None, fx: Fx | None, absent: str) -> Cell:
    return Cell(shown=absent) if offer is None else figures.price(offer, fx)


def _moved(change: Change) -> Cell:
    prices = [o.price_usd_per_hour if o else None for o in (change.before, change.after)]
    if not (prices[0] and prices[1]):
        return Cell(shown="–")
    fraction = prices[1] / prices[0] - 1
    return Cell(shown=figures.exact_percent(fraction, "+.1f"), value=fraction)
