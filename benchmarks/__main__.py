"""`make bench`: every bench in a process of its own, one after another; `make bench ARGS="engine feed"` runs some.

Nothing is asserted. Machines are shared and noisy: ratios are taken within one run, on the same work.
"""

from __future__ import annotations

import subprocess
import sys

PARTS = {
    "bills": "months of cost exports: rows a second and peak memory",
    "commands": "whole commands as a person runs them",
    "engine": "reference training against loops written by hand",
    "feed": "decoding and loading of images, one core",
    "overhead": "a program measured and not",
    "owning": "own or rent: paths of demand and prices, and what decides",
    "paintings": "made paintings: what colours tell of them, and what a network learns",
    "memory_counts": "counted memory against the real allocator",
    "prediction": "the predictor alone: platforms, conditioning, memory",
    "serving": "the server: requests a second and waiting with 50 clients, memory, first paint",
    "verdicts": "verdicts on constructed jobs with a known truth",
}


def main(wanted: list[str]) -> int:
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        print(f"There is no bench {', '.join(unknown)}: there is {', '.join(PARTS)}.", file=sys.stderr)
        return 2
    failed = []
    for name in wanted or PARTS:
        print(f"\n{name}: {PARTS[name]}", flush=True)
        if subprocess.run((sys.executable, "-m", f"benchmarks.{name}"), check=False).returncode:
            failed.append(name)
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
