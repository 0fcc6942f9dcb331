"""Parsed catalogues on disk: read again in a fifth of the time, because the columns lie there as they are in memory.

One `.npz` an entry (numpy arrays in a zip, no pickle), named by what it was made from and followed by its own SHA-256.
An entry that fails this check is put aside and made anew. A cache that cannot be read or written is no error.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from gpuwise.catalogue import DATES, NUMBERS, TEXT, Catalogue, Coded
from gpuwise.errors import Message

SCHEMA = 4
"""Of the entries; raise it whenever the meaning of a column or the way a file is read changes; another set of
columns names another entry in any case."""
KEPT_ENTRIES = 24
"""The newest entries that stay; older ones go when another is written."""
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A catalogue, and what its reader should know: how files were read, which columns were not, what failed.

    lines: int32 (n,), the line of the file where each offer stands, where it comes from one.
    """

    catalogue: Catalogue
    notes: tuple[Message, ...] = ()
    lines: NDArray[np.int32] | None = None


def folder() -> Path:
    """Where entries are kept: GPUWISE_CACHE, else the platform's cache folder. It may not exist yet."""
    return Path(os.environ.get("GPUWISE_CACHE") or user_cache_path("gpuwise"))


def key(*parts: str) -> str:
    """Names an entry after all that its meaning depends on: the digest of what was read, the versions of the rest."""
    return hashlib.sha256("\0".join((str(SCHEMA), *TEXT, *NUMBERS, *DATES, *parts)).encode()).hexdigest()


def cached(entry: str, make: Callable[[], Loaded]) -> Loaded:
    """The entry, made and kept if it is not there. A damaged one is put aside and said so in the notes."""
    path = folder() / "catalogues" / f"{entry}.npz"
    found, aside = load(path)
    if found is not None:
        return found
    made = make()
    if save(path, made):
        prune(path.parent)
    return replace(made, notes=made.notes + aside)


def load(path: Path) -> tuple[Loaded | None, tuple[Message, ...]]:
    """The entry at `path`, None if there is none; a damaged file is renamed to *.damaged and a note says so."""
    body, notes = load_bytes(path)
    if body is None:
        return None, notes
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        return _unpack({name: arrays[name] for name in arrays.files}), ()


def save(path: Path, loaded: Loaded) -> bool:
    """Write the entry; False if that cannot be done."""
    body = io.BytesIO()
    np.savez(body, **_pack(loaded))
    return save_bytes(path, body.getbuffer())


def load_bytes(path: Path) -> tuple[bytes | None, tuple[Message, ...]]:
    """What `save_bytes` wrote, checked; as `load`."""
    try:
        content = path.read_bytes()
    except OSError:
        return None, ()
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    return (None, (_put_aside(path),)) if hashlib.sha256(body).digest() != digest else (body, ())


def save_bytes(path: Path, body: bytes | memoryview) -> bool:
    """Write the bytes and their SHA-256 in one step: a reader sees the old file or the whole new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(body)
                stream.write(hashlib.sha256(body).digest())
            os.replace(draft, path)
        except OSError:
            os.unlink(draft)
            raise
    except OSError:
        return False
    return True


def _put_aside(path: Path) -> Message:
    try:
        os.replace(path, path.with_suffix(".damaged"))
    except OSError:
        return Message("the cached copy {file} is damaged and was not used", file=path.name)
    return Message("the cached copy {file} is damaged: it was put aside and made anew", file=path.name)


def prune(entries: Path) -> None:
    """Leave the newest entries of a folder."""
    try:
        oldest = sorted(entries.glob("*"), key=lambda p: p.stat().st_mtime)[:-KEPT_ENTRIES]
        for path in oldest:
            path.unlink(missing_ok=True)
    except OSError:
        return


# ---- columns to arrays and back: a column that holds one value only is stored once ----


def _pack(loaded: Loaded) -> dict[str, Any]:
    catalogue = loaded.catalogue
    coded = {c: getattr(catalogue, c) for c in (*TEXT, "ids") if getattr(catalogue, c) is not None}
    head = {
        "name": catalogue.name,
        "version": catalogue.version,
        "rows": len(catalogue),
        "values": {c: column.values for c, column in coded.items()},
        "rejects": [_plain(m) for m in catalogue.rejects],
        "notes": [_plain(m) for m in loaded.notes],
    }
    arrays = {c: _narrow(column.codes, len(column.values)) for c, column in coded.items()}
    arrays |= {c: getattr(catalogue, c) for c in (*NUMBERS, *DATES)}
    arrays |= {} if loaded.lines is None else {"lines": loaded.lines}
    arrays = {c: _once(a) for c, a in arrays.items()}
    return arrays | {"head": np.frombuffer(json.dumps(head, ensure_ascii=False, default=str).encode(), np.uint8)}


def _unpack(arrays: dict[str, NDArray[Any]]) -> Loaded:
    head = json.loads(arrays.pop("head").tobytes())
    rows, values = head["rows"], head["values"]
    columns: dict[str, Any] = {c: np.broadcast_to(a, (rows,)) for c, a in arrays.items() if c not in values}
    for c, texts in values.items():
        columns[c] = Coded(np.broadcast_to(arrays[c].astype(np.int32), (rows,)), tuple(texts))
    lines = columns.pop("lines", None)
    catalogue = Catalogue(
        name=head["name"],
        version=head["version"],
        rejects=tuple(_message(m) for m in head["rejects"]),
        **columns,
    )
    return Loaded(catalogue=catalogue, notes=tuple(_message(m) for m in head["notes"]), lines=lines)


def _once(array: NDArray[Any]) -> NDArray[Any]:
    first = array[:1]
    return first if np.array_equal(array, np.broadcast_to(first, array.shape), equal_nan=True) else array


def _narrow(codes: NDArray[np.int32], values: int) -> NDArray[Any]:
    return codes.astype(np.int8 if values < 128 else np.int16 if values < 32_768 else np.int32)


def _plain(message: Message) -> dict[str, Any]:
    values = {k: _plain(v) if isinstance(v, Message) else v for k, v in message.values.items()}
    return {"template": message.template, "values": values}


def _message(plain: dict[str, Any]) -> Message:
    values = {k: _message(v) if isinstance(v, dict) else v for k, v in plain["values"].items()}
    return Message(plain["template"], **values)
