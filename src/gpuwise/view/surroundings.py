"""What a run ran on and how: devices, host, energy, what a prediction takes from it, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuwise.locale import _, with_colon, with_commas, with_semicolons, words
from gpuwise.measure.energy import energy_total
from gpuwise.measure.record import DeviceLoad, Gauge, Record
from gpuwise.view import figures
from gpuwise.view.page import Fact
from gpuwise.view.vocabulary import ending, energy, gauge, throttle

MS = 1000.0


def reason(reasons: Mapping[str, str], name: str) -> str:
    return words(reasons[name]) if name in reasons else _("not seen in this run")


def device_facts(record: Record, load: DeviceLoad) -> Iterator[Fact]:
    device = next((d for d in record.devices if d.index == load.index), None)
    name = device.name if device else _("device {n}").format(n=load.index)
    limit = device.power_limit_w if device else None
    text = _("{gauge} W") + (_(" of {limit} W").format(limit=figures.number(limit)) if limit else "")
    yield from _gauged(with_colon(name, _("power")), load.power_w, text)
    yield from _gauged(with_colon(name, _("clock")), load.clock_mhz, _("{gauge} MHz"))
    yield from _gauged(with_colon(name, _("temperature")), load.temperature_c, _("{gauge} °C"))
    busy = _("share of the time in which any kernel ran: not how much of the chip worked")
    yield from _gauged(with_colon(name, _("busy")), load.busy_fraction, _("{gauge} %"), 100, busy)
    if load.energy_j is not None:
        how = _("{source}, sampled every {s} s").format(source=energy(load.energy_source), s=_number(load.interval_s))
        yield Fact(
            label=with_colon(name, _("energy")), text=_("{j} J").format(j=figures.number(load.energy_j)), why=how
        )
    if load.allocated_gib is not None:
        text = _("{gib} GiB at most").format(gib=figures.number(load.allocated_gib))
        yield Fact(label=with_colon(name, _("memory")), text=text, why=_("allocated by the framework"))
    for reason, share in load.throttled.items():
        yield Fact(label=with_colon(name, _("slowed down")), text=figures.percent(share), why=throttle(reason))
    for what, why in load.reasons.items():
        yield Fact(label=with_colon(name, gauge(what)), text=_("unknown"), why=words(why))


def _gauged(label: str, seen: Gauge | None, text: str, scale: float = 1.0, why: str = "") -> Iterator[Fact]:
    if seen is not None:
        mean, low, high = (figures.number(scale * x) for x in (seen.mean, seen.minimum, seen.maximum))
        shown = mean if low == high else _("{mean} (from {low} to {high})").format(mean=mean, low=low, high=high)
        yield Fact(label=label, text=text.format(gauge=shown), why=why)


def _number(value: float | None) -> str:
    return _("unknown") if value is None else figures.number(value)


def host_facts(record: Record) -> Iterator[Fact]:
    cpus, load = record.host.cpus, record.host_load
    rules = with_commas(f"{rule} {figures.exact_number(n)}" for rule, n in cpus.rules.items())
    allowed = _("{allowed} of {host} allowed").format(
        allowed=figures.exact_number(cpus.allowed), host=figures.count(cpus.host)
    )
    yield Fact(label=_("CPUs"), text=allowed, why=with_semicolons(filter(None, (cpus.model, rules))))
    if load is not None:
        yield from _gauged(_("CPU of the job"), load.job_fraction, _("{gauge} % of the allowed"), 100)
        yield from _gauged(_("CPU of others"), load.others_fraction, _("{gauge} % of the allowed"), 100)
        if load.peak_gib is not None:
            yield Fact(label=_("Memory of the job"), text=_("{n} GiB at most").format(n=figures.number(load.peak_gib)))
        if load.energy_j is not None:
            text = _("{j} J").format(j=figures.number(load.energy_j))
            yield Fact(label=_("Energy of the CPU"), text=text, why=energy(load.energy_source))
        elif "energy_j" in load.reasons:
            yield Fact(label=_("Energy of the CPU"), text=_("unknown"), why=words(load.reasons["energy_j"]))


def energy_facts(record: Record) -> Iterator[Fact]:
    """The sum of what was measured; it is no total while a part is unknown."""
    found = energy_total(record)
    if found.measured_j + found.modelled_j <= 0:
        return
    parts = [f"{c.name} {figures.number(c.energy_j)} J, {energy(c.source)}" for c in found.components if c.energy_j]
    if found.total_j is not None:
        yield Fact(
            label=_("Total"), text=_("{j} J").format(j=figures.number(found.total_j)), why=with_semicolons(parts)
        )
        return
    missing = [
        with_colon(c.name, words(c.reason) if c.reason else _("unknown")) for c in found.components if not c.energy_j
    ]
    yield Fact(label=_("Total"), text=_("unknown"), why=with_semicolons(missing))
    known = _("{j} J").format(j=figures.number(found.measured_j + found.modelled_j))
    yield Fact(label=_("Of the known parts"), text=known, why=with_semicolons(parts))


def usable_facts(record: Record) -> Iterator[Fact]:
    """What `rank --measured` reads, and why a part of it is missing."""
    run = record.measurement
    if run is None:
        yield Fact(label=_("Nothing"), text=_("unknown"), why=reason(record.reasons, "measurement"))
        return
    if run.samples_per_s is not None:
        text = _("{speed} samples a second").format(speed=figures.interval(run.samples_per_s))
        yield Fact(label=_("Speed of the device"), text=text, why=words(run.note))
    else:
        why = _("a CPU says nothing about how fast a GPU is") if run.device == "cpu" else words(run.note)
        yield Fact(label=_("Speed of the device"), text=_("none"), why=why or _("not seen in this run"))
    if run.decode_s is not None:
        text = _("{ms} ms of one CPU").format(ms=figures.number(MS * run.decode_s))
        yield Fact(label=_("To load a sample"), text=text)
    elif "decode_s" in record.reasons:
        yield Fact(label=_("To load a sample"), text=_("unknown"), why=words(record.reasons["decode_s"]))
    if run.gmacs is not None:
        counts = _("{gmacs} GMAC a sample, {parameters} million parameters")
        text = counts.format(gmacs=figures.number(run.gmacs), parameters=_number(run.parameters_m))
        yield Fact(label=_("Counts"), text=text)
    if run.epochs is not None and run.samples is not None:
        text = _("{epochs:g} of {samples} samples").format(epochs=run.epochs, samples=figures.count(run.samples))
        yield Fact(label=_("Epochs"), text=text, why=_("where accuracy ended the training on your data"))


def setup_facts(record: Record) -> Iterator[Fact]:
    setup = record.setup
    if setup.command:
        yield Fact(label=_("Program"), text=" ".join(setup.command))
    if record.ending:
        wall = figures.seconds(record.wall_s) if record.wall_s is not None else _("unknown")
        yield Fact(label=_("Ended"), text=ending(record.ending), why=_("after {time}").format(time=wall))
    if record.sessions > 1:
        yield Fact(label=_("Sessions"), text=str(record.sessions), why=_("resumed; no step is counted twice"))
    for label, value in _choices(record):
        if value not in (None, ""):
            yield Fact(label=label, text=str(value))
    for reason, n in record.skipped.items():
        yield Fact(label=_("Left out of the data"), text=figures.count(n), why=reason)
    versions = with_commas(f"{name} {version}" for name, version in setup.software.items())
    yield Fact(label=_("Versions"), text=versions or _("unknown"), why="" if versions else _("not seen in this run"))


def _choices(record: Record) -> Iterator[tuple[str, object]]:
    setup = record.setup
    devices = with_commas(dict.fromkeys(d.name for d in record.devices))
    yield _("Device"), f"{setup.processes} × {devices}" if devices and setup.processes > 1 else devices
    yield _("Model"), setup.model
    yield _("Data"), setup.data
    yield _("Batch per device"), setup.batch_per_accelerator
    yield _("Image"), _("{n} px").format(n=setup.image_size) if setup.image_size else None
    yield _("Precision"), setup.precision
    yield _("Memory format"), setup.memory_format
    yield _("Compiled"), None if setup.compiled is None else _("yes") if setup.compiled else _("no")
    yield _("Optimizer"), setup.optimizer
    yield _("Feed"), _feed(record)
    yield _("Workers"), setup.workers
    yield _("Threads"), setup.threads
    yield _("Seed"), setup.seed


def _feed(record: Record) -> str | None:
    setup = record.setup
    if setup.feed is None:
        return None
    return _("{feed}, from re-encoded files").format(feed=setup.feed) if setup.cached else setup.feed
