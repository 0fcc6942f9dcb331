"""Files made by many threads, each whole or not at all, so that a job that was cut off goes on where it stopped.

Threads are enough: OpenCV, numpy, Pillow and libjpeg-turbo let go of the interpreter while they work.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

from gpuwise.errors import DataError, MeasurementFailed, Message
from gpuwise.measure.data import Tell

T = TypeVar("T")
R = TypeVar("R")
FULL = (errno.ENOSPC, errno.EDQUOT)
TOLD_EVERY_S = 2.0
_AHEAD = 4


def threads() -> int:
    """As many as the process may use CPUs."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(
    work: Callable[[T], R],
    items: Sequence[T],
    *,
    keep: Callable[[R], None],
    told: Callable[[int], Message],
    tell: Tell,
    limit_s: float | None = None,
) -> None:
    """Does the work of every item in threads; `keep` takes each result, `told` makes the line for so many done.

    The first error ends it after the items at hand. Raises MeasurementFailed when `limit_s` is over."""
    start = shown = time.monotonic()
    done, left = 0, iter(items)
    with ThreadPoolExecutor(threads()) as pool:
        running = _begin(pool, work, left, threads() * _AHEAD)
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                keep(future.result())
            done += len(finished)
            now = time.monotonic()
            if limit_s is not None and now - start > limit_s:
                raise _too_long(told(done), limit_s)
            if now - shown > TOLD_EVERY_S:
                shown = now
                tell(told(done))
            running |= _begin(pool, work, left, len(finished))


def _begin(pool: ThreadPoolExecutor, work: Callable[[T], R], left: Iterable[T], most: int) -> set[Future[R]]:
    return {pool.submit(work, item) for _, item in zip(range(most), left, strict=False)}


def _too_long(done: Message, limit_s: float) -> MeasurementFailed:
    return MeasurementFailed(
        Message("After {limit:.0f} s: {done}.", limit=limit_s, done=done),
        Message("Run it again to go on from there, or ask for less."),
    )


def write(path: Path, body: bytes) -> None:
    """The file appears whole or not at all. Raises DataError for a full disk and a folder that cannot be written."""
    draft = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            stream.write(body)
        os.replace(draft, path)
    except OSError as error:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)
        raise full(path.parent) if error.errno in FULL else _unwritable(path.parent, error) from None


def _unwritable(folder: Path, error: OSError) -> DataError:
    return DataError(
        Message("{folder} cannot be written: {reason}.", folder=folder, reason=error.strerror or "no reason given"),
        Message("Check the permissions, or set GPUWISE_CACHE to another folder."),
        file=str(folder),
    )


def full(folder: Path) -> DataError:
    return DataError(
        Message("The disk is full: {folder} takes no more. What was finished stays.", folder=folder),
        Message("Free some space and run it again, or set GPUWISE_CACHE to a folder on another disk."),
        file=str(folder),
    )


def make_room(folder: Path, need_bytes: float) -> None:
    """Raises DataError where the disk has less free than will be written."""
    standing = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(standing).free
    if free < need_bytes:
        raise DataError(
            Message("{folder} has {free:.2f} GiB free, {need:.2f} GiB are needed.", folder=folder,
                    free=free / 2**30, need=need_bytes / 2**30),
            Message("Free some space, or set GPUWISE_CACHE to a folder on another disk."),
            file=str(folder),
        )  # fmt: skip
