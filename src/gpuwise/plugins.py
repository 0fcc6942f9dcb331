"""Code that is looked up by name, and code of others: the one border where anything may be raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from gpuwise.errors import InvalidInput, Message, UnknownName

GROUP = "gpuwise.sources"
OURS: Mapping[str, str] = {
    "package": "gpuwise.sources.package:PackageSource",
    "file": "gpuwise.sources.file:FileSource",
    "gpuhunt": "gpuwise.sources.gpuhunt:GpuhuntSource",
}
"""Our own sources; they are looked up without a search through the installed packages."""
T = TypeVar("T")


def attempt(call: Callable[[], T]) -> T | Exception:
    """What `call` returns, or what it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the plug-in border
        return error


def source(name: str) -> Any:
    """The source of that name (`gpuwise.sources.Source`), ours or of another package, made and ready.

    UnknownName if there is none, InvalidInput if it is broken: a source asked for by name has to work.
    """
    if name in OURS:
        module, _, attribute = OURS[name].partition(":")
        return getattr(import_module(module), attribute)()
    made, warnings = others()
    if name in made:
        return made[name]
    broken = next((w for w in warnings if w.values["name"] == name), None)
    if broken is not None:
        raise InvalidInput(Message("{broken}.", broken=broken), Message("Update or remove that package."))
    names = [*OURS, *made]
    raise UnknownName(
        Message('There is no source "{name}".', name=name), Message("Known: {names}.", names=", ".join(names)), names
    )


@cache
def others() -> tuple[Mapping[str, Any], tuple[Message, ...]]:
    """The sources that other packages add to the entry-point group, by name; one warning for each that is broken."""
    from importlib.metadata import entry_points

    made, warnings = dict[str, Any](), list[Message]()
    for entry in entry_points(group=GROUP):
        if entry.name in OURS:
            continue
        plugin = attempt(lambda entry=entry: entry.load()())  # type: ignore[misc]
        if isinstance(plugin, Exception):
            cause = f"{type(plugin).__name__}: {plugin}"
            warnings.append(Message("the source {name} does not work ({cause})", name=entry.name, cause=cause))
        else:
            made[entry.name] = plugin
    return made, tuple(warnings)
