"""Batches for training, two ways: exact (full decoding and v2 transforms) and fast (scaled decoding, bilinear resize).

Both draw the same crops and flips for a seed, an epoch and an index, whatever the number of workers, and give uint8
images that are normalised on the device: a quarter of the bytes to collate, to share and to copy. A damaged file is
replaced by the next good one in training, left out in validation, and counted in both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, NamedTuple, Protocol

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Sampler, get_worker_info
from torch.utils.data import Dataset as TorchDataset

from gpuwise.errors import DataError, MeasurementFailed, Message
from gpuwise.estimate import Interval
from gpuwise.measure.data import Sample, Tally, shared_bytes
from gpuwise.measure.pixels import (
    VALIDATION_SCALE,
    Box,
    Choose,
    Damaged,
    Decoder,
    Pixels,
    Reader,
    central_box,
    random_box,
    resized,
)
from gpuwise.measure.record import Feed as Kind

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's channels, 0 to 1: what the images are normalised with on the device."""
REPLACEMENTS = 16
"""Next samples tried in the place of a damaged one."""
BLOCKS = 8
T80 = 1.415
"""Student's t, 7 degrees of freedom, two-sided 80 %."""

Key = tuple[int, int]
"""(epoch, index)."""


class Batch(NamedTuple):
    """images: uint8 (n, size, size, 3), RGB; permute(0, 3, 1, 2) on the device makes them NCHW in channels_last.

    labels: int64 (n,). times: float64 (4,), seconds that the worker spent on the batch: fetch (all of it), read,
    decode, augment. bad: path -> what is wrong with it. worker: its number, -1 in the main process. affinity: CPUs
    that it may use, 0 where the system does not tell.
    """

    images: Tensor
    labels: Tensor
    times: Tensor
    bad: dict[str, str]
    worker: int
    affinity: int


# ---- one image ----


class Way(Protocol):
    """How a file becomes pixels: decoded with the part to take, then placed into the batch."""

    def decode(self, data: Pixels, choose: Choose) -> tuple[Any, Box]: ...
    def place(self, image: Any, box: Box, out: Pixels, flip: bool) -> None: ...


class Fast:
    def __init__(self, size: int) -> None:
        self._size, self._decoder = size, Decoder(scaled=True)

    def decode(self, data: Pixels, choose: Choose) -> tuple[Pixels, Box]:
        return self._decoder.decode(data, self._size, choose)

    def place(self, image: Pixels, box: Box, out: Pixels, flip: bool) -> None:
        resized(image, box, self._size, out, flip=flip)


class Exact:
    """Decoded in full and resized with antialiasing, as torchvision's v2 transforms do it."""

    def __init__(self, size: int, training: bool) -> None:
        self._size, self._training, self._decoder = size, training, Decoder(scaled=False)

    def decode(self, data: Pixels, choose: Choose) -> tuple[Tensor, Box]:
        image, box = self._decoder.decode(data, self._size, choose)
        return torch.from_numpy(image).permute(2, 0, 1), box

    def place(self, image: Tensor, box: Box, out: Pixels, flip: bool) -> None:
        from torchvision.transforms.v2 import functional as v2

        if self._training:
            image = v2.resized_crop(image, *box, [self._size, self._size], antialias=True)
        else:
            image = v2.center_crop(v2.resize(image, [round(self._size * VALIDATION_SCALE)]), [self._size, self._size])
        image = v2.horizontal_flip(image) if flip else image
        torch.from_numpy(out).copy_(image.permute(1, 2, 0))


# ---- batches, in a worker ----


class Pictures(TorchDataset[Batch]):
    """Makes whole batches of keys (epoch, index), so that nothing is collated twice."""

    def __init__(self, samples: Sequence[Sample], way: Way, *, size: int, seed: int, training: bool) -> None:
        self._samples, self._way, self._size = samples, way, size
        self._seed, self._training, self._reader = seed, training, Reader()

    def __getitem__(self, key: Key) -> Batch:
        return self.__getitems__([key])

    def __getitems__(self, keys: Sequence[Key]) -> Batch:
        start = time.perf_counter_ns()
        images = torch.empty((len(keys), self._size, self._size, 3), dtype=torch.uint8)
        places = images.numpy()
        labels, bad, times = list[int](), dict[str, str](), [0, 0, 0]
        for key in keys:
            label = self._fill(key, places[len(labels)], times, bad)
            labels += () if label is None else (label,)
        worker = get_worker_info()
        spent = [time.perf_counter_ns() - start, *times]
        return Batch(
            images=images[: len(labels)],
            labels=torch.tensor(labels, dtype=torch.int64),
            times=torch.tensor(spent, dtype=torch.float64) / 1e9,
            bad=bad,
            worker=-1 if worker is None else worker.id,
            affinity=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        )

    def _fill(self, key: Key, out: Pixels, times: list[int], bad: dict[str, str]) -> int | None:
        """Label of the sample put into `out`: the one asked for or, in training, the next good one."""
        epoch, first = key
        for step in range(REPLACEMENTS if self._training else 1):
            index = (first + step) % len(self._samples)
            sample = self._samples[index]
            try:
                self._one(sample.path, (self._seed << 64) + (epoch << 32) + index, out, times)
            except Damaged as error:
                bad[sample.path] = str(error)
            else:
                return sample.label
        return None

    def _one(self, path: str, seed: int, out: Pixels, times: list[int]) -> None:
        draw = Random(seed)
        choose = partial(random_box, draw) if self._training else partial(central_box, VALIDATION_SCALE)
        flip = self._training and draw.random() < 0.5
        t0 = time.perf_counter_ns()
        data = self._reader.read(path)
        t1 = time.perf_counter_ns()
        image, box = self._way.decode(data, choose)
        t2 = time.perf_counter_ns()
        self._way.place(image, box, out, flip)
        times[0] += t1 - t0
        times[1] += t2 - t1
        times[2] += time.perf_counter_ns() - t2


class Order(Sampler[list[Key]]):
    """Which samples make which batch: shuffled by seed and epoch in training, dealt out to the ranks in turn.

    In training every rank gets the same number of batches, and a last, smaller batch is left out unless it is alone.
    """

    def __init__(self, count: int, batch: int, *, seed: int, training: bool, rank: int, world: int) -> None:
        self._count, self._batch, self._seed, self._training = count, batch, seed, training
        self._rank, self._world = rank, world
        self.epoch, self.start = 0, 0

    @property
    def samples(self) -> int:
        """Of this rank in an epoch."""
        if not self._training:
            return len(range(self._rank, self._count, self._world))
        share = self._count // self._world
        return share - share % self._batch if share >= self._batch else share

    @property
    def batches(self) -> int:
        """Of this rank in a whole epoch."""
        return -(-self.samples // self._batch)

    def __len__(self) -> int:
        return max(self.batches - self.start, 0)

    def __iter__(self) -> Iterator[list[Key]]:
        order = np.arange(self._count)
        if self._training:
            order = np.random.default_rng([self._seed, self.epoch]).permutation(self._count)
        mine = order[self._rank :: self._world][: self.samples].tolist()
        for at in range(self.start * self._batch, len(mine), self._batch):
            yield [(self.epoch, index) for index in mine[at : at + self._batch]]


# ---- the feed, in the main process ----


@dataclass(slots=True)
class Totals:
    """What one worker did so far: samples, and seconds of fetch (all of it), read, decode, augment."""

    samples: int = 0
    seconds: list[float] = field(default_factory=lambda: [0.0] * 4)
    affinity: int = 0


class Feed:
    """A DataLoader with its order and its counts. loader: the DataLoader; tally: damaged files seen so far;
    totals: worker -> what it did; shared_bytes: what the loader may fill of the shared memory."""

    def __init__(self, loader: DataLoader[Batch], order: Order, tally: Tally, shared: int) -> None:
        self.loader, self.tally, self.shared_bytes = loader, tally, shared
        self.totals: dict[int, Totals] = {}
        self._order = order

    def __len__(self) -> int:
        """Batches of this rank in a whole epoch."""
        return self._order.batches

    @property
    def samples(self) -> int:
        """Of this rank in an epoch."""
        return self._order.samples

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from `start` on, the same for one seed whatever ran before.

        Raises DataError beyond the limit of damaged files, MeasurementFailed where a worker died."""
        self._order.epoch, self._order.start = number, start
        try:
            for batch in self.loader:
                self._count(batch)
                if len(batch.labels):
                    yield batch
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise _died(error, self.shared_bytes) from error

    def _count(self, batch: Batch) -> None:
        total = self.totals.setdefault(batch.worker, Totals())
        total.samples += len(batch.labels)
        total.seconds = [a + b for a, b in zip(total.seconds, batch.times.tolist(), strict=True)]
        total.affinity = batch.affinity
        self.tally.add(len(batch.labels), batch.bad)

    @property
    def skipped(self) -> Mapping[str, int]:
        """Reason -> files left out, for the record."""
        return {"damaged": len(self.tally.bad)} if self.tally.bad else {}

    def close(self) -> None:
        """Ends the workers."""
        iterator = getattr(self.loader, "_iterator", None)
        if iterator is not None:
            iterator._shutdown_workers()
            self.loader._iterator = None


def _died(error: RuntimeError, shared: int) -> MeasurementFailed:
    """A worker that was killed, said plainly."""
    return MeasurementFailed(
        Message("A loader worker died: {reason}", reason=str(error).splitlines()[0]),
        Message(
            "Check memory and shared memory: the loader needs {need:.2f} GiB of it (docker run --shm-size), or use "
            "fewer workers.",
            need=shared / 2**30,
        ),
    )


def loader(
    samples: Sequence[Sample],
    *,
    feed: Kind,
    image_size: int,
    batch: int,
    workers: int,
    training: bool,
    seed: int = 0,
    prefetch: int = 2,
    pinned: bool = False,
    rank: int = 0,
    world: int = 1,
    tally: Tally | None = None,
) -> Feed:
    """Batches of `batch` images of image_size² px a rank. workers: processes, 0 for the main one."""
    cv2.setNumThreads(1)
    way: Way = Fast(image_size) if feed == "fast" else Exact(image_size, training)
    order = Order(len(samples), batch, seed=seed, training=training, rank=rank, world=world)
    made: DataLoader[Batch] = DataLoader(
        Pictures(samples, way, size=image_size, seed=seed, training=training),
        batch_sampler=order,
        num_workers=workers,
        collate_fn=_as_it_is,
        pin_memory=pinned,
        prefetch_factor=prefetch if workers else None,
        persistent_workers=workers > 0,
        worker_init_fn=_begin,
        generator=torch.Generator(),
    )
    shared = shared_bytes(workers=workers, prefetch=prefetch, batch=batch, image_size=image_size)
    return Feed(made, order, tally or Tally(len(samples)), shared)


def _as_it_is(batch: Any) -> Any:
    return batch


def _begin(_: int) -> None:
    """One thread a worker: the workers share the CPUs among them."""
    cv2.setNumThreads(1)


def feed_ceiling(
    feed: Feed,
    *,
    seconds: float = 5.0,
    warm_s: float = 1.0,
    epoch: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> Interval:
    """Samples/s that the loader gives when nothing else runs, with its 80 % interval over BLOCKS spans of time."""
    batches = _endless(feed, epoch)
    _run(batches, warm_s, clock)
    rates = [_run(batches, seconds / BLOCKS, clock) for _ in range(BLOCKS)]
    batches.close()
    mean = float(np.mean(rates))
    half = T80 * float(np.std(rates, ddof=1)) / BLOCKS**0.5
    return Interval(value=mean, low=max(mean - half, 0.0), high=mean + half)


def _endless(feed: Feed, epoch: int) -> Generator[int, None, None]:
    """Samples of each batch, epoch after epoch. Raises DataError where an epoch gives none."""
    while True:
        sizes = (len(batch.labels) for batch in feed.epoch(epoch))
        first = next(sizes, None)
        if first is None:
            raise DataError(Message("There are no samples to feed."), Message("Check the data."))
        yield first
        yield from sizes
        epoch += 1


def _run(batches: Iterator[int], seconds: float, clock: Callable[[], float]) -> float:
    """Samples/s over at least so long and one batch."""
    start = clock()
    count = next(batches)
    while (passed := clock() - start) < seconds:
        count += next(batches)
    return count / passed
