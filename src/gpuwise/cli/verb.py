"""One command a question: its arguments and options are the fields of the request type."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gpuwise import request
from gpuwise.cli import streams
from gpuwise.cli.help import GROUPS, QUESTIONS, OurHelp, option_row, write_examples, write_rows
from gpuwise.cli.output import output, output_options, verdict
from gpuwise.cli.session import Session
from gpuwise.errors import InvalidInput, Message
from gpuwise.locale import _, with_commas
from gpuwise.request import CHOICES, Option


class Verb(OurHelp):
    """A command made from a request type."""

    def __init__(self, name: str) -> None:
        self.request: type[Any] = getattr(request, f"{name.capitalize()}Request")
        self.asked = request.options(self.request)
        self.own = output_options(name)
        super().__init__(
            name,
            params=[*(_parameter(option) for option in self.asked.values()), *self.own],
            callback=click.pass_context(_run),
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What stands after -- is somebody's command, word for word, where the verb takes one."""
        command = next((o.field for o in self.asked.values() if o.kind == "command"), None)
        if command is None or "--" not in args:
            return super().parse_args(ctx, args)
        at = args.index("--")
        rest = super().parse_args(ctx, args[:at])
        ctx.params[command] = tuple(args[at + 1 :])
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        own = [f"[{o.metavar}...]" for o in self.asked.values() if o.kind == "command"]
        return [*super().collect_usage_pieces(ctx), *own]

    def said(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What the person said on the command line, by option: no defaults."""
        given = {name: params[option.field] for name, option in self.asked.items()}
        return {name: value for name, value in given.items() if value not in (None, (), False)}

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(_(QUESTIONS[str(self.name)]))
        words = [o for o in self.asked.values() if o.positional]
        write_rows(formatter, _("What to ask for"), ((o.metavar, _explained(o)) for o in words))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in GROUPS:
            rows = [(_typed(o), _explained(o)) for o in self.asked.values() if o.group == group and not o.positional]
            write_rows(formatter, _(group), [*rows, *(map(option_row, self.own) if group == "Output" else ())])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, str(self.name))


def _run(ctx: click.Context, **params: Any) -> int:
    """Ask the question, show the answer, and say by the exit code which kind of answer it is."""
    verb, session = ctx.command, ctx.obj or Session()
    assert isinstance(verb, Verb)
    _refuse_swallowed(verb, params)
    shown = output(params)
    said, (written, places) = verb.said(params), _from_file(params["request"]) if params["request"] else ({}, {})
    spelled = {name: place for name, place in places.items() if name not in said}
    asked = request.parse(verb.request, written | said, usd_per=session.usd_per, spelled=spelled)
    answer = session.answer(str(verb.name), asked)
    shown.show(answer)
    if answer.exit_code:
        streams.note(f"gpuwise: {verdict(answer)}")
    return answer.exit_code


def _refuse_swallowed(verb: Verb, params: Mapping[str, Any]) -> None:
    """`--html --json` would write a file called --json: an option is never the value of another one, nor is nothing."""
    verbatim = {o.field for o in verb.asked.values() if o.kind == "command"}
    for option in (p for p in verb.params if p.name not in verbatim):
        given = params.get(str(option.name))
        for text in given if isinstance(given, tuple) else (given,):
            if isinstance(option, click.Option) and isinstance(text, str) and not text.strip():
                raise InvalidInput(
                    Message("{option} is empty.", option=option.opts[0]),
                    Message("Write a value after it, or leave it out."),
                )
            if isinstance(option, click.Option) and isinstance(text, str) and text.startswith("--"):
                raise InvalidInput(
                    Message("{option} needs a value, and {text} is an option.", option=option.opts[0], text=text),
                    Message("Write the value between the two."),
                )


def _from_file(path: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What a TOML file says, by option, and where it says so. Raises DataError for a file that cannot be read."""
    from gpuwise.sources.document import read_toml

    file = read_toml(Path(path))
    said = {key.replace("_", "-"): (key, value) for key, value in file.data.items()}
    places = {name: f"{key} in {file.name}, line {file.line((key,)) or 1}" for name, (key, _value) in said.items()}
    return {name: value for name, (_key, value) in said.items()}, places


def _parameter(option: Option) -> click.Parameter:
    """The same for click. Texts stay texts: `request.parse` reads them, and tells what is wrong with them."""
    if option.kind == "command":
        return click.Option([f"--{option.name}", option.field], multiple=True, hidden=True)  # filled by `parse_args`
    if option.positional:
        return click.Argument(
            [option.field], nargs=-1 if option.repeats else 1, required=False, metavar=_usage(option), type=str
        )
    if option.kind == "flag":
        return click.Option([f"--{option.name}", option.field], is_flag=True)
    return click.Option([f"--{option.name}", option.field], multiple=option.repeats, type=str)


def _usage(option: Option) -> str:
    text = option.metavar + ("..." if option.repeats else "")
    return text if option.required else f"[{text}]"


def _typed(option: Option) -> str:
    return option.spelled if option.kind == "flag" else f"{option.spelled} {option.metavar}"


def _usual(option: Option) -> str:
    """The default as a person would write it, empty where there is none to be told."""
    if option.kind == "share" and option.default is not None:
        return f"{option.default:.0%}"
    if isinstance(option.default, bool) or not isinstance(option.default, str | int):
        return ""
    return f"{option.default}{_(' months')}" if option.kind == "horizon" else f"{option.default}"


def _explained(option: Option) -> str:
    """Help text, choices, default and example in one line."""
    parts = [_(option.help)]
    if choices := CHOICES.get(option.kind):
        parts.append(_("One of {choices}.").format(choices=with_commas(choices)))
    if usual := _usual(option):
        parts.append(_("Default: {value}.").format(value=usual))
    if option.example:
        parts.append(_("Example: {text}").format(text=shlex.quote(option.example)))
    return " ".join(parts)
