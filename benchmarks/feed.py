"""How fast one core feeds: `python -m benchmarks.feed`. Ratios in one run on the same work; nothing is asserted.

The same JPEG files (quality 90, 4:2:0) go through ImageFolder with PIL and torchvision's usual transforms, and through
both feeds, to 224 px. Each figure is images a second of CPU time in a fresh process with reading from the page cache,
median of ROUNDS taken in turn. The baseline is what a person gets without setting anything; what it gives with the
allocator told to keep its memory stands beside it, since the gap would be smaller there.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import simplejpeg

from gpuwise.errors import Message
from gpuwise.measure.advice import ALLOCATOR, AllocatorGain, Costs, advice
from gpuwise.measure.cache import Cached, build
from gpuwise.measure.data import labelled
from gpuwise.measure.paintings import QUALITY, painting
from gpuwise.measure.trial import Way, rate

ROUNDS = 3
SECONDS = 2.0
IMAGE_SIZE = 224
SIZES = {"500×400": ((400, 500), 96), "2,000×1,600": ((1600, 2000), 32)}
PAINTERS = 8

Rates = Mapping[str, float]


def paint(folder: Path, size: tuple[int, int], count: int) -> list[str]:
    """So many paintings of one size."""
    folder.mkdir(parents=True)
    files = []
    for n in range(count):
        body = simplejpeg.encode_jpeg(painting(n % PAINTERS, n, size=size), quality=QUALITY, colorsubsampling="420")
        (folder / f"{n:03d}.jpg").write_bytes(body)
        files.append(str(folder / f"{n:03d}.jpg"))
    return files


def rates(files: Sequence[str], wanted: Mapping[str, tuple[Way, Mapping[str, str]]]) -> Rates:
    """Name -> images/s, the median of rounds in which each had its turn."""
    seen: dict[str, list[float]] = {name: [] for name in wanted}
    for _ in range(ROUNDS):
        for name, (way, environ) in wanted.items():
            seen[name].append(rate(way, files, IMAGE_SIZE, seconds=SECONDS, environ=environ))
    for name, values in seen.items():
        print(f"  {name:<42} {statistics.median(values):8.1f}/s  ({min(values):.1f}–{max(values):.1f})", flush=True)
    return {name: statistics.median(values) for name, values in seen.items()}


EVERY: Mapping[str, tuple[Way, Mapping[str, str]]] = {
    "ImageFolder + PIL": ("imagefolder", {}),
    "ImageFolder + PIL, allocator set": ("imagefolder", ALLOCATOR),
    "exact feed": ("exact", {}),
    "fast feed": ("fast", {}),
    "fast feed, allocator set": ("fast", ALLOCATOR),
    "floor: 1/8 decoding only": ("floor", {}),
}


def ratio(what: str, a: float, b: float, goal: str) -> None:
    print(f"  {what:<58} {a / b:6.2f}  {goal}", flush=True)


def originals(name: str, files: Sequence[str], goal: str) -> Rates:
    size = sum(Path(f).stat().st_size for f in files) / len(files)
    print(f"{len(files)} JPEGs of {name}, {size / 1e3:.0f} kB, to {IMAGE_SIZE} px, one core")
    found = rates(files, EVERY)
    ratio("fast feed / ImageFolder", found["fast feed"], found["ImageFolder + PIL"], goal)
    ratio("the same, allocator set for both", found["fast feed, allocator set"],
          found["ImageFolder + PIL, allocator set"], "")  # fmt: skip
    ratio("exact feed / ImageFolder", found["exact feed"], found["ImageFolder + PIL"], "")
    return found


def cached(files: Sequence[str], folder: Path, before: Rates) -> None:
    """The same large files, re-encoded once."""
    rows = [(f, str(n % 2)) for n, f in enumerate(files)]
    source = labelled(rows, [], folder, layout="made", described=Message("bench"))
    entries: Cached = build(source, IMAGE_SIZE, folder=folder)
    print(f"re-encoded once to {entries.short_px} px: {1000 * (entries.convert_s or 0):.1f} ms CPU an image, "
          f"{(entries.before_bytes or 0) / 1e3:.0f} → {(entries.after_bytes or 0) / 1e3:.0f} kB")  # fmt: skip
    now = rates([s.path for s in entries.dataset.train], {"fast feed": ("fast", {}), "exact feed": ("exact", {})})
    ratio("cache / ImageFolder on originals", now["fast feed"], before["ImageFolder + PIL"], "(goal: at least 50)")
    ratio("the same, allocator set for ImageFolder", now["fast feed"], before["ImageFolder + PIL, allocator set"], "")
    gain = AllocatorGain(
        without_per_s=before["ImageFolder + PIL"], with_per_s=before["ImageFolder + PIL, allocator set"], pairs=ROUNDS
    )
    costs = Costs(
        original_s=1 / before["fast feed"], cached_s=1 / now["fast feed"], convert_s=entries.convert_s or 0.0,
        short_px=entries.short_px,
    )  # fmt: skip
    print("advice from these figures:", *(f"- {m}" for m in advice(costs=costs, allocator=gain)), sep="\n  ")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {size: paint(folder / size, *about) for size, about in SIZES.items()}
        small, large = files
        originals(small, files[small], "(goal: at least 1.8)")
        found = originals(large, files[large], "(goal: at least 3)")
        ratio("fast feed / floor", found["fast feed"], found["floor: 1/8 decoding only"], "(goal: at least 0.80)")
        cached(files[large], folder / "cache", found)


if __name__ == "__main__":
    sys.exit(main())
