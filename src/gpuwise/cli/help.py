"""How `--help` looks: what each question is for, options in groups with type, choices, default and example."""

from __future__ import annotations

from collections.abc import Iterable

import click

from gpuwise.locale import N_, _, activate, available, lines, with_colon, with_commas

QUESTIONS = {
    "rank": N_("Where should these jobs run? Every offer with its time and cost, and what was left out and why."),
    "explain": N_(
        "Why do you think so? The evidence behind one prediction: of an offer, of a GPU, or of the best offer."
    ),
    "describe": N_("What does this training job consist of? Counts that hold on any machine."),
    "measure": N_(
        "How fast does it train here, and what holds it back? Reference training, or your own program after --."
    ),
    "ceilings": N_(
        "What can this machine do at best? Arithmetic, memory, links, disk and decoding, in less than a minute."
    ),
    "check": N_(
        "Is this machine ready, and how long until the first step? What is there, what is missing, how to get it."
    ),
    "runs": N_("What was measured? List the runs that were kept, show one again, or compare two."),
    "data": N_("What are the facts? List them, show one, check them, compare two days, or fetch today's."),
    "accuracy": N_(
        "May I trust you? How wrong predictions were on measured rows that were left out, or on a table of your own."
    ),
    "bill": N_(
        "What did it cost? From records of what happened: states of machines, pods on a machine, or a cost export."
    ),
    "own": N_("Own or rent? All cloud, commitments, spot, machines by the month and own servers, and how much to own."),
    "exit": N_(
        "When to leave the cloud? From months of bills: dates, the premium paid so far, how many to own, the checklist."
    ),
}
"""The docstrings of the request types, so that `gpuwise --help` need not import these; a test compares them."""

COMMANDS = {
    "serve": N_("I would rather look than read. All of this in a browser, with forms, tables and charts."),
}
"""Commands that answer no question of their own."""

EXAMPLES = {
    "": ("gpuwise rank painter-heavy --html report.html", "gpuwise rank --help"),
    "rank": ("gpuwise rank painter-heavy --deadline 36h --budget 50USD",
             "gpuwise rank painter-light painter-heavy --gpu 24GB.. --html report.html"),
    "explain": ("gpuwise explain painter-heavy --on A100-80GB:2", "gpuwise explain bert-finetune --json"),
    "describe": ("gpuwise describe painter-heavy",
                 "gpuwise describe torchvision.models:resnet50 --toml resnet50.toml"),
    "measure": ("gpuwise measure painter-light --minutes 3",
                "gpuwise measure painter-heavy --data paintings/ --target 80% --html run.html",
                "gpuwise measure -- python train.py --epochs 3"),
    "ceilings": ("gpuwise ceilings", "gpuwise ceilings --data /mnt/images --json"),
    "check": ("gpuwise check", "gpuwise check --out check.json"),
    "runs": ("gpuwise runs list", "gpuwise runs show 12", "gpuwise runs compare 11 12"),
    "data": ("gpuwise data show p2.xlarge", "gpuwise data list --by provider,gpu --csv"),
    "accuracy": ("gpuwise accuracy", "gpuwise accuracy --against ours.csv --json"),
    "own": ("gpuwise own --demand 1200GPU-h/month --gpu H100-SXM --growth 20%/y",
            "gpuwise own --job painter-heavy --every 7d --data-growth 3%/month --gpu A100-80GB",
            "gpuwise own scenario.toml --html own.html"),
    "exit": ("gpuwise exit usage.csv --moving-cost 40000USD", "gpuwise exit --services S3,SageMaker,EC2"),
    "bill": ("gpuwise bill events.toml --until 2026-11-30T22:58Z", "gpuwise bill focus.csv --kind billed --csv"),
}  # fmt: skip

EXIT_CODES = {
    "0": N_("an answer"),
    "2": N_("something you gave cannot be used"),
    "3": N_("nothing is feasible, or nothing supports an answer"),
    "4": N_("a measurement or a launcher failed"),
    "10": N_("the date to leave has come (exit --watch)"),
    "130": N_("interrupted"),
}

GROUPS = (
    N_("Filters"), N_("Job"), N_("Demand"), N_("Owning"), N_("Moving the data"), N_("Leaving"), N_("The bill"),
    N_("Checkpoints"), N_("Until"), N_("Training"), N_("Your own data"), N_("Output"),
)  # fmt: skip
"""`request.GROUPS`, marked for the translators."""


def language_option() -> click.Option:
    """`--lang`, which takes effect before anything is printed."""

    def choose(_ctx: click.Context, _option: click.Parameter, code: str | None) -> None:
        if code:
            activate(code)

    return click.Option(
        ["--lang"], metavar="CODE", is_eager=True, expose_value=False, callback=choose,
        help=N_("Language of the answer."),
    )  # fmt: skip


class Formatter(click.HelpFormatter):
    """Click's help, with lines that end where other scripts let them end, and with the reader's word for usage."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, prefix or lines.closed(_("Usage:") + " "))

    def write_heading(self, heading: str) -> None:
        self.write(" " * self.current_indent + with_colon(heading, "").rstrip() + "\n")

    def write_text(self, text: str) -> None:
        if not lines.wide(text):
            super().write_text(text)
            return
        blank = " " * self.current_indent
        self.write(
            "".join(f"{blank}{line}\n" for line in lines.broken(lines.closed(text), self.width - self.current_indent))
        )

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        shown = list(rows)
        if not any(lines.wide(text) for _name, text in shown):
            super().write_dl(shown, col_max, col_spacing)
            return
        first = min(max(lines.columns(name) for name, _text in shown), col_max) + col_spacing
        blank = " " * self.current_indent
        for name, text in shown:
            said = lines.broken(lines.closed(text), self.width - self.current_indent - first)
            head = [name.ljust(first) + said.pop(0)] if lines.columns(name) <= first - col_spacing else [name]
            self.write("".join(f"{blank}{line}\n" for line in [*head, *(" " * first + line for line in said)]))


class Context(click.Context):
    formatter_class = Formatter


class OurHelp(click.Command):
    """Gives a command our help: `--help` in the reader's words."""

    context_class: type[click.Context] = Context

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = _("Show this message and exit.")
        return option


def write_rows(formatter: click.HelpFormatter, title: str, rows: Iterable[tuple[str, str]]) -> None:
    shown = list(rows)
    if shown:
        with formatter.section(title):
            formatter.write_dl(shown, col_max=24)


def write_examples(formatter: click.HelpFormatter, verb: str) -> None:
    with formatter.section(_("Examples")):
        formatter.write("".join(f"  {example}\n" for example in EXAMPLES[verb]))


def option_row(option: click.Option) -> tuple[str, str]:
    """An option of the command line's own: what is typed, and what it does."""
    names = ", ".join(option.opts)
    help_text = _(option.help or "")
    if "--lang" in option.opts:
        help_text += " " + _("One of {choices}.").format(choices=with_commas(available()))
    return (names if option.is_flag else f"{names} {option.metavar}"), help_text
