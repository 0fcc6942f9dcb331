"""The page of a workload: what the job consists of, which figures are assumptions, which are not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuwise.estimate import Z80
from gpuwise.locale import _, with_commas, with_semicolons, words
from gpuwise.model import Candidate, Workload
from gpuwise.predict.memory import Need
from gpuwise.view import figures
from gpuwise.view.memory import need_facts
from gpuwise.view.page import Fact, Facts, Page, Text
from gpuwise.view.vocabulary import field, sample

BYTES_PER_MIB = 2**20
STATED = "job"
"""What a sample is called where one job is all that is counted (`--takes`)."""


def workload_page(workload: Workload, need: Need | None = None) -> Page:
    """The answer to `describe`. need: of memory, on any device."""
    memory = (Facts(title=_("Memory of a training step"), facts=tuple(need_facts(need))),) if need else ()
    return Page(
        title=_("What does {name} consist of?").format(name=workload.name),
        blocks=(
            Text(text=_in_short(workload), role="answer"),
            workload_facts(workload),
            Facts(title=_("One sample"), facts=tuple(_counts(workload))),
            *memory,
        ),
        foot=_("Source: {ref}.").format(ref=workload.source.ref),
    )


def workload_facts(workload: Workload) -> Facts:
    """How long the job is and how it runs; each assumption with its reason."""
    return Facts(title=_("The job"), facts=tuple(_job(workload)))


def job_text(workload: Workload) -> str:
    """The job in one line, for pages about something else."""
    if workload.sample == STATED:
        return _("{title}: nothing but its time on some GPUs is known").format(title=_(workload.title))
    if workload.undecided:
        return _("{title}: duration unknown, batch {batch} a GPU, {precision}").format(
            title=_(workload.title), batch=workload.batch_per_accelerator, precision=workload.precision
        )
    return _("{title}: {samples} samples ({sample}) × {epochs} epochs, batch {batch} a GPU, {precision}").format(
        title=_(workload.title),
        samples=figures.count(workload.samples),
        sample=sample(workload.sample),
        epochs=epochs_text(workload),
        batch=workload.batch_per_accelerator,
        precision=workload.precision,
    )


def epochs_text(workload: Workload) -> str:
    """A number, or P10, P50 and P90 of one that is not known."""
    stop = workload.stop
    if stop is None:
        return figures.written(workload.epochs, "g")
    low, middle, high = (figures.written(n, ".3g") for n in (stop.p10_epochs, stop.p50_epochs, stop.p90_epochs))
    said = _("{middle} (P10 {low}, P90 more than {high})") if stop.open_ended else _("{middle} (P10 {low}, P90 {high})")
    return said.format(low=low, middle=middle, high=high)


def end_facts(workload: Workload) -> Iterator[Fact]:
    """When training ends, where that is no number of epochs: by what rule, and what says so."""
    stop, rule = workload.stop, workload.early_stop
    if stop is None:
        return
    text = _("as earlier runs did")
    if rule is not None:
        text = _("when accuracy stops growing: {least} to {most} epochs, patience {patience}").format(
            least=figures.written(rule.least_epochs, "g"),
            most=figures.written(rule.most_epochs, "g"),
            patience=figures.written(rule.patience_epochs, "g"),
        )
    elif workload.target_fraction is not None:
        text = _("at an accuracy of {percent} %").format(percent=figures.written(100 * workload.target_fraction, ".4g"))
    yield Fact(label=_("Training ends"), text=text, why=with_semicolons(words(note) for note in stop.notes))
    if stop.at:
        grows = _("× batch^{power} ({low} to {high}): more GPUs at the same batch a GPU need more epochs")
        low, high = (max(0.0, stop.growth + side * Z80 * stop.growth_sd) for side in (-1, 1))
        text = grows.format(
            power=figures.written(stop.growth, ".2f"),
            low=figures.written(low, ".2f"),
            high=figures.written(high, ".2f"),
        )
        yield Fact(label=_("Epochs grow"), text=text)


def feed_facts(workload: Workload, rows: Sequence[Candidate]) -> Iterator[Fact]:
    """What loading a sample takes, measured or not: so much of what the GPUs could do is capped by the hosts."""
    if workload.decode_s:
        n = sum(c.workload == workload.name and c.offer.vcpus is None for c in rows)
        text = _("{ms} ms of one CPU a sample, as measured: an offer of few vCPUs is slower by it")
        why = _("{n} of these offers do not say how many vCPUs they have: not capped").format(n=n) if n else ""
        yield Fact(label=_("Loading"), text=text.format(ms=figures.number(1000 * workload.decode_s)), why=why)
    elif workload.sample == "image":
        text = _("not measured: the times hold only if the CPUs load images fast enough")
        why = _("measure tells what an image of yours takes, and rank --measured counts it")
        yield Fact(label=_("Loading"), text=text, why=why)


def assumed(workload: Workload) -> str:
    """Which of a workload's figures are assumptions; `describe` says why."""
    names = [name for name in workload.assumed if name not in workload.undecided]
    if not names:
        return ""
    parts = with_commas(map(field, names))
    return _("assumed: {parts}; the reasons: gpuwise describe {name}").format(parts=parts, name=workload.name)


def _in_short(workload: Workload) -> str:
    return _(
        "{title}: {gmacs} GMAC and {activations} million activations a sample, {parameters} million parameters."
    ).format(
        title=_(workload.title),
        gmacs=figures.number(workload.gmacs),
        activations=figures.number(workload.activations_m),
        parameters=figures.number(workload.parameters_m),
    )


def _job(workload: Workload) -> Iterator[Fact]:
    def fact(name: str, label: str, text: str) -> Fact:
        why = workload.assumed.get(name)
        return Fact(label=label, text=text, why=_("assumed: {parts}").format(parts=_(why)) if why else "")

    yield Fact(
        label=_("Model"), text=_("{model}, family {family}").format(model=workload.model, family=workload.family)
    )
    samples, epochs = (
        _("{what} ({n})").format(what=figures.count(workload.samples), n=sample(workload.sample)),
        epochs_text(workload),
    )
    for name, label, text in (("samples", _("Samples in an epoch"), samples), ("epochs", _("Epochs"), epochs)):
        unstated = Fact(label=label, text=_("unknown"), why=_("nobody stated it: no time and no total can be told"))
        yield unstated if name in workload.undecided else fact(name, label, text)
    yield from end_facts(workload)
    yield fact("batch_per_accelerator", _("Batch per GPU"), str(workload.batch_per_accelerator))
    yield fact("precision", _("Precision"), workload.precision)
    yield _accuracy(workload)
    if workload.measured_as:
        yield Fact(label=_("Measured as"), text=with_commas(workload.measured_as))


def _accuracy(workload: Workload) -> Fact:
    fraction, reason = workload.accuracy_fraction, workload.reasons.get("accuracy_fraction")
    if fraction is None:
        return Fact(label=_("Accuracy"), text=_("unknown"), why=words(reason) if reason else "")
    return Fact(label=_("Accuracy"), text=f"{figures.number(100 * fraction)} %", why=workload.source.ref)


def _peak(workload: Workload) -> Iterator[Fact]:
    reason = workload.reasons.get("peak_memory_gib")
    if workload.peak_memory_gib is not None:
        text = _("{gib} GiB at batch {batch}, {precision}").format(
            gib=figures.number(workload.peak_memory_gib),
            batch=workload.batch_per_accelerator,
            precision=workload.precision,
        )
        yield Fact(label=_("Peak memory of a step"), text=text, why=words(reason) if reason else _("as a run took it"))
    elif reason:
        yield Fact(label=_("Peak memory of a step"), text=_("unknown"), why=words(reason))


def _counts(workload: Workload) -> Iterator[Fact]:
    state_why, format_why = (workload.assumed.get(name, "") for name in ("state_bytes_per_parameter", "memory_format"))
    state_gib = workload.parameters_m * 1e6 * workload.state_bytes_per_parameter / 2**30
    gradient_mib = workload.parameters_m * 1e6 * 4 / BYTES_PER_MIB
    forward = _("{n} GMAC").format(n=figures.exact_number(workload.gmacs))
    yield Fact(label=_("Forward pass"), text=forward, why=_(workload.assumed.get("gmacs", "")))
    activations = _("{n} million elements").format(n=figures.exact_number(workload.activations_m))
    yield Fact(label=_("Activations"), text=activations)
    parameters = _("{n} million").format(n=figures.exact_number(workload.parameters_m))
    yield Fact(label=_("Parameters"), text=parameters)
    state = _("{gib} GiB: weights, gradients and optimizer, {bytes} bytes a parameter")
    text = state.format(gib=figures.number(state_gib), bytes=figures.written(workload.state_bytes_per_parameter, "g"))
    yield Fact(label=_("Training state"), text=text, why=_(state_why))
    yield Fact(label=_("Gradients"), text=_("{mib} MiB a step").format(mib=figures.number(gradient_mib)))
    yield from _peak(workload)
    if workload.memory_format:
        yield Fact(label=_("Memory format"), text=workload.memory_format, why=_(format_why))
