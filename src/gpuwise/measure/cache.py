"""Originals re-encoded once, at the size that training needs: the biggest help where the files are large.

Each entry is a JPEG of short side 1.14 × image size, named by the original's path, size and time of change, so a file
that changed is made anew. Entries appear whole or not at all: a build that was cut off goes on, and two processes may
build at once. Crops of an entry are coarser than crops of the original would be, and the record says so (`cached`).
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import simplejpeg

from gpuwise.errors import Message
from gpuwise.measure.data import Dataset, Sample, Tally, Tell, silent
from gpuwise.measure.making import each, make_room, write
from gpuwise.measure.pixels import VALIDATION_SCALE, Damaged, Decoder, Pixels, Reader, all_of_it
from gpuwise.store.cache import folder as cache_folder

VERSION = 1
"""Of the entries; raise it whenever the same original would give another one."""
QUALITY = 90
BYTES_PER_PX = 0.6
"""Of an entry, at most on average."""
_STALE_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """The data set with entries in the place of its originals.

    made, kept: entries made now, and those that were there. convert_s: CPU seconds to make one, None if none was made.
    before_bytes, after_bytes: mean of an original and of an entry, of those made now.
    """

    dataset: Dataset
    folder: Path
    short_px: int
    made: int
    kept: int
    convert_s: float | None = None
    before_bytes: float | None = None
    after_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class _Made:
    """One original: cpu_s and bytes, or what is wrong with it."""

    path: str
    cpu_s: float = 0.0
    before: int = 0
    after: int = 0
    damage: str | None = None


def short_side_px(image_size: int) -> int:
    """Short side of an entry: 256 for crops of 224."""
    return round(image_size * VALIDATION_SCALE)


def build(
    dataset: Dataset,
    image_size: int,
    *,
    folder: Path | None = None,
    quality: int = QUALITY,
    tally: Tally | None = None,
    tell: Tell = silent,
) -> Cached:
    """Makes the entries that are not there yet, in all CPUs that may be used.

    Damaged originals are left out and counted. Raises DataError beyond their limit and for a full disk: what was
    finished stays, nothing half-written does.
    """
    short = short_side_px(image_size)
    root = (folder or cache_folder() / "re-encoded") / f"{VERSION}-{short}-{quality}"
    samples = [*dataset.train, *dataset.validation]
    tally = tally or Tally(len(samples))
    entries, bad = _entries({s.path for s in samples}, root)
    tally.add(len(entries), bad)
    left = [(path, entry) for path, entry in sorted(entries.items()) if not entry.exists()]
    made = _make(left, root, short, quality, tally, tell)
    damaged = {m.path for m in made if m.damage is not None}
    places = {path: str(entry) for path, entry in entries.items() if path not in damaged}
    good = [m for m in made if m.damage is None]
    return Cached(
        dataset=_moved(dataset, places),
        folder=root,
        short_px=short,
        made=len(good),
        kept=len(places) - len(good),
        convert_s=float(np.mean([m.cpu_s for m in good])) if good else None,
        before_bytes=float(np.mean([m.before for m in good])) if good else None,
        after_bytes=float(np.mean([m.after for m in good])) if good else None,
    )


def _entries(paths: set[str], root: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Original -> where its entry is or will be, and the originals that are not there."""
    entries, bad = dict[str, Path](), dict[str, str]()
    for path in paths:
        try:
            about = os.stat(path)
        except OSError as error:
            bad[path] = error.strerror or "cannot be read"
            continue
        name = f"{os.path.abspath(path)}\0{about.st_size}\0{about.st_mtime_ns}"
        key = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:32]
        entries[path] = root / key[:2] / f"{key}.jpg"
    return entries, bad


def _make(
    left: Sequence[tuple[str, Path]], root: Path, short: int, quality: int, tally: Tally, tell: Tell
) -> list[_Made]:
    if not left:
        return []
    _sweep(root)
    make_room(root, len(left) * 1.3 * short**2 * BYTES_PER_PX)
    cv2.setNumThreads(1)
    local, made = threading.local(), list[_Made]()

    def work(job: tuple[str, Path]) -> _Made:
        if not hasattr(local, "tools"):
            local.tools = Reader(), Decoder(scaled=True)
        return _one(local.tools, job, short, quality)

    def keep(one: _Made) -> None:
        made.append(one)
        if one.damage is not None:
            tally.seen -= 1
            tally.add(0, {one.path: one.damage})

    def told(done: int) -> Message:
        return Message("{done} of {count} images re-encoded to {short} px", done=done, count=len(left), short=short)

    each(work, left, keep=keep, told=told, tell=tell)
    return made


def _one(tools: tuple[Reader, Decoder], job: tuple[str, Path], short: int, quality: int) -> _Made:
    begun, (reader, decoder), (path, entry) = time.thread_time(), tools, job
    try:
        data = reader.read(path)
        image, _ = decoder.decode(data, short, all_of_it)
    except Damaged as error:
        return _Made(path, damage=str(error))
    body = simplejpeg.encode_jpeg(shrunk(image, short), quality=quality, colorsubsampling="420")
    write(entry, body)
    return _Made(path, time.thread_time() - begun, data.size, len(body))


def shrunk(image: Pixels, short: int) -> Pixels:
    """The image with this short side; one that is not larger stays as it is."""
    height, width = image.shape[:2]
    scale = short / min(height, width)
    if scale >= 1:
        return np.ascontiguousarray(image)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)


def _sweep(root: Path) -> None:
    """Takes away drafts that a process left which was killed."""
    for draft in root.glob("*/.*.part"):
        try:
            if time.time() - draft.stat().st_mtime > _STALE_S:
                draft.unlink()
        except OSError:
            continue


def _moved(dataset: Dataset, places: dict[str, str]) -> Dataset:
    def moved(samples: Sequence[Sample]) -> Iterator[Sample]:
        return (Sample(places[s.path], s.label) for s in samples if s.path in places)

    train, validation = tuple(moved(dataset.train)), tuple(moved(dataset.validation))
    gone = len(dataset.train) + len(dataset.validation) - len(train) - len(validation)
    skipped = {**dataset.skipped, "damaged": gone} if gone else dataset.skipped
    return replace(dataset, train=train, validation=validation, skipped=skipped, cached=True)


def payback_epochs(convert_s: float, original_s: float, cached_s: float) -> float | None:
    """Epochs after which making an entry has paid for itself; None where reading it is no faster.

    original_s, cached_s: CPU seconds a sample and epoch, with the original and with its entry."""
    saved = original_s - cached_s
    return convert_s / saved if saved > 0 else None
