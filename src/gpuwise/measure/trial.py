"""What one CPU can feed, in a process of its own: python -m gpuwise.measure.trial WAY SIZE SECONDS FILE…

Prints images a second of CPU time over whole rounds of the files: read, decoded, cropped by chance, flipped, resized.
WAY: imagefolder (torchvision's loader and transforms, as tutorials write them), exact and fast (`feed`), floor (1/8
scaled decoding of bytes in memory: what libjpeg-turbo's entropy decoding costs, and nothing else).

A fresh process matters: how malloc behaves depends on what ran before and on environment variables.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Literal

import numpy as np

from gpuwise.errors import MeasurementFailed, Message

Way = Literal["imagefolder", "exact", "fast", "floor"]
TIMEOUT_S = 60.0
_BATCH = 32


def rate(
    way: Way, files: Sequence[str], image_size: int, *, seconds: float = 2.0, environ: Mapping[str, str] | None = None
) -> float:
    """Images/s of one CPU in a fresh process; environ: variables set on top of this process's own.

    Raises MeasurementFailed where the process gives no figure."""
    command = [sys.executable, "-m", __name__, way, str(image_size), str(seconds), *files]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(environ or {})},
            capture_output=True,
            text=True,
            check=True,
            timeout=TIMEOUT_S + 10 * seconds,
        )
        return float(done.stdout)
    except (subprocess.SubprocessError, ValueError, OSError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise MeasurementFailed(
            Message("The trial of the loader failed: {reason}", reason=str(said).strip().splitlines()[-1]),
            Message("Check that gpuwise[measure] is installed whole."),
        ) from None


Round = Callable[[Sequence[str]], None]
"""Does the work for all files once."""


def measure(once: Round, files: Sequence[str], seconds: float) -> float:
    """Images a second of CPU time, the first round left out."""
    once(files)
    start, rounds = time.process_time(), 0
    while (passed := time.process_time() - start) < seconds or not rounds:
        once(files)
        rounds += 1
    return rounds * len(files) / passed


def imagefolder(size: int) -> Round:
    from torchvision import transforms
    from torchvision.datasets.folder import default_loader

    steps = [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    steps.append(transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    augment = transforms.Compose(steps)

    def once(files: Sequence[str]) -> None:
        for file in files:
            augment(default_loader(file))

    return once


def own(way: str, size: int) -> Round:
    from gpuwise.measure.data import Sample
    from gpuwise.measure.feed import Exact, Fast, Pictures

    decoder = Fast(size) if way == "fast" else Exact(size, training=True)
    epochs = count()

    def once(files: Sequence[str]) -> None:
        epoch = next(epochs)
        pictures = Pictures([Sample(f, 0) for f in files], decoder, size=size, seed=0, training=True)
        for start in range(0, len(files), _BATCH):
            pictures.__getitems__([(epoch, i) for i in range(start, min(start + _BATCH, len(files)))])

    return once


def floor() -> Round:
    import simplejpeg

    known: dict[str, tuple[bytes, int, int]] = {}
    buffer = np.empty(1 << 24, np.uint8)

    def once(files: Sequence[str]) -> None:
        for file in files:
            if file not in known:
                with open(file, "rb") as stream:
                    body = stream.read()
                height, width, *_ = simplejpeg.decode_jpeg_header(body)
                known[file] = (body, -(-height // 8), -(-width // 8))
            body, low, narrow = known[file]
            simplejpeg.decode_jpeg(body, min_height=low, min_width=narrow, fastdct=True, buffer=buffer)

    return once


def main(arguments: Sequence[str]) -> None:
    way, size, seconds, *files = arguments
    print(measure(_maker(way, int(size)), files, float(seconds)))


def _maker(way: str, size: int) -> Round:
    if way == "floor":
        return floor()
    import cv2
    import torch

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return imagefolder(size) if way == "imagefolder" else own(way, size)


if __name__ == "__main__":
    main(sys.argv[1:])
