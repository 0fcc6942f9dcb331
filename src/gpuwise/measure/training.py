"""Reference training: epochs of steps, a validation after each, checkpoints, and the rules that end it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from gpuwise.errors import MeasurementFailed, Message
from gpuwise.measure import checkpoint
from gpuwise.measure.engine import Engine
from gpuwise.measure.feed import Feed
from gpuwise.measure.job import Job
from gpuwise.measure.plan import Plan
from gpuwise.measure.record import Ending
from gpuwise.measure.timer import Events, Pulse

TOLD_EVERY_S = 5.0
AGREED_EVERY, AGREED_S = 16, 2.0
"""Processes that train together ask each other at least so often whether one of them wants to end: after so many
steps, or after the steps that take so long."""
WRITING_FRACTION = 0.05
"""Share of the time that writing a checkpoint after each epoch may take; short epochs of a large model do without."""
LOCAL: tuple[Ending, ...] = ("minutes", "interrupted", "loss not finite")
"""Endings that one process may see alone."""

Tell = Callable[[Message], None]


class Agreement:
    """After which steps processes that train together ask each other: all after the same, since each of them goes by
    the slowest of all."""

    def __init__(self, highest: Callable[[list[float]], list[float]]) -> None:
        """highest: of each figure, the largest that any process has."""
        self._highest = highest
        self._every, self._steps = 1, 0
        self._asked: float | None = None

    def ending(self, ending: Ending | None, now: float) -> Ending | None:
        """What all end by after this step, if they do. ending: what this process would end by; now: s."""
        self._steps += 1
        if self._steps < self._every:
            return None
        own_s = 0.0 if self._asked is None else (now - self._asked) / self._steps
        code, step_s = self._highest([0.0 if ending is None else 1.0 + LOCAL.index(ending), own_s])
        self._every = max(1, min(AGREED_EVERY, int(AGREED_S / step_s))) if step_s > 0 else 1
        self._asked, self._steps = now, 0
        return LOCAL[int(code) - 1] if code else None


@dataclass(slots=True)
class Progress:
    """Where a training stands. epoch: trained now, from 0; batch, samples, train_s, loss_total, loss_count: done of it.
    best: highest accuracy so far (a share), -1 before the first; stale: epochs since then. elapsed_s: of all sessions.
    """

    epoch: int = 0
    batch: int = 0
    samples: int = 0
    train_s: float = 0.0
    loss_total: float = 0.0
    loss_count: int = 0
    best: float = -1.0
    stale: int = 0
    elapsed_s: float = 0.0


class Training:
    """One training of `job`. events: gets phases, epochs, loader times and memory. identity: what a checkpoint must
    share with it. interrupted: asked after every step."""

    def __init__(
        self,
        job: Job,
        plan: Plan,
        engine: Engine,
        feed: Feed,
        held_out: Feed | None,
        *,
        events: Events,
        tell: Tell,
        identity: dict[str, Any],
        interrupted: Callable[[], bool],
    ) -> None:
        self.job, self.plan, self.engine, self.feed, self.held_out = job, plan, engine, feed, held_out
        self.events, self.tell, self.identity, self._interrupted = events, tell, identity, interrupted
        self.progress = Progress()
        self.warning: str | None = None
        self.trained_s, self.trained_steps = 0.0, 0
        self._rank, self._world = _rank(), _world()
        self._peers: Any = distributed.new_group(backend="gloo") if self._world > 1 else None
        self._agreement = Agreement(self._highest)
        self.pulse = Pulse(events)
        self._began = self._saved = self._told = time.perf_counter()
        self._written_s = 0.0

    # ---- the run ----

    def run(self) -> Ending:
        """Trains until a rule ends it, and says which. A checkpoint is written then too, unless the loss is not
        finite: then the last and the best one stay."""
        self.engine.model.train()
        self._began = time.perf_counter() - self.progress.elapsed_s
        while True:
            ending = self._epoch()
            if ending == "loss not finite":
                return ending
            if ending is not None or time.perf_counter() - self._saved >= self._written_s / WRITING_FRACTION:
                self.save(checkpoint.LAST)
            if ending is not None:
                return ending

    def _epoch(self) -> Ending | None:
        progress, losses = self.progress, self.engine.timer.losses
        losses.total, losses.count = progress.loss_total, progress.loss_count
        ending = self._steps()
        self.engine.timer.finish()
        ending = ending if losses.finite else "loss not finite"
        self._tell_totals()
        if ending == "loss not finite" or (ending is not None and progress.batch < len(self.feed)):
            self._keep_losses()
            return ending
        return self._end_of_epoch(losses.mean) or ending

    def _steps(self) -> Ending | None:
        progress, ending = self.progress, None
        self.engine.timer.anchor()
        start, before = time.perf_counter(), progress.train_s
        try:
            for count in self.engine.run(self.feed.epoch(progress.epoch, progress.batch)):
                progress.batch += 1
                progress.samples += count
                self.trained_steps += 1
                now = time.perf_counter()
                progress.train_s = before + now - start
                ending = self._after_step(now)
                if ending is not None:
                    break
        except MeasurementFailed:
            if not self._interrupted():  # the signal may have reached the loader's workers too
                raise
            ending = "interrupted"
        self.trained_s += progress.train_s - before
        return ending

    def _after_step(self, now: float) -> Ending | None:
        if now - self._told > TOLD_EVERY_S:
            self._tell_totals()
        if self.job.checkpoint is not None and now - self._saved > self.job.checkpoint_every_s:
            self.engine.timer.finish()
            self._keep_losses()
            self.save(checkpoint.LAST)
        if self.job.steps is not None and self.engine.steps >= self.job.steps:
            return "steps"
        ending = self._local(now)
        return ending if self._world == 1 else self._agreement.ending(ending, now)

    def _local(self, now: float) -> Ending | None:
        if not self.engine.timer.losses.finite:
            return "loss not finite"
        if self._interrupted():
            return "interrupted"
        minutes = self.job.minutes
        return "minutes" if minutes is not None and now - self._began >= 60 * minutes else None

    def _highest(self, figures: list[float]) -> list[float]:
        told = torch.tensor(figures, dtype=torch.float64)
        distributed.all_reduce(told, distributed.ReduceOp.MAX, self._peers)
        return [float(figure) for figure in told]

    def _keep_losses(self) -> None:
        losses = self.engine.timer.losses
        self.progress.loss_total, self.progress.loss_count = losses.total, losses.count

    # ---- after an epoch ----

    def _end_of_epoch(self, loss: float) -> Ending | None:
        progress = self.progress
        right, count, seconds = self._validated()
        accuracy = right / count if count else None
        self.tell_epoch(loss, right, count, seconds)
        better = accuracy is not None and accuracy > progress.best
        progress.stale = 0 if better or accuracy is None else progress.stale + 1
        done = Progress(
            epoch=progress.epoch + 1, best=accuracy if better and accuracy is not None else progress.best,
            stale=progress.stale, elapsed_s=progress.elapsed_s,
        )  # fmt: skip
        self.progress = done
        self.engine.timer.losses.reset()
        if better:
            self.save(checkpoint.BEST)
        return self._by_rule(accuracy)

    def _by_rule(self, accuracy: float | None) -> Ending | None:
        wanted = self.job.target_fraction
        if wanted is not None and accuracy is not None and accuracy >= wanted:
            return "target"
        if self.plan.most_epochs is not None and self.progress.epoch >= self.plan.most_epochs:
            return "epochs"
        if self.plan.patience is not None and self.progress.stale >= self.plan.patience:
            return "patience"
        return None

    def _validated(self) -> tuple[int, int, float | None]:
        """Right, of how many, of all processes; and the seconds."""
        if self.held_out is None:
            return 0, 0, None
        start = time.perf_counter()
        if self._world > 1:
            for buffer in self.engine.model.buffers():
                distributed.broadcast(buffer, 0)
        with self.phase("validation"):
            batches = ((b.images, b.labels) for b in self.held_out.epoch(0))
            counts = torch.tensor(self.engine.validate(batches, self.pulse.beat))
            if self._world > 1:
                distributed.all_reduce(counts, group=self._peers)
        return int(counts[0]), int(counts[1]), time.perf_counter() - start

    def tell_epoch(self, loss: float, right: int, count: int, seconds: float | None) -> None:
        if self._world > 1:
            mean = torch.tensor(loss, dtype=torch.float64)
            distributed.all_reduce(mean, group=self._peers)
            loss = float(mean) / self._world
        if self._rank:
            return
        progress = self.progress
        self.events.event(
            "epoch", number=progress.epoch + 1, loss=loss, samples=progress.samples * self._world,
            train_s=progress.train_s, validation_s=seconds, accuracy_fraction=right / count if count else None,
            correct=right if count else None, validated=count or None, flush=True,
        )  # fmt: skip
        held_out = Message("{right} of {count} held out right", right=right, count=count) if count else Message("")
        self.tell(
            Message("epoch {number}: loss {loss:.3f}, {rate:.1f} samples/s; {held_out}", number=progress.epoch + 1,
                    loss=loss, rate=progress.samples * self._world / max(progress.train_s, 1e-9), held_out=held_out)
        )  # fmt: skip

    def _tell_totals(self) -> None:
        """What loader and memory came to, so far."""
        self._told = time.perf_counter()
        for worker, total in self.feed.totals.items():
            fetch, read, decode, augment = (round(1e9 * s) for s in total.seconds)
            self.events.event(
                "loader", worker=worker, samples=total.samples, fetch_ns=fetch, read_ns=read, decode_ns=decode,
                augment_ns=augment, affinity=total.affinity,
            )  # fmt: skip
        if self.feed.skipped:
            self.events.event("skipped", counts=dict(self.feed.skipped))
        tell_memory(self.events, self.engine.device)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.perf_counter_ns()
        yield
        self.events.event("phase", name=name, begin=begin, end=time.perf_counter_ns())

    # ---- checkpoints ----

    def save(self, name: str) -> None:
        """Writes a checkpoint where one is wanted. A full disk is told and training goes on."""
        if self.job.checkpoint is None or self._rank:
            return
        begin = time.perf_counter()
        self.progress.elapsed_s = begin - self._began
        with self.phase("checkpoint"):
            try:
                checkpoint.write(Path(self.job.checkpoint), name, self._state(name))
                self.warning = None
            except OSError as error:
                self._not_saved(error)
        self.engine.timer.anchor()
        if name == checkpoint.LAST:
            self._saved = time.perf_counter()
            self._written_s = self._saved - begin

    def _state(self, name: str) -> dict[str, Any]:
        """The best one is to be used, not to be gone on from: it holds the weights alone."""
        state = {"identity": self.identity, "progress": asdict(self.progress)}
        if name == checkpoint.BEST:
            return state | {"engine": {"model": self.engine.model.state_dict()}}
        return state | {"engine": self.engine.state(), "chance": checkpoint.chance()}

    def _not_saved(self, error: OSError) -> None:
        message = Message("the checkpoint could not be written: {reason}", reason=error.strerror or str(error))
        if self.warning is None:
            self.tell(message)
        self.warning = message.text()

    def resume(self) -> bool:
        """Goes on from the last checkpoint, if there is one."""
        state = checkpoint.read(Path(self.job.checkpoint) / checkpoint.LAST) if self.job.checkpoint else None
        if state is None:
            return False
        checkpoint.same_job(state["identity"], self.identity)
        self.engine.load(state["engine"])
        checkpoint.set_chance(state["chance"])
        self.progress = Progress(**state["progress"])
        self.events.event("resume", from_step=self.engine.steps, flush=True)
        self.tell(Message("resumed after step {step}", step=self.engine.steps))
        return True


# ---- memory ----


def tell_memory(events: Events, device: torch.device) -> None:
    """Peaks of the allocator of a CUDA or ROCm device."""
    if device.type == "cuda":
        events.event(
            "memory", index=device.index or 0, allocated=torch.cuda.max_memory_allocated(device),
            reserved=torch.cuda.max_memory_reserved(device),
            total=torch.cuda.get_device_properties(device).total_memory,
        )  # fmt: skip


def is_out_of_memory(error: BaseException) -> bool:
    """torch's own error, Python's, or that of torch's allocator for the CPU."""
    texts = ("can't allocate memory", "not enough memory", "out of memory")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(text in str(error).lower() for text in texts)
    )


def fitting_batch(attempt: Callable[[int], None], batch: int) -> int | None:
    """The largest of half, a quarter … of the batch whose step really runs; None where not even two samples do."""
    while batch >= 4:
        batch //= 2
        gc.collect()
        torch.cuda.empty_cache()
        try:
            attempt(batch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        else:
            return batch
    return None


def _rank() -> int:
    return distributed.get_rank() if _joined() else 0


def _world() -> int:
    return distributed.get_world_size() if _joined() else 1


def _joined() -> bool:
    return distributed.is_available() and distributed.is_initialized()
