"""The counted networks of the benchmark, against the parameters that its logs print and against what is bundled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="counting needs torch: pip install 'gpuwise[torch]'")
pytest.importorskip("torchvision", reason="counting needs torchvision: pip install 'gpuwise[torch]'")

from benchmarks import count_workloads, counts, profet_models
from benchmarks.reference_models import Gnmt, NeuMf, Tacotron2, TransformerXl
from torch import nn

from gpuwise.measure import meta
from gpuwise.predict.reference import REFERENCE, SAMPLES_PER_ITEM

PRINTED: list[tuple[Callable[[], nn.Module], int]] = [
    (Gnmt, 159_593_523),
    (partial(TransformerXl, 16, 512, 8, 0.1, 0.0), 191_948_759),
    (partial(TransformerXl, 18, 1024, 16, 0.2, 0.2), 519_963_095),
    (NeuMf, 31_832_577),
]
QUICK = ("resnet50", "bert_base_squad", "gnmt", "transformerxlbase", "ncf")


@pytest.mark.parametrize(("make", "printed"), PRINTED)
def test_a_network_of_the_benchmark_has_the_parameters_that_its_log_prints(
    make: Callable[[], nn.Module], printed: int
) -> None:
    assert sum(p.numel() for p in meta.built(make).parameters()) == printed


def test_tacotron_has_its_published_parameters() -> None:
    assert sum(p.numel() for p in meta.built(Tacotron2).parameters()) == 28_193_153


@pytest.mark.parametrize("name", QUICK)
def test_the_bundled_counts_are_those_that_are_counted(name: str) -> None:
    make, inputs = next((make, inputs) for case, make, inputs in count_workloads.benchmarked() if case == name)
    batch = inputs[0].shape[0] if isinstance(inputs, tuple) else inputs.shape[0]
    found = counts.count(make, inputs, batch * SAMPLES_PER_ITEM.get(name, 1))
    for column, text in found.items():
        assert getattr(REFERENCE[name], column) == pytest.approx(float(text), rel=1e-3, abs=1e-12), column


def test_a_flattened_image_makes_the_layer_behind_it_grow() -> None:
    small, large = (counts.count(partial(profet_models.NETWORKS["vgg11"], 10), meta.image(2, px), 2) for px in (32, 64))
    grown = float(large["parameters_m"]) - float(small["parameters_m"])
    assert grown == pytest.approx(3 * 512 * 4096 / 1e6, rel=1e-3)
    assert float(large["activations_m"]) > 3.5 * float(small["activations_m"])


def test_the_networks_of_vgg_count_what_others_publish() -> None:
    found = counts.count(partial(profet_models.NETWORKS["vgg19"], 1000), meta.image(2, 224), 2)
    assert float(found["gmacs"]) == pytest.approx(19.63, rel=1e-3)
    assert float(found["parameters_m"]) == pytest.approx(143.67, rel=1e-3)


def test_rows_of_other_workloads_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    one, other = counts.row(gmacs=1.0, launches=3.0), counts.row(gmacs=2.0, launches=4.0)
    counts.write([("b", one), ("a", one)], path)
    counts.write([("b", other)], path)
    assert [(r["workload"], r["gmacs"], r["launches"], r["source"]) for r in counts.read(path)] == [
        ("a", "1", "3", "counted"),
        ("b", "2", "4", "counted"),
    ]
