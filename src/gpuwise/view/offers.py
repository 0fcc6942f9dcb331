"""What is said about an offer, wherever one stands in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from gpuwise.locale import _, with_commas, with_semicolons
from gpuwise.model import Fx, Offer
from gpuwise.offer import Provider, ProviderFact
from gpuwise.view import figures
from gpuwise.view.page import Cell, Fact, Facts, Made, column, word
from gpuwise.view.vocabulary import market, platform_fact, platform_value

READ_BACK = (
    "price_native", "currency", "usd_per_unit", "price_unit", "price_state", "tax", "vat_fraction", "term_h",
    "upfront_usd", "running_usd_per_hour", "price_log_sd", "billing_step_s", "billing_minimum_s", "preparation_s",
    "licence_usd_per_month", "link", "host", "observed_precision", "withdrawn", "quality", "note", "billing_clock",
    "fee_usd", "monthly_cap_h", "host_gpus", "host_shared", "storage_usd_per_gb_month", "egress_usd_per_gb",
    "address_usd_per_hour", "stopped", "session_limit_s", "longest_h", "losses_per_hour", "wait_s",
    "reliability_fraction",
)  # fmt: skip
"""What nobody looks at in the table, and what the same offer and the same bill are made from again."""


def offer_columns(fx: Fx | None) -> Iterator[Made[Offer]]:
    """The columns of `data list`; the keys are the header of its CSV file."""
    yield column("offer_id", "", lambda o: word(o.id), hidden=True)
    yield column("provider", _("Provider"), lambda o: word(o.provider))
    yield column("instance", _("Instance"), instance, rank=2)
    yield column("accelerators", "", lambda o: _hidden(o.accelerators // o.nodes), kind="number", hidden=True)
    yield column("nodes", "", lambda o: _hidden(o.nodes), kind="number", hidden=True)
    yield column("accelerator", _("GPUs"), gpus)
    yield column("memory_gib", _("Memory"), memory, kind="number", unit=_("GB per GPU"), rank=4)
    yield column("vcpus", _("vCPUs"), lambda o: _count(o.vcpus), kind="number", rank=5)
    yield column(
        "host_memory_gib", _("Host memory"), lambda o: _count(o.host_memory_gib), kind="number", unit="GiB", rank=5
    )
    yield column(
        "disk_included_gb", _("Disk included"), lambda o: _count(o.disk_included_gb), kind="number", unit="GB", rank=6
    )
    yield column("market", _("Market"), market_cell, rank=1)
    yield column("price_usd_per_hour", _("Price"), lambda o: figures.price(o, fx), kind="number", unit=figures.code(fx))
    yield column("observed", _("Price seen"), seen, rank=1)
    yield column("availability", _("Available"), lambda o: word(o.availability), rank=6)
    yield column("region", _("Region"), region, rank=3)
    yield column("country", "", lambda o: word(o.country), hidden=True)
    yield column("source", _("Source"), lambda o: word(o.source.ref), rank=6)
    for name in READ_BACK:
        yield column(name, "", _read_back(name), hidden=True)


def platform_facts(provider: Provider) -> Facts:
    """What is known of a provider's platform, each fact with its day and source."""
    return Facts(
        title=_("The platform: {provider}").format(provider=provider.name),
        facts=tuple(
            Fact(label=platform_fact(f.name), text=platform_value(f.name, f.value), why=_origin(f))
            for f in provider.facts.values()
        ),
    )


def _origin(fact: ProviderFact) -> str:
    seen = _("{day}, source {ref}").format(day=figures.day(fact.observed), ref=fact.source)
    return with_semicolons(filter(None, (fact.note, seen)))


def _read_back(name: str) -> Callable[[Offer], Cell]:
    return lambda offer: _hidden(getattr(offer, name))


def _hidden(value: str | float | date | None) -> Cell:
    plain = str(value) if isinstance(value, date) else value
    return Cell(shown="" if plain is None else str(plain), value=plain)


def number_of_gpus(offer: Offer) -> Cell:
    return Cell(shown=str(offer.accelerators), value=offer.accelerators)


def instance(offer: Offer) -> Cell:
    return Cell(shown=offer.instance or "–", value=offer.instance, title=offer.note or offer.id)


def region(offer: Offer) -> Cell:
    return word(offer.region) if offer.region else figures.unknown(offer.reasons.get("region"))


def gpus(offer: Offer) -> Cell:
    return Cell(shown=figures.gpus(offer), value=offer.accelerator)


def memory(offer: Offer) -> Cell:
    return _count(offer.memory_gib)


def market_cell(offer: Offer) -> Cell:
    """The market, with how long one is bound to it: reserved, 12 mo."""
    bound = figures.term(offer.term_h) if offer.market in ("reserved", "dedicated") and offer.term_h else ""
    return Cell(shown=with_commas(filter(None, (market(offer.market), bound))), value=offer.market)


def seen(offer: Offer) -> Cell:
    day = figures.day(offer.observed, offer.observed_precision)
    return Cell(shown=day, value=str(offer.observed or ""), title=_("source: {ref}").format(ref=offer.source.ref))


def _count(number: float | None) -> Cell:
    return figures.unknown(None) if number is None else Cell(shown=figures.written(number, "g"), value=number)
