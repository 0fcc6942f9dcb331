"""How the server lives: it starts, answers several at once, is cancelled, crashes, is killed, and ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from tests.measure.records import gpu_record
from tests.web.conftest import ROOT

from gpuwise.measure import kept

SLOW = "/accuracy.json?fresh=true"
"""A question that takes minutes."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes under /proc")


def workers(process: subprocess.Popen[str]) -> set[int]:
    """The processes that answer: those that were spawned, without the one that cleans up after them."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    found = {int(pid) for pid in children}
    return {pid for pid in found if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()}


def until(true: Callable[[], Any], within_s: float = 30.0) -> Any:
    """What comes true within the time; fails where nothing does."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come true in time")


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def leaves(asking: httpx.Client, after_s: float, job: str = "") -> None:
    """Asks the slow question, and closes the connection after a while."""
    with pytest.raises(httpx.TimeoutException):
        asking.get(SLOW, timeout=after_s, headers={"x-gpuwise-job": job})


# ---- start and end ----


def test_ctrl_c_ends_it_with_130_and_leaves_no_process_and_no_folder(served, tmp_path):
    process, asking = served(TMPDIR=str(tmp_path))
    assert asking.get("/health").json() == {"status": "ok"}
    assert asking.get("/describe.json?target=painter-heavy").status_code == 200
    children = workers(process)
    assert len(children) == 2
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert "gpuwise: Interrupted." in (tmp_path / "said.txt").read_text()
    until(lambda: all(map(gone, children)))
    assert list(tmp_path.glob("gpuwise-web-*")) == []


def test_the_processes_that_answer_end_with_a_server_that_is_killed(served):
    process, asking = served()
    assert asking.get("/describe.json?target=painter-heavy").status_code == 200
    children = workers(process)
    process.kill()
    until(lambda: all(map(gone, children)))


def run(*words: str, code: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    program = ["-c", code] if code else ["-m", "gpuwise"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        [sys.executable, *program, "serve", "--no-open", *words], env={**env, **environment}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_port_that_is_taken_is_an_error_with_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("--port", str(taken.getsockname()[1]))
    assert (done.returncode, done.stdout) == (2, "")
    assert "in use" in done.stderr
    assert "--port 0" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--port", "x"], "--port"),
        (["--port", "65536"], "65535"),
        (["--port", "-1"], "--port"),
        (["--workers", "0"], "--workers"),
        (["--host", "0.0.0.0"], "--name"),
        (["--host", "no such host", "--port", "0"], "no such host"),
        (["--token", "short", "--port", "0"], "16"),
        (["--prot", "1"], "--port"),
        (["painter-heavy"], "painter-heavy"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_listens(words, says):
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.mark.parametrize("name", ["fastapi", "uvicorn", "python_multipart"])
def test_without_the_extra_it_says_how_to_get_it(name):
    code = f"import sys; sys.modules[{name!r}] = None\nfrom gpuwise.cli import main\nmain()"
    done = run(code=code)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("  Run: pip install 'gpuwise[web]'\n")
    assert name.replace("_", "-") in done.stderr


def test_everywhere_means_with_a_token_that_is_printed_or_given(served, tmp_path):
    given = "a-token-that-was-given-1"
    process, asking = served("--host", "0.0.0.0", "--name", "localhost", GPUWISE_TOKEN=given)
    assert asking.get("/health").status_code == 200
    assert asking.get("/rank").status_code == 401
    assert asking.get("/describe.json?target=painter-heavy", headers={"authorization": f"Bearer {given}"}).is_success
    assert "TLS" in (tmp_path / "said.txt").read_text()
    assert process.poll() is None


# ---- several at once ----

ESPERANTO = """
msgid ""
msgstr "Content-Type: text/plain; charset=utf-8\\n"

msgid "Ask"
msgstr "Demandu"
"""
IN_ESPERANTO = """
import sys
from pathlib import Path
from gpuwise import locale

for one in (locale.available, locale.activate, locale.negotiate):
    one.__defaults__ = (Path(FOLDER),)
from gpuwise.cli import main

if __name__ == "__main__":
    main()
"""
"""A server that has one more language: a process that answers reads this file anew."""


def test_two_languages_at_once_are_not_mixed(served, tmp_path):
    (tmp_path / "eo.po").write_text(ESPERANTO, "utf-8")
    (tmp_path / "program.py").write_text(IN_ESPERANTO.replace("FOLDER", repr(str(tmp_path))), "utf-8")
    _process, asking = served(program=(str(tmp_path / "program.py"),))

    def ask(number: int) -> tuple[str, str]:
        wanted = ("eo", "en", "zh")[number % 3]
        page = asking.get(f"/describe?target=painter-heavy&batch={number + 1}", headers={"accept-language": wanted})
        assert page.status_code == 200
        return wanted, page.text

    with ThreadPoolExecutor(8) as pool:
        for wanted, text in pool.map(ask, range(60)):
            language, button = ("eo", "Demandu") if wanted == "eo" else ("en", "Ask")
            assert f'<html lang="{language}">' in text
            assert f'<button type="submit">{button}</button>' in text


def test_who_asks_the_same_at_once_gets_one_answer_and_one_computation(served):
    _process, asking = served("--workers", "1")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _n: asking.get("/explain.json?workload=painter-heavy").content, range(16)))
    assert len(set(found)) == 1


# ---- cancelled and crashed ----


def test_closing_the_connection_ends_the_work_and_the_next_question_is_answered(served):
    process, asking = served("--workers", "1")
    (before,) = until(lambda: workers(process))
    with pytest.raises(httpx.TimeoutException):
        asking.get(SLOW, timeout=2)
    until(lambda: gone(before))
    assert asking.get("/describe.json?target=painter-heavy").status_code == 200
    assert before not in workers(process)


def test_work_that_two_wait_for_goes_on_when_one_of_them_leaves(served):
    process, asking = served("--workers", "1")
    (before,) = until(lambda: workers(process))
    with httpx.Client(base_url=asking.base_url) as other:
        patient = Thread(target=leaves, args=(other, 6.0))
        patient.start()
        with pytest.raises(httpx.TimeoutException):
            asking.get(SLOW, timeout=2)
        time.sleep(1)
        assert not gone(before)
        patient.join()
    until(lambda: gone(before))


def test_long_work_tells_how_far_it_is_and_leaves_room_for_short_questions(served):
    _process, asking = served("--workers", "2")
    other = httpx.Client(base_url=asking.base_url)
    slow = Thread(target=leaves, args=(other, 8.0, "mine"))
    slow.start()
    text = until(lambda: asking.get("/progress/mine").json()["text"], within_s=7)
    assert text
    with pytest.raises(httpx.TimeoutException):
        asking.get(SLOW + "&by=family", timeout=0.5)  # waits its turn
    assert asking.get("/describe.json?target=painter-heavy", timeout=10).status_code == 200
    slow.join()
    other.close()
    until(lambda: asking.get("/progress/mine").json() == {"text": ""})


def test_a_process_that_dies_is_an_answer_with_a_reason_and_the_server_goes_on(served):
    process, asking = served("--workers", "1")
    (pid,) = until(lambda: workers(process))
    assert asking.get("/describe.json?target=painter-heavy").status_code == 200
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(asking.get, SLOW)
        time.sleep(1)
        os.kill(pid, signal.SIGKILL)
        found = answer.result()
    assert found.status_code == 500
    assert "signal 9" in found.json()["error"]["message"]
    assert asking.get("/describe.json?target=painter-light").status_code == 200


def test_what_takes_too_long_is_given_up(places):
    from tests.web.conftest import in_a_thread

    from gpuwise.web.app import Settings

    with in_a_thread(Settings(workers=1, longest_s=3)) as asking:
        page = asking.get("/accuracy?fresh=true", headers={"accept": "text/html"})
        assert page.status_code == 503
        assert "too long" in page.text
        assert "text/html" in page.headers["content-type"]


# ---- killed ----


def test_a_server_killed_under_load_loses_no_run_that_it_said_it_keeps(served):
    record, said = kept.payload(gpu_record()), list[int]()
    for _life in range(3):
        process, asking = served()

        def put(asking: httpx.Client = asking) -> None:
            while True:
                try:
                    answer = asking.put("/runs", json=record)
                except httpx.TransportError:
                    return
                assert answer.status_code == 201
                said.append(answer.json()["run"])

        before = len(said)
        senders = [Thread(target=put) for _ in range(4)]
        for sender in senders:
            sender.start()
        until(lambda before=before: len(said) >= before + 15)
        process.kill()
        for sender in senders:
            sender.join()
    _process, asking = served()
    there = {row["run"] for row in asking.get("/runs.json?limit=all").json()["result"]["runs"]}
    assert len(said) >= 45
    assert len(set(said)) == len(said)
    assert set(said) <= there
