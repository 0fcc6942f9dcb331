"""The server under load: requests a second and P95 with 50 clients, memory over 10,000 requests, first paint.

The clients run in this process and share the cores with the server, so the figures are of both. "Alike" asks one
question again and again, as people who open a shared link do, and is answered from what is kept; "each its own" asks
questions that nobody asked before, and each is computed. Memory is the resident set of the server and its workers.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import psutil

CLIENTS = 50
ALIKE, OWN, LONG = 2_000, 200, 10_000
READINGS = 5
PAINTS = 5
QUESTION = "/rank.json?workloads=painter-heavy&limit=20"
PAGE = "/rank?workloads=painter-heavy"
MIB = 2**20


@dataclass(frozen=True)
class Load:
    """seconds: of each request. wall_s: of all."""

    seconds: tuple[float, ...]
    wall_s: float

    def __str__(self) -> str:
        percentiles = statistics.quantiles(self.seconds, n=20)
        middle, p95 = percentiles[9], percentiles[18]
        rate = len(self.seconds) / self.wall_s
        return f"{rate:,.0f} requests/s, median {1000 * middle:.0f} ms, P95 {1000 * p95:.0f} ms"


@contextmanager
def served() -> Iterator[tuple[str, psutil.Process]]:
    """A server of its own, with an empty cache folder: its address, and its process."""
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-m", "gpuwise", "serve", "--port", "0", "--no-open", "--workers", "2")
        env = {**os.environ, "GPUWISE_CACHE": folder, "GPUWISE_STORE": f"{folder}/runs.db"}
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip().rstrip("/"), psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(timeout=30)


def memory_mib(process: psutil.Process) -> float:
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True))) / MIB


async def load(address: str, total: int, question: Callable[[int], str]) -> Load:
    """All clients ask one question after another until `total` are answered; any failure ends the bench."""
    numbers, seconds = itertools.count(), list[float]()

    async def client() -> None:
        async with httpx.AsyncClient(base_url=address, timeout=120.0) as one:
            while (number := next(numbers)) < total:
                begin = time.perf_counter()
                (await one.get(question(number))).raise_for_status()
                seconds.append(time.perf_counter() - begin)

    begin = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return Load(seconds=tuple(seconds), wall_s=time.perf_counter() - begin)


def memories(address: str, process: psutil.Process) -> Sequence[float]:
    """MiB before, and after each part of the long run."""
    found = [memory_mib(process)]
    for _ in range(READINGS):
        asyncio.run(load(address, LONG // READINGS, lambda _number: QUESTION))
        found.append(memory_mib(process))
    return found


def first_paints_ms(address: str) -> Sequence[float]:
    """First contentful paint of the page of an answer that is kept, each in a fresh browser context; empty without
    Chromium."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return ()
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(PAINTS + 1):
            page = browser.new_context().new_page()
            page.goto(address + PAGE)
            paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
            page.wait_for_function(paint)
            found.append(float(page.evaluate(paint)))
        browser.close()
    return found[1:]


def main() -> None:
    with served() as (address, process):
        asyncio.run(load(address, CLIENTS, lambda _number: QUESTION))
        print(f"/rank.json with {CLIENTS} clients on {os.cpu_count()} cores, shared with them")
        print(f"  alike:        {asyncio.run(load(address, ALIKE, lambda _number: QUESTION))}")
        fresh = asyncio.run(load(address, OWN, lambda number: f"{QUESTION}&budget={100 + number}USD"))
        print(f"  each its own: {fresh}")
        read = memories(address, process)
        text = ", ".join(f"{mib:.0f}" for mib in read)
        print(f"  memory before and over {LONG:,} requests: {text} MiB ({read[-1] - read[0]:+.0f})")
        paints = first_paints_ms(address)
        said = f"{statistics.median(paints):.0f} ms (median of {len(paints)})" if paints else "no Chromium here"
        print(f"  first contentful paint of the rank page: {said}")


if __name__ == "__main__":
    main()
