"""The workloads by which devices are compared, and the counts of those that no other table counts.

Counted by `python -m benchmarks.count_workloads`. The transformers are counted without fused attention, as they ran:
their score matrices are written. Mask R-CNN is counted at the start of training: its shapes depend on the data, and
such counts were a third off. Lambda's runs of Transformer-XL scored each token against all words of the vocabulary. A
fused recurrent layer counts as two operations, a layer whose steps run in a loop (Tacotron 2) as those of each step.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuwise.predict.roofline import Work

REFERENCE: Mapping[str, Work] = {
    "resnet50": Work(
        gmacs=4.089, activations_m=11.11, parameters_m=25.557, operations=54,
        stored_m=21.51, launches=409, depthwise_gmacs=0.0,
    ),
    "ssd": Work(
        gmacs=20.15, activations_m=31.32, parameters_m=22.895, operations=65,
        stored_m=60.36, launches=467, depthwise_gmacs=0.0,
    ),
    "maskrcnn": Work(
        gmacs=174.3, activations_m=254.0, parameters_m=44.4014, operations=86,
        stored_m=170.4, launches=1356, depthwise_gmacs=0.0,
    ),
    "bert_base_squad": Work(
        gmacs=35.33, activations_m=56.62, parameters_m=108.893, operations=97,
        stored_m=78.47, launches=644, depthwise_gmacs=0.0,
    ),
    "bert_large_squad": Work(
        gmacs=123.2, activations_m=151.0, parameters_m=334.094, operations=193,
        stored_m=208.4, launches=1268, depthwise_gmacs=0.0,
    ),
    "gnmt": Work(
        gmacs=0.08466, activations_m=0.07242, parameters_m=159.594, operations=23,
        stored_m=0.1121, launches=339, depthwise_gmacs=0.0,
    ),
    "transformerxlbase": Work(
        gmacs=0.2097, activations_m=0.473, parameters_m=191.949, operations=129,
        stored_m=0.548, launches=1366, depthwise_gmacs=0.0,
    ),
    "transformerxllarge": Work(
        gmacs=0.588, activations_m=0.8046, parameters_m=519.963, operations=145,
        stored_m=1.230, launches=1604, depthwise_gmacs=0.0,
    ),
    "waveglow": Work(
        gmacs=0.03267, activations_m=0.03697, parameters_m=268.295, operations=325,
        stored_m=0.02751, launches=3046, depthwise_gmacs=0.0,
    ),
    "tacotron2": Work(
        gmacs=0.03774, activations_m=0.07358, parameters_m=28.1932, operations=9475,
        stored_m=0.09163, launches=115406, depthwise_gmacs=0.0,
    ),
    "ncf": Work(
        gmacs=1.0662e-4, activations_m=4.49e-4, parameters_m=31.8326, operations=4,
        stored_m=1.796e-3, launches=53, depthwise_gmacs=0.0,
    ),
}  # fmt: skip
"""One sample is what SAMPLES_PER_ITEM says; images of 224 px, 300 px (SSD, ResNet-50 backbone) and 800 × 1066 px,
sequences of 384 tokens (BERT), as the benchmark ran them. Padding is counted: it is computed. Parameters of GNMT, of
Transformer-XL and of NCF are those that the runs' logs print."""

SAMPLES_PER_ITEM: Mapping[str, float] = {
    "gnmt": 48,
    "transformerxlbase": 192,
    "transformerxllarge": 256,
    "waveglow": 8000,
    "tacotron2": 564,
}
"""Samples, as the benchmark counts them, in one item of its batch, 1 elsewhere: tokens of a pair of sentences, of a
sequence; samples of sound of a segment; frames of a spoken sentence. From Lambda's logs: the lengths that the runs were
given, or rate × time of a step / batch where lengths vary (GNMT, Tacotron 2 on the RTX 3090, 2020)."""
