"""What the measured rows say without any model, and what of a figure was measured and what is moved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from benchmarks.founding.answers import JOBS, Case, prediction
from gpuwise.model import BenchmarkResult
from gpuwise.store import package

CARDS = {"k80-half": "K80", "t4": "T4", "v100-sxm2-16gb": "V100", "gtx-1080-ti": "GTX 1080 Ti"}
PAIRS = (("t4", "k80-half"), ("v100-sxm2-16gb", "t4"), ("v100-sxm2-16gb", "k80-half"))
DIRECT = {"resnet34@224": "ResNet-34", "resnet50@224": "ResNet-50"}
ACROSS = {"resnet34": "resnet34@224", "resnet50": "resnet50@224"}
"""Network of the torchvision steps -> of the PROFET rows."""
NETWORKS = {"light": "ResNet-34", "heavy": "ResNet-101"}
CONSUMER = "gtx-1080-ti"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two measured rates of one network. Batches and frameworks differ where the table has no equal ones."""

    network: str
    faster: BenchmarkResult
    slower: BenchmarkResult

    @property
    def ratio(self) -> float:
        return self.faster.samples_per_s / self.slower.samples_per_s


def direct_pairs() -> Iterator[Pair]:
    """PROFET: the same network, batch, image size and framework on two cards, fp32."""
    for name, network in DIRECT.items():
        rows = {(r.accelerator, r.batch_per_accelerator): r for r in _rows(name)}
        for over, under in PAIRS:
            for batch in sorted(batch for card, batch in rows if card == over):
                if (under, batch) in rows:
                    yield Pair(network=network, faster=rows[over, batch], slower=rows[under, batch])


def hints() -> Iterator[Pair]:
    """The GTX 1080 Ti at batch 12 in PyTorch beside the smallest batch of the others in TensorFlow: no fair pair."""
    for own, other in ACROSS.items():
        (consumer,) = [r for r in _rows(own) if r.accelerator == CONSUMER and r.accelerators == 1]
        for card in ("k80-half", "t4", "v100-sxm2-16gb"):
            row = min((r for r in _rows(other) if r.accelerator == card), key=lambda r: r.batch_per_accelerator)
            yield Pair(network=DIRECT[other], faster=consumer, slower=row)


def _rows(name: str) -> list[BenchmarkResult]:
    return [r for r in package.throughput((name,)) if r.precision == "fp32" and r.accelerator in CARDS]


@cache
def origin(case: Case, offer: str) -> str:
    """In words, what of this job was measured on the card of an offer, and what is scaled."""
    found = prediction(case, offer)
    card, job = CARDS[found.platform], package.workloads()[JOBS[case.job]]
    network = NETWORKS[case.job]
    rows = [r for r in package.throughput(job.measured_as) if r.accelerator == found.platform and r.accelerators == 1]
    if not rows:
        return f"{card}: scaled from other models and cards ({network} was not measured on it)"
    row = min(rows, key=lambda r: abs(r.batch_per_accelerator - job.batch_per_accelerator))
    changes = {
        f"batch {row.batch_per_accelerator}": row.batch_per_accelerator != job.batch_per_accelerator,
        row.precision: found.method != "measured",
        str(row.software): True,
    }
    return f"{card}: scaled from {', '.join(what for what, other in changes.items() if other)} ({network}, measured)"
