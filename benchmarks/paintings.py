"""Can a network tell the painters, and colours not? `python -m benchmarks.paintings`; nothing is asserted.

Eight painters, 60 paintings each to train on, 15 held out, at their real sizes. Told apart by colour: 8 × 8 × 8
histograms, the best of nearest neighbours and a softmax regression (goal: at most 50 %). By a network: ResNet-18 at 64
px from scratch, as the reference training would (goal: 80 % in a few CPU minutes). Paintings are made in a folder of
its own first, so that the time to make them is seen too.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import torch
import torchvision
from numpy.typing import NDArray
from torch import nn

from gpuwise.measure.cache import build
from gpuwise.measure.data import Dataset, Sample
from gpuwise.measure.feed import MEAN, STD, Batch, Feed, loader
from gpuwise.measure.making import threads
from gpuwise.measure.paintings import make

IMAGE_SIZE, BATCH, EPOCHS = 64, 16, 20
RATE, DECAY = 1e-3, 0.05
GOAL = 0.8
Floats = NDArray[np.float64]


def histograms(samples: Sequence[Sample]) -> Floats:
    """Square roots of colour shares, (n, 512)."""
    rows = []
    for sample in samples:
        image = cv2.imread(sample.path)
        counts = cv2.calcHist([image], [0, 1, 2], None, [8, 8, 8], [0, 256] * 3).ravel()
        rows.append(np.sqrt(counts / counts.sum()))
    return np.array(rows, np.float64)


def neighbours(x: Floats, label: NDArray[np.int64], asked: Floats, count: int = 7) -> NDArray[np.int64]:
    near = ((asked[:, None] - x[None]) ** 2).sum(2).argsort(axis=1)[:, :count]
    return np.array([np.bincount(row).argmax() for row in label[near]])


def regression(x: Floats, label: NDArray[np.int64], asked: Floats) -> NDArray[np.int64]:
    """Softmax regression with weight decay, by AdamW."""
    torch.manual_seed(0)
    model = nn.Linear(x.shape[1], int(label.max()) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.1)
    data, truth = torch.tensor(x, dtype=torch.float32), torch.tensor(label)
    for _ in range(400):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), truth).backward()
        optimizer.step()
    with torch.no_grad():
        guess: NDArray[np.int64] = model(torch.tensor(asked, dtype=torch.float32)).argmax(1).numpy()
    return guess


def by_colour(found: Dataset) -> None:
    x, asked = histograms(found.train), histograms(found.validation)
    label, truth = (np.array([s.label for s in part]) for part in (found.train, found.validation))
    for name, way in (("7 nearest neighbours", neighbours), ("softmax regression", regression)):
        share = float((way(x, label, asked) == truth).mean())
        print(f"  colour histogram, {name:<22} {share:6.1%}  (chance {1 / len(found.classes):.1%}, goal: at most 50 %)")


def shown(batch: Batch) -> torch.Tensor:
    mean, std = (255 * torch.tensor(v).view(1, 3, 1, 1) for v in (MEAN, STD))
    return (batch.images.permute(0, 3, 1, 2).float() - mean) / std


def by_network(train: Feed, held_out: Feed, classes: int) -> None:
    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=classes).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    steps = EPOCHS * len(train)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    start, passed = time.process_time(), None
    for epoch in range(EPOCHS):
        model.train()
        for batch in train.epoch(epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(shown(batch)), batch.labels).backward()
            optimizer.step()
            schedule.step()
        share, minutes = accuracy(model, held_out), (time.process_time() - start) / 60
        if passed is None and share >= GOAL:
            passed = minutes
        print(f"  epoch {epoch + 1:2}: {share:6.1%} of held-out paintings, {minutes:.2f} CPU minutes", flush=True)
    said = "never" if passed is None else f"after {passed:.2f} CPU minutes"
    print(f"  ResNet-18 at {IMAGE_SIZE} px: {share:.1%}, {GOAL:.0%} passed {said} (goal: a few)")


def accuracy(model: nn.Module, held_out: Feed) -> float:
    model.eval()
    with torch.no_grad():
        right = [(model(shown(b)).argmax(1) == b.labels).float().mean() * len(b.labels) for b in held_out.epoch(0)]
    return float(sum(right)) / held_out.samples


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        start = time.perf_counter()
        found = make(Path(name))
        count, passed = len(found.train) + len(found.validation), time.perf_counter() - start
        print(f"{count} paintings in {passed:.1f} s on {threads()} CPUs: {passed * threads() / count:.3f} s a core "
              "(goal: at most 0.15)", flush=True)  # fmt: skip
        small = build(found, IMAGE_SIZE, folder=Path(name))
        by_colour(small.dataset)
        feeds = [
            loader(part, feed="fast", image_size=IMAGE_SIZE, batch=BATCH, workers=0, training=training)
            for part, training in ((small.dataset.train, True), (small.dataset.validation, False))
        ]
        by_network(feeds[0], feeds[1], len(found.classes))


if __name__ == "__main__":
    sys.exit(main())
