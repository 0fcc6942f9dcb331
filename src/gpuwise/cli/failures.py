"""What went wrong, told once: a line and a hint on standard error, and an exit code for the shell.

Modules that only an error needs are imported by it: `gpuwise --help` is quicker without them.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click

from gpuwise.cli import streams
from gpuwise.errors import GpuwiseError, InvalidInput, Message, UnknownName
from gpuwise.locale import words

INTERRUPTED = 130
"""128 + the number of the signal (2), as shells count."""
SCHEMA = 1
DETAILS = ("nearest", "file", "row", "column")


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Tells an error to the person (stderr) and, with `--json`, to the script as well (stdout)."""

    debug: bool
    as_json: bool

    def __call__(self, error: GpuwiseError) -> int:
        if self.debug:
            import traceback

            streams.note("".join(traceback.format_exception(error)).rstrip())
        if self.as_json:
            import json

            with suppress(InvalidInput):  # standard output cannot be written: what is left to do is to say the error
                streams.emit(json.dumps(document(error), ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        streams.note(f"gpuwise: {words(error.message)}\n  {words(error.hint)}")
        return error.exit_code

    def fault(self, error: Exception) -> int:
        """An error that nobody foresaw."""
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        fault = GpuwiseError(
            Message("This is a fault of gpuwise itself: {what}", what=what),
            Message("Run the same command with --debug, and report what it prints."),
        )
        fault.__cause__ = error
        return self(fault)

    def interrupted(self) -> int:
        streams.note("gpuwise: " + words(Message("Interrupted.")))
        return INTERRUPTED


def document(error: GpuwiseError) -> dict[str, Any]:
    """The error as `--json` prints it, in English whatever the language: the kind is the name in `errors`, details only
    where the kind has them."""
    about = {
        "kind": type(error).__name__,
        "message": str(error.message),
        "hint": str(error.hint),
        "exit_code": error.exit_code,
    }
    return {"schema": SCHEMA, "error": about | {k: getattr(error, k) for k in DETAILS if hasattr(error, k)}}


def ours(error: click.ClickException | GpuwiseError) -> GpuwiseError:
    """The same as an error of ours, with what to do: also for a command line that could not be read."""
    if isinstance(error, GpuwiseError):
        return error
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "gpuwise"
    look = Message("See what there is: {command} --help", command=where)
    if isinstance(error, click.NoSuchOption):
        known = [o for p in error.ctx.command.params for o in p.opts] if error.ctx else []
        return unknown(Message('There is no option "{name}".', name=error.option_name), error.option_name, known, look)
    if isinstance(error, click.BadOptionUsage):
        return InvalidInput(Message("{option} needs a value.", option=error.option_name), look)
    return InvalidInput(Message("{text}", text=error.format_message()), look)


def unknown(message: Message, name: str, known: Collection[str], look: Message) -> UnknownName:
    """An unknown name with what may have been meant, else with where to look."""
    from difflib import get_close_matches

    bare = {option.lstrip("-"): option for option in known}  # dashes are no likeness
    near = [bare[option] for option in get_close_matches(name.lstrip("-"), bare)]
    return UnknownName(message, Message("Did you mean {name}?", name=near[0]) if near else look, near)
