"""Standard output and standard error: no encoding, closed pipe or full disk makes the program fail late."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from gpuwise.errors import InvalidInput, Message

WIDTH_OF_A_PIPE = 120
"""Columns of a page that does not go to a terminal."""


def prepare() -> None:
    """Where a terminal cannot show a sign it shows a question mark; printing never fails for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def width() -> int:
    """Columns to fill: COLUMNS, else the terminal's, else WIDTH_OF_A_PIPE."""
    return shutil.get_terminal_size((WIDTH_OF_A_PIPE, 24)).columns


def colours() -> bool:
    """May a page have colours? Only on a terminal, and not where NO_COLOR is set."""
    return sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def show(text: str) -> None:
    """Words for a person, to standard output in its own encoding."""
    _send(lambda out: out.write(text))


def emit(document: bytes) -> None:
    """A document for machines, to standard output as it is, whatever the locale."""
    _send(lambda out: out.buffer.write(document))


def note(text: str) -> None:
    """Progress, warnings and errors, to standard error. They are lost rather than fatal where nobody listens.

    Control signs become blanks: a name in somebody's file must not steer the console.
    """
    if sys.stderr is not None:
        with suppress(OSError):
            print(re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", " ", text), file=sys.stderr, flush=True)


def reader_has_left() -> int:
    """The reader of a pipe has seen enough. That is no error: what would still be printed is dropped."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _send(put: Callable[[Any], object]) -> None:
    if sys.stdout is None:  # closed by the shell: `>&-`
        return
    try:
        put(sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        reader_has_left()
    except OSError as error:
        reader_has_left()
        raise unwritable("standard output", error) from error


def check_writable(path: str) -> None:
    """Raises InvalidInput if a file cannot be written there; leaves nothing behind. Asked before any work is done."""
    from tempfile import TemporaryFile

    target = Path(path).resolve()
    try:
        if target.is_dir():
            raise unwritable(path, Message("it is a folder"))
        if target.exists() and not os.access(target, os.W_OK):
            raise unwritable(path, Message("it is read-only"))
        if not target.exists() or target.is_file():
            TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: str, why: Message | OSError) -> InvalidInput:
    from gpuwise.render import way_out

    problem, hint = (why, way_out(OSError())) if isinstance(why, Message) else (why.strerror or str(why), way_out(why))
    return InvalidInput(Message("{path} cannot be written: {why}.", path=path, why=problem), hint)
