"""What ratios of data sheets say: from what was measured to what is asked, for comparison with a prediction.

    rate = measured rate per device · (peak ratio | bandwidth ratio | geometric mean of both) · devices

Test value: from a V100 (125 TFLOPS, 900 GB/s) to an A100 (312, 1,555) in AMP the peaks say 2.50, the bandwidths 1.73,
their geometric mean 2.08.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log

from gpuwise.predict.roofline import Rates, rates
from gpuwise.predict.setting import Reading, Setting


def naive(asked: Setting, given: Sequence[Reading]) -> Mapping[str, float]:
    """Rule of `score.NAIVE` -> samples/s, the geometric mean over what was measured; empty where nothing was, or where
    a data sheet says too little."""
    target = site(asked)
    pairs = [(reading, site(reading.setting)) for reading in given]
    known = [(reading, there) for reading, there in pairs if there is not None]
    if target is None or not known:
        return {}
    each = [_log_rates(asked, target, reading, there) for reading, there in known]
    return {rule: exp(sum(found[rule] for found in each) / len(each)) for rule in each[0]}


def site(setting: Setting) -> Rates | None:
    """What the data sheet says of the device in this arithmetic."""
    return rates(setting.accelerator, setting.arithmetic)


def _log_rates(asked: Setting, target: Rates, reading: Reading, there: Rates) -> dict[str, float]:
    base = log(reading.samples_per_s / reading.setting.accelerators * asked.accelerators)
    peak = log(target.peak_tflops / there.peak_tflops)
    bandwidth = log(target.bandwidth_gb_per_s / there.bandwidth_gb_per_s)
    middle = (peak + bandwidth) / 2
    return {"peak": base + peak, "bandwidth": base + bandwidth, "geometric_mean": base + middle}
