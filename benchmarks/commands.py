"""Whole commands as a person runs them, each a median of several runs, nothing asserted.

Time is wall clock of the process, memory its peak resident set as the operating system counts it. Ratios are taken in
one run, since machines are shared and noisy. Goals are those of the project's first issue.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.offers import lines

RUNS = 7
ROWS = 100_000
GPUWISE = (sys.executable, "-m", "gpuwise")
RANK_ROWS = (*GPUWISE, "rank", "painter-heavy", "--only-offers", "--as-of", "2026-11-30", "--offers")
GPUHUNT_QUERY = "import gpuhunt; print(len(gpuhunt.Catalog(auto_reload=False).query(provider={providers!r})))"
GPUHUNT_PROVIDERS = ["aws", "azure", "gcp", "lambdalabs", "nebius", "oci", "runpod", "cloudrift", "verda"]


@dataclass(frozen=True)
class Timing:
    """Seconds of each run, and the largest peak memory among them in MiB."""

    seconds: tuple[float, ...]
    peak_mib: float

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        spread = f"{min(self.seconds):.3f}–{max(self.seconds):.3f}"
        return f"{self.median_s:.3f} s ({spread}), {self.peak_mib:.0f} MiB"


def once(command: Sequence[str], env: Mapping[str, str]) -> tuple[float, float]:
    """Wall seconds and peak MiB of one run; a failing command ends the bench.

    The kernel counts the parent's memory at the fork too, so this process has to stay smaller than what it measures.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}: {said.decode(errors='replace')}")
    return seconds, usage.ru_maxrss / 1024


def measure(command: Sequence[str], env: Mapping[str, str], before: Callable[[], None] = lambda: None) -> Timing:
    """RUNS timed runs after one that is not counted; `before` sets the scene of each."""
    runs = []
    for _ in range(RUNS + 1):
        before()
        runs.append(once(command, env))
    seconds, peaks = zip(*runs[1:], strict=True)
    return Timing(tuple(seconds), max(peaks))


def price_lists(folder: Path) -> tuple[Path, Path]:
    """The same rows twice: one CSV for gpuwise, and a folder as gpuhunt keeps its catalogue."""
    mine, theirs = folder / "offers.csv", folder / "gpuhunt"
    command = (sys.executable, "-m", "benchmarks.commands", str(folder))
    subprocess.run(command, check=True)  # so that this process stays small
    return mine, theirs


def write_price_lists(folder: Path) -> None:
    rows = list(lines(ROWS))
    mine = folder / "offers.csv"
    mine.write_text("\n".join(rows) + "\n", encoding="utf-8")
    header = rows[0].split(",")
    theirs = folder / "gpuhunt"
    theirs.mkdir()
    columns = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags"
    parts: dict[str, list[str]] = {name: [columns] for name in GPUHUNT_PROVIDERS}
    for i, text in enumerate(rows[1:]):
        row = dict(zip(header, text.split(","), strict=True))
        parts[GPUHUNT_PROVIDERS[i % len(GPUHUNT_PROVIDERS)]].append(
            f"{row['instance']},{row['region']},{row['price']},{row['vcpus']},{row['host_memory_gib']},"
            f"{row['accelerators']},{row['accelerator']},{row['memory_gib']},{row['market'] == 'spot'},,nvidia,"
        )
    for name, texts in parts.items():
        (theirs / f"{name}.csv").write_text("\n".join(texts) + "\n", encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = folder / "cache"
        env = os.environ | {"GPUWISE_CACHE": str(cache), "GPUWISE_STORE": str(folder / "runs.db")}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # nobody compiles the program anew at every start
        mine, theirs = price_lists(folder)

        def forget() -> None:
            for entry in cache.rglob("*.npz"):
                entry.unlink()

        heavy = (*GPUWISE, "rank", "painter-heavy")
        report = ("--html", str(folder / "report.html"))
        bare = measure((sys.executable, "-c", "import numpy, click"), env)
        show("interpreter with numpy and click", "-", bare)
        show("gpuwise --help", "0.1 s", measure((*GPUWISE, "--help"), env))
        show("gpuwise rank painter-heavy", "0.4 s", measure(heavy, env))
        show("the same with --html, after the first time", "1.0 s", measure((*heavy, *report), env))
        first = measure((*RANK_ROWS, str(mine)), env, before=forget)
        show(f"rank {ROWS:,} offers from a CSV", "0.5 s, 120 MiB", first)
        show("the same once cached", "0.3 s", measure((*RANK_ROWS, str(mine)), env))
        query = (sys.executable, "-c", GPUHUNT_QUERY.format(providers=GPUHUNT_PROVIDERS))
        other = measure(query, env | {"GPUHUNT_CATALOG_DIR": str(theirs)})
        show("gpuhunt's own query over the same rows", "-", other)
        print(f"gpuhunt / gpuwise: {other.median_s / first.median_s:.2f} (goal: at least 2)")


def show(what: str, goal: str, timing: Timing) -> None:
    print(f"{what:<45} goal {goal:<15} {timing}", flush=True)


if __name__ == "__main__":
    write_price_lists(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
