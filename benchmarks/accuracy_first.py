"""How wrong the first predictor is, on the bundled rows, each left out of what predicts it.

    python benchmarks/accuracy_first.py          the errors and the coverage of the 80 % intervals, by method
    python benchmarks/accuracy_first.py --fit    the coefficients of the roofline, fitted again

Targets are the counted workloads of the Lambda table on one device: for each (workload, device, arithmetic) the row of
the newest software, and timm's training rows on one card. Coefficients are fitted again without what is left out where
specifications carry the prediction ("device in no row", "nothing measured"). Errors are |predicted/measured − 1|.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.estimate import Z80
from gpuwise.model import Platform, Precision, Source, Workload
from gpuwise.predict.evidence import CURRENT, Evidence, Row, Site, era, is_old
from gpuwise.predict.ratio import Path, Paths
from gpuwise.predict.reached import Pooling, log_evidence
from gpuwise.predict.reference import REFERENCE
from gpuwise.predict.roofline import Coefficients, Rates, Work, seconds
from gpuwise.predict.scaling import Losses, link_class, same_on_one, scaling
from gpuwise.store import package

Floats = NDArray[np.float64]
SEED = 20261130
START = Coefficients(
    compute=0.7,
    compute_half=1.0,
    peak_exponent=0.0,
    power_exponent=0.0,
    traffic=15.0,
    traffic_half=1.0,
    traffic_transformer=1.0,
    bandwidth_exponent=0.0,
    launch_s=3e-4,
    old_software=0.9,
)
WIDTH = {"compute": 1.0, "traffic": 1.0, "launch_s": 0.05}
"""Weak priors: log-normal (exponents normal) around START, of width 0.5 unless stated. No row of the bundle tells the
cost of a launch on a current host: 0.3 ms an operation is assumed (A100 at batch 12 in 2021: 0.5 ms)."""
PRIOR_WEIGHT = 0.3
ROWS_A_DEVICE = 20
"""A table with more rows on one device counts as this many, so that timm's 735 do not carry the fit."""

COUNTED = {**REFERENCE, "maskrcnn": Work(gmacs=174.3, activations_m=254.0, parameters_m=44.4014, operations=86)}
"""The targets. Mask R-CNN as data/workloads.toml counts it, at the start of training."""


# ---- the fit ----


@dataclass(frozen=True)
class Fitted:
    """n rows in columns."""

    work: Work
    on: Rates
    batch: Floats
    old: Floats
    log_rate: Floats
    weight: Floats
    names: NDArray[np.str_]
    devices: NDArray[np.str_]

    def take(self, keep: NDArray[np.bool_]) -> Fitted:
        return Fitted(*(_take(getattr(self, f.name), keep) for f in fields(self)))


def _take(column: object, keep: NDArray[np.bool_]) -> object:
    if isinstance(column, Work | Rates):
        return type(column)(**{f.name: getattr(column, f.name)[keep] for f in fields(column)})
    return column[keep]  # type: ignore[index]


def rows_of_the_fit(evidence: Evidence) -> Fitted:
    """Counted workloads on one device in PyTorch, memory format as the framework's default or not stated."""
    chosen = [(n, s, r) for n, s, r in single_rows(evidence) if n in evidence.work and evidence.rates(s) and _usable(r)]
    many: dict[tuple[str, str], int] = defaultdict(int)
    for _, site, row in chosen:
        many[site.accelerator, row.result.source.ref] += 1
    weight = [min(1.0, ROWS_A_DEVICE / many[s.accelerator, r.result.source.ref]) ** 0.5 for _, s, r in chosen]
    return Fitted(
        work=_columns(Work, [evidence.work[n] for n, _, _ in chosen]),
        on=_columns(Rates, [evidence.rates(s) for _, s, _ in chosen]),
        batch=np.array([r.result.batch_per_accelerator for _, _, r in chosen], float),
        old=np.array([is_old(r.result.software) for _, _, r in chosen], float),
        log_rate=np.array([r.log_rate for _, _, r in chosen]),
        weight=np.array(weight),
        names=np.array([n for n, _, _ in chosen]),
        devices=np.array([s.accelerator for _, s, _ in chosen]),
    )


def _usable(row: Row) -> bool:
    return not (row.result.software or "").startswith("tensorflow") and row.result.memory_format != "nhwc"


def _columns(kind: Any, values: Sequence[object]) -> Any:
    return kind(**{f.name: np.array([getattr(v, f.name) for v in values], float) for f in fields(kind)})


def fit(rows: Fitted) -> Coefficients:
    """Least squares of log rates with a soft-L1 loss."""
    from scipy.optimize import least_squares

    names = [f.name for f in fields(Coefficients)]
    start = np.array([_encoded(n, getattr(START, n)) for n in names])
    width = np.array([WIDTH.get(n, 0.5) for n in names])

    def coefficients(x: Floats) -> Coefficients:
        return Coefficients(
            **{n: float(v) if n.endswith("exponent") else math.exp(v) for n, v in zip(names, x, strict=True)}
        )

    def errors(x: Floats) -> Floats:
        misses = rows.weight * misfit(rows, coefficients(x))
        return np.concatenate((misses, PRIOR_WEIGHT * (x - start) / width))

    return coefficients(least_squares(errors, start, loss="soft_l1", f_scale=0.2).x)


POOLED_START, POOLED_WIDTH = 0.08, 1.0
"""Log-normal prior of every part of the pooling; of the distance between data sheets around 0.8."""


def fit_pooling(evidence: Evidence) -> Pooling:
    """Largest marginal likelihood of the kin rows' residuals."""
    from scipy.optimize import minimize

    names = [f.name for f in fields(Pooling)]
    start = np.log([0.8 if name == "distance" else POOLED_START for name in names])

    def pooling(x: Floats) -> Pooling:
        return Pooling(**{name: float(v) for name, v in zip(names, np.exp(x), strict=True)})

    def loss(x: Floats) -> float:
        prior = ((x - start) ** 2).sum() / (2 * POOLED_WIDTH**2)
        return float(prior) - log_evidence(evidence.kin, evidence.accelerators, pooling(x))

    return pooling(minimize(loss, start, method="L-BFGS-B").x)


def _encoded(name: str, value: float) -> float:
    return value if name.endswith("exponent") else math.log(value)


def misfit(rows: Fitted, c: Coefficients) -> Floats:
    """ln(roofline rate / measured rate), shape (n,)."""
    expected: Floats = -np.log(seconds(rows.work, rows.on, rows.batch, c))  # type: ignore[arg-type]
    return expected + rows.old * math.log(c.old_software) - rows.log_rate


# ---- leaving rows out ----


@dataclass(frozen=True)
class Outcome:
    """One prediction of a left-out row. method: of the predictor, or the class of link where scaling is scored."""

    scenario: str
    method: str
    accelerator: str
    arithmetic: str
    log_error: float
    log_sd: float


def single_rows(evidence: Evidence) -> Iterator[tuple[str, Site, Row]]:
    return ((n, s, r) for n, sites in evidence.rows.items() for s, rows in sites.items() for r in rows)


def targets(evidence: Evidence) -> list[tuple[str, Site, Row]]:
    """The newest row of every counted workload of the Lambda table at every site."""
    newest: dict[tuple[str, Site], Row] = {}
    for name, site, row in single_rows(evidence):
        if row.result.source.ref == "lambda" and name in COUNTED and (name, site.accelerator) not in evidence.held_back:
            held = newest.get((name, site))
            if held is None or _version(row) > _version(held):
                newest[name, site] = row
    return [(n, s, r) for (n, s), r in sorted(newest.items())]


def _version(row: Row) -> tuple[int, ...]:
    return tuple(int(p) for p in (row.result.software or "").rpartition("-")[2].split(".") if p.isdigit())


def asked(evidence: Evidence, name: str, row: Row) -> Workload:
    """The left-out row as the question a person would ask."""
    work = COUNTED.get(name) or evidence.work[name]
    return Workload(
        name=name,
        title=name,
        family=evidence.family[name],
        model=name,
        sample="sample",
        gmacs=work.gmacs,
        activations_m=work.activations_m,
        parameters_m=work.parameters_m,
        operations=int(work.operations),
        state_bytes_per_parameter=12,
        batch_per_accelerator=row.result.batch_per_accelerator,
        precision=_precision(row),
        samples=1,
        epochs=1,
        memory_format=row.result.memory_format,  # type: ignore[arg-type]
        source=Source(kind="assumed", ref=""),
    )


def _precision(row: Row) -> Precision:
    return row.result.precision


def without(evidence: Evidence, drop: Callable[[str, Site, Row], bool]) -> Evidence:
    """The same evidence less the rows for which `drop` holds."""
    rows = [r.result for n, s, r in single_rows(evidence) if not drop(n, s, r)]
    return Evidence.of(rows, evidence.accelerators, evidence.work, coefficients=evidence.coefficients)


def outcome(scenario: str, evidence: Evidence, known: Evidence, name: str, site: Site, row: Row) -> Outcome | None:
    """Predict one row from `known`."""
    path = Paths.of(asked(evidence, name, row), known, package.assumptions(), era(row.result.software) or CURRENT).best(
        evidence.accelerators[site.accelerator]
    )
    return None if path is None else _scored(scenario, path, site, row)


def _scored(scenario: str, path: Path, site: Site, row: Row) -> Outcome:
    error = math.log(path.rate.value) - row.log_rate
    return Outcome(scenario, path.method, site.accelerator, site.arithmetic, error, path.rate.log_sd)


def all_outcomes(evidence: Evidence) -> list[Outcome]:
    chance = random.Random(SEED)
    found = [
        *_measured(evidence),
        *_own_row_elsewhere(evidence, chance),
        *_workload_out(evidence),
        *_timm(evidence, chance),
        *_accelerator_out(evidence, chance),
        *_nothing_measured(evidence),
    ]
    return [o for o in found if o is not None]


def _measured(evidence: Evidence) -> Iterator[Outcome | None]:
    """The row itself out, other rows of the workload at that site in."""
    for name, site, row in targets(evidence):
        if len(evidence.rows[name][site]) > 1:
            known = without(evidence, lambda n, s, r, row=row: r is row)
            yield outcome("another run of it there", evidence, known, name, site, row)


def _own_row_elsewhere(evidence: Evidence, chance: random.Random) -> Iterator[Outcome | None]:
    """The workload known on one other device only, drawn at random; the target device known for other workloads."""
    for name, site, row in targets(evidence):
        others = sorted({s for s in evidence.rows[name] if s.accelerator != site.accelerator and s[1] == site[1]})
        if others:
            only = chance.choice(others)
            known = without(evidence, lambda n, s, r, name=name, only=only: n == name and s != only)
            yield outcome("its row on one other device", evidence, known, name, site, row)


def _workload_out(evidence: Evidence) -> Iterator[Outcome | None]:
    """No row of the workload; others of its family on the target device."""
    for name, site, row in targets(evidence):
        known = without(evidence, lambda n, s, r, name=name: n == name)
        yield outcome("no row of it", evidence, known, name, site, row)


def _timm(evidence: Evidence, chance: random.Random) -> Iterator[Outcome | None]:
    """A timm model and all whose name begins alike out; predicted on the same card from its nearest model."""
    rows = [(n, s, r) for n, s, r in single_rows(evidence) if r.result.source.ref == "timm" and _usable(r)]
    for name, site, row in chance.sample([r for r in rows if r[0] in evidence.work], 150):
        stem = name[:5]
        known = without(evidence, lambda n, s, r, stem=stem: n.startswith(stem))
        yield outcome("no row of it (timm)", evidence, known, name, site, row)


def _accelerator_out(evidence: Evidence, chance: random.Random) -> Iterator[Outcome | None]:
    """The target device in no row; the workload known on one other device."""
    columns = rows_of_the_fit(evidence)
    for device in sorted({s.accelerator for _, s, _ in targets(evidence)}):
        c = fit(columns.take(columns.devices != device))
        for name, site, row in targets(evidence):
            if site.accelerator != device:
                continue
            others = sorted({s for s in evidence.rows[name] if s.accelerator != device and s[1] == site[1]})
            if others:
                only = chance.choice(others)
                known = without(
                    replace(evidence, coefficients=c),
                    lambda n, s, r, d=device, name=name, only=only: s.accelerator == d or (n == name and s != only),
                )
                yield outcome("device in no row", evidence, known, name, site, row)


def _nothing_measured(evidence: Evidence) -> Iterator[Outcome | None]:
    """Neither the workload nor the device in the fit or in the rows: the bare roofline."""
    columns = rows_of_the_fit(evidence)
    fits: dict[tuple[str, str], Coefficients] = {}
    for name, site, row in targets(evidence):
        out = (name, site.accelerator)
        if out not in fits:
            fits[out] = fit(columns.take((columns.names != name) & (columns.devices != site.accelerator)))
        known = replace(Evidence.of((), evidence.accelerators), coefficients=fits[out])
        yield outcome("nothing measured", evidence, known, name, site, row)


def scaling_outcomes(evidence: Evidence) -> list[Outcome]:
    """n devices against n times one at the same batch, first without the workload, then without the device."""
    single = [row.result for _, _, row in single_rows(evidence)]
    several = [row.result for rows in evidence.several.values() for row in rows if row.result.workload in COUNTED]
    found = []
    for run in several:
        one = same_on_one(run, evidence)
        if one is None:
            continue
        device = evidence.accelerators[run.accelerator]
        workload = asked(evidence, run.workload, Row(run, 0.0))
        platform = Platform(variants=(device,), per_node=run.accelerators)
        truth = run.samples_per_s / (run.accelerators * one)
        for scenario, others in (
            ("scaling, kin on that device", [r for r in several if r.workload != run.workload]),
            ("scaling, class of link", [r for r in several if r.accelerator != run.accelerator]),
        ):
            known = Evidence.of((*single, *others), evidence.accelerators, evidence.work)
            job = replace(workload, name="target")
            guess = scaling(job, device, platform, one, Losses.of(job, known))
            place = (f"{link_class(device, platform)} ×{run.accelerators}", run.accelerator, run.precision)
            found.append(Outcome(scenario, *place, math.log(guess.efficiency / truth), guess.sd))
    return found


# ---- the table ----


def summary(label: str, found: Iterable[Outcome]) -> str:
    outcomes = list(found)
    errors = np.array([o.log_error for o in outcomes])
    sds = np.array([o.log_sd for o in outcomes])
    ape = 100 * np.abs(np.expm1(errors))
    inside = 100 * np.mean(np.abs(errors) <= Z80 * sds)
    width = 100 * np.median(np.expm1(Z80 * sds))
    needed = np.quantile(np.abs(errors) / sds, 0.8) / Z80
    cells = (
        f"{ape.mean():.1f}",
        f"{np.median(ape):.1f}",
        f"{np.quantile(ape, 0.9):.0f}",
        f"{inside:.0f}",
        f"{width:.0f}",
    )
    return f"| {label:44} | {len(outcomes):4} | " + " | ".join(f"{c:>5}" for c in cells) + f" | {needed:5.2f} |"


def table(found: Sequence[Outcome], by: Callable[[Outcome], str]) -> Iterator[str]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for each in found:
        groups[by(each)].append(each)
    for label in sorted(groups):
        yield summary(label, groups[label])


def bundled() -> Evidence:
    return Evidence.of(package.throughput(), package.accelerators(), package.counts())


HEAD = (
    f"| {'':44} | rows | MAPE | median | P90 | inside 80 % | half-width % | scale |\n|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", action="store_true", help="fit the coefficients again and print them")
    parser.add_argument("--detail", action="store_true", help="by workload and by device too")
    asked_for = parser.parse_args()
    evidence = bundled()
    if asked_for.fit:
        for found in (fit(rows_of_the_fit(evidence)), fit_pooling(evidence)):
            print("\n".join(f"{f.name}={getattr(found, f.name):.4g}," for f in fields(found)))
        return
    found = all_outcomes(evidence)
    several = scaling_outcomes(evidence)
    print(HEAD)
    print("\n".join(table(found, lambda o: f"{o.scenario}: {o.method}")))
    print("\n".join(table(found, lambda o: f"all: {o.method}")))
    print("\n".join(table(several, lambda o: o.scenario)))
    if asked_for.detail:
        for part in ("arithmetic", "accelerator"):
            print("\n".join(table(found, lambda o, part=part: f"{o.scenario}: {o.method}, {getattr(o, part)}")))
        print("\n".join(table(several, lambda o: f"{o.scenario}: {o.method}")))


if __name__ == "__main__":
    main()
