"""TOML and JSON documents → checked dataclasses. What is wrong becomes one DataError: file, line, key, what to do."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from gpuwise.errors import DataError, Message
from gpuwise.store.delimited import to_utf8
from gpuwise.store.tables import read_bytes

T = TypeVar("T")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What steers a terminal (ESC and its kin); TOML and JSON can write it as an escape."""
Keys = tuple[str | int, ...]

MAY_BE_ZERO = frozenset((
    "residual_usd", "electricity_usd_per_kwh", "hosting_usd_per_month", "staff_usd_per_month", "decode_s", "seed",
    "failed_runs", "depthwise_gmacs", "off_fraction", "discount_fraction", "accuracy_fraction", "preparation_s",
))  # fmt: skip
"""Numbers that 0 makes sense for; all others are above 0. A share (*_fraction) is 1 at most, PUE 1 at least."""

_RULES = {
    "missing": Message("is missing"),
    "int_type": Message("is not a whole number"),
    "int_from_float": Message("is not a whole number"),
    "float_type": Message("is not a number"),
    "string_type": Message("is not a text in quotes"),
    "bool_type": Message("is neither true nor false"),
    "date_type": Message("is not a day such as 2026-11-30"),
    "date_from_datetime_parsing": Message("is not a day such as 2026-11-30"),
    "tuple_type": Message("is not a list in brackets"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file says: `data` as parsed, `text` to find lines in."""

    name: str
    text: str
    data: Any

    def error(self, keys: Keys, what: Message, hint: Message | None = None) -> DataError:
        """Something is wrong at `keys`: names of tables and keys, and places in lists."""
        path, line = path_of(keys), self.line(keys)
        where = Message("{file}, line {line}", file=self.name, line=line) if line else self.name
        return DataError(
            Message("{where}: {path} {what}.", where=where, path=path, what=what)
            if path
            else Message("{where}: it {what}.", where=where, what=what),
            hint or Message("Correct the entry."),
            file=self.name,
            row=line,
            column=path or None,
        )

    def line(self, keys: Keys) -> int | None:
        """The line where the last key stands, as far as it can be found."""
        at, line = 0, None
        for place, key in enumerate(keys):
            entry = keys[place + 1] if place + 1 < len(keys) else 0
            found = self._places(str(key), at)[entry if isinstance(entry, int) else 0 :][:1]
            if found and not isinstance(key, int):
                at, line = found[0].end(), self.text.count("\n", 0, found[0].start()) + 1
        return line

    def _places(self, key: str, at: int) -> list[re.Match[str]]:
        """Where the key is set or its table begins, in TOML or in JSON."""
        name = re.escape(key)
        toml, json_ = rf"^[ \t\[]*\"?{name}\"?[ \t]*(?:\]|=)", rf"\"{name}\"[ \t]*:"
        return list(re.compile(f"{toml}|{json_}", re.M).finditer(self.text, at))

    def listed(self) -> list[tuple[int, Any]]:
        """The entries of a JSON list, each with the line where it begins."""
        decoder, entries, at = json.JSONDecoder(), list[tuple[int, Any]](), self.text.index("[") + 1
        for _ in self.data:
            at = re.compile(r"[\s,]*").match(self.text, at).end()  # type: ignore[union-attr]
            line = self.text.count("\n", 0, at) + 1
            entry, at = decoder.raw_decode(self.text, at)
            entries.append((line, entry))
        return entries


def read_toml(path: Path) -> Document:
    """The TOML file; DataError with the line if it is not TOML."""
    text = _text(path)
    try:
        return Document(name=path.name, text=text, data=tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise _malformed(path, line, "TOML", str(error).partition(" (at")[0]) from error


def read_json(path: Path) -> Document:
    """The JSON file; DataError with the line if it is not JSON, or holds NaN."""
    text = _text(path)
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise _malformed(path, error.lineno, "JSON", error.msg) from error
    except ValueError as error:
        line = text[: text.find(str(error))].count("\n") + 1
        raise _malformed(path, line, "JSON", f"{error} is no number of JSON") from error
    return Document(name=path.name, text=text, data=data)


def build(
    document: Document,
    cls: type[T],
    data: object,
    keys: Keys = (),
    *,
    may_be_zero: Collection[str] = MAY_BE_ZERO,
    **more: object,
) -> T:
    """`cls` (a dataclass) from a table of the document; `more` are fields that the file does not state.

    Numbers are not taken from texts, keys that `cls` lacks are refused with the nearest, numbers have to be possible
    (0 only under the keys `may_be_zero`), and texts hold nothing that steers a terminal.
    """
    from pydantic import ValidationError  # slow to import, and a price list in CSV needs none of it

    if not isinstance(data, dict):
        raise document.error(keys, Message("is not a table of keys and values"))
    _refuse_unknown(document, [f.name for f in fields(cls) if f.name not in more], data, keys)  # type: ignore[arg-type]
    _check_values(document, data, keys, may_be_zero)
    try:
        return _adapter(cls).validate_json(json.dumps({**data, **more}, default=str), strict=True)  # type: ignore[arg-type,no-any-return]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        rule = _RULES.get(first["type"]) or Message("is refused ({cause})", cause=first["msg"])
        raise document.error((*keys, *first["loc"]), rule) from error


def tables(document: Document, key: str) -> list[tuple[Keys, Any]]:
    """The entries of `[[key]]`, each with its keys; none if the key is not there."""
    entries = document.data.get(key, [])
    if not isinstance(entries, list):
        raise document.error((key,), Message("is not a list"), Message("Begin each entry with [[{key}]].", key=key))
    return [((key, place), entry) for place, entry in enumerate(entries)]


def only(document: Document, *keys: str) -> None:
    """DataError if the document has other keys at its top, or none of these."""
    if not isinstance(document.data, dict) or not document.data:
        raise document.error((), Message("holds none of the tables {known}", known=", ".join(keys)))
    _refuse_unknown(document, keys, document.data, ())


@cache
def _adapter(cls: type[Any]) -> Any:
    """The validator of a dataclass, made once."""
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


def _text(path: Path) -> str:
    body, _ = to_utf8(read_bytes(path), path.name)
    return body.decode()


def _malformed(path: Path, line: int, kind: str, cause: str) -> DataError:
    return DataError(
        Message("{file}, line {line}: no {kind} ({cause}).", file=path.name, line=line, kind=kind, cause=cause),
        Message("Correct the line."),
        file=path.name,
        row=line,
    )


def _no_constant(text: str) -> float:
    raise ValueError(text)


def path_of(keys: Keys) -> str:
    """The keys as a person says them: rate[2].until."""
    text = "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


def _refuse_unknown(document: Document, known: Sequence[str], data: Mapping[str, Any], keys: Keys) -> None:
    for key in data:
        if key not in known:
            raise document.error((*keys, key), Message("is not a key that is known here"), _did_you_mean(key, known))


def _did_you_mean(key: str, known: Sequence[str]) -> Message:
    near = get_close_matches(key, known, n=1)
    return Message("Did you mean {near}?", near=near[0]) if near else Message("Use {known}.", known=", ".join(known))


def _check_values(document: Document, data: object, keys: Keys, may_be_zero: Collection[str]) -> None:
    if isinstance(data, Mapping):
        for key, value in data.items():
            _check_values(document, value, (*keys, key), may_be_zero)
    elif isinstance(data, list):
        for place, value in enumerate(data):
            _check_values(document, value, (*keys, place), may_be_zero)
    elif isinstance(data, str) and CONTROL.search(data):
        raise document.error(keys, Message("holds a control character"), Message("Take it out."))
    elif isinstance(data, int | float) and (rule := _impossible(str(keys[-1]), data, may_be_zero)):
        raise document.error(keys, rule)


def _impossible(name: str, value: float, may_be_zero: Collection[str]) -> Message | None:
    if isinstance(value, bool):
        return None
    if not math.isfinite(value):
        return Message("is {value}, which is no number", value=value)
    if name.endswith("_fraction") and value > 1:
        return Message("is {value}: a share is at most 1 (0.15 is 15 %)", value=value)
    if name == "pue" and value < 1:
        return Message("is {value}: a facility draws at least what its machines draw (1.0)", value=value)
    if value < 0 or (value == 0 and name not in may_be_zero):
        return Message("is {value}: it has to be above 0", value=value)
    return None
