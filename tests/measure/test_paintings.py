"""Painters differ in how they paint and not in colours; paintings are the same for one seed and never half written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from gpuwise.errors import InvalidInput, MeasurementFailed
from gpuwise.measure.data import find
from gpuwise.measure.making import each
from gpuwise.measure.paintings import HANDS, MOST_PAINTERS, Pixels, make, painting, style

SMALL = (400, 500)
"""Long side, px: strokes shrink with it."""
PAINTERS, TRAINED, HELD_OUT = 8, 14, 8


def colours(image: Pixels) -> np.ndarray:
    """Square roots of an 8 × 8 × 8 colour histogram (so that a distance of two is Hellinger's)."""
    part = np.ascontiguousarray(image[::3, ::3])
    counts = cv2.calcHist([part], [0, 1, 2], None, [8, 8, 8], [0, 256] * 3).ravel()
    return np.sqrt(counts / counts.sum())


def texture(image: Pixels) -> np.ndarray:
    """Directions of edges at three widths, and how much the strongest edges stand out."""
    grey = cv2.cvtColor(cv2.resize(image, (128, 128), interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
    found = []
    for blur in (0.8, 1.6, 3.2):
        soft = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), blur)
        dx, dy = cv2.Sobel(soft, cv2.CV_32F, 1, 0), cv2.Sobel(soft, cv2.CV_32F, 0, 1)
        size, angle = np.hypot(dx, dy) + 1e-3, np.arctan2(dy, dx) % np.pi
        counts, _ = np.histogram(angle, 8, (0, np.pi), weights=size)
        coherence = np.hypot((size * np.cos(2 * angle)).sum(), (size * np.sin(2 * angle)).sum()) / size.sum()
        local = [cv2.GaussianBlur(m, (0, 0), 5) for m in (size * np.cos(2 * angle), size * np.sin(2 * angle), size)]
        along = (np.hypot(local[0], local[1]) / local[2]).mean()
        found += [*np.sqrt(counts / counts.sum()), coherence, along, size.std() / size.mean() / 2]
    return np.array(found)


@pytest.fixture(scope="module")
def shown() -> dict[str, list[Pixels]]:
    """Paintings of eight painters, painter after painter."""
    counts = {"known": (TRAINED, 0), "asked": (HELD_OUT, 5000)}
    return {
        part: [painting(p, start + n, long_side=SMALL) for p in range(PAINTERS) for n in range(count)]
        for part, (count, start) in counts.items()
    }


def right(feature: Callable[[Pixels], np.ndarray], shown: dict[str, list[Pixels]]) -> float:
    """Share of the paintings asked for whose painter the better of two plain classifiers on the feature tells."""
    x, y = (np.array([feature(image) for image in shown[part]]) for part in ("known", "asked"))
    label, truth = np.repeat(np.arange(PAINTERS), TRAINED), np.repeat(np.arange(PAINTERS), HELD_OUT)
    near = ((y[:, None] - x[None]) ** 2).sum(2)
    votes = label[np.argsort(near, axis=1)[:, :7]]
    voted = np.array([np.bincount(row, minlength=PAINTERS).argmax() for row in votes])
    middle = x.reshape(PAINTERS, TRAINED, -1).mean(1)
    nearest = ((y[:, None] - middle[None]) ** 2).sum(2).argmin(1)
    return max(float((guess == truth).mean()) for guess in (voted, nearest))


def test_colours_tell_at_most_half_of_eight_painters(shown):
    assert right(colours, shown) <= 0.5


def test_a_simple_texture_tells_most_of_eight_painters(shown):
    assert right(texture, shown) >= 0.7


def test_a_painting_follows_from_seed_painter_and_number():
    first = painting(3, 1, seed=7, long_side=SMALL)
    assert np.array_equal(first, painting(3, 1, seed=7, long_side=SMALL))
    others = [(3, 1, 8), (3, 2, 7), (4, 1, 7)]
    assert not any(np.array_equal(first, painting(p, n, seed=s, long_side=SMALL)) for p, n, s in others)


def test_paintings_have_the_size_of_museum_photographs():
    image = painting(0, 0)
    assert 1600 <= max(image.shape[:2]) <= 2000
    assert 0.7 < min(image.shape[:2]) / max(image.shape[:2]) < 1


def test_every_painter_has_a_style_of_his_own():
    styles = [style(p) for p in range(MOST_PAINTERS)]
    assert len(set(styles)) == MOST_PAINTERS == 54
    assert len({s.hand for s in styles[: len(HANDS)]}) == len(HANDS)


def test_an_exhibition_can_be_read_as_image_folder_and_is_not_made_twice(tmp_path):
    said: list[str] = []
    made = make(tmp_path, painters=3, train=4, validation=2, long_side=SMALL, tell=lambda m: said.append(m.text()))
    assert (len(made.classes), len(made.train), len(made.validation)) == (3, 12, 6)
    assert said == ["making 18 paintings, once"]
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jpg")}
    assert make(tmp_path, painters=3, train=4, validation=2, long_side=SMALL) == made
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jpg")} == files
    folder = find(next(tmp_path.iterdir()))
    assert (folder.classes, folder.train, folder.validation) == (made.classes, made.train, made.validation)


def test_what_is_missing_is_made_and_the_rest_stays(tmp_path):
    made = make(tmp_path, painters=2, train=3, validation=1, long_side=SMALL)
    lost, kept = Path(made.train[1].path), Path(made.train[0].path)
    before, stamp = lost.read_bytes(), kept.stat().st_mtime_ns
    lost.unlink()
    make(tmp_path, painters=2, train=3, validation=1, long_side=SMALL)
    assert lost.read_bytes() == before
    assert kept.stat().st_mtime_ns == stamp


def test_held_out_paintings_are_none_of_those_trained_on(tmp_path):
    made = make(tmp_path, painters=2, train=2, validation=2, long_side=SMALL)
    contents = [Path(s.path).read_bytes() for s in (*made.train, *made.validation)]
    assert len(set(contents)) == 8


@pytest.mark.parametrize("counts", [{"painters": 1}, {"painters": 55}, {"train": 0}, {"validation": -1}])
def test_counts_out_of_range_are_refused(tmp_path, counts):
    with pytest.raises(InvalidInput, match="Ask for"):
        make(tmp_path, **counts)


def test_work_beyond_its_time_ends_with_what_was_done():
    with pytest.raises(MeasurementFailed, match=r"After 0 s: \d+ paintings\. Run it again to go on from there"):
        each(str, range(100), keep=lambda _: None, told="{} paintings".format, tell=lambda _: None, limit_s=0.0)


def test_every_item_is_done_once_and_its_result_kept():
    kept: list[int] = []
    each(lambda n: n * n, range(500), keep=kept.append, told=str, tell=lambda _: None)
    assert sorted(kept) == [n * n for n in range(500)]


def test_palettes_are_drawn_alike_for_all_painters(shown):
    light = np.array([image.mean() for image in shown["known"]]).reshape(PAINTERS, TRAINED)
    assert np.std(light.mean(axis=1)) < np.mean(light.std(axis=1)) / 2
    assert len(np.unique(light)) == PAINTERS * TRAINED
