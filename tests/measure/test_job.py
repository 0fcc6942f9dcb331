"""What reference training may be asked to do, and what it says to the rest."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from gpuwise.errors import DataError, InvalidInput, UnknownName
from gpuwise.measure.job import CLASSIFIERS, NUMBERS, Job, from_json, network
from gpuwise.measure.plan import BATCH, EPOCHS, factor, image_size, plan


def test_a_job_survives_being_written_and_read() -> None:
    job = Job(model="painter-heavy", data="folder", target_fraction=0.8, minutes=2.5, precision="amp", checkpoint="c")
    assert from_json(job.to_json()) == job


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("painter-light", "resnet34"),
        ("painter-heavy", "resnet101"),
        ("vgg16", "vgg16"),
        ("torchvision.models:vgg16", "vgg16"),
    ],
)
def test_a_model_goes_by_its_painter_or_by_the_name_of_torchvision(model: str, name: str) -> None:
    assert network(model) == name == Job(model=model).network


def test_every_name_that_is_allowed_is_a_classifier_of_torchvision() -> None:
    models = pytest.importorskip("torchvision.models", reason="the list is torchvision's: gpuwise[torch]")
    assert set(CLASSIFIERS) == set(models.list_models(module=models))


def test_an_unknown_model_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnknownName, match="resnet43") as caught:
        Job(model="resnet43")
    assert "resnet34" in caught.value.nearest


@pytest.mark.parametrize(
    ("model", "task"),
    [
        ("fasterrcnn_resnet50_fpn", "detection"),
        ("ssd300_vgg16", "detection"),
        ("deeplabv3_resnet50", "segmentation"),
        ("r3d_18", "video"),
        ("quantized_resnet50", "quantized inference"),
    ],
)
def test_a_network_of_another_task_is_refused_by_its_task(model: str, task: str) -> None:
    with pytest.raises(InvalidInput, match=f"network for {task}"):
        Job(model=model)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch", 1), ("batch", 2.5), ("steps", 0), ("steps", True), ("minutes", 0.0), ("minutes", float("nan")),
        ("epochs", -1), ("patience", 0), ("target_fraction", 80), ("target_fraction", 0.0), ("painters", 1),
        ("image_size", 16), ("workers", -1), ("threads", 0), ("learning_rate", float("inf")), ("seed", -1),
        ("stall_s", "soon"), ("checkpoint_every_s", -5),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_is_refused_with_its_field_value_and_rule(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        Job(**{field: value})
    assert f"{field} is {value}: {NUMBERS[field][1]}" in caught.value.message.text()


@pytest.mark.parametrize(
    ("field", "value", "nearest"), [("precision", "amp_bf61", "amp_bf16"), ("optimizer", "adam", "adamw")]
)
def test_a_choice_that_is_not_offered_is_refused_with_the_nearest(field: str, value: Any, nearest: str) -> None:
    with pytest.raises(UnknownName) as caught:
        Job(**{field: value})
    assert nearest in caught.value.nearest


def test_going_on_needs_a_folder_to_go_on_from() -> None:
    with pytest.raises(InvalidInput, match="checkpoint folder"):
        Job(resume=True)


@pytest.mark.parametrize("text", ["{", "[1]", '{"modell": "resnet18"}'])
def test_what_is_no_job_is_refused(text: str) -> None:
    with pytest.raises((DataError, UnknownName)):
        from_json(text)


def test_accuracy_that_stops_growing_ends_a_job_without_another_end() -> None:
    assert Job().early_stop
    assert Job(target_fraction=0.8).early_stop
    assert Job(steps=5, patience=3).early_stop
    assert not Job(epochs=5).early_stop
    assert not Job(minutes=1).early_stop


# ---- what a job leaves open ----


def test_a_small_set_is_passed_in_small_batches_and_a_large_one_in_those_of_the_workload() -> None:
    assert [plan(Job(), accelerated=False, samples=n, cpus=2).batch for n in (20, 200, 480, 79_433)] == [8, 16, 32, 64]


def test_made_paintings_on_an_accelerator_come_in_the_batch_of_the_workload() -> None:
    assert plan(Job(), accelerated=True, samples=200, cpus=8).batch == BATCH == 64
    assert plan(Job(data="few"), accelerated=True, samples=200, cpus=8).batch == 16
    assert plan(Job(batch=8), accelerated=True, samples=200, cpus=8).batch == 8


def test_what_is_stated_is_kept() -> None:
    job = Job(batch=5, workers=3, threads=2, image_size=96, optimizer="sgd", learning_rate=0.3, epochs=7, patience=2)
    settled = plan(job, accelerated=True, samples=1000, cpus=8)
    stated = {f.name for f in fields(settled)} & {f.name for f in fields(job)} - {"epochs"}
    assert {name: getattr(settled, name) for name in stated} == {name: getattr(job, name) for name in stated}
    assert (settled.epochs, settled.most_epochs) == (7, 7)


def test_a_job_without_an_end_ends_with_its_schedule_at_the_latest() -> None:
    settled = plan(Job(), accelerated=False, samples=200, cpus=2)
    assert (settled.epochs, settled.most_epochs) == (EPOCHS, EPOCHS)
    assert settled.patience is not None
    assert plan(Job(minutes=5), accelerated=False, samples=200, cpus=2).most_epochs is None


def test_processes_share_the_cpus_and_the_samples() -> None:
    alone = plan(Job(), accelerated=True, samples=10_000, cpus=16, world=1)
    shared = plan(Job(), accelerated=True, samples=10_000, cpus=16, world=4)
    assert (alone.workers, shared.workers) == (15, 3)
    assert (alone.threads, shared.threads) == (16, 4)


def test_on_two_cpus_the_network_has_both() -> None:
    settled = plan(Job(), accelerated=False, samples=200, cpus=2)
    assert (settled.workers, settled.threads) == (0, 2)
    assert plan(Job(workers=0), accelerated=False, samples=200, cpus=64, cpus_a_core=2).threads == 32


def test_a_network_that_takes_one_size_gets_it() -> None:
    assert image_size(Job(model="vit_b_16", image_size=64), accelerated=False) == 224
    assert image_size(Job(model="inception_v3"), accelerated=False) == 75
    assert image_size(Job(), accelerated=True) == 224


def test_the_learning_rate_rises_falls_and_keeps_a_floor() -> None:
    rates = [factor(share) for share in (0.0, 0.05, 0.1, 0.55, 1.0, 3.0)]
    assert rates == pytest.approx([0.01, 0.5, 1.0, 0.505, 0.01, 0.01])
