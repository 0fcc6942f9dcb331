"""How fast one core decodes JPEGs, by the fastest decoder that is installed."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.measure.probes import Found, Skipped, Task, rate, seconds_of

HEIGHT, WIDTH = 400, 500
"""ImageNet's mean size is about 500 × 400; at this quality and texture a file has about 2.3 bits a pixel."""
QUALITY = 85
BLOCK = 10
"""Images a run."""

Pixels = NDArray[np.uint8]


def decode(task: Task) -> Found:
    """Images a second of one core."""
    name, encoded, run = next(_decoders(), (None, b"", None))
    if run is None:
        raise Skipped("no JPEG decoder is installed (simplejpeg, opencv-python-headless or Pillow)")
    taken = seconds_of(lambda: [run(encoded) for _ in range(BLOCK)], task.cap_s, most=200)
    size = {"width_px": WIDTH, "height_px": HEIGHT, "bytes": len(encoded)}
    return rate(BLOCK, taken, "images/s a core", decoder=str(name), **size)


def picture() -> Pixels:
    """A picture with soft and fine structure, the same each time."""
    noise = np.random.default_rng(0)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    soft = 128 + 60 * np.sin(x / 40)[..., None] * np.cos(y / 30)[..., None] + noise.normal(0, 9, (HEIGHT, WIDTH, 3))
    pixels: Pixels = np.clip(soft, 0, 255).astype(np.uint8)
    return pixels


def _decoders() -> Iterator[tuple[str, bytes, Callable[[bytes], object]]]:
    for name, prepare in (("simplejpeg", _simplejpeg), ("cv2", _opencv), ("PIL.Image", _pillow)):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        yield (name.partition(".")[0], *prepare(module))


def _simplejpeg(module: Any) -> tuple[bytes, Callable[[bytes], object]]:
    encoded: bytes = module.encode_jpeg(picture(), quality=QUALITY)
    return encoded, module.decode_jpeg


def _opencv(module: Any) -> tuple[bytes, Callable[[bytes], object]]:
    module.setNumThreads(1)
    _, encoded = module.imencode(".jpg", picture(), [module.IMWRITE_JPEG_QUALITY, QUALITY])
    return encoded.tobytes(), lambda data: module.imdecode(np.frombuffer(data, np.uint8), module.IMREAD_COLOR)


def _pillow(module: Any) -> tuple[bytes, Callable[[bytes], object]]:
    held = io.BytesIO()
    module.fromarray(picture()).save(held, "JPEG", quality=QUALITY)
    return held.getvalue(), lambda data: module.open(io.BytesIO(data)).convert("RGB")
