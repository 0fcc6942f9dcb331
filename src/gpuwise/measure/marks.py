"""The marks that a job's processes wrote, as arrays: `parse` reads the text of all files of one folder.

A line of 11 integers is an optimizer step (see gpuwise.meter), a JSON object an event; anything else, such as a last
line that was cut off, is passed over. Times become seconds on the clock of the file's machine, which has no origin.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.units import Seconds

Floats = NDArray[np.float64]
COLUMNS = 11
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
    """One process: rows is n × 11 of raw integers. order: when it started, on the wall clock where it was told."""

    name: str
    rank: int
    rows: Floats
    events: tuple[dict[str, Any], ...]
    order: float
    start_s: Seconds
    from_step: int | None

    @property
    def ends_s(self) -> Seconds:
        return float(self.rows[-1, 0])


def parse(files: Mapping[str, str]) -> Marks:
    """Marks of the files' texts by name; empty where nobody wrote anything."""
    read = [_read(name, text) for name, text in sorted(files.items())]
    ranks = sorted({file.rank for file in read if len(file.rows)})
    joined = [_join([f for f in read if f.rank == rank and len(f.rows)]) for rank in ranks]
    events = sorted((event for file in read for event in file.events), key=lambda event: event["t"])
    sessions = max((len(series.session_starts) for series, _ in joined), default=1)
    return Marks(
        series=tuple(series for series, _ in joined),
        phases=tuple(_phases(events)),
        events=tuple(events),
        sessions=sessions,
        redone=sum(redone for _, redone in joined[:1]),
    )


def _read(name: str, text: str) -> _File:
    rows, events = _lines(text)
    started = next((e for e in events if e["event"] == "start"), {})
    rank = _rank(name, events)
    table = np.array(rows, np.float64).reshape(-1, COLUMNS)
    table[table == -1] = np.nan
    table[:, [0, *range(4, COLUMNS)]] *= 1e-9
    begin_s = started["t"] * 1e-9 if started else float(table[0, 0]) if len(table) else 0.0
    resumed = [e.get("from_step") for e in events if e["event"] == "resume"]
    return _File(
        name=name,
        rank=rank,
        rows=table,
        events=tuple({**event, "rank": event.get("rank", rank), "file": name} for event in events),
        order=started.get("unix_ns", 0) * 1e-9 or begin_s,
        start_s=begin_s,
        from_step=resumed[-1] if resumed else None,
    )


def _lines(text: str) -> tuple[list[list[int]], list[dict[str, Any]]]:
    rows: list[list[int]] = []
    events: list[dict[str, Any]] = []
    for line in text.split("\n")[:-1]:  # what follows the last line feed was cut off
        if line.startswith("{"):
            events += _event(line)
            continue
        fields = line.split()
        if len(fields) == COLUMNS and all(field.lstrip("-").isdecimal() for field in fields):
            rows.append([int(field) for field in fields])
    return rows, events


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
    columns = np.concatenate(parts).T
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
