"""From a text, and what stands beside it in the same row, to the accelerators that it may mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from gpuwise.errors import Message
from gpuwise.model import Accelerator
from gpuwise.names.index import Index, Known, is_size, listed
from gpuwise.names.words import FORMS, Core, Stated, product_of, read, size_of, words
from gpuwise.units import Gib


@dataclass(frozen=True, slots=True)
class Match:
    """Exactly this accelerator."""

    accelerator: Accelerator

    @property
    def variants(self) -> tuple[Accelerator, ...]:
        """What the text may stand for in a prediction: empty where no honest range can be given."""
        return (self.accelerator,)


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """One of several, or not surely any.

    kind: variant (form factor or memory not stated), size (one size is known here, the text states none), products
    (different products go by this name), conflict (the statements contradict each other: nothing may be chosen).
    """

    candidates: tuple[Accelerator, ...]
    reason: Message
    kind: Literal["variant", "size", "products", "conflict"]

    @property
    def variants(self) -> tuple[Accelerator, ...]:
        return self.candidates if self.kind == "variant" else ()


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of an accelerator (vGPU or MIG) with memory_gib of its memory. candidates: what it may be cut from."""

    candidates: tuple[Accelerator, ...]
    memory_gib: Gib

    @property
    def accelerator(self) -> Accelerator | None:
        """What it is cut from, None where several are possible."""
        return self.candidates[0] if len(self.candidates) == 1 else None

    @property
    def variants(self) -> tuple[Accelerator, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing that the table knows; the raw text is kept."""

    text: str
    index: Index = field(repr=False, compare=False)

    @property
    def nearest(self) -> tuple[str, ...]:
        """Names that look alike, for a person to choose from (never chosen here)."""
        return self.index.nearest(self.text)

    @property
    def variants(self) -> tuple[Accelerator, ...]:
        return ()


Name = Match | Ambiguous | Slice | Unknown


def resolve(index: Index, text: str, *, memory_gib: Gib | None = None, hint: str = "") -> Name:
    """What `text` means in a price list or a driver's report.

    memory_gib: per GPU, from a column beside it (nominal or usable). hint: form factor, link or type name from another
    column; it adds a form and, beside the product's name, a size of memory ("gpu_8x_a100_80gb_sxm4").
    """
    parts = re.split(r"\s+/\s+|\s+or\s+", text)
    if len(parts) > 1:
        return _either(index, text, [resolve(index, p, memory_gib=memory_gib, hint=hint) for p in parts])
    stated = read(text)
    family = _candidates(index, stated)
    if not family:
        return Unknown(text, index)
    if stated.slice_gib is not None:
        return _slice(index, text, stated, stated.slice_gib)
    beside = _Beside.of(stated.core, memory_gib, hint)
    left, reason = _narrow(text, stated, beside, family)
    if reason is not None:
        namesakes = [k for k in index.namesakes(stated.core) if stated.architectures <= k.architectures]
        return Ambiguous(_accelerators([*left, *namesakes]), reason, "conflict")
    if len(family) == 1 and family[0].sized and not (stated.sizes_gib or stated.forms or beside.sizes_gib):
        return Ambiguous(_accelerators(left), Message('"{text}" states no size of memory', text=text), "size")
    return _settle(text, left)


def _candidates(index: Index, stated: Stated) -> Sequence[Known]:
    """The family; for a bare number ("RTX 6000") every workstation card of that number."""
    family = index.family(stated.core)
    bare = len(stated.core) == 1 and not stated.architectures and "quadro" not in stated.brands
    return (index.namesakes(stated.core) or family) if family and bare else family


def _settle(text: str, left: Sequence[Known]) -> Match | Ambiguous:
    found = _accelerators(left)
    if len(found) == 1:
        return Match(found[0])
    one_product = frozenset.intersection(*(k.cores for k in left))
    one_chip = len({a.architecture.partition(" ")[0] for a in found}) == 1
    return Ambiguous(found, _may_be(text, found), "variant" if one_product and one_chip else "products")


def _either(index: Index, text: str, parts: Sequence[Name]) -> Name:
    """A text that names two products itself ("RTX 3090 / 3090 Ti")."""
    found: dict[str, Accelerator] = {}
    for part in parts:
        match part:
            case Match(accelerator):
                found[accelerator.id] = accelerator
            case Ambiguous(candidates, _, "variant" | "size" | "products"):
                found |= {a.id: a for a in candidates}
            case _:
                return Unknown(text, index)
    return Ambiguous(tuple(found.values()), _may_be(text, found.values()), "products")


def _may_be(text: str, accelerators: Iterable[Accelerator]) -> Message:
    return Message('"{text}" may be {names}', text=text, names=listed(accelerators))


def _slice(index: Index, text: str, stated: Stated, slice_gib: Gib) -> Slice | Unknown:
    left, reason = _narrow(text, stated, _Beside(), index.family(stated.core))
    fitting = [k for k in left if k.accelerator.memory_gib >= slice_gib]
    return Slice(_accelerators(fitting), slice_gib) if fitting and reason is None else Unknown(text, index)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """What other columns of the same row state."""

    forms: frozenset[str] = frozenset()
    sizes_gib: tuple[Gib, ...] = ()

    @classmethod
    def of(cls, core: Core, memory_gib: Gib | None, hint: str) -> _Beside:
        said = words(hint) if hint else []
        named = [size_of(b) for a, b in pairwise(said) if b.endswith("b") and product_of(a) == core]
        return cls(
            forms=frozenset(FORMS[w] for w in said if w in FORMS),
            sizes_gib=tuple(gib for gib in (*named, memory_gib) if gib is not None),
        )


def _narrow(
    text: str, stated: Stated, beside: _Beside, family: Sequence[Known]
) -> tuple[Sequence[Known], Message | None]:
    """The candidates that all statements allow; or those before the statement that allows none, and why."""
    forms = stated.forms | beside.forms
    sizes_gib = dict.fromkeys((*stated.sizes_gib, *beside.sizes_gib))
    checks: tuple[tuple[Callable[[Known], bool], Callable[[], Message]], ...] = (
        (
            lambda k: stated.brands <= k.brands and stated.architectures <= k.architectures,
            lambda: Message('"{text}" mixes the names of different products', text=text),
        ),
        (
            lambda k: all(map(k.has_form, forms)) and _has_memory_kind(k, stated),
            lambda: Message('"{text}" is not known as {forms}', text=text, forms=" and ".join(sorted(forms)).upper()),
        ),
        (lambda k: all(map(k.has_size, sizes_gib)), lambda: _no_size(text, sizes_gib)),
    )
    left = family
    for allows, reason in checks:
        kept = [k for k in left if allows(k)]
        if not kept:
            return left, reason()
        left = kept
    return _plain_pcie(left, forms), None


def _no_size(text: str, sizes_gib: Iterable[Gib]) -> Message:
    first, *others = (f"{gib:.4g}" for gib in sizes_gib)
    if others:
        return Message('the sizes stated for "{text}" differ: {a} GB and {b} GB', text=text, a=first, b=others[0])
    return Message('"{text}" is not known with {size} GB', text=text, size=first)


def _has_memory_kind(known: Known, stated: Stated) -> bool:
    """The driver's "H100 80GB HBM3" is the SXM board: the PCIe card has HBM2e (NVIDIA H100 datasheets)."""
    return not ("hbm3" in stated.memory_kinds and ("100", "h") in known.cores and known.forms == {"pcie"})


def _plain_pcie(left: Sequence[Known], forms: frozenset[str]) -> Sequence[Known]:
    """NVL boards are PCIe cards too, but "H100 PCIe" is the product of that name where there is one."""
    plain = [k for k in left if "nvl" not in k.forms]
    return plain if plain and "pcie" in forms and "nvl" not in forms else left


def _accelerators(known: Iterable[Known]) -> tuple[Accelerator, ...]:
    return tuple({k.accelerator.id: k.accelerator for k in known}.values())


def memory_per_gpu(memory_gib: Gib, count: int, accelerators: Iterable[Accelerator]) -> Gib | Message:
    """Nominal memory per GPU, where a source states `memory_gib` per GPU or for all `count` GPUs together.

    accelerators: what the card may be; their sizes decide which of the two it is. A message says why they do not.
    """
    stated = {memory_gib, memory_gib / count}
    fitting = sorted({a.memory_gib for a in accelerators if any(is_size(s, a.memory_gib) for s in stated)})
    if len(fitting) == 1:
        return fitting[0]
    said = {"memory": f"{memory_gib:g}", "count": count}
    if not fitting:
        return Message("{memory} GB for {count} GPUs is no size that this GPU is sold with", **said)
    sizes = ", ".join(f"{s:g}" for s in fitting)
    return Message("{memory} GB for {count} GPUs may be {sizes} GB per GPU", **said, sizes=sizes)
