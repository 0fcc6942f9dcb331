"""A ratchet: errors that were reached once may not become worse by more than a stated margin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwise.predict.accuracy import Split
from gpuwise.predict.score import Errors, errors
from gpuwise.predict.tables import Draw, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratchet:
    """What was reached on a seeded subset of each split. margin_percent: in points of MAPE, for another machine's
    arithmetic. most, seed: of the draw."""

    mape_percent: Mapping[str, float]
    margin_percent: float
    most: int
    seed: int


def drawn(splits: Mapping[str, Split], tables: Tables, ratchet: Ratchet) -> dict[str, Errors]:
    """The splits that the ratchet holds, scored on its subset."""
    draw = Draw(most=ratchet.most, seed=ratchet.seed)
    return {name: errors(splits[name].scores(tables, draw)) for name in ratchet.mape_percent if name in splits}


def worse(found: Mapping[str, Errors], ratchet: Ratchet) -> list[str]:
    """Splits whose error grew beyond the margin, and those that are no longer scored."""
    return [
        f"{name}: {reached:.2f} % was reached, and now it is {now}"
        for name, reached in ratchet.mape_percent.items()
        if (now := _mape(found, name)) is None or now > reached + ratchet.margin_percent
    ]


def _mape(found: Mapping[str, Errors], name: str) -> float | None:
    return found[name].mape_percent if name in found else None
