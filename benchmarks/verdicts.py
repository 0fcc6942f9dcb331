"""How often verdicts are right, on jobs whose truth is known because it was put in.

    python -m benchmarks.verdicts [FIRST LAST] [--real N]

Scripted: fake accelerators, by the text of marks and gauges that such a run would give, seeds FIRST to LAST (1000 to
1099). Real: child processes on this machine's CPUs, N seeds from FIRST on (2), with real sleeps, affinities, processes
beside them and mounts; "tiny shared memory" needs the right to mount. Thresholds were set on seeds 0 to 99.

A real run on a machine that is not quiet may rightly be told to have a neighbour; such verdicts are counted apart.
Goal: right at least 19 of 20, unknown otherwise, never wrong.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.measure.scripted import CASES, outcome
from tests.measure.verdict_jobs import JOBS, Job, measured, severity

from gpuwise.measure.record import Record
from gpuwise.measure.verdict import Judgement, judge

OUTCOMES = ("right", "unknown", "wrong", "neighbour, and there was one")
DISTURBED = 0.2


def real_outcome(job: Job, record: Record, judgement: Judgement) -> str:
    if judgement.kind in job.kinds and judgement.cause in job.causes:
        return "right"
    others = record.host_load and record.host_load.others_fraction
    if judgement.cause == "neighbour" and others and others.mean >= DISTURBED:
        return "neighbour, and there was one"
    return "unknown" if judgement.kind == "unknown" else "wrong"


def line(name: str, counts: Counter[str]) -> str:
    return f"{name:34}" + "".join(f"{counts[outcome]:>9}" for outcome in OUTCOMES)


def report(title: str, counted: Iterable[tuple[str, Counter[str]]]) -> None:
    print(f"\n{title:34}" + "".join(f"{outcome[:9]:>9}" for outcome in OUTCOMES))
    whole: Counter[str] = Counter()
    for name, counts in counted:
        print(line(name, counts), flush=True)
        whole.update(counts)
    print(line("all", whole) + f"   right {whole['right'] / max(whole.total(), 1):.1%}")


def scripted(seeds: range) -> Iterable[tuple[str, Counter[str]]]:
    for case in CASES:
        yield case.name, Counter(outcome(case, judge(case.record(seed))) for seed in seeds)


def real(seeds: range) -> Iterable[tuple[str, Counter[str]]]:
    with tempfile.TemporaryDirectory() as folder:
        for job in JOBS:
            counts: Counter[str] = Counter()
            for seed in seeds:
                record = measured(job, severity(job, seed), Path(folder) / "record.json")
                judgement = judge(record)
                found = real_outcome(job, record, judgement)
                counts[found] += 1
                if found != "right":
                    print(f"  {job.name}, seed {seed}: {judgement.sentence}")
            yield job.name, counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", nargs="?", type=int, default=1000)
    parser.add_argument("last", nargs="?", type=int, default=1099)
    parser.add_argument("--real", type=int, default=2, help="seeds of real jobs (0: none)")
    asked = parser.parse_args()
    report("scripted", scripted(range(asked.first, asked.last + 1)))
    if asked.real:
        report("real", real(range(asked.first, asked.first + asked.real)))


if __name__ == "__main__":
    main()
