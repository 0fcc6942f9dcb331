"""throughput.csv, inference.csv, counts.csv: rates of four public tables, each defect named in left_out.csv."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from bundle_tables import Row, fact, number, read

COLUMNS = (
    "workload", "family", "accelerator", "accelerators", "precision", "batch_per_accelerator", "samples_per_s",
    "unit", "software", "memory_format", "link", "hosts", "observed", "source", "note",
)  # fmt: skip
KEY = ("workload", "accelerator", "accelerators", "precision", "batch_per_accelerator", "software", "memory_format",
       "link", "source")  # fmt: skip
INFERENCE_COLUMNS = (
    "workload", "family", "accelerator", "precision", "batch_per_accelerator", "samples_per_s", "software",
    "memory_format", "compiled", "source",
)  # fmt: skip
INFERENCE_KEY = ("workload", "accelerator", "precision", "software", "memory_format", "compiled")
COUNT_COLUMNS = ("workload", "gmacs", "activations_m", "parameters_m", "stored_m", "operations", "launches",
                 "depthwise_gmacs", "source")  # fmt: skip
MAX_EFFICIENCY = 1.05
UNUSABLE = {
    "ncf_timing": "epochs of one to five steps; readings up to 50 times too large",
    "p2p_disabled": "the run switched off direct traffic between GPUs, so the scaling is not that of the hardware",
    "needs_revalidation": "the source withdrew the figure",
    "wrong_gpu_count_in_log": "the log shows another number of GPUs than the label",
    "partial_log": "the last line of the log is a partial reading",
    "few_steps": "an epoch of less than ten steps, warm-up included",
    "replicates_differ": "the averaged runs differ by more than 25 %",
    "superlinear": "more than 1.2 times linear",
    "copied_log": "the log is a copy of another system's",
}
SMALL_MEMORY_GB = 11.0  # below one GPU's rate is real on these cards (tiny batches over PCIe), doubtful on larger ones
FAMILIES = {
    "resnet50": "cnn",
    "ssd": "cnn-detection",
    "maskrcnn": "cnn-detection",
    "gnmt": "recurrent",
    "ncf": "recommendation",
    "transformerxlbase": "transformer",
    "transformerxllarge": "transformer",
    "bert_base_squad": "transformer",
    "bert_large_squad": "transformer",
    "tacotron2": "speech",
    "waveglow": "conv1d",
}
TRANSFORMERS = ("beit", "cait", "crossvit", "deit", "jx_nest", "nest_", "pit_", "swin", "tnt", "twins", "vit_", "volo",
                "xcit")  # fmt: skip
HYBRIDS = ("bat_", "botnet", "eca_botnext", "eca_halonext", "coat", "convit", "edgenext", "halo", "lambda_", "lamhalo",
           "levit", "mobilevit", "sebotnet", "sehalonet", "semobilevit", "visformer", "vit_base_r", "vit_large_r",
           "vit_small_r", "vit_tiny_r")  # fmt: skip
MIXERS = ("gmixer", "gmlp", "resmlp", "mixer")
RECURRENT = ("sequencer",)


def build(source: Path) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """The rows of throughput.csv, of inference.csv, of counts.csv, and what was left out."""
    folder = source / "benchmarks"
    left_out: list[Row] = []
    rows = [*_lambda(folder, left_out), *_timm(folder), *_torchvision(folder), *_profet(folder)]
    rows = [r for r in rows if _known(r, left_out)]
    answers = list(_inference(folder, left_out))
    kept = _linear_at_most(_not_held_back(_collapsed(rows), left_out), left_out)
    return kept, answers, _counts(folder, [*rows, *answers]), left_out


def _left(key: str, rule: str, reason: str) -> Row:
    return {"table": "throughput", "row_key": key, "rule": rule, "reason": reason}


def _lambda(folder: Path, left_out: list[Row]) -> Iterable[Row]:
    links = {r["system"]: r["interconnect_inferred"] for r in read(folder / "lambda_systems.csv")}
    devices = {(r["gpu"], r["form_factor"], r["memory_gb"]): r["accelerator"] for r in fact("benchmark_gpus")}
    for old in read(folder / "lambda_training_throughput.csv"):
        key = f"lambda/{old['system']}/{old['workload']}/{old['precision']}"
        defect = next((c.split(":")[0] for c in old["suspect"].split(";") if c.split(":")[0] in UNUSABLE), None)
        if "below_single_gpu" in old["suspect"] and float(old["memory_gb"]) > SMALL_MEMORY_GB:
            left_out.append(_left(key, "below_single_gpu", "slower than one GPU, and not for want of memory"))
        elif defect:
            left_out.append(_left(key, defect, UNUSABLE[defect]))
        elif "|" in old["torch_version"]:
            left_out.append(_left(key, "mixed_software", "the averaged runs used two versions of the framework"))
        else:
            device = devices.get((old["gpu"], old["form_factor"], old["memory_gb"]), "")
            yield _lambda_row(old, device, links.get(old["system"], ""), key)


def _lambda_row(old: Row, device: str, link: str, key: str) -> Row:
    count = int(old["gpu_count"])
    rate = old["throughput_corrected"] if "bert_step_overcount" in old["suspect"] else old["throughput"]
    if old["input_data"] == "dali-cpu":
        rate = old["throughput_compute_only"]
    return {
        "workload": old["workload"],
        "family": FAMILIES[old["workload"]],
        "accelerator": device,
        "accelerators": str(count),
        "precision": _arithmetic(old),
        "batch_per_accelerator": number(float(old["batch_size_total"]) / count),
        "samples_per_s": rate,
        "unit": old["throughput_unit"],
        "software": "ngc-pytorch-" + ".".join(old["torch_version"].split(".")[:2]),
        "memory_format": "",
        "link": "" if count == 1 else link,
        "observed": old["run_date"],
        "source": "lambda",
        "note": "",
        "key": key,
        "host": old["system"],
    }


def _arithmetic(old: Row) -> str:
    """What was computed, not the label: a run labelled fp16 whose log shows AMP off is fp32 or TF32."""
    if (old["precision_in_log"] or old["precision"]) == "fp32":
        return "tf32" if old["tf32_default"] == "yes" else "fp32"
    return "amp"


def _timm(folder: Path) -> Iterable[Row]:
    for old in read(folder / "timm_throughput.csv"):
        if old["mode"] != "train":
            continue
        yield {
            "workload": _sized(old["model"], old["image_size"]),
            "family": family(old["model"]),
            "accelerator": {"RTX 3090": "rtx-3090"}[old["device"]],
            "accelerators": "1",
            "precision": old["precision"],
            "batch_per_accelerator": number(old["batch_size"]),
            "samples_per_s": old["samples_per_s"],
            "unit": "images/s",
            "software": f"timm-torch-{old['torch_version']}",
            "memory_format": old["memory_format"],
            "link": "",
            "observed": "",
            "source": "timm",
            "note": "",
            "host": "",
            "key": f"timm/{old['model']}/{old['image_size']}/{old['memory_format']}",
        }


INFERENCE_DEVICES = {
    "RTX 3090": "rtx-3090", "RTX 4090": "rtx-4090", "RTX 5090": "rtx-5090", "RTX PRO 6000 Max-Q": "rtx-pro-6000-maxq",
}  # fmt: skip


def _inference(folder: Path, left_out: list[Row]) -> Iterable[Row]:
    """Images/s of forward passes on one GPU; the source's rows of CPUs are at batch 1 and tell nothing of GPUs."""
    cpu = 0
    for old in read(folder / "timm_throughput.csv"):
        if old["mode"] == "infer" and old["device"] not in INFERENCE_DEVICES:
            cpu += 1
        elif old["mode"] == "infer":
            yield {
                "workload": _sized(old["model"], old["image_size"]),
                "family": family(old["model"]),
                "accelerator": INFERENCE_DEVICES[old["device"]],
                "precision": old["precision"],
                "batch_per_accelerator": number(old["batch_size"]),
                "samples_per_s": old["samples_per_s"],
                "software": f"timm-torch-{'.'.join(old['torch_version'].split('.')[:2])}",
                "memory_format": old["memory_format"],
                "compiled": "yes" if old["compiled"] == "yes" else "",
                "source": "timm",
            }
    reason = f"{cpu} rows are inference on a CPU at batch 1, which says nothing of a GPU"
    left_out.append(_left("timm/mode=infer/device=CPU", "cpu_inference", reason))


def _torchvision(folder: Path) -> Iterable[Row]:
    devices = {"GTX 1080 Ti": "gtx-1080-ti", "RTX 2080 Ti": "rtx-2080-ti", "TITAN Xp": "titan-xp", "A100": ""}
    for old in read(folder / "torchvision_step_time_batch12.csv"):
        yield {
            "workload": old["model"],
            "family": "cnn",
            "accelerator": devices[old["gpu"]],
            "accelerators": "1",
            "precision": "fp32" if old["precision"] == "fp32" else "fp16-pure",
            "batch_per_accelerator": old["batch_size"],
            "samples_per_s": str(float(old["batch_size"]) / float(old["step_time_ms"]) * 1000),
            "unit": "images/s",
            "software": "torchvision-2021",
            "memory_format": "",
            "link": "",
            "observed": "",
            "source": "ryujaehun",
            "note": "small batch: bound by kernel launches on fast cards",
            "host": "",
            "key": f"ryujaehun/{old['model']}/{old['gpu']}/{old['precision']}",
        }


def _profet(folder: Path) -> Iterable[Row]:
    devices = {"M60": "m60-half", "K80": "k80-half", "T4": "t4", "V100": "v100-sxm2-16gb"}
    for old in read(folder / "profet_training_latency.csv"):
        yield {
            "workload": f"{old['model'].lower()}@{old['image_size']}",
            "family": "cnn",
            "accelerator": devices[old["gpu"]],
            "accelerators": "1",
            "precision": "fp32",
            "batch_per_accelerator": old["batch_size"],
            "samples_per_s": str(float(old["batch_size"]) / float(old["batch_latency_s"])),
            "unit": "images/s",
            "software": "tensorflow-2.5",
            "memory_format": "",
            "link": "",
            "observed": "",
            "source": "profet",
            "note": "",
            "host": "",
            "key": f"profet/{old['model']}/{old['image_size']}/{old['batch_size']}/{old['gpu']}",
        }


def _sized(model: str, image_size: str) -> str:
    """224 px is the rule and not written; other sizes are part of the name."""
    return model if image_size == "224" else f"{model}@{image_size}"


def family(model: str) -> str:
    """The family of a timm model, by the beginning of its name."""
    prefixes = {"hybrid": HYBRIDS, "transformer": TRANSFORMERS, "mlp": MIXERS, "recurrent": RECURRENT}
    return next((name for name, starts in prefixes.items() if model.startswith(starts)), "cnn")


def _known(row: Row, left_out: list[Row]) -> bool:
    """Rows of devices, precisions or batches that our schema cannot hold go."""
    if not row["accelerator"]:
        left_out.append(_left(row["key"], "accelerator_unknown", "a laptop GPU, or the source does not say which form"))
    elif row["precision"] == "fp16-pure":
        why = "plain fp16 without an fp32 master copy, which is not how one trains"
        left_out.append(_left(row["key"], "pure_fp16", why))
    elif not row["samples_per_s"] or float(row["samples_per_s"]) <= 0:
        left_out.append(_left(row["key"], "rate_missing", "the log has no usable rate"))
    elif float(row["batch_per_accelerator"]) % 1:
        left_out.append(_left(row["key"], "uneven_batch", "the batch does not divide among the GPUs"))
    else:
        return True
    return False


def _collapsed(rows: Sequence[Row]) -> list[Row]:
    """One row a machine type: the geometric mean over hosts, with their number and the last day."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[c] for c in KEY)].append(row)
    return [_mean(group) for group in groups.values()]


def _mean(group: Sequence[Row]) -> Row:
    logs = [math.log(float(r["samples_per_s"])) for r in group]
    row = {c: group[0][c] for c in COLUMNS if c != "hosts"}
    return row | {
        "samples_per_s": number(math.exp(math.fsum(logs) / len(logs)), 6),
        "hosts": str(len({r["host"] for r in group})),
        "observed": max(r["observed"] for r in group),
        "note": "; ".join(sorted({r["note"] for r in group if r["note"]})),
    }


HOST_BOUND_GAIN, USUAL_GAIN = 1.15, 1.3


def _not_held_back(rows: Sequence[Row], left_out: list[Row]) -> list[Row]:
    """Without rows in mixed precision that are hardly faster than the same in TF32 on this card, though the workload
    gains by it on most cards: there the host set the pace, and the row says nothing about the card."""
    best: dict[tuple[str, str, str], float] = {}
    for row in (r for r in rows if r["accelerators"] == "1"):
        key = row["workload"], row["accelerator"], row["precision"]
        best[key] = max(best.get(key, 0.0), float(row["samples_per_s"]))
    gains: dict[str, dict[str, float]] = defaultdict(dict)
    for (workload, card, precision), rate in best.items():
        if precision == "amp" and (workload, card, "tf32") in best:
            gains[workload][card] = rate / best[workload, card, "tf32"]
    usual = {workload: statistics.median(found.values()) for workload, found in gains.items()}
    kept = []
    for row in rows:
        gain = gains.get(row["workload"], {}).get(row["accelerator"], USUAL_GAIN)
        if row["precision"] == "amp" and gain < HOST_BOUND_GAIN and usual[row["workload"]] >= USUAL_GAIN:
            reason = (
                f"{gain:.2f} times the rate in TF32, {usual[row['workload']]:.2f} on most cards: the host set the pace"
            )
            left_out.append(_left("/".join(row[c] for c in KEY), "host_bound", reason))
        else:
            kept.append(row)
    return kept


def _linear_at_most(rows: Sequence[Row], left_out: list[Row]) -> list[Row]:
    """Rows of several GPUs that scale better than 1.05 × linear against one GPU at the same batch each go."""
    same = ("workload", "accelerator", "precision", "batch_per_accelerator", "software", "memory_format", "source")
    single = {tuple(r[c] for c in same): float(r["samples_per_s"]) for r in rows if r["accelerators"] == "1"}
    kept = []
    for row in rows:
        one = single.get(tuple(row[c] for c in same))
        gain = 1.0 if one is None else float(row["samples_per_s"]) / (one * int(row["accelerators"]))
        if int(row["accelerators"]) > 1 and gain > MAX_EFFICIENCY:
            key = "/".join(row[c] for c in KEY)
            left_out.append(_left(key, "superlinear", f"{gain:.2f} times linear against one GPU at the same batch"))
        else:
            kept.append(row)
    return kept


def _counts(folder: Path, rows: Sequence[Row]) -> list[Row]:
    """What one sample of the measured models costs: as timm's table counts it, and what our own counter adds."""
    wanted = {r["workload"] for r in rows}
    ours = {r["workload"]: r for r in fact("counts") if r["workload"] in wanted}
    counts: dict[str, Row] = {}
    for old in read(folder / "timm_throughput.csv"):
        name = _sized(old["model"], old["image_size"])
        if old["gmacs"] and name in wanted:
            counts[name] = {c: old.get(c, "") for c in COUNT_COLUMNS} | {"workload": name, "source": "timm"}
    for name, row in ours.items():
        known = {c: v for c, v in counts.get(name, {}).items() if v}
        counts[name] = {c: row.get(c, "") for c in COUNT_COLUMNS} | known
    return list(counts.values())
