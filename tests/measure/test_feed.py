"""Both feeds read what people have, draw the same for one seed whatever the workers, and count what they leave out."""

from __future__ import annotations

import io
import os
import struct
from functools import partial
from pathlib import Path
from random import Random

import cv2
import numpy as np
import pytest
import simplejpeg
import torch
from PIL import Image

from gpuwise.errors import DataError, MeasurementFailed
from gpuwise.measure.data import Sample, Tally
from gpuwise.measure.feed import Batch, Exact, Fast, Feed, Order, feed_ceiling, loader
from gpuwise.measure.pixels import (
    Box,
    Damaged,
    Decoder,
    Reader,
    all_of_it,
    central_box,
    orientation,
    random_box,
    upright_image,
    whole,
)

KINDS = ("exact", "fast")


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def smooth(height: int, width: int, turn: float = 0.0) -> np.ndarray:
    """A picture without edges, so that ways to resize it differ by little."""
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    channels = [127 + 100 * np.sin(2 * np.pi * (f * x + g * y) + turn) for f, g in ((1, 0.5), (0.5, 1), (0.8, -0.6))]
    return np.stack(channels, axis=2).round().astype(np.uint8)


def jpeg(path: Path, image: np.ndarray) -> str:
    path.write_bytes(simplejpeg.encode_jpeg(np.ascontiguousarray(image), quality=95, colorsubsampling="420"))
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Sample]:
    folder = tmp_path_factory.mktemp("pictures")
    return [Sample(jpeg(folder / f"{n:02d}.jpg", smooth(90 + n, 120, n)), n % 3) for n in range(20)]


def some(samples, kind="fast", workers=0, training=True, **more) -> Feed:
    given = {"image_size": 32, "batch": 4, "seed": 5, **more}
    return loader(samples, feed=kind, workers=workers, training=training, **given)


def all_batches(made: Feed, epoch: int = 0) -> list[Batch]:
    try:
        return list(made.epoch(epoch))
    finally:
        made.close()


def pixels_of(batches: list[Batch]) -> torch.Tensor:
    return torch.cat([b.images for b in batches])


# ---- the same for one seed ----


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_the_same_whatever_the_number_of_workers(files, kind):
    alone, two = (all_batches(some(files, kind, workers)) for workers in (0, 2))
    assert torch.equal(pixels_of(alone), pixels_of(two))
    assert [b.labels.tolist() for b in alone] == [b.labels.tolist() for b in two]
    assert {b.worker for b in alone} == {-1}
    assert {b.worker for b in two} == {0, 1}


def test_seed_and_epoch_change_order_and_crops_and_nothing_else_does(files):
    made = some(files)
    first, second = all_batches(made, 0), all_batches(made, 1)
    assert torch.equal(pixels_of(first), pixels_of(all_batches(made, 0)))
    assert not torch.equal(pixels_of(first), pixels_of(second))
    assert not torch.equal(pixels_of(first), pixels_of(all_batches(some(files, seed=6), 0)))
    torch.manual_seed(99)
    assert torch.equal(pixels_of(first), pixels_of(all_batches(some(files), 0)))


def test_workers_stay_between_epochs_and_take_the_new_epoch(files):
    made, alone = some(files, workers=2), some(files)
    try:
        for epoch in (0, 1, 0):
            assert torch.equal(pixels_of(list(made.epoch(epoch))), pixels_of(list(alone.epoch(epoch))))
    finally:
        made.close()


def test_an_epoch_can_go_on_in_the_middle(files):
    whole_epoch, rest = all_batches(some(files), 3), list(some(files).epoch(3, start=2))
    assert len(rest) == len(whole_epoch) - 2
    assert torch.equal(pixels_of(whole_epoch[2:]), pixels_of(rest))


def test_the_random_numbers_of_training_are_left_alone(files):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    for kind in KINDS:
        all_batches(some(files, kind))
    assert torch.equal(torch.rand(3), expected)


# ---- which samples ----


def test_every_sample_comes_once_an_epoch_and_the_ranks_share_them():
    orders = [Order(43, 5, seed=1, training=True, rank=r, world=2) for r in (0, 1)]
    seen = [[index for keys in order for _, index in keys] for order in orders]
    assert [len(s) for s in seen] == [20, 20]
    assert len(set(seen[0]) | set(seen[1])) == 40
    assert [len(order) for order in orders] == [4, 4]


def test_validation_keeps_every_sample_in_order_with_a_small_last_batch(files):
    made = some(files[:10], training=False)
    assert [len(b.labels) for b in all_batches(made)] == [4, 4, 2]
    assert [n for b in all_batches(made) for n in b.labels.tolist()] == [s.label for s in files[:10]]
    assert (len(made), made.samples) == (3, 10)


def test_fewer_samples_than_a_batch_are_one_batch(files):
    assert [len(b.labels) for b in all_batches(some(files[:3]))] == [3]


# ---- pixels ----


def test_batches_are_bytes_height_by_width_by_colour(files):
    for kind in KINDS:
        batch = all_batches(some(files, kind))[0]
        assert batch.images.shape == (4, 32, 32, 3)
        assert batch.images.dtype == torch.uint8
        assert batch.images.is_contiguous()
        assert batch.labels.dtype == torch.int64
        as_trained = batch.images.permute(0, 3, 1, 2)
        assert as_trained.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("training", [True, False])
def test_both_feeds_give_nearly_the_same_pixels(files, training):
    exact, fast = (pixels_of(all_batches(some(files, kind, training=training))).float() for kind in KINDS)
    error = ((exact - fast) ** 2).mean().item()
    assert 10 * np.log10(255**2 / error) > 32


def test_large_files_are_decoded_scaled_and_small_ones_whole():
    decoder, picture = Decoder(scaled=True), smooth(400, 400)
    for side, expected in ((1600, 200), (900, 225), (400, 200), (390, 390)):
        data = np.frombuffer(simplejpeg.encode_jpeg(cv2.resize(picture, (side, side))), np.uint8)
        image, box = decoder.decode(data, 200, all_of_it)
        assert image.shape[0] == expected
        assert box == Box(0, 0, expected, expected)


def test_the_exact_feed_decodes_to_the_last_bit_as_libjpeg_turbo_does_by_default():
    data = np.frombuffer(simplejpeg.encode_jpeg(smooth(77, 101), colorsubsampling="420"), np.uint8)
    image, _ = Decoder(scaled=False).decode(data, 8, all_of_it)
    assert np.array_equal(image, np.asarray(Image.open(io.BytesIO(data.tobytes()))))


def test_a_crop_drawn_by_chance_lies_inside_and_has_the_wanted_share_and_shape():
    draw = Random(0)
    boxes = [random_box(draw, 300, 400) for _ in range(2000)]
    assert all(b.top >= 0 and b.left >= 0 and b.top + b.height <= 300 and b.left + b.width <= 400 for b in boxes)
    shares = [b.height * b.width / 120_000 for b in boxes]
    assert 0.075 < min(shares) < 0.1
    assert 0.9 < max(shares) <= 1.0
    assert all(0.72 < b.width / b.height < 1.4 for b in boxes)
    assert random_box(draw, 1, 5000) == Box(0, 2499, 1, 1)
    assert central_box(256 / 224, 256, 512) == Box(16, 144, 224, 224)


@pytest.mark.parametrize("turn", range(1, 9))
def test_rotation_stated_in_the_file_is_applied_by_both_feeds(tmp_path, turn):
    image = Image.fromarray(smooth(80, 60))
    exif = Image.Exif()
    exif[0x0112] = turn
    image.save(tmp_path / "turned.jpg", quality=95, exif=exif)
    data = Reader().read(str(tmp_path / "turned.jpg"))
    assert orientation(data) == turn
    upright = whole(data)
    assert np.array_equal(upright, upright_image(np.asarray(Image.open(tmp_path / "turned.jpg")), turn))
    for kind, way in (("fast", Fast(32)), ("exact", Exact(32, training=True))):
        decoded, box = way.decode(data, all_of_it)
        shape = decoded.shape[:2] if kind == "fast" else decoded.shape[1:]
        assert tuple(shape) == upright.shape[:2]
        out, expected = np.empty((32, 32, 3), np.uint8), cv2.resize(upright, (32, 32), interpolation=cv2.INTER_AREA)
        way.place(decoded, box, out, False)
        assert np.abs(out.astype(int) - expected).mean() < 4


def test_a_broken_rotation_is_none():
    head = b"\xff\xd8\xff\xe1\x00\x20Exif\0\0"
    for tail in (b"", b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x63\0\0"):
        assert orientation(np.frombuffer(head + tail + bytes(20), np.uint8)) == 1


def formats(folder: Path) -> dict[str, Path]:
    """One picture in the forms that collections hold, beside its plain JPEG."""
    image = Image.fromarray(smooth(64, 64))
    grey, deep = image.convert("L"), np.asarray(image.convert("L")).astype(np.uint16) * 257
    alpha = image.copy()
    alpha.putalpha(128)
    plain = {
        "png": (image, "a.png"), "webp": (image, "a.webp"), "tiff": (image, "a.tiff"), "bmp": (image, "a.bmp"),
        "alpha": (alpha, "alpha.png"), "palette": (image.quantize(256), "palette.png"), "gif": (image, "a.gif"),
        "cmyk": (image.convert("CMYK"), "cmyk.jpg"), "grey jpeg": (grey, "grey.jpg"), "grey png": (grey, "grey.png"),
        "png called jpg": (image, "really.png"),
    }  # fmt: skip
    made = {}
    for name, (picture, file) in plain.items():
        picture.save(folder / file, quality=95, lossless=True)
        made[name] = folder / file
    made["png called jpg"] = made["png called jpg"].rename(folder / "really.jpg")
    cv2.imwrite(str(folder / "deep.png"), deep)
    cv2.imwrite(str(folder / "deep.tiff"), deep)
    cv2.imwrite(str(folder / "deep_rgb.png"), smooth(64, 64)[:, :, ::-1].astype(np.uint16) * 257)
    return made | {"16-bit grey": folder / "deep.png", "16-bit tiff": folder / "deep.tiff",
                   "16-bit colour": folder / "deep_rgb.png"}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_of_file_is_read_with_its_colours(tmp_path, kind):
    colour = smooth(64, 64)
    grey = np.repeat(np.asarray(Image.fromarray(colour).convert("L"))[:, :, None], 3, axis=2)
    made = formats(tmp_path)
    wanted = {name: grey if "grey" in name or name == "16-bit tiff" else colour for name in made}
    samples = [Sample(str(path), 0) for path in made.values()]
    batch = next(some(samples, kind, training=False, image_size=64, batch=len(samples)).epoch(0))
    assert batch.bad == {}
    for name, image in zip(made, batch.images.numpy(), strict=True):
        side = round(64 / (256 / 224))
        edge = (64 - side) // 2
        expected = cv2.resize(wanted[name][edge : edge + side, edge : edge + side], (64, 64))
        assert np.abs(image.astype(int) - expected).mean() < 12, name


# ---- damaged files ----


def damaged(folder: Path) -> list[Sample]:
    good = Path(jpeg(folder / "good.jpg", smooth(90, 120))).read_bytes()
    contents = {"cut.jpg": good[: len(good) // 2], "empty.jpg": b"", "text.jpg": b"<html>404</html>"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [Sample(str(folder / name), 1) for name in (*contents, "gone.jpg")]


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_replaced_in_training_and_counted_once(files, tmp_path, kind):
    bad = damaged(tmp_path)
    made = some([*files, *bad], kind)
    for epoch in (0, 1):
        assert [len(b.labels) for b in made.epoch(epoch)] == [4] * 6
    assert made.tally.bad.keys() == {s.path for s in bad}
    assert made.skipped == {"damaged": 4}
    assert made.tally.bad[bad[3].path] == "No such file or directory"


def test_the_replacement_is_the_same_whatever_the_workers(files, tmp_path):
    samples = [*files[:9], *damaged(tmp_path), *files[9:]]
    alone, two = (pixels_of(all_batches(some(samples, workers=w))) for w in (0, 2))
    assert torch.equal(alone, two)


def test_a_damaged_file_is_left_out_of_validation_and_not_replaced(files, tmp_path):
    samples = [*files[:6], *damaged(tmp_path)[:1], *files[6:9]]
    batches = all_batches(some(samples, training=False))
    assert [len(b.labels) for b in batches] == [4, 3, 2]
    assert [n for b in batches for n in b.labels.tolist()] == [s.label for s in files[:9]]


def test_too_many_damaged_files_stop_the_run_and_are_named(files, tmp_path):
    bad = [Sample(str(tmp_path / f"lost{n}.jpg"), 0) for n in range(11)]
    made = some([*files, *bad], training=False)
    with pytest.raises(DataError, match=r"11 of \d+ images cannot be read: .*lost0.jpg \(No such file"):
        list(made.epoch(0))


def test_one_tally_counts_for_training_and_validation(files, tmp_path):
    tally, bad = Tally(30), damaged(tmp_path)
    for training in (True, False):
        all_batches(some([*files, *bad], training=training, tally=tally))
    assert len(tally.bad) == 4


def test_a_batch_of_nothing_but_damaged_files_is_not_handed_out(tmp_path):
    made = some(damaged(tmp_path), training=False)
    assert list(made.epoch(0)) == []


def test_a_file_with_harmless_bytes_at_its_end_is_read(tmp_path):
    path = Path(jpeg(tmp_path / "tail.jpg", smooth(64, 64)))
    path.write_bytes(path.read_bytes() + b"\0" * 400)
    assert [b.bad for b in all_batches(some([Sample(str(path), 0)]))] == [{}]


def test_what_is_no_image_says_why():
    for content in (b"", b"GIF89a", struct.pack("<4sI", b"RIFF", 9)):
        with pytest.raises(Damaged, match="cannot identify image file"):
            whole(np.frombuffer(content, np.uint8))


# ---- times, totals, ceiling ----


@pytest.mark.parametrize("workers", [0, 1])
def test_times_of_reading_decoding_and_augmenting_ride_with_the_batch(files, workers):
    made = some(files, workers=workers)
    batches = all_batches(made)
    for batch in batches:
        fetch, *parts = batch.times.tolist()
        assert all(part > 0 for part in parts)
        assert fetch >= sum(parts)
        assert batch.affinity == len(os.sched_getaffinity(0))
    total = made.totals[-1 if workers == 0 else 0]
    assert total.samples == 20
    assert total.seconds == pytest.approx(torch.stack([b.times for b in batches]).sum(0).tolist())


def test_shared_memory_needed_is_known_before_the_run(files):
    assert some(files, workers=2, prefetch=3).shared_bytes == 2 * 3 * 4 * 3 * 32 * 32
    assert some(files).shared_bytes == 0


def test_the_ceiling_is_samples_a_second_with_an_interval(files):
    found = feed_ceiling(some(files), seconds=0.1, warm_s=0.0)
    assert 0 < found.low <= found.value <= found.high


def test_the_ceiling_is_what_a_slow_loader_gives(files):
    now = [0.0]

    class Slow(Fast):
        def decode(self, data, choose):
            now[0] += 0.01
            return super().decode(data, choose)

    made = some(files)
    made.loader.dataset._way = Slow(32)
    found = feed_ceiling(made, seconds=2.0, clock=lambda: now[0])
    assert (found.low, found.value, found.high) == pytest.approx((100, 100, 100))


def test_a_ceiling_of_nothing_is_an_error_and_no_endless_loop(tmp_path):
    with pytest.raises(DataError, match="There are no samples to feed"):
        feed_ceiling(some(damaged(tmp_path), training=False), seconds=0.1)


def test_uc_020_a_worker_that_is_killed_is_said_with_the_shared_memory_it_needs(files):
    class Deadly(Fast):
        def decode(self, data, choose):
            os.kill(os.getpid(), 9)

    made = some(files, workers=1, batch=4)
    made.loader.dataset._way = Deadly(32)
    with pytest.raises(MeasurementFailed, match=r"A loader worker died: DataLoader worker .*--shm-size"):
        list(made.epoch(0))


def test_files_are_read_into_memory_that_is_used_again(tmp_path):
    reader = Reader()
    for size in (10, 3 << 20, 5):
        (tmp_path / "f").write_bytes(os.urandom(size))
        assert reader.read(str(tmp_path / "f")).tobytes() == (tmp_path / "f").read_bytes()
    assert io.BytesIO(reader.read(str(tmp_path / "f")).tobytes()).getbuffer().nbytes == 5


def test_a_crop_is_chosen_on_the_upright_image():
    seen = []
    image = Image.fromarray(smooth(40, 90))
    exif = Image.Exif()
    exif[0x0112] = 6
    stream = io.BytesIO()
    image.save(stream, "JPEG", exif=exif)

    def choose(height, width):
        seen.append((height, width))
        return all_of_it(height, width)

    Decoder(scaled=True).decode(np.frombuffer(stream.getvalue(), np.uint8), 16, partial(choose))
    assert seen == [(90, 40)]
