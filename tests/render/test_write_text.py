"""A file is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuwise.errors import InvalidInput
from gpuwise.render import write_text


def test_an_existing_file_is_replaced_and_keeps_its_rights(tmp_path):
    file = tmp_path / "report.html"
    file.write_text("old")
    file.chmod(0o640)
    write_text(file, "new €")
    assert file.read_text(encoding="utf-8") == "new €"
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_has_the_rights_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new.html", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "new.html").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("path", ["nowhere/report.html", "folder", "file/report.html"])
def test_an_unwritable_path_is_an_error_that_says_what_to_do_and_leaves_nothing(tmp_path, path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InvalidInput, match="cannot write") as error:
        write_text(tmp_path / path, "half a report")
    assert "folder that exists" in str(error.value.hint)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "kept"


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")
    write_text(tmp_path / "link.html", "new")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced():
    write_text("/dev/null", "x")
    assert not Path("/dev/null").is_file()


def test_uc_121_paths_in_any_script_are_written(tmp_path):
    folder = tmp_path / "Läufe" / "実験 №1"
    folder.mkdir(parents=True)
    write_text(folder / "ставка.html", "ü € 🎨")
    assert (folder / "ставка.html").read_bytes() == "ü € 🎨".encode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_answered_by_making_room():
    with pytest.raises(InvalidInput, match="cannot write /dev/full") as error:
        write_text("/dev/full", "x")
    assert "Make room" in str(error.value.hint)
