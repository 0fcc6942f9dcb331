"""Offers, candidates and rankings made by hand, for tests of what a person sees."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from gpuwise.errors import Message
from gpuwise.estimate import Estimate, exact
from gpuwise.model import (
    Candidate,
    Cost,
    CostLine,
    Exclusion,
    Offer,
    Prediction,
    Quotes,
    Ranking,
    Relaxation,
    Source,
    Workload,
)

JOB = Workload(
    name="painter-heavy",
    title="Painter of a painting, ResNet-101",
    family="vision",
    model="resnet101",
    sample="image of 224 px",
    gmacs=7.8,
    activations_m=16.2,
    parameters_m=44.5,
    state_bytes_per_parameter=12.0,
    batch_per_accelerator=64,
    precision="amp",
    samples=79_433,
    epochs=30.0,
    assumed={"samples": "size of a public painter-recognition competition", "epochs": "usual for this size"},
    source=Source(kind="assumed", ref="workloads.toml"),
    reasons={"accuracy_fraction": Message("nobody has measured it")},
)


def make_offer(
    provider: str, instance: str, gpu: str, count: int, price_usd_per_hour: float | None, **more: object
) -> Offer:
    """An offer with plain values where a test says nothing else."""
    values: dict[str, object] = {
        "id": f"{provider}/{instance}",
        "region": "us-east-1",
        "country": "US",
        "market": "on-demand",
        "memory_gib": 24.0,
        "vcpus": 16,
        "host_memory_gib": 64.0,
        "link": None,
        "host": "datacentre",
        "availability": "unknown",
        "price_native": price_usd_per_hour,
        "currency": "USD",
        "price_unit": "hour",
        "term_h": None,
        "upfront_usd": None,
        "billing_step_s": 60.0,
        "billing_minimum_s": 60.0,
        "observed": date(2026, 6, 15),
        "observed_precision": "day",
        "quality": "catalogue",
        "source": Source(kind="quoted", ref="S06"),
    } | more
    return Offer(
        provider=provider,
        instance=instance,
        accelerator=gpu,
        accelerators=count,
        price_usd_per_hour=price_usd_per_hour,
        **values,  # type: ignore[arg-type]
    )


def make_candidate(offer: Offer, hours: float, *, workload: Workload = JOB, **more: object) -> Candidate:
    """The offer for the job: 24 min of preparation, then `hours`; billed by time unless a test says otherwise."""
    gpu = offer.accelerator
    speed = Estimate(value=workload.total_samples / (hours * 3600), spread=((f"speed of {gpu}", 0.12),))
    rate, price = exact(3600.0 * hours) * (speed.value / speed), offer.price_usd_per_hour
    bill = None if not price else (rate / 3600 + 0.4) * price
    values: dict[str, object] = {
        "wait_s": None,
        "cost_usd": bill,
        "cost_share_usd": None,
        "break_even_hours_per_month": None,
        "on_frontier": False,
        "p_cheapest": None if bill is None else 0.0,
        "cost": None if bill is None else _bill(hours, price or 0.0),
    } | more
    return Candidate(
        offer=offer,
        workload=workload.name,
        prediction=Prediction(
            workload=workload.name,
            platform=gpu,
            accelerators=offer.accelerators,
            throughput_per_s=speed,
            method="ratio",
            evidence=(Message("3 measured rows of {gpu}", gpu=gpu),),
            advice=Message("Measure one minute on {gpu}.", gpu=gpu),
        ),
        time_s=rate + 1440.0,
        time_parts_s={"preparation": 1440.0, "compute": rate.value},
        **values,  # type: ignore[arg-type]
    )


def _bill(hours: float, price: float) -> Cost:
    lines = tuple(
        CostLine(kind=kind, quantity=h, unit="h", unit_price_usd=price, amount_usd=h * price, source="S06")
        for kind, h in (("preparation", 0.4), ("compute", hours))
    )
    return Cost(billed_usd=sum(line.amount_usd for line in lines), lines=lines)


def make_ranking(candidates: tuple[Candidate, ...], **more: object) -> Ranking:
    values: dict[str, object] = {
        "as_of": date(2026, 11, 30),
        "data_version": "2026.11.30",
        "workloads": (JOB,),
        "basis": "cost",
        "total_offers": 1655,
        "total_candidates": len(candidates),
        "frontier": tuple(c for c in candidates if c.on_frontier),
        "own": tuple(c for c in candidates if c.offer.market == "owned"),
        "exclusions": (),
        "counts": {},
        "funnel": (),
        "relaxations": (),
        "warnings": (),
        "oldest": date(2025, 12, 1),
        "newest": date(2026, 9, 6),
    } | more
    return Ranking(candidates=candidates, **values)  # type: ignore[arg-type]


def small_ranking() -> Ranking:
    """Eight offers of seven markets for one job: every kind of cell occurs once."""
    rent = {"price_unit": "month", "market": "dedicated", "term_h": 730.0}
    quotes = Quotes(count=4, minimum_usd_per_hour=0.29, median_usd_per_hour=0.41, maximum_usd_per_hour=1.10)
    offers = (
        (make_offer("vast", "rtx-4090 host", "rtx-4090", 1, 0.34, market="community", host="peer", region=None), 9.1),
        (make_offer("lambda", "gpu_1x_a10", "a10", 1, 0.75), 13.4),
        (make_offer("aws", "g5.2xlarge", "a10g", 1, 0.4848, market="spot", observed_precision="not-before"), 14.1),
        (make_offer("runpod", "4x L40S", "l40s", 4, 3.16), 2.2),
        (make_offer("coreweave", "8x H100", "h100-sxm5-80gb", 8, 18.4, memory_gib=80.0), 0.47),
        (make_offer("hostkey", "GTX 1080 Ti ×3", "gtx-1080-ti", 3, 0.4521, **rent), 12.7),
        (make_offer("own machine", "R750 2×A10", "a10", 2, 0.61, market="owned", price_unit="month", host="own"), 7.2),
        (make_offer("colab", "free notebook", "t4", 1, 0.0, market="free"), 41.0),
    )  # fmt: skip
    rows = [make_candidate(offer, hours) for offer, hours in offers]
    vast, lam, aws, runpod, core, hostkey, own, colab = rows
    month = exact(0.4521 * 730)
    no_bill = {"cost_usd": Message("nobody sends a bill for one job"), "p_cheapest": Message("it has no bill")}
    return make_ranking(
        (
            replace(vast, on_frontier=True, p_cheapest=0.87, quotes=quotes),
            replace(aws, p_cheapest=0.05),
            replace(runpod, on_frontier=True, p_cheapest=0.08),
            replace(lam),
            replace(core, on_frontier=True),
            replace(hostkey, cost_usd=month, break_even_hours_per_month=Estimate(value=812.0, spread=(("a", 0.2),))),
            replace(own, cost_usd=None, cost=None, marks=(Message("example"),), p_cheapest=None, reasons=no_bill),
            replace(colab, cost_usd=None, cost=None, p_cheapest=None, marks=(Message("sessions of 12 h"),)),
        ),
        total_candidates=214,
        counts={"stale_price": 1012, "superseded": 317, "does_not_fit": 88, "unknown_price": 24},
        exclusions=(
            Exclusion(
                offer_id="azure/NC6/us-east-1/on-demand/2020-01-05#3",
                workload=None,
                rule="stale_price",
                reason=Message("the price of {day} is {n} days old", day=date(2020, 1, 5), n=2521),
            ),
        ),
        funnel=(("offers", 1655), ("stale_price", 643), ("superseded", 326), ("unknown_price", 302)),
        relaxations=(
            Relaxation(
                rule="stale_price", admits=12, offer_id="gcp/a2-highgpu-1g", change=Message("--max-age {n}", n=400)
            ),
        ),
        warnings=(Message("{n} of the offers shown have no exact price date", n=1),),
    )
