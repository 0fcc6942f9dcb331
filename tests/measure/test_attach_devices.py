"""What hooks make of a device: moments on its streams, its copies and waits, all of it scripted."""

from __future__ import annotations

import threading
import types

import numpy as np
import pytest

pytest.importorskip("torch", reason="the hooks need torch: pip install 'gpuwise[measure]'")

import torch

from gpuwise.measure.attach.border import Border
from gpuwise.measure.attach.clock import DeviceClock
from gpuwise.measure.attach.devices import WAITS, Devices
from gpuwise.measure.attach.recorder import Recorder
from gpuwise.measure.attach.trial import Trial

# ---- the recorder on a scripted device ----


class FakeDevice:
    """A queue that works on its own: launching costs 0.03 ms of the host, a kernel takes as long as it is told."""

    def __init__(self) -> None:
        self.host_ns = 0
        self.free_ns = 0

    def now(self) -> int:
        return self.host_ns

    def launch(self, work_ms: float) -> None:
        self.host_ns += 30_000
        self.free_ns = max(self.free_ns, self.host_ns) + int(work_ms * 1e6)

    def event(self) -> FakeEvent:
        return FakeEvent(self)


class FakeEvent:
    """Like torch.cuda.Event; synchronize is missing, so that a wait would fail."""

    def __init__(self, device: FakeDevice) -> None:
        self._device = device
        self.at = 0

    def record(self) -> None:
        self.at = max(self._device.free_ns, self._device.host_ns)

    def query(self) -> bool:
        return self._device.host_ns >= self.at

    def elapsed_time(self, end: FakeEvent) -> float:
        return (end.at - self.at) / 1e6


class Lines:
    """A writer that keeps lines."""

    claimed = False

    def __init__(self) -> None:
        self.lines: list[tuple[int, dict[str, int]]] = []
        self.events: list[tuple[str, dict[str, object]]] = []

    def start(self, **fields: object) -> None:
        self.events.append(("start", fields))

    def step(self, end_ns, samples, tokens, micro, **stages) -> None:
        self.lines.append((end_ns, stages))

    def event(self, name, /, **fields) -> None:
        self.events.append((name, fields))


def test_uc_001_work_of_a_device_is_timed_by_its_events_without_ever_waiting():
    """Launching returns after 0.03 ms, the work needs 1.36 ms: 1.36 ms a step, all of it the device's."""
    device, lines = FakeDevice(), Lines()
    recorder = Recorder(lines, now=device.now, trial=Trial(first=10**9))
    recorder.use(DeviceClock(device.event))
    for _ in range(100):
        recorder.forward_begin(1, (4, -1))
        device.launch(0.36)
        recorder.pop("forward")
        recorder.backward_begin()
        device.launch(0.70)
        recorder.backward_end()
        recorder.optimizer_begin("adam")
        device.launch(0.30)
        recorder.optimizer_end("adam")
    launched_ms = device.host_ns / 1e6
    device.host_ns = device.free_ns
    recorder.close()
    ends = np.array([end for end, _ in lines.lines])
    assert launched_ms / 100 < 0.1
    assert np.diff(ends).mean() / 1e6 == pytest.approx(1.36, rel=1e-3)
    forward, backward, optimizer = (
        np.mean([stages[name] for _, stages in lines.lines[1:]]) / 1e6 for name in ("forward", "backward", "optimizer")
    )
    assert (forward, backward, optimizer) == pytest.approx((0.36, 0.70, 0.30), abs=0.031)


def test_uc_002_host_work_that_the_device_hides_is_no_wait():
    """12 ms of loading in the host beside 20 ms of work: the step stays 20 ms and none of it is waiting for data."""
    device, lines = FakeDevice(), Lines()
    recorder = Recorder(lines, now=device.now, trial=Trial(first=10**9))
    recorder.use(DeviceClock(device.event))
    for _ in range(50):
        begin = recorder.wait_begin()
        device.host_ns += 12_000_000
        recorder.wait_end(begin, (4, -1))
        recorder.forward_begin(1, (4, -1))
        device.launch(20.0)
        recorder.pop("forward")
        recorder.backward_begin()
        recorder.backward_end()
        recorder.optimizer_begin("adam")
        recorder.optimizer_end("adam")
        device.host_ns = max(device.host_ns, device.free_ns - 20_000_000)  # at most one step ahead
    device.host_ns = device.free_ns
    recorder.close()
    late = lines.lines[5:]
    assert np.diff([end for end, _ in late]).mean() / 1e6 == pytest.approx(20, rel=0.01)
    assert max(stages["wait"] for _, stages in late) < 200_000


def test_events_are_used_again():
    device, lines = FakeDevice(), Lines()
    made = []

    def make() -> FakeEvent:
        made.append(device.event())
        return made[-1]

    recorder = Recorder(lines, now=device.now, trial=Trial(first=10**9))
    recorder.use(DeviceClock(make))
    for _ in range(200):
        recorder.backward_begin()
        device.launch(1.0)
        recorder.backward_end()
        recorder.optimizer_begin("sgd")
        recorder.optimizer_end("sgd")
        device.host_ns = device.free_ns
    assert len(made) < 450  # 800 moments


def test_a_stage_inside_another_is_taken_from_it():
    lines = Lines()
    ticks = iter(range(0, 10_000, 10))
    recorder = Recorder(lines, now=lambda: next(ticks), trial=Trial(first=10**9))
    recorder.optimizer_begin("lbfgs")
    recorder.forward_begin(1, (2, -1))
    recorder.pop("forward")
    recorder.backward_begin()
    recorder.backward_end()
    recorder.optimizer_end("lbfgs")
    recorder.close()
    ((_, stages),) = lines.lines
    assert stages["forward"] > 0
    assert stages["optimizer"] + stages["forward"] + stages["backward"] < 400
    assert min(stages.values()) > 0


# ---- a device with streams ----


class Streams:
    """A device whose streams work beside each other; as with CUDA, an event has no time before it has come."""

    def __init__(self) -> None:
        self.host_ns = 0
        self.free_ns: dict[str, int] = {}
        self.current = "main"
        self.version = types.SimpleNamespace(hip=None)

    def now(self) -> int:
        return self.host_ns

    def launch(self, work_ms: float) -> None:
        self.host_ns += 30_000
        self.free_ns[self.current] = max(self.free_ns.get(self.current, 0), self.host_ns) + int(work_ms * 1e6)

    def event(self) -> StreamEvent:
        return StreamEvent(self)

    def step(self, recorder: Recorder, *, copied_on: str = "main", copy_ms: float = 1.0) -> None:
        before, self.current = self.current, copied_on
        recorder.push("copy")
        self.launch(copy_ms)
        recorder.pop("copy")
        self.current = before
        recorder.forward_begin(1, (4, -1))
        self.launch(2.0)
        recorder.pop("forward")
        recorder.backward_begin()
        self.launch(3.0)
        recorder.backward_end()
        recorder.optimizer_begin("sgd")
        recorder.optimizer_end("sgd")


class StreamEvent:
    def __init__(self, device: Streams) -> None:
        self._device = device
        self.at = 0
        self.streams: list[str] = []

    def record(self, stream: str) -> None:
        self.streams.append(stream)
        self.at = max(self._device.free_ns.get(stream, 0), self._device.host_ns)

    def query(self) -> bool:
        return self._device.host_ns >= self.at

    def elapsed_time(self, end: StreamEvent) -> float:
        if not (self.query() and end.query()):
            raise RuntimeError("device not ready")
        return (end.at - self.at) / 1e6


def recorded(device: Streams) -> tuple[Recorder, Lines]:
    lines = Lines()
    recorder = Recorder(lines, now=device.now, trial=Trial(first=10**9))
    recorder.use(DeviceClock(device.event, lambda: device.current))
    return recorder, lines


def test_a_copy_on_another_stream_takes_no_time_of_the_step_and_is_not_waited_for():
    """The copy takes 50 ms beside steps of 5 ms: it has not come when they end."""
    device = Streams()
    recorder, lines = recorded(device)
    device.step(recorder)
    for _ in range(20):
        device.step(recorder, copied_on="side", copy_ms=50.0)
        device.host_ns = max(device.host_ns, device.free_ns["main"])
    recorder.close()
    late = lines.lines[2:]
    assert len(late) == 19
    assert {stages["copy"] for _, stages in late} == {0}
    assert np.diff([end for end, _ in late]).mean() / 1e6 == pytest.approx(5, rel=0.05)
    assert np.mean([stages["forward"] for _, stages in late]) / 1e6 == pytest.approx(2, rel=0.05)


def test_a_wait_ends_at_the_stream_of_the_steps_and_not_at_a_copy_beside_it():
    device = Streams()
    recorder, lines = recorded(device)
    for _ in range(20):
        begin = recorder.wait_begin()
        device.host_ns += 4_000_000
        recorder.wait_end(begin, (4, -1))
        device.step(recorder, copied_on="side", copy_ms=50.0)
    device.host_ns = max(device.free_ns.values())
    recorder.close()
    assert np.mean([stages["wait"] for _, stages in lines.lines[5:]]) / 1e6 < 0.2  # 5 ms of work hide the 4 ms


def test_a_step_is_written_once_all_that_it_is_made_of_has_come():
    """A program that changes its stream: what it did on the one before is late."""
    device = Streams()
    recorder, lines = recorded(device)
    device.step(recorder)
    recorder.forward_begin(1, (4, -1))
    device.launch(50.0)
    recorder.pop("forward")
    device.current = "other"
    recorder.backward_begin()
    device.launch(3.0)
    recorder.backward_end()
    recorder.optimizer_begin("sgd")
    recorder.optimizer_end("sgd")
    for _ in range(3):
        device.host_ns = max(device.host_ns, device.free_ns["other"])
        device.step(recorder)
    assert len(lines.lines) == 1
    device.host_ns = max(device.free_ns.values())
    recorder.close()
    assert len(lines.lines) == 5
    assert lines.lines[-1][1]["forward"] / 1e6 == pytest.approx(2, rel=0.05)


class Tensor:
    """A tensor of a framework with a device, as far as hooks touch it."""

    def __init__(self, kind: str = "cpu") -> None:
        self.device = torch.device(kind)

    def to(self, device: str) -> Tensor:
        return Tensor(device)

    def item(self) -> float:
        return 0.5

    cuda = cpu = tolist = __float__ = __int__ = __bool__ = item


class Framework:
    """torch with cards, as far as `Devices` uses it. asked: of which card the current stream was asked for."""

    def __init__(self) -> None:
        self.streams = Streams()
        self.version = self.streams.version
        self.asked: list[int] = []
        self.cuda = types.SimpleNamespace(
            Event=lambda enable_timing: self.streams.event(), current_stream=self._stream,
            get_device_name=lambda index: f"card {index}", max_memory_allocated=lambda index: 1,
            max_memory_reserved=lambda index: 2,
            get_device_properties=lambda index: types.SimpleNamespace(total_memory=3),
        )  # fmt: skip
        self.Tensor = type("Tensor", (Tensor,), {name: getattr(Tensor, name) for name in ("to", "cuda", *WAITS)})

    def _stream(self, index: int) -> str:
        self.asked.append(index)
        return f"stream of {index}"


class Module:
    def __init__(self, *kinds: str, device_ids: list[int] | None = None) -> None:
        self._kinds, self.device_ids = kinds, device_ids

    def parameters(self):
        return iter([types.SimpleNamespace(device=torch.device(kind)) for kind in self._kinds])


def watched(module: Module, framework: Framework, **options) -> tuple[Devices, Recorder, Lines]:
    lines = Lines()
    recorder = Recorder(lines, now=framework.streams.now, trial=Trial(first=10**9))
    devices = Devices(framework=framework, **options)
    devices.first(recorder, module)
    return devices, recorder, lines


def test_events_are_recorded_on_the_stream_of_the_card_that_the_weights_are_on():
    """The program never made cuda:1 the current one."""
    framework = Framework()
    _, recorder, _ = watched(Module("cuda:1"), framework)
    recorder.push("forward")
    span = recorder.pop("forward")
    assert set(framework.asked) == {1}
    assert [moment.event.streams for moment in (span.begin, span.end)] == [["stream of 1"]] * 2


@pytest.mark.parametrize(
    ("module", "indices"),
    [
        (Module("cuda:0", device_ids=[0, 1, 2]), [0, 1, 2]),  # DataParallel
        (Module("cuda:2", "cuda:0", "cuda:2"), [0, 2]),  # device_map
        (Module("cpu", "meta", "cuda:1"), [1]),  # some of the weights are put aside
        (Module("cuda:3", device_ids=[3]), [3]),  # DistributedDataParallel
        (Module("cuda:0"), [0]),
    ],
)
def test_all_devices_of_a_model_are_told_with_their_memory(module, indices):
    devices, recorder, lines = watched(module, Framework())
    devices.tell(recorder)
    told = [fields["list"] for name, fields in lines.events if name == "devices"]
    assert [(one["index"], one["name"]) for one in told[0]] == [(index, f"card {index}") for index in indices]
    assert [fields["index"] for name, fields in lines.events if name == "memory"] == indices


def test_a_step_inside_the_optimizer_has_the_clock_of_the_device():
    """Lightning calls everything from a closure: the optimizer's step is open when the first weights are seen."""
    framework = Framework()
    device, lines = framework.streams, Lines()
    recorder = Recorder(lines, now=device.now, trial=Trial(first=10**9))
    devices = Devices(framework=framework)
    for _ in range(5):
        recorder.optimizer_begin("adam")
        if devices.kind is None:
            devices.first(recorder, Module("cuda:0"))
            device.current = "stream of 0"
        recorder.forward_begin(1, (4, -1))
        device.launch(2.0)
        recorder.pop("forward")
        recorder.backward_begin()
        device.launch(3.0)
        recorder.backward_end()
        recorder.optimizer_end("adam")
    device.host_ns = max(device.free_ns.values())
    recorder.close()
    assert ("timing", {"clock": "device"}) in lines.events
    assert [round(stages["forward"] / 1e6) for _, stages in lines.lines] == [2] * 5
    assert [round(stages["optimizer"] / 1e6) for _, stages in lines.lines] == [0] * 5


def test_a_look_at_held_out_data_before_training_leaves_no_moments_of_another_clock():
    framework = Framework()
    device, lines = framework.streams, Lines()
    recorder = Recorder(lines, now=device.now, trial=Trial(first=10**9))
    devices = Devices(framework=framework)
    for trained in (False, True, True, True):
        begin = recorder.wait_begin()
        recorder.wait_end(begin, (4, -1))
        if not trained:
            recorder.look_begin(1, training=False)
            recorder.pop("forward")
            continue
        if devices.kind is None:
            devices.first(recorder, Module("cuda:0"))
        recorder.forward_begin(1, (4, -1))
        recorder.pop("forward")
        recorder.backward_begin()
        recorder.backward_end()
        recorder.optimizer_begin("sgd")
        recorder.optimizer_end("sgd")
    recorder.close()
    assert len(lines.lines) == 3


def test_where_steps_were_timed_before_the_device_was_known_the_times_are_those_of_launching():
    framework, lines = Framework(), Lines()
    recorder = Recorder(lines, now=framework.streams.now, trial=Trial(first=10**9))
    recorder.optimizer_begin("sgd")
    recorder.optimizer_end("sgd")
    Devices(framework=framework).first(recorder, Module("cuda:0"))
    recorder.close()
    assert ("timing", {"clock": "launch"}) in lines.events
    assert len(lines.lines) == 1


def test_weights_on_the_cpu_have_the_clock_of_the_host():
    devices, _, lines = watched(Module("cpu"), Framework())
    assert devices.kind == "cpu"
    assert ("timing", {"clock": "host"}) in lines.events


def test_copies_and_waits_of_another_thread_are_not_those_of_the_loop():
    """A prefetching thread that copies while the loop is in its forward pass."""
    framework, me = Framework(), threading.get_ident()
    devices, recorder, _ = watched(Module("cuda:0"), framework, mine=lambda: threading.get_ident() == me)
    recorder.push("forward")
    other = threading.Thread(target=lambda: (framework.Tensor().to("cuda"), framework.Tensor("cuda").item()))
    other.start()
    other.join()
    assert (recorder.spans, devices.syncs) == (1, 0)
    framework.Tensor().to("cuda")
    framework.Tensor("cuda").item()
    span = recorder.pop("forward")
    assert [inner.stage for inner in span.inner] == ["copy"]
    assert devices.syncs == 1


def test_a_stage_that_is_not_open_ends_nothing():
    device = Streams()
    recorder, _ = recorded(device)
    assert recorder.pop("copy") is None
    recorder.push("forward")
    assert recorder.pop("copy") is None
    span = recorder.pop("forward")
    assert span is not None
    assert span.stage == "forward"


def test_a_copy_arrives_although_timing_it_fails():
    framework = Framework()
    noted: list[str] = []
    border = Border(lambda name, error: noted.append(name))
    _, recorder, _ = watched(Module("cuda:0"), framework, border=border)
    recorder.clock = DeviceClock(framework.streams.event, lambda: 1 / 0)
    assert [framework.Tensor().to("cuda").device.type for _ in range(2)] == ["cuda"] * 2
    assert noted == ["copy"]
