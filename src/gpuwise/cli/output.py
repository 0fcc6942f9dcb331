"""Where a result goes, and in which form."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gpuwise.cli import streams
from gpuwise.cli.help import language_option
from gpuwise.cli.session import Answer
from gpuwise.errors import InvalidInput, Message
from gpuwise.locale import N_, _, in_english
from gpuwise.request import at
from gpuwise.units import parse_count

FORMS = {"json": N_("Print JSON (schema 1)."), "csv": N_("Print CSV."), "markdown": N_("Print a Markdown table.")}
FILES = ("html", "summary", "toml", "out")
STDOUT = "-"
_RECORD = N_("Write the record of the run: rank --measured reads it.")
_SIGNED = {"summary": N_("Write one page to sign, as HTML: what to do, and what would turn it; - prints it.")}
OWN_FILES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("rank", "own", "exit"), _SIGNED),
    "describe": {"toml": N_("Write the workload as TOML, to be changed and used.")},
    "measure": {"out": _RECORD},
    "runs": {"out": _RECORD},
    "check": {"out": N_("Write what was found: rank --checked reads it.")},
}
"""Files that only some verbs can write."""


def output_options(verb: str) -> list[click.Option]:
    """What every verb understands beside its request."""
    forms = [click.Option([f"--{name}"], is_flag=True, help=text) for name, text in FORMS.items()]
    own = [click.Option([f"--{name}"], metavar="FILE", help=text) for name, text in OWN_FILES.get(verb, {}).items()]
    return [
        *forms,
        click.Option(["--html"], metavar="FILE", help=N_("Write a self-contained report; - prints it.")),
        click.Option(
            ["--chart"],
            metavar="FILE",
            help=N_("Write the charts as pictures, .svg or .png; a second one goes to FILE-2."),
        ),
        *own,
        click.Option(["--bom"], is_flag=True, help=N_("With --csv: begin with a byte-order mark, for spreadsheets.")),
        click.Option(["--width"], metavar="N", help=N_("Columns to fill (default: the terminal's). Example: 120")),
        click.Option(["--request"], metavar="FILE", help=N_("TOML with the same options; the command line wins.")),
        language_option(),
        click.Option(["--debug"], is_flag=True, help=N_("Show where in the code an error arose.")),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """form: what standard output gets: text, or one of DOCUMENTS. files: form -> path of a file to write beside it.
    chart: where the pictures of the page go."""

    form: str
    files: Mapping[str, str]
    bom: bool
    width: int
    chart: str | None = None

    def show(self, answer: Answer) -> None:
        """Files first, so that a reader of the pipe who leaves early costs nothing; then the result."""
        from gpuwise.render import write_text

        for form, path in self.files.items():
            write_text(path, DOCUMENTS[form](answer))
            streams.note(_("Written: {path}").format(path=path))
        if self.chart:
            _write_charts(answer, Path(self.chart))
        self._print(answer)
        if self.form in ("csv", "markdown"):  # which have no place for them
            for warning in _warnings(answer):
                streams.note(_("Note: {text}").format(text=warning))

    def _print(self, answer: Answer) -> None:
        if self.form == "text":
            from gpuwise.render.text import text

            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            streams.show(text(answer.page(), width=self.width, colour=streams.colours(), encoding=encoding))
        else:
            document = DOCUMENTS[self.form](answer)
            streams.emit(document.encode("utf-8-sig" if self.bom else "utf-8", "replace"))


def output(given: Mapping[str, Any]) -> Output:
    """The output that the options ask for. Raises InvalidInput where they contradict or a file is closed to us."""
    files = {name: given.get(name) for name in FILES}
    forms = [*(name for name in FORMS if given[name]), *(name for name in FILES if files[name] == STDOUT)]
    if len(forms) > 1:
        raise InvalidInput(
            Message("--{one} and --{other} both want standard output.", one=forms[0], other=forms[1]),
            Message("Leave one out. A report can be written to a file beside any of them: --html FILE"),
        )
    if given["bom"] and not given["csv"]:
        raise InvalidInput(Message("--bom has no meaning without --csv."), Message("Add --csv, or leave --bom out."))
    paths = {name: path for name, path in files.items() if path and path != STDOUT}
    chart = given["chart"]
    if chart and Path(chart).suffix.lower() not in PICTURES:
        raise InvalidInput(
            Message('--chart: "{path}" ends neither in .svg nor in .png.', path=chart), Message("Name it chart.svg.")
        )
    for path in (*paths.values(), *([chart] if chart else [])):
        streams.check_writable(path)
    return Output(
        form=forms[0] if forms else "text", files=paths, bom=given["bom"], width=_width(given["width"]), chart=chart
    )


PICTURES = (".svg", ".png")


def _write_charts(answer: Answer, path: Path) -> None:
    """The first chart under the name that was said, the second as NAME-2, and so on."""
    from gpuwise.render import write_bytes
    from gpuwise.render.vega import picture
    from gpuwise.view.page import Chart

    charts = [block for block in answer.page().blocks if isinstance(block, Chart)]
    if not charts:
        streams.note(_("The answer has no chart: nothing is written to {path}.").format(path=path))
    for number, chart in enumerate(charts, 1):
        target = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        write_bytes(target, picture(chart, path.suffix.lower().removeprefix("."))[1])
        streams.note(_("Written: {path}").format(path=target))


def _width(text: str | None) -> int:
    try:
        return streams.width() if text is None else parse_count(text)
    except InvalidInput as error:
        raise at("--width", error) from None


def _html(answer: Answer) -> str:
    from gpuwise.render.html import html

    return html(answer.page())


def _summary(answer: Answer) -> str:
    from gpuwise.render.html import html

    return html(answer.summary())


def _json(answer: Answer) -> str:
    from gpuwise.render.data import json_text

    return json_text(answer.json())


def _csv(answer: Answer) -> str:
    from gpuwise.render.data import csv_text

    with in_english():
        return csv_text(answer.table())


def _markdown(answer: Answer) -> str:
    from gpuwise.render.data import markdown

    return markdown(answer.table())


DOCUMENTS: Mapping[str, Callable[[Answer], str]] = {
    "json": _json, "csv": _csv, "markdown": _markdown, "html": _html, "summary": _summary,
    "toml": lambda answer: answer.toml(), "out": lambda answer: answer.record(),
}  # fmt: skip


def _warnings(answer: Answer) -> list[str]:
    from gpuwise.view.page import Caution

    return [block.text for block in answer.page().blocks if isinstance(block, Caution)]


def verdict(answer: Answer) -> str:
    """The first sentence of the answer, for standard error where the answer is no; the page says the rest."""
    from gpuwise.view.page import Text

    return next((b.text for b in answer.page().blocks if isinstance(b, Text) and b.role == "answer"), "")
