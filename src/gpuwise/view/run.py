"""The page of a measured run: the verdict first, then what it stands on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from gpuwise.errors import Message
from gpuwise.locale import _, with_colon, with_commas, with_semicolons, words
from gpuwise.measure.forecast import forecast, per_accelerator
from gpuwise.measure.record import Epoch, LoaderTimes, Rank, Record, Stages
from gpuwise.measure.verdict import Finding, Judgement
from gpuwise.view import figures
from gpuwise.view.chart import SCHEMA
from gpuwise.view.page import (
    Block,
    Caution,
    Cell,
    Chart,
    Fact,
    Facts,
    Made,
    Page,
    Table,
    Text,
    column,
    tabulate,
    word,
)
from gpuwise.view.surroundings import (
    device_facts,
    energy_facts,
    host_facts,
    reason,
    setup_facts,
    usable_facts,
)
from gpuwise.view.vocabulary import cause, stage

MS = 1000.0
MOST_EPOCHS = 30
"""Rows of the table of epochs; of a longer run the first and the last are shown."""


def run_page(
    record: Record, judgement: Judgement, number: int | None = None, tried: Sequence[Message] | None = None
) -> Page:
    """The answer to `measure` and `runs show`. number: of the run in the store. tried: what was found to help, None
    where nothing was tried."""
    return Page(
        title=_("How fast does {workload} train here?").format(workload=record.setup.workload),
        blocks=tuple(_blocks(record, judgement, number, tried)),
        foot=_foot(record, number),
    )


def _blocks(
    record: Record, judgement: Judgement, number: int | None, tried: Sequence[Message] | None
) -> Iterator[Block]:
    yield Text(text=words(judgement.sentence), role="answer")
    if record.failure:
        yield Caution(text=record.failure)
    yield from (Caution(text=words(caution)) for caution in judgement.cautions)
    if number is not None and record.folder and record.ending in (None, "interrupted", "killed", "out of memory"):
        yield Text(text=_("Go on from the last checkpoint: gpuwise measure --resume {n}").format(n=number))
    yield from _filled(_("The verdict"), _verdict(judgement))
    if tried is not None:
        found = [Fact(label=_("Worth doing"), text=words(one)) for one in tried]
        none = Fact(label=_("Worth doing"), text=_("nothing of what was tried makes the loader faster here"))
        yield Facts(title=_("Tried on your data"), facts=tuple(found or [none]))
    yield Facts(title=_("Speed"), facts=tuple(_speed(record)))
    rows = stage_rows(record)
    if rows:
        yield _stage_chart(record, rows)
        yield _stage_table(record, rows)
    if judgement.findings:
        yield _findings(judgement.findings)
    yield from _filled(_("What the parts can do alone"), _limits(record))
    if record.epochs:
        yield _epochs(record.epochs)
    if len(record.ranks) > 1:
        yield _ranks(record)
    yield from _filled(_("Devices"), (f for load in record.device_loads for f in device_facts(record, load)))
    yield from _filled(_("Host"), host_facts(record))
    yield from _filled(_("Energy in the steady part"), energy_facts(record))
    yield from _filled(_("What a prediction takes from it"), usable_facts(record))
    yield Facts(title=_("How it ran"), facts=tuple(setup_facts(record)))


def _filled(title: str, facts: Iterable[Fact]) -> Iterator[Facts]:
    found = tuple(facts)
    if found:
        yield Facts(title=title, facts=found)


def _foot(record: Record, number: int | None) -> str:
    kept = _("Run {n}, measured {when}.") if number is not None else _("Measured {when}, not kept.")
    return kept.format(n=number, when=record.created_utc.replace("T", " ").partition(".")[0].removesuffix("Z") + " UTC")


def _verdict(judgement: Judgement) -> Iterator[Fact]:
    yield from (Fact(label=_("Evidence"), text=words(e)) for e in judgement.evidence)
    if judgement.gain:
        text = _("up to {factor} times as fast").format(factor=figures.written(judgement.gain.factor, ".2f"))
        yield Fact(label=_("Largest possible gain"), text=text, why=words(judgement.gain.assumes))
    if judgement.fix:
        yield Fact(label=_("What to do"), text=words(judgement.fix))


# ---- speed ----


def _speed(record: Record) -> Iterator[Fact]:
    pace, setup = record.pace, record.setup
    if pace is None:
        yield Fact(label=_("Throughput"), text=_("unknown"), why=reason(record.reasons, "pace"))
        return
    if "step_s" in pace.reasons:  # times of launching are no speed
        yield Fact(label=_("Throughput"), text=_("unknown"), why=words(pace.reasons["step_s"]))
        return
    if pace.samples_per_s is None:
        yield Fact(label=_("Throughput"), text=_("unknown"), why=reason(pace.reasons, "samples_per_s"))
    else:
        text = _("{speed} samples a second").format(speed=figures.interval(pace.samples_per_s))
        each = per_accelerator(pace, setup)
        alone = figures.number(each.value) if each else _("unknown")
        why = _("of all {n} processes; {each} each").format(n=setup.processes, each=alone)
        yield Fact(label=_("Throughput"), text=text, why=why if setup.processes > 1 else "")
    if pace.tokens_per_s is not None:
        yield Fact(
            label=_("Tokens"), text=_("{n} a second of all processes").format(n=figures.number(pace.tokens_per_s))
        )
    yield Fact(
        label=_("Step"), text=_("{step} ms").format(step=figures.interval(pace.step_s, MS)), why=_step_note(record)
    )
    yield from _beside(record)
    yield from _utilisation(record)
    yield from _forecast(record)


def _utilisation(record: Record) -> Iterator[Fact]:
    work, mfu = record.work, record.mfu
    if work is not None and mfu is not None and work.peak_tflops:
        convention = _("2 × MAC, forward and backward, without recomputation; against {peak} TFLOPS: {source}")
        why = convention.format(peak=figures.number(work.peak_tflops), source=work.peak_source or _("unknown"))
        yield Fact(label=_("MFU"), text=figures.exact_percent(mfu, ".1f"), why=why)
    elif work is not None and "peak_tflops" in work.reasons:
        yield Fact(label=_("MFU"), text=_("unknown"), why=words(work.reasons["peak_tflops"]))


def _forecast(record: Record) -> Iterator[Fact]:
    """What one epoch takes at this pace, with both counts of steps (UC-007), validation and start beside it."""
    pace, samples = record.pace, record.setup.samples
    if pace is None or not samples or not pace.samples_per_step:
        return
    epoch = forecast(pace, samples=samples, validations=0, starts=0)
    count = _("{samples} samples = {steps} optimizer steps")
    if epoch.micro_batches != epoch.steps:
        count = _("{samples} samples = {micro} micro-batches = {steps} optimizer steps")
    why = count.format(
        samples=figures.count(samples),
        steps=figures.count(math.ceil(epoch.steps)),
        micro=figures.count(math.ceil(epoch.micro_batches)),
    )
    low, high = figures.seconds(epoch.train_s.low), figures.seconds(epoch.train_s.high)
    text = _("{time} ({low} to {high})").format(time=figures.seconds(epoch.train_s.value), low=low, high=high)
    yield Fact(label=_("An epoch"), text=text, why=with_semicolons((why, _("without validation and start"))))


def _step_note(record: Record) -> str:
    pace = record.pace
    assert pace is not None
    parts = [
        _("{n} steps counted, {warm} of warm-up left out").format(n=figures.count(pace.steps), warm=pace.warm_up),
        _("single steps from {low} to {high} ms, median {median}").format(
            low=figures.number(MS * pace.minimum_s),
            high=figures.number(MS * pace.maximum_s),
            median=figures.number(MS * pace.median_s),
        ),
    ]
    if pace.micro_batches > 1:
        parts.insert(0, _("one optimizer step = {n:g} micro-batches").format(n=pace.micro_batches))
    return with_semicolons(parts)


def _beside(record: Record) -> Iterator[Fact]:
    """What takes time beside the steady steps."""
    pace = record.pace
    assert pace is not None
    if pace.start_s > 0:
        yield Fact(label=_("Start"), text=figures.seconds(pace.start_s), why=_("once a run, beyond the steady step"))
    if pace.recompiles:
        text = _("{n}, {time} together").format(n=pace.recompiles, time=figures.seconds(pace.recompile_s))
        yield Fact(label=_("Very long steps"), text=text, why=_("as where a compiler runs again for a new shape"))
    if pace.validation_s is not None:
        every = figures.count(pace.validation_every) if pace.validation_every else _("unknown")
        text = _("{time} every {n} steps").format(time=figures.seconds(pace.validation_s), n=every)
        yield Fact(label=_("Validation"), text=text)
    if pace.shift is not None:
        text = _("{before} ms a step, {after} ms from step {at} on").format(
            before=figures.number(MS * pace.shift.before_s),
            after=figures.number(MS * pace.shift.after_s),
            at=figures.count(pace.shift.at),
        )
        yield Fact(label=_("Change of speed"), text=text, why=_("the later speed counts"))
    if record.overhead_fraction is not None:
        yield Fact(
            label=_("Cost of measuring"),
            text=figures.exact_percent(record.overhead_fraction, ".2f"),
            why=record.overhead_method or "",
        )


# ---- stages ----

STAGES = ("wait", "copy", "forward", "backward", "all_reduce", "optimizer", "rest")
PARTS = ("read", "decode", "augment")


def stage_rows(record: Record) -> list[tuple[str, float]]:
    """Stage -> mean seconds a step, of the stages that were seen, in the order in which they happen."""
    stages = record.stages
    found = [(name, getattr(stages, f"{name}_s")) for name in STAGES] if stages else []
    return [(name, value) for name, value in found if value is not None]


def _stage_chart(record: Record, rows: list[tuple[str, float]]) -> Chart:
    shown = [
        {"stage": stage(name), "ms": MS * value, "text": f"{figures.number(MS * value)} ms"} for name, value in rows
    ]
    order = [stage(name) for name, _value in rows]
    bar = {
        "mark": {"type": "bar"},
        "encoding": {"tooltip": [{"field": "stage", "title": _("Stage")}, {"field": "text", "title": _("Time")}]},
    }
    label = {
        "mark": {"type": "text", "align": "left", "dx": 5, "aria": False},
        "encoding": {"text": {"field": "text"}, "color": {"value": "currentColor"}},
    }
    axis = {
        "field": "ms",
        "type": "quantitative",
        "title": _("Milliseconds a step"),
        "axis": {"format": "~r", "tickCount": 8},
    }
    spec = {
        "$schema": SCHEMA,
        "data": {"values": shown},
        "encoding": {"y": {"field": "stage", "type": "nominal", "title": None, "sort": order}, "x": axis},
        "layer": [bar, label],
    }
    alt = _("Bars: {stages}.").format(stages=with_commas(f"{one['stage']} {one['text']}" for one in shown))
    return Chart(title=_("Where a step goes"), alt=alt, spec=spec, flat=True)


def _stage_table(record: Record, rows: list[tuple[str, float]]) -> Table:
    total = record.pace.step_s.value if record.pace else sum(value for _name, value in rows)
    columns: list[Made[tuple[str, float]]] = [
        column("stage", _("Stage"), lambda row: word(stage(row[0]))),
        column("ms", _("Time"), lambda row: _milliseconds(row[1]), kind="number", unit=_("ms a step")),
        column("fraction", _("Share"), lambda row: _share(row[1], total), kind="number"),
        column("parts", _("Of which"), lambda row: word(_parts(record, row[0])), rank=1),
    ]
    return tabulate(_("Stages"), columns, rows, notes=_stage_notes(record.stages))


def _milliseconds(value: float) -> Cell:
    return Cell(shown=figures.number(MS * value), value=MS * value)


def _share(value: float, total: float) -> Cell:
    return Cell(shown=figures.percent(value / total), value=value / total) if total > 0 else word("")


def _parts(record: Record, name: str) -> str:
    """What the loader does for a sample, beside the wait for it; what the program waits for, beside the rest."""
    if name == "wait" and record.loader is not None:
        return loader_text(record.loader)
    stages = record.stages
    if name == "rest" and stages and stages.sync_s:
        text = _("waits for the device that the program asks for: {ms} ms, {n:.1f} a step")
        return text.format(ms=figures.number(MS * stages.sync_s), n=stages.syncs or 0)
    return ""


def loader_text(loader: LoaderTimes) -> str:
    """Milliseconds of one sample in the loader, by part."""
    named = [(stage(part), getattr(loader, f"{part}_s")) for part in PARTS]
    seen = [f"{name} {figures.number(MS * value)}" for name, value in named if value is not None]
    if not seen and loader.fetch_s is not None:
        seen = [_("all of it {ms}").format(ms=figures.number(MS * loader.fetch_s))]
    return _("{parts} ms a sample in the loader").format(parts=with_commas(seen)) if seen else ""


def _stage_notes(stages: Stages | None) -> Iterator[str]:
    if stages is not None:
        if stages.launch_only:
            yield _("Forward and backward are times of launching work, not of the device doing it.")
        yield from (with_colon(stage(name.removesuffix("_s")), words(why)) for name, why in stages.reasons.items())


# ---- findings, limits, epochs, ranks ----


def _findings(findings: Iterable[Finding]) -> Table:
    columns: list[Made[Finding]] = [
        column("cause", _("Finding"), lambda f: word(cause(f.cause))),
        column("fraction", _("Share of the step"), _finding_share, kind="number"),
        column("evidence", _("Evidence"), lambda f: word(words(f.message))),
        column("fix", _("What to do"), lambda f: word(words(f.fix) if f.fix else ""), rank=1),
    ]
    return tabulate(_("Findings"), columns, list(findings))


def _finding_share(finding: Finding) -> Cell:
    share = finding.share_fraction
    return Cell(shown=figures.percent(share), value=share) if share is not None else word("")


def _limits(record: Record) -> Iterator[Fact]:
    limits = record.limits
    named = (
        ("feed_per_s", _("Feed"), _("the loader alone, nothing trained"), limits.feed_per_s),
        ("device_per_s", _("Device"), _("training on batches that are there already"), limits.device_per_s),
    )
    for name, label, why, speed in named:
        if speed is not None:
            text = _("{speed} samples a second").format(speed=figures.interval(speed))
            yield Fact(label=label, text=text, why=why)
        elif name in limits.reasons:
            yield Fact(label=label, text=_("unknown"), why=words(limits.reasons[name]))
    if record.devices_fed is not None:
        text = _("{n} such devices").format(n=figures.number(record.devices_fed))
        yield Fact(label=_("This host could feed"), text=text, why=_("feed / device"))


def _epochs(epochs: tuple[Epoch, ...]) -> Table:
    columns: list[Made[Epoch]] = [
        column("number", _("Epoch"), lambda e: Cell(shown=str(e.number), value=e.number), kind="number"),
        column("loss", _("Loss"), lambda e: Cell(shown=figures.written(e.loss, ".4f"), value=e.loss), kind="number"),
        column("accuracy_fraction", _("Accuracy"), _accuracy, kind="number"),
        column("train_s", _("Training"), lambda e: Cell(shown=figures.number(e.train_s), value=e.train_s),
               kind="number", unit=_("s")),
        column("validation_s", _("Validation"), lambda e: _seconds(e.validation_s), kind="number", unit=_("s"), rank=1),
    ]  # fmt: skip
    half = MOST_EPOCHS // 2
    shown = epochs if len(epochs) <= MOST_EPOCHS else (*epochs[:half], *epochs[-half:])
    left = len(epochs) - len(shown)
    notes = [_("{n} epochs between are not shown.").format(n=left)] if left else []
    return tabulate(_("Epochs"), columns, shown, notes=notes)


def _accuracy(epoch: Epoch) -> Cell:
    if epoch.accuracy_fraction is None:
        return Cell(shown=_("unknown"), title=_("nothing was held out"))
    counted = f" ({epoch.correct}/{epoch.validated})" if epoch.correct is not None else ""
    return Cell(shown=f"{100 * epoch.accuracy_fraction:.1f} %{counted}", value=epoch.accuracy_fraction)


def _seconds(value: float | None) -> Cell:
    return word("") if value is None else Cell(shown=figures.number(value), value=value)


def _ranks(record: Record) -> Table:
    def time(value: float | None) -> Cell:
        return Cell(shown=_("unknown"), title=_("not seen")) if value is None else _milliseconds(value)

    unit = _("ms a step")
    columns: list[Made[Rank]] = [
        column("rank", _("Rank"), lambda r: Cell(shown=str(r.rank), value=r.rank), kind="number"),
        column("host", _("Host"), lambda r: word(r.host), rank=1),
        column("compute_ms", _("Own work"), lambda r: time(r.compute_s), kind="number", unit=unit),
        column("all_reduce_ms", _("Wait for the others"), lambda r: time(r.all_reduce_s), kind="number", unit=unit),
    ]
    return tabulate(_("Processes"), columns, record.ranks)
