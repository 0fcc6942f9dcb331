"""The server under load: requests a second and waiting times with 50 clients, memory over 10,000 requests, first paint.

Clients and server share the machine, so the figures are a lower bound. Nothing is asserted.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CLIENTS = 50
KEPT, WARM_UP = 10_000, 1_000
COMPUTED = 200
PAINTS = 7
RANK = "rank.json?workloads=painter-heavy"


@dataclass(frozen=True)
class Server:
    host: str
    port: int
    pid: int

    @property
    def mib(self) -> float:
        """Resident memory of the server and of the processes that answer, in MiB."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return sum(_resident_mib(int(pid)) for pid in (self.pid, *children))


def _resident_mib(pid: int | str) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    env = os.environ | {"GPUWISE_CACHE": str(folder / "cache"), "GPUWISE_STORE": str(folder / "runs.db")}
    words = (sys.executable, "-m", "gpuwise", "serve", "--no-open", "--port", "0")
    process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    host, _, port = process.stdout.readline().strip().strip("/").rpartition("/")[2].rpartition(":")
    try:
        yield Server(host, int(port), process.pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def client(server: Server, paths: Iterator[str], waited_s: list[float]) -> None:
    """One connection, which asks for one path after another until there are none left."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    for path in paths:
        start = time.perf_counter()
        writer.write(f"GET /{path} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if " 200 " not in head.partition("\r\n")[0]:
            sys.exit(f"/{path}: {head.partition(chr(13))[0]}")
        await reader.readexactly(int(head.partition("content-length:")[2].partition("\r\n")[0]))
        waited_s.append(time.perf_counter() - start)
    writer.close()
    await writer.wait_closed()


def load(server: Server, paths: Iterable[str]) -> tuple[float, list[float]]:
    """Seconds for all of the paths with CLIENTS at once, and how long each waited."""
    waited_s, left = list[float](), iter(paths)

    async def together() -> None:
        await asyncio.gather(*(client(server, left, waited_s) for _ in range(CLIENTS)))

    start = time.perf_counter()
    asyncio.run(together())
    return time.perf_counter() - start, waited_s


def show(what: str, seconds: float, waited_s: Sequence[float]) -> None:
    quantiles = statistics.quantiles(waited_s, n=100)
    print(f"{what:<52} {len(waited_s) / seconds:8.1f} requests/s, median {1000 * quantiles[49]:.0f} ms, "
          f"P95 {1000 * quantiles[94]:.0f} ms", flush=True)  # fmt: skip


def first_paint(server: Server) -> None:
    """Of the page with an answer that is kept, from the start of the navigation, in Chromium."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("first paint: no Chromium on this machine")
        return
    from playwright.sync_api import sync_playwright

    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    found = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(PAINTS + 1):
            page = browser.new_page()
            page.goto(f"http://{server.host}:{server.port}/{RANK.replace('.json', '')}")
            page.wait_for_load_state("networkidle")
            found.append(float(page.evaluate(paint)))
            page.close()
        browser.close()
    print(f"first paint of the page, new and then median of {PAINTS}: "
          f"{found[0]:.0f} ms, {statistics.median(found[1:]):.0f} ms")  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as name, served(Path(name)) as server:
        first, _waited_s = load(server, [RANK])
        print(f"first answer, with the start of the server: {first:.2f} s")
        load(server, [RANK] * WARM_UP)
        before = server.mib
        show(f"{KEPT:,} × /{RANK}, kept", *load(server, [RANK] * KEPT))
        print(f"memory before and after: {before:.1f} MiB, {server.mib:.1f} MiB")
        show(f"{COMPUTED} × the same, each computed", *load(server, (f"{RANK}&jobs={n + 2}" for n in range(COMPUTED))))
        between = server.mib
        show(f"{COMPUTED} more", *load(server, (f"{RANK}&jobs={n + 1000}" for n in range(COMPUTED))))
        print(f"memory before, between and after (answers are kept): {before:.1f}, {between:.1f}, {server.mib:.1f} MiB")
        first_paint(server)


if __name__ == "__main__":
    main()
