"""The marks that a job's processes wrote, as arrays: `parse` reads the text of all files of one folder, `Reader` one
file as it grows.

A line of 11 integers is an optimizer step (see gpuwise.meter), a JSON object an event; anything else, such as a last
line that was cut off, is passed over. Times become seconds on the clock of the file's machine, which has no origin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.units import Seconds

Floats = NDArray[np.float64]
COLUMNS = 11
_STEP = re.compile(r"(?:-?[0-9]{1,19} ){10}-?[0-9]{1,19}")
"""Eleven integers of 64 bits at most."""
TIMES = ("wait_s", "copy_s", "forward_s", "backward_s", "all_reduce_s", "optimizer_s", "sync_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The steps of one rank, n of them, sessions joined. nan: not seen.

    start_s: when the first session began, as in session_start_s. session_starts: index of each session's first step.
    """

    rank: int
    start_s: Seconds
    end_s: Floats
    samples: Floats
    tokens: Floats
    micro: Floats
    wait_s: Floats
    copy_s: Floats
    forward_s: Floats
    backward_s: Floats
    all_reduce_s: Floats
    optimizer_s: Floats
    sync_s: Floats
    session_starts: tuple[int, ...] = (0,)
    session_start_s: tuple[Seconds, ...] = ()
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Time of a rank that is not training: validation, checkpoint, compile, counting …"""

    rank: int
    name: str
    begin_s: Seconds
    end_s: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """series: by rank. events: in the order of their time, each with its `rank` and `file`; `t` is in nanoseconds.
    sessions: how often the job was started. redone: steps left out since a later session did them again."""

    series: tuple[Series, ...] = ()
    phases: tuple[Phase, ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    sessions: int = 1
    redone: int = 0

    def told(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """The events of one name."""
        return tuple(event for event in self.events if event["event"] == name)


@dataclass(frozen=True, slots=True)
class _File:
    """One process: rows is n × 11. order: when it started, on the wall clock where it was told."""

    name: str
    rank: int
    rows: Floats
    events: Sequence[dict[str, Any]]
    order: float
    start_s: Seconds
    from_step: int | None

    @property
    def ends_s(self) -> Seconds:
        return float(self.rows[-1, 0])


class Reader:
    """The marks of one process, read as they come: 88 bytes a step are kept and room for a quarter more, no text."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self._table = np.empty((0, COLUMNS), np.float64)
        self._steps = 0

    def __len__(self) -> int:
        """Steps so far."""
        return self._steps

    @property
    def rows(self) -> Floats:
        """n × 11, a view: durations in seconds, nan for what was not seen."""
        return self._table[: self._steps]

    def add(self, text: str) -> None:
        """Further text, which ends with a line; what follows its last line feed was cut off and is passed over."""
        rows: list[str] = []
        for line in text.split("\n")[:-1]:
            if line.startswith("{"):
                self.events += _event(line)
            elif _STEP.fullmatch(line):
                rows.append(line)
        if rows:
            self._append(np.fromstring(" ".join(rows), np.float64, sep=" ").reshape(-1, COLUMNS))

    def _append(self, rows: Floats) -> None:
        rows[rows == -1] = np.nan
        rows[:, [0, *range(4, COLUMNS)]] *= 1e-9
        needed = self._steps + len(rows)
        if needed > len(self._table):  # a table that was handed out stays as it is
            larger = np.empty((needed + needed // 4, COLUMNS), np.float64)
            larger[: self._steps] = self.rows
            self._table = larger
        self._table[self._steps : needed] = rows
        self._steps = needed


def parse(files: Mapping[str, str]) -> Marks:
    """Marks of the files' texts by name; empty where nobody wrote anything."""
    readers = []
    for name, text in files.items():
        readers.append(Reader(name))
        readers[-1].add(text)
    return joined(readers)


def joined(readers: Iterable[Reader]) -> Marks:
    """Marks of all that the files hold so far."""
    read = [_file(reader) for reader in sorted(readers, key=lambda one: one.name)]
    ranks = sorted({file.rank for file in read if len(file.rows)})
    whole = [_join([f for f in read if f.rank == rank and len(f.rows)]) for rank in ranks]
    events = sorted((event for file in read for event in file.events), key=lambda event: event["t"])
    sessions = max((len(series.session_starts) for series, _ in whole), default=1)
    return Marks(
        series=tuple(series for series, _ in whole),
        phases=tuple(_phases(events)),
        events=tuple(events),
        sessions=sessions,
        redone=sum(redone for _, redone in whole[:1]),
    )


def _file(reader: Reader) -> _File:
    name, events, rows = reader.name, reader.events, reader.rows
    started = next((e for e in events if e["event"] == "start"), {})
    rank = _rank(name, events)
    begin_s = started["t"] * 1e-9 if started else float(rows[0, 0]) if len(rows) else 0.0
    resumed = [e.get("from_step") for e in events if e["event"] == "resume"]
    return _File(
        name=name,
        rank=rank,
        rows=rows,
        events=[{**event, "rank": event.get("rank", rank), "file": name} for event in events],
        order=started.get("unix_ns", 0) * 1e-9 or begin_s,
        start_s=begin_s,
        from_step=resumed[-1] if resumed else None,
    )


def _event(line: str) -> list[dict[str, Any]]:
    try:
        event = json.loads(line)
    except ValueError:
        return []
    known = isinstance(event, dict) and isinstance(event.get("event"), str) and isinstance(event.get("t"), int)
    return [event] if known else []


def _rank(name: str, events: Sequence[Mapping[str, Any]]) -> int:
    """As the process last told it (a rank may be given in the program), else as the file is called."""
    told = [e["rank"] for e in events if e["event"] in ("start", "rank") and isinstance(e.get("rank"), int)]
    number = name.rsplit("/", 1)[-1].split("-")[0]
    return int(told[-1]) if told else int(number) if number.isdecimal() else 0


def _join(files: Sequence[_File]) -> tuple[Series, int]:
    """The sessions of one rank as one series, and how many steps were left out because they were done again."""
    sessions = _apart(sorted(files, key=lambda file: file.order))
    parts: list[Floats] = []
    redone = 0
    for file in sessions:
        before = sum(map(len, parts))
        if file.from_step is not None and before > file.from_step:
            redone += before - file.from_step
            parts = _cut(parts, file.from_step)
        parts.append(file.rows)
    starts = tuple(int(n) for n in np.cumsum([0, *(len(part) for part in parts)])[:-1])
    columns = (parts[0] if len(parts) == 1 else np.concatenate(parts)).T
    stages = dict(zip(TIMES, columns[4:], strict=True))
    hosts = [e.get("host") for file in sessions for e in file.events if e["event"] == "start"]
    series = Series(
        rank=sessions[0].rank,
        start_s=sessions[0].start_s,
        end_s=columns[0],
        samples=columns[1],
        tokens=columns[2],
        micro=columns[3],
        **stages,
        session_starts=starts,
        session_start_s=tuple(file.start_s for file in sessions),
        host=hosts[-1] if hosts else None,
    )
    return series, redone


def _apart(files: Sequence[_File]) -> list[_File]:
    """Sessions follow one another; of processes of one rank that ran at one time, the one with most steps counts."""
    kept: list[_File] = []
    for file in files:
        if kept and file.order < kept[-1].order + (kept[-1].ends_s - kept[-1].start_s):
            kept[-1] = max(kept[-1], file, key=lambda one: len(one.rows))
        else:
            kept.append(file)
    return kept


def _cut(parts: Sequence[Floats], steps: int) -> list[Floats]:
    """The first `steps` rows of all parts together; a part may become empty and stays a session."""
    left, result = steps, []
    for part in parts:
        result.append(part[:left])
        left -= len(result[-1])
    return result


def _phases(events: Iterable[Mapping[str, Any]]) -> Iterable[Phase]:
    for event in events:
        if event["event"] == "phase" and {"begin", "end"} <= event.keys():
            yield Phase(
                rank=event["rank"],
                name=str(event.get("name", "")),
                begin_s=event["begin"] * 1e-9,
                end_s=event["end"] * 1e-9,
            )
