"""One question a verb and more, said in three ways: on the command line, in Python, and over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from gpuwise.request import (
    AccuracyRequest,
    BillRequest,
    DataRequest,
    DescribeRequest,
    ExitRequest,
    ExplainRequest,
    OwnRequest,
    RankRequest,
    RunsRequest,
)
from gpuwise.units import HOURS_PER_MONTH

DAY = date(2026, 11, 30)
EVENTS = """\
[[machine]]
name = "train-1"
price_per_hour = 4.444
disk_price_per_month = 8.00
events = [
  {time = 2026-11-30T08:00:00Z, state = "running"},
  {time = 2026-11-30T10:00:00Z, state = "autostopped"},
]
"""
OFFERS = """\
provider,instance,gpu,gpus,price,currency,date
=HYPERLINK("x"),+small,RTX 4090,1,0.31,USD,2026-11-01
@mine,-big,A100-80GB,8,9.90,USD,2026-11-01
"""
SCENARIO = 'demand = "40 GPUs"\ngpu = "H100-SXM"\nhorizon = "3y"\n'
WORKLOAD = """\
name = "mine"
measured_as = ["resnet50"]
samples_per_epoch = 10000
epochs = 3
"""


def files(folder: Path) -> None:
    """What a person has."""
    for name, text in {"events.toml": EVENTS, "my offers.csv": OFFERS, "scenario.toml": SCENARIO}.items():
        (folder / name).write_text(text, "utf-8")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """words: behind the verb. query: by option. files: option -> name, which the words say too."""

    words: tuple[str, ...]
    request: Any
    query: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def _of(words: str, request: Any, files: Mapping[str, str] | None = None, **query: Any) -> Asked:
    said = {name.replace("_", "-"): value for name, value in query.items()}
    return Asked(words=tuple(words.split("|")), request=request, query=said, files=files or {})


ASKED: Mapping[str, tuple[Asked, ...]] = {
    "rank": (
        _of("painter-heavy|--limit|5", RankRequest(workloads=("painter-heavy",), limit=5),
            workloads="painter-heavy", limit="5"),
        _of("painter-heavy|painter-light|--gpu|T4,L4|--deadline|36h|--max-price|20USD|--market|on-demand|--market|spot",
            RankRequest(workloads=("painter-heavy", "painter-light"), gpu=("T4", "L4"), deadline_s=36 * 3600.0,
                        max_price_usd_per_hour=20.0, market=("on-demand", "spot")),
            workloads=["painter-heavy", "painter-light"], gpu="T4,L4", deadline="36h", max_price="20USD",
            market=["on-demand", "spot"]),
        _of("painter-heavy|--offers|my offers.csv|--only-offers",
            RankRequest(workloads=("painter-heavy",), offers=("my offers.csv",), only_offers=True),
            {"offers": "my offers.csv"}, workloads="painter-heavy", only_offers="true"),
    ),
    "explain": (
        _of("painter-heavy|--on|A100-80GB:2", ExplainRequest(workload="painter-heavy", on="A100-80GB:2"),
            workload="painter-heavy", on="A100-80GB:2"),
    ),
    "describe": (
        _of("painter-heavy|--batch|64", DescribeRequest(target="painter-heavy", batch=64),
            target="painter-heavy", batch="64"),
    ),
    "runs": (
        _of("list", RunsRequest(action="list")),
        _of("show|1", RunsRequest(action="show", names=("1",)), action="show", names="1"),
        _of("compare|1|2", RunsRequest(action="compare", names=("1", "2")), action="compare", names="1 2"),
    ),
    "own": (
        _of("--demand|40 GPUs|--gpu|H100-SXM",
            OwnRequest(demand_gpu_h_per_month=40 * HOURS_PER_MONTH, gpu=("H100-SXM",)),
            demand="40 GPUs", gpu="H100-SXM"),
        _of("scenario.toml", OwnRequest(scenario="scenario.toml"), {"scenario": "scenario.toml"}),
    ),
    "exit": (
        _of("--services|S3,TPU", ExitRequest(services=("S3", "TPU")), services="S3,TPU"),
    ),
    "accuracy": (
        _of("--by|family", AccuracyRequest(by="family"), by="family"),
    ),
    "data": (
        _of("list|--limit|3", DataRequest(action="list", limit=3), limit="3"),
        _of("show|RTX 4090", DataRequest(action="show", names=("RTX 4090",)), action="show", names="RTX 4090"),
        _of("diff|2026-09-30|2026-11-30", DataRequest(action="diff", names=("2026-09-30", "2026-11-30")),
            action="diff", names="2026-09-30 2026-11-30"),
        _of("check", DataRequest(action="check"), action="check"),
    ),
    "bill": (
        _of("events.toml|--until|2026-11-30T22:58Z",
            BillRequest(files=("events.toml",), until=datetime(2026, 11, 30, 22, 58, tzinfo=UTC)),
            {"files": "events.toml"}, until="2026-11-30T22:58Z"),
    ),
}  # fmt: skip
EVERY = [(verb, number) for verb, several in ASKED.items() for number in range(len(several))]


def sent(client: Any, address: str, asked: Asked, folder: Path, **more: Any) -> Any:
    """By GET, or with files by POST."""
    if not asked.files:
        return client.get(address, params=asked.query, **more)
    uploads = [(option, (name, (folder / name).read_bytes())) for option, name in asked.files.items()]
    return client.post(address, params=asked.query, files=uploads, **more)
