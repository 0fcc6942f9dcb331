"""What is hooked once which module has been imported, in this process and in those that it forks."""

from __future__ import annotations

import atexit
import multiprocessing.util
import os
import sys
from collections.abc import Callable
from types import ModuleType

from gpuwise.measure.attach.border import Border
from gpuwise.measure.attach.fetching import Fetching, affinity
from gpuwise.measure.attach.imports import AfterImport
from gpuwise.measure.attach.recorder import Recorder
from gpuwise.meter import Writer


class Process:
    """What this process writes to. A fork gets its own: the lines of its parent are not its."""

    def __init__(self) -> None:
        self.border = Border(self.note)
        self.fetching = Fetching(self.event)
        self._writer = Writer.from_environment()
        self.recorder: Recorder | None = None
        self._renew: Callable[[Recorder], None] = lambda recorder: None

    @property
    def writer(self) -> Writer:
        if self._writer is None or self._writer.pid != os.getpid():
            self._writer = Writer.from_environment()
        if self._writer is None:
            raise LookupError("GPUWISE_MARKS is gone from the environment")
        return self._writer

    def event(self, name: str, /, **fields: object) -> None:
        self.writer.event(name, **fields)

    def note(self, name: str, error: Exception) -> None:
        self.event("hook", name=name, failure=repr(error))

    def forked(self) -> None:
        """In the child of a fork, before any of its own code."""
        self.fetching.forget()
        if self.recorder is not None:
            self._record()

    def close(self) -> None:
        self.fetching.tell()
        if self.recorder is not None:
            self.recorder.close()
        if self._writer is not None:
            self._writer.close()

    # ---- what happens after which import ----

    def torch(self, module: ModuleType) -> None:
        from gpuwise.measure.attach.loop import Loop

        loop = Loop(self.border, self.fetching)
        self._renew = loop.record
        self._record()
        loop.install()

    def _record(self) -> None:
        self.recorder = self.writer.hooks = Recorder(self.writer)
        self._renew(self.recorder)


def install() -> None:
    process = Process()
    safe, fetching = process.border, process.fetching
    process.event("affinity", cpus=affinity(), when="start")
    AfterImport(
        {
            "torch": safe("torch", process.torch),
            "PIL.Image": safe("PIL.Image", fetching.pillow),
            "PIL.ImageFile": safe("PIL.ImageFile", fetching.pillow_file),
            "torchvision.io.image": safe("torchvision.io", fetching.torchvision_io),
            "torchvision.transforms.transforms": safe("transforms", fetching.transforms),
            "torchvision.transforms.v2._container": safe("transforms.v2", fetching.transforms_v2),
            "cv2": safe("cv2", fetching.opencv),
            "simplejpeg": safe("simplejpeg", fetching.simplejpeg),
            "gpuwise": bind_meter,
        }
    ).install()
    atexit.register(safe("close", process.close))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=safe("fork", process.forked))
    multiprocessing.util.register_after_fork(process, at_end)


def at_end(process: Process) -> None:
    """Processes of multiprocessing run no atexit functions, and forget older finalizers when they begin."""
    multiprocessing.util.Finalize(None, process.border("close", process.close), exitpriority=0)


def bind_meter(module: ModuleType) -> None:
    """`import gpuwise.meter` binds the name only where it loads the module, which has happened before."""
    module.meter = sys.modules["gpuwise.meter"]  # type: ignore[attr-defined]
