"""The workloads by which devices are compared, and the counts of those that no other table counts.

Counted on the meta device by `python benchmarks/count_workloads.py`. BERT is counted without fused attention, as it
ran: its score matrices are written. Mask R-CNN is not here: its shapes depend on the data, and counts at the start of
training were a third off.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuwise.predict.roofline import Work

REFERENCE: Mapping[str, Work] = {
    "resnet50": Work(gmacs=4.089, activations_m=11.11, parameters_m=25.557, operations=54),
    "ssd": Work(gmacs=20.15, activations_m=31.32, parameters_m=22.895, operations=65),
    "bert_base_squad": Work(gmacs=35.33, activations_m=56.62, parameters_m=108.893, operations=97),
    "bert_large_squad": Work(gmacs=123.2, activations_m=151.0, parameters_m=334.094, operations=193),
}
"""At 224 px, 300 px (SSD, ResNet-50 backbone) and 384 tokens, as the benchmarks run them."""

PROXIES = (*REFERENCE, "resnet34", "resnet101", "resnet18@224", "resnet34@224", "resnet50@224")
"""Measured on two devices or more with known counts: between devices their kin behave like them."""
