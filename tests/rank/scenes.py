"""Small worlds for ranking: a few accelerators, a predictor with known speeds, and offers written as rows."""

from __future__ import annotations

from datetime import date, timedelta

from gpuwise.catalogue import Catalogue, as_days, from_rows
from gpuwise.errors import Message
from gpuwise.estimate import Estimate
from gpuwise.model import Accelerator, Assumption, Prediction, Ranking, Refusal, Source, Workload
from gpuwise.rank import Context, rank
from gpuwise.request import RankRequest

DAY = date(2026, 11, 30)

ACCELERATORS = {
    name: Accelerator(id=name, name=name, vendor="NVIDIA", architecture="test", form_factor="PCIe", memory_gib=memory)
    for name, memory in {"t4": 16, "l4": 24, "a100": 80, "h100": 80, "b200": 180}.items()
}
SPEED_PER_S = {"l4": 300.0, "a100": 1000.0, "h100": 2000.0, "b200": 4000.0}

ASSUMPTIONS = {
    a.name: a
    for a in (
        Assumption(name="preparation_s", value=1800, low=1200, high=2700, unit="s", source="test"),
        Assumption(name="spot_losses_per_hour", value=0.4, low=0.1, high=1.6, unit="1/h", source="test"),
        Assumption(name="checkpoint_interval_s", value=1800, low=None, high=None, unit="s", source="test"),
        Assumption(name="checkpoint_s", value=30, low=None, high=None, unit="s", source="test"),
        Assumption(name="restart_s", value=600, low=None, high=None, unit="s", source="test"),
        Assumption(name="billing_step_s", value=3600, low=None, high=None, unit="s", source="test"),
        Assumption(name="noise_other_machine_log_sd", value=0.001, low=None, high=None, unit="1", source="test"),
        Assumption(name="price_age_log_sd_per_root_year", value=0.1, low=None, high=None, unit="1", source="test"),
    )
}

JOB = Workload(
    name="job", title="A job", family="cnn", model="resnet", sample="image", gmacs=4, activations_m=11, parameters_m=25,
    state_bytes_per_parameter=16, batch_per_accelerator=64, precision="amp", samples=1_000_000, epochs=36,
    source=Source(kind="assumed", ref="test"),
)  # fmt: skip


def predict(workload, platforms, sd=0.1):
    """Throughput by SPEED_PER_S, exact scaling; the T4 is too small; an unstated variant is as fast as its first."""
    return [_outcome(workload, platform, sd) for platform in platforms]


def _outcome(workload, platform, sd):
    name = platform.variants[0].id
    about = {"workload": workload.name, "platform": platform.name, "accelerators": platform.accelerators}
    if name not in SPEED_PER_S:
        return Refusal(rule="does_not_fit", reason=Message("{name} is too small", name=name), **about)
    speed = Estimate(value=SPEED_PER_S[name] * platform.accelerators, spread=((f"speed {name}", sd),))
    return Prediction(throughput_per_s=speed, method="ratio", evidence=(), advice=Message("measure"), **about)


def offer(provider="acme", gpu="l4", price=1.0, *, count=1, market="on-demand", age_days=0, **columns):
    """One catalogue row: billed by the second, net price in USD, seen `age_days` before DAY."""
    return {
        "provider": provider, "instance": f"{gpu}x{count}", "market": market, "accelerator": gpu, "accelerators": count,
        "price_state": "listed", "price_usd_per_hour": price, "price_native": price, "currency": "USD",
        "price_unit": "hour", "tax": "net", "billing_step_s": 1, "billing_minimum_s": 0, "host": "datacentre",
        "availability": "unknown", "observed": as_days(DAY - timedelta(days=age_days)), "source": "test",
    } | columns  # fmt: skip


def catalogue(*rows) -> Catalogue:
    return from_rows("test", "1", rows, ids=[f"{r['provider']}-{i}" for i, r in enumerate(rows)])


def ranking(*rows, workloads=(JOB,), predictor=predict, context=(), **request) -> Ranking:
    """Rank the rows for JOB on DAY."""
    settings = {"as_of": DAY, "data_version": "test", "accelerators": ACCELERATORS, "predict": predictor}
    settings |= {"assumptions": ASSUMPTIONS} | dict(context)
    return rank(catalogue(*rows), workloads, RankRequest(**request), Context(**settings))


def names(result: Ranking) -> list[str]:
    return [c.offer.provider for c in result.candidates]


def rules(result: Ranking) -> dict[str, str]:
    """offer id -> the rule that left it out."""
    return {e.offer_id: e.rule for e in result.exclusions}
