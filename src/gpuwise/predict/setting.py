"""One place in which a job runs, or was run: what the predictor is asked, and what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuwise.model import Accelerator, Precision
from gpuwise.predict.roofline import Arithmetic, Work, arithmetic

Mode = Literal["train", "infer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One workload on one platform in one arithmetic.

    accelerators: devices together, in one machine. batch: samples of one device and step. precision: the arithmetic
    that is asked for. family: of workloads.FAMILIES, None if nobody says. work: counts of one forward pass, None if
    nobody counted. software: as in throughput.csv, None: current. memory_format: nchw, nhwc or None if unknown.
    as_computed: precision is the arithmetic that was really used, as a table states it.
    """

    workload: str
    family: str | None
    accelerator: Accelerator
    accelerators: int = 1
    precision: Precision
    batch: int
    work: Work | None = None
    software: str | None = None
    memory_format: str | None = None
    mode: Mode = "train"
    compiled: bool = False
    as_computed: bool = False

    @property
    def arithmetic(self) -> Arithmetic:
        """What the device computes in. A framework's fp32 is TF32 where there is TF32, but not in a table that states
        what was computed."""
        if self.as_computed and self.precision == "fp32":
            return "fp32"
        return arithmetic(self.precision, self.accelerator)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One measured rate: samples/s of all devices together; log_sd: of the figure itself, beside what hosts differ.
    yours: the person's own, not a table's."""

    setting: Setting
    samples_per_s: float
    log_sd: float = 0.0
    yours: bool = True
