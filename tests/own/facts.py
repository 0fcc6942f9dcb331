"""Facts of a bill as tests need them: one row of use, and what a test changes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from gpuwise.own.usage import Fact, Reading, Spans

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)
NO_SPANS = Spans(accelerators=(), start_h=np.zeros(0), end_h=np.zeros(0), gpu_h=np.zeros(0))
READING = Reading(files=("bill.csv",))


def fact(**changes) -> Fact:
    """One row of use of GPUs that cost 10 USD and ran 4 GPU-hours."""
    plain = Fact(
        provider="AWS", service="Amazon Elastic Compute Cloud", category="Compute", region="us-east-1",
        currency="USD", month="2026-01", invoice="2026-01", kind="usage", unused=False, pricing="standard",
        role="machine", machine=None, flow=None, commitment=None, commitment_category="", commitment_type="",
        status=None, first=JANUARY, last=JANUARY, rows=1, effective=10.0, billed=10.0, listed=12.0, contracted=10.0,
        gpu_h=4.0, hours=1.0,
    )  # fmt: skip
    return replace(plain, **changes)


def unused(**changes) -> Fact:
    return fact(unused=True, status="unused", pricing="committed", commitment="c", gpu_h=0.0, hours=0.0, **changes)
