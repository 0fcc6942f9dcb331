"""Paintings made on the spot, for training without data: N painters who differ in how they paint, not in colours.

A painter is a hand (the law that strokes follow: level, swirling, radial, dots, facets …) and a touch (width, edge,
composition). Palettes, light and size are drawn for each painting from one distribution that all painters share, so a
colour histogram tells little of the painter: `benchmarks/paintings.py` trains both, tests/measure/test_paintings.py
holds the histogram to 50 % on 8 painters.

A painting follows from (VERSION, seed, painter, number) alone, and is written whole or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import simplejpeg
from numpy.random import Generator
from numpy.typing import NDArray

from gpuwise.errors import InvalidInput, Message
from gpuwise.measure.data import Dataset, Tell, labelled, silent
from gpuwise.measure.making import each, make_room, write
from gpuwise.store.cache import folder as cache_folder

VERSION = 2
"""Of the paintings; raise it whenever one would look otherwise."""
PAINTERS, TRAIN, VALIDATION = 8, 60, 15
LONG_SIDE_PX = (1600, 2000)
QUALITY = 90
BYTES_EACH = 1.1e6
"""Of a file, at most on average (0.5 to 1.1 MB by hand)."""
LIMIT_S = 900.0
_SCALE = 2
"""Strokes are drawn at half size; what is finer is the canvas, put on in full size."""
_LEVELS, _PASSES, _POINTS = 6, 2, 7
_SHAPES = 48
_NOISE_PX = 640
STRAY = 0.15
"""Share of strokes in the colour of another shape."""

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float64]
Angles = Callable[[Floats, Floats], Floats]
"""Places (0 to 1 across, 0 to 1 down) → direction of a stroke there, radians."""


class Hand(NamedTuple):
    """law: what strokes follow. length: of a stroke in widths (0: dots). curl: by how much it bends on its way."""

    law: str
    length: float
    curl: float = 0.0


class Touch(NamedTuple):
    """width: of a stroke, px at half size. soft: blur over width. layout: of the big shapes."""

    width: float
    soft: float
    layout: str


HANDS = (
    Hand("level", 9), Hand("swirl", 8), Hand("any", 0), Hand("facets", 3), Hand("upright", 9), Hand("any", 6, 2.6),
    Hand("radial", 8), Hand("cross", 5), Hand("wave", 7),
)  # fmt: skip
TOUCHES = (
    Touch(34, 0.0, "bands"), Touch(26, 0.0, "free"), Touch(38, 0.12, "centre"), Touch(42, 0.0, "free"),
    Touch(30, 0.2, "bands"), Touch(23, 0.0, "centre"),
)  # fmt: skip
MOST_PAINTERS = len(HANDS) * len(TOUCHES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    hand: Hand
    touch: Touch


def style(painter: int) -> Style:
    """How the painter paints; the first nine all have another hand."""
    turn, hand = divmod(painter, len(HANDS))
    return Style(hand=HANDS[hand], touch=TOUCHES[(hand + turn) % len(TOUCHES)])


# ---- a whole exhibition ----


def make(
    folder: Path | None = None,
    *,
    painters: int = PAINTERS,
    train: int = TRAIN,
    validation: int = VALIDATION,
    seed: int = 0,
    long_side: tuple[int, int] = LONG_SIDE_PX,
    limit_s: float = LIMIT_S,
    tell: Tell = silent,
) -> Dataset:
    """So many paintings of each painter to train on and to hold out; those that are there already are not made again.

    folder: where to; the user's cache by default. It can be read as ImageFolder afterwards. Raises InvalidInput for
    counts out of range, DataError for a full disk, MeasurementFailed when `limit_s` is over.
    """
    _check(painters, train, validation)
    root = (folder or cache_folder() / "paintings") / f"{VERSION}-{seed}-{long_side[0]}-{long_side[1]}"
    parts = [
        [(_file(root, part, p, n), (seed, p, n + start)) for p in range(painters) for n in range(count)]
        for part, count, start in (("train", train, 0), ("val", validation, 1 << 20))
    ]
    _paint([job for part in parts for job in part if not job[0].exists()], long_side, limit_s, tell, root)
    rows = [[(str(path), path.parent.name) for path, _ in part] for part in parts]
    described = Message("paintings made here: {painters} painters, seed {seed}", painters=painters, seed=seed)
    return labelled(rows[0], rows[1], root, layout="made", described=described)


def _check(painters: int, train: int, validation: int) -> None:
    if not 2 <= painters <= MOST_PAINTERS:
        raise InvalidInput(
            Message("{painters} painters: there can be 2 to {most}.", painters=painters, most=MOST_PAINTERS),
            Message("Ask for 8."),
        )
    if train < 1 or validation < 0:
        raise InvalidInput(
            Message("{train} and {validation} paintings of a painter.", train=train, validation=validation),
            Message("Ask for at least 1 to train on and 0 to hold out."),
        )


def _file(root: Path, part: str, painter: int, number: int) -> Path:
    return root / part / f"painter-{painter + 1:02d}" / f"{number:04d}.jpg"


Job = tuple[Path, tuple[int, int, int]]


def _paint(jobs: list[Job], long_side: tuple[int, int], limit_s: float, tell: Tell, root: Path) -> None:
    if not jobs:
        return
    make_room(root, len(jobs) * BYTES_EACH * (long_side[1] / LONG_SIDE_PX[1]) ** 2)
    tell(Message("making {count} paintings, once", count=len(jobs)))

    def work(job: Job) -> None:
        path, (seed, painter, number) = job
        image = painting(painter, number, seed=seed, long_side=long_side)
        write(path, simplejpeg.encode_jpeg(image, quality=QUALITY, colorsubsampling="420"))

    def told(done: int) -> Message:
        return Message("{done} of {count} paintings made", done=done, count=len(jobs))

    each(work, jobs, keep=lambda _: None, told=told, tell=tell, limit_s=limit_s)


# ---- one painting ----


def painting(
    painter: int,
    number: int,
    *,
    seed: int = 0,
    long_side: tuple[int, int] = LONG_SIDE_PX,
    size: tuple[int, int] | None = None,
) -> Pixels:
    """RGB, (height, width, 3): the same for the same numbers. size: (height, width), drawn from `long_side` without."""
    draw = np.random.default_rng([VERSION, seed, painter, number])
    height, width = size or _size(draw, long_side)
    small = (-(-height // _SCALE), -(-width // _SCALE))
    how = style(painter)
    touch = how.touch._replace(width=how.touch.width * draw.uniform(0.8, 1.25) * max(small) / 900)
    canvas = _scene(draw, small, touch, how.hand)
    image = np.empty((height, width, 3), np.uint8)
    cv2.resize(canvas, (width, height), dst=image, interpolation=cv2.INTER_LINEAR)
    return _weave(draw, image)


def _size(draw: Generator, long_side: tuple[int, int]) -> tuple[int, int]:
    long = int(draw.integers(long_side[0], long_side[1] + 1))
    short = round(long * draw.uniform(0.72, 0.9))
    return (short, long) if draw.random() < 0.5 else (long, short)


def _scene(draw: Generator, size: tuple[int, int], touch: Touch, hand: Hand) -> Pixels:
    """All strokes, at half size: pass over pass, colour by colour."""
    palette, shapes = _palette(draw), _shapes(draw, touch.layout)
    canvas = np.empty((*size, 3), np.uint8)
    canvas[:] = palette[0]
    angles = _law(draw, hand.law)
    rgb = _paints(draw, palette)
    for share in np.linspace(1.25, 0.85, _PASSES):
        pass_touch = touch._replace(width=touch.width * share)
        lines = _strokes(draw, size, pass_touch, hand, angles)
        which = _colours(draw, lines, shapes, len(palette), size)
        _draw(draw, canvas, lines, (which, rgb), pass_touch, hand)
    if touch.soft:
        cv2.GaussianBlur(canvas, (0, 0), touch.soft * touch.width, dst=canvas)
    return canvas


def _palette(draw: Generator) -> Pixels:
    """5 to 9 colours around one or two hues, of one light: one distribution for all painters."""
    count = int(draw.integers(5, 10))
    hues = (draw.uniform(0, 180) + draw.choice([0, draw.uniform(40, 90)], count) + draw.normal(0, 12, count)) % 180
    saturation = np.clip(draw.normal(draw.uniform(60, 170), 45, count), 10, 245)
    light = np.clip(draw.permutation(np.linspace(draw.uniform(20, 70), draw.uniform(180, 250), count)), 0, 255)
    hsv = np.stack([hues, saturation, light], axis=1).astype(np.uint8)[None]
    rgb: Pixels = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)[0]
    return rgb


def _shapes(draw: Generator, layout: str) -> NDArray[np.float32]:
    """The big forms, 0 to 1, each value equally frequent: cut into as many steps as there are colours."""
    coarse = draw.normal(0, 1, (7, 7)).astype(np.float32)
    down, across = np.mgrid[-1 : 1 : _SHAPES * 1j, -1 : 1 : _SHAPES * 1j]
    field = cv2.resize(coarse, (_SHAPES, _SHAPES), interpolation=cv2.INTER_CUBIC)
    if layout == "bands":
        field = field + 2.2 * draw.choice([-1, 1]) * down
    elif layout == "centre":
        field = field + 2.6 * draw.choice([-1, 1]) * np.hypot(down, across)
    ranks = np.argsort(np.argsort(field.ravel())).reshape(_SHAPES, _SHAPES) / field.size
    shapes: NDArray[np.float32] = ranks.astype(np.float32)
    return shapes


# ---- strokes ----


def _law(draw: Generator, law: str) -> Angles:
    lean = draw.normal(0, 0.1)
    if law == "swirl":
        return _swirl(draw)
    if law == "radial":
        x0, y0 = draw.uniform(0.3, 0.7, 2)
        return lambda x, y: np.asarray(np.arctan2(y - y0, x - x0), np.float64)
    if law == "wave":
        turns, phase = draw.uniform(1.5, 2.5), draw.uniform(0, 2 * math.pi)
        return lambda x, y: 1.1 * np.sin(2 * math.pi * turns * x + phase)
    if law == "cross":
        return lambda x, y: lean + math.pi * draw.choice([0.25, 0.75], x.shape)
    if law in ("any", "facets"):
        return lambda x, y: draw.uniform(0, 2 * math.pi, x.shape)
    return lambda x, y: np.full_like(x, lean + (math.pi / 2 if law == "upright" else 0.0))


def _swirl(draw: Generator) -> Angles:
    """Around a few centres, each with its reach and sense of rotation."""
    centres = draw.uniform(0, 1, (int(draw.integers(3, 6)), 2))
    sense = draw.choice([-1.0, 1.0], len(centres))

    def angles(x: Floats, y: Floats) -> Floats:
        dx, dy = x[:, None] - centres[:, 0], y[:, None] - centres[:, 1]
        weight = sense / (dx**2 + dy**2 + 0.01)
        return np.asarray(np.arctan2((dx * weight).sum(1), (-dy * weight).sum(1)), np.float64)

    return angles


def _strokes(draw: Generator, size: tuple[int, int], touch: Touch, hand: Hand, angles: Angles) -> Floats:
    """Points (strokes, points, 2) in px: so many strokes that they cover the canvas about one and a half times."""
    height, width = size
    length = touch.width * hand.length
    covered = touch.width * max(length, touch.width * 0.8)
    count = max(int(1.5 * height * width / covered), 8)
    x, y = draw.uniform(0, 1, (2, count))
    if hand.law == "facets":
        return _corners(draw, np.stack([x * width, y * height], 1), length)
    if not length:
        return np.repeat(np.stack([x * width, y * height], 1)[:, None], 2, axis=1)
    lengths = length * draw.uniform(0.7, 1.3, count) / (_POINTS - 1)
    bend = hand.curl * draw.choice([-1.0, 1.0], count) / (_POINTS - 1)
    start = angles(x, y) + draw.normal(0, 0.12, count)
    steady = hand.law in ("any", "cross")
    points = [np.stack([x * width, y * height], 1)]
    for i in range(_POINTS - 1):
        turn = (start if steady or not i else angles(x, y)) + bend * i
        x, y = x + lengths * np.cos(turn) / width, y + lengths * np.sin(turn) / height
        points.append(np.stack([x * width, y * height], 1))
    return np.stack(points, 1)


def _corners(draw: Generator, centres: Floats, length: float) -> Floats:
    """Facets: uneven quadrangles around their centres."""
    turns = np.arange(4) * math.pi / 2 + draw.uniform(0, 2 * math.pi, (len(centres), 1))
    turns = turns + draw.normal(0, 0.3, turns.shape)
    reach = length * draw.uniform(0.4, 1.0, turns.shape)
    return np.asarray(centres[:, None] + np.stack([reach * np.cos(turns), reach * np.sin(turns)], 2))


def _colours(
    draw: Generator, lines: Floats, shapes: NDArray[np.float32], colours: int, size: tuple[int, int]
) -> NDArray[np.intp]:
    """Paint of each stroke: the colour of the shape that it lies in, sometimes another, at one of the levels."""
    height, width = size
    middle = lines.mean(1)
    row = np.clip(middle[:, 1] / height * _SHAPES, 0, _SHAPES - 1).astype(int)
    column = np.clip(middle[:, 0] / width * _SHAPES, 0, _SHAPES - 1).astype(int)
    stray = draw.random(len(lines)) < STRAY
    own = (shapes[row, column] * colours).astype(int)
    index = np.where(stray, draw.integers(0, colours, len(lines)), own)
    paints: NDArray[np.intp] = index * _LEVELS + draw.integers(0, _LEVELS, len(lines))
    return paints


def _paints(draw: Generator, palette: Pixels) -> NDArray[np.float64]:
    """Each colour at _LEVELS of light, (colours × levels, 3)."""
    steps = np.linspace(-1, 1, _LEVELS) * draw.uniform(0.15, 0.3)
    lit = palette[:, None] * (1 + steps[:, None]) + 40 * steps[:, None]
    return np.clip(lit, 0, 255).reshape(-1, 3)


def _draw(
    draw: Generator,
    canvas: Pixels,
    lines: Floats,
    paints: tuple[NDArray[np.intp], NDArray[np.float64]],
    touch: Touch,
    hand: Hand,
) -> None:
    """All strokes of a paint at once, the paints in a random order. paints: of each stroke, and their RGB."""
    points, (which, rgb) = np.round(lines).astype(np.int32), paints
    for paint in draw.permutation(np.unique(which)):
        chosen, colour = points[which == paint], rgb[paint].tolist()
        if hand.law == "facets":
            for corners in chosen:
                cv2.fillConvexPoly(canvas, corners, colour)
        else:
            thickness = max(1, round(touch.width * draw.uniform(0.75, 1.2)))
            cv2.polylines(canvas, [*chosen], False, colour, thickness)


# ---- canvas ----


def _weave(draw: Generator, image: Pixels) -> Pixels:
    """Grain of canvas and paint, in full size."""
    height, width = image.shape[:2]
    down, across = draw.integers(0, _NOISE_PX, 2)
    strength = draw.uniform(0.1, 0.3)
    grain = np.take(np.take(_noise(), np.arange(down, down + height), 0, mode="wrap"),
                    np.arange(across, across + width), 1, mode="wrap")  # fmt: skip
    cv2.addWeighted(image, 1.0, grain, strength, -128 * strength, dst=image)
    return image


@lru_cache(maxsize=1)
def _noise() -> Pixels:
    """Grey noise of three sizes around 128, (_NOISE_PX, _NOISE_PX, 3)."""
    draw = np.random.default_rng(VERSION)
    total = np.zeros((_NOISE_PX, _NOISE_PX))
    for step in (1, 2, 4):
        part = draw.normal(0, 18, (_NOISE_PX // step, _NOISE_PX // step))
        total += cv2.resize(part, (_NOISE_PX, _NOISE_PX), interpolation=cv2.INTER_LINEAR)
    return np.repeat(np.clip(total + 128, 0, 255).astype(np.uint8)[:, :, None], 3, axis=2)
