"""The measured networks that timm's tables do not count: rows of tools/facts/counts.csv.

    python -m benchmarks.count_networks

Needs the extra [torch]; takes seconds. PROFET's networks at each of their sizes, and those of torchvision's model zoo.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torchvision

from benchmarks.counts import Row, count, write
from benchmarks.profet_models import CLASSES, NETWORKS
from gpuwise.measure import meta

TORCHVISION = (
    "densenet121", "densenet161", "densenet169", "densenet201", "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3",
    "mobilenet_v2", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0",
    "squeezenet1_0", "squeezenet1_1",
)  # fmt: skip
"""At 224 px, which their names do not say."""


def counts() -> Iterator[tuple[str, Row]]:
    """Named as in throughput.csv; PROFET's with their size, for they are not the networks of these names elsewhere."""
    for name, make in NETWORKS.items():
        for size, classes in CLASSES.items():
            yield f"{name}@{size}", count(partial(make, classes), meta.image(2, size), 2)
    for name in TORCHVISION:
        yield name, count(partial(torchvision.models.get_model, name, weights=None), meta.image(2, 224), 2)


if __name__ == "__main__":
    write(counts())
