"""A table of measured rates as a person keeps it (CSV) → the questions that the predictor is scored on.

What is wrong with a given row ends the reading (DataError: file, line, column, value, rule), since every prediction of
its group would stand on it. What is wrong with a row to be predicted refuses that row, and so does a GPU that nobody
knows: the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import cast

import numpy as np

from gpuwise.catalogue import Coded
from gpuwise.errors import DataError, InvalidInput, Message
from gpuwise.model import Accelerator, Precision
from gpuwise.names import Index, resolve_request
from gpuwise.predict.against import Claim, Role
from gpuwise.predict.plausible import impossible, inverse, sparse
from gpuwise.predict.roofline import Work
from gpuwise.predict.rows import work
from gpuwise.predict.setting import Mode, Setting
from gpuwise.predict.spelling import Names
from gpuwise.store.delimited import Table, read
from gpuwise.store.sheet import Sheet, choices, refusal
from gpuwise.store.tables import read_bytes
from gpuwise.workloads import FAMILIES

NEEDED = ("group", "role", "accelerator", "workload", "precision", "batch_per_accelerator", "samples_per_s")
OPTIONAL = (
    "accelerators", "software", "memory_format", "mode", "family", "gmacs", "activations_m", "parameters_m",
    "image_size",
)  # fmt: skip
COLUMNS = (*NEEDED, *OPTIONAL)
ALIASES = {
    "gpu": "accelerator", "gpu_name": "accelerator", "gpus": "accelerators", "gpu_count": "accelerators",
    "batch_per_gpu": "batch_per_accelerator", "model": "workload", "params_m": "parameters_m",
    "acts_m": "activations_m",
}  # fmt: skip
"""Other headers -> the column they mean."""

TIMES = ("ms", "step_ms", "latency_ms", "step_time_ms", "step_s", "seconds", "latency", "step_time", "time_s", "time")
"""Columns that hold what samples_per_s is computed from."""

ROLES = choices("given", "predict")
PRECISIONS = choices(
    "fp32", "tf32", "amp", "amp_bf16", "bf16", "fp8",
    float32="fp32", single="fp32", fp16="amp", float16="amp", half="amp", mixed="amp", amp_fp16="amp", bfloat16="bf16",
)  # fmt: skip
MODES = choices("train", "infer", training="train", inference="infer")
FORMATS = choices("nchw", "nhwc", contiguous="nchw", channels_last="nhwc")
KINDS = choices(
    *FAMILIES,
    convnet="cnn", vit="transformer", nlp="transformer", llm="transformer", detection="cnn-detection", rnn="recurrent",
)  # fmt: skip
COUNTS = ("gmacs", "activations_m", "parameters_m")
NUMBERS = ("batch_per_accelerator", "samples_per_s", "accelerators", "image_size", *COUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a table is read against."""

    index: Index
    accelerators: Mapping[str, Accelerator]
    names: Names
    counts: Mapping[str, Work]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """claims: every row, in order. notes: what was assumed, and what is not used. rejects: lines that are no rows."""

    claims: tuple[Claim, ...]
    notes: tuple[Message, ...]
    rejects: tuple[Message, ...]


def read_claims(path: Path, known: Known) -> Loaded:
    """The questions of a file; DataError as in `parse_claims`, and where it cannot be read."""
    return parse_claims(read_bytes(path), path.name, known)


def parse_claims(content: bytes, name: str, known: Known) -> Loaded:
    """The questions in the bytes of a CSV file. DataError for a table that cannot be used, see above."""
    table = read(content, name, frozenset((*COLUMNS, *ALIASES)))
    sheet = Sheet(table, _proper, {"accelerators": "1", "mode": "train"})
    _need(sheet, table)
    reader = _Reader(sheet, known)
    claims = tuple(map(reader.claim, range(sheet.rows)))
    _refuse_questions(sheet, claims)
    return Loaded(claims=claims, notes=(*table.notes, *sheet.notes, *_unused(sheet)), rejects=table.rejects)


def _proper(title: str) -> str:
    slug = title.partition("[")[0].strip().casefold().replace(" ", "_")
    return ALIASES.get(slug, slug)


def _need(sheet: Sheet, table: Table) -> None:
    missing = next((column for column in NEEDED if column not in sheet), None)
    if missing is not None:
        what = Message("the column {column} is missing.", column=missing)
        raise sheet.error(what, _hint(missing, [_proper(title) for title in sheet.titles]), column=missing)
    if not len(table):
        raise sheet.error(Message("there are no rows below the header."), Message("Write a row a measurement."))


def _hint(missing: str, titles: Sequence[str]) -> Message:
    others = [title for title in titles if title not in COLUMNS]
    if missing == "samples_per_s" and set(others) & set(TIMES):
        return _RATE_OF_TIME
    near = get_close_matches(missing, others, 1)
    needed = Message("Needed are {names}.", names=", ".join(NEEDED))
    return Message("Is it {near}? {needed}", near=near[0], needed=needed) if near else needed


_RATE_OF_TIME = Message("samples_per_s = batch_per_accelerator × accelerators / seconds of a step.")


def _unused(sheet: Sheet) -> Iterator[Message]:
    unknown = [title for title in sheet.titles if _proper(title) not in COLUMNS]
    if unknown:
        yield Message("columns that are not used: {names}", names=", ".join(unknown))


class _Reader:
    """The rows of one sheet as claims."""

    def __init__(self, sheet: Sheet, known: Known) -> None:
        self.sheet, self.known = sheet, known
        self.roles = sheet.choice("role", ROLES)
        self._refuse_unclear(("role", self.roles), ("group", sheet.text("group")))
        self.texts = {c: sheet.text(c) for c in ("group", "accelerator", "workload", "software")}
        words = {"precision": PRECISIONS, "memory_format": FORMATS, "mode": MODES, "family": KINDS}
        self.choices = {column: sheet.choice(column, meant) for column, meant in words.items()}
        self.numbers = {column: sheet.numbers(column) for column in NUMBERS}

    def _refuse_unclear(self, *columns: tuple[str, Coded]) -> None:
        """DataError for the first row that belongs to no question, or is neither given nor to be predicted."""
        for column, cells in columns:
            empty = [row for row in range(self.sheet.rows) if cells[row] is None]
            if empty:
                row = empty[0]
                reason = _reason(self.sheet.rejects[row]) if row in self.sheet.rejects else _EMPTY
                raise self._error(row, column, reason)

    def _error(self, row: int, column: str, reason: Message) -> DataError:
        what = Message("{column}: {reason}.", column=self.sheet.title(column), reason=reason)
        return self.sheet.error(what, _HINTS.get(column, _CORRECT), column=column, row=int(self.sheet.lines[row]))

    def claim(self, row: int) -> Claim:
        """One row. DataError where it was given and cannot be used."""
        bare = self._bare(row)
        fault = next(self._faults(row), None)
        if fault is not None and bare.role == "given":
            raise self._error(row, *fault)
        if fault is not None:
            column, reason = fault
            return replace(bare, refused=Message("{column}: {reason}", column=column, reason=reason))
        try:
            cards = self._cards(row)
        except InvalidInput as error:
            why = Message("accelerator: {problem} {hint}", problem=error.message, hint=error.hint)
            return replace(bare, refused=why)
        return self._claim(row, bare, cards)

    def _bare(self, row: int) -> Claim:
        text = {column: cells[row] or "" for column, cells in self.texts.items()}
        rate = self._number("samples_per_s", row)
        return Claim(
            line=int(self.sheet.lines[row]),
            group=text["group"],
            role=cast(Role, self.roles[row]),
            name=text["accelerator"],
            workload=self.known.names.workload(text["workload"], _whole(self._number("image_size", row))),
            samples_per_s=rate if rate else None,
        )

    def _number(self, column: str, row: int) -> float | None:
        value = float(self.numbers[column][row])
        return None if np.isnan(value) else value

    def _faults(self, row: int) -> Iterator[tuple[str, Message]]:
        """What is wrong with a row: column and reason."""
        if row in self.sheet.rejects:
            yield _column(self.sheet.rejects[row]), _reason(self.sheet.rejects[row])
        for column in ("accelerator", "workload"):
            if self.texts[column][row] is None:
                yield column, _EMPTY
        if self.choices["precision"][row] is None:
            yield "precision", _EMPTY
        yield from self._faulty_numbers(row)
        yield from self._faulty_counts(row)

    def _faulty_numbers(self, row: int) -> Iterator[tuple[str, Message]]:
        for column in ("batch_per_accelerator", "accelerators", "image_size"):
            value = self._number(column, row)
            if value is None and column == "batch_per_accelerator":
                yield column, _EMPTY
            if value is not None and (value < 1 or value % 1):
                yield column, Message("{value:g} is not a whole number from 1 up", value=value)
        rate = self._number("samples_per_s", row)
        if rate is None and self.roles[row] == "given":
            yield "samples_per_s", _EMPTY
        if rate == 0:
            yield "samples_per_s", Message("{value:g} is not above 0", value=0)

    def _faulty_counts(self, row: int) -> Iterator[tuple[str, Message]]:
        counts = {column: self._number(column, row) for column in COUNTS}
        for column, value in counts.items():
            if value is not None and (why := impossible(column, value)) is not None:
                yield column, why
        if counts["activations_m"] is not None and counts["gmacs"] is None:
            yield "gmacs", Message("activations_m stands without it")
        why = sparse(counts["gmacs"], counts["parameters_m"], self.choices["family"][row])
        if why is not None:
            yield "parameters_m", why

    def _cards(self, row: int) -> _Cards:
        """What the name means. InvalidInput for one that is no GPU, or contradicts the number beside it."""
        text = str(self.texts["accelerator"][row])
        found = resolve_request(self.known.index, text)
        if not found.ids:
            raise refusal(Message('"{text}" names no GPU', text=text))
        stated = _whole(self._number("accelerators", row)) or 1
        named = None if found.count is None else (found.count.low, found.count.high)
        count = stated if named is None or named[0] is None else int(named[0])
        if named is not None and (named[0] != named[1] or stated not in (1, count)):
            raise refusal(Message('"{text}" and accelerators = {count} contradict each other', text=text, count=stated))
        ids, remarks = _one_die(found.ids, found.notes if len(found.ids) == 1 else ())
        return _Cards(cards=tuple(self.known.accelerators[name] for name in ids), count=count, remarks=remarks)

    def _claim(self, row: int, bare: Claim, found: _Cards) -> Claim:
        words = {column: cells[row] for column, cells in self.choices.items()}
        family = words["family"] or self.known.names.family(bare.workload)
        counted, remarks = self._work(row, bare.workload, family)
        settings = tuple(
            Setting(
                workload=bare.workload,
                family=family,
                accelerator=card,
                accelerators=found.count,
                precision=cast(Precision, words["precision"]),
                batch=int(self._number("batch_per_accelerator", row) or 0),
                work=counted,
                software=self.known.names.software(self.texts["software"][row]),
                memory_format=words["memory_format"],
                mode=cast(Mode, words["mode"] or "train"),
                as_computed=True,
                compiled="compil" in (self.texts["software"][row] or "").casefold(),
            )
            for card in found.cards
        )
        return replace(bare, settings=settings, remarks=(*found.remarks, *remarks))

    def _work(self, row: int, workload: str, family: str | None) -> tuple[Work | None, tuple[Message, ...]]:
        """The stated counts, else those of the tables; with a remark where only some of them are stated."""
        stated = {column: self._number(column, row) for column in COUNTS}
        known = {column: value for column, value in stated.items() if value is not None}
        there = work(workload, self.known.counts)
        if len(known) == len(COUNTS):
            own = there or Work(**known, transformer=family == "transformer")
            return replace(own, gmacs=known["gmacs"], activations_m=known["activations_m"],
                           parameters_m=known["parameters_m"]), ()  # fmt: skip
        missing = ", ".join(column for column in COUNTS if column not in known)
        return there, (Message("counts are not used: {missing} is missing", missing=missing),) if known else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cards:
    cards: tuple[Accelerator, ...]
    count: int
    remarks: tuple[Message, ...]


def _one_die(ids: Sequence[str], notes: Sequence[Message]) -> tuple[tuple[str, ...], tuple[Message, ...]]:
    """Of a board with two dies (K80, M60) a driver counts each die as a GPU, and so does who measures."""
    halves = [name for name in ids if name.removesuffix("-half") in ids and name.endswith("-half")]
    if len(halves) != 1 or len(ids) != 2:
        return tuple(ids), tuple(notes)
    return tuple(halves), (Message("one of the two dies of the board, as a driver counts them"),)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _reason(reject: Message) -> Message:
    """Why a cell was refused, without file, line and column."""
    reason = reject.values["reason"]
    inner = reason.values.get("reason") if isinstance(reason, Message) else None
    return inner if isinstance(inner, Message) else Message("{why}", why=reason)


def _column(reject: Message) -> str:
    reason = reject.values["reason"]
    return str(reason.values.get("column", "")) if isinstance(reason, Message) else ""


_EMPTY = Message("it is empty")
_CORRECT = Message("Correct the cell.")
_HINTS = {
    "role": Message("Write given for what was measured, or predict for what is to be predicted and scored."),
    "group": Message("Give the rows of one question the same name or number."),
    "precision": Message("Write the arithmetic really used: fp32, tf32, amp (fp16), amp_bf16, bf16 or fp8."),
    "batch_per_accelerator": Message("Write the samples that one GPU takes in a step."),
    "samples_per_s": Message("Write samples a second of all GPUs together, without a unit."),
    "gmacs": Message("Write 10^9 multiply-accumulates of one forward pass of one sample."),
    "activations_m": Message("Write 10^6 activation elements of one forward pass of one sample."),
    "parameters_m": Message("Write 10^6 parameters, without a unit."),
}


def _refuse_questions(sheet: Sheet, claims: Sequence[Claim]) -> None:
    """DataError for a group that asks nothing, and for a table of times."""
    asked = {claim.group for claim in claims if claim.role == "predict"}
    idle = next((claim for claim in claims if claim.group not in asked), None)
    if idle is not None:
        what = Message("group {group} has no row to predict.", group=idle.group)
        raise sheet.error(what, _HINTS["role"], column="role", row=idle.line)
    if inverse(_questions(claims)):
        what = Message("samples_per_s falls where GPUs are faster: these are times, not rates.")
        raise sheet.error(what, _RATE_OF_TIME, column="samples_per_s", row=claims[0].line)


def _questions(claims: Sequence[Claim]) -> list[list[tuple[Setting, float]]]:
    """What was measured of one network in one arithmetic, by group."""
    found: dict[tuple[str, ...], list[tuple[Setting, float]]] = {}
    for claim in claims:
        if claim.samples_per_s is not None and len(claim.settings) == 1:
            (setting,) = claim.settings
            key = (claim.group, setting.workload, setting.precision, setting.mode)
            found.setdefault(key, []).append((setting, claim.samples_per_s))
    return list(found.values())
