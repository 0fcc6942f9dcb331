"""The page of a workload: what the job consists of, which figures are assumptions, which are not known."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwise.locale import _, words
from gpuwise.model import Workload
from gpuwise.view import figures
from gpuwise.view.page import Fact, Facts, Page, Text
from gpuwise.view.vocabulary import field

BYTES_PER_MIB = 2**20


def workload_page(workload: Workload) -> Page:
    """The answer to `describe`."""
    return Page(
        title=_("What does {name} consist of?").format(name=workload.name),
        blocks=(
            Text(text=_in_short(workload), role="answer"),
            workload_facts(workload),
            Facts(title=_("One sample"), facts=tuple(_counts(workload))),
        ),
        foot=_("Source: {ref}.").format(ref=workload.source.ref),
    )


def workload_facts(workload: Workload) -> Facts:
    """How long the job is and how it runs; each assumption with its reason."""
    return Facts(title=_("The job"), facts=tuple(_job(workload)))


def job_text(workload: Workload) -> str:
    """The job in one line, for pages about something else."""
    return _("{title}: {samples} samples ({sample}) × {epochs} epochs, batch {batch} a GPU, {precision}").format(
        title=workload.title,
        samples=figures.count(workload.samples),
        sample=workload.sample,
        epochs=f"{workload.epochs:g}",
        batch=workload.batch_per_accelerator,
        precision=workload.precision,
    )


def assumed(workload: Workload) -> str:
    """Which of a workload's figures are assumptions; `describe` says why."""
    if not workload.assumed:
        return ""
    parts = ", ".join(field(name) for name in workload.assumed)
    return _("assumed: {parts}; the reasons: gpuwise describe {name}").format(parts=parts, name=workload.name)


def _in_short(workload: Workload) -> str:
    return _(
        "{title}: {gmacs} GMAC and {activations} million activations a sample, {parameters} million parameters."
    ).format(
        title=workload.title,
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
    yield fact("samples", _("Samples in an epoch"), f"{figures.count(workload.samples)} ({workload.sample})")
    yield fact("epochs", _("Epochs"), f"{workload.epochs:g}")
    yield fact("batch_per_accelerator", _("Batch per GPU"), str(workload.batch_per_accelerator))
    yield fact("precision", _("Precision"), workload.precision)
    yield _accuracy(workload)
    if workload.measured_as:
        yield Fact(label=_("Measured as"), text=", ".join(workload.measured_as))
    if workload.nearest:
        why = _("measured ratios between GPUs stand in for this one's")
        yield Fact(label=_("Nearest measured"), text=", ".join(workload.nearest), why=why)


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
    text = state.format(gib=figures.number(state_gib), bytes=f"{workload.state_bytes_per_parameter:g}")
    yield Fact(label=_("Training state"), text=text, why=_(state_why))
    yield Fact(label=_("Gradients"), text=_("{mib} MiB a step").format(mib=figures.number(gradient_mib)))
    yield from _peak(workload)
    if workload.memory_format:
        yield Fact(label=_("Memory format"), text=workload.memory_format, why=_(format_why))
