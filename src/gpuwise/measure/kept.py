"""Runs on paper: a Record as JSON and back, in a file or in the run store, and the folder that each run has."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from gpuwise.errors import DataError, InvalidInput, Message, UnknownName
from gpuwise.measure.record import Record
from gpuwise.store.runs import Run, Store

KIND = "measure"
"""What a run of this verb is called in the store."""
_NUMBER = re.compile(r"[0-9]+")


def payload(record: Record) -> dict[str, Any]:
    """The record as plain values for JSON: every field, None where a figure is not known."""
    plain: dict[str, Any] = _plain(record)
    return plain


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, Message):
        return str(value)
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def restored(data: object, name: str) -> Record:
    """The record that `payload` wrote. DataError if it is none, or of a newer gpuwise; name: of the file or run."""
    from pydantic import ValidationError

    if not isinstance(data, dict) or data.get("kind") != "run":
        raise _no_record(name, Message("its kind is not run"))
    try:
        record: Record = _adapter().validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise _no_record(name, Message("{where}: {why}", where=where, why=first["msg"])) from error
    return record


def _no_record(name: str, why: Message) -> DataError:
    return DataError(
        Message("{name} is no record of a run ({why}).", name=name, why=why),
        Message("Give a file that gpuwise measure --out wrote, or the number of a run."),
        file=name,
    )


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Record)


def run_of(record: Record, data_version: str) -> Run:
    """The record as a row of the store."""
    return Run(
        kind=KIND,
        schema=record.schema,
        created_utc=record.created_utc,
        data_version=data_version,
        workload=record.setup.workload,
        payload=payload(record),
    )


def record_of(run: Run) -> Record:
    return restored(run.payload, f"run {run.id}")


def is_number(text: str) -> bool:
    """Does the text name a run of the store, rather than a file?"""
    return bool(_NUMBER.fullmatch(text)) and not Path(text).exists()


def find(text: str, store: Store) -> Record:
    """The record of a run by its number, or of a file. UnknownName, DataError or InvalidInput if there is none."""
    if is_number(text):
        run = store.get(int(text))
        if run.kind != KIND:
            raise UnknownName(
                Message("Run {id} is no measurement but an answer to {kind}.", id=text, kind=run.kind),
                Message("List the measurements: gpuwise runs list"),
            )
        return record_of(run)
    try:
        data = json.loads(Path(text).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            Message("{name} cannot be read ({why}).", name=text, why=getattr(error, "strerror", None) or str(error)),
            Message("Give a file that gpuwise measure --out wrote, or the number of a run."),
        ) from error
    except json.JSONDecodeError as error:
        raise _no_record(text, Message("line {line} is not JSON", line=error.lineno)) from error
    return restored(data, text)


def runs_folder() -> Path:
    """Where marks and checkpoints of runs are."""
    return user_data_path("gpuwise") / "runs"
