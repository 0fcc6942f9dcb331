"""A record of the demand as a CSV: a moment, and GPUs wanted or in use at it, in equal steps, in all or by team."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import DataError, InvalidInput, Message
from gpuwise.sources.costs import csv_rows
from gpuwise.units import SECONDS_PER_HOUR, Hours, Seconds, parse_date, parse_moment, parse_number

Floats = NDArray[np.float64]
TIMES = ("time", "timestamp", "date", "day", "hour", "start", "minute")
GPUS = ("gpus", "gpu", "wanted", "in_use", "running")
COUNTED: Mapping[str, Seconds] = {"minute": 60.0, "hour": 3600.0}
"""Columns of times that may hold plain numbers: so many of their unit have passed."""
SUMS = ("total", "sum", "all")
"""Columns that are no team: they would count all others a second time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """gpus: of all, (T,), at equal steps of step_h. teams: of each, by its name; empty where one column holds all."""

    gpus: Floats
    step_h: Hours
    teams: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    moment_s: Seconds
    gpus: list[float]


def read_record(path: Path) -> Record:
    """The record in a file. DataError with the line for what cannot be used."""
    with closing(csv_rows(path)) as rows:
        _, header = next(rows, (0, []))
        if not header:
            raise DataError(Message("{file} is empty.", file=path.name), Message("Give a record of some weeks."),
                            file=path.name)  # fmt: skip
        titles = [title.strip().casefold() for title in header]
        when = _place(path, titles, TIMES)
        columns = _columns(path, header, titles, when)
        read = [_row(path, line, row, (titles[when], when), columns) for line, row in rows]
    if len(read) < 2:
        raise DataError(
            Message("{file} has {n} rows: two at least say what a step is.", file=path.name, n=len(read)),
            Message("Give a record of some weeks."),
            file=path.name,
        )
    _refuse_gaps(path, read)
    gpus = np.array([row.gpus for row in read])
    return Record(
        gpus=gpus.sum(axis=1),
        step_h=(read[1].moment_s - read[0].moment_s) / SECONDS_PER_HOUR,
        teams={name: gpus[:, at] for at, name in enumerate(columns)} if len(columns) > 1 else {},
    )


def _place(path: Path, titles: list[str], names: tuple[str, ...]) -> int:
    found = next((titles.index(name) for name in names if name in titles), None)
    if found is None:
        raise DataError(
            Message("{file} has no column {name}; it has {titles}.", file=path.name, name=names[0],
                    titles=", ".join(titles[:12]) or "-"),
            Message("Give two columns, time and gpus, or a column of GPUs for each of several teams."),
            file=path.name,
        )  # fmt: skip
    return found


def _columns(path: Path, header: Sequence[str], titles: list[str], when: int) -> Mapping[str, int]:
    """Places of the columns that are read: the one of GPUs, else every one beside the time is a team."""
    names = [name.strip() for name in header]
    others = {name: place for place, name in enumerate(names) if place != when}
    if len(names) < 3 or any(name in titles for name in GPUS):
        return {GPUS[0]: _place(path, titles, GPUS)}
    sums = [name for name in others if name.casefold() in SUMS]
    if sums or "" in others or len(others) < len(names) - 1:
        what = (
            Message('{file}: the column "{name}" counts the teams a second time.', file=path.name, name=sums[0])
            if sums
            else Message("{file}: two columns have the same name, or one has none.", file=path.name)
        )
        raise DataError(
            what, Message("Give a time, and a column with a name of its own for each team."), file=path.name
        )
    return others


def _row(path: Path, line: int, row: list[str], when: tuple[str, int], columns: Mapping[str, int]) -> _Row:
    title, at = when
    values = list[float]()
    try:
        moment = _moment_s(title, row[at])
        for at in columns.values():
            values.append(_gpus(row[at]))
    except IndexError:
        raise DataError(
            Message("{file}, line {line}: a column is missing.", file=path.name, line=line),
            Message("Give a time and GPUs in each line."),
            file=path.name, row=line,
        ) from None  # fmt: skip
    except InvalidInput as error:
        column = next((name for name, place in columns.items() if place == at), title)
        what = Message("{file}, line {line}, column {column}: {what}", file=path.name, line=line, column=column,
                       what=error.message)  # fmt: skip
        teams = Message("Give GPUs of each team in each line, and no column of anything else but the time.")
        hint = error.hint if column == title or len(columns) == 1 else teams
        raise DataError(what, hint, file=path.name, row=line) from error
    return _Row(line, moment, values)


def _moment_s(title: str, text: str) -> Seconds:
    if title in COUNTED and text.strip().isdecimal():
        return int(text) * COUNTED[title]
    day = re.fullmatch(r"\s*\d{4}-\d{2}-\d{2}\s*", text)
    moment = datetime.combine(parse_date(text), time()) if day else parse_moment(text)
    return moment.timestamp() if moment.tzinfo else moment.replace(tzinfo=UTC).timestamp()


@lru_cache(maxsize=4096)
def _gpus(text: str) -> float:
    """The same few numbers come again and again."""
    value = parse_number(text)
    if value < 0:
        raise InvalidInput(Message('"{text}" is below 0.', text=text), Message("Give GPUs from 0 up."))
    return value


def _refuse_gaps(path: Path, read: list[_Row]) -> None:
    """Steps of one length, in order: a missing hour is neither 0 nor the hour before."""
    step = read[1].moment_s - read[0].moment_s
    for before, now in pairwise(read):
        got = now.moment_s - before.moment_s
        if step <= 0 or abs(got - step) > 1:
            raise DataError(
                Message("{file}, line {line}: the step to it is {got:g} s, and the first one is {step:g} s.",
                        file=path.name, line=now.line, got=got, step=step),
                Message("Give equal steps in order of time; times without a zone are UTC."),
                file=path.name, row=now.line,
            )  # fmt: skip
