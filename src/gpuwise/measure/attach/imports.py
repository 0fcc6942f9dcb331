"""Runs an action once a module has been imported, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Action = Callable[[ModuleType], object]


class AfterImport(MetaPathFinder):
    """Stands first in sys.meta_path and lets the other finders find; actions by full name of the module."""

    def __init__(self, actions: dict[str, Action]) -> None:
        self.actions = actions

    def install(self) -> None:
        """Modules that are already there have their action at once."""
        for name in [name for name in self.actions if name in sys.modules]:
            self.actions.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.actions:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._follow(name, spec.loader)
                return spec
        return None

    def _follow(self, name: str, loader: Loader) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            action = self.actions.pop(name, None)
            if action is not None:
                action(module)

        loader.exec_module = exec_module  # type: ignore[method-assign] # on this loader alone: it stays the module's own
