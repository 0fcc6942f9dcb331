"""Re-encoded entries: whole or not at all, made once, made anew when the original changes; and what is advised."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import simplejpeg

from gpuwise.errors import DataError, MeasurementFailed, Message
from gpuwise.measure import making
from gpuwise.measure.advice import AllocatorGain, Costs, Workers, advice
from gpuwise.measure.cache import build, payback_epochs, short_side_px
from gpuwise.measure.data import Dataset, labelled
from gpuwise.measure.trial import imagefolder, measure, own, rate


def picture(path: Path, height: int = 150, width: int = 200, shade: int = 0) -> Path:
    y, x = np.mgrid[0 : 255 : height * 1j, 0 : 255 : width * 1j]
    image = np.stack([x, y, np.full_like(x, shade)], axis=2).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(simplejpeg.encode_jpeg(image, quality=95))
    return path


def collection(root: Path, count: int = 6) -> Dataset:
    rows = [(str(picture(root / f"{n}.jpg", shade=20 * n)), "ab"[n % 2]) for n in range(count)]
    return labelled(rows[:4], rows[4:], root, layout="folders", described=Message("six pictures"))


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jpg"))


def test_entries_have_the_short_side_that_training_needs_and_the_same_picture(tmp_path):
    source = collection(tmp_path / "in")
    made = build(source, 56, folder=tmp_path / "out")
    assert (made.short_px, made.made, made.kept) == (64, 6, 0)
    assert made.dataset.cached
    assert [s.label for s in made.dataset.train] == [s.label for s in source.train]
    for old, new in zip(source.train, made.dataset.train, strict=True):
        image, expected = cv2.imread(new.path), cv2.imread(old.path)
        assert image.shape == (64, 85, 3)
        assert np.abs(image.astype(int) - cv2.resize(expected, (85, 64), interpolation=cv2.INTER_AREA)).mean() < 3
    assert made.convert_s is not None
    assert made.convert_s > 0
    assert made.after_bytes == np.mean([p.stat().st_size for p in entries(tmp_path / "out")])
    assert made.before_bytes == np.mean([Path(s.path).stat().st_size for s in (*source.train, *source.validation)])


def test_256_px_serve_crops_of_224():
    assert short_side_px(224) == 256


def test_entries_are_made_once(tmp_path):
    source = collection(tmp_path / "in")
    first = build(source, 56, folder=tmp_path / "out")
    stamps = [p.stat().st_mtime_ns for p in entries(tmp_path / "out")]
    again = build(source, 56, folder=tmp_path / "out")
    assert (again.made, again.kept, again.convert_s) == (0, 6, None)
    assert again.dataset == first.dataset
    assert [p.stat().st_mtime_ns for p in entries(tmp_path / "out")] == stamps


def test_other_sizes_and_qualities_have_entries_of_their_own(tmp_path):
    source = collection(tmp_path / "in")
    folders = {
        build(source, size, folder=tmp_path, quality=q).folder for size, q in ((56, 90), (112, 90), (56, 80), (56, 90))
    }
    assert len(folders) == 3


def test_an_original_that_changed_is_made_anew(tmp_path):
    source = collection(tmp_path / "in")
    before = build(source, 56, folder=tmp_path / "out").dataset.train[0].path
    picture(Path(source.train[0].path), shade=250)
    os.utime(source.train[0].path, (1, 1))
    after = build(source, 56, folder=tmp_path / "out")
    assert (after.made, after.kept) == (1, 5)
    assert after.dataset.train[0].path != before
    assert cv2.imread(after.dataset.train[0].path)[..., 0].mean() > 240


def test_what_was_cut_off_goes_on_where_it_stopped(tmp_path):
    source = collection(tmp_path / "in")
    for path in entries(build(source, 56, folder=tmp_path / "out").folder)[:2]:
        path.unlink()
    again = build(source, 56, folder=tmp_path / "out")
    assert (again.made, again.kept) == (2, 4)


def test_small_originals_are_not_enlarged(tmp_path):
    rows = [(str(picture(tmp_path / f"{n}.jpg", 30, 40)), "ab"[n]) for n in range(2)]
    source = labelled(rows, [], tmp_path, layout="folders", described=Message("two"))
    made = build(source, 56, folder=tmp_path / "out")
    assert cv2.imread(made.dataset.train[0].path).shape == (30, 40, 3)


def test_damaged_and_missing_originals_are_left_out_and_counted(tmp_path):
    source = collection(tmp_path / "in")
    Path(source.train[1].path).write_bytes(b"no image")
    Path(source.validation[0].path).unlink()
    made = build(source, 56, folder=tmp_path / "out")
    assert (len(made.dataset.train), len(made.dataset.validation)) == (3, 1)
    assert made.dataset.skipped == {"damaged": 2}
    assert made.made == 4


def test_too_many_damaged_originals_are_an_error(tmp_path):
    source = collection(tmp_path / "in", 12)
    for sample in (*source.train, *source.validation)[1:]:
        Path(sample.path).write_bytes(b"no image")
    with pytest.raises(DataError, match=r"11 of 12 images cannot be read: .*jpg \(cannot identify image file"):
        build(source, 56, folder=tmp_path / "out")


def test_a_disk_with_too_little_room_is_an_error_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(making.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(DataError, match=r"has 0.00 GiB free, 0.00 GiB are needed\. Free some space"):
        build(collection(tmp_path / "in"), 56, folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_is_one_error_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    source, moved, count = collection(tmp_path / "in"), os.replace, [0]

    def full(draft, path):
        count[0] += 1
        if count[0] > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        moved(draft, path)

    with monkeypatch.context() as patched:
        patched.setattr(making.os, "replace", full)
        with pytest.raises(
            DataError, match=r"The disk is full: .* takes no more\. What was finished stays\. Free some"
        ):
            build(source, 56, folder=tmp_path / "out")
    assert len(entries(tmp_path / "out")) == 2
    assert sorted(p for p in (tmp_path / "out").rglob("*") if p.is_file()) == entries(tmp_path / "out")
    assert build(source, 56, folder=tmp_path / "out").kept == 2


def test_a_folder_that_cannot_be_written_is_an_error_with_its_reason(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(DataError, match=r"cannot be written: (Not a directory|File exists)"):
        build(collection(tmp_path / "in"), 56, folder=tmp_path / "file")


BUILD = """
import sys
from pathlib import Path
from types import SimpleNamespace
from gpuwise.measure.cache import build
from gpuwise.measure.data import find
made = build(find(Path(sys.argv[1])), 56, folder=Path(sys.argv[2]))
print(made.made + made.kept)
"""


def test_two_processes_may_build_at_once(tmp_path):
    for name in "ab":
        for n in range(12):
            picture(tmp_path / "in" / name / f"{n}.jpg", shade=10 * n)
    command = [sys.executable, "-c", BUILD, str(tmp_path / "in"), str(tmp_path / "out")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0].strip() for process in running] == ["24", "24"]
    files = [p for p in (tmp_path / "out").rglob("*") if p.is_file()]
    assert len(files) == 24
    assert all(cv2.imread(str(p)) is not None for p in files)


def test_drafts_that_a_killed_process_left_are_taken_away(tmp_path):
    source = collection(tmp_path / "in")
    folder = build(source, 56, folder=tmp_path / "out").folder
    one = entries(folder)[0]
    old, young = one.parent / ".old.part", one.parent / ".young.part"
    for draft in (old, young):
        draft.write_bytes(b"half")
    os.utime(old, (1, 1))
    one.unlink()
    build(source, 56, folder=tmp_path / "out")
    assert (old.exists(), young.exists()) == (False, True)


# ---- advice ----


def test_an_entry_pays_for_itself_when_it_saves_time():
    assert payback_epochs(0.012, 0.010, 0.002) == pytest.approx(1.5)
    assert payback_epochs(0.012, 0.002, 0.002) is None


def said(**facts) -> list[str]:
    return [message.text() for message in advice(**facts)]


def test_more_workers_are_advised_up_to_the_cpus_that_may_be_used():
    few = Workers(workers=2, cpus=16, feed_per_s=200, device_per_s=900)
    assert said(workers=few) == ["2 workers feed 200 samples/s, the devices take 900: use 9 (of 16 CPUs)"]
    short = Workers(workers=2, cpus=4, feed_per_s=200, device_per_s=900)
    assert said(workers=short) == [
        "2 workers feed 200 samples/s, the devices take 900: use 4 (of 4 CPUs)",
        "at 100 samples/s a worker the devices need 9 CPUs, 4 may be used",
    ]
    assert said(workers=Workers(workers=2, cpus=16, feed_per_s=901, device_per_s=900)) == []


def test_re_encoding_is_advised_with_what_it_costs_and_saves():
    costs = Costs(original_s=0.0105, cached_s=0.0005, convert_s=0.012, short_px=256)
    assert said(costs=costs) == [
        "re-encode once to 256 px: 12.0 ms an image once, 0.50 instead of 10.50 ms in every epoch (21.0×); "
        "it has paid for itself after 1.2 epochs"
    ]
    assert said(costs=Costs(original_s=0.0005, cached_s=0.0005, convert_s=0.012, short_px=256)) == []


def test_the_allocator_is_advised_only_where_it_was_measured_to_help():
    helps = AllocatorGain(without_per_s=30, with_per_s=49.5, pairs=3)
    assert said(allocator=helps) == [
        "set MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TRIM_THRESHOLD_=536870912: 50 instead of 30 images/s a CPU "
        "(1.65×, 3 pairs of runs)"
    ]
    assert said(allocator=AllocatorGain(without_per_s=30, with_per_s=31, pairs=3)) == []
    assert said() == []


def test_a_trial_in_a_fresh_process_gives_images_a_second(tmp_path):
    files = [str(picture(tmp_path / f"{n}.jpg")) for n in range(2)]
    assert rate("floor", files, 56, seconds=0.01) > 0


@pytest.mark.parametrize("way", [own("fast", 56), own("exact", 56), imagefolder(56)], ids=["fast", "exact", "PIL"])
def test_a_trial_takes_every_file_once_a_round(tmp_path, way):
    files = [str(picture(tmp_path / f"{n}.jpg")) for n in range(3)]
    rounds = []

    def once(seen):
        rounds.append(len(seen))
        way(seen)

    assert measure(once, files, 0.0) > 0
    assert rounds == [3, 3]


def test_a_trial_that_fails_says_why(tmp_path):
    with pytest.raises(MeasurementFailed, match=r"The trial of the loader failed: .*FileNotFoundError"):
        rate("floor", [str(tmp_path / "gone.jpg")], 56, seconds=0.01)
