"""What being measured costs a program: `gpuwise measure --` against the bare script, and a Meter in a loop.

    python benchmarks/overhead.py [--rounds 3] [--steps 40]

The script is a tutorial's: a folder of JPEGs, ImageFolder with PIL, two loader workers or none, ResNet-18 at 64 px. Its
steps are timed by itself, after a warm-up. Whole runs, bare and measured, alternate (ABBA) and show that losses are
equal; on a shared machine they differ by more than the hooks cost. So that cost is taken inside one process too: blocks
of steps with every hook in its place, and with every original put back, in turn.
Goals: at most 1 % slower, losses equal to the last bit, every step and stage seen.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from gpuwise.measure import assemble, marks
from gpuwise.measure.session import environment

SCRIPT = """
import json, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

folder, workers, steps, width, swapping = sys.argv[1], *map(int, sys.argv[2:6])
torch.manual_seed(0)
torch.set_num_threads(1)
if width:
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, width), nn.ReLU(), nn.Linear(width, 4))
else:
    model = models.resnet18(num_classes=4)
steps_of = [transforms.RandomResizedCrop(64), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
data = datasets.ImageFolder(folder, transforms.Compose(steps_of))
loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=workers)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
losses, times, away = [], [], False
if swapping:
    import gc
    from PIL import Image, ImageFile
    from torch.nn.modules import module as modules
    from torch.optim import optimizer as optimizers
    from torch.utils.data import dataloader
    from torch.utils.data._utils import fetch

    hooked = [
        (dataloader._BaseDataLoaderIter, "__next__"), (dataloader.DataLoader, "__iter__"),
        (fetch._MapDatasetFetcher, "fetch"), (torch.autograd, "backward"), (Image, "open"),
        (ImageFile.ImageFile, "load"), (transforms.Compose, "__call__"),
    ]
    ours = [getattr(owner, name) for owner, name in hooked]
    tables = [modules._global_forward_pre_hooks, optimizers._global_optimizer_pre_hooks,
              optimizers._global_optimizer_post_hooks]
    kept = [dict(table) for table in tables]


def swap(away):
    for (owner, name), our in zip(hooked, ours):
        setattr(owner, name, our.__wrapped__ if away else our)
    for table, keep in zip(tables, kept):
        table.clear()
        table.update({} if away else keep)


while len(losses) < steps:
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append((time.perf_counter(), time.process_time(), away))
        if swapping and len(losses) % swapping == 0:
            away = not away
            swap(away)
        if len(losses) == steps:
            break
print(json.dumps({"losses": losses, "times": times}))
"""
WARM_UP = 8
"""Steps of each run that are not timed; the third is the one whose operations are counted."""


def pictures(folder: Path, count: int = 160) -> None:
    """JPEGs of 500 × 400 with noise, in four classes."""
    from PIL import Image

    for i in range(count):
        path = folder / str(i % 4) / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((500, 400), 20 + i % 60).convert("RGB").save(path, quality=90)


class Ran:
    """One run of the script: its losses, and the seconds of a step of wall clock and of CPU."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True)
        told = json.loads(done.stdout)
        self.losses: list[float] = told["losses"]
        wall, cpu, _ = zip(*told["times"][WARM_UP:], strict=True)
        self.wall_s = statistics.median(b - a for a, b in pairwise(wall))
        self.cpu_s = statistics.median(b - a for a, b in pairwise(cpu))


def compared(name: str, arguments: list[str], rounds: int, folder: Path) -> None:
    """Prints the ratios of measured to bare runs, and whether their losses are equal."""
    plain = {**os.environ, "OMP_NUM_THREADS": "1"}
    plain.pop("GPUWISE_MARKS", None)
    script = folder / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(script), *arguments]
    bare, measured = [], []
    for i in range(rounds):
        marked = folder / f"{name.replace(' ', '-')}-{i}"
        marked.mkdir()
        order = [(bare, plain), (measured, environment(plain, marked, attach=True))]
        for runs, environ in order if i % 2 == 0 else reversed(order):
            runs.append(Ran(command, environ))
    same = all(run.losses == bare[0].losses for run in (*bare, *measured))
    wall = [m.wall_s / b.wall_s for b, m in zip(bare, measured, strict=True)]
    cpu = [m.cpu_s / b.cpu_s for b, m in zip(bare, measured, strict=True)]
    print(
        f"{name}: step {1000 * statistics.median(r.wall_s for r in bare):.1f} ms, losses equal to the last bit: {same}"
    )
    for what, ratios in (("wall clock", wall), ("CPU of the main process", cpu)):
        shown = ", ".join(f"{ratio:.4f}" for ratio in ratios)
        print(f"  measured / bare, {what}: median {statistics.median(ratios):.4f} (goal 1.01) of {shown}")
    seen(marked, len(bare[0].losses))


def swapped(name: str, arguments: list[str], block: int, folder: Path) -> None:
    """Prints what the hooks cost by blocks of steps with and without them, in one process."""
    marked = folder / f"{name.replace(' ', '-')}-swapped"
    marked.mkdir()
    environ = environment({**os.environ, "OMP_NUM_THREADS": "1"}, marked, attach=True)
    command = [sys.executable, str(folder / "train.py"), *arguments, str(block)]
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True)
    times = json.loads(done.stdout)["times"]
    pairs: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for i in range(2 * block, len(times)):
        if (i % block) > 0:  # the first of a block has a border within
            pairs[times[i][2]].append((times[i][0] - times[i - 1][0], times[i][1] - times[i - 1][1]))
    for column, what in enumerate(("wall clock", "CPU of the main process")):
        on, off = (statistics.median(pair[column] for pair in pairs[away]) for away in (False, True))
        print(f"{name}, in one process, {what}: {on / off:.4f} (goal 1.01), {1e6 * (on - off):+.0f} µs a step")


def seen(folder: Path, steps: int) -> None:
    """Prints what the marks of a run hold."""
    found = marks.parse({path.name: path.read_text("utf-8") for path in folder.glob("*.marks")})
    (series,) = found.series
    counted = sum(phase.name == "count" for phase in found.phases)
    stages = [n for n in marks.TIMES if (getattr(series, n) >= 0).any()]
    times = assemble.loader_times(found)
    parts = [n for n in ("fetch_s", "read_s", "decode_s", "augment_s") if times and getattr(times, n) is not None]
    flops = [event.get("flops_per_step") for event in found.told("work")]
    print(f"  steps seen: {len(series.end_s)} + {counted} counted of {steps}; stages: {' '.join(stages + parts)}")
    print(f"  FLOPs a step: {flops[-1] if flops else None}; its own word on overhead: {found.told('overhead')[-1:]}")


def meter_cost() -> float:
    """Seconds that a Meter's step with three stages takes."""
    from gpuwise.meter import Meter

    meter, count = Meter(samples=16), 20_000
    begin = time.perf_counter()
    for _ in range(count):
        with meter.stage("forward"):
            pass
        with meter.stage("backward"):
            pass
        with meter.stage("optimizer"):
            pass
        meter.step()
    return (time.perf_counter() - begin) / count


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--steps", type=int, default=60)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pictures(folder / "pictures")
        data, steps = str(folder / "pictures"), str(asked.steps)
        compared("ResNet-18, no worker", [data, "0", steps, "0", "0"], asked.rounds, folder)
        compared("ResNet-18, two workers", [data, "2", steps, "0", "0"], asked.rounds, folder)
        compared("small network, no worker", [data, "0", str(4 * asked.steps), "64", "0"], asked.rounds, folder)
        swapped("ResNet-18, no worker", [data, "0", str(4 * asked.steps), "0"], 4, folder)
        swapped("small network, no worker", [data, "0", str(16 * asked.steps), "64"], 8, folder)
        print(f"Meter, not measured: {1e6 * meter_cost():.2f} µs a step")
        os.environ["GPUWISE_MARKS"] = str(folder)
        print(f"Meter, measured: {1e6 * meter_cost():.2f} µs a step (goal 10)")


if __name__ == "__main__":
    main()
