"""Constructed jobs with a known truth. As a program this file is one of them, or measures one of them.

    python verdict_jobs.py NAME SEVERITY-JSON                  the job itself, which knows nothing of being measured
    python verdict_jobs.py --measure NAME SEVERITY-JSON OUT    runs it under a session and writes its record

What holds a job back is put in on purpose, with a severity drawn from a seed: real sleeps, real CPU affinities, real
processes beside it, a real mount for shared memory. All of them run on the CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpuwise.measure.record import Record

Severity = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Job:
    """kinds, causes: what a right verdict says. Severities with a meaning of their own: `neighbours`, processes that
    take CPUs meanwhile; `shm_kib`, a mount of shared memory of that size. cpus: how many it may run on."""

    name: str
    kinds: frozenset[str]
    causes: frozenset[str]
    draw: Callable[[np.random.Generator], dict[str, float]]
    cpus: int | None = None

    def around(self, by: Severity) -> tuple[str, ...]:
        """What comes before the measuring command."""
        if "shm_kib" in by:
            mount = f'mount -t tmpfs -o size={int(by["shm_kib"])}k tmpfs /dev/shm && exec "$@"'
            return ("unshare", "--mount", "sh", "-c", mount, "sh")
        if self.cpus is not None:
            free = sorted(os.sched_getaffinity(0))[: self.cpus]
            return ("taskset", "--cpu-list", ",".join(map(str, free)))
        return ()


def severity(job: Job, seed: int) -> dict[str, float]:
    """The same for one seed, always; rounded, so that it can be told."""
    drawn = job.draw(np.random.default_rng([seed, *job.name.encode()]))
    return {name: float(f"{value:.3g}") for name, value in drawn.items()}


def _between(low: float, high: float) -> Callable[[np.random.Generator], float]:
    """Evenly on the scale of logarithms."""
    return lambda rng: float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _of(**ranges: tuple[float, float]) -> Callable[[np.random.Generator], dict[str, float]]:
    return lambda rng: {name: _between(*limits)(rng) for name, limits in ranges.items()}


def _whole(name: str, choices: Sequence[int], **ranges: tuple[float, float]) -> Callable[..., dict[str, float]]:
    rest = _of(**ranges)
    return lambda rng: {name: float(rng.choice(choices)), **rest(rng)}


INPUT, CPU = frozenset({"input-bound"}), frozenset({"compute-bound", "input-bound", "host-bound"})

JOBS = (
    Job(
        name="sleep in the loader",
        kinds=INPUT,
        causes=frozenset({"loader", "workers", "bursts"}),
        draw=_whole("workers", (1, 2), sleep_ms=(8, 40)),
    ),
    Job(
        name="loading between the steps",
        kinds=INPUT,
        causes=frozenset({"workers"}),
        draw=_of(sleep_ms=(3, 20)),
    ),
    Job(
        name="slow reading",
        kinds=frozenset({"storage-bound"}),
        causes=frozenset({"disk", "network storage"}),
        draw=_whole("workers", (1, 2), sleep_ms=(8, 40)),
    ),
    Job(
        name="decoding large pictures",  # which on few CPUs takes all of them, the network's too
        kinds=INPUT | {"compute-bound"},
        causes=frozenset({"decode", "workers", "few CPUs", "device"}),
        draw=_of(side_px=(900, 1600)),
    ),
    Job(
        name="one CPU of many",
        kinds=CPU,
        causes=frozenset({"few CPUs"}),
        draw=_of(layers=(4, 12)),
        cpus=1,
    ),
    Job(name="pinned by a library", kinds=CPU, causes=frozenset({"pinned"}), draw=_of(layers=(4, 12))),
    Job(
        name="a neighbour",
        kinds=frozenset({"host-bound"}),
        causes=frozenset({"neighbour"}),
        draw=_whole("neighbours", (2, 3, 4), layers=(4, 12)),
    ),
    Job(
        name="tiny shared memory",
        kinds=frozenset({"input-bound", "unknown"}),
        causes=frozenset({"shared memory"}),
        draw=_of(shm_kib=(256, 2048)),
    ),
    Job(
        name="heavy optimizer",
        kinds=frozenset({"compute-bound"}),
        causes=frozenset({"optimizer"}),
        draw=_of(rows=(20_000, 80_000)),
    ),
    Job(
        name="tiny kernels",
        kinds=frozenset({"host-bound"}),
        causes=frozenset({"launches"}),
        draw=_of(layers=(30, 120), width=(4, 24)),
    ),
    Job(
        name="healthy",
        kinds=frozenset({"compute-bound"}),
        causes=frozenset({"device"}),
        draw=_of(layers=(4, 12)),
    ),
    Job(
        name="one thread of several",
        kinds=frozenset({"compute-bound"}),
        causes=frozenset({"threads"}),
        draw=_of(layers=(4, 12)),
    ),
)

STEPS = 40
LEAST_S = 2.5
"""A job runs for at least so many steps and seconds, so that there are enough samples of the host."""


def train(batches: Callable[[], object], model: object, optimizer: object) -> None:
    """A loop as people write it."""
    from torch import nn

    loss_of, begin, steps = nn.CrossEntropyLoss(), time.perf_counter(), 0
    while steps < STEPS or time.perf_counter() - begin < LEAST_S:
        for pictures, labels in batches():  # type: ignore[attr-defined]
            optimizer.zero_grad()  # type: ignore[attr-defined]
            loss_of(model(pictures), labels).backward()  # type: ignore[operator]
            optimizer.step()  # type: ignore[attr-defined]
            steps += 1
            if steps >= STEPS and time.perf_counter() - begin >= LEAST_S:
                return


def _dataset(get: Callable[[int], object], length: int = 4096) -> object:
    from torch.utils.data import Dataset

    class Data(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return length

        def __getitem__(self, index: int) -> tuple[object, int]:
            return get(index), index % 4

    return Data()


def _loader(get: Callable[[int], object], workers: int, batch: int = 4) -> Callable[[], object]:
    from torch.utils.data import DataLoader

    loader = DataLoader(_dataset(get), batch_size=batch, num_workers=workers)  # type: ignore[arg-type]
    return lambda: loader


def _small() -> tuple[object, object]:
    """A model of a few milliseconds a step, for pictures of any size."""
    import torch
    from torch import nn

    layers = (nn.AdaptiveAvgPool2d(16), nn.Flatten(), nn.Linear(3 * 256, 512), nn.ReLU(), nn.Linear(512, 4))
    model = nn.Sequential(*layers)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def _sleeping(by: Severity, workers: int) -> None:
    import torch

    def get(index: int) -> object:
        time.sleep(by["sleep_ms"] / 1e3)
        return torch.full((3, 64, 64), index % 7, dtype=torch.float32)

    train(_loader(get, workers), *_small())


def sleep_in_the_loader(by: Severity) -> None:
    _sleeping(by, int(by["workers"]))


def loading_between_the_steps(by: Severity) -> None:
    _sleeping(by, 0)


def _pictures(folder: Path, side_px: int, count: int) -> list[str]:
    from PIL import Image

    rng = np.random.default_rng(0)
    for n in range(count):
        coarse = Image.fromarray(rng.integers(0, 255, (side_px // 8, side_px // 8, 3), np.uint8))
        coarse.resize((side_px, side_px)).save(folder / f"{n}.jpg", quality=90)
    return [str(folder / f"{n}.jpg") for n in range(count)]


def slow_reading(by: Severity) -> None:
    """The library's own call that reads a file takes longer, as it does on a slow disk."""
    import torch
    from torchvision.io import decode_jpeg, read_file

    read = torch.ops.image.read_file

    def slow(path: str) -> object:
        time.sleep(by["sleep_ms"] / 1e3)
        return read(path)

    torch.ops.image.read_file = slow  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        paths = _pictures(Path(folder), 64, 8)
        get = lambda n: decode_jpeg(read_file(paths[n % 8])).float()  # noqa: E731
        train(_loader(get, int(by["workers"])), *_small())


def decoding_large_pictures(by: Severity) -> None:
    import torch
    from torchvision.io import decode_jpeg, read_file

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = _pictures(Path(folder), int(by["side_px"]) // 8 * 8, 4)
        get = lambda n: decode_jpeg(read_file(paths[n % 4]))[:, :64, :64].float()  # noqa: E731
        train(_loader(get, 2), *_small())


def _computing(by: Severity, threads: int = 1, batch: int = 8) -> None:
    """Convolutions on batches that are in memory already."""
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    layers = [nn.Conv2d(3, 24, 3, padding=1)]
    for _ in range(int(by["layers"])):
        layers += [nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1)]  # type: ignore[list-item]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 4))
    batches = [(torch.randn(batch, 3, 32, 32), torch.randint(4, (batch,))) for _ in range(4)]
    train(lambda: batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def healthy(by: Severity) -> None:
    """On all CPUs that it may use, with work for each of them."""
    _computing(by, len(os.sched_getaffinity(0)), batch=64)


def one_thread_of_several(by: Severity) -> None:
    _computing(by)


a_neighbour = one_cpu_of_many = one_thread_of_several


def pinned_by_a_library(by: Severity) -> None:
    import torch  # noqa: F401 (what is imported pins the process)

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    _computing(by)


def tiny_shared_memory(by: Severity) -> None:
    """Batches of 786 KiB for two workers with two batches each."""
    import torch

    train(_loader(lambda n: torch.zeros(3, 128, 128), 2), *_small())


def heavy_optimizer(by: Severity) -> None:
    """A large table of which a step uses four rows, and an optimizer that goes through all of it."""
    import torch
    from torch import nn

    model = nn.Sequential(nn.Embedding(int(by["rows"]), 64), nn.Flatten(), nn.Linear(64, 4))
    batches = [(torch.randint(int(by["rows"]), (4, 1)), torch.randint(4, (4,))) for _ in range(4)]
    train(lambda: batches, model, torch.optim.Adam(model.parameters(), lr=0.001))


def tiny_kernels(by: Severity) -> None:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    width, layers = int(by["width"]), []
    for _ in range(int(by["layers"])):
        layers += [nn.Linear(width, width), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(width, 4))
    batches = [(torch.randn(4, width), torch.randint(4, (4,))) for _ in range(4)]
    train(lambda: batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def measured(job: Job, by: Severity, out: Path) -> Record:
    """The record of one run, measured by a process of its own; it is kept in `out`."""
    from gpuwise.measure.kept import restored

    order = (sys.executable, __file__, "--measure", job.name, json.dumps(dict(by)), str(out))
    done = subprocess.run([*job.around(by), *order], capture_output=True, text=True, check=False)
    if done.returncode or not out.is_file():
        raise RuntimeError(f"{job.name} was not measured: {done.stderr[-2000:]}")
    return restored(json.loads(out.read_text(encoding="utf-8")), job.name)


def _measure(name: str, by: Severity, out: Path) -> None:
    from gpuwise.measure import session
    from gpuwise.measure.devices import devices
    from gpuwise.measure.gauges import Sampler
    from gpuwise.measure.host import host
    from gpuwise.measure.kept import payload
    from gpuwise.measure.record import Setup

    command = (sys.executable, __file__, name, json.dumps(dict(by)))
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder, _neighbours(int(by.get("neighbours", 0))):
        record = session.run(
            command, setup=Setup(workload=name), folder=Path(folder) / "marks", host=host(Path(folder)),
            devices=devices(torch=None), watch=Sampler(), environ=environ,
        )  # fmt: skip
    out.write_text(json.dumps(payload(record)), encoding="utf-8")


@contextmanager
def _neighbours(count: int) -> Iterator[None]:
    """Processes that take as much of the CPUs as they get."""
    beside = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(count)]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()


def main(arguments: Sequence[str]) -> None:
    if arguments[0] == "--measure":
        _measure(arguments[1], json.loads(arguments[2]), Path(arguments[3]))
    else:
        globals()[arguments[0].replace(" ", "_").lower()](json.loads(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
