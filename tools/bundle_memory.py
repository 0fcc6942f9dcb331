"""memory.csv: how much of a card each of Lambda's runs took, watched from outside, each defect named in left_out.csv.

Every run was tuned to fill its card, so the rows say what a batch takes there, not how little it could do with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from bundle_tables import Row, fact, number, read

COLUMNS = (
    "workload", "accelerator", "accelerators", "precision", "batch_per_accelerator", "peak_memory_gib", "software",
    "hosts", "observed", "source", "note",
)  # fmt: skip
KEY = ("workload", "accelerator", "accelerators", "precision", "batch_per_accelerator", "software", "source")
UNUSABLE = {
    "copied_log": "the log is a copy of another system's",
    "ncf_timing": "epochs of one to five steps: the batch may never have been whole",
    "wrong_gpu_count_in_log": "the log shows another number of GPUs than the label, so the batch is not known",
}
MIB_PER_GIB = 1024


def build(source: Path) -> tuple[list[Row], list[Row]]:
    """The rows of memory.csv, and what was left out."""
    folder = source / "benchmarks"
    left_out: list[Row] = []
    return _collapsed(list(_usable(folder, left_out))), left_out


def _left(key: str, rule: str, reason: str) -> Row:
    return {"table": "memory", "row_key": key, "rule": rule, "reason": reason}


def _usable(folder: Path, left_out: list[Row]) -> Iterable[Row]:
    """Rows of the monitor, joined to the run's own row of the throughput table: it says what was really computed."""
    runs = {_run(r): r for r in read(folder / "lambda_training_throughput.csv")}
    devices = {(r["gpu"], r["form_factor"], r["memory_gb"]): r["accelerator"] for r in fact("benchmark_gpus")}
    idle = 0
    for old in read(folder / "lambda_monitor.csv"):
        if old["monitored_gpu_idle"] == "yes":
            idle += 1
            continue
        run = runs.get(_run(old))
        key = "lambda/" + "/".join(_run(old))
        if run is None:
            why = "the run left no rate: it may have failed, perhaps for want of memory"
            left_out.append(_left(key, "rate_missing", why))
            continue
        device = devices.get((run["gpu"], run["form_factor"], run["memory_gb"]), "")
        if fault := _fault(run, device):
            left_out.append(_left(key, *fault))
        else:
            yield _row(old, run, device)
    left_out.append(_left("lambda/monitored_gpu_idle", "idle", f"the GPU watched took no part in {idle} runs"))


def _run(row: Row) -> tuple[str, str, str, str]:
    return row["system"], row["workload"], row["precision"], row["gpu_count"]


def _fault(run: Row, device: str) -> tuple[str, str] | None:
    """Rule and reason why a run's memory cannot be used."""
    defect = next((c.split(":")[0] for c in run["suspect"].split(";") if c.split(":")[0] in UNUSABLE), None)
    if defect:
        return defect, UNUSABLE[defect]
    if "|" in run["torch_version"]:
        return "mixed_software", "the runs of the folder used two versions of the framework"
    if not device:
        return "accelerator_unknown", "a laptop GPU, or the source does not say which form"
    if float(run["batch_size_total"]) % int(run["gpu_count"]):
        return "uneven_batch", "the batch does not divide among the GPUs"
    return None


def _row(old: Row, run: Row, device: str) -> Row:
    count = int(run["gpu_count"])
    return {
        "workload": run["workload"],
        "accelerator": device,
        "accelerators": str(count),
        "precision": _arithmetic(run),
        "batch_per_accelerator": number(float(run["batch_size_total"]) / count),
        "peak_memory_gib": str(float(old["memory_used_peak_mib"]) / MIB_PER_GIB),
        "software": "ngc-pytorch-" + ".".join(run["torch_version"].split(".")[:2]),
        "observed": run["run_date"],
        "source": "lambda",
        "note": "",
        "host": run["system"],
    }


def _arithmetic(run: Row) -> str:
    """As in throughput.csv: what the log says was computed, not the label."""
    if (run["precision_in_log"] or run["precision"]) == "fp32":
        return "tf32" if run["tf32_default"] == "yes" else "fp32"
    return "amp"


def _collapsed(rows: Sequence[Row]) -> list[Row]:
    """One row a machine type: the median over hosts, with their number and the last day."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[c] for c in KEY)].append(row)
    return [_middle(group) for group in groups.values()]


def _middle(group: Sequence[Row]) -> Row:
    row = {c: group[0][c] for c in COLUMNS if c != "hosts"}
    return row | {
        "peak_memory_gib": number(median(float(r["peak_memory_gib"]) for r in group), 5),
        "hosts": str(len({r["host"] for r in group})),
        "observed": max(r["observed"] for r in group),
    }
