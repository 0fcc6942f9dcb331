"""What being measured costs a program: `gpuwise measure --` against the bare script, and a Meter in a loop.

    python benchmarks/overhead.py [--rounds 3] [--steps 40]

The script is a tutorial's: a folder of JPEGs, ImageFolder with PIL, two loader workers or none, ResNet-18 at 64 px. Its
steps are timed by itself, after a warm-up; bare and measured runs alternate (ABBA) since machines are shared and noisy.
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

folder, workers, steps, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
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
losses, times = [], []
while len(losses) < steps:
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append((time.perf_counter(), time.process_time()))
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
        wall, cpu = zip(*told["times"][WARM_UP:], strict=True)
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
        compared("ResNet-18, no worker", [data, "0", steps, "0"], asked.rounds, folder)
        compared("ResNet-18, two workers", [data, "2", steps, "0"], asked.rounds, folder)
        compared("small network, no worker", [data, "0", str(4 * asked.steps), "64"], asked.rounds, folder)
        print(f"Meter, not measured: {1e6 * meter_cost():.2f} µs a step")
        os.environ["GPUWISE_MARKS"] = str(folder)
        print(f"Meter, measured: {1e6 * meter_cost():.2f} µs a step (goal 10)")


if __name__ == "__main__":
    main()
