"""How long a loader takes for a sample, and for reading, decoding and augmenting it, in the process that does it.

Every fetch of a batch is timed as a whole; the first SPLIT_FIRST and then one in SPLIT_EVERY in its parts. To tell
reading from decoding, the file is read once by ourselves before it is decoded, so that decoding finds it in the page
cache; the stages are exclusive.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from time import perf_counter_ns
from types import ModuleType
from typing import Any

SPLIT_FIRST, SPLIT_EVERY = 4, 16
MOST_BYTES = 64 * 2**20
CHUNK_BYTES = 2**20
FIRST_NS, LAST_NS = 500_000_000, 5_000_000_000
"""Times are told after so long, then after twice as long, at last every five seconds."""
Function = Callable[..., Any]


class Fetching:
    """The sums of one process since it began. who: the number of the worker that this is, -1 for the main process."""

    def __init__(self, event: Callable[..., None]) -> None:
        self._event = event
        self.who: Callable[[], int] = lambda: -1
        self._buffer = bytearray(CHUNK_BYTES)
        self.forget()

    def forget(self) -> None:
        """Begins anew, in the child of a fork."""
        self.worker = -1
        self.samples = self.fetch_ns = self.split_samples = self.split_fetch_ns = 0
        self.files = self.file_bytes = self.pictures = self.px = 0
        self.stage_ns: dict[str, int] = {}
        self.splitting = False
        self._thread, self._nested, self._fetches = 0, 0, 0
        self._told_ns, self._rhythm_ns = perf_counter_ns(), FIRST_NS

    # ---- fetches ----

    def begin(self) -> int:
        if self._fetches == 0:
            self.worker = self.who()
        self.splitting = self._fetches < SPLIT_FIRST or self._fetches % SPLIT_EVERY == 0
        self._fetches += 1
        self._thread, self._nested = threading.get_ident(), 0
        return perf_counter_ns()

    def end(self, begin: int, samples: int) -> None:
        now = perf_counter_ns()
        self.samples += samples
        self.fetch_ns += now - begin
        if self.splitting:
            self.split_samples += samples
            self.split_fetch_ns += now - begin
        self.splitting = False
        if now - self._told_ns > self._rhythm_ns:
            self.tell()

    def tell(self) -> None:
        """The sums so far, as an event."""
        if self.samples == 0:
            return
        self._told_ns, self._rhythm_ns = perf_counter_ns(), min(2 * self._rhythm_ns, LAST_NS)
        stages = {f"{stage}_ns": self.stage_ns.get(stage, -1) for stage in ("read", "decode", "augment")}
        self._event(
            "loader", worker=self.worker, samples=self.samples, fetch_ns=self.fetch_ns, **stages,
            split_samples=self.split_samples, split_fetch_ns=self.split_fetch_ns, files=self.files,
            file_bytes=self.file_bytes, pictures=self.pictures, px=self.px, affinity=affinity(),
        )  # fmt: skip

    # ---- stages ----

    def timed(self, stage: str, function: Function, before: Function | None = None) -> Function:
        """The function with its own time added to a stage. before: called first with the same arguments."""

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            if not self.splitting or threading.get_ident() != self._thread:
                return function(*args, **kwargs)
            if before is not None:
                before(*args)
            outer, self._nested = self._nested, 0
            begin = perf_counter_ns()
            try:
                return function(*args, **kwargs)
            finally:
                took = perf_counter_ns() - begin
                self._add(stage, took - self._nested)
                self._nested = outer + took

        return inside

    def _add(self, stage: str, ns: int) -> None:
        self.stage_ns[stage] = self.stage_ns.get(stage, 0) + ns

    def warm(self, file: object, *_: object) -> None:
        """Reads a file by its path or its open file, without moving the position of either."""
        begin = perf_counter_ns()
        try:
            size = self._read(file)
        except (OSError, ValueError, AttributeError, TypeError):
            return  # no such file, or none at all (BytesIO): whoever opens it finds out
        self.files += 1
        self.file_bytes += size
        took = perf_counter_ns() - begin
        self._add("read", took)
        self._nested += took

    def _read(self, file: Any) -> int:
        if not isinstance(file, str | bytes | os.PathLike):
            return self._drain(file.fileno())
        descriptor = os.open(file, os.O_RDONLY)
        try:
            return self._drain(descriptor)
        finally:
            os.close(descriptor)

    def _drain(self, descriptor: int) -> int:
        offset = 0
        while offset < MOST_BYTES:
            read = os.preadv(descriptor, [self._buffer], offset)
            offset += read
            if read < CHUNK_BYTES:
                break
        return offset

    # ---- libraries ----

    def pillow(self, module: ModuleType) -> None:
        opening = self.timed("decode", module.open, self.warm)

        @functools.wraps(module.open)
        def opened(*args: Any, **kwargs: Any) -> Any:
            picture = opening(*args, **kwargs)
            if self.splitting:
                self.pictures += 1
                self.px += picture.width * picture.height
            return picture

        module.open = opened  # type: ignore[attr-defined]

    def pillow_file(self, module: ModuleType) -> None:
        module.ImageFile.load = self.timed("decode", module.ImageFile.load)

    def torchvision_io(self, module: ModuleType) -> None:
        """Before the package torchvision.io takes these names over."""
        module.read_file = self.timed("read", module.read_file)  # type: ignore[attr-defined]
        for name in ("decode_jpeg", "decode_png", "decode_image"):
            setattr(module, name, self.timed("decode", getattr(module, name)))

    def transforms(self, module: ModuleType) -> None:
        module.Compose.__call__ = self.timed("augment", module.Compose.__call__)

    def transforms_v2(self, module: ModuleType) -> None:
        module.Compose.forward = self.timed("augment", module.Compose.forward)

    def opencv(self, module: ModuleType) -> None:
        module.imread = self.timed("decode", module.imread, self.warm)  # type: ignore[attr-defined]
        module.imdecode = self.timed("decode", module.imdecode)  # type: ignore[attr-defined]

    def simplejpeg(self, module: ModuleType) -> None:
        module.decode_jpeg = self.timed("decode", module.decode_jpeg)  # type: ignore[attr-defined]

    def fetchers(self, *classes: type) -> None:
        """Those of torch.utils.data, which take a sample's or a batch's indices."""
        for cls in classes:
            cls.fetch = self._fetch(cls.fetch)  # type: ignore[attr-defined]

    def _fetch(self, original: Function) -> Function:
        @functools.wraps(original)
        def fetch(fetcher: Any, index: Any) -> Any:
            begin = self.begin()
            try:
                batch = original(fetcher, index)
            except BaseException:
                self.splitting = False
                raise
            self.end(begin, len(index) if isinstance(index, list | tuple) else 1)
            return batch

        return fetch


def affinity() -> list[int]:
    """The CPUs this process may run on; empty where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
