"""What tests of accuracy hand in: a predictor made of data sheets, a small registry of splits, rows by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gpuwise.errors import Message
from gpuwise.estimate import Estimate
from gpuwise.predict.accuracy import Scoring, Split, registry, result
from gpuwise.predict.against import Claim, Role
from gpuwise.predict.naive import naive
from gpuwise.predict.score import Score
from gpuwise.predict.setting import Reading, Setting
from gpuwise.predict.tables import Draw, Tables
from gpuwise.predict.tested import Table
from gpuwise.store import package

SHEET_SD = 0.2
UNLIKE_SD = 0.4
"""What one error more is made of where no given row has the precision that is asked."""


def by_sheet(asked: Sequence[Setting], given: Sequence[Reading]) -> list[Estimate | Message]:
    """The geometric mean of both ratios of the data sheets; wider where the precision differs, refused from nothing."""
    found: list[Estimate | Message] = []
    for setting in asked:
        rate = naive(setting, given).get("geometric_mean")
        same = any(reading.setting.precision == setting.precision for reading in given)
        spread = (("sheet", SHEET_SD), *(() if same else (("precision", UNLIKE_SD),)))
        if rate is None:
            found.append(Message("nothing was measured"))
        else:
            found.append(Estimate(value=rate, spread=spread, basis="predicted"))
    return found


def shifted(by: float, *, n: int = 40, sd: float = 0.05) -> Scoring:
    """A split of n rows that are predicted so much too high, give or take `sd`."""

    def scores(_tables: Tables, draw: Draw) -> list[Score]:
        chance = random.Random(draw.seed)
        return [_score(by + chance.gauss(0, sd), row) for row in range(min(n, draw.most or n))]

    return scores


def _score(wrong: float, row: int) -> Score:
    return Score(
        truth=100.0,
        predicted=100 * (1 + wrong),
        low=90.0,
        high=115.0,
        naive={"peak": 150.0},
        tags={"family": "cnn" if row % 2 else "transformer", "family_known": "yes", "card_known": "no", "k": "1"},
    )


def splits(**functions: Scoring) -> dict[str, Split]:
    """A registry of these functions."""
    return dict(registry(functions))


TABLES = Tables(rows=(), accelerators={}, counts={})
REGISTRY = splits(A=shifted(0.1), C=shifted(0.2), M=shifted(0.3))
SHIPPED = Table(
    data_version=package.version(),
    computed="2026-11-30",
    results={name: result(split, TABLES) for name, split in REGISTRY.items()},
)


def _claim(line: int, role: Role, card: str, rate: float) -> Claim:
    setting = Setting(workload="ours", family=None, accelerator=package.accelerators()[card], precision="amp", batch=64)
    return Claim(line=line, group="1", role=role, name=card, workload="ours", settings=(setting,), samples_per_s=rate)


SEEN = (_claim(2, "given", "v100-sxm2-16gb", 100.0), _claim(3, "predict", "a100-sxm4-40gb", 200.0))
"""A question: an A100 from a V100."""
