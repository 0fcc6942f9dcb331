"""Looks at devices and host while a job runs: five times a second at devices, twice at the host, in two threads.

A look that costs much is taken less often, so that watching stays below 2 % of one CPU; `cost_fraction` says what it
was. The interval that was asked for and the real one go into the record.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from gpuwise.measure import elsewhere
from gpuwise.measure import nvml as management
from gpuwise.measure.counters import SmiReader, readers
from gpuwise.measure.devices import INSTALLED
from gpuwise.measure.energy import HostSample, Sample
from gpuwise.measure.host import cpus
from gpuwise.measure.processes import HostReader, Job
from gpuwise.measure.record import Device
from gpuwise.measure.system import REAL, System
from gpuwise.units import Fraction, Seconds

DEVICE_S: Seconds = 0.2
HOST_S: Seconds = 0.5
TOOL_S: Seconds = 5.0
"""Between two starts of a tool such as nvidia-smi, which takes most of a second each."""
MOST_COST: Fraction = 0.01
"""Share of one CPU that one of the two threads may take."""
MOST_LOOKS = 20_000
"""Looks that are kept; then every second one is dropped and the interval doubled, so a week's run fits."""
JOIN_S: Seconds = 2.0
FAILURES = (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What a file that changes while it is read can lead to."""

Look = TypeVar("Look")


class Rhythm(Generic[Look]):
    """Takes a look every `asked_s` until it is stopped, and keeps what it saw."""

    def __init__(self, look: Callable[[Seconds], Look], asked_s: Seconds, clock: Callable[[], Seconds]) -> None:
        self.asked_s = asked_s
        self.spent_s = 0.0
        self.failure: str | None = None
        self._look, self._clock = look, clock
        self._seen: list[Look] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpuwise-gauges", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Waits for the look under way, not for one that hangs in a driver."""
        self._stop.set()
        self._thread.join(JOIN_S)

    def seen(self) -> list[Look]:
        with self._lock:
            return list(self._seen)

    def step(self) -> Seconds:
        """One look; how long to wait until the next one."""
        before, spent = self._clock(), time.thread_time()
        looked = self._look(before)
        cost = time.thread_time() - spent
        self.spent_s += cost
        self._keep(looked)
        return max(self.asked_s - (self._clock() - before), cost / MOST_COST, 0.0)

    def _keep(self, looked: Look) -> None:
        with self._lock:
            self._seen.append(looked)
            if len(self._seen) > MOST_LOOKS:
                self._seen = self._seen[::2]
                self.asked_s *= 2

    def _run(self) -> None:
        wait_s = 0.0
        while not self._stop.wait(wait_s):
            try:
                wait_s = self.step()
            except FAILURES as error:  # one look that fails is a gap; the thread lives on for the next one
                self.failure, wait_s = f"a look failed: {type(error).__name__}: {error}", self.asked_s


class Sampler:
    """Watches the job under a process id and its devices. Start once, stop once.

    nvml: module or None; system, clock: handed in by tests. Samples' times are of `clock`.
    """

    def __init__(
        self,
        *,
        nvml: Any = INSTALLED,
        system: System = REAL,
        clock: Callable[[], Seconds] = time.perf_counter,
        device_s: Seconds = DEVICE_S,
        host_s: Seconds = HOST_S,
    ) -> None:
        self._nvml = management.find() if nvml is INSTALLED else nvml
        self._system, self._clock = system, clock
        self._device_s, self._host_s = device_s, host_s
        self._readers: tuple[Any, ...] = ()
        self._without: Mapping[int, Mapping[str, str]] = {}
        self._begun_s = 0.0
        self._ended_s: Seconds | None = None

    def start(self, pid: int, devices: Sequence[Device] = (), *, allowed: float | None = None) -> None:
        """pid: root of the job's processes. allowed: CPUs it may use (default: as this process)."""
        share = allowed if allowed is not None else cpus(self._system).allowed
        self._job = Job(pid, self._system)
        self._host: HostReader | elsewhere.PsutilReader
        if self._system.exists(f"/proc/{pid}/stat") or self._system.name == "Linux":
            self._host = HostReader(self._job, share, self._system)
        else:
            self._host = elsewhere.PsutilReader(pid, share, elsewhere.find())
        self.use(devices)
        self._begun_s = self._clock()
        device_s = TOOL_S if any(isinstance(r, SmiReader) for r in self._readers) else self._device_s
        self._devices_rhythm = Rhythm(self._look_at_devices, device_s, self._clock)
        self._host_rhythm = Rhythm(self._host.read, self._host_s, self._clock)
        self._host_rhythm.start()
        self._devices_rhythm.start()

    def use(self, devices: Sequence[Device]) -> None:
        """The devices to watch from now on: the job itself knows best which they are."""
        self._readers, self._without = readers(devices, self._nvml, self._system, lambda: self._job.pids)

    def watch(self, mains: Collection[int]) -> None:
        """Process ids that train (those that write marks); the others of the tree load or launch."""
        self._job.mains = frozenset(mains)

    def taken(self) -> tuple[tuple[Sample, ...], tuple[HostSample, ...]]:
        """What was seen so far, while it goes on."""
        return tuple(chain.from_iterable(self._devices_rhythm.seen())), tuple(self._host_rhythm.seen())

    def stop(self) -> tuple[tuple[Sample, ...], tuple[HostSample, ...]]:
        """All that was seen."""
        for rhythm in (self._devices_rhythm, self._host_rhythm):
            rhythm.stop()
        self._ended_s = self._clock()
        return self.taken()

    @property
    def asked_s(self) -> Seconds:
        """The interval of device samples that was asked for."""
        return self._devices_rhythm.asked_s

    @property
    def device_reasons(self) -> dict[int, dict[str, str]]:
        """Index of a device -> field of DeviceLoad -> why it is missing."""
        read = {r.read_index: dict(r.reasons) for r in self._readers}
        return {i: dict(reasons) for i, reasons in self._without.items()} | read

    @property
    def host_reasons(self) -> dict[str, str]:
        """Field of HostLoad -> why it is missing."""
        failure = self._host_rhythm.failure
        return dict(self._host.reasons) | ({} if failure is None else {"samples": failure})

    @property
    def affinity(self) -> tuple[int | None, int | None]:
        """CPUs the main process may use now, and the fewest that any worker had (`Cpus.at_end`, `Cpus.workers`)."""
        return self._host.affinity_now, self._host.affinity_least_worker

    @property
    def cost_fraction(self) -> Fraction | None:
        """Share of one CPU that watching took; None before it began."""
        elapsed_s = (self._clock() if self._ended_s is None else self._ended_s) - self._begun_s
        spent_s = self._devices_rhythm.spent_s + self._host_rhythm.spent_s
        return spent_s / elapsed_s if elapsed_s > 0 else None

    def _look_at_devices(self, t_s: Seconds) -> tuple[Sample, ...]:
        return tuple(reader.read(t_s) for reader in self._readers)
