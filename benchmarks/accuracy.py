"""How wrong the predictor is: every split computed anew, written into the bundle and into the documentation.

    python -m benchmarks.accuracy                 all splits; `make accuracy` runs this
    python -m benchmarks.accuracy --split A,C     only these; the others stay as they are
    python -m benchmarks.accuracy --ratchet       the seeded subset that `make test` holds, as it is now

Nothing here is tuned on what it reports: what a split leaves out is left out of every choice as well.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import runpy
import time
from dataclasses import replace
from pathlib import Path

from gpuwise.api.trust import bundled
from gpuwise.predict.accuracy import SPLITS, ids, result
from gpuwise.predict.score import Errors, errors
from gpuwise.predict.tables import Draw, Tables
from gpuwise.predict.tested import Table, document, parse
from gpuwise.store import package

ROOT = Path(__file__).parent.parent
DATA = ROOT / "src" / "gpuwise" / "data"
RATCHET = ROOT / "tests" / "reference" / "accuracy_ratchet.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default=",".join(SPLITS), help="ids, with commas")
    parser.add_argument("--ratchet", action="store_true", help="write the ratchet of the tests instead")
    arguments = parser.parse_args()
    wanted = [name for name in arguments.split.upper().split(",") if name]
    if unknown := set(wanted) - SPLITS.keys():
        parser.error(f"there is no split {', '.join(sorted(unknown))}: there is {', '.join(SPLITS)}")
    (_ratchet if arguments.ratchet else _all)(wanted, bundled())


def _all(wanted: list[str], tables: Tables) -> None:
    shipped = package.accuracy()
    found = dict(shipped.results)
    for name in wanted:
        begun = time.perf_counter()
        found[name] = result(SPLITS[name], tables)
        _tell(name, found[name].errors, begun)
    table = replace(
        shipped,
        data_version=package.version(),
        computed=str(package.description()["created"]),
        results={name: found[name] for name in ids(found)},
    )
    write(table)


def _tell(name: str, e: Errors, begun: float) -> None:
    figures = " / ".join("–" if v is None else f"{v:.1f}" for v in (e.mape_percent, e.median_percent, e.p90_percent))
    covered = "–" if e.coverage_percent is None else f"{e.coverage_percent:.0f}"
    print(f"{name}: {figures} %, covered {covered} %, n {e.n}, {time.perf_counter() - begun:.0f} s", flush=True)


def write(table: Table) -> None:
    """The table into the bundle, its hash into datapackage.json, and the page of the documentation."""
    content = (json.dumps(document(table), ensure_ascii=False, indent=1) + "\n").encode()
    (DATA / "accuracy.json").write_bytes(content)
    described = json.loads((DATA / "datapackage.json").read_text("utf-8"))
    entry = next(r for r in described["resources"] if r["path"] == "accuracy.json")
    entry |= {"bytes": len(content), "hash": f"sha256:{hashlib.sha256(content).hexdigest()}"}
    (DATA / "datapackage.json").write_text(json.dumps(described, ensure_ascii=False, indent=1) + "\n", "utf-8")
    pages = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    pages["ACCURACY"].write_text(pages["accuracy_page"](parse(document(table))), "utf-8")
    print("Written: src/gpuwise/data/accuracy.json, docs/method/accuracy.md")


def _ratchet(wanted: list[str], tables: Tables) -> None:
    kept = json.loads(RATCHET.read_text("utf-8"))
    draw = Draw(most=kept["most"], seed=kept["seed"])
    figures: dict[str, float] = {}
    for name in wanted:
        begun = time.perf_counter()
        found = errors(SPLITS[name].scores(tables, draw))
        _tell(name, found, begun)
        if found.mape_percent is not None:
            figures[name] = round(found.mape_percent, 2)
    kept["mape_percent"] = {name: figures.get(name, old) for name, old in {**kept["mape_percent"], **figures}.items()}
    RATCHET.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    print(f"Written: {RATCHET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
