"""How fast the data's storage reads, past the page cache: in order, and single blocks at random places."""

from __future__ import annotations

import mmap
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from gpuwise.estimate import Interval
from gpuwise.measure.probes import RANGE, Found, Skipped, Task

MIB = 2**20
FILE_MIB = 256
LEAST_MIB = 16
BLOCK_BYTES = 64 * 1024
WINDOWS = 5
"""Parts of the measuring time; their slowest and fastest are the range."""
WRITE_S = 4.0


@contextmanager
def sample_file(folder: Path) -> Iterator[tuple[Path, int]]:
    """A file of data that do not compress, flushed to the device; removed afterwards."""
    try:
        handle, name = tempfile.mkstemp(prefix=".gpuwise-", dir=folder)
    except OSError as error:
        raise Skipped(f"cannot write into the folder: {error.strerror}") from error
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            size = _filled(file.fileno(), folder)
        yield path, size
    finally:
        path.unlink(missing_ok=True)


def _filled(file: int, folder: Path) -> int:
    """Bytes written: as many as fit into a quarter of the free space and into the time."""
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize if hasattr(os, "statvfs") else 4 * FILE_MIB * MIB
    wanted = min(FILE_MIB, free // 4 // MIB)
    if wanted < LEAST_MIB:
        raise Skipped(f"only {free // MIB} MiB are free in the folder")
    begun, written = time.perf_counter(), 0
    while written < wanted and (written < LEAST_MIB or time.perf_counter() - begun < WRITE_S):
        os.write(file, os.urandom(MIB))
        written += 1
    os.fsync(file)
    return written * MIB


@contextmanager
def past_the_cache(path: Path) -> Iterator[tuple[int, str]]:
    """The open file and how its cached pages are avoided: O_DIRECT where the file system has it."""
    direct = getattr(os, "O_DIRECT", 0)
    try:
        file, how = os.open(path, os.O_RDONLY | direct), "O_DIRECT" if direct else "page cache not avoided"
    except OSError:
        file, how = os.open(path, os.O_RDONLY), "page cache not avoided"
    if how != "O_DIRECT" and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        how = "page cache dropped by fadvise"
    try:
        yield file, how
    finally:
        os.close(file)


def in_order(task: Task) -> Found:
    """Blocks of 1 MiB one after another, by one reader."""
    with sample_file(task.folder) as (path, size), past_the_cache(path) as (file, how):
        places = [i * MIB for i in range(size // MIB)]
        value = _windows(lambda: _read_all(file, places, MIB, task.cap_s / WINDOWS), task.cap_s)
    return Found(unit="MB/s", value=value, conditions={"mib": size // MIB, "how": how, "range": RANGE})


def at_random(readers: int, task: Task) -> Found:
    """Blocks of 64 KiB at random places, by one reader or several at once."""
    with sample_file(task.folder) as (path, size), past_the_cache(path) as (file, how):
        places = [i * BLOCK_BYTES for i in range(size // BLOCK_BYTES)]
        random.Random(0).shuffle(places)
        parts = [places[i::readers] for i in range(readers)]
        with ThreadPoolExecutor(readers) as pool:
            value = _windows(lambda: _together(pool, file, parts, task.cap_s / WINDOWS), task.cap_s)
    return Found(unit="MB/s", value=value, conditions={"readers": readers, "how": how, "range": RANGE})


def _together(pool: ThreadPoolExecutor, file: int, parts: list[list[int]], cap_s: float) -> float:
    """Bytes a second of several readers, each on its own places."""
    before = time.perf_counter()
    total = sum(pool.map(lambda part: _bytes_read(file, part, BLOCK_BYTES, cap_s), parts))
    return total / (time.perf_counter() - before)


def _read_all(file: int, places: list[int], block: int, cap_s: float) -> float:
    before = time.perf_counter()
    return _bytes_read(file, places, block, cap_s) / (time.perf_counter() - before)


def _bytes_read(file: int, places: list[int], block: int, cap_s: float) -> int:
    """Bytes read until the time or the places are over; into memory aligned to a page, as O_DIRECT wants it."""
    until, total = time.perf_counter() + cap_s, 0
    with mmap.mmap(-1, block) as buffer:
        for place in places:
            if hasattr(os, "preadv"):
                total += os.preadv(file, [buffer], place)
            else:
                os.lseek(file, place, os.SEEK_SET)
                total += len(os.read(file, block))
            if time.perf_counter() > until:
                break
    return total


def _windows(bytes_per_s: Callable[[], float], cap_s: float) -> Interval:
    """MB/s of several windows: their median, slowest and fastest. The first is not counted."""
    try:
        bytes_per_s()
        seen = sorted(bytes_per_s() * 1e-6 for _ in range(WINDOWS))
    except OSError as error:
        raise Skipped(f"cannot read: {error.strerror}") from error
    return Interval(value=seen[-1], low=seen[0], high=seen[-1])
