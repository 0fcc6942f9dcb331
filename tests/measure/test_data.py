"""Samples and labels from folders and tables as people have them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

from gpuwise.errors import DataError
from gpuwise.measure.data import Dataset, Sample, Tally, find, originals, shared_bytes

REAL = Path(__file__).parents[3] / "shared" / "data" / "paintings"


def picture(path: Path, height: int = 6, width: int = 8) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((height, width, 3), 90, np.uint8))
    return path


def folders(root: Path, counts: dict[str, int], names: str = "{n}.jpg") -> Path:
    for name, count in counts.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        for n in range(count):
            picture(root / name / names.format(n=n))
    return root


def texts(found: Dataset) -> list[str]:
    return [note.text() for note in found.notes]


def names(samples: tuple[Sample, ...], found: Dataset) -> dict[str, str]:
    return {os.path.basename(s.path): found.classes[s.label] for s in samples}


def table(root: Path, name: str, text: str, files: int = 0) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
    for n in range(files):
        picture(root / "images" / f"{n}.jpg")
    return root / name


# ---- a folder a class ----


def test_a_folder_a_class_is_split_by_class_and_the_same_for_one_seed(tmp_path):
    root = folders(tmp_path, {"monet": 20, "vermeer": 10})
    first, again, other = find(root, seed=1), find(root, seed=1), find(root, seed=2)
    assert first == again
    assert {s.path for s in first.validation} != {s.path for s in other.validation}
    assert Counter(s.label for s in first.validation) == {0: 4, 1: 2}
    assert Counter(s.label for s in first.train) == {0: 16, 1: 8}
    assert not {s.path for s in first.train} & {s.path for s in first.validation}
    assert texts(first) == ["6 images were held out by chance (seed 1)"]


@pytest.mark.parametrize("held", ["val", "valid", "Validation", "test"])
def test_the_held_out_folder_may_have_any_usual_name(tmp_path, held):
    folders(tmp_path / "train", {"a": 3, "b": 3})
    folders(tmp_path / held, {"a": 1, "b": 2})
    found = find(tmp_path)
    assert (len(found.train), len(found.validation), found.notes) == (6, 3, ())
    assert all(f"{os.sep}{held}{os.sep}" in s.path for s in found.validation)


def test_train_without_a_held_out_folder_is_split(tmp_path):
    folders(tmp_path / "train", {"a": 5, "b": 5})
    found = find(tmp_path)
    assert (len(found.train), len(found.validation)) == (8, 2)


def test_an_empty_class_is_left_out_and_counted(tmp_path):
    found = find(folders(tmp_path, {"a": 5, "b": 5, "nobody": 0}))
    assert found.classes == ("a", "b")
    assert found.skipped == {"empty class": 1}
    assert "1 classes have no images and were left out: nobody" in texts(found)


def test_held_out_images_of_an_unknown_class_are_left_out_and_counted(tmp_path):
    folders(tmp_path / "train", {"a": 3, "b": 3})
    folders(tmp_path / "val", {"a": 1, "b": 1, "c": 4})
    found = find(tmp_path)
    assert found.skipped == {"class not trained": 4}
    assert len(found.validation) == 2


def test_one_class_is_an_error_that_names_it(tmp_path):
    with pytest.raises(DataError, match="1 class with images: only"):
        find(folders(tmp_path, {"only": 3}))


def test_images_in_folders_of_a_class_folder_count_and_hidden_files_do_not(tmp_path):
    folders(tmp_path, {"a": 2, "b/1990": 2})
    picture(tmp_path / "a" / "._0.jpg")
    picture(tmp_path / ".thumbnails" / "0.jpg")
    picture(tmp_path / "a" / ".ipynb_checkpoints" / "0.jpg")
    found = find(tmp_path)
    assert found.classes == ("a", "b")
    assert len(found.train) + len(found.validation) == 4


def test_what_is_not_there_is_said_with_the_path(tmp_path):
    with pytest.raises(DataError, match=r"nowhere cannot be read: No such file or directory"):
        find(tmp_path / "nowhere")


def test_a_folder_without_images_is_an_error(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.txt").write_text("none")
    with pytest.raises(DataError, match="There are no images with labels in"):
        find(tmp_path)


def test_images_without_classes_have_no_labels(tmp_path):
    picture(tmp_path / "0.jpg")
    with pytest.raises(DataError, match="have no labels: no class folders and no table"):
        find(tmp_path)


def test_a_folder_one_level_too_high_names_the_right_one(tmp_path):
    folders(tmp_path / "images", {"monet": 2, "vermeer": 2})
    with pytest.raises(DataError, match="Its folder images holds class folders: give that one"):
        find(tmp_path)


def test_a_listing_that_fails_is_an_error_of_that_folder(tmp_path, monkeypatch):
    folders(tmp_path, {"a": 2, "b": 2})
    listed = os.scandir

    def refused(path):
        if str(path).endswith("b"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(DataError, match=r"b cannot be read: Permission denied\. Check the path and the permissions"):
        find(tmp_path)


# ---- tables ----


def rows(count: int, artists: tuple[str, ...] = ("Monet", "Vermeer")) -> str:
    return "".join(f"{n}.jpg,{artists[n % len(artists)]}\n" for n in range(count))


def test_a_table_of_files_and_artists_with_the_images_beside_it(tmp_path):
    table(tmp_path, "labels.csv", "filename,artist\n" + rows(10), files=10)
    for path in (tmp_path, tmp_path / "labels.csv"):
        found = find(path)
        assert found.classes == ("Monet", "Vermeer")
        assert (len(found.train), len(found.validation)) == (8, 2)
        assert found.described.text() == "images listed in a table, classes from its column artist"
    assert names(found.train, found).items() <= {f"{n}.jpg": ("Monet", "Vermeer")[n % 2] for n in range(10)}.items()


def test_painter_by_numbers_takes_artist_among_several_and_says_so(tmp_path):
    head = "artist,date,genre,pixelsx,pixelsy,size_bytes,source,style,title,artist_group,in_train,new_filename\n"
    body = "".join(
        f'{a},18{n:02d}.0,portrait,400,300,9000.0,wikiart,Baroque,"On, {n}",train_only,{n < 8},{n}.jpg\n'
        for n, a in enumerate(["Claude Monet", "Jan Vermeer"] * 5)
    )
    found = find(table(tmp_path, "all_data_info.csv", head + body, files=10))
    assert found.classes == ("Claude Monet", "Jan Vermeer")
    assert (len(found.train), len(found.validation)) == (8, 2)
    assert names(found.validation, found) == {"8.jpg": "Claude Monet", "9.jpg": "Jan Vermeer"}
    assert "classes are from the column artist; it also has style, genre" in texts(found)


def test_another_column_of_labels_can_be_named(tmp_path):
    text = "filename;artist;style\n" + "".join(f"{n}.jpg;A{n};S{n % 2}\n" for n in range(8))
    path = table(tmp_path, "train_info.csv", text, files=8)
    assert find(path, label="style").classes == ("S0", "S1")
    assert len(find(path).classes) == 8
    with pytest.raises(DataError, match="no column epoch; its columns are filename, artist, style"):
        find(path, label="epoch")


def test_wikiart_has_no_header_numbers_for_artists_and_a_table_of_held_out_images(tmp_path):
    folders(tmp_path / "wikiart", {"Realism": 6, "Baroque": 6})
    lists = tmp_path / "wikiart_csv"
    train = "".join(f"{s}/{n}.jpg,{n % 2}\n" for s in ("Realism", "Baroque") for n in range(4))
    held = "".join(f"{s}/{n}.jpg,{n % 2}\n" for s in ("Realism", "Baroque") for n in (4, 5))
    table(lists, "artist_val.csv", held)
    table(lists, "artist_class.txt", "0 Albrecht_Durer\n1 Boris_Kustodiev\n")
    found = find(table(lists, "artist_train.csv", train))
    assert found.classes == ("Albrecht_Durer", "Boris_Kustodiev")
    assert (len(found.train), len(found.validation)) == (8, 4)
    assert all(found.classes[s.label] == "Albrecht_Durer" for s in found.train if s.path.endswith("Realism/0.jpg"))


def test_class_folders_win_over_a_table_beside_them_and_the_note_says_how_to_take_it(tmp_path):
    folders(tmp_path, {"Realism": 3, "Baroque": 3})
    table(tmp_path, "artists.csv", "filename,artist\nRealism/0.jpg,A\nBaroque/0.jpg,B\n")
    found = find(tmp_path)
    assert found.classes == ("Baroque", "Realism")
    assert "classes are the folders; to train on the labels of artists.csv, give that file" in texts(found)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.tsv", "image\tpainter\n" + rows(6).replace(",", "\t")),
        ("labels.csv", "sep=;\nid;author;year\n" + "".join(f"{n};A{n % 2};1800\n" for n in range(6))),
        ("labels.csv", "\ufefffile_name,label\n" + rows(6)),
        ("labels.csv", "picture,who\n" + rows(6)),
    ],
)
def test_separators_marks_and_names_of_columns_are_told_by_themselves(tmp_path, name, content):
    found = find(table(tmp_path, name, content, files=6))
    assert len(found.classes) == 2
    assert len(found.train) + len(found.validation) == 6


def test_rows_without_a_label_are_counted(tmp_path):
    text = "filename,artist\n" + rows(10) + "10.jpg,\n11.jpg,nan\n"
    found = find(table(tmp_path, "labels.csv", text, files=12))
    assert found.skipped == {"no label": 2}
    assert "2 rows have no artist and were left out" in texts(found)


def test_no_label_at_all_is_an_error_of_the_column(tmp_path):
    text = "filename,artist\n" + "".join(f"{n}.jpg,\n" for n in range(4))
    with pytest.raises(DataError, match=r"No row of .* names an image and its label in the column artist") as caught:
        find(table(tmp_path, "labels.csv", text, files=4))
    assert caught.value.column == "artist"


def test_a_table_without_a_column_that_could_be_a_label_lists_its_columns(tmp_path):
    with pytest.raises(DataError, match="its columns are filename, width, height"):
        find(table(tmp_path, "labels.csv", "filename,width,height\n0.jpg,3,4\n1.jpg,3,4\n", files=2))


def test_a_few_missing_files_are_counted_and_many_are_an_error(tmp_path):
    found = find(table(tmp_path, "labels.csv", "filename,artist\n" + rows(30), files=25))
    assert found.skipped == {"file missing": 5}
    assert "5 files of the table are missing and were left out: 25.jpg, 26.jpg, 27.jpg …" in texts(found)
    with pytest.raises(DataError, match=r"20 of the 45 files named in .* are missing: 25.jpg, 26.jpg, 27.jpg …"):
        find(table(tmp_path, "labels.csv", "filename,artist\n" + rows(45)))


def test_a_table_with_no_image_beside_it_says_so(tmp_path):
    with pytest.raises(DataError, match=r"There are no images beside .*labels.csv"):
        find(table(tmp_path / "deep" / "er", "labels.csv", "filename,artist\n" + rows(30)))


def test_held_out_rows_whose_images_were_not_fetched_do_not_stop_the_training(tmp_path):
    body = "".join(f"{n}.jpg,{'AB'[n % 2]},{n < 10}\n" for n in range(60))
    found = find(table(tmp_path, "all_data_info.csv", "new_filename,artist,in_train\n" + body, files=10))
    assert found.skipped == {"file missing": 50}
    assert (len(found.train), len(found.validation)) == (8, 2)


def test_a_file_listed_twice_counts_once_so_that_nothing_held_out_was_trained_on(tmp_path):
    found = find(table(tmp_path, "labels.csv", "filename,artist\n" + rows(10) + "0.jpg,Vermeer\n", files=10))
    assert found.skipped == {"listed twice": 1}
    assert len({s.path for s in (*found.train, *found.validation)}) == 10


def test_names_that_occur_in_two_folders_are_told_apart_by_their_folder(tmp_path):
    folders(tmp_path / "art", {"x": 2, "y": 2})
    text = "path,label\nx/0.jpg,A\ny/0.jpg,B\nart/x/1.jpg,A\ny\\1.jpg,B\n"
    found = find(table(tmp_path, "labels.csv", text))
    assert {s.path[-7:]: found.classes[s.label] for s in (*found.train, *found.validation)} == {
        "x/0.jpg": "A", "x/1.jpg": "A", "y/0.jpg": "B", "y/1.jpg": "B",
    }  # fmt: skip


# ---- what the files are, and how many may be damaged ----


def test_original_sizes_are_the_mean_of_files(tmp_path):
    files = [picture(tmp_path / "a.png", 10, 20), picture(tmp_path / "b.png", 30, 20)]
    found = originals([Sample(str(f), 0) for f in files])
    assert found is not None
    assert found.area_px == 400
    assert found.size_bytes == np.mean([f.stat().st_size for f in files])
    assert originals([Sample(str(tmp_path / "gone.jpg"), 0)]) is None


def test_ten_damaged_files_are_borne_and_the_eleventh_is_not():
    tally = Tally(40)
    tally.add(29, {f"{n}.jpg": "truncated" for n in range(10)})
    with pytest.raises(DataError, match=r"11 of 41 images cannot be read: 0.jpg \(truncated\), 1.jpg .* …\. Fetch"):
        tally.add(1, {"10.jpg": "truncated"})


def test_five_per_cent_of_many_files_are_borne_and_each_counts_once():
    tally = Tally(1000)
    for _ in range(3):
        tally.add(950, {f"{n}.jpg": "empty" for n in range(50)})
    assert (tally.seen, len(tally.bad)) == (1000, 50)
    with pytest.raises(DataError, match="56 of 1056"):
        tally.add(0, {f"{n}.jpg": "empty" for n in range(50, 56)})


def test_uc_020_shared_memory_is_workers_times_prefetch_times_batch():
    assert shared_bytes(workers=8, prefetch=2, batch=256, image_size=224, value_bytes=4) == 2_466_250_752
    assert shared_bytes(workers=0, prefetch=2, batch=256, image_size=224) == 0


@pytest.mark.skipif(not REAL.is_dir(), reason="the photographs of real paintings are not here")
def test_real_paintings_of_four_genres_are_found():
    found = find(REAL)
    assert found.classes == ("genre-scene", "landscape", "portrait", "still-life")
    assert (len(found.train), len(found.validation), found.skipped) == (200, 48, {})
