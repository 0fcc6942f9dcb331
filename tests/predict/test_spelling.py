"""Workloads, families and software as people write them."""

from __future__ import annotations

import pytest

from gpuwise.model import BenchmarkResult, Source
from gpuwise.predict.spelling import Names
from gpuwise.store import package


def row(workload: str, family: str, software: str) -> BenchmarkResult:
    return BenchmarkResult(
        workload=workload,
        family=family,
        accelerator="t4",
        accelerators=1,
        precision="amp",
        batch_per_accelerator=1,
        samples_per_s=1.0,
        software=software,
        source=Source(kind="published", ref="test"),
    )


NAMES = Names.of([
    row("resnet50", "cnn", "ngc-pytorch-1.13"),
    row("resnet50@288", "cnn", "timm-torch-1.12"),
    row("bert_base_squad", "transformer", "ngc-pytorch-1.4"),
    row("resnetv2_50x1_bit", "cnn", "tensorflow-2.5"),
    row("coat_tiny", "transformer", "torchvision-2021"),
    row("coat-net", "hybrid", "ngc-pytorch-2.1"),
    row("two_names", "cnn", "ngc-pytorch-2.1"),
    row("twonames", "mlp", "ngc-pytorch-2.1"),
])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "side_px", "name"),
    [
        ("resnet50", None, "resnet50"),
        ("ResNet-50", None, "resnet50"),
        ("ResNet_50", 224, "resnet50"),
        ("RESNET 50", 288, "resnet50@288"),
        ("resnet50@288", 288, "resnet50@288"),
        ("ResNet-50", 256, "ResNet-50@256"),
        ("BERT-base-SQuAD", None, "bert_base_squad"),
        ("resnet51", None, "resnet51"),
        ("resnet", None, "resnet"),
        ("Two-Names", None, "Two-Names"),
    ],
)
def test_a_workload_is_known_by_case_and_hyphens_alone(text: str, side_px: int | None, name: str) -> None:
    assert NAMES.workload(text, side_px) == name


@pytest.mark.parametrize(
    ("name", "family"),
    [("resnet50", "cnn"), ("resnet200d", "cnn"), ("bert_large", "transformer"), ("coat_mini", None), ("ours", None)],
)
def test_a_family_is_told_only_where_all_known_names_that_begin_alike_agree(name: str, family: str | None) -> None:
    assert NAMES.family(name) == family


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        (None, None),
        ("ngc-pytorch-1.13", "ngc-pytorch-1.13"),
        ("PyTorch 1.13", "ngc-pytorch-1.13"),
        ("torch 1.13.1+cu117", "ngc-pytorch-1.13"),
        ("pytorch==2.1.2", "ngc-pytorch-2.1"),
        ("torch 2.1", "ngc-pytorch-2.1"),
        ("PyTorch 1.12", "timm-torch-1.12"),
        ("NGC 22.09", "ngc-pytorch-1.13"),
        ("nvcr/pytorch:23.06-py3", "ngc-pytorch-2.1"),
        ("CUDA 11.8, torch 2.1", "ngc-pytorch-2.1"),
        ("torch 2.6", "torch-2.6"),
        ("TensorFlow 2.5", "tensorflow-2.5"),
        ("TF2.5", "tensorflow-2.5"),
        ("tensorflow-2.5", "tensorflow-2.5"),
        ("torchvision-2021", "torchvision-2021"),
        ("MXNet 1.9", "MXNet 1.9"),
        ("our own", "our own"),
    ],
)
def test_software_is_spelled_as_in_the_tables_where_framework_and_version_say_so(
    text: str | None, spelled: str | None
) -> None:
    assert NAMES.software(text) == spelled


def test_every_workload_and_software_of_the_bundle_is_known_by_its_own_name() -> None:
    rows = package.throughput()
    names = Names.of(rows)
    assert [r.workload for r in rows if names.workload(r.workload) != r.workload] == []
    assert [r.software for r in rows if names.software(r.software) != r.software] == []
    assert [r.workload for r in rows if names.family(r.workload) != r.family] == []
