"""The one place where a failure of ours is caught, so that the program it happened in goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Border:
    """Calls hooks; one that raised is noted by `note(name, error)` and never called again. absent: while it is true, no
    hook is called."""

    def __init__(self, note: Callable[[str, Exception], None]) -> None:
        self.broken: set[str] = set()
        self.absent: Callable[[], bool] = bool
        self._note = note

    def eager(self, name: str, hook: Callable[..., object]) -> Callable[..., None]:
        """The same for a hook that gives nothing back, and that is nothing while `absent` says so."""
        broken, absent = self.broken, self.absent

        @functools.wraps(hook)
        def safe(*args: object) -> None:
            if absent() or name in broken:
                return
            try:
                hook(*args)
            except Exception as error:  # noqa: BLE001 (a person's program must not fail for what watches it)
                broken.add(name)
                self._note(name, error)

        return safe

    def __call__(self, name: str, hook: Callable[P, R]) -> Callable[P, R | None]:
        broken = self.broken

        @functools.wraps(hook)
        def safe(*args: P.args, **kwargs: P.kwargs) -> R | None:
            if name in broken:
                return None
            try:
                return hook(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 (a person's program must not fail for what watches it)
                broken.add(name)
                self._note(name, error)
                return None

        return safe
