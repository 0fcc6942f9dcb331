"""The run store on a real PostgreSQL, started in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwise.store.runs import Run, Store, open_store


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        pytest.skip("no PostgreSQL server is installed (Debian: postgresql)")
    return found[-1].parent if found else Path(on_path or "").parent


def _as_server() -> dict[str, object]:
    """PostgreSQL refuses to run as root: run it as its own user then."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    pytest.importorskip("psycopg")
    binaries, who = _binaries(), _as_server()
    with tempfile.TemporaryDirectory(prefix="gpuwise-pg-") as folder:
        if who:
            os.chown(folder, who["user"], who["group"])  # type: ignore[arg-type]
        data = f"{folder}/data"

        def call(*command: str) -> None:
            quiet = subprocess.DEVNULL
            subprocess.run(command, check=True, stdout=quiet, cwd=folder, **who)  # type: ignore[call-overload]

        trusting = ("-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        call(f"{binaries}/initdb", "-D", data, *trusting)
        options = f"-c listen_addresses='' -k {folder} -c fsync=off"
        call(f"{binaries}/pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            call(f"{binaries}/pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


@pytest.fixture
def store(url: str) -> Store:
    return open_store(url)


def run(workload: str, number: int) -> Run:
    return Run(
        kind="rank",
        schema=1,
        created_utc="2026-11-30T10:00:00Z",
        data_version="2026.11.30",
        workload=workload,
        payload={"n": number, "text": "Läufe €"},
    )


def test_a_run_reads_back_as_it_was_put(store: Store) -> None:
    key = store.put(run("a", 1))
    assert store.get(key).payload == {"n": 1, "text": "Läufe €"}
    assert [r.id for r in store.list(workload="a")] == [key]


WRITER = """
import sys
from gpuwise.store.runs import Run, open_store
for n in range(10):
    open_store(sys.argv[1]).put(
        Run(kind="rank", schema=1, created_utc="t", data_version="v", workload=sys.argv[2], payload={"n": n})
    )
"""


def test_a_team_that_writes_at_the_same_time_loses_no_run(url: str) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, url, f"w{i}"]) for i in range(3)]
    assert [w.wait(120) for w in writers] == [0] * 3
    kept = [(r.workload, r.payload["n"]) for r in open_store(url).list() if r.workload.startswith("w")]
    assert sorted(kept) == [(f"w{i}", n) for i in range(3) for n in range(10)]


def test_an_existing_store_is_opened_and_not_made_again(url: str, store: Store) -> None:
    key = store.put(run("b", 7))
    assert open_store(url).get(key).payload["n"] == 7


def test_the_place_is_shown_as_an_address(store: Store) -> None:
    assert store.place.startswith("postgresql://tester@/postgres?host=")
