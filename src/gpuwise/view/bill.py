"""Pages about what happened: the bill of machines from their events, and a machine's price among its pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from gpuwise.cost.sharing import Part, Split
from gpuwise.cost.usage import Kept, Line, Total, Unknown, UsageBill
from gpuwise.locale import N_, _, ngettext, with_commas, with_semicolons, words
from gpuwise.units import SECONDS_PER_HOUR
from gpuwise.view import figures
from gpuwise.view.page import Block, Cell, Fact, Facts, Made, Page, Table, Text, column, tabulate, word

LINES = {
    "compute": N_("running"),
    "billing step": N_("rounded up to billing steps"),
    "disk": N_("disks while stopped"),
    "commitment": N_("commitment"),
    "covered": N_("covered by the commitment"),
}
"""The lines of a bill in words."""


def moment(when: datetime) -> str:
    """2026-11-30 22:58 UTC; seconds only where they say something."""
    return f"{when:%Y-%m-%d %H:%M} UTC" if when.second == 0 else f"{when:%Y-%m-%d %H:%M:%S} UTC"


def sums(amounts: Sequence[tuple[str, str]]) -> str:
    """8.89 USD; 3.10 EUR: several currencies stand side by side and are never added up."""
    return with_semicolons(f"{amount} {currency}" for amount, currency in amounts)


# ---- events of machines ----


def bill_page(bill: UsageBill, stated: bool) -> Page:
    """The answer to `bill` about events. stated: somebody said up to when the bill goes."""
    return Page(title=_("What did it cost?"), blocks=tuple(_bill_blocks(bill, stated)))


def _bill_blocks(bill: UsageBill, stated: bool) -> Iterator[Block]:
    yield Text(text=_in_short(bill), role="answer")
    if not stated:
        yield Text(text=_("Billed up to the last event; --until names another moment."), role="note")
    if bill.lines:
        yield lines_table(bill)
    if bill.unknown:
        yield _unknown_table(bill.unknown)
    if bill.kept:
        yield Facts(title=_("Commitments"), facts=tuple(fact for kept in bill.kept for fact in _kept(kept)))


def _in_short(bill: UsageBill) -> str:
    text = ngettext(
        "{sum} for {hours} h of {n} machine, up to {until}.",
        "{sum} for {hours} machine-hours of {n} machines, up to {until}.",
        bill.machines,
    )
    amounts = sums([(_range(total), total.currency) for total in bill.totals])
    hours = figures.exact_number(float(f"{bill.hours:.4g}"))
    short = text.format(sum=amounts, n=figures.count(bill.machines), hours=hours, until=moment(bill.until))
    if not bill.unknown:
        return short
    more = ngettext(
        "{n} stretch of time is unknown: one end of the range leaves it out, the other bills it.",
        "{n} stretches of time are unknown: one end of the range leaves them out, the other bills them.",
        len(bill.unknown),
    )
    if all(_range(total) == figures.amount(total.low) for total in bill.totals):
        more = ngettext(
            "{n} stretch of time is unknown, and not in it.",
            "{n} stretches of time are unknown, and not in it.",
            len(bill.unknown),
        )
    return f"{short} {more.format(n=len(bill.unknown))}"


def _range(total: Total) -> str:
    low, high = figures.amount(total.low), figures.amount(total.high)
    return low if low == high else _("{low} to {high}").format(low=low, high=high)


def lines_table(bill: UsageBill) -> Table:
    """The bill, line by line; what unknown time would add stands in lines of its own."""
    columns: list[Made[Line]] = [
        column("machine", _("Machine"), lambda line: word(line.machine)),
        column("kind", _("What"), _what),
        column("quantity", _("Quantity"), lambda line: _exact(line.quantity), kind="number"),
        column("unit", _("Unit"), lambda line: word({"h": _("h"), "month": _("months")}[line.unit])),
        column("unit_price", _("Price of one"), lambda line: _exact(line.unit_price, 2), kind="number"),
        column("amount", _("Amount"), lambda line: _money(line.amount), kind="number"),
        column("currency", _("Currency"), lambda line: word(line.currency)),
        column("sure", "", lambda line: Cell(shown="", value=line.sure), hidden=True),
    ]
    notes = [_("Total: {sum}.").format(sum=sums([(_range(total), total.currency) for total in bill.totals]))]
    if any(line.kind == "disk" for line in bill.lines):
        notes.append(_("A month of disks is 730 h."))
    return tabulate(_("The bill"), columns, bill.lines, notes)


def _what(line: Line) -> Cell:
    text = _(LINES[line.kind])
    if not line.sure:
        text = _("{what}, if unknown time is billed").format(what=text)
    return Cell(shown=text, value=line.kind)


def _unknown_table(rows: Sequence[Unknown]) -> Table:
    columns: list[Made[Unknown]] = [
        column("machine", _("Machine"), lambda row: word(row.machine)),
        column("start_utc", _("From, UTC"), lambda row: _when(row.span.start)),
        column("end_utc", _("Until, UTC"), lambda row: _when(row.span.end)),
        column(
            "length_s", _("Length"), lambda row: Cell(shown=_hours(row), value=row.span.length_s), kind="number",
            unit=_("h"),
        ),
        column("most", _("At most"), lambda row: figures.unknown(None) if row.most is None else _money(row.most),
               kind="number"),
        column("currency", _("Currency"), lambda row: word(row.currency)),
        column("reason", _("Why"), lambda row: word(words(row.span.why) if row.span.why else "")),
    ]  # fmt: skip
    return tabulate(
        _("What is not known"),
        columns,
        rows,
        [_("Records of when it stopped, or was seen again, make the bill exact.")],
    )


def _hours(row: Unknown) -> str:
    return figures.exact_number(row.span.length_s / SECONDS_PER_HOUR)


def _when(when: datetime) -> Cell:
    return Cell(shown=moment(when).removesuffix(" UTC"), value=when.isoformat().replace("+00:00", "Z"))


def _exact(value: float, least: int = 0) -> Cell:
    return Cell(shown=figures.exact_number(value, least), value=value)


def _money(value: float) -> Cell:
    return Cell(shown=figures.amount(value), value=value)


def _kept(kept: Kept) -> Iterator[Fact]:
    """An hourly commitment: what of it was used, and what was lost hour by hour."""

    def money(value: float) -> str:
        return f"{figures.amount(value)} {kept.currency}"

    hours = _("{price} an hour for {n} h").format(price=money(kept.per_hour), n=figures.count(kept.hours))
    yield Fact(label=_("Paid"), text=money(kept.paid), why=hours)
    yield Fact(label=_("Used"), text=money(kept.used), why=_("hour by hour: nothing carries over"))
    yield Fact(label=_("Lost"), text=money(kept.wasted), why=_("in hours with less use than the commitment"))
    over = _("{over} at the rates of the commitment").format(over=money(kept.over))
    yield Fact(label=_("On demand"), text=money(kept.on_demand), why=over)


# ---- pods on a machine ----


def shared_page(splits: Sequence[Split]) -> Page:
    """The answer to `bill` about pods: each machine's price in parts that add up to it."""
    rules = [
        Fact(label=one.node.name, text=_rule(one), why=_("OpenCost, default prices") if _usual(one) else "")
        for one in splits
    ]
    how = _(
        "Of GPUs, vCPUs and memory each, a pod pays for the share that it requested; the rest is idle. The parts of a "
        "machine add up to its price."
    )
    answer = Text(text=" ".join(_shared_in_short(one) for one in splits), role="answer")
    blocks = (answer, shared_table(splits), Facts(title=_("How the price is split"), facts=tuple(rules)))
    return Page(title=_("What did it cost?"), blocks=(*blocks, Text(text=how, role="note")))


def _usual(one: Split) -> bool:
    return bool(one.node.accelerators) and one.node.gpu_fraction is None and one.node.host_price_per_hour is None


def _rule(one: Split) -> str:
    _gpu, cpu, memory = one.fractions
    if not one.node.memory_gib:
        return _("{gpu}; vCPUs are the rest.").format(gpu=words(one.rule))
    text = _("{gpu}; vCPUs {cpu} %, memory {memory} %.")
    return text.format(
        gpu=words(one.rule), cpu=figures.written(100 * cpu, ".1f"), memory=figures.written(100 * memory, ".1f")
    )


def _shared_in_short(one: Split) -> str:
    named = [f"{_pod(part)} {figures.amount(part.total)}" for part in one.parts]
    price = f"{figures.amount(one.node.price_per_hour * one.hours)} {one.node.currency}"
    if one.start is None:
        return _("{node}, {price} an hour: {parts}.").format(node=one.node.name, price=price, parts=with_commas(named))
    text = _("{node}, {price} for {hours} h: {parts}.")
    hours = figures.exact_number(one.hours)
    return text.format(node=one.node.name, price=price, hours=hours, parts=with_commas(named))


def _pod(part: Part) -> str:
    return _("idle") if part.pod is None else part.pod


def shared_table(splits: Sequence[Split]) -> Table:
    """A row a pod, and one for what is idle."""
    rows = [(one, part) for one in splits for part in one.parts]
    columns: list[Made[tuple[Split, Part]]] = [
        column("node", _("Machine"), lambda row: word(row[0].node.name)),
        column("pod", _("Pod"), lambda row: Cell(shown=_pod(row[1]), value=row[1].pod or "")),
        column("gpu", _("GPUs"), lambda row: _money(row[1].gpu), kind="number"),
        column("cpu", _("vCPUs"), lambda row: _money(row[1].cpu), kind="number"),
        column("memory", _("Host memory"), lambda row: _money(row[1].memory), kind="number"),
        column("amount", _("Together"), lambda row: _money(row[1].total), kind="number"),
        column("share_fraction", _("Share"), _share, kind="number"),
        column("hours", _("Hours"), lambda row: _exact(row[0].hours), kind="number"),
        column("currency", _("Currency"), lambda row: word(row[0].node.currency)),
        column("idle", "", lambda row: Cell(shown="", value=row[1].pod is None), hidden=True),
    ]
    return tabulate(_("Who pays what"), columns, rows)


def _share(row: tuple[Split, Part]) -> Cell:
    share = row[1].total / (row[0].node.price_per_hour * row[0].hours)
    return Cell(shown=figures.percent(share), value=share)
