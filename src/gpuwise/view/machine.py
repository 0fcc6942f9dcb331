"""Pages about the machine at hand: what it can do at best, and whether it is ready."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwise.locale import N_, _, with_commas, with_semicolons, words
from gpuwise.measure.ceilings import Ceilings, Probe
from gpuwise.measure.check import Checked, Item
from gpuwise.measure.host import explained
from gpuwise.measure.record import Gauge
from gpuwise.view import figures
from gpuwise.view.page import Caution, Cell, Fact, Facts, Made, Page, Table, Text, column, tabulate, word
from gpuwise.view.vocabulary import probe as probe_name
from gpuwise.view.vocabulary import readiness, state

NOISY = 0.1


def ceilings_page(found: Ceilings, others: Gauge | None = None) -> Page:
    """The answer to `ceilings`. others: what other processes took of the allowed CPUs meanwhile."""
    done = [probe for probe in found.probes if probe.value is not None]
    answer = _("{n} of {all} figures were found in {time}; the others say why not.")
    in_short = answer.format(n=len(done), all=len(found.probes), time=figures.seconds(found.took_s))
    if len(done) == len(found.probes):
        in_short = _("All {all} figures were found in {time}.").format(
            all=len(done), time=figures.seconds(found.took_s)
        )
    return Page(
        title=_("What can this machine do at best?"),
        blocks=(Text(text=in_short, role="answer"), *_doubt(others), _probes(found), _machine(found)),
    )


def _doubt(others: Gauge | None) -> Iterator[Caution]:
    if others is not None and others.mean > NOISY:
        text = _("Other processes took {share} of the CPUs meanwhile: the machine can do more than this.")
        yield Caution(text=text.format(share=figures.percent(others.mean)))


def _probes(found: Ceilings) -> Table:
    columns: list[Made[Probe]] = [
        column("probe", _("What"), lambda p: word(probe_name(p.name))),
        column("value", _("At best"), _value, kind="estimate"),
        column("unit", _("Unit"), lambda p: word(p.unit)),
        column("conditions", _("Measured with, or why not"), lambda p: word(_conditions(p)), rank=1),
    ]
    notes = [_("In brackets: from the slowest to the fastest of the runs of a probe.")]
    return tabulate(_("Ceilings"), columns, found.probes, notes=notes)


def _value(probe: Probe) -> Cell:
    if probe.value is None:
        return Cell(shown=_("unknown"), title=probe.reason or "")
    shown, ends = figures.rounded(probe.value, 1.0)
    return Cell(shown=shown, span="–".join(ends), value=probe.value)


def _conditions(probe: Probe) -> str:
    if probe.value is None:
        return probe.reason or ""
    shown = {name.replace("_", " "): value for name, value in probe.conditions.items() if name != "range"}
    return with_commas(f"{name} {_figure(value)}" for name, value in shown.items())


def _figure(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return figures.count(value) if value >= 1000 else figures.written(value, "g")


def _machine(found: Ceilings) -> Facts:
    names = with_commas(device.name for device in found.devices)
    devices = Fact(label=_("Devices"), text=names or _("none"), why="" if names else _("the framework sees none"))
    cpus = found.host.cpus
    return Facts(
        title=_("The machine"), facts=(devices, Fact(label=_("CPUs"), text=explained(cpus), why=cpus.model or ""))
    )


def check_page(found: Checked) -> Page:
    """The answer to `check`."""
    return Page(
        title=_("Is this machine ready?"),
        blocks=(Text(text=_in_short(found), role="answer"), _items(found), _times(found)),
    )


def _in_short(found: Checked) -> str:
    missing = with_commas(_item(item.name) for item in found.missing)
    mark = readiness(found.ready)
    if missing:
        return _("{mark}: {missing} would have to be mended.").format(mark=mark, missing=missing)
    if found.first_step_s is not None:
        return _("{mark}: a first step takes {time}.").format(mark=mark, time=figures.seconds(found.first_step_s))
    return _("{mark}.").format(mark=mark)


def _items(found: Checked) -> Table:
    columns: list[Made[Item]] = [
        column("name", _("What"), lambda item: Cell(shown=_item(item.name), value=item.name)),
        column("state", _("State"), lambda item: word(state(item.state))),
        column("found", _("Found"), lambda item: word(item.found)),
        column("message", _("What that means"), lambda item: word(_meaning(item)), rank=1),
    ]
    return tabulate(_("Looked at"), columns, found.items)


ITEMS = {
    "accelerator": N_("accelerator"),
    "driver": N_("driver"),
    "framework": N_("framework"),
    "device": N_("device"),
    "container runtime": N_("container runtime"),
    "container toolkit": N_("container toolkit"),
    "shared memory": N_("shared memory"),
    "storage": N_("storage"),
    "free space": N_("free space"),
    "packages": N_("packages"),
}
"""What is looked at; CUDA and CPUs are called so in every language."""


def _item(name: str) -> str:
    return _(ITEMS.get(name, name))


def _meaning(item: Item) -> str:
    return _(". ").join(words(text).rstrip(".。") for text in (item.message, item.fix) if text)


def _preparing(why: str) -> str:
    """Where the time to prepare comes from: sentences of a record, which keeps them in English."""
    return with_semicolons(_(each) for each in why.split("; "))


def _times(found: Checked) -> Facts:
    return Facts(title=_("Time"), facts=tuple(_durations(found)))


def _durations(found: Checked) -> Iterator[Fact]:
    step, parts = found.first_step, []
    for label, value in ((_("import"), step.import_s), (_("build"), step.build_s), (_("first step"), step.step_s)):
        if value is not None:
            parts.append(f"{label} {figures.seconds(value)}")
    named = (
        ("first_step_s", _("First step, in a fresh process"), found.first_step_s, with_commas(parts)),
        ("preparation_s", _("Preparation"), found.preparation_s, _preparing(found.reasons.get("preparation_s", ""))),
    )
    for name, label, value, why in named:
        if value is None:
            yield Fact(label=label, text=_("unknown"), why=found.reasons.get(name, step.failure or ""))
        else:
            yield Fact(label=label, text=figures.seconds(value), why=why)
