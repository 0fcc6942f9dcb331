"""The known accelerators by product, with all that a text may say of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from gpuwise.model import Accelerator
from gpuwise.names.words import FORMS, SILENT, VENDORS, Core, read, size_of, words
from gpuwise.units import Gib


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One accelerator. cores: products it goes by; sized: its own name tells sizes of memory apart."""

    accelerator: Accelerator
    cores: frozenset[Core]
    brands: frozenset[str]
    architectures: frozenset[str]
    forms: frozenset[str]
    sizes_gib: frozenset[Gib]
    sized: bool

    def has_form(self, form: str) -> bool:
        if form == "sxm":
            return any(f.startswith("sxm") for f in self.forms)
        return form in self.forms or (form.startswith("sxm") and "sxm" in self.forms)

    def has_size(self, gib: Gib) -> bool:
        return any(is_size(gib, size) for size in self.sizes_gib)


def is_size(stated_gib: Gib, nominal_gib: Gib) -> bool:
    """Whether a stated size can be this nominal one: drivers report from 0.91 of it, price lists up to 1.07."""
    return 0.9 <= stated_gib / nominal_gib <= 1.07


class Index:
    """The accelerators by product, built once from the table."""

    def __init__(self, accelerators: Iterable[Accelerator]) -> None:
        self._known = [_know(a) for a in accelerators]
        self._families: dict[Core, list[Known]] = {}
        self._numbers: dict[str, list[Known]] = {}
        for known in self._known:
            for core in known.cores:
                self._families.setdefault(core, []).append(known)
            for number in {_workstation_number(core) for core in known.cores if "rtx" in known.brands}:
                self._numbers.setdefault(number, []).append(known)

    def family(self, core: Core) -> Sequence[Known]:
        """All variants of one product."""
        return self._families.get(core, ())

    def namesakes(self, core: Core) -> Sequence[Known]:
        """Workstation cards of one number: RTX 6000, RTX A6000, RTX 6000 Ada, RTX PRO 6000."""
        number = _workstation_number(core)
        return self._numbers.get(number, ()) if number else ()

    def nearest(self, text: str) -> tuple[str, ...]:
        """Up to three names that can be typed, the likest first."""
        said = [w for w in words(text) if size_of(w) is None]
        wanted = "-".join(w for w in said if w not in SILENT and w not in VENDORS) or "-".join(said)
        found = get_close_matches(wanted, self._spellings, n=8)
        return tuple(dict.fromkeys(self._spellings[key] for key in found))[:3]

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """Spelling -> name to type: families, families with a size, ids, names and aliases."""
        found: dict[str, str] = {}
        for known in self._known:
            a = known.accelerator
            family = "-".join(w for w in words(a.id) if w not in FORMS and size_of(w) is None)
            sized = f"{family}-{a.memory_gib:g}gb"
            found[family] = family.upper()
            if len({k.accelerator.memory_gib for core in known.cores for k in self.family(core)}) > 1:
                found[sized] = sized.upper()
            for text in (a.id, title(a), *a.aliases):
                found.setdefault("-".join(words(text)), a.id.upper())
        return found


def title(accelerator: Accelerator) -> str:
    """The name without the remark in brackets."""
    return accelerator.name.partition("(")[0].strip()


def listed(accelerators: Iterable[Accelerator]) -> str:
    """Names with the memory of each: "Quadro RTX 6000 (24 GB), RTX A6000 (48 GB)"."""
    return ", ".join(f"{re.sub(r' [0-9]+GB$', '', title(a))} ({a.memory_gib:g} GB)" for a in accelerators)


def _know(accelerator: Accelerator) -> Known:
    texts = [read(t) for t in (accelerator.id, title(accelerator), *accelerator.aliases)]
    return Known(
        accelerator=accelerator,
        cores=frozenset(t.core for t in texts if t.core),
        brands=frozenset({accelerator.vendor.casefold()}.union(*(t.brands for t in texts))),
        architectures=frozenset(words(accelerator.architecture)).union(*(t.architectures for t in texts)),
        forms=_forms({f for t in texts for f in t.forms} | {FORMS.get(w, w) for w in words(accelerator.form_factor)}),
        sizes_gib=frozenset({accelerator.memory_gib}.union(*(t.sizes_gib for t in texts))),
        sized=any(t.sizes_gib for t in texts[:2]),
    )


def _forms(stated: set[str]) -> frozenset[str]:
    """SXM without a number stands for any generation, so it counts only where no generation is stated."""
    if "superchip" in stated:
        return frozenset(stated | {"sxm"})
    return frozenset(stated - {"sxm"} if any(re.fullmatch(r"sxm\d", f) for f in stated) else stated)


def _workstation_number(core: Core) -> str:
    return next((p for p in core if re.fullmatch("[1-8][05]00", p)), "")
