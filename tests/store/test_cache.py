"""Catalogues on disk: the same after reading, whole or not at all."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from gpuwise.catalogue import DATES, NUMBERS, TEXT, Catalogue, Coded, from_rows
from gpuwise.errors import Message
from gpuwise.store import cache
from gpuwise.store.cache import Loaded


def made() -> Loaded:
    rows = [
        {"provider": "a", "note": "one € and a\nline", "price_usd_per_hour": 0.1 + 0.2, "observed": 20_000},
        {"provider": "b" * 500, "note": None, "price_usd_per_hour": 2.0, "observed": 20_000},
    ]
    reject = Message("{file}, line {line}: {why}", file="x", line=2, why=Message("on {day}", day=date(2026, 1, 2)))
    catalogue = from_rows("mine", "1", rows, ids=["x", "y"])
    return Loaded(catalogue=Catalogue(**columns(catalogue) | {"rejects": (reject,)}), notes=(Message("read"),))


def columns(catalogue: Catalogue) -> dict[str, object]:
    names = ("name", "version", *TEXT, *NUMBERS, *DATES, "ids")
    return {name: getattr(catalogue, name) for name in names}


def readable(catalogue: Catalogue) -> dict[str, object]:
    def plain(value: object) -> object:
        if isinstance(value, Coded):
            return [value[i] for i in range(len(value))]
        return np.array2string(value, precision=17) if isinstance(value, np.ndarray) else value

    return {name: plain(value) for name, value in columns(catalogue).items()}


def never() -> Loaded:
    raise AssertionError("made although it was kept")


def test_an_entry_is_made_once_and_reads_back_as_it_was(cache_folder: Path) -> None:
    first = cache.cached("k", made)
    again = cache.cached("k", never)
    assert readable(again.catalogue) == readable(first.catalogue) == readable(made().catalogue)
    assert [str(m) for m in again.catalogue.rejects] == ["x, line 2: on 2026-01-02"]
    assert again.notes == (Message("read"),)
    assert [p.suffix for p in cache_folder.rglob("*") if p.is_file()] == [".npz"]


def test_an_empty_catalogue_reads_back(tmp_path: Path) -> None:
    cache.save(tmp_path / "e.npz", Loaded(catalogue=from_rows("none", "0", [])))
    loaded, notes = cache.load(tmp_path / "e.npz")
    assert loaded is not None
    assert (len(loaded.catalogue), notes) == (0, ())


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda whole: whole[: len(whole) // 2], id="cut in the middle"),
        pytest.param(lambda whole: b"", id="empty"),
        pytest.param(lambda whole: whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], id="one bit flipped"),
        pytest.param(lambda whole: whole + b"x", id="too long"),
        pytest.param(lambda whole: b"\x80\x04K\x01." * 20, id="a pickle"),
    ],
)
def test_uc_123_a_damaged_entry_is_put_aside_and_made_anew(damage, cache_folder: Path) -> None:  # type: ignore[no-untyped-def]
    cache.cached("k", made)
    (entry,) = cache_folder.rglob("*.npz")
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    again = cache.cached("k", made)
    assert readable(again.catalogue) == readable(made().catalogue)
    assert "damaged: it was put aside" in str(again.notes[-1])
    assert entry.with_suffix(".damaged").exists()
    assert cache.cached("k", never).notes == (Message("read"),)


def test_a_cache_folder_that_cannot_be_used_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GPUWISE_CACHE", str(tmp_path / "file" / "cache"))
    assert readable(cache.cached("k", made).catalogue) == readable(made().catalogue)


def test_only_the_newest_entries_stay(cache_folder: Path) -> None:
    for number in range(cache.KEPT_ENTRIES + 3):
        cache.cached(f"k{number}", made)
    assert len(list(cache_folder.rglob("*.npz"))) == cache.KEPT_ENTRIES


def test_a_key_changes_with_every_part() -> None:
    assert len({cache.key("a", "b"), cache.key("ab"), cache.key("a", "b", ""), cache.key("b", "a")}) == 4
