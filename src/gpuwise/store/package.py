"""The bundled facts, each read when it is asked for and once. What the files hold is said in data/datapackage.json."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any, cast

import numpy as np

from gpuwise.asset import GridCarbon, HostingFact, Server
from gpuwise.catalogue import Catalogue
from gpuwise.cost.tariffs import Item, Tariff, Tariffs, Tier
from gpuwise.errors import Message
from gpuwise.memory import MemoryReading
from gpuwise.model import (
    Accelerator,
    Assumption,
    Assumptions,
    BenchmarkResult,
    Fx,
    Machine,
    Source,
    Workload,
)
from gpuwise.offer import CpuHost, Provider, ProviderFact
from gpuwise.predict.answer import Model
from gpuwise.predict.roofline import UNKNOWN_OPERATIONS, Work
from gpuwise.predict.shipped import from_arrays
from gpuwise.predict.tested import Table as Accuracy
from gpuwise.predict.tested import parse as parse_accuracy
from gpuwise.rank.architecture import HostFact
from gpuwise.rank.conditions import Surroundings
from gpuwise.stopping import EpochReference
from gpuwise.store.cache import Loaded, cached, key
from gpuwise.store.facts import Facts
from gpuwise.workloads import parse as parse_workloads


@cache
def description() -> Mapping[str, Any]:
    """datapackage.json: each file with rows, SHA-256, licence, columns."""
    described: dict[str, Any] = json.loads(_content("datapackage.json"))
    return described


def version() -> str:
    """The data version: the day the bundle was made, as YYYY.MM.DD."""
    return str(description()["version"])


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """All accelerators, by id."""
    return {row["id"]: _accelerator(row) for row in rows("accelerators.csv")}


@cache
def offers() -> Catalogue:
    """The bundled offers, every day of them."""
    content, known = _content("offers.csv"), facts()
    entry = key(hashlib.sha256(content).hexdigest(), "bundled", known.version, version())
    return cached(entry, lambda: _parsed(content, known)).catalogue


def _parsed(content: bytes, known: Facts) -> Loaded:
    from gpuwise.store.tables import parse_offers  # the reader is not needed while the cache holds what it read

    return parse_offers(content, "offers.csv", known, version=version())


@cache
def facts() -> Facts:
    """What a price list is read against: accelerators, exchange rates, countries of regions, instance types."""
    names = ("accelerators.csv", "fx.csv", "regions.csv", "offers.csv")
    return Facts(
        accelerators=accelerators(),
        fx=fx(),
        countries={(row["provider"], row["region"]): row["country"] for row in rows("regions.csv")},
        instances=_instances,
        usual_usd_per_hour=_usual_usd_per_hour,
        version=hashlib.sha256(b"".join(_content(name) for name in names)).hexdigest(),
    )


@cache
def _instances() -> Mapping[tuple[str, str], int]:
    """The number of GPUs of every instance type of the bundled offers; names without a digit are no types."""
    counts: dict[tuple[str, str], set[int]] = {}
    for row in rows("offers.csv"):
        if any(letter.isdigit() for letter in row["instance"]):
            counts.setdefault((row["provider"], row["instance"]), set()).add(int(row["accelerators"]))
    return {name: found.pop() for name, found in counts.items() if len(found) == 1}


@cache
def _usual_usd_per_hour() -> Mapping[str, float]:
    from gpuwise.integrity import usual_usd_per_hour  # only a list that is new has its prices questioned

    return usual_usd_per_hour(list(rows("offers.csv")))


@cache
def rates() -> Mapping[str, tuple[Fx, ...]]:
    """Every exchange rate of each currency, the oldest first."""
    found: dict[str, tuple[Fx, ...]] = {}
    for row in sorted(rows("fx.csv"), key=lambda row: row["observed"]):
        day = date.fromisoformat(row["observed"])
        rate = Fx(code=row["code"], usd_per_unit=float(row["usd_per_unit"]), observed=day, source=row["source"])
        found[rate.code] = (*found.get(rate.code, ()), rate)
    return found


@cache
def fx() -> Mapping[str, Fx]:
    """The newest exchange rate of each currency."""
    return {code: known[-1] for code, known in rates().items()}


@cache
def workloads() -> Mapping[str, Workload]:
    """The built-in workloads, by name: the one registry of every command."""
    return parse_workloads(tomllib.loads(_content("workloads.toml").decode()))


def throughput(workloads: Collection[str] | None = None) -> tuple[BenchmarkResult, ...]:
    """Measured rates of these workloads (names as in the table), or of all."""
    return tuple(_benchmark(row) for row in rows("throughput.csv", workloads))


def inference(workloads: Collection[str] | None = None) -> tuple[BenchmarkResult, ...]:
    """Measured rates of forward passes of these workloads, or of all."""
    return tuple(_answering(row) for row in rows("inference.csv", workloads))


@cache
def model() -> Model:
    """The shipped predictor: what `make fit` found."""
    with np.load(io.BytesIO(_content("predictor.npz")), allow_pickle=False) as arrays:
        return from_arrays(dict(arrays))


@cache
def measured() -> frozenset[str]:
    """The workloads that the throughput table has, by name."""
    return frozenset(row["workload"] for row in rows("throughput.csv"))


@cache
def measured_cards() -> frozenset[str]:
    """The accelerators that the throughput table has, by id."""
    return frozenset(row["accelerator"] for row in rows("throughput.csv"))


@cache
def counts() -> Mapping[str, Work]:
    """Workload of the throughput table -> what one sample costs, where it is counted."""
    return {
        row["workload"]: Work(
            gmacs=float(row["gmacs"]),
            activations_m=float(row["activations_m"]),
            parameters_m=float(row["parameters_m"]),
            operations=number(row["operations"]) or UNKNOWN_OPERATIONS,
            stored_m=number(row["stored_m"]),
            launches=number(row["launches"]),
            depthwise_gmacs=number(row["depthwise_gmacs"]),
        )
        for row in rows("counts.csv")
    }


@cache
def memory() -> Mapping[str, tuple[MemoryReading, ...]]:
    """Workload of the memory table -> what a driver saw its runs take of one device."""
    found: dict[str, tuple[MemoryReading, ...]] = {}
    for row in rows("memory.csv"):
        found[row["workload"]] = (*found.get(row["workload"], ()), _memory(row))
    return found


@cache
def hosts() -> tuple[HostFact, ...]:
    """What is known of the CPUs of instance families and superchips."""
    return tuple(
        HostFact(
            provider=row["provider"] or None,
            instance=row["instance"] or None,
            accelerator=row["accelerator"] or None,
            cpu_architecture=row["cpu_architecture"],
            source=row["source"],
        )
        for row in rows("cpu_architectures.csv")
    )


@cache
def epochs() -> tuple[EpochReference, ...]:
    """Samples that reference runs of known tasks took to their target, by global batch."""
    return tuple(
        EpochReference(
            task=row["task"],
            target_fraction=float(row["target_fraction"]),
            global_batch=int(row["global_batch"]),
            runs=int(row["runs"]),
            samples_to_target=float(row["samples_to_target"]),
            cv_fraction=float(row["cv_fraction"]),
            source=row["source"],
        )
        for row in rows("epochs.csv")
    )


@cache
def assumptions() -> Assumptions:
    """Every figure that nobody measured here, by name; those without a value are in `unassumed`."""
    table = tomllib.loads(_content("assumptions.toml").decode())
    return {name: Assumption(name=name, **row) for name, row in table.items() if "value" in row}


@cache
def unassumed() -> Mapping[str, Message]:
    """Figures that nobody can assume, and why."""
    table = tomllib.loads(_content("assumptions.toml").decode())
    return {name: Message("{reason}", reason=row["reason"]) for name, row in table.items() if "value" not in row}


@cache
def servers() -> tuple[Server, ...]:
    """Machines that can be bought; several prices of one are several."""
    return tuple(_server(row) for row in rows("servers.csv"))


@cache
def hosting() -> tuple[HostingFact, ...]:
    """What electricity, cooling and a place cost."""
    return tuple(
        HostingFact(
            kind=row["kind"], country=row["country"] or None, region=row["region"] or None, value=float(row["value"]),
            unit=row["unit"], customer=row["customer"], observed=date.fromisoformat(row["observed"]),
            observed_precision=row["observed_precision"], source=row["source"], note=row["note"],
        )
        for row in rows("hosting.csv")
    )  # fmt: skip


@cache
def carbon() -> Mapping[str, GridCarbon]:
    """Greenhouse gases of a country's electricity, by its code of two letters."""
    return {
        row["country"]: GridCarbon(
            country=row["country"], name=row["name"], year=int(row["year"]),
            g_co2e_per_kwh=float(row["g_co2e_per_kwh"]), source=row["source"],
        )
        for row in rows("carbon.csv")
    }  # fmt: skip


@cache
def accuracy() -> Accuracy:
    """How wrong the predictor was on rows that were left out: as `make accuracy` found it."""
    return parse_accuracy(json.loads(_content("accuracy.json")))


@cache
def machines() -> tuple[Machine, ...]:
    """The example machines. The file also states a range, an origin and a remark for each figure."""
    own = {f.name for f in fields(Machine)} - {"source"}
    rows = tomllib.loads(_content("machines.toml").decode())["machine"]
    return tuple(
        Machine(**{k: v for k, v in row.items() if k in own}, source=Source(kind="quoted", ref=row["source"]))
        for row in rows
    )


@cache
def surroundings() -> Surroundings:
    """What is known of the providers beside prices: facts, tariffs, machines without a GPU."""
    return Surroundings(providers=providers(), tariffs=tariffs(), cpu_hosts=cpu_hosts())


@cache
def providers() -> Mapping[str, Provider]:
    """Dated facts about the providers' platforms, by provider."""

    def fact(name: str, row: Mapping[str, Any]) -> ProviderFact:
        return ProviderFact(name=name, **{**row, "value": str(row["value"])})

    table = tomllib.loads(_content("platforms.toml").decode())
    return {
        provider: Provider(name=provider, facts={name: fact(name, row) for name, row in rows.items()})
        for provider, rows in table.items()
    }


@cache
def tariffs() -> Tariffs:
    """Prices of disks, of data that leaves, and of addresses."""
    tiers: dict[tuple[str, ...], list[Tier]] = {}
    for row in sorted(rows("tariffs.csv"), key=lambda row: float(row["start"])):
        key = (row["provider"], row["region"], row["item"], row["observed"], row["source"])
        tier = Tier(start=float(row["start"]), end=number(row["end"]), usd_per_unit=float(row["usd_per_unit"]))
        tiers.setdefault(key, []).append(tier)
    return Tariffs(
        Tariff(
            provider=provider, region=region or None, item=cast(Item, item), tiers=tuple(found), observed=day_of(day),
            source=source,
        )
        for (provider, region, item, day, source), found in tiers.items()
    )  # fmt: skip


@cache
def cpu_hosts() -> tuple[CpuHost, ...]:
    """Machines without a GPU."""
    return tuple(
        CpuHost(
            provider=row["provider"], instance=row["instance"], region=row["region"], vcpus=int(row["vcpus"]),
            memory_gib=float(row["memory_gib"]), usd_per_hour=float(row["usd_per_hour"]),
            observed=day_of(row["observed"]), source=row["source"],
        )
        for row in rows("cpu_hosts.csv")
    )  # fmt: skip


@cache
def sources() -> Mapping[str, Mapping[str, str]]:
    """Key of a source -> title, url, retrieved, licence."""
    return {row["key"]: row for row in rows("sources.csv")}


def left_out() -> tuple[Mapping[str, str], ...]:
    """Figures that were found and not bundled: table, row_key, rule, reason."""
    return tuple(rows("left_out.csv"))


def contents() -> Mapping[str, bytes]:
    """Every file that datapackage.json describes and that is there, by name."""
    names = [str(resource["path"]) for resource in description()["resources"]]
    folder = files("gpuwise") / "data"
    return {name: _content(name) for name in names if (folder / name).is_file()}


def tables() -> Mapping[str, list[dict[str, str]]]:
    """Every CSV table as text: name -> rows of column -> cell, for `integrity.check`."""
    return {name.removesuffix(".csv"): list(rows(name)) for name in contents() if name.endswith(".csv")}


def _content(name: str) -> bytes:
    return (files("gpuwise") / "data" / name).read_bytes()


def rows(name: str, keys: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a table, column -> text; only those whose first column is one of `keys`, if given."""
    reader = csv.reader(io.StringIO(_content(name).decode(), newline=""))
    header = next(reader)
    return (dict(zip(header, row, strict=True)) for row in reader if keys is None or row[0] in keys)


def number(text: str) -> float | None:
    """None for an empty cell."""
    return float(text) if text else None


def day_of(text: str) -> date | None:
    """None for an empty cell."""
    return date.fromisoformat(text) if text else None


NO_PRICE = Message("no public price was found: give yours with --server-price")


def _server(row: Mapping[str, Any]) -> Server:
    texts = ("id", "vendor", "model", "configuration", "currency", "price_kind", "observed_precision", "source", "note")
    figures: dict[str, Any] = {name: row[name] for name in texts}
    figures |= {name: number(row[name]) for name in ("rack_units", "max_power_w", "price_usd", "price_native")}
    figures |= {name: row[name] or None for name in ("accelerator", "link", "cpu")}
    return Server(
        **figures,
        accelerators=int(row["accelerators"]) if row["accelerators"] else None,
        observed=day_of(row["observed"]),
        complete=row["complete"] == "yes",
        reasons={} if row["price_usd"] else {"price_usd": NO_PRICE},
    )


def _accelerator(row: Mapping[str, Any]) -> Accelerator:
    figures = ("usable_memory_gib", "bandwidth_gb_per_s", "tdp_w", "link_gb_per_s")
    rates = tuple(f"{kind}_tflops" for kind in ("fp32", "tf32", "fp16", "bf16", "fp8"))
    texts: dict[str, Any] = {c: row[c] for c in ("id", "name", "vendor", "architecture", "form_factor")}
    numbers: dict[str, Any] = {c: number(row[c]) for c in (*figures, *rates)}
    return Accelerator(
        **texts,
        **numbers,
        memory_gib=float(row["memory_gib"]),
        link=row["link"] or None,
        launched=day_of(row["launched"]),
        aliases=tuple(row["aliases"].split(";")) if row["aliases"] else (),
    )


def _memory(row: Mapping[str, Any]) -> MemoryReading:
    return MemoryReading(
        batch_per_accelerator=int(row["batch_per_accelerator"]),
        precision=row["precision"],
        used_gib=float(row["peak_memory_gib"]),
        accelerator=row["accelerator"],
        accelerators=int(row["accelerators"]),
        software=row["software"] or None,
    )


def _answering(row: Mapping[str, Any]) -> BenchmarkResult:
    return BenchmarkResult(
        workload=row["workload"],
        family=row["family"],
        accelerator=row["accelerator"],
        precision=row["precision"],
        accelerators=1,
        batch_per_accelerator=int(row["batch_per_accelerator"]),
        samples_per_s=float(row["samples_per_s"]),
        software=row["software"] or None,
        memory_format=row["memory_format"] or None,
        mode="infer",
        compiled=row["compiled"] == "yes",
        source=Source(kind="published", ref=row["source"]),
    )


def _benchmark(row: Mapping[str, Any]) -> BenchmarkResult:
    return BenchmarkResult(
        workload=row["workload"],
        family=row["family"],
        accelerator=row["accelerator"],
        precision=row["precision"],
        accelerators=int(row["accelerators"]),
        batch_per_accelerator=int(row["batch_per_accelerator"]),
        samples_per_s=float(row["samples_per_s"]),
        software=row["software"] or None,
        memory_format=row["memory_format"] or None,
        link=row["link"] or None,
        observed=day_of(row["observed"]),
        source=Source(kind="published", ref=row["source"]),
    )
