"""A record of the demand as a CSV: a moment, and the GPUs wanted or in use at it, in equal steps."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwise.errors import DataError, InvalidInput, Message
from gpuwise.sources.costs import csv_rows
from gpuwise.units import SECONDS_PER_HOUR, Hours, parse_moment, parse_number

Floats = NDArray[np.float64]
TIMES = ("time", "timestamp", "hour", "start", "minute")
GPUS = ("gpus", "gpu", "wanted", "in_use", "running")


def read_record(path: Path) -> tuple[Floats, Hours]:
    """GPUs at each step, and the length of a step. DataError with the line for what cannot be used."""
    with closing(csv_rows(path)) as rows:
        _, header = next(rows, (0, []))
        titles = [title.strip().casefold() for title in header]
        when, gpus = (_place(path, titles, names) for names in (TIMES, GPUS))
        read = [_row(path, line, row, when, gpus) for line, row in rows]
    if len(read) < 2:
        raise DataError(
            Message("{file} has {n} rows: two at least say what a step is.", file=path.name, n=len(read)),
            Message("Give a record of some weeks."),
            file=path.name,
        )
    _refuse_gaps(path, read)
    return np.array([value for _line, _when, value in read]), (read[1][1] - read[0][1]) / SECONDS_PER_HOUR


def _place(path: Path, titles: list[str], names: tuple[str, ...]) -> int:
    found = next((titles.index(name) for name in names if name in titles), None)
    if found is None:
        raise DataError(
            Message("{file} has no column {name}; it has {titles}.", file=path.name, name=names[0],
                    titles=", ".join(titles[:12]) or "-"),
            Message("Give two columns: time, gpus."),
            file=path.name,
        )  # fmt: skip
    return found


def _row(path: Path, line: int, row: list[str], when: int, gpus: int) -> tuple[int, float, float]:
    try:
        value = parse_number(row[gpus])
        moment = parse_moment(row[when])
        if value < 0:
            raise InvalidInput(Message('"{text}" is below 0.', text=row[gpus]), Message("Give GPUs from 0 up."))
    except IndexError:
        raise DataError(
            Message("{file}, line {line}: a column is missing.", file=path.name, line=line),
            Message("Give time and gpus in each line."),
            file=path.name, row=line,
        ) from None  # fmt: skip
    except InvalidInput as error:
        what = Message("{file}, line {line}: {what}", file=path.name, line=line, what=error.message)
        raise DataError(what, error.hint, file=path.name, row=line) from error
    return line, moment.timestamp() if moment.tzinfo else moment.replace(tzinfo=UTC).timestamp(), value


def _refuse_gaps(path: Path, read: list[tuple[int, float, float]]) -> None:
    """Steps of one length, in order: a missing hour is neither 0 nor the hour before."""
    step = read[1][1] - read[0][1]
    for (_, before, _), (line, now, _) in pairwise(read):
        if step <= 0 or abs(now - before - step) > 1:
            raise DataError(
                Message("{file}, line {line}: the step to it is {got:g} s, and the first one is {step:g} s.",
                        file=path.name, line=line, got=now - before, step=step),
                Message("Give equal steps in order of time; times without a zone are UTC."),
                file=path.name, row=line,
            )  # fmt: skip
