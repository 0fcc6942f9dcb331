"""The Gaussian process in the space of features against the plain one in the space of rows, and the fit's gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import log

import numpy as np
import pytest
from tests.predict.scenes import CARDS, COUNTS, shared_basis

from gpuwise.predict.answer import Model
from gpuwise.predict.cells import cells
from gpuwise.predict.features import BLOCKS, COMPONENTS, NOISES, PARTS, blocks, components, noise_kind
from gpuwise.predict.fit import Design, log_likelihood, posterior
from gpuwise.predict.gp import START, TOLD, Posterior, Scales, laid_out
from gpuwise.predict.reference import REFERENCE
from gpuwise.predict.setting import Reading, Setting
from gpuwise.predict.shipped import from_arrays, to_arrays

BASIS = shared_basis()
FAMILIES = {"job": "cnn", "resnet50": "cnn", "bert_base_squad": "transformer", "mystery": "cnn"}
WORK = {**REFERENCE, **COUNTS}


def setting(workload: str, card: str, precision: str = "amp", batch: int = 64, **changes: object) -> Setting:
    usual = Setting(
        workload=workload,
        family=FAMILIES[workload],
        accelerator=CARDS[card],
        precision=precision,  # type: ignore[arg-type]
        batch=batch,
        work=WORK.get(workload),
        software="ngc-pytorch-2.3",
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def measured() -> list[Reading]:
    """Three counted networks and one that nobody counted, on three cards; a seeded tenth off the roofline."""
    chance, found = np.random.default_rng(4), []
    for name, card, precision in product(FAMILIES, ("small", "middle", "large"), ("amp", "tf32")):
        batch = int(chance.choice([16, 64, 256]))
        found.append(setting(name, card, precision, batch))
    found.append(setting("resnet50", "middle", software="torch-1.7"))
    found.append(setting("resnet50", "middle", mode="infer"))
    nominal = cells(found).mean
    rates = np.exp(nominal + 0.1 * chance.normal(size=len(found)))
    return [Reading(setting=s, samples_per_s=float(r), yours=False) for s, r in zip(found, rates, strict=True)]


ROWS = measured()
DESIGN = Design.of(ROWS, BASIS)
FITTED = posterior(DESIGN, START)
SEEN = [r for r in ROWS if r.setting.workload == "job"]
GIVEN = (
    Reading(setting=setting("job", "volta"), samples_per_s=150.0, log_sd=0.02, yours=False),
    Reading(setting=setting("job", "large", batch=128), samples_per_s=700.0, yours=False),
)
ASKED = (setting("job", "large"), setting("job", "volta", "fp32"), setting("job", "old"), setting("job", "middle"))


def kernel(rows: Sequence[Setting], middle: dict[str, float], scales: Scales = START) -> np.ndarray:
    """Prior covariance of all rows, by the definition."""
    c = cells(rows)
    found = np.zeros((len(rows), len(rows)))
    for name, (keys, values) in blocks(c, BASIS).items():
        alike = np.array([[a == b for b in keys] for a in keys])
        found += scales.blocks[name] ** 2 * alike * (values @ values.T)
    for workload in set(c.workload):
        own = [i for i, name in enumerate(c.workload) if name == workload]
        each = components(c, BASIS, own, middle[workload])
        for name, part in zip(COMPONENTS, each, strict=True):
            found[np.ix_(own, own)] += scales.components[name] ** 2 * part
    return found


def middles(readings: Sequence[Reading]) -> dict[str, float]:
    c = cells([r.setting for r in readings])
    return {n: float(c.batch[[m == n for m in c.workload]].mean()) for n in set(c.workload)}


def noise(readings: Sequence[Reading], scales: Scales = START) -> np.ndarray:
    c = cells([r.setting for r in readings])
    own = [scales.noises[noise_kind(c, i)] for i in range(len(c))]
    return np.array(own) ** 2 + np.array([r.log_sd for r in readings]) ** 2


def plain(asked: Sequence[Setting], readings: Sequence[Reading]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance: Rasmussen and Williams, 2006, eq. 2.23 and 2.24."""
    n = len(asked)
    every = [*asked, *(r.setting for r in readings)]
    prior, mean = kernel(every, middles(ROWS)), cells(every).mean
    residual = np.array([log(r.samples_per_s) for r in readings]) - mean[n:]
    between = prior[n:, n:] + np.diag(noise(readings))
    gain = np.linalg.solve(between, prior[n:, :n]).T
    return mean[:n] + gain @ residual, prior[:n, :n] - gain @ prior[n:, :n]


@pytest.mark.parametrize("given", [(), GIVEN[:1], GIVEN], ids=["none", "one", "two"])
def test_it_is_gaussian_process_regression_on_all_rows(given: Sequence[Reading]) -> None:
    mean, covariance = plain(ASKED, (*ROWS, *given))
    joint = FITTED.joint(ASKED, SEEN, given)
    assert joint.mean == pytest.approx(mean, abs=1e-8)
    assert joint.variance == pytest.approx(np.diag(covariance), abs=1e-8)


def test_a_workload_that_it_has_not_seen_is_asked_for_with_given_rows_alone() -> None:
    fitted = posterior(DESIGN.without(["job"]), START)
    others = [r for r in ROWS if r.setting.workload != "job"]
    joint = fitted.joint(ASKED, (), SEEN)
    n, every = len(ASKED), [*ASKED, *(r.setting for r in (*SEEN, *others))]
    prior, mean = kernel(every, middles(ROWS)), cells(every).mean
    readings = (*SEEN, *others)
    residual = np.array([log(r.samples_per_s) for r in readings]) - mean[n:]
    gain = np.linalg.solve(prior[n:, n:] + np.diag(noise(readings)), prior[n:, :n]).T
    assert joint.mean == pytest.approx(mean[:n] + gain @ residual, abs=1e-8)
    assert joint.variance == pytest.approx(np.diag(prior[:n, :n] - gain @ prior[n:, :n]), abs=1e-8)


def test_leaving_a_workload_out_of_a_design_is_fitting_without_its_rows() -> None:
    left = [r for r in ROWS if r.setting.workload != "bert_base_squad"]
    one, other = posterior(DESIGN.without(["bert_base_squad"]), START), posterior(Design.of(left, BASIS), START)
    assert one.joint(ASKED, SEEN).mean == pytest.approx(other.joint(ASKED, SEEN).mean, abs=1e-8)
    assert one.joint(ASKED, SEEN).variance == pytest.approx(other.joint(ASKED, SEEN).variance, abs=1e-8)
    assert one.workloads == other.workloads == {"job", "resnet50", "mystery"}


# ---- the fit ----


def test_the_likelihood_is_that_of_all_rows() -> None:
    every = kernel([r.setting for r in ROWS], middles(ROWS)) + np.diag(noise(ROWS))
    residual = np.array([log(r.samples_per_s) for r in ROWS]) - cells([r.setting for r in ROWS]).mean
    whole = -0.5 * (residual @ np.linalg.solve(every, residual) + np.linalg.slogdet(every)[1])
    assert log_likelihood(DESIGN, START)[0] == pytest.approx(whole, abs=1e-6)


NAMES = [(k, n) for k, names in (("blocks", BLOCKS), ("components", COMPONENTS), ("noises", NOISES)) for n in names]


@pytest.mark.parametrize("kind", ["blocks", "components", "noises"])
def test_the_analytic_gradient_is_the_numerical_one(kind: str) -> None:
    slopes, step, moved = log_likelihood(DESIGN, START)[1], 1e-5, 0
    for name in (n for k, n in NAMES if k == kind):
        ends = [log_likelihood(DESIGN, _scaled(kind, name, by))[0] for by in (step, -step)]
        numerical = (ends[0] - ends[1]) / (2 * step)
        assert getattr(slopes, kind)[name] == pytest.approx(numerical, abs=2e-4, rel=1e-4), name
        moved += abs(numerical) > 1e-3
    assert moved >= 3


def _scaled(kind: str, name: str, by: float) -> Scales:
    scale = dict(getattr(START, kind))
    scale[name] *= np.exp(by)
    return replace(START, **{kind: scale})


# ---- what is told of it ----


def test_a_card_that_it_has_not_seen_gets_the_prior_of_its_blocks() -> None:
    wider = replace(FITTED, scales=replace(START, blocks={**BLOCKS, "card": 0.3}))
    asked = (setting("job", "old"), setting("job", "middle"))
    before, after = (p.joint(asked, SEEN).variance for p in (FITTED, wider))
    assert after - before == pytest.approx([0.3**2 - BLOCKS["card"] ** 2, 0.0], abs=1e-9)


def test_the_parts_of_the_variance_add_up_to_it_and_those_of_the_mean_to_it() -> None:
    for given in ((), GIVEN):
        joint = FITTED.joint(ASKED, SEEN, given)
        assert joint.shares.shape == joint.parts.shape == (len(ASKED), len(TOLD))
        assert joint.shares.sum(axis=1) == pytest.approx(1.0)
        assert (joint.shares >= 0).all()
        assert joint.nominal + joint.parts.sum(axis=1) == pytest.approx(joint.mean, abs=1e-12)


def test_the_pull_of_a_reading_is_how_far_the_answer_follows_it() -> None:
    up = (replace(GIVEN[0], samples_per_s=GIVEN[0].samples_per_s * 1.01), GIVEN[1])
    before, after = (FITTED.joint(ASKED, SEEN, given) for given in (GIVEN, up))
    assert after.mean - before.mean == pytest.approx(before.pull[:, len(SEEN)] * log(1.01), abs=1e-9)


def test_every_block_belongs_to_one_part_and_has_a_scale() -> None:
    told = [name for names in PARTS.values() for name in names]
    assert sorted(told) == sorted(BLOCKS)
    assert set(blocks(cells(ASKED), BASIS)) == set(BLOCKS)
    assert len(components(cells(ASKED), BASIS, [0], 0.0)) == len(COMPONENTS)


def test_the_features_of_known_columns_do_not_move_when_new_ones_come() -> None:
    c = cells([r.setting for r in ROWS])
    alone = laid_out(c, BASIS, FITTED.starts, FITTED.block)
    wider = laid_out(cells([*(r.setting for r in ROWS), *ASKED]), BASIS, FITTED.starts, FITTED.block)
    m = len(FITTED.mean)
    assert alone.values.shape == (len(ROWS), m)
    assert wider.values.shape[1] > m
    assert (wider.values[: len(ROWS), :m] == alone.values).all()
    assert (wider.values[: len(ROWS), m:] == 0).all()


# ---- as a file ----


def test_a_model_reads_back_as_it_was_written_to_single_precision() -> None:
    factors = {"family, card, 0": 1.25, "new family, card, 3": 0.8}
    arrays = to_arrays(Model(posterior=FITTED, factors=factors), "2026.11.30")
    read = from_arrays(arrays)
    assert read.factors == factors
    for name in ("workloads", "answering", "cards", "architectures", "families", "starts", "block", "scales"):
        assert getattr(read.posterior, name) == getattr(FITTED, name), name
    assert read.posterior.covariance == pytest.approx(FITTED.covariance, abs=1e-6)
    _same(read.posterior, FITTED)


def _same(one: Posterior, other: Posterior) -> None:
    a, b = (p.joint(ASKED, SEEN, GIVEN) for p in (one, other))
    assert a.mean == pytest.approx(b.mean, abs=1e-4)
    assert a.variance == pytest.approx(b.variance, abs=1e-4)


def test_what_is_asked_shares_the_set_up_of_ones_own_runs_and_not_that_of_the_tables() -> None:
    """A run that is faster than the tables by its set-up says so of every card; a table's row does not."""

    def after(yours: bool) -> float:
        fast = Reading(setting=setting("job", "volta"), samples_per_s=2000.0, yours=yours)
        return float(FITTED.joint(ASKED, SEEN, [fast]).mean[0])

    before = float(FITTED.joint(ASKED, SEEN).mean[0])
    assert after(yours=True) - before > 1.5 * (after(yours=False) - before)
