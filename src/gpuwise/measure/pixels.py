"""Bytes of an image file → RGB pixels, without a framework: whole by Pillow, or scaled down while decoding (JPEG).

Scaled decoding drops high DCT coefficients, so a large JPEG costs little more than its entropy decoding; the crop is
then resized bilinearly by OpenCV. `whole` takes everything else: CMYK, 16-bit, grey, palette, PNG, WebP, TIFF.
Alpha is dropped, as `PIL.Image.convert("RGB")` does. Rotation stated in EXIF is applied by both.
"""

from __future__ import annotations

import io
import math
import os
import struct
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image, ImageOps

Pixels = NDArray[np.uint8]
"""(height, width, 3), RGB."""

AREA, RATIO, TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10
"""Of a random crop: share of the image and width / height, as RandomResizedCrop draws them (Szegedy 2014, §6)."""
VALIDATION_SCALE = 256 / 224
"""Short side that a validation image is resized to, over the side of the crop."""
_FACTORS = (8, 4, 2)
"""Of scaled decoding: those that libjpeg-turbo does in SIMD."""
_HEAD = 1 << 17


class Damaged(Exception):
    """A file that is no readable image; its text says why."""


class Box(NamedTuple):
    """Part of an image, px."""

    top: int
    left: int
    height: int
    width: int


Choose = Callable[[int, int], Box]
"""(height, width) of the upright image → the part that is wanted."""


class Reader:
    """Reads files into one buffer that is used again: fresh memory for each would cost as much as the reading."""

    def __init__(self) -> None:
        self._buffer = np.empty(1 << 20, np.uint8)

    def read(self, path: str) -> Pixels:
        """The bytes of a file, valid until the next call; raises Damaged where it cannot be read."""
        try:
            with open(path, "rb", buffering=0) as stream:
                size = os.fstat(stream.fileno()).st_size
                if size > self._buffer.size:
                    self._buffer = np.empty(size * 5 // 4, np.uint8)
                return self._buffer[: stream.readinto(self._buffer.data[:size])]
        except OSError as error:
            raise Damaged(error.strerror or "cannot be read") from None


def random_box(draw: Random, height: int, width: int) -> Box:
    """A crop as torchvision's RandomResizedCrop draws it, with its fallback to a central one."""
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    for _ in range(TRIES):
        area, ratio = height * width * draw.uniform(*AREA), math.exp(draw.uniform(low, high))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return Box(draw.randint(0, height - h), draw.randint(0, width - w), h, w)
    w, h = min(width, max(1, round(height * RATIO[1]))), min(height, max(1, round(width / RATIO[0])))
    return Box((height - h) // 2, (width - w) // 2, h, w)


def central_box(scale: float, height: int, width: int) -> Box:
    """The square in the middle, of the short side / scale."""
    side = max(1, round(min(height, width) / scale))
    return Box((height - side) // 2, (width - side) // 2, side, side)


def all_of_it(height: int, width: int) -> Box:
    return Box(0, 0, height, width)


# ---- whole ----


def whole(data: Pixels) -> Pixels:
    """The upright image in full size, of any format that Pillow reads; raises Damaged."""
    try:
        with Image.open(io.BytesIO(data.tobytes())) as image:
            return _rgb(ImageOps.exif_transpose(image))
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, Image.DecompressionBombError) as error:
        raise Damaged(str(error) or type(error).__name__) from None


def _rgb(image: Image.Image) -> Pixels:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _deep(np.asarray(image, np.float32), 65_535.0 if image.mode != "F" else 1.0)
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")
    return np.array(image.convert("RGB"))


def _deep(values: NDArray[np.float32], top: float) -> Pixels:
    """Grey of more than 8 bits; `convert` would clip it to white."""
    grey = np.clip(values * (255.0 / max(top, 1e-6)), 0, 255).round().astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)


# ---- scaled while decoding ----


class Decoder:
    """Decodes JPEG files into one buffer that is used again: what it returns is valid until the next call.

    scaled: by 2, 4 or 8 where the part stays large enough, with the quicker DCT and chroma; else as libjpeg-turbo does
    by default, to the last bit."""

    def __init__(self, *, scaled: bool) -> None:
        self._factors, self._quick = _FACTORS if scaled else (), scaled
        self._buffer: Pixels | None = None

    def decode(self, data: Pixels, size: int, choose: Choose) -> tuple[Pixels, Box]:
        """An image whose chosen part is at least `size` px a side where the original is, and that part of it.

        Falls back to `whole` for what is no plain JPEG. Raises Damaged."""
        try:
            return self._jpeg(data, size, choose)
        except ValueError:
            image = whole(data)
            return image, choose(*image.shape[:2])

    def _jpeg(self, data: Pixels, size: int, choose: Choose) -> tuple[Pixels, Box]:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
        if colours not in ("YCbCr", "RGB", "Gray"):
            raise ValueError(colours)
        turn = orientation(data)
        upright = (width, height) if turn > 4 else (height, width)
        box = choose(*upright)
        factor = next((f for f in self._factors if min(box.height, box.width) >= f * size), 1)
        image = upright_image(self._decoded(data, -(-height // factor), -(-width // factor)), turn)
        return image, _shrunk(box, factor, *image.shape[:2])

    def _decoded(self, data: Pixels, height: int, width: int) -> Pixels:
        need = height * width * 3
        if self._buffer is None or self._buffer.size < need:
            self._buffer = np.empty(need, np.uint8)
        decoded: Pixels = simplejpeg.decode_jpeg(
            data,
            min_height=height,
            min_width=width,
            fastdct=self._quick,
            fastupsample=self._quick,
            buffer=self._buffer,
        )
        return decoded


def _shrunk(box: Box, factor: int, height: int, width: int) -> Box:
    if factor == 1:
        return box
    h, w = min(max(1, round(box.height / factor)), height), min(max(1, round(box.width / factor)), width)
    return Box(min(round(box.top / factor), height - h), min(round(box.left / factor), width - w), h, w)


def resized(image: Pixels, box: Box, size: int, out: Pixels, *, flip: bool = False) -> None:
    """The part of the image, bilinearly resized to (size, size, 3), into `out`."""
    part = image[box.top : box.top + box.height, box.left : box.left + box.width]
    if flip:
        cv2.flip(cv2.resize(part, (size, size), interpolation=cv2.INTER_LINEAR), 1, dst=out)
    else:
        cv2.resize(part, (size, size), dst=out, interpolation=cv2.INTER_LINEAR)


def orientation(data: Pixels) -> int:
    """How the image must be turned to stand upright: 1 (not at all) to 8, from a JPEG's EXIF (CIPA DC-008, 4.6.4)."""
    head = data[:_HEAD].tobytes()
    at = 2
    while at + 10 < len(head) and head[at] == 0xFF and head[at + 1] != 0xDA:
        if head[at + 1] == 0xE1 and head[at + 4 : at + 10] == b"Exif\0\0":
            return _from_exif(head[at + 10 :])
        at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return 1


def _from_exif(tiff: bytes) -> int:
    order = "<" if tiff[:2] == b"II" else ">"
    try:
        (first,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, first)
        for i in range(min(count, 64)):
            tag, _, _, value = struct.unpack_from(order + "HHIH", tiff, first + 2 + 12 * i)
            if tag == 0x0112:
                return value if 1 <= value <= 8 else 1
    except struct.error:
        return 1
    return 1


def upright_image(image: Pixels, turn: int) -> Pixels:
    if turn == 1:
        return image
    if turn > 4:
        image = image.transpose(1, 0, 2)
    if turn in (2, 3, 6, 7):
        image = image[:, ::-1]
    if turn in (3, 4, 7, 8):
        image = image[::-1]
    return np.ascontiguousarray(image)
