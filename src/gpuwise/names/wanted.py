"""What `--gpu` asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.model import Accelerator
from gpuwise.names.index import Index
from gpuwise.names.meaning import Ambiguous, Match, Name, Slice, Unknown, resolve
from gpuwise.units import Range, parse_range


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What one `--gpu` asks for. ids: any of these accelerators (empty: any at all). memory: per GPU, nominal."""

    ids: tuple[str, ...] = ()
    memory: Range | None = None
    count: Range | None = None
    notes: tuple[Message, ...] = ()


def resolve_request(index: Index, text: str) -> Selection:
    """What `--gpu text` asks for: NAME, NAME:COUNT, a range of memory (80GB..) or of counts (1..8).

    "8xH100", "8 × H100 SXM5 80 GB" and "H100x8" are NAME:COUNT in other words.
    A product without its variant selects all variants, with a note. A name that is not known, or that is several
    products, raises UnknownName with what may have been meant; nothing is chosen by likeness.
    """
    name, colon, number = (part.strip() for part in _with_colon(index, text).partition(":"))
    found = resolve(index, name)
    if isinstance(found, Unknown) and _is_range(name):
        chosen = _range(text, name)
    else:
        chosen = _named(name, colon + number, found)
    if not colon:
        return chosen
    if chosen.count is not None:
        raise InvalidInput(
            Message('"{text}" states the number of GPUs twice.', text=text), Message("Write one range, such as 1..8.")
        )
    return replace(chosen, count=_count(name, number))


_TIMES = re.compile(r"([1-9]\d{0,2})\s*[x×]\s*([^:]+)|([^:]+?)\s*[x×]\s*([1-9]\d{0,2})", re.IGNORECASE)


def _with_colon(index: Index, text: str) -> str:
    """NAME:COUNT for a name and a number with "x" between them, unless that is itself a name, or leaves none."""
    match = _TIMES.fullmatch(text.strip())
    if match is None or not isinstance(resolve(index, text.strip()), Unknown):
        return text
    name, number = (match[2], match[1]) if match[2] else (match[3], match[4])
    return text if isinstance(resolve(index, name), Unknown) else f"{name}:{number}"


def _is_range(name: str) -> bool:
    return re.fullmatch(r"[^.]*\.\.[^.]*|[0-9.,]+\s*(?:[mgt]i?b?)?", name, re.IGNORECASE) is not None


def _range(text: str, name: str) -> Selection:
    bounds = parse_range(name)
    return Selection(memory=bounds) if bounds.kind == "memory" else Selection(count=bounds)


def _named(name: str, count: str, found: Name) -> Selection:
    match found:
        case Match(accelerator):
            return Selection(ids=(accelerator.id,))
        case Ambiguous(candidates, reason, "variant"):
            return Selection(ids=tuple(a.id for a in candidates), notes=(_all_taken(reason),))
        case Ambiguous(candidates, reason, "size"):
            return Selection(ids=tuple(a.id for a in candidates), notes=(_one_known(candidates[0], reason),))
        case Ambiguous(candidates, reason):
            raise _choose(Message("{reason}.", reason=reason), candidates, count)
        case Slice(candidates):
            part = Message('"{name}" is a part of a GPU, and only whole ones are compared.', name=name)
            raise _choose(part, candidates, count)
        case Unknown():
            raise _unknown(name, [n + count for n in found.nearest])


def _all_taken(reason: Message) -> Message:
    return Message("{reason}: all are taken", reason=reason)


def _one_known(accelerator: Accelerator, reason: Message) -> Message:
    return Message("{reason}: the one of {size:g} GB is taken", reason=reason, size=accelerator.memory_gib)


def _choose(problem: Message, candidates: Sequence[Accelerator], count: str) -> UnknownName:
    names = [a.id.upper() + count for a in candidates]
    return UnknownName(problem, Message("Write one of: {names}.", names=", ".join(names)), names)


def _unknown(name: str, nearest: Sequence[str]) -> UnknownName:
    look = Message('See those that are known with "gpuwise data list --by gpu".')
    hint = Message("Did you mean {names}?", names=", ".join(nearest)) if nearest else look
    return UnknownName(Message('"{name}" is not a GPU that is known here.', name=name), hint, nearest)


def _count(name: str, number: str) -> Range:
    try:
        bounds = parse_range(number)
    except InvalidInput:
        raise _no_count(name, number) from None
    if bounds.kind != "count":
        raise _no_count(name, number)
    return bounds


def _no_count(name: str, number: str) -> UnknownName:
    digits = re.match("[1-9][0-9]*", number)
    nearest = f"{name}:{digits[0]}" if digits else "H100:8"
    return UnknownName(
        Message('"{number}" after "{name}:" is not a number of GPUs.', number=number, name=name),
        Message("Did you mean {names}?", names=nearest)
        if digits
        else Message("Write for example {name}.", name=nearest),
        (nearest,) if digits else (),
    )
