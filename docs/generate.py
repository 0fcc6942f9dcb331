"""Writes reference/commands.md from the request types, and method/accuracy.md from the bundled table of errors.

`make docs` runs it, `make accuracy` the second part; tests say that the pages are up to date.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from gpuwise import request
from gpuwise.cli.help import COMMANDS
from gpuwise.cli.output import output_options
from gpuwise.cli.serve import server_options
from gpuwise.predict.accuracy import ABOUT, PUBLISHED
from gpuwise.predict.tested import Table
from gpuwise.render.data import markdown
from gpuwise.request import CHOICES, GROUPS, VERBS, Option
from gpuwise.store import package
from gpuwise.view.accuracy import splits_table

PAGE = Path(__file__).parent / "reference" / "commands.md"
ACCURACY = Path(__file__).parent / "method" / "accuracy.md"
HEAD = """\
# Commands and options

This page is made from the request types in `gpuwise/request/types.py`. The same names stand in the `request` block of
the JSON output. `gpuwise COMMAND --help` shows the same on a terminal. An option that takes a list can be given several
times, or once with commas.

How values are written, for every command:

| kind of value | examples |
| --- | --- |
| duration | `90 s`, `20 min`, `1 h 30 min`, `1 d 12 h` |
| money | `2.50 USD`, `2.50 EUR`; a number alone is in the currency of `--currency` |
| date | `2026-11-30` |
| fraction | `19 %` or `0.19` |
| memory | `80GB` one size, `80GB..` at least, `24GB..48GB` from to, `..24GB` at most |
| number of GPUs | `1` exactly one, `4..` at least four, `1..8` from one to eight |
| GPU name | `H100-SXM`, `A100-80GB:8` (eight of them; `8xA100-80GB` says the same) |
"""


def commands_page() -> str:
    parts = (*(_section(verb) for verb in VERBS), _server_section(), _output_section())
    return "\n".join([HEAD, *chain.from_iterable(parts)]).rstrip() + "\n"


def _section(verb: str) -> Iterator[str]:
    kind = getattr(request, f"{verb.capitalize()}Request")
    options = request.options(kind).values()
    words = [o for o in options if o.positional]
    usage = " ".join(["gpuwise", verb, *map(_usage, words), "[OPTIONS]"])
    yield from (f"## {verb}", "", str(kind.__doc__), "", "```text", usage, "```", "")
    yield from (f"- `{_word(o)}`: {_meaning(o)} Example: `{o.example}`." for o in words)
    for group in GROUPS:
        rows = [o for o in options if o.group == group and not o.positional]
        if rows:
            head = (
                f"### {verb}: {group.lower()}",
                "| option | meaning | default | example |",
                "| --- | --- | --- | --- |",
            )
            yield from ("", head[0], "", *head[1:])
            yield from (f"| `{o.spelled}` | {_meaning(o)} | {_default(o)} | `{_example(o)}` |" for o in rows)
    yield ""


def _server_section() -> Iterator[str]:
    yield from ("## serve", "", COMMANDS["serve"], "", "```text", "gpuwise serve [OPTIONS]", "```", "")
    yield from ("[How to](../how-to/serve.md).", "", "| option | meaning |", "| --- | --- |")
    for option in server_options():
        yield f"| `{option.opts[0]}{'' if option.is_flag else f' {option.metavar}'}` | {option.help} |"
    yield ""


def _output_section() -> Iterator[str]:
    yield from ("## Output of every command", "", "| option | meaning |", "| --- | --- |")
    options = {option.opts[0]: option for verb in VERBS for option in output_options(verb)}
    for name, option in options.items():
        yield f"| `{name}{f' {option.metavar}' if option.metavar else ''}` | {option.help} |"


def _word(option: Option) -> str:
    return option.metavar or option.name.upper()


def _usage(option: Option) -> str:
    text = _word(option) + (" ..." if option.repeats else "")
    return text if option.required else f"[{text}]"


def _meaning(option: Option) -> str:
    words = CHOICES.get(option.kind)
    choice = f" One of: {', '.join(f'`{w}`' for w in words)}." if words else ""
    return option.help.replace("|", "\\|") + choice


def _default(option: Option) -> str:
    return "" if option.default in (None, (), False) else f"`{option.default}`"


def _example(option: Option) -> str:
    return f"{option.spelled} {shlex.quote(option.example)}" if option.example else option.spelled


ACCURACY_HEAD = """\
# Accuracy

How wrong the predictor is on measured rows that it was not fitted on. This page is made by `make accuracy`, which
computes every split anew; `gpuwise accuracy` shows the same, by group with `--by`. What a split leaves out is left out
of every choice: of the scales, of the factors of the intervals, and of the table. The structure of the predictor was
chosen by looking at splits A, B, D and E on these rows, so a point of optimism is to be expected; nothing else is tuned
on them.

Errors are absolute percentage errors, |predicted / measured − 1|. A goal is MAPE / median / P90 unless it says
otherwise.
"""


def accuracy_page(table: Table) -> str:
    """The splits with their errors, what each asks, and what others published."""
    asked = [f"- **{a.id}**: {a.question}{_more(table, a.id)} Goal: {a.goal}." for a in ABOUT]
    others = [f"| {p.name} | {p.mape_percent} | {p.inputs} | {p.measured_on} | {p.source} |" for p in PUBLISHED]
    return "\n".join([
        ACCURACY_HEAD, f"Computed on {table.computed} from data {table.data_version}.", "", "## How wrong", "",
        markdown(splits_table(table)).rstrip() if table.results else "No split has been computed.", "",
        "## What each split asks", "", *asked, "", "## What others published", "",
        "| work | mean error, % | needs | found on | source |", "| --- | --: | --- | --- | --- |", *others, "",
        "These were found on other rows: they show what is usual, not who is better.",
        "Check the predictor on rows of your own: [how to](../how-to/accuracy.md).",
    ]) + "\n"  # fmt: skip


def _more(table: Table, split: str) -> str:
    """Further figures of a split, as text."""
    found = table.results[split].more if split in table.results else {}
    said = [f"{name.removesuffix('_percent').replace('_', ' ')} {value:.1f} %" for name, value in found.items()]
    return f" Also: {'; '.join(said)}." if said else ""


if __name__ == "__main__":
    PAGE.write_text(commands_page(), "utf-8")
    ACCURACY.write_text(accuracy_page(package.accuracy()), "utf-8")
