"""The built-in workloads, and what a person may state instead."""

from __future__ import annotations

import pytest

from gpuwise.errors import InvalidInput, UnknownName
from gpuwise.store import package
from gpuwise.workloads import OVERRIDES, override, parse

NAMES = ("painter-light", "painter-heavy", "bert-finetune", "gpt", "detect", "segment")
BUILT_IN = package.workloads()
HEAVY = BUILT_IN["painter-heavy"]


def test_the_registry_holds_the_six_workloads() -> None:
    assert tuple(BUILT_IN) == NAMES


def test_the_painters_are_those_of_the_public_competition() -> None:
    for name, gmacs in (("painter-light", 3.66), ("painter-heavy", 7.80)):
        workload = BUILT_IN[name]
        assert (workload.samples, workload.epochs, workload.batch_per_accelerator) == (79_433, 30, 64)
        assert workload.gmacs == pytest.approx(gmacs, rel=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_epochs_are_named_as_assumptions_with_their_reason(name: str) -> None:
    assumed = BUILT_IN[name].assumed
    assert {"samples", "epochs", "batch_per_accelerator", "precision"} <= assumed.keys()
    assert all(assumed.values())


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_accuracy_has_its_reason(name: str) -> None:
    workload = BUILT_IN[name]
    assert workload.accuracy_fraction is None
    assert str(workload.reasons["accuracy_fraction"])


@pytest.mark.parametrize("name", NAMES)
def test_evidence_is_named_as_the_measured_table_names_it(name: str) -> None:
    workload = BUILT_IN[name]
    measured = {row.workload for row in package.throughput()}
    assert {*workload.measured_as} <= measured


STATED = [("batch", 128), ("epochs", 5.0), ("samples", 1000), ("precision", "fp32"), ("accuracy", 0.9)]


@pytest.mark.parametrize(("name", "value"), STATED)
def test_what_a_person_states_replaces_the_assumption(name: str, value: object) -> None:
    mine, field = override(HEAVY, **{name: value}), OVERRIDES[name]
    assert getattr(mine, field) == value
    assert field not in mine.assumed
    assert field not in mine.reasons
    assert set(HEAVY.assumed) - set(mine.assumed) <= {field}


def test_what_is_not_stated_stays_as_it_was() -> None:
    assert override(HEAVY, batch=None, epochs=None) == HEAVY


WRONG = [("batch", 0), ("epochs", -1.0), ("precision", "fp12"), ("accuracy", 1.5), ("width", 3)]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_figure_that_cannot_be_is_refused(name: str, value: object) -> None:
    with pytest.raises(
        UnknownName if name in ("width", "precision") else InvalidInput, match=str(value if name != "width" else name)
    ):
        override(HEAVY, **{name: value})


def test_a_table_becomes_a_workload_under_its_name() -> None:
    table = {
        "title": "t", "family": "cnn", "model": "m", "sample": "image", "gmacs": 1.0, "activations_m": 1.0,
        "parameters_m": 1.0, "state_bytes_per_parameter": 12.0, "batch_per_accelerator": 8, "precision": "amp",
        "samples": 10, "epochs": 2.0, "measured_as": ["resnet50"], "source": "here",
    }  # fmt: skip
    workload = parse({"mine": table})["mine"]
    assert (workload.name, workload.measured_as, workload.total_samples) == ("mine", ("resnet50",), 20.0)
