"""`gpuwise serve`: the same questions in a browser. It asks nothing itself, so it has no request type."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from gpuwise.cli import streams
from gpuwise.cli.help import COMMANDS, OurHelp, language_option, option_row, write_rows
from gpuwise.errors import InvalidInput, Message
from gpuwise.locale import N_, _
from gpuwise.request import at
from gpuwise.units import parse_count

NEEDED = ("fastapi", "uvicorn", "python_multipart")
MOST_PORT = 65_535
TOKEN = "GPUWISE_TOKEN"
EXAMPLES = ("gpuwise serve", "gpuwise serve --port 0 --no-open", "gpuwise serve --host 0.0.0.0 --name gpu.example.org")


def server_options() -> list[click.Option]:
    """What can be said to the server."""
    return [
        click.Option(["--host"], metavar="ADDRESS", default="127.0.0.1", help=N_(
            "Where to listen (default: this machine alone). For any other address a token is asked of everybody.")),
        click.Option(["--port"], metavar="N", default="8765", help=N_("Port (default: 8765); 0 takes a free one.")),
        click.Option(["--name"], metavar="NAME", multiple=True, help=N_(
            "A name that browsers know the machine by; may be given several times. Others are refused.")),
        click.Option(["--token"], metavar="TEXT", help=N_(
            "The token to ask for (default: one is made where it is needed; GPUWISE_TOKEN is read too).")),
        click.Option(["--workers"], metavar="N", default="2", help=N_("Processes that answer (default: 2).")),
        click.Option(["--no-open"], is_flag=True, help=N_("Do not open a browser.")),
        language_option(),
        click.Option(["--debug"], is_flag=True, help=N_("Show where in the code an error arose.")),
    ]  # fmt: skip


class Serve(OurHelp):
    """The server as a command."""

    def __init__(self) -> None:
        super().__init__("serve", params=list(server_options()), callback=_run)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(_(COMMANDS["serve"]))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_rows(formatter, _("Options"), [option_row(p) for p in self.params if isinstance(p, click.Option)])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(_("Examples")):
            formatter.write("".join(f"  {example}\n" for example in EXAMPLES))


def _run(**given: Any) -> int:
    """Serve until Ctrl-C, which ends it as any other command."""
    port, workers = _port(given["port"]), _workers(given["workers"])
    for name in NEEDED:
        _need(name)
    from gpuwise.web import serving

    place = serving.Place(
        host=given["host"], port=port, names=given["name"], token=given["token"] or os.environ.get(TOKEN) or None,
        workers=workers,
    )  # fmt: skip
    if not serving.is_loopback(place.host):
        streams.note(_("Note: what is sent can be read on the way; use it in a network you trust, or behind a proxy"
                       " with TLS."))  # fmt: skip
    serving.serve(place, lambda address: _say(address, browser=not given["no_open"]))
    return 0


def _need(name: str) -> None:
    try:
        import_module(name)
    except ImportError as error:
        raise InvalidInput(
            Message("The server needs {name}, which is not installed.", name=name.replace("_", "-")),
            Message("Run: pip install 'gpuwise[web]'"),
        ) from error


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_PORT)) and int(text) <= MOST_PORT:
        return int(text)
    raise InvalidInput(
        Message('--port: "{text}" is no port.', text=text),
        Message("Write a number from 0 to {most}; 0 takes a free one.", most=MOST_PORT),
    )


def _workers(text: str) -> int:
    try:
        return parse_count(text)
    except InvalidInput as error:
        raise at("--workers", error) from None


def _say(address: str, *, browser: bool) -> None:
    streams.show(address + "\n")
    streams.note(_("Open it in a browser. Ctrl-C ends the server."))
    if browser and _has_screen():
        import webbrowser

        webbrowser.open(address)


def _has_screen() -> bool:
    """Is there somebody to look at a window? Not behind a pipe, and not on a machine without a display."""
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
