"""What one job does beside training, as its person said it and as it is assumed: the same on every offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

from gpuwise.estimate import Z80, Estimate
from gpuwise.model import Assumptions
from gpuwise.request import JobFilters
from gpuwise.units import GbPerSecond, Seconds

LOSSES, WRITE, RESTART = "spot_losses_per_hour", "checkpoint_s", "restart_s"
AVAILABLE, DISPERSION = "spot_available_fraction", "spot_dispersion"
IMAGE_RATE, NEAR_RATE, FAR_RATE = "image_gb_per_s", "region_gb_per_s", "internet_gb_per_s"
"""Names of assumptions, and of the errors that they leave."""
TOO_FAST_GB_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """prepare: seconds before the first step, by what is there already (ready, bare, unknown). image: seconds to fetch
    and unpack it, as fast as the link and what is usual allow.

    near, far: rates at which data comes from its own region, or from elsewhere. write: time of a checkpoint; every_s:
    training between two, None where nobody said. restart: after an interruption. losses: an hour and machine;
    available: share of the time in which a spot machine can be had, None if nobody says; outage_h: for so long one is
    away on average, by what is assumed of both; dispersion: as in `Pool`. evaluation_fraction: of the training time;
    final_s: the evaluation at the end of one job.
    """

    prepare: Mapping[str, Estimate]
    image: Estimate | None
    near: Estimate
    far: Estimate
    write: Estimate
    write_stated: bool
    every_s: Seconds | None
    restart: Estimate
    losses: Estimate
    losses_stated: bool
    available: Estimate | None
    available_stated: bool
    outage_h: float
    wait_log_sd: float
    dispersion: float
    evaluation_fraction: float
    final_s: Seconds

    @staticmethod
    def of(request: JobFilters, assumptions: Assumptions) -> Overheads:
        said = _Said(assumptions)
        link, unpacking = said.rate(request.network_gb_per_s, IMAGE_RATE), said.rate(None, IMAGE_RATE)
        image_rate = min(link, unpacking, key=lambda rate: rate.value)
        available = request.available_fraction
        return Overheads(
            prepare={kind: _preparation(kind, request, assumptions) for kind in ("ready", "bare", "unknown")},
            image=None if request.image_gb is None else request.image_gb / image_rate,
            near=said.rate(request.network_gb_per_s, NEAR_RATE),
            far=said.rate(request.network_gb_per_s, FAR_RATE),
            write=said.or_assumed(request.checkpoint_s, WRITE),
            write_stated=request.checkpoint_s is not None,
            every_s=request.checkpoint_every_s,
            restart=said.or_assumed(request.restart_s, RESTART),
            losses=said.or_assumed(request.losses_per_hour, LOSSES),
            losses_stated=request.losses_per_hour is not None,
            available=said.if_known(available, AVAILABLE),
            available_stated=available is not None,
            outage_h=said.outage_h(),
            wait_log_sd=0.0 if available is not None else said.odds_log_sd(AVAILABLE),
            dispersion=assumptions[DISPERSION].value if DISPERSION in assumptions else 1.0,
            evaluation_fraction=request.evaluation_fraction,
            final_s=request.final_evaluation_s or 0.0,
        )

    def rate(self, near: bool) -> Estimate:
        return self.near if near else self.far


@dataclass(frozen=True, slots=True)
class _Said:
    """A figure as it was said, or as it is assumed."""

    assumptions: Assumptions

    def or_assumed(self, value: float | None, name: str) -> Estimate:
        return self.assumptions[name].estimate if value is None else _sure(value)

    def if_known(self, value: float | None, name: str) -> Estimate | None:
        return self.or_assumed(value, name) if value is not None or name in self.assumptions else None

    def rate(self, value: GbPerSecond | None, name: str) -> Estimate:
        """Without an assumption at hand, too fast to notice."""
        return self.if_known(value, name) or _sure(TOO_FAST_GB_PER_S)

    def outage_h(self) -> float:
        """(1 − a)/(a·λ) of the pools that are assumed; 0 where nobody says how often they can be had."""
        if AVAILABLE not in self.assumptions:
            return 0.0
        share = self.assumptions[AVAILABLE].value
        return (1 - share) / share / self.assumptions[LOSSES].value

    def odds_log_sd(self, name: str) -> float:
        """Log sd of (1 − a)/a, to which the wait is in proportion, where a lies in the assumption's range."""
        known = self.assumptions.get(name)
        if known is None or known.low is None or known.high is None or not 0 < known.low < known.high < 1:
            return 0.0
        return log((1 - known.low) / known.low * known.high / (1 - known.high)) / (2 * Z80)


def _sure(value: float) -> Estimate:
    return Estimate(value=value, basis="quoted")


def _preparation(kind: str, request: JobFilters, assumptions: Assumptions) -> Estimate:
    """Stated, or as assumed for this kind of machine: at the lower end by practice, at the upper the first time."""
    if request.prepare_s is not None:
        return _sure(request.prepare_s)
    name = {"ready": "preparation_ready_s", "bare": "preparation_bare_s"}.get(kind, "preparation_s")
    assumed = assumptions.get(name, assumptions["preparation_s"])
    end = {"practised": assumed.low, "first-time": assumed.high}.get(request.skill or "")
    return assumed.estimate if end is None else Estimate(value=end, basis="assumed")
