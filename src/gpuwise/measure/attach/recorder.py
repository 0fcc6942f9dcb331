"""What hooks see, put together as optimizer steps and written as marks. Knows no framework and is driven by calls.

A step ends with an optimizer's step: when the loader gives the next batch, or when the same optimizer begins again
(so the two of a GAN make one step). Batches that only met forward passes without gradients are validation: a phase.
Without any optimizer after NO_OPTIMIZER backward passes, each backward pass is a step. A Meter in the program decides
over all of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from time import perf_counter_ns
from typing import Protocol

from gpuwise.measure.attach.clock import Clock, HostClock, Token
from gpuwise.measure.attach.trial import Trial
from gpuwise.meter import Writer

NO_OPTIMIZER = 8
COUNTED_STEP = 1
"""Which step has its operations counted: not the first, where libraries are still setting themselves up."""
REPORT_NS = 5_000_000_000
Size = tuple[int, int]
"""Samples and tokens of a batch; -1 where unknown."""


class Span:
    """One stretch of a stage, with those inside it; its own time is what they leave."""

    __slots__ = ("begin", "end", "inner", "stage")

    def __init__(self, stage: str, begin: Token) -> None:
        self.stage, self.begin, self.end = stage, begin, begin
        self.inner: list[Span] = []


class Part:
    """What was seen since the last batch, or in a step. waits: host ns, last moment before, first one after."""

    __slots__ = ("begin", "evaluated", "micro", "samples", "spans", "sync_ns", "tokens", "trained", "waits")

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.spans: list[Span] = []
        self.waits: list[list[Token]] = []
        self.micro = self.samples = self.tokens = self.sync_ns = 0
        self.trained = self.evaluated = False

    @property
    def empty(self) -> bool:
        return not self.waits and not self.spans

    def forget_moments(self) -> None:
        self.spans = []
        self.waits = [[host_ns, None, None] for host_ns, *_ in self.waits]

    def absorb(self, other: Part) -> None:
        if self.empty:
            self.begin = other.begin
        self.spans += other.spans
        self.waits += other.waits
        self.micro += other.micro
        self.samples += other.samples
        self.tokens += other.tokens
        self.sync_ns += other.sync_ns


class Closed:
    """A step that waits for its events. whole: its stages were watched from begin to end."""

    __slots__ = ("counted", "end", "own", "part", "watched", "whole")

    def __init__(self, part: Part, end: Token, own: dict[str, int], watched: bool, whole: bool, counted: bool) -> None:
        self.part, self.end, self.own = part, end, own
        self.watched, self.whole, self.counted = watched, whole, counted


class Counting(Protocol):
    """Counts the operations of one step; begin says whether it does."""

    def begin(self) -> bool: ...
    def end(self, samples: int) -> None: ...


class Recorder:
    """Every method is called from the thread that trains. starting: gives versions of software when the first step
    begins. report: called about every five seconds, and at the end."""

    def __init__(self, writer: Writer, *, now: Callable[[], int] = perf_counter_ns, trial: Trial | None = None) -> None:
        self.writer, self.now = writer, now
        self.clock: Clock = HostClock(now)
        self.trial = trial or Trial()
        self.counting: Counting | None = None
        self.starting: Callable[[], dict[str, str]] = dict
        self.report: Callable[[], None] = lambda: None
        self.on = True
        self.closed = self.spans = 0
        self._started = False
        self._whole, self._counted, self._late = True, False, False
        self._keys: tuple[Hashable, ...] = ()
        self.part, self.step_part = Part(now()), Part(now())
        self._ended: Token | None = None
        self._optimizers: dict[Hashable, None] = {}
        self._any_optimizer, self._backwards = False, 0
        self._sizes: deque[Size] = deque(maxlen=2)
        self._driven, self._batch, self._inside = False, False, False
        self._size: Size = (-1, -1)
        self._stack: list[Span] = []
        self._trained: set[int] = set()
        self._phase: int | None = None
        self._queue: deque[Closed] = deque()
        self._seen: set[str] = set()
        self._last: Token | None = None
        self._previous: tuple[Token, int] | None = None
        self._usual = (-1, -1, 1)
        self._releasable: dict[int, Token] = {}
        self._home: object = None
        self._reported_ns = now()

    # ---- batches ----

    def iterating(self, begin: int, end: int) -> None:
        """An iterator over a loader was made, which starts its workers: the first batch waited for that too."""
        self._settle(begin)
        self.part.waits.append([end - begin, self._last, None])

    def wait_begin(self) -> int:
        begin = self.now()
        if self.part.spans or not self.part.waits:
            self._settle(begin)
        return begin

    def wait_end(self, begin: int, size: Size | None) -> None:
        """size None: the loader had no more."""
        self.part.waits.append([self.now() - begin, self._last, None])
        self._driven = self._batch = True
        if size is not None:
            self._sizes.append(size)

    def _settle(self, now: int) -> None:
        """Files what was seen since the last batch: part of a step, or of a validation."""
        last, self.part = self.part, Part(now)
        if last.evaluated and not last.trained:
            self._phase = last.begin if self._phase is None else self._phase
            self._sizes.clear()
        elif self._phase is None or last.trained:
            self.step_part.absorb(last)
        if self._optimizers and not self.writer.claimed:
            self._close({})
        elif self._steps_by_backward() and self.step_part.micro:
            self._end_at(self.clock.stamp())
            self._close({})

    def _steps_by_backward(self) -> bool:
        return not self._any_optimizer and self._backwards >= NO_OPTIMIZER and not self.writer.claimed

    # ---- stages ----

    def push(self, stage: str) -> None:
        moment = self.clock.stamp()
        self.spans += 1
        if self.part.waits and self.part.waits[-1][2] is None and self._at_home(moment):
            self.part.waits[-1][2] = moment
        self._stack.append(Span(stage, moment))

    def pop(self, stage: str) -> Span | None:
        """None where the stage is not open."""
        if not self.inside(stage):
            return None
        while self._stack[-1].stage != stage:  # what an exception left open
            self._stack.pop()
        span = self._stack.pop()
        span.end = self.clock.stamp()
        (self._stack[-1].inner if self._stack else self.part.spans).extend(self._kept(span))
        return span

    def _kept(self, span: Span) -> list[Span]:
        """A span on another stream than steps end on works beside them and takes none of their time."""
        if not (self._at_home(span.begin) and self._at_home(span.end)):
            return span.inner
        self._last = span.end
        self._seen.add(span.stage)
        return [span]

    def _at_home(self, moment: Token) -> bool:
        line = self.clock.line(moment)
        if self._home is None:
            self._home = line
        return bool(line == self._home)

    def forward_begin(self, module: int, size: Size) -> None:
        """A module that has parameters begins, in training mode and with gradients. module: its identity."""
        self._close_inside()
        self._begin_training()
        self._trained.add(module)
        self._size = size
        self._count()
        self.push("forward")

    def look_begin(self, module: int, *, training: bool) -> None:
        """The same, without gradients or in evaluation mode: validation, or a teacher beside what is trained."""
        self.part.evaluated = True
        if not training and module in self._trained and not self.part.waits and not self.part.micro:
            self._begin_phase()
        self._report_in_time()
        self.push("forward")

    def _begin_training(self) -> None:
        self._start()
        if self._phase is not None:
            self.end_phase(self.part.begin if self.part.waits else self.now())
        self.part.trained = True

    def _begin_phase(self) -> None:
        """A module that has been training runs in evaluation mode, on data of no loader."""
        now = self.now()
        if self._phase is None and self._started:
            self._settle(now)
            self._phase = now

    def end_phase(self, end: int) -> None:
        if self._phase is not None and self._started:
            self.writer.event("phase", name="validation", begin=self._phase, end=end)
        self._phase = None
        if not self.part.waits:
            self.part = Part(end)

    def backward_begin(self) -> None:
        self._close_inside()
        if self._steps_by_backward() and not self._batch and self.part.micro:
            self._settle(self.now())
        self._begin_training()
        self._backwards += 1
        self.part.micro += 1
        samples, tokens = self._next_size()
        self.part.samples += max(0, samples)
        self.part.tokens += max(0, tokens)
        self.push("backward")

    def backward_end(self, computed: Token | None = None) -> None:
        """computed: when the last gradient was there; what follows is waiting for the other ranks."""
        span = self.pop("backward")
        if span is not None and computed is not None and self._at_home(computed):
            reduced = Span("all_reduce", computed)
            reduced.end = span.end
            span.inner.append(reduced)
            self._seen.add("all_reduce")

    def _next_size(self) -> Size:
        if self._sizes:
            return self._sizes.popleft()
        alone = self.part.samples + self.step_part.samples == 0
        return self._size if alone or not self._driven else (0, 0)

    def sync(self, ns: int) -> None:
        """The program waited for the device."""
        self.part.sync_ns += ns
        self._seen.add("sync")

    # ---- steps ----

    def optimizer_begin(self, key: Hashable) -> None:
        if key in self._optimizers and not self._stack and not self.writer.claimed:
            self._close({})
        self._start()
        if self.on:
            self.push("optimizer")

    def optimizer_end(self, key: Hashable) -> None:
        span = self.pop("optimizer") if self._stack and self._stack[-1].stage == "optimizer" else None
        self._end_at(self.clock.stamp() if span is None else span.end)
        if not self._optimizers:
            self._driven, self._batch = self._batch, False
        self._optimizers[key] = None
        self._any_optimizer = True
        self._inside = bool(self._stack)
        if not self._inside:
            self._stop_counting()
            self._next_part()

    def _close_inside(self) -> None:
        """Ends a step whose optimizers stepped inside its backward pass, where no batch of a loader ends it."""
        if self._inside and not self._stack and not self._batch:
            self._inside = False
            self._settle(self.now())

    def _next_part(self) -> None:
        last, self.part = self.part, Part(self.now())
        self.step_part.absorb(last)
        self.part.trained = self._driven  # a look at this batch again, without gradients, is no validation

    def step(self, samples: int, tokens: int, own: dict[str, int]) -> None:
        """The program's own Meter says that a step ended. own: stages that it measured, in ns."""
        self._start()
        self._next_part()
        self._end_at(self.clock.stamp())
        self._stop_counting()
        if samples >= 0:
            self.step_part.samples = samples
        if tokens >= 0:
            self.step_part.tokens = tokens
        self._close(own)

    def leave(self) -> None:
        """Ends the trial: something other than a training step came while the hooks were off."""
        self.trial.abandon()
        self.on, self._whole = True, False

    def inside(self, stage: str) -> bool:
        return any(span.stage == stage for span in self._stack)

    def _end_at(self, moment: Token) -> None:
        """The step at hand ends so far; what it ends on is the stream that its spans have to be on."""
        self._ended = self._last = moment
        self._home = self.clock.line(moment)

    def _start(self) -> None:
        if not self._started:
            self._started = True
            first = self.part if self.step_part.empty else self.step_part
            self.writer.start(begin_ns=first.begin if first.waits else self.now(), **self.starting())
            self._previous = (self.clock.stamp(), self.now())

    def use(self, clock: Clock) -> bool:
        """Changes to a device's clock, also inside the first step; False after it. Moments of the other clock go."""
        if self.closed or self._optimizers:
            return False
        self.clock, self._home, self._last = clock, None, None
        for part in (self.part, self.step_part):
            part.forget_moments()
        for span in self._stack:
            span.begin, span.inner = clock.stamp(), []
        if self._started:
            self._previous = (clock.stamp(), self.now())
        return True

    def _close(self, own: dict[str, int]) -> None:
        if self._counted and not self._late and not self._any_optimizer:
            self._stop_counting()
        part, self.step_part = self.step_part, Part(self.part.begin)
        self._keys = tuple(self._optimizers)
        self._optimizers.clear()
        if self.on and part.micro:
            self._usual = (part.samples or -1, part.tokens or -1, part.micro)
        counted = self._counted and not self._late
        self._queue.append(Closed(part, self._ended, own, self.on, self._whole, counted))
        self._counted, self._late = self._late and self._counted, False
        self.closed += 1
        on = self.trial.on(self.closed)
        self._whole = on == self.on
        self.on = on
        self._drain()

    # ---- counting ----

    def _count(self) -> None:
        """Begins with a step's first forward pass. Without a loader the step before is still open then: it has ended if
        all the optimizers have stepped that did so in the one before it."""
        if self.counting is None or self._counted or self.closed < COUNTED_STEP or self.part.micro:
            return
        if not self.step_part.micro or tuple(self._optimizers) == self._keys:
            self._counted = self.counting.begin()
            self._late = bool(self._optimizers)

    def _stop_counting(self) -> None:
        """At the optimizer's end, or with the step where there is no optimizer."""
        if self._counted and self.counting is not None:
            counting, self.counting = self.counting, None
            counting.end(self.step_part.samples + self.part.samples)

    # ---- writing ----

    def _drain(self) -> None:
        while self._queue and self._ready(self._queue[0]):
            self._write(self._queue.popleft())
        self._report_in_time()

    def _ready(self, step: Closed) -> bool:
        """All its moments have come: the end of a step does not wait for what another stream does."""
        ready = self.clock.ready
        if not ready(step.end):
            return False
        return not self.clock.device or all(map(ready, _moments(step)))

    def _report_in_time(self) -> None:
        """Also in a long validation, which would look like a stall otherwise."""
        now = self.now()
        if now - self._reported_ns > REPORT_NS:
            self._reported_ns = now
            self.report()
            self.writer.event("alive", flush=True)

    def _write(self, step: Closed) -> None:
        before, before_ns = self._previous or (step.end, self.now())
        took = self.clock.between(before, step.end)
        end_ns = before_ns + took
        self._previous = (step.end, end_ns)
        if step.counted:
            self.writer.event("phase", name="count", begin=before_ns, end=end_ns)
        else:
            samples, tokens, micro = self._sizes_of(step)
            stages = self._stages(step) if step.watched and step.whole else {}
            self.writer.step(end_ns, samples, tokens, micro, **{**stages, **step.own})
            self.trial.add(step.watched, step.whole, took)
        self._release(step)
        if self.trial.open:
            self._tell_overhead(took)

    def _sizes_of(self, step: Closed) -> tuple[int, int, int]:
        part = step.part
        if not step.watched or not step.whole:
            return self._usual
        return (part.samples or -1, part.tokens or -1, max(1, part.micro))

    def _stages(self, step: Closed) -> dict[str, int]:
        """Nanoseconds by stage; 0 where a stage has been seen before and not in this step."""
        sums = dict.fromkeys(self._seen, 0)
        for span in step.part.spans:
            self._add(span, sums)
        if step.part.waits:
            sums["wait"] = sum(self._exposed(wait) for wait in step.part.waits)
            self._seen.add("wait")
        if "sync" in self._seen:
            sums["sync"] = step.part.sync_ns
        return sums

    def _add(self, span: Span, sums: dict[str, int]) -> int:
        whole = own = self.clock.between(span.begin, span.end)
        for inner in span.inner:
            own -= self._add(inner, sums)
        sums[span.stage] += own
        return whole

    def _exposed(self, wait: list[Token]) -> int:
        """Of the host's wait, what the device did not fill with earlier work."""
        host_ns, before, after = wait
        if not self.clock.device or before is None or after is None:
            return int(host_ns)
        return min(int(host_ns), self.clock.between(before, after))

    def _release(self, step: Closed) -> None:
        """Hands back the moments of the step before this one: the first wait of this one still asked for its last."""
        if self.clock.device:
            self.clock.release(self._releasable.values())
            moments = [step.end, *(moment for span in _all(step.part.spans) for moment in (span.begin, span.end))]
            kept = {id(self._last), id(step.end)}
            self._releasable = {id(m): m for m in moments if id(m) not in kept}

    def _tell_overhead(self, took_ns: int) -> None:
        told = self.trial.told(self.spans / max(1, self.closed), took_ns)
        if told is not None:
            self.writer.event("overhead", **told)

    def close(self) -> None:
        """The program ends: what is open is closed, what its device has not finished is left out."""
        if not self._started:
            return
        self._settle(self.now())
        if self._phase is not None:
            self.end_phase(self._last if isinstance(self._last, int) else self.now())
        self._drain()
        self.report()


def _moments(step: Closed) -> Iterator[Token]:
    """All that its line is made from."""
    for wait in step.part.waits:
        yield from (moment for moment in wait[1:] if moment is not None)
    for span in _all(step.part.spans):
        yield span.begin
        yield span.end


def _all(spans: list[Span]) -> Iterator[Span]:
    for span in spans:
        yield span
        yield from _all(span.inner)
