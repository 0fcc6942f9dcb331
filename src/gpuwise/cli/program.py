"""`gpuwise`: the commands, made when they are asked for, and the one place where every error ends."""

from __future__ import annotations

import contextvars
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import click

from gpuwise.cli import failures, streams
from gpuwise.cli.help import (
    COMMANDS,
    EXIT_CODES,
    QUESTIONS,
    OurHelp,
    language_option,
    option_row,
    write_examples,
    write_rows,
)
from gpuwise.cli.session import Session
from gpuwise.errors import GpuwiseError, Message
from gpuwise.locale import N_, _, activate, negotiate


class Program(OurHelp, click.Group):
    """Commands are built on demand, so that `gpuwise --help` imports no request type and no numpy."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*QUESTIONS, *COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        known = self.list_commands(ctx)
        if cmd_name not in known:
            message = Message('There is no command "{name}".', name=cmd_name)
            look = Message("The commands are {names}.", names=", ".join(known))
            raise failures.unknown(message, cmd_name, known, look)
        if cmd_name in COMMANDS:
            from gpuwise.cli.serve import Serve

            return Serve()
        from gpuwise.cli.verb import Verb

        return Verb(cmd_name)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(_("Where to train: time and cost of a deep-learning job on every GPU offer."))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_rows(formatter, _("Questions"), [(name, _(question)) for name, question in QUESTIONS.items()])
        write_rows(formatter, _("To look at"), [(name, _(what)) for name, what in COMMANDS.items()])
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        write_rows(formatter, _("Options"), map(option_row, options))
        write_rows(formatter, _("Exit codes"), [(code, _(meaning)) for code, meaning in EXIT_CODES.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, "")

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, obj: Session | None = None, **_extra: Any
    ) -> NoReturn:
        """Run, and leave with the exit code. The context is a copy: the language of one run is not that of the next."""
        given = sys.argv[1:] if args is None else list(args)
        sys.exit(contextvars.copy_context().run(_run, given, obj or Session()))


def _run(args: list[str], session: Session) -> int:
    """The exit code of one command line. Everything that can go wrong ends here."""
    ours = args[: args.index("--")] if "--" in args else args  # what follows is somebody's program
    tell = failures.Teller(debug="--debug" in ours, as_json="--json" in ours)
    try:
        streams.prepare()
        activate(negotiate([*_asked(ours), *languages(os.environ)]))
        with program.make_context("gpuwise", args, obj=session) as ctx:
            return int(program.invoke(ctx) or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.ClickException, GpuwiseError) as error:
        return tell(failures.ours(error))
    except BrokenPipeError:
        return streams.reader_has_left()
    except KeyboardInterrupt:
        return tell.interrupted()
    except Exception as error:  # noqa: BLE001 - the last border: a fault of ours becomes one line, not a traceback
        return tell.fault(error)


def _asked(args: Sequence[str]) -> list[str]:
    """What `--lang` says, read ahead: a command line that cannot be read is complained of in that language too."""
    after = [text for flag, text in pairwise(args) if flag == "--lang"]
    return [*after, *(text.removeprefix("--lang=") for text in args if text.startswith("--lang="))]


def languages(environment: Mapping[str, str]) -> list[str]:
    """The languages that the environment asks for, as gettext reads it: LANGUAGE counts unless the locale is C."""
    found = next((v for k in ("LC_ALL", "LC_MESSAGES", "LANG") if (v := environment.get(k))), "C")
    if found.partition(".")[0] in ("C", "POSIX"):
        return []
    return [*filter(None, environment.get("LANGUAGE", "").split(":")), found]


def _show_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        code = version("gpuwise")
    except PackageNotFoundError:
        code = _("not installed")
    data = (ctx.obj or Session()).data_version()
    streams.show(_("gpuwise {code}, data {data}").format(code=code, data=data) + "\n")
    ctx.exit()


def _no_command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        streams.show(ctx.get_help() + "\n")


program = Program(
    "gpuwise",
    invoke_without_command=True,
    subcommand_metavar="COMMAND",
    callback=click.pass_context(_no_command),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
            help=N_("Show the version of the code and of the data."),
        ),
        language_option(),
    ],
)  # fmt: skip
"""The root command; `program.main(args, obj=Session(...))` runs it with a stand-in for the world."""


def main() -> NoReturn:
    """The console script. A command lives for a second: a pass of the garbage collector would only cost time."""
    gc.disable()
    program.main()
