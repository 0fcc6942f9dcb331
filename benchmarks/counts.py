"""What one training step of a network counts, per sample, and the file of these counts: tools/facts/counts.csv."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

from torch import Tensor, nn

from gpuwise.measure import meta

FACTS = Path(__file__).parent.parent / "tools" / "facts" / "counts.csv"
COLUMNS = (
    "workload", "gmacs", "activations_m", "parameters_m", "stored_m", "launches", "depthwise_gmacs", "operations",
    "source",
)  # fmt: skip
SOURCE = "counted"
BYTES = 4
"""Of an element: everything is counted in fp32."""

Row = dict[str, str]


def count(make: Callable[[], nn.Module], inputs: Tensor | tuple[Tensor, ...], samples: float) -> Row:
    """Counts of one step, of a batch that holds so many samples; on the meta device, or on real tensors where `inputs`
    are real."""
    first = inputs[0] if isinstance(inputs, tuple) else inputs
    model = make() if first.device.type == "cpu" else meta.built(make)
    seen = meta.trace(model, inputs)
    return row(
        gmacs=sum(seen.macs.values()) / samples / 1e9,
        activations_m=seen.written / samples / 1e6,
        parameters_m=sum(p.numel() for p in model.parameters()) / 1e6,
        stored_m=seen.kept_bytes / BYTES / samples / 1e6,
        launches=seen.launches,
        depthwise_gmacs=seen.macs.get("depthwise", 0.0) / samples / 1e9,
        operations=seen.operations,
    )


def row(**figures: float) -> Row:
    """Of one sample: 10^9 MACs; 10^6 elements written, of parameters, kept for the backward pass. Of a batch: calls."""
    return {name: f"{value:.5g}" if name not in CALLS else f"{value:.0f}" for name, value in figures.items()}


CALLS = ("launches", "operations")


def write(found: Iterable[tuple[str, Row]], path: Path = FACTS) -> None:
    """Replaces the rows of these workloads in the file; the others stay."""
    rows = {old["workload"]: old for old in read(path)}
    rows |= {name: {"workload": name, **figures, "source": SOURCE} for name, figures in found}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows))


def read(path: Path = FACTS) -> list[Row]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
