"""Uploads as files: in a folder of ours, under a name that can do no harm, read as data and never run."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

MOST_FILES, MOST_FIELDS = 64, 1000
ENDINGS = {".csv", ".json", ".toml", ".gz", ".parquet"}
"""Others are read as text."""
LONGEST_NAME = 60
PIECE_BYTES = 2**20


class Upload(Protocol):
    """A file in a form."""

    @property
    def filename(self) -> str | None: ...
    async def read(self, size: int = -1) -> bytes: ...


async def saved(given: Upload, folder: str, number: int) -> str:
    """The path of the upload, once it is written: each in a folder of its own, so that equal names do not meet."""
    place = Path(folder, str(number))
    place.mkdir()
    path = place / tame(given.filename or "")
    with path.open("wb") as file:
        while part := await given.read(PIECE_BYTES):
            file.write(part)
    return str(path)


def tame(name: str) -> str:
    """Of a name: its last part, in letters, digits, blanks and - _ ., with an ending that is known.

    >>> tame("../../etc/passwd"), tame("Läufe 1.CSV"), tame("..")
    ('passwd.txt', 'Läufe 1.csv', 'upload.txt')
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    stem, _, ending = last.rpartition(".") if "." in last else (last, "", "")
    kept = "".join(sign for sign in stem if sign.isalnum() or sign in " -_.").strip(" .")[:LONGEST_NAME]
    tidy = f".{ending.lower()}"
    return f"{kept or 'upload'}{tidy if tidy in ENDINGS else '.txt'}"
