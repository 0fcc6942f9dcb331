"""Build the bundled data package `src/gpuwise/data` from the project's collected tables.

    python tools/build_data.py --from ../shared/data

Standard library only, no clock, the same bytes on every run. What is judged by hand is kept as tables in tools/facts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import bundle_accelerators
import bundle_assumptions
import bundle_epochs
import bundle_leaving
import bundle_memory
import bundle_offers
import bundle_owning
import bundle_package
import bundle_profiles
import bundle_tariffs
import bundle_throughput
from bundle_tables import fact, write, write_text

BUILD_DATE = "2026-11-30"
VERSION = BUILD_DATE.replace("-", ".")
TARGET = Path(__file__).parent.parent / "src" / "gpuwise" / "data"


def build(source: Path, target: Path) -> None:
    """Write every file of the data package into `target`."""
    accelerators, share_alike = bundle_accelerators.build(source, BUILD_DATE)
    offers, dropped = bundle_offers.build(source, {r["id"]: r for r in accelerators})
    measured, answers, counts, defects = bundle_throughput.build(source)
    epochs, without_accuracy = bundle_epochs.build(source)
    memory, unfit = bundle_memory.build(source)
    pools = bundle_assumptions.spot(source)
    write(target / "accelerators.csv", bundle_accelerators.COLUMNS, accelerators, ["id"])
    write(target / "offers.csv", bundle_offers.COLUMNS, offers, ["id"])
    write(target / "throughput.csv", bundle_throughput.COLUMNS, measured, bundle_throughput.KEY)
    write(target / "inference.csv", bundle_throughput.INFERENCE_COLUMNS, answers, bundle_throughput.INFERENCE_KEY)
    write(target / "counts.csv", bundle_throughput.COUNT_COLUMNS, counts, ["workload"])
    write(target / "epochs.csv", bundle_epochs.COLUMNS, epochs, bundle_epochs.KEY)
    write(target / "memory.csv", bundle_memory.COLUMNS, memory, bundle_memory.KEY)
    profiles = bundle_profiles.build(source)
    write(target / "profiles.csv", bundle_profiles.COLUMNS, profiles, bundle_profiles.KEY)
    write(target / "spot.csv", bundle_assumptions.SPOT_COLUMNS, pools, bundle_assumptions.SPOT_COLUMNS[:6])
    write(target / "fx.csv", bundle_assumptions.FX_COLUMNS, bundle_assumptions.fx(source), ["code", "observed"])
    write(target / "regions.csv", ("provider", "region", "country", "source"), fact("regions"), ["provider", "region"])
    hosts = ("provider", "instance", "accelerator", "cpu_architecture", "source")
    write(target / "cpu_architectures.csv", hosts, fact("cpu_architectures"), hosts[:3])
    write(target / "sources.csv", ("key", "title", "url", "retrieved", "licence"), fact("sources"), ["key"])
    tariffs, no_tariffs = bundle_tariffs.build(source)
    write(target / "tariffs.csv", bundle_tariffs.COLUMNS, tariffs, bundle_tariffs.KEY)
    write(target / "cpu_hosts.csv", bundle_tariffs.CPU_COLUMNS, fact("cpu_hosts"), bundle_tariffs.CPU_COLUMNS[:3])
    write_text(target / "platforms.toml", bundle_tariffs.platforms_toml())
    of_owners = bundle_owning.build(source, target)
    bundle_leaving.build(target)
    left_out = [*share_alike, *dropped, *defects, *without_accuracy, *unfit, *no_tariffs, *of_owners]
    write(target / "left_out.csv", ("table", "row_key", "rule", "reason"), left_out, ["table", "row_key", "rule"])
    assumed = bundle_assumptions.assumptions(offers, pools, accelerators, BUILD_DATE)
    assumed += bundle_owning.assumptions(offers, BUILD_DATE)
    assumed.append(bundle_owning.spot_waste(assumed, BUILD_DATE))
    write_text(target / "assumptions.toml", bundle_assumptions.assumptions_toml(assumed))
    write_text(target / "machines.toml", bundle_assumptions.machines_toml(source))
    for name in ("workloads.toml", "accuracy.json"):  # kept by hand, and written by `make accuracy`
        write_text(target / name, (TARGET / name).read_text(encoding="utf-8"))
    (target / "predictor.npz").write_bytes((TARGET / "predictor.npz").read_bytes())  # made by `make fit`
    write_text(target / "datapackage.json", bundle_package.build(target, VERSION, BUILD_DATE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, required=True, help="folder with prices/ and benchmarks/")
    parser.add_argument("--to", dest="target", type=Path, default=TARGET, help="folder of the data package")
    arguments = parser.parse_args()
    build(arguments.source, arguments.target)


if __name__ == "__main__":
    main()
