"""`python -m gpuwise.measure.train SPEC.json`: the child process that does reference training, alone or under torchrun.

It reads a Job, trains, and writes what happened as marks (`gpuwise.meter`) where its parent asked for them. Progress
goes to stderr. SIGTERM and SIGINT end it after the step at hand, with a checkpoint. Exit codes: 0 ended by a rule of
the job, 2 bad input or data, 4 training failed, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
import torch
import torchvision
from torch import distributed, nn

from gpuwise import meter
from gpuwise.errors import DataError, GpuwiseError, InvalidInput, MeasurementFailed, Message
from gpuwise.estimate import Interval
from gpuwise.measure import count, data
from gpuwise.measure import devices as seen_devices
from gpuwise.measure.engine import Engine, Silent, clock_of, forget_peaks, own_cost_s, prepare, take
from gpuwise.measure.feed import Feed, feed_ceiling, loader
from gpuwise.measure.host import cpus
from gpuwise.measure.job import Job, from_json
from gpuwise.measure.plan import Plan, factor, image_size, plan
from gpuwise.measure.precision import Numerics, choose
from gpuwise.measure.record import Device, Ending
from gpuwise.measure.timer import Events, Pulse
from gpuwise.measure.training import Tell, Training, fitting_batch, is_out_of_memory, tell_memory

LIMIT_S = 4.0
HELD_BATCHES = 4
ECHO_S = 2.0
"""A signal that comes so soon after another is the same one: torchrun passes on what its processes got already."""
JOIN_S = 600.0
FAILED: tuple[Ending, ...] = ("loss not finite", "out of memory", "failed", "disk full")


class NoEvents(Silent):
    """Events that nobody reads."""

    def event(self, name: str, /, **fields: object) -> None:
        """Forgets the event."""

    def start(self, begin_ns: int | None = None, **versions: str) -> None:
        """Nobody asked for marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How it ended. failure: in one line, or what went wrong on the way."""

    ending: Ending
    failure: str | None = None

    @property
    def code(self) -> int:
        """Exit code."""
        if self.ending == "interrupted":
            return 130
        return 2 if self.ending == "data" else 4 if self.ending in FAILED else 0


class Interrupt:
    """Signals: while training the step at hand is finished; before it, and at the second signal, the program stops."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.asked, self.gentle = False, False
        self._clock, self._asked_at = clock, 0.0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _signalled(self, _: int, __: FrameType | None) -> None:
        again = self.asked and self._clock() - self._asked_at > ECHO_S
        if not self.asked:
            self.asked, self._asked_at = True, self._clock()
        if again or not self.gentle:
            raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Exit code. An error that nobody foresaw is not told as the end: the parent reads it from its traceback."""
    interrupt = Interrupt()
    begin_ns = time.perf_counter_ns()
    lines = meter.Writer.from_environment() or NoEvents()
    lines.start(begin_ns, torch=torch.__version__, torchvision=torchvision.__version__)
    code = None
    try:
        job = from_json(Path(arguments[0]).read_text("utf-8"))
        end = reference_training(job, lines, interrupt)
    except KeyboardInterrupt:
        end = End(ending="interrupted")
    except GpuwiseError as error:
        tell(Message("{message} {hint}", message=error.message, hint=error.hint))
        end = End(ending="data" if isinstance(error, DataError) else "failed", failure=error.message.text())
        code = error.exit_code
    lines.event("end", ending=end.ending, failure=end.failure, flush=True)
    return end.code if code is None else code


def tell(message: Message) -> None:
    """One line of progress."""
    if meter.rank(os.environ) == 0:
        print(message, file=sys.stderr, flush=True)


# ---- one training ----


def reference_training(job: Job, lines: Any, interrupt: Interrupt) -> End:
    """Does the job. Raises what input and data are refused for."""
    with joined(job) as (index, world):
        return _trained(job, lines, interrupt, index, world)


def _trained(job: Job, lines: Any, interrupt: Interrupt, index: int, world: int) -> End:
    """Its own frame: what holds on to the processes' group is gone when the group is left."""
    own, device = settled_device(job, index)
    take(device)
    lines.event("devices", list=[asdict(own)])
    lines.event("timing", clock=clock_of(device))
    numerics = choose(own, job.precision, job.memory_format)
    pulse = Pulse(lines)
    with phase(lines, "data"):
        source = dataset(job, image_size(job, accelerated=device.type != "cpu"), living(pulse))
    settled = plan(
        job, accelerated=device.type != "cpu", samples=len(source.train), cpus=cpus().allowed, world=world,
        cpus_a_core=(psutil.cpu_count() or 1) / (psutil.cpu_count(logical=False) or psutil.cpu_count() or 1),
    )  # fmt: skip
    prepare(device, numerics, settled.threads)
    work = Work(job, settled, numerics, device, source, lines, interrupt, world, pulse)
    try:
        return work.run()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    finally:
        work.close()
    return work.out_of_memory()  # here, since the error held on to what filled the memory


class Work:
    """What one training is made of, once everything is settled."""

    def __init__(
        self,
        job: Job,
        settled: Plan,
        numerics: Numerics,
        device: torch.device,
        source: data.Dataset,
        lines: Any,
        interrupt: Interrupt,
        world: int,
        pulse: Pulse,
    ) -> None:
        self.job, self.plan, self.numerics, self.device, self.source = job, settled, numerics, device, source
        self.lines, self.interrupt, self.world, self.pulse = lines, interrupt, world, pulse
        tally = data.Tally(len(source.train) + len(source.validation))
        self.feed = self._feed(source.train, tally, training=True)
        self.held_out = self._feed(source.validation, tally, training=False) if source.validation else None
        if not len(self.feed) or self.feed.samples < 2:
            raise DataError(
                Message("{count} samples are too few to train on", count=len(source.train)),
                Message("Give more images."),
            )

    def _feed(self, samples: tuple[data.Sample, ...], tally: data.Tally, *, training: bool) -> Feed:
        rank = distributed.get_rank() if self.world > 1 else 0
        return loader(
            samples, feed=self.job.feed, image_size=self.plan.image_size, batch=self.plan.batch,
            workers=self.plan.workers if training else min(self.plan.workers, 2), training=training,
            seed=self.job.seed, pinned=self.device.type == "cuda", rank=rank, world=self.world, tally=tally,
        )  # fmt: skip

    def run(self) -> End:
        self._tell_setup()
        if self.job.limits:
            self._measure_limits()
            forget_peaks(self.device)
        with phase(self.lines, "building"):
            training = self._training()
        if self._over(training):
            return End(ending="steps" if self.job.steps else "epochs", failure=None)
        self.interrupt.gentle = True
        ending = training.run()
        self._tell_overhead(training)
        tell_memory(self.lines, self.device)
        if ending == "loss not finite":
            return End(ending=ending, failure=f"the loss is not finite after step {training.engine.steps}")
        return End(ending=ending, failure=training.warning)

    def _training(self) -> Training:
        training = Training(
            self.job, self.plan, self.engine(lines=self.lines), self.feed, self.held_out, events=self.lines, tell=tell,
            identity=self._identity(), interrupted=lambda: self.interrupt.asked,
        )  # fmt: skip
        if self.job.resume and not training.resume():
            tell(Message("There is no checkpoint yet: training begins anew."))
        return training

    def _over(self, training: Training) -> bool:
        """A training that was resumed after its end has nothing left to do."""
        most = self.plan.most_epochs
        steps_done = self.job.steps is not None and training.engine.steps >= self.job.steps
        return steps_done or (most is not None and training.progress.epoch >= most)

    def engine(self, lines: Any = None, *, scheduled: bool = True) -> Engine:
        """A fresh one: the same weights for a seed, whatever ran before. scheduled: with a changing learning rate."""
        random.seed(self.job.seed)
        torch.manual_seed(self.job.seed)
        return Engine(
            network(self.job.network, len(self.source.classes)),
            device=self.device, numerics=self.numerics, optimizer=self.plan.optimizer,
            learning_rate=self.plan.learning_rate, weight_decay=self.plan.weight_decay,
            label_smoothing=self.plan.label_smoothing, compiled=self.job.compile, lines=lines,
            schedule=self._schedule() if scheduled else None,
        )  # fmt: skip

    def _schedule(self) -> Callable[[int], float]:
        """By the share of the planned steps; where only minutes are given, of these. Processes that train together
        need one rate, and their clocks differ."""
        minutes, planned = self.job.minutes, self.job.epochs or self.job.steps
        if minutes is not None and planned is None and self.world == 1:
            begin = time.perf_counter()
            return lambda _: factor((time.perf_counter() - begin) / (60 * minutes))
        total = self.plan.epochs * len(self.feed)
        return lambda step: factor(step / total)

    def close(self) -> None:
        self.feed.close()
        if self.held_out is not None:
            self.held_out.close()

    def out_of_memory(self) -> End:
        """Says which batch would have fitted: one whose step was tried."""
        batch = self.plan.batch
        fits = fitting_batch(self._attempt, batch) if self.world == 1 else None
        advice = (
            Message("batch {fits} fits (tried)", fits=fits) if fits else Message("no smaller batch was found to fit")
        )
        message = Message("out of memory at batch {batch}; {advice}", batch=batch, advice=advice)
        tell(message)
        return End(ending="out of memory", failure=message.text())

    def _attempt(self, batch: int) -> None:
        engine, side = self.engine(), self.plan.image_size
        images = torch.zeros((batch, side, side, 3), dtype=torch.uint8)
        for _ in range(2):
            engine.step(images, torch.zeros(batch, dtype=torch.int64))
        engine.timer.finish()

    # ---- what is told ----

    def _tell_setup(self) -> None:
        job, settled, source = self.job, self.plan, self.source
        original = data.originals(source.train)
        self.lines.event(
            "setup", workload=job.model, model=f"torchvision.models:{job.network}", data=source.described.text(),
            samples=self.feed.samples * self.world, validation_samples=len(source.validation),
            classes=len(source.classes), image_size=settled.image_size,
            original_bytes=original.size_bytes if original else None,
            original_px=original.area_px if original else None,
            batch_per_accelerator=settled.batch, accumulation=1, precision=self.numerics.precision,
            memory_format=self.numerics.memory_format, compiled=job.compile, optimizer=settled.optimizer,
            feed=job.feed, cached=source.cached, workers=settled.workers, prefetch=2 if settled.workers else None,
            pinned=self.device.type == "cuda", seed=job.seed, processes=self.world, threads=settled.threads, flush=True,
        )  # fmt: skip
        if source.skipped:
            self.lines.event("skipped", counts=dict(source.skipped))
        for note in source.notes:
            tell(note)
        if job.counts:
            self._tell_work()

    def _tell_work(self) -> None:
        with phase(self.lines, "counting"), torch.device("meta"):
            model = network(self.job.network, len(self.source.classes))
            images = torch.empty(2, 3, self.plan.image_size, self.plan.image_size)
            work = count.work(model, images, samples_per_step=self.plan.batch * self.world)
        self.lines.event("work", **asdict(work))

    def _measure_limits(self) -> None:
        """What feed and device can do alone, before anything is trained: the weights are thrown away."""
        tell(Message("measuring what the feed and the device can do alone"))
        with phase(self.lines, "limits"):
            fed = feed_ceiling(self.feed, seconds=LIMIT_S, warm_s=1.0, clock=self._living_clock)
            self._tell_limit("feed", _summed(fed, self.world))
            batches = [(b.images.clone(), b.labels) for b in islice(self.feed.epoch(0), HELD_BATCHES)]
            whole = [b for b in batches if len(b[1]) == len(batches[0][1])]
            engine = self.engine(scheduled=False)
            self._tell_limit("device", engine.device_only(whole, seconds=LIMIT_S, beat=self.pulse.beat))
        self.feed.totals.clear()

    def _living_clock(self) -> float:
        """It is read once a batch."""
        self.pulse.beat()
        return time.perf_counter()

    def _tell_limit(self, which: str, found: Interval) -> None:
        if meter.rank(os.environ) == 0:
            self.lines.event("limit", which=which, value=found.value, low=found.low, high=found.high)

    def _tell_overhead(self, training: Training) -> None:
        if training.trained_s:
            fraction = own_cost_s(self.device) * training.trained_steps / training.trained_s
            how = "stamps and line of a step timed alone, as a share of the mean step"
            self.lines.event("overhead", fraction=fraction, method=how)

    def _identity(self) -> dict[str, Any]:
        """What has to be equal for a checkpoint to be gone on from."""
        return {
            "model": self.job.network, "classes": len(self.source.classes), "samples": len(self.source.train),
            "image_size": self.plan.image_size, "batch": self.plan.batch, "seed": self.job.seed,
            "optimizer": self.plan.optimizer, "processes": self.world,
        }  # fmt: skip


# ---- parts ----


def network(name: str, classes: int) -> nn.Module:
    """A classifier of torchvision with random weights. The last normalisation of each residual block begins at zero:
    a deep network then learns from few images (Goyal et al. 2017, arXiv 1706.02677, section 5.1)."""
    extra: dict[str, Any] = {}
    if name.startswith(("resnet", "resnext", "wide_resnet")):
        extra["zero_init_residual"] = True
    if name in ("googlenet", "inception_v3"):
        extra |= {"aux_logits": False, "init_weights": True}
    model: nn.Module = torchvision.models.get_model(name, weights=None, num_classes=classes, **extra)
    return model


def living(pulse: Pulse) -> Tell:
    """`tell` for work that says now and then how far it has come."""

    def telling(message: Message) -> None:
        pulse.beat()
        tell(message)

    return telling


def dataset(job: Job, side: int, tell: Tell = tell) -> data.Dataset:
    """The images of the job, re-encoded where it wants that."""
    found = data.find(
        Path(job.data) if job.data else None, seed=job.seed, painters=job.painters, label=job.label, tell=tell
    )
    if not job.cache:
        return found
    from gpuwise.measure import cache

    return cache.build(found, side, tell=tell).dataset


def settled_device(
    job: Job, index: int, look: Callable[[], tuple[Device, ...]] = seen_devices.devices
) -> tuple[Device, torch.device]:
    """The device of this process, and torch's name for it. index: of the process on its machine; look: gives the
    machine's devices. Raises InvalidInput for a device that is not there."""
    if job.device == "cpu":
        return seen_devices.cpu(), torch.device("cpu")
    found = look()
    kind = {"rocm": "cuda"}.get(found[0].backend, found[0].backend)
    if kind == "xla":
        raise MeasurementFailed(
            Message("reference training does not run on TPUs"),
            Message("Measure your own program: gpuwise measure -- python train.py."),
        )
    wanted = job.device or kind
    if wanted.partition(":")[0] != kind:
        raise InvalidInput(
            Message("device is {wanted}: this machine has {kind}", wanted=wanted, kind=kind), Message("Leave it open.")
        )
    if kind in ("cpu", "mps"):
        return found[0], torch.device(kind)
    number = int(wanted.partition(":")[2] or index)
    if not 0 <= number < len(found):
        raise InvalidInput(
            Message("device is {wanted}: there are {count}", wanted=f"{kind}:{number}", count=len(found)),
            Message("Devices are counted from 0."),
        )
    return found[number], torch.device(kind, number)


@contextmanager
def joined(job: Job) -> Iterator[tuple[int, int]]:
    """Joins the processes that torchrun started; gives this one's number on its machine, and how many there are."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield 0, 1
        return
    index = int(os.environ.get("LOCAL_RANK", "0"))
    cuda = job.device != "cpu" and torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(index)
    distributed.init_process_group("nccl" if cuda else "gloo", timeout=timedelta(seconds=JOIN_S))
    try:
        yield index, world
    finally:
        gc.collect()  # a model still in a cycle would hold the group past its end: gloo's threads then abort the exit
        distributed.destroy_process_group()


@contextmanager
def phase(events: Events, name: str) -> Iterator[None]:
    """A part of the run that is no training."""
    begin = time.perf_counter_ns()
    try:
        yield
    finally:
        events.event("phase", name=name, begin=begin, end=time.perf_counter_ns())


def _summed(found: Interval, world: int) -> Interval:
    """Of all processes, each of which fed itself."""
    if world == 1:
        return found
    values = torch.tensor([found.value, found.low, found.high], dtype=torch.float64)
    gathered: list[Any] = [None] * world
    distributed.all_gather_object(gathered, values.tolist())
    value, low, high = (sum(column) for column in zip(*gathered, strict=True))
    return Interval(value=value, low=low, high=high)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
