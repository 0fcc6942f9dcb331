"""Months of FOCUS exports of 1 GB as CSV, and smaller as gzip and Parquet: rows a second and peak memory of a reading.

Goal: a peak under 600 MiB, which does not grow with the file. Files are made of rows of the golden case, each copy with
a resource of its own and in one of 32 regions, in a folder that is removed. Each reading is a process of its own.
"""

from __future__ import annotations

import gzip
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.own.golden_focus import golden

BYTES = 1_000_000_000
SMALLER = 10
RESOURCE, REGION, REGIONS = "i-0on", "us-east-1", 32
"""As the golden case has them; in a copy they are others, so that hours × regions × machines are to be told apart."""


def main() -> None:
    with TemporaryDirectory(prefix="gpuwise-bills-") as folder:
        whole, part = Path(folder) / "bill.csv", Path(folder) / "part.csv"
        _write(whole, BYTES)
        _read("1 GB as CSV", whole)
        whole.unlink()
        _write(part, BYTES // SMALLER)
        _read("a tenth of it as CSV", part)
        packed = part.with_suffix(".csv.gz")
        with part.open("rb") as source, gzip.open(packed, "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target)
        _read("the tenth as gzip", packed)
        columns = part.with_suffix(".parquet")
        _child("--parquet", str(part), str(columns))
        _read("the tenth as Parquet", columns)


def _write(path: Path, size: int) -> None:
    """Copies of the golden AWS export until the size is reached."""
    header, _, rows = golden().text("aws").partition("\n")
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(header + "\n")
        copy = 0
        while file.tell() < size:
            file.write(rows.replace(RESOURCE, f"i-{copy:08x}").replace(REGION, f"region-{copy % REGIONS}"))
            copy += 1


def _child(*arguments: str) -> str:
    """A process of its own: a child's peak begins with that of its parent, which must stay small."""
    command = (sys.executable, "-m", "benchmarks.bills", *arguments)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _as_parquet(path: str, made: str) -> None:
    import duckdb

    with duckdb.connect() as database:
        database.read_csv(path, all_varchar=True).write_parquet(made)


def _read(what: str, path: Path) -> None:
    """The peak is the operating system's own figure of the child."""
    size = path.stat().st_size
    rows, seconds, before, peak = (float(text) for text in _child(str(path)).split())
    print(
        f"{what}: {size / 1e6:,.0f} MB, {rows:,.0f} rows in {seconds:.1f} s, {rows / seconds:,.0f} rows/s, "
        f"peak {peak:,.0f} MiB (goal 600), {before:,.0f} of them before the reading",
        flush=True,
    )


def _measured(path: Path) -> None:
    from gpuwise.sources.focus import Wish, read_bill
    from gpuwise.sources.instances import instances
    from gpuwise.store import package

    known = instances(package.offers(), package.accelerators().values())
    before = _peak_mib()
    begun = time.perf_counter()
    bill = read_bill([path], Wish(instances=known))
    print(bill.rows, time.perf_counter() - begun, before, _peak_mib())


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--parquet", path, made]:
            _as_parquet(path, made)
        case [path]:
            _measured(Path(path))
        case _:
            main()
