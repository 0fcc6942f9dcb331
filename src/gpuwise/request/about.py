"""What a field of a request type tells the faces: `about()` puts it into the metadata, `options()` reads it back."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any


def about(
    help: str,  # noqa: A002 - the word that a reader looks for
    *,
    kind: str = "text",
    default: Any = None,
    flags: tuple[str, ...] = (),
    group: str = "Filters",
    show: str = "",
    example: str = "",
    positional: bool = False,
    required: bool = False,
) -> Any:
    """A field with what the faces need.

    kind: names the parser in KINDS. default: () if it may be said several times. flags: the option, where its name is
    not the field's. show: the word for its value. example: a text that parses. positional: said without an option.
    """
    meta = {"help": help, "kind": kind, "flags": flags, "group": group, "metavar": show, "example": example}
    return field(default=default, metadata=meta | {"positional": positional, "required": required})


@dataclass(frozen=True, slots=True)
class Option:
    """One thing a person can say in a request, as every face shows it. name: what is typed, without dashes."""

    name: str
    field: str
    help: str
    kind: str
    group: str
    metavar: str
    example: str
    default: Any
    positional: bool
    required: bool

    @property
    def repeats(self) -> bool:
        """May it be given several times?"""
        return isinstance(self.default, tuple)

    @property
    def spelled(self) -> str:
        """As a person writes it on the command line."""
        return self.metavar if self.positional else f"--{self.name}"


def options(request: type[Any]) -> dict[str, Option]:
    """What can be said in a request, by the name that is typed."""
    return {option.name: option for option in (_option(item) for item in fields(request) if item.metadata)}


def _option(item: Field[Any]) -> Option:
    meta = dict(item.metadata)
    (flag,) = meta.pop("flags") or ("--" + item.name.replace("_", "-"),)
    return Option(name=flag.removeprefix("--"), field=item.name, default=item.default, **meta)
