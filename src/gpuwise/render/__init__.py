"""Pages on paper: `text` for a console, `html` for a browser, `data` for programs (JSON, CSV) and Markdown."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from gpuwise.errors import InvalidInput, Message

NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a file as UTF-8: see `write_bytes`."""
    write_bytes(path, text.encode())


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes a file whole or not at all: a file that was there stays until the new one is complete.

    Raises InvalidInput where the path cannot be written.
    """
    target = Path(path)
    try:
        _replace(target, content)
    except OSError as error:
        raise InvalidInput(
            Message("cannot write {path}: {why}.", path=str(path), why=error.strerror or str(error)),
            way_out(error),
        ) from error


def way_out(error: OSError) -> Message:
    """What to do about a file that cannot be written."""
    if error.errno in NO_ROOM:
        return Message("Make room there, or write to another place.")
    return Message("Name a file in a folder that exists and that you may write to.")


def _replace(target: Path, content: bytes) -> None:
    """Into a file beside the target, which then takes its place; devices and pipes (/dev/stdout) are written to."""
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    target = target.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    """The rights of the file that is replaced, else what the person's umask leaves of rw-rw-rw-."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
