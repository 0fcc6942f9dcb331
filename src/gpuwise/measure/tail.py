"""Follows the marks files of a folder while processes write them."""

from __future__ import annotations

from pathlib import Path

from gpuwise.measure.marks import Marks, Reader, joined

SUFFIX = ".marks"
MOST_BYTES = 2**22
"""Read at once, so that a file of any length takes no more memory as text than that."""


class Tail:
    """Reads only what was added since the last look. A file that cannot be read is left for the next one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: dict[str, Reader] = {}
        self._sizes: dict[str, int] = {}
        self._cut: dict[str, bytes] = {}
        self._old = {path.name for path in folder.glob("*" + SUFFIX)}

    def look(self) -> bool:
        """Whether anything was added."""
        return sum(self._read(path) for path in sorted(self._folder.glob("*" + SUFFIX))) > 0

    def _read(self, path: Path) -> bool:
        before = self._sizes.get(path.name, 0)
        try:
            with path.open("rb") as file:
                file.seek(before)
                while added := file.read(MOST_BYTES):
                    self._take(path.name, added)
        except OSError:
            return self._sizes.get(path.name, 0) > before
        return self._sizes.get(path.name, 0) > before

    def _take(self, name: str, added: bytes) -> None:
        """Whole lines are read; what follows the last one waits for its rest."""
        self._sizes[name] = self._sizes.get(name, 0) + len(added)
        lines, feed, self._cut[name] = (self._cut.get(name, b"") + added).rpartition(b"\n")
        self._readers.setdefault(name, Reader(name)).add((lines + feed).decode("utf-8", errors="replace"))

    @property
    def steps(self) -> int:
        """Steps of the process of this session that has done most."""
        return max(self._steps.values(), default=0)

    @property
    def mains(self) -> tuple[int, ...]:
        """Process ids that have marked a step in this session."""
        return tuple(int(name[: -len(SUFFIX)].rpartition("-")[2]) for name, steps in self._steps.items() if steps)

    @property
    def _steps(self) -> dict[str, int]:
        return {name: len(reader) for name, reader in self._readers.items() if self.new(name)}

    def new(self, name: str) -> bool:
        """Whether the file of this name belongs to this session."""
        return name not in self._old

    def marks(self) -> Marks:
        """All there is so far."""
        return joined(self._readers.values())
