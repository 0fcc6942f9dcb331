"""A server in this process for the tests of what it answers, and servers as processes for those of how it lives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from tests.web.asking import DAY, files

pytest.importorskip("fastapi", reason="the extra [web] is not installed")
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def places(tmp_path_factory) -> Iterator[Path]:
    """A folder with the person's files, beside a store and a cache that are the tests' own."""
    folder = tmp_path_factory.mktemp("web")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUWISE_CACHE", str(folder / "cache"))
        patch.setenv("GPUWISE_STORE", str(folder / "runs.sqlite3"))
        files(folder)
        yield folder


@pytest.fixture(scope="session")
def client(places) -> Iterator[httpx.Client]:
    """Asks a server that answers for DAY."""
    from gpuwise.web.app import Settings

    with in_a_thread(Settings(today=lambda: DAY)) as asking:
        yield asking


@contextmanager
def in_a_thread(settings: Any) -> Iterator[httpx.Client]:
    """A server of its own in this process, until the block ends."""
    import uvicorn

    from gpuwise.web.app import create_app
    from gpuwise.web.serving import Place, listen

    with listen(Place(port=0)) as taken:
        server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level="warning", lifespan="on"))
        thread = Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}", timeout=60) as asking:
                yield asking
        finally:
            server.should_exit = True
            thread.join()


Served = Callable[..., Any]
Program = tuple[str, ...]


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    """served(*options): `gpuwise serve` as a process, until the test ends; gives its process and a client.

    program: what runs instead of `-m gpuwise`.
    """
    with ExitStack() as open_ones:

        def start(*options: str, program: Program = ("-m", "gpuwise"), **environment: str) -> Any:
            return open_ones.enter_context(_process(tmp_path, (*program, "serve", *options), environment))

        yield start


@contextmanager
def _process(folder: Path, command: tuple[str, ...], environment: dict[str, str]) -> Iterator[Any]:
    own = {"GPUWISE_CACHE": str(folder / "cache"), "GPUWISE_STORE": str(folder / "runs.sqlite3"), "LC_ALL": "C.UTF-8"}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    words = [sys.executable, *command, "--no-open", "--port", "0"]
    with (folder / "said.txt").open("a") as said:
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=said, text=True,
            env={**os.environ, **own, "PYTHONPATH": paths, **environment},
        )  # fmt: skip
        assert process.stdout
        address = process.stdout.readline().strip()
        assert address, (folder / "said.txt").read_text()
        with httpx.Client(base_url=address.partition("?")[0], timeout=60) as asking:
            try:
                yield process, asking
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
