"""Write a made-up price list for the benches: the same bytes on every run, shaped like a real catalogue.

    python benchmarks/offers.py 100000 > offers.csv

100,000 rows have 14 columns and 8.2 MiB. Prices scatter around a rate per card, so that nearly all of them differ.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

HEADER = (
    "provider,instance,region,country,market,accelerator,accelerators,memory_gib,vcpus,host_memory_gib,"
    "price,currency,observed,source"
)
CARDS = (
    ("H100-SXM5-80GB", 80, 2.9), ("H100-PCIe-80GB", 80, 2.4), ("A100-SXM4-80GB", 80, 1.6), ("A100-PCIe-40GB", 40, 1.2),
    ("A10G", 24, 1.0), ("L4", 24, 0.7), ("L40S", 48, 1.3), ("T4", 16, 0.4), ("V100-SXM2-16GB", 16, 0.9),
    ("RTX-4090", 24, 0.5), ("RTX-3090", 24, 0.3), ("RTX-A6000", 48, 0.8), ("K80", 12, 0.3), ("GTX-1080-Ti", 11, 0.1),
)  # fmt: skip
REGIONS = (
    ("us-east-1", "US"), ("us-west-2", "US"), ("eu-west-1", "IE"), ("eu-central-1", "DE"), ("ap-northeast-1", "JP"),
    ("europe-west4", "NL"), ("sa-east-1", "BR"), ("uk-south", "GB"), ("NA", "NA"), ("fi-hel", "FI"),
)  # fmt: skip
MARKETS = (("on-demand", 1.0), ("spot", 0.4), ("dedicated", 0.65), ("community", 0.55))


def lines(rows: int, seed: int = 20261130) -> Iterator[str]:
    """The table line by line, header first."""
    draw = random.Random(seed)
    yield HEADER
    for _ in range(rows):
        card, memory, rate = draw.choice(CARDS)
        region, country = draw.choice(REGIONS)
        market, factor = draw.choice(MARKETS)
        provider, count = draw.randrange(40), draw.choice((1, 1, 2, 4, 8))
        price = rate * factor * count * draw.uniform(0.6, 1.8)
        day = f"2026-{draw.randrange(7, 12):02d}-{draw.randrange(1, 29):02d}"
        instance = f"g{draw.randrange(1, 9)}.{draw.choice((2, 4, 8, 16))}xlarge"
        yield (
            f"cloud{provider},{instance},{region},{country},{market},{card},{count},{memory},{8 * count},"
            f"{64 * count},{price:.3f},USD,{day},S{draw.randrange(1, 30):02d}"
        )


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    sys.stdout.writelines(f"{line}\n" for line in lines(size))
