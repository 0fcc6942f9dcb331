"""datapackage.json: what is in the bundle, with rows, hashes, licences and the meaning of each column."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bundle_tables import Row, fact, read

TITLES = {
    "accelerators": "Accelerators as they are sold",
    "offers": "Price observations, old ones included",
    "throughput": "Measured training rates",
    "counts": "Work of the measured models",
    "cpu_architectures": "CPUs of instance families and superchips",
    "epochs": "Samples to a quality target, by global batch",
    "inference": "Measured inference rates",
    "memory": "Memory that measured training runs took",
    "profiles": "Training steps by class of operation, on four GPUs",
    "tariffs": "What is billed beside a machine: disks, data that leaves, public addresses",
    "services": "Managed services of clouds, and what takes their place",
    "waivers": "When data may leave a cloud for less",
    "links": "Private lines out of a cloud",
    "cold_tiers": "Storage classes that bill data for a least time",
    "lead_times": "Weeks from order to first job",
    "servers": "Machines that can be bought",
    "hosting": "What electricity, cooling and a place cost",
    "carbon": "Greenhouse gases of the countries' electricity",
    "cpu_hosts": "Machines without a GPU on which a disk can be prepared",
    "spot": "Availability and losses of spot pools",
    "fx": "Dated exchange rates",
    "regions": "Countries of the providers' regions",
    "sources": "Where the facts come from",
    "left_out": "Rows that are not in the bundle, and why",
}

DOCUMENTS = ("accuracy.json", "assumptions.toml", "machines.toml", "platforms.toml", "workloads.toml")


def build(target: Path, version: str, built: str) -> str:
    """The text of datapackage.json for the files in `target`."""
    licences = {r["key"]: r["licence"] for r in fact("sources")}
    columns = fact("columns")
    resources = [_table(target / f"{name}.csv", columns, licences, built) for name in sorted(TITLES)]
    resources += [_document(target / name, built) for name in DOCUMENTS]
    resources.append(_predictor(target / "predictor.npz"))
    package = {
        "name": "gpuwise-data",
        "title": "Accelerators, prices and measured training rates bundled with gpuwise",
        "version": version,
        "created": built,
        "licenses": [{"name": "figures as their sources allow, see sources.csv; the compilation is Apache-2.0"}],
        "resources": resources,
    }
    return json.dumps(package, ensure_ascii=False, indent=1) + "\n"


def _table(path: Path, columns: Sequence[Row], licences: Mapping[str, str], built: str) -> dict[str, object]:
    rows = read(path)
    used = _sources(rows, licences)
    fields = [c for c in columns if c["table"] == path.stem]
    header = next(csv.reader([path.read_text(encoding="utf-8").split("\n", 1)[0]]))
    if [f["column"] for f in fields] != header:
        raise ValueError(f"tools/facts/columns.csv describes {[f['column'] for f in fields]}, {path.name} has {header}")
    return _described(path, TITLES[path.stem], built) | {
        "rows": len(rows),
        "sources": used,
        "licences": sorted({licences[u] for u in used}),
        "schema": {"fields": [_field(f) for f in fields]},
    }


def _document(path: Path, built: str) -> dict[str, object]:
    return _described(path, path.stem, built) | {"format": path.suffix[1:]}


def _predictor(path: Path) -> dict[str, object]:
    """Kept as it is: `make fit` makes it from the tables."""
    content = path.read_bytes()
    return {
        "name": path.stem,
        "title": "Scales and posterior of the predictor, made by `make fit`",
        "path": path.name,
        "format": "npz",
        "bytes": len(content),
        "hash": "sha256:" + hashlib.sha256(content).hexdigest(),
    }


def _described(path: Path, title: str, built: str) -> dict[str, object]:
    content = path.read_bytes()
    return {
        "name": path.stem,
        "title": title,
        "path": path.name,
        "format": "csv",
        "encoding": "utf-8",
        "bytes": len(content),
        "hash": "sha256:" + hashlib.sha256(content).hexdigest(),
        "retrieved": built,
    }


def _field(column: Row) -> dict[str, str]:
    names = {"column": "name", "type": "type", "unit": "unit", "description": "description"}
    return {new: column[old] for old, new in names.items() if column[old]}


def _sources(rows: Sequence[Row], licences: Mapping[str, str]) -> list[str]:
    """Keys of sources.csv that the rows name, cell by cell or row by row."""
    named = {part.partition("=")[2] or part for r in rows for part in r.get("source", "").split("|") if part}
    if unknown := named - licences.keys():
        raise ValueError(f"sources that sources.csv does not know: {sorted(unknown)}")
    return sorted(named)
