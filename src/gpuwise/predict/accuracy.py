"""How wrong the predictor is: every split by name, what it asks, and what others reached.

    result(SPLITS["A"], tables).errors.mape_percent

A split leaves rows out, fits and chooses everything anew without them, and predicts them. The splits are diagnostics:
nothing is tuned on what they report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from gpuwise.errors import Message
from gpuwise.predict.memory_split import memory_scores, verdicts
from gpuwise.predict.profile import Profiles
from gpuwise.predict.profile_split import profile_scores
from gpuwise.predict.scaling_fit import runs_of
from gpuwise.predict.scaling_split import scaling_scores
from gpuwise.predict.score import Score, errors, grouped
from gpuwise.predict.split_scores import SCORINGS, in_order
from gpuwise.predict.tables import ALL, Draw, Tables, drawn
from gpuwise.predict.tested import Result

Scoring = Callable[[Tables, Draw], list[Score]]
"""Scores of what is left out. `Draw` may take fewer questions, by its seed."""

More = Callable[[Tables, Sequence[Score]], Mapping[str, float]]
"""Further figures of a split, by a name that ends in their unit."""

MOST_GROUPS = 60
"""A tag with more values than this says little by its groups, and they are not kept."""

GROUPED = ("family_known", "card_known", "k")
"""What parts the groups of which the worst coverage is told."""

ENOUGH = 30
"""Rows that a group needs before its coverage is called the worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a split asks. goal: MAPE / median / P90 in per cent unless it says otherwise. by: tags that part it."""

    id: str
    title: Message
    question: Message
    goal: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A split and how it is scored. more: its further figures."""

    about: About
    scores: Scoring
    more: More | None = None


def worst_coverage(_tables: Tables, scores: Sequence[Score]) -> Mapping[str, float]:
    """Coverage of the group that is covered worst, of those with enough rows; nothing where none has."""
    groups = grouped(scores, *GROUPED).values()
    found = [g.coverage_percent for g in groups if g.n >= ENOUGH and g.coverage_percent is not None]
    return {"worst_group_coverage_percent": min(found)} if found else {}


def result(split: Split, tables: Tables, draw: Draw = ALL) -> Result:
    """A split, scored: its errors of all rows together, and by each of its tags."""
    scores = split.scores(tables, draw)
    every = {tag for score in scores for tag in score.tags}
    groups = {tag: {key[0]: found for key, found in grouped(scores, tag).items()} for tag in sorted(every)}
    return Result(
        id=split.about.id,
        errors=errors(scores),
        more=dict(split.more(tables, scores)) if split.more else {},
        groups={tag: found for tag, found in groups.items() if 1 < len(found) <= MOST_GROUPS},
    )


ABOUT: tuple[About, ...] = (
    About(
        id="A",
        title=Message("one GPU measured"),
        question=Message("One GPU measured, the workload in no table, GPU-bound, no profile: how fast on another GPU?"),
        goal="11.1 / 7.3 / 26",
        by=("workload", "family", "target", "precision"),
    ),
    About(
        id="B",
        title=Message("three GPUs measured"),
        question=Message("As A, with three GPUs measured."),
        goal="7.5 / 4.5 / 16",
        by=("workload", "family", "target", "precision"),
    ),
    About(
        id="C",
        title=Message("one GPU measured, the target by its data sheet only"),
        question=Message("As A, and no table has a row of the target GPU: only its data sheet is known."),
        goal="13 / 9 / 28",
        by=("workload", "target", "architecture"),
    ),
    About(
        id="D",
        title=Message("one GPU measured, a new family"),
        question=Message("As A, and no network of the same family is in the table with many cards."),
        goal="15.8 / 10.9 / 35",
        by=("family", "workload", "target"),
    ),
    About(
        id="E",
        title=Message("nothing measured, the model counted, a new family"),
        question=Message("Nothing measured, the card in the tables, the model counted, its family in no table."),
        goal="12 / 8 / 26",
        by=("family", "memory_format"),
    ),
    About(
        id="F",
        title=Message("nothing measured, the card in no table"),
        question=Message("Nothing measured, the model counted, and the card known by its data sheet only."),
        goal="25",
        by=("table", "family", "target"),
    ),
    About(
        id="G",
        title=Message("one GPU measured with a profile"),
        question=Message("One GPU measured, with the time by class of operation; model out, and family out."),
        goal="7.5 / 4.5 / 18; 9.5 / 6 / 21",
        by=("left_out", "family", "target"),
    ),
    About(
        id="H",
        title=Message("from one GPU to several"),
        question=Message("One GPU measured: how fast are 2, 4 and 8? Also with a run on two GPUs beside it."),
        goal=Message("NVLink 3, PCIe 6; 2.2, 4.5 with a run on two").template,
        by=("link", "n", "own_two"),
    ),
    About(
        id="I",
        title=Message("intervals"),
        question=Message("How often does the measured value lie inside the 80 % interval, and in the worst group?"),
        goal=Message("77 to 83 covered; at least 65 in the worst group").template,
        by=("family_known", "card_known", "k"),
    ),
    About(
        id="J",
        title=Message("the cheapest card"),
        question=Message("How much dearer is the card that we call cheapest than the one that is?"),
        goal=Message("2; order right in 97").template,
        by=("k", "workload"),
    ),
    About(
        id="K",
        title=Message("peak memory"),
        question=Message("How much memory does a job take at its peak, at a batch that was left out?"),
        goal="6",
        by=("workload", "precision"),
    ),
    About(
        id="L",
        title=Message("a workload of the tables, the card in none"),
        question=Message("The workload is in the tables, measured on many cards, and the target in none of them."),
        goal=Message("none set").template,
        by=("workload", "target", "architecture"),
    ),
    About(
        id="U",
        title=Message("one or three GPUs measured, the network not counted"),
        question=Message("As A and B, but nobody says anything of the network: neither its counts nor its family."),
        goal=Message("none set").template,
        by=("workload", "target", "k"),
    ),
    About(
        id="M",
        title=Message("nothing measured, the workload left out"),
        question=Message("Nothing measured, the workload in no table, the card in the tables: what a first run shows."),
        goal=Message("half of the roofline's").template,
        by=("workload", "family", "target", "precision"),
    ),
)
"""Every split, in the order in which it is shown."""


CARDS_DRAWN = 3
"""Each card that is left out is a fit of its own: a draw takes so many."""


def _several(tables: Tables, draw: Draw) -> list[Score]:
    if draw.most is None:
        return scaling_scores(tables.rows, tables.accelerators)
    cards = sorted({run.sharing.card for run in runs_of(tables.rows, tables.accelerators)})
    some = drawn(cards, replace(draw, most=CARDS_DRAWN))
    return drawn(scaling_scores(tables.rows, tables.accelerators, only=some), draw)


def _by_link(_tables: Tables, scores: Sequence[Score]) -> Mapping[str, float]:
    """The mean error by link, and with a run on two devices beside the one on one."""
    alone = [score for score in scores if score.tags["own_two"] == "no"]
    parts = {
        "": alone,
        "_beyond_two": [score for score in alone if score.tags["n"] != "2"],
        "_beyond_two_with_a_run_on_two": [score for score in scores if score.tags["own_two"] == "yes"],
    }
    return {
        f"{link.lower()}{part}_mape_percent": found.mape_percent
        for part, some in parts.items()
        for (link,), found in grouped(some, "link").items()
        if found.mape_percent is not None
    }


def _by_left_out(_tables: Tables, scores: Sequence[Score]) -> Mapping[str, float]:
    """Errors with the model out, and with its whole family out."""
    return {
        f"{out}_out_{name}": value
        for (out,), found in grouped(scores, "left_out").items()
        for name in ("mape_percent", "median_percent", "p90_percent")
        if (value := getattr(found, name)) is not None
    }


def _profiled(tables: Tables, draw: Draw) -> list[Score]:
    return profile_scores(Profiles.of(tables.texts.get("profiles", ())), tables.accelerators, draw)


def _memory(tables: Tables, draw: Draw) -> list[Score]:
    return drawn(memory_scores(tables.memory), draw)


def _verdicts(tables: Tables, _scores: Sequence[Score]) -> Mapping[str, float]:
    """Would it fit? In per cent of the questions."""
    found = verdicts(tables.memory, tables.accelerators, tables.assumptions)
    return {
        "doubtful_percent": 100 * found.doubtful,
        "refused_wrongly_percent": 100 * found.refused_wrongly,
        "fits_wrongly_percent": 100 * found.fits_wrongly,
    }


FUNCTIONS: Mapping[str, Scoring] = MappingProxyType({**SCORINGS, "G": _profiled, "H": _several, "K": _memory})
"""How each split is scored."""

MORE: Mapping[str, More] = MappingProxyType(
    {"G": _by_left_out, "H": _by_link, "I": worst_coverage, "J": in_order, "K": _verdicts}
)


def registry(functions: Mapping[str, Scoring], more: Mapping[str, More] = MORE) -> Mapping[str, Split]:
    """Splits by id, of those that can be scored."""
    known = (about for about in ABOUT if about.id in functions)
    return {a.id: Split(about=a, scores=functions[a.id], more=more.get(a.id)) for a in known}


SPLITS: Mapping[str, Split] = registry(FUNCTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A mean error that others published. inputs: what a prediction needs. measured_on: on what it was found."""

    name: str
    mape_percent: float
    inputs: Message
    measured_on: Message
    source: str


PUBLISHED: tuple[Published, ...] = (
    Published(
        name="Habitat",
        mape_percent=11.8,
        inputs=Message("one step measured kernel by kernel on a GPU one has"),
        measured_on=Message("5 models on 6 GPUs, 30 pairs of GPUs"),
        source="Yu et al., USENIX ATC 2021",
    ),
    Published(
        name="NeuSight, inference",
        mape_percent=9.7,
        inputs=Message("the model's graph and a data sheet"),
        measured_on=Message("54 runs of language models in fp32 on NVIDIA GPUs, computed again from its repository"),
        source="Lee et al., ASPLOS 2025",
    ),
    Published(
        name="NeuSight, training",
        mape_percent=7.3,
        inputs=Message("the model's graph and a data sheet"),
        measured_on=Message("26 runs of language models in fp32 on NVIDIA GPUs, computed again from its repository"),
        source="Lee et al., ASPLOS 2025",
    ),
    Published(
        name="Li et al.",
        mape_percent=15.2,
        inputs=Message("FLOPs and bytes of each layer"),
        measured_on=Message("a GPU that the regression has not seen (7 % for a new network on a known GPU)"),
        source="Li et al., MICRO 2023",
    ),
)
"""Errors of the same kind, for comparison; none was found on our rows."""


def ids(splits: Iterable[str]) -> tuple[str, ...]:
    """In the order in which they are shown."""
    wanted = set(splits)
    return tuple(about.id for about in ABOUT if about.id in wanted)
