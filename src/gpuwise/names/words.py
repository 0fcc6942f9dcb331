"""What one text says: product, brand, architecture, form, memory, and the part of a device it names."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from gpuwise.units import Gib

Core = tuple[str, ...]
"""The letters and numbers that make a product, sorted: ("100", "h"), ("3080", "ti")."""

SILENT = frozenset((
    "tesla", "geforce", "radeon", "instinct", "habana", "grid", "mig", "gpu", "gpus", "graphics", "mode", "generation",
    "edition", "tensor", "core", "ai", "accelerator", "card", "nvlink", "ac",
))  # fmt: skip
VENDORS = frozenset(("nvidia", "amd", "intel", "google", "aws"))
FORMS = {
    "sxm": "sxm", "sxm2": "sxm2", "sxm3": "sxm3", "sxm4": "sxm4", "sxm5": "sxm5", "sxm6": "sxm6", "hgx": "sxm",
    "pcie": "pcie", "pci": "pcie", "nvl": "nvl", "oam": "oam", "superchip": "superchip", "server": "server",
    "se": "server", "ws": "ws", "we": "ws", "workstation": "ws",
}  # fmt: skip

_BRANDS = frozenset(("rtx", "gtx", "rx", "quadro"))
_ARCHITECTURES = frozenset((
    "kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "lovelace", "hopper", "blackwell", "ultra",
))  # fmt: skip
_WORD = re.compile(r"\d+g\.\d+gb|\d+(?:\.\d+)?(?:[ _-]?(?:gib|gb|mib|mb)(?![^\W_])|[^\W_]*)|[^\W\d_][^\W_]*")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)[ _-]?(g|m)(?:i?b)?")
_MIG_PROFILE = re.compile(r"\dg\.(\d+)gb")
_VGPU_PROFILE = re.compile(r"(\d+)[abcq]")
_MARK = re.compile(r"[®™©]|\((?:r|tm|c)\)", re.IGNORECASE)
_POWER = re.compile(r"\d{2,4}w")
_MEMORY_KIND = re.compile(r"g?ddr\d\w*|hbm\d\w*")
_GLUED_FORM = re.compile(r"(.*\d)(sxm\d?|pcie|nvl)")
_PIECE = re.compile(r"\d+|[rg]tx|tpu|[^\W\d_]+")
_VGPU_BOARDS = {
    "a100": "a100 pcie 40gb", "a100x": "a100 sxm4 40gb", "a100d": "a100 pcie 80gb", "a100dx": "a100 sxm4 80gb",
    "a800": "a800 pcie 40gb", "a800d": "a800 pcie 80gb", "a800dx": "a800 sxm4 80gb",
    "v100": "v100 pcie 16gb", "v100x": "v100 sxm2 16gb", "v100d": "v100 pcie 32gb", "v100dx": "v100 sxm2 32gb",
    "h100": "h100 pcie 80gb", "h100xm": "h100 sxm5 80gb", "h100l": "h100 nvl 94gb",
    "h200": "h200 nvl", "h200x": "h200 sxm",
}  # fmt: skip
"""Board letters in the names of virtual GPUs. Source: NVIDIA, Virtual GPU Software User Guide, virtual GPU types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What one text says. sizes_gib: of the whole device; slice_gib: of the part, where it names one."""

    core: Core
    brands: frozenset[str]
    architectures: frozenset[str]
    forms: frozenset[str]
    memory_kinds: frozenset[str]
    sizes_gib: tuple[Gib, ...]
    slice_gib: Gib | None


def words(text: str) -> list[str]:
    """Lower-case words; a number and its unit of memory are one word ("80 gb")."""
    plain = unicodedata.normalize("NFKC", _MARK.sub(" ", text)).casefold().replace("max-q", "maxq")
    if "pci" in plain:
        plain = re.sub(r"pci[ -]?e(?:xpress)?\b", "pcie", plain)
    return _WORD.findall(plain)


def size_of(word: str) -> Gib | None:
    """The memory that a word like "80gb" states; GB as sold, which is GiB."""
    match = _SIZE.fullmatch(word)
    return match and float(match[1]) / (1024 if match[2] == "m" else 1)


def read(text: str) -> Stated:
    all_words, slice_gib = _without_profile(words(text))
    said: dict[str, list[str]] = {kind: [] for kind in ("piece", "form", "architecture", "memory", "size", "vgpu")}
    for word in all_words:
        for kind, value in _atoms(word):
            said[kind].append(value)
    sizes_gib = tuple(float(s) for s in said["size"])
    if said["vgpu"] and slice_gib is None and sizes_gib:
        slice_gib, *rest = sizes_gib
        sizes_gib = tuple(rest)
    core, brands = product(said["piece"])
    return Stated(
        core=core,
        brands=brands,
        architectures=frozenset(said["architecture"]),
        forms=frozenset(said["form"]),
        memory_kinds=frozenset(said["memory"]),
        sizes_gib=sizes_gib,
        slice_gib=slice_gib,
    )


def _without_profile(all_words: list[str]) -> tuple[list[str], Gib | None]:
    """The words without the profile of a slice: MIG "3g.20gb", vGPU "40C" or, cut by MIG, "1-10C"."""
    for i, word in enumerate(all_words):
        if mig := _MIG_PROFILE.fullmatch(word):
            return all_words[:i] + all_words[i + 1 :], float(mig[1])
    if len(all_words) < 2 or not (profile := _VGPU_PROFILE.fullmatch(all_words[-1])):
        return all_words, None
    *rest, board = all_words[:-2] if len(all_words) > 2 and all_words[-2] in set("1234567") else all_words[:-1]
    return [*rest, *_VGPU_BOARDS.get(board, board).split()], float(profile[1])


_VOCABULARY: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(SILENT, ()),
    **{word: (("form", form),) for word, form in FORMS.items()},
    **{word: (("architecture", word),) for word in _ARCHITECTURES},
    "vgpu": (("vgpu", ""),),
}


@lru_cache(maxsize=4096)
def _atoms(word: str) -> tuple[tuple[str, str], ...]:
    """What one word says, as (kind, value)."""
    if word in _VOCABULARY:
        return _VOCABULARY[word]
    if _POWER.fullmatch(word):
        return ()
    if _MEMORY_KIND.fullmatch(word):
        return (("memory", word),)
    if (gib := size_of(word)) is not None:
        return (("size", str(gib)),)
    if glued := _GLUED_FORM.fullmatch(word):
        return (*_atoms(glued[1]), ("form", FORMS[glued[2]]))
    return tuple(("piece", p) for p in _PIECE.findall(word))


def product(pieces: list[str]) -> tuple[Core, frozenset[str]]:
    """Product and brands. A brand makes the product only where no number does ("TITAN RTX"); Quadro needs its RTX."""
    brands = _BRANDS.intersection(pieces)
    if "rtx" not in brands:
        brands -= {"quadro"}
    core = [p for p in pieces if p not in brands and p not in VENDORS]
    if core and not any(p.isdigit() for p in core):
        core, brands = [p for p in pieces if p not in VENDORS], frozenset()
    return tuple(sorted(core)), brands | VENDORS.intersection(pieces)


def product_of(word: str) -> Core:
    """The product that one word names by itself ("a100")."""
    return product([value for kind, value in _atoms(word) if kind == "piece"])[0]
