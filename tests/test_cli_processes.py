"""The command line as a process of its own: signals, pipes, full disks and consoles that know few signs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuwise.cli import Session, program
from gpuwise.errors import Message
from tests.pages import make_candidate, make_offer, make_ranking
from tests.test_cli import TODAY, Reply, World

ROOT = Path(__file__).parent.parent
STAND_IN = """
from tests.test_cli_processes import serve
serve()
"""


def serve() -> None:
    """One command line in a process of its own, with the stand-in for the world."""
    rows = tuple(make_candidate(make_offer("aws", f"g5 № {i}", "a10g", 1, 0.5 + i), 9.0) for i in range(3))
    world = World(Reply(make_ranking(rows, warnings=(Message("price in €"),))))
    if "slow" in sys.argv:
        world.instead = _wait
    if "nothing" in sys.argv:
        world.reply = Reply(make_ranking((), counts={"budget": 3}), exit_code=3)
    program.main(sys.argv[1:], obj=Session(world=world, today=TODAY))


def _wait() -> None:
    print("working", file=sys.stderr, flush=True)
    time.sleep(60)


def _environment(**more: str) -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": paths, "LC_ALL": "C.UTF-8", "COLUMNS": "100", **more}


def _python(code: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env=_environment(**environment),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_gpuwise_is_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuwise", "rank"],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gpuwise: WORKLOAD is missing")


def test_ctrl_c_ends_with_130_and_leaves_no_file(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STAND_IN, "rank", "slow", "--html", str(tmp_path / "report.html")],
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    assert process.stderr.readline() == "working\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "gpuwise: Interrupted.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["painter-heavy"], 0),
        (["painter-heavy", "--json"], 0),
        (["nothing", "--csv"], 3),
        (["nothing", "--help"], 0),
        (["painter-heavy", "--deadline", "soon", "--json"], 2),
    ],
)
def test_a_reader_who_leaves_early_changes_nothing_about_how_it_ends(args: list[str], code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", STAND_IN, "rank", *args],
        env=_environment(),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert done.returncode == code
    assert "Broken pipe" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["a"], "gpuwise: standard output cannot be written: No space left"),
        (["a", "--json", "--deadline", "3"], "gpuwise: --deadline: "),
    ],
)
def test_a_full_disk_behind_standard_output_is_one_error(args: list[str], error: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", STAND_IN, "rank", *args],
            env=_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(error)
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    ("environment", "form"),
    [
        ({"LC_ALL": "C"}, []),
        ({"PYTHONIOENCODING": "ascii"}, []),
        ({"PYTHONIOENCODING": "cp1252"}, []),
        ({"PYTHONIOENCODING": "ascii"}, ["--json"]),
        ({"PYTHONIOENCODING": "cp1252"}, ["--csv"]),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ["--markdown"]),
    ],
)
def test_uc_121_a_console_that_cannot_show_a_sign_never_makes_it_fail(
    environment: dict[str, str], form: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STAND_IN, "rank", "a", *form],
        env=_environment(**environment),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    if form:
        assert "g5 № 1" in done.stdout.decode("utf-8")


def test_closed_standard_output_and_error_are_no_fault() -> None:
    again = f"os.execv(sys.executable, [sys.executable, '-c', {STAND_IN!r}, 'rank', 'a'])"
    code = f"import os, sys; os.close(1); os.close(2); {again}"
    assert _python(code).returncode == 0


@pytest.mark.parametrize(
    ("args", "heavy"),
    [
        (["--help"], ["numpy", "scipy", "pydantic", "rich", "jinja2", "sqlalchemy", "babel", "gpuwise.request"]),
        (["rank", "--help"], ["numpy", "scipy", "pydantic", "rich", "jinja2", "sqlalchemy", "babel", "gpuwise.model"]),
    ],
)
def test_help_imports_nothing_heavy(args: list[str], heavy: list[str]) -> None:
    code = f"""
import sys
from gpuwise.cli import program
try:
    program.main({args!r})
except SystemExit:
    pass
print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)
"""
    assert _python(code).stderr == "[]\n"
