"""Workloads and software as people write them → as the tables of measured rates spell them.

    names.workload("ResNet-50")          resnet50
    names.workload("resnet50", 288)      resnet50@288
    names.software("PyTorch 1.13")       ngc-pytorch-1.13
    names.family("resnet200d")           cnn: every known name that begins like it is one

Case, blanks, hyphens and underscores do not matter; nothing is matched by likeness.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuwise.model import BenchmarkResult

USUAL_SIDE_PX = 224
"""Height and width of an image where a name does not say another one."""

CONTAINERS = {
    "20.01": "1.4", "20.10": "1.7", "21.03": "1.9", "21.07": "1.10", "22.09": "1.13", "22.10": "1.13", "23.06": "2.1",
    "24.03": "2.3", "24.09": "2.5", "24.10": "2.5", "25.06": "2.8",
}  # fmt: skip
"""NGC containers -> the PyTorch in them. Source: NVIDIA, Deep Learning Frameworks Support Matrix."""

_STATED = re.compile(r"(torchvision|torch|tensorflow|tf|ngc)\D*(\d+)\.(\d+)")
_NOISE = re.compile(r"[\s_-]+")
_STEM = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The spellings of the tables. workloads: without what does not matter -> the names; stems: the letters with which
    names begin -> the families that have them."""

    workloads: Mapping[str, frozenset[str]]
    families: Mapping[str, str]
    stems: Mapping[str, frozenset[str]]
    softwares: tuple[str, ...]

    @staticmethod
    def of(rows: Iterable[BenchmarkResult]) -> Names:
        """From the measured rates."""
        families = {row.workload: row.family for row in rows}
        workloads: dict[str, set[str]] = {}
        stems: dict[str, set[str]] = {}
        for name, family in families.items():
            workloads.setdefault(plain(name), set()).add(name)
            stems.setdefault(_stem(name), set()).add(family)
        return Names(
            workloads={key: frozenset(found) for key, found in workloads.items()},
            families=families,
            stems={key: frozenset(found) for key, found in stems.items()},
            softwares=tuple(sorted({row.software for row in rows if row.software})),
        )

    def workload(self, text: str, side_px: int | None = None) -> str:
        """The name in the tables where exactly one is this one, else the text. A side other than the usual one becomes
        part of the name."""
        sized = text if "@" in text or side_px in (None, USUAL_SIDE_PX) else f"{text}@{side_px}"
        found = self.workloads.get(plain(sized), frozenset())
        return next(iter(found)) if len(found) == 1 else sized

    def family(self, name: str) -> str | None:
        """Of a known workload its own; else the one that all names with this beginning share; else None."""
        if name in self.families:
            return self.families[name]
        found = self.stems.get(_stem(name), frozenset())
        return next(iter(found)) if len(found) == 1 else None

    def software(self, text: str | None) -> str | None:
        """As the tables spell it, or with a framework and version that can be compared with theirs."""
        if text is None or text in self.softwares:
            return text
        if (spelled := _framework(text)) is None:
            return text
        return next((name for before in _MAKERS if (name := before + spelled) in self.softwares), spelled)


_MAKERS = ("ngc-py", "timm-", "")
"""What may stand before the framework in the tables, the likeliest first."""


def plain(text: str) -> str:
    """Without what does not matter."""
    return _NOISE.sub("", text.casefold())


def _stem(name: str) -> str:
    found = _STEM.match(name.casefold())
    return found[0] if found else name.casefold()


def _framework(text: str) -> str | None:
    """Framework and version (major.minor) in a text. An NGC container stands for the PyTorch in it."""
    found = _STATED.search(text.casefold())
    if found is None:
        return None
    framework = {"ngc": "torch", "tf": "tensorflow"}.get(found[1], found[1])
    contained = CONTAINERS.get(f"{found[2]}.{found[3]}") if framework == "torch" else None
    return f"{framework}-{contained or f'{int(found[2])}.{int(found[3])}'}"
