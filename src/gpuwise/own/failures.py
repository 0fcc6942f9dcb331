"""How often a cluster stops: rates from a record of interruptions, and what follows for availability and checkpoints.

    mean time between = time / interruptions      of the cluster; n times as long for one of n nodes
    a GPU's rate = interruptions / (GPUs · years)
    availability = MTBF / (MTBF + repair)         the long-run share of an alternating renewal process

Source: Llama Team, The Llama 3 Herd of Models, arXiv 2407.21783, §3.3.4 and table 5 (the counts); availability:
R. E. Barlow, F. Proschan, Statistical Theory of Reliability and Life Testing (1975). Test values: 54 days, 16,384 GPUs,
419 interruptions: one in 3.09 h; 148 by GPUs and 72 by their memory: 0.0908 a GPU-year; 3.79 for 1,000 days of a node
of eight. 148 of 419 are 35.3 %, where 30.1 % was printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwise.cost.spot import young_interval_s
from gpuwise.errors import Message, UnknownName
from gpuwise.units import HOURS_PER_DAY, HOURS_PER_YEAR, SECONDS_PER_HOUR, Fraction, Hours, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """A record. accelerators: of the cluster; per_node: of one machine. count: of interruptions that nobody planned;
    by_cause: those of which the cause is told."""

    days: float
    accelerators: int
    per_node: int
    count: int
    by_cause: Mapping[str, int]

    @property
    def mean_h(self) -> Hours:
        """Between two interruptions of the cluster."""
        return self.days * HOURS_PER_DAY / self.count

    @property
    def per_1000_node_days(self) -> float:
        return 1000 * self.count / (self.accelerators / self.per_node * self.days)

    def share(self, *causes: str) -> Fraction:
        """Of all interruptions, those of these causes."""
        return self._of(causes) / self.count

    def per_gpu_year(self, *causes: str) -> float:
        """Interruptions of these causes for each GPU and year."""
        return self._of(causes) / (self.accelerators * self.days * HOURS_PER_DAY / HOURS_PER_YEAR)

    def _of(self, causes: tuple[str, ...]) -> int:
        for cause in causes:
            if cause not in self.by_cause:
                raise UnknownName(
                    Message('The record names no cause "{cause}".', cause=cause),
                    Message("It names: {causes}.", causes=", ".join(self.by_cause)),
                    nearest=tuple(self.by_cause),
                )
        return sum(self.by_cause[cause] for cause in causes)


def mean_h_between(accelerators: int, per_gpu_year: float) -> Hours | None:
    """Hours between two interruptions of a cluster of so many GPUs; None: nothing ever fails."""
    return HOURS_PER_YEAR / (accelerators * per_gpu_year) if per_gpu_year > 0 else None


def availability_fraction(mean_h: Hours, repair_h: Hours) -> Fraction:
    """Share of the time in which a machine works. Test value: 990 h between failures, 10 h of repair: 0.99."""
    return mean_h / (mean_h + repair_h)


def checkpoint_every_s(write_s: Seconds, mean_h: Hours) -> Seconds:
    """Work between checkpoints that costs least, by Young's rule; see `cost.spot`. Test value: 60 s, 3 h: 1,138 s."""
    return float(young_interval_s(write_s, mean_h * SECONDS_PER_HOUR))
