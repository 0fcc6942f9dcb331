"""What would feed the devices faster here, each piece with the figure that was measured."""

from __future__ import annotations

import math
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from gpuwise.errors import Message
from gpuwise.measure.cache import build, payback_epochs
from gpuwise.measure.data import Dataset, Sample
from gpuwise.measure.record import Feed, Record
from gpuwise.measure.trial import Way, rate

ALLOCATOR: Mapping[str, str] = {"MALLOC_MMAP_THRESHOLD_": "268435456", "MALLOC_TRIM_THRESHOLD_": "536870912"}
"""glibc keeps large blocks (256 MiB, 512 MiB) instead of giving each decoded image back to the system, which then
clears its pages anew: see mallopt(3), M_MMAP_THRESHOLD."""
WORTH = 1.05
"""Least factor that is advised; what is nearer to 1 is noise."""
MS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorGain:
    """Images/s of one CPU without and with ALLOCATOR, medians of `pairs` fresh processes each, taken in turn."""

    without_per_s: float
    with_per_s: float
    pairs: int

    @property
    def factor(self) -> float:
        return self.with_per_s / self.without_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """CPU seconds of one sample: read from its original, from its re-encoded entry, and to make that entry once."""

    original_s: float
    cached_s: float
    convert_s: float
    short_px: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Loader processes now, CPUs that the job may use, and what loader and device can do alone, samples/s."""

    workers: int
    cpus: float
    feed_per_s: float
    device_per_s: float


TRIED_FILES = 24
TRIED_S = 1.0


def tried(files: Sequence[str], image_size: int, feed: Feed, record: Record) -> tuple[Message, ...]:
    """What helps, tried on some of the files that a run read: the number of workers by what was measured alone, copies
    re-encoded once, the allocator. Takes about a minute. MeasurementFailed where a trial gives no figure."""
    some = list(files[:: max(1, len(files) // TRIED_FILES)])[:TRIED_FILES]
    pair = allocator_gain(some, image_size, way=feed, pairs=2, seconds=TRIED_S)
    return advice(workers=_of_run(record), costs=_copies(some, image_size, feed), allocator=pair)


def _of_run(record: Record) -> Workers | None:
    feed, device, workers = record.limits.feed_per_s, record.limits.device_per_s, record.setup.workers
    if feed is None or device is None or workers is None:
        return None
    return Workers(workers=workers, cpus=record.host.cpus.allowed, feed_per_s=feed.value, device_per_s=device.value)


def _copies(files: Sequence[str], image_size: int, feed: Feed) -> Costs | None:
    """The same files re-encoded into a folder that goes away again; None where none of them can be."""
    with TemporaryDirectory() as folder:
        samples = tuple(Sample(file, 0) for file in files)
        whole = Dataset(classes=("all",), train=samples, validation=(), layout="folders", described=Message("trial"))
        made = build(whole, image_size, folder=Path(folder))
        if made.convert_s is None:
            return None
        entries = [sample.path for sample in made.dataset.train]
        original, cached = (rate(feed, some, image_size, seconds=TRIED_S) for some in (files, entries))
    return Costs(
        original_s=1 / original,
        cached_s=1 / cached,
        convert_s=made.convert_s,
        short_px=made.short_px,
    )


def allocator_gain(
    files: Sequence[str], image_size: int, *, way: Way = "imagefolder", pairs: int = 3, seconds: float = 1.0
) -> AllocatorGain | None:
    """The allocator tried both ways; None where the C library is not glibc. Takes about 2 × pairs × (seconds + 3) s."""
    if platform.libc_ver()[0] != "glibc":
        return None
    rates = [
        [rate(way, files, image_size, seconds=seconds, environ=environ) for environ in ({}, ALLOCATOR)]
        for _ in range(pairs)
    ]
    without, with_it = (statistics.median(side) for side in zip(*rates, strict=True))
    return AllocatorGain(without_per_s=without, with_per_s=with_it, pairs=pairs)


def advice(
    *, workers: Workers | None = None, costs: Costs | None = None, allocator: AllocatorGain | None = None
) -> tuple[Message, ...]:
    """What is worth doing, most general first; nothing where nothing is."""
    found = [*_workers(workers), *_encoding(costs), *_allocator(allocator)]
    return tuple(found)


def _workers(now: Workers | None) -> Iterator[Message]:
    if now is None or now.feed_per_s >= now.device_per_s:
        return
    each = now.feed_per_s / max(now.workers, 1)
    need, spare = math.ceil(now.device_per_s / each), int(now.cpus)
    if now.workers < spare:
        yield Message(
            "{now} workers feed {feed:.0f} samples/s, the devices take {device:.0f}: use {best} (of {cpus:g} CPUs)",
            now=now.workers, feed=now.feed_per_s, device=now.device_per_s, best=min(need, spare), cpus=now.cpus,
        )  # fmt: skip
    if need > spare:
        yield Message(
            "at {each:.0f} samples/s a worker the devices need {need} CPUs, {cpus:g} may be used",
            each=each, need=need, cpus=now.cpus,
        )  # fmt: skip


def _encoding(costs: Costs | None) -> Iterator[Message]:
    if costs is None or costs.original_s < WORTH * costs.cached_s:
        return
    yield Message(
        "re-encode once to {short} px: {convert:.1f} ms an image once, {after:.2f} instead of {before:.2f} ms in every "
        "epoch ({factor:.1f}×); it has paid for itself after {epochs:.1f} epochs",
        short=costs.short_px,
        convert=MS * costs.convert_s,
        after=MS * costs.cached_s,
        before=MS * costs.original_s,
        factor=costs.original_s / costs.cached_s,
        epochs=payback_epochs(costs.convert_s, costs.original_s, costs.cached_s),
    )


def _allocator(gain: AllocatorGain | None) -> Iterator[Message]:
    if gain is None or gain.factor < WORTH:
        return
    yield Message(
        "set {variables}: {after:.0f} instead of {before:.0f} images/s a CPU ({factor:.2f}×, {pairs} pairs of runs)",
        variables=" ".join(f"{name}={value}" for name, value in ALLOCATOR.items()),
        after=gain.with_per_s,
        before=gain.without_per_s,
        factor=gain.factor,
        pairs=gain.pairs,
    )
