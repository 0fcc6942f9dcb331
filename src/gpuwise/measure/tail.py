"""Follows the marks files of a folder while processes write them."""

from __future__ import annotations

from pathlib import Path

SUFFIX = ".marks"


class Tail:
    """Reads only what was added since the last look. A file that cannot be read is left for the next one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts: dict[str, list[bytes]] = {}
        self._sizes: dict[str, int] = {}
        self._steps: dict[str, int] = {}
        self._old = {path.name for path in folder.glob("*" + SUFFIX)}

    def look(self) -> bool:
        """Whether anything was added."""
        return sum(self._read(path) for path in sorted(self._folder.glob("*" + SUFFIX))) > 0

    def _read(self, path: Path) -> bool:
        try:
            with path.open("rb") as file:
                file.seek(self._sizes.get(path.name, 0))
                added = file.read()
        except OSError:
            return False
        if not added:
            return False
        self._sizes[path.name] = self._sizes.get(path.name, 0) + len(added)
        self._texts.setdefault(path.name, []).append(added)
        if path.name not in self._old:
            lines = added.split(b"\n")
            self._steps[path.name] = self._steps.get(path.name, 0) + sum(line[:1].isdigit() for line in lines)
        return True

    @property
    def steps(self) -> int:
        """Steps of the process of this session that has done most; the first half of a cut line counts for one."""
        return max(self._steps.values(), default=0)

    @property
    def mains(self) -> tuple[int, ...]:
        """Process ids that have marked a step in this session."""
        return tuple(int(name[: -len(SUFFIX)].rpartition("-")[2]) for name, steps in self._steps.items() if steps)

    def new(self, name: str) -> bool:
        """Whether the file of this name belongs to this session."""
        return name not in self._old

    def texts(self) -> dict[str, str]:
        """All there is so far, for marks.parse."""
        for name, parts in self._texts.items():
            self._texts[name] = [b"".join(parts)]
        return {name: parts[0].decode("utf-8", errors="replace") for name, parts in self._texts.items()}
