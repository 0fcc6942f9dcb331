"""epochs.csv: samples that reference runs of known tasks took to their quality target, by global batch.

Of each task the newest round that counts epochs alike, one row a batch; `tools/facts/epoch_tasks.csv` says which, with
the target that the rules of that round set. Benchmarks that end at a loss, a word error rate or an FID go: they have no
accuracy that a person could ask for.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bundle_tables import Row, fact, number, read

COLUMNS = (
    "task", "metric", "target_fraction", "global_batch", "runs", "samples_to_target", "cv_fraction", "round", "source",
)  # fmt: skip
KEY = ("task", "global_batch")
SOURCE = "mlcommons-logging"


def build(source: Path) -> tuple[list[Row], list[Row]]:
    """The rows of epochs.csv, and what was left out."""
    rows = read(source / "benchmarks" / "mlperf_rcp_epochs.csv")
    tasks = fact("epoch_tasks")
    kept = [row for task in tasks for row in _rows(task, rows)]
    return kept, list(_left_out(rows, {task["benchmark"] for task in tasks}))


def _rows(task: Row, rows: Iterable[Row]) -> Iterable[Row]:
    """Of the newest round, of each global batch the row of the most runs."""
    same = [
        r for r in rows if r["benchmark"] == task["benchmark"] and _round(r["round"]) <= _round(task["newest_round"])
    ]
    newest = max(_round(row["round"]) for row in same)
    found: dict[str, Row] = {}
    for row in sorted((r for r in same if _round(r["round"]) == newest), key=lambda r: int(r["runs"])):
        found[row["global_batch"]] = row
    return [_row(task, row) for row in found.values()]


def _round(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _row(task: Row, row: Row) -> Row:
    epoch = float(task["samples"]) if task["counted"] == "epochs" else 1.0
    return {
        "task": task["task"],
        "metric": task["metric"],
        "target_fraction": task["target_fraction"],
        "global_batch": row["global_batch"],
        "runs": row["runs"],
        "samples_to_target": number(float(row["epochs_to_target_mean"]) * epoch, 8),
        "cv_fraction": number(float(row["epochs_cv_percent"] or 0) / 100, 4),
        "round": row["round"],
        "source": SOURCE,
    }


def _left_out(rows: Iterable[Row], used: set[str]) -> Iterable[Row]:
    for name in sorted({row["benchmark"] for row in rows} - used):
        yield {
            "table": "epochs",
            "row_key": f"mlperf/{name}",
            "rule": "no_accuracy",
            "reason": "ends at a loss, an error rate or a reward, or its target is not stated: no accuracy to ask for",
        }
