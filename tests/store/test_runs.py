"""Past runs, in SQLite."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwise.errors import DataError, InvalidInput, UnknownName
from gpuwise.store.facts import Facts
from gpuwise.store.runs import MIGRATIONS, Run, open_store
from gpuwise.store.tables import parse_offers


def run(workload: str = "painter-heavy", **more: object) -> Run:
    values = {"kind": "rank", "schema": 1, "created_utc": "2026-03-02T10:00:00Z", "data_version": "2026.03.01"} | more
    return Run(workload=workload, payload=values.pop("payload", {"n": 1}), **values)  # type: ignore[arg-type]


def test_a_run_reads_back_as_it_was_put(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "new" / "runs.sqlite3"))
    payload = {"text": "Läufe €", "price": 0.1 + 0.2, "nothing": None, "list": [1, {"a": True}]}
    key = store.put(run(payload=payload))
    back = open_store(store.place).get(key)
    assert (back.id, back.payload, back.created_utc) == (key, payload, "2026-03-02T10:00:00Z")


def test_runs_are_listed_newest_first_by_kind_and_workload(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs.sqlite3"))
    for kind, workload in (("rank", "a"), ("measurement", "a"), ("rank", "b")):
        store.put(run(workload, kind=kind))
    assert [r.id for r in store.list()] == [3, 2, 1]
    assert [r.id for r in store.list(kind="rank")] == [3, 1]
    assert [r.id for r in store.list(kind="rank", workload="a")] == [1]
    assert store.list(kind="plan") == ()


def test_uc_067_a_past_run_keeps_the_price_at_launch_when_the_type_is_gone(tmp_path: Path, facts: Facts) -> None:
    def month(text: str) -> dict[str, float | None]:
        catalogue = parse_offers(f"instance,gpu,price,currency\n{text}".encode(), "list.csv", facts).catalogue
        found = [catalogue.offer(i) for i in range(len(catalogue))]
        return {o.instance: o.price_usd_per_hour for o in found}

    store = open_store(str(tmp_path / "runs.sqlite3"))
    march = month("X,H100 SXM,2.10,USD\nY,A100-80GB,1.50,USD\n")
    key = store.put(run(payload={"offers": [{"instance": k, "price_usd_per_hour": v} for k, v in march.items()]}))
    april = month("Y,A100-80GB,1.20,USD\n")
    kept = {o["instance"]: o["price_usd_per_hour"] for o in store.get(key).payload["offers"]}
    assert kept == {"X": 2.10, "Y": 1.50}
    assert april == {"Y": 1.20}


def test_nan_never_enters_a_payload(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs.sqlite3"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.put(run(payload={"price": float("nan")}))
    assert store.list() == ()


def test_an_unknown_run_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"There is no run 7 in .*runs\.sqlite3"):
        open_store(str(tmp_path / "runs.sqlite3")).get(7)


WRITER = """
import sys
from gpuwise.store.runs import Run, open_store
for n in range(15):
    open_store(sys.argv[1]).put(
        Run(kind="rank", schema=1, created_utc="t", data_version="v", workload=sys.argv[2], payload={"n": n})
    )
"""


def test_writers_at_the_same_time_lose_no_run_not_even_when_the_store_is_new(tmp_path: Path) -> None:
    place = str(tmp_path / "runs.sqlite3")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, place, f"w{i}"]) for i in range(4)]
    assert [w.wait(120) for w in writers] == [0] * 4
    kept = open_store(place).list()
    assert sorted((r.workload, r.payload["n"]) for r in kept) == [(f"w{i}", n) for i in range(4) for n in range(15)]


def test_the_version_of_a_store_is_kept_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "runs.sqlite3"
    open_store(str(place)).put(run())
    with sqlite3.connect(place) as connection:
        assert connection.execute("select version from schema_version").fetchall() == [(len(MIGRATIONS),)]
        connection.execute("update schema_version set version = 99")
    connection.close()
    with pytest.raises(DataError, match="has version 99; this gpuwise knows"):
        open_store(str(place))


def test_a_file_that_is_no_store_is_one_clear_error(tmp_path: Path) -> None:
    place = tmp_path / "runs.sqlite3"
    place.write_text("this is a letter to my grandmother\n" * 100)
    with pytest.raises(DataError, match=r"runs\.sqlite3 is no run store, or it is damaged"):
        open_store(str(place))


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidInput, match=r"cannot be used .* GPUWISE_STORE"):
        open_store(str(tmp_path / "file" / "runs.sqlite3"))


def test_a_store_that_may_only_be_read_is_read_and_not_written(tmp_path: Path) -> None:
    place = tmp_path / "runs.sqlite3"
    open_store(str(place)).put(run())
    locked = open_store(f"sqlite:///file:{place}?mode=ro&uri=true")
    assert len(locked.list()) == 1
    with pytest.raises(InvalidInput, match=r"cannot be used .*readonly database"):
        locked.put(run())


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("postgresql://me:secret@127.0.0.1:1/x", "cannot be used .*refused"),
        ("nosuch://host/x", "No driver for nosuch"),
        ("://", "cannot be read"),
    ],
)
def test_an_address_that_leads_nowhere_is_one_clear_error_without_the_password(place: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        open_store(place)
    assert "secret" not in str(caught.value)


def test_the_environment_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWISE_STORE", str(tmp_path / "team.sqlite3"))
    assert open_store().place == str(tmp_path / "team.sqlite3")
