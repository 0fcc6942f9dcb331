"""The networks of timm's benchmark tables, counted by our own counter: rows of tools/facts/counts.csv.

    python -m benchmarks.count_timm TABLE

TABLE: a CSV file with the columns model, image_size and parameters_m. Needs `pip install timm` in an environment of its
own; gpuwise never needs it. Takes about an hour on one core, and a row is in the file as soon as it is counted. A
network that timm no longer has, or has under that name with other shapes than the table's, is named and left out.
"""

from __future__ import annotations

import csv
import sys
from functools import partial
from pathlib import Path

import timm
from torch import nn

from benchmarks.counts import Row, count, write
from gpuwise.measure import meta

USUAL_PX = 224
SAME_PARAMETERS = 0.15
"""A share: RepVGG, of which the tables count what is left when its branches are fused, has a tenth more."""
FUSED = ("sequencer",)
"""Their recurrent layers run in one call on a GPU but step by step on the meta device, so that calls and elements
written or kept are not what they would be; they are left empty."""
STEPWISE = ("activations_m", "stored_m", "launches", "operations")
KERAS = {"inceptionresnetv2": ("inception_resnet_v2", {128: 100, 224: 1000, 256: 1000})}
"""Of PROFET's networks the one that timm has with the same shapes, and the classes at each image size."""


def main(table: Path) -> None:
    for (name, size), parameters_m in sized(table).items():
        _keep(named(name, size), name, size, parameters_m)
    for keras, (name, sizes) in KERAS.items():
        for size, classes in sizes.items():
            _keep(f"{keras}@{size}", name, size, num_classes=classes)


def sized(table: Path) -> dict[tuple[str, int], float | None]:
    """Each network at each image size once, in the order of the table, and how many parameters it has there."""
    found: dict[tuple[str, int], float | None] = {}
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key, stated = (row["model"], int(float(row["image_size"]))), row["parameters_m"]
            found[key] = float(stated) if stated else found.get(key)
    return found


def named(name: str, size: int) -> str:
    """As throughput.csv names it."""
    return name if size == USUAL_PX else f"{name}@{size}"


def same(row: Row, parameters_m: float | None) -> bool:
    """Whether this is the network of the table; a later timm gives some old names to other networks."""
    return parameters_m is None or abs(float(row["parameters_m"]) / parameters_m - 1) < SAME_PARAMETERS


def usable(name: str, row: Row) -> Row:
    return row if not name.startswith(FUSED) else {c: v for c, v in row.items() if c not in STEPWISE}


def _keep(workload: str, name: str, size: int, parameters_m: float | None = None, **options: int) -> None:
    try:
        row = counts(name, size, **options)
    except (RuntimeError, TypeError, ValueError, AssertionError) as refused:
        print(f"{workload}: {refused}".splitlines()[0], flush=True)
        return
    if same(row, parameters_m):
        write([(workload, usable(name, row))])
    else:
        print(f"{workload}: {row['parameters_m']} million parameters, not {parameters_m}", flush=True)


def counts(name: str, size: int, **options: int) -> Row:
    """Some networks are built for one image size, which then has to be named; others do not know the word."""
    image = meta.image(2, size)
    try:
        return count(partial(_made, name, **options), image, 2)
    except (RuntimeError, AssertionError):
        return count(partial(_made, name, img_size=size, **options), image, 2)


def _made(name: str, **options: int) -> nn.Module:
    made: nn.Module = timm.create_model(name, **options)
    return made


if __name__ == "__main__":
    main(Path(sys.argv[1]))
