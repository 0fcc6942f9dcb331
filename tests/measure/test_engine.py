"""The engine against a loop written out by hand, its timer against a scripted device, its choices against the facts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from math import nan
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="training needs torch: pip install 'gpuwise[measure]'")
pytest.importorskip("torchvision", reason="training needs torchvision: pip install 'gpuwise[measure]'")

import torch
from torch import nn

from gpuwise.errors import InvalidInput
from gpuwise.measure.engine import Engine, clock_of, forget_peaks, own_cost_s, take
from gpuwise.measure.precision import Numerics, choose
from gpuwise.measure.record import Device
from gpuwise.measure.timer import AHEAD, ALIVE_S, DeviceTimer, HostTimer, Pulse

MS = 1_000_000
CPU = Device(index=0, name="a CPU", vendor="AMD", backend="cpu", native_bf16=False)
NEW_CPU = Device(index=0, name="a new CPU", vendor="AMD", backend="cpu", native_bf16=True)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


class Kept:
    """Lines of steps, kept."""

    def __init__(self) -> None:
        self.rows: list[dict[str, int]] = []

    def step(self, *values: int) -> None:
        names = "end samples tokens micro wait copy forward backward all_reduce optimizer sync".split()  # noqa: SIM905
        self.rows.append(dict(zip(names, values, strict=True)))


# ---- a device with a queue ----


@dataclass
class Queue:
    """A scripted device: launching takes the host launch_ns, and the device does what was launched, one by one."""

    launch_ns: int = 30_000
    now_ns: int = 5 * MS
    free_ns: int = 0
    waits: int = 0

    def launch(self, work_ns: int) -> None:
        self.now_ns += self.launch_ns
        self.free_ns = max(self.free_ns, self.now_ns) + work_ns

    def event(self) -> QueueEvent:
        return QueueEvent(self)


@dataclass
class QueueEvent:
    queue: Queue
    at_ns: int | None = None

    def record(self) -> None:
        self.at_ns = max(self.queue.free_ns, self.queue.now_ns)

    def query(self) -> bool:
        assert self.at_ns is not None
        return self.queue.now_ns >= self.at_ns

    def synchronize(self) -> None:
        assert self.at_ns is not None
        self.queue.waits += 1
        self.queue.now_ns = max(self.queue.now_ns, self.at_ns)

    def elapsed_time(self, end: QueueEvent) -> float:
        assert self.at_ns is not None
        assert end.at_ns is not None
        return (end.at_ns - self.at_ns) / MS


@dataclass
class Loss:
    value: float = 0.5

    def item(self) -> float:
        return self.value


@dataclass
class Scripted:
    """A timer on a scripted device, and the lines it wrote."""

    queue: Queue = field(default_factory=Queue)
    kept: Kept = field(default_factory=Kept)

    def __post_init__(self) -> None:
        self.timer = DeviceTimer(
            self.kept, make_event=self.queue.event, keep=lambda loss: loss, clock_ns=lambda: self.queue.now_ns
        )
        self.timer.anchor()

    def step(self, forward_ns: int = 0, backward_ns: int = 0, wait_ns: int = 0, loss: float = 0.5) -> None:
        self.queue.now_ns += wait_ns
        mark = self.timer.mark
        marks = [mark(), mark()]
        for work_ns in (forward_ns, backward_ns):
            self.queue.launch(work_ns)
            marks.append(mark())
        kept = self.timer.keep(Loss(loss))
        marks.append(mark())
        self.timer.step(8, wait_ns, marks, None, kept)

    def durations_ms(self) -> list[float]:
        ends = [row["end"] for row in self.kept.rows]
        return [(b - a) / MS for a, b in pairwise(ends)]


def test_uc_001_a_step_takes_what_the_device_takes_and_not_what_launching_takes() -> None:
    device = Scripted(Queue(launch_ns=15_000))
    for _ in range(100):
        device.step(forward_ns=round(0.46 * MS), backward_ns=round(0.9 * MS))
    assert device.queue.now_ns - 5 * MS == 100 * 30_000  # the host is through with launching after 3 ms
    device.timer.finish()
    assert len(device.kept.rows) == 100
    assert device.durations_ms() == pytest.approx([1.36] * 99)
    assert device.kept.rows[50]["forward"] / MS == pytest.approx(0.46)
    assert device.kept.rows[50]["backward"] / MS == pytest.approx(0.9)


def test_uc_002_no_step_waits_for_the_device_so_host_and_device_work_at_once() -> None:
    """12 ms on the host beside 20 ms on the device: 20 ms a step, not the 32 ms of a wait in each."""
    device = Scripted(Queue(launch_ns=6 * MS))
    waits = device.queue.waits
    for _ in range(200):
        device.step(forward_ns=8 * MS, backward_ns=12 * MS)
    assert device.queue.waits == waits
    assert 0 < len(device.kept.rows) < 200  # what the device has done was written on the way
    device.timer.finish()
    assert device.durations_ms()[1:] == pytest.approx([20.0] * 198)


def test_a_host_that_runs_far_ahead_is_bounded() -> None:
    device = Scripted(Queue(launch_ns=1))
    for _ in range(AHEAD + 50):
        device.step(forward_ns=MS)
    assert len(device.kept.rows) >= 50


def test_a_wait_for_data_counts_only_where_the_device_was_idle() -> None:
    device = Scripted(Queue(launch_ns=1000))
    for _ in range(10):
        device.step(forward_ns=20 * MS, wait_ns=30 * MS)
    hidden = Scripted(Queue(launch_ns=1000))
    for _ in range(10):
        hidden.step(forward_ns=30 * MS, wait_ns=20 * MS)
    for each in (device, hidden):
        each.timer.finish()
    assert device.kept.rows[5]["wait"] / MS == pytest.approx(10, abs=0.01)
    assert hidden.kept.rows[5]["wait"] == 0


def test_losses_arrive_with_their_step_and_one_that_is_not_finite_is_seen() -> None:
    device = Scripted()
    for loss in (1.0, 2.0):
        device.step(forward_ns=MS, loss=loss)
    device.timer.finish()
    assert (device.timer.losses.mean, device.timer.losses.finite) == (1.5, True)
    device.step(forward_ns=MS, loss=nan)
    device.timer.finish()
    assert not device.timer.losses.finite


def test_events_are_used_again() -> None:
    made = []
    device = Scripted()

    def make() -> QueueEvent:
        made.append(1)
        return device.queue.event()

    device.timer = DeviceTimer(device.kept, make_event=make, keep=lambda x: x, clock_ns=lambda: device.queue.now_ns)
    device.timer.anchor()
    for _ in range(50):
        device.step(forward_ns=MS)
        device.timer.finish()
    assert len(made) <= 8


def test_on_the_host_the_exposed_all_reduce_is_taken_out_of_the_backward_pass() -> None:
    kept = Kept()
    HostTimer(kept).step(8, 5, (100, 110, 130, 190, 200), 170, Loss())
    HostTimer(kept).step(8, 5, (100, 110, 130, 190, 200), None, Loss())
    assert kept.rows[0] == {
        "end": 200, "samples": 8, "tokens": -1, "micro": 1, "wait": 5, "copy": 10, "forward": 20, "backward": 40,
        "all_reduce": 20, "optimizer": 10, "sync": 0,
    }  # fmt: skip
    assert (kept.rows[1]["backward"], kept.rows[1]["all_reduce"]) == (60, -1)


# ---- training ----


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )


def batches(count: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    chance = torch.Generator().manual_seed(0)
    shape = (8, 16, 16, 3)
    return [
        (torch.randint(0, 256, shape, dtype=torch.uint8, generator=chance), torch.randint(0, 3, (8,), generator=chance))
        for _ in range(count)
    ]


def engine(numerics: Numerics | None = None, **settings: object) -> tuple[Engine, Kept]:
    kept = Kept()
    made = Engine(network(), device=torch.device("cpu"), numerics=numerics or choose(CPU), lines=kept, **settings)  # type: ignore[arg-type]
    return made, kept


def by_hand(learning_rate: float) -> list[float]:
    """The tutorial's loop on the same batches."""
    model, losses = network(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9, nesterov=True)
    mean = torch.tensor((0.485, 0.456, 0.406)).view(1, 3, 1, 1)
    std = torch.tensor((0.229, 0.224, 0.225)).view(1, 3, 1, 1)
    for images, labels in batches():
        x = (images.permute(0, 3, 1, 2).float() / 255 - mean) / std
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_the_engine_trains_as_a_loop_written_by_hand() -> None:
    made, _ = engine(optimizer="sgd", learning_rate=0.1, weight_decay=0.0)
    losses = []
    for _ in made.run(batches()):
        losses.append(made.timer.losses.total - sum(losses))
    assert losses == pytest.approx(by_hand(0.1), rel=1e-4)
    assert losses[0] != losses[-1]


def test_two_trainings_with_one_seed_have_the_same_losses_to_the_last_bit() -> None:
    totals = []
    for _ in range(2):
        made, _ = engine(optimizer="adamw")
        list(made.run(batches() * 3))
        totals.append(made.timer.losses.total)
    assert totals[0] == totals[1]


def test_every_step_writes_its_line_and_the_stages_fit_into_it() -> None:
    made, kept = engine()
    assert list(made.run(batches(5))) == [8] * 5
    assert [row["samples"] for row in kept.rows] == [8] * 5
    for before, row in pairwise(kept.rows):
        stages = row["copy"] + row["forward"] + row["backward"] + row["optimizer"] + row["wait"]
        assert 0 < stages <= row["end"] - before["end"]
        assert min(row["forward"], row["backward"], row["optimizer"]) > 0


def test_layouts_of_a_batch_give_the_same_image() -> None:
    made, _ = engine()
    images = batches(1)[0][0]
    x = made.place(images)
    assert torch.equal(x, made.place(images.permute(0, 3, 1, 2).contiguous()))
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert x.amin() >= -2.2
    assert x.amax() <= 2.7
    assert torch.equal(made.place(x), x)  # floats are normalised already


def test_the_learning_rate_follows_the_schedule() -> None:
    made, _ = engine(learning_rate=0.5, schedule=lambda step: (step + 1) / 4)
    seen = [made.optimizer.param_groups[0]["lr"] for _ in made.run(batches(3))]
    assert seen == [0.125, 0.25, 0.375]


def test_norms_and_biases_do_not_decay() -> None:
    made, _ = engine(weight_decay=0.1)
    decays = {p.ndim: g["weight_decay"] for g in made.optimizer.param_groups for p in g["params"]}
    assert decays == {4: 0.1, 2: 0.1, 1: 0.0}


def test_validation_counts_and_changes_nothing() -> None:
    made, kept = engine()
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    right, count = made.validate(batches(2))
    assert count == 16
    assert 0 <= right <= 16
    assert all(torch.equal(value, before[name]) for name, value in made.model.state_dict().items())
    assert made.model.training
    assert kept.rows == []


def test_the_ceiling_of_the_device_writes_no_lines() -> None:
    made, kept = engine()
    ceiling = made.device_only(batches(2), seconds=0.1)
    assert 0 < ceiling.low <= ceiling.value <= ceiling.high
    assert kept.rows == []
    list(made.run(batches(1)))
    assert len(kept.rows) == 1


def test_half_precision_keeps_the_weights_in_fp32() -> None:
    made, _ = engine(choose(NEW_CPU))
    seen: list[torch.dtype] = []
    made.model[0].register_forward_hook(lambda _, __, out: seen.append(out.dtype))
    list(made.run(batches(2)))
    assert set(seen) == {torch.bfloat16}
    assert {p.dtype for p in made.model.parameters()} == {torch.float32}
    assert made.timer.losses.finite


def test_what_a_checkpoint_holds_brings_an_engine_back() -> None:
    first, _ = engine()
    list(first.run(batches(2)))
    second, _ = engine()
    second.load(deepcopy(first.state()))
    for each in (first, second):
        each.timer.losses.reset()
        list(each.run(batches(3)))
    assert (first.steps, first.timer.losses.total) == (second.steps, second.timer.losses.total)


def test_the_engine_can_tell_its_own_cost() -> None:
    assert own_cost_s(torch.device("cpu"), 20) > 0


# ---- signs of life ----


class Told:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def event(self, name: str, /, **fields: object) -> None:
        self.events.append((name, fields))


def test_signs_of_life_are_given_every_five_seconds_and_written_at_once() -> None:
    told, now = Told(), [0.0]
    pulse = Pulse(told, clock=lambda: now[0])
    for second in range(61):
        now[0] = float(second)
        pulse.beat()
    assert ALIVE_S <= 5
    assert told.events == [("alive", {"flush": True})] * 12


def test_every_batch_of_a_validation_and_every_step_of_a_ceiling_is_a_sign_of_life() -> None:
    made, _ = engine()
    beats: list[int] = []
    made.validate(batches(3), lambda: beats.append(1))
    assert len(beats) == 3
    made.device_only(batches(2), seconds=0.01, beat=lambda: beats.append(1))
    assert len(beats) >= 3 + 2 + 8


# ---- the device of the process ----


class Backend:
    """torch.cuda, as far as it is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []

    def set_device(self, index: int) -> None:
        self.calls.append(("set_device", index))

    def empty_cache(self) -> None:
        self.calls.append(("empty_cache", None))

    def reset_peak_memory_stats(self, device: torch.device) -> None:
        self.calls.append(("reset", device.index))


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_the_device_that_is_trained_on_is_the_current_one_also_in_a_job_of_one_process(kind: str) -> None:
    backend = Backend()
    take(torch.device(kind, 1), SimpleNamespace(**{kind: backend}))
    take(torch.device("cpu"), SimpleNamespace(cpu=backend))
    assert backend.calls == [("set_device", 1)]


def test_what_the_ceilings_took_of_the_memory_is_given_back_and_forgotten() -> None:
    backend = Backend()
    forget_peaks(torch.device("cuda", 1), SimpleNamespace(cuda=backend))
    assert backend.calls == [("empty_cache", None), ("reset", 1)]
    forget_peaks(torch.device("cpu"))  # has no allocator to ask


@pytest.mark.parametrize(("kind", "clock"), [("cpu", "host"), ("cuda", "device"), ("xpu", "device"), ("mps", "launch")])
def test_stage_times_say_whose_they_are(kind: str, clock: str) -> None:
    assert clock_of(torch.device(kind)) == clock


# ---- choices ----


def card(capability: str) -> Device:
    return Device(index=0, name=f"card {capability}", vendor="NVIDIA", backend="cuda", capability=capability)


@pytest.mark.parametrize(
    ("device", "precision", "layout", "scaled"),
    [
        (card("6.1"), "fp32", "nchw", False),  # Pascal
        (card("7.0"), "amp", "nhwc", True),  # Volta
        (card("7.5"), "amp", "nhwc", True),  # Turing
        (card("8.0"), "amp_bf16", "nhwc", False),
        (card("9.0"), "amp_bf16", "nhwc", False),
        (card("12.0"), "amp_bf16", "nhwc", False),
        (CPU, "fp32", "nhwc", False),
        (NEW_CPU, "amp_bf16", "nhwc", False),
        (Device(index=0, name="M3", vendor="Apple", backend="mps"), "fp32", "nchw", False),
        (Device(index=0, name="MI300X", vendor="AMD", backend="rocm", native_bf16=True), "amp_bf16", "nhwc", False),
        (Device(index=0, name="?", vendor="NVIDIA", backend="cuda"), "fp32", "nchw", False),
    ],
    ids=lambda value: value.name if isinstance(value, Device) else None,
)
def test_a_device_gets_the_precision_that_pays_on_it(device: Device, precision: str, layout: str, scaled: bool) -> None:
    chosen = choose(device)
    assert (chosen.precision, chosen.memory_format, chosen.scaled) == (precision, layout, scaled)


@pytest.mark.parametrize("capability", ["7.0", "7.5"], ids=["V100", "T4"])
def test_uc_037_bf16_is_not_chosen_where_it_is_only_emulated(capability: str) -> None:
    chosen = choose(card(capability))
    assert chosen.half == "float16"
    assert "emulates bf16" in chosen.why.text()


@pytest.mark.parametrize(
    ("device", "wanted"), [(CPU, "amp"), (card("6.1"), "amp"), (CPU, "tf32"), (card("9.0"), "fp8")]
)
def test_a_precision_that_never_pays_on_a_device_is_refused(device: Device, wanted: str) -> None:
    with pytest.raises(InvalidInput):
        choose(device, wanted)  # type: ignore[arg-type]


def test_what_is_asked_for_is_kept() -> None:
    chosen = choose(card("8.0"), "fp32", "nchw")
    assert (chosen.precision, chosen.memory_format, chosen.tf32, chosen.half) == ("fp32", "nchw", False, None)
    assert choose(card("8.0"), "tf32").tf32
