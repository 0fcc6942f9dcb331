"""The log of `exit --watch`: one line a month, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuwise.errors import DataError
from gpuwise.sources import watch


def line(month="2026-12", **changes):
    figures = {
        "month": month, "as_of": f"{month}-03", "gpu": "h100-sxm5-80gb", "premium_usd": "1822639.33", "servers": "5",
        "barrier_usd": "1123232.75", "robust_month": "2026-06", "probable_month": "never", "p10_month": "2026-12",
        "p50_month": "2026-12", "p90_month": "never", "utilisation_fraction": "0.9", "break_even_fraction": "",
        "p_pays": "0.98", "fired": "no",
    }  # fmt: skip
    return {**figures, **changes}


def test_each_month_has_one_line_and_a_second_answer_takes_its_place(tmp_path: Path):
    log = tmp_path / "exit.csv"
    for one in (line("2026-10"), line("2026-12"), line("2026-11"), line("2026-12", fired="yes")):
        watch.append(log, one)
    assert [(row["month"], row["fired"]) for row in watch.read(log)] == [
        ("2026-10", "no"), ("2026-11", "no"), ("2026-12", "yes"),
    ]  # fmt: skip
    assert log.read_text("utf-8").count("\n") == 4
    assert os.listdir(tmp_path) == ["exit.csv"], "nothing is left beside it"


def test_an_empty_file_is_a_log_that_begins(tmp_path: Path):
    log = tmp_path / "exit.csv"
    log.touch()
    watch.append(log, line())
    assert watch.read(log) == [line()]
    assert log.read_text("utf-8").splitlines()[0] == ",".join(watch.COLUMNS)
    assert log.read_text("utf-8").count("\n") == 2


def written(*rows: str) -> str:
    return "\n".join((",".join(watch.COLUMNS), *rows)) + "\n"


GOOD = ",".join(line()[column] for column in watch.COLUMNS)


@pytest.mark.parametrize(
    "text",
    [
        "time,gpus\n2026-01-01,3\n",
        written("2026-12"),
        written(GOOD, GOOD),
        written(GOOD.replace("yes", "no").replace(",no", ",n")),
        written(GOOD.replace("1822639.33", "much")),
        written(GOOD.replace("1822639.33", "nan")),
        written(GOOD.replace("2026-12,", "2026-13,", 1)),
        written(GOOD)[:-1],
        written(GOOD)[:-20],
        "\x00\x01",
        "a letter to a friend\n",
        "\n",
        " ",
    ],
    ids=[
        "foreign",
        "short",
        "twice",
        "cut word",
        "no number",
        "nan",
        "no month",
        "no end",
        "cut",
        "binary",
        "text",
        "line",
        "blank",
    ],
)
def test_what_is_no_such_log_is_refused_and_left_as_it_is(tmp_path: Path, text: str):
    log = tmp_path / "exit.csv"
    log.write_text(text, "utf-8")
    with pytest.raises(DataError, match="--watch"):
        watch.append(log, line())
    assert log.read_text("utf-8") == text
    assert os.listdir(tmp_path) == ["exit.csv"]


def test_a_log_in_a_folder_that_is_not_there_or_that_is_one_is_refused(tmp_path: Path):
    for path in (tmp_path / "none" / "exit.csv", tmp_path):
        with pytest.raises(DataError, match="--watch"):
            watch.append(path, line())


def test_a_device_is_never_replaced():
    with pytest.raises(DataError, match="no file"):
        watch.append(Path(os.devnull), line())
    assert not Path(os.devnull).is_file()


def test_an_interrupted_write_leaves_the_log_and_nothing_beside_it(tmp_path: Path, monkeypatch):
    log = tmp_path / "exit.csv"
    watch.append(log, line("2026-11"))
    before = log.read_bytes()

    def stop(_handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        watch.append(log, line())
    assert log.read_bytes() == before
    assert os.listdir(tmp_path) == ["exit.csv"]


def test_rights_and_links_stay(tmp_path: Path):
    log, link = tmp_path / "exit.csv", tmp_path / "link.csv"
    watch.append(log, line("2026-11"))
    log.chmod(0o600)
    link.symlink_to(log)
    watch.append(link, line())
    assert link.is_symlink()
    assert log.stat().st_mode & 0o777 == 0o600
    assert len(watch.read(log)) == 2
